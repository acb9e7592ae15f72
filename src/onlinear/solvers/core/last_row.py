"""Keeping what the last row changed, for solvers whose variables of that row are part of their output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onlinear.compiled import function
from onlinear.files.trust import Span
from onlinear.rows import Rows
from onlinear.solvers.core.state import State

Learn = Callable[[slice], int]  # learns some of the rows, and gives how many it has learned


class LastRow:
    """Room for what is kept of the last row: its columns after their number, and u there before it; and the columns of the row
    before, after theirs (``tail``)."""

    def __init__(self, capacity: int) -> None:
        self.arrays = np.zeros(capacity + 1, np.uint32), np.zeros(capacity + 1, np.uint32), np.empty(capacity)
        self._given = -1  # how many columns the state was given last

    @classmethod
    def of(cls, state: State, capacity: int) -> LastRow | None:
        """Room for rows of ``capacity`` columns at least, with what the state has kept; None where it keeps no rows."""
        if "u" not in state.kept:
            return None
        room = cls(max(capacity, len(state.kept["u"])))
        room.take(state)
        return room

    def take(self, state: State) -> None:
        """Go on from what the state has kept."""
        tail, last, u = self.arrays
        count = len(state.kept["columns"])
        last[0], last[1 : count + 1], u[:count] = count, state.kept["columns"], state.kept["u"]
        state.buffers["tail"], self._given = tail, -1

    @property
    def given(self) -> int:
        """How many columns the state was given last."""
        return self._given

    def give(self, state: State) -> None:
        """Let the state keep what is here."""
        _, last, u = self.arrays
        count = last.item(0)
        if count == self._given:
            return
        self._given = count
        state.kept["columns"], state.kept["u"] = last[1 : count + 1], u[:count]


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
