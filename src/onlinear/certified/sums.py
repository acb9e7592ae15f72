r"""Sums over rows, of which a pass towards a certified optimum is made (MATH 20.5).

A pass asks about a ``Point``, and rows answer with ``Sums``: loss, gradient, curvatures on a working set, what a bound needs,
and the loss at shorter steps. They are functions of the point and the rows alone, and they add up:

    sums = point.nothing()
    for rows, y, s in blocks:
        sums.add(loss, point, rows, y, s)     the rows in order: the same bits however they are cut
    total = left.merged(right)                of parts of the rows: the same bits if the parts and the tree are the same

All is in the units of the rows that are given; who asks divides by the scales of columns. Curvatures on a working set stand for
the rows in its columns; while these rows take less room, and no other column has a weight, they are kept in place of them. Of a
working set whose curvatures have no room, rows are kept while they have it; then the sums hold neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from onlinear.certified.columns import Table, numbered
from onlinear.certified.curvatures import add_curvatures
from onlinear.compiled import function, kernel
from onlinear.losses import summed
from onlinear.rows import Rows, Source

SHARES = (0.5, 0.2, 0.05)  # of a step at which the loss is summed too
# Places in ``totals``: losses; of positive slopes, then of others, what ``by_sign`` gives; losses at SHARES.
LOSS, BY_SIGN, ALONG, TOTALS = 0, 1, 7, 7 + len(SHARES)


class Asked(Protocol):
    """What a pass asks about."""

    def nothing(self) -> Sums:
        """The sums of no rows."""

    def targets(self, y: np.ndarray, k: int) -> np.ndarray:
        """What sums of output k take of targets (n, K)."""


class Point(NamedTuple):
    """What a pass asks about, in the units of the rows: weights and intercept, the step that led there, and columns."""

    w: np.ndarray  # (d,) float64
    b: float
    step: np.ndarray  # (d,) or (0,): w minus the weights before the step; empty where there was none
    step_b: float
    places: np.ndarray  # (d,) or (0,) int64: the number of a column in the working set, ascending, or -1; empty for no set
    floor: float  # the least curvature of a row
    room: int  # bytes that curvatures, or the rows kept in their place, may take

    @classmethod
    def at(cls, w: np.ndarray, b: float) -> Point:
        """A point without a step and a working set: loss, gradient and bound alone."""
        return cls(w, b, np.empty(0), 0.0, np.empty(0, np.int64), 0.0, 0)

    @property
    def working(self) -> int:
        """Columns of the working set."""
        return int(self.places.max(initial=-1)) + 1

    def nothing(self) -> Sums:
        """The sums of no rows."""
        m = self.working + 1 if len(self.places) else 0
        alone = m > 0 and not np.any(self.w[self.places < 0])
        return Sums(TOTALS, (2, len(self.w)), m, self.room, min(8 * m * m, self.room) if alone else None)

    def targets(self, y: np.ndarray, k: int) -> np.ndarray:
        """Those of output k, (n,), of targets (n, K)."""
        return np.ascontiguousarray(y[:, k])


def add_block(asked: Iterable[tuple[int, Asked, Sums]], loss: Any, source: Source, y: np.ndarray, s: np.ndarray) -> None:
    """Add rows, with targets (n, K) and what multiplies their losses (n,), to the sums of outputs at their points."""
    for k, point, sums in asked:
        target = point.targets(y, k)
        for which, rows in source.blocks():
            sums.add(loss, point, rows, target[which], s[which])


class KeptRows(NamedTuple):
    """Rows in the columns of a working set: entries, targets, what multiplies their losses, and curvatures.

    Of outputs that one loss joins the targets are the places of the classes, and their probabilities stand for curvatures."""

    entries: Table
    y: np.ndarray
    s: np.ndarray
    h: np.ndarray  # (n,) or (n, K)

    @property
    def room(self) -> int:
        """Bytes, which do not depend on how rows are cut."""
        return 12 * len(self.entries.places) + 24 * len(self.y) + self.h.nbytes


class Sums:
    """Sums over rows at a point.

    totals      (TOTALS, 2): each a sum and its correction (Neumaier)
    gradients   (2, d): of rows with a positive slope, and of the others
    hessian     (m + 1, m + 1): the upper triangle, the intercept last; or (0, 0)
    kept        the rows in its place; None where they take more bytes than ``room``
    n           how many rows
    """

    def __init__(self, totals: int, gradients: tuple[int, ...], m: int, room: int, rows_room: int | None) -> None:
        """Sums of no rows. ``m``: the size of the curvatures, 0 without a working set; ``room``: the bytes that they may take;
        ``rows_room``: those that rows in their place may take, None where these would not tell F."""
        self.room = rows_room or 0
        self.totals, self.gradients, self.n = np.zeros((totals, 2)), np.zeros(gradients), 0
        self.hessian = np.zeros((m, m) if 8 * m * m <= room else (0, 0))
        self.kept: list[KeptRows] | None = None if rows_room is None else []

    def add(self, loss: Any, point: Any, rows: Rows, y: np.ndarray, s: np.ndarray) -> None:
        """Add rows of the point's columns, in order, with targets and what multiplies their losses, (n,)."""
        h = np.zeros(len(y))
        add_rows(loss, rows, y, s, point, self.totals, self.gradients, h)
        self.n += len(y)
        if self.holds_rows:
            self.add_kept([KeptRows(within(rows, point.places), y.copy(), s.copy(), h)])

    @property
    def holds_rows(self) -> bool:
        """Whether rows in the columns of the working set are kept, or their curvatures added."""
        return len(self.hessian) > 0 or self.kept is not None

    def _add_curvatures(self, rows: KeptRows) -> None:
        add_curvatures(*rows.entries, rows.h, self.hessian)

    def add_kept(self, more: list[KeptRows]) -> None:
        """Keep rows, or add their curvatures where they take more room than those of all columns."""
        if self.kept is not None:
            self.kept += more
            if sum(rows.room for rows in self.kept) <= self.room:
                return
            more, self.kept = self.kept, None
        if len(self.hessian):
            for rows in more:
                self._add_curvatures(rows)

    def merged(self, other: Self) -> Self:
        """The sums of the rows of both, at the same point."""
        found = copy(self)
        found.totals, found.gradients = self.totals + other.totals, self.gradients + other.gradients
        found.hessian, found.n = self.hessian + other.hessian, self.n + other.n
        found.kept = [] if self.kept is not None and other.kept is not None else None
        found.add_kept((self.kept or []) + (other.kept or []))
        return found

    @property
    def rows(self) -> int:
        """How many rows there were, those of weight 0 included."""
        return self.n

    def all_kept(self) -> KeptRows | None:
        """The rows in order, where they are kept."""
        if not self.kept:
            return None
        tables = [rows.entries for rows in self.kept]
        ends = np.cumsum([0, *(len(table.places) for table in tables)])
        starts = [table.starts[:-1] + end for table, end in zip(tables, ends, strict=False)]
        entries = Table(
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([table.places for table in tables]),
            np.concatenate([table.values for table in tables]),
        )
        y, s, h = (np.concatenate([rows[k] for rows in self.kept]) for k in (1, 2, 3))
        return KeptRows(entries, y, s, h)

    @property
    def loss(self) -> float:
        """sum s_i l(score_i, y_i)."""
        return float(self.totals[LOSS].sum())

    @property
    def gradient(self) -> np.ndarray:
        """sum s theta x."""
        return self.gradients.sum(axis=0)

    @property
    def left(self) -> np.ndarray:
        """sum s theta, (1,)."""
        return self.by_sign[:, 0].sum(keepdims=True)

    @property
    def by_sign(self) -> np.ndarray:
        """(2, 3): of positive slopes and of the others, sum s theta, sum s l*(theta) and sum s l*(0)."""
        return self.totals[BY_SIGN:ALONG].sum(axis=1).reshape(2, 3)

    @property
    def along(self) -> np.ndarray:
        """The losses at ``SHARES`` of the step; 0 where there was none."""
        return self.totals[ALONG:].sum(axis=1)


@function
def add_to(totals, place, x):  # type: ignore[no-untyped-def]
    """Add x to a sum and its correction."""
    totals[place, 0], totals[place, 1] = summed(totals[place, 0], totals[place, 1], x)


def within(rows: Rows, places: np.ndarray) -> Table:
    """Rows in the columns that have a number, as the table of these numbers."""
    return numbered(rows, places, int(np.count_nonzero(places[rows.indices] >= 0)))


@kernel
def add_rows(loss, rows, y, s, point, totals, gradients, h):  # type: ignore[no-untyped-def]
    """Add rows to sums, row by row, and give their curvatures h (n,)."""
    starts, columns, values = rows
    w, b, step, step_b, _, floor, _ = point
    moves = step.shape[0] > 0
    for i in range(y.shape[0]):
        if s[i] == 0.0:
            continue
        a, along = b, step_b
        for k in range(starts[i], starts[i + 1]):
            j, x = columns[k], np.float64(values[k])
            a += w[j] * x
            if moves:
                along += step[j] * x
        theta = loss.slope(a, y[i])
        sign, pull = 0 if theta > 0.0 else 1, s[i] * theta
        add_to(totals, LOSS, s[i] * loss.value(a, y[i]))
        add_to(totals, BY_SIGN + 3 * sign, pull)
        add_to(totals, BY_SIGN + 3 * sign + 1, s[i] * loss.conjugate(theta, y[i]))
        add_to(totals, BY_SIGN + 3 * sign + 2, s[i] * loss.conjugate(0.0, y[i]))
        if moves:
            for t in range(len(SHARES)):
                add_to(totals, ALONG + t, s[i] * loss.value(a - (1.0 - SHARES[t]) * along, y[i]))
        if pull != 0.0:
            for k in range(starts[i], starts[i + 1]):
                gradients[sign, columns[k]] += pull * values[k]
        h[i] = s[i] * max(loss.curvature(a, y[i]), floor)
