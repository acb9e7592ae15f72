"""The loop over rows, written once for every solver whose weights follow from the states of a row's columns and from clocks.

A lazy solver is five small functions of numbers and lanes, never of arrays:

    begin_step(t, clock, b, penalty)      what step t needs, the same for every entry of its row: a NamedTuple
    terms(v, x, c, penalty)               what an entry of value x, whose column is in state v, adds to the row's sums
    scores(sums, one, s, c, penalty)      the row's numbers, the score first; where one is not finite the run stops
    pull(row, y, s, c, loss)              theta, the weighted slope: the row's columns move along -theta x; 0 moves nothing
    moved(v, x, theta, c, penalty)        the state that an entry leaves behind

A step ``c`` has the fields ``eta`` and ``bias``, the sizes of the step and of the intercept's; ``after``, the clock after it;
``b``, the intercept before it; and ``seen``, the clock at which an average reads the predictor.

Arguments that are None are as good as not written: a loop is compiled for each solver. The compiler sees that of arguments
alone, not of fields, so the loop takes each by itself. Some come with functions of the solver:

    work    ``weight_of(v, c, penalty)`` is kept for each entry; ``search`` refines theta; ``landed`` is ``moved`` from there
    own     numbers of the solver's own: ``measured(theta, row, s, one, c, own)`` gives the step and these numbers once the row
            is scored; the intercept moves from that step's ``b``
    aims    for a search that needs more than weights. States and ``weight_of`` are kept for each entry. Where a row moves,
            ``aimed(v, w, x, c, penalty)`` are four numbers; ``leaned(aim, x, c)``, terms of sums, says where to begin;
            ``found`` is theta, from these sums and the first two numbers of each entry; ``reached(aim, x, theta, c)`` is
            ``moved`` from there
    S       the sums of an average without a table: ``idle_sum(v, stamp, t, average, penalty)`` is what they lack (plain.py)
    gains   what the steps gained is summed (``add_gain``)
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from onlinear.averages import close_fallen, fallen, moved_sum, record, turned
from onlinear.compiled import (
    LANES,
    added,
    at_column,
    borrowed,
    empty,
    fetch,
    first_of,
    four,
    function,
    gather,
    kernel,
    load,
    nothing,
    put,
    put_all,
    put_back,
    room,
    store,
    taken,
    taken_all,
    total,
    totals,
    untouched,
)
from onlinear.losses import summed, weighted
from onlinear.rows import AHEAD, Rows, ask_for_row, entries_to_fetch, rows_between
from onlinear.rows.scaling import scale_entries
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import all_finite
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.resting import sum_at
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, CLOCK, ONE, OWN, THETA, VISIT, T
from onlinear.solvers.core.visits import mean_of_resting, mean_of_row, mean_of_sums, time_to_visit, visit

OF_SEARCH = 6  # numbers of an entry that are kept where theta is searched for by ``work``
OF_AIMS = 7  # the same by ``aims``, beside those of its state


def room_to_search(rows: Rows, numbers: int = OF_SEARCH) -> np.ndarray:
    """Room for some ``numbers`` of each entry of the longest row, where a solver searches for theta."""
    return np.empty(numbers * (rows.longest + 3))


@function
def add_gain(gains, rows, begin, end, before, y, s, one, eta, after, loss, penalty, solver, V):
    """Add what the step on a row gained to gains[0] + gains[1], compensated (Neumaier), and eta |g|^2 / 2 to gains[2].

        s [l(p_new) - l(p)] - g_p (p_new - p),     g = g_p (x, 1),     g_p = s l'(p)

    with the row's scores p before the step and p_new after it; ``after``: the next step. A gain is never below 0: one that is
    not finite may be left out of a bound.
    """
    _, indices, values = rows
    sums, squares = empty(solver.terms(untouched(V), nothing(), after, penalty)), nothing()
    for k in range(begin, end, LANES):
        at, x = four(indices, values, k, end)
        sums = added(sums, solver.terms(gather(V, at), x, after, penalty))
        squares += x * x
    score = solver.scores(totals(sums), one, s, after, penalty)[0]
    slope = weighted(s, loss.slope(before, y))
    gain = weighted(s, loss.value(score, y) - loss.value(before, y)) - slope * (score - before)
    if isfinite(gain):
        gains[0], gains[1] = summed(gains[0], gains[1], gain)
    gains[2] += 0.5 * eta * slope * slope * (total(squares) + one * one)


@kernel
def learn_rows(
    rows, largest, y, s, ends, loss, penalty, solver, average, clocked, explicit, keeps_theta, keeps_clock, own, drifts, scales,
    V, B, A, S, M, work, aims, listed, gains, table, now, scores, means,
):  # fmt: skip
    """Learn rows until one leaves something that is not finite; how many were learned.

    Rows may stand in any order, and are asked for ahead: ``indptr`` says where each begins, and ``ends`` where it ends.

    V            the state of every column, one vector or several side by side
    B, A, table  the companion of an average (averages.py)
    S            the sums of an average that needs no table, and the steps up to which they go
    M            the sums of -theta x
    own          zeros, as many as the solver has numbers of its own
    scales       where rows are not in their scales yet: counts and moments of the columns, whether of squares, and room for two
                 rows; no means are asked for then
    listed       room for the entries of a row whose states fell

    True or None:

    clocked      potentials are visited at times
    explicit     a step can overshoot, so that numbers must be watched
    keeps_theta  the last theta is kept
    keeps_clock  the clock before the last step is kept
    drifts       weights that rest move, so that sums take a search
    """
    begins, indices, values = rows
    clock = load(penalty.start(), now, CLOCK)
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    careful = False
    if explicit is not None:
        careful = is_careful(now, largest)
    known = entries_to_fetch(first_of(V), indices)
    before, done = clock, y.shape[0]
    early = rows_between(begins, ends)
    if work is not None:
        most = len(work) // OF_SEARCH
        xs, ws, points, owner = room(work, 0), room(work, most), room(work, 2 * most), room(work, 4 * most)
    if aims is not None:
        most = len(aims) // (OF_AIMS + len(V))
        xs, ws, aim_0 = room(aims, 0), room(aims, most), room(aims, 2 * most)
        aim_1, aim_2, aim_3 = room(aims, 3 * most), room(aims, 4 * most), room(aims, 5 * most)
        settled, states = room(aims, 6 * most), room(aims, 7 * most)
    if own is not None:
        kept = load(own, now, OWN)
    if scales is not None:
        moments, squared, pair = scales
        scaled, ahead, held = room(pair, 0), room(pair, len(pair) // 2), borrowed(moments)
        if y.shape[0] > 0:
            scale_entries(rows, begins[0], ends[0], s[0] > 0.0, held, None, 0.0, squared, None, scaled, np.uint64(0))
    for i in range(y.shape[0]):
        if clocked is not None and time_to_visit(t, now[VISIT], clock[0], B):
            clock = visit(penalty, clock, V, B, A, table, t, now)
        c, moves = solver.begin_step(t + 1, clock, b, penalty), False

        begin, end = begins[i], ends[i]
        if i + early < y.shape[0]:
            ask_for_row(indices, values, begins[i + early], ends[i + early])
        sums, falls, mean_sum = empty(solver.terms(untouched(V), nothing(), c, penalty)), nothing(), nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(first_of(V), indices, k + AHEAD)
                if M is not None:
                    fetch(M, indices, k + AHEAD)
                if S is not None:
                    fetch(first_of(S), indices, k + AHEAD)
                if scales is not None:
                    fetch(held[1], indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            if scales is not None:
                x = taken(scaled, k - begin)
            v = gather(V, at)
            sums = added(sums, solver.terms(v, x, c, penalty))
            if work is not None:
                put(xs, k - begin, x)
                put(ws, k - begin, solver.weight_of(v, c, penalty))
            if aims is not None:
                put(xs, k - begin, x)
                put_all(states, k - begin, v)
                put(ws, k - begin, solver.weight_of(v, c, penalty))
            if B is not None and drifts is not None:
                falls += fallen(v, c.seen[1])
            if S is not None and means is not None and drifts is None:
                so_far, stamps = gather(S, at)
                w = solver.weight_of(v, c, penalty)
                mean_sum += sum_at(average, so_far, stamps, w, t) * x
                if aims is not None:
                    put(settled, k - begin, sum_at(average, so_far, stamps, w, t + 1))
        row = solver.scores(totals(sums), one, s[i], c, penalty)
        scores[i] = row[0]
        if means is not None:
            means[i] = row[0]
            if B is not None:
                means[i] = mean_of_row(average, t, table, V, B, A, rows, begin, end, now, row[0])
            if S is not None:
                if drifts is not None:
                    means[i] = mean_of_resting(solver, penalty, average, t, V, S, rows, begin, end, now, row[0])
                else:
                    means[i] = mean_of_sums(average, t, total(mean_sum), now, row[0])
        finite = isfinite(sum(row))
        if scales is not None and i + 1 < y.shape[0]:  # while theta is found: its numbers wait for each other
            learns = s[i + 1] > 0.0
            scale_entries(rows, begins[i + 1], ends[i + 1], learns, held, None, 0.0, squared, None, ahead, np.uint64(0))
        theta = solver.pull(row, y[i], s[i], c, loss) if finite else 0.0
        if own is not None:
            c, after = solver.measured(theta, row, s[i], one, c, kept)
        if work is not None and theta != 0.0:
            m = np.int64(end - begin)
            theta = solver.search(theta, row, y[i], s[i], one, c, loss, penalty, xs, ws, m, points, owner)
        if aims is not None and theta != 0.0:
            moves = True  # even where theta is 0 in the end
            lean = empty(solver.leaned((nothing(), nothing(), nothing(), nothing()), nothing(), c))
            for k in range(begin, end, LANES):
                x, v = taken(xs, k - begin), taken_all(states, k - begin, untouched(V))
                aim = solver.aimed(v, taken(ws, k - begin), x, c, penalty)
                lean = added(lean, solver.leaned(aim, x, c))
                put(aim_0, k - begin, aim[0])
                put(aim_1, k - begin, aim[1])
                put(aim_2, k - begin, aim[2])
                put(aim_3, k - begin, aim[3])
            theta = solver.found(totals(lean), y[i], s[i], one, c, loss, xs, aim_0, aim_1, np.int64(end - begin))
        if explicit is not None:
            finite = finite and isfinite(row[0] + c.eta * theta)
        if not finite:
            done = i
            break

        t += 1
        if own is not None:
            kept, b = after, c.b
        if B is not None:
            count = t - int(now[VISIT])
            mark = record(table, count, average.om(t), c.seen[1], c.seen[2])
            now[BIAS_SUM] += average.om(t) * b
        if S is not None:
            now[BIAS_SUM] = average.faded(now[BIAS_SUM], 1.0) + average.om(t) * b
            now[BIAS_TOTAL] = average.faded(now[BIAS_TOTAL], 1.0)
            if due(t):
                now[BIAS_TOTAL] += now[BIAS_SUM]
                now[BIAS_SUM] = 0.0
        if theta != 0.0 or moves:
            if S is not None and drifts is not None:
                for k in range(begin, end):
                    j = np.uint64(indices[k])
                    so_far = average.faded(S[0][j], float(t) - S[1][j])
                    S[0][j] = so_far + solver.idle_sum(at_column(V, j), S[1][j], t, average, penalty)
                    S[1][j] = t
            if B is not None and drifts is not None and total(falls) > 0.0:
                close_fallen(table, count, mark, V, B, indices, begin, end, listed)
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                if scales is not None:
                    x = taken(scaled, k - begin)
                if B is not None:
                    v, so_far = gather((V, B), at)
                else:
                    v = gather(V, at)
                new = solver.moved(v, x, theta, c, penalty)
                if work is not None:
                    new = solver.landed(taken(ws, k - begin), taken(xs, k - begin), theta, c, penalty)
                if aims is not None:
                    e = k - begin
                    aim = taken(aim_0, e), taken(aim_1, e), taken(aim_2, e), taken(aim_3, e)
                    new = solver.reached(aim, taken(xs, e), theta, c)
                if B is not None:
                    if drifts is not None:
                        gained, new = turned(mark, v, new)
                    else:
                        gained = moved_sum(mark, v, new)
                    put_back((V, B), at, (new, so_far + gained))
                if M is not None:
                    put_back(M, at, gather(M, at) - theta * x)
                if S is not None and drifts is None:
                    if aims is not None and means is not None:
                        put_back(S, at, (taken(settled, k - begin), nothing() + t))
                    else:
                        so_far, stamps = gather(S, at)
                        put_back(S, at, (sum_at(average, so_far, stamps, solver.weight_of(v, c, penalty), t), nothing() + t))
                if B is None:
                    put_back(V, at, new)
            b -= c.bias * theta * one
            if explicit is not None:
                careful = is_careful_after(now, careful, row[0], c.eta * theta)
                if careful and not all_finite(first_of(V), indices, begin, end):
                    done = i
                    break
        if keeps_theta is not None:
            now[THETA] = theta
        before, clock = clock, c.after
        if scales is not None:
            scaled, ahead = ahead, scaled
        if gains is not None:
            after = solver.begin_step(t + 1, clock, b, penalty)
            add_gain(gains, rows, begin, end, row[0], y[i], s[i], one, c.eta, after, loss, penalty, solver, V)
    now[T], now[BIAS] = t, b
    store(clock, now, CLOCK)
    if keeps_clock is not None:
        store(before, now, OWN)
    if own is not None:
        store(kept, now, OWN)
    return done
