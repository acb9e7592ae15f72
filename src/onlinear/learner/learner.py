"""Learner: loss + penalty + solver + average + state. It knows no algorithm.

It minimises  F(w, b) = mean_i s_i l(<w, x_i> + b, y_i) + r(w)  one row at a time, rows in the order given. Any split of the
rows into calls gives the same state, bit for bit; reading never changes it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from math import isfinite
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

import numpy as np

from onlinear import rows
from onlinear.averages import ADAPTIVE
from onlinear.compiled import bind_loss, function, kernel
from onlinear.errors import DivergenceError, ModelFileError
from onlinear.files import model_file, trust
from onlinear.learner import stored_parts
from onlinear.learner.learn_one import OneRow, add_loss
from onlinear.learner.parts import SCALES, build_average, build_loss, build_penalty, build_solver, is_adaptive, solver_name
from onlinear.learner.units import KINDS, RAW, RELATIVE, Units
from onlinear.rows import Source, checks
from onlinear.rows.scaling import Scaler
from onlinear.solvers.core.engine import SCALARS, Engine, Problem, State, can_multiply
from onlinear.solvers.core.many import Output, Team, in_threads, scores_means, threads_of
from onlinear.text.form import flag, unknown


@kernel
def add_losses(loss, scores, y, s, total):  # type: ignore[no-untyped-def]
    """total[0] + total[1] += sum of s_i l(score_i, y_i) in row order, compensated (Neumaier)."""
    for i in range(y.shape[0]):
        add_loss(loss, scores[i], y[i], s[i], total)


# What kernels raise where settings are so small or large that a product of them is 0 or infinite.
NO_NUMBER = (ZeroDivisionError, OverflowError, np.linalg.LinAlgError)


MOST = 1e300  # of the losses of a race: sums that overflow, or are no numbers, stay comparable


@function
def bounded(losses: float) -> float:
    """A sum of losses, at most MOST in size."""
    return max(losses, -MOST) if losses < MOST else MOST


@kernel
def compare(loss, scores, means, y, s, t, race):  # type: ignore[no-untyped-def]
    """Let the last iterate and the average race over rows; scores and means are (K, n), y is (n, K), t rows came before.

    race = (loss of the last iterate, loss of the average) over the recent rows, what is older counting less by 1 - 3/t a row;
    and the compensated sum of the losses of what predicted. A row's means become the scores of what predicted it.
    """
    for i in range(y.shape[0]):
        ahead = race[0] < race[1]
        last, mean = 0.0, 0.0
        for k in range(y.shape[1]):
            if s[i] > 0.0:
                last += s[i] * loss.value(scores[k, i], y[i, k])
                mean += s[i] * loss.value(means[k, i], y[i, k])
            if ahead:
                means[k, i] = scores[k, i]
            add_loss(loss, means[k, i], y[i, k], s[i], race[2:])
        if s[i] > 0.0:
            kept = 1.0 - min(1.0, 3.0 / (t + i + 1.0))
            race[0], race[1] = bounded(race[0] * kept + last), bounded(race[1] * kept + mean)


Method = TypeVar("Method", bound=Callable[..., Any])


def _changes(method: Method) -> Method:
    """Decorator: no other thread reads or changes the learner meanwhile."""

    @wraps(method)
    def alone(self: Learner, *args: Any, **settings: Any) -> Any:
        with self._lock:
            return method(self, *args, **settings)

    return alone  # type: ignore[return-value]


def _reads(method: Method) -> Method:
    """Decorator: no other thread changes the learner meanwhile."""

    @wraps(method)
    def alone(self: Learner, *args: Any, **settings: Any) -> Any:
        with self._lock:
            before, self._reading = self._reading, True
            try:
                return method(self, *args, **settings)
            finally:
                self._reading = before

    return alone  # type: ignore[return-value]


LIMIT = "ONLINEAR_STATE_LIMIT"  # the environment variable that says how large a state may become, in bytes or as 20GB
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def state_limit() -> int:
    """The bytes that a state may grow to: as the environment says, else 4 GiB, or half of the machine's memory where that is
    less. Those are 100 million columns of the estimators' defaults; the largest public data sets have 55 million."""
    asked = os.environ.get(LIMIT)
    if asked is None:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
        return min(4 << 30, pages // 2) if pages > 0 else 4 << 30
    found = re.fullmatch(r"([0-9]{1,15}) *([KMGT]?B)?", asked.strip(), re.IGNORECASE)
    if found is None:
        raise ValueError(f"the environment variable {LIMIT} must be a number of bytes, such as 20GB, got {asked!r}.")
    return int(found[1]) * UNITS[(found[2] or "B").upper()]


def growth_error(column: int, each: int) -> str | None:
    """What is wrong with a column that makes a state of ``each`` bytes per column grow beyond the limit; None if none does."""
    limit = state_limit()
    if (column + 1) * each <= limit:
        return None
    return (
        f"expected columns up to {limit // each - 1:,} (a state of {limit / 1e9:.3g} GB), got column {column:,}, for which the "
        f"state would grow to {(column + 1) * each / 1e9:.3g} GB. If the column is right, set the environment variable {LIMIT} "
        "to more, such as 20GB, or give the number of columns (--n-features, n_features=)."
    )


COLUMNS_NEEDED = "n_features (--n-features) must be given."


class WideRowError(ValueError):
    """A row has a column that would make the state grow beyond its limit."""

    def __init__(self, row: int, rule: str) -> None:
        super().__init__(f"row {row} of X: {rule}")
        self.row, self.rule = row, rule


class ColumnsNeeded(ValueError):  # noqa: N818 (nothing is wrong, only unknown)
    """The number of columns must be known before the first row."""


class Learner:
    """Learns a linear model from rows in the order given.

    Parameters: ``solver``, ``loss``, ``penalty``, ``average`` as text (``name,key=value,...``) or part objects; ``scale`` one
    of none, rms, max-abs, standard; ``n_features`` fixed, or None to grow with the rows; ``n_outputs`` K > 1 learns K targets
    in one pass; ``start`` the first weights, (d,) or (d, K); ``n_jobs`` the threads that share many outputs (None is 1, -1 all
    cores), which change nothing but the time.

    ``weights="relative"`` divides the step sizes by the largest weight so far to the power 3/4. ``targets="relative"`` takes
    the first target as the zero of all targets (with an intercept). For losses with a bounded slope it also multiplies the step
    sizes by the running deviation of the targets. Both are for ``fiol``, ``implicit-sgd``, ``comid`` and ``sgd``;
    the default, ``"raw"``, takes weights and targets as they are. ``average="adaptive"`` is the weighted-t1 average, or the
    last iterate while that scores the recent rows better. With any of the three, ``learn_one`` takes the slower way of a block.

    Several threads may use one learner: each call has the learner to itself, so every row is used once, and the calls follow
    each other in the order in which they were let in. ``predict``, ``weights``, ``save`` and the like wait for the call that
    learns, and see all of its rows or none.

    Raises ValueError or TypeError for unknown names, settings out of range and combinations that have no correct form.
    """

    def __init__(
        self,
        solver: Any,
        loss: Any,
        penalty: Any = "none",
        average: Any = None,
        scale: str = "none",
        fit_intercept: bool = False,
        n_features: int | None = None,
        n_outputs: int = 1,
        start: Any = None,
        *,
        targets: str = RAW,
        weights: str = RAW,
        total: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._threads = threads_of(n_jobs)
        self._lock = threading.RLock()
        self._reading = False  # whether who holds the lock changes nothing
        if scale not in SCALES:
            raise unknown("scale", str(scale), SCALES)
        for name, kind in (("targets", targets), ("weights", weights)):
            if kind not in KINDS:
                raise unknown(name, str(kind), KINDS)
        self.spec = {"solver": solver, "loss": loss, "penalty": penalty, "average": average}
        self.loss = build_loss(loss)
        self.penalty = build_penalty(penalty)
        self.solver, preset = build_solver(solver, self.penalty, total)
        self.average = build_average(preset.average if average is None else average, total)
        self.fit_intercept = flag("fit_intercept", fit_intercept)
        self.n_outputs = _count("n_outputs", n_outputs)
        self.growing = n_features is None
        self.total = total
        first = _start(start, n_features, self.n_outputs)
        size = len(first)
        self.factor = float(getattr(self.loss, "factor", 1.0))
        self._loss = bind_loss(self.loss)
        self.engine: Engine = self.solver.engine(
            Problem(self.loss, self.penalty, self.average, self.fit_intercept, solver_name(solver))
        )
        self.engines = [self.engine]  # one for all outputs, or each its own where their steps differ
        self.scaler = Scaler(scale, size) if scale != "none" else None
        if self.scaler is not None and start is not None:
            raise ValueError("start= needs scale='none': the scales of a stream are not known before its first row.")
        lower, upper = getattr(self.penalty, "lower", -np.inf), getattr(self.penalty, "upper", np.inf)
        if start is not None and (np.any(first < lower) or np.any(first > upper)):
            raise ValueError(f"start must lie within the penalty's bounds [{lower:g}, {upper:g}].")
        self.states = self._first_states(first, start is not None)
        self._losses = np.zeros((self.n_outputs, 2))
        self._race = self._start_race()
        self.units = self._start_units(targets, weights, start is not None)
        self._diverged: str | None = None
        self._torn = False
        self._one: OneRow | None = None  # made by the first learn_one
        self._team: Team | None = None  # made by the first learn of several outputs
        self.asked = 0  # columns that may come whatever the limit of the state
        self._room = 0  # columns that are known to be within it
        if self.growing and not self.engine.grows:
            raise ColumnsNeeded(f"{solver_name(solver)} needs the number of columns in advance: {COLUMNS_NEEDED}")
        if self.growing and getattr(self.penalty, "separable", True) is False:
            raise ColumnsNeeded(f"the penalty {type(self.penalty).__name__} couples neighbouring columns: {COLUMNS_NEEDED}")
        _LEARNERS.add(self)

    def _first_states(self, weights: np.ndarray, given: bool) -> list[State]:
        """The outputs' states before the first row. Where no weights were given, lazy ones grow from nothing: memory of
        features that no row names is never touched."""
        if given or not (self.engine.lazy and self.engine.grows):
            return [self.engine.start(weights[:, k].copy(), 0.0) for k in range(self.n_outputs)]
        states = [self.engine.start(np.zeros(0), 0.0) for _ in range(self.n_outputs)]
        for state in states:
            state.grow(len(weights))
        return states

    def _start_race(self) -> np.ndarray | None:
        """The losses by which an adaptive average goes, none yet; None for any other average."""
        if not is_adaptive(self.spec["average"]):
            return None
        if not scores_means(self.engine):
            raise ValueError(
                f"average {ADAPTIVE!r} needs rows scored by the average before each step, which "
                f"{self.engine.problem.name} does not do here: use 'fiol', 'implicit-sgd', 'comid' or 'sgd' with a "
                "separable penalty, or another average."
            )
        return np.zeros(4)

    def _start_units(self, targets: str, weights: str, started: bool) -> Units | None:
        """The running units of targets and weights, or None where both are taken as they are."""
        if targets == weights == RAW:
            return None
        name = self.engine.problem.name
        if not can_multiply(self.engine):
            raise ValueError(
                f"targets={RELATIVE!r} and weights={RELATIVE!r} multiply the step size from row to row, and {name} has no form "
                "for that here: use 'fiol', 'implicit-sgd', 'comid' or 'sgd' with a step size of its own."
            )
        if targets == RELATIVE and not getattr(self.loss, "residual", False):
            raise ValueError(
                f"targets={RELATIVE!r} needs a loss of the residual s - y alone; {type(self.loss).__name__} is none."
            )
        if targets == RELATIVE and started:
            raise ValueError(f"start= needs targets={RAW!r}: the zero of the targets is not known before the first row.")
        if targets == RELATIVE and self.n_outputs > 1:
            self.engines = [self.solver.engine(self.engine.problem) for _ in self.states]
            for engine in self.engines:
                engine.alone = True
        return Units(
            self.loss, self.n_outputs, targets=targets == RELATIVE, weights=weights == RELATIVE, centred=self.fit_intercept
        )

    def _restore_units(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over the running units, and fill the tables, whose steps they multiplied."""
        if self.units is None:
            self.engine.rebuild_all(self.states)
            return
        self.units.restore(arrays, self.t)
        for k, engine in enumerate(self.engines):
            states = self.states if len(self.engines) == 1 else [self.states[k]]
            engine.rebuild_all(states, self.units.history(k))

    # --- learning ----------------------------------------------------------------------------------------------------

    @_changes
    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Learner:
        """Learn the rows of X once, in order.

        X: (n, d) CSR, CSC or dense; y: (n,) or (n, K); sample_weight: (n,), multiplies the loss of its row. Wrong input
        raises before the first update and leaves the model as it was. Raises DivergenceError.
        """
        self._learn(*self._checked(X, y, sample_weight))
        return self

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Source, np.ndarray, np.ndarray]:
        self._refuse_if_diverged()
        source = rows.learnable(self._read(X, "X"), "X")
        y = checks.targets(y, source.n, self.n_outputs)
        checks.labels(y, getattr(self.loss, "labels", "real"))
        weights = checks.weights(sample_weight, source.n)
        self.engine.check_rows(weights)
        return source, y, weights

    @_changes
    def _learn(self, source: Source, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Learn checked rows; give the scores before each step, (2, K, n): of the last iterate, and of what predicted."""
        self._refuse_if_diverged()
        if source.size > self.size:
            self.refuse_growth(source)
            self._grow(source.size)
        found = [
            self._learn_block(rows, source.largest, y[which], weights[which], which.start) for which, rows in source.blocks()
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.empty((2, self.n_outputs, 0)), *found], axis=2)

    def _learn_block(self, block: rows.Rows, largest: float, y: np.ndarray, weights: np.ndarray, first: int) -> np.ndarray:
        self._moved()
        before = self.t
        block, largest, s = self._weighed(block, largest, weights)
        y, parts = self._stretches(y, weights)
        scores, done = np.empty((2, self.n_outputs, len(s))), 0
        for part in parts:
            self._multiply_steps(self.units)
            piece = block._replace(indptr=block.indptr[part.start : part.stop + 1])
            scores[0, :, part], scores[1, :, part], count = self._learn_rows(piece, largest, y[part], s[part])
            done += count
            if done < part.stop:
                self._diverge(f"at row {first + done} of this call ", before + done + 1)
        return scores if self.units is None else scores + self.units.zero[:, None]

    def _learn_rows(self, block: rows.Rows, largest: float, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Learn scaled rows; the scores before each step of the last iterate and of what predicted, (K, n) each, and the number
        of rows learned."""
        scores, before = np.empty((self.n_outputs, len(s))), self.t
        means = None if self._race is None else np.empty_like(scores)
        more = () if means is None else (means,)
        try:
            if self.n_outputs == 1:
                done = self.engine.learn_outputs(self.states, block, largest, y, s, scores, *more)
            else:
                done, _ = self._together().learn(block, largest, y, s, scores, *more)
        except NO_NUMBER:
            self._diverge("in this call ", before + 1)
        self._add_losses(scores, y, s, done)
        if means is not None:
            self._compare(scores, means, y[:done], s, before)
        return scores, scores if means is None else means, done

    def _compare(self, scores: np.ndarray, means: np.ndarray, y: np.ndarray, s: np.ndarray, t: int) -> None:
        """Let the last iterate and the average race over rows that were learned after the first t."""
        compare(self._loss, scores, means, y, s, t, self._race)

    def _stretches(self, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, Iterator[slice]]:
        """The targets as kernels take them, and the rows in stretches for which the step sizes have been set."""
        if self.units is None:
            return y, iter([slice(0, len(y))])
        y = self.units.moved(y, s)
        return y, self.units.parts(y, s, self.t)

    def _multiply_steps(self, units: Units | None) -> None:
        if units is not None:
            for engine, by in zip(self.engines, units.multipliers.tolist(), strict=False):
                engine.multiply_steps(by)

    def _weighed(self, block: rows.Rows, largest: float, weights: np.ndarray) -> tuple[rows.Rows, float, np.ndarray]:
        """The rows as kernels take them: scaled, with their largest value and what multiplies their losses."""
        if self.scaler is not None and self.scaler.kind != "standard":
            block = self.scaler.learn(block, weights)
            largest = np.abs(block.values).max(initial=0.0)
        return block, largest, self.factor * weights if self.factor != 1.0 else weights

    def _add_losses(self, scores: np.ndarray, y: np.ndarray, s: np.ndarray, done: int) -> None:
        def add(k: int) -> None:
            add_losses(self._loss, scores[k, :done], y[:done, k], s[:done], self._losses[k])

        in_threads(add, range(self.n_outputs), self._threads, scores.size)

    def _together(self) -> Team:
        """The outputs, learned in one pass; made by the first call."""
        if self._team is None:
            self._team = Team(self.outputs(), self._threads)
        return self._team

    def outputs(self) -> list[Output]:
        """What a pass learns, output by output."""
        return [Output(self.engines[k % len(self.engines)], state, k) for k, state in enumerate(self.states)]

    def _moved(self) -> None:
        """The state's arrays may be others than before."""
        if self._one is not None:
            self._one.stale = True

    def _diverge(self, where: str, t: int) -> NoReturn:
        """Raise for a state that step t left infinite, and whenever it is used again."""
        self._moved()
        try:
            eta = self.engine.eta(max(t, 1))
        except NO_NUMBER:
            eta = np.inf
        self._diverged = f"the state stopped being finite {where}(step {t}, eta = {eta:.3g}). Use a smaller step" + (
            "." if getattr(self.solver, "stable", False) else ", or a solver whose steps are implicit: 'fiol' or 'odrs'."
        )
        raise DivergenceError(self._diverged)

    def _refuse_if_diverged(self) -> None:
        if self._torn:
            raise RuntimeError(
                "this learner was being changed by another thread when the process was forked, so its copy here is incomplete: "
                "fork when no thread learns, or load the model from a file."
            )
        if self._diverged is not None:
            raise DivergenceError(f"this learner has diverged and learns no more: {self._diverged}")

    def learn_one(self, indices: Any, values: Any, y: Any) -> Any:
        """Learn one row given by its non-zeros; give the score before the step (a float, or (K,) for K outputs)."""
        self._lock.acquire()  # in half the time of a with statement
        try:
            one = self._one
            if one is None or (score := one.learn(indices, values, y)) is None:
                return self._learn_one(indices, values, y)
            return score
        finally:
            self._lock.release()

    def _learn_one(self, indices: Any, values: Any, y: Any) -> Any:
        """Any row, by the way that blocks of rows take."""
        self._refuse_if_diverged()
        row = _one_row(indices, values)
        if self._centred:
            row.resize((1, max(row.shape[1], self.size)))
            row = row.toarray()
        source = rows.learnable(self._read(row, "the row"), "the row")
        target = checks.targets(np.reshape(y, (1, -1)) if self.n_outputs > 1 else np.reshape(y, (1,)), 1, self.n_outputs)
        checks.labels(target, getattr(self.loss, "labels", "real"))
        scores = self._learn(source, target, np.ones(1))[0, :, 0]
        if self.n_outputs > 1:
            return scores
        plain = not self._centred and self._race is None and self.units is None
        if plain and (self._one is None or self._one.capacity < source.nnz):
            self._one = OneRow(self, max(256, 2 * source.nnz))
        return float(scores[0])

    @_changes
    def solve(self, X: Any, y: Any, iterations: int, sample_weight: Any = None) -> Learner:
        """Run a batch solver (``batch-drs``) for a number of iterations over all rows at once."""
        source, y, weights = self._checked(X, y, sample_weight)
        if source.n == 0:
            raise ValueError("X has 0 rows; a batch solver needs at least one.")
        if source.size > self.size:
            self.refuse_growth(source)
            self._grow(source.size)
        count = _count("iterations", iterations)
        for k, state in enumerate(self.states):
            try:
                self.engine.solve(state, source, y[:, k], self.factor * weights, count)
            except NO_NUMBER:
                self._diverge("", self.t + 1)
        return self

    @property
    def _centred(self) -> bool:
        """Whether rows are centred, which needs dense ones."""
        return self.scaler is not None and self.scaler.kind == "standard"

    def _read(self, X: Any, name: str) -> Source:
        if self._centred:
            X = self._standardised(X, name)
        return self._fit_width(rows.read(X, name))

    def _fit_width(self, source: Source) -> Source:
        if not self.growing and source.width != self.size and source.size > self.size:
            raise ValueError(f"X has {source.width} columns, the model has {self.size} features (n_features={self.size}).")
        return source

    def _standardised(self, X: Any, name: str) -> np.ndarray:
        assert self.scaler is not None
        if self.scaler.moments.shape[1] == 0 or not self.scaler.moments[1].any():
            raise ValueError(
                "scale='standard' needs the mean of all rows before the first: use fit, or scale='rms' for streams."
            )
        dense = rows.dense(X, name)
        if dense.shape[1] != self.scaler.moments.shape[1]:
            raise ValueError(f"X has {dense.shape[1]} columns, the model has {self.scaler.moments.shape[1]} features.")
        return (dense - self.scaler.moments[0]) / self.scaler.moments[1]

    def too_wide(self, size: int) -> str | None:
        """What is wrong with growing to ``size`` columns; None if nothing is."""
        if size <= max(self.size, self.asked, self._room):
            return None
        self._room = state_limit() // self.bytes_per_column
        return growth_error(size - 1, self.bytes_per_column)

    def refuse_growth(self, source: Source) -> None:
        """Raise for rows that would make the state grow beyond the limit, before anything of that size is made."""
        if self.too_wide(source.size) is None:
            return
        row, column = rows.row_beyond(source, max(self.size, self.asked, self._room))
        raise WideRowError(row, str(growth_error(column, self.bytes_per_column)))

    @property
    def bytes_per_column(self) -> int:
        """What the state holds for one column, all outputs."""
        state = self.states[0]
        own = sum(
            int(np.prod(array.shape[:-1])) * state.widths.get(name, 1) * array.itemsize for name, array in state.arrays.items()
        )
        return max(1, own * self.n_outputs + (16 if self.scaler is not None else 0))

    @_changes
    def _grow(self, size: int) -> None:
        if self._team is not None:
            self._team.grow(size)
        else:
            for state in self.states:
                state.grow(size)
        if self.scaler is not None:
            self.scaler.grow(size)
        self._moved()

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Rows learned."""
        return self.states[0].t

    @property
    def size(self) -> int:
        """Features known."""
        return self.states[0].size

    @property
    @_reads
    def progressive_loss(self) -> float:
        """Mean over the rows learned of s_i l(score before the step, y_i), summed over outputs; nan before the first row."""
        return float(self._losses.sum()) / self.t if self.t else float("nan")

    @_reads
    def weights(self, average: bool = False) -> np.ndarray:
        """The weights as a fresh array, (d,) or (d, K): after the last row, or the average (last where there is none)."""
        columns = np.arange(self.size, dtype=np.uint32)
        found = [self._original(self._columns(state, columns, average), columns) for state in self.states]
        return found[0] if self.n_outputs == 1 else np.stack(found, axis=1)

    @_reads
    def intercept(self, average: bool = False) -> Any:
        """The intercept, a float or (K,); 0 without one."""
        found = [self._bias(k, average) for k in range(self.n_outputs)]
        return found[0] if self.n_outputs == 1 else np.array(found)

    def predict(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b, (n,) or (n, K), of the average where one is set; columns never seen have weight 0."""
        self._refuse_if_diverged()
        source = rows.read(X)
        if not self.growing and source.size > self.size:
            raise ValueError(f"X has {source.width} columns, the model has {self.size} features.")
        many = source.nnz > self.size  # entries: each column is settled once, not once for each entry
        if self.n_outputs > 1 or not many:
            out = self._scores(source, many)
            return out[:, 0] if self.n_outputs == 1 else out
        return _scored(source, *self._settled(0))  # while others may use the learner

    @_reads
    def _scores(self, source: Source, many: bool) -> np.ndarray:
        """The scores of every output, all of one moment."""
        out = np.empty((source.n, self.n_outputs))
        for k in range(self.n_outputs):
            out[:, k] = _scored(source, *self._settled(k)) if many else self._scores_of_few(source, k)
        return out

    @_reads
    def _settled(self, k: int) -> tuple[float, np.ndarray]:
        """The intercept and all weights of output k's predictor."""
        everything = np.arange(self.size, dtype=np.uint32)
        return self._bias(k, True), self._original(self._columns(self.states[k], everything, True), everything)

    def _scores_of_few(self, source: Source, k: int) -> np.ndarray:
        """The scores of few entries by output k, whose columns alone are settled."""
        state, out, bias = self.states[k], np.empty(source.n), self._bias(k, True)
        for which, block in source.blocks():
            known = block.indices < self.size
            columns = np.where(known, block.indices, 0).astype(np.uint32)
            picked = self._original(self._columns(state, columns, True), columns) if self.size else np.zeros(len(columns))
            out[which] = _dotted(block, picked, known, bias)
        return out

    @_reads
    def objective(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F at the predictor: mean_i s_i l_i + r(w), over outputs summed; the penalty acts on scaled weights."""
        source = self._fit_width(rows.read(X))
        y = checks.targets(y, source.n, self.n_outputs)
        checks.labels(y, getattr(self.loss, "labels", "real"))
        weights = checks.weights(sample_weight, source.n) * self.factor
        if source.n == 0:
            raise ValueError("X has 0 rows; the objective is a mean over rows.")
        scores = self.predict(X).reshape(source.n, self.n_outputs)
        total = 0.0
        columns = np.arange(self.size, dtype=np.uint32)
        for k, state in enumerate(self.states):
            sums = np.zeros(2)
            add_losses(self._loss, np.ascontiguousarray(scores[:, k]), y[:, k], weights, sums)
            total += float(sums.sum()) / source.n + _penalty_value(self.penalty, self._columns(state, columns, True))
        return total

    @_reads
    def variables(self) -> dict[str, Any]:
        """Settled copies of the solver's quantities by the paper's letters (scaled units); a trailing axis K for K outputs."""
        self._refuse_if_diverged()
        every = [self._computed(self.engine.variables, state) for state in self.states]
        found = [{name: value + 0.0 for name, value in variables.items()} for variables in every]
        if self.average is not None:
            columns = np.arange(self.size, dtype=np.uint32)
            for variables, state in zip(found, self.states, strict=True):
                name = self.engine.mean_letter(self.average)
                variables.setdefault(name, self._computed(self.engine.mean, state, columns))
        if self.n_outputs == 1:
            return found[0]
        own = [name for name in found[0] if name not in self.engine.shared]
        return found[0] | {name: np.stack([variables[name] for variables in found], axis=-1) for name in own}

    def _columns(self, state: State, columns: np.ndarray, average: bool) -> np.ndarray:
        use = self.engine.mean if average and self.averages else self.engine.weights
        return self._finite(self._computed(use, state, columns))

    @property
    def racing(self) -> bool:
        """Whether rows are scored by the average too, for an adaptive one to be compared."""
        return self._race is not None

    @property
    def predicted_loss(self) -> float:
        """The sum over the rows learned of s_i l(score of what predicted before the step, y_i), where there is a race."""
        assert self._race is not None
        return float(self._race[2:].sum())

    @property
    def averages(self) -> bool:
        """Whether an average predicts: there is one, and of an adaptive one the last iterate is not ahead."""
        if self._race is not None and self._race[0] < self._race[1]:
            return False
        return self.average is not None or self.engine.own_average

    def _bias(self, k: int, average: bool) -> float:
        state = self.states[k]
        bias = float(self._computed(self.engine.mean_bias if average and self.averages else self.engine.bias, state))
        if not isfinite(bias):
            self._diverge("", self.t)
        if self.units is not None:
            bias += float(self.units.zero[k])
        if self.scaler is not None and self.scaler.kind == "standard":
            bias += self.scaler.centre(self._columns(state, np.arange(self.size, dtype=np.uint32), average))
        return bias

    def _original(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return weights if self.scaler is None else self._finite(self.scaler.original(weights, columns))

    def _computed(self, read: Callable[..., Any], *args: Any) -> Any:
        """What ``read`` gives; a division by 0 there is divergence."""
        try:
            return read(*args)
        except NO_NUMBER:
            self._diverge("", self.t)

    def _finite(self, weights: np.ndarray) -> np.ndarray:
        self._refuse_if_diverged()
        if not np.all(np.isfinite(weights)):
            self._diverge("", self.t)
        return weights

    # --- files -------------------------------------------------------------------------------------------------------

    @_reads
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file from which ``load`` goes on exactly as this learner would."""
        header, arrays = self.freeze()
        model_file.write(path, {"kind": "learner", **header}, arrays)

    @_reads
    def freeze(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Settings and state as a JSON-able header and the arrays themselves, which a call that learns changes."""
        self.weights()
        if self.average is not None:
            columns = np.arange(self.size, dtype=np.uint32)
            for state in self.states:
                self._finite(self._computed(self.engine.mean, state, columns))
                self._finite(np.array(self._computed(self.engine.mean_bias, state)))
        header = {
            "spec": {role: stored_parts.written(spec) for role, spec in self.spec.items()},
            "scale": self.scaler.kind if self.scaler is not None else "none",
            "fit_intercept": self.fit_intercept,
            "n_outputs": self.n_outputs,
            "size": self.size,
            "growing": self.growing,
            "total": self.total,
        }
        arrays: dict[str, np.ndarray] = {"losses": self._losses}
        if self.scaler is not None:
            arrays["scales"] = self.scaler.moments
        if self._race is not None:
            arrays["race"] = self._race
        if self.units is not None:
            header |= {"targets": RELATIVE if self.units.targets else RAW, "weights": RELATIVE if self.units.weights else RAW}
            arrays |= self.units.arrays()
        for k, state in enumerate(self.states):
            arrays |= {f"{k}.now": state.now}
            arrays |= {f"{k}.array.{name}": array for name, array in state.vectors().items()}
            arrays |= {f"{k}.kept.{name}": array for name, array in state.kept.items()}
        return header, arrays

    @_reads
    def __reduce__(self) -> tuple[Any, ...]:
        header, arrays = self.freeze()
        arrays = {name: array.copy() for name, array in arrays.items()}
        return _thawed, (header, arrays, {role: spec for role, spec in self.spec.items() if not isinstance(spec, str)})

    @classmethod
    def thaw(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], **parts: Any) -> Learner:
        """The learner that ``freeze`` described; parts from outside the package are passed by role."""
        _plausible(header, arrays)
        spec = {role: stored_parts.known(role, header["spec"][role], parts) for role in stored_parts.ROLES}
        learner = cls(
            **spec,
            scale=header["scale"],
            fit_intercept=header["fit_intercept"],
            n_features=None if header["growing"] else header["size"],
            n_outputs=header["n_outputs"],
            targets=header.get("targets", RAW),
            weights=header.get("weights", RAW),
            total=header["total"],
        )
        learner._grow(header["size"])
        _fill(learner._losses, arrays, "losses")
        kept = _by_output(arrays, learner.n_outputs)
        for k, state in enumerate(learner.states):
            _fill(state.now, arrays, f"{k}.now")
            for name, vector in state.vectors().items():
                _fill(vector, arrays, f"{k}.array.{name}")
            _keep(kept[k], state, learner.engine)
            learner.engine.check(state)
        learner.engine.check_together(learner.states)
        if learner.scaler is not None:
            _fill(learner.scaler.moments, arrays, "scales")
            learner.scaler.check(learner.t)
        if learner._race is not None:
            _fill(learner._race, arrays, "race")
            trust.must(np.all(np.abs(learner._race[:2]) <= MOST), "losses of a race that no rows have")
        learner._restore_units(arrays)
        return learner


def _thawed(header: dict[str, Any], arrays: dict[str, np.ndarray], parts: dict[str, Any]) -> Learner:
    return Learner.thaw(header, arrays, **parts)


_LEARNERS: WeakSet[Learner] = WeakSet()


def _after_fork() -> None:
    """The child of a fork has one thread. It frees the locks that others held, and uses no learner that they were changing."""
    for learner in _LEARNERS:
        if learner._lock.acquire(blocking=False):
            learner._lock.release()
        else:
            learner._lock = threading.RLock()
            learner._torn, learner._reading = not learner._reading, False
            learner._moved()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_HEADER: dict[str, Any] = {
    "spec": lambda spec: isinstance(spec, dict) and set(spec) == set(stored_parts.ROLES),
    "scale": lambda scale: isinstance(scale, str),
    "fit_intercept": lambda given: type(given) is bool,
    "n_outputs": lambda outputs: trust.count(outputs, 1),
    "size": lambda size: trust.count(size, 0, rows.LARGEST_COLUMN + 1),
    "growing": lambda given: type(given) is bool,
    "total": lambda total: total is None or (trust.real(total, finite=True) and total % 1 == 0 and trust.count(int(total))),
}


def _plausible(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Refuse a header of other types, or one that asks for more memory than the file's own size."""
    for name, fits in _HEADER.items():
        if name not in header or not fits(header[name]):
            raise ModelFileError(f"the model file's header has no {name}, or one that cannot be.")
    held = sum(array.nbytes for array in arrays.values()) // 8
    outputs = header["n_outputs"]
    if outputs * SCALARS > held or header["size"] * outputs > held:
        shape = f"{header['size']} features and {header['n_outputs']} outputs"
        raise ModelFileError(f"the model file's header says {shape}, its arrays hold {held} numbers.")


def _by_output(arrays: dict[str, np.ndarray], outputs: int) -> list[dict[str, np.ndarray]]:
    """The arrays with lengths of their own, of each output by name."""
    found: list[dict[str, np.ndarray]] = [{} for _ in range(outputs)]
    places = {str(k): k for k in range(outputs)}
    for key, array in arrays.items():
        output, _, rest = key.partition(".")
        if output in places and rest.startswith("kept."):
            found[places[output]][rest.removeprefix("kept.")] = array
    return found


def _keep(found: dict[str, np.ndarray], state: State, engine: Engine) -> None:
    """Let the state keep the arrays that have lengths of their own, checked: kernels find their places without a check."""
    trust.must(set(state.kept) <= set(found), "a last row that is missing")
    state.kept = {name: array.copy() for name, array in found.items()}
    spans = engine.may_keep(state)
    for name, array in found.items():
        span = spans.get(name)
        if span is None or array.ndim != 1 or array.dtype != span.dtype or not span.least <= len(array) <= span.most:
            raise ModelFileError(f"the model file's array {name!r} is not known, or has another shape or type.")
    columns = state.kept.get("columns")
    trust.must(columns is None or np.all(columns < state.size), "a last row with a column beyond its features")


def _fill(target: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> None:
    if name not in arrays or arrays[name].shape != target.shape or arrays[name].dtype != np.float64:
        raise ModelFileError(f"the model file's array {name!r} is missing or has another shape than {target.shape}.")
    target[...] = arrays[name]


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def _start(start: Any, n_features: int | None, outputs: int) -> np.ndarray:
    if n_features is not None and _count("n_features", n_features) > rows.LARGEST_COLUMN + 1:
        raise ValueError(f"n_features must be at most {rows.LARGEST_COLUMN + 1}, got {n_features}.")
    if start is None:
        return np.zeros((n_features or 0, outputs))
    weights = np.asarray(start, dtype=np.float64)
    weights = weights.reshape(-1, 1) if weights.ndim == 1 and outputs == 1 else weights
    if weights.ndim != 2 or weights.shape[1] != outputs or (n_features is not None and len(weights) != n_features):
        wanted = f"({n_features or 'd'},)" if outputs == 1 else f"({n_features or 'd'}, {outputs})"
        raise ValueError(f"start must have shape {wanted}, got {np.shape(start)}.")
    if not np.all(np.isfinite(weights)):
        raise ValueError("start must be finite.")
    return weights


def _one_row(indices: Any, values: Any) -> Any:
    from scipy.sparse import csr_matrix

    columns, entries = np.asarray(indices), np.asarray(values)
    if columns.ndim != 1 or entries.ndim != 1 or len(columns) != len(entries):
        raise ValueError(f"indices and values must be 1-D and equally long, got shapes {columns.shape} and {entries.shape}.")
    if len(columns) and columns.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, got dtype {columns.dtype}.")
    if len(columns) and columns.min() < 0:
        raise ValueError(f"indices must not be negative, got {columns.min()}.")
    width = int(columns.max()) + 1 if len(columns) else 1
    if width > rows.LARGEST_COLUMN + 1:
        raise ValueError(f"a column index must be at most {rows.LARGEST_COLUMN}, got {width - 1}.")
    return csr_matrix((entries, columns.astype(np.int64), [0, len(columns)]), shape=(1, width))


def _scored(source: Source, bias: float, weights: np.ndarray) -> np.ndarray:
    """The score of each row; columns beyond the weights have weight 0."""
    out = np.empty(source.n)
    for which, block in source.blocks():
        known = block.indices < len(weights)
        picked = weights[np.where(known, block.indices, 0)] if len(weights) else np.zeros(len(known))
        out[which] = _dotted(block, picked, known, bias)
    return out


def _dotted(block: rows.Rows, picked: np.ndarray, known: np.ndarray, bias: float) -> np.ndarray:
    """<w, x> + b of each row, from its entries' weights."""
    picked[~known] = 0.0
    scores = np.full(block.count, bias)
    rows.dot_rows(block, picked, scores)
    return scores


def _penalty_value(penalty: Any, w: np.ndarray) -> float:
    try:
        return float(np.sum(penalty.value(w)))
    except (TypeError, ValueError):
        return float(sum(penalty.value(v) for v in w))
