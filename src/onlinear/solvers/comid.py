r"""Composite mirror descent: an explicit step on the loss, a prox on the penalty (COMID, OPG, HRCOMID, HRMD-W).

    w_{t+1} = argmin_w  eta_t <g_t, w> + eta_t r(w) + |w - w_t|^2 / 2
            = prox_{eta_t r}(w_t - eta_t g_t),          g_t = l'(<w_t, x_t>, y_t) x_t                          (MATH 5.1)

    opg       the same step by its other name
    hrcomid   eta_t = 1/(sigma t), uniform average
    hrmd-w    eta_t = 2/(sigma t), weights t+1                                                                 (MATH 5.3)

Source: Duchi, Shalev-Shwartz, Singer, Tewari, COLT 2010; Shao, Tao, Jiang, Zhou, J. Software 25(9), 2014 (HRMD-W);
        Shi, Liu, section 1 (OPG). Intercept: MATH 17.
Lazy:   where x_t is 0 the step is the bare prox, so a coordinate keeps its potential (penalties.py) and is written only when
        its gradient is not 0. State: one number per feature; with an average two more.
Cost:   O(nnz(x_t)) per row.   Needs: a penalty with a clock; otherwise the dense step, O(d).
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from onlinear.averages import close_fallen, fallen, record, turned
from onlinear.compiled import LANES, adopt, fetch, four, gather, kernel, load, nothing, put_back, store, total
from onlinear.losses import weighted
from onlinear.schedules import Power
from onlinear.solvers.core.dense import all_finite, choose, dot, intercept_step, prox_but_first
from onlinear.solvers.core.engine import (
    AHEAD,
    BIAS,
    BIAS_SUM,
    CAREFUL,
    CLOCK,
    HUGE,
    ONE,
    VISIT,
    Engine,
    Preset,
    Problem,
    State,
    T,
    entries_to_fetch,
)
from onlinear.solvers.core.potentials import PotentialEngine, mean_of_row, time_to_visit, visit, why_not_lazy


class Comid(NamedTuple):
    """Settings of composite mirror descent; ``tied``: the step is tied to l2, so the intercept's is min(eta_t, 1/sqrt t)."""

    schedule: Any = Power()
    tied: bool = False

    letters = ("w",)

    def step(self, U, x, y, s, t, loss, penalty):
        w, eta = U[0], self.schedule.at(t)
        g = weighted(s, loss.slope(dot(w, x), y)) * x
        move = eta * g
        move[0] = intercept_step(eta, t, self.tied) * g[0]
        U[0] = prox_but_first(penalty, w - move, eta)

    def begin(self, U, penalty):
        """U holds the start in every letter; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def decay_step(self, t: int) -> float:
        """The step of the prox in step t."""
        return self.schedule.at(t)

    def engine(self, problem: Problem) -> Engine:
        return choose(self, problem, Lazy, why_not_lazy(problem))


@kernel
def learn_rows(rows, largest, y, s, loss, penalty, solver, average, V, B, A, table, now, scores, means):
    indptr, indices, values = rows
    clock = load(penalty.start(), now, CLOCK)
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    careful = largest > HUGE or now[CAREFUL] > 0.0
    known = entries_to_fetch(V, indices)
    done = y.shape[0]
    for i in range(y.shape[0]):
        if time_to_visit(t, now[VISIT], clock[0], B):
            clock = visit(penalty, clock, V, B, A, table, t, now)
        eta = solver.schedule.at(t + 1)

        begin, end, unit = indptr[i], indptr[i + 1], penalty.unit(clock)

        product, falls = nothing(), nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(V, indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            v = gather(V, at)
            product += penalty.raw_weight(v, clock) * x
            if B is not None:
                falls += fallen(v, clock[1])
        p = total(product) / unit + b * one
        scores[i] = p
        if means is not None:
            means[i] = mean_of_row(average, t, table, V, B, A, rows, i, now, p)
        g = weighted(s[i], loss.slope(p, y[i]))
        if not isfinite(p + eta * g):
            done = i
            break

        t += 1
        after = penalty.tick(clock, eta)
        if B is not None:
            c = t - int(now[VISIT])
            mark = record(table, c, average.om(t), clock[1], clock[2])
            now[BIAS_SUM] += average.om(t) * b
        if g != 0.0:
            if B is not None and total(falls) > 0.0:
                close_fallen(table, c, mark, V, B, indices, begin, end)
            step = eta * g * unit
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                old = gather(V, at)
                new = penalty.raw_deposit(penalty.raw_weight(old, clock) - step * x, eta, clock, after)
                if B is not None:
                    gained, new = turned(mark, old, new)
                    put_back(B, at, gather(B, at) + gained)
                put_back(V, at, new)
            b -= intercept_step(eta, t, solver.tied) * g * one
            if careful or abs(p) > HUGE or abs(eta * g) > HUGE:
                careful, now[CAREFUL] = True, 1.0
                if not all_finite(V, indices, begin, end):
                    done = i
                    break
        clock = after
    now[T], now[BIAS] = t, b
    store(clock, now, CLOCK)
    return done


class Lazy(PotentialEngine):
    """COMID in O(non-zeros)."""

    kernel = staticmethod(learn_rows)
    scores_means = stepped = True
    implicit = False

    def predictor_clock(self, state: State) -> tuple[float, ...]:
        return self.clock(state)


PRESETS = {
    "opg": Preset(Comid),
    "hrcomid": Preset(Comid, tied=(1.0, 0.0), average="uniform"),
    "hrmd-w": Preset(Comid, tied=(2.0, 0.0), average="weighted-t1"),
}

adopt(Comid)
