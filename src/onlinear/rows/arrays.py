"""Rows of a dense array: its facts, found in one pass, and its blocks as kernels take them.

Rows without zeros are learned where they lie: their columns are 0, 1, 2, .. in every row, so that one short list of columns
serves all blocks. A block with a zero is compressed to where the processor has it at hand. Arrays of other types or layouts are
converted a block at a time. Those with many zeros are compressed while they are looked at, and are then kept so. Rows of which
nothing is known are looked at a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import COMPILED, ask, kernel, non_zeros, turned
from onlinear.rows.records import Rows, copy_lines, plain

ENTRIES = 1 << 19  # entries of a block
AHEAD = 1 << 10  # entries between asking for some and gathering their non-zeros
LEAST_KEPT = 1 << 26  # bytes of non-zeros that are kept of any array with many zeros; else half the array's own


class Facts(NamedTuple):
    """What one pass over an array finds."""

    largest: float  # the largest absolute value; not finite where any value is not
    size: int  # 1 + the largest column with a non-zero
    full: bool  # whether no entry is 0

    def joined(self, other: Facts) -> Facts:
        """Those of these entries and of others; NaN stays."""
        most = other.largest if other.largest != other.largest or other.largest > self.largest else self.largest
        return Facts(most, max(self.size, other.size), self.full and other.full)


class ArrayRows(NamedTuple):
    """The rows of a dense 2-D array of finite numbers, or some of them in an order of their own."""

    array: np.ndarray
    full: bool
    order: np.ndarray | None = None

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.array if self.order is None else self.order)

    @property
    def nnz(self) -> int:
        return self.count * self.array.shape[1] if self.full else sum(len(rows.values) for _, rows in self.blocks())

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as (which rows, those rows), which hold until the next block is asked for."""
        room = BlockRoom()
        for first, block in self.pieces():
            full = self.full or not _has_zero(block.reshape(-1))
            yield slice(first, first + len(block)), room.whole(block) if full else room.non_zeros(block)[1]

    def pieces(self) -> Iterator[tuple[int, np.ndarray]]:
        """The number of its first row, and the rows of each piece as contiguous floats."""
        floats, kind = self.array.dtype == float_type(self.array), self.array.flags
        ready, by_column = floats and kind.c_contiguous, floats and kind.f_contiguous and self.order is None
        if ready and self.order is not None:
            yield from self._copied(self.order)
            return
        step = max(1, ENTRIES // max(1, self.array.shape[1]))
        array, room = plain(self.array) if ready else self.array, None
        columns = plain(array.T).reshape(-1) if by_column and not ready else None
        for first in range(0, self.count, step):
            part = array[first : first + step] if self.order is None else array[self.order[first : first + step]]
            if not (ready and part.flags.c_contiguous):
                room = np.empty(part.shape, float_type(array)) if room is None else room[: len(part)]
                if columns is not None:
                    _turn(columns, len(array), first, room.reshape(-1), len(part))
                else:
                    with np.errstate(over="ignore"):
                        np.copyto(room, part, casting="unsafe")
                part = room
            yield first, part

    def _copied(self, order: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """``pieces`` of contiguous floats in an order."""
        width = self.array.shape[1]
        step, order = max(1, ENTRIES // max(1, width)), np.ascontiguousarray(order, np.int64)
        values, room = plain(self.array).reshape(-1), np.empty((min(step, len(order)), width), self.array.dtype)
        for first in range(0, len(order), step):
            which = order[first : first + step]
            copy_lines(values, which, room[: len(which)].reshape(-1))
            yield first, room[: len(which)]

    def single(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns and values of the only row."""
        row = self.array[0 if self.order is None else self.order[0]]
        columns = np.flatnonzero(row)
        return columns, row[columns]

    def cut(self, which: slice) -> ArrayRows:
        """Some consecutive rows, without a copy."""
        if self.order is not None:
            return self._replace(order=self.order[which])
        return self._replace(array=self.array[which])

    def take(self, order: np.ndarray) -> ArrayRows:
        """The rows in another order."""
        return self._replace(order=order if self.order is None else self.order[order])

    def held(self) -> ArrayRows:
        """The same rows for several passes or another order: contiguous floats, copied where they are not."""
        return self._replace(array=plain(self.array, float_type(self.array)))

    def stored(self) -> Rows:
        """The same rows, converted."""
        if self.full:
            return self._stored_whole()
        pieces = [Rows(*(array.copy() for array in rows)) for _, rows in self.blocks()]
        indices = np.concatenate([np.empty(0, np.uint32), *(rows.indices for rows in pieces)])
        values = np.concatenate([np.empty(0, float_type(self.array)), *(rows.values for rows in pieces)])
        lengths = np.concatenate([np.zeros(1, np.uint64), *(np.diff(rows.indptr) for rows in pieces)])
        return Rows(np.cumsum(lengths, dtype=np.uint64), indices, values)

    def _stored_whole(self) -> Rows:
        """``stored`` of rows without zeros."""
        n, width = self.count, self.array.shape[1]
        indices, values = np.empty((n, width), np.uint32), np.empty((n, width), float_type(self.array))
        indices[:] = np.arange(width, dtype=np.uint32)
        for first, block in self.pieces():
            values[first : first + len(block)] = block
        return Rows(np.arange(n + 1, dtype=np.uint64) * np.uint64(width), indices.reshape(-1), values.reshape(-1))


class UnknownRows(NamedTuple):
    """The rows of a C-contiguous 2-D array of floats of which nothing is known."""

    array: np.ndarray
    most: float  # the largest absolute value that they may have

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as those of ``ArrayRows``. Raises ValueError in place of a block that has another value."""
        room, array, gathers = BlockRoom(), plain(self.array), False
        step = max(1, ENTRIES // max(1, array.shape[1]))
        for first in range(0, len(array), step):
            block = array[first : first + step]
            largest, smallest = (0.0, 0.0) if gathers else extremes(block)
            if smallest > 0.0:
                rows = room.whole(block)
            else:
                facts, rows = room.non_zeros(block)
                largest, gathers = facts.largest, not facts.full
            if not largest <= self.most:
                raise ValueError(f"a value is not finite, or larger than {self.most:g}.")
            yield slice(first, first + len(block)), rows


def are_floats(array: np.ndarray) -> bool:
    """Whether an array is as ``UnknownRows`` have it."""
    ready = array.ndim == 2 and array.dtype == float_type(array) and array.dtype.isnative
    return ready and array.flags.c_contiguous and array.flags.aligned


def look(array: np.ndarray) -> tuple[Facts, Rows | None]:
    """The facts of an array of numbers; and its rows, where it has so many zeros that they were kept."""
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return _look_at_columns(array), None
    facts, room = Facts(0.0, 0, True), None
    for first, piece in ArrayRows(array, full=False).pieces():
        if first == 0 and 2 * np.count_nonzero(piece) <= piece.size:
            room = NonZeroRoom(len(array), min(most_kept(array) // (4 + piece.itemsize), array.size), piece.dtype)
        if room is not None and room.fits(piece):
            facts = facts.joined(room.add(piece))
        else:
            room = None
            largest, smallest = extremes(piece)
            facts = facts.joined(Facts(largest, _width(piece, facts.size), smallest > 0.0))
    return facts, None if room is None else room.rows()


def _look_at_columns(array: np.ndarray) -> Facts:
    """The facts of an array that stands in memory column by column."""
    facts = Facts(0.0, 0, True)
    for first, columns in ArrayRows(array.T, full=False).pieces():
        largest, smallest = extremes(columns)
        used = len(columns)
        while smallest == 0.0 and used and not columns[used - 1].any():
            used -= 1
        facts = facts.joined(Facts(largest, first + used if used else 0, smallest > 0.0))
    return facts


class NonZeroRoom:
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

    def add(self, X: np.ndarray) -> Facts:
        """Add the rows of a block; give its facts."""
        starts, columns, values = self._room
        place, bits = (self._rows, self._entries), (as_bits(values), mask(values.dtype))
        end, largest, size = _compress(X.reshape(-1), X.shape[1], starts, columns, values, *bits, *place)
        full = end - self._entries == X.size
        self._rows, self._entries = self._rows + len(X), end
        return Facts(from_bits(largest, values.dtype), size, full)

    def rows(self) -> Rows:
        """All rows added, in the room's own memory."""
        starts, indices, values = self._room
        return Rows(starts[: self._rows + 1], indices[: self._entries], values[: self._entries])


class BlockRoom:
    """Blocks of floats as rows, which hold until the next block comes. None is larger than the first."""

    def __init__(self) -> None:
        self._columns: tuple[np.ndarray, np.ndarray] | None = None  # of rows without zeros
        self._non_zeros: NonZeroRoom | None = None

    def whole(self, block: np.ndarray) -> Rows:
        """The rows of a block without zeros, where they lie."""
        if self._columns is None:
            self._columns = _columns(*block.shape)
        starts, columns = self._columns
        return Rows(starts[: len(block) + 1], columns[: block.size], block.reshape(-1))

    def non_zeros(self, block: np.ndarray) -> tuple[Facts, Rows]:
        """The facts of a block, and its rows."""
        if self._non_zeros is None:
            self._non_zeros = NonZeroRoom(len(block), block.size, block.dtype)
        self._non_zeros.clear()
        return self._non_zeros.add(block), self._non_zeros.rows()


@kernel
def _compress(values, width, indptr, indices, found, bits, mask, first, end):  # type: ignore[no-untyped-def]
    """Add the non-zeros of rows, which stand one after the other, behind ``end``; row ``first`` is the first one.

    Give their end, their largest absolute value as bits, and 1 + their largest column. ``bits``: the memory of ``found``.
    """
    largest, size = bits.dtype.type(0), np.int64(0)
    if width == 0:
        return end, largest, size
    whole = width - width % 8
    for begin in range(0, values.shape[0], width):
        start = end
        for j in range(0, whole, 8):
            ask(values, begin + j + AHEAD)
            end = non_zeros(values, begin + j, j, indices, found, end)
        for j in range(whole, width):
            indices[end] = j
            found[end] = values[begin + j]
            end += values[begin + j] != 0.0
        first += 1
        indptr[first] = end
        row = bits[start:end]
        for k in range(row.shape[0]):
            found_size = row[k] & mask
            largest = largest if largest > found_size else found_size
        if end > start and indices[end - 1] >= size:
            size = np.int64(indices[end - 1]) + 1
    return end, largest, size


@kernel
def _turn(columns, length, first, rows, count):  # type: ignore[no-untyped-def]
    """Write ``count`` rows, from row ``first`` of columns that are ``length`` long and stand one after the other."""
    length, first, count = np.uint64(length), np.uint64(first), np.uint64(count)
    width, eight = np.uint64(rows.shape[0]) // count, np.uint64(8)
    for j in range(np.uint64(0), width - width % eight, eight):
        for i in range(np.uint64(0), count - count % eight, eight):
            turned(columns, j * length + first + i, length, rows, i * width + j, width)
    for j in range(width):
        for i in range(np.uint64(0) if j >= width - width % eight else count - count % eight, count):
            rows[i * width + j] = columns[j * length + first + i]


def float_type(array: np.ndarray) -> np.dtype[Any]:
    """The type of the numbers that kernels read: float32 as it is, all others as float64.

    Interpreted, all is float64: a float32 number times a Python float would stay float32 there, as it does not in kernels.
    """
    return np.dtype(np.float32 if COMPILED and array.dtype == np.float32 else np.float64)


def as_floats(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy of the type that kernels read, infinite where a number is too large."""
    with np.errstate(over="ignore"):
        return array.astype(float_type(array), copy=False)


def most_kept(array: np.ndarray) -> int:
    """Bytes of non-zeros that are kept of an array with many zeros."""
    return max(LEAST_KEPT, array.nbytes // 2)


def extremes(values: np.ndarray) -> tuple[float, float]:
    """The largest and the smallest absolute value; the first is not finite where any value is not. 0 and infinity of none."""
    high, low = _extremes(as_bits(values), mask(values.dtype))
    if not len(values):
        return 0.0, np.inf
    return from_bits(high, values.dtype), from_bits(low, values.dtype)


def as_bits(values: np.ndarray) -> np.ndarray:
    """Floats as integers, which compare in the same order where they are positive, NaN above infinity."""
    return values.reshape(-1).view(np.int64 if values.dtype == np.float64 else np.int32)


def mask(dtype: Any) -> Any:
    """All bits but the sign's."""
    return np.int64(2**63 - 1) if dtype == np.float64 else np.int32(2**31 - 1)


def from_bits(bits: int, dtype: Any) -> float:
    """The inverse of ``as_bits``, of one number."""
    return float(np.array([bits], np.int64 if dtype == np.float64 else np.int32).view(dtype)[0])


def _columns(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of n rows without zeros begins, and their columns."""
    return np.arange(n + 1, dtype=np.uint64) * np.uint64(width), np.tile(np.arange(width, dtype=np.uint32), n)


@kernel
def _extremes(bits, mask):  # type: ignore[no-untyped-def]
    """The largest and smallest absolute value as bits; without max and min, each of which Numba compiles as a function."""
    largest, smallest = bits.dtype.type(0), mask
    for k in range(bits.shape[0]):
        size = bits[k] & mask
        largest = largest if largest > size else size
        smallest = smallest if smallest < size else size
    return largest, smallest


@kernel
def _has_zero(values):  # type: ignore[no-untyped-def]
    """Whether a value is 0; looked for a stretch at a time, without a branch for each value."""
    for begin in range(0, values.shape[0], 1024):
        zeros = 0
        for k in range(begin, min(begin + 1024, values.shape[0])):
            zeros += values[k] == 0.0
        if zeros:
            return True
    return False


@kernel
def _width(X, width):  # type: ignore[no-untyped-def]
    """1 + the largest column with a non-zero, at least ``width``."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1] - 1, width - 1, -1):
            if X[i, j] != 0.0:
                width = j + 1
                break
    return width
