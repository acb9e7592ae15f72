"""The wrappers for River pass River's own checks of linear models."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

checks = pytest.importorskip("river.checks", reason="River is not installed: pip install onlinear[river]")
from river import datasets, feature_extraction, linear_model, metrics, preprocessing, stream  # noqa: E402
from river import evaluate as progressive  # noqa: E402

from onlinear.river import Classifier, Regressor  # noqa: E402

PAGE = Path(__file__).parent.parent / "docs" / "one-by-one.md"
FTRL = {"solver": "ftrl", "average": "none"}
MODELS = [Classifier(), Classifier(penalty="l1=1e-4"), Classifier(**FTRL), Regressor(), Regressor("huber", solver="ftrl")]
ALWAYS = (MODELS[0], MODELS[3])  # for which checks that take seconds are made in every run
LONG = "check_bounded_memory_growth"
CASES = [
    pytest.param(
        model,
        check,
        id=f"{type(model).__name__}-{model.solver}-{check.__name__}",
        marks=pytest.mark.exhaustive if check.__name__ == LONG and model not in ALWAYS else (),
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
