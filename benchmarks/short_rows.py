"""Fits of short rows, and of few rows, beside scikit-learn: what a row and a fit cost where there is little to learn.

    python benchmarks/short_rows.py [--repeats 7] [--json FILE]

100,000 rows of a few columns, dense or sparse (of 20,000), in one pass; and dense tables of few rows, each library as it comes:
here one pass, scikit-learn until its loss no longer falls. Both draw a random order. Times are of the thread, as others may use
the machine: the least milliseconds of runs in turns.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier, SGDRegressor

from onlinear import OnlineClassifier, OnlineRegressor
from options import parser_of
from pages import table

ROWS, WIDE = 100_000, 20_000
ONCE = {"max_iter": 1, "tol": None}
SHORT = {
    "classes": lambda: OnlineClassifier(),
    "classes, l1": lambda: OnlineClassifier(penalty="l1=1e-4"),
    "0.1's default": lambda: OnlineClassifier(solver="fiol,eta=20", scale="rms", average="weighted-t1"),
    "SGDClassifier": lambda: SGDClassifier(loss="log_loss", **ONCE),
    "with averages": lambda: SGDClassifier(loss="log_loss", average=True, **ONCE),
    "numbers": lambda: OnlineRegressor(),
    "SGDRegressor": lambda: SGDRegressor(**ONCE),
    "its averages": lambda: SGDRegressor(average=True, **ONCE),
}
FEW = {
    "classes": lambda: OnlineClassifier(),
    "SGDClassifier": lambda: SGDClassifier(loss="log_loss"),
    "numbers": lambda: OnlineRegressor(),
    "SGDRegressor": lambda: SGDRegressor(),
}
NUMBERS = ("numbers", "SGDRegressor", "its averages")


def short_rows() -> Iterator[tuple[str, Any]]:
    """Rows of few numbers."""
    rng = np.random.default_rng(0)
    for columns in (2, 5, 10, 30):
        yield f"dense, {columns} columns", rng.normal(size=(ROWS, columns))
    for entries in (1, 3, 8, 30):
        columns = rng.integers(0, WIDE, (ROWS, entries), dtype=np.int32)
        starts = np.arange(0, ROWS * entries + 1, entries, dtype=np.int32)
        X = sp.csr_matrix((np.ones(ROWS * entries), columns.ravel(), starts), shape=(ROWS, WIDE))
        X.sum_duplicates()
        yield f"sparse, {entries} non-zero{'s' if entries > 1 else ''}", X


def few_rows() -> Iterator[tuple[str, Any]]:
    """Tables of few rows."""
    for rows in (100, 1_000, 10_000):
        yield f"{rows:,}", np.random.default_rng(0).normal(size=(rows, 5))


def milliseconds(make: Any, X: Any, y: np.ndarray) -> float:
    start = time.thread_time()
    make().fit(X, y)
    return 1e3 * (time.thread_time() - start)


def measured(name: str, X: Any, models: dict[str, Any], repeats: int) -> list[str]:
    rng = np.random.default_rng(1)
    numbers = X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0])
    classes = (numbers > 0.0).astype(int)
    least = dict.fromkeys(models, np.inf)
    for _ in range(repeats + 1):
        for who, make in models.items():
            least[who] = min(least[who], milliseconds(make, X, numbers if who in NUMBERS else classes))
    return [name, *(f"{found:.3g}" for found in least.values())]


TABLES = (
    (f"{ROWS:,} rows in one pass:", SHORT, short_rows),
    ("Tables of five columns, each library as it comes:", FEW, few_rows),
)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for title, models, sets in TABLES:
        head = ["rows", *models]
        rows = [measured(name, X, models, args.repeats) for name, X in sets()]
        print(f"{title}\n\n{table(head, rows)}\n")
        found += [dict(zip(head, row, strict=True)) for row in rows]
    if args.json:
        args.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
