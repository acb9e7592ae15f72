"""SGD with its presets, Pegasos and Epoch-GD: lazy = dense, the equivalences of their papers, and what is refused."""

from __future__ import annotations

from math import exp, expm1, log1p, sqrt

import numpy as np
import pytest
from combinations import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sparse_rows import D, N, close, same_bits, stream

from onlinear import DivergenceError, Learner
from onlinear.solvers.core.signs import drifted
from onlinear.solvers.epoch_gd import epoch_of

LAZY = [
    ("sgd", "logistic", "none", "none"),
    ("sgd,schedule=constant,eta=0.3", "hinge", "l2,l2=0.4", "none"),
    ("sgd,schedule=constant,eta=1", "hinge", "l2,l2=1", "uniform"),
    ("sgd,schedule=constant,eta=1", "hinge", "l2,l2=1.7", "weighted-t"),
    ("sgd,schedule=constant,eta=0.5", "logistic", "l2,l2=1.9", "uniform-post"),
    ("sgd,radius=0.3,eta=2", "hinge", "l2,l2=0.1", "weighted-t1"),
    ("sgd,radius=0.001,eta=2", "logistic", "none", "uniform"),
    ("sgd,radius=0.3,schedule=power,power=0.7,t0=2", "logistic", "none", "suffix,alpha=0.3,total=140"),
    ("asgd,schedule=two-phase,m=40,eta=0.2", "squared", "l2,l2=0.1", None),
    ("sgd-w", "hinge", "l2,l2=0.05", None),
    ("sgd-w,radius=2", "logistic", "l2,l2=0.05", "uniform"),
    ("pegasos", "hinge", "l2,l2=0.05", "none"),
    ("pegasos", "logistic", "l2,l2=0.05", "uniform"),
    ("pegasos,project=true", "hinge", "l2,l2=0.05", "uniform"),
    ("sgd,schedule=constant,eta=0.3", "hinge", "l1,l1=0.07", "none"),
    ("sgd,schedule=constant,eta=0.25", "logistic", "l1,l1=0.3", "none"),
]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("solver", "loss", "penalty", "average"), LAZY)
def test_lazy_run_is_the_dense_recursion_wherever_it_is_read(solver, loss, penalty, average, intercept):
    X, y, s = stream()
    s = np.minimum(s, 1.0)

    def learner() -> Learner:
        return Learner(solver, loss, penalty, average, fit_intercept=intercept, n_features=D)

    lazy, unread, dense = learner(), learner(), reference(learner())
    assert lazy.engine.lazy
    for begin, end in ((0, 1), (1, 2), (2, 63), (63, 65), (65, 129), (129, N)):
        lazy.learn(X[begin:end], y[begin:end], s[begin:end])
        dense.learn(X[begin:end], y[begin:end], s[begin:end])
        for averaged in (False, True):
            close(lazy.weights(averaged), dense.weights(averaged))
            assert lazy.intercept(averaged) == pytest.approx(dense.intercept(averaged), rel=1e-10, abs=1e-12)
    assert lazy.progressive_loss == pytest.approx(dense.progressive_loss, rel=1e-10)

    same_bits(lazy, unread.learn(X, y, s))


@pytest.mark.parametrize(("solver", "loss", "penalty", "average"), LAZY)
def test_one_lazy_step_is_one_dense_step_for_any_step_size(solver, loss, penalty, average):
    X, y, _ = stream(1)
    X = X[np.diff(X.indptr) > 0]
    start = np.random.default_rng(2).standard_normal(D)
    for factor in (1e-9, 1.0) if "project" in solver else (1e-9, 1.0, 1e9):
        arguments = (solver, f"{loss},factor={factor}", penalty, average)
        lazy = Learner(*arguments, n_features=D, start=start)
        dense = reference(Learner(*arguments, n_features=D, start=start), start)
        close(lazy.learn(X[:1], y[:1]).weights(), dense.learn(X[:1], y[:1]).weights())


@pytest.mark.parametrize("seed", range(3))
def test_features_that_grow_give_the_bits_of_a_known_size(seed):
    X, y, _ = stream(seed)
    for solver, penalty, average in (("sgd", "l2,l2=0.1", "uniform"), ("sgd,schedule=constant", "l1,l1=0.01", None)):
        known, growing = (Learner(solver, "hinge", penalty, average, n_features=d) for d in (D, None))
        known.learn(X, y)
        for i in range(N):
            growing.learn(X[i], y[i : i + 1])
        np.testing.assert_array_equal(growing.weights(True), known.weights(True)[: growing.size])
        assert not known.weights(True)[growing.size :].any()


def test_l1_needs_the_dense_step_where_sign_w_has_no_closed_form():
    for solver, penalty, average, reason in (
        ("sgd", "l1,l1=0.1", None, "constant step"),
        ("sgd,schedule=constant", "elastic-net,l1=0.1,l2=0.1", None, "l2"),
        ("sgd,schedule=constant", "l1,l1=0.1", "uniform", "averages"),
        ("sgd,schedule=constant,radius=1", "l1,l1=0.1", None, "projection"),
        ("sgd-w", "elastic-net,l1=0.1,l2=0.1", None, "constant step"),
        ("epoch-gd", "elastic-net,l1=0.1,l2=0.1", None, "l2"),
    ):
        engine = Learner(solver, "hinge", penalty, average, n_features=D).engine
        assert not engine.lazy
        assert reason in engine.why


@given(w=st.floats(-50.0, 50.0), h=st.floats(0.01, 30.0), n=st.integers(0, 300))
@settings(deadline=None)
def test_drift_is_the_repeated_sign_step(w, h, n):
    want = w
    for _ in range(n):
        want -= h * np.sign(want)
    off = abs(w) / h % 1.0
    if min(off, 1.0 - off) * h > 1e-9 or n * h < abs(w):
        assert drifted(w, h, float(n)) == pytest.approx(want, abs=1e-11)


def test_drift_of_exact_multiples_ends_at_zero():
    assert [drifted(1.5, 0.5, float(n)) for n in range(6)] == [1.5, 1.0, 0.5, 0.0, 0.0, 0.0]
    assert [drifted(-0.75, 0.5, float(n)) for n in range(5)] == [-0.75, -0.25, 0.25, -0.25, 0.25]


# --- the papers' identities ------------------------------------------------------------------------------------------


def test_pegasos_telescopes_to_the_sum_of_its_margin_errors():
    X, y, _ = stream()
    lam = 0.03
    learner = Learner("pegasos", "hinge", f"l2,l2={lam}", n_features=D)
    total = np.zeros(D)
    for i in range(N):
        score = learner.learn_one(X[i].indices, X[i].data, y[i])
        total += (y[i] * score < 1.0) * y[i] * X[i].toarray()[0]
        close(learner.weights(), total / (lam * (i + 1)))


def test_sgd_w_telescopes():
    X, y, _ = stream()
    sigma = 0.03
    learner = Learner("sgd-w", "hinge", f"l2,l2={sigma}", n_features=D)
    total, weighted = np.zeros(D), np.zeros(D)
    for t in range(1, N + 1):
        weighted += t * learner.weights()
        score = learner.learn_one(X[t - 1].indices, X[t - 1].data, y[t - 1])
        total += (2.0 * t / sigma) * (y[t - 1] * score < 1.0) * y[t - 1] * X[t - 1].toarray()[0]
        close(learner.weights(), total / (t * (t + 1)))
    close(learner.weights(average=True), 2.0 * weighted / (N * (N + 1)))


def test_asgd_and_the_suffix_are_means_of_the_iterates():
    X, y, _ = stream()
    last = Learner("sgd", "logistic", n_features=D)
    iterates = [last.weights()]
    for i in range(N):
        iterates.append(last.learn(X[i], y[i : i + 1]).weights())
    uniform = Learner("asgd", "logistic", n_features=D).learn(X, y)
    suffix = Learner("sgd-suffix", "logistic", n_features=D, total=N).learn(X, y)
    shorter = Learner("sgd", "logistic", average=f"suffix,alpha=0.3,total={N}", n_features=D).learn(X, y)
    close(uniform.weights(True), np.mean(iterates[:-1], axis=0))
    close(suffix.weights(True), np.mean(iterates[N // 2 : -1], axis=0))
    close(shorter.weights(True), np.mean(iterates[N - int(0.3 * N) : -1], axis=0))
    close(uniform.weights(False), iterates[-1])


@pytest.mark.parametrize("solver", ["sgd,radius=0.5,eta=3", "pegasos,project=true"])
def test_projected_weights_stay_in_their_ball(solver):
    X, y, _ = stream()
    learner = Learner(solver, "hinge", "l2,l2=0.04", n_features=D)
    radius = 0.5 if "radius" in solver else 1.0 / sqrt(0.04)
    norms = [np.linalg.norm(learner.learn(X[i], y[i : i + 1]).weights()) for i in range(N)]
    assert max(norms) <= radius * (1.0 + 1e-12)
    assert max(norms) == pytest.approx(radius)


def test_a_row_far_outside_the_ball_costs_the_average_no_digits():
    X, y, _ = stream()
    y = np.where(np.arange(N) % 7 == 3, 1e9 * y, y)

    def learner() -> Learner:
        return Learner("sgd,radius=0.5,eta=3", "squared", "l2,l2=0.04", "weighted-t1", n_features=D)

    np.testing.assert_allclose(
        learner().learn(X, y).weights(True), reference(learner()).learn(X, y).weights(True), rtol=1e-12, atol=1e-13
    )


def test_intercept_of_a_tied_step_moves_by_at_most_one_over_sqrt_t():
    empty = sparse.csr_matrix((4, 1))
    learner = Learner("pegasos", "hinge", "l2,l2=0.01", fit_intercept=True, n_features=1)
    want = 0.0
    for t in range(1, 5):
        want += (want < 5.0 * 0.2) / sqrt(t)
        learner.learn(empty[:1], [1.0])
        assert learner.intercept() == pytest.approx(want)
        assert learner.weights() == [0.0]


def epochs_by_hand(X: np.ndarray, y: np.ndarray, sigma: float, T1: int) -> tuple[np.ndarray, np.ndarray]:
    """The last iterate and the mean of the last complete epoch."""
    w, mean, eta, length, total, left = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 1.0 / sigma, T1, 0.0, T1
    for x, label in zip(X, y, strict=True):
        total = total + w
        w = w - eta * (sigma * w - (label * (w @ x) < 1.0) * label * x)
        left -= 1
        if left == 0:
            w = mean = total / length
            eta, length, total = eta / 2.0, 2 * length, 0.0
            left = length
    return w, mean


@pytest.mark.parametrize("T1", [1, 4, 7])
def test_epoch_gd_is_sgd_restarted_at_the_mean_of_each_epoch(T1):
    X, y, _ = stream()
    learner = Learner(f"epoch-gd,T1={T1}", "hinge", "l2,l2=0.05", n_features=D)
    assert not learner.weights(average=True).any()
    for i in range(N):
        learner.learn(X[i], y[i : i + 1])
        last, mean = epochs_by_hand(X[: i + 1].toarray(), y[: i + 1], 0.05, T1)
        close(learner.weights(), last)
        close(learner.weights(average=True), mean)
    close(learner.variables()["wbar"], mean)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_epoch_gd_lazy_is_dense_and_ignores_the_cut(loss, intercept):
    X, y, s = stream()

    def learner() -> Learner:
        return Learner("epoch-gd", loss, "l2,l2=0.05", fit_intercept=intercept, n_features=D)

    whole, cut, dense = learner().learn(X, y, s), learner(), reference(learner()).learn(X, y, s)
    for piece in np.array_split(np.arange(N), [3, 4, 5, 12, 13, 29, 100]):
        cut.learn(X[piece], y[piece], s[piece])
        cut.weights(average=True)
    close(whole.weights(), dense.weights())
    close(whole.weights(average=True), dense.variables()["wbar"])
    assert whole.intercept() == pytest.approx(dense.intercept(), rel=1e-10)
    same_bits(whole, cut)


def test_epoch_gd_with_l1_takes_the_dense_step():
    X, y, _ = stream()
    learner = Learner("epoch-gd", "hinge", "elastic-net,l1=0.01,l2=0.05", n_features=D).learn(X, y)
    small = Learner("epoch-gd", "hinge", "elastic-net,l1=1e-13,l2=0.05", n_features=D).learn(X, y)
    lazy = Learner("epoch-gd", "hinge", "l2,l2=0.05", n_features=D).learn(X, y)
    np.testing.assert_allclose(small.weights(True), lazy.weights(True), atol=1e-9)
    assert np.abs(learner.weights(True) - lazy.weights(True)).max() > 1e-4


def test_epochs_double():
    ends = [epoch_of(t, 4.0)[1] for t in (1, 4, 5, 12, 13, 28, 29)]
    assert ends == [4.0, 4.0, 12.0, 12.0, 28.0, 28.0, 60.0]
    engine = Learner("epoch-gd", "hinge", "l2,l2=0.5", n_features=1).engine
    assert [engine.eta(t) for t in (1, 4, 5, 13)] == [2.0, 2.0, 1.0, 0.5]


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["none", "weighted-t1"])
@pytest.mark.parametrize("shrink", [1.0, 1.5, 1.0 - 1e-17, 0.999, 2.0])
def test_fast_decay_neither_underflows_nor_loses_averages(shrink, average):
    """eta l2 = 1 makes al exactly 0; 0.999 makes it 1e-3 per step; 1.5 and 2 change its sign."""
    X, y, _ = stream(3)
    X, y = sparse.vstack([X] * 4, "csr"), np.tile(y, 4)

    def learner() -> Learner:
        return Learner("sgd,schedule=constant,eta=0.5", "logistic", f"l2,l2={2.0 * shrink}", average, n_features=D)

    lazy, dense = learner().learn(X, y), reference(learner()).learn(X, y)
    close(lazy.weights(), dense.weights())
    close(lazy.weights(True), dense.weights(True))


def test_a_long_decay_and_its_average_keep_their_digits():
    """The same rounding of 1 - eta l2 in every step would cost 2e-12 here, and 1e-8 after 1e9 steps."""
    h, n = 2e-6 / 3.0, 200_000
    learner = Learner("sgd,schedule=constant,eta=1", "hinge", f"l2,l2={h!r}", "uniform", n_features=1, start=[1.0])
    learner.learn(sparse.csr_matrix((n, 1)), np.ones(n))
    assert learner.weights()[0] == pytest.approx(exp(n * log1p(-h)), rel=1e-14)
    assert learner.weights(True)[0] == pytest.approx(-expm1(n * log1p(-h)) / (h * n), rel=1e-13)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # where kernels run interpreted
def test_a_diverging_run_says_so():
    X, y, _ = stream()
    rows, labels = sparse.vstack([X] * 20, "csr"), np.tile(y, 20)
    growing = Learner("sgd,schedule=constant,eta=5", "hinge", "l2,l2=1", n_features=D)
    with pytest.raises(DivergenceError, match=r"row \d+.*implicit"):
        growing.learn(rows, labels)
    with pytest.raises(DivergenceError):
        growing.weights()
    with pytest.raises(DivergenceError):
        Learner("sgd,schedule=constant,eta=1e9", "exponential", n_features=D).learn(rows, labels)


def test_rows_of_weight_zero_only_decay():
    X, y, _ = stream()
    start = np.arange(1.0, D + 1.0)
    learner = Learner("sgd,schedule=constant,eta=0.1", "hinge", "l2,l2=0.5", n_features=D, start=start)
    learner.learn(X, y, np.zeros(N))
    np.testing.assert_allclose(learner.weights(), start * 0.95**N, rtol=1e-12)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "average", "message"),
    [
        ("sgd", "hinge", "l1,l1=0.1,lower=0", None, "bounds"),
        ("sgd", "hinge", "fused-lasso,tv=0.1", None, "total variation"),
        ("sgd-w", "hinge", "none", None, "l2"),
        ("pegasos", "hinge", "l1,l1=0.1", None, "l2"),
        ("epoch-gd", "hinge", "none", None, "l2"),
        ("epoch-gd", "hinge", "l2,l2=0.1", "uniform", "last complete epoch"),
        ("epoch-gd,T1=2.5", "hinge", "l2,l2=0.1", None, "whole number"),
        ("epoch-gd", "hinge", "l2,l2=0.1,upper=1", None, "bounds"),
        ("sgd-suffix", "hinge", "none", None, "total"),
        ("pegasos,project=true", "logistic", "l2,l2=0.1", None, "hinge"),
        ("pegasos,project=true", "hinge,factor=2", "l2,l2=0.1", None, "factor"),
        ("pegasos,project=true", "hinge,margin=3", "l2,l2=0.1", None, "margin"),
        ("pegasos,project=true", "hinge", "elastic-net,l1=0.1,l2=0.1", None, "l1"),
    ],
)
def test_combinations_without_a_correct_form_are_refused(solver, loss, penalty, average, message):
    with pytest.raises(ValueError, match=message):
        Learner(solver, loss, penalty, average, n_features=D)


def test_projected_pegasos_refuses_weights_above_one_and_learns_nothing():
    X, y, _ = stream()
    learner = Learner("pegasos,project=true", "hinge", "l2,l2=0.1", n_features=D).learn(X[:5], y[:5])
    before = learner.weights()
    with pytest.raises(ValueError, match=r"at most 1, got 1\.5"):
        learner.learn(X, y, np.full(N, 1.5))
    assert learner.t == 5
    np.testing.assert_array_equal(learner.weights(), before)
    Learner("pegasos", "hinge", "l2,l2=0.1", n_features=D).learn(X, y, np.full(N, 1.5))
