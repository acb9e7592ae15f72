"""Labels are looked at once, and refused as scikit-learn refuses them."""

from __future__ import annotations

import copy
import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.multiclass import check_classification_targets

from onlinear import OnlineClassifier, load, streams
from onlinear.models.class_labels import classes_of, named_classes, places_among, places_of
from onlinear.streams.labels import label_array


def outcome(check, y):
    """The error or the warnings of a check, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check(y)
        except (ValueError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
    return [str(warning.message) for warning in caught]


LABELS = {
    "signs": np.array([-1.0, 1.0] * 20),
    "one class": np.zeros(30),
    "one row": np.array([3]),
    "none": np.array([], float),
    "booleans": np.array([True, False, True]),
    "text": np.array(["b", "a"] * 3),
    "objects": np.array(["b", "a"] * 3, dtype=object),
    "bytes": np.array([b"b", b"a"]),
    "numbers": np.array([0.5, 1.5] * 30),
    "few numbers": np.linspace(0.0, 1.0, 7),
    "whole numbers": np.arange(100.0),
    "many classes": np.arange(30) % 20,
    "half as many classes": np.arange(60) % 30,
    "more classes": np.arange(59) % 30,
    "half as many words": np.array([f"word {k % 30}" for k in range(60)], dtype=object),
    "more words": np.array([f"word {k % 30}" for k in range(59)], dtype=object),
    "words that NumPy would end": np.array(["a\0", "a"] * 3, dtype=object),
    "words of any kind": np.array(["", "é", "e\u0301", "\ud800", "a\0", "a", "Z", np.str_("a"), "é"] * 3, dtype=object),
    "infinite": np.array([0.0, np.inf] * 20),
    "unsigned": np.array([200, 3, 3], np.uint8),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_are_refused_as_by_scikit_learn(y):
    assert outcome(classes_of, y) == outcome(check_classification_targets, y)


@pytest.mark.parametrize(("name", "classes"), [("signs", [-1.0, 1.0]), ("objects", ["a", "b"])])
def test_the_check_is_given_two_labels_of_each_class(monkeypatch, name, classes):
    seen = []
    monkeypatch.setattr("onlinear.models.class_labels.check_classification_targets", seen.append)
    np.testing.assert_array_equal(classes_of(LABELS[name]), classes)
    assert [labels.tolist() for labels in seen] == [sorted(classes * 2)]


def test_text_is_not_sorted(monkeypatch):
    y = LABELS["half as many words"]
    monkeypatch.setattr(np, "unique", None)
    monkeypatch.setattr(np, "searchsorted", None)
    monkeypatch.setattr("onlinear.models.class_labels.check_classification_targets", len)
    classes = classes_of(y)
    np.testing.assert_array_equal(classes[places_among(classes, y)], y)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize(
    "name",
    ["signs", "booleans", "text", "objects", "many classes", "unsigned", *(name for name in LABELS if "words" in name)],
)
def test_places(name):
    y = LABELS[name]
    classes = np.unique(y)
    found = classes_of(y)
    assert found.dtype == classes.dtype
    np.testing.assert_array_equal(found, classes)
    for places in (places_of(classes, y), places_among(classes, y)):
        assert places.dtype == np.intp
        np.testing.assert_array_equal(classes[places], y)


OTHERS = {
    "dates": (np.array(["2020-01-01", "2021-01-01"] * 5, "M8[D]"), r"dtype datetime64\[D\]"),
    "no time": (np.array(["NaT", "2021-01-01"] * 5, "M8[D]"), r"dtype datetime64\[D\]"),
    "a frame's dates": (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"] * 5)), r"dtype datetime64\[.s\]"),
    "durations": (np.array([1, 2] * 5, "m8[s]"), r"dtype timedelta64\[s\]"),
    "untyped bytes": (np.arange(10, dtype="i4").view("V4"), r"dtype \|V4"),
    "numbers as objects": (np.array([1, 2] * 5, object), "Unknown label type: .* the object 1 at row 0"),
    "nothing": (np.array(["a", None] * 5, object), "Unknown label type: .* the object None at row 1"),
    "text and numbers": (np.array(["a", 1] * 5, object), "Unknown label type: .* the object 1 at row 1"),
    "decimals": (np.array([decimal.Decimal(1), decimal.Decimal(2)] * 5), r"the object Decimal\('1'\) at row 0"),
    "days": (np.array([datetime.date(2020, 1, 1)] * 10), r"the object datetime\.date\(2020, 1, 1\) at row 0"),
}
if np.dtype(np.longdouble).itemsize > 8:
    OTHERS["long doubles"] = np.array([1, 2] * 5, np.longdouble), "dtype float128|dtype float96"


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("call", ["fit", "partial_fit", "table"])
def test_labels_that_no_model_file_keeps_are_refused_at_once(name, call):
    y, held = OTHERS[name]
    X = np.arange(20.0).reshape(10, 2)
    X = pd.DataFrame({"word": list("ababababab"), "x": X[:, 0]}) if call == "table" else X
    model = OnlineClassifier()
    message = f"y must hold text, numbers or booleans, all of one type, got {held.removeprefix('Unknown label type: .* ')}"
    with pytest.raises(ValueError, match=message) as caught:
        model.partial_fit(X, y, classes=[0, 1]) if call == "partial_fit" else model.fit(X, y)
    assert str(caught.value).startswith("Unknown label type") or not held.startswith("Unknown")
    assert not hasattr(model, "learner_")


@pytest.mark.parametrize(
    "y", [pd.Series(["a", pd.NA] * 5, dtype=kind) for kind in ("string", "category")], ids=["text", "category"]
)
def test_a_missing_label_is_named_by_its_row(y):
    with pytest.raises(ValueError, match="y contains a missing value at row 1; every value must be given"):
        OnlineClassifier().fit(np.arange(20.0).reshape(10, 2), y)


CLASSES = {
    "a number": (2, "must be a list of labels, .* got 2"),
    "a name": ("scan", "must be a list of labels, .* got 'scan'"),
    "pairs": ([[1, 2]], r"must be a list of labels, .* got \[\[1, 2\]\]"),
    "NaN": ([0, np.nan], "must be finite"),
    "none": ([None, 1], ".* of one type, got the object None at row 0"),
    "a text without one": (["a", None], ".* of one type, got the object None at row 1"),
    "dates": (OTHERS["dates"][0], ".* got dtype datetime64"),
    "text and numbers": (["a", 1], ".* all of one type, got the object 1 at row 1"),
    "numbers and text": ((1, "a"), ".* all of one type, got the object 'a' at row 1"),
    "bytes": ([b"a", b"b"], r".* got dtype \|S1"),
    "bytes as objects": (np.array([b"a", b"b"], object), ".* got the object b'a' at row 0"),
    "integers of any length": ([2**70, 1], ".* of one type, got the object 1180591620717411303424 at row 0"),
    "masked": (np.ma.array([0, 1, 2], mask=[0, 0, 1]), "has masked entries"),
    "a frame's missing one": (pd.Series(["a", None], dtype="string"), "contains a missing value at row 1"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_that_cannot_be(name):
    classes, message = CLASSES[name]
    with pytest.raises(ValueError, match=f"classes {message}"):
        named_classes(classes, None)
    with pytest.raises(ValueError, match=f"classes {message}"):
        OnlineClassifier().learn_one({"x": 1.0}, 0, classes=classes)


@pytest.mark.parametrize("classes", [{"b", "a"}, frozenset("ab"), {"b": 1, "a": 2}.keys(), ("b", "a"), np.array(["a", "b"])])
def test_classes_may_be_a_set(classes):
    assert named_classes(classes, None).tolist() == ["a", "b"]
    assert OnlineClassifier().learn_one({"x": 1.0}, "b", classes=classes).classes_.tolist() == ["a", "b"]


def test_classes_of_numbers_as_objects_are_numbers():
    X, y = np.arange(20.0).reshape(10, 2), [1, 2] * 5
    model = OnlineClassifier().partial_fit(X, y, classes=np.array([2, 1], object))
    assert model.classes_.dtype == np.array([1, 2]).dtype
    assert model.score(X, y) >= 0.0
    assert named_classes(["b", "a"], None).dtype == np.array(["a"]).dtype


def test_no_classes():
    with pytest.raises(ValueError, match="there is no class; a classifier needs at least two classes"):
        OnlineClassifier().partial_fit([[1.0], [2.0]], [0, 1], classes=[])


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([1, None], [1, 2], "the object None at row 1"),
        (["a", None], ["a", "b"], "the object None at row 1"),
        (np.array(["a", 1], object), ["a", "b"], "the object 1 at row 1"),
        (np.array([1, "a"], object), [1, 2], "the object 'a' at row 1"),
    ],
)
def test_later_labels_of_several_types_are_named(y, classes, message):
    X = np.arange(4.0).reshape(2, 2)
    model = OnlineClassifier().partial_fit(X, classes, classes=classes)
    with pytest.raises(ValueError, match=f"y must hold text, numbers or booleans, all of one type, got {message}"):
        model.partial_fit(X, y)
    assert model.t_ == 2
    assert model.partial_fit(X, np.array(classes, object)).t_ == 4


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "UInt64"])
@pytest.mark.parametrize("text", [False, True])
def test_large_whole_numbers_of_a_frame_are_told_apart(kind, text):
    y = pd.Series([2**53, 2**53 + 1] * 10, dtype=kind)
    rows = pd.DataFrame({"x": [1.0, -1.0] * 10, **({"site": ["u"] * 20} if text else {})})
    model = OnlineClassifier().fit(rows, y)
    assert model.classes_.tolist() == [2**53, 2**53 + 1]
    assert model.score(rows, y) == 1.0
    assert model.score(rows, y[::-1]) == 0.0
    first = OnlineClassifier().partial_fit(rows, y, classes=[2**53, 2**53 + 1])
    assert first.predict(rows).tolist() == y.tolist()


@pytest.mark.parametrize("label", [None, datetime.date(2020, 1, 1), decimal.Decimal(1)])
def test_classes_of_a_stream_are_text_or_numbers(label):
    for rows in ([{"x": 1.0, "y": "a"}], [{"x": 1.0, "y": 1.0}]):
        with pytest.raises(ValueError, match="classes must be text or numbers, got "):
            OnlineClassifier().fit(streams.open(rows, target="y"), classes=["1", label])


KEPT = {
    "whole numbers": np.array([1, 2] * 5),
    "bytes of eight bits": np.array([1, 2] * 5, np.int8),
    "large": np.array([2**64 - 1, 2**64 - 2] * 5, np.uint64),
    "half floats": np.array([1, 2] * 5, np.float16),
    "booleans": np.array([True, False] * 5),
    "text": np.array(["a", "b\n\0c"] * 5),
    "objects of text": np.array(["", "b"] * 5, object),
    "categories": pd.Series(["a", "b"] * 5, dtype="category"),
    "text of a frame": pd.Series(["a", "b"] * 5, dtype="string"),
    "whole numbers of a frame": pd.Series([1, 2] * 5, dtype="Int64"),
    "booleans of a frame": pd.Series([True, False] * 5, dtype="boolean"),
    "sparse whole numbers": pd.Series(pd.arrays.SparseArray([1, 2] * 5)),
}
if hasattr(np.dtypes, "StringDType"):
    KEPT["strings of any length"] = np.array(["a", "b" * 20] * 5, np.dtypes.StringDType())


@pytest.mark.parametrize("name", KEPT)
def test_labels_that_fit_takes_come_back_from_a_model_file(tmp_path, name):
    X, y = np.arange(20.0).reshape(10, 2), KEPT[name]
    named = y if name.startswith(("sparse", "strings")) else pd.unique(y)
    for model in (OnlineClassifier().fit(X, y), OnlineClassifier().partial_fit(X, y, classes=named)):
        for final in (False, True):
            model.save(tmp_path / "model", final=final)
            loaded = load(tmp_path / "model")
            assert loaded.classes_.dtype == model.classes_.dtype
            assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("classes", [["a", "a\0"], ("b", "a\0", "a"), {"a", "a\0"}])
def test_classes_that_are_equal_but_for_zeros_at_their_end_are_told_apart(classes):
    X, y = np.arange(12.0).reshape(6, 2), ["a", "a\0"] * 3
    model = OnlineClassifier().partial_fit(X, y, classes=classes)
    assert model.classes_.tolist() == sorted(classes)
    assert model.learn_one((np.arange(2), X[0]), "a\0").t_ == 7
    apart = np.array(["a", "a\0"], dtype=object)
    assert OnlineClassifier().partial_fit(X, y, classes=apart).classes_.tolist() == ["a", "a\0"]
    assert OnlineClassifier().partial_fit(X, ["a", "b"] * 3, classes=["a", "a", "b"]).classes_.tolist() == ["a", "b"]


ENDS = np.arange(20.0).reshape(20, 1) % 2, ["a", "a\0"] * 10  # text of NumPy would make one class of these


def labels_in_files(tmp_path, X, y):
    pd.DataFrame({"x": X[:, 0], "t": y}).to_parquet(tmp_path / "rows.parquet")
    return streams.open(tmp_path / "rows.parquet", target="t")


WAYS = {
    "a list": lambda model, X, y, _: model.fit(X, y),
    "a tuple": lambda model, X, y, _: model.fit(X, tuple(y)),
    "a column": lambda model, X, y, _: model.fit(X, [[label] for label in y]),
    "a table": lambda model, X, y, _: model.fit(pd.DataFrame({"x": X[:, 0], "t": y}), "t"),
    "a table and a list": lambda model, X, y, _: model.fit(pd.DataFrame({"x": X[:, 0], "text": y}), y),
    "blocks": lambda model, X, y, _: model.fit([(X, y), (X, y)], classes="scan"),
    "a file": lambda model, X, y, folder: model.fit(labels_in_files(folder, X, y), classes="scan"),
    "a file, named": lambda model, X, y, folder: model.fit(labels_in_files(folder, X, y), classes=sorted(set(y))),
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("way", WAYS)
def test_labels_keep_the_zeros_at_their_end(tmp_path, way):
    X, y = ENDS
    model = WAYS[way](OnlineClassifier(random_state=0), X, y, tmp_path)
    assert model.classes_.tolist() == ["a", "a\0"]
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    if way.startswith("a table and"):
        return
    assert loaded.predict(pd.DataFrame({"x": X[:, 0]}) if way.startswith("a table") else X).tolist() == y
    if "file" in way:
        assert loaded.partial_fit(labels_in_files(tmp_path, X, y), classes=["a\0", "a"]).t_ == 40


def test_several_labels_of_a_row_are_refused_with_what_takes_them():
    X, Y = np.eye(4), np.eye(4, 3, dtype=int)
    for y in (Y, pd.DataFrame(Y)):
        with pytest.raises(ValueError, match=r"shape \(4, 3\): for several labels of a row fit .*MultiOutputClassifier"):
            OnlineClassifier().fit(X, y)


def test_a_model_of_text_finds_its_classes_among_numbers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0.0, 9, 10)
    model = OnlineClassifier(penalty="l1=0.01", class_weight={"9": 3.0}, random_state=0).fit(X, y.astype(str))
    streamed = [(X, y)], [(X, y.astype(str))]
    assert [model.score(rows) for rows in streamed] == [model.score(X, y.astype(str))] * 2
    gaps = [model.duality_gap(rows) for rows in streamed]
    assert gaps[0] == gaps[1] < 0.9
    twins = [copy.deepcopy(model).partial_fit(rows) for rows in streamed]
    assert all(twin.classes_.tolist() == ["10", "9"] for twin in twins)
    np.testing.assert_array_equal(*(twin.coef_ for twin in twins))


@pytest.mark.parametrize("kinds", [(np.int64, np.uint64), (np.uint64, np.int64), (np.int32, np.float64)])
def test_whole_numbers_with_and_without_a_sign_are_told_apart(kinds):
    largest = 2**53 + 2 if kinds[0] != np.int32 else 2
    classes = np.array([largest - 2, largest - 1, largest])
    y = classes[[2, 1, 0, 1]].astype(kinds[1])
    assert places_among(classes.astype(kinds[0]), y).tolist() == [2, 1, 0, 1]


def test_a_list_of_whole_numbers_of_64_bits_is_no_list_of_doubles():
    labels = [2**63 + 1, 0, 2**63] * 4
    assert classes_of(label_array(labels)).tolist() == sorted(set(labels))
    assert named_classes(labels, None).tolist() == sorted(set(labels))
