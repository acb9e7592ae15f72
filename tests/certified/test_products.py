"""Products of rows in memory: those of stored entries and those of a matrix are the same, in all columns and in some."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import Learner, OnlineClassifier, OnlineRegressor
from onlinear.certified import curvatures
from onlinear.certified.columns import Stored
from onlinear.certified.costs import Costs
from onlinear.certified.products import AT_HAND, DenseColumns, DenseRows, RowsWithin, SparseRows, products_of
from onlinear.rows import read
from onlinear.rows.scaling import Scaler


def rows(n, d, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    return X, rng.choice([0.0, 0.5, 2.0], n), rng


@pytest.mark.parametrize(
    ("n", "d", "share"),
    [(1, 1, 1.0), (70, 9, 0.1), (70, 9, 0.7), (130, 9, 1.0), (150, 400, 0.4), (AT_HAND // 2, 3, 1.0), (200, 2000, 1.0)],
)
def test_products_are_those_of_the_matrix_with_its_zeros(n, d, share):
    X, h, rng = rows(n, d, share)
    stored = Stored.of(read(X, "X"))
    stored.widen(d)
    full, W = np.hstack([X, np.ones((n, 1))]), np.flatnonzero(rng.random(d) < 0.6)
    H, some = full.T @ (h[:, None] * full), np.append(W, d)
    step = rng.normal(size=d + 1)
    chosen = products_of(stored)
    assert type(chosen) is (DenseRows if share > 0.5 else SparseRows)
    for products in (chosen, SparseRows(stored.rows, d)):
        scores, g, diagonal, curved = np.empty(n), np.empty(d), np.empty(d + 1), np.empty(d + 1)
        products.scores(step[:-1], scores)
        np.testing.assert_allclose(scores, X @ step[:-1], atol=1e-10)
        products.pulls(h, g)
        np.testing.assert_allclose(g, h @ X, atol=1e-10)
        products.squares(h, diagonal)
        np.testing.assert_allclose(diagonal, np.diag(H), rtol=1e-12)
        products.curved(h, step, curved)
        np.testing.assert_allclose(curved, H @ step, rtol=1e-9, atol=1e-8)
        within = products.within(W, np.count_nonzero(X[:, W]))
        within.scores(step[W], scores)
        np.testing.assert_allclose(scores, X[:, W] @ step[W], atol=1e-10)
        for steep in (h, np.ones(n), np.zeros(n)):
            wanted = full[:, some].T @ (steep[:, None] * full[:, some])
            np.testing.assert_allclose(within.gram(steep), wanted, rtol=1e-9, atol=1e-9)


def test_rows_without_curvature_are_left_out_where_zeros_are_multiplied(monkeypatch):
    X, _, rng = rows(300, 400, 0.4)
    h, seen, add = np.where(rng.random(300) < 0.2, 2.0, 0.0), [], curvatures.add_scaled
    monkeypatch.setattr(curvatures, "add_scaled", lambda X, *rest: seen.append(len(X)) or add(X, *rest))
    stored = Stored.of(read(sp.csr_array(X), "X"))
    full = np.hstack([X, np.ones((300, 1))])
    np.testing.assert_allclose(curvatures.gram(stored.rows, h, 400), full.T @ (h[:, None] * full), rtol=1e-9, atol=1e-9)
    assert sum(seen) == np.count_nonzero(h)


def test_rows_without_zeros_are_multiplied_where_they_are_stored():
    X, _, _ = rows(50, 4, 1.0)
    stored = Stored.of(read(X, "X"))
    assert np.shares_memory(stored.matrix(0.5), stored.rows.values)
    assert np.array_equal(stored.matrix(0.5), X)
    stored.widen(6)
    assert np.array_equal(stored.matrix(0.5), np.hstack([X, np.zeros((50, 2))]))
    assert stored.matrix(0.9) is None
    assert Stored.of(read(np.zeros((3, 2)), "X")).matrix(0.5) is None


@pytest.mark.parametrize("n", [1, 4, 20])
def test_curvatures_of_few_rows_have_those_of_the_intercept_too(n):
    X, h, rng = rows(n, 30, 1.0)
    h += 0.5
    stored, full = Stored.of(read(X, "X")), np.hstack([X, np.ones((n, 1))])
    products, H = products_of(stored), full.T @ (h[:, None] * full)
    for m in (30, 2, 12):
        stored.curved, W = None, np.sort(rng.permutation(30)[:m])
        found = RowsWithin(stored, products, Costs(stored, products.cost)).fixed(W, h, np.arange(30))
        np.testing.assert_allclose(found, H[np.ix_(np.append(W, 30), np.append(W, 30))], rtol=1e-9, atol=1e-9)


def test_a_quadratic_with_few_rows_and_columns_far_from_0_is_certified_in_few_passes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 30)) + 3.0
    y = X[:, :5] @ rng.normal(size=5) + rng.normal(size=20)
    model = OnlineRegressor(penalty="l1=0.03", tol=1e-6).fit(X, y)
    assert model.converged_
    assert model.n_passes_ <= 5


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_curvatures_that_stay_are_made_once(monkeypatch, share):
    X, h, rng = rows(200, 30, share)
    stored, every = Stored.of(read(X, "X")), np.arange(30)
    stored.widen(30)
    full, made = np.hstack([X, np.ones((200, 1))]), []
    for kind in (SparseRows, DenseColumns):
        gram = kind.gram
        monkeypatch.setattr(kind, "gram", lambda rows, h, gram=gram: made.append(rows) or gram(rows, h))
    for own in (h, h + 1.0):
        made.clear()
        H = full.T @ (own[:, None] * full)
        for m in (1, 2, 5, 9, 14, 20, 25, 30, 14, 1, 0, 30):
            products = products_of(stored)  # those of another penalty or output
            within = RowsWithin(stored, products, Costs(stored, products.cost))
            W = np.sort(rng.permutation(30)[:m]) if m < 25 else every[30 - m :]
            found = within.fixed(W, own, every)
            np.testing.assert_allclose(found, H[np.ix_(np.append(W, 30), np.append(W, 30))], rtol=1e-9, atol=1e-9)
        assert len(made) <= 6, "those of some columns, and that of all"


@pytest.mark.parametrize("scale", ["rms", "none"])
def test_rows_of_the_caller_stay_as_they_are(scale):
    X, _, _ = rows(300, 5, 0.5)
    y = (X[:, 0] > 0.0).astype(int)
    for given in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float32)), np.ones_like(X) + X):
        parts = [given] if isinstance(given, np.ndarray) else [given.data, given.indices, given.indptr]
        before = [part.copy() for part in parts]
        for part in parts:
            part.setflags(write=False)
        model = OnlineClassifier(penalty="l2,l2=0.01", tol=1e-6, scale=scale).fit(given, y)
        assert model.converged_
        assert all(np.array_equal(part, kept) for part, kept in zip(parts, before, strict=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.array, sp.csr_array, lambda X: sp.csr_array(X)[::-1][::-1]])
def test_rows_in_scales_are_quotients(container, dtype):
    X, s, _ = rows(90, 6, 0.5)
    X[:, 5] = 0.0
    scaler = Scaler("rms", 6)
    source = scaler.whole(read(container(X.astype(dtype)), "X"), s, first=True)
    indptr, indices, values = source.data
    found = sp.csr_array((values, indices.astype(np.int64), indptr.astype(np.int64)), shape=X.shape).toarray()
    by = scaler.scales()
    assert by[5] == 0.0
    assert np.array_equal(found[:, :5], X.astype(dtype)[:, :5] / by[:5])
    assert source.largest == np.abs(values).max()


def test_a_learner_ends_at_the_same_optimum_whatever_its_rows_are_stored_as():
    X, _, rng = rows(400, 8, 1.0)
    y = np.where(X @ rng.normal(size=8) + rng.normal(size=400) > 0.0, 1.0, -1.0)
    found = []
    for given in (X, sp.csr_array(X), sp.csr_array(np.hstack([X, np.zeros((400, 60))]))):
        for penalty in ("l2=1e-3", "l1,l1=1e-2"):
            learner = Learner("prox-newton,tol=1e-10", "logistic", penalty, fit_intercept=True, n_features=given.shape[1])
            learner.solve(given, y, iterations=100)
            found.append(np.append(learner.weights()[:8], learner.intercept()))
    for others in (found[::2], found[1::2]):
        for other in others:
            np.testing.assert_allclose(other, others[0], atol=1e-6)
