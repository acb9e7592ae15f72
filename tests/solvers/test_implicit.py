"""Implicit SGD: lazy = dense, optimality of its step, and safety at any step size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from combinations import reference
from sparse_rows import D, N, close, same_bits, stream

from onlinear import Learner
from onlinear.learner.parts import LOSSES


def targets(loss: str, y: np.ndarray) -> np.ndarray:
    return np.maximum(y, 0.0) if loss == "poisson" else y


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("solver", "penalty", "average"),
    [
        ("implicit-sgd,eta=3", "none", "none"),
        ("implicit-sgd,eta=0.7", "l2,l2=0.4", "none"),
        ("i-sgd,schedule=constant,eta=0.5", "l2,l2=1.9", "weighted-t1"),
        ("implicit-sgd,schedule=constant,eta=2", "l2,l2=0.5", "uniform-post"),
        ("implicit-sgd,schedule=constant,eta=0.6", "l1,l1=0.05", "none"),
    ],
)
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_lazy_run_is_the_dense_recursion_wherever_it_is_read(loss, solver, penalty, average, intercept):
    X, y, s = stream()

    def learner() -> Learner:
        return Learner(solver, loss, penalty, average, fit_intercept=intercept, n_features=D)

    lazy, unread, dense = learner(), learner(), reference(learner())
    assert lazy.engine.lazy
    for begin, end in ((0, 1), (1, 2), (2, 63), (63, 65), (65, 129), (129, N)):
        lazy.learn(X[begin:end], y[begin:end], s[begin:end])
        dense.learn(X[begin:end], y[begin:end], s[begin:end])
        close(lazy.weights(), dense.weights())
        close(lazy.weights(True), dense.weights(True))
        assert lazy.intercept(True) == pytest.approx(dense.intercept(True), rel=1e-10, abs=1e-12)
        assert lazy.variables()["theta"] == pytest.approx(dense.states[0].arrays["U"][1, 0], rel=1e-9, abs=1e-12)
    unread.learn(X, y, s)
    same_bits(lazy, unread)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_step_solves_its_own_problem(loss):
    """Without a penalty: no other point along x has a smaller s l(<w, x> + b, y) + |w - w_t|^2 / (2 eta)."""
    X, y, s = stream(5)
    y, eta = targets(loss, y), 0.8
    learner = Learner(f"implicit-sgd,schedule=constant,eta={eta}", loss, fit_intercept=True, n_features=D)
    for i in range(40):
        before, bias = learner.weights(), learner.intercept()
        learner.learn(X[i], y[i : i + 1], s[i : i + 1])
        x = np.append(X[i].toarray()[0], 1.0)
        start, moved = np.append(before, bias), np.append(learner.weights(), learner.intercept())

        def cost(w: np.ndarray, x=x, i=i, start=start) -> float:
            return s[i] * learner.loss.value(float(w @ x), y[i]) + np.sum((w - start) ** 2) / (2.0 * eta)

        best = cost(moved)
        assert all(best <= cost(moved + h * x) + 1e-12 * (1.0 + best) for h in (-1e-3, -1e-5, 1e-5, 1e-3))
        np.testing.assert_allclose(start - moved, eta * learner.variables()["theta"] * x, atol=1e-12)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("eta", [1e-10, 1e10])
def test_any_step_size_is_safe(loss, eta):
    X, y, s = stream(6)
    learner = Learner(f"implicit-sgd,schedule=constant,eta={eta}", loss, fit_intercept=True, n_features=D)
    learner.learn(X, targets(loss, y), s)
    assert np.isfinite(learner.weights()).all()


def test_weight_multiplies_the_loss():
    X, y, _ = stream()
    weighted = Learner("implicit-sgd", "logistic", "l2,l2=0.1", n_features=D).learn(X, y, np.full(N, 3.0))
    factor = Learner("implicit-sgd", "logistic,factor=3", "l2,l2=0.1", n_features=D).learn(X, y)
    np.testing.assert_array_equal(weighted.weights(), factor.weights())


def test_dense_form_for_l1_gives_theta_too():
    X, y, _ = stream()
    learner = Learner("implicit-sgd", "logistic", "l1,l1=0.01", "uniform", n_features=D).learn(X, y)
    assert not learner.engine.lazy
    assert set(learner.variables()) == {"w", "theta", "wbar"}
    assert abs(learner.variables()["theta"]) <= 1.0


def test_several_outputs_are_learnt_as_if_alone():
    X, y, _ = stream()
    Y = np.stack([y, -y, np.roll(y, 1)], axis=1)
    learner = Learner("implicit-sgd", "logistic", "l2,l2=0.1", "uniform", n_features=D, n_outputs=3).learn(X, Y)
    for k in range(3):
        alone = Learner("implicit-sgd", "logistic", "l2,l2=0.1", "uniform", n_features=D).learn(X, Y[:, k])
        np.testing.assert_array_equal(learner.weights(True)[:, k], alone.weights(True))
        assert learner.variables()["theta"][k] == alone.variables()["theta"]


class Explicit(NamedTuple):
    """A loss without theta."""

    factor: float = 1.0

    def value(self, s, y):
        return (s - y) ** 2

    def slope(self, s, y):
        return 2.0 * (s - y)


def test_a_loss_without_theta_is_refused_by_name():
    with pytest.raises(ValueError, match=r"theta.*'explicit'"):
        Learner("implicit-sgd", Explicit(), n_features=D)
    Learner("sgd,eta=0.1", Explicit(), n_features=D).learn([[0.5] * D], [1.0])


@pytest.mark.parametrize(("penalty", "message"), [("l1,l1=0.1,upper=1", "bounds"), ("total-variation,tv=1", "variation")])
def test_penalties_without_a_subgradient_are_refused(penalty, message):
    with pytest.raises(ValueError, match=message):
        Learner("implicit-sgd", "hinge", penalty, n_features=D)
