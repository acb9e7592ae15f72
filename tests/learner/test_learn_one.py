"""Rows learned one by one are learned as in a block: every kind of state and scale, whatever comes between."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seldom import seldom
from single_rows import CLASSIFIER, REGRESSOR

from onlinear import DivergenceError, Learner
from onlinear.compiled import bind_loss
from onlinear.learner.loss_sums import add_losses
from onlinear.losses import Absolute
from onlinear.rows.centring import CENTRED_KINDS

RNG = np.random.default_rng(11)
N, D = 90, 12
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)


PRICES = 1e4 + 30.0 * X[:, 0] + np.where(np.arange(N) == 20, 1e6, np.arange(N))  # with an outlier, and a trend

# A race of the last iterate with the average, targets and weights in running units, predictions that are clipped.
RACES = [
    CLASSIFIER,
    {"solver": "implicit-sgd", "loss": "squared", "average": "adaptive", "targets": "relative", "clip": True},
    {"solver": "fiol", "loss": "huber", "penalty": "l1,l1=0.01", "targets": "relative", "weights": "relative"},
    REGRESSOR,
    {"solver": "mixture", "loss": "squared", "targets": "relative", "clip": True, "scale": "centred"},
    {"solver": "comid", "average": "adaptive", "fit_intercept": False, "weights": "relative"},
]
STATES = [
    seldom({"solver": "odrs", "penalty": "l1,l1=0.01"}),
    {"solver": "epoch-gd", "penalty": "l2,l2=0.1"},
    {"solver": "rls", "loss": "squared"},
    {"solver": "comid", "penalty": "l1,l1=0.01", "average": "weighted-t1", "scale": "rms"},
    seldom({"solver": "comid", "penalty": "l1,l1=0.01", "average": "weighted-t1", "scale": "max-abs"}),
    {"solver": "ftrl", "penalty": "l1,l1=0.01", "scale": "centred"},
    seldom({"solver": "ftrl", "penalty": "l1,l1=0.01", "scale": "dense"}),
    seldom({"solver": "ftrl", "average": "adaptive", "scale": "centred"}),
    CLASSIFIER,
    REGRESSOR,
    RACES[1],
    seldom({"solver": "odrs,relaxation=1.5", "penalty": "l1,l1=0.01"}),
    seldom({"solver": "iodrs", "penalty": "l1,l1=0.01", "scale": "rms"}),
    seldom({"solver": "comid", "penalty": "total-variation,tv=0.1"}),
    seldom({"solver": "sadmm", "penalty": "l1,l1=0.01", "scale": "centred"}),
    *(seldom(race) for race in RACES if race not in (CLASSIFIER, REGRESSOR, RACES[1])),
]


def bits(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


def one_by_one(learner, X, y):
    for row, target in zip(X, y, strict=True):
        columns = np.flatnonzero(row)
        learner.learn_one(columns, row[columns], float(target))


@pytest.mark.parametrize("settings", STATES, ids=lambda settings: settings["solver"])
def test_every_kind_of_state(settings):
    settings = {"loss": "hinge", "n_features": D, "fit_intercept": True} | settings
    rows = np.where(np.arange(D) < D // 2, X + 5.0, X) if settings.get("scale") in CENTRED_KINDS else X
    targets = PRICES if settings["loss"] in ("squared", "huber") else Y
    whole, single = Learner(**settings).learn(rows, targets), Learner(**settings)
    one_by_one(single, rows[:40], targets[:40])
    kind = single._one._learn.held.kind
    single.learn(rows[40:60], targets[40:60])  # what is kept of the last row, tables and scales have moved on
    one_by_one(single, rows[60:], targets[60:])
    assert single._one._learn.held.kind is kind  # compiled rows were learned, by one kernel
    assert bits(single) == bits(whole)
    assert single.progressive_loss == whole.progressive_loss
    found = single.variables()
    for name, value in whole.variables().items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("dtypes", [(np.int32, float), (np.uint32, np.float32), (np.uint64, float)])
def test_types_of_arrays(dtypes):
    data = X.astype(dtypes[1])
    whole, single = Learner("comid", "hinge", n_features=D).learn(data, Y), Learner("comid", "hinge", n_features=D)
    for row, y in zip(data, Y, strict=True):
        columns = np.flatnonzero(row).astype(dtypes[0])
        single.learn_one(columns, row[columns], y)
    assert bits(single) == bits(whole)


FORMS = {
    "lists": lambda columns, values: (columns.tolist(), values.tolist()),
    "tuples": lambda columns, values: (tuple(columns.tolist()), tuple(values.tolist())),
    "any order": lambda columns, values: (np.roll(columns, 1), np.roll(values, 1)),
    "every other number": lambda columns, values: (np.repeat(columns, 2)[::2], np.repeat(values, 2)[::2]),
    "float16": lambda columns, values: (columns.astype(np.uint16), values.astype(np.float16)),
    "whole numbers": lambda columns, values: (columns, values.astype(np.int8)),
    "a list of booleans": lambda columns, values: (columns.tolist(), values.astype(bool).tolist()),
}


def spy_on_blocks(monkeypatch):
    """The rows that the way of blocks learns and scores from here on."""
    seen = []
    for name in ("_learn_any", "_predict_any"):
        real = getattr(Learner, name)
        monkeypatch.setattr(Learner, name, lambda self, *row, real=real: (seen.append(row), real(self, *row))[1])
    return seen


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_form_take_the_way_of_single_rows(form, monkeypatch):
    whole, one, seen = Learner("fiol", "logistic", "l1=0.01"), Learner("fiol", "logistic", "l1=0.01"), []
    for i in range(N):
        columns = np.flatnonzero(X[i])
        values = np.ones(len(columns)) if form == "a list of booleans" else np.round(4.0 * X[i, columns]) + 9.0
        given = FORMS[form](columns, values)
        dense = np.zeros(D)
        dense[columns] = values
        whole.learn(dense[None], Y[i : i + 1])
        one.learn_one(*given, Y[i])
        assert one.predict_one(*given) == whole.predict(dense[None])[0]
        if i == 5:
            seen = spy_on_blocks(monkeypatch)
    assert bits(one) == bits(whole)
    assert not [row for row in seen if len(row) == 3]


@pytest.mark.parametrize("kind", [int, np.int8, np.int64, np.float32, np.uint8])
def test_targets_of_any_type_take_the_way_of_single_rows(kind, monkeypatch):
    y = np.ones(N) if kind is np.uint8 else Y
    whole, one = (Learner("fiol", "logistic", n_features=D) for _ in range(2))
    whole.learn(X, y)
    seen = []
    for i in range(N):
        columns = np.flatnonzero(X[i])
        one.learn_one(columns, X[i, columns], kind(y[i]))
        if i == 0:
            seen = spy_on_blocks(monkeypatch)
    assert bits(one) == bits(whole)
    assert not seen


def test_what_is_no_row_is_refused_in_any_form():
    learner = Learner("fiol", "logistic").learn(X, Y)
    before = bits(learner)
    for columns, values in (
        ([0, -1], [1.0, 2.0]),
        ([0, 1], [1.0]),
        ([0, 1], [1.0, "a"]),
        ([0, [1]], [1.0, 2.0]),
        ([0.5], [1.0]),
        ([2**40], [1.0]),
        ([0, 1], [1.0, math.nan]),
        (np.array([1, 0]), np.array([math.inf, 1.0])),
        ([0], [1.0 + 1.0j]),
    ):
        for _ in range(2):
            with pytest.raises((ValueError, TypeError)):
                learner.learn_one(columns, values, 1.0)
            with pytest.raises((ValueError, TypeError)):
                learner.predict_one(columns, values)
    for y in (np.int64(3), np.float32(math.nan), "1", np.bool_(False), 2**60, np.int64(2**60)):
        with pytest.raises((ValueError, TypeError)):
            learner.learn_one([0], [1.0], y)
    assert bits(learner) == before
    twice = Learner("fiol", "logistic").learn_one([1, 0, 1], [1.0, 2.0, 3.0], 1.0), Learner("fiol", "logistic")
    twice[1].learn([[2.0, 4.0]], [1.0])
    assert twice[0] == 0.0
    assert learner.predict_one([1, 0, 1], [1.0, 2.0, 3.0]) == learner.predict_one([0, 1], [2.0, 4.0])


def test_rows_that_are_not_plain_are_refused_or_read_as_blocks_are():
    learner = Learner("comid", "hinge", n_features=D)
    one_by_one(learner, X[:2], Y[:2])
    before = bits(learner)
    columns, values = np.arange(3), np.ones(3)
    for wrong in (
        (columns.reshape(1, 3), values.reshape(1, 3), 1.0),
        (columns, values[:2], 1.0),
        (columns - 1, values, 1.0),
        (columns + D, values, 1.0),
        (columns, values * np.nan, 1.0),
        (columns, values, 0.5),
        (columns, values, np.inf),
    ):
        with pytest.raises(ValueError, match=r"1-D|negative|features|NaN|infinity|y must be"):
            learner.learn_one(*wrong)
    for wrong in ((columns, values, "1"), (columns.astype(float), values, 1.0)):
        with pytest.raises(TypeError, match="must"):
            learner.learn_one(*wrong)
    assert bits(learner) == before
    whole = Learner("comid", "hinge", n_features=D).learn(X[:2], Y[:2]).learn([[1.0, 2.0, 3.0] + [0.0] * (D - 3)], [1.0])
    assert np.isfinite(learner.learn_one(columns[::-1], np.array([3.0, 2.0, 1.0]), np.int64(1)))
    assert bits(learner) == bits(whole)


def test_rows_are_centred_where_the_scale_is():
    whole, single = (Learner("fiol", "squared", scale="standard", n_features=D) for _ in range(2))
    for learner in (whole, single):
        learner.scaler.fix(X.mean(axis=0), X.std(axis=0))
    whole.learn(X, Y)
    one_by_one(single, X, Y)
    assert bits(single) == bits(whole)


def test_every_new_column_makes_the_state_grow():
    settings = {"solver": "comid", "loss": "squared", "average": "uniform", "scale": "rms"}
    whole, single = Learner(**settings), Learner(**settings)
    whole.learn(np.eye(80), np.ones(80))
    one_by_one(single, np.eye(80), np.ones(80))
    assert single.size == 80
    assert bits(single) == bits(whole)


def test_nothing_is_learnt_after_divergence_wherever_it_was_found():
    learner = Learner("comid", "squared", n_features=D)
    one_by_one(learner, X[:2], Y[:2])
    learner.states[0].arrays["V"][0] = np.inf
    with pytest.raises(DivergenceError, match="stopped being finite"):
        learner.weights()
    with pytest.raises(DivergenceError, match="learns no more"):
        one_by_one(learner, X[2:3], Y[2:3])


def test_no_step_is_taken_beyond_what_is_held():
    settings = {"solver": "comid", "loss": "squared", "average": "uniform", "n_features": D}
    whole, single = Learner(**settings), Learner(**settings)
    columns, values = np.arange(3), np.ones(3)
    one_by_one(single, np.eye(3, D), np.ones(3))
    for _ in range(100):  # as if what is to be done when prefix tables are full had been interrupted
        single._one._learn.run(single._one._learn.here, columns, values, 1.0)
    assert 3 < single.t < 103
    steps = single.t - 3
    single.learn_one(columns, values, 1.0)
    whole.learn(
        np.vstack([np.eye(3, D), np.tile(np.eye(1, D) + np.eye(1, D, 1) + np.eye(1, D, 2), (steps + 1, 1))]), np.ones(steps + 4)
    )
    assert bits(single) == bits(whole)


# --- the running sum of losses ---------------------------------------------------------------------------------------


def summed(terms, cuts=()):
    """The sum of |term|, added in pieces; negative terms by negative weights."""
    terms, total, loss = np.array(terms, float), np.zeros(2), bind_loss(Absolute())
    for part in np.split(np.arange(len(terms)), cuts):
        piece = terms[part]
        add_losses(loss, np.abs(piece), np.zeros(len(piece)), np.where(piece < 0.0, -1.0, 1.0), total)
    return total


def neumaier(terms):
    """Text-book compensated summation."""
    total = correction = 0.0
    for x in terms:
        new = total + x
        correction += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
        total = new
    return total, correction


FINITE = st.floats(-1e300, 1e300)


@given(st.lists(FINITE, min_size=1, max_size=40), st.integers(0, 40))
def test_a_sum_of_losses_is_compensated_and_does_not_depend_on_the_calls(terms, cut):
    found = summed(terms)
    assert found.tobytes() == np.array(neumaier(terms)).tobytes()
    assert found.tobytes() == summed(terms, [min(cut, len(terms))]).tobytes()
    size = math.fsum(map(abs, terms))
    assert abs(float(found.sum()) - math.fsum(terms)) <= 4.5e-16 * abs(math.fsum(terms)) + 1e-28 * size


@given(st.lists(FINITE, max_size=20), st.integers(0, 20), st.integers(0, 20), st.sampled_from([math.inf, math.nan]))
def test_a_sum_with_an_infinite_loss_is_infinite_and_with_nan_it_is_nan(terms, place, cut, value):
    terms.insert(min(place, len(terms)), value)
    for found in (summed(terms), summed(terms, [min(cut, len(terms))]), summed([*terms, value])):
        assert math.isnan(value) == math.isnan(found.sum())
        assert math.isnan(value) or found.sum() == math.inf


def test_a_sum_of_finite_losses_that_overflows_is_infinite():
    with np.errstate(over="ignore"):  # interpreted, NumPy says so
        assert summed([1e308] * 3 + [1.0]).sum() == math.inf


def test_the_progressive_loss_of_a_run_that_overflows_is_infinite():
    learner = Learner("implicit-sgd,eta=1e-9", "exponential", start=np.full(1, 800.0))
    learner.learn(-np.ones((3, 1)), np.ones(3))
    learner.learn_one(np.array([0]), np.array([-1.0]), 1.0)
    learner.learn_one(np.array([0]), np.array([-1.0]), 1.0)
    assert learner.progressive_loss == math.inf
