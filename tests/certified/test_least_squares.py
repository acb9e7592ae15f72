"""The squared loss by sums over rows: the optimum that rows give, a gap that holds, and rows where sums round."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import OnlineRegressor, PenaltyPath
from onlinear.certified.products import DenseRows, SparseRows
from onlinear.certified.prox_newton import ProxNewton
from onlinear.solvers import prox_newton

N, D = 400, 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) @ (np.eye(D) + 0.5 * RNG.normal(size=(D, D)))
Y = X[:, :5] @ RNG.normal(size=5) + RNG.normal(size=N) + 3.0
S = RNG.choice([0.0, 0.5, 1.0, 3.0], N)
PENALTIES = ["l1=0.1", "l2=0.01", "elastic-net,l1=0.1,l2=0.01"]


@pytest.fixture
def by_rows(monkeypatch):
    """The runs that read rows."""
    found, solve = [], ProxNewton.solve
    monkeypatch.setattr(ProxNewton, "solve", lambda self, *given: found.append(self) or solve(self, *given))
    return found


def test_no_row_is_read_once_there_are_sums(monkeypatch, by_rows):
    read = []
    for kind in (DenseRows, SparseRows):
        for name in ("scores", "pulls"):
            method = getattr(kind, name)
            monkeypatch.setattr(kind, name, lambda self, *given, of=method, named=name: read.append(named) or of(self, *given))
    path = PenaltyPath(OnlineRegressor(scale="none"), ["l1=0.3", "l1=0.1", "l1=0.03"], tol=1e-8).fit(X, Y)
    assert read == ["pulls"], "X'y, once"
    assert by_rows == []
    assert path.converged_.all()
    assert [path.estimator_at(k).n_passes_ for k in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_it_is_the_optimum_that_rows_give(monkeypatch, by_rows, rows, penalty, fit_intercept):
    settings = {"penalty": penalty, "fit_intercept": fit_intercept, "tol": 1e-8}
    model = OnlineRegressor(**settings).fit(rows(X), Y, S)
    assert by_rows == []
    monkeypatch.setattr(prox_newton, "of_sums", lambda *given: None)
    other = OnlineRegressor(**settings).fit(rows(X), Y, S)
    assert len(by_rows) == 1
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-8)
    assert model.dual_bound_ <= other.objective_ * (1.0 + 1e-12)
    assert model.objective_ == pytest.approx(model.learner_.objective(X, Y, S), rel=1e-12)
    assert model.duality_gap(X, Y, S) == pytest.approx(model.dual_gap_, abs=1e-10)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-4)


@pytest.mark.parametrize(("offset", "noise"), [(0.0, 1e-5), (1e6, 1.0)])
def test_rows_are_read_where_rounding_of_sums_is_a_share_of_the_gap(by_rows, offset, noise):
    y = X[:, :5].sum(axis=1) + noise * RNG.normal(size=N)
    model = OnlineRegressor(l1=1e-3 * noise, tol=1e-4, scale="none", max_passes=1000).fit(X + offset, y)
    assert len(by_rows) == 1
    assert model.objective_ == pytest.approx(model.learner_.objective(X + offset, y), rel=1e-6)


def test_the_level_of_targets_costs_no_digits(by_rows):
    low, high = (OnlineRegressor(l1=0.1, tol=1e-6).fit(X, Y + level) for level in (0.0, 1e9))
    assert by_rows == []
    assert high.objective_ == pytest.approx(low.objective_, rel=1e-6)
    assert high.intercept_ == pytest.approx(low.intercept_ + 1e9, rel=1e-12)
    np.testing.assert_allclose(high.coef_, low.coef_, atol=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_columns_that_say_nothing_or_the_same_are_no_hindrance(by_rows, penalty):
    twin = np.column_stack([X, X[:, :3], np.zeros(N), np.ones(N)])
    model = OnlineRegressor(penalty=penalty, tol=1e-7, scale="none").fit(twin, Y)
    assert by_rows == []
    assert model.coef_[D + 3] == 0.0
    assert model.objective_ == pytest.approx(
        OnlineRegressor(penalty=penalty, tol=1e-9, scale="none").fit(X, Y).objective_, rel=0.05
    )
    assert OnlineRegressor(penalty=penalty, tol=1e-9).fit(np.zeros((5, 2)), Y[:5]).objective_ >= 0.0


def test_a_start_has_weights_of_columns_that_no_row_has_any_more():
    rows = X.copy()
    model = OnlineRegressor(l1=0.01, tol=1e-9, scale="none", warm_start=True).fit(rows, Y)
    assert model.coef_[0] != 0.0
    rows[:, 0] = 0.0
    alone = OnlineRegressor(l1=0.01, tol=1e-9, scale="none").fit(rows, Y)
    model.fit(rows, Y)
    assert model.coef_[0] == 0.0
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-4)


def test_each_target_has_its_own_sums():
    Z = np.column_stack([Y, -Y, Y[::-1]])
    together = OnlineRegressor(l1=0.1, tol=1e-8).fit(X, Z)
    alone = [OnlineRegressor(l1=0.1, tol=1e-8).fit(X, Z[:, k]).coef_ for k in range(3)]
    np.testing.assert_allclose(together.coef_, alone, atol=1e-6)


def test_a_callback_is_told_once_and_may_stop():
    told = []
    model = OnlineRegressor(l1=0.1, tol=1e-6, callbacks=[lambda now: told.append(now.rows)]).fit(X, Y)
    assert len(told) >= 1
    assert model.n_iter_ == model.n_passes_ == 1
