r"""Prox-Newton on working sets, for smooth losses: the optimum of a stored problem to a certified relative gap (MATH 20.3).

    F(w, b) = (1/n) sum_i s_i l(<w, x_i> + b, y_i) + r(w),   r = l1 |w|_1 + (l2/2) |w|^2 on lower <= w <= upper

Each iteration balances b, takes slopes theta and curvatures h at the scores, certifies the point by its duality gap, and
minimises the quadratic model of F on the columns that are not 0 or may leave it. It stops on nothing but the gap.

Source: Lee, Sun, Saunders, SIAM J. Optim. 24, 2014; Johnson, Guestrin, ICML 2015 (working sets by the gap); Yuan, Ho, Lin, JMLR
13, 2012 (the model by coordinates).
"""

from __future__ import annotations

from functools import cached_property
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from onlinear.certified.balance import balanced
from onlinear.certified.columns import Stored, Table
from onlinear.certified.conjugate import newton_step
from onlinear.certified.costs import Costs
from onlinear.certified.descent import Subproblem, descend
from onlinear.certified.gap import ROUNDING, Gap, dual_value, weighted_slopes
from onlinear.certified.models import FACTORED, TINY, ByColumns
from onlinear.certified.newton import SEARCHES, Length, Newton, penalised
from onlinear.certified.passes import lowest_mean
from onlinear.certified.products import RowsWithin, Scoring, SparseRows, products_of
from onlinear.compiled import kernel
from onlinear.losses import weighted

FLOOR = 1e-12  # of curvatures, relative to 1/n
STRETCHED = 3  # models of one step with curvatures raised
CUTS = 8  # steps that need them before a start is left, or they compete with steps that are cut
CRAWLS = 16  # the same where curvatures jump, before each step goes to where F is least along it
STEEPEST = 1e6  # no curvature is raised above it
SAMPLED, SHARE = 100, 8  # with so many rows to a column, a coarse solution for one row in SHARE comes first
NO_ROWS = Table(np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0))


@kernel
def bend(loss, scores, y, s, shift, h):  # type: ignore[no-untyped-def]
    """h_i = s_i l''(score_i + shift) / n."""
    n = y.shape[0]
    for i in range(n):
        h[i] = weighted(s[i], loss.curvature(scores[i] + shift, y[i])) / n


@kernel
def value_along(loss, scores, moves, t, y, s):  # type: ignore[no-untyped-def]
    """The mean loss at score_i + t move_i."""
    total = 0.0
    for i in range(y.shape[0]):
        total += weighted(s[i], loss.value(scores[i] + t * moves[i], y[i]))
    return total / y.shape[0]


@kernel
def slopes_at(loss, scores, y, s, shift, theta):  # type: ignore[no-untyped-def]
    """theta_i = l'(score_i + shift)."""
    for i in range(y.shape[0]):
        theta[i] = loss.slope(scores[i] + shift, y[i]) if s[i] != 0.0 else 0.0


@kernel
def stretch(loss, scores, moves, y, s, h):  # type: ignore[no-untyped-def]
    """Raise h_i to the curvature of a parabola: the loss's value and slope at score_i, its value at score_i + move_i."""
    n = y.shape[0]
    for i in range(n):
        a, m = scores[i], moves[i]
        if s[i] > 0.0 and abs(m) > 1e-3:
            rise = loss.value(a + m, y[i]) - loss.value(a, y[i]) - loss.slope(a, y[i]) * m
            h[i] = max(h[i], s[i] * min(2.0 * rise / (m * m), STEEPEST) / n)


class ProxNewton(Newton):
    """One run of one output."""

    floor = FLOOR
    patience: float = CUTS  # steps that need raised curvatures before a start is left
    hedges = False  # whether a step that was cut may be taken from the first one on, where it is better than raised curvatures
    samples = True  # whether a coarse solution for some of the rows may come first

    def __init__(
        self, stored: Stored, width: int, loss: Any, penalty: Any, y: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        super().__init__(stored, width, penalty, s, fit_intercept)
        self.loss, self.y, self.lowest = loss, y, lowest_mean(loss, y, s)
        self.quadratic = bool(getattr(loss, "quadratic", False))
        self.jumps = self.hard = not getattr(loss, "steady", False)  # curvatures do: steps that are not exact lead nowhere
        self.theta, self.h, self.g = np.zeros(len(y)), np.zeros(len(y)), np.zeros(width)
        self.products = products_of(stored)
        self.costs = Costs(stored, self.products.cost)
        self.within = RowsWithin(stored, self.products, self.costs)

    def first_point(self, w: np.ndarray, b: float, tol: float) -> tuple[np.ndarray, float, int]:
        """Where rows are many to a column, coarse models of some of them come first; not where there is a start."""
        few = len(self.y) >= SAMPLED * int(np.count_nonzero(self.stored.counts))
        self.takes_all = self.quadratic and (few or self.suits_whole())
        self.hard = self.hard or self.takes_all
        return self.sample(tol) if self.samples and few and not self.takes_all and not w.any() else (w, b, 0)

    def suits_whole(self) -> bool:
        """Whether H of all columns is at hand, or rows are dense and it costs little."""
        return self.within.keeps(np.flatnonzero(self.stored.counts)) or self.costs.suits_whole(self.smooth)

    def stand(self, w: np.ndarray, b: float) -> None:
        """Go to w and b."""
        self.w, self.b, self.scores, self.mean = w.copy(), b, np.zeros(len(self.y)), nan
        self.products.scores(self.w, self.scores)

    def sample(self, tol: float) -> tuple[np.ndarray, float, int]:
        """Weights and intercept of coarse models of one row in SHARE, from 0, and the passes over all rows that they cost."""
        y, s = np.ascontiguousarray(self.y[::SHARE]), np.ascontiguousarray(self.s[::SHARE])
        run = ProxNewton(self.stored.every(SHARE), self.width, self.loss, self.penalty, y, s, self.fit_intercept)
        run.stand(np.zeros(self.width), 0.0)
        before, gap = Gap(inf, -inf), run.certify()
        while gap.relative > tol and np.isfinite(gap.objective):
            run.settle(before, gap)
            if not run.early:
                break
            run.step(gap, tol)
            before, gap = gap, run.certify()
        return run.w, run.b, run.steps // SHARE + 1

    def certify(self) -> Gap:
        """Take slopes, curvatures and gradient, and find the gap."""
        self.look()
        self.bound = max(self.bound, dual_value(self.loss, self.penalty, self.theta, self.y, self.s, self.g, self.lowest))
        mean = self.lowest if self.mean - self.lowest <= self.rounding else self.mean
        return Gap(mean + penalised(self.strengths, self.w), self.bound, self.lowest)

    @cached_property
    def rounding(self) -> float:
        """How far rounding of scores that are as large as targets may leave a mean loss above the lowest, at its minimum."""
        scores = np.zeros(len(self.y))
        room = float(value_along(self.loss, scores, scores, 0.0, self.y, self.s)) - self.lowest
        return ROUNDING * ROUNDING * room if isfinite(room) else 0.0

    def look(self) -> None:
        """Balance b, and take slopes, curvatures, gradient and mean loss."""
        if self.fit_intercept:
            self.b, self.theta = balanced(self.loss, self.scores, self.y, self.s, self.b)
        else:
            slopes_at(self.loss, self.scores, self.y, self.s, self.b, self.theta)
        if self.fit_intercept or not np.isfinite(self.mean):
            self.mean = float(value_along(self.loss, self.scores + self.b, self.scores, 0.0, self.y, self.s))
        bend(self.loss, self.scores, self.y, self.s, self.b, self.h)
        self.products.pulls(weighted_slopes(self.s, self.theta) / len(self.y), self.g)

    def step(self, gap: Gap, tol: float) -> None:
        """Minimise the model on the working set, and go along its minimiser as far as F falls."""
        W, target = self.choose(gap), self.target(gap, tol)
        self.working = len(W)
        if not len(W):
            return
        if self.jumps and self.cuts >= CRAWLS:
            self.step_to_lowest(W, gap, tol)
            return
        h, share = self.curvatures(W), self.share(gap, tol)
        shorter = None
        for models in range(STRETCHED + 1):
            d, moves = self.minimise(W, h, target, share)
            found = self.search(W, d, moves, 1 if models < STRETCHED else SEARCHES)
            if found.t > 0.0:
                break
            if (self.hedges or self.cuts >= CUTS) and shorter is None:
                shorter = d, moves, self.search(W, d, moves, SEARCHES)
            stretch(self.loss, self.scores + self.b, moves, self.y, self.s, h)
        if shorter is not None and shorter[2].value < found.value:
            d, moves, found = shorter
        self.cuts += models > 0
        self.go(W, d, moves, found)

    def step_to_lowest(self, W: np.ndarray, gap: Gap, tol: float) -> None:
        """Go along the minimiser of the model, with the curvatures as they are, to where F is least: of parabolas in pieces it
        ends at the optimum."""
        self.early, self.damping = False, 0.0
        d, moves = self.minimise(W, self.curvatures(W), self.target(gap, tol), self.share(gap, tol))
        self.go(W, d, moves, self.lowest_along(W, d, moves))

    def curvatures(self, W: np.ndarray) -> np.ndarray:
        """Those of the rows, (n,), in a model of some columns."""
        least = self.floor / len(self.y) + self.damping * float(self.h.max(initial=0.0))
        return np.maximum(self.h, least * (self.s > 0.0))

    def newton(self, W: np.ndarray, h: np.ndarray, share: float) -> tuple[np.ndarray, bool]:
        """d (m + 1,) that leaves a share of the slopes, by conjugate gradients, and whether they were enough."""
        size, l2 = self.width + 1, self.strengths[1]
        ridge, diagonal, g, place = np.full(size, l2), np.empty(size), np.zeros(size), np.append(W, size - 1)
        ridge[-1] = 0.0
        self.products.squares(h, diagonal)
        g[W] = self.g[W] + l2 * self.w[W]

        def times(d: np.ndarray) -> np.ndarray:
            out = np.empty(size)
            self.products.curved(h, d, out)
            out[-1] *= self.fit_intercept
            return out + ridge * d

        entries = int(self.stored.counts[W].sum())
        most = self.costs.patient(len(W), entries, self.costs.gram(entries, len(W)))
        by = diagonal + ridge + TINY
        d, _, enough = newton_step(times, lambda r: r / by, g, share, most)
        return d[place], enough

    def minimise(self, W: np.ndarray, h: np.ndarray, target: float, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The model's minimiser d (m + 1,), the intercept last, and X d + d_0 (n,)."""
        m = len(W)
        if self.by_conjugates:
            d, enough = self.newton(W, h, share)
            if enough or m > FACTORED:
                step = np.zeros(self.width)
                step[W] = d[:m]
                return d, self.moved(self.products, step, d[m:])
            self.hard = True
        entries = int(self.stored.counts[W].sum())
        made = self.quadratic and self.within.keeps(W)
        making = 0.0 if made else self.costs.gram(entries, m, np.count_nonzero(h) / len(h))
        if self.costs.prefers_gram(m, entries, making, int(np.count_nonzero(self.w)), target < 0.0):
            return self.by_gram(W, h, target)
        return self.by_columns(W, h, target)

    def by_gram(self, W: np.ndarray, h: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
        """``minimise`` with H at hand."""
        rows = self.within.products(W)
        H = self.within.fixed(W, h, self.all_columns()) if self.quadratic else rows.gram(h)
        d = self.by_matrix(H, W, target, self.faces(H))
        return d, self.moved(rows, d[:-1], d[-1:])

    def by_columns(self, W: np.ndarray, h: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
        """``minimise`` with the columns of the rows."""
        m, last = len(W), len(W) + self.fit_intercept
        columns, diagonal, coarse = self.stored.columns, np.empty(last), target < 0.0
        g, w, d = np.append(self.g[W], 0.0)[:last], np.append(self.w[W], 0.0)[:last], np.zeros(last)
        inside = NO_ROWS if coarse else self.within.table(W)
        square_columns(*columns, W, h, diagonal)
        model = ByColumns(*columns, W, h, np.zeros(len(h)), inside, np.zeros((2, m + 1)))
        descend(Subproblem(model, g, w, d, diagonal, self.near(), m), self.effort_by_columns(target))
        if coarse:
            return d, np.divide(model.z, h, out=np.zeros_like(h), where=h > 0.0)
        return d, self.moved(SparseRows(inside, m), d[:m], d[m:])

    def moved(self, rows: Scoring, w: np.ndarray, own: np.ndarray) -> np.ndarray:
        """X w + d_0 (n,) of a step, by the rows in its columns; ``own``: d_0 alone."""
        moves = np.empty(len(self.y))
        rows.scores(np.ascontiguousarray(w), moves)
        return moves + (own[0] if self.fit_intercept else 0.0)

    def mean_along(self, moves: np.ndarray, t: float) -> float:
        """The mean loss at so much of a step, which moves the scores."""
        return float(value_along(self.loss, self.scores + self.b, moves, t, self.y, self.s))

    def go(self, W: np.ndarray, d: np.ndarray, moves: np.ndarray, length: Length) -> None:
        """Go so much of d; where that is far less than d, the next model is damped."""
        m, t = len(W), length.t
        self.damp(t)
        self.w[W] = np.clip(self.w[W] + t * d[:m], *self.strengths[2:])
        own = d[m] if self.fit_intercept else 0.0
        self.scores += t * (moves - own)
        self.b += t * own
        self.mean = length.mean


@kernel
def square_columns(starts, rows, values, which, h, out):  # type: ignore[no-untyped-def]
    """The diagonal of H for some columns, and for the intercept where ``out`` has a place for it."""
    m = which.shape[0]
    for a in range(m):
        j, total = which[a], 0.0
        for k in range(starts[j], starts[j + 1]):
            total += values[k] * values[k] * h[rows[k]]
        out[a] = total
    if out.shape[0] > m:
        out[m] = h.sum()
