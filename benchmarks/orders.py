"""Settings beside each other over fresh orders of the rows: means, and paired differences in standard errors.

    python benchmarks/orders.py --data FOLDER [--orders 5] [--write docs/defaults.md] [--json FILE]

The default, with and without l1. Each order is a seeded
permutation; sets without a test file are split anew by it. Two settings see the same rows in the same order, so the differences
are paired: the order itself moves an error by more than settings do. Errors of numbers are squared errors over the variance of
y.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import defaults
from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning
from onlinear.losses import is_joint
from options import parser_of
from pages import report

TUNED = ("a9a", "rcv1-ccat", "covtype", "phishing", "spambase", "relathe", "cadata", "abalone")  # they chose the constants
NOISY = ("arcene", "relathe", "basehock", "spambase")  # so few rows that they need three times the orders
BUNDLED = {"iris": load_iris, "wine": load_wine, "breast-cancer": load_breast_cancer, "diabetes": load_diabetes}
STRENGTHS = ("0", "1e-5", "1e-4", "1e-3")  # of l1
MEASURES = ("error", "log loss", "objective", "non-zeros")
HEAD = ["set", "l1", *MEASURES, *(f"{measure}, before" for measure in MEASURES)]


class Outcome(NamedTuple):
    """What one model did: held-out error and log loss (nan for numbers), the objective on its own rows, and non-zeros."""

    error: float
    loss: float
    objective: float
    nonzeros: float


def fresh(folder: Path, name: str, seed: int) -> defaults.Split:
    """The set in another order; split anew where it has no test file."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        kept, held = order[: len(y) * 3 // 4], order[len(y) * 3 // 4 :]
        return defaults.Split(X[kept], y[kept], X[held], y[held])
    files = (defaults.CLASSES | defaults.NUMBERS)[name]
    return defaults.load(folder, name, files, seed)


def outcome(split: defaults.Split, **params: Any) -> Outcome:
    """A model of the rows as they stand."""
    classes = split.y.dtype.kind in "iu" or len(np.unique(split.y)) == 2
    model = (OnlineClassifier if classes else OnlineRegressor)(shuffle=False, **params).fit(split.X, split.y)
    targets, loss, unit = split.y, np.nan, float(np.var(split.y))
    if classes:
        targets, unit = np.where(split.y[:, None] == model.classes_[1 if len(model.classes_) == 2 else 0 :], 1.0, -1.0), 1.0
        chances = model.predict_proba(split.X_test)[np.arange(len(split.y_test)), np.searchsorted(model.classes_, split.y_test)]
        loss = -float(np.mean(np.log(np.maximum(chances, 1e-15))))
    joined = classes and is_joint(model.learner_.loss)  # whose objective is another than that of one against the rest
    objective = np.nan if joined else float(np.sum(model.learner_.objective(split.X, targets))) / unit
    return Outcome(1.0 - model.score(split.X_test, split.y_test), loss, objective, float(np.count_nonzero(model.coef_)))


def paired(ours: list[Outcome], theirs: list[Outcome]) -> list[str]:
    """Our means, each with its difference to theirs in standard errors, then their means."""
    mine, other = np.array(ours), np.array(theirs)
    spread = (mine - other).std(axis=0, ddof=1) / sqrt(len(mine))
    apart = np.divide((mine - other).mean(axis=0), spread, out=np.zeros(4), where=spread > 0.0)
    found = [cell(k, mine[:, k].mean()) for k in range(4)]
    shown = [f"{text} ({apart[k]:+.1f})" if text and k < 3 else text for k, text in enumerate(found)]
    return [*shown, *(cell(k, other[:, k].mean()) for k in range(4))]


def cell(place: int, value: float) -> str:
    """A mean of an outcome, as tables show it."""
    return "" if np.isnan(value) else f"{value:,.0f}" if place == 3 else f"{value:.4f}"


def lines(folder: Path, orders: int) -> Iterator[list[str]]:
    """The default beside what it was before (fully implicit steps with one size for all columns)."""
    for name in (*defaults.CLASSES, *defaults.NUMBERS, *BUNDLED):
        seeds = range(orders * 3 if name in (*NOISY, *BUNDLED) else orders)
        splits = [fresh(folder, name, seed) for seed in seeds]
        for l1 in STRENGTHS:
            penalty = f"l1={l1}" if l1 != "0" else "none"
            ours = [outcome(split, penalty=penalty) for split in splits]
            theirs = [outcome(split, penalty=penalty, **before_of(name, l1)) for split in splits]
            yield [f"{name}{'' if name in TUNED else ' *'}", l1, *paired(ours, theirs)]


def before_of(name: str, l1: str) -> dict[str, Any]:
    """The default of release 0.1."""
    numbers = name in defaults.NUMBERS or name == "diabetes"
    scale, eta = ("max-abs", 10.0) if numbers else ("rms", 4.8)
    if l1 == "0":
        return {"solver": f"implicit-sgd,eta={50 if numbers else 4.8}", "average": "adaptive", "scale": scale}
    return {"solver": f"fiol,eta={eta:g}", "average": "none", "scale": scale}


def main() -> int:
    parser = parser_of(__doc__, data=True, page=True)
    parser.add_argument("--orders", type=int, default=5)
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QualityWarning)
        cells = [HEAD, *lines(args.data, args.orders)]
    report("orders", [("Fresh orders", cells)], args.write, args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
