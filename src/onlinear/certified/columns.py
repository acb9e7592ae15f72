"""Rows in memory as solvers of whole problems take them: by rows, by columns, and the sums over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinear.compiled import kernel
from onlinear.rows import Rows, Source

DENSE = 0.5  # share of entries in rows


class Table(NamedTuple):
    """The entries of row i, or of column j, are those from starts[i] to starts[i + 1]."""

    starts: np.ndarray  # (n + 1,) int64
    places: np.ndarray  # (nnz,) uint32, which kernels index by without a test of signs: columns of a row, or rows of a column
    values: np.ndarray  # (nnz,) float64


class Curved(NamedTuple):
    """(X, 1)' diag(h) (X, 1) of some columns of rows, which ascend, and what all such matrices have cost so far."""

    which: np.ndarray
    h: np.ndarray
    H: np.ndarray
    spent: float

    def of(self, W: np.ndarray) -> np.ndarray:
        """The part of some of the columns, the intercept last."""
        places = np.append(np.searchsorted(self.which, W), len(self.which))
        return self.H[np.ix_(places, places)]

    def extended(self, new: np.ndarray, rows: np.ndarray, spent: float) -> Curved:
        """With further columns; ``rows``: theirs of the matrix of all columns, the intercept last."""
        which = np.union1d(self.which, new)
        H, before = np.empty((len(which) + 1, len(which) + 1)), np.append(np.searchsorted(which, self.which), len(which))
        own, places = np.searchsorted(which, new), np.append(which, -1)
        H[np.ix_(before, before)] = self.H
        H[own] = rows[:, places]
        H[:, own] = rows[:, places].T
        return Curved(which, self.h, H, spent)


class Pulled(NamedTuple):
    """(X, 1)'(h z) and sum_i h_i z_i^2 of targets less a level, z = y - level."""

    h: np.ndarray
    y: np.ndarray
    level: float
    c: np.ndarray
    square: float


class Stored:
    """All rows, and the same entries by columns once they are asked for.

    What further steps, outputs and penalties may need again: ``curved``, the last matrix of curvatures, and ``pulled``, the
    last targets' sums.
    """

    def __init__(self, rows: Table, width: int) -> None:
        self.rows, self.width = rows, width
        self.curved: Curved | None = None
        self.pulled: Pulled | None = None
        self._columns: Table | None = None
        self._counts: np.ndarray | None = None
        self._matrix: np.ndarray | None = None

    @classmethod
    def of(cls, source: Source) -> Stored:
        """The rows of a source."""
        rows: Rows = source.stored().data
        table = Table(rows.indptr.astype(np.int64), rows.indices, rows.values.astype(np.float64, copy=False))
        return cls(table, source.size)

    def widen(self, width: int) -> None:
        """Let columns without entries follow, up to so many."""
        if width > self.width:
            self.width, self.pulled, self._columns, self._counts, self._matrix = width, None, None, None, None

    @property
    def counts(self) -> np.ndarray:
        """The entries of each column."""
        if self._counts is None:
            self._counts = np.zeros(self.width, np.int64)
            count_places(self.rows.places, self._counts)
        return self._counts

    @property
    def by_columns(self) -> bool:
        """Whether the entries are stored by columns too."""
        return self._columns is not None

    @property
    def columns(self) -> Table:
        """The entries by columns."""
        if self._columns is None:
            self._columns = turned(self.rows, self.counts)
        return self._columns

    def matrix(self, share: float) -> np.ndarray | None:
        """The rows with their zeros, (n, width), where at least such a share of their entries is stored."""
        n, entries = len(self.rows.starts) - 1, len(self.rows.values)
        if entries == 0 or entries < share * n * self.width:
            return None
        if self._matrix is None:
            if entries == n * self.width:
                self._matrix = self.rows.values.reshape(n, self.width)
            else:
                self._matrix = np.zeros((n, self.width))
                spread(*self.rows, self._matrix)
        return self._matrix

    def every(self, step: int) -> Stored:
        """Rows 0, step, 2 step ..."""
        return Stored(taken(self.rows, slice(None, None, step)), self.width)


def taken(table: Table, rows: slice | np.ndarray) -> Table:
    """Some of the rows."""
    starts, sizes = table.starts[:-1][rows], np.diff(table.starts)[rows]
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    which = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
    return Table(ends, table.places[which], table.values[which])


def turned(table: Table, counts: np.ndarray) -> Table:
    """The same entries by columns, rows ascending."""
    found = Table(np.zeros(len(counts) + 1, np.int64), np.empty(len(table.places), np.uint32), np.empty(len(table.values)))
    np.cumsum(counts, out=found.starts[1:])
    _turn(table.starts, table.places, table.values, found.starts[:-1].copy(), found.places, found.values)
    return found


@kernel
def count_places(places, counts):  # type: ignore[no-untyped-def]
    """counts_j += the entries of column j."""
    for k in range(places.shape[0]):
        counts[places[k]] += 1


@kernel
def _turn(starts, places, values, ends, rows, entries):  # type: ignore[no-untyped-def]
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            j = places[k]
            rows[ends[j]] = i
            entries[ends[j]] = values[k]
            ends[j] += 1


@kernel
def score_table(starts, places, values, w, out):  # type: ignore[no-untyped-def]
    """out_i = <w, x_i>."""
    for i in range(starts.shape[0] - 1):
        here, entries, total = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], 0.0
        for k in range(here.shape[0]):
            total += w[here[k]] * entries[k]
        out[i] = total


@kernel
def pull_back(starts, places, values, theta, g):  # type: ignore[no-untyped-def]
    """g = X' theta."""
    g[:] = 0.0
    for i in range(starts.shape[0] - 1):
        t = theta[i]
        if t != 0.0:
            here, entries = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]]
            for k in range(here.shape[0]):
                g[here[k]] += t * entries[k]


@kernel
def square_rows(starts, places, values, h, out):  # type: ignore[no-untyped-def]
    """The diagonal of X' diag(h) X, the intercept's last."""
    out[:] = 0.0
    for i in range(h.shape[0]):
        here, entries, own = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], h[i]
        for k in range(here.shape[0]):
            out[here[k]] += own * entries[k] * entries[k]
        out[out.shape[0] - 1] += own


@kernel
def curve_rows(starts, places, values, h, d, out):  # type: ignore[no-untyped-def]
    """out = X' diag(h) X d, the intercept last."""
    last = out.shape[0] - 1
    out[:] = 0.0
    for i in range(h.shape[0]):
        here, entries, along = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], d[last]
        for k in range(here.shape[0]):
            along += d[here[k]] * entries[k]
        along *= h[i]
        out[last] += along
        for k in range(here.shape[0]):
            out[here[k]] += along * entries[k]


@kernel
def restrict(starts, places, values, chosen, new_starts, new_places, new_values):  # type: ignore[no-untyped-def]
    """The rows in chosen columns alone; chosen[j]: the column's new number, or -1."""
    end = 0
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            j = chosen[places[k]]
            if j >= 0:
                new_places[end] = j
                new_values[end] = values[k]
                end += 1
        new_starts[i + 1] = end


def restricted(table: Table, width: int, W: np.ndarray, entries: int) -> Table:
    """The rows in some of their columns alone, which have so many entries; the places are those in W."""
    chosen = np.full(width, -1, np.int64)
    chosen[W] = np.arange(len(W))
    return numbered(table, chosen, entries)


def numbered(rows: Table | Rows, chosen: np.ndarray, entries: int) -> Table:
    """The rows in the columns that have a number, which have so many entries; chosen[j]: the column's number, or -1."""
    found = Table(np.zeros(len(rows[0]), np.int64), np.empty(entries, np.uint32), np.empty(entries))
    restrict(*rows, chosen, *found)
    return found


@kernel
def spread(starts, places, values, X):  # type: ignore[no-untyped-def]
    """The entries of rows, in rows of zeros."""
    for i in range(starts.shape[0] - 1):
        own = X[i]
        for k in range(starts[i], starts[i + 1]):
            own[places[k]] = values[k]


def are_dense(entries: int, n: int, m: int) -> bool:
    """Whether n rows of m columns have so many entries that their zeros are multiplied too."""
    return entries >= DENSE * n * m
