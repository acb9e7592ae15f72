"""Rows made tidy have the bits of the plain recipe: sort by row and column, add up repeats in order, leave zeros out."""

import numpy as np
import pytest

from onlinear.rows import tidying
from onlinear.rows.records import Rows
from onlinear.rows.tidying import ALL_OWNED, Owned

LARGEST = 2**31 - 2
TYPES = [(np.uint32, np.float64), (np.uint64, np.float32)]  # of columns and values: for each pair a kernel is compiled


def recipe(rows):
    """Starts, columns and sums by NumPy's sorts, which are stable."""
    row = np.repeat(np.arange(rows.count), np.diff(rows.indptr).astype(np.int64))
    order = np.lexsort((rows.indices, row))
    row, columns, values = row[order], rows.indices[order], rows.values[order].astype(np.float64)
    first = np.ones(len(row), bool)
    first[1:] = (row[1:] != row[:-1]) | (columns[1:] != columns[:-1])
    sums = np.bincount(np.cumsum(first) - 1, values, minlength=0)
    keep = sums != 0.0
    starts = np.concatenate([[0], np.cumsum(np.bincount(row[first][keep], minlength=rows.count))])
    return starts.astype(np.uint64), columns[first][keep].astype(np.uint32), sums[keep]


def rows_of(rng, columns, kinds):
    """Up to eleven rows: ascending with repeats, descending, two entries exchanged, or in no order."""
    lengths = rng.integers(0, rng.choice([2, 5, 40]), rng.integers(0, 12))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    of_columns, of_values = TYPES[rng.integers(len(TYPES))]
    found = rng.integers(0, columns, int(starts[-1]), endpoint=True).astype(of_columns)
    for begin, end in zip(starts[:-1].astype(int), starts[1:].astype(int), strict=True):
        kind = rng.choice(kinds)
        if kind != "mixed":
            found[begin:end].sort()
        if kind == "descending":
            found[begin:end] = found[begin:end][::-1].copy()
        if kind == "exchanged" and end - begin > 3:
            found[[begin, begin + 1]] = found[[begin + 1, begin]]
    values = rng.integers(-2, 3, len(found)) * 0.1
    return Rows(starts, found, values.astype(of_values))


def tidied(rows, owned=Owned()):  # noqa: B008
    row = np.repeat(np.arange(rows.count), np.diff(rows.indptr).astype(np.int64))
    ordered = not np.any((row[1:] == row[:-1]) & (rows.indices[1:] <= rows.indices[:-1]))
    facts = int(rows.indices.max(initial=0)), float(np.abs(rows.values).max(initial=0.0)), ordered
    return tidying.tidy(rows, LARGEST + 1, facts, "X", owned)


@pytest.mark.parametrize("entries", [1, 3, 16, 64, tidying.BLOCK_ENTRIES])
@pytest.mark.parametrize("columns", [0, 1, 4, 50, 3000, LARGEST])
def test_tidy_rows_are_those_of_the_recipe(entries, columns, monkeypatch):
    monkeypatch.setattr(tidying, "BLOCK_ENTRIES", entries)
    rng = np.random.default_rng([entries, columns])
    for kinds in (["ascending"], ["descending"], ["exchanged"], ["mixed"], ["ascending", "descending", "exchanged", "mixed"]):
        for _ in range(8):
            rows = rows_of(rng, columns, kinds)
            found = tidied(rows)
            for ours, wanted in zip(found.data, recipe(rows), strict=True):
                assert ours.tobytes() == wanted.tobytes()
            assert found.size == (int(found.data.indices.max()) + 1 if found.nnz else 0)


def of_lengths(lengths, columns, seed=0):
    """Rows in no order, some columns repeated."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    found = rng.integers(0, columns, int(starts[-1]), endpoint=True).astype(np.uint32)
    return Rows(starts, found, np.round(rng.standard_normal(len(found)), 1))


@pytest.mark.parametrize("columns", [60, 20_000, LARGEST])  # keys of 32 and of 64 bits
def test_rows_of_any_length_beside_each_other(columns):
    short = np.random.default_rng(1).permutation(np.repeat(np.arange(140), 2))
    for lengths in (short, [tidying.LONG + 1], [3, tidying.LONG, 0, 5000, 2, tidying.LONG + 1, tidying.LONG - 1]):
        rows = of_lengths(lengths, columns)
        for ours, wanted in zip(tidied(rows).data, recipe(rows), strict=True):
            assert ours.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("owned", [Owned(values=True), Owned(indices=True), ALL_OWNED], ids=str)
@pytest.mark.parametrize("entries", [1, 16, tidying.BLOCK_ENTRIES])
def test_rows_are_made_tidy_in_their_own_memory(entries, owned, monkeypatch):
    monkeypatch.setattr(tidying, "BLOCK_ENTRIES", entries)
    for seed in range(30):
        rows = rows_of(np.random.default_rng(seed), 9, ["ascending", "descending", "exchanged", "mixed"])
        if rows.indices.dtype == np.uint32 and rows.values.dtype == np.float64:
            wanted, stored = recipe(rows), (rows.indices.copy(), rows.values.copy())
            found = tidied(rows, owned).data
            for ours, other in zip(found, wanted, strict=True):
                assert ours.tobytes() == other.tobytes()
            for mine, array, given, before in zip(owned, found[1:], rows[1:], stored, strict=True):
                assert not len(array) or np.shares_memory(array, given) == mine
                assert mine or given.tobytes() == before.tobytes()


def test_the_largest_value_counts_sums_and_no_entry_that_is_gone():
    def largest(values):
        rows = Rows(np.array([0, 3], np.uint64), np.array([2, 1, 2], np.uint32), np.array(values))
        return tidied(rows).largest

    assert largest([3.0, 1.0, 4.0]) == 7.0
    assert largest([1e120, 1.0, -1e120]) == 1.0


def test_repeats_that_sum_to_infinity_are_named():
    rows = Rows(np.array([0, 1, 4], np.uint64), np.array([0, 5, 2, 5], np.uint32), np.array([1.0, 1e308, 1.0, 1e308]))
    with pytest.raises(ValueError, match=r"X: repeated entries sum to infinity at row 1, column 5\."):
        tidied(rows)
