"""Tables in memory: whatever holds a table, its rows are those of a file of it."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from test_columns import MISSING, rows_of, tables

from onlinear import streams
from onlinear.streams import StreamError

ROWS = [
    {"click": i % 2, "price": None if i % 5 == 0 else i / 8, "site": "abc"[i % 3], "new": i % 4 == 0, "n": i} for i in range(40)
]
FRAME = pd.DataFrame(ROWS)
TABLE = pa.Table.from_pylist(ROWS)
HOLDERS = {
    "pandas": FRAME,
    "categorical": FRAME.astype({"site": "category"}),
    "nullable": FRAME.convert_dtypes(),
    "an index of its own": FRAME.set_index(np.arange(40)[::-1]),
    "polars": pl.DataFrame(ROWS),
    "polars categorical": pl.DataFrame(ROWS).with_columns(pl.col("site").cast(pl.Categorical)),
    "arrow": TABLE,
    "in pieces": pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7)]),
    "batch": TABLE.combine_chunks().to_batches()[0],
    "dicts": ROWS,
    "tuple of dicts": tuple(ROWS),
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("categories", ["hash", "one-hot"])
def test_the_rows_are_those_of_a_parquet_file(name, categories, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    options = {"target": "click", "missing": "indicator", "categories": categories}
    wanted = streams.open(tmp_path / "rows.parquet", **options)
    found = streams.open(HOLDERS[name], block_bytes=1 << 8, **options)
    assert found.rows == 40
    assert rows_of(found) == rows_of(wanted)
    assert found.encoding == wanted.encoding
    assert found.name == "the table"


@settings(max_examples=60)
@given(tables(), MISSING)
def test_every_type_is_read_as_from_a_file(tmp_path_factory, table_and_types, missing):
    table, _ = table_and_types
    path = tmp_path_factory.mktemp("tables") / "rows.parquet"
    pq.write_table(table, path)
    options = {"target": "y", "weight": "w", "missing": missing, "dates": "days"}

    def read(source):
        try:
            stream = streams.open(source, **options)
            return rows_of(stream), stream.encoding
        except StreamError as error:
            return str(error).partition(":")[2]

    assert read(table) == read(path)


def test_a_dict_may_lack_a_value_and_then_it_is_missing():
    rows = [{"y": 1.0, "a": 2.0}, {"y": 0.0, "b": "x"}]
    with pytest.raises(StreamError, match="the table:1: expected text in column 'b', got a missing value"):
        list(streams.open(rows, target="y"))
    stream = streams.open(rows, target="y", missing="omit", categories="one-hot")
    assert rows_of(stream) == [{0: 2.0}, {1: 1.0}]
    assert rows_of(streams.open([{"b": "x"}, {"b": "new"}], encoding=stream.encoding)) == [{1: 1.0}, {2: 1.0}]


VOID = {
    "numbers": pa.array([np.nan, None], pa.float64(), from_pandas=False),
    "text": pa.array([None, None], pa.string_view()),
    "categories of nothing": pa.array([None, None]).dictionary_encode(),
    "dates": pa.array([None, None], pa.timestamp("us")),
    "lists": pa.array([None, None], pa.list_(pa.int8())),
}


@pytest.mark.parametrize("name", VOID)
@pytest.mark.parametrize("missing", ["indicator", "omit"])
def test_a_later_column_without_any_value_may_have_any_type(name, missing):
    first = pa.table({"a": [1.0, 2.0], "b": ["x", "y"], "c": pa.array([0, 1], pa.date32()), "d": [True, False], "y": [0, 1]})
    options = {"target": "y", "missing": missing, "categories": "one-hot", "dates": "days"}
    for place, column in enumerate("abcd"):
        empty, void = (first.set_column(place, column, held) for held in (pa.nulls(2), VOID[name]))
        known = streams.open(first, **options).encoding
        assert rows_of(streams.open(void, encoding=known)) == rows_of(streams.open(empty, encoding=known))


def test_files_of_which_one_has_no_value_in_a_column(tmp_path):
    for part, held in (("1", ["x"]), ("2", pa.array([None], pa.float64())), ("3", ["x"]), ("4", [1.5])):
        pq.write_table(pa.table({"a": held, "y": [1]}), tmp_path / f"{part}.parquet")
    options = {"target": "y", "missing": "omit", "categories": "one-hot"}
    assert rows_of(streams.open(tmp_path / "[123].parquet", **options)) == [{0: 1.0}, {}, {0: 1.0}]
    with pytest.raises(StreamError, match=r"4\.parquet: column 'a': expected text, as asked or as in the first file, got num"):
        list(streams.open(tmp_path / "*.parquet", **options))


@pytest.mark.parametrize("row", [{"a": "\ud800", "y": 1}, {"a": "x", "\ud800": 2.0, "y": 1}])
def test_text_that_utf_8_does_not_have_is_shown_in_ascii(row):
    with pytest.raises(ValueError, match=r"the table: expected text that UTF-8 has, got '\\ud800'\."):
        streams.open([row], target="y")


def test_days_of_numpy_in_dicts_are_those_of_python():
    known = streams.open([{"day": datetime.date(2020, 1, 2), "y": 1}], target="y", dates="days", missing="omit").encoding
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
        unknown = np.datetime64("NaT")
    days = [np.datetime64("2020-01-02"), unknown, datetime.date(1970, 1, 2), np.datetime64("NaT", "D"), None]
    assert rows_of(streams.open([{"day": day} for day in days], encoding=known)) == [{0: 18263.0}, {}, {0: 1.0}, {}, {}]
    assert [rows_of(streams.open([{"day": day}], encoding=known)) for day in days[:2]] == [[{0: 18263.0}], [{}]]


NOON = datetime.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize("table", [list, pd.DataFrame])
def test_times_among_days_are_refused_whichever_comes_first(table):
    day, none = NOON.date(), pd.NaT
    for held in ([day, NOON], [none, day, none, pd.Timestamp(NOON)], [NOON, day]):
        rows = [{"day": value, "y": 1} for value in held]
        source = table(rows) if table is list else table({"day": pd.Series(held, dtype=object), "y": 1})
        with pytest.raises(TypeError, match=r"the table: expected columns that hold one type each, got.*\b(column 'day'|day )"):
            streams.open(source, target="y", dates="days")
    days = table([{"day": day, "y": 1}, {"day": none, "y": 1}])
    assert rows_of(streams.open(days, target="y", dates="days", missing="omit")) == [{0: 18262.0}, {}]


OTHERS = {"mixed": ["a", 1], "imaginary": [1j, 2.0], "wide": [2**70, 1]}


@pytest.mark.parametrize("options", [{"features": ["x"]}, {"exclude": [*OTHERS]}, {"exclude": ["*i*"]}])
def test_what_columns_hold_that_are_left_out_does_not_matter(options):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0], "y": [0, 1], **{name: pd.Series(held, dtype=object) for name, held in OTHERS.items()}}
    )
    assert rows_of(streams.open(frame, target="y", **options)) == [{0: 1.0}, {0: 2.0}]
    assert rows_of(streams.open(frame.to_dict("records"), target="y", **options)) == [{0: 1.0}, {0: 2.0}]
    wide = pl.DataFrame({"wide": pl.Series([2**70, 1], dtype=pl.Int128), "x": [1.0, 2.0], "y": [0, 1]})
    assert rows_of(streams.open(wide, target="y", exclude="w*")) == [{0: 1.0}, {0: 2.0}]
    with pytest.raises(ValueError, match="exclude: the column 'none' is not known"):
        streams.open([{"x": 1.0, "y": 0}], target="y", exclude="none")


@pytest.mark.parametrize("held", [[3, 5, None], [True, False, None], [NOON, None, NOON]])
def test_categories_are_what_a_model_of_the_plain_column_has(held, tmp_path):
    frame = pd.DataFrame({"x": pd.Series(held, dtype="category"), "y": [0, 1, 1]})
    frame.to_parquet(tmp_path / "a.parquet")  # which does not store that they are categories
    stream = streams.open(tmp_path / "a.parquet", target="y", missing="omit", dates="days")
    assert stream.encoding["features"][0][1] != "text"
    found = streams.open(frame, encoding=stream.encoding)
    assert rows_of(found) == rows_of(stream)
    assert [row["x"] for _, row in found.records()] == [row["x"] for _, row in stream.records()]  # as explain reads them


def test_names_that_are_no_text_become_text():
    stream = streams.open(pd.DataFrame({0: [1.0, 2.0], 1: [0, 1]}), target="1")
    assert [name for name, _ in stream.encoding["features"]] == ["0"]
    levels = pd.DataFrame([["u", 0], ["v", 1]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]))
    assert streams.open(levels, target="('b', 'y')").encoding["features"] == [["('a', 'x')", "text"]]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([{"a": 1}, {"a": "x"}], "hold one type each, got in column 'a': Could not convert 'x'"),
        ([{"a": decimal.Decimal("Infinity")}], "hold one type each, got in column 'a'"),
        ([{"a": None}, {"a": 2**63}], "expected numbers within 2.53 in column 'a', got 9223372036854775808 at row 1"),
        ([{"a": 1}, 2], "expected a dict for each row, got int at row 1"),
        ([{1: 1}], "expected text as the name of a column, got 1"),
        (pd.DataFrame({"a": [1, "x"]}), "hold one type each"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "expected each column name once, got .a. 2 times"),
    ],
)
def test_what_is_no_table_is_refused(source, words):
    with pytest.raises(TypeError, match=words):
        streams.open(source, target="a")


def test_options_of_files_are_refused():
    with pytest.raises(ValueError, match="format='csv' is for files"):
        streams.open(FRAME, target="click", format="csv")
    with pytest.raises(ValueError, match="nulls is for the format csv"):
        streams.open(FRAME, target="click", nulls=["x"])
    with pytest.raises(StreamError, match="the table: column 'day' holds dates or times"):
        streams.open([{"y": 1, "day": datetime.date(2020, 1, 1)}], target="y")


def test_a_second_pass_gives_the_rows_again():
    stream = streams.open(FRAME, target="click", missing="omit")
    assert rows_of(stream) == rows_of(stream)
    assert stream.done == stream.total == 40


def test_wrong_rows_of_polars_are_skipped_and_named():
    frame = pl.DataFrame({"s": ["a", None, "c", "d", None], "x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [0, 1, 0, 1, 1]})
    stream = streams.open(frame, target="y", max_errors=1)
    with pytest.raises(StreamError, match="the table:5: expected text in column 's', got a missing value"):
        found = [*stream]
    found = [*streams.open(frame, target="y", max_errors=2)]
    assert [int(line) for block in found for line in block.lines] == [1, 3, 4]
