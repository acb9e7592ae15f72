"""RLS is the ridge solution of the rows so far, whatever the scales of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from sparse_rows import close, stream

from onlinear import Learner


def learner(solver="rls,delta=0.5", **options):
    return Learner(solver, "squared", **options)


def rows(seed=0, outputs=3):
    X, _, _ = stream(seed)
    rng = np.random.default_rng(seed)
    return X, rng.standard_normal((X.shape[0], outputs)), rng.choice([0.0, 1.0, 2.0, 3.0], X.shape[0])


def ridge(X, Y, s, delta, start=0.0):
    """argmin sum s (y - <w, x>)^2 / 2 + (delta/2) |w - start|^2, and the inverse of its Hessian."""
    H = X.T @ (s[:, None] * X) + delta * np.eye(X.shape[1])
    return np.linalg.solve(H, X.T @ (s[:, None] * Y) + delta * start), np.linalg.inv(H)


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_solution_after_any_number_of_rows(intercept):
    X, Y, s = rows()
    run = learner(fit_intercept=intercept, n_features=X.shape[1], n_outputs=3)
    Z = np.column_stack([np.ones(X.shape[0]), X.toarray()]) if intercept else X.toarray()
    for end in (1, 2, 5, 30, X.shape[0]):
        part = slice(run.t, end)
        run.learn(X[part], Y[part], s[part])
        W, P = ridge(Z[:end], Y[:end], s[:end], 0.5)
        close(run.weights(), W[int(intercept) :])
        close(run.variables()["P"], P[int(intercept) :, int(intercept) :])
        if intercept:
            close(run.intercept(), W[0])


def test_the_printed_recursion_gives_the_same():
    X, Y, s = rows(1, 1)
    run = learner(n_features=X.shape[1])
    w, P = np.zeros(X.shape[1]), np.eye(X.shape[1]) / 0.5
    close(run.variables()["P"], P)
    for x, y, weight in zip(X.toarray(), Y[:, 0], s, strict=True):
        score = run.predict(x[None])[0]
        assert score == pytest.approx(w @ x, abs=1e-12)
        if weight > 0.0:
            k = P @ x / (1.0 / weight + x @ P @ x)
            w, P = w + k * (y - w @ x), P - np.outer(k, x @ P)
        run.learn(x[None], [y], [weight])
    close(run.weights(), w)
    close(run.variables()["P"], P)


def test_a_weight_is_a_number_of_rows():
    X, Y, s = rows(2)
    weighted = learner(fit_intercept=True, n_features=X.shape[1], n_outputs=3).learn(X, Y, s)
    again = np.repeat(np.arange(len(s)), s.astype(int))
    repeated = learner(fit_intercept=True, n_features=X.shape[1], n_outputs=3).learn(X[again], Y[again])
    close(weighted.weights(), repeated.weights())
    close(weighted.variables()["P"], repeated.variables()["P"])


def test_start_is_where_the_ridge_pulls_to():
    X, Y, s = rows(3, 2)
    start = np.linspace(-2.0, 2.0, 2 * X.shape[1]).reshape(X.shape[1], 2)
    run = learner(n_features=X.shape[1], n_outputs=2, start=start)
    np.testing.assert_array_equal(run.weights(), start)
    close(run.learn(X, Y, s).weights(), ridge(X.toarray(), Y, s, 0.5, start)[0])


def test_columns_of_any_scale():
    """20000 rows with columns of size 1e-3 to 1e6 and a tiny ridge: every weight to ten digits."""
    rng = np.random.default_rng(4)
    n, d = 20000, 10
    scale = 10.0 ** np.linspace(-3.0, 6.0, d)
    X = (rng.standard_normal((n, d)) + 1.0) * scale
    y = X @ (rng.standard_normal(d) / scale) + 0.1 * rng.standard_normal(n)
    run = learner("rls,delta=1e-6", n_features=d).learn(X, y)
    Z, target = np.vstack([X / scale, np.diag(1e-3 / scale)]).astype(np.longdouble), np.append(y, np.zeros(d))
    w = np.linalg.lstsq(Z.astype(float), target, rcond=None)[0].astype(np.longdouble)
    H = Z.T @ Z
    for _ in range(3):  # refine in extended precision
        w += np.linalg.solve(H.astype(float), (Z.T @ (target - Z @ w)).astype(float))
    np.testing.assert_allclose(run.weights() * scale, w.astype(float), rtol=1e-10)
    assert np.linalg.eigvalsh(run.variables()["P"] * np.outer(scale, scale)).min() > 0.0


def test_raw_cpusmall(data):
    """The set on which the printed recursion breaks down: rows of norm 1e6, ridge 1e-6."""
    import lzma

    from sklearn.datasets import load_svmlight_file

    with lzma.open(data / "cpusmall" / "cpusmall.svm.xz") as file:
        X, y = load_svmlight_file(file)
    X = X.toarray()
    run = learner("rls,delta=1e-6", n_features=X.shape[1]).learn(X[:200], y[:200])
    first = 200 * run.progressive_loss
    run.learn(X[200:], y[200:])
    assert 2.0 * (len(y) * run.progressive_loss - first) / (len(y) - 200) < y.var()
    scale = np.abs(X).max(axis=0)
    w = np.linalg.lstsq(np.vstack([X / scale, np.diag(1e-3 / scale)]), np.append(y, np.zeros(X.shape[1])), rcond=None)[0]
    np.testing.assert_allclose(run.weights() * scale, w, rtol=1e-8, atol=1e-8 * np.abs(w).max())


@pytest.mark.parametrize("average", ["none", "uniform", "uniform-post", "weighted-t1"])
def test_calls_and_layouts_leave_no_trace(average):
    X, Y, s = rows(5)
    options = {"average": average, "fit_intercept": True, "n_features": X.shape[1], "n_outputs": 3}
    whole, pieces = learner(**options).learn(X, Y, s), learner(**options)
    first = 0
    for end in (0, 1, 2, 64, 65, X.shape[0]):
        pieces.learn(X[first:end].toarray(), Y[first:end], s[first:end])
        pieces.weights(average=True), pieces.variables()
        pieces = Learner.thaw(*pieces.freeze())
        first = end
    mine, theirs = whole.freeze()[1], pieces.freeze()[1]
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_averages():
    X, Y, _ = rows(6, 1)
    path = [np.zeros(X.shape[1])]
    run = learner(average="uniform", n_features=X.shape[1])
    for i in range(X.shape[0]):
        run.learn(X[[i]], Y[[i], 0])
        path.append(run.weights())
    close(run.weights(average=True), np.mean(path[:-1], axis=0))
    post = learner(average="uniform-post", n_features=X.shape[1]).learn(X, Y[:, 0])
    close(post.weights(average=True), np.mean(path[1:], axis=0))


def test_refusals_name_what_is_missing():
    with pytest.raises(ValueError, match=r"n_features \(--n-features\) must be given"):
        learner()
    with pytest.raises(ValueError, match="limit=16384"):
        learner(n_features=2**14 + 1)
    assert learner("rls,limit=20000", n_features=2**14 + 1).size == 2**14 + 1
    with pytest.raises(ValueError, match="least-squares"):
        Learner("rls", "hinge", n_features=3)
    with pytest.raises(ValueError, match="penalty must be 'none'"):
        Learner("2sgd", "squared", "l2,l2=0.1", n_features=3)
