"""The time to the certified optimum of softmax, beside scikit-learn's multinomial logistic regression, which certifies nothing.

    python benchmarks/certified_classes.py [--data FOLDER] [--write docs/certified.md] [--json FILE]

    mean_i l(W x_i + b, y_i) + l1 |W|_1  or  + (l2/2) |W|^2,   l(z, y) = log(sum_k exp(z_k)) - z_y

on columns of largest value 1. Ours is ``Learner("prox-newton,tol=1e-4", "softmax")`` and ends when its duality gap is at most
1e-4. scikit-learn's solver, saga with l1 and lbfgs with l2, is given the loosest tolerance of a grid at which its objective is
within 1e-4 of the optimum, ours at a gap of 1e-7. Seconds of CPU with one thread, the least of three alternating runs,
compiling excluded. A run of scikit-learn may take 5 seconds. With the folder of data, 10,000 rows of MNIST are a set too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from certified import GAP, beside, named_strength, publish, raced
from classes import sets
from defaults import mnist
from onlinear import Learner
from onlinear.solvers.core.certified import certificate, counted
from options import parser_of

LONGEST = 5.0  # seconds of CPU
PENALTIES = ("l1=0.001", "l1=0.0001", "l2=0.001")
HEAD = ["set", "rows", "columns", "classes", "penalty", "non-zeros", "passes", "onlinear, s", "scikit-learn, s", "ratio"]


class Classes(NamedTuple):
    """Rows, the places of their classes, and a penalty."""

    X: Any
    y: np.ndarray
    penalty: str

    def objective(self, W: np.ndarray, b: np.ndarray) -> float:
        """F at weights (K, d) and intercepts (K,)."""
        name, strength = named_strength(self.penalty)
        losses = -log_softmax(self.X @ W.T + b, axis=1)[np.arange(len(self.y)), self.y]
        return float(losses.mean() + strength * (np.abs(W).sum() if name == "l1" else 0.5 * np.sum(W * W)))

    def ours(self, tol: float = GAP) -> Learner:
        """Solved by prox-newton."""
        outputs = int(self.y.max()) + 1
        solver, columns = f"prox-newton,tol={tol}", self.X.shape[1]
        learner = Learner(solver, "softmax", self.penalty, n_outputs=outputs, n_features=columns, fit_intercept=True)
        return learner.solve(self.X, self.y, 200)

    def sklearn(self, tol: float) -> LogisticRegression:
        """Solved by saga or lbfgs."""
        name, strength = named_strength(self.penalty)
        solver, ratio = ("saga", 1.0) if name == "l1" else ("lbfgs", 0.0)
        c = 1.0 / (strength * len(self.y))
        return LogisticRegression(C=c, l1_ratio=ratio, solver=solver, tol=tol, max_iter=100_000, random_state=0).fit(
            self.X, self.y
        )


def compare(name: str, given: Classes) -> list[str]:
    """A row of the table."""
    best = given.ours(1e-7)
    enough = certificate(best.states[0]).objective * (1.0 + GAP)
    peers, good = {"scikit-learn": given.sklearn}, lambda model: given.objective(model.coef_, model.intercept_) <= enough
    mine, learner, theirs = raced(given.ours, peers, good, LONGEST)
    state = learner.states[0]
    if certificate(state).relative > GAP:
        raise RuntimeError(f"{name}: the gap is {certificate(state).relative}.")
    shown = [f"{given.X.shape[0]:,}", f"{given.X.shape[1]:,}", str(learner.n_outputs), given.penalty]
    counts = [f"{np.count_nonzero(learner.weights()):,}", str(counted(state)[1])]
    seconds, _, ratio = beside(mine, theirs, peers)
    return [name, *shown, *counts, f"{mine:.3f}", seconds, ratio]


def problems(data: Path | None) -> dict[str, tuple[Any, np.ndarray]]:
    """The sets, each column divided by its largest value."""
    found = sets(None)
    if data is not None:
        split = mnist(data)
        found["mnist, 10,000 rows"] = split.X[:10_000], split.y[:10_000]
    scaled = {}
    for name, (X, y) in found.items():
        largest = np.asarray(abs(sparse.csr_matrix(X)).max(axis=0).todense()).ravel()
        scaled[name] = (
            sparse.csr_matrix(X @ sparse.diags(1.0 / np.where(largest > 0.0, largest, 1.0))),
            np.unique(y, return_inverse=True)[1],
        )
    return scaled


def main() -> None:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    rows = [compare(name, Classes(X, y, penalty)) for name, (X, y) in problems(args.data).items() for penalty in PENALTIES]
    publish("certified classes", HEAD, rows, args.write, args.json)


if __name__ == "__main__":
    main()
