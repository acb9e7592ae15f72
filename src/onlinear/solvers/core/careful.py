"""Careful runs: those that have met huge values or steps, and look at their weights after each step."""

from __future__ import annotations

from onlinear.compiled import function, lanes, some
from onlinear.solvers.core.state import CAREFUL

HUGE = 1e100


@function
def is_careful(now, largest):
    """Whether values or steps above HUGE have come, so that weights are looked at after each step. The mark stays whatever rows
    do: the largest value is known of those of a call alone."""
    if largest > HUGE:
        now[CAREFUL] = 1.0
    return now[CAREFUL] > 0.0


@function
def is_careful_after(now, careful, score, move):
    """``is_careful`` from this step on."""
    if careful or abs(score) > HUGE or abs(move) > HUGE:
        now[CAREFUL] = 1.0
        return True
    return False


@function
def mark_careful(now, largest, outputs):
    """``is_careful`` of outputs that stand side by side."""
    if largest > HUGE:
        now[CAREFUL, :outputs] = 1.0


@function
def some_careful(now, score, move):
    """Whether one of the outputs side by side is, or must be, careful. Asked of lanes: arrays are counted in and out."""
    return some(max(lanes(now, CAREFUL), max(abs(score), abs(move)) > HUGE))
