"""Single rows as dicts: what the estimators do with one row at a time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlinear.models.predictor import Final
from onlinear.solvers.core.engine import T
from onlinear.streams.dict_rows import NamedRow, TableRow, as_arrays, row_reader
from onlinear.streams.frames import is_record

READER = "_row_reader"  # an attribute that copies do not have, as all that begin with _row_
WORTH = 1 << 14  # columns: as many weights are listed in the time that a few rows take
MOST_PLANS = 1 << 8


class HeldScores:
    """Scores rows of numbers by weights that are listed once, while nothing is learned."""

    def __init__(self, learner: Any, reader: NamedRow | TableRow, labels: list[Any]) -> None:
        self.learner, self.t, self.labels = learner, steps_of(learner), labels
        self.now = np.full(T + 1, float(self.t)) if isinstance(learner, Final) else learner.states[0].now
        self.mean = getattr(learner.loss, "mean", None)
        self.probability = getattr(learner.loss, "probability", None)
        self._weights = learner.weights(average=True).tolist()
        self._bias = float(learner.intercept(average=True))
        self._reader = reader
        bounds = learner.bounds if isinstance(learner, Final) else learner.bounds()
        low, high = (inf, -inf) if bounds is None else bounds[0].tolist()
        self._range = (low, high) if low <= high else None  # what predictions are clipped to
        self._plans: dict[tuple[str, ...], list[float] | None] = {}

    def score(self, row: Mapping[str, Any]) -> float | None:
        """The score as ``predict`` gives it; None for a row that is not as plain as that, and where rows were learned since."""
        if self.now[T] != self.t or self.learner.stopped is not None:
            return None
        names = tuple(row)
        try:
            weights = self._plans[names]
        except KeyError:
            weights = self._plan(names)
        if weights is None:
            return None
        score = self._bias
        try:
            for weight, value in zip(weights, row.values(), strict=False):
                score += weight * value
        except TypeError:
            self._plans[names] = None
            return None
        if type(score) is not float or score != score:
            return None
        return score if self._range is None else min(max(score, self._range[0]), self._range[1])

    def _plan(self, names: tuple[str, ...]) -> list[float] | None:
        """The weights of these names, where their columns ascend, as sums of rows run."""
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        columns = self._reader.columns_of(names)
        known = [] if columns is None else [column for column in columns if column is not None]
        if columns is None or any(a >= b for a, b in pairwise(known)):
            self._plans[names] = None
            return None
        size = len(self._weights)
        found = [self._weights[column] if column is not None and column < size else 0.0 for column in columns]
        self._plans[names] = found
        return found


def steps_of(learner: Any) -> int:
    """Steps taken: where it changes, so do the weights."""
    return int(learner.t if isinstance(learner, Final) else learner.states[0].t)


class OneByOne:
    """Methods of estimators for rows as dicts. ``encoding_`` keeps the names."""

    learner_: Any
    encoding_: dict[str, Any] | None
    n_features_in_: int | None
    _row_scores: HeldScores | None = None
    _row_reads = (-1, 0)  # rows learned, and the dicts that were scored since by the way of arrays

    def _reader(self) -> NamedRow | TableRow:
        """What reads rows in the columns of the model; raises ValueError where its columns have no names."""
        held = vars(self).get(READER)
        described = vars(self).get("encoding_")
        if held is not None and held[0] is described:
            return held[1]
        if described is None and hasattr(self, "learner_"):
            raise ValueError("row: the model was trained on rows without names: give indices and values instead of a dict.")
        reader = row_reader(described)
        self.encoding_ = reader.description()
        vars(self)[READER] = self.encoding_, reader
        return reader

    def learn_dict(self, row: Mapping[str, Any], target: Any, weight: float) -> None:
        """Learn a row whose target is that of the outputs."""
        learner, reader = self.learner_, self._reader()
        if isinstance(learner, Final):
            learner.learn()  # which refuses
        lock = learner.lock
        lock.acquire()
        known = reader.count
        try:
            columns, values = reader.arrays(row, True)
            if weight == 1.0:
                learner.learn_one(columns, values, target)
            else:
                width = max(learner.size, 1 + int(columns.max(initial=0)))
                X = sp.csr_matrix((values, columns, [0, len(columns)]), shape=(1, width))
                learner.learn(X, np.reshape(target, (1, -1)) if learner.n_outputs > 1 else [target], [weight])
            if self.n_features_in_ != learner.size:
                self.n_features_in_ = learner.size or 1
        except Exception:
            reader.forget_after(known)
            raise
        finally:
            lock.release()

    def quick_score(self, row: Any) -> float | None:
        """The score of a dict of numbers while nothing is learned; None where ``score_dict`` is to be asked."""
        held = self._row_scores
        return held.score(row) if held is not None and held.learner is self.learner_ else None

    def score_dict(self, row: Mapping[str, Any]) -> Any:
        """The score of a row, a float or (K,). Lists all weights where that is worth it."""
        learner, reader = self.learner_, self._reader()
        if isinstance(learner, Final):
            found = learner.predict_one(*as_arrays(reader.row(row, False)))
        else:
            lock = learner.lock  # the arrays are those of all rows of these names
            lock.acquire()
            try:
                found = learner.predict_one(*reader.arrays(row, False))
            finally:
                lock.release()
        held, now = self._row_scores, steps_of(learner)
        if learner.n_outputs == 1 and (held is None or held.learner is not learner or held.t != now):
            t, reads = self._row_reads
            self._row_reads = now, (reads + 1 if t == now else 1)
            if self._row_reads[1] > 1 + learner.size // WORTH:
                self._row_scores = HeldScores(learner, reader, list(getattr(self, "classes_", np.empty(0)).tolist()))
        return found

    def dicts_as_rows(self, rows: Any) -> Any:
        """Dicts as a CSR matrix in the columns of the model."""
        reader, indptr, columns, values = self._reader(), [0], [], []
        size = max(1, self.learner_.size)
        for row in rows:
            if not is_record(row):
                raise TypeError(f"X: expected a dict for each row, got {type(row).__name__}.")
            found, entries = reader.row(row, grow=False)
            kept = [k for k, column in enumerate(found) if column < size]
            columns += [found[k] for k in kept]
            values += [entries[k] for k in kept]
            indptr.append(len(columns))
        return sp.csr_matrix((np.array(values, np.float64), np.array(columns, np.int64), indptr), shape=(len(rows), size))


def without_rows(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a copy has."""
    return {name: value for name, value in state.items() if not name.startswith("_row_")}
