"""Not public: rows of data as the kernels take them, checks of rows, targets and weights, and scales of columns."""

from __future__ import annotations

from onlinear.rows.arrays import ArrayRows, UnknownRows, are_floats
from onlinear.rows.reading import NotFinite, column_names, dense, is_sparse, learnable, named_columns, read
from onlinear.rows.records import (
    AHEAD,
    BLOCK,
    LARGEST_COLUMN,
    LARGEST_VALUE,
    NEAR,
    InOrder,
    Rows,
    Source,
    ask_for_row,
    dot_rows,
    dot_rows_abreast,
    dot_rows_at,
    entries_to_fetch,
    fill_row,
    largest_value,
    permuted_rows,
    plain,
    row_beyond,
    rows_between,
    take_rows,
    unlearnable,
)
from onlinear.rows.scanning import Scan, scan
from onlinear.rows.tidying import ALL_OWNED, sorted_rows

__all__ = [
    "AHEAD",
    "ALL_OWNED",
    "BLOCK",
    "LARGEST_COLUMN",
    "LARGEST_VALUE",
    "NEAR",
    "ArrayRows",
    "InOrder",
    "NotFinite",
    "Rows",
    "Scan",
    "Source",
    "UnknownRows",
    "are_floats",
    "ask_for_row",
    "column_names",
    "dense",
    "dot_rows",
    "dot_rows_abreast",
    "dot_rows_at",
    "entries_to_fetch",
    "fill_row",
    "is_sparse",
    "largest_value",
    "learnable",
    "named_columns",
    "permuted_rows",
    "plain",
    "read",
    "row_beyond",
    "rows_between",
    "scan",
    "sorted_rows",
    "take_rows",
    "unlearnable",
]
