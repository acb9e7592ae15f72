"""One row after another by one compiled call each, with the checks, scales, step and running loss of a block of rows.

``learn_row`` is compiled for each solver's kernel. The arguments are held in memory (``compiled.Held``): a call passes the row
and one address. The caller handles all other cases: rows that are not plain (``rows.fill_row``), refused targets, messages.
Several outputs: ``learn_outputs.py``.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from onlinear.averages import room_for_steps
from onlinear.compiled import (
    COMPILED,
    Held,
    HeldText,
    first_number,
    follow_lengths,
    function,
    opened,
    rooms,
    run_routine,
)
from onlinear.compiled.calls import EXACT
from onlinear.compiled.objects import NEWLY, TYPES, AnyObject, Book, Names, given_by, kinds_of_rows, name_new, way_of
from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.learner.arguments import row_of_call
from onlinear.learner.clip import clip_row, widen_row
from onlinear.learner.core import Core
from onlinear.learner.loss_sums import add_loss
from onlinear.learner.race import compare_row, watch
from onlinear.learner.row_calls import FAILED, GIVEN, LAST, LEARNING, LENGTHS, NEWS, READING, UNTIL, tell
from onlinear.learner.side_by_side import SideBySide
from onlinear.learner.stretches import Prepared
from onlinear.learner.units import take_in
from onlinear.losses import loss_labels
from onlinear.rows import LARGEST_COLUMN, Rows, fill_row
from onlinear.rows.centring import Centring, centre_row
from onlinear.rows.scaling import BEHIND, scale_row
from onlinear.solvers.core.engine import Examples
from onlinear.solvers.core.last_row import LastRow
from onlinear.solvers.core.state import VISIT, State, T

REFUSED, WIDER, OVERDUE, DIVERGED, ENDED, MOVED, SIZED, NAMELESS = range(8)  # why there is no score to give at once
# Of the limits: the learner's words, the rule of the targets, and the rows learned at which the arrays change.
WORDS, RULE, LIMIT = 2, 3, 4
REASON, BEFORE, NEW = range(3)  # of a report: one of these, the rows learned before, and the names that the row has brought
RULES = ("real", "counts", "signs")
ARRAY, DOUBLE = np.ndarray, np.float64
GIVEN_ROW = AnyObject(), AnyObject(), 1.0  # arguments typed as a row and its target


@function
def allowed(y, rule):  # type: ignore[no-untyped-def]
    """Whether a target is one that the loss takes."""
    return (y == 1.0 or y == -1.0) if rule == 2 else (isfinite(y) and (rule == 0 or y >= 0.0))


@function
def scaled_row(rows, largest, scales):  # type: ignore[no-untyped-def]
    """Put the row in the scales of its columns, which move on past it; give its largest absolute value."""
    return largest if scales is None else scale_row(rows, 0, 1.0, *scales, rows[2])


@function
def keep_nothing(rows):  # type: ignore[no-untyped-def]
    """Nothing of a row is needed once it is learned."""


@function
def grown(way, first, second, rows, size, words, report):  # type: ignore[no-untyped-def]
    """Whether the columns of the row are known, and those of its new names. They get them here where that writes lengths alone;
    else ``report`` says what is needed, and nothing has changed."""
    starts, columns, _ = rows
    end = np.int64(columns[starts[1] - np.uint64(1)]) + 1 if starts[1] > 0 else 0
    wider = end > size[0]
    if way != NEWLY and not wider:
        return True
    report[REASON] = NAMELESS if way == NEWLY else WIDER
    if wider and end > words[UNTIL]:
        return False
    if way == NEWLY:
        report[NEW] = name_new(first, second)
        if report[NEW] == 0:
            return False
    if wider:
        follow_lengths(words[LENGTHS], words[LENGTHS + 1], end)
    words[NEWS] += 1
    report[REASON] = REFUSED
    return True


@function
def checked(limits, rows, target, now, report, first, second, y):  # type: ignore[no-untyped-def]
    """Check the row and take it; its largest absolute value, or -1 where ``report`` says why it is not learned."""
    bound, size, words, rule, limit, kinds, vectors, watched = limits
    starts, columns, entries = rows
    report[NEW] = 0
    if now[T] >= limit:
        report[REASON] = OVERDUE
        return -1.0
    report[REASON], report[BEFORE] = REFUSED, now[T]
    if not allowed(y, rule):
        return -1.0
    way = way_of(first, second, kinds)
    largest = given_by(way, fill_row, -1.0, first, second, vectors, bound, starts, columns, entries)
    if largest < 0.0 or not grown(way, first, second, rows, size, words, report):
        return -1.0
    target[0] = y
    watch(watched, rows)
    return largest


def begin(here, first, second, y):  # type: ignore[no-untyped-def]
    """``checked``, and the row in its scales."""
    limits, rows, scales, target, now, report = opened(here)
    largest = checked(limits, rows, target, now, report, first, second, y)
    return largest if largest < 0.0 else scaled_row(rows, largest, scales)


def begin_centred(here, first, second, y):  # type: ignore[no-untyped-def]
    """``begin`` where columns are centred: the row is taken to a place of its own, and gets an entry in each of them."""
    limits, rows, (given, moments, whole, facts, centred), target, now, report = opened(here)
    if checked(limits, given, target, now, report, first, second, y) < 0.0:
        return -1.0
    return centre_row(rooms(given), 0, 1.0, moments, whole, rooms(facts), rooms(centred), rooms(rows))


@function
def plus(x, zero, sign):  # type: ignore[no-untyped-def]
    """x + sign zero, where there is one."""
    if zero is not None:
        x += sign * zero[0]
    return x


@function
def count_from(level, target, taken):  # type: ignore[no-untyped-def]
    """Take the target from the level on, where there is one."""
    if level is not None:
        taken[0] = target[0] - level[0]


@function
def in_units(units, largest, target, report):  # type: ignore[no-untyped-def]
    """Put the target in the running units, which take it in; whether the step sizes and the loss may stay as they are."""
    stay = True
    if units is not None:
        targets, ones, zero, level, taken, known, room = units
        target[0] = plus(target[0], zero, -1.0)
        place, sized = take_in(targets, ones, 0, *known)
        if place == 0:
            room[0], report[REASON], stay = largest, SIZED if sized else MOVED, False
        count_from(level, target, taken)
    return stay


@function
def outcome(limit, done, score, now, report):  # type: ignore[no-untyped-def]
    """The score of a row that was learned; NaN where ``report`` says what is to be done."""
    report[REASON] = ENDED if done > 0 else DIVERGED
    return score[0] if done > 0 and now[T] < limit else nan


def finish(here, done):  # type: ignore[no-untyped-def]
    """``outcome``, the loss of the row added."""
    limit, loss, score, target, s, now, losses, report = opened(here)
    if done > 0:
        add_loss(loss, score[0], target[0], s[0], losses[0])
    return outcome(limit, done, score, now, report)


@function
def clipped(ranges, scores, means):  # type: ignore[no-untyped-def]
    """Clip the scores to the range of the targets before; of counts to its edges."""
    if ranges is not None:
        targets, edges = ranges
        clip_row(targets if edges is None else edges, scores[0])
        clip_row(targets if edges is None else edges, means[0])


@function
def widened(ranges, target):  # type: ignore[no-untyped-def]
    """Take the row's target into the range, where there is one."""
    if ranges is not None:
        widen_row(*ranges, target)


@function
def frame_of_row(level, ranges):  # type: ignore[no-untyped-def]
    """The level that a number counts from, and the range to which its score is clipped."""
    if ranges is None:
        return plus(0.0, level, 1.0), -inf, inf
    return plus(0.0, level, 1.0), ranges[0][0, 0], ranges[0][0, 1]


@function
def add_row(race, loss, scores, means, linear, target, s, losses, t, ranges):  # type: ignore[no-untyped-def]
    """Add the loss of the row, and the row to the race where there is one."""
    if race is None:
        add_loss(loss, scores[0, 0], target[0], s[0], losses[0])
    else:
        y, rules, sums, level = race
        frame = frame_of_row(level, ranges)
        compare_row(loss, scores, means, linear[:1], linear[1:], y, s, losses, 0, t, rules, sums, frame)


def finish_race(here, done):  # type: ignore[no-untyped-def]
    """``finish`` with targets in units, predictions that are clipped, and a race of the last iterate with the average."""
    limit, loss, score, target, s, now, losses, report, (scores, means, linear), zero, level, ranges, race = opened(here)
    scores[0, 0], means[0, 0] = plus(scores[0, 0], level, 1.0), plus(means[0, 0], level, 1.0)
    linear[0, 0], linear[1, 0] = scores[0, 0], means[0, 0]
    clipped(ranges, scores, means)
    if done > 0:
        add_row(race, loss, scores, means, linear, target, s, losses, report[BEFORE], ranges)
    widened(ranges, target)
    return plus(outcome(limit, done, score, now, report), zero, 1.0)


def learn_row(here, first, second, y):  # type: ignore[no-untyped-def]
    """Learn a row and give its score before the step, or NaN; ``keep`` is what Held.compile is given."""
    learn, start, at_start, end, at_end, words, target, report = opened(here)[:8]
    largest = run_routine(start, at_start, first, second, y)
    rows, kept, units, rest = opened(here)[8:]  # which may have grown
    if largest < 0.0:
        return nan
    if not in_units(units, largest, target, report):
        words[LEARNING] = -1  # no other row before this one, see ``end_waiting``
        return nan
    keep(rows, *kept)  # type: ignore[name-defined]  # noqa: F821
    return run_routine(end, at_end, run_routine(learn, rows, largest, *rest))


def retyped(indices: Any, values: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """A row of lists, or of arrays of any type and order, as arrays that compiled code looks at: of its types, in order.

    None for a row that is so already, and for one that the way of a block has to take, or to refuse: of columns that come
    twice, or of what are no numbers.
    """
    columns, entries = as_array(indices), as_array(values)
    if columns is None or entries is None or columns.ndim != 1 or columns.shape != entries.shape:
        return None
    if (columns.dtype.kind not in "iu" and len(columns)) or entries.dtype.kind not in "biuf" or entries.dtype.itemsize > 8:
        return None
    if len(columns) and (columns.max() > LARGEST_COLUMN or (entries.dtype.kind in "iu" and np.abs(entries).max() > EXACT)):
        return None
    own, numbers = columns.astype(np.int64), entries.astype(np.float64)
    ascends = bool(np.all(own[1:] > own[:-1]))
    if not ascends:
        order = own.argsort(kind="stable")
        own, numbers = own[order], numbers[order]
        if np.any(own[1:] == own[:-1]):
            return None
    same = columns is indices and entries is values and ascends and entries.dtype.kind == "f"
    known = same and any(columns.dtype is kind for kind in TYPES) and any(entries.dtype is kind for kind in TYPES)
    return None if known and columns.flags.aligned and entries.flags.aligned else (own, numbers)


def as_array(given: Any) -> np.ndarray | None:
    """An array, or a list or the like as one; None for anything else."""
    if type(given) is ARRAY:
        return given
    if not isinstance(given, (list, tuple, range)):
        return None
    try:
        return np.asarray(given)
    except ValueError:  # lists of several lengths
        return None


def plain_target(y: Any) -> float | int | None:
    """A target as compiled code takes it; None for what is no number, or none that a float can be."""
    if type(y) in (float, DOUBLE):
        return y
    if type(y) is int:
        return y if abs(y) <= EXACT else None
    if isinstance(y, np.integer):
        return float(y) if abs(int(y)) <= EXACT else None
    return float(y) if isinstance(y, (np.float32, np.float16)) else None


def learned_or_forgotten(book: Book, known: int, learn: Callable[[], Any]) -> Any:
    """What ``learn`` gives for a row; where that is None or an error, the names beyond the first ``known`` are dropped."""
    try:
        found = learn()
    except BaseException:
        book.forget_after(known)
        raise
    if found is None:
        book.forget_after(known)
    return found


class RowRoom(ABC):
    """Room for a row of up to ``capacity`` non-zeros that a core learns, and the ways it takes there."""

    def __init__(self, core: Core, capacity: int, alone: Callable[[], SideBySide]) -> None:
        self._core, self._engine = core, core.engine
        self._alone = alone  # gives what learns rows for the core
        self.capacity = capacity
        self._rows = Rows(np.zeros(2, np.uint64), np.empty(capacity, np.uint32), np.empty(capacity + BEHIND))
        self._target, self._s = np.empty(1), np.full(1, core.factor)
        shifts = core.units is not None and core.units.shifts
        self._taken = np.empty(1) if shifts else self._target  # the target from the level on
        self._size, self._ones = np.empty(1), np.ones(1)  # the largest value of a row that moves the units; weights
        self._report = np.zeros(3, np.int64)
        self.count = np.zeros(1, np.int64)  # columns that there is room for
        self._rule = RULES.index(loss_labels(core.loss))
        self._ready = self._rows  # where the row stands when it is learned
        self._seen = -1  # of the moves of the state's arrays

    def _ways_of_scales(self) -> tuple[Any, Rows, Any]:
        """How a row begins, where it stands when it is learned, and the scales."""
        scaler = self._core.scaler
        if scaler is None or not isinstance(scaler, Centring) or scaler.divides_alone:
            return begin, self._rows, None if scaler is None else scaler.running
        size = self.capacity + len(scaler.centred)
        room = Rows(np.zeros(2, np.uint64), np.empty(size, np.uint32), np.empty(size + BEHIND))
        return begin_centred, room, (self._rows, *scaler.arguments)

    def _ways_of_moves(self, targets: np.ndarray) -> Any:
        """How the units take in targets (1, K) and give what the kernel takes; None without units."""
        units = self._core.units
        if units is None:
            return None
        weighs, measure, *arrays = units.known
        followed = targets if units.targets else np.empty((1, 0))
        zero, level = (units.zero, units.level) if units.shifts else (None, None)
        return followed, self._ones, zero, level, self._taken, (int(weighs), measure, *arrays), self._size

    def _has_settled(self) -> bool:
        """Whether the arrays of the scales are those that further rows change."""
        return self._core.scaler is None or self._core.scaler.settled

    def _limits(self, restart: float) -> tuple[Any, ...]:
        """What ``checked`` is given first.

        The columns that rows may have and that there is room for; the core's words; the rule of the targets; the number of rows
        until the arrays change, as the step after a full table restarts it; what tells objects apart; what is asked for ahead;
        and what watches for a later pass.
        """
        state = self._core.states[0]
        rooms_of = [one.now[VISIT] + room_for_steps(one.table) for one in self._core.states if one.table is not None]
        full = max(min(rooms_of, default=inf), state.t + 1.0)
        scales = inf if self._core.scaler is None else state.t + self._core.scaler.rows_to_review
        watched = None if self._core.race is None else self._core.race.watched
        bound = LARGEST_COLUMN + 1 if self._core.growing else state.size
        self.count[0] = min(map(self._engine.reach, self._core.states))
        room, limit = (self.count, self._core.words), float(min(full, restart, scales))
        return bound, *room, self._rule, limit, kinds_of_rows(), self._vectors(state), watched

    @property
    @abstractmethod
    def all_held(self) -> list[Held]:
        """What is held."""

    def _hold_anew(self) -> None:
        """What is held is the arrays as they are."""
        self._seen = self._core.moves
        self._core.let_go()

    @property
    def is_bound(self) -> bool:
        """Whether what is held is the arrays as they are."""
        return self._core.moves == self._seen

    def _vectors(self, state: State) -> tuple[tuple[np.ndarray, int], ...] | None:
        """Where the numbers of a row's columns begin, and how far those of two columns are apart; None where it has none. Sums
        of the blocks before, A, are not among them."""
        found = [(array, state.widths.get(name, 1)) for name, array in state.arrays.items() if name != "A" and array.ndim == 1]
        if self._core.scaler is not None:
            found += [(array, 1) for array in self._core.scaler.running[0]]
        return tuple((first_number(array), width * array.strides[0] // array.itemsize) for array, width in found) or None

    def _widened(self) -> bool:
        """Whether there is room now for the row's last column."""
        count = self._rows.indptr.item(1)
        size = self._rows.indices.item(count - 1) + 1 if count else 0
        if size <= self._core.size or self._core.too_wide(size) is not None:
            return False
        self._core.grow(size)
        return True

    def _learn_named(self, row: Any, names: Names, y: Any) -> Any:
        """Learn a dict whose new names get columns, which they lose where it is not learned."""
        known = names.book.count
        if not names.book.add(row):
            return None

        def learn() -> Any:
            if not self._widened():
                self._core.tell_news()
            return self.learn(row, names, y)

        return learned_or_forgotten(names.book, known, learn)

    def _settle(self, indices: Any, values: Any, y: Any) -> Any:
        """``_look``; the row's new names lose their columns where it is not learned."""
        with uninterrupted():
            new = self._report.item(NEW)
            if not new:
                return self._look(indices, values, y)
            return learned_or_forgotten(values.book, values.book.count - new, lambda: self._look(indices, values, y))

    @abstractmethod
    def _look(self, indices: Any, values: Any, y: Any) -> Any:
        """What is to be done with a row that compiled code did not learn at once, or not to the end."""

    @abstractmethod
    def learn(self, indices: Any, values: Any, y: Any) -> Any:
        """Learn a row and give what it scored before the step; None, and nothing is learned, where it needs another way."""

    def end_waiting(self) -> None:
        """Learn a row that Ctrl-C has stopped where it had moved scales and units, and was to be learned by new step sizes."""
        report, core = self._report, self._core
        if report.item(REASON) in (MOVED, SIZED) and report.item(BEFORE) == core.t and core.stopped is None:
            with uninterrupted():
                self._learn_moved()

    @property
    @abstractmethod
    def _targets(self) -> np.ndarray:
        """The targets of the row, (1, K)."""

    def _learn_moved(self) -> np.ndarray:
        """Learn the row, which is ready, by new step sizes or a new range: the scores before the step."""
        core, units, y = self._core, self._core.units, self._targets
        assert units is not None
        ranges, sized = units.follow_ranges(y, self._s), self._report[REASON] == SIZED
        units.move(y[0], self._report.item(BEFORE), sized, None if ranges is None else ranges[:, 0])
        core.moved()
        prepared = Prepared(self._ready, float(self._size[0]), y, self._s)
        scores = self._alone().learn_rows(prepared, row_of_call, ranges)[0, :, 0]
        self._review_scales()
        return scores

    def _review_scales(self) -> None:
        """``Scaler.review`` after a row, where there are scales."""
        if self._core.scaler is not None:
            self._core.scaler.review()


class OneRow(RowRoom):
    """Learns single rows of up to ``capacity`` non-zeros for a core of one output, without batches."""

    def __init__(self, core: Core, capacity: int, alone: Callable[[], SideBySide]) -> None:
        super().__init__(core, capacity, alone)
        self._state = core.states[0]
        self._score, self._means, self._linear = np.empty(1), np.empty((1, 1)), np.empty((2, 1))
        self._last: LastRow | None = None
        self._begin, self._learn, self._end = HeldText(*GIVEN_ROW), HeldText(*GIVEN_ROW), HeldText(1)
        self._restart = self._until = inf

    def learn(self, indices: Any, values: Any, y: Any) -> float | None:
        """Learn the row, of columns and values or a dict and its ``Names``, and give its score before the step.

        Give None, and learn nothing, for a row that needs the slower way of a block: other types, unsorted columns, more
        non-zeros than ``capacity``, a target that is refused.
        """
        y = plain_target(y)
        if y is None:
            return None
        self.end_waiting()
        if self._core.moves != self._seen and not self._bind():
            return None
        try:
            score: float = self._learn.run(self._learn.here, indices, values, y)
        except (ZeroDivisionError, OverflowError):
            score, self._core.words[FAILED] = nan, 1
        if score != score:
            return self._settle(indices, values, y)
        self._give()
        return score

    def _give(self) -> None:
        """Let the state know of the last row, if it keeps that."""
        if self._last is not None:
            self._last.give(self._state)
            self._core.words[GIVEN] = self._last.given

    def end(self, indices: Any, values: Any, y: Any) -> float | None:
        """The score of a row for which a built-in function has run the code, which gave none; None as in ``learn``."""
        failed = self._core.words[FAILED] or self._report[REASON] != ENDED
        if failed or self._last is None or self._state.now[T] >= self._until:
            return self._settle(indices, values, y)
        self._give()
        return float(self._score[0]) + self._zero

    def _look(self, indices: Any, values: Any, y: float) -> float | None:
        if self._core.words[FAILED]:
            self._core.diverge("", self._state.t + 1)
        report = self._report.item(REASON)
        if report == NAMELESS:
            return self._learn_named(indices, values, y)
        if report == REFUSED:
            others = retyped(indices, values)
            return None if others is None else self.learn(*others, y)
        if report == WIDER:
            return self.learn(indices, values, y) if self._widened() else None
        if report in (MOVED, SIZED):
            return float(self._learn_moved()[0]) + self._zero
        if report == DIVERGED:
            self._core.diverge("", self._report.item(BEFORE) + 1)
        self._give()
        if self._state.t == self._restart:
            self._engine.restart(self._core.states[0])
            self._restart = inf
        self._review_scales()
        self._core.moved()
        return float(self._score[0]) + self._zero if report == ENDED else self.learn(indices, values, y)

    @property
    def _zero(self) -> float:
        """What is added to scores whose targets are less by it."""
        units = self._core.units
        return float(units.zero[0]) if units is not None and units.shifts else 0.0

    def _bind(self) -> bool:
        """Hold the arrays as they stand now; False where a part has fields that cannot be held."""
        engine, core = self._engine, self._core
        state = core.states[0]  # which has all columns known
        core.refuse_if_diverged()
        if not self._has_settled():
            return False
        core.words[READING] = -1  # a table of steps may become another
        core.follow_units(core.units)
        keep: Any = keep_nothing
        kept: tuple[Any, ...] = ()
        start, rows, scales = self._ways_of_scales()
        self._last = LastRow.of(state, len(rows.indices))
        if self._last is not None:
            keep, kept = engine.keep(state, self._last)
        self._ready = rows
        means = None if core.race is None else self._means[0]
        kernel, args = engine.call(state, Examples(rows, 0.0, self._taken, self._s, self._score, means))
        self._restart = engine.next_restart(state)
        limits = self._limits(self._restart)
        self._until = limits[LIMIT]
        ends = limits[LIMIT], core.raw_loss, self._score, self._target, self._s, state.now, core.loss_sums, self._report
        units, others = self._ways_of_units()
        try:
            self._begin.hold(start, limits, rows, scales, self._target, state.now, self._report)
            self._end.hold(finish_race if others else finish, *ends, *others)
            held = *self._begin.call, *self._end.call, core.words, self._target, self._report, rows, kept, units, args[2:]
            self._learn.hold_with(kernel, (rows, 0.0, *args[2:]), learn_row, *held, keep=keep)
        except TypeError:
            return False
        core.words[[LAST, GIVEN]] = (0, 0) if self._last is None else (self._last.arrays[1].ctypes.data, self._last.given)
        self._hold_anew()
        self._tell()
        return True

    @property
    def _targets(self) -> np.ndarray:
        return self._target[:, None]

    def _tell(self) -> None:
        """Let built-in functions learn by what is held."""
        if COMPILED and (self._last is None or sys.byteorder == "little"):
            tell(self._core.words, LEARNING, self._learn.routine.address, self._learn.here)

    @property
    def all_held(self) -> list[Held]:
        parts = self._begin, self._learn, self._end
        return [part.held for part in parts if part.held is not None]

    def _ways_of_units(self) -> tuple[Any, tuple[Any, ...]]:
        """How targets and step sizes follow the units, and what else ``finish_race`` is given: the clip and the race."""
        units, race = self._core.units, self._core.race
        if units is None and race is None:
            return None, ()
        target, scores = self._target[:, None], self._score[:, None]
        zero, level = None, None
        ranges: tuple[np.ndarray, np.ndarray | None] | None = None
        if units is not None:
            zero, level = units.zero if units.shifts else None, units.level if units.raises else None
            if units.clip is not None:
                ranges = units.clip.ranges, units.clip.edges if units.counts else None
        raced = None if race is None else (target, race.rules(1), race.losses, self._core.centre)
        return self._ways_of_moves(target), ((scores, self._means, self._linear), zero, level, ranges, raced)
