"""Keeping what the last row changed, for solvers whose variables of that row are part of their output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onlinear.compiled import function
from onlinear.files.trust import Span
from onlinear.rows import Rows
from onlinear.solvers.core.engine import State

Learn = Callable[[slice], int]  # learns some of the rows, and gives how many it has learned


def learn_keeping_last_row(
    states: Sequence[State], rows: Rows, learn: Learn, read_u: Callable[[State, np.ndarray], np.ndarray]
) -> int:
    """``learn`` over the rows, with the last row's columns and their u before it put into ``kept`` of each state.

    A kernel finds the columns of the row before its first in ``state.buffers``: their number, and they. All is done once per
    call, so that the cost per row stays that of the kernel.
    """
    n = rows.count
    if n == 0:
        return 0
    ends, done = [int(end) for end in rows.indptr[max(0, n - 2) :]], 0
    for state in states:
        state.buffers["tail"] = counted(state.kept["columns"])
    if n > 1:
        done = learn(slice(0, n - 1))
        if done < n - 1:
            return done
        for state in states:
            state.buffers["tail"] = counted(rows.indices[ends[0] : ends[1]])
    columns = rows.indices[ends[-2] : ends[-1]].copy()
    before = [read_u(state, columns) for state in states]
    done += learn(slice(n - 1, n))
    for state, u in zip(states, before, strict=True):
        state.kept["columns"], state.kept["u"] = columns, u
    return done


def last_row(state: State) -> dict[str, Span]:
    """What a state keeps of the last row: its columns, and u there before it."""
    return {"columns": Span(np.uint32, 0, state.size), "u": Span(np.float64, *2 * (state.kept["columns"].size,))}


def counted(columns: np.ndarray) -> np.ndarray:
    """Columns after their number."""
    return np.append(np.uint32(len(columns)), columns)


@function
def keep_columns(rows, tail, last):
    """One row's columns as the last; those that were the last as the tail."""
    starts, columns, _ = rows
    for e in range(int(last[0]) + 1):
        tail[e] = last[e]
    last[0] = starts[1]
    for e in range(int(starts[1])):
        last[e + 1] = columns[e]
