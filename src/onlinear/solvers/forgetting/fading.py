"""What the methods that forget share: how a feature's numbers fade while it rests, and the check of the rows they stand for."""

from __future__ import annotations

from math import exp2

from onlinear.compiled import function
from onlinear.penalties import is_bare
from onlinear.solvers.core.engine import Problem
from onlinear.solvers.core.plain import PlainEngine, check_last
from onlinear.solvers.core.state import State

LEAST = 2.0**-1022  # gamma^k below it counts as it, so that gamma^-k is a number, by which any penalty is beyond any z


@function
def kept_after(last, row, half_life):
    """gamma^k: what ``row`` rows in all have left of a sum that rests since row ``last``; numbers or lanes."""
    return exp2((last - row) / half_life)


@function
def restored(last, row, half_life):
    """gamma^-k."""
    return 1.0 / max(kept_after(last, row, half_life), LEAST)


def refuse_averages(problem: Problem) -> None:
    """Raise for an average of weights that move while they rest."""
    if problem.average is not None and not is_bare(problem.penalty):
        raise ValueError(
            f"{problem.name} with forget= has an average without a penalty only: of weights that shrink and fade no lazy form "
            "is known. Use average='none'."
        )


class Ages(PlainEngine):
    """The part of an engine whose features keep the row that named them last."""

    def check(self, state: State) -> None:
        super().check(state)
        check_last(state)
