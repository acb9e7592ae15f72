r"""Online ADMM with a Bregman term: SADMM's splitting, the w-step also held near w_t (OADM).

    w_{t+1}  = implicit step at (rho z_t - mu_t + eta w_t) / (rho + eta), c = 1 / (rho + eta)                    (MATH 9.8)
    z_{t+1}  = prox_{r/rho}(w_{t+1} + mu_t/rho),   mu_{t+1} = mu_t + rho (w_{t+1} - z_{t+1})

eta_t = bregman t^bregman_power and rho_t = rho t^schedule; bregman=0 is SADMM. Predictor: z. With both powers 0.5 the regret is
O(sqrt T), with both 1 and a strongly convex objective O(log T), for rho and bregman that fit (Wang, Banerjee).

Source: Wang, Banerjee, ICML 2012, with A = I, B = -I, c = 0; MATH 9.8.
Loop:   its own: an idle stretch is a walk along pieces, one weight at a time.
Lazy:   l1 only, constant rho and eta (MATH 11.8). With a = w + mu_before/rho, k = l1/rho, th = rho/(rho + eta), z = soft(a, k):
        while |a| <= k the pair (w, q a), q^2 = th/(1 - th), is rotated and shrunk, and never leaves that strip once
        sqrt(w^2 + q^2 a^2) <= q k; while |a| > k, after one step, a = w + k sign(a), z = w, and w moves by th k per step.
        So an idle stretch is a handful of pieces. State: w, a and the step they belong to; with an average the sum so far.
Cost:   O(nnz) per row, times the pieces.   Needs: l1 or no penalty; otherwise the dense step.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, copysign, cos, isfinite, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import Average
from onlinear.compiled import adopt, function, kernel
from onlinear.files.trust import Span
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet, soft
from onlinear.solvers.core.batch_dual import DualStart
from onlinear.solvers.core.dense import choose, dot, prox_but_first
from onlinear.solvers.core.engine import Engine, Examples, Preset, Problem, needs_theta
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.state import (
    BIAS,
    BIAS_SUM,
    BIAS_TOTAL,
    ONE,
    THETA,
    VISIT,
    State,
    T,
    everything,
    kept_vector,
    scalars,
)
from onlinear.solvers.drs import first_dual


class Oadm(NamedTuple):
    """Settings: rho (at step t: rho t^schedule) and bregman, the paper's eta (at step t: bregman t^bregman_power).

    With the average uniform-post, and by the dense step with any average, the variables hold wbar, the mean of w_{t+1}.
    """

    rho: float = 1.0
    bregman: float = 1.0
    schedule: float = 0.0
    bregman_power: float = 0.0

    added = ("bregman_power",)
    letters = ("z", "w", "mu")
    stable = True  # every step is implicit in the loss and in the penalty
    mean_name = "zbar"
    choices = {"schedule": {"constant": 0.0, "growing-rho": 0.5}}  # noqa: RUF012

    def rho_at(self, t: int) -> float:
        """rho_t."""
        return self.rho * max(t, 1) ** self.schedule

    def bregman_at(self, t: int) -> float:
        """eta_t."""
        return self.bregman * max(t, 1) ** self.bregman_power

    def step(self, U, x, y, s, t, loss, penalty):
        z, w, mu, rho, eta = U[0], U[1], U[2], self.rho_at(t), self.bregman_at(t)
        c = 1.0 / (rho + eta)
        v = c * (rho * z - mu + eta * w)
        theta = weighted(s, loss.theta(dot(v, x), s * c * dot(x, x), y))
        new = v - c * theta * x
        U[0] = prox_but_first(penalty, new + mu / rho, 1.0 / rho)
        U[1] = new
        U[2] = mu + rho * (new - U[0])

    def begin(self, U, penalty):
        U[2] = 0.0
        U[2, 1:] = first_dual(penalty, U[0, 1:])

    def predictor(self, U, t, penalty):
        return U[0]

    def means(self, M: np.ndarray, t: int) -> dict[str, np.ndarray]:
        """The average of w_{t+1}, from the dense step's sums."""
        return {"wbar": M[1, 1] / t}

    def first_means(self, start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The average before the first row: that of the start."""
        return {"wbar": start["w"].copy()}

    def mean_form(self):
        """Itself: a row moves it by its theta times its columns alone."""
        return self

    def loss_start(self, engine: Engine, state: State) -> DualStart:
        """(rho z - mu + eta w) / (rho + eta)."""
        rho, eta = self.rho_at(state.t + 1), self.bregman_at(state.t + 1)
        c = 1.0 / (rho + eta)

        def at(columns: np.ndarray) -> tuple[np.ndarray, float]:
            if isinstance(engine, LazyOadm):
                w, a, _ = engine.settled(state, columns)
                z = engine.penalty.prox(a, 1.0 / rho)
                mu = rho * (a - z)
            else:
                z, w, mu = state.arrays["U"][:, 1:][:, columns]
            return c * (rho * z - mu + eta * w), c

        return DualStart(ElasticNet(), None, at)

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        return choose(self, problem, LazyOadm, self.why_not_lazy(problem))

    def why_not_lazy(self, problem: Problem) -> str | None:
        """What stands in the way of the pieces of MATH 11.8, or None."""
        if self.schedule != 0.0 or self.bregman_power != 0.0:
            return "a varying rho or eta has no lazy form with a Bregman term"
        if not isinstance(problem.penalty, ElasticNet) or problem.penalty.l2 != 0.0:
            return "the lazy form is known for l1 alone"
        return None


@function
def one_idle_step(w, a, k, th):
    z = soft(a, k)
    w = th * (2.0 * z - a) + (1.0 - th) * w
    return w, w + (a - z)


@function
def rotate(w, a, n, th):
    """n steps in the strip |a| <= k, where z = 0: (w, q a) is turned n times and shrunk."""
    q = sqrt(th / (1.0 - th))
    shrink, angle = (1.0 - th) ** (0.5 * n), n * atan2(sqrt(th), sqrt(1.0 - th))
    C, S = shrink * cos(angle), shrink * sin(angle)
    return C * w - S * q * a, (S * w + C * q * a) / q


@function
def ramp(base, growth, first, m, z, slope):
    """Sum over i = 0 .. m-1 of (base + growth (first + i)) (z - slope i)."""
    n1 = 0.5 * m * (m - 1.0)
    n2 = m * (m - 1.0) * (2.0 * m - 1.0) / 6.0
    om = base + growth * first
    return om * (m * z - slope * n1) + growth * (z * n1 - slope * n2)


@function
def catch_up(w, a, n, k, th, base, growth, first):
    """(w, a) after n idle steps, and the weighted sum of the z before each, the first with weight base + growth first."""
    total = 0.0
    inner = (1.0 - th) * k * k * th / (1.0 - th) if th < 1.0 else 0.0
    while n > 0:
        if abs(a) <= k:
            if th < 1.0 and (1.0 - th) * w * w + th * a * a <= inner:
                w, a = rotate(w, a, n, th)
                return w, a, total
            w, a = one_idle_step(w, a, k, th)
            n -= 1
            first += 1
            continue
        sign = copysign(1.0, a)
        total += (base + growth * first) * soft(a, k)
        w, _ = one_idle_step(w, a, k, th)
        a = w + k * sign
        n -= 1
        first += 1
        if n > 0 and w * sign > 0.0:
            steps = w * sign / (th * k) if th * k > 0.0 else n + 0.0  # they may exceed every integer
            m = int(steps) if steps < n else n
            total += ramp(base, growth, float(first), float(m), w, th * k * sign)
            w -= m * (th * k * sign)
            a = w + k * sign
            n -= m
            first += m
    return w, a, total


@function
def averaged_catch_up(w, a, last, t, k, th, average):
    """(w, a, sum) over steps last+1 .. t, weights as the average has them; a suffix may begin on the way."""
    if average is None:
        return catch_up(w, a, t - last, k, th, 0.0, 0.0, 0)
    shift = 1 if average.post else 0
    begin = min(max(int(average.first) + shift - 1, last), t)
    w, a, _ = catch_up(w, a, begin - last, k, th, 0.0, 0.0, 0)
    return catch_up(w, a, t - begin, k, th, average.base, average.growth, begin + 1 - shift)


@function
def visit(W, G, L, S, A, k, th, average, t, now):
    for j in range(W.shape[0]):
        w, a, total = averaged_catch_up(W[j], G[j], int(L[j]), t, k, th, average)
        W[j], G[j], L[j] = w, a, t
        if S is not None:
            A[j] += S[j] + total
            S[j] = 0.0
    now[BIAS_TOTAL] += now[BIAS_SUM]
    now[BIAS_SUM] = 0.0
    now[VISIT] = t


@kernel
def learn_rows_oadm(rows, largest, y, s, loss, penalty, solver, average, W, G, L, S, A, now, scores):
    indptr, indices, values = rows
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    c = 1.0 / (solver.rho + solver.bregman)
    k, th = penalty.l1 / solver.rho, solver.rho * c
    done = y.shape[0]
    for i in range(y.shape[0]):
        if due(t) and t != now[VISIT]:
            visit(W, G, L, S, A, k, th, average, t, now)
        p, pv, norm = b * one, b * one, one
        for e in range(indptr[i], indptr[i + 1]):
            j, x = indices[e], np.float64(values[e])
            w, a, total = averaged_catch_up(W[j], G[j], int(L[j]), t, k, th, average)
            W[j], G[j], L[j] = w, a, t
            if S is not None:
                S[j] += total
            z = soft(a, k)
            p += z * x
            pv += (th * (2.0 * z - a) + (1.0 - th) * w) * x
            norm += x * x
        scores[i] = p
        if not isfinite(p + pv + c * norm):
            done = i
            break
        theta = weighted(s[i], loss.theta(pv, s[i] * c * norm, y[i]))
        t += 1
        if S is not None:
            now[BIAS_SUM] += average.om(t) * b
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            z = soft(G[j], k)
            if S is not None:
                S[j] += average.om(t) * z
            w, a = one_idle_step(W[j], G[j], k, th)
            W[j], G[j], L[j] = w - c * theta * values[e], a - c * theta * values[e], t
        b -= c * theta * one
        now[THETA] = theta
    now[T], now[BIAS] = t, b
    return done


@kernel
def read(W, G, L, S, A, k, th, average, t, columns, w, a, sums):
    for e in range(columns.shape[0]):
        j = columns[e]
        w[e], a[e], total = averaged_catch_up(W[j], G[j], int(L[j]), t, k, th, average)
        if S is not None:
            sums[e] = A[j] + (S[j] + total)


@kernel
def read_after_row(penalty, rho, k, th, average, W, G, L, columns, now, out):
    t = int(now[T])
    for e in range(columns.shape[0]):
        j = columns[e]
        _, a, _ = averaged_catch_up(W[j], G[j], int(L[j]), t, k, th, average)
        out[e] = penalty.prox(a, 1.0 / rho)


@kernel
def read_sums_after_row(k, th, average, W, G, L, S, A, columns, now, out):
    t = int(now[T])
    for e in range(columns.shape[0]):
        j = columns[e]
        _, _, total = averaged_catch_up(W[j], G[j], int(L[j]), t, k, th, average)
        out[e] = A[j] + (S[j] + total)


class LazyOadm(Engine):
    """OADM in O(non-zeros)."""

    def start(self, w: np.ndarray, b: float) -> State:
        arrays = {"W": w.copy(), "G": w + first_dual(self.penalty, w) / self.solver.rho, "L": np.zeros(len(w))}
        if self.average is not None:
            arrays |= {"S": np.zeros(len(w)), "A": np.zeros(len(w))}
        dual = first_dual(self.penalty, w)
        return State(
            scalars(self.problem.fit_intercept, b), arrays, {"mu": dual} if np.any(dual) else {}, size=len(w), stamps=("L",)
        )

    def call(self, state: State, examples: Examples) -> Any:
        arrays = (state.arrays.get(name) for name in "WGLSA")
        parts = self.loss, self.penalty, self.solver, self.average
        return learn_rows_oadm, (*examples.given, *parts, *arrays, state.now, examples.scores)

    def settled(self, state: State, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(w, a, sums of z) after the last row."""
        out = np.empty((3, len(columns)))
        arrays = (state.arrays.get(name) for name in "WGLSA")
        read(*arrays, *self.strip, self.average, state.t, columns, out[0], out[1], out[2])
        return out[0], out[1], out[2]

    @property
    def strip(self) -> tuple[float, float]:
        """k, half the width of the strip in which z = 0, and th."""
        rho = self.solver.rho
        return self.penalty.l1 / rho, rho / (rho + self.solver.bregman)

    def readers(self, state: State) -> tuple[Any, Any]:
        arrays = [state.arrays.get(name) for name in "WGLSA"]
        last = read_after_row, (self.penalty, self.solver.rho, *self.strip, self.average, *arrays[:3])
        return last, None if self.average is None else (read_sums_after_row, (*self.strip, self.average, *arrays))

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.penalty.prox(self.settled(state, columns)[1], 1.0 / self.solver.rho)

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.settled(state, columns)[2]

    def visits(self) -> Callable[[int], bool]:
        return due

    def may_keep(self, state: State) -> dict[str, Span]:
        return {"mu": Span(np.float64, 0, state.size)}

    def eta(self, t: int) -> float:
        return 1.0 / (self.solver.rho + self.solver.bregman)

    def variables(self, state: State) -> dict[str, Any]:
        columns = everything(state)
        w, a, sums = self.settled(state, columns)
        z = self.penalty.prox(a, 1.0 / self.solver.rho)
        mu = self.solver.rho * (a - z)
        found = {"w": w, "z": z, "mu": mu, "theta": float(state.now[THETA])}
        if self.average == Average(1.0, 0.0, 1.0, True):
            moved = (mu - kept_vector(state, "mu")) / self.solver.rho
            found["wbar"] = (sums + z + moved) / state.t if state.t else w.copy()
        return found


PRESETS = {"oadm": Preset(Oadm, average="uniform-post")}

adopt(Oadm)
