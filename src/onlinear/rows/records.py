"""Rows as kernels see them, made from the containers of users: CSR, CSC and other sparse containers, dense arrays, frames.

Every layout becomes the same stream of non-zero entries in increasing column order, so a kernel exists once and the layouts
give the same bits: an entry equal to 0 is no entry, repeated indices are summed in float64. Dense arrays are turned into
blocks of rows of bounded size; those of arrays with many zeros are kept while the values are checked, so that the array is read
once. CSR arrays that are already in order, with 32-bit indices, are not copied.
All checks of values and indices run before the first block is handed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import LINE, ask, function, kernel, lanes, lean_kernel, no_lanes, put_lanes

BLOCK = 1 << 20  # entries that a reader or a list of rows gives at a time
PERMUTED = 3 << 18  # the same of rows in another order, of which each copy takes a call of the loop over rows
PIECE = 1 << 19  # the same of those in the scales of their columns, each of whose pieces takes several calls
ASKED = np.uint64(1 << 11)  # entries between asking for a row that is to be copied and its copy
IN_LINE = np.uint64(LINE // 8)  # values of eight bytes in a line of memory
EARLY = 600  # the same of rows that are learned where they stand, between asking and learning
AHEAD = np.uint64(512)  # entries between asking for what is known of a column and its use
NEAR = 1 << 17  # columns of which that is at hand in the processor's caches: asking ahead would only cost
LARGEST_COLUMN = 2**31 - 2
LARGEST_VALUE = 1e150  # of a value: its square, and the sum of many, is finite


class Rows(NamedTuple):
    """Rows of non-zeros: entries indptr[i] .. indptr[i+1] of ``indices`` and ``values`` are row i, columns ascending; of
    rows in running scales those that are centred come first."""

    indptr: np.ndarray  # (n+1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,) float64 or float32

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.indptr) - 1

    @property
    def longest(self) -> int:
        """The most entries of a row, as room is made for them; of one row alone as many as it has room for."""
        return len(self.values) if self.count == 1 else int(np.diff(self.indptr).max(initial=0))

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """All rows, as one block."""
        yield slice(0, self.count), self

    def parts(self, most: int) -> Iterator[slice]:
        """The rows in parts of ``most`` entries, or of one row that has more."""
        last = 0
        while last < self.count:
            first = last
            end = np.searchsorted(self.indptr, self.indptr[first] + np.uint64(most), side="right") - 1
            last = min(self.count, max(first + 1, int(end)))
            yield slice(first, last)

    def shares(self, most: int) -> Iterator[slice]:
        """The rows in shares of about ``most`` entries each, half as many more at most but for one row more: none is small."""
        count = max(1, (2 * self.nnz + most) // (2 * most))
        wanted = np.arange(1, count, dtype=np.uint64) * np.uint64(self.nnz) // np.uint64(count)
        ends = np.unique([0, *np.searchsorted(self.indptr, self.indptr[0] + wanted).tolist(), self.count]).tolist()
        yield from map(slice, ends[:-1], ends[1:])

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns and values of the only row."""
        return self.indices, self.values

    def cut(self, which: slice) -> Rows:
        """Some consecutive rows, without a copy of the entries."""
        starts = self.indptr[which.start : which.stop + 1]
        inside = slice(int(starts[0]), int(starts[-1]))
        return Rows(starts - starts[0], self.indices[inside], self.values[inside])

    def take(self, order: np.ndarray) -> InOrder:
        """The rows in another order."""
        begins = self.indptr[:-1].take(order)
        return InOrder(self, begins, self.indptr[1:].take(order))

    @property
    def begun(self) -> Rows:
        """The rows, for a loop that is told where each ends."""
        return self

    @property
    def ends(self) -> np.ndarray:
        """Where each row ends."""
        return self.indptr[1:]

    def held(self) -> Rows:
        """The same rows, which stand as they are read."""
        return self

    def stored(self) -> Rows:
        """The same rows."""
        return self

    @property
    def nnz(self) -> int:
        return len(self.values)


class InOrder(NamedTuple):
    """Rows in an order of their own: for a loop that takes them where they stand, or copied a block at a time to where the
    processor has them at hand."""

    data: Rows
    begins: np.ndarray  # (n,) uint64, where each row begins in ``data``
    ends: np.ndarray  # (n,) uint64, and where it ends

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.begins)

    @property
    def longest(self) -> int:
        """The most entries of a row."""
        return int((self.ends - self.begins).max(initial=0))

    @property
    def begun(self) -> Rows:
        """The rows where they stand, for a loop that is told where each ends."""
        return self.data._replace(indptr=self.begins)

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as (which rows, those rows), which hold until the next block is asked for."""
        all_starts = self._starts()
        size = min(max(PERMUTED, self.longest), int(all_starts[-1]))
        indices, values = np.empty(size, np.uint32), np.empty(size, self.data.values.dtype)
        for which in Rows(all_starts, indices, values).parts(size):
            starts = all_starts[which.start : which.stop + 1] - all_starts[which.start]
            _copy(self.data, self.begins[which], starts, indices, values)
            yield which, Rows(starts, indices[: int(starts[-1])], values[: int(starts[-1])])

    def _starts(self) -> np.ndarray:
        """Where each row begins, and where the last one ends, of the rows copied one after the other."""
        return np.append(np.uint64(0), np.cumsum(self.ends - self.begins, dtype=np.uint64))

    def cut(self, which: slice) -> InOrder:
        """Some consecutive rows."""
        return InOrder(self.data, self.begins[which], self.ends[which])

    def take(self, order: np.ndarray) -> InOrder:
        """The rows in another order."""
        return InOrder(self.data, self.begins.take(order), self.ends.take(order))

    def held(self) -> Rows:
        """The rows, copied."""
        return self.stored()

    def stored(self) -> Rows:
        """The rows, copied."""
        starts = self._starts()
        indices = np.empty(int(starts[-1]), np.uint32)
        values = np.empty(int(starts[-1]), self.data.values.dtype)
        _copy(self.data, self.begins, starts, indices, values)
        return Rows(starts, indices, values)

    @property
    def nnz(self) -> int:
        return int((self.ends - self.begins).sum())


class Source(NamedTuple):
    """Checked input: ``n`` rows, ``width`` declared columns, ``size`` = 1 + the largest column with a non-zero entry."""

    n: int
    width: int
    size: int
    largest: float  # the largest absolute value
    data: Any  # Rows, rows in an order, or those of a dense array (arrays.py)

    @property
    def nnz(self) -> int:
        """The number of non-zero entries."""
        return self.data.nnz

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as (which rows, those rows), which hold until the next block is asked for."""
        return self.data.blocks()

    def blocks_anywhere(self) -> Iterator[tuple[slice, Rows | InOrder]]:
        """``blocks`` for a loop that takes rows where they stand: those in an order of their own are not copied."""
        if isinstance(self.data, InOrder):
            yield slice(0, self.n), self.data
        else:
            yield from self.blocks()

    def pieces(self) -> Iterator[tuple[slice, Rows]]:
        """``blocks``, cut so that a copy of each stays where the processor has it at hand."""
        for where, rows in self.blocks():
            for which in rows.shares(PIECE):
                whole = which.stop - which.start == rows.count
                yield slice(where.start + which.start, where.start + which.stop), rows if whole else rows.cut(which)

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns and values of the only row."""
        return self.data.single()

    def cut(self, which: slice) -> Source:
        """Some consecutive rows, without a copy."""
        which = slice(*which.indices(self.n))
        return self._replace(n=which.stop - which.start, data=self.data.cut(which))

    def take(self, order: np.ndarray) -> Source:
        """The rows in another order, copied a block at a time when they are asked for."""
        return self._replace(n=len(order), data=self.data.take(order))

    def held(self) -> Source:
        """The same rows, for several passes or another order: what is of another type or layout is converted once."""
        return self._replace(data=self.data.held())

    def stored(self) -> Source:
        """The same rows, as ``Rows``."""
        return self._replace(data=self.data.stored())


def unlearnable(source: Source) -> tuple[int, float] | None:
    """The row and the absolute value of an entry that is too large to be learned; None where no entry is."""
    if not source.largest > LARGEST_VALUE:
        return None
    row, value = largest_value(source)
    return (row, value) if value > LARGEST_VALUE else None


def largest_value(source: Source) -> tuple[int, float]:
    """The row of the largest absolute value, and that value."""
    found = 0, 0.0
    for which, rows in source.blocks():
        sizes = np.abs(rows.values)
        if len(sizes) and (size := float(sizes.max())) > found[1]:
            found = which.start + row_of(int(np.argmax(sizes)), rows.indptr), size
    return found


def row_beyond(source: Source, width: int) -> tuple[int, int]:
    """The first row with an entry in column ``width`` or later, and the largest column of its entries."""
    for which, (starts, columns, _) in source.blocks():
        if (beyond := columns >= width).any():
            row = row_of(int(np.argmax(beyond)), starts)
            return which.start + row, int(columns[int(starts[row]) : int(starts[row + 1])].max())
    raise ValueError(f"no row has an entry in column {width} or later.")


def plain(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """``array`` as kernels are compiled for: contiguous, aligned, and not marked read-only (kernels write to no input).

    Copied only where the first two need it: a read-only memory map is seen through another view of the same memory.
    """
    ready = np.require(array, dtype, ["C", "A"])
    return ready if ready.flags.writeable or not ready.size else np.asarray(_Alias(ready))


class _Alias:
    def __init__(self, array: np.ndarray) -> None:
        self._owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def row_of(entry: int, starts: np.ndarray) -> int:
    """The row that holds an entry."""
    return int(np.searchsorted(starts, np.uint64(entry), side="right")) - 1


@function
def ask_for_column(vectors, j):  # type: ignore[no-untyped-def]
    """Ask for what vectors hold at column j, whatever that is. Each comes with how far the numbers of two columns are apart."""
    if vectors is not None:
        for vector, apart in vectors:
            ask(vector, j * apart)


@function
def fill_row(indices, values, vectors, bound, starts, columns, entries):  # type: ignore[no-untyped-def]
    """Take one row into the arrays of a ``Rows`` if it is a plain one, and give its largest absolute value; else -1.

    Plain: columns ascending and below ``bound``, values that can be learned, no more of them than there is room for. What
    ``vectors`` hold at the columns is asked for meanwhile.
    """
    n = indices.shape[0]
    if values.shape[0] != n or n > columns.shape[0]:
        return -1.0
    end, before, largest = np.uint64(0), -1, np.int64(0)
    for k in range(n):
        j, x = int(indices[k]), float(values[k])
        ask_for_column(vectors, j)
        length = abs(x)
        if j <= before or j >= bound or not length <= LARGEST_VALUE:
            return -1.0
        before = j
        columns[end], entries[end] = j, x
        largest = max(largest, np.float64(length).view(np.int64))  # as whole numbers, which are compared in less time
        if x != 0.0:
            end += np.uint64(1)
    starts[1] = end
    return np.int64(largest).view(np.float64)


def take_rows(rows: Rows, order: np.ndarray) -> Rows:
    """Rows ``order`` of ``rows``, copied."""
    return rows.take(order).stored()


# Rows that are copied from anywhere are asked for some way ahead, into the second cache: the processor foresees only those that
# stand one after the other.


@lean_kernel
def _copy(rows, begins, starts, indices, values):  # type: ignore[no-untyped-def]
    _, columns, entries = rows
    n, asked = begins.shape[0], 0
    for i in range(n):
        begin, to = begins[i], starts[i]
        while asked < n and starts[asked] <= to + ASKED:
            ask_for_row(columns, entries, begins[asked], begins[asked] + (starts[asked + 1] - starts[asked]))
            asked += 1
        for k in range(starts[i + 1] - to):
            indices[to + k] = columns[begin + k]
        for k in range(starts[i + 1] - to):
            values[to + k] = entries[begin + k]


@kernel
def copy_lines(values, order, out):  # type: ignore[no-untyped-def]
    """Copy rows ``order`` of those that stand one after the other in ``values``, all as long."""
    n, asked = order.shape[0], 0
    width = np.uint64(out.shape[0] // max(1, n))
    for i in range(n):
        begin, to = np.uint64(order[i]) * width, np.uint64(i) * width
        while asked < n and np.uint64(asked) * width <= to + ASKED:
            _ask_for(values, np.uint64(order[asked]) * width, np.uint64(order[asked] + 1) * width)
            asked += 1
        for k in range(width):
            out[to + k] = values[begin + k]


@function
def _ask_for(array, begin, end):  # type: ignore[no-untyped-def]
    for k in range(begin, end, np.uint64(LINE // array.itemsize)):
        ask(array, k)
    if begin < end:
        ask(array, end - np.uint64(1))


@function
def ask_for_row(indices, values, begin, end):  # type: ignore[no-untyped-def]
    """Ask for the entries of a row. One loop for both arrays compiles in less time; places behind their ends cost nothing."""
    for k in range(begin, end + IN_LINE, IN_LINE):
        ask(indices, k)
        ask(values, k)


@function
def entries_to_fetch(V, indices):  # type: ignore[no-untyped-def]
    """The entries before which V may be asked for what it holds at four entries AHEAD: none where that is near. A row asks if
    it ends before: one comparison a row, where the rest of a block is not worth one an entry."""
    last = AHEAD + np.uint64(4)
    count = np.uint64(indices.shape[0])
    return count - last if V.shape[0] > NEAR and count > last else np.uint64(0)


@function
def rows_between(begins, ends):  # type: ignore[no-untyped-def]
    """How many rows of this size are between asking for one and learning it: of ``EARLY`` entries, within bounds."""
    entries, n = np.int64(0), ends.shape[0]
    for i in range(n):
        entries += np.int64(ends[i] - begins[i])
    return max(4, min(256, EARLY * n // max(1, entries)))


def permuted_rows(parts: Sequence[Rows], order: np.ndarray) -> Rows:
    """Rows ``order`` of ``parts``, one after the other, copied; ``order`` is a permutation of all of them."""
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    indptr = np.zeros(len(order) + 1, np.uint64)
    np.cumsum(np.concatenate([rows.indptr[1:] - rows.indptr[:-1] for rows in parts])[order], out=indptr[1:])
    indices = np.empty(int(indptr[-1]), np.uint32)
    values = np.empty(int(indptr[-1]), np.result_type(*(rows.values for rows in parts)))
    first = 0
    for rows in parts:
        _scatter(rows, places[first : first + rows.count], indptr, indices, values)
        first += rows.count
    return Rows(indptr, indices, values)


@kernel
def _scatter(rows, places, indptr, indices, values):  # type: ignore[no-untyped-def]
    starts, columns, entries = rows
    for i in range(places.shape[0]):
        to = indptr[places[i]]
        for k in range(starts[i], starts[i + 1]):
            indices[to] = columns[k]
            values[to] = entries[k]
            to += np.uint64(1)


@lean_kernel
def dot_rows(rows, weights, out):  # type: ignore[no-untyped-def]
    """out_i += sum of weights_e x_e over the entries e of row i, in order; one weight per entry."""
    starts, _, values = rows
    for i in range(starts.shape[0] - 1):
        total = out[i]
        for k in range(starts[i], starts[i + 1]):
            total += weights[k] * values[k]
        out[i] = total


@lean_kernel
def dot_rows_at(rows, weights, out):  # type: ignore[no-untyped-def]
    """``dot_rows`` by the weight of each entry's column; columns beyond the weights have weight 0."""
    starts, columns, values = rows
    known = weights.shape[0]
    for i in range(starts.shape[0] - 1):
        total = out[i]
        for k in range(starts[i], starts[i + 1]):
            weight = weights[columns[k]] if columns[k] < known else 0.0
            total += weight * values[k]
        out[i] = total


@lean_kernel
def dot_rows_abreast(rows, weights, out):  # type: ignore[no-untyped-def]
    """``dot_rows_at`` of WIDTH outputs side by side: row j of ``weights`` holds what they have for column j, row i of ``out``
    their sums."""
    starts, columns, values = rows
    known = weights.shape[0]
    for i in range(starts.shape[0] - 1):
        totals = lanes(out, i)
        for k in range(starts[i], starts[i + 1]):
            weight = lanes(weights, columns[k]) if columns[k] < known else no_lanes(weights)
            totals = totals + weight * np.float64(values[k])
        put_lanes(out, i, totals)
