"""How each cost grows: rows, non-zeros per row, features, classes, data type, order; exponents fitted, one plot each.

    python benchmarks/growth.py [--repeats 3] [--most 10000000] [--wide] [--plots FOLDER] [--json FILE]

One pass of Learner.learn (COMID, hinge, L1, every check on), seconds as the median of alternating runs, beside
scikit-learn's SGDClassifier(l1) in stored order where it can do the same. An exponent p means: cost ~ size^p between the first
and the last size. Rows are drawn from a power law over the features; "sorted by frequency" numbers frequent columns first.
--wide prints one pass over 200,000 rows of a million and of ten million features alone, beside what was wanted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from defaults import table
from onlinear import Learner
from tools import versions

Runs = dict[str, Callable[[], object]]
WANTED = {10**6: 8, 10**7: 4}  # times scikit-learn's L1 epoch, by features


class Curve(NamedTuple):
    """Seconds at every size, by what was run."""

    size: str
    sizes: list[int]
    seconds: dict[str, list[float]]


def rows(n: int, d: int, draws: int, seed: int = 0, frequent_first: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """n rows of about ``draws`` distinct columns below d, frequencies as 1 / rank (by inversion, so that d may be large)."""
    rng = np.random.default_rng(seed)
    rank = np.minimum(np.exp(rng.random((n, draws)) * np.log(d + 1.0)) - 1.0, d - 1).astype(np.int64)
    columns = rank if frequent_first else (rank * 2_654_435_761 + 12_345) % d
    X = sp.csr_matrix((rng.uniform(0.02, 0.2, n * draws), columns.ravel(), np.arange(0, n * draws + 1, draws)), shape=(n, d))
    X.sum_duplicates()
    X.indices = X.indices.astype(np.int32)
    X.indptr = X.indptr.astype(np.int32)
    return X, np.where(rng.random(n) < 0.5, -1.0, 1.0)


def ours(X: sp.csr_matrix, y: np.ndarray, outputs: int = 1) -> Callable[[], object]:
    return lambda: Learner("comid", "hinge", "l1,l1=1e-6", n_features=X.shape[1], n_outputs=outputs).learn(X, y)


def peer(X: sp.csr_matrix, y: np.ndarray) -> Callable[[], object]:
    return lambda: SGDClassifier(penalty="l1", alpha=1e-6, max_iter=1, tol=None, shuffle=False).fit(X, y)


def seconds(runs: Runs, repeats: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if repeat:
                taken[name].append(time.perf_counter() - start)
    return {name: float(np.median(found)) for name, found in taken.items()}


def grown(size: str, sizes: list[int], make: Callable[[int], Runs], repeats: int) -> Curve:
    found = [seconds(make(value), repeats) for value in sizes]
    return Curve(size, sizes, {name: [point[name] for point in found] for name in found[0]})


def both(X: sp.csr_matrix, y: np.ndarray) -> Runs:
    return {"onlinear": ours(X, y), "scikit-learn": peer(X, y)}


def several(X: sp.csr_matrix, outputs: int) -> Runs:
    labels = np.random.default_rng(1).integers(outputs, size=X.shape[0])
    y = np.where(labels[:, None] == np.arange(outputs), 1.0, -1.0)
    return {"onlinear": ours(X, y if outputs > 1 else y[:, 0], outputs)}


def orders(d: int) -> Runs:
    X, y = rows(50_000, d, 68)
    Z, z = rows(50_000, d, 68, frequent_first=True)
    order = np.random.default_rng(0).permutation(X.shape[0])
    return {
        "onlinear": ours(X, y),
        "onlinear, sorted by frequency": ours(Z, z),
        "onlinear, rows shuffled beforehand": ours(X[order], y),
    } | {"scikit-learn": peer(X, y)}


def curves(repeats: int, most: int) -> list[Curve]:
    fixed, y = rows(20_000, 47_000, 68)
    return [
        grown("rows", [12_500, 25_000, 50_000, 100_000, 200_000], lambda n: both(*rows(n, 47_000, 68)), repeats),
        grown(
            "non-zeros per row", [1, 4, 16, 64, 256, 1000], lambda k: both(*rows(max(2_000_000 // k, 2000), 47_000, k)), repeats
        ),
        grown("features", [d for d in (10**4, 10**5, 10**6, 10**7) if d <= most], orders, repeats),
        grown("classes", [1, 3, 10, 30, 100], lambda k: several(fixed, k), repeats),
        Curve("data type", [64, 32], _types(fixed, y, repeats)),
    ]


def _types(X: sp.csr_matrix, y: np.ndarray, repeats: int) -> dict[str, list[float]]:
    narrow = X.astype(np.float32)
    found = seconds({"wide": ours(X, y), "narrow": ours(narrow, y)}, repeats)
    return {"onlinear": [found["wide"], found["narrow"]]}


def extrapolated(found: list[Curve], draws: int = 68) -> list[str]:
    """A pass over 10^12 non-zeros at the rates measured for 50,000 rows over each number of features."""
    curve = next(curve for curve in found if curve.size == "features")
    body = []
    for d, taken in zip(curve.sizes, curve.seconds["onlinear"], strict=True):
        rate = 50_000 * draws / taken
        visits = d / 2**18
        body.append(
            [f"{d:,}", f"{rate / 1e6:.0f}", f"{1e12 / rate / 3600:.1f}", f"{visits:.2g}", f"{100.0 * visits / draws:.2g} %"]
        )
    head = ["features", "Mnnz/s", "hours for 10^12", "coordinates visited per row", "of the row's non-zeros"]
    return ["\n10^12 non-zeros, rows of 68, one core, from memory:\n", *table(head, body).splitlines()]


def wide(repeats: int, most: int) -> list[str]:
    """One pass over 200,000 rows of many features beside scikit-learn's."""
    body = []
    for d, wanted in WANTED.items():
        if d <= most:
            found = seconds(both(*rows(200_000, d, 68)), repeats)
            ours, theirs = found["onlinear"], found["scikit-learn"]
            body.append([f"{d:,}", f"{ours * 1e3:.0f}", f"{theirs * 1e3:.0f}", f"{theirs / ours:.1f}", f"{wanted}"])
    head = ["features", "onlinear, ms", "scikit-learn, ms", "times as fast", "wanted"]
    return ["\n200,000 rows of 68 non-zeros over many features, L1:\n", *table(head, body).splitlines()]


def exponent(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def lines(curve: Curve) -> list[str]:
    units = np.array([2_000_000 // k if curve.size == "non-zeros per row" else 1 for k in curve.sizes], float)
    unit = "microseconds per row" if curve.size == "non-zeros per row" else "milliseconds"
    factor = 1e6 / np.maximum(units, 2000) if curve.size == "non-zeros per row" else np.full(len(units), 1e3)
    body = []
    for name, found in curve.seconds.items():
        shown = (np.array(found) * factor).tolist()
        power = f"{exponent(curve.sizes, shown):.2f}" if len(curve.sizes) > 2 else ""
        body.append([name, *[f"{value:.3g}" for value in shown], power])
    sizes = [f"{value:,}" if curve.size != "data type" else f"float{value}" for value in curve.sizes]
    return [f"\n{curve.size}, {unit}:\n", *table([curve.size, *sizes, "exponent"], body).splitlines()]


def plot(folder: Path, curve: Curve) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, found in curve.seconds.items():
        axes.loglog(curve.sizes, found, marker="o", markersize=3, label=f"{name} ({exponent(curve.sizes, found):.2f})")
    axes.set(xlabel=curve.size, ylabel="seconds of one pass")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small", title="exponent")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{curve.size.replace(' ', '-')}.svg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--plots")
    parser.add_argument("--json")
    args = parser.parse_args()
    print(f"{versions()}.")
    print("\n".join(wide(args.repeats, args.most)))
    if args.wide:
        return 0
    found = curves(args.repeats, args.most)
    for curve in found:
        print("\n".join(lines(curve)))
        if args.plots and len(curve.sizes) > 2:
            plot(Path(args.plots), curve)
    print("\n".join(extrapolated(found)))
    if args.json:
        kept: list[dict[str, Any]] = [curve._asdict() for curve in found]
        Path(args.json).write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
