"""Keeping what the last row changed, for solvers whose variables of that row are part of their output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlinear.compiled import function
from onlinear.files.trust import Span
from onlinear.rows import Rows
from onlinear.solvers.core.engine import State

Learn = Callable[[State, Rows, float, np.ndarray, np.ndarray, np.ndarray], int]


def learn_keeping_last_row(
    state: State,
    rows: Rows,
    largest: float,
    y: np.ndarray,
    s: np.ndarray,
    scores: np.ndarray,
    learn: Learn,
    read_u: Callable[[np.ndarray], np.ndarray],
) -> int:
    """``learn`` over the rows, with the last row's columns and their u before it put into ``state.kept``.

    A kernel finds the columns of the row before its first in ``state.buffers``: their number, and they. All is done once per
    call, so that the cost per row stays that of the kernel.
    """
    n = len(y)
    if n == 0:
        return 0
    ends = [int(end) for end in rows.indptr[max(0, n - 2) :]]
    state.buffers["tail"], done = counted(state.kept["columns"]), 0
    if n > 1:
        done = learn(state, rows._replace(indptr=rows.indptr[:n]), largest, y[:-1], s[:-1], scores[:-1])
        if done < n - 1:
            return done
        state.buffers["tail"] = counted(rows.indices[ends[0] : ends[1]])
    columns = rows.indices[ends[-2] : ends[-1]].copy()
    u = read_u(columns)
    done += learn(state, rows._replace(indptr=rows.indptr[n - 1 :]), largest, y[-1:], s[-1:], scores[-1:])
    state.kept["columns"], state.kept["u"] = columns, u
    return done


def last_row(state: State) -> dict[str, Span]:
    """What a state keeps of the last row: its columns, and u there before it."""
    return {"columns": Span(np.uint32, 0, state.size), "u": Span(np.float64, *2 * (state.kept["columns"].size,))}


def counted(columns: np.ndarray) -> np.ndarray:
    """Columns after their number."""
    return np.append(np.uint32(len(columns)), columns)


@function
def keep_columns(rows, tail, last):  # type: ignore[no-untyped-def]
    """One row's columns as the last; those that were the last as the tail."""
    starts, columns, _ = rows
    for e in range(int(last[0]) + 1):
        tail[e] = last[e]
    last[0] = starts[1]
    for e in range(int(starts[1])):
        last[e + 1] = columns[e]
