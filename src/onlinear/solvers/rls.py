r"""Recursive least squares (RLS), also named 2SGD: the ridge solution after every row; squared loss.

    k_t = P_{t-1} x / (1/s + x'P_{t-1} x),   w_{t+1} = w_t + k_t (y - <w_t, x>),   P_t = P_{t-1} - k_t x'P_{t-1}     (MATH 7.6)

with P_0 = I/delta, so that w_{T+1} minimises sum_t s_t (y_t - <w, x_t>)^2 / 2 + (delta/2) |w - w_1|^2 and a row of weight k is
the row k times. The ridge is delta; as a mean over rows it is delta/T, which fades, and the intercept shares it: the one
exception to "the intercept is never penalised".

As printed, P loses positive definiteness on badly scaled rows. Kept instead is the upper triangular information factor R with
R'R = delta I + sum s x x', and z = R w: a row enters by rotations of the planes (R_j, x), which no scale of the columns
disturbs, and w follows by back substitution; P = (R'R)^{-1} is formed when it is read. All outputs share R.

Source: Mu, Ding, Zhou, Tao, KDD 2013, section 2 (2SGD); rotations: Golub, Van Loan, Matrix Computations, 4th ed., 6.5.3.
Lazy:   no; every step changes every weight, in a loop of its own. A row is scattered into one work vector, whatever its layout.
Cost:   O(d^2) time per row, d^2/2 numbers of memory; n_features is needed.   Needs: the squared loss and no penalty.
"""

from __future__ import annotations

from math import hypot, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, kernel
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.solvers.core.dense import Extended, add, finite, visit_sums
from onlinear.solvers.core.engine import Engine, Examples, Preset, Problem
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.state import ONE, VISIT, State, T, scalars
from onlinear.solvers.csgd import refuse_all_but_least_squares


class Rls(NamedTuple):
    """Settings of recursive least squares: the ridge ``delta`` and the largest number of features accepted."""

    delta: float = 1.0
    limit: float = 2.0**14

    scales = False  # estimators leave the columns as they are

    no_batch = "it solves least squares exactly after every row, whatever the batches"

    def engine(self, problem: Problem) -> Engine:
        refuse_all_but_least_squares(problem)
        return Triangular(self, problem)


@function
def rotate(R, Z, x, y):
    """Bring the row (x, y) into (R, Z); x and y are used up. R holds the rows of the triangle one after the other."""
    D = x.shape[0]
    at = 0
    for j in range(D):
        if x[j] != 0.0:
            r = hypot(R[at], x[j])
            c, s = R[at] / r, x[j] / r
            R[at] = r
            for i in range(1, D - j):
                old = R[at + i]
                R[at + i] = c * old + s * x[j + i]
                x[j + i] = c * x[j + i] - s * old
            for k in range(Z.shape[0]):
                old = Z[k, j]
                Z[k, j] = c * old + s * y[k]
                y[k] = c * y[k] - s * old
        at += D - j


@function
def substitute(R, z, w):
    """Solve R w = z from the last row up; four partial sums, by column alone."""
    D = z.shape[0]
    at = R.shape[0]
    for j in range(D - 1, -1, -1):
        at -= D - j
        a = b = c = d = 0.0
        i, n = 1, D - j
        while i + 3 < n:
            a += R[at + i] * w[j + i]
            b += R[at + i + 1] * w[j + i + 1]
            c += R[at + i + 2] * w[j + i + 2]
            d += R[at + i + 3] * w[j + i + 3]
            i += 4
        while i < n:
            a += R[at + i] * w[j + i]
            i += 1
        w[j] = (z[j] - ((a + b) + (c + d))) / R[at]


@kernel
def learn_rows_rls(rows, largest, y, s, average, R, Z, W, S, A, now, scores):
    indptr, indices, values = rows
    t, one = int(now[T]), now[ONE]
    x, target = np.zeros(W.shape[1]), np.zeros(W.shape[0])
    for i in range(y.shape[0]):
        for k in range(W.shape[0]):
            p = W[k, 0] * one
            for e in range(indptr[i], indptr[i + 1]):
                p += W[k, indices[e] + np.uint32(1)] * values[e]
            scores[k, i] = p
            if not isfinite(p):
                return i
        if S is not None:
            if due(t) and now[VISIT] != t:
                for k in range(W.shape[0]):
                    visit_sums(A[k], S[k])
                now[VISIT] = t
            for k in range(W.shape[0]):
                add(S[k], W[k], average.om(t + 1))
        t += 1
        now[T] = t
        if s[i] == 0.0:
            continue
        root = sqrt(s[i])
        x[0] = root * one
        for e in range(indptr[i], indptr[i + 1]):
            x[indices[e] + np.uint32(1)] = root * values[e]
        for k in range(W.shape[0]):
            target[k] = root * y[i, k]
        rotate(R, Z, x, target)
        x[:] = 0.0
        for k in range(W.shape[0]):
            substitute(R, Z[k], W[k])
        if not finite(W):
            return i
    return y.shape[0]


def diagonal(D: int) -> np.ndarray:
    """The places of the diagonal in a triangle of D rows."""
    lengths = np.arange(D, 0, -1)
    return np.cumsum(lengths) - lengths


class Triangular(Extended):
    """RLS by the triangular factor. The factor, shared by all outputs, is in the first state; place 0 is the intercept."""

    why = "P is dense: O(d^2)"
    grows = implicit = False
    shared = ("P",)
    own_outputs = True

    def start(self, w: np.ndarray, b: float) -> State:
        if len(w) > self.solver.limit:
            raise ValueError(
                f"rls keeps a {len(w)} x {len(w)} triangle and takes O(d^2) per row: {len(w)} features are more than "
                f"limit={self.solver.limit:g}; set limit= to allow more."
            )
        extended = np.concatenate([[b], w])
        arrays = {"w": extended, "z": sqrt(self.solver.delta) * extended}
        if self.average is not None:
            arrays |= {"S": np.zeros(len(extended)), "A": np.zeros(len(extended))}
        return State(scalars(self.problem.fit_intercept, b), arrays, size=len(w), extra=1)

    def may_keep(self, state: State) -> dict[str, Span]:
        D = state.size + 1
        return {"R": Span(np.float64, *2 * (D * (D + 1) // 2,))}

    def check(self, state: State) -> None:
        super().check(state)
        if "R" in state.kept:
            trust.must(np.all(state.kept["R"][diagonal(state.size + 1)] > 0.0), "a triangle whose diagonal is not positive")

    def check_together(self, states: list[State]) -> None:
        super().check_together(states)
        held = "R" in states[0].kept
        trust.must(held or states[0].t == 0, f"{states[0].t} rows learned and no triangle of them")
        trust.must(held or states[0].size <= Rls().limit, f"{states[0].size} features, of whose triangle nothing is there")

    def factor(self, state: State) -> np.ndarray:
        """R, row by row; sqrt(delta) I before the first row."""
        if "R" not in state.kept:
            D = state.size + 1
            R = np.zeros(D * (D + 1) // 2)
            R[diagonal(D)] = sqrt(self.solver.delta)
            state.kept["R"] = R
        return state.kept["R"]

    def learn_outputs(self, states: list[State], examples: Examples) -> int:
        if len(states) == 1:
            return self.learn(states[0], examples.output(0))
        names = [*states[0].arrays]
        stacked = {name: np.stack([state.arrays[name] for state in states]) for name in names}
        S, A = stacked.get("S"), stacked.get("A")
        R, now = self.factor(states[0]), states[0].now
        given = examples.rows, examples.largest, np.ascontiguousarray(examples.y.T), examples.s
        done = learn_rows_rls(*given, self.average, R, stacked["z"], stacked["w"], S, A, now, examples.scores)
        for k, state in enumerate(states):
            state.now[:] = now
            for name in names:
                state.arrays[name] = stacked[name][k].copy()
        return done

    def call(self, state: State, examples: Examples) -> Any:
        z, w, S, A = (state.arrays[name][np.newaxis] if name in state.arrays else None for name in "zwSA")
        kept = self.factor(state), z, w, S, A, state.now
        given = examples.rows, examples.largest, examples.y.reshape(-1, 1), examples.s
        return learn_rows_rls, (*given, self.average, *kept, examples.scores.reshape(1, -1))

    def eta(self, t: int) -> float:
        return 1.0 / t

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return state.arrays["w"][1:][columns]

    def bias(self, state: State) -> float:
        return float(state.arrays["w"][0])

    def variables(self, state: State) -> dict[str, Any]:
        found: dict[str, Any] = {"w": state.arrays["w"][1:].copy()}
        if state.t == 0:
            found["P"] = np.eye(state.size) / self.solver.delta
        elif "R" in state.kept:
            found["P"] = self.covariance(state)
        return found

    def covariance(self, state: State) -> np.ndarray:
        """P = (R'R)^{-1} at the features."""
        from scipy.linalg import solve_triangular

        D = state.size + 1
        R = np.zeros((D, D))
        R[np.triu_indices(D)] = state.kept["R"]
        inverse = solve_triangular(R, np.eye(D))[1:]
        return inverse @ inverse.T


PRESETS = {"2sgd": Preset(Rls)}

adopt(Rls)
