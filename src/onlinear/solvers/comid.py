r"""Composite mirror descent: an explicit step on the loss, a prox on the penalty (COMID, OPG, HRCOMID, HRMD-W).

    w_{t+1} = argmin_w  eta_t <g_t, w> + eta_t r(w) + |w - w_t|^2 / 2
            = prox_{eta_t r}(w_t - eta_t g_t),          g_t = l'(<w_t, x_t>, y_t) x_t                          (MATH 5.1)

    opg       the same step by its other name
    hrcomid   eta_t = 1/(sigma t), uniform average
    hrmd-w    eta_t = 2/(sigma t), weights t+1                                                                 (MATH 5.3)

Source: Duchi, Shalev-Shwartz, Singer, Tewari, COLT 2010; Shao, Tao, Jiang, Zhou, J. Software 25(9), 2014 (HRMD-W);
        Shi, Liu, section 1 (OPG). Intercept: MATH 17.
Lazy:   where x_t is 0 the step is the bare prox, so a coordinate keeps its potential (penalties.py) and is written only when
        its gradient is not 0. State: one number per feature; with an average two more.
Cost:   O(nnz(x_t)) per row.   Needs: a penalty with a clock; otherwise the dense step, O(d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinear.compiled import adopt
from onlinear.losses import weighted
from onlinear.schedules import Power
from onlinear.solvers.core.dense import choose, dot, intercept_step, prox_but_first
from onlinear.solvers.core.engine import Engine, Preset, Problem
from onlinear.solvers.core.potentials import PotentialEngine, Step, why_not_lazy


class Comid(NamedTuple):
    """Settings of composite mirror descent; ``tied``: the step is tied to l2, so the intercept's is min(eta_t, 1/sqrt t)."""

    schedule: Any = Power()
    tied: bool = False

    letters = ("w",)

    def step(self, U, x, y, s, t, loss, penalty):
        w, eta = U[0], self.schedule.at(t)
        g = weighted(s, loss.slope(dot(w, x), y)) * x
        move = eta * g
        move[0] = intercept_step(eta, t, self.tied) * g[0]
        U[0] = prox_but_first(penalty, w - move, eta)

    def begin(self, U, penalty):
        """U holds the start in every letter; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def decay_step(self, t: int) -> float:
        """The step of the prox in step t."""
        return self.schedule.at(t)

    def begin_step(self, t, clock, b, penalty):
        eta = self.schedule.at(t)
        return Step(eta, intercept_step(eta, t, self.tied), b, clock, penalty.tick(clock, eta), clock)

    def terms(self, v, x, c, penalty):
        return (penalty.raw_weight(v, c.clock) * x,)

    def scores(self, sums, one, s, c, penalty):
        return (sums[0] / penalty.unit(c.clock) + c.b * one,)

    def pull(self, row, y, s, c, loss):
        return weighted(s, loss.slope(row[0], y))

    def moved(self, v, x, theta, c, penalty):
        step = c.eta * theta * penalty.unit(c.clock)
        return penalty.raw_deposit(penalty.raw_weight(v, c.clock) - step * x, c.eta, c.clock, c.after)

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        return choose(self, problem, LazyComid, why_not_lazy(problem))


class LazyComid(PotentialEngine):
    """COMID in O(non-zeros)."""

    explicit = scores_means = stepped = True
    implicit = False


PRESETS = {
    "opg": Preset(Comid),
    "hrcomid": Preset(Comid, tied=(1.0, 0.0), average="uniform"),
    "hrmd-w": Preset(Comid, tied=(2.0, 0.0), average="weighted-t1"),
}

adopt(Comid)
