"""What one row, one process and one import cost.

    python benchmarks/latency.py [--json FILE]

learn_one: rows of 75 non-zeros with every check on. Start-up: each figure is that of a process of its own; a fit's seconds are
those of all threads; "first ever" has an empty cache of compiled code, "later" the cache that the process before it left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from onlinear import Learner
from options import parser_of

FIT = """
import time
import numpy as np, scipy.sparse as sp
from onlinear import Learner, OnlineClassifier
X = sp.random(1000, 100, 0.1, format="csr", random_state=0)
y = np.sign(np.random.default_rng(0).standard_normal(1000))
begun = time.process_time()
{fit}(X, y)
first = time.process_time()
{fit}(X, y)
again = time.process_time()
print((first - begun) - (again - first))
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


FITS = {
    "Learner: COMID, hinge, L1": 'Learner("comid", "hinge", "l1=1e-5").learn',
    "Learner: FIOL, logistic, L1": 'Learner("fiol", "logistic", "l1=1e-5").learn',
    "Learner: SGD, hinge": 'Learner("sgd", "hinge").learn',
    "OnlineClassifier()": "OnlineClassifier().fit",
    "OnlineClassifier(penalty='l1')": 'OnlineClassifier(penalty="l1").fit',
}
SOLVERS = ("comid", "rda", "fiol", "odrs", "iodrs", "sadmm")
ROWS = [(solver, features, "none") for solver in SOLVERS for features in (10_000, 10_000_000)] + [("comid", 10_000, "rms")]


def main() -> int:
    args = parser_of(__doc__).parse_args()
    kept: dict[str, dict[str, tuple[float, ...]]] = {name: {} for name in ("learn_one, microseconds", "first fit", "import")}
    print("| learn_one, 75 non-zeros | p50, microseconds | p99 |\n|---|---:|---:|")
    for solver, features, scale in ROWS:
        name = f"{solver}, {features:,} features" + (f", scale {scale}" if scale != "none" else "")
        kept["learn_one, microseconds"][name] = middle, late = one_row(solver, features, scale)
        print(f"| {name} | {middle:.1f} | {late:.1f} |")
    print("\n| CPU seconds over the fit itself | first fit ever | first fit of a later process |\n|---|---:|---:|")
    for name, fit in FITS.items():
        code = FIT.format(fit=fit)
        with tempfile.TemporaryDirectory() as cache:
            kept["first fit"][name] = first, later = process(code, cache)[0], process(code, cache)[0]
        print(f"| {name} | {first:.2f} | {later:.2f} |")
    print("\n| import | seconds |\n|---|---:|")
    for module in ("onlinear", "onlinear.learner", "sklearn.linear_model"):
        kept["import"][module] = (taken := imported(module),)
        print(f"| {module} | {taken:.2f} |")
    if args.json:
        args.json.write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
