"""The measures of a moment, by name, taken between chunks of learning; those of every row stand in ``theorems``.

``output`` is what the method predicts with: the average where it has one. ``last`` is the last iterate.
"""

from __future__ import annotations

import numpy as np

from onlinear.papers.measuring import MEASURES, Moment, measure
from onlinear.papers.theorems import mean_gradient, vi_gap
from onlinear.solvers.batch_drs import BatchDrs

__all__ = ["MEASURES", "Moment"]


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


@measure("test error on the support", "test error of the output where the last iterate is not 0")
def _test_error_on_support(moment: Moment) -> float:
    return moment.problem.error(moment.on_support, moment.bias(True), True)


@measure("train error", "training error")
def _train_error(moment: Moment) -> float:
    return moment.problem.error(moment.output, moment.bias(True), False)


@measure("zeros average", "share of zeros in the output")
def _zeros_average(moment: Moment) -> float:
    return float(np.mean(moment.output == 0.0))


@measure("zeros last", "share of zeros in the last iterate")
def _zeros_last(moment: Moment) -> float:
    return float(np.mean(moment.last == 0.0))


@measure("zeros on the support", "share of zeros in the output where the last iterate is not 0")
def _zeros_on_support(moment: Moment) -> float:
    return float(np.mean(moment.on_support == 0.0))


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
    """P1 Thm 4.2, left side at v = (w*, w*, mu*), of the means wbar and zbar; nan without both."""
    if not {"wbar", "zbar"} <= moment.variables.keys():
        return float("nan")
    return vi_gap(moment.problem, moment.variables["wbar"], moment.variables["zbar"])


def _lam(moment: Moment) -> float:
    """The lam of batch Douglas-Rachford; nan for any other method."""
    return moment.learner.solver.lam if isinstance(moment.learner.solver, BatchDrs) else float("nan")


@measure("gradient", "|grad g|, batch DRs")
def _gradient(moment: Moment) -> float:
    lam = _lam(moment)
    return lam if np.isnan(lam) else float(np.linalg.norm(mean_gradient(moment.problem, moment.output)))


@measure("residual", "|eps_g(x, lam)|^2")
def _residual(moment: Moment) -> float:
    """P2 section 2, batch DRs: |x - prox_{lam h}(x - lam grad g(x))|^2, h separable."""
    lam, x = _lam(moment), moment.output
    if np.isnan(lam):
        return lam
    v = x - lam * mean_gradient(moment.problem, x)
    return float(np.sum((x - np.array([moment.problem.penalty.prox(value, lam) for value in v])) ** 2))


@measure("residual bound", "bound of |eps_g|^2")
def _residual_bound(moment: Moment) -> float:
    """P2 (2.5), batch DRs: |(x_0 - x*) + lam (grad g(x_0) - grad g(x*))|^2 / (t + 1), x_0 = 0."""
    lam, problem, best = _lam(moment), moment.problem, moment.problem.optimum.w
    if np.isnan(lam):
        return lam
    start = lam * (mean_gradient(problem, np.zeros_like(best)) - mean_gradient(problem, best)) - best
    return float(start @ start) / (moment.t + 1)


@measure("constraint error", "distance of w* from the hyperplane of the running means")
def _constraint_error(moment: Moment) -> float:
    """P5 Prop. 2.2: |ybar_t - <w*, xbar_t>| / |w*|; nan for a method without running means."""
    best, means = moment.problem.optimum.w, moment.variables
    if "xbar" not in means:
        return float("nan")
    xbar, ybar = means["xbar"], means["ybar"]
    return float(abs(ybar - best @ xbar) / np.linalg.norm(best))


@measure("constraint bound", "bound of P5's Proposition 2.2")
def _constraint_bound(moment: Moment) -> float:
    """P5 Prop. 2.2, the proof's bound: (|w*| |xbar_t - xbar| + |ybar_t - ybar|) / |w*|."""
    split, best = moment.problem.split, moment.problem.optimum.w
    if "xbar" not in moment.variables:
        return float("nan")
    xbar = np.asarray(split.X.mean(axis=0)).ravel()
    far = np.linalg.norm(best) * np.linalg.norm(moment.variables["xbar"] - xbar)
    return float((far + abs(moment.variables["ybar"] - split.y.mean())) / np.linalg.norm(best))


@measure("wrong beyond the optimum", "test rows wrong now, right at the optimum")
def _wrong_beyond(moment: Moment) -> float:
    problem = moment.problem
    return float(np.sum(problem.wrong(moment.output, moment.bias(True)) & ~problem.wrong(problem.optimum.w, 0.0)))


@measure("wrong now", "test rows: 0 right, 1 wrong")
def _wrong_now(moment: Moment) -> np.ndarray:
    return moment.problem.wrong(moment.output, moment.bias(True)).astype(np.uint8)


@measure("wrong rows", "test rows: 0 right, 1 wrong, 2 wrong at the optimum too")
def _wrong_rows(moment: Moment) -> np.ndarray:
    problem = moment.problem
    now = problem.wrong(moment.output, moment.bias(True)).astype(np.uint8)
    return np.where(problem.wrong(problem.optimum.w, 0.0), 2, now).astype(np.uint8)
