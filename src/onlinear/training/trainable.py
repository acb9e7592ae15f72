"""What a run over a stream needs of a model: the estimators and the command's models have it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from onlinear.learner import Learner
from onlinear.learner.stored_learner import Arrays, Header


class Trainable(Protocol):
    """A model that a run trains. The run trains ``learner_``, and tells the model what it has found."""

    task: str
    solver: Any
    learner_: Learner

    @property
    def is_fitted(self) -> bool:
        """Whether it has a learner."""

    def leaves_means(self) -> bool:
        """Whether the way to a certified gap leaves columns their means, which passes without it take off."""

    def chosen_scale(self) -> Any:
        """The scale of the columns: as named, else the model's own choice."""

    def negative_target(self, outputs: int) -> float:
        """The target of rows of other classes than an output's own."""

    def start_learner(self, outputs: int, *, features: int | None, total: int | None) -> Learner:
        """Make the learner, of so many columns, for so many rows in all; None where they are not known."""

    def start_certified(self, outputs: int, *, features: int | None, total: int | None) -> Learner:
        """Make the learner of the online passes before those that certify."""

    def certified_after(self, online: Learner) -> Learner:
        """The learner that ends at a certified gap, where another stands after the online passes."""

    def take(self, learner: Learner) -> Learner:
        """Have a learner, made of the model's settings; gives it."""

    def start_history(self) -> None:
        """Forget the reports of the run before."""

    def add_report(self, report: dict[str, float | None]) -> None:
        """Add a report to the history."""

    def describe_rows(self, features: int, encoding: dict[str, Any] | None, classes: np.ndarray | None) -> None:
        """Take what the rows have shown: columns, how features became columns, and the classes; None for numbers."""

    def end_passes(self, passes: int | None, best: Learner | None) -> None:
        """Say how many passes the learner has made, None where it was trained before; ``best``: the learner of an earlier pass,
        to be taken instead."""

    def freeze(self) -> tuple[Header, Arrays]:
        """Settings and state, as a model file holds them."""

    def save(self, path: str, final: bool = False) -> None:
        """Write a model file."""
