"""Scores of single rows between rows that are learned: one compiled call computes the weights of the row's own columns.

It serves the methods whose weights follow from the numbers of their own column (``Engine.readers``), with their averages, in
running scales. The caller handles all other cases, and rows that are not plain. The scores are those of ``predict``, to the
bit.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from onlinear.compiled import Held, function, kept_function, opened
from onlinear.learner.core import Core
from onlinear.rows import LARGEST_COLUMN
from onlinear.rows.centring import COLUMNS, scale_at
from onlinear.rows.scaling import BEHIND

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


def read_row(here, indices, values, total):  # type: ignore[no-untyped-def]
    """Take a row and compute the weights of the centred columns and its own; the row's end, or -1. ``read`` is what
    Held.compile is given; ``total``: of an average, by which sums are divided."""
    (bound, size), room, scales, now, parts = opened(here)
    columns, x, weights, ends = room
    first = centred_columns(scales, columns)
    end = plain_columns(bound, size, first, columns, x, indices, values)
    if end < 0:
        return NOT_PLAIN
    read(*parts, columns[:end], now, weights)  # type: ignore[name-defined]  # noqa: F821
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
    _, (_, x, weights, ends), _, _, _ = opened(here)
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
        types = columns, numbers = indices.dtype, values.dtype
        if types == self._types:
            return True
        if columns.kind not in "iu" or numbers.char not in "df" or not (columns.isnative and numbers.isnative):
            return False
        others = np.empty(4, columns)[::2], np.empty(4, numbers)[::2], 1.0
        self.take = self._held.compile(read_row, {"read": self._kernel}, *others)
        self.finish = self._held.compile(score_row, {}, 1.0, 1)
        self._types = types
        return True


class OneRead:
    """Scores single rows of up to ``capacity`` columns, those that are centred among them, for a core of one output."""

    def __init__(self, core: Core, capacity: int) -> None:
        self._core, self.capacity = core, capacity
        room = np.empty(capacity + BEHIND, np.uint32), np.empty(capacity), np.empty(capacity + BEHIND)
        self._room = *room, np.zeros(1, np.int64)
        self._seen: tuple[int, Any] = -1, None  # of the moves of the state's arrays, and the table of its sums
        self._ways: tuple[_Way | None, _Way | None] = None, None  # by the last iterate, by the average

    def score(self, indices: Any, values: Any) -> float | None:
        """The row's score as ``predict`` gives it; None for a row that needs the way of a block."""
        core = self._core
        if type(indices) is not ARRAY or type(values) is not ARRAY or core.stopped is not None:
            return None
        if core.moves != self._seen[0] or core.states[0].table is not self._seen[1]:
            self._bind()
        averages = core.averages
        way = self._ways[averages]
        if way is None or indices.ndim != 1 or values.ndim != 1 or not way.fits(indices, values):
            return None
        engine, state = core.engine, core.states[0]
        total = engine.average.total(state.t) if averages else 1.0  # type: ignore[union-attr]
        if not total > 0.0:
            return None
        end = way.take(way.here, indices, values, total)
        bias = engine.mean_bias(state) if averages else engine.bias(state)
        if end < 0 or not isfinite(bias):
            return None
        zero = 0.0 if core.units is None else float(core.units.zero[0])
        first = int(self._room[3][0])
        centre = core.scaler.centre_of(self._room[2][:first]) if first else 0.0  # type: ignore[union-attr]
        found = way.finish(way.here, bias + zero + centre, end)
        return found if core.units is None else core.units.within(found)  # type: ignore[no-any-return]

    def _bind(self) -> None:
        """Hold the arrays as they stand now, where this way is one for them."""
        core, state = self._core, self._core.states[0]
        self._seen, self._ways = (core.moves, state.table), (None, None)
        scaler = core.scaler
        if not core.size or core.centres_rows or not (scaler is None or scaler.settled):
            return
        limits = LARGEST_COLUMN + 1 if core.growing else core.size, core.size
        common = limits, self._room, None if scaler is None else scaler.held, state.now
        last, mean = (self._way(common, found) for found in core.engine.readers(state))
        self._ways = last, mean

    def _way(self, common: tuple[Any, ...], found: Any) -> _Way | None:
        if found is None:
            return None
        kernel, parts = found
        try:
            return _Way(Held(*common, parts), kernel)
        except TypeError:
            return None
