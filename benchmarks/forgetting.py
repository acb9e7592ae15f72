"""Forgetting: electricity prices in the order of time, beside River's linear models, and sets that do not change.

    python benchmarks/forgetting.py --data FOLDER [--write docs/tutorials/drift.md] [--json FILE]

Time: blocks of 100 rows are predicted by the model as it would be saved, then learned; and row by row. Rows that do not change:
5 random orders, a fifth held out, one pass with and without a half-life of 100,000 rows.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning
from pages import fill

BLOCK, ORDERS, LONG = 100, 5, 1e5
STILL = ("a9a/a9a", "phishing/phishing", "spambase/spambase", "mushrooms/mushrooms", "covtype/covtype.part")
STILL_NUMBERS = ("cadata/cadata", "cpusmall/cpusmall", "abalone/abalone", "space_ga/space_ga")
OURS: dict[str, dict[str, Any]] = {
    "`OnlineClassifier()`": {},
    "`forget=1000`": {"forget": 1000},
    "`forget=30`": {"forget": 30},
    "`forget=10`": {"forget": 10},
    '`forget=10, average="uniform"`': {"forget": 10, "average": "uniform"},
    '`forget=30, solver="ftrl,eta=2", average="uniform"`': {"forget": 30, "solver": "ftrl,eta=2", "average": "uniform"},
    '`forget=1, average="none"`': {"forget": 1, "average": "none"},
}


def load(folder: Path, name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    with lzma.open(folder / f"{name}.svm.xz") as file:
        return load_svmlight_file(file)


def in_blocks(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> float:
    """The share of wrong predictions of rows in blocks, each block predicted before it is learned."""
    model, classes, wrong = OnlineClassifier(**settings), np.unique(y), 0
    for first in range(0, len(y), BLOCK):
        rows = slice(first, first + BLOCK)
        said = model.predict(X[rows]) if first else classes[0]
        wrong += int(np.sum(said != y[rows]))
        model.partial_fit(X[rows], y[rows], classes=classes)
    return wrong / len(y)


def row_by_row(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> float:
    """The share of wrong predictions of rows, each predicted before it is learned."""
    learner = OnlineClassifier(**settings).partial_fit(X[:1], y[:1], classes=np.unique(y)).learner_
    _, predicted = learner.learn_checked(*learner.check_input(X[1:], y[1:], None))
    return float(np.mean((predicted[0] > 0.0) != (y[1:] > 0.0)))


def rivers() -> dict[str, Callable[[], Any]]:
    """River's linear classifiers with its optimisers, columns standardised; the best step sizes of a search are among these."""
    from river import linear_model, optim, preprocessing

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    def logistic(optimiser: Any) -> Callable[[], Any]:
        return lambda: scaled(linear_model.LogisticRegression(optimiser.clone()))

    return {
        "River, `LogisticRegression(SGD(0.01))`": logistic(optim.SGD(0.01)),
        "River, `LogisticRegression(SGD(1))`": logistic(optim.SGD(1.0)),
        "River, `LogisticRegression(AdaGrad(0.1))`": logistic(optim.AdaGrad(0.1)),
        "River, `LogisticRegression(Adam(0.01))`": logistic(optim.Adam(0.01)),
        "River, `LogisticRegression(FTRLProximal(0.5))`": logistic(optim.FTRLProximal(0.5)),
        "River, `PAClassifier(C=0.01)`": lambda: scaled(linear_model.PAClassifier(C=0.01, mode=1)),
        "River, `PAClassifier(C=1)`": lambda: scaled(linear_model.PAClassifier(C=1.0, mode=1)),
        "River, `Perceptron()`": lambda: scaled(linear_model.Perceptron()),
        "River, `ALMAClassifier()`": lambda: scaled(linear_model.ALMAClassifier()),
    }


def river_errors(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> list[float]:
    """The same two shares of a model of River, from one run."""
    model, blocks, single = make(), 0, 0
    names = [str(j) for j in range(X.shape[1])]
    rows, targets = [dict(zip(names, row, strict=True)) for row in X.tolist()], (y > 0.0).tolist()
    for first in range(0, len(y), BLOCK):
        block = range(first, min(first + BLOCK, len(y)))
        blocks += sum(bool(model.predict_one(rows[i])) != targets[i] for i in block)
        for i in block:
            single += bool(model.predict_one(rows[i])) != targets[i]
            model.learn_one(rows[i], targets[i])
    return [blocks / len(y), single / len(y)]


def still(X: sp.csr_matrix, y: np.ndarray, kind: Any, settings: dict[str, Any]) -> tuple[float, float, float]:
    """1 - score on rows held out, without and with the half-life: the mean without, the mean difference, its standard error."""
    found = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        held, learned = order[: len(y) // 5], order[len(y) // 5 :]
        models = [kind(shuffle=False, forget=forget, **settings).fit(X[learned], y[learned]) for forget in (None, LONG)]
        found.append([1.0 - model.score(X[held], y[held]) for model in models])
    without, forgets = np.array(found).T
    difference = forgets - without
    return float(without.mean()), float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(ORDERS))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ONLINEAR_DATA"), required="ONLINEAR_DATA" not in os.environ)
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    warnings.simplefilter("ignore", QualityWarning)
    folder, found = Path(args.data), {}
    X, y = load(folder, "electricity/electricity")
    X = X.toarray()
    for name, settings in OURS.items():
        found[name] = [in_blocks(X, y, settings), row_by_row(X, y, settings)]
    for name, make in rivers().items():
        found[name] = river_errors(make, X, y)
    lines = ["| electricity, 45,312 rows | error in blocks of 100 | row by row |", "|---|---:|---:|"]
    lines += [f"| {name} | {blocks:.4f} | {row:.4f} |" for name, (blocks, row) in found.items()]
    lines += [
        "",
        "| rows in random order | without | difference with `forget=100_000` | standard error |",
        "|---|---:|---:|---:|",
    ]
    for names, kind, settings in (
        (STILL, OnlineClassifier, {"solver": "implicit-ftrl,eta=2"}),
        (STILL_NUMBERS, OnlineRegressor, {"clip": False}),
    ):
        for name in names:
            found[name] = list(still(*load(folder, name), kind, settings))
            without, difference, error = found[name]
            lines.append(f"| {name.partition('/')[0]} | {without:.4f} | {difference:+.5f} | {error:.5f} |")
    text = "\n".join(lines)
    print(text)
    if args.write:
        fill(Path(args.write), "forgetting", text)
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
