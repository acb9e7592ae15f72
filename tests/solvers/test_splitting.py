"""SADMM, OADM and Douglas-Rachford: averages of lazy kernels are those of the dense recursion; weights that change with t."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import Interpreted

from onlinear import Learner
from onlinear.learner.stored_parts import restore, store
from onlinear.solvers.batch_drs import BatchDrs
from onlinear.solvers.core.engine import Problem
from onlinear.solvers.drs import Drs
from onlinear.solvers.oadm import Oadm
from onlinear.solvers.rda import Rda


def problem(seed=0):
    X = sp.random(90, 12, 0.3, "csr", random_state=seed)
    return X, np.where(np.random.default_rng(seed).random(90) < 0.5, -1.0, 1.0)


def densely(learner, start):
    """The same learner, run by its solver's dense step."""
    problem = Problem(learner.loss, learner.penalty, learner.average, learner.fit_intercept)
    learner.engine = Interpreted(learner.solver, problem, "the reference")
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


@pytest.mark.parametrize("solver", ["odrs,lam=1e-6,relaxation=0.5", "oadm,rho=1e6,bregman=0.5", "oadm,rho=1,bregman=1e8"])
def test_a_penalty_that_would_need_more_steps_than_integers_hold_is_no_penalty(solver):
    X, y = problem()
    tiny, none = (Learner(solver, "squared", penalty).learn(X, 1e6 * y).weights() for penalty in ("l1,l1=1e-20", "none"))
    np.testing.assert_allclose(tiny, none, rtol=1e-9, atol=1e-14)


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


def soft(v, k):
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def test_oadm_with_growing_weights_is_the_recursion():
    X, y = problem(3)
    learner = Learner("oadm,rho=0.4,bregman=1.5,schedule=0.75,bregman_power=0.5", "squared", "l1,l1=0.02", n_features=12)
    assert "varying rho or eta" in learner.engine.why
    w, z, mu, total = np.zeros((4, 12))
    for t, (x, target) in enumerate(zip(X.toarray(), y, strict=True), start=1):
        rho, eta = 0.4 * t**0.75, 1.5 * t**0.5
        w = np.linalg.solve(np.outer(x, x) + (rho + eta) * np.eye(12), target * x + rho * z - mu + eta * w)
        z = soft(w + mu / rho, 0.02 / rho)
        mu = mu + rho * (w - z)
        total = total + w
    found = learner.learn(X, y).variables()
    for name, value in {"w": w, "z": z, "mu": mu, "wbar": total / len(y)}.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_sequence_of_relaxations_is_the_recursion(power):
    X, y = problem(4)
    penalty = "elastic-net,l1=0.02,l2=0.1"
    learner = Learner(f"odrs,lam=0.7,relaxation=1.9,relaxation_power={power}", "squared", penalty, n_features=12)
    u = np.zeros(12)
    for t, (x, target) in enumerate(zip(X.toarray(), y, strict=True), start=1):
        p = soft(u, 0.7 * 0.02) / (1.0 + 0.7 * 0.1)
        z = np.linalg.solve(np.outer(x, x) + np.eye(12) / 0.7, target * x + (2.0 * p - u) / 0.7)
        u = u + 1.9 / t**power * (z - p)
    np.testing.assert_allclose(learner.learn(X, y).variables()["u"], u, rtol=1e-9, atol=1e-12)


def test_a_sequence_of_relaxations_over_all_rows_finds_the_minimiser():
    X, y = problem(5)
    found = [
        Learner(f"batch-drs,lam=5{more}", "squared", "l1,l1=0.01", n_features=12).solve(X, y, 3000).weights()
        for more in ("", ",relaxation=1.9,relaxation_power=0.25")
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("odrs,relaxation_power=1.5", r"relaxation_power must be in \[0, 1\], got 1.5"),
        ("odrs,relaxation_power=0.5,schedule=growing-rho", "relaxation is defined for a constant lam only"),
        ("oadm,bregman_power=-1", r"bregman_power must be in \[0, 1\], got -1"),
        ("oadm,schedule=2", r"schedule must be in \[0, 1\], got 2"),
    ],
)
def test_powers_outside_their_range_are_refused(solver, words):
    with pytest.raises(ValueError, match=words):
        Learner(solver, "squared", "l1,l1=0.01")


@pytest.mark.parametrize(
    ("part", "old"),
    [
        (Drs(0.5, 1.4), [0.5, 1.4, False, 0.0]),
        (BatchDrs(0.5, 1.4), [0.5, 1.4]),
        (Oadm(0.5, 2.0), [0.5, 2.0, 0.0]),
        (Rda(2.0), [2.0]),
    ],
)
def test_files_name_an_added_field_where_it_is_set(part, old):
    spec = store(part)
    assert spec["fields"] == old
    assert restore("solver", spec, {}) == part
    name = type(part).added[0]
    value = True if type(part)._field_defaults[name] is False else 0.5
    newer = part._replace(**{name: value})
    assert store(newer)["fields"] == [*old, value]
    assert restore("solver", store(newer), {}) == newer
    with pytest.raises(ValueError, match="of this release"):
        restore("solver", spec | {"fields": old[:-1]}, {})
