"""The optimum of softmax: certified, that of L-BFGS, from any start, for rows and columns of any kind."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from test_joint_gap import PENALTIES, K, optimum, rows
from threadpoolctl import threadpool_info, threadpool_limits

from onlinear import Learner
from onlinear.certified.columns import Stored
from onlinear.certified.descent import Subproblem, solve_with
from onlinear.certified.joint_models import ByClasses, ClassBlocks, Coordinates, gram_of_classes, square_classes
from onlinear.certified.joint_newton import JointNewton, centred
from onlinear.certified.joint_products import Products
from onlinear.certified.newton import Limits, penalised
from onlinear.learner.scores import predictors_of
from onlinear.penalties import ElasticNet
from onlinear.rows import read
from onlinear.solvers.core.certified import counted

INF = np.inf


def solved(penalty, X, y, s, intercept=True, tol=1e-7, outputs=K, most=60):
    run = Learner(
        f"prox-newton,tol={tol}", "softmax", penalty, n_features=X.shape[1], n_outputs=outputs, fit_intercept=intercept
    )
    return run.solve(X, y, most, s)


def weights(run):
    return predictors_of(run)[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [*PENALTIES, "l1=1e-4", "l2=1e-4", "l1=1", "l2=10"])
def test_it_is_the_optimum(penalty, intercept):
    for seed in range(3):
        X, y, s = rows(seed)
        run = solved(penalty, X, y, s, intercept)
        gap, objective = run.duality_gap(X, y, s), run.objective(X, y, s)
        assert gap <= 1.001e-7
        assert counted(run.states[0])[0] <= 20
        least, _ = optimum(run.penalty, X, y, s, intercept)
        assert objective <= least * (1.0 + 1e-6)
        assert objective * (1.0 - gap) <= least + 1e-9


CHANGES = ("scales", "absent", "weightless", "separable", "wide")


def changed(change):
    """Rows of a kind that is hard to solve."""
    X, y, s = rows(5)
    if change == "scales":
        X = X * np.array([1.0, 1e-3, 1e3, 1.0, 1e5, 1e-5])
    elif change == "absent":
        y = np.where(y == 3, 0, y)
    elif change == "weightless":
        s = np.where(y == 1, 0.0, s)
    elif change == "separable":
        X = X + 4.0 * (np.equal.outer(y, np.arange(X.shape[1])) > 0)
    else:
        X = np.hstack([X, np.random.default_rng(1).normal(size=(len(y), 300))])
    return X, y, s


@pytest.mark.parametrize(
    "penalty", ["l1=0.01", "l2=1e-3", "elastic-net,l1=1e-3,l2=1e-3", "l1=1e-3,lower=-0.2,upper=0.3", "l2=1e-3,lower=0"]
)
@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_every_kind(change, penalty):
    X, y, s = changed(change)
    run = solved(penalty, X, y, s)
    assert run.duality_gap(X, y, s) <= 1.001e-7
    low, high = run.penalty.weight_bounds or (-INF, INF)
    assert low <= weights(run).min()
    assert weights(run).max() <= high


def test_any_start_ends_there():
    X, y, s = rows(2)
    best = solved("l1=0.01", X, y, s)
    rng = np.random.default_rng(0)
    for size in (0.1, 30.0, 1e6):
        run = Learner("prox-newton,tol=1e-7", "softmax", "l1=0.01", n_outputs=K, n_features=X.shape[1], fit_intercept=True)
        run.solve_whole(run.whole(X, y, s), 100, (size * rng.normal(size=(X.shape[1], K)), size * rng.normal(size=K)))
        assert run.objective(X, y, s) == pytest.approx(best.objective(X, y, s), rel=3e-7)


def test_containers_and_the_names_of_classes_change_little_or_nothing():
    X, y, s = rows(3)
    run = solved("l1=0.005", X, y, s)
    for given in (sp.csr_array(X), sp.csc_array(X), X.astype(np.float64, order="F")):
        assert np.array_equal(weights(solved("l1=0.005", given, y, s)), weights(run))
    turned = solved("l1=0.005", X, K - 1 - y, s, tol=1e-10)
    np.testing.assert_allclose(log_softmax(turned.predict(X)[:, ::-1], axis=1), log_softmax(run.predict(X), axis=1), atol=1e-3)


def test_two_classes_have_half_the_logistic_optimum():
    X, y, s = rows(4, 2)
    one = Learner("prox-newton,tol=1e-10", "logistic", "l1=0.01", n_features=X.shape[1], fit_intercept=True).solve(
        X, 2.0 * y - 1.0, 60, s
    )
    two = solved("l1=0.01", X, y, s, tol=1e-10, outputs=2)
    np.testing.assert_allclose(weights(two)[:, 1] - weights(two)[:, 0], weights(one)[:, 0], atol=1e-5)
    assert two.objective(X, y, s) == pytest.approx(one.objective(X, 2.0 * y - 1.0, s), rel=1e-9)


def a_model():
    """Rows, a working set of three weights of each class, and probabilities."""
    X, y, s = rows(6)
    stored, q, rng = Stored.of(read(X, "X")), s / len(y), np.random.default_rng(1)
    z, width = rng.normal(size=(K, len(y))), X.shape[1]
    p = np.exp(log_softmax(z, axis=0))
    of = np.repeat(np.arange(K), 3)
    which = np.concatenate([np.sort(rng.choice(width, 3, replace=False)) for _ in range(K)])
    at = Coordinates(which, np.concatenate([of, np.arange(K)]))
    return X, stored, at, p, q, rng


def test_the_model_is_made_as_it_is_multiplied_and_has_the_curvature_of_the_loss():
    X, stored, at, p, q, rng = a_model()
    which, size, n = at.which, len(at.of), len(q)
    H = gram_of_classes(stored.rows, X.shape[1], at, p, q, 1e-3)

    V = np.zeros((size, K, n))
    for a in range(size):
        V[a, at.of[a]] = X[:, which[a]] if a < len(which) else 1.0
    inner = np.einsum("akn,bkn,kn,n->ab", V, V, p + 1e-3, q) - np.einsum("akn,kn,bln,ln,n->ab", V, p, V, p, q)
    np.testing.assert_allclose(H, inner, atol=1e-15)
    model = ByClasses(*stored.columns, *at, q, 1e-3, p, np.zeros((K, n)), np.zeros(n), np.empty((K, n)))
    diagonal, d, found = np.empty(size), rng.normal(size=size), np.empty(size)
    square_classes(model, diagonal)
    np.testing.assert_allclose(diagonal, np.diag(H), rtol=1e-12)
    model.times(d, np.arange(size), size, found)
    np.testing.assert_allclose(found, H @ d, atol=1e-15)
    for a in range(size):
        model.move(a, d[a])
    np.testing.assert_allclose([model.gradient(a) for a in range(size)], H @ d, atol=1e-15)


def test_the_preconditioner_is_the_model_class_by_class_and_at_least_half_of_it():
    X, stored, at, p, q, rng = a_model()
    H, l2, size = gram_of_classes(stored.rows, X.shape[1], at, p, q, 1e-3), 0.1, len(at.of)
    ridge = np.diag(np.where(np.arange(size) < len(at.which), l2, 0.0))
    blocks = ClassBlocks(stored.rows, X.shape[1], at, q * (p * (1.0 - p) + 1e-3), l2)
    members = np.sort(rng.permutation(size)[:9])
    B = np.where(np.equal.outer(at.of, at.of), H + ridge, 0.0)
    r, part = rng.normal(size=9), np.ix_(members, members)
    np.testing.assert_allclose(blocks.on(members)(r), np.linalg.solve(B[part], r), rtol=1e-6)
    assert np.linalg.eigvalsh(2.0 * B - H).min() >= -1e-12
    rooms = np.zeros((K, len(q))), np.zeros(len(q)), np.empty((K, len(q)))
    model, free = ByClasses(*stored.columns, *at, q, 1e-3, p, *rooms), len(at.which)
    problem = Subproblem(model, r, r, r, r, (0.0, l2, -INF, INF), free)
    x, steps = solve_with(blocks, problem, r, members, 100, 1e-16)
    np.testing.assert_allclose(x, np.linalg.solve((H + ridge)[part], r), rtol=1e-5, atol=1e-6)
    assert 0 < steps <= 2 * len(members)


def test_many_rows_and_columns_take_either_model():
    rng = np.random.default_rng(2)
    X = sp.csr_array(rng.normal(size=(5000, 400)) * (rng.random((5000, 400)) < 0.05))
    y = (X[:, :5].toarray() * 3.0 + rng.gumbel(size=(5000, 5))).argmax(axis=1)
    stored, s = Stored.of(read(X, "X")), np.ones(5000)
    ends = []
    for made in (True, False):
        run = JointNewton(stored, 400, 5, ElasticNet(2e-3), y, s, True)
        run.costs.prefers_gram = lambda *_, made=made: made
        found = run.solve(np.zeros(2000), np.zeros(5), Limits(1e-8, 60))
        assert found.gap.relative <= 1e-8
        ends.append(found.gap.objective)
    assert ends[0] == pytest.approx(ends[1], rel=2e-8)


def test_blas_keeps_to_one_thread_in_all_products(monkeypatch):
    rng, seen, pulls = np.random.default_rng(3), set(), Products.pulls
    X, own = rng.normal(size=(60, 4)), rng.integers(0, K, 60)

    def told(self, theta):
        seen.update(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return pulls(self, theta)

    monkeypatch.setattr(Products, "pulls", told)
    with threadpool_limits(2, user_api="blas"):
        run = JointNewton(Stored.of(read(X, "X")), 4, K, ElasticNet(1e-2), own, np.ones(60), True)
        run.solve(np.zeros(4 * K), np.zeros(K), Limits(1e-6, 60))
    assert seen == {1}


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_products_are_those_of_matrices(density, ones):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 9)) * (rng.random((80, 9)) < density)
    products, full = Products(Stored.of(read(X, "X")), 9, ones), np.hstack([X, np.ones((80, int(ones)))])
    assert (products.matrix is not None) == (density > 0.5)
    d, theta = rng.normal(size=(K, full.shape[1])), rng.normal(size=(K, 80))
    np.testing.assert_allclose(products.scores(d), d @ full.T, atol=1e-13)
    np.testing.assert_allclose(products.pulls(theta), theta @ full, atol=1e-13)
    np.testing.assert_allclose(products.squares(theta), theta @ full**2, atol=1e-13)


@pytest.mark.parametrize(
    "strengths", [(1.0, 0.0, -INF, INF), (0.0, 1.0, -INF, INF), (0.3, 1.0, -INF, INF), (1.0, 0.2, -1.0, INF)]
)
@pytest.mark.parametrize("outputs", [2, 3, 6])
def test_the_shift_of_a_column_is_the_best_one(outputs, strengths):
    rng = np.random.default_rng(outputs)
    w = np.round(rng.normal(size=(outputs, 50)), 1)
    found = centred(w, strengths)
    if strengths[2] > -INF:
        assert np.array_equal(found, w)
        return
    assert np.ptp(found - w, axis=0).max() <= 1e-12
    for j in range(50):
        best = penalised(strengths, found[:, j])
        assert all(best <= penalised(strengths, found[:, j] + c) + 1e-12 for c in (-0.5, -0.1, -1e-3, 1e-3, 0.1, 0.5))
