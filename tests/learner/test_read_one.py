"""Predictions between rows that are learned are those of ``predict``, to the bit."""

import numpy as np
import pytest
from seldom import often, seldom
from single_rows import CLASSIFIER, REGRESSOR

from onlinear import Learner, load
from onlinear.compiled import COMPILED
from onlinear.rows.centring import CENTRED_KINDS
from onlinear.solvers import SOLVERS

RNG = np.random.default_rng(5)
N, D = 60, 12
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
X[:, :3] = RNG.standard_normal((N, 3)) + 5.0
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)
SETTINGS = [
    CLASSIFIER,
    REGRESSOR,
    {"solver": "implicit-sgd", "loss": "quantile", "average": "adaptive", "scale": "centred", "targets": "relative"},
    {"solver": "ftrl", "loss": "logistic", "penalty": "l1,l1=0.01", "scale": "rms"},
    {"solver": "adagrad-rda", "loss": "hinge", "average": "uniform", "scale": "max-abs"},
    {"solver": "ftrl", "loss": "hinge", "average": "none", "fit_intercept": False},
    {"solver": "comid", "loss": "hinge", "penalty": "l1,l1=0.01", "average": "weighted-t1", "scale": "rms"},
    {"solver": "fiol", "loss": "logistic", "penalty": "elastic-net,l1=0.01,l2=0.1", "average": "none"},
    {"solver": "odrs", "loss": "hinge", "penalty": "l1,l1=0.01", "average": "uniform"},
    {"solver": "sadmm", "loss": "logistic", "penalty": "l1,l1=0.01", "average": "none"},
    {"solver": "iodrs,lam=0.1", "loss": "hinge", "penalty": "l1,l1=0.01", "average": "uniform"},
    {"solver": "mixture", "loss": "logistic", "scale": "dense"},
    {"solver": "sadmm", "loss": "hinge", "penalty": "l1,l1=0.01"},
    {"solver": "ncsgd", "loss": "squared"},
    {"solver": "epoch-gd", "loss": "hinge", "penalty": "l2,l2=0.1"},
]
QUICK = [CLASSIFIER, REGRESSOR, SETTINGS[6], SETTINGS[-1]]
SLOW = [{"solver": "adagrad-comid", "loss": "logistic", "average": "uniform"}]  # an O(d) recursion


def entries(row):
    columns = np.flatnonzero(row)
    return columns, row[columns]


def follow(settings, outputs, targets):
    """How many of the predictions between rows took the quick way; all are those of ``predict``."""
    rows = X if settings.get("scale") in CENTRED_KINDS else X * (np.arange(N)[:, None] % 7 != 3)  # some empty ones
    learner, quick = Learner(**{"fit_intercept": True, "n_outputs": outputs} | settings), 0
    for i, (row, y) in enumerate(zip(rows, targets, strict=True)):
        learner.learn_one(*entries(row), y)
        wide = np.append(rows[i - 1], 2.0)  # a column that is not known yet
        np.testing.assert_array_equal(learner.predict_one(*entries(wide)), learner.predict(wide[None])[0])
        quick += learner._read.score(*entries(wide)) is not None
        if i == N // 2:
            learner.learn(X[:4], targets[:4])
    return quick


@pytest.mark.parametrize(
    "settings",
    [
        *often(SETTINGS, QUICK),
        *SLOW,
    ],
    ids=lambda settings: settings["solver"],
)
def test_a_prediction_between_rows_is_that_of_predict(settings):
    assert (follow(settings, 1, Y) > N - 4) == (settings in SETTINGS)


@pytest.mark.parametrize("outputs", [3, 10, 11])
@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "implicit-ftrl", "loss": "logistic", "average": "adaptive,calibrated=true", "scale": "centred"},
        {"solver": "implicit-ftrl", "loss": "softmax", "average": "adaptive,calibrated=true", "scale": "centred"},
        seldom({"solver": "fiol", "loss": "softmax", "penalty": "l1,l1=0.01", "average": "adaptive"}),
        seldom({"solver": "comid", "loss": "hinge", "penalty": "l1,l1=0.01", "scale": "rms"}),
    ],
    ids=lambda settings: settings["solver"],
)
def test_so_are_those_of_several_outputs(settings, outputs):
    targets = np.where(np.arange(outputs) == RNG.integers(0, outputs, N)[:, None], 1.0, -1.0)
    assert follow(settings, outputs, targets) > N - 4


def test_outputs_side_by_side_are_held_once():
    """10,000 classes took 12 seconds before the first prediction."""
    learner = Learner(
        "implicit-ftrl", "softmax", average="adaptive,calibrated=true", scale="centred", n_outputs=11, fit_intercept=True
    )
    learner.learn(X, np.where(np.arange(11) == RNG.integers(0, 11, N)[:, None], 1.0, -1.0))
    learner.predict_one(*entries(X[0]))
    learner.predict_one(*entries(X[0]))
    assert 0 < len(learner._read.all_held) < 6 or not COMPILED


def test_many_outputs_of_a_file_are_held_once_they_learn(tmp_path):
    learner = Learner("implicit-ftrl", "softmax", average="adaptive,calibrated=true", n_outputs=70, fit_intercept=True)
    targets = np.where(np.arange(70) == np.arange(N)[:, None], 1.0, -1.0)
    learner.learn(X, targets).save(tmp_path / "m")
    learner = load(tmp_path / "m")
    for learned in (False, True):
        if learned:
            learner.learn_one(*entries(X[1]), targets[1])
        for _ in range(3):
            np.testing.assert_array_equal(learner.predict_one(*entries(X[0])), learner.predict(X[:1])[0])
        assert bool(learner._read.all_held) == learned


def in_turns(solver, loss, penalty, average):
    """Rows that are predicted and then learned are learned as a block is, and predicted as ``predict`` does; the share of the
    predictions that took the quick way."""
    settings = {"total": N, "n_features": D, "fit_intercept": True}
    whole, single = (Learner(solver, loss, penalty, average, **settings) for _ in range(2))
    quick = 0
    for row, y in zip(X, Y, strict=True):
        assert single.predict_one(*entries(row)) == single.predict(row[None])[0]
        quick += single._read is not None and single._read.score(*entries(row)) is not None
        single.learn_one(*entries(row), float(y))
    whole.learn(X, Y)
    assert {name: array.tobytes() for name, array in single.freeze()[1].items()} == {
        name: array.tobytes() for name, array in whole.freeze()[1].items()
    }
    return quick / N


DENSE = {"rls", "2sgd"}  # methods that have no other form
FAMILIES = {SOLVERS[name].solver: name for name in sorted(SOLVERS, reverse=True)}.values()
SELDOM = {"oadm", "mixture", "adaline", "c-adaline", "asgd", "adagrad-rda"}


@pytest.mark.parametrize("solver", often(sorted(SOLVERS), set(FAMILIES) - SELDOM))
def test_every_solver_in_turns(solver):
    for loss, penalty in (("hinge", "none"), ("squared", "none"), ("hinge", "l2,l2=0.01")):
        try:
            Learner(solver, loss, penalty, total=N, n_features=D).learn(X[:1], Y[:1])
        except (ValueError, TypeError):
            continue
        assert (in_turns(solver, loss, penalty, None) > 0.4) == (solver not in DENSE)  # a suffix begins in the middle
        return
    assert Learner(solver, "squared", "l2,l2=0.01", n_features=D).engine.batch


@pytest.mark.exhaustive
@pytest.mark.parametrize("average", ["uniform", "uniform-post", "uniform,masked=true", "adaptive"])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_average_in_turns(solver, average):
    try:
        Learner(solver, "hinge", "l1,l1=0.01", average, total=N, n_features=D).learn(X[:1], Y[:1])
    except (ValueError, TypeError) as error:
        pytest.skip(str(error))
    in_turns(solver, "hinge", "l1,l1=0.01", average)


def test_rows_that_are_not_plain_take_the_way_of_a_block():
    learner = Learner("ftrl", "hinge").learn(X, Y)
    columns, values = entries(X[0])
    wanted = learner.predict_one(columns, values)
    for _ in range(3):  # the way of single rows is made by the first call
        learner.learn(X[:1], Y[:1])
        wanted = learner.predict(X[:1])[0]
        assert learner.predict_one(columns[::-1], values[::-1]) == pytest.approx(wanted)
        assert learner.predict_one(columns.astype(np.uint16), values.astype(np.float32)) == pytest.approx(wanted, rel=1e-6)
        assert learner.predict_one(columns.tolist(), values.tolist()) == wanted
    for wrong in ((columns - 1, values), (columns, values * np.nan), (columns, values[1:]), (columns[None], values[None])):
        with pytest.raises(ValueError, match=r"negative|NaN|length|1-D"):
            learner.predict_one(*wrong)


def test_long_rows_and_many_predictions_between_rows():
    wide = RNG.standard_normal((3, 700))
    learner = Learner("ftrl", "hinge", scale="centred", fit_intercept=True)
    for row in (*wide, *wide):
        learner.learn_one(*entries(row), 1.0)
        wanted = learner.predict(wide[:1])[0]
        assert {learner.predict_one(*entries(wide[0])) for _ in range(40)} == {wanted}
