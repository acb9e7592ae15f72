"""What the user asks of a run over a stream, and the task that follows from it and from the first labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner.parts import build_loss
from onlinear.losses import COUNTS, bend_of, loss_labels
from onlinear.streams import Block, Stream
from onlinear.streams.labels import shown
from onlinear.text.form import quoted

PEEK = 1000  # rows that decide the task where neither the loss nor the source does
PEEK_ENTRIES = 1 << 24  # fewer rows do where they have more non-zeros
CLASSIFY, REGRESS = "classify", "regress"
TASKS = ("auto", CLASSIFY, REGRESS)


class Options(NamedTuple):
    """What the user asked of a run; the model has its own settings."""

    passes: int = 1
    task: str = "auto"
    loss: Any = None  # that of the model where it was named: it may tell the task
    classes: Sequence[Any] | np.ndarray | None = None
    known: bool = False  # whether these are the classes of a model, which keep their type and order
    features: int | None = None  # fixed in advance, or None: the columns seen
    holdout: Callable[[], Stream] | None = None  # opens rows that are scored after each pass, instead of marked ones
    class_weights: Mapping[Any, float] | None = None  # by which rows count beside their own weights, held-out ones too
    continues: bool = False  # whether the model was trained before: its history and its count of passes stay
    patience: int | None = None  # passes without a better loss of the held-out rows before the run ends; None: never early
    most: int | None = None  # with a model that ends at a certified gap: the most readings of all rows; None: no certificate
    auto: bool = False  # whether the rows were asked for the passes
    slope: float | None = None  # the calibration slope that the model keeps after its last pass, where rows held out gave one
    reports: bool = True  # whether the run reports on its rows, which takes a look at every weight


def choose_task(options: Options, stream: Stream, head: Sequence[Block]) -> str:
    """The task: as asked, or as the loss, the source and the first labels tell."""
    if options.task == REGRESS and stream.labels is not None:
        names = ", ".join(map(quoted, stream.labels[:3]))
        raise ValueError(
            f"the target of {stream.name} is text ({names}), which names classes, and a regression needs numbers: give a "
            f"column of numbers, or take OnlineClassifier (in the command --task {CLASSIFY})."
        )
    if options.task != "auto":
        return options.task
    if options.classes is not None or stream.classes is not None or stream.labels is not None:
        return CLASSIFY
    rule = "real" if options.loss is None else loss_labels(build_loss(options.loss))
    if rule != "real":
        return CLASSIFY if rule == "signs" else REGRESS
    y = _deciding(head)
    if np.all(np.isin(y, (-1.0, 0.0, 1.0))):
        return CLASSIFY
    if np.any(y != np.rint(y)) or stream.task == REGRESS or is_for_numbers(options.loss):
        return REGRESS
    raise ValueError(
        f"are the labels of {stream.name} (such as {shown(y[0])}) classes or numbers? "
        f"Say --task {REGRESS}, or name the classes (--classes a,b,c, or --scan)."
    )


def decides(rows: int, entries: int) -> bool:
    """Whether the first rows of a stream, with so many non-zeros, are enough to decide the task."""
    return rows >= PEEK or entries >= PEEK_ENTRIES


def _deciding(head: Sequence[Block]) -> np.ndarray:
    """The labels of the rows that decide the task, which are the first of these."""
    y = np.concatenate([block.y for block in head])
    entries = np.cumsum(np.concatenate([np.diff(block.rows.indptr) for block in head]))
    return y[: min(PEEK, 1 + int(np.searchsorted(entries, PEEK_ENTRIES)))]


def is_for_numbers(loss: Any) -> bool:
    """Whether a loss is one of those with which users fit numbers, never codes of classes: of counts, or whose slope has a
    bound."""
    built = None if loss is None else build_loss(loss)
    return built is not None and (loss_labels(built) == COUNTS or bend_of(built) is not None)
