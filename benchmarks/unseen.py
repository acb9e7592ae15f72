"""Sets off the path: the defaults beside scikit-learn, Vowpal Wabbit and River, in one pass.

    python benchmarks/unseen.py [--sets NAMES] [--orders 5] [--first 0] [--peers FILE] [--json FILE]
                                [--write docs/benchmarks-method.md]

Small sets that come with scikit-learn, and generated ones that are hard in one way each: rare classes, columns of very unequal
size, far from 0, twice there or heavy-tailed, more columns than rows, drift, sorted labels, noise, outliers, constants, counts.
Each order draws a set anew, or permutes it. Three quarters of the rows are learned in blocks, each of which is predicted before
(one row, then two, four ... to 128), which gives the progressive loss; the last quarter is held out. All tools learn the same
rows once. The peers are as they come, on raw rows and on rows standardised beforehand (sparse ones: divided by the root mean
square of their column); scikit-learn's SGD with and without its average, Vowpal Wabbit with and without --coin. The best peer
is the one of the smallest mean over the orders, chosen afterwards for each set and measure.

FILE of --peers keeps what the peers did, so that a further run with the same orders measures onlinear alone.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_linnerud, load_wine
from sklearn.linear_model import SGDClassifier, SGDRegressor

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning
from options import parser_of
from pages import fill
from tools import versions

CLASSES, NUMBERS, COUNTS = "classes", "numbers", "counts"
LARGEST_BLOCK = 128
MEASURES = ("progressive", "held out", "wrong")
WORST = 1e12  # of a mean loss: a model that diverged has it


class Set(NamedTuple):
    """What is to be learned; ``kind``: which targets it has; ``ordered``: whether its rows have an order of their own."""

    kind: str
    make: Callable[[np.random.Generator], tuple[Any, np.ndarray]]
    ordered: bool = False


# --- sets ------------------------------------------------------------------------------------------------------------


def bundled(load: Callable[..., Any]) -> Callable[[np.random.Generator], tuple[Any, np.ndarray]]:
    """A set that comes with scikit-learn; of several targets the first."""

    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, y = load(return_X_y=True)
        return X, y if y.ndim == 1 else y[:, 0]

    return made


def signs(rng: np.random.Generator, margins: np.ndarray) -> np.ndarray:
    """Labels 0 and 1 of these log-odds."""
    return (rng.random(len(margins)) < 1.0 / (1.0 + np.exp(-margins))).astype(int)


def plain(rng: np.random.Generator, n: int = 3000, d: int = 12, size: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns, and a score that depends on all of them."""
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) * (size / sqrt(d))


def odds(change: Callable[[np.random.Generator, np.ndarray], Any], **plainly: Any) -> Callable[..., Any]:
    """Two classes by the log-odds of ``plain``, of rows that are changed after."""

    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, score = plain(rng, **plainly)
        return change(rng, X), signs(rng, 2.0 * score)

    return made


def line(change: Callable[[np.random.Generator, np.ndarray], Any], **plainly: Any) -> Callable[..., Any]:
    """Numbers, half of whose variance is noise, of rows that are changed after."""

    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, score = plain(rng, **plainly)
        return change(rng, X), score + score.std() * rng.standard_normal(len(score))

    return made


def as_is(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X


def one_huge(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * np.where(np.arange(X.shape[1]) == 3, 1e6, 1.0)


def years(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X * 10.0 + np.where(np.arange(X.shape[1]) % 2, 1990.0, 0.0)


def twice(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.repeat(X, rng.integers(1, 12, X.shape[1]), axis=1)


def heavy(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.exp(2.0 * X)


def tails(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.sign(X) * np.abs(X) ** 3


def rare(share: float, n: int) -> Callable[..., Any]:
    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X = rng.standard_normal((n, 10))
        y = (rng.random(n) < share).astype(int)
        return X + y[:, None] * (rng.standard_normal(10) * 0.7), y

    return made


def flipped(share: float) -> Callable[..., Any]:
    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, score = plain(rng)
        return X, (score > 0.0) ^ (rng.random(len(score)) < share)

    return made


def crossed(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X = rng.standard_normal((3000, 10))
    return X, signs(rng, 3.0 * np.sign(X[:, 0] * X[:, 1]) + 0.5 * X[:, 2])


def wide(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """More columns than rows, fifty of which matter."""
    X = rng.standard_normal((300, 3000))
    return X, X[:, :50] @ rng.standard_normal(50) / sqrt(50.0)


def moving(gradual: bool) -> Callable[..., Any]:
    """Weights that turn to others, in the middle of the rows that are learned, or all along."""

    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        n, d = 4000, 12
        X, before, after = rng.standard_normal((n, d)), rng.standard_normal(d), rng.standard_normal(d)
        part = np.arange(n) / n if gradual else (np.arange(n) > 0.4 * n) * 1.0
        score = X @ before * (1.0 - part) + X @ after * part
        return X, signs(rng, 1.5 * score)

    return made


def sorted_labels(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, score = plain(rng)
    y = signs(rng, 2.0 * score)
    kept = np.argsort(y[:2250], kind="stable")
    return np.concatenate([X[:2250][kept], X[2250:]]), np.concatenate([y[:2250][kept], y[2250:]])


def topics(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Texts of twenty subjects: words by Zipf's law, of which each subject has some more often; counts."""
    n, words = 4000, 4000
    common = 1.0 / (10.0 + np.arange(words))
    y = rng.integers(0, 20, n)
    loves = np.exp(1.6 * rng.standard_normal((20, words)) * (rng.random((20, words)) < 0.1))
    rows = []
    for subject in range(20):
        chances = common * loves[subject]
        rows.append(np.cumsum(chances / chances.sum()))
    counts = sp.lil_array((n, words))
    for i in range(n):
        found, times = np.unique(np.searchsorted(rows[y[i]], rng.random(rng.poisson(30.0) + 1)), return_counts=True)
        counts[[i], np.minimum(found, words - 1)] = times
    return sp.csr_array(counts), y


def clicks(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Eight categories of a thousand values each, most of them rare, and two clicks in ten."""
    n, of_each = 8000, 1000
    drawn = np.minimum(rng.zipf(1.3, (n, 8)) - 1, of_each - 1)
    columns = drawn + of_each * np.arange(8)
    weights = 0.6 * rng.standard_normal(8 * of_each)
    X = sp.csr_array((np.ones(8 * n), columns.ravel(), np.arange(0, 8 * n + 1, 8)), shape=(n, 8 * of_each))
    return X, signs(rng, X @ weights - 1.5)


def mixed_table(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """A table of prices, ages, years, flags and counts, raw."""
    n = 3000
    Z = rng.standard_normal((n, 6))
    raw = [np.exp(8.0 + Z[:, 0]), 40.0 + 12.0 * Z[:, 1], 2005.0 + 6.0 * Z[:, 2], (Z[:, 3] > 1.0) * 1.0]
    raw += [rng.poisson(np.exp(Z[:, 4])).astype(float), 1e-4 * Z[:, 5]]
    return np.column_stack(raw), signs(rng, Z @ (1.2 * rng.standard_normal(6)))


def few(rows: int) -> Callable[..., Any]:
    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, score = plain(rng, rows, 4, 3.0)
        return X, signs(rng, 2.0 * score)

    return made


def outliers(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """One target in two hundred is thirty times as far."""
    X, score = plain(rng)
    y = score + 0.5 * rng.standard_normal(len(score))
    return X, y * np.where(rng.random(len(y)) < 0.005, 30.0, 1.0)


def long_tailed(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, score = plain(rng)
    return X, np.exp(score + 0.5 * rng.standard_normal(len(score)))


def constant(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, _ = plain(rng, 600)
    return X, np.full(600, 7.0)


def trend(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Numbers that grow with time."""
    X, score = plain(rng)
    return X, score + 3e-3 * np.arange(len(score))


def noiseless(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, score = plain(rng)
    return X @ (np.eye(12) + 0.5), 100.0 + score


def counted(score: Callable[[np.random.Generator], tuple[Any, np.ndarray]], level: float = 0.5) -> Callable[..., Any]:
    def made(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        X, s = score(rng)
        return X, rng.poisson(np.exp(s + level)).astype(float)

    return made


def lognormal_rates(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    Z = rng.standard_normal((3000, 6))
    return np.exp(1.5 * Z), 0.5 * Z[:, 0] - 0.3 * Z[:, 1]


def far_rates(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    Z = rng.standard_normal((3000, 6))
    return np.sign(Z) * np.abs(Z) ** 5, 0.4 * Z[:, 0]


def bag_rates(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X = sp.csr_array(sp.random_array((8000, 600), density=0.02, rng=rng, format="csr"))
    X.data[:] = 1.0
    return X, X @ (0.5 * rng.standard_normal(600))


def heavy_noise(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X = rng.standard_normal((6000, 20))
    return X, np.where(rng.random(6000) < 0.05, np.round(1000.0 * rng.gamma(2.0, size=6000)), 0.0)


def late_rates(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, y = counted(plain, 13.8)(rng)
    y[0] = 0.0
    return X, y


def moving_rates(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, score = plain(rng)
    return X, rng.poisson(np.exp(score + np.linspace(0.0, 4.0, len(score)))).astype(float)


def with_constants(rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    X, score = plain(rng)
    return np.column_stack([X, np.full((len(X), 2), 5.0), np.full(len(X), -1e4)]), score


SETS = {
    "iris": Set(CLASSES, bundled(load_iris)),
    "wine": Set(CLASSES, bundled(load_wine)),
    "breast-cancer": Set(CLASSES, bundled(load_breast_cancer)),
    "digits": Set(CLASSES, bundled(load_digits)),
    "plain classes": Set(CLASSES, odds(as_is)),
    "crossed signs": Set(CLASSES, crossed),
    "positives .1 %": Set(CLASSES, rare(0.001, 20000)),
    "positives 3 %": Set(CLASSES, rare(0.03, 5000)),
    "a column of 1e6": Set(CLASSES, odds(one_huge)),
    "years": Set(CLASSES, odds(years)),
    "repeated columns": Set(CLASSES, odds(twice)),
    "lognormal columns": Set(CLASSES, odds(heavy)),
    "cubed columns": Set(CLASSES, odds(tails)),
    "40 % flipped": Set(CLASSES, flipped(0.4)),
    "labels of noise": Set(CLASSES, flipped(0.5)),
    "3,000 columns of 225 rows": Set(CLASSES, lambda rng: (lambda X, s: (X, signs(rng, 4.0 * s)))(*wide(rng))),
    "abrupt drift": Set(CLASSES, moving(False), True),
    "gradual drift": Set(CLASSES, moving(True), True),
    "sorted by label": Set(CLASSES, sorted_labels, True),
    "20 subjects": Set(CLASSES, topics),
    "clicks": Set(CLASSES, clicks),
    "raw table": Set(CLASSES, mixed_table),
    "30 rows": Set(CLASSES, few(40)),
    "diabetes": Set(NUMBERS, bundled(load_diabetes)),
    "linnerud": Set(NUMBERS, bundled(load_linnerud)),
    "plain numbers": Set(NUMBERS, line(as_is)),
    "a column of 1e6, numbers": Set(NUMBERS, line(one_huge)),
    "years, numbers": Set(NUMBERS, line(years)),
    "repeated columns, numbers": Set(NUMBERS, line(twice)),
    "lognormal columns, numbers": Set(NUMBERS, line(heavy)),
    "cubed columns, numbers": Set(NUMBERS, line(tails)),
    "targets with outliers": Set(NUMBERS, outliers),
    "lognormal targets": Set(NUMBERS, long_tailed),
    "3,000 columns, numbers": Set(NUMBERS, wide),
    "trend": Set(NUMBERS, trend, True),
    "without noise": Set(NUMBERS, noiseless),
    "constant target": Set(NUMBERS, constant),
    "plain counts": Set(COUNTS, counted(plain)),
    "counts, lognormal columns": Set(COUNTS, counted(lognormal_rates)),
    "counts, columns to the 5th": Set(COUNTS, counted(far_rates)),
    "counts, bag of words": Set(COUNTS, counted(bag_rates)),
    "counts, heavy noise": Set(COUNTS, heavy_noise),
    "counts, first 0, then 1e6": Set(COUNTS, late_rates, True),
    "counts that grow": Set(COUNTS, moving_rates, True),
    "counts, constant columns": Set(COUNTS, counted(with_constants)),
}


# --- tools -----------------------------------------------------------------------------------------------------------


class Predictor:
    """One model: ``learn`` a block, ``predict`` one: probabilities (n, K), or means (n,)."""

    def __init__(self, kind: str, classes: np.ndarray) -> None:
        self.kind, self.classes = kind, classes

    def learn(self, X: Any, y: np.ndarray) -> None:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        raise NotImplementedError


class Estimator(Predictor):
    """A model with the methods of scikit-learn's."""

    model: Any

    def learn(self, X: Any, y: np.ndarray) -> None:
        self.model.partial_fit(X, y, **({"classes": self.classes} if self.kind == CLASSES else {}))

    def predict(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(X) if self.kind == CLASSES else self.model.predict(X)


class Ours(Estimator):
    def __init__(self, kind: str, classes: np.ndarray, **params: Any) -> None:
        super().__init__(kind, classes)
        named = {"loss": "poisson"} if kind == COUNTS else {}
        self.model = (OnlineClassifier if kind == CLASSES else OnlineRegressor)(**named | params)


class ScikitLearn(Estimator):
    def __init__(self, kind: str, classes: np.ndarray, **params: Any) -> None:
        super().__init__(kind, classes)
        self.model = SGDClassifier("log_loss", **params) if kind == CLASSES else SGDRegressor(**params)


class VowpalWabbit(Predictor):
    def __init__(self, kind: str, classes: np.ndarray, options: str = "") -> None:
        super().__init__(kind, classes)
        from vowpalwabbit import Workspace

        if kind == CLASSES:
            options += " --loss_function logistic "
            options += f"--oaa {len(classes)} --probabilities" if len(classes) > 2 else "--link logistic"
        elif kind == COUNTS:
            options += " --loss_function poisson --link poisson"
        self.vw = Workspace(f"--quiet {options}")

    def _lines(self, X: Any) -> list[str]:
        X = sp.csr_array(X)
        pieces = [f"{j}:{x!r}" for j, x in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
        return [" ".join(pieces[a:b]) for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)]

    def learn(self, X: Any, y: np.ndarray) -> None:
        if self.kind == CLASSES:
            places = np.searchsorted(self.classes, y)
            y = places + 1 if len(self.classes) > 2 else 2 * places - 1
        for label, text in zip(y.tolist(), self._lines(X), strict=True):
            self.vw.learn(f"{label} | {text}")

    def predict(self, X: Any) -> np.ndarray:
        found = np.array([self.vw.predict(f"| {text}") for text in self._lines(X)])
        return np.column_stack([1.0 - found, found]) if self.kind == CLASSES and found.ndim == 1 else found


class River(Predictor):
    def __init__(self, kind: str, classes: np.ndarray, optimizer: str | None = None) -> None:
        super().__init__(kind, classes)
        from river import linear_model, multiclass, optim

        chosen: dict[str, Any] = {} if optimizer is None else {"optimizer": getattr(optim, optimizer)()}
        if kind == COUNTS:
            chosen["loss"] = optim.losses.Poisson()
        self.model = (linear_model.LogisticRegression if kind == CLASSES else linear_model.LinearRegression)(**chosen)
        if kind == CLASSES and len(classes) > 2:
            self.model = multiclass.OneVsRestClassifier(self.model)

    @staticmethod
    def _rows(X: Any) -> Iterator[dict[int, float]]:
        X = sp.csr_array(X)
        for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
            yield dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))

    def learn(self, X: Any, y: np.ndarray) -> None:
        targets = np.searchsorted(self.classes, y).tolist() if self.kind == CLASSES else y.tolist()
        if self.kind == CLASSES and len(self.classes) == 2:
            targets = [target == 1 for target in targets]
        for row, target in zip(self._rows(X), targets, strict=True):
            self.model.learn_one(row, target)

    def predict(self, X: Any) -> np.ndarray:
        if self.kind != CLASSES:
            found = np.array([self.model.predict_one(row) for row in self._rows(X)])
            return np.exp(np.minimum(found, 700.0)) if self.kind == COUNTS else found
        chances = [self.model.predict_proba_one(row) for row in self._rows(X)]
        two = len(self.classes) == 2
        names = (False, True) if two else range(len(self.classes))
        return np.array([[row.get(name, 0.0) for name in names] for row in chances])


OURS: dict[str, Callable[[str, np.ndarray], Predictor]] = {
    "default": Ours,
    "mixture": lambda kind, classes: Ours(kind, classes, solver="mixture"),
}
PEERS: dict[str, Callable[[str, np.ndarray], Predictor]] = {
    "SGD": ScikitLearn,
    "ASGD": lambda kind, classes: ScikitLearn(kind, classes, average=True),
    "VW": VowpalWabbit,
    "VW --coin": lambda kind, classes: VowpalWabbit(kind, classes, "--coin"),
    "River": River,
    "River AdaGrad": lambda kind, classes: River(kind, classes, "AdaGrad"),
    "River FTRL": lambda kind, classes: River(kind, classes, "FTRLProximal"),
}
RIVER_MOST = 400_000  # numbers of a set, times its classes, that River reads


def losses(kind: str, classes: np.ndarray, found: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss of each prediction: log loss, squared error, half of the Poisson deviance."""
    if kind == CLASSES:
        chances = found[np.arange(len(y)), np.searchsorted(classes, y)]
        return -np.log(np.maximum(np.nan_to_num(chances), 1e-15))
    if kind == NUMBERS:
        return np.minimum(np.nan_to_num((found - y) ** 2, nan=WORST), WORST)
    known, mean = np.where(y > 0.0, y, 1.0), np.maximum(found, 1e-300)
    return np.minimum(np.nan_to_num(mean - y - y * np.log(mean / known), nan=WORST), WORST)


def judged(model: Predictor, X: Any, y: np.ndarray, cut: int) -> list[float]:
    """Progressive loss, loss held out, and share of wrong classes."""
    before, first, size = [], 0, 1
    try:
        while first < cut:
            last = min(first + size, cut)
            if first > 0:
                before.append(losses(model.kind, model.classes, model.predict(X[first:last]), y[first:last]))
            model.learn(X[first:last], y[first:last])
            first, size = last, min(2 * size, LARGEST_BLOCK)
        found = model.predict(X[cut:])
    except (ArithmeticError, ValueError) as error:
        print(f"    {type(model).__name__}: {str(error)[:60]}", file=sys.stderr)
        return [WORST, WORST, 1.0]
    wrong = np.mean(model.classes[np.argmax(np.nan_to_num(found), axis=1)] != y[cut:]) if model.kind == CLASSES else np.nan
    held = losses(model.kind, model.classes, found, y[cut:])
    return [float(np.mean(np.concatenate(before))), float(np.mean(held)), float(wrong)]


def drawn(chosen: Set, seed: int) -> tuple[Any, np.ndarray, int]:
    """The rows of one order, and how many are learned."""
    rng = np.random.default_rng(seed)
    X, y = chosen.make(rng)
    X = sp.csr_matrix(X) if sp.issparse(X) else X  # scikit-learn wants indices of 32 bits
    if sp.issparse(X):
        X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    if not chosen.ordered:
        order = rng.permutation(len(y))
        X, y = X[order], y[order]
    return X, y, len(y) * 3 // 4


def scaled(X: Any) -> Any:
    """All rows standardised, sparse ones divided by root mean squares."""
    if sp.issparse(X):
        sizes = np.sqrt(np.asarray(X.power(2).sum(axis=0)).ravel() / np.maximum(1, np.diff(sp.csc_matrix(X).indptr)))
        return sp.csr_matrix(X @ sp.diags_array(1.0 / np.where(sizes > 0.0, sizes, 1.0)))
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def measured(chosen: Set, seeds: range, peers: bool) -> dict[str, list[list[float]]]:
    """What every tool did in each order."""
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        X, y, cut = drawn(chosen, seed)
        classes = np.unique(y)
        if not peers:
            for name, make in OURS.items():
                found.setdefault(name, []).append(judged(make(chosen.kind, classes), X, y, cut))
            continue
        size = (X.nnz if sp.issparse(X) else X.size) * (len(classes) if chosen.kind == CLASSES and len(classes) > 2 else 1)
        for scale, rows in (("raw", X), ("standardised", scaled(X))):
            for name, make in PEERS.items():
                if name.startswith("River") and size > RIVER_MOST:
                    continue
                if chosen.kind == COUNTS and (name.endswith("SGD") or (name.startswith("River ") and scale == "raw")):
                    continue
                found.setdefault(f"{name}, {scale}", []).append(judged(make(chosen.kind, classes), rows, y, cut))
        found.setdefault("constant", []).append(of_constant(chosen.kind, classes, y, cut))
    return found


def of_constant(kind: str, classes: np.ndarray, y: np.ndarray, cut: int) -> list[float]:
    """The mean of the rows learned, or their shares of the classes."""
    if kind == CLASSES:
        shares = np.maximum(1e-15, np.array([np.mean(y[:cut] == name) for name in classes]))
        guess = np.tile(shares, (len(y), 1))
    else:
        guess = np.full(len(y), np.mean(y[:cut]))
    each = losses(kind, classes, guess, y)
    wrong = float(np.mean(y[cut:] != classes[np.argmax(guess[0])])) if kind == CLASSES else np.nan
    return [float(each[1:cut].mean()), float(each[cut:].mean()), wrong]


def main() -> int:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--sets", help="names, separated by ';'")
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first order's seed")
    parser.add_argument("--peers", type=Path, help="a file that keeps what the peers did")
    args = parser.parse_args()
    warnings.simplefilter("ignore", QualityWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    seeds = range(args.first, args.first + args.orders)
    known = json.loads(args.peers.read_text()) if args.peers and args.peers.exists() else {}
    ours: dict[str, Any] = {}
    rows = []
    for name in args.sets.split(";") if args.sets else SETS:
        key = f"{name}, {seeds}"
        if key not in known:
            known[key] = measured(SETS[name], seeds, True)
            if args.peers:
                args.peers.write_text(json.dumps(known))
        ours[name] = measured(SETS[name], seeds, False)
        rows.append(row(name, SETS[name].kind, ours[name], known[key]))
        print(rows[-1], flush=True)
        if args.json:
            args.json.write_text(json.dumps(ours))
    if args.write:
        fill(args.write, "unseen", "\n".join([versions(), "", *HEAD, *rows]))
    return 0


HEAD = [
    "| set | measure | default | mixture | best peer | constant | default / peer | mixture / peer |",
    "|---|---|---:|---:|---|---:|---:|---:|",
]


def beside(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The ratio of the means, and in brackets the paired difference in standard errors."""
    apart = ours - theirs
    spread = apart.std(ddof=1) / sqrt(len(apart))
    ratio = ours.mean() / theirs.mean() if theirs.mean() > 0.0 else 1.0 if ours.mean() == 0.0 else np.inf
    return f"{ratio:.3f} ({apart.mean() / spread:+.1f})" if spread > 0.0 else f"{ratio:.3f}"


def row(name: str, kind: str, ours: dict[str, list[list[float]]], peers: dict[str, list[list[float]]]) -> str:
    """The lines of one set."""
    lines = []
    for k, measure in enumerate(MEASURES[: 3 if kind == CLASSES else 2]):
        of = {tool: np.array(found)[:, k] for tool, found in peers.items()}
        constant = of.pop("constant")
        best = min(of, key=lambda tool: of[tool].mean())
        mine = [np.array(ours[tool])[:, k] for tool in OURS]
        shown = [f"{each.mean():.4g}" for each in mine]
        ratios = [beside(each, of[best]) for each in mine]
        cells = [name if k == 0 else "", measure, *shown, f"{of[best].mean():.4g} {best}", f"{constant.mean():.4g}", *ratios]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
