"""PA, PA-I and PA-II: their closed forms, their implicit twins, lazy averages, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from combinations import reference
from sparse_rows import D, N, close, same_bits, stream

from onlinear import Learner

SOLVERS = ["pa", "pa-1,C=0.3", "pa-2,C=0.3"]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("average", ["none", "uniform", "uniform-post", "weighted-t", "weighted-t1", "suffix,total=140"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_lazy_run_is_the_dense_recursion_wherever_it_is_read(solver, average, intercept):
    X, y, s = stream()
    s = np.minimum(np.ceil(s), 1.0) if solver == "pa" else s

    def learner() -> Learner:
        return Learner(solver, "hinge", "none", average, fit_intercept=intercept, n_features=D)

    lazy, unread, dense = learner(), learner().learn(X, y, s), reference(learner())
    assert lazy.engine.lazy
    for begin, end in ((0, 1), (1, 63), (63, 65), (65, 129), (129, N)):
        lazy.learn(X[begin:end], y[begin:end], s[begin:end])
        dense.learn(X[begin:end], y[begin:end], s[begin:end])
        for averaged in (False, True):
            close(lazy.weights(averaged), dense.weights(averaged))
            assert lazy.intercept(averaged) == pytest.approx(dense.intercept(averaged), rel=1e-10, abs=1e-12)
    same_bits(lazy, unread)


@pytest.mark.parametrize("intercept", [0.0, 1.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_closed_forms(solver, intercept):
    X, y, _ = stream(1)
    learner = Learner(solver, "hinge", fit_intercept=bool(intercept), n_features=D)
    w = np.zeros(D + 1)
    for i in range(N):
        x = np.append(X[i].toarray()[0], intercept)
        short, size = max(0.0, 1.0 - y[i] * (w @ x)), x @ x
        if size > 0.0:
            tau = {"pa": short / size, "pa-1": min(0.3, short / size), "pa-2": short / (size + 1.0 / 0.6)}
            w += tau[solver.partition(",")[0]] * y[i] * x
        learner.learn(X[i], y[i : i + 1])
        close(np.append(learner.weights(), learner.intercept()), w)


def test_pa_gives_each_row_its_margin():
    X, y, _ = stream(2)
    learner = Learner("pa", "hinge", n_features=D)
    for i in range(N):
        learner.learn(X[i], y[i : i + 1])
        if X[i].data.any():
            assert y[i] * learner.predict(X[i])[0] >= 1.0 - 1e-12


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_pa_1_and_pa_2_are_implicit_steps(weighted, intercept):
    X, y, s = stream(3)
    s = s if weighted else np.ones(N)
    for pa, loss, eta in (("pa-1,C=0.3", "hinge", 0.3), ("pa-2,C=0.3", "squared-hinge", 0.6)):
        implicit = Learner(f"implicit-sgd,schedule=constant,eta={eta}", loss, fit_intercept=intercept, n_features=D)
        passive = Learner(pa, "hinge", fit_intercept=intercept, n_features=D)
        close(passive.learn(X, y, s).weights(), implicit.learn(X, y, s).weights())
        assert passive.intercept() == pytest.approx(implicit.intercept(), abs=1e-12)
        assert passive.engine.eta(1) == eta


def test_pa_is_pa_1_without_a_cap():
    X, y, _ = stream(4)
    capped = Learner("pa-1,C=1e12", "hinge", n_features=D).learn(X, y)
    np.testing.assert_array_equal(Learner("pa", "hinge", n_features=D).learn(X, y).weights(), capped.weights())


def test_another_margin_is_met():
    learner = Learner("pa", "hinge,margin=3", n_features=2).learn([[1.0, 1.0]], [-1.0])
    np.testing.assert_allclose(learner.weights(), [-1.5, -1.5])


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "message"),
    [
        ("pa", "logistic", "none", "hinge"),
        ("pa-2", "squared-hinge", "none", "hinge"),
        ("pa-1", "hinge", "l1,l1=0.1", "penalty"),
        ("pa", "hinge", "none,lower=0", "penalty"),
        ("pa", "hinge,factor=2", "none", "factor"),
    ],
)
def test_combinations_without_a_correct_form_are_refused(solver, loss, penalty, message):
    with pytest.raises(ValueError, match=message):
        Learner(solver, loss, penalty, n_features=D)


def test_pa_takes_weights_0_and_1_only():
    X, y, s = stream()
    learner = Learner("pa", "hinge", n_features=D)
    with pytest.raises(ValueError, match=r"0 or 1 only, got (0\.4|7)"):
        learner.learn(X, y, s)
    assert learner.t == 0
    learner.learn(X, y, np.zeros(N))
    assert learner.t == N
    assert not learner.weights().any()
