"""The loop over rows of outputs that one loss joins, as softmax joins the scores of all classes: functions as in loop.py.

Lanes are outputs, as in pack.py, eight in a pack; all outputs have one penalty, one clock and one step size. A row is scored
for all packs; then the loss finds the thetas of all outputs at once (softmax.py); then all packs are moved. What the loss is
asked is what ``pull`` would ask a loss of one score: of an implicit solver (a, C), of an explicit one (score, 0).

Memory: what output o = WIDTH p + l has for a feature j stands in lane l of row (w j + m) P + p of an array, with P packs and w
vectors side by side, of which this is the m-th; so each output's vector is a view. The scalars of the states stand so too.

A solver that searches for its theta says by ``searched(v, x, c, penalty)`` what it needs of an entry, and by ``on_segment(work,
first, x, m, theta, b, one, c, penalty)`` which scores A the weights of entries, in ``work`` from entry ``first`` on, have at
theta, and the slopes -D of the segment. theta is that of (19.1) with a = A + D theta and C = D, taken again until the segments
reproduce it. Where a step of that overshoots, it is halved: it is a step of Newton's method for a concave function, whose slope
along the step says so. Rows too large for that are bisected.

Where steps are divided by the size of the gradients so far, all outputs have one size, of the slopes of a row together. The
size of an output alone is small where hardly a row is of its class, and its steps would be the larger for it. The slopes
are found first, then C in the metric that has them in it, then theta; or the segment at 0 in that metric, and then the search.
"""

from __future__ import annotations

from math import inf, isfinite, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import fallen, part_sum, record, restart, sums_of, threshold_of, turned, up_to
from onlinear.compiled import (
    WIDTH,
    added,
    adopt,
    empty,
    fetch_lanes,
    function,
    in_lanes,
    kernel,
    laid_out,
    lanes,
    lanes_apart,
    lanes_like,
    load,
    number_at,
    of_output,
    put_apart,
    put_each,
    put_lanes,
    put_number,
    room,
    same_lanes,
    some,
)
from onlinear.rows import Rows
from onlinear.softmax import LARGE, ROUNDING, ROWS, SCORE, START, STEP_SIZE, THETA, find_thetas
from onlinear.solvers.core.careful import HUGE
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.pack import AHEAD, FOUR, ONE_MORE, THREE_MORE, TWO_MORE, whole
from onlinear.solvers.core.pack import turned as next_part
from onlinear.solvers.core.resting import sum_at
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, CAREFUL, CLOCK, ONE, OWN, SCALARS, VISIT, T
from onlinear.solvers.core.state import THETA as LAST_THETA
from onlinear.solvers.core.visits import mean_score, time_to_visit

# Further rows of a row's numbers: theta before a turn, the score it aimed at, and from ROW on what the row was scored by.
BEFORE, AIMED, ROW = ROWS, ROWS + 1, ROWS + 2
MOST = np.uint64(4)  # numbers that a row is scored by
NUMBERS = ROW + 4
REPRODUCED = 1e-12  # of 1 or C theta: how far a score may be off where segments count as reproduced; p is off by as much
MOST_TURNS, MOST_HALVINGS = 200, 40
BISECTIONS = 70  # of p, in logarithms: ten to its power of two, the others to its last digit
SMALLEST, MOST_LOGARITHM = 1e-300, 700.0  # of p; of -log p
FULL = np.uint64(WIDTH)


class Joined(NamedTuple):
    """What joined outputs are trained from."""

    rows: Rows
    largest: float
    own: np.ndarray  # (n,): the place of each row's class
    s: np.ndarray
    memory: dict[str, np.ndarray]  # the vectors of the states by name, as said above
    now: np.ndarray  # their scalars, as said above
    scores: np.ndarray  # (outputs, n)
    means: np.ndarray | None  # (outputs, n)

    @property
    def given(self) -> tuple[Any, ...]:
        """What a kernel is given first."""
        return self[:4]


class AskStart(NamedTuple):
    """Stands for a loss in ``pull``, which gives what it is asked at: the score a."""

    none: float = 0.0

    def slope(self, s, y):
        return s

    def theta(self, a, c, y):
        return a


class AskSize(NamedTuple):
    """Stands for a loss in ``pull``, which gives what it is asked at: C, and 0 for a slope."""

    none: float = 0.0

    def slope(self, s, y):
        return 0.0

    def theta(self, a, c, y):
        return c


START_OF, SIZE_OF = AskStart(), AskSize()


def packs_of(outputs: int) -> int:
    """How many packs hold so many outputs."""
    return -(-outputs // WIDTH)


def numbers_of_row(outputs: int) -> np.ndarray:
    """Room for the numbers of a row's outputs."""
    return np.zeros((NUMBERS, packs_of(outputs) * WIDTH))


@kernel
def learn_joined(
    rows, largest, y, s, penalty, solver, average, clocked, explicit, keeps_theta, keeps_clock, like, own, searches, shares,
    rests, drifts, V, wide, A, S, table, work, numbers, flat, now, scalars, scores, means,
):  # fmt: skip
    """Learn rows until one leaves something that is not finite; how many were learned, and the output or -1.

    V         the vectors of all states, ``wide`` rows for each feature
    A         the sums of an average from before the block, else None; B then stands beside each vector
    S         the sums of an average that need no table, and their steps, or None
    like      0, or as many zeros as a state has numbers for a feature
    own       as many zeros as the solver has numbers of its own
    shares    True where the outputs have one metric, else None
    rests     True where S has sums of weights that rest unmoved, which all outputs find together, else None
    drifts    True where S has other sums, which are found of one output at a time, else None
    work      room for what a row's entries need, where the solver searches
    numbers   the numbers of a row's outputs, (NUMBERS, outputs at least)
    flat      the same memory, (.., WIDTH)
    scalars   those of the first output, in ``now``
    """
    indptr, indices, values = rows
    outputs, packs = scores.shape[0], np.uint64(now.shape[0] // SCALARS)
    t, visited, one, clock = int(scalars[T]), int(scalars[VISIT]), scalars[ONE], load(penalty.start(), scalars, CLOCK)
    before, done, culprit = clock, y.shape[0], -1
    if explicit is not None and largest > HUGE:
        for o in range(outputs):
            put_number(now, CAREFUL * packs + np.uint64(o) // FULL, o % WIDTH, 1.0)
    for i in range(y.shape[0]):
        if clocked is not None and time_to_visit(t, visited, clock[0], A):
            visit_joined(penalty, clock, V, A, table, t - visited, now, packs)
            clock, visited = penalty.start(), t
        begin, end, finite, norm = indptr[i], indptr[i + 1], True, 0.0
        if means is not None:
            if A is not None:
                mean_scores(average, t, table, t - visited, V, A, indices, values, begin, end, numbers, flat, now, packs, one)
            if S is not None:
                its_row = indices, values, begin, end
                rested_scores(
                    average, t, clock, V, wide, like, S, its_row, numbers, flat, now, packs, one, solver, penalty, rests, drifts
                )
            for o in range(outputs):
                means[o, i] = numbers[AIMED, o]
        for p in range(packs):
            c = solver.begin_step(t + 1, clock, lanes(now, BIAS * packs + p), penalty)
            sums = sums_of_pack(indices, values, begin, end, room(V, p * FULL), wide, like, packs, solver, c, penalty)
            row = solver.scores(sums, one, s[i], c, penalty)
            if own is not None:
                put_each(row, flat, ROW * packs + p * MOST)
            row_apart, c_apart = laid_out(row), laid_out(c)
            for place in range(WIDTH):
                its, c_its, o = of_output(row_apart, place), of_output(c_apart, place), int(p) * WIDTH + place
                numbers[SCORE, o] = its[0]
                numbers[START, o] = solver.pull(its, 0.0, 1.0, c_its, START_OF)
                numbers[STEP_SIZE, o] = s[i] * solver.pull(its, 0.0, 1.0, c_its, SIZE_OF)
                finite = finite and isfinite(sum(its)) and isfinite(numbers[STEP_SIZE, o])
        for o in range(outputs):
            scores[o, i], numbers[THETA, o] = numbers[SCORE, o], 0.0
            if means is not None and t == 0:
                means[o, i] = numbers[SCORE, o]
        if finite and s[i] != 0.0:
            find_thetas(numbers, outputs, y[i])
            entries = room(values, begin), np.int64(end - begin)
            if shares is None:
                if searches is not None:
                    keep_entries(indices, values, begin, end, V, wide, like, work, packs, solver, c, penalty)
                    search(numbers, flat, outputs, y[i], s[i], one, c, work, *entries, now, packs, solver, penalty)
            else:
                norm = s[i] * take_norm(numbers, outputs)
                c = solver.begin_step(t + 1, clock, lanes(now, BIAS * packs), penalty)
                row, kept = lanes_like(its, flat, ROW * packs), lanes_apart(own, now, OWN * packs, packs)
                measured, _ = solver.measured(same_lanes(norm), row, s[i], one, c, kept)
                if searches is None:
                    size = shared_size(measured, one, V, wide, like, indices, values, begin, end, packs, solver, penalty)
                    for o in range(outputs):
                        numbers[STEP_SIZE, o] = s[i] * size
                else:
                    keep_entries(indices, values, begin, end, V, wide, like, work, packs, solver, measured, penalty)
                    look(numbers, flat, s[i], one, measured, work, *entries, now, packs, solver, penalty)
                for o in range(outputs):
                    finite = finite and isfinite(numbers[START, o] + numbers[STEP_SIZE, o])
                if finite and norm > 0.0:
                    find_thetas(numbers, outputs, y[i])
                    if searches is not None:
                        search(numbers, flat, outputs, y[i], s[i], one, measured, work, *entries, now, packs, solver, penalty)
            for o in range(outputs):
                numbers[THETA, o] *= s[i]
                if explicit is not None:
                    finite = finite and isfinite(numbers[SCORE, o] + c.eta * numbers[THETA, o])
        if not finite:
            done, culprit = i, first_astray(numbers, outputs)
            break

        t += 1
        if A is not None:
            mark = record(table, t - visited, average.om(t), c.seen[1], c.seen[2])
        for p in range(packs):
            bias, theta = lanes(now, BIAS * packs + p), lanes(flat, THETA * packs + p)
            if A is not None or S is not None:
                so_far = average.faded(lanes(now, BIAS_SUM * packs + p), 1.0)
                put_lanes(now, BIAS_SUM * packs + p, so_far + average.om(t) * bias)
            if S is not None:
                put_lanes(now, BIAS_TOTAL * packs + p, average.faded(lanes(now, BIAS_TOTAL * packs + p), 1.0))
                if due(t):
                    end_bias_sum(now, p, packs)
            if keeps_theta is not None:
                put_lanes(now, LAST_THETA * packs + p, theta)
            memory = room(V, p * FULL)
            c = solver.begin_step(t, clock, bias, penalty)
            scored = in_lanes(c)
            if own is not None:
                row, kept = lanes_like(its, flat, ROW * packs + p * MOST), lanes_apart(own, now, OWN * packs + p, packs)
                pull = theta
                if shares is not None:
                    pull = same_lanes(norm)
                measured, after = solver.measured(pull, row, s[i], one, c, kept)
                scored = in_lanes(measured)
                put_apart(after, now, OWN * packs + p, packs)
            if s[i] == 0.0 or (shares is not None and norm == 0.0):
                continue
            for k in range(begin, end):
                at = np.uint64(indices[k]) * wide
                v = lanes_apart(like, memory, at, packs)
                new = solver.moved(v, np.float64(values[k]), theta, scored, penalty)
                if A is not None:
                    if some(fallen(v, mark[0])):
                        close_lanes(table, t - visited, mark[0], memory, at, at + packs)
                    gained, new = turned(mark, v, new)
                    put_lanes(memory, at + packs, lanes(memory, at + packs) + gained)
                if S is not None:
                    kept = room(S, p * FULL)
                    sums = settled(kept, indices[k], v, average, t, flat, packs, p, solver, scored, penalty, rests, drifts)
                    put_apart(sums, kept, np.uint64(indices[k]) * (packs + packs), packs)
                put_apart(new, memory, at, packs)
            put_lanes(now, BIAS * packs + p, bias - scored.bias * theta * one)
        before, clock = clock, c.after
        if explicit is not None and s[i] != 0.0:
            culprit = burst(numbers, outputs, c.eta, V, indices, begin, end, wide, now, packs)
            if culprit >= 0:
                done = i
                break
    for p in range(packs):
        put_lanes(now, T * packs + p, same_lanes(float(t)))
        put_lanes(now, VISIT * packs + p, same_lanes(float(visited)))
        for k in range(len(clock)):
            put_lanes(now, (CLOCK + k) * packs + p, same_lanes(clock[k]))
            if keeps_clock is not None:
                put_lanes(now, (OWN + k) * packs + p, same_lanes(before[k]))
    return done, culprit


@function
def sums_of_pack(indices, values, begin, end, memory, wide, like, packs, solver, c, penalty):
    """The sums of a row's terms for a pack, in the order of ``total``."""
    count = np.uint64(indices.shape[0])
    asks, fours = end + AHEAD <= count, end - (end - begin) % FOUR
    a = b = d = e = empty(solver.terms(in_lanes(like), 0.0, c, penalty))
    for k in range(begin, fours, FOUR):
        if asks:
            for n in range(FOUR):
                fetch_lanes(memory, np.uint64(indices[k + AHEAD + n]) * wide)
        a = added(a, terms_at(indices, values, k, memory, wide, like, packs, solver, c, penalty))
        b = added(b, terms_at(indices, values, k + ONE_MORE, memory, wide, like, packs, solver, c, penalty))
        d = added(d, terms_at(indices, values, k + TWO_MORE, memory, wide, like, packs, solver, c, penalty))
        e = added(e, terms_at(indices, values, k + THREE_MORE, memory, wide, like, packs, solver, c, penalty))
    sums = a, b, d, e
    for k in range(fours, end):
        sums = next_part(sums, terms_at(indices, values, k, memory, wide, like, packs, solver, c, penalty))
    return whole(sums)


@function
def terms_at(indices, values, k, memory, wide, like, packs, solver, c, penalty):
    return solver.terms(lanes_apart(like, memory, np.uint64(indices[k]) * wide, packs), np.float64(values[k]), c, penalty)


@function
def first_astray(numbers, outputs):
    """The first output whose numbers are not finite."""
    for o in range(outputs):
        if not isfinite(numbers[SCORE, o] + numbers[START, o] + numbers[STEP_SIZE, o] + numbers[THETA, o]):
            return o
    return 0


# --- one metric ------------------------------------------------------------------------------------------------------


@function
def take_norm(numbers, outputs):
    """The norm of the slopes in THETA, which are 0 from then on."""
    squares = 0.0
    for o in range(outputs):
        squares += numbers[THETA, o] * numbers[THETA, o]
        numbers[THETA, o] = 0.0
    return sqrt(squares)


@function
def shared_size(step, one, V, wide, like, indices, values, begin, end, packs, solver, penalty):
    """C of a row in the metric of the step, by the numbers of the first output, which are those of all."""
    c = of_output(laid_out(step), 0)
    size = c.bias * one
    for k in range(begin, end):
        v = of_output(laid_out(lanes_apart(like, V, np.uint64(indices[k]) * wide, packs)), 0)
        x = np.float64(values[k])
        size += solver.leaned(solver.aimed(v, solver.weight_of(v, c, penalty), x, c, penalty), x, c)[1]
    return size


# --- the search for theta, where scores bend -------------------------------------------------------------------------


@function
def keep_entries(indices, values, begin, end, V, wide, like, work, packs, solver, c, penalty):
    """Write to ``work`` what ``on_segment`` needs of each entry, that of each pack together."""
    for p in range(packs):
        memory, first = room(V, p * FULL), p * (end - begin)
        for k in range(begin, end):
            v = lanes_apart(like, memory, np.uint64(indices[k]) * wide, packs)
            needed = solver.searched(v, np.float64(values[k]), c, penalty)
            put_each(needed, work, (first + (k - begin)) * len(needed))


@function
def search(numbers, flat, outputs, own, s, one, c, work, x, m, now, packs, solver, penalty):
    """Turn the thetas of the segments at 0 into those of the segments on which they lie."""
    for o in range(outputs):
        numbers[BEFORE, o], numbers[AIMED, o] = 0.0, numbers[START, o] - numbers[STEP_SIZE, o] * numbers[THETA, o]
    for _ in range(MOST_TURNS):
        look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty)
        found, rise = True, 0.0
        for o in range(outputs):
            error = numbers[START, o] - numbers[AIMED, o]
            far = max(1.0, numbers[STEP_SIZE, o] * abs(numbers[THETA, o]))
            found = found and abs(error) <= REPRODUCED * far + ROUNDING * abs(numbers[START, o])
            rise += error * (numbers[THETA, o] - numbers[BEFORE, o])
        if found:
            break
        halvings = 0
        while rise < 0.0 and halvings < MOST_HALVINGS:
            for o in range(outputs):
                numbers[THETA, o] = 0.5 * (numbers[THETA, o] + numbers[BEFORE, o])
            look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty)
            rise = 0.0
            for o in range(outputs):
                p = numbers[THETA, o] + (1.0 if o == own else 0.0)
                if p > 0.0:
                    rise += (numbers[START, o] - log(p)) * (numbers[THETA, o] - numbers[BEFORE, o])
            halvings += 1
        for o in range(outputs):
            numbers[BEFORE, o] = numbers[THETA, o]
            numbers[START, o] += numbers[STEP_SIZE, o] * numbers[THETA, o]
        find_thetas(numbers, outputs, own)
        for o in range(outputs):
            numbers[AIMED, o] = numbers[START, o] - numbers[STEP_SIZE, o] * numbers[THETA, o]
    if not found:
        search_level(numbers, flat, outputs, own, s, one, c, work, x, m, now, packs, solver, penalty)


@function
def search_level(numbers, flat, outputs, own, s, one, c, work, x, m, now, packs, solver, penalty):
    """Find the thetas of a row whose C is so large that segments do not reproduce them, by bisection of L; others stay.

    Between scores without a slope and segments of such a C a step of Newton's method leads nowhere near the root. For a class
    other than the row's log p + L rises with its p, and A(p) falls; with q their sum, L + log(1 - q) - A(-q) rises with L."""
    largest = size = 0.0
    for o in range(outputs):
        numbers[AIMED, o], numbers[THETA, o] = numbers[THETA, o], -1.0 if o == own else 1.0
    look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty)
    for o in range(outputs):
        size = max(size, numbers[STEP_SIZE, o])
        largest = max(largest, abs(numbers[START, o]))
        numbers[THETA, o] = 0.0
    look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty)
    for o in range(outputs):
        largest = max(largest, abs(numbers[START, o]))
        numbers[THETA, o] = numbers[AIMED, o]
    if not LARGE < size < inf:
        return
    low, high = -largest - MOST_LOGARITHM, largest + MOST_LOGARITHM
    level = 0.5 * (low + high)
    while low < level < high:
        for o in range(outputs):
            numbers[BEFORE, o], numbers[AIMED, o] = 0.0, 1.0  # p of the class lies between these
        q = 0.0
        for _ in range(BISECTIONS):
            q = 0.0
            for o in range(outputs):
                least = max(numbers[BEFORE, o], SMALLEST)
                numbers[THETA, o] = sqrt(least) * sqrt(numbers[AIMED, o])
                q += numbers[THETA, o] if o != own else 0.0
            numbers[THETA, own] = -q
            look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty)
            for o in range(outputs):
                side = BEFORE if numbers[START, o] - level > log(numbers[THETA, o] if o != own else 1.0) else AIMED
                numbers[side, o] = numbers[THETA, o]
        if q < 1.0 and level + log1p(-q) > numbers[START, own]:
            high = level
        else:
            low = level
        level = 0.5 * (low + high)


@function
def look(numbers, flat, s, one, c, work, x, m, now, packs, solver, penalty):
    """Write A and C of the segments at theta to START and STEP_SIZE."""
    for p in range(packs):
        theta = s * lanes(flat, THETA * packs + p)
        b = lanes(now, BIAS * packs + p) * one
        A, D = solver.on_segment(work, p * np.uint64(m), x, m, theta, b, one, c, penalty)
        put_lanes(flat, START * packs + p, A)
        put_lanes(flat, STEP_SIZE * packs + p, s * D)


# --- averages --------------------------------------------------------------------------------------------------------


@function
def mean_scores(average, t, table, c, V, A, indices, values, begin, end, numbers, flat, now, packs, one):
    """Write the row's scores by the averages of the predictors before the first t steps to AIMED; c steps are in the block."""
    q, (E, R) = threshold_of(table, c), sums_of(table, c)
    for p in range(packs):
        memory, earlier = room(V, p * FULL), room(A, p * FULL)
        sums = (same_lanes(0.0),), (same_lanes(0.0),), (same_lanes(0.0),), (same_lanes(0.0),)
        for k in range(begin, end):
            at = np.uint64(indices[k]) * (packs + packs)
            v = lanes(memory, at)
            put_lanes(flat, BEFORE * packs + p, (abs(v) > q) * up_to(E, R, v))
            if some(fallen(v, q)):
                for place in range(WIDTH):
                    its = number_at(memory, at, place)
                    if fallen(its, q):
                        put_number(flat, BEFORE * packs + p, place, part_sum(table, c, its))
            held = lanes(earlier, np.uint64(indices[k]) * packs) + (lanes(memory, at + packs) + lanes(flat, BEFORE * packs + p))
            sums = next_part(sums, (held * np.float64(values[k]),))
        put_lanes(flat, AIMED * packs + p, whole(sums)[0] + whole_bias_sum(now, p, packs) * one)
    for o in range(numbers.shape[1]):
        numbers[AIMED, o] = mean_score(average, t, numbers[AIMED, o], 0.0)


@function
def rested_scores(average, t, clock, V, wide, like, S, entries, numbers, flat, now, packs, one, solver, penalty, rests, drifts):
    """``mean_scores`` of sums that stand beside the steps up to which they go."""
    indices, values, begin, end = entries
    for p in range(packs):
        memory, kept = room(V, p * FULL), room(S, p * FULL)
        c = solver.begin_step(t + 1, clock, lanes(now, BIAS * packs + p), penalty)
        sums = (same_lanes(0.0),), (same_lanes(0.0),), (same_lanes(0.0),), (same_lanes(0.0),)
        for k in range(begin, end):
            v = lanes_apart(like, memory, np.uint64(indices[k]) * wide, packs)
            held, _ = settled(kept, indices[k], v, average, t, flat, packs, p, solver, c, penalty, rests, drifts)
            sums = next_part(sums, (held * np.float64(values[k]),))
        put_lanes(flat, AIMED * packs + p, whole(sums)[0] + whole_bias_sum(now, p, packs) * one)
    for o in range(numbers.shape[1]):
        numbers[AIMED, o] = mean_score(average, t, numbers[AIMED, o], 0.0)


@function
def settled(kept, j, v, average, t, flat, packs, p, solver, c, penalty, rests, drifts):
    """The sums of feature j up to step t, of weights that no row has moved since, and t. Row BEFORE is written to."""
    at = np.uint64(j) * (packs + packs)
    so_far, stamps, until = lanes(kept, at), lanes(kept, at + packs), same_lanes(float(t))
    if rests is not None:
        return sum_at(average, so_far, stamps, solver.weight_of(v, c, penalty), t), until
    if drifts is not None:
        apart = laid_out(v)
        for place in range(WIDTH):
            stamp = number_at(kept, at + packs, place)
            put_number(flat, BEFORE * packs + p, place, solver.idle_sum(of_output(apart, place), stamp, t, average, penalty))
    return average.faded(so_far, until - stamps) + lanes(flat, BEFORE * packs + p), until


@function
def whole_bias_sum(now, p, packs):
    """The sum of the intercepts."""
    return lanes(now, BIAS_TOTAL * packs + p) + lanes(now, BIAS_SUM * packs + p)


@function
def end_bias_sum(now, p, packs):
    """Add the sum of the intercepts of a block to that of the blocks before."""
    put_lanes(now, BIAS_TOTAL * packs + p, whole_bias_sum(now, p, packs))
    put_lanes(now, BIAS_SUM * packs + p, same_lanes(0.0))


@function
def close_lanes(table, c, q, memory, at, sums_at):
    """Close the sums of the outputs whose states have fallen to q."""
    for place in range(WIDTH):
        v = number_at(memory, at, place)
        if fallen(v, q):
            put_number(memory, sums_at, place, number_at(memory, sums_at, place) + part_sum(table, c, v))


@function
def visit_joined(penalty, clock, V, A, table, c, now, packs):
    """``visit`` of visits.py for all outputs, after c steps of the block; all are told where the block restarts at the end."""
    fresh = penalty.start()
    if A is None:
        for r in range(V.shape[0]):
            put_lanes(V, r, penalty.potential(penalty.weight(lanes(V, r), clock), fresh))
        return
    for r in range(A.shape[0]):
        j, p = np.uint64(r) // packs, np.uint64(r) % packs
        at = j * (packs + packs) + p
        for place in range(WIDTH):
            its = part_sum(table, c, number_at(V, at, place))
            put_number(A, r, place, number_at(A, r, place) + (number_at(V, at + packs, place) + its))
        put_lanes(V, at + packs, same_lanes(0.0))
        put_lanes(V, at, penalty.potential(penalty.weight(lanes(V, at), clock), fresh))
    restart(table)
    for p in range(packs):
        end_bias_sum(now, p, packs)


# --- steps that overshoot --------------------------------------------------------------------------------------------


@function
def burst(numbers, outputs, eta, V, indices, begin, end, wide, now, packs):
    """The first output that is no longer finite on a row whose numbers are, or once were, large; or -1."""
    for o in range(outputs):
        p, place = np.uint64(o) // FULL, o % WIDTH
        far = abs(numbers[SCORE, o]) > HUGE or abs(eta * numbers[THETA, o]) > HUGE
        if far or number_at(now, CAREFUL * packs + p, place) > 0.0:
            put_number(now, CAREFUL * packs + p, place, 1.0)
            memory = room(V, p * FULL)
            for k in range(begin, end):
                if not isfinite(number_at(memory, np.uint64(indices[k]) * wide, place)):
                    return o
    return -1


for _asked in (AskStart, AskSize):
    adopt(_asked)
