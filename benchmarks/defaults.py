"""How the estimators' defaults were chosen: every real data set, raw, one pass, against a grid and scikit-learn's SGD.

    python benchmarks/defaults.py --data FOLDER [--write docs/defaults.md] [--json FILE]

FOLDER (or the variable ONLINEAR_DATA) holds the sets in svmlight form, xz-compressed, and MNIST in idx form. Everything that
is not a run time is the same in each run on one machine.
"""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import off_path
import orders
from onlinear import DivergenceError, OnlineClassifier, OnlineRegressor
from options import parser_of

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


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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

    def table(self, configurations: Iterator[tuple[str, dict[str, Any]]]) -> str:
        head = ["setting", "error, mean", "error, worst", "loss, mean", "loss, worst", "progressive loss, mean"]
        return table(head, [self.line(name, params) for name, params in configurations])


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


def page(folder: Path) -> Iterator[str]:
    """The page, paragraph by paragraph."""
    classes = {name: load(folder, name, files) for name, files in CLASSES.items()}
    numbers = {name: load(folder, name, files) for name, files in NUMBERS.items()}
    yield TEXT["head"]
    yield table(CLASS_HEAD, list(class_lines(classes | {"mnist": mnist(folder)})))

    trivial = {}
    for name, split in classes.items():
        shares, worst = shares_loss(split.y_test), np.unique(split.y_test, return_counts=True)[1].min() / len(split.y_test)
        trivial[name] = Result(shares_loss(split.y), shares, worst, 0.0)
    grid, choice = Grid(classes, trivial, classify), OnlineClassifier.choice
    yield TEXT["steps"]
    yield grid.table(steps("implicit-ftrl", "logistic"))
    yield TEXT["averages"]
    yield grid.table(averages("logistic", choice))
    yield TEXT["losses"]
    yield grid.table(losses(choice))
    yield TEXT["solvers"]
    yield grid.table(solvers("logistic", choice, ("odrs,lam=1", "odrs,lam=0.1", "mixture")))
    yield TEXT["passes"]
    yield grid.table(passes())

    grid, choice = Grid(numbers, dict.fromkeys(numbers, Result(1.0, 1.0, 1.0, 0.0)), regress), OnlineRegressor.choice
    yield TEXT["numbers"]
    yield table(NUMBER_HEAD, list(number_lines(numbers)))
    yield TEXT["number steps"]
    yield grid.table(steps("fiol", "squared"))
    yield TEXT["number solvers"]
    yield grid.table(solvers("squared", choice, ("ncsgd,eta=0.1", "rls", "odrs,lam=1")))
    yield TEXT["passes"]
    yield grid.table(passes())
    yield from orders.paragraphs(folder)
    yield from off_path.paragraphs(folder)


TEXT = {
    "head": """# Defaults of the estimators, and how they were chosen

Made by `python benchmarks/defaults.py --data FOLDER --write docs/defaults.md`; do not edit.

What an estimator takes where you name nothing, for one pass:

| | OnlineClassifier | OnlineRegressor |
| --- | --- | --- |
| loss | `logistic`; of three or more classes `softmax`, where no bounds, total variation, solver or `uncertainty=` are named | `squared` |
| solver | `implicit-ftrl`: adaptive implicit steps; `fiol` with bounds; with total variation `odrs`, and `comid` for a loss of numbers whose slope is bounded | `implicit-ftrl` with l1, and for the squared loss without a penalty; poisson: `mixture`, with l1 `implicit-ftrl`; else `fiol`, or without a penalty its faster form `implicit-sgd`; with total variation `odrs`, and `comid` where the slope of the loss is bounded |
| size of adaptive steps | 1 / slope of the loss at a score of 0: 2 for logistic, 1 for hinge; sqrt(2 K) for softmax of K classes, which share one size | 2; with an average 8, but not for poisson |
| size of other steps | 2.4 / slope of the loss at a score of 0, over sqrt t: 4.8 for logistic, 2.4 for hinge | 2.4 over sqrt t; quantile: 1 over sqrt t |
| scale | `tempered` for adaptive steps without a penalty; else `centred`, which is `rms` less the running mean in columns with an entry in nearly every row; `rms` without an intercept, and with `tol` | the same; `dense` for `mixture` |
| average | `adaptive`, and `calibrated` for the losses logistic and softmax, and squared for two classes, without a penalty; none with l1 or total variation, because an average would fill their zeros | the same, with `calibrated` for the squared loss of one output; without an average the step size is a fifth |
| weights | `relative`: steps are divided by (running largest weight)^(3/4); adaptive steps follow weights by themselves | the same |
| targets | as they are | `relative`: less the mean of the first labels, and steps times the running deviation of y where the slope is bounded or the steps are adaptive, in which few targets far out count little where the slope is bounded; poisson: scores count from the logarithm of the running mean |
| predictions | as they are | squared loss: clipped to the targets seen, and trained with the matching loss (`clip`); poisson: clipped to a third of the smallest and three times the largest count |

Adaptive steps have a size for each column, which follows the gradients that the column has had. They need no schedule. For classes their
errors and log losses are smaller than those of one step size for all columns, on text by a tenth or more. On a log of clicks one step size
is no better than a constant, and adaptive steps are better ([below](#fresh-orders)). A fit takes 1.2 to 1.5 times as long as with
`implicit-sgd`, and twice as long for ten classes. Smaller steps are better on logs of rare categories (`eta=0.5`), larger ones on small
dense tables (`eta=4`); `solver="mixture"` finds out which.

Class weights move the share of predicted positives as far as in models that are solved to the end, in 29 of the 32 cells
[below](#class-weights); with one step size for all columns they did so in 26. Weights of 1 to 10,000 may need several passes.

[Tables that nobody chose](benchmarks-method.md#tables-that-nobody-chose) compare the defaults with models that are solved to the end. On
750 tasks one pass is worse than a constant in 11. At the median it is within 2 % of the solved model for classes and numbers, and
`passes="auto"` is level with it.

In this paragraph l1 means l1 or the elastic net, without bounds. With l1 the model also has fewer non-zeros than one of release 0.1: on
text a tenth to two fifths with `l1=1e-3`, half to nearly as many with `l1=1e-5` ([below](#fresh-orders)). Regressions with l1 take adaptive
steps for all losses. Counts (poisson) without l1 take `mixture`, because their
best step sizes differ by a factor of hundreds from set to set ([counts](tutorials/counts.md#beside-other-tools)).

A dense column that is far from 0 is nearly a multiple of the intercept; a centred one is not. Centring gains most in one pass over rows
that are dense and raw: a year, a price, a temperature ([below](#fresh-orders)). Text has no such columns. A dense fit takes 1.1 times as
long with it.

`tempered` divides every other column by the geometric mean of two numbers: the root mean square of the column, and that of all entries
of these columns. The result is within a factor of 2 of the column's own. Columns that are divided by their own root mean square alone lose
what the lengths and counts of a text say. Columns that are not divided at all let those of large numbers drown the others.

`tempered` was compared with `centred` on fifteen of the small sets, over five orders. The first number is that of `centred`; in brackets
stands the difference in paired standard errors, negative where `tempered` is better. Errors: rcv1 6.41 and 6.27 % (-2.7), spambase 8.14 and
7.73 (-3.8), basehock 2.08 and 1.78 (-3.6), relathe 8.78 and 8.81 (+.2), arcene 27.7 and 27.5 (-.4). The log losses of all five are smaller,
those of the first three by 6 to 8 standard errors. So are the losses of labels trained on as numbers, on four sets. The progressive loss of
relathe is 1 % larger (+2.6). Tables of indicators alone and dense tables are trained on as by `centred`. `tempered` was chosen on rcv1,
spambase and relathe. With l1 and with `tol` columns keep the scale in which the penalty acts. A pass over text takes 1.08 times as long.

The first row is scaled by the sizes of its own values: it is its own mean, so centred it would have no entries, and its step would move
the intercept alone, as far as a step of all columns together. Errors of held-out rows before and since, raw rows, fifteen orders (rcv1: 6,000
rows, five orders), in brackets the difference in paired standard errors. Without a penalty: basehock 1.91 and 1.69 % (-2.3), relathe 9.91
and 9.46 (-1.8), arcene 28.7 and 28.0 (-1.1), rcv1 7.72 and 7.55 (-3.8), spambase 8.11 and 8.12 (+.1). With `l1=1e-4`: basehock 2.58 and 2.28
(-3.0), relathe 10.1 and 9.3 (-3.1), arcene 27.5 and 25.6 (-3.1). The mixture: basehock 1.89 and 1.58 (-2.6), relathe 10.1 and 9.4 (-2.7).
Of 43 real and generated sets of classes, held-out log losses fall by 4.5 % in the geometric mean, and by more the more columns there are: by
62 % on 300 rows of two shifted classes in 3,000 columns. They rise on tables with few positives, by .3 % where the rows have three
columns. On 300 rows of 3,000 columns of noise with 15 % positives it is .70 in place of .53, where the constant has .43: an intercept
that took part of one step has far to go. Vowpal Wabbit has .68 there. Two rows alone, one of each class, have 1.13 in place of .70 (a hundred
tables of three columns), three rows .73 in place of .75.

For numbers without a penalty, the clip, adaptive steps and centring together win on all sets but one, by up to a factor of seven. On
diabetes (332 rows) they lose 2 %. A fit of short dense rows takes 3 times as long as in 0.1. Choose `clip=False` where predictions have to
go beyond the targets seen, as for targets that grow. A target that is the number of its row loses nothing by the clip; a slow trend
without noise has twice the error, which is small. Where the range of the targets keeps moving, as in sorted ones, the range of the loss
takes a margin of a tenth after 64 moves, so that kernels need not stop at each move.

For losses whose slope is bounded a target counts in the mean and the deviation as one that is at most 6 deviations away (quantiles far
from the median: more), and at most twice as many after another that was. Otherwise few outliers make steps of their own size. Held-out
losses over that of a constant, one pass, `absolute`, eight orders; without the bound in brackets, and the difference in paired standard
errors: noise of 1e4 on 5 % of the targets, normal 1.007 (1.034, -5.3) and of one sign .998 (1.088, -18), beside rare columns 1.004 (1.546,
-17); Cauchy noise .79 (.82, -1.8); lognormal targets .98 (1.21, -5.3), claims, of which 95 % are 0, 1.06 (1.26, -7.2); one target of 1e9
.107 (2 to 33). On some 50 generated and real sets none of these losses is larger by more than two standard errors. Where rare rows have
large targets that the columns tell exactly, progressive losses are larger, by up to .12.

Total variation couples neighbouring columns, and few solvers have a step for it. The default predicts with its last iterate, because
an average would fill the plateaus. `odrs` is implicit in the loss. Its steps are .3 / sqrt t for classes and .1 / sqrt t for numbers.
Losses of numbers whose slope is bounded take `comid`. Its steps of .1 / sqrt t follow the deviation of the targets. Nine settings were
tried on generated tables whose weights have plateaus. Held-out losses of these are 1.03 to 1.11 times the smallest, of poisson 1.25
times (geometric means over 32 to 64 tables a loss).

`solver="mixture"` trains eight step sizes and scalings at once and is better still. It has 7.4 % of spambase wrong instead of 7.7, leaves
.47 of the variance of space_ga instead of .50, and has the smaller log loss on most sets of two classes ([which solver](which.md)). It is no
default because a fit takes 3 to 8 times as long, and four times the memory.

A solver that is named keeps the scale, the average and the relative units, unless `scale=` or `average=` say otherwise. A preset that
states an average keeps its own. Solvers that have no form for the adaptive average have none. `rls`, `batch-drs` and those of
the family of `csgd` and `adaline` leave the columns as they are.

These were tried and not kept:

- For `tempered`, the power 1 in place of the root (basehock 1.62 %, relathe's log loss +2.6 standard errors), and bounds of 1.5 and 4.
- For the mixture, an intermediate scaling as a third kind: with it in place of one, rcv1 has 6.3 instead of 6.2 %.
- For the mixture, shares by gradients of the mixture's loss: a9a's progressive loss is .335 instead of .331.
- For the mixture, other rates and memories of the shares: some sets gain what others lose.
- For the mixture, holding large steps back for good: iris has 12.1 instead of 10.9 %.
- A beta in the metric: it moves the best step size and not its loss.

The log of advertisements is predicted at .475 at best by any one step size and scaling of these. With values clipped at twice their root
mean square and a beta it would be .471. Counts with long tails are what holds it back. With log(1 + count) in their place it is at .477 by
the default, .471 by the mixture and .469 with `eta=0.5`; River's FTRL has .475 instead of 4.03 on the same rows.

`adaptive` is the average with weights t + 1, or the last iterate while that has the smaller loss on the recent rows. Both score each row
before they are trained on it. Older rows count less, by 1 - 3/t a row. An average that never forgets is better on rows in random order, and
misleads under drift. For the last iterate it is the other way round.

`calibrated` multiplies the predictor by its calibration slope. The slope is found in the same pass, from the scores that rows had before
they were trained on. For classes it is between 1/8 and 8, and 1 over it is the temperature: this is temperature scaling in one pass.
Predicted classes stay the same; probabilities and `coef_` change. Steps that suit most sets are too small where classes can be told apart:
their probabilities are too cautious. Where there are more columns than rows, or noise, they are too sure.

It was compared over six fresh orders of 31 sets. Held-out log losses fall by 62 % on mushrooms, 46 % on basehock, 31 % on wine, 22 % on
digits, 21 % on texts of 20 subjects, 15 % on 3,000 columns of 225 rows, 4 % on iris, .6 % on clicks. Progressive ones fall by 18, 20, 7, 13,
19, 10, 1.3 and .6 %. Some losses rise by more than two standard errors. Held-out ones rise after an abrupt drift, by 2.5 % (progressive:
1.4 %), and on lognormal columns, by .4 %. Progressive ones rise on spambase and electricity, by .5 and .6 % (held out they fall), on plain
normal columns, by .1 %, and on a file that is sorted by label, by 12 % (held out it falls by 6 %).

Scores of rows that the model was trained on before say nothing of other rows, so from the second pass on the slope is 1. A second pass is
one of `fit` or `train`, or rows that look like one. The model keeps the fingerprints of 256 rows, a uniform sample. A second pass has begun
where 24 of them come again without one that is new. So a loop of `partial_fit`, a second fit with `warm_start` and `--from` with the same
file end with the probabilities of `average="adaptive"`, on stored and on shuffled rows (an eighth of the second pass may go by first). On
the ten sets of the first table no first pass looks like a second one, though 41 % of the rows of phishing came before. A named solver, a
penalty, `forget=` and `uncertainty=` leave the slope out.

Numbers have a slope too, between 1/8 and 2. It multiplies the scores less the mean of the targets. It was chosen on five orders of the
generated sets of numbers and judged on ten fresh ones; in brackets stand paired standard errors. Held-out squared errors fall on a trend,
by 7 % (54), on columns of cubes, by 2.4 % (4.2), on lognormal columns, by 1.5 % (3.4), and on lognormal targets, by 3.6 % (2.4). On no other
of these sets do they change by two standard errors. After targets that ascend they rise by 4 % (9), while progressive ones fall by 10 %
(6); a sudden change of all signs moves neither. Real sets had ten fresh orders, the large ones four: labels of basehock -5.4 % (24), relathe
-.5 (4.2), phishing -.2 (4.8) and rcv1 -.1 (2.9); spambase +.2 % (2.2), cadata +.05 (3.3). Within two standard errors are arcene -1.7 %,
cpusmall +.5, and a9a, abalone, space_ga and electricity with less than .1. The least squares slope itself is not taken: one target of 1e6
among targets near 1 would ruin thousands of rows. Several targets have no common slope, and get none.

Three or more classes are joined by `softmax`. It takes these steps and this slope too. All classes share one metric, the sum of the squared
gradients of all. A metric of a class alone would be small where hardly any row is of that class, and its steps too large: on texts of 20
subjects that costs twice the log loss (one order). The metric of K classes is about K / 2 times as large as that of one against the
rest. So the step is sqrt(K / 2) times the logistic loss's, sqrt(2 K).

It was compared with one class against the rest, the default of release 0.1. The numbers are ratios of held-out log losses and errors,
geometric means over tasks of three to 26 classes. The last column counts the tasks whose log loss is smaller, and larger, by 2 %.

| tasks | log loss, one pass | error, one pass | log loss, `passes="auto"` | error, `passes="auto"` | better, worse in one pass |
| --- | ---: | ---: | ---: | ---: | ---: |
| 17 sets of KEEL, 5 splits | .87 | .92 | .82 | .91 | 11, 1 |
| 87 tables of R, 5 splits | .96 | .95 | | | 24, 4 |
| 64 other tables of R, 3 splits | .92 | .92 | .71 | .85 | 23, 2 |
| 83 more tables of R, 3 splits, looked at last | .93 | .89 | .86 | .91 | 34, 6 |

The log loss of MNIST is .274 instead of .351, its error 7.9 instead of 8.3 %. On generated texts of three to six topics, whose labels
are noise in 10 to 30 % of the rows, log losses move by 1.2 % both ways, and errors are up to 3 % larger. Steps of sqrt K and 2 sqrt K were
tried too. The first has 1.8 % larger log losses on the 87 tables and 1.1 % smaller ones on texts, the second 1.4 % smaller and 1.1 %
larger.

With l1 and l2 the steps are the same, and were not chosen anew. The numbers are ratios as above, of one pass, of the log loss and the error.

| tasks | l1=1e-4 | l1=1e-3 | l2=1e-3 | better, worse with l1=1e-4 |
| --- | ---: | ---: | ---: | ---: |
| 87 tables of R, 3 splits | .95, .94 | .96, .93 | .96, .94 | 34, 7 |
| 210 other tables of R, 3 splits | .84, .84 | .85, .85 | .86, .85 | 123, 15 |

MNIST with l1=1e-4 has the log loss .290 instead of .364, the error 8.2 instead of 8.6 %, and 3,602 weights instead of 3,906. Counts of the
words of 20 topics have .062 instead of .164 and 3,190 weights instead of 11,400. On texts of three and five topics whose labels are noise in
10 and 30 % of the rows, errors are 1 to 4 % larger and log losses move by 1 to 2 % both ways. A pass takes 1.2 to 1.8 times as long with l1,
and .7 to 1.1 times with l2.

With `forget=1000` the progressive log loss is 14 and 25 % smaller on two sets of KEEL, and 11 % on words whose topics change at once. On weights
that turn at once it is 2 to 4 % smaller (four streams), on weights that turn slowly the same with three classes and 4 to 6 % larger with
eight (two streams each).

One class against the rest stays beside bounds, total variation and `uncertainty`, which have no form for `softmax` or were not measured
with it. With `tol` the loss is the same as without it ([certified](certified.md)).

For the choice between average and last iterate these were tried and not kept: half of the average as a third, a temperature for each of
the two, and an average with weights t^3. That is nearly the average of the last half of the rows. As a third it takes .5 % off spambase's
log loss and .2 % off phishing's, moves other losses both ways, and costs a number for each column. The temperature's start (10 to 100 rows'
worth) moves some sets up and others down. A memory that forgets (1/t or 3/t a row) is as good in one pass, but worse on electricity.

An offset beside the slope, learned from the same scores, was tried too, on 41 sets of two classes (three orders). It counted as far as it
made the loss smaller by two nats and more. It would help a rare class among many columns, whose intercept has one share of each step: where
15 % of 300 rows of 3,000 columns are positive, the first pass ends with a loss of .44 instead of .72. On 15 real sets with 3 or 10 % of
positives the losses fall by 1 % on average. It is left out because of files that are sorted by label. There it follows the share of the last
rows, and held-out losses are 1.2 to 4.6 times as large.

Every set is used raw, as stored, with its rows in one seeded random order; a quarter is held out where there is no test file.
The implicit step is safe for every step size and row norm; the running scale makes one step size fit columns of any unit.

## Classification: the default beside scikit-learn

Held-out error in per cent after one pass. SGD is scikit-learn's SGDClassifier with its defaults (hinge), on the same rows in
the same order; "scaled" puts StandardScaler(with_mean=False), fitted on all rows beforehand, in front of it.""",  # noqa: E501
    "steps": """## Classification: scale, average and step

Each measure is divided by that of the trivial model of the set: the error by the share of the smaller class, the loss by that
of the class shares. At 1 a model is no better than knowing nothing. Means and worst cases are over the ten sets with two
classes. The loss and the error are held out and use the average where there is one; the progressive loss is that of the
iterates. All are of `implicit-ftrl`. The default takes a step size on the small side, which logs of rare categories need and
which lets weights act.""",
    "averages": "## Classification: averages",
    "losses": "## Classification: losses\n\nLosses of different kinds cannot be compared; the errors can.",
    "solvers": "## Classification: solvers\n\nThe same scale and average for all.",
    "passes": "More passes with the default settings:",
    "numbers": """## Regression: the default beside scikit-learn

Held-out squared error over the variance of y after one pass (1: the mean). SGD is scikit-learn's SGDRegressor with its
defaults; "moved by 100 sd" adds 100 standard deviations to y. Neither the unit of y nor its distance from 0 matters.""",
    "number steps": """## Regression: scale, average and step

Means and worst cases over the four sets; error and loss are the same here.""",
    "number solvers": """## Regression: solvers

The same scale and average for all. Recursive least squares (`rls`) has the best progressive loss and costs O(d^2) per row: name
it where there are few columns.""",
}


def main() -> int:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    paragraphs = []
    for paragraph in page(args.data):
        print(paragraph + "\n", flush=True)
        paragraphs.append(paragraph)
    if args.write:
        args.write.write_text("\n\n".join([*paragraphs, ""]))
    if args.json:
        args.json.write_text(json.dumps(tables(paragraphs), indent=1))
    return 0


def tables(paragraphs: list[str]) -> dict[str, list[list[str]]]:
    """The cells of each table, its head first, by the heading above it and the line that leads to it."""
    found, heading = {}, ""
    for before, text in pairwise(paragraphs):
        first = before.splitlines()[0]
        heading = first.lstrip("# ") if first.startswith("#") else heading
        if text.startswith("|"):
            name = heading if first.startswith("#") else f"{heading}: {first}"
            found[name] = [line[2:-2].split(" | ") for line in text.splitlines() if not line.startswith("| ---")]
    return found


if __name__ == "__main__":
    sys.exit(main())
