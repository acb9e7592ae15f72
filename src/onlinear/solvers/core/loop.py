"""The loop over rows, written once for every solver whose weights follow from the states of a row's columns and from clocks.

A lazy solver is five small functions of numbers and lanes, never of arrays:

    begin_step(t, clock, b, penalty)      what step t needs, the same for every entry of its row: a NamedTuple
    terms(v, x, c, penalty)               what an entry of value x, whose column is in state v, adds to the row's sums
    scores(sums, one, s, c, penalty)      the row's numbers, the score first; where one is not finite the run stops
    pull(row, y, s, c, loss)              theta, the weighted slope: the row's columns move along -theta x; 0 moves nothing
    moved(v, x, theta, c, penalty)        the state that an entry leaves behind

A step ``c`` has the fields ``eta`` and ``bias``, the sizes of the step and of the intercept's; ``after``, the clock after it;
``b``, the intercept before it; and ``seen``, the clock at which an average reads the predictor.

Arguments that are None are as good as not written: a loop is compiled for each solver. Some come with functions of their own.
``work``: ``weight_of(v, c, penalty)`` is kept for each entry, ``search`` refines theta, and ``landed`` is ``moved`` from the
weight. ``own``: ``bias_step(theta, own)`` gives the intercept's step where it depends on theta, and the number to keep.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from onlinear.averages import close_fallen, fallen, record, turned
from onlinear.compiled import (
    LANES,
    added,
    empty,
    fetch,
    first_of,
    four,
    gather,
    kernel,
    load,
    nothing,
    put,
    put_back,
    room,
    store,
    taken,
    total,
    totals,
    untouched,
)
from onlinear.solvers.core.dense import all_finite
from onlinear.solvers.core.engine import (
    AHEAD,
    BIAS,
    BIAS_SUM,
    CAREFUL,
    CLOCK,
    HUGE,
    ONE,
    OWN,
    THETA,
    VISIT,
    T,
    entries_to_fetch,
)
from onlinear.solvers.core.visits import mean_of_row, time_to_visit, visit


@kernel
def learn_rows(
    rows, largest, y, s, loss, penalty, solver, average, clocked, explicit, keeps_theta, keeps_clock, own,
    V, B, A, M, work, table, now, scores, means,
):  # fmt: skip
    """Learn rows until one leaves something that is not finite; how many were learned.

    V: the state of every column, one vector or several side by side. B, A, table: the companion of an average (averages.py).
    M: the sums of -theta x. The next are True or None. clocked: potentials are visited at times. explicit: a step can
    overshoot, so that numbers must be watched. keeps_theta, keeps_clock: the last theta, the clock before the last step are
    kept. own: the solver has a number of its own.
    """
    indptr, indices, values = rows
    clock = load(penalty.start(), now, CLOCK)
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    careful = largest > HUGE or now[CAREFUL] > 0.0
    known = entries_to_fetch(first_of(V), indices)
    before, done = clock, y.shape[0]
    if work is not None:
        most = len(work) // 6
        xs, ws, points, owner = room(work, 0), room(work, most), room(work, 2 * most), room(work, 4 * most)
    if own is not None:
        kept = now[OWN]
    for i in range(y.shape[0]):
        if clocked is not None and time_to_visit(t, now[VISIT], clock[0], B):
            clock = visit(penalty, clock, V, B, A, table, t, now)
        c = solver.begin_step(t + 1, clock, b, penalty)

        begin, end = indptr[i], indptr[i + 1]
        sums, falls = empty(solver.terms(untouched(V), nothing(), c, penalty)), nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(first_of(V), indices, k + AHEAD)
                if M is not None:
                    fetch(M, indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            v = gather(V, at)
            sums = added(sums, solver.terms(v, x, c, penalty))
            if work is not None:
                put(xs, k - begin, x)
                put(ws, k - begin, solver.weight_of(v, c, penalty))
            if B is not None:
                falls += fallen(v, c.seen[1])
        row = solver.scores(totals(sums), one, s[i], c, penalty)
        scores[i] = row[0]
        if means is not None:
            means[i] = mean_of_row(average, t, table, V, B, A, rows, i, now, row[0])
        finite = isfinite(sum(row))
        theta = solver.pull(row, y[i], s[i], c, loss) if finite else 0.0
        if work is not None and theta != 0.0:
            m = np.int64(end - begin)
            theta = solver.search(theta, row, y[i], s[i], one, c, loss, penalty, xs, ws, m, points, owner)
        if explicit is not None:
            finite = finite and isfinite(row[0] + c.eta * theta)
        if not finite:
            done = i
            break

        t += 1
        if B is not None:
            count = t - int(now[VISIT])
            mark = record(table, count, average.om(t), c.seen[1], c.seen[2])
            now[BIAS_SUM] += average.om(t) * b
        if theta != 0.0:
            if B is not None and total(falls) > 0.0:
                close_fallen(table, count, mark, V, B, indices, begin, end)
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                v = gather(V, at)
                new = solver.moved(v, x, theta, c, penalty)
                if work is not None:
                    new = solver.landed(taken(ws, k - begin), taken(xs, k - begin), theta, c, penalty)
                if B is not None:
                    gained, new = turned(mark, v, new)
                    put_back(B, at, gather(B, at) + gained)
                if M is not None:
                    put_back(M, at, gather(M, at) - theta * x)
                put_back(V, at, new)
            step = c.bias
            if own is not None:
                step, kept = solver.bias_step(theta, kept)
            b -= step * theta * one
            if explicit is not None and (careful or abs(row[0]) > HUGE or abs(c.eta * theta) > HUGE):
                careful, now[CAREFUL] = True, 1.0
                if not all_finite(first_of(V), indices, begin, end):
                    done = i
                    break
        if keeps_theta is not None:
            now[THETA] = theta
        before, clock = clock, c.after
    now[T], now[BIAS] = t, b
    store(clock, now, CLOCK)
    if keeps_clock is not None:
        store(before, now, OWN)
    if own is not None:
        now[OWN] = kept
    return done
