"""What averages.py says of one output's sums and table, for the outputs of a pack.

Functions here are given memory, not arrays: an array is counted in and out by each call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import (
    NUMBERS,
    alive_near,
    along,
    enter,
    fallen,
    grown,
    part_sum,
    sums_of,
    threshold_of,
    up_to,
)
from onlinear.compiled import (
    WIDTH,
    ask,
    function,
    laid_out,
    lanes,
    number_at,
    of_output,
    places_of,
    put_lanes,
    put_number,
    room,
    some,
    where,
)
from onlinear.solvers.core.state import VISIT

# Rows of a pack's room: theta, how far the last threshold rose, it and the prefix sums after the last step, and what sums of
# features lack.
PULLS, GAPS, STEPS, PART = 0, 7, 8, 11


ROOM_TO_CLOSE = 2 * WIDTH + 1  # numbers for each entry of a row: the entry, its states, and where their steps are looked for


class Tables(NamedTuple):
    """The memory of a pack's prefix tables, one output's after the other's, ``each`` numbers long; of its room and scalars."""

    table: Any
    each: Any
    work: Any
    now: Any
    outputs: Any


@function
def tables_of(table, work, now, outputs):
    """The memory of arrays that are a kernel's arguments."""
    return Tables(room(table, 0), table.shape[0] // WIDTH, room(work, 0), room(now, 0), outputs)


@function
def table_of(tables, o):
    """The prefix table of output o."""
    return room(tables.table, o * tables.each)


@function
def count_of(tables, o, t):
    """The steps of output o's block after t rows."""
    return t - int(number_at(tables.now, VISIT, o))


@function
def steps_of(work, o):
    """The threshold and the prefix sums of output o after the last step."""
    return number_at(work, STEPS, o), number_at(work, STEPS + 1, o), number_at(work, STEPS + 2, o)


@function
def put_steps_of(work, o, q, E, R):
    """Write what ``steps_of`` gives."""
    put_number(work, STEPS, o, q)
    put_number(work, STEPS + 1, o, E)
    put_number(work, STEPS + 2, o, R)


@function
def take_steps(tables, t):
    """Find the thresholds and the prefix sums after t rows in the tables."""
    for o in range(tables.outputs):
        table, c = table_of(tables, o), count_of(tables, o, t)
        put_steps_of(tables.work, o, threshold_of(table, c), *sums_of(table, c))


@function
def record_each(tables, t, om, q, inverse):
    """``record`` for each output, of step t."""
    E, R = grown(lanes(tables.work, STEPS + 1), lanes(tables.work, STEPS + 2), om, q, inverse)
    put_lanes(tables.work, GAPS, q - lanes(tables.work, STEPS))
    put_lanes(tables.work, STEPS, q)
    put_lanes(tables.work, STEPS + 1, E)
    put_lanes(tables.work, STEPS + 2, R)
    for o in range(tables.outputs):
        enter(table_of(tables, o), count_of(tables, o, t), *steps_of(tables.work, o))
    return q, E, R


@function
def part_sums(tables, t, v):
    """``part_sum`` of the states v after t rows."""
    work = tables.work
    q, states = lanes(work, STEPS), laid_out((v,))
    put_lanes(work, PART, (abs(v) > q) * up_to(lanes(work, STEPS + 1), lanes(work, STEPS + 2), v) + 0.0)
    if some(fallen(v, q)):
        for o in range(tables.outputs):
            (its,) = of_output(states, o)
            if fallen(its, number_at(work, STEPS, o)):
                put_number(work, PART, o, part_sum(table_of(tables, o), count_of(tables, o, t), its))
    return lanes(work, PART)


@function
def listed(falls, count, k, v, q):
    """List entry k in ``falls``, behind ``count`` others, where one of its states v fell to q; the count then."""
    falls[count] = k
    return count + (1 if some(fallen(v, q)) else 0)


@function
def close_listed(tables, t, V, B, indices, falls, first, count):
    """Close the sums of the states that fell, in the listed entries, of the outputs that step t moves.

    The states are listed first, from ``first`` on, without a branch, each with the place at which the last slope has its step.
    Then each look into the tables is made for all of them: it asks for the line of memory of the next, for which no other look
    waits.
    """
    work, found, span = tables.work, first, WIDTH * first
    moves, q, gap = lanes(work, PULLS) != 0.0, lanes(work, STEPS), lanes(work, GAPS)
    last, slope = float(t - 1) - lanes(tables.now, VISIT), 1.0 / where(gap > 0.0, gap, 1.0)
    for e in range(count):
        j = np.int64(indices[falls[e]])
        v = lanes(V, j)
        guess = last + (abs(v) - q) * slope
        place = min(where(guess > 1.0, guess, 1.0), last)  # 1 also for what is no number
        found = places_of(moves * fallen(v, q), j, place, falls, found, span)
    for e in range(first, found):
        ask(table_of(tables, falls[e] % WIDTH), NUMBERS * falls[e + span])
    for e in range(first, found):
        j, o = falls[e] // WIDTH, falls[e] % WIDTH
        table = table_of(tables, o)
        falls[e + span] = along(table, count_of(tables, o, t), falls[e + span], abs(number_at(V, j, o)))
        ask(table, NUMBERS * falls[e + span])
    for e in range(first, found):
        j, o = falls[e] // WIDTH, falls[e] % WIDTH
        table, c, v = table_of(tables, o), count_of(tables, o, t), number_at(V, j, o)
        E, R = sums_of(table, alive_near(table, c, falls[e + span], abs(v)))
        put_number(B, j, o, number_at(B, j, o) + up_to(E, R, v))
