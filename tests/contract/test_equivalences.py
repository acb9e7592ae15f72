"""Identities that tie the methods together, and that catch a wrong sign, index or factor at once (MATH 16)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import NAMES, Case, compiled_cases
from implicit_step import implicit_step

from onlinear import Learner
from onlinear.learner.parts import LOSSES, build_loss, build_penalty
from onlinear.solvers.fiol import INNER

N, D = 160, 7  # rows enough for two visits of all coordinates
PENALTIES = ("none", "l1,l1=0.02", "l2,l2=0.3", "elastic-net,l1=0.02,l2=0.3")


def problem(loss: str, intercept_column: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)
    X[rng.random(N) < 0.1] = 0.0
    X[:, 5] = 0.0  # never seen
    if intercept_column:
        X[:, 0] = 1.0
    labels = getattr(build_loss(loss), "labels", "real")
    noisy = X @ rng.normal(size=D) + 0.3 * rng.normal(size=N)
    y = {"signs": np.where(noisy > 0.0, 1.0, -1.0), "counts": rng.poisson(1.0, N).astype(float)}.get(labels, noisy)
    return sp.csr_matrix(X), y


def run(solver: str, loss: str, penalty: str = "none", average: str = "none", **options: Any) -> Learner:
    X, y = problem(loss, intercept_column=solver.startswith("csgd"))
    return Learner(solver, loss, penalty, average, n_features=D, **options).learn(X, y)


def trajectory(solver: str, loss: str, penalty: str = "none", **options: Any) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """The weights before the first and after every row, and all variables with them."""
    X, y = problem(loss, intercept_column=solver.startswith("csgd"))
    learner = Learner(solver, loss, penalty, "none", n_features=D, **options)
    weights, variables = [learner.weights()], [learner.variables()]
    for i in range(N):
        learner.learn(X[i], y[i : i + 1])
        weights.append(learner.weights())
        variables.append(learner.variables())
    return np.array(weights), variables


def assert_same(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * max(1e-300, np.abs(b).max(initial=0.0)))


# --- one method under two names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_sadmm_is_douglas_rachford(loss: str, penalty: str) -> None:
    for schedule in ("", ",schedule=growing-rho"):
        a, b = run("sadmm,rho=2.5" + schedule, loss, penalty), run("odrs,lam=0.4" + schedule, loss, penalty)
        assert_same(a.weights(), b.weights())
        assert_same(a.variables()["u"], b.variables()["u"])


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_oadm_without_bregman_term_is_sadmm(loss: str, penalty: str) -> None:
    a, b = run("oadm,rho=2.5,bregman=0", loss, penalty), run("sadmm,rho=2.5", loss, penalty)
    for letter in ("w", "z", "mu"):
        assert_same(a.variables()[letter], b.variables()[letter])


@pytest.mark.parametrize("loss", LOSSES)
def test_without_a_penalty_the_implicit_methods_are_one(loss: str) -> None:
    for step in (0.05, 0.7, 40.0):
        odrs = run(f"odrs,lam={step}", loss)
        for solver in ("implicit-sgd", "fiol,inner=newton", "fiol,inner=sort", "fiol,inner=partition"):
            other = run(f"{solver},schedule=constant,eta={step}", loss)
            assert_same(other.weights(), odrs.weights(), 1e-9)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in ("exponential", "poisson")])
def test_without_a_penalty_inexact_douglas_rachford_is_sgd(loss: str) -> None:
    sgd = run("sgd,schedule=constant,eta=0.05", loss)
    assert_same(run("iodrs,lam=0.05", loss).weights(), sgd.weights())
    assert_same(run("comid,schedule=constant,eta=0.05", loss).weights(), sgd.weights())


def test_passive_aggressive_is_fully_implicit() -> None:
    for C in (0.03, 0.5, 8.0):
        assert_same(run(f"pa-1,C={C}", "hinge").weights(), run(f"fiol,schedule=constant,eta={C}", "hinge").weights())
        squared = run(f"fiol,schedule=constant,eta={2 * C}", "squared-hinge")
        assert_same(run(f"pa-2,C={C}", "hinge").weights(), squared.weights())
    assert_same(run("pa", "hinge").weights(), run("fiol,schedule=constant,eta=1e9", "hinge").weights())


@pytest.mark.parametrize(
    ("preset", "solver", "average"),
    [
        ("opg", "comid", "none"),
        ("hrcomid", "comid,schedule=inverse,eta=2.0", "uniform"),
        ("hrmd-w", "comid,schedule=inverse,eta=4.0", "weighted-t1"),
        ("sgd-w", "sgd,schedule=inverse-shifted,eta=4.0", "weighted-t"),
        ("asgd", "sgd", "uniform"),
        ("pegasos", "sgd,schedule=inverse,eta=2.0", "none"),
        ("i-sgd", "implicit-sgd", "none"),
        ("sdrs", "odrs", "uniform"),
        ("isdrs", "iodrs", "uniform"),
    ],
)
def test_presets_are_what_they_say(preset: str, solver: str, average: str) -> None:
    X, y = problem("hinge")
    a = Learner(preset, "hinge", "l2,l2=0.5", n_features=D).learn(X, y)
    b = run(solver, "hinge", "l2,l2=0.5", average)
    assert_same(a.weights(average=True), b.weights(average=True))


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_without_a_penalty_the_adaptive_methods_are_one(loss: str) -> None:
    for beta in (1e-6, 1.0):
        ftrl = run(f"ftrl,eta=0.3,beta={beta}", loss, fit_intercept=True)
        other = run(f"adagrad-comid,eta=0.3,beta={beta}", loss, fit_intercept=True)
        assert_same(ftrl.weights(), other.weights())
        assert abs(ftrl.intercept() - other.intercept()) < 1e-11


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_dual_averaging_by_l2_alone_is_pegasos(loss: str) -> None:
    penalty = "l2,l2=0.5"
    assert_same(run("rda,gamma=0", loss, penalty).weights(), run("pegasos", loss, penalty).weights())


def test_adaline_is_sgd_on_the_squared_loss() -> None:
    adaline = run("adaline,eta=0.05", "squared")
    assert_same(adaline.weights(), run("sgd,schedule=constant,eta=0.05", "squared").weights())


def test_a_suffix_of_all_steps_is_the_uniform_average() -> None:
    suffix = run("sgd", "hinge", "l2,l2=0.5", f"suffix,alpha=1,total={N}")
    assert_same(suffix.weights(average=True), run("sgd", "hinge", "l2,l2=0.5", "uniform").weights(average=True))


# --- the searches of fully implicit learning --------------------------------------------------------------------------


def bisected(v: np.ndarray, x: np.ndarray, y: float, eta: float, loss: Any, penalty: Any) -> np.ndarray:
    """The w(theta) of (8.2), theta by bisection on what the loss says of A(theta)."""

    def w(theta: float) -> np.ndarray:
        return penalty.prox(v - eta * theta * x, eta)

    low, high = -1.0, 1.0
    while loss.theta(float(x @ w(low)) + low, 1.0, y) < low:
        low *= 2.0
    while loss.theta(float(x @ w(high)) + high, 1.0, y) > high:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if loss.theta(float(x @ w(middle)) + middle, 1.0, y) > middle:
            low = middle
        else:
            high = middle
    return w(0.5 * (low + high))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", LOSSES)
def test_the_three_searches_are_bisection(name: str, penalty: str) -> None:
    loss, r = build_loss(name), build_penalty(penalty)
    labels = getattr(loss, "labels", "real")
    rng = np.random.default_rng(7)
    for k in range(40):
        d = int(rng.integers(1, 6))
        x, v = rng.normal(size=d), rng.normal(size=d)
        if k % 2:  # ties among breakpoints
            x, v = rng.choice([-1.0, -0.5, 0.5, 1.0], d), 0.5 * rng.integers(-2, 3, d)
        y = float(rng.choice([-1.0, 1.0])) if labels == "signs" else float(rng.integers(0, 3))
        eta = float(rng.choice([0.01, 0.3, 1.0, 20.0]))
        want = bisected(v, x, y, eta, loss, r)
        for inner in INNER:
            got, _ = implicit_step(v, x, y, eta, loss, r, inner)
            assert np.abs(got - want).max() <= 1e-9 * max(1.0, np.abs(v).max()), (inner, x, v, y, eta)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", ["squared", "hinge", "logistic"])
def test_a_row_of_any_size_ends_where_its_loss_asks(name: str, inner: str) -> None:
    """theta falls far below any slope where values are large: to the thresholds l1 / |x|."""
    loss, y = build_loss(name), 1.0
    for size, l1 in ((1e9, 1e-12), (1e20, 1e-12), (1e20, 1e-23), (1e60, 1e-63)):
        r = build_penalty(f"l1={l1!r}")
        for seed in range(20):
            rng = np.random.default_rng(seed)
            v = np.zeros(int(rng.integers(1, 5)))
            for k in range(6):
                x, eta = size * rng.normal(size=len(v)), 1e3 / (k + 1.0)
                v, theta = implicit_step(v, x, y, eta, loss, r, inner)
                score = float(x @ v)
                if theta != 0.0:
                    wanted = -np.log(-theta) if name == "logistic" else y  # the logistic slope is -1/(1 + e^score)
                    assert abs(score - wanted) <= 0.1, (size, l1, seed, k)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", LOSSES)
def test_a_factor_is_a_weight(name: str, inner: str) -> None:
    v, x, r = np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -0.5]), build_penalty("elastic-net,l1=0.1,l2=0.2")
    loss, heavy = build_loss(name), build_loss(f"{name},factor=2.5")
    w, theta = implicit_step(v, x, 1.0, 0.5, heavy, r, inner)
    want, want_theta = implicit_step(v, x, 1.0, 0.5, loss, r, inner, weight=2.5)
    assert w.tobytes() == want.tobytes()
    assert theta == want_theta
    assert abs(theta - 2.5 * loss.theta(x @ w + theta / 2.5, 1.0, 1.0)) <= 1e-12 * abs(theta)


# --- splitting methods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic"])
def test_the_multiplier_of_sadmm_is_a_subgradient(loss: str) -> None:
    l1 = 0.05
    _, variables = trajectory("sadmm,rho=3.0", loss, f"l1,l1={l1}")
    for found in variables[1:]:
        mu, z = found["mu"], found["z"]
        assert np.all(np.abs(mu) <= l1 * (1.0 + 1e-12))
        assert_same(mu[z != 0.0], l1 * np.sign(z[z != 0.0]), 1e-11)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_sum_identity_of_sadmm(penalty: str) -> None:
    rho = 3.0
    _, variables = trajectory(f"sadmm,rho={rho}", "hinge", penalty)
    w, z, u, mu = (np.array([found[letter] for found in variables]) for letter in ("w", "z", "u", "mu"))
    assert_same(np.sum(w[1:], axis=0), u[-1] - u[0] + np.sum(z[:-1], axis=0))
    assert_same(mu[:-1] + rho * (w[1:] - z[:-1]), rho * (u[1:] - z[:-1]), 1e-10)


def test_sadmm_on_one_sample_converges_to_its_minimiser() -> None:
    x, y, l1, l2 = np.array([1.0, -2.0, 0.5]), 1.0, 0.1, 0.2
    X, Y = sp.csr_matrix(np.tile(x, (4000, 1))), np.full(4000, y)
    for loss in ("logistic", "squared", "huber"):
        w = Learner("sadmm", loss, f"elastic-net,l1={l1},l2={l2}", "none", n_features=3).learn(X, Y).weights()
        gradient = build_loss(loss).slope(float(x @ w), y) * x + l2 * w
        moved = w != 0.0
        assert np.abs(gradient + l1 * np.sign(w))[moved].max(initial=0.0) < 1e-10
        assert np.all(np.abs(gradient[~moved]) <= l1 + 1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge"])
def test_batch_douglas_rachford_satisfies_the_optimality_conditions(loss: str) -> None:
    l1, l2 = 0.03, 0.1
    X, y = problem(loss)
    learner = Learner("batch-drs,lam=4.0", loss, f"elastic-net,l1={l1},l2={l2}", n_features=D)
    w = learner.solve(X, y, iterations=150).weights()
    slopes = np.array([build_loss(loss).slope(s, target) for s, target in zip(X @ w, y, strict=True)])
    gradient = X.T @ slopes / N + l2 * w
    moved = w != 0.0
    assert np.abs(gradient + l1 * np.sign(w))[moved].max() < 1e-9
    assert np.all(np.abs(gradient[~moved]) <= l1 + 1e-9)


def test_batch_douglas_rachford_takes_rows_of_weight_0_as_no_loss() -> None:
    X, y, s = np.array([[1.0, 0.2], [0.3, -1.0], [0.0, 0.0]]), np.ones(3), np.array([1.0, 2.0, 0.0])
    found = []
    for far in (0.1, -1e4, 1e4):
        X[2] = far, far
        found.append(Learner("batch-drs", "exponential", "l2,l2=0.1", n_features=2).solve(X, y, 5, s).weights())
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


# --- closed forms -----------------------------------------------------------------------------------------------------


def test_pegasos_telescopes() -> None:
    lam = 0.2
    X, y = problem("hinge")
    weights, _ = trajectory("pegasos", "hinge", f"l2,l2={lam}")
    dense, total = X.toarray(), np.zeros(D)
    for t in range(1, N + 1):
        row, target = dense[t - 1], y[t - 1]
        total += target * row * (target * (row @ weights[t - 1]) < 1.0)
        assert_same(weights[t], total / (lam * t))


def test_sgd_w_telescopes() -> None:
    sigma = 0.4
    X, y = problem("logistic")
    weights, _ = trajectory("sgd-w", "logistic", f"l2,l2={sigma}")
    dense, A, loss = X.toarray(), np.zeros(D), build_loss("logistic")
    for t in range(1, N + 1):
        A -= 2.0 * t / sigma * loss.slope(float(dense[t - 1] @ weights[t - 1]), y[t - 1]) * dense[t - 1]
        assert_same(weights[t], A / (t * (t + 1)))


def test_dual_averaging_from_its_gradients() -> None:
    l1, gamma = 0.05, 1.7
    X, y = problem("logistic")
    weights, _ = trajectory(f"rda,gamma={gamma}", "logistic", f"l1,l1={l1}")
    dense, G, loss = X.toarray(), np.zeros(D), build_loss("logistic")
    for t in range(1, N + 1):
        G += loss.slope(float(dense[t - 1] @ weights[t - 1]), y[t - 1]) * dense[t - 1]
        mean = G / t
        assert_same(weights[t], -np.sqrt(t) / gamma * np.sign(mean) * np.maximum(np.abs(mean) - l1, 0.0))


def test_passive_aggressive_meets_every_margin() -> None:
    X, y = problem("hinge")
    weights, _ = trajectory("pa", "hinge")
    margins = y * np.sum(X.toarray() * weights[1:], axis=1)
    nothing = np.diff(X.indptr) == 0
    assert np.all(margins[~nothing] >= 1.0 - 1e-12)


@pytest.mark.parametrize("schedule", ["schedule=two-phase,m=80", "schedule=constant,eta=0.1"])
def test_csgd_keeps_its_constraint_and_has_its_closed_form(schedule: str) -> None:
    X, y = problem("squared", intercept_column=True)
    dense = X.toarray()
    eta = 0.1
    learner = Learner(f"csgd,{schedule}" + ("" if "eta" in schedule else f",eta={eta}"), "squared", n_features=D)
    S, before = np.zeros(D), learner.weights()
    for t in range(1, N + 1):
        row, target = dense[t - 1], y[t - 1]
        learner.learn(X[t - 1], y[t - 1 : t])
        S += row
        step = learner.solver.schedule.at(t)
        r = target - row @ before
        want = before + r * (step * row + S * (1.0 - step * (S @ row)) / (S @ S))
        got = learner.weights()
        assert_same(got, want, 1e-10)
        assert abs(got @ S - y[:t].sum()) <= 1e-10 * max(1.0, np.abs(y[:t]).sum())
        before = got


def test_rls_is_ridge_regression_and_a_weight_is_a_repetition() -> None:
    X, y = problem("squared")
    dense, delta = X.toarray(), 0.3
    s = np.random.default_rng(1).integers(0, 4, N).astype(float)
    weighted = Learner(f"rls,delta={delta}", "squared", n_features=D).learn(X, y, s).weights()
    ridge = np.linalg.solve(delta * np.eye(D) + dense.T @ (s[:, None] * dense), dense.T @ (s * y))
    assert_same(weighted, ridge)
    again = np.repeat(np.arange(N), s.astype(int))
    assert_same(Learner(f"rls,delta={delta}", "squared", n_features=D).learn(X[again], y[again]).weights(), ridge)


def test_constrained_adaline_is_ncsgd_for_every_neuron() -> None:
    X, _ = problem("squared", intercept_column=True)
    Y = np.eye(3)[np.random.default_rng(2).integers(0, 3, N)]
    both = Learner("c-adaline,eta=0.05", "squared", n_features=D, n_outputs=3).learn(X, Y).weights()
    for k in range(3):
        assert_same(both[:, k], Learner("ncsgd,eta=0.05", "squared", n_features=D).learn(X, Y[:, k]).weights())


# --- averages ---------------------------------------------------------------------------------------------------------

AVERAGED = {
    "comid": "elastic-net,l1=0.02,l2=0.3",
    "fiol": "elastic-net,l1=0.02,l2=0.3",
    "rda": "elastic-net,l1=0.02,l2=0.3",
    "sgd": "l2,l2=0.3",
    "pa-1": "none",
    "odrs": "elastic-net,l1=0.02,l2=0.3",
    "iodrs,lam=0.1": "elastic-net,l1=0.02,l2=0.3",
    "sadmm": "l1,l1=0.05",
    "oadm": "l1,l1=0.05",
    "csgd,m=80,eta=0.05": "none",
    "hrmd-w": "elastic-net,l1=0.02,l2=0.3",
}


@pytest.mark.parametrize("solver", AVERAGED)
def test_averages_on_the_fly_are_those_of_the_trajectory(solver: str) -> None:
    loss = "squared" if solver.startswith("csgd") else "hinge"
    weights, _ = trajectory(solver, loss, AVERAGED[solver])
    t = np.arange(1.0, N + 1.0)
    wanted = {
        "uniform": weights[:-1].mean(axis=0),
        "uniform-post": weights[1:].mean(axis=0),
        "weighted-t": t @ weights[:-1] / t.sum(),
        "weighted-t1": (t + 1.0) @ weights[:-1] / (t + 1.0).sum(),
        f"suffix,alpha=0.25,total={N}": weights[N - N // 4 : N].mean(axis=0),
        f"suffix,alpha=1,total={N}": weights[:-1].mean(axis=0),
    }
    for average, want in wanted.items():
        assert_same(run(solver, loss, AVERAGED[solver], average).weights(average=True), want, 1e-10)


# --- every solver -----------------------------------------------------------------------------------------------------

EVERY = {name: next(case for case in compiled_cases() if case.name == name) for name in NAMES}


def learner_of(case: Case, d: int = D) -> Learner:
    return case.learner(n_features=d, total=N)


@pytest.mark.parametrize("name", EVERY)
def test_permuting_features_permutes_the_weights(name: str) -> None:
    case = EVERY[name]
    X, y = problem(case.loss, intercept_column=True)
    order = np.random.default_rng(4).permutation(D)
    plain = learner_of(case).learn(X, y)
    moved = learner_of(case).learn(X[:, order], y)
    for average in (False, True):
        assert_same(moved.weights(average=average), plain.weights(average=average)[order], 1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_a_feature_never_seen_stays_zero_and_changes_nothing(name: str) -> None:
    case = EVERY[name]
    X, y = problem(case.loss, intercept_column=True)
    wide = learner_of(case, D + 3).learn(sp.hstack([X, sp.csr_matrix((N, 3))], format="csr"), y)
    plain = learner_of(case).learn(X, y)
    assert wide.weights().tobytes() == plain.weights().tobytes() + bytes(3 * 8)
    assert wide.weights()[5] == 0.0


# PA without a cost takes weights 0 and 1 alone.
@pytest.mark.parametrize("name", [name for name in EVERY if name != "pa"])
def test_a_sample_weight_is_a_factor_of_the_loss(name: str) -> None:
    case = EVERY[name]
    X, y = problem(case.loss, intercept_column=True)
    base, factor = (case.loss.partition(",")[0], 1.5)
    plain = case._replace(loss=base)
    weighted = learner_of(plain).learn(X, y, np.full(N, factor))
    factored = learner_of(plain._replace(loss=f"{base},factor={factor}")).learn(X, y)
    assert weighted.weights().tobytes() == factored.weights().tobytes()
    assert weighted.progressive_loss == factored.progressive_loss


@pytest.mark.parametrize("name", EVERY)
def test_empty_rows_are_steps(name: str) -> None:
    case = EVERY[name]
    X, y = problem(case.loss, intercept_column=True)
    learner = learner_of(case).learn(X[:20], y[:20])
    learner.learn(sp.csr_matrix((7, D)), y[20:27])
    assert learner.t == 27
