"""Parquet and Arrow IPC (Feather) files as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from onlinear.streams import ipc, text_sizes
from onlinear.streams.arrow import ERRORS, LARGEST_BATCH, check_batch, check_names, first_line, opened
from onlinear.streams.blocks import StreamError
from onlinear.streams.files import STDIN, is_pipe
from onlinear.streams.places import Place
from onlinear.streams.row_groups import BUFFER, RowGroups
from onlinear.streams.suffixes import ARROW, PARQUET
from onlinear.streams.table import Completer, Table

MOST_BYTES = 1 << 25  # of the numbers of a Parquet file with many columns: decoding a few rows costs what many do
_FORMS = {PARQUET: "Parquet", ARROW: "Arrow (Feather)"}
_OTHERS = {  # what files begin with that Arrow has too, and how their tables are read
    b"\xff\xff\xff\xff": ("a stream of Arrow, which is no file", "pyarrow.ipc.open_stream(path).read_all()"),
    b"FEA1": ("a Feather file of version 1", "pyarrow.feather.read_table(path)"),
}


def joined(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The rows of batches in fewer, of at most ``rows`` and about ``text_sizes.MOST`` bytes: each block of rows costs."""
    held, count, size = list[Any](), 0, 0
    for batch in batches:
        held.append(batch)
        count, size = count + batch.num_rows, size + sum(map(text_sizes.in_memory, batch.columns))
        if 2 * size > text_sizes.MOST or count + batch.num_rows > rows:
            yield pa.concat_batches(held)
            held, count, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


def _other_layout(file: Any) -> str:
    """What a file of Arrow is that has another layout; else nothing."""
    try:
        found = _OTHERS.get(bytes(file.read_at(4, 0)))
    except ERRORS:
        return ""
    return f"{found[0]}: write it anew, pyarrow.feather.write_feather({found[1]}, 'new.feather')." if found else ""


class ColumnarTable(Table):
    """A Parquet or Arrow file. A dataset's scanner would not do: it reads ahead without a bound on memory."""

    def __init__(self, place: Place, form: str) -> None:
        super().__init__(place)
        if place.filesystem is None and is_pipe(place.path):
            name = "standard input" if place.path == STDIN else f"{place.name} is a pipe and"
            raise StreamError(
                f"{name} cannot be read as {_FORMS[form]}, which is read from the end of a file: give a file, or CSV."
            )
        try:
            self._file = opened(place.path) if place.filesystem is None else place.filesystem.open_input_file(place.path)
        except ERRORS as error:
            raise StreamError(f"{place.name}: cannot be opened: {first_line(error)}") from None
        try:
            if form == ARROW and place.filesystem is None:
                self._refuse_large()
            self._reader: Any = (
                pq.ParquetFile(self._file, pre_buffer=False, buffer_size=BUFFER)
                if form == PARQUET
                else pa.ipc.open_file(self._file)
            )
            self._stored = self._reader.schema_arrow if form == PARQUET else self._reader.schema
            self.schema = self.with_keys(check_names(self._stored))
        except BaseException as error:
            found = _other_layout(self._file) or first_line(error) if isinstance(error, ERRORS) else ""
            self._file.close()
            if found:
                article = "an" if form == ARROW else "a"
                raise StreamError(f"{place.name}: expected {article} {_FORMS[form]} file, got {found}") from None
            raise

    def _refuse_large(self) -> None:
        found = ipc.largest(self._file)
        if found > LARGEST_BATCH:
            raise StreamError(
                f"{self.place.name}: expected record batches of at most {LARGEST_BATCH:,} bytes, got one of {found:,}; "
                "write it in smaller ones."
            )

    def count(self) -> int:
        if isinstance(self._reader, pq.ParquetFile):
            return int(self._reader.metadata.num_rows)
        try:
            return int(ds.IpcFileFormat().make_fragment(self._file).count_rows())
        except ERRORS as error:
            raise StreamError(f"{self.place.name}: its rows cannot be counted: {first_line(error)}") from None

    def close(self) -> None:
        self._file.close()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        keys = dict(self.place.keys)
        stored = [name for name in columns if name not in keys]
        batches = self._parquet(stored, rows) if isinstance(self._reader, pq.ParquetFile) else self._arrow(stored, rows)
        first = 1
        whole = Completer(columns, keys)
        while True:
            try:
                batch = next(batches, None)
            except ERRORS as error:
                raise StreamError(f"{self.place.name}: cannot be read after row {first - 1}: {first_line(error)}") from None
            if batch is None:
                break
            if batch.num_rows:
                yield first, whole.batch(batch)
            first += batch.num_rows
        wanted = self._reader.metadata.num_rows if isinstance(self._reader, pq.ParquetFile) else first - 1
        if first - 1 != wanted:
            raise StreamError(f"{self.place.name}: expected {wanted:,} rows, as its metadata say, got {first - 1:,}.")

    def _parquet(self, columns: list[str], rows: int) -> Iterator[Any]:
        most = max(rows, min(256, MOST_BYTES // (8 * len(columns) + 8)))
        for groups, size in RowGroups(self._reader, self._file, columns, near=self.place.filesystem is None).runs(most):
            batches = self._reader.iter_batches(batch_size=size, row_groups=groups, columns=columns)
            whole = map(check_batch, batches)
            for batch in whole if size >= rows else joined(whole, rows):
                for first in range(0, batch.num_rows, rows):
                    yield batch.slice(first, rows)

    def _arrow(self, columns: list[str], rows: int) -> Iterator[Any]:
        fields = sorted(self._stored.get_field_index(name) for name in columns)
        self._file.seek(0)
        reader = pa.ipc.open_file(self._file, options=pa.ipc.IpcReadOptions(included_fields=fields))
        for k in range(reader.num_record_batches):
            batch = check_batch(reader.get_batch(k))
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)
