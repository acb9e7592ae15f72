"""RDA against its dense step, its definition, and the limits of its closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from combinations import ByPython
from seldom import seldom
from sparse_rows import close, same_bits, stream

from onlinear import Learner
from onlinear.solvers.core.engine import Problem
from onlinear.solvers.rda import Primal

PENALTIES = ["none", "l1,l1=0.02", "l2,l2=0.3", "elastic-net,l1=0.02,l2=0.3", "l1,l1=0.01,lower=-0.4,upper=0.2"]
AVERAGES = ["none", "uniform", "uniform-post", "weighted-t", "weighted-t1", "suffix,alpha=0.5,total=120"]


class Cubic(NamedTuple):
    """A user's penalty with a prox of one weight: k |w|."""

    k: float = 0.05

    def value(self, w):
        return self.k * abs(w)

    def prox(self, v, eta):
        return max(abs(v) - eta * self.k, 0.0) * (1.0 if v > 0.0 else -1.0)


class InterpretedPrimal(ByPython, Primal):
    """The dense form as Python runs it."""


def learner(penalty, average="none", gamma=1.0, loss="logistic", **options):
    return Learner(f"rda,gamma={gamma}", loss, penalty, average, **options)


def dense(penalty, average="none", gamma=1.0, loss="logistic", **options):
    made = learner(penalty, average, gamma, loss, **options)
    problem = Problem(made.loss, made.penalty, made.average, made.fit_intercept)
    made.engine = InterpretedPrimal(made.solver, problem, "the reference")
    made.states = [made.engine.start(np.zeros(made.size), 0.0)]
    return made


@pytest.mark.parametrize(
    ("penalty", "average"),
    [
        seldom(penalty, average) if "lower" in penalty and average != "none" else (penalty, average)  # dense, too
        for penalty in PENALTIES
        for average in AVERAGES
    ],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_lazy_is_dense(penalty, average, intercept):
    X, y, s = stream()
    options = {"fit_intercept": intercept, "n_features": X.shape[1]}
    lazy, want = learner(penalty, average, **options), dense(penalty, average, **options)
    for end in (1, 63, 64, 65, 128, 130, X.shape[0]):
        rows = slice(lazy.t, end)
        lazy.learn(X[rows], y[rows], s[rows])
        want.learn(X[rows], y[rows], s[rows])
        for averaged in (False, True):
            close(lazy.weights(averaged), want.weights(averaged))
            np.testing.assert_array_equal(lazy.weights(averaged) == 0.0, want.weights(averaged) == 0.0)
            assert lazy.intercept(averaged) == pytest.approx(want.intercept(averaged), abs=1e-12)
        close(lazy.variables()["G"], want.variables()["G"])


@pytest.mark.parametrize("loss", ["hinge", "logistic", "modified-huber"])
def test_strongly_convex_case_has_no_auxiliary_term(loss):
    X, y, s = stream(1)
    run = learner("elastic-net,l1=0.01,l2=0.5", gamma=0.0, loss=loss, fit_intercept=True, n_features=X.shape[1])
    want = dense("elastic-net,l1=0.01,l2=0.5", gamma=0.0, loss=loss, fit_intercept=True, n_features=X.shape[1])
    close(run.learn(X, y, s).weights(), want.learn(X, y, s).weights())
    G, t = run.variables()["G"], run.t
    close(run.weights(), -np.sign(G) * np.maximum(np.abs(G) - 0.01 * t, 0.0) / (0.5 * t))


def test_weights_minimise_the_definition():
    """No point near w_{t+1} has a smaller <G, w> + t r(w) + (gamma sqrt t / 2) |w|^2."""
    X, y, _ = stream(2)
    for penalty in ("elastic-net,l1=0.02,l2=0.3", "fused-lasso,tv=0.02,l1=0.01", "l1,l1=0.01,lower=-0.1,upper=0.1"):
        run = learner(penalty, gamma=2.0, n_features=X.shape[1]).learn(X, y)
        G, w = run.variables()["G"], run.weights()

        def cost(w, G=G, r=run.penalty, t=run.t):
            return G @ w + t * r.value(w) + np.sqrt(t) * w @ w

        rng = np.random.default_rng(0)
        for size in (1e-1, 1e-3):
            for _ in range(100):
                assert cost(w) <= cost(w + size * rng.standard_normal(len(w)) * rng.integers(0, 2, len(w))) + 1e-9


@pytest.mark.parametrize("average", ["none", "uniform", "suffix,alpha=0.5,total=120"])
def test_calls_and_growth_leave_no_trace(average):
    X, y, s = stream(3)
    whole = learner("l1,l1=0.02", average, fit_intercept=True, n_features=X.shape[1]).learn(X, y, s)
    pieces = learner("l1,l1=0.02", average, fit_intercept=True)
    first = 0
    for end in (0, 1, 2, 40, 64, 65, 100, X.shape[0]):
        pieces.learn(X[first:end], y[first:end], s[first:end])
        pieces.weights(average=True), pieces.variables(), pieces.predict(X)
        header, arrays = pieces.freeze()
        pieces = Learner.thaw(header, arrays)
        first = end
    assert pieces.size == X.shape[1] - 2
    pieces.grow(X.shape[1])
    same_bits(whole, pieces)
    np.testing.assert_array_equal(whole.weights(True), pieces.weights(True))


def test_rows_of_a_dense_array_give_the_same_bits():
    X, y, s = stream(4)
    one = learner("l1,l1=0.02", "uniform", n_features=X.shape[1]).learn(X, y, s)
    other = learner("l1,l1=0.02", "uniform", n_features=X.shape[1]).learn(X.toarray(), y, s)
    same_bits(one, other)


def test_a_penalty_with_only_a_prox_is_learnt_densely():
    X, y, s = stream(5)
    run = learner(Cubic(), "uniform", fit_intercept=True, n_features=X.shape[1]).learn(X, y, s)
    want = learner("l1,l1=0.05", "uniform", fit_intercept=True, n_features=X.shape[1]).learn(X, y, s)
    assert not run.engine.lazy
    assert "prox" in run.engine.why
    close(run.weights(), want.weights())
    close(run.weights(average=True), want.weights(average=True))


def test_what_is_lazy_and_why_not():
    assert learner("elastic-net,l1=0.1,l2=0.1", "uniform", n_features=3).engine.lazy
    assert learner("none,upper=1", n_features=3).engine.lazy
    assert "clipped" in learner("none,upper=1", "uniform", n_features=3).engine.why
    assert "couples" in learner("total-variation,tv=0.1", n_features=3).engine.why


@pytest.mark.parametrize("average", ["none", "uniform", "weighted-t1"])
def test_a_logarithmic_auxiliary_term(average):
    """From the definition: w = -soft(G, l1 t) / (l2 t + gamma (1 + log t)), each gradient at its own w."""
    X, y, s = stream(2)
    run = Learner("rda,gamma=1.5,logarithmic=true", "logistic", "elastic-net,l1=0.01,l2=0.1", average, n_features=X.shape[1])
    run.learn(X, y, s)
    G, w, total, weight = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0
    for t, (x, label, importance) in enumerate(zip(X.toarray(), y, s, strict=True), 1):
        om = {"none": 0.0, "uniform": 1.0, "weighted-t1": t + 1.0}[average]
        total, weight = total + om * w, weight + om
        G = G - importance * label / (1.0 + np.exp(label * (w @ x))) * x
        w = -np.sign(G) * np.maximum(np.abs(G) - 0.01 * t, 0.0) / (0.1 * t + 1.5 * (1.0 + np.log(t)))
    close(run.weights(), w)
    if average != "none":
        close(run.weights(average=True), total / weight)


def test_refusals_name_what_is_missing():
    with pytest.raises(ValueError, match="l2 must be above 0"):
        learner("l1,l1=0.1", gamma=0.0)
    with pytest.raises(ValueError, match="built-in penalty"):
        learner(Cubic(), gamma=0.0)
    for penalty in ("none", "total-variation,tv=0.1"):
        with pytest.raises(ValueError, match=r"start= is not possible"):
            learner(penalty, n_features=2, start=np.ones(2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_state_that_overflows_is_reported():
    from onlinear import DivergenceError

    run = learner("none", loss="squared", gamma=1e-3, n_features=1)
    with pytest.raises(DivergenceError, match="implicit"):
        run.learn(np.full((400, 1), 1e3), np.ones(400))
