r"""The step of a smooth problem by conjugate gradients:  (H + ridge) d = -g, to an accuracy that follows the gap (MATH 20.11).

Source: Nocedal, Wright, Numerical Optimization, 2006, chapter 7.1 (inexact Newton methods).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np

from onlinear.certified.models import TINY

LEFT = 0.3  # of the largest slope, at most: what a step may leave of it


def share_left(fallen: float, gap: float, tol: float) -> float:
    """How much of the largest slope a step may leave, where that has ``fallen`` to so much of what it was.

    The gap falls with the square of the slopes; less than ``tol`` asks for is not needed."""
    return LEFT * sqrt(max(fallen, tol / max(gap, tol)))


Map = Callable[[np.ndarray], np.ndarray]


class Step(NamedTuple):
    """d, the steps of conjugate gradients to it, and whether it is as accurate as asked."""

    d: np.ndarray
    steps: int
    enough: bool


def newton_step(times: Map, precondition: Map, g: np.ndarray, share: float, most: int) -> Step:
    """d that leaves a share of the largest slope of g, after at most ``most`` steps; ``times``: (H + ridge) d of a d."""
    target = share * float(np.abs(g).max(initial=0.0))
    d, along, r, norm = np.zeros_like(g), np.zeros_like(g), -g, np.inf
    for step in range(most):
        if np.abs(r).max(initial=0.0) <= target:
            return Step(d, step, True)
        s = precondition(r)
        before, norm = norm, float(np.vdot(r, s))
        along = s + norm / before * along
        pulled = times(along)
        length = norm / max(float(np.vdot(along, pulled)), TINY)
        d += length * along
        r -= length * pulled
    return Step(d, most, bool(np.abs(r).max(initial=0.0) <= target))
