"""What a call with one row as a dict costs, beside River's, in microseconds: ten numbers by name, or ten words of 2,000, the
least of forty runs; and words of a stream that brings new ones to its end, the least of three medians.

python benchmarks/one_by_one.py [--write docs/one-by-one.md] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from river import linear_model, multiclass

from onlinear import OnlineClassifier, OnlineRegressor
from options import parser_of
from pages import fill, machine

ROWS, NAMES, RUNS = 2000, 10, 40
WORDS, FRESH = 2000, 50  # words, the k-th as often as 1/k says; rows of words that no row had before
STREAM, VOCABULARY, STREAMS = 100_000, 1_000_000, 3  # rows of a stream of so many words, and how often it is learned
PIECE, ENDS = 500, 10_000  # rows between models in turns; those at either end that are told of


def cost(call: Callable[[dict[str, float]], Any], rows: list[dict[str, float]]) -> float:
    """Microseconds of a call."""
    began = time.perf_counter()
    for row in rows:
        call(row)
    return 1e6 * (time.perf_counter() - began) / len(rows)


def two(row: dict[str, float]) -> bool:
    return row["x0"] > 0.0


def five(row: dict[str, float]) -> int:
    return min(4, int(abs(3.0 * row["x0"])))


def ten(row: dict[str, float]) -> int:
    return len(next(iter(row))) * 7 % 10


def odd(row: dict[str, float]) -> bool:
    return len(next(iter(row))) % 2 > 0


def number(row: dict[str, float]) -> float:
    return row["x0"]


def first(model: Any, row: dict[str, float], target: Callable[[dict[str, float]], Any]) -> None:
    """Learn the first row; ours is told the classes."""
    known = {five: range(5), ten: range(10), odd: [False, True]}
    more = {"classes": known[target]} if target in known and isinstance(model, OnlineClassifier) else {}
    model.learn_one(row, target(row), **more)


def measure(model: Any, rows: list[dict[str, float]], target: Callable[[dict[str, float]], Any], run: int = 0) -> list[float]:
    """The cost of each call; infinite where there is none."""

    def both(row: dict[str, float]) -> None:
        model.predict_one(row)
        model.learn_one(row, target(row))

    learned = cost(lambda row: model.learn_one(row, target(row)), rows[:300])
    turns = cost(both, rows[:300])
    for row in rows[:50]:
        model.predict_one(row)  # the weights are listed once
    chance = inf if target is number else cost(model.predict_proba_one, rows)
    return [cost(model.predict_one, rows), chance, learned, turns]


def measure_words(model: Any, rows: list[dict[str, float]], target: Callable[[dict[str, float]], Any], run: int) -> list[float]:
    """The cost of each call, and of learning rows whose words no row had before."""
    predicted, _, learned, turns = measure(model, rows, target)
    fresh = [{f"{run}-{i}-{j}": 1.0 for j in range(NAMES)} for i in range(FRESH)]
    return [predicted, learned, turns, cost(lambda row: model.learn_one(row, target(row)), fresh)]


def table(heads: list[str], found: dict[str, list[float]]) -> list[str]:
    """Microseconds, a row for each model."""
    lines = [f"| microseconds | {' | '.join(heads)} |", f"|---{'|---:' * len(heads)}|"]
    for name, values in found.items():
        cells = " | ".join("-" if value == inf else f"{value:.1f}" for value in values)
        lines.append(f"| {name} | {cells} |")
    return lines


Models = list[tuple[str, Any, Callable[[dict[str, float]], Any]]]


def least(models: Models, rows: list[dict[str, float]], measured: Callable[..., list[float]]) -> dict[str, list[float]]:
    """The least costs of each model, measured in turns: the speed of a machine that others use changes by the second."""
    for _, model, target in models:
        first(model, rows[0], target)
        for row in rows:
            model.predict_one(row)
            model.learn_one(row, target(row))
    found = {name: [inf] * 4 for name, _, _ in models}
    for run in range(RUNS):
        for name, model, target in models:
            found[name] = list(map(min, found[name], measured(model, rows, target, run)))
    return found


def draw_stream() -> list[dict[str, float]]:
    """Rows of ten to twenty words, the k-th of all drawn as often as 1/k says."""
    draw = np.random.default_rng(2)
    ends = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
    lengths = draw.integers(NAMES, 2 * NAMES + 1, STREAM)
    words = iter(np.searchsorted(ends, draw.uniform(0.0, ends[-1], lengths.sum())).tolist())
    return [{f"w{next(words)}": 1.0 for _ in range(length)} for length in lengths.tolist()]


Makes = list[tuple[str, Callable[[], Any], Callable[[dict[str, float]], Any]]]


def medians(makes: Makes, rows: list[dict[str, float]], asks: bool) -> dict[str, list[float]]:
    """The median costs of a row, of those at either end of a stream, which all models learn in turns; ``asks``: whether each is
    predicted before."""
    models = [(name, make(), target) for name, make, target in makes]
    found: dict[str, list[float]] = {name: [] for name, _, _ in models}
    for _, model, target in models:
        first(model, {"first": 1.0}, target)
    for start in range(0, len(rows), PIECE):
        for name, model, target in models:

            def use(row: dict[str, float], model: Any = model, target: Callable[..., Any] = target) -> None:
                if asks:
                    model.predict_one(row)
                model.learn_one(row, target(row))

            found[name].append(cost(use, rows[start : start + PIECE]))
    several = ENDS // PIECE
    return {name: [float(np.median(costs[:several])), float(np.median(costs[-several:]))] for name, costs in found.items()}


def least_of_stream(makes: Makes) -> dict[str, list[float]]:
    """The least of the medians of several runs: of learning, and of a prediction and the learning of its row."""
    rows, found = draw_stream(), {name: [inf] * 4 for name, _, _ in makes}
    for _ in range(STREAMS):
        learned, turns = medians(makes, rows, False), medians(makes, rows, True)
        found = {name: list(map(min, known, learned[name] + turns[name])) for name, known in found.items()}
    return found


def main() -> int:
    args = parser_of(__doc__, page=True).parse_args()
    draw = np.random.default_rng(0).normal(size=(ROWS, NAMES))
    rows = [{f"x{j}": float(value) for j, value in enumerate(row)} for row in draw]
    models: Models = [
        ('`OnlineClassifier(solver="ftrl", average="none")`', OnlineClassifier(solver="ftrl", average="none"), two),
        ("`OnlineClassifier()`", OnlineClassifier(), two),
        ("River, `LogisticRegression`", linear_model.LogisticRegression(), two),
        ('`OnlineClassifier("logistic")`, 5 classes', OnlineClassifier("logistic"), five),
        ("`OnlineClassifier()`, 5 classes", OnlineClassifier(), five),
        ("River, `OneVsRestClassifier`, 5 classes", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), five),
        ("River, `SoftmaxRegression`, 5 classes", linear_model.SoftmaxRegression(), five),
        ('`OnlineRegressor(solver="ftrl", average="none")`', OnlineRegressor(solver="ftrl", average="none"), number),
        ("`OnlineRegressor()`", OnlineRegressor(), number),
        ("River, `LinearRegression`", linear_model.LinearRegression(), number),
    ]
    draw = np.random.default_rng(1)
    shares = 1.0 / np.arange(1, WORDS + 1)
    chosen = (draw.choice(WORDS, NAMES, replace=False, p=shares / shares.sum()) for _ in range(ROWS))
    texts = [{f"w{word}": 1.0 for word in row} for row in chosen]
    of_words: Models = [
        ("`OnlineClassifier()`", OnlineClassifier(), odd),
        ("River, `LogisticRegression`", linear_model.LogisticRegression(), odd),
        ("`OnlineClassifier()`, 10 classes", OnlineClassifier(), ten),
        ("River, `OneVsRestClassifier`, 10 classes", multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), ten),
    ]
    found = least(models, rows, measure)
    found_of_words = least(of_words, texts, measure_words)
    several = [("`OnlineClassifier()`", OnlineClassifier, odd), ("`OnlineClassifier()`, 10 classes", OnlineClassifier, ten)]
    rivals = [
        ("River, `LogisticRegression`", linear_model.LogisticRegression, odd),
        (
            "River, `OneVsRestClassifier`, 10 classes",
            lambda: multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
            ten,
        ),
    ]
    found_of_stream = least_of_stream([several[0], rivals[0], several[1], rivals[1]])
    lines = table(["predict", "probabilities", "learn", "predict, then learn"], found)
    lines += ["", "Rows of ten words of 2,000:", ""]
    lines += table(["predict", "learn", "predict, then learn", "learn words that are all new"], found_of_words)
    lines += [
        "",
        f"Rows of 10 to 20 words of {VOCABULARY:,}, of which nearly each brings new ones: at the first {ENDS:,} rows, and at",
    ]
    lines += [f"the last of {STREAM:,}:", ""]
    lines += table(["learn, first", "last", "predict, then learn, first", "last"], found_of_stream)
    text = "\n".join([*lines, "", f"({machine()}.)"])
    print(text)
    if args.write:
        fill(args.write, "one-by-one", text)
    if args.json:
        both = {"numbers": found, "words": found_of_words, "stream": found_of_stream}
        plain = {
            kind: {name: [None if v == inf else v for v in row] for name, row in rows.items()} for kind, rows in both.items()
        }
        args.json.write_text(json.dumps(plain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
