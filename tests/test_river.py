"""The wrappers for River pass River's own checks of linear models."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

checks = pytest.importorskip("river.checks", reason="River is not installed: pip install onlinear[river]")
from river import datasets, feature_extraction, linear_model, metrics, multiclass, preprocessing, stream  # noqa: E402
from river import evaluate as progressive  # noqa: E402
from seldom import seldom  # noqa: E402

from onlinear import OnlineClassifier, OnlineRegressor  # noqa: E402
from onlinear.river import Classifier, Regressor, rows_of_frame  # noqa: E402

PAGE = Path(__file__).parent.parent / "docs" / "one-by-one.md"
FTRL = {"solver": "ftrl", "average": "none"}
HINGE = {"loss": "hinge", "penalty": "l1=1e-3", "solver": "comid"}  # without probabilities
MODELS = [
    Classifier(),
    Classifier(penalty="l1=1e-4"),
    Classifier(**FTRL),
    Classifier(**HINGE),
    Regressor(),
    Regressor("huber", solver="ftrl"),
]
ALWAYS = (MODELS[0], MODELS[4])  # for which checks that take seconds are made in every run
OF_ROWS = {"loss": "exponential", "solver": "ftrl", "forget": 50.0}  # whose kernel tests of single rows have
LONG = "check_bounded_memory_growth"
CASES = [
    pytest.param(
        model,
        check,
        id=f"{type(model).__name__}-{model.solver}-{check.__name__}",
        marks=pytest.mark.exhaustive if model.loss == "hinge" or (check.__name__ == LONG and model not in ALWAYS) else (),
    )
    for model in MODELS
    for check in checks.yield_checks(model)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "check"), CASES)
def test_river_check(model, check):
    check(model.clone())


def test_its_size_is_that_of_its_state():
    model = Classifier()
    model.learn_one({"a": 1.0}, True)
    small = model._raw_memory_usage
    for k in range(1000):
        model.learn_one({f"name_{k}": 1.0}, k % 2 == 0)
    assert 1000 * 16 < model._raw_memory_usage - small < 1000 * 200


def test_the_package_does_not_import_river():
    code = "import sys, onlinear, onlinear.cli; from onlinear import OnlineClassifier; assert 'river' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_classes_appear_or_are_named():
    model = Classifier()
    assert model.predict_one({"a": 1.0}) is False
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    model.learn_one({"a": 1.0}, "no")
    assert model.predict_one({"a": 1.0}) == "no"
    assert model.predict_proba_one({"a": 1.0}) == {"no": 1.0}
    model.learn_one({"b": 1.0}, "yes")
    for _ in range(20):
        model.learn_one({"a": 1.0}, "no")
        model.learn_one({"b": 1.0}, "yes")
    assert model.predict_one({"b": 1.0}) == "yes"
    assert set(model.predict_proba_one({"b": 1.0})) == {"no", "yes"}
    with pytest.raises(ValueError, match="the class 'maybe'"):
        model.learn_one({"b": 1.0}, "maybe")
    several = Classifier(classes=["r", "g", "b"])
    for k in range(60):
        several.learn_one({"rgb"[k % 3]: 1.0}, "rgb"[k % 3])
    assert [several.predict_one({name: 1.0}) for name in "rgb"] == ["r", "g", "b"]
    assert sum(several.predict_proba_one({"r": 1.0}).values()) == pytest.approx(1.0)


def test_classes_of_a_set_ascend_before_the_first_row_too():
    model = Classifier(classes={"b", "c", "a"})
    assert model.predict_one({"r": 1.0}) == "a"
    assert list(model.predict_proba_one({"r": 1.0})) == ["a", "b", "c"]
    model.learn_one({"r": 1.0}, "b")
    assert list(model.predict_proba_one({"r": 1.0})) == ["a", "b", "c"]
    assert Classifier(classes=["b", "a"]).predict_one({"r": 1.0}) == "b"


def test_the_example_of_the_page_runs():
    (example,) = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    exec(compile(example, str(PAGE), "exec"), {})


def log_loss(model):
    return progressive.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss()).get()


def test_it_is_as_good_as_rivers_own_with_scaled_columns():
    assert log_loss(Classifier()) < log_loss(preprocessing.StandardScaler() | linear_model.LogisticRegression())


def test_it_is_better_than_a_constant_on_random_features():
    """A hundred dense columns, among which explicit steps overshoot."""
    random = feature_extraction.RBFSampler(seed=1, n_components=100, gamma=1.0)
    assert log_loss(preprocessing.StandardScaler() | random | Classifier()) < 0.3


@pytest.mark.parametrize("data", [datasets.TrumpApproval, datasets.ChickWeights])
def test_a_regressor_is_as_good_as_rivers_own_on_numbers_of_any_size(data):
    ours = progressive.progressive_val_score(data(), Regressor(), metrics.MAE()).get()
    scaled = preprocessing.StandardScaler() | linear_model.LinearRegression()
    assert ours < progressive.progressive_val_score(data(), scaled, metrics.MAE()).get()


def test_names_that_are_no_text_are_told_apart_by_their_text():
    rows = [({"a": float(k % 5), 0: float(k % 3), ("n", "gram"): 1.0}, k % 5 > 2) for k in range(60)]
    model, by_text = Classifier(), Classifier()
    numbers, numbers_by_text = Regressor(), Regressor()
    for row, y in rows:
        texts = {str(name): value for name, value in row.items()}
        model.learn_one(row, y)
        by_text.learn_one(texts, y)
        numbers.learn_one(row, float(y))
        numbers_by_text.learn_one(texts, float(y))
        assert model.predict_proba_one(row) == by_text.predict_proba_one(texts)
        assert model.predict_one(row) == by_text.predict_one(texts)
        assert numbers.predict_one(row) == numbers_by_text.predict_one(texts)
    assert model.model.get_feature_names_out().tolist() == ["a", "0", "('n', 'gram')"]
    with pytest.raises(ValueError, match="two names whose text is '0'"):
        model.learn_one({0: 1.0, "0": 2.0}, True)


def test_features_of_rivers_extractors_are_taken():
    grams = feature_extraction.BagOfWords(ngram_range=(1, 2)) | Classifier()
    for text, y in [("good nice movie", True), ("bad dull movie", False)] * 20:
        grams.learn_one(text, y)
    assert grams.predict_one("a nice movie") is True
    columns, rows = Regressor(), np.random.default_rng(0).normal(size=(300, 2))
    for x, y in stream.iter_array(rows, 3.0 * rows[:, 0] - rows[:, 1]):
        columns.learn_one(x, y)
    assert columns.predict_one({0: 1.0, 1: -1.0}) == pytest.approx(4.0, abs=0.5)


def test_the_error_of_a_third_class_says_how_it_can_be_named():
    model = Classifier()
    for y in "ab":
        model.learn_one({"x": 1.0}, y)
    with pytest.raises(ValueError, match=r"'c'; the known classes are 'a', 'b'\. Name all with classes=\["):
        model.learn_one({"x": 1.0}, "c")
    with pytest.raises(ValueError, match=r"got nan\.$"):
        model.learn_one({"x": float("nan")}, "a")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (None, r"y must be text, a finite number .*, got None\."),
        (float("nan"), r"y must be text, a finite number .*, got nan\."),
        (("a", "b"), r"y must be text, .*, got \('a', 'b'\)\."),
        (["a"], r"y must be text, .*, got \['a'\]\."),
        (10**20, r"a finite number of at most 64 bits, .*, got 100000000000000000000\."),
        (1, r"y must be text, .* of one type with 'no', got 1\."),
        (True, r"y must be text, .* of one type with 'no', got True\."),
    ],
    ids=["None", "nan", "tuple", "list", "large", "1", "True"],
)
@pytest.mark.parametrize("waits", [False, True])
def test_a_first_row_of_a_wrong_label_leaves_the_model_as_it_was(waits, label, message):
    model, plain = Classifier(), Classifier()
    if waits:
        model.learn_one({"a": 1.0}, "no")
        plain.learn_one({"a": 1.0}, "no")
    if waits or label not in (1, True):
        with pytest.raises(ValueError, match=message if waits else message.replace(" of one type with 'no'", ".*")):
            model.learn_one({"a": 2.0}, label)
    for y in ("yes", "no"):
        model.learn_one({"a": 3.0}, y)
        plain.learn_one({"a": 3.0}, y)
    assert model.predict_proba_one({"a": 2.0}) == plain.predict_proba_one({"a": 2.0})


@pytest.mark.parametrize(
    ("x", "w", "error"),
    [({"a": np.nan}, 1.0, ValueError), ({"a": [1]}, 1.0, TypeError), ({"a": 1.0}, -1.0, ValueError), ([1], 1.0, TypeError)],
)
def test_a_row_that_waits_for_a_second_class_is_refused_as_it_comes(x, w, error):
    model, plain = Classifier(), Classifier()
    for each in (model, plain):
        each.learn_one({"a": 1.0}, "no")
    for y in ("no", "yes"):
        with pytest.raises(error):
            model.learn_one(x, y, w)
    for each in (model, plain):
        each.learn_one({"a": 2.0}, "yes")
    assert model.model.t_ == 2
    assert model.predict_proba_one({"a": 2.0}) == plain.predict_proba_one({"a": 2.0})


def test_true_and_false_may_follow_rows_of_0_or_1():
    model = Classifier()
    for k, y in enumerate([0, False, True, 1]):
        model.learn_one({"a": float(k)}, y)
    assert model.model.t_ == 4
    assert model.predict_one({"a": 3.0}) == 1


@pytest.mark.parametrize("model", [Classifier(), Regressor()], ids=["classes", "numbers"])
def test_what_has_no_names_is_no_row(model):
    model.learn_one({"a": 1.0}, 0)
    model.learn_one({"a": 2.0}, 1)
    for call in (lambda: model.learn_one([1.0, 2.0], 1), lambda: model.predict_one([1.0, 2.0])):
        with pytest.raises(TypeError, match=r"x must be a dict from names to values, got list\."):
            call()


def test_threads_learn_each_of_the_first_rows_once():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            model = Classifier()

            def run(shift, model=model):
                for k in range(5):
                    model.predict_proba_one({"a": 1.0})
                    model.learn_one({"a": float(k)}, "xy"[(k + shift) % 2])

            threads = [threading.Thread(target=run, args=(shift,)) for shift in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert model.model.t_ == 15
    finally:
        sys.setswitchinterval(before)


def frames(kind, rows=130):
    """Batches of rows whose columns come and go, with their targets and weights; of text, numbers and other names."""
    draw = np.random.default_rng(3)
    names = [["a", "b"], ["b", "a", 7, ("n", "gram")], ["c"], [], ["a", "b", "c", 7, ("n", "gram"), "site"]]
    for first in range(0, rows, 13):
        chosen = names[first // 13 % len(names)]
        X = pd.DataFrame({name: draw.normal(size=13) for name in chosen}, index=np.arange(first, first + 13) * 2)
        if "site" in X:
            X["site"] = draw.choice(["x", "y"], 13)
        score = draw.normal(size=13) + X.get("a", 0.0)
        target = {"regress": score, "bools": score > 0.0, "texts": np.where(score > 0.0, "yes", "no")}[kind]
        yield X, pd.Series(target, X.index, name="clicked"), pd.Series(draw.random(13), X.index)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["regress", "bools", "texts"])
@pytest.mark.parametrize("settings", [{}, seldom({"forget": 20.0})], ids=["plain", "forget"])
def test_batches_are_learned_as_their_rows(settings, kind, weighted):
    make = Regressor if kind == "regress" else Classifier
    one, many = make(**settings), make(**settings)
    for X, y, w in frames(kind):
        rows = X.to_dict("records") if len(X.columns) else [{}] * len(X)
        predicted = many.predict_many(X)
        assert predicted.index.equals(X.index)
        assert predicted.tolist() == [one.predict_one(row) for row in rows]
        if kind != "regress":
            chances = many.predict_proba_many(X)
            assert chances.index.equals(X.index)
            assert chances.to_dict("records") == [one.predict_proba_one(row) for row in rows]
        for row, target, weight in zip(rows, y.tolist(), w.tolist(), strict=True):
            one.learn_one(row, target, **({"w": weight} if weighted else {}))
        many.learn_many(X, y, **({"w": w} if weighted else {}))
        assert many.predict_many(X).name == "clicked"
    assert many.model.coef_.tobytes() == one.model.coef_.tobytes()
    assert np.array_equal(many.model.intercept_, one.model.intercept_)
    assert many.model.get_feature_names_out().tolist() == one.model.get_feature_names_out().tolist()


@pytest.mark.parametrize("make", [Classifier, Regressor])
def test_the_model_has_the_settings_that_are_given(make):
    given = {"penalty": "l1=1e-3", "scale": "rms", "fit_intercept": False, "forget": 20.0, "eta": 0.5}
    for model in (make(**given), make(**given).clone(), make().clone(given)):
        assert {name: getattr(model.model, name) for name in given} == given


@pytest.mark.parametrize(
    ("model", "estimator"),
    [
        (Classifier(**OF_ROWS), OnlineClassifier(**OF_ROWS)),
        seldom(Classifier(forget=20.0), OnlineClassifier(forget=20.0)),
        seldom(Regressor(forget=20.0), OnlineRegressor(average="none", forget=20.0)),
    ],
    ids=["explicit", "classes", "numbers"],
)
def test_a_half_life_is_that_of_the_estimator(model, estimator):
    model, draw = model.clone(), np.random.default_rng(0)
    for _ in range(50):
        row = dict(zip("abcd", draw.normal(size=4).tolist(), strict=True))
        y = row["a"]
        for each in (model, estimator):
            each.learn_one(row, y > 0.0 if isinstance(model, Classifier) else y)
    assert model.model.learner_.forget == estimator.forget
    assert model.model.coef_.tobytes() == estimator.coef_.tobytes()


@pytest.mark.parametrize("make", [Classifier, Regressor])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"forget": 0.5}, ValueError, "forget is a half-life in rows, at least 1, got 0.5"),
        ({"forget": "10"}, TypeError, r"forget must be a number in \[1, inf\), got '10'"),
        ({"forget": 10.0, "solver": "fiol"}, ValueError, "fiol has no form that forgets"),
    ],
)
def test_a_half_life_is_checked_as_by_the_estimators(make, wrong, error, message):
    with pytest.raises(error, match=message):
        make(**wrong).learn_one({"a": 1.0}, 1)


def test_batches_run_in_pipelines_of_river():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("abc"))
    y = X["a"] > X["b"]
    several = multiclass.OneVsRestClassifier(Classifier())
    for model, target in ((Classifier(), y), (several, y.map({True: "up", False: "down"}))):
        piped = preprocessing.StandardScaler() | model
        for first in range(0, 200, 50):
            piped.learn_many(X[first : first + 50], target[first : first + 50])
        assert (piped.predict_many(X) == target).mean() > 0.9
        assert piped.predict_proba_many(X).sum(axis=1).to_numpy() == pytest.approx(1.0)
    words = feature_extraction.BagOfWords() | Classifier()
    texts = pd.Series(["good nice movie", "bad dull movie"] * 20)
    words.learn_many(texts, pd.Series([True, False] * 20))
    assert words.predict_many(texts).tolist() == [True, False] * 20


def test_sparse_columns_have_no_zeros():
    X = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 2.0]}).astype(pd.SparseDtype(float, 0.0)).assign(c=[0.0, 3.0])
    assert rows_of_frame(X) == [{"a": 1.0, "c": 0.0}, {"b": 2.0, "c": 3.0}]
    blocks = pd.DataFrame({"d": pd.arrays.SparseArray([0, 5], kind="block"), "e": pd.arrays.SparseArray([1, 0], fill_value=1)})
    assert rows_of_frame(X.join(blocks)) == [{"a": 1.0, "c": 0.0, "e": 1}, {"b": 2.0, "c": 3.0, "d": 5}]


def test_of_sparse_columns_the_entries_alone_are_read(monkeypatch):
    """A batch of texts has thousands of them."""
    X = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 2.0]}).astype(pd.SparseDtype(float, 0.0))
    monkeypatch.setattr(pd.Series, "tolist", lambda _: pytest.fail("all rows of a sparse column were read"))
    assert rows_of_frame(X) == [{"a": 1.0}, {"b": 2.0}]


def test_no_rows_change_nothing():
    X, y = pd.DataFrame({"a": []}), pd.Series([], dtype=bool)
    for model in (Classifier(), Regressor()):
        model.learn_many(X, y)
        assert len(model.predict_many(X)) == 0
        assert not model.model.is_fitted
    assert Classifier().predict_proba_many(X).columns.tolist() == [False, True]


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (Regressor, {"y": [1.0, 2.0, np.nan]}, "y contains a missing value at row 2"),
        (Regressor, {"X": [1.0, np.nan, 2.0]}, "X at row 1: expected a finite number for 'a', got nan"),
        (Classifier, {"X": [1.0, 2.0, np.inf]}, "X at row 2: expected a finite number for 'a', got inf"),
        (Classifier, {"y": pd.Series([True, None, False], dtype="boolean")}, "y contains a missing value at row 1"),
        (Classifier, {"y": [True, False, 2]}, "y holds the class 2 at row 2"),
        (Classifier, {"w": [1.0, -1.0, 1.0]}, "w must not be negative, got -1 at row 1"),
        (Classifier, {"y": ["no", "yes", "other"]}, "y holds the class 'other' at row 2; .* Name all with classes="),
        (Classifier, {"y": ["no", "yes", "no"], "X": [1.0, 2.0, np.nan]}, "X at row 2: expected a finite number"),
    ],
)
def test_a_first_batch_with_a_wrong_row_is_named_by_its_place_and_begins_no_model(make, wrong, message):
    given = {"X": [1.0, 2.0, 3.0], "y": [True, False, True], "w": 1.0} | wrong
    model = make()
    if given["y"][0] == "no":
        model.learn_one({"a": 5.0}, "no")
    with pytest.raises(ValueError, match=message):
        model.learn_many(
            pd.DataFrame({"a": given["X"]}), pd.Series(given["y"], dtype=getattr(given["y"], "dtype", object)), given["w"]
        )
    assert not model.model.is_fitted
    model.learn_one({"a": 1.0}, 0 if make is Regressor else "yes" if given["y"][0] == "no" else True)
    assert model.model.t_ == (2 if given["y"][0] == "no" else 1)


def test_a_second_class_that_is_refused_leaves_the_rows_that_wait():
    model = Classifier()
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series(["no", "no"]))
    with pytest.raises(ValueError, match="got inf"):
        model.learn_one({"b": np.inf}, "yes")
    assert model.predict_proba_one({"a": 1.0}) == {"no": 1.0}
    model.learn_many(pd.DataFrame({"a": [3.0]}), pd.Series(["yes"]))
    assert model.model.t_ == 3
    assert model.model.get_feature_names_out().tolist() == ["a"]


def test_the_only_class_so_far_is_pythons():
    for label in (np.str_("no"), np.int64(3), np.float64(0.5)):
        model = Classifier()
        model.learn_one({"a": 1.0}, label)
        assert type(model.predict_one({})) is type(label.item())
        assert [type(known) for known in model.predict_proba_one({})] == [type(label.item())]


@pytest.mark.parametrize("classes", [[], ["a"], ["a", "a"], "ab", 3, ["a", 1], ["a", None]], ids=repr)
def test_wrong_classes_are_refused_before_the_first_row_too(classes):
    model = Classifier(classes=classes)
    for call in (model.predict_one, model.predict_proba_one, lambda x: model.learn_one(x, "a"), lambda x: model._multiclass):
        with pytest.raises(ValueError, match="class"):
            call({"x": 1.0})


def test_a_loss_without_probabilities_says_so_in_rivers_words():
    model = Classifier(**HINGE)
    for _ in range(2):
        for call in (lambda: model.predict_proba_one({"a": 1.0}), lambda: model.predict_proba_many(pd.DataFrame({"a": [1.0]}))):
            with pytest.raises(NotImplementedError, match="loss='hinge' gives no probabilities"):
                call()
        assert model.predict_one({"a": 1.0}) in (False, True)
        model.learn_one({"a": 1.0}, True)


def test_a_label_without_a_hash_is_no_class():
    model = Classifier()
    model.learn_one({"a": 1.0}, True)
    for label in ([1], ([1],)):
        with pytest.raises(ValueError, match=r"y is the class .*\[1\].*; the known classes are False, True"):
            model.learn_one({"a": 1.0}, label)


@pytest.mark.parametrize("model", [Classifier(), Regressor()], ids=["classes", "numbers"])
def test_a_setting_that_changes_is_followed_before_the_first_row_and_refused_after_it(model):
    model = model.clone()
    model.loss = loss = "logistic" if isinstance(model, Classifier) else "squared"
    assert model.model.loss == loss
    model.learn_one({"a": 1.0}, 1)
    model.learn_one({"a": 2.0}, 0)
    model.forget = 10.0
    with pytest.raises(ValueError, match=r"the model was begun with forget=None, .* forget is now 10\.0"):
        model.learn_one({"a": 1.0}, 1)
    model.forget = None
    model.learn_one({"a": 1.0}, 1)
    assert model.model.t_ == 3
    if isinstance(model, Classifier):
        model.classes = None
        with pytest.raises(ValueError, match=r"begun with classes=None, .* got \[0, 1, 2\]: make a new one"):
            model.classes = [0, 1, 2]
        assert model.classes is None


def test_wrong_batches_are_refused_and_teach_nothing():
    X, y = pd.DataFrame({"a": [1.0, 2.0, 3.0]}), pd.Series([True, False, True])
    model = Classifier()
    model.learn_many(X, y)
    held = model.model.coef_.copy(), model.model.t_
    with pytest.raises(ValueError, match=r"X has 3 rows, y 2\."):
        model.learn_many(X, y[:2])
    with pytest.raises(ValueError, match="y must be an array of targets"):
        model.learn_many(X, None)
    with pytest.raises(TypeError, match="X must be a pandas DataFrame, got ndarray"):
        model.learn_many(X.to_numpy(), y)
    with pytest.raises(ValueError, match="X has two columns 'a'"):
        model.learn_many(pd.DataFrame([[1.0, 2.0]] * 3, columns=["a", "a"]), y)
    with pytest.raises(ValueError, match="two names whose text is '0'"):
        model.learn_many(pd.DataFrame([[1.0, 2.0]] * 3, columns=[0, "0"]), y)
    with pytest.raises(ValueError, match="nan"):
        model.learn_many(pd.DataFrame({"a": [1.0, float("nan"), 3.0], "new": 1.0}), y)
    with pytest.raises(ValueError, match=r"Name all with classes=\["):
        model.learn_many(X, pd.Series([True, 2, 3]))
    assert model.model.coef_.tobytes() == held[0].tobytes()
    assert model.model.t_ == held[1]
