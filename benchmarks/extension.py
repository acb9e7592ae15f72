"""A user's own loss and penalty inside the compiled loop, beside the built-in ones: time as a ratio, alternating, medians.

python benchmarks/extension.py [--rows 100000] [--repeats 9] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import time
from math import copysign
from typing import NamedTuple

import numpy as np

from onlinear import Learner
from options import parser_of
from throughput import text_like


class MyHinge(NamedTuple):
    margin: float = 1.0
    labels = "signs"

    def value(self, s: float, y: float) -> float:
        return max(0.0, self.margin - y * s)

    def slope(self, s: float, y: float) -> float:
        return -y if y * s < self.margin else 0.0

    def theta(self, a: float, c: float, y: float) -> float:
        return -y * min(max((self.margin - y * a) / c, 0.0), 1.0) if c > 0.0 else self.slope(a, y)


class MyL1(NamedTuple):
    k: float = 1e-6

    def value(self, w: np.ndarray) -> float:
        return self.k * float(np.sum(np.abs(w)))

    def prox(self, v: float, eta: float) -> float:
        return v - min(max(v, -eta * self.k), eta * self.k)

    def tick(self, clock: tuple[float, float], eta: float) -> tuple[float, float]:
        return clock[0], clock[1] + self.k * eta

    def weight(self, v: float, clock: tuple[float, float]) -> float:
        return v - min(max(v, -clock[1]), clock[1])

    def potential(self, w: float, clock: tuple[float, float]) -> float:
        return w + copysign(clock[1], w) if w != 0.0 else 0.0


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    X, y = text_like(args.rows)
    cases = {
        "built in": ("hinge", "l1,l1=1e-6"),
        "own loss": (MyHinge(), "l1,l1=1e-6"),
        "own penalty": ("hinge", MyL1()),
        "own loss and penalty": (MyHinge(), MyL1()),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    weights = {}
    for _ in range(args.repeats + 1):
        for name, (loss, penalty) in cases.items():
            learner = Learner("comid", loss, penalty, n_features=X.shape[1])
            start = time.perf_counter()
            learner.learn(X, y)
            times[name].append(time.perf_counter() - start)
            weights[name] = learner.weights()
    base = np.array(times["built in"][1:])
    print("| COMID | time / built in | largest difference of a weight |")
    print("|---|---:|---:|")
    apart = {name: float(np.abs(weights[name] - weights["built in"]).max()) for name in cases}
    for name in cases:
        print(f"| {name} | {np.median(np.array(times[name][1:]) / base):.2f} | {apart[name]:.1e} |")
    if args.json:
        args.json.write_text(json.dumps({"seconds": {name: times[name][1:] for name in cases}, "differences": apart}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
