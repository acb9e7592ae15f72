"""Sparse rows as columns of a Parquet or Arrow IPC file, so that later passes parse no text.

    label    double
    weight   double, missing where it is 1
    indices  list of uint32, from 0, ascending
    values   list of double, or of float where asked for; finite, none equal to 0

In the Parquet files written here a row's indices and values are binary instead: the numbers' bytes, little-endian. Those are
read three times as fast as lists, of whose every number a level is decoded. Either form is read from either kind of file.

A record batch or row group holds about ``ENTRIES`` entries and is read back as one block. The metadata's entry
``onlinear-rows`` is JSON: version, rows, n_features (1 + the largest column), base (the first index in the text the rows came
from), task, classes, labels (the classes' names), encoding (how named features became columns) and float32 (whether values are
floats). A column of a Parquet file is compressed by LZ4 where that halves it; Arrow files are mapped, and kernels work on the
file's own pages.

One compiled pass checks every block: a damaged or hostile file gives an error, and no wrong row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onlinear.files.writing import new_file, scratch
from onlinear.rows import LARGEST_COLUMN, Rows, plain, scan
from onlinear.streams import ipc
from onlinear.streams.ahead import cores, in_order
from onlinear.streams.arrow import ERRORS, LARGEST_BATCH, first_line, named, valid
from onlinear.streams.blocks import Block, Reader, Stream, StreamError, joined
from onlinear.streams.encoding import numbered
from onlinear.streams.files import is_pipe

KEY = b"onlinear-rows"
VERSION = 1
ENTRIES = 1 << 20  # of a record batch or row group
# Of Parquet files: in effect one page for each column of a row group, copied once less. Figures are in docs/streams.md.
LAYOUT: dict[str, Any] = {"data_page_size": 1 << 28, "use_dictionary": False, "write_statistics": False, "store_schema": False}
MOST_CLASSES = 256  # different whole labels that are listed as classes where the source names none
LARGEST_GROUP = LARGEST_BATCH
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
COLUMNS = ("label", "weight", "indices", "values")
MOST_BYTES = (1 << 31) - 1  # of the numbers of a group, which its offsets count
T = TypeVar("T")


class Header(NamedTuple):
    """What the metadata of a file say."""

    rows: int
    n_features: int
    base: int = 1
    task: str | None = None
    classes: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    encoding: dict[str, Any] | None = None
    float32: bool = False


# --- writing ---------------------------------------------------------------------------------------------------------


def write_sparse(path: str | os.PathLike[str], stream: Stream, *, float32: bool = False) -> int:
    """Write the rows of a stream to a Parquet (.parquet, .pq) or Arrow IPC file (.arrow, .feather, .ipc); how many there were.

    ``float32``: values are rounded to the nearest float; those that round to 0 are left out, and one too large for a float
    raises ValueError. Labels and weights keep all bits. The file gets its name when it is whole; an Arrow file takes twice its
    room on the way.
    """
    suffix = Path(path).suffix
    if suffix not in PARQUET + ARROW:
        raise ValueError(f"{os.fspath(path)}: the name must end with one of {', '.join(PARQUET + ARROW)}, got {suffix!r}.")
    schema = _schema(float32, lists=suffix in ARROW)
    totals = _Totals(stream, float32)
    batches = (_batch(block, schema, float32) for block in totals.counted(_grouped(stream, ENTRIES)))
    with new_file(path) as file:
        if suffix in PARQUET:
            _write_parquet(file, schema, batches, totals.metadata)
        else:
            _write_arrow(file, schema, batches, totals.metadata, path)
    return totals.rows


@dataclass
class _Totals:
    """What is known of the rows once they are all written."""

    stream: Stream
    float32: bool
    rows: int = 0
    n_features: int = 0
    found: set[float] | None = field(default_factory=set)

    def counted(self, blocks: Iterable[Block]) -> Iterator[Block]:
        for block in blocks:
            self.rows += block.n
            self.n_features = max(self.n_features, block.size)
            if self.found is not None:
                self.found.update(np.unique(block.y).tolist())
                if len(self.found) > MOST_CLASSES or any(label != int(label) for label in self.found):
                    self.found = None
            yield block

    def metadata(self) -> dict[bytes, bytes]:
        stream = self.stream
        classes = self.found if stream.classes is None else stream.classes.tolist()
        encoding = stream.encoding
        if encoding is not None and encoding.get("format") == "svmlight":
            encoding = None  # which ``base`` says
        header = Header(
            self.rows,
            self.n_features,
            getattr(stream, "base", 1),
            stream.task,
            None if classes is None else tuple(sorted(classes)),
            stream.labels,
            encoding,
            self.float32,
        )
        return {KEY: json.dumps({"version": VERSION, **header._asdict()}, allow_nan=False).encode()}


def _grouped(blocks: Iterable[Block], most: int) -> Iterator[Block]:
    """The rows in blocks of about ``most`` entries, however they come."""
    held: list[Block] = []
    count = 0
    for block in blocks:
        for piece in _pieces(block, most):
            held.append(piece)
            count += piece.n + len(piece.rows.values)
            if count >= most:
                yield joined(held)
                held, count = [], 0
    if held:
        yield joined(held)


def _pieces(block: Block, most: int) -> Iterator[Block]:
    sizes = block.rows.indptr.astype(np.int64) + np.arange(block.n + 1)
    first = 0
    while first < block.n:
        last = max(first + 1, int(np.searchsorted(sizes, sizes[first] + most, side="right")) - 1)
        yield block.cut(first, last)
        first = last


def _schema(float32: bool, lists: bool) -> Any:
    numbers = (pa.uint32(), pa.float32() if float32 else pa.float64())
    kinds = [pa.list_(pa.field("element", kind, nullable=False)) if lists else pa.binary() for kind in numbers]
    return pa.schema(
        [
            pa.field("label", pa.float64(), nullable=False),
            pa.field("weight", pa.float64()),
            pa.field("indices", kinds[0], nullable=False),
            pa.field("values", kinds[1], nullable=False),
        ]
    )


def _batch(block: Block, schema: Any, float32: bool) -> Any:
    starts, columns, values = block.rows
    kinds = [schema.field(name).type for name in ("indices", "values")]
    if pa.types.is_binary(kinds[1]) and values.nbytes > MOST_BYTES:
        raise ValueError(f"{block.where(0)}: expected at most {MOST_BYTES // 8:,} entries in a row, got {len(values):,}.")
    offsets = starts.astype(np.int32)
    if float32:
        offsets, columns, values = _rounded(block, offsets)
    weights = pa.nulls(block.n, pa.float64()) if block.weights is None else pa.array(block.weights)
    numbers = [_column(kind, offsets, entries) for kind, entries in zip(kinds, (columns, values), strict=True)]
    return pa.record_batch([pa.array(block.y), weights, *numbers], schema=schema)


def _column(kind: Any, offsets: np.ndarray, entries: np.ndarray) -> Any:
    """A row's numbers as a list, or as their bytes."""
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(entries), type=kind)
    little = entries.astype(entries.dtype.newbyteorder("<"), copy=False)
    buffers = [None, pa.py_buffer(offsets * np.int32(entries.itemsize)), pa.py_buffer(little)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _rounded(block: Block, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.errstate(over="ignore", under="ignore"):
        values = block.rows.values.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        row = int(np.searchsorted(offsets, wrong[0], side="right")) - 1
        raise ValueError(f"{block.where(row)}: the value {float(block.rows.values[wrong[0]])!r} is too large for float32.")
    keep = values != 0.0
    before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int32)
    return before[offsets], block.rows.indices[keep], values[keep]


def _write_parquet(file: BinaryIO, schema: Any, batches: Iterator[Any], metadata: Callable[[], dict[bytes, bytes]]) -> None:
    first = next(batches, None)
    with pq.ParquetWriter(
        file,
        schema,
        compression={name: "none" if first is None else _codec(first, name) for name in COLUMNS},
        **LAYOUT,
    ) as writer:
        for batch in () if first is None else chain((first,), batches):
            writer.write_batch(batch, row_group_size=batch.num_rows)
        writer.add_key_value_metadata(metadata())


def _codec(batch: Any, name: str) -> str:
    """LZ4 for a column that it halves or better: decoding the columns of text takes a third longer with it than without."""
    column = batch.column(name)
    raw = column.buffers()[2] if pa.types.is_binary(column.type) else column.fill_null(1.0).to_numpy().tobytes()
    return "lz4" if 2 * pa.Codec("lz4_raw").compress(raw).size <= len(raw) else "none"


def _write_arrow(
    file: BinaryIO,
    schema: Any,
    batches: Iterable[Any],
    metadata: Callable[[], dict[bytes, bytes]],
    path: str | os.PathLike[str],
) -> None:
    """The metadata stand first in the file and are known last: the batches wait in a nameless file."""
    with scratch(path) as waiting:
        with pa.ipc.new_file(waiting, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        waiting.seek(0)
        reader = pa.ipc.open_file(waiting)
        with pa.ipc.new_file(file, schema.with_metadata(metadata())) as writer:
            for at in range(reader.num_record_batches):
                writer.write_batch(reader.get_batch(at))


# --- reading ---------------------------------------------------------------------------------------------------------


def is_sparse(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds sparse rows as columns, by its suffix and its metadata."""
    suffix = Path(path).suffix
    if suffix not in PARQUET + ARROW or is_pipe(os.fspath(path)):
        return False
    try:
        return KEY in (_schema_of(os.fspath(path)).metadata or {})
    except ERRORS:
        return False  # what is wrong with it, the reader of other columns says


class Sparse(Reader):
    """The rows of such files, one after the other; ``threads`` of them decompress and check, the blocks do not depend on it.

    Raises StreamError, when it is made or while it is read, for a file that is damaged, hostile or of a newer version, and for
    files that do not go together.
    """

    rereadable = True
    text_bytes = 0
    errors = ()

    def __init__(self, paths: tuple[str, ...], *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads!r}.")
        self.paths, self.threads = paths, threads or min(2, cores())
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
        self._headers = [_header(path) for path in paths]
        first = self._headers[0]
        for path, header in zip(paths, self._headers, strict=True):
            for what in ("base", "task", "labels", "encoding"):
                if getattr(header, what) != getattr(first, what):
                    raise StreamError(f"{path}: its {what} is not that of {paths[0]}; they cannot be read as one.")
        self.rows = self.total = sum(header.rows for header in self._headers)
        self.n_features = max(header.n_features for header in self._headers)
        self.base, self.task = first.base, first.task
        self.encoding = numbered(first.base) if first.encoding is None else first.encoding
        self.labels = None if first.labels is None else tuple(first.labels)
        self.classes = None
        if first.task == "classify" and all(header.classes is not None for header in self._headers):
            self.classes = np.unique([label for header in self._headers for label in header.classes or ()])
        self.done = 0

    def _pass(self) -> Generator[Block, None, None]:
        with closing(in_order(_loaded, self._groups(), self.threads)) as loaded:
            for block, read, checked in loaded:
                self.done += block.n
                self.timing.read += read
                self.timing.parse += checked
                yield block

    def _groups(self) -> Generator[_Group, None, None]:
        for path, header in zip(self.paths, self._headers, strict=True):
            row = 0
            for columns in _damaged(path, _parts(path)):
                yield _Group(path, columns, row, header)
                row += columns.rows
            if row != header.rows:
                raise StreamError(f"{path}: expected {header.rows} rows, as its metadata say, got {row}.")


class _Columns(NamedTuple):
    """The columns of one row group or record batch, to be read when called."""

    rows: int
    read: Callable[[], Any]


class _Group(NamedTuple):
    path: str
    columns: _Columns
    before: int  # rows of the file before these
    header: Header


def _schema_of(path: str) -> Any:
    if Path(path).suffix in PARQUET:
        return named(pq.read_schema(path, memory_map=False))
    with pa.memory_map(path) as file:
        return named(pa.ipc.open_file(file).schema)


def _parts(path: str) -> Iterator[_Columns]:
    if Path(path).suffix in PARQUET:
        metadata = pq.read_metadata(path)
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            if group.total_byte_size > LARGEST_GROUP:
                raise StreamError(f"{path}: expected row groups of at most {LARGEST_GROUP} bytes, got {group.total_byte_size}.")
            yield _Columns(group.num_rows, partial(_row_group, path, metadata, at))
        return
    with pa.memory_map(path) as file:
        if ipc.largest(file) > LARGEST_GROUP:
            raise StreamError(f"{path}: expected record batches of at most {LARGEST_GROUP} bytes, got {ipc.largest(file)}.")
        reader = pa.ipc.open_file(file)
        for at in range(reader.num_record_batches):
            batch = reader.get_batch(at)
            yield _Columns(batch.num_rows, partial(valid, batch))


def _row_group(path: str, metadata: Any, at: int) -> Any:
    with pq.ParquetFile(path, metadata=metadata) as file:
        return valid(file.read_row_group(at, use_threads=False))


def _damaged(path: str, parts: Iterator[T]) -> Iterator[T]:
    """The parts of a file; what Arrow says of one that is damaged as a StreamError."""
    try:
        yield from parts
    except FileNotFoundError:
        raise FileNotFoundError(f"no file at {path!r}.") from None
    except ERRORS as error:
        words = first_line(error).removesuffix(".")
        raise StreamError(f"{path}: cannot be read to its end, the file is damaged or cut short ({words}).") from None


def _loaded(group: _Group) -> tuple[Block, float, float]:
    """The block, checked, and the seconds that reading and checking it took."""
    began = perf_counter()
    (table,) = _damaged(group.path, (group.columns.read() for _ in range(1)))
    read = perf_counter()
    block = _block(group, {name: _one(table.column(name)) for name in COLUMNS if name in table.schema.names})
    return block, read - began, perf_counter() - read


def _one(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _block(group: _Group, columns: dict[str, Any]) -> Block:
    n, first = group.columns.rows, group.before + 1
    indices, values = columns["indices"], columns["values"]
    lists = [column.values for column in (indices, values) if pa.types.is_list(column.type)]
    given = [columns["label"], indices, values, *lists]
    if any(len(column) != n for column in columns.values()) or any(column.null_count for column in given):
        raise StreamError(f"{group.path}:{first}: expected no missing label, index or value in or below this row.")
    starts, entries = _numbers(group, indices, np.dtype("<u4"))
    ends, numbers = _numbers(group, values, np.dtype("<f4" if group.header.float32 else "<f8"))
    lengths = starts[1:] - starts[:-1] != ends[1:] - ends[:-1]
    if lengths.any():
        raise _wrong(group, np.argmax(lengths), "as many values as indices", "another number")
    rows = Rows(starts, plain(entries, np.uint32), plain(numbers, np.float64))
    y = plain(columns["label"].to_numpy())
    weights = _weights(columns.get("weight"))
    seen = scan(rows)
    if not (seen.ordered and np.isfinite(seen.largest) and seen.size <= group.header.n_features) or seen.zeros:
        raise _explained(group, rows)
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise _wrong(group, row, "a finite label", y[row])
    if weights is not None and not (np.isfinite(weights) & (weights >= 0.0)).all():
        row = int(np.argmin(np.isfinite(weights) & (weights >= 0.0)))
        raise _wrong(group, row, "a weight of 0 or more", weights[row])
    return Block(rows, y, np.arange(first, first + n), (group.path,), seen.size, seen.largest, weights=weights)


def _numbers(group: _Group, column: Any, kind: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Where each row's numbers start, and the numbers; bytes are of the given kind."""
    if pa.types.is_list(column.type):
        offsets, numbers = column.offsets.to_numpy(), column.values.to_numpy()
        return (offsets - offsets[0]).astype(np.uint64), numbers[offsets[0] : offsets[-1]]
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    broken = (bounds[1:] - bounds[:-1]) % kind.itemsize != 0
    if broken.any():
        raise _wrong(group, np.argmax(broken), f"indices and values of {kind.itemsize} bytes each", "a part of one")
    numbers = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    return ((bounds - bounds[0]) // kind.itemsize).astype(np.uint64), numbers.view(kind)


def _weights(column: Any) -> np.ndarray | None:
    if column is None or column.null_count == len(column):
        return None
    return plain(column.fill_null(1.0).to_numpy())


def _wrong(group: _Group, row: Any, expected: str, got: Any) -> StreamError:
    return StreamError(f"{group.path}:{group.before + 1 + int(row)}: expected {expected}, got {got}.")


def _explained(group: _Group, rows: Rows) -> StreamError:
    """What is wrong with the entries, and in which row."""
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
    return _wrong(group, owners[at], expected, found[at].item())


# --- metadata --------------------------------------------------------------------------------------------------------


def _header(path: str) -> Header:
    """The header of a file whose columns are as they must be."""
    (schema,) = _damaged(path, (_schema_of(path) for _ in range(1)))
    if KEY not in (schema.metadata or {}):
        raise StreamError(f"{path}: expected the metadata {KEY.decode()!r} of sparse rows, got none.")
    try:
        found = json.loads(schema.metadata[KEY])
        version = found.pop("version")
        if type(version) is not int:
            raise TypeError(f"version {version!r}")
        newer = version > VERSION
        header = Header(0, 0) if newer else Header(**found)
        if not newer and (version != VERSION or not _plausible(header)):
            raise ValueError("a value is not what it must be")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StreamError(f"{path}: the metadata of sparse rows are damaged ({type(error).__name__}: {error}).") from None
    if newer:
        raise StreamError(f"{path}: sparse rows of version {version}; this release reads up to {VERSION}. Upgrade onlinear.")
    kinds = {name: schema.field(name).type for name in COLUMNS if schema.names.count(name) == 1}
    double = kinds.get("label") == kinds.get("weight", pa.float64()) == pa.float64()
    if not (double and _holds(kinds.get("indices"), pa.uint32()) and _holds(kinds.get("values"), pa.float32(), pa.float64())):
        expected = "label, weight (double), indices and values (lists or binary)"
        raise StreamError(f"{path}: expected columns {expected}, got {schema.names}.")
    return header


def _holds(kind: Any, *numbers: Any) -> bool:
    """Whether a column is of lists of one of these numbers, or of bytes."""
    return kind is not None and (kind == pa.binary() or (pa.types.is_list(kind) and kind.value_type in numbers))


def _plausible(header: Header) -> bool:
    classes, labels = header.classes, header.labels
    return (
        all(type(count) is int and count >= 0 for count in header[:3])
        and header.n_features <= LARGEST_COLUMN + 1
        and header.base in (0, 1)
        and header.task in (None, "classify", "regress")
        and (classes is None or all(type(label) in (int, float) and np.isfinite(label) for label in classes))
        and (labels is None or all(type(name) is str for name in labels))
        and (header.encoding is None or type(header.encoding) is dict)
        and type(header.float32) is bool
    )
