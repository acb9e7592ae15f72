"""Scores of single rows by one compiled call each, from weights that are held while nothing is learned."""

from __future__ import annotations

import threading
from math import inf, nan
from typing import Any

import numpy as np

from onlinear.compiled import Held, function, opened
from onlinear.compiled.objects import READABLE, AnyObject, given_to, kinds_of_rows
from onlinear.learner.clip import clip_row
from onlinear.rows import LARGEST_COLUMN
from onlinear.solvers.core.state import T

WORTH = 1 << 14  # columns: as many weights are computed in the time that a row takes by the way of a block
PATIENCE = 16  # rows by the way of single rows, which take a tenth as long


@function
def add_entries(indices, values, bound, weights, out):  # type: ignore[no-untyped-def]
    """Add a row's entries to its scores; whether it is a plain one."""
    n, before, (size, outputs) = indices.shape[0], -1, weights.shape
    first = out[0]
    if values.shape[0] != n:
        return False
    for k in range(n):
        j, x = int(indices[k]), float(values[k])
        if j <= before or j >= bound or not abs(x) < inf:
            return False
        before = j
        if x != 0.0:
            first += (weights[j, 0] if j < size else 0.0) * x
            for o in range(1, outputs):
                out[o] += (weights[j, o] if j < size else 0.0) * x
    out[0] = first
    return True


@function
def clip_within(ranges, out):  # type: ignore[no-untyped-def]
    """Clip the scores to the range of the targets, where there is one."""
    if ranges is not None:
        clip_row(ranges, out)


def score_row(here, first, second):  # type: ignore[no-untyped-def]
    """Fill the row's scores and give the first; NaN for a row that is not plain, and where rows were learned since."""
    (bound, t, kinds), weights, biases, ranges, now, out = opened(here)
    if now[T] != t:
        return nan
    for o in range(out.shape[0]):
        out[o] = biases[o]
    if not given_to(add_entries, False, first, second, kinds, bound, weights, out):
        return nan
    clip_within(ranges, out)
    return out[0]


class OneScore:
    """Scores single rows by (d, K) weights and K intercepts, within bounds (K, 2) if any, until ``now`` says that rows were
    learned. ``moves``: of the arrays of the learner whose weights these are.

    Of one output ``take``, given ``here`` and a row, gives the score, or NaN where ``score`` gives None; else it is None. All
    that it reads of the learner is the number of rows, so it needs no lock: it scores by the model as it was before a row that
    another thread is learning.
    """

    def __init__(
        self, weights: np.ndarray, biases: np.ndarray, now: np.ndarray, bound: int, bounds: np.ndarray | None, moves: int = 0
    ) -> None:
        self.moves, self.t = moves, float(now[T])
        self._several = weights.shape[1] > 1
        self._out, self._lock = np.empty(weights.shape[1]), threading.Lock()
        self._held = Held((bound, self.t, kinds_of_rows()), np.ascontiguousarray(weights), biases, bounds, now, self._out)
        self.here = self._held.here
        self._run = self._held.compile(score_row, {}, AnyObject(), AnyObject()) if READABLE else None
        self.address = self._held.address(score_row, {}, AnyObject(), AnyObject()) if READABLE else 0
        self.take = None if self._several else self._run

    def score(self, first: Any, second: Any) -> Any:
        """The score, or scores (K,), of a row of columns and values, or of a dict and its ``Names``; None for a row that needs
        the way of a block, and where rows were learned."""
        if self._run is None:
            return None
        if not self._several:
            found: float = self._run(self.here, first, second)
            return found if found == found else None
        with self._lock:
            found = self._run(self.here, first, second)
            return self._out.copy() if found == found else None


def bound_of(growing: bool, size: int) -> int:
    """The columns that rows may have."""
    return LARGEST_COLUMN + 1 if growing else size
