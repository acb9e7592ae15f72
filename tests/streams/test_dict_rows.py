"""Rows as dicts have the entries that a table of them has."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_columns import rows_of

from onlinear import streams
from onlinear.streams import StreamError
from onlinear.streams.dict_rows import NamedRow, row_reader

FIRST = {"y": 1.0, "a": 1.5, "flag": True, "day": datetime.date(2024, 1, 1), "site": "x", "kind": "u"}
VALUES = {
    "a": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60) | st.just(np.float32(0.5)),
    "flag": st.none() | st.booleans(),
    "day": st.none() | st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1)),
    "site": st.none() | st.sampled_from(["x", "y", "", "ü"]),
    "kind": st.none() | st.sampled_from(["u", "v"]),
}
DICTS = st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=6)


@settings(max_examples=150)
@given(
    DICTS,
    st.sampled_from(["hash", "one-hot"]),
    st.integers(1, 18),
    st.sampled_from(["error", "omit", "indicator"]),
    st.booleans(),
)
def test_a_dict_has_the_entries_of_a_table_of_it(rows, categories, bits, missing, grow):
    hashed = {"hash_bits": bits} if categories == "hash" else {}
    options = {"categories": categories, "missing": missing, "dates": "days", **hashed}
    stream = streams.open([FIRST], target="y", **options)
    list(stream)
    reader = row_reader(stream.encoding)
    for row in rows:
        (size,) = {reader.count}
        try:
            (wanted,) = rows_of(streams.open([row], encoding=reader.description(), unlabelled=True))
        except StreamError as error:
            with pytest.raises(StreamError, match=re.escape(str(error))):
                reader.row(row, grow)
            continue
        columns, values = reader.row(row, grow)
        offset = 3 * (2 if missing == "indicator" else 1)
        if not grow and categories == "one-hot":
            wanted = {column: value for column, value in wanted.items() if column < offset + size}
        assert {c: v for c, v in zip(columns, values, strict=True) if v != 0.0 and (grow or c in wanted)} == wanted
        assert columns == sorted(set(columns))
        if not grow:
            assert reader.count == size


def test_names_get_columns_as_they_appear():
    reader = NamedRow([])
    assert reader.row({"a": 2, "site": "x", "flag": True, "none": None}, True) == ([0, 1, 2], [2, 1.0, True])
    assert reader.names == ["a", "site=x", "flag"]
    assert reader.row({"flag": 0.5, "new": 1.0, "site": "y", "a": np.int64(3)}, False) == ([0, 2], [3, 0.5])
    assert reader.row({"site": np.str_("x")}, False) == ([1], [1.0])
    assert reader.names == ["a", "site=x", "flag"]
    for wrong in ({"a": [1]}, {"b": object()}, {3: 1.0}, {3: None}, {None: "x"}, {b"a": 1.0}):
        for grow in (True, False):
            with pytest.raises(TypeError, match="row: expected"):
                reader.row(wrong, grow)
    for wrong in ({"\ud800": 1.0}, {"a": "\ud800"}):
        for grow in (True, False):
            with pytest.raises(ValueError, match=r"expected text that UTF-8 has, got '(a=)?\\ud800'"):
                reader.row(wrong, grow)
    assert len(reader.names) == 3


def test_names_of_rows_of_numbers_are_held():
    reader = NamedRow([])
    for row in ({"a": 1.0, "b": 2}, {"a": 3, "b": True}, {"b": 1.0, "a": 2.0}, {"a": 1.0, "b": "2"}, {"a": None, "b": 1.0}):
        columns, values = reader.arrays(row, True)
        assert (columns.tolist(), values.tolist()) == reader.row(row, True)
    assert reader.names == ["a", "b", "b=2"]
    assert reader.names_held({"a": 0.0, "b": 0.0}, True).names == ("a", "b")
    assert reader.names_held({"b": 0.0, "a": 0.0}, True).names == ("b", "a")
    for learns in (True, False):
        assert reader.names_held({"b=2": 0.0, "a": 0.0}, learns).names == {"a": 0, "b": 1, "b=2": 2}  # looked up one by one
    assert reader.names_held([("a", 1.0)], True) is None


def test_a_name_that_was_not_known_is_looked_up_again():
    reader, row = NamedRow([]), {"a": 1.0, "new": 2.0}
    reader.arrays({"a": 1.0}, True)
    for _ in range(2):
        reader.arrays(row, False)
    assert reader.names_held(row, False).names == ("a", "new")
    assert reader.names_held(row, True).names == {"a": 0}  # a row that is learned has a column for each name
    reader.arrays(row, True)
    held = reader.names_held(row, True)
    assert reader.names_held(row, False) is held
    assert held.row[0].tolist() == [0, 1]
    reader.forget_after(1)
    assert reader.names_held(row, True).names == {"a": 0}
    for _ in range(3):
        with pytest.raises(TypeError, match=r"the name of a value, got 3\. Columns by their numbers are a pair"):
            reader.arrays({"a": 1.0, 3: 2.0}, False)
    assert reader.names_held({"a": 1.0, 3: 2.0}, False).names == {"a": 0}  # which takes no such row


def test_columns_without_names_are_refused():
    for described in (
        {"version": 1, "format": "svmlight", "base": 1},
        {"version": 1, "format": "vw", "hash_bits": 4, "seed": 0},
    ):
        with pytest.raises(ValueError, match=r"which|whose features a dict does not name"):
            row_reader(described)
    for names in (None, ["a", "a"], [1]):
        with pytest.raises(ValueError, match="encoding: expected"):
            row_reader({"version": 1, "format": "names", "names": names})


@pytest.mark.parametrize("huge", [10**400, -(10**5000)], ids=["400", "5000"])
def test_a_whole_number_that_no_double_holds_is_a_value_error(huge):
    reader = NamedRow([])
    with pytest.raises(ValueError, match=r"whole number of about -?1e(400|5000)"):
        reader.arrays({"a": huge, "b": 1.5}, True)
    reader.arrays({"a": 1.0, "b": 1.5}, True)
    for row in ({"a": huge, "b": 1.5}, {"b": 1.5, "a": huge}):
        for refused in (lambda row: reader.arrays(row, True), reader.named):
            with pytest.raises(ValueError, match="expected values below"):
                refused(row)
    columns, values = reader.arrays({"a": 2.0, "b": 0.5}, True)
    assert (columns.tolist(), values.tolist()) == ([0, 1], [2.0, 0.5])
