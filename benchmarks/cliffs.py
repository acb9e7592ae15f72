"""The same rows in every container that users bring, beside scikit-learn: what leaving the shortest path costs.

    python benchmarks/cliffs.py [--rows 50000] [--repeats 5] [--json FILE]

Sparse rows: 75 of 20,000 columns each. Dense rows: 100 columns, twice as many rows. One epoch in stored order, and one of rows
that are permuted, as the estimators of both libraries do unless told. Compiled code is loaded first. Runs alternate;
times are of the thread (time.thread_time), medians in milliseconds, as others may use the machine. "x" is the multiple of the
first line of the table. The containers of a table hold the same numbers (but integers and float32), and tests check that they
train the same model, bit for bit.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from onlinear import Learner, OnlineClassifier
from options import parser_of
from pages import table
from tools import versions

COLUMNS, ENTRIES, WIDTH = 20_000, 75, 100
EPOCH: dict[str, Any] = {"max_iter": 1, "tol": None, "shuffle": False}
AS_IT_WAS: dict[str, Any] = {"solver": "fiol,eta=20", "scale": "rms", "average": "weighted-t1"}
Methods = dict[str, Callable[[Any, np.ndarray], Any]]
METHODS: Methods = {
    "Learner, COMID, L1": lambda X, y: Learner("comid", "hinge", "l1=1e-5", n_features=X.shape[1]).learn(X, y),
    "Learner, SGD, L2": lambda X, y: Learner("sgd", "hinge", "l2=1e-5", n_features=X.shape[1]).learn(X, y),
    "OnlineClassifier()": lambda X, y: OnlineClassifier(shuffle=False).fit(X, y),
    "OnlineClassifier, FIOL, average": lambda X, y: OnlineClassifier(**AS_IT_WAS, shuffle=False).fit(X, y),
    "SGDClassifier, L2": lambda X, y: SGDClassifier(**EPOCH).fit(X, y),
    "SGDClassifier, L1": lambda X, y: SGDClassifier(penalty="l1", **EPOCH).fit(X, y),
    "SGDClassifier, log loss, average": lambda X, y: SGDClassifier("log_loss", average=True, **EPOCH).fit(X, y),
}
PERMUTED: Methods = {
    "OnlineClassifier()": lambda X, y: OnlineClassifier().fit(X, y),
    "OnlineClassifier, FIOL, average": lambda X, y: OnlineClassifier(**AS_IT_WAS).fit(X, y),
    "SGDClassifier, log loss, average": lambda X, y: SGDClassifier("log_loss", average=True, max_iter=1, tol=None).fit(X, y),
}


def made(n: int, *, order: np.ndarray | None = None, seed: int = 0) -> sp.csr_matrix:
    """n rows of ENTRIES of COLUMNS columns each, a new object; ``order``: of the entries of each row."""
    rng = np.random.default_rng(seed)
    step = COLUMNS // ENTRIES
    indices = (np.arange(ENTRIES) * step + rng.integers(step, size=(n, ENTRIES))).astype(np.int32)
    values = np.round(rng.standard_normal((n, ENTRIES)), 3) + 5.0
    if order is not None:
        indices, values = (np.take_along_axis(array, order, axis=1) for array in (indices, values))
    X = sp.csr_matrix((n, COLUMNS))
    X.data, X.indices, X.indptr = values.ravel(), indices.ravel(), np.arange(0, n * ENTRIES + 1, ENTRIES, dtype=np.int32)
    return X


def changed(X: sp.csr_matrix, **arrays: np.ndarray) -> sp.csr_matrix:
    """A copy of X with other arrays, which SciPy does not look at."""
    found = X.copy()
    for name, array in arrays.items():
        setattr(found, name, array)
    return found


def sparse_containers(n: int) -> dict[str, Any]:
    """Sparse rows in every container."""
    X, rng = made(n), np.random.default_rng(1)
    zero, repeated = X.data.copy(), X.indices.copy()
    zero[zero.size // 2], repeated[1] = 0.0, repeated[0]
    return {
        "sorted CSR": X,
        "one stored zero": changed(X, data=zero),
        "one repeated column": changed(X, indices=repeated),
        "columns reversed": made(n, order=np.tile(np.arange(ENTRIES)[::-1], (n, 1))),
        "columns in random order": made(n, order=np.argsort(rng.random((n, ENTRIES)), axis=1)),
        "64-bit indices": changed(X, indices=X.indices.astype(np.int64), indptr=X.indptr.astype(np.int64)),
        "float32": changed(X, data=X.data.astype(np.float32)),
        "int64 values": changed(X, data=X.data.astype(np.int64)),
        "boolean values": changed(X, data=X.data > 0.0),
        "CSC": X.tocsc(),
        "COO": X.tocoo(),
        "sparse array": sp.csr_array(X),
        "a view of all rows but one": made(n + 1)[:n],
    }


def dense_containers(n: int) -> dict[str, Any]:
    """Dense rows in every container."""
    X = np.random.default_rng(2).standard_normal((n, WIDTH))
    zeros = X * (np.random.default_rng(3).random(X.shape) < 0.5)
    return {
        "float64": X,
        "Fortran order": np.asfortranarray(X),
        "pandas DataFrame": pd.DataFrame(X),
        "float32": X.astype(np.float32),
        "int64": np.where(X > 0.0, 3, -2),
        "half of it zeros": zeros,
        "the same as sorted CSR": sp.csr_matrix(X),
    }


def measured(containers: dict[str, Any], methods: Methods, y: np.ndarray, repeats: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of each method for each container."""
    taken: dict[str, dict[str, list[float]]] = {name: {method: [] for method in methods} for name in containers}
    for repeat in range(repeats + 1):
        for name, X in containers.items():
            for method, run in methods.items():
                given = X.values if isinstance(X, pd.DataFrame) and method.startswith("Learner") else X
                start = time.thread_time()
                try:
                    run(given, y)
                except ValueError:
                    taken[name][method].append(np.nan)  # the method refuses the container
                if repeat:
                    taken[name][method].append(1e3 * (time.thread_time() - start))
    return {name: {method: float(np.median(times)) for method, times in each.items()} for name, each in taken.items()}


def lines(found: dict[str, dict[str, float]]) -> list[list[str]]:
    """The cells of a table."""
    first = next(iter(found.values()))
    return [[name, *(cell(time, first[method]) for method, time in times.items())] for name, times in found.items()]


def cell(time: float, first: float) -> str:
    """Milliseconds, and the multiple of the first line's."""
    return "refused" if np.isnan(time) else f"{time:.1f}, {time / first:.1f} x"


def beside_last(times: dict[str, float]) -> list[str]:
    """Milliseconds of each method, and the multiple of the last one's."""
    last = list(times.values())[-1]
    return [f"{time:.1f} ({time / last:.2f})" for time in times.values()]


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{versions()}.")
    kept, permuted = {}, {}
    for kind, containers, n in (("sparse", sparse_containers, args.rows), ("dense", dense_containers, 2 * args.rows)):
        y = np.where(np.random.default_rng(4).random(n) < 0.5, -1.0, 1.0)
        given = containers(n)
        found = kept[kind] = measured(given, METHODS, y, args.repeats)
        print(f"\n{n:,} {kind} rows, milliseconds:\n")
        print(table(["container", *METHODS], lines(found)))
        plainest = next(iter(given))
        permuted |= measured({f"{kind} rows, {plainest}": given[plainest]}, PERMUTED, y, args.repeats)
    print("\nThe same rows permuted, milliseconds; in brackets, times those of the last:\n")
    print(table(["rows", *PERMUTED], [[name, *beside_last(times)] for name, times in permuted.items()]))
    if args.json:
        args.json.write_text(json.dumps({"milliseconds": kept, "permuted": permuted}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
