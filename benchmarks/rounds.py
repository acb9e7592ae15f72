"""Readings of all rows that a fit over shards needs up to a certified optimum, however the rows are cut and sorted.

    python benchmarks/rounds.py --data FOLDER [--sets a9a,text] [--write docs/many-machines.md] [--json FILE]

Logistic loss, the certified gap at most 1e-3, scale and intercept as the classifier has them; the survey and the online pass
count. Shards of equal rows: shuffled, sorted by label, or sorted along the leading direction of the rows (of X'X / n, by power
iteration). mnist-parity: all 60,000 rows, odd digits against even. text: 100,000 generated rows of 60 words of 65,536, drawn as
1 / rank, labels from a planted model of 30,000 words; a working set of its own is larger than curvatures have room for.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from defaults import CLASSES, load, mnist
from onlinear import OnlineClassifier
from onlinear.shards import Blocks, Local, fit
from options import parser_of
from pages import fill, table
from tools import versions

SETS = {"a9a": 1e-4, "covtype": 1e-4, "rcv1-ccat": 1e-4, "mnist-parity": 1e-4, "text": 1e-5}  # and l1
ORDERS = ("shuffled", "sorted by label", "sorted along a direction")
SHARDS = (16, 256)
TOL, MOST, POWERS = 1e-3, 60, 30
HEAD = ["rows", "l1", "non-zeros", *(f"{count}, {order}" for order in ORDERS for count in SHARDS)]


def text() -> tuple[sp.csr_array, np.ndarray]:
    """The generated rows."""
    r = np.random.default_rng(0)
    n, d, words = 100_000, 2**16, 60
    rank = np.minimum(np.exp(r.random((n, words)) * np.log(d + 1.0)) - 1.0, d - 1).astype(np.int64)
    X = sp.csr_array((np.ones(n * words), rank.ravel(), np.arange(0, n * words + 1, words)), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1.0
    w = np.zeros(d)
    w[r.choice(d, 30_000, replace=False)] = 0.7 * r.standard_normal(30_000)
    return X, np.where(r.random(n) < 1.0 / (1.0 + np.exp(-(X @ w))), 1.0, -1.0)


def rows_of(folder: Path, name: str) -> tuple[Any, np.ndarray]:
    """Rows in a random order and labels."""
    if name == "text":
        return text()
    if name == "mnist-parity":
        split = mnist(folder)
        return sp.csr_array(split.X / 255.0), np.where(split.y % 2, 1.0, -1.0)
    split = load(folder, name, CLASSES[name])
    return sp.csr_array(split.X), np.where(split.y > split.y.min(), 1.0, -1.0)


def ordered(X: Any, y: np.ndarray, order: str) -> tuple[Any, np.ndarray]:
    """The rows in one of the orders."""
    if order == "shuffled":
        return X, y
    by = y if order == "sorted by label" else X @ leading(X)
    places = np.argsort(by, kind="stable")
    return X[places], y[places]


def leading(X: Any) -> np.ndarray:
    """The leading direction of X'X."""
    v = np.ones(X.shape[1])
    for _ in range(POWERS):
        v = X.T @ (X @ v)
        v /= np.sqrt(v @ v)
    return v


def passes(X: Any, y: np.ndarray, l1: float, count: int) -> tuple[int | None, int]:
    """Readings until the gap is certified, None where ``MOST`` do not suffice, and the weights that are not 0."""
    cuts = np.linspace(0, len(y), count + 1).astype(int)
    shards = [Blocks(f"rows {a} to {b - 1}", ((X[a:b], y[a:b]),)) for a, b in pairwise(cuts)]
    model = fit(OnlineClassifier(penalty=f"l1={l1}", tol=TOL, max_passes=MOST), shards, Local())
    return (model.n_passes_ if model.converged_ else None), int(np.count_nonzero(model.coef_))


def page(found: dict[str, Any]) -> str:
    """The table."""
    lines = []
    for name, row in found.items():
        cells = [str(value) if (value := row["passes"][each]) is not None else f"over {MOST}" for each in HEAD[3:]]
        lines.append([name, f"{SETS[name]:g}", f"{row['nonzeros']:,}", *cells])
    return f"{table(HEAD, lines)}\n\n({versions()})"


def main() -> int:
    parser = parser_of(__doc__, data=True, page=True)
    parser.add_argument("--sets", default=",".join(SETS))
    args = parser.parse_args()
    found: dict[str, Any] = {}
    for name in args.sets.split(","):
        X, y = rows_of(args.data, name)
        row: dict[str, Any] = {"passes": {}}
        for order in ORDERS:
            rows, labels = ordered(X, y, order)
            for count in SHARDS:
                row["passes"][f"{count}, {order}"], row["nonzeros"] = passes(rows, labels, SETS[name], count)
                print(name, order, count, row["passes"][f"{count}, {order}"], file=sys.stderr, flush=True)
        found[name] = row
    print(page(found))
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    if args.write is not None:
        fill(args.write, "rounds", page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
