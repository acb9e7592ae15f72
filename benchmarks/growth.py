"""How each cost grows: rows, non-zeros per row, features, classes, threads, data type, order; exponents fitted, one plot each.

    python benchmarks/growth.py [--repeats 3] [--most 10000000] [--wide] [--plots docs/plots] [--json FILE]

One pass of Learner.learn (COMID, hinge, L1, every check on), seconds as the median of alternating runs, beside scikit-learn's
SGDClassifier(l1) in stored order where it can do the same. An exponent p means: cost ~ size^p between the first and the last
size. Rows are drawn from a power law over the features; "sorted by frequency" numbers frequent columns first. Rows "shuffled
beforehand" are stored in another order; "blocks" are consecutive rows that such an order keeps together. "Not asked for
ahead": the same loop compiled so that no number of features makes it prefetch, as 131,072 do. Threads share classes or
penalties learned in one pass; times are wall times, so the machine has to be quiet.
--wide prints one pass over 200,000 rows of a million and of ten million features alone, beside what was wanted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from numba import njit
from sklearn.linear_model import SGDClassifier

from onlinear import Learner, OnlineClassifier
from onlinear.models.path import Together
from onlinear.solvers.core import loop, potentials
from onlinear.streams import Shuffled
from onlinear.streams.pairs import Pairs
from options import parser_of
from pages import table
from tools import versions

Runs = dict[str, Callable[[], object]]
BLOCK, WINDOW, SHUFFLED = 1000, 10_000, 100_000  # rows: of a block, of a window of a stream, in all
STORED = {"onlinear, fit": " in stored order", "onlinear, stream": " in stored order", "scikit-learn": ", stored order"}
GRID = [f"l1,l1={l1:g}" for l1 in np.geomspace(1e-7, 1e-4, 32)]
WANTED = {10**6: 8, 10**7: 5}  # times scikit-learn's L1 epoch, by features


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


def learner(X: sp.csr_matrix, penalty: str = "l1,l1=1e-6", outputs: int = 1, threads: int = 1) -> Learner:
    return Learner("comid", "hinge", penalty, n_features=X.shape[1], n_outputs=outputs, n_jobs=threads)


def ours(X: sp.csr_matrix, y: np.ndarray, outputs: int = 1, threads: int = 1) -> Callable[[], object]:
    return lambda: learner(X, outputs=outputs, threads=threads).learn(X, y)


@cache
def near_kernel() -> Callable[..., int]:
    """The loop compiled as if all states were near, so that it asks for none ahead."""
    import_module("onlinear.compiled.compiler")  # which tells Numba of parts
    near, text = loop.entries_to_fetch, loop.learn_rows.__wrapped__
    none = njit(FunctionType(near.__code__, {**near.__globals__, "NEAR": 1 << 62}), forceinline=True)
    return njit(FunctionType(text.__code__, {**text.__globals__, "entries_to_fetch": none}), nogil=True)


def unasked(X: sp.csr_matrix, y: np.ndarray) -> Callable[[], object]:
    """``ours`` without asking for states ahead."""
    learn = ours(X, y)

    def run() -> object:
        with patch.object(potentials, "learn_rows", near_kernel()):
            return learn()

    return run


def grid(X: sp.csr_matrix, y: np.ndarray, threads: int) -> Callable[[], object]:
    """Every penalty of the grid, learned in one pass."""

    def run() -> object:
        group = Together([learner(X, penalty) for penalty in GRID], GRID, threads)
        return group.learn(*group.check(X, y, np.ones(len(y))))

    return run


def peer(X: sp.csr_matrix, y: np.ndarray, shuffle: bool = False) -> Callable[[], object]:
    return lambda: SGDClassifier(penalty="l1", alpha=1e-6, max_iter=1, tol=None, shuffle=shuffle, random_state=0).fit(X, y)


def estimator(shuffle: bool | None) -> OnlineClassifier:
    return OnlineClassifier("hinge", solver="comid", penalty="l1,l1=1e-6", average="none", scale="none", shuffle=shuffle)


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


def one_against_rest(n: int, outputs: int) -> np.ndarray:
    """(n, outputs) labels of classes drawn at random."""
    return np.where(np.random.default_rng(1).integers(outputs, size=n)[:, None] == np.arange(outputs), 1.0, -1.0)


def several(X: sp.csr_matrix, outputs: int) -> Runs:
    y = one_against_rest(X.shape[0], outputs)
    return {"onlinear": ours(X, y if outputs > 1 else y[:, 0], outputs)}


def shared(X: sp.csr_matrix, y: np.ndarray, threads: int) -> Runs:
    """Classes and a grid of penalties in one pass, by so many threads."""
    classes = {
        f"onlinear, {count} classes": ours(X, np.asfortranarray(one_against_rest(X.shape[0], count)), count, threads)
        for count in (10, 100)
    }
    return {**classes, f"onlinear, grid of {len(GRID)}": grid(X, y, threads)}


def in_blocks(n: int) -> np.ndarray:
    """An order of n rows that permutes blocks of consecutive rows."""
    blocks = np.array_split(np.arange(n), max(n // BLOCK, 1))
    return np.concatenate([blocks[k] for k in np.random.default_rng(0).permutation(len(blocks))])


def orders(d: int) -> Runs:
    X, y = rows(50_000, d, 68)
    Z, z = rows(50_000, d, 68, frequent_first=True)
    full, blocks = np.random.default_rng(0).permutation(X.shape[0]), in_blocks(X.shape[0])
    return {
        "onlinear": ours(X, y),
        "onlinear, states not asked for ahead": unasked(X, y),
        "onlinear, sorted by frequency": ours(Z, z),
        "onlinear, rows shuffled beforehand": ours(X[full], y[full]),
        "onlinear, blocks shuffled beforehand": ours(X[blocks], y[blocks]),
        "scikit-learn": peer(X, y),
        "scikit-learn, sorted by frequency": peer(Z, z),
        "scikit-learn, rows shuffled beforehand": peer(X[full], y[full]),
        "scikit-learn, blocks shuffled beforehand": peer(X[blocks], y[blocks]),
    }


def shuffles(n: int, d: int) -> Runs:
    """One pass with the shuffle made as it is learned; the copy that a shuffle beforehand takes, alone."""
    X, y = rows(n, d, 68)
    full, blocks = np.random.default_rng(0).permutation(n), in_blocks(n)
    pieces = [(X[first : first + WINDOW], y[first : first + WINDOW]) for first in range(0, n, WINDOW)]
    whole = [(X, y)]

    def streamed(stream: Callable[[], object]) -> Callable[[], object]:
        return lambda: estimator(None).partial_fit(stream(), classes=[-1.0, 1.0])

    return {
        "onlinear, fit in stored order": lambda: estimator(False).fit(X, y),
        "onlinear, fit(shuffle=True)": lambda: estimator(True).fit(X, y),
        "onlinear, stream in stored order": streamed(lambda: Pairs(pieces)),
        f"onlinear, stream shuffled within {WINDOW:,} rows": streamed(lambda: Shuffled(Pairs(pieces), WINDOW, 0)),
        "onlinear, stream shuffled whole": streamed(lambda: Shuffled(Pairs(whole), n, 0)),
        "scikit-learn, stored order": peer(X, y),
        "scikit-learn, shuffle=True": peer(X, y, True),
        "copying the rows in a random order": lambda: X[full],
        f"copying them in blocks of {BLOCK:,} rows": lambda: X[blocks],
    }


def curves(repeats: int, most: int) -> list[Curve]:
    fixed, y = rows(20_000, 47_000, 68)
    return [
        grown("rows", [12_500, 25_000, 50_000, 100_000, 200_000], lambda n: both(*rows(n, 47_000, 68)), repeats),
        grown(
            "non-zeros per row", [1, 4, 16, 64, 256, 1000], lambda k: both(*rows(max(2_000_000 // k, 2000), 47_000, k)), repeats
        ),
        grown("features", [d for d in (10**4, 10**5, 10**6, 10**7) if d <= most], orders, repeats),
        grown("classes", [1, 3, 10, 30, 100], lambda k: several(fixed, k), repeats),
        grown("threads", [1, 2], lambda k: shared(fixed, y, k), repeats),
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


def shuffled(taken: dict[str, float], n: int) -> list[str]:
    """What a shuffle costs, each side beside its own stored order."""
    body = []
    for name, found in taken.items():
        kind = next((kind for kind in STORED if name.startswith(kind)), "onlinear, fit")
        body.append([name, f"{1e3 * found:.0f}", f"{found / taken[kind + STORED[kind]]:.2f}"])
    head = ["shuffle", "milliseconds", "of the same in stored order (a copy: of fit)"]
    return [f"\n{n:,} rows of 68 non-zeros, shuffled as they are learned:\n", *table(head, body).splitlines()]


def exponent(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def lines(curve: Curve) -> list[str]:
    units = np.array([2_000_000 // k if curve.size == "non-zeros per row" else 1 for k in curve.sizes], float)
    unit = "microseconds per row" if curve.size == "non-zeros per row" else "milliseconds"
    factor = 1e6 / np.maximum(units, 2000) if curve.size == "non-zeros per row" else np.full(len(units), 1e3)
    body = []
    for name, found in curve.seconds.items():
        shown = (np.array(found) * factor).tolist()
        power = f"{exponent(curve.sizes, shown):.2f}" if curve.size != "data type" else ""
        body.append([name, *[f"{value:.3g}" for value in shown], power])
    sizes = [f"{value:,}" if curve.size != "data type" else f"float{value}" for value in curve.sizes]
    return [f"\n{curve.size}, {unit}:\n", *table([curve.size, *sizes, "exponent"], body).splitlines()]


def plot(folder: Path, curve: Curve) -> Path:
    """Draw the curve into the folder; the file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.3 + 0.18 * len(curve.seconds)), layout="constrained")
    axes = figure.subplots()
    for name, found in curve.seconds.items():
        axes.loglog(curve.sizes, found, marker="o", markersize=3, label=f"{name} ({exponent(curve.sizes, found):.2f})")
    axes.set(xlabel=curve.size, ylabel="seconds of one pass")
    axes.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", frameon=False, fontsize="small", title="(exponent)")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{curve.size.replace(' ', '-')}.svg"
    figure.savefig(file)
    return file


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--plots")
    args = parser.parse_args()
    print(f"{versions()}.")
    print("\n".join(wide(args.repeats, args.most)))
    if args.wide:
        return 0
    found = curves(args.repeats, args.most)
    for curve in found:
        print("\n".join(lines(curve)))
        if args.plots and curve.size != "data type":
            file = plot(Path(args.plots), curve)
            print(f"\n![{curve.size}]({file.parent.name}/{file.name})")
    taken = seconds(shuffles(SHUFFLED, 47_000), args.repeats)
    print("\n".join(shuffled(taken, SHUFFLED)))
    print("\n".join(extrapolated(found)))
    if args.json:
        kept = {"curves": [curve._asdict() for curve in found], "seconds of shuffles": taken}
        args.json.write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
