"""COMID and FIOL for eight outputs at once: the kernels of comid.py and fiol.py, lane by lane, with the same bits.

Row j of V holds the potentials of feature j, one per output, so one look-up serves all; penalties, clocks and intercepts are
lanes too. What is asked once per row (losses, roots) is asked output by output. An output whose loss is flat on the
row is not written.
"""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from onlinear.compiled import WIDTH, chosen, fetch_lanes, function, kernel, lane, lanes, put_lanes, same_lanes
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet
from onlinear.solvers.core.dense import all_finite, intercept_step
from onlinear.solvers.core.engine import (
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
from onlinear.solvers.core.visits import block_ends, time_to_visit, visit
from onlinear.solvers.fiol import MOST_SEGMENTS, refined

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
def lane_clock(now, first, o):
    """The clock of output o, from row ``first`` on."""
    return now[first, o], now[first + 1, o], now[first + 2, o], now[first + 3, o]


@function
def clocks(now):
    """The clocks of all outputs."""
    return lanes(now, CLOCK), lanes(now, CLOCK + 1), lanes(now, CLOCK + 2), lanes(now, CLOCK + 3)


@function
def highest(row, outputs):
    """The largest lane among those of outputs."""
    most = lane(row, 0)
    for o in range(1, outputs):
        most = max(most, lane(row, o))
    return most


@function
def visit_where_due(penalty, strengths, outputs, V, t, now):
    """Let the outputs that are due visit all coordinates after t rows: each at its own decay, or all at once."""
    if block_ends(t, None) and now[VISIT, 0] != t:
        visit_together(penalty, outputs, V, t, now)
        return
    for o in range(outputs):
        if time_to_visit(t, now[VISIT, o], now[CLOCK, o], None):
            own = ElasticNet(strengths[0, o], strengths[1, o])
            clock = visit(own, lane_clock(now, CLOCK, o), V[:, o], None, None, None, t, now[:, o])
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
        if block_ends(t, None) or highest(lanes(now, CLOCK), outputs) > DECAY_LIMIT:
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
            marks[o] = -1 if g[o] != 0.0 else 0
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
                    own = ElasticNet(strengths[0, o], strengths[1, o])
                    then, after_o = lane_clock(before, 0, o), lane_clock(now, CLOCK, o)
                    move = eta * g[o] * then[0]
                    for k in range(indptr[i], indptr[i + 1]):
                        j = indices[k]
                        u = own.raw_weight(V[j, o], then) - move * values[k]
                        V[j, o] = own.raw_deposit(u, eta, then, after_o)
        elif active == outputs:
            after = clocks(now)
            step = eta * lanes(work, 1) * unit
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                u = penalty.raw_weight(lanes(V, j), clock) - step * values[k]
                put_lanes(V, j, penalty.raw_deposit(u, eta, clock, after))
        else:
            after = clocks(now)
            step, moving = eta * lanes(work, 1) * unit, lanes(work, 2)
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                v = lanes(V, j)
                u = penalty.raw_weight(v, clock) - step * values[k]
                put_lanes(V, j, chosen(moving, penalty.raw_deposit(u, eta, clock, after), v))
        put_lanes(now, BIAS, lanes(now, BIAS) - intercept_step(eta, t, solver.tied) * lanes(work, 1) * one)
        if may_burst(largest, lanes(now, CAREFUL), lanes(work, 0), eta * lanes(work, 1), outputs):
            culprit = burst(rows, i, largest, p, eta, g, V, now, outputs)
            if culprit >= 0:
                done = i
                break
    now[T, :outputs] = t
    return done, culprit


@function
def may_burst(largest, careful, p, move, outputs):
    """Whether numbers are, or once were, large enough for an output to be no longer finite. Asked of lanes, not of arrays, each
    of which is counted in and out."""
    return largest > HUGE or highest(careful, outputs) > 0.0 or highest(max(abs(p), abs(move)), outputs) > HUGE


@function
def burst(rows, i, largest, p, eta, g, V, now, outputs):
    """The first output that is no longer finite on row i, or -1; each is looked at where it would be alone."""
    indptr, indices, _ = rows
    found = -1
    for o in range(outputs):
        far = largest > HUGE or now[CAREFUL, o] > 0.0 or abs(p[o]) > HUGE or abs(eta * g[o]) > HUGE
        if g[o] != 0.0 and far:
            now[CAREFUL, o] = 1.0
            if not all_finite(V[:, o], indices, indptr[i], indptr[i + 1]) and found < 0:
                found = o
    return found


@kernel
def learn_fiol(rows, largest, y, which, s, loss, strengths, solver, V, now, scores):
    indptr, indices, values = rows
    outputs, last = scores.shape[0], np.uint64(max(1, indices.shape[0]) - 1)
    penalty = ElasticNet(lanes(strengths, 0), lanes(strengths, 1))
    t, one, reproduced = int(now[T, 0]), now[ONE, 0], solver.inner.reproduced
    settled = np.empty((longest_row(indptr), WIDTH))
    work = np.zeros((8, WIDTH))
    p, A, D, theta, low, high = work[0], work[1], work[2], work[3], work[4], work[5]
    expected, marks = work[6], work[7].view(np.int64)
    done, culprit = y.shape[1], -1
    for i in range(y.shape[1]):
        if block_ends(t, None) or highest(lanes(now, CLOCK), outputs) > DECAY_LIMIT:
            visit_where_due(penalty, strengths, outputs, V, t, now)
        eta, clock = solver.schedule.at(t + 1), clocks(now)
        begin, end = indptr[i], indptr[i + 1]

        sums = empty_sum()
        for k in range(begin, end):
            fetch_lanes(V, indices[min(k + AHEAD, last)])
            w = penalty.weight(lanes(V, indices[k]), clock)
            put_lanes(settled, k - begin, w)
            sums = added(sums, w * values[k])
        b, D_b = lanes(now, BIAS) * one, eta * one
        put_lanes(work, 0, whole(sums) + b)
        put_lanes(work, 3, same_lanes(0.0))
        put_lanes(work, 4, same_lanes(-inf))
        put_lanes(work, 5, same_lanes(inf))

        threshold, shrink = eta * penalty.l1, 1.0 / (1.0 + eta * penalty.l2)
        active = searching = 0
        for turn in range(1 + MOST_SEGMENTS):
            product, curvature, step = empty_sum(), empty_sum(), eta * lanes(work, 3)
            for part in range(4):  # eight sums of eight lanes would not fit into registers
                A_part, D_part = same_lanes(0.0), same_lanes(0.0)
                for k in range(begin + np.uint64(part), end, np.uint64(4)):
                    x = np.float64(values[k])
                    w, free = penalty.land(lanes(settled, k - begin) - step * x, threshold, shrink)
                    A_part += w * x
                    D_part += free * x * x
                product, curvature = added(product, A_part), added(curvature, D_part)
            put_lanes(work, 1, whole(product) + b - D_b * lanes(work, 3))
            put_lanes(work, 2, eta * shrink * whole(curvature) + D_b)
            searching = 0
            if turn == 0:
                for o in range(outputs):
                    if not isfinite(p[o] + D[o]) and culprit < 0:
                        culprit = o
                    theta[o] = weighted(s[i], loss.theta(A[o], s[i] * D[o], y[which[o], i])) + 0.0
                    expected[o] = A[o] - D[o] * theta[o]
                    marks[o] = -1 if theta[o] != 0.0 else 0
                    searching += theta[o] != 0.0
                active = searching
            else:
                for o in range(outputs):
                    if marks[o] != 0:
                        found, theta[o], expected[o], low[o], high[o] = refined(
                            reproduced, loss, s[i], y[which[o], i], A[o], D[o], theta[o], expected[o], low[o], high[o]
                        )
                        marks[o] = 0 if found else -1
                        searching += not found
            if searching == 0 or culprit >= 0:
                break
        for o in range(outputs):
            scores[o, i] = p[o]
            marks[o] = -1 if theta[o] != 0.0 else 0
        if culprit >= 0:
            done = i
            break

        t += 1
        tick_all(penalty, now, eta)
        put_lanes(now, THETA, lanes(work, 3))
        if active == 0:
            continue
        after = clocks(now)
        step, moving = eta * lanes(work, 3), lanes(work, 7)
        for k in range(begin, end):
            j = indices[k]
            new = penalty.deposit(lanes(settled, k - begin) - step * values[k], eta, clock, after)
            put_lanes(V, j, chosen(moving, new, lanes(V, j)))
        put_lanes(now, BIAS, lanes(now, BIAS) - step * one)
    now[T, :outputs] = t
    return done, culprit
