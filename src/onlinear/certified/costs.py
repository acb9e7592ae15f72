"""What the ways of a Newton step cost, in products of a pair of stored entries, each of which costs 1.

H at hand, or its products with vectors; models by coordinates, or systems. The numbers were measured. They choose the faster
way, and nothing else.
"""

from __future__ import annotations

import numpy as np

from onlinear.certified.columns import Stored, Table, are_dense
from onlinear.certified.models import FACTORED

PRODUCT, DENSE_PRODUCT = 1.7, 0.9  # an entry of H d; the same of dense rows
DENSE_PAIR, DENSE_ENTRY = 0.055, 3.7  # pairs and entries of dense rows in H
AT_HAND, DEARER = 400, 2.0  # in more columns than stay at hand a stored pair costs more
TURN = 20.0  # an entry that is stored by columns too
EPOCHS = 6  # of a coarse model
FACTORS, STEPS = 3, 150  # of a fine model: systems that are solved with H at hand, steps of conjugate gradients without
PATIENT = 2  # steps of conjugate gradients that are never too many
WHOLE = 20, 100  # times a product with H: what a matrix of all columns may cost, where weights may be 0, and where not


class Costs:
    """Those of some rows. ``product``: what an entry costs in H d of all columns."""

    def __init__(self, stored: Stored, product: float = PRODUCT) -> None:
        self._stored, self._product = stored, product
        self._n, self._entries, self._pairs = len(stored.rows.starts) - 1, len(stored.rows.values), pairs_of(stored.rows)

    def gram(self, entries: int, m: int, share: float = 1.0) -> float:
        """H of m columns with so many entries, where a share of the rows has curvature."""
        pairs = self._pairs * (entries / max(self._entries, 1)) ** 2
        return share * min(of_pairs(m, pairs), with_zeros(self._n, m)) + 3.0 * m * m

    def columns_of_gram(self, m: int) -> float:
        """So many rows of H of all columns."""
        if are_dense(self._entries, self._n, self._stored.width):
            return self._n * m * (DENSE_PAIR * self._stored.width + DENSE_ENTRY)
        return 2.0 * self._product * self._entries * m

    def prefers_gram(self, m: int, entries: float, making: float, nonzeros: int, coarse: bool) -> bool:
        """Whether H, which costs so much to make, costs less than the epochs over columns that it spares.

        ``nonzeros``: the weights that are not 0."""
        dense = are_dense(self._entries, self._n, self._stored.width)
        turning = TURN * self._entries if dense and not self._stored.by_columns else 0.0
        if coarse:
            return m <= FACTORED and making + EPOCHS * sweeping(m) < PRODUCT * EPOCHS * entries + turning
        reach = min(m, 2 * nonzeros + 20)
        return m <= FACTORED and making + FACTORS * solving(reach) < PRODUCT * STEPS * entries + turning

    def patient(self, m: int, entries: float, making: float) -> int:
        """Steps of conjugate gradients on a smooth problem, after which H, solved in the time of so many, is the better way."""
        if m > FACTORED:
            return 2 * STEPS
        return min(STEPS, PATIENT + int((making + FACTORS * solving(m)) / (self._product * max(entries, 1.0))))

    def suits_whole(self, smooth: bool) -> bool:
        """Whether rows are dense, and H of all columns costs little."""
        m = int(np.count_nonzero(self._stored.counts))
        if m > FACTORED or not are_dense(self._entries, self._n, m):
            return False
        return self.gram(self._entries, m) + FACTORS * solving(m) <= WHOLE[smooth] * self._product * self._entries


def pairs_of(rows: Table) -> float:
    """Pairs of entries in one row."""
    sizes = np.diff(rows.starts).astype(np.float64)
    return 0.5 * float(np.sum(sizes * sizes))


def of_pairs(m: int, pairs: float) -> float:
    """H of m columns, pair by pair."""
    return (DEARER if m > AT_HAND else 1.0) * pairs


def with_zeros(n: int, m: int) -> float:
    """H of n rows and m columns with their zeros, by BLAS."""
    return n * m * (0.5 * DENSE_PAIR * m + DENSE_ENTRY)


def multiplies_zeros(n: int, m: int, pairs: float) -> bool:
    """Whether H costs less with the zeros."""
    return with_zeros(n, m) < of_pairs(m, pairs)


def sweeping(m: int) -> float:
    """An epoch over m coordinates with H at hand."""
    return 0.3 * m**2


def solving(m: int) -> float:
    """A system of m coordinates, by Cholesky's factors."""
    return 0.02 * m**3
