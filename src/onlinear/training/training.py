"""Training an estimator from a stream, for ``fit`` and for the command line: blocks in, model out. Prints nothing.

Rows are learned in the order of the stream. What is reported are measures of the model that would be saved at that moment. An
average scores rows in pieces of at most an eighth of the rows so far, each before it is learned; the last iterate's loss
stands beside. Pieces follow from the rows' numbers alone, and rows wait until theirs is whole; an adaptive average scores every
row by itself. The state, and hence the model
file, does not depend on how the stream is cut into blocks, nor on when checkpoints are written; reports are due when the row
count doubles. A run that goes on from a checkpoint ends as it would have without the stop, bit for bit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlinear.errors import DivergenceError
from onlinear.files import trust
from onlinear.learner.learner import ColumnsNeeded, Learner, add_losses, growth_error, state_limit
from onlinear.learner.parts import build_loss
from onlinear.losses import Absolute, EpsilonInsensitive, Huber, Quantile
from onlinear.rows import BLOCK, LARGEST_VALUE, Rows, Source, beyond, row_beyond
from onlinear.rows.scaling import Survey
from onlinear.solvers.core.engine import Engine
from onlinear.streams import Block, Shuffled, Stream, StreamError, encoding
from onlinear.streams.blocks import joined
from onlinear.streams.labels import Labels, shown
from onlinear.streams.weighted import ClassWeighted
from onlinear.training.metrics import ClassMeasures, Measures, NumberMeasures, running
from onlinear.training.quality import Advice, Constant, Quality

PEEK = 1000  # rows that decide the task where neither the loss nor the source does
HELD = 1024  # held-out rows that are scored together
PIECE = 8192  # rows that an average scores together, at most
ENTRIES = 1 << 17  # non-zeros after which such a piece ends
STALE = 8  # the rows so far over such a piece, at least
LONGEST = 8192  # places in a pass where such a piece ends at the latest
SURVEYED = 24  # bytes for each column of a pass that looks at all rows before the first is learned
CLASSIFY, REGRESS = "classify", "regress"
TASKS = ("auto", CLASSIFY, REGRESS)


class Options(NamedTuple):
    """What the user asked of a run; the estimator has its own settings."""

    passes: int = 1
    task: str = "auto"
    loss: Any = None  # that of the estimator where it was named: it may tell the task
    classes: Sequence[Any] | None = None
    features: int | None = None  # fixed in advance, or None: the columns seen
    holdout: Callable[[], Stream] | None = None  # opens rows that are scored after each pass, instead of marked ones
    class_weights: Mapping[Any, float] | None = None  # by which rows count beside their own weights, held-out ones too
    patience: int | None = None  # passes without a better loss of the held-out rows before the run ends; None: never early


class Last(NamedTuple):
    """What a report says of the last iterate, where the model that is written is an average."""

    loss: float
    since: float
    nonzeros: int


class Report(NamedTuple):
    """Where a run stands: measures of the model that is written, which scored every row before it was learned."""

    rows: int
    loss: float  # mean so far
    since: float  # mean since the last report
    error: float  # share of wrong classes, or mean absolute error
    quality: float  # AUC, or R2; nan where there is none
    nonzeros: int  # weights that are not 0
    holdout: float | None = None  # mean loss of the held-out rows scored in this pass, where some are
    last: Last | None = None  # None: the model is the last iterate

    def named(self, names: Sequence[str]) -> dict[str, Any]:
        """The values by the names of the two measures, those of the last iterate with ``_last`` behind them."""
        values = self._asdict()
        last = values.pop("last")
        if last is not None:
            values |= {f"{name}_last": value for name, value in last._asdict().items()}
        shown = dict(zip(("error", "quality"), names, strict=True))
        return {shown.get(name, name): value for name, value in values.items()}


class Held(NamedTuple):
    """What the held-out rows said of a pass."""

    number: int  # of the pass, from 1
    rows: int
    loss: float
    error: float
    quality: float
    best: int | None  # the pass of the smallest loss so far, where the best model is kept
    stop: bool  # whether the run ends early


class Written(NamedTuple):
    """A checkpoint was written."""

    path: str
    rows: int
    bytes: int


class Interrupted(Exception):  # noqa: N818 (no error: it was asked for)
    """The run was asked to stop, and has; what it learned is whole."""


class Tally:
    """Loss and measures of rows that are scored and not learned."""

    def __init__(self, regress: bool) -> None:
        self.rows, self.weight, self.losses = 0, 0.0, np.zeros(2)
        self.measures: Measures = NumberMeasures() if regress else ClassMeasures()

    @property
    def loss(self) -> float:
        """Mean loss; nan before the first row."""
        return float(self.losses.sum()) / self.weight if self.weight else np.nan

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is known."""
        return {"tally": np.array([self.rows, self.weight, *self.losses]), **self.measures.arrays()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``arrays`` gave."""
        rows, self.weight, *losses = trust.array(arrays, "tally", np.float64, 4).tolist()
        trust.must(0.0 <= rows <= trust.MOST_STEPS and rows % 1.0 == 0.0, f"a sum of {rows:g} rows")
        self.rows, self.losses[:] = int(rows), losses
        self.measures.restore(arrays)


class Best(NamedTuple):
    """The model of the pass with the smallest loss of the held-out rows."""

    number: int
    loss: float
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


class State(NamedTuple):
    """All that a run knows beside its estimator: what fits JSON, and arrays."""

    run: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Keeper(Protocol):
    """Who writes checkpoints, and when."""

    rows: int | None  # after every so many rows
    seconds: float | None  # or once so long after the last one

    def write(self, training: Training) -> Written:
        """Write one, from ``training.state()``."""


class Trace:
    """Checksums of the rows of a pass so far: their labels and their numbers of entries, whatever the blocks."""

    def __init__(self, sums: Sequence[int] = (0, 0)) -> None:
        self.sums = tuple(sums)

    def add(self, block: Block) -> None:
        """Take in the rows of a block."""
        labels, lengths = self.sums
        entries = np.diff(block.rows.indptr)
        lengths = zlib.crc32(np.ascontiguousarray(entries).data, lengths)
        self.sums = zlib.crc32(np.ascontiguousarray(block.y).data, labels), lengths


class Training:
    """One run: ``for event in training`` learns, and tells of reports, checkpoints and held-out rows.

    ``model`` is the estimator, which ``make`` gives for the task. ``saved``: what ``state`` gave, to go on from there with the
    estimator of that moment and the same rows again. ``stopping = True`` ends the run after the piece at work, by Interrupted;
    ``waiting`` is True while it waits for rows, when Interrupted may as well be raised from outside.
    """

    def __init__(
        self,
        stream: Stream,
        options: Options,
        make: Callable[[str], Any],
        *,
        shuffled: Shuffled | None = None,
        keeper: Keeper | None = None,
        saved: State | None = None,
    ) -> None:
        self.options, self._make, self._shuffled, self.keeper = options, make, shuffled, keeper
        self.stream = self._weighted(stream)
        if options.passes > 1 and not stream.rereadable:
            raise StreamError(
                f"{stream.name} cannot be read twice, as a pipe or an iterator gives its rows once; several passes need a file."
            )
        self._blocks: Iterator[Block] = iter(())
        self._head: list[Block] = []
        self._kept: list[Block] = []
        self.number = self.consumed = self._flushed = self.rows = self._rows_then = 0
        self._loss_then = self._weight_then = 0.0
        self._averaged_then = (0.0, 0.0)  # the same of the average
        self._scored_rows = 0  # rows that the average has scored
        self._waiting: list[Block] = []  # rows whose piece is not whole
        self._trace = Trace()
        self._generator: dict[str, Any] = {}  # of the shuffle, at the start of this pass
        self.text_before = 0  # bytes of text that other passes had read before the first row of this run was
        self.best: Best | None = None
        self.stopping = self.waiting = self.ended = False
        self.learning = 0.0  # seconds
        self.watch: Callable[[], None] = lambda: None  # called after every block
        if saved is None:
            self._start()
        else:
            self._resume(saved)
        self.learner: Learner = self.model.learner_
        self.averaged = self.learner.average is not None or self.learner.engine.own_average
        self.in_pieces = self.averaged and not self.learner.racing  # whether rows wait to be scored by the average
        count, outputs = None if self.labels is None else self.labels.count, self.learner.n_outputs
        self.quality = Quality(self.learner, count, -1.0 if count is None else self.model._low(outputs))
        if saved is not None:
            self._resume_judging(saved)
        self.learner.asked = encoding.widest(stream.encoding)
        self._counts = getattr(self.learner.loss, "labels", "real") == "counts"
        self.rows_before = self.rows  # those of the run that a checkpoint came from
        self.written = None if saved is None else self.rows  # rows of the last checkpoint
        self._next_rows = self._next_checkpoint()
        self._checkpoint_time = time.monotonic()

    def _weighted(self, stream: Stream) -> Stream:
        weights = self.options.class_weights
        return stream if weights is None else ClassWeighted(stream, self.options.classes, weights)

    # --- the start ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.text_before = self.stream.text_bytes
        self._begin_pass()
        self._head, self._blocks = _peek(self._blocks, self.stream.name)
        self.task = _task(self.options, self.stream, self._head)
        self.labels = Labels(self.stream, self.options.classes) if self.task == CLASSIFY else None
        self.model = self._started(self._make(self.task))
        self.tally, self.held = Tally(self.task == REGRESS), Tally(self.task == REGRESS)
        self.model.history_ = []
        self.holding = self._head[0].held is not None
        self.width = max(block.size for block in self._head)  # columns met so far

    def _started(self, model: Any) -> Any:
        """The estimator with a learner; one that it has goes on."""
        if hasattr(model, "learner_"):
            return model
        options = self.options
        model.n_features_in_, model.n_iter_ = options.features, options.passes
        if model._scale() == "standard":
            survey = self._survey("scale 'standard' needs the mean of all rows before the first")
            model.n_features_in_ = options.features or survey.width
            model.learner_ = self._new(model)
            model.learner_.scaler.fix(*survey.result(model.n_features_in_))
            return model
        try:
            model.learner_ = self._new(model)
        except ColumnsNeeded as error:
            model.n_features_in_ = self._survey(str(error)).width
            model.learner_ = self._new(model)
        return model

    def _new(self, model: Any) -> Learner:
        outputs = 1 if self.labels is None or self.labels.count == 2 else self.labels.count
        learner: Learner = model._new(outputs, self.stream.rows * self.options.passes if self.stream.rows else None)
        if type(learner.engine).solve is not Engine.solve:
            raise ValueError(f"solver {model.solver!r} needs all rows at once; a stream takes any other solver.")
        return learner

    def _survey(self, why: str) -> Survey:
        """What one more pass tells of the rows that will be learned; the first pass begins anew after it."""
        if not self.stream.rereadable:
            raise ValueError(f"{why.removesuffix('.')}: {self.stream.name} cannot be read twice to find it.")
        survey = Survey()
        self._restart()
        for block in self._blocks:
            s = block.importance if block.held is None else np.where(block.held, 0.0, block.importance)
            self._refuse_wide(block, SURVEYED)
            survey.add(block.rows, max(block.size, getattr(self.stream, "width", 0)), s)
        self._restart()
        self._head, self._blocks = _peek(self._blocks, self.stream.name)
        return survey

    def _restart(self) -> None:
        if self._shuffled is not None:
            self._shuffled.restore(self._generator)
        self.text_before = self.stream.text_bytes
        self._begin_pass()

    def _resume(self, saved: State) -> None:
        run = saved.run
        self.task = run["task"]
        self.model = self._make(self.task)
        trust.must(getattr(self.model, "task", None) == self.task, f"a run to {self.task}, of a model that does something else")
        self.labels = Labels(self.stream, self.options.classes) if self.task == CLASSIFY else None
        if self.labels is not None and run["classes"] is not None:
            self.labels.classes = np.array(run["classes"])
        self.number, self.consumed, self._flushed, self.rows = (run[name] for name in ("pass", "consumed", "flushed", "rows"))
        self._trace, self._generator = Trace(run["trace"]), run["generator"]
        self._loss_then, self._weight_then, self._rows_then = run["then"]
        self.tally, self.held = Tally(self.task == REGRESS), Tally(self.task == REGRESS)
        self.tally.restore(_named("all.", saved.arrays))
        self.held.restore(_named("held.", saved.arrays))
        if run["best"] is not None:
            number, loss, header = run["best"]
            self.best = Best(number, loss, header, _named("best.", saved.arrays))
        self.holding, self.width = run["holding"], self.model.learner_.size
        self._check()
        self._restart()

    def _resume_judging(self, saved: State) -> None:
        """Take over what the run knew of the model's quality; checkpoints of 0.1 know nothing of it."""
        run = saved.run
        self.quality.restore(run.get("quality"), _named("quality.", saved.arrays))
        if run.get("scored") is not None and run.get("averaged then") is not None:
            self._scored_rows = run["scored"]
            loss, weight = run["averaged then"]
            self._averaged_then = loss, weight
        elif self.averaged:  # what the last iterate scored stands for the rows so far
            self.tally.losses[0] = self.learner._losses.sum()
            self._averaged_then = self._loss_then, self._weight_then

    def _check(self) -> None:
        """Raise ModelFileError for a checkpoint whose parts are not of one run: what is found at the end would cost the run."""
        learner = self.model.learner_
        trust.must(isinstance(learner, Learner), "a run of a model that learns no more")
        trust.must(self.rows == learner.t, f"a run of {self.rows} rows, of a model that has learned {learner.t}")
        outputs = 1 if self.labels is None or self.labels.count == 2 else self.labels.count
        trust.must(learner.n_outputs == outputs, f"{learner.n_outputs} outputs, where the run has {outputs}")
        if self.labels is not None and self.labels.classes is not None:
            text = self.labels.classes.dtype.kind == "U"
            trust.must(text == (self.stream.labels is not None), "classes that are not of the source's labels")
        trust.must(self.number < self.options.passes, f"a place in pass {self.number + 1} of {self.options.passes}")
        if self.best is not None:
            best = Learner.thaw(self.best.header, self.best.arrays)
            trust.must(best.n_outputs == outputs, f"a best model of {best.n_outputs} outputs")

    def warm_up(self) -> None:
        """Compile what the run needs, so that its time is that of learning; learning no rows changes nothing."""
        self.learner._learn(_no_rows(), np.zeros((0, self.learner.n_outputs), order="F"), np.zeros(0))
        self.learner.weights()
        self.learner.predict(np.zeros((0, max(1, self.learner.size))))

    # --- learning ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Report | Held | Written]:
        while True:
            yield from self._pass()
            if self.number + 1 == self.options.passes and self.rows != self._rows_then:
                yield self._report()
            yield from self._end_pass()
            if self.ended or self.number == self.options.passes:
                break
            self.held = Tally(self.task == REGRESS)
            self._begin_pass()
        if self.rows != self._rows_then:
            yield self._report()
        self._finish()

    def _pass(self) -> Iterator[Report | Written]:
        """Learn the rest of this pass."""
        try:
            for block in self._waited(self._rest()):
                for whole in self._whole(block):
                    yield from self._learnt(whole)
                self.watch()
            if self._waiting:
                yield from self._learnt(joined(self._waiting))
        except Exception as error:
            if self.keeper is None and not isinstance(error, DivergenceError):
                self._learn_waiting()
            raise

    def _learn_waiting(self) -> None:
        """Learn the rows that wait, up to a wrong one: without a checkpoint nothing leads back to them."""
        with suppress(ValueError):
            for part in list(self._waiting):
                for _ in self._learnt(part):
                    pass

    def _whole(self, block: Block) -> Iterator[Block]:
        """The rows, as they are to be scored together: in pieces where an average scores them, those that are whole."""
        if not self.in_pieces:
            yield block
            return
        while block.n:
            wait = [_learnable(part) for part in self._waiting]
            wanted = self._piece_end - self.rows - sum(part.n for part in wait)
            room = LONGEST - (self.consumed + sum(part.n for part in self._waiting)) % LONGEST
            seen = min(block.n, room, wanted if block.held is None else room)
            held = np.zeros(seen, bool) if block.held is None else block.held[:seen]
            entries = np.where(held, 0, np.diff(block.rows.indptr[: seen + 1])).cumsum()
            most = ENTRIES - sum(len(part.rows.indices) for part in wait)
            ends = int(np.searchsorted((~held).cumsum(), wanted)), int(np.searchsorted(entries, most)), room - 1
            last = min(*ends, block.n - 1) + 1
            self._waiting.append(block.cut(0, last))
            whole = last == min(ends) + 1
            block = block.cut(last, block.n)
            if whole:
                yield joined(self._waiting) if len(self._waiting) > 1 else self._waiting[0]

    @property
    def _piece_end(self) -> int:
        """The row count at which the piece at work ends: it follows from the row count."""
        if self._scored_rows > self.rows:  # a checkpoint was written within a piece
            return self._scored_rows
        size = min(PIECE, 1 << max(0, (self.rows // STALE).bit_length() - 1))
        return (self.rows // size + 1) * size

    def _learnt(self, block: Block) -> Iterator[Report | Written]:
        """Learn the rows; those that an average scores are checked and scored first."""
        if self.in_pieces and (rows := _learnable(block)).n:
            found = self._targets(rows, self.labels)
            rows = self._learnable_rows(rows)
            if self.rows >= self._scored_rows:
                began = time.perf_counter()
                self._score(rows, rows.source, self.tally, found)
                self._scored_rows = self.rows + rows.n
                self.learning += time.perf_counter() - began
        self._waiting = []
        for piece in self._pieces(block):
            self._take(piece)
            yield from self._due()

    def _begin_pass(self) -> None:
        if self._shuffled is not None:
            self._generator = self._shuffled.state()
        self._blocks = iter(self.stream)

    def _rest(self) -> Iterator[Block]:
        """The blocks of this pass from the place where the run stands; of the rows before it, those held out may wait again."""
        blocks, self._head = chain(self._head, self._blocks), []
        start, flushed, wanted = self.consumed, self._flushed, self._trace.sums
        trace, place = Trace(), 0
        for block in blocks:
            if place < start:
                seen = block.cut(0, min(block.n, start - place))
                trace.add(seen)
                self._keep(seen.cut(min(seen.n, max(0, flushed - place)), seen.n))
                trust.must(sum(kept.n for kept in self._kept) < HELD, f"more than {HELD} held-out rows that wait")
                place += seen.n
                if place == start and trace.sums != wanted:
                    raise StreamError(f"{self.stream.name}: the first {place:,} rows are not those that the run had read.")
                block = block.cut(seen.n, block.n)
            if block.n:
                yield block
        if place < start:
            raise StreamError(f"{self.stream.name}: has {place:,} rows, and the run had read {start:,}.")

    def _waited(self, blocks: Iterator[Block]) -> Iterator[Block]:
        while True:
            self.waiting = True
            block = next(blocks, None)
            self.waiting = False
            if self.stopping:
                raise Interrupted
            if block is None:
                return
            yield block

    def _pieces(self, block: Block) -> Iterator[Block]:
        """The block, cut after each row after which something is due."""
        numbers = np.arange(1, block.n + 1)
        learned = numbers if block.held is None else np.cumsum(~block.held)
        first = 0
        while first < block.n:
            before = int(learned[first - 1]) if first else 0
            wanted = min(self._report_due, self._next_rows) - self.rows
            last = int(np.searchsorted(learned, before + wanted)) + 1
            if block.held is not None:
                room = HELD - sum(kept.n for kept in self._kept)
                last = min(last, int(np.searchsorted(numbers - learned, first - before + room)) + 1)
            last = min(last, block.n)
            yield block.cut(first, last)
            first = last

    def _take(self, piece: Block) -> None:
        """Learn the rows, and keep those held out until they are scored."""
        rows = _learnable(piece)
        if rows.n:
            began = time.perf_counter()
            self._learn(rows)
            self.learning += time.perf_counter() - began
        self._keep(piece)
        if self.keeper is not None:
            self._trace.add(piece)
        self.consumed += piece.n
        if sum(kept.n for kept in self._kept) >= HELD:
            self._flush()

    def _fitting(self, rows: Block) -> Block:
        """The rows with the very number of columns that they have, where that could make the model grow."""
        learner = self.learner
        if rows.size <= learner.size:
            return rows
        columns = rows.rows.indices
        size = int(columns.max()) + 1 if len(columns) else 0
        if size > learner.size and not learner.growing:
            entry = int(np.argmax(columns >= learner.size))
            row = int(np.searchsorted(rows.rows.indptr, np.uint64(entry), side="right")) - 1
            raise StreamError(
                f"{rows.where(row)}: expected {learner.size} columns at most (n_features), got column {columns[entry] + 1}."
            )
        return rows._replace(size=size)

    def _keep(self, block: Block) -> None:
        if block.held is not None and block.held.any():
            self._kept.append(block.take(np.flatnonzero(block.held)))

    def _flush(self) -> None:
        """Score the held-out rows that wait, by the model as it stands."""
        if self._kept:
            self._score_held(joined(self._kept), self.held, self.labels)
        self._kept, self._flushed = [], self.consumed

    def _due(self) -> Iterator[Report | Written]:
        if self.rows == self._report_due:
            yield self._report()
        if self.rows == self._next_rows or self._too_long():
            yield self.checkpoint()
        if self.stopping:
            raise Interrupted

    @property
    def _report_due(self) -> int:
        """The row count of the next report: the next power of two, unless it is reported."""
        return self._rows_then * 2 or 1

    def _next_checkpoint(self) -> float:
        rows = None if self.keeper is None else self.keeper.rows
        return np.inf if rows is None else (self.rows // rows + 1) * rows

    def _too_long(self) -> bool:
        seconds = None if self.keeper is None else self.keeper.seconds
        return seconds is not None and time.monotonic() - self._checkpoint_time >= seconds

    def _learn(self, block: Block) -> None:
        targets, truth = self._targets(block, self.labels)
        block = self._learnable_rows(block)
        before = self.learner.t
        try:
            found = [self.learner._learn(rows, targets[part], block.importance[part]) for part, rows in self._sources(block)]
        except DivergenceError as error:
            row = min(self.learner.t - before, block.n - 1)
            raise DivergenceError(f"{block.where(row)}: {error}") from None
        if not self.in_pieces:
            scores = found[0] if len(found) == 1 else np.concatenate(found, axis=2)
            self._measure(self.tally, scores[1], truth, block)
        self.rows += block.n

    def _learnable_rows(self, block: Block) -> Block:
        """The rows with the very number of columns that they have; raises StreamError for what cannot be learned."""
        block = self._fitting(block)
        self._fit_width(block)
        self.learner.engine.check_rows(block.importance)
        self._refuse_unlearnable(block)
        return block

    def _sources(self, block: Block) -> Iterator[tuple[slice, Source]]:
        """The rows as the learner takes them; those that are centred are dense, and made a few at a time."""
        if not self.learner._centred:
            yield slice(0, block.n), block.source
            return
        step = max(1, BLOCK // max(1, self.learner.size))
        for first in range(0, block.n, step):
            part = block.cut(first, min(first + step, block.n))
            yield slice(first, first + part.n), self.learner._read(part.csr(self.learner.size).toarray(), "X")

    def _refuse_unlearnable(self, block: Block) -> None:
        row, value = beyond(block.source) if block.largest > LARGEST_VALUE else (0, 0.0)
        if value > LARGEST_VALUE:
            raise StreamError(f"{block.where(row)}: expected values of at most {LARGEST_VALUE:g} in size, got {value:g}.")

    def _fit_width(self, block: Block) -> None:
        size = self.learner.size
        if not self.learner.growing and block.size > size:
            entry = int(np.argmax(block.rows.indices >= size))
            row = int(np.searchsorted(block.rows.indptr, np.uint64(entry), side="right")) - 1
            column = int(block.rows.indices[entry])
            raise StreamError(f"{block.where(row)}: expected columns 0 to {size - 1}, as the model has, got {column}.")
        if self.learner.growing and self.learner.too_wide(block.size) is not None:
            self._refuse_wide(block, self.learner.bytes_per_column)
        width = getattr(self.stream, "width", 0)  # as arrays declare it
        if self.learner.growing and (wrong := self.learner.too_wide(width)) is not None:
            raise StreamError(f"{self.stream.name}: {wrong}")

    def _refuse_wide(self, block: Block, each: int) -> None:
        """Refuse columns for which there is no room at ``each`` bytes, before there is any."""
        if growth_error(block.size - 1, each) is not None and block.size > encoding.widest(self.stream.encoding):
            row, column = row_beyond(block.source, state_limit() // each)
            raise StreamError(f"{block.where(row)}: {growth_error(column, each)}")

    def _targets(self, block: Block, labels: Labels | None) -> tuple[np.ndarray, np.ndarray]:
        """What the learner learns, (n, K), and what the measures compare: each row's place among the classes, or number."""
        if labels is not None:
            places, outputs = labels.places(block), self.learner.n_outputs
            own = np.arange(outputs) if outputs > 1 else 1
            return np.asfortranarray(np.where(places[:, None] == own, 1.0, self.model._low(outputs))), places
        y = block.y
        if self._counts and np.any(y < 0.0):
            row = int(np.argmax(y < 0.0))
            raise StreamError(f"{block.where(row)}: expected a count of 0 or more for this loss, got {shown(y[row])}.")
        return np.asfortranarray(y[:, None]), y

    def _measure(self, tally: Tally, scores: np.ndarray, truth: np.ndarray, block: Block) -> None:
        if self.labels is None:
            mean = getattr(self.learner.loss, "mean", None)
            tally.measures.add(scores[0] if mean is None else mean(scores[0]), truth, block.importance)
        else:
            tally.measures.add(scores, truth, block.importance)
        tally.rows += block.n
        tally.weight = running(tally.weight, block.importance)
        if tally is self.tally:
            self.quality.add(scores, truth, block.importance)

    def _score_held(self, block: Block, tally: Tally, labels: Labels | None) -> None:
        """Score rows that are held out; columns never seen have weight 0."""
        self._score(block, block.within(max(1, self.learner.size)), tally, self._targets(block, labels))

    def _score(self, block: Block, source: Source, tally: Tally, found: tuple[np.ndarray, np.ndarray]) -> None:
        """Score rows by what predicts, and learn nothing; ``found``: their targets, and what the measures compare."""
        targets, truth = found
        scores = self.learner.predict(source).reshape(block.n, -1).T
        s = self.learner.factor * block.importance
        for k in range(self.learner.n_outputs):
            add_losses(self.learner._loss, np.ascontiguousarray(scores[k]), targets[:, k], s, tally.losses)
        self._measure(tally, scores, truth, block)

    # --- reports -----------------------------------------------------------------------------------------------------

    def _report(self) -> Report:
        self._flush()
        doubled = self.rows == self._report_due
        total, weight, last = float(self.learner._losses.sum()), self.tally.weight, None
        loss, since = _means((total, weight), (self._loss_then, self._weight_then))
        self._loss_then, self._weight_then, self._rows_then = total, weight, self.rows
        if self.averaged:
            last = Last(loss, since, self.nonzeros(average=False))
            total = self._total()
            loss, since = _means((total, weight), self._averaged_then)
            self._averaged_then = total, weight
        if doubled:
            self.quality.mark(self.rows, total, weight)
        error, quality = self.tally.measures.values()
        holdout = self.held.loss if self.held.rows else None
        report = Report(self.rows, loss, since, error, quality, self.nonzeros(average=True), holdout, last)
        values = report.named([name.lower() for name in self.tally.measures.names])
        del values["holdout"]
        self.model.history_.append({name: value if isfinite(value) else None for name, value in values.items()})
        return report

    def _total(self) -> float:
        """The sum of the losses of what predicts, over the rows trained on."""
        if self.learner.racing:
            return self.learner.predicted_loss
        return float(self.tally.losses.sum() if self.averaged else self.learner._losses.sum())

    @property
    def constant(self) -> Constant | None:
        """The best constant for the rows trained on so far."""
        return self.quality.constant()

    def doubts(self, *, command: bool) -> list[str]:
        """Why the model that is written may be of no use, and that more passes may help: in the command's words or Python's."""
        total = self._total()
        solver, names = self.learner.spec["solver"], () if self.labels is None else self.labels.names.tolist()
        rows = self.rows // max(1, self.number)
        averaged = self.learner.average is not None and not self.learner.racing
        text = solver if isinstance(solver, str) else ""
        advice = Advice(command, text, averaged, tuple(map(shown, names)), rows)
        return self.quality.doubts(self.rows, total, self.tally.weight, advice, self.options.passes)

    def _end_pass(self) -> Iterator[Held]:
        """Score what is held out; the place moves to the start of the next pass."""
        self._flush()
        held = self.held if self.options.holdout is None else self._scored(self.options.holdout())
        if self.holding or self.options.holdout is not None:
            yield self._judged(held)
        self.number, self.consumed, self._flushed, self._trace = self.number + 1, 0, 0, Trace()

    def _scored(self, stream: Stream) -> Tally:
        tally = Tally(self.task == REGRESS)
        labels = None if self.labels is None else Labels(stream, self.labels.names.tolist())
        for block in self._waited(iter(self._weighted(stream))):
            self._score_held(block, tally, labels)
        return tally

    def _judged(self, held: Tally) -> Held:
        """What the held-out rows say; the best model is kept where the run may end early."""
        if not held.rows:
            raise ValueError(f"{self.stream.name}: of {self.consumed:,} rows none was held out to be scored.")
        stop, patience = False, self.options.patience
        if patience is not None:
            if self.best is None or held.loss < self.best.loss:
                header, arrays = self.learner.freeze()
                copies = {name: array.copy() for name, array in arrays.items()}
                self.best = Best(self.number + 1, held.loss, header, copies)
            stop = self.number + 1 - self.best.number >= patience and self.number + 1 < self.options.passes
        error, quality = held.measures.values()
        best = None if self.best is None else self.best.number
        found = Held(self.number + 1, held.rows, held.loss, error, quality, best, stop)
        self.ended = stop
        return found

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
        return self.number * (self.stream.total or 0) + self.stream.done

    @property
    def bytes_per_feature(self) -> int:
        """What the state holds for one feature, all outputs."""
        return self.learner.bytes_per_column

    # --- the end, and checkpoints ------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Take the best model where it was kept, and name what the estimator learned only now."""
        model = self.model
        model.n_iter_ = self.number
        if self.best is not None and self.best.number < self.number:
            self.learner = model.learner_ = Learner.thaw(self.best.header, self.best.arrays)
            model.n_iter_ = self.best.number
            model.history_ = [entry for entry in model.history_ if entry["rows"] <= self.learner.t]
        self._name()

    def _name(self) -> None:
        """Tell the estimator its features and classes."""
        self.model.n_features_in_ = max(1, self.learner.size)
        found = self.stream.encoding
        self.model.encoding_ = None if found is None else encoding.upto(found, self.learner.size)
        if self.labels is None:
            self.model.columns_ = None
        else:
            self.model.classes_ = self.labels.names

    def save(self, path: str) -> None:
        """Write a model of the rows learned so far. Raises OSError."""
        self._name()
        self.model.save(path)

    def checkpoint(self) -> Written:
        """Have a checkpoint written; learning goes on as if it had not been."""
        assert self.keeper is not None
        self._name()
        written = self.keeper.write(self)
        self.written, self._next_rows, self._checkpoint_time = self.rows, self._next_checkpoint(), time.monotonic()
        return written

    def state(self) -> State:
        """All that the run knows beside its estimator, and where it stands in the stream."""
        best = self.best
        run = {
            "task": self.task,
            "class weights": None if self.options.class_weights is None else list(self.options.class_weights.items()),
            "classes": None if self.labels is None or self.labels.classes is None else self.labels.classes.tolist(),
            "pass": self.number,
            "consumed": self.consumed,
            "flushed": self._flushed,
            "trace": self._trace.sums,
            "generator": self._generator,
            "rows": self.rows,
            "then": (self._loss_then, self._weight_then, self._rows_then),
            "scored": self._scored_rows,
            "averaged then": self._averaged_then,
            "quality": self.quality.state(),
            "holding": self.holding,
            "best": None if best is None else (best.number, best.loss, best.header),
        }
        arrays = {f"all.{name}": array for name, array in self.tally.arrays().items()}
        arrays |= {f"held.{name}": array for name, array in self.held.arrays().items()}
        arrays |= {f"quality.{name}": array for name, array in self.quality.arrays().items()}
        if best is not None:
            arrays |= {f"best.{name}": array for name, array in best.arrays.items()}
        return State(run, arrays)


def _named(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def _learnable(block: Block) -> Block:
    """The rows that are not held out."""
    return block if block.held is None else block.take(np.flatnonzero(~block.held))


def _means(sums: tuple[float, float], then: tuple[float, float]) -> tuple[float, float]:
    """Means of all rows and of those since then, from sums of losses and of weights; nan of no weight."""
    total, weight = sums
    since = (total - then[0]) / (weight - then[1]) if weight > then[1] else np.nan
    return total / weight if weight else np.nan, since


def _no_rows() -> Source:
    return Source(0, 0, 0, 0.0, Rows(np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0)))


def _peek(blocks: Iterator[Block], name: str) -> tuple[list[Block], Iterator[Block]]:
    """The first blocks and the others; an error among the first waits until the rows before it are learned."""
    head, rows = list[Block](), 0
    while rows < PEEK:
        try:
            block = next(blocks, None)
        except StreamError as error:
            if not head:
                raise
            return head, _raised(error)
        if block is None:
            break
        head.append(block)
        rows += block.n
    if not rows:
        raise StreamError(f"{name}: expected at least one row, got none.")
    return head, blocks


def _raised(error: Exception) -> Iterator[Block]:
    yield from ()
    raise error


def _is_for_numbers(loss: Any) -> bool:
    """Whether a loss is one of those with which users fit numbers, never codes of classes."""
    return loss is not None and isinstance(build_loss(loss), (Absolute, Huber, EpsilonInsensitive, Quantile))


def _task(options: Options, stream: Stream, head: list[Block]) -> str:
    """The task: as asked, or as the loss, the source and the first labels tell."""
    if options.task == REGRESS and stream.labels is not None:
        names = ", ".join(map(repr, stream.labels[:3]))
        raise ValueError(f"the target of {stream.name} is text ({names}), which names classes: --task {REGRESS} needs numbers.")
    if options.task != "auto":
        return options.task
    if options.classes is not None or stream.classes is not None or stream.labels is not None:
        return CLASSIFY
    rule = "real" if options.loss is None else getattr(build_loss(options.loss), "labels", "real")
    if rule != "real":
        return CLASSIFY if rule == "signs" else REGRESS
    y = np.concatenate([block.y for block in head])[:PEEK]
    if np.all(np.isin(y, (-1.0, 0.0, 1.0))):
        return CLASSIFY
    if np.any(y != np.rint(y)) or stream.task == REGRESS or _is_for_numbers(options.loss):
        return REGRESS
    raise ValueError(
        f"are the labels of {stream.name} (such as {shown(y[0])}) classes or numbers? "
        f"Say --task {REGRESS}, or name the classes (--classes a,b,c, or --scan)."
    )
