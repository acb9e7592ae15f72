"""Which rows are copies of one row: they have the same entries and the same targets.

Entries are compared by a mark of 64 bits for each row, a sum over its non-zeros. So every container has the same marks, and
they cost O(non-zeros).
"""

from __future__ import annotations

import numpy as np

from onlinear.rows import Rows

ODD = np.uint64(0x9E3779B97F4A7C15)  # what numbers are multiplied by, so that all their bits tell
HALF = np.uint64(32)
BY_NATURE = 0.1  # of the rows with the same entries: where more have differing targets, they are no copies


def marks_of(rows: Rows) -> np.ndarray:
    """The mark of each row."""
    entries = _mixed(_mixed(rows.indices.astype(np.uint64) + ODD) ^ rows.values.astype(np.float64).view(np.uint64))
    sums = np.append(np.uint64(0), np.cumsum(entries, dtype=np.uint64))
    return np.diff(sums[rows.indptr.astype(np.intp)])


def _mixed(numbers: np.ndarray) -> np.ndarray:
    for _ in range(2):
        numbers = (numbers ^ (numbers >> HALF)) * ODD
    return numbers ^ (numbers >> HALF)


def kinds_of(marks: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """The number of its kind for each row: copies are of one kind, all other rows are of a kind of their own.

    Rows with the same entries are copies where their targets y (n, K) are the same too, and they are not more than ``most``.
    Where a tenth of the rows with the same entries has differing targets, such rows meet by nature, as those of a few
    categories do, and there are no copies.
    """
    _, entries, counts = np.unique(marks, return_inverse=True, return_counts=True)
    differ = _differ(entries, y, len(counts))
    if counts[differ].sum() > BY_NATURE * counts[counts > 1].sum():
        return np.arange(len(y))
    copied = (~differ & (counts <= most))[entries]
    return np.where(copied, entries, len(counts) + np.arange(len(y)))


def _differ(entries: np.ndarray, y: np.ndarray, kinds: int) -> np.ndarray:
    """For each of so many kinds of entries, whether its rows have differing targets."""
    first = np.empty(kinds, np.intp)
    first[entries] = np.arange(len(y))
    differ = np.zeros(kinds, dtype=bool)
    np.logical_or.at(differ, entries, (y != y[first[entries]]).any(axis=1))
    return differ
