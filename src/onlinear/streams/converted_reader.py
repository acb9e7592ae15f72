"""Reads converted files, Parquet or Arrow: each row group or record batch becomes one block."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onlinear.streams import ipc
from onlinear.streams.ahead import cores, in_order
from onlinear.streams.arrow import LARGEST_BATCH, check_batch, opened
from onlinear.streams.blocks import Block, Reader, StreamError
from onlinear.streams.converted import COLUMNS, PARQUET, explain_damage, read_header
from onlinear.streams.converted_blocks import GroupColumns, RowGroup, block_of_group, one_array
from onlinear.streams.encoding import describe_numbering
from onlinear.streams.pages import pages_of
from onlinear.streams.row_groups import MOST_SHARED
from onlinear.streams.suffixes import suffix_of
from onlinear.text.names import printable

LARGEST_GROUP = LARGEST_BATCH
WIDTH = 8  # bytes of a number


class Converted(Reader):
    """The rows of converted files, in order. ``threads`` threads decompress and check; they do not change the blocks.

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
        self.name = printable(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self._headers = [read_header(path) for path in paths]
        first = self._headers[0]
        for path, header in zip(paths, self._headers, strict=True):
            for what in ("base", "task", "labels", "encoding"):
                if getattr(header, what) != getattr(first, what):
                    differs = "are not those" if what == "labels" else "is not that"
                    raise StreamError(
                        f"{printable(path)}: its {what} {differs} of {printable(paths[0])}; they cannot be read as one: "
                        "convert their sources together."
                    )
        self.rows = self.total = sum(header.rows for header in self._headers)
        self.n_features = max(header.n_features for header in self._headers)
        self.base, self.task = first.base, first.task
        self.encoding = describe_numbering(first.base) if first.encoding is None else first.encoding
        self.labels = None if first.labels is None else tuple(first.labels)
        self.classes = None
        if first.task == "classify" and all(header.classes is not None for header in self._headers):
            self.classes = np.unique([label for header in self._headers for label in header.classes or ()])
        self.done = 0

    def _pass(self) -> Generator[Block, None, None]:
        with closing(in_order(_load, self._groups(), self.threads)) as loaded:
            for block, read, checked in loaded:
                self.done += block.n
                self.timing.read += read
                self.timing.parse += checked
                yield block

    def _groups(self) -> Generator[RowGroup, None, None]:
        for path, header in zip(self.paths, self._headers, strict=True):
            row = 0
            for columns in explain_damage(path, _read_parts(path)):
                yield RowGroup(printable(path), columns, row, header)
                row += columns.rows
            if row != header.rows:
                raise StreamError(f"{printable(path)}: expected {header.rows} rows, as its metadata say, got {row}.")


def _read_parts(path: str) -> Iterator[GroupColumns]:
    if suffix_of(path) in PARQUET:
        with opened(path) as file:
            metadata = pq.read_metadata(file)
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            if group.total_byte_size > LARGEST_GROUP:
                raise StreamError(
                    f"{printable(path)}: expected row groups of at most {LARGEST_GROUP} bytes, got {group.total_byte_size}."
                )
            yield GroupColumns(group.num_rows, partial(_read_row_group, path, metadata, at))
        return
    with opened(path) as file:
        found, batches = ipc.largest(file), ipc.rows_of_batches(file)
    if found > LARGEST_GROUP:
        raise StreamError(f"{printable(path)}: expected record batches of at most {LARGEST_GROUP} bytes, got {found}.")
    for at, rows in enumerate(batches):
        yield GroupColumns(rows, partial(_read_batch, path, at))


def _read_row_group(path: str, metadata: Any, at: int) -> Any:
    with opened(path) as file, pq.ParquetFile(file, metadata=metadata) as parquet:
        group = metadata.row_group(at)
        most = _most_bytes(file, group)
        if most <= LARGEST_GROUP:
            return check_batch(parquet.read_row_group(at, use_threads=False))
        rows = max(1, MOST_SHARED * group.num_rows // most)
        return pa.Table.from_batches(_within_limit(path, parquet.iter_batches(rows, row_groups=[at], use_threads=False)))


def _most_bytes(file: Any, group: Any) -> int:
    """The bytes that a row group takes at most, by its pages and not by its metadata, which may understate them."""
    found = 0
    for place in range(group.num_columns):
        column = group.column(place)
        pages = pages_of(file, column)
        of_value = max(pages.dictionary, pages.largest) if column.physical_type == "BYTE_ARRAY" else WIDTH
        found += max(pages.size, of_value * column.num_values)
    return found


def _within_limit(path: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The checked batches of a row group, as long as they are no more than it may have."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > LARGEST_GROUP:
            raise StreamError(f"{printable(path)}: expected row groups of at most {LARGEST_GROUP} bytes, got {size} and more.")
        yield check_batch(batch)


def _read_batch(path: str, at: int) -> Any:
    with opened(path) as file:  # and not mapped: a file that is cut or changed in place would change rows that were checked
        return check_batch(pa.ipc.open_file(file).get_batch(at))


def _load(group: RowGroup) -> tuple[Block, float, float]:
    """The checked block, the seconds that reading took, and the seconds that checking took."""
    began = perf_counter()
    (table,) = explain_damage(group.path, (group.columns.read() for _ in range(1)))
    read = perf_counter()
    block = block_of_group(group, {name: one_array(table.column(name)) for name in COLUMNS if name in table.schema.names})
    return block, read - began, perf_counter() - read
