"""Measures of rows that come one after another: error and AUC, or MAE and R2, in bounded memory.

Rows count by their weights. Sums run in row order, so that nothing depends on how the rows come in blocks.

    error = sum s_i [class guessed != class] / sum s_i         AUC = P(score of a positive > score of a negative) + P(equal) / 2
    MAE   = sum s_i |y_i - p_i| / sum s_i                      R2  = 1 - sum s_i (y_i - p_i)^2 / sum s_i (y_i - mean y)^2

AUC needs all scores in order. Here they are counted in bins instead. The scores of a bin have the sign, the exponent and the
first nine binary digits in common, so scores that differ by more than 1/512 of themselves are told apart. That holds between
2^-32 and 2^32; smaller ones are one bin, larger ones another. Pairs in one bin count half: ``doubt`` bounds what that can move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import frexp, ldexp

import numpy as np

from onlinear.files import trust
from onlinear.learner.classes import best_class

DIGITS = 9  # binary digits of a score that its bin keeps
LOWEST, HIGHEST = -32, 32  # exponents that bins tell apart
SIDE = (HIGHEST - LOWEST) << DIGITS
BINS = 2 * SIDE + 1
_FIRST = (1023 + LOWEST) << DIGITS
_MAGNITUDE = np.int64((1 << 63) - 1)


def add_in_order(total: float, values: np.ndarray) -> float:
    """The total with the values added one after the other."""
    return float(np.cumsum(np.append(total, values))[-1])


def unit_of(weight: float) -> float:
    """A power of two near a sum of weights: products of two sums in such units neither overflow nor vanish, and have the digits
    that they would have."""
    return ldexp(1.0, frexp(weight)[1] - 1)


def area(below: np.ndarray, above: np.ndarray) -> float:
    """AUC of rows in groups of ascending score, from the weights of each group's negatives and positives; nan without both."""
    below, above = (part / unit_of(part.sum()) for part in (below, above))
    pairs = below.sum() * above.sum()
    # No product of vectors (@): how that is summed depends on the machine, and a history holds the result.
    return float(np.sum(above * (np.cumsum(below) - below / 2.0)) / pairs) if pairs > 0.0 else np.nan


class Area:
    """AUC of all scores so far."""

    def __init__(self) -> None:
        self.counts = np.zeros((2, BINS))  # weights of the negatives, of the positives

    def add(self, scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> None:
        """Take in scores (n,), whether each row is a positive, and the rows' weights."""
        # In row order, whatever the weights; one index is three times faster than two.
        np.add.at(self.counts.reshape(-1), bins(scores) + BINS * positive.astype(np.intp), weights)

    @property
    def value(self) -> float:
        """The area; nan before there are rows of both classes."""
        return area(*self.counts)

    @property
    def doubt(self) -> float:
        """How far ``value`` can be from the area of the very scores."""
        below, above = (part / unit_of(part.sum()) for part in self.counts)
        pairs = below.sum() * above.sum()
        return float(np.sum(below * above) / pairs / 2.0) if pairs > 0.0 else np.nan


def bins(scores: np.ndarray) -> np.ndarray:
    """The bin of each finite score: integers that grow with the scores."""
    bits = np.ascontiguousarray(scores, np.float64).view(np.int64)
    magnitude = np.clip(((bits & _MAGNITUDE) >> (52 - DIGITS)) - _FIRST + 1, 0, SIDE)
    return SIDE + np.where(bits < 0, -magnitude, magnitude)


class Measures(ABC):
    """Two measures of the rows so far; ``names`` says which."""

    names: tuple[str, str]

    @abstractmethod
    def add(self, predicted: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows: predictions, what is true, and weights (n,)."""

    @abstractmethod
    def values(self) -> tuple[float, float]:
        """Both measures of the rows so far, nan where there is none."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """All sums, by name, as copies."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the arrays that ``arrays`` gave; raises ModelFileError for others."""


class ClassMeasures(Measures):
    """Share of wrong classes; AUC where there are two."""

    names = ("error", "AUC")

    def __init__(self) -> None:
        self._sums = np.zeros(2)  # of the weights, of those of wrong rows
        self._area = Area()

    def add(self, predicted: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
        """Scores (K, n), or (1, n) for two classes; the place of each row's class; weights (n,)."""
        if len(predicted) == 1:
            self._area.add(predicted[0], truth == 1, weights)
        guessed = best_class(predicted, axis=0)
        self._sums[:] = add_in_order(self._sums[0], weights), add_in_order(self._sums[1], weights * (guessed != truth))

    def values(self) -> tuple[float, float]:
        total, wrong = self._sums.tolist()
        return wrong / total if total else np.nan, self._area.value

    def arrays(self) -> dict[str, np.ndarray]:
        used = np.flatnonzero(self._area.counts.any(axis=0))
        return {"sums": self._sums.copy(), "bins": used, "counts": self._area.counts[:, used]}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        used = trust.array(arrays, "bins", np.int64, None)
        trust.must(trust.ascending(used, BINS), f"bins that do not ascend below {BINS}")
        self._sums[:] = trust.array(arrays, "sums", np.float64, 2)
        self._area.counts[:] = 0.0
        self._area.counts[:, used] = trust.array(arrays, "counts", np.float64, 2, len(used))


class NumberMeasures(Measures):
    """Mean absolute error and the share of the variance that the predictions explain."""

    names = ("MAE", "R2")

    def __init__(self) -> None:
        self._origin = np.full(1, np.nan)  # the first target that counts: sums of squares are of differences from it
        self._sums = np.zeros(5)  # s, s |y - p|, s (y - p)^2, s (y - origin), s (y - origin)^2

    def add(self, predicted: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
        """Predictions, targets and weights, (n,) each."""
        if np.isnan(self._origin[0]):
            counted = np.flatnonzero(weights)
            if not len(counted):
                return
            self._origin[0] = truth[counted[0]]
        with np.errstate(over="ignore", invalid="ignore"):  # predictions of a run that diverges
            off, far = truth - predicted, truth - self._origin[0]
            terms = weights, weights * np.abs(off), weights * off * off, weights * far, weights * far * far
            self._sums[:] = [add_in_order(total, values) for total, values in zip(self._sums.tolist(), terms, strict=True)]

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self._sums[0])

    @property
    def mean_square(self) -> float:
        """The mean squared error; rows must have weight."""
        return float(self._sums[2] / self._sums[0])

    def values(self) -> tuple[float, float]:
        total, absolute, square, first, second = self._sums.tolist()
        if not total:
            return np.nan, np.nan
        unit = unit_of(total)
        spread = second / unit - (first / unit) * (first / unit) / (total / unit)
        square /= unit
        return absolute / total, 1.0 - square / spread if spread > 0.0 and square < np.inf else np.nan

    def arrays(self) -> dict[str, np.ndarray]:
        return {"origin": self._origin.copy(), "sums": self._sums.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._origin[:] = trust.array(arrays, "origin", np.float64, 1)
        self._sums[:] = trust.array(arrays, "sums", np.float64, 5)
