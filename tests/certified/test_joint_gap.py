"""The duality gap of softmax: never below the true distance to the optimum, small at the optimum, on streams as in memory."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from onlinear import Learner, OnlineClassifier
from onlinear.certified import joint_balance
from onlinear.certified.joint_balance import balanced, probabilities
from onlinear.certified.joint_gap import entropies
from onlinear.learner.certificates import gap_of_blocks, gaps_in_memory
from onlinear.rows import read

N, D, K = 120, 6, 4
PENALTIES = ("l1=0.01", "l2=0.05", "elastic-net,l1=0.01,l2=0.02")


def rows(seed=0, outputs=K):
    rng = np.random.default_rng([seed, 7])
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7) + (np.arange(D) == 1)
    y = (X @ rng.normal(size=(D, outputs)) + rng.gumbel(size=(N, outputs))).argmax(axis=1)
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], N)


def optimum(penalty, X, y, s, intercept):
    """The least objective that L-BFGS finds, from the positive and negative parts of the weights."""
    here = np.equal.outer(y, np.arange(K))

    def value(v):
        up, down, b = v[: D * K].reshape(D, K), v[D * K : 2 * D * K].reshape(D, K), v[2 * D * K :]
        w = up - down
        z = X @ w + b
        g = X.T @ (s[:, None] * (softmax(z, axis=1) - here)) / N
        at_b = (s @ (softmax(z, axis=1) - here)) / N * intercept
        total = -(s @ log_softmax(z, axis=1)[here]) / N + penalty.l1 * (up + down).sum() + 0.5 * penalty.l2 * (w**2).sum()
        pull = g + penalty.l2 * w
        return total, np.concatenate([(pull + penalty.l1).ravel(), (penalty.l1 - pull).ravel(), at_b])

    bounds = [(0.0, None)] * (2 * D * K) + [(None, None) if intercept else (0.0, 0.0)] * K
    found = minimize(
        value, np.zeros(2 * D * K + K), jac=True, bounds=bounds, options={"maxiter": 20000, "ftol": 1e-15, "gtol": 1e-9}
    )
    return found.fun, (found.x[: D * K] - found.x[D * K : 2 * D * K]).reshape(D, K)


def trained(penalty, X, y, s, intercept, passes, solver="fiol,eta=2"):
    run = Learner(solver, "softmax", penalty, n_outputs=K, n_features=D, fit_intercept=intercept)
    for _ in range(passes):
        run.learn(X, y, s)
    return run


def of_blocks(run, X, y, s, cuts=(0, 50, N)):
    found = gap_of_blocks(run)
    signs = np.where(np.equal.outer(y, np.arange(K)), 1.0, -1.0)
    for first, last in pairwise(cuts):
        part = slice(first, last)
        found.add(read(X[part], "X"), run.predict(X[part]), signs[part], s[part])
    [gap] = found.result()
    return gap


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_gap_is_below_the_true_one_and_the_optimum_has_none(penalty, intercept):
    X, y, s = rows()
    for passes in (0, 1, 30):
        run = trained(penalty, X, y, s, intercept, passes)
        least, best = optimum(run.penalty, X, y, s, intercept)
        objective = run.objective(X, y, s)
        true = (objective - least) / objective
        found, streamed = run.duality_gap(X, y, s), of_blocks(run, X, y, s)
        assert streamed.objective == pytest.approx(objective, rel=1e-12)
        assert found >= true - 1e-9
        assert streamed.bound <= least + 1e-9
        assert streamed.relative >= found - 1e-12
        assert found <= 1.0
    assert streamed.relative <= found + 0.4
    there = Learner("fiol", "softmax", penalty, n_outputs=K, fit_intercept=intercept, start=best)
    [gap] = gaps_in_memory(there, read(X, "X"), there.predict(X), np.where(np.equal.outer(y, np.arange(K)), 1.0, -1.0), s)
    assert least - 2e-5 < gap.bound <= least + 1e-9
    if not intercept:  # that of ``there`` is 0
        assert of_blocks(there, X, y, s).bound == pytest.approx(gap.bound, rel=1e-4)


def test_rows_of_many_blocks_are_all_read():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9000, 64)) * (rng.random((9000, 64)) < 0.5)
    y = (X[:, :K] + rng.gumbel(size=(9000, K))).argmax(axis=1)
    run = Learner("comid,eta=1", "softmax", "l2=0.05", n_outputs=K, n_features=64, fit_intercept=True)
    for _ in range(5):
        run.learn(X, y)
    found = run.duality_gap(X, y)
    assert 0.0 < found < 0.1
    assert run.duality_gap(sp.csr_array(X), y) == found


def test_containers_and_columns_beyond_the_model_change_nothing():
    X, y, s = rows(1)
    run = trained("l1=0.01", X, y, s, True, 3)
    found = run.duality_gap(X, y, s)
    grown = Learner("fiol,eta=2", "softmax", "l1=0.01", n_outputs=K, fit_intercept=True)
    for _ in range(3):
        grown.learn(sp.csr_array(X), y, s)
    for given in (sp.csr_array(X), sp.csc_array(X), X.astype(np.float64, order="F")):
        assert run.duality_gap(given, y, s) == found
    assert grown.duality_gap(np.hstack([X, np.ones((N, 2))]), y, s) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("y", [np.zeros(N, int), np.arange(N) % 2, (np.arange(N) == 5) * 3])
def test_classes_without_rows_leave_a_bound(y):
    X, _, s = rows(2)
    run = trained("l2=0.1", X, y, s, True, 200)
    least, _ = optimum(run.penalty, X, y, s, True)
    gap = run.duality_gap(X, y, s)
    assert (run.objective(X, y, s) - least) <= gap * run.objective(X, y, s) + 1e-9
    assert of_blocks(run, X, y, s).bound <= least + 1e-9


def test_balanced_probabilities_sum_to_the_weights_of_the_classes():
    rng = np.random.default_rng(3)
    for size in (0.1, 3.0, 300.0):
        z, own, s = rng.normal(size=(N, K)) * size, rng.integers(0, K, N), rng.uniform(0.0, 2.0, N)
        levels, p = balanced(z, own, s)
        np.testing.assert_allclose(s @ p, np.bincount(own, s, K), rtol=1e-9)
        np.testing.assert_allclose(probabilities(z + levels), p, atol=1e-12)
    np.testing.assert_allclose(entropies(np.array([[0.0, 1.0], [0.5, 0.5]])), [0.0, -np.log(2.0)])


def test_without_a_penalty_a_gap_is_refused():
    X, y, s = rows()
    with pytest.raises(ValueError, match="without a penalty a duality gap says nothing"):
        trained("none", X, y, s, True, 1).duality_gap(X, y, s)


def test_an_estimator_of_several_classes_has_a_gap():
    X, y, _ = rows(4)
    model = OnlineClassifier("softmax", penalty="l2=0.05", passes=60, class_weight="balanced", random_state=0).fit(X, y)
    found = model.duality_gap(X, y)
    assert 0.0 < found < 0.02
    assert model.duality_gap([(X[:40], y[:40]), (X[40:], y[40:])]) >= found - 1e-12


def test_many_rows_are_balanced_without_searches_that_the_loss_cannot_show(monkeypatch):
    made, loss = [], joint_balance._loss
    monkeypatch.setattr(joint_balance, "_loss", lambda *given: made.append(1) or loss(*given))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = 3.0 * rng.normal(size=(3000, K))
        own = np.tile((scores + rng.gumbel(size=scores.shape)).argmax(axis=1), 60)
        _, p = balanced(np.tile(scores, (60, 1)), own, np.ones(len(own)))
        assert np.abs(p.sum(axis=0) - np.bincount(own, minlength=K)).max() <= 1e-13 * len(own)
    assert len(made) <= 15  # 26 while the last steps were searched
