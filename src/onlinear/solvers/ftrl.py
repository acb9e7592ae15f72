r"""Follow the regularised leader, proximally: a step of its own for each coordinate, from the squares of its gradients (FTRL).

    w_{t+1} = argmin_w  <z_t, w> + t r(w) + sum_j sigma_j w_j^2 / 2,      sigma_j = (beta + sqrt n_j) / eta
            = -soft(z_t, t l1) / (sigma + t l2)                                                            (MATH 18.4)

    n_j += g_j^2,      z_j += g_j - (sigma_j - sigma_j before) w_j,      g = l'(<w_t, x_t>, y_t) x_t

The objective is the mean loss plus the penalty, as for the other solvers. fixed=true does not multiply l1 and l2 by t: the
paper's method, whose penalty fades as rows come. The intercept is a coordinate without penalty. A row with slope 0, or weight
0, moves t alone.

Source: McMahan et al., Ad Click Prediction: a View from the Trenches, KDD 2013 (its alpha is eta here).
Lazy:   z_j and n_j change with x_j alone, and w_j follows from them and t. Averages as in MATH 18.3.
Forget: With a half-life, forget=, all sums fade, just as lazily (MATH 18.8; solvers/forgetting).
Cost:   O(nnz(x_t)) per row.   Needs: none, l1, l2 or elastic-net without bounds.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt
from onlinear.losses import weighted
from onlinear.penalties import soft
from onlinear.solvers.core.dense import dot
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.solvers.core.plain import EXPLICIT, PlainEngine, check_penalty, check_squares
from onlinear.solvers.core.resting import idle_sum
from onlinear.solvers.core.state import State


class FtrlStep(NamedTuple):
    """What one step needs: the size of eta and the intercept; ``l1`` and ``l2``, the penalty of all steps before it."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    l1: Any
    l2: Any


class Ftrl(NamedTuple):
    """Settings: a coordinate's step is eta / (beta + the root of the sum of its squared gradients)."""

    eta: float = 0.3
    beta: float = 1.0
    fixed: bool = False

    letters = ("w", "z", "n")

    def times(self, t: int) -> float:
        """What the penalty is multiplied by in w after t steps."""
        return min(t, 1.0) if self.fixed else t + 0.0

    def step(self, U, x, y, s, t, loss, penalty):
        w, z, n = U[0], U[1], U[2]
        g = weighted(s, loss.slope(dot(w, x), y)) * x
        sigma = (self.beta + np.sqrt(n)) / self.eta
        n += g * g
        new = (self.beta + np.sqrt(n)) / self.eta
        z += g - (new - sigma) * w
        l1, l2 = self.times(t) * penalty.l1, self.times(t) * penalty.l2
        U[0] = -(z - np.minimum(np.maximum(z, -l1), l1)) / (new + l2)
        U[0, 0] = -z[0] / new[0]

    def begin(self, U, penalty):
        U[1] = -(self.beta / self.eta) * U[0]
        U[2] = 0.0

    def predictor(self, U, t, penalty):
        return U[0]

    def sigma_of(self, n):
        """sigma of a coordinate whose squared gradients have the sum n."""
        return (self.beta + sqrt(n)) / self.eta

    def begin_step(self, t, clock, b, penalty):
        times = self.times(t - 1)
        return FtrlStep(self.eta, 0.0, b, clock, times * penalty.l1, times * penalty.l2)

    def weight_of(self, v, c, penalty):
        z, n = v
        return -soft(z, c.l1) / (self.sigma_of(n) + c.l2)

    def moved(self, v, x, theta, c, penalty):
        z, n = v
        return self.pulled(z, self.sigma_of(n), n, theta * x, self.weight_of(v, c, penalty))

    def pulled(self, z, sigma, n, g, w):
        """z and n after the gradient g at the weight w."""
        new = n + g * g
        grown = self.sigma_of(new) - sigma
        return z + (g - grown * w), new

    def idle_sum(self, v, stamp, t, average, penalty):
        z, n = v
        return idle_sum(z, self.sigma_of(n), penalty.l1, penalty.l2, not self.fixed, stamp, t, average)

    def measured(self, theta, row, s, one, c, own):
        """The intercept has no penalty: it moves by -theta / sigma."""
        g = theta * one
        n = own[0] + g * g
        return FtrlStep(c.eta, self.eta / (self.beta + sqrt(n)), c.b, c.after, c.l1, c.l2), (n,)

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        check_penalty(problem, "'comid'")
        return LazyFtrl(self, problem)


class LazyFtrl(PlainEngine):
    """FTRL in O(non-zeros)."""

    own_numbers = (0.0,)  # n of the intercept
    measures_lanes = True

    def check(self, state: State) -> None:
        super().check(state)
        check_squares(state)


adopt(Ftrl, EXPLICIT)
