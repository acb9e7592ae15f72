"""Corrected rounds over shards: their steps, the same bytes whoever runs them, where they end, what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from onlinear import Learner, OnlineClassifier, OnlineRegressor, load
from onlinear.errors import ModelFileError
from onlinear.losses import Logistic
from onlinear.rows import Rows
from onlinear.shards import Blocks, Local, fit
from onlinear.shards.corrected import CorrectedRounds
from onlinear.shards.correction import Pass, idle, idle_step

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
PENALTY = "l1=1e-2"


def cut(X, y, ends, weights=None):
    """Rows in shards that end at these places."""
    parts = [slice(a, b) for a, b in zip([0, *ends], [*ends, len(y)], strict=True)]
    more = [() if weights is None else (weights[part],) for part in parts]
    return [Blocks(f"part {k}", ((X[part], y[part], *w),)) for k, (part, w) in enumerate(zip(parts, more, strict=True))]


def bytes_of(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


def best(penalty=PENALTY, **settings):
    return OnlineClassifier(penalty=penalty, scale="rms", tol=1e-6, **settings)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf), (-0.5, 0.3)])
def test_idle_steps_at_once_are_the_steps_one_by_one(bounds):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        l1, l2 = rng.choice([0.0, 0.01, 0.3]), rng.choice([0.0, 0.001, 0.1, 2.0])
        eta, g = rng.choice([0.01, 0.3, 8.0]), rng.choice([-1.0, 0.0, 1.0]) * rng.exponential(0.3)
        start, steps = rng.normal() * rng.choice([0.01, 0.3, 3.0]), int(rng.integers(1, 60))
        w = start
        for _ in range(steps):
            w = idle_step(w, g, eta, l1, l2, *bounds)
        found = idle(start, steps, g, eta, l1, l2, *bounds)
        assert found == pytest.approx(w, rel=1e-10, abs=1e-13)
        assert (found == 0.0) == (w == 0.0)


def test_a_pass_is_the_recursion():
    rng = np.random.default_rng(1)
    n, d, eta, l1, l2 = 30, 6, 0.7, 0.05, 0.1
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    y, s = rng.choice([-1.0, 1.0], n), rng.choice([0.0, 1.0, 2.5], n)
    w0, b0, g, g_b = rng.normal(size=d), 0.3, 0.2 * rng.normal(size=d), 0.1
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(n + 1)).astype(np.uint64)
    taken = Pass((l1, l2, -np.inf, np.inf), True, eta, w0, b0, g, g_b)
    stored = Rows(starts, columns.astype(np.uint32), dense[rows, columns])
    taken.add(Logistic(), stored, y, s)
    w, b, loss = w0.copy(), b0, Logistic()
    for x, target, weight in zip(dense, y, s, strict=True):
        c = eta * weight * (x @ x + 1.0)
        slope = loss.slope(float(w0 @ x + b0), target)
        theta = weight * (loss.theta(float(w @ x + b + c * slope), float(c), target) - slope)
        w, b = (
            np.array([idle_step(v, at, eta, l1, l2, -np.inf, np.inf) for v, at in zip(w - eta * theta * x, g, strict=True)]),
            (b - eta * (theta + g_b)),
        )
    found, intercept = taken.end()
    np.testing.assert_allclose(found, w, rtol=1e-10, atol=1e-12)
    assert np.array_equal(found == 0.0, w == 0.0)
    assert intercept == pytest.approx(b, rel=1e-10)


def test_no_shard_leaves_the_optimum():
    model = OnlineClassifier(penalty=PENALTY, scale="none", tol=1e-9).fit(X, Y)
    w, b, signs = model.coef_[0], float(model.intercept_[0]), np.where(Y == 1, 1.0, -1.0)
    theta = -signs / (1.0 + np.exp(signs * (X @ w + b)))
    starts = np.arange(0, X[:100].size + 1, X.shape[1], dtype=np.uint64)
    rows = Rows(starts, np.tile(np.arange(X.shape[1], dtype=np.uint32), 100), X[:100].ravel())
    taken = Pass((1e-2, 0.0, -np.inf, np.inf), True, 1.0, w, b, X.T @ theta / len(Y), float(theta.mean()))
    taken.add(Logistic(), rows, signs[:100], np.ones(100))
    assert np.abs(taken.end()[0] - w).max() < 1e-3 * np.abs(w).max()


def test_rounds_come_near_the_optimum_on_shards_sorted_by_label_and_never_rise(tmp_path):
    order = np.argsort(Y, kind="stable")
    shards, told = cut(X[order], Y[order], [0, 150, 300, 450]), []
    model = fit(OnlineClassifier(penalty=PENALTY), shards, Local(3), told.append, rounds=10)
    values = [found.objective for found in told]
    assert values == sorted(values, reverse=True)
    least = best().fit(X, Y).objective_
    assert least <= values[-1] <= 1.02 * least < 1.5 * least < values[0]
    assert (1.0 - told[-1].gap) * values[-1] <= least
    assert bytes_of(model, tmp_path) == bytes_of(fit(OnlineClassifier(penalty=PENALTY), shards, Local(), rounds=10), tmp_path)
    again = load(tmp_path / "m")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert model.t_ == 10 * len(Y)
    assert np.isnan(model.learner_.progressive_loss), "no row was scored before it was learned"
    losses = np.logaddexp(0.0, -np.where(Y[:1] == 1, 1.0, -1.0) * again.decision_function(X[:1]))
    for each in (model, again):
        each.partial_fit(X[:1], Y[:1])
        assert each.learner_.progressive_loss == pytest.approx(float(losses[0]), rel=0.05), "of the row since"


def test_models_of_millions_of_rows_are_read_and_continue(tmp_path, monkeypatch):
    end, shards = CorrectedRounds.end, cut(X, Y, [300])
    monkeypatch.setattr(CorrectedRounds, "end", lambda self, rows: end(self, rows << 20))
    model = fit(OnlineClassifier(penalty=PENALTY), shards, Local(), rounds=3)
    fit(OnlineClassifier(penalty=PENALTY), shards, Local(), rounds=2, checkpoint=tmp_path / "c")
    again = fit(OnlineClassifier(penalty=PENALTY), shards, Local(), rounds=3, resume=tmp_path / "c")
    assert bytes_of(again, tmp_path) == bytes_of(model, tmp_path)
    found = load(tmp_path / "m")
    assert np.array_equal(found.coef_, model.coef_)
    assert found.partial_fit(X, Y).t_ == 3 * (len(Y) << 20) + len(Y)
    found.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), found.predict(X))


def test_a_fit_goes_on_from_a_checkpoint_to_the_same_bytes(tmp_path):
    shards = cut(X, Y, [100, 300])
    setting = {"penalty": PENALTY, "class_weight": "balanced"}
    whole = fit(OnlineClassifier(**setting), shards, Local(), rounds=5)
    told = []
    fit(OnlineClassifier(**setting), shards, Local(2), told.append, rounds=3, checkpoint=tmp_path / "c")
    fit(OnlineClassifier(**setting), shards, Local(), told.append, rounds=3, resume=tmp_path / "c")
    assert told[3:] == [told[2]._replace(seconds=0.0)], "no round is left: where it stands"
    again = fit(OnlineClassifier(**setting), shards, Local(), rounds=5, resume=tmp_path / "c")
    assert bytes_of(again, tmp_path) == bytes_of(whole, tmp_path)
    with pytest.raises(ValueError, match="not up to tol="):
        fit(OnlineClassifier(tol=1e-3, **setting), shards, Local(), resume=tmp_path / "c")
    with pytest.raises(ModelFileError):
        fit(OnlineClassifier(**setting), shards, Local(), rounds=5, resume=tmp_path / "m")


def test_a_fit_goes_on_with_classes_that_other_shards_have_as_numbers(tmp_path):
    numbers = np.where(Y == 1, 10, 9)
    text = cut(X, numbers.astype(str), [300])
    fit(OnlineClassifier(penalty=PENALTY), text, Local(), rounds=1, checkpoint=tmp_path / "c")
    resumed = [
        fit(OnlineClassifier(penalty=PENALTY), shards, Local(), rounds=2, resume=tmp_path / "c")
        for shards in (text, cut(X, numbers, [300]))
    ]
    assert bytes_of(resumed[0], tmp_path) == bytes_of(resumed[1], tmp_path)


@pytest.mark.exhaustive
def test_several_classes_weights_and_numbers():
    wine, kinds = load_wine(return_X_y=True)
    told = []
    weights = 1.0 + np.arange(len(kinds)) % 3
    shards = cut(wine, kinds, [60, 120], weights)
    model = fit(OnlineClassifier(penalty="l1=1e-3,l2=0.05"), shards, Local(), told.append, rounds=8)
    least = best("l1=1e-3,l2=0.05").fit(wine, kinds, weights).objective_
    assert least <= told[-1].objective <= 1.1 * least
    assert model.score(wine, kinds) > 0.9
    numbers, y = load_diabetes(return_X_y=True)
    model = fit(OnlineRegressor(clip=False), cut(100.0 * numbers, y, [200]), Local(), told.append, rounds=6)
    assert told[-1].gap == np.inf
    assert model.score(100.0 * numbers, y) > 0.45


def test_rounds_depend_on_no_unit_of_the_weights():
    """Steps of one size for each unit left the fit where the online pass was, worse than a constant, for many rounds."""
    shards, many = (cut(X, Y, [100, 300], np.full(len(Y), weight)) for weight in (1.0, 2.0**13))
    model = fit(OnlineClassifier(penalty="l2=0.01"), shards, Local(), rounds=3)
    again = fit(OnlineClassifier(penalty="l2=81.92"), many, Local(), rounds=3)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_shards_count_in_the_mean_by_the_weights_of_their_rows():
    """The mean of passes was that of entries: a shard that hardly matters moved weights as much as all others."""
    light = np.arange(len(Y)) < 100
    y, weights = np.where(light, 1 - Y, Y), np.where(light, 1e-6, 1.5)  # of all rows and of the others in one unit
    shards = cut(X, y, [100], weights)
    model, alone = (fit(OnlineClassifier(scale="none"), of, Local(), rounds=1) for of in (shards, shards[1:]))
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)


def test_one_round_is_the_mean_of_online_passes_and_takes_an_average():
    ends = [150, 400]
    model = fit(OnlineClassifier(scale="none", average="weighted-t1"), cut(X, Y, ends), Local(), rounds=1)
    signs, found = np.where(Y == 1, 1.0, -1.0), np.zeros(X.shape[1])
    for part in (slice(0, 150), slice(150, 400), slice(400, None)):
        learner = Learner("fiol,eta=5", "logistic", "none", "weighted-t1", fit_intercept=True).learn(X[part], signs[part])
        found += learner.weights(average=True) * len(X[part])
    np.testing.assert_allclose(model.coef_[0], found / len(X), rtol=1e-12)
    for eta in (5.0, 0.5):  # of the default, and another
        stepped = fit(OnlineClassifier(scale="none", average="weighted-t1", eta=eta), cut(X, Y, ends), Local(), rounds=1)
        assert np.array_equal(stepped.coef_, model.coef_) == (eta == 5.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tol": 1e-3, "penalty": PENALTY}, "exclude each other"),
        ({"average": "weighted-t1"}, "rounds=1"),
        ({"loss": "hinge"}, "'squared-hinge'"),
        ({"loss": "softmax"}, "no form in rounds"),
        ({"penalty": "total-variation,tv=0.1"}, "no form in rounds"),
        ({"solver": "rls"}, "no form in rounds"),
        ({"solver": "implicit-ftrl"}, "cannot continue from a mean"),
        ({"solver": "rda,gamma=1"}, "cannot continue from a mean"),
        ({"solver": "ftrl", "penalty": PENALTY}, "beside a penalty: it cannot continue from a mean"),
        ({"solver": "adagrad-comid", "penalty": "l2=0.1"}, "beside a penalty"),
        ({"solver": "epoch-gd,epoch=4", "penalty": "l2=0.1"}, "beside a penalty"),
        ({"solver": "sdca"}, "exclude each other|by name"),
        ({"scale": "standard"}, "use 'rms'"),
        ({"forget": 100.0}, "forget= has no form"),
        ({"passes": 2}, "rounds= says"),
        ({"solver": "comid,eta=0.1", "eta": 0.1}, "both name eta"),
    ],
)
def test_what_has_no_form_is_refused_before_the_first_row(settings, message):
    with pytest.raises(ValueError, match=message):
        fit(OnlineClassifier(**settings), [], Local(), rounds=3)


@pytest.mark.parametrize("rounds", [0, True, 2.0])
def test_rounds_is_a_number_of_them(rounds):
    with pytest.raises(ValueError, match="rounds must be an integer"):
        fit(OnlineClassifier(), [], Local(), rounds=rounds)
