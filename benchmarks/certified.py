"""The time to a certified optimum, beside that of a solver that comes to an objective as good and certifies nothing.

    python benchmarks/certified.py --data FOLDER [--sets rcv1-ccat,cadata] [--write docs/certified.md] [--json FILE]

Labels: mean_i log(1 + exp(-y_i <w, x_i>)) + l1 |w|_1 without an intercept, on rows as they are stored, beside LIBLINEAR in
scikit-learn. mnist-parity is 10,000 rows of MNIST, bytes / 255, odd digits against even. Numbers: l1 |w|_1 and the mean of
(y_i - <w, x_i> - b)^2 / 2, columns of root mean square 1, y of mean 0 and variance 1, beside scikit-learn's Lasso. One thread.

Ours is ``Learner("prox-newton,tol=1e-4").solve`` and ends when its duality gap is at most 1e-4. The other's tolerance is the
loosest of a grid at which its objective is within 1e-4 of the optimum, ours at a gap of 1e-7: it is told where to stop.
Seconds of CPU, the least of three alternating runs, conversion of the rows included, compiling excluded. The page and the file
are written after each row; a row that the file has is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression

from defaults import CLASSES, NUMBERS, load, mnist, table
from onlinear import Learner
from onlinear.solvers.core.certified import certificate, counted
from pages import fill
from tools import versions

REPEATS = 3
STRENGTHS = (1e-3, 1e-4, 1e-5)
GAP, GRID = 1e-4, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST = 3.0  # seconds of one run of the other solver, beyond which finer tolerances are left out
PARITY = "mnist-parity"
HEAD = ["set", "rows", "columns", "l1", "non-zeros", "passes", "onlinear, s", "the other, s", "ratio"]
Row = dict[str, float | None]
T = TypeVar("T")


class Problem(NamedTuple):
    """Rows and targets, whether they are labels, and l1."""

    X: sp.csr_matrix
    y: np.ndarray
    labels: bool
    l1: float

    def objective(self, w: np.ndarray, b: float) -> float:
        """F."""
        scores = self.X @ w + b
        losses = np.logaddexp(0.0, -self.y * scores) if self.labels else 0.5 * (self.y - scores) ** 2
        return float(np.mean(losses) + self.l1 * np.abs(w).sum())

    def ours(self, tol: float = GAP) -> Learner:
        """Solved by prox-newton."""
        loss, free = ("logistic", False) if self.labels else ("squared", True)
        solver = f"prox-newton,tol={tol}"
        learner = Learner(solver, loss, f"l1={self.l1}", fit_intercept=free, n_features=self.X.shape[1])
        return learner.solve(self.X, self.y, 200)

    def theirs(self, tol: float) -> tuple[np.ndarray, float]:
        """Weights and intercept by LIBLINEAR or the Lasso's coordinates."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if not self.labels:
                lasso = Lasso(self.l1, tol=tol, max_iter=100_000).fit(self.X.toarray(), self.y)
                return lasso.coef_, float(lasso.intercept_)
            c = 1.0 / (self.l1 * len(self.y))
            model = LogisticRegression(
                l1_ratio=1.0, C=c, solver="liblinear", max_iter=10_000, tol=tol, fit_intercept=False, random_state=0
            )
            return model.fit(self.X, self.y).coef_[0], 0.0


def problem(folder: Path, name: str, l1: float) -> Problem:
    """A set of the folder."""
    if name in NUMBERS:
        split = load(folder, name, NUMBERS[name])
        X = split.X.toarray()
        X /= np.sqrt(np.mean(X * X, axis=0)) + (X == 0.0).all(axis=0)
        return Problem(sp.csr_matrix(X), (split.y - split.y.mean()) / split.y.std(), False, l1)
    if name == PARITY:
        split = mnist(folder)
        return Problem(sp.csr_matrix(split.X[:10_000] / 255.0), np.where(split.y[:10_000] % 2, 1.0, -1.0), True, l1)
    split = load(folder, name, CLASSES[name])
    return Problem(sp.csr_matrix(split.X), np.where(split.y > split.y.min(), 1.0, -1.0), True, l1)


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, and what is found."""
    began = time.process_time()
    found = run()
    return time.process_time() - began, found


def compare(given: Problem) -> Row:
    """The seconds of both; None where the other came to no such objective."""
    learner = given.ours(1e-7)
    best, tolerance = given.objective(learner.weights(), learner.intercept()), None
    for tol in GRID:
        seconds, found = timed(lambda tol=tol: given.theirs(tol))  # type: ignore[misc]
        if given.objective(*found) <= best * (1.0 + GAP):
            tolerance = tol
            break
        if seconds > MOST:
            break
    mine, theirs = [], []
    for _ in range(REPEATS):
        seconds, learner = timed(given.ours)
        mine.append(seconds)
        if tolerance is not None:
            theirs.append(timed(lambda: given.theirs(tolerance))[0])  # type: ignore[arg-type]
    state = learner.states[0]
    return {
        "rows": given.X.shape[0],
        "columns": given.X.shape[1],
        "nonzeros": int(np.count_nonzero(learner.weights())),
        "passes": counted(state)[1],
        "gap": certificate(state).relative,
        "onlinear": min(mine),
        "other": min(theirs, default=None),
        "tolerance": tolerance,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("ONLINEAR_DATA"), help="folder of the data sets")
    parser.add_argument("--sets", default=",".join((*CLASSES, PARITY, *NUMBERS)))
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.data is None:
        parser.error("name the folder of the data sets: --data FOLDER, or the variable ONLINEAR_DATA.")
    found: dict[str, dict[str, Row]] = {}
    if args.json and args.json.exists():
        found = json.loads(args.json.read_text())
    for name in args.sets.split(","):
        for l1 in STRENGTHS:
            if f"{l1:g}" not in found.setdefault(name, {}):
                found[name][f"{l1:g}"] = compare(problem(args.data, name, l1))
                show(found, args.write, args.json)
    print(show(found, args.write, args.json))
    return 0


def show(found: dict[str, dict[str, Row]], page: Path | None, file: Path | None) -> str:
    """The table, which is written where it is asked for."""
    rows = [
        [
            name,
            f"{row['rows']:,.0f}",
            f"{row['columns']:,.0f}",
            l1,
            f"{row['nonzeros']:,.0f}",
            f"{row['passes']:.0f}",
            _cell(row["onlinear"] if row["gap"] <= GAP else None),  # type: ignore[operator]
            _cell(row["other"]),
            _ratio(row),
        ]
        for name, rows in found.items()
        for l1, row in rows.items()
    ]
    text = f"{versions()}.\n\n{table(HEAD, rows)}"
    if page:
        fill(page, "certified", text)
    if file:
        file.write_text(json.dumps(found))
    return text


def _cell(seconds: float | None) -> str:
    return "not reached" if seconds is None else f"{seconds:.3f}"


def _ratio(row: Row) -> str:
    mine, theirs = row["onlinear"], row["other"]
    return "" if mine is None or theirs is None or row["gap"] > GAP else f"{mine / theirs:.2f}"


if __name__ == "__main__":
    sys.exit(main())
