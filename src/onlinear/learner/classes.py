"""Classes as outputs: one class against the rest, and the class that scores name. Classes are numbered by their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

TARGETS = 1 << 20  # numbers of rows, of which each output has one, that are made at once


def outputs_of(classes: int) -> int:
    """How many outputs tell so many classes apart: one tells two, else each class has its own."""
    return 1 if classes <= 2 else classes


def one_against_rest(places: np.ndarray, outputs: int, negative: float) -> np.ndarray:
    """The targets (n, K) of rows from their classes' places: 1 for the output's own class, ``negative`` for the others."""
    own = np.arange(outputs) if outputs > 1 else np.arange(1, 2)
    return np.where(own[:, None] == places, 1.0, negative).T  # output by output, as kernels take them


def rows_at_once(outputs: int) -> int:
    """The most rows of so many outputs whose targets and scores are made at once."""
    return max(1, TARGETS // outputs)


class OneAgainstRest:
    """``one_against_rest`` of many rows, made for those that are asked for: all at once they would be n times K numbers."""

    def __init__(self, places: np.ndarray, outputs: int, negative: float) -> None:
        self.places = places
        self._outputs, self._negative = outputs, negative

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return one_against_rest(self.places[rows], self._outputs, self._negative)

    def take(self, rows: np.ndarray) -> OneAgainstRest:
        """Those of some rows."""
        return OneAgainstRest(self.places.take(rows), self._outputs, self._negative)


def targets_by_label(places: Mapping[Any, int], outputs: int, negative: float) -> Mapping[Any, Any]:
    """What rows of each label are learned as, by the places of their classes: a number where there is one output, else the (K,)
    targets, which are made when they are asked for where those of all labels would be many."""
    made = MadeTargets(places, outputs, negative)
    return made if len(places) * outputs > TARGETS else dict(made)


class MadeTargets(Mapping[Any, Any]):
    """``targets_by_label``, made when they are asked for."""

    def __init__(self, places: Mapping[Any, int], outputs: int, negative: float) -> None:
        self._places, self._outputs, self._negative = places, outputs, negative

    def __getitem__(self, label: Any) -> Any:
        target = one_against_rest(np.array([self._places[label]]), self._outputs, self._negative)[0]
        return target.item() if self._outputs == 1 else target

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def best_class(scores: np.ndarray, axis: int) -> np.ndarray:
    """The place of the class that scores name; the outputs are along ``axis``, which the result lacks. A single output names
    the second class where it is positive."""
    if scores.shape[axis] > 1:
        return np.argmax(scores, axis=axis)
    return (np.take(scores, 0, axis=axis) > 0.0).astype(np.intp)


def best_class_of_row(score: Any) -> int:
    """``best_class`` of one row, from the score of a single output or from the (K,) scores of several."""
    return int(score > 0.0) if isinstance(score, float) else int(np.argmax(score))
