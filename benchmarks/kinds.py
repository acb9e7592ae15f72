"""Layouts and data types: the same rows as CSR and dense, in float64 and float32, for every main solver.

    python benchmarks/kinds.py [--rows 20000] [--columns 500] [--repeats 5] [--json FILE]

One pass of Learner.learn with every check over rows of which a fifth is not zero, and over rows of which nothing is. Values are
numbers that float32 holds exactly, so that every kind has to give the same weights, bit for bit, which is checked. Runs
alternate; a figure is the median over the repeats, a ratio is CSR float64's time / time in the same repeat, with its quartiles.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import scipy.sparse as sp

from onlinear import Learner
from options import parser_of
from pages import table
from throughput import quartiles
from tools import versions

SOLVERS = {
    "COMID, L1": ("comid", "hinge", "l1,l1=1e-6"),
    "RDA, L1": ("rda,gamma=10", "hinge", "l1,l1=1e-6"),
    "FIOL, L1": ("fiol", "hinge", "l1,l1=1e-6"),
    "SADMM, L1": ("sadmm,rho=10", "hinge", "l1,l1=1e-6"),
    "oDRs, L2": ("odrs,lam=0.1", "hinge", "l2,l2=1e-6"),
    "CSGD": ("csgd,m=100000,eta=0.01", "squared", "none"),
    "SGD, L2": ("sgd", "hinge", "l2,l2=1e-5"),
}
SHARES = (0.2, 1.0)  # of the entries that are not zero
Kinds = dict[str, sp.csr_matrix | np.ndarray]


def kinds_of(rows: int, columns: int, share: float) -> tuple[Kinds, np.ndarray]:
    """The same rows in every kind, and their labels."""
    rng = np.random.default_rng(0)
    dense = rng.uniform(0.05, 1.0, (rows, columns)).astype(np.float32)
    dense[rng.random((rows, columns)) >= share] = 0.0
    y = np.where(dense @ rng.standard_normal(columns) > 0.0, 1.0, -1.0)
    wide, narrow = dense.astype(np.float64), dense
    kinds = {"CSR float64": sp.csr_matrix(wide), "CSR float32": sp.csr_matrix(narrow), "dense float64": wide}
    return {**kinds, "dense float32": narrow}, y


def measured(solver: tuple[str, str, str], kinds: Kinds, y: np.ndarray, repeats: int) -> dict[str, list[float]]:
    """Seconds of a pass over each kind; RuntimeError where the weights differ."""
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    weights = []
    for repeat in range(repeats + 1):
        for kind, X in kinds.items():
            learner = Learner(*solver, n_features=X.shape[1])
            start = time.perf_counter()
            learner.learn(X, y)
            if repeat:
                taken[kind].append(time.perf_counter() - start)
            else:
                weights.append(learner.weights())
    if not all(np.array_equal(weights[0], other) for other in weights):
        raise RuntimeError(f"{solver[0]} learns other weights from another kind of the same rows.")
    return taken


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(f"{versions()}.")
    kept: dict[str, dict[str, dict[str, list[float]]]] = {}
    for share in SHARES:
        kinds, y = kinds_of(args.rows, args.columns, share)
        nnz = kinds["CSR float64"].nnz
        found = kept[f"{share:.0%}"] = {name: measured(solver, kinds, y, args.repeats) for name, solver in SOLVERS.items()}
        shape = f"{args.rows:,} rows x {args.columns:,} columns, {share:.0%} not zero"
        print(f"\n{shape}; Mnnz/s, and times as fast as CSR float64:\n")
        print(table(["Learner.learn", *kinds], [[name, *cells(taken, nnz)] for name, taken in found.items()]))
    if args.json:
        args.json.write_text(json.dumps({"seconds": kept}))
    return 0


def cells(taken: dict[str, list[float]], nnz: int) -> list[str]:
    """Rate and ratio of each kind."""
    first = np.array(next(iter(taken.values())))
    rates = [f"{nnz / np.median(seconds) / 1e6:.0f}" for seconds in taken.values()]
    ratios = [f", {quartiles(first / np.array(seconds))}" for seconds in taken.values()]
    return [rate + (ratio if place else "") for place, (rate, ratio) in enumerate(zip(rates, ratios, strict=True))]


if __name__ == "__main__":
    sys.exit(main())
