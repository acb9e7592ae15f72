"""SGD and implicit SGD with l2 or no penalty for eight outputs at once: scaled_vector.py's kernel, lane by lane, same bits.

Loop: its own, as scaled_vector.py's is: an output may begin anew inside its step, between the decay and the move.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from onlinear.compiled import WIDTH, chosen, fetch_lanes, function, kernel, lanes, put_lanes, room, same_lanes, where
from onlinear.losses import weighted
from onlinear.solvers.core.careful import mark_careful, some_careful
from onlinear.solvers.core.dense import intercept_step
from onlinear.solvers.core.moments import DECAY_LIMIT, DECAY_LIMIT_AVERAGED, sums_due
from onlinear.solvers.core.pack import AHEAD, FEW
from onlinear.solvers.core.scaled_vector import LAG, SCALE, SCALE_SUM, visit
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, ONE, THETA, T
from onlinear.solvers.core.visits import mean_score
from onlinear.solvers.packs.bursts import added, burst, empty_sum, highest, whole

ASKED, TARGETS, OPEN = 6, 9, 10  # rows of the room for numbers: three that ask a loss for theta, the targets, whose it is


@kernel
def learn_scaled(rows, largest, y, which, s, loss, strengths, solver, V, now, scores, average, B, A, means, implicit):
    """implicit: True or None. The others are as in scaled_vector.py and pack.py."""
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    t, one = int(now[T, 0]), now[ONE, 0]
    limit = DECAY_LIMIT if B is None else DECAY_LIMIT_AVERAGED
    needs_norm = solver.needs_norm()
    work = np.zeros((11, WIDTH))
    p, g, step, kept, marks, m = work[0], work[1], work[2], work[3], work[4].view(np.int64), work[5]
    done, culprit = y.shape[1], -1
    mark_careful(now, largest, outputs)
    for i in range(y.shape[1]):
        if B is not None and sums_due(t):
            visit_together(V, B, A, now)
        eta = solver.schedule.at(t + 1)

        sums, squares, meant = empty_sum(), (0.0, 0.0, 0.0, 0.0), empty_sum()
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(values[k])
            fetch_lanes(V, indices[min(k + AHEAD, last)])
            v = lanes(V, indices[k])
            sums = added(sums, v * x)
            if means is not None:
                meant = added(meant, (lanes(A, indices[k]) + (lanes(B, indices[k]) + lanes(now, SCALE_SUM) * v)) * x)
            if needs_norm:
                squares = added(squares, x * x)
        xx = whole(squares)
        wx, b = whole(sums) * lanes(now, SCALE), lanes(now, BIAS) * one
        put_lanes(work, 0, b + wx)
        put_lanes(work, 3, b + (1.0 - eta * lanes(strengths, 1)) * wx)
        if means is not None:
            put_lanes(work, 5, whole(meant))
        if implicit is not None:
            for o in range(outputs):
                work[TARGETS, o], work[OPEN, o] = y[which[o], i], 1.0
            put_lanes(work, ASKED, lanes(work, 3))
            put_lanes(work, ASKED + 1, same_lanes(s[i] * eta * (xx + one)))
            loss.thetas(room(work, WIDTH * ASKED), room(work, WIDTH * TARGETS), room(work, WIDTH * OPEN), outputs)
        else:
            for o in range(outputs):
                work[ASKED + 2, o] = solver.pull(loss, p[o], kept[o], 0.0, y[which[o], i])
        active = 0
        for o in range(outputs):
            scores[o, i] = p[o]
            if means is not None:
                means[o, i] = mean_score(average, t, m[o] + (now[BIAS_TOTAL, o] + now[BIAS_SUM, o]) * one, p[o])
            g[o] = weighted(s[i], work[ASKED + 2, o])
            active += g[o] != 0.0
            marks[o] = -1 if g[o] != 0.0 else 0
            if not isfinite(p[o] + eta * g[o]) and culprit < 0:
                culprit = o
        if culprit >= 0:
            done = i
            break

        t += 1
        al = lanes(now, SCALE)
        drop = al * (eta * lanes(strengths, 1)) + lanes(now, LAG)
        scale = al - drop
        if B is not None:
            om = average.om(t)
            put_lanes(now, SCALE_SUM, lanes(now, SCALE_SUM) + om * al)
            put_lanes(now, BIAS_SUM, lanes(now, BIAS_SUM) + om * lanes(now, BIAS))
        put_lanes(now, THETA, lanes(work, 1))
        put_lanes(now, SCALE, scale)
        put_lanes(now, LAG, drop - (al - scale))
        put_lanes(work, 2, eta / scale * lanes(work, 1))
        astray = 1.0 - (abs(scale) <= limit) * (abs(scale) * limit >= 1.0)
        if highest(astray, outputs) > 0.0:
            culprit = begin_anew(V, B, A, limit, eta, g, step, now, outputs)
            if culprit >= 0:
                done = i
                break
        if active == 0:
            continue
        if active <= FEW:
            for o in range(outputs):
                if g[o] != 0.0:
                    move, be = step[o], now[SCALE_SUM, o]
                    for k in range(indptr[i], indptr[i + 1]):
                        j = indices[k]
                        V[j, o] -= move * values[k]
                        if B is not None:
                            B[j, o] += be * (move * values[k])
        else:
            steps, moving, lag = lanes(work, 2), lanes(work, 4), lanes(now, SCALE_SUM)
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                v, move = lanes(V, j), steps * values[k]
                put_lanes(V, j, chosen(moving, v - move, v))
                if B is not None:
                    held = lanes(B, j)
                    put_lanes(B, j, chosen(moving, held + lag * move, held))
        put_lanes(now, BIAS, lanes(now, BIAS) - intercept_step(eta, t, solver.tied) * lanes(work, 1) * one)
        if some_careful(now, lanes(work, 0), eta * lanes(work, 1)):
            culprit = burst(rows, i, p, eta, g, V, now, outputs)
            if culprit >= 0:
                done = i
                break
    now[T, :outputs] = t
    return done, culprit


@function
def visit_together(V, B, A, now):
    """``visit`` of scaled_vector.py for every output, and the scales made 1."""
    al, be = lanes(now, SCALE), lanes(now, SCALE_SUM)
    for j in range(V.shape[0]):
        v = lanes(V, j)
        put_lanes(A, j, lanes(A, j) + (lanes(B, j) + be * v))
        put_lanes(B, j, same_lanes(0.0))
        put_lanes(V, j, where(v != 0.0, v * al, v))
    for o in range(WIDTH):
        now[BIAS_TOTAL, o] += now[BIAS_SUM, o]
        now[BIAS_SUM, o] = 0.0
        now[SCALE, o], now[SCALE_SUM, o], now[LAG, o] = 1.0, 0.0, 0.0


@function
def begin_anew(V, B, A, limit, eta, g, step, now, outputs):
    """``visit`` of scaled_vector.py for outputs whose scale is out of bounds; the first one that is no longer finite, or -1."""
    found = -1
    for o in range(outputs):
        scale = now[SCALE, o]
        if not (abs(scale) <= limit and abs(scale) * limit >= 1.0):
            if B is None:
                size = visit(V[:, o], None, None, scale, now[SCALE_SUM, o], now[:, o])
            else:
                size = visit(V[:, o], B[:, o], A[:, o], scale, now[SCALE_SUM, o], now[:, o])
            now[SCALE, o], now[SCALE_SUM, o], now[LAG, o] = 1.0, 0.0, 0.0
            step[o] = eta * g[o]
            if not isfinite(size) and found < 0:
                found = o
    return found
