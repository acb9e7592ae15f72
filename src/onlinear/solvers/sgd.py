r"""Stochastic subgradient descent on the full objective (SGD, ASGD, SGD-W, alpha-suffix, Pegasos).

    w_{t+1} = Pi( w_t - eta_t [ l'(<w_t, x_t>, y_t) x_t + l1 sign(w_t) + l2 w_t ] )                            (MATH 4.1)

with Pi the projection on the ball |w| <= radius, if any.

    asgd        uniform average (Polyak-Ruppert)                                                               (MATH 4.3)
    sgd-w       eta_t = 2/(sigma (t+1)), weights t                                                             (MATH 4.4)
    sgd-suffix  uniform average of the last alpha T steps                                                      (MATH 4.2d)
    pegasos     eta_t = 1/(lam t), lam the penalty's l2; project=true: on the ball of radius 1/sqrt(lam)       (MATH 4.5)

Source: Lacoste-Julien, Schmidt, Bach, 2012 (SGD-W); Rakhlin, Shamir, Sridharan, ICML 2012 (suffix); Shalev-Shwartz, Singer,
        Srebro, ICML 2007 (Pegasos); Shao et al., J. Software 25(9), 2014, Alg. 1. Intercept: MATH 17.
Lazy:   no penalty or l2, any schedule, average and ball: scaled vector (scaled_vector.py). l1 with a constant step, without l2,
        average and ball: closed form of the oscillation (signs.py). Any other l1: the dense step, O(d).
Cost:   O(nnz(x_t)) per row, O(d) where dense.   Needs: none, l1, l2 or elastic-net (a subgradient).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt
from onlinear.losses import Hinge, is_joint, weighted
from onlinear.penalties import is_bare
from onlinear.schedules import Power
from onlinear.solvers.comid import Comid
from onlinear.solvers.core.dense import Dense, dot, intercept_step
from onlinear.solvers.core.engine import Engine, Preset, Problem
from onlinear.solvers.core.scaled_vector import Scaled, check_subgradient, forward, strong_convexity, why_signs_are_dense
from onlinear.solvers.core.signs import Signs


class Sgd(NamedTuple):
    """Settings of SGD; ``tied``: the step is tied to l2, so the intercept's is min(eta_t, 1/sqrt t)."""

    schedule: Any = Power()
    tied: bool = False
    radius: float = inf

    letters = ("w",)

    def step(self, U, x, y, s, t, loss, penalty):
        w, eta = U[0], self.schedule.at(t)
        g = weighted(s, loss.slope(dot(w, x), y))
        new = forward(penalty, w, eta) - eta * g * x
        new[0] = w[0] - intercept_step(eta, t, self.tied) * g * x[0]
        size = sqrt(dot(new[1:], new[1:]))
        if size > self.radius:
            new[1:] *= self.radius / size
        U[0] = new

    def begin(self, U, penalty):
        """U holds the start in every letter; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def pull(self, loss, p, a, c, y):
        """theta: the slope at the score before the step."""
        return loss.slope(p, y)

    def ball(self):
        """The radius of the projection."""
        return self.radius

    def needs_norm(self):
        """The slope uses no c."""
        return False

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        check_subgradient(problem)
        if is_joint(problem.loss) and is_bare(problem.penalty) and self.radius == inf:
            return Comid(self.schedule, self.tied).engine(problem)
        solver = self._replace(radius=float(self.radius))
        if problem.penalty.l1 == 0.0:
            return Scaled(solver, problem)
        why_not = why_signs_are_dense(solver, problem)
        return Signs(solver, problem) if why_not is None else Dense(solver, problem, why_not)


class Pegasos(NamedTuple):
    """Pegasos; ``project``: project on the ball of radius 1/sqrt(lam), which holds the minimiser of the unweighted hinge."""

    project: bool = False

    letters = ("w",)

    def as_sgd(self, penalty):
        """The same method as SGD with its step and ball."""
        lam = penalty.l2
        return Sgd(Power(1.0 / lam, 0.0, 1.0), True, 1.0 / sqrt(lam) if self.project else inf)

    def step(self, U, x, y, s, t, loss, penalty):
        self.as_sgd(penalty).step(U, x, y, s, t, loss, penalty)

    def begin(self, U, penalty):
        """U holds the start in every letter; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        strong_convexity("pegasos", problem.penalty)
        if not self.project:
            return self.as_sgd(problem.penalty).engine(problem)
        loss = problem.loss
        if not isinstance(loss, Hinge) or loss.margin > 1.0 or loss.factor > 1.0:
            raise ValueError(
                f"pegasos with project=true: the radius 1/sqrt(l2) is derived for the hinge with margin and factor at most 1, "
                f"got {loss!r}; use project=false."
            )
        check_subgradient(problem)
        if problem.penalty.l1 > 0.0:
            raise ValueError("pegasos with project=true takes the l2 penalty alone; with l1 use project=false.")
        return InBall(self.as_sgd(problem.penalty), problem)


class InBall(Scaled):
    """Pegasos with projection: refuses rows for which its ball is too small."""

    def check_rows(self, weights: np.ndarray) -> None:
        heaviest = float(np.max(weights, initial=0.0))
        if heaviest * self.problem.loss.factor > 1.0:
            raise ValueError(
                f"pegasos with project=true: sample weights must be at most 1, got {heaviest:g}; its radius 1/sqrt(l2) is "
                "derived for the unweighted hinge. Use project=false."
            )


PRESETS = {
    "asgd": Preset(Sgd, average="uniform"),
    "sgd-w": Preset(Sgd, tied=(2.0, 1.0), average="weighted-t"),
    "sgd-suffix": Preset(Sgd, average="suffix,alpha=0.5"),
}

adopt(Sgd)
adopt(Pegasos)
