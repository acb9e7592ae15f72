"""Predictions clipped to the targets seen: the loss that matches, any cut of the rows, files, and what they are for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from seldom import seldom
from sklearn.datasets import load_diabetes

from onlinear import Learner, ModelFileError, OnlineRegressor, PenaltyPath, load
from onlinear.files import model_file
from onlinear.learner.clip import EXACT, Clipped, ClippedCounts
from onlinear.learner.units import LONE

OPTIONS = {"targets": "relative", "clip": True, "fit_intercept": True, "average": "adaptive"}
FEW = 90  # rows that come by themselves: after a hundred, code for such rows is compiled
SOLVERS = ["implicit-ftrl,eta=8", "implicit-sgd,eta=3", "fiol,eta=3", "comid,eta=0.1"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = np.where(rng.random((600, 5)) < 0.7, rng.standard_normal((600, 5)), 0.0)
    return X, np.exp(X @ rng.standard_normal(5)) + 7.0


def state(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


@pytest.mark.parametrize("s", [-9.0, -1.0, 0.3, 2.0, 14.0])
@pytest.mark.parametrize("c", [0.01, 1.0, 1e4])
def test_the_step_is_that_of_the_matching_loss(s, c):
    loss, y = Clipped(-1.0, 3.0), 0.5
    integral = quad(lambda u: min(max(u, -1.0), 3.0) - y, y, s, points=[-1.0, 3.0])[0]
    assert loss.value(s, y) == pytest.approx(integral)
    theta = brentq(lambda theta: theta - loss.slope(s - c * theta, y), -10.0, 10.0, xtol=1e-14)
    assert loss.theta(s, c, y) == pytest.approx(theta, abs=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_any_cut_of_the_rows_gives_the_same_bits(solver, rows, tmp_path):
    X, y = rows
    whole = Learner(solver, "squared", **OPTIONS).learn(X, y)
    for size in (1, 7):
        cut = Learner(solver, "squared", **OPTIONS)
        for first in range(0, 600, size):
            cut.learn(X[first : first + size], y[first : first + size])
        assert state(cut) == state(whole)
    half = Learner(solver, "squared", **OPTIONS).learn(X[:300], y[:300])
    half.save(tmp_path / "half")
    for again in (load(tmp_path / "half"), pickle.loads(pickle.dumps(half)), half):
        assert state(again.learn(X[300:], y[300:])) == state(whole)
        np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_it_is_the_recursion(rows):
    """Row by row, in the classes of numbers: the range takes the row in, the prediction is that of the range before."""
    X, y = rows[0], np.minimum(rows[1], 12.0)
    learner = Learner("implicit-sgd,eta=3", "squared", targets="relative", clip=True, fit_intercept=True).learn(X, y)
    w, total, level, low, high = np.zeros(6), 0.0, 0.0, np.inf, -np.inf
    for t, (x, target) in enumerate(zip(np.column_stack([np.ones(600), X]), y - y[0], strict=True), start=1):
        score, c = w @ x, 3.0 / np.sqrt(t) * (x @ x)
        total += 0.5 * ((np.clip(level + score, low, high) if low <= high else level + score) - target) ** 2
        low, high = min(low, target), max(high, target)
        if t in (1, 2, 4, 8, 16, 32, 64):
            seen = y[:t] - y[0]
            farthest = np.max(np.square(seen - seen.mean()))
            level = seen.mean() if farthest <= LONE * (t - 1) * seen.var() else level
        w = w - 3.0 / np.sqrt(t) * Clipped(low - level, high - level).theta(score, c, target - level) * x
    assert level != 0.0
    np.testing.assert_allclose(learner.weights(), w[1:], rtol=1e-9)
    assert learner.intercept() == pytest.approx(w[0] + level + y[0], rel=1e-9)
    assert learner.progressive_loss == pytest.approx(total / 600)


def test_several_targets_have_their_own_ranges(rows):
    X, y = rows
    both = Learner("fiol,eta=3", "squared", n_outputs=2, **OPTIONS).learn(X, np.column_stack([-y, y]))
    alone = Learner("fiol,eta=3", "squared", **OPTIONS).learn(X, y)
    np.testing.assert_array_equal(both.predict(100.0 * X)[:, 1], alone.predict(100.0 * X))
    assert both.predict(100.0 * X)[:, 0].max() <= -y.min()
    assert both.predict_one([0], [1e9]).tolist() == both.predict([[1e9, 0, 0, 0, 0]])[0].tolist()


def test_every_way_of_prediction_is_clipped(rows, tmp_path):
    X, y = rows
    model = OnlineRegressor(random_state=0).fit(X, y)
    far = 100.0 * X
    found = model.predict(far)
    assert found.min() >= y.min()
    assert found.max() <= y.max()
    assert np.abs(far @ model.coef_ + model.intercept_).max() > y.max()
    model.save(tmp_path / "live")
    model.save(tmp_path / "final", final=True)
    for again in (load(tmp_path / "live"), load(tmp_path / "final")):
        np.testing.assert_array_equal(again.predict(far), found)
        for row, expected in zip(far[:30], found, strict=False):
            assert again.predict_one(np.flatnonzero(row), row[row != 0.0]) == pytest.approx(expected, abs=1e-12)
    assert model.learner_.objective(X, y) > np.mean((model.predict(X) - y) ** 2) / 2.0  # of the linear scores
    path = PenaltyPath(OnlineRegressor(shuffle=False), ["none", "l1=1e-3"]).fit(X, y)
    np.testing.assert_array_equal(
        path.estimator_at(1).predict(far), OnlineRegressor("squared", penalty="l1=1e-3", shuffle=False).fit(X, y).predict(far)
    )


@pytest.mark.parametrize("average", ["adaptive", "none", "uniform"])
def test_the_history_has_the_losses_of_what_predicts_and_of_the_linear_scores(rows, average):
    n = 300 if average == "uniform" else FEW
    X, y = rows[0][:n], np.cumsum(rows[1][:n])  # targets that grow, so nearly every prediction is clipped
    options = {"average": average, "solver": "implicit-sgd,eta=3", "clip": True, "scale": "none"}
    whole, cut = (
        OnlineRegressor(**options).fit([(X[i : i + size], y[i : i + size]) for i in range(0, n, size)]).history_
        for size in (n, 7)
    )
    assert whole == cut
    if average == "uniform":  # which scores several rows at a time, and here inside the range but for one
        assert whole[-1]["loss_linear"] == pytest.approx(whole[-1]["loss"], rel=1e-6)
        return
    model, errors = OnlineRegressor(**options).partial_fit(X[:1], y[:1]), [(0.0, 0.0)]
    for x, target in zip(X[1:, None], y[1:], strict=True):
        errors.append((model.predict(x)[0] - target, model.learner_.linear_scores(x)[0] - target))
        model.partial_fit(x, [target])
    found = [whole[-1][name] for name in ("loss", "loss_linear")]
    np.testing.assert_allclose(found, np.mean(np.square(errors), axis=0) / 2.0, rtol=1e-12)


def test_without_a_clip_there_is_one_loss(rows):
    assert "loss_linear" not in OnlineRegressor(clip=False).fit([rows]).history_[-1]


def test_it_is_the_default_but_for_solvers_of_papers(rows):
    X, y = rows
    for params, clips in (
        ({}, True),
        ({"clip": False}, False),
        ({"solver": "fiol"}, False),
        ({"solver": "fiol", "clip": True}, True),
        ({"loss": "absolute"}, False),
        ({"penalty": "l2=1e-3"}, True),
        ({"solver": "rda"}, False),
        ({"solver": "mixture,eta=2"}, True),
        ({"solver": "mixture", "clip": False}, False),
        ({"solver": "mixture", "penalty": "l2=0.1", "tol": 1e-2}, False),
    ):
        assert (OnlineRegressor(**params).fit(X, y).learner_.bounds() is not None) == clips, params


def test_it_is_refused_where_it_could_not_act(rows):
    for params in ({"solver": "rda"}, {"loss": "absolute"}):
        with pytest.raises(ValueError, match="clip=True"):
            OnlineRegressor(clip=True, **params).fit(*rows)


def test_targets_that_grow_lose_little():
    n = 3000
    X, y = np.arange(n)[:, None] / n, np.arange(n, dtype=np.float64)
    losses = [OnlineRegressor(clip=clip).partial_fit(X, y).learner_.progressive_loss for clip in (True, False)]
    assert losses[0] <= 1.1 * losses[1]


@pytest.mark.parametrize("place", [0, 1, 100])
@pytest.mark.parametrize("outlier", [1e4, -1e6])
def test_one_outlier_is_overcome(place, outlier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = X @ rng.normal(size=6) + 0.3 * rng.normal(size=3000)
    seen = y.copy()
    seen[place] = outlier
    assert OnlineRegressor().partial_fit(X[:2500], seen[:2500]).score(X[2500:], y[2500:]) > 0.9


@pytest.mark.parametrize("cut", [1, 7, 500])
def test_sorted_targets_move_the_range_seldom_and_any_cut_gives_the_same_bits(rows, cut):
    X, y = np.resize(rows[0], (3000, 5)), np.sort(np.random.default_rng(0).standard_normal(3000))
    s = np.where(np.arange(3000) % 5, 1.0, 0.0)
    whole, pieces = (Learner("implicit-sgd,eta=3", "squared", **OPTIONS) for _ in range(2))
    whole.learn(X, y, s)
    for first in range(0, 3000 if cut > 1 else 200, cut):
        pieces.learn(X[first : first + cut], y[first : first + cut], s[first : first + cut])
    if cut == 1:
        pieces.learn(X[200:], y[200:], s[200:])
    assert pieces.weights().tobytes() == whole.weights().tobytes()
    assert pieces.total_loss == whole.total_loss
    np.testing.assert_allclose(whole.bounds(), [[y[s > 0.0].min(), y[s > 0.0].max()]], rtol=1e-12)
    assert EXACT < whole.units.clip.moves[0] < 2 * EXACT
    again = Learner.thaw(*whole.freeze())
    assert again.units.clip.rooms.tobytes() == whole.units.clip.rooms.tobytes()


def test_wrong_parts_and_ranges_are_refused(rows, tmp_path):
    for parts, options in ((("fiol", "absolute"), {}), (("fiol", "squared"), {"targets": "raw"})):
        with pytest.raises(ValueError, match="clip=True needs"):
            Learner(*parts, **(OPTIONS | options))
    with pytest.raises((TypeError, ValueError), match="clip"):
        OnlineRegressor(clip="yes").fit(*rows)
    Learner("fiol", "squared", **OPTIONS).learn(*rows).save(tmp_path / "m")
    header, arrays = model_file.read(tmp_path / "m")
    del header["digest"]
    for ranges in ([[1.0, 0.0]], [[0.0, np.inf]], [[np.nan, 1.0]]):
        model_file.write(tmp_path / "m", header, arrays | {"units.ranges": np.array(ranges)})
        with pytest.raises(ModelFileError, match="range of targets"):
            load(tmp_path / "m")


def test_a_real_set_gains():
    X, y = load_diabetes(return_X_y=True)
    scores = [OnlineRegressor(clip=clip, passes=3, random_state=0).fit(X, y).score(X, y) for clip in (True, False)]
    assert scores[0] > 0.4
    assert scores[0] > scores[1] - 0.01


# --- counts ----------------------------------------------------------------------------------------------------------

COUNTED = OPTIONS | {"average": "none"}


def counts(n=900):
    """Counts of a mean by six columns, of which some are far out."""
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((n, 6))
    return np.exp(1.5 * Z), rng.poisson(np.exp(0.5 * Z[:, 0] - 0.3 * Z[:, 1] + 0.5)).astype(np.float64)


@pytest.mark.parametrize("u", [-9.0, -1.0, 0.3, 2.0, 300.0])
@pytest.mark.parametrize("c", [0.01, 1.0, 1e4])
def test_the_step_of_counts_is_that_of_the_matching_loss(u, c):
    level, y = 0.7, 2.0
    loss = ClippedCounts(level, np.log(0.5), np.log(8.0))
    integral = quad(lambda v: np.exp(np.clip(v, *loss[1:])) - y, np.log(y), u, points=np.log([0.5, 8.0]).tolist(), limit=200)[0]
    assert loss.value(u - level, y) - loss.value(np.log(y) - level, y) == pytest.approx(integral)
    theta = brentq(lambda theta: theta - loss.slope(u - level - c * theta, y), -20.0, 20.0, xtol=1e-14)
    assert loss.theta(u - level, c, y) == pytest.approx(theta, abs=1e-9)


def test_a_step_that_rounding_alone_moves_stays_small():
    """At the count itself, with a step size of 1e15, the slope is a rounding error and the edges are near."""
    loss = ClippedCounts(np.log(10.0), np.log(5.0), np.log(20.0))
    assert abs(loss.theta(0.0, 1e15, 10.0)) < 1e-14


@pytest.mark.parametrize(
    ("solver", "average"),
    [
        ("implicit-ftrl,eta=2", "adaptive"),
        seldom("mixture", "none"),
        seldom("implicit-ftrl,eta=2", "none"),
        seldom("implicit-sgd,eta=3", "none"),
        seldom("implicit-sgd,eta=3", "adaptive"),
    ],
)
def test_clipped_counts_keep_the_contract(solver, average, tmp_path):
    X, y = counts()
    options = OPTIONS | {"average": average}
    whole = Learner(solver, "poisson", **options).learn(X, y)
    cut, one = Learner(solver, "poisson", **options), Learner(solver, "poisson", **options)
    for first in range(0, 900, 7):
        cut.learn(X[first : first + 7], y[first : first + 7])
    for x, target in zip(X, y.tolist(), strict=True):
        one.learn_one(np.arange(6), x, target)
    assert state(cut) == state(one) == state(whole)
    half = Learner(solver, "poisson", **options).learn(X[:400], y[:400])
    half.save(tmp_path / "half")
    assert state(load(tmp_path / "half").learn(X[400:], y[400:])) == state(whole)
    low, high = whole.bounds()[0]
    assert (low, high) == (-np.inf, pytest.approx(np.log(3.0 * y.max())))
    assert whole.predict(1e3 * X).max() <= high
    assert whole.predict_one(np.arange(6), 1e3 * X[0]) <= high


def test_edges_are_open_where_counts_are_0():
    X = np.ones((4, 1))
    learner = Learner("implicit-sgd,eta=1", "poisson", **COUNTED)
    assert learner.bounds().tolist() == [[np.inf, -np.inf]]
    for y, wanted in ((0.0, [-np.inf, np.inf]), (3.0, [-np.inf, np.log(9.0)])):
        assert learner.learn(X[:1], [y]).bounds().tolist() == [pytest.approx(wanted)]
    learner = Learner("implicit-sgd,eta=1", "poisson", **COUNTED).learn(X, [7.0, 3.0, 9.0, 8.0])
    np.testing.assert_allclose(learner.bounds(), np.log([[1.0, 27.0]]))
    np.testing.assert_allclose(learner.predict([[-1e9], [1e9], [0.0]])[:2], np.log([1.0, 27.0]))


def test_columns_with_long_tails_do_not_ruin_counts(tmp_path):
    X, y = counts(3000)
    X_test, y_test = counts(4000)[0][3000:], counts(4000)[1][3000:]
    model = OnlineRegressor("poisson", random_state=0).partial_fit(X, y)
    found = model.predict(X_test)
    assert np.mean(found - y_test * np.log(found)) < np.mean(y.mean() - y_test * np.log(y.mean())) - 0.05
    assert model.predict(1e6 * X_test).max() == pytest.approx(3.0 * y.max())
    with np.errstate(over="ignore"):
        assert OnlineRegressor("poisson", clip=False).partial_fit(X, y).learner_.bounds() is None
    for final in (True, False):
        model.save(tmp_path / "m", final=final)
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(X_test), found)
        assert again.predict_one(np.arange(6), X_test[0]) == pytest.approx(found[0], rel=1e-14)


def test_the_history_of_counts_has_the_losses_of_clipped_means():
    X, y = counts(FEW)
    options = {"solver": "implicit-sgd,eta=3", "average": "adaptive", "clip": True, "scale": "none"}
    model, report = OnlineRegressor("poisson", **options), OnlineRegressor("poisson", **options).fit([(X, y)]).history_[-1]
    model.partial_fit(X[:1], y[:1])
    first, losses = 0.5 * 1.0 if y[0] == 0.0 else 1.0, [(0.0, 0.0)]
    for x, target in zip(X[1:, None], y[1:], strict=True):
        scores = np.log(model.predict(x)[0]), model.learner_.linear_scores(x)[0]
        losses.append([np.exp(score) - target * score for score in scores])
        model.partial_fit(x, [target])
    found = np.array([report["loss"], report["loss_linear"]]) * FEW
    np.testing.assert_allclose(found, np.sum(losses, axis=0) + first, atol=2.0)
