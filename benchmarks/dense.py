"""Dense rows and several classes: MNIST, even against odd and one against the rest, beside scikit-learn.

    python benchmarks/dense.py --data FOLDER [--repeats 5] [--json FILE]

Times are of the thread, as others may use the machine. No pass is faster than reading its numbers once, as ``numpy.sum`` does.
The table shows the fraction that is reached, for MNIST, of which four fifths are zeros, and for 100,000 rows of 100 numbers
without a zero.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import SGDClassifier

from onlinear import Learner, OnlineClassifier
from options import parser_of
from quality import images


def main() -> int:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    X, digits = images(args.data / "mnist", "train")
    dense, y = X.toarray(), np.where(digits % 2 == 0, 1.0, -1.0)
    each = np.where(digits[:, None] == np.arange(10), 1.0, -1.0)

    def ours(rows: object, penalty: str) -> Callable[[], object]:
        return lambda: Learner("comid", "hinge", penalty, n_features=784).learn(rows, y)

    def peer(penalty: str, epochs: int) -> Callable[[], object]:
        model = SGDClassifier(penalty=penalty, alpha=1e-6, max_iter=epochs, tol=None, shuffle=False)
        return lambda: model.fit(dense, y)

    plain = {"scale": "none", "average": "none", "fit_intercept": False}
    five = OnlineClassifier("hinge", penalty="l2,l2=1e-6", solver="comid", passes=5, shuffle=False, **plain)
    full = np.random.default_rng(2).standard_normal((100_000, 100))
    sides = np.where(full[:, 0] > 0.0, 1.0, -1.0)
    runs = {
        "L1, dense": ours(dense, "l1,l1=1e-6"),
        "L2, dense": ours(dense, "l2,l2=1e-6"),
        "L1, CSR": ours(X, "l1,l1=1e-6"),
        "five epochs, L2, dense": lambda: five.fit(dense, y),
        "ten classes, L1, CSR": lambda: Learner("comid", "hinge", "l1,l1=1e-6", n_features=784, n_outputs=10).learn(X, each),
        "scikit-learn L1": peer("l1", 1),
        "scikit-learn L2": peer("l2", 1),
        "scikit-learn five epochs, L2": peer("l2", 5),
        "MNIST read once": dense.sum,
        "SGD, L2, without zeros": lambda: Learner("sgd", "hinge", "l2=1e-5", n_features=100).learn(full, sides),
        "without zeros, read once": full.sum,
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(args.repeats + 1):
        for name, run in runs.items():
            start = time.thread_time()
            run()
            if repeat:
                times[name].append(time.thread_time() - start)
    middle = {name: float(np.median(taken)) for name, taken in times.items()}
    print("| MNIST, 60,000 rows | milliseconds | ratio |\n|---|---:|---|")
    beside = {
        "L1, dense": ("scikit-learn L1", "scikit-learn dense L1 takes {:.1f} times as long"),
        "L2, dense": ("scikit-learn L2", "scikit-learn dense L2 takes {:.1f} times as long"),
        "five epochs, L2, dense": ("scikit-learn five epochs, L2", "scikit-learn takes {:.1f} times as long"),
    }
    whole = {"MNIST read once": "L2, dense", "without zeros, read once": "SGD, L2, without zeros"}
    for name, seconds in middle.items():
        ratio = ""
        if name in beside:
            ratio = beside[name][1].format(middle[beside[name][0]] / seconds)
        elif name in whole:
            ratio = f"{seconds / middle[whole[name]]:.2f} of {whole[name]}"
        elif name.startswith("ten"):
            ratio = f"{seconds / middle['L1, CSR']:.1f} times one class"
        print(f"| {name} | {1e3 * seconds:.3g} | {ratio} |")
    same = Learner("comid", "hinge", "l1,l1=1e-6", n_features=784)
    twin = Learner("comid", "hinge", "l1,l1=1e-6", n_features=784)
    assert np.array_equal(same.learn(dense, y).weights(), twin.learn(X, y).weights())
    if args.json:
        args.json.write_text(json.dumps({"seconds": times}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
