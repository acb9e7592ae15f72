"""What one row, one process and one import cost.

    python benchmarks/latency.py

learn_one: rows of 75 non-zeros with every check on. Start-up: each figure is that of a process of its own; "first ever" has an
empty cache of compiled code, "later" the cache that the process before it left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from onlinear import Learner

FIT = """
import time; start = time.perf_counter()
import numpy as np, scipy.sparse as sp
from onlinear import Learner
imported = time.perf_counter()
X = sp.random(1000, 100, 0.1, format="csr", random_state=0)
y = np.sign(np.random.default_rng(0).standard_normal(1000))
begun = time.perf_counter()
Learner({solver!r}, {loss!r}, {penalty!r}).learn(X, y)
first = time.perf_counter()
Learner({solver!r}, {loss!r}, {penalty!r}).learn(X, y)
again = time.perf_counter()
print(imported - start, (first - begun) - (again - first))
"""


def one_row(solver: str, features: int, scale: str = "none") -> tuple[float, float]:
    """p50 and p99 of learn_one in microseconds."""
    rng = np.random.default_rng(0)
    learner = Learner(solver, "hinge", "l1,l1=1e-6", scale=scale, n_features=features)
    rows = [(np.sort(rng.choice(10_000, 75, replace=False)), rng.standard_normal(75), 1.0 - 2.0 * (i % 2)) for i in range(2000)]
    for row in rows:
        learner.learn_one(*row)
    taken = []
    for _ in range(5):
        for row in rows:
            start = time.perf_counter_ns()
            learner.learn_one(*row)
            taken.append(time.perf_counter_ns() - start)
    return float(np.percentile(taken, 50) / 1e3), float(np.percentile(taken, 99) / 1e3)


def process(code: str, cache: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ONLINEAR_CACHE_DIR": cache},
    )
    return [float(word) for word in done.stdout.split()]


def imported(module: str) -> float:
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    with tempfile.TemporaryDirectory() as cache:
        return float(np.median([process(code, cache)[0] for _ in range(5)]))


def main() -> int:
    print("| learn_one, 75 non-zeros | p50, microseconds | p99 |\n|---|---:|---:|")
    for solver in ("comid", "rda", "fiol", "odrs", "iodrs", "sadmm"):
        for features in (10_000, 10_000_000):
            middle, late = one_row(solver, features)
            print(f"| {solver}, {features:,} features | {middle:.1f} | {late:.1f} |")
    middle, late = one_row("comid", 10_000, "rms")
    print(f"| comid, 10,000 features, scale rms | {middle:.1f} | {late:.1f} |")
    print("\n| seconds over the fit itself | first fit ever | first fit of a later process |\n|---|---:|---:|")
    for solver, loss, penalty in (
        ("comid", "hinge", "l1,l1=1e-5"),
        ("fiol", "logistic", "l1,l1=1e-5"),
        ("sgd", "hinge", "none"),
    ):
        code = FIT.format(solver=solver, loss=loss, penalty=penalty)
        with tempfile.TemporaryDirectory() as cache:
            first, later = process(code, cache), process(code, cache)
        print(f"| {solver}, {loss}, {penalty} | {first[1]:.2f} | {later[1]:.2f} |")
    print("\n| import | seconds |\n|---|---:|")
    for module in ("onlinear", "onlinear.learner", "sklearn.linear_model"):
        print(f"| {module} | {imported(module):.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
