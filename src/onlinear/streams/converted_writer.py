"""Writes the rows of a stream to a converted file: Parquet or Arrow, in the layout of ``converted``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onlinear.files.writing import new_file, scratch
from onlinear.streams.blocks import Block, Stream, joined
from onlinear.streams.converted import ARROW, COLUMNS, KEY, PARQUET, VERSION, Header
from onlinear.streams.suffixes import suffix_of

ENTRIES = 1 << 20  # of a record batch or row group
# Of Parquet files: in effect one page for each column of a row group, copied once less. Figures are in docs/streams.md.
LAYOUT: dict[str, Any] = {"data_page_size": 1 << 28, "use_dictionary": False, "write_statistics": False, "store_schema": False}
MOST_CLASSES = 256  # different whole labels that are listed as classes where the source names none
MOST_BYTES = (1 << 31) - 1  # of the numbers of a group, which its offsets count


def write_converted(path: str | os.PathLike[str], stream: Stream, *, float32: bool = False) -> int:
    """Write the rows of a stream to a Parquet (.parquet, .pq) or Arrow IPC file (.arrow, .feather, .ipc); returns their number.

    ``float32``: values are rounded to the nearest float; those that round to 0 are left out, and one too large for a float
    raises ValueError. Labels and weights keep all bits. The file gets its name when it is whole; until then an Arrow file takes
    twice its size on the disk.
    """
    suffix = suffix_of(path)
    if suffix not in PARQUET + ARROW:
        raise ValueError(f"{os.fspath(path)}: the name must end with one of {', '.join(PARQUET + ARROW)}, got {suffix!r}.")
    schema = _schema(float32, lists=suffix in ARROW)
    totals = _Totals(stream, float32)
    batches = (_batch(block, schema, float32) for block in totals.count(_group_rows(stream, ENTRIES)))
    with new_file(path) as file:
        if suffix in PARQUET:
            _write_parquet(file, schema, batches, totals.metadata)
        else:
            _write_arrow(file, schema, batches, totals.metadata, path)
    return totals.rows


@dataclass
class _Totals:
    """Counts the rows as they pass, for the metadata, which are written last."""

    stream: Stream
    float32: bool
    rows: int = 0
    n_features: int = 0
    found: set[float] | None = field(default_factory=set)

    def count(self, blocks: Iterable[Block]) -> Iterator[Block]:
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
            encoding = None  # the header's ``base`` holds it
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


def _group_rows(blocks: Iterable[Block], most: int) -> Iterator[Block]:
    """The rows in blocks of about ``most`` entries, for blocks of any size."""
    held: list[Block] = []
    count = 0
    for block in blocks:
        for piece in _cut(block, most):
            held.append(piece)
            count += piece.n + len(piece.rows.values)
            if count >= most:
                yield joined(held)
                held, count = [], 0
    if held:
        yield joined(held)


def _cut(block: Block, most: int) -> Iterator[Block]:
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
        offsets, columns, values = _round_values(block, offsets)
    weights = pa.nulls(block.n, pa.float64()) if block.weights is None else pa.array(block.weights)
    numbers = [_column(kind, offsets, entries) for kind, entries in zip(kinds, (columns, values), strict=True)]
    return pa.record_batch([pa.array(block.y), weights, *numbers], schema=schema)


def _column(kind: Any, offsets: np.ndarray, entries: np.ndarray) -> Any:
    """The rows' numbers as a column of lists, or of bytes."""
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(entries), type=kind)
    little = entries.astype(entries.dtype.newbyteorder("<"), copy=False)
    buffers = [None, pa.py_buffer(offsets * np.int32(entries.itemsize)), pa.py_buffer(little)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _round_values(block: Block, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        compression={name: "none" if first is None else _choose_codec(first, name) for name in COLUMNS},
        **LAYOUT,
    ) as writer:
        for batch in () if first is None else chain((first,), batches):
            writer.write_batch(batch, row_group_size=batch.num_rows)
        writer.add_key_value_metadata(metadata())


def _choose_codec(batch: Any, name: str) -> str:
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
    """Metadata stand first in the file and are known last, so the batches wait in a nameless temporary file."""
    with scratch(path) as waiting:
        with pa.ipc.new_file(waiting, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        waiting.seek(0)
        reader = pa.ipc.open_file(waiting)
        with pa.ipc.new_file(file, schema.with_metadata(metadata())) as writer:
            for at in range(reader.num_record_batches):
                writer.write_batch(reader.get_batch(at))
