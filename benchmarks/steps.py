"""How much the choice of the step size matters: the loss over nine decades of steps, every tool, every set, raw and scaled.

    python benchmarks/steps.py --data FOLDER [--rows 10000] [--json FILE]   (with FILE, a run can be continued)

The progressive log loss (squared loss over the variance of y for numbers) of each tool's predictor: blocks of fifty rows are
scored, then learned, in seeded random order, one pass. "Scaled beforehand": each column divided by the root mean square of its
non-zero entries over all these rows, which a stream cannot know. "Tolerance": decades of step size whose loss is within 10 % of
the best loss that any tool reaches with any step on that set. "Best steps": the range over the sets of each tool's best step.
"Worst": the largest loss of any step and set over that of predicting the class shares (the mean).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from defaults import CLASSES, NUMBERS, load, shares_loss
from options import parser_of
from pages import table
from peers import scaled
from tools import Onlinear, River, ScikitLearn, Tool, VowpalWabbit, log_loss, versions

PER_DECADE = 2
STEPS = 10.0 ** (np.arange(-4 * PER_DECADE, 5 * PER_DECADE + 1) / PER_DECADE)
BLOCK = 50
RIVER_MOST = 100  # features: its dictionaries take minutes per step beyond

Make = Callable[[np.ndarray | None, float], Tool]


def ours(classes: np.ndarray | None, step: float) -> Tool:
    return Onlinear(classes, eta=step)


def mixture(classes: np.ndarray | None, step: float) -> Tool:
    return Onlinear(classes, solver=f"mixture,eta={step!r}")


def first(classes: np.ndarray | None, step: float) -> Tool:
    scale = "max-abs" if classes is None else "rms"
    return Onlinear(classes, solver=f"implicit-sgd,eta={step!r}", scale=scale, average="weighted-t1")


def sgd(classes: np.ndarray | None, step: float) -> Tool:
    loss = "squared_error" if classes is None else "log_loss"
    return ScikitLearn(classes, loss=loss, learning_rate="invscaling", eta0=step, power_t=0.5, alpha=0.0)


TOOLS: dict[str, tuple[Make, str]] = {
    "onlinear, as it comes but for the step": (ours, "raw"),
    "onlinear, the same, scaled beforehand": (ours, "rms"),
    "onlinear, mixture": (mixture, "raw"),
    "onlinear, release 0.1 but for the step": (first, "raw"),
    "Vowpal Wabbit, its default (adaptive, normalised, invariant)": (lambda c, step: VowpalWabbit(c, f"-l {step!r}"), "raw"),
    "Vowpal Wabbit, its default, scaled beforehand": (lambda c, step: VowpalWabbit(c, f"-l {step!r}"), "rms"),
    "Vowpal Wabbit, --sgd": (lambda c, step: VowpalWabbit(c, f"--sgd -l {step!r}"), "raw"),
    "Vowpal Wabbit, --sgd, scaled beforehand": (lambda c, step: VowpalWabbit(c, f"--sgd -l {step!r}"), "rms"),
    "scikit-learn SGD, raw": (sgd, "raw"),
    "scikit-learn SGD, scaled beforehand": (sgd, "rms"),
    "River SGD, raw": (River, "raw"),
    "River SGD, scaled beforehand": (River, "rms"),
}


def progressive(tool: Tool, X: sp.csr_matrix, y: np.ndarray) -> float:
    """The mean loss of rows scored before they were learned; infinite where the tool diverged."""
    total = np.zeros(len(y))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            for first in range(0, len(y), BLOCK):
                part = slice(first, first + BLOCK)
                scores = tool.scores(X[part]) if first else np.zeros(len(y[part]))
                total[part] = log_loss(scores, y[part]) if tool.classes is not None else (scores - y[part]) ** 2
                tool.learn(X[part], y[part])
    except ArithmeticError:
        return np.inf
    loss = float(np.mean(total))
    return loss if np.isfinite(loss) else np.inf


def curve(make: Make, classes: np.ndarray | None, X: sp.csr_matrix, y: np.ndarray) -> np.ndarray:
    """The loss at every step."""
    return np.array([progressive(make(classes, float(step)), X, y) for step in STEPS])


def tolerance(losses: np.ndarray, best: float) -> float:
    """Decades whose loss is within 10 % of ``best``: the longest run of steps of the grid."""
    longest = run = 0
    for good in losses <= 1.1 * best:
        run = run + 1 if good else 0
        longest = max(longest, run)
    return max(longest - 1, 0) / PER_DECADE + (0.5 / PER_DECADE if longest == 1 else 0.0)


def keep(path: Path, curves: dict[str, dict[str, np.ndarray]], trivial: dict[str, float]) -> None:
    losses = {tool: {name: values.tolist() for name, values in found.items()} for tool, found in curves.items()}
    path.write_text(json.dumps({"steps": STEPS.tolist(), "losses": losses, "trivial": trivial}))


def kept(path: Path | None) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, float]]:
    """What an earlier run has written to this file: curves by tool and set, and the trivial losses of the sets."""
    if path is None or not path.exists():
        return {tool: {} for tool in TOOLS}, {}
    found = json.loads(path.read_text())
    curves = {tool: {name: np.array(values) for name, values in each.items()} for tool, each in found["losses"].items()}
    return curves, found["trivial"]


def main() -> int:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--sets", default=",".join([*CLASSES, *NUMBERS]))
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    curves, trivial = kept(args.json)
    for name in args.sets.split(","):
        if name in trivial:
            continue
        split = load(args.data, name, (CLASSES | NUMBERS)[name])
        split = split._replace(X=split.X[: args.rows], y=split.y[: args.rows])
        classes = None if name in NUMBERS else np.unique(split.y)
        unit = float(np.var(split.y)) if classes is None else shares_loss(split.y)
        for tool, (make, scale) in TOOLS.items():
            changed = scaled(split, scale)
            if make is River and changed.X.shape[1] > RIVER_MOST:
                continue
            curves[tool][name] = curve(make, classes, changed.X, changed.y) / unit
        trivial[name] = unit
        if args.json:
            keep(args.json, curves, trivial)
        print(f"{name} measured", file=sys.stderr, flush=True)
    print(f"{versions()}.\n")
    for kind, sets in (("classification", CLASSES), ("regression", NUMBERS)):
        names = [name for name in trivial if name in sets]
        if names:
            print(f"\nTolerance in decades, {kind}:\n")
            print("\n".join(tolerances(curves, names)))
    return 0


def tolerances(curves: dict[str, dict[str, np.ndarray]], names: list[str]) -> list[str]:
    """A line per tool."""
    best = {name: min(float(found[name].min()) for found in curves.values() if name in found) for name in names}
    lines = []
    for tool, found in curves.items():
        if not (known := [name for name in names if name in found]):
            continue
        decades = {name: tolerance(found[name], best[name]) for name in known}
        at = [float(STEPS[int(np.argmin(found[name]))]) for name in known]
        worst = max(float(found[name].max()) for name in known)
        lines.append(
            [
                tool,
                *[f"{decades[name]:g}" if name in decades else "" for name in names],
                f"{np.mean(list(decades.values())):.2f}",
                f"{min(at):.2g} to {max(at):.2g}",
                f"{worst:.2f}" if worst < 1e6 else "diverges",
            ]
        )
    return table(["tool", *names, "mean", "best steps", "worst"], lines).splitlines()


if __name__ == "__main__":
    sys.exit(main())
