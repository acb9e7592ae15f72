"""Rows whose columns do not ascend, repeat, or have stored zeros, made tidy in one compiled pass and one copy.

Rows in ascending and in descending order are copied as they are, and rows that are nearly in order are sorted by insertion. All
others are sorted side by side, as many at once as a line of memory has room for. Each entry becomes a key: its column and its
place in the row. A network of comparisons, the same for every row of a length, sorts the keys of all of them. A long row is
sorted by itself, digit by digit. This is done a block of rows at a time, so small that it stays in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinear.compiled import LINE, exchange, function, kernel
from onlinear.rows.records import Rows, Source, row_of

BLOCK_ENTRIES = 1 << 13  # entries that are made tidy together; a longer row alone
LONG = 1 << 10  # entries from which on a row is sorted by digits
DIGIT = 11  # bits of a column that one step sorts by, at most
NEARLY = 2  # moves per entry after which a row is no longer nearly in order
SAFE = 1e100  # values below it need no exact largest one
PLAIN, DESCENDING, MIXED = 0, 1, 2  # how the columns of a row are ordered; plain ones ascend without repeats
WHOLE = 3  # a row that was mixed and is sorted, and has neither repeats nor zeros


class Owned(NamedTuple):
    """Which arrays of rows may be written: the memory of these is used again."""

    indices: bool = False
    values: bool = False


ALL_OWNED = Owned(indices=True, values=True)


def tidy(rows: Rows, width: int, facts: tuple[int, float, bool], name: str, owned: Owned) -> Source:
    """The rows with columns ascending, repeated ones summed in float64 in the order they are stored, zeros left out.

    ``facts``: the largest column, the largest absolute value, and whether columns ascend without repeats. Raises ValueError
    where repeated entries sum to infinity.
    """
    highest, largest, ordered = facts
    (starts, indices, sums), size, summed = sorted_rows(rows, highest, owned, ordered=ordered)
    if summed == np.inf:
        at = int(np.argmax(np.isinf(sums)))
        raise ValueError(f"{name}: repeated entries sum to infinity at row {row_of(at, starts)}, column {int(indices[at])}.")
    largest = max(largest, summed) if largest <= SAFE else float(np.abs(sums).max(initial=0.0))
    return Source(rows.count, width, size, largest, Rows(starts, indices, sums))


def sorted_rows(rows: Rows, highest: int, owned: Owned, *, ordered: bool = False) -> tuple[Rows, int, float]:
    """The tidy rows, 1 + their largest column, and the largest sum of repeated entries. ``highest``: the largest column or
    above it; ``ordered``: whether columns ascend without repeats."""
    nnz = len(rows.values)
    starts = np.zeros(rows.count + 1, np.uint64)
    indices = rows.indices if owned.indices and rows.indices.dtype == np.uint32 else np.empty(nnz, np.uint32)
    sums = rows.values if owned.values and rows.values.dtype == np.float64 else np.empty(nnz)
    if ordered:
        size, summed = _without_zeros(*rows, starts, indices, sums), 0.0
    else:
        longest = int(np.diff(rows.indptr.view(np.int64)).max(initial=0))
        most, keys = min(nnz, max(BLOCK_ENTRIES, longest)), _keys(longest, highest)
        size, summed = _tidy(*rows, any(owned), most, *keys, starts, indices, sums)
    end = int(starts[-1])
    return Rows(starts, indices[:end], sums[:end]), int(size), float(summed)


def _keys(longest: int, highest: int) -> tuple[np.ndarray, int]:
    """Room for the keys of rows side by side, and the bits of a key that are its place in the row."""
    longest = min(longest, LONG)
    bits = max(longest - 1, 0).bit_length()
    number = np.dtype(np.uint32 if highest.bit_length() + bits <= 32 else np.uint64)
    return np.empty((longest, LINE // number.itemsize), number), bits


# Places are unsigned numbers below, so that no access asks whether one is negative; and rows are places in the arrays of all,
# as a view of a part of an array is counted in and out with atomic instructions.
ZERO, ONE, LOW, HALF = np.uint64(0), np.uint64(1), np.uint64(2**32 - 1), np.uint64(32)


@function
def _order(columns, begin, stop):  # type: ignore[no-untyped-def]
    """How the columns of a row are ordered, and how often one is not above the one before."""
    falls, rises = np.uint32(0), np.uint32(0)
    for k in range(begin + ONE, stop):
        falls += np.uint32(columns[k] <= columns[k - ONE])
        rises += np.uint32(columns[k] >= columns[k - ONE])
    return (PLAIN if falls == 0 else DESCENDING if rises == 0 else MIXED), falls


@function
def _inserted(columns, values, begin, stop, found, sums, first):  # type: ignore[no-untyped-def]
    """Sort a row by insertion, stably, to ``found`` and ``sums`` from ``first`` on; False if it is too far from order."""
    moves = np.int64(NEARLY * (stop - begin))
    for k in range(begin, stop):
        j, at = columns[k], first + (k - begin)
        while at > first and found[at - ONE] > j:
            found[at], sums[at] = found[at - ONE], sums[at - ONE]
            at -= ONE
            moves -= 1
        if moves < 0:
            return False
        found[at], sums[at] = j, values[k]
    return True


@function
def _sorted_by_digits(packed, other, count, highest, counts):  # type: ignore[no-untyped-def]
    """Sort numbers by what stands above their lower half, stably, between two arrays; whether they end in the second."""
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
def _sorted_alone(columns, values, begin, stop, found, sums, first, packed, other, counts):  # type: ignore[no-untyped-def]
    """Sort one row by digits, to ``found`` and ``sums`` from ``first`` on."""
    count, highest = stop - begin, ZERO
    for k in range(count):
        packed[k] = (np.uint64(columns[begin + k]) << HALF) | k
        highest |= np.uint64(columns[begin + k])
    ordered = other if _sorted_by_digits(packed, other, count, highest, counts) else packed
    for k in range(count):
        found[first + k], sums[first + k] = ordered[k] >> HALF, values[begin + (ordered[k] & LOW)]


@function
def _sorted_side_by_side(keys, count):  # type: ignore[no-untyped-def]
    """Sort the first ``count`` keys of each lane by merge exchange (Batcher; Knuth, 5.2.2, algorithm M)."""
    top = 1
    while top < count:
        top *= 2
    p = top >> 1
    while p > 0:
        q, r, d = top >> 1, 0, p
        while d > 0:
            for k in range(count - d):
                if k & p == r:
                    exchange(keys, k, k + d)
            d, q, r = q - p, q >> 1, p
        p >>= 1


@function
def _sorted_rows(which, count, begins, base, columns, values, keys, bits, found, sums, orders, i):  # type: ignore[no-untyped-def]
    """Sort rows of the block from row ``i`` and entry ``base`` on, each given as length 2^32 + number; lengths ascend. Note in
    ``orders`` those that are whole."""
    lanes, shift, mask = np.uint64(keys.shape[1]), keys.dtype.type(bits), np.uint64((1 << bits) - 1)
    for group in range(ZERO, count, lanes):
        many = min(lanes, count - group)
        longest = which[group + many - ONE] >> HALF
        for lane in range(many):
            length, begin = which[group + lane] >> HALF, begins[which[group + lane] & LOW]
            for k in range(length):
                keys[k, lane] = (keys.dtype.type(columns[begin + k]) << shift) | keys.dtype.type(k)
            for k in range(length, longest):
                keys[k, lane] = ~keys.dtype.type(0)
        _sorted_side_by_side(keys, np.int64(longest))
        for lane in range(many):
            length, begin = which[group + lane] >> HALF, begins[which[group + lane] & LOW]
            to, last, faults = begin - base, ~keys.dtype.type(0) >> shift, np.uint32(0)
            for k in range(length):
                key = keys[k, lane]
                column, value = key >> shift, values[begin + (np.uint64(key) & mask)]
                found[to + k], sums[to + k] = column, value
                faults += np.uint32(column == last) + np.uint32(value == 0.0)
                last = column
            if faults == 0:
                orders[(which[group + lane] & LOW) - i] = WHOLE


@function
def _copied(columns, values, begin, stop, indices, totals, end, backwards):  # type: ignore[no-untyped-def]
    """Add a row without repeats to the tidy ones, from its end where ``backwards``; give their new end."""
    count, zeros = stop - begin, np.uint32(0)
    for k in range(count):
        zeros += np.uint32(values[begin + k] == 0.0)
    if zeros:
        for k in range(count):
            at = stop - ONE - k if backwards else begin + k
            indices[end], totals[end] = columns[at], values[at]
            end += np.uint64(values[at] != 0.0)
    elif backwards:
        _reversed(columns, begin, stop, indices, end)
        _reversed(values, begin, stop, totals, end)
        end += count
    else:
        end = _added(columns, values, begin, stop, indices, totals, end)
    return end


@function
def _added(columns, values, begin, stop, indices, totals, end):  # type: ignore[no-untyped-def]
    """Add a row to the tidy ones as it is; give their new end."""
    for k in range(stop - begin):
        indices[end + k] = columns[begin + k]
    for k in range(stop - begin):
        totals[end + k] = values[begin + k]
    return end + (stop - begin)


@function
def _reversed(array, begin, stop, out, first):  # type: ignore[no-untyped-def]
    """Write a part of an array from its end on; the place is counted down, which the compiler makes packed code of."""
    at = first + (stop - begin)
    for k in range(begin, stop):
        at -= ONE
        out[at] = array[k]


@function
def _joined(found, sums, first, last, indices, totals, end):  # type: ignore[no-untyped-def]
    """Add a sorted row to the tidy ones, repeats of a column as one; give their new end and the largest sum of repeats."""
    if _order(found, first, last)[0] == PLAIN:
        return _copied(found, sums, first, last, indices, totals, end, False), 0.0
    largest, begin = 0.0, end
    for k in range(first, last):
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
def _without_zeros(begins, columns, values, starts, indices, totals):  # type: ignore[no-untyped-def]
    """Fill the tidy rows from rows in order; give 1 + their largest column."""
    size, end = np.uint32(0), ZERO
    for r in range(np.uint64(begins.shape[0] - 1)):
        end = _copied(columns, values, begins[r], begins[r + ONE], indices, totals, end, False)
        starts[r + ONE] = end
        if end > starts[r]:
            size = max(size, np.uint32(indices[end - ONE] + 1))
    return size


@kernel
def _tidy(begins, columns, values, owned, most, keys, bits, starts, indices, totals):  # type: ignore[no-untyped-def]
    """Fill the tidy rows; give 1 + their largest column, and the largest sum of repeated entries.

    ``owned``: the arrays may be the same ones. What is written is never behind what is read, but of a row read backwards.
    """
    n, most = np.uint64(begins.shape[0] - 1), np.uint64(most)
    packed, other, short = np.empty(most, np.uint64), np.empty(most + ONE, np.uint64), np.empty(most + ONE, np.uint64)
    found, sums = np.empty(most, np.uint32), np.empty(most)
    orders, counts = np.empty(most + ONE, np.int8), np.empty(1 << DIGIT, np.uint64)
    size, largest, end, i = np.uint32(0), 0.0, ZERO, ZERO
    while i < n:
        base, last, count, longest = begins[i], i, ZERO, ZERO
        while last < n and last - i <= most and (last == i or begins[last + ONE] - base <= most):
            begin, stop = begins[last], begins[last + ONE]
            order, falls = _order(columns, begin, stop)
            order = MIXED if owned and order == DESCENDING else order
            orders[last - i], to, nearly = order, begin - base, falls * 8 <= stop - begin
            if order == MIXED and not (nearly and _inserted(columns, values, begin, stop, found, sums, to)):
                if stop - begin > LONG:
                    _sorted_alone(columns, values, begin, stop, found, sums, to, packed, other, counts)
                else:
                    short[count] = ((stop - begin) << HALF) | last
                    longest |= stop - begin
                    count += ONE
            last += ONE
        if count > ZERO:
            which = other if _sorted_by_digits(short, other, count, longest, counts) else short
            _sorted_rows(which, count, begins, base, columns, values, keys, bits, found, sums, orders, i)
        for r in range(i, last):
            begin, stop, order = begins[r], begins[r + ONE], orders[r - i]
            if order == WHOLE:
                end = _added(found, sums, begin - base, stop - base, indices, totals, end)
            elif order != MIXED:
                end = _copied(columns, values, begin, stop, indices, totals, end, order == DESCENDING)
            else:
                end, summed = _joined(found, sums, begin - base, stop - base, indices, totals, end)
                largest = max(largest, summed)
            starts[r + ONE] = end
            if end > starts[r]:
                size = max(size, np.uint32(indices[end - ONE] + 1))
        i = last
    return size, largest
