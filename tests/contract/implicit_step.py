"""One implicit step of FIOL by itself, by any of its searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.compiled import bind_loss, kernel
from onlinear.solvers.fiol import INNER, padded, segment, solve


@kernel
def theta_of(inner, x, v, eta, penalty, loss, s, y):
    m = x.shape[0]
    x, v = padded(x), padded(v)
    points, owner = np.empty(2 * m), np.empty(2 * m)
    A, D = segment(x, v, m, 0.0, eta, penalty)
    return solve(inner, x, v, m, A, D, eta, penalty, loss, s, y, 0.0, 0.0, points, owner)


def implicit_step(
    v: np.ndarray, x: np.ndarray, y: float, eta: float, loss: Any, penalty: Any, inner: str = "newton", weight: float = 1.0
) -> tuple[np.ndarray, float]:
    """One step (8.1) from weights v (d,) on the row x (d,): the new weights and theta. ``weight`` multiplies the loss."""
    support, s = np.flatnonzero(x), float(weight) * getattr(loss, "factor", 1.0)
    theta = theta_of(INNER[inner], x[support], v[support], float(eta), penalty, bind_loss(loss), s, float(y))
    return penalty.prox(v - eta * theta * x, eta), float(theta)
