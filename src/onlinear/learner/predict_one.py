"""Scores of single rows by one compiled call each, from weights that are held while nothing is learned."""

from __future__ import annotations

import threading
from math import inf, nan
from typing import Any

import numpy as np

from onlinear.compiled import Held, kept_function, opened
from onlinear.rows import LARGEST_COLUMN
from onlinear.solvers.core.engine import T

ARRAY = np.ndarray
WORTH = 1 << 14  # columns: as many weights are computed in the time that a row takes by the way of a block
PATIENCE = 16  # rows by the way of single rows, which take a tenth as long


@kept_function
def score(limits, weights, biases, now, out, indices, values):  # type: ignore[no-untyped-def]
    """Fill the row's scores and give the first; NaN for a row that is not plain, and where rows were learned since."""
    bound, t = limits
    n, before, (size, outputs) = indices.shape[0], -1, weights.shape
    if now[T] != t or values.shape[0] != n:
        return nan
    first = biases[0]
    for o in range(1, outputs):
        out[o] = biases[o]
    for k in range(n):
        j, x = int(indices[k]), float(values[k])
        if j <= before or j >= bound or not abs(x) < inf:
            return nan
        before = j
        if x != 0.0:
            first += (weights[j, 0] if j < size else 0.0) * x
            for o in range(1, outputs):
                out[o] += (weights[j, o] if j < size else 0.0) * x
    out[0] = first
    return first


def score_row(here, indices, values):  # type: ignore[no-untyped-def]
    """Score a row by what is held."""
    limits, weights, biases, now, out = opened(here)
    return score(limits, weights, biases, now, out, indices, values)


class OneScore:
    """Scores single rows by (d, K) weights and K intercepts, until ``now`` says that rows were learned."""

    def __init__(self, weights: np.ndarray, biases: np.ndarray, now: np.ndarray, bound: int) -> None:
        self.now, self.t = now, float(now[T])
        self._several = weights.shape[1] > 1
        self._out, self._lock = np.empty(weights.shape[1]), threading.Lock()
        self._held = Held((bound, self.t), np.ascontiguousarray(weights), biases, now, self._out)
        self._here = self._held.here
        self._columns: Any = None
        self._values: Any = None  # the types of arrays that ``_run`` takes

    def score(self, indices: Any, values: Any) -> Any:
        """The row's score, or its scores (K,); None for a row that needs the way of a block, and where rows were learned."""
        if type(indices) is not ARRAY or type(values) is not ARRAY:
            return None
        if (indices.dtype is not self._columns or values.dtype is not self._values) and not self._choose(indices, values):
            return None
        if indices.ndim != 1 or values.ndim != 1:
            return None
        if not self._several:
            found: float = self._run(self._here, indices, values)
            return found if found == found else None
        with self._lock:
            first = self._run(self._here, indices, values)
            return self._out.copy() if first == first else None

    def _choose(self, indices: np.ndarray, values: np.ndarray) -> bool:
        """Take the code for arrays of these types; False where there is none."""
        columns, numbers = indices.dtype, values.dtype
        if columns.kind not in "iu" or numbers.char not in "df" or not (columns.isnative and numbers.isnative):
            return False
        self._run = self._held.compile(score_row, {}, np.empty(4, columns)[::2], np.empty(4, numbers)[::2])
        self._columns, self._values = columns, numbers
        return True


def bound_of(growing: bool, size: int) -> int:
    """The columns that rows may have."""
    return LARGEST_COLUMN + 1 if growing else size
