"""What one pass over all entries of rows finds, before anything is known of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import lean_kernel
from onlinear.rows.arrays import as_bits, from_bits, mask
from onlinear.rows.records import Rows

_ONE = np.uint64(1)
Found = tuple[Any, Any, Any, int]  # what ``scanned`` gives


class Scan(NamedTuple):
    """The facts that one pass over all entries finds."""

    size: int  # 1 + the largest column
    largest: float  # the largest absolute value; not finite if any value is not
    zeros: bool  # whether an entry is 0
    ordered: bool  # whether columns ascend inside every row


def scan(rows: Rows) -> Scan:
    """Look at all entries of rows that may come from anywhere, with ``indptr`` already checked."""
    high, largest, smallest, descents = look_over(rows)
    nnz = len(rows.values)
    return Scan(int(high) + 1 if nnz else 0, from_bits(largest, rows.values.dtype), nnz > 0 and smallest == 0, not descents)


def look_over(rows: Rows) -> Found:
    """What ``scanned`` finds in rows."""
    return scanned(rows.indptr, rows.indices, as_bits(rows.values), mask(rows.values.dtype))


@lean_kernel
def scanned(starts, columns, bits, mask):  # type: ignore[no-untyped-def]
    """Largest column, largest and smallest absolute value (as bits), and how often columns do not ascend inside a row.

    Sixty-four rows at a time, so that memory is read once; the loops over entries are free of branches and vectorise, the first
    in numbers of 32 bits, of which a register holds eight. Without slices, which take longer to compile, and without max and
    min, which Numba makes functions of for numbers of 32 bits.
    """
    high, largest, smallest, descents = columns.dtype.type(0), bits.dtype.type(0), mask, np.int64(0)
    n = starts.shape[0] - 1
    for i in range(0, n, 64):
        last = i + 64 if i + 64 < n else n
        begin, end = starts[i], starts[last]
        if begin == end:
            continue
        falls = np.uint32(0)
        high = high if high > columns[begin] else columns[begin]
        for k in range(begin + _ONE, end):
            high = high if high > columns[k] else columns[k]
            falls = np.uint32(falls + np.uint32(columns[k] <= columns[np.uint64(k) - _ONE]))
        descents += np.int64(falls)
        for r in range(i + 1, last):
            k = starts[r]
            if begin < k and k < end and k != starts[r - 1]:
                descents -= np.int64(columns[k] <= columns[k - _ONE])
        for k in range(begin, end):
            size = bits[k] & mask
            largest = largest if largest > size else size
            smallest = smallest if smallest < size else size
    return high, largest, smallest, descents
