"""FTRL-Proximal: the references of ONLINEAR_GOLDEN_0_2, the paper's own objective, a start, rows that make no step."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sparse_rows import D, stream
from test_golden import Case, text

from onlinear import Learner
from onlinear.compiled.machine_code import sign
from onlinear.errors import ModelFileError
from onlinear.rows import Rows
from onlinear.solvers.core.engine import Examples
from onlinear.solvers.core.state import CLOCK, OWN
from onlinear.solvers.ftrl import LazyFtrl

VARIABLE = "ONLINEAR_GOLDEN_0_2"
AVERAGES = {"avg_uni": "uniform", "avg_post": "uniform-post", "avg_w_t": "weighted-t", "avg_w_t1": "weighted-t1"}


def cases(method="ftrl"):
    """The files to replay, or one skipped test where the variable is unset."""
    named = os.environ.get(VARIABLE)
    if not named:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{VARIABLE} is not set; it names the folder of references."))]
    found = sorted(Path(named).glob(f"{method}_*.npz"))
    if not found:
        raise pytest.UsageError(f"{VARIABLE}={named!r} holds no reference file ({method}_*.npz).")
    return [pytest.param(path, id=path.stem) for path in found]


def with_intercept(case, intercept, vector):
    """The arrays of a file begin with the intercept, where there is one."""
    return np.concatenate([[intercept], vector]) if case.intercept else vector


@pytest.mark.parametrize("path", cases())
def test_replay(path):
    case = Case(path)
    solver = text("ftrl", {key: case.take(key) for key in ("eta", "beta", "fixed") if key in case.settings})
    loss, penalty = case.loss(), case.penalty()
    run, others = case.learner(solver, loss, penalty), {}
    for name, average in AVERAGES.items():
        others[name] = case.learner(solver, loss, penalty, average)
    assert isinstance(run.engine, LazyFtrl)
    stored = dict(zip(case.k.tolist(), range(len(case.k)), strict=True))
    for t, i in enumerate(case.order):
        run.learn(case.X[[i]], case.y[[i]], case.step_weights[t : t + 1])
        case.check("theta", run.variables()["theta"], at=t)
        if t + 1 in stored:
            case.check("W_k", with_intercept(case, run.intercept(), run.weights()), at=stored[t + 1])
    found, b, n = run.variables(), run.intercept(), float(run.states[0].now[OWN])
    case.check("w", with_intercept(case, b, found["w"]))
    case.check("n", with_intercept(case, n, found["n"]))
    sigma = (case.take("beta") + np.sqrt(n)) / case.take("eta")
    case.check("z", with_intercept(case, -sigma * b, found["z"]))
    for name, other in others.items():
        other.learn(case.X[case.order], case.y[case.order], case.step_weights)
        case.check(name, with_intercept(case, other.intercept(average=True), other.weights(average=True)))
    case.nothing_left()


def recursion(X, y, s, l1, l2, fixed, eta=0.3, beta=1.0, w=None, intercept=True):
    """The method in NumPy: w and b, and the mean of w before each step."""
    sigma = np.full(X.shape[1] + 1, beta / eta)
    start = np.zeros(X.shape[1]) if w is None else w
    z, n = np.append(-sigma[:-1] * start, 0.0), np.zeros(X.shape[1] + 1)
    w = np.append(start, 0.0)
    total = np.zeros(len(w))
    for t, (x, target, weight) in enumerate(zip(X, y, s, strict=True), start=1):
        total += w
        x = np.append(x, float(intercept))
        g = weight * (-target / (1.0 + np.exp(target * (w @ x)))) * x
        n = n + g * g
        new = (beta + np.sqrt(n)) / eta
        z, sigma = z + g - (new - sigma) * w, new
        times = 1.0 if fixed else t
        k, shrink = np.append(np.full(len(w) - 1, times * l1), 0.0), np.append(np.full(len(w) - 1, times * l2), 0.0)
        w = -np.sign(z) * np.maximum(np.abs(z) - k, 0.0) / (sigma + shrink)
    return w[:-1], w[-1], total[:-1] / len(y)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("average", ["none", "uniform"])
def test_both_objectives_and_a_start(fixed, started, average):
    X, y, s = stream()
    start = np.linspace(-0.5, 0.5, D) if started else None
    settings = f"ftrl,fixed={str(fixed).lower()}"
    run = Learner(settings, "logistic", "l1=0.02,l2=0.1", average, n_features=D, fit_intercept=True, start=start)
    w, b, mean = recursion(X.toarray(), y, s, 0.02, 0.1, fixed, w=start)
    np.testing.assert_allclose(run.learn(X, y, s).weights(), w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.intercept(), b, rtol=1e-10)
    assert run.engine.lazy
    if average == "uniform":
        np.testing.assert_allclose(run.weights(average=True), mean, rtol=1e-10, atol=1e-12)
    assert np.array_equal(run.weights() == 0.0, w == 0.0)


def test_rows_without_a_slope_move_the_step_number_alone():
    X = sparse.csr_matrix(np.eye(3)[[0, 1, 2, 0]] * 4.0)
    y, s = np.ones(4), np.array([1.0, 1.0, 0.0, 0.0])
    run = Learner("ftrl", "squared", "none", n_features=3).learn(X[:2], y[:2], s[:2])
    before = run.variables()
    after = run.learn(X[2:], y[2:], s[2:]).variables()
    for name in ("w", "z", "n"):
        assert np.array_equal(before[name], after[name])
    assert run.t == 4


@pytest.mark.parametrize("penalty", ["none,lower=0.0", "fused-lasso,tv=0.1"])
def test_penalties_that_it_has_no_form_for_are_refused(penalty):
    with pytest.raises(ValueError, match="ftrl takes the penalties none, l1, l2 and elastic-net"):
        Learner("ftrl", "logistic", penalty)


@pytest.mark.parametrize("place", ["clock", "n", "own"])
def test_states_that_no_run_could_be_in_are_refused(place):
    X, y, s = stream()
    run = Learner("ftrl", "logistic", "l1=0.01", n_features=D, fit_intercept=True).learn(X, y, s)
    state = run.states[0]
    run.engine.check(state)
    if place == "n":
        state.vectors()["n"][3] = -1.0
    else:
        state.now[{"clock": CLOCK, "own": OWN}[place]] = -1.0
    with pytest.raises(ModelFileError):
        run.engine.check(state)


@pytest.mark.parametrize("name", ["ftrl", "implicit-ftrl", "adagrad-rda", "adagrad-comid"])
def test_without_an_average_l1_takes_the_kernel_of_no_penalty(name):
    row = Rows(np.array([0, 1], np.uint64), np.zeros(1, np.uint32), np.ones(1))

    def kernel(penalty):
        learner, one = Learner(name, "logistic", penalty, "none", n_features=3), np.ones(1)
        run, args = learner.engine.call(learner.states[0], Examples(row, 1.0, one, one, np.empty(1)))
        return run, tuple(map(sign, args))

    assert kernel("l1=0.01") == kernel("none")
