"""Steps of smooth problems: as accurate as asked, with the curvatures of the rows; systems that are too hard for them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from seldom import seldom

from onlinear import Learner
from onlinear.certified.columns import Stored, curve_rows, square_rows
from onlinear.certified.conjugate import newton_step, share_left
from onlinear.certified.gap import Gap
from onlinear.certified.joint_newton import JointNewton
from onlinear.certified.newton import Limits
from onlinear.certified.prox_newton import ProxNewton
from onlinear.losses import Logistic
from onlinear.penalties import ElasticNet
from onlinear.rows import read


def rows(n=90, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    return X, np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.2, 1.0, -1.0)


def test_a_step_leaves_as_much_as_it_may():
    X, _ = rows()
    stored, rng = Stored.of(read(X, "X")).rows, np.random.default_rng(1)
    full, h, ridge, g = (
        np.hstack([X, np.ones((90, 1))]),
        rng.uniform(size=90),
        np.append(np.full(7, 0.1), 0.0),
        rng.normal(size=8),
    )
    H, diagonal, out = full.T @ (h[:, None] * full), np.empty(8), np.empty(8)
    square_rows(*stored, h, diagonal)
    np.testing.assert_allclose(diagonal, np.diag(H), rtol=1e-12)
    curve_rows(*stored, h, g, out)
    np.testing.assert_allclose(out, H @ g, atol=1e-12)

    def times(d):
        return H @ d + ridge * d

    def precondition(r):
        return r / (diagonal + ridge)

    for share in (0.3, 1e-9):
        d, _, enough = newton_step(times, precondition, g, share, 100)
        assert enough
        assert np.abs(times(d) + g).max() <= share * np.abs(g).max() * (1.0 + 1e-6)
    assert not newton_step(times, precondition, g, 1e-9, 2).enough
    still, steps, enough = newton_step(times, precondition, 0.0 * g, 0.3, 100)
    assert (steps, enough) == (0, True)
    assert not still.any()


def test_steps_are_as_accurate_as_the_slopes_and_the_tolerance_ask():
    assert share_left(1.0, 1.0, 1e-8) == 0.3
    assert share_left(0.01, 1.0, 1e-8) == pytest.approx(0.03)
    assert share_left(1e-6, 0.5, 0.005) == pytest.approx(0.03)
    assert share_left(1e-9, 1e-9, 1e-4) == share_left(1.0, 1.0, 1e-4) == 0.3
    X, y = rows()
    run = ProxNewton(Stored.of(read(X, "X")), 7, Logistic(), ElasticNet(0.0, 0.1), y, np.ones(90), True)
    for slope, share in ((2.0, 0.3), (0.02, 0.03), (4.0, 0.3), (0.0, 0.3)):
        run.w, run.g = np.zeros(7), np.full(7, slope)
        assert run.share(Gap(1.0, 0.0), 1e-8) == pytest.approx(share)


CASES = list(itertools.product(["none", "scales", "wide"], [False, True], [1.0, 1e-2, 1e-5]))


@pytest.mark.parametrize(("change", "intercept", "l2"), [seldom(*c) if c[:2] == ("wide", False) else c for c in CASES])
def test_it_is_the_optimum_of_l2(change, intercept, l2):
    X, y = rows(90, 120 if change == "wide" else 7)
    X = X * 10.0 ** np.arange(-3, 4) if change == "scales" else X
    run = Learner("prox-newton,tol=1e-8", "logistic", f"l2={l2}", n_features=X.shape[1], fit_intercept=intercept)
    run.solve(X, y, 60)
    assert run.duality_gap(X, y) <= 1.01e-8

    def value(v):
        scores = X @ v[:-1] + v[-1] * intercept
        slopes = -y / (1.0 + np.exp(y * scores)) / len(y)
        return np.logaddexp(0.0, -y * scores).mean() + 0.5 * l2 * v[:-1] @ v[:-1], np.append(
            X.T @ slopes + l2 * v[:-1], slopes.sum() * intercept
        )

    best = minimize(value, np.append(run.weights().ravel(), run.intercept()), jac=True, options={"gtol": 1e-12}).fun
    assert best <= run.objective(X, y) <= best * (1.0 + 1e-7)


@pytest.mark.parametrize("penalty", ["l2=0.01", "l1=0.01", "l2=0.01,lower=-1"])
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_columns_beyond_the_rows_own_are_left_at_0(loss, penalty):
    X, y = rows()
    classes = (y > 0.0).astype(int) + (X[:, 2] > 0.5)
    found = []
    for width in (7, 11):
        parts = {"n_features": width, "fit_intercept": True}
        run = Learner("prox-newton,tol=1e-9", loss, penalty, n_outputs=3 if loss == "softmax" else 1, **parts)
        target = classes if loss == "softmax" else y
        start = np.ones((width, run.n_outputs)), np.zeros(run.n_outputs)
        found.append(run.solve_whole(run.whole(sp.csr_array(X), target), 60, start).duality_gap(X, target))
        assert not run.weights().reshape(width, -1)[7:].any() or penalty.startswith("l2")
        assert np.abs(run.weights().reshape(width, -1)[7:]).max(initial=0.0) <= 1e-4
    assert max(found) <= 1.01e-9


def test_classes_whose_columns_hang_together_share_a_matrix():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 60)) * 10.0 ** rng.uniform(-2, 2, 60) + 5.0 * (rng.random(60) < 0.3)
    y, s = (X[:, :4] / np.abs(X[:, :4]).mean(axis=0) + rng.gumbel(size=(500, 4))).argmax(axis=1), np.ones(500)
    for l2, intercept in ((1e-2, True), (1e-6, False)):
        run = JointNewton(Stored.of(read(X, "X")), 60, 4, ElasticNet(0.0, l2), y, s, intercept)
        run.costs.patient = lambda *_: 150  # never with H at hand
        assert run.solve(np.zeros(240), np.zeros(4), Limits(1e-6, 40)).gap.relative <= 1e-6
        assert run.slow


def test_systems_that_are_too_hard_are_solved_with_their_matrix():
    X, y = rows(400, 12, 3)
    X = X * np.logspace(-4, 4, 12)
    stored, s = Stored.of(read(X, "X")), np.ones(400)
    one = ProxNewton(stored, 12, Logistic(), ElasticNet(0.0, 1e-7), y, s, True)
    one.costs.patient = lambda *_: 1
    found = one.solve(np.zeros(12), 0.0, Limits(1e-8, 60))
    assert one.hard
    assert found.gap.relative <= 1e-8
    many = JointNewton(stored, 12, 3, ElasticNet(0.0, 1e-7), np.arange(400) % 3, s, True)
    many.costs.patient = lambda *_: 1
    assert many.solve(np.zeros(36), np.zeros(3), Limits(1e-8, 60)).gap.relative <= 1e-8
    assert many.hard
