"""Products of rows with the weights of all classes (K, d), and with the slopes of all classes.

Weights have a row for each class and a column for each column of the rows; intercepts are those of a column of ones at the end.
"""

from __future__ import annotations

import numpy as np

from onlinear.certified.columns import Stored
from onlinear.compiled import kernel

DENSE = 0.15  # share of entries in rows: above it products with their zeros too are the faster ones


class Products:
    """Products with rows in memory. Where many entries are stored, they are those of dense matrices."""

    def __init__(self, stored: Stored, width: int, ones: bool) -> None:
        self._rows, self._width, self._n, self._ones = stored.rows, width, len(stored.rows.starts) - 1, int(ones)
        self.matrix = stored.matrix(DENSE)

    def scores(self, d: np.ndarray) -> np.ndarray:
        """<d_k, x_i>, (K, n)."""
        weights, free = d[:, : self._width], d[:, self._width :]
        if self.matrix is not None:
            found = weights @ self.matrix.T
        else:
            by_rows = np.zeros((self._n, len(d)))
            score_classes(*self._rows, np.ascontiguousarray(weights.T), by_rows)
            found = np.ascontiguousarray(by_rows.T)
        if self._ones:
            found += free
        return found

    def pulls(self, theta: np.ndarray) -> np.ndarray:
        """sum_i theta_ik x_i of slopes (K, n), with a row for each class."""
        if self.matrix is None:
            return self._pulls(theta, False)
        found = np.empty((len(theta), self._width + self._ones))
        np.matmul(theta, self.matrix, out=found[:, : self._width])
        if self._ones:
            found[:, self._width] = theta.sum(axis=1)
        return found

    def squares(self, theta: np.ndarray) -> np.ndarray:
        """sum_i theta_ik x_i^2."""
        return self._pulls(theta, True)

    def _pulls(self, theta: np.ndarray, squared: bool) -> np.ndarray:
        found = np.zeros((self._width + self._ones, len(theta)))
        pull_classes(*self._rows, np.ascontiguousarray(theta.T), squared, found)
        if self._ones:
            found[self._width] = theta.sum(axis=1)
        return np.ascontiguousarray(found.T)


@kernel
def score_classes(starts, places, values, d, found):  # type: ignore[no-untyped-def]
    """found_i += sum_j x_ij d_j, of weights (d, K)."""
    for i in range(starts.shape[0] - 1):
        row = found[i]
        for e in range(starts[i], starts[i + 1]):
            own, v = d[places[e]], values[e]
            for k in range(row.shape[0]):
                row[k] += v * own[k]


@kernel
def pull_classes(starts, places, values, theta, squared, found):  # type: ignore[no-untyped-def]
    """found_j += sum_i x_ij theta_i, or x_ij^2 theta_i, of slopes (n, K)."""
    for i in range(starts.shape[0] - 1):
        row = theta[i]
        for e in range(starts[i], starts[i + 1]):
            own, v = found[places[e]], values[e]
            v = v * v if squared else v
            for k in range(row.shape[0]):
                own[k] += v * row[k]
