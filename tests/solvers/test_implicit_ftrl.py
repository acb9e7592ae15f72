"""Implicit FTRL-Proximal: the references of ONLINEAR_GOLDEN_0_2, its definition, what it equals, rows that make no step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from sparse_rows import D, stream
from test_ftrl import AVERAGES, cases, with_intercept
from test_golden import Case, text

from onlinear import Learner
from onlinear.errors import ModelFileError
from onlinear.solvers.core.state import BIAS, CLOCK, OWN
from onlinear.solvers.implicit_ftrl import LazyImplicitFtrl


@pytest.mark.parametrize("path", cases("implicit_ftrl"))
def test_replay(path):
    case = Case(path)
    solver = text("implicit-ftrl", {"eta": case.take("eta")})
    loss, penalty = case.loss(), case.penalty()
    run, others = case.learner(solver, loss, penalty), {}
    for name, average in AVERAGES.items():
        others[name] = case.learner(solver, loss, penalty, average)
    assert isinstance(run.engine, LazyImplicitFtrl)
    stored = dict(zip(case.k.tolist(), range(len(case.k)), strict=True))
    for t, i in enumerate(case.order):
        run.learn(case.X[[i]], case.y[[i]], case.step_weights[t : t + 1])
        case.check("theta", run.variables()["theta"], at=t)
        if t + 1 in stored:
            case.check("W_k", with_intercept(case, run.intercept(), run.weights()), at=stored[t + 1])
    found, b = run.variables(), run.intercept()
    G, sigma, _ = run.states[0].now[OWN : OWN + 3]
    case.check("w", with_intercept(case, b, found["w"]))
    case.check("n", with_intercept(case, G, found["G"]))
    case.check("z", with_intercept(case, -sigma * b, found["z"]))
    for name, other in others.items():
        other.learn(case.X[case.order], case.y[case.order], case.step_weights)
        case.check(name, with_intercept(case, other.intercept(average=True), other.weights(average=True)))
    case.nothing_left()


def recursion(X, y, s, l1, l2, intercept, eta=2.0):
    """The method in NumPy for the logistic loss, theta by bisection of its definition: w and b."""
    d = X.shape[1] + 1
    z, sigma, G, w, N = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), 0.0
    free = np.append(np.zeros(d - 1), 1.0)
    for t, (x, target, weight) in enumerate(zip(X, y, s, strict=True), start=1):
        x = np.append(x, 1.0)
        on = x != 0.0
        k, shrink = (1.0 - free) * t * l1, (1.0 - free) * t * l2

        def at(z, k=k, shrink=shrink, sigma=sigma):
            return -np.sign(z) * np.maximum(np.abs(z) - k, 0.0) / np.where(sigma > 0.0, sigma + shrink, 1.0)

        N += (weight != 0.0) * (x @ x)
        g = -weight * target / (1.0 + np.exp(target * (w @ x)))
        if g != 0.0:
            G[on] += (g * x[on]) ** 2
            steps = np.maximum(eta * np.sqrt(t / N), free * intercept * eta)
            new = np.where(on, np.sqrt(G) / steps, sigma)
            u, sigma[:] = z - (new - sigma) * w, new
            gap = lambda th: -weight * target / (1.0 + np.exp(target * (x @ at(u + th * x)))) - th  # noqa: B023, E731
            z = u + brentq(gap, -weight, weight, xtol=1e-15, rtol=1e-14) * x
        w = at(z)
    return w[:-1], w[-1]


@pytest.mark.parametrize(
    ("l1", "l2", "intercept"), [(0.0, 0.0, 0.3), (0.02, 0.0, 0.0), (0.0, 0.1, 2.0), (0.02, 0.1, 0.0), (0.02, 0.1, 0.3)]
)
def test_the_run_is_the_recursion_by_bisection(l1, l2, intercept):
    X, y, s = stream()
    solver = f"implicit-ftrl,intercept={intercept}"
    run = Learner(solver, "logistic", f"elastic-net,l1={l1},l2={l2}", n_features=D, fit_intercept=True).learn(X, y, s)
    w, b = recursion(X.toarray(), y, s, l1, l2, intercept)
    np.testing.assert_allclose(run.weights(), w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.intercept(), b, rtol=1e-9)
    assert run.engine.lazy
    assert np.array_equal(run.weights() == 0.0, w == 0.0)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared", "logistic", "exponential"])
@pytest.mark.parametrize("penalty", ["l1=0.03", "l1=0.03,l2=0.1"])
def test_a_step_satisfies_the_optimality_conditions(loss, penalty):
    """18.1: minus the gradient of the smooth part lies in the penalty's subdifferential, coordinate by coordinate."""
    X, y, _ = stream()
    run = Learner("implicit-ftrl", loss, penalty, n_features=D)
    l1, l2 = run.penalty.l1, run.penalty.l2
    steps = 0
    for i in range(60):
        before = run.variables()
        run.learn(X[[i]], y[[i]])
        after, x, t = run.variables(), X[[i]].toarray()[0], i + 1.0
        w, theta, sigma = after["w"], after["theta"], after["sigma"]
        if np.array_equal(before["G"], after["G"]):
            continue
        steps += 1
        h = 1e-7
        low, high = run.loss.slope(x @ w - h, y[i]), run.loss.slope(x @ w + h, y[i])
        assert low - 1e-6 <= theta <= high + 1e-6
        u = before["z"] - (sigma - before["sigma"]) * before["w"]
        rest = u + theta * x + (sigma + t * l2) * w
        np.testing.assert_allclose(rest[w != 0.0], -t * l1 * np.sign(w[w != 0.0]), atol=1e-11 * t)
        assert np.all(np.abs(rest[w == 0.0]) <= t * l1 * (1.0 + 1e-12))
    assert steps > 20


def test_with_one_column_a_row_it_is_an_implicit_step():
    """Each column is in one row, so that sigma is that of its only gradient, 3 y: w = c / sqrt(G) times an implicit slope."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    run = Learner("implicit-ftrl,eta=0.7", "squared", n_features=4).learn(np.eye(4) * 3.0, y)
    step = (0.7 / 3.0) / 3.0  # N = 9 t, so c_t is 0.7 / 3 in every row
    np.testing.assert_allclose(run.weights(), 3.0 * step * y / (1.0 + 9.0 * step), rtol=1e-13)


def test_rows_without_a_slope_move_the_step_number_and_the_norms_alone():
    X = sparse.csr_matrix(np.eye(3)[[0, 1, 2, 0]] * 4.0)
    run = Learner("implicit-ftrl", "hinge", "none", n_features=3, fit_intercept=True).learn(X[:3], np.ones(3))
    before, N = run.variables(), run.states[0].now[OWN + 2]
    run.learn(X[3:], np.ones(1), [0.0])
    assert run.states[0].now[OWN + 2] == N
    far = sparse.csr_matrix([[400.0, 0.0, 0.0]])
    after = run.learn(far, np.ones(1)).variables()
    assert run.states[0].now[OWN + 2] == N + 1.0 + 400.0**2
    for name in ("w", "z", "sigma", "G"):
        assert np.array_equal(before[name], after[name])
    assert run.t == 5


def test_a_start_is_refused():
    with pytest.raises(ValueError, match="implicit-ftrl starts at w = 0"):
        Learner("implicit-ftrl", "logistic", start=[1.0, 0.0])


@pytest.mark.parametrize("penalty", ["none,lower=0.0", "fused-lasso,tv=0.1"])
def test_penalties_that_it_has_no_form_for_are_refused(penalty):
    with pytest.raises(ValueError, match="implicit-ftrl takes the penalties none, l1, l2 and elastic-net"):
        Learner("implicit-ftrl", "logistic", penalty)


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e-100, 1e100, 1e149])
@pytest.mark.parametrize("penalty", ["none", "l1=1e-3", "l2=1e-3"])
def test_values_of_any_size_leave_finite_weights(size, penalty):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, -1.0, 1.0)
    X[:, 0] *= size
    for loss in ("hinge", "logistic", "squared"):
        run = Learner("implicit-ftrl", loss, penalty, fit_intercept=True).learn(X, y)
        assert np.all(np.isfinite(run.weights()))
        assert np.all(np.isfinite(run.predict(X)))


@pytest.mark.parametrize("place", ["clock", "sigma", "G", "own"])
def test_states_that_no_run_could_be_in_are_refused(place):
    X, y, s = stream()
    run = Learner("implicit-ftrl", "logistic", "l1=0.01", n_features=D, fit_intercept=True).learn(X, y, s)
    state = run.states[0]
    run.engine.check(state)
    if place in ("sigma", "G"):
        state.vectors()[place][3] = -1.0
    else:
        state.now[{"clock": CLOCK, "own": OWN + 2}[place]] = -1.0
    with pytest.raises(ModelFileError):
        run.engine.check(state)


def test_a_row_the_model_is_sure_of_moves_nothing_that_rounding_makes():
    """Its slope is tiny, so new columns would have a tiny sigma, where the kink at t l1 is a step of any height."""
    rng = np.random.default_rng(0)
    learner = Learner("implicit-ftrl", "logistic", "l1=1e-5", fit_intercept=True, n_features=3)
    X = np.column_stack([rng.standard_normal(700), np.zeros((700, 2))])
    learner.learn(X, np.where(rng.random(700) < 0.5, 1.0, -1.0))
    first, learner.states[0].now[BIAS] = learner.weights()[0], -80.0
    learner.learn([[1.0, 1.7, 0.5]], [-1.0])
    np.testing.assert_allclose(learner.weights(), [first, 0.0, 0.0], rtol=0, atol=1e-3)
    assert learner.intercept() == pytest.approx(-80.0)
