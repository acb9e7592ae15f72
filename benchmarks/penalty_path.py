"""A path of 32 penalties over a real text set, learned in one pass: losses, errors and non-zeros, as a plot and a table.

    python benchmarks/penalty_path.py --data FOLDER [--write docs/path.md] [--json FILE]

Prints the table; with --write it goes into the page, and the plot to docs/plots/ beside it. The test rows are looked at once,
after the choice, to see whether it was right.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from onlinear import OnlineClassifier, PenaltyPath
from options import parser_of
from pages import fill

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "onlinear"
from matplotlib import pyplot as plt  # noqa: E402

L1 = np.geomspace(1e-7, 1e-2, 32)


def main() -> None:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    (X, y), (X_test, y_test) = (rows(args.data / "rcv1-ccat" / name) for name in ("ccat.svm.xz", "ccat.t.svm.xz"))
    path = PenaltyPath(OnlineClassifier(random_state=0), [f"l1,l1={l1:g}" for l1 in L1]).fit(X, y)
    test = np.mean(path.predict_all(X_test) != y_test, axis=1)
    text = table(path, test, X.shape)
    print(text)
    if args.write:
        draw(path, test, args.write.parent / "plots" / "penalty-path.svg")
        fill(args.write, "path", text)
    if args.json:
        found = {"loss": path.losses_, "error": path.errors_, "test error": test, "non-zeros": path.nonzeros_}
        args.json.write_text(json.dumps({"l1": L1.tolist(), **{name: values.tolist() for name, values in found.items()}}))


def rows(path: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows and labels of a packed file."""
    with lzma.open(path) as file:
        return load_svmlight_file(file, n_features=47_236)


def table(path: PenaltyPath, test: np.ndarray, shape: tuple[int, int]) -> str:
    """Every fourth penalty, the chosen one, and the one that would have been best on the test rows."""
    best, oracle = path.best_index_, int(np.argmin(test))
    near = int(np.flatnonzero(path.losses_ <= 1.01 * path.losses_[best])[-1])
    lines = [
        f"rcv1-ccat, {shape[0]:,} rows, {shape[1]:,} columns; `OnlineClassifier()` (logistic loss), 32 values of l1, one pass.",
        "",
        "| l1 | progressive loss | progressive error, % | test error, % | non-zeros | |",
        "|---:|---:|---:|---:|---:|---|",
    ]
    for k in sorted({*range(0, len(L1), 4), best, oracle, near, len(L1) - 1}):
        notes = {"smallest progressive loss": best, "largest l1 within 1 % of it": near, "smallest test error": oracle}
        note = ", ".join(name for name, place in notes.items() if place == k)
        figures = f"{path.losses_[k]:.4f} | {100 * path.errors_[k]:.2f} | {100 * test[k]:.2f} | {path.nonzeros_[k]:,}"
        lines.append(f"| {L1[k]:.2g} | {figures} | {note} |")
    return "\n".join(lines)


def draw(path: PenaltyPath, test: np.ndarray, target: Path) -> None:
    """Errors above, non-zeros below, over l1."""
    figure, (errors, counts) = plt.subplots(2, 1, sharex=True, figsize=(7, 6), layout="constrained")
    errors.plot(L1, 100 * path.errors_, label="progressive error (rows not seen before)")
    errors.plot(L1, 100 * test, label="test error (after the pass)")
    errors.set_ylabel("error, %")
    losses = errors.twinx()
    losses.plot(L1, path.losses_, color="black", label="progressive loss (right)")
    losses.set_ylabel("mean logistic loss")
    lines = [*errors.get_lines(), *losses.get_lines()]
    counts.plot(L1, path.nonzeros_, color="tab:red")
    counts.set(xscale="log", yscale="log", xlabel="l1", ylabel="non-zero weights")
    for axis in (errors, counts):
        axis.axvline(L1[path.best_index_], color="grey", linestyle=":")
    errors.legend(lines, [line.get_label() for line in lines], loc="upper left")
    target.parent.mkdir(exist_ok=True)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
