"""Forgetting: the lazy forms are the recursions over all features, whatever the half-life and however long a feature rests."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.sparse import csr_matrix

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, load

METHODS = ("implicit-ftrl,eta=1.3", "ftrl,eta=0.4", "ftrl,fixed=true", "rda", "adagrad-rda")
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
        self.sums, self.weights = np.zeros(d + 1), 0.0

    def eta(self, default: float) -> float:
        return float(self.given.get("eta", default))

    def learn(self, x: np.ndarray, y: float, s: float) -> None:
        self.sums, self.weights = self.gamma * self.sums + self.w, self.gamma * self.weights + 1.0
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
            self.G[on] += (g * x[on]) ** 2
            new = np.maximum(np.sqrt(self.G), 1e-8 * self.T * self.l1) * np.sqrt(self.N / self.T) / self.eta(2.0)
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
