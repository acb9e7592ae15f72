"""Reads rows from SciPy's containers, arrays and tables: they are checked, and tidied where necessary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinear.rows.arrays import ArrayRows, as_floats, from_bits, look
from onlinear.rows.checks import refuse_missing
from onlinear.rows.records import LARGEST_COLUMN, LARGEST_VALUE, Rows, Source, plain, row_of, unlearnable
from onlinear.rows.regrouping import ascends, by_row, columns_by_row, starts_of
from onlinear.rows.scanning import Found, look_over
from onlinear.rows.tidying import ALL_OWNED, Owned, tidy
from onlinear.text.hints import MISSING_IN_TABLE


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
    """A value is NaN or infinite; ``column`` is its number, or its name in a data frame (``named``)."""

    def __init__(self, name: str, value: float, row: int, column: Any, named: bool = False) -> None:
        super().__init__(name, value, row, column, named)

    def __str__(self) -> str:
        name, value, row, column, named = self.args
        what = "NaN" if np.isnan(value) else "infinity"
        hint = MISSING_IN_TABLE if named and np.isnan(value) else ""
        return f"{name} contains {what} at row {row}, column {column!r}; every value must be finite{hint}."


def column_names(X: Any) -> Any:
    """The names of a table's columns; None for what has none."""
    names = getattr(getattr(X, "schema", None), "names", None)  # of Arrow, whose columns are arrays
    return names if isinstance(names, list) else getattr(X, "columns", None)


@contextmanager
def named_columns(X: Any) -> Iterator[None]:
    """An error about a value that is not finite names its column where ``X`` does."""
    try:
        yield
    except NotFinite as error:
        name, value, row, column, named = error.args
        names = column_names(X)
        if names is None or named:
            raise
        found = names[column]
        raise NotFinite(name, value, row, found.item() if isinstance(found, np.generic) else found, named=True) from None


def dense(X: Any, name: str) -> np.ndarray:
    """``X`` as a 2-D array of numbers."""
    refuse_missing(X, name)
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
    if X.format == "coo":
        return _read_coo(X, name)
    return _read_csr(X if X.format == "csr" else X.astype(np.float64).tocsr(), name)


def _read_csr(X: Any, name: str) -> Source:
    starts, columns, values = _compressed(X, X.shape[0], name)
    return _checked(Rows(plain(starts, np.uint64), columns, values), X.shape[1], name, _converted(values, X), held=X.indices)


def _converted(values: np.ndarray, X: Any) -> Owned:
    """What may be written of rows that lie where they are stored, but for values that may be of another type there."""
    return Owned(values=not np.may_share_memory(values, X.data))


def _checked(
    rows: Rows, width: int, name: str, owned: Owned, found: Found | None = None, held: np.ndarray | None = None
) -> Source:
    """Rows whose columns are whatever was stored, checked; ``found``: what is in them, where that is known; ``held``: the
    columns as they were stored, where they may be wrong."""
    starts, columns, values = rows
    high, largest, smallest, descents = look_over(rows) if found is None else found
    nnz = len(values)
    size, top = from_bits(largest, values.dtype), int(high) if nnz else -1
    if top >= width or top > LARGEST_COLUMN:
        at = int(np.argmax(columns >= min(width, LARGEST_COLUMN + 1)))
        raise _wrong_column(width, (columns if held is None else held)[at], row_of(at, starts), name)
    if not np.isfinite(size):
        at = int(np.argmin(np.isfinite(values)))
        raise NotFinite(name, float(values[at]), row_of(at, starts), int(columns[at]))
    if descents or (nnz and smallest == 0):
        return tidy(rows, width, (top, size, not descents), name, owned)
    return Source(rows.count, width, top + 1, size, Rows(starts, plain(columns, np.uint32), values))


def _wrong_column(width: int, column: Any, row: int, name: str) -> ValueError:
    rule = f"in [0, {width})" if width <= LARGEST_COLUMN else f"at most {LARGEST_COLUMN}"
    return ValueError(f"{name}: a column index must be {rule}, got {int(column)} at row {row}.")


def _wrong_row(n: int, line: Any, where: str, name: str) -> ValueError:
    return ValueError(f"{name}: a row index must be in [0, {n}), got {int(line)} {where}.")


def _read_csc(X: Any, name: str) -> Source:
    n, width = X.shape
    begins, lines, values = _compressed(X, width, name)
    starts = starts_of(lines, n)
    if isinstance(starts, int):
        raise _wrong_row(n, X.indices[starts], f"in column {row_of(starts, plain(begins, np.uint64))}", name)
    if width <= len(lines):
        rows, found = columns_by_row(starts, plain(begins, np.uint64), lines, values)
    else:  # of columns without entries there may be any number
        used = np.flatnonzero(begins[1:] != begins[:-1])
        lengths = (begins[used + 1] - begins[used]).astype(np.int64)
        rows, found = by_row(starts, lines, np.repeat(used.astype(np.uint64), lengths), values)
    return _checked(rows, width, name, ALL_OWNED, found)


def _read_coo(X: Any, name: str) -> Source:
    (n, width), values = X.shape, plain(as_floats(X.data))
    _refuse_other_than_integers(name, row=X.row, col=X.col)
    if not len(X.row) == len(X.col) == len(values):
        raise ValueError(f"{name}: row, col and data must be as long, got {len(X.row)}, {len(X.col)} and {len(values)}.")
    lines, columns = as_unsigned(X.row), as_unsigned(X.col)
    starts = starts_of(lines, n)
    if isinstance(starts, int):
        raise _wrong_row(n, X.row[starts], f"at entry {starts}", name)
    if ascends(lines):
        return _checked(Rows(starts, columns, values), width, name, _converted(values, X), held=X.col)
    if int(columns.max()) >= min(width, LARGEST_COLUMN + 1):
        at = int(np.argmax(columns >= min(width, LARGEST_COLUMN + 1)))
        raise _wrong_column(width, X.col[at], int(lines[at]), name)
    rows, found = by_row(starts, lines, columns, values)
    return _checked(rows, width, name, ALL_OWNED, found)


def _compressed(X: Any, lines: int, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each row of CSR, or column of CSC, begins; the indices as unsigned numbers, and the values."""
    values, indices, indptr = as_floats(X.data), X.indices, X.indptr
    _refuse_other_than_integers(name, indices=indices, indptr=indptr)
    ordered = len(indptr) == lines + 1 and indptr[0] == 0 and np.all(indptr[1:] >= indptr[:-1])
    if not ordered or indptr[-1] > min(len(indices), len(values)):
        raise ValueError(f"{name}: indptr must start at 0, never decrease and end within the stored entries.")
    nnz = int(indptr[-1])
    return indptr, as_unsigned(indices[:nnz]), plain(values[:nnz])


def _refuse_other_than_integers(name: str, **arrays: np.ndarray) -> None:
    if not all(array.dtype.kind in "iu" for array in arrays.values()):
        found = " and ".join(str(array.dtype) for array in arrays.values())
        raise TypeError(f"{name}: {' and '.join(arrays)} must be integers, got dtypes {found}.")


def as_unsigned(indices: np.ndarray) -> np.ndarray:
    """Indices as unsigned numbers of 32 or 64 bits, negative ones as numbers that are too large; copied where necessary."""
    ready = indices.dtype.isnative and indices.itemsize >= 4
    return plain(indices.view(f"u{indices.itemsize}") if ready else indices.astype(np.int64).view(np.uint64))
