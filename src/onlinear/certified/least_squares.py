r"""The squared loss by sums over rows: where H of all columns is at hand, no step and no certificate reads a row (MATH 20.3).

    F(w, b) = v'Hv / 2 - c'v + y'Sy / 2 + r(w),   v = (w, b),   H = (X, 1)'S(X, 1),   c = (X, 1)'Sy,   S = diag(s) / n

The slopes are theta = Xw + b - y. So the gradient is Hv - c, without the intercept's, and the sums of s theta^2 and s theta y
that the dual value needs (MATH 20.1) follow from v'Hv, c'v and y'Sy. Sums round: ``of_sums`` gives nothing where rounding may
be a share of the gap, as where a model leaves a millionth of the targets.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.columns import Pulled, Stored
from onlinear.certified.gap import Gap
from onlinear.certified.newton import Limits, Newton, PassReport, Solution, Tell, penalised
from onlinear.certified.prox_newton import ProxNewton

MOST, STUCK = 40, 3  # models, and those in a row that do not halve the gap: one that is not reached by then is not for sums
DOUBT, SURE = 0.01, 1e-9  # the share of the gap that rounding of the bound may be, and of F that its own may be
ROUNDS = 8.0  # times sqrt(n) EPSILON: the rounding of a sum over n rows
UNBOUNDED = (-inf, inf)
EPSILON = float(np.finfo(float).eps)


class Sums(NamedTuple):
    """H (m + 1, m + 1), c (m + 1,) and y'Sy, the intercept last."""

    H: np.ndarray
    c: np.ndarray
    square: float


class LeastSquares(Newton):
    """One run on the sums of m columns."""

    def __init__(self, stored: Stored, penalty: Any, s: np.ndarray, fit_intercept: bool, sums: Sums) -> None:
        super().__init__(stored, len(sums.c) - 1, penalty, s, fit_intercept)
        self.H, self.c, self.square = sums
        self.kept = self.faces(self.H)

    def stand(self, w: np.ndarray, b: float) -> None:
        """Go to w and b."""
        self.w, self.b = w.copy(), b

    def certify(self) -> Gap:
        """Find b, the gradient, the mean loss and the gap."""
        if self.fit_intercept:
            self.b = float(self.c[-1] - self.H[-1, :-1] @ self.w) / float(self.H[-1, -1])
        v = np.append(self.w, self.b)
        self.g, self.mean = (self.H @ v - self.c)[:-1], self._mean(v)
        self.bound = max(self.bound, self.lowest, self._dual(v))
        return Gap(self.mean + penalised(self.strengths, self.w), self.bound, self.lowest)

    def _mean(self, v: np.ndarray) -> float:
        return max(0.0, 0.5 * (float(v @ self.H @ v) + self.square) - float(self.c @ v))

    def _dual(self, v: np.ndarray) -> float:
        """D(a theta) with the largest a <= 1 for which it is finite."""
        a = self.penalty.reach(-self.g)
        return a * (self.square - float(self.c @ v) - a * self.mean) - float(self.penalty.conjugate(-a * self.g))

    def rounding(self) -> tuple[float, float]:
        """What F and D may be off by, where roundings of terms have any signs."""
        sizes, l1 = np.sqrt(np.diag(self.H)), self.strengths[0]
        unit = ROUNDS * len(self.s) ** 0.5 * EPSILON
        largest = float(np.linalg.norm(sizes * np.append(self.w, self.b))) + self.square**0.5
        of_reach = float(sizes[:-1].max(initial=0.0)) * largest / l1 * self.mean if l1 > 0.0 else 0.0
        return unit * largest * largest, unit * (largest * largest + of_reach)

    def step(self, gap: Gap, tol: float) -> None:
        """Minimise F, which is its own model."""
        W = np.arange(self.width)
        moves = self.by_matrix(self.H, W, self.target(gap, tol), self.kept)
        t = self.search(W, moves, moves, 1).t
        self.w, self.b = self.w + t * moves[:-1], self.b + t * float(moves[-1])

    def mean_along(self, moves: np.ndarray, t: float) -> float:
        """The mean loss at so much of a step, which moves w and b."""
        return self._mean(np.append(self.w, self.b) + t * moves)


def stalled() -> Tell:
    """Tells after each model whether the last ones were of no use."""
    best, stuck = inf, 0

    def told(report: PassReport) -> bool:
        nonlocal best, stuck
        stuck = 0 if report.gap.relative < 0.5 * best else stuck + 1
        best = min(best, report.gap.relative)
        return stuck >= STUCK

    return told


def of_sums(run: ProxNewton, w: np.ndarray, b: float, limits: Limits, tell: Tell | None) -> Solution | None:
    """The optimum of a run of the squared loss, from w and b on, by sums over its rows; None where they do not suit."""
    if run.strengths[2:] != UNBOUNDED or not run.suits_whole():
        return None
    every = np.flatnonzero((run.stored.counts > 0) | (w != 0.0))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is left to rows
        sums, level = _sums(run, every)
        by_sums = LeastSquares(run.stored, run.penalty, run.s, run.fit_intercept, sums)
        found = by_sums.solve(w[every], b - level, Limits(limits.tol, MOST), stalled())
        gap, (of_objective, of_bound) = found.gap, by_sums.rounding()
        room = gap.objective - gap.lowest
        gap = gap._replace(bound=max(gap.lowest, gap.bound - of_bound))
        if not (gap.relative <= limits.tol and of_bound <= DOUBT * limits.tol * room and of_objective <= SURE * room):
            return None
    best = np.zeros(len(w))
    best[every] = found.w
    if tell is not None:
        tell(PassReport(gap, 1, int(np.count_nonzero(best)), len(every)))
    return Solution(best, found.b + level, found.theta, gap, 1, 1)


def _sums(run: ProxNewton, every: np.ndarray) -> tuple[Sums, float]:
    """Those of the targets less a level, and the level: their mean where there is an intercept, which rises by it."""
    stored, h, y, kept = run.stored, run.s / len(run.s), run.y, run.stored.pulled
    if kept is None or not (np.array_equal(kept.h, h) and np.array_equal(kept.y, y)):
        level, c = float(h @ y / h.sum()) if run.fit_intercept else 0.0, np.empty(stored.width)
        z = y - level
        run.products.pulls(h * z, c)
        kept = Pulled(h, y.copy(), level, np.append(c, h @ z), float(h @ np.square(z)))
        stored.pulled = kept
    return Sums(run.within.fixed(every, h, every), kept.c[np.append(every, -1)], kept.square), kept.level
