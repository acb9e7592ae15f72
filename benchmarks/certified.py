"""The time to a certified optimum, beside that of solvers that come to an objective as good and certify nothing.

    python benchmarks/certified.py --data FOLDER [--sets rcv1-ccat,cadata] [--write docs/certified.md] [--json FILE]

Labels: mean_i log(1 + exp(-y_i <w, x_i>)) + l1 |w|_1 without an intercept, on rows as they are stored, beside LIBLINEAR in
scikit-learn. mnist-parity is 10,000 rows of MNIST, bytes / 255, odd digits against even. Numbers: l1 |w|_1 and the mean of
(y_i - <w, x_i> - b)^2 / 2, columns of root mean square 1, y of mean 0 and variance 1, beside scikit-learn's Lasso. One thread.

Where skglm is installed, its SparseLogisticRegression and Lasso are run too.

Ours is ``Learner("prox-newton,tol=1e-4").solve`` and ends when its duality gap is at most 1e-4. The others' tolerances are the
loosest of a grid at which their objective is within 1e-4 of the optimum, ours at a gap of 1e-7: they are told where to stop.
skglm's tolerance is of the slopes, so its grid is in units of l1. Seconds of CPU, the least of three alternating runs,
conversion of the rows included, compiling excluded. The page and the file are written after each row; a row that the file has
is not run again.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Lasso, LogisticRegression

from defaults import CLASSES, NUMBERS, load, mnist
from onlinear import Learner
from onlinear.solvers.core.certified import certificate, counted
from options import parser_of
from pages import fill, table
from tools import versions

REPEATS = 3
STRENGTHS = (1e-3, 1e-4, 1e-5)
GAP, GRID = 1e-4, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST = 3.0  # seconds of one run of another solver, beyond which finer tolerances are left out
CUT = 10.0  # seconds after which a run is given up where Python is asked
PARITY = "mnist-parity"
SKGLM = ("skglm",) if find_spec("skglm") else ()
HEAD = ["set", "rows", "columns", "l1", "non-zeros", "passes", "onlinear, s", "scikit-learn, s", "skglm, s", "ratio"]
Row = dict[str, float | None]
T, U = TypeVar("T"), TypeVar("U")


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

    def sklearn(self, tol: float) -> tuple[np.ndarray, float]:
        """Weights and intercept by LIBLINEAR or the Lasso's coordinates."""
        if not self.labels:
            lasso = Lasso(self.l1, tol=tol, max_iter=100_000).fit(self.X.toarray(), self.y)
            return lasso.coef_, float(lasso.intercept_)
        c = 1.0 / (self.l1 * len(self.y))
        model = LogisticRegression(
            l1_ratio=1.0, C=c, solver="liblinear", max_iter=10_000, tol=tol, fit_intercept=False, random_state=0
        )
        return model.fit(self.X, self.y).coef_[0], 0.0

    def skglm(self, tol: float) -> tuple[np.ndarray, float]:
        """Weights and intercept by skglm."""
        model = by_skglm(self.labels, self.l1, tol * self.l1)
        model.fit(self.X if self.labels else self.X.toarray(), self.y)
        return np.ravel(model.coef_), 0.0 if self.labels else float(model.intercept_)


def by_skglm(labels: bool, l1: float, tol: float) -> Any:
    """A model of skglm."""
    from skglm import Lasso, SparseLogisticRegression

    if labels:
        return SparseLogisticRegression(l1, tol=tol, max_iter=1000, fit_intercept=False)
    return Lasso(l1, tol=tol, max_iter=1000)


@cache
def compile_skglm(labels: bool) -> None:
    """Fit two hundred rows: what it takes is compiling."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    by_skglm(labels, 1e-3, 1e-6).fit(sp.csr_matrix(X) if labels else X, np.where(X[:, 0] > 0.3, 1.0, -1.0))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of CPU, between compiled functions. A timer of CPU makes its clock coarse."""
    began = time.process_time()

    def stop(*_: Any) -> None:
        if time.process_time() - began > seconds:
            raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


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


def told(given: Problem, solver: Callable[[float], tuple[np.ndarray, float]], enough: float) -> float | None:
    """The loosest tolerance at which a solver's objective is good enough; None where it came to no such objective."""
    for tol in GRID:
        began = time.process_time()
        try:
            with at_most(CUT):
                found = solver(tol)
        except (TimeoutError, SystemError):  # the latter in the middle of compiled code
            break
        if given.objective(*found) <= enough:
            return tol
        if time.process_time() - began > MOST:
            break
    return None


def loosest(solver: Callable[[float], T], good: Callable[[T], bool], seconds: float) -> float | None:
    """The loosest tolerance at which what a solver finds is good; None where a run of so many seconds found nothing good."""
    for tol in GRID:
        try:
            with at_most(seconds):
                found = solver(tol)
        except (TimeoutError, SystemError):  # the latter in the middle of compiled code
            return None
        if good(found):
            return tol
    return None


def raced(
    ours: Callable[[], U], peers: dict[str, Callable[[float], T]], good: Callable[[T], bool], seconds: float
) -> tuple[float, U, dict[str, float]]:
    """The least seconds of ours, what it found, and the least of each peer at its loosest tolerance that is good.

    Peers for which there is none within so many ``seconds`` are left out."""
    mine, theirs = [], dict[str, float]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tolerances = {name: loosest(solver, good, seconds) for name, solver in peers.items()}
        runs = {name: partial(peers[name], tol) for name, tol in tolerances.items() if tol is not None}
        for _ in range(REPEATS):
            own, found = timed(ours)
            mine.append(own)
            for name, run in runs.items():
                theirs[name] = min(theirs.get(name, inf), timed(run)[0])
    return min(mine), found, theirs


def beside(mine: float, theirs: dict[str, float], peers: Iterable[str]) -> list[str]:
    """The last cells of a row: the seconds of the fastest peer, its name and the ratio of ours to it."""
    if not theirs:
        return ["not reached", ", ".join(peers), ""]
    best = min(theirs, key=lambda name: theirs[name])
    return [f"{theirs[best]:.3f}", best, f"{mine / theirs[best]:.2f}"]


def compare(given: Problem) -> Row:
    """The seconds of all."""
    learner = given.ours(1e-7)
    enough = given.objective(learner.weights(), learner.intercept()) * (1.0 + GAP)
    peers = {name: getattr(given, name) for name in ("sklearn", *SKGLM)}
    if SKGLM:
        compile_skglm(given.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tolerances = {name: told(given, solver, enough) for name, solver in peers.items()}
        mine: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(REPEATS):
            seconds, learner = timed(given.ours)
            mine.append(seconds)
            for name, tol in tolerances.items():
                if tol is not None:
                    theirs[name].append(timed(lambda run=peers[name], tol=tol: run(tol))[0])  # type: ignore[misc]
    state = learner.states[0]
    row: Row = {
        "rows": given.X.shape[0],
        "columns": given.X.shape[1],
        "nonzeros": int(np.count_nonzero(learner.weights())),
        "passes": counted(state)[1],
        "gap": certificate(state).relative,
        "onlinear": min(mine),
    }
    for name, seconds_of in theirs.items():
        row[name], row[f"{name} tolerance"] = min(seconds_of, default=None), tolerances[name]
    return row


def named_strength(penalty: str) -> tuple[str, float]:
    """The name and the strength of a penalty, as l1=1e-4."""
    name, _, strength = penalty.partition("=")
    return name, float(strength)


def publish(name: str, head: list[str], rows: list[list[str]], page: Path | None, file: Path | None) -> None:
    """Print a table, and write it between the markers of a page and into a file where these are named."""
    text = f"{versions()}.\n\n{table(head, rows)}"
    print(text)
    if file:
        file.write_text(json.dumps([dict(zip(head, line, strict=True)) for line in rows]))
    if page:
        fill(page, name, text)


def main() -> int:
    parser = parser_of(__doc__, data=True, page=True)
    parser.add_argument("--sets", default=",".join((*CLASSES, PARITY, *NUMBERS)))
    args = parser.parse_args()
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
            _cell(row["sklearn"]),
            _cell(row["skglm"]) if "skglm" in row else "",
            _ratio(row),
        ]
        for name, rows in found.items()
        for l1, row in rows.items()
    ]
    text = f"{', '.join([versions(), *(f'{name} {version(name)}' for name in SKGLM)])}.\n\n{table(HEAD, rows)}"
    if page:
        fill(page, "certified", text)
    if file:
        file.write_text(json.dumps(found))
    return text


def _cell(seconds: float | None) -> str:
    return "not reached" if seconds is None else f"{seconds:.3f}"


def _ratio(row: Row) -> str:
    mine, theirs = row["onlinear"], [row[name] for name in ("sklearn", "skglm") if row.get(name) is not None]
    return "" if mine is None or not theirs or row["gap"] > GAP else f"{mine / min(theirs):.2f}"  # type: ignore[operator,type-var]


if __name__ == "__main__":
    sys.exit(main())
