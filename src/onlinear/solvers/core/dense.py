"""The dense recursion of every solver, run as it is written: O(d) per row, for what has no exact lazy form.

Vectors are extended by the intercept: place 0 belongs to the constant feature x_0 = 1 (0 without an intercept), which no
penalty touches. A solver's ``step(U, x, y, s, t, loss, penalty)`` changes the rows of U, one per letter; its
``predictor(U, t, penalty)`` is the vector that step t predicts with. A solver with ``means(M, t)`` gets its other averages from
M, the sums of U before (M[0]) and after (M[1]) the t steps.

Loop: its own, since a step changes whole vectors: that of loop.py gives a solver one entry's numbers at a time, never an array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, sqrt
from typing import Any

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.state import ONE, VISIT, State, T, scalars


@function
def dot(w, x):
    """<w, x>, summed in increasing column order."""
    total = 0.0
    for j in range(w.shape[0]):
        if x[j] != 0.0:
            total += w[j] * x[j]
    return total


@function
def prox_but_first(penalty, v, eta):
    """The prox of all coordinates but the intercept."""
    out, rest = v.copy(), penalty.prox_all(v[1:], eta)
    for j in range(rest.shape[0]):
        out[j + 1] = rest[j]
    return out


@function
def intercept_step(eta, t, tied):
    """The intercept's step: min(eta_t, 1/sqrt t) where eta_t is tied to l2, since F is not strongly convex in b (MATH 17)."""
    return min(eta, 1.0 / sqrt(t)) if tied else eta


@function
def all_finite(V, indices, begin, end):
    """Whether the entries of V at a row's columns are finite."""
    for k in range(begin, end):
        if not isfinite(V[indices[k]]):
            return False
    return True


@function
def add(total, w, share):
    """total + share w in place; entry by entry, which compiles in a quarter of the time of an expression of arrays."""
    for j in range(w.shape[0]):
        total[j] += share * w[j]


@function
def add_rows(total, U):
    """total + U in place, row by row."""
    for row in range(U.shape[0]):
        add(total[row], U[row], 1.0)


@function
def visit_sums(A, S):
    """The sums of the newest rows go into those of all: A + S, and S = 0."""
    add(A, S, 1.0)
    for j in range(S.shape[0]):
        S[j] = 0.0


@function
def finite(U):
    """Whether all entries of U are finite."""
    for row in range(U.shape[0]):
        for j in range(U.shape[1]):
            if not isfinite(U[row, j]):
                return False
    return True


@kernel
def learn_rows_dense(rows, largest, y, s, loss, penalty, solver, average, U, S, A, M, now, scores):
    indptr, indices, values = rows
    x = np.zeros(U.shape[1])
    x[0] = now[ONE]
    done = y.shape[0]
    for i in range(y.shape[0]):
        t = int(now[T]) + 1
        for k in range(indptr[i], indptr[i + 1]):
            x[indices[k] + np.uint32(1)] = values[k]
        w = solver.predictor(U, t, penalty)
        scores[i] = dot(w, x)
        if not isfinite(scores[i]):
            done = i
            break
        if S is not None:
            if due(t - 1) and now[VISIT] != t - 1:
                visit_sums(A, S)
                now[VISIT] = t - 1
            add(S, w, average.om(t))
        if M is not None:
            add_rows(M[0], U)
        solver.step(U, x, y[i], s[i], t, loss, penalty)
        if M is not None:
            add_rows(M[1], U)
        now[T] = t
        for k in range(indptr[i], indptr[i + 1]):
            x[indices[k] + np.uint32(1)] = 0.0
        if not finite(U):
            done = i
            break
    return done


@kernel
def read_predictor(solver, U, t, penalty):
    return solver.predictor(U, t, penalty)


class Extended(Engine):
    """An engine that moves all numbers in every step, the intercept at place 0, and sums them for an average."""

    lazy = False

    def visits(self) -> Callable[[int], bool] | None:
        return due if self.average is not None else None

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        return (state.arrays["A"] + state.arrays["S"])[1:][columns]

    def sum_bias(self, state: State) -> float:
        return float(state.arrays["A"][0] + state.arrays["S"][0])


class Dense(Extended):
    """Any solver by its dense step; ``why`` says what stands in the way of a lazy form."""

    stepped = True

    def __init__(self, solver: Any, problem: Problem, why: str) -> None:
        super().__init__(solver, problem)
        self.why = why

    def start(self, w: np.ndarray, b: float) -> State:
        U = np.zeros((len(self.solver.letters), len(w) + 1))
        U[:, 0], U[:, 1:] = b, w
        self.solver.begin(U, self.penalty)
        arrays: dict[str, np.ndarray] = {"U": U}
        if self.average is not None:
            arrays |= {"S": np.zeros(len(w) + 1), "A": np.zeros(len(w) + 1)}
            if hasattr(self.solver, "means"):
                arrays["M"] = np.zeros((2, *U.shape))
        return State(scalars(self.problem.fit_intercept, b), arrays, size=len(w), extra=1)

    def call(self, state: State, examples: Examples) -> Any:
        arrays = (state.arrays.get(name) for name in "USAM")
        parts = self.loss, self.penalty, self.solver, self.average
        return learn_rows_dense, (*examples.given, *parts, *arrays, state.now, examples.scores)

    def predictor(self, state: State) -> np.ndarray:
        """The extended predictor after the last row."""
        return read_predictor(self.solver, state.arrays["U"], state.t + 1, self.penalty)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.predictor(state)[1:][columns] + 0.0

    def bias(self, state: State) -> float:
        return float(self.predictor(state)[0])

    def variables(self, state: State) -> dict[str, Any]:
        found = {letter: U[1:].copy() for letter, U in zip(self.solver.letters, state.arrays["U"], strict=True)}
        if "M" in state.arrays:
            found |= self.solver.means(state.arrays["M"][..., 1:], state.t) if state.t else self.solver.first_means(found)
        return found


def choose(solver: Any, problem: Problem, lazy: type[Engine], why_not: str | None) -> Engine:
    """The lazy engine, or the dense one where ``why_not`` says what stands in the way."""
    return lazy(solver, problem) if why_not is None else Dense(solver, problem, why_not)
