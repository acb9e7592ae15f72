"""Many outputs in one pass: 10 and 100 classes, grids of 8 and 32 penalties, on one core and on two.

    python benchmarks/many.py [--rows 200000] [--repeats 3] [--only PATTERN] [--write docs/path.md] [--json FILE]

The rows are those of throughput.py (text-like, 47,000 columns, about 68 non-zeros per row). "One" is Learner.learn of one model
with every check: of the labels -1/+1 for the grids, the mean over the classes for the classes. Every other figure is a multiple
of it: "in turn" learns the outputs one after the other over the same checked rows, "one pass" side by side. Runs alternate;
times are of the thread (time.thread_time), the smallest of the repeats, as others may use the machine. "Two cores" is the time
of one thread over that of the busier of two, each pack's time measured by itself: what free cores gain, since packs share
nothing but the rows they read. With --wall it is the ratio of wall times, for a machine with nothing else to do.
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear import Learner
from onlinear.models.path import Together
from onlinear.solvers.packs import team
from onlinear.threads import Pool
from options import parser_of
from pages import fill
from throughput import text_like

L1 = [f"l1,l1={l1:g}" for l1 in np.geomspace(1e-7, 1e-4, 32)]
L2 = [f"l2,l2={l2:g}" for l2 in np.geomspace(1e-7, 1e-4, 32)]
CLASSES = 5.0  # times one model, of ten classes
GRIDS = {"fiol": 14.0, "averaged": 20.0, "": 10.0}  # times one model, of 32 penalties, by the kind of method


class Method(NamedTuple):
    """A solver, loss and average, with the penalties of its grid."""

    name: str
    solver: str
    loss: str
    penalties: list[str]
    average: str = "none"

    def target(self, case: str) -> str:
        """Times one model that a case may take; empty where none is set."""
        if case == "10 classes":
            return f"{CLASSES:g}x"
        kind = "averaged" if self.average != "none" else "fiol" if self.solver.startswith("fiol") else ""
        return f"{GRIDS[kind]:g}x" if case == "grid of 32" else ""

    def learner(self, penalty: str, outputs: int = 1, threads: int = 1, columns: int = 0) -> Learner:
        return Learner(self.solver, self.loss, penalty, self.average, n_features=columns, n_outputs=outputs, n_jobs=threads)

    @property
    def middle(self) -> str:
        return self.penalties[len(self.penalties) // 3]


METHODS = [
    Method("COMID, L1, hinge", "comid", "hinge", L1),
    Method("RDA, L1, hinge", "rda,gamma=10", "hinge", L1),
    Method("SGD, L2, hinge", "sgd", "hinge", L2),
    Method("FIOL, L1, hinge", "fiol", "hinge", L1),
    Method("FIOL, L1, squared", "fiol", "squared", L1),
    Method("FIOL, L1, logistic", "fiol", "logistic", L1),
    Method("implicit SGD, L2, logistic, averaged", "implicit-sgd", "logistic", L2, "weighted-t1"),
    Method("COMID, L1, hinge, averaged", "comid", "hinge", L1, "weighted-t1"),
]
Run = Callable[[], Callable[[], object]]  # makes what is timed, anew each time


def classes_of(X: sp.csr_matrix, count: int) -> np.ndarray:
    """One-against-rest labels, (n, count), of planted separators."""
    rng = np.random.default_rng(1)
    planted = rng.standard_normal((X.shape[1], count)) * (rng.random((X.shape[1], count)) < 0.2)
    own = np.argmax(X @ planted, axis=1)
    return np.asfortranarray(np.where(own[:, None] == np.arange(count), 1.0, -1.0))


def in_turn(make: Run) -> Run:
    """The same without packs."""

    def made() -> Callable[[], object]:
        ready = make()

        def run() -> object:
            with patched(team, "method_of", lambda output: id(output.state)):
                return ready()

        return run

    return made


def learn_classes(method: Method, X: sp.csr_matrix, Y: np.ndarray, threads: int) -> Run:
    def make() -> Callable[[], object]:
        learner = method.learner(method.middle, Y.shape[1], threads, X.shape[1])
        return lambda: learner.learn(X, Y)

    return make


def learn_one(method: Method, X: sp.csr_matrix, y: np.ndarray) -> Run:
    def make() -> Callable[[], object]:
        learner = method.learner(method.middle, columns=X.shape[1])
        return lambda: learner.learn(X, y)

    return make


def learn_grid(method: Method, X: sp.csr_matrix, y: np.ndarray, count: int, threads: int) -> Run:
    penalties = method.penalties[:: len(method.penalties) // count]

    def make() -> Callable[[], object]:
        learners = [method.learner(penalty, columns=X.shape[1]) for penalty in penalties]

        def run() -> object:
            group = Together(learners, penalties, threads)
            return group.learn(*group.check(X, y, np.ones(len(y))))

        return run

    return make


class Case(NamedTuple):
    """One row of the table."""

    ones: list[Run]
    turn: Run
    together: Run
    two: Run


class Busier:
    """In place of Pool: does the work of two threads itself, and counts the time of the busier one."""

    idle = 0.0  # seconds that the busier thread did not work

    def __init__(self, threads: int) -> None:
        self._busy = [0.0] * threads

    def __enter__(self) -> Busier:
        return self

    def __exit__(self, *error: object) -> None:
        Busier.idle += sum(self._busy) - max(self._busy)

    def map(self, task: Callable[[object], object], items: Iterable[object]) -> Iterator[object]:
        for item in items:
            begun = time.thread_time()
            found = task(item)
            self._busy[self._busy.index(min(self._busy))] += time.thread_time() - begun
            yield found


def cases_of(method: Method, X: sp.csr_matrix, y: np.ndarray, counts: list[int]) -> dict[str, Case]:
    found = {}
    for count in counts:
        Y = classes_of(X, count)
        ones = [learn_one(method, X, Y[:, k].copy()) for k in range(0, count, max(1, count // 10))]
        runs = [learn_classes(method, X, Y, threads) for threads in (1, 2)]
        found[f"{count} classes"] = Case(ones, in_turn(runs[0]), *runs)
    for count in (8, 32):
        runs = [learn_grid(method, X, y, count, threads) for threads in (1, 2)]
        found[f"grid of {count}"] = Case([learn_one(method, X, y)], in_turn(runs[0]), *runs)
    return found


def measured(case: Case, repeats: int, wall: bool) -> tuple[float, float, float, float]:
    """Seconds of one; in turn and together as multiples of it; and what two threads gain."""
    runs = [*case.ones, case.turn, case.together, case.two]
    clock = time.perf_counter if wall else time.thread_time
    for run in runs:
        run()()
    times = np.full((len(runs), repeats), np.inf)
    for r in range(repeats):
        for k, run in enumerate(runs):
            ready, Busier.idle = run(), 0.0
            with patched(team, "Pool", Pool if wall else Busier):
                begun = clock()
                ready()
                times[k, r] = clock() - begun - Busier.idle
    best = times.min(axis=1)
    one = float(np.mean(best[:-3]))
    turn, together, two = best[-3:]
    return one, turn / one, together / one, together / two


@contextmanager
def patched(owner: object, name: str, value: object) -> Iterator[None]:
    """Another value for an attribute, for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def main() -> None:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--wall", action="store_true", help="two cores by wall time")
    args = parser.parse_args()
    X, y = text_like(args.rows)
    lines = [
        f"{args.rows:,} rows x {X.shape[1]:,} columns, {X.nnz / args.rows:.0f} non-zeros per row; smallest of {args.repeats} "
        f"alternating repeats; {os.cpu_count()} cores of {platform.machine()}, shared with other work.",
        "",
        "| method | outputs | one, ms | in turn | one pass | target | two cores |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    print("\n".join(lines), flush=True)
    kept: dict[str, dict[str, float]] = {}
    for method in METHODS:
        if not re.search(args.only, method.name):
            continue
        counts = [10, 100] if method is METHODS[0] else [10]
        for name, case in cases_of(method, X, y, counts).items():
            one, turn, together, gain = measured(case, args.repeats, args.wall)
            kept[f"{method.name}, {name}"] = {"seconds of one": one, "in turn": turn, "one pass": together, "two cores": gain}
            target = method.target(name)
            lines.append(
                f"| {method.name} | {name} | {1e3 * one:.0f} | {turn:.1f}x | {together:.1f}x | {target} | {gain:.2f}x |"
            )
            print(lines[-1], flush=True)
    if args.write:
        fill(args.write, "many", "\n".join(lines))
    if args.json:
        args.json.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
