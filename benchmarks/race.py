"""Progressive log loss against seconds, from file to model: onlinear, Vowpal Wabbit, scikit-learn and River.

    python benchmarks/race.py --data FOLDER [--plot docs/plots/race.svg] [--write docs/index.md] [--json FILE]

Two logs: display advertisements (criteo-tiny, a CSV file of numbers and categories with gaps) and news (rcv1-ccat, svmlight
text). Each tool reads the file by its own means, predicts every row before it learns it, and makes one pass. The clock runs
from the opening of the file; kernels are compiled and packages imported before, by a run that does not count. "As it comes":
no setting but the loss. "Best step": the best of five step sizes for that file, which nobody knows beforehand. The loss of
onlinear is that of the model that would be saved. Vowpal Wabbit runs its own driver on its own text, and the time to write
that text counts.
"""

from __future__ import annotations

import csv
import json
import lzma
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from onlinear import OnlineClassifier, streams
from options import parser_of
from pages import fill, machine
from tools import River as RiverModel
from tools import log_loss, versions

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "onlinear"
from matplotlib import pyplot as plt  # noqa: E402

BLOCK = 100  # rows that scikit-learn scores and learns at a time
FIRST = 128  # rows of a curve's first point
NUMBERS = [f"I{k}" for k in range(1, 14)]
CATEGORIES = [f"C{k}" for k in range(1, 27)]


class Curve(NamedTuple):
    """The mean loss so far after ``rows`` rows and ``seconds``."""

    rows: np.ndarray
    seconds: np.ndarray
    loss: np.ndarray


def doubled(losses: np.ndarray, marks: list[tuple[int, float]]) -> Curve:
    """A curve at doublings of the row count, from each row's loss and the clock at some rows."""
    rows = np.unique([*(FIRST << np.arange(20))[FIRST << np.arange(20) < len(losses)], len(losses)])
    return Curve(rows, np.interp(rows, *zip(*marks, strict=True)), np.cumsum(losses)[rows - 1] / rows)


def onlinear(path: Path, step: float | None, **settings: Any) -> Curve:
    named = {} if step is None else {"solver": f"implicit-ftrl,eta={step!r}"}
    clicks = {"target": "Label", "exclude": ["Id"], "missing": "indicator"} if path.suffix == ".csv" else {}
    marks = [(0, 0.0)]
    started = time.perf_counter()
    stream = streams.open(str(path), block_bytes=path.stat().st_size // 32, **clicks)

    def timed() -> Iterator[streams.Block]:
        for block in stream:
            yield block
            marks.append((marks[-1][0] + len(block.y), time.perf_counter() - started))

    model = OnlineClassifier(**named, **settings).fit(timed(), classes=[0, 1] if clicks else [-1, 1])
    points = [point for point in model.history_ if point["rows"] >= FIRST]
    rows = np.array([point["rows"] for point in points])
    return Curve(rows, np.interp(rows, *zip(*marks, strict=True)), np.array([point["loss"] for point in points]))


def sparse(path: Path, step: float | None) -> Curve:
    """onlinear with an L1 penalty, as the command's examples have it."""
    return onlinear(path, step, penalty="l1=1e-3" if path.suffix == ".csv" else "l1=1e-5")


def vowpal(path: Path, step: float | None) -> Curve:
    from vowpalwabbit import Workspace

    started = time.perf_counter()
    text, found = path.with_suffix(".vw"), path.with_suffix(".predictions")
    with path.open() as lines, text.open("w") as out:
        out.writelines(vowpal_clicks(lines) if path.suffix == ".csv" else (line.replace(" ", " | ", 1) for line in lines))
    chosen = "" if step is None else f"-l {step!r}"
    Workspace(f"--quiet -d {text} -b 18 --loss_function logistic -p {found} {chosen}").finish()
    seconds = time.perf_counter() - started
    y = np.array([1.0 if float(line.split()[0]) > 0.0 else -1.0 for line in text.open()])
    return doubled(log_loss(np.loadtxt(found), y), [(0, 0.0), (len(y), seconds)])


def vowpal_clicks(lines: Any) -> Iterator[str]:
    rows = csv.reader(lines)
    names = next(rows)[2:]
    for _, label, *values in rows:
        entries = [f"{n}:{v}" if n in NUMBERS else f"{n}={v}" for n, v in zip(names, values, strict=True) if v]
        yield f"{'1' if label == '1' else '-1'} | {' '.join(entries)}\n"


def river(path: Path, step: float | None) -> Curve:
    from river import compose, preprocessing

    model: Any = RiverModel(np.array([-1, 1]), step).model
    if path.suffix == ".csv":
        numbers = compose.SelectType((int, float)) | preprocessing.StandardScaler()
        model = compose.Pipeline(numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder()), model)
    losses, marks = [], [(0, 0.0)]
    started = time.perf_counter()
    for row, label in river_clicks(path) if path.suffix == ".csv" else river_news(path):
        chance = model.predict_proba_one(row).get(True, 0.5)
        losses.append(-np.log(max(chance if label else 1.0 - chance, 1e-15)))
        model.learn_one(row, label)
        if len(losses) % BLOCK == 0:
            marks.append((len(losses), time.perf_counter() - started))
    return doubled(np.array(losses), [*marks, (len(losses), time.perf_counter() - started)])


def river_clicks(path: Path) -> Iterator[tuple[dict[str, Any], bool]]:
    with path.open() as lines:
        for row in csv.DictReader(lines):
            yield (
                {n: int(v) if n in NUMBERS else v for n, v in row.items() if v and n not in ("Id", "Label")},
                row["Label"] == "1",
            )


def river_news(path: Path) -> Iterator[tuple[dict[str, float], bool]]:
    with path.open() as lines:
        for line in lines:
            label, *entries = line.split()
            yield {j: float(x) for j, x in (entry.split(":") for entry in entries)}, float(label) > 0.0


def scikit_learn(path: Path, step: float | None) -> Curve:
    chosen = {} if step is None else {"learning_rate": "invscaling", "eta0": step, "power_t": 0.5}
    model = SGDClassifier("log_loss", random_state=0, **chosen)
    losses, marks, started = [], [(0, 0.0)], time.perf_counter()
    for X, y in sklearn_clicks(path) if path.suffix == ".csv" else sklearn_news(path):
        margins = model.decision_function(X) if losses else np.zeros(len(y))
        losses.append(log_loss(margins, y))
        model.partial_fit(X, y, classes=[-1, 1])
        marks.append((marks[-1][0] + len(y), time.perf_counter() - started))
    return doubled(np.concatenate(losses), marks)


def sklearn_clicks(path: Path) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    import pandas as pd

    scaler, hasher = StandardScaler(), FeatureHasher(1 << 18, input_type="string", alternate_sign=False)
    for frame in pd.read_csv(path, chunksize=BLOCK):
        numbers = np.nan_to_num(scaler.partial_fit(frame[NUMBERS]).transform(frame[NUMBERS]))
        rows = frame[CATEGORIES].to_numpy()
        hashed = hasher.transform(
            [f"{n}={v}" for n, v in zip(CATEGORIES, row, strict=True) if isinstance(v, str)] for row in rows
        )
        yield sp.csr_matrix(sp.hstack([numbers, hashed])), np.where(frame["Label"] == 1, 1, -1)


def sklearn_news(path: Path) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    X, y = load_svmlight_file(str(path))
    for first in range(0, len(y), BLOCK):
        yield X[first : first + BLOCK], y[first : first + BLOCK]


Run = Callable[[Path, float | None], Curve]
TOOLS: dict[str, tuple[Run, tuple[float, ...], str]] = {  # how it runs, its step sizes, its colour
    "onlinear": (onlinear, (0.2, 0.5, 1.0, 2.0, 4.0), "#3f51b5"),
    "onlinear, L1": (sparse, (0.2, 0.5, 1.0, 2.0, 4.0), "#00897b"),
    "Vowpal Wabbit": (vowpal, (0.1, 0.3, 1.0, 2.0, 4.0), "#e6760b"),
    "scikit-learn": (scikit_learn, (0.01, 0.1, 1.0, 10.0, 100.0), "#56b4e9"),
    "River": (river, (0.003, 0.01, 0.1, 1.0, 10.0), "#222222"),
}
LOGS = {
    "1,999 advertisements, CSV": ("criteo-tiny/criteo-tiny.csv.xz", "criteo.csv"),
    "23,149 news stories, svmlight": ("rcv1-ccat/ccat.svm.xz", "news.svm"),
}


def constant(path: Path) -> float:
    """The log loss of the best constant probability."""
    with path.open() as lines:
        labels = [line.split(",", 2)[1] if path.suffix == ".csv" else line.split(" ", 1)[0] for line in lines]
    share = np.mean([label in ("1", "+1") for label in (labels[1:] if path.suffix == ".csv" else labels)])
    return float(-share * np.log(share) - (1.0 - share) * np.log(1.0 - share))


def measure(run: Run, steps: tuple[float, ...], path: Path) -> tuple[Curve, float, Curve]:
    """As it comes (the faster of two runs), and the best step with its curve."""
    plain = min((run(path, None) for _ in range(2)), key=lambda curve: curve.seconds[-1])
    tried = {step: run(path, step) for step in steps}
    step = min(steps, key=lambda step: tried[step].loss[-1])
    again = min((tried[step], run(path, step)), key=lambda curve: curve.seconds[-1])
    return plain, step, again


def table(found: dict[str, dict[str, tuple[Curve, float, Curve]]], constants: dict[str, float]) -> str:
    lines = [f"| {' | '.join(['', *(c for log in found for c in (f'{log}: loss', 'seconds', 'loss, best step'))])} |"]
    lines.append(f"|---|{'---:|' * 3 * len(found)}")
    for tool in TOOLS:
        cells = []
        for log in found:
            plain, step, best = found[log][tool]
            cells += [f"{plain.loss[-1]:.3f}", f"{plain.seconds[-1]:.3g}", f"{best.loss[-1]:.3f} ({step:g})"]
        lines.append(f"| {' | '.join([tool, *cells])} |")
    lines.append(f"| best constant | {' | '.join(f'{constants[log]:.3f} | | ' for log in found)} |")
    return "\n".join(lines)


def draw(found: dict[str, dict[str, tuple[Curve, float, Curve]]], constants: dict[str, float], path: Path) -> None:
    """Seconds to the right, loss upwards; solid as it comes, dotted with the best step."""
    figure, places = plt.subplots(1, len(found), figsize=(9.0, 4.0), layout="constrained")
    for place, (log, curves) in zip(places, found.items(), strict=True):
        for tool, (plain, _, best) in curves.items():
            colour = TOOLS[tool][2]
            place.plot(plain.seconds, plain.loss, color=colour, label=tool, linewidth=1.8)
            place.plot(plain.seconds[-1], plain.loss[-1], "o", color=colour, markersize=5)
            place.plot(best.seconds, best.loss, ":", color=colour, linewidth=1.2)
        place.axhline(constants[log], color="#777777", linewidth=0.8, linestyle="--")
        place.text(
            0.01, constants[log], "best constant", transform=place.get_yaxis_transform(), ha="left", va="bottom", fontsize=8
        )
        least = min(best.loss[-1] for _, _, best in curves.values())
        place.set(
            xscale="log", xlabel="seconds since the file was opened", title=log, ylim=(0.9 * least, 1.25 * constants[log])
        )
        place.grid(alpha=0.25)
    places[0].set_ylabel("progressive log loss")
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(TOOLS), frameon=False)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def main() -> None:
    parser = parser_of(__doc__, data=True, page=True)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found, constants = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for log, (packed, name) in LOGS.items():
            path = Path(folder) / name
            path.write_bytes(lzma.decompress((args.data / packed).read_bytes()))
            constants[log] = constant(path)
            found[log] = {}
            for tool, (run, steps, _) in TOOLS.items():
                run(path, None)  # compiles and imports
                found[log][tool] = measure(run, steps, path)
    text = f"{table(found, constants)}\n\n({machine()}; {versions()}.)"
    print(text)
    if args.plot:
        draw(found, constants, args.plot)
    if args.write:
        fill(args.write, "race", text)
    if args.json:
        plain = {log: {tool: [c.tolist() for c in curves[0]] for tool, curves in tools.items()} for log, tools in found.items()}
        args.json.write_text(json.dumps(plain))


if __name__ == "__main__":
    main()
