"""Tables of named columns as rows of numbers: Parquet, Feather (Arrow IPC), CSV.

``column_plan`` decides what each column is read as, ``column_arrays`` turns a batch into arrays, ``column_blocks`` arrays into
a block. docs/streams.md says how each kind of column and missing values are treated; ``encoding`` says which columns they get.
NaN is a missing value, infinity is refused. All work is done on whole columns of a batch, nothing row by row.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from onlinear.streams import text_sizes
from onlinear.streams.arrow import ERRORS, first_line
from onlinear.streams.bins import FIRST_ROWS
from onlinear.streams.blocks import Block, Reader, StreamError, must_be_limits
from onlinear.streams.column_arrays import ArrayReader
from onlinear.streams.column_blocks import BlockMaker
from onlinear.streams.column_plan import Plan
from onlinear.streams.column_values import known_values, plain_values
from onlinear.streams.encoding import ONE_HOT, Feature
from onlinear.streams.files import is_pipe
from onlinear.streams.places import Place
from onlinear.streams.row_errors import RowErrors
from onlinear.streams.suffixes import CSV
from onlinear.streams.table import Table, TableSettings
from onlinear.streams.table_options import TableOptions
from onlinear.streams.tables import open_table
from onlinear.text.form import quoted

MOST_ROWS = 1 << 16  # of a block
ROWS_OF_RECORDS = 1 << 8  # that are dicts at a time
WORDS = 1 << 7  # of a text that is read as words, to size blocks
BYTES_OF_GRAM = 4  # of memory for each byte of such a text, and each length of its n-grams
MOST_COUNTED = 1000  # files whose rows are counted in advance


class Columns(Reader):
    """The rows of one or several files with named columns, in blocks of about ``2 block_bytes`` of numbers.

    The first file decides the kinds of the columns, unless an ``encoding`` does; the others must agree. A file without rows
    that states no types, as a CSV file of names alone, leaves it to the next.
    """

    def __init__(
        self,
        places: Sequence[Place],
        form: str,
        options: TableOptions,
        encoding: Mapping[str, Any] | None,
        block_bytes: int,
    ) -> None:
        must_be_limits(block_bytes, options.max_errors)
        self.places, self.form, self.options = tuple(places), form, options
        self.name = places[0].name if len(places) == 1 else f"{len(places)} files"
        self.rereadable = not any(place.filesystem is None and is_pipe(place.path) for place in places)
        self.block_bytes, self.done, self.text_bytes = block_bytes, 0, 0
        self.errors = self._errors = list[str]()
        self._plan = Plan(options, encoding)
        self._labels = {label: place for place, label in enumerate(map(str, options.classes or ()))}
        if len(self._labels) != len(options.classes or ()):
            raise ValueError(f"classes must not repeat a name, got {', '.join(map(str, options.classes or ()))}.")
        self._names: tuple[str, ...] = ()
        self._schemas: dict[tuple[str, str, bytes], Any] = {}
        with ExitStack() as stack:
            first = stack.enter_context(closing(self._deciding()))
            self._begin(first)
            self._spare = None if self.rereadable else first
            if self._spare is not None:
                stack.pop_all()

    def _deciding(self) -> Table:
        """The file that decides: the first that tells kinds, else the first. A pipe is opened once."""
        for place in self.places if self.rereadable else ():
            table = self._open(place)
            if not table.bare:
                return table
            table.close()
        return self._open(self.places[0])

    def _begin(self, first: Table) -> None:
        """Plan by the file that decides, and set the stream's attributes."""
        self._plan.decide(first, self._first_values)
        text = self._plan.text_target
        if self._labels and not text and self._plan.target is not None:
            raise ValueError(
                f"classes names the classes of a target that is text, and {quoted(self._plan.target)} of {self.name} holds "
                "numbers: give them to fit(classes=), or read it as text (text=)."
            )
        self.task = "classify" if text else None
        self.classes = np.arange(len(self._labels), dtype=np.float64) if text and self._labels else None
        self.marks, self.nulls = self._plan.doubtful(first), self.options.nulls
        self.grows = self._plan.encoding.categories == ONE_HOT and bool(self._plan.encoding.texts)
        self.label_marks = first.marks.get(self._plan.target or "", ())
        self._arrays = ArrayReader(self._plan, None if self.classes is None else tuple(self._labels))
        self._maker = BlockMaker(self._plan.encoding, self._labels, self.name, self._plan.keeps_names)
        self.rows, self.total = self._measure(first)

    @property
    def labels(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The classes' names as far as they have appeared, or as they were given; None where the target is no text."""
        if self.task == "classify" and len(self._names) < len(self._labels):
            self._names = tuple(self._labels)
        return self._names if self.task == "classify" else None

    @property
    def encoding(self) -> dict[str, Any]:  # type: ignore[override]
        """How columns became features, for ``open(encoding=)`` and ``encoding.names``."""
        return self._plan.encoding.description()

    def _open(self, place: Place) -> Table:
        options = self.options
        read_as = options.nulls, options.delimiter, options.decimal
        settings = TableSettings(self._plan.types(), *read_as, self._skip, self._schemas, options.weight)
        return open_table(place, self.form, settings)

    def _first_values(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """The values of some columns in the first rows of the file that decides, which is opened once more."""
        if not self.rereadable:
            raise ValueError("bins: a number of bins needs rows that can be read twice, and a pipe cannot: give their edges.")
        held: dict[str, list[np.ndarray]] = {feature.name: [] for feature in features}
        with closing(self._deciding()) as table:
            for first, batch in table.batches(list(held), FIRST_ROWS):
                for feature, array in zip(features, batch.select(list(held)).columns, strict=True):
                    held[feature.name].append(known_values(array, feature.kind, self.options.dates))
                if first + batch.num_rows > FIRST_ROWS:
                    break
        return {name: np.concatenate([*found, np.empty(0)])[:FIRST_ROWS] for name, found in held.items()}

    def _measure(self, first: Table) -> tuple[int | None, int | None]:
        """Rows in a pass, and the pass's size in rows or bytes."""
        if self.form == CSV:
            local = self.rereadable and all(place.filesystem is None for place in self.places)
            return None, sum(os.path.getsize(place.path) for place in self.places) if local else None
        if len(self.places) > MOST_COUNTED or self.options.max_errors:
            return None, None
        rows = first.count() or 0
        for place in self.places[1:]:
            with closing(self._open(place)) as table:
                rows += table.count() or 0
        return rows, rows

    def _pass(self) -> Generator[Block, None, None]:
        self.errors = self._errors = list[str]()
        # Of many columns a few rows take as long as one.
        encoding = self._plan.encoding
        entries = len(encoding.features) + len(encoding.interactions) + WORDS * sum(encoding.ngrams.values())
        step = min(MOST_ROWS, max(1, self.block_bytes // (4 * entries), self.block_bytes >> 16))
        for place in self.places:
            began, spare, self._spare = perf_counter(), self._spare, None
            with closing(spare or self._open(place)) as table:
                self._plan.must_agree(table)
                before, text = self.done, self.text_bytes
                for first, batch in self._batches(table, step):
                    for block in self._convert(batch, np.arange(first, first + batch.num_rows), place.name):
                        self._advance(table, before, text, block.n)
                        self.timing.read += perf_counter() - began
                        yield block
                        began = perf_counter()
                self._advance(table, before, text, 0)
            self.timing.read += perf_counter() - began

    def _batches(self, table: Table, rows: int) -> Iterator[tuple[int, Any]]:
        """The rows of a file, at most so many at a time, and fewer where they have long texts."""
        encoding = self._plan.encoding
        factors = {feature.name: 1 for feature in encoding.texts}
        factors |= {feature.name: BYTES_OF_GRAM * encoding.ngrams[feature.name] for feature in encoding.documents}
        if self._plan.text_target:
            factors[str(self._plan.target)] = 1
        for first, batch in table.batches(self._plan.columns(), rows):
            for place, part in text_sizes.parts_of(batch, factors):
                yield first + place, part

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The right rows as dicts of their features, each with its place in the source, as ``file:row``.

        Categories are the text that the rows of blocks have for them, numbers floats, dates scalars of pyarrow, which hold any.
        """
        self.errors = self._errors = list[str]()
        features = self._plan.encoding.features
        for place in self.places:
            with closing(self._open(place)) as table:
                self._plan.must_agree(table)
                for first, batch in table.batches(self._plan.columns(), ROWS_OF_RECORDS):
                    errors, rows = RowErrors(), np.arange(first, first + batch.num_rows)
                    with _told(place.name, rows):
                        self._arrays.read(batch, errors)
                        # By place: a feature may be the target or the weight too.
                        stored = self._arrays.columns(batch)[: len(features)]
                        held = {name: plain_values(array, kind) for (name, kind), array in zip(features, stored, strict=True)}
                    for k, row in enumerate(rows.tolist()):
                        if k in errors:
                            self._skip(f"{place.name}:{row}: {errors[k].words()}.")
                        else:
                            yield f"{place.name}:{row}", {name: values[k] for name, values in held.items()}

    def _advance(self, table: Table, before: int, text: int, rows: int) -> None:
        self.text_bytes = text + table.text_bytes
        self.done = self.done + rows if self.rows is not None else before + table.position

    def _skip(self, error: str) -> None:
        """Note the error of a skipped row; raise it as StreamError where ``max_errors`` are noted already."""
        if len(self._errors) >= self.options.max_errors:
            raise StreamError(error)
        self._errors.append(error)

    def _convert(self, batch: Any, rows: np.ndarray, name: str) -> Iterator[Block]:
        """The batch's rows; an error of pyarrow becomes a StreamError with their numbers."""
        with _told(name, rows):
            yield from self._blocks(batch, rows, name)

    def _blocks(self, batch: Any, rows: np.ndarray, name: str) -> Iterator[Block]:
        """The batch's rows before its first wrong row that may not be skipped; then the StreamError of that row."""
        errors = RowErrors()
        parts = self._arrays.read(batch, errors)
        right = np.ones(batch.num_rows, bool)
        for row in sorted(errors):
            try:
                self._skip(f"{name}:{rows[row]}: {errors[row].words()}.")
            except StreamError:
                if right[:row].any():
                    yield from self._blocks(_chosen(batch.slice(0, row), right[:row]), rows[:row][right[:row]], name)
                raise
            right[row] = False
        if not right.any():
            return
        if not right.all():
            parts, rows = self._arrays.read(_chosen(batch, right), RowErrors()), rows[right]
        yield self._maker.make(parts, rows, name)


@contextmanager
def _told(name: str, rows: np.ndarray) -> Iterator[None]:
    """Within it an error of pyarrow becomes a StreamError with the numbers of the rows."""
    try:
        yield
    except ERRORS as error:
        where = f"{name}:{rows[0]}: expected columns that can be read, in this row and up to row {rows[-1]}"
        raise StreamError(f"{where}, got {first_line(error)}") from None


def _chosen(batch: Any, right: np.ndarray) -> Any:
    """The rows of a batch that are right. Text as views, as polars has it, is copied: pyarrow cannot choose among those."""
    held = [array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(held, names=batch.schema.names).filter(pa.array(right))
