"""How often each class was taken for each: by the pairs that occur, as those of many classes are far fewer than all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

PENDING = 1 << 16  # rows that are counted at once, or as many as there are pairs


class Pairs(NamedTuple):
    """The weights of the pairs that occur, by the true class, then by the predicted one."""

    true: np.ndarray
    predicted: np.ndarray
    weights: np.ndarray


class Confusion(Sequence[list[float]]):
    """The matrix [true][predicted] of the weights of rows, a row of which is made when it is asked for.

    Parameters
    ----------
    count : int
        How many classes there are.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._places, self._weights = np.empty(0, np.int64), np.empty(0)  # of pairs, in their order
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        self._rows = 0  # that are pending

    def add(self, true: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows: the places of their classes, true and predicted, and their weights (n,)."""
        self._pending.append((true * self._count + predicted, weights))
        self._rows += len(weights)
        if self._rows >= max(PENDING, len(self._places)):
            self._sum()

    def _sum(self) -> None:
        """Add the pending rows to the sums of their pairs, in their order."""
        places = np.concatenate([self._places, *(places for places, _ in self._pending)])
        weights = np.concatenate([self._weights, *(weights for _, weights in self._pending)])
        self._places, which = np.unique(places, return_inverse=True)
        self._weights = np.zeros(len(self._places))
        np.add.at(self._weights, which, weights)
        self._pending, self._rows = [], 0

    def pairs(self) -> Pairs:
        """The pairs that occur."""
        if self._pending:
            self._sum()
        true, predicted = np.divmod(self._places, self._count)
        return Pairs(true, predicted, self._weights)

    def wrong(self) -> float:
        """The weight of the rows whose predicted class is not the true one."""
        true, predicted, weights = self.pairs()
        return float(weights[true != predicted].sum())

    def totals(self) -> np.ndarray:
        """The weight of the rows of each true class."""
        true, _, weights = self.pairs()
        return np.bincount(true, weights, self._count)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, true):  # type: ignore[no-untyped-def]
        if isinstance(true, slice):
            return [self[place] for place in range(self._count)[true]]
        start = range(self._count)[true] * self._count
        self.pairs()
        first, last = np.searchsorted(self._places, (start, start + self._count))
        row = np.zeros(self._count)
        row[self._places[first:last] - start] = self._weights[first:last]
        return row.tolist()

    def __repr__(self) -> str:
        return f"Confusion({self._count} classes, {self.pairs()})"

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, Confusion) else other)

    __hash__ = None  # type: ignore[assignment]
