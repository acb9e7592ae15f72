"""Estimators on tables in memory: the model of a file of the table, whatever holds the table."""

from __future__ import annotations

import datetime
import gc
import warnings
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor

from onlinear import OnlineClassifier, OnlineRegressor, load, streams
from onlinear.streams import StreamError

N = 400
DRAW = np.random.default_rng(3)
SITE = DRAW.choice(["a.org", "b.org", "c.org"], N)
PRICE = np.round(DRAW.normal(size=N), 3)
ROWS = [
    {
        "price": None if i % 7 == 0 else float(PRICE[i]),
        "site": None if i % 11 == 0 else str(SITE[i]),
        "new": bool(i % 2),
        "day": datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i % 30),
        "count": int(i % 9),
        "click": "yes" if PRICE[i] + (SITE[i] == "a.org") > 0.4 else "no",
        "spent": float(2 * PRICE[i] + (SITE[i] == "a.org")),
    }
    for i in range(N)
]
FRAME, TABLE = pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS)
OPTIONS = {"missing": "indicator", "dates": "days"}
HOLDERS = {
    "pandas": FRAME,
    "categories": FRAME.astype({"site": "category"}),
    "polars": pl.DataFrame(ROWS),
    "dicts": ROWS,
    "batches": pa.Table.from_batches(TABLE.to_batches(max_chunksize=64)),
}
TASKS = {
    "classes": (OnlineClassifier, "click", "spent", {"classes": "scan"}),
    "numbers": (OnlineRegressor, "spent", "click", {}),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(TABLE, folder / "rows.parquet", row_group_size=100)
    pacsv.write_csv(TABLE, folder / "rows.csv")
    return {"parquet": folder / "rows.parquet", "csv": folder / "rows.csv"}


def bytes_of(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("categories", ["hash", "one-hot"])
@pytest.mark.parametrize("task", TASKS)
def test_files_and_tables_give_a_byte_identical_model(task, categories, files, tmp_path):
    kind, target, other, arguments = TASKS[task]
    found = {}
    for name, source in {"arrow": TABLE, **HOLDERS, **files}.items():
        stream = streams.open(source, target=target, exclude=[other], categories=categories, **OPTIONS)
        model = kind().fit(stream, **arguments)
        if name == "csv":  # its rows are not counted in advance, and a model says whether they were
            assert model.learner_.total is None
            model.learner_.total = N
        found[name] = bytes_of(model, tmp_path / "model")
    assert len(set(found.values())) == 1, [name for name in found if found[name] != found["arrow"]]


@pytest.mark.parametrize("task", TASKS)
def test_a_model_of_a_file_scores_tables_and_rows(task, files):
    kind, target, other, arguments = TASKS[task]
    model = kind().fit(streams.open(files["parquet"], target=target, exclude=[other], **OPTIONS), **arguments)
    wanted = model.predict(streams.open(files["csv"], encoding=model.encoding_))
    for source in HOLDERS.values():
        assert np.array_equal(model.predict(source), wanted)
    without = FRAME.drop(columns=[target, other])[["site", "day", "price", "count", "new"]]
    assert np.array_equal(model.predict(without), wanted)
    assert np.array_equal(model.predict(ROWS[3]), wanted[3:4])
    score = model.score(FRAME[target].to_frame().join(FRAME.drop(columns=target)))
    assert score == pytest.approx(model.score(FRAME, FRAME[target]), rel=1e-14)
    assert score == model.score(FRAME, target)
    assert score == model.score(streams.open(files["csv"], encoding=model.encoding_, target=target))
    with pytest.raises(StreamError, match="expected a column 'site'"):
        model.predict(FRAME.drop(columns="site"))


NUMBERS_AND_TEXT = FRAME[["new", "count"]].assign(site=SITE)


@pytest.mark.parametrize("shuffle", [None, False])
@pytest.mark.parametrize("passes", [1, 3])
def test_targets_may_be_a_column_or_an_array(shuffle, passes):
    for kind, target, _, _ in TASKS.values():
        settings = {"shuffle": shuffle, "passes": passes, "random_state": 5}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first = kind(**settings).fit(NUMBERS_AND_TEXT, FRAME[target])
            second = kind(**settings).fit(NUMBERS_AND_TEXT.assign(y=FRAME[target]), "y")
        assert np.array_equal(first.coef_, second.coef_)
        assert np.array_equal(first.predict(NUMBERS_AND_TEXT), second.predict(NUMBERS_AND_TEXT))
        assert first.t_ == passes * N


def test_several_targets_of_a_table_are_told_what_learns_them():
    frame, y = pd.DataFrame({"s": ["u", "v"] * 4, "x": np.arange(8.0)}), np.arange(16.0).reshape(8, 2)
    for rows in (frame, frame.to_dict("records")):
        with pytest.raises(ValueError, match=r"y has shape \(8, 2\), and of a table .* fit .*MultiOutputRegressor"):
            OnlineRegressor().partial_fit(rows, y)
    assert MultiOutputRegressor(OnlineRegressor()).fit(frame, y).predict(frame).shape == (8, 2)


def test_rows_are_permuted_as_those_of_arrays_are():
    X = FRAME[["new", "count"]].astype(float)
    numbers = OnlineClassifier(random_state=2, passes=2).fit(X, FRAME["click"])
    one = X.assign(site="x")
    table = OnlineClassifier(random_state=2, passes=2, scale="none", fit_intercept=False)
    array = clone(table).fit(X, FRAME["click"])
    same = clone(table).fit(X.assign(y=FRAME["click"]), "y")
    assert np.array_equal(array.coef_, same.coef_)
    assert numbers.feature_names_in_.tolist() == ["new", "count"]
    assert table.fit(one, FRAME["click"]).feature_names_in_.tolist() == ["new", "count", "site"]


def test_classes_and_weights_are_those_of_the_arrays():
    weights = np.arange(N) % 3
    y = np.where(FRAME["click"] == "yes", 7, 3)
    model = OnlineClassifier(class_weight={7: 5.0}, shuffle=False).fit(NUMBERS_AND_TEXT, y, weights)
    assert model.classes_.tolist() == [3, 7]
    stream = streams.open(NUMBERS_AND_TEXT.assign(y=y, w=weights), target="y", weight="w")
    other = OnlineClassifier(class_weight={7: 5.0}, shuffle=False).fit(stream, classes=[3, 7])
    assert np.array_equal(model.coef_, other.coef_)
    third = OnlineClassifier(class_weight={7: 5.0}, shuffle=False).fit(NUMBERS_AND_TEXT.assign(y=y, w=weights), "y", "w")
    assert np.array_equal(third.coef_, other.coef_)
    balanced = OnlineClassifier(class_weight="balanced", shuffle=False).fit(NUMBERS_AND_TEXT, y)
    totals = {3: N / 2 / np.sum(y == 3), 7: N / 2 / np.sum(y == 7)}
    assert np.array_equal(balanced.coef_, OnlineClassifier(class_weight=totals, shuffle=False).fit(NUMBERS_AND_TEXT, y).coef_)


@pytest.mark.parametrize("rows", [NUMBERS_AND_TEXT[["new", "count"]], NUMBERS_AND_TEXT], ids=["numbers", "text"])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_names_of_class_weights_are_those_of_classes(rows, call):
    def train(weights):
        model = OnlineClassifier(class_weight=weights, shuffle=False)
        classes = {} if call == "fit" else {"classes": ["no", "yes"]}
        return getattr(model, call)(rows, FRAME["click"], **classes)

    for wrong in ({0: 2.0, 1: 1.0}, {"0": 2.0, "1": 1.0}, {"yes": 2.0, "maybe": 1.0}):
        with pytest.raises(ValueError, match="not in class_weight"):
            train(wrong)
    whole = train({"no": 1.0, "yes": 2.0})
    for right in ({"yes": 2.0}, {"no": 1.0, "yes": 2.0, "maybe": 3.0}):
        assert np.array_equal(train(right).coef_, whole.coef_)


@pytest.mark.parametrize("rows", [NUMBERS_AND_TEXT[["new", "count"]], NUMBERS_AND_TEXT], ids=["numbers", "text"])
def test_classes_that_are_numbers_written_as_text_have_weights_by_either_name(rows):
    y = np.where(FRAME["click"] == "yes", "7", "3")
    by_number = OnlineClassifier(class_weight={3: 1.0, 7: 5.0}, shuffle=False).fit(rows, y)
    for weights in ({"3": 1.0, "7": 5.0}, {"7": 5.0}, {7: 5.0}, {"3": 1.0, 7: 5.0}):
        model = OnlineClassifier(class_weight=weights, shuffle=False)
        assert np.array_equal(model.fit(rows, y).coef_, by_number.coef_)
        assert np.array_equal(clone(model).partial_fit(rows, y, classes=["3", "7"]).coef_, by_number.coef_)


@pytest.mark.parametrize("rows", [NUMBERS_AND_TEXT[["new", "count"]], NUMBERS_AND_TEXT], ids=["numbers", "text"])
def test_a_fit_without_a_weight_above_zero_is_refused(rows):
    with pytest.raises(ValueError, match="every sample weight is zero"):
        OnlineClassifier().fit(rows, FRAME["click"], np.zeros(N))


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("y", ["click", "array"])
@pytest.mark.parametrize("rows", [NUMBERS_AND_TEXT[["new", "count"]], NUMBERS_AND_TEXT], ids=["numbers", "text"])
def test_weights_of_classes_that_are_all_zero_are_refused(rows, y, call):
    model = OnlineClassifier(class_weight={"no": 0.0, "yes": 0})
    given = (rows.assign(click=FRAME["click"]), "click") if y == "click" else (rows, FRAME["click"])
    with pytest.raises(ValueError, match="class_weight gives every class the weight zero"):
        getattr(model, call)(*given, classes=["no", "yes"] if call == "partial_fit" else None)
    assert not hasattr(model, "learner_")


def test_partial_fit_continues_with_the_columns_of_the_first_call():
    model = OnlineClassifier().partial_fit(NUMBERS_AND_TEXT[:200], FRAME["click"][:200], classes=["no", "yes"])
    model.partial_fit(NUMBERS_AND_TEXT[["site", "count", "new"]][200:], FRAME["click"][200:])
    whole = OnlineClassifier().partial_fit(NUMBERS_AND_TEXT, FRAME["click"], classes=["no", "yes"])
    assert np.array_equal(model.coef_, whole.coef_)
    assert model.t_ == N
    with pytest.raises(ValueError, match="the known classes are"):
        model.partial_fit(NUMBERS_AND_TEXT, np.full(N, "maybe"))
    with pytest.raises(ValueError, match="needs classes="):
        OnlineClassifier().partial_fit(NUMBERS_AND_TEXT, FRAME["click"])
    assert model.t_ == N


@pytest.mark.parametrize("names", [["open", "readable"], ["sparse", "to_table"], ["collect", "__next__"]])
def test_columns_may_have_the_names_of_attributes(names):
    numbers, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    for table in (pd.DataFrame(numbers, columns=names), pl.DataFrame(numbers, schema=names)):
        found, plain = (OnlineRegressor(shuffle=False).fit(X, y).predict(X) for X in (table, numbers))
        np.testing.assert_array_equal(found, plain)
        assert OnlineRegressor(loss="huber").fit(numbers, table).n_features_in_ == 2
        assert sum(block.n for block in streams.open(table, target=names[0])) == 4


def test_an_array_that_can_be_opened_is_rows():
    class Stored:
        shape = 4, 2

        def open(self):
            """As arrays of zarr have it."""

        def __array__(self, dtype=None, copy=None):
            return np.arange(8.0, dtype=dtype).reshape(4, 2)

    assert OnlineRegressor().fit(Stored(), np.arange(4.0)).n_features_in_ == 2


def test_names_of_columns_in_and_out(tmp_path):
    stream = streams.open(FRAME, target="click", features=["price", "site"], missing="indicator", categories="one-hot")
    model = OnlineClassifier().fit(stream, classes="scan")
    assert model.feature_names_in_.tolist() == ["price", "site"]
    names = model.get_feature_names_out().tolist()
    assert names[:2] == ["price", "price is missing"]
    assert set(names[2:]) == {"site=a.org", "site=b.org", "site=c.org", "site is missing"}
    assert len(names) == model.coef_.shape[1] == model.n_features_in_
    model.save(tmp_path / "final", final=True)
    again = load(tmp_path / "final")
    assert again.feature_names_in_.tolist() == ["price", "site"]
    assert np.array_equal(again.predict(FRAME), model.predict(FRAME))
    arrays = OnlineClassifier().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1])
    assert arrays.get_feature_names_out().tolist() == ["x0", "x1"]
    assert not hasattr(arrays, "feature_names_in_")
    assert not hasattr(model.fit([[1.0, 2.0], [2.0, 1.0]], [0, 1]), "feature_names_in_")


def test_a_model_of_a_frame_of_numbers_scores_dicts_and_arrow_tables():
    X = FRAME[["count", "spent"]]
    model = OnlineClassifier(random_state=0).fit(X, FRAME["click"])
    wanted = model.predict(X)
    assert np.array_equal(model.predict(X[["spent", "count"]].to_dict("records")), wanted)
    assert np.array_equal(model.predict(pa.Table.from_pandas(X)), wanted)
    assert np.array_equal(model.predict(pl.DataFrame(X)), wanted)


def test_wrong_tables_are_refused_and_change_nothing():
    model = OnlineRegressor(random_state=0).fit(NUMBERS_AND_TEXT, FRAME["spent"])
    before = model.coef_
    for X, y, words in [
        (NUMBERS_AND_TEXT, None, "name of the column"),
        (NUMBERS_AND_TEXT, FRAME["spent"][:5], "one value per row"),
        (NUMBERS_AND_TEXT, "nothing", "nothing"),
        (FRAME, "spent", "dates"),
        (FRAME[["site", "price"]], FRAME["spent"], "missing value"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
        assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="without names of columns"):
        OnlineRegressor().fit([[1.0], [2.0]], [1.0, 2.0]).predict([{"a": 1}])
    with pytest.raises(ValueError, match="replacement"):
        OnlineRegressor(shuffle="replacement").fit(NUMBERS_AND_TEXT, FRAME["spent"])
    with pytest.raises(ValueError, match="sample_weight must name one too"):
        model.fit(NUMBERS_AND_TEXT.assign(y=1.0), "y", np.ones(N))


@pytest.mark.parametrize("column", [FRAME["count"], pl.Series([1.0, 2.0])])
def test_one_column_is_no_table(column):
    with pytest.raises(ValueError, match=r"Expected a 2-dimensional container|Expected 2D array"):
        OnlineRegressor().fit(column, np.arange(len(column)))


@pytest.mark.parametrize("path", ["rows.csv", Path("rows.csv")])
def test_a_path_in_place_of_rows_names_streams_open(path):
    for y in (None, "click", [0, 1]):
        with pytest.raises(TypeError, match=r"got the text or path 'rows\.csv': for a file, pass streams\.open\('rows\.csv'\)"):
            OnlineClassifier().fit(path, y)


def test_a_model_without_missing_values_says_that_training_decides():
    whole = FRAME.dropna()[["price", "site", "click"]]
    model = OnlineClassifier().fit(whole, "click")
    for lack in ({"price": [None], "site": ["a.org"]}, {"price": [1.0], "site": [None]}):
        with pytest.raises(StreamError, match=r"got a missing value \(the columns are those of a model that takes no missing"):
            model.predict(pd.DataFrame(lack).astype({"price": float}))
        with pytest.raises(StreamError, match=r"those of a model that takes no missing"):
            model.predict_one({name: values[0] for name, values in lack.items()})


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_table_with_missing_values_is_told_what_can_be_done_and_that_works(frame):
    table = frame({"price": [1.0, None, 3.0, 4.0] * 5, "site": ["a", "b", None, "c"] * 5, "click": [0, 1, 0, 1] * 5})
    says = r'got a missing value \(missing="indicator" or "omit", of the estimator or of streams\.open, accept it\)'
    for y in ("click", [0, 1] * 10):
        with pytest.raises(StreamError, match=says):
            OnlineClassifier().fit(table, y)
    for missing in ("indicator", "omit"):
        model = OnlineClassifier().fit(streams.open(table, target="click", missing=missing), classes="scan")
        same = OnlineClassifier(missing=missing, shuffle=False).fit(table, "click")
        assert model.decision_function(table).tolist() == same.decision_function(table).tolist()


def test_dates_and_empty_columns_are_told_where_their_options_are():
    for column in (pd.date_range("2020-01-01", periods=4), [None] * 4):
        with pytest.raises(StreamError, match=r"these are options of streams\.open\(table, target=\.\.\.\)"):
            OnlineClassifier().fit(pd.DataFrame({"x": column}), [0, 1, 0, 1])


@pytest.mark.parametrize("settings", [{}, {"average": "uniform"}, {"average": "none"}])
def test_partial_fit_of_a_table_looks_at_no_weight_but_those_of_its_rows(settings, monkeypatch):
    whole = FRAME.dropna()[["price", "site", "click"]]
    model = OnlineClassifier(**settings, random_state=0).fit(whole, "click")
    told = clone(model).fit(whole, "click")
    told.partial_fit(streams.open(whole, encoding=told.encoding_, target="click"))
    history = [*model.history_]

    def refuse(*_, **__):
        raise AssertionError("all weights were counted")

    monkeypatch.setattr("onlinear.learner.learner.Learner.count_nonzeros", refuse)
    model.partial_fit(whole)
    assert model.history_ == history
    np.testing.assert_array_equal(model.coef_, told.coef_)


@pytest.mark.parametrize("read", [lambda whole: (whole, "price"), lambda whole: (streams.open(whole, target="price"), None)])
def test_a_model_of_a_table_is_freed_when_nothing_names_it(read):
    rows, target = read(FRAME.dropna()[["price", "site", "click"]])
    OnlineRegressor().fit(rows, target)  # compiled code keeps what it needs of the first model
    gc.collect()
    gc.disable()
    try:
        model = OnlineRegressor().fit(rows, target)
        learner = weakref.ref(model.learner_)
        del model
        assert learner() is None
    finally:
        gc.enable()


def test_what_holds_no_rows_is_refused_by_the_method_that_gives_them():
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    lazy, once = pl.from_arrow(table).lazy(), lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    model = OnlineClassifier().fit(table, "y")
    for call in (
        lambda: OnlineClassifier().fit(lazy, "y"),
        lambda: model.predict(lazy),
        lambda: streams.open(lazy, target="y"),
    ):
        with pytest.raises(TypeError, match=r"got a LazyFrame, which holds none yet: give its collect\(\)"):
            call()
    held = pyarrow.dataset.dataset(pa.table({"x": [1.0, 2.0], "y": [0, 1]}))
    for call in (
        lambda: OnlineClassifier().fit(held, "y"),
        lambda: streams.open(held, target="y"),
        lambda: model.predict(held),
    ):
        with pytest.raises(TypeError, match=r"got a InMemoryDataset of Arrow: give its to_table\(\), each of"):
            call()
    with pytest.raises(TypeError, match=r"got a RecordBatchReader, which gives them once: give its read_all\(\)"):
        OnlineClassifier().fit(once(), [0, 1, 0, 1])
    assert OnlineClassifier().fit(once(), "y").t_ == 4
    assert len(model.predict(once())) == 4


def test_columns_of_pandas_that_are_best_read_as_text_are_named_so():
    intervals = pd.DataFrame({"size": pd.cut(pd.Series([1.0, 5.0, 9.0, 2.0]), 2), "y": [0, 1, 1, 0]})
    for table in (intervals, intervals.assign(size=pd.period_range("2024-01", periods=4, freq="M"))):
        with pytest.raises(StreamError, match=r"which is no feature: exclude it, or make it text \(astype\(str\)\) first"):
            OnlineClassifier().fit(table, "y")
        assert OnlineClassifier().fit(table.astype({"size": str}), "y").t_ == 4


def test_targets_in_a_column_and_no_rows():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": list("abab")}).astype({"s": object})
    flat = OnlineClassifier(random_state=0).fit(table, [0, 1, 0, 1])
    np.testing.assert_array_equal(OnlineClassifier(random_state=0).fit(table, [[0], [1], [0], [1]]).coef_, flat.coef_)
    for model in (OnlineClassifier(), OnlineRegressor()):
        with pytest.raises(StreamError, match="expected at least one row, got none"):
            model.fit(table[:0], [])


def test_several_tables_are_refused_with_how_to_join_them():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": list("abab"), "y": [0, 1, 0, 1]})
    for parts in ([table[:2], table[2:]], (pl.from_pandas(table), pa.Table.from_pandas(table)), [table[["x"]]]):
        for call in (
            lambda parts=parts: OnlineClassifier().fit(parts, "y"),
            lambda parts=parts: OnlineClassifier().fit(parts, [0, 1, 0, 1]),
            lambda parts=parts: OnlineClassifier().fit(table, "y").predict(parts),
            lambda parts=parts: streams.open(parts, target="y"),
        ):
            with pytest.raises(TypeError, match=rf"expected one table, got a \w+ of {len(parts)}: join them .*partial_fit"):
                call()
    blocks = [(table[["x"]], table["y"])]
    assert OnlineClassifier().fit(blocks).t_ == 4


def test_a_dict_of_columns_is_no_row():
    columns = {"x": [1.0, 2.0, 3.0, 4.0], "s": list("abab"), "y": np.array([0, 1, 0, 1])}
    for call in (
        lambda: OnlineClassifier().fit(columns, "y"),
        lambda: OnlineClassifier().fit(pd.DataFrame(columns), "y").predict(columns),
    ):
        with pytest.raises(TypeError, match=r"got a dict of columns: give pandas\.DataFrame"):
            call()
    assert OnlineClassifier().fit(pd.DataFrame(columns), "y").t_ == 4


def test_names_that_repeat_are_named():
    table = pd.DataFrame([[1.0, "a", 0], [2.0, "b", 1]], columns=["x", "x", "y"])
    with pytest.raises(TypeError, match=r"the table: expected each column name once, got 'x' 2 times: rename or drop"):
        OnlineClassifier().fit(table, "y")


def test_an_array_for_a_model_of_a_table_is_told_the_columns():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "s": list("abab"), "y": [0, 1, 0, 1]})
    model, columns = OnlineClassifier().fit(table, "y"), "trained on a table; give rows as .* with its columns 'x', 's'"
    with pytest.raises(TypeError, match=f"X must hold numbers, got text: the model was {columns}"):
        model.predict(table[["x", "s"]].to_numpy())
    with pytest.raises(ValueError, match=f"X has 2 features, but the model is expecting {model.n_features_in_} .*{columns}"):
        model.predict(np.zeros((3, 2)))


def test_a_whole_number_that_is_no_double_is_refused_however_often_its_names_came():
    model = OnlineClassifier().fit(FRAME[["count"]].assign(click=FRAME["click"]), "click")
    for _ in range(3):
        assert model.predict_one({"count": 2**53}) == model.predict([{"count": 2**53}])[0]
        with pytest.raises(StreamError, match="expected a number within 2\\^53 in column 'count', got 9007199254740993"):
            model.predict_one({"count": 2**53 + 1})


def test_what_other_columns_hold_does_not_matter():
    whole = FRAME.dropna()[["price", "site", "click"]]
    model = OnlineClassifier(shuffle=False).fit(whole, "click")
    scores, strange = model.decision_function(whole), [1, "x", object()] * len(whole)
    more = {"mixed": strange[: len(whole)], "complex": np.full(len(whole), 1j)}
    for table in (whole.assign(**more), pl.DataFrame(whole).with_columns(pl.Series("mixed", more["mixed"], dtype=pl.Object))):
        assert np.array_equal(model.decision_function(table), scores)
        model.score(table, "click")
    rows = whole.assign(**more).to_dict("records")
    assert np.array_equal(model.decision_function(rows), scores)
    assert model.predict_one(rows[0] | {"price": np.float32(1)}) in ("no", "yes")
    assert model.partial_fit(rows, whole["click"]).t_ == 2 * len(whole)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"price": SITE}, "column 'price': expected a number, as the model has it, got text"),
        ({"price": pd.Series(SITE, dtype="category")}, r"'price': expected a number, .*, got categories \(text\)"),
        ({"price": FRAME["day"]}, r"'price': expected a number, .*, got dates or times \(timestamp"),
        ({"price": [[1, 2]] * N}, r"'price': expected a number, .*, got lists \(list<"),
        ({"price": pd.cut(PRICE, 2)}, r"'price': expected a number, .*, got categories \(values of the type pandas.interval\)"),
        ({"site": PRICE}, r"'site': expected text, as the model has it, got numbers, each of which has several texts \(whole"),
    ],
)
def test_what_another_column_holds_is_said_in_plain_words(changed, message):
    given = FRAME[["price", "site", "click"]].dropna()
    model = OnlineClassifier().fit(given, "click")
    with pytest.raises(StreamError, match=message):
        model.predict(FRAME.assign(**changed).loc[given.index])


WHOLE = pd.DataFrame({"site": SITE, "new": FRAME["new"], "price": PRICE, "click": FRAME["click"], "spent": FRAME["spent"]})
WHOLE_HOLDERS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "dicts": lambda frame: frame.to_dict("records"),
}


@pytest.mark.parametrize("holder", WHOLE_HOLDERS)
@pytest.mark.parametrize("task", TASKS)
def test_a_gap_takes_the_tables_that_fit_takes(task, holder):
    kind, y, other, _ = TASKS[task]
    frame = WHOLE.drop(columns=other)
    model = kind(penalty="l2=0.01", random_state=0).fit(frame, y)
    targets, weights, held = frame[y].to_numpy(), np.arange(N) % 3, WHOLE_HOLDERS[holder]
    read = streams.open(frame, target=y, encoding=model.encoding_)
    rows = sp.vstack([block.csr(model.n_features_in_) for block in read])
    exact = model.learner_.duality_gap(rows, np.where(targets == "yes", 1.0, -1.0) if kind is OnlineClassifier else targets)
    assert 0.0 < exact == model.duality_gap(held(frame), y) == model.duality_gap(held(frame))
    assert exact == model.duality_gap(held(frame.drop(columns=y)), targets) <= model.duality_gap(read)
    weighted = model.duality_gap(held(frame.assign(w=weights)), y, "w")
    assert exact != weighted == model.duality_gap(held(frame.drop(columns=y)), targets, weights)


def test_a_gap_takes_dicts_that_were_learned_one_by_one():
    rows, targets = WHOLE[["site", "new", "price"]].to_dict("records"), WHOLE["click"].tolist()
    model = OnlineClassifier(penalty="l2=0.01")
    for row, label in zip(rows, targets, strict=True):
        model.learn_one(row, label, classes=["no", "yes"])
    labelled = [row | {"click": label} for row, label in zip(rows, targets, strict=True)]
    assert 0.0 < model.duality_gap(rows, targets) == model.duality_gap(labelled, "click") < 1.0


def test_a_gap_of_tables_is_refused_in_words():
    rows, targets = WHOLE[["site", "price"]], WHOLE["click"]
    model = OnlineClassifier(penalty="l2=0.01").fit(rows, targets)
    with pytest.raises(StreamError, match="at least one row"):
        model.duality_gap(rows[:0], targets[:0])
    with pytest.raises(ValueError, match="X has 400 rows, y 3"):
        model.duality_gap(rows, targets[:3])
    with pytest.raises(StreamError, match="expected a column 'site'"):
        model.duality_gap(rows[["price"]], targets)
    with pytest.raises(ValueError, match="or the name of the column of X"):
        OnlineClassifier(penalty="l2=0.01").fit(rows[["price"]], targets).duality_gap(rows[["price"]])
    numbers = OnlineClassifier(penalty="l2=0.01").fit(rows[["price"]].to_numpy(), targets)
    with pytest.raises(ValueError, match="trained on rows without names"):
        numbers.duality_gap(rows, targets)
    centred = OnlineClassifier(penalty="l2=0.01", scale="standard").fit(rows, targets)
    with pytest.raises(ValueError, match="a gap needs scale='rms'"):
        centred.duality_gap(rows, targets)
