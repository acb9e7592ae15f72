"""Visits of all potentials, which end a block of steps: when a run makes them, and how."""

from __future__ import annotations

import numpy as np

from onlinear.averages import part_sum, restart
from onlinear.compiled import at_column, function, room
from onlinear.solvers.core.moments import DECAY_LIMIT, DECAY_LIMIT_AVERAGED, LONGEST_BLOCK, sums_due
from onlinear.solvers.core.state import BIAS_SUM, BIAS_TOTAL, ONE, VISIT


@function
def block_ends(t, B):
    """Whether the run visits all coordinates after t > 0 rows whatever its decay.

    Sums restart early. Potentials alone are as exact as l1 times the sum of the steps since the visit, and on the first visit
    of a wide model all of its memory would be touched, most of it for the first time.
    """
    return sums_due(t) if B is not None else t & (LONGEST_BLOCK - 1) == 0


@function
def decay_limit(B):
    """The decay since the last visit at which another is due."""
    return DECAY_LIMIT if B is None else DECAY_LIMIT_AVERAGED


@function
def time_to_visit(t, visited, decay, B):
    """Whether the run visits all coordinates now, after t rows, at clock[0] = decay."""
    if t == visited:
        return False
    return block_ends(t, B) or decay > decay_limit(B)


@function
def visit(penalty, clock, V, B, A, table, t, now):
    """Restart the block at t: settle every coordinate and its sum."""
    fresh = penalty.start()
    c = t - int(now[VISIT])
    if B is not None:
        steps = room(table, 0)
    for j in range(V.shape[0]):
        if B is not None:
            A[j] += B[j] + part_sum(steps, c, V[j])
            B[j] = 0.0
        V[j] = penalty.potential(penalty.weight(V[j], clock), fresh)
    if B is not None:
        restart(table)
        now[BIAS_TOTAL] += now[BIAS_SUM]
        now[BIAS_SUM] = 0.0
    now[VISIT] = t
    return fresh


@function
def mean_of_row(average, t, table, V, B, A, rows, begin, end, now, p):
    """The score of a row by the average of the predictors before the first t steps."""
    _, indices, values = rows
    c, sums, steps = t - int(now[VISIT]), 0.0, room(table, 0)
    for k in range(begin, end):
        j = indices[k]
        sums += (A[j] + (B[j] + part_sum(steps, c, V[j]))) * values[k]
    return mean_of_sums(average, t, sums, now, p)


@function
def mean_score(average, t, sums, p):
    """The score of the average of the predictors before t steps, from the weighted sum of their scores; p where t = 0."""
    weight = average.total(t)
    return sums / weight if weight > 0.0 else p


@function
def mean_of_sums(average, t, sums, now, p):
    """The score by the average, from the sum over a row's columns; p where t = 0."""
    return mean_score(average, t, sums + (now[BIAS_TOTAL] + now[BIAS_SUM]) * now[ONE], p)


@function
def mean_of_resting(solver, penalty, average, t, V, S, rows, begin, end, now, p):
    """The score of a row by the average of the predictors before the first t steps, where sums need no table."""
    _, indices, values = rows
    sums = 0.0
    for k in range(begin, end):
        j = np.uint64(indices[k])
        so_far = average.faded(S[0][j], float(t) - S[1][j])
        sums += (so_far + solver.idle_sum(at_column(V, j), S[1][j], t, average, penalty)) * values[k]
    return mean_of_sums(average, t, sums, now, p)
