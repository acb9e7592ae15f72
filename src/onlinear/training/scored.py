"""Loss and measures of rows that are scored before, or without, being learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.loss_sums import LossSum, mean
from onlinear.rows import Source
from onlinear.training.intake import Targets
from onlinear.training.metrics import ClassMeasures, Measures, NumberMeasures, add_in_order


class ScoredRows:
    """How many rows were scored, their weight, the sum of their losses, and their measures."""

    def __init__(self, loss: Any, regress: bool) -> None:
        self.rows, self.weight, self.losses = 0, 0.0, LossSum(loss)
        self.measures: Measures = NumberMeasures() if regress else ClassMeasures()
        self._regress, self._mean = regress, getattr(loss, "mean", None)

    @property
    def loss(self) -> float:
        """Mean loss; nan before the first row."""
        return mean(self.losses.value, self.weight)

    def measure(self, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
        """Measure rows whose losses are summed elsewhere: scores (K, n), places of classes or numbers, weights."""
        if self._regress:
            scores = scores[0] if self._mean is None else self._mean(scores[0])
        self.measures.add(scores, truth, weights)
        self.rows += len(truth)
        self.weight = add_in_order(self.weight, weights)

    def score(self, learner: Learner, source: Source, targets: Targets, weights: np.ndarray) -> np.ndarray:
        """Score rows by what predicts, and learn nothing; give the scores, (K, n)."""
        scores = learner.predict(source).reshape(source.n, -1)
        self.losses.add(scores, targets.learned, weights)
        self.measure(scores.T, targets.truth, weights)
        return scores.T

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """All sums, by name."""
        return {"tally": np.array([self.rows, self.weight, *self.losses.total]), **self.measures.arrays()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the sums of ``arrays``; raises ModelFileError for sums that no rows give."""
        rows, self.weight, *losses = trust.array(arrays, "tally", np.float64, 4).tolist()
        trust.must(0.0 <= rows <= trust.MOST_STEPS and rows % 1.0 == 0.0, f"a sum of {rows:g} rows")
        self.rows, self.losses.total[:] = int(rows), losses
        self.measures.restore(arrays)
