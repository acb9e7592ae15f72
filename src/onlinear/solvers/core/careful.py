"""Careful runs: those that have met huge values or steps, and look at their weights after each step."""

from __future__ import annotations

from onlinear.compiled import function, lanes, some
from onlinear.solvers.core.state import CAREFUL

HUGE = 1e100


@function
def is_careful(now, largest):
    """Whether a value or a step above HUGE has come, so that weights are looked at after each step. The mark, once set, stays:
    ``largest`` is the largest value of the rows of one call alone."""
    if largest > HUGE:
        now[CAREFUL] = 1.0
    return now[CAREFUL] > 0.0


@function
def is_careful_after(now, careful, score, move):
    """Whether the run is careful after a step, whose score or move may be huge too."""
    if careful or abs(score) > HUGE or abs(move) > HUGE:
        now[CAREFUL] = 1.0
        return True
    return False


@function
def mark_careful(now, largest, outputs):
    """Make all outputs side by side careful where a value is huge."""
    if largest > HUGE:
        now[CAREFUL, :outputs] = 1.0


@function
def some_careful(now, score, move):
    """Whether any output side by side is careful, or must become so. It reads lanes: an array would be counted in and out."""
    return some(max(lanes(now, CAREFUL), max(abs(score), abs(move)) > HUGE))
