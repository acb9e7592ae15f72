"""Rows in containers of all kinds: what holds numbers is read, and what does not is refused in the terms of the argument."""

from __future__ import annotations

import datetime
import decimal
import re
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlinear import OnlineClassifier, OnlineRegressor

RNG = np.random.default_rng(3)
X = RNG.standard_normal((40, 3))
Y = np.where(X[:, 0] > 0.0, "yes", "no")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])

SAME = {
    "a deque": deque(X.tolist()),
    "memory": memoryview(X),
    "the other byte order": X.astype(X.dtype.newbyteorder()),
    "long doubles": X.astype(np.longdouble),
    "objects": X.astype(object),
    "an Arrow batch": pa.RecordBatch.from_pandas(FRAME),
    "sparse columns, filled with 1": FRAME.astype(pd.SparseDtype(float, 1.0)),
    "sparse columns, filled with NaN": FRAME.astype(pd.SparseDtype(float, np.nan)),
    "a sparse column": FRAME.assign(a=pd.arrays.SparseArray(FRAME["a"])),
}


@pytest.fixture(scope="module")
def wanted():
    return OnlineClassifier(random_state=0).fit(X, Y).decision_function(X)


@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns found")
@pytest.mark.parametrize("name", SAME)
def test_containers_of_numbers(name, wanted):
    rows = SAME[name]
    model = OnlineClassifier(random_state=0).fit(rows, Y)
    assert np.array_equal(model.decision_function(rows), wanted)
    assert model.partial_fit(rows, Y).score(rows, Y) > 0.8


@pytest.mark.parametrize("kind", [X.dtype.newbyteorder(), np.dtype(np.longdouble)], ids=["byte order", "long doubles"])
def test_numbers_beside_text(kind):
    table = FRAME.assign(word=["u", "v"] * 20)
    wanted = OnlineClassifier(random_state=0).fit(table, Y)
    assert np.array_equal(OnlineClassifier(random_state=0).fit(table.astype({"a": kind, "b": kind}), Y).coef_, wanted.coef_)


def test_the_columns_of_an_arrow_batch_have_names():
    batch = pa.RecordBatch.from_pandas(FRAME)
    model = OnlineClassifier(random_state=0).fit(batch, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(model.predict(FRAME[["c", "b", "a"]].to_dict("records")), model.predict(batch))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pa.RecordBatch.from_pandas(FRAME[["c", "b", "a"]]))


TWICE = "X: expected each column name once, got 'a' 2 times"
REFUSED = {
    "nothing": (np.array(1.0), ValueError, "Expected 2D array"),
    "records": (
        np.zeros(40, [("u", "f8"), ("v", "f8")]),
        TypeError,
        "X must hold numbers, got records with the fields 'u', 'v'",
    ),
    "a column in chunks": (pa.chunked_array([X[:, 0]]), ValueError, "Expected 2D array"),
    "no columns": (FRAME[[]], ValueError, "X has no columns"),
    "a name twice": (FRAME.set_axis(["a", "a", "b"], axis=1), TypeError, TWICE),
    "a name of Arrow twice": (pa.Table.from_arrays([pa.array(X[:, 0])] * 2, names=["a", "a"]), TypeError, TWICE),
    "a value of Arrow that is missing": (
        pa.table({"u": [1.0] * 40, "v": [1.0, None] * 20}),
        ValueError,
        "X contains NaN at row 1, column 'v'",
    ),
}
OBJECTS = {
    "complex": (1j, TypeError, "X must hold numbers, got 1j at row 1, column 0"),
    "a date": (datetime.date(2020, 1, 2), TypeError, "got datetime.date(2020, 1, 2) at row 1, column 0"),
    "a large integer": (10**400, ValueError, "X holds a number that no double holds, 10000"),
    "a list": ([1.0], (TypeError, ValueError), "X must hold numbers, got [1.0] at row 1, column 0"),
    "missing": (pd.NA, TypeError, "X must hold numbers, got <NA> at row 1, column 0"),
}


def refused(rows, error, message):
    for model, y in ((OnlineClassifier(), Y), (OnlineRegressor(), X[:, 0])):
        with pytest.raises(error, match=re.escape(message)):
            model.fit(rows, y)
        assert not hasattr(model, "learner_")
    model = OnlineClassifier().fit(X[:, :2], Y)
    with pytest.raises(error, match=re.escape(message)):
        model.predict(rows)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_rows_of_numbers(name):
    refused(*REFUSED[name])


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_are_no_numbers_are_named(name, as_list):
    value, error, message = OBJECTS[name]
    rows = np.array([[decimal.Decimal(1), 2.0], [3, 4.0]] * 20, object)
    rows[1, 0] = value
    refused(rows.tolist() if as_list else rows, error, message)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("value", [pd.NA, pd.NaT])
def test_objects_of_a_frame_that_are_no_numbers_are_named(value):
    rows = pd.DataFrame({"u": [1.0, 2.0] * 20, "v": np.array([3, value] * 20, object)})
    refused(rows, TypeError, f"X must hold numbers, got {value!r} at row 1, column 'v'")
    refused(rows.replace({value: None}).astype(object), ValueError, "X contains NaN at row 1, column 'v'")


def test_a_set_has_no_order():
    with pytest.raises(TypeError, match="X must hold rows, got a set, which has no order: give a list of rows"):
        OnlineClassifier().fit({(1.0, 2.0), (2.0, 1.0)}, ["a", "b"])


def test_sparse_columns_without_a_value_are_named():
    rows = FRAME.where(FRAME > 0.0).astype(pd.SparseDtype(float, np.nan))
    with pytest.raises(ValueError, match=r"X contains NaN at row 0, column '[abc]'"):
        OnlineClassifier().fit(rows, Y)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="old polars have no such numbers")
@pytest.mark.parametrize("value", [2**100, 2**63, -(2**63) - 1])
def test_numbers_of_more_than_64_bits(value):
    rows = pl.DataFrame({"u": pl.Series([1, value] * 20, dtype=pl.Int128)})
    with pytest.raises(TypeError, match=re.escape(f"expected numbers within 2^53 in column 'u', got {value} at row 1")):
        OnlineClassifier().fit(rows, Y)
