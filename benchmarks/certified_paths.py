"""The time of a path of penalties to certified optima, and of several targets, beside scikit-learn, which certifies nothing.

    python benchmarks/certified_paths.py [--write docs/path.md] [--json FILE]

Dense rows as in ``certified_dense.py``; 20 strengths of l1 from .3 to .001 of the gradient at 0, or 20 targets of one strength.
Labels: without an intercept, beside LIBLINEAR, one fit for each penalty. Numbers: columns and targets have mean 0, beside
``lasso_path``, which makes X'X once and keeps no certificate, and beside ``Lasso``. Ours is ``PenaltyPath(..., tol=1e-4).fit``,
or one estimator with all targets. The others are given the loosest tolerance of a grid at which all their objectives are
within 1e-4 of the optima, ours at a gap of 1e-7. Seconds of CPU with one thread, the least of three alternating runs, compiling
excluded. A run of scikit-learn may take 30 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression, lasso_path

from certified import GAP, beside, publish, raced
from certified_dense import given
from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath
from options import parser_of

SHAPES = ((20_000, 300), (5_000, 50), (2_000, 1_500))
MANY, CUT = 20, 30.0
HEAD = ["rows", "columns", "models", "onlinear, s", "scikit-learn, s", "solver", "ratio"]
Weights = np.ndarray  # (20, d), of models without intercepts


class Problem(NamedTuple):
    """Rows, targets (n, 1) or (n, 20), strengths of l1, and whether the targets are labels."""

    X: np.ndarray
    Y: np.ndarray
    strengths: list[float]
    labels: bool

    def objectives(self, W: Weights) -> np.ndarray:
        """F of each model."""
        scores = self.X @ W.T
        losses = np.logaddexp(0.0, -self.Y * scores) if self.labels else 0.5 * (self.Y - scores) ** 2
        return np.asarray(losses.mean(axis=0) + np.array(self.strengths) * np.abs(W).sum(axis=1))

    def ours(self, tol: float = GAP) -> Weights:
        """By ``PenaltyPath``, or one estimator of several targets."""
        kind = OnlineClassifier if self.labels else OnlineRegressor
        model = kind(scale="none", fit_intercept=False, max_passes=1000)
        if self.Y.shape[1] > 1:
            found = model.set_params(penalty=f"l1={self.strengths[0]}", tol=tol).fit(self.X, self.Y)
            gap, coef = found.dual_gap_, found.coef_
        else:
            path = PenaltyPath(model, [f"l1={l1}" for l1 in self.strengths], tol=tol).fit(self.X, self.Y[:, 0])
            gap, coef = path.dual_gaps_.max(), path.coefs_
        if gap > tol:
            raise RuntimeError(f"the gap of {self.X.shape} is {gap}, not {tol}.")
        return np.asarray(coef).reshape(MANY, -1)

    def peers(self) -> dict[str, Callable[[float], Weights]]:
        """Solvers of scikit-learn for the same models."""
        X, y, settings = self.X, self.Y[:, 0], {"fit_intercept": False, "max_iter": 100_000}
        if self.Y.shape[1] > 1:
            return {"Lasso": lambda tol: Lasso(self.strengths[0], tol=tol, **settings).fit(X, self.Y).coef_}
        if not self.labels:
            path = partial(lasso_path, X, y, alphas=self.strengths, max_iter=100_000)
            alone = partial(Lasso, **settings)
            return {
                "lasso_path": lambda tol: path(tol=tol)[1].T,
                "Lasso": lambda tol: np.array([alone(l1, tol=tol).fit(X, y).coef_ for l1 in self.strengths]),
            }
        liblinear = partial(LogisticRegression, l1_ratio=1.0, solver="liblinear", random_state=0, **settings)
        costs = [1.0 / (l1 * len(y)) for l1 in self.strengths]
        return {"liblinear": lambda tol: np.vstack([liblinear(C=C, tol=tol).fit(X, y).coef_ for C in costs])}


def problems(n: int, d: int) -> dict[str, Problem]:
    """The problems of so many rows and columns, by what the table says of their models."""
    labels, numbers = given(n, d, True, "l1=1"), given(n, d, False, "l1=1")
    X, rng = numbers.X - numbers.X.mean(axis=0), np.random.default_rng(0)
    targets = X @ (rng.normal(size=(d, MANY)) / np.sqrt(d)) / X.std() + rng.logistic(size=(n, MANY))
    shares = np.geomspace(0.3, 1e-3, MANY)
    found = {}
    for name, rows, Y, slope in (
        (f"labels, {MANY} penalties", labels.X, labels.y[:, None], 0.5),
        (f"numbers, {MANY} penalties", X, (numbers.y - numbers.y.mean())[:, None], 1.0),
        (f"numbers, {MANY} targets", X, targets - targets.mean(axis=0), 1.0),
    ):
        largest = slope * np.abs(rows.T @ Y).max() / n
        strengths = [float(0.03 * largest)] * MANY if Y.shape[1] > 1 else (shares * largest).tolist()
        found[name] = Problem(rows, Y, strengths, "labels" in name)
    return found


def compare(name: str, problem: Problem) -> list[str]:
    """A row of the table."""
    enough = problem.objectives(problem.ours(1e-7)) * (1.0 + GAP)
    peers = problem.peers()
    mine, _, theirs = raced(problem.ours, peers, lambda W: bool((problem.objectives(W) <= enough).all()), CUT)
    shape = [f"{problem.X.shape[0]:,}", f"{problem.X.shape[1]:,}", name, f"{mine:.3f}"]
    return [*shape, *beside(mine, theirs, peers)]


def main() -> None:
    args = parser_of(__doc__, page=True).parse_args()
    rows = [compare(name, problem) for shape in SHAPES for name, problem in problems(*shape).items()]
    publish("certified paths", HEAD, rows, args.write, args.json)


if __name__ == "__main__":
    main()
