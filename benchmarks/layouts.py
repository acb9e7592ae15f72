"""How Parquet files of converted rows are laid out: what each way takes on disk and to read.

    python benchmarks/layouts.py [--rows 150000] [--repeats 9] [--page docs/streams.md] [--json FILE]

The rows are those of throughput.py, values rounded to six decimals. One thread reads and checks them; rows/s are those of the
process's CPU time, the best of alternating repeats, as are those of the svmlight text, which one thread parses. ``--page`` is
where the table goes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pages
from onlinear.streams import sparse
from onlinear.streams.blocks import Stream
from onlinear.streams.pairs import Pairs
from onlinear.streams.sparse import ENTRIES, LAYOUT, Sparse, write_sparse
from onlinear.streams.svmlight import Svmlight
from onlinear.streams.text import write_svmlight
from throughput import text_like

MIB = 1 << 20
INDICES = "indices.list.element"
# what is changed of the layout: name: (entries of a row group, options of the writer, codec of every column)
CHANGES: dict[str, tuple[int | None, dict[str, Any], str | None]] = {
    "as it is": (None, {}, None),
    "row groups of a million entries": (ENTRIES, {}, None),
    "the same, pages of 1 MiB": (ENTRIES, {"data_page_size": MIB}, None),
    "row groups of 32,768 entries": (1 << 15, {}, None),
    "LZ4 for all columns": (None, {}, "lz4"),
    "Zstandard for all columns": (None, {}, "zstd"),
    "dictionaries": (None, {"use_dictionary": True}, None),
    "indices as differences": (None, {"column_encoding": {INDICES: "DELTA_BINARY_PACKED"}}, None),
}


def write(path: Path, text: Path, change: tuple[int | None, dict[str, Any], str | None], float32: bool) -> None:
    """Rows as Parquet, in another layout."""
    group, options, codec = change
    with ExitStack() as stack:
        stack.enter_context(patch.object(sparse, "LAYOUT", {**LAYOUT, **options}))
        if group is not None:
            stack.enter_context(patch.object(sparse, "GROUP", group))
        if codec is not None:
            stack.enter_context(patch.object(sparse, "_codec", lambda batch, name: codec))
        write_sparse(path, Svmlight((str(text),)), float32=float32)


def seconds(make: Callable[[], Stream]) -> float:
    """CPU time of reading all rows."""
    began = time.process_time()
    for _ in make():
        pass
    return time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "rows.svm"
        X, y = text_like(args.rows)
        X.data = X.data.round(6)
        write_svmlight(text, Pairs([(X, y)]))
        files, streams = {"svmlight text": text}, {"svmlight text": lambda: Svmlight((str(text),), threads=1)}
        for number, (name, change) in enumerate([*CHANGES.items(), ("as it is, --float32", CHANGES["as it is"])]):
            path = files[name] = Path(folder) / f"{number}.parquet"
            write(path, text, change, "float32" in name)
            streams[name] = lambda path=path: Sparse((str(path),), threads=1)  # type: ignore[misc]
        best = dict.fromkeys(streams, float("inf"))
        for _ in range(args.repeats):
            for name, make in streams.items():
                best[name] = min(best[name], seconds(make))
        lines = ["| layout | MB | rows per CPU second | of the text's |", "|---|---:|---:|---:|"]
        size = {name: path.stat().st_size for name, path in files.items()}
        for name in files:
            rate, times = args.rows / best[name], best["svmlight text"] / best[name]
            lines.append(f"| {name} | {size[name] / 1e6:,.0f} | {rate:,.0f} | {times:.1f} |")
    table = "\n".join([*lines, "", f"({args.rows:,} rows, best of {args.repeats}; {pages.machine()}.)"])
    print(table)
    if args.page:
        pages.fill(args.page, "layouts", table)
    if args.json:
        Path(args.json).write_text(json.dumps({"rows": args.rows, "bytes": size, "CPU seconds": best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
