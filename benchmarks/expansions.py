"""Word n-grams and bins: errors with and without, the former beside Vowpal Wabbit's ``--ngram``, and the rate of reading words.

    python benchmarks/expansions.py --data FOLDER [--write docs/tutorials/words-and-bins.md] [--json FILE]

Sentences of the documentation inside SciPy and scikit-learn, without their names: which package is a sentence from? One pass,
settings as they come, 20 bits, a quarter held out, 5 random orders. Bins: cadata, prices of houses by place and six other
numbers, one pass, a quarter held out, 5 orders. Rates: the sentences of a Parquet file made into n-grams, and Vowpal Wabbit
text that has the n-grams as features; the least time of 7.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning, streams
from options import parser_of
from pages import fill
from sentences import sentences

ORDERS, REPEATS = 5, 7
COLUMNS = ["income", "age", "rooms", "bedrooms", "people", "households", "latitude", "longitude"]
GRID = {"bins": {"latitude": 30, "longitude": 30}, "interactions": [("latitude", "longitude")]}


def splits(frame: pd.DataFrame) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """The rows in random orders, the last quarter held out."""
    orders = [frame.iloc[np.random.default_rng(seed).permutation(len(frame))] for seed in range(ORDERS)]
    return [(rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]) for rows in orders]


def words(learned: pd.DataFrame, scored: pd.DataFrame, most: int) -> float:
    """The error of onlinear with n-grams of up to ``most`` words."""
    stream = streams.open(learned, target="of", ngrams={"text": most}, hash_bits=20)
    return float(1.0 - OnlineClassifier().fit(stream, classes="scan").score(scored, "of"))


def vowpal(learned: pd.DataFrame, scored: pd.DataFrame, most: int) -> float:
    """The error of Vowpal Wabbit with ``--ngram``."""
    from vowpalwabbit import Workspace

    with tempfile.TemporaryDirectory() as folder:
        first, second, model, found = (Path(folder) / name for name in ("a.vw", "b.vw", "model", "scores"))
        as_text(learned, first)
        as_text(scored, second)
        asked = f"--ngram {most}" if most > 1 else ""
        Workspace(f"--quiet -b 20 --loss_function logistic -d {first} -f {model} {asked}").finish()
        Workspace(f"--quiet -t -i {model} -d {second} -p {found}").finish()
        return float(np.mean((np.loadtxt(found) > 0.0) != (scored["of"] == "scipy")))


def as_text(frame: pd.DataFrame, path: Path) -> None:
    """The sentences as Vowpal Wabbit text."""
    path.write_text("".join(f"{1 if of == 'scipy' else -1} | {text}\n" for text, of in frame[["text", "of"]].to_numpy()))


def houses(folder: Path) -> pd.DataFrame:
    """cadata with the names of its columns."""
    stream = streams.open(folder / "cadata" / "cadata.svm.xz")
    blocks = [(block.X.toarray(), block.y) for block in stream]
    frame = pd.DataFrame(np.concatenate([X for X, _ in blocks]), columns=COLUMNS)
    return frame.assign(price=np.concatenate([y for _, y in blocks]))


def place(learned: pd.DataFrame, scored: pd.DataFrame, options: dict[str, Any]) -> float:
    """The squared error over the variance."""
    model = OnlineRegressor().fit(streams.open(learned, target="price", **options))
    return float(1.0 - model.score(scored, "price"))


def rates(frame: pd.DataFrame, folder: Path) -> dict[str, list[float]]:
    """Rows a second of up to one word and of up to two: of text that has n-grams as features, and of Parquet made into them.

    The names of n-grams are not kept, as when a model predicts.
    """
    frame.to_parquet(folder / "rows.parquet")
    for most in (1, 2):
        grams = frame.assign(text=[" ".join([s, *pairs_of(s.split())]) if most == 2 else s for s in frame["text"]])
        as_text(grams, folder / f"{most}.vw")
    ways: dict[str, list[tuple[Path, dict[str, Any]]]] = {"vw text": [(folder / f"{most}.vw", {}) for most in (1, 2)]}
    described = [streams.open(frame, target="of", ngrams={"text": most}).encoding for most in (1, 2)]
    ways["Parquet"] = [(folder / "rows.parquet", {"encoding": encoding, "unlabelled": True}) for encoding in described]
    return {name: [len(frame) / seconds(*way) for way in own] for name, own in ways.items()}


def pairs_of(words: list[str]) -> list[str]:
    return [f"{one}_{two}" for one, two in pairwise(words)]


def seconds(path: Path, options: dict[str, Any]) -> float:
    """The least time of reading a file."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in streams.open(path, **options):
            pass
        found.append(time.perf_counter() - began)
    return min(found)


def row(name: str, each: np.ndarray, form: str) -> str:
    """A line of the table: the means, and the standard error of the difference."""
    error = np.std(each[:, 1] - each[:, 0], ddof=1) / np.sqrt(len(each))
    before, after = each.mean(axis=0)
    return f"| {name} | {before:{form}} | {after:{form}} (difference +- {error:{form}}) |"


def main() -> int:
    args = parser_of(__doc__, data=True, page=True).parse_args()
    warnings.simplefilter("ignore", QualityWarning)
    frame, found = sentences(), dict[str, Any]()
    lines = ["| sentences, error | one word | up to two |", "|---|---:|---:|"]
    for name, tool in (("onlinear, `ngrams=`", words), ("vw, `--ngram`", vowpal)):
        found[name] = [[tool(*rows, most) for most in (1, 2)] for rows in splits(frame)]
        lines.append(row(name, np.array(found[name]), ".2%"))
    lines += ["", "| cadata, squared error over variance | numbers | latitude and longitude in bins, crossed |"]
    found["cadata"] = [[place(*rows, options) for options in ({}, GRID)] for rows in splits(houses(args.data))]
    lines += ["|---|---:|---:|", row("onlinear", np.array(found["cadata"]), ".3f")]
    lines += ["", "| sentences read a second | one word | up to two |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        found["rates"] = rates(frame, Path(folder))
    lines += [f"| {name} | {one:,.0f} | {two:,.0f} |" for name, (one, two) in found["rates"].items()]
    print("\n".join(lines))
    if args.write:
        fill(args.write, "expansions", "\n".join(lines))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
