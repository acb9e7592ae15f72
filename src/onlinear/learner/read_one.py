"""Scores of single rows between rows that are learned: one compiled call computes the weights of the row's own columns.

It serves the methods whose weights follow from the numbers of their own column (``Engine.readers``), with their averages, in
running scales. Outputs are read one after the other; the numbers of those that stand in a pack are copied first. The caller
handles all other cases, and rows that are not plain. The scores are those of ``predict``, to the bit.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from onlinear.compiled import Held, function, kept_function, opened
from onlinear.learner.core import Core
from onlinear.learner.learn_one import row_like
from onlinear.rows import LARGEST_COLUMN
from onlinear.rows.centring import COLUMNS, scale_at
from onlinear.rows.scaling import BEHIND
from onlinear.solvers.core.engine import State

ARRAY = np.ndarray
NOT_PLAIN = -1


@function
def centred_columns(scales, columns):  # type: ignore[no-untyped-def]
    """Write the columns that are centred; their number."""
    end = 0
    if scales is not None:
        _, _, _, facts, numbers, _ = scales
        for p in range(facts[COLUMNS]):
            columns[p] = numbers[p]
        end += facts[COLUMNS]
    return end


@function
def to_own_units(scales, columns, weights, first, end):  # type: ignore[no-untyped-def]
    """Divide the weights of ascending columns by their scales; 0 where there is none."""
    if scales is not None:
        place = 0
        for e in range(first, end):
            scale, place = scale_at(scales, columns[e], place)
            weights[e] = weights[e] / scale if scale > 0.0 else 0.0


@kept_function
def plain_columns(bound, size, first, columns, x, indices, values):  # type: ignore[no-untyped-def]
    """Take a row: the columns that are known, behind ``first`` others, and their values. Their end; -1 for a row not plain."""
    n, before, end = indices.shape[0], -1, first
    if values.shape[0] != n or first + n > x.shape[0]:
        return NOT_PLAIN
    for k in range(n):
        j, value = int(indices[k]), float(values[k])
        if j <= before or j >= bound or not abs(value) < inf:
            return NOT_PLAIN
        before = j
        if j < size:
            columns[end], x[end] = j, value
            end += 1
    return end


@function
def brought(apart, columns, end):  # type: ignore[no-untyped-def]
    """The places of the numbers of columns: copied to where they stand side by side, or where they are."""
    places = columns
    if apart is not None:
        vectors, places = apart
        for source, copy, width in vectors:
            for e in range(end):
                for half in range(width):
                    copy[e * width + half] = source[columns[e] * width + half]
    return places


def read_row(here, indices, values, total):  # type: ignore[no-untyped-def]
    """Take a row and compute the weights of the centred columns and its own; the row's end, or -1. ``read`` is what
    Held.compile is given; ``total``: of an average, by which sums are divided."""
    (bound, size), room, scales, now, apart, parts = opened(here)
    columns, x, weights, ends = room
    first = centred_columns(scales, columns)
    end = plain_columns(bound, size, first, columns, x, indices, values)
    if end < 0:
        return NOT_PLAIN
    read(*parts, brought(apart, columns, end)[:end], now, weights)  # type: ignore[name-defined]  # noqa: F821
    for e in range(end):
        weights[e] /= total
        if not isfinite(weights[e]):
            return NOT_PLAIN
    to_own_units(scales, columns, weights, 0, first)
    to_own_units(scales, columns, weights, first, end)
    ends[0] = first
    return end


def score_row(here, bias, end):  # type: ignore[no-untyped-def]
    """The score of the row that was taken."""
    _, (_, x, weights, ends), _, _, _, _ = opened(here)
    for e in range(ends[0], end):
        bias += weights[e] * x[e]
    return bias


class _Way:
    """One way to score: by the last iterate, or by the average."""

    def __init__(self, held: Held, kernel: Any) -> None:
        self._held, self._kernel, self.here = held, kernel, held.here
        self._types: tuple[Any, Any] | None = None

    def fits(self, indices: np.ndarray, values: np.ndarray) -> bool:
        """Whether there is code for arrays of these types."""
        types = indices.dtype, values.dtype
        if types == self._types:
            return True
        others = row_like(indices, values)
        if others is None:
            return False
        self.take = self._held.compile(read_row, {"read": self._kernel}, *others, 1.0)
        self.finish = self._held.compile(score_row, {}, 1.0, 1)
        self._types = types
        return True


class OneRead:
    """Scores single rows of up to ``capacity`` columns, those that are centred among them, for a core."""

    def __init__(self, core: Core, capacity: int) -> None:
        self._core, self.capacity = core, capacity
        self._room = (
            np.empty(capacity + BEHIND, np.uint32),
            np.empty(capacity),
            np.empty(capacity + BEHIND),
            np.zeros(1, np.int64),
        )
        self._places = np.arange(capacity + BEHIND, dtype=np.uint32)
        self._seen: tuple[int, Any] = -1, None  # of the moves of the state's arrays, and the table of its sums
        self._ways: list[tuple[_Way | None, _Way | None]] = []  # of each output, by the last iterate and by the average

    def score(self, indices: Any, values: Any) -> Any:
        """The row's score, or scores (K,), as ``predict`` gives them; None for a row that needs the way of a block."""
        core = self._core
        if type(indices) is not ARRAY or type(values) is not ARRAY or core.stopped is not None:
            return None
        if core.moves != self._seen[0] or core.states[0].table is not self._seen[1]:
            self._bind()
        if not self._ways or indices.ndim != 1 or values.ndim != 1:
            return None
        if core.n_outputs == 1:
            found = self._score(0, indices, values)
            return found if found is None or core.units is None else core.units.within(found)
        scores = [self._score(k, indices, values) for k in range(core.n_outputs)]
        return None if any(score is None for score in scores) else np.array(scores)

    def _score(self, k: int, indices: np.ndarray, values: np.ndarray) -> float | None:
        """The score by output k."""
        core = self._core
        averages, engine, state = core.averages, core.engine, core.states[k]
        way = self._ways[k][averages]
        if way is None or not way.fits(indices, values):
            return None
        total = engine.average.total(state.t) if averages else 1.0  # type: ignore[union-attr]
        if not total > 0.0:
            return None
        end = way.take(way.here, indices, values, total)
        bias = engine.mean_bias(state) if averages else engine.bias(state)
        if end < 0 or not isfinite(bias):
            return None
        zero = 0.0 if core.units is None else float(core.units.zero[k])
        first = int(self._room[3][0])
        centre = core.scaler.centre_of(self._room[2][:first]) if first else 0.0  # type: ignore[union-attr]
        return way.finish(way.here, bias + zero + centre, end)  # type: ignore[no-any-return]

    def _bind(self) -> None:
        """Hold the arrays as they stand now, where this way is one for them."""
        core = self._core
        self._seen, self._ways = (core.moves, core.states[0].table), []
        scaler = core.scaler
        if not core.size or core.centres_rows or not (scaler is None or scaler.settled):
            return
        if core.n_outputs > 1 and core.bounds() is not None:
            return
        limits = LARGEST_COLUMN + 1 if core.growing else core.size, core.size
        scales = None if scaler is None else scaler.held
        for state in core.states:
            if state.extra:
                self._ways.append((None, None))
                continue
            read, apart = self._side_by_side(state)
            common = limits, self._room, scales, state.now, apart
            last, mean = (self._way(common, found) for found in core.engine.readers(read))
            self._ways.append((last, mean))

    def _side_by_side(self, state: State) -> tuple[State, Any]:
        """The state as it is read: itself, or of one that stands in a pack the columns of a row, and what is copied there."""
        if all(array.flags.c_contiguous for array in state.arrays.values()):
            return state, None
        widths = {name: state.widths.get(name, 1) for name in state.arrays}
        copies = {name: np.empty(width * len(self._places)) for name, width in widths.items()}
        read = State(state.now, copies, size=self.capacity, widths=state.widths, halves=state.halves)
        read.table = state.table
        return read, (tuple((array, copies[name], widths[name]) for name, array in state.arrays.items()), self._places)

    def _way(self, common: tuple[Any, ...], found: Any) -> _Way | None:
        if found is None:
            return None
        kernel, parts = found
        try:
            return _Way(Held(*common, parts), kernel)
        except TypeError:
            return None
