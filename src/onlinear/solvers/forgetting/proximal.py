r"""Follow the regularised leader, proximally, with a past that fades: ``ftrl`` and ``implicit-ftrl`` with a half-life.

    w_j(t) = -soft(z_j, gamma^-k T_t l1) / (sigma_j + gamma^-k T_t l2),      k rows after the last one that named j

    z_j := gamma^k z_j,   sigma_j := gamma^k sigma_j,   G_j := gamma^k G_j      before a row that names it     (MATH 18.8)

and then the row's step as without forgetting, with T_t for t, and N = gamma N + 1 + |x|^2. gamma^-k = inf stands for weight 0
where there is a penalty. Without one a weight that rests keeps its value: its proximal terms fade as its gradients do.

Where the slope of a loss vanishes as the score grows, ``implicit-ftrl`` counts max(|g|, (1 - gamma) s) for |g| in G_j, with s
the weight of the row times the loss's factor. Else G_j fades with the slopes while rows of one class come alone, and the score
grows with each half-life.

Lazy:   the row that named a feature last stands beside its numbers. Averages weight predictors by gamma^(t-k); with a penalty,
        whose weights move while they rest, none is known.
Cost:   O(nnz(x_t)) per row, and a power of 2 per entry.   Needs: none, l1, l2 or elastic-net without bounds.
"""

from __future__ import annotations

from math import copysign, exp2, sqrt
from typing import Any, NamedTuple

from onlinear.averages import rows_kept
from onlinear.compiled import adopt, where
from onlinear.losses import is_vanishing
from onlinear.penalties import soft
from onlinear.solvers.core.engine import Engine, Problem, needs_theta
from onlinear.solvers.core.plain import EXPLICIT, check_penalty
from onlinear.solvers.forgetting.fading import Ages, kept_after, refuse_averages, restored
from onlinear.solvers.ftrl import Ftrl, LazyFtrl
from onlinear.solvers.implicit_ftrl import ImplicitFtrl, LazyImplicitFtrl, weight


class FadingFtrlStep(NamedTuple):
    """What one step of ``ftrl`` needs, with the rows before it, and what one more row leaves of a sum."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    l1: Any
    l2: Any
    row: Any
    keeps: Any


class FadingFtrl(NamedTuple):
    """The settings of ``ftrl``, and the half-life in rows."""

    eta: float = 0.3
    beta: float = 1.0
    fixed: bool = False
    half_life: float = 1e4

    letters = ("w", "z", "n", "last")
    begin = Ftrl.begin

    def begin_step(self, t, clock, b, penalty):
        times = Ftrl(self.eta, self.beta, self.fixed).times(rows_kept(t - 1.0, self.half_life))
        l1, l2, keeps = times * penalty.l1, times * penalty.l2, exp2(-1.0 / self.half_life)
        return FadingFtrlStep(self.eta, 0.0, b, clock, l1, l2, t - 1.0, keeps)

    def weight_of(self, v, c, penalty):
        z, n, last = v
        back = restored(last, c.row, self.half_life)
        return -soft(z, back * c.l1) / ((self.beta + sqrt(n)) / self.eta + back * c.l2)

    def moved(self, v, x, theta, c, penalty):
        z, n, last = v
        kept = c.keeps * kept_after(last, c.row, self.half_life)
        sigma = kept * ((self.beta + sqrt(n)) / self.eta)
        new_z, new_n = Ftrl(self.eta, self.beta, self.fixed).pulled(
            kept * z, sigma, kept * n, theta * x, self.weight_of(v, c, penalty)
        )
        return new_z, new_n, c.row + 1.0 + 0.0 * new_n

    def measured(self, theta, row, s, one, c, own):
        """The intercept has no penalty: it moves by -theta / sigma."""
        n = c.keeps * own[0] + theta * theta
        step = self.eta / (self.beta + sqrt(n))
        return FadingFtrlStep(c.eta, step, c.b, c.after, c.l1, c.l2, c.row, c.keeps), (n,)

    def idle_sum(self, v, stamp, t, average, penalty):
        z, n, _ = v
        return average.resting(-z / ((self.beta + sqrt(n)) / self.eta), stamp, t + 0.0)

    def engine(self, problem: Problem) -> Engine:
        check_penalty(problem, "'comid' without forget=")
        refuse_averages(problem)
        return LazyFadingFtrl(self, problem)


class LazyFadingFtrl(Ages, LazyFtrl):
    """FTRL that forgets in O(non-zeros)."""


class FadingImplicitFtrlStep(NamedTuple):
    """What one step of ``implicit-ftrl`` needs, with the rows before it, and what one more row leaves of a sum."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    t: Any
    l1: Any
    l2: Any
    more1: Any
    more2: Any
    g: Any
    grow: Any
    row: Any
    keeps: Any


class FadingImplicitFtrl(NamedTuple):
    """The settings of ``implicit-ftrl``, and the half-life in rows."""

    eta: float = 2.0
    intercept: float = 0.0
    half_life: float = 1e4
    unit: float = 0.0  # the slope, for s = 1, of which a row counts 1 - gamma in G at least; 0 where slopes do not vanish

    letters = ("w", "z", "sigma", "G", "last", "N")
    stable = True
    begin, inverse_step = ImplicitFtrl.begin, ImplicitFtrl.inverse_step
    terms, scores, pull = ImplicitFtrl.terms, ImplicitFtrl.scores, ImplicitFtrl.pull
    leaned, found, found_all = ImplicitFtrl.leaned, ImplicitFtrl.found, ImplicitFtrl.found_all
    searched, on_segment = ImplicitFtrl.searched, ImplicitFtrl.on_segment

    def begin_step(self, t, clock, b, penalty):
        before, now = rows_kept(t - 1.0, self.half_life), rows_kept(t + 0.0, self.half_life)
        l1, l2, keeps = penalty.l1, penalty.l2, exp2(-1.0 / self.half_life)
        return FadingImplicitFtrlStep(
            1.0, 0.0, b, clock, now, before * l1, before * l2, now * l1, now * l2, 0.0, 0.0, t - 1.0, keeps
        )

    def weight_of(self, v, c, penalty):
        z, sigma, _, last = v
        back = restored(last, c.row, self.half_life)
        return weight(z, sigma, back * c.l1, back * c.l2)

    def measured(self, g, row, s, one, c, own):
        """The step in the row's metric; G and sigma of the intercept, and N."""
        G, sigma, N = own
        g = where(g != 0.0, copysign(max(abs(g), (1.0 - c.keeps) * self.unit * s), g), 0.0)
        faded = c.keeps * G, c.keeps * sigma, c.keeps * N
        step, kept = ImplicitFtrl(self.eta, self.intercept).measured(g, row, s, one, c, faded)
        return FadingImplicitFtrlStep(
            c.eta, step.bias, c.b, c.after, c.t, c.l1, c.l2, c.more1, c.more2, g, step.grow, c.row, c.keeps
        ), kept

    def aimed(self, v, w, x, c, penalty):
        """u, 1 / (sigma + T_t l2), and the new sigma and G."""
        z, sigma, G, last = v
        kept = c.keeps * kept_after(last, c.row, self.half_life)
        return ImplicitFtrl(self.eta).aimed((kept * z, kept * sigma, kept * G), w, x, c, penalty)

    def reached(self, aim, x, theta, c):
        z, sigma, G = ImplicitFtrl(self.eta).reached(aim, x, theta, c)
        return z, sigma, G, c.row + 1.0 + 0.0 * G

    def moved(self, v, x, theta, c, penalty):
        return self.reached(self.aimed(v, self.weight_of(v, c, penalty), x, c, penalty), x, theta, c)

    def idle_sum(self, v, stamp, t, average, penalty):
        z, sigma, _, _ = v
        return average.resting(weight(z, sigma, 0.0, 0.0), stamp, t + 0.0)

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        check_penalty(problem, "'fiol', 'comid' or 'odrs' without forget=")
        refuse_averages(problem)
        return LazyFadingImplicitFtrl(self._replace(unit=float(is_vanishing(problem.loss))), problem)


class LazyFadingImplicitFtrl(Ages, LazyImplicitFtrl):
    """Implicit FTRL that forgets in O(non-zeros)."""

    letters = ("z", "sigma", "G", "last")


adopt(FadingFtrl, EXPLICIT)
adopt(FadingImplicitFtrl)
