r"""The step of a smooth problem by conjugate gradients:  (H + ridge) d = -g, to an accuracy that follows the gap (MATH 20.11).

Source: Nocedal, Wright, Numerical Optimization, 2006, chapter 7.1 (inexact Newton methods).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from onlinear.certified.models import TINY
from onlinear.compiled import kernel

LEFT = 0.3  # of the largest slope, at most: what a step may leave of it


def accuracy(gap: float, tol: float) -> float:
    """How much of the largest slope a step may leave: less where the gap is small, but not less than ``tol`` asks for.

    The gap falls with the square of the slopes."""
    return LEFT * min(1.0, max(gap, sqrt(tol / max(gap, tol))))


def newton_step(
    times: Callable[[np.ndarray], np.ndarray], diagonal: np.ndarray, ridge: np.ndarray, g: np.ndarray, share: float, most: int
) -> tuple[np.ndarray, bool]:
    """d that leaves a share of the largest slope, and whether it does so after at most ``most`` steps.

    ``times``: H d of a d; ``diagonal``: that of H."""
    target = share * float(np.abs(g).max(initial=0.0))
    by, norm = diagonal + ridge + TINY, np.inf
    d, along, r = np.zeros_like(g), np.zeros_like(g), -g
    for _ in range(most):
        if np.abs(r).max(initial=0.0) <= target:
            return d, True
        s = r / by
        before, norm = norm, float(np.vdot(r, s))
        along = s + norm / before * along
        pulled = times(along) + ridge * along
        length = norm / max(float(np.vdot(along, pulled)), TINY)
        d += length * along
        r -= length * pulled
    return d, bool(np.abs(r).max(initial=0.0) <= target)


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
