"""What ``evaluate`` finds is what NumPy finds from the scores."""

import math
import tracemalloc

import numpy as np
import pytest
from garbage import collected
from seldom import seldom

from onlinear import OnlineClassifier, OnlineRegressor
from onlinear.models.evaluation import evaluate
from onlinear.papers.optimum import mean_loss
from onlinear.streams.blocks import StreamError
from onlinear.streams.pairs import Pairs

rng = np.random.default_rng(5)
X = rng.standard_normal((60, 4))
SIGNS = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
REAL, COUNTS = 3.0 * X[:, 0] + rng.standard_normal(60), rng.poisson(1.5, 60).astype(float)
CLASSES = rng.integers(0, 3, 60)
WEIGHTS = rng.integers(0, 3, 60).astype(float)

LOSSES = {  # by NumPy alone: the loss of scores s and targets y
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
    "squared,factor=3": lambda s, y: 1.5 * (s - y) ** 2,
    "absolute": lambda s, y: np.abs(s - y),
    "hinge": lambda s, y: np.maximum(0.0, 1.0 - y * s),
    "hinge,margin=0.25,factor=2": lambda s, y: 2.0 * np.maximum(0.0, 0.25 - y * s),
    "squared-hinge": lambda s, y: 0.5 * np.maximum(0.0, 1.0 - y * s) ** 2,
    "squared-hinge,margin=2": lambda s, y: 0.5 * np.maximum(0.0, 2.0 - y * s) ** 2,
    "logistic": lambda s, y: np.logaddexp(0.0, -y * s),
    "exponential": lambda s, y: np.exp(-y * s),
    "huber": lambda s, y: np.where(np.abs(s - y) <= 1.0, 0.5 * (s - y) ** 2, np.abs(s - y) - 0.5),
    "huber,delta=0.25": lambda s, y: np.where(np.abs(s - y) <= 0.25, 0.5 * (s - y) ** 2, 0.25 * np.abs(s - y) - 0.03125),
    "epsilon-insensitive": lambda s, y: np.maximum(0.0, np.abs(s - y) - 0.1),
    "epsilon-insensitive,eps=0.75": lambda s, y: np.maximum(0.0, np.abs(s - y) - 0.75),
    "quantile": lambda s, y: 0.5 * np.abs(s - y),
    "quantile,q=0.9": lambda s, y: np.where(y > s, 0.9 * (y - s), 0.1 * (s - y)),
    "poisson": lambda s, y: np.exp(s) - y * s,
    "modified-huber": lambda s, y: np.where(y * s >= -1.0, np.maximum(0.0, 1.0 - y * s) ** 2, -4.0 * y * s),
}
FOR_CLASSES = ("hinge", "logistic", "exponential", "modified", "squared", "absolute")


def found(model, X, y):
    """What evaluate gives, among memory that is taken up and given back."""
    with collected():
        filled = [np.full(size, 1e3) for size in range(2, 9) for _ in range(200)]
        result = evaluate(model, Pairs([(X[:25], y[:25], WEIGHTS[:25]), (X[25:], y[25:], WEIGHTS[25:])]))
        del filled
    return result


def test_every_loss_is_tried():
    from onlinear.learner.parts import LOSSES as KNOWN

    assert {name.partition(",")[0] for name in LOSSES} == set(KNOWN)


OFTEN = ("logistic", "squared", "squared,factor=3", "hinge,margin=0.25,factor=2", "poisson")


@pytest.mark.parametrize("loss", [loss if loss in OFTEN else seldom(loss) for loss in LOSSES])
def test_the_loss_is_that_of_the_scores(loss):
    wanted = LOSSES[loss]
    for y in (SIGNS, CLASSES) if loss.startswith(FOR_CLASSES) else ():
        model = OnlineClassifier(loss=loss).fit(X, y)  # the default's kernels, which other tests have compiled
        scores = model.decision_function(X).reshape(len(X), -1)
        own = np.where(y[:, None] == model.classes_, 1.0, -1.0) if scores.shape[1] > 1 else y[:, None]
        mean = float(WEIGHTS @ wanted(scores, own).sum(axis=1)) / WEIGHTS.sum()
        assert found(model, X, y).loss == pytest.approx(mean, rel=1e-12)
    if not loss.startswith(("hinge", "squared-hinge", "logistic", "exponential", "modified")):
        y = COUNTS if loss == "poisson" else REAL
        model = OnlineRegressor(loss=loss).fit(X, y)
        scores = model.learner_.predict(X)
        assert found(model, X, y).loss == pytest.approx(float(WEIGHTS @ wanted(scores, y)) / WEIGHTS.sum(), rel=1e-12)


def test_a_loss_that_overflows_is_infinite_everywhere():
    model = OnlineClassifier(loss="exponential", solver="implicit-sgd,eta=0.3").fit(X, SIGNS)
    far = 1e6 * X
    assert model.learner_.objective(far, -SIGNS) == math.inf
    assert found(model, far, -SIGNS).loss == math.inf
    assert mean_loss(model.learner_.loss, 1e4 * SIGNS, -SIGNS) == math.inf


@pytest.mark.parametrize(("loss", "classes"), [("logistic", SIGNS), ("logistic", CLASSES), (None, CLASSES)])
def test_the_log_loss_of_rows_far_off_has_all_digits(loss, classes):
    model = OnlineClassifier(loss=loss).fit(X, classes)
    for times in (1.0, 300.0):  # probabilities of 1e-17 and less are differences of 1, or 0
        scores, y = model.decision_function(times * X).reshape(60, -1), classes[::-1]
        own = np.where(y[:, None] == model.classes_[-scores.shape[1] :], 1.0, -1.0)
        logs = scores if loss is None else -np.logaddexp(0.0, -scores)
        if scores.shape[1] == 1:
            wanted = np.logaddexp(0.0, -own * scores)[:, 0]
        else:
            wanted = np.logaddexp.reduce(logs, axis=1) - logs[own > 0.0]
        measured = found(model, times * X, y)
        assert measured.measures["log loss"] == pytest.approx(WEIGHTS @ wanted / WEIGHTS.sum(), rel=1e-12)
        assert scores.shape[1] > 1 or measured.loss == pytest.approx(measured.measures["log loss"], rel=1e-12)


@pytest.mark.parametrize("cuts", [(), (1,), (0, 7, 7, 40), tuple(range(60))])
def test_a_score_of_a_stream_is_that_of_its_rows_however_it_is_cut(cuts):
    for model, y in ((OnlineClassifier(), CLASSES), (OnlineRegressor(), REAL), (OnlineRegressor(), REAL + 1e7)):
        fitted = model.fit(X, y)
        parts = [(X[rows], y[rows], WEIGHTS[rows]) for rows in np.split(np.arange(60), cuts) if len(rows)]
        assert fitted.score(Pairs(parts)) == pytest.approx(fitted.score(X, y, WEIGHTS), rel=1e-6)


def test_a_score_of_a_stream_without_an_answer():
    model = OnlineRegressor().fit(X, REAL)
    assert math.isnan(model.score(Pairs([(X[:9], np.full(9, 0.1)), (X[9:], np.full(51, 0.1))])))
    assert math.isnan(model.score(Pairs([(X, REAL, np.arange(60) == 3)])))
    for none, words in (([], "at least one row"), ([(X, REAL, np.zeros(60))], "every row has the weight 0")):
        with pytest.raises(ValueError, match=words):
            model.score(Pairs(none))


def test_a_score_of_a_stream_keeps_nothing_of_its_rows():
    class Many(Pairs):
        def __iter__(self):
            (block,) = super().__iter__()
            return (block for _ in range(300))

    for model, y in ((OnlineClassifier(), np.resize(CLASSES, 5_000)), (OnlineRegressor(), np.resize(REAL, 5_000))):
        rows = np.resize(X, (5_000, 4))
        model.fit(rows, y)
        once = model.score(rows, y)
        tracemalloc.start()
        try:
            assert model.score(Many([(rows, y)])) == pytest.approx(once, rel=1e-12)
            assert tracemalloc.get_traced_memory()[1] < 5_000 * 300  # less than a byte for each row
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("model", "y", "most"), [(OnlineClassifier(), SIGNS, 40), (OnlineClassifier(), CLASSES, 4), (OnlineRegressor(), REAL, 56)]
)
def test_bytes_of_a_row_of_evaluate(model, y, most):
    model.fit(X, y)
    many = np.resize(np.arange(60), 5_000)
    result, taken = [], []
    for blocks in (40, 240):
        tracemalloc.start()
        try:
            result.append(evaluate(model, Pairs([(X[many], y[many])] * blocks)))
            taken.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert (taken[1] - taken[0]) / (200 * 5_000) < most
    assert result[1].rows == 240 * 5_000
    assert result[1].measures == pytest.approx(result[0].measures, rel=1e-9)


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_blocks_without_rows_count_for_nothing(tol):
    model = OnlineClassifier(penalty="l2=0.1", tol=tol).fit(X, CLASSES)
    blocks = [(X[:0], CLASSES[:0]), (X[:25], CLASSES[:25]), (X[25:25], CLASSES[:0]), (X[25:], CLASSES[25:])]
    assert evaluate(model, Pairs(blocks)).loss == evaluate(model, Pairs(blocks[1::2])).loss
    assert model.score(blocks) == model.score(blocks[1::2])
    assert model.duality_gap(blocks) == model.duality_gap(blocks[1::2])
    with pytest.raises(StreamError, match="expected at least one row, got none"):
        model.score(blocks[::2])


def test_labels_of_no_row_do_not_tell_that_the_others_are_numbers():
    names = np.where(CLASSES[0] == CLASSES, "no", "yes")
    model = OnlineClassifier(penalty="l2=0.1", class_weight={"yes": 2.0, "no": 1.0}).fit(X, names)
    blocks = [(X[:0], []), (X, names)]
    assert model.score(blocks) == model.score(blocks[1:])
    assert model.duality_gap(blocks) == model.duality_gap(blocks[1:])
