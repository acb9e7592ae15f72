"""COMID and FIOL for eight outputs at once: the kernels of comid.py and fiol.py, lane by lane, with the same bits.

Row j of V holds the potentials of feature j, one per output, so one look-up serves all; penalties, clocks and intercepts are
lanes too. What is asked once per row (losses, roots) is asked output by output. An output whose loss is flat on the
row is not written.
"""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np

from onlinear.jit import WIDTH, chosen, fetch_lanes, function, kernel, lanes, put_lanes, same_lanes
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet
from onlinear.solvers.dense import all_finite, intercept_step
from onlinear.solvers.engine import (
    BIAS,
    CAREFUL,
    CLOCK,
    DECAY_LIMIT,
    HUGE,
    ONE,
    THETA,
    VISIT,
    T,
)
from onlinear.solvers.fiol import MOST_SEGMENTS, side
from onlinear.solvers.potentials import block_ends, time_to_visit, visit

AHEAD = np.uint64(64)  # entries between a look-up and the request for its row
FEW = 2  # outputs to be written up to which one after the other is faster than all at once


@function
def empty_sum():
    """A sum over a row, of which the four parts that ``total`` adds up take every fourth entry."""
    return same_lanes(0.0), same_lanes(0.0), same_lanes(0.0), same_lanes(0.0)


@function
def added(sums, term):
    """The sum with the next entry's term in it; the parts take turns."""
    a, b, c, d = sums
    return b, c, d, a + term


@function
def whole(sums):
    """The parts added up, in the order of ``total``, which is the same whose turn it is."""
    a, b, c, d = sums
    return (a + c) + (b + d)


@function
def longest_row(indptr):
    most = np.int64(0)
    for i in range(indptr.shape[0] - 1):
        most = max(most, np.int64(indptr[i + 1]) - np.int64(indptr[i]))
    return most


@function
def lane_clock(now, o):
    """The clock of output o."""
    return now[CLOCK, o], now[CLOCK + 1, o], now[CLOCK + 2, o], now[CLOCK + 3, o]


@function
def clocks(now):
    """The clocks of all outputs."""
    return lanes(now, CLOCK), lanes(now, CLOCK + 1), lanes(now, CLOCK + 2), lanes(now, CLOCK + 3)


@function
def visit_where_due(penalty, strengths, outputs, V, t, now):
    """Let the outputs that are due visit all coordinates after t rows: each at its own decay, or all at once."""
    if block_ends(t, None) and now[VISIT, 0] != t:
        visit_together(penalty, outputs, V, t, now)
        return
    highest = 0.0
    for o in range(WIDTH):
        highest = max(highest, now[CLOCK, o])
    if not highest > DECAY_LIMIT:
        return
    for o in range(outputs):
        if time_to_visit(t, now[VISIT, o], now[CLOCK, o], None):
            lane = ElasticNet(strengths[0, o], strengths[1, o])
            clock = visit(lane, lane_clock(now, o), V[:, o], None, None, None, t, now[:, o])
            for c in range(4):
                now[CLOCK + c, o] = clock[c]


@function
def visit_together(penalty, outputs, V, t, now):
    """``visit`` of potentials.py for every output. At the first clock a potential is the weight, 0 without a sign."""
    clock = clocks(now)
    for j in range(V.shape[0]):
        put_lanes(V, j, penalty.weight(lanes(V, j), clock) + 0.0)
    for o in range(outputs):
        now[VISIT, o] = t
    fresh = ElasticNet(0.0, 0.0).start()
    for c in range(4):
        put_lanes(now, CLOCK + c, same_lanes(fresh[c]))


@function
def tick_all(penalty, now, eta):
    """Move every output's clock on by a step."""
    after = penalty.tick(clocks(now), eta)
    for c in range(4):
        put_lanes(now, CLOCK + c, after[c])


@kernel
def learn_comid(rows, largest, y, which, s, loss, strengths, solver, V, now, scores):
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    penalty = ElasticNet(lanes(strengths, 0), lanes(strengths, 1))
    t, one = int(now[T, 0]), now[ONE, 0]
    work = np.zeros((3, WIDTH))
    p, g, marks = work[0], work[1], work[2].view(np.int64)
    before = np.empty((4, WIDTH))
    done, culprit = y.shape[1], -1
    for i in range(y.shape[1]):
        visit_where_due(penalty, strengths, outputs, V, t, now)
        eta, clock = solver.schedule.at(t + 1), clocks(now)
        unit = penalty.unit(clock)

        sums = empty_sum()
        for k in range(indptr[i], indptr[i + 1]):
            fetch_lanes(V, indices[min(k + AHEAD, last)])
            sums = added(sums, penalty.raw_weight(lanes(V, indices[k]), clock) * values[k])
        put_lanes(work, 0, whole(sums) / unit + lanes(now, BIAS) * one)
        active = 0
        for o in range(outputs):
            scores[o, i] = p[o]
            g[o] = weighted(s[i], loss.slope(p[o], y[which[o], i]))
            active += g[o] != 0.0
            marks[o] = -(g[o] != 0.0)
            if not isfinite(p[o] + eta * g[o]) and culprit < 0:
                culprit = o
        if culprit >= 0:
            done = i
            break

        t += 1
        apart = active <= FEW
        if apart:
            for c in range(4):
                put_lanes(before, c, clock[c])
        tick_all(penalty, now, eta)
        if active == 0:
            continue
        if apart:
            for o in range(outputs):
                if g[o] != 0.0:
                    move_one(rows, i, eta * g[o] * before[0, o], eta, strengths, before, V, now, o)
        else:
            after = clocks(now)
            step, moving = eta * lanes(work, 1) * unit, lanes(work, 2)
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                v = lanes(V, j)
                u = penalty.raw_weight(v, clock) - step * values[k]
                put_lanes(V, j, chosen(moving, penalty.raw_deposit(u, eta, clock, after), v))
        for o in range(outputs):
            if g[o] != 0.0:
                now[BIAS, o] -= intercept_step(eta, t, solver.tied) * g[o] * one
                if burst(rows, i, largest, p[o], eta * g[o], V, now, o) and culprit < 0:
                    culprit = o
        if culprit >= 0:
            done = i
            break
    now[T, :outputs] = t
    return done, culprit


@function
def burst(rows, i, largest, p, move, V, now, o):
    """Whether output o is no longer finite on row i; looked at where numbers are, or once were, large enough for that."""
    indptr, indices, _ = rows
    if largest > HUGE or now[CAREFUL, o] > 0.0 or abs(p) > HUGE or abs(move) > HUGE:
        now[CAREFUL, o] = 1.0
        return not all_finite(V[:, o], indices, indptr[i], indptr[i + 1])
    return False


@function
def move_one(rows, i, step, eta, strengths, before, V, now, o):
    """COMID's move of output o along row i."""
    indptr, indices, values = rows
    penalty = ElasticNet(strengths[0, o], strengths[1, o])
    clock, after = (before[0, o], before[1, o], before[2, o], before[3, o]), lane_clock(now, o)
    for k in range(indptr[i], indptr[i + 1]):
        j = indices[k]
        V[j, o] = penalty.raw_deposit(penalty.raw_weight(V[j, o], clock) - step * values[k], eta, clock, after)


@kernel
def learn_fiol(rows, largest, y, which, s, loss, strengths, solver, V, now, scores):
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    penalty = ElasticNet(lanes(strengths, 0), lanes(strengths, 1))
    t, one = int(now[T, 0]), now[ONE, 0]
    settled = np.empty((longest_row(indptr), WIDTH))
    work = np.zeros((9, WIDTH))
    p, A0, D0, theta, busy, marks = work[0], work[1], work[2], work[3], work[4], work[7].view(np.int64)
    expected = work[8]
    done, culprit = y.shape[1], -1
    for i in range(y.shape[1]):
        visit_where_due(penalty, strengths, outputs, V, t, now)
        eta, clock = solver.schedule.at(t + 1), clocks(now)
        begin = indptr[i]
        x = values[begin : indptr[i + 1]]
        threshold, shrink = eta * penalty.l1, 1.0 / (1.0 + eta * penalty.l2)

        sums, at_rest, curvature = empty_sum(), empty_sum(), empty_sum()
        for k in range(x.shape[0]):
            e = begin + np.uint64(k)
            fetch_lanes(V, indices[min(e + AHEAD, last)])
            w = penalty.weight(lanes(V, indices[e]), clock)
            put_lanes(settled, k, w)
            sums = added(sums, w * x[k])
            w, free = penalty.land(w, threshold, shrink)
            at_rest = added(at_rest, w * x[k])
            curvature = added(curvature, free * x[k] * x[k])
        put_lanes(work, 0, whole(sums) + lanes(now, BIAS) * one)
        put_lanes(work, 1, whole(at_rest))
        put_lanes(work, 2, whole(curvature) * (eta * shrink))
        active = 0
        for o in range(outputs):
            scores[o, i] = p[o]
            if not isfinite(p[o] + D0[o]) and culprit < 0:
                culprit = o
            b = now[BIAS, o] * one
            A_o, D_o = A0[o] + b, D0[o] + eta * one
            theta[o] = weighted(s[i], loss.theta(A_o, s[i] * D_o, y[which[o], i])) + 0.0
            expected[o] = A_o - D_o * theta[o]
            busy[o] = 1.0 * (theta[o] != 0.0)
            active += theta[o] != 0.0
        if culprit >= 0:
            done = i
            break
        if active:
            roots(x, settled, eta, penalty, solver.inner, loss, s[i], y, which, i, now, work, outputs)

        t += 1
        tick_all(penalty, now, eta)
        if active:
            after = clocks(now)
            for o in range(outputs):
                marks[o] = -(theta[o] != 0.0)
            step, moving = eta * lanes(work, 3), lanes(work, 7)
            for k in range(x.shape[0]):
                j = indices[begin + np.uint64(k)]
                new = penalty.deposit(lanes(settled, k) - step * x[k], eta, clock, after)
                put_lanes(V, j, chosen(moving, new, lanes(V, j)))
        for o in range(outputs):
            now[THETA, o] = theta[o]
            if theta[o] != 0.0:
                now[BIAS, o] -= eta * theta[o] * one
    now[T, :outputs] = t
    return done, culprit


@function
def roots(x, v, eta, penalty, inner, loss, s, y, which, i, now, work, outputs):
    """Newton's search of fiol.py for all outputs; each goes on until its own segment is found."""
    A0, D0, theta, busy, low, high, expected = work[1], work[2], work[3], work[4], work[5], work[6], work[8]
    threshold, shrink = eta * penalty.l1, 1.0 / (1.0 + eta * penalty.l2)
    D_b = eta * now[ONE, 0]
    low[:], high[:] = -inf, inf
    for _ in range(MOST_SEGMENTS):
        A, D, step = empty_sum(), empty_sum(), eta * lanes(work, 3)
        for k in range(x.shape[0]):
            w, free = penalty.land(lanes(v, k) - step * x[k], threshold, shrink)
            A = added(A, w * x[k])
            D = added(D, free * x[k] * x[k])
        put_lanes(work, 1, whole(A))
        put_lanes(work, 2, eta * shrink * whole(D))
        left = 0
        for o in range(outputs):
            if busy[o] == 0.0:
                continue
            here, label = theta[o], y[which[o], i]
            A_o, D_o = A0[o] + now[BIAS, o] * now[ONE, o] - D_b * here, D0[o] + D_b
            if abs(A_o - expected[o]) <= inner.reproduced * D_o * abs(here):
                busy[o] = 0.0
                continue
            if D_o == 0.0 and abs(side(loss, A_o, here, s, label)) <= inner.reproduced * abs(here / s):
                busy[o] = 0.0
                continue
            new = s * loss.theta(A_o + D_o * here, s * D_o, label)
            if abs(new - here) <= inner.reproduced * abs(here):
                busy[o] = 0.0
                continue
            if new > here:
                low[o] = here
            else:
                high[o] = here
            inside = low[o] < new < high[o]
            expected[o] = A_o + D_o * (here - new) if inside else nan
            theta[o] = new if inside else 0.5 * (low[o] + high[o])
            left += 1
        if left == 0:
            break
