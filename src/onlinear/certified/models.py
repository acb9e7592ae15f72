r"""The quadratic model of a Newton step on some columns, (1/2) d'Hd with H = X' diag(h) X, kept in either of two ways.

    ByGram      H is made once, in as many products as rows have pairs of entries; a coordinate then costs O(|W|)
    ByColumns   z = h X d is kept; a coordinate costs the entries of its column

The last coordinate is the intercept: a column of ones. Kernels call the methods of both.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from onlinear.certified.columns import Table, curve_rows
from onlinear.compiled import adopt, kernel

FACTORED = 3000  # coordinates of a system that LAPACK solves, and the most columns of which H is at hand
SOLVED = 1000  # the same of ``solve_face``, where a pivot is rounding
TINY = 1e-300
FLAT = 1e-13  # a curvature below it, relative to the column's own, is rounding: weights go on until one turns


class ByGram(NamedTuple):
    """H itself, and q = H d."""

    H: np.ndarray
    q: np.ndarray

    def gradient(self, a: int) -> float:
        """(H d)_a."""
        return self.q[a]

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
        """Whether ``solve_face`` solves a system of so many coordinates."""
        return count <= SOLVED


class ByColumns(NamedTuple):
    """The columns of X, which of them count, and z = h X d."""

    starts: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    which: np.ndarray
    h: np.ndarray
    z: np.ndarray
    inside: Table  # the rows, in these columns alone; of no entries where no system is solved
    room: np.ndarray  # (2, m + 1): the first are zeros between calls

    def gradient(self, a: int) -> float:
        """(H d)_a."""
        total = 0.0
        if a == self.which.shape[0]:
            for i in range(self.z.shape[0]):
                total += self.z[i]
            return total
        for k in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
            total += self.values[k] * self.z[self.rows[k]]
        return total

    def move(self, a: int, step: float) -> None:
        """d_a += step."""
        if a == self.which.shape[0]:
            for i in range(self.z.shape[0]):
                self.z[i] += step * self.h[i]
        else:
            for k in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
                self.z[self.rows[k]] += step * self.values[k] * self.h[self.rows[k]]

    def times(self, p: np.ndarray, members: np.ndarray, count: int, out: np.ndarray) -> None:
        """out = H p on some coordinates; p is 0 elsewhere."""
        starts, places, values = self.inside
        full, total = self.room
        for t in range(count):
            full[members[t]] = p[t]
        curve_rows(starts, places, values, self.h, full, total)
        for t in range(count):
            out[t] = total[members[t]]
            full[members[t]] = 0.0

    def solves(self, count: int) -> bool:
        """No: H is not at hand."""
        return False


@kernel
def solve_face(H, r, l2, free, members, U, x):  # type: ignore[no-untyped-def]
    """(H + l2) x = r on some coordinates by Cholesky's factors, four rows at a time; U (m, m) is room, r is used up.

    Where a pivot is rounding, x becomes large along it. l2 is not that of the intercept, whose number is ``free``.
    """
    m = U.shape[0]
    for k in range(m):
        for j in range(k, m):
            U[k, j] = H[members[k], members[j]]
        x[k] = U[k, k]  # before, to judge the pivots by
        U[k, k] += l2 * (members[k] < free)
    for first in range(0, m, 4):
        past = min(first + 4, m)
        for k in range(first, past):
            row, floor = U[k], FLAT * x[k] + TINY
            for other in range(first, k):
                by, done = U[other, k], U[other]
                for j in range(k, m):
                    row[j] -= by * done[j]
            row[k] = sqrt(max(row[k], floor))
            for j in range(k + 1, m):
                row[j] /= row[k]
        for i in range(past, m):
            row, p, q, s, t = U[i, i:], U[first, i:], U[first + 1, i:], U[first + 2, i:], U[first + 3, i:]
            a, b, c, d = p[0], q[0], s[0], t[0]
            for j in range(row.shape[0]):
                row[j] -= a * p[j] + b * q[j] + c * s[j] + d * t[j]
    for k in range(m):
        x[k] = r[k] / U[k, k]
        for j in range(k + 1, m):
            r[j] -= U[k, j] * x[k]
    for k in range(m - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, m):
            total -= U[k, j] * x[j]
        x[k] = total / U[k, k]


for _kind in (ByGram, ByColumns):
    adopt(_kind)
