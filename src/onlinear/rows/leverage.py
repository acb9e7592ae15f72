"""How unusual a row is beside those before it: its leverage, as if the columns had nothing to do with each other.

    h(x) = 1/n + sum_{j: x_j != 0} (x_j - m_j)^2 / v_j                                                       (MATH 22.1)

m_j and v_j are the mean of column j and its summed squared deviations over the n rows so far, zeros included. An entry of a
column that was never seen counts 1, as one does whose column is seen for the first time. The zeros of a row are left out, as a
row of a sparse set has too many to look at. O(non-zeros) a row, the same for any cut of the rows; a row of weight 0 moves
nothing.

Where the past fades, n rows count for T = sum gamma^(t-i). Then 1/n is 1/T, and the part of a column with c_j entries is
multiplied by min(n/T, c_j): the c_j T/n of its entries that count, at least one, tell as much of it as c_j did.
"""

from __future__ import annotations

from math import exp2

import numpy as np

from onlinear.compiled import kernel
from onlinear.files import trust
from onlinear.rows.records import Rows

ARRAYS = 3  # entries, mean and summed squared deviations of the entries of each column


class Leverage:
    """The statistics of the columns over the rows so far."""

    def __init__(self, half_life: float | None = None) -> None:
        self.keeps, self._fades = 1.0 if half_life is None else exp2(-1.0 / half_life), half_life is not None
        self.size, self.learned = 0, np.zeros(2)  # n and T
        self._room = np.zeros((ARRAYS, 0))

    @property
    def moments(self) -> np.ndarray:
        """Entries, mean and summed squared deviations of the entries of each column, (3, d)."""
        return self._room[:, : self.size]

    @property
    def rows(self) -> np.ndarray:
        """What a file has of the rows: n, and T where the past fades."""
        return self.learned if self._fades else self.learned[:1]

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` columns; the room doubles, so that growing costs O(1) per new column."""
        if size > self._room.shape[1]:
            bigger = np.zeros((ARRAYS, max(size, 2 * self.size)))
            bigger[:, : self.size] = self.moments
            self._room = bigger

    def grow(self, size: int) -> None:
        """Grow to ``size`` columns."""
        self.take_memory(size)
        self.size = max(size, self.size)

    def learn(self, rows: Rows, s: np.ndarray) -> np.ndarray:
        """The leverages (n,) of rows of weights s, each after the statistics have moved on past it."""
        out = np.empty(rows.count)
        _leverages(rows, s, *self._room, self.size, self.learned, self.keeps, out)
        return out

    def restore(self, moments: np.ndarray, rows: np.ndarray, t: int) -> None:
        """Take the arrays of a run of t rows; raises ModelFileError for arrays that no run gives."""
        trust.must(len(rows) in (1, 2), "numbers of rows of leverages")
        n, kept = float(rows[0]), float(rows[-1])
        trust.must(0.0 <= n <= t and n % 1.0 == 0.0, f"leverages of {n} rows among {t} rows")
        trust.must(min(n, 1.0) <= kept <= n, f"{n} rows that count for {kept}")
        trust.finite("leverage.columns", moments)
        counts, _, deviations = moments
        trust.must(np.all((counts >= 0.0) & (counts <= n) & (counts % 1.0 == 0.0)), f"a count of entries beyond {n} rows")
        trust.must(np.all(deviations >= 0.0), "squared deviations that are negative")
        self.size, self._room, self.learned = moments.shape[1], moments.copy(), np.array([n, kept])
        self._fades = self._fades or len(rows) > 1


@kernel
def _leverages(rows, s, counts, means, squares, size, n, keeps, out):  # type: ignore[no-untyped-def]
    """Move the statistics on past each row of a weight above 0, and write the leverage of every row."""
    starts, columns, values = rows
    for i in range(starts.shape[0] - 1):
        learns = s[i] > 0.0
        if learns:
            n[0] += 1.0
            n[1] = keeps * n[1] + 1.0
        h, ratio = 1.0 / max(n[1], 1.0), n[0] / max(n[1], 1.0)  # 1 / T and n / T
        for k in range(starts[i], starts[i + 1]):
            j, x = columns[k], np.float64(values[k])
            if learns:
                change = x - means[j]
                counts[j] += 1.0
                means[j] += change / counts[j]
                squares[j] += change * (x - means[j])
            m = counts[j] if j < size else 0.0
            if m == 0.0:
                h += 1.0 * (x != 0.0)
            else:
                v = squares[j] + means[j] * means[j] * (m * (n[0] - m) / n[0])
                d = x - means[j] * (m / n[0])
                if v > 0.0:
                    h += d * d / v * min(ratio, m)
        out[i] = h
