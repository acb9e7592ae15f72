"""Entries that stand column by column, or in any order, brought together by row, each row's in the order they are stored.

A cache does not hold a line of every row. So entries are dealt out twice: first to stretches of consecutive rows, in the memory
where these rows will be, then, a stretch at a time, from a copy in the cache to the rows. Between, the row within its stretch
stands in the lower bits of the column. No other memory is used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows.arrays import as_bits, mask
from onlinear.rows.records import Rows
from onlinear.rows.scanning import Found, look_over, scanned

STRETCHES = 8  # bits of their largest number
LEAST_ROWS = 4  # bits of the rows of a stretch, below which entries are dealt out once


def starts_of(lines: np.ndarray, n: int) -> np.ndarray | int:
    """Where each of ``n`` rows begins, whose entries are in rows ``lines``; or the first entry whose row does not exist."""
    starts = np.zeros(n + 1, np.uint64)
    wrong = _count(lines, starts)
    return int(wrong) if wrong >= 0 else np.cumsum(starts, out=starts)


def ascends(lines: np.ndarray) -> bool:
    """Whether no number is below the one before."""
    return not _falls(lines)


def by_row(starts: np.ndarray, lines: np.ndarray, columns: np.ndarray, values: np.ndarray) -> tuple[Rows, Found]:
    """Rows of entries in any order, and what was found in them."""
    highest = int(columns.max(initial=0))
    return _regrouped(starts, highest, values, lambda *where: _deal_entries(lines, columns, values, *where))


def columns_by_row(starts: np.ndarray, begins: np.ndarray, lines: np.ndarray, values: np.ndarray) -> tuple[Rows, Found]:
    """Rows of entries that stand column by column, and what was found in them; column j has begins[j] .. begins[j+1]."""
    highest = max(0, int(np.searchsorted(begins, begins[-1])) - 1)
    return _regrouped(starts, highest, values, lambda *where: _deal_columns(begins[: highest + 2], lines, values, *where))


def _regrouped(starts: np.ndarray, highest: int, values: np.ndarray, deal: Callable[..., None]) -> tuple[Rows, Found]:
    bits = min(max(0, len(starts).bit_length() - STRETCHES), 32 - highest.bit_length())
    bits = bits if bits >= LEAST_ROWS else 0
    rows = Rows(starts, np.empty(len(values), np.uint32), np.empty_like(values))
    first = starts[: -1 : 1 << bits]
    deal(first.copy(), np.uint64(bits), rows.indices, rows.values)
    if not bits:
        return rows, look_over(rows)
    numbers, most = as_bits(rows.values), int(np.diff(first, append=starts[-1:]).max())
    room = np.empty(most, np.uint32), np.empty(most, numbers.dtype), np.empty(1 << bits, np.uint64)
    return rows, _settle(starts, rows.indices, numbers, mask(values.dtype), bits, *room)


@kernel
def _count(lines, starts):  # type: ignore[no-untyped-def]
    """Count the entries of each row, one place behind the row's own; give the first entry whose row does not exist, or -1."""
    n = np.uint64(starts.shape[0] - 1)
    for k in range(lines.shape[0]):
        row = np.uint64(lines[k])
        if row >= n:
            return k
        starts[row + np.uint64(1)] += np.uint64(1)
    return -1


@kernel
def _falls(lines):  # type: ignore[no-untyped-def]
    falls = 0
    for k in range(1, lines.shape[0]):
        falls += lines[k] < lines[k - 1]
    return falls


@function
def _dealt(row, column, value, ends, bits, indices, values):  # type: ignore[no-untyped-def]
    """Add an entry to the stretch that its row is in."""
    stretch = row >> bits
    to = ends[stretch]
    indices[to], values[to] = (column << bits) | (row & ((np.uint64(1) << bits) - np.uint64(1))), value
    ends[stretch] = to + np.uint64(1)


@kernel
def _deal_columns(begins, lines, found, ends, bits, indices, values):  # type: ignore[no-untyped-def]
    for j in range(begins.shape[0] - 1):
        for k in range(begins[j], begins[j + 1]):
            _dealt(np.uint64(lines[k]), np.uint64(j), found[k], ends, bits, indices, values)


@kernel
def _deal_entries(lines, columns, found, ends, bits, indices, values):  # type: ignore[no-untyped-def]
    for k in range(lines.shape[0]):
        _dealt(np.uint64(lines[k]), np.uint64(columns[k]), found[k], ends, bits, indices, values)


@kernel
def _settle(starts, indices, numbers, mask, bits, packed, found, ends):  # type: ignore[no-untyped-def]
    """Deal the entries of each stretch out to its rows; give what ``scanned`` does."""
    n, many, one = starts.shape[0] - 1, 1 << bits, np.uint64(1)
    row_mask, shift = np.uint64(many - 1), np.uint64(bits)
    high, largest, smallest, descents = indices.dtype.type(0), numbers.dtype.type(0), mask, np.int64(0)
    for first in range(0, n, many):
        last = min(n, first + many)
        begin, end = starts[first], starts[last]
        for r in range(last - first):
            ends[r] = starts[first + r]
        for k in range(end - begin):
            packed[k] = indices[begin + k]
        for k in range(end - begin):
            found[k] = numbers[begin + k]
        for k in range(end - begin):
            row = packed[k] & row_mask
            to = ends[row]
            indices[to], numbers[to] = packed[k] >> shift, found[k]
            ends[row] = to + one
        its = scanned(starts[first : last + 1], indices, numbers, mask)
        high, largest, smallest = max(high, its[0]), max(largest, its[1]), min(smallest, its[2])
        descents += its[3]
    return high, largest, smallest, descents
