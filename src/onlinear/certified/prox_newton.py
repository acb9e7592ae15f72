r"""Prox-Newton on working sets, for smooth losses: the optimum of a stored problem to a certified relative gap (MATH 20.3).

    F(w, b) = (1/n) sum_i s_i l(<w, x_i> + b, y_i) + r(w),   r = l1 |w|_1 + (l2/2) |w|^2 on lower <= w <= upper

Each iteration balances b, takes slopes theta and curvatures h at the scores, certifies the point by its duality gap, and
minimises the quadratic model of F on the columns that are not 0 or may leave it. It stops on nothing but the gap.

Source: Lee, Sun, Saunders, SIAM J. Optim. 24, 2014; Johnson, Guestrin, ICML 2015 (working sets by the gap); Yuan, Ho, Lin, JMLR
13, 2012 (the model by coordinates).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.balance import balanced
from onlinear.certified.columns import Stored, Table, are_dense, gram, pull_back, restrict, score_table
from onlinear.certified.descent import Effort, Subproblem, descend
from onlinear.certified.gap import Gap, dual_value, weighted_slopes
from onlinear.certified.models import SOLVED, ByColumns, ByGram
from onlinear.certified.passes import lowest_mean
from onlinear.compiled import kernel
from onlinear.losses import weighted

LARGEST_GRAM = 3000  # columns
DAMPED = 1e-3  # the least damping
FLOOR = 1e-12  # of curvatures, relative to 1/n
SLOW = 0.02  # a relative decrease of F below it: the working set is near its last
COARSE = 10  # iterations with coarse models, at most
SEARCHES = 40
STRETCHED, CUTS = 3, 8  # models of one step with curvatures raised, and steps that need them before a start is left
STEEPEST = 1e6  # no curvature is raised above it
FACTORS, STEPS = 3, 150  # of a fine model: systems that are solved with H at hand, steps of conjugate gradients without
FARTHEST_STEP = 8.0  # times the largest weight: no model without curvature is believed farther away
CHEAPER = 0.2  # a pair of entries of dense rows to another
SAMPLED, SHARE = 100, 8  # with so many rows to a column, a coarse solution for one row in SHARE comes first


class Limits(NamedTuple):
    """When to stop: at a relative gap of ``tol``, or after ``passes`` readings of all rows."""

    tol: float = 1e-4
    passes: int = 100


class PassReport(NamedTuple):
    """Where a solver stands after a certified pass."""

    gap: Gap
    passes: int
    nonzeros: int
    working: int  # columns that the last step was about


class Solution(NamedTuple):
    """Weights, intercept, slopes (n,), the gap (its bound the best one found), outer iterations and passes over all rows."""

    w: np.ndarray
    b: float
    theta: np.ndarray
    gap: Gap
    iterations: int
    passes: int


class Length(NamedTuple):
    """How much of a step brings F down, F there without what other columns are penalised by, and the mean loss."""

    t: float
    value: float
    mean: float


NO_ENTRIES = np.empty(0, np.uint32), np.empty(0)
Tell = Callable[[PassReport], bool]  # whether to stop there
Strengths = tuple[float, float, float, float]


def strengths_of(penalty: Any) -> Strengths:
    """l1, l2, and the bounds of all weights."""
    lower, upper = getattr(penalty, "weight_bounds", None) or (-inf, inf)
    return float(penalty.l1), float(penalty.l2), float(lower), float(upper)


def penalised(strengths: Strengths, w: np.ndarray) -> float:
    """r of weights within the bounds."""
    l1, l2, _, _ = strengths
    return l1 * float(np.sum(np.abs(w))) + (0.5 * l2 * float(w @ w) if l2 > 0.0 else 0.0)


def near(strengths: Strengths, w: np.ndarray) -> Strengths:
    """l1, l2, and the bounds within which a model is believed that may have no curvature."""
    l1, l2, lower, upper = strengths
    far = FARTHEST_STEP * float(np.abs(w).max(initial=0.0)) or inf
    return l1, l2, max(lower, -far), min(upper, far)


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


class ProxNewton:
    """One run: the rows, where it stands, and the best bound so far."""

    floor = FLOOR
    patience: float = CUTS  # steps that need raised curvatures before a start is left
    hedges = False  # whether a step that was cut is taken where it brings F lower than one with curvatures raised
    samples = True  # whether a coarse solution for some of the rows may come first

    def __init__(
        self, stored: Stored, width: int, loss: Any, penalty: Any, y: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        self.stored, self.rows, self.width, self.loss, self.penalty = stored, stored.rows, width, loss, penalty
        self.y, self.s, self.fit_intercept = y, s, fit_intercept
        self.strengths = strengths_of(penalty)
        self.lowest, self.bound = lowest_mean(loss, y, s), -inf
        self.theta, self.h, self.g = np.zeros(len(y)), np.zeros(len(y)), np.zeros(width)
        self.damping, self.accuracy, self.early = 0.0, 1.0, True
        self.working = self.steps = self.cuts = 0
        self.takes_all = False  # whether one model of all columns ends at the optimum
        sizes = np.diff(self.rows.starts).astype(np.float64)
        self.pairs = 0.5 * float(np.sum(sizes * sizes))  # of entries in one row
        self.within: tuple[np.ndarray, Table] | None = None

    def solve(self, w: np.ndarray, b: float, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on from w (d,) and b until the gap is small enough or the passes are used up."""
        before, iterations, passes = Gap(inf, -inf), 0, 0
        warm = bool(w.any())
        few = len(self.y) >= SAMPLED * int(np.count_nonzero(self.stored.counts))
        self.takes_all = few and getattr(self.loss, "quadratic", False)
        if self.samples and not warm and few and not self.takes_all:
            (w, b), passes, warm = self.sample(limits.tol)
        self.stand(w, b)
        while True:
            gap = self.certify()
            iterations += 1
            stop = tell is not None and tell(PassReport(gap, passes + iterations, int(np.count_nonzero(self.w)), self.working))
            if stop or gap.relative <= limits.tol or passes + iterations >= limits.passes or not np.isfinite(gap.objective):
                break
            self.settle(before, gap)
            before = gap
            self.step(gap, limits.tol)
            if warm and self.cuts >= self.patience:
                warm, before, self.early, self.steps = False, Gap(inf, -inf), True, 0
                self.stand(np.zeros(self.width), 0.0)
        return Solution(self.w, self.b, self.theta, gap, iterations, passes + iterations)

    def stand(self, w: np.ndarray, b: float) -> None:
        """Go to w and b."""
        self.w, self.b, self.scores, self.mean = w.copy(), b, np.zeros(len(self.y)), nan
        score_table(*self.rows, self.w, self.scores)

    def sample(self, tol: float) -> tuple[tuple[np.ndarray, float], int, bool]:
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
        return (run.w, run.b), run.steps // SHARE + 1, bool(run.w.any())

    def certify(self) -> Gap:
        """Take slopes, curvatures and gradient, and find the gap."""
        self.look()
        self.bound = max(self.bound, dual_value(self.loss, self.penalty, self.theta, self.y, self.s, self.g, self.lowest))
        return Gap(self.mean + penalised(self.strengths, self.w), self.bound, self.lowest)

    def look(self) -> None:
        """Balance b, and take slopes, curvatures, gradient and mean loss."""
        if self.fit_intercept:
            self.b, self.theta = balanced(self.loss, self.scores, self.y, self.s, self.b)
        else:
            slopes_at(self.loss, self.scores, self.y, self.s, self.b, self.theta)
        if self.fit_intercept or not np.isfinite(self.mean):
            self.mean = float(value_along(self.loss, self.scores + self.b, self.scores, 0.0, self.y, self.s))
        bend(self.loss, self.scores, self.y, self.s, self.b, self.h)
        pull_back(*self.rows, weighted_slopes(self.s, self.theta) / len(self.y), self.g)

    def settle(self, before: Gap, gap: Gap) -> None:
        """Decide how accurate the next model must be: coarse while F falls, finer each time that the gap does not halve."""
        fell = (before.objective - gap.objective) / max(abs(gap.objective), 1e-300)
        self.steps += 1
        coarse = not np.isfinite(before.objective) or (fell > SLOW and gap.relative > 0.1)
        self.early = self.early and coarse and self.steps <= COARSE
        if not self.early:
            self.accuracy = max(1e-8, self.accuracy * 0.3) if gap.relative > 0.5 * before.relative else self.accuracy

    def target(self, gap: Gap, tol: float) -> float:
        """By how much a coordinate's slope may be off when the model is done; minus that where a coarse solution will do."""
        l1, l2, lower, upper = self.strengths
        if l1 == 0.0:
            held = np.clip(self.w - self.g - l2 * self.w, lower, upper) - self.w
            return self.accuracy * max(1e-15, 0.1 * min(0.1, gap.relative) * float(np.abs(held).max(initial=0.0)))
        off = 1.0 / max(self.penalty.reach(-self.g), 1e-3) - 1.0 if l2 == 0.0 else gap.relative
        fine = l1 * self.accuracy * max(0.2 * tol, min(0.2 * off, off * off, 0.1))
        return -fine if self.early else fine

    def choose(self, gap: Gap) -> np.ndarray:
        """The columns of the next model: those that are not 0, and those that may leave it."""
        if self.takes_all:
            return np.flatnonzero(self.stored.counts)
        l1, _, lower, upper = self.strengths
        slack = 1.0 if gap.relative > 0.1 else 1.0 - gap.relative
        moves = (-self.g > l1 * slack) & (upper > 0.0) | (self.g > l1 * slack) & (lower < 0.0)
        return np.flatnonzero((self.w != 0.0) | moves)

    def step(self, gap: Gap, tol: float) -> None:
        """Minimise the model on the working set, and go along its minimiser as far as F falls."""
        W, target = self.choose(gap), self.target(gap, tol)
        self.working = len(W)
        if not len(W):
            return
        h = self.curvatures(W)
        shorter = None
        for models in range(STRETCHED + 1):
            d, moves = self.minimise(W, h, target)
            found = self.search(W, d, moves, 1 if models < STRETCHED else SEARCHES)
            if found.t > 0.0:
                break
            if self.hedges and shorter is None:
                shorter = d, moves, self.search(W, d, moves, SEARCHES)
            stretch(self.loss, self.scores + self.b, moves, self.y, self.s, h)
        if shorter is not None and shorter[2].value < found.value:
            d, moves, found = shorter
        self.cuts += models > 0
        self.go(W, d, moves, found)

    def curvatures(self, W: np.ndarray) -> np.ndarray:
        """Those of the rows, (n,), in a model of some columns."""
        least = self.floor / len(self.y) + self.damping * float(self.h.max(initial=0.0))
        return np.maximum(self.h, least * (self.s > 0.0))

    def prefers_gram(self, m: int, entries: int, pairs: float, coarse: bool) -> bool:
        """Whether H costs less than the epochs over columns that it spares."""
        reach = m if coarse else min(m, 2 * int(np.count_nonzero(self.w)) + 20)
        making = (2.0 if m > 400 else 1.0) * pairs + 3.0 * m * m
        if coarse or m > SOLVED:
            epochs = 6.0 if coarse else 30.0
            return m <= LARGEST_GRAM and making + 0.3 * epochs * m * reach < 1.7 * epochs * entries
        solving = FACTORS * 0.02 * reach**3
        return making + solving < 1.7 * STEPS * entries

    @staticmethod
    def effort(target: float, m: int) -> Effort:
        """Of a model with H at hand: a coarse one is solved well where that costs little."""
        if target >= 0.0:
            return Effort(400, 0.0, 0.3 * target, 200, 1e-8)
        few, many = (40, 1e-3, -0.3 * target), (400, 0.02, -1.0)
        return Effort(*(few if m <= SOLVED else many), 200, 1e-8)

    def rows_within(self, W: np.ndarray, entries: int) -> Table:
        """The rows in some columns alone."""
        if self.within is None or not np.array_equal(self.within[0], W):
            chosen = np.full(self.width, -1, np.int64)
            chosen[W] = np.arange(len(W))
            small = Table(np.zeros(len(self.y) + 1, np.int64), np.empty(entries, np.uint32), np.empty(entries))
            restrict(*self.rows, chosen, *small)
            self.within = W, small
        return self.within[1]

    def minimise(self, W: np.ndarray, h: np.ndarray, target: float) -> tuple[np.ndarray, np.ndarray]:
        """The model's minimiser d (m + 1,), the intercept last, and X d + d_0 (n,)."""
        m, last = len(W), len(W) + self.fit_intercept
        entries, n = int(self.stored.counts[W].sum()), len(self.y)
        g = np.append(self.g[W], 0.0)[:last]
        w, d = np.append(self.w[W], 0.0)[:last], np.zeros(last)
        pairs: float = self.pairs * (entries / max(len(self.rows.values), 1)) ** 2 * (np.count_nonzero(h) / n)
        pairs = CHEAPER * 0.5 * n * m * m if are_dense(entries, n, m) else pairs
        if self.prefers_gram(m, entries, pairs, target < 0.0):
            small = self.rows_within(W, entries)
            H = gram(small, h, m)
            model: Any = ByGram(np.ascontiguousarray(H[:last, :last]), np.zeros(last))
            problem = Subproblem(model, g, w, d, np.diag(H)[:last].copy(), self.near(), m)
            descend(problem, self.effort(target, m))
        else:
            columns, diagonal = self.stored.columns, np.empty(last)
            small = self.rows_within(W, entries) if target >= 0.0 else Table(np.zeros(1, np.int64), *NO_ENTRIES)
            square_columns(*columns, W, h, diagonal)
            model = ByColumns(*columns, W, h, np.zeros(n), small, np.zeros((2, m + 1)))
            epochs, share = (40, 0.15) if target < 0.0 else (300, 0.0)
            descend(Subproblem(model, g, w, d, diagonal, self.near(), m), Effort(epochs, share, target, 100, 1e-3, 3))
            if target < 0.0:
                return d, np.divide(model.z, h, out=np.zeros_like(h), where=h > 0.0)
        moves = np.empty(n)
        score_table(*small, np.ascontiguousarray(d[:m]), moves)
        return d, moves + (d[m] if self.fit_intercept else 0.0)

    def near(self) -> Strengths:
        """l1, l2 and bounds within which the model is believed."""
        return self.strengths

    def search(self, W: np.ndarray, d: np.ndarray, moves: np.ndarray, trials: int) -> Length:
        """The first of 1, 1/2, 1/4 ... of d at which F falls enough by Armijo's rule; 0 where none of so many does."""
        step, old = d[: len(W)], self.w[W]
        held, scores = penalised(self.strengths, old), self.scores + self.b
        slope = float(self.g[W] @ step) + penalised(self.strengths, old + step) - held
        value, t = self.mean + held, 1.0
        for _ in range(trials):
            mean = float(value_along(self.loss, scores, moves, t, self.y, self.s))
            found = mean + penalised(self.strengths, old + t * step)
            if found <= value + 0.01 * t * min(slope, 0.0) + 1e-14 * abs(value):
                return Length(t, found, mean)
            t *= 0.5
        return Length(0.0, inf, self.mean)

    def go(self, W: np.ndarray, d: np.ndarray, moves: np.ndarray, length: Length) -> None:
        """Go so much of d; where that is far less than d, the next model is damped."""
        m, t = len(W), length.t
        self.damping = min(1.0, max(4.0 * self.damping, 0.05)) if t < 0.5 else self.damping / 4.0 * (self.damping > DAMPED)
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
