"""Where defaults mislead: class weights, quantiles, targets of any unit and offset, drift; beside scikit-learn.

    python benchmarks/off_path.py --data FOLDER [--write docs/defaults.md] [--json FILE]

Every figure is measured in the run that prints it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

import defaults
from onlinear import OnlineClassifier, OnlineRegressor
from options import parser_of
from pages import Cells, report

RARE = 0.03  # the share of positives that is kept
WEIGHTS: dict[str, Any] = {"1": None, "balanced": "balanced", "1:100": {-1: 1, 1: 100}, "1:10000": {-1: 1, 1: 10_000}}
SEEDS = range(3)
BLOCK = 100  # rows that are predicted, and then trained on

Rows = tuple[Any, np.ndarray]


def generated(n: int = 20_000) -> Rows:
    """Ten features, 7 % positives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(5 - X @ rng.normal(size=10) * 0.7)), 1, -1)


def imbalanced(X: Any, y: np.ndarray) -> Rows:
    """All negatives and so many positives that they are 3 %, in a random order."""
    rng = np.random.default_rng(1)
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    kept = rng.permutation(positive)[: int(RARE / (1 - RARE) * len(negative))]
    order = rng.permutation(np.concatenate([kept, negative]))
    return X[order], y[order].astype(int)


def stored(folder: Path, name: str) -> Rows:
    """A set as it is stored, in its order."""
    first, _, width = defaults.CLASSES[name]
    X, y = defaults._svmlight(folder / name / first, width)
    return X, y.astype(int)


def unit_columns(X: Any) -> Any:
    """Columns over the root mean square of their non-zero entries, as the estimators see them."""
    X = sp.csr_matrix(X)
    squares = np.bincount(X.indices, X.data**2, X.shape[1]) / np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1)
    return sp.csr_matrix(X @ sp.diags_array(1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))))


def said(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Share of predicted positives, and balanced accuracy."""
    return np.array([np.mean(predicted > 0), balanced_accuracy_score(y, predicted)])


def weight_lines(folder: Path) -> Iterator[list[str]]:
    tasks = {"generated": generated()}
    tasks |= {name: imbalanced(*stored(folder, name)) for name in ("a9a", "covtype", "electricity")}
    for name, (X, y) in tasks.items():
        scaled = unit_columns(X)
        for told, weight in WEIGHTS.items():
            line = [name, told]
            for loss, peer in (("logistic", LogisticRegression(max_iter=300)), ("hinge", LinearSVC())):
                theirs = said(y, peer.set_params(class_weight=weight).fit(scaled, y).predict(scaled))
                models = (OnlineClassifier(loss, class_weight=weight, random_state=seed).fit(X, y) for seed in SEEDS)
                ours = np.mean([said(y, model.predict(X)) for model in models], axis=0)
                near = np.all(np.abs(ours - theirs) <= np.maximum(0.15 * theirs, 0.02))
                cells = [f"{mine:.3f} ({other:.3f})" for mine, other in zip(ours, theirs, strict=True)]
                line += [*cells, "yes" if near else "**no**"]
            yield line


def coverage_lines(folder: Path) -> Iterator[list[str]]:
    for name in defaults.NUMBERS:
        split = defaults.load(folder, name, defaults.NUMBERS[name])
        line = [name]
        for q in (0.1, 0.5, 0.9, 0.95):
            model = OnlineRegressor(f"quantile,q={q}", random_state=0).fit(split.X, split.y)
            line.append(
                f"{np.mean(split.y <= model.predict(split.X)):.3f}, {np.mean(split.y_test <= model.predict(split.X_test)):.3f}"
            )
        yield line


def unit_lines(folder: Path) -> Iterator[list[str]]:
    """R2 of y, and how far that of y moved or rescaled is from it."""
    for name in ("cadata", "abalone"):
        split = defaults.load(folder, name, defaults.NUMBERS[name])
        for loss in ("squared", "absolute", "huber", "epsilon-insensitive"):
            found = []
            for factor, offset in ((1.0, 0.0), (1.0, 1e4), (1e3, 0.0), (1e-3, 0.0)):
                model = OnlineRegressor(loss, random_state=0).fit(split.X, factor * split.y + offset)
                found.append(model.score(split.X_test, factor * split.y_test + offset))
            scaled = MaxAbsScaler().fit(split.X)
            model = OnlineRegressor(loss, random_state=0).fit(scaled.transform(split.X), split.y)
            found.append(model.score(scaled.transform(split.X_test), split.y_test))
            yield [f"{name}, {loss}", f"{found[0]:.4f}", *(f"{other - found[0]:.1e}" for other in found[1:])]


def drifting(n: int = 40_000, width: int = 20, *, abrupt: bool) -> Rows:
    """A linear concept that is replaced half-way, or turns slowly into another."""
    rng = np.random.default_rng(0)
    X, first, second = rng.normal(size=(n, width)), *rng.normal(size=(2, width))
    t = np.arange(n) / n
    turned = X @ np.column_stack([first, second]) * np.column_stack([np.cos(3 * t), np.sin(3 * t)])
    score = np.where(t < 0.5, X @ first, X @ second) if abrupt else turned.sum(axis=1)
    return X, np.where(score + rng.normal(size=n) > 0, 1, -1)


def prequential(model: Any, X: Any, y: np.ndarray) -> float:
    """Error in per cent of blocks that are predicted by the model that would be saved, and then trained on."""
    wrong = 0
    for first in range(0, len(y), BLOCK):
        part = slice(first, first + BLOCK)
        wrong += np.count_nonzero(model.predict(X[part]) != y[part]) if first else 0
        model.partial_fit(X[part], y[part], classes=[-1, 1])
    return 100.0 * wrong / len(y)


def drift_lines(folder: Path) -> Iterator[list[str]]:
    tasks = {
        "electricity, in time order": stored(folder, "electricity"),
        "spambase, sorted by label": stored(folder, "spambase"),
    }
    tasks |= {"generated, abrupt": drifting(abrupt=True), "generated, gradual": drifting(abrupt=False)}
    for name, (X, y) in tasks.items():
        models = (
            OnlineClassifier(),
            OnlineClassifier(average="none"),
            OnlineClassifier(average="weighted-t1"),
            SGDClassifier(random_state=0),
        )
        figures = [prequential(model, X, y) for model in models]
        scaled = prequential(SGDClassifier(random_state=0), unit_columns(X), y)
        majority = 100.0 * min(np.mean(y > 0), np.mean(y < 0))
        yield [name, *(f"{figure:.1f}" for figure in (*figures, scaled, majority))]


def tables(folder: Path) -> Iterator[tuple[str, Cells]]:
    """The tables in their order, each with its name."""
    peers = ("LogisticRegression", "logistic"), ("LinearSVC", "hinge")
    head = ["task", "weights"]
    for peer, loss in peers:
        head += [f"{loss}: predicted positives ({peer})", f"balanced accuracy ({peer})", "within 15 % or .02"]
    yield "Class weights", [head, *weight_lines(folder)]
    yield "Quantiles", [["set", "q = 0.1", "q = 0.5", "q = 0.9", "q = 0.95"], *coverage_lines(folder)]
    head = ["set, loss", "R2", "y + 10,000", "1,000 y", "y / 1,000", "behind MaxAbsScaler"]
    yield "Unit and offset of the targets", [head, *unit_lines(folder)]
    settings = "average=none", "average=weighted-t1"
    yield (
        "Drift",
        [
            ["rows", "default", *settings, "SGDClassifier", "SGDClassifier, unit columns", "majority"],
            *drift_lines(folder),
        ],
    )


def main() -> int:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report("off_path", tables(args.data), args.write, args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
