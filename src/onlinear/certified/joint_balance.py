"""The intercepts of outputs that softmax joins ask that the probabilities of each class sum to the weight of its rows."""

from __future__ import annotations

import numpy as np

MOST_STEPS, MOST_HALVINGS = 60, 40
BALANCED = 1e-13  # of the weight of all rows: what may be left of the sums
ROUNDING = 1e-13  # of the loss: a fall that its sums over many rows may hide
NOWHERE = 800.0  # below every score: exp of it is 0


def one_hot(own: np.ndarray, outputs: int) -> np.ndarray:
    """e_{y_i} of the rows, (n, K)."""
    return np.equal.outer(own, np.arange(outputs)).astype(np.float64)


def probabilities(scores: np.ndarray) -> np.ndarray:
    """The softmax of scores along the last axis; 0 for a score of minus infinity."""
    found = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return found / found.sum(axis=-1, keepdims=True)


def balanced(scores: np.ndarray, own: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What to add to the scores (n, K) of each class so that the mean loss is least, (K,), and the probabilities there.

    By Newton's method. A class without rows has the probability 0."""
    here = one_hot(own, scores.shape[1])
    shares = s @ here
    there = shares > 0.0
    levels = np.where(there, 0.0, -np.inf)
    z = scores + levels
    total, p = float(shares.sum()), probabilities(z)
    if np.count_nonzero(there) > 1 and np.isfinite(z[:, there]).all():
        value, hidden, before = _loss(z, here, s), False, np.inf
        for _ in range(MOST_STEPS):
            slope = s @ (p - here)
            largest = float(np.abs(slope).max())
            if largest <= BALANCED * total or (hidden and largest > 0.5 * before):
                break
            step = -np.linalg.pinv(np.diag(s @ p) - (p * s[:, None]).T @ p, hermitian=True) @ slope
            fall, before = float(slope @ step), largest
            hidden = -fall <= ROUNDING * abs(value)  # the loss does not show it: the whole step, while slopes fall
            length, value = (1.0, value) if hidden else _length(z, step, here, s, value, fall)
            if length == 0.0:
                break
            levels += length * step
            z += length * step
            p = probabilities(z)
    if not there.all() and there.any():
        levels[~there] = np.min(z.max(axis=1, keepdims=True) - scores[:, ~there], axis=0) - NOWHERE
    return levels, p


def _length(
    z: np.ndarray, step: np.ndarray, here: np.ndarray, s: np.ndarray, before: float, fall: float
) -> tuple[float, float]:
    """The first of 1, 1/2, 1/4 ... of a step by which the loss falls as it should, 0 where none does; and the loss there."""
    length = 1.0
    for _ in range(MOST_HALVINGS):
        value = _loss(z + length * step, here, s)
        if value <= before + 1e-4 * length * fall + 1e-15 * abs(before):
            return length, value
        length *= 0.5
    return 0.0, before


def _loss(z: np.ndarray, here: np.ndarray, s: np.ndarray) -> float:
    """sum s l(z, y)."""
    top = z.max(axis=1)
    levels = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
    kept, losses = s > 0.0, levels - np.where(here > 0.0, z, 0.0).sum(axis=1)
    return float(s[kept] @ losses[kept])
