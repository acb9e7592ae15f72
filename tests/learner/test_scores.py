"""Scores of rows by the weights of all outputs: sums in the order of the columns, by the weights of the moment."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom

from onlinear import Learner, rows
from onlinear.learner.scores import Weights
from onlinear.models.predictor import DENSE, Final
from onlinear.solvers import SOLVERS

RNG = np.random.default_rng(3)
N, D = 40, 9
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
X[3] = 0.0
FAMILIES = {SOLVERS[name].solver: name for name in sorted(SOLVERS, reverse=True)}.values()


def in_order(X, w, b):
    """Each row's score, entry by entry."""
    found = np.full(len(X), b)
    for row, values in enumerate(X):
        for j in np.flatnonzero(values):
            found[row] += (w[j] if j < len(w) else 0.0) * float(values[j])
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outputs", [1, 2, 8, 9, 20])
def test_each_output_is_scored_as_alone(outputs, dtype, monkeypatch):
    monkeypatch.setattr(rows.records, "PIECE", 50)
    given, w, b = X.astype(dtype), RNG.standard_normal((outputs, D - 2)), RNG.standard_normal(outputs)
    weights = Weights.of(zip(b, w, strict=True), outputs, D - 2)
    wanted = np.stack([in_order(given, *output) for output in zip(w, b, strict=True)], axis=1)
    for container in (given, np.asfortranarray(given), sp.csr_array(given), sp.csc_array(given)):
        np.testing.assert_array_equal(weights.score_rows(rows.read(container)), wanted)


def some_learner(solver, outputs, **settings):
    """A learner of this solver with a loss and a penalty that it takes, and targets; None for one that learns no rows."""
    for loss, penalty in (("hinge", "none"), ("squared", "none"), ("hinge", "l2,l2=0.01")):
        try:
            learner = Learner(solver, loss, penalty, n_outputs=outputs, total=2 * N, fit_intercept=True, **settings)
            learner.learn(X[:1], np.ones((1, outputs)))
        except (ValueError, TypeError):
            continue
        return learner
    return None


@pytest.mark.parametrize("outputs", [1, seldom(3)])
@pytest.mark.parametrize("solver", FAMILIES)
def test_weights_that_are_held_are_those_of_the_moment(solver, outputs):
    """Those of many rows serve the next ones, few or many, until rows are learned."""
    learner = some_learner(solver, outputs, n_features=D + 3)
    if learner is None:
        pytest.skip("it learns all rows at once")
    y = np.where(RNG.random((N, outputs)) < 0.5, -1.0, 1.0)
    for i in range(1, 12, 2):
        learner.learn(X[i : i + 1], y[i : i + 1])
        learner.learn_one(np.flatnonzero(X[i + 1]), X[i + 1][X[i + 1] != 0.0], y[i + 1, 0] if outputs == 1 else y[i + 1])
        few = pickle.loads(pickle.dumps(learner)).predict(X[:1])
        many = pickle.loads(pickle.dumps(learner)).predict(X)
        for _ in range(2):
            np.testing.assert_array_equal(learner.predict(X), many)
            np.testing.assert_array_equal(learner.predict(X[:1]), few)
            np.testing.assert_array_equal(learner.predict(sp.csr_array(X)), many)


def test_many_predictions_of_few_entries_read_all_weights_once():
    learner = some_learner("comid", 3, n_features=5000)
    wanted, calls = learner.predict(X[:1]), 1
    while learner._held is None:
        np.testing.assert_array_equal(learner.predict(X[:1]), wanted)
        calls += 1
    np.testing.assert_array_equal(learner.predict(X[:1]), wanted)
    assert 4 < calls < 8


def test_weights_are_held_up_to_a_limit(monkeypatch):
    learner = some_learner("comid", 3)
    learner.predict(X)
    assert learner._held is not None
    monkeypatch.setattr("onlinear.learner.learner.MOST_HELD", 0)
    learner.learn(X, np.ones((N, 3)))
    learner.predict(X)
    assert learner._held is None
    averaged = Learner("comid", "hinge", average="uniform", n_outputs=16, n_features=D)
    averaged.learn(X, np.ones((N, 16))).predict(X)
    assert averaged._held is not None  # a quarter of what the state takes


def test_a_solver_of_all_rows_is_read_anew():
    learner = Learner("batch-drs,lam=0.1", "squared", "l1=0.01", n_features=D)
    found = []
    for _ in range(2):
        learner.solve(X, X[:, 0], iterations=1)
        found.append(learner.predict(X))
    assert np.any(found[0] != found[1])


def test_a_final_model_of_columns_far_apart_scores_as_the_learner():
    """Its weights are looked up among its columns, not by place."""
    wide, far = np.hstack([X, X[:, :2]]), [0, 1, 2, 3, 4, 5, 6, 7, 2 * DENSE, 3 * DENSE, 3 * DENSE + 1]
    given = sp.csr_array((wide.ravel(), np.tile(far, N), np.arange(N + 1) * len(far)), shape=(N, 4 * DENSE))
    for outputs in (1, 3):
        learner = Learner("comid", "hinge", "l1=0.05", n_outputs=outputs, fit_intercept=True)
        learner.learn(given, np.where(RNG.random((N, outputs)) < 0.5, -1.0, 1.0))
        final = Final.of(learner)
        np.testing.assert_array_equal(final.predict(given), learner.predict(given))
        np.testing.assert_array_equal(final.predict(given[:1]), learner.predict(given)[:1])
        assert "_looked_up" not in vars(pickle.loads(pickle.dumps(final)))
