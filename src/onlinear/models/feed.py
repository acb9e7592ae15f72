"""Rows in memory, checked, in the order in which they are learned; and callbacks between their blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner.classes import OneAgainstRest, best_class, rows_at_once
from onlinear.learner.loss_sums import LossSum, mean
from onlinear.rows import Source
from onlinear.training.few_rows import order_of
from onlinear.training.tasks import BLOCK, PASS, Attributes, Tasks

ROWS = 1 << 13  # rows between two calls of the callbacks, at most
TAKEN = 1 << 16  # rows of a shuffle whose places, targets and weights are looked up together


class Progress:
    """What a callback is told after each block of rows; nothing is computed before it is asked for."""

    def __init__(self, estimator: Any, total: int | None) -> None:
        self.estimator = estimator
        self.total = total  # rows learned when this call of fit or partial_fit ends; None where a stream does not know

    @property
    def rows(self) -> int:
        """Rows learned so far."""
        return self.estimator.t_

    @property
    def loss(self) -> float:
        """Mean over the rows learned of weight times loss, each scored by the last iterate before it was learned."""
        return self.estimator.learner_.progressive_loss

    @property
    def nonzeros(self) -> int:
        """Weights of ``coef_`` that are not 0."""
        return int(np.count_nonzero(self.estimator.coef_))


Blocks = Iterator[tuple[Source, np.ndarray, np.ndarray, Callable[[int], str]]]


def row_of_source(places: np.ndarray | range, row: int) -> str:
    """The name of a row of a block, whose rows stand at these places of X; with a space behind it."""
    return f"at row {places[row]} of X "


class Feed(NamedTuple):
    """Checked rows with the order, block by block, in which they are to be learned."""

    source: Source
    y: np.ndarray | OneAgainstRest
    weights: np.ndarray
    orders: Iterator[np.ndarray | None]
    total: int

    @property
    def classes(self) -> np.ndarray:
        """The place of each row's class, where the targets tell classes apart."""
        return self.y.places if isinstance(self.y, OneAgainstRest) else best_class(self.y, axis=1)

    def passes(self, tasks: Tasks, rows: int) -> Iterator[Blocks]:
        """The blocks of each pass, of so many ``rows``, until ``tasks`` ask for an end."""
        for order in self.orders:
            tasks.begin(PASS)
            yield self._blocks(order, tasks, rows)
            if tasks.end(PASS) or tasks.stopped:
                return

    def _blocks(self, order: np.ndarray | None, tasks: Tasks, rows: int) -> Blocks:
        """Rows, targets and weights, so many ``rows`` at a time, and what names a row."""
        for source, y, weights, places in self._stretches(order):
            for first in range(0, source.n, rows):
                part = slice(first, first + rows)
                tasks.begin(BLOCK)
                yield source.cut(part), np.asfortranarray(y[part]), weights[part], partial(row_of_source, places[part])
                if tasks.end(BLOCK):
                    return

    def _stretches(
        self, order: np.ndarray | None
    ) -> Iterator[tuple[Source, np.ndarray | OneAgainstRest, np.ndarray, np.ndarray | range]]:
        """Rows, targets, weights and the rows' places, in order. Those in an order of their own are looked up ``TAKEN`` at a
        time, while what is looked up in stays in the cache: the rows of a block would drive it out."""
        if order is None:
            yield self.source, self.y, self.weights, range(self.source.n)
            return
        for first in range(0, len(order), TAKEN):
            which = order[first : first + TAKEN]
            yield self.source.take(which), self._targets(which), self.weights.take(which), which

    def _targets(self, which: np.ndarray) -> np.ndarray | OneAgainstRest:
        if isinstance(self.y, OneAgainstRest):
            return self.y.take(which)
        return np.stack([targets.take(which) for targets in self.y.T]).T


class ScoredBefore:
    """Losses of few rows, ``n`` in all, each scored before it was trained on: of the second quarter and of the second half."""

    def __init__(self, loss: Any, n: int) -> None:
        self._losses, self._weights, self._rows = (LossSum(loss), LossSum(loss)), [0.0, 0.0], 0
        self._ends = n // 4, n // 2, n

    def add(self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Add the next rows: scores (n, K), targets (n, K) and weights (n,)."""
        places = [max(0, end - self._rows) for end in self._ends]
        for k, part in enumerate(map(slice, places, places[1:])):
            self._losses[k].add(scores[part], y[part], weights[part])
            self._weights[k] += float(weights[part].sum())
        self._rows += len(weights)

    def halves(self) -> tuple[float, float]:
        """The mean losses."""
        first, second = (mean(losses.value, weight) for losses, weight in zip(self._losses, self._weights, strict=True))
        return first, second


def orders(draw: np.random.Generator, n: int, shuffle: bool | str, passes: int) -> Iterator[np.ndarray | None]:
    """The order of the rows in each pass, all from one generator; None: as they stand."""
    for _ in range(passes):
        yield order_of(draw, shuffle, n)


def rows_told(outputs: int) -> int:
    """Rows between two calls of the callbacks: of many outputs fewer, so that their targets and scores stay small."""
    return min(ROWS, rows_at_once(outputs))


def rows_untold(outputs: int) -> int:
    """Rows between which nobody is told anything, nor waits to read."""
    return max(rows_told(outputs), TAKEN // outputs)


def start_passes(tasks: Tasks, passes: int, blocks: int | None, fitted: Callable[[], Attributes | None] | None = None) -> None:
    """Begin tasks that are passes, or of a single pass so many ``blocks``; None where their number is not known."""
    if passes > 1:
        tasks.start(PASS, passes, fitted)
    else:
        tasks.start(BLOCK, blocks, fitted)


def tell(callbacks: list[Callable[[Progress], Any]], progress: Progress) -> None:
    """Call all callbacks."""
    for callback in callbacks:
        callback(progress)


def check_callbacks(callbacks: Any) -> list[Callable[[Progress], Any]]:
    """The callbacks as a list; raises TypeError for what is none."""
    found = [] if callbacks is None else callbacks
    if not isinstance(found, (list, tuple)) or not all(map(callable, found)):
        raise TypeError(f"callbacks must be a list of functions of one argument, got {callbacks!r}.")
    return list(found)


@contextmanager
def show_bar(start: int, total: int | None) -> Iterator[Callable[[Progress], None]]:
    """A progress bar, as a callback."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown

    columns = TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Shown(*columns, TextColumn("progressive loss {task.fields[loss]:.5g}")) as shown:
        task = shown.add_task("rows", total=total, completed=start, loss=float("nan"))
        yield lambda info: shown.update(task, completed=info.rows, loss=info.loss)
