"""Softmax: the references of ONLINEAR_GOLDEN_0_2, its implicit step, its recursions in NumPy, and what joined outputs keep."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from seldom import seldom
from test_ftrl import cases
from test_golden import Case, text

from onlinear import Learner, load
from onlinear.compiled import kernel
from onlinear.errors import DivergenceError
from onlinear.softmax import ROWS, START, STEP_SIZE, THETA, Softmax, find_thetas

D, N = 30, 160
NET = "elastic-net,l1=0.004,l2=0.02"


@kernel
def each(numbers, own):
    for i in range(own.shape[0]):
        find_thetas(numbers[i], numbers.shape[2], own[i])


def thetas(a, c, own):
    """theta of rows of scores a (n, K) and sizes c."""
    numbers = np.zeros((len(a), ROWS, a.shape[1]))
    numbers[:, START], numbers[:, STEP_SIZE] = a, c
    each(numbers, own)
    return numbers[:, THETA]


def one_hot(own, outputs):
    return (np.arange(outputs) == np.asarray(own)[..., None]).astype(float)


def rows(outputs, seed=0):
    """Sparse rows with an empty one, their classes, and weights of which one is 0."""
    rng = np.random.default_rng([outputs, seed])
    dense = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.2)
    dense[3] = 0.0
    X = sparse.csr_array(dense)
    y = (X @ rng.normal(size=(D, outputs)) * 2.0 + rng.gumbel(size=(N, outputs))).argmax(axis=1)
    s = rng.uniform(0.2, 2.0, N)
    s[7] = 0.0
    return X, y, s


# --- the step --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", cases("softmax_fiol"))
def test_replay(path):
    case = Case(path)
    solver, outputs = text("fiol", case.schedule()), case.arrays["w"].shape[1]
    run = case.learner(solver, "softmax", case.penalty(), n_outputs=outputs)
    stored = dict(zip(case.k.tolist(), range(len(case.k)), strict=True))
    for t, i in enumerate(case.order):
        run.learn(case.X[[i]], case.y[[i]], case.step_weights[t : t + 1])
        if t + 1 in stored:
            case.check("W_k", run.weights(), at=stored[t + 1])
    case.check("w", run.weights())
    case.nothing_left()


@pytest.mark.parametrize("path", cases("kernel"))
def test_replay_of_the_step(path):
    stored = np.load(path)
    found = thetas(stored["a"], stored["c"], stored["y"].astype(np.int64))
    np.testing.assert_allclose(found, stored["theta"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("outputs", [2, 3, 10, 100])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-9, 1e-3, 1.0, 1e3, 1e9, "mixed"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0, 1e4])
def test_the_step_ends_where_its_slope_is(outputs, size, spread):
    rng = np.random.default_rng(outputs)
    a, own = rng.normal(size=(200, outputs)) * spread, rng.integers(0, outputs, 200)
    c = np.exp(rng.normal(size=a.shape) * 6.0) * (rng.random(a.shape) > 0.2) if size == "mixed" else np.full(a.shape, size)
    theta = thetas(a, c, own)
    p = theta + one_hot(own, outputs)
    assert np.all(np.isfinite(theta))
    slack = 1e-15 * (100.0 + np.abs(a).max())
    assert np.all((p >= -slack) & (p <= 1.0 + slack))
    np.testing.assert_allclose(theta.sum(axis=1), 0.0, atol=1e-14)
    live = p > max(1e-10, 100.0 * slack)
    level = a - c * theta - np.log(np.where(live, p, 1.0))  # the same for all classes of a row, but for rounding
    best = level[np.arange(len(p)), p.argmax(axis=1)][:, None]
    room = 1e-13 * (1.0 + np.abs(a) + c).max(axis=1, keepdims=True) + slack / np.where(live, p, 1.0) + slack * c.max()
    assert np.all(~live | (np.abs(level - best) <= room))


@pytest.mark.parametrize("outputs", [2, 3, 40])
@pytest.mark.parametrize("size", [1e10, 1e16, 1e100, 1e300])
@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0, 1e12])
def test_the_largest_steps_end_where_their_slope_is(outputs, size, spread):
    """p of the row's class is 1 but for rounding: the slopes of the others say where all scores are."""
    rng = np.random.default_rng(outputs)
    a, own = rng.normal(size=(200, outputs)) * spread, rng.integers(0, outputs, 200)
    c = size * rng.uniform(0.5, 2.0, a.shape)
    theta = thetas(a, c, own)
    mine = one_hot(own, outputs) > 0.0
    q = np.where(mine, 0.0, theta).sum(axis=1)
    assert np.all(np.isfinite(theta))
    near = (q < 0.5)[:, None] & (mine | (theta > 1e-290))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = a - c * theta - np.where(mine, np.log1p(-q)[:, None], np.log(theta))
    level = np.where(near, level, 0.0)
    best = np.where(mine, level, 0.0).sum(axis=1, keepdims=True)
    assert near[mine].sum() > 50 or size < spread
    assert np.all(~near | (np.abs(level - best) <= 1e-13 * (100.0 + np.abs(a).max() + np.abs(best))))


@pytest.mark.parametrize("x", [1e5, 1e10, 1e20, 1e100, 1e150])
def test_a_row_far_from_all_others_is_learnt_as_any_row(x):
    learner = Learner("fiol,eta=1,power=0", "softmax", n_outputs=3, n_features=2).learn([[1.0, 0.0], [0.0, x]], [0, 1])
    scores = learner.predict([[0.0, x]])[0]
    assert scores.argmax() == 1
    assert 10.0 < scores[1] - scores[0] < 700.0


@pytest.mark.parametrize("penalty", ["l1=0.5", "l1=3", "elastic-net,l1=0.5,l2=2"])
def test_with_a_penalty_a_row_far_from_all_others_ends_where_one_less_far_does(penalty):
    """What a row of size x leaves tends to a limit, by 1/x: its class is not below the others, and they give in no more."""

    def learned(seed, x):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(8, 3 + seed % 3)), rng.integers(0, 3 + seed, 8)
        X[7] *= x
        run = Learner("fiol,eta=1,power=0", "softmax", penalty, n_outputs=3 + seed, fit_intercept=seed == 2)
        run.learn(X[:7], y[:7]).learn(X[7:], [run.predict(X[7:])[0].argmin()], [0.5])
        return run.weights()

    for seed in range(5):
        limit = learned(seed, 1e9)
        for x in (1e11, 1e12, 1e14, 1e16, 1e20, 1e100, 1e149):
            np.testing.assert_allclose(learned(seed, x), limit, rtol=0, atol=1e-6)


def test_two_classes_are_the_logistic_loss_of_double_steps():
    X, y, s = rows(2)
    for solver in ("fiol,eta={}", "comid,eta={}"):
        both = Learner(solver.format(0.7), "softmax", fit_intercept=True, n_outputs=2).learn(X, y, s)
        one = Learner(solver.format(1.4), "logistic", fit_intercept=True).learn(X, 2.0 * y - 1.0, s)
        np.testing.assert_allclose(both.weights()[:, 1] - both.weights()[:, 0], one.weights(), atol=1e-11)
        np.testing.assert_allclose(np.diff(both.intercept()), one.intercept(), atol=1e-11)
        assert both.progressive_loss == pytest.approx(one.progressive_loss, rel=1e-12)


# --- recursions ------------------------------------------------------------------------------------------------------


def soft(v, k):
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def comid(X, y, s, outputs, l1, l2, eta):
    """w, b, their weighted-t1 averages, and the mean loss."""
    w, b = np.zeros((X.shape[1], outputs)), np.zeros(outputs)
    sums, sum_b, total, loss = w.copy(), b.copy(), 0.0, 0.0
    for t, (x, own, weight) in enumerate(zip(X.toarray(), y, s, strict=True), start=1):
        z = x @ w + b
        loss -= weight * log_softmax(z)[own]
        sums, sum_b, total = sums + (t + 1) * w, sum_b + (t + 1) * b, total + t + 1
        theta, step = weight * (softmax(z) - one_hot(own, outputs)), eta / np.sqrt(t)
        w = soft(w - step * np.outer(x, theta), step * l1) / (1.0 + step * l2)
        b = b - step * theta
    return w, b, sums / total, sum_b / total, loss / len(y)


@pytest.mark.parametrize("outputs", [2, 3, 8, 9, 17])
@pytest.mark.parametrize("average", [None, seldom("weighted-t1"), seldom("adaptive")])
def test_comid_is_its_recursion(outputs, average):
    X, y, s = rows(outputs)
    w, b, mean, mean_b, loss = comid(X, y, s, outputs, 0.004, 0.02, 0.8)
    run = Learner("comid,eta=0.8", "softmax", NET, average, fit_intercept=True, n_outputs=outputs).learn(X, y, s)
    np.testing.assert_allclose(run.weights(), w, atol=1e-12)
    np.testing.assert_allclose(run.intercept(), b, atol=1e-12)
    assert np.array_equal(run.weights() == 0.0, w == 0.0)
    assert run.progressive_loss == pytest.approx(loss, rel=1e-12)
    if average == "weighted-t1":
        np.testing.assert_allclose(run.weights(average=True), mean, atol=1e-12)
        np.testing.assert_allclose(run.intercept(average=True), mean_b, atol=1e-12)
    if average == "adaptive":
        assert any(np.allclose(run.weights(average=True), one, atol=1e-12) for one in (w, mean))


@pytest.mark.parametrize("solver", ["sgd,eta=0.8", "comid,eta=0.8", seldom("asgd,eta=0.8")])
def test_sgd_is_comid_without_a_penalty(solver):
    X, y, s = rows(4)
    w = comid(X, y, s, 4, 0.0, 0.0, 0.8)[0]
    np.testing.assert_allclose(
        Learner(solver, "softmax", fit_intercept=True, n_outputs=4).learn(X, y, s).weights(), w, atol=1e-12
    )
    implicit = [Learner(f"{name},eta=3", "softmax", n_outputs=4).learn(X, y, s) for name in ("implicit-sgd", "fiol")]
    assert np.array_equal(implicit[0].weights(), implicit[1].weights())


@pytest.mark.parametrize("fixed", [False, True])
def test_ftrl_is_its_recursion(fixed):
    outputs, l1, l2, eta, beta = 11, 0.004, 0.02, 0.3, 1.0
    X, y, s = rows(outputs)
    z, n, w = (np.zeros((D + 1, outputs)) for _ in range(3))
    free = np.append(np.ones(D), 0.0)[:, None]
    for t, (x, own, weight) in enumerate(zip(X.toarray(), y, s, strict=True), start=1):
        x = np.append(x, 1.0)
        g = np.outer(x, weight * (softmax(x @ w) - one_hot(own, outputs)))
        before, n = (beta + np.sqrt(n)) / eta, n + g * g
        after, times = (beta + np.sqrt(n)) / eta, free * (1.0 if fixed else t)
        z += g - (after - before) * w
        w = -soft(z, times * l1) / (after + times * l2)
    solver = f"ftrl,eta={eta}" + (",fixed=true" if fixed else "")
    run = Learner(solver, "softmax", f"elastic-net,l1={l1},l2={l2}", fit_intercept=True, n_outputs=outputs).learn(X, y, s)
    np.testing.assert_allclose(run.weights(), w[:-1], atol=1e-12)
    np.testing.assert_allclose(run.intercept(), w[-1], atol=1e-12)


def implicit_ftrl(X, y, s, outputs, eta):
    """Implicit FTRL without a penalty in the metric that all outputs share, the intercept as a last column: the weights, and
    their averages with weights t + 1."""
    w, mean, total = np.zeros((D + 1, outputs)), np.zeros((D + 1, outputs)), 0.0
    G, N = np.zeros(D + 1), 0.0
    for t, (x, own, weight) in enumerate(zip(X.toarray(), y, s, strict=True), start=1):
        total += t + 1.0
        mean += (w - mean) * (t + 1.0) / total
        x = np.append(x, 1.0) * (weight > 0.0)
        on = np.flatnonzero(x)
        N += x @ x
        G[on] += (weight * np.linalg.norm(softmax(x @ w) - one_hot(own, outputs)) * x[on]) ** 2
        inverse = eta * np.sqrt(t / N) / np.sqrt(G[on]) if len(on) else 0.0
        c = np.sum(x[on] ** 2 * inverse)
        theta = weight * thetas((x @ w)[None], np.full((1, outputs), weight * c), np.array([own]))[0]
        w[on] -= np.outer(x[on] * inverse, theta)
    return w, mean


@pytest.mark.parametrize("copies", [1, seldom(40)])
@pytest.mark.parametrize("outputs", [3, 11])
def test_implicit_ftrl_is_its_recursion(outputs, copies):
    X, y, s = rows(outputs)
    X, y, s = sparse.vstack([X] * copies).tocsr(), np.tile(y, copies), np.tile(s, copies)
    w, mean = implicit_ftrl(X, y, s, outputs, 3.0)
    run = Learner("implicit-ftrl,eta=3", "softmax", "none", "weighted-t1", fit_intercept=True, n_outputs=outputs).learn(X, y, s)
    for average, wanted in ((False, w), (True, mean)):
        np.testing.assert_allclose(run.weights(average), wanted[:-1], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(run.intercept(average), wanted[-1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("outputs", [3, seldom(9)])
@pytest.mark.parametrize("eta", [0.05, 3.0, 1e3])
@pytest.mark.parametrize(
    ("penalty", "average"),
    [
        ("l1=0.002", "none"),
        ("l1=0.3", "none"),
        ("l2=0.02", "none"),
        (NET, "none"),
        seldom("l2=0.02", "weighted-t1"),
        seldom(NET, "uniform-post"),
    ],
)
def test_implicit_ftrl_with_a_penalty_is_the_minimiser_it_is_defined_by(outputs, eta, penalty, average):
    X, y, s = rows(outputs)
    run = Learner(f"implicit-ftrl,eta={eta}", "softmax", penalty, average, fit_intercept=True, n_features=D, n_outputs=outputs)
    z, w, before = (np.zeros((D + 1, outputs)) for _ in range(3))
    G, sigma, N, mean, total, free = (
        np.zeros(D + 1),
        np.zeros(D + 1),
        0.0,
        np.zeros((D + 1, outputs)),
        0.0,
        np.arange(D + 1) < D,
    )
    for t in range(1, 60 + 1):
        x, own, weight = np.append(X[[t - 1]].toarray()[0], 1.0), y[t - 1], s[t - 1]
        run.learn(X[[t - 1]], y[t - 1 : t], s[t - 1 : t])
        l1, l2, before = t * run.penalty.l1 * free, t * run.penalty.l2 * free, w
        if weight > 0.0:
            on = np.flatnonzero(x)
            N += x @ x
            G[on] += (weight * np.linalg.norm(softmax(x @ w) - one_hot(own, outputs)) * x[on]) ** 2
            new = np.maximum(np.sqrt(G), 1e-8 * l1) * np.sqrt(N / t) / eta
            z[on] -= (new - sigma)[on, None] * w[on]
            sigma[on] = new[on]
            theta = run.variables()["theta"]
            z += np.outer(x, theta)
        w = -soft(z, l1[:, None]) / np.maximum(sigma + l2, 1e-300)[:, None]
        if weight > 0.0:
            wanted = weight * (softmax(x @ w) - one_hot(own, outputs))
            np.testing.assert_allclose(theta, wanted, rtol=1e-8, atol=1e-11 * (1.0 + np.abs(x @ w).max()))
        om = t + 1.0 if average == "weighted-t1" else 1.0
        mean, total = mean + om * (w if average == "uniform-post" else before), total + om
        np.testing.assert_allclose(run.weights(), w[:-1], rtol=1e-8, atol=1e-9 * (1.0 + np.abs(w).max()))
        assert np.array_equal(run.weights() == 0.0, w[:-1] == 0.0)
    np.testing.assert_allclose(run.intercept(), w[-1], rtol=1e-8, atol=1e-9)
    if average != "none":
        np.testing.assert_allclose(run.weights(average=True), mean[:-1] / total, rtol=1e-7, atol=1e-9)


def test_two_classes_in_one_metric_are_the_logistic_loss():
    X, y, s = rows(2)
    joint, single = (f"implicit-ftrl,eta={eta!r},intercept=0.6" for eta in (2.0, 2.0 * 2.0**0.5))
    both = Learner(joint, "softmax", average="uniform", fit_intercept=True, n_outputs=2).learn(X, y, s)
    alone = Learner(single, "logistic", average="uniform", fit_intercept=True)
    alone.learn(X, np.where(y == 0, 1.0, -1.0), s)
    for average in (False, True):
        w, b = both.weights(average), both.intercept(average)
        np.testing.assert_allclose(w[:, 0] - w[:, 1], alone.weights(average), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(b[0] - b[1], alone.intercept(average), rtol=1e-8, atol=1e-9)


def test_a_row_of_slope_0_moves_no_weight():
    X, y = sparse.csr_array([[1.0, 0.0], [1e4, 0.0], [1e4, 1.0]]), np.array([1, 1, 1])
    run = Learner("implicit-ftrl,eta=2", "softmax", "none", "weighted-t1", fit_intercept=True, n_outputs=3)
    before = run.learn(X[:2], y[:2]).weights()
    run.learn(X[[2]], y[2:])
    np.testing.assert_array_equal(run.weights(), np.vstack([before, np.zeros((2 - len(before), 3))]))
    assert run.t == 3


@pytest.mark.parametrize("eta", [1e-3, 1.0, 30.0, 1e4])
@pytest.mark.parametrize(
    "penalty", ["none", "l2=0.3", "l1=0.002", "l1=0.3", NET, "elastic-net,l1=0.01,l2=0.1,lower=-0.2,upper=0.1"]
)
def test_an_implicit_step_is_the_minimiser_it_is_defined_by(eta, penalty):
    outputs = 9
    X, y, s = rows(outputs)
    run = Learner(f"fiol,eta={eta}", "softmax", penalty, fit_intercept=True, n_outputs=outputs)
    for t in range(60):
        x, w, b = X[[t]].toarray()[0], run.weights() if t else np.zeros((D, outputs)), run.intercept()
        run.learn(X[[t]], y[t : t + 1], s[t : t + 1])
        theta, step = run.variables()["theta"], eta / np.sqrt(t + 1.0)
        w = w if len(w) == D else np.vstack([w, np.zeros((D - len(w), outputs))])
        new = run.penalty.prox((w - step * np.outer(x, theta)).ravel(), step).reshape(D, outputs)
        z = x @ new + b - step * theta
        slope = s[t] * (softmax(z) - one_hot(y[t], outputs))
        np.testing.assert_allclose(theta, slope, rtol=1e-9, atol=1e-11 * (1.0 + np.abs(z).max()))
        kept = run.weights()
        np.testing.assert_allclose(kept, new[: len(kept)], rtol=1e-9, atol=1e-9 * (1.0 + step))
    assert np.isfinite(run.progressive_loss)


class Given(NamedTuple):
    """The loss y s, whose slope and theta are the target: an output can be given the thetas of a joined one."""

    factor: float = 1.0

    def value(self, s: float, y: float) -> float:
        return y * s

    def slope(self, s: float, y: float) -> float:
        return y

    def theta(self, a: float, c: float, y: float) -> float:
        return y


@pytest.mark.parametrize("average", ["weighted-t1", "uniform-post", "suffix,alpha=0.5,total=160"])
@pytest.mark.parametrize("penalty", [seldom("none"), NET])
def test_averages_of_implicit_steps_are_those_of_outputs_alone(penalty, average):
    outputs = 9
    X, y, s = rows(outputs)
    run = Learner("fiol,eta=2", "softmax", penalty, average, fit_intercept=True, n_features=D, n_outputs=outputs)
    thetas = np.array([run.learn(X[[t]], y[t : t + 1], s[t : t + 1]).variables()["theta"] for t in range(N)])
    for k in range(outputs):
        alone = Learner("fiol,eta=2", Given(), penalty, average, fit_intercept=True, n_features=D).learn(X, thetas[:, k])
        for mean in (False, True):
            np.testing.assert_allclose(run.weights(mean)[:, k], alone.weights(mean), atol=1e-11)
            assert run.intercept(mean)[k] == pytest.approx(alone.intercept(mean), abs=1e-11)


# --- what every learner keeps ----------------------------------------------------------------------------------------

SETTINGS = [
    ("fiol,eta=2", "none", "adaptive"),
    ("fiol,eta=2", NET, "weighted-t1"),
    ("fiol,eta=2", "l1=0.01", None),
    ("comid", NET, None),
    seldom("comid", NET, "uniform-post"),
    ("ftrl", NET, "weighted-t1,masked=true"),
    ("implicit-ftrl", "none", "adaptive,calibrated=true"),
    ("implicit-ftrl", "l1=0.004", None),
    seldom("implicit-ftrl", NET, "adaptive"),
]


def same(one, other):
    for average in (False, True):
        assert np.array_equal(one.weights(average), other.weights(average))
        assert np.array_equal(one.intercept(average), other.intercept(average))
    assert one.progressive_loss == other.progressive_loss


@pytest.mark.parametrize(("solver", "penalty", "average"), SETTINGS)
@pytest.mark.parametrize("outputs", [seldom(3), 11])
def test_calls_containers_columns_and_files_change_no_bit(solver, penalty, average, outputs, tmp_path):
    X, y, s = rows(outputs)
    whole = Learner(solver, "softmax", penalty, average, fit_intercept=True, n_features=D, n_outputs=outputs).learn(X, y, s)
    cut = Learner(solver, "softmax", penalty, average, fit_intercept=True, n_outputs=outputs)
    targets = np.where(one_hot(y, outputs) > 0.0, 1.0, -1.0)
    for i in range(20):
        assert np.shape(cut.learn_one(X[[i]].indices, X[[i]].data, y[i])) == (outputs,) if s[i] == 1.0 else True
        if s[i] != 1.0:
            cut.learn(X[[i]], targets[[i]], s[[i]])
    cut.learn(X[20:21].toarray(), y[20:21], s[20:21]).learn(X[21:70].toarray(), y[21:70], s[21:70])
    path = tmp_path / "model.onlinear"
    cut.save(path)
    cut = pickle.loads(pickle.dumps(load(path)))
    cut.learn(sparse.csc_array(X)[70:, :], y[70:], s[70:])
    cut.grow(D)
    same(whole, cut)
    assert np.array_equal(whole.predict(X), cut.predict(X))
    assert whole.objective(X, y, s) == cut.objective(X, targets, s)


def test_a_run_visits_and_restarts_its_sums_without_a_trace():
    X, y, s = rows(3)
    X, y, s = sparse.vstack([X] * 40).tocsr(), np.tile(y, 40), np.tile(s, 40)
    w, _, mean, _, loss = comid(X, y, s, 3, 0.0, 0.9, 3.0)
    run = Learner("comid,eta=3", "softmax", "l2=0.9", "weighted-t1", fit_intercept=True, n_outputs=3).learn(X, y, s)
    np.testing.assert_allclose(run.weights(), w, atol=1e-11)
    np.testing.assert_allclose(run.weights(average=True), mean, atol=1e-11)
    assert run.progressive_loss == pytest.approx(loss, rel=1e-11)


def test_steps_that_overshoot_name_the_row():
    X = sparse.csr_array(np.full((40, 2), 1e150))
    with pytest.raises(DivergenceError, match="at row"):
        Learner("comid,eta=1e200", "softmax", n_outputs=3).learn(X, np.arange(40) % 3)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"solver": "rda"}, "rda has no form for softmax"),
        ({"solver": "odrs"}, "odrs has no form for softmax"),
        ({"solver": "implicit-ftrl", "penalty": "l1=0.1,lower=0"}, "implicit-ftrl takes the penalties"),
        ({"solver": "rda", "forget": 100.0}, "rda has no form for softmax"),
        ({"solver": "fiol,inner=sort"}, "fiol has no form for softmax"),
        ({"solver": "sgd", "penalty": "l2=0.1"}, "sgd has no form for softmax"),
        ({"penalty": "total-variation,tv=0.1", "solver": "comid", "n_features": D}, "comid has no form for softmax"),
        ({"n_outputs": 1}, "needs n_outputs="),
    ],
)
def test_what_has_no_form_is_refused(settings, wanted):
    arguments = {"solver": "fiol", "n_outputs": 3} | settings
    with pytest.raises(ValueError, match=wanted):
        Learner(loss="softmax", **arguments)


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        ([0, 3], "a class from 0 to 2 for this loss, got 3 at row 1"),
        ([0, 0.5], "got 0.5 at row 1"),
        ([[1, -1, -1], [1, 1, -1]], r"\+1 for one class of a row, got 2 at row 1"),
        ([[1, -1, -1], [0, 1, -1]], "-1 or"),
    ],
)
def test_targets_that_name_no_class_are_refused(y, wanted):
    learner = Learner("fiol", "softmax", n_outputs=3)
    with pytest.raises(ValueError, match=wanted):
        learner.learn(np.eye(2), y)
    assert learner.t == 0


def test_values_and_slopes_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    z, own, loss = rng.normal(size=(50, 6)) * 300.0, rng.integers(0, 6, 50), Softmax()
    log_p = loss.log_probabilities(z, 1)
    np.testing.assert_allclose(log_p, log_softmax(z, axis=1), atol=1e-12)
    np.testing.assert_allclose(loss.probability(z), softmax(z, axis=1), atol=1e-15)
    signs = np.where(one_hot(own, 6) > 0.0, 1.0, -1.0)
    values = np.vectorize(loss.value)(log_p, signs).sum(axis=1)
    np.testing.assert_allclose(values, -log_softmax(z, axis=1)[np.arange(50), own], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.vectorize(loss.slope)(log_p, signs), softmax(z, axis=1) - one_hot(own, 6), atol=1e-12)
