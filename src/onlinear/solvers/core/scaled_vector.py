r"""The lazy state of subgradient steps with an L2 penalty: a scaled vector w = al V, and the companion of an average.

A step w' = (1 - eta l2) w - eta theta x writes only the row's columns,

    al *= 1 - eta l2,      V_j -= eta theta x_j / al        where x_j != 0                                   (MATH 11.4)

and the projection on a ball is al *= R / |w|, with |w|^2 kept up to date. An average is A + B + be V: before each step
be += om al; where V_j moves by dv, B_j -= be dv. A *visit* closes the sums, A += B + be V, and makes al 1 again. It is made
inside the step, between the decay and the move, where al has left its range (al = 0 among them), so that no quotient by al
loses digits, and where the projection after the move would take it far out of its range, so that no average does; and, where
there are sums to restart (an average, |w|^2), at the due moments (moments.py). For that visit inside the step, and for the
projection after it, the loop is its own: with hooks in loop.py it had the same bits and up to 5 % fewer instructions, with a
ball and an average 3 % more, but a first fit of SGD compiled for 9 % longer.

al is a compensated sum: rounding 1 - eta l2 anew would cost a constant step 5e-17 per step, always to the same side.

What theta is belongs to the solver: ``pull(loss, p, a, c, y)`` for the score p = <w, x> + b, the score a after the penalty's
own step, and c = eta (|x|^2 + 1 with an intercept). ``needs_norm()``: whether it uses c; ``ball()``: the projection's radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from onlinear.compiled import LANES, fetch, four, function, gather, kernel, nothing, put_back, total
from onlinear.losses import weighted
from onlinear.rows import AHEAD, entries_to_fetch
from onlinear.schedules import Power
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import all_finite, dot, intercept_step
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.moments import DECAY_LIMIT, DECAY_LIMIT_AVERAGED, sums_due
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, CLOCK, ONE, OWN, THETA, State, T, scalars
from onlinear.solvers.core.visits import mean_score

SCALE, SCALE_SUM, LAG, NORM = CLOCK, CLOCK + 1, CLOCK + 2, OWN  # al, be, what al is too large by, |w|^2


@function
def forward(penalty, w, eta):
    """w - eta (l1 sign(w) + l2 w) for all coordinates but the intercept: the step on a subgradient of the penalty."""
    v = w - eta * (penalty.l1 * np.sign(w) + penalty.l2 * w)
    v[0] = w[0]
    return v


@function
def longer(move, wx, xx):
    """By what |w|^2 grows where w moves by -move x."""
    return move * (move * xx - 2.0 * wx)


@function
def visit(V, B, A, al, be, now):
    """Make al 1 and close the sums; give |w|_1, which is not finite where the state is not. What is 0 stays as it is: a column
    that rows have not named yet would get the sign of al."""
    size = 0.0
    for j in range(V.shape[0]):
        if B is not None:
            A[j] += B[j] + be * V[j]
            B[j] = 0.0
        V[j] = V[j] * al if V[j] != 0.0 else V[j]
        size += abs(V[j])
    if B is not None:
        now[BIAS_TOTAL] += now[BIAS_SUM]
        now[BIAS_SUM] = 0.0
    return size


@kernel
def learn_rows_scaled(rows, largest, y, s, loss, penalty, solver, average, ball, V, B, A, now, scores, means):
    indptr, indices, values = rows
    t, b, one, theta = int(now[T]), now[BIAS], now[ONE], now[THETA]
    al, be, lag, norm = now[SCALE], now[SCALE_SUM], now[LAG], now[NORM]
    careful = is_careful(now, largest)
    limit = DECAY_LIMIT if B is None else DECAY_LIMIT_AVERAGED
    needs_norm = ball is not None or solver.needs_norm()
    sums = ball is not None or B is not None
    known = entries_to_fetch(V, indices)
    done = y.shape[0]
    for i in range(y.shape[0]):
        if sums and sums_due(t):
            visit(V, B, A, al, be, now)
            al, be, lag = 1.0, 0.0, 0.0
            if ball is not None:
                norm = dot(V, V)
        eta = solver.schedule.at(t + 1)
        keep = 1.0 - eta * penalty.l2
        drop = al * (eta * penalty.l2) + lag
        after = al - drop
        fits = abs(after) <= limit and abs(after) * limit >= 1.0
        rate = eta / after if fits else eta

        begin, end = indptr[i], indptr[i + 1]
        product, squares, meant = nothing(), nothing(), nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(V, indices, k + AHEAD)
                if B is not None:
                    fetch(B, indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            v = gather(V, at)
            product += v * x
            if means is not None:
                meant += (gather(A, at) + (gather(B, at) + be * v)) * x
            if needs_norm:
                squares += x * x
        wx, xx = al * total(product), total(squares)
        p = b * one + wx
        scores[i] = p
        if means is not None:
            means[i] = mean_score(average, t, total(meant) + (now[BIAS_TOTAL] + now[BIAS_SUM]) * one, p)
        g = weighted(s[i], solver.pull(loss, p, b * one + keep * wx, s[i] * eta * (xx + one), y[i]))
        if not isfinite(p + eta * g):
            done = i
            break

        t += 1
        theta = g
        if B is not None:
            be += average.om(t) * al
            now[BIAS_SUM] += average.om(t) * b
        lag = drop - (al - after)
        al = after
        if ball is not None:
            norm *= keep * keep
            if B is not None:
                fits = fits and norm + longer(eta * g, keep * wx, xx) <= (limit * ball) * (limit * ball)
        if not fits:
            size = visit(V, B, A, al, be, now)
            al, be, lag, rate = 1.0, 0.0, 0.0, eta
            if ball is not None:
                norm = dot(V, V)
            if not isfinite(size):
                done = i
                break
        if g != 0.0:
            step = rate * g
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                move = step * x
                put_back(V, at, gather(V, at) - move)
                if B is not None:
                    put_back(B, at, gather(B, at) + be * move)
            b -= intercept_step(eta, t, solver.tied) * g * one
            careful = is_careful_after(now, careful, p, eta * g)
            if careful and not all_finite(V, indices, begin, end):
                done = i
                break
        if ball is not None:
            norm += longer(eta * g, keep * wx, xx)
            if not isfinite(norm):
                done = i
                break
            if norm > ball * ball:
                al *= ball / sqrt(norm)
                lag *= ball / sqrt(norm)
                norm = ball * ball
    now[T], now[BIAS], now[THETA] = t, b, theta
    now[SCALE], now[SCALE_SUM], now[LAG], now[NORM] = al, be, lag, norm
    return done


@kernel
def read(V, columns, now, out):
    for e in range(columns.shape[0]):
        out[e] = now[SCALE] * V[columns[e]] + 0.0


@kernel
def read_sums(V, B, A, columns, now, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = A[j] + (B[j] + now[SCALE_SUM] * V[j])


class Scaled(Engine):
    """Subgradient steps with an L2 penalty or none, in O(non-zeros)."""

    scores_means = stepped = True
    implicit = False

    def start(self, w: np.ndarray, b: float) -> State:
        now = scalars(self.problem.fit_intercept, b)
        now[SCALE], now[NORM] = 1.0, float(np.sum(np.square(w)))
        arrays = {"V": w.copy()}
        if self.average is not None:
            arrays |= {"B": np.zeros(len(w)), "A": np.zeros(len(w))}
        return State(now, arrays, size=len(w))

    def call(self, state: State, examples: Examples) -> Any:
        V, B, A = (state.arrays.get(name) for name in "VBA")
        ball = self.solver.ball()
        parts = (self.loss, self.penalty, self.solver, self.average, ball if ball < inf else None)
        return learn_rows_scaled, (*examples.given, *parts, V, B, A, state.now, examples.scores, examples.means)

    def finite(self, state: State) -> Iterator[tuple[str, np.ndarray]]:
        ball = getattr(self.solver, "ball", None)
        projects = ball is not None and ball() < inf
        yield "now", state.now if projects else np.delete(state.now, NORM)  # of a start with large weights it may be infinite
        yield from state.arrays.items()

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        read(state.arrays["V"], columns, state.now, out)
        return out

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        read_sums(*(state.arrays[name] for name in "VBA"), columns, state.now, out)
        return out

    def readers(self, state: State) -> tuple[Any, Any]:
        V, B, A = (state.arrays.get(name) for name in "VBA")
        return (read, (V,)), None if self.average is None else (read_sums, (V, B, A))


def check_subgradient(problem: Problem) -> None:
    """Raise for a penalty without a subgradient that an explicit step could take."""
    name, penalty = problem.name, problem.penalty
    if not penalty.separable:
        raise ValueError(
            f"{name} steps along a subgradient of the penalty; total variation needs its prox: use 'comid' or 'odrs'."
        )
    if penalty.weight_bounds not in (None, (-inf, inf)):
        raise ValueError(
            f"{name} steps along a subgradient of the penalty, and bounds have none; use 'comid' or 'fiol', which project."
        )
    if not penalty.clock_thresholds:
        raise ValueError(
            f"{name} needs a subgradient of the penalty, which {type(penalty).__name__} does not define (only a prox); "
            "use 'comid', or one of the penalties none, l1, l2, elastic-net."
        )


def strong_convexity(name: str, penalty: Any) -> float:
    """The penalty's l2, from which the method takes its step."""
    l2 = float(getattr(penalty, "l2", 0.0))
    if not l2 > 0.0:
        raise ValueError(f"{name} takes its step from the penalty's l2, which must be above 0; e.g. penalty='l2=1e-4'.")
    return l2


def why_signs_are_dense(solver: Any, problem: Problem) -> str | None:
    """What keeps sign(w) steps from their closed form (MATH 11.9), or None."""
    if not (isinstance(solver.schedule, Power) and solver.schedule.power == 0.0):
        return "sign(w) has a closed form only for a constant step"
    if problem.penalty.l2 > 0.0:
        return "sign(w) has no closed form together with l2"
    if problem.average is not None:
        return "sign(w) has no closed form for averages"
    return "sign(w) has no closed form with a projection" if solver.ball() < inf else None
