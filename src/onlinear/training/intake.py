"""From the blocks of a stream to what a learner takes: targets, checked rows, centred rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner import Learner
from onlinear.learner.classes import one_against_rest
from onlinear.learner.limits import growth_error, state_limit
from onlinear.losses import loss_labels
from onlinear.rows import BLOCK, LARGEST_VALUE, Rows, Source, row_beyond, row_of, unlearnable
from onlinear.streams import Block, Stream, StreamError, encoding
from onlinear.streams.labels import Labels, shown


class Targets(NamedTuple):
    """The targets of some rows."""

    learned: np.ndarray  # (n, K), what the learner learns
    truth: np.ndarray  # (n,), what measures compare: the place of the row's class, or its number


class Intake:
    """Makes of a stream's rows what a learner takes, and refuses rows that it cannot learn.

    ``labels`` names the classes, None for numbers; ``negative`` is the target of rows of other classes.
    """

    def __init__(self, learner: Learner, stream: Stream, labels: Labels | None, negative: float) -> None:
        self._learner, self._stream, self._labels, self._negative = learner, stream, labels, negative

    def of(self, learner: Learner) -> Intake:
        """The same for another learner."""
        return Intake(learner, self._stream, self._labels, self._negative)

    def targets(self, block: Block, labels: Labels | None = None) -> Targets:
        """The targets of rows; ``labels``: those of another stream than the one that is learned."""
        labels = labels or self._labels
        if labels is not None:
            places = labels.places(block)
            return Targets(np.asfortranarray(one_against_rest(places, self._learner.n_outputs, self._negative)), places)
        return Targets(targets_of_numbers(block, self._learner.loss), block.y)

    def check(self, block: Block) -> Block:
        """The rows with the very number of columns that they have; raises StreamError for what cannot be learned."""
        block = self._fit_width(block)
        self._refuse_growth(block)
        self._learner.engine.check_rows(block.importance)
        refuse_unlearnable(block)
        return block

    def within_model(self, block: Block) -> Source:
        """The rows in the columns that the model has; others have weight 0."""
        return block.within(max(1, self._learner.size))

    def sources(self, block: Block) -> Iterator[tuple[slice, Source]]:
        """The rows as the learner takes them; those that are centred are dense, and made a few at a time."""
        if not self._learner.centres_rows:
            yield slice(0, block.n), block.source
            return
        step = max(1, BLOCK // max(1, self._learner.size))
        for first in range(0, block.n, step):
            part = block.cut(first, min(first + step, block.n))
            yield slice(first, first + part.n), self._learner.read_rows(part.csr(self._learner.size).toarray(), "X")

    def _fit_width(self, block: Block) -> Block:
        """The rows with the very number of columns that they have, where that could make the model grow."""
        learner = self._learner
        if block.size <= learner.size:
            return block
        columns = block.rows.indices
        size = int(columns.max()) + 1 if len(columns) else 0
        if size > learner.size and not learner.growing:
            entry = int(np.argmax(columns >= learner.size))
            row = row_of(entry, block.rows.indptr)
            raise StreamError(
                f"{block.where(row)}: expected {learner.size} columns at most (n_features), got column {columns[entry] + 1}."
            )
        return block._replace(size=size)

    def _refuse_growth(self, block: Block) -> None:
        """Refuse columns for which there is no room, in the rows or as arrays declare them."""
        learner = self._learner
        if not learner.growing:
            return
        if learner.too_wide(block.size) is not None:
            refuse_wide(block, learner.bytes_per_new_column, self._stream)
        if (wrong := learner.too_wide(getattr(self._stream, "width", 0))) is not None:
            raise StreamError(f"{self._stream.name}: {wrong}")


def targets_of_numbers(block: Block, loss: Any) -> np.ndarray:
    """The targets (n, 1) of rows that have numbers; raises StreamError for one that the loss does not take."""
    if loss_labels(loss) == "counts" and np.any(block.y < 0.0):
        row = int(np.argmax(block.y < 0.0))
        raise StreamError(f"{block.where(row)}: expected a count of 0 or more for this loss, got {shown(block.y[row])}.")
    return np.asfortranarray(block.y[:, None])


def refuse_unlearnable(block: Block) -> None:
    """Raise StreamError for a value whose square is infinite, by file and line."""
    if (found := unlearnable(block.source)) is not None:
        row, value = found
        raise StreamError(f"{block.where(row)}: expected values of at most {LARGEST_VALUE:g} in size, got {value:g}.")


def refuse_wide(block: Block, each: int, stream: Stream) -> None:
    """Refuse columns for which there is no room at ``each`` bytes, before there is any."""
    if growth_error(block.size - 1, each) is not None and block.size > encoding.widest(stream.encoding):
        row, column = row_beyond(block.source, state_limit() // each)
        raise StreamError(f"{block.where(row)}: {growth_error(column, each)}")


def drop_held(block: Block) -> Block:
    """The rows that are not held out."""
    return block if block.held is None else block.take(np.flatnonzero(~block.held))


def rows_to_compile_with(outputs: int) -> tuple[Source, np.ndarray, np.ndarray]:
    """Three rows of two columns, targets (3, outputs) that every loss takes, and weights."""
    rows = Rows(np.array([0, 2, 4, 5], np.uint64), np.array([0, 1, 0, 1, 0], np.uint32), np.ones(5))
    targets = np.full((3, outputs), -1.0, order="F")
    targets[:, 0] = 1.0
    return Source(3, 2, 2, 1.0, rows), targets, np.ones(3)
