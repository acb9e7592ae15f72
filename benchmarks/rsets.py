"""Tables that nobody chose: the defaults beside scikit-learn, River and a constant, on data sets of R.

    python benchmarks/rsets.py --data FOLDER [--half 0] [--splits 5] [--peers FILE] [--json FILE] [--write PAGE]

FOLDER holds csv files with a line of names, such as those of Rdatasets (resources/rdata/csv of the package pydataset). Every
file of 60 rows or more is used, of equal files the first. A rule chooses the targets, and no set is left out by hand: the
last column of 2 to 20 classes, the last of real numbers, and the last of counts. The other columns are features, whatever they
mean. Row numbers in the first column are left out. Of large files 20,000 rows are drawn.

onlinear takes the frame as it is, with its text and its missing values. The peers get one column for each category, means in
place of missing values, and standardised numbers. ``fit`` is as it comes; River learns the rows once, the others to their own
stop. A quarter of the shuffled rows is held out in each split. The best peer is the one of the smallest mean over the splits,
chosen afterwards for each task. --half takes the files whose name hashes to 0 or to 1.

FILE of --peers keeps what the peers did, so that a further run with the same splits measures onlinear alone.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from onlinear import OnlineClassifier, OnlineRegressor, streams
from options import parser_of
from pages import fill
from tools import versions
from unseen import CLASSES, COUNTS, NUMBERS, River, losses

FEWEST, MOST = 60, 20_000  # rows
CLASSES_MOST, OF_EACH = 20, 8  # classes, and rows of each; rarer classes are left out
COUNTS_LEAST = 6  # different counts
CONSTANT = "constant"
TARGET = "(target)"  # the name of the column that is predicted, where a table holds it


class Task(NamedTuple):
    """A frame of features, and a target to predict from them."""

    name: str
    kind: str
    X: pd.DataFrame
    y: np.ndarray


# --- tasks -----------------------------------------------------------------------------------------------------------


def half_of(name: str) -> int:
    """0 or 1, by the name alone: all tasks of a file are in one half."""
    return sha256(name.encode()).digest()[0] % 2


def frames(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """The files of enough rows, each content once."""
    known = set()
    for path in sorted(folder.rglob("*.csv")):
        content = sha256(path.read_bytes()).digest()
        if path.name.startswith(".") or content in known:
            continue
        known.add(content)
        frame = pd.read_csv(path, low_memory=False)
        if len(frame) >= FEWEST:
            yield f"{path.parent.name}/{path.stem}", without_row_numbers(frame)


def without_row_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without a first column that has no name."""
    return frame.iloc[:, 1:] if str(frame.columns[0]).startswith("Unnamed") else frame


def is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def is_whole(column: pd.Series) -> bool:
    return bool(np.all(column.dropna() == np.round(column.dropna())))


def could_be(kind: str, column: pd.Series) -> bool:
    """Whether a column is a target of this kind."""
    known = column.dropna()
    different = known.nunique()
    if kind == CLASSES:
        sizes = known.value_counts()
        enough = np.count_nonzero(sizes >= OF_EACH) >= 2 and different <= CLASSES_MOST and len(known) >= FEWEST
        return enough and (is_text(column) or (different == 2 and is_whole(column)))
    if is_text(column) or len(known) < FEWEST:
        return False
    if kind == COUNTS:
        return is_whole(column) and different >= COUNTS_LEAST and known.min() == 0
    return different > CLASSES_MOST and not (is_whole(column) and known.min() == 0)


def tasks_of(name: str, frame: pd.DataFrame) -> Iterator[Task]:
    """At most one task of each kind."""
    for kind in (CLASSES, NUMBERS, COUNTS):
        chosen = [k for k in range(frame.shape[1]) if could_be(kind, frame.iloc[:, k])]
        if not chosen or frame.shape[1] < 2:
            continue
        target = frame.iloc[:, chosen[-1]]
        kept = target.notna()
        if kind == CLASSES:
            sizes = target.value_counts()
            kept &= target.map(sizes).fillna(0) >= OF_EACH
        X, y = frame.drop(columns=frame.columns[chosen[-1]])[kept], target[kept]
        if len(y) > MOST:
            drawn = np.random.default_rng(0).permutation(len(y))[:MOST]
            X, y = X.iloc[drawn], y.iloc[drawn]
        values = y.astype(str).to_numpy(dtype=str) if kind == CLASSES else y.to_numpy(dtype=float)
        yield Task(f"{name}: {target.name}", kind, X.reset_index(drop=True), values)


def splits(task: Task, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn and rows held out."""
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(task.y))
        cut = len(order) * 3 // 4
        yield order[:cut], order[cut:]


# --- tools -----------------------------------------------------------------------------------------------------------


def prepared(learned: pd.DataFrame, held: pd.DataFrame) -> tuple[Any, Any]:
    """The columns that the peers get."""
    learned, held = typed(learned), typed(held)
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    made = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (numbers, make_column_selector(dtype_include="number")),
    ).fit(learned)
    return made.transform(learned), made.transform(held)


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of text and columns of numbers; a missing text is a category."""
    text, numbers = frame.select_dtypes(exclude="number"), frame.select_dtypes("number")
    return pd.concat([text.astype(str), numbers.astype(float)], axis=1)


def ours(kind: str, classes: np.ndarray, learned: Any, y: np.ndarray, held: Any, **params: Any) -> np.ndarray:
    """What onlinear predicts; a frame with missing values is a stream, which is told how to read them."""
    named = {"loss": "poisson"} if kind == COUNTS else {}
    model = (OnlineClassifier if kind == CLASSES else OnlineRegressor)(random_state=0, **named | params)
    if learned.isna().any(axis=None) or held.isna().any(axis=None):
        rows = streams.open(learned.assign(**{TARGET: y}), target=TARGET, missing="indicator")
        return read(model.fit(rows, **({"classes": classes} if kind == CLASSES else {})), kind, held)
    return read(model.fit(learned, y), kind, held)


def read(model: Any, kind: str, held: Any) -> np.ndarray:
    return model.predict_proba(held) if kind == CLASSES else model.predict(held)


def solved(kind: str, classes: np.ndarray, learned: Any, y: np.ndarray, held: Any) -> np.ndarray:
    """scikit-learn's models that solve to the end."""
    model = {CLASSES: LogisticRegression(max_iter=1000), NUMBERS: Ridge(), COUNTS: PoissonRegressor(max_iter=1000)}[kind]
    return read(model.fit(learned, y), kind, held)


def sgd(kind: str, classes: np.ndarray, learned: Any, y: np.ndarray, held: Any) -> np.ndarray:
    model = SGDClassifier(loss="log_loss", random_state=0) if kind == CLASSES else SGDRegressor(random_state=0)
    return read(model.fit(learned, y), kind, held)


def river(kind: str, classes: np.ndarray, learned: Any, y: np.ndarray, held: Any) -> np.ndarray:
    model = River(kind, classes)
    model.learn(learned, y)
    return model.predict(held)


OURS: dict[str, Callable[..., np.ndarray]] = {
    "default": ours,
    "passes=auto": lambda *task: ours(*task, passes="auto"),
}
PEERS: dict[str, Callable[..., np.ndarray]] = {"solved to the end": solved, "SGD": sgd, "River": river}


def guess(kind: str, classes: np.ndarray, y: np.ndarray, rows: int) -> np.ndarray:
    """The mean of the rows learned, or their shares of the classes."""
    if kind != CLASSES:
        return np.full(rows, np.mean(y))
    return np.tile(np.maximum(1e-15, [np.mean(y == name) for name in classes]), (rows, 1))


def measures(task: Task, classes: np.ndarray, found: np.ndarray, y: np.ndarray) -> list[float]:
    """The mean loss held out, of numbers over their variance, and the share of wrong classes."""
    wrong = float(np.mean(classes[np.argmax(np.nan_to_num(found), axis=1)] != y)) if task.kind == CLASSES else np.nan
    if task.kind == NUMBERS:
        found, y = found / np.std(task.y), y / np.std(task.y)
    return [float(np.mean(losses(task.kind, classes, found, y))), wrong]


def measured(task: Task, count: int, peers: bool) -> dict[str, list[list[float]]]:
    """What each tool did in each split."""
    found: dict[str, list[list[float]]] = {}
    classes = np.unique(task.y)
    for learned, held in splits(task, count):
        y, truth = task.y[learned], task.y[held]
        rows = task.X.iloc[learned], task.X.iloc[held]
        if peers:
            rows = prepared(*rows)
            found.setdefault(CONSTANT, []).append(measures(task, classes, guess(task.kind, classes, y, len(truth)), truth))
        for name, tool in (PEERS if peers else OURS).items():
            try:
                guesses = tool(task.kind, classes, rows[0], y, rows[1])
            except ArithmeticError:
                if not peers:
                    raise
                guesses = np.full((len(truth), len(classes)) if task.kind == CLASSES else len(truth), np.nan)
            found.setdefault(name, []).append(measures(task, classes, guesses, truth))
    return found


# --- tables ----------------------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """A measure of a task: of each tool its values in the splits; ``rows`` of the task."""

    name: str
    kind: str
    measure: str
    rows: int
    found: dict[str, np.ndarray]

    @property
    def best(self) -> str:
        """The peer of the smallest mean."""
        return min(PEERS, key=lambda tool: self.found[tool].mean())

    def ratio(self, tool: str, other: str) -> float:
        """The quotient of the means; 1 where both are 0."""
        ours, theirs = self.found[tool].mean(), self.found[other].mean()
        return float(ours / theirs) if theirs > 0.0 else 1.0 if ours == 0.0 else np.inf

    def beyond(self, tool: str, other: str) -> bool:
        """Whether a tool is worse than another by 5 % and two paired standard errors."""
        apart = self.found[tool] - self.found[other]
        error = apart.std(ddof=1) / sqrt(len(apart)) if len(apart) > 1 else np.inf
        return self.ratio(tool, other) > 1.05 and bool(apart.mean() > 2.0 * error)


def judged(known: dict[str, Any]) -> list[Judged]:
    """All measures of all tasks."""
    found = []
    for name, task in known.items():
        for k, measure in enumerate(("loss", "wrong") if task["kind"] == CLASSES else ("loss",)):
            tools = {tool: np.array(values)[:, k] for tool, values in task["found"].items()}
            found.append(Judged(name, task["kind"], measure, task["rows"], tools))
    return found


MEASURED = {(CLASSES, "loss"): "log loss", (CLASSES, "wrong"): "wrong classes", (NUMBERS, "loss"): "squared error"}
SIZES = ((0, 150), (150, 500), (500, 10**9), (0, 10**9))
BESIDE = [
    "| targets | measure | rows | tasks | tool | ratio to the best peer (quartiles) | worse, better | worse than constant |",
    "|---|---|---|---:|---|---:|---:|---:|",
]
TOOLS = [
    "| targets | measure | tool | within 5 % of the best | ratio to the constant: median | worse than the constant |",
    "|---|---|---|---:|---:|---:|",
]
LOST = [
    "| task | rows | default / best peer | default / constant | passes=auto / constant | best peer / constant |",
    "|---|---:|---:|---:|---:|---:|",
]


def size_of(first: int, end: int) -> str:
    """From ``first`` to before ``end`` rows, in words."""
    if (first, end) == SIZES[-1]:
        return "all"
    return f"{first} or more" if end > MOST else f"{max(first, FEWEST)} to {end - 1}"


def groups(tasks: list[Judged]) -> Iterator[tuple[str, str, list[Judged]]]:
    """The tasks of each kind of target and measure, and the names of both."""
    for kind, measure in ((CLASSES, "loss"), (CLASSES, "wrong"), (NUMBERS, "loss"), (COUNTS, "loss")):
        yield kind, MEASURED.get((kind, measure), "deviance"), [t for t in tasks if (t.kind, t.measure) == (kind, measure)]


def beside_best(tasks: list[Judged]) -> list[str]:
    """onlinear beside the best peer of each task, by the number of rows."""
    lines = []
    for kind, measure, all_of_kind in groups(tasks):
        for first, end in SIZES:
            chosen = [task for task in all_of_kind if first <= task.rows < end]
            for tool in OURS if chosen else ():
                low, middle, high = np.percentile(
                    [task.ratio(tool, task.best) for task in chosen], [25, 50, 75], method="inverted_cdf"
                )
                worse = sum(task.beyond(tool, task.best) for task in chosen)
                better = sum(task.beyond(task.best, tool) for task in chosen)
                lost = sum(task.beyond(tool, CONSTANT) for task in chosen)
                size = size_of(first, end)
                cells = [
                    kind,
                    measure,
                    size,
                    f"{len(chosen)}",
                    tool,
                    f"{middle:.3f} ({low:.3f}, {high:.3f})",
                    f"{worse}, {better}",
                    f"{lost}",
                ]
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def each_tool(tasks: list[Judged]) -> list[str]:
    """Every tool beside the best of all and the constant."""
    lines = []
    for kind, measure, chosen in groups(tasks):
        for tool in (*OURS, *PEERS) if chosen else ():
            near = np.mean([task.found[tool].mean() <= 1.05 * min(v.mean() for v in task.found.values()) for task in chosen])
            middle = np.median([task.ratio(tool, CONSTANT) for task in chosen])
            lost = sum(task.beyond(tool, CONSTANT) for task in chosen)
            lines.append(f"| {kind} | {measure} | {tool} | {near:.0%} | {middle:.3g} | {lost} of {len(chosen)} |")
    return lines


def lost_most(tasks: list[Judged], count: int = 5) -> list[str]:
    """Where the default loses most beside the best peer, in constants' losses."""
    lines = []
    for _, measure, chosen in groups(tasks):
        found = [task for task in chosen if measure != "wrong classes" and task.beyond("default", task.best)]
        found.sort(key=lambda task: task.ratio(task.best, CONSTANT) - task.ratio("default", CONSTANT))
        for task in found[:count]:
            ratios = [
                task.ratio("default", task.best),
                *(task.ratio(tool, CONSTANT) for tool in ("default", "passes=auto", task.best)),
            ]
            lines.append(f"| {task.name}, {measure} | {task.rows:,} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    return lines


def main() -> int:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--half", type=int, choices=(0, 1), help="a half of the files, by their names")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--peers", type=Path, help="a file that keeps what the peers did")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = json.loads(args.peers.read_text()) if args.peers and args.peers.exists() else {}
    known: dict[str, Any] = {}
    files = [each for each in frames(args.data) if args.half is None or half_of(each[0]) == args.half]
    for task in (task for name, frame in files for task in tasks_of(name, frame)):
        key = f"{task.name}, {args.splits}"
        if key not in kept:
            kept[key] = measured(task, args.splits, True)
        found = measured(task, args.splits, False) | kept[key]
        known[task.name] = {"kind": task.kind, "rows": len(task.y), "columns": task.X.shape[1], "found": found}
        print(f"{task.name} ({task.kind}, {len(task.y):,} rows)", file=sys.stderr, flush=True)
        for path, content in ((args.peers, kept), (args.json, known)):
            if path:
                path.write_text(json.dumps(content))
    tasks = judged(known)
    counted = f"{len(files)} files, {len(known)} tasks."
    text = "\n".join(
        [
            versions() + ".",
            "",
            counted,
            "",
            *BESIDE,
            *beside_best(tasks),
            "",
            *TOOLS,
            *each_tool(tasks),
            "",
            *LOST,
            *lost_most(tasks),
        ]
    )
    print(text)
    if args.write:
        fill(args.write, "rsets", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
