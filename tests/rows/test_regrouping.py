"""Entries brought together by row are those of a stable sort by row, whatever the stretches they pass through."""

import numpy as np
import pytest

from onlinear.rows import regrouping
from onlinear.rows.scanning import look_over

LARGEST = 2**31 - 2


@pytest.fixture(params=[(8, 4), (1, 1), (3, 0)], ids=["as it is", "two stretches", "many"])
def stretches(request, monkeypatch):
    monkeypatch.setattr(regrouping, "STRETCHES", request.param[0])
    monkeypatch.setattr(regrouping, "LEAST_ROWS", request.param[1])


def assert_by_row(found, lines, columns, values):
    (starts, indices, numbers), facts = found
    order = np.argsort(lines, kind="stable")
    np.testing.assert_array_equal(starts[1:], np.cumsum(np.bincount(lines, minlength=len(starts) - 1)))
    assert indices.tobytes() == columns[order].astype(np.uint32).tobytes()
    assert numbers.tobytes() == values[order].tobytes()
    assert tuple(map(int, facts)) == tuple(map(int, look_over(found[0])))


@pytest.mark.parametrize("n", [1, 2, 16, 17, 300, 5000])
@pytest.mark.parametrize("width", [1, 40, 100_000, LARGEST + 1])
def test_entries_in_any_order(n, width, stretches):
    rng = np.random.default_rng([n, width])
    for count, dtype in ((0, np.float64), (1, np.float32), (700, np.float64), (700, np.float32)):
        lines = rng.integers(0, n, count).astype(rng.choice([np.uint32, np.uint64]))
        columns = rng.integers(0, width, count).astype(rng.choice([np.uint32, np.uint64]))
        values = np.round(rng.standard_normal(count)).astype(dtype)
        starts = regrouping.starts_of(lines, n)
        assert_by_row(regrouping.by_row(starts, lines, columns, values), lines.astype(int), columns, values)


@pytest.mark.parametrize("n", [1, 16, 300, 5000])
@pytest.mark.parametrize("width", [1, 40, 3000])
def test_columns_with_rows_in_disorder_and_repeated(n, width, stretches):
    rng = np.random.default_rng([n, width])
    for count in (0, 1, 700):
        columns = np.sort(rng.integers(0, width, count))
        begins = np.searchsorted(columns, np.arange(width + 1)).astype(np.uint64)
        lines = rng.integers(0, n, count).astype(np.uint32)
        values = rng.standard_normal(count)
        starts = regrouping.starts_of(lines, n)
        assert_by_row(regrouping.columns_by_row(starts, begins, lines, values), lines.astype(int), columns, values)


def test_a_row_that_does_not_exist_is_found():
    lines = np.array([3, 0, 4, 9], np.uint32)
    assert regrouping.starts_of(lines, 4) == 2
    assert regrouping.starts_of(lines, 10).tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 4]
    assert regrouping.starts_of(np.array([2**64 - 1], np.uint64), 10) == 0
