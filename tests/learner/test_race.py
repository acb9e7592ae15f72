"""The temperature of a calibrated predictor: its formula, when it stays, what it changes, and files."""

import numpy as np
import pytest
from scipy.special import log_softmax

from onlinear import Learner, ModelFileError, OnlineClassifier, load
from onlinear.learner.race import AT_FIRST, HELD, INVERSE_TEMPERATURE, LARGEST, SMALLEST

RNG = np.random.default_rng(3)
N, D = 200, 6
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
SCORES = X @ RNG.standard_normal((D, 4))
Y = np.where(SCORES[:, 0] > 0.0, 1.0, -1.0)
CLASSES = np.where(SCORES.argmax(axis=1)[:, None] == np.arange(4), 1.0, -1.0)
S = RNG.exponential(size=N) * (RNG.random(N) < 0.9)
CALIBRATED = "adaptive,calibrated=true"


SETS = [
    pytest.param("logistic", Y[:, None], id="two classes"),
    pytest.param("logistic", CLASSES, id="four classes"),
    pytest.param("softmax", CLASSES, id="softmax"),
]


def made(average=CALIBRATED, **options):
    settings = {"solver": "implicit-ftrl", "loss": "logistic", "fit_intercept": True, "n_features": D}
    return Learner(average=average, **settings | options)


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
def test_the_temperature_is_the_formula(loss, targets):
    outputs = targets.shape[1]
    y = targets[:, 0] if outputs == 1 else targets
    plain, found = made("adaptive", loss=loss, n_outputs=outputs), made(loss=loss, n_outputs=outputs)
    a, curved, total = 1.0, 0.0, 0.0
    for i in range(N):
        scores = np.atleast_1d(plain.predict(X[i : i + 1])[0])
        total += S[i] * row_loss(a * scores, targets[i], loss)
        if S[i] > 0.0:
            slope, square = derivatives(scores, targets[i], a, loss)
            curved += S[i] * square
            a = min(max(a - S[i] * slope / (curved + AT_FIRST), SMALLEST), LARGEST)
        plain.learn(X[i : i + 1], y[i : i + 1], S[i : i + 1])
    found.learn(X, y, S)
    np.testing.assert_allclose(found.race.losses[INVERSE_TEMPERATURE : INVERSE_TEMPERATURE + 2], [a, curved], rtol=1e-5)
    np.testing.assert_allclose(found.race.predicted_loss, total, rtol=1e-6)
    np.testing.assert_array_equal(found.race.losses[:2], plain.race.losses[:2])
    np.testing.assert_array_equal(found.weights(), plain.weights())
    np.testing.assert_array_equal(found.weights(average=True), found.race.inverse_temperature * plain.weights(average=True))
    np.testing.assert_allclose(found.predict(X), found.race.inverse_temperature * plain.predict(X), rtol=1e-12, atol=1e-14)


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
    assert once.learner_.race.inverse_temperature != 1.0
    np.testing.assert_array_equal(again.learner_.race.losses[[INVERSE_TEMPERATURE, HELD]], 1.0)
    np.testing.assert_array_equal(again.learner_.race.losses[:2], plain.learner_.race.losses[:2])
    np.testing.assert_array_equal(again.coef_, plain.coef_)


def test_labels_of_noise_are_not_believed_and_separable_ones_are():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((300, 900))
    noise = OnlineClassifier(shuffle=False).fit(wide, rng.random(300) < 0.5)
    assert noise.learner_.race.inverse_temperature < 0.5
    parted = OnlineClassifier(shuffle=False).fit(X, Y)
    assert parted.learner_.race.inverse_temperature > 1.2
    plain = OnlineClassifier(shuffle=False, average="adaptive").fit(X, Y)
    np.testing.assert_array_equal(parted.predict(X), plain.predict(X))
    assert np.all(np.max(parted.predict_proba(X), axis=1) >= np.max(plain.predict_proba(X), axis=1))


def test_scores_of_any_size_leave_a_temperature():
    rows = np.array([[1e150], [1e-150], [-1e150], [0.0]] * 20)
    classes = np.where(RNG.integers(0, 3, 80)[:, None] == np.arange(3), 1.0, -1.0)
    for loss, y in (("logistic", classes[:, 0]), ("logistic", classes), ("softmax", classes)):
        learner = made(loss=loss, n_outputs=y.size // 80, n_features=1).learn(rows, y)
        assert SMALLEST <= learner.race.inverse_temperature <= LARGEST
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
def test_what_has_no_temperature_is_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made(**options)


TOLD = [{"l2": 1e-3}, {"forget": 100}, {"solver": "fiol"}]


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        *((loss, settings) for loss in ("logistic", "softmax") for settings in TOLD),
        ("hinge", {}),
        ("logistic", {"uncertainty": True}),
    ],
)
def test_estimators_that_are_told_more_keep_the_average_as_it_is(loss, settings):
    assert OnlineClassifier(loss, **settings).fit(X, CLASSES.argmax(axis=1)).learner_.inverse_temperature == 1.0


@pytest.mark.parametrize(
    ("place", "value"),
    [(INVERSE_TEMPERATURE, 9.0), (INVERSE_TEMPERATURE, np.nan), (INVERSE_TEMPERATURE + 1, -1.0), (HELD, 0.5)],
)
def test_files_of_a_temperature_that_cannot_be_are_refused(place, value, tmp_path):
    learner = made().learn(X, Y)
    learner.race.losses[place] = value
    learner.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="temperature"):
        load(tmp_path / "model")
