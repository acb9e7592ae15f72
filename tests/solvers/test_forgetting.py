"""Forgetting: the lazy forms are the recursions over all features, whatever the half-life and however long a feature rests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from scipy.special import softmax
from seldom import often, seldom

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, load

METHODS = ("implicit-ftrl,eta=1.3,intercept=0.4", "ftrl,eta=0.4", "ftrl,fixed=true", "rda", "adagrad-rda")
FEW = often(METHODS, METHODS[:1])
PENALTIES = ((0.0, 0.0), (1e-3, 0.0), (0.0, 1e-2), (1e-3, 1e-2))
HALF_LIVES = (1.0, 7.0, 69.0, 1e4)


def rows_of(n: int = 300, d: int = 9, seed: int = 0) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.uniform(0.02, 0.6, d))
    y = np.where(X @ rng.normal(size=d) + 0.3 + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return csr_matrix(X), y, rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.1, 0.2, 0.5, 0.2])


def soft(z, k):
    return z - np.clip(z, -k, k)


def slope(a, y):
    return -y / (1.0 + np.exp(y * a))


class Dense:
    """The recursions over all features; place 0 is the intercept."""

    def __init__(self, method: str, d: int, l1: float, l2: float, half_life: float) -> None:
        self.name, _, settings = method.partition(",")
        self.given = dict(piece.split("=") for piece in settings.split(",") if piece)
        self.gamma, self.l1, self.l2 = 2.0 ** (-1.0 / half_life), np.r_[0.0, np.full(d, l1)], np.r_[0.0, np.full(d, l2)]
        self.T = self.N = 0.0
        self.w, self.z, self.G, self.sigma = np.zeros((4, d + 1))
        if self.name == "ftrl":
            self.sigma[:] = 1.0 / self.eta(0.3)
        self.t, self.sums, self.weights = 0, np.zeros((2, d + 1)), np.zeros(2)

    def eta(self, default: float) -> float:
        return float(self.given.get("eta", default))

    def learn(self, x: np.ndarray, y: float, s: float) -> None:
        self.t += 1
        om = np.array([1.0, self.t + 1.0])
        self.sums = self.gamma * self.sums + om[:, None] * self.w
        self.weights = self.gamma * self.weights + om
        self.T = self.gamma * self.T + 1.0
        self.N = self.gamma * self.N + (s > 0.0) * (x @ x)
        self.z *= self.gamma
        self.G *= self.gamma
        self.sigma *= self.gamma
        g = s * slope(self.w @ x, y)
        getattr(self, self.name.replace("-", "_"))(x, y, s, g)

    def implicit_ftrl(self, x, y, s, g):
        on = x != 0.0
        if g != 0.0:
            self.G[on] += (max(abs(g), (1.0 - self.gamma) * s) * x[on]) ** 2
            steps = np.full(len(x), np.sqrt(self.T / self.N))
            steps[0] = max(steps[0], float(self.given["intercept"]))
            new = np.maximum(np.sqrt(self.G), 1e-8 * self.T * self.l1) / (steps * self.eta(2.0))
            self.z[on] -= (new - self.sigma)[on] * self.w[on]
            self.sigma[on] = new[on]
            scored = lambda theta: x[on] @ self.at(self.z + theta * x, self.T)[on]  # noqa: E731
            ends = sorted((0.0, (1.0 + 1e-9) * s * slope(scored(0.0), y)))
            theta = brentq(lambda theta: s * slope(scored(theta), y) - theta, *ends, xtol=1e-300, rtol=1e-15)
            self.z += theta * x
        self.w = self.at(self.z, self.T)

    def at(self, z, T):
        with np.errstate(invalid="ignore"):
            return np.where(self.sigma + T * self.l2 > 0.0, -soft(z, T * self.l1) / (self.sigma + T * self.l2), 0.0)

    def ftrl(self, x, y, s, g):
        on = (x != 0.0) & (g != 0.0)
        self.G[on] += (g * x[on]) ** 2
        new = (1.0 + np.sqrt(self.G)) / self.eta(0.3)
        self.z[on] += g * x[on] - (new - self.sigma)[on] * self.w[on]
        self.sigma[on] = new[on]
        self.w = self.at(self.z, 1.0 if "fixed" in self.given else self.T)

    def adagrad_rda(self, x, y, s, g):
        self.z += g * x
        self.G += (g * x) ** 2
        self.w = -soft(self.z, self.T * self.l1) / (1e-6 + np.sqrt(self.G) + self.T * self.l2)

    def rda(self, x, y, s, g):
        self.z += g * x
        self.w = -soft(self.z, self.T * self.l1) / (np.sqrt(self.T) + self.T * self.l2)


def penalty_of(l1: float, l2: float) -> str:
    return f"elastic-net,l1={l1},l2={l2}" if l1 or l2 else "none"


@pytest.mark.parametrize("half_life", HALF_LIVES)
@pytest.mark.parametrize("method", METHODS)
def test_lazy_run_is_the_recursion(method: str, half_life: float) -> None:
    X, y, s = rows_of()
    for l1, l2 in PENALTIES:
        dense = Dense(method, X.shape[1], l1, l2, half_life)
        for x, target, weight in zip(X.toarray(), y, s, strict=True):
            dense.learn(np.r_[1.0, x], target, weight)
        learner = Learner(method, "logistic", penalty_of(l1, l2), forget=half_life, fit_intercept=True).learn(X, y, s)
        found = np.r_[learner.intercept(), learner.weights()]
        assert_allclose(found, dense.w, rtol=0, atol=1e-13 * max(1.0, np.abs(dense.w).max()))
        assert_allclose(found == 0.0, dense.w == 0.0)


@pytest.mark.parametrize("method", FEW[:2])
def test_the_average_weights_predictors_by_their_age(method: str) -> None:
    X, y, s = rows_of()
    for half_life in HALF_LIVES:
        dense = Dense(method, X.shape[1], 0.0, 0.0, half_life)
        for x, target, weight in zip(X.toarray(), y, s, strict=True):
            dense.learn(np.r_[1.0, x], target, weight)
        for average, sums, weight in zip(("uniform", "weighted-t1"), dense.sums, dense.weights, strict=True):
            learner = Learner(method, "logistic", "none", average, forget=half_life, fit_intercept=True).learn(X, y, s)
            found = np.r_[learner.intercept(average=True), learner.weights(average=True)]
            assert_allclose(found, sums / weight, rtol=0, atol=1e-13 * max(1.0, np.abs(sums / weight).max()))


@pytest.mark.parametrize("method", FEW)
def test_a_feature_rests_for_a_million_rows(method: str) -> None:
    X, y, _ = rows_of()
    million = 1_000_000
    idle = csr_matrix((np.ones(million), (np.arange(million), np.zeros(million, int))), shape=(million, 1))
    for l1, l2 in ((0.0, 0.0), (1e-6, 0.0), (0.0, 1e-6)):
        for half_life in (1.0, 69.0):
            learner = Learner(method, "logistic", penalty_of(l1, l2), forget=half_life).learn(X, y)
            before = learner.weights()[1:]
            learner.learn(idle, np.ones(million))
            kept = "ftrl" in method and l1 == l2 == 0.0
            assert_allclose(learner.weights()[1:], before if kept else 0.0, rtol=1e-13, atol=0 if kept or l1 else 1e-290)
            again = learner.learn(X, y).weights()
            assert np.all(np.isfinite(again))
            assert np.any(again)


EACH = [*((method, "none") for method in METHODS), *((method, "uniform") for method in METHODS[:2])]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("method", "average"), EACH)
def test_same_bits(method: str, average: str, tmp_path: Path) -> None:
    """Of any cut into calls, of single rows, of outputs side by side, of growing columns, and after a file."""
    X, y, s = rows_of(120)
    penalty = "l1=1e-3" if average == "none" else "none"

    def learner(**more):
        return Learner(method, "logistic", penalty, average, forget=7.0, fit_intercept=True, **more)

    whole, cut = learner(n_features=9).learn(X, y, s), learner()
    for start in range(0, 60, 7):
        end = min(start + 7, 60)
        cut.learn(X[start:end], y[start:end], s[start:end])
    cut.save(tmp_path / "half.model")
    cut = load(tmp_path / "half.model").learn(X[60:], y[60:], s[60:])
    for use in (False, True):
        assert np.array_equal(whole.weights(use), cut.weights(use))
        assert whole.intercept(use) == cut.intercept(use)
    assert whole.progressive_loss == cut.progressive_loss
    block, single = learner().learn(X, y), learner()
    for row, target in zip(X, y, strict=True):
        single.learn_one(row.indices, row.data, target)
    assert np.array_equal(block.weights(True), single.weights(True))
    assert block.progressive_loss == single.progressive_loss
    labels = np.where(np.random.default_rng(1).random((120, 11)) < 0.4, 1.0, -1.0)
    together = learner(n_outputs=11).learn(X, labels, s)
    for k in (0, 10):
        alone = learner().learn(X, labels[:, k], s)
        assert np.array_equal(together.weights(True)[:, k], alone.weights(True))
        assert together.intercept(True)[k] == alone.intercept(True)
    whole.save(tmp_path / "a.model")
    load(tmp_path / "a.model").save(tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    assert load(tmp_path / "a.model").forget == 7.0


def test_a_factor_of_the_loss_is_a_weight_of_all_rows() -> None:
    """Also in the slope of which a row counts at least; it was squared there."""
    X, y, _ = rows_of(60)
    run = Learner(METHODS[0], "logistic,factor=3", forget=7.0, fit_intercept=True).learn(X, y)
    weighted = Learner(METHODS[0], "logistic", forget=7.0, fit_intercept=True).learn(X, y, np.full(len(y), 3.0))
    assert_allclose(run.weights(), weighted.weights(), rtol=1e-12)


@pytest.mark.parametrize("method", FEW[:2])
def test_a_long_half_life_is_the_method_itself(method: str) -> None:
    X, y, s = rows_of()
    for parts in (("l1=1e-3",), ("none", "weighted-t1")):
        plain = Learner(method, "logistic", *parts, fit_intercept=True).learn(X, y, s)
        slow = Learner(method, "logistic", *parts, fit_intercept=True, forget=1e15).learn(X, y, s)
        assert_allclose(slow.weights(average=True), plain.weights(average=True), atol=1e-11)


def test_models_of_a_path_are_models_alone() -> None:
    X, y, _ = rows_of()
    estimator = OnlineClassifier(forget=40.0, shuffle=False)
    path = PenaltyPath(estimator, ["none", 1e-3, 1e-2]).fit(X, y)
    alone = OnlineClassifier(penalty="l1=1e-2", forget=40.0, shuffle=False).fit(X, y)
    assert np.array_equal(path.coefs_[2], alone.coef_.ravel())


JOINED = [  # four kernels, of which two take half a minute to compile
    ("ftrl,eta=0.5", "elastic-net,l1=0.002,l2=0.02", "none"),
    seldom("implicit-ftrl,eta=3", "none", "weighted-t1"),
    seldom("implicit-ftrl,eta=3", "elastic-net,l1=0.002,l2=0.02", "none"),
    seldom("ftrl,eta=0.5", "none", "weighted-t1"),
]


@pytest.mark.parametrize(("method", "penalty", "average"), JOINED)
def test_joined_classes_forget_as_the_recursion_does(method: str, penalty: str, average: str) -> None:
    X, _, s = rows_of(120)
    outputs, gamma = 3, 2.0 ** (-1.0 / 30.0)
    own = np.random.default_rng(1).integers(0, outputs, X.shape[0])
    run = Learner(
        method, "softmax", penalty, average, forget=30.0, fit_intercept=True, n_features=X.shape[1], n_outputs=outputs
    )
    free, implicit = np.arange(X.shape[1] + 1)[:, None] > 0, method.startswith("implicit")
    w, z, sums = np.zeros((3, X.shape[1] + 1, outputs))
    G = np.zeros_like(w[:, :1] if implicit else w)
    sigma = np.zeros_like(G) if implicit else np.full_like(w, 1.0 / 0.5)
    T = N = total = 0.0
    for i, row in enumerate(X.toarray()):
        x = np.r_[1.0, row]
        sums, total = gamma * sums + (i + 2.0) * w, gamma * total + i + 2.0
        run.learn(X[[i]], own[[i]], s[[i]])
        T, N = gamma * T + 1.0, gamma * N + (s[i] > 0.0) * (x @ x)
        z, G, sigma = gamma * z, gamma * G, gamma * sigma
        l1, l2 = T * run.penalty.l1 * free, T * run.penalty.l2 * free
        theta = s[i] * (softmax(x @ w) - (np.arange(outputs) == own[i]))
        if s[i] > 0.0:
            on = x != 0.0
            size = np.full((1, 1), max(np.linalg.norm(theta), (1.0 - gamma) * s[i])) if implicit else theta[None]
            G[on] += (x[:, None] * size)[on] ** 2
            new = np.maximum(np.sqrt(G), 1e-8 * l1) * np.sqrt(N / T) / 3.0 if implicit else (1.0 + np.sqrt(G)) / 0.5
            z[on] -= (new - sigma)[on] * w[on]
            sigma[on] = new[on]
            theta = run.variables()["theta"] if implicit else theta
            z += np.outer(x, theta)
        room = sigma + l2
        w = np.divide(-soft(z, l1), room, out=np.zeros_like(w), where=np.broadcast_to(room > 0.0, w.shape))
        if implicit:
            assert_allclose(theta, s[i] * (softmax(x @ w) - (np.arange(outputs) == own[i])), rtol=1e-8, atol=1e-11)
        assert_allclose(np.vstack([run.intercept(), run.weights()]), w, rtol=1e-9, atol=1e-11)
    if average != "none":
        found = np.vstack([run.intercept(average=True), run.weights(average=True)])
        assert_allclose(found, sums / total, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("half_life", [3.0, 300.0])
def test_a_class_that_stays_away_for_long_is_expected_soon_after_it_returns(half_life: float) -> None:
    X, alone = np.random.default_rng(0).normal(size=(30_100, 2)), 30_000
    y = np.where(np.arange(len(X)) < alone, -1.0, 1.0)
    model = OnlineClassifier(forget=half_life).partial_fit(X[:alone], y[:alone], classes=[-1.0, 1.0])
    assert -30.0 < model.decision_function(X[:1])[0] < -5.0
    assert np.all(model.partial_fit(X[alone:], y[alone:]).predict(X[:100]) == 1.0)


def test_softmax_forgets() -> None:
    X = np.random.default_rng(2).normal(size=(600, 5))
    y = np.argmax(X[:, :3], axis=1)
    model = OnlineClassifier("softmax", forget=100.0, random_state=0).fit(X, y)
    assert model.learner_.forget == 100.0
    assert model.learner_.spec["solver"].startswith("implicit-ftrl")
    assert OnlineClassifier(forget=100.0, random_state=0).fit(X, y).learner_.progressive_loss == model.learner_.progressive_loss
    assert model.score(X, y) > 0.9
    cut = OnlineClassifier("softmax", forget=100.0)
    for start in range(0, 600, 50):
        cut.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1, 2])
    whole = OnlineClassifier("softmax", forget=100.0).partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(cut.coef_, whole.coef_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "comid"}, "comid has no form that forgets: use solver='implicit-ftrl', 'ftrl', 'rda' or 'adagrad-rda'"),
        ({"solver": "fiol"}, "no form that forgets"),
        ({"solver": "ftrl,batch=10"}, "leave out batch= or forget="),
        ({"solver": "adagrad-comid"}, "no form that forgets"),
        ({"solver": "implicit-ftrl", "average": "uniform-post"}, "has no form that forgets: use 'adaptive'"),
        ({"solver": "implicit-ftrl", "average": "uniform,masked=true"}, "has no form that forgets: use 'adaptive'"),
        ({"solver": "implicit-ftrl", "average": "uniform", "penalty": "l2=1e-3"}, "Use average='none'"),
        ({"solver": "rda", "average": "uniform"}, "solver='implicit-ftrl'"),
        ({"solver": "rda", "penalty": "l1=1e-3,lower=0"}, "none, l1, l2 and elastic-net"),
        ({"forget": 0.0}, "forget must be"),
        ({"forget": 0.99}, "forget is a half-life in rows, at least 1, got 0.99: that factor a row is a half-life of 69 rows"),
        ({"forget": np.inf}, "forget must be"),
        ({"forget": "long"}, "forget must be"),
        ({"tol": 1e-3, "penalty": "l2=1e-3"}, "forget= and tol= exclude each other"),
    ],
)
def test_refusals_say_what_to_use(settings: dict, message: str) -> None:
    X, y, _ = rows_of(50)
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        OnlineClassifier(**{"forget": 10.0, **settings}).fit(X, y)


def test_predictions_stay_in_the_range_of_all_targets() -> None:
    """Without it a value far beyond those of its column is predicted as far out, and cost six times the error on cpusmall."""
    X, y, _ = rows_of(50)
    model = OnlineRegressor(forget=10.0, shuffle=False).fit(X, y)
    assert model.learner_.forget == 10.0
    np.testing.assert_array_equal(model.learner_.bounds(), [[y.min(), y.max()]])
    assert y.min() <= model.predict(1e6 * X).min()
    assert model.predict(1e6 * X).max() <= y.max()
    assert OnlineRegressor(forget=10.0, clip=False).fit(X, y).learner_.bounds() is None


def test_targets_that_grow_lose_little_by_the_clip() -> None:
    y = np.arange(3000.0)
    losses = [
        OnlineRegressor(forget=100, clip=clip).partial_fit(y[:, None] / 3000.0, y).learner_.progressive_loss
        for clip in (True, False)
    ]
    assert losses[0] <= 1.1 * losses[1]


def test_a_model_file_keeps_the_half_life(tmp_path: Path) -> None:
    X, y, _ = rows_of(200)
    model = OnlineClassifier(forget=25.0).partial_fit(X[:100], y[:100], classes=[-1, 1])
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.forget == 25.0
    assert np.array_equal(again.partial_fit(X[100:], y[100:]).coef_, model.partial_fit(X[100:], y[100:]).coef_)


def test_it_follows_what_changes() -> None:
    """Labels whose signs turn in the middle: a model that forgets follows, one that does not is behind."""
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(4000, 5)), rng.normal(size=5)
    y = np.where(X @ w * np.where(np.arange(4000) < 2000, 1.0, -1.0) > 0.0, 1, 0)
    method = {"solver": "implicit-ftrl", "average": "uniform"}
    forgets, keeps = (OnlineClassifier(forget=h, **method).partial_fit(X, y, classes=[0, 1]) for h in (100.0, None))
    assert forgets.score(X[2000:], y[2000:]) > 0.95 > keeps.score(X[2000:], y[2000:])
