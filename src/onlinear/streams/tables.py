"""Files that hold named columns: Parquet, Feather (Arrow IPC) and CSV, local or behind any filesystem URI that pyarrow opens.

Each file gives its columns' names and types, and its rows in order as batches of bounded size.
"""

from __future__ import annotations

import lzma
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from onlinear.streams import ipc
from onlinear.streams.arrow import ERRORS, LARGEST_BATCH, first_line, named, valid
from onlinear.streams.blocks import StreamError
from onlinear.streams.files import STDIN, ByteFile, is_pipe
from onlinear.streams.suffixes import ARROW, CSV, PARQUET, is_uri, unpacked

NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")  # unquoted texts of a CSV file that are missing values
BUFFER = 1 << 18  # bytes of each column of a Parquet file that are read at a time
MOST_BYTES = 1 << 25  # of the numbers of a Parquet file with many columns: decoding a few rows costs what many do
HEAD = 1 << 20  # bytes of a CSV file that decide the types of its columns; more where its first two lines are longer
LONGEST_ROW = 1 << 26  # bytes of a line of a CSV file
MOST_COLUMNS = 1 << 18  # of a CSV file: each takes a kilobyte before its first value is read
ROWS_AT_ONCE = 64  # of a CSV file, where they are long: each piece costs its columns
NO_KEY = "__HIVE_DEFAULT_PARTITION__"


class Place(NamedTuple):
    """Where a file is: ``name`` as messages have it, ``path`` inside ``filesystem`` (None: this machine's)."""

    name: str
    path: str
    filesystem: Any = None
    keys: tuple[tuple[str, Any], ...] = ()  # columns that its folders' names ``key=value`` give


class Reading(NamedTuple):
    """How the files are read. ``types``: CSV columns by the type they are read as, the others are inferred."""

    types: dict[str, Any]
    nulls: Sequence[str]
    delimiter: str | None
    skip: Callable[[str], None]  # takes the error of a wrong row of a CSV file, or raises it
    told: dict[tuple[str, bytes], Any]  # what the first bytes of CSV files have told of their columns; of many, telling costs


class Table(ABC):
    """One open file."""

    text_bytes = 0

    def __init__(self, place: Place) -> None:
        self.place = place
        self.schema: Any = None

    @cached_property
    def types(self) -> dict[str, Any]:
        """The type of each column."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    @property
    def position(self) -> int:
        """Bytes taken from the disk, where that is known."""
        return 0

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        """The rows in order, at most ``rows`` at a time, as (line or row of the first one, record batch)."""

    def with_keys(self, schema: Any) -> Any:
        """The schema and the columns of the folders' names."""
        for key, value in self.place.keys:
            if key in schema.names:
                raise StreamError(f"{self.place.name}: the column {key!r} is both in the file and in its folder's name.")
            schema = schema.append(pa.field(key, pa.scalar(value).type if value is not None else pa.string()))
        return schema

    def count(self) -> int | None:
        """How many rows there are, where that is known in advance."""
        return None

    def close(self) -> None:
        """Close the file."""


class Columnar(Table):
    """A Parquet or Arrow file. Not through a dataset's scanner: that reads ahead without a bound on memory."""

    def __init__(self, place: Place, form: str) -> None:
        super().__init__(place)
        if place.filesystem is None and is_pipe(place.path):
            name = "standard input" if place.path == STDIN else f"{place.name} is a pipe and"
            raise StreamError(
                f"{name} cannot be read as {_FORMS[form]}, which is read from the end of a file: give a file, or CSV."
            )
        filesystem = place.filesystem or fs.LocalFileSystem()
        try:
            self._file = filesystem.open_input_file(place.path)
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
            self.schema = self.with_keys(named(self._stored))
        except BaseException as error:
            self._file.close()
            if isinstance(error, ERRORS):
                article = "an" if form == ARROW else "a"
                raise StreamError(f"{place.name}: expected {article} {_FORMS[form]} file, got {first_line(error)}") from None
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
            fragment = ds.IpcFileFormat().make_fragment(self.place.path, self.place.filesystem or fs.LocalFileSystem())
            return int(fragment.count_rows())
        except ERRORS as error:
            raise StreamError(f"{self.place.name}: its rows cannot be counted: {first_line(error)}") from None

    def close(self) -> None:
        self._file.close()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        keys = dict(self.place.keys)
        stored = [name for name in columns if name not in keys]
        first, batches = (
            1,
            self._parquet(stored, rows) if isinstance(self._reader, pq.ParquetFile) else self._arrow(stored, rows),
        )
        whole = _Whole(columns, keys)
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
        for batch in map(valid, self._reader.iter_batches(batch_size=most, columns=columns)):
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)

    def _arrow(self, columns: list[str], rows: int) -> Iterator[Any]:
        fields = sorted(self._stored.get_field_index(name) for name in columns)
        self._file.seek(0)
        reader = pa.ipc.open_file(self._file, options=pa.ipc.IpcReadOptions(included_fields=fields))
        for k in range(reader.num_record_batches):
            batch = valid(reader.get_batch(k))
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)


class Text(Table):
    """A CSV file with a line of names. Types that are not stated follow from its first ``HEAD`` bytes; numbers are doubles.

    The line of a row is its place among the records of the file: lines, where no value holds a line end and no line is blank.
    """

    def __init__(self, place: Place, reading: Reading) -> None:
        super().__init__(place)
        self._reading = reading
        self._file = _Replayed(_bytes_of(place))
        tabs = unpacked(place.path).endswith(".tsv")
        self._delimiter = reading.delimiter or ("\t" if tabs else ",")
        self._longest = LONGEST_ROW
        self._wrong: list[tuple[int, str]] = []
        self._names: list[str] = []
        try:
            self.schema = self.with_keys(self._inferred())
        except StreamError:
            self.close()
            raise

    def _inferred(self) -> Any:
        """The columns' names, and their types as stated or as the first rows tell."""
        head = self._file.head
        if not self._file.whole and head.count(b"\n") < 2:
            raise self._error(ValueError("straddling"))
        first = head.find(b"\n") + 1
        columns = 1 + head.count(self._delimiter.encode(), 0, first or len(head))
        if columns > MOST_COLUMNS:
            raise StreamError(f"{self.place.name}:1: expected at most {MOST_COLUMNS:,} columns, got {columns:,}.")
        self._longest = max(HEAD, len(head), min(LONGEST_ROW, ROWS_AT_ONCE * (head.find(b"\n", first) - first)))
        key = self._delimiter, head
        schema = self._reading.told.get(key)
        if schema is None:
            schema = self._opened(pa.BufferReader(head), {}, None, lambda row: "skip").schema
            self._reading.told.clear()
            self._reading.told[key] = schema
        try:
            self._names = named(schema).names
        except UnicodeError as error:
            raise StreamError(f"{self.place.name}:1: expected names of columns in UTF-8, got {first_line(error)}") from None
        return pa.schema([(field.name, self._reading.types.get(field.name) or _widened(field.type)) for field in schema])

    @property
    def position(self) -> int:
        return self._file.position

    @property
    def text_bytes(self) -> int:  # type: ignore[override]
        return self._file.count

    def close(self) -> None:
        self._file.close()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        keys = dict(self.place.keys)
        stored = [name for name in columns if name not in keys]
        types = {name: self.types[name] for name in stored}
        reader = self._opened(pa.PythonFile(self._file, mode="r"), types, stored, self._wrong_row)
        record, whole = 2, _Whole(columns, keys)
        while (batch := self._next(reader)) is not None:
            begin = 0
            while begin < batch.num_rows:
                stop = min(begin + rows, batch.num_rows)
                if self._wrong:
                    stop = min(stop, begin + self._wrong[0][0] - record)
                if begin < stop:
                    yield record, whole.batch(batch.slice(begin, stop - begin))
                record += stop - begin
                begin = stop
                record = self._skipped(record)
        while self._wrong:
            record = self._skipped(self._wrong[0][0])

    def _skipped(self, record: int) -> int:
        while self._wrong and self._wrong[0][0] == record:
            self._reading.skip(self._wrong.pop(0)[1])
            record += 1
        return record

    def _wrong_row(self, row: Any) -> str:
        fields = f"expected {row.expected_columns} values as in the line of names, got {row.actual_columns}"
        self._wrong.append((row.number, f"{self.place.name}:{row.number}: {fields}."))
        return "skip"

    def _next(self, reader: Any) -> Any:
        try:
            return reader.read_next_batch()
        except StopIteration:
            return None
        except ERRORS as error:
            raise self._error(error) from None

    def _opened(self, file: Any, types: dict[str, Any], columns: list[str] | None, wrong: Callable[[Any], str]) -> Any:
        try:
            return pacsv.open_csv(
                file,
                pacsv.ReadOptions(use_threads=False, block_size=self._longest),
                pacsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=wrong),
                pacsv.ConvertOptions(
                    column_types=types,
                    include_columns=columns,
                    null_values=list(self._reading.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except ERRORS as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> StreamError:
        """What pyarrow says, with the place and the way out."""
        name, message = self.place.name, first_line(error)
        if "Empty CSV file" in message:
            return StreamError(f"{name}:1: expected a line of column names, got an empty file.")
        if "straddling" in message:
            return StreamError(
                f"{name}: expected rows of at most {self._longest} bytes, got a longer one; is a quote left open?"
            )
        found = re.fullmatch(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+).*: (.*)", message, re.DOTALL)
        if found is None:
            return StreamError(f"{name}: {message}")
        column, row, kind, value = self._names[int(found[1])], found[2], found[3], found[4].removeprefix("invalid value ")
        wanted = {"double": "a number", "bool": "true or false", "string": "UTF-8 text"}.get(kind, f"a {kind}")
        hint = "" if kind == "string" else f", as above or as asked (text={column!r} reads the column as text)"
        return StreamError(f"{name}:{row}: expected {wanted} in column {column!r}, got {value}{hint}.")


class _Replayed:
    """A file as pyarrow reads it, and its first bytes, which are read in advance and given again."""

    def __init__(self, file: Any) -> None:
        self._file = file
        try:
            first = self._fresh(HEAD)
            size = HEAD
            while len(first) == size < LONGEST_ROW and first.count(b"\n") < 2:
                first += self._fresh(size)
                size *= 2
        except BaseException:
            file.close()
            raise
        self.whole = len(first) < size
        self.head = first if self.whole else first[: first.rfind(b"\n") + 1] or first
        self._waiting = memoryview(first)
        self.count = 0
        self.closed = False

    def _fresh(self, size: int) -> bytes:
        if not isinstance(self._file, ByteFile):
            return bytes(self._file.read(size))
        room = bytearray(size)
        return bytes(room[: self._file.readinto(memoryview(room))])

    def read(self, size: int) -> bytes:
        if self._waiting:
            found, self._waiting = bytes(self._waiting[:size]), self._waiting[size:]
        else:
            found = self._fresh(size)
        self.count += len(found)
        return found

    @property
    def position(self) -> int:
        return self._file.position if isinstance(self._file, ByteFile) else 0

    def close(self) -> None:
        self.closed = True
        self._file.close()


def _bytes_of(place: Place) -> Any:
    if place.filesystem is None:
        return ByteFile(place.path)
    try:
        if place.path.lower().endswith(".xz"):
            return lzma.open(pa.PythonFile(place.filesystem.open_input_stream(place.path)))
        return place.filesystem.open_input_stream(place.path, compression="detect")
    except ERRORS as error:
        raise StreamError(f"{place.name}: cannot be opened: {first_line(error)}") from None


def _widened(kind: Any) -> Any:
    if pa.types.is_binary(kind):  # text that is not UTF-8: refused where it is converted, with its row
        return pa.string()
    return pa.float64() if pa.types.is_integer(kind) else kind


class _Whole:
    """Makes batches with exactly ``columns`` of what a file gives; those of folder names are filled in."""

    def __init__(self, columns: Sequence[str], keys: dict[str, Any]) -> None:
        self._columns, self._keys = list(columns), keys
        self._stored: list[str] | None = None  # the columns that batches have
        self._places: list[int] = []  # where each of ``columns`` stands among them, -1 for none

    def batch(self, found: Any) -> Any:
        if self._stored is None:
            self._stored = found.schema.names
            place = {name: k for k, name in enumerate(self._stored)}
            self._places = [-1 if name in self._keys else place[name] for name in self._columns]
        if self._columns == self._stored or not self._columns:
            return found
        if not self._keys:
            return found.select(self._places)
        stored = found.columns
        arrays = [
            self._constant(name, found.num_rows) if place < 0 else stored[place]
            for name, place in zip(self._columns, self._places, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self._columns)

    def _constant(self, name: str, rows: int) -> Any:
        value = self._keys[name]
        return pa.repeat(pa.scalar(value, None if value is not None else pa.string()), rows)


_FORMS = {PARQUET: "Parquet", ARROW: "Arrow (Feather)", CSV: "CSV"}


def opened(place: Place, form: str, reading: Reading) -> Table:
    """The file, open."""
    return Text(place, reading) if form == CSV else Columnar(place, form)


# --- finding the files -----------------------------------------------------------------------------------------------


def places(name: str) -> list[Place]:
    """The files of a folder, or of a URI that names a file, a folder or a pattern, in the order of their paths.

    Names that begin with _ or . are left out. Raises FileNotFoundError or IsADirectoryError where there is none.
    """
    filesystem, root = None, name
    if is_uri(name):
        pattern = any(c in name for c in "*?[")
        base = name[: re.search(r"[*?\[]", name).start()].rpartition("/")[0] if pattern else name  # type: ignore[union-attr]
        try:
            filesystem, root = fs.FileSystem.from_uri(base)
            if pattern:
                return _matching(filesystem, root, base, name)
            if filesystem.get_file_info(root).type == fs.FileType.File:
                return [Place(name, root, filesystem)]
        except (*ERRORS, ValueError) as error:
            raise FileNotFoundError(f"{name}: cannot be opened: {first_line(error)}") from None
    found = sorted(_below(filesystem or fs.LocalFileSystem(), root))
    if not found:
        if filesystem is None:
            raise IsADirectoryError(f"{name} is a folder with no file in it; expected Parquet, Arrow or CSV files.")
        raise FileNotFoundError(f"{name}: there is no file of that name, and no folder with files.")
    shown = name.rstrip("/") or "/"
    inner = [path.removeprefix(root.rstrip("/")).lstrip("/") for path in found]
    keys = _keys(inner)
    return [
        Place(posixpath.join(shown, part), path, filesystem, key) for part, path, key in zip(inner, found, keys, strict=True)
    ]


def _below(filesystem: Any, root: str) -> Iterator[str]:
    """Paths of the files in a folder and its folders."""
    for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
        parts = info.path.removeprefix(root.rstrip("/")).strip("/").split("/")
        if info.type == fs.FileType.File and not any(part.startswith(("_", ".")) for part in parts):
            yield info.path


def _matching(filesystem: Any, root: str, base: str, name: str) -> list[Place]:
    pattern = name.removeprefix(base).lstrip("/")
    inner = ((path, path.removeprefix(root.rstrip("/")).lstrip("/")) for path in sorted(_below(filesystem, root)))
    found = [(path, part) for path, part in inner if part.count("/") == pattern.count("/") and fnmatchcase(part, pattern)]
    if not found:
        raise FileNotFoundError(f"no file matches {name!r}.")
    return [Place(f"{base.rstrip('/')}/{part}", path, filesystem) for path, part in found]


def _keys(paths: Iterable[str]) -> list[tuple[tuple[str, Any], ...]]:
    """The columns that folders named ``key=value`` give each path; numbers where all values of a key are whole."""
    raw = [[part.split("=", 1) for part in path.split("/")[:-1] if "=" in part] for path in paths]
    pairs = [[(unquote(key), None if value == NO_KEY else unquote(value)) for key, value in each] for each in raw]
    text = {key for each in pairs for key, value in each if value is not None and not re.fullmatch(r"-?\d{1,15}", value)}
    return [tuple((key, value if value is None or key in text else int(value)) for key, value in each) for each in pairs]
