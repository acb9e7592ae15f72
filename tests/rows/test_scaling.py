"""Running scales against their formulas, the same for any cut of the stream."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import OnlineRegressor, rows
from onlinear.learner import Learner
from onlinear.rows.centring import CENTRED_KINDS
from onlinear.rows.scaling import Scaler

RNG = np.random.default_rng(4)
X = RNG.standard_normal((40, 6)) * (RNG.random((40, 6)) < 0.5) * 10.0 ** np.arange(-3, 3)
X[:, 4] = 0.0
S = np.where(RNG.random(40) < 0.2, 0.0, RNG.random(40))
Y = np.where(RNG.random(40) < 0.5, -1.0, 1.0)


def direct(kind, X, s):
    """Every row in scaled units and the scales after the last, straight from the definition."""
    out = np.zeros_like(X)
    for j in range(X.shape[1]):
        for i in range(len(X)):
            seen = X[: i + 1, j][(X[: i + 1, j] != 0) & (s[: i + 1] > 0)]
            scale = 0.0 if not len(seen) else (np.sqrt(np.mean(seen**2)) if kind == "rms" else np.abs(seen).max())
            out[i, j] = X[i, j] / scale if scale else 0.0
    return out, np.array([scale_of(kind, X[(X[:, j] != 0) & (s > 0), j]) for j in range(X.shape[1])])


def scale_of(kind, seen):
    if not len(seen):
        return 0.0
    return np.sqrt(np.mean(seen**2)) if kind == "rms" else np.abs(seen).max()


def scaled(scaler, X, s):
    source = rows.read(X)
    found, largest = scaler.learn(source.stored().data, s)
    assert largest == np.abs(found.values).max(initial=0.0)
    return sp.csr_matrix((found.values, found.indices, found.indptr.astype(int)), shape=X.shape).toarray()


@pytest.mark.parametrize("kind", ["rms", "max-abs"])
def test_rows_and_scales_follow_the_definition(kind):
    scaler = Scaler(kind, X.shape[1])
    wanted, scales = direct(kind, X, S)
    np.testing.assert_allclose(scaled(scaler, X, S), wanted, rtol=1e-14)
    np.testing.assert_allclose(scaler.scales(), scales, rtol=1e-14)
    np.testing.assert_array_equal(scaler.scales() == 0.0, np.arange(6) == 4)


@pytest.mark.parametrize("kind", ["rms", "max-abs"])
def test_any_cut_gives_the_same_bits(kind):
    whole, cut = Scaler(kind, 6), Scaler(kind, 6)
    together = scaled(whole, X, S)
    pieces = [scaled(cut, X[a:b], S[a:b]) for a, b in ((0, 1), (1, 1), (1, 17), (17, 40))]
    np.testing.assert_array_equal(np.vstack(pieces), together)
    assert whole.moments.tobytes() == cut.moments.tobytes()


@pytest.mark.parametrize("kind", ["rms", "max-abs"])
def test_weight_zero_moves_nothing_and_growth_keeps_all(kind):
    scaler = Scaler(kind, 3)
    scaled(scaler, X[:, :3], np.ones(40))
    before = scaler.moments.copy()
    scaled(scaler, 1e6 * X[:, :3], np.zeros(40))
    np.testing.assert_array_equal(scaler.moments, before)
    scaler.grow(6)
    np.testing.assert_array_equal(scaler.moments[:, :3], before)
    np.testing.assert_array_equal(scaler.moments[:, 3:], 0.0)


def test_a_constant_size_has_exactly_that_scale():
    for kind in ("rms", "max-abs"):
        scaler = Scaler(kind, 1)
        out = scaled(scaler, np.array([[2.0], [-2.0], [2.0]]), np.ones(3))
        np.testing.assert_array_equal(out, [[1.0], [-1.0], [1.0]])


def test_original_units_and_back():
    scaler = Scaler("max-abs", 3)
    scaled(scaler, np.array([[4.0, 0.0, -0.5]]), np.ones(1))
    np.testing.assert_array_equal(scaler.original(np.array([2.0, 7.0, 1.0])), [0.5, 0.0, 2.0])
    np.testing.assert_array_equal(scaler.scaled(np.array([0.5, 9.0, 2.0])), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(scaler.original(np.array([1.0]), np.array([2])), [2.0])
    assert scaler.centre(np.empty(0)) == 0.0


def test_standard():
    scaler = Scaler("standard", 2)
    scaler.fix(np.array([1.0, 5.0]), np.array([2.0, 0.0]))
    np.testing.assert_array_equal(scaler.scales(), [2.0, 1.0])
    assert scaler.centre(np.array([4.0, 3.0])) == -(4.0 / 2.0 * 1.0 + 3.0 * 5.0)
    learner = Learner("comid", "hinge", scale="standard", n_features=2)
    with pytest.raises(ValueError, match="scale='standard' needs the mean of all rows before the first"):
        learner.learn(np.ones((2, 2)), np.ones(2))


@pytest.mark.parametrize(("level", "step"), [(1e4, 2e-12), (-0.3, 6e-17), (1e6, 1e-9)])
@pytest.mark.parametrize("settings", [{}, {"l1": 1e-3}, {"l2": 1e-3, "tol": 1e-4}])
def test_what_rounding_leaves_of_a_constant_column_is_no_deviation(settings, level, step):
    rng = np.random.default_rng(1)
    constant, small = level + step * rng.integers(-1, 2, 200), 0.001 * rng.standard_normal(200)
    given = np.column_stack([rng.standard_normal(200), constant, small])
    y = 2.0 * given[:, 0] + rng.standard_normal(200)
    model = OnlineRegressor(scale="standard", random_state=0, **settings).fit(given, y)
    assert abs(model.coef_[1]) < 10.0
    np.testing.assert_allclose(model.learner_.scaler.scales(), [given[:, 0].std(), 1.0, small.std()], rtol=1e-12)


@pytest.mark.parametrize("kind", ["rms", "max-abs"])
def test_through_a_learner(kind):
    """Scaled rows given to a plain learner are a scaling learner; its weights are in the columns' own units."""
    settings = {"solver": "implicit-sgd", "loss": "logistic", "n_features": 6, "fit_intercept": True}
    learner = Learner(**settings, scale=kind).learn(X, Y, S)
    plain = Learner(**settings)
    scaler = Scaler(kind, 6)
    plain.learn(scaled(scaler, X, S), Y, S)
    np.testing.assert_allclose(learner.weights(), scaler.original(plain.weights()), rtol=1e-12, atol=1e-15)
    assert learner.weights()[4] == 0.0
    np.testing.assert_allclose(learner.predict(X), X @ learner.weights() + learner.intercept(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("average", ["none", "weighted-t1"])
@pytest.mark.parametrize("kind", ["none", "rms", "max-abs", *CENTRED_KINDS])
def test_weights_that_are_not_0_are_counted_among_the_columns_in_use(kind, average):
    rng = np.random.default_rng(3)
    X = sp.random(40, 60, 0.1, random_state=rng).toarray()
    X[:, 0], X[:, 1], X[:, 40:] = rng.standard_normal(40) + 5.0, 7.0, 0.0
    learner = Learner("comid", "logistic", "l1=1e-3", average, kind, fit_intercept=True)
    for rows_learnt in (1, 2, 37):
        learner.learn(X[:rows_learnt], np.where(X[:rows_learnt, 0] > 5.0, 1.0, -1.0))
        for of_average in (False, True):
            assert learner.count_nonzeros(of_average) == np.count_nonzero(learner.weights(average=of_average))
    assert learner.count_nonzeros(False) > 0
