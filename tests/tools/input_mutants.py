"""Mutated data files through the real readers: each is refused in words or read, and none harms the process.

    python tests/tools/input_mutants.py --mutants 20000 --seed 0

Arrow (file and stream format), Parquet and converted rows, CSV, Vowpal Wabbit and svmlight text, text also compressed. Bytes
and structures are changed; each mutant is opened, read to its end and learned by a small model, in a child process with limits
of memory and time. A mutant is known by its seed and number: ``--first N --mutants 1`` repeats one.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import os
import random
import select
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

REFUSED, READ, CRASH, HANG, LARGE, RAW = "refused", "read", "crash", "hang", "over 1 GB", "raw error"
HARM = (CRASH, HANG, LARGE, RAW)
ADDRESS_SPACE = 8 << 30
MOST = 1 << 30  # bytes of memory at the highest
PATIENCE = 30.0  # seconds for a mutant
BATCH = 500  # of a child
NUMBERS = [
    0,
    1,
    -1,
    2,
    7,
    127,
    -128,
    255,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**40,
    10**12,
    2**62,
    2**63 - 1,
    -(2**63),
]


class Seed(NamedTuple):
    """A valid file: the end of its name, its bytes, and the options it is opened with."""

    suffix: str
    content: bytes
    options: dict[str, Any]


# --- valid files -----------------------------------------------------------------------------------------------------


def table(rng: random.Random) -> pa.Table:
    """A table with columns of kinds that are features, and now and then of others."""
    n = rng.choice([1, 2, 5, 40, 200])
    kinds: list[Callable[[], Any]] = [
        lambda: pa.array([rng.choice([None, 0.0, 1.5, -2.0]) for _ in range(n)], pa.float64()),
        lambda: pa.array([rng.randrange(-9, 9) for _ in range(n)], rng.choice([pa.int8(), pa.int32(), pa.int64()])),
        lambda: pa.array(
            [rng.choice(["red", "green", "", "blå"]) for _ in range(n)], rng.choice([pa.string(), pa.large_string()])
        ),
        lambda: pa.array([rng.choice(["red", None, "x" * 30]) for _ in range(n)], pa.string()),
        lambda: pa.array([rng.choice(["u", "v", None]) for _ in range(n)], pa.string()).dictionary_encode(),
        lambda: pa.array([rng.random() < 0.5 for _ in range(n)]),
        lambda: pa.array([rng.randrange(20000) for _ in range(n)], pa.int32()).cast(pa.date32()),
        lambda: pa.array([rng.randrange(10**15) for _ in range(n)], pa.timestamp("us")),
        lambda: pa.array([Decimal(rng.randrange(9999)) / 8 for _ in range(n)], pa.decimal128(12, 3)),
        lambda: pa.array(["view" * rng.randrange(9) for _ in range(n)], pa.string_view()),
    ]
    odd: list[Callable[[], Any]] = [
        lambda: pa.array([[1, 2]] * n),
        lambda: pa.array([{"a": [1]}] * n),
        lambda: pa.array([b"bytes"] * n),
        lambda: pa.nulls(n),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([1.0])),
        lambda: pa.array([1] * n, pa.duration("s")),
        lambda: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
    ]
    columns = {f"c{k}": rng.choice(kinds)() for k in range(rng.randrange(1, 6))}
    if rng.random() < 0.15:
        columns["odd"] = rng.choice(odd)()
    return pa.table({"y": pa.array([float(i % 2) for i in range(n)]), **columns})


TABLE_OPTIONS = {"target": "y", "missing": "omit", "dates": "days"}


def arrow(rng: random.Random) -> Seed:
    found, sink = table(rng), io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=rng.choice([None, None, "zstd", "lz4"]))
    make = pa.ipc.new_stream if rng.random() < 0.1 else pa.ipc.new_file
    with make(sink, found.schema, options=options) as writer:
        writer.write_table(found, max_chunksize=rng.choice([7, 1000]))
    return Seed(".arrow", sink.getvalue(), {**TABLE_OPTIONS, "categories": rng.choice(["hash", "one-hot"])})


def parquet(rng: random.Random) -> Seed:
    found, sink = table(rng), io.BytesIO()
    found = found.drop_columns(
        [n for n in found.column_names if pa.types.is_run_end_encoded(found[n].type) or pa.types.is_interval(found[n].type)]
    )
    packing = {
        "compression": rng.choice(["none", "snappy", "zstd", "gzip", "lz4"]),
        "use_dictionary": rng.random() < 0.5,
        "store_schema": rng.random() < 0.3,
    }
    pq.write_table(found, sink, row_group_size=rng.choice([7, 1000]), data_page_version=rng.choice(["1.0", "2.0"]), **packing)
    return Seed(".parquet", sink.getvalue(), {**TABLE_OPTIONS, "categories": rng.choice(["hash", "one-hot"])})


def converted(rng: random.Random) -> Seed:
    from onlinear import streams
    from onlinear.streams.converted_writer import write_converted

    suffix = rng.choice([".arrow", ".parquet"])
    with tempfile.TemporaryDirectory() as folder:
        text, path = Path(folder, "a.svm"), Path(folder, f"a{suffix}")
        text.write_bytes(svmlight_text(rng))
        write_converted(path, streams.open(text), float32=rng.random() < 0.3)
        return Seed(suffix, path.read_bytes(), {})


def svmlight_text(rng: random.Random) -> bytes:
    lines = []
    for i in range(rng.choice([1, 3, 30, 200])):
        columns = sorted(rng.sample(range(1, 60), rng.randrange(6)))
        lines.append(" ".join([str(i % 2), *(f"{j}:{rng.choice(['1', '-0.5', '2e3', '0.125'])}" for j in columns)]))
    return ("\n".join(lines) + "\n").encode()


def vw_text(rng: random.Random) -> bytes:
    lines = []
    for i in range(rng.choice([1, 3, 30, 200])):
        features = " ".join(rng.choice(["a", "b:2", "c:-1.5", "d^e", "f"]) for _ in range(rng.randrange(5)))
        lines.append(f"{i % 2} {rng.choice(['', '2.5 ', '1 0 '])}|{rng.choice(['', 'ns', 'user:0.5'])} {features} |g h")
    return ("\n".join(lines) + "\n").encode()


def csv_text(rng: random.Random) -> bytes:
    n, values = (
        rng.choice([1, 3, 30, 200]),
        ["1", "-2.5", "", "NA", "true", "red", '"a,b"', '"say ""x"""', "2024-01-02", '"two\nlines"'],
    )
    fixed = [rng.choice(values) for _ in range(3)]
    lines = ["y,a,b,c"] + [",".join([str(i % 2), *(value if rng.random() < 0.8 else "" for value in fixed)]) for i in range(n)]
    return (rng.choice(["\n", "\r\n"]).join(lines) + "\n").encode()


TEXTS: dict[str, tuple[Callable[[random.Random], bytes], dict[str, Any]]] = {
    ".svm": (svmlight_text, {}),
    ".vw": (vw_text, {}),
    ".csv": (csv_text, TABLE_OPTIONS),
}
TOKENS = [b"\x00", b"\xef\xbb\xbf", b"\r", b"\n\n", b'"', b",", b"|", b":", b"nan", b"inf", b"1e999", b"9" * 400,
    b"\xff", b"\xc3", b"#", b"-", b" ", b"2147483647:1", b"400000000:1"]  # fmt: skip


def zst(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zst,
}


# --- mutants ---------------------------------------------------------------------------------------------------------


def mutated(rng: random.Random, content: bytes, text: bool) -> bytes:
    """The bytes after one to four changes."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4]) if text else rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(content) + 1)
        where = 1.0 if text else rng.random()
        if where < 0.6:
            at = int(at * 0.6)  # in the rows, where a file's own description stands behind them
        elif where < 0.7:
            at = max(0, len(content) - 1 - int(rng.expovariate(0.01)))
        kind = rng.randrange(9) if text or rng.random() < 0.15 else rng.choice([0, 1, 2, 3, 8])
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif kind in (2, 3):
            size = rng.choice([4, 8])
            number = rng.choice(NUMBERS) % 2 ** (8 * size)
            at = at // size * size if rng.random() < 0.7 else at
            content = content[:at] + number.to_bytes(size, "little") + content[at + size :]
        elif kind == 4:
            content = content[:at]
        elif kind == 5:
            content = content[:at] + content[at + rng.choice([1, 2, 8, 100]) :]
        elif kind == 6:
            content = content[: at + rng.choice([1, 8, 100])] + content[at:]
        elif kind == 7:
            content = content[:at] + (rng.choice(TOKENS) if text else rng.randbytes(rng.choice([1, 4, 16]))) + content[at:]
        else:
            other = rng.randrange(len(content) + 1)
            content = content[:at] + content[other : other + 16] + content[at + 16 :]
    return content


def mutant(seed: int, number: int) -> Seed:
    """A mutant by its number."""
    rng = random.Random(f"{seed} {number}")
    kind = rng.choice(["arrow", "arrow", "parquet", "parquet", "converted", ".svm", ".vw", ".csv"])
    if kind in TEXTS:
        make, options = TEXTS[kind]
        packing = rng.choice(["", *PACKERS])
        text = mutated(rng, make(rng), text=True)
        packed = PACKERS[packing](text)
        if packing and rng.random() < 0.5:
            packed = mutated(rng, packed, text=False)
        return Seed(kind + packing, packed, {**options, "max_errors": rng.choice([0, 0, 3, 10**6])})
    found = {"arrow": arrow, "parquet": parquet, "converted": converted}[kind](rng)
    return found._replace(content=mutated(rng, found.content, text=False))


# --- the child -------------------------------------------------------------------------------------------------------


def outcome(path: str, options: dict[str, Any]) -> tuple[str, str]:
    """Open, read and learn: what became of it, and what was said."""
    from onlinear import Learner, streams
    from onlinear.errors import DivergenceError
    from onlinear.streams import StreamError

    try:
        learner = Learner("comid,eta=0.01", "squared", "l1,l1=1e-3")
        for block in streams.open(path, **options):
            learner.learn(block.X, block.y, block.weights)
            block.where(block.n - 1)
        learner.weights()
        return READ, ""
    except (StreamError, DivergenceError) as error:
        return REFUSED, str(error)
    except OSError as error:
        return (REFUSED if os.path.basename(path) in str(error) else RAW), f"{type(error).__name__}: {error}"
    except Exception as error:
        said = f"{type(error).__name__}: {error} @ {traceback.extract_tb(error.__traceback__)[-1].lineno}"
        return (REFUSED if type(error) is ValueError else RAW), said


def peak(reset: bool = False) -> int:
    """The most memory held since the last reset, in bytes; 0 where the system does not tell."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
            return 0
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    except OSError:
        return 0


def child(seed: int, first: int, count: int) -> None:
    """Read some mutants and print a line for each: its number, outcome and message."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            found = mutant(seed, number)
            path = Path(folder, f"mutant{found.suffix}")
            path.write_bytes(found.content)
            peak(reset=True)
            kind, said = outcome(str(path), found.options)
            if peak() > MOST:
                kind, said = LARGE, f"{peak() / 1e9:.2f} GB; {kind} {said}"
            print(f"{number}\t{kind}\t{found.suffix}\t{said[:300]!r}", flush=True)


# --- the parent ------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What became of a mutant."""

    number: int
    kind: str
    suffix: str
    said: str


def outcomes(seed: int, first: int, count: int, patience: float = PATIENCE) -> Iterator[Outcome]:
    """What becomes of each mutant, read by child processes one after the other."""
    number, last = first, first + count
    while number < last:
        command = [
            sys.executable,
            __file__,
            "--child",
            str(min(BATCH, last - number)),
            "--first",
            str(number),
            "--seed",
            str(seed),
        ]
        environment = {**os.environ, "ONLINEAR_STATE_LIMIT": "200MB"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=environment) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            told, wait = 0, 4 * patience  # for the first there is more to import and compile
            while select.select([process.stdout], [], [], wait)[0] and (line := process.stdout.readline()):
                _, kind, suffix, said = line.decode().rstrip("\n").split("\t", 3)
                yield Outcome(number, kind, suffix, said)
                number, told, wait = number + 1, told + 1, patience
            if process.poll() is None and told < int(command[3]):
                try:
                    process.wait(1.0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    yield Outcome(number, HANG, mutant(seed, number).suffix, "")
                    number += 1
                    continue
            code, errors = process.wait(), process.stderr.read().decode(errors="replace")
            if code != 0 and number < last:
                yield Outcome(number, CRASH, mutant(seed, number).suffix, f"exit code {code} {errors[-300:]}")
                number += 1


def run(count: int, seed: int = 0, first: int = 0, tell: Callable[[str], None] = print) -> Counter[str]:
    """Read the mutants, tell of each that did harm, and of all at the end; how many there were of each outcome."""
    total, by_kind = Counter[str](), Counter[str]()
    for found in outcomes(seed, first, count):
        total[found.kind] += 1
        by_kind[f"{found.suffix} {found.kind}"] += 1
        if found.kind in HARM or count == 1:
            tell(f"mutant {found.number} of seed {seed} ({found.suffix}): {found.kind}: {found.said}")
    tell(", ".join(f"{name} {number}" for name, number in sorted(by_kind.items())))
    tell(
        f"{sum(total.values())} mutants: {total[REFUSED]} refused, {total[READ]} read, {total[CRASH]} crashes, "
        f"{total[HANG]} hangs, {total[LARGE]} over 1 GB, {total[RAW]} raw errors"
    )
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--child", type=int, default=0, help="read so many in this process (what the others do)")
    given = parser.parse_args()
    if given.child:
        child(given.seed, given.first, given.child)
        return
    total = run(given.mutants, given.seed, given.first)
    sys.exit(1 if any(total[kind] for kind in HARM) else 0)


if __name__ == "__main__":
    main()
