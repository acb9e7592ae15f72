"""Columns are found by their names wherever a model and its rows have names, and are refused where only their order is left."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath, load, shards, streams
from onlinear.streams import StreamError

RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.standard_normal((60, 3)), columns=["a", "b", "c"])
OTHER_ORDER = X[["c", "a", "b"]]
Y = np.where(X["a"] - X["b"] > 0, "yes", "no")
TEXT = X.assign(site=np.where(X["c"] > 0, "x", "y"))


def trained(rows=X):
    return OnlineClassifier().partial_fit(rows, Y, classes=["no", "yes"])


def trained_on_dicts():
    model = OnlineClassifier()
    for row, label in zip(X.to_dict("records"), Y, strict=True):
        model.learn_one(row, label, classes=["no", "yes"])
    return model


TABLES = {
    "a column of targets": (OTHER_ORDER.assign(y=Y), "y"),
    "targets first": (X.assign(y=Y)[["y", "c", "b", "a"]], "y"),
    "a further column": (OTHER_ORDER.assign(id=range(60), y=Y), "y"),
    "dicts": (OTHER_ORDER.to_dict("records"), Y),
    "text besides": (TEXT[["site", "c", "a", "b"]], Y),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_model_of_a_frame_of_numbers_learns_and_scores_tables_by_name(name):
    rows, y = TABLES[name]
    wanted = trained().partial_fit(X, Y)
    assert np.array_equal(trained().partial_fit(rows, y).coef_, wanted.coef_)
    assert wanted.score(rows, y) == pytest.approx(wanted.score(X, Y))
    regressor = OnlineRegressor().fit(X, X["a"])
    numbers = rows.assign(y=X["a"]) if isinstance(y, str) else rows
    assert regressor.score(numbers, y if isinstance(y, str) else X["a"]) == pytest.approx(regressor.score(X, X["a"]))


@pytest.mark.parametrize("name", ["a column of targets", "dicts"])
def test_a_model_without_names_learns_and_scores_no_table(name):
    rows, y = TABLES[name]
    model = trained(X.to_numpy())
    before = model.coef_
    with pytest.raises(ValueError, match="trained on rows without names of columns: give rows of numbers"):
        model.partial_fit(rows, y)
    with pytest.raises(ValueError, match="trained on rows without names of columns: give rows of numbers"):
        model.score(rows, y)
    assert np.array_equal(model.coef_, before)


def test_a_model_of_a_frame_of_numbers_learns_and_scores_single_dicts(tmp_path):
    model, labels = trained(), []
    for row in OTHER_ORDER.to_dict("records"):
        labels.append(model.predict_one(row | {"further": 1.0}))
    assert labels == model.predict(X).tolist()
    assert model.encoding_ is None  # reading changes nothing
    for row, label in zip(OTHER_ORDER.to_dict("records"), Y, strict=True):
        model.learn_one(row, label)
    assert np.array_equal(model.coef_, trained().partial_fit(X, Y).coef_)
    with pytest.raises(ValueError, match="expected a number in column 'b', got a missing value"):
        model.predict_one({"a": 1.0, "c": 2.0})
    model.fit(X.rename(columns={"a": "b", "b": "a"}), Y)
    swapped = X.rename(columns={"a": "b", "b": "a"})
    assert [model.predict_one(row) for row in swapped.to_dict("records")] == model.predict(swapped).tolist()


ROWS = {
    "dicts": OTHER_ORDER.to_dict("records"),
    "a frame": OTHER_ORDER,
    "a frame with text": TEXT[["site", "c", "a", "b"]],
    "names that are new": OTHER_ORDER.assign(d=1.0).to_dict("records"),
}


@pytest.mark.parametrize("name", ROWS)
def test_partial_fit_after_single_dicts_is_learn_one_of_each_row(name, tmp_path):
    one, several = trained_on_dicts(), trained_on_dicts()
    rows = ROWS[name]
    for row, label in zip(rows if isinstance(rows, list) else rows.to_dict("records"), Y, strict=True):
        one.learn_one(row, label, 2.0)
    several.partial_fit(rows, Y, sample_weight=np.full(60, 2.0))
    one.save(tmp_path / "one")
    several.save(tmp_path / "several")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "several").read_bytes()
    assert several.n_features_in_ == len(several.get_feature_names_out())
    named = (pd.DataFrame(rows) if isinstance(rows, list) else rows).assign(label=Y, times=2.0)
    assert np.array_equal(trained_on_dicts().partial_fit(named, "label", sample_weight="times").coef_, one.coef_)
    assert one.score(named, "label", sample_weight="times") == one.score(rows, Y)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (Y[:59], None, "y must have one value per row"),
        (np.full(60, "maybe"), None, "the known classes are"),
        (Y, -np.ones(60), "must not be negative"),
        ("label", None, "X has a row without 'label'"),
        (None, None, "name of the column"),
    ],
)
def test_refused_dicts_bring_no_names(y, weights, message):
    model = trained_on_dicts()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(OTHER_ORDER.assign(new=1.0).to_dict("records"), y, sample_weight=weights)
    assert model.get_feature_names_out().tolist() == ["a", "b", "c"]
    model.learn_one({"other": 1.0}, "no")
    assert model.get_feature_names_out().tolist() == ["a", "b", "c", "other"]


@pytest.mark.parametrize("rows", [X, TEXT], ids=["numbers", "text"])
@pytest.mark.parametrize("call", ["partial_fit", "predict", "score", "duality_gap"])
def test_a_stream_of_other_columns_is_refused(rows, call):
    model = OnlineClassifier(l2=1e-2).fit(rows.assign(y=Y), "y") if rows is TEXT else OnlineClassifier(l2=1e-2).fit(rows, Y)
    before = model.coef_
    for changed in (rows[list(reversed(rows.columns))], rows.rename(columns={"b": "z"})):
        with pytest.raises(ValueError, match="expected the columns that the model learned, 'a', 'b', 'c'"):
            getattr(model, call)(streams.open(changed.assign(y=Y), target="y"))
    assert np.array_equal(model.coef_, before)
    getattr(model, call)(streams.open(rows.assign(y=Y), target="y"))
    if rows is TEXT:
        read = streams.open(rows[list(reversed(rows.columns))].assign(y=Y), encoding=model.encoding_)
        assert model.score(read) == model.score(rows, Y)


@pytest.mark.parametrize(
    ("learned", "read"),
    [
        ({"categories": "one-hot"}, {"categories": "one-hot"}),
        ({}, {"categories": "one-hot"}),
        ({}, {"hash_bits": 10}),
        ({}, {"missing": "indicator"}),
        ({}, {"text": ["a"]}),
        ({}, {"interactions": ["a:site"]}),
    ],
)
def test_a_stream_that_numbers_the_same_columns_differently_is_refused(learned, read, tmp_path):
    rows, names = TEXT.assign(y=Y), ["rows.csv", "upside-down.csv"]
    rows.to_csv(tmp_path / names[0], index=False)
    rows[::-1].sort_values("site", ascending=rows["site"][0] == "y", kind="stable").to_csv(tmp_path / names[1], index=False)
    first, others = (tmp_path / name for name in names)
    stream = streams.open(first, target="y", **learned)
    model = OnlineClassifier().fit(stream, classes="scan")
    before = model.coef_
    for call in (model.predict, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="are numbered differently from those of the model"):
            call(streams.open(others, target="y", **read))
    assert np.array_equal(model.coef_, before)
    found = model.score(stream)
    assert model.score(streams.open(others, target="y", encoding=model.encoding_)) == pytest.approx(found)


@pytest.mark.parametrize("call", ["partial_fit", "predict", "score"])
def test_where_only_places_tell_a_stream_is_taken_in_order_with_a_warning(call, tmp_path):
    model, wanted = trained(X.to_numpy()), trained(X.to_numpy())
    table = streams.open(X.assign(y=Y), target="y")
    arrays = (X.to_numpy(),) if call == "predict" else (X.to_numpy(), Y)
    with pytest.warns(UserWarning, match="names its columns, and the model has no names"):
        found = getattr(model, call)(table)
    expected = getattr(wanted, call)(*arrays)
    assert np.array_equal(model.coef_, wanted.coef_)
    assert call == "partial_fit" or np.array_equal(found, expected)
    with pytest.raises(ValueError, match="are read as 4 columns, and the model has 3"):
        getattr(trained(X.to_numpy()), call)(streams.open(X.assign(d=1.0, y=Y), target="y"))
    numbered = tmp_path / "rows.svm"
    numbered.write_text("".join(f"{int(y == 'yes')} 1:{a!r}\n" for y, a in zip(Y, X["a"].tolist(), strict=True)))
    named = OnlineClassifier().fit(X, Y == "yes")
    with pytest.warns(UserWarning, match="numbers its columns"):
        getattr(named, call)(streams.open(numbered))


def test_a_final_model_refuses_other_names(tmp_path):
    trained().save(tmp_path / "model", final=True)
    model = load(tmp_path / "model")
    assert np.array_equal(model.predict(X), trained().predict(X))
    for changed in (OTHER_ORDER, X.rename(columns={"b": "z"})):
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            model.predict(changed)
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            model.predict(streams.open(changed, unlabelled=True))


MODELS = {
    "numbers": trained,
    "a table of numbers": lambda: OnlineClassifier().partial_fit(X.assign(y=Y), "y", classes=["no", "yes"]),
    "dicts": trained_on_dicts,
}


@pytest.mark.parametrize("name", MODELS)
def test_blocks_and_shards_of_other_columns_are_refused(name, tmp_path):
    model = MODELS[name]()
    before = model.coef_
    for call in (model.partial_fit, model.predict, model.score):
        with pytest.raises(StreamError, match="must have the names that the model learned, in the same order"):
            call([(OTHER_ORDER, Y)])
        with pytest.raises(ValueError, match="expected the columns that the model learned"):
            call(streams.open(OTHER_ORDER.assign(y=Y), target="y"))
    OTHER_ORDER.assign(y=Y).to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(ValueError, match="expected the columns that the model learned"):
        list(shards.predict(model, shards.open_shards(str(tmp_path / "other.csv"), target="y"), shards.Local(1)))
    assert np.array_equal(model.coef_, before)
    assert model.score([(X, Y)]) == pytest.approx(model.score(X, Y))


@pytest.mark.parametrize("name", [*MODELS, "final"])
def test_blocks_without_names_for_a_model_of_names_are_said_to_be_so(name, tmp_path):
    trained().save(tmp_path / "final", final=True)
    model = load(tmp_path / "final") if name == "final" else MODELS[name]()
    calls = (model.predict, model.score, *(() if name == "final" else (model.partial_fit,)))
    for call in calls:
        with pytest.warns(UserWarning, match=r"^block 1 numbers its columns; they are taken .* in order\.$") as told:
            call([(X.to_numpy(), Y), (X.to_numpy(), Y)])
        assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            call([(X, Y), (X, Y)])
    if name == "final":
        with pytest.raises(StreamError, match="block 1: The feature names should match"):
            model.predict([(OTHER_ORDER, Y)])


def test_blocks_of_names_for_a_model_without_are_said_to_be_so():
    model = OnlineClassifier(random_state=0).fit(X.to_numpy(), Y)
    for call in (model.predict, model.score, model.partial_fit):
        with pytest.warns(UserWarning, match="^block 1 names its columns, and the model has no names; they are taken for"):
            call([(X, Y), (X, Y)])
    assert not hasattr(model, "feature_names_in_")


def test_complex_columns_beside_others_are_refused():
    rows, model = X.assign(b=X["b"] + 1j), trained()
    before = model.coef_
    for call in (
        lambda: OnlineRegressor().fit(rows, X["a"]),
        lambda: PenaltyPath(OnlineRegressor(), ["l1=1e-3"]).fit(rows, X["a"]),
        lambda: model.partial_fit(rows, Y),
        lambda: model.predict(rows),
    ):
        with pytest.raises(ValueError, match="Complex data not supported: column 'b' of X has dtype complex128"):
            call()
    assert np.array_equal(model.coef_, before)


def test_a_path_has_the_names_of_its_frame(tmp_path):
    path = PenaltyPath(OnlineClassifier(), ["l1=1e-3", "l1=1e-2"])
    assert not hasattr(path, "feature_names_in_")
    path.fit(X, Y).save(tmp_path / "path.onlinear")
    for named in (path, PenaltyPath.load(tmp_path / "path.onlinear"), GridSearchCV(path, {"n_jobs": [1]}).fit(X, Y)):
        assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(path.fit(X.to_numpy(), Y), "feature_names_in_")
