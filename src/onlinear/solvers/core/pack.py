"""The loop over rows of eight outputs side by side, written once: the solver's functions are those of loop.py.

Lanes are outputs here. Row j of V holds the states of feature j, one per output, so that one look-up serves all; clocks,
penalties and intercepts are lanes too. What is asked once per row and output, ``pull``, is asked of one output's numbers.
An output that the row does not move is not written. Each output has the bits that it has alone.

A solver that searches for theta has ``search_all`` beside ``search``, or ``found_all`` beside ``found``: it does for all
outputs together what that does for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import turned as turned_at
from onlinear.compiled import (
    LANES,
    WIDTH,
    added,
    borrowed,
    chosen,
    empty,
    fetch_lanes,
    first_of,
    four,
    function,
    gather_output,
    in_lanes,
    kernel,
    laid_out,
    lanes,
    lanes_like,
    no_lanes,
    number_at,
    of_output,
    put_back_output,
    put_each,
    put_lanes,
    put_number,
    room,
    same_lanes,
    some,
    taken_output,
)
from onlinear.rows import Rows
from onlinear.solvers.core.careful import is_careful, mark_careful, some_careful
from onlinear.solvers.core.dense import all_finite
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.pack_averages import (
    PULLS,
    ROOM_TO_CLOSE,
    close_listed,
    listed,
    part_sums,
    record_each,
    steps_of,
    table_of,
    tables_of,
    take_steps,
)
from onlinear.solvers.core.resting import sum_at
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, CLOCK, ONE, OWN, THETA, VISIT, T
from onlinear.solvers.core.visits import block_ends, decay_limit, mean_score, time_to_visit, visit

AHEAD = np.uint64(64)  # entries between a look-up and the request for its row
PLACES = np.uint64(5)  # rows of an entry that a search aims at: four numbers, and its weight
FOUR, ONE_MORE, TWO_MORE, THREE_MORE = np.uint64(4), np.uint64(1), np.uint64(2), np.uint64(3)
FEW = 2  # outputs to be written up to which one after the other is faster than all at once
# Rows of a pack's room after PULLS: the marks of theta, the targets, three of a search, the outputs that theta is sought for;
# after those of pack_averages.py three that ask a loss for it, and the row's weights, or five numbers of each entry.
MARKS, TARGETS, SEARCH, LEFT = 1, 2, 3, 6
ASKED, WEIGHTS = 12, 15


class Abreast(NamedTuple):
    """What outputs are trained from side by side."""

    rows: Rows
    largest: float
    y: np.ndarray  # (targets, n)
    which: np.ndarray  # (outputs,): the row of y that holds the targets of an output
    s: np.ndarray
    strengths: np.ndarray  # the numbers of the penalties, a column for each output
    vectors: Mapping[str, np.ndarray]  # of the states: row j holds what the outputs have for feature j
    now: np.ndarray  # the scalars of the states, a column for each output
    scores: np.ndarray  # (outputs, n)
    means: np.ndarray | None = None  # the scores of the averages, where they are asked for
    table: np.ndarray | None = None  # the prefix tables of averages, one after the other

    @property
    def given(self) -> tuple[Any, ...]:
        """What a kernel is given first."""
        return self[:5]


def work_of_pack(weights: int | None = None) -> np.ndarray:
    """Room for the numbers of a row of a pack, and where theta is searched for, for as many of its weights, which may be 0."""
    return np.zeros((WEIGHTS if weights is None else WEIGHTS + max(weights, int(PLACES)) + int(LANES), WIDTH))


@function
def turned(sums, terms):
    """The four parts of a row's sums, which take every fourth entry in turn, with the terms of the next entry in them."""
    a, b, c, d = sums
    return b, c, d, added(a, terms)


@function
def whole(sums):
    """The parts added up, in the order of ``total``, which is the same whose turn it is."""
    a, b, c, d = sums
    return added(added(a, c), added(b, d))


@function
def terms_at(v, values, k, begin, work, searches, aims, solver, c, penalty):
    """The terms of entry k, of states v, whose weights are kept for a search."""
    if searches is not None:
        put_lanes(work, WEIGHTS + k - begin, solver.weight_of(v, c, penalty))
    if aims is not None:
        put_lanes(work, WEIGHTS + PLACES * (k - begin) + FOUR, solver.weight_of(v, c, penalty))
    return solver.terms(v, np.float64(values[k]), c, penalty)


@function
def mean_at(indices, values, k, begin, V, S, work, aims, average, t, solver, c, penalty):
    """What entry k adds to the scores of the averages after t steps."""
    so_far, _ = settled(indices[k], k - begin, V, S, work, aims, average, t, solver, c, penalty)
    return (so_far * np.float64(values[k]),)


@function
def settled(j, e, V, S, work, aims, average, t, solver, c, penalty):
    """The sums of feature j, entry e of the row, up to step t, and t, for outputs side by side."""
    so_far, stamps = lanes(S, j)
    w = solver.weight_of(lanes(V, j), c, penalty) if aims is None else lanes(work, WEIGHTS + PLACES * e + FOUR)
    return sum_at(average, so_far, stamps, w, t), same_lanes(float(t))


@function
def aim_lanes(work, e):
    """The four numbers of the row's entry e that a search aims with."""
    first = WEIGHTS + PLACES * e
    return lanes(work, first), lanes(work, first + ONE_MORE), lanes(work, first + TWO_MORE), lanes(work, first + THREE_MORE)


@function
def lean_of_row(indices, values, begin, end, V, work, solver, c, penalty):
    """Where a search of the row begins; each entry's four numbers take the place of its weight."""
    nought = empty(solver.leaned(aim_lanes(work, np.uint64(0)), 0.0, c))
    sums = nought, nought, nought, nought
    for k in range(begin, end):
        first, x = WEIGHTS + PLACES * (k - begin), np.float64(values[k])
        aim = solver.aimed(lanes(V, indices[k]), lanes(work, first + FOUR), x, c, penalty)
        put_lanes(work, first, aim[0])
        put_lanes(work, first + ONE_MORE, aim[1])
        put_lanes(work, first + TWO_MORE, aim[2])
        put_lanes(work, first + THREE_MORE, aim[3])
        sums = turned(sums, solver.leaned(aim, x, c))
    return whole(sums)


@function
def write_means(average, t, found, now, one, outputs, means, i):
    """The scores of row i by the averages before the first t steps; ``found``: the sums over its columns, and the scores."""
    for o in range(outputs):
        sums, p = of_output(found, o)
        means[o, i] = mean_score(average, t, sums + (now[BIAS_TOTAL, o] + now[BIAS_SUM, o]) * one, p)


@kernel
def learn_pack(
    rows, largest, y, which, s, loss, like, strengths, solver, clocked, explicit, keeps_theta, keeps_clock, own, searches, aims,
    average, V, B, A, S, table, falls, work, now, scores, means,
):  # fmt: skip
    """Learn rows until an output has something that is not finite; how many were learned, and that output or -1.

    like             the penalty of one output
    strengths        the numbers of the penalties of all
    searches, aims   True or None: how theta is searched for
    S                the sums of an average of weights without a penalty, or None
    falls            room for the entries of a row whose states fell

    The others are as in loop.py.
    """
    indptr, indices, values = rows
    outputs, count = scores.shape[0], np.uint64(indices.shape[0])
    penalty, first = lanes_like(like, strengths, 0), like.start()
    known = count - AHEAD if count > AHEAD else np.uint64(0)
    t, one, marks = int(now[T, 0]), now[ONE, 0], work[MARKS].view(np.int64)
    done, culprit = y.shape[1], -1
    tables: Any = None if table is None else tables_of(table, work, now, outputs)
    if B is not None:
        take_steps(tables, t)
    if explicit is not None:
        mark_careful(now, largest, outputs)
    for i in range(y.shape[1]):
        if clocked is not None and (block_ends(t, B) or some(lanes(now, CLOCK) > decay_limit(B))):
            visit_where_due(penalty, first, outputs, V, B, A, tables, t, now)
        clock = lanes_like(first, now, CLOCK)
        c = solver.begin_step(t + 1, clock, lanes(now, BIAS), penalty)

        begin, end = indptr[i], indptr[i + 1]
        nought = empty(solver.terms(no_lanes(V), 0.0, c, penalty))
        a = b = d = e = nought  # the parts of a sum, each of every fourth entry: the order of ``total``
        asks, fours, fell = end <= known, end - (end - begin) % FOUR, 0
        for k in range(begin, fours, FOUR):
            if asks:
                for n in range(FOUR):
                    fetch_lanes(V, indices[k + AHEAD + n])
                    if B is not None:
                        fetch_lanes(B, indices[k + AHEAD + n])
            va, vb = lanes(V, indices[k]), lanes(V, indices[k + ONE_MORE])
            vd, ve = lanes(V, indices[k + TWO_MORE]), lanes(V, indices[k + THREE_MORE])
            if B is not None:
                fell = listed(falls, fell, k, va, c.seen[1])
                fell = listed(falls, fell, k + ONE_MORE, vb, c.seen[1])
                fell = listed(falls, fell, k + TWO_MORE, vd, c.seen[1])
                fell = listed(falls, fell, k + THREE_MORE, ve, c.seen[1])
            a = added(a, terms_at(va, values, k, begin, work, searches, aims, solver, c, penalty))
            b = added(b, terms_at(vb, values, k + ONE_MORE, begin, work, searches, aims, solver, c, penalty))
            d = added(d, terms_at(vd, values, k + TWO_MORE, begin, work, searches, aims, solver, c, penalty))
            e = added(e, terms_at(ve, values, k + THREE_MORE, begin, work, searches, aims, solver, c, penalty))
        sums = a, b, d, e
        for k in range(fours, end):
            v = lanes(V, indices[k])
            if B is not None:
                fell = listed(falls, fell, k, v, c.seen[1])
            sums = turned(sums, terms_at(v, values, k, begin, work, searches, aims, solver, c, penalty))
        row = solver.scores(whole(sums), one, s[i], c, penalty)
        if means is not None and B is not None:
            mean_sum = same_lanes(0.0)
            for k in range(begin, end):
                j = indices[k]
                lacks = part_sums(tables, t, lanes(V, j))
                mean_sum = mean_sum + (lanes(A, j) + (lanes(B, j) + lacks)) * np.float64(values[k])
            write_means(average, t, laid_out((mean_sum, row[0])), now, one, outputs, means, i)
        if means is not None and S is not None:
            nothing_yet = (same_lanes(0.0),)
            mean_sums = nothing_yet, nothing_yet, nothing_yet, nothing_yet
            for k in range(begin, end):
                mean_sums = turned(
                    mean_sums, mean_at(indices, values, k, begin, V, S, work, aims, average, t, solver, c, penalty)
                )
            write_means(average, t, laid_out((whole(mean_sums)[0], row[0])), now, one, outputs, means, i)
        row_apart, c_apart = laid_out(row), laid_out(c)
        active = 0
        if searches is not None:
            for o in range(outputs):
                work[TARGETS, o] = y[which[o], i]
                work[LEFT, o] = 1.0 if isfinite(sum(of_output(row_apart, o))) else 0.0
            found = laid_out((solver.pulls(row, s[i], c, loss, room(work, 0), outputs),))
        for o in range(outputs):
            its, c_its = of_output(row_apart, o), of_output(c_apart, o)
            scores[o, i] = its[0]
            finite, target = isfinite(sum(its)), y[which[o], i]
            theta = 0.0
            if searches is not None:
                theta = of_output(found, o)[0] if finite else theta
            else:
                theta = solver.pull(its, target, s[i], c_its, loss) if finite else theta
            if explicit is not None:
                finite = finite and isfinite(its[0] + c_its.eta * theta)
            if not finite and culprit < 0:
                culprit = o
            if aims is not None:
                work[TARGETS, o] = target
            work[PULLS, o], marks[o] = theta, -1 if theta != 0.0 else 0
            active += theta != 0.0
        if culprit >= 0:
            done = i
            break
        scored = in_lanes(c)
        if own is not None:
            measured, kept = solver.measured(lanes(work, PULLS), row, s[i], one, c, lanes_like(own, now, OWN))
            scored = in_lanes(measured)
            put_each(kept, now, OWN)
        if aims is not None and active > 0:
            lean = lean_of_row(indices, values, begin, end, V, work, solver, scored, penalty)
            entries = room(values, begin), np.int64(end - begin)
            solver.found_all(lean, room(work, 0), outputs, s[i], one, scored, loss, *entries)
        if searches is not None and active > 0:
            entries = room(values, begin), np.int64(end - begin)
            solver.search_all(room(work, 0), outputs, row, s[i], one, c, loss, penalty, *entries)
            active = 0
            for o in range(outputs):
                marks[o] = -1 if work[PULLS, o] != 0.0 else 0
                active += work[PULLS, o] != 0.0

        t += 1
        if B is not None:
            mark = record_each(tables, t, average.om(t), c.seen[1], c.seen[2])
            put_lanes(now, BIAS_SUM, lanes(now, BIAS_SUM) + average.om(t) * c.b)
        if S is not None:
            put_lanes(now, BIAS_SUM, lanes(now, BIAS_SUM) + average.om(t) * c.b)
            if due(t):
                put_lanes(now, BIAS_TOTAL, lanes(now, BIAS_TOTAL) + lanes(now, BIAS_SUM))
                put_lanes(now, BIAS_SUM, same_lanes(0.0))
        pulls, moving = lanes(work, PULLS), lanes(work, MARKS)
        put_each(c.after, now, CLOCK)
        if keeps_theta is not None:
            put_lanes(now, THETA, pulls)
        if keeps_clock is not None:
            put_each(clock, now, OWN)
        if active == 0:
            continue
        if B is not None and fell > 0:
            close_listed(tables, t, *borrowed((V, B, indices, falls)), falls.shape[0] // ROOM_TO_CLOSE, fell)
        if active == outputs:
            for k in range(begin, end):
                j, x = indices[k], np.float64(values[k])
                new = solver.moved(lanes(V, j), x, pulls, scored, penalty)
                if searches is not None:
                    new = solver.landed(lanes(work, WEIGHTS + k - begin), x, pulls, scored, penalty)
                if aims is not None:
                    new = solver.reached(aim_lanes(work, k - begin), x, pulls, scored)
                if B is not None:
                    gained, new = turned_at(mark, lanes(V, j), new)
                    put_lanes(B, j, lanes(B, j) + gained)
                if S is not None:
                    put_lanes(S, j, settled(j, k - begin, V, S, work, aims, average, t, solver, c, penalty))
                put_lanes(V, j, new)
        elif active > FEW:
            for k in range(begin, end):
                j, x = indices[k], np.float64(values[k])
                v = lanes(V, j)
                new = solver.moved(v, x, pulls, scored, penalty)
                if searches is not None:
                    new = solver.landed(lanes(work, WEIGHTS + k - begin), x, pulls, scored, penalty)
                if aims is not None:
                    new = solver.reached(aim_lanes(work, k - begin), x, pulls, scored)
                if B is not None:
                    gained, new = turned_at(mark, v, new)
                    put_lanes(B, j, chosen(moving, lanes(B, j) + gained, lanes(B, j)))
                if S is not None:
                    put_lanes(
                        S,
                        j,
                        chosen(moving, settled(j, k - begin, V, S, work, aims, average, t, solver, c, penalty), lanes(S, j)),
                    )
                put_lanes(V, j, chosen(moving, new, v))
        else:
            scored_apart = laid_out(scored)
            for o in range(outputs):
                theta = work[PULLS, o]
                if marks[o] != 0:
                    c_its, own_penalty = of_output(scored_apart, o), of_output(penalty, o)
                    if aims is not None or S is not None:
                        for k in range(begin, end):
                            j, x = indices[k], np.float64(values[k])
                            new = solver.moved(number_at(V, j, o), x, theta, c_its, own_penalty)
                            if aims is not None:
                                new = solver.reached(of_output(laid_out(aim_lanes(work, k - begin)), o), x, theta, c_its)
                            if S is not None:
                                sums = settled(j, k - begin, V, S, work, aims, average, t, solver, c, penalty)
                                put_number(S, j, o, of_output(laid_out(sums), o))
                            put_number(V, j, o, new)
                    else:
                        for k in range(begin, end, LANES):
                            at, x = four(indices, values, k, end)
                            v = gather_output(V, at, o)
                            new = solver.moved(v, x, theta, c_its, own_penalty)
                            if searches is not None:
                                new = solver.landed(taken_output(work, WEIGHTS + k - begin, o), x, theta, c_its, own_penalty)
                            if B is not None:
                                gained, new = turned_at(steps_of(tables.work, o), v, new)
                                put_back_output(B, at, o, gather_output(B, at, o) + gained)
                            put_back_output(V, at, o, new)
        put_lanes(now, BIAS, lanes(now, BIAS) - scored.bias * pulls * one)
        if explicit is not None:
            move = scored.eta * pulls
            if some_careful(now, row[0], move):
                culprit = burst(indices, begin, end, laid_out((row[0], pulls, move)), first_of(V), now, outputs)
                if culprit >= 0:
                    done = i
                    break
    now[T, :outputs] = t
    return done, culprit


@function
def burst(indices, begin, end, sizes, V, now, outputs):
    """The first output that is no longer finite on a row, or -1; each is looked at where it would be alone.

    sizes: the scores, the slopes and the steps of all.
    """
    found = -1
    for o in range(outputs):
        p, theta, move = of_output(sizes, o)
        careful = theta != 0.0 and is_careful(now[:, o], max(abs(p), abs(move)))
        if careful and not all_finite(V[:, o], indices, begin, end) and found < 0:
            found = o
    return found


@function
def visit_where_due(penalty, first, outputs, V, B, A, tables, t, now):
    """Let the outputs that are due visit all coordinates after t rows: all at once, or each at its own decay."""
    clock = lanes_like(first, now, CLOCK)
    if block_ends(t, B):
        if now[VISIT, 0] != t:
            for j in range(V.shape[0]):
                if B is not None:
                    put_lanes(A, j, lanes(A, j) + (lanes(B, j) + part_sums(tables, t, lanes(V, j))))
                    put_lanes(B, j, same_lanes(0.0))
                put_lanes(V, j, penalty.potential(penalty.weight(lanes(V, j), clock), first))
            if B is not None:
                put_lanes(now, BIAS_TOTAL, lanes(now, BIAS_TOTAL) + lanes(now, BIAS_SUM))
                put_lanes(now, BIAS_SUM, same_lanes(0.0))
            put_lanes(now, VISIT, same_lanes(float(t)))
            put_each(first, now, CLOCK)
            if B is not None:
                take_steps(tables, t)
        return
    for o in range(outputs):
        then = of_output(clock, o)
        if time_to_visit(t, now[VISIT, o], then[0], B):
            if B is None:
                fresh = visit(of_output(penalty, o), then, V[:, o], None, None, None, t, now[:, o])
            else:
                fresh = visit(of_output(penalty, o), then, V[:, o], B[:, o], A[:, o], table_of(tables, o), t, now[:, o])
                take_steps(tables, t)
            for k in range(len(fresh)):
                now[CLOCK + k, o] = fresh[k]
