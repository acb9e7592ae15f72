"""Scores of rows by the weights of all outputs, and what a penalty says of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import WIDTH
from onlinear.rows import Rows, Source, dot_rows_abreast, dot_rows_at

CALL = 1 << 10  # weights that are read in the time that a call takes
MOST_HELD = 1 << 26  # bytes of weights that are held for the next rows; more where they are half of the state at most

Predictors = tuple[np.ndarray, np.ndarray]  # weights (d, K) and intercepts (K,), in the units of rows and targets


def predictors_of(learner: Any) -> Predictors:
    """The weights and the intercepts by which a learner, or what predicts of one, predicts."""
    weights = learner.weights(average=True).reshape(learner.size, learner.n_outputs)
    return weights, np.atleast_1d(np.asarray(learner.intercept(average=True), np.float64))


class Weights(NamedTuple):
    """The weights and intercepts of all outputs, as rows are scored by them."""

    biases: np.ndarray  # (K,)
    tables: list[np.ndarray]  # (columns,) of the only output, or (columns, WIDTH) of as many at a time

    @property
    def bytes(self) -> int:
        """What the weights take."""
        return sum(table.nbytes for table in self.tables)

    @classmethod
    def of(cls, outputs: Iterable[tuple[float, np.ndarray]], count: int, columns: int) -> Weights:
        """Those of ``count`` outputs, given as the intercept and the weights of each."""
        if count == 1:
            bias, weights = next(iter(outputs))
            return cls(np.array([bias]), [weights])
        biases, tables = np.empty(count), [np.zeros((columns, WIDTH)) for _ in range(0, count, WIDTH)]
        for k, (bias, weights) in enumerate(outputs):
            biases[k], tables[k // WIDTH][:, k % WIDTH] = bias, weights
        return cls(biases, tables)

    def score_rows(self, source: Source) -> np.ndarray:
        """<w, x> + b of each row and output, (n, K); columns beyond the weights have weight 0."""
        out = np.empty((source.n, len(self.biases)))
        for which, block in source.blocks() if len(self.biases) == 1 else source.pieces():
            self.score_block(block, out[which])
        return out

    def score_block(self, block: Rows, out: np.ndarray) -> None:
        """Write the scores of these rows."""
        if len(self.biases) == 1:
            out[...] = self.biases
            dot_rows_at(block, self.tables[0], out.reshape(-1))
            return
        scores = np.zeros((block.count, WIDTH))
        for first, table in zip(range(0, len(self.biases), WIDTH), self.tables, strict=True):
            biases = self.biases[first : first + WIDTH]
            scores[:, : len(biases)] = biases
            dot_rows_abreast(block, table, scores)
            out[:, first : first + WIDTH] = scores[:, : len(biases)]


def penalty_value(penalty: Any, w: np.ndarray) -> float:
    """r(w), also of a penalty that takes one weight at a time."""
    try:
        return float(np.sum(penalty.value(w)))
    except (TypeError, ValueError):
        return float(sum(penalty.value(v) for v in w))
