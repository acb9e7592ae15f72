"""How the estimators' defaults were chosen: every real data set, raw, one pass, against a grid and scikit-learn's SGD.

    python benchmarks/defaults.py --data FOLDER [--write docs/defaults.md] [--json FILE]

FOLDER (or the variable ONLINEAR_DATA) holds the sets in svmlight form, xz-compressed, and MNIST in idx form. Everything that
is not a run time is the same in each run on one machine.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinear import DivergenceError, OnlineClassifier, OnlineRegressor
from options import parser_of
from pages import Cells, report

SEED = 0
CLASSES = {
    "a9a": ("a9a.svm.xz", "a9a.t.svm.xz", 123),
    "covtype": ("covtype.part.svm.xz", None, 54),
    "rcv1-ccat": ("ccat.svm.xz", "ccat.t.svm.xz", 47236),
    "mushrooms": ("mushrooms.svm.xz", None, 112),
    "phishing": ("phishing.svm.xz", None, 68),
    "spambase": ("spambase.svm.xz", None, 57),
    "electricity": ("electricity.svm.xz", None, 6),
    "basehock": ("basehock.svm.xz", None, 4862),
    "relathe": ("relathe.svm.xz", None, 4322),
    "arcene": ("arcene.svm.xz", None, 10000),
}
NUMBERS = {
    "cadata": ("cadata.svm.xz", None, 8),
    "cpusmall": ("cpusmall.svm.xz", None, 12),
    "abalone": ("abalone.svm.xz", None, 8),
    "space_ga": ("space_ga.svm.xz", None, 6),
}
STEPS = (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 30.0, 100.0)
SCALES = ("none", "rms", "max-abs", "centred", "tempered")


class Split(NamedTuple):
    """One data set: rows to learn in a seeded random order, and rows held out."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Result(NamedTuple):
    """What one model did: progressive loss, held-out loss, held-out error (or unexplained variance), seconds of fit."""

    progressive: float
    loss: float
    error: float
    seconds: float


FAILED = Result(np.inf, np.inf, np.inf, np.nan)


# --- data ------------------------------------------------------------------------------------------------------------


def load(folder: Path, name: str, files: tuple[str, str | None, int], seed: int = SEED) -> Split:
    """The rows in a seeded random order (some sets are sorted by label); a quarter is held out where no test file exists."""
    first, second, width = files
    X, y = _svmlight(folder / name / first, width)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    if second is not None:
        return Split(X, y, *_svmlight(folder / name / second, width))
    cut = len(y) * 3 // 4
    return Split(X[:cut], y[:cut], X[cut:], y[cut:])


def _svmlight(path: Path, width: int) -> tuple[Any, np.ndarray]:
    with lzma.open(path, "rb") as file:
        X, y = load_svmlight_file(file, n_features=width)
    return X, y


def mnist(folder: Path) -> Split:
    """MNIST, bytes as they are, training rows in a seeded random order."""
    X, y, X_test, y_test = (
        _idx(folder / "mnist" / name)
        for name in (
            "train-images-idx3-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte.gz",
            "t10k-labels-idx1-ubyte.gz",
        )
    )
    order = np.random.default_rng(SEED).permutation(len(y))
    return Split(X[order].astype(np.float64), y[order], X_test.astype(np.float64), y_test)


def _idx(path: Path) -> np.ndarray:
    content = gzip.decompress(path.read_bytes())
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape[0], -1).squeeze()


# --- runs ------------------------------------------------------------------------------------------------------------


def classify(split: Split, **params: Any) -> Result:
    """An OnlineClassifier over the rows as they stand."""
    start = time.perf_counter()
    try:
        model = OnlineClassifier(shuffle=False, **params).fit(split.X, split.y)
    except DivergenceError:
        return FAILED
    seconds = time.perf_counter() - start
    loss = np.nan
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(split.X_test)[np.arange(len(split.y_test)), np.searchsorted(model.classes_, split.y_test)]
        loss = -float(np.mean(np.log(np.maximum(chances, 1e-15))))
    return Result(model.learner_.progressive_loss, loss, 1.0 - model.score(split.X_test, split.y_test), seconds)


def regress(split: Split, **params: Any) -> Result:
    """An OnlineRegressor; the losses are squared errors over the variance of y."""
    start = time.perf_counter()
    try:
        model = OnlineRegressor(shuffle=False, **params).fit(split.X, split.y)
    except DivergenceError:
        return FAILED
    seconds = time.perf_counter() - start
    squared = 2.0 * model.learner_.progressive_loss / np.var(split.y) if params.get("loss", "squared") == "squared" else np.nan
    unexplained = 1.0 - model.score(split.X_test, split.y_test)
    return Result(squared, unexplained, unexplained, seconds)


def peer(split: Split, model: Any) -> Result:
    """A scikit-learn model on the same rows in the same order."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            model.fit(split.X, split.y)
        except ValueError:  # scikit-learn's word for overflow
            return FAILED
    seconds = time.perf_counter() - start
    with np.errstate(all="ignore"):
        return Result(np.nan, np.nan, 1.0 - model.score(split.X_test, split.y_test), seconds)


def shares_loss(y: np.ndarray) -> float:
    """The log loss of predicting the class shares."""
    p = np.unique(y, return_counts=True)[1] / len(y)
    return -float(np.sum(p * np.log(p)))


# --- tables ----------------------------------------------------------------------------------------------------------


def show(value: float, digits: int = 3) -> str:
    if np.isnan(value):
        return ""
    return "diverged" if np.isinf(value) else f"{value:.{digits}f}" if abs(value) < 1e3 else f"{value:.1e}"


class Grid:
    """Configurations over data sets, each measure relative to the trivial model of its set (1: as bad as that)."""

    def __init__(self, sets: dict[str, Split], trivial: dict[str, Result], run: Callable[..., Result]) -> None:
        self.sets, self.trivial, self.run = sets, trivial, run

    def line(self, name: str, params: dict[str, Any]) -> list[str]:
        """Mean and worst of held-out loss, mean of held-out error and of progressive loss, all relative."""
        found = {key: self.run(split, **params) for key, split in self.sets.items()}
        error = np.array([found[key].error / self.trivial[key].error for key in found])
        loss = np.array([found[key].loss / self.trivial[key].loss for key in found])
        ahead = np.array([found[key].progressive / self.trivial[key].progressive for key in found])
        means = [show(float(np.mean(values))) for values in (error, loss, ahead)]
        return [name, means[0], show(float(error.max())), means[1], show(float(loss.max())), means[2]]

    def cells(self, configurations: Iterator[tuple[str, dict[str, Any]]]) -> Cells:
        head = ["setting", "error, mean", "error, worst", "loss, mean", "loss, worst", "progressive loss, mean"]
        return [head, *(self.line(name, params) for name, params in configurations)]


def steps(solver: str, loss: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for scale in SCALES:
        for average in ("none", "weighted-t1"):
            for eta in STEPS if scale != "none" else STEPS[::2]:
                name = f"scale={scale}, average={average}, eta={eta:g}"
                yield name, {"loss": loss, "solver": f"{solver},eta={eta}", "scale": scale, "average": average}


def averages(loss: str, choice: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for average in ("none", "uniform", "weighted-t", "weighted-t1", "adaptive"):
        solver = f"implicit-ftrl,eta={2.0 * choice.adaptive_averaged:g}"
        yield average, {"loss": loss, "solver": solver, "scale": choice.scale, "average": average}


def losses(choice: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for loss in ("logistic", "hinge", "squared-hinge", "modified-huber", "squared"):
        for eta in (0.5, 2.0, 8.0):
            params = {"loss": loss, "solver": f"implicit-ftrl,eta={eta}", "scale": choice.scale, "average": "weighted-t1"}
            yield f"{loss}, eta={eta:g}", params


def solvers(loss: str, choice: Any, others: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    names = ("sgd", "fiol", "implicit-ftrl", "ftrl", "adagrad-rda")
    steps = [f"{name},eta={eta:g}" for name in names for eta in (0.01, 0.1, 1.0, 10.0)]
    for solver in (*steps, *others):
        average = "none" if solver == "mixture" else "weighted-t1"
        yield solver, {"loss": loss, "solver": solver, "scale": choice.scale, "average": average}


def passes() -> Iterator[tuple[str, dict[str, Any]]]:
    for count in (1, 2, 5, 10):
        yield f"passes={count}", {"passes": count}


def class_lines(sets: dict[str, Split]) -> Iterator[list[str]]:
    """The default beside the trivial model and scikit-learn, per set."""
    for name, split in sets.items():
        mine = classify(split)
        shares = np.unique(split.y_test, return_counts=True)[1] / len(split.y_test)
        others = (
            SGDClassifier(max_iter=1, tol=None, shuffle=False),
            make_pipeline(StandardScaler(with_mean=False), SGDClassifier(max_iter=1, tol=None, shuffle=False)),
            SGDClassifier(random_state=SEED),
            make_pipeline(StandardScaler(with_mean=False), SGDClassifier(random_state=SEED)),
        )
        long = split.X.shape[0] * split.X.shape[1] > 1e7 and not sp.issparse(split.X)  # dense MNIST to the end takes an hour
        errors = [show(100.0 * peer(split, other).error, 1) for other in others[: 2 if long else 4]]
        errors += [""] * (4 - len(errors))
        yield [
            name,
            str(split.X.shape[0]),
            str(split.X.shape[1]),
            show(100.0 * (1.0 - shares.max()), 1),
            f"**{show(100.0 * mine.error, 1)}**",
            *errors,
            show(shares_loss(split.y_test)),
            show(mine.loss),
            show(mine.progressive),
        ]


def number_lines(sets: dict[str, Split]) -> Iterator[list[str]]:
    """The default beside scikit-learn and least squares, per set; also with targets that are moved and rescaled."""
    for name, split in sets.items():
        mine = regress(split)
        far = 100.0 * np.std(split.y)
        moved = regress(split._replace(y=split.y + far, y_test=split.y_test + far))
        large = regress(split._replace(y=split.y * 1e6, y_test=split.y_test * 1e6))
        others = (
            SGDRegressor(max_iter=1, tol=None, shuffle=False),
            make_pipeline(StandardScaler(with_mean=False), SGDRegressor(max_iter=1, tol=None, shuffle=False)),
            make_pipeline(StandardScaler(with_mean=False), SGDRegressor(random_state=SEED)),
            LinearRegression(),
        )
        errors = [show(peer(split, other).error) for other in others]
        rest = [show(one.error) for one in (large, moved)]
        yield [
            name,
            str(len(split.y)),
            str(split.X.shape[1]),
            f"**{show(mine.error)}**",
            *errors,
            *rest,
            show(mine.progressive),
        ]


CLASS_HEAD = [
    "set",
    "rows",
    "features",
    "majority, error %",
    "default, error %",
    "SGD, one pass, raw",
    "SGD, one pass, scaled",
    "SGD, to its own stop, raw",
    "SGD, to its own stop, scaled",
    "class shares, log loss",
    "default, log loss",
    "default, progressive log loss",
]
NUMBER_HEAD = [
    "set",
    "rows",
    "features",
    "default",
    "SGD, one pass, raw",
    "SGD, one pass, scaled",
    "SGD, to its own stop, scaled",
    "least squares",
    "default, y times 1e6",
    "default, y moved by 100 sd",
    "default, progressive",
]


def tables(folder: Path) -> Iterator[tuple[str, Cells]]:
    """The tables of the page in their order, each with its name and its head as the first row."""
    classes = {name: load(folder, name, files) for name, files in CLASSES.items()}
    numbers = {name: load(folder, name, files) for name, files in NUMBERS.items()}
    yield "Classification: the default beside scikit-learn", [CLASS_HEAD, *class_lines(classes | {"mnist": mnist(folder)})]
    trivial = {}
    for name, split in classes.items():
        shares, worst = shares_loss(split.y_test), np.unique(split.y_test, return_counts=True)[1].min() / len(split.y_test)
        trivial[name] = Result(shares_loss(split.y), shares, worst, 0.0)
    grid, choice = Grid(classes, trivial, classify), OnlineClassifier.choice
    yield "Classification: scale, average and step", grid.cells(steps("implicit-ftrl", "logistic"))
    yield "Classification: averages", grid.cells(averages("logistic", choice))
    yield "Classification: losses", grid.cells(losses(choice))
    yield "Classification: solvers", grid.cells(solvers("logistic", choice, ("odrs,lam=1", "odrs,lam=0.1", "mixture")))
    yield "Classification: passes", grid.cells(passes())

    grid, choice = Grid(numbers, dict.fromkeys(numbers, Result(1.0, 1.0, 1.0, 0.0)), regress), OnlineRegressor.choice
    yield "Regression: the default beside scikit-learn", [NUMBER_HEAD, *number_lines(numbers)]
    yield "Regression: scale, average and step", grid.cells(steps("fiol", "squared"))
    yield "Regression: solvers", grid.cells(solvers("squared", choice, ("ncsgd,eta=0.1", "rls", "odrs,lam=1")))
    yield "Regression: passes", grid.cells(passes())


def main() -> int:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    report("defaults", tables(args.data), args.write, args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
