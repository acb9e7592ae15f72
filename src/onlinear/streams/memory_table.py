"""A table in memory, read as an open file of named columns is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onlinear.streams.frames import pieces
from onlinear.streams.places import Place
from onlinear.streams.table import Table


class MemoryTable(Table):
    """The rows of ``place.table``."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.schema = place.table.schema

    def count(self) -> int:
        return int(self.place.table.num_rows)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
        yield from pieces(self.place.table, columns, rows)
