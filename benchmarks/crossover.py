"""The objective against time on stored data: onlinear beside LIBLINEAR and scikit-learn's saga, where they win too.

    python benchmarks/crossover.py --data FOLDER [--sets rcv1-ccat,a9a] [--plot FILE.svg] [--json FILE]

All minimise mean_i log(1 + exp(-y_i <w, x_i>)) + l1 |w|_1 without an intercept. onlinear makes 1, 2, 4, ... passes, towards
a certified gap 1 to 12; the others run to 1, 2, 4, ... iterations, each from the start. A point is
(median seconds of three runs, (F - F*) / F*), F* the smallest objective that any run here reached,
LIBLINEAR at tolerance 1e-10 among them. Scaling: rows as they are stored, for all.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from defaults import CLASSES, load
from onlinear import Learner
from options import parser_of
from pages import table
from tools import versions

REPEATS = 3
L1 = 1e-4
FINEST = 1e-8  # gap, at which no run of a budget here ends before it
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#000000", "#56b4e9", "#d55e00")  # that colour-blind people tell apart


class Point(NamedTuple):
    """One run to a budget."""

    budget: int
    seconds: float
    objective: float


def objective(w: np.ndarray, X: sp.csr_matrix, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0.0, -y * (X @ w))) + L1 * np.abs(w).sum())


def stream(solver: str, average: str, X: sp.csr_matrix, y: np.ndarray, passes: int) -> np.ndarray:
    learner = Learner(solver, "logistic", f"l1,l1={L1}", average=average, n_features=X.shape[1])
    for _ in range(passes):
        learner.learn(X, y)
    return learner.weights(average=average != "none")


def certified(X: sp.csr_matrix, y: np.ndarray, passes: int) -> np.ndarray:
    learner = Learner(f"prox-newton,tol={FINEST}", "logistic", f"l1,l1={L1}", n_features=X.shape[1])
    return learner.solve(X, y, passes).weights()


def batch(solver: str, X: sp.csr_matrix, y: np.ndarray, iterations: int, tolerance: float = 1e-12) -> np.ndarray:
    model = LogisticRegression(
        l1_ratio=1.0,
        C=1.0 / (L1 * len(y)),
        solver=solver,
        max_iter=iterations,
        tol=tolerance,
        fit_intercept=False,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y).coef_[0]


METHODS: dict[str, tuple[Callable[..., np.ndarray], tuple[int, ...]]] = {
    "onlinear fiol": (lambda X, y, b: stream("fiol,eta=5", "none", X, y, b), (1, 2, 4, 8, 16, 32, 64)),
    "onlinear fiol, averaged": (lambda X, y, b: stream("fiol,eta=20", "weighted-t1", X, y, b), (1, 2, 4, 8, 16, 32, 64)),
    "onlinear rda": (lambda X, y, b: stream("rda,gamma=0.2", "none", X, y, b), (1, 2, 4, 8, 16, 32, 64)),
    "onlinear, to a certified gap": (certified, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)),
    "LIBLINEAR": (lambda X, y, b: batch("liblinear", X, y, b), (1, 2, 4, 8, 16, 32)),
    "saga": (lambda X, y, b: batch("saga", X, y, b), (1, 2, 4, 8, 16, 32, 64)),
}


def curves(X: sp.csr_matrix, y: np.ndarray) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for name, (run, budgets) in METHODS.items():
        run(X, y, 1)
        found[name] = []
        for budget in budgets:
            taken = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                w = run(X, y, budget)
                taken.append(time.perf_counter() - start)
            found[name].append(Point(budget, float(np.median(taken)), objective(w, X, y)))
    return found


def plot(path: str, gaps: dict[str, dict[str, list[tuple[float, float]]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(gaps), 4), layout="constrained")
    for axes, (name, lines) in zip(np.atleast_1d(figure.subplots(1, len(gaps), sharey=True)), gaps.items(), strict=True):
        axes.set_prop_cycle(color=COLOURS)
        for method, points in lines.items():
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=method)
        axes.set(title=name, xlabel="seconds", ylabel="(F - F*) / F*")
        axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path)


def main() -> int:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--sets", default="rcv1-ccat,a9a")
    parser.add_argument("--plot")
    args = parser.parse_args()
    gaps: dict[str, dict[str, list[tuple[float, float]]]] = {}
    print(f"{versions()}.")
    for name in args.sets.split(","):
        split = load(args.data, name, CLASSES[name])
        found = curves(split.X, split.y)
        lowest = min(point.objective for points in found.values() for point in points)
        lowest = min(lowest, objective(batch("liblinear", split.X, split.y, 10_000, 1e-10), split.X, split.y))
        gaps[name] = {
            method: [(point.seconds, max(point.objective / lowest - 1.0, 1e-12)) for point in points]
            for method, points in found.items()
        }
        rows = [[method, *[_first(gaps[name][method], gap) for gap in (0.1, 0.03, 0.01, 0.001, 0.0001)]] for method in found]
        print(f"\n{name}, l1 = {L1:g}: seconds to a relative gap of\n")
        print(table(["method", "10 %", "3 %", "1 %", "0.1 %", "0.01 %"], rows))
    if args.plot:
        plot(args.plot, gaps)
    if args.json:
        args.json.write_text(json.dumps(gaps))
    return 0


def _first(points: list[tuple[float, float]], gap: float) -> str:
    return next((f"{seconds:.3g}" for seconds, reached in points if reached <= gap), "not reached")


if __name__ == "__main__":
    sys.exit(main())
