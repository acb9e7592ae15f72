"""Reads rows from SciPy's containers, arrays and tables: they are checked, and tidied where necessary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import kernel
from onlinear.rows.arrays import ArrayRows, as_bits, as_floats, from_bits, look, mask
from onlinear.rows.checks import refuse_masked
from onlinear.rows.records import LARGEST_COLUMN, LARGEST_VALUE, Rows, Source, plain, row_of, unlearnable
from onlinear.rows.tidying import tidy


def read(X: Any, name: str = "X") -> Source:
    """Check ``X`` and give its rows; a ``Source`` was checked when it was made.

    Raises TypeError for a container or dtype that holds no numbers, ValueError for a wrong shape, for NaN and infinity (with
    row and column), and for indices that are negative or too large.
    """
    if isinstance(X, Source):
        return X
    if is_sparse(X):
        return _read_sparse(X, name)
    with named_columns(X):
        return _read_dense(dense(X, name), name)


def _read_dense(array: np.ndarray, name: str) -> Source:
    facts, kept = look(array)
    if not np.isfinite(facts.largest):
        row, column = map(int, np.argwhere(~np.isfinite(as_floats(array)))[0])
        raise NotFinite(name, float(array[row, column]), row, column)
    data = ArrayRows(array, facts.full) if kept is None else kept
    return Source(array.shape[0], array.shape[1], facts.size, facts.largest, data)


def learnable(source: Source, name: str) -> Source:
    """The rows, none of whose values is so large that its square is infinite, which no method could learn."""
    if (found := unlearnable(source)) is not None:
        row, value = found
        raise ValueError(
            f"{name} holds a value of size {value:g} at row {row}; values must be at most {LARGEST_VALUE:g} in "
            "size, so that their squares are finite."
        )
    return source


def is_sparse(X: Any) -> bool:
    """Whether ``X`` is a sparse container of SciPy; its module is imported then, so this imports nothing."""
    containers = sys.modules.get("scipy.sparse")
    return containers is not None and bool(containers.issparse(X))


class NotFinite(ValueError):  # noqa: N818 (which value, not that something is wrong)
    """A value is NaN or infinite; ``column`` is its number, or its name in a data frame."""

    def __init__(self, name: str, value: float, row: int, column: Any) -> None:
        super().__init__(name, value, row, column)

    def __str__(self) -> str:
        name, value, row, column = self.args
        what = "NaN" if np.isnan(value) else "infinity"
        return f"{name} contains {what} at row {row}, column {column!r}; every value must be finite."


@contextmanager
def named_columns(X: Any) -> Iterator[None]:
    """An error about a value that is not finite names its column where ``X`` does."""
    try:
        yield
    except NotFinite as error:
        name, value, row, column = error.args
        names = getattr(X, "columns", None)
        if names is None or isinstance(column, str):
            raise
        found = names[column]
        raise NotFinite(name, value, row, found.item() if isinstance(found, np.generic) else found) from None


def dense(X: Any, name: str) -> np.ndarray:
    """``X`` as a 2-D array of numbers."""
    refuse_masked(X, name)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} must be 2-D (rows x columns): {error}") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}; expected real numbers.")
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold numbers, got an array of dtype {array.dtype} (argument must be a string or a number)."
        )
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x columns): Expected 2D array, got {array.ndim}-D array instead, of shape "
            f"{array.shape}. Reshape your data: a single row is X.reshape(1, -1)."
        )
    return array


def _read_sparse(X: Any, name: str) -> Source:
    if X.ndim != 2:
        raise ValueError(f"{name} must be 2-D, got a sparse array of shape {X.shape}.")
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}; expected real numbers.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got a sparse array of dtype {X.dtype}.")
    if X.format == "csc":
        return _read_csc(X, name)
    return _read_csr(X if X.format == "csr" else X.astype(np.float64).tocsr(), name)


def _read_csr(X: Any, name: str) -> Source:
    n, width = X.shape
    starts, indices, values = _compressed(X, n, name)
    columns = plain(indices.view(f"u{indices.itemsize}") if indices.dtype.isnative else indices.astype(np.uint64))
    high, largest, smallest, descents = _scan(starts, columns, as_bits(values), mask(values.dtype))
    nnz = len(values)
    size, top = from_bits(largest, values.dtype), int(high) if nnz else -1
    if top >= width or top > LARGEST_COLUMN:
        at = int(np.argmax((indices < 0) | (indices >= min(width, LARGEST_COLUMN + 1))))
        rule = f"in [0, {width})" if width <= LARGEST_COLUMN else f"at most {LARGEST_COLUMN}"
        raise ValueError(f"{name}: a column index must be {rule}, got {int(indices[at])} at row {row_of(at, starts)}.")
    if not np.isfinite(size):
        at = int(np.argmin(np.isfinite(values)))
        raise NotFinite(name, float(values[at]), row_of(at, starts), int(indices[at]))
    if descents or (nnz and smallest == 0):
        return tidy(Rows(starts, columns, values), width, size, name)
    return Source(n, width, top + 1, size, Rows(starts, plain(columns, np.uint32), values))


def _read_csc(X: Any, name: str) -> Source:
    n, width = X.shape
    starts, indices, values = _compressed(X, width, name)
    wrong = (indices < 0) | (indices >= n)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name}: a row index must be in [0, {n}), got {int(indices[at])} in column {row_of(at, starts)}.")
    return _read_csr(type(X)((values, X.indices, X.indptr), shape=X.shape).tocsr(), name)


def _compressed(X: Any, lines: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each row of CSR, or column of CSC, begins; the indices as they are, and the values."""
    values, indices, indptr = as_floats(X.data), X.indices, X.indptr
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise TypeError(f"{name}: indices and indptr must be integers, got dtypes {indices.dtype} and {indptr.dtype}.")
    ordered = len(indptr) == lines + 1 and indptr[0] == 0 and np.all(indptr[1:] >= indptr[:-1])
    if not ordered or indptr[-1] > min(len(indices), len(values)):
        raise ValueError(f"{name}: indptr must start at 0, never decrease and end within the stored entries.")
    nnz = int(indptr[-1])
    return plain(indptr, np.uint64), indices[:nnz], plain(values[:nnz])


class Scan(NamedTuple):
    """The facts that one pass over all entries finds."""

    size: int  # 1 + the largest column
    largest: float  # the largest absolute value; not finite if any value is not
    zeros: bool  # whether an entry is 0
    ordered: bool  # whether columns ascend inside every row


def scan(rows: Rows) -> Scan:
    """Look at all entries of rows that may come from anywhere, with ``indptr`` already checked."""
    high, largest, smallest, descents = _scan(*rows[:2], as_bits(rows.values), mask(rows.values.dtype))
    nnz = len(rows.values)
    return Scan(int(high) + 1 if nnz else 0, from_bits(largest, rows.values.dtype), nnz > 0 and smallest == 0, not descents)


@kernel
def _scan(starts, columns, bits, mask):  # type: ignore[no-untyped-def]
    """Largest column, largest and smallest absolute value (as bits), and how often columns do not ascend inside a row.

    Sixty-four rows at a time, so that memory is read once; the loops over entries are free of branches and vectorise, the first
    in numbers of 32 bits, of which a register holds eight. Without max and min, each of which Numba compiles as a function,
    before the first fit.
    """
    high, largest, smallest, descents = columns.dtype.type(0), bits.dtype.type(0), mask, np.int64(0)
    n = starts.shape[0] - 1
    for i in range(0, n, 64):
        last = i + 64 if i + 64 < n else n
        begin, end = starts[i], starts[last]
        if begin == end:
            continue
        block, falls = columns[begin:end], np.uint32(0)
        high = high if high > block[0] else block[0]
        for k in range(1, block.shape[0]):
            high = high if high > block[k] else block[k]
            falls = np.uint32(falls + np.uint32(block[k] <= block[k - 1]))
        descents += np.int64(falls)
        for r in range(i + 1, last):
            k = starts[r]
            if begin < k and k < end and k != starts[r - 1]:
                descents -= np.int64(columns[k] <= columns[k - np.uint64(1)])
        sizes = bits[begin:end]
        for k in range(sizes.shape[0]):
            size = sizes[k] & mask
            largest = largest if largest > size else size
            smallest = smallest if smallest < size else size
    return high, largest, smallest, descents
