"""What one row costs: learn_one, predict_one, a one-row partial_fit and predict, beside River and Vowpal Wabbit.

    python benchmarks/one_row.py [--rows 1000] [--seconds 1] [--most 10000000] [--json FILE]

Rows of 75 non-zeros over 10,000 to 10,000,000 features, hinge or logistic loss; p50 and p99 in microseconds. Every call has the
same time, in rounds, the tools in turn within each; a round before the first warms up. Rows come back with the other label, so
that every call has something to learn: of a row that is learned already, a step with the hinge loss is a score. p99 is left out
where there was time for fewer than 100 calls: scikit-learn's partial_fit passes over all features in each. Vowpal Wabbit learns
examples that it has parsed beforehand (its fastest call, which checks nothing) and text lines; River learns dictionaries, made
beforehand.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from onlinear import Learner, OnlineClassifier
from options import parser_of
from tools import versions

NONZEROS, ROUNDS, FEWEST = 75, 5, 100
Calls = dict[str, tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]]  # name: what is called, and with what, row by row


def rows_of(n: int, d: int) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(d, NONZEROS, replace=False)) if d < 10**6 else _distinct(rng, d) for _ in range(n)]
    return columns, [rng.standard_normal(NONZEROS) for _ in range(n)], np.where(rng.random(n) < 0.5, -1.0, 1.0)


def _distinct(rng: np.random.Generator, d: int) -> np.ndarray:
    found = np.unique(rng.integers(d, size=2 * NONZEROS))
    return np.sort(rng.permutation(found)[:NONZEROS])


def calls(n: int, d: int) -> Calls:
    """Every call that is timed, ready: each model has learned all rows once, so that its memory has been touched."""
    from river import linear_model
    from vowpalwabbit import Workspace

    columns, values, y = rows_of(n, d)
    columns, values, y = 2 * columns, 2 * values, np.concatenate([y, -y])
    matrices = [sp.csr_matrix((x, j, [0, NONZEROS]), shape=(1, d)) for j, x in zip(columns, values, strict=True)]
    labels, X = [np.array([label]) for label in y], sp.vstack(matrices).tocsr()
    found: Calls = {}
    for solver, loss, penalty, more in (
        ("comid", "hinge", "l1,l1=1e-6", {}),
        ("comid", "hinge", "l1,l1=1e-6", {"scale": "rms"}),
        ("comid", "hinge", "l1,l1=1e-6", {"average": "uniform"}),
        ("fiol", "hinge", "l1,l1=1e-6", {}),
        ("odrs", "hinge", "l1,l1=1e-6", {"average": "none"}),
        ("odrs", "hinge", "l1,l1=1e-6", {"average": "uniform"}),
        ("sadmm", "hinge", "l1,l1=1e-6", {"average": "none"}),
        ("sadmm", "hinge", "l1,l1=1e-6", {"average": "uniform"}),
        ("implicit-sgd", "logistic", "none", {}),
    ):
        learner = Learner(solver, loss, penalty, n_features=d, **more).learn(X, y)
        rows = list(zip(columns, values, y.tolist(), strict=True))
        learner.learn_one(*rows[0])  # a built-in function takes the method's place
        settings = "".join(f", {name} {value}" for name, value in more.items())
        found[f"onlinear learn_one, {solver}, {loss}{settings}"] = learner.learn_one, rows
    still = Learner("comid", "hinge", "l1,l1=1e-6", n_features=d).learn(X, y)
    moving = Learner("comid", "hinge", "l1,l1=1e-6", n_features=d).learn(X, y)

    def in_turns(indices: np.ndarray, values: np.ndarray, label: float) -> None:
        moving.predict_one(indices, values)
        moving.learn_one(indices, values, label)

    for _ in range(20 * (1 + d // (1 << 14))):  # until its weights are listed
        still.predict_one(columns[0], values[0])
    found["onlinear predict_one, comid, nothing learned between"] = still.predict_one, list(zip(columns, values, strict=True))
    found["onlinear predict_one, then learn_one, comid, hinge"] = in_turns, list(zip(columns, values, y.tolist(), strict=True))
    model = OnlineClassifier().partial_fit(X, y, classes=[-1.0, 1.0])
    found["onlinear partial_fit of one row, defaults"] = model.partial_fit, list(zip(matrices, labels, strict=True))
    found["onlinear predict of one row"] = model.predict, [(row,) for row in matrices]
    peer = SGDClassifier(penalty="l1", alpha=1e-6).partial_fit(X, y, classes=[-1.0, 1.0])
    found["scikit-learn partial_fit of one row"] = peer.partial_fit, list(zip(matrices, labels, strict=True))
    found["scikit-learn predict of one row"] = peer.predict, [(row,) for row in matrices]
    river = linear_model.LogisticRegression()
    dictionaries = [dict(zip(j.tolist(), x.tolist(), strict=True)) for j, x in zip(columns, values, strict=True)]
    for row, label in zip(dictionaries, (y > 0).tolist(), strict=True):
        river.learn_one(row, label)
    found["River learn_one"] = river.learn_one, list(zip(dictionaries, (y > 0).tolist(), strict=True))
    found["River predict_one"] = river.predict_one, [(row,) for row in dictionaries]
    vw = Workspace(f"--quiet -b {max(18, int(np.ceil(np.log2(d))))} --loss_function hinge")
    texts = [
        f"{label:g} | " + " ".join(f"{a}:{b!r}" for a, b in row.items()) for label, row in zip(y, dictionaries, strict=True)
    ]
    examples = [vw.example(text) for text in texts]
    for example in examples:
        vw.learn(example)
    found["Vowpal Wabbit learn, parsed beforehand"] = vw.learn, [(example,) for example in examples]
    found["Vowpal Wabbit learn, text"] = vw.learn, [(text,) for text in texts]
    return found


def microseconds(found: Calls, seconds: float) -> dict[str, np.ndarray]:
    """Every call's times, in microseconds; the first round warms up."""
    times: dict[str, list[int]] = {name: [] for name in found}
    endless = {name: cycle(rows) for name, (_, rows) in found.items()}
    for round_ in range(ROUNDS + 1):
        for name, (call, _) in found.items():
            taken = for_a_while(call, endless[name], seconds / ROUNDS)
            times[name] += taken if round_ else []
    return {name: np.array(taken) / 1e3 for name, taken in times.items()}


def for_a_while(call: Callable[..., Any], rows: Iterator[tuple[Any, ...]], seconds: float) -> list[int]:
    """Times of one call after another, in nanoseconds."""
    taken: list[int] = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    after = 0
    while after < end:
        row = next(rows)
        start = time.perf_counter_ns()
        call(*row)
        after = time.perf_counter_ns()
        taken.append(after - start)
    return taken


def late(times: np.ndarray) -> float | None:
    """p99, of enough calls."""
    return float(np.percentile(times, 99)) if len(times) >= FEWEST else None


def shown(times: np.ndarray) -> str:
    p99 = late(times)
    return f"{np.median(times):.1f} / " + ("-" if p99 is None else f"{p99:.1f}")


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each call at each number of features")
    parser.add_argument("--most", type=int, default=10_000_000)
    args = parser.parse_args()
    sizes = [d for d in (10**4, 10**5, 10**6, 10**7) if d <= args.most]
    found = {d: microseconds(calls(args.rows, d), args.seconds) for d in sizes}
    print(f"{versions()}.\n")
    print("| one row, 75 non-zeros: p50 / p99 in microseconds | " + " | ".join(f"{d:,} features" for d in sizes) + " |")
    print("|---|" + "---:|" * len(sizes))
    for name in found[sizes[0]]:
        cells = [shown(found[d][name]) for d in sizes]
        print(f"| {name} | " + " | ".join(cells) + " |")
    if args.json:
        kept = {
            d: {name: {"p50": float(np.median(x)), "p99": late(x), "calls": len(x)} for name, x in times.items()}
            for d, times in found.items()
        }
        args.json.write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
