"""From files to a model, whole processes: text, converted files, memory; beside Vowpal Wabbit, scikit-learn and LIBLINEAR.

    python benchmarks/files.py [--size 1500] [--small 150] [--stream 2000] [--repeats 3] [--folder FOLDER] [--json FILE]

The rows are those of throughput.py: text-like, about 68 non-zeros over 47,000 columns, values of six digits. The small file is
--small MB of them, the large one the small one over and over up to --size MB; all tools learn the same rows once, in order. A
figure is the whole process from its start to its end, by the clock; MB are those of the svmlight text for every tool, whose
own file has the same rows in its own form. Start-up is the same command on twenty rows. Runs alternate and the fastest counts;
large ones run twice, as the first may wait for the disk. scikit-learn and LIBLINEAR hold all rows in memory: they get the small
file, or a fourth of it. CPU seconds are those of all threads; where the machine does other things, their ratios are steadier.
Python keeps the bytecode of all modules, as it does of installed packages.

The files are made in --folder (a new one among the temporary files) and removed at the end: about five times --size MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import isnan, nan
from pathlib import Path
from typing import IO, Any, NamedTuple

from options import parser_of

# This process imports nothing large: what it holds would count as its children's peak memory.
COMID = ["--loss", "hinge", "--penalty", "l1,l1=1e-6", "--solver", "comid"]
VW = "--loss_function hinge --l1 1e-6 --bit_precision 18"
HASH_BITS = 24
NOISE = 0.1  # of a process's seconds, within which those of two processes differ by themselves
WITH_BYTECODE = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
Command = list[str]


class Taken(NamedTuple):
    """What a process took."""

    seconds: float
    cpu: float
    peak: float  # MB resident
    last: str  # its last line


def run(command: Command, stdin: IO[bytes] | None = None) -> Taken:
    """Run a command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=sys.stderr, env=WITH_BYTECODE)
    assert process.stdout is not None
    lines = process.stdout.read().decode().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}.")
    seconds = time.perf_counter() - began
    return Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, lines[-1] if lines else "")


# --- what the other processes do -------------------------------------------------------------------------------------


def make(folder: str, small: str, size: str) -> None:
    """small.svm, part.svm, tiny.svm, large.svm, and the same rows for Vowpal Wabbit."""
    from throughput import text_like

    target, rows = float(small) * 1e6, 2000
    while True:  # the number of rows that gives the size
        X, y = text_like(rows)
        ends = X.indptr.tolist()
        columns, values = (X.indices + 1).tolist(), X.data.tolist()
        lines = [
            f"{label:.0f} " + " ".join(f"{j}:{x:.6g}" for j, x in zip(columns[a:b], values[a:b], strict=True)) + "\n"
            for label, a, b in zip(y.tolist(), ends[:-1], ends[1:], strict=True)
        ]
        length = sum(map(len, lines))
        if length > 0.95 * target:
            break
        rows = int(rows * target / length) + 1
    copies = max(1, round(float(size) * 1e6 / length))
    for suffix, change in (("svm", lambda line: line), ("vw", lambda line: line.replace(" ", " | ", 1))):
        text = "".join(map(change, lines)).encode()
        for name, part, times in (
            ("tiny", "".join(map(change, lines[:20])).encode(), 1),
            ("part", "".join(map(change, lines[: len(lines) // 4])).encode(), 1),
            ("small", text, 1),
            ("large", text, copies),
        ):
            with open(Path(folder) / f"{name}.{suffix}", "wb") as file:
                for _ in range(times):
                    file.write(part)
    print(json.dumps({"rows": len(lines), "part": len(lines) // 4, "copies": copies, "columns": X.shape[1], "nnz": X.nnz}))


def feed(path: str, megabytes: str, spaces: str) -> None:
    """The lines of a file to standard output, over and over; with ``spaces``, each time in another namespace."""
    text, sent, turn = Path(path).read_bytes(), 0, 0
    while sent < float(megabytes) * 1e6:
        piece = text.replace(b" | ", b" |n%d " % turn) if spaces == "yes" else text
        sys.stdout.buffer.write(piece)
        sent, turn = sent + len(piece), turn + 1


def convert(source: str, target: str, float32: str) -> None:
    """Converted rows as columns."""
    from onlinear import streams
    from onlinear.streams.ahead import Ahead
    from onlinear.streams.converted_writer import write_converted

    write_converted(target, Ahead(streams.open(source)), float32=float32 == "yes")


def vowpal(path: str, options: str) -> None:
    """One pass of Vowpal Wabbit's own driver over a file, and its model."""
    from vowpalwabbit import Workspace

    Workspace(f"--data {path} --final_regressor {path}.model --quiet {options}").finish()


def scikit_learn(path: str) -> None:
    """load_svmlight_file, then one epoch of SGDClassifier."""
    import numpy as np
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import SGDClassifier

    X, y = load_svmlight_file(path)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # some versions load what they do not learn
    SGDClassifier(loss="hinge", penalty="l1", alpha=1e-6, max_iter=1, tol=None, shuffle=False).fit(X, y)


def liblinear(path: str) -> None:
    """svm_read_problem, then L1-regularised squared hinge to its own tolerance."""
    from liblinear.liblinearutil import svm_read_problem, train

    train(*svm_read_problem(path), "-s 5 -q")


CHILDREN: dict[str, Callable[..., None]] = {
    child.__name__: child for child in (make, feed, convert, vowpal, scikit_learn, liblinear)
}


def child(task: Callable[..., None], *args: Any) -> Command:
    return [sys.executable, __file__, "--child", task.__name__, *map(str, args)]


def train(source: Path | str, *options: str, model: Path) -> Command:
    return [sys.executable, "-m", "onlinear", "train", str(source), *options, "--model", str(model), "--json"]


# --- what is measured ------------------------------------------------------------------------------------------------


OURS, OURS_PLAIN = "onlinear, comid, L1, hinge", "onlinear, as it comes"
THEIRS, THEIRS_PLAIN, SKLEARN, LIBLINEAR = "Vowpal Wabbit", "Vowpal Wabbit, --sgd", "scikit-learn", "LIBLINEAR"
# Which tools get which file.
ON = {
    "tiny": (OURS, OURS_PLAIN, THEIRS, THEIRS_PLAIN, SKLEARN, LIBLINEAR),
    "small": (OURS, OURS_PLAIN, THEIRS, THEIRS_PLAIN, SKLEARN),
    "part": (LIBLINEAR,),
    "large": (OURS, OURS_PLAIN, THEIRS),
}


class Measured:
    """Everything that was run, by name."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self.folder, self.args = folder, args
        self.shape = json.loads(run(child(make, folder, args.small, args.size)).last)
        self.found: dict[str, Taken] = {}
        self.mb = {name: (folder / f"{name}.svm").stat().st_size / 1e6 for name in ("part", "small", "large")}
        self.rows = {"part": self.shape["part"], "small": self.shape["rows"]}
        self.rows["large"] = self.shape["rows"] * self.shape["copies"]

    def tools(self, name: str) -> dict[str, Command]:
        """The commands for the file of this name."""
        svm, vw, model = (self.folder / f"{name}.{suffix}" for suffix in ("svm", "vw", "onlinear"))
        tools = {
            OURS: train(svm, *COMID, model=model),
            OURS_PLAIN: train(svm, model=model),
            THEIRS: child(vowpal, vw, VW),
            THEIRS_PLAIN: child(vowpal, vw, f"{VW} --sgd"),
            SKLEARN: child(scikit_learn, svm),
            LIBLINEAR: child(liblinear, svm),
        }
        return {tool: command for tool, command in tools.items() if tool in ON[name]}

    def text(self) -> None:
        """Text to a model."""
        for name, repeats in (("tiny", self.args.repeats + 1), ("small", self.args.repeats), ("part", 1), ("large", 2)):
            for _ in range(repeats):
                for tool, command in self.tools(name).items():
                    self.keep(f"{tool}, {name}", run(command))

    def keep(self, name: str, taken: Taken) -> None:
        """The fastest run of each name."""
        before = self.found.get(name)
        self.found[name] = taken if before is None or taken.seconds < before.seconds else before

    def files(self) -> None:
        """Converted files of the large one, and a model from each."""
        for name, suffix, float32 in FORMATS:
            path = self.folder / f"large-{float32}{suffix}"
            self.keep(f"convert {name}", run(child(convert, self.folder / "large.svm", path, float32)))
            self.mb[name] = path.stat().st_size / 1e6
            for _ in range(self.args.repeats):
                self.keep(f"train {name}", run(train(path, *COMID, model=self.folder / "from.onlinear")))
            path.unlink()
        self.keep("train text", self.found[f"{OURS}, large"])

    def streams(self) -> None:
        """Standard input, of any length."""
        model = self.folder / "stream.onlinear"
        hashed = ["--format", "vw", "--hash-bits", str(HASH_BITS)]
        for name, source, spaces, options in (
            ("svmlight, 47,000 columns", "small.svm", "no", []),
            (f"Vowpal Wabbit text, 2^{HASH_BITS} hashed columns", "part.vw", "yes", hashed),
        ):
            feeding = subprocess.Popen(
                child(feed, self.folder / source, self.args.stream, spaces), stdout=subprocess.PIPE, bufsize=0
            )
            self.keep(f"stream {name}", run(train("-", *COMID, *options, model=model), feeding.stdout))
            feeding.wait()


FORMATS = (
    ("Parquet", ".parquet", "no"),
    ("Parquet, float32", ".parquet", "yes"),
    ("Arrow", ".arrow", "no"),
    ("Arrow, float32", ".arrow", "yes"),
)


# --- tables ----------------------------------------------------------------------------------------------------------


def after(whole: float, start: float) -> float:
    """What is left of a process after its start-up; NaN where the machine's noise is larger than that."""
    return whole - start if whole - start > NOISE * whole else nan


def cell(number: float, form: str) -> str:
    return "-" if isnan(number) else f"{number:{form}}"


def text_table(measured: Measured) -> list[str]:
    lines = [
        "| text to a model | MB | seconds | of which start-up | CPU seconds | MB/s | MB/s after start-up | peak MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in ("small", "large", "part"):
        for tool in measured.tools(name):
            taken, start = measured.found[f"{tool}, {name}"], measured.found[f"{tool}, tiny"].seconds
            mb = measured.mb[name]
            rates = f"{mb / taken.seconds:,.0f} | {cell(mb / after(taken.seconds, start), ',.0f')}"
            lines.append(
                f"| {tool} | {mb:,.0f} | {taken.seconds:.2f} | {start:.2f} | {taken.cpu:.2f} | {rates} | {taken.peak:,.0f} |"
            )
    return lines


def ratio_table(measured: Measured) -> list[str]:
    """How many times the MB/s of the others; of runs on files of unlike size the rates are compared."""

    def rates(tool: str, name: str) -> tuple[float, float, float]:
        taken, start = measured.found[f"{tool}, {name}"], measured.found[f"{tool}, tiny"]
        seconds = (taken.seconds, after(taken.seconds, start.seconds), after(taken.cpu, start.cpu))
        return tuple(measured.mb[name] / each for each in seconds)  # type: ignore[return-value]

    lines = [
        "| times the MB/s of others | whole process | after start-up | per CPU second after start-up | wanted |",
        "|---|---:|---:|---:|---:|",
    ]
    for what, others, theirs, wanted in (
        ("large file: of Vowpal Wabbit on it", THEIRS, "large", "3"),
        ("small file: of Vowpal Wabbit on it", THEIRS, "small", "1"),
        ("small file: of Vowpal Wabbit --sgd on it", THEIRS_PLAIN, "small", ""),
        ("large file: of scikit-learn on the small one", SKLEARN, "small", "25"),
        ("small file: of scikit-learn on it", SKLEARN, "small", ""),
        ("large file: of LIBLINEAR on a fourth of the small one", LIBLINEAR, "part", ""),
    ):
        times = [cell(a / b, ".1f") for a, b in zip(rates(OURS, what[:5]), rates(others, theirs), strict=True)]
        lines.append(f"| {what} | {' | '.join(times)} | {wanted} |")
    return lines


def time_table(measured: Measured) -> list[str]:
    lines = [
        "| where the time goes, large file | seconds after start-up | read | parse, all threads | learn | learning waits |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, label in (("train text", "text"), *((f"train {name}", name) for name, *_ in FORMATS)):
        end = json.loads(measured.found[name].last)
        parts = " | ".join(f"{end[part]:.2f}" for part in ("seconds", "read", "parse", "learn", "wait"))
        lines.append(f"| {label} | {parts} |")
    return lines


def file_table(measured: Measured) -> list[str]:
    lines = [
        "| the large file as | MB | converted in s | rows/s, whole process | of text's | rows/s after start-up | of text's |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows = measured.rows["large"]
    text = measured.found["train text"]
    inner = json.loads(text.last)["seconds"]
    for name in ("text", *(name for name, *_ in FORMATS)):
        taken = measured.found[f"train {name}"]
        seconds = json.loads(taken.last)["seconds"]
        mb = measured.mb["large" if name == "text" else name]
        made = measured.found.get(f"convert {name}")
        shown = "" if made is None else f"{made.seconds:.1f}"
        lines.append(
            f"| {name} | {mb:,.0f} | {shown} | {rows / taken.seconds:,.0f} | {text.seconds / taken.seconds:.1f} | "
            f"{rows / seconds:,.0f} | {inner / seconds:.1f} |"
        )
    return lines


def stream_table(measured: Measured) -> list[str]:
    lines = [
        "| standard input, comid, L1, hinge | MB | rows | weights | not 0 | peak MB resident |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, taken in measured.found.items():
        if name.startswith("stream "):
            end = json.loads(taken.last)
            counts = f"{end['rows']:,} | {end['weights']:,} | {end['nonzeros_last']:,}"
            lines.append(f"| {name[7:]} | {end['text_bytes'] / 1e6:,.0f} | {counts} | {taken.peak:,.0f} |")
    return lines


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--size", type=float, default=1500.0, help="MB of the large file")
    parser.add_argument("--small", type=float, default=150.0, help="MB of the small file")
    parser.add_argument("--stream", type=float, default=2000.0, help="MB through standard input")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        CHILDREN[args.child[0]](*args.child[1:])
        return 0
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measured = Measured(Path(folder), args)
        measured.text()
        measured.files()
        measured.streams()
    shape = measured.shape
    each = f"{shape['rows']:,} rows of {shape['nnz'] / shape['rows']:.0f} non-zeros"
    print(f"{each} in the small file, {shape['copies']} times that in the large one.")
    print(f"Vowpal Wabbit: `{VW}`, its own driver; onlinear: `{' '.join(COMID)}`.")
    for table in (text_table, ratio_table, time_table, file_table, stream_table):
        print("\n" + "\n".join(table(measured)))
    if args.json:
        found = {name: taken._asdict() for name, taken in measured.found.items()}
        args.json.write_text(json.dumps({"shape": shape, "mb": measured.mb, "runs": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
