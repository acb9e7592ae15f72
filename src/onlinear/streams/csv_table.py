"""CSV files as tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from secrets import token_hex
from threading import Event
from time import monotonic
from typing import Any
from weakref import ref

import pyarrow as pa
import pyarrow.csv as pacsv

from onlinear.streams.arrow import ERRORS, check_names, first_line
from onlinear.streams.blocks import StreamError
from onlinear.streams.delimiters import as_delimiter, typed
from onlinear.streams.files import BEGIN, ByteFile, Members
from onlinear.streams.leaving import are_left
from onlinear.streams.lines import OF_UTF_16, refuse_foreign
from onlinear.streams.marks import COMMA, POINT, as_decimal, as_nulls, marks_among_numbers, numbers_rounded, of_number
from onlinear.streams.places import Place
from onlinear.streams.suffixes import strip_packing
from onlinear.streams.table import Completer, Table, TableSettings
from onlinear.text.form import LONGEST, cropped, quoted

HEAD = 1 << 20  # bytes of a CSV file that decide the types of its columns; more where its first two lines are longer
LONGEST_ROW = 1 << 26  # bytes of a line of a CSV file
MOST_COLUMNS = 1 << 18  # of a CSV file: each takes a kilobyte before its first value is read
BLANK = b"\xef\xbb\xbf\r\n"  # bytes that are no name: a mark of UTF-8, ends of lines
OF_EXCEL = re.compile(rb'"?sep=([\t -~])"?', re.IGNORECASE)  # a first line, which tells Excel the delimiter
TO_UTF_8 = " (of Latin-1 text: iconv -f LATIN1 -t UTF-8)"
OPEN_QUOTE = "; is a quote left open?"
NO_ROWS = "expected rows after the line of names, got none"
Marks = dict[str, tuple[str, ...]]
IDLE, PATIENCE = 0.1, 1.0  # seconds
ROWS_AT_ONCE = 64  # of a CSV file, where they are long: each piece costs its columns


class CsvTable(Table):
    """A CSV file with a line of names. Types that are not stated follow from its first ``HEAD`` bytes; numbers are doubles.

    The line of a row is its place among the records of the file: lines, where no value holds a line end and no line is blank.
    """

    def __init__(self, place: Place, settings: TableSettings) -> None:
        super().__init__(place)
        self._settings = settings
        self._decimal = as_decimal(settings.decimal)
        tabs = strip_packing(place.path).endswith(".tsv")
        self._delimiter = as_delimiter(settings.delimiter) or ("\t" if tabs else ",")
        self._file = _Rewindable(_open_bytes(place))
        self._longest = LONGEST_ROW
        self._wrong: list[tuple[int, str]] = []
        self._record = 2  # the first that was not read
        self._word = token_hex(8).replace(self._delimiter, "-")
        self._ended, self._open_row = False, ""
        self._names: list[str] = []
        try:
            self.schema = self.with_keys(self._infer_schema())
        except StreamError:
            self.close()
            raise

    def _infer_schema(self) -> Any:
        """The columns' names, and their types: those stated, else those inferred from the first rows."""
        head = self._file.head
        refuse_foreign(self.place.name, "CSV", head)
        if not self._file.whole and head.count(b"\n") < 2:
            raise self._error(ValueError("straddling"), 1 + head.count(b"\n"))
        first = head.find(b"\n") + 1
        self._check_names(head[:first] if first else head)
        self._refuse_line_of_excel(head[:first])
        columns = 1 + head.count(self._delimiter.encode(), 0, first or len(head))
        if columns > MOST_COLUMNS:
            raise StreamError(f"{self.place.name}:1: expected at most {MOST_COLUMNS:,} columns, got {columns:,}.")
        self._longest = max(HEAD, len(head), min(LONGEST_ROW, ROWS_AT_ONCE * (head.find(b"\n", first) - first)))
        key = self._delimiter, self._decimal, head
        known = self._settings.schemas.get(key)
        if known is None:
            # pyarrow gives its handler the text of a wrong row, and prints a traceback where that is not UTF-8.
            handler = _Lent(partial(self._note_wrong_row)) if _is_utf8(head) else None
            # pyarrow takes names without a line end for an empty file.
            text = head + b"\n" if self._file.whole else head
            try:
                known = _look_at(self._open_csv(pa.BufferReader(text), {}, None, handler), self._decimal, text)
            finally:
                if handler is not None:
                    handler.take_back()
            wrong_rows, self._wrong = self._wrong, []
            self._settings.schemas.clear()
            if known[-1]:
                self.bare = wrong_rows[0][1] if wrong_rows else f"{self.place.name}: {NO_ROWS}."
            else:
                self._settings.schemas[key] = known
        schema, self.marks, self.rounded, _ = known
        try:
            self._names = check_names(schema).names
        except UnicodeError as error:
            raise StreamError(f"{self.place.name}:1: expected names of columns in UTF-8, got {first_line(error)}") from None
        stated = self._settings.types
        return pa.schema([(field.name, _type_of(stated.get(field.name), field.type)) for field in schema])

    def _check_names(self, line: bytes) -> None:
        """Refuse a line of names that is not UTF-8, or has the zeros of UTF-16."""
        try:
            line.decode()
        except UnicodeDecodeError as error:
            found = line[error.start : error.start + 16]
            raise StreamError(f"{self.place.name}:1: expected names of columns in UTF-8, got {found!r}{TO_UTF_8}.") from None
        if b"\0" in line:
            raise StreamError(f"{self.place.name}:1: expected CSV text, got what looks like {OF_UTF_16}.")

    def _refuse_line_of_excel(self, line: bytes) -> None:
        """Refuse a first line such as ``sep=;``."""
        found = OF_EXCEL.fullmatch(line.strip(BLANK))
        if found is None:
            return
        mark = found[1].decode()
        option = f", and add delimiter={mark!r} (in the command --delimiter '{typed(mark)}')"
        raise StreamError(
            f"{self.place.name}:1: expected a line of column names, got {found[0].decode()!r}, which tells Excel the "
            f"delimiter: leave this line out (tail -n +2){'' if as_delimiter(mark) == self._delimiter else option}."
        )

    @property
    def position(self) -> int:
        return self._file.position

    @property
    def text_bytes(self) -> int:  # type: ignore[override]
        return self._file.count

    def is_void(self, name: str) -> bool:
        return False

    def close(self) -> None:
        self._file.close()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        keys = dict(self.place.keys)
        stored = [name for name in columns if name not in keys]
        self._file.end = f"\n{self._end}\n".encode()
        self._file.cuts = (self._delimiter * len(self._names) + self._end).encode()
        types = {name: self.types[name] for name in stored}
        handler, file = _Lent(partial(self._note_wrong_row)), _Lent(_Reading(self._file))
        record, whole = 2, Completer(columns, keys)
        try:
            for batch in self._batches_that_end(self._open_csv(pa.PythonFile(file.lent(), mode="r"), types, stored, handler)):
                begin = 0
                while begin < batch.num_rows:
                    stop = min(begin + rows, batch.num_rows)
                    if self._wrong:
                        stop = min(stop, begin + self._wrong[0][0] - record)
                    if begin < stop:
                        yield record, whole.batch(batch.slice(begin, stop - begin))
                    record += stop - begin
                    begin = stop
                    record = self._skip_wrong_rows(record)
                self._record = record
        finally:
            handler.take_back()
            file.take_back()
        while self._wrong:
            record = self._skip_wrong_rows(self._wrong[0][0])
        if not (self._ended or self._file.cut):
            held = "expected a value that ends, got text up to the end of the file"
            raise StreamError(self._open_row or f"{self.place.name}:{record}: {held}{OPEN_QUOTE}")

    @property
    def _end(self) -> str:
        """A row of a number of values that no row should have and a word that no file has.

        pyarrow takes a quote that is open at the end of a file for one that ends there. With this row behind the last one, such
        a quote takes it in, and what is no open quote leaves it.
        """
        return f"{self._word}{self._delimiter}{self._word}" if len(self._names) == 1 else self._word

    def _batches_that_end(self, reader: Any) -> Iterator[Any]:
        """pyarrow's batches, without the row of a quote that is left open."""
        held = failure = None
        try:
            for batch in reader:
                if held is not None and batch.num_rows:
                    yield held
                    held = None
                if self._ended or not self._file.ended:
                    yield batch
                elif batch.num_rows:
                    held = batch
        except ERRORS as error:
            failure = error
        finally:
            self._file.let_go()
            del reader  # an error keeps this frame
        if held is not None:
            yield held if self._ended or self._open_row or failure else held.slice(0, held.num_rows - 1)
        if failure is not None:
            raise self._error(failure, self._record) from None

    def _skip_wrong_rows(self, record: int) -> int:
        while self._wrong and self._wrong[0][0] == record:
            self._settings.skip(self._wrong.pop(0)[1])
            record += 1
        return record

    def _note_wrong_row(self, row: Any) -> str:
        if row.text == self._end:
            self._ended = True
            return "skip"
        is_open = row.text.endswith(self._end) or _leaves_quote_open(row.text.encode())
        fields = f"expected {row.expected_columns} values as in the line of names, got {row.actual_columns}"
        message = f"{self.place.name}:{row.number}: {fields}{OPEN_QUOTE if is_open else '.'}"
        if row.text.endswith(self._end):
            self._open_row = "" if self._file.cut else message
        else:
            self._wrong.append((row.number, message))
        return "skip"

    def _open_csv(self, file: Any, types: dict[str, Any], columns: list[str] | None, wrong: _Lent | None) -> Any:
        try:
            return pacsv.open_csv(
                file,
                pacsv.ReadOptions(use_threads=False, block_size=self._longest),
                pacsv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=wrong and wrong.lent()
                ),
                pacsv.ConvertOptions(
                    column_types=types,
                    decimal_point=self._decimal,
                    include_columns=columns,
                    null_values=list(self._settings.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except ERRORS as error:
            raise self._error(error, 2) from None
        finally:
            del file  # an error keeps this frame

    def _error(self, error: Exception, record: int) -> StreamError:
        """pyarrow's error as one that names the place and the remedy; ``record`` is the first that was not read."""
        name, message = self.place.name, first_line(error)
        if "Empty CSV file" in message:
            if _leaves_quote_open(self._file.head):
                return StreamError(f"{name}:1: {NO_ROWS}{OPEN_QUOTE}")
            if self._file.head.strip(BLANK):
                return StreamError(f"{name}: {NO_ROWS}.")
            return StreamError(f"{name}:1: expected a line of column names, got an empty file.")
        if "straddling" in message:
            return StreamError(f"{name}:{record}: expected rows of at most {self._longest} bytes, got a longer one{OPEN_QUOTE}")
        if found := re.fullmatch(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", message, re.DOTALL):
            fields = f"expected {found[2]} values as in the line of names, got {found[3]}"
            return StreamError(f"{name}:{found[1]}: {fields}: {found[4][:40]!a}.")
        found = re.fullmatch(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+).*: (.*)", message, re.DOTALL)
        if found is None:
            return StreamError(f"{name}: {message}")
        column, row, kind = self._names[int(found[1])], found[2], found[3]
        value = found[4].removeprefix("invalid value ").removesuffix(".")
        wanted = {"double": "a number", "bool": "true or false", "string": "UTF-8 text"}.get(kind, f"a {kind}")
        if value.startswith("'") and not value[1:].endswith("'"):  # of which the first line is here
            held = f"got text with a line end{OPEN_QUOTE}"
            return StreamError(f"{name}:{row}: expected {wanted} in column {quoted(column)}, {held}")
        hint = TO_UTF_8 if kind == "string" else f" ({self._remedy(column, value[1:-1], kind)})"
        return StreamError(f"{name}:{row}: expected {wanted} in column {quoted(column)}, got {cropped(value)}{hint}.")

    def _remedy(self, column: str, value: str, kind: str) -> str:
        """How a column of this kind with such a value is read."""
        if column == self._settings.weight:
            return "weights are numbers of 0 or more"
        other = POINT if self._decimal == COMMA else COMMA
        of_value = of_number(value, self._decimal, f"decimal={other!r} (in the command --decimal {other})")
        remedy = f"text={quoted(column)} reads the column as text"
        typed = f"in the command --text {cropped(shlex.quote(column))}"
        if kind == "double" and of_value is not None:
            return f"{of_value}; {remedy}, {typed}"
        if len(value) > LONGEST:  # no word for what is missing
            return f"{remedy}; {typed}"
        nulls, option = (as_nulls([value], self._settings.nulls, command=command) for command in (False, True))
        return f"{remedy}, {nulls} takes it as missing; {typed} or {option}"


class _Lent:
    """What pyarrow's threads hold: a function, a file.

    The one that is the last to let it go needs Python's lock, and aborts the process where that has begun to end.
    """

    def __init__(self, held: Any) -> None:
        """``held``: an object that nothing else holds."""
        self._held = held
        self._returned = Event()
        self._watch: Any = None

    def lent(self) -> Any:
        """The object, which is now the caller's alone."""
        held, self._held = self._held, None
        self._watch = ref(held, lambda _: self._returned.set())
        return held

    def take_back(self) -> None:
        """Wait until pyarrow has let the object go, for ``PATIENCE`` at most."""
        self._returned.wait(PATIENCE)


class _Reading:
    """A file as pyarrow reads it, in an object of its own."""

    closed = False

    def __init__(self, file: _Rewindable) -> None:
        self.read = file.read


class _Rewindable:
    """A file whose first bytes are read in advance, to infer types, and then given again to pyarrow."""

    def __init__(self, file: Any) -> None:
        self._file = file
        try:
            first = self._read_file(HEAD)
            size = HEAD
            while len(first) == size < LONGEST_ROW and first.count(b"\n") < 2:
                first += self._read_file(size)
                size *= 2
        except BaseException:
            file.close()
            raise
        self.whole = len(first) < size
        self.head = first if self.whole and not are_left() else first[: first.rfind(b"\n") + 1] or first
        self._waiting = memoryview(first)
        self.count = 0
        self.end = b""  # what to give after the last byte
        self.cuts = b""  # and before it, where that byte ends no row
        self._last = b""  # the last byte
        self.ended = False
        self.cut = False  # whether a row was left before its end
        self.closed = False
        self._left, self._over, self._reads = False, Event(), False  # whether no more is wanted, was given, is being read

    def _read_file(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer at the end, or before an error that the next call raises."""
        if isinstance(self._file, ByteFile):
            room = bytearray(size)
            return bytes(room[: self._file.readinto(memoryview(room))])
        found = bytes(self._file.read(size))
        while 0 < len(found) < size and (more := self._file.read(size - len(found))):
            found += more
        return found

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes: pyarrow may have room for no more."""
        self._reads = True
        try:
            found = b"" if self._left else self._next(size)
        finally:
            self._reads = False
        if not found:
            self._over.set()
        return found

    def let_go(self) -> None:
        """Give pyarrow's thread nothing more, and wait until it has stopped reading, for ``PATIENCE`` at most.

        The thread needs Python's lock. Whoever drops pyarrow's reader holds that lock and waits for the thread. So does the end
        of the process. They would wait for ever. A thread that has read the end never reads again. One that does not come for
        ``IDLE`` has as many blocks as it keeps.
        """
        self._left = True
        end = monotonic() + PATIENCE
        while not self._over.wait(IDLE) and self._reads and monotonic() < end:
            pass

    def _next(self, size: int) -> bytes:
        if self._waiting:
            found, self._waiting = bytes(self._waiting[:size]), self._waiting[size:]
            last = self.whole and not self._waiting
        else:
            found = self._read_file(size)
            last = len(found) < size
        if self.ended:
            return found
        self.count += len(found)
        self._last = found[-1:] or self._last
        if last and getattr(self._file, "error", None) is None:
            self.ended = True
            self.cut = are_left() and self._last != b"\n"
            found += self.cuts + self.end if self.cut else self.end
            found, self._waiting = found[:size], memoryview(found)[size:]
        return found

    @property
    def position(self) -> int:
        return self._file.position if isinstance(self._file, ByteFile) else 0

    def close(self) -> None:
        self.closed = True
        self._file.close()


def _open_bytes(place: Place) -> Any:
    if place.filesystem is None:
        return ByteFile(place.path)
    try:
        if place.path.lower().endswith(".xz"):
            return Members(place.filesystem.open_input_stream(place.path), BEGIN[".xz"])
        return place.filesystem.open_input_stream(place.path, compression="detect")
    except ERRORS as error:
        raise StreamError(f"{place.name}: cannot be opened: {first_line(error)}") from None


def _look_at(reader: Any, decimal: str, text: bytes) -> tuple[Any, Marks, Marks, bool]:
    """The schema of the first rows, the columns that are text for a few marks among numbers, those of whole numbers that are
    rounded, and whether there is no row."""
    try:
        batch = reader.read_next_batch()
    except StopIteration:
        return reader.schema, {}, {}, True
    except ERRORS:  # reading says more of them
        return reader.schema, {}, {}, False
    return reader.schema, marks_among_numbers(batch, decimal), numbers_rounded(text, batch), False


def _leaves_quote_open(text: bytes) -> bool:
    return text.count(b'"') % 2 == 1


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _type_of(stated: Any, found: Any) -> Any:
    """The type of a column, as it is stated or by its first values; numbers and booleans stand for each other."""
    of_numbers = {stated, found} == {pa.float64(), pa.bool_()}
    return _widen(found) if stated is None or of_numbers else stated


def _widen(kind: Any) -> Any:
    if pa.types.is_binary(kind):  # text that is not UTF-8: refused where it is converted, with its row
        return pa.string()
    return pa.float64() if pa.types.is_integer(kind) else kind
