r"""Sums over rows, of which a pass towards a certified optimum is made (MATH 20.5).

A pass asks about a ``Point``, and rows answer with ``Sums``: loss, gradient, curvatures on a working set, what a bound needs,
and the loss at shorter steps. They are functions of the point and the rows alone, and they add up:

    sums = Sums.of(point)
    for rows, y, s in blocks:
        sums.add(loss, point, rows, y, s)     the rows in order: the same bits however they are cut
    total = left.merged(right)                of parts of the rows: the same bits if the parts and the tree are the same

All is in the units of the rows that are given; who asks divides by the scales of columns.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows import Rows

SHARES = (0.5, 0.2, 0.05)  # of a step at which the loss is summed too
# Places in ``totals``: losses; of positive slopes, then of others, what ``by_sign`` gives; losses at SHARES.
LOSS, BY_SIGN, ALONG, TOTALS = 0, 1, 7, 7 + len(SHARES)


class Point(NamedTuple):
    """What a pass asks about, in the units of the rows: weights and intercept, the step that led there, and columns."""

    w: np.ndarray  # (d,) float64
    b: float
    step: np.ndarray  # (d,) or (0,): w minus the weights before the step; empty where there was none
    step_b: float
    places: np.ndarray  # (d,) or (0,) int64: the number of a column in the working set, ascending, or -1; empty for no set
    floor: float  # the least curvature of a row

    @classmethod
    def at(cls, w: np.ndarray, b: float) -> Point:
        """A point without a step and a working set: loss, gradient and bound alone."""
        return cls(w, b, np.empty(0), 0.0, np.empty(0, np.int64), 0.0)

    @property
    def working(self) -> int:
        """Columns of the working set."""
        return int(self.places.max(initial=-1)) + 1


class Sums(NamedTuple):
    """Sums over rows at a point; ``parts`` of a total are the sum and its correction (Neumaier)."""

    totals: np.ndarray  # (TOTALS, 2)
    gradients: np.ndarray  # (2, d): of rows with a positive slope, and of the others
    hessian: np.ndarray  # (m + 1, m + 1), the upper triangle, the intercept last; (0, 0) without a working set
    n: np.ndarray  # (1,) int64: rows

    @classmethod
    def of(cls, point: Point) -> Sums:
        """The sums of no rows."""
        m = point.working + 1 if len(point.places) else 0
        return cls(np.zeros((TOTALS, 2)), np.zeros((2, len(point.w))), np.zeros((m, m)), np.zeros(1, np.int64))

    def add(self, loss: Any, point: Point, rows: Rows, y: np.ndarray, s: np.ndarray) -> None:
        """Add rows of the point's columns, in order, with targets and what multiplies their losses, (n,)."""
        add_rows(loss, rows, y, s, point, self.totals, self.gradients, self.hessian)
        self.n[0] += len(y)

    def merged(self, other: Sums) -> Sums:
        """The sums of the rows of both, at the same point."""
        return Sums(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def rows(self) -> int:
        """How many rows there were, those of weight 0 included."""
        return int(self.n[0])

    @property
    def loss(self) -> float:
        """sum s_i l(score_i, y_i)."""
        return float(self.totals[LOSS].sum())

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
    old = totals[place, 0]
    new = old + x
    if isfinite(new):
        totals[place, 1] += (old - new) + x if abs(old) >= abs(x) else (x - new) + old
    totals[place, 0] = new


@kernel
def add_rows(loss, rows, y, s, point, totals, gradients, hessian):  # type: ignore[no-untyped-def]
    """Add rows to sums, row by row."""
    starts, columns, values = rows
    w, b, step, step_b, places, floor = point
    moves, works, last = step.shape[0] > 0, places.shape[0] > 0, hessian.shape[0] - 1
    members, entries = np.empty(max(1, last), np.int64), np.empty(max(1, last))
    for i in range(y.shape[0]):
        if s[i] == 0.0:
            continue
        a, along, count = b, step_b, 0
        for k in range(starts[i], starts[i + 1]):
            j, x = columns[k], np.float64(values[k])
            a += w[j] * x
            if moves:
                along += step[j] * x
            if works and places[j] >= 0:
                members[count], entries[count] = places[j], x
                count += 1
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
        if works:
            h = s[i] * max(loss.curvature(a, y[i]), floor)
            for e in range(count):
                row, t = hessian[members[e]], h * entries[e]
                for f in range(e, count):
                    row[members[f]] += t * entries[f]
                row[last] += t
            hessian[last, last] += h
