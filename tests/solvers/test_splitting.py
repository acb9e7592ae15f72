"""SADMM and OADM: the averages that the lazy kernels derive are those that the dense recursion sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import Learner
from onlinear.solvers.core.dense import Dense
from onlinear.solvers.core.engine import Problem


def problem(seed=0):
    X = sp.random(90, 12, 0.3, "csr", random_state=seed)
    return X, np.where(np.random.default_rng(seed).random(90) < 0.5, -1.0, 1.0)


def densely(learner, start):
    """The same learner, run by its solver's dense step."""
    learner.engine = Dense(learner.solver, Problem(learner.loss, learner.penalty, learner.average, learner.fit_intercept), "")
    learner.states = [learner.engine.start(start, 0.0)]
    return learner


@pytest.mark.parametrize("start", [None, np.linspace(-0.5, 0.6, 12)], ids=["cold", "warm"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("solver", ["sadmm,rho=0.7", "oadm,rho=0.4,bregman=1.5"])
def test_the_means_of_the_lazy_run_are_the_recursions(solver, loss, start):
    X, y = problem()
    lazy, dense = (Learner(solver, loss, "l1,l1=0.02", n_features=12, fit_intercept=True, start=start) for _ in range(2))
    densely(dense, np.zeros(12) if start is None else start)
    assert lazy.variables().keys() >= {"wbar", "zbar"}
    lazy, dense = lazy.learn(X, y).variables(), dense.learn(X, y).variables()
    names = {"w", "z", "mu", "wbar", "zbar"} | ({"mutbar"} if solver.startswith("sadmm") else set())
    assert names <= lazy.keys()
    assert names <= dense.keys()
    for name in names:
        np.testing.assert_allclose(lazy[name], dense[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "solver", ["oadm,rho=0.4,bregman=1.5", "oadm,rho=0.4,schedule=growing-rho", "sadmm,schedule=growing-rho"]
)
def test_without_a_lazy_form_the_mean_of_w_is_still_there(solver):
    X, y = problem(1)
    penalty = "elastic-net,l1=0.02,l2=0.1" if "oadm" in solver else "elastic-net,l1=0.02,l2=0.1,upper=0.5"
    learner = Learner(solver, "hinge", penalty, n_features=12)
    assert not learner.engine.lazy
    total = np.zeros(12)
    for i in range(X.shape[0]):
        total += learner.learn(X[i], y[i : i + 1]).variables()["w"]
    np.testing.assert_allclose(learner.variables()["wbar"], total / X.shape[0], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("solver", ["sadmm", "oadm", "odrs", "iodrs"])
def test_a_started_model_may_grow(solver):
    X, y = problem(2)
    learner = Learner(solver, "hinge", "l1,l1=0.02", start=np.full(4, 0.3)).learn(X, y)
    known = Learner(solver, "hinge", "l1,l1=0.02", start=np.append(np.full(4, 0.3), np.zeros(8)), n_features=12).learn(X, y)
    for name, value in known.variables().items():
        np.testing.assert_array_equal(learner.variables()[name], value)
