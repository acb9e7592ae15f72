"""Counts: the Poisson loss beside its constant, its optimum, Vowpal Wabbit and River, in one pass.

    python benchmarks/counts.py --data FOLDER [--write docs/tutorials/counts.md] [--json FILE]

Generated counts whose means lie between a hundredth and two million, and numbers of real sets that are never negative. Half of
the rows is learned once, in 3 random orders, the other half predicted. The optimum is scikit-learn's PoissonRegressor, with
columns standardised beforehand.
"""

from __future__ import annotations

import json
import lzma
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_svmlight_file
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinear import OnlineRegressor, QualityWarning
from options import parser_of
from pages import fill, machine
from tools import VowpalWabbit, versions

ORDERS, ROWS = 3, 20_000
Rows = tuple[Any, np.ndarray]


def generated(seed: int, level: float, columns: int = 10, *, spread: float = 0.0, words: bool = False) -> Rows:
    """Counts of a mean exp(<w, x> + level); ``spread``: the variance of what multiplies each mean; ``words``: sparse rows."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((ROWS, columns), density=0.02, rng=rng, format="csr") if words else rng.standard_normal((ROWS, columns))
    if words:
        X.data[:] = 1.0
    mean = np.exp(X @ (rng.standard_normal(columns) * (0.5 if words else 0.3)) + level)
    if spread > 0.0:
        mean *= rng.gamma(1.0 / spread, spread, ROWS)
    return X, rng.poisson(mean).astype(float)


def claims(seed: int) -> Rows:
    """What insured people were paid: mostly nothing, else some hundreds."""
    X, y = generated(seed, -4.0)
    return X, y * np.random.default_rng(seed).gamma(2.0, 425.0, len(y))


def real(folder: Path, name: str) -> Rows:
    with lzma.open(folder / name / f"{name}.svm.xz") as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y


def the_rest(rows: Rows) -> Rows:
    """What is left of each share in per cent."""
    X, y = rows
    return X, 100.0 - y


def sets(folder: Path) -> dict[str, Callable[[], Rows]]:
    """The sets, by name."""
    return {
        "mean .01": lambda: generated(1, -5.0),
        "mean 2": lambda: generated(2, 0.0),
        "mean 2,000": lambda: generated(3, 7.0),
        "mean 2 million": lambda: generated(4, 14.0),
        "mean 30, variance 5 times its square": lambda: generated(5, 3.0, spread=4.0),
        "words, mean .1": lambda: generated(6, -3.0, 1000, words=True),
        "words, mean 10": lambda: generated(7, 0.0, 1000, words=True),
        "claims, 98 % of them 0": lambda: claims(8),
        "abalone, rings": lambda: real(folder, "abalone"),
        "cpusmall, % in user mode": lambda: real(folder, "cpusmall"),
        "cpusmall, % not in user mode": lambda: the_rest(real(folder, "cpusmall")),
        "cadata, prices": lambda: real(folder, "cadata"),
        "diabetes": lambda: load_diabetes(return_X_y=True),
    }


def deviance(mean: np.ndarray, y: np.ndarray) -> float:
    """Half the mean Poisson deviance of predictions of the mean."""
    known = np.where(y > 0.0, y, 1.0)
    return float(np.mean(mean - y - y * np.log(np.maximum(mean, 1e-300) / known)))


def ours(**settings: Any) -> Callable[[Any, np.ndarray, Any], np.ndarray]:
    return lambda X, y, test: OnlineRegressor("poisson", shuffle=False, **settings).fit(X, y).predict(test)


def vowpal_wabbit(X: Any, y: np.ndarray, test: Any) -> np.ndarray:
    tool = VowpalWabbit(None, "--loss_function poisson --link poisson")
    tool.learn(sp.csr_array(X), y)
    return tool.scores(sp.csr_array(test))


def river(X: Any, y: np.ndarray, test: Any) -> np.ndarray:
    from river import linear_model, optim, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression(loss=optim.losses.Poisson())
    for row, target in zip(sp.csr_array(X).toarray().tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), target)
    rows = sp.csr_array(test).toarray().tolist()
    return np.exp(np.clip([model.predict_one(dict(enumerate(row))) for row in rows], -700.0, 700.0))


def optimum(X: Any, y: np.ndarray, test: Any) -> np.ndarray:
    model = make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), PoissonRegressor(alpha=1e-6, max_iter=300))
    return model.fit(X, y / y.mean()).predict(test) * y.mean()


MODELS: dict[str, Callable[[Any, np.ndarray, Any], np.ndarray]] = {
    '`OnlineRegressor("poisson")`': ours(),
    "`l1=1e-6`": ours(l1=1e-6),
    '`average="adaptive"`': ours(average="adaptive"),
    "Vowpal Wabbit": vowpal_wabbit,
    "River, standardised": river,
    "the optimum": optimum,
}


def shares(rows: Rows) -> list[float]:
    """What every model leaves of the constant's deviance, in the mean over the orders."""
    X, y = rows
    found, constants = np.zeros((len(MODELS), ORDERS)), np.zeros(ORDERS)
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        constants[seed] = deviance(np.full(len(test), y[train].mean()), y[test])
        for k, model in enumerate(MODELS.values()):
            try:
                found[k, seed] = deviance(model(X[train], y[train], X[test]), y[test])
            except (ArithmeticError, ValueError) as error:
                print(f"{list(MODELS)[k]}: {error}", file=sys.stderr)
                found[k, seed] = np.inf
    return (found.mean(axis=1) / constants.mean()).tolist()


def main() -> int:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    args = parser.parse_args()
    warnings.simplefilter("ignore", QualityWarning)
    lines = [machine(), "", versions(), "", f"| set | {' | '.join(MODELS)} |", f"|---|{'---:|' * len(MODELS)}"]
    figures: dict[str, dict[str, float]] = {}
    for name, load in sets(args.data).items():
        left = shares(load())
        figures[name] = dict(zip(MODELS, left, strict=True))
        cells = ["diverged" if not share < 1e3 else f"{share:.3g}" if share < 0.01 else f"{share:.3f}" for share in left]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if args.write:
        fill(args.write, "counts", "\n".join(lines))
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
