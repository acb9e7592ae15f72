"""Estimators on single rows as dicts: the model of the same rows as arrays, and its predictions."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from seldom import often, seldom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlinear import DivergenceError, Learner, OnlineClassifier, OnlineRegressor, load, streams
from onlinear.learner import learner
from onlinear.learner.learn_one import OneRow
from onlinear.learner.limits import LIMIT
from onlinear.models.turns import without_turn
from onlinear.streams import encoding
from onlinear.streams.dict_rows import NamedRow

DRAW = np.random.default_rng(4)
X = np.round(DRAW.normal(size=(300, 4)), 3)
DICTS = [{f"x{j}": float(value) for j, value in enumerate(row)} for row in X]
Y = X[:, 0] + 0.5 * X[:, 1] > 0.1
CLASSIFIERS = [
    OnlineClassifier(),
    OnlineClassifier("hinge", penalty="l1=1e-3", solver="comid"),
    OnlineClassifier(solver="ftrl"),
    OnlineClassifier("hinge", scale="none", average="uniform"),
]
REGRESSORS = [
    OnlineRegressor(),
    OnlineRegressor(penalty="l1=1e-3"),
    OnlineRegressor(solver="ftrl"),
    OnlineRegressor("huber", penalty="l2=1e-3"),
]
FEW = (*CLASSIFIERS[:2], *REGRESSORS[:2])  # whose kernels for single rows other tests have


@pytest.mark.parametrize("settings", often(CLASSIFIERS, FEW))
def test_classes_row_by_row_are_partial_fit(settings):
    model = clone(settings)
    for row, y in zip(DICTS, Y, strict=True):
        model.learn_one(row, y)
    arrays = clone(settings).partial_fit(X, Y, classes=[False, True])
    assert np.array_equal(model.coef_, arrays.coef_)
    assert np.array_equal(model.intercept_, arrays.intercept_)
    wanted = arrays.predict(X).tolist()
    assert [model.predict_one(row) for row in DICTS] == wanted
    assert model.predict(DICTS).tolist() == model.predict(pd.DataFrame(DICTS)).tolist() == wanted
    assert type(model.predict_one(DICTS[0])) is bool
    if hasattr(model, "predict_proba"):
        wanted = arrays.predict_proba(X)
        for row, (no, yes) in zip(DICTS, wanted, strict=True):
            assert model.predict_proba_one(row) == pytest.approx({False: no, True: yes}, rel=1e-14)


class Slow(dict):
    """A dict that Python reads."""


def draw_words(n, most, rng):
    """Rows whose names come in any order, some for the first time."""
    words = rng.permutation(n * most // 3)
    for i in range(n):
        found = rng.choice(words[: 3 + (i + 1) * len(words) // n], int(rng.integers(0, most)))
        values = rng.normal(size=len(found)).tolist()
        kinds = (float, int, bool, np.float64)
        yield {f"w{word}": kinds[int(rng.integers(4))](x) for word, x in zip(found, values, strict=True)}


OF_WORDS = [
    *((each, 2) if each in FEW else seldom(each, 2) for each in CLASSIFIERS),
    (OnlineClassifier(loss="softmax"), 3),
    (OnlineClassifier(), 10),
    (OnlineRegressor(), 0),
    seldom(OnlineRegressor(solver="ftrl"), 0),
    seldom(OnlineClassifier(solver="mixture"), 2),
    seldom(OnlineClassifier(solver="odrs", penalty="l1=1e-3"), 2),
]


@pytest.mark.parametrize(("settings", "classes"), OF_WORDS)
def test_rows_of_any_names_are_learned_as_python_reads_them(settings, classes):
    rng = np.random.default_rng(8)
    quick, slow = clone(settings), clone(settings)
    for i, row in enumerate(draw_words(150, 25, rng)):
        given = (int(rng.integers(classes)), 1.0, list(range(classes))) if classes else (float(rng.normal()),)
        if i and i % 3 == 0:
            asked = row | {"never": 1.0}
            assert quick.predict_one(asked) == slow.predict_one(Slow(asked))
        quick.learn_one(row, *given)
        slow.learn_one(Slow(row), *given)
        if i % 50 == 49:
            assert stored(quick) == stored(slow)
    assert quick.n_features_in_ == slow.n_features_in_ > 100


def test_new_names_need_no_new_binding_until_the_room_is_full(monkeypatch):
    bound, bind = [], OneRow._bind
    monkeypatch.setattr(OneRow, "_bind", lambda self: (bound.append(self), bind(self))[1])
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1])
    for k in range(300):
        model.learn_one({f"w{k}": 1.0, f"w{k // 2}": 2.0, "a": 1.0}, k % 2)
    assert len(bound) < 40


@pytest.mark.parametrize("classes", [2, 3])
def test_new_names_need_no_python_until_the_room_is_full(monkeypatch, classes):
    added, add = [], NamedRow.add
    monkeypatch.setattr(NamedRow, "add", lambda self, row: (added.append(row), add(self, row))[1])
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=range(classes))
    for k in range(600):
        model.learn_one({f"w{k}": 1.0, f"w{k // 2}": 2.0, "zero": 0.0, "a": 1.0, f"v{k}": 1.0}, k % classes)
        assert model.n_features_in_ == model.learner_.size
        if k % 5 == 0:
            model.predict_one({f"w{k}": 1.0, "never": 1.0})
    assert len(added) < 40
    assert model.get_feature_names_out().tolist() == model.encoding_["names"]
    assert pickle.loads(pickle.dumps(model)).get_feature_names_out().tolist() == model.encoding_["names"]


@pytest.mark.parametrize("reads", [0, 7])
@pytest.mark.parametrize(
    ("settings", "classes"),
    [
        *OF_WORDS,
        seldom(OnlineClassifier(solver="oadm", penalty="l1=1e-3", scale="none"), 2),
    ],
)
def test_columns_that_come_row_by_row_are_those_of_one_block(settings, classes, reads):
    """Names come in nearly all rows, over the borders of many rooms and visits; ``reads``: how often the state is read."""
    rng, model, whole = np.random.default_rng(classes + reads), clone(settings), clone(settings)
    rows = list(draw_words(400, 12, rng))
    targets = rng.integers(classes, size=len(rows)) if classes else rng.normal(size=len(rows))
    for i, (row, y) in enumerate(zip(rows, targets.tolist(), strict=True)):
        model.learn_one(row, y, **({"classes": range(classes)} if classes else {}))
        assert model.n_features_in_ == max(1, model.learner_.size)
        if reads and i % reads == 0:
            model.predict_one(row | {"never": 1.0})
            assert model.learner_.weights().shape[0] == model.learner_.size
    assert model.learner_.states[0].size == model.learner_.size
    whole.learn_one({}, targets[0].item(), **({"classes": range(classes)} if classes else {}))
    learner = whole.learner_.unlearned(None)
    place = {name: k for k, name in enumerate(model._reader().names)}
    entries = [(place[name], float(x), i) for i, row in enumerate(rows) for name, x in row.items() if x]
    columns, values, numbers = zip(*entries, strict=True)
    X = sp.csr_matrix((values, (numbers, columns)), shape=(len(rows), model.learner_.size))
    y = targets if not classes else np.where(targets > 0, 1.0, -1.0)
    if classes > 2:
        y = np.where(targets[:, None] == np.arange(classes), 1.0, -1.0)
    learner.learn(X, y)
    assert stored(model) == {name: array.tobytes() for name, array in learner.freeze()[1].items()}


@pytest.mark.parametrize("classes", [2, 3])
def test_a_row_that_is_refused_brings_no_name(classes):
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=range(classes))
    for k in range(40):
        model.learn_one({f"w{k}": 1.0, "a": 2.0}, k % classes)
    names, before = model.get_feature_names_out().tolist(), stored(model)
    for row, error in (
        ({"new": 1.0, "a": np.nan}, ValueError),
        ({"new": 1.0, "other": 1e200, "more": 1.0}, ValueError),
        ({"new": 1.0, "\ud800": 1.0, "more": 1.0}, ValueError),
        ({"new": 1.0, 3: 1.0}, TypeError),
        ({"new": 1.0, "more": [1.0]}, TypeError),
    ):
        for _ in range(2):
            with pytest.raises(error, match="row"):
                model.learn_one(row, 1)
            assert model.get_feature_names_out().tolist() == names
            assert stored(model) == before
            assert model.n_features_in_ == len(names)
    with pytest.raises(ValueError, match="the known classes are"):
        model.learn_one({"new": 1.0}, "no")
    model.learn_one({"zero": 0.0, "last": 1.0, "later": 0.0}, 1)
    assert model.get_feature_names_out().tolist() == [*names, "zero", "last"]
    model.learn_one({"later": 2.0}, 1)
    assert model.get_feature_names_out().tolist() == [*names, "zero", "last", "later"]


def test_a_row_whose_names_are_too_many_brings_none(monkeypatch):
    monkeypatch.setattr(encoding, "MOST_VALUES", 4)
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1])
    model.learn_one({"b": 1.0}, 1)
    for _ in range(2):
        with pytest.raises(ValueError, match="row: expected at most 4 names and categories, got one more: 'e'"):
            model.learn_one({"c": 1.0, "d": 1.0, "e": 1.0}, 1)
        assert model.get_feature_names_out().tolist() == ["a", "b"]
    assert model.learn_one({"c": 1.0, "d": 1.0}, 1).get_feature_names_out().tolist() == ["a", "b", "c", "d"]


def test_a_row_whose_names_are_too_long_for_a_model_file_brings_none(monkeypatch):
    monkeypatch.setattr(encoding, "MOST_BYTES", 200)
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1])
    for row in ({"c": 1.0, "d" * 150: 1.0}, {"c": "d" * 150}):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"row: expected names and categories of at most 200 bytes .* of 15\d char"):
                model.learn_one(row, 1)
            assert model.get_feature_names_out().tolist() == ["a"]
    assert model.learn_one({"c": 1.0, "d" * 100: 1.0}, 1).get_feature_names_out().tolist() == ["a", "c", "d" * 100]


def test_a_row_for_whose_names_there_is_no_room_brings_none(monkeypatch):
    monkeypatch.setenv(LIMIT, "1KB")
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1])
    for _ in range(2):
        with pytest.raises(ValueError, match="for which the state would grow to"):
            model.learn_one({f"n{k}": 1.0 for k in range(100)}, 1)
        assert model.get_feature_names_out().tolist() == ["a"]
    assert model.learn_one({"b": 1.0}, 1).get_feature_names_out().tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", [2, 3])
def test_names_come_up_to_the_limit_of_the_state(monkeypatch, classes):
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=range(classes))
    monkeypatch.setenv(LIMIT, str(100 * model.learner_.bytes_per_new_column))
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=range(classes))
    for k in range(99):
        model.learn_one({f"n{k}": 1.0, "a": 1.0}, k % classes)
    before = stored(model)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"expected columns up to 99 .* got column 100"):
            model.learn_one({"more": 1.0, "a": 1.0}, 1)
        assert len(model.get_feature_names_out()) == model.n_features_in_ == 100
        assert stored(model) == before
    model.learn_one({"n7": 1.0, "a": 1.0}, 1)


@pytest.mark.parametrize("classes", [seldom(2), 3])
def test_a_row_of_new_names_by_which_the_state_ends_brings_none(classes):
    model = OnlineClassifier(solver="sgd,eta=1e300", scale="none", average="none").learn_one(
        {"a": 0.0}, 0, classes=range(classes)
    )
    for k in range(40):
        model.learn_one({f"w{k}": 1e-300, "a": 0.0}, k % classes)
    names = list(model.encoding_["names"])
    wrong = (model.predict_one({"a": 1.0}) + 1) % classes
    with pytest.raises(DivergenceError):
        model.learn_one({"new": 1e100, "a": 1.0}, wrong)
    assert model._reader().names == names
    assert "new" not in model._reader()._place


def test_a_row_by_which_the_state_ends_brings_no_name():
    model, count = OnlineRegressor("squared", solver="sgd,eta=1e200", scale="none", average="none"), 0
    with pytest.raises(DivergenceError):  # noqa: PT012 (which of the rows it is does not matter)
        for k in range(50):
            count = model._reader().count
            model.learn_one({f"w{k}": 1e100, "a": 1e100}, 1e5 * (k % 3))
    assert model._reader().count == count > 0


def test_a_prediction_knows_a_name_from_its_first_row_on():
    model = OnlineClassifier(penalty="l1=1e-3", solver="comid").learn_one({"a": 1.0}, 0, classes=[0, 1])
    for k in range(30):
        row = {"a": 1.0, f"w{k}": 3.0}
        for _ in range(3):
            before = model.predict_proba_one(row)
        assert before == model.predict_proba_one({"a": 1.0})
        model.learn_one(row, 1)
        after = model.predict_proba_one(row)
        assert after[1] > model.predict_proba_one({"a": 1.0})[1]
        assert after == pytest.approx(dict(enumerate(model.predict_proba([row])[0])), rel=1e-14)


def test_threads_that_bring_names_lose_no_row_and_no_name():
    """Each name is learned by one row; others read and predict meanwhile."""
    model, errors = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1]), []

    def learns(k):
        for i in range(300):
            model.learn_one({f"{k}-{i}": 1.0, "a": 1.0, f"{k}-{i}-b": 2.0}, i % 2)

    def asks(k):
        while any(thread.is_alive() for thread in writers):
            model.predict_one({f"{k}-{7}": 1.0, "a": 1.0, "never": 1.0})
            if len(model.learner_.weights()) > model.learner_.size:
                errors.append("weights of columns that are not known")

    writers = [threading.Thread(target=learns, args=(k,)) for k in range(4)]
    threads = [*writers, *(threading.Thread(target=asks, args=(k,)) for k in range(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert model.learner_.t == 1201
    assert model.learner_.size == model.n_features_in_ == len(model.get_feature_names_out()) == 2401
    assert np.count_nonzero(model.learner_.weights()) > 2000


@pytest.mark.parametrize("settings", often(REGRESSORS, FEW))
def test_numbers_row_by_row_are_partial_fit(settings):
    y = 3.0 * X[:, 0] - X[:, 2] + 5.0
    model = clone(settings)
    for row, target in zip(DICTS, y, strict=True):
        model.learn_one(row, target)
    arrays = clone(settings).partial_fit(X, y)
    assert np.array_equal(model.coef_, arrays.coef_)
    wanted = arrays.predict(X).tolist()
    for order in (DICTS, [dict(reversed(row.items())) for row in DICTS]):
        assert [model.predict_one(row) for row in order] == wanted
    assert model.predict(DICTS[0]).tolist() == wanted[:1]


def test_predictions_follow_what_is_learned():
    model = OnlineClassifier()
    for row, y in zip(DICTS[:50], Y, strict=False):
        model.learn_one(row, y)
        scores = [model.predict_proba_one(row)[True] for _ in range(4)]
        assert scores == pytest.approx([model.predict_proba(row)[0, 1]] * 4, rel=1e-14)


ODD = [
    {"x0": 1, "x1": True, "x2": 10**30, "x3": np.float64(0.5)},
    {"x0": np.float32(1.5), "x1": np.int64(-2), "x2": np.bool_(True), "x3": 1.0},
    {"x3": 0.25, "x0": -1.0},
    {"x0": 1.0, "x1": None, "x2": 0.0, "x3": "text"},
    {"x0": 0.0, "x1": -0.0, "x2": 0, "x3": False},
    {"x0": 1.0, "x1": 2.0, "x2": 3.0, "x3": 4.0, "unknown": 5.0},
    {},
]


@pytest.mark.parametrize("classes", [[False, True], [0, 1, 2]], ids=len)
def test_odd_rows_in_turns_are_a_table_of_them(classes):
    """Rows of other names, orders and types among common ones, predicted and then learned."""
    model, tables = OnlineClassifier(), OnlineClassifier()
    for k, row in enumerate([*DICTS[:30], *[odd for odd in ODD for _ in range(3)], *DICTS[30:60], *ODD]):
        y = classes[k % len(classes)]
        if k:
            first = model.predict_proba_one(row)
            assert first == pytest.approx(dict(zip(classes, model.predict_proba([row])[0], strict=True)), rel=1e-14)
            assert model.predict_one(row) == model.predict([row])[0]
        model.learn_one(row, y, classes=classes)
        columns, values = model._reader().row(row, False)
        if k == 0:
            tables.start_with_row({}, model.learner_.n_outputs)
        targets = np.where(np.arange(3) == k % 3, 1.0, -1.0) if len(classes) == 3 else (1.0 if y else -1.0)
        kept = np.array(columns, np.int64), np.array(values, np.float64)
        block = sp.csr_matrix((*kept[::-1], [0, len(columns)]), shape=(1, model.learner_.size))
        tables.learner_.learn(block, [targets])
    assert stored(model) == stored(tables)


def stored(model):
    return {name: array.tobytes() for name, array in model.learner_.freeze()[1].items()}


def test_what_is_refused_between_quick_rows_changes_nothing():
    model = OnlineClassifier()
    for row, y in zip(DICTS[:20], Y, strict=False):
        model.learn_one(row, y)
    for _ in range(2):  # the first one takes the way of a block
        model.predict_one(DICTS[0])
    assert model._row_quick.score(model, DICTS[0]) is not None
    before = stored(model)
    for value, error in (
        (np.nan, ValueError),
        (np.inf, ValueError),
        (1e200, ValueError),
        (10**400, ValueError),
        ([1.0], TypeError),
    ):
        for k in range(4):
            row = {**DICTS[0], f"x{k}": value}
            with pytest.raises(error, match=r"row|X|value"):
                model.learn_one(row, True)
            if value not in (1e200,):
                with pytest.raises(error, match=r"row|X|value"):
                    model.predict_one(row)
    for row, y in (([1, 2], True), ("x0", True), (DICTS[0], "no")):
        with pytest.raises((TypeError, ValueError), match=r"row: expected a dict|the class 'no'"):
            model.learn_one(row, y)
    with pytest.raises(TypeError, match=r"got Series\. Give row\.to_dict\(\)"):
        model.learn_one(pd.Series(DICTS[0]), True)
    assert stored(model) == before
    assert model._row_quick.learn(model, DICTS[0], 1.0)


def test_text_names_appear_and_rows_may_lack_names():
    model = OnlineClassifier()
    for k in range(60):
        model.learn_one({"site": "ab"[k % 2], "n": 1}, k % 2)
    assert model.classes_.tolist() == [0, 1]
    assert model.get_feature_names_out().tolist() == ["site=a", "n", "site=b"]
    assert [model.predict_one({"site": s}) for s in "ab"] == [0, 1]
    score = model.predict_proba_one({})
    assert score == model.predict_proba_one({"unknown": 5.0, "site": "c"})
    model.learn_one({"new": 1.0}, 1)
    assert model.get_feature_names_out().tolist()[-1] == "new"
    assert model.n_features_in_ == 4


def test_copies_and_files_predict_and_continue_alike(tmp_path):
    model = OnlineClassifier()
    for row, y in zip(DICTS[:200], Y, strict=False):
        model.learn_one({**row, "kind": "p" if row["x3"] > 0 else "q"}, y)
    model.predict_one(DICTS[0])
    model.save(tmp_path / "model")
    others = [pickle.loads(pickle.dumps(model)), load(tmp_path / "model")]
    for other in others:
        for row, y in zip(DICTS[200:], Y[200:], strict=True):
            other.learn_one(row, y)
    for row, y in zip(DICTS[200:], Y[200:], strict=True):
        model.learn_one(row, y)
    assert all(np.array_equal(model.coef_, other.coef_) for other in others)
    model.save(tmp_path / "final", final=True)
    final = load(tmp_path / "final")
    assert [final.predict_one(row) for row in DICTS] == [model.predict_one(row) for row in DICTS]
    with pytest.raises(ValueError, match="can only predict"):
        final.learn_one(DICTS[0], True)


def test_a_model_of_a_table_takes_rows_by_its_rules():
    rows = [{"price": float(v), "site": "ab"[k % 2], "y": int(v > 0)} for k, v in enumerate(X[:, 0])]
    for categories in ("hash", "one-hot"):
        stream = streams.open(rows, target="y", categories=categories, missing="omit")
        model = OnlineClassifier().fit(stream)
        wanted = model.predict(rows).tolist()
        assert [model.predict_one(row) for row in rows] == wanted
        assert model.predict_one({"site": "never"}) in (0, 1)
        other = load_again(model)
        model.learn_one({"price": 1.0, "site": "c"}, 1)
        other.partial_fit([{"price": 1.0, "site": "c", "y": 1}])
        assert np.array_equal(model.coef_, other.coef_)
        assert model.encoding_ == other.encoding_


def load_again(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("first", [None, {True: 2.0}])
@pytest.mark.parametrize("pairs", [False, True])
def test_weights_of_classes_that_change_act_from_the_next_row_on(first, pairs):
    single, block = (OnlineClassifier(class_weight=first) for _ in range(2))
    for k, label in enumerate(Y[:40].tolist()):
        if k == 20:
            for model in (single, block):
                model.set_params(class_weight={True: 5.0})
        given = pair(X[k]) if pairs else DICTS[k]
        single.learn_one(given, label)
        block.partial_fit(X[k : k + 1], [label], classes=[False, True])
        single.predict_one(given)
    np.testing.assert_array_equal(single.coef_, block.coef_)
    with pytest.raises(ValueError, match="class_weight='balanced' needs the labels of all rows"):
        single.set_params(class_weight="balanced").learn_one(given, label)


def test_weights_and_several_classes():
    model = OnlineClassifier(class_weight={"r": 2.0})
    other = OnlineClassifier(class_weight={"r": 2.0})
    y, weights = np.array(list("rgb"))[np.arange(90) % 3], 1.0 + np.arange(90) % 2
    for row, label, weight in zip(DICTS, y, weights, strict=False):
        model.learn_one(row, label, float(weight), classes=list("rgb"))
    other.partial_fit(X[:90], y, classes=list("rgb"), sample_weight=weights)
    assert np.array_equal(model.coef_, other.coef_)
    assert model.predict_one(DICTS[0]) == other.predict(X[:1])[0]
    assert model.predict_proba_one(DICTS[0]) == pytest.approx(dict(zip("bgr", other.predict_proba(X[:1])[0], strict=True)))


@pytest.mark.parametrize(
    "odd", [{1: 2.0}, {None: 1.0}, {b"a": 1.0}, {("a",): None}, {1: "x"}, {"a": "\ud800"}, {"a": 10**400}, {"\ud800": 1.0}]
)
def test_what_learning_refuses_predicting_does(odd):
    """With one message, after a table too; a list of rows names the place."""
    by_name = OnlineClassifier().learn_one({"a": 1.0}, True)
    by_table = clone(by_name).fit([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}], [False, True])
    for model, row in ((by_name, odd), (by_table, {"b": "x", "a": 1.0, **odd})):
        said = set()
        for call in (
            lambda model, row: model.learn_one(row, True),
            lambda model, row: model.predict_one(row),
            lambda model, row: model.predict_proba_one(row),
            lambda model, row: model.predict([row]),
        ):
            with pytest.raises((TypeError, ValueError)) as refused:
                call(model, row)
            said.add(str(refused.value).replace("X at row 0: ", "row: "))
        assert len(said) == 1


def test_a_row_of_a_list_that_is_refused_is_named_by_its_place():
    model = OnlineClassifier(solver="ftrl", average="none").learn_one({"a": 1.0}, True)
    rows = [{"a": 1.0}, {"a": float("nan"), "b": 1.0}]
    for call in (lambda: model.partial_fit(rows, [True, False]), lambda: model.predict(rows)):
        with pytest.raises(ValueError, match=r"^X at row 1: expected a finite number for 'a', got nan\.$"):
            call()
    with pytest.raises(TypeError, match="expected a dict for each row, got int at row 1"):
        model.predict([{"a": 1.0}, 2])
    assert model.t_ == 1


def test_a_first_row_that_is_refused_leaves_no_model():
    for model, y in ((OnlineClassifier(), True), (OnlineRegressor(), 1.5)):
        for row in ({"a": np.nan}, {1: 1.0}, [1.0], None):
            with pytest.raises((TypeError, ValueError)):
                model.learn_one(row, y)
            assert set(without_turn(vars(model))) == set(model.get_params())


def test_columns_and_values_in_place_of_a_dict_are_told():
    for model in (OnlineClassifier(), OnlineRegressor()):
        with pytest.raises(TypeError, match=r"or a pair \(indices, values\) of columns, got ndarray"):
            model.learn_one(np.array([0]), np.array([1.0]), 1.0)


@pytest.mark.parametrize("y", [None, "1.5", b"1", 10**400, [1.0, 2.0], np.nan])
def test_targets_and_weights_of_one_row_are_numbers(y):
    model = OnlineRegressor().learn_one({"a": 1.0}, 1.5)
    before = stored(model)
    with pytest.raises((TypeError, ValueError), match=r"^y "):
        model.learn_one({"a": 1.0}, y)
    with pytest.raises((TypeError, ValueError), match=r"^y "):
        model.learner_.learn_one(np.array([0]), np.array([1.0]), y)
    classes = OnlineClassifier(class_weight={0: 2.0}).learn_one({"a": 1.0}, 0)
    for one in (model, classes):
        with pytest.raises((TypeError, ValueError), match=r"^weight must be "):
            one.learn_one({"a": 1.0}, 1, y)
    with pytest.raises(ValueError, match="the class"):
        classes.learn_one({"a": 1.0}, y)
    assert stored(model) == before


def test_what_is_refused_changes_nothing():
    model = OnlineClassifier()
    with pytest.raises(NotFittedError):
        model.predict_one({"a": 1.0})
    with pytest.raises(ValueError, match="needs classes="):
        model.learn_one({"a": 1.0}, "yes")
    assert not hasattr(model, "learner_")
    assert not hasattr(model, "classes_")
    model.learn_one({"a": 1.0}, True)
    for row, words in [
        ({"b": np.nan}, "a finite number for 'b', got nan"),
        ({"b": np.inf}, "a finite number for 'b', got inf"),
        ({"a": 1.0, "c": -1e200}, r"at most 1e\+150 in size for 'c', got -1e\+200"),
        (np.ones(1), r"a pair \(indices, values\) of columns, got ndarray"),
        ({"b": [1]}, "expected a number"),
        ({1: 2}, "name"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            model.learn_one(row, True)
    with pytest.raises(ValueError, match="the class 'x'"):
        model.learn_one({"c": 1.0}, "x")
    assert model.get_feature_names_out().tolist() == ["a"]
    assert model.t_ == 1
    arrays = OnlineClassifier().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="without names"):
        arrays.predict_one({"a": 1.0})
    with pytest.raises(ValueError, match="needs all rows at once"):
        OnlineRegressor(solver="batch-drs").learn_one({"a": 1.0}, 1.0)


@pytest.mark.parametrize("y", [None, "x", {}, "long " * 50])
def test_a_target_that_is_no_number_is_named(y):
    model = OnlineRegressor()
    for _ in range(3):
        with pytest.raises(TypeError, match=rf"y must be a number, got {repr(y)[:60]}(\.\.\.)?\."):
            model.learn_one({"a": 1.0}, y)
        model.learn_one({"a": 1.0}, 2.0)


def test_rows_of_several_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    Y = X[:, :2] + 0.1
    block = OnlineRegressor().fit(X, Y)
    one = copy.deepcopy(block)
    for k, (x, y) in enumerate(zip(X, Y, strict=True)):
        one.learn_one((np.arange(3), x), y.tolist() if k % 2 else y, weight=1.0 + k % 3)
        block.partial_fit(x[None], y[None], sample_weight=[1.0 + k % 3])
    assert np.array_equal(one.coef_, block.coef_)
    assert np.array_equal(one.predict_one(np.arange(3), X[0]), one.predict(X[:1])[0])
    for y in (1.0, [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match=r"y must have shape \(n, 2\)"):
            one.learn_one((np.arange(3), X[0]), y)
    with pytest.raises(ValueError, match=r"y must be one number, got \[1.0, 2.0\]"):
        OnlineRegressor().learn_one({"a": 1.0}, [1.0, 2.0])


@pytest.mark.parametrize("loss", ["squared", seldom("poisson")])
@pytest.mark.parametrize("targets", [1, 2, 3])
def test_several_targets_of_a_dict_are_those_of_its_columns(loss, targets):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((30, 3)), columns=list("abc"))
    model = OnlineRegressor(loss).fit(table, rng.poisson(3.0, (30, targets)).astype(float))
    row, columns = table.iloc[4].to_dict(), (np.arange(3), table.to_numpy()[4])
    for _ in range(2):
        for given in (row, {**row, "other": 1}, row, columns):
            found = model.predict_one(given)
            assert found.shape == (targets,)
            assert np.array_equal(found, model.predict(table[4:5])[0])
        model.learn_one(row, [1.0] * targets)


def test_a_final_model_of_a_frame_of_numbers_says_which_names_it_has(tmp_path):
    table = pd.DataFrame(X, columns=list("abcd"))
    OnlineRegressor(penalty="l1=1e-3").fit(table, X[:, 0]).save(tmp_path / "final.onlinear", final=True)
    model, row = load(tmp_path / "final.onlinear"), table.iloc[0].to_dict()
    with pytest.raises(ValueError, match="columns with a weight alone: give indices and values of all columns"):
        model.predict_one(row)
    with pytest.raises(ValueError, match="columns with a weight alone: give rows of numbers of all columns"):
        model.predict([row])
    assert model.predict_one(np.arange(4), X[0]) == model.predict(table[:1])[0]


def pair(row):
    columns = np.flatnonzero(row)
    return columns, row[columns]


@pytest.mark.parametrize("settings", often([*CLASSIFIERS, *REGRESSORS], FEW))
def test_pairs_of_columns_and_values_are_partial_fit(settings, tmp_path):
    classify = isinstance(settings, OnlineClassifier)
    y = Y if classify else X[:, 0] + 0.1 * X[:, 1]
    weights = np.where(np.arange(len(y)) % 3, 1.0, 2.5)
    single = clone(settings)
    for k, (row, target) in enumerate(zip(X, y.tolist(), strict=True)):
        given = pair(row) if k % 2 else tuple(part.tolist() for part in pair(row))
        assert single.learn_one(given, target, weight=weights[k]) is single
        if k == 150:
            single.save(tmp_path / "model.onlinear")
            single = load(tmp_path / "model.onlinear")
    whole = clone(settings).partial_fit(X, y, sample_weight=weights, **({"classes": [False, True]} if classify else {}))
    assert single.n_features_in_ == 4
    np.testing.assert_array_equal(single.coef_, whole.coef_)
    columns, values = pair(X[0])
    assert single.predict_one((columns, values)) == single.predict_one(columns, values) == whole.predict(X[:1])[0]
    if hasattr(single, "predict_proba_one"):
        assert single.predict_proba_one((columns, values)) == single.predict_proba_one(columns, values)


def test_pairs_take_the_columns_that_the_model_has():
    named = OnlineRegressor().learn_one({"a": 1.0, "b": 2.0}, 3.0).learn_one(([1], [2.0]), 1.0)
    with pytest.raises(ValueError, match="column 2 has no name"):
        named.learn_one(([0, 2], [1.0, 2.0]), 1.0)
    assert named.t_ == 2
    assert named.learn_one({"c": 1.0}, 2.0).n_features_in_ == 3
    arrays = OnlineRegressor().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="4 features"):
        arrays.learn_one(([4], [1.0]), 1.0)
    assert arrays.learn_one(([3], [1.0]), 1.0).t_ == 301
    nameless = OnlineRegressor().learn_one(([7], [1.0]), 1.0)
    assert nameless.n_features_in_ == 8
    with pytest.raises(ValueError, match="rows without names"):
        nameless.learn_one({"a": 1.0}, 1.0)


@pytest.mark.parametrize(
    "row",
    [([0, 1], [1.0]), ([-1], [1.0]), ([0.5], [1.0]), ([0], [np.nan]), ([0], ["a"]), ([0],), ([0], [1.0], [2.0]), [0, 1.0]],
)
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_pairs_that_are_no_rows_are_refused(row, weight):
    model = OnlineRegressor()
    for _ in range(2):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(row, 1.0, weight)
        assert not model.is_fitted or model.t_ == 1
        model.learn_one(([0], [1.0]), 1.0) if not model.is_fitted else None


@pytest.mark.parametrize(
    "container", [np.array, sp.csr_matrix, lambda X: X.astype(np.float32)], ids=["dense", "sparse", "float32"]
)
@pytest.mark.parametrize(
    ("task", "settings"),
    [
        (OnlineClassifier, {}),
        (OnlineClassifier, {"loss": "softmax"}),
        seldom(OnlineClassifier, {"penalty": "l1=1e-3", "solver": "comid"}),
        (OnlineRegressor, {}),
        seldom(OnlineRegressor, {"solver": "odrs"}),
        (OnlineRegressor, {"uncertainty": True}),
        seldom(OnlineRegressor, {"solver": "sgd,batch=4"}),
    ],
    ids=str,
)
def test_partial_fit_of_single_rows_has_the_bits_of_blocks(task, settings, container, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.6)
    y = rng.integers(0, 3, 40) if task is OnlineClassifier else 100.0 * rng.normal(size=40)
    X, first, found = container(X), {"classes": [0, 1, 2]} if task is OnlineClassifier else {}, []
    for worth in (1, 10**9):
        monkeypatch.setattr(learner, "WORTH_ITS_CODE", worth)
        model = task(**settings)
        for _ in range(2):
            for i in range(40):
                model.partial_fit(X[i : i + 1], y[i : i + 1], **first)
            model.partial_fit(X[:7], y[:7])
        assert (model.learner_._one is not None) == (
            worth == 1 and "uncertainty" not in settings and "batch" not in str(settings)
        )
        found.append(pickle.dumps(model))
    assert found[0] == found[1]


def test_partial_fit_of_a_single_row_refuses_what_blocks_do(monkeypatch):
    monkeypatch.setattr(learner, "WORTH_ITS_CODE", 1)
    model = OnlineRegressor().partial_fit(np.ones((1, 3)), [1.0]).partial_fit(np.ones((1, 3)), [2.0])
    for X, y, message in (
        (np.array([[1.0, np.nan, 0.0]]), [1.0], "NaN at row 0, column 1"),
        (np.ones((1, 3)), [np.inf], "infinity"),
        (np.ones((1, 4)), [1.0], "4 features"),
        (np.full((1, 3), 1e200), [1.0], "at most"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y)
    assert model.t_ == 2


def test_a_refit_with_another_loss_has_its_methods():
    """The function that took the place of predict_proba_one was of the learner before."""
    model = OnlineClassifier()
    for k in range(8):
        model.learn_one({"a": 1.0 - 2.0 * (k % 2), "b": 0.5}, k % 2, classes=[0, 1])
        if k > 1:
            model.predict_proba_one({"a": 1.0, "b": 0.5})
    model.set_params(loss="hinge").fit([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]], [0, 1, 0])
    assert not hasattr(model, "predict_proba_one")
    model.set_params(loss="logistic").fit([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]], [0, 1, 0])
    assert sum(model.predict_proba_one([0, 1], [1.0, 2.0]).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("row", [{"a": 1.0, "b": 0.5}, ([0, 1], [1.0, 0.5])], ids=["dict", "pair"])
def test_single_rows_after_other_settings_are_refused_as_by_partial_fit(row):
    model = OnlineRegressor(loss="squared")
    for k in range(4):
        model.learn_one(row, float(k))
    model.set_params(loss="huber")
    before = pickle.dumps(model)
    for learn in (lambda: model.learn_one(row, 1.0), lambda: model.partial_fit([[1.0, 0.5]], [1.0])):
        with pytest.raises(ValueError, match=r"begun with loss='squared'.*loss is now 'huber'"):
            learn()
    assert pickle.dumps(model) == before
    model.set_params(loss="squared", verbose=0)
    for k in range(4):
        model.learn_one(row, float(k))
    assert model.t_ == 8


@pytest.mark.parametrize("row", [([0, 1], [3.0, 1.0]), {"a": 3.0, "b": 1.0}], ids=["pair", "dict"])
def test_a_single_prediction_is_of_one_model_where_another_thread_fits_anew_meanwhile(row, monkeypatch):
    X = pd.DataFrame({"a": [1.0, 2.0, 0.0, 3.0], "b": [2.0, 1.0, 3.0, 0.0]})
    model = OnlineClassifier().fit(X, ["low", "high", "low", "high"])
    score = Learner.predict_one

    def beside_another_fit(learner, *given):
        found = score(learner, *given)
        if model.learner_ is learner and "low" in model.classes_:
            model.fit(X, [30, 20, 30, 20])
        return found

    monkeypatch.setattr(Learner, "predict_one", beside_another_fit)
    assert model.predict_one(row) == 20
    model.fit(X, ["low", "high", "low", "high"])
    assert set(model.predict_proba_one(row)) == {20, 30}


def test_classes_that_are_named_again_are_those_of_the_model():
    model = OnlineClassifier().learn_one({"a": 1.0}, 0, classes=[0, 1])
    for again in ([1, 0], [1, 0], (0, 1), range(2), np.array([0, 1]), {0, 1}):
        model.learn_one({"a": 1.0}, 1, classes=again)
    for other in ([0, 1, 2], ["no", "yes"], range(3)):
        with pytest.raises(ValueError, match=r"differs from the classes of the first call: 0, 1"):
            model.learn_one({"a": 1.0}, 1, classes=other)
    assert model.t_ == 7
