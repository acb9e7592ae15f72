"""What shards cost: one worker and two, a round, a task, models that go from shard to shard, memory; and what follows.

    python benchmarks/shards.py [--gigabytes 2] [--folder FOLDER] [--write docs/many-machines.md] [--json FILE]

Generates sparse Parquet files in a folder of its own, which is removed at the end: rows of 50 entries of 1 over 2^18 columns,
drawn as 1 / rank, labels from a planted model of 2,000 weights. A fit (l1 = 1e-4, tol = 1e-3) with one process and with two,
each with one core; tasks that do nothing; results of 16 bytes a column that are merged; 32 penalties and ten classes that go
through the shards in four processes. From these a model of the costs, extrapolated to 1,000 machines and 2.1e12 non-zeros.
The machine has to be quiet.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import ceil, log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from onlinear import OnlineClassifier, PenaltyPath
from onlinear.shards import Blocks, Local, advance, fit, open_shards, rotate
from onlinear.streams.converted_writer import write_converted
from onlinear.streams.pairs import Pairs
from options import parser_of
from pages import fill, machine

ENTRIES, COLUMNS, SHARDS, PLANTED = 50, 2**18, 16, 2000
BLOCK = 20_000  # rows made at a time
BYTES = 12.0  # of an entry, as a rule: a column and a value
NOTHING, MANY, WIDE = 8, 512, 2**20  # tasks that do nothing; columns of results that are merged
WORKERS, PENALTIES, CLASSES = 4, 32, 10  # of a rotation
MACHINES, CORES, NONZEROS, WIDTH, PUBLISHED = 1000, 8, 2.1e12, 2**24, 70.0  # published: minutes, Agarwal et al. 2014


class Done(NamedTuple):
    """The result of a task that does nothing, or gives so many zeros."""

    sums: np.ndarray

    def merged(self, other: Done) -> Done:
        return Done(self.sums + other.sums)


def nothing(shard: Any, size: int) -> Done:
    return Done(np.zeros(size))


def blocks(rows: int, seed: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """Rows of a file."""
    draw, planted = np.random.default_rng(seed), np.random.default_rng(0)
    weights = np.zeros(COLUMNS)
    weights[planted.choice(20_000, PLANTED, replace=False)] = planted.standard_normal(PLANTED)
    for first in range(0, rows, BLOCK):
        n = min(BLOCK, rows - first)
        rank = np.minimum(np.exp(draw.random((n, ENTRIES)) * np.log(COLUMNS + 1.0)) - 1.0, COLUMNS - 1).astype(np.int64)
        X = sp.csr_array((np.ones(n * ENTRIES), rank.ravel(), np.arange(0, n * ENTRIES + 1, ENTRIES)), shape=(n, COLUMNS))
        X.sum_duplicates()
        X.data[:] = 1.0
        yield X, np.where(draw.random(n) < 1.0 / (1.0 + np.exp(-(X @ weights))), 1.0, -1.0)


def generate(folder: Path, gigabytes: float) -> tuple[int, int, int]:
    """Write the files; their rows, entries and bytes."""
    rows = int(gigabytes * 1e9 / (ENTRIES * BYTES) / SHARDS)
    entries = 0

    def counted(seed: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        nonlocal entries
        for X, y in blocks(rows, seed):
            entries += X.nnz
            yield X, y

    for k in range(SHARDS):
        write_converted(folder / f"part-{k:02}.parquet", Pairs(counted(1 + k)))
    return rows * SHARDS, entries, sum(path.stat().st_size for path in folder.iterdir())


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this process, and those that it starts, to so many cores: readers have threads of their own."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def fitted(shards: list[Any], workers: int) -> tuple[float, OnlineClassifier, float, float]:
    """Seconds of a fit, the model, seconds of its rounds, and the most memory of a worker."""
    rounds: list[Any] = []
    with on_cores(workers), Local(workers, processes=True) as runner:
        runner.reduce(nothing, shards[:workers], 1)  # the processes are there
        began = time.perf_counter()
        model = fit(OnlineClassifier(penalty="l1=1e-4", tol=1e-3), shards, runner, rounds.append)
        seconds = time.perf_counter() - began
        return seconds, model, sum(each.seconds for each in rounds), max(runner.map(resident, shards))


def task_seconds(runner: Any, size: int, tasks: int) -> float:
    """Seconds of a task that gives so many numbers, its merging included."""
    shards = [Blocks(str(k), ()) for k in range(tasks)]
    runner.reduce(nothing, shards[:NOTHING], size)
    began = time.perf_counter()
    runner.reduce(nothing, shards, size)
    return (time.perf_counter() - began) / tasks


def stamped(shard: Any, it: bytes, folder: str, *asked: Any) -> bytes:
    """``advance``, whose begin and end a file tells."""
    began = time.perf_counter()
    found = advance(shard, it, *asked)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        file.write(f"{began} {time.perf_counter()}")
    return found


class Stamped(Local):
    """Processes whose rotations are timed."""

    folder = ""

    def rotate(self, task: Any, shards: Any, carried: Any, *asked: Any) -> list[bytes]:
        return super().rotate(stamped, shards, carried, self.folder, *asked)


def busy(model: Any, shards: list[Any], group: int) -> tuple[float, float]:
    """The share of the workers' time that is spent in tasks, and the seconds of the rotation."""
    with Stamped(WORKERS, processes=True) as runner, tempfile.TemporaryDirectory() as folder:
        runner.folder = folder
        for _ in range(2):  # the second one finds its kernels compiled
            for path in Path(folder).iterdir():
                path.unlink()
            rotate([model], shards, runner, group=group)
            spans = np.array([path.read_text().split() for path in Path(folder).iterdir()], float)
    seconds = spans[:, 1].max() - spans[:, 0].min()
    return float((spans[:, 1] - spans[:, 0]).sum() / (WORKERS * seconds)), float(seconds)


def digits() -> list[Blocks]:
    X, y = load_digits(return_X_y=True)
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    ends = np.linspace(0, len(y), 9).astype(int)
    return [Blocks(f"rows {a}", ((X[a:b], y[a:b]),)) for a, b in pairwise(ends.tolist())]


def on_dask(size: int, tasks: int) -> float | None:
    """``task_seconds`` of a cluster of two processes; None without Dask."""
    try:
        from distributed import Client, LocalCluster

        from onlinear.dask import OnDask
    except ImportError:
        return None
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster, Client(cluster) as client:
        return task_seconds(OnDask(client), size, tasks)


def resident(shard: Any = None) -> float:
    """The most memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():  # where there is no other word, that of the system, which for a worker may be its parent's
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))) / 1024.0


def extrapolated(per_entry: float, task: float, per_byte: float, passes: int) -> tuple[float, float, float]:
    """Minutes of reading, of tasks and of merging on the machines of the published run, four shards a core."""
    shards = 4 * MACHINES * CORES
    reading = per_entry * NONZEROS / (MACHINES * CORES)
    merging = ceil(log2(shards)) * 16.0 * WIDTH * per_byte
    return tuple(passes * part / 60.0 for part in (reading, shards * task, merging))  # type: ignore[return-value]


def main() -> int:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of entries, at 12 bytes each")
    parser.add_argument("--folder", help="where the files are made")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        rows, entries, size = generate(folder, args.gigabytes)
        shards = open_shards(str(folder / "*.parquet"))
        fitted(shards[:2], 2)  # compiles what is needed
        one, model, looking, worker = fitted(shards, 1)
        two, same, _, _ = fitted(shards, 2)
        assert (model.coef_ == same.coef_).all()
        path = busy(PenaltyPath(OnlineClassifier(), np.geomspace(1e-6, 1e-3, PENALTIES)), shards[:8], 8)
    finally:
        shutil.rmtree(folder)
    classes = busy(OnlineClassifier(solver="ftrl", average="weighted-t1"), digits(), 3)
    with Local(2, processes=True) as runner:
        empty, wide = task_seconds(runner, 1, MANY), task_seconds(runner, 2 * WIDE, 32)
    dask_empty, dask_wide = on_dask(1, MANY), on_dask(2 * WIDE, 32)
    readings = model.n_passes_ - 2
    per_entry, per_byte = looking / (readings * entries), (dask_wide or wide) / (16.0 * WIDE)
    minutes = extrapolated(per_entry, dask_empty or empty, per_byte, model.n_passes_)
    lines = [
        f"{rows:,} rows, {entries:,} entries, {size / 1e9:.2f} GB of Parquet in {SHARDS} files; {model.n_passes_} passes to a "
        f"certified gap of {model.dual_gap_:.1e}, {int(np.count_nonzero(model.coef_)):,} weights that are not 0.",
        "",
        "| what | measured |",
        "|---|---:|",
        f"| fit, one process on one core | {one:.1f} s |",
        f"| fit, two on two | {two:.1f} s, {one / two:.2f} times as fast (1.8 wanted) |",
        f"| a reading, for each entry and core | {1e9 * per_entry:.1f} ns |",
        f"| a task that does nothing, two local processes; a Dask cluster of two | {1e3 * empty:.2f} ms; {shown(dask_empty)} |",
        f"| a result of {16 * WIDE / 1e6:.0f} MB, sent and merged | {1e3 * wide:.0f} ms; {shown(dask_wide)} |",
        f"| most memory of this process, of a worker | {resident():.0f} MB; {worker:.0f} MB |",
        f"| {PENALTIES} penalties over 8 shards, {WORKERS} workers: busy | {100 * path[0]:.0f} % of {path[1]:.1f} s |",
        f"| {CLASSES} classes over 8 shards, in groups of 3: busy | {100 * classes[0]:.0f} % of {classes[1]:.1f} s |",
        "",
        f"On {MACHINES:,} machines of {CORES} cores with {NONZEROS:.1e} non-zeros, {WIDTH:,} columns and four shards a core "
        f"that makes, for {model.n_passes_} passes: {minutes[0]:.0f} minutes of reading, {minutes[1]:.0f} of tasks that one "
        f"scheduler hands out, {minutes[2]:.1f} of merging; {PUBLISHED:.0f} minutes were published for {MACHINES:,} nodes "
        "(Agarwal et al., 2014). "
        + ("The scheduler breaks first: make shards larger." if minutes[1] > minutes[0] else "Reading is most of it."),
        "",
        f"({machine()}.)",
    ]
    text = "\n".join(lines)
    print(text)
    if args.write:
        fill(args.write, "shards", text)
    if args.json:
        found = {"one": one, "two": two, "path": path, "classes": classes, "task": empty, "dask task": dask_empty}
        args.json.write_text(json.dumps(found | {"cores": os.cpu_count(), "minutes": minutes}, indent=1))
    return 0


def shown(seconds: float | None) -> str:
    return "not run" if seconds is None else f"{1e3 * seconds:.2f} ms" if seconds < 0.01 else f"{1e3 * seconds:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
