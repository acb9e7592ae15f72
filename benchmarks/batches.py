"""Mini-batches: rows per second with one step for each row, and with one step for k rows.

    python benchmarks/batches.py [--rows 10000] [--repeats 5] [--json FILE]

Sparse rows: 75 of 20,000 columns each. Dense rows: 100 columns. Logistic loss. One pass in stored order, compiled code loaded
before. The k take turns; times are of the thread (time.thread_time), medians. In brackets: the multiple of the time for k = 1.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from cliffs import WIDTH, made
from onlinear import Learner
from options import parser_of
from tools import versions

SIZES = (1, 8, 64, 256)
METHODS = {  # how the loss is stepped on: (solver, penalty)
    "explicit": [
        ("sgd", "l2=1e-5"),
        ("comid", "l1=1e-5"),
        ("rda", "l1=1e-5"),
        ("ftrl", "l1=1e-5"),
        ("adagrad-comid", "l1=1e-5"),
    ],
    "implicit": [("implicit-sgd", "l2=1e-5"), ("fiol", "l1=1e-5"), ("odrs", "l1=1e-5"), ("sadmm", "l1=1e-5")],
}


def seconds(solver: str, penalty: str, X: Any, y: np.ndarray, repeats: int) -> dict[int, float]:
    """The time of one pass for every number of rows to a step; a turn before the first loads the code."""
    taken: dict[int, list[float]] = {k: [] for k in SIZES}
    for turn in range(repeats + 1):
        for k in SIZES:
            learner = Learner(f"{solver},batch={k}", "logistic", penalty, "none", n_features=X.shape[1])
            start = time.thread_time()
            learner.learn(X, y)
            if turn:
                taken[k].append(time.thread_time() - start)
    return {k: float(np.median(found)) for k, found in taken.items()}


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    y = np.where(rng.random(args.rows) < 0.5, -1.0, 1.0)
    kinds = {"75 of 20,000 columns": made(args.rows), "100 dense columns": rng.standard_normal((args.rows, WIDTH))}
    print(f"{versions()}.")
    kept: dict[str, dict[str, dict[int, float]]] = {}
    for way, methods in METHODS.items():
        print(f"\n| {way} steps, rows per second | " + " | ".join(f"k = {k}" for k in SIZES) + " |")
        print("|---|" + "---:|" * len(SIZES))
        for what, X in kinds.items():
            for solver, penalty in methods:
                found = seconds(solver, penalty, X, y, args.repeats)
                kept.setdefault(what, {})[solver] = {k: args.rows / spent for k, spent in found.items()}
                cells = [f"{args.rows / spent:,.0f} ({spent / found[1]:.1f})" for spent in found.values()]
                print(f"| {solver}, {what} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
