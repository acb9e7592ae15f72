"""The lazy state of solvers whose idle step is a prox: one potential per feature, and the companion of an average.

Shared by COMID, FIOL, SADMM and Douglas-Rachford. Between visits V holds potentials of one clock; a visit turns them into
potentials of the first clock and closes the sums of the block (MATH 11.1, 11.3; averages.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import new_table, part_sum, record, room_to_close
from onlinear.compiled import adopt, bind_loss, function, kernel, load
from onlinear.files import trust
from onlinear.penalties import Clock, ElasticNet, is_bare, soft
from onlinear.rows import Rows
from onlinear.rows.scaling import BEHIND
from onlinear.solvers.core.engine import Engine, Examples, Problem, Steps, multiplied
from onlinear.solvers.core.joint import Joined, learn_joined, numbers_of_row
from onlinear.solvers.core.loop import learn_rows
from onlinear.solvers.core.moments import FIRST_VISIT, LONGEST_BLOCK, sums_due
from onlinear.solvers.core.pack import Abreast, learn_pack, work_of_pack
from onlinear.solvers.core.pack_averages import ROOM_TO_CLOSE
from onlinear.solvers.core.state import CLOCK, GAINS, VISIT, State, T, scalars, vector_state

CLOSE = 1e-9  # between numbers of a clock that say the same


@function
def write_weights(penalty, clock, V, columns, out):
    for e in range(columns.shape[0]):
        out[e] = penalty.weight(V[columns[e]], clock) + 0.0


@function
def write_sums(table, c, V, B, A, columns, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = A[j] + (B[j] + part_sum(table, c, V[j]))


@kernel
def read(penalty, clock, V, columns, out):
    write_weights(penalty, clock, V, columns, out)


@kernel
def read_sums(table, c, V, B, A, columns, out):
    write_sums(table, c, V, B, A, columns, out)


@kernel
def read_after_row(penalty, solver, V, columns, now, out):
    """The weights after the last row; ``solver``: of one whose predictor is that of the next clock, else None."""
    clock = load(penalty.start(), now, CLOCK)
    if solver is not None:
        clock = penalty.tick(clock, solver.lam_at(int(now[T])))
    write_weights(penalty, clock, V, columns, out)


@kernel
def read_sums_after_row(table, V, B, A, columns, now, out):
    write_sums(table, int(now[T] - now[VISIT]), V, B, A, columns, out)


@kernel
def store_potentials(penalty, clock, w, V):
    for j in range(w.shape[0]):
        V[j] = penalty.potential(w[j], clock)


@kernel
def replay(penalty, solver, average, clock, start, first, last, reads_next, table):
    """The prefix table of steps first+1 .. last of a block that began after ``start`` steps, from the schedule and the clock
    at the first of them; the clock after the last."""
    for t in range(first + 1, last + 1):
        after = penalty.tick(clock, solver.decay_step(t))
        q, inverse = (after[1], after[2]) if reads_next else (clock[1], clock[2])
        record(table, t - start, average.om(t), q, inverse)
        clock = after
    return clock


def check_clock(penalty: Any, state: State, place: int) -> None:
    """Raise ModelFileError unless the clock at ``place`` is one that ticks since the last visit can have made: weights are
    divided by it."""
    first = penalty.start()
    clock = load(first, state.now, place)
    if state.now[T] == state.now[VISIT]:
        fits = tuple(clock) == tuple(first)
    elif penalty.clock_thresholds:
        P, Q, inverse, gain = clock
        fits = P >= 1.0 and Q >= 0.0 and abs(P * inverse - 1.0) <= CLOSE and abs(P - 1.0 - gain) <= CLOSE * P
    else:
        fits = _readable(penalty, clock)
    trust.must(fits, f"a clock of {', '.join(f'{number:g}' for number in clock)}")


def _readable(penalty: Any, clock: Any) -> bool:
    """Whether a penalty from elsewhere gives numbers at this clock."""
    try:
        return isfinite(penalty.weight(1.0, clock)) and isfinite(penalty.potential(1.0, clock))
    except (ArithmeticError, ValueError):
        return False


class _Undivided(ElasticNet):
    """The elastic net without l2: P is 1, and nothing is multiplied by it."""

    __slots__ = ()

    def weight(self, v: float, clock: Any) -> float:
        """soft(v, Q)."""
        return self.raw_weight(v, clock)

    def potential(self, w: float, clock: Any) -> float:
        """w + Q sign(w), and 0 for w = 0."""
        return self.raw_potential(w, clock)

    def deposit(self, v: float, eta: float, clock: Any, after: Any) -> float:
        """v + Q sign(v)."""
        return self.raw_deposit(v, eta, clock, after)

    def land(self, u: float, threshold: float, shrink: float) -> tuple[float, float]:
        """soft(u, threshold)."""
        kept = soft(u, threshold)
        return kept, 1.0 * (kept != 0.0)


adopt(_Undivided)


def undivided(penalty: Any, strengths: np.ndarray) -> Any:
    """The penalty of outputs side by side, of which ``strengths`` holds the numbers, as their kernel takes it."""
    return _Undivided(*penalty) if type(penalty) is ElasticNet and not strengths[1].any() else penalty


def why_not_lazy(problem: Problem) -> str | None:
    """What keeps a solver with a prox as idle step from being lazy, or None."""
    penalty = problem.penalty
    if not all(hasattr(penalty, name) for name in ("tick", "weight", "potential")):
        alone = f"{type(penalty).__name__} has no tick, weight, potential"
        return alone if penalty.separable else "the prox couples all coordinates"
    if problem.average is not None and not penalty.clock_thresholds:
        return "a lazy average needs a built-in separable penalty"
    return None


def stretches(solver: Any, steps: Sequence[Steps], start: int, last: int) -> Iterator[tuple[Any, int, int]]:
    """The solver as it stepped in the rows start+1 .. last: (solver, first, end) for the rows first+1 .. end."""
    known = steps or (Steps(0, 1.0),)
    for step, after in zip(known, [*(step.after for step in known[1:]), last], strict=True):
        first, end = max(start, step.after), min(last, after)
        if first < end:
            yield solver if step.by == 1.0 else multiplied(solver, step.by), first, end


class Step(NamedTuple):
    """What one step needs: the sizes for weights and intercept, the intercept, the clocks before and after, and the clock at
    which the predictor is read."""

    eta: Any
    bias: Any
    b: Any
    clock: Any
    after: Any
    seen: Any


class Still(NamedTuple):
    """No penalty, as a loop is told of it: a weight is its own potential, and the clock stands."""

    l1: float = 0.0
    l2: float = 0.0

    def start(self) -> Clock:
        """The clock of no penalty."""
        return 1.0, 0.0, 1.0, 0.0

    def tick(self, clock: Clock, eta: float) -> Clock:
        """The same clock."""
        return 1.0, 0.0, 1.0, 0.0

    def weight(self, v: float, clock: Clock) -> float:
        """The potential."""
        return v + 0.0

    def potential(self, w: float, clock: Clock) -> float:
        """The weight."""
        return w

    def deposit(self, v: float, eta: float, clock: Clock, after: Clock) -> float:
        """The value."""
        return v

    def land(self, u: float, threshold: float, shrink: float) -> tuple[float, float]:
        """The value, and whether it is not 0."""
        return u, 1.0 * (u != 0.0)


adopt(Still)


class PotentialEngine(Engine):
    """Runs the loop of loop.py over (V, B, A)."""

    reads_anywhere = True
    explicit: bool | None = None  # whether a step can overshoot, so that the loop watches for numbers that are not finite
    keeps_clock: bool | None = None  # whether the clock before the last step is kept
    reads_next = False  # whether the predictor is read from the next clock
    rests = False  # whether without a penalty its loop is told so, which it then is compiled for

    def start(self, w: np.ndarray, b: float) -> State:
        now = scalars(self.problem.fit_intercept, b)
        clock = self.penalty.start()
        now[CLOCK : CLOCK + len(clock)] = clock
        state = vector_state(now, "V", len(w), self.average is not None)
        if len(w):
            store_potentials(self.penalty, clock, self.first_value(w), state.vectors()["V"])
        return state

    def first_value(self, w: np.ndarray) -> np.ndarray:
        """The value whose potential is kept, for a start at ``w``."""
        return w

    def clock(self, state: State) -> tuple[float, ...]:
        """The clock after the last row."""
        return load(self.penalty.start(), state.now, CLOCK)

    def predictor_clock(self, state: State) -> tuple[float, ...]:
        """The clock at which the predictor after the last row is read."""
        clock = self.clock(state)
        return self.penalty.tick(clock, self.solver.lam_at(state.t)) if self.reads_next else clock

    def potentials(self, state: State) -> np.ndarray:
        """Every feature's potential."""
        return state.vectors()["V"]

    def call(self, state: State, examples: Examples) -> Any:
        return self._call(state, examples, None)

    def _call(self, state: State, examples: Examples, scales: Any) -> Any:
        state.prepare(len(examples.s))
        V, B, A, M = (state.vectors().get(name) for name in "VBAM")
        still = self.rests and is_bare(self.penalty)
        parts = (self.loss, Still() if still else self.penalty, self.stepper, self.average)
        drifts = None if still else True
        kind = (True, self.explicit, None if self.explicit else True, self.keeps_clock, None, drifts, scales)
        listed = None if B is None else room_to_close(examples.rows.longest)
        arrays = (V, B, A, None, M, self.work(examples.rows), None, listed, state.kept.get(GAINS), state.table, state.now)
        return learn_rows, (*examples.given_with_ends, *parts, *kind, *arrays, examples.scores, examples.means)

    def learn_unscaled(self, state: State, examples: Examples, scales: Any) -> int:
        room = np.empty(2 * (examples.rows.longest + BEHIND))
        run, args = self._call(state, examples._replace(largest=0.0), (*scales, room))
        return run(*args)

    @property
    def packs(self) -> bool:
        return self.penalty.takes_lanes

    def pack(self, side: Abreast) -> Any:
        work, searches = self.pack_work(side.rows)
        loss = self.loss if searches is None else bind_loss(self.problem.loss, outputs=True)
        parts = (loss, undivided(self.penalty, side.strengths), side.strengths, self.stepper)
        kind = (True, self.explicit, None if self.explicit else True, self.keeps_clock, None, searches, None)
        V, B, A = (side.vectors.get(name) for name in "VBA")
        falls = None if B is None else np.empty(ROOM_TO_CLOSE * (side.rows.longest + 1), np.int64)
        arrays = (self.average, V, B, A, None, side.table, falls, work, side.now)
        return learn_pack, (*side.given, *parts, *kind, *arrays, side.scores, side.means)

    @property
    def joins(self) -> bool:  # type: ignore[override]
        return self.penalty.takes_lanes

    def join(self, states: list[State], side: Joined) -> Any:
        lead = states[0]
        lead.prepare(len(side.s))
        for state in states[1:]:
            state.table, state.borrowed = lead.table, True
        V, A = (side.memory["V"], None) if self.average is None else (side.memory["VB"], side.memory["A"])
        work, searches = self.joint_work(side.rows, len(states))
        numbers = numbers_of_row(len(states))
        kind = (True, self.explicit, None if self.explicit else True, self.keeps_clock, 0.0, None, searches, None, None, None)
        flat = numbers.reshape(-1, side.now.shape[1])
        arrays = (V, np.uint64(len(V) // max(1, lead.size)), A, None, lead.table, work, numbers, flat, side.now, lead.now)
        parts = (self.penalty, self.stepper, self.average)
        return learn_joined, (*side.given, *parts, *kind, *arrays, side.scores, side.means)

    @property
    def stepper(self) -> Any:
        """The solver as its kernels step."""
        return self.solver

    def joint_work(self, rows: Rows, outputs: int) -> tuple[np.ndarray | None, bool | None]:
        """Room for the weights of a row of joined outputs; True where the solver searches for theta."""
        return None, None

    def pack_work(self, rows: Rows) -> tuple[np.ndarray, bool | None]:
        """Room for the numbers of a row of a pack; True where the solver searches for theta."""
        return work_of_pack(), None

    def work(self, rows: Rows) -> np.ndarray | None:
        """Room for the numbers of a row, where the solver searches for theta."""
        return None

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.read_at(state, self.predictor_clock(state), columns)

    def read_at(self, state: State, clock: tuple[float, ...], columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        read(self.penalty, clock, self.potentials(state), columns, out)
        return out

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        B, A = (state.vectors()[name] for name in "BA")
        read_sums(state.table, state.t - int(state.now[VISIT]), self.potentials(state), B, A, columns, out)
        return out

    def readers(self, state: State) -> tuple[Any, Any]:
        V = self.potentials(state)
        B, A = (state.vectors().get(name) for name in "BA")
        last = read_after_row, (self.penalty, self.solver if self.reads_next else None, V)
        if self.average is None:
            return last, None
        return last, (read_sums_after_row, (state.table, V, B, A))

    def visits(self) -> Callable[[int], bool]:
        return sums_due if self.average is not None else lambda t: t % LONGEST_BLOCK == 0

    def check(self, state: State) -> None:
        super().check(state)
        check_clock(self.penalty, state, CLOCK)

    def rebuild(self, state: State, steps: Sequence[Steps] = ()) -> None:
        if self.average is None:
            return
        start, last = int(state.now[VISIT]), state.t
        state.table = new_table(FIRST_VISIT)
        state.reserve(last - start)
        clock = self.penalty.start()
        for solver, first, end in stretches(self.own, steps, start, last):
            clock = replay(self.penalty, solver, self.average, clock, start, first, end, self.reads_next, state.table)
