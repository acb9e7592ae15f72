"""One open file with named columns: its columns' names and types, and its rows in order as batches of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from onlinear.streams.blocks import StreamError, no_rows
from onlinear.streams.places import Place
from onlinear.text.form import quoted

LOOKED_AT = 1 << 12  # rows at a time, of a column that may have no value


class TableSettings(NamedTuple):
    """How files are read; all of it concerns CSV, the other kinds state their types themselves."""

    types: dict[str, Any]  # the types of some columns; those of the others are inferred
    nulls: Sequence[str]
    delimiter: str | None
    decimal: str | None
    skip: Callable[[str], None]  # takes the error of a wrong row of a CSV file, or raises it
    schemas: dict[
        tuple[str, str, bytes], Any
    ]  # the last inferred one with its marks, by delimiter, decimal and first bytes: inferring many columns takes long
    weight: str | None = None  # the column of weights


class Table(ABC):
    """One open file."""

    text_bytes = 0

    def __init__(self, place: Place) -> None:
        self.place = place
        self.schema: Any = None
        self.marks: dict[str, tuple[str, ...]] = {}  # columns of text that hold numbers, and why they do not look so
        self.rounded: dict[str, tuple[str, ...]] = {}  # columns of whole numbers that doubles do not hold, with one of these

    @cached_property
    def bare(self) -> str:
        """What is wrong where it has no rows, nor types for all of its columns; else nothing."""
        untold = any(map(pa.types.is_null, self.schema.types))
        return no_rows(self.place.name) if untold and self.count() == 0 else ""

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

    def is_void(self, name: str) -> bool:
        """Whether no row has a value in a column; of a file whose types follow from its values, False."""
        found = (batch.column(0).is_null(nan_is_null=True) for _, batch in self.batches([name], LOOKED_AT))
        return all(pc.all(missing).as_py() for missing in found)

    def with_keys(self, schema: Any) -> Any:
        """The schema, with the columns that the folders' names give after the file's own."""
        for key, value in self.place.keys:
            if key in schema.names:
                raise StreamError(f"{self.place.name}: the column {quoted(key)} is both in the file and in its folder's name.")
            schema = schema.append(pa.field(key, pa.scalar(value).type if value is not None else pa.string()))
        return schema

    def count(self) -> int | None:
        """The number of rows, where it is known in advance."""
        return None

    def close(self) -> None:
        """Close the file."""


class Completer:
    """Selects ``columns`` from a file's batches, and fills in those that its folders' names give."""

    def __init__(self, columns: Sequence[str], keys: dict[str, Any]) -> None:
        self._columns, self._keys = list(columns), keys
        self._stored: list[str] | None = None  # the columns that batches have
        self._places: list[int] = []  # where each of ``columns`` stands among them, -1 for none

    def batch(self, found: Any) -> Any:
        """The batch with exactly the columns, in their order."""
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
