"""Any cut of the rows into calls gives the same bits, also of rows with values so large that kernels look closer at them."""

import numpy as np
import pytest
from seldom import seldom

from onlinear import Learner
from onlinear.solvers.core.state import CAREFUL

HUGE_ROW_THAT_TEACHES_NOTHING = [[1.0, 0.0], [0.5, 1.0], [0.0, 1e120]], np.array([1.0, 1.0, 0.0])


def bytes_of(learner):
    header, arrays = learner.freeze()
    return header, {name: array.tobytes() for name, array in arrays.items()}


def assert_same_in_one_call_and_row_by_row(make, X, y, s):
    X, whole, apart = np.array(X), make(), make()
    whole.learn(X, y, s)
    for i in range(len(X)):
        apart.learn(X[i : i + 1], y[i : i + 1], s[i : i + 1])
    assert bytes_of(whole) == bytes_of(apart)


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        ("sgd", "l2=1e-3"),
        seldom("implicit-sgd", "l2=1e-3"),
        ("sgd,schedule=constant,eta=0.1", "l1=1e-3"),
        ("pa-1", "none"),
        ("comid", "l1=1e-3"),
        seldom("rda", "l1=1e-3"),
        ("ftrl", "l1=1e-3"),
        ("adagrad-comid", "none"),
        ("implicit-ftrl", "l1=1e-3"),
    ],
)
def test_a_huge_value_in_a_row_that_moves_nothing(solver, penalty, outputs):
    X, s = HUGE_ROW_THAT_TEACHES_NOTHING
    y = np.ones((3, outputs))
    assert_same_in_one_call_and_row_by_row(lambda: Learner(solver, "hinge", penalty, n_outputs=outputs), X, y, s)


@pytest.mark.parametrize("solver", ["comid", "ftrl"])
def test_a_huge_value_in_a_row_that_moves_no_class(solver):
    X, s = HUGE_ROW_THAT_TEACHES_NOTHING
    assert_same_in_one_call_and_row_by_row(lambda: Learner(solver, "softmax", n_outputs=3), X, np.array([0, 1, 2]), s)


def test_a_huge_value_in_a_row_that_a_copy_leaves_out():
    X = np.vstack([np.ones((20, 1)), [[1e120]]])
    y, s = np.ones(21), np.ones(21)
    assert_same_in_one_call_and_row_by_row(lambda: Learner("ftrl", "logistic", uncertainty="scores"), X, y, s)


@pytest.mark.parametrize("outputs", [1, 4])
def test_a_column_that_comes_after_a_step_that_overshoots(outputs):
    X, y, s = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.ones((3, outputs)), np.zeros(3)
    parts = "sgd,schedule=constant,eta=1", "hinge", "l2=2000", "uniform"
    assert_same_in_one_call_and_row_by_row(lambda: Learner(*parts, n_outputs=outputs), X, y, s)


def test_a_huge_score_whose_step_underflows_leaves_the_same_mark_in_a_pack():
    X, y, s, start = np.array([[1e60]]), np.ones((1, 8)), np.array([1e-300]), np.full((1, 8), -1e50)
    parts = "comid,eta=1e-30", "hinge", "l1=1e-9"
    together = Learner(*parts, n_features=1, n_outputs=8, start=start).learn(X, y, s)
    alone = Learner(*parts, n_features=1, start=start[:, 0]).learn(X, y[:, 0], s)
    assert alone.states[0].now[CAREFUL] == 1.0
    for state in together.states:
        assert state.now.tobytes() == alone.states[0].now.tobytes()
