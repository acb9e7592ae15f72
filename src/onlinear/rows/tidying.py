"""Rows whose columns do not ascend, repeat, or have stored zeros, made tidy in one compiled pass and one copy.

Rows in ascending and in descending order are copied as they are, and rows that are nearly in order are sorted by insertion. The
entries of all others in a block of rows are sorted together by column, stably, digit by digit with the least significant first;
dealing them out to their rows then leaves every row sorted. A block is so small that it stays in the cache.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows.records import Rows, Source

BLOCK_ENTRIES = 1 << 13  # entries that are sorted together; a longer row is sorted alone
DIGIT = 11  # bits of a column that one step sorts by, at most
NEARLY = 2  # moves per entry after which a row is no longer nearly in order
SAFE = 1e100  # values below it need no exact largest one
PLAIN, DESCENDING, MIXED = 0, 1, 2  # how the columns of a row are ordered; plain ones ascend without repeats


def tidy(rows: Rows, width: int, largest: float, name: str) -> Source:
    """The rows with columns ascending, repeated ones summed in float64 in the order they are stored, zeros left out.

    ``largest``: the largest absolute value. Raises ValueError where repeated entries sum to infinity.
    """
    nnz = len(rows.values)
    most = min(nnz, max(BLOCK_ENTRIES, int(np.diff(rows.indptr.view(np.int64)).max(initial=0))))
    starts, indices, sums = np.zeros(rows.count + 1, np.uint64), np.empty(nnz, np.uint32), np.empty(nnz)
    size, summed = _tidy(rows.indptr.view(np.int64), rows.indices, rows.values, most, starts, indices, sums)
    indices, sums = indices[: int(starts[-1])], sums[: int(starts[-1])]
    if summed == np.inf:
        at = int(np.argmax(np.isinf(sums)))
        row = int(np.searchsorted(starts, np.uint64(at), side="right")) - 1
        raise ValueError(f"{name}: repeated entries sum to infinity at row {row}, column {int(indices[at])}.")
    largest = max(largest, summed) if largest <= SAFE else float(np.abs(sums).max(initial=0.0))
    return Source(rows.count, width, int(size), largest, Rows(starts, indices, sums))


# Places are unsigned numbers below, so that no access asks whether one is negative.
ZERO, ONE, LOW, HALF = np.uint64(0), np.uint64(1), np.uint64(2**32 - 1), np.uint64(32)


@function
def _order(row):  # type: ignore[no-untyped-def]
    """How the columns of a row are ordered, and how often one is not above the one before."""
    falls, rises = np.uint32(0), np.uint32(0)
    for k in range(1, row.shape[0]):
        falls += np.uint32(row[k] <= row[k - 1])
        rises += np.uint32(row[k] >= row[k - 1])
    return (PLAIN if falls == 0 else DESCENDING if rises == 0 else MIXED), falls


@function
def _inserted(row, values, found, sums):  # type: ignore[no-untyped-def]
    """Sort a row by insertion, stably, to the front of ``found`` and ``sums``; False if it is too far from being in order."""
    moves = NEARLY * row.shape[0]
    for k in range(row.shape[0]):
        j, at = row[k], np.uint64(k)
        while at > ZERO and found[at - ONE] > j:
            found[at], sums[at] = found[at - ONE], sums[at - ONE]
            at -= ONE
            moves -= 1
        if moves < 0:
            return False
        found[at], sums[at] = j, values[k]
    return True


@function
def _sorted_by_column(packed, other, count, highest, counts):  # type: ignore[no-untyped-def]
    """Sort entries packed as column 2^32 + place by column, stably, between two arrays; whether they end in the second."""
    bits = 0
    while highest >> bits:
        bits += 1
    steps = (bits + DIGIT - 1) // DIGIT
    width = (bits + steps - 1) // steps if steps else 0
    mask = np.uint64((1 << width) - 1)
    for step in range(steps):
        shift, before = np.uint64(32 + step * width), np.uint64(0)
        counts[:] = ZERO
        for k in range(count):
            counts[(packed[k] >> shift) & mask] += ONE
        for digit in range(mask + ONE):
            number = counts[digit]
            counts[digit] = before
            before += number
        for k in range(count):
            entry = packed[k]
            digit = (entry >> shift) & mask
            at = counts[digit]
            other[at] = entry
            counts[digit] = at + ONE
        packed, other = other, packed
    return steps & 1 == 1


@function
def _copied(row, values, indices, totals, end, backwards):  # type: ignore[no-untyped-def]
    """Add a row without repeats to the tidy ones, from its end where ``backwards``; give their new end."""
    count = np.uint64(row.shape[0])
    for k in range(count):
        at = count - ONE - k if backwards else k
        indices[end], totals[end] = row[at], values[at]
        end += np.uint64(values[at] != 0.0)
    return end


@function
def _joined(found, sums, indices, totals, end):  # type: ignore[no-untyped-def]
    """Add a sorted row to the tidy ones, repeats of a column as one; give their new end and the largest sum of repeats."""
    largest, begin = 0.0, end
    for k in range(found.shape[0]):
        j, x = found[k], sums[k]
        if end > begin and indices[end - ONE] == j:
            totals[end - ONE] += x
            largest = max(largest, abs(totals[end - ONE]))
        else:
            end -= np.uint64(end > begin and totals[end - ONE] == 0.0)
            indices[end], totals[end] = j, x
            end += ONE
    return end - np.uint64(end > begin and totals[end - ONE] == 0.0), largest


@kernel
def _tidy(begins, columns, values, most, starts, indices, totals):  # type: ignore[no-untyped-def]
    """Fill the tidy rows; give 1 + their largest column, and the largest sum of repeated entries."""
    n = begins.shape[0] - 1
    packed, other = np.empty(most, np.uint64), np.empty(most, np.uint64)
    owner, place = np.empty(most, np.uint32), np.empty(most + 1, np.uint64)
    found, sums = np.empty(most, np.uint32), np.empty(most)
    orders, counts = np.empty(most + 1, np.int8), np.empty(1 << DIGIT, np.uint64)
    size, largest, end, i = np.uint32(0), 0.0, ZERO, 0
    while i < n:
        base, last, count, highest = begins[i], i, ZERO, np.uint64(0)
        while last < n and last - i <= most and (last == i or begins[last + 1] - base <= most):
            begin, stop, r = begins[last], begins[last + 1], last - i
            row, first = columns[begin:stop], begin - base
            order, falls = _order(row)
            orders[r] = order
            nearly = order == MIXED and falls * 8 <= row.shape[0]
            nearly = nearly and _inserted(row, values[begin:stop], found[first:], sums[first:])
            if order == MIXED and not nearly:
                place[r] = first
                for k in range(row.shape[0]):
                    at = np.uint64(first + k)
                    owner[at] = r
                    packed[count] = (np.uint64(row[k]) << HALF) | at
                    highest |= np.uint64(row[k])
                    count += ONE
            last += 1
        if count > ZERO:
            ordered = other if _sorted_by_column(packed, other, count, highest, counts) else packed
            block = values[base : begins[last]]
            for k in range(count):
                at = ordered[k] & LOW
                r = owner[at]
                to = place[r]
                found[to], sums[to] = ordered[k] >> HALF, block[at]
                place[r] = to + ONE
        for r in range(i, last):
            begin, stop, order = begins[r], begins[r + 1], orders[r - i]
            if order == MIXED:
                first = begin - base
                count_here = stop - begin
                end, summed = _joined(found[first : first + count_here], sums[first : first + count_here], indices, totals, end)
                largest = max(largest, summed)
            else:
                end = _copied(columns[begin:stop], values[begin:stop], indices, totals, end, order == DESCENDING)
            starts[r + 1] = end
            if end > starts[r]:
                size = max(size, np.uint32(indices[end - ONE] + 1))
        i = last
    return size, largest
