r"""Regularised dual averaging (RDA).

    w_{t+1} = argmin_w  <G_t, w> + t r(w) + (beta_t/2) |w|^2,       G_t = sum_{j <= t} g_j,  g_j = l'(<w_j, x_j>, y_j) x_j
            = -soft(G_t, l1 t) / (l2 t + beta_t)                    for the elastic net                        (MATH 6.1, 6.2)

with beta_t = gamma sqrt t, or gamma (1 + log t) with logarithmic=true. Where the penalty is strongly convex, Xiao takes
the latter or gamma = 0, which needs l2 > 0. The intercept has no penalty: it is -G_b / (gamma_b sqrt t) in each case, with
gamma_b = gamma, or 1 where gamma = 0 (MATH 17).

Source: Xiao, JMLR 11, 2010; in Tao, Gao, Chu, Wu, IEEE TNNLS 25(10), 2014, eq. (13) (whose print omits the index of w_j).
Loop:   its own: with an average, a row looks for the steps at which the G_j that it moves fell or rose.
Lazy:   w_j is a function of G_j and t alone, so G is the whole state and a row forms only its own columns. Averages as in
        MATH 11.5: while G_j rests, the sum of w_j is linear in prefix sums until l1 t passes |G_j|.
Forget: With a half-life, forget=, all sums fade, just as lazily (MATH 18.8; solvers/forgetting).
Cost:   O(nnz(x_t)) per row.   Needs: a built-in separable penalty (without bounds where an average is kept); otherwise the
        dense step, O(d). It starts at the minimiser of |w|^2, so no other start is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import new_table, record, sums_of, up_to
from onlinear.compiled import LANES, adopt, fetch, four, function, gather, kernel, nothing, put_back, room, total, where
from onlinear.losses import weighted
from onlinear.penalties import Box, ElasticNet, FusedLasso, soft
from onlinear.rows import AHEAD, entries_to_fetch
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import Dense, all_finite, dot
from onlinear.solvers.core.engine import Engine, Examples, Problem, Steps
from onlinear.solvers.core.moments import FIRST_VISIT, sums_due
from onlinear.solvers.core.state import BIAS_SUM, BIAS_TOTAL, ONE, OWN, VISIT, State, T, everything, scalars, vector_state

GRADIENT_BIAS = OWN  # G of the intercept


class Rda(NamedTuple):
    """Settings of dual averaging: beta_t = gamma sqrt t, or gamma (1 + log t)."""

    gamma: float = 1.0
    logarithmic: bool = False

    letters = ("G",)
    added = ("logarithmic",)

    def beta(self, t):
        """The weight of the auxiliary term after t > 0 rows."""
        return self.gamma * (1.0 + log(t)) if self.logarithmic else self.gamma * sqrt(t)

    def step(self, U, x, y, s, t, loss, penalty):
        w = self.predictor(U, t, penalty)
        U[0] = U[0] + weighted(s, loss.slope(dot(w, x), y)) * x

    def begin(self, U, penalty):
        if np.any(U):
            raise ValueError("rda starts at w = 0, where its auxiliary term is smallest; start= is not possible.")

    def predictor(self, U, t, penalty):
        G, w, m = U[0], np.zeros(U.shape[1]), t - 1
        if m > 0:
            w[1:] = penalty.primal(G[1:], float(m), self.beta(m))
            w[0] = intercept(G[0], m, self.gamma)
        return w

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        penalty = problem.penalty
        if self.gamma == 0.0:
            if not isinstance(penalty, (ElasticNet, Box, FusedLasso)):
                raise ValueError(
                    f"rda with gamma=0 needs a built-in penalty with l2 > 0; {type(penalty).__name__} has only a prox."
                )
            if not penalty.l2 > 0.0:
                raise ValueError("rda with gamma=0 has no auxiliary term, so the penalty's l2 must be above 0, e.g. 'l2=1e-4'.")
        why = why_not_lazy(problem)
        return LazyRda(self, problem) if why is None else Primal(self, problem, why)


def why_not_lazy(problem: Problem) -> str | None:
    """What keeps dual averaging from being lazy, or None."""
    penalty = problem.penalty
    if not penalty.separable:
        return "the prox couples all coordinates"
    if not penalty.clock_thresholds:
        return f"{type(penalty).__name__} has only a prox"
    if penalty.weight_bounds is not None and problem.average is not None:
        return "no formula for a lazy average of clipped weights is known"
    return None


@function
def intercept(G, t, gamma):
    """The intercept after t rows."""
    return intercept_after(G, t, gamma) if t > 0 else 0.0


@function
def intercept_after(G, t, gamma):
    """The intercept after t > 0 rows."""
    return -G / ((gamma if gamma > 0.0 else 1.0) * sqrt(t)) + 0.0


@function
def threshold(penalty, t):
    """Below which |G| stands for weight 0 after t rows."""
    return penalty.l1 * t


@function
def shrink(penalty, solver, t):
    """1 / (l2 t + beta_t), and 0 before the first row."""
    return shrink_after(penalty, solver, t) if t > 0 else 0.0


@function
def shrink_after(penalty, solver, t):
    """1 / (l2 t + beta_t), t > 0."""
    return 1.0 / (penalty.l2 * t + solver.beta(t))


@function
def clipped(w, bounds):
    """The weight inside the bounds."""
    return min(max(w, bounds[0]), bounds[1])


@function
def idle_sum(table, first, c, l1, G):
    """sign(G) (|G| E_K - R_K), the sum of the negated predictors over the c steps of a block that starts after ``first`` rows.

    The K-th step is the last one whose threshold l1 (first + K - 1) is below |G|.
    """
    size = abs(G)
    if size > l1 * (first + c - 1):
        return up_to(*sums_of(table, c), G)
    if not size > l1 * first:
        return 0.0
    K = int(size / l1) - first + 1
    while not size > l1 * (first + K - 1):
        K -= 1
    while size > l1 * (first + K):
        K += 1
    return up_to(*sums_of(table, K), G)


@function
def between(G, low, high):
    """Whether |G| lies between the first and the last threshold of a block, so that its sum needs a search; 1.0 or 0.0."""
    size = abs(G)
    return (size > low) * (size <= high)


@function
def search(table, first, c, l1, g, G, B, indices, values, begin, end):
    """Bring B along for those states of a row whose sums, before or after its step g, need a search."""
    low, high, steps = l1 * first, l1 * (first + c - 1), room(table, 0)
    for k in range(begin, end):
        j = indices[k]
        new = G[j] + g * values[k]
        if between(G[j], low, high) or between(new, low, high):
            B[j] = (B[j] + idle_sum(steps, first, c, l1, G[j])) - idle_sum(steps, first, c, l1, new)


@function
def visit(table, t, l1, G, B, A, now):
    """Close the sums of the block that ends after t rows."""
    first = int(now[VISIT])
    c, steps = t - first, room(table, 0)
    for j in range(G.shape[0]):
        A[j] += B[j] + idle_sum(steps, first, c, l1, G[j])
        B[j] = 0.0
    now[BIAS_TOTAL] += now[BIAS_SUM]
    now[BIAS_SUM] = 0.0
    now[VISIT] = t


@kernel
def learn_rows_rda(rows, largest, y, s, loss, penalty, bounds, solver, average, G, B, A, table, now, scores):
    indptr, indices, values = rows
    t, one, l1 = int(now[T]), now[ONE], penalty.l1
    careful = is_careful(now, largest)
    known = entries_to_fetch(G, indices)
    done = y.shape[0]
    for i in range(y.shape[0]):
        if B is not None and sums_due(t) and now[VISIT] != t:
            visit(table, t, l1, G, B, A, now)
        Q, inverse = threshold(penalty, t), shrink(penalty, solver, t)
        b = intercept(now[GRADIENT_BIAS], t, solver.gamma)

        begin, end = indptr[i], indptr[i + 1]
        product = nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(G, indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            kept = soft(gather(G, at), Q)
            if bounds is None:
                product -= kept * x
            else:
                product += clipped(kept * -inverse, bounds) * x
        p = (total(product) * inverse if bounds is None else total(product)) + b * one
        scores[i] = p
        g = weighted(s[i], loss.slope(p, y[i]))
        if not isfinite(p + g):
            done = i
            break

        t += 1
        if B is not None:
            first = int(now[VISIT])
            c = t - first
            _, E, R = record(table, c, average.om(t), Q, inverse)
            now[BIAS_SUM] += average.om(t) * b
        if g != 0.0:
            if B is not None:
                low, high, searches = l1 * first, l1 * (first + c - 1), nothing()
                for k in range(begin, end, LANES):
                    at, x = four(indices, values, k, end)
                    old = gather(G, at)
                    searches += between(old, low, high) + between(old + g * x, low, high)
                if total(searches) > 0.0:
                    search(table, first, c, l1, g, G, B, indices, values, begin, end)
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                old = gather(G, at)
                new = old + g * x
                put_back(G, at, new)
                if B is not None:  # added in turn, so that a sum that is 0 stays exactly 0
                    gains = (abs(old) > high) * (between(new, low, high) == 0.0)
                    loses = (abs(new) > high) * (between(old, low, high) == 0.0)
                    gained, lost = where(gains, up_to(E, R, old), 0.0), where(loses, up_to(E, R, new), 0.0)
                    put_back(B, at, (gather(B, at) + gained) - lost)
            now[GRADIENT_BIAS] += g * one
            careful = is_careful_after(now, careful, p, g)
            if careful and not all_finite(G, indices, begin, end):
                done = i
                break
    now[T] = t
    return done


@kernel
def read(G, Q, inverse, bounds, columns, out):
    for e in range(columns.shape[0]):
        w = -soft(G[columns[e]], Q) * inverse
        out[e] = (w if bounds is None else clipped(w, bounds)) + 0.0


@kernel
def read_sums(table, first, c, l1, G, B, A, columns, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = -(A[j] + (B[j] + idle_sum(table, first, c, l1, G[j]))) + 0.0


@kernel
def read_after_row(penalty, solver, bounds, G, columns, now, out):
    t = int(now[T])
    read(G, threshold(penalty, t), shrink(penalty, solver, t), bounds, columns, out)


@kernel
def read_sums_after_row(table, l1, G, B, A, columns, now, out):
    first = int(now[VISIT])
    read_sums(table, first, int(now[T]) - first, l1, G, B, A, columns, out)


@function
def intercept_after_row(solver, now):
    """The intercept after the last row."""
    return intercept(now[GRADIENT_BIAS], now[T], solver.gamma)


@kernel
def replay(penalty, solver, average, first, last, table):
    """The prefix table of steps first+1 .. last."""
    for t in range(first + 1, last + 1):
        record(table, t - first, average.om(t), threshold(penalty, t - 1), shrink(penalty, solver, t - 1))


class LazyRda(Engine):
    """RDA in O(non-zeros). With an average, A + B + (what the table adds) is the sum of the predictors, negated as G is."""

    implicit = False

    def __init__(self, solver: Any, problem: Problem) -> None:
        super().__init__(solver, problem)
        self.bounds = self.penalty.weight_bounds

    def start(self, w: np.ndarray, b: float) -> State:
        self.solver.begin(w, self.penalty)
        return vector_state(scalars(self.problem.fit_intercept, b), "G", len(w), self.average is not None)

    def call(self, state: State, examples: Examples) -> Any:
        state.prepare(len(examples.s))
        G, B, A = (state.vectors().get(name) for name in "GBA")
        parts = (self.loss, self.penalty, self.bounds, self.solver, self.average)
        return learn_rows_rda, (*examples.given, *parts, G, B, A, state.table, state.now, examples.scores)

    def eta(self, t: int) -> float:
        return auxiliary_step(self.solver, self.penalty, t)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        Q, inverse = threshold(self.penalty, state.t), shrink(self.penalty, self.solver, state.t)
        read(state.vectors()["G"], Q, inverse, self.bounds, columns, out)
        return out

    def bias(self, state: State) -> float:
        return float(intercept(state.now[GRADIENT_BIAS], state.t, self.solver.gamma))

    def bias_reader(self, state: State) -> tuple[Any, tuple[Any, ...]]:
        return intercept_after_row, (self.solver,)

    def readers(self, state: State) -> tuple[Any, Any]:
        G, B, A = (state.vectors().get(name) for name in "GBA")
        last = read_after_row, (self.penalty, self.solver, self.bounds, G)
        if self.average is None:
            return last, None
        return last, (read_sums_after_row, (state.table, self.penalty.l1, G, B, A))

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        G, B, A = (state.vectors()[name] for name in "GBA")
        first = int(state.now[VISIT])
        read_sums(state.table, first, state.t - first, self.penalty.l1, G, B, A, columns, out)
        return out

    def visits(self) -> Callable[[int], bool] | None:
        return sums_due if self.average is not None else None

    def rebuild(self, state: State, steps: Sequence[Steps] = ()) -> None:
        if self.average is not None:
            state.table = new_table(FIRST_VISIT)
            state.prepare(0)
            replay(self.penalty, self.solver, self.average, int(state.now[VISIT]), state.t, state.table)

    def variables(self, state: State) -> dict[str, Any]:
        return {"w": self.weights(state, everything(state)), "G": state.vectors()["G"].copy()}


class Primal(Dense):
    """RDA by its dense step, for penalties without a closed form that a coordinate could follow alone."""

    def eta(self, t: int) -> float:
        return auxiliary_step(self.solver, self.penalty, t)

    def variables(self, state: State) -> dict[str, Any]:
        return {"w": self.weights(state, everything(state)), **super().variables(state)}


def auxiliary_step(solver: Rda, penalty: Any, t: int) -> float:
    """What plays the part of a step size: t / (l2 t + beta_t) of the mean gradient."""
    beta = solver.gamma / sqrt(t) if not solver.logarithmic else solver.beta(t) / t
    return 1.0 / (float(getattr(penalty, "l2", 0.0)) + beta)


adopt(Rda)
