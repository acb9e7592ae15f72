"""Bins of numbers: a number becomes a category, named by the bin that it falls into.

Edges e_1 < e_2 < ... < e_m make the bins (-inf, e_1), [e_1, e_2), ..., [e_m, inf). A number of bins stands for the edges that
part the values of the first rows into as many equal parts; the edges are kept, so later rows have the same bins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FIRST_ROWS = 1 << 14  # which decide the edges of a number of bins


class Bins:
    """The bins of each column that has them, by the columns' edges."""

    def __init__(self, edges: Mapping[str, Sequence[float]]) -> None:
        self._edges = {name: np.array(own, np.float64) for name, own in edges.items()}
        self._listed = {name: list(own) for name, own in edges.items()}
        self._labels = {name: bin_labels(own) for name, own in edges.items()}

    def texts(self, name: str, values: np.ndarray, missing: np.ndarray | None) -> Any:
        """The bins of a column's values as a large_string array, null where ``missing``."""
        import pyarrow as pa  # single rows need none

        places = np.searchsorted(self._edges[name], values, side="right")
        return pa.array(self._labels[name], pa.large_string()).take(pa.array(places, mask=missing))

    def text(self, name: str, value: float) -> str:
        """The bin of a value as text."""
        return self._labels[name][bisect_right(self._listed[name], value)]


def bin_labels(edges: Sequence[float]) -> list[str]:
    """What the bins are called, from the lowest: ``(-inf, 18)``, ``[18, 30)``, ``[30, inf)``."""
    ends = ["-inf", *(repr(float(edge)).removesuffix(".0") for edge in edges), "inf"]
    return [f"{'[' if k else '('}{ends[k]}, {ends[k + 1]})" for k in range(len(ends) - 1)]


def edges_between(values: np.ndarray, count: int) -> list[float]:
    """The edges that part values into ``count`` equal parts: of n sorted values those in places k n / count, rounded down.

    An edge at the lowest value or at another edge is left out: its bin would be empty.
    """
    ordered = np.sort(values)
    places = np.arange(1, count) * len(ordered) // count
    found = np.unique(ordered[places]) if len(ordered) else ordered
    return [float(edge) for edge in found if edge > ordered[0]]
