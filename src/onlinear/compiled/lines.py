"""Lines of memory: sixty-four bytes of numbers at once.

The texts stand here; what is compiled for them is in ``lines_code.py``.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled.lanes import Place

LINE = 64  # bytes


def exchange(keys: np.ndarray, a: Place, b: Place) -> None:
    """Of each two unsigned keys at one place of rows ``a`` and ``b``, put the smaller into row a; a row is a line."""
    keys[a], keys[b] = np.minimum(keys[a], keys[b]), np.maximum(keys[a], keys[b])


def ask(array: np.ndarray, k: Place) -> None:
    """Ask for the line that holds array[k], ahead of its use."""


def non_zeros(values: np.ndarray, at: Place, column: Place, indices: np.ndarray, found: np.ndarray, end: Place) -> Place:
    """Write the non-zeros of the eight values from ``at`` on, and their columns, to ``found`` and ``indices``; give their end.

    ``column``: the first value's. Up to eight places from ``end`` on are written, whatever is kept.
    """
    for k in range(8):
        indices[end], found[end] = column + k, values[at + k]
        end += values[at + k] != 0.0
    return end


def turned(values: np.ndarray, at: Place, apart: Place, out: np.ndarray, to: Place, beside: Place) -> None:
    """Turn eight columns of eight numbers, ``apart`` from each other, into rows, which are ``beside`` each other."""
    for row in range(8):
        for column in range(8):
            out[to + row * beside + column] = values[at + column * apart + row]
