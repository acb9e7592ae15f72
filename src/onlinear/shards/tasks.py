r"""What is asked of a shard, as functions of it: each gives sums, which are merged with those of other shards (MATH 20.6).

survey    rows, columns, entries and squares of each column, labels
learn     one online pass; its weights, multiplied by the entries of their columns
correct   one pass of corrected steps from a centre; the same of its weights (20.7)
look      loss, gradient, curvatures and bound at points (20.5)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np

from onlinear.certified import in_scales
from onlinear.certified.newton import strengths_of
from onlinear.certified.sums import Asked, Sums, add_block
from onlinear.learner import Learner
from onlinear.learner.arguments import unnamed
from onlinear.learner.classes import one_against_rest
from onlinear.learner.loss_sums import loss_weights
from onlinear.rows import Rows, Source
from onlinear.shards.correction import Pass
from onlinear.shards.sources import Shard
from onlinear.streams import Block, Stream, StreamError
from onlinear.streams.encoding import MOST_SEEN
from onlinear.streams.labels import Labels, label_in, label_of, refuse_no_classes
from onlinear.streams.weighted import add_by_label, weights_by_class
from onlinear.training.intake import refuse_unlearnable, targets_of_numbers

MOST_LABELS = 1 << 16


class Survey(NamedTuple):
    """What a first reading finds."""

    rows: int
    weight: float
    counts: np.ndarray  # (d,): entries of each column, in rows that count
    squares: np.ndarray  # (d,): the sum of their squares
    largest: np.ndarray  # (d,): the largest of their sizes
    labels: dict[Any, float]  # the weight of the rows of each; empty for numbers
    columns: tuple[str, ...] | None  # their names, where rows in memory name them
    dense: int | None = None  # how many dense arrays have
    seen: dict[int, str] = {}  # noqa: RUF012 (never changed): the names of hashed columns, by their hashes, as they come
    counted: int = 0  # rows of a weight above 0

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.counts)

    def merged(self, other: Self) -> Survey:
        """That of the rows of both."""
        if self.rows and other.rows and self.columns != other.columns:
            raise ValueError("the columns of X must have the same names in all shards.")
        if None not in (self.dense, other.dense) and self.dense != other.dense:
            raise ValueError(f"dense X must have equally many columns in all shards, got {self.dense} and {other.dense}.")
        width = max(self.width, other.width)
        counts, squares, largest, more, added, its = (
            np.pad(array, (0, width - len(array))) for array in (*self[2:5], *other[2:5])
        )
        if len({isinstance(next(iter(each)), str) for each in (self.labels, other.labels) if each}) > 1:
            raise ValueError("y must be text in all shards or numbers in all.")
        labels = {label: self.labels.get(label, 0.0) + other.labels.get(label, 0.0) for label in self.labels | other.labels}
        return Survey(
            self.rows + other.rows,
            self.weight + other.weight,
            counts + more,
            squares + added,
            np.maximum(largest, its),
            labels,
            self.columns if self.rows else other.columns,
            other.dense if self.dense is None else self.dense,
            _first_names(self.seen | other.seen | self.seen),  # in the order of both, by the names of the first
            self.counted + other.counted,
        )

    def moments(self, kind: str) -> np.ndarray:
        """(2, d): what a scale of this kind keeps of the columns."""
        if kind != "rms":
            return np.stack([np.zeros(self.width), self.largest])
        means = np.divide(self.squares, self.counts, out=np.zeros(self.width), where=self.counts > 0.0)
        return np.stack([self.counts, means])


class Job(NamedTuple):
    """What all tasks after the survey are told."""

    loss: Any
    penalty: Any
    fit_intercept: bool
    scales: np.ndarray | None  # (d,): what columns are divided by; None: nothing
    width: int
    classes: list[Any] | None  # None: the targets are numbers
    weights: np.ndarray | None  # (K,): what multiplies the rows of each class
    outputs: int
    unit: float = 1.0  # a power of two near the mean weight of the rows, in which steps count weights and the penalty

    @classmethod
    def of(cls, learner: Learner, classes: list[Any] | None, weights: np.ndarray | None, unit: float = 1.0) -> Job:
        """What passes over shards are told of the learner of their end."""
        scales = None if learner.scaler is None else learner.scaler.scales()
        parts = learner.loss, learner.penalty, learner.fit_intercept
        return cls(*parts, scales, learner.size, classes, weights, learner.n_outputs, unit)


class Centre(NamedTuple):
    """Where a corrected pass begins, in scaled columns: weights, their gradients over all rows, and sizes of steps."""

    w: np.ndarray  # (d, K)
    b: np.ndarray  # (K,)
    g: np.ndarray  # (d, K): the gradient of the mean loss
    g_b: np.ndarray  # (K,)
    eta: np.ndarray  # (K,)


class Start(NamedTuple):
    """Weights of passes, by which a mean is formed: of each column by its entries, of the intercept by rows. Both count by the
    weights of rows."""

    sums: np.ndarray  # (d, K): weights times entries, in scaled columns
    counts: np.ndarray  # (d,): entries
    intercepts: np.ndarray  # (K,): intercepts times the weight of the rows
    weight: float
    zeros: np.ndarray  # (d, K): entries of the shards whose weight is 0

    @classmethod
    def of(cls, weights: np.ndarray, intercepts: np.ndarray, counts: np.ndarray, total: float) -> Start:
        """That of one pass: weights (d, K), intercepts (K,), entries of columns (d,) and the weight of the rows."""
        entries = counts[:, None]
        return cls(weights * entries, counts, intercepts * total, total, (weights == 0.0) * entries)

    def merged(self, other: Self) -> Start:
        """That of the rows of both."""
        return Start(
            self.sums + other.sums,
            self.counts + other.counts,
            self.intercepts + other.intercepts,
            self.weight + other.weight,
            self.zeros + other.zeros,
        )

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) and intercepts (K,)."""
        met = self.counts > 0.0
        weights = np.divide(self.sums, self.counts[:, None], out=np.zeros_like(self.sums), where=met[:, None])
        return weights, self.intercepts / self.weight if self.weight > 0.0 else self.intercepts

    def voted(self) -> np.ndarray:
        """(d, K): whether a weight is 0 in shards with more than half of the entries of its column."""
        return 2.0 * self.zeros > self.counts[:, None]


class Looks(NamedTuple):
    """The sums at several points."""

    at: tuple[Sums, ...]

    def merged(self, other: Self) -> Looks:
        """Those of the rows of both."""
        return Looks(tuple(mine.merged(its) for mine, its in zip(self.at, other.at, strict=True)))


def survey(shard: Shard, by_class: bool) -> Survey:
    """Read a shard for the first time.

    Parameters
    ----------
    shard : Shard
        The rows.
    by_class : bool
        Whether targets are classes, whose labels are counted.

    Returns
    -------
    Survey
        Its sums.

    Raises
    ------
    StreamError
        For rows that cannot be read or learned, by file and line, and for more than 65,536 labels.
    """
    stream = shard.open()
    found, rows, total, learned = np.zeros((3, 0)), 0, 0.0, 0
    labels: dict[float, float] = {}
    for block in stream:
        refuse_unlearnable(block)
        found = np.pad(found, ((0, 0), (0, max(0, block.size - found.shape[1]))))
        counted = _counted(block.rows, block.importance)
        columns, values = block.rows.indices[counted], block.rows.values[counted]
        np.add.at(found[0], columns, 1.0)  # in the order of the rows, however they come in blocks
        np.add.at(found[1], columns, values * values)
        np.maximum.at(found[2], columns, np.abs(values))
        rows, total = rows + block.n, _summed(total, block.importance)
        learned += int(np.count_nonzero(block.importance))
        if by_class:
            _count(labels, block, stream)
    width = max(found.shape[1], getattr(stream, "width", 0))
    found = np.pad(found, ((0, 0), (0, width - found.shape[1])))
    names = getattr(stream, "columns", None)
    named = {label_in(stream, y): weight for y, weight in sorted(labels.items())}
    held = None if names is None else tuple(names)
    seen = (stream.encoding or {}).get("seen")
    known = {} if seen is None else dict(zip(seen["hashes"], seen["names"], strict=True))
    return Survey(rows, total, found[0], found[1], found[2], named, held, getattr(stream, "dense", None), known, learned)


def _counted(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Which entries are of rows with a weight above 0."""
    return np.repeat(weights > 0.0, np.diff(rows.indptr).astype(np.int64))


def _summed(total: float, weights: np.ndarray) -> float:
    """A sum and the weights of further rows, added in the order of the rows, however they come in blocks."""
    return float(np.add.accumulate(np.append(total, weights))[-1])


def _first_names(names: dict[int, str]) -> dict[int, str]:
    """As many names of hashed columns as one reader keeps."""
    return names if len(names) <= MOST_SEEN else dict(islice(names.items(), MOST_SEEN))


def _count(labels: dict[float, float], block: Block, stream: Stream) -> None:
    """Add the weights of the rows of each label."""
    found, places = np.unique(block.y, return_inverse=True)
    if len(found) > MOST_LABELS or len(labels) > MOST_LABELS:
        raise StreamError(
            f"{block.where(0)}: expected classes, got more than {MOST_LABELS:,} labels such as "
            f"{label_of(stream, block.y[0])}; numbers are for OnlineRegressor."
        )
    refuse_no_classes(stream, block, found)
    add_by_label(labels, found, places, block.importance)


def targets(shard: Shard, job: Job) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
    """The rows of a shard in the columns of a job, their targets (n, K) and weights (n,), block by block."""
    stream = shard.open()
    labels: Labels | None = None
    for block in stream:
        if not block.n:
            continue
        refuse_unlearnable(block)
        source, weights = block.within(job.width), block.importance
        if job.classes is None:
            yield source, targets_of_numbers(block, job.loss), weights
            continue
        labels = labels or Labels(stream, job.classes, known=True)
        places = labels.places(block)
        weights = weights if job.weights is None else weights_by_class(block, job.weights[places])
        yield source, np.asfortranarray(one_against_rest(places, job.outputs, -1.0)), weights


class _Met:
    """The entries of columns, and the rows, that passes have met, by the weights of the rows."""

    def __init__(self, width: int) -> None:
        self.counts, self.total = np.zeros(width), 0.0

    def add(self, rows: Rows, weights: np.ndarray) -> None:
        np.add.at(self.counts, rows.indices, np.repeat(weights, np.diff(rows.indptr).astype(np.int64)))
        self.total = _summed(self.total, weights)


def _scaled(source: Source, job: Job) -> tuple[Source, Rows]:
    """Rows in columns divided by the scales of a job."""
    rows = source.stored().data
    if job.scales is not None:
        rows = rows._replace(values=in_scales(rows.values, job.scales[rows.indices]))
        source = source._replace(largest=float(np.abs(rows.values).max(initial=0.0)), data=rows)
    return source, rows


def _in_units(penalty: Any, unit: float) -> Any:
    """The penalty of an objective that is divided by a unit of the weights."""
    strengths = [name for name in ("l1", "l2") if name in penalty._fields]
    return penalty._replace(**{name: getattr(penalty, name) / unit for name in strengths})


def learn(shard: Shard, job: Job, solver: str, average: Any = None) -> Start:
    """Learn a shard's rows once, from weights of 0, in columns divided by the scales of the job.

    Parameters
    ----------
    shard : Shard
        The rows.
    job : Job
        Parts, scales and classes.
    solver : str
        The online solver.
    average : str or Average, optional
        The average whose weights are taken. Default: those of the last step.

    Returns
    -------
    Start
        Its weights, to be averaged with those of other shards.

    Raises
    ------
    StreamError
        For rows that cannot be read, by file and line.
    """
    given = solver, job.loss, _in_units(job.penalty, job.unit), average
    learner = Learner(*given, fit_intercept=job.fit_intercept, n_features=job.width, n_outputs=job.outputs)
    met = _Met(job.width)
    for source, y, weights in targets(shard, job):
        source, rows = _scaled(source, job)
        weights = weights / job.unit
        learner.learn_checked(source, y, weights, unnamed)
        met.add(rows, weights)
    found = learner.weights(average=average is not None).reshape(job.width, job.outputs)
    intercepts = np.atleast_1d(np.asarray(learner.intercept(average=average is not None), np.float64))
    return Start.of(found, intercepts, met.counts, met.total)


def correct(shard: Shard, job: Job, centre: Centre) -> Start:
    """Make one pass of corrected steps over a shard's rows, in columns divided by the scales of the job.

    Parameters
    ----------
    shard : Shard
        The rows.
    job : Job
        Parts, scales and classes.
    centre : Centre
        Where the pass begins, and the gradients there.

    Returns
    -------
    Start
        Its weights, to be averaged with those of other shards.

    Raises
    ------
    StreamError
        For rows that cannot be read, by file and line.
    """
    strengths, met = strengths_of(job.penalty), _Met(job.width)
    at = [(centre.eta[k], centre.w[:, k], centre.b[k], centre.g[:, k], centre.g_b[k]) for k in range(job.outputs)]
    passes = [Pass(strengths, job.fit_intercept, float(eta), *rest) for eta, *rest in at]
    for source, y, weights in targets(shard, job):
        _, rows = _scaled(source, job)
        s = loss_weights(job.loss, weights)
        for k, one in enumerate(passes):
            one.add(job.loss, rows, np.ascontiguousarray(y[:, k]), s)
        met.add(rows, weights / job.unit)
    ends = [one.end() for one in passes]
    weights = np.column_stack([w for w, _ in ends])
    return Start.of(weights, np.array([b for _, b in ends]), met.counts, met.total)


def look(shard: Shard, job: Job, asked: Sequence[tuple[int, Asked]]) -> Looks:
    """Take the sums of a shard at points, each for an output.

    Parameters
    ----------
    shard : Shard
        The rows.
    job : Job
        Parts and classes; the points are in the units of the rows.
    asked : sequence of (int, Asked)
        Outputs, and where they stand.

    Returns
    -------
    Looks
        The sums, in the order of ``asked``.

    Raises
    ------
    StreamError
        For rows that cannot be read, by file and line.
    """
    found = Looks(tuple(point.nothing() for _, point in asked))
    at = [(k, point, sums) for (k, point), sums in zip(asked, found.at, strict=True)]
    for source, y, weights in targets(shard, job):
        add_block(at, job.loss, source, y, loss_weights(job.loss, weights))
    return found
