"""Several classes: the softmax loss beside the logistic loss of one class against the rest, as the estimators learn them.

    python benchmarks/classes.py [--data FOLDER] [--orders 5] [--json FILE]

Progressive log loss and error of ``predict_proba``: the rows come in blocks, each predicted before it is learned; a block is a
twentieth of the rows before it. The text has 20 classes: words drawn from a mixture of a topic's words and everybody's. MNIST
needs ``--data``. Times are the least of the orders', of one pass in one call. The step was chosen on
generated texts and dense columns, and tables of KEEL.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine

from defaults import mnist
from onlinear import OnlineClassifier
from options import parser_of
from pages import table

HEAD = [
    "set",
    "rows",
    "classes",
    *("log loss, softmax", "one against the rest", "difference"),
    "error, %",
    "the rest, %",
    "time",
]
LEAST = 1e-12  # of a probability


def words(rows: int = 6000, columns: int = 5000, classes: int = 20) -> tuple[Any, np.ndarray]:
    """Counts of words, and the topics of the rows."""
    rng = np.random.default_rng(0)
    common = rng.dirichlet(np.full(columns, 0.02))
    topics = [0.6 * common + 0.4 * rng.dirichlet(np.full(columns, 0.02)) for _ in range(classes)]
    y = rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 3)))
    counts = [np.bincount(rng.choice(columns, rng.poisson(40) + 3, p=topics[k]), minlength=columns) for k in y]
    return sparse.csr_array(np.array(counts, dtype=np.float64)), y


def sets(data: Path | None) -> dict[str, tuple[Any, np.ndarray]]:
    found = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "text": words(),
    }
    if data is not None:
        split = mnist(data)
        found["mnist"] = sparse.csr_array(split.X[:20000]), split.y[:20000]
    return found


def progressive(model: OnlineClassifier, X: Any, y: np.ndarray) -> tuple[float, float]:
    """Mean log loss and error of rows predicted before they are learned."""
    classes, loss, wrong, first = np.unique(y), 0.0, 0, 1
    model.partial_fit(X[:1], y[:1], classes=classes)
    while first < len(y):
        part = slice(first, min(len(y), first + max(1, first // 20)))
        p, own = model.predict_proba(X[part]), np.searchsorted(classes, y[part])
        loss -= float(np.log(np.maximum(p[np.arange(len(own)), own], LEAST)).sum())
        wrong += int(np.sum(p.argmax(axis=1) != own))
        model.partial_fit(X[part], y[part])
        first = part.stop
    return loss / (len(y) - 1), wrong / (len(y) - 1)


def seconds(loss: str, X: Any, y: np.ndarray) -> float:
    model, start = OnlineClassifier(loss), time.process_time()
    model.partial_fit(X, y, classes=np.unique(y))
    return time.process_time() - start


def row(name: str, X: Any, y: np.ndarray, orders: int) -> list[str]:
    found, times = np.empty((orders, 2, 2)), np.empty((orders, 2))
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(len(y))
        for k, loss in enumerate(("softmax", "logistic")):
            found[seed, k] = progressive(OnlineClassifier(loss), X[order], y[order])
            times[seed, k] = seconds(loss, X[order], y[order])
    (one, other), (wrong, wrong_other) = found[:, :, 0].T, found[:, :, 1].T
    error = np.std(one - other, ddof=1) / np.sqrt(orders)
    ratio = times[:, 0].min() / times[:, 1].min()
    losses = f"**{one.mean():.3f}**", f"{other.mean():.3f}", f"{np.mean(one - other):+.3f} +- {error:.3f}"
    errors = f"{100 * wrong.mean():.1f}", f"{100 * wrong_other.mean():.1f}"
    return [name, str(len(y)), str(len(np.unique(y))), *losses, *errors, f"{ratio:.1f}x"]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--orders", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row(name, X, y, args.orders) for name, (X, y) in sets(args.data).items()]
    print(table(HEAD, rows))
    if args.json:
        args.json.write_text(json.dumps([dict(zip(HEAD, line, strict=True)) for line in rows]))


if __name__ == "__main__":
    main()
