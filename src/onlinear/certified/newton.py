r"""What runs of prox-Newton share: iterations to a certified gap, working sets, accuracy of models and damping (MATH 20.3).

Each iteration certifies the point by its duality gap and minimises the quadratic model of F on the weights that are not 0 or
may leave it. It stops on nothing but the gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf, nan
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.columns import Stored
from onlinear.certified.conjugate import share_left
from onlinear.certified.costs import Costs
from onlinear.certified.descent import Effort, Subproblem, descend
from onlinear.certified.faces import Faces
from onlinear.certified.gap import Gap
from onlinear.certified.models import SOLVED, ByGram
from onlinear.threads import one_blas_thread

DAMPED = 1e-3  # the least damping
SLOW = 0.02  # a relative decrease of F below it: the working set is near its last
COARSE = 10  # iterations with coarse models, at most
SEARCHES = 40
SECTIONS, GOLDEN = 40, 0.5 * (5.0**0.5 - 1.0)  # of a step that goes to where F is least
SHORTEST, LONGEST = 2.0**-40, 2.0**20
UNSEEN = 1e-14  # of F: what rounding may hide
FARTHEST_STEP = 8.0  # times the largest weight: no model without curvature is believed farther away


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
    """Weights, intercept, slopes (n,), or none where no row was read, the gap (its bound the best one found), outer iterations
    and passes over all rows."""

    w: np.ndarray
    b: Any
    theta: np.ndarray
    gap: Gap
    iterations: int
    passes: int


class Length(NamedTuple):
    """How much of a step brings F down, F there without what other columns are penalised by, and the mean loss."""

    t: float
    value: float
    mean: float


_value = attrgetter("value")

Tell = Callable[[PassReport], bool]  # whether to stop there
Strengths = tuple[float, float, float, float]


def strengths_of(penalty: Any) -> Strengths:
    """l1, l2, and the bounds of all weights."""
    lower, upper = getattr(penalty, "weight_bounds", None) or (-inf, inf)  # of a class that this process has not registered
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


class Newton(ABC):
    """One run on rows in memory: where it stands, the best bound so far, and what is chosen for the next model.

    ``w``: the weights, of several outputs one after the other; ``width``: the columns of one output.
    """

    patience: float = inf  # steps that were cut before a start is left
    costs: Costs

    def __init__(self, stored: Stored, width: int, penalty: Any, s: np.ndarray, fit_intercept: bool) -> None:
        stored.widen(width)
        self.stored, self.rows, self.width, self.penalty = stored, stored.rows, width, penalty
        self.s, self.fit_intercept = s, fit_intercept
        self.strengths = strengths_of(penalty)
        self.lowest, self.bound, self.mean = 0.0, -inf, nan
        self.damping, self.accuracy, self.early = 0.0, 1.0, True
        self.working = self.steps = self.cuts = 0
        self.takes_all = False  # whether one model of all columns ends at the optimum
        l1, _, *bounds = self.strengths
        self.smooth = l1 == 0.0 and bounds == [-inf, inf]  # whether r is smooth everywhere
        self.hard = False  # whether systems of a smooth problem are solved with H at hand
        self.steepest = 0.0  # the largest slope of a smooth problem so far
        self.w, self.g, self.theta = np.zeros(0), np.zeros(0), np.zeros(0)
        self.b: Any = 0.0

    def solve(self, w: np.ndarray, b: Any, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on from w and b until the gap is small enough or the passes are used up."""
        with one_blas_thread:
            return self._solve(w, b, limits, tell)

    def _solve(self, w: np.ndarray, b: Any, limits: Limits, tell: Tell | None) -> Solution:
        before, iterations = Gap(inf, -inf), 0
        w, b, passes = self.first_point(w, b, limits.tol)
        warm = bool(w.any())
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
                warm, before, self.early, self.steps, self.cuts = False, Gap(inf, -inf), True, 0, 0
                self.stand(np.zeros_like(self.w), 0.0 * self.b)
        return Solution(self.w, self.b, self.theta, gap, iterations, passes + iterations)

    def first_point(self, w: np.ndarray, b: Any, tol: float) -> tuple[np.ndarray, Any, int]:
        """Where to stand first, instead of w and b, and the passes over all rows that it takes to find out."""
        return w, b, 0

    @abstractmethod
    def stand(self, w: np.ndarray, b: Any) -> None:
        """Go to w and b."""

    @abstractmethod
    def certify(self) -> Gap:
        """Take slopes, curvatures and gradient, and find the gap."""

    @abstractmethod
    def step(self, gap: Gap, tol: float) -> None:
        """Minimise the model on the working set, and go along its minimiser as far as F falls."""

    @abstractmethod
    def mean_along(self, moves: np.ndarray, t: float) -> float:
        """The mean loss at so much of a step, which moves the scores."""

    def settle(self, before: Gap, gap: Gap) -> None:
        """Decide how accurate the next model must be: coarse while F falls, finer each time that the gap does not halve."""
        fell = (before.objective - gap.objective) / max(abs(gap.objective), 1e-300)
        self.steps += 1
        coarse = not np.isfinite(before.objective) or (fell > SLOW and gap.relative > 0.1)
        self.early = self.early and coarse and self.steps <= COARSE
        if not self.early:
            self.accuracy = max(1e-8, self.accuracy * 0.3) if gap.relative > 0.5 * before.relative else self.accuracy

    @property
    def by_conjugates(self) -> bool:
        """Whether the next step is one of all weights, by conjugate gradients."""
        return self.smooth and not self.hard

    def share(self, gap: Gap, tol: float) -> float:
        """How much of the largest slope of a smooth problem a step may leave."""
        slope = float(np.abs(self.g + self.strengths[1] * self.w).max(initial=0.0))
        self.steepest = max(self.steepest, slope)
        return share_left(slope / self.steepest if slope > 0.0 else 1.0, gap.relative, tol)

    def target(self, gap: Gap, tol: float) -> float:
        """By how much a coordinate's slope may be off when the model is done; minus that where a coarse solution will do."""
        l1, l2, lower, upper = self.strengths
        if l1 == 0.0:
            held = np.clip(self.w - self.g - l2 * self.w, lower, upper) - self.w
            return self.accuracy * max(1e-15, 0.1 * min(0.1, gap.relative) * float(np.abs(held).max(initial=0.0)))
        off = 1.0 / max(self.penalty.reach(-self.g), 1e-3) - 1.0 if l2 == 0.0 else gap.relative
        fine = l1 * self.accuracy * max(0.2 * tol, min(0.2 * off, off * off, 0.1))
        return -fine if self.early else fine

    def all_columns(self) -> np.ndarray:
        """Those that rows or weights have."""
        return np.flatnonzero((self.stored.counts > 0) | (self.w != 0.0))

    def choose(self, gap: Gap) -> np.ndarray:
        """The columns of the next model: those that are not 0, and those that may leave it."""
        if self.takes_all or self.by_conjugates:
            return self.all_columns()
        l1, _, lower, upper = self.strengths
        slack = 1.0 if gap.relative > 0.1 else 1.0 - gap.relative
        moves = (-self.g > l1 * slack) & (upper > 0.0) | (self.g > l1 * slack) & (lower < 0.0)
        return np.flatnonzero((self.w != 0.0) | moves)

    def near(self) -> Strengths:
        """l1, l2 and bounds within which the model is believed."""
        return self.strengths

    def by_matrix(self, H: np.ndarray, W: np.ndarray, target: float, faces: Faces) -> np.ndarray:
        """The minimiser d (m + 1,) of the model on some columns, the intercept last, with H at hand: a smooth problem is a
        system."""
        m, last = len(W), len(W) + self.fit_intercept
        g, w = np.append(self.g[W], 0.0), np.append(self.w[W], 0.0)
        solved = faces.solve(-(g + self.strengths[1] * w)[:last], np.arange(last)) if self.smooth else None
        if solved is not None:
            return np.append(solved, np.zeros(m + 1 - last))
        d, diagonal = np.zeros(m + 1), np.diag(H).copy()
        diagonal[last:] = 0.0  # nothing moves an intercept without curvature
        problem = Subproblem(ByGram(H, np.zeros(m + 1)), g, w, d, diagonal, self.near(), m)
        descend(problem, self.effort(target, m), faces=faces)
        return d

    def faces(self, H: np.ndarray) -> Faces:
        """Those of H (m + 1, m + 1) and l2, which is not that of the intercept."""
        return Faces(H, np.append(np.full(len(H) - 1, self.strengths[1]), 0.0))

    @staticmethod
    def effort(target: float, m: int) -> Effort:
        """Of a model with H at hand: a coarse one is solved well where that costs little."""
        if target >= 0.0:
            return Effort(400, 0.0, 0.3 * target, 200, 1e-8)
        few, many = (40, 1e-3, -0.3 * target), (400, 0.02, -1.0)
        return Effort(*(few if m <= SOLVED else many), 200, 1e-8)

    @staticmethod
    def effort_by_columns(target: float) -> Effort:
        """Of a model with the columns of the rows."""
        return Effort(*((40, 0.15) if target < 0.0 else (300, 0.0)), target, 100, 1e-3, 3)

    def search(self, W: np.ndarray, d: np.ndarray, moves: np.ndarray, trials: int) -> Length:
        """The first of 1, 1/2, 1/4 ... of d at which F falls enough by Armijo's rule; 0 where none of so many does."""
        step, old = d[: len(W)], self.w[W]
        held = penalised(self.strengths, old)
        slope = float(self.g[W] @ step) + penalised(self.strengths, old + step) - held
        value, t = self.mean + held, 1.0
        for _ in range(trials):
            mean = self.mean_along(moves, t)
            found = mean + penalised(self.strengths, old + t * step)
            if found <= value + 0.01 * t * min(slope, 0.0) + UNSEEN * abs(value):
                return Length(t, found, mean)
            t *= 0.5
        return Length(0.0, inf, self.mean)

    def lowest_along(self, W: np.ndarray, d: np.ndarray, moves: np.ndarray) -> Length:
        """How much of d brings F to its least, by golden sections; all of it where F there is the least but for rounding."""
        step, old = d[: len(W)], self.w[W]
        _, _, lower, upper = self.strengths

        def at(t: float) -> Length:
            w = old + t * step
            if t > 1.0 and (w.min() < lower or w.max() > upper):
                return Length(t, inf, inf)
            mean = self.mean_along(moves, t)
            return Length(t, mean + penalised(self.strengths, w), mean)

        here, whole = at(0.0), at(1.0)
        found = whole
        while found.value < here.value and found.t < LONGEST and (further := at(2.0 * found.t)).value < found.value:
            found = further
        while not found.value < here.value and found.t > SHORTEST:
            found = at(0.5 * found.t)
        low, high, found = 0.0, 2.0 * found.t, min(here, found, key=_value)
        for _ in range(SECTIONS * (found.t > 0.0)):
            left, right = at(high - GOLDEN * (high - low)), at(low + GOLDEN * (high - low))
            low, high = (low, right.t) if left.value <= right.value else (left.t, high)
            found = min(found, left, right, key=_value)
        return whole if whole.value <= found.value + UNSEEN * abs(here.value) else found

    def damp(self, t: float) -> None:
        """Where a step was far less than the model's, damp the next one."""
        self.damping = min(1.0, max(4.0 * self.damping, 0.05)) if t < 0.5 else self.damping / 4.0 * (self.damping > DAMPED)
