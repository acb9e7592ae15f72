"""Rows as kernels see them, made from what users have: CSR, CSC and other sparse containers, dense arrays, frames.

Every layout becomes the same stream of non-zero entries in increasing column order, so a kernel exists once and the layouts
give the same bits: an entry equal to 0 is no entry, repeated indices are summed in float64. Dense arrays are turned into
blocks of rows of bounded size (a quarter of the work of learning them); CSR arrays that are already in order are not copied.
All checks of values and indices run before the first block is handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear.jit import kernel

BLOCK = 1 << 20  # entries of a dense array that are converted at a time
LARGEST_COLUMN = 2**31 - 2


class Rows(NamedTuple):
    """Rows of non-zeros: entries indptr[i] .. indptr[i+1] of ``indices`` and ``values`` are row i, columns ascending."""

    indptr: np.ndarray  # (n+1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,) float64 or float32

    @property
    def count(self) -> int:  # type: ignore[override]
        return len(self.indptr) - 1


class Source(NamedTuple):
    """Checked input: ``n`` rows, ``width`` declared columns, ``size`` = 1 + the largest column with a non-zero entry."""

    n: int
    width: int
    size: int
    largest: float  # the largest absolute value
    data: Any  # Rows, or a dense 2-D array

    @property
    def nnz(self) -> int:
        return self.data.values.shape[0] if isinstance(self.data, Rows) else int(np.count_nonzero(self.data))

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """The rows in order, as (which rows, those rows)."""
        if isinstance(self.data, Rows):
            yield slice(0, self.n), self.data
            return
        step = max(1, BLOCK // max(1, self.width))
        for first in range(0, self.n, step):
            block = self.data[first : first + step]
            yield slice(first, first + block.shape[0]), dense_rows(block)

    def take(self, order: np.ndarray) -> Source:
        """The rows in another order, copied."""
        if isinstance(self.data, Rows):
            return self._replace(n=len(order), data=taken(self.data, order))
        return self._replace(n=len(order), data=self.data[order])

    def stored(self) -> Source:
        """The same rows with the conversion done once, for several passes."""
        if isinstance(self.data, Rows) or self.n == 0:
            return self
        pieces = [rows for _, rows in self.blocks()]
        ends = np.cumsum([0, *(len(rows.values) for rows in pieces)])
        indptr = np.concatenate([rows.indptr[:-1] + np.uint64(end) for rows, end in zip(pieces, ends, strict=False)])
        indptr = np.append(indptr, np.uint64(ends[-1]))
        indices = np.concatenate([rows.indices for rows in pieces])
        return self._replace(data=Rows(indptr, indices, np.concatenate([rows.values for rows in pieces])))


def read(X: Any, name: str = "X") -> Source:
    """Check ``X`` and give its rows.

    Raises TypeError for a container or dtype that holds no numbers, ValueError for a wrong shape, for NaN and infinity (with
    row and column), and for indices that are negative or too large.
    """
    if sp.issparse(X):
        return _read_sparse(X, name)
    array = dense(X, name)
    largest, width = _scan_dense(array)
    if not np.isfinite(largest):
        row, column = map(int, np.argwhere(~np.isfinite(array))[0])
        raise _not_finite(name, array[row, column], row, column)
    return Source(array.shape[0], array.shape[1], int(width), float(largest), array)


def _not_finite(name: str, value: float, row: int, column: int) -> ValueError:
    what = "NaN" if np.isnan(value) else "infinity"
    return ValueError(f"{name} contains {what} at row {row}, column {column}; every value must be finite.")


def dense(X: Any, name: str) -> np.ndarray:
    """``X`` as a 2-D array of floats."""
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}; expected real numbers.")
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold numbers, got an array of dtype {array.dtype} (argument must be a string or a number)."
        )
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x columns): Expected 2D array, got {array.ndim}-D array instead, of shape {array.shape}. "
            "Reshape your data: a single row is X.reshape(1, -1)."
        )
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    return array


def _read_sparse(X: Any, name: str) -> Source:
    if X.ndim != 2:
        raise ValueError(f"{name} must be 2-D, got a sparse array of shape {X.shape}.")
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {X.dtype}; expected real numbers.")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got a sparse array of dtype {X.dtype}.")
    checked = _check_csr(X, name) if X.format == "csr" else _check_csr(X.tocsr(), name)
    return checked


def _check_csr(X: Any, name: str) -> Source:
    n, width = X.shape
    values = X.data if X.data.dtype in (np.float64, np.float32) else X.data.astype(np.float64)
    indptr, indices = X.indptr, X.indices
    if len(indptr) != n + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] > min(len(indices), len(values)):
        raise ValueError(f"{name}: indptr must start at 0, never decrease and end within the stored entries.")
    nnz = int(indptr[-1])
    values, indices = values[:nnz], indices[:nnz]
    starts = np.ascontiguousarray(indptr).astype(np.uint64)
    low, high, largest, zeros, descents = _scan(starts, indices, values)
    if nnz and (low < 0 or high >= width or high > LARGEST_COLUMN):
        at = int(np.argmax((indices < 0) | (indices >= min(width, LARGEST_COLUMN + 1))))
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        rule = f"in [0, {width})" if width <= LARGEST_COLUMN else f"at most {LARGEST_COLUMN}"
        raise ValueError(f"{name}: a column index must be {rule}, got {int(indices[at])} at row {row}.")
    if not np.isfinite(largest):
        at = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        raise _not_finite(name, values[at], row, int(indices[at]))
    if zeros or descents:
        clean = sp.csr_matrix((values.astype(np.float64), indices, indptr), shape=X.shape, copy=True)
        clean.sort_indices()
        clean.sum_duplicates()
        clean.eliminate_zeros()
        starts, indices, values = clean.indptr.astype(np.uint64), clean.indices, clean.data
        high = int(indices.max()) if len(indices) else -1
        largest = np.abs(values).max(initial=0.0)
        if not np.isfinite(largest):
            raise ValueError(f"{name}: repeated entries sum to infinity; every value must be finite.")
    if indices.dtype == np.int32 and indices.flags.c_contiguous:
        columns = indices.view(np.uint32)
    else:
        columns = np.ascontiguousarray(indices).astype(np.uint32)
    return Source(n, width, high + 1, float(largest), Rows(starts, columns, np.ascontiguousarray(values)))


@kernel
def _scan(starts, indices, values):  # type: ignore[no-untyped-def]
    """Smallest and largest index, largest |value| (infinite if any is not finite), zeros, and indices that do not ascend."""
    low, high, zeros, descents = 0, -1, 0, 0
    largest = 0.0
    for k in range(indices.shape[0]):
        low = min(low, indices[k])
        high = max(high, indices[k])
    for k in range(1, indices.shape[0]):
        descents += indices[k] <= indices[k - 1]
    for i in range(1, starts.shape[0] - 1):
        k = starts[i]
        if 0 < k < indices.shape[0] and k != starts[i - 1]:
            descents -= indices[k] <= indices[k - 1]
    bad = 0
    for k in range(values.shape[0]):
        size = abs(values[k])
        zeros += size == 0.0
        bad += not size < np.inf
        largest = size if size > largest else largest
    return low, high, np.inf if bad else largest, zeros, descents


@kernel
def _scan_dense(X):  # type: ignore[no-untyped-def]
    """The largest |value| (infinite if any is not finite) and 1 + the largest column with a non-zero."""
    largest, width, bad = 0.0, 0, 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            size = abs(X[i, j])
            bad += not size < np.inf
            largest = size if size > largest else largest
        for j in range(X.shape[1] - 1, width - 1, -1):
            if X[i, j] != 0.0:
                width = j + 1
                break
    return np.inf if bad else largest, width


def dense_rows(X: np.ndarray) -> Rows:
    """The non-zeros of a dense block."""
    indptr = np.zeros(X.shape[0] + 1, np.uint64)
    indices = np.empty(X.size, np.uint32)
    values = np.empty(X.size, X.dtype)
    nnz = _compress(X, indptr, indices, values)
    return Rows(indptr, indices[:nnz], values[:nnz])


@kernel
def _compress(X, indptr, indices, values):  # type: ignore[no-untyped-def]
    end = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            indices[end] = j
            values[end] = x
            end += x != 0.0
        indptr[i + 1] = end
    return end


def taken(rows: Rows, order: np.ndarray) -> Rows:
    """Rows ``order`` of ``rows``, copied."""
    lengths = (rows.indptr[1:] - rows.indptr[:-1])[order]
    indptr = np.zeros(len(order) + 1, np.uint64)
    np.cumsum(lengths, out=indptr[1:])
    indices = np.empty(int(indptr[-1]), np.uint32)
    values = np.empty(int(indptr[-1]), rows.values.dtype)
    _gather(rows, order.astype(np.int64), indptr, indices, values)
    return Rows(indptr, indices, values)


@kernel
def _gather(rows, order, indptr, indices, values):  # type: ignore[no-untyped-def]
    starts, columns, entries = rows
    for i in range(order.shape[0]):
        begin, end = starts[order[i]], starts[order[i] + 1]
        to = indptr[i]
        for k in range(begin, end):
            indices[to] = columns[k]
            values[to] = entries[k]
            to += np.uint64(1)


@kernel
def dot_rows(rows, weights, out):  # type: ignore[no-untyped-def]
    """out_i += sum of weights_e x_e over the entries e of row i, in order; one weight per entry."""
    starts, _, values = rows
    for i in range(starts.shape[0] - 1):
        total = out[i]
        for k in range(starts[i], starts[i + 1]):
            total += weights[k] * values[k]
        out[i] = total
