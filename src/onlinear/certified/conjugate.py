r"""The step of a smooth problem by conjugate gradients:  (H + ridge) d = -g, to an accuracy that follows the gap (MATH 20.11).

Source: Nocedal, Wright, Numerical Optimization, 2006, chapter 7.1 (inexact Newton methods).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np

from onlinear.certified.models import TINY
from onlinear.compiled import kernel

LEFT = 0.3  # of the largest slope, at most: what a step may leave of it


class Accuracy:
    """How much of the largest slope a step may leave: less, the more it has fallen, but not less than ``tol`` asks for.

    The gap falls with the square of the slopes."""

    def __init__(self) -> None:
        self._steepest = 0.0

    def share(self, slope: float, gap: float, tol: float) -> float:
        """Of the largest slope now, at this relative gap."""
        self._steepest = max(self._steepest, slope)
        fallen = slope / self._steepest if slope > 0.0 else 1.0
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


@kernel
def square_rows(starts, places, values, h, out):  # type: ignore[no-untyped-def]
    """The diagonal of X' diag(h) X, the intercept's last."""
    out[:] = 0.0
    for i in range(h.shape[0]):
        here, entries, own = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], h[i]
        for k in range(here.shape[0]):
            out[here[k]] += own * entries[k] * entries[k]
        out[out.shape[0] - 1] += own


@kernel
def curve_rows(starts, places, values, h, d, out):  # type: ignore[no-untyped-def]
    """out = X' diag(h) X d, the intercept last."""
    last = out.shape[0] - 1
    out[:] = 0.0
    for i in range(h.shape[0]):
        here, entries, along = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], d[last]
        for k in range(here.shape[0]):
            along += d[here[k]] * entries[k]
        along *= h[i]
        out[last] += along
        for k in range(here.shape[0]):
            out[here[k]] += along * entries[k]
