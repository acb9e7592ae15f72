"""States of several numbers for each feature that follow from its own rows and from the step number: no clock, no visits.

A solver with such a state names its numbers among its ``letters``, after w: they stand side by side in one array, so that a
row finds them in one place. Its ``weight_of(v, c, penalty)`` is the weight before step c, and ``idle_sum(v, stamp, t, average,
penalty)`` the sum of the weights before the steps stamp + 1 .. t, as an average weighs them, of a feature that rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onlinear.averages import Average, Fading
from onlinear.compiled import LANES, at_column, fetch, first_of, four, function, gather, kernel, load, put, room
from onlinear.files import trust
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet, FusedLasso, is_bare, told
from onlinear.rows import AHEAD, Rows, entries_to_fetch
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.joint import Joined, learn_joined, numbers_of_row
from onlinear.solvers.core.loop import learn_rows
from onlinear.solvers.core.pack import Abreast, learn_pack, work_of_pack
from onlinear.solvers.core.resting import Nothing
from onlinear.solvers.core.state import BIAS, CLOCK, OWN, THETA, State, T, everything, scalars

SUMS = ("B", "stamp")  # of an average: the sum of a feature's weights, and the step up to which it goes
COPIED = 1 << 18  # columns whose numbers are copied at a time, where they stand far apart
TOGETHER = int(LANES)  # columns that are asked for together


@function
def ask_ahead(vectors, columns, k, known):
    """Ask for what vectors side by side hold at four columns AHEAD of place k, up to ``known``."""
    if k < known:
        fetch(first_of(vectors), columns, k + AHEAD)


@kernel
def read(solver, penalty, V, columns, now, out):
    """Write the weights of columns; ``out`` has room for lanes behind its end."""
    clock = penalty.start()
    c = solver.begin_step(int(now[T]) + 1, clock, now[BIAS], penalty)
    weights, end, known = room(out, 0), np.uint64(columns.shape[0]), entries_to_fetch(first_of(V), columns)
    for k in range(np.uint64(0), end, LANES):
        ask_ahead(V, columns, k, known)
        at, _ = four(columns, out, k, end)
        put(weights, k, solver.weight_of(gather(V, at), c, penalty) + 0.0)


@kernel
def read_sums(solver, penalty, average, V, S, columns, now, out):
    sums, stamps = S
    known = entries_to_fetch(first_of(V), columns)
    for e in range(columns.shape[0]):
        if e % TOGETHER == 0:
            ask_ahead(V, columns, np.uint64(e), known)
            ask_ahead(S, columns, np.uint64(e), known)
        j = np.uint64(columns[e])
        so_far = average.faded(sums[j], now[T] - stamps[j])
        out[e] = so_far + solver.idle_sum(at_column(V, j), stamps[j], int(now[T]), average, penalty)


def side_by_side(vectors: tuple[np.ndarray, ...], columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Copies of the vectors at columns, side by side as kernels take them: those of a pack's outputs stand far apart."""
    copies = np.stack([vector[columns] for vector in vectors], axis=1).ravel()
    return tuple(copies[place :: len(vectors)] for place in range(len(vectors)))


def pieces(columns: np.ndarray, *states: tuple[np.ndarray, ...]) -> Iterator[tuple[slice, tuple[Any, ...]]]:
    """The columns piece by piece; and for a kernel the states, vectors side by side, with the places of the columns in them."""
    if all(vectors[0].strides[0] == sum(vector.itemsize for vector in vectors) for vectors in states):
        yield slice(0, len(columns)), (*states, np.asarray(columns, np.uint32))
        return
    for first in range(0, len(columns), COPIED):
        some = columns[first : first + COPIED]
        copies = (side_by_side(vectors, some) for vectors in states)
        yield slice(first, first + len(some)), (*copies, np.arange(len(some), dtype=np.uint32))


def terms(self, v, x, c, penalty):
    return (self.weight_of(v, c, penalty) * x,)


def scores(self, sums, one, s, c, penalty):
    return (sums[0] + c.b * one,)


def pull(self, row, y, s, c, loss):
    return weighted(s, loss.slope(row[0], y))


# Of all solvers whose step is explicit in the loss.
EXPLICIT: dict[str, Callable[..., Any]] = {"terms": terms, "scores": scores, "pull": pull}


def check_penalty(problem: Problem, others: str, takes: str = "none, l1, l2 and elastic-net") -> None:
    """Raise for a penalty for which the weights have no closed form; ``others``: the solvers to use instead."""
    if type(problem.penalty) is not ElasticNet:
        if type(problem.penalty) is FusedLasso:
            others = "'comid', 'odrs' or 'rda'" + (" without forget=" if "forget=" in others else "")
        raise ValueError(f"{problem.name} takes the penalties {takes}, not {told(problem.penalty)}; use {others}.")


def check_squares(state: State) -> None:
    """Raise ModelFileError for sums of squares that no run has."""
    trust.must(state.now[OWN] >= 0.0 and bool(np.all(state.vectors()["n"] >= 0.0)), "sums of squares below 0")


def check_last(state: State) -> None:
    """Raise ModelFileError for features whose last row no run has."""
    last = state.vectors()["last"]
    trust.must(bool(np.all((last >= 0.0) & (last <= state.t) & (last == np.floor(last)))), "rows after the last one")


class PlainEngine(Engine):
    """Runs the loop of loop.py over the numbers of a solver's letters."""

    implicit = False
    scores_means = True
    reads_anywhere = True
    measures_lanes = False  # whether ``measured`` takes lanes, so that its outputs can be trained side by side
    shares_metric: bool | None = None  # whether outputs that one loss joins have one metric
    own_numbers: tuple[float, ...]  # zeros, as many as the solver has numbers of its own

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of a feature's numbers."""
        return self.solver.letters[1:]

    def start(self, w: np.ndarray, b: float) -> State:
        U = np.empty((len(self.solver.letters), len(w) + 1))
        U[:, 0], U[:, 1:] = b, w
        self.solver.begin(U, self.penalty)
        now = scalars(self.problem.fit_intercept, b)
        clock = self.penalty.start()
        now[CLOCK : CLOCK + len(clock)] = clock
        name, width = "".join(self.letters), len(self.letters)
        arrays, widths, halves = {name: self.first_numbers(U)[:, 1:].T.ravel()}, {name: width}, {name: self.letters}
        if self.average is not None:
            pairs = "".join(SUMS)
            arrays, widths, halves = arrays | {pairs: np.zeros(2 * len(w))}, widths | {pairs: 2}, halves | {pairs: SUMS}
        return State(now, arrays, size=len(w), widths=widths, halves=halves)

    def first_numbers(self, U: np.ndarray) -> np.ndarray:
        """The letters' vectors before the first row, from those of the dense step."""
        return U[1 : 1 + len(self.letters)]

    def call(self, state: State, examples: Examples) -> Any:
        parts = (self.loss, self.penalty, self.solver, self.average)
        kind = (None, True, True, None, self.own_numbers, self._drifts, None)
        sums, aims = self.kept_sums(state), self.aims(examples.rows)
        arrays = (self.numbers(state), None, None, sums, None, None, aims, *3 * (None,), state.now)
        return learn_rows, (*examples.given_with_ends, *parts, *kind, *arrays, examples.scores, examples.means)

    @property
    def _drifts(self) -> bool | None:
        """True where there are sums of weights that the penalty moves while they rest."""
        return None if self.average is None or is_bare(self.penalty) else True

    @property
    def packs(self) -> bool:
        steady = self.average is None or (is_bare(self.penalty) and type(self.average) is Average)
        return self.measures_lanes and steady and self.penalty.takes_lanes

    def pack(self, side: Abreast) -> Any:
        parts = (self.loss, self.penalty, side.strengths, self.solver)
        aims = self.pack_aims(side.rows)
        kind = (None, True, True, None, self.own_numbers, None, None if aims is None else True)
        V, S = (tuple(side.vectors[name] for name in names) for names in (self.letters, SUMS if self.average else ()))
        arrays = (self.average, V, None, None, S or None, None, None, work_of_pack() if aims is None else aims, side.now)
        return learn_pack, (*side.given, *parts, *kind, *arrays, side.scores, side.means)

    @property
    def joins(self) -> bool:  # type: ignore[override]
        sums = type(self.average) in (type(None), Average, Fading)
        return self.measures_lanes and sums and self.penalty.takes_lanes

    def join(self, states: list[State], side: Joined) -> Any:
        numbers, lead = numbers_of_row(len(states)), states[0]
        work, searches = self.joint_work(side.rows, len(states))
        rests = True if type(self.average) is Average and self._drifts is None else None
        drifts = True if self.average is not None and rests is None else None
        own = (0.0,) * len(self.letters), self.own_numbers
        kind = (None, True, True, None, *own, searches, self.shares_metric, rests, drifts)
        V, S = side.memory["".join(self.letters)], side.memory.get("".join(SUMS))
        flat = numbers.reshape(-1, side.now.shape[1])
        arrays = (V, np.uint64(len(V) // max(1, lead.size)), None, S, None, work, numbers, flat, side.now, lead.now)
        parts = (self.penalty, self.solver, self.average)
        return learn_joined, (*side.given, *parts, *kind, *arrays, side.scores, side.means)

    def joint_work(self, rows: Rows, outputs: int) -> tuple[np.ndarray | None, bool | None]:
        """Room for what the entries of a row of joined outputs need; True where the solver searches for theta."""
        return None, None

    def aims(self, rows: Rows) -> np.ndarray | None:
        """Room for the numbers of a row, where the solver searches for theta."""
        return None

    def pack_aims(self, rows: Rows) -> np.ndarray | None:
        """The same for a pack."""
        return None

    def numbers(self, state: State) -> tuple[np.ndarray, ...]:
        """The vectors of the state, side by side."""
        vectors = state.vectors()
        return tuple(vectors[letter] for letter in self.letters)

    def kept_sums(self, state: State) -> tuple[np.ndarray, ...] | None:
        """The sums of an average and their steps, side by side."""
        vectors = state.vectors()
        return None if self.average is None else tuple(vectors[name] for name in SUMS)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        behind = int(LANES) - 1
        out = np.empty(len(columns) + behind)
        for which, (V, places) in pieces(columns, self.numbers(state)):
            read(self.solver, self.penalty, V, places, state.now, out[which.start : which.stop + behind])
        return out[: len(columns)]

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out, numbers, kept = np.empty(len(columns)), self.numbers(state), self.kept_sums(state)
        assert kept is not None
        for which, (V, S, places) in pieces(columns, numbers, kept):
            read_sums(*self._parts_of_sums, V, S, places, state.now, out[which])
        return out

    def readers(self, state: State) -> tuple[Any, Any]:
        parts, numbers = (self.solver, self.penalty), self.numbers(state)
        if self.average is None:
            return (read, (*parts, numbers)), None
        return (read, (*parts, numbers)), (read_sums, (*self._parts_of_sums, numbers, self.kept_sums(state)))

    @property
    def _parts_of_sums(self) -> tuple[Any, ...]:
        return self.solver, Nothing() if is_bare(self.penalty) else self.penalty, self.average

    def check(self, state: State) -> None:
        super().check(state)
        first = self.penalty.start()
        trust.must(tuple(load(first, state.now, CLOCK)) == tuple(first), "a clock that moved, of a method without one")
        if self.average is not None:
            stamps = state.vectors()["stamp"]
            inside = np.all((stamps >= 0.0) & (stamps <= state.now[T]) & (stamps == np.floor(stamps)))
            trust.must(inside, "steps of sums that are not between the first row and the last")

    def variables(self, state: State) -> dict[str, Any]:
        found = {letter: vector.copy() for letter, vector in zip(self.letters, self.numbers(state), strict=True)}
        return {"w": self.weights(state, everything(state)), **found, "theta": float(state.now[THETA])}
