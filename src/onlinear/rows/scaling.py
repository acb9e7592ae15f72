"""Running column scales: a transformation of rows in front of any solver, which knows nothing of it.

    rms       x_j / s_j,  s_j^2 = the mean of the squares of column j's non-zero entries so far, this row's included
    max-abs   x_j / s_j,  s_j   = the largest |x_j| so far, this row's included
    tempered  x_j / sqrt(s_j s), s_j as for rms, s^2 = the mean of the squares of all entries before the row, in columns that
              are not centred (``centring.py``); s_j / 2 and 2 s_j are the bounds of the root
    standard  (x_j - m_j) / s_j with mean and standard deviation of all rows: fixed before the first row, rows made dense

The first three are O(nnz), row by row, hence the same for any cut of the stream; a scale that moves touches no weight. A row of
weight 0 moves no scale. Scales are kept as (count, mean square) or (largest); a column never seen has scale 0 and weight 0,
as has for rms and tempered one whose squares are below the smallest float (values of some 1e-162).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Literal

import numpy as np

from onlinear.compiled import LANES, borrowed, fetch, four, function, gather, kernel, lane, nothing, put, put_back, total, where
from onlinear.files import trust
from onlinear.rows import AHEAD, Rows, Source, entries_to_fetch

BEHIND = int(LANES) - 1  # numbers that lanes write behind the last entry
NOTHING_CENTRED = np.zeros(4, np.int64), np.zeros(1, np.uint32), np.zeros((3, 1))  # facts, columns and statistics
MOST_TEMPERED = 2.0  # by what a tempered scale is at most larger or smaller than its column's own
NOT_TEMPERED = np.zeros(2)  # of no entries
CONSTANT = 1e-24  # share of the squared mean below which a variance is what rounding leaves of none
ENTRIES, SQUARE = range(2)  # of the entries of all columns: how many, and the mean of their squares


def unscaled(weights: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Weights of scaled columns as weights of the columns as given; 0 where there is no scale."""
    return np.divide(weights, scales, out=np.zeros_like(weights), where=scales > 0.0)


class Scaler:
    """The running scales of one learner."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind = kind
        self.count = np.array([size], np.int64)  # of columns, which compiled code writes too
        self._room = self._new_room(size)
        self._scaled = np.empty(0)

    def _new_room(self, size: int) -> np.ndarray:
        return np.zeros((2, size), order=self._order)

    @property
    def _order(self) -> Literal["C", "F"]:
        """Counts and squares of a column stand side by side, so that a row finds both in one place."""
        return "F" if self.by_squares else "C"

    @property
    def size(self) -> int:
        """Columns known."""
        return self.count.item()

    @property
    def moments(self) -> np.ndarray:
        """(2, d): count and mean square (rms); unused and largest (max-abs); mean and deviation (standard)."""
        return self._room[:, : self.size]

    @moments.setter
    def moments(self, values: np.ndarray) -> None:
        self.count[0], self._room = values.shape[1], np.asarray(values, order=self._order)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name."""
        return {"scales": self.moments}

    def restore(self, arrays: dict[str, np.ndarray], t: int) -> None:
        """Take the arrays of a run of t rows; raises ModelFileError for arrays that no run gives."""
        self.moments[...] = trust.array(arrays, "scales", np.float64, *self.moments.shape)
        trust.finite("scales", self.moments)
        first, second = self.moments
        trust.must(np.all(second >= 0.0), "a scale that is negative")
        if self.by_squares:
            trust.must(np.all((first >= 0.0) & (first <= t) & (first % 1.0 == 0.0)), f"a count of entries not among {t} rows")
        elif self.kind == "standard":
            trust.must(np.all(second > 0.0) or not np.any(second), "a deviation of 0 beside others")

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` columns; the room doubles, so that growing costs O(1) per new column."""
        if size > self._room.shape[1]:
            bigger = self._new_room(max(size, 2 * self.size))
            bigger[:, : self.size] = self.moments
            self._room = bigger

    def grow(self, size: int) -> None:
        """Grow to ``size`` columns."""
        self.take_memory(size)
        self.count[0] = size

    def fix(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        """Set the columns' means and deviations for 'standard'; a constant column has deviation 1."""
        self.moments = np.stack([mean, np.where(deviation > 0.0, deviation, 1.0)])

    def learn(self, rows: Rows, s: np.ndarray) -> tuple[Rows, float]:
        """The rows in scaled units, which hold until the next call, and their largest absolute value; the scales move on."""
        if len(rows.values) > len(self._scaled) - BEHIND:
            self._scaled = np.empty(len(rows.values) + BEHIND)
        largest = _move(rows, s, *self.running, self._scaled)
        return rows._replace(values=self._scaled[: len(rows.values)]), largest

    def whole(self, source: Source, s: np.ndarray, first: bool) -> Source:
        """All rows in the scales that they have in the end; ``first``: the scales are made of these rows, of weight above 0."""
        if first:
            for which, rows in source.pieces():
                self.learn(rows, s[which])
            self._scaled = np.empty(0)  # no rows follow
        rows = source.stored().data
        own = rows is not source.data and rows.values.dtype == np.float64  # a copy, whose values need not be kept
        values = rows.values if own else np.empty(len(rows.values))
        largest = float(divide(rows.indices, rows.values, self.scales(), values))
        return source._replace(largest=largest, data=rows._replace(values=values))

    @property
    def by_squares(self) -> bool:
        """Whether the scales are roots of mean squares."""
        return self.kind == "rms"

    @property
    def room(self) -> np.ndarray:
        """Where the numbers of columns are, (2, columns), those to come among them."""
        return self._room

    @property
    def settled(self) -> bool:
        """Whether the arrays are those that further rows change."""
        return True

    @property
    def rows_to_review(self) -> float:
        """How many rows, each of which counts, may come before ``review`` is due; infinite where it never is."""
        return inf

    def review(self) -> None:
        """Decide anew which columns are centred, before anything is read."""

    @property
    def bytes_per_column(self) -> int:
        """What one column takes, centred or not."""
        return 2 * self._room.itemsize

    @property
    def bytes_of_centred(self) -> int:
        """What the columns that are centred take beside that."""
        return 0

    @property
    def running(self) -> tuple[Any, ...]:
        """Arguments of ``scale_row``: moments, which ``grow`` may replace, those of all entries, whether of squares."""
        return (self._room[0], self._room[1]), None, self.by_squares

    @property
    def within_loop(self) -> tuple[Any, ...] | None:
        """Moments and whether of squares, for a loop that puts rows in their scales itself; None where it cannot."""
        return (self._room[0], self._room[1]), self.by_squares

    @property
    def held(self) -> tuple[Any, ...]:
        """Arguments of ``scale_at``: as ``running``, and those of ``Centring``."""
        return (self._room[0], self._room[1]), NOT_TEMPERED, int(self.by_squares), *NOTHING_CENTRED

    def scales(self, columns: Any = slice(None)) -> np.ndarray:
        """The current scale of each column; 0 where it was never seen."""
        return np.sqrt(self.moments[1][columns]) if self.by_squares else self.moments[1][columns]

    @property
    def used(self) -> np.ndarray:
        """The columns whose scale is not 0: no other has a weight."""
        return np.flatnonzero(self.moments[1]).astype(np.uint32)

    @property
    def vanished(self) -> np.ndarray:
        """The columns whose entries are so small that their squares are 0, which have no weight for that."""
        count, square = self.moments
        return np.flatnonzero((count > 0.0) & (square == 0.0)) if self.by_squares else np.empty(0, np.intp)

    def original(self, weights: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        """Weights of scaled columns as weights of the columns as given."""
        return unscaled(weights, self.scales(columns))

    def scaled(self, weights: np.ndarray) -> np.ndarray:
        """The inverse of ``original``."""
        return weights * self.scales()

    @property
    def centred(self) -> np.ndarray:
        """The columns whose mean is subtracted: their weights have a share in the intercept."""
        return np.arange(self.size if self.kind == "standard" else 0, dtype=np.uint32)

    @property
    def means(self) -> np.ndarray | None:
        """The means of the columns that are centred, which rows move; None where there are none."""
        return None

    def centre(self, weights: np.ndarray) -> float:
        """The intercept that the means add: -sum of w_j m_j / s_j, for the scaled weights of the columns ``centred``."""
        return self.centre_of(self.original(weights, self.centred))

    def centre_of(self, weights: np.ndarray) -> float:
        """``centre`` of weights in the columns' own units."""
        return -float(self.moments[0] @ weights) if self.kind == "standard" else 0.0


class ColumnMoments:
    """Means and deviations of the columns over rows that are looked at once, row by row: the same for any cut of them."""

    def __init__(self) -> None:
        self.count = 0
        self._moments = np.zeros((3, 0))

    @property
    def width(self) -> int:
        """Columns met."""
        return self._moments.shape[1]

    def add(self, rows: Rows, size: int, s: np.ndarray) -> None:
        """Look at rows of ``size`` columns, and leave out those of weight 0."""
        if size > self.width:
            self._moments = np.pad(self._moments, ((0, 0), (0, size - self.width)))
        _look(rows, s, self._moments)
        self.count += int(np.count_nonzero(s))

    def result(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the first ``width`` columns; deviation 0 where a column is constant.

        m of n rows have an entry, of mean u and squared deviations q: mean m u / n, variance (q + u^2 m (n - m) / n) / n.
        """
        m, u, q = np.pad(self._moments, ((0, 0), (0, max(0, width - self.width))))[:, :width]
        n = max(1, self.count)
        mean, variance = m * u / n, (q + u * u * m * ((n - m) / n)) / n
        return mean, deviation_of(mean, variance)


def deviation_of(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The standard deviation of each column; 0 where rounding alone makes it vary."""
    return np.sqrt(np.where(variance > CONSTANT * mean * mean, variance, 0.0))


@function
def largest_of(sizes):  # type: ignore[no-untyped-def]
    """The largest of four lanes."""
    return max(max(lane(sizes, 0), lane(sizes, 1)), max(lane(sizes, 2), lane(sizes, 3)))


@kernel
def _look(rows, s, moments):  # type: ignore[no-untyped-def]
    """Count, mean and squared deviations of the entries of each column (Welford)."""
    starts, columns, values = rows
    for i in range(starts.shape[0] - 1):
        if s[i] > 0.0:
            for k in range(starts[i], starts[i + 1]):
                j, x = columns[k], np.float64(values[k])
                change = x - moments[1, j]
                moments[0, j] += 1.0
                moments[1, j] += change / moments[0, j]
                moments[2, j] += change * (x - moments[1, j])


@kernel
def _move(rows, s, known, whole, rms, out):  # type: ignore[no-untyped-def]
    """Scale all rows; give their largest absolute value."""
    starts, _, _ = rows
    largest, rows = 0.0, borrowed(rows)
    known, out = borrowed((known, out))
    until = entries_to_fetch(known[1], rows[1])
    for i in range(starts.shape[0] - 1):
        ask_for_scales(rows, i, known, until)
        largest = max(largest, scale_row(rows, i, s[i], known, whole, rms, out))
    return largest


@kernel
def divide(indices, values, scales, out):  # type: ignore[no-untyped-def]
    """Values over the scales of their columns, 0 in columns of scale 0; give the largest absolute value."""
    largest = 0.0
    for k in range(values.shape[0]):
        scale = scales[indices[k]]
        out[k] = values[k] / scale if scale > 0.0 else 0.0
        largest = max(largest, abs(out[k]))
    return largest


@function
def ask_for_scales(rows, i, known, until):  # type: ignore[no-untyped-def]
    """Ask for what is ``known`` of the columns that come AHEAD of row i, if it ends before the entry ``until``."""
    if rows[0][i + 1] < until:
        for k in range(rows[0][i], rows[0][i + 1], LANES):
            fetch(known[1], rows[1], k + AHEAD)


@function
def scale_row(rows, i, s, known, whole, rms, out):  # type: ignore[no-untyped-def]
    """Write a row in the scales of its columns, which have moved on past it unless its weight s is 0; give its largest absolute
    value. ``out`` has room for lanes behind the row's end."""
    begin, end = rows[0][i], rows[0][i + 1]
    return scale_entries(rows, begin, end, s > 0.0, known, whole, root_of(whole), rms, None, out, begin)


@function
def tempered(scale, root):  # type: ignore[no-untyped-def]
    """The tempered scale of a column whose root mean square is ``scale``; ``root``: that of all entries, to the power 1/2."""
    return min(max(sqrt(scale) * root, scale * (1.0 / MOST_TEMPERED)), scale * MOST_TEMPERED)


@function
def root_of(whole):  # type: ignore[no-untyped-def]
    """The root mean square of all entries so far to the power 1/2; 0 where scales are not tempered, or there are none."""
    return sqrt(sqrt(whole[SQUARE])) if whole is not None else 0.0


@function
def scale_entries(rows, begin, end, learns, known, whole, root, rms, leaves, out, to):  # type: ignore[no-untyped-def]
    """Write the entries from ``begin`` to ``end`` of a row to ``out[to:]`` in the scales of their columns, which move on past
    them if it ``learns``; give their largest absolute value. Columns without a count stay as they are where ``leaves`` is 1.
    ``known``: counts and moments of the columns; ``whole``: those of all entries where scales are tempered, else None, and
    ``root`` its ``root_of`` before the row."""
    _, columns, values = rows
    largest, squares = nothing(), nothing()
    for k in range(begin, end, LANES):
        at, x = four(columns, values, k, end)
        if rms:
            count, before = gather(known, at)
            scale = before
            if learns:
                count += 1.0
                scale += (x * x - scale) / count
                if leaves is not None:
                    stays = (count == 1.0) * leaves
                    count, scale = count - stays, where(stays, before, scale)
                put_back(known, at, (count, scale))
            scale = sqrt(scale)
            if leaves is not None:
                scale = where(leaves * (count == 0.0), nothing() + 1.0, scale)
        else:
            scale = gather(known[1], at)
            if learns:
                scale = max(scale, abs(x))
                put_back(known[1], at, scale)
        if whole is not None:
            squares += x * x
            if root > 0.0:
                scale = tempered(scale, root)
        scaled = x / where(scale > 0.0, scale, nothing() + inf) + 0.0
        largest = max(largest, abs(scaled))
        put(out, to + (k - begin), scaled)
    if whole is not None and learns and end > begin:
        entries = float(end - begin)
        whole[ENTRIES] += entries
        whole[SQUARE] += (total(squares) - entries * whole[SQUARE]) / whole[ENTRIES]
    return largest_of(largest)
