"""How well a model predicts the rows of a stream: measures of classes or of numbers.

Keeps a score, a target and, where rows have weights, a weight for each row (16 to 24 bytes), because AUC needs all scores in
order; what belongs to single blocks is gone after them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import bind_loss
from onlinear.learner.learner import Learner, add_losses
from onlinear.models.base import Classifier, gives_probabilities
from onlinear.streams import Block, Stream, StreamError
from onlinear.streams.labels import Labels
from onlinear.training.metrics import exact_area
from onlinear.training.quality import Constant, best_constant, of_classes, of_numbers

BINS = 10  # of the calibration table


class Bin(NamedTuple):
    """Rows whose probability is between ``low`` and ``high``: their mean probability, and how often it came true."""

    low: float
    high: float
    weight: float
    predicted: float
    true: float


class Result(NamedTuple):
    """What ``evaluate`` found; a measure that does not exist is None."""

    rows: int
    weight: float
    loss: float  # the model's own, mean over the rows
    measures: dict[str, float | None]
    constant: Constant | None = None  # what the best constant for these rows achieves
    classes: list[Any] | None = None
    confusion: list[list[float]] | None = None  # [true][predicted], by weight
    calibration: list[Bin] | None = None  # of the second class, or of the predicted one among several


class _Sums:
    """What is kept while the rows go by."""

    def __init__(self, model: Any) -> None:
        self.learner = model.learner_
        self._loss = bind_loss(self.learner.loss)
        self._factor = float(getattr(self.learner.loss, "factor", 1.0))
        self._losses = np.zeros(2)
        self.parts: list[tuple[np.ndarray, ...]] = []

    def scores(self, block: Block) -> np.ndarray:
        """(n, K)."""
        return self.learner.predict(block.within(max(1, self.learner.size))).reshape(block.n, -1)

    def add_loss(self, scores: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        s = self._factor * weights
        for k in range(scores.shape[1]):
            y = np.ascontiguousarray(targets[:, k])
            add_losses(self._loss, np.ascontiguousarray(scores[:, k]), y, s, self._losses)

    def loss(self, weight: float) -> float:
        return float(self._losses.sum()) / weight

    def columns(self, name: str) -> list[np.ndarray]:
        """What was kept, over all rows; raises StreamError where there is none."""
        if not self.parts:
            raise StreamError(f"{name}: expected at least one row, got none.")
        found = [np.concatenate(column) for column in zip(*self.parts, strict=True)]
        if not found[-1].sum() > 0.0:
            raise StreamError(f"{name}: every row has the weight 0.")
        return found


def evaluate(model: Any, stream: Stream) -> Result:
    """Score every row of a stream and compare; features that the model has never seen have weight 0.

    Raises ValueError for a bare learner and for several targets, StreamError for a label that is no class of the model.
    """
    if isinstance(model, Learner):
        raise ValueError("the model file holds a bare learner, which knows no task: evaluate takes classifiers and regressors.")
    return _classes(model, stream) if isinstance(model, Classifier) else _numbers(model, stream)


def _classes(model: Classifier, stream: Stream) -> Result:
    sums, labels = _Sums(model), None
    several, chances = len(model.classes_) > 2, gives_probabilities(model)
    table, logs = np.zeros((3, BINS)), 0.0
    for block in _labelled(stream):
        labels = labels or Labels(stream, model.classes_.tolist())
        places, scores, weights = labels.places(block), sums.scores(block), block.importance
        outputs = scores.shape[1]
        own = np.arange(outputs) if outputs > 1 else 1
        sums.add_loss(scores, np.where(places[:, None] == own, 1.0, model._low(outputs)), weights)
        guessed = np.argmax(scores, axis=1) if several else (scores[:, 0] > 0.0).astype(np.intp)
        sums.parts.append((guessed if several else scores[:, 0], places.astype(np.float64), weights))
        if chances:
            p = model.probabilities_of(scores if several else scores[:, 0])
            logs += _log_loss(p, places, weights)
            _calibrate(
                table, p[np.arange(block.n), guessed] if several else p[:, 1], places == (guessed if several else 1), weights
            )
    first, places, weights = sums.columns(stream.name)
    guessed = first if several else first > 0.0
    weight = float(weights.sum())
    measures: dict[str, float | None] = {"error": float(weights @ (guessed != places)) / weight}
    if not several:
        found = exact_area(first, places == 1.0, weights)
        measures["auc"] = None if np.isnan(found) else found
    if chances:
        measures["log loss"] = logs / weight
    count = len(model.classes_)
    matrix: Any = np.bincount((count * places + guessed).astype(np.intp), weights, count * count).reshape(count, count)
    totals = np.bincount(places.astype(np.intp), weights, count)
    outputs = model.learner_.n_outputs
    constant = best_constant(model.learner_.loss, of_classes(totals, outputs, model._low(outputs)))
    return Result(
        len(weights),
        weight,
        sums.loss(weight),
        measures,
        constant,
        model.classes_.tolist(),
        matrix.tolist(),
        _bins(table) if chances else None,
    )


def _numbers(model: Any, stream: Stream) -> Result:
    if model.columns_ is not None and model.columns_ > 1:
        raise ValueError(f"the model has {model.columns_} targets; a stream's rows have one.")
    sums = _Sums(model)
    for block in _labelled(stream):
        scores = sums.scores(block)
        sums.add_loss(scores, block.y[:, None], block.importance)
        sums.parts.append((np.ravel(model.means_of(scores[:, 0])), block.y, block.importance))
    predicted, y, weights = sums.columns(stream.name)
    weight = float(weights.sum())
    off, far = predicted - y, y - np.average(y, weights=weights)
    square, spread = float(weights @ (off * off)), float(weights @ (far * far))
    varies = np.ptp(y[weights > 0.0]) > 0.0
    measures: dict[str, float | None] = {
        "mae": float(weights @ np.abs(off)) / weight,
        "rmse": math.sqrt(square / weight),
        "r2": 1.0 - square / spread if varies and spread > 0.0 else None,
    }
    constant = best_constant(model.learner_.loss, of_numbers(y, weights))
    return Result(len(y), weight, sums.loss(weight), measures, constant)


def _labelled(stream: Stream) -> Iterable[Block]:
    """The blocks; raises StreamError for a row without a target."""
    for block in stream:
        lacking = np.isnan(block.y)
        if lacking.any():
            raise StreamError(f"{block.where(int(np.argmax(lacking)))}: expected a target to compare with, got none.")
        yield block


def _log_loss(p: np.ndarray, places: np.ndarray, weights: np.ndarray) -> float:
    """sum of -s log p of the true class; probabilities of 0 count as the smallest double's."""
    own = np.maximum(p[np.arange(len(places)), places], np.finfo(np.float64).tiny)
    return float(-(weights @ np.log(own)))


def _calibrate(table: np.ndarray, p: np.ndarray, true: np.ndarray, weights: np.ndarray) -> None:
    place = np.minimum((p * BINS).astype(np.intp), BINS - 1)
    for row, values in enumerate((weights, weights * p, weights * true)):
        table[row] += np.bincount(place, values, BINS)


def _bins(table: np.ndarray) -> list[Bin]:
    weight, predicted, true = table
    return [
        Bin(k / BINS, (k + 1) / BINS, float(weight[k]), float(predicted[k] / weight[k]), float(true[k] / weight[k]))
        for k in range(BINS)
        if weight[k] > 0.0
    ]
