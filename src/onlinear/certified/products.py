"""Products of rows in memory with numbers of their columns and of rows: of stored entries, or of a matrix with its zeros.

Where most entries are stored, products by BLAS with the zeros too are the faster ones, and matrices of curvatures much faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from onlinear.certified.columns import (
    DENSE,
    Curved,
    Stored,
    Table,
    curve_rows,
    pull_back,
    restricted,
    score_table,
    square_rows,
)
from onlinear.certified.costs import DENSE_PRODUCT, PRODUCT, Costs
from onlinear.certified.curvatures import add_scaled, gram, mirrored, rows_at_once
from onlinear.certified.models import FACTORED

MOSTLY = 0.6  # of the cost of a matrix of all columns: it is made where those of some would have cost so much
AT_HAND, LEAST = 1 << 16, 64  # entries of the rows that stay at hand between two products, and the least rows


class Scoring(Protocol):
    """Rows that tell scores."""

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        """out_i = <w, x_i>."""


class Within(Scoring, Protocol):
    """Rows in some of their columns."""

    def gram(self, h: np.ndarray) -> np.ndarray:
        """(X, 1)' diag(h) (X, 1), of h >= 0."""


class RowProducts(ABC):
    """Rows and what is asked of them; an intercept is that of a column of ones at the end."""

    cost: float  # of an entry of H d
    width: int

    @abstractmethod
    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        """out_i = <w, x_i>."""

    @abstractmethod
    def pulls(self, theta: np.ndarray, out: np.ndarray) -> None:
        """out = X' theta."""

    @abstractmethod
    def squares(self, h: np.ndarray, out: np.ndarray) -> None:
        """out: the diagonal of (X, 1)' diag(h) (X, 1)."""

    @abstractmethod
    def curved(self, h: np.ndarray, d: np.ndarray, out: np.ndarray) -> None:
        """out = (X, 1)' diag(h) (X, 1) d."""

    def curvatures(self, h: np.ndarray, N: np.ndarray) -> np.ndarray:
        """The rows of (X, 1)' diag(h) (X, 1) of a few columns, (len(N), d + 1)."""
        found, unit = np.empty((len(N), self.width + 1)), np.zeros(self.width + 1)
        for row, j in zip(found, N, strict=True):
            unit[j] = 1.0
            self.curved(h, unit, row)
            unit[j] = 0.0
        return found

    @abstractmethod
    def within(self, W: np.ndarray, entries: int) -> Within:
        """The rows in some columns alone, which ascend and have so many entries."""


class SparseRows(RowProducts):
    """Of stored entries."""

    cost = PRODUCT

    def __init__(self, table: Table, width: int) -> None:
        self._table, self.width = table, width

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        score_table(*self._table, w, out)

    def pulls(self, theta: np.ndarray, out: np.ndarray) -> None:
        pull_back(*self._table, theta, out)

    def squares(self, h: np.ndarray, out: np.ndarray) -> None:
        square_rows(*self._table, h, out)

    def curved(self, h: np.ndarray, d: np.ndarray, out: np.ndarray) -> None:
        curve_rows(*self._table, h, d, out)

    def within(self, W: np.ndarray, entries: int) -> SparseRows:
        return SparseRows(restricted(self._table, self.width, W, entries), len(W))

    def gram(self, h: np.ndarray) -> np.ndarray:
        """(X, 1)' diag(h) (X, 1), of h >= 0."""
        return gram(self._table, h, self.width)


class DenseRows(RowProducts):
    """Of a matrix with its zeros, a few rows at a time."""

    cost = DENSE_PRODUCT

    def __init__(self, X: np.ndarray) -> None:
        self._X, self._step, self.width = X, max(LEAST, AT_HAND // X.shape[1]), X.shape[1]

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        np.matmul(self._X, w, out=out)

    def pulls(self, theta: np.ndarray, out: np.ndarray) -> None:
        np.matmul(theta, self._X, out=out)

    def squares(self, h: np.ndarray, out: np.ndarray) -> None:
        np.einsum("i,ij,ij->j", h, self._X, self._X, out=out[:-1])
        out[-1] = h.sum()

    def curved(self, h: np.ndarray, d: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0.0
        for first in range(0, len(h), self._step):
            X, own = self._X[first : first + self._step], h[first : first + self._step]
            along = own * (X @ d[:-1] + d[-1])
            out[:-1] += along @ X
            out[-1] += along.sum()

    def curvatures(self, h: np.ndarray, N: np.ndarray) -> np.ndarray:
        found = np.zeros((len(N), self.width + 1))
        step = rows_at_once(len(N))
        for first in range(0, len(h), step):
            X = self._X[first : first + step]
            own = np.take(X, N, axis=1) * h[first : first + step, None]
            found[:, :-1] += own.T @ X
            found[:, -1] += own.sum(axis=0)
        return found

    def within(self, W: np.ndarray, entries: int) -> DenseColumns:
        return DenseColumns(self._X, W)


class DenseColumns:
    """Some columns of a matrix, which are copied for a few rows at a time."""

    def __init__(self, X: np.ndarray, W: np.ndarray) -> None:
        self._X, self._W = X, W

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        """out_i = <w, x_i>."""
        full = np.zeros(self._X.shape[1])
        full[self._W] = w
        np.matmul(self._X, full, out=out)

    def gram(self, h: np.ndarray) -> np.ndarray:
        """(X, 1)' diag(h) (X, 1), of h >= 0; rows without curvature are left out."""
        m, steep = len(self._W), np.flatnonzero(h)
        step = max(1, min(len(steep), rows_at_once(m)))
        H, room, chosen = np.zeros((m + 1, m + 1)), np.empty((step, m + 1)), np.empty((step, m))
        for first in range(0, len(steep), step):
            here = steep[first : first + step]
            X = self._X[first : first + step] if len(steep) == len(h) else self._X[here]
            if m < X.shape[1]:
                X = np.take(X, self._W, axis=1, out=chosen[: len(here)], mode="clip")
            add_scaled(X, h[here], room, H)
        return mirrored(H)


class RowsWithin:
    """Rows in the columns of a working set, kept for as long as the set stays."""

    def __init__(self, stored: Stored, products: RowProducts, costs: Costs) -> None:
        self._stored, self._all, self._costs = stored, products, costs
        self._products: tuple[np.ndarray, Within] | None = None
        self._table: tuple[np.ndarray, Table] | None = None

    def products(self, W: np.ndarray) -> Within:
        """Their products."""
        if self._products is None or not np.array_equal(self._products[0], W):
            self._products = W, self._all.within(W, self._entries(W))
        return self._products[1]

    def table(self, W: np.ndarray) -> Table:
        """Their entries."""
        if self._table is None or not np.array_equal(self._table[0], W):
            self._table = W, restricted(self._stored.rows, self._stored.width, W, self._entries(W))
        return self._table[1]

    def keeps(self, W: np.ndarray) -> bool:
        """Whether curvatures of all these columns are at hand."""
        return self._stored.curved is not None and bool(np.isin(W, self._stored.curved.which).all())

    def fixed(self, W: np.ndarray, h: np.ndarray, every: np.ndarray) -> np.ndarray:
        """(X, 1)' diag(h) (X, 1) of curvatures that seldom change: a part of a matrix that was made of more columns.

        It is made of all columns, which are ``every``, before those of some have cost as much."""
        kept = self._stored.curved
        if kept is None or not np.array_equal(h, kept.h):
            kept = Curved(W[:0], h.copy(), np.full((1, 1), h.sum()), 0.0)
        if not np.isin(W, kept.which).all():
            kept = self._more(kept, W, every)
        self._stored.curved = kept
        return kept.H if len(kept.which) == len(W) else kept.of(W)

    def _more(self, kept: Curved, W: np.ndarray, every: np.ndarray) -> Curved:
        """Curvatures of W too: of a few columns beside those that are kept, of W alone, or of all."""
        anew, new = self._cost(W), np.setdiff1d(W, kept.which)
        few = self._costs.columns_of_gram(len(new))
        extends = few < anew and len(kept.which) + len(new) <= FACTORED
        spent = kept.spent + (few if extends else anew)
        if spent >= MOSTLY * self._cost(every) and len(every) <= FACTORED:
            return Curved(every, kept.h, self._all.within(every, self._entries(every)).gram(kept.h), spent)
        if not extends:
            return Curved(W, kept.h, self.products(W).gram(kept.h), spent)
        return kept.extended(new, self._all.curvatures(kept.h, new), spent)

    def _cost(self, W: np.ndarray) -> float:
        return self._costs.gram(self._entries(W), len(W))

    def _entries(self, W: np.ndarray) -> int:
        return int(self._stored.counts[W].sum())


def products_of(stored: Stored) -> RowProducts:
    """The products of rows, by the way that suits them."""
    X = stored.matrix(DENSE)
    return SparseRows(stored.rows, stored.width) if X is None else DenseRows(X)
