"""Arguments of a learner, checked: counts, first weights, and a row given by its non-zeros."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from onlinear.rows import LARGEST_COLUMN, Rows, Source, checks, plain
from onlinear.text.form import check_whole

AS_PAIR = "For a dense row give np.flatnonzero(row) and row[row != 0]."


def count(name: str, value: Any) -> int:
    """An integer of at least 1."""
    return check_whole(name, value, 1)


def first_weights(start: Any, n_features: int | None, outputs: int) -> np.ndarray:
    """The weights before the first row, (d, K): as given, else 0 for each of the columns known."""
    if n_features is not None and count("n_features", n_features) > LARGEST_COLUMN + 1:
        raise ValueError(f"n_features must be at most {LARGEST_COLUMN + 1}, got {n_features}.")
    if start is None:
        return np.zeros((n_features or 0, outputs))
    weights = np.asarray(start, dtype=np.float64)
    weights = weights.reshape(-1, 1) if weights.ndim == 1 and outputs == 1 else weights
    if weights.ndim != 2 or weights.shape[1] != outputs or (n_features is not None and len(weights) != n_features):
        wanted = f"({n_features or 'd'},)" if outputs == 1 else f"({n_features or 'd'}, {outputs})"
        raise ValueError(f"start must have shape {wanted}, got {np.shape(start)}.")
    return checks.finite(weights, "start")


def plain_row(indices: Any, values: Any) -> Source | None:
    """A row of integer columns that ascend and of finite float64 values none of which is 0; None for any other."""
    if type(indices) is not np.ndarray or type(values) is not np.ndarray or values.dtype != np.float64:
        return None
    n = len(values) if values.ndim == 1 and indices.shape == values.shape and indices.dtype.kind in "iu" else 0
    columns = indices.tolist() if n else []
    if n == 0 or columns[0] < 0 or columns[-1] > LARGEST_COLUMN or any(a >= b for a, b in pairwise(columns)):
        return None
    sizes = np.abs(values)
    if not 0.0 < sizes.min() <= sizes.max() < np.inf:
        return None
    size = columns[-1] + 1
    starts = np.array([0, n], np.uint64)
    return Source(1, size, size, float(sizes.max()), Rows(starts, indices.astype(np.uint32), plain(values)))


def only_one(y: Any) -> np.ndarray:
    """The target of one row as an array (1,)."""
    found = np.asarray(y)
    if found.size != 1:
        raise ValueError(f"y must be one number for 1 output, got shape {found.shape}.")
    return found.reshape(1)


def row_arrays(indices: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The columns and values of a row as arrays; raises ValueError for masked ones, whose hidden numbers would be taken."""
    for name, given in (("indices", indices), ("values", values)):
        if type(given) is not np.ndarray:
            checks.refuse_missing(given, name)
    return np.asarray(indices), np.asarray(values)


def one_row(indices: Any, values: Any) -> Any:
    """A row as a CSR matrix as wide as its last column says."""
    from scipy.sparse import csr_matrix

    columns, entries = row_arrays(indices, values)
    if columns.ndim != 1 or entries.ndim != 1 or len(columns) != len(entries):
        hint = f" {AS_PAIR}" if entries.ndim == 0 else ""
        raise ValueError(
            f"indices and values must be 1-D and equally long, got shapes {columns.shape} and {entries.shape}.{hint}"
        )
    if len(columns) and columns.dtype.kind not in "iu":
        beyond = [column for column in indices if isinstance(column, int) and not 0 <= column < 2**63]
        if beyond:
            raise ValueError(f"a column index must be from 0 to {LARGEST_COLUMN}, got {beyond[0]}.")
        raise TypeError(f"indices must be integers, got dtype {columns.dtype}.")
    if len(entries) and entries.dtype.kind not in "fiubc":
        raise TypeError(f"values must be numbers, got dtype {entries.dtype}.")
    if len(columns) and columns.min() < 0:
        raise ValueError(f"indices must not be negative, got {columns.min()}.")
    width = int(columns.max()) + 1 if len(columns) else 1
    if width > LARGEST_COLUMN + 1:
        raise ValueError(f"a column index must be at most {LARGEST_COLUMN}, got {width - 1}.")
    return csr_matrix((entries, columns.astype(np.int64), [0, len(columns)]), shape=(1, width))


def row_of_call(row: int) -> str:
    """The name of a row where the caller's own call begins with row 0, with a space behind it."""
    return f"at row {row} of this call "


def unnamed(row: int) -> str:
    """No name: whoever calls says which row it is, or none can."""
    return ""
