r"""Mini-batches: one step of a solver for the mean loss of k rows in turn, by the solver's own kernel (MATH 21).

    g = (1/k) sum_i theta_i x_i,   theta_i = s_i l'(<w, x_i>, y_i),   w the predictor before the batch's step

A row moves an explicit solver by its slope times its columns alone. So the step of a batch is that of the one row g, the union
of the columns of k rows, with a loss of slope 1; the intercept's feature is then the mean of the slopes. Averages, clocks and
visits count batches. Rows (b-1)k+1 .. bk of all rows learned are batch b, however calls are cut: rows of a batch that is not
full wait in the state, with the scores they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import Average, Fading
from onlinear.compiled import adopt, bind_loss
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.losses import is_joint
from onlinear.rows import LARGEST_VALUE, Rows, dot_rows
from onlinear.solvers.core.batch_dual import ENOUGH, DualRoom, batch_thetas, is_straight, most_rounds
from onlinear.solvers.core.batch_loop import BatchRoom, entries_of, learn_whole, mean_slopes, room_for, sum_batch, unite
from onlinear.solvers.core.engine import Engine, Examples, Problem, Steps
from onlinear.solvers.core.state import ONE, State

MOST_ROWS = 256
ENDS, COLUMNS, VALUES, TARGETS, WEIGHTS, SCORES = (
    f"batch_{name}" for name in ("ends", "columns", "values", "targets", "weights", "scores")
)


class Unit(NamedTuple):
    """The loss of a row that is a gradient already: l(s) = s."""

    none: float = 0.0

    def value(self, s, y):
        return s

    def slope(self, s, y):
        return 1.0

    def theta(self, a, c, y):
        return 1.0


adopt(Unit)


class MiniBatch(NamedTuple):
    """A solver that takes one step for ``batch`` rows."""

    solver: Any
    batch: int

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the solver's vectors."""
        return self.solver.letters

    @property
    def stable(self) -> bool:
        """Whether no step can overshoot."""
        return getattr(self.solver, "stable", False)

    def engine(self, problem: Problem) -> Engine:
        """The engine that gathers rows; raises ValueError for a solver or loss without a form for several rows."""
        if is_joint(problem.loss):
            raise ValueError(f"{problem.name} has no form for softmax with batch=: its slopes are of several outputs.")
        why = getattr(self.solver, "no_batch", None)
        if why is not None or not hasattr(self.solver, "mean_form"):
            raise ValueError(
                f"{problem.name} has no form with batch=: {why or 'it has no step for the mean of several slopes'}."
            )
        own, form = self.solver.engine(problem), self.solver.mean_form()
        return MiniBatchEngine(self, own if form == self.solver else form.engine(problem), problem)


class Waiting:
    """The rows of a batch that is not full, with the scores that they had: copies, and room for more."""

    def __init__(self, rows: int) -> None:
        self.count = 0
        self.unsolved = False  # whether the step of the full batch was not found
        self._indptr = np.zeros(rows + 1, np.uint64)
        self._columns, self._values = np.empty(0, np.uint32), np.empty(0)
        self._targets, self._weights, self._scores = np.empty((3, rows))

    @property
    def rows(self) -> Rows:
        """The rows as kernels take them."""
        end = int(self._indptr[self.count])
        return Rows(self._indptr[: self.count + 1], self._columns[:end], self._values[:end])

    def numbers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Targets, weights and scores."""
        return self._targets[: self.count], self._weights[: self.count], self._scores[: self.count]

    def take(self, rows: Rows, y: np.ndarray, s: np.ndarray, scores: np.ndarray) -> None:
        """Copy rows behind those that wait."""
        first, entries = self.count, int(self._indptr[self.count])
        begin, end = int(rows.indptr[0]), int(rows.indptr[-1])
        here, there = slice(first, first + len(y)), slice(entries, entries + end - begin)
        if there.stop > len(self._values):
            self._columns = longer(self._columns, there.stop)
            self._values = longer(self._values, there.stop)
        self._columns[there], self._values[there] = rows.indices[begin:end], rows.values[begin:end]
        self._indptr[first + 1 : first + len(y) + 1] = rows.indptr[1:] - rows.indptr[0] + np.uint64(entries)
        self._targets[here], self._weights[here], self._scores[here] = y, s, scores
        self.count += len(y)

    def clear(self) -> None:
        """Let no row wait."""
        self.count = 0

    def give(self, state: State) -> None:
        """Let the state keep what waits."""
        rows = self.rows
        state.kept |= {ENDS: rows.indptr[1:], COLUMNS: rows.indices, VALUES: rows.values}
        state.kept |= dict(zip((TARGETS, WEIGHTS, SCORES), self.numbers(), strict=True))

    def restore(self, kept: Mapping[str, np.ndarray], size: int) -> None:
        """Wait with the rows of a file; raises ModelFileError for what cannot be rows."""
        ends, columns, values, *numbers = (kept[name] for name in (ENDS, COLUMNS, VALUES, TARGETS, WEIGHTS, SCORES))
        indptr = np.concatenate([np.zeros(1, np.uint64), ends])
        trust.must(np.all(indptr[1:] >= indptr[:-1]) and indptr[-1] == len(columns), "rows of a batch that do not end")
        owners = np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(indptr).astype(np.int64))
        entries = np.sort((owners << np.uint64(32)) + columns)
        differ = np.all(entries[1:] > entries[:-1])
        trust.must(differ and np.all(columns < size), "rows of a batch with a column twice, or beyond those of the model")
        trust.must(np.all(np.abs(values) <= LARGEST_VALUE), "a value of a row that none has")
        trust.must(np.all(numbers[1] >= 0.0), "a weight of a row below 0")
        self.clear()
        self.take(Rows(indptr, columns, values), *numbers)


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with room for ``length`` numbers at least, and twice what it had."""
    bigger = np.empty(max(length, 2 * len(array)), array.dtype)
    bigger[: len(array)] = array
    return bigger


class MiniBatchEngine(Engine):
    """Gathers rows and gives the solver's own engine one row for each batch. ``State.t`` counts batches."""

    def __init__(self, solver: MiniBatch, inner: Engine, problem: Problem) -> None:
        self._start = getattr(solver.solver, "loss_start", None)  # where an implicit step starts
        self.implicit = self._start is not None
        super().__init__(solver, problem)
        self.inner = inner
        self.inner.loss = bind_loss(Unit(), self.inner.implicit)
        self.own, self.solver = self.inner.own, self.inner.solver
        self.rows = solver.batch
        self.lazy, self.why = self.inner.lazy, self.inner.why
        self.stepped, self.metric = self.inner.stepped, self.inner.metric
        self.own_average = self.inner.own_average
        self.scores_means = problem.average is not None
        self._one_row = np.zeros(1), np.ones(1), np.empty(1)  # its target, weight and score

    def start(self, w: np.ndarray, b: float) -> State:
        state = self.inner.start(w, b)
        state.waiting, state.batch = Waiting(self.rows), self.rows
        state.waiting.give(state)
        return state

    # --- learning ----------------------------------------------------------------------------------------------------

    def learn(self, state: State, examples: Examples) -> int:
        waiting, first, n = state.waiting, 0, len(examples.s)
        while first < n:
            whole = self._at_once(state, n - first, examples.means is not None)
            part = slice(first, min(n, first + (whole or self.rows - waiting.count)))
            first += (self._learn_whole if whole else self._gather)(state, examples.cut(part))
            if first < part.stop:
                return first
        waiting.give(state)
        return n

    def _at_once(self, state: State, left: int, means: bool) -> int:
        """How many of the next rows are whole batches that compiled code takes at once."""
        last, mean = self.inner.readers(state)
        start = self._start(self.inner, state) if self._start else None
        if state.waiting.count or left < self.rows or last is None or (start and start.reader is None):
            return 0
        return self.rows if means and mean is None else left // self.rows * self.rows

    def _learn_whole(self, state: State, examples: Examples) -> int:
        """Learn whole batches; how many rows were learned."""
        if examples.means is not None and self.inner.readers(state)[1] is None:
            self._score(state, examples)
            examples = examples._replace(means=None)
        rows = examples.rows._replace(values=examples.rows.values.astype(np.float64, copy=False))
        examples = examples._replace(rows=rows, y=np.ascontiguousarray(examples.y))
        start = self._start(self.inner, state) if self._start else None
        done, state.waiting.unsolved = learn_whole(self.inner, self.loss, start, state, examples, self.rows)
        return done

    def _gather(self, state: State, examples: Examples) -> int:
        """Let rows wait until a batch is full, then take its step; how many rows were learned."""
        waiting = state.waiting
        self._score(state, examples)
        astray = np.flatnonzero(~np.isfinite(examples.scores))
        if len(astray):
            return int(astray[0])
        waiting.take(examples.rows, examples.y, examples.s, examples.scores)
        if waiting.count == self.rows and not self._step(state, examples.means is not None):
            return len(examples.s) - 1
        return len(examples.s)

    def _score(self, state: State, examples: Examples) -> None:
        """Fill in the scores of rows by the predictor, and of its average."""
        rows = examples.rows
        examples.scores[:] = self.inner.bias(state)
        dot_rows(rows, self.inner.weights(state, rows.indices), examples.scores)
        if examples.means is not None:
            examples.means[:] = self.inner.mean_bias(state)
            dot_rows(rows, self.inner.mean(state, rows.indices), examples.means)

    def _step(self, state: State, means: bool) -> bool:
        """Take the step of a full batch; whether it is finite."""
        waiting = state.waiting
        y, s, scores = waiting.numbers()
        rows, waiting.count = waiting.rows, 0
        if self._at_once(state, self.rows, means):
            examples = Examples(rows, 0.0, y, s, scores, np.empty(self.rows) if means else None)
            return self._learn_whole(state, examples) == self.rows
        entries = entries_of(rows, self.rows)
        room, row, slopes = BatchRoom.of(entries, 0), room_for(entries), np.empty(self.rows)
        count = int(unite(rows, 0, self.rows, room))
        if self._start is None:
            mean_slopes(self.loss, 0, scores, y, s, slopes)
        elif not self._find_thetas(state, rows, room, count, y, s, slopes):
            waiting.unsolved = True
            return False
        one, largest = sum_batch(rows, 0, room, count, slopes, row)
        if not self.problem.fit_intercept:
            one = 0.0
        if not isfinite(largest + one):
            return False
        state.now[ONE] = one
        done = self.inner.learn(state, Examples(row, largest, *self._one_row))
        state.now[ONE] = float(self.problem.fit_intercept)
        return done == 1 and isfinite(self.inner.bias(state))

    def _find_thetas(
        self, state: State, rows: Rows, room: BatchRoom, count: int, y: np.ndarray, s: np.ndarray, slopes: np.ndarray
    ) -> bool:
        """Fill in what each row of a batch adds to the mean of the thetas; False where they are not found."""
        start = self._start(self.inner, state)  # type: ignore[misc]
        dual, free = DualRoom.of(self.rows, len(room.places)), float(self.problem.fit_intercept)
        dual.v[:count], c = start.at(room.columns[:count])
        step = (self.inner.bias(state), free, c, start.penalty, is_straight(start.penalty), most_rounds(self.rows))
        return bool(batch_thetas(rows, 0, room.places, dual, count, self.loss, y, s, *step, slopes))

    def why_stopped(self, states: Sequence[State]) -> str:
        if any(state.waiting.unsolved for state in states):
            return f"no implicit step for the mean of the batch was found to a duality gap of {ENOUGH:g}"
        return super().why_stopped(states)

    def call(self, state: State, examples: Examples) -> Any:
        raise TypeError("Rows of a batch are gathered by learn.")

    def check_rows(self, weights: np.ndarray) -> None:
        self.inner.check_rows(weights)

    def multiply_steps(self, by: float) -> None:
        self.inner.multiply_steps(by)

    # --- reading -----------------------------------------------------------------------------------------------------

    def eta(self, t: int) -> float:
        return self.inner.eta(-(-t // self.rows))

    def mean_letter(self, average: Average | Fading) -> str:
        return self.inner.mean_letter(average)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.inner.weights(state, columns)

    def bias(self, state: State) -> float:
        return self.inner.bias(state)

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.inner.sums(state, columns)

    def mean(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.inner.mean(state, columns)

    def mean_bias(self, state: State) -> float:
        return self.inner.mean_bias(state)

    def variables(self, state: State) -> dict[str, Any]:
        return self.inner.variables(state)

    # --- states from files -------------------------------------------------------------------------------------------

    def visits(self) -> Callable[[int], bool] | None:
        return self.inner.visits()

    def may_keep(self, state: State) -> dict[str, Span]:
        numbers = dict.fromkeys((TARGETS, WEIGHTS, SCORES), Span(np.float64, 0, self.rows - 1))
        most = (self.rows - 1) * state.size
        entries = {COLUMNS: Span(np.uint32, 0, most), VALUES: Span(np.float64, 0, most)}
        return {**self.inner.may_keep(state), **entries, **numbers, ENDS: Span(np.uint64, 0, self.rows - 1)}

    def restore_kept(self, state: State, arrays: Mapping[str, np.ndarray]) -> None:
        super().restore_kept(state, arrays)
        counts = {len(state.kept[name]) for name in (ENDS, TARGETS, WEIGHTS, SCORES)}
        entries = {len(state.kept[name]) for name in (COLUMNS, VALUES)}
        trust.must(len(counts) == len(entries) == 1, "rows of a batch with parts of different lengths")
        for name in (VALUES, TARGETS, WEIGHTS, SCORES):
            trust.finite(name, state.kept[name])
        state.waiting.restore(state.kept, state.size)

    def finite(self, state: State) -> Iterator[tuple[str, np.ndarray]]:
        return self.inner.finite(state)

    def check(self, state: State) -> None:
        self.inner.check(state)

    def rebuild(self, state: State, steps: Sequence[Steps] = ()) -> None:
        self.inner.rebuild(state, [Steps(step.after // self.rows, step.by) for step in steps])
