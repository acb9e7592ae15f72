"""What a measure is: a number taken at a moment of a run, or kept by a tracker that sees every row or iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlinear import Learner
from onlinear.losses import factor_of
from onlinear.papers.problems import LearningProblem


class Moment:
    """A learner between two rows."""

    def __init__(self, learner: Learner, problem: LearningProblem, trackers: dict[type, Any]) -> None:
        self.learner, self.problem, self.trackers = learner, problem, trackers

    @property
    def t(self) -> int:
        """Rows learned."""
        return self.learner.t

    @cached_property
    def output(self) -> np.ndarray:
        """The weights that predict."""
        return self.learner.weights(average=True)

    @cached_property
    def last(self) -> np.ndarray:
        """The last iterate."""
        return self.learner.weights()

    @cached_property
    def on_support(self) -> np.ndarray:
        """The weights that predict, 0 where the last iterate is 0."""
        return np.where(self.last != 0.0, self.output, 0.0)

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The method's vectors."""
        return self.learner.variables()

    def bias(self, average: bool) -> Any:
        """The intercept."""
        return self.learner.intercept(average=average)


class Tracker:
    """Sees every row before and after its step, or every iteration of a batch method."""

    by_row = True  # else: told of whole pieces, by ``learned``

    def __init__(self, learner: Learner, problem: LearningProblem) -> None:
        self.learner, self.problem = learner, problem
        self.t = 0

    def before(self, x: np.ndarray, y: float) -> None:
        """The learner stands at w_t."""

    def after(self, x: np.ndarray, y: float) -> None:
        """The learner stands at w_{t+1}."""

    def iterated(self) -> None:
        """A batch method has gone on by one iteration."""

    def learned(self, X: Any, y: np.ndarray) -> None:
        """The learner has learned these rows."""

    def sample_loss(self, w: np.ndarray, x: np.ndarray, y: float) -> float:
        """l_t(w)."""
        loss = self.problem.loss
        return factor_of(loss) * loss.value(float(w @ x), y)

    def sample_slope(self, w: np.ndarray, x: np.ndarray, y: float) -> float:
        """The slope of l_t in the score at w."""
        loss = self.problem.loss
        return factor_of(loss) * loss.slope(float(w @ x), y)


class Measure(NamedTuple):
    """A measure: its axis label, how it is taken, and the tracker it reads, if it needs every row."""

    label: str
    take: Callable[[Moment], Any]
    tracker: type[Tracker] | None = None


MEASURES: dict[str, Measure] = {}


def measure(name: str, label: str | None = None) -> Callable[[Callable[[Moment], Any]], Callable[[Moment], Any]]:
    """Enter a function of a moment under a name."""

    def enter(take: Callable[[Moment], Any]) -> Callable[[Moment], Any]:
        MEASURES[name] = Measure(label or name, take)
        return take

    return enter


def tracked(name: str, tracker: type[Tracker], attribute: str, label: str | None = None) -> None:
    """Enter an attribute of a tracker under a name."""
    MEASURES[name] = Measure(label or name, lambda moment: float(getattr(moment.trackers[tracker], attribute)), tracker)
