"""Tables in memory: data frames, Arrow tables and lists of dicts as Arrow tables, in the rows' order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "the table"  # of a table in memory, in messages
WIDE = "Int128", "UInt128"  # types of polars
SHOWN = 80  # characters of a text, in messages
LAZY = "LazyFrame"  # of polars: not rows, but what will be done to get them

# Takes the names of columns, and gives those whose values are wanted.
Chosen = Callable[[Sequence[str]], Collection[str | None]]


def is_table(source: Any) -> bool:
    """Whether ``source`` is a table in memory: a data frame, an Arrow table or batch, a list of dicts, or one dict.

    Raises TypeError for a lazy frame, a frame of Dask, a data set of Arrow, and for several frames.
    """
    if type(source).__name__ == LAZY and hasattr(source, "collect"):
        raise TypeError(f"expected rows, got a {LAZY}, which holds none yet: give its collect().")
    if type(source).__module__.startswith("dask.") and hasattr(source, "columns"):
        raise TypeError(
            "expected rows, got a data frame of Dask, which holds none yet: give its compute(), each of its partitions, "
            "computed, to partial_fit, or all of it to the estimators of onlinear.dask."
        )
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "to_table"):
        raise TypeError(
            f"expected rows, got a {type(source).__name__} of Arrow: give its to_table(), each of its to_batches() to "
            "partial_fit, or the names of its files to streams.open."
        )
    if isinstance(source, (list, tuple)) and source and is_frame(source[0]):
        raise TypeError(
            f"expected one table, got a {type(source).__name__} of {len(source)}: join them (pandas.concat, polars.concat, "
            "pyarrow.concat_tables), or give them to partial_fit one after another."
        )
    return is_frame(source) or is_record(source) or is_records(source)


def one_by_one(piece: Any) -> str | None:
    """What to do with an iterable of such pieces, none of which is rows of an array; None for pieces of other kinds."""
    if is_record(piece):
        return "give a list of the dicts, or each to learn_one"
    return "give each table to partial_fit" if is_frame(piece) or is_records(piece) else None


def is_frame(source: Any) -> bool:
    """Whether ``source`` is a data frame or an Arrow table or batch; one column is none, of Arrow in chunks either."""
    if isinstance(source, type) or hasattr(type(source), "dtype") or hasattr(type(source), "chunks"):
        return False
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_batches") or _is_pandas(source)


def is_record(source: Any) -> bool:
    """Whether ``source`` is a dict, and no sparse container that is one too."""
    return isinstance(source, Mapping) and not hasattr(source, "shape")


def is_records(source: Any) -> bool:
    """Whether ``source`` is a list of dicts."""
    return isinstance(source, Sequence) and not isinstance(source, memoryview) and len(source) > 0 and is_record(source[0])


def _is_pandas(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns")


def as_arrow(source: Any, names: Iterable[str] = (), read: Chosen | None = None) -> pa.Table:
    """A table in memory as an Arrow table. The index of a pandas frame is no column; names of columns become text.

    ``names``: columns that a list of dicts has even where no dict names them. ``read`` chooses the columns whose values are
    wanted; others have none, whatever they hold. None: all.

    Raises
    ------
    TypeError
        For columns that hold values of several types, names that repeat, rows that are no dicts, and a dict of columns.
    ValueError
        For text that UTF-8 does not have.
    """
    import pyarrow as pa

    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if _is_pandas(source):
            return _of_pandas(source, read)
        if is_record(source):
            _refuse_columns(source)
            return _of_records([source], names, read)
        if is_records(source):
            return _of_records(source, names, read)
        return _of_frame(source, read)
    except UnicodeEncodeError as error:
        raise ValueError(f"{NAME}: expected text that UTF-8 has, got {error.object[:SHOWN]!a}.") from None
    except (pa.ArrowException, UnicodeError, ValueError, OverflowError) as error:
        raise _several_types(error) from None


def _of_pandas(frame: Any, read: Chosen | None) -> pa.Table:
    """A data frame of pandas as a table."""
    import pyarrow as pa

    named = frame.set_axis([str(name) for name in frame.columns], axis=1)  # one text each, of several levels too
    refuse_repeated(named.columns)
    others = _others(named.columns, read)
    named = named.drop(columns=others)
    plain = {name: kept for name, held in named.dtypes.items() if (kept := _plain_type(held)) is not held}
    table = pa.Table.from_pandas(named.astype(plain), preserve_index=False).replace_schema_metadata(None)
    for name, held in named.dtypes.items():
        if getattr(held, "kind", "") == "O":
            _refuse_cut_times(named[name], table.schema.field(name).type, name)
    return _with_nulls(table, others, len(frame))


def _of_frame(frame: Any, read: Chosen | None) -> pa.Table:
    """A frame that gives its columns to Arrow itself, such as that of polars, as a table."""
    import pyarrow as pa

    others = _others(frame.columns, read) if hasattr(frame, "columns") and hasattr(frame, "drop") else []
    rows, frame = (len(frame), frame.drop(others)) if others else (0, frame)
    wide = wide_columns(frame)
    for name in wide:
        _refuse_wider(frame[name].to_list(), name)
    return _with_nulls(pa.table(frame.cast(dict.fromkeys(wide, int)) if wide else frame), others, rows)


def _several_types(error: Exception, name: str = "") -> TypeError:
    """The error for columns that Arrow does not take; ``name``: that of the column, where ``error`` does not tell it."""
    message = " ".join(str(part) for part in error.args) or type(error).__name__
    where = f" in column {name!r}" if name else ""
    return TypeError(f"{NAME}: expected columns that hold one type each, got{where}: {message.strip().rstrip('.')}.")


def _others(names: Iterable[str], read: Chosen | None) -> list[str]:
    """The columns whose values are not wanted."""
    if read is None:
        return []
    named = list(names)
    wanted = set(read(named))
    return [name for name in named if name not in wanted]


def _with_nulls(table: pa.Table, names: Sequence[str], rows: int) -> pa.Table:
    """The table with further columns that have no values."""
    import pyarrow as pa

    held = dict(zip(table.column_names, table.columns, strict=True))
    return pa.table(held | dict.fromkeys(names, pa.nulls(rows))) if names else table


def wide_columns(source: Any) -> list[str]:
    """The columns of a frame of polars that hold whole numbers of 128 bits, which neither Arrow nor NumPy has."""
    found = getattr(source, "schema", None)
    return [name for name, held in found.items() if str(held) in WIDE] if isinstance(found, Mapping) else []


def _plain_type(held: Any) -> Any:
    """The type of a column of pandas, or one that Arrow knows: for sparse ones, those of another byte order, long doubles."""
    if hasattr(held, "fill_value"):
        return held.subtype
    if not isinstance(held, np.dtype) or held.kind not in "iuf":
        return held
    return np.dtype(np.float64) if held.kind == "f" and held.itemsize > 8 else held if held.isnative else held.newbyteorder("=")


def _refuse_wider(values: Sequence[Any], name: str) -> None:
    """Raise TypeError for a whole number that 64 bits do not hold."""
    for row, value in enumerate(values):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TypeError(f"{NAME}: expected numbers within 2^53 in column {name!r}, got {value} at row {row}.")


def _refuse_cut_times(values: Iterable[Any], held: Any, name: str) -> None:
    """Raise TypeError for a time among days: Arrow, which takes a column for days by its first value, cuts the time off."""
    import pyarrow as pa

    if not pa.types.is_date(held):
        return
    for row, value in enumerate(values):
        if isinstance(value, datetime) and value == value:  # not pandas' NaT
            raise TypeError(
                f"{NAME}: expected columns that hold one type each, got in column {name!r}: days, and the time {value} at row "
                f"{row}; make them all times (pandas.to_datetime)."
            )


def refuse_repeated(names: Iterable[Any], name: str = NAME) -> None:
    """Raise TypeError for names of columns that repeat; ``name`` is that of the table."""
    twice = [(column, count) for column, count in Counter(names).items() if count > 1]
    if twice:
        column, count = twice[0]
        raise TypeError(f"{name}: expected each column name once, got {column!r} {count} times: rename or drop them.")


def _refuse_columns(record: Mapping[str, Any]) -> None:
    """Raise TypeError for a dict of columns, where a dict is one row."""
    held = list(record.values())
    if held and all(isinstance(values, (list, tuple)) or getattr(values, "shape", ()) for values in held):
        raise TypeError(
            f"{NAME}: expected a dict of one row's values, got a dict of columns: give pandas.DataFrame(...) of it."
        )


def _of_records(rows: Sequence[Any], names: Iterable[str], read: Chosen | None) -> pa.Table:
    """Dicts as a table: the columns in the order in which they appear, a value that a dict lacks missing."""
    import pyarrow as pa

    columns = dict.fromkeys(names)
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"{NAME}: expected a dict for each row, got {type(row).__name__} at row {k}.")
        columns.update(dict.fromkeys(row))
    for name in columns:
        if not isinstance(name, str):
            raise TypeError(f"{NAME}: expected text as the name of a column, got {name!r}.")
    others = _others(columns, read)
    kept = columns.keys() - set(others)
    held = {name: _column([row.get(name) for row in rows], name) for name in columns if name in kept}
    return _with_nulls(pa.table(held), others, len(rows))


def _column(values: Sequence[Any], name: str) -> Any:
    """The values of a column, of a type that follows from them."""
    import pyarrow as pa

    try:
        found = pa.array(map(_of_numpy, values), from_pandas=True)
    except UnicodeEncodeError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        _refuse_wider(values, name)
        raise _several_types(error, name) from None
    _refuse_cut_times(values, found.type, name)
    return found


def _of_numpy(value: Any) -> Any:
    """A day of NumPy, and its missing time without a unit, as Python has them, as pyarrow cannot read them; else the value."""
    unread = isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in ("D", "generic")
    return value.item() if unread else value


def pieces(table: pa.Table, columns: Sequence[str], rows: int) -> Iterator[tuple[int, Any]]:
    """The rows in order, at most ``rows`` at a time, as (number of the first one from 1, record batch of ``columns``)."""
    first = 1
    for batch in table.select(list(columns)).to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield first, batch
        first += batch.num_rows
