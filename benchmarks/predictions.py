"""Predictions of two to a hundred classes beside scikit-learn's, just after a row was learned and later.

    python benchmarks/predictions.py [--repeats 7] [--json FILE]

20,000 sparse rows of 40 of 20,000 columns, and 20,000 dense rows of 50. Both libraries give probabilities, of all rows and of
ten, by models of the first 4,000 rows. "After learning" is the first prediction since a row was learned, for which weights are
read anew; "again" is one after thirty more, when all weights have been read. Runs alternate; medians, in milliseconds.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from onlinear import OnlineClassifier
from options import parser_of
from pages import table

ROWS, LEARNED, FEW, MORE = 20_000, 4_000, 10, 30
CLASSES = (2, 3, 10, 20, 100)
HEAD = ["rows", "classes"] + [
    f"{what}: {who}" for what in ("all", "ten") for who in ("after learning", "again", "scikit-learn", "again, times that")
]


def sets() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, 20_000), density=0.002, format="csr", rng=rng)
    yield "sparse", sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    yield "dense", rng.normal(size=(ROWS, 50))


def milliseconds(model: Any, X: Any) -> float:
    start = time.perf_counter()
    model.predict_proba(X)
    return 1e3 * (time.perf_counter() - start)


def row(name: str, X: Any, count: int, repeats: int) -> list[str]:
    y = np.abs(X @ np.random.default_rng(count).normal(size=(X.shape[1], count))).argmax(axis=1)
    ours = OnlineClassifier(random_state=0).fit(X[:LEARNED], y[:LEARNED])
    theirs = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0).fit(X[:LEARNED], y[:LEARNED])
    line = [name, str(count)]
    for part in (X, X[:FEW]):
        found = []
        for i in range(repeats + 1):
            ours.partial_fit(X[i : i + 1], y[i : i + 1])
            after = milliseconds(ours, part)
            for _ in range(MORE):
                ours.predict_proba(X[:FEW])
            found.append((after, milliseconds(ours, part), milliseconds(theirs, part)))
        after, again, peer = np.median(found[1:], axis=0)
        line += [f"{after:.3g}", f"{again:.3g}", f"{peer:.3g}", f"{again / peer:.2g}"]
    return line


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row(name, X, count, args.repeats) for name, X in sets() for count in CLASSES]
    print(table(HEAD, rows))
    if args.json:
        args.json.write_text(json.dumps([dict(zip(HEAD, line, strict=True)) for line in rows]))


if __name__ == "__main__":
    main()
