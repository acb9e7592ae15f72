"""The best constant for some targets, beside which a model is judged.

It is the score c with the smallest  sum_i s_i l(c, y_i)  in hindsight: what Vowpal Wabbit prints as the best constant's loss.
To find it takes the distribution of the targets. Of classes that is one sum per class. Of numbers it is the first 1,000 targets
as they are, and the others in bins by their distance from the median of those. A bin keeps its weight, mean and variance, and
counts as two points one deviation from its mean. So the mean's squared loss is exact. Other losses have the error of bins that
are 1/64 as wide as they are far from that median. Sums run in row order: blocks do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import bind_loss, code_for
from onlinear.learner.loss_sums import add_losses, loss_weights
from onlinear.losses import COUNTS, SIGNS, Squared, factor_of, is_joint, loss_labels
from onlinear.training.metrics import BINS, bins, unit_of

KEPT = 1000  # targets that are kept as they are, the first ones
SPREAD = 3  # digits of ``bins`` that targets do not need
NARROW = 2.0**20  # distances of targets that ``bins`` tell apart as they are, up to this and from its inverse on
WIDEST = 1e150  # a distance whose square is still a number


class Constant(NamedTuple):
    """What the best constant achieves on some rows."""

    loss: float
    error: float  # share of rows outside the largest class, or mean absolute error


class Points(NamedTuple):
    """Targets with weights, per output; and the weights of the classes, where they are classes."""

    targets: list[np.ndarray]
    weights: list[np.ndarray]
    classes: np.ndarray | None


def of_classes(totals: np.ndarray, outputs: int, negative: float) -> Points:
    """The targets of rows of classes, from the weight of each class."""
    own = totals if outputs > 1 else totals[1:]
    targets = [np.array([negative, 1.0])] * outputs
    return Points(targets, [np.array([totals.sum() - one, one]) for one in own.tolist()], totals)


def of_numbers(targets: np.ndarray, weights: np.ndarray) -> Points:
    """The targets of rows of numbers."""
    return Points([targets], [weights], None)


def best_constant(loss: Any, points: Points) -> Constant | None:
    """The best constant score for each output, and what it achieves; None without rows of any weight."""
    weight = float(points.weights[0].sum())
    if not weight > 0.0:
        return None
    if is_joint(loss) and points.classes is not None:
        shares = points.classes[points.classes > 0.0] / weight
        return Constant(0.0 - factor_of(loss) * float(np.sum(shares * np.log(shares))), 1.0 - float(shares.max()))
    total = 0.0
    for targets, weights in zip(points.targets, points.weights, strict=True):
        used = weights > 0.0
        c, least = _least(loss, targets[used], weights[used])
        total += least
    if points.classes is not None:
        error = 1.0 - float(points.classes.max()) / weight
    else:
        mean = getattr(loss, "mean", None)
        guess = c if mean is None else float(mean(np.array([c]))[0])
        error = float(np.sum(points.weights[0] * np.abs(points.targets[0] - guess))) / weight
    return Constant(total / weight, error) if np.isfinite(total) else None


def _least(loss: Any, y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The c with the smallest sum of s l(c, y), and that sum: of squares the mean, else by golden section, as losses are
    convex."""
    raw, y, s = bind_loss(loss, implicit=False), np.ascontiguousarray(y), loss_weights(loss, weights)
    scores, total = np.empty(len(y)), np.empty(2)
    add = code_for(add_losses, raw, scores, y, s, total)

    def at(c: float) -> float:
        scores[:], total[:] = c, 0.0
        add(raw, scores, y, s, total)
        return float(total.sum())

    if isinstance(loss, Squared):
        mean = float(np.average(y, weights=weights))
        return mean, at(mean)
    low, high = _bracket(loss, at, y, weights)
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = at(a), at(b)
    for _ in range(80):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = at(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = at(b)
    found = min((at(c), c) for c in (low, a, b, high))
    return found[1], found[0]


def _bracket(loss: Any, at: Any, y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Two scores with the best one between them."""
    kind = loss_labels(loss)
    if kind == SIGNS:
        reach, least = 1.0, min(at(-1.0), at(1.0))
        while reach < 1024.0 and (further := min(at(-2.0 * reach), at(2.0 * reach))) < least:
            reach, least = 2.0 * reach, further
        return -2.0 * reach, 2.0 * reach
    if kind == COUNTS:
        with np.errstate(over="ignore"):
            mean = max(float(np.average(y, weights=weights)), np.finfo(np.float64).tiny)
        return min(-40.0, float(np.log(mean)) - 5.0) if y.any() else -40.0, float(np.log(max(1.0, y.max())))
    return float(y.min()), float(y.max())


class TargetCounts:
    """The distribution of the targets so far, in bounded memory: as sums, so that what came since a mark is a difference."""

    def __init__(self, classes: int | None) -> None:
        self.classes = classes
        self.rows = 0
        self.first = np.zeros((2, 0 if classes is not None else KEPT))  # numbers: targets and weights of the first rows
        self.table = np.zeros((2, classes) if classes is not None else (3, (BINS >> SPREAD) + 1))

    def add(self, truth: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows: places of their classes, or numbers."""
        if self.classes is not None:
            np.add.at(self.table[0], truth, weights)
            self.table[1] += np.bincount(truth, minlength=self.classes)
        else:
            room = max(0, min(len(truth), KEPT - self.rows))
            self.first[:, self.rows : self.rows + room] = truth[:room], weights[:room]
            if room < len(truth):
                self._add_numbers(truth[room:], weights[room:])
        self.rows += len(truth)

    def _add_numbers(self, y: np.ndarray, weights: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            far = np.clip(y - self._origin, -WIDEST, WIDEST)
            places = bins(np.clip(far / self._unit, -WIDEST, WIDEST)) >> SPREAD
        for row, values in zip(self.table, (weights, weights * far, weights * far * far), strict=True):
            np.add.at(row, places, values)

    @property
    def _origin(self) -> float:
        return float(np.median(self.first[0]))

    @property
    def _unit(self) -> float:
        """A power of two near the distances of the first targets from their median, where ``bins`` has too few for distances of
        that size; else 1."""
        with np.errstate(over="ignore"):
            sizes = np.abs(self.first[0] - self._origin)
        size = float(np.median(sizes[sizes > 0.0])) if sizes.any() else 1.0
        return 1.0 if 1.0 / NARROW <= size <= NARROW else unit_of(min(size, WIDEST))

    def points(self, outputs: int, negative: float, rows: int = 0, before: np.ndarray | None = None) -> Points:
        """The targets since a mark at ``rows``, when the table was ``before``."""
        table = self.table if before is None else self.table - before
        if self.classes is not None:
            return of_classes(table[0], outputs, negative)
        y, s = self.first[:, rows : self.rows]
        if self.rows > KEPT:
            weight, first, second = table[:, table[0] > 0.0]
            mean = first / weight
            spread = np.sqrt(np.maximum(0.0, second / weight - mean * mean))
            y = np.concatenate([y, self._origin + mean - spread, self._origin + mean + spread])
            s = np.concatenate([s, 0.5 * weight, 0.5 * weight])
        return of_numbers(y, s)
