"""Intervals: what they cover, that nothing moves for them, and that they are the same for any cut, container and file."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, QualityWarning, load, streams
from onlinear.learner.uncertainty import COPIES, Spread, drawn, uniform

D = 5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, D)) * (rng.random((1500, D)) < 0.7)
    score = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    noise = np.where(rng.random(1500) < 0.5, rng.exponential(size=1500), -0.2 * rng.exponential(size=1500))
    return X, score + noise, np.where(score + rng.logistic(size=1500) > 0.0, 1.0, -1.0)


def of_numbers(**options):
    settings = {"fit_intercept": True, "targets": "relative", "uncertainty": "targets"} | options
    return Learner("fiol", "squared", **settings)


def of_classes(**options):
    settings = {"average": "adaptive", "fit_intercept": True, "scale": "rms", "uncertainty": "scores"} | options
    return Learner("implicit-ftrl", "logistic", **settings)


def same(a, b):
    ours, theirs = a.freeze()[1], b.freeze()[1]
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def leverage(X, s, x):
    """22.1, after rows X of weights s."""
    X = X[s > 0.0]
    h = 1.0 / len(X)
    for j in np.flatnonzero(x):
        v = np.sum(np.square(X[:, j] - X[:, j].mean()))
        h += (x[j] - X[:, j].mean()) ** 2 / v if v > 0.0 else 1.0
    return h


def quantile(z, weights, q):
    """22.4: linear within four places of equal length for each power of 2."""
    lower = 2.0 ** np.floor(np.log2(np.abs(z)))
    near = lower * (1.0 + np.floor(4.0 * (np.abs(z) / lower - 1.0)) / 4.0)
    ends = np.where(z > 0.0, [near, near + lower / 4.0], [-near - lower / 4.0, -near])
    places, which = np.unique(ends, axis=1, return_inverse=True)
    found = np.bincount(np.ravel(which), weights)
    before = np.cumsum(found) - found
    k = np.searchsorted(before + found, q * found.sum())
    return places[0, k] + (places[1, k] - places[0, k]) * (q * found.sum() - before[k]) / found[k]


@pytest.mark.parametrize("average", ["none", "adaptive,calibrated=true"])
def test_intervals_are_the_formula(rows, average):
    X, y, s = rows[0][:120], rows[1][:120] + 7.0, np.resize([1.0, 0.0, 2.5, 0.3, 1.0], 120)
    model, z = of_numbers(average=average, clip=True), np.zeros(120)
    for t in range(120):
        predicted = model.predict(X[t : t + 1])[0]
        model.learn(X[t : t + 1], y[t : t + 1], s[t : t + 1])
        z[t] = (y[t] - predicted) / np.sqrt(1.0 + leverage(X[: t + 1], s[: t + 1], X[t]))
    z, counts = z[1:][s[1:] > 0.0], (s * np.arange(1.0, 121.0) ** 2)[1:][s[1:] > 0.0]
    new = rows[0][120:140]
    u = np.array([np.sqrt(1.0 + leverage(X, s, x)) for x in new])
    np.testing.assert_allclose(model.predict_std(new), u * np.sqrt(counts @ z**2 / counts.sum()), rtol=1e-10)
    for coverage in (0.3, 0.9, 0.99):
        ends = [model.predict(new) + u * quantile(z, counts, 0.5 + side * coverage / 2.0) for side in (-1.0, 1.0)]
        np.testing.assert_allclose(model.predict_interval(new, coverage).T, ends, rtol=1e-9)


@pytest.mark.parametrize("average", ["none", "adaptive"])
def test_intervals_of_scores_are_the_formula(rows, average):
    n, X, s = 60, rows[0][:60], np.resize([1.0, 0.0, 2.5, 0.3, 1.0], 60)
    y = np.where(np.column_stack([rows[1][:n], X[:, 0] - X[:, 1], X[:, 2]]) > 0.3, 1.0, -1.0)
    options = {"average": average, "scale": "none", "n_outputs": 3}
    plain, *copies = (of_classes(uncertainty="none", **options) for _ in range(1 + COPIES))
    z, counts = [], []
    for t in range(n):
        row, h = (X[t : t + 1], y[t : t + 1], s[t : t + 1]), leverage(X[: t + 1], s[: t + 1], X[t])
        for r, copy in enumerate(copies):
            times = len(drawn(np.array([t + 1]), r)[0])
            if times and s[t] > 0.0:
                z.append((copy.predict(row[0])[0] - plain.predict(row[0])[0]) / np.sqrt(h))
                counts.append(s[t] * (t + 1.0) ** 2)
            for _ in range(times):
                copy.learn(*row)
        plain.learn(*row)
    z, counts, model, new = np.abs(z), np.array(counts), of_classes(**options).learn(X, y, s), rows[0][n : n + 9]
    u = np.sqrt([[leverage(X, s, x)] for x in new])
    np.testing.assert_allclose(model.predict_std(new), u * np.sqrt(counts @ z**2 / counts.sum()), rtol=1e-10)
    half = u * [quantile(np.maximum(size, 1e-150), counts, 0.8) for size in z.T]
    ends = np.stack([plain.predict(new) - half, plain.predict(new) + half], axis=2)
    np.testing.assert_allclose(model.predict_interval(new, 0.8), ends, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("of", [of_numbers, of_classes])
def test_a_row_is_scored_with_its_own_entries_in_the_scale(rows, of):
    n, X, y = 60, rows[0][:60], rows[1 if of is of_numbers else 2][:60]
    options = {"average": "none", "scale": "rms"}

    def scores(order):
        """Of rows in this order, each before it is learned."""
        learner = of(uncertainty="none", **options)
        return learner.learn_checked(*learner.check_input(X[order], y[order], None))[0][0]

    steps = np.arange(1, n + 1)
    h, plain = np.array([leverage(X[:t], np.ones(t), X[t - 1]) for t in steps]), scores(steps - 1)
    if of is of_numbers:
        z, counts = ((y - plain) / np.sqrt(1.0 + h))[1:], steps[1:] ** 2.0
    else:
        z, counts = np.empty(0), np.empty(0)
        for r in range(COPIES):
            order, first = drawn(steps, r)
            z = np.append(z, (scores(order) - plain[order])[first] / np.sqrt(h[order[first]]))
            counts = np.append(counts, steps[order[first]] ** 2.0)
    u = np.sqrt([float(of is of_numbers) + leverage(X, np.ones(n), x) for x in rows[0][n : n + 9]])
    found = of(**options).learn(X, y).predict_std(rows[0][n : n + 9])
    np.testing.assert_allclose(found, u * np.sqrt(np.average(np.square(z), weights=counts)), rtol=1e-10)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_hold_the_share_of_targets(rows, coverage):
    X, y, _ = rows
    low, high = of_numbers().learn(X[:1000], y[:1000]).predict_interval(X[1000:], coverage).T
    assert abs(np.mean((low <= y[1000:]) & (y[1000:] <= high)) - coverage) < 0.05
    below, above = np.mean(y[1000:] < low), np.mean(y[1000:] > high)
    assert abs(below - above) < 0.06  # the noise is skew, and so are the intervals


def test_deviations_are_those_of_the_errors(rows):
    X, y, _ = rows
    model = of_numbers().learn(X[:1000], y[:1000])
    error = y[1000:] - model.predict(X[1000:])
    assert np.sqrt(np.mean(model.predict_std(X[1000:]) ** 2)) == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.15)
    assert model.predict_std(100.0 * X[1000:1001])[0] > 2.0 * model.predict_std(X[1000:1001])[0]


def test_intervals_hold_the_scores_of_models_on_rows_drawn_anew(rows):
    X, _, y = rows
    low, high = of_classes().learn(X[:1000], y[:1000]).predict_interval(X[1000:]).T
    rng, inside = np.random.default_rng(5), []
    for _ in range(16):
        order = np.repeat(np.arange(1000), rng.poisson(1.0, 1000))
        scores = of_classes(uncertainty="none").learn(X[order], y[order]).predict(X[1000:])
        inside.append(np.mean((low <= scores) & (scores <= high)))
    assert 0.8 < np.mean(inside) < 0.97


@pytest.mark.parametrize("make", [of_numbers, of_classes])
def test_any_cut_and_container_gives_the_same(rows, make):
    X, y, signs = (part[:200] for part in rows)
    y, s = y if make is of_numbers else signs, np.linspace(0.0, 2.0, 200)
    whole, pieces, sparse = make().learn(X, y, s), make(), make()
    for part in np.split(np.arange(200), [1, 2, 90]):
        pieces.learn(X[part], y[part], s[part])
    sparse.learn(sp.csr_matrix(X), y, s)
    same(whole, pieces)
    same(whole, sparse)
    plain = make(uncertainty="none").learn(X, y, s)
    np.testing.assert_array_equal(plain.predict(X), whole.predict(X))
    np.testing.assert_array_equal(sparse.predict_interval(sp.csc_matrix(X)), whole.predict_interval(X))


@pytest.mark.parametrize("make", [of_numbers, of_classes])
def test_single_rows_and_files_continue(rows, make, tmp_path):
    X, y, signs = (part[:60] for part in rows)
    y = y if make is of_numbers else signs
    whole, single = make().learn(X, y), make()
    for x, target in zip(X, y, strict=True):
        single.learn_one(np.flatnonzero(x), x[x != 0.0], target)
    same(whole, single)
    half = make().learn(X[:30], y[:30])
    half.save(tmp_path / "half.onlinear")
    for copy in (load(tmp_path / "half.onlinear"), pickle.loads(pickle.dumps(half))):
        same(copy.learn(X[30:], y[30:]), whole)


@pytest.mark.parametrize("half_life", [1.0, 3.0, 40.0])
def test_forgetting_has_no_end_and_no_cuts(rows, half_life):
    X, y, _ = rows
    makes = [Learner("implicit-ftrl", "squared", fit_intercept=True, forget=half_life, uncertainty="targets") for _ in range(2)]
    whole, pieces = makes[0].learn(X, y), makes[1]
    for part in np.split(np.arange(1500), [700, 701, 1300]):
        pieces.learn(X[part], y[part])
    same(whole, pieces)
    assert np.all(np.isfinite(whole.predict_interval(X[:5])))
    changed = makes[0].learn(X, 1e-3 * y)
    assert changed.predict_std(X[:1])[0] < 0.3 * pieces.predict_std(X[:1])[0] or half_life > 3.0


def test_a_file_written_as_counts_fade_continues(rows, tmp_path):
    X, _, signs = rows
    whole = Learner("implicit-ftrl", "logistic", fit_intercept=True, forget=1.0, uncertainty="scores")
    whole.learn(X[:512], signs[:512])
    assert not all(len(drawn(np.array([512]), r)[0]) for r in range(COPIES))  # copies that have no row of the new age yet
    whole.save(tmp_path / "half.onlinear")
    same(load(tmp_path / "half.onlinear").learn(X[512:600], signs[512:600]), whole.learn(X[512:600], signs[512:600]))


def test_quantiles_are_those_of_the_sample():
    rng = np.random.default_rng(2)
    z = rng.standard_cauchy(4000) + 0.3
    for kind in ("targets", "scores"):
        spread = Spread(1, [], kind=kind, half_life=None)
        spread._add(0, z[None], np.ones(4000), np.full(4000, 7))
        low, high = spread._ends(spread.counts.sum(axis=0)[0], 0.8)
        half = np.quantile(np.abs(z), 0.8)
        wanted = np.quantile(z, [0.1, 0.9]) if kind == "targets" else [-half, half]
        np.testing.assert_allclose([low, high], wanted, rtol=0.03)
    assert spread._place(np.array([0.0, 1e-320, 1e120])).tolist() == [0, 0, spread.counts.shape[-1] - 1]


def test_extreme_errors_are_counted():
    spread = Spread(1, [], kind="targets", half_life=None)
    z = np.array([[0.0, 1e-300, -1e300, 1e300, 1.0]])
    spread._add(0, z, np.array([1.0, 1.0, 1e300, 0.0, 1.0]), np.arange(1, 6))
    assert np.all(np.isfinite(spread.sums))
    assert np.all(np.isfinite(spread._ends(spread.counts[0, 0], 0.9)))


def test_draws_are_poisson_and_do_not_depend_on_cuts():
    steps = np.arange(1, 100_001)
    for r in range(COPIES):
        order, first = drawn(steps, r)
        times = np.bincount(order, minlength=len(steps))
        assert abs(times.mean() - 1.0) < 0.02
        assert abs(times.var() - 1.0) < 0.03
        np.testing.assert_array_equal(order[first], np.flatnonzero(times))
        np.testing.assert_array_equal(uniform(steps[50:60], r), uniform(steps, r)[50:60])
    assert abs(np.corrcoef([uniform(steps, 0), uniform(steps, 1)])[0, 1]) < 0.02


@pytest.mark.parametrize(
    ("solver", "loss", "options", "message"),
    [
        ("fiol", "hinge", {"uncertainty": "targets"}, "one of classes: use 'scores'"),
        ("fiol", "poisson", {"uncertainty": "targets"}, "no form for counts"),
        ("fiol", "softmax", {"uncertainty": "scores", "n_outputs": 3}, "no form for softmax"),
        ("batch-drs", "squared", {"uncertainty": "targets", "n_features": 3}, "scored before they are learned"),
        ("fiol", "squared", {"uncertainty": "targets", "scale": "standard"}, "use scale='centred'"),
        ("fiol", "squared", {"uncertainty": "target"}, "Did you mean 'targets'"),
    ],
)
def test_what_has_no_form_is_refused(solver, loss, options, message):
    with pytest.raises(ValueError, match=message):
        Learner(solver, loss, **options)


def test_reading_without_what_it_needs_is_refused(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="trained without uncertainty"):
        Learner("fiol", "squared").learn(X, y).predict_interval(X)
    with pytest.raises(ValueError, match="too few rows"):
        of_numbers().learn(X, y, np.zeros(len(y))).predict_std(X)
    with pytest.raises(ValueError, match="too few rows"):  # the first target is the zero of all
        of_numbers().learn(X[:1], y[:1]).predict_interval(X)
    assert np.diff(of_numbers().learn(X[:2], y[:2]).predict_interval(X[2:3]))[0, 0] > 0.0
    model = of_numbers().learn(X, y)
    for coverage in (0.0, 1.0, np.nan, "much", True):
        with pytest.raises(ValueError, match="coverage must be a number above 0 and below 1"):
            model.predict_interval(X, coverage)
    assert model.learn(X[:0], y[:0]).predict_interval(X[:0]).shape == (0, 2)


def test_estimators(rows, tmp_path):
    X, y, _ = rows
    model = OnlineRegressor(uncertainty=True, shuffle=False).fit(X, y)
    predicted, std = model.predict(X[:9], return_std=True)
    np.testing.assert_array_equal(predicted, OnlineRegressor(shuffle=False, average="adaptive").fit(X, y).predict(X[:9]))
    assert std.shape == (9,)
    assert model.predict_interval(X[:9]).shape == (9, 2)
    table = streams.open(pd.DataFrame(X, columns=list("abcde")), unlabelled=True)
    with pytest.warns(UserWarning, match="taken for the model's columns in order"):
        np.testing.assert_allclose(model.predict_interval(table), model.predict_interval(X))
    two = OnlineRegressor(uncertainty=True, random_state=0).fit(X, np.column_stack([y, 100.0 * y]))
    found = two.predict_interval(X[:9])
    assert found.shape == (9, 2, 2)
    assert two.predict(X[:9], return_std=True)[1].shape == (9, 2)
    np.testing.assert_allclose(np.diff(found[:, 1], axis=1), 100.0 * np.diff(found[:, 0], axis=1), rtol=0.3)
    classes = np.digitize(y, [-1.0, 1.0])
    several = OnlineClassifier(uncertainty=True, random_state=0).fit(X, classes)
    assert several.decision_function(X[:9], return_std=True)[1].shape == (9, 3)
    for estimator in (model, two, several):
        for final in (False, True):
            estimator.save(tmp_path / "m.onlinear", final=final)
            np.testing.assert_array_equal(
                load(tmp_path / "m.onlinear").predict_interval(X[:9]), estimator.predict_interval(X[:9])
            )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnlineRegressor(uncertainty=True, passes=2), "passes must be 1, got 2"),
        (lambda: OnlineRegressor(uncertainty=True, passes="auto"), "passes must be 1, got 'auto'"),
        (lambda: OnlineRegressor(uncertainty=True, penalty="l1=0.1", tol=1e-3), "uncertainty=True and tol= exclude"),
        (lambda: OnlineRegressor(uncertainty="yes"), "uncertainty must be True or False"),
        (lambda: PenaltyPath(OnlineRegressor(uncertainty=True), ["l1=0.1", "l1=1"]), "uncertainty"),
    ],
)
def test_estimators_refuse_what_has_no_form(rows, make, message):
    X, y, _ = rows
    with pytest.raises((ValueError, TypeError), match=message):
        make().fit(X[:50], y[:50])


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160])
def test_targets_whose_squares_are_0_get_intervals_that_are_no_point(unit):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = unit * (X[:, 0] + np.random.default_rng(1).normal(size=300))
    with pytest.warns(QualityWarning, match="Targets are so small"):
        model = OnlineRegressor(uncertainty=True).fit(X[:200], y[:200])
    low, high = model.predict_interval(X[200:]).T
    assert np.mean((low <= y[200:]) & (y[200:] <= high)) > 0.8
    assert np.all(model.predict(X, return_std=True)[1] > 0.0)


def test_errors_too_large_to_be_kept_are_refused_and_no_interval_of_no_width():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = OnlineRegressor(uncertainty=True).fit(X, 1e140 * X[:, 0])
    for read in (lambda: model.predict_interval(X), lambda: model.predict(X, return_std=True)):
        with pytest.raises(ValueError, match=r"off by 1e\+120 and more, which nothing is kept of: divide y by a constant"):
            read()
    assert np.isfinite(model.predict(X)).all()
