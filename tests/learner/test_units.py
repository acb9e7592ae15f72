"""Running units of targets and weights, and the adaptive average: contract, files, and what they are for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import often, seldom
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

from onlinear import DivergenceError, Learner, ModelFileError, OnlineClassifier, OnlineRegressor, load
from onlinear.files import model_file
from onlinear.learner.parts import LOSSES
from onlinear.learner.units import BAND, natural_step

pytestmark = pytest.mark.filterwarnings("ignore::onlinear.QualityWarning")
RELATIVE = {"targets": "relative", "weights": "relative"}
FOLLOWING = ["implicit-sgd,eta=3", "fiol,eta=3", "comid,eta=0.1", "sgd,eta=0.1", "implicit-ftrl,eta=3"]
RESIDUAL = [name for name, loss in LOSSES.items() if getattr(loss, "residual", False)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = sp.random(700, 12, 0.5, "csr", None, rng, rng.standard_normal)
    score = X @ rng.standard_normal(12)
    return X, score + 0.2 * rng.standard_normal(700), rng.exponential(size=700) * (rng.random(700) < 0.9)


def learned(solver, loss, rows, *, average="none", penalty="none", pieces=(700,), **options):
    X, y, s = rows
    y = np.where(y > 0.0, 1.0, -1.0) if getattr(LOSSES[loss], "labels", "real") == "signs" else y
    learner = Learner(solver, loss, penalty, average, **{"fit_intercept": True, "n_features": 12} | options)
    first = 0
    while first < 700:
        for size in pieces:
            learner.learn(X[first : first + size], y[first : first + size], s[first : first + size])
            first += size
    return learner


def state(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


# --- the contract ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", FOLLOWING)
@pytest.mark.parametrize("penalty", ["none", "elastic-net,l1=1e-3,l2=1e-2"])
def test_any_cut_of_the_rows_gives_the_same_bits(solver, penalty, rows):
    if solver[:3] in ("sgd", "imp") and penalty != "none":
        penalty = "l2,l2=1e-2"
    options = RELATIVE | {"penalty": penalty, "average": "adaptive", "scale": "rms"}
    whole = learned(solver, "absolute", rows, **options)
    assert len(whole.units.steps) > 3
    for pieces in ((1,), (1, 2, 5, 13, 64)):
        assert state(learned(solver, "absolute", rows, pieces=pieces, **options)) == state(whole)
    assert whole.units.level[0] != 0.0


@pytest.mark.parametrize("loss", RESIDUAL)
def test_layouts_and_several_targets_give_the_same_bits(loss, rows):
    X, y, s = rows
    options = RELATIVE | {"average": "adaptive", "fit_intercept": True, "n_features": 12}
    one = Learner("fiol,eta=3", loss, **options).learn(X, y, s)
    assert state(Learner("fiol,eta=3", loss, **options).learn(X.toarray(), y, s)) == state(one)
    both = Learner("fiol,eta=3", loss, n_outputs=2, **options).learn(X, np.column_stack([1e3 * y + 7.0, y]), s)
    np.testing.assert_array_equal(both.weights()[:, 1], one.weights())


@pytest.mark.parametrize("solver", FOLLOWING[:3])
def test_a_stopped_run_goes_on_to_the_same_bits(solver, rows, tmp_path):
    X, y, s = rows
    penalty = "none" if solver[:3] == "imp" else "elastic-net,l1=1e-3,l2=1e-2"
    options = RELATIVE | {"average": "adaptive", "fit_intercept": True, "scale": "max-abs"}
    whole = Learner(solver, "huber", penalty, **options).learn(X, y, s)
    half = Learner(solver, "huber", penalty, **options).learn(X[:333], y[:333], s[:333])
    half.save(tmp_path / "half")
    for again in (load(tmp_path / "half"), pickle.loads(pickle.dumps(half))):
        again.learn(X[333:], y[333:], s[333:])
        again.save(tmp_path / "again")
        whole.save(tmp_path / "whole")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()
        np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_learn_one_is_learn(rows):
    X, y, _ = rows
    options = RELATIVE | {"fit_intercept": True, "n_features": 12}
    block, one = (Learner("implicit-ftrl,eta=3", "absolute", **options) for _ in range(2))
    block.learn(X, y)
    for i in range(700):
        before = one.predict(X[i])[0] if one.t else None
        score = one.learn_one(X[i].indices, X[i].data, y[i])
        assert before is None or score == pytest.approx(before, abs=1e-12)
    assert state(one) == state(block)


# --- the level of numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 100.0])
def test_numbers_count_from_the_mean_of_the_first_but_for_one_far_out(weight):
    rng = np.random.default_rng(2)
    X, y, s = np.ones((500, 1)), rng.standard_normal(500) + 3.0, np.full(500, weight)
    rows = X, y, np.where(np.arange(500) % 2, s, 0.0)  # every second row counts for nothing
    options = {"targets": "relative", "fit_intercept": True}
    found = Learner("fiol,eta=3", "huber", **options).learn(*rows).units
    assert found.level[0] == pytest.approx(y[1:128:2].mean() - y[1], rel=1e-12)
    assert found.offset[0] == found.zero[0] + found.level[0]
    y[5] = 1e6  # the third to count: the levels after the second, when it was not seen, and none later
    far = Learner("fiol,eta=3", "squared", **options).learn(*rows).units
    assert far.level[0] == 0.0


def test_numbers_of_more_columns_than_rows_are_no_worse_than_their_mean():
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 3000))
        y = X[:, :10].sum(axis=1) + 3.0 * rng.standard_normal(300)
        model = OnlineRegressor().partial_fit(X[:225], y[:225])
        ratios.append(np.mean((model.predict(X[225:]) - y[225:]) ** 2) / np.var(y[225:]))
    assert np.mean(ratios) < 1.05


# --- targets far out, and losses whose slope is bounded ---------------------------------------------------------------


@pytest.mark.parametrize("size", [1e4, 1e200])
@pytest.mark.parametrize("loss", ["absolute", "huber", "epsilon-insensitive", "quantile,q=0.6"])
def test_one_target_far_out_hardly_moves_the_unit(loss, size, rows):
    X, y, _ = rows
    options = {"targets": "relative", "fit_intercept": True}
    usual = Learner("fiol,eta=3", loss, **options).learn(X, y)
    typed = Learner("fiol,eta=3", loss, **options).learn(X, np.where(np.arange(700) == 100, size, y))
    assert typed.units.sizes[1] == pytest.approx(usual.units.sizes[1], rel=0.5)
    assert typed.units.level[0] == pytest.approx(usual.units.level[0], abs=0.2 * y.std())
    assert np.abs(typed.predict(X) - usual.predict(X)).max() < 2.0 * y.std()


def test_the_squared_loss_follows_every_target(rows):
    X, y, _ = rows
    found = Learner("fiol,eta=3", "squared", targets="relative", fit_intercept=True).learn(X, np.where(np.arange(700), y, 1e4))
    assert np.sqrt(found.units.spread[0, 2]) == pytest.approx(np.std(np.where(np.arange(700), y, 1e4)), rel=1e-9)


def test_targets_that_all_move_are_followed_in_a_few_rows(rows):
    X, y, _ = rows
    y = np.where(np.arange(700) < 400, y, 1000.0 * y)
    found = Learner("fiol,eta=3", "absolute", targets="relative", fit_intercept=True).learn(X[:440], y[:440])
    assert found.units.sizes[1] > 0.25 * np.std(y[:440])


@pytest.mark.parametrize("solver", [seldom("fiol,eta=3"), "implicit-ftrl,eta=3"])
def test_no_cut_and_no_stop_moves_what_targets_far_out_do(solver, rows, tmp_path):
    X, y, s = rows
    y = np.where(np.arange(700) % 90 > 87, 1e4 * y, y)
    whole = learned(solver, "absolute", (X, y, s), **RELATIVE)
    for pieces in ((1,), (1, 2, 5, 13, 64)):
        assert state(learned(solver, "absolute", (X, y, s), pieces=pieces, **RELATIVE)) == state(whole)
    options = RELATIVE | {"fit_intercept": True, "n_features": 12}
    kept = set()
    for stop in range(440, 460):
        half = Learner(solver, "absolute", **options).learn(X[:stop], y[:stop], s[:stop])
        kept.add(half.units.far[1])
        half.save(tmp_path / "half")
        assert state(load(tmp_path / "half").learn(X[stop:], y[stop:], s[stop:])) == state(whole)
    assert len(kept) > 1
    one = Learner(solver, "absolute", **options)
    for i in range(700):
        one.learn_one(X[i].indices, X[i].data, y[i])
    assert state(one) == state(learned(solver, "absolute", (X, y, np.ones(700)), **RELATIVE))


def test_a_target_of_a_bounded_slope_has_no_unit(rows):
    X, y, s = rows
    y = np.where(np.arange(700) % 90 > 87, 1e4 * y, y)
    options = {"targets": "relative", "fit_intercept": True, "average": "adaptive"}
    one = Learner("fiol,eta=3", "absolute", **options).learn(X, y, s).predict(X)
    for unit in (2.0**-30, 2.0**30):
        np.testing.assert_array_equal(Learner("fiol,eta=3", "absolute", **options).learn(X, unit * y, s).predict(X), unit * one)
    both = Learner("fiol,eta=3", "absolute", n_outputs=2, **options).learn(X, np.column_stack([y**2, y]), s)
    np.testing.assert_array_equal(both.predict(X)[:, 1], one)


def test_a_few_targets_far_out_leave_a_model_no_worse_than_a_constant():
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, clean = rng.standard_normal((4000, 8)), 0.3 * rng.standard_normal(4000)
        clean += X @ rng.standard_normal(8)
        noisy = clean + 1e4 * rng.standard_normal(4000) * (rng.random(4000) < 0.05)
        model = OnlineRegressor("absolute").partial_fit(X[:3000], noisy[:3000])
        found, constant = model.predict(X[3000:]), np.median(noisy[:3000])
        ratios.append(np.mean(np.abs(found - noisy[3000:])) / np.mean(np.abs(constant - noisy[3000:])))
    assert np.mean(ratios) < 1.003


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile,q=0.5"])
def test_one_target_of_a_billion_is_not_felt(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8))
    y = X @ rng.standard_normal(8) + 0.3 * rng.standard_normal(4000)
    far = np.where(np.arange(4000) == 2900, 1e9, y)
    found = OnlineRegressor(loss).partial_fit(X[:3000], far[:3000]).predict(X[3000:])
    assert np.mean(np.abs(found - y[3000:])) < 0.3


# --- counts, whose scores count from a level -------------------------------------------------------------------------

COUNTING = {
    "fiol,eta=3": {"penalty": "elastic-net,l1=1e-3,l2=1e-2", "scale": "rms"},
    "implicit-sgd,eta=3": {"average": "adaptive", "scale": "centred"},
    "comid,eta=0.1": {"average": "adaptive"},
    "implicit-ftrl,eta=3": {"penalty": "l1,l1=1e-3", "average": "adaptive", "scale": "max-abs"},
    "mixture": {"average": None, "scale": "dense"},
}


@pytest.fixture(scope="module")
def counts(rows):
    X, score, s = rows
    y = np.random.default_rng(8).poisson(np.exp(0.5 * score + 3.0)).astype(float)
    y[:7] = 0.0  # all counts are 0 for a while
    return X, y, s


def counting(solver, rows, pieces=(700,), **options):
    return learned(solver, "poisson", rows, pieces=pieces, **RELATIVE | COUNTING[solver] | options)


@pytest.mark.parametrize("solver", COUNTING)
def test_counts_are_learned_alike_in_any_cut(solver, counts, tmp_path):
    X, y, s = counts
    whole = counting(solver, counts)
    assert len(whole.units.steps) > 5
    assert whole.units.level[0] == pytest.approx(np.log(np.average(y, weights=s)), abs=0.5)
    for pieces in ((1,), (1, 2, 5, 13, 64)):
        assert state(counting(solver, counts, pieces)) == state(whole)
    assert state(counting(solver, (X.toarray(), y, s))) == state(whole)
    half = counting(solver, (X[:333], y[:333], s[:333]))
    half.save(tmp_path / "half")
    again = load(tmp_path / "half").learn(X[333:], y[333:], s[333:])
    assert state(again) == state(whole)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    both = Learner(
        solver, "poisson", n_outputs=2, fit_intercept=True, n_features=12, **{"average": "none"} | RELATIVE | COUNTING[solver]
    ).learn(X, np.column_stack([y[::-1], y]), s)
    np.testing.assert_array_equal(both.weights()[:, 1], whole.weights())


@pytest.mark.parametrize("solver", often(COUNTING, ["implicit-ftrl,eta=3"]))
def test_a_count_is_scored_before_it_moves_the_level(solver, counts):
    X, y, _ = counts
    solver_options = {"average": "none"} | RELATIVE | COUNTING[solver]
    block, one = (Learner(solver, "poisson", fit_intercept=True, n_features=12, **solver_options) for _ in range(2))
    last, _ = block.learn_checked(*block.check_input(X, y, None))
    total, plain = 0.0, solver_options.get("scale", "none") == "none"
    for i, (row, begin, end) in enumerate(zip(X.toarray(), X.indptr, X.indptr[1:], strict=False)):
        before = float(row @ one.weights() + one.intercept()) if plain and i else None
        score = one.learn_one(X.indices[begin:end], X.data[begin:end], y[i])
        assert score == last[0, i]
        assert before is None or score == pytest.approx(before, abs=1e-12)
        total += np.exp(score) - y[i] * score
    assert state(one) == state(block)
    assert block.progressive_loss == pytest.approx(total / 700, rel=1e-12)
    assert last[0, 0] == 0.0  # the first row's own count is not known to it


def test_the_unit_of_counts_does_not_matter(counts):
    X, y, s = counts
    y = y + np.arange(700) % 3 + 1.0  # while all are 0 their unit is that of the weights
    for solver in ("fiol,eta=3", "implicit-ftrl,eta=3", "comid,eta=0.1"):
        base = counting(solver, (X, y, s), penalty="none", scale="rms").predict(X)
        for unit in (1e-9, 1e3, 1e12):
            found = counting(solver, (X, unit * y, s), penalty="none", scale="rms").predict(X)
            np.testing.assert_allclose(found, base + np.log(unit), atol=1e-7)


@pytest.mark.parametrize("loss", ["poisson", "squared"])
@pytest.mark.parametrize("solver", ["mixture", "fiol", "implicit-ftrl"])
def test_targets_whose_squares_are_infinite_stop_the_run(solver, loss, counts):
    X, y, _ = counts
    far = np.where(np.arange(700) == 300, 1e200, y)
    with pytest.raises(DivergenceError, match="targets are so large"):
        Learner(solver, loss, fit_intercept=True, targets="relative").learn(X, far)
    single = Learner(solver, loss, fit_intercept=True, targets="relative").learn(X[:300], y[:300])
    with pytest.raises(DivergenceError, match="targets are so large"):
        single.learn_one(X[300].indices, X[300].data, 1e200)
    with pytest.raises(DivergenceError, match="targets are so large"):
        single.predict(X)


def test_without_an_intercept_counts_have_no_level(counts):
    found = counting("fiol,eta=3", counts, fit_intercept=False)
    assert found.units.level[0] == 0.0
    assert found.units.multipliers[0] < 0.1
    nothing = np.zeros(700)
    found = counting("fiol,eta=3", (counts[0], nothing, counts[2]))
    assert np.all(np.exp(found.predict(counts[0])) < 0.01)


def test_without_weights_and_targets_nothing_changes(rows):
    X, y, _ = rows
    sign = np.where(y > 0.0, 1.0, -1.0)
    plain = Learner("fiol,eta=3", "logistic", fit_intercept=True).learn(X, sign)
    units = Learner("fiol,eta=3", "logistic", fit_intercept=True, weights="relative").learn(X, sign)
    np.testing.assert_array_equal(units.weights(), plain.weights())
    header, arrays = plain.freeze()
    assert not {"targets", "weights"} & set(header)
    assert not [name for name in arrays if name.startswith("units")]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"units.steps": np.array([[0.0, 1.0], [900.0, 1.0]])}, "multipliers of the steps"),
        ({"units.steps": np.array([[0.0, -1.0]])}, "multipliers of the steps"),
        ({"units.steps": np.array([[1.0, 1.0]])}, "multipliers of the steps"),
        ({"units.zero": np.array([np.nan])}, "not finite"),
        ({"units.spread": np.zeros((2, 3))}, "shape"),
        ({"units.heaviest": np.array([-1.0])}, "below 0"),
        ({"race": np.zeros(3)}, "race"),
        ({"race": np.array([np.nan, 0.0, 0.0, 0.0])}, "losses of a race"),
    ],
)
def test_files_with_units_that_no_run_could_have_are_refused(change, rule, rows, tmp_path):
    path = tmp_path / "m"
    learned("fiol,eta=3", "absolute", rows, average="adaptive", **RELATIVE).save(path)
    header, arrays = model_file.read(path)
    del header["digest"]
    model_file.write(path, header, arrays | change)
    with pytest.raises(ModelFileError, match=rule):
        load(path)


@pytest.mark.parametrize(
    ("parts", "options", "rule"),
    [
        (("rda", "squared"), {"targets": "relative"}, "multiply the step size"),
        (("pegasos", "hinge", "l2,l2=0.1"), {"weights": "relative"}, "multiply the step size"),
        (("fiol", "logistic"), {"targets": "relative"}, "residual"),
        (("fiol", "squared"), {"targets": "relative", "start": np.zeros(3)}, "start="),
        (("fiol", "squared"), {"targets": "sd"}, "targets 'sd' is not known"),
        (("sadmm", "hinge", "none", "adaptive"), {}, "scored by the average"),
        (("fiol", "hinge", "fused-lasso,tv=0.1", "adaptive"), {"n_features": 3}, "fiol takes the penalties"),
    ],
)
def test_what_has_no_form_is_refused(parts, options, rule):
    with pytest.raises(ValueError, match=rule):
        Learner(*parts, **options)


# --- the adaptive average --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", FOLLOWING)
def test_the_race_is_of_rows_scored_before_they_are_learned(solver, rows):
    X, y, s = rows
    y = np.where(y > 0.0, 1.0, -1.0)
    plain = Learner(solver, "logistic", average="weighted-t1", fit_intercept=True, n_features=12)
    racing = Learner(solver, "logistic", average="adaptive", fit_intercept=True, n_features=12).learn(X[:150], y[:150], s[:150])
    last = mean = 0.0
    for i in range(150):
        if s[i] > 0.0:
            kept = 1.0 - min(1.0, 3.0 / (i + 1))
            score = (X[i] @ plain.weights() + plain.intercept())[0]
            last = last * kept + s[i] * np.logaddexp(0.0, -y[i] * score)
            mean = mean * kept + s[i] * np.logaddexp(0.0, -y[i] * plain.predict(X[i])[0])
        plain.learn(X[i], y[i : i + 1], s[i : i + 1])
    np.testing.assert_allclose(racing.race.losses[:2], [last, mean], rtol=1e-9)
    assert racing.averages == (not racing.race.losses[0] < racing.race.losses[1])
    chosen = plain.weights(average=racing.averages)
    np.testing.assert_array_equal(racing.weights(average=True), chosen)


def test_classes_race_together_and_packs_hold_the_same_bits():
    rng = np.random.default_rng(2)
    X, k = rng.standard_normal((300, 6)), rng.integers(5, size=300)
    Y = np.where(k[:, None] == np.arange(5), 1.0, -1.0)
    options = {"average": "adaptive", "fit_intercept": True, "weights": "relative"}
    packed = Learner("implicit-sgd,eta=3", "logistic", n_outputs=5, **options).learn(X, Y)
    alone = [Learner("implicit-sgd,eta=3", "logistic", **options).learn(X, Y[:, j]) for j in range(5)]
    np.testing.assert_array_equal(packed.weights(), np.stack([one.weights() for one in alone], axis=1))
    np.testing.assert_allclose(packed.race.losses[:2], np.sum([one.race.losses[:2] for one in alone], axis=0), rtol=1e-12)


def test_losses_that_overflow_leave_the_race_decided(rows):
    learner = learned("implicit-sgd,eta=1e6", "exponential", rows, average="adaptive")
    assert np.all(np.isfinite(learner.race.losses))


# --- what they are for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile,q=0.9", "epsilon-insensitive,eps=0"])
def test_unit_and_offset_of_the_targets_do_not_matter(loss):
    X, y = load_diabetes(return_X_y=True)
    base = OnlineRegressor(loss, random_state=0).fit(X, y).predict(X)
    for factor, offset in ((1.0, 1e4), (1.0, -1e7), (2.0**-20, 0.0), (1e6, 3.0)):
        found = OnlineRegressor(loss, random_state=0).fit(X, factor * y + offset).predict(X)
        np.testing.assert_allclose((found - offset) / factor, base, rtol=0.0, atol=1e-6 * np.std(y))


def test_huber_follows_the_unit_of_its_delta():
    X, y = load_diabetes(return_X_y=True)
    base = OnlineRegressor("huber,delta=30", random_state=0).fit(X, y)
    other = OnlineRegressor("huber,delta=30000", random_state=0).fit(X, 1000.0 * y)
    np.testing.assert_allclose(other.predict(X) / 1000.0, base.predict(X), atol=1e-6)


def test_targets_that_do_not_vary_for_long():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 4)), np.zeros(3000)
    y[2000:] = 1e5 * X[2000:, 0]
    model = OnlineRegressor("absolute", shuffle=False).fit(X, y)
    assert 1.0 - np.mean((model.predict(X[2500:]) - y[2500:]) ** 2) / np.var(y[2500:]) > 0.8
    assert OnlineRegressor("absolute").fit(X[:50], np.full(50, 7.0)).predict(X[:3]) == pytest.approx([7.0] * 3)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_quantiles_are_covered(q, unit):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 5))
    y = unit * (3.0 + X @ rng.standard_normal(5) + rng.standard_normal(20_000))
    model = OnlineRegressor(f"quantile,q={q}", random_state=0).fit(X[:15_000], y[:15_000])
    assert np.mean(y[15_000:] <= model.predict(X[15_000:])) == pytest.approx(q, abs=0.02)


def rare(seed=0, n=20_000):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(5.0 - X @ rng.standard_normal(10) * 0.7))).astype(int)


@pytest.mark.parametrize("weight", [None, "balanced", {0: 1, 1: 100}, {0: 1, 1: 10_000}], ids=str)
@pytest.mark.parametrize(("loss", "peer"), [("logistic", LogisticRegression), ("hinge", LinearSVC)])
def test_class_weights_move_the_model_as_they_move_the_minimiser(loss, peer, weight):
    X, y = rare()
    passes = 3 if weight == {0: 1, 1: 10_000} else 1
    ours = OnlineClassifier(loss, class_weight=weight, passes=passes, random_state=0).fit(X, y).predict(X)
    theirs = peer(class_weight=weight).fit(X, y).predict(X)
    for measure in (lambda p: p.mean(), lambda p: balanced_accuracy_score(y, p)):
        assert measure(ours) == pytest.approx(measure(theirs), rel=0.16, abs=0.02)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_weight_of_k_is_near_the_row_k_times(loss):
    X, y = rare(n=8000)
    rng = np.random.default_rng(3)
    s = rng.integers(1, 14, size=8000)
    weighted = OnlineClassifier(loss, random_state=0).fit(X, y, sample_weight=s)
    again = np.repeat(np.arange(8000), s)
    repeated = OnlineClassifier(loss, random_state=0).fit(X[again], y[again])
    agree = np.mean(weighted.predict(X) == repeated.predict(X))
    assert agree > 0.97
    angle = weighted.coef_[0] @ repeated.coef_[0] / np.linalg.norm(weighted.coef_) / np.linalg.norm(repeated.coef_)
    assert angle > 0.97


@pytest.mark.parametrize("scale", [13.0, 1e-6, 1e6])
def test_equal_weights_change_nothing_to_speak_of(scale):
    X, y = rare(n=8000)
    plain = OnlineClassifier(random_state=0).fit(X, y)
    scaled = OnlineClassifier(random_state=0).fit(X, y, sample_weight=np.full(8000, scale))
    assert np.mean(plain.predict(X) == scaled.predict(X)) > 0.97


def prequential(model, X, y, wrong=0):
    for first in range(0, len(y), 100):
        part = slice(first, first + 100)
        if first:
            wrong += np.count_nonzero(model.predict(X[part]) != y[part])
        model.partial_fit(X[part], y[part], classes=[-1, 1])
    return wrong / len(y)


def test_the_default_forgets_what_no_longer_holds():
    rng = np.random.default_rng(0)
    X, before, after = rng.standard_normal((10_000, 20)), *rng.standard_normal((2, 20))
    y = np.where(np.where(np.arange(10_000) < 5000, X @ before, X @ after) + rng.standard_normal(10_000) > 0.0, 1, -1)
    ours = prequential(OnlineClassifier(), X, y)
    assert ours < prequential(OnlineClassifier(average="weighted-t1"), X, y)
    assert ours < prequential(SGDClassifier(random_state=0), X, y)


# --- a solver names a method and nothing else ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "average", "scale"),
    [
        ({}, True, "tempered"),
        ({"solver": "implicit-ftrl,eta=2"}, True, "centred"),
        ({"solver": "fiol,eta=20"}, True, "centred"),
        ({"solver": "implicit-sgd"}, True, "centred"),
        ({"solver": "fiol", "average": "none", "scale": "none"}, False, "none"),
        ({"solver": "asgd", "loss": "hinge"}, True, "centred"),
        ({"solver": "rda"}, False, "centred"),
        ({"solver": "sadmm"}, True, "centred"),
        ({"solver": "csgd,eta=0.1", "loss": "squared"}, False, "none"),
        ({"solver": "mixture"}, False, "dense"),
        ({"solver": "mixture", "fit_intercept": False}, False, "none"),
        ({"penalty": "l1,l1=1e-3"}, False, "centred"),
        ({"penalty": "l2,l2=1e-3"}, True, "centred"),
    ],
    ids=str,
)
def test_a_named_solver_keeps_the_estimators_average_and_scale(params, average, scale):
    X, y = rare(n=300, seed=1)
    y[:150] = 1
    learner = OnlineClassifier(**params).fit(X, y).learner_
    assert (learner.average is not None) == average
    assert (learner.scaler.kind if learner.scaler else "none") == scale


def test_a_step_is_measured_by_the_slope_of_the_loss():
    assert natural_step(LOSSES["squared"](), 7.0) == 1.0
    assert natural_step(LOSSES["absolute"](), 7.0) == 7.0
    assert natural_step(LOSSES["huber"](delta=2.0), 1.0) == 1.0
    assert natural_step(LOSSES["huber"](delta=2.0), 8.0) == 4.0
    assert natural_step(LOSSES["epsilon-insensitive"](eps=3.0), 1.0) == 1.0
    assert natural_step(LOSSES["absolute"](), 0.0) == 1.0
    assert BAND > 1.0


def learn_singly(X, y):
    model = OnlineRegressor()
    for row, target in zip(X, y, strict=True):
        model.learn_one({"a": row[0]}, target)


@pytest.mark.parametrize("average", ["none", "adaptive"])
def test_the_row_whose_target_overflows_is_named(average):
    y = np.arange(60.0) % 7.0
    y[50] = 1e300
    with pytest.raises(DivergenceError, match=r"block 1:51: the targets are so large that their squares are infinite"):
        OnlineRegressor(shuffle=False, average=average).fit([(y[:, None] > 3.0, y)])


@pytest.mark.parametrize("targets", [(1e300, 2.0), (1.0, 1e160)])
@pytest.mark.parametrize("learn", [learn_singly, OnlineRegressor(shuffle=False).fit], ids=["singly", "fit"])
def test_targets_whose_squares_overflow_stop_a_run_without_a_warning(targets, learn, recwarn):
    with pytest.raises(DivergenceError, match="targets are so large that their squares are infinite"):
        learn([[1.0], [2.0]], targets)
    assert not recwarn
