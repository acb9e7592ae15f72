"""How many rows of a Parquet file are read at a time: few where their texts are long.

A text that stands once in the dictionary of a row group may be that of all its rows, each of which has it once it is read. So
may the beginning that texts take from the one before them, where they are encoded so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onlinear.streams import text_sizes
from onlinear.streams.arrow import check_batch
from onlinear.streams.pages import Pages, pages_of

BUFFER = 1 << 18  # bytes of each column of a Parquet file that are read at a time
RUN = 16  # times the rows that are read at a time, in row groups that are read together
MOST_SHARED = 1 << 27  # bytes of texts that are read at a time, where all may have what stands once in a page


class RowGroups:
    """The row groups of an open file, of which some columns are read. ``near``: it is on this machine, where a look at the
    pages' own headers costs little; of another file, what its metadata say is taken for true."""

    def __init__(self, reader: Any, file: Any, columns: Sequence[str], *, near: bool) -> None:
        self._metadata, self._file, self._near = reader.metadata, file, near
        schema = reader.schema_arrow
        texts = {name for name in columns if text_sizes.is_text(schema.field(name).type)}
        paths = [self._metadata.schema.column(k).path for k in range(self._metadata.num_columns)] if texts else []
        self._texts = {name: k for k, name in enumerate(paths) if name in texts}

    def runs(self, rows: int) -> Iterator[tuple[list[int], int]]:
        """Row groups to read one after another, with the number of rows to read at a time, at most ``rows``."""
        run, held = list[int](), 0
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            most = self._rows_at_once(group, number, rows)
            if run and (most < rows or held >= RUN * rows):
                yield run, rows
                run, held = [], 0
            if most < rows:
                yield [number], most
            else:
                run.append(number)
                held += group.num_rows
        if run:
            yield run, rows

    def _rows_at_once(self, group: Any, number: int, rows: int) -> int:
        """How many rows of a row group to read at a time. Dictionaries that are large enough to matter are looked at."""
        most, large = rows, list[str]()
        for name, place in self._texts.items():
            column = group.column(place)
            pages, count = self._pages_of(column), max(1, column.num_values)
            if pages.size * min(rows, count) > text_sizes.MOST:
                most = min(most, text_sizes.MOST * count // pages.size)
            if pages.dictionary * min(rows, count) > text_sizes.MOST:
                large.append(name)
            if pages.largest * min(rows, count) > MOST_SHARED:
                most = min(most, MOST_SHARED // pages.largest)
        for array in self._dictionaries(number, large) if large else ():
            most = min(most, text_sizes.MOST // max(1, text_sizes.longest(array)))
        return max(1, most)

    def _pages_of(self, column: Any) -> Pages:
        """The pages of a column of a row group; of a file that is far away, by its metadata."""
        if self._near:
            return pages_of(self._file, column)
        size = column.total_uncompressed_size
        return Pages(size, size if column.has_dictionary_page else 0, 0)

    def _dictionaries(self, number: int, columns: list[str]) -> list[Any]:
        """The dictionaries of some columns of a row group."""
        reader = pq.ParquetFile(self._file, read_dictionary=columns, pre_buffer=False, buffer_size=BUFFER)
        batch = check_batch(next(reader.iter_batches(batch_size=1, row_groups=[number], columns=columns)))
        return [array.dictionary for array in batch.columns if pa.types.is_dictionary(array.type)]
