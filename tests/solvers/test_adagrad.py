"""AdaGrad's dual averaging and mirror descent: their recursion, long idle stretches, states that no run has."""

from __future__ import annotations

import numpy as np
import pytest
from sparse_rows import D, stream

from onlinear import Learner
from onlinear.errors import ModelFileError
from onlinear.solvers.core.state import OWN

BOTH = pytest.mark.parametrize("solver", ["adagrad-rda", "adagrad-comid"])


def soft(v, k):
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def recursion(solver, X, y, s, l1, l2, eta=1.0, beta=1e-6):
    """The methods in NumPy for the logistic loss: w and b."""
    w, n, G = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1)
    penalised = np.append(np.ones(X.shape[1]), 0.0)
    for t, (x, target, weight) in enumerate(zip(X, y, s, strict=True), start=1):
        x = np.append(x, 1.0)
        g = weight * (-target / (1.0 + np.exp(target * (w @ x)))) * x
        n, G = n + g * g, G + g
        sigma = (beta + np.sqrt(n)) / eta
        if solver == "adagrad-rda":
            w = -soft(G, penalised * t * l1) / (sigma + penalised * t * l2)
        else:
            w = soft(w - g / sigma, penalised * l1 / sigma) / (1.0 + penalised * l2 / sigma)
    return w[:-1], w[-1]


@BOTH
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.01, 0.0), (0.0, 0.1), (0.01, 0.1)])
def test_a_run_is_the_recursion(solver, l1, l2):
    X, y, s = stream()
    run = Learner(solver, "logistic", f"elastic-net,l1={l1},l2={l2}", n_features=D, fit_intercept=True).learn(X, y, s)
    w, b = recursion(solver, X.toarray(), y, s, l1, l2)
    np.testing.assert_allclose(run.weights(), w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.intercept(), b, rtol=1e-9)
    assert run.engine.lazy
    assert np.array_equal(run.weights() == 0.0, w == 0.0)


@pytest.mark.parametrize(("l1", "l2"), [(1e-7, 0.0), (0.0, 1e-6), (1e-9, 1e-6)])
def test_a_weight_after_a_million_idle_steps(l1, l2):
    run = Learner("adagrad-comid", "squared", f"elastic-net,l1={l1},l2={l2}", n_features=1).learn([[2.0]], [1.0])
    w, size = float(run.weights()[0]), 1.0 / (1e-6 + float(np.sqrt(run.variables()["n"][0])))
    run.learn(np.zeros((10**6, 1)), np.zeros(10**6))
    factor = (1.0 + np.longdouble(size * l2)) ** -np.longdouble(10**6)
    want = w * factor + l1 / l2 * (factor - 1.0) if l2 else w - 10**6 * size * l1
    np.testing.assert_allclose(run.weights()[0], float(max(want, 0.0)), rtol=1e-10)


@BOTH
def test_a_penalty_without_a_form_is_refused(solver):
    with pytest.raises(ValueError, match=f"{solver} takes the penalties none, l1, l2 and elastic-net"):
        Learner(solver, "logistic", "none,lower=0.0")


@BOTH
@pytest.mark.parametrize("place", ["n", "own"])
def test_states_that_no_run_could_be_in_are_refused(solver, place):
    X, y, s = stream()
    run = Learner(solver, "logistic", "l1=0.01", n_features=D, fit_intercept=True).learn(X, y, s)
    state = run.states[0]
    run.engine.check(state)
    if place == "own":
        state.now[OWN] = -1.0
    else:
        state.vectors()[place][3] = -1.0
    with pytest.raises(ModelFileError):
        run.engine.check(state)
