"""One-pass quality of every tool on every real set: settings as they come, and tuned.

    python benchmarks/peers.py --data FOLDER [--sets NAMES] [--json FILE]

All tools learn the same rows in the same seeded order, once, and are judged on the same held-out rows: the error in per cent,
or the squared error over the variance of y (1: the mean). onlinear learns the rows raw, by its own running scale. The others
learn them raw and with each column divided beforehand by the root mean square of its non-zero entries ("rms") or its largest
value ("max-abs") over all training rows: the same scalings, and computed ahead, which a stream cannot do. "Tuned": the best of
nine step sizes by the last fifth of the training rows, then learned on all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from defaults import CLASSES, NUMBERS, Split, load, mnist, table
from tools import Onlinear, River, ScikitLearn, Tool, VowpalWabbit, versions

STEPS = tuple(10.0**k for k in range(-4, 5))
RIVER_MOST = 3_000_000  # non-zeros times classes that River's dictionaries take in reasonable time

Make = Callable[[np.ndarray | None, float | None], Tool]  # classes, step size (None: as it comes)


class Figures(NamedTuple):
    """What a tool reached on one set."""

    error: float
    nonzeros: int


def onlinear(classes: np.ndarray | None, step: float | None) -> Tool:
    if step is None:
        return Onlinear(classes)
    scale, steps = ("max-abs", 50.0) if classes is None else ("rms", 20.0)
    return Onlinear(classes, solver=f"implicit-sgd,eta={steps * step:g}", scale=scale, average="weighted-t1")


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


def river(classes: np.ndarray | None, step: float | None) -> Tool:
    return River(classes, step)


PEERS: dict[str, Make] = {"scikit-learn SGD": sklearn, "scikit-learn ASGD": averaged, "Vowpal Wabbit": vw, "River": river}


def scaled(split: Split, scale: str) -> Split:
    """Columns divided by their rms (of non-zero entries) or largest value over the training rows."""
    X, Z = sp.csr_matrix(split.X), sp.csr_matrix(split.X_test)
    if scale == "none":
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


def tuned(make: Make, classes: np.ndarray | None, split: Split) -> Figures:
    """The best step by the last fifth of the training rows."""
    cut = len(split.y) * 4 // 5
    inner = Split(split.X[:cut], split.y[:cut], split.X[cut:], split.y[cut:])
    best = min(STEPS, key=lambda step: judged(make(classes, step), inner).error)
    return judged(make(classes, best), split)


def measured(split: Split, classes: np.ndarray | None) -> dict[str, Figures]:
    """Every tool, scale and way of choosing the step."""
    raw = scaled(split, "none")
    found = {
        "onlinear, raw, as it comes": judged(onlinear(classes, None), raw),
        "onlinear, raw, tuned": tuned(onlinear, classes, raw),
    }
    work = raw.X.nnz * (1 if classes is None or len(classes) == 2 else len(classes))
    for scale in ("none", "rms", "max-abs"):
        changed = scaled(split, scale)
        for name, make in PEERS.items():
            if make is river and (work > RIVER_MOST or (classes is not None and len(classes) > 2)):
                continue
            if make is vw and scale != "none":
                continue
            label = f"{name}, {'raw' if scale == 'none' else scale}"
            found[f"{label}, as it comes"] = judged(make(classes, None), changed)
            found[f"{label}, tuned"] = tuned(make, classes, changed)
    return found


def trivial(split: Split, classes: np.ndarray | None) -> float:
    """The error of the majority class, or of the mean."""
    if classes is None:
        return float(np.mean((split.y.mean() - split.y_test) ** 2) / np.var(split.y_test))
    names, counts = np.unique(split.y, return_counts=True)
    return float(np.mean(split.y_test != names[np.argmax(counts)]))


def best(found: dict[str, Figures], way: str, scales: tuple[str, ...]) -> tuple[str, float]:
    """The best peer of those measured in this way, with these scales."""
    fitting = {name: x.error for name, x in found.items() if name.endswith(way) and any(f", {s}," in name for s in scales)}
    peers = {name: error for name, error in fitting.items() if not name.startswith("onlinear")}
    name = min(peers, key=peers.__getitem__)
    return name.rsplit(",", 1)[0], peers[name]


def shown(error: float, classify: bool) -> str:
    return "diverged" if not error < 1e6 else f"{100.0 * error:.1f} %" if classify else f"{error:.3f}"


def summary(results: dict[str, dict[str, Figures]], base: dict[str, float]) -> list[str]:
    """One line per set: onlinear as it comes beside the best peer as it comes, and both tuned."""
    lines = []
    for name, found in results.items():
        classify = name not in NUMBERS
        ours, mine = found["onlinear, raw, as it comes"], found["onlinear, raw, tuned"]
        one, first = best(found, "as it comes", ("rms", "max-abs", "raw"))
        two, second = best(found, "tuned", ("rms", "max-abs", "raw"))
        cells = [
            name,
            shown(base[name], classify),
            f"{shown(ours.error, classify)} ({ours.nonzeros:,})",
            f"{shown(first, classify)} ({one})",
            f"{ours.error / first:.2f}" if first > 0 else "",
            shown(mine.error, classify),
            f"{shown(second, classify)} ({two})",
        ]
        lines.append(cells)
    head = [
        "set",
        "trivial",
        "onlinear as it comes (non-zeros)",
        "best peer as it comes",
        "ratio",
        "onlinear tuned",
        "best peer tuned",
    ]
    return table(head, lines).splitlines()


def details(results: dict[str, dict[str, Figures]]) -> list[str]:
    """Every figure: a line per tool, a column per set."""
    names = list(dict.fromkeys(key for found in results.values() for key in found))
    rows = [
        [key, *[shown(found[key].error, name not in NUMBERS) if key in found else "" for name, found in results.items()]]
        for key in names
    ]
    return table(["tool, scale, step", *results], rows).splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ONLINEAR_DATA"), required="ONLINEAR_DATA" not in os.environ)
    parser.add_argument("--sets", default=",".join([*CLASSES, "mnist", *NUMBERS]))
    parser.add_argument("--json")
    args = parser.parse_args()
    results: dict[str, dict[str, Figures]] = {}
    base: dict[str, float] = {}
    for name in args.sets.split(","):
        split = mnist(Path(args.data)) if name == "mnist" else load(Path(args.data), name, (CLASSES | NUMBERS)[name])
        classes = None if name in NUMBERS else np.unique(split.y)
        results[name], base[name] = measured(split, classes), trivial(split, classes)
        print(f"{name} measured", file=sys.stderr, flush=True)
    print(f"{versions()}.\n")
    print("\n".join(summary(results, base)))
    print("\nEvery figure:\n")
    print("\n".join(details(results)))
    if args.json:
        Path(args.json).write_text(json.dumps({name: dict(found) for name, found in results.items()}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
