"""Sums and means of losses over rows: each loss counts by its row's weight, and sums are compensated (Neumaier)."""

from __future__ import annotations

from math import fsum, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import bind_loss, function, lean_kernel
from onlinear.losses import factor_of, summed


@function
def add_loss(loss, score, y, s, total):  # type: ignore[no-untyped-def]
    """total[0] + total[1] += s l(score, y)."""
    if s != 0.0:
        total[0], total[1] = summed(total[0], total[1], s * loss.value(score, y))


@lean_kernel
def add_losses(loss, scores, y, s, total):  # type: ignore[no-untyped-def]
    """total[0] + total[1] += sum of s_i l(score_i, y_i) in row order, compensated (Neumaier)."""
    for i in range(y.shape[0]):
        add_loss(loss, scores[i], y[i], s[i], total)


def loss_weights(loss: Any, weights: np.ndarray) -> np.ndarray:
    """s_i, what multiplies the loss of each row in a kernel: the row's weight times the loss's factor."""
    factor = factor_of(loss)
    return weights if factor == 1.0 else factor * weights


def as_taken(loss: Any, scores: np.ndarray) -> np.ndarray:
    """What the loss's ``value`` takes for scores whose outputs are along axis 1: of a joint loss log-probabilities."""
    joint = getattr(loss, "log_probabilities", None)
    return scores if joint is None or not scores.size else joint(scores, 1)


class Total(NamedTuple):
    """A sum, and what rounding left out of it: beside one loss of 1e20 the others stand there alone."""

    value: float = 0.0
    rest: float = 0.0

    @classmethod
    def of(cls, sums: np.ndarray, before: np.ndarray | None = None) -> Total:
        """The sum of sums and their corrections; ``before``: those that do not count."""
        numbers = [*sums.ravel().tolist(), *([] if before is None else (-before).ravel().tolist())]
        try:
            value = fsum(numbers)
        except (OverflowError, ValueError):  # of numbers that are not finite, or too large
            return cls(sum(numbers))
        return cls(value, fsum([-value, *numbers]) if isfinite(value) else 0.0)

    def since(self, before: Total) -> float:
        """What was added since the sum was ``before``."""
        return (self.value - before.value) + (self.rest - before.rest)


class LossSum:
    """The sum of s_i l(score_i, y_i) over rows and outputs. ``total``: the sum and its correction."""

    def __init__(self, loss: Any) -> None:
        self._loss, self._raw = loss, bind_loss(loss, implicit=False)
        self.total = np.zeros(2)

    @property
    def value(self) -> float:
        """The sum."""
        return Total.of(self.total).value

    def add(self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Add rows: scores (n, K), targets (n, K) and weights (n,)."""
        self.add_taken(as_taken(self._loss, scores), y, weights)

    def add_taken(self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """``add`` for scores as the loss takes them, of some outputs."""
        s = loss_weights(self._loss, weights)
        for k in range(scores.shape[1]):
            add_losses(self._raw, np.ascontiguousarray(scores[:, k]), np.ascontiguousarray(y[:, k]), s, self.total)


def mean(total: float, weight: float) -> float:
    """A sum of losses by the weight, or the number, of its rows; nan of no rows."""
    return total / weight if weight > 0.0 else nan


def sum_of_losses(loss: Any, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """The sum over rows and outputs of the weighted loss of scores (n, K) for targets (n, K)."""
    losses = LossSum(loss)
    losses.add(scores, y, weights)
    return losses.value


def mean_loss(loss: Any, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """``sum_of_losses`` by the weight of the rows."""
    return mean(sum_of_losses(loss, scores, y, weights), float(weights.sum()))
