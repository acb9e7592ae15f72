"""Synthetic data as the papers describe them. Each function takes a random generator and its settings, and gives (X, y).

The first argument is a ``numpy.random.Generator``; the rest are the settings an experiment file may give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

Generated = tuple[Any, np.ndarray]


def uniform(
    rng: np.random.Generator,
    n: int = 10000,
    d: int = 100,
    noise: float = 0.2,
    constant: bool = True,
    centred: bool = False,
) -> Generated:
    """P5: features uniform on (0, 1), w* standard normal, y = <w*, x> + noise; ``constant``: the first feature is 1.

    ``centred``: the mean of every feature but the constant one, and of y, is taken off.
    """
    X = rng.uniform(size=(n, d))
    if constant:
        X[:, 0] = 1.0
    w = rng.normal(size=d)
    y = X @ w + noise * rng.normal(size=n)
    if centred:
        first = 1 if constant else 0
        X[:, first:] -= X[:, first:].mean(axis=0)
        y -= y.mean()
    return X, y


def lasso(
    rng: np.random.Generator,
    n: int = 1000,
    d: int = 100,
    nonzeros: int = 10,
    noise: float = 0.01,
    reading: str = "literal",
    size: float = 1.0,
) -> Generated:
    """P2: normal A with columns of norm 1, x0 with some normal non-zeros; b by one of the readings of the paper's sentence.

    ``literal``: b = A x0 / n + noise |A x0 / n| / sqrt n; ``literal-noise``: b = A x0 / n + noise (a standard deviation);
    ``demo``: b = A x0 + noise; ``unit-rows``: rows of norm 1 instead, b = A x0 + noise. ``size`` multiplies x0 and the noise.
    """
    A = rng.normal(size=(n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True) if reading == "unit-rows" else np.linalg.norm(A, axis=0)
    x0 = np.zeros(d)
    x0[rng.choice(d, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    signal = A @ x0
    if reading.startswith("literal"):
        signal = signal / n
    sd = noise * np.linalg.norm(signal) / np.sqrt(n) if reading == "literal" else noise
    if reading not in ("literal", "literal-noise", "demo", "unit-rows"):
        raise ValueError(f"lasso: reading must be literal, literal-noise, demo or unit-rows, got {reading!r}.")
    return A, size * (signal + sd * rng.normal(size=n))


def logistic(
    rng: np.random.Generator, n: int = 1000, d: int = 100, nonzeros: int = 10, columns: str = "unit", strength: float = 1.0
) -> Generated:
    """P2: normal A (columns of norm 1, or ``raw``), x0 with some non-zeros, P(y = 1) = 1 / (1 + exp(-strength <a, x0>))."""
    A = rng.normal(size=(n, d))
    if columns == "unit":
        A /= np.linalg.norm(A, axis=0)
    x0 = np.zeros(d)
    x0[rng.choice(d, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    return A, np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-strength * (A @ x0))), 1.0, -1.0)


def plateaus(rng: np.random.Generator, n: int = 600, d: int = 100, count: int = 5, noise: float = 0.01) -> Generated:
    """P2: normal A with columns of norm 1, x0 piecewise constant with ``count`` plateaus, b = A x0 + noise."""
    A = rng.normal(size=(n, d))
    A /= np.linalg.norm(A, axis=0)
    x0 = np.repeat(rng.normal(size=count), -(-d // count))[:d]
    return A, A @ x0 + noise * rng.normal(size=n)


def correlated(rng: np.random.Generator, n: int = 4000, d: int = 200, correlation: float = 0.0, snr: float = 3.0) -> Generated:
    """P3: x_j = z_j + a u with correlation a^2/(1+a^2); beta_j = (-1)^j exp(-2 (j-1)/20); signal-to-noise ratio ``snr``.

    The ratio is that of standard deviations: sd(<x, beta>) / sd(noise).
    """
    a = np.sqrt(correlation / (1.0 - correlation))
    X = rng.normal(size=(n, d)) + a * rng.normal(size=(n, 1))
    j = np.arange(1, d + 1)
    signal = X @ ((-1.0) ** j * np.exp(-2.0 * (j - 1) / 20.0))
    return X, signal + signal.std() / snr * rng.normal(size=n)


def decaying(
    rng: np.random.Generator, n: int = 10000, d: int = 100, power: float = 1.0, mean: float = 0.5, noise: float = 0.2
) -> Generated:
    """A first feature of 1, and d - 1 around ``mean`` with deviations j^-power on axes of their own; y = <w*, x> + noise."""
    axes, _ = np.linalg.qr(rng.normal(size=(d - 1, d - 1)))
    X = np.ones((n, d))
    X[:, 1:] = mean + (rng.normal(size=(n, d - 1)) * np.arange(1.0, d) ** -power) @ axes.T
    return X, X @ rng.normal(size=d) + noise * rng.normal(size=n)


def classes(
    rng: np.random.Generator, n: int = 14000, d: int = 100, nonzeros: int = 20, noise: float = 0.5, unit: bool = True
) -> Generated:
    """Two classes: normal features (rows of norm 1 if ``unit``), y = sign(<x, w*> + noise), w* with some non-zeros."""
    X = rng.normal(size=(n, d))
    w = np.zeros(d)
    w[rng.choice(d, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    score = X @ w
    y = np.where(score + noise * score.std() * rng.normal(size=n) > 0.0, 1.0, -1.0)
    if unit:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def text(
    rng: np.random.Generator, n: int = 12000, d: int = 5000, row: int = 30, power: float = 1.1, noise: float = 0.5
) -> Generated:
    """Text-like rows: ``row`` words drawn with frequencies k^-power, rows of norm 1; y = sign(<x, w*> + noise)."""
    share = np.arange(1, d + 1) ** -power
    columns = rng.choice(d, size=(n, row), p=share / share.sum())
    values = np.ones(n * row)
    X = sp.csr_matrix((values, columns.ravel(), np.arange(0, n * row + 1, row)), shape=(n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags_array(1.0 / norms) @ X)
    score = X @ rng.normal(size=d)
    return X, np.where(score + noise * score.std() * rng.normal(size=n) > 0.0, 1.0, -1.0)


GENERATORS: dict[str, Callable[..., Generated]] = {
    "uniform": uniform,
    "lasso": lasso,
    "logistic": logistic,
    "plateaus": plateaus,
    "correlated": correlated,
    "decaying": decaying,
    "classes": classes,
    "text": text,
}
