r"""Predictions that stay within the targets seen, learned with the loss that matches them (MATH 18.6).

With lo and hi the smallest and largest target so far, that of the row included, a clipped prediction is min(max(s, lo), hi) =
clip(s), and it is learned by

    L(s, y) = int_y^s (clip(u) - y) du,      L' = clip(s) - y,

which is the squared loss between lo and hi and goes on along its tangents beyond: convex, and a score beyond the range is
pulled back no harder than from its edge. Its implicit step is that of the squared loss where it ends inside, else the slope at
the edge.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, with_fields_at
from onlinear.files import trust

LOW, HIGH = range(2)


class Clipped(NamedTuple):
    """L(s, y) of the squared loss, with the prediction clipped to [low, high], which holds y."""

    low: float = -inf
    high: float = inf

    def value(self, s: float, y: float) -> float:
        """(clip(s) - y)^2 / 2 + (clip(s) - y) (s - clip(s))."""
        inside = min(max(s, self.low), self.high)
        return 0.5 * (inside - y) * (inside - y) + (inside - y) * (s - inside)

    def slope(self, s: float, y: float) -> float:
        """clip(s) - y."""
        return min(max(s, self.low), self.high) - y

    def theta(self, a: float, c: float, y: float) -> float:
        """(a - y) / (1 + C) where the step ends inside; else the slope at the edge."""
        theta = (a - y) / (1.0 + c)
        s = a - c * theta
        if s > self.high:
            return self.high - y
        return self.low - y if s < self.low else theta


adopt(Clipped)


class Clip:
    """The ranges of the targets of one learner, (outputs, 2), and the losses that kernels take of them.

    ``before``: the ranges before the row that moved one last, by which that row is predicted.
    """

    def __init__(self, outputs: int) -> None:
        self.ranges = np.tile([inf, -inf], (outputs, 1))
        self.before = self.ranges.copy()

    def loss(self, output: int, implicit: bool) -> Any:
        """The loss of an output as kernels take it, whose range follows ``ranges``."""
        return with_fields_at(Clipped(*self.ranges[output]), self.ranges[output], implicit)

    def widen(self, y: np.ndarray) -> None:
        """Take in the targets of a row, (K,)."""
        self.before[:] = self.ranges
        np.minimum(self.ranges[:, LOW], y, out=self.ranges[:, LOW])
        np.maximum(self.ranges[:, HIGH], y, out=self.ranges[:, HIGH])

    def clip(self, scores: np.ndarray, moved: bool) -> None:
        """Clip scores (K, n) of rows between two moves of a range; ``moved``: one moved at the first of them."""
        if moved:
            scores[:, :1] = bounded(scores[:, :1].T, self.before).T
        for row, (low, high) in zip(scores, self.ranges, strict=True):
            if low <= high:
                np.clip(row[moved:], low, high, out=row[moved:])

    def restore(self, ranges: np.ndarray) -> None:
        """Take the ranges of a file; raises ModelFileError for what no targets have."""
        trust.must(are_ranges(ranges), "a range of targets that no rows have")
        self.ranges[:] = self.before[:] = ranges


def bounded(scores: Any, bounds: np.ndarray | None) -> Any:
    """Scores of one output, a number or (n,), or of several, (K,) or (n, K), within bounds (K, 2); None bounds nothing."""
    if bounds is None:
        return scores
    low, high = bounds.T if len(bounds) > 1 else bounds[0]
    found = np.where(low <= high, np.clip(scores, low, np.maximum(low, high)), scores)
    return found if np.ndim(scores) else float(found)


def are_ranges(ranges: np.ndarray) -> bool:
    """Whether each range (K, 2) is one of targets, or that of none."""
    fits = np.isfinite(ranges).all(axis=1) & (ranges[:, LOW] <= ranges[:, HIGH])
    nothing = (ranges[:, LOW] == inf) & (ranges[:, HIGH] == -inf)
    return bool(np.all(fits | nothing))
