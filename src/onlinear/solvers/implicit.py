r"""Implicit SGD: an implicit step on the loss, an explicit one on the penalty (I-SGD).

    v       = w_t - eta_t (l1 sign(w_t) + l2 w_t)
    theta   in dl(a - C theta),   a = <v, x_t>,   C = eta_t |x_t|^2                                            (MATH 2.2)
    w_{t+1} = v - eta_t theta x_t                                                                              (MATH 8.9)

with a weight s: theta_s(a, C) = s theta(a, s C). An intercept adds 1 to |x_t|^2 and is moved by eta_t theta (MATH 17).

Source: Kulis, Bartlett, ICML 2010; Song et al., Fully Implicit Online Learning, 2018 (I-SGD).
Lazy:   as SGD: scaled vector for no penalty or l2 (scaled_vector.py), closed form of the oscillation for l1, constant step
        and no l2 or average (signs.py). Any other l1: the dense step, O(d).
Cost:   O(nnz(x_t)) per row, O(d) where dense.   Needs: a loss with theta; none, l1, l2 or elastic-net.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, kernel
from onlinear.losses import is_joint, weighted
from onlinear.penalties import ElasticNet, is_bare
from onlinear.schedules import Power
from onlinear.solvers.core.batch_dual import DualStart
from onlinear.solvers.core.dense import Dense, dot
from onlinear.solvers.core.engine import Engine, Preset, Problem, needs_theta
from onlinear.solvers.core.scaled_vector import Scaled, check_subgradient, forward, why_signs_are_dense
from onlinear.solvers.core.signs import Signs
from onlinear.solvers.core.state import THETA, State, T, everything
from onlinear.solvers.fiol import Fiol
from onlinear.solvers.sgd import Sgd


@kernel
def start_after_penalty(schedule, penalty, columns, now, weights, v):
    """Where the implicit step of a batch starts: at the weights after the penalty's explicit step; its size."""
    eta = schedule.at(int(now[T]) + 1)
    for p in range(columns.shape[0]):
        v[p] = weights[p] - eta * (penalty.l1 * np.sign(weights[p]) + penalty.l2 * weights[p])
    return eta


class ImplicitSgd(NamedTuple):
    """Settings of implicit SGD; ``tied`` is false: the intercept takes the step of the weights."""

    schedule: Any = Power()
    tied: bool = False

    letters = ("w", "theta")

    def step(self, U, x, y, s, t, loss, penalty):
        eta = self.schedule.at(t)
        v = forward(penalty, U[0], eta)
        theta = weighted(s, loss.theta(dot(v, x), s * eta * dot(x, x), y))
        U[0] = v - eta * theta * x
        U[1, 0] = theta

    def begin(self, U, penalty):
        U[1] = 0.0

    def predictor(self, U, t, penalty):
        return U[0]

    def pull(self, loss, p, a, c, y):
        """theta of the implicit step from a."""
        return loss.theta(a, c, y)

    def ball(self):
        """No projection."""
        return inf

    def needs_norm(self):
        """theta uses c."""
        return True

    def mean_form(self) -> Sgd:
        """SGD, which moves from the thetas of a batch as implicit SGD does."""
        return Sgd(self.schedule)

    def loss_start(self, engine: Engine, state: State) -> DualStart:
        """The weights after the penalty's explicit step."""
        schedule, penalty = engine.solver.schedule, engine.penalty

        def at(columns: np.ndarray) -> tuple[np.ndarray, float]:
            weights, v = engine.weights(state, columns), np.empty(len(columns))
            return v, start_after_penalty(schedule, penalty, columns, state.now, weights, v)

        return DualStart(ElasticNet(), None if isinstance(engine, Dense) else (start_after_penalty, (schedule, penalty)), at)

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        check_subgradient(problem)
        if is_joint(problem.loss) and is_bare(problem.penalty):
            return Fiol(self.schedule).engine(problem)
        if problem.penalty.l1 == 0.0:
            return ScaledImplicit(self, problem)
        why_not = why_signs_are_dense(self, problem)
        return SignsImplicit(self, problem) if why_not is None else DenseImplicit(self, problem, why_not)


class ScaledImplicit(Scaled):
    """Implicit SGD as a scaled vector."""

    implicit = True

    def variables(self, state: State) -> dict[str, Any]:
        return {"w": self.weights(state, everything(state)), "theta": float(state.now[THETA])}


class SignsImplicit(Signs):
    """Implicit SGD with L1 and a constant step."""

    implicit = True

    def variables(self, state: State) -> dict[str, Any]:
        return {"w": self.weights(state, everything(state)), "theta": float(state.now[THETA])}


class DenseImplicit(Dense):
    """Implicit SGD by its dense step."""

    def variables(self, state: State) -> dict[str, Any]:
        U = state.arrays["U"]
        return {"w": U[0, 1:].copy(), "theta": float(U[1, 0])}


PRESETS = {"i-sgd": Preset(ImplicitSgd)}

adopt(ImplicitSgd)
