"""Why a model scores a row as it does: the terms of the sum  <w, x> + b,  by name.

Categories and features of Vowpal Wabbit text that are hashed are named by the row itself, so nothing has to be kept of the rows
that were learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner.classes import best_class_of_row
from onlinear.learner.clip import bounded
from onlinear.learner.scores import predictors_of
from onlinear.models.base import Classifier, gives_probabilities
from onlinear.models.predictor import Final
from onlinear.streams import Stream
from onlinear.streams.dict_rows import Entry, row_reader


class Term(NamedTuple):
    """One term of a score: ``contribution = weight * value``."""

    name: str
    column: int
    value: float
    weight: float
    contribution: float


class Explanation(NamedTuple):
    """The terms of one row's score, the largest first; they and the intercept sum to the score."""

    predicted: Any  # the class, or the number
    probability: float | None  # of the predicted class
    output: Any  # the class whose score this is, None for numbers
    score: float
    intercept: float
    terms: list[Term]


class Explainer:
    """Explains rows by the weights that a model has now."""

    def __init__(self, model: Any) -> None:
        self._model, learner = model, model.fitted_learner()
        self._weights, self._biases = predictors_of(learner)
        self._bounds = learner.bounds if isinstance(learner, Final) else learner.bounds()

    def explain(self, entries: Iterable[Entry]) -> Explanation:
        """Explain one row: the score of the predicted class where there are several, of the second class of two."""
        row = [entry for entry in entries if entry[2] != 0.0]
        known = [entry[1] < len(self._weights) for entry in row]
        weights = np.array(
            [self._weights[entry[1]] if there else 0.0 * self._biases for entry, there in zip(row, known, strict=True)]
        )
        values = np.array([value for _, _, value in row])
        scores = self._biases + values @ weights if len(row) else self._biases
        score = float(scores[0]) if len(scores) == 1 else scores
        k = 0 if len(scores) == 1 or not isinstance(self._model, Classifier) else best_class_of_row(score)
        terms = [
            Term(f"column {column}" if name is None else name, column, value, float(weight[k]), float(weight[k] * value))
            for (name, column, value), weight in zip(row, weights, strict=True)
        ]
        terms.sort(key=lambda term: (-abs(term.contribution), term.column))
        predicted, probability, output = self._meaning(score, k)
        return Explanation(predicted, probability, output, float(scores[k]), float(self._biases[k]), terms)

    def _meaning(self, score: Any, k: int) -> tuple[Any, float | None, Any]:
        """What is predicted, how likely it is, and the class whose score is explained."""
        model = self._model
        if not isinstance(model, Classifier):
            score = bounded(score, self._bounds)
            found = np.ravel(model.means_of(np.atleast_2d(score) if np.ndim(score) else np.array([score])))
            return (float(found[0]) if len(found) == 1 else found.tolist()), None, None
        place = best_class_of_row(score)
        output = model.classes_.item(1 if np.ndim(score) == 0 else k)
        if not gives_probabilities(model):
            return model.classes_.item(place), None, output
        chances = model.probabilities_of(np.array([score]))[0]
        return model.classes_.item(place), float(chances[place]), output


def entries_of(stream: Stream, model: Any) -> Iterator[tuple[str, list[Entry]]]:
    """The rows of a stream in the columns of a model as named entries, each with its place in the source."""
    records = getattr(stream, "records", None)
    if records is not None:
        reader = row_reader(stream.encoding if model.encoding_ is None else model.encoding_)
        for where, record in records():
            yield where, reader.named(record)
        return
    named_rows = getattr(stream, "named_rows", None)
    if named_rows is not None:
        yield from named_rows()
        return
    for block in stream:
        starts, columns, values = block.rows
        known = np.unique(columns[columns < model.learner_.size])
        names = dict(zip(known.tolist(), model.feature_names(known), strict=True))
        for row in range(block.n):
            own = slice(int(starts[row]), int(starts[row + 1]))
            found: Sequence[Any] = list(zip(columns[own].tolist(), values[own].tolist(), strict=True))
            yield block.where(row), [(names.get(column), column, value) for column, value in found]
