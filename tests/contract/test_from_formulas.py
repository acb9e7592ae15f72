"""The papers' methods, and those of a step for each column, from docs/mathematics.md alone: dense, theta by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from onlinear import Learner

Slope = Callable[[float, float], float]
SLOPES: dict[str, Slope] = {
    "logistic": lambda s, y: -y / (1.0 + np.exp(y * s)),
    "squared": lambda s, y: s - y,
    "hinge": lambda s, y: -y if y * s < 1.0 else 0.0,
}
NET = "elastic-net,l1={},l2={}"
BOTH = [(0.0, 0.0), (0.01, 0.0), (0.0, 0.05), (0.01, 0.02)]


def soft(v: np.ndarray, k: Any) -> np.ndarray:
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def rows(n: int = 120, d: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, some empty or repeated, with columns that come late or rest for long; signs; weights, some tiny or huge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5) * 10.0 ** rng.uniform(-1.0, 0.5, d)
    X[rng.random(n) < 0.1] = 0.0
    X[: n // 2, 1] = X[n // 5 : -2, 2] = 0.0
    X[5:15] = X[5]
    y = np.sign(X @ rng.normal(size=d) + rng.normal(size=n))
    return X, y, rng.choice([0.0, 1e-6, 0.5, 1.0, 2.5, 20.0], n)


class Steps:
    """A method over rows that end with the intercept's 1; ``free`` is 0 in its place."""

    def __init__(self, d: int, slope: Slope, l1: float, l2: float) -> None:
        self.slope, self.l1, self.l2 = slope, l1, l2
        self.free = np.append(np.ones(d), 0.0)
        self.w, self.v, self.u, self.G, self.sigma = np.zeros((5, d + 1))
        self.Y = self.N = 0.0

    def prox(self, v: np.ndarray, eta: float) -> np.ndarray:
        return soft(v, eta * self.l1 * self.free) / (1.0 + eta * self.l2 * self.free)

    def gradient(self, w: np.ndarray, x: np.ndarray, y: float, s: float) -> np.ndarray:
        return s * self.slope(x @ w, y) * x if s else 0.0 * x

    def theta(self, at: Callable[[float], np.ndarray], x: np.ndarray, y: float, s: float) -> float:
        """theta in s dl(<at(theta), x>), which lies between 0 and the slope at at(0)."""
        if not s:
            return 0.0
        low, high = sorted((0.0, s * self.slope(x @ at(0.0), y)))
        middle = 0.5 * (low + high)
        while low < middle < high:
            if s * self.slope(x @ at(middle), y) > middle:
                low = middle
            else:
                high = middle
            middle = 0.5 * (low + high)
        return middle

    def comid(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 5.1
        eta = 0.1 / np.sqrt(t)
        self.w = self.prox(self.w - eta * self.gradient(self.w, x, y, s), eta)

    def hrmd_w(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 5.3, 17
        eta = 2.0 / (self.l2 * t)
        steps = np.where(self.free > 0.0, eta, min(eta, 1.0 / np.sqrt(t)))
        self.w = self.prox(self.w - steps * self.gradient(self.w, x, y, s), eta)

    def rda(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 6.2
        self.G = self.G + self.gradient(self.w, x, y, s)
        self.w = -soft(self.G, t * self.l1 * self.free) / (t * self.l2 * self.free + 20.0 * np.sqrt(t))

    def csgd(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 7.1, 7.2, 7.3
        what = self.w * (1.0 - 0.001 / np.sqrt(t) * self.l2 * self.free) + 0.001 / np.sqrt(t) * s * (y - x @ self.w) * x
        self.G, self.Y = self.G + s * x, self.Y + s * y
        length = self.G @ self.G
        self.w = what - self.G * ((self.G @ what - self.Y) / length) if length > 0.0 else what

    def fiol(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 8.1, 8.2
        eta, w = 2.0 / np.sqrt(t), self.w
        theta = self.theta(lambda theta: self.prox(w - eta * theta * x, eta), x, y, s)
        self.w = self.prox(w - eta * theta * x, eta)

    def i_sgd(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 8.9
        eta = 0.5 / np.sqrt(t)
        v = self.w - eta * self.free * (self.l1 * np.sign(self.w) + self.l2 * self.w)
        self.w = v - eta * self.theta(lambda theta: v - eta * theta * x, x, y, s) * x

    def splitting(self, x: np.ndarray, y: float, s: float, rho: float, bregman: float) -> None:  # 9.1, 9.2, 9.3, 9.8
        c = 1.0 / (rho + bregman)
        v = c * (rho * self.w - self.u + bregman * self.v)  # z is w here, mu is u, w is v
        self.v = v - c * self.theta(lambda theta: v - c * theta * x, x, y, s) * x
        self.w = self.prox(self.v + self.u / rho, 1.0 / rho)
        self.u = self.u + rho * (self.v - self.w)

    def sadmm(self, t: int, x: np.ndarray, y: float, s: float) -> None:
        self.splitting(x, y, s, 2.0 * np.sqrt(t), 0.0)

    def oadm(self, t: int, x: np.ndarray, y: float, s: float) -> None:
        self.splitting(x, y, s, 2.0, 1.5)

    def odrs(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 10.2
        v = 2.0 * self.w - self.u
        self.u = self.u + (v - 0.3 * self.theta(lambda theta: v - 0.3 * theta * x, x, y, s) * x - self.w)
        self.w = self.prox(self.u, 0.3)

    def iodrs(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 10.3
        self.v = 2.0 * self.w - self.u - 0.01 * self.gradient(self.v, x, y, s)
        self.u = self.u + self.v - self.w
        self.w = self.prox(self.u, 0.01)

    def read(self, z: np.ndarray, t: int) -> np.ndarray:  # 18.2
        divisor = self.sigma + t * self.l2 * self.free
        return np.divide(-soft(z, t * self.l1 * self.free), divisor, out=0.0 * z, where=divisor > 0.0)

    def implicit_ftrl(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 18.1, 18.2
        g = self.gradient(self.w, x, y, s)
        self.N += float(x @ x) if s else 0.0
        if np.any(g):
            self.G = self.G + g * g
            roots = np.maximum(np.sqrt(self.G), 1e-8 * t * self.l1 * self.free)
            before, self.sigma = self.sigma, np.where(x != 0.0, roots / (2.0 * np.sqrt(t / self.N)), self.sigma)
            u = self.u - (self.sigma - before) * self.w
            self.u = u + self.theta(lambda theta: self.read(u + theta * x, t), x, y, s) * x
        self.w = self.read(self.u, t)

    def ftrl(self, t: int, x: np.ndarray, y: float, s: float) -> None:  # 18.4
        g, before = self.gradient(self.w, x, y, s), (1.0 + np.sqrt(self.G)) / 0.3
        self.G = self.G + g * g
        self.sigma = (1.0 + np.sqrt(self.G)) / 0.3
        self.u = self.u + g - (self.sigma - before) * self.w
        self.w = self.read(self.u, t)


METHODS = {
    "comid": ("comid,eta=0.1", Steps.comid),
    "hrmd-w": ("hrmd-w", Steps.hrmd_w),
    "rda": ("rda,gamma=20", Steps.rda),
    "csgd": ("ncsgd,eta=0.001", Steps.csgd),
    "fiol": ("fiol,eta=2", Steps.fiol),
    "i-sgd": ("i-sgd,eta=0.5", Steps.i_sgd),
    "sadmm": ("sadmm,schedule=growing-rho,rho=2", Steps.sadmm),
    "oadm": ("oadm,rho=2,bregman=1.5", Steps.oadm),
    "odrs": ("odrs,lam=0.3", Steps.odrs),
    "iodrs": ("iodrs,lam=0.01", Steps.iodrs),
    "implicit-ftrl": ("implicit-ftrl", Steps.implicit_ftrl),
    "ftrl": ("ftrl", Steps.ftrl),
}
AVERAGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "uniform": np.ones_like,
    "weighted-t": lambda t: t,
    "weighted-t1": lambda t: t + 1.0,
}


def cases() -> Iterator[Any]:
    for name in METHODS:
        for loss in ["squared"] if name == "csgd" else SLOPES:
            for l1, l2 in BOTH:
                if (name != "hrmd-w" or l2 > 0.0) and (name != "csgd" or l1 == 0.0):
                    yield pytest.param(name, loss, l1, l2, id=f"{name}-{loss}-{l1}-{l2}")


@pytest.mark.parametrize(("name", "loss", "l1", "l2"), [*cases()])
def test_a_run_is_its_formulas(name: str, loss: str, l1: float, l2: float) -> None:
    X, y, s = rows()
    solver, step = METHODS[name]
    dense, before = Steps(X.shape[1], SLOPES[loss], l1, l2), []
    for t, (x, target) in enumerate(zip(np.column_stack([X, np.ones(len(y))]), y, strict=True), start=1):
        before.append(dense.w)
        if (name, loss) == ("implicit-ftrl", "hinge") and abs(target * (x @ dense.w) - 1.0) < 1e-9:
            s[t - 1] = 0.0  # at its kink a row has any slope: rounding decides, and the metric remembers
        step(dense, t, x, target, s[t - 1])

    for average, weights in AVERAGES.items():
        run = Learner(solver, loss, NET.format(l1, l2) if l1 or l2 else "none", average, fit_intercept=True)
        run.learn(X[:50], y[:50], s[:50]).learn(X[50:], y[50:], s[50:])
        om = weights(np.arange(1.0, len(y) + 1.0))
        for want, mean in ((dense.w, False), (om @ np.array(before) / om.sum(), True)):
            found = np.append(run.weights(average=mean), run.intercept(average=mean))
            np.testing.assert_allclose(found, want, rtol=0.0, atol=1e-10 * np.abs(want).max())


VALUES: dict[str, Slope] = {
    "logistic": lambda s, y: float(np.logaddexp(0.0, -y * s)),
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
}


class Mixture:
    """18.7: eight models and a constant over rows that end with the intercept's 1; row e // 2 of an array is expert e's."""

    def __init__(self, d: int, loss: str, l2: float, eta: float) -> None:
        self.loss, self.l2, self.d = loss, l2, d
        self.free = np.append(np.ones(d), 0.0)
        self.of_columns, self.etas = np.arange(8) >= 4, eta * np.tile([0.5, 2.0, 8.0, 32.0], 2)
        self.z, self.G, self.sigma, self.w, self.sums = np.zeros((5, 8, d + 1))
        self.N, self.L, self.sizes = np.zeros(8), np.zeros(17), np.zeros((2, d))  # entries and squares of the columns
        self.held = np.append(np.repeat(2.0 * np.log(np.maximum(1.0, self.etas / (2.0 * eta))), 2), 0.0)
        self.total = self.counted = self.R = self.level = 0.0
        self.edge, self.moves = 0, 0

    def scales(self) -> np.ndarray:
        count, squares = self.sizes
        each = np.sqrt(np.divide(squares, count, out=np.ones(self.d), where=count > 0.0))
        whole = np.sqrt(squares.sum() / count.sum()) if count.any() else 1.0
        return np.column_stack([np.where(self.of_columns[:, None], each, whole), np.ones(8)])

    def rate(self) -> float:
        return 1.0 if self.loss == "logistic" else self.R / (2.0 * self.L.min()) if self.L.min() > 0.0 else 1.0

    def experts(self, t: int) -> np.ndarray:
        """All 17 in the units of the columns, after t rows."""
        means = self.sums / max(t * (t + 3) / 2.0, 1.0)
        found = np.stack([self.w, means], axis=1) / self.scales()[:, None]
        return np.vstack([found.reshape(16, -1), np.append(np.zeros(self.d), self.level)])

    def model(self, t: int) -> np.ndarray:
        p = np.exp(-self.rate() * (self.L - self.L.min()) - self.held)
        return p @ self.experts(t) / p.sum()

    def learn(self, t: int, x: np.ndarray, y: float, s: float) -> float:
        """Learn row t; its loss before."""
        if s > 0.0:
            self.sizes += [x[:-1] != 0.0, x[:-1] ** 2]
        found = s * VALUES[self.loss](self.model(t - 1) @ x, y)
        if s > 0.0:
            self.total, self.counted = self.total + s, self.counted + 1.0
            kept, share = 1.0 - 3.0 / (t + 32), s * self.counted / self.total
            self.L = kept * self.L + share * np.array([VALUES[self.loss](a, y) for a in self.experts(t - 1) @ x])
            self.R, self.held = kept * self.R + share, kept * self.held
        self.sums += (t + 1) * self.w
        for m, row in enumerate(x / self.scales()):
            self.step(m, t, row, y, s)
        if s > 0.0 and self.loss == "squared":
            self.level += s / self.total * (y - self.level)
        if t >= 64 and t & (t - 1) == 0:
            self.look()
        return found

    def step(self, m: int, t: int, x: np.ndarray, y: float, s: float) -> None:  # 18.1, 18.2
        slope, before = SLOPES[self.loss], self.sigma[m].copy()
        g = s * slope(x @ self.w[m], y)
        self.N[m] += x @ x if s else 0.0
        if g:
            self.G[m] += (g * x) ** 2
            self.sigma[m, x != 0.0] = np.sqrt(self.G[m, x != 0.0]) / (self.etas[m] * np.sqrt(t / self.N[m]))
            self.z[m] -= (self.sigma[m] - before) * self.w[m]
        divisor = self.sigma[m] + t * self.l2 * self.free
        inverse = np.divide(1.0, divisor, out=np.zeros(self.d + 1), where=divisor > 0.0)
        if g:
            start, along = x @ (-self.z[m] * inverse), x * x @ inverse
            steps = Steps(0, lambda a, y: slope(float(start - along * a), y), 0.0, 0.0)
            self.z[m] += steps.theta(lambda theta: np.array([theta]), np.ones(1), y, s) * x
        self.w[m] = -self.z[m] * inverse

    def look(self) -> None:
        bests = self.L[:16].reshape(8, 2).min(axis=1)
        best, worst = int(bests.argmin()), int(bests.argmax())
        edge = int(self.etas[best] == self.etas.max()) - int(self.etas[best] == self.etas.min())
        moves, self.edge = edge != 0 and edge == self.edge, edge
        if moves:
            for array in (self.z, self.G, self.sigma, self.w, self.sums, self.N, self.of_columns):
                array[worst] = array[best]
            self.etas[worst], self.edge, self.moves = self.etas[best] * 16.0**edge, 0, self.moves + 1
            for array, more in ((self.L, 5.0 / self.rate()), (self.held, 0.0)):
                array[2 * worst : 2 * worst + 2] = array[2 * best : 2 * best + 2] + more


@pytest.mark.parametrize(("loss", "l2", "eta"), [("logistic", 0.05, 0.01), ("squared", 0.0, 1e5)])
def test_a_mixture_is_its_formulas_where_step_sizes_move(loss: str, l2: float, eta: float) -> None:
    X, y, s = rows(140)
    y = y if loss == "logistic" else X[:, 0] + 3.0 * y
    dense, total = Mixture(X.shape[1], loss, l2, eta), 0.0
    for t, (x, target, weight) in enumerate(zip(np.column_stack([X, np.ones(len(y))]), y, s, strict=True), start=1):
        total += dense.learn(t, x, target, weight)
    run = Learner(f"mixture,eta={eta}", loss, f"l2={l2}" if l2 else "none", fit_intercept=True).learn(X, y, s)
    assert dense.moves == 1
    want = dense.model(len(y))
    np.testing.assert_allclose(np.append(run.weights(), run.intercept()), want, rtol=0.0, atol=1e-9 * np.abs(want).max())
    assert run.progressive_loss == pytest.approx(total / len(y), rel=1e-9)
