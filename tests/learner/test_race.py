"""The calibration slope: its formula, when it stays, what it changes, and files."""

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from seldom import often, seldom

from onlinear import Learner, ModelFileError, OnlineClassifier, OnlineRegressor, load
from onlinear.files import model_file
from onlinear.learner.clip import bounded
from onlinear.learner.race import (
    AT_FIRST,
    HELD,
    LARGEST,
    LARGEST_OF_NUMBERS,
    SLOPE,
    SMALLEST,
    WEIGHED,
)

RNG = np.random.default_rng(3)
N, D = 200, 6
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
SCORES = X @ RNG.standard_normal((D, 4))
Y = np.where(SCORES[:, 0] > 0.0, 1.0, -1.0)
CLASSES = np.where(SCORES.argmax(axis=1)[:, None] == np.arange(4), 1.0, -1.0)
S = RNG.exponential(size=N) * (RNG.random(N) < 0.9)
CALIBRATED = "adaptive,calibrated=true"
NUMBERS = np.exp(SCORES[:, :1]) + RNG.standard_normal((N, 1)) + 50.0
UNITS: dict[str, dict[str, Any]] = {
    "raw": {"fit_intercept": False, "targets": "raw", "clip": False},
    "level": {"clip": False},
    "clip": {},
}


SETS = [
    pytest.param("logistic", Y[:, None], id="two classes"),
    pytest.param("logistic", CLASSES, id="four classes"),
    pytest.param("softmax", CLASSES, id="softmax"),
]


def made(average=CALIBRATED, **options):
    settings = {"solver": "implicit-ftrl", "loss": "logistic", "fit_intercept": True, "n_features": D}
    return Learner(average=average, **settings | options)


def of_numbers(average=CALIBRATED, **options):
    return made(average, **{"loss": "squared", "targets": "relative", "clip": True} | options)


def bits(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


def log_chance(scores, y, loss="logistic"):
    """The logarithm of the probability of the row's class."""
    if loss == "softmax":
        return log_softmax(scores)[y > 0.0][0]
    chances = 1.0 / (1.0 + np.exp(-scores))
    return np.log(chances[y > 0.0][0] / chances.sum()) if len(y) > 1 else -np.logaddexp(0.0, -y[0] * scores[0])


def row_loss(scores, y, loss):
    """The sum of the losses of a row's outputs."""
    if loss == "softmax":
        return -log_chance(scores, y, loss)
    return -sum(log_chance(np.array([m]), np.array([t])) for m, t in zip(scores, y, strict=True))


def derivatives(scores, y, a, loss):
    """The slope of minus the log chance in a, by differences, and its expected square."""

    def slope(y):
        return (log_chance((a - 1e-6) * scores, y, loss) - log_chance((a + 1e-6) * scores, y, loss)) / 2e-6

    ends = [np.array([-1.0]), np.array([1.0])] if len(y) == 1 else list(np.where(np.eye(len(y)) > 0.0, 1.0, -1.0))
    return slope(y), sum(np.exp(log_chance(a * scores, end, loss)) * slope(end) ** 2 for end in ends)


@pytest.mark.parametrize(("loss", "targets"), SETS)
def test_the_slope_is_the_formula(loss, targets):
    outputs = targets.shape[1]
    y = targets[:, 0] if outputs == 1 else targets
    plain, found = made("adaptive", loss=loss, n_outputs=outputs), made(loss=loss, n_outputs=outputs)
    a, curved, total = 1.0, 0.0, 0.0
    means = np.cumsum(S) / np.maximum(1, np.cumsum(S > 0.0))
    for i in range(N):
        scores = np.atleast_1d(plain.predict(X[i : i + 1])[0])
        total += S[i] * row_loss(a * scores, targets[i], loss)
        if S[i] > 0.0:
            slope, square = derivatives(scores, targets[i], a, loss)
            curved += S[i] / means[i] * square
            a = min(max(a - S[i] / means[i] * slope / (curved + AT_FIRST), SMALLEST), LARGEST)
        plain.learn(X[i : i + 1], y[i : i + 1], S[i : i + 1])
    found.learn(X, y, S)
    np.testing.assert_allclose(found.race.losses[SLOPE : SLOPE + 2], [a, curved], rtol=1e-5)
    np.testing.assert_allclose(found.race.predicted_loss, total, rtol=1e-6)
    np.testing.assert_array_equal(found.race.losses[:2], plain.race.losses[:2])
    np.testing.assert_array_equal(found.weights(), plain.weights())
    np.testing.assert_array_equal(found.weights(average=True), found.race.calibration_slope * plain.weights(average=True))
    np.testing.assert_allclose(found.predict(X), found.race.calibration_slope * plain.predict(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("loss", "targets"), SETS)
def test_the_unit_of_weights_does_not_matter(loss, targets):
    y = targets[:, 0] if targets.shape[1] == 1 else targets
    slopes = [made(loss=loss, n_outputs=targets.shape[1]).learn(X, y, 2.0**k * S).race.calibration_slope for k in (-60, 0, 60)]
    assert slopes[0] == slopes[1] == slopes[2] != 1.0


def test_a_file_without_the_mean_weight_goes_on_as_before(tmp_path):
    whole, half = made().learn(X, Y), made().learn(X[: N // 2], Y[: N // 2])
    half.race.losses[WEIGHED:] = np.inf, 1.0  # as such a file is read
    half.save(tmp_path / "old")
    header, arrays = model_file.read(tmp_path / "old")
    model_file.write(tmp_path / "old", header, arrays | {"race": arrays["race"][:WEIGHED]})
    again = load(tmp_path / "old").learn(X[N // 2 :], Y[N // 2 :])
    np.testing.assert_array_equal(again.race.losses[:WEIGHED], whole.race.losses[:WEIGHED])
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again").race.losses, again.race.losses)


@pytest.mark.parametrize("options", UNITS.values(), ids=UNITS)
def test_the_slope_of_numbers_is_the_formula(options):
    plain, found = of_numbers("adaptive", **options), of_numbers(**options)
    n, v, D, r, a, total, led, rows = 0, 0.0, 0.0, 1.0, 1.0, 0.0, False, 0
    for i in range(N):
        if led != plain.race.last_leads:
            n, v, D, r, a, led = 0, 0.0, 0.0, 1.0, 1.0, not led
        level = 0.0 if plain.units is None else plain.units.offset[0] if rows else NUMBERS[i, 0]
        m = (X[i] @ plain.weights(average=True) + plain.intercept(average=True)) - level if rows else 0.0
        predicted = bounded(level + a * m, plain.bounds()) if rows else 0.0
        np.testing.assert_allclose(found.predict(X[i : i + 1])[0], predicted, rtol=1e-9, atol=1e-9)
        rows += S[i] > 0.0
        total += S[i] * (bounded(level + a * m, plain.bounds()) - NUMBERS[i, 0]) ** 2 / 2.0
        if S[i] > 0.0:
            n += 1
            m, y = bounded(level + m, plain.bounds()) - level, NUMBERS[i, 0] - level
            u = y - r * m if v == 0.0 else np.clip(y - r * m, -20.0 * v**0.5, 20.0 * v**0.5)
            v = u * u if v == 0.0 else v + max(3.0 / (n + 2.0), 0.01) * (u * u - v)
            w = S[i] / (v + m * m / 100.0) if v + m * m > 0.0 else 0.0
            D = max(0.0, 1.0 - 3.0 / n) * D + w * m * m
            r = np.clip(r + (w * m * u / D if D > 0.0 else 0.0), 0.0, 2.0)
            a = max(1.0 + (r - 1.0) / (1.0 + 20.0 / n), SMALLEST)
        for learner in (plain, found):
            learner.learn(X[i : i + 1], NUMBERS[i], S[i : i + 1])
    assert abs(a - 1.0) > 1e-3
    np.testing.assert_allclose(found.race.losses[SLOPE:], [a, D, 0.0, r, n, v], rtol=1e-8)
    np.testing.assert_allclose(found.race.predicted_loss, total, rtol=1e-9)
    np.testing.assert_array_equal(found.race.losses[:2], plain.race.losses[:2])
    np.testing.assert_array_equal(found.weights(), plain.weights())
    np.testing.assert_array_equal(found.weights(average=True), found.calibration_slope * plain.weights(average=True))


@pytest.mark.parametrize("kind", often(UNITS, ["clip"]))
def test_all_ways_of_learning_numbers_give_the_same_bits(kind, tmp_path):
    whole, cut, single = (of_numbers(**UNITS[kind], scale="dense") for _ in range(3))
    kept = S > 0.0
    whole.learn(X[kept], NUMBERS[kept, 0])
    for part in np.array_split(np.flatnonzero(kept), 17):
        cut.learn(X[part], NUMBERS[part, 0])
        cut.save(tmp_path / "model")
        cut = load(tmp_path / "model")
    for i in np.flatnonzero(kept):
        columns = np.flatnonzero(X[i])
        before = single.predict(X[i : i + 1])[0]
        assert before == single.predict_one(columns, X[i, columns])
        single.learn_one(columns, X[i, columns], NUMBERS[i, 0])
    assert bits(cut) == bits(single) == bits(whole)


def test_numbers_from_columns_with_heavy_tails_are_not_believed():
    rng = np.random.default_rng(0)
    tails, slopes = rng.standard_normal((3000, 8)) ** 5, rng.standard_normal(8)
    y = np.sign(tails) @ slopes + rng.standard_normal(3000)
    sure, plain = (
        OnlineRegressor(shuffle=False, average=average).fit(tails[:2000], y[:2000]) for average in (None, "adaptive")
    )
    errors = [np.mean((model.predict(tails[2000:]) - y[2000:]) ** 2) for model in (sure, plain)]
    assert sure.learner_.calibration_slope < 0.9
    assert errors[0] < 0.97 * errors[1]


def test_several_numbers_have_no_common_slope():
    assert OnlineRegressor().fit(X, np.hstack([NUMBERS, -NUMBERS])).learner_.calibration_slope == 1.0
    with pytest.raises(ValueError, match="one output"):
        of_numbers(n_outputs=2)


@pytest.mark.parametrize(("loss", "targets"), SETS)
def test_any_cut_a_file_and_a_pause_give_the_same_bits(loss, targets, tmp_path):
    outputs = targets.shape[1]
    whole, cut = made(loss=loss, n_outputs=outputs).learn(X, targets, S), made(loss=loss, n_outputs=outputs)
    first = 0
    while first < N:
        for size in (1, 2, 13, 64):
            part = slice(first, first + size)
            cut.learn(X[part], targets[part], S[part])
            first += size
        cut.save(tmp_path / "model")
        cut = load(tmp_path / "model")
    assert bits(cut) == bits(whole)


@pytest.mark.parametrize(("loss", "targets"), SETS)
def test_scores_of_rows_learned_before_do_not_count(loss, targets):
    y = targets.argmax(axis=1) if targets.shape[1] > 1 else Y
    once, again, plain = (
        OnlineClassifier(loss, passes=passes, shuffle=False, average=average).fit(X, y)
        for passes, average in ((1, None), (3, None), (3, "adaptive"))
    )
    assert once.learner_.race.calibration_slope != 1.0
    np.testing.assert_array_equal(again.learner_.race.losses[[SLOPE, HELD]], 1.0)
    np.testing.assert_array_equal(again.learner_.race.losses[:2], plain.learner_.race.losses[:2])
    np.testing.assert_array_equal(again.coef_, plain.coef_)


def test_labels_of_noise_are_not_believed_and_separable_ones_are():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((300, 900))
    noise = OnlineClassifier(shuffle=False).fit(wide, rng.random(300) < 0.5)
    assert noise.learner_.race.calibration_slope < 0.5
    parted = OnlineClassifier(shuffle=False).fit(X, Y)
    assert parted.learner_.race.calibration_slope > 1.2
    plain = OnlineClassifier(shuffle=False, average="adaptive").fit(X, Y)
    np.testing.assert_array_equal(parted.predict(X), plain.predict(X))
    assert np.all(np.max(parted.predict_proba(X), axis=1) >= np.max(plain.predict_proba(X), axis=1))


def test_scores_of_any_size_leave_a_slope():
    rows = np.array([[1e150], [1e-150], [-1e150], [0.0]] * 20)
    classes = np.where(RNG.integers(0, 3, 80)[:, None] == np.arange(3), 1.0, -1.0)
    for loss, y in (
        ("logistic", classes[:, 0]),
        ("logistic", classes),
        ("softmax", classes),
    ):
        learner = made(loss=loss, n_outputs=y.size // 80, n_features=1).learn(rows, y)
        assert SMALLEST <= learner.race.calibration_slope <= LARGEST
        assert np.all(np.isfinite(learner.race.losses))


@pytest.mark.parametrize("size", [1e-200, 1e-75, 1e75])
def test_numbers_of_any_size_leave_a_slope(size):
    rows = RNG.choice([1e75, 1e-75, -1e75, 1.0, 0.0], size=(80, 1))
    learner = of_numbers(n_features=1).learn(rows, size * RNG.standard_cauchy(80))
    assert SMALLEST <= learner.calibration_slope <= LARGEST_OF_NUMBERS
    assert np.all(np.isfinite(learner.race.losses))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "for the losses logistic and softmax"),
        ({"forget": 50.0}, "no form that forgets"),
        ({"average": "adaptive,calibrated=1"}, "calibrated"),
        ({"average": "uniform,calibrated=true"}, "calibrated"),
    ],
)
def test_what_has_no_slope_is_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made(**options)


TOLD = [{"l2": 1e-3}, {"forget": 100}, {"solver": "fiol"}]
IN_PACKS = "logistic", {"solver": "fiol"}  # a kernel of its own


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        *((loss, settings) for loss in ("logistic", "softmax") for settings in TOLD if (loss, settings) != IN_PACKS),
        seldom(*IN_PACKS),
        ("hinge", {}),
        ("logistic", {"uncertainty": True}),
    ],
)
def test_estimators_that_are_told_more_keep_the_average_as_it_is(loss, settings):
    assert OnlineClassifier(loss, **settings).fit(X, CLASSES.argmax(axis=1)).learner_.calibration_slope == 1.0


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        *((made, place, value) for place, value in [(SLOPE, 9.0), (SLOPE, np.nan), (SLOPE + 1, -1.0), (HELD, 0.5)]),
        *((of_numbers, HELD + k, value) for k, value in enumerate((0.5, 2.1, -1.0, np.inf))),
        (of_numbers, SLOPE, 2.1),
    ],
)
def test_files_of_a_slope_that_cannot_be_are_refused(kind, place, value, tmp_path):
    learner = kind().learn(X, Y)
    learner.race.losses[place] = value
    learner.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="calibration slope"):
        load(tmp_path / "model")
