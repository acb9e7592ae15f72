"""Scores of two classes in their order, which the AUC and the curve depend on: 8 bytes a row, 24 where rows have weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinear.training.metrics import unit_of

POINTS = 200  # of a curve
ROWS = 1 << 20  # positives that are compared with the negatives at once


class Point(NamedTuple):
    """Rows above a score taken for positive: the shares of the negatives and the positives among them, and the precision."""

    false_rate: float
    true_rate: float
    precision: float


class Weights:
    """Weights of rows; those of a block of rows without weights, which are 1, take no memory until another block has some."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def add(self, weights: np.ndarray) -> None:
        """Take in the weights of a block."""
        self._parts.append(np.broadcast_to(np.float64(1.0), weights.shape) if np.all(weights == 1.0) else weights)

    def taken(self) -> np.ndarray | None:
        """The weights of all rows, which are gone then; None where each is 1."""
        parts, self._parts = self._parts, []
        return np.concatenate(parts) if any(part.strides[0] for part in parts) else None


class Ranking:
    """The scores of rows of two classes."""

    def __init__(self) -> None:
        self._scores: tuple[list[np.ndarray], ...] = [], []  # of the negatives, of the positives
        self._weights = Weights(), Weights()

    def add(self, scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> None:
        """Take in scores (n,), whether each row is a positive, and the weights of the rows."""
        for side, those in enumerate((~positive, positive)):
            self._scores[side].append(scores[those])
            self._weights[side].add(weights[those])

    def measure(self) -> tuple[float | None, list[Point] | None]:
        """The AUC, P(score of a positive > score of a negative) + P(equal) / 2, and true and false positives as the threshold
        falls past each score, thinned; None where a class has no weight. What was taken in is gone then."""
        sides = [_Side(scores, weights) for scores, weights in zip(self._scores, self._weights, strict=True)]
        if not all(side.total > 0.0 for side in sides):
            return None, None
        return _area(*sides), _curve(*sides)


class _Side:
    """The scores of one class, ascending."""

    def __init__(self, parts: list[np.ndarray], weights: Weights) -> None:
        self.scores, self._weights, self._sums = np.concatenate([*parts, np.empty(0)]), weights.taken(), None
        parts.clear()
        if self._weights is None:
            self.scores.sort()
        else:
            order = np.argsort(self.scores, kind="stable")
            self.scores, self._weights = self.scores[order], self._weights[order]
            self._sums = np.append(0.0, np.cumsum(self._weights))
        self.total = float(len(self.scores) if self._sums is None else self._sums[-1])

    def below(self, thresholds: np.ndarray, *, or_equal: bool = False) -> np.ndarray:
        """The weight of the rows with scores below each threshold."""
        places = np.searchsorted(self.scores, thresholds, "right" if or_equal else "left")
        return places.astype(np.float64) if self._sums is None else self._sums[places]

    def weights(self, rows: slice) -> np.ndarray | float:
        """The weights of some rows."""
        return 1.0 if self._weights is None else self._weights[rows]


def _area(negatives: _Side, positives: _Side) -> float:
    units, found = (unit_of(negatives.total), unit_of(positives.total)), 0.0
    for start in range(0, len(positives.scores), ROWS):
        rows = slice(start, start + ROWS)
        scores = positives.scores[rows]
        beaten = (negatives.below(scores) + negatives.below(scores, or_equal=True)) / units[0] / 2.0
        found += float(np.sum(positives.weights(rows) / units[1] * beaten))
    return found / (negatives.total / units[0] * (positives.total / units[1]))


def _curve(negatives: _Side, positives: _Side) -> list[Point]:
    scores = np.concatenate([negatives.scores, positives.scores])
    scores.sort()
    thresholds = scores[np.append(True, scores[1:] != scores[:-1])][::-1]
    kept = thresholds[np.unique(np.linspace(0, len(thresholds) - 1, min(POINTS, len(thresholds))).astype(int))]
    false, true = (side.total - side.below(kept) for side in (negatives, positives))
    counted = true + false > 0.0
    return [
        Point(f / negatives.total, t / positives.total, t / (t + f))
        for t, f in zip(true[counted].tolist(), false[counted].tolist(), strict=True)
    ]
