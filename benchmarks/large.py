"""Rows that are larger than memory may be: a certified fit from Parquet files, by one process and by workers on one machine.

    python benchmarks/large.py [--gigabytes 10] [--folder FOLDER] [--write .] [--json FILE]

Generates files of 60 dense columns of numbers in unlike units and 60 columns of counts of which 19 of 20 are 0, with labels
from a planted model of 20 weights; 10 GB of them, or what half of the free disk holds. They are removed at the end. Then
``onlinear train --tol 1e-4 --penalty l1=1e-3`` runs over them: as one process with all cores; with one worker on one core, and
with two workers on two. Peaks are resident memory of processes, as the system tells; a task is one file in one round. Where a
machine does other things too, the CPU of the busiest process tells more of what a second worker saves than the clock does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from options import parser_of

# This process imports nothing large: what it holds would count as its children's peak memory.
DENSE, RARE, FILES, PLANTED = 60, 60, 16, 20
GROUP = 50_000  # rows of a row group
FEW = 0.05  # of the counts that are not 0
TOL, PENALTY = "1e-4", "l1=1e-3"
PASSES, MEGABYTES, TIMES = 7, 1000, 1.8  # wanted
SINGLE, SHARDED = "large", "large shards"  # the markers
EACH = 0.05  # seconds between two looks at processes


# --- the files -------------------------------------------------------------------------------------------------------


def groups(rows: int, seed: int) -> Iterator[Any]:
    """The row groups of a file."""
    import numpy as np
    import pyarrow as pa

    planted, draw = np.random.default_rng(0), np.random.default_rng([1, seed])
    units, weights = 10.0 ** planted.uniform(-2.0, 3.0, DENSE), np.zeros(DENSE + RARE)
    weights[planted.choice(DENSE + RARE, PLANTED, replace=False)] = planted.normal(0.0, 0.6, PLANTED)
    shares = 1.0 + 2.0 * planted.random(RARE)
    names = [f"number_{k:02}" for k in range(DENSE)] + [f"count_{k:02}" for k in range(RARE)]
    for first in range(0, rows, GROUP):
        n = min(GROUP, rows - first)
        score, columns = np.full(n, -0.5), []
        shared = draw.standard_normal(n)
        for k in range(DENSE):
            x = 0.3 * shared + draw.standard_normal(n)
            score += weights[k] * x
            columns.append(units[k] * x)
        for k in range(RARE):
            x = np.zeros(n)
            some = draw.random(n) < FEW
            x[some] = draw.poisson(shares[k], int(some.sum())) + 1.0
            score += weights[DENSE + k] * x
            columns.append(x)
        label = (draw.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(np.int8)
        yield pa.table({**dict(zip(names, columns, strict=True)), "label": label})


def write_file(path: Path, rows: int, seed: int) -> int:
    """Write a file; its bytes."""
    import pyarrow.parquet as pq

    writer = None
    for table in groups(rows, seed):
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=table.schema.names[DENSE:-1])
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path.stat().st_size


def make(folder: str, gigabytes: str) -> None:
    """Write the files of so many GB together; print their rows and bytes."""
    each = write_file(Path(folder) / "part-00.parquet", 10_000, 0) / 10_000
    rows = max(1, int(float(gigabytes) * 1e9 / each / FILES))
    sizes = [write_file(Path(folder) / f"part-{k:02}.parquet", rows, k) for k in range(FILES)]
    print(json.dumps({"rows": rows * FILES, "bytes": sum(sizes)}))


# --- processes -------------------------------------------------------------------------------------------------------


class Process(NamedTuple):
    """What a process took so far."""

    peak: float  # MB resident
    cpu: float  # seconds


class Run(NamedTuple):
    """A command that has ended."""

    seconds: float
    lines: list[dict[str, Any]]
    own: Process
    others: list[Process]  # those that it started and that worked, the busiest first


def looked_at(pid: int) -> Process | None:
    """What the system tells of a process; None where it is gone, or nothing is told."""
    try:
        status, stat = Path(f"/proc/{pid}/status").read_text(), Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    peak = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    ticks = stat.rpartition(")")[2].split()[11:13]
    return Process(int(peak[0]) / 1e3, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")) if peak else None


def below(pid: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            continue
    return found


def run(command: list[str], cores: int | None = None) -> Run:
    """Run a command to its end on so many cores."""

    def keep() -> None:
        if cores is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

    seen: dict[int, Process] = {}
    ended = threading.Event()

    def watch(pid: int) -> None:
        while not ended.wait(EACH):
            for each in (pid, *below(pid)):
                found = looked_at(each)
                if found is not None:
                    seen[each] = found

    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, preexec_fn=keep)
    watching = threading.Thread(target=watch, args=(process.pid,))
    watching.start()
    assert process.stdout is not None
    lines = [json.loads(line) for line in process.stdout.read().decode().splitlines()]
    seconds = time.perf_counter() - began
    ended.set()
    watching.join()
    if process.wait():
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}.")
    own = seen.pop(process.pid, Process(float("nan"), float("nan")))
    others = sorted((each for each in seen.values() if each.cpu > 0.0), key=lambda each: -each.cpu)
    return Run(seconds, lines, own, others)


def train(folder: Path, *options: str, files: str = "*.parquet") -> list[str]:
    model = str(folder / "model.onlinear")
    fixed = ["--target", "label", "--tol", TOL, "--penalty", PENALTY, "--model", model, "--json"]
    return [sys.executable, "-m", "onlinear", "train", str(folder / files), *fixed, *options]


# --- tables ----------------------------------------------------------------------------------------------------------


def of_kind(found: Run, kind: str) -> list[dict[str, Any]]:
    return [line for line in found.lines if line["kind"] == kind]


def ended(found: Run) -> dict[str, Any]:
    return of_kind(found, "end")[0]


def single_table(found: Run) -> list[str]:
    end = ended(found)
    passes, gap, seconds = end["passes"], end["certified"]["gap"], end["seconds"]
    return [
        "| one process, all cores | measured | wanted |",
        "|---|---:|---:|",
        f"| readings of all rows, the online pass included | {passes} | {PASSES} at most |",
        f"| certified relative gap | {gap:.1e} | {TOL} |",
        f"| weights that are not 0; planted | {end['nonzeros']}; {PLANTED} | |",
        f"| most resident memory | {found.own.peak:.0f} MB | {MEGABYTES} MB at most |",
        f"| a reading, clock; CPU of all threads | {seconds / passes:.1f} s; {found.own.cpu / passes:.1f} s | |",
        f"| the whole command | {found.seconds:.0f} s | |",
    ]


def shard_table(one: Run, two: Run) -> list[str]:
    both = one, two
    rounds = [[line["seconds"] for line in of_kind(found, "certified")] for found in both]
    means = [sum(each) / len(each) for each in rounds]
    tasks = [workers * mean / FILES for workers, mean in zip((1, 2), means, strict=True)]
    seconds = [ended(found)["seconds"] for found in both]
    cpu = [found.own.cpu + sum(each.cpu for each in found.others) for found in both]
    busiest = max([two.own, *two.others], key=lambda each: each.cpu)
    workers = ", ".join(f"{each.peak:.0f}" for each in two.others[:2])
    return [
        "| | one worker, one core | two workers, two cores |",
        "|---|---:|---:|",
        f"| readings of all rows, certified gap | {' | '.join(map(passes_and_gap, both))} |",
        f"| the fit | {seconds[0]:.0f} s | {seconds[1]:.0f} s, {seconds[0] / seconds[1]:.2f} times as fast ({TIMES} wanted) |",
        f"| CPU of all processes | {cpu[0]:.0f} s | {cpu[1]:.0f} s |",
        f"| CPU of the busiest one | {one.own.cpu:.0f} s | {busiest.cpu:.0f} s, {one.own.cpu / busiest.cpu:.2f} times less |",
        f"| a round after the first two readings | {means[0]:.1f} s | {means[1]:.1f} s |",
        f"| a task of such a round | {tasks[0]:.2f} s | {tasks[1]:.2f} s |",
        f"| most resident memory | {one.own.peak:.0f} MB | {two.own.peak:.0f} MB of the command, {workers} MB of the workers |",
    ]


def passes_and_gap(found: Run) -> str:
    end = ended(found)
    return f"{end['passes']}, {end['certified']['gap']:.1e}"


def size_of(folder: Path, wanted: float) -> tuple[float, str]:
    """GB of files, and why so many."""
    half = shutil.disk_usage(folder).free / 2e9
    return (wanted, "as asked for") if wanted <= half else (half, "half of the free disk")


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--folder", help="where the files are made")
    parser.add_argument("--write", metavar="ROOT")
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "GIGABYTES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        make(*args.child)
        return 0
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        gigabytes, why = size_of(folder, args.gigabytes)
        made = run([sys.executable, __file__, "--child", str(folder), str(gigabytes)]).lines[0]
        for options in ((), ("--workers", "1")):  # which compile what is needed
            run(train(folder, *options, files="part-00.parquet"))
        single = run(train(folder))
        one, two = run(train(folder, "--workers", "1"), 1), run(train(folder, "--workers", "2"), 2)
    finally:
        shutil.rmtree(folder)
    from pages import fill, machine

    shape = (
        f"{made['rows']:,} rows of {DENSE} dense columns and {RARE} of counts that are mostly 0: {made['bytes'] / 1e9:.1f} GB "
        f"of Parquet in {FILES} files ({why}); `--tol {TOL} --penalty {PENALTY}`. ({machine()}.)"
    )
    texts = {
        name: "\n".join([shape, "", *lines])
        for name, lines in ((SINGLE, single_table(single)), (SHARDED, shard_table(one, two)))
    }
    print("\n\n".join(texts.values()))
    if args.write:
        fill(Path(args.write) / "docs/certified.md", SINGLE, texts[SINGLE])
        fill(Path(args.write) / "docs/many-machines.md", SHARDED, texts[SHARDED])
    if args.json:
        runs = {"single": single, "one": one, "two": two}
        found = {name: {"end": ended(each), "own": each.own, "others": each.others} for name, each in runs.items()}
        args.json.write_text(json.dumps(made | found | {"cores": os.cpu_count()}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
