"""What all solvers share: the two ways to run a solver, and what each engine must supply.

A solver is a ``NamedTuple`` of settings with a dense ``step`` that reads like its paper. Its ``engine`` runs it for one choice
of loss, penalty and average: lazily, by the kernel of its file, in O(non-zeros) per row; or, where no exact lazy form exists,
by repeating the dense step (``dense.py``). Engines keep nothing but settings: all that a run knows is in its ``State``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import Average, Fading, Masked, plain
from onlinear.compiled import bind_loss, function
from onlinear.errors import ModelFileError
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.losses import is_joint
from onlinear.rows import Rows, Source
from onlinear.solvers.core.last_row import LastRow
from onlinear.solvers.core.moments import next_visit
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, CAREFUL, ONE, VISIT, State, T, everything
from onlinear.text.form import kebab


@function
def read_bias(now):
    """The intercept, of a run that keeps it as it is."""
    return now[BIAS]


@function
def read_mean_bias(last, post, total, now):
    """The average of the intercepts, of which ``last`` is the last and counts too where ``post``."""
    sums = now[BIAS_TOTAL] + now[BIAS_SUM]
    return (sums + last if post else sums) / total


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
        """``learn`` for rows in their own units, which the loop itself puts in ``scales`` (``Scaler.within_loop``)."""
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
        """What keeps a row in ``room`` before it is learned: a function, and its arguments after the row. None where the method
        keeps no row."""
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
        """The function that says whether a run visits all coordinates after so many rows, whatever its decay. None where the
        engine marks no visits."""
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

    def stand_at(self, state: State, t: float) -> None:
        """Let a state that ``start`` gave stand after t rows, at a visit where it would have had one since."""
        state.now[T], is_due = t, self.visits()
        if is_due is not None and t > next_visit(0, is_due):
            state.now[VISIT] = t
            for name in state.stamps:
                state.arrays[name][:] = t

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
