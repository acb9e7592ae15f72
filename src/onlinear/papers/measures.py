"""The measures along a run, by name. A measure of a moment is taken between chunks of learning; one of rows sees each row.

``output`` is what the method predicts with: the average where it has one. ``last`` is the last iterate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinear import Learner
from onlinear.papers.problems import LearningProblem
from onlinear.solvers.batch_drs import BatchDrs


class Moment:
    """A learner between two rows."""

    def __init__(self, learner: Learner, problem: LearningProblem, trackers: dict[type, Any]) -> None:
        self.learner, self.problem, self.trackers = learner, problem, trackers

    @property
    def t(self) -> int:
        """Rows learned."""
        return self.learner.t

    @cached_property
    def output(self) -> np.ndarray:
        """The weights that predict."""
        return self.learner.weights(average=True)

    @cached_property
    def last(self) -> np.ndarray:
        """The last iterate."""
        return self.learner.weights()

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The method's vectors."""
        return self.learner.variables()

    def bias(self, average: bool) -> Any:
        """The intercept."""
        return self.learner.intercept(average=average)


class Tracker:
    """Sees every row before and after its step."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        self.learner, self.problem = learner, problem
        self.t = 0

    def before(self, x: np.ndarray, y: float) -> None:
        """The learner stands at w_t."""

    def after(self, x: np.ndarray, y: float) -> None:
        """The learner stands at w_{t+1}."""

    def sample_loss(self, w: np.ndarray, x: np.ndarray, y: float) -> float:
        """l_t(w)."""
        loss = self.problem.loss
        return float(getattr(loss, "factor", 1.0)) * loss.value(float(w @ x), y)

    def sample_slope(self, w: np.ndarray, x: np.ndarray, y: float) -> float:
        """The slope of l_t in the score at w."""
        loss = self.problem.loss
        return float(getattr(loss, "factor", 1.0)) * loss.slope(float(w @ x), y)


class Measure(NamedTuple):
    """A measure: its axis label, how it is taken, and the tracker it reads, if it needs every row."""

    label: str
    take: Callable[[Moment], Any]
    tracker: type[Tracker] | None = None


MEASURES: dict[str, Measure] = {}


def measure(name: str, label: str | None = None) -> Callable[[Callable[[Moment], Any]], Callable[[Moment], Any]]:
    """Enter a function of a moment under a name."""

    def enter(take: Callable[[Moment], Any]) -> Callable[[Moment], Any]:
        MEASURES[name] = Measure(label or name, take)
        return take

    return enter


def tracked(name: str, tracker: type[Tracker], attribute: str, label: str | None = None) -> None:
    """Enter an attribute of a tracker under a name."""
    MEASURES[name] = Measure(label or name, lambda moment: float(getattr(moment.trackers[tracker], attribute)), tracker)


# --- of a moment -----------------------------------------------------------------------------------------------------


@measure("objective", "objective F")
def _objective(moment: Moment) -> float:
    return moment.problem.objective(moment.output)


@measure("objective last", "objective F of the last iterate")
def _objective_last(moment: Moment) -> float:
    return moment.problem.objective(moment.last)


@measure("gap", "F - F*")
def _gap(moment: Moment) -> float:
    return moment.problem.objective(moment.output) - moment.problem.optimum.value


@measure("gap last", "F - F* of the last iterate")
def _gap_last(moment: Moment) -> float:
    return moment.problem.objective(moment.last) - moment.problem.optimum.value


@measure("relative gap", "(F - F*) / (F(0) - F*)")
def _relative_gap(moment: Moment) -> float:
    problem = moment.problem
    best = problem.optimum
    return (problem.objective(moment.output) - best.value) / (problem.objective(np.zeros_like(best.w)) - best.value)


@measure("test error")
def _test_error(moment: Moment) -> float:
    return moment.problem.error(moment.output, moment.bias(True), True)


@measure("test error last", "test error of the last iterate")
def _test_error_last(moment: Moment) -> float:
    return moment.problem.error(moment.last, moment.bias(False), True)


@measure("train error", "training error")
def _train_error(moment: Moment) -> float:
    return moment.problem.error(moment.output, moment.bias(True), False)


@measure("zeros average", "share of zeros in the output")
def _zeros_average(moment: Moment) -> float:
    return float(np.mean(moment.output == 0.0))


@measure("zeros last", "share of zeros in the last iterate")
def _zeros_last(moment: Moment) -> float:
    return float(np.mean(moment.last == 0.0))


@measure("nonzeros average", "non-zeros of the output")
def _nonzeros_average(moment: Moment) -> float:
    return float(np.count_nonzero(moment.output))


@measure("nonzeros last", "non-zeros of the last iterate")
def _nonzeros_last(moment: Moment) -> float:
    return float(np.count_nonzero(moment.last))


@measure("distance", "|w - w*|^2")
def _distance(moment: Moment) -> float:
    return float(np.sum((moment.output - moment.problem.optimum.w) ** 2))


@measure("distance last", "|w - w*|^2 of the last iterate")
def _distance_last(moment: Moment) -> float:
    return float(np.sum((moment.last - moment.problem.optimum.w) ** 2))


@measure("norm", "|w|")
def _norm(moment: Moment) -> float:
    return float(np.linalg.norm(moment.output))


@measure("dual norm", "|mu|")
def _dual_norm(moment: Moment) -> float:
    """Of SADMM and its kind; nan for a method without mu."""
    return float(np.linalg.norm(moment.variables.get("mu", np.nan)))


@measure("progressive loss", "mean loss of each row before its step")
def _progressive(moment: Moment) -> float:
    return moment.learner.progressive_loss


@measure("vi gap", "VI gap at the saddle point")
def _vi_gap(moment: Moment) -> float:
    """P1 Thm 4.2, left side at v = (w*, w*, mu*): l(wbar) + r(zbar) - F* + <mu*, wbar - zbar>; nan without both averages."""
    if not {"wbar", "zbar"} <= moment.variables.keys():
        return float("nan")
    problem, best = moment.problem, moment.problem.optimum
    w, z = moment.variables["wbar"], moment.variables["zbar"]
    at_w = problem.objective(w) - problem.penalty_value(w)
    return at_w + problem.penalty_value(z) - best.value + float(best.mu @ (w - z))


def _mean_gradient(problem: LearningProblem, w: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss."""
    factor = float(getattr(problem.loss, "factor", 1.0))
    slopes = [factor * problem.loss.slope(s, y) for s, y in zip(np.asarray(problem.split.X @ w), problem.y, strict=True)]
    return np.asarray(problem.split.X.T @ np.array(slopes)) / len(problem.y)


def _lam(moment: Moment) -> float:
    """The lam of batch Douglas-Rachford; nan for any other method."""
    return moment.learner.solver.lam if isinstance(moment.learner.solver, BatchDrs) else float("nan")


@measure("gradient", "|grad g|, batch DRs")
def _gradient(moment: Moment) -> float:
    lam = _lam(moment)
    return lam if np.isnan(lam) else float(np.linalg.norm(_mean_gradient(moment.problem, moment.output)))


@measure("residual", "|eps_g(x, lam)|^2")
def _residual(moment: Moment) -> float:
    """P2 section 2, batch DRs: |x - prox_{lam h}(x - lam grad g(x))|^2, h separable."""
    lam, x = _lam(moment), moment.output
    if np.isnan(lam):
        return lam
    v = x - lam * _mean_gradient(moment.problem, x)
    return float(np.sum((x - np.array([moment.problem.penalty.prox(value, lam) for value in v])) ** 2))


@measure("residual bound", "bound of |eps_g|^2")
def _residual_bound(moment: Moment) -> float:
    """P2 (2.5), batch DRs: |(x_0 - x*) + lam (grad g(x_0) - grad g(x*))|^2 / (t + 1), x_0 = 0."""
    lam, problem, best = _lam(moment), moment.problem, moment.problem.optimum.w
    if np.isnan(lam):
        return lam
    start = lam * (_mean_gradient(problem, np.zeros_like(best)) - _mean_gradient(problem, best)) - best
    return float(start @ start) / (moment.t + 1)


@measure("constraint error", "distance of w* from the hyperplane of the running means")
def _constraint_error(moment: Moment) -> float:
    """P5 Prop. 2.2: |ybar_t - <w*, xbar_t>| / |w*|."""
    best, xbar, ybar = moment.problem.optimum.w, moment.variables["xbar"], moment.variables["ybar"]
    return float(abs(ybar - best @ xbar) / np.linalg.norm(best))


@measure("constraint bound", "bound of P5's Proposition 2.2")
def _constraint_bound(moment: Moment) -> float:
    """P5 Prop. 2.2, the proof's bound: (|w*| |xbar_t - xbar| + |ybar_t - ybar|) / |w*|."""
    split, best = moment.problem.split, moment.problem.optimum.w
    xbar = np.asarray(split.X.mean(axis=0)).ravel()
    far = np.linalg.norm(best) * np.linalg.norm(moment.variables["xbar"] - xbar)
    return float((far + abs(moment.variables["ybar"] - split.y.mean())) / np.linalg.norm(best))


@measure("wrong beyond the optimum", "test rows wrong now, right at the optimum")
def _wrong_beyond(moment: Moment) -> float:
    problem = moment.problem
    return float(np.sum(problem.wrong(moment.output, moment.bias(True)) & ~problem.wrong(problem.optimum.w, 0.0)))


@measure("wrong rows", "test rows: 0 right, 1 wrong, 2 wrong at the optimum too")
def _wrong_rows(moment: Moment) -> np.ndarray:
    problem = moment.problem
    now = problem.wrong(moment.output, moment.bias(True)).astype(np.uint8)
    return np.where(problem.wrong(problem.optimum.w, 0.0), 2, now).astype(np.uint8)


# --- of every row ----------------------------------------------------------------------------------------------------


class Regret(Tracker):
    """(1/t) sum_k [l_k(w_k) + r(w_k) - l_k(w*) - r(w*)], w_k the last iterate before row k."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.total, self.r_star = 0.0, problem.penalty_value(problem.optimum.w)

    def before(self, x: np.ndarray, y: float) -> None:
        w, best = self.learner.weights(), self.problem.optimum.w
        own = self.sample_loss(w, x, y) + self.problem.penalty_value(w)
        self.total += own - self.sample_loss(best, x, y) - self.r_star
        self.t += 1

    @property
    def average(self) -> float:
        """The average regret."""
        return self.total / max(self.t, 1)


class OneStep(Tracker):
    """P3's one-step gain delta_t = l_t(w_{t+1}) - l_t(w_t) - <g_t, w_{t+1} - w_t>, and the largest |g_t|, |w_t - w*|."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.total, self.least, self.largest_gradient, self.largest_distance = 0.0, np.inf, 0.0, 0.0

    def before(self, x: np.ndarray, y: float) -> None:
        self.w = self.learner.weights()
        self.slope = self.sample_slope(self.w, x, y)
        self.largest_gradient = max(self.largest_gradient, abs(self.slope) * float(np.linalg.norm(x)))
        self.largest_distance = max(self.largest_distance, float(np.linalg.norm(self.w - self.problem.optimum.w)))

    def after(self, x: np.ndarray, y: float) -> None:
        new = self.learner.weights()
        gain = self.sample_loss(new, x, y) - self.sample_loss(self.w, x, y) - self.slope * float((new - self.w) @ x)
        self.total += gain
        self.least = min(self.least, gain)
        self.t += 1


class Inequality(Tracker):
    """P1 Thm 4.1: both sides, at the saddle point and at 20 random v = (w, z, mu); SADMM with a fixed rho.

    sum_k [F^k(util) - F^k(u)] + sum_k <vtil - v, Q(v)>  <=  (rho/2) |z|^2 + |mu|^2 / (2 rho)
    with util = (w, z) after row k, mutil = mu + rho (w - z before it), Q(v) = (mu, -mu, z - w).
    """

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        best, rho = problem.optimum, float(learner.solver.rho)
        v = np.random.default_rng(0).normal(size=(21, 3, len(best.w)))
        v[0] = best.w, best.w, best.mu
        self.rho, self.v = rho, v
        self.penalties = np.array([problem.penalty_value(z) for z in v[:, 1]])
        self.right = rho / 2.0 * np.sum(v[:, 1] ** 2, axis=1) + np.sum(v[:, 2] ** 2, axis=1) / (2.0 * rho)
        self.left = np.zeros(len(v))

    def before(self, x: np.ndarray, y: float) -> None:
        now = self.learner.variables()
        self.z, self.mu = now["z"], now["mu"]

    def after(self, x: np.ndarray, y: float) -> None:
        now, v = self.learner.variables(), self.v
        w, z = now["w"], now["z"]
        fitted = self.sample_loss(w, x, y) + self.problem.penalty_value(z)
        losses = np.array([self.sample_loss(other, x, y) for other in v[:, 0]])
        mu = self.mu + self.rho * (w - self.z)
        pull = (w - z) * v[:, 2] - (v[:, 0] - v[:, 1]) * v[:, 2] + (mu - v[:, 2]) * (v[:, 1] - v[:, 0])
        self.left += fitted - losses - self.penalties + pull.sum(axis=1)

    @property
    def largest(self) -> float:
        """The largest left side over right side."""
        return float(np.max(self.left / self.right))

    @property
    def saddle(self) -> float:
        """The left side at the saddle point."""
        return float(self.left[0])


class Hyperplane(Tracker):
    """P5's quantities of every step: what = w_t - eta_t g_t, its projection w_{t+1}, tan^2 theta_t, and Thm 3.2's two sides."""

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        super().__init__(learner, problem)
        self.holds = self.decreases = 0
        self.H, self.tangent, self.last_tangent = np.inf, 0.0, 0.0
        self.left = self.moved = self.etas = self.gradient = 0.0
        self.losses = 0.0
        self.regret = 0.0

    def before(self, x: np.ndarray, y: float) -> None:
        self.w = self.learner.weights()
        self.eta = self.learner.engine.eta(self.learner.t + 1)
        self.g = -(y - float(self.w @ x)) * x
        best = self.problem.optimum.w
        self.excess = self.sample_loss(self.w, x, y) - self.sample_loss(best, x, y)
        self.hat = self.w - self.eta * self.g

    def after(self, x: np.ndarray, y: float) -> None:
        self.t += 1
        new, best = self.learner.weights(), self.problem.optimum.w
        moved = float(np.sum((new - self.hat) ** 2))
        before, now = float(np.sum((self.w - best) ** 2)), float(np.sum((new - best) ** 2))
        self.holds += now - before <= self.eta**2 * float(self.g @ self.g) - 2.0 * self.eta * self.excess - moved + 1e-12
        tangent = moved / now
        self.decreases += tangent < self.last_tangent
        self.last_tangent, self.tangent = tangent, float(np.sqrt(tangent))
        if self.t > 1:  # the first step interpolates; the theorem's sum starts with the second
            self.H = min(self.H, tangent / self.eta)
        self.left += 2.0 * self.eta * self.excess
        self.regret += self.excess
        self.moved += moved
        self.etas += self.eta**2
        self.gradient = max(self.gradient, float(np.linalg.norm(self.g)))

    @property
    def holding(self) -> float:
        """The share of steps on which Theorem 3.2 holds."""
        return self.holds / max(self.t, 1)

    @property
    def decreasing(self) -> float:
        """The share of steps on which tan theta_t decreased."""
        return self.decreases / max(self.t - 1, 1)

    @property
    def right(self) -> float:
        """The right side of Theorem 3.3: |w*|^2 - Gs^2 + G^2 sum eta^2, Gs^2 as measured."""
        return float(np.sum(self.problem.optimum.w**2)) - self.moved + self.gradient**2 * self.etas

    @property
    def mean_excess(self) -> float:
        """(1/t) sum of l_k(w_k) - l_k(w*)."""
        return self.regret / max(self.t, 1)


tracked("regret", Regret, "average", "average regret")
tracked("gain sum", OneStep, "total", "sum of one-step gains")
tracked("gain least", OneStep, "least", "least one-step gain")
tracked("gradient bound", OneStep, "largest_gradient", "largest |g_t|")
tracked("distance bound", OneStep, "largest_distance", "largest |w_t - w*|")
tracked("theorem 4.1 left", Inequality, "saddle", "left side of Theorem 4.1 at the saddle point")
tracked("theorem 4.1 ratio", Inequality, "largest", "largest left / right side of Theorem 4.1")
tracked("theorem 3.2 share", Hyperplane, "holding", "share of steps on which Theorem 3.2 holds")
tracked("theorem 3.3 left", Hyperplane, "left", "2 sum eta (l(w_t) - l(w*))")
tracked("theorem 3.3 right", Hyperplane, "right", "D^2 - Gs^2 + G^2 sum eta^2")
tracked("projection gain", Hyperplane, "moved", "sum |w_{t+1} - what|^2")
tracked("largest gradient", Hyperplane, "gradient", "largest |g_t|")
tracked("mean excess", Hyperplane, "mean_excess", "mean of l(w_t) - l(w*)")
tracked("tangent", Hyperplane, "tangent", "tan theta_t")
tracked("tangent decreases", Hyperplane, "decreasing", "share of steps on which tan theta decreases")
tracked("H", Hyperplane, "H", "least tan^2 theta / eta")
