"""The least-squares family by stochastic gradients: CSGD against its dense step, its constraint, and SGD."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from combinations import Interpreted
from scipy import sparse
from sparse_rows import close, same_bits, stream

from onlinear import DivergenceError, Learner, load
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Problem

SOLVERS_ = ["csgd,m=70,eta=0.2", "ncsgd,eta=0.2", "c-adaline,eta=0.2", "adaline,eta=0.05"]
AVERAGES = ["none", "uniform", "uniform-post", "weighted-t1", "suffix,alpha=0.5,total=120"]


def rows(seed=0):
    """Rows with real targets; the first row is empty."""
    X, _, s = stream(seed)
    X.data[: X.indptr[1]] = 0.0
    return X, np.random.default_rng(seed).standard_normal(X.shape[0]), s


def learner(solver, average="none", loss="squared", **options):
    return Learner(solver, loss, "none", average, **{"fit_intercept": True} | options)


def dense(solver, average="none", loss="squared", **options):
    made = learner(solver, average, loss, **options)
    problem = Problem(made.loss, made.penalty, made.average, made.fit_intercept)
    start, made.engine = made.weights(), Interpreted(made.solver, problem, "the reference")
    made.states = [made.engine.start(start, 0.0)]
    return made


@pytest.mark.parametrize("solver", SOLVERS_)
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("start", [False, True])
def test_lazy_is_dense(solver, average, start):
    X, y, s = rows()
    options = {"n_features": X.shape[1], "start": np.linspace(-1.0, 1.0, X.shape[1]) if start else None}
    lazy, want = learner(solver, average, **options), dense(solver, average, **options)
    for end in (1, 2, 63, 64, 65, 128, 130, X.shape[0]):
        part = slice(lazy.t, end)
        lazy.learn(X[part], y[part], s[part])
        want.learn(X[part], y[part], s[part])
        for averaged in (False, True):
            close(lazy.weights(averaged), want.weights(averaged))
            assert lazy.intercept(averaged) == pytest.approx(want.intercept(averaged), abs=1e-11)


@pytest.mark.filterwarnings("ignore:n?csgd without an intercept")
@pytest.mark.parametrize("loss", ["squared", "squared,factor=2"])
def test_lazy_is_dense_without_an_intercept(loss):
    X, y, s = rows(1)
    options = {"loss": loss, "fit_intercept": False, "n_features": X.shape[1]}
    lazy, want = learner("ncsgd,eta=0.1", "uniform", **options), dense("ncsgd,eta=0.1", "uniform", **options)
    close(lazy.learn(X, y, s).weights(), want.learn(X, y, s).weights())
    close(lazy.weights(average=True), want.weights(average=True))


def cancelling(h, seed=0):
    """Rows x_1, x_2, -(x_1 + x_2) + h noise, again and again, with targets that a w fits; sums of dyadic values are exact, so
    with h = 0 the sum of the rows so far is 0 after every third."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (90, 5)) / 8.0
    X[2::3] = -(X[0::3] + X[1::3]) + h * rng.standard_normal((30, 5))
    X[60:] *= 1e3
    return sparse.csr_matrix(X), X @ np.linspace(-1.0, 2.0, 5)


@pytest.mark.filterwarnings("ignore:n?csgd without an intercept")
@pytest.mark.parametrize("average", ["none", "uniform"])
@pytest.mark.parametrize("h", [0.0, 1e-2, 1e-4])
def test_lazy_is_dense_where_rows_cancel(h, average):
    X, y = cancelling(h)
    y = y + (h == 0.0) * np.sin(np.arange(90))  # with S = 0 there is no constraint that the targets could miss
    options = {"fit_intercept": False, "n_features": 5}
    lazy, want = learner("ncsgd,eta=1e-3", average, **options), dense("ncsgd,eta=1e-3", average, **options)
    for i in range(90):
        lazy.learn(X[i], y[i : i + 1])
        want.learn(X[i], y[i : i + 1])
        for averaged in (False, True):
            close(lazy.weights(averaged), want.weights(averaged))
    if h == 0.0:
        assert not lazy.variables()["xbar"].any()


@pytest.mark.filterwarnings("ignore:n?csgd without an intercept")
@pytest.mark.parametrize("outputs", [1, 3])
def test_rows_that_cancel_leave_no_trace_of_calls(outputs):
    X, y = cancelling(0.0)
    y = np.repeat(y[:, None], outputs, axis=1)
    options = {"fit_intercept": False, "n_features": 5, "n_outputs": outputs}
    whole, pieces = (learner("ncsgd,eta=1e-3", "uniform", **options) for _ in range(2))
    whole.learn(X, y)
    for i in range(90):
        pieces.learn(X[i], y[i : i + 1])
        pieces.weights(average=True), pieces.variables()
        pieces = Learner.thaw(*pieces.freeze())
    same_bits(whole, pieces)


def test_the_regression_line_holds_after_every_step():
    X, y, s = rows(2)
    run = learner("csgd,m=50,eta=0.3", n_features=X.shape[1])
    for i in range(60):
        run.learn(X[[i]], y[[i]], s[[i]])
        found, past = run.variables(), slice(0, i + 1)
        if s[past].any():
            np.testing.assert_allclose(found["xbar"], s[past] @ X[past].toarray() / s[past].sum(), rtol=1e-12, atol=1e-14)
            assert found["ybar"] == pytest.approx(s[past] @ y[past] / s[past].sum(), abs=1e-12)
            assert found["w"] @ found["xbar"] + run.intercept() == pytest.approx(found["ybar"], abs=1e-11)


def test_closed_form_of_the_step():
    """w_{t+1} = w_t + r_t [eta x + S (1 - eta <S, x>) / |S|^2] (MATH 7.4), once the constraint has held."""
    X, y, _ = rows(3)
    X = np.column_stack([np.ones(X.shape[0]), X.toarray()])
    run = learner("ncsgd,eta=0.3", fit_intercept=False, n_features=X.shape[1])
    w, S = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (x, target) in enumerate(zip(X, y, strict=True), start=1):
        r, eta = target - w @ x, 0.3 / np.sqrt(t)
        S += x
        w = w + r * (eta * x + S * (1.0 - eta * S @ x) / (S @ S))
        run.learn(x[None], [target])
    close(run.weights(), w)


def test_adaline_is_sgd_on_the_squared_loss():
    X, y, s = rows(4)
    one = learner("adaline,eta=0.03", "uniform", n_features=X.shape[1]).learn(X, y, s)
    other = learner("sgd,schedule=constant,eta=0.03", "uniform", n_features=X.shape[1]).learn(X, y, s)
    close(one.weights(), other.weights())
    close(one.weights(average=True), other.weights(average=True))


@pytest.mark.parametrize("solver", SOLVERS_)
@pytest.mark.parametrize("average", ["none", "uniform"])
def test_calls_and_growth_leave_no_trace(solver, average):
    X, y, s = rows(5)
    whole = learner(solver, average, n_features=X.shape[1]).learn(X.toarray(), y, s)
    pieces = learner(solver, average)
    first = 0
    for end in (0, 1, 2, 40, 64, 65, 100, X.shape[0]):
        pieces.learn(X[first:end], y[first:end], s[first:end])
        pieces.weights(average=True), pieces.variables(), pieces.predict(X)
        pieces = Learner.thaw(*pieces.freeze())
        first = end
    pieces.grow(X.shape[1])
    same_bits(whole, pieces)


def test_one_row_at_a_time_in_float32():
    X, y, _ = rows(6)
    X = X.astype(np.float32)
    whole = learner("ncsgd,eta=0.1", n_features=X.shape[1]).learn(X.astype(np.float64), y)
    single = learner("ncsgd,eta=0.1", n_features=X.shape[1])
    for i in range(X.shape[0]):
        single.learn_one(X[[i]].indices, X[[i]].data, y[i])
    same_bits(whole, single)


def test_outputs_are_learnt_side_by_side():
    X, y, s = rows(7)
    Y = np.column_stack([y, np.arange(len(y)) % 2])
    both = learner("c-adaline,eta=0.1", n_outputs=2, n_features=X.shape[1]).learn(X, Y, s)
    for k in range(2):
        one = learner("c-adaline,eta=0.1", n_features=X.shape[1]).learn(X, Y[:, k], s)
        np.testing.assert_array_equal(both.weights()[:, k], one.weights())
    assert both.variables()["ybar"].shape == (2,)


def test_classes_become_one_hot_targets_in_adaline_alone():
    assert SOLVERS["adaline"].targets == SOLVERS["c-adaline"].targets == "one-hot"
    assert SOLVERS["csgd"].targets == SOLVERS["ncsgd"].targets == "signs"


@pytest.mark.parametrize("solver", ["csgd", "ncsgd", "c-adaline", "NCSGD"])
def test_the_warning_names_the_solver_that_was_given(solver):
    settings = "" if solver != "csgd" else ",schedule=inverse-sqrt"
    with pytest.warns(UserWarning, match=f"^{solver.lower()} without an intercept"):
        Learner(solver + settings, "squared").learn(np.eye(3)[:, :2], [1.0, -1.0, 1.0])
    with pytest.raises(
        ValueError, match=f"{solver.lower()} is a least-squares method: the loss must be 'squared', got 'hinge'"
    ):
        Learner(solver + settings, "hinge")


def test_one_warning_without_a_constant_feature():
    X, y, _ = rows(8)
    run = learner("ncsgd,eta=0.1", fit_intercept=False, n_features=X.shape[1])
    with pytest.warns(UserWarning, match="biases the solution"):
        run.learn(X[:20], y[:20])
    run.learn(X[20:], y[20:])
    with_constant = np.column_stack([X.toarray(), np.full(X.shape[0], 2.5)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner("ncsgd,eta=0.1", fit_intercept=False).learn(with_constant, y)
        learner("ncsgd,eta=0.1").learn(X, y)


@pytest.mark.parametrize("solver", SOLVERS_)
def test_only_least_squares(solver):
    with pytest.raises(ValueError, match="least-squares"):
        Learner(solver, "hinge")
    with pytest.raises(ValueError, match="penalty must be 'none'"):
        Learner(solver, "squared", "l1,l1=0.1")


def test_adaline_has_no_l2():
    with pytest.raises(ValueError, match="penalty must be 'none'"):
        Learner("adaline,eta=0.1", "squared", "l2,l2=0.1")


@pytest.mark.parametrize("intercept", [True, False])
def test_l2_is_added_to_the_loss_of_each_row(intercept):
    X, y, s = rows(11)
    X, eta, l2 = X.toarray(), 0.1, 0.3
    X[:, 0] = 1.0  # no warning without an intercept
    w, S, Y = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), 0.0
    for t, (row, target, weight) in enumerate(zip(X, y, s, strict=True), start=1):
        x = np.concatenate([[float(intercept)], row])
        r, step = weight * (target - w @ x), eta / np.sqrt(t)
        w = w - step * l2 * np.concatenate([[0.0], w[1:]]) + step * r * x
        S, Y = S + weight * x, Y + weight * target
        if S @ S > 0.0:
            w = w - S * ((S @ w - Y) / (S @ S))
    run = Learner(f"ncsgd,eta={eta}", "squared", f"l2={l2}", fit_intercept=intercept, n_features=X.shape[1]).learn(X, y, s)
    assert not run.engine.lazy
    np.testing.assert_allclose(run.weights(), w[1:], rtol=1e-9, atol=1e-12)
    assert run.intercept() == pytest.approx(w[0] * intercept, abs=1e-12)
    now = run.variables()
    np.testing.assert_allclose(now["S"] @ now["w"] + intercept * S[0] * run.intercept(), now["Y"], atol=1e-9)


def test_l2_of_two_outputs_saves_and_warns(tmp_path):
    X, y, _ = rows(12)
    Y = np.column_stack([y, -2.0 * y])
    both = Learner("ncsgd,eta=0.1", "squared", "l2=0.3", n_outputs=2, fit_intercept=True).learn(X[:50], Y[:50])
    both.save(tmp_path / "m.onlinear")
    again = load(tmp_path / "m.onlinear").learn(X[50:], Y[50:])
    np.testing.assert_array_equal(again.weights(), both.learn(X[50:], Y[50:]).weights())
    with pytest.warns(UserWarning, match="ncsgd without an intercept"):
        Learner("ncsgd,eta=0.1", "squared", "l2=0.3").learn(np.eye(3)[:, :2], [1.0, -1.0, 1.0])


def test_two_phases_need_their_turning_point():
    with pytest.raises(ValueError, match="needs m"):
        Learner("csgd", "squared")
    assert Learner("csgd", "squared", total=11).solver.schedule.m == 6.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("solver", ["ncsgd,eta=100", "adaline,eta=100"])
def test_divergence_is_reported(solver):
    X, y, _ = rows(9)
    run = learner(solver, n_features=X.shape[1])
    again = np.tile(np.arange(X.shape[0]), 50)
    with pytest.raises(DivergenceError, match="implicit"):
        run.learn(10.0 * X[again], y[again])
