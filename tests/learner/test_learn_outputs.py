"""Rows of several outputs learned one by one leave what a block of them leaves, to the bit."""

import numpy as np
import pytest
from seldom import seldom

from onlinear import DivergenceError, Learner
from onlinear.rows.centring import CENTRED_KINDS
from onlinear.solvers import SOLVERS

RNG = np.random.default_rng(6)
N, D = 60, 12
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
X[:, :3] = RNG.standard_normal((N, 3)) + 5.0
SETTINGS = [
    {"solver": "implicit-ftrl", "loss": "logistic", "average": "adaptive,calibrated=true", "scale": "centred"},
    {"solver": "ftrl", "loss": "softmax", "scale": "centred"},
    {"solver": "implicit-ftrl", "loss": "softmax", "average": "adaptive,calibrated=true", "scale": "tempered"},
    {"solver": "comid", "loss": "hinge", "penalty": "l1,l1=0.01", "scale": "rms", "weights": "relative"},
    {"solver": "fiol", "loss": "logistic", "penalty": "elastic-net,l1=0.01,l2=0.1"},
    {"solver": "fiol", "loss": "softmax", "penalty": "l1,l1=0.01", "average": "adaptive", "scale": "centred"},
    {"solver": "ftrl", "loss": "squared", "average": "uniform", "scale": "max-abs"},
    {"solver": "sgd", "loss": "hinge", "penalty": "l2,l2=0.1", "average": "uniform"},
    {"solver": "rda", "loss": "logistic", "penalty": "l1,l1=0.01"},
    {"solver": "comid", "loss": "hinge", "penalty": "l1,l1=0.01", "average": "uniform"},
]
SLOW = [{"solver": "odrs", "loss": "hinge", "penalty": "l1,l1=0.01"}]  # as a block of one row
QUICK = ((SETTINGS[0], 10), (SETTINGS[2], 11))


def entries(row):
    columns = np.flatnonzero(row)
    return columns, row[columns]


def targets(outputs, settings):
    rng = np.random.default_rng(outputs)
    if settings["loss"] == "squared":
        return rng.standard_normal((N, outputs))
    return np.where(np.arange(outputs) == rng.integers(0, outputs, N)[:, None], 1.0, -1.0)


def frozen(learner):
    header, arrays = learner.freeze()
    return header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("settings", "outputs"),
    [
        (each, outputs) if (each, outputs) in QUICK else seldom(each, outputs)
        for each in (*SETTINGS, *SLOW)
        for outputs in (3, 10, 11)
    ],
    ids=lambda value: f"{value['solver']}-{value['loss']}" if isinstance(value, dict) else str(value),
)
def test_rows_one_by_one_are_a_block(settings, outputs):
    Y = targets(outputs, settings)
    rows = X if settings.get("scale") in CENTRED_KINDS else X * (np.arange(N)[:, None] % 7 > 0)  # some empty ones
    one, block = (Learner(**{"fit_intercept": True, "n_outputs": outputs} | settings) for _ in range(2))
    quick = 0
    for i, (row, y) in enumerate(zip(rows, Y, strict=True)):
        scores = one.learn_one(*entries(row), y)
        assert scores.shape == (outputs,)
        wanted = block.predict(row[None])[0]
        block.learn(row[None], Y[i : i + 1])
        quick += one._one is not None and one._one._seen == one.moves
        if one.scaler is None and not one.averages and settings["loss"] != "softmax":
            np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-12)
        if i == N // 2:
            for each in (one, block):
                each.learn(X[:4], Y[:4])
    assert frozen(one) == frozen(block)
    assert (quick > N - 8) == (settings in SETTINGS)


def test_a_class_alone_is_the_target_of_all_its_outputs():
    given, named = (Learner("ftrl", "softmax", n_outputs=3) for _ in range(2))
    for i, own in enumerate([0, 2, 2, 1]):
        scores = given.learn_one(*entries(X[i]), own)
        np.testing.assert_array_equal(scores, named.learn_one(*entries(X[i]), np.where(np.arange(3) == own, 1.0, -1.0)))
    for own in (1, np.int64(2), 0.0, np.float32(1.0), [-1, -1, 1], (1.0, -1.0, -1.0), np.array([-1, 1, -1])):
        signs = np.where(np.arange(3) == own, 1.0, -1.0) if np.ndim(own) == 0 else np.array(own, float)
        given.learn_one(*entries(X[4]), own)
        named.learn_one(*entries(X[4]), signs)
        assert given._one is not None
        assert given._one._seen == given.moves
    assert frozen(given) == frozen(named)
    for wrong in (3, -1, 0.5):
        with pytest.raises(ValueError, match="y must be a class from 0 to 2 for this loss"):
            given.learn_one(*entries(X[0]), wrong)
    for wrong in ([1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]):
        with pytest.raises(ValueError, match=r"y must be \+1 for one class of a row"):
            given.learn_one(*entries(X[0]), np.array(wrong))
    assert frozen(given) == frozen(named)


def test_what_is_refused_leaves_the_learner_as_it_was():
    settings, outputs = QUICK[0]
    Y = targets(outputs, settings)
    learner = Learner(**settings, n_outputs=outputs, fit_intercept=True).learn(X, Y)
    for _ in range(2):
        learner.learn_one(*entries(X[0]), Y[0])
    before = frozen(learner)
    columns, values = entries(X[0])
    for wrong in (
        (columns, values, Y[0][:2]),
        (columns, values, 2.0 * Y[0]),
        (columns - 1, values, Y[0]),
        (columns, values * np.nan, Y[0]),
        (columns[1:], values, Y[0]),
    ):
        with pytest.raises(ValueError, match=r"shape|labels|-1|negative|NaN|length|outputs|1-D"):
            learner.learn_one(*wrong)
    assert frozen(learner) == before
    same, other = learner.learn_one(columns[::-1], values[::-1], Y[0].tolist()), frozen(learner)
    assert len(same) == outputs
    assert other != before


def test_a_run_that_diverges_says_so():
    learner = Learner("sgd,eta=1e300", "squared", n_outputs=3, n_features=2)
    row = np.array([0, 1]), np.array([1e100, 1e100]), np.ones(3)
    with pytest.raises(DivergenceError, match="step"):  # noqa: PT012
        for _ in range(20):
            learner.learn_one(*row)
    with pytest.raises(DivergenceError, match="diverged"):
        learner.learn_one(*row)


@pytest.mark.exhaustive
@pytest.mark.parametrize("average", ["none", "uniform", "adaptive"])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver(solver, average):
    Y = targets(4, {"loss": "hinge"})
    try:
        one, block = (Learner(solver, "hinge", "l2,l2=0.01", average, total=N, n_features=D, n_outputs=4) for _ in range(2))
        block.learn(X[:1], Y[:1])
    except (ValueError, TypeError) as error:
        pytest.skip(str(error))
    one.learn(X[:1], Y[:1])
    for i in range(1, N):
        one.learn_one(*entries(X[i]), Y[i])
        block.learn(X[i : i + 1], Y[i : i + 1])
    assert frozen(one) == frozen(block)
