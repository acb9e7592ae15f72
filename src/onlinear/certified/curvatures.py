"""Matrices of curvatures, (X, 1)' diag(h) (X, 1), of rows in memory: entry by entry, or with their zeros by BLAS."""

from __future__ import annotations

import numpy as np

from onlinear.certified.columns import Table, spread, taken
from onlinear.certified.costs import multiplies_zeros, pairs_of
from onlinear.compiled import kernel

AT_ONCE = 1 << 18  # entries, zeros among them, of rows that stay at hand while their curvatures are summed


@kernel
def add_curvatures(starts, places, values, h, H):  # type: ignore[no-untyped-def]
    """H += (X, 1)' diag(h) (X, 1), the upper triangle, the intercept last; places ascend in a row."""
    last = H.shape[0] - 1
    for i in range(starts.shape[0] - 1):
        if h[i] != 0.0:
            here, entries = places[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]]
            for k in range(here.shape[0]):
                row, t = H[here[k]], h[i] * entries[k]
                for e in range(k, here.shape[0]):
                    row[here[e]] += t * entries[e]
                row[last] += t
            H[last, last] += h[i]


def add_scaled(X: np.ndarray, h: np.ndarray, room: np.ndarray, H: np.ndarray) -> None:
    """H += (X, 1)' diag(h) (X, 1), the upper triangle, of rows with zeros; ``room`` is for as many rows at least, h >= 0."""
    from scipy.linalg.blas import dsyrk

    root, scaled = np.sqrt(h), room[: len(X)]
    np.multiply(X, root[:, None], out=scaled[:, :-1])
    scaled[:, -1] = root
    dsyrk(1.0, scaled.T, 1.0, H.T, lower=1, overwrite_c=1)


def rows_at_once(m: int) -> int:
    """Rows whose curvatures in m columns are summed at once: not so few that H is read again and again."""
    return max(1, m, AT_ONCE // (m + 1))


def gram(table: Table, h: np.ndarray, m: int) -> np.ndarray:
    """(X, 1)' diag(h) (X, 1) of m columns and h >= 0, the intercept last."""
    H = np.zeros((m + 1, m + 1))
    add_gram(table, h, H)
    return mirrored(H)


def add_gram(table: Table, h: np.ndarray, H: np.ndarray) -> None:
    """H += (X, 1)' diag(h) (X, 1), the upper triangle; places ascend in a row."""
    steep, m = np.flatnonzero(h), len(H) - 1
    if not multiplies_zeros(len(steep), m, pairs_of(table) * len(steep) / max(len(h), 1)):
        add_curvatures(*table, h, H)
        return
    if len(steep) < len(h):
        table, h = taken(table, steep), h[steep]
    n = len(steep)
    step = max(1, min(n, rows_at_once(m)))
    rows, room = np.zeros((step, m)), np.empty((step, m + 1))
    for first in range(0, n, step):
        own, starts = h[first : first + step], table.starts[first : first + step + 1]
        rows[:] = 0.0
        spread(starts, table.places, table.values, rows)
        add_scaled(rows[: len(own)], own, room, H)


def mirrored(H: np.ndarray) -> np.ndarray:
    """H, whose lower triangle takes the upper one."""
    for a in range(len(H) - 1):
        H[a + 1 :, a] = H[a, a + 1 :]
    return H
