"""Crosses of columns: log losses with and without, beside Vowpal Wabbit's ``-q``, and the rate of rows with crosses.

    python benchmarks/crosses.py --data FOLDER [--write docs/tutorials/crosses.md] [--json FILE]

Two logs of clicks, one pass, settings as they come: criteo-tiny in 5 random orders, a fifth held out, all pairs of its 26
categories crossed; and a generated log whose clicks depend on pairs of site and ad. Rates: rows with crosses and rows that have
as many entries without, read in turn, the least time of 7.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import log_loss

from onlinear import OnlineClassifier, QualityWarning, streams
from options import parser_of
from pages import fill

ORDERS, REPEATS = 5, 7
NUMBERS = [f"I{k}" for k in range(1, 14)]
Score = Callable[[pd.DataFrame, pd.DataFrame, bool], np.ndarray]  # rows to learn, rows to score, whether to cross


def generated(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A log of clicks, and the true probabilities: each site, each ad and each pair of them has an effect."""
    effects, draw = np.random.default_rng(0), np.random.default_rng(seed)
    sites, ads, pairs = effects.normal(0, 0.5, 100), effects.normal(0, 0.5, 100), effects.normal(0, 1.5, (100, 100))
    site, ad = (np.minimum(draw.geometric(0.05, rows) - 1, 99) for _ in range(2))
    age = draw.integers(18, 80, rows)
    chance = expit(-1.5 + sites[site] + ads[ad] + pairs[site, ad] + (age - 50) / 60)
    frame = pd.DataFrame({"site": site.astype(str), "ad": ad.astype(str), "age": age.astype(float)})
    return frame.assign(Label=(draw.random(rows) < chance).astype(int)), chance


def tables(pairs: list[tuple[str, str]]) -> Score:
    """onlinear, from data frames."""

    def score(learned: pd.DataFrame, scored: pd.DataFrame, crossed: bool) -> np.ndarray:
        stream = streams.open(learned, target="Label", missing="indicator", interactions=pairs if crossed else ())
        model = OnlineClassifier().fit(stream, classes=[0, 1])
        return model.predict_proba(scored.drop(columns="Label"))[:, 1]

    return score


def text_rows(pairs: list[tuple[str, str]]) -> Score:
    """onlinear, from Vowpal Wabbit text."""

    def score(learned: pd.DataFrame, scored: pd.DataFrame, crossed: bool) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            first, second = (as_text(frame, Path(folder) / f"{k}.vw") for k, frame in enumerate((learned, scored)))
            stream = streams.open(first, interactions=pairs if crossed else ())
            model = OnlineClassifier().fit(stream, classes=[-1, 1])
            return model.predict_proba(streams.open(second, encoding=model.encoding_))[:, 1]

    return score


def vowpal(quadratic: str) -> Score:
    """Vowpal Wabbit, with ``-q``."""

    def score(learned: pd.DataFrame, scored: pd.DataFrame, crossed: bool) -> np.ndarray:
        from vowpalwabbit import Workspace

        with tempfile.TemporaryDirectory() as folder:
            first, second = (as_text(frame, Path(folder) / f"{k}.vw") for k, frame in enumerate((learned, scored)))
            model, found = Path(folder) / "model", Path(folder) / "scores"
            asked = f"-q {quadratic}" if crossed else ""
            Workspace(f"--quiet -b 18 --loss_function logistic -d {first} -f {model} {asked}").finish()
            Workspace(f"--quiet -t -i {model} -d {second} -p {found}").finish()
            return np.asarray(expit(np.loadtxt(found)))

    return score


def as_text(frame: pd.DataFrame, path: Path) -> str:
    """A table as Vowpal Wabbit text: a namespace for each column, but ``C`` for the 26 of criteo, and ``I`` for numbers."""
    names = [name for name in frame.columns if name != "Label"]
    spaces = {name: "I" if name in NUMBERS or name == "age" else "C" if "I1" in names else name for name in names}
    with path.open("w") as out:
        for values, label in zip(frame[names].itertuples(index=False), frame["Label"], strict=True):
            parts: dict[str, list[str]] = {}
            for name, value in zip(names, values, strict=True):
                if value == value and value is not None:
                    token = f"{name}:{value!r}" if spaces[name] == "I" else f"{name}={value}"
                    parts.setdefault(spaces[name], []).append(token)
            out.write(f"{2 * label - 1} " + " ".join(f"|{space} {' '.join(own)}" for space, own in parts.items()) + "\n")
    return str(path)


def losses(folder: Path) -> dict[str, dict[str, list[float]]]:
    """The log losses on rows held out, without and with crosses, by log and tool; with orders, the standard error between."""
    criteo = pd.read_csv(folder / "criteo-tiny/criteo-tiny.csv.xz").drop(columns="Id")
    criteo[NUMBERS] = criteo[NUMBERS].astype(float)
    splits = [criteo.iloc[np.random.default_rng(seed).permutation(len(criteo))] for seed in range(ORDERS)]
    cut = len(criteo) * 4 // 5
    learned, (scored, chance) = generated(100_000, 1)[0], generated(20_000, 2)
    found: dict[str, dict[str, list[float]]] = {"criteo-tiny": {}, "generated": {}}
    tools = {"onlinear, tables": tables([("C*", "C*")]), "onlinear, vw text": text_rows([("C", "C")]), "vw": vowpal("CC")}
    for name, tool in tools.items():
        each = [[held_out(tool, rows[:cut], rows[cut:], crossed) for crossed in (False, True)] for rows in splits]
        error = np.std(np.diff(each, axis=1), ddof=1) / np.sqrt(ORDERS)
        found["criteo-tiny"][name] = [*np.mean(each, axis=0).tolist(), float(error)]
    tools = {"onlinear, tables": tables([("site", "ad")]), "onlinear, vw text": text_rows([("site", "ad")]), "vw": vowpal("sa")}
    for name, tool in tools.items():
        found["generated"][name] = [held_out(tool, learned, scored, crossed) for crossed in (False, True)]
    found["generated"]["true probabilities"] = [float(log_loss(scored["Label"], chance))] * 2
    return found


def held_out(tool: Score, learned: pd.DataFrame, scored: pd.DataFrame, crossed: bool) -> float:
    return float(log_loss(scored["Label"], tool(learned, scored, crossed)))


def rates(folder: Path) -> dict[str, list[float]]:
    """Rows a second, read without crosses and with, both of as many entries: 55 of a table, 65 of text."""
    draw = np.random.default_rng(0)
    words = np.char.add("v", draw.integers(0, 1000, (40_000, 65)).astype(str))
    wide = pd.DataFrame(words[:, :55], columns=[f"c{k}" for k in range(55)]).assign(y=0.0)
    narrow = wide[[f"c{k}" for k in range(10)] + ["y"]]
    for name, frame in (("wide", wide), ("narrow", narrow)):
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet")
    for name, parts in (("wide", [(0, 5), (5, 65)]), ("narrow", [(0, 5), (5, 15)])):
        with (folder / f"{name}.vw").open("w") as out:
            for row in words.tolist():
                out.write("1 " + " ".join(f"|n{k} {' '.join(row[a:b])}" for k, (a, b) in enumerate(parts)) + "\n")
    found = {}
    for suffix, options, pairs in (
        ("csv", {"target": "y"}, [("*", "*")]),
        ("parquet", {"target": "y"}, [("*", "*")]),
        ("vw", {}, [("n0", "n1")]),
    ):
        files = ((folder / f"wide.{suffix}", options), (folder / f"narrow.{suffix}", {**options, "interactions": pairs}))
        seconds = np.array([[read(path, chosen) for path, chosen in files] for _ in range(REPEATS)])
        found[suffix] = (40_000 / seconds.min(axis=0)).tolist()
    return found


def read(path: Path, options: dict[str, Any]) -> float:
    began = time.perf_counter()
    for _ in streams.open(path, **options):
        pass
    return time.perf_counter() - began


def main() -> int:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    warnings.simplefilter("ignore", QualityWarning)
    found: dict[str, Any] = losses(args.data)
    lines = ["| log | tool | without crosses | with |", "|---|---|---:|---:|"]
    for log, tools in found.items():
        for tool, (without, crossed, *error) in tools.items():
            spread = f" (difference +- {error[0]:.4f})" if error else ""
            lines.append(f"| {log} | {tool} | {without:.4f} | {crossed:.4f}{spread} |")
    with tempfile.TemporaryDirectory() as folder:
        found["rates"] = rates(Path(folder))
    lines += ["", "| rows a second | plain | with crosses | ratio |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {plain:,.0f} | {crossed:,.0f} | {crossed / plain:.2f} |"
        for name, (plain, crossed) in found["rates"].items()
    ]
    text = "\n".join(lines)
    print(text)
    if args.write:
        fill(args.write, "crosses", text)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
