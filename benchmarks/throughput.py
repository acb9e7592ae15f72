"""Throughput of every solver beside the bare loop and scikit-learn, in one run.

    python benchmarks/throughput.py [--rows 200000] [--repeats 7] [--json FILE] [--only PATTERN] [--write .]

The data are text-like: rows of about 68 non-zeros over 47,000 columns whose frequencies follow a power law, columns ascending.
"Bare" is the smallest loop that learns anything: a sparse dot product and an update where the hinge is active, no penalty. Runs
alternate; a figure is the median over the repeats, a ratio is bare time / time in the same repeat, given with its quartiles.
"Memory read" only sums the same indices and values, in vector registers, which no pass can beat. "Kernel" is the compiled loop,
"Learner" is Learner.learn with every check.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp
import sklearn
from numba import njit
from sklearn.linear_model import SGDClassifier

from onlinear import Learner, rows
from onlinear.learner.parts import build_average, build_loss, build_penalty, build_solver
from onlinear.solvers.core.engine import Engine, Examples, Problem
from options import parser_of
from pages import fill

Case = tuple[str, str, str, str, str, float | None]  # label, solver, loss, penalty, average, target ratio
Measure = Callable[[Callable[[], object]], float]  # runs what it is given; its seconds, or a count
CASES: list[Case] = [
    ("SGD, L2", "sgd", "hinge", "l2,l2=1e-5", "none", 0.9),
    ("Pegasos", "pegasos", "hinge", "l2,l2=1e-4", "none", 0.9),
    ("PA-I", "pa-1,C=0.1", "hinge", "none", "none", 0.9),
    ("RDA, L1", "rda,gamma=10", "hinge", "l1,l1=1e-6", "none", 0.85),
    ("COMID, L1", "comid", "hinge", "l1,l1=1e-6", "none", 0.8),
    ("COMID, elastic net", "comid", "hinge", "elastic-net,l1=1e-6,l2=1e-6", "none", 0.8),
    ("CSGD (of squared bare)", "csgd,m=100000,eta=0.01", "squared", "none", "none", 0.75),
    ("SADMM, L1", "sadmm,rho=10", "hinge", "l1,l1=1e-6", "none", 0.65),
    ("oDRs, L2", "odrs,lam=0.1", "hinge", "l2,l2=1e-6", "none", 0.65),
    ("ioDRs, L1", "iodrs,lam=0.1", "hinge", "l1,l1=1e-6", "none", 0.4),
    ("FIOL, L1, hinge", "fiol", "hinge", "l1,l1=1e-6", "none", 0.5),
    ("FIOL, L1, squared (of squared bare)", "fiol", "squared", "l1,l1=1e-6", "none", 0.33),
    ("FIOL, L1, logistic", "fiol", "logistic", "l1,l1=1e-6", "none", 0.25),
    ("FTRL, L1, hinge", "ftrl", "hinge", "l1,l1=1e-6", "none", 0.3),
    ("FTRL, L1, logistic", "ftrl", "logistic", "l1,l1=1e-6", "none", 0.25),
    ("implicit FTRL, L1, hinge", "implicit-ftrl", "hinge", "l1,l1=1e-6", "none", 0.2),
    ("implicit FTRL, L1, logistic", "implicit-ftrl", "logistic", "l1,l1=1e-6", "none", 0.15),
    ("FIOL Algorithm 1", "fiol,inner=sort", "hinge", "l1,l1=1e-6", "none", None),
    ("FIOL Algorithm 2", "fiol,inner=partition", "hinge", "l1,l1=1e-6", "none", None),
    ("implicit SGD, L2", "implicit-sgd", "hinge", "l2,l2=1e-5", "none", None),
    ("OADM, L1", "oadm", "hinge", "l1,l1=1e-6", "none", None),
    ("COMID, logistic", "comid", "logistic", "l1,l1=1e-6", "none", None),
    ("COMID + average, few die", "comid", "hinge", "l1,l1=1e-6", "weighted-t1", 0.5),
    ("COMID + average, many die", "comid", "hinge", "l1,l1=1e-5", "weighted-t1", 0.33),
    ("RDA + average", "rda,gamma=10", "hinge", "l1,l1=1e-6", "uniform", 0.33),
    ("FIOL + average", "fiol", "hinge", "l1,l1=1e-6", "uniform", 0.33),
    ("SADMM + zbar", "sadmm,rho=10", "hinge", "l1,l1=1e-6", "uniform-post", 0.33),
    ("implicit FTRL + average", "implicit-ftrl", "hinge", "l1,l1=1e-6", "uniform", None),
    ("SGD, L2 + average", "sgd", "hinge", "l2,l2=1e-5", "uniform", 0.5),
    ("CSGD + average (of squared bare)", "csgd,m=100000,eta=0.01", "squared", "none", "uniform", None),
]


def text_like(n: int, d: int = 47_000, draws: int = 85, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of a power-law vocabulary, a planted sparse separator with noise, labels -1/+1."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, d + 1)
    drawn = rng.choice(d, size=(n, draws), p=share / share.sum())
    names = rng.permutation(d)
    pieces = [np.sort(names[np.unique(row)]) for row in drawn]
    indptr = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    indices = np.concatenate(pieces).astype(np.int32)
    X = sp.csr_matrix((rng.uniform(0.02, 0.2, len(indices)), indices, indptr), shape=(n, d))
    scores = X @ (rng.standard_normal(d) * (rng.random(d) < 0.2))
    return X, np.where(scores + rng.standard_normal(n) * scores.std() > 0.0, 1.0, -1.0)


@njit(nogil=True)
def bare_hinge(indptr, indices, values, y, w, eta):
    for i in range(y.shape[0]):
        p = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            p += w[indices[k]] * values[k]
        if y[i] * p < 1.0:
            g = eta * y[i]
            for k in range(indptr[i], indptr[i + 1]):
                w[indices[k]] += g * values[k]


@njit(nogil=True)
def bare_squared(indptr, indices, values, y, w, eta):
    for i in range(y.shape[0]):
        p = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            p += w[indices[k]] * values[k]
        g = eta * (y[i] - p)
        for k in range(indptr[i], indptr[i + 1]):
            w[indices[k]] += g * values[k]


@njit(nogil=True, fastmath=True)
def read_all(indices, values):
    columns, total = 0, 0.0
    for k in range(indices.shape[0]):
        columns += indices[k]
        total += values[k]
    return columns, total


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def engine_of(case: Case) -> Engine:
    _, solver, loss, penalty, average, _ = case
    pen = build_penalty(penalty)
    return build_solver(solver, pen)[0].engine(Problem(build_loss(loss), pen, build_average(average), False))


def kernel_run(case: Case, data: rows.Rows, d: int, y: np.ndarray, measure: Measure = timed) -> Callable[[], float]:
    engine = engine_of(case)
    weights, scores = np.ones(len(y)), np.empty(len(y))
    largest = float(np.abs(data.values).max())

    def run() -> float:
        state = engine.start(np.zeros(d), 0.0)
        return measure(lambda: engine.learn(state, Examples(data, largest, y, weights, scores)))

    return run


def learner_run(case: Case, X: sp.csr_matrix, y: np.ndarray) -> Callable[[], float]:
    _, solver, loss, penalty, average, _ = case

    def run() -> float:
        learner = Learner(solver, loss, penalty, average=average, n_features=X.shape[1])
        return timed(lambda: learner.learn(X, y))

    return run


def bare_run(
    loop: Callable[..., None], data: rows.Rows, d: int, y: np.ndarray, measure: Measure = timed
) -> Callable[[], float]:
    return lambda: measure(lambda: loop(*data, y, np.zeros(d), 0.1))


def sklearn_run(X: sp.csr_matrix, y: np.ndarray, penalty: str, shuffle: bool) -> Callable[[], float]:
    def run() -> float:
        model = SGDClassifier(penalty=penalty, alpha=1e-6, max_iter=1, tol=None, shuffle=shuffle, random_state=0)
        return timed(lambda: model.fit(X, y))

    return run


def quartiles(ratios: np.ndarray) -> str:
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", metavar="ROOT", help="put the tables into README.md and docs/benchmarks.md below ROOT")
    args = parser.parse_args()

    X, y = text_like(args.rows)
    data, d, nnz = rows.read(X).data, X.shape[1], X.nnz
    cases = [case for case in CASES if re.search(args.only, case[0])]
    runs: dict[str, Callable[[], float]] = {
        "bare hinge": bare_run(bare_hinge, data, d, y),
        "bare squared": bare_run(bare_squared, data, d, y),
        "memory read": lambda: timed(lambda: read_all(data.indices, data.values)),
    }
    runs |= {f"kernel {case[0]}": kernel_run(case, data, d, y) for case in cases}
    runs |= {f"learner {case[0]}": learner_run(case, X, y) for case in cases if "Algorithm" not in case[0]}
    runs |= {
        "scikit-learn SGDClassifier(l1), stored order": sklearn_run(X, y, "l1", False),
        "scikit-learn SGDClassifier(l2), stored order": sklearn_run(X, y, "l2", False),
        "scikit-learn SGDClassifier(l1), its default shuffle": sklearn_run(X, y, "l1", True),
    }
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(args.repeats):
        for name, run in runs.items():
            times[name].append(run())
    found = Figures({name: np.array(taken) for name, taken in times.items()}, nnz)
    shape = f"{args.rows:,} rows x {d:,} columns, {nnz / args.rows:.0f} non-zeros per row"
    head = f"{shape}; {args.repeats} alternating repeats; {os.cpu_count()} cores of {platform.machine()}, Python "
    head += (
        f"{platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}, scikit-learn {sklearn.__version__}."
    )
    full = "\n".join([head, "", *found.solvers(cases), "", *found.peers()])
    print(full)
    if args.write:
        fill(Path(args.write) / "docs" / "benchmarks.md", "benchmark", full)
        fill(
            Path(args.write) / "README.md",
            "benchmark",
            "\n".join([*found.readme(cases), "", f"({head} More: [benchmarks](docs/benchmarks.md).)"]),
        )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"nnz": nnz, "rows": args.rows, "seconds": times}, file)
    return 0


class Figures:
    """The seconds of every run, as tables."""

    def __init__(self, seconds: dict[str, np.ndarray], nnz: int) -> None:
        self.seconds, self.nnz = seconds, nnz

    def mnnz(self, name: str) -> str:
        return f"{self.nnz / np.median(self.seconds[name]) / 1e6:.0f}" if name in self.seconds else ""

    def against(self, name: str, bare: str) -> str:
        return quartiles(self.seconds[bare] / self.seconds[name]) if name in self.seconds else ""

    def solvers(self, cases: list[Case]) -> list[str]:
        lines = [
            "| what | kernel Mnnz/s | kernel / bare | target | kernel / memory read | Learner Mnnz/s | Learner / bare |",
            "|---|---:|---|---:|---|---:|---|",
            f"| memory read | {self.mnnz('memory read')} | | | 1 | | |",
        ]
        lines += [
            f"| {name} | {self.mnnz(name)} | 1 | | {self.against(name, 'memory read')} | | |"
            for name in ("bare hinge", "bare squared")
        ]
        for label, _, loss, _, _, target in cases:
            kernel, learner = f"kernel {label}", f"learner {label}"
            bare = "bare squared" if loss == "squared" else "bare hinge"
            goal, limit = "" if target is None else f"{target}", self.against(kernel, "memory read")
            first = f"| {label} | {self.mnnz(kernel)} | {self.against(kernel, bare)} | {goal} | {limit} |"
            lines.append(f"{first} {self.mnnz(learner)} | {self.against(learner, bare)} |")
        return lines

    def peers(self) -> list[str]:
        lines = ["| scikit-learn, one epoch | Mnnz/s | time / time of Learner(COMID, L1) |", "|---|---:|---|"]
        for name in [name for name in self.seconds if name.startswith("scikit")]:
            lines.append(f"| {name[13:]} | {self.mnnz(name)} | {self.against('learner COMID, L1', name)} |")
        return lines

    def readme(self, cases: list[Case]) -> list[str]:
        lines = ["| one epoch over text-like rows | million non-zeros per second |", "|---|---:|"]
        chosen = ("COMID, L1", "RDA, L1", "FIOL, L1, hinge", "SADMM, L1", "COMID + average, few die")
        named = {f"learner {label}": f"onlinear, {label} (every check on)" for label in chosen}
        named |= {name: name for name in self.seconds if name.startswith("scikit")}
        named["bare hinge"] = "the bare loop (a dot product and an update, no penalty)"
        return lines + [f"| {shown} | {self.mnnz(name)} |" for name, shown in named.items() if name in self.seconds]


if __name__ == "__main__":
    sys.exit(main())
