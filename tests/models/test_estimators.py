"""OnlineClassifier and OnlineRegressor: what they add to Learner, and that they add nothing else."""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from seldom import seldom
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from onlinear import (
    DivergenceError,
    Learner,
    ModelFileError,
    OnlineClassifier,
    OnlineRegressor,
    PenaltyPath,
    load,
    shards,
    streams,
)
from onlinear.files import model_file
from onlinear.losses import Hinge
from onlinear.models.arguments import make_generator
from onlinear.streams.pairs import Pairs
from onlinear.text.hints import MISSING_IN_TABLE
from onlinear.training.few_rows import order_of

SOLVER = "comid,eta=0.5"
PENALTY = "elastic-net,l1=1e-3,l2=1e-3"


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    X = sp.random(90, 11, 0.4, "csr", None, rng, rng.standard_normal)
    y = np.where(X @ rng.standard_normal(11) + 0.3 * rng.standard_normal(90) > 0.0, "yes", "no")
    return X, y


@pytest.fixture
def three():
    return load_iris(return_X_y=True)


def same(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)


def classifier(**params):
    return OnlineClassifier(**({"solver": SOLVER, "penalty": PENALTY, "shuffle": False} | params))


BARE = {"average": "none", "scale": "none"}  # as Learner is


# --- passes, order, chunks -------------------------------------------------------------------------------------------


def test_partial_fit_in_pieces_is_one_fit_bit_for_bit(rows):
    X, y = rows
    for params in ({}, {"average": "weighted-t1", "scale": "rms"}, {"solver": None, "penalty": "none"}):
        whole, pieces = classifier(**params).fit(X, y), classifier(**params)
        for first in range(0, 90, 13):
            pieces.partial_fit(X[first : first + 13], y[first : first + 13], classes=["no", "yes"])
        same(whole, pieces)
        assert pieces.t_ == whole.t_ == 90


@pytest.mark.parametrize("shuffle", [True, "replacement"])
def test_shuffled_passes_are_learn_over_the_drawn_rows(rows, shuffle):
    X, y = rows
    model = classifier(shuffle=shuffle, passes=3, random_state=5, **BARE).fit(X, y)
    learner = Learner(SOLVER, "logistic", PENALTY, fit_intercept=True, n_features=11)
    draw = np.random.default_rng(5)
    for _ in range(3):
        order = draw.permutation(90) if shuffle is True else draw.integers(90, size=90)
        learner.learn(X[order], np.where(y[order] == "yes", 1.0, -1.0))
    np.testing.assert_array_equal(model.coef_[0], learner.weights())
    assert model.intercept_[0] == learner.intercept()
    assert (model.t_, model.n_iter_) == (270, 3)


UNEVEN = [0, 3, 11, 1, 0, 0, 7, 2, 11, 4]  # entries of rows, which then come again
KINDS_OF_ROWS = {
    "CSR": sp.csr_matrix,
    "CSC": sp.csc_matrix,
    "float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "dense": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
}
LEARNED_ANYWHERE = {
    "bare": BARE,
    "scaled in the loop": {"scale": "rms", "average": "weighted-t1", "solver": "fiol,eta=2", "penalty": "none"},
    "scaled before": {"scale": "max-abs", "solver": "fiol,eta=2", "average": "none"},
    "no penalty": {"penalty": "none", "solver": "sgd,eta=0.1", "scale": "none", "average": "uniform"},
    "ftrl": {"solver": "ftrl", "scale": "none", "average": "uniform"},
    "keeps its last row": {"solver": "sadmm", "scale": "none"},
    "adaptive": {},
}


EACH_SINGLE = ("bare", "scaled in the loop")  # rows of float32 have kernels of their own


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        seldom(kind, name) if kind == "float32" and name not in EACH_SINGLE else (kind, name)
        for name in LEARNED_ANYWHERE
        for kind in KINDS_OF_ROWS
    ],
)
def test_shuffled_rows_of_any_kind_are_learned_as_rows_stored_in_that_order(kind, name, zeros, monkeypatch):
    make, params = KINDS_OF_ROWS[kind], LEARNED_ANYWHERE[name]
    monkeypatch.setattr("onlinear.models.feed.ROWS", 16)
    monkeypatch.setattr("onlinear.models.feed.TAKEN", 40)
    monkeypatch.setattr("onlinear.rows.records.PERMUTED", 9)  # shorter than some rows
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 11)).astype(np.float32).astype(float)
    if zeros:
        X[np.arange(11) >= np.resize(UNEVEN, 90)[:, None]] = 0.0
    y = np.where(X @ rng.standard_normal(11) + 0.3 * rng.standard_normal(90) > 0.0, "yes", "no")
    weights = rng.integers(0, 3, 90).astype(float)
    order = np.random.default_rng(4).permutation(90)
    found = classifier(**params, shuffle=True, random_state=4).fit(make(X), y, sample_weight=weights)
    stored = classifier(**params).fit(make(X[order]), y[order], sample_weight=weights[order])
    same(found, stored)


def test_shuffle_none_is_the_solvers_own_habit(rows):
    X, y = rows
    for solver, shuffle in ((SOLVER, True), ("sdrs", "replacement"), ("odrs", True), (None, True)):
        a = classifier(solver=solver, shuffle=None, random_state=1).fit(X, y)
        same(a, classifier(solver=solver, shuffle=shuffle, random_state=1).fit(X, y))


def test_fit_knows_how_many_steps_there_will_be(rows):
    X, y = rows
    model = classifier(average="suffix", passes=2).fit(X, y)
    same(model, classifier(average="suffix,alpha=0.5,total=180", passes=2).fit(X, y))
    squared = {"loss": "squared", "penalty": "none", "passes": 2}
    same(classifier(solver="csgd,eta=0.1", **squared).fit(X, y), classifier(solver="csgd,eta=0.1,m=90", **squared).fit(X, y))
    with pytest.raises(ValueError, match="total"):
        classifier(average="suffix").partial_fit(X, y, classes=["no", "yes"])


def test_fit_starts_anew_and_partial_fit_goes_on(rows):
    X, y = rows
    model = classifier().fit(X, y)
    coef = model.coef_
    np.testing.assert_array_equal(model.fit(X, y).coef_, coef)
    model.partial_fit(X, y)
    same(model, classifier(passes=2).fit(X, y))


# --- layouts and frames ----------------------------------------------------------------------------------------------


def test_layouts_give_the_same_bits(rows):
    X, y = rows
    model = classifier(scale="rms", average="uniform").fit(X, y)
    stored = sp.csr_array(X, copy=True)
    stored.data[:5] = 0.0
    for Z in (X.toarray(), sp.csc_array(X), sp.coo_matrix(X), np.asfortranarray(X.toarray()), sp.csr_matrix(X).tocsc()):
        other = classifier(scale="rms", average="uniform").fit(Z, y)
        same(model, other)
        np.testing.assert_array_equal(model.decision_function(X), other.decision_function(Z))
    same(classifier().fit(stored, y), classifier().fit(stored.toarray(), y))
    narrow = X.astype(np.float32)
    same(classifier().fit(narrow, y), classifier().fit(narrow.astype(np.float64), y))
    same(classifier(passes=2).fit(X.toarray(), y), classifier(passes=2).fit(X, y))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_name_their_columns(frame):
    data = load_iris()
    names = [f"c{k}" for k in range(4)]
    X = frame(dict(zip(names, data.data.T, strict=True)))
    model = OnlineClassifier(random_state=0).fit(X, data.target)
    same(model, OnlineClassifier(random_state=0).fit(data.data, data.target))
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[names[::-1]])


def test_labels_of_any_kind(rows):
    X, y = rows
    for labels in (y, y.astype(object), pd.Series(y), np.where(y == "yes", 7, 3), np.where(y == "yes", 4.0, -2.0), y == "yes"):
        model = classifier().fit(X, labels)
        assert set(model.predict(X)) <= set(labels)
        np.testing.assert_array_equal(model.coef_, classifier().fit(X, y).coef_)


# --- classes and weights ---------------------------------------------------------------------------------------------


def test_logistic_takes_several_classes_one_against_the_rest(three):
    X, y = three
    settings = {"random_state": 0, "passes": 2, "average": "none", "scale": "none"}
    model = OnlineClassifier("logistic", **settings).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (150, 3)
    for k in range(3):
        one = OnlineClassifier(**settings).fit(X, y == k)
        np.testing.assert_array_equal(one.coef_[0], model.coef_[k])
    np.testing.assert_array_equal(model.predict(X), np.argmax(model.decision_function(X), axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_adaline_has_targets_one_and_zero_for_several_classes(three):
    X, y = three
    for solver, low in (("adaline,eta=0.01", 0.0), ("c-adaline,eta=0.01", 0.0), ("ncsgd,eta=0.01", -1.0)):
        model = OnlineClassifier("squared", solver=solver, shuffle=False).fit(X, y)
        learner = Learner(solver, "squared", fit_intercept=True, n_features=4, n_outputs=3)
        learner.learn(X, np.where(y[:, None] == np.arange(3), 1.0, low))
        np.testing.assert_array_equal(model.coef_, learner.weights(average=True).T)
    two = OnlineClassifier("squared", solver="adaline,eta=0.01", shuffle=False).fit(X[:100], y[:100])
    learner = Learner("adaline,eta=0.01", "squared", fit_intercept=True, n_features=4).learn(X[:100], 2.0 * y[:100] - 1.0)
    np.testing.assert_array_equal(two.coef_[0], learner.weights())


def test_class_weights_multiply_sample_weights(rows):
    X, y = rows
    given = np.random.default_rng(0).uniform(0.0, 2.0, 90)
    both = given * np.where(y == "yes", 3.0, 0.5)
    weighted = classifier(class_weight={"yes": 3.0, "no": 0.5})
    same(weighted.fit(X, y, sample_weight=given), classifier().fit(X, y, sample_weight=both))
    pieces = clone(weighted)
    for part in (slice(0, 40), slice(40, 90)):
        pieces.partial_fit(X[part], y[part], classes=["no", "yes"], sample_weight=given[part])
    same(weighted, pieces)


def test_weights_whose_product_is_infinite_are_told_as_that(tmp_path):
    X, y, s = np.ones((3, 1)), [0, 1, 1], [1.0, 1.0, 1e200]
    model = OnlineClassifier(class_weight={1: 1e200})
    said = "expected a finite weight, got 1e.200 of the row times 1e.200 of class_weight"
    with pytest.raises(ValueError, match=said):
        model.fit(X, y, sample_weight=s)
    with pytest.raises(streams.StreamError, match=f"block 1:3: {said}"):
        model.fit([(X, y, s)], classes=[0, 1])


@pytest.mark.parametrize(("labels", "weights"), [([0, 1, 1], {"1": 2.0, "1.0": 3.0}), (["0", "1", "1"], {1: 2.0, "1": 3.0})])
def test_two_weights_of_a_class_are_refused(labels, weights):
    with pytest.raises(ValueError, match=r"class_weight gives the class 1 two weights\.$"):
        OnlineClassifier(class_weight=weights).fit([(np.ones((3, 1)), labels)], classes=["0", "1"])


@pytest.mark.parametrize("name", [(1, 2), None, b"a", Fraction(1)], ids=str)
def test_names_in_class_weights_that_no_file_keeps_are_refused(rows, name, tmp_path):
    weights = {"yes": 1.0, "no": 2.0}
    model = classifier(class_weight=weights | {3: 1.0}).fit(*rows).set_params(class_weight=weights | {name: 1.0})
    for refused in (lambda: model.fit(*rows), lambda: model.save(tmp_path / "m")):
        with pytest.raises(TypeError, match=r"class_weight must name classes, .* got [\(NbF]"):
            refused()
    assert not (tmp_path / "m").exists()


def test_balanced_class_weights_need_fit(rows):
    X, y = rows
    share = dict(zip(["no", "yes"], compute_class_weight("balanced", classes=np.array(["no", "yes"]), y=y), strict=True))
    same(classifier(class_weight="balanced").fit(X, y), classifier(class_weight=share).fit(X, y))
    with pytest.raises(ValueError, match="compute_class_weight"):
        classifier(class_weight="balanced").partial_fit(X, y, classes=["no", "yes"])


def test_probabilities_exist_where_the_loss_defines_them(rows):
    X, y = rows
    for loss in ("logistic", "exponential", "modified-huber"):
        model = classifier(loss=loss, solver="fiol").fit(X, y)
        s, p = model.decision_function(X), model.predict_proba(X)
        want = {"logistic": 1 / (1 + np.exp(-s)), "exponential": 1 / (1 + np.exp(-2 * s))}.get(
            loss, (np.clip(s, -1, 1) + 1) / 2
        )
        np.testing.assert_allclose(p[:, 1], want, atol=1e-15)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), atol=1e-9)
        if loss == "logistic":  # where the probability itself is 0
            far = 1000.0 * X
            np.testing.assert_allclose(model.predict_log_proba(far)[:, 0], -np.logaddexp(0.0, model.decision_function(far)))
    for loss in ("hinge", "squared-hinge", "squared", "huber", "no-such-loss"):
        assert not hasattr(classifier(loss=loss), "predict_proba")
        for name in ("predict_proba", "predict_log_proba"):
            with pytest.raises(
                AttributeError, match=f"^OnlineClassifier with loss='{loss}' has no {name}: .*loss='logistic'.*Calibrated"
            ):
                getattr(classifier(loss=loss), name)
        assert not hasattr(classifier(loss=loss), "predict_log_proba")


def test_probabilities_of_several_classes_stay_defined_where_all_are_zero(three):
    X, y = three
    model = OnlineClassifier("modified-huber", solver="fiol", average="uniform", scale="none").fit(X, y)
    far = -1e9 * np.sign(model.coef_.sum(axis=0))[None, :]
    assert np.all(np.isfinite(model.predict_proba(far)))
    np.testing.assert_allclose(model.predict_proba(far).sum(), 1.0)


def test_probabilities_that_no_double_holds_are_those_of_the_scores():
    model = load(Path(__file__).parent / "classes.onlinear")  # logistic, one against the rest
    scores = np.array([[-801.0, -900.0, -800.0], [-37.0, -900.0, -36.0], [-12.0, -900.0, -11.0], [1.0, -900.0, 1.0]])
    found, one = model.probabilities_of(scores), 1 / (1 + np.e)
    np.testing.assert_allclose(found, [[one, 0.0, 1 - one]] * 3 + [[0.5, 0.0, 0.5]], rtol=2e-5, atol=1e-15)
    np.testing.assert_array_equal([model.chances_of_row(row) for row in scores], found)


def test_regression_losses_classify_on_signs(rows):
    X, y = rows
    signs = np.where(y == "yes", 1.0, -1.0)
    for loss in ("squared", "absolute", "huber", "epsilon-insensitive", "quantile"):
        model = OnlineClassifier(loss, solver="fiol", shuffle=False, **BARE).fit(X, y)
        other = Learner("fiol", loss, fit_intercept=True).learn(X, signs)
        np.testing.assert_array_equal(model.coef_[0], other.weights())
        assert model.score(X, y) > 0.75


# --- regression ------------------------------------------------------------------------------------------------------


def test_several_targets_are_learnt_together():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -2.0 * y, y**2])
    model = OnlineRegressor(random_state=3).fit(X, Y)
    assert model.coef_.shape == (3, 10)
    assert model.intercept_.shape == (3,)
    assert model.predict(X).shape == (442, 3)
    for k in range(3):
        one = OnlineRegressor(random_state=3, average="adaptive").fit(X, Y[:, k])  # several have no common calibration slope
        np.testing.assert_array_equal(one.coef_, model.coef_[k])
        np.testing.assert_array_equal(one.predict(X), model.predict(X)[:, k])
    column = OnlineRegressor(random_state=3).fit(X, Y[:, :1])
    assert (column.predict(X).shape, column.coef_.shape) == ((442, 1), (1, 10))
    with pytest.raises(ValueError, match="columns"):
        column.partial_fit(X, y)


def test_poisson_predicts_the_mean():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (400, 3))
    y = rng.poisson(np.exp(X @ [1.0, -0.5, 0.2] + 0.4)).astype(float)
    model = OnlineRegressor("poisson", random_state=0, passes=3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.exp(X @ model.coef_ + model.intercept_))
    assert np.all(model.predict(X) > 0.0)
    assert np.corrcoef(model.predict(X), np.exp(X @ [1.0, -0.5, 0.2] + 0.4))[0, 1] > 0.95
    with pytest.raises(ValueError, match="0 or more"):
        model.fit(X, y - 5.0)


def test_the_default_regression_follows_the_targets_scale():
    X, y = load_diabetes(return_X_y=True)
    a, b = OnlineRegressor(random_state=0).fit(X, y), OnlineRegressor(random_state=0).fit(X, 2.0**20 * y)
    np.testing.assert_allclose(b.predict(X), 2.0**20 * a.predict(X), rtol=1e-9)


# --- scales and batch solvers ----------------------------------------------------------------------------------------


def test_standard_scale_is_learning_standardised_columns():
    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack([1e4 + 50.0 * X, np.full(len(X), 3.1)])
    model = OnlineRegressor(solver="fiol", scale="standard", random_state=0).fit(X, y)
    piped = make_pipeline(StandardScaler(), OnlineRegressor(solver="fiol", scale="none", random_state=0)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), piped.predict(X), rtol=1e-8)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match="scale='rms'"):
        OnlineRegressor(scale="standard").fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="use fit"):
        OnlineRegressor(scale="standard").partial_fit(X, y)


def test_a_batch_solver_solves(rows):
    X, y = rows
    model = OnlineClassifier(penalty="l2,l2=0.01", solver="batch-drs", passes=500).fit(X, y)
    want = LogisticRegression(C=1 / (0.01 * 90), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-4)
    assert model.n_iter_ == 500
    with pytest.raises(ValueError, match="use fit"):
        model.partial_fit(X, y)
    told = []
    ridge = OnlineRegressor(penalty="l2,l2=0.1", solver="batch-drs", passes=300, callbacks=[told.append])
    z = X @ np.arange(11.0)
    ridge.fit(X, z)
    np.testing.assert_allclose(ridge.coef_, Ridge(alpha=9.0).fit(X.toarray(), z).coef_, atol=1e-4)
    assert len(told) == 1


# --- reading ---------------------------------------------------------------------------------------------------------


def test_coef_is_what_predict_uses_and_a_fresh_array(rows):
    X, y = rows
    model = classifier(average="weighted-t1").fit(X, y)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], model.decision_function(X))
    before = model.coef_
    model.coef_[:] = 5.0
    np.testing.assert_array_equal(model.coef_, before)
    assert model.intercept_.shape == (1,)
    assert classifier(fit_intercept=False).fit(X, y).intercept_ == [0.0]


def test_sparsity_of_the_average_and_of_the_last_iterate(rows):
    X, y = rows
    wide = sp.hstack([X, 0.05 * X[::-1]]).tocsr()
    model = classifier(penalty="l1,l1=0.05", average="uniform", scale="none").fit(wide, y)
    assert model.sparsity_ == np.mean(model.coef_ == 0.0)
    assert model.sparsity_last_ > model.sparsity_
    plain = classifier(penalty="l1,l1=0.05", scale="none").fit(wide, y)
    assert plain.sparsity_ == plain.sparsity_last_ == model.sparsity_last_


def test_what_a_model_tells_before_its_first_column():
    model = OnlineClassifier()
    with pytest.raises(NotFittedError):
        model.feature_names_in_  # noqa: B018
    model.learn_one({}, True)
    assert model.coef_.shape == (1, 0)
    assert np.isnan([model.sparsity_, model.sparsity_last_]).all()  # without a warning of NumPy


def test_without_a_solver_an_l1_penalty_leaves_zeros_in_coef(rows):
    X, y = rows
    assert OnlineClassifier(penalty="l1,l1=0.5", random_state=0).fit(X, y).sparsity_ > 0.0
    assert OnlineClassifier().fit(X, y).learner_.average is not None
    assert OnlineClassifier(penalty="l1,l1=0.05", average="weighted-t1").fit(X, y).learner_.average is not None
    named = OnlineClassifier("hinge", solver="asgd").fit(X, y)
    assert (named.learner_.average.growth, named.learner_.scaler.kind) == (0.0, "centred")
    assert OnlineClassifier("hinge", solver="asgd", scale="none").fit(X, y).learner_.scaler is None


def test_unfitted_estimators_say_so(rows):
    methods = (lambda m: m.predict(rows[0]), lambda m: m.score(*rows), lambda m: m.save("never"))
    for read in (*methods, lambda m: m.coef_, lambda m: m.t_):
        with pytest.raises(NotFittedError):
            read(OnlineClassifier())


# --- copies and files ------------------------------------------------------------------------------------------------


class Ours(NamedTuple):
    """A user's own loss."""

    factor: float = 1.0
    labels = "signs"

    def value(self, s: float, y: float) -> float:
        return 0.5 * max(0.0, 2.0 - y * s) ** 2

    def slope(self, s: float, y: float) -> float:
        return -y * max(0.0, 2.0 - y * s)


CONFIGURATIONS = [
    {"solver": None, "penalty": "none"},
    {"average": "weighted-t1", "scale": "max-abs"},
    {"loss": "hinge", "solver": "rda", "average": "uniform"},
    {"loss": "squared", "solver": "rls", "penalty": "none"},
    {"solver": "sadmm", "scale": "rms"},
    {"loss": Ours()},
]


@pytest.mark.parametrize("params", CONFIGURATIONS, ids=str)
def test_copies_go_on_as_the_original(rows, params):
    X, y = rows
    whole = classifier(**params).fit(X, y).partial_fit(X, y)
    model = classifier(**params).fit(X, y)
    by_attributes = object.__new__(OnlineClassifier)  # as skops copies, which calls no __reduce__
    by_attributes.__setstate__(model.__getstate__())
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), by_attributes):
        same(other, model)
        same(other.partial_fit(X, y), whole)
    assert not hasattr(clone(model), "learner_")
    same(model.partial_fit(X, y), whole)


@pytest.mark.parametrize("params", CONFIGURATIONS, ids=str)
def test_a_saved_model_goes_on_byte_for_byte(rows, params, tmp_path):
    X, y = rows
    parts = {"loss": params["loss"]} if isinstance(params.get("loss"), Ours) else {}
    model = classifier(**params).fit(X[:50], y[:50])
    model.save(tmp_path / "half")
    model.partial_fit(X[50:], y[50:]).save(tmp_path / "whole")
    half = load(tmp_path / "half", **parts)
    assert half.get_params() == model.get_params()
    half.partial_fit(X[50:], y[50:]).save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    np.testing.assert_array_equal(half.predict(X), model.predict(X))
    if parts:
        with pytest.raises(ValueError, match="loss="):
            load(tmp_path / "half")


def test_files_keep_classes_names_and_parameters(three, tmp_path):
    X, y = three
    names = np.array(["setosa", "versicolor", "virginica"])
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    weights = {"setosa": 2.0, "versicolor": 1.0, "virginica": 1.0}
    for labels, weight in ((names[y], weights), (names[y].astype(object), "balanced"), (y, None), (2.0 * y, None)):
        model = OnlineClassifier(class_weight=weight, random_state=np.int64(4)).fit(frame, labels)
        model.save(tmp_path / "m")
        other = load(tmp_path / "m")
        assert isinstance(other, OnlineClassifier)
        np.testing.assert_array_equal(other.classes_, model.classes_)
        assert other.classes_.dtype == model.classes_.dtype
        assert other.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.predict_proba(frame), model.predict_proba(frame))
    regressor = OnlineRegressor(random_state=np.random.default_rng(0), callbacks=[print]).set_params(callbacks=None)
    regressor.fit(X, np.column_stack([y, y])).save(tmp_path / "r")
    other = load(tmp_path / "r")
    assert isinstance(other, OnlineRegressor)
    assert other.random_state is None
    np.testing.assert_array_equal(other.predict(X), regressor.predict(X))
    OnlineRegressor(scale="standard").fit(X, y).save(tmp_path / "s")
    assert load(tmp_path / "s").scale == "standard"


def test_a_subclass_with_an_init_of_its_own_is_saved_as_what_it_extends(rows, tmp_path):
    class Mine(OnlineClassifier):
        """It takes other arguments, as its own ``fit`` may need."""

        def __init__(self, strength=1.0, **others):
            super().__init__(solver=SOLVER, l1=strength / 100.0, **others)
            self.strength = strength

    model = Mine(scale="rms").fit(*rows)
    model.save(tmp_path / "m.onlinear")
    found = load(tmp_path / "m.onlinear")
    assert type(found) is OnlineClassifier
    assert (found.l1, found.scale) == (0.01, "rms")
    assert np.array_equal(found.coef_, model.coef_)


def test_files_hold_no_clock_host_or_path(rows, tmp_path):
    X, y = rows
    (tmp_path / "elsewhere").mkdir()
    for name in ("a", "elsewhere/b"):
        classifier().fit(X, y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "elsewhere/b").read_bytes()
    header, _ = model_file.read(tmp_path / "a")
    assert header["kind"] == "classifier"
    assert header["estimator"]["classes"] == ["no", "yes"]


def test_load_gives_learners_too_and_refuses_what_it_does_not_know(rows, tmp_path):
    X, _ = rows
    Learner(SOLVER, "squared").learn(X, np.ones(90)).save(tmp_path / "learner")
    assert isinstance(load(tmp_path / "learner"), Learner)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(ModelFileError):
        load(tmp_path / "text")
    with pytest.raises(ValueError, match="'loss'"):
        load(tmp_path / "learner", los="hinge")


# --- routing, callbacks, progress ------------------------------------------------------------------------------------


def test_sample_weights_are_routed():
    pytest.importorskip("sklearn", "1.8", reason="before scikit-learn 1.8 a Pipeline passes no weights to the score")
    X, y = load_breast_cancer(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    with config_context(enable_metadata_routing=True):
        model = OnlineClassifier(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        found = cross_validate(piped, X, y, params={"sample_weight": weights}, return_estimator=True, cv=3)
        unweighted = cross_validate(make_pipeline(StandardScaler(), model), X, y, return_estimator=True, cv=3)
        model.set_partial_fit_request(sample_weight=True, classes=True)
    assert np.all(found["test_score"] > 0.9)
    assert np.any(found["estimator"][0][-1].coef_ != unweighted["estimator"][0][-1].coef_)


def test_callbacks_are_told_after_each_block_and_change_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20000, 3)), rng.integers(2, size=20000)
    told = []
    model = OnlineClassifier(random_state=0, passes=2, callbacks=[lambda p: told.append((p.rows, p.total, p.loss, p.nonzeros))])
    model.fit(X, y)
    same(model, OnlineClassifier(random_state=0, passes=2).fit(X, y))
    assert [rows for rows, *_ in told] == [8192, 16384, 20000, 28192, 36384, 40000]
    assert {total for _, total, *_ in told} == {40000}
    assert told[-1][2:] == (model.learner_.progressive_loss, np.count_nonzero(model.coef_))
    assert np.all(np.isfinite([loss for _, _, loss, _ in told]))
    told.clear()
    model.partial_fit(X[:10], y[:10])
    assert told[0][:2] == (40010, 40010)
    seen = []
    OnlineRegressor(callbacks=[seen.append]).fit(X, y)
    assert seen[0].estimator.t_ == 20000
    for wrong in ([3], "text", 3):
        with pytest.raises(TypeError, match="callbacks"):
            OnlineRegressor(callbacks=wrong).fit(X, y)


def test_verbose_shows_a_bar_and_changes_nothing(rows, monkeypatch):
    X, y = rows
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    same(classifier(verbose=True, passes=2).fit(X, y), classifier(passes=2).fit(X, y))
    assert "180/180" in shown.getvalue()
    assert "progressive loss" in shown.getvalue()


def test_rich_is_imported_only_when_a_bar_is_shown():
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "import onlinear; onlinear.OnlineClassifier().fit([[1.0], [2.0]], [0, 1])\n"
        "try: onlinear.OnlineClassifier(verbose=True).fit([[1.0], [2.0]], [0, 1])\n"
        "except ImportError: sys.exit(7)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7


# --- bad input -------------------------------------------------------------------------------------------------------

BAD = {
    "NaN in X": (lambda X, y: (np.where(X[3, 2] == X, np.nan, X), y, None), ValueError, "row 3, column 2"),
    "infinity in X": (lambda X, y: (np.where(X[3, 2] == X, np.inf, X), y, None), ValueError, "infinity"),
    "NaN in sparse X": (lambda X, y: (sp.csr_matrix(np.where(X[3, 2] == X, np.nan, X)), y, None), ValueError, "NaN"),
    "text in X": (lambda X, y: (X.astype(str), y, None), TypeError, "text"),
    "text objects in X": (lambda X, y: (X.astype(str).astype(object), y, None), TypeError, "text"),
    "complex X": (lambda X, y: (X + 1j, y, None), ValueError, "Complex"),
    "1-D X": (lambda X, y: (X[:, 0], y, None), ValueError, "2D"),
    "no rows": (lambda X, y: (X[:0], y[:0], None), ValueError, "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y, None), ValueError, "0 feature"),
    "y too short": (lambda X, y: (X, y[:-1], None), ValueError, "inconsistent numbers of samples"),
    "y missing": (lambda X, y: (X, None, None), ValueError, "y"),
    "negative weight": (lambda X, y: (X, y, -np.ones(len(y))), ValueError, "sample_weight must not be negative"),
    "NaN weight": (lambda X, y: (X, y, np.full(len(y), np.nan)), ValueError, "sample_weight contains NaN"),
    "weights too short": (lambda X, y: (X, y, np.ones(3)), ValueError, "sample_weight"),
    "2-D weights": (lambda X, y: (X, y, np.ones((len(y), 2))), ValueError, "1D"),
    "all weights 0": (lambda X, y: (X, y, np.zeros(len(y))), ValueError, "weight"),
    "sparse y": (lambda X, y: (X, sp.csr_matrix(np.ones((len(y), 1))), None), TypeError, "dense"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_bad_input_is_refused_and_leaves_the_model_as_it_was(kind, name):
    spoil, error, message = BAD[name]
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 4)), rng.integers(2, size=30)
    model = kind(random_state=0).fit(X[:, :3], y)
    before, coef = dict(vars(model)), model.coef_
    Z, t, weights = spoil(X, y)
    with pytest.raises(error, match=message):
        model.fit(Z, t, sample_weight=weights)
    assert vars(model) == before
    if name not in ("all weights 0", "no columns"):
        wrong = Z[:, :3] if getattr(Z, "ndim", 0) == 2 else Z
        with pytest.raises(error, match=message):
            model.partial_fit(wrong, t, sample_weight=weights)
    assert vars(model) == before
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.t_ == 30


def test_another_number_of_columns_is_refused(rows):
    X, y = rows
    model = classifier().fit(X, y)
    for call in (lambda Z: model.predict(Z), lambda Z: model.partial_fit(Z, y)):
        for Z in (X[:, :10], sp.hstack([X, X]).tocsr()):
            with pytest.raises(ValueError, match="expecting 11 features"):
                call(Z)


def test_bad_labels_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="one class only"):
        classifier().fit(X, np.full(90, "yes"))
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, np.linspace(0, 1, 90))
    with pytest.raises(ValueError, match="needs classes="):
        classifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        classifier().partial_fit(X, y, classes=["yes"])
    model = classifier().partial_fit(X, y, classes=["no", "yes"])
    before = model.coef_
    with pytest.raises(ValueError, match="differs"):
        model.partial_fit(X, y, classes=["no", "maybe"])
    strange = y.copy().astype(object)
    strange[4] = "maybe"
    with pytest.raises(ValueError, match="'maybe' at row 4"):
        model.partial_fit(X, strange)
    with pytest.raises(ValueError, match="the class 1"):
        model.partial_fit(X, np.ones(90, int))
    with pytest.raises(TypeError, match="y must hold numbers"):
        OnlineRegressor().fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"loss": "logistik"}, ValueError, "'logistic'"),
        ({"loss": "poisson"}, ValueError, "counts"),
        ({"penalty": "l3"}, ValueError, "Known: .*l1, l2"),
        ({"solver": "comit"}, ValueError, "'comid'"),
        ({"solver": "comid,eta=-1"}, ValueError, "eta"),
        ({"average": "mean"}, ValueError, "average"),
        ({"scale": "unit"}, ValueError, "scale"),
        ({"passes": 0}, ValueError, "passes"),
        ({"passes": 1.5}, ValueError, "passes"),
        ({"shuffle": "yes"}, ValueError, "shuffle"),
        ({"shuffle": 1}, ValueError, "shuffle"),
        ({"fit_intercept": "no"}, TypeError, "fit_intercept"),
        ({"random_state": "seed"}, TypeError, "random_state"),
        ({"warm_start": "x"}, TypeError, "warm_start must be True or False, got 'x'"),
        ({"verbose": "x"}, TypeError, "verbose must be True, False or a whole number, got 'x'"),
        ({"verbose": -1}, ValueError, "verbose must be at least 0"),
        ({"max_passes": "x"}, ValueError, "max_passes must be an integer"),
        ({"max_passes": 0}, ValueError, "max_passes must be"),
        ({"warm_start": "x", "tol": 0.1, "l2": 0.1}, TypeError, "warm_start"),
        ({"verbose": "x", "tol": 0.1, "l2": 0.1}, TypeError, "verbose"),
        ({"n_jobs": "a", "tol": 0.1, "l2": 0.1}, ValueError, "n_jobs must be None"),
        ({"class_weight": "even"}, ValueError, "class_weight"),
        ({"class_weight": [1, 2]}, TypeError, "class_weight"),
        ({"class_weight": {"yes": -1.0, "no": 1.0}}, ValueError, "class_weight"),
        ({"loss": 3.0}, TypeError, "loss"),
    ],
)
def test_bad_parameters_are_refused(rows, params, error, message):
    X, y = rows
    model = classifier(**params)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "learner_")
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("flags", [{"warm_start": np.True_, "verbose": np.False_}, {"verbose": np.int64(0)}])
def test_flags_of_numpy_are_taken(rows, flags):
    classifier(**flags).fit(*rows)


def test_a_wrong_flag_is_refused_by_later_rows_too(rows):
    model = classifier().fit(*rows).set_params(verbose="x")
    for given in (rows, ([rows],)):
        with pytest.raises(TypeError, match="verbose must be"):
            model.partial_fit(*given)


def test_classification_losses_are_refused_for_numbers(rows):
    for loss in ("hinge", "logistic", "exponential"):
        with pytest.raises(ValueError, match="squared"):
            OnlineRegressor(loss).fit(rows[0], np.ones(90))


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (np.ma.array(np.ones(90), mask=np.arange(90) == 3), ValueError),
        (np.array([None, *np.ones(89)], object), TypeError),
        (-np.ones(90), ValueError),
        (np.ones(89), ValueError),
    ],
)
def test_score_refuses_the_weights_that_fit_refuses(rows, weights, error):
    X, y = rows
    for model, targets in ((OnlineClassifier(), y), (OnlineRegressor(), X[:, [0]].toarray()[:, 0])):
        with pytest.raises(error, match="sample_weight"):
            model.fit(X, targets, sample_weight=weights)
        with pytest.raises(error, match="sample_weight"):
            model.fit(X, targets).score(X, targets, sample_weight=weights)
        objects = np.arange(1, 91).astype(object)
        assert model.score(X, targets, objects) == model.score(X, targets, np.arange(1.0, 91.0))


def test_score_needs_targets_and_refuses_what_is_no_label(rows):
    X, y = rows
    for model, targets in ((OnlineClassifier(), y), (OnlineRegressor(), np.arange(90.0))):
        model.fit(X, targets)
        with pytest.raises(ValueError, match="y must be an array of targets, or the name of the column"):
            model.score(X)
    with pytest.raises(ValueError, match=r"y must hold text, numbers or booleans, .* got the object None at row 0"):
        classifier().fit(X, y).score(X, np.array([None] * 90))


def test_flags_of_methods_are_true_or_false(rows, tmp_path):
    X, y = rows
    model = OnlineRegressor(uncertainty=True).fit(X, np.arange(90.0))
    with pytest.raises(TypeError, match="final must be True or False, got 'no'"):
        model.save(tmp_path / "model", final="no")
    assert not (tmp_path / "model").exists()
    with pytest.raises(TypeError, match="return_std must be True or False, got 'no'"):
        model.predict(X, return_std="no")
    with pytest.raises(TypeError, match="return_std must be True or False, got 'no'"):
        OnlineClassifier(uncertainty=True).fit(X, y).decision_function(X, return_std="no")
    with pytest.raises(TypeError, match="grow must be True or False, got 'no'"):
        PenaltyPath(OnlineClassifier(), ["l1=0.1"], grow="no").fit(X, y)


@pytest.mark.parametrize("weight", [1.7e308, 1e200])
def test_a_run_that_weights_of_rows_end_says_so(rows, weight):
    X, y = rows
    for model, targets in ((OnlineClassifier(), y), (OnlineRegressor(), np.arange(90.0))):
        with pytest.raises(DivergenceError, match=r"weights of (rows are|up to) .* constant\."):
            model.fit(X, targets, sample_weight=np.full(90, weight))


def test_divergence_is_named_and_the_model_goes_on_no_more():
    rng = np.random.default_rng(0)
    X, y = 1e3 * rng.standard_normal((500, 5)), rng.standard_normal(500)
    model = OnlineRegressor(solver="sgd,schedule=constant,eta=1", scale="none")
    with pytest.raises(DivergenceError, match="or a solver whose steps are implicit: 'fiol' or 'odrs'"):
        model.fit(X, y)
    for call in (lambda: model.predict(X), lambda: model.partial_fit(X, y), lambda: model.save("never")):
        with pytest.raises(DivergenceError):
            call()


def test_weights_that_a_method_does_not_define_are_refused_before_the_first_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 2))
    y = (X[:, 0] > 0.0).astype(int)
    weights = np.ones(9000)
    weights[-1] = 0.5
    model = OnlineClassifier("hinge", solver="pa").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="0 or 1"):
        model.partial_fit(X, y, sample_weight=weights)
    assert model.t_ == 9000


# --- real data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("logistic", "odrs,schedule=growing-rho,lam=0.3"),
        ("hinge", "odrs,schedule=growing-rho,lam=0.3"),
        ("squared", "odrs,schedule=growing-rho,lam=0.1"),
        ("huber", "comid,eta=0.1"),
    ],
)
def test_total_variation_has_a_default(loss, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20)) * 100.0
    w = np.repeat([0.0, 3.0, -1.0, 0.0], 5) / 100.0
    signs = loss in ("logistic", "hinge")
    y = X @ w > 0.0 if signs else 1e4 * (X @ w) + 7.0
    task = OnlineClassifier if signs else OnlineRegressor
    given = {"penalty": "tv=0.1", "random_state": 0}
    model = task(loss, **given, shuffle=False).fit(X[:300], y[:300])
    named = task(loss, **given, shuffle=False, solver=solver, average="none").fit(X[:300], y[:300])
    assert np.array_equal(model.coef_, named.coef_)
    assert model.score(X[300:], y[300:]) > 0.85
    task(loss, **given, eta=0.05).fit(X, y)


@pytest.mark.parametrize("solver", ["implicit-ftrl", "adagrad-rda", "fiol", "ftrl"])
def test_what_is_named_instead_takes_total_variation(solver):
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match="takes the penalties") as caught:
        OnlineClassifier(penalty="tv=0.1", solver=solver).fit(X, [0, 1, 0, 1])
    for other in re.findall(r"'(\w+)'", str(caught.value).partition("use ")[2]):
        Learner(other, "logistic", "tv=0.1", "none", n_features=3)


@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        (OnlineClassifier, "penalty", "l1=0.1"),
        (OnlineClassifier, "l1", 0.1),
        (OnlineClassifier, "loss", "hinge"),
        (OnlineClassifier, "fit_intercept", False),
        (OnlineRegressor, "clip", False),
        (OnlineRegressor, "solver", "rda"),
        (OnlineRegressor, "scale", "rms"),
    ],
)
def test_a_setting_of_the_learner_that_changed_is_refused(task, name, value, tmp_path):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 2, 0, 1, 2])
    model = task().fit(X, y)
    was = getattr(model, name)
    trained = model.coef_
    same = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model]
    model.save(tmp_path / "m")
    for each in (*same, load(tmp_path / "m")):
        each.set_params(**{name: value}, passes=2, verbose=0)
        with pytest.raises(ValueError, match=f"begun with {name}={re.escape(repr(was))}.*{name} is now"):
            each.partial_fit(X, y)
        assert np.array_equal(each.coef_, trained)
        each.save(tmp_path / "n")
        assert getattr(load(tmp_path / "n"), name) == was  # what the learner has
        each.set_params(**{name: was}).partial_fit(X, y)
        each.set_params(**{name: value}).fit(X, y).partial_fit(X, y)
        each.set_params(class_weight={0: 2.0}) if task is OnlineClassifier else each.set_params(n_jobs=1)
        each.partial_fit(X, y)


def _by_rows(model, X, y):
    for x, target in zip(X, y, strict=True):
        model.learn_one((np.arange(2), x), target)
    return model


@pytest.mark.parametrize(
    ("settings", "fit"),
    [
        ({}, lambda model, X, y: model.fit([(X, y)])),
        ({}, _by_rows),
        ({"solver": "batch-drs"}, lambda model, X, y: model.fit(X, y)),
        ({"tol": 0.1}, lambda model, X, y: model.fit(X, y)),
        ({"tol": 0.1}, lambda model, X, y: model.fit([(X, y)])),
        ({"tol": 0.1}, lambda model, X, y: shards.fit(model, [shards.Blocks("rows", ((X, y),))], shards.Local(2))),
        ({}, lambda model, X, y: PenaltyPath(model, ["l1=0.01", "l1=0.02"]).fit(X, y).estimator_at(0)),
    ],
    ids=["stream", "rows", "batch", "tol", "tol of a stream", "tol of shards", "path"],
)
def test_files_name_what_was_trained_however_it_was(settings, fit, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = fit(OnlineClassifier(penalty="l1=0.01", **settings), X, y)
    model.set_params(penalty="l1=0.5").save(tmp_path / "m")
    assert load(tmp_path / "m").penalty == "l1=0.01"
    with pytest.raises(ValueError, match=r"begun with penalty='l1=0\.01'"):
        model.partial_fit(X, y)


def test_defaults_give_a_sensible_model_on_raw_bundled_data():
    for X, y in (load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)):
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[len(y) // 3 :], order[: len(y) // 3]
        model = OnlineClassifier(random_state=0).fit(X[train], y[train])
        assert model.score(X[test], y[test]) > (0.9 if len(y) > 200 else 0.6)
    X, y = load_diabetes(return_X_y=True)
    assert OnlineRegressor(random_state=0).fit(X[:300], 1e5 * y[:300]).score(X[300:], 1e5 * y[300:]) > 0.4


def test_classes_that_are_rare_among_many_columns_are_not_taken_for_common_ones():
    """The intercept has a step of its own. With one share of each the losses here are 1.7 and 2.0 times the constant's."""
    rng = np.random.default_rng(3)
    X, u = rng.standard_normal((800, 400)), rng.random(800)
    for y in (u < 0.1, np.searchsorted([0.05, 0.1], u)):
        model = OnlineClassifier(shuffle=False).fit(X[:400], y[:400])
        shares = np.bincount(y.astype(int)) / len(y)
        assert log_loss(y[400:], model.predict_proba(X[400:])) < 1.2 * log_loss(y[400:], [shares] * 400)


# --- streams ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def parts(rows):
    """The rows in blocks of uneven sizes."""
    X, y = rows
    cuts = [0, 1, 20, 21, 63, 90]
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]


def test_fit_of_blocks_is_fit_of_their_rows(rows, parts):
    X, y = rows
    whole = classifier(passes=2).fit(X, y)
    model = classifier(passes=2).fit(parts, classes=["no", "yes"])
    same(model, whole)
    assert (model.t_, model.n_iter_, model.n_features_in_, model.classes_.tolist()) == (180, 2, 11, ["no", "yes"])
    assert [report["rows"] for report in model.history_] == [1, 2, 4, 8, 16, 32, 64, 128, 180]
    assert model.history_[-1]["loss"] == model.learner_.progressive_loss
    same(classifier(passes=2).fit(parts, classes="scan"), whole)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    same(classifier(shuffle=False).fit(iter(parts), classes=["no", "yes"]), classifier().fit(X, y))


def test_partial_fit_of_streams_in_pieces_is_one(rows, parts, tmp_path):
    X, y = rows
    model = classifier().partial_fit(parts[:2], classes=["no", "yes"]).partial_fit(iter(parts[2:]))
    whole = classifier().partial_fit(X, y, classes=["no", "yes"])
    same(model, whole)
    assert model.t_ == 90
    with pytest.raises(ValueError, match=r"classes='no' differs|differs from the classes of the first call"):
        model.partial_fit(parts, classes=["no", "maybe"])


def test_weights_of_rows_and_classes_multiply(rows, parts):
    X, y = rows
    s = np.linspace(0.5, 2.0, 90)
    ends = np.cumsum([0, *(len(block[1]) for block in parts)])
    weighted = [(*block, s[a:b]) for block, (a, b) in zip(parts, itertools.pairwise(ends), strict=True)]
    double = {"class_weight": {"yes": 2.0}}
    model = classifier(**double).fit(weighted, classes="scan")
    same(model, classifier(**double).fit(X, y, sample_weight=s))
    even = {"class_weight": "balanced"}
    same(classifier(**even).fit(weighted, classes="scan"), classifier(**even).fit(X, y, sample_weight=s))
    with pytest.raises(ValueError, match="cannot be read twice, and class_weight='balanced' counts the labels"):
        classifier(**even).fit(iter(weighted), classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs .* pass a dict such as \{0: 1, 1: 20\}"):
        classifier(**even).partial_fit(weighted, classes=["no", "yes"])


def test_frames_in_blocks_name_their_columns():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    blocks = [(X[:300], y[:300]), (X[300:], y[300:])]
    model = OnlineClassifier().fit(blocks)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    same(model, OnlineClassifier(shuffle=False).fit(X, y))
    assert model.feature_names(np.array([3])) == ["mean area"]
    regressor = OnlineRegressor().fit([(X[:300], y[:300].astype(float)), (X[300:], y[300:].astype(float))])
    assert regressor.coef_.shape == (30,)
    with pytest.raises(streams.StreamError, match="block 2: the columns of X must have the same names"):
        OnlineClassifier().fit([(X[:300], y[:300]), (X[300:][X.columns[::-1]], y[300:])])


def test_columns_that_are_never_used_count_where_blocks_have_them():
    X = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    model = OnlineRegressor().fit([(X, [0.5, 1.5])])
    assert model.n_features_in_ == 3
    assert model.predict(X).shape == (2,)


def test_streams_are_predicted_whole(rows, parts):
    X, y = rows
    model = classifier(loss="logistic").fit(X, y)
    stream = Pairs(parts)
    np.testing.assert_array_equal(model.decision_function(stream), model.decision_function(X))
    np.testing.assert_array_equal(model.predict(stream), model.predict(X))
    np.testing.assert_array_equal(model.predict_proba(stream), model.predict_proba(X))
    assert model.predict(Pairs([])).shape == (0,)


@pytest.mark.parametrize("form", [list, iter, tuple])
def test_blocks_are_predicted_and_scored_as_they_are_learned(rows, parts, form):
    X, y = rows
    model = OnlineClassifier(random_state=0).fit(X, y)
    for name in ("predict", "predict_proba", "decision_function"):
        read = getattr(model, name)
        np.testing.assert_array_equal(read(form(parts)), read(X))
    assert model.score(form(parts)) == pytest.approx(model.score(X, y), abs=1e-12)
    numbers = OnlineRegressor(random_state=0, uncertainty=True).fit(X, y == "yes")
    cut = [(part[0], part[1] == "yes") for part in parts]
    assert numbers.score(form(cut)) == pytest.approx(numbers.score(X, y == "yes"), abs=1e-12)
    np.testing.assert_array_equal(numbers.predict(form(cut), return_std=True), numbers.predict(X, return_std=True))


FRAMES = {
    "text": pd.DataFrame({"x": [1.0, 2.0], "word": ["a", "b"]}),
    "categories": pd.DataFrame({"x": [1.0, 2.0], "word": pd.Categorical(["a", "b"])}),
    "dates": pd.DataFrame({"x": [1.0, 2.0], "word": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_of_frames_in_blocks_that_holds_no_numbers_is_named(name):
    message = r"block 1: X must hold numbers, got .* in column 'word': .* are read whole \(fit\(table, y\).*open_shards"
    with pytest.raises(streams.StreamError, match=message):
        OnlineClassifier().fit([(FRAMES[name], [0, 1])])


def test_frames_in_blocks_may_hold_numbers_and_booleans():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "odd": [True, False, True], "n": [3, 4, 5]})
    there, here = (OnlineRegressor().fit([(X, [0.5, 1.0, 2.0])]) for X in (frame, frame.to_numpy(np.float64)))
    np.testing.assert_array_equal(there.coef_, here.coef_)


def test_a_list_of_tuples_of_numbers_is_rows():
    model = OnlineClassifier().fit([(0.0, 1.0), (1.0, 0.0)] * 3, [0, 1] * 3)
    np.testing.assert_array_equal(model.predict([(0.0, 1.0), (1.0, 0.0)]), model.predict(np.array([[0.0, 1.0], [1.0, 0.0]])))


WRONG_BLOCKS = {
    "arrays alone": (iter([np.eye(2)]), r"block 1: expected \(X, y\) or \(X, y, weight\), got ndarray"),
    "a list of arrays": (
        [np.eye(2), np.eye(2)],
        r"X must be 2-D, got a list of 2-D arrays: join them .* or give blocks \(X, y\)",
    ),
    "lists of unlike lengths": ([np.eye(2), np.eye(2)[:1]], "X must be 2-D, got a list of 2-D arrays"),
    "unequal widths": ([(np.eye(2), [0, 1]), (np.eye(2)[:, :1], [0, 1])], "block 2: X has 1 columns, dense X .* before have 2"),
}


@pytest.mark.parametrize("name", WRONG_BLOCKS)
@pytest.mark.parametrize("call", ["predict", "predict_proba", "decision_function", "score"])
def test_wrong_blocks_are_named(name, call):
    blocks, message = WRONG_BLOCKS[name]
    model = OnlineClassifier().fit(np.eye(2), [0, 1])
    if call == "score" and isinstance(blocks[0] if isinstance(blocks, list) else None, np.ndarray):
        with pytest.raises(ValueError, match=message):
            model.score(blocks, [0, 1, 0, 1])
        return
    blocks = iter([np.eye(2)]) if name == "arrays alone" else blocks
    with pytest.raises(ValueError, match=message):
        getattr(model, call)(blocks)


def test_streams_of_files_grow(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 3:2\n-1 2:1\n1 9:1\n")
    model = OnlineClassifier(passes=3, verbose=True).fit(streams.open(tmp_path / "a.svm"))
    assert model.coef_.shape == (1, 9)
    seen = []
    model.set_params(callbacks=[lambda info: seen.append((info.rows, info.total))], verbose=False)
    model.partial_fit(streams.open(tmp_path / "a.svm"))
    assert seen == [(12, None)]
    shuffled = streams.Shuffled(streams.open(tmp_path / "a.svm"), 3, seed=0)
    assert OnlineClassifier(random_state=0).fit(shuffled).t_ == 3


def test_a_loader_may_give_its_blocks_as_lists():
    """As those of PyTorch do."""

    class Loader:
        def __init__(self, make):
            self.make = make

        def __iter__(self):
            return (self.make((X[at : at + 50], Y[at : at + 50])) for at in range(0, len(X), 50))

    X = np.random.default_rng(0).normal(size=(200, 3))
    Y = (X[:, 0] > 0.0).astype(int)
    listed, tuples = (OnlineClassifier(passes=2).fit(Loader(make)) for make in (list, tuple))
    assert listed.t_ == 400
    assert np.array_equal(listed.coef_, tuples.coef_)
    assert np.array_equal(listed.predict_proba(Loader(list)), tuples.predict_proba(X))


@pytest.mark.parametrize(
    ("params", "blocks", "options", "message"),
    [
        ({}, [(np.eye(2), [0, 1])], {"y": [0, 1]}, r"X must hold rows, got blocks: .* tuples \(X, y\), and no y"),
        ({}, [(np.eye(2), [0, 1])], {"sample_weight": [1, 1]}, "targets and weights come with its rows"),
        ({"shuffle": True}, [(np.eye(2), [0, 1])], {}, r"give streams\.Shuffled"),
        ({"passes": 2}, iter([(np.eye(2), [0, 1])]), {}, "cannot be read twice"),
        ({}, [], {}, "at least one row"),
        ({}, [(np.eye(2), [0, 2])], {}, r"block 1:2: expected one of the classes 0, 1, got 2 .*\(Rows learned before: 1\.\)"),
        ({}, [(np.eye(2), [0, 1, 1])], {}, "block 1: y must have"),
        ({}, [(np.eye(2), [0, 1], [1, -1])], {}, "block 1: sample_weight must not be negative"),
        ({}, [(np.eye(2), [[0], [1]])], {}, "block 1: y must be 1-D"),
        ({}, [(np.eye(2), [0, 1 + 1j])], {}, "block 1: y must hold numbers, got dtype complex128"),
        (
            {},
            [(np.eye(2), np.array([0, 1], "timedelta64[s]"))],
            {},
            r"block 1: y must hold numbers, got dtype timedelta64\[s\]",
        ),
        ({}, [(np.eye(2), [b"0", b"1"])], {}, "block 1: y must hold numbers, got b'0' at row 0"),
        ({}, [(np.eye(2), np.array([0, "a"], object))], {}, "block 1: y must hold numbers, got 'a' at row 1"),
        (
            {},
            [(pd.DataFrame(np.eye(2), columns=["a", "a"]), [0, 1])],
            {},
            "block 1: X: expected each column name once, got 'a' 2 times",
        ),
        ({}, [(np.eye(2),)], {}, r"block 1: expected \(X, y\) or \(X, y, weight\), got a tuple of 1"),
        ({}, iter([[1.0, 2.0]]), {}, r"block 1: expected \(X, y\) or \(X, y, weight\), got list"),
        ({}, iter([3]), {}, r"block 1: expected \(X, y\) or \(X, y, weight\), got int"),
        ({}, [(np.array([[np.nan]]), [0])], {}, "block 1: X contains NaN at row 0"),
        (
            {},
            [(np.eye(2), [0, 1]), (np.eye(3), [0, 1, 1])],
            {},
            "block 2: X has 3 columns, dense X of the blocks before have 2",
        ),
        ({}, [(np.eye(2), ["a", "b"])], {}, "are text: name the classes"),
        ({}, [(np.eye(2), [0, 1]), (np.eye(2), ["a", "b"])], {}, "block 2: y must be text in all blocks or numbers in all"),
        ({}, [(np.eye(2), ["a", None])], {}, "block 1: y begins with text and must hold text in every row, got None at row 1"),
        ({"scale": "standard"}, iter([(np.eye(2), [0, 1])]), {}, "scale 'standard' needs the mean"),
        (
            {"solver": "batch-drs", "loss": "squared", "penalty": "l1,l1=0.1"},
            [(np.eye(2), [0, 1])],
            {},
            "needs all rows at once",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,  # the same in every process
)
def test_streams_that_cannot_be_learnt(params, blocks, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        OnlineClassifier(**params).fit(blocks, **options)


def test_what_a_stream_taught_before_its_error_stands(rows, parts):
    X, y = rows
    model = classifier().fit(X, y)
    before = model.coef_
    with pytest.raises(streams.StreamError, match="at least one row"):
        model.fit([])
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(streams.StreamError, match=r"got 'maybe'\. \(Rows learned before: 90\.\)"):
        model.fit([*parts, (X[:1], ["maybe"])], classes=["no", "yes"])
    same(model, classifier().fit(X, y))
    with pytest.raises(streams.StreamError, match=r"block 1:1: expected 11 columns at most"):
        classifier().fit(X, y).partial_fit([(sp.csr_matrix(np.ones((1, 12))), ["yes"])])
    with pytest.raises(ValueError, match="classes= is for streams"):
        model.fit(X, y, classes=["no", "yes"])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, object, bool, np.uint8])
def test_numbers_of_any_type_are_targets_of_blocks(kind):
    X, y = np.random.default_rng(3).standard_normal((20, 3)), np.arange(20.0) % 2.0
    found = OnlineRegressor().fit([(X, y.astype(kind))])
    np.testing.assert_array_equal(found.coef_, OnlineRegressor().fit([(X, y)]).coef_)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_an_error_of_an_iterator_comes_once_the_rows_before_it_are_learned(call):
    def blocks():
        yield np.eye(2), [0, 1]
        raise OSError("gone")

    model = OnlineClassifier()
    with pytest.raises(OSError, match="gone"):
        getattr(model, call)(blocks(), classes=[0, 1])
    assert model.t_ == 2


def test_a_model_of_a_stream_comes_back(rows, parts, tmp_path):
    X, _ = rows
    model = classifier().fit(parts, classes="scan")
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.history_ == model.history_
    again.partial_fit(parts).save(tmp_path / "a")
    model.partial_fit(parts).save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert classifier().fit(X, rows[1]).history_ == []


# --- final models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("several", [False, True], ids=["two", "several"])
def test_a_final_model_has_what_predicts_and_no_more(tmp_path, several):
    X, y = load_iris(return_X_y=True, as_frame=True) if several else load_breast_cancer(return_X_y=True, as_frame=True)
    model = OnlineClassifier(penalty=f"l1,l1={0.1 if several else 0.05}", average="none", random_state=0).fit(X, y)
    assert 0.1 < model.sparsity_ < 1.0
    model.save(tmp_path / "live")
    model.save(tmp_path / "final", final=True)
    final = load(tmp_path / "final")
    same(final, model)
    np.testing.assert_array_equal(final.predict_proba(X), model.predict_proba(X))
    assert (final.t_, final.classes_.tolist()) == (model.t_, model.classes_.tolist())
    assert final.learner_.progressive_loss == model.learner_.progressive_loss
    used = final.learner_.all_columns()
    assert final.feature_names(used) == X.columns[used].tolist()
    header, arrays = model_file.read(tmp_path / "final")
    assert [name for _, name in header["estimator"]["names"]] == X.columns[used].tolist()
    assert sum(array.size for array in arrays.values()) == 2 * np.count_nonzero(model.coef_) + len(model.intercept_)
    final.save(tmp_path / "again")
    pickle.loads(pickle.dumps(final)).save(tmp_path / "pickled", final=True)
    assert len({(tmp_path / name).read_bytes() for name in ("final", "again", "pickled")}) == 1
    for learn in (lambda: final.partial_fit(X, y), lambda: final.learner_.learn(X, y), lambda: final.partial_fit([(X, y)])):
        with pytest.raises(ValueError, match="which can only predict"):
            learn()
    with pytest.raises(ValueError, match="not those after the last row"):
        final.sparsity_last_  # noqa: B018
    with pytest.raises(ValueError, match=r"30 features|4 features"):
        final.predict(np.ones((1, 31)))
    assert final.fit(X, y).sparsity_last_ > 0.0


def test_a_final_models_size_is_that_of_its_non_zeros(tmp_path):
    wide = sp.csr_matrix((np.ones(3), ([0, 1, 2], [5, 2_000_000_000, 7])), shape=(3, 2_000_000_001))
    blocks = [(wide[:, :10], [0.5, 0.0, 1.0])]
    model = OnlineRegressor(clip=False).fit(blocks)
    model.save(tmp_path / "m", final=True)
    header, arrays = model_file.read(tmp_path / "m")
    del header["digest"]
    header["size"] = header["estimator"]["features"] = 2_000_000_001
    arrays |= {"0.columns": np.array([5, 2_000_000_000], np.uint32), "0.values": np.array([1.5, -2.5])}
    model_file.write(tmp_path / "wide", header, arrays)
    expected = arrays["0.values"] + arrays["intercepts"]
    np.testing.assert_array_equal(load(tmp_path / "wide").predict(wide)[:2], expected)


def test_standard_scale_of_a_stream_is_that_of_fit(rows):
    X, y = rows
    X = np.asarray(X.toarray() if sp.issparse(X) else X) + 3.0
    weights = np.arange(len(y)) % 3.0
    whole = OnlineClassifier(scale="standard", shuffle=False).fit(X, y, weights)
    for cuts in ([len(y)], [1, 40, len(y)]):
        parts = np.split(np.arange(len(y)), cuts)
        blocks = [(X[part], y[part], weights[part]) for part in parts]
        model = OnlineClassifier(scale="standard").fit(blocks, classes=["no", "yes"])
        assert np.array_equal(model.coef_, whole.coef_)
        assert np.array_equal(model.decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match="needs the mean of all rows before the first: the blocks cannot be read twice"):
        OnlineClassifier(scale="standard").fit(iter(blocks), classes=["no", "yes"])
    with pytest.raises(ValueError, match="needs the mean of all rows before the first: use fit"):
        OnlineClassifier(scale="standard").partial_fit(blocks, classes=["no", "yes"])


@pytest.mark.parametrize("params", [{"solver": "rls"}, {"penalty": "total-variation,tv=0.01", "solver": "comid"}])
def test_streams_of_methods_that_must_know_the_columns_are_counted_first(params):
    X, y = load_diabetes(return_X_y=True)
    X = np.hstack([X, np.zeros((len(y), 1))])
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    model = OnlineRegressor(**params).fit(blocks)
    assert np.array_equal(model.coef_, OnlineRegressor(**params, shuffle=False).fit(X, y).coef_)
    with pytest.raises(ValueError, match=r"n_features .* must be given: the blocks cannot be read twice"):
        OnlineRegressor(**params).fit(iter(blocks))


@pytest.mark.parametrize("wrong", [{"spam": 9.0}, {0: 1.0, "1": 2.0}])
def test_weights_of_classes_that_do_not_exist_are_refused_of_streams_too(rows, wrong):
    X, y = rows
    labels = np.asarray(y == np.unique(y)[1], int)
    with pytest.raises(ValueError, match="which is none of the classes"):
        OnlineClassifier(class_weight=wrong).fit([(X, labels)])
    with pytest.raises(ValueError, match=r"are not in class_weight; it has a weight for .*, which is none of the classes"):
        OnlineClassifier(class_weight=wrong).fit(X, labels)
    with pytest.raises(TypeError, match="class_weight: the weight of 0 must be a number"):
        OnlineClassifier(class_weight={0: "a"}).fit(X, labels)


def test_a_weight_too_many_is_no_error_where_all_classes_have_one(rows):
    X, y = rows
    labels = np.asarray(y == "yes", int)
    model = OnlineClassifier(class_weight={0: 1.0, 1: 3.0, 2: 9.0}, shuffle=False)
    same(clone(model).fit([(X, labels)], classes=[0, 1]), model.fit(X, labels))
    model.partial_fit([(X, labels)])


def test_masked_entries_are_refused(rows):
    X, y = rows
    hidden = np.ma.masked_array(X.toarray() if sp.issparse(X) else X, mask=False)
    hidden[3, 1] = np.ma.masked
    model = OnlineClassifier(random_state=0).fit(X, y)
    for call in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="X has masked entries"):
            call(hidden, y)
    with pytest.raises(ValueError, match="X has masked entries"):
        model.predict(hidden)
    with pytest.raises(ValueError, match="block 1: X has masked entries"):
        OnlineClassifier().fit([(hidden, y)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_told_with_the_name_of_its_column(value, tmp_path):
    good = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "age": [4.0, 1.0, 2.0, 0.5]})
    bad, y = good.copy(), [0, 1, 0, 1]
    bad.loc[3, "age"] = value
    what, hint = ("NaN", MISSING_IN_TABLE) if np.isnan(value) else ("infinity", "")
    message = f"X contains {what} at row 3, column 'age'; every value must be finite{hint}."
    model = OnlineClassifier(loss="hinge").fit(good, y)
    model.save(tmp_path / "final", final=True)
    path = PenaltyPath(OnlineClassifier(loss="hinge"), ["l1,l1=1e-3"])
    numbered = bad.set_axis([2019, 2020], axis=1)
    uses = {
        "fit": lambda: OnlineClassifier(loss="hinge").fit(bad, y),
        "standard": lambda: OnlineRegressor(scale="standard").fit(bad, y),
        "partial_fit": lambda: OnlineRegressor().partial_fit(bad, y),
        "more": lambda: model.partial_fit(bad, y),
        "predict": lambda: model.predict(bad),
        "final": lambda: load(tmp_path / "final").predict(bad),
        "path": lambda: path.fit(bad, y),
        "path, in parts": lambda: path.partial_fit(bad, y, classes=[0, 1]),
        "learner": lambda: Learner("comid", "squared").learn(bad, y),
        "learner predicts": lambda: model.learner_.predict(bad),
    }
    before = model.t_
    for name, use in uses.items():
        with pytest.raises(ValueError, match="age") as caught:
            use()
        assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == message, name
    assert model.t_ == before
    with pytest.raises(ValueError, match="at row 3, column 2020;"):
        OnlineRegressor().fit(numbered, y)
    with pytest.raises(ValueError, match=r"at row 3, column 1; every value must be finite\.$"):
        OnlineRegressor().fit(bad.to_numpy(), y)


def test_what_is_told_of_a_missing_value_in_a_frame_of_numbers_trains():
    frame = pd.DataFrame({"size": [1.0, 2.0, np.nan, 4.0], "age": [4.0, 1.0, 2.0, 0.5], "ill": [0, 1, 0, 1]})
    with pytest.raises(ValueError, match=r'missing="indicator" or "omit", of the estimator or of streams\.open, accept'):
        OnlineClassifier().fit(frame.drop(columns="ill"), frame["ill"])
    model = OnlineClassifier().fit(streams.open(frame, target="ill", missing="indicator"))
    same = OnlineClassifier(missing="indicator", shuffle=False).fit(frame.drop(columns="ill"), frame["ill"])
    assert np.array_equal(model.decision_function(frame), same.decision_function(frame))


@pytest.mark.filterwarnings("ignore:The loss was still falling")
@pytest.mark.parametrize("mean", [0.02, 1.0, 1e6])
@pytest.mark.parametrize("settings", [{}, {"l1": 1e-6}, {"l2": 1e-6}, {"average": "adaptive"}, {"eta": 2.0}, {"scale": "rms"}])
def test_counts_of_any_mean_are_learned_better_than_by_their_mean(mean, settings):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 5))
    y = rng.poisson(mean * np.exp(X @ [0.8, -0.5, 0.3, 0.0, 0.0])).astype(float)
    found = OnlineRegressor("poisson", random_state=0, **settings).fit(X[:2000], y[:2000]).predict(X[2000:])
    constant = np.full(2000, y[:2000].mean())
    losses = [np.mean(guess - y[2000:] * np.log(guess)) for guess in (found, constant)]
    assert losses[0] < losses[1]


@pytest.mark.filterwarnings("ignore::onlinear.QualityWarning")
def test_a_late_or_early_outlier_among_counts_is_survived():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4000, 3))
    y = rng.poisson(np.exp(X @ [0.5, -0.5, 0.0])).astype(float)
    for place, most in ((0, 3.0), (1, 3.0), (3000, 500.0)):
        spoiled = y.copy()
        spoiled[place] = 1e6
        model = OnlineRegressor("poisson", shuffle=False).fit(X, spoiled)
        assert 0.5 < np.mean(model.predict(X)) < most, place


def test_blocks_of_frames_have_the_columns_that_the_model_learned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = np.where(frame["a"] > 0.0, 1, 0)
    turned = [(frame[["c", "b", "a"]], y)]
    model = OnlineClassifier(penalty="l1=1e-3", tol=1e-3, random_state=0).fit(frame, y)
    learned, rows = model.coef_.copy(), model.t_
    assert model.duality_gap([(frame, y)]) < 0.01
    for call in (model.partial_fit, model.duality_gap):
        with pytest.raises(streams.StreamError, match="block 1: the columns of X must have the names that the model learned"):
            call(turned)
    assert (model.t_, model.coef_.tolist()) == (rows, learned.tolist())
    with pytest.warns(UserWarning, match="block 1 names its columns, and the model has no names"):
        assert OnlineClassifier().partial_fit([(frame.to_numpy(), y)]).partial_fit(turned).t_ == 120
    assert model.fit([turned[0]]).feature_names_in_.tolist() == ["c", "b", "a"]


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]"])
def test_dates_are_no_numbers(dtype):
    X = np.arange(6).reshape(3, 2)
    model = OnlineRegressor().fit(X, [0.0, 1.0, 2.0])
    for call in (model.predict, lambda X: OnlineRegressor().fit(X, [0.0, 1.0, 2.0])):
        with pytest.raises(TypeError, match=r"X must hold numbers, got dtype .*64\[s\]: X.astype\(float\) counts its unit"):
            call(X.astype(dtype))


@pytest.mark.parametrize("loss", ["hinge,margin=0", "squared-hinge,margin=0", Hinge(margin=0.0)])
@pytest.mark.parametrize("settings", [{}, {"solver": "sgd"}, {"penalty": "l2=0.1", "tol": 1e-3}], ids=str)
def test_a_loss_by_which_no_row_changes_a_weight_is_refused(loss, settings):
    X, y = load_breast_cancer(return_X_y=True)
    for learns in ("fit", "partial_fit"):
        known = {} if learns == "fit" else {"classes": [0, 1]}
        with pytest.raises(ValueError, match="margin=0 the score 0"):
            getattr(OnlineClassifier(loss, **settings), learns)(X, y, **known)
    assert not Learner("sgd", "hinge,margin=0").learn(X, 2.0 * y - 1.0).weights().any()  # which it is refused for
    assert Learner("sgd", "hinge,margin=0", start=np.ones(30)).learn(-X, 2.0 * y - 1.0).t == 569  # it is of use elsewhere


def final_of(model, folder):
    model.save(folder / "final", final=True)
    return load(folder / "final")


@pytest.mark.parametrize("task", [OnlineClassifier, OnlineRegressor])
def test_all_attributes_can_be_listed(task, tmp_path):
    """As a notebook lists them for its page, and ``dir`` does in newer scikit-learn: whatever the settings are, and what is
    missing is an AttributeError."""
    X, y = np.arange(20.0).reshape(10, 2), [0, 1] * 5
    wrong = [{"solver": "comd"}, {"loss": "bogus"}, {"penalty": "bogus"}, {"l1": "x"}, {"tol": "x"}]
    models = [task().fit(X, y), final_of(task().fit(X, y), tmp_path), *(task(**settings) for settings in wrong)]
    models += [task().fit(X, y).set_params(**settings) for settings in wrong]
    for model in models:
        names = [name for name, _ in inspect.getmembers(model)]
        assert "fit" in dir(model)
        assert ("coef_" in names) == model.is_fitted
        assert task.__name__ in model._repr_html_()
    assert not hasattr(models[1], "sparsity_last_")


def test_the_loss_with_a_tiny_margin_is_the_perceptron():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = SGDClassifier(
        loss="perceptron", penalty=None, learning_rate="constant", eta0=1.0, max_iter=3, tol=None, shuffle=False
    ).fit(X, y)
    settings = {"solver": "sgd,schedule=constant,eta=1", "scale": "none", "average": "none", "shuffle": False, "passes": 3}
    ours = OnlineClassifier("hinge,margin=1e-9", **settings).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    assert OnlineClassifier("hinge,margin=1e-9", random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95


def diverging_rows():
    X, y = np.ones((20_000, 1)), np.ones(20_000)
    X[17_000:17_002] = [[1e149], [-1e149]]  # in the third block
    y[17_000] = 1e149
    return X, y


def diverge(learn):
    with pytest.raises(DivergenceError) as caught:
        learn()
    return str(caught.value)


@pytest.mark.parametrize("rows", ["stored", "shuffled", "continued", "path"])
def test_divergence_names_the_row_of_x_wherever_blocks_are_cut(rows):
    """It named the row of the block of 8,192, or of the permuted rows, as a row of the call."""
    X, y = diverging_rows()
    settings = {"solver": "sgd,eta=10,schedule=constant", "average": "none", "scale": "none", "clip": False, "random_state": 0}
    model = OnlineRegressor(**settings, shuffle=rows == "shuffled")
    if rows == "path":
        model = PenaltyPath(model, ["l2=1e-8", "l2=1e-7"])
    said = diverge(lambda: (model.fit if rows in ("stored", "shuffled") else model.partial_fit)(X, y))
    row, step = map(int, re.search(r"at row (\d+) of X \(step (\d+)", said).groups())
    order = order_of(make_generator(0), rows == "shuffled", len(y))
    assert row == (step - 1 if order is None else order[step - 1])
    assert step > 8192


def test_divergence_in_a_stream_names_the_row_once():
    X, y = diverging_rows()
    model = OnlineRegressor(solver="sgd,eta=10,schedule=constant", average="none", scale="none", clip=False)
    said = diverge(lambda: model.fit([(X[:15_000], y[:15_000]), (X[15_000:], y[15_000:])]))
    assert said.startswith("block 2:2")
    assert "of this call" not in said
