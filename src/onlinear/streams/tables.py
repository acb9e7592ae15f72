"""Opens files that hold named columns: Parquet, Feather (Arrow IPC) and CSV, on this machine or behind a URI."""

from __future__ import annotations

from onlinear.streams.columnar_table import ColumnarTable
from onlinear.streams.csv_table import CsvTable
from onlinear.streams.places import Place
from onlinear.streams.suffixes import CSV
from onlinear.streams.table import Table, TableSettings


def open_table(place: Place, form: str, settings: TableSettings) -> Table:
    """Open a file of the given format."""
    return CsvTable(place, settings) if form == CSV else ColumnarTable(place, form)
