"""Training and prediction from streams, for the command line: blocks in, estimator out. Prints nothing.

Rows are learnt in the order of the stream. The state, and hence the model file, does not depend on how the stream is cut into
blocks; reports are due when the row count doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from onlinear.build import build_loss
from onlinear.checks import DivergenceError
from onlinear.estimators import OnlineClassifier, OnlineRegressor
from onlinear.learner import Learner
from onlinear.solvers.engine import Engine
from onlinear.streams import Block, Stream, StreamError
from onlinear.streams.labels import Labels, shown

PEEK = 1000  # rows that decide the task where neither the loss nor the source does
CLASSIFY, REGRESS = "classify", "regress"
TASKS = ("auto", CLASSIFY, REGRESS)


class Options(NamedTuple):
    """What the user asked for; None is the estimator's default."""

    loss: str | None = None
    penalty: str | None = None
    solver: str | None = None
    average: str | None = None
    scale: str | None = None
    fit_intercept: bool = True
    passes: int = 1
    seed: int = 0
    task: str = "auto"
    classes: tuple[float | str, ...] | None = None
    features: int | None = None  # fixed in advance, or None: the columns seen


class Report(NamedTuple):
    """Where a run stands. Every row was scored before it was learnt."""

    rows: int
    loss: float  # mean so far
    since: float  # mean since the last report
    error: float  # share of wrong classes, or mean absolute error
    nonzeros: int  # weights of the last iterate that are not 0


class Training:
    """One run: ``for report in training`` learns; ``model`` is the estimator."""

    def __init__(self, stream: Stream, options: Options) -> None:
        self.stream, self.options = stream, options
        if options.passes > 1 and not stream.rereadable:
            raise StreamError(f"{stream.name} cannot be read twice; several passes need a file.")
        self._first = iter(stream)
        self._head = _peek(self._first, stream.name)
        self.task = _task(options, stream, self._head)
        self.labels = Labels(stream, options.classes) if self.task == CLASSIFY else None
        self.model = self._new()
        self.learner: Learner = self.model.learner_
        self._counts = getattr(self.learner.loss, "labels", "real") == "counts"
        self._loss_then, self._rows_then = 0.0, 0
        self._wrong = 0.0
        self._pass = 0
        self.rows = 0
        self.watch: Callable[[], None] = lambda: None  # called after every block

    def _new(self) -> Any:
        options = self.options
        given = {name: getattr(options, name) for name in ("loss", "penalty", "solver", "average", "scale")}
        chosen = {name: value for name, value in given.items() if value is not None}
        cls = OnlineClassifier if self.task == CLASSIFY else OnlineRegressor
        model: Any = cls(**chosen, passes=options.passes, fit_intercept=options.fit_intercept, random_state=options.seed)
        if model.scale == "standard":
            raise ValueError("scale 'standard' needs the mean of all rows before the first; a stream has rms and max-abs.")
        model.n_features_in_, model.n_iter_ = options.features, options.passes
        outputs = 1 if self.labels is None or self.labels.count == 2 else self.labels.count
        model.learner_ = model._new(outputs, self.stream.rows * options.passes if self.stream.rows else None)
        if type(model.learner_.engine).solve is not Engine.solve:
            raise ValueError(f"solver {model.solver!r} needs all rows at once; a stream takes any other solver.")
        return model

    def warm_up(self) -> None:
        """Compile what the run needs, so that its time is that of learning; learning no rows changes nothing."""
        self._learn(self._head[0].cut(0, 0))
        self.learner.weights()

    def __iter__(self) -> Iterator[Report]:
        due = 1
        for block in self._blocks():
            first = 0
            while first < block.n:
                last = min(block.n, first + due - self.rows)
                self._learn(block.cut(first, last))
                first = last
                if self.rows == due:
                    yield self.report()
                    due *= 2
            self.watch()
        self._finish()
        if self.rows != self._rows_then:
            yield self.report()

    def _blocks(self) -> Iterator[Block]:
        yield from chain(self._head, self._first)
        for done in range(1, self.options.passes):
            self._pass = done
            yield from self.stream

    def _learn(self, block: Block) -> None:
        if self.labels is None:
            y = block.y
            if self._counts and np.any(y < 0.0):
                row = int(np.argmax(y < 0.0))
                raise StreamError(f"{block.where(row)}: expected a count of 0 or more for this loss, got {shown(y[row])}.")
            targets = y[:, None]
        else:
            places = self.labels.places(block)
            outputs = self.learner.n_outputs
            own = np.arange(outputs) if outputs > 1 else 1
            targets = np.where(places[:, None] == own, 1.0, self.model._low(outputs))
        try:
            scores = self.learner._learn(block.source, np.asfortranarray(targets), np.ones(block.n))
        except DivergenceError as error:
            raise DivergenceError(f"{block.where(min(self.learner.t - self.rows, block.n - 1))}: {error}") from None
        if self.labels is None:
            mean = getattr(self.learner.loss, "mean", None)
            wrong = np.abs((scores[0] if mean is None else mean(scores[0])) - y)
        else:
            guessed = np.argmax(scores, axis=0) if len(scores) > 1 else scores[0] > 0.0
            wrong = (guessed != places).astype(np.float64)
        # In row order, so that the sum does not depend on how the rows are cut.
        self._wrong = float(np.cumsum(np.append(self._wrong, wrong))[-1])
        self.rows += block.n

    def report(self) -> Report:
        """Where the run stands now."""
        total = self.learner.progressive_loss * self.rows
        since = (total - self._loss_then) / (self.rows - self._rows_then)
        self._loss_then, self._rows_then = total, self.rows
        return Report(self.rows, total / self.rows, since, self._wrong / self.rows, self.nonzeros(average=False))

    def nonzeros(self, average: bool) -> int:
        """Weights that are not 0."""
        return int(np.count_nonzero(self.learner.weights(average=average)))

    @property
    def total(self) -> int | None:
        """The size of all passes, in units of ``done``; None where unknown."""
        return self.stream.total * self.options.passes if self.stream.total is not None else None

    @property
    def done(self) -> int:
        """How far the run has come through all passes."""
        return self._pass * (self.stream.total or 0) + self.stream.done

    def _finish(self) -> None:
        """Name what the estimator learnt only now: the features and the classes."""
        self.model.n_features_in_ = max(1, self.learner.size)
        if self.labels is None:
            self.model.columns_ = None
        else:
            self.model.classes_ = self.labels.names


def _peek(blocks: Iterator[Block], name: str) -> list[Block]:
    head, rows = [], 0
    for block in blocks:
        head.append(block)
        rows += block.n
        if rows >= PEEK:
            break
    if not rows:
        raise StreamError(f"{name}: expected at least one row, got none.")
    return head


def _task(options: Options, stream: Stream, head: list[Block]) -> str:
    """The task: as asked, or as the loss, the source and the first labels tell."""
    if options.task != "auto":
        return options.task
    if options.classes is not None or stream.classes is not None or stream.labels is not None:
        return CLASSIFY
    if options.loss is not None and getattr(build_loss(options.loss), "labels", "real") == "signs":
        return CLASSIFY
    y = np.concatenate([block.y for block in head])[:PEEK]
    if np.all(np.isin(y, (-1.0, 0.0, 1.0))):
        return CLASSIFY
    if np.any(y != np.rint(y)) or stream.task == REGRESS:
        return REGRESS
    raise ValueError(
        f"are the labels of {stream.name} (such as {shown(y[0])}) classes or numbers? "
        f"Say --task {REGRESS}, or name the classes (--classes a,b,c, or --scan)."
    )


def predictions(model: Any, block: Block, kind: str) -> np.ndarray:
    """The rows' ``labels`` (or predicted numbers), ``scores`` or ``probabilities``, (n,) or (n, K); features that the model
    has never seen have weight 0."""
    if isinstance(model, Learner):
        if kind == "probabilities":
            raise ValueError("the model file holds a bare learner, which gives scores only.")
        return model.predict(block.csr(max(1, model.size)))
    X = block.csr(model.n_features_in_)
    if kind == "scores":
        return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    if kind == "labels":
        return model.predict(X)
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"the model's loss {model.loss!r} gives no probabilities; scores and labels it has.")
    return model.predict_proba(X)


def lines(found: np.ndarray) -> str:
    """Predictions as text, a line per row, blanks between several numbers."""
    if found.ndim == 1:
        return "".join([shown(value) + "\n" for value in found.tolist()])
    return "".join([" ".join(map(shown, values)) + "\n" for values in found.tolist()])
