"""SGD and implicit SGD with l2 or no penalty for eight outputs at once: the kernel of scaled.py, lane by lane, same bits."""

from __future__ import annotations

from math import isfinite

import numpy as np

from onlinear.jit import WIDTH, chosen, fetch_lanes, function, kernel, lanes, put_lanes, same_lanes
from onlinear.losses import weighted
from onlinear.solvers.dense import intercept_step
from onlinear.solvers.engine import (
    BIAS,
    BIAS_SUM,
    BIAS_TOTAL,
    DECAY_LIMIT,
    DECAY_LIMIT_AVERAGED,
    ONE,
    THETA,
    T,
    sums_due,
)
from onlinear.solvers.many_potentials import AHEAD, FEW, added, burst, empty_sum, whole
from onlinear.solvers.scaled import LAG, SCALE, SCALE_SUM, visit


@kernel
def learn_scaled(rows, largest, y, which, s, loss, strengths, solver, V, now, scores, average, B, A):
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    t, one = int(now[T, 0]), now[ONE, 0]
    limit = DECAY_LIMIT if B is None else DECAY_LIMIT_AVERAGED
    needs_norm = solver.needs_norm()
    work = np.zeros((4, WIDTH))
    wx, g, step, marks = work[0], work[1], work[2], work[3].view(np.int64)
    done, culprit = y.shape[1], -1
    for i in range(y.shape[1]):
        if B is not None and sums_due(t):
            visit_together(V, B, A, now)
        eta = solver.schedule.at(t + 1)

        sums, squares = empty_sum(), (0.0, 0.0, 0.0, 0.0)
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(values[k])
            fetch_lanes(V, indices[min(k + AHEAD, last)])
            sums = added(sums, lanes(V, indices[k]) * x)
            if needs_norm:
                squares = added(squares, x * x)
        xx = whole(squares)
        put_lanes(work, 0, whole(sums) * lanes(now, SCALE))
        for o in range(outputs):
            keep, b = 1.0 - eta * strengths[1, o], now[BIAS, o]
            p = b * one + wx[o]
            scores[o, i] = p
            g[o] = weighted(s[i], solver.pull(loss, p, b * one + keep * wx[o], s[i] * eta * (xx + one), y[which[o], i]))
            if not isfinite(p + eta * g[o]) and culprit < 0:
                culprit = o
        if culprit >= 0:
            done = i
            break

        t += 1
        active = 0
        for o in range(outputs):
            al = now[SCALE, o]
            drop = al * (eta * strengths[1, o]) + now[LAG, o]
            scale = al - drop
            fits = abs(scale) <= limit and abs(scale) * limit >= 1.0
            if B is not None:
                om = average.om(t)
                now[SCALE_SUM, o] += om * al
                now[BIAS_SUM, o] += om * now[BIAS, o]
            now[THETA, o], now[SCALE, o], now[LAG, o] = g[o], scale, drop - (al - scale)
            if not fits:
                if B is None:
                    size = visit(V[:, o], None, None, scale, now[SCALE_SUM, o], now[:, o])
                else:
                    size = visit(V[:, o], B[:, o], A[:, o], scale, now[SCALE_SUM, o], now[:, o])
                now[SCALE, o], now[SCALE_SUM, o], now[LAG, o] = 1.0, 0.0, 0.0
                if not isfinite(size) and culprit < 0:
                    culprit = o
            step[o] = (eta / scale if fits else eta) * g[o]
            active += g[o] != 0.0
            marks[o] = -(g[o] != 0.0)
        if culprit >= 0:
            done = i
            break
        if active == 0:
            continue
        if active <= FEW:
            for o in range(outputs):
                if g[o] != 0.0:
                    move_one(rows, i, step[o], now[SCALE_SUM, o], V, B, o)
        else:
            steps, moving, lag = lanes(work, 2), lanes(work, 3), lanes(now, SCALE_SUM)
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                v, move = lanes(V, j), steps * values[k]
                put_lanes(V, j, chosen(moving, v - move, v))
                if B is not None:
                    held = lanes(B, j)
                    put_lanes(B, j, chosen(moving, held + lag * move, held))
        for o in range(outputs):
            if g[o] != 0.0:
                now[BIAS, o] -= intercept_step(eta, t, solver.tied) * g[o] * one
                if burst(rows, i, largest, scores[o, i], eta * g[o], V, now, o) and culprit < 0:
                    culprit = o
        if culprit >= 0:
            done = i
            break
    now[T, :outputs] = t
    return done, culprit


@function
def visit_together(V, B, A, now):
    """``visit`` of scaled.py for every output, and the scales made 1."""
    al, be = lanes(now, SCALE), lanes(now, SCALE_SUM)
    for j in range(V.shape[0]):
        v = lanes(V, j)
        put_lanes(A, j, lanes(A, j) + (lanes(B, j) + be * v))
        put_lanes(B, j, same_lanes(0.0))
        put_lanes(V, j, v * al)
    for o in range(WIDTH):
        now[BIAS_TOTAL, o] += now[BIAS_SUM, o]
        now[BIAS_SUM, o] = 0.0
        now[SCALE, o], now[SCALE_SUM, o], now[LAG, o] = 1.0, 0.0, 0.0


@function
def move_one(rows, i, step, be, V, B, o):
    """The move of output o along row i, with the sums of its average where there is one."""
    indptr, indices, values = rows
    for k in range(indptr[i], indptr[i + 1]):
        j = indices[k]
        V[j, o] -= step * values[k]
        if B is not None:
            B[j, o] += be * (step * values[k])
