"""How well a model predicts the rows of a stream: measures of classes or of numbers.

``evaluate`` keeps 9 bytes for each row of two classes, because AUC needs all scores in order, one for each row of several and
16 for each number, and its weight where rows have some. ``share_right`` and ``r_squared`` keep nothing of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified import why_loose
from onlinear.learner import Learner
from onlinear.learner.certificates import gap_of_blocks
from onlinear.learner.classes import best_class, one_against_rest, rows_at_once
from onlinear.learner.loss_sums import LossSum, mean
from onlinear.models.base import Classifier, gives_probabilities
from onlinear.models.confusion import Confusion
from onlinear.models.ranking import Point, Ranking, Weights
from onlinear.streams import Block, Stream, StreamError
from onlinear.streams.blocks import refuse_no_rows, refuse_weightless
from onlinear.streams.labels import Labels
from onlinear.streams.weighted import balanced_weights, typed, weights_by_class
from onlinear.training.best_constant import Constant, best_constant, of_classes, of_numbers
from onlinear.training.metrics import NumberMeasures, add_in_order

# How measures are written.
MEASURES = {"error": "error", "auc": "AUC", "log loss": "log loss", "mae": "MAE", "rmse": "RMSE", "r2": "R2"}
BINS = 10  # of the calibration table
STRETCHES = 20  # of the rows, in their order
OF_ZERO = np.log(np.finfo(np.float64).tiny)  # what counts as the logarithm of a probability that is 0


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
    confusion: Confusion | None = None  # [true][predicted], by weight
    calibration: list[Bin] | None = None  # of the second class, or of the predicted one among several
    gap: float | None = None  # the largest relative duality gap of the outputs, where it was asked for
    gap_is_loose: str | None = None  # why the true distance to the optimum may be far below it
    stretches: list[tuple[int, float]] = []  # noqa: RUF012 (never changed): where each ends, and its error or mean absolute error
    curve: list[Point] | None = None  # of two classes, from the highest score down


class Scored(NamedTuple):
    """A block of rows that a model has scored."""

    scores: np.ndarray  # (n, K)
    truth: np.ndarray  # (n,): the places of the classes, or the targets
    weights: np.ndarray  # (n,)
    block: Block | None  # None: it is elsewhere


def score_rows(model: Any, stream: Stream) -> Iterator[Scored]:
    """Score the rows of a stream, block by block; features that the model has never seen have weight 0.

    Raises StreamError for a row without a target, and for a label that is no class of the model.
    """
    labels, learner = None, model.learner_
    for block in _labelled(stream):
        for part in block.parts(rows_at_once(learner.n_outputs)):
            truth = part.y
            if isinstance(model, Classifier):
                labels = labels or Labels(stream, model.classes_, known=True)
                truth = labels.places(part)
            scores = learner.predict(part.within(max(1, learner.size))).reshape(part.n, learner.n_outputs)
            yield Scored(scores, truth, part.importance, part)


def targets_of(model: Any, stream: Stream, rows: Block) -> np.ndarray:
    """The targets of all rows of a stream as arrays hold them: classes, or numbers.

    Raises StreamError as ``score_rows`` does.
    """
    _refuse_unlabelled(rows)
    if not isinstance(model, Classifier):
        return rows.y
    return np.asarray(model.classes_[Labels(stream, model.classes_, known=True).places(rows)])


class _Rows:
    """The sum of the rows' losses, and what is kept of each row: its error, and its weight where it is not 1."""

    def __init__(self, model: Any) -> None:
        self._losses = LossSum(model.learner_.loss)
        self._errors: list[np.ndarray] = []
        self._weights = Weights()
        self.count, self.weight = 0, 0.0

    def add(self, scores: np.ndarray, targets: np.ndarray, errors: np.ndarray, weights: np.ndarray) -> None:
        """Add a block: scores and targets (n, K), errors and weights (n,)."""
        self._losses.add(scores, targets, weights)
        self._errors.append(errors)
        self._weights.add(weights)
        self.count, self.weight = self.count + len(weights), add_in_order(self.weight, weights)

    def loss(self) -> float:
        """The mean loss."""
        return mean(self._losses.value, self.weight)

    def weights(self) -> np.ndarray:
        """The weights of all rows, to be asked for once."""
        found = self._weights.taken()
        return np.broadcast_to(np.float64(1.0), (self.count,)) if found is None else found

    def stretches(self, weights: np.ndarray) -> list[tuple[int, float]]:
        """``stretches`` of all rows."""
        return stretches(np.concatenate(self._errors), weights)


class GapOfModel:
    """The duality gap of a model on the rows of a stream, from one pass over them: the rows count as they do in training.

    Raises ValueError for what predicts only, for rows that the model centres, and where a gap says nothing.
    """

    def __init__(self, model: Any, stream: Stream) -> None:
        learner = model.learner_
        if not isinstance(learner, Learner):
            raise ValueError("the model only predicts: it was saved without its penalty and scales, so it has no duality gap.")
        if learner.centres_rows:
            raise ValueError("scale='standard' makes rows dense, which a stream's are not: give the rows as arrays.")
        self._model, self._gaps = model, gap_of_blocks(learner)
        weights = model.class_weight if isinstance(model, Classifier) else None
        self._weights = balanced_weights(stream) if isinstance(weights, str) else weights
        self._stream, self._of_classes = stream, np.ones(0)

    def adding(self, scored: Iterable[Scored]) -> Iterator[Scored]:
        """The same rows, each block once it is added."""
        for found in scored:
            self._add(*found)
            yield found

    def _add(self, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray, block: Block | None) -> None:
        assert block is not None
        learner, targets = self._model.learner_, truth[:, None]
        if isinstance(self._model, Classifier):
            targets = one_against_rest(truth, learner.n_outputs, self._model.negative_target(learner.n_outputs))
        if self._weights:
            if not len(self._of_classes):  # the first block tells whether labels are text
                self._of_classes = _weights_of_classes(self._model, self._stream, self._weights)
            weights = weights_by_class(block, self._of_classes[truth])
        source = block.within(max(1, learner.size))
        if learner.bounds() is not None:  # the gap is that of the linear model
            scores = learner.linear_scores(source).reshape(block.n, learner.n_outputs)
        self._gaps.add(source, scores, targets, weights)

    def result(self) -> float:
        """The largest relative gap of the outputs."""
        return max(gap.relative for gap in self._gaps.result())


def _weights_of_classes(model: Classifier, stream: Stream, weights: Mapping[Any, float]) -> np.ndarray:
    """What multiplies the weights of the rows of each class, as in training."""
    named = typed(weights, text=stream.labels is not None)
    return np.array([float(named.get(name, 1.0)) for name in Labels(stream, model.classes_, known=True).as_labels])


def gap_of_stream(model: Any, stream: Stream) -> float:
    """The relative duality gap of a model on the rows of a stream, in O(features)."""
    gap = GapOfModel(model, stream)
    refuse_no_rows(stream.name, sum(len(found.truth) for found in gap.adding(score_rows(model, stream))))
    return gap.result()


def evaluate(model: Any, stream: Stream, gap: bool = False) -> Result:
    """Score every row of a stream and compare; features that the model has never seen have weight 0. ``gap``: whether to find
    the duality gap too.

    Raises ValueError for a bare learner and for several targets, StreamError for a label that is no class of the model.
    """
    refuse_unfit(model)
    scored = score_rows(model, stream)
    if not gap:
        return evaluate_scored(model, scored, stream.name)
    gaps = GapOfModel(model, stream)
    result = evaluate_scored(model, gaps.adding(scored), stream.name)
    return result._replace(gap=gaps.result(), gap_is_loose=why_loose(model.learner_.loss))


def refuse_unfit(model: Any) -> None:
    """Raise ValueError for a bare learner and for several targets, and NotFittedError for a model without a learner."""
    if isinstance(model, Learner):
        raise ValueError("the model file holds a bare learner, which knows no task: evaluate takes classifiers and regressors.")
    model.fitted_learner()
    if not isinstance(model, Classifier) and model.columns_ is not None and model.columns_ > 1:
        raise ValueError(f"the model has {model.columns_} targets; a stream's rows have one.")


def share_right(model: Any, stream: Stream) -> float:
    """The share of rows, by weight, whose class the model finds."""
    rows, right, total = 0, 0.0, 0.0
    for scores, places, weights, _ in score_rows(model, stream):
        rows += len(places)
        right = add_in_order(right, weights * (best_class(scores, axis=1) == places))
        total = add_in_order(total, weights)
    refuse_weightless(stream.name, rows, total)
    return right / total


def r_squared(model: Any, stream: Stream) -> float:
    """The share of the targets' variance that predictions explain; NaN where all targets are equal."""
    refuse_unfit(model)
    found, rows = NumberMeasures(), 0
    for scores, y, weights, _ in score_rows(model, stream):
        found.add(_means(model, scores), y, weights)
        rows += len(y)
    refuse_weightless(stream.name, rows, found.weight)
    return found.values()[1]


def _means(model: Any, scores: np.ndarray) -> np.ndarray:
    """What scores (n, 1) predict, (n,)."""
    return np.ravel(model.means_of(scores[:, 0]))


def evaluate_scored(model: Any, scored: Iterable[Scored], name: str) -> Result:
    """Compare rows that ``score_rows`` gave, wherever it ran, in their order; ``name`` is that of the source."""
    of = _evaluate_classes if isinstance(model, Classifier) else _evaluate_numbers
    return of(model, scored, name)


class _Calibration:
    """How probabilities compare with what came true."""

    def __init__(self) -> None:
        self._table, self.losses = np.zeros((3, BINS)), 0.0  # sum of -s log p of the true class

    def add(self, p: np.ndarray, log_p: np.ndarray, places: np.ndarray, guessed: np.ndarray, weights: np.ndarray) -> None:
        """Add rows: probabilities (n, K) and their logarithms, and the places of the true and the guessed class."""
        true = log_p[np.arange(len(log_p)), places]
        self.losses = add_in_order(self.losses, weights * -np.where(np.isneginf(true), OF_ZERO, true))
        if p.shape[1] > 2:
            self._count(p[np.arange(len(p)), guessed], places == guessed, weights)
        else:
            self._count(p[:, 1], places == 1, weights)

    def _count(self, p: np.ndarray, true: np.ndarray, weights: np.ndarray) -> None:
        place = np.minimum((p * BINS).astype(np.intp), BINS - 1)
        for row, values in enumerate((weights, weights * p, weights * true)):
            np.add.at(self._table[row], place, values)  # in their order, however they come in blocks

    def bins(self) -> list[Bin]:
        """The bins that have rows."""
        weight, predicted, true = self._table
        return [
            Bin(k / BINS, (k + 1) / BINS, float(weight[k]), float(predicted[k] / weight[k]), float(true[k] / weight[k]))
            for k in range(BINS)
            if weight[k] > 0.0
        ]


def _evaluate_classes(model: Any, scored: Iterable[Scored], name: str) -> Result:
    found, count, outputs = _Rows(model), len(model.classes_), model.learner_.n_outputs
    ranking, calibration = Ranking() if count == 2 else None, _Calibration() if gives_probabilities(model) else None
    negative, confusion = model.negative_target(outputs), Confusion(count)
    for scores, places, weights, _ in scored:
        targets, guessed = one_against_rest(places, outputs, negative), best_class(scores, axis=1)
        if ranking is not None:
            ranking.add(scores[:, 0], places == 1, weights)
        if calibration is not None:
            given = scores[:, 0] if outputs == 1 else scores
            p, log_p = model.probabilities_of(given), model.log_probabilities_of(given)
            calibration.add(p, log_p, places, guessed, weights)
        confusion.add(places, guessed, weights)
        found.add(scores, targets, guessed != places, weights)
    refuse_weightless(name, found.count, found.weight)
    area, curve = (None, None) if ranking is None else ranking.measure()
    measures: dict[str, float | None] = {"error": confusion.wrong() / found.weight}
    if ranking is not None:
        measures["auc"] = area
    if calibration is not None:
        measures["log loss"] = calibration.losses / found.weight
    constant = best_constant(model.learner_.loss, of_classes(confusion.totals(), outputs, negative))
    bins = None if calibration is None else calibration.bins()
    weights, named = found.weights(), model.classes_.tolist()
    return Result(
        found.count,
        found.weight,
        found.loss(),
        measures,
        constant,
        named,
        confusion,
        bins,
        stretches=found.stretches(weights),
        curve=curve,
    )


def _evaluate_numbers(model: Any, scored: Iterable[Scored], name: str) -> Result:
    found, sums, targets = _Rows(model), NumberMeasures(), []
    for scores, y, weights, _ in scored:
        predicted = _means(model, scores)
        sums.add(predicted, y, weights)
        targets.append(y)
        found.add(scores, y[:, None], np.abs(predicted - y), weights)
    refuse_weightless(name, found.count, found.weight)
    mae, r2 = sums.values()
    measures = {"mae": mae, "rmse": math.sqrt(sums.mean_square), "r2": None if math.isnan(r2) else r2}
    weights = found.weights()
    constant = best_constant(model.learner_.loss, of_numbers(np.concatenate(targets), weights))
    return Result(found.count, found.weight, found.loss(), measures, constant, stretches=found.stretches(weights))


def stretches(errors: np.ndarray, weights: np.ndarray) -> list[tuple[int, float]]:
    """The mean error of rows in stretches of the same length, each with its end; those of weight 0 have none."""
    ends = np.unique(np.linspace(0, len(errors), min(STRETCHES, len(errors)) + 1).astype(int)).tolist()
    found = []
    for start, end in pairwise(ends):
        weight = float(weights[start:end].sum())
        found.append((end, float(weights[start:end] @ errors[start:end]) / weight if weight > 0.0 else math.nan))
    return found


def _labelled(stream: Stream) -> Iterable[Block]:
    """The blocks that have rows: labels of none do not tell their type. Raises StreamError for a row without a target."""
    for block in stream:
        _refuse_unlabelled(block)
        if block.n:
            yield block


def _refuse_unlabelled(block: Block) -> None:
    lacking = np.isnan(block.y)
    if lacking.any():
        raise StreamError(f"{block.where(int(np.argmax(lacking)))}: expected a target to compare with, got none.")
