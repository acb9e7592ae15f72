"""``passes="auto"``: rows that are held out say how many passes few rows are worth, and how sure their model may be."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from seldom import seldom
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import log_loss

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning, load, streams
from onlinear.rows import Rows, read
from onlinear.training import few_rows
from onlinear.training.copies import kinds_of, marks_of
from onlinear.training.few_rows import COUNTS, MOST_PASSES

pytestmark = pytest.mark.filterwarnings("ignore:The loss was still falling")


def classes(n=120, d=5, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + noise * rng.standard_normal(n) > 0.0, 1, -1)


def rows_of(X) -> Rows:
    return read(X, "X").stored().data


def numbers(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, X @ [1.0, -2.0, 0.0, 0.5] + rng.standard_normal(n)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("logistic", "none"),
        ("logistic", "l1=1e-3"),
        ("softmax", "none"),
        seldom("softmax", "l1=1e-3"),
        ("hinge", "none"),
        seldom("hinge", "l1=1e-3"),
        seldom("modified-huber", "none"),
        seldom("modified-huber", "l1=1e-3"),
    ],
)
def test_the_model_is_that_of_so_many_passes_times_its_slope(loss, penalty):
    X, y = load_iris(return_X_y=True)
    for labels in (y, y % 2):
        auto = OnlineClassifier(loss, penalty=penalty, passes="auto", random_state=3).fit(X, labels)
        assert auto.n_iter_ in (*COUNTS, MOST_PASSES)
        assert auto.t_ == auto.n_iter_ * len(y) == auto.learner_.total
        same = OnlineClassifier(loss, penalty=penalty, passes=max(2, auto.n_iter_), random_state=3).fit(X, labels)
        slope = auto.learner_.calibration_slope
        assert (slope != 1.0) == (penalty == "none" and loss in ("logistic", "softmax"))
        if auto.n_iter_ > 1:
            np.testing.assert_allclose(auto.coef_, slope * same.coef_, rtol=1e-12)


@pytest.mark.parametrize(("rows", "most"), [(2, 100), (9, 100), (11, 100), (2_500, 40), (19_999, 6), (20_000, 1), (25_000, 1)])
def test_few_rows_are_learned_100_000_times_at_most(rows, most):
    X, y = classes(rows)
    y[:2] = -1, 1
    found = OnlineClassifier(passes="auto", random_state=0).fit(X, y).n_iter_
    assert found <= most
    if most == 1:
        assert found == 1


def test_too_few_rows_to_be_dealt_are_learned_as_often_as_may_be():
    """Where scores are no probabilities, of which few rows would be too sure."""
    X, y = classes(9)
    assert OnlineClassifier("hinge", passes="auto").fit(X, y).n_iter_ == MOST_PASSES
    assert OnlineRegressor(passes="auto").fit(X, X[:, 0]).n_iter_ == MOST_PASSES


@pytest.mark.parametrize(("n", "most"), [(2, 1.8), (3, 1.4), seldom(4, 1.4), seldom(6, 1.4), (10, 1.4)])
def test_very_few_rows_are_not_sure_of_their_classes(n, most):
    """All may be right by luck. A hundred passes over six rows have four times the log loss of a constant."""
    found, constant = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n + 300, 3))
        y = (X @ rng.standard_normal(3) + rng.standard_normal(n + 300) > 0.0).astype(int)
        y[:2] = 0, 1
        model = OnlineClassifier(passes="auto", random_state=0).fit(X[:n], y[:n])
        found.append(log_loss(y[n:], model.predict_proba(X[n:])))
        constant.append(log_loss(y[n:], np.full(300, y[:n].mean())))
    assert np.mean(found) < most * np.mean(constant)


@pytest.mark.parametrize("shuffle", [None, False])
def test_threads_change_no_bit(shuffle):
    X, y = classes(150)
    found = [OnlineClassifier(passes="auto", shuffle=shuffle, random_state=1, n_jobs=jobs).fit(X, y) for jobs in (None, 2, 9)]
    assert len({(model.n_iter_, model.coef_.tobytes()) for model in found}) == 1


def test_the_other_models_end_with_their_pass_after_an_error(monkeypatch):
    X, y = classes(150)
    learn, passes = few_rows._learn, []

    def failing(learner, rows, which):
        passes.append(learner)
        if len(passes) == 7:
            raise KeyboardInterrupt
        learn(learner, rows, which)

    monkeypatch.setattr(few_rows, "_learn", failing)
    model = OnlineClassifier(passes="auto", n_jobs=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(passes) <= 8  # the other thread was in a pass
    assert not hasattr(model, "learner_")


def test_noise_is_not_learned_by_heart():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((500, 20)), rng.integers(2, size=500)
        held = X[200:], y[200:]
        auto, most = (OnlineClassifier(passes=p, random_state=0).fit(X[:200], y[:200]) for p in ("auto", 100))
        found = [log_loss(held[1], model.predict_proba(held[0])) for model in (auto, most)]
        assert found[0] < 1.03 * np.log(2.0) < found[1]


def test_probabilities_of_few_rows_are_neither_too_sure_nor_too_cautious():
    """A hundred passes over few rows are too sure of noise, and one over separable rows is too cautious."""
    X, y = make_classification(600, 60, n_informative=5, flip_y=0.1, random_state=1)
    found = {
        passes: log_loss(y[200:], OnlineClassifier(passes=passes, random_state=0).fit(X[:200], y[:200]).predict_proba(X[200:]))
        for passes in ("auto", 1, 100)
    }
    assert found["auto"] < min(1.02 * found[1], 0.9 * found[100])
    X, y = load_iris(return_X_y=True)
    auto, one = (OnlineClassifier(passes=p, random_state=0).fit(X[::2], y[::2]) for p in ("auto", 1))
    held = y[1::2]
    assert log_loss(held, auto.predict_proba(X[1::2])) < 0.6 * log_loss(held, one.predict_proba(X[1::2]))


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_copies_of_a_row_are_held_out_together(task):
    """Else a row is scored by a model that has learned it, and the most passes win."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 30))
    X[np.abs(X) < 0.3] = 0.0
    if task == "classes":
        make, y = OnlineClassifier, rng.integers(2, size=40)
    else:
        make, y = OnlineRegressor, rng.standard_normal(40)
    once = make(passes="auto", random_state=0).fit(X, y)
    often, labels = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    found = [make(passes="auto", random_state=0).fit(kind(often), labels) for kind in (np.array, sp.csc_array)]
    assert max(found[0].n_iter_, once.n_iter_) <= 10
    for other in (*found[1:], make(passes="auto", random_state=0).fit(pd.DataFrame(often), labels)):
        np.testing.assert_array_equal(other.coef_, found[0].coef_)


def test_copies_are_rows_of_the_same_entries_and_targets():
    X, y = classes(103)
    marks, y = marks_of(rows_of(X)), y[:, None].astype(float)
    assert len(np.unique(marks)) == 103
    assert len(np.unique(kinds_of(marks, y, 20))) == 103
    pairs, kinds = np.repeat(marks[:50], 2), np.repeat(np.argsort(np.argsort(marks[:50])), 2)
    np.testing.assert_array_equal(kinds_of(pairs, np.repeat(y[:50], 2, axis=0), 20), kinds)
    alternate = np.tile([[1.0], [-1.0]], (50, 1))
    assert len(np.unique(kinds_of(pairs, alternate, 20))) == 100  # the rows of a few categories
    assert len(np.unique(kinds_of(np.repeat(marks[:1], 100), np.ones((100, 1)), 20))) == 100  # all rows are alike


def test_marks_are_those_of_the_entries():
    X = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    marks = marks_of(rows_of(X))
    assert len(np.unique(marks)) == 5
    assert marks[0] == marks[1]
    np.testing.assert_array_equal(marks_of(rows_of(X.astype(np.float32))), marks)


def test_rows_that_are_all_alike_are_asked_too():
    X, y = np.ones((60, 2)), np.tile([0, 1, 1], 20)
    for labels in (y, np.r_[0, np.ones(59)]):
        model = OnlineClassifier(passes="auto", random_state=0).fit(X, labels)
        assert abs(model.predict_proba(X[:1])[0, 1] - labels.mean()) < 0.05


@pytest.mark.parametrize("make", [OnlineClassifier, OnlineRegressor])
def test_every_container_has_the_same_passes_and_weights(make):
    X, y = classes() if make is OnlineClassifier else numbers()
    X[np.abs(X) < 0.3] = 0.0
    frame = pd.DataFrame(X, columns=list("abcdefgh")[: X.shape[1]])
    wanted = make(passes="auto", shuffle=False).fit(X, y)
    for given in (sp.csc_array(X), frame):
        found = make(passes="auto", shuffle=False).fit(given, y)
        assert found.n_iter_ == wanted.n_iter_
        np.testing.assert_array_equal(found.coef_, wanted.coef_)
    streamed = make(passes="auto").fit(streams.open(frame.assign(y=y), target="y"))
    assert streamed.n_iter_ == wanted.n_iter_
    np.testing.assert_array_equal(streamed.coef_, wanted.coef_)


def test_a_table_with_text_and_a_stream_are_asked_too():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(wide=np.where(X[:, 1] > 3.0, "yes", "no"))
    table = OnlineClassifier(passes="auto", random_state=0).fit(frame, y)
    stream = OnlineClassifier(passes="auto").fit(streams.open("iris"), classes=[0, 1, 2])
    for model in (table, stream):
        assert model.n_iter_ > 1
        assert model.learner_.calibration_slope > 1.0
    assert table.score(frame, y) > 0.93
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    once = OnlineClassifier(passes="auto").fit(iter(blocks), classes=[0, 1, 2])
    assert once.n_iter_ == 1
    np.testing.assert_array_equal(once.coef_, OnlineClassifier().fit(blocks, classes=[0, 1, 2]).coef_)
    again, arrays = OnlineClassifier(passes="auto"), OnlineClassifier(passes="auto", shuffle=False).fit(X, y)
    np.testing.assert_array_equal(again.fit(blocks, classes=[0, 1, 2]).coef_, arrays.coef_)


@pytest.mark.parametrize(("rows", "few"), [(300, True), (19_999, True), (20_000, False), (30_000, False)])
def test_a_file_is_read_until_its_rows_are_many(tmp_path, rows, few):
    X, y = classes(rows, d=2)
    file = tmp_path / "rows.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(file, index=False)
    stream = streams.open(file, target="y")
    assert stream.rows is None
    found = OnlineClassifier(passes="auto").fit(stream)
    assert (found.n_iter_ > 1) <= few
    assert found.t_ == found.n_iter_ * rows
    wanted = OnlineClassifier(passes="auto", shuffle=False).fit(X, y)
    assert found.n_iter_ == wanted.n_iter_
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


def test_class_weights_and_weights_of_rows_count():
    X, y = classes(noise=3.0)
    weights = np.where(np.arange(len(y)) < 60, 1.0, 0.0)
    weighted = OnlineClassifier(passes="auto", random_state=0).fit(X, y, sample_weight=weights)
    scaled = OnlineClassifier(passes="auto", random_state=0).fit(X, y, sample_weight=1e6 * weights)
    assert weighted.n_iter_ == scaled.n_iter_
    y[60:] = 1  # rows without weight decide nothing
    y[60:90] = -1
    assert OnlineClassifier(passes="auto", random_state=0).fit(X, y, sample_weight=weights).n_iter_ in (*COUNTS, MOST_PASSES)
    assert OnlineClassifier(passes="auto", class_weight="balanced").fit(X, y).n_iter_ in (*COUNTS, MOST_PASSES)


def test_rows_of_no_weight_are_no_rows_that_tell(monkeypatch):
    X, y = classes(12)
    more, others = classes(300, seed=1)
    seen = []
    judge = few_rows._judge
    monkeypatch.setattr(few_rows, "_judge", lambda learner, *of: [seen.append(len(of[2])), judge(learner, *of)][1])
    weights = np.where(np.arange(312) < 12, 2.0, 0.0)
    found = OnlineClassifier(passes="auto", random_state=0).fit(np.vstack([more, X])[::-1], np.r_[others, y][::-1], weights)
    assert set(seen) == {12}
    alone = OnlineClassifier(passes="auto", random_state=0).fit(X[::-1], y[::-1], weights[:12])
    assert np.abs(np.log(found.learner_.calibration_slope / alone.learner_.calibration_slope)) < 1.5
    few = OnlineRegressor("absolute", passes="auto").fit(more, more[:, 0], np.where(np.arange(300) < 9, 1.0, 0.0))
    assert few.n_iter_ == MOST_PASSES  # fewer rows than are dealt


def test_rows_of_no_weight_or_a_huge_one_are_no_error():
    X, y = classes()
    for weight in (1e-140, 1e100):
        blocks = [(X, y, np.full(len(y), weight))]
        assert OnlineClassifier(passes="auto").fit(blocks, classes=[-1, 1]).n_iter_ in {*COUNTS, MOST_PASSES}
    with pytest.warns(QualityWarning, match="Every row has the weight 0"):
        assert OnlineClassifier(passes="auto").fit([(X, y, np.zeros(len(y)))], classes=[-1, 1]).n_iter_ == 1
    with pytest.warns(QualityWarning, match="weights of all rows are so small"):
        OnlineClassifier(passes="auto").fit([(X, y, np.full(len(y), 1e-300))], classes=[-1, 1])


def test_the_unit_of_an_output_decides_nothing():
    X, y = numbers()
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(len(y))
    for units in ((1e6, 1.0), (1.0, 1e6)):
        found = OnlineRegressor(passes="auto", random_state=0).fit(X, np.column_stack([y, noise]) * units)
        assert found.n_iter_ == OnlineRegressor(passes="auto", random_state=0).fit(X, np.column_stack([y, noise])).n_iter_


def test_the_slope_stays_with_the_model(tmp_path):
    X, y = classes()
    model = OnlineClassifier(passes="auto", random_state=0).fit(X, y)
    slope = model.learner_.calibration_slope
    assert slope != 1.0
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(*classes(seed=1))
        assert each.learner_.calibration_slope == slope
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    one = model.predict_proba_one((np.arange(X.shape[1]), X[0]))
    np.testing.assert_allclose(list(one.values()), model.predict_proba(X[:1])[0], rtol=1e-12)


def test_the_generator_of_the_model_is_drawn_from_for_its_own_passes_alone():
    X, y = classes()
    auto, fixed = np.random.default_rng(5), np.random.default_rng(5)
    found = OnlineClassifier(passes="auto", random_state=auto).fit(X, y)
    OnlineClassifier(passes=found.n_iter_, random_state=fixed).fit(X, y)
    assert auto.bit_generator.state == fixed.bit_generator.state
    frame = pd.DataFrame(X).rename(columns=str).assign(text="a")
    auto, fixed = np.random.default_rng(5), np.random.default_rng(5)
    found = OnlineClassifier(passes="auto", random_state=auto).fit(frame, y)
    OnlineClassifier(passes=found.n_iter_, random_state=fixed).fit(frame, y)
    assert auto.bit_generator.state == fixed.bit_generator.state


@pytest.mark.parametrize("settings", [{"average": "suffix,alpha=0.5"}, {"solver": "epoch-gd", "penalty": "l2=0.1"}])
def test_where_the_number_of_rows_must_be_known_it_is_that_of_the_most_passes(settings):
    X, y = classes()
    model = OnlineClassifier("hinge", passes="auto", random_state=0, **settings).fit(X, y)
    if "average" in settings:
        assert model.n_iter_ == 100
    assert model.t_ == model.n_iter_ * len(y)


@pytest.mark.filterwarnings("ignore::onlinear.QualityWarning")
def test_passes_that_diverge_are_not_chosen():
    X, y = numbers()
    settings = {"solver": "sgd,eta=4,schedule=constant", "scale": "none", "average": "none", "clip": False}
    found = OnlineRegressor(passes="auto", random_state=0, **settings)
    with suppress(ArithmeticError):
        found.fit(1e3 * X, y)
    assert not hasattr(found, "n_iter_") or found.n_iter_ == 1


def test_standard_scales_are_those_of_all_rows():
    X, y = classes()
    model = OnlineClassifier(passes="auto", scale="standard", random_state=0).fit(1e3 * X + 5e4, y)
    same = OnlineClassifier(passes="auto", scale="standard", random_state=0).fit(X, y)
    assert model.n_iter_ == same.n_iter_
    np.testing.assert_allclose(1e3 * model.coef_, same.coef_, rtol=1e-8)


def test_what_else_passes_may_be():
    X, y = classes()
    with pytest.raises(ValueError, match="at least 1, or 'auto'"):
        OnlineClassifier(passes="all").fit(X, y)
