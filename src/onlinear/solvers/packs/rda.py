"""Dual averaging for eight outputs at once: the kernel of rda.py, lane by lane, with the same bits.

Loop: its own, as rda.py's is: its intercept is a function of what is kept, found before each row.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from onlinear.compiled import WIDTH, chosen, fetch_lanes, kernel, lanes, put_lanes
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet, soft
from onlinear.solvers.core.careful import mark_careful, some_careful
from onlinear.solvers.core.pack import AHEAD
from onlinear.solvers.core.state import ONE, T
from onlinear.solvers.packs.bursts import added, burst, empty_sum, whole
from onlinear.solvers.rda import GRADIENT_BIAS, intercept_after, shrink_after, threshold


@kernel
def learn_rda(rows, largest, y, which, s, loss, strengths, solver, G, now, scores):
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    t, one = int(now[T, 0]), now[ONE, 0]
    penalty = ElasticNet(lanes(strengths, 0), lanes(strengths, 1))
    work = np.zeros((5, WIDTH))
    p, g, marks = work[0], work[1], work[4].view(np.int64)
    done, culprit = y.shape[1], -1
    mark_careful(now, largest, outputs)
    for i in range(y.shape[1]):
        if t > 0:
            put_lanes(work, 2, shrink_after(penalty, solver, t))
            put_lanes(work, 3, intercept_after(lanes(now, GRADIENT_BIAS), t, solver.gamma) * one)
        sums, dead = empty_sum(), threshold(penalty, t)
        for k in range(indptr[i], indptr[i + 1]):
            fetch_lanes(G, indices[min(k + AHEAD, last)])
            sums = added(sums, -(soft(lanes(G, indices[k]), dead) * values[k]))
        put_lanes(work, 0, whole(sums) * lanes(work, 2) + lanes(work, 3))
        active = 0
        for o in range(outputs):
            scores[o, i] = p[o]
            g[o] = weighted(s[i], loss.slope(p[o], y[which[o], i]))
            active += g[o] != 0.0
            marks[o] = -1 if g[o] != 0.0 else 0
            if not isfinite(p[o] + g[o]) and culprit < 0:
                culprit = o
        if culprit >= 0:
            done = i
            break

        t += 1
        if active == 0:
            continue
        slopes, moving = lanes(work, 1), lanes(work, 4)
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            old = lanes(G, j)
            put_lanes(G, j, chosen(moving, old + slopes * values[k], old))
        put_lanes(now, GRADIENT_BIAS, chosen(moving, lanes(now, GRADIENT_BIAS) + slopes * one, lanes(now, GRADIENT_BIAS)))
        if some_careful(now, lanes(work, 0), slopes):
            culprit = burst(rows, i, p, 1.0, g, G, now, outputs)
            if culprit >= 0:
                done = i
                break
    now[T, :outputs] = t
    return done, culprit
