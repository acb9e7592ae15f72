"""Compressed text: how much slower a stream is than what decompresses it.

    python benchmarks/packed.py [--copies 4] [--repeats 7] [--json FILE]

The rows are those of parser.py with values of four digits, several times over. "Alone" is zlib, or Arrow's Zstandard, over the
file in the page cache, in pieces of 64 KB to 256 KB. "Read" is a pass of the stream: decompress, cut into lines, parse, check.
"Trained" is a pass of a default classifier over that stream, as ``fit`` makes it. MB are those of the text, seconds those of
the clock; medians of runs that take turns.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from onlinear import OnlineClassifier, streams
from options import parser_of
from parser import text

WANTED = 0.9
PIECE, TEXT = 1 << 16, 1 << 18
ROWS = 40_000


def alone(path: str) -> None:
    """Decompress the file, or read it."""
    if path.endswith(".gz"):
        with open(path, "rb", buffering=0) as file:
            member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            while packed := member.unconsumed_tail or file.read(PIECE):
                member.decompress(packed, TEXT)
        return
    with pa.CompressedInputStream(pa.OSFile(path), "zstd") if path.endswith(".zst") else pa.OSFile(path) as file:
        target = memoryview(bytearray(TEXT))
        while file.readinto(target):
            pass


def read(path: str) -> None:
    for _ in streams.open(path):
        pass


def trained(path: str) -> None:
    OnlineClassifier().fit(streams.open(path))


def pack(folder: Path, content: bytes) -> dict[str, str]:
    """The text as files: plain and compressed, by what they are."""
    found = {
        "plain": folder / "rows.svm",
        "gzip, level 6": folder / "rows.svm.gz",
        "Zstandard, level 3": folder / "rows.svm.zst",
    }
    plain, gz, zst = found.values()
    plain.write_bytes(content)
    gz.write_bytes(gzip.compress(content, 6))
    with pa.OSFile(str(zst), "wb") as sink, pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return {name: str(path) for name, path in found.items()}


def speeds(paths: list[str], size: int, repeats: int) -> dict[str, dict[str, float]]:
    """MB/s of each file and each thing done with it: medians of runs in turns, after one that does not count."""
    ways: dict[str, Callable[[str], None]] = {"alone": alone, "read": read, "trained": trained}
    seconds: dict[tuple[str, str], list[float]] = {(path, way): [] for path in paths for way in ways}
    for _ in range(repeats + 1):
        for path, way in seconds:
            began = time.perf_counter()
            ways[way](path)
            seconds[path, way].append(time.perf_counter() - began)
    return {path: {way: size / 1e6 / float(np.median(seconds[path, way][1:])) for way in ways} for path in paths}


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    content = text(ROWS, ".4f") * args.copies
    with tempfile.TemporaryDirectory() as folder:
        paths = pack(Path(folder), content)
        found = speeds(list(paths.values()), len(content), args.repeats)
        sizes = {path: os.path.getsize(path) for path in paths.values()}
    print(f"{len(content) / 1e6:.0f} MB of text. The share wanted of a decompressor alone: {WANTED:g}.\n")
    print("| file | MB on disk | alone, MB/s | read, MB/s | share | trained, MB/s | share |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, path in paths.items():
        each = found[path]
        shares = [f"{each[way] / each['alone']:.2f}" if name != "plain" else "" for way in ("read", "trained")]
        row = [
            name,
            f"{sizes[path] / 1e6:.0f}",
            f"{each['alone']:.0f}",
            f"{each['read']:.0f}",
            shares[0],
            f"{each['trained']:.0f}",
        ]
        print(f"| {' | '.join([*row, shares[1]])} |")
    if args.json:
        args.json.write_text(json.dumps({name: found[path] for name, path in paths.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
