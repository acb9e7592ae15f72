"""Measures of a run over the rows that it learns, and the reports that it makes of them."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from onlinear.learner import Learner
from onlinear.learner.loss_sums import LossSum, Total, mean
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.rows import Source
from onlinear.streams.labels import Labels, shown
from onlinear.training.best_constant import Constant
from onlinear.training.doubts import Advice
from onlinear.training.events import Last, Linear, Report
from onlinear.training.intake import Targets
from onlinear.training.place import Place
from onlinear.training.quality import Quality
from onlinear.training.scored import ScoredRows
from onlinear.training.trainable import Trainable


class WeightedLoss(NamedTuple):
    """A sum of losses and the weight of its rows."""

    loss: Total = Total()
    weight: float = 0.0

    @classmethod
    def of_numbers(cls, loss: float, weight: float, rest: float = 0.0) -> WeightedLoss:
        """What ``numbers`` gave; checkpoints of 0.1 lack the last."""
        return cls(Total(loss, rest), weight)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The numbers of a checkpoint."""
        return self.loss.value, self.weight, self.loss.rest

    def means(self, before: WeightedLoss) -> tuple[float, float]:
        """The mean loss of all rows and of those since ``before``; nan of no weight."""
        return mean(self.loss.value, self.weight), mean(self.loss.since(before.loss), self.weight - before.weight)


class Reporter:
    """Reports how well a model has predicted its rows, each before it was learned.

    ``scored``: what the model that would be saved has scored; the learner sums the losses of its last iterate itself. Where
    predictions are clipped, the losses of the linear scores are summed beside.
    """

    def __init__(
        self, model: Trainable, learner: Learner, place: Place, labels: Labels | None, *, continues: bool, reports: bool
    ) -> None:
        self._model, self._learner, self._place, self._labels = model, learner, place, labels
        self.scored = ScoredRows(learner.loss, labels is None)
        count = None if labels is None else labels.count
        self.quality = Quality(learner, count, model.negative_target(learner.n_outputs))
        self._continues, self._reports = continues, reports
        race = learner.race
        # What the learner's sums hold of rows before this run.
        self._before = learner.loss_sums.copy() if continues else None
        self._predicted_before = race.predicted.copy() if continues and race is not None else None
        self.reported = 0  # rows of the last report
        self._last_then = WeightedLoss()  # at the last report, of the last iterate
        self._averaged_then = WeightedLoss()  # the same of the average
        self._linear, self._linear_then = LossSum(learner.loss) if learner.clips else None, WeightedLoss()

    @property
    def due(self) -> float:
        """The row count of the next report: the next power of two, unless it is reported; infinite where none is made."""
        return self.reported * 2 or 1 if self._reports else inf

    @property
    def lags(self) -> bool:
        """Whether there are rows that no report tells of, and one does."""
        return self._reports and self._place.rows != self.reported

    def add(self, scores: np.ndarray, targets: Targets, weights: np.ndarray) -> None:
        """Add rows that the learner has scored and learned, as ``learn_checked`` gives the scores."""
        self.scored.measure(scores[1], targets.truth, weights)
        self.quality.add(scores[1], targets.truth, weights)
        if self._linear is not None:
            self._linear.add(scores[3].T, targets.learned, weights)

    def score(self, source: Source, targets: Targets, weights: np.ndarray) -> None:
        """Score rows by the average, before they are learned."""
        scores = self.scored.score(self._learner, source, targets, weights)
        self.quality.add(scores, targets.truth, weights)
        if self._linear is not None:
            self._linear.add(self._learner.linear_scores(source)[:, None], targets.learned, weights)

    def report(self, held: ScoredRows) -> Report:
        """A report of the rows so far, which the model adds to its history; ``held``: the held-out rows of this pass."""
        rows, weight, last = self._place.rows, self.scored.weight, None
        doubled = rows == self.due
        sums = WeightedLoss(self._last_loss, weight)
        loss, since = sums.means(self._last_then)
        self._last_then, self.reported = sums, rows
        if self._learner.averaged:
            last = Last(loss, since, self._learner.count_nonzeros(average=False))
            sums = WeightedLoss(self.total_loss, weight)
            loss, since = sums.means(self._averaged_then)
            self._averaged_then = sums
        if doubled:
            self.quality.mark(rows, sums.loss, weight)
        error, quality = self.scored.measures.values()
        holdout = held.loss if held.rows else None
        nonzeros, linear = self._learner.count_nonzeros(average=True), self._report_linear(weight)
        report = Report(rows, loss, since, error, quality, nonzeros, holdout, last, linear)
        if not self._continues:
            self._model.add_report(report.kept(self.scored.measures.names))
        return report

    def _report_linear(self, weight: float) -> Linear | None:
        """The losses of the linear scores, of rows of this weight; None where nothing clips them."""
        if self._linear is None:
            return None
        sums = WeightedLoss(Total.of(self._linear.total), weight)
        found, self._linear_then = Linear(*sums.means(self._linear_then)), sums
        return found

    @property
    def _last_loss(self) -> Total:
        """The sum of the losses of the last iterate, over the rows learned."""
        return Total.of(self._learner.loss_sums, self._before)

    @property
    def total_loss(self) -> Total:
        """The sum of the losses of what predicts, over the rows learned."""
        if self._learner.race is not None:
            return Total.of(self._learner.race.predicted, self._predicted_before)
        return Total.of(self.scored.losses.total) if self._learner.averaged else self._last_loss

    def constant(self) -> Constant | None:
        """The best constant for the rows learned so far."""
        return self.quality.constant()

    def doubts(self, passes: int | None, *, command: bool, continues: bool) -> list[str]:
        """Why the model may be of no use, and that more passes may help: in the command's words or Python's. ``passes``: None
        where there can be no more."""
        advice = self._advice(command=command, continues=continues)
        return self.quality.doubts(self._place.rows, self.total_loss, self.scored.weight, advice, passes)

    def one_class(self, *, command: bool) -> list[str]:
        """That all rows are of one class, which says something of a certified model too."""
        return self.quality.one_class(self._advice(command=command, continues=False))

    def _advice(self, *, command: bool, continues: bool) -> Advice:
        names = () if self._labels is None else map(shown, self._labels.names.tolist())
        rows = self._place.rows // max(1, self._place.number)
        return Advice.of(self._learner, names, rows, command=command, continues=continues)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    @property
    def then(self) -> tuple[float, float, int, float]:
        """What the last report knew: sums of losses and weights, rows, and what rounding left out of the losses."""
        loss, weight, rest = self._last_then.numbers
        return loss, weight, self.reported, rest

    @property
    def averaged_then(self) -> tuple[float, float, float]:
        """The sums of the average at the last report."""
        return self._averaged_then.numbers

    @property
    def linear(self) -> tuple[float, ...] | None:
        """Of the linear scores: the sum of losses and its correction, then both sums at the last report; None without."""
        return None if self._linear is None else (*self._linear.total.tolist(), *self._linear_then.numbers)

    def restore(self, run: Header, arrays: Arrays, quality: Arrays) -> None:
        """Take what a checkpoint knew of the rows before it; one of 0.1 knows nothing of an average, older ones nothing of
        linear scores."""
        if self._linear is not None and run.get("linear") is not None:
            self._linear.total[:] = run["linear"][:2]
            self._linear_then = WeightedLoss.of_numbers(*run["linear"][2:])
        else:
            self._linear = None
        loss, weight, self.reported, *rest = run["then"]
        self._last_then = WeightedLoss.of_numbers(loss, weight, *rest)
        self.scored.restore(arrays)
        self.quality.restore(run.get("quality"), quality)
        if run.get("scored") is not None and run.get("averaged then") is not None:
            self._averaged_then = WeightedLoss.of_numbers(*run["averaged then"])
        elif self._learner.averaged:  # what the last iterate scored stands for the rows so far
            self.scored.losses.total[:] = Total.of(self._learner.loss_sums)
            self._averaged_then = self._last_then
