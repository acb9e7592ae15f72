"""Keeping what the last row changed, for solvers whose variables of that row are part of their output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onlinear.rows import Rows
from onlinear.solvers.engine import State

Run = Callable[[Rows, np.ndarray, np.ndarray, np.ndarray, np.ndarray], int]


def learn_keeping_last_row(
    state: State,
    rows: Rows,
    y: np.ndarray,
    s: np.ndarray,
    scores: np.ndarray,
    run: Run,
    read_u: Callable[[np.ndarray], np.ndarray],
) -> int:
    """``run`` over the rows, with the last row's columns and their u before it put into ``state.kept``.

    run(rows, y, s, scores, tail) takes the columns of the row before its first as ``tail``; saved once per call, so that the
    cost per row stays that of the kernel.
    """
    n = len(y)
    if n == 0:
        return 0
    ends = [int(end) for end in rows.indptr[max(0, n - 2) :]]
    tail, done = state.kept["columns"], 0
    if n > 1:
        done = run(rows._replace(indptr=rows.indptr[:n]), y[:-1], s[:-1], scores[:-1], tail)
        if done < n - 1:
            return done
        tail = rows.indices[ends[0] : ends[1]]
    columns = rows.indices[ends[-2] : ends[-1]].copy()
    u = read_u(columns)
    done += run(rows._replace(indptr=rows.indptr[n - 1 :]), y[-1:], s[-1:], scores[-1:], tail)
    state.kept["columns"], state.kept["u"] = columns, u
    return done
