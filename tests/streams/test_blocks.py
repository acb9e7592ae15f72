"""Blocks of rows: what a model of fewer columns sees of them."""

from __future__ import annotations

import numpy as np
import pytest

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
