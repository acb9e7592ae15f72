r"""The lazy state of L1 steps along sign(w) with a constant step h = eta l1: each weight with the step it belongs to.

An idle weight moves by h towards 0 for m = floor(|w| / h) steps, to rem = |w| - m h, and then alternates between rem - h and
rem for ever; rem = 0 stays 0                                                                                (MATH 11.9).
Used by SGD and implicit SGD where l2 = 0 and nothing is averaged or projected; step numbers are exact, so no visits are needed.
The loop is its own: the idle steps of each weight are counted, one weight at a time.
"""

from __future__ import annotations

from math import copysign, floor, isfinite
from typing import Any

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.losses import weighted
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import all_finite, intercept_step
from onlinear.solvers.core.engine import Engine, Examples
from onlinear.solvers.core.state import BIAS, ONE, THETA, State, T, scalars


@function
def drifted(w, h, n):
    """The weight w after n idle steps."""
    size = abs(w)
    if n == 0.0 or size == 0.0:
        return w
    if n * h <= size:
        return copysign(size - n * h, w)
    m = floor(size / h)
    rem = size - m * h
    if rem < 0.0:
        m, rem = m - 1.0, rem + h
    if rem == 0.0:
        return 0.0
    return copysign(1.0, w) * (rem - h if (n - m) % 2.0 == 1.0 else rem)


@kernel
def learn_rows_signs(rows, largest, y, s, loss, penalty, solver, V, last, now, scores):
    indptr, indices, values = rows
    t, b, one, theta = int(now[T]), now[BIAS], now[ONE], now[THETA]
    careful = is_careful(now, largest)
    needs_norm = solver.needs_norm()
    done = y.shape[0]
    for i in range(y.shape[0]):
        eta = solver.schedule.at(t + 1)
        h = eta * penalty.l1

        p = a = b * one
        xx = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], np.float64(values[k])
            w = drifted(V[j], h, t - last[j])
            p += w * x
            if needs_norm:
                a += drifted(w, h, 1.0) * x
                xx += x * x
        scores[i] = p
        g = weighted(s[i], solver.pull(loss, p, a, s[i] * eta * (xx + one), y[i]))
        if not isfinite(p + eta * g):
            done = i
            break

        t += 1
        theta = g
        if g != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                V[j] = drifted(V[j], h, t - last[j]) - eta * g * values[k]
                last[j] = t
            b -= intercept_step(eta, t, solver.tied) * g * one
            careful = is_careful_after(now, careful, p, eta * g)
            if careful and not all_finite(V, indices, indptr[i], indptr[i + 1]):
                done = i
                break
    now[T], now[BIAS], now[THETA] = t, b, theta
    return done


@kernel
def read(h, t, V, last, columns, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = drifted(V[j], h, t - last[j]) + 0.0


@kernel
def read_after_row(h, V, last, columns, now, out):
    read(h, now[T], V, last, columns, out)


class Signs(Engine):
    """Subgradient steps with an L1 penalty and a constant step, in O(non-zeros)."""

    implicit = False

    def start(self, w: np.ndarray, b: float) -> State:
        return State(
            scalars(self.problem.fit_intercept, b), {"V": w.copy(), "last": np.zeros(len(w))}, size=len(w), stamps=("last",)
        )

    def call(self, state: State, examples: Examples) -> Any:
        V, last = state.arrays["V"], state.arrays["last"]
        return learn_rows_signs, (*examples.given, self.loss, self.penalty, self.solver, V, last, state.now, examples.scores)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        h = self.eta(1) * self.penalty.l1
        read(h, float(state.t), state.arrays["V"], state.arrays["last"], columns, out)
        return out

    def readers(self, state: State) -> tuple[Any, Any]:
        h = self.eta(1) * self.penalty.l1
        return (read_after_row, (h, state.arrays["V"], state.arrays["last"])), None

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        raise ValueError("sign(w) steps have no closed form for averages.")
