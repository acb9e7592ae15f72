"""The optimum of each kind of problem against another solver or its optimality condition."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.linear_model import ElasticNet, Lasso

from onlinear.learner.parts import build_loss, build_penalty
from onlinear.papers.optimum import optimum

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 8)) * (rng.uniform(size=(60, 8)) < 0.6)
SCORE = X @ rng.normal(size=8) + rng.normal(size=60)
SIGNS = np.where(SCORE > 0, 1.0, -1.0)


def solve(loss, penalty, y, A=X):
    return optimum(A, y, build_loss(loss), build_penalty(penalty))


def test_least_squares():
    found = solve("squared", "none", SCORE)
    np.testing.assert_allclose(found.w, np.linalg.lstsq(X, SCORE)[0], atol=1e-10)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_lasso_and_elastic_net(factor):
    reference = Lasso(alpha=0.1 / factor, fit_intercept=False, tol=1e-14, max_iter=100000).fit(X, SCORE).coef_
    found = solve(f"squared,factor={factor}", "l1,l1=0.1", SCORE)
    np.testing.assert_allclose(found.w, reference, atol=1e-5)
    np.testing.assert_array_equal(found.w == 0.0, reference == 0.0)
    reference = ElasticNet(alpha=0.3, l1_ratio=1 / 3, fit_intercept=False, tol=1e-14, max_iter=100000).fit(X, SCORE).coef_
    found = solve("squared", "elastic-net,l1=0.1,l2=0.2", SCORE, sp.csr_matrix(X))
    np.testing.assert_allclose(found.w, reference, atol=1e-5)
    assert 0.0 <= found.gap < 1e-9


def test_hinge_with_l1_is_a_linear_program():
    n, d, l1 = *X.shape, 0.05
    cost = np.concatenate([np.full(2 * d, l1), np.full(n, 1 / n)])
    margin = SIGNS[:, None] * X
    A = np.hstack([-margin, margin, -np.eye(n)])
    reference = linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=(0, None)).fun
    assert solve("hinge", f"l1,l1={l1}", SIGNS).value == pytest.approx(reference, abs=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared-hinge"])
def test_the_gap_certifies(loss):
    found = solve(loss, "elastic-net,l1=0.01,l2=0.05", SIGNS)
    assert -1e-12 <= found.gap < 1e-9
    problem = build_loss(loss), build_penalty("elastic-net,l1=0.01,l2=0.05")
    for _ in range(20):
        w = found.w + 0.01 * rng.normal(size=8)
        value = np.mean([problem[0].value(s, y) for s, y in zip(X @ w, SIGNS, strict=True)]) + problem[1].value(w)
        assert value >= found.value - found.gap


def test_total_variation():
    found = solve("squared", "total-variation,tv=0.1", SCORE)
    penalty = build_penalty("total-variation,tv=0.1")
    value = lambda w: np.mean((X @ w - SCORE) ** 2) / 2 + np.sum(penalty.value(w))  # noqa: E731
    assert found.value == pytest.approx(value(found.w))
    assert all(value(found.w + 1e-3 * rng.normal(size=8)) >= found.value for _ in range(50))
