"""What is no column of targets: one error that says what ``y`` holds, where, and what to give instead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from onlinear import OnlineClassifier, OnlineRegressor
from onlinear.streams import StreamError

N = 30
NUMBERS = np.linspace(-1.0, 1.0, N)
DAYS = pd.date_range("2020-01-01", periods=N).to_series(index=range(N))
X = pd.DataFrame({"x": NUMBERS, "z": NUMBERS**2})
TABLE = X.assign(word=["a", "b", "c"] * 10, r=2 * NUMBERS)
SOME = [True, None, False] * 10
NONE_AT_1 = "y contains a missing value at row 1; every value must be given"

OF_ALL = {
    "an expression": (pl.col("r"), TypeError, r"got a polars Expr.*: give the name, or X\.select\(y\)"),
    "a lazy frame": (pl.LazyFrame({"r": NUMBERS}), TypeError, r"got a polars LazyFrame.*: give the name, or its collect\(\)"),
    "a generator": ((k for k in range(N)), TypeError, "got a generator: give a list in the order of the rows"),
    "a dict": ({"r": NUMBERS}, TypeError, r"got a dict: give list\(y\.values\(\)\)"),
    "a set": (set(range(N)), TypeError, "got a set: give a list"),
    "a number": (2, TypeError, "got 2: names of columns are text, as y='2'"),
    "one name in a list": (["z"], TypeError, "got a list of names of columns: give y='z'"),
    "names": (["x", "z"], TypeError, r"got a list of names of columns: give X\[y\] for several targets"),
    "nullable booleans": (pd.Series(pd.array(SOME, "boolean")), ValueError, NONE_AT_1),
    "nullable whole numbers": (pd.array([1, None, 0] * 10, "Int64"), ValueError, NONE_AT_1),
    "polars booleans": (pl.Series(SOME), ValueError, NONE_AT_1),
    "polars text": (pl.Series(["a", None, "b"] * 10), ValueError, NONE_AT_1),
    "Arrow booleans": (pa.array(SOME), ValueError, NONE_AT_1),
    "Arrow chunks": (pa.chunked_array([SOME]), ValueError, NONE_AT_1),
    "NaN": (np.where(np.arange(N) == 7, np.nan, 1.0), ValueError, "y contains NaN at row 7"),
    "complex numbers": (NUMBERS + 1j, ValueError, "Complex data not supported: y has dtype complex128"),
}
OF_REGRESSORS = {
    "text": (TABLE["word"], TypeError, "got 'a' at row 0: text names classes, for OnlineClassifier"),
    "an array of text": (np.array(["1.5"] * N), TypeError, r"got '1.5' at row 0: .* as y\.astype\(float\)"),
    "dates": (DAYS, TypeError, r"datetime64.*: count their seconds, as np\.asarray\(y, 'datetime64\[s\]'\)\.astype\(float\)"),
    "durations": (DAYS - DAYS[0], TypeError, r"timedelta64.*: count their seconds, .* 'timedelta64\[s\]'"),
    "polars dates": (pl.Series(DAYS.dt.date.tolist()), TypeError, "datetime64.*: count their seconds"),
}


def assert_refused(model, rows, y, error, message):
    with pytest.raises(error, match=message):
        model.fit(rows, y)
    assert not hasattr(model, "learner_")


@pytest.mark.parametrize("rows", [X, TABLE], ids=["numbers", "table"])
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
@pytest.mark.parametrize("name", OF_ALL)
def test_no_targets(kind, rows, name):
    assert_refused(kind(), rows, *OF_ALL[name])


@pytest.mark.parametrize("rows", [X, TABLE], ids=["numbers", "table"])
@pytest.mark.parametrize("name", OF_REGRESSORS)
def test_no_numbers(rows, name):
    assert_refused(OnlineRegressor(), rows, *OF_REGRESSORS[name])


def test_the_remedies_for_dates_work():
    for y, held in ((DAYS, "datetime64[s]"), (DAYS - DAYS[0], "timedelta64[s]"), (pl.Series(DAYS.dt.date), "datetime64[s]")):
        seconds = np.asarray(y, held).astype(float)
        assert seconds[1] - seconds[0] == 86400.0
        OnlineRegressor().fit(X, seconds)


@pytest.mark.parametrize("y", [pl.col("r"), ["r"], TABLE["word"], (k for k in range(N))])
def test_score_says_the_same(y):
    model = OnlineRegressor().fit(TABLE, "r")
    with pytest.raises(TypeError, match=r"^y must "):
        model.score(TABLE, y)


def test_a_named_column_of_text_or_dates():
    assert_refused(OnlineRegressor(), TABLE, "word", ValueError, "a regression needs numbers: .*, or take OnlineClassifier")
    dated = TABLE.assign(day=DAYS)
    for kind in (OnlineClassifier, OnlineRegressor):
        assert_refused(kind(), dated, "day", StreamError, "target column 'day', got dates or times .*: turn them into numbers")


@pytest.mark.parametrize("rows", [None, (row for row in X.to_numpy())], ids=["nothing", "a generator"])
def test_no_rows(rows):
    assert_refused(OnlineRegressor(), rows, NUMBERS, TypeError, "X must hold rows, got (None|a generator): give a list of rows")


STRINGS = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else None
WORDS = ["a", "b", "a"] * 10
KINDS_OF_LABELS = {
    "polars categories": pl.Series(WORDS, dtype=pl.Categorical),
    "polars enum": pl.Series(WORDS, dtype=pl.Enum(["z", "b", "a"])),
    "categories": pd.Categorical(WORDS, ["z", "b", "a"], ordered=True),
    "Arrow dictionary": pa.array(WORDS).dictionary_encode(),
}
if STRINGS is not None:
    KINDS_OF_LABELS["strings"] = np.array(WORDS, STRINGS)


@pytest.mark.parametrize("rows", [X, TABLE], ids=["numbers", "table"])
@pytest.mark.parametrize("name", KINDS_OF_LABELS)
def test_labels_of_any_kind_of_text(rows, name):
    y = KINDS_OF_LABELS[name]
    model = OnlineClassifier(random_state=0).fit(rows, y)
    assert model.classes_.tolist() == ["a", "b"]
    assert np.array_equal(model.coef_, OnlineClassifier(random_state=0).fit(rows, WORDS).coef_)
    assert model.score(rows, y) == model.score(rows, WORDS)
    OnlineClassifier().partial_fit(rows, y, classes=["a", "b"])


@pytest.mark.parametrize("numbers", [[0, 1, 1], [0.0, 1.0, 1.0], [False, True, True]])
def test_targets_that_pandas_holds_sparse(numbers):
    dense = np.array(numbers * 10)
    for y in (pd.arrays.SparseArray(dense), pd.Series(pd.arrays.SparseArray(dense))):
        for kind in (OnlineClassifier, OnlineRegressor):
            model = kind(random_state=0).fit(X, y)
            assert np.array_equal(model.coef_, kind(random_state=0).fit(X, dense).coef_)
            assert model.score(X, pd.Series(y)) == model.score(X, dense)
    several = pd.DataFrame({"a": y, "b": y})
    model = OnlineRegressor(random_state=0).fit(X, several)
    assert np.array_equal(model.coef_, OnlineRegressor(random_state=0).fit(X, np.column_stack([dense, dense])).coef_)
    assert model.score(X, several) == model.score(X, several.sparse.to_dense())


@pytest.mark.skipif(STRINGS is None, reason="NumPy 1 has no such strings")
def test_a_missing_string_is_named_by_its_row():
    y = np.array([*WORDS[:-1], None], np.dtypes.StringDType(na_object=None))
    assert_refused(OnlineClassifier(), X, y, ValueError, f"y contains a missing value at row {N - 1}")


WIDE = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]  # old polars have none


@pytest.mark.parametrize("kind", WIDE)
def test_whole_numbers_of_128_bits(kind):
    narrow = pl.DataFrame({"x": list(range(N)), "z": NUMBERS, "y": [0, 1, 1] * 10})
    wide = narrow.with_columns(pl.col("x", "y").cast(kind))
    expected = OnlineClassifier(random_state=0).fit(narrow, "y").coef_
    assert np.array_equal(OnlineClassifier(random_state=0).fit(wide, "y").coef_, expected)
    assert np.array_equal(OnlineClassifier(random_state=0).fit(wide.select("x", "z"), wide["y"]).coef_, expected)
    assert OnlineRegressor().fit(wide.select("z"), wide["y"]).coef_.shape == (1,)


def test_sparse_columns_beside_text():
    sparse = TABLE.assign(x=pd.arrays.SparseArray(TABLE["x"]), r=pd.arrays.SparseArray(TABLE["r"], fill_value=0.0))
    model = OnlineClassifier(random_state=0).fit(TABLE, "word")
    assert np.array_equal(OnlineClassifier(random_state=0).fit(sparse, "word").coef_, model.coef_)
    assert np.array_equal(model.predict(sparse), model.predict(TABLE))


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
@pytest.mark.parametrize("call", ["fit", "partial_fit", "score"])
def test_a_name_for_rows_without_names(kind, call):
    rows = np.arange(8.0).reshape(4, 2)
    model = kind().fit(rows, [0, 1, 0, 1])
    for X in (rows, rows.tolist(), csr_array(rows)):
        with pytest.raises(TypeError, match=r"y must be an array of targets, or the name .* got 'target': only a data frame"):
            getattr(model, call)(X, "target")


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_whole_number_that_is_no_double(value):
    with pytest.raises(ValueError, match=r"y must hold numbers that are doubles, got .*0000.* at row 2"):
        OnlineRegressor().fit(X[:3], [1, 2, value])


class Tensor:
    """What a tensor of torch has: an array behind a device, whose ``size`` is a method."""

    device = "cpu"

    def __init__(self, values):
        self._values = np.asarray(values)
        self.dtype, self.shape, self.ndim = self._values.dtype, self._values.shape, self._values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype)

    def __len__(self):
        return len(self._values)

    def size(self):
        return self.shape


@pytest.mark.parametrize(("kind", "y"), [(OnlineClassifier, (NUMBERS > 0.0).astype(int)), (OnlineRegressor, NUMBERS)])
def test_tensors_are_scored_and_single_rows(kind, y):
    rows = X.to_numpy()
    model = kind().fit(rows, y)
    assert model.score(rows, Tensor(y)) == model.score(rows, y)
    row = np.array([0, 1]), np.array([1.0, 2.0])
    tensors = tuple(map(Tensor, row))
    assert model.predict_one(*tensors) == model.predict_one(*row)
    assert model.learn_one(tensors, 1).t_ == N + 1
    assert np.isfinite(model.learner_.learn_one(*row, Tensor(1.0)))
