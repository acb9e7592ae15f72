"""Speed of the svmlight parser from memory, on one core, with every check.

    python benchmarks/parser.py [--rows 40000] [--repeats 15] [--json FILE]

The rows are those of throughput.py: about 68 non-zeros over 47,000 columns. They are written with values of 4 digits, as data
sets are distributed, and with 17, as ``repr`` writes doubles. A figure is MB/s of the thread's own time: median, slowest and
fastest of the repeats, after one unmeasured run. "Loop" is the compiled loop into arrays that are there already, "reader" all
that a stream does from a file in the page cache: read, parse, check and hand out blocks of 1 MB.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from onlinear import streams
from onlinear.streams import svmlight
from options import parser_of
from throughput import text_like

TARGET = 450.0


def text(rows: int, form: str) -> bytes:
    """The rows as svmlight text, values formatted by ``form``."""
    X, y = text_like(rows)
    lines = []
    for i, label in enumerate(y):
        row = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip((X.indices[row] + 1).tolist(), X.data[row].tolist(), strict=True)
        lines.append(f"{label:+.0f} " + " ".join(f"{j}:{x:{form}}" for j, x in pairs) + "\n")
    return "".join(lines).encode()


def loop(content: bytes) -> Callable[[], None]:
    """One call of the compiled loop on all of the text."""
    array = np.frombuffer(content, np.uint8)
    room = svmlight.make_arrays(array, content.count(b"\n"), 1)

    def run() -> None:
        svmlight.parse(array, len(array), 1, True, svmlight.powers(), *room)
        if room.found[svmlight.WRONGS]:
            raise AssertionError("the benchmark's own text was refused")

    return run


def reader(path: str) -> Callable[[], None]:
    """One pass of the stream over the file."""

    def run() -> None:
        for _ in streams.open(path):
            pass

    return run


def speeds(run: Callable[[], None], size: int, repeats: int, clock: Callable[[], float]) -> list[float]:
    """MB/s of each repeat by the given clock."""
    run()
    found = []
    for _ in range(repeats):
        start = clock()
        run()
        found.append(size / 1e6 / (clock() - start))
    return found


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()

    print("| values | MB | bytes per non-zero | what | MB/s, median (slowest-fastest) | target |")
    print("|---|---:|---:|---|---|---:|")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for digits, form in ((4, ".4f"), (17, ".17g")):
            content = text(args.rows, form)
            path = Path(folder) / f"{digits}.svm"
            path.write_bytes(content)
            # The reader works in several threads: all of the process's time counts as its one core's.
            for name, run, clock in (
                ("loop", loop(content), time.thread_time),
                ("reader", reader(str(path)), time.process_time),
            ):
                found = speeds(run, len(content), args.repeats, clock)
                results[f"{name}, {digits} digits"] = found
                spread = f"{np.median(found):.0f} ({min(found):.0f}-{max(found):.0f})"
                goal = f"{TARGET:.0f}" if (name, digits) == ("loop", 4) else ""
                each = len(content) / content.count(b":")
                print(f"| {digits} digits | {len(content) / 1e6:.0f} | {each:.1f} | {name} | {spread} | {goal} |")
    if args.json:
        args.json.write_text(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
