r"""AdaGrad's two methods, each coordinate with a step of its own: dual averaging (RDA) and composite mirror descent (COMID).

    g = l'(<w_t, x_t>, y_t) x_t,      n_j += g_j^2,      sigma_j = (beta + sqrt n_j) / eta

    adagrad-rda:    w_{t+1} = argmin_w  <G_t, w> + t r(w) + sum_j sigma_j w_j^2 / 2 = -soft(G_t, t l1) / (sigma + t l2)
    adagrad-comid:  w_{t+1} = argmin_w  <g_t, w> + r(w) + sum_j sigma_j (w_j - w_{t,j})^2 / 2
                            = soft(w_t - g_t / sigma, l1 / sigma) / (1 + l2 / sigma)                       (MATH 18.5)

where G_t is the sum of the g. The intercept is a coordinate without penalty. A row with slope 0, or weight 0, moves t alone.

Source: Duchi, Hazan, Singer, JMLR 12, 2011, (3) and (4) with a diagonal matrix; its delta is beta here.
Lazy:   RDA: G_j and n_j change with x_j alone, and w_j follows from them and t; averages as in MATH 18.3. COMID: k idle steps
        are one: |w| -> (|w| + l1/l2) (1 + l2/sigma)^-k - l1/l2, or |w| - k l1/sigma, until 0. An average has no lazy form.
Forget: adagrad-rda with a half-life, forget=, all sums fade, just as lazily (MATH 18.8; solvers/forgetting).
Cost:   O(nnz(x_t)) per row.   Needs: none, l1, l2 or elastic-net without bounds.
"""

from __future__ import annotations

from math import copysign, exp, expm1, inf, log1p, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, lane_by_lane, where
from onlinear.losses import weighted
from onlinear.penalties import soft
from onlinear.solvers.core.dense import choose, dot
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.solvers.core.plain import EXPLICIT, PlainEngine, check_last, check_penalty, check_squares
from onlinear.solvers.core.resting import idle_sum
from onlinear.solvers.core.state import State


@function
def burst_with(n, v):
    """v, or NaN where the sum of squares n is not finite: the weight would stay as it is for good, and nothing would say so."""
    return where(n < inf, v, nan)


class AdagradStep(NamedTuple):
    """What one step needs: the size of eta and the intercept; ``l1`` and ``l2``, the penalty of all steps before it; ``t``."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    l1: Any
    l2: Any
    t: Any


class AdagradRda(NamedTuple):
    """Settings: a coordinate's step is eta / (beta + the root of the sum of its squared gradients)."""

    eta: float = 1.0
    beta: float = 1e-6

    letters = ("w", "z", "n")

    def step(self, U, x, y, s, t, loss, penalty):
        w, z, n = U[0], U[1], U[2]
        g = weighted(s, loss.slope(dot(w, x), y)) * x
        n += g * g
        z += g
        sigma, l1, l2 = (self.beta + np.sqrt(n)) / self.eta, t * penalty.l1, t * penalty.l2
        U[0] = -(z - np.minimum(np.maximum(z, -l1), l1)) / (sigma + l2)
        U[0, 0] = -z[0] / sigma[0]

    def begin(self, U, penalty):
        if np.any(U):
            raise ValueError("adagrad-rda starts at w = 0, where its auxiliary term is smallest; start= is not possible.")

    def predictor(self, U, t, penalty):
        return U[0]

    def sigma_of(self, n):
        return (self.beta + sqrt(n)) / self.eta

    def begin_step(self, t, clock, b, penalty):
        before = t - 1.0
        return AdagradStep(self.eta, 0.0, b, clock, before * penalty.l1, before * penalty.l2, before)

    def weight_of(self, v, c, penalty):
        z, n = v
        return -soft(z, c.l1) / (self.sigma_of(n) + c.l2)

    def moved(self, v, x, theta, c, penalty):
        z, n = v
        g = theta * x
        n += g * g
        return burst_with(n, z + g), n

    def measured(self, theta, row, s, one, c, own):
        """The intercept is -z / sigma: from b it moves by -((sigma' - sigma) b + g) / sigma', g = theta one."""
        g = theta * one
        n = own[0] + g * g
        before, after = self.sigma_of(own[0]), self.sigma_of(n)
        pulled = (after - before) * c.b / g if g != 0.0 else 0.0
        return AdagradStep(c.eta, (1.0 + pulled) / after, c.b, c.after, c.l1, c.l2, c.t), (n,)

    def idle_sum(self, v, stamp, t, average, penalty):
        z, n = v
        return idle_sum(z, self.sigma_of(n), penalty.l1, penalty.l2, True, stamp, t, average)

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        check_penalty(problem, "'comid'")
        return LazyAdagradRda(self, problem)


class LazyAdagradRda(PlainEngine):
    """AdaGrad's dual averaging in O(non-zeros)."""

    own_numbers = (0.0,)  # n of the intercept

    def check(self, state: State) -> None:
        super().check(state)
        check_squares(state)


class AdagradComid(NamedTuple):
    """Settings: a coordinate's step is eta / (beta + the root of the sum of its squared gradients)."""

    eta: float = 1.0
    beta: float = 1e-6

    letters = ("w", "n")

    def step(self, U, x, y, s, t, loss, penalty):
        w, n = U[0], U[1]
        g = weighted(s, loss.slope(dot(w, x), y)) * x
        n += g * g
        size = self.eta / (self.beta + np.sqrt(n))
        v = w - size * g
        k = size * penalty.l1
        U[0] = (v - np.minimum(np.maximum(v, -k), k)) / (1.0 + size * penalty.l2)
        U[0, 0] = v[0]

    def begin(self, U, penalty):
        U[1] = 0.0

    def predictor(self, U, t, penalty):
        return U[0]

    def size_of(self, n):
        return self.eta / (self.beta + sqrt(n))

    def begin_step(self, t, clock, b, penalty):
        return AdagradStep(self.eta, 0.0, b, clock, penalty.l1, penalty.l2, t - 1.0)

    def weight_of(self, v, c, penalty):
        u, n, last = v
        return rested(u, self.size_of(n), c.t - last, c.l1, c.l2)

    def moved(self, v, x, theta, c, penalty):
        g = theta * x
        n = v[1] + g * g
        size = self.size_of(n)
        u = self.weight_of(v, c, penalty) - size * g
        return burst_with(n, soft(u, size * c.l1) / (1.0 + size * c.l2)), n, c.t + 1.0 + 0.0 * u

    def measured(self, theta, row, s, one, c, own):
        """The intercept has no penalty."""
        g = theta * one
        n = own[0] + g * g
        return AdagradStep(c.eta, self.size_of(n), c.b, c.after, c.l1, c.l2, c.t), (n,)

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        check_penalty(problem, "'comid'")
        why = "the sum of a weight that shrinks by its own factor has no closed form here"
        return choose(self, problem, LazyAdagradComid, why if problem.average is not None else None)


@lane_by_lane
def rested(u, size, k, l1, l2):
    """The weight after k steps of this size without a gradient."""
    if l2 == 0.0:
        return soft(u, k * (size * l1))
    shrunk = -k * log1p(size * l2)
    return copysign(max(abs(u) * exp(shrunk) + l1 / l2 * expm1(shrunk), 0.0), u)


class LazyAdagradComid(PlainEngine):
    """AdaGrad's mirror descent in O(non-zeros): u is the weight after step ``last``, the last row that named it."""

    own_numbers = (0.0,)  # n of the intercept
    letters = ("u", "n", "last")

    def first_numbers(self, U: np.ndarray) -> np.ndarray:
        return np.stack([U[0], U[1], np.zeros(U.shape[1])])

    def check(self, state: State) -> None:
        super().check(state)
        check_squares(state)
        check_last(state)


for _solver in (AdagradRda, AdagradComid):
    adopt(_solver, EXPLICIT)
