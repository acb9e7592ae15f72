"""Weights of classes: a row counts by its own weight times the weight of its class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from onlinear.streams.blocks import Block, Stream, StreamError, Wrapped
from onlinear.streams.labels import Labels, label_in, list_classes, refuse_names_of_rows, shown


class ClassWeighted(Wrapped):
    """A stream whose rows also count by the weights of their classes; a class without a weight has 1.

    ``classes``, ``known``: as ``Labels`` takes them. Where all names in ``weights`` are text, they may be numbers written as
    text.
    Raises ValueError for a name that is no class, where a class has no weight, as soon as the classes are known.
    """

    def __init__(self, stream: Stream, classes: Any, weights: Mapping[Any, float], *, known: bool = False) -> None:
        super().__init__(stream)
        self._classes, self._weights, self._known = classes, weights, known
        self._labels: Labels | None = None

    def __iter__(self) -> Iterator[Block]:
        for block in self._stream:
            if self._labels is None:
                self._labels = Labels(self._stream, self._classes, known=self._known)
            places = self._labels.places(block)
            yield block._replace(weights=weights_by_class(block, self._of_places(self._labels)[places]))

    def _of_places(self, labels: Labels) -> np.ndarray:
        weights = typed(self._weights, text=self._stream.labels is not None)
        held = set(labels.as_labels)
        unknown = [name for name in weights if name not in held]
        # A name too many is an error where a class has no weight, which it may stand for.
        if unknown and labels.classes is not None and len(weights) - len(unknown) < len(held):  # else the next rows decide
            known = list_classes(labels.names)
            raise ValueError(f"class_weight has a weight for {unknown[0]!r}, which is none of the classes {known}.")
        found = np.array([float(weights.get(name, 1.0)) for name in labels.as_labels])
        return found if labels.classes is None else some_above_zero(found)


class InfiniteWeightError(ValueError):
    """The weight of a row times that of its class is no finite number."""

    def __init__(self, row: int, weight: float, of_class: float) -> None:
        super().__init__(
            f"expected a finite weight, got {weight:g} of the row times {of_class:g} of class_weight: divide one by a constant."
        )
        self.row = row


def times_of_classes(weights: np.ndarray, of_classes: np.ndarray) -> np.ndarray:
    """The weights of rows times those of their classes; raises InfiniteWeightError."""
    with np.errstate(over="ignore"):
        found = weights * of_classes
    if np.max(found, initial=0.0) == np.inf:
        row = int(np.argmax(found))
        raise InfiniteWeightError(row, float(weights[row]), float(of_classes[row]))
    return found


def weights_by_class(block: Block, of_classes: np.ndarray) -> np.ndarray:
    """The weights of the rows of a block times those of their classes; raises StreamError for an infinite one."""
    try:
        return times_of_classes(block.importance, of_classes)
    except InfiniteWeightError as error:
        raise StreamError(f"{block.where(error.row)}: {error}") from None


def some_above_zero(weights: np.ndarray) -> np.ndarray:
    """The weights of all classes; raises ValueError where each is zero: no row would count."""
    if not np.any(weights):
        raise ValueError("class_weight gives every class the weight zero; one class needs a weight above zero.")
    return weights


def typed(weights: Mapping[Any, float], *, text: bool) -> dict[Any, float]:
    """Weights by the names that classes of a stream have, ``text`` or numbers: names that are all text are numbers there."""
    if text:
        names = [shown(name) if isinstance(name, (int, float)) else name for name in weights]
    elif not all(isinstance(name, str) for name in weights):
        return dict(weights)
    else:
        names = [_number(name) for name in weights]
    found = dict(zip(names, weights.values(), strict=True))
    if len(found) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"class_weight gives the class {shown(twice)} two weights.")
    return found


def _number(name: str) -> Any:
    """The text as a number, where it is one; else the text."""
    try:
        value = float(name)
    except ValueError:
        return name
    return int(value) if value.is_integer() else value


def add_by_label(totals: dict[float, float], labels: np.ndarray, places: np.ndarray, weights: np.ndarray) -> None:
    """Add the weights of rows to the totals of their labels; ``places``: theirs among ``labels``."""
    sums = np.array([totals.get(label, 0.0) for label in labels.tolist()])
    np.add.at(sums, places, weights)  # in row order, however the rows come in blocks
    totals |= dict(zip(labels.tolist(), sums.tolist(), strict=True))


def class_totals(stream: Stream, *, finds: bool) -> dict[Any, float]:
    """The weight of the rows of each label, by one pass over the stream; rows that are held out weigh nothing.

    ``finds``: whether the labels become the classes. Raises StreamError for a stream that cannot be read twice.
    """
    if not stream.rereadable:
        raise StreamError(
            f"{stream.name} cannot be read twice, and class_weight='balanced' counts the labels of all rows before the first: "
            "name the weights (--class-weight 0=1,1=20, in Python class_weight={0: 1, 1: 20})."
        )
    found: dict[float, float] = {}
    rows = 0
    for block in stream:
        rows += len(block.y)
        add_by_label(found, *np.unique(block.y, return_inverse=True), block.learned_importance)
    if finds:
        refuse_names_of_rows(stream, len(found), rows)
    return {label_in(stream, y): total for y, total in sorted(found.items())}


def balanced_weights(stream: Stream, *, finds: bool = False) -> dict[Any, float]:
    """The weight of each label of a stream by which all labels have the same total, as ``class_totals``; one pass over it."""
    totals = class_totals(stream, finds=finds)
    return dict(zip(totals, balanced(totals.values()).tolist(), strict=True))


def balanced(totals: Iterable[float]) -> np.ndarray:
    """The weights that give all classes the same total: W / (K W_k), with W_k the total of class k, W that of all, and K the
    number of classes that have rows; 1 for a class without rows."""
    sums = np.array(list(totals), np.float64)
    used = sums > 0.0
    return np.divide(sums.sum(), np.count_nonzero(used) * sums, out=np.ones(len(sums)), where=used)
