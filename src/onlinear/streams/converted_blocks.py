"""Turns the columns of one row group or record batch of a converted file into a checked block, or names its first wrong row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from onlinear.rows import Rows, plain, scan
from onlinear.streams.blocks import Block, StreamError
from onlinear.streams.converted import Header


class GroupColumns(NamedTuple):
    """One row group or record batch: its number of rows, and the call that reads its columns."""

    rows: int
    read: Callable[[], Any]


class RowGroup(NamedTuple):
    """One row group or record batch and its place in the file."""

    path: str
    columns: GroupColumns
    before: int  # rows of the file before these
    header: Header


def one_array(column: Any) -> Any:
    """The column as one array; a column of a table may come in chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def block_of_group(group: RowGroup, columns: dict[str, Any]) -> Block:
    """The block of these columns. Raises StreamError for the first wrong row: a damaged file gives no wrong block."""
    n, first = group.columns.rows, group.before + 1
    indices, values = columns["indices"], columns["values"]
    lists = [column.values for column in (indices, values) if pa.types.is_list(column.type)]
    given = [columns["label"], indices, values, *lists]
    if any(len(column) != n for column in columns.values()) or any(column.null_count for column in given):
        raise StreamError(f"{group.path}:{first}: expected no missing label, index or value in or below this row.")
    starts, entries = _read_numbers(group, indices, np.dtype("<u4"))
    ends, numbers = _read_numbers(group, values, np.dtype("<f4" if group.header.float32 else "<f8"))
    lengths = starts[1:] - starts[:-1] != ends[1:] - ends[:-1]
    if lengths.any():
        raise _row_error(group, np.argmax(lengths), "as many values as indices", "another number")
    rows = Rows(starts, plain(entries, np.uint32), plain(numbers, np.float64))
    y = plain(columns["label"].to_numpy())
    weights = _read_weights(columns.get("weight"))
    seen = scan(rows)
    if not (seen.ordered and np.isfinite(seen.largest) and seen.size <= group.header.n_features) or seen.zeros:
        raise _entries_error(group, rows)
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise _row_error(group, row, "a finite label", y[row])
    if weights is not None and not (np.isfinite(weights) & (weights >= 0.0)).all():
        row = int(np.argmin(np.isfinite(weights) & (weights >= 0.0)))
        raise _row_error(group, row, "a weight of 0 or more", weights[row])
    return Block(rows, y, np.arange(first, first + n), (group.path,), seen.size, seen.largest, weights=weights)


def _read_numbers(group: RowGroup, column: Any, kind: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Where each row's numbers start, and the numbers. A binary column holds numbers of the given kind."""
    if pa.types.is_list(column.type):
        offsets, numbers = column.offsets.to_numpy(), column.values.to_numpy()
        return (offsets - offsets[0]).astype(np.uint64), numbers[offsets[0] : offsets[-1]]
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    broken = (bounds[1:] - bounds[:-1]) % kind.itemsize != 0
    if broken.any():
        raise _row_error(group, np.argmax(broken), f"indices and values of {kind.itemsize} bytes each", "a part of one")
    numbers = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    return ((bounds - bounds[0]) // kind.itemsize).astype(np.uint64), numbers.view(kind)


def _read_weights(column: Any) -> np.ndarray | None:
    if column is None or column.null_count == len(column):
        return None
    return plain(column.fill_null(1.0).to_numpy())


def _row_error(group: RowGroup, row: Any, expected: str, got: Any) -> StreamError:
    return StreamError(f"{group.path}:{group.before + 1 + int(row)}: expected {expected}, got {got}.")


def _entries_error(group: RowGroup, rows: Rows) -> StreamError:
    """The error that names the first rule the entries break, and the row."""
    starts = rows.indptr.astype(np.int64)
    owners = np.repeat(np.arange(rows.count), starts[1:] - starts[:-1])
    columns, values = rows.indices.astype(np.int64), rows.values
    rules = (
        (np.append(False, (owners[1:] == owners[:-1]) & (columns[1:] <= columns[:-1])), "ascending indices", columns),
        (columns >= group.header.n_features, f"indices below {group.header.n_features}, as the metadata say", columns),
        (~np.isfinite(values) | (values == 0.0), "finite values other than 0", values),
    )
    wrong, expected, found = next(rule for rule in rules if rule[0].any())
    at = int(np.argmax(wrong))
    return _row_error(group, owners[at], expected, found[at].item())
