"""Opens what holds named columns: Parquet, Feather (Arrow IPC) and CSV, on this machine or behind a URI; tables in memory."""

from __future__ import annotations

from onlinear.streams.columnar_table import ColumnarTable
from onlinear.streams.csv_table import CsvTable
from onlinear.streams.memory_table import MemoryTable
from onlinear.streams.places import Place
from onlinear.streams.suffixes import CSV
from onlinear.streams.table import Table, TableSettings


def open_table(place: Place, form: str, settings: TableSettings) -> Table:
    """Open a file of the given format, or a table in memory."""
    if place.table is not None:
        return MemoryTable(place)
    return CsvTable(place, settings) if form == CSV else ColumnarTable(place, form)
