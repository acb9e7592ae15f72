"""Forgetting: the past counts less with each row, by one half-life for everything that a method sums (MATH 18.8).

    F_t(w) = (1 / T_t) sum_{i <= t} gamma^(t-i) s_i l_i(w) + r(w),      gamma = 2^(-1 / half-life),   T_t = gamma T_{t-1} + 1

A method that keeps sums forgets exactly: its sums are multiplied by gamma before each row, and T_t stands where t stood. What
belongs to a feature is multiplied when a row names it, by gamma^k after k rows without it; until then its weight follows from k
and T_t. A half-life without end is the method itself.

Source: the discounted sums are those of any exponentially weighted mean; that they stay lazy is this package's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onlinear.solvers.adagrad import AdagradRda
from onlinear.solvers.forgetting.dual_averaging import FadingAdagradRda, FadingRda
from onlinear.solvers.forgetting.proximal import FadingFtrl, FadingImplicitFtrl
from onlinear.solvers.ftrl import Ftrl
from onlinear.solvers.implicit_ftrl import ImplicitFtrl
from onlinear.solvers.rda import Rda

FADING: dict[type, Callable[..., Any]] = {
    ImplicitFtrl: FadingImplicitFtrl,
    Ftrl: FadingFtrl,
    Rda: FadingRda,
    AdagradRda: FadingAdagradRda,
}


def can_forget(solver: Any) -> bool:
    """Whether a solver has a form that forgets."""
    return type(solver) in FADING


def forgetful(solver: Any, name: str, half_life: float) -> Any:
    """The solver that forgets; raises ValueError for one that has no such form."""
    if hasattr(solver, "batch"):
        raise ValueError(f"{name} with batch= has no form that forgets: leave out batch= or forget=.")
    if not can_forget(solver):
        raise ValueError(
            f"{name} has no form that forgets: use solver='implicit-ftrl', 'ftrl', 'rda' or 'adagrad-rda' with forget=."
        )
    return FADING[type(solver)](*solver, half_life)
