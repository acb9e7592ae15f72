r"""Regularised dual averaging with a past that fades: ``rda`` and ``adagrad-rda`` with a half-life.

    G_j := gamma G_j + g_j  with each row                                                                      (MATH 18.8)

    rda:          w_j = -soft(G_j, T_t l1) / (T_t l2 + beta_t),                beta_t as rda's, of T_t
    adagrad-rda:  w_j = -soft(G_j, T_t l1) / (sigma_j + T_t l2),               sigma_j = (beta + sqrt n_j) / eta

where n_j, the sum of squares, fades as G_j does. The centre of both is 0: a weight that rests goes there.

Lazy:   the row that named a feature last stands beside its numbers. No average: the sum of a weight that fades while it rests
        has no closed form here.
Cost:   O(nnz(x_t)) per row, and a power of 2 per entry.   Needs: none, l1, l2 or elastic-net without bounds.
"""

from __future__ import annotations

from math import exp2
from typing import Any, NamedTuple

from onlinear.averages import rows_kept
from onlinear.compiled import adopt
from onlinear.penalties import soft
from onlinear.solvers.adagrad import AdagradRda
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.solvers.core.plain import EXPLICIT, check_penalty, check_squares
from onlinear.solvers.core.state import State
from onlinear.solvers.forgetting.fading import Ages, kept_after
from onlinear.solvers.rda import Rda, intercept, shrink


class FadingStep(NamedTuple):
    """What one step needs: the intercept's size and value; ``l1`` and ``l2``, the penalty of all steps before it; ``T``, the
    rows that this one and those before it count for; the rows before, and what one more row leaves of a sum. ``shrink``:
    1 / (T l2 + beta) of the rows before."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    l1: Any
    l2: Any
    shrink: Any
    T: Any
    row: Any
    keeps: Any


class FadingRda(NamedTuple):
    """The settings of ``rda``, and the half-life in rows."""

    gamma: float = 1.0
    logarithmic: bool = False
    half_life: float = 1e4

    letters = ("w", "G", "last")

    def settings(self):
        return Rda(self.gamma, self.logarithmic)

    def begin(self, U, penalty):
        Rda().begin(U, penalty)

    def begin_step(self, t, clock, b, penalty):
        before, now = rows_kept(t - 1.0, self.half_life), rows_kept(t + 0.0, self.half_life)
        keeps = exp2(-1.0 / self.half_life)
        return FadingStep(
            1.0, 0.0, b, clock, before * penalty.l1, 0.0, shrink(penalty, self.settings(), before), now, t - 1.0, keeps
        )

    def weight_of(self, v, c, penalty):
        G, last = v
        return -soft(kept_after(last, c.row, self.half_life) * G, c.l1) * c.shrink

    def moved(self, v, x, theta, c, penalty):
        G, last = v
        new = c.keeps * kept_after(last, c.row, self.half_life) * G + theta * x
        return new, c.row + 1.0 + 0.0 * new

    def measured(self, theta, row, s, one, c, own):
        """The intercept is that of the sum without this row, before it moves by -bias theta."""
        faded = c.keeps * own[0]
        bias = -intercept(1.0, c.T, self.gamma)
        return FadingStep(c.eta, bias, 0.0 - bias * faded, c.after, c.l1, c.l2, c.shrink, c.T, c.row, c.keeps), (
            faded + theta * one,
        )

    def engine(self, problem: Problem) -> Engine:
        check(problem)
        if self.gamma == 0.0 and not problem.penalty.l2 > 0.0:
            raise ValueError("rda with gamma=0 has no auxiliary term, so the penalty's l2 must be above 0, e.g. 'l2=1e-4'.")
        return LazyFadingRda(self, problem)


class LazyFadingRda(Ages):
    """RDA that forgets in O(non-zeros)."""

    own_numbers = (0.0,)  # G of the intercept

    def eta(self, t: int) -> float:
        kept = rows_kept(t + 0.0, self.solver.half_life)
        return float(kept * shrink(self.penalty, self.solver.settings(), kept))


class FadingAdagradRda(NamedTuple):
    """The settings of ``adagrad-rda``, and the half-life in rows."""

    eta: float = 1.0
    beta: float = 1e-6
    half_life: float = 1e4

    letters = ("w", "z", "n", "last")
    begin = AdagradRda.begin

    def begin_step(self, t, clock, b, penalty):
        before, now = rows_kept(t - 1.0, self.half_life), rows_kept(t + 0.0, self.half_life)
        keeps = exp2(-1.0 / self.half_life)
        return FadingStep(self.eta, 0.0, b, clock, before * penalty.l1, before * penalty.l2, 0.0, now, t - 1.0, keeps)

    def weight_of(self, v, c, penalty):
        z, n, last = v
        kept = kept_after(last, c.row, self.half_life)
        return -soft(kept * z, c.l1) / (AdagradRda(self.eta, self.beta).sigma_of(kept * n) + c.l2)

    def moved(self, v, x, theta, c, penalty):
        z, n, last = v
        kept, g = c.keeps * kept_after(last, c.row, self.half_life), theta * x
        new = kept * n + g * g
        return kept * z + g, new, c.row + 1.0 + 0.0 * new

    def measured(self, theta, row, s, one, c, own):
        """The intercept is that of the sum without this row, before it moves by -bias theta."""
        n, faded = c.keeps * own[0] + theta * theta, c.keeps * own[1]
        bias = 1.0 / AdagradRda(self.eta, self.beta).sigma_of(n)
        return FadingStep(c.eta, bias, 0.0 - bias * faded, c.after, c.l1, c.l2, c.shrink, c.T, c.row, c.keeps), (
            n,
            faded + theta * one,
        )

    def engine(self, problem: Problem) -> Engine:
        check(problem)
        return LazyFadingAdagradRda(self, problem)


class LazyFadingAdagradRda(Ages):
    """AdaGrad's dual averaging that forgets in O(non-zeros)."""

    own_numbers = (0.0, 0.0)  # n and z of the intercept

    def check(self, state: State) -> None:
        super().check(state)
        check_squares(state)


def check(problem: Problem) -> None:
    """Raise for a penalty or an average for which there is no closed form."""
    check_penalty(problem, f"{problem.name} without forget=")
    if problem.average is not None:
        raise ValueError(
            f"{problem.name} with forget= has no average: its weights fade while they rest, and their sum has no closed form "
            "here. Use average='none', or solver='implicit-ftrl'."
        )


for _solver in (FadingRda, FadingAdagradRda):
    adopt(_solver, EXPLICIT)
