"""One row after another for several outputs that are trained side by side, by a few compiled calls each.

A row is checked and scaled by one call, learned by one for each pack of outputs (``solvers.packs``) and each output beside
the packs, and its losses are added by one more. The caller handles all other cases, as for ``learn_one.OneRow``; both give what
a block of one row gives, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from onlinear.compiled import Held, HeldText, function, opened, run_routine
from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.errors import DivergenceError
from onlinear.learner.core import NO_NUMBER, Core
from onlinear.learner.learn_one import (
    ARRAY,
    BEFORE,
    DIVERGED,
    GIVEN_ROW,
    MOVED,
    NAMELESS,
    NEW,
    REASON,
    REFUSED,
    SIZED,
    WIDER,
    RowRoom,
    allowed,
    in_units,
    retyped,
)
from onlinear.learner.loss_sums import add_loss
from onlinear.learner.race import compare_row
from onlinear.learner.side_by_side import SideBySide
from onlinear.losses import is_joint
from onlinear.rows import Rows
from onlinear.softmax import copy_logs
from onlinear.solvers.core.engine import Examples
from onlinear.solvers.packs.team import Call


def take_row(here, first, second):  # type: ignore[no-untyped-def]
    """Check a row and its targets, and put it in its scales: its largest absolute value, or -1 where ``report`` says why it is
    not learned."""
    start, at_start, rule, target, y, units, report, steps = opened(here)
    report[REASON], report[NEW] = REFUSED, 0
    for k in range(y.shape[0]):
        if not allowed(y[k, 0], rule):
            return -1.0
    largest = run_routine(start, at_start, first, second, y[0, 0])
    if largest < 0.0 or not in_units(units, largest, target, report):
        return -1.0
    steps[:] = WAITS
    steps[0] = largest
    return largest


def learn_outputs(here, largest):  # type: ignore[no-untyped-def]
    """Whether outputs have learned the row and stayed finite."""
    learn, rows, step, rest = opened(here)
    done, _ = run_routine(learn, rows, largest, *rest)
    step[0] = done
    return done == 1


def learn_output(here, largest):  # type: ignore[no-untyped-def]
    """``learn_outputs`` for an output that is trained alone."""
    learn, rows, step, rest = opened(here)
    step[0] = run_routine(learn, rows, largest, *rest)
    return step[0] == 1


# The steps of a row: first the largest absolute value of one that is being learned, then 1 of each call that has learned it.
# Compiled code says so itself: Ctrl-C comes between a call and what Python does next.
ENDED = WAITS = -1.0


@function
def add_row(race, loss, last, means, y, s, losses, t):  # type: ignore[no-untyped-def]
    """Add the losses of the row, and the row to the race where there is one."""
    if race is None:
        for k in range(y.shape[1]):
            add_loss(loss, last[k, 0], y[0, k], s[0], losses[k])
    else:
        rules, sums = race
        compare_row(loss, last, means, last, means, y, s, losses, 0, t, rules, sums, (0.0, -inf, inf))


@function
def join_row(joined):  # type: ignore[no-untyped-def]
    """Find the log-probabilities of the scores of a row, and of their means where there are some."""
    if joined is not None:
        scores, found = joined
        for k in range(scores.shape[0]):
            copy_logs(scores[k], found[k])


def end_row(here):  # type: ignore[no-untyped-def]
    """Add the losses of the row that was learned."""
    joined, loss, last, means, y, s, losses, race, report, steps = opened(here)
    join_row(joined)
    add_row(race, loss, last, means, y, s, losses, report[BEFORE])
    steps[0] = ENDED


class OutputsOfRow(RowRoom):
    """Learns single rows of up to ``capacity`` non-zeros for a core of several outputs, without batches."""

    def __init__(self, core: Core, capacity: int, alone: Callable[[], SideBySide]) -> None:
        super().__init__(core, capacity, alone)
        self._joint = is_joint(core.loss)
        self._y, self._own = np.empty((core.n_outputs, 1)), np.zeros(1, np.int64)
        self._scores = np.empty((1 if core.race is None else 2, core.n_outputs, 1))
        self._read = np.empty_like(self._scores) if self._joint else self._scores  # as losses take them
        self._steps = np.full(1, ENDED)
        self._begin, self._take, self._end = HeldText(*GIVEN_ROW), HeldText(*GIVEN_ROW[:2]), HeldText()
        self._packs: list[HeldText] = []
        plain = core.units is None or not (core.units.targets or core.units.clip)
        self._serves = plain and self._calls(self._rows) is not None  # whether kernels alone learn all outputs

    def learn(self, indices: Any, values: Any, y: Any) -> np.ndarray | None:
        """Learn the row and give its scores before the step; None, and nothing is learned, for a row that needs the slower way
        of a block."""
        y = self._as_targets(y) if self._serves else None
        if y is None:
            return None
        if self._joint and np.count_nonzero(y > 0.0) != 1:
            return None  # the slower way says what is wrong
        core = self._core
        if core.moves != self._seen and not self._bind():
            return None
        self._y[:, 0] = y
        if self._joint:
            self._own[0] = y.argmax()
        try:
            largest = self._take.run(self._take.here, indices, values)
            if largest < 0.0:
                return self._settle(indices, values, y)
            if not self._go_on(largest, self._packs):
                self._report[REASON] = DIVERGED
                self._settle(indices, values, y)
        except BaseException:
            with uninterrupted():
                self._end_stopped()
            raise
        return self._read[0, :, 0].copy()

    def _as_targets(self, y: Any) -> np.ndarray | None:
        """Targets (K,) in float64, of numbers of any type, or of a class of outputs that one loss joins; None for any other."""
        outputs = len(self._y)
        if type(y) is ARRAY and y.dtype.char == "d":
            return y if y.shape == (outputs,) else None
        if isinstance(y, (int, float, np.integer, np.floating)):
            if not self._joint or isinstance(y, bool) or not 0 <= y < outputs or y != int(y):
                return None
            found = np.full(outputs, -1.0)
            found[int(y)] = 1.0
            return found
        given = np.asarray(y) if isinstance(y, (list, tuple, ARRAY)) else None
        if given is None or given.shape != (outputs,) or given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
            return None
        return given.astype(np.float64)

    def _go_on(self, largest: float, packs: list[HeldText]) -> bool:
        """Learn a row that was taken, by these outputs, and add its losses; False where the state did not stay finite."""
        try:
            finite = all(pack.run(pack.here, largest) for pack in packs)
        except NO_NUMBER:
            finite = False
        if not finite:
            self._steps[0] = ENDED
            return False
        self._end.run(self._end.here)
        self._review_scales()
        return True

    def _end_stopped(self) -> None:
        """Learn a row to its end, of which Ctrl-C has stopped the learning; where no row is being learned nothing changes."""
        largest = self._steps.item(0)
        if largest < 0.0:
            self.end_waiting()
            self._review_scales()
            return
        packs = [pack for pack, step in zip(self._packs, self._steps[1:], strict=True) if step == WAITS]
        if not self._go_on(largest, packs):
            with suppress(DivergenceError):  # the next row raises it
                self._core.diverge("", self._report.item(BEFORE) + 1)

    def _look(self, indices: Any, values: Any, y: np.ndarray) -> np.ndarray | None:
        report = self._report.item(REASON)
        if report == DIVERGED:
            self._core.diverge("", self._report.item(BEFORE) + 1)
        if report == REFUSED and (others := retyped(indices, values)) is not None:
            return self.learn(*others, y)
        if report == WIDER and self._widened():
            return self.learn(indices, values, y)
        if report == NAMELESS:
            return self._learn_named(indices, values, y)
        if report in (MOVED, SIZED):
            return self._learn_moved()
        return None

    @property
    def _targets(self) -> np.ndarray:
        return self._y.T

    def _calls(self, rows: Rows) -> list[Call] | None:
        """What learns a row that stands there."""
        means = None if self._core.race is None else self._scores[1]
        team = self._core.team()
        assert team is not None
        return team.calls(Examples(rows, 0.0, self._y, self._s, self._scores[0], means, self._own))

    def _bind(self) -> bool:
        """Hold the arrays as they stand now; False where that is not possible."""
        core = self._core
        core.refuse_if_diverged()
        if not self._has_settled():
            return False
        core.follow_units(core.units)
        start, self._ready, scales = self._ways_of_scales()
        calls = self._calls(self._ready)
        if calls is None:
            return False
        state, by_row = core.states[0], self._y.T
        race = None if core.race is None else (core.race.rules(core.n_outputs), core.race.losses)
        steps = np.full(1 + len(calls), ENDED)
        taken = self._rule, self._target, self._y, self._ways_of_moves(by_row), self._report, steps
        joined = (self._scores, self._read) if self._joint else None
        ended = joined, core.raw_loss, self._read[0], self._read[-1], by_row, self._s, core.loss_sums, race, self._report, steps
        try:
            self._begin.hold(start, self._limits(inf), self._ready, scales, self._target, state.now, self._report)
            self._take.hold(take_row, *self._begin.call, *taken)
            self._end.hold(end_row, *ended)
            self._packs += [HeldText(1.0) for _ in calls[len(self._packs) :]]
            for k, (call, pack) in enumerate(zip(calls, self._packs, strict=True), 1):
                self._hold_pack(call, pack, steps[k:])
        except TypeError:
            self._serves = False
            return False
        self._steps = steps
        self._hold_anew()
        return True

    @property
    def all_held(self) -> list[Held]:
        parts = self._begin, self._take, self._end, *self._packs
        return [part.held for part in parts if part.held is not None]

    def _hold_pack(self, call: Call, pack: HeldText, steps: np.ndarray) -> None:
        """Hold what a kernel is given that learns a row, which says so in the first of the steps."""
        text, rest = learn_output if call.alone else learn_outputs, call.args[2:]
        pack.hold_with(call.kernel, (self._ready, 0.0, *rest), text, self._ready, steps, rest)
