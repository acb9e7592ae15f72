"""States of several numbers for each feature that follow from its own rows and from the step number: no clock, no visits.

A solver with such a state names its numbers among its ``letters``, after w: they stand side by side in one array, so that a
row finds them in one place. Its ``weight_of(v, c, penalty)`` is the weight before step c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.compiled import LANES, four, gather, kernel, load, put, room
from onlinear.files import trust
from onlinear.rows import Rows
from onlinear.solvers.core.engine import BIAS, CLOCK, THETA, Engine, State, T, everything, scalars
from onlinear.solvers.core.loop import learn_rows
from onlinear.solvers.core.pack import Abreast, learn_pack, work_of_pack


@kernel
def read(solver, penalty, V, columns, now, out):
    """Write the weights of columns; ``out`` has room for lanes behind its end."""
    clock = penalty.start()
    c = solver.begin_step(int(now[T]) + 1, clock, now[BIAS], penalty)
    weights, end = room(out, 0), np.uint64(columns.shape[0])
    for k in range(np.uint64(0), end, LANES):
        at, _ = four(columns, out, k, end)
        put(weights, k, solver.weight_of(gather(V, at), c, penalty) + 0.0)


class PlainEngine(Engine):
    """Runs the loop of loop.py over the numbers of a solver's letters."""

    implicit = False

    def start(self, w: np.ndarray, b: float) -> State:
        letters = self.solver.letters
        U = np.empty((len(letters), len(w) + 1))
        U[:, 0], U[:, 1:] = b, w
        self.solver.begin(U, self.penalty)
        now = scalars(self.problem, b)
        clock = self.penalty.start()
        now[CLOCK : CLOCK + len(clock)] = clock
        name = "".join(letters[1:])
        return State(
            now, {name: U[1:, 1:].T.ravel()}, size=len(w), widths={name: len(letters) - 1}, halves={name: tuple(letters[1:])}
        )

    def call(self, state: State, rows: Rows, largest: float, y: np.ndarray, s: np.ndarray, scores: np.ndarray) -> Any:
        parts = (self.loss, self.penalty, self.solver, None)
        kind = (None, True, True, None, True)
        arrays = (self.numbers(state), None, None, None, None, None, state.now)
        return learn_rows, (rows, largest, y, s, *parts, *kind, *arrays, scores, None)

    @property
    def packs(self) -> bool:
        return self.average is None and getattr(self.penalty, "takes_lanes", False)

    def pack(self, side: Abreast) -> Any:
        parts = (self.loss, self.penalty, side.strengths, self.solver)
        kind = (None, True, True, None, True, None)
        arrays = (tuple(side.vectors.values()), work_of_pack(), side.now)
        return learn_pack, (*side.job, *parts, *kind, *arrays, side.scores)

    def numbers(self, state: State) -> tuple[np.ndarray, ...]:
        """The vectors of the state, side by side."""
        return tuple(state.vectors().values())

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns) + int(LANES) - 1)
        numbers = tuple(vector[columns] for vector in self.numbers(state))  # those of a pack's outputs stand far apart
        read(self.solver, self.penalty, numbers, np.arange(len(columns), dtype=np.uint32), state.now, out)
        return out[: len(columns)]

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self.solver).__name__} has no lazy average.")

    def check(self, state: State) -> None:
        super().check(state)
        first = self.penalty.start()
        trust.must(tuple(load(first, state.now, CLOCK)) == tuple(first), "a clock that moved, of a method without one")

    def variables(self, state: State) -> dict[str, Any]:
        found = {name: vector.copy() for name, vector in state.vectors().items()}
        return {"w": self.weights(state, everything(state)), **found, "theta": float(state.now[THETA])}
