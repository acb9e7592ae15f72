"""The time to a certified optimum on dense rows, beside scikit-learn's solvers, which certify nothing.

    python benchmarks/certified_dense.py [--write docs/certified.md] [--json FILE]

Rows are normal numbers of which each column depends on all others. Labels: the mean of log(1 + exp(-y <w, x>)), without an
intercept, beside lbfgs and newton-cholesky with l2 and LIBLINEAR with l1. Numbers: half the mean square of y - <w, x> - b,
beside Ridge and Lasso. Ours is ``Learner("prox-newton,tol=1e-4").solve`` and ends when its duality gap is at most 1e-4. The
others are given the loosest tolerance of a grid at which their objective is within 1e-4 of the optimum, ours at a gap of 1e-7.
Seconds of CPU with one thread, the least of three alternating runs, compiling excluded. A run of scikit-learn may take 10
seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from certified import CUT, GAP, beside, named_strength, publish, raced
from onlinear import Learner
from onlinear.solvers.core.certified import certificate, counted
from options import parser_of

SHAPES = ((20_000, 300), (100_000, 100), (1_000_000, 10), (5_000, 1_500))
PENALTIES = ("l2=0.01", "l2=0.0001", "l1=0.01", "l1=0.0001")
HEAD = ["rows", "columns", "targets", "penalty", "non-zeros", "passes", "onlinear, s", "scikit-learn, s", "solver", "ratio"]
Solver = Callable[[float], Any]


class Dense(NamedTuple):
    """Rows, targets, whether these are labels, and a penalty."""

    X: np.ndarray
    y: np.ndarray
    labels: bool
    penalty: str

    def objective(self, w: np.ndarray, b: float) -> float:
        """F."""
        (name, strength), scores = named_strength(self.penalty), self.X @ w + b
        losses = np.logaddexp(0.0, -self.y * scores) if self.labels else 0.5 * (self.y - scores) ** 2
        return float(np.mean(losses) + strength * (np.abs(w).sum() if name == "l1" else 0.5 * (w @ w)))

    def of(self, model: Any) -> float:
        """F of a model of scikit-learn."""
        return self.objective(np.ravel(model.coef_), float(np.squeeze(model.intercept_)))

    def ours(self, tol: float = GAP) -> Learner:
        """Solved by prox-newton."""
        loss, solver = "logistic" if self.labels else "squared", f"prox-newton,tol={tol}"
        learner = Learner(solver, loss, self.penalty, fit_intercept=not self.labels, n_features=self.X.shape[1])
        return learner.solve(self.X, self.y, 200)

    def peers(self) -> dict[str, Solver]:
        """The solvers of scikit-learn for the same problem."""
        (name, strength), n = named_strength(self.penalty), len(self.y)
        if not self.labels:
            made: Any = partial(Lasso, strength, max_iter=100_000) if name == "l1" else partial(Ridge, strength * n)
            return {made.func.__name__: lambda tol: made(tol=tol).fit(self.X, self.y)}
        solvers = ("liblinear",) if name == "l1" else ("lbfgs", "newton-cholesky")
        model = partial(LogisticRegression, C=1.0 / (strength * n), l1_ratio=float(name == "l1"), max_iter=10_000)
        found = {solver: partial(model, solver=solver, fit_intercept=False, random_state=0) for solver in solvers}
        return {solver: lambda tol, make=make: make(tol=tol).fit(self.X, self.y) for solver, make in found.items()}  # type: ignore[misc]


def given(n: int, d: int, labels: bool, penalty: str) -> Dense:
    """A problem of so many rows and columns."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + rng.normal(size=(d, d)) * 0.9 / np.sqrt(d))
    scores = X @ (rng.normal(size=d) / np.sqrt(d)) / X.std() + rng.logistic(size=n)
    return Dense(X, np.where(scores > 0.0, 1.0, -1.0) if labels else scores, labels, penalty)


def compare(problem: Dense) -> list[str]:
    """A row of the table."""
    enough = certificate(problem.ours(1e-7).states[0]).objective * (1.0 + GAP)
    peers = problem.peers()
    mine, learner, theirs = raced(problem.ours, peers, lambda model: problem.of(model) <= enough, CUT)
    state = learner.states[0]
    if certificate(state).relative > GAP:
        raise RuntimeError(f"the gap of {problem.X.shape}, {problem.penalty} is {certificate(state).relative}.")
    shape = [f"{problem.X.shape[0]:,}", f"{problem.X.shape[1]:,}", "labels" if problem.labels else "numbers", problem.penalty]
    counts = [f"{np.count_nonzero(learner.weights()):,}", str(counted(state)[1]), f"{mine:.3f}"]
    return [*shape, *counts, *beside(mine, theirs, peers)]


def main() -> None:
    args = parser_of(__doc__, page=True).parse_args()
    cases = product(SHAPES, (True, False), PENALTIES)
    rows = [compare(given(n, d, labels, penalty)) for (n, d), labels, penalty in cases]
    publish("certified dense", HEAD, rows, args.write, args.json)


if __name__ == "__main__":
    main()
