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

from onlinear.compiled import function, kernel

BLOCK = 1 << 20  # entries of a dense array that are converted at a time
LARGEST_COLUMN = 2**31 - 2
LARGEST_VALUE = 1e150  # of a value: its square, and the sum of many, is finite


class Rows(NamedTuple):
    """Rows of non-zeros: entries indptr[i] .. indptr[i+1] of ``indices`` and ``values`` are row i, columns ascending."""

    indptr: np.ndarray  # (n+1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,) float64 or float32

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.indptr) - 1


class Source(NamedTuple):
    """Checked input: ``n`` rows, ``width`` declared columns, ``size`` = 1 + the largest column with a non-zero entry."""

    n: int
    width: int
    size: int
    largest: float  # the largest absolute value
    data: Any  # Rows, or a dense 2-D array

    @property
    def nnz(self) -> int:
        return len(self.data.values) if isinstance(self.data, Rows) else int(np.count_nonzero(self.data))

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as (which rows, those rows); those of a dense array hold until the next block is asked for."""
        if isinstance(self.data, Rows):
            yield slice(0, self.n), self.data
            return
        first, room = 0, None
        for block in self.dense_blocks():
            room = Room(len(block), block.size, block.dtype) if room is None else room
            room.clear()
            room.add(block)
            yield slice(first, first + len(block)), room.rows()
            first += len(block)

    def dense_blocks(self) -> Iterator[np.ndarray]:
        """The rows of a dense array in order, in blocks that kernels are compiled for."""
        step = max(1, BLOCK // max(1, self.width))
        for first in range(0, self.n, step):
            yield plain(self.data[first : first + step])

    def take(self, order: np.ndarray) -> Source:
        """The rows in another order, copied."""
        if isinstance(self.data, Rows):
            return self._replace(n=len(order), data=take_rows(self.data, order))
        return self._replace(n=len(order), data=self.data[order])

    def stored(self) -> Source:
        """The same rows with the conversion done once, for several passes."""
        if isinstance(self.data, Rows):
            return self
        if self.n == 0:
            return self._replace(data=Room(0, 0, self.data.dtype).rows())
        pieces = [Rows(*(array.copy() for array in rows)) for _, rows in self.blocks()]
        ends = np.cumsum([0, *(len(rows.values) for rows in pieces)])
        indptr = np.concatenate([rows.indptr[:-1] + np.uint64(end) for rows, end in zip(pieces, ends, strict=False)])
        indptr = np.append(indptr, np.uint64(ends[-1]))
        indices = np.concatenate([rows.indices for rows in pieces])
        return self._replace(data=Rows(indptr, indices, np.concatenate([rows.values for rows in pieces])))


def unlearnable(source: Source) -> tuple[int, float] | None:
    """The row and the absolute value of an entry that is too large to be learned; None where no entry is."""
    if not source.largest > LARGEST_VALUE:
        return None
    row, value = largest_value(source)
    return (row, value) if value > LARGEST_VALUE else None


def largest_value(source: Source) -> tuple[int, float]:
    """The row of the largest absolute value, and that value."""
    values = np.abs(source.data.values if isinstance(source.data, Rows) else source.data)
    at = int(np.argmax(values))
    row = row_of(at, source.data.indptr) if isinstance(source.data, Rows) else at // source.width
    return row, float(values.flat[at])


def row_beyond(source: Source, width: int) -> tuple[int, int]:
    """The first row with an entry in column ``width`` or later, and the largest column of its entries."""
    if not isinstance(source.data, Rows):
        found = np.argwhere(source.data[:, width:] != 0.0)
        row = int(found[0, 0])
        return row, width + int(found[found[:, 0] == row, 1].max())
    starts, columns, _ = source.data
    row = row_of(int(np.argmax(columns >= width)), starts)
    return row, int(columns[int(starts[row]) : int(starts[row + 1])].max())


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
    return int(np.searchsorted(starts, np.uint64(entry), side="right")) - 1


@function
def fill_row(indices, values, bound, starts, columns, entries):  # type: ignore[no-untyped-def]
    """Take one row into the arrays of a ``Rows`` if it is a plain one, and give its largest absolute value; else -1.

    Plain: columns ascending and below ``bound``, values that can be learned, no more of them than there is room for.
    """
    n = indices.shape[0]
    if values.shape[0] != n or n > columns.shape[0]:
        return -1.0
    end, before, largest = 0, -1, 0.0
    for k in range(n):
        j, x = int(indices[k]), float(values[k])
        length = abs(x)
        if j <= before or j >= bound or not length <= LARGEST_VALUE:
            return -1.0
        before = j
        if x != 0.0:
            columns[end] = j
            entries[end] = x
            largest = max(largest, length)
            end += 1
    starts[1] = end
    return largest


class Room:
    """Room for the non-zeros of dense blocks of up to ``n`` rows and ``most`` entries. What is not used is never touched:
    touching new memory costs more than the conversion."""

    def __init__(self, n: int, most: int, dtype: Any) -> None:
        self._room = Rows(np.zeros(n + 1, np.uint64), np.empty(most, np.uint32), np.empty(most, dtype))
        self._rows = self._entries = 0

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = self._entries = 0

    def fits(self, X: np.ndarray) -> bool:
        """Whether there is room for any block, however many entries it has."""
        return self._entries + X.size <= len(self._room.values)

    def add(self, X: np.ndarray) -> Rows:
        """Add the rows of a block; give them as rows of their own."""
        first, begin = self._rows, self._entries
        self._rows, self._entries = first + len(X), _compress(X, *self._room, first, begin)
        starts = self._room.indptr[first : self._rows + 1] - np.uint64(begin)
        return Rows(starts, self._room.indices[begin : self._entries], self._room.values[begin : self._entries])

    def rows(self) -> Rows:
        """All rows added, in the room's own memory."""
        starts, indices, values = self._room
        return Rows(starts[: self._rows + 1], indices[: self._entries], values[: self._entries])


@kernel
def _compress(X, indptr, indices, values, first, end):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            indices[end] = j
            values[end] = x
            end += x != 0.0
        indptr[first + i + 1] = end
    return end


def take_rows(rows: Rows, order: np.ndarray) -> Rows:
    """Rows ``order`` of ``rows``, copied."""
    lengths = (rows.indptr[1:] - rows.indptr[:-1])[order]
    indptr = np.zeros(len(order) + 1, np.uint64)
    np.cumsum(lengths, out=indptr[1:])
    indices = np.empty(int(indptr[-1]), np.uint32)
    values = np.empty(int(indptr[-1]), rows.values.dtype)
    _gather(rows, order.astype(np.int64), indptr, indices, values)
    return Rows(indptr, indices, values)


@kernel
def _gather(rows, order, indptr, indices, values):  # type: ignore[no-untyped-def]
    starts, columns, entries = rows
    for i in range(order.shape[0]):
        begin, end = starts[order[i]], starts[order[i] + 1]
        to = indptr[i]
        for k in range(begin, end):
            indices[to] = columns[k]
            values[to] = entries[k]
            to += np.uint64(1)


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


@kernel
def dot_rows(rows, weights, out):  # type: ignore[no-untyped-def]
    """out_i += sum of weights_e x_e over the entries e of row i, in order; one weight per entry."""
    starts, _, values = rows
    for i in range(starts.shape[0] - 1):
        total = out[i]
        for k in range(starts[i], starts[i + 1]):
            total += weights[k] * values[k]
        out[i] = total
