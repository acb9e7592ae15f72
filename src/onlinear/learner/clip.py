r"""Predictions that stay within the targets seen, trained with the loss that matches them (MATH 18.6).

With lo and hi the smallest and largest target so far, that of the row included, a clipped prediction is min(max(s, lo), hi) =
clip(s), and the model is trained with

    L(s, y) = int_y^s (clip(u) - y) du,      L' = clip(s) - y,

which is the squared loss between lo and hi and follows its tangents beyond: it is convex, and a score beyond the range is
pulled back no harder than from its edge. Its implicit step is that of the squared loss where it ends inside, else the slope at
the edge.

Counts, whose scores are logarithms, the same: clip(s) = min(max(s, log(lo / 3)), log(3 hi)) and L' = exp(clip(s)) - y, with a
factor of 3 because means go beyond the counts seen. Where lo is 0, and while hi is, that end is open. Without a clip the slope
grows like exp(s): one row far outside would make the sums of squared slopes so large that no step moves anything any more.
"""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, kernel, with_fields_at
from onlinear.files import trust
from onlinear.losses import Poisson

LOW, HIGH = range(2)
EXACT = 64  # moves of the range of the loss without a margin
MARGIN = 0.1  # of the width of the range, for the moves after these
ROOM = 3.0  # a factor by which means of counts may lie beyond the counts seen
WIDEST_RANGE = 12.0  # deviations: a range that is wider has outliers at its ends


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


class ClippedCounts(NamedTuple):
    """L(s, y) of the Poisson loss of scores that count from ``level``, with u = level + s clipped to [low, high], which holds
    log y."""

    level: float = 0.0
    low: float = -inf
    high: float = inf

    def value(self, s: float, y: float) -> float:
        """l(clip(u), y) + (exp(clip(u)) - y) (u - clip(u))."""
        u = self.level + s
        inside = min(max(u, self.low), self.high)
        return Poisson(1.0).value(inside, y) + self.slope(s, y) * (u - inside)  # type: ignore[call-arg]

    def slope(self, s: float, y: float) -> float:
        """exp(clip(u)) - y."""
        return Poisson(1.0).slope(min(max(self.level + s, self.low), self.high), y)  # type: ignore[call-arg]

    def theta(self, a: float, c: float, y: float) -> float:
        """The slope at the edge where the step begins and ends beyond it; else that of the Poisson loss."""
        u, edge = self.level + a, self.slope(a, y)
        if (u > self.high and u - c * edge > self.high) or (u < self.low and u - c * edge < self.low):
            return edge
        return Poisson(1.0).theta(u, c, y)  # type: ignore[call-arg]


adopt(ClippedCounts)


class Clip:
    """The ranges of the targets of one learner, and the losses that kernels take of them; ``counts``: whether scores are
    logarithms of them.

    A range that moves stops the kernels. Targets in random order move it some 2 log t times in t rows, sorted ones at every
    row. So after ``EXACT`` moves the range of the loss moves past a target that leaves it, by ``MARGIN`` of its width, and
    stays until a target passes that too. Predictions stay within the targets.

    Attributes
    ----------
    ranges : ndarray of shape (outputs, 2)
        The smallest and the largest target so far.
    rooms : ndarray of shape (outputs, 2)
        The same of the loss, with its margins.
    moves : ndarray of shape (1,)
        How often ``rooms`` has moved.
    edges : ndarray of shape (outputs, 2)
        ``ranges`` as scores: they themselves, or of counts their logarithms.
    """

    def __init__(self, outputs: int, counts: bool = False) -> None:
        self.counts = counts
        self.ranges = np.tile([inf, -inf], (outputs, 1))
        self.rooms = self.ranges.copy()
        self.moves = np.zeros(1)
        self.edges = self.ranges.copy() if counts else self.ranges
        self._fields = np.zeros((outputs, 3))  # of the losses of counts

    def loss(self, output: int, level: float, implicit: bool) -> Any:
        """The loss of an output as kernels take it, whose range follows ``rooms``; scores count from ``level``."""
        fields = self._fields[output]
        fields[:] = level, *self.rooms[output]
        if not self.counts:
            fields[1:] -= level
            return with_fields_at(Clipped(*fields[1:].tolist()), fields[1:], implicit)
        to_edges(fields[None, 1:], fields[None, 1:])
        return with_fields_at(ClippedCounts(*fields.tolist()), fields, implicit)

    def widen(self, y: np.ndarray) -> None:
        """Move the range of the loss past the targets of a row, (K,), where they leave it."""
        low, high = self.rooms.T
        leaves = (y < low) | (y > high)
        if not leaves.any():
            return
        self.moves += 1.0
        margin = MARGIN if self.moves[0] > EXACT else 0.0
        width = margin * (np.maximum(high, y) - np.minimum(low, y))
        self.rooms[:] = np.column_stack([np.where(y < low, y - width, low), np.where(y > high, y + width, high)])

    def loosen(self, y: np.ndarray, sizes: np.ndarray, ranges: np.ndarray) -> None:
        """Move the range of the loss away from targets whose deviations are ``sizes``, those of a row (K,) among them, where an
        outlier has made it wide. ``ranges``: of the targets before that row, (2, K).

        After an outlier at one end, scores lie far beyond the other. The slope at that edge is a common target's: it would lead
        back in as many rows as the outlier is far."""
        low, high = np.minimum(ranges[LOW], y), np.maximum(ranges[HIGH], y)
        width = np.where(high - low > WIDEST_RANGE * sizes, high - low, 0.0)
        self.rooms[:, LOW] = np.where(width > 0.0, np.minimum(low - width, self.rooms[:, LOW]), self.rooms[:, LOW])
        self.rooms[:, HIGH] = np.where(width > 0.0, np.maximum(high + width, self.rooms[:, HIGH]), self.rooms[:, HIGH])

    def follow(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Take in the targets (n, K) of rows of weights s; give the range before each row, (2, n, K)."""
        counted = (s > 0.0)[:, None]
        lows = np.minimum.accumulate(np.vstack([self.ranges[:, LOW], np.where(counted, y, inf)]))
        highs = np.maximum.accumulate(np.vstack([self.ranges[:, HIGH], np.where(counted, y, -inf)]))
        self.ranges[:] = np.column_stack([lows[-1], highs[-1]])
        if self.counts:
            to_edges(self.ranges, self.edges)
        return np.stack([lows[:-1], highs[:-1]])

    def edges_of(self, ranges: np.ndarray) -> np.ndarray:
        """Ranges of targets (2, n, K) as scores."""
        if not self.counts:
            return ranges
        pairs = ranges.reshape(2, -1).T.copy()
        to_edges(pairs, pairs)
        return pairs.T.reshape(ranges.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name."""
        return {"units.ranges": self.ranges, "units.rooms": self.rooms, "units.moves": self.moves}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the arrays of a file; raises ModelFileError for what no targets have."""
        for name, array in self.arrays().items():
            found = trust.array(arrays, name, np.float64, *array.shape)
            trust.must(array is self.moves or are_ranges(found), "a range of targets that no rows have")
            array[:] = found
        trust.must(0.0 <= self.moves[0] < inf, "a number of moves below 0")
        if self.counts:
            to_edges(self.ranges, self.edges)


@function
def clip_row(ranges, scores):  # type: ignore[no-untyped-def]
    """Clip the scores (K,) of one row by the range before it."""
    for k in range(len(ranges)):
        if ranges[k, LOW] <= ranges[k, HIGH]:
            scores[k] = np.minimum(np.maximum(scores[k], ranges[k, LOW]), ranges[k, HIGH])


@function
def low_edge(count):  # type: ignore[no-untyped-def]
    """The score at the lower edge of a range of counts from ``count`` on."""
    return log(count / ROOM) if 0.0 < count < inf else -inf if count <= 0.0 else inf


@function
def high_edge(count):  # type: ignore[no-untyped-def]
    """The score at the upper edge of a range of counts up to ``count``."""
    return log(ROOM * count) if count > 0.0 else inf if count == 0.0 else -inf


@kernel
def to_edges(ranges, edges):  # type: ignore[no-untyped-def]
    """Write ranges of counts (n, 2) as those of their scores, which may be the same array."""
    for k in range(ranges.shape[0]):
        edges[k, LOW], edges[k, HIGH] = low_edge(ranges[k, LOW]), high_edge(ranges[k, HIGH])


@function
def widen_row(ranges, edges, y):  # type: ignore[no-untyped-def]
    """Take in the targets (K,) of one row of non-zero weight; ``edges``: of counts, else None."""
    for k in range(len(ranges)):
        ranges[k, LOW], ranges[k, HIGH] = min(ranges[k, LOW], y[k]), max(ranges[k, HIGH], y[k])
        if edges is not None:
            edges[k, LOW], edges[k, HIGH] = low_edge(ranges[k, LOW]), high_edge(ranges[k, HIGH])


def clip_between(scores: np.ndarray, ranges: np.ndarray) -> None:
    """Clip scores (K, n) by the range before each row, (2, n, K), as ``Clip.follow`` gives it."""
    lows, highs = ranges[LOW].T, ranges[HIGH].T
    np.copyto(scores, np.clip(scores, lows, np.maximum(lows, highs)), where=lows <= highs)


def bounded(scores: Any, bounds: np.ndarray | None) -> Any:
    """Scores of one output, a number or (n,), or of several, (K,) or (n, K), within bounds (K, 2); None bounds nothing."""
    if bounds is None:
        return scores
    low, high = bounds.T if len(bounds) > 1 else bounds[0]
    found = np.where(low <= high, np.clip(scores, low, np.maximum(low, high)), scores)
    return found if np.ndim(scores) else float(found)


def are_ranges(ranges: np.ndarray, open_ends: bool = False) -> bool:
    """Whether each range (K, 2) is one of targets, or that of none; with ``open_ends`` one of scores."""
    low, high = ranges.T
    inside = (low < inf) & (high > -inf) if open_ends else np.isfinite(ranges).all(axis=1)
    fits = inside & (low <= high)
    nothing = (ranges[:, LOW] == inf) & (ranges[:, HIGH] == -inf)
    return bool(np.all(fits | nothing))
