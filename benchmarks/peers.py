"""One-pass quality of every tool on every real set: settings as they come, and tuned.

    python benchmarks/peers.py --data FOLDER [--sets NAMES] [--orders 3] [--json FILE]   (with FILE, a run can be continued)

All tools learn the same rows in the same seeded orders, once, and are judged on the same held-out rows: the error in per cent,
or the squared error over the variance of y (1: the mean), in the mean over the orders. onlinear learns the rows raw. The others
learn them raw and with each column divided beforehand by the root mean square of its non-zero entries ("rms") or its largest
value ("max-abs") over all training rows, and dense rows standardised ("standard"): computed ahead, which a stream cannot do.
"Tuned": the best of nine step sizes by the last fifth of the first order's training rows, then learned on all rows of each.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from defaults import CLASSES, NUMBERS, Split, mnist
from options import parser_of
from orders import BUNDLED, fresh
from pages import table
from tools import Onlinear, River, ScikitLearn, Tool, VowpalWabbit, versions

STEPS = tuple(10.0**k for k in range(-4, 5))
RIVER_MOST = 600_000  # non-zeros times classes that River's dictionaries take in reasonable time

REAL = {*NUMBERS, "diabetes"}  # sets whose targets are numbers
WAYS = ("as it comes", "tuned")

Make = Callable[[np.ndarray | None, float | None], Tool]  # classes, step size (None: as it comes)


class Figures(NamedTuple):
    """What a tool reached on one set."""

    error: float
    nonzeros: int


Results = dict[str, list[Figures]]  # of each tool, in each order of the rows


def onlinear(classes: np.ndarray | None, step: float | None) -> Tool:
    return Onlinear(classes, eta=None if step is None else 2.0 * step)


def mixture(classes: np.ndarray | None, step: float | None) -> Tool:
    return Onlinear(classes, solver="mixture")


def sklearn(classes: np.ndarray | None, step: float | None) -> Tool:
    if step is None:
        return ScikitLearn(classes)
    loss = "squared_error" if classes is None else "log_loss"
    return ScikitLearn(classes, loss=loss, learning_rate="invscaling", eta0=step, power_t=0.5, alpha=0.0)


def averaged(classes: np.ndarray | None, step: float | None) -> Tool:
    if step is None:
        return ScikitLearn(classes, average=True)
    loss = "squared_error" if classes is None else "log_loss"
    return ScikitLearn(classes, loss=loss, learning_rate="invscaling", eta0=step, power_t=0.5, alpha=0.0, average=True)


def vw(classes: np.ndarray | None, step: float | None) -> Tool:
    return VowpalWabbit(classes, "" if step is None else f"-l {step}")


def coin(classes: np.ndarray | None, step: float | None) -> Tool:
    return VowpalWabbit(classes, "--coin")


def river(classes: np.ndarray | None, step: float | None) -> Tool:
    return River(classes, step)


def river_by(optimizer: str) -> Make:
    return lambda classes, step: River(classes, step, optimizer)


PEERS: dict[str, Make] = {"scikit-learn SGD": sklearn, "scikit-learn ASGD": averaged, "Vowpal Wabbit": vw, "River": river}
UNTUNED: dict[str, Make] = {"Vowpal Wabbit --coin": coin} | {
    f"River {name}": river_by(name) for name in ("AdaGrad", "Adam", "FTRLProximal")
}
SCALES = ("raw", "rms", "max-abs", "standard")
DENSE = 0.5  # share of non-zero entries from which rows are standardised


def scaled(split: Split, scale: str) -> Split:
    """Columns divided by their rms (of non-zero entries) or largest value over the training rows, or standardised by these."""
    X, Z = sp.csr_matrix(split.X), sp.csr_matrix(split.X_test)
    if scale == "raw":
        return Split(X, split.y, Z, split.y_test)
    if scale == "standard":
        standard = StandardScaler().fit(X.toarray())
        X, Z = (sp.csr_matrix(standard.transform(rows.toarray())) for rows in (X, Z))
        return Split(X, split.y, Z, split.y_test)
    if scale == "max-abs":
        sizes = abs(X).max(axis=0).toarray().ravel()
    else:
        counts = np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1)
        sizes = np.sqrt(np.bincount(X.indices, X.data**2, minlength=X.shape[1]) / counts)
    by = sp.diags_array(1.0 / np.where(sizes > 0.0, sizes, 1.0))
    return Split(sp.csr_matrix(X @ by), split.y, sp.csr_matrix(Z @ by), split.y_test)


def judged(tool: Tool, split: Split) -> Figures:
    """Learn the training rows, judge on the others; infinite where the tool diverged."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            tool.learn(split.X, split.y)
            found = tool.predict(split.X_test)
            if tool.classes is not None:
                error = float(np.mean(found != split.y_test))
            else:
                error = float(np.mean((found - split.y_test) ** 2) / np.var(split.y_test))
    except ArithmeticError:
        return Figures(np.inf, 0)
    return Figures(error if np.isfinite(error) else np.inf, tool.nonzeros())


def best_step(make: Make, classes: np.ndarray | None, split: Split) -> float:
    """The best step by the last fifth of the training rows."""
    cut = len(split.y) * 4 // 5
    inner = Split(split.X[:cut], split.y[:cut], split.X[cut:], split.y[cut:])
    return min(STEPS, key=lambda step: judged(make(classes, step), inner).error)


def measured(splits: list[Split], classes: np.ndarray | None) -> Results:
    """Every tool, scale and way of choosing the step, in each order of the rows."""
    raw = [scaled(split, "raw") for split in splits]
    found = both("onlinear, raw", onlinear, classes, raw)
    found["onlinear, mixture, as it comes"] = [judged(mixture(classes, None), split) for split in raw]
    X = raw[0].X
    work = X.nnz * (1 if classes is None or len(classes) == 2 else len(classes))
    for scale in SCALES[: 4 if X.nnz > DENSE * X.shape[0] * X.shape[1] else 3]:
        changed = [scaled(split, scale) for split in splits]
        for name, make in (PEERS | UNTUNED).items():
            if name.startswith("River") and (work > RIVER_MOST or (classes is not None and len(classes) > 2)):
                continue
            if name.startswith("Vowpal") and scale != "raw":
                continue
            if name in PEERS:
                found |= both(f"{name}, {scale}", make, classes, changed)
            else:
                found[f"{name}, {scale}, as it comes"] = [judged(make(classes, None), split) for split in changed]
    return found


def both(label: str, make: Make, classes: np.ndarray | None, splits: list[Split]) -> Results:
    """A tool as it comes, and tuned."""
    step = best_step(make, classes, splits[0])
    return {
        f"{label}, as it comes": [judged(make(classes, None), split) for split in splits],
        f"{label}, tuned": [judged(make(classes, step), split) for split in splits],
    }


def trivial(split: Split, classes: np.ndarray | None) -> float:
    """The error of the majority class, or of the mean."""
    if classes is None:
        return float(np.mean((split.y.mean() - split.y_test) ** 2) / np.var(split.y_test))
    names, counts = np.unique(split.y, return_counts=True)
    return float(np.mean(split.y_test != names[np.argmax(counts)]))


def mean(figures: list[Figures]) -> float:
    return float(np.mean([each.error for each in figures]))


def best(found: Results, ways: tuple[str, ...]) -> str:
    """The best peer of those measured in these ways."""
    peers = [name for name in found if name.endswith(ways) and not name.startswith("onlinear")]
    return min(peers, key=lambda name: mean(found[name]))


def shown(error: float, classify: bool) -> str:
    return "diverged" if not error < 1e6 else f"{100.0 * error:.1f} %" if classify else f"{error:.3f}"


def beside(ours: list[Figures], theirs: list[Figures]) -> str:
    """The ratio of the means, and in brackets the paired difference in standard errors."""
    if mean(theirs) == 0.0:
        return ""
    differences = np.array([a.error - b.error for a, b in zip(ours, theirs, strict=True)])
    spread = differences.std(ddof=1) / sqrt(len(differences)) if len(differences) > 1 else 0.0
    apart = f" ({differences.mean() / spread:+.1f})" if spread > 0.0 else ""
    return f"{mean(ours) / mean(theirs):.2f}{apart}"


def summary(results: dict[str, Results], base: dict[str, float]) -> list[str]:
    """One line per set: onlinear as it comes beside the best peer as it comes, and beside the best of all peers' results."""
    lines = []
    for name, found in results.items():
        classify = name not in REAL
        ours, first, second = found["onlinear, raw, as it comes"], best(found, ("as it comes",)), best(found, WAYS)
        lines.append(
            [
                name,
                shown(base[name], classify),
                f"{shown(mean(ours), classify)} ({np.mean([each.nonzeros for each in ours]):,.0f})",
                shown(mean(found["onlinear, mixture, as it comes"]), classify),
                f"{shown(mean(found[first]), classify)} ({first.removesuffix(', as it comes')})",
                beside(ours, found[first]),
                f"{shown(mean(found[second]), classify)} ({second})",
                beside(ours, found[second]),
            ]
        )
    head = ["set", "trivial", "onlinear as it comes (non-zeros)", "mixture", "best peer as it comes", "ratio"]
    return table([*head, "best of all peers' results", "ratio"], lines).splitlines()


def details(results: dict[str, Results]) -> list[str]:
    """Every figure: a line per tool, a column per set."""
    names = list(dict.fromkeys(key for found in results.values() for key in found))
    rows = [
        [key, *[shown(mean(found[key]), name not in REAL) if key in found else "" for name, found in results.items()]]
        for key in names
    ]
    return table(["tool, scale, step", *results], rows).splitlines()


def kept(path: Path | None) -> tuple[dict[str, Results], dict[str, float]]:
    """What an earlier run has written to this file: results and trivial errors by set."""
    if path is None or not path.exists():
        return {}, {}
    results, base = json.loads(path.read_text())
    figures = {name: {key: [Figures(*each) for each in row] for key, row in found.items()} for name, found in results.items()}
    return figures, base


def main() -> int:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--sets", default=",".join([*CLASSES, *NUMBERS, *BUNDLED]), help="all but mnist, which takes an hour")
    parser.add_argument("--orders", type=int, default=3)
    args = parser.parse_args()
    results, base = kept(args.json)
    for name in args.sets.split(","):
        if name in results:
            continue
        seeds = range(args.orders)
        splits = [mnist(args.data)] if name == "mnist" else [fresh(args.data, name, seed) for seed in seeds]  # mnist: an hour
        classes = None if name in REAL else np.unique(splits[0].y)
        results[name] = measured(splits, classes)
        base[name] = float(np.mean([trivial(split, classes) for split in splits]))
        print(f"{name} measured", file=sys.stderr, flush=True)
        if args.json:
            args.json.write_text(json.dumps([results, base], indent=1))
    print(f"{versions()}.\n")
    print("\n".join(summary(results, base)))
    print("\nEvery figure:\n")
    print("\n".join(details(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
