r"""The quadratic model of a Newton step on some columns, (1/2) d'Hd with H = X' diag(h) X, kept in either of two ways.

    ByGram      H is made once, in as many products as rows have pairs of entries; a coordinate then costs O(|W|)
    ByColumns   z = h X d is kept; a coordinate costs the entries of its column

The last coordinate is the intercept: a column of ones. Kernels call the methods of both.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from onlinear.compiled import adopt

SOLVED = 400  # coordinates of a system that is solved by Cholesky's factors
TINY = 1e-300
FLAT = 1e-13  # a curvature below it, relative to the column's own, is rounding: weights go on until one turns


class ByGram(NamedTuple):
    """H itself, and q = H d."""

    H: np.ndarray
    q: np.ndarray

    def gradient(self, a: int) -> float:
        """(H d)_a."""
        return self.q[a]  # type: ignore[no-any-return]

    def move(self, a: int, step: float) -> None:
        """d_a += step."""
        row = self.H[a]
        for b in range(self.q.shape[0]):
            self.q[b] += step * row[b]

    def times(self, p: np.ndarray, members: np.ndarray, count: int, out: np.ndarray) -> None:
        """out = H p on some coordinates; p is 0 elsewhere."""
        for t in range(count):
            row, total = self.H[members[t]], 0.0
            for u in range(count):
                total += row[members[u]] * p[u]
            out[t] = total

    def solves(self, count: int) -> bool:
        """Whether a system of so many coordinates is solved at once."""
        return count <= SOLVED

    def solve(self, r: np.ndarray, l2: float, free: int, members: np.ndarray, count: int, x: np.ndarray) -> None:
        """(H + l2) x = r on some coordinates, by Cholesky's factors; where a pivot is rounding, x becomes large along it."""
        L = np.empty((count, count))
        for t in range(count):
            row, own = self.H[members[t]], L[t]
            for u in range(t + 1):
                total, other = row[members[u]] + l2 * (u == t) * (members[t] < free), L[u]
                for k in range(u):
                    total -= own[k] * other[k]
                if u < t:
                    own[u] = total / other[u]
                else:
                    own[t] = sqrt(max(total, FLAT * row[members[t]] + TINY))
        for t in range(count):
            total = r[t]
            for k in range(t):
                total -= L[t, k] * x[k]
            x[t] = total / L[t, t]
        for t in range(count - 1, -1, -1):
            x[t] /= L[t, t]
            for k in range(t):
                x[k] -= L[t, k] * x[t]


class ByColumns(NamedTuple):
    """The columns of X, which of them count, and z = h X d."""

    starts: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    which: np.ndarray
    h: np.ndarray
    z: np.ndarray
    room: np.ndarray

    def gradient(self, a: int) -> float:
        """(H d)_a."""
        total = 0.0
        if a == self.which.shape[0]:
            for i in range(self.z.shape[0]):
                total += self.z[i]
            return total
        j = self.which[a]
        for k in range(self.starts[j], self.starts[j + 1]):
            total += self.values[k] * self.z[self.rows[k]]
        return total

    def move(self, a: int, step: float) -> None:
        """d_a += step."""
        if a == self.which.shape[0]:
            for i in range(self.z.shape[0]):
                self.z[i] += step * self.h[i]
        else:
            j = self.which[a]
            for k in range(self.starts[j], self.starts[j + 1]):
                i = self.rows[k]
                self.z[i] += step * self.values[k] * self.h[i]

    def times(self, p: np.ndarray, members: np.ndarray, count: int, out: np.ndarray) -> None:
        """out = H p on some coordinates; p is 0 elsewhere."""
        room, last = self.room, self.which.shape[0]
        room[:] = 0.0
        for t in range(count):
            if members[t] == last:
                for i in range(room.shape[0]):
                    room[i] += p[t]
            else:
                j = self.which[members[t]]
                for k in range(self.starts[j], self.starts[j + 1]):
                    room[self.rows[k]] += p[t] * self.values[k]
        for i in range(room.shape[0]):
            room[i] *= self.h[i]
        for t in range(count):
            total = 0.0
            if members[t] == last:
                for i in range(room.shape[0]):
                    total += room[i]
            else:
                j = self.which[members[t]]
                for k in range(self.starts[j], self.starts[j + 1]):
                    total += self.values[k] * room[self.rows[k]]
            out[t] = total

    def solves(self, count: int) -> bool:
        """No: H is not at hand."""
        return False

    def solve(self, r: np.ndarray, l2: float, free: int, members: np.ndarray, count: int, x: np.ndarray) -> None:
        """Nothing."""


for _kind in (ByGram, ByColumns):
    adopt(_kind)
