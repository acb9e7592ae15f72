r"""Douglas-Rachford with a constant relaxation omega in (0, 2) and l1: the lazy form (MATH 11.6).

    x = soft(u, k),  z = 2 x - u - lam theta a,  u' = u + omega (z - x),      k = lam l1                        (MATH 10.2)

Loop:   its own: the idle steps of each weight are counted, one weight at a time.
Lazy:   an idle step moves u by -omega k sign(u) while |u| > k and multiplies it by 1 - omega from then on, so with
        m = ceil((|u| - k) / (omega k)), at least 0, after n >= m idle steps u_n = (1 - omega)^{n-m} sign(u) (|u| - m omega k).
        State: u and the step it belongs to. The predictor x is (|W| - Q - k)_+ for the constant W = |u| + Q and the clock
        Q = omega k t, which is all that the tables of averages.py ask for; it is 0 for ever once |u| <= k.
Cost:   O(nnz) per row.   Needs: exact steps, l1 or no penalty; with l2, bounds, inexact steps or a relaxation
        that varies the dense step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, isfinite
from typing import Any

import numpy as np

from onlinear.averages import moved, new_table, part_sum, record, restart
from onlinear.compiled import function, kernel
from onlinear.files.trust import Span
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet, soft
from onlinear.solvers.core.engine import Engine, Examples, Problem, Steps
from onlinear.solvers.core.last_row import LastRow, keep_columns, last_row, learn_keeping_last_row
from onlinear.solvers.core.moments import FIRST_VISIT, due
from onlinear.solvers.core.potentials import read_sums
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, ONE, THETA, VISIT, State, T, everything, scalars


def why_not_relaxed(solver: Any, problem: Problem) -> str | None:
    """What keeps relaxed Douglas-Rachford from being lazy, or None."""
    if solver.relaxation_power != 0.0:
        return "with a relaxation that varies, idle steps multiply u by products without a closed form"
    if solver.inexact:
        return "inexact steps with relaxation have no lazy form"
    if not isinstance(problem.penalty, ElasticNet) or problem.penalty.l2 != 0.0:
        return "relaxation is lazy for l1 alone"
    return None


@function
def idle(u, n, k, omega):
    """u after n idle steps."""
    size = abs(u)
    m = np.ceil((size - k) / (omega * k)) if size > k > 0.0 else 0.0  # a float: it may exceed every integer
    if k == 0.0 or n <= 0:
        return u
    if n < m:
        return u - copysign(n * omega * k, u)
    return (1.0 - omega) ** (n - m) * (u - copysign(m * omega * k, u))


@function
def constant_of(u, Q, k):
    """W, whose predictor is (|W| - Q - k)_+; 0 where the predictor is 0 for ever."""
    return u + copysign(Q, u) if abs(u) > k else 0.0


@function
def visit(V, L, W, B, A, table, t, k, omega, now):
    c = t - int(now[VISIT])
    for j in range(V.shape[0]):
        if B is not None:
            A[j] += B[j] + part_sum(table, c, W[j])
            B[j] = 0.0
        V[j] = idle(V[j], t - L[j], k, omega)
        L[j] = t
        if B is not None:
            W[j] = constant_of(V[j], 0.0, k)
    if B is not None:
        restart(table)
        now[BIAS_TOTAL] += now[BIAS_SUM]
        now[BIAS_SUM] = 0.0
    now[VISIT] = t


@kernel
def learn_rows_relaxed(rows, largest, y, s, loss, penalty, solver, average, V, L, W, B, A, table, now, scores):
    indptr, indices, values = rows
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    lam, omega = solver.lam, solver.relaxation
    k = lam * penalty.l1
    done = y.shape[0]
    for i in range(y.shape[0]):
        if due(t) and t != now[VISIT]:
            visit(V, L, W, B, A, table, t, k, omega, now)
        p, pu, norm = b * one, b * one, one
        for e in range(indptr[i], indptr[i + 1]):
            j, x = indices[e], np.float64(values[e])
            u = idle(V[j], t - L[j], k, omega)
            p += soft(u, k) * x
            pu += u * x
            norm += x * x
        scores[i] = p
        if not isfinite(p + pu + lam * norm):
            done = i
            break
        theta = weighted(s[i], loss.theta(2.0 * p - pu, s[i] * lam * norm, y[i]))
        c = t - int(now[VISIT])
        Q = c * (omega * k)
        t += 1
        if B is not None:
            mark = record(table, c + 1, average.om(t), Q + k, 1.0)
            now[BIAS_SUM] += average.om(t) * b
        if theta != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                u = idle(V[j], t - 1 - L[j], k, omega)
                V[j], L[j] = u + omega * (soft(u, k) - u - lam * theta * values[e]), t
                if B is not None:
                    new = constant_of(V[j], (c + 1) * (omega * k), k)
                    W[j] = moved(table, c + 1, mark, B, j, W[j], new)
            b -= omega * lam * theta * one
        now[THETA] = theta
    now[T], now[BIAS] = t, b
    return done


@kernel
def read_u(V, L, t, k, omega, columns, out):
    for e in range(columns.shape[0]):
        out[e] = idle(V[columns[e]], t - L[columns[e]], k, omega)


@function
def keep_row(rows, tail, last, u, V, L, now, k, omega):
    """Keep a row's columns and their u before it."""
    keep_columns(rows, tail, last)
    for e in range(int(last[0])):
        j = last[e + 1]
        u[e] = idle(V[j], int(now[T]) - L[j], k, omega)


@kernel
def replay(average, step, k, first, last, table):
    for t in range(first + 1, last + 1):
        record(table, t - first, average.om(t), (t - first - 1) * step + k, 1.0)


class Relaxed(Engine):
    """oDRs and sDRs with relaxation in O(non-zeros)."""

    @property
    def threshold(self) -> float:
        """k = lam l1."""
        return float(self.solver.lam * self.penalty.l1)

    def start(self, w: np.ndarray, b: float) -> State:
        u = w + self.threshold * np.sign(w)
        arrays = {"V": u, "L": np.zeros(len(w))}
        if self.average is not None:
            arrays |= {"W": np.where(w != 0.0, u, 0.0), "B": np.zeros(len(w)), "A": np.zeros(len(w))}
        kept: dict[str, np.ndarray] = {"columns": np.empty(0, np.uint32), "u": np.empty(0)}
        table = new_table(FIRST_VISIT) if self.average is not None else None
        return State(scalars(self.problem.fit_intercept, b), arrays, kept, table, size=len(w), stamps=("L",))

    def learn(self, state: State, examples: Examples) -> int:
        learn = super().learn
        return learn_keeping_last_row([state], examples.rows, lambda part: learn(state, examples.cut(part)), self.read_u)

    def call(self, state: State, examples: Examples) -> Any:
        state.prepare(len(examples.s))
        arrays = (state.arrays.get(name) for name in "VLWBA")
        problem = self.loss, self.penalty, self.solver, self.average
        return learn_rows_relaxed, (*examples.given, *problem, *arrays, state.table, state.now, examples.scores)

    def keep(self, state: State, room: LastRow) -> Any:
        V, L = state.arrays["V"], state.arrays["L"]
        return keep_row, (*room.arrays, V, L, state.now, self.threshold, self.solver.relaxation)

    def read_u(self, state: State, columns: np.ndarray) -> np.ndarray:
        """u after the last row, at ``columns``."""
        return self.u(state, state.t, columns)

    def u(self, state: State, t: int, columns: np.ndarray) -> np.ndarray:
        """u after t steps, for columns that the steps since did not touch."""
        out = np.empty(len(columns))
        V, L = state.arrays["V"], state.arrays["L"]
        read_u(V, L, t, self.threshold, self.solver.relaxation, columns, out)
        return out

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.penalty.prox(self.u(state, state.t, columns), self.solver.lam)

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        W, B, A = (state.arrays[name] for name in "WBA")
        read_sums(state.table, state.t - int(state.now[VISIT]), W, B, A, columns, out)
        return out

    def visits(self) -> Callable[[int], bool]:
        return due

    def may_keep(self, state: State) -> dict[str, Span]:
        return last_row(state)

    def rebuild(self, state: State, steps: Sequence[Steps] = ()) -> None:
        if self.average is None:
            return
        first, last = int(state.now[VISIT]), state.t
        state.table = new_table(FIRST_VISIT)
        state.reserve(last - first)
        replay(self.average, self.solver.relaxation * self.threshold, self.threshold, first, last, state.table)

    def eta(self, t: int) -> float:
        return float(self.solver.lam)

    def variables(self, state: State) -> dict[str, Any]:
        columns = everything(state)
        u = self.u(state, state.t, columns)
        if state.t == 0:
            x = self.penalty.prox(u, self.solver.lam)
            return self.solver.named(u, x.copy(), x, 0, self.penalty) | {"theta": 0.0}
        before = self.u(state, state.t - 1, columns)
        before[state.kept["columns"]] = state.kept["u"]
        x = self.penalty.prox(before, self.solver.lam)
        z = x + (u - before) / self.solver.relaxation
        return self.solver.named(u, z, x, state.t, self.penalty) | {"theta": float(state.now[THETA])}
