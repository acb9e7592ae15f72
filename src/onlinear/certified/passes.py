"""Kernels of one pass over rows or scores that certificates are made of."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from onlinear.compiled import kernel
from onlinear.losses import summed, weighted


@kernel
def add_columns(rows, theta, g):  # type: ignore[no-untyped-def]
    """g_j += sum_i theta_i x_ij, the rows in order."""
    starts, columns, values = rows
    for i in range(starts.shape[0] - 1):
        if theta[i] != 0.0:
            for k in range(starts[i], starts[i + 1]):
                g[columns[k]] += theta[i] * values[k]


@kernel
def take_slopes(loss, scores, y, s, shift, theta):  # type: ignore[no-untyped-def]
    """theta_i = l'(score_i + shift, y_i); give sum s_i theta_i and sum s_i |theta_i|."""
    total, size = 0.0, 0.0
    for i in range(y.shape[0]):
        theta[i] = loss.slope(scores[i] + shift, y[i])
        x = weighted(s[i], theta[i])
        total += x
        size += abs(x)
    return total, size


@kernel
def sum_conjugates(loss, theta, y, s, by):  # type: ignore[no-untyped-def]
    """sum s_i l*(by theta_i, y_i)."""
    total, lost = 0.0, 0.0
    for i in range(y.shape[0]):
        if s[i] != 0.0:
            total, lost = summed(total, lost, s[i] * loss.conjugate(by * theta[i], y[i]))
    return total + lost if isfinite(total) else total


def lowest_mean(loss: Any, y: np.ndarray, s: np.ndarray) -> float:
    """(1/n) sum s_i inf l(., y_i), from l*(0) = -inf l: below it no model's mean loss can be."""
    return 0.0 - float(sum_conjugates(loss, np.zeros(len(y)), y, s, 0.0)) / len(y)
