"""Blocks of rows: what a model of fewer columns sees of them."""

from __future__ import annotations

import numpy as np
import pytest

from onlinear import streams
from onlinear.streams.blocks import EntrySums, Fingerprint
from onlinear.streams.svmlight import Svmlight


@pytest.mark.parametrize("width", [1, 3, 6, 9])
def test_entries_beyond_the_width_are_left_out(tmp_path, width):
    (tmp_path / "a.svm").write_text("1 3:2 6:1\n-1\n1 1:4 2:0.5 5:-1\n")
    (block,) = Svmlight((str(tmp_path / "a.svm"),))
    table = np.array([[0, 0, 2, 0, 0, 1], [0, 0, 0, 0, 0, 0], [4, 0.5, 0, 0, -1, 0]])
    wanted = np.zeros((3, width))
    wanted[:, : min(width, 6)] = table[:, :width]
    np.testing.assert_array_equal(block.csr(width).toarray(), wanted)
    source = block.within(width)
    assert (source.n, source.width, source.nnz) == (3, width, np.count_nonzero(wanted))
    assert source.size == max(np.flatnonzero(wanted.any(axis=0)), default=-1) + 1
    assert block.take(np.array([1])).within(width).nnz == 0


@pytest.mark.parametrize("cuts", [[], [1], [600, 601], [3, 3, 1999]])
def test_the_summary_of_rows_is_that_of_any_blocks_of_them(cuts, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{1 - 2 * (i % 3 == 0)} {i % 7 + 1}:0.{i + 1} 4000000:-{i}e9\n" for i in range(2000)))
    (block,) = streams.open(path)
    found, whole = Fingerprint(), Fingerprint().plus(block, EntrySums.of(block.rows))
    for first, last in zip([0, *cuts], [*cuts, block.n], strict=True):
        part = block.cut(first, last)
        found = found.plus(part, EntrySums.of(part.rows))
    assert found == whole
    assert whole.columns == int(block.rows.indices.sum(dtype=np.uint64))
    assert whole.values == int(block.rows.values.view(np.uint64).sum())
    assert (block.size, block.largest) == (4_000_000, 1999e9)
    other = block._replace(y=np.roll(block.y, 1))
    assert Fingerprint().plus(other, EntrySums.of(other.rows)) != whole
