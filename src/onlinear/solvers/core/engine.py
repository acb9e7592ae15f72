"""What all solvers share: the state of a run, when it may visit every coordinate, and the two ways to run a solver.

A solver is a ``NamedTuple`` of settings with a dense ``step`` that reads like its paper. Its ``engine`` runs it for one choice
of loss, penalty and average: lazily, by the kernel of its file, in O(non-zeros) per row; or, where no exact lazy form exists,
by repeating the dense step (``dense.py``). Engines keep nothing but settings: all that a run knows is in its ``State``, so a
saved state continues exactly as the run would have.

Moments at which a run may visit all coordinates follow from the rows learned so far alone (contract 6). Such a moment is before
the row that comes after 2^6, 2^7, .. 2^18 rows and then every 2^18 rows, and when the decay since the last visit passes a
limit. A visit reads and writes all of the state, which of a wide model is most of a short run. So what can do with fewer visits
has fewer: sums of averages restart at powers of 8, potentials alone are visited every 2^18 rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import Average, Fading, Masked, new_table, plain, room_for_steps
from onlinear.compiled import Growing, bind_loss, function, lanes, some
from onlinear.errors import ModelFileError
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.losses import is_joint
from onlinear.rows import Rows, Source
from onlinear.text.form import kebab

# Scalars of a state, by place in ``State.now``.
T, VISIT, BIAS, ONE, BIAS_SUM, BIAS_TOTAL, THETA, CAREFUL = range(8)
CLOCK = 8  # up to eight numbers
OWN = 16  # up to eight numbers of the solver's own
SCALARS = 24

FIRST_VISIT, LONGEST_BLOCK = 64, 1 << 18
POWERS_OF_8 = 0o1111111
DECAY_LIMIT, DECAY_LIMIT_AVERAGED = 2.0**500, 2.0**10
HUGE = 1e100
GAINS = "gains"  # kept of implicit steps: the sum of their gains, its correction, sum eta |g|^2 / 2, the penalty at the start


@function
def due(t: int) -> bool:
    """Whether a run may visit all coordinates after t rows."""
    if t < FIRST_VISIT:
        return False
    return t & (t - 1) == 0 if t <= LONGEST_BLOCK else t & (LONGEST_BLOCK - 1) == 0


@function
def sums_due(t: int) -> bool:
    """Whether the sums of an average restart after t rows: at powers of 8 up to 2^18, then as ``due`` says."""
    return due(t) and (t > LONGEST_BLOCK or t & POWERS_OF_8 != 0)


def next_visit(t: int, is_due: Callable[[int], bool]) -> int:
    """The first row count above t at which a run visits all coordinates, where ``is_due`` says so of powers of two up to 2^18
    and of multiples of that."""
    powers = (1 << k for k in range(LONGEST_BLOCK.bit_length()))
    return next((power for power in powers if power > t and is_due(power)), (t // LONGEST_BLOCK + 1) * LONGEST_BLOCK)


@function
def is_careful(now, largest):
    """Whether values or steps above HUGE have come, so that weights are looked at after each step. The mark stays whatever rows
    do: the largest value is known of those of a call alone."""
    if largest > HUGE:
        now[CAREFUL] = 1.0
    return now[CAREFUL] > 0.0


@function
def is_careful_after(now, careful, score, move):
    """``is_careful`` from this step on."""
    if careful or abs(score) > HUGE or abs(move) > HUGE:
        now[CAREFUL] = 1.0
        return True
    return False


@function
def mark_careful(now, largest, outputs):
    """``is_careful`` of outputs that stand side by side."""
    if largest > HUGE:
        now[CAREFUL, :outputs] = 1.0


@function
def some_careful(now, score, move):
    """Whether one of the outputs side by side is, or must be, careful. Asked of lanes: arrays are counted in and out."""
    return some(max(lanes(now, CAREFUL), max(abs(score), abs(move)) > HUGE))


@function
def mean_score(average, t, sums, p):
    """The score of the average of the predictors before t steps, from the weighted sum of their scores; p where t = 0."""
    weight = average.total(t)
    return sums / weight if weight > 0.0 else p


@function
def read_bias(now):
    """The intercept, of a run that keeps it as it is."""
    return now[BIAS]


@function
def read_mean_bias(last, post, total, now):
    """The average of the intercepts, of which ``last`` is the last and counts too where ``post``."""
    sums = now[BIAS_TOTAL] + now[BIAS_SUM]
    return (sums + last if post else sums) / total


class Bound(NamedTuple):
    """The most features of which an array holds numbers, and how many numbers a feature has once there are more."""

    features: int
    beyond: int


@dataclass
class State:
    """Everything a run of one output knows."""

    now: np.ndarray  # scalars
    arrays: dict[str, np.ndarray]  # one number per feature
    kept: dict[str, np.ndarray] = field(default_factory=dict)  # arrays of other lengths
    table: np.ndarray | None = None  # prefix sums of the steps since the last visit; rebuilt on load, so not saved
    size: int = 0  # features
    extra: int = 0  # places of the arrays before the first feature
    widths: dict[str, int] = field(default_factory=dict)  # numbers of an array per feature, where that is not one
    fresh: dict[str, tuple[float, ...]] = field(default_factory=dict)  # what a new feature begins with, where that is not 0
    stamps: tuple[str, ...] = ()  # arrays of steps, which a visit sets to its own
    halves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of both, where files hold an array of pairs as two
    bounded: dict[str, Bound] = field(default_factory=dict)  # arrays that hold numbers of the first features alone
    borrowed: bool = False  # whether the table is that of other outputs too, to be read and not written
    buffers: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # memory that the arrays are views of
    batch: int = 1  # rows to a step
    waiting: Any = field(default=None, repr=False)  # rows of a batch that is not full, where a step takes several

    @property
    def t(self) -> int:
        """Steps taken."""
        return int(self.now[T])

    @property
    def rows(self) -> int:
        """Rows learned."""
        return self.t if self.waiting is None else self.t * self.batch + int(self.waiting.count)

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` features, of which nothing else is seen.

        Vectors are views of buffers that double, so that growing costs O(1) per new feature; zeros are left to the system,
        which hands out memory when it is touched.
        """
        for name, array in self.arrays.items():
            length, old = self._length(name, size), array.shape[-1]
            if array.ndim == 1 and not (self._has_buffer(name) and len(self.buffers[name]) >= length):
                buffer = np.zeros(max(length, 2 * old))
                buffer[:old] = array
                self.buffers[name], self.arrays[name] = buffer, buffer[:old]

    def grow(self, size: int) -> None:
        """Grow to ``size`` features, which start as they would have stood with this size from the first row."""
        self.take_memory(size)
        grown = {}
        for name, array in self.arrays.items():
            length, old = self._length(name, size), array.shape[-1]
            if array.ndim == 1:
                bigger = self.buffers[name][:length]
            else:
                bigger = np.zeros((*array.shape[:-1], length))
                bigger[..., :old] = array
            fills = (self.now[VISIT],) if name in self.stamps else self.fresh.get(name, ())
            for place, fill in enumerate(fills):
                if fill != 0.0:
                    bigger[..., old + place :: len(fills)] = fill
            grown[name] = bigger
        self.arrays |= grown
        self.size = size

    def _length(self, name: str, size: int) -> int:
        """The numbers of an array of ``size`` features."""
        features = min(size, self.bounded[name].features) if name in self.bounded else size
        return (features + self.extra) * self.widths.get(name, 1)

    @property
    def memory(self) -> list[np.ndarray]:
        """The arrays that hold all that it knows, but for the rows that wait."""
        return [self.now, *self.arrays.values(), *self.kept.values(), *([] if self.table is None else [self.table])]

    @property
    def room(self) -> int:
        """The features up to which growing changes nothing but lengths, and fills what is ``fresh`` or a stamp."""
        if not all(self._has_buffer(name) for name in self.arrays):
            return self.size
        rooms = [len(self.buffers[name]) // self.widths.get(name, 1) - self.extra for name in self.arrays]
        return min(rooms + [bound.features for bound in self.bounded.values()], default=self.size)

    @property
    def fills(self) -> bool:
        """Whether growing writes to arrays."""
        return bool(self.stamps or self.fresh)

    def _has_buffer(self, name: str) -> bool:
        buffer, array = self.buffers.get(name), self.arrays[name]
        return buffer is not None and array.ndim == 1 and array.base is buffer

    @property
    def growing(self) -> Growing:
        """Where the arrays lie that become longer there, up to ``room``."""
        found = [(array, 8 * self.widths.get(name, 1)) for name, array in self.arrays.items()]
        return [(array.ctypes.data, array.ctypes.data + array.nbytes, each) for array, each in found]

    def vectors(self) -> dict[str, np.ndarray]:
        """The arrays, pairs of halves apart, to be read or filled."""
        found: dict[str, np.ndarray] = {}
        for name, array in self.arrays.items():
            names = self.halves.get(name, (name,))
            found |= {half: array[..., place :: len(names)] for place, half in enumerate(names)}
        return found

    def prepare(self, rows: int) -> None:
        """Make room in the table for ``rows`` more steps."""
        if self.table is not None:
            self.reserve(self.t - int(self.now[VISIT]) + rows)

    def reserve(self, steps: int) -> None:
        """Make room in the table for a block of ``steps`` steps, or the longest there is."""
        assert self.table is not None
        if min(LONGEST_BLOCK, steps) > room_for_steps(self.table):
            bigger = new_table(table_room(steps))
            bigger[: len(self.table)] = self.table
            self.table, self.borrowed = bigger, False
        elif self.borrowed:
            self.table, self.borrowed = self.table.copy(), False


class Snapshot:
    """What a state without rows that wait knew, to be put back where that lies: whatever refers to its memory stays right."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._fields = {name: dict(found) if isinstance(found, dict) else found for name, found in vars(state).items()}
        self._arrays = [(array, array.copy()) for array in state.memory]

    def put_back(self) -> None:
        """Let the state know that and no more."""
        for array, copy in self._arrays:
            array[...] = copy
        vars(self._state).update(self._fields)


def table_room(steps: int) -> int:
    """The steps that a prefix table has room for where a block has ``steps``: one less than a power of two, or the longest
    block's."""
    needed = min(LONGEST_BLOCK, steps) + 1
    return (1 << (needed - 1).bit_length()) - 1 if needed < LONGEST_BLOCK else LONGEST_BLOCK


class Steps(NamedTuple):
    """A stretch of rows whose step sizes have one multiplier: those after the first ``after`` rows."""

    after: int
    by: float


def multiplied(solver: Any, by: float) -> Any:
    """The solver with its step sizes times ``by``."""
    if not hasattr(solver, "schedule"):
        return solver._replace(eta=solver.eta * by)
    return solver._replace(schedule=solver.schedule._replace(eta=solver.schedule.eta * by))


def can_multiply(engine: Engine) -> bool:
    """Whether the engine's step sizes may have a multiplier that changes from row to row."""
    schedule = engine.own if engine.metric else getattr(engine.own, "schedule", None)
    return engine.stepped and "eta" in getattr(schedule, "_fields", ()) and not getattr(engine.own, "tied", False)


class LastRow:
    """Room for what is kept of the last row: its columns after their number, and u there before it; and the columns of the row
    before, after theirs (``tail``)."""

    def __init__(self, capacity: int) -> None:
        self.arrays = np.zeros(capacity + 1, np.uint32), np.zeros(capacity + 1, np.uint32), np.empty(capacity)
        self._given = -1  # how many columns the state was given last

    @classmethod
    def of(cls, state: State, capacity: int) -> LastRow | None:
        """Room for rows of ``capacity`` columns at least, with what the state has kept; None where it keeps no rows."""
        if "u" not in state.kept:
            return None
        room = cls(max(capacity, len(state.kept["u"])))
        room.take(state)
        return room

    def take(self, state: State) -> None:
        """Go on from what the state has kept."""
        tail, last, u = self.arrays
        count = len(state.kept["columns"])
        last[0], last[1 : count + 1], u[:count] = count, state.kept["columns"], state.kept["u"]
        state.buffers["tail"], self._given = tail, -1

    @property
    def given(self) -> int:
        """How many columns the state was given last."""
        return self._given

    def give(self, state: State) -> None:
        """Let the state keep what is here."""
        _, last, u = self.arrays
        count = last.item(0)
        if count == self._given:
            return
        self._given = count
        state.kept["columns"], state.kept["u"] = last[1 : count + 1], u[:count]


class Problem(NamedTuple):
    """What a solver is asked to minimise, and how."""

    loss: Any
    penalty: Any
    average: Average | Fading | None
    fit_intercept: bool
    name: str = "this solver"  # as users write it
    gain: bool = False  # whether what each step gained is summed


class Preset(NamedTuple):
    """A named method: a solver with settings; ``tied`` = (c, t0) makes the step c / (l2 (t + t0)), l2 the penalty's.

    ``targets``: what several classes become, one against the rest: "signs" -1/+1, or "one-hot" 0/1 (two classes: -1/+1).
    """

    solver: Any
    settings: Mapping[str, Any] = MappingProxyType({})
    tied: tuple[float, float] | None = None
    average: str | None = None
    shuffle: bool | str | None = None
    targets: str = "signs"


def needs_theta(problem: Problem) -> None:
    """Raise for a loss without an implicit step."""
    if not hasattr(problem.loss, "theta") and not is_joint(problem.loss):
        loss = kebab(type(problem.loss).__name__)
        raise ValueError(f"{problem.name} needs a loss with the method theta (its implicit step); {loss!r} has none.")


class Examples(NamedTuple):
    """Rows to learn with their targets y and weights s, and room for their scores before each step.

    Of several outputs y, scores and means are (K, n).
    """

    rows: Rows
    largest: float  # absolute value of an entry
    y: np.ndarray
    s: np.ndarray
    scores: np.ndarray
    means: np.ndarray | None = None  # the scores of the average, where they are asked for
    own: np.ndarray | None = None  # (n,): the target of 1, where a loss joins the outputs

    @property
    def given(self) -> tuple[Any, ...]:
        """What a kernel is given first."""
        return self[:4]

    @property
    def given_with_ends(self) -> tuple[Any, ...]:
        """What a kernel that takes rows where they stand is given first."""
        return self.rows.begun, self.largest, self.y, self.s, self.rows.ends

    def cut(self, part: slice) -> Examples:
        """Some consecutive rows."""
        means = None if self.means is None else self.means[..., part]
        return Examples(self.rows.cut(part), self.largest, self.y[..., part], self.s[part], self.scores[..., part], means)

    def output(self, k: int) -> Examples:
        """The rows for output k."""
        means = None if self.means is None else self.means[k]
        return Examples(self.rows, self.largest, self.y[k], self.s, self.scores[k], means)


class Engine(ABC):
    """One solver bound to one problem. Final classes supply the kernel and how its state is read."""

    lazy = True
    why = ""
    implicit = True  # whether its kernel takes implicit steps: the loss's theta is compiled for it
    own_average = False
    grows = True  # whether the number of features may grow with the rows
    shared: tuple[str, ...] = ()  # the variables that all outputs have in common; the first state's are read
    scores_means = False  # whether the kernel can also score rows by the average before each step
    stepped = False  # whether the step size may change from row to row by a multiplier (``multiply_steps``)
    scales_rows = False  # whether its loop puts rows in their scales itself (``learn_unscaled``)
    reads_anywhere = False  # whether its loop takes rows that stand in any order
    metric = False  # whether steps are divided by the size of the gradients so far: what they move is in units of eta alone
    scales_columns = False  # whether it divides columns by running scales of its own
    alone = False  # whether its step sizes are its own, so that its output is never learned together with others
    batch = False  # whether it takes all rows at once, by ``solve``, and refuses to learn them one by one
    certifies = False  # whether ``solve`` stops at a certified gap
    rounds = False  # whether sums over rows suffice for that, so that rows need not be kept
    own_outputs = False  # whether it has a way of its own to learn all outputs (``learn_outputs``)
    joins = False  # whether it learns outputs that one loss joins, by ``join``
    sums_gains = False  # whether it can sum what its steps gained

    def __init__(self, solver: Any, problem: Problem) -> None:
        self.own = solver  # as it was named
        self.solver = solver  # as it steps now
        self.problem = problem
        self.penalty = problem.penalty
        self.average, self.masked = plain(problem.average), isinstance(problem.average, Masked)
        self.loss = problem.loss if is_joint(problem.loss) else bind_loss(problem.loss, self.implicit)

    @abstractmethod
    def start(self, w: np.ndarray, b: float) -> State:
        """The state before the first row, at weights ``w`` and intercept ``b``."""

    def learn(self, state: State, examples: Examples) -> int:
        """Learn the rows in order and fill in their scores; give the number of rows learned (all, unless the state stopped
        being finite)."""
        run, args = self.call(state, examples)
        return run(*args)

    def learn_unscaled(self, state: State, examples: Examples, scales: Any) -> int:
        """``learn`` of rows that are not in their scales yet: ``Scaler.within_loop``."""
        raise TypeError(f"Rows of {type(self.solver).__name__} are put in their scales before they are learned.")

    def why_stopped(self, states: Sequence[State]) -> str:
        """What ended a run whose row was not learned."""
        return "the state stopped being finite"

    def reach(self, state: State) -> int:
        """How many columns the kernel of ``call`` takes."""
        return state.size

    @abstractmethod
    def call(self, state: State, examples: Examples) -> Any:
        """The kernel that learns the rows, none beyond ``next_restart``, and its arguments: rows and largest first."""

    def next_restart(self, state: State) -> float:
        """The number of rows learned after which ``restart`` is due; infinite where the method has none."""
        return inf

    def restart(self, state: State) -> None:
        """Begin the next stretch of a method that has stretches, before anything is read."""

    def keep(self, state: State, room: LastRow) -> Any:
        """What keeps a row in ``room`` before it is learned: a function and its arguments after the row. None for nothing."""
        return None

    def learn_outputs(self, states: list[State], examples: Examples) -> int:
        """``learn`` for each output."""
        return min(self.learn(state, examples.output(k)) for k, state in enumerate(states))

    @property
    def packs(self) -> bool:
        """Whether outputs of its method are trained side by side, by ``pack``."""
        return False

    def pack(self, side: Any) -> Any:
        """The kernel that learns the rows for outputs side by side, an ``Abreast`` of pack.py, and its arguments."""
        raise TypeError(f"Outputs of {type(self.solver).__name__} are trained one after the other.")

    def join(self, states: list[State], side: Any) -> Any:
        """The kernel that learns the rows for outputs that one loss joins, a ``Joined`` of joint.py, and its arguments."""
        raise TypeError(f"{type(self.solver).__name__} has no form for outputs that one loss joins.")

    def learn_pack(self, states: list[State], side: Any) -> tuple[int, int]:
        """``learn`` for outputs side by side, whose states are views of what ``side`` holds: the number of rows learned, and
        the output that stopped being finite (-1 for none)."""
        run, args = self.pack(side)
        return run(*args)

    def prepare(self, source: Source) -> Any:
        """The rows as ``solve`` takes them, for all outputs."""
        return source

    def solve(self, state: State, source: Any, y: np.ndarray, s: np.ndarray, iterations: int) -> None:
        """Run a batch method; a stream's methods refuse."""
        name = type(self.solver).__name__
        raise ValueError(f"{name} learns rows one by one: use learn; batch-drs, prox-newton and sdca have solve.")

    def solve_outputs(
        self, states: list[State], source: Any, y: np.ndarray, s: np.ndarray, iterations: int, *more: Any
    ) -> None:
        """``solve`` for outputs with targets (n, K), one after the other."""
        for k, state in enumerate(states):
            self.solve(state, source, np.ascontiguousarray(y[:, k]), s, iterations, *more)

    def check_rows(self, weights: np.ndarray) -> None:
        """Raise for sample weights that the method does not define."""

    def multiply_steps(self, by: float) -> None:
        """Take the solver's own step sizes times ``by`` from the next row on."""
        self.solver = multiplied(self.own, by)

    def eta(self, t: int) -> float:
        """The step size of step t."""
        if hasattr(self.solver, "eta"):
            return float(self.solver.eta)
        at = self.solver.lam_at if hasattr(self.solver, "lam_at") else self.solver.schedule.at
        return float(at(t))

    def mean_letter(self, average: Average | Fading) -> str:
        """The average's name among the variables."""
        return getattr(self.solver, "mean_name", "wbar")

    @abstractmethod
    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        """The predictor after the last row, at ``columns``."""

    def bias(self, state: State) -> float:
        """The intercept after the last row."""
        return float(state.now[BIAS])

    @abstractmethod
    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        """The weighted sum of the predictors before the steps so far, at ``columns``."""

    def readers(self, state: State) -> tuple[Any, Any]:
        """What writes the weights of columns, and what the weighted sums of an average: a kernel and its arguments before the
        columns, after which come ``state.now`` and where it writes. None where there is no such kernel."""
        return None, None

    @property
    def mean_bias_reader(self) -> Any:
        """What gives the average of the intercepts: a function for kernels of the last one, whether that counts too, the sum of
        the weights and ``state.now``."""
        return read_mean_bias

    def bias_reader(self, state: State) -> tuple[Any, tuple[Any, ...]]:
        """What gives the intercept: a function for kernels and its arguments before ``state.now``."""
        return read_bias, ()

    def variables(self, state: State) -> dict[str, Any]:
        """The solver's quantities after the last row, by the paper's letters."""
        return {"w": self.weights(state, everything(state))}

    # --- states from files -------------------------------------------------------------------------------------------

    def visits(self) -> Callable[[int], bool] | None:
        """Says of a row count whether a run visits all coordinates then, whatever its decay; None where it marks no visits."""
        return None

    def may_keep(self, state: State) -> dict[str, Span]:
        """The arrays of other lengths that a state of this size may keep."""
        return {}

    def restore_kept(self, state: State, arrays: Mapping[str, np.ndarray]) -> None:
        """Let the state keep copies of arrays from a file. Raise ModelFileError for arrays that no state of this engine has:
        kernels find their places without a check."""
        trust.must(set(state.kept) <= set(arrays), "a kept array that is missing")
        state.kept = {name: array.copy() for name, array in arrays.items()}
        spans = self.may_keep(state)
        for name, array in arrays.items():
            span = spans.get(name)
            if span is None or array.ndim != 1 or array.dtype != span.dtype or not span.least <= len(array) <= span.most:
                raise ModelFileError(f"the model file's array {name!r} is not known, or has another shape or type.")
        columns = state.kept.get("columns")
        trust.must(columns is None or np.all(columns < state.size), "a last row with a column beyond its features")

    def finite(self, state: State) -> Iterator[tuple[str, np.ndarray]]:
        """What must be finite in the state of a run that has not diverged."""
        yield "now", state.now
        yield from state.arrays.items()
        yield from ((name, array) for name, array in state.kept.items() if array.dtype == np.float64)

    def check(self, state: State) -> None:
        """Raise ModelFileError for a state that no run of this engine could be in: kernels and readers find places and take
        counts, divisors and lengths by its numbers, and check none."""
        for name, array in self.finite(state):
            trust.finite(name, array)
        t, visit = state.now[T], state.now[VISIT]
        whole = 0.0 <= visit <= t <= trust.MOST_STEPS and t % 1.0 == 0.0 and visit % 1.0 == 0.0
        is_due = self.visits()
        trust.must(
            whole and (visit == 0.0 if is_due is None else t <= next_visit(int(visit), is_due)),
            f"step numbers of {t:g} rows learned and the last visit at {visit:g}",
        )
        for name in state.stamps:
            steps = state.arrays[name]
            inside = np.all((steps >= visit) & (steps <= t) & (steps == np.floor(steps)))
            trust.must(inside, f"steps {name!r} that are not between the last visit and the last row")
        trust.must(state.now[ONE] == float(self.problem.fit_intercept), "an intercept that the settings do not have")
        trust.must(state.now[CAREFUL] in (0.0, 1.0), f"a mark of {state.now[CAREFUL]:g}")

    def check_together(self, states: list[State]) -> None:
        """Raise ModelFileError for outputs that no one run could have."""
        if any(state.rows != states[0].rows for state in states):
            raise ModelFileError("the model file's outputs have learned different numbers of rows.")

    def rebuild(self, state: State, steps: Sequence[Steps] = ()) -> None:
        """Fill the prefix table anew from the schedule and the block's start (after loading); ``steps``: how the step sizes
        were multiplied, the last entry as they are now."""

    def rebuild_all(self, states: list[State], steps: Sequence[Steps] = ()) -> None:
        """``rebuild`` for all outputs. Those whose block starts together share a table until they learn: a file of many outputs
        is short beside their tables."""
        found: dict[int, State] = {}
        for state in states:
            first = found.setdefault(int(state.now[VISIT]), state)
            if first is state:
                self.rebuild(state, steps)
            elif first.table is not None:
                state.table, state.borrowed, first.borrowed = first.table, True, True

    # --- averages ----------------------------------------------------------------------------------------------------

    def mean(self, state: State, columns: np.ndarray) -> np.ndarray:
        """The average of the predictors, at ``columns``."""
        assert self.average is not None
        total = self.average.total(state.t)
        if total <= 0.0:
            return self.weights(state, columns) if state.t == 0 else np.zeros(len(columns))
        sums = self.sums(state, columns)
        if not (self.average.post or self.masked):
            return sums / total
        last = self.weights(state, columns)
        mean = (sums + last if self.average.post else sums) / total
        return np.where(last != 0.0, mean, 0.0) if self.masked else mean

    def mean_bias(self, state: State) -> float:
        """The average of the intercepts."""
        assert self.average is not None
        total = self.average.total(state.t)
        if total <= 0.0:
            return self.bias(state) if state.t == 0 else 0.0
        sums = self.sum_bias(state)
        return (sums + self.bias(state) if self.average.post else sums) / total

    def sum_bias(self, state: State) -> float:
        """The weighted sum of the intercepts before the steps so far."""
        return float(state.now[BIAS_TOTAL] + state.now[BIAS_SUM])


def scalars(problem: Problem, bias: float) -> np.ndarray:
    """The scalars of a run that has not started."""
    now = np.zeros(SCALARS)
    now[BIAS], now[ONE] = bias, float(problem.fit_intercept)
    return now


def vector_state(now: np.ndarray, name: str, size: int, averaged: bool) -> State:
    """A state of one vector, at 0, and with an average of its sums: those of the block, B, beside the vector in one array, as a
    row needs both, and those before it, A."""
    if not averaged:
        return State(now, {name: np.zeros(size)}, size=size)
    pairs = f"{name}B"
    arrays = {pairs: np.zeros(2 * size), "A": np.zeros(size)}
    return State(now, arrays, table=new_table(FIRST_VISIT), size=size, widths={pairs: 2}, halves={pairs: (name, "B")})


def kept_vector(state: State, name: str) -> np.ndarray:
    """A vector kept from the start, 0 where there is none, of the size the state has now."""
    vector = np.zeros(state.size)
    found = state.kept.get(name, vector[:0])
    vector[: len(found)] = found
    return vector


def everything(state: State) -> np.ndarray:
    """All columns."""
    return np.arange(state.size, dtype=np.uint32)
