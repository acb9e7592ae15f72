"""The same rows in one call, in pieces and one by one: what changes, and what each call costs, beside scikit-learn.

    python benchmarks/pieces.py [--rows 20000] [--json FILE]

Text-like rows in stored order, hinge, L1. For each tool: the largest difference of a coefficient between one call and another
cut of the same rows, how many coefficients change between zero and non-zero, and the cost of a call of one row as the number
of features grows. Then the non-zeros of averages, and what each tool reports of its weights as it learns (scikit-learn with
verbose=1, onlinear's sparsity_) beside the weights it hands out. These are properties of released versions, named above the
tables, that their documentation allows; scikit-learn promises no independence of the cut.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from onlinear import OnlineClassifier
from options import parser_of
from pages import table
from throughput import text_like
from tools import versions

CUTS = (1, 100, 5000)
L1 = 1e-6
CLASSES = [-1.0, 1.0]


def ours(average: str = "none") -> Any:
    return OnlineClassifier("hinge", solver="comid,eta=0.5", penalty=f"l1,l1={L1}", average=average, shuffle=False)


def peer(average: bool = False, penalty: str = "l1", verbose: int = 0) -> Any:
    steps = {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.5}
    return SGDClassifier(penalty=penalty, alpha=L1, shuffle=False, average=average, verbose=verbose, **steps)


def learned(make: Callable[[], Any], X: sp.csr_matrix, y: np.ndarray, rows: int) -> np.ndarray:
    """The coefficients after calls of ``rows`` rows each."""
    model = make()
    for first in range(0, len(y), rows):
        model.partial_fit(X[first : first + rows], y[first : first + rows], classes=CLASSES)
    return model.coef_.ravel()


def one_row_cost(make: Callable[[], Any], d: int) -> float:
    """Median microseconds of a partial_fit of one row with 50 non-zeros."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(
        (rng.standard_normal(2500), np.sort(rng.choice(d, (50, 50)), axis=1).ravel(), np.arange(0, 2501, 50)), shape=(50, d)
    )
    X.sum_duplicates()
    model, taken = make(), []
    model.partial_fit(X, np.where(rng.random(50) < 0.5, -1.0, 1.0), classes=CLASSES)
    for i in range(50):
        row = X[i]
        start = time.perf_counter()
        model.partial_fit(row, [1.0])
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e6


class Report(NamedTuple):
    """What a tool says of its weights, and the weights it hands out; ``norm`` is None where it says nothing of it."""

    norm: float | None
    norm_of_coef: float
    nonzeros: int
    nonzeros_of_coef: int


def reports(X: sp.csr_matrix, y: np.ndarray) -> dict[str, Report]:
    """After one pass of each."""
    model = ours().partial_fit(X, y, classes=CLASSES)
    held = round((1.0 - model.sparsity_last_) * model.coef_.size)
    found = {"onlinear, COMID": Report(None, norm_of(model), held, int(np.count_nonzero(model.coef_)))}
    for penalty in ("l1", "elasticnet", "l2"):
        model, said = peer(penalty=penalty, verbose=1), io.StringIO()
        with redirect_stdout(said):
            model.partial_fit(X, y, classes=CLASSES)
        words = re.search(r"Norm: ([\d.]+), NNZs: (\d+)", said.getvalue())
        if words is None:
            raise RuntimeError(f"this scikit-learn reports no norm: {said.getvalue()!r}.")
        count = int(np.count_nonzero(model.coef_))
        found[f"scikit-learn SGDClassifier({penalty})"] = Report(float(words[1]), norm_of(model), int(words[2]), count)
    return found


def norm_of(model: Any) -> float:
    return float(np.linalg.norm(model.coef_))


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    X, y = text_like(args.rows)
    tools: dict[str, Callable[[], Any]] = {"onlinear, COMID": ours, "scikit-learn SGDClassifier(l1)": peer}
    kept: dict[str, Any] = {}
    lines = []
    for name, make in tools.items():
        whole = learned(make, X, y, args.rows)
        for rows in CUTS:
            other = learned(make, X, y, rows)
            moved = int(np.sum((whole == 0.0) != (other == 0.0)))
            gap = float(np.abs(whole - other).max())
            kept[f"{name}, {rows}"] = gap, moved, int(np.count_nonzero(whole)), int(np.count_nonzero(other))
            lines.append(
                [name, f"{rows:,}", f"{gap:.1e}", f"{np.count_nonzero(whole):,}", f"{np.count_nonzero(other):,}", f"{moved:,}"]
            )
    print(f"{versions()}.\n")
    head = [
        "tool",
        "rows per call",
        "largest difference",
        "non-zeros, one call",
        "non-zeros, so cut",
        "change between zero and not",
    ]
    print(table(head, lines))
    sizes = (10**4, 10**5, 10**6)
    costs = {name: [one_row_cost(make, d) for d in sizes] for name, make in tools.items()}
    kept["one row, microseconds"] = costs
    print()
    rows = [[name, *[f"{cost:,.0f}" for cost in found]] for name, found in costs.items()]
    print(table(["partial_fit of one row, microseconds", *[f"{d:,} features" for d in sizes]], rows))
    averages = {
        "onlinear, COMID, weighted-t1": lambda: ours("weighted-t1"),
        "scikit-learn SGDClassifier(l1, average=True)": lambda: peer(True),
    }
    print()
    found = [[name, f"{np.count_nonzero(learned(make, X, y, args.rows)):,}"] for name, make in averages.items()]
    print(table([f"average over {args.rows:,} rows", "non-zeros of coef_"], found))
    said = reports(X, y)
    kept["reports"] = {name: one._asdict() for name, one in said.items()}
    print()
    rows = [
        [
            name,
            "" if one.norm is None else f"{one.norm:.2f}",
            f"{one.norm_of_coef:.2f}",
            f"{one.nonzeros:,}",
            f"{one.nonzeros_of_coef:,}",
        ]
        for name, one in said.items()
    ]
    print(table(["after one pass", "norm reported", "norm of coef_", "non-zeros reported", "non-zeros of coef_"], rows))
    if args.json:
        args.json.write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
