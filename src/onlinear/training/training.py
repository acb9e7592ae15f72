"""Training a model from a stream, for ``fit`` and for the command line: blocks in, model out. Prints nothing.

Rows are learned in the order of the stream. What is reported are measures of the model that would be saved at that moment. An
average scores rows in pieces (``pieces.py``), each before it is learned, and the loss of the last iterate stands beside. An
adaptive average scores every row by itself. The state, and hence the model file, does not depend on how the stream is cut into
blocks, nor on when checkpoints are written. Reports are due when the row count doubles. A run that continues from a checkpoint
ends as it would have without the stop, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

import numpy as np

from onlinear.certified import shortfall
from onlinear.errors import DivergenceError
from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.arguments import unnamed
from onlinear.learner.classes import outputs_of, rows_at_once
from onlinear.learner.limits import ColumnsNeeded
from onlinear.learner.rounds import RoundsOfBlocks
from onlinear.learner.stored_learner import Header
from onlinear.learner.uncertainty import refuse_more_passes
from onlinear.rows.scaling import ColumnMoments
from onlinear.streams import Block, Shuffled, Stream, StreamError, encoding
from onlinear.streams.blocks import joined, refuse_weightless
from onlinear.streams.labels import Labels
from onlinear.streams.marks import remark_on_index, remarks
from onlinear.streams.weighted import ClassWeighted
from onlinear.training.best_constant import Constant
from onlinear.training.events import Certified, Held, Interrupted, Report, Written
from onlinear.training.few_rows import FewRows, few_blocks, rows_of_blocks
from onlinear.training.held_out import Best, HeldOut
from onlinear.training.intake import Intake, drop_held, refuse_wide, rows_to_compile_with
from onlinear.training.offsets import ROWS, SHOWN, Offset, far_from_zero, remark, too_small
from onlinear.training.options import CLASSIFY, Options, choose_task
from onlinear.training.pieces import Pieces
from onlinear.training.place import Place
from onlinear.training.reporter import Reporter
from onlinear.training.saved import RunState
from onlinear.training.scored import ScoredRows
from onlinear.training.tasks import BLOCK, NOBODY, PASS, READING, Tasks
from onlinear.training.trainable import Trainable

NO_HOLDOUT = "tol and held-out rows exclude each other: a run to a certified gap ends by the gap alone."
SURVEYED = 24  # bytes for each column of a pass that looks at all rows before the first is learned


class Keeper(Protocol):
    """Who writes checkpoints, and when."""

    rows: int | None  # after every so many rows
    seconds: float | None  # or once so long after the last one

    def write(self, training: Training) -> Written:
        """Write one, from ``training.state()``."""


class Training:
    """One run: ``for event in training`` learns, and tells of reports, checkpoints and held-out rows.

    ``make`` gives the model for the task. ``saved``: what ``state`` gave, to continue from there with the model of that moment
    and the same rows again. ``stopping = True`` ends the run after the piece at work, by Interrupted; ``waiting`` is True while
    it waits for rows, when Interrupted may as well be raised from outside. ``ending = True`` ends it, by Interrupted too, once
    the stream ends.
    """

    def __init__(
        self,
        stream: Stream,
        options: Options,
        make: Callable[[str], Trainable],
        *,
        shuffled: Shuffled | None = None,
        keeper: Keeper | None = None,
        saved: RunState | None = None,
        tasks: Tasks = NOBODY,
    ) -> None:
        self.options, self.keeper, self.tasks = options, keeper, tasks
        self.stream = self._weigh_classes(stream)
        if options.passes > 1 and not stream.rereadable:
            raise StreamError(
                f"{stream.name} cannot be read twice, as a pipe or an iterator gives its rows once; several passes need a file."
            )
        self._refuse_certified()
        if shuffled is not None:
            shuffled.comes_again = keeper is not None
        self._place = Place(self.stream, shuffled)
        self.reading: RoundsOfBlocks | None = None  # the passes that certify, once they have begun
        self.stopping = self.waiting = self.ending = False
        self.learning = 0.0  # seconds
        self.watch: Callable[[], None] = lambda: None  # called after every block
        self._offsets: list[Offset] = []  # columns far from 0, where the penalty minds them
        self.seen = encoding.count_seen(self.stream.encoding)  # names of hashed columns that go with the rows learned
        if saved is None:
            self._start(make)
        else:
            self._resume(make, saved)
        self._prepare(saved)

    def _refuse_certified(self) -> None:
        """Raise ValueError where a run cannot go on to a certified gap."""
        options, stream = self.options, self.stream
        if options.most is None:
            return
        if not stream.rereadable:
            raise StreamError(
                f"{stream.name} cannot be read twice, as a pipe or an iterator gives its rows once; tol needs a file that can."
            )
        if options.most <= options.passes:
            raise ValueError(f"max_passes={options.most} leaves no pass to certify after the {options.passes} that are online.")
        if options.holdout is not None or options.patience is not None:
            raise ValueError(NO_HOLDOUT)

    def _weigh_classes(self, stream: Stream) -> Stream:
        options, weights = self.options, self.options.class_weights
        return stream if weights is None else ClassWeighted(stream, options.classes, weights, known=options.known)

    # --- the start ---------------------------------------------------------------------------------------------------

    def _start(self, make: Callable[[str], Trainable]) -> None:
        self._place.begin_pass()
        head = self._place.peek()
        if self.options.most is not None and head[0].held is not None:
            raise ValueError(NO_HOLDOUT)
        self.task = choose_task(self.options, self.stream, head)
        options, classifies = self.options, self.task == CLASSIFY
        self.labels = Labels(self.stream, options.classes, known=options.known) if classifies else None
        self.model = make(self.task)
        head = self._start_learner(head)
        if not self.options.continues:
            self.model.start_history()
        if self.options.most is not None and self.model.leaves_means():
            self._offsets = far_from_zero(head[0].cut(0, min(ROWS, head[0].n)).rows)
        self.holding = head[0].held is not None
        self.width = max(block.size for block in head)  # columns met so far

    def _start_learner(self, head: list[Block]) -> list[Block]:
        """Give the model a learner, where it has none; give the first blocks, read anew where all had to be looked at."""
        model, features = self.model, self.options.features
        if model.is_fitted:
            return head
        if model.chosen_scale() == "standard":
            survey, head = self._survey("scale 'standard' needs the mean of all rows before the first")
            width = features or survey.width
            learner = self._new_learner(width)
            if learner.scaler is not None:
                learner.scaler.fix(*survey.result(width))
            return head
        try:
            self._new_learner(features)
        except ColumnsNeeded as error:
            survey, head = self._survey(str(error))
            self._new_learner(survey.width)
        return head

    def _new_learner(self, features: int | None) -> Learner:
        outputs = 1 if self.labels is None else outputs_of(self.labels.count)
        total = self.stream.rows * self.options.passes if self.stream.rows else None
        start = self.model.start_learner if self.options.most is None else self.model.start_certified
        learner = start(outputs, features=features, total=total)
        refuse_more_passes(learner, self.options.passes)
        if learner.engine.batch:
            raise ValueError(f"solver {self.model.solver!r} needs all rows at once; a stream takes any other solver.")
        return learner

    def _survey(self, why: str) -> tuple[ColumnMoments, list[Block]]:
        """What one more pass tells of the rows that will be learned; the first pass begins anew after it."""
        if not self.stream.rereadable:
            raise ValueError(f"{why.removesuffix('.')}: {self.stream.name} cannot be read twice to find it.")
        survey = ColumnMoments()
        self._place.restart()
        for block in self._place.blocks():
            refuse_wide(block, SURVEYED, self.stream)
            survey.add(block.rows, max(block.size, getattr(self.stream, "width", 0)), block.learned_importance)
        self._place.restart()
        return survey, self._place.peek()

    def _resume(self, make: Callable[[str], Trainable], saved: RunState) -> None:
        self.task = saved.run["task"]
        self.model = make(self.task)
        known = getattr(self.model, "task", None)  # a file may hold a bare learner
        trust.must(known == self.task, f"a run to {self.task}, of a model that does something else")
        self.labels = saved.labels(self.stream, self.options.classes) if self.task == CLASSIFY else None
        self._place.restore(saved.run)
        self.stream.expect(saved.run.get("first pass"))
        certified = self.options.most is not None
        saved.check(self.model, self.labels, self.options.passes, certified)
        self._refuse_other_columns()
        self.holding, self.width = saved.run["holding"], self.model.learner_.size
        self._place.restart()

    def _refuse_other_columns(self) -> None:
        """Raise StreamError where the table of a resumed run has other columns than those that the model learned."""
        known, found = getattr(self.model, "encoding_", None), self.stream.encoding
        if known is not None and found is not None and not encoding.number_alike(found, known):
            raise StreamError(f"{self.stream.name}: the columns are not those that the run had read, or in another order.")

    def _prepare(self, saved: RunState | None) -> None:
        """Make what goes with the learner."""
        self.learner: Learner = self.model.learner_
        self._begun = self.learner.t
        negative = self.model.negative_target(self.learner.n_outputs)
        self._intake = Intake(self.learner, self.stream, self.labels, negative)
        self._held = HeldOut(self.learner, self._intake, self._place, self.labels is None)
        about = {"continues": self.options.continues, "reports": self.options.reports}
        self._reporter = Reporter(self.model, self.learner, self._place, self.labels, **about)
        self._pieces = Pieces(self._place)
        self.in_pieces = self.learner.averaged and not self.learner.racing  # whether rows wait to be scored by the average
        if saved is not None:
            self._held.flushed, self._held.best = saved.run["flushed"], saved.best()
            self._held.scored.restore(saved.named("held."))
            self._reporter.restore(saved.run, saved.named("all."), saved.named("quality."))
            self._pieces.scored = saved.run.get("scored") or 0
            before = saved.run.get("certified")
            if before is not None:
                self._begin_rounds(self.learner, before["passes"]).restore(saved.named("certified."))
        self.learner.announce(encoding.widest(self.stream.encoding))
        self.rows_before = self.rows  # those of the run that a checkpoint came from
        self.written = None if saved is None else self.rows  # rows of the last checkpoint
        self._next_rows = self._next_checkpoint()
        self._checkpoint_time = time.monotonic()

    def few_rows(self) -> FewRows | None:
        """All rows of the stream as the learner would take them; None where they are not few."""
        self._place.restart()
        blocks = few_blocks(self._place.blocks())
        return None if blocks is None else rows_of_blocks(blocks, self._intake)

    def warm_up(self) -> None:
        """Compile what the run needs, so that its time is that of learning: another learner learns a few rows."""
        if self.learner.engine.batch:
            return
        other, (source, y, weights) = self.learner.unlearned(2), rows_to_compile_with(self.learner.n_outputs)
        with suppress(DivergenceError):
            other.learn_checked(source, y, weights)
            other.weights()
            other.predict(source.cut(slice(0, 1)))

    # --- learning ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Report | Held | Certified | Written]:
        ended = self.number == self.options.passes
        while not ended:
            self.tasks.begin(PASS)
            if not self.options.continues:  # so that a checkpoint, or what Ctrl-C leaves, knows its passes
                self.model.end_passes(self.number + 1, None)
            if self.number > 0:
                self.learner.end_first_pass()
            yield from self._pass()
            if self.number + 1 == self.options.passes:
                if self.options.slope is not None:  # before held-out rows and callbacks judge what is kept
                    self.learner.keep_slope(self.options.slope)
                if self._reporter.lags:
                    yield self._report()
            held = self._judge()
            if held is not None:
                yield held
            self._end_pass()
            ended = self.number == self.options.passes or (held is not None and held.stop)
            ended = self.tasks.end(PASS) or self.tasks.stopped or ended
            if not ended:
                self._held.begin_pass()
                self._place.begin_pass()
        if self._reporter.lags and self.reading is None:
            yield self._report()
        if self.options.most is not None:
            yield from self._certify(self.options.most)
        self._finish()

    def _pass(self) -> Iterator[Report | Written]:
        """Learn the rest of this pass."""
        try:
            for block in self._wait_for(self._place.rest(self._held.keep_again)):
                self.tasks.begin(BLOCK)
                for whole in self._pieces.collect(block) if self.in_pieces else [block]:
                    yield from self._learn(whole)
                self.watch()
                if self.tasks.end(BLOCK):
                    break
            if self._pieces.waiting:
                yield from self._learn(joined(self._pieces.waiting))
        except Exception as error:
            if self.keeper is None and not isinstance(error, DivergenceError):
                self._learn_waiting()
            raise

    def _begin_rounds(self, learner: Learner, passes: int) -> RoundsOfBlocks:
        """The passes that certify, from where a learner stands after so many others."""
        trust.must(learner.engine.rounds, "a run to a certified gap, of a model that has none")
        self.reading = RoundsOfBlocks(learner, passes)
        return self.reading

    def _certify(self, most: int) -> Iterator[Certified | Written]:
        """Read all rows again until the gap is small enough; a checkpoint is written after each reading."""
        if self.reading is None:
            self._begin_rounds(self.model.certified_after(self.learner), self.number)
        reading = self.reading
        assert reading is not None
        each = self.rows // reading.passes
        while not (reading.done or self.tasks.stopped) and reading.passes < most:
            self.tasks.begin(READING)
            reading.begin()
            read = self._read_again(reading, each)
            self._place.rows += read
            reading.end(self.rows)
            self.learner = self.model.take(reading.learner)
            yield Certified(reading.passes, self.rows, *reading.standing, reading.working, reading.crowded)
            self.tasks.end(READING)
            if self.keeper is not None:
                yield self.checkpoint()

    def _read_again(self, reading: RoundsOfBlocks, rows: int) -> int:
        """Give all rows to the passes that certify; the number of them, which is that of the pass before."""
        intake = self._intake.of(reading.learner)
        read = 0
        for block in self._wait_for(self._place.again()):
            began = time.perf_counter()
            targets, block = intake.targets(block), intake.check(block)
            reading.add(block.within(reading.learner.size), targets.learned, block.importance)
            read += block.n
            self.learning += time.perf_counter() - began
            self.watch()
        if read != rows:
            raise StreamError(f"{self.stream.name}: has {read:,} rows, and had {rows:,} in the pass before.")
        return read

    def _learn_waiting(self) -> None:
        """Learn the rows that wait, up to a wrong one: without a checkpoint nothing leads back to them."""
        with suppress(ValueError):
            for part in list(self._pieces.waiting):
                for _ in self._learn(part):
                    pass

    def _wait_for(self, blocks: Iterator[Block]) -> Iterator[Block]:
        while True:
            self.waiting = True
            block = next(blocks, None)
            self.waiting = False
            if self.stopping or (block is None and self.ending):
                raise Interrupted
            if block is None:
                return
            yield block

    def _learn(self, block: Block) -> Iterator[Report | Written]:
        """Learn the rows; those that an average scores are checked and scored first."""
        if self.in_pieces and (rows := drop_held(block)).n:
            self._check_and_score(rows)
        self._pieces.waiting = []
        for part in self._cut(block):
            self._take(part)
            yield from self._due()

    def _check_and_score(self, rows: Block) -> None:
        """Check a piece of rows, then score it by the average, where that was not done before a checkpoint."""
        most = rows_at_once(self.learner.n_outputs)
        for part in rows.parts(most):  # all, before the first is scored
            targets = self._intake.targets(part)
        rows = self._intake.check(rows)
        if self.rows < self._pieces.scored:
            return
        began = time.perf_counter()
        for part in rows.parts(most):
            targets = targets if part.n == rows.n else self._intake.targets(part)
            self._reporter.score(part.source, targets, part.importance)
        self._pieces.scored = self.rows + rows.n
        self.learning += time.perf_counter() - began

    def _cut(self, block: Block) -> Iterator[Block]:
        """The block, cut after each row after which something is due, and so that few numbers are made at once."""
        numbers = np.arange(1, block.n + 1)
        learned = numbers if block.held is None else np.cumsum(~block.held)
        first = 0
        while first < block.n:
            before = int(learned[first - 1]) if first else 0
            wanted = min(self._reporter.due, self._next_rows) - self.rows
            last = int(np.searchsorted(learned, before + wanted)) + 1
            if block.held is not None:
                last = min(last, int(np.searchsorted(numbers - learned, first - before + self._held.room)) + 1)
            last = min(last, block.n, first + rows_at_once(self.learner.n_outputs))
            yield block.cut(first, last)
            first = last

    def _take(self, block: Block) -> None:
        """Learn the rows, and keep those held out until they are scored."""
        rows = drop_held(block)
        if rows.n:
            began = time.perf_counter()
            self._learn_rows(rows)
            self.learning += time.perf_counter() - began
        self._held.keep(block)
        self.seen = max(self.seen, block.seen)
        if self.keeper is not None:
            self._place.trace.add(block)
        self._place.consumed += block.n
        if self._held.room <= 0:
            self._held.flush()

    def _learn_rows(self, block: Block) -> None:
        targets = self._intake.targets(block)
        block = self._intake.check(block)
        weights, before = block.importance, self.learner.t
        try:
            found = [
                self.learner.learn_checked(source, targets.learned[part], weights[part], unnamed)
                for part, source in self._intake.sources(block)
            ]
        except DivergenceError as error:
            row = min(self.learner.t - before, block.n - 1)
            raise DivergenceError(f"{block.where(row)}: {error}") from None
        finally:
            if self.learner.t > before:  # Ctrl-C comes once they are learned
                self.seen = max(self.seen, block.seen)
        if not self.in_pieces:
            scores = found[0] if len(found) == 1 else np.concatenate(found, axis=2)
            self._reporter.add(scores, targets, weights)
        self._place.rows += block.n

    def _due(self) -> Iterator[Report | Written]:
        if self.rows == self._reporter.due:
            yield self._report()
        if self.rows == self._next_rows or self._too_long():
            yield self.checkpoint()
        if self.stopping:
            raise Interrupted

    def _next_checkpoint(self) -> float:
        rows = None if self.keeper is None else self.keeper.rows
        return np.inf if rows is None else (self.rows // rows + 1) * rows

    def _too_long(self) -> bool:
        seconds = None if self.keeper is None else self.keeper.seconds
        return seconds is not None and time.monotonic() - self._checkpoint_time >= seconds

    def _report(self) -> Report:
        self._held.flush()
        return self._reporter.report(self._held.scored)

    def _judge(self) -> Held | None:
        """Score what is held out, at the end of a pass; None where nothing is."""
        self._held.flush()
        options, held = self.options, self._held.scored
        if options.holdout is not None:
            held = self._score_stream(options.holdout())
        elif not self.holding:
            return None
        return self._held.judge(held, options.patience, options.passes)

    def _end_pass(self) -> None:
        """Move to the start of the next pass."""
        self._place.end_pass()
        self._held.flushed = 0

    def _score_stream(self, stream: Stream) -> ScoredRows:
        labels = None if self.labels is None else Labels(stream, self.labels.names, known=True)
        found = self._held.score_stream(self._wait_for(iter(self._weigh_classes(stream))), labels)
        refuse_weightless(stream.name, found.rows, found.weight)
        return found

    def _finish(self) -> None:
        """Take the best model where it was kept, and describe the rows to the model."""
        best = self.best if self.best is not None and self.best.number < self.number else None
        if best is not None:
            self.learner = best.learner()
        passes = self.number if best is None else best.number
        passes = passes if self.reading is None else self.reading.iterations
        self.model.end_passes(None if self.options.continues else passes, None if best is None else self.learner)
        self.describe_rows()

    # --- what is known -----------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows learned, over all passes."""
        return self._place.rows

    @property
    def has_learned(self) -> bool:
        """Whether the learner has learned rows of this run, which may be more than are counted where Ctrl-C has stopped it."""
        return self.rows > 0 or (self.learner.stopped is None and self.learner.t > self._begun)

    @property
    def number(self) -> int:
        """Passes that are whole."""
        return self._place.number

    @property
    def text_before(self) -> int:
        """Bytes of text that other passes had read before the first row of this run was."""
        return self._place.text_before

    @property
    def best(self) -> Best | None:
        """The model of the pass with the smallest loss of the held-out rows, where the run may end early."""
        return self._held.best

    @property
    def measure_names(self) -> tuple[str, str]:
        """The names of the two measures."""
        return self._reporter.scored.measures.names

    @property
    def constant(self) -> Constant | None:
        """The best constant for the rows learned so far."""
        return self._reporter.constant()

    def remarks(self, *, command: bool) -> list[str]:
        """What there is to say of the rows before the first is learned, in the command's words or Python's."""
        found = remarks(self.stream.marks, self.stream.nulls, command=command)
        if not self.options.continues:
            found += remark_on_index(self.stream.encoding, command=command)
        if self._offsets:
            names = encoding.names_of(self.stream.encoding, [offset.column for offset in self._offsets])
            found.append(remark(self._offsets, names, command=command))
        return found

    def doubts(self, *, command: bool) -> list[str]:
        """Why the model that is written may be of no use, and that more passes may help: in the command's words or Python's."""
        if self.reading is not None:
            found, solver = self.one_class(command=command), self.reading.learner.solver
            return (
                found if self.reading.done else [*found, shortfall(self.reading.standing.gap, solver.tol, self.reading.passes)]
            )
        once = not self.stream.rereadable or self.options.auto or self.learner.spread is not None
        passes = None if once else self.options.passes
        return self._reporter.doubts(passes, command=command, continues=self.options.continues)

    def one_class(self, *, command: bool) -> list[str]:
        """That all rows are of one class, in the command's words or Python's."""
        return self._reporter.one_class(command=command)

    @property
    def weightless(self) -> list[str]:
        """That no row has a weight; nothing where one has."""
        none = self.rows > 0 and not self._reporter.scored.weight > 0.0
        return ["Every row has the weight 0, so nothing is learned."] if none else []

    @property
    def too_small(self) -> list[str]:
        """That values are too small to be learned; nothing where none are."""
        learner, columns = self.learner, self.learner.vanished
        names = encoding.names_of(self.stream.encoding, columns[:SHOWN])
        small = too_small(columns, names, targets=learner.targets_vanish, weights=learner.weights_vanish)
        return [*self.weightless, *small]

    @property
    def total(self) -> int | None:
        """The size of all passes, in units of ``done``; None where unknown."""
        known = self.stream.total is not None and self.options.most is None
        return self.stream.total * self.options.passes if known else None  # type: ignore[operator]

    @property
    def done(self) -> int:
        """How far the run has come through all passes."""
        return self.number * (self.stream.total or 0) + self.stream.done

    # --- models and checkpoints --------------------------------------------------------------------------------------

    def describe_rows(self) -> None:
        """Tell the model its features and classes."""
        found, classes = self.stream.encoding, None if self.labels is None else self.labels.names
        size, known = self.learner.size, getattr(self.model, "encoding_", None)
        found = None if found is None else encoding.upto(found, size, self.seen)
        if known is not None:  # of a resumed run, it may have names that are not read yet
            found = encoding.upto(encoding.continued(known, found), size)
        self.model.describe_rows(max(1, size), found, classes)

    def save(self, path: str) -> None:
        """Write a model of the rows learned so far. Raises OSError."""
        self.describe_rows()
        self.model.save(path)

    def checkpoint(self) -> Written:
        """Have a checkpoint written; learning continues as if it had not been."""
        assert self.keeper is not None
        self.describe_rows()
        written = self.keeper.write(self)
        self.written, self._next_rows, self._checkpoint_time = self.rows, self._next_checkpoint(), time.monotonic()
        return written

    def state(self) -> RunState:
        """All that the run knows beside its model, and where it stands in the stream."""
        place, held, reporter, best = self._place, self._held, self._reporter, self.best
        weights = self.options.class_weights
        run: Header = {
            "task": self.task,
            "class weights": None if weights is None else list(weights.items()),
            "classes": None if self.labels is None or self.labels.classes is None else self.labels.classes.tolist(),
            "pass": place.number,
            "consumed": place.consumed,
            "flushed": held.flushed,
            "trace": place.trace.sums,
            "first pass": self.stream.first_pass if place.number else None,
            "generator": place.generator,
            "rows": place.rows,
            "then": reporter.then,
            "scored": self._pieces.scored,
            "averaged then": reporter.averaged_then,
            "linear": reporter.linear,
            "quality": reporter.quality.state(),
            "holding": self.holding,
            "best": None if best is None else (best.number, best.loss, best.header),
            "certified": None if self.reading is None or not self.reading.iterations else {"passes": self.reading.before},
        }
        arrays = {f"all.{name}": array for name, array in reporter.scored.arrays().items()}
        arrays |= {f"held.{name}": array for name, array in held.scored.arrays().items()}
        arrays |= {f"quality.{name}": array for name, array in reporter.quality.arrays().items()}
        if self.reading is not None and self.reading.iterations:
            arrays |= {f"certified.{name}": array for name, array in self.reading.arrays().items()}
        if best is not None:
            arrays |= {f"best.{name}": array for name, array in best.arrays.items()}
        return RunState(run, arrays)
