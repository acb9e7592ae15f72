"""How Parquet files of converted rows are laid out: what each way takes on disk and to read.

    python benchmarks/layouts.py [--rows 150000] [--repeats 9] [--page docs/streams.md] [--json FILE]

The rows are those of throughput.py, values rounded to six decimals. One thread reads and checks them; rows/s are those of the
process's CPU time, the best of alternating repeats, as are those of the svmlight text, which one thread parses. ``--page`` is
where the table goes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pages
from onlinear.streams import converted_writer
from onlinear.streams.blocks import Stream
from onlinear.streams.converted_reader import Converted
from onlinear.streams.converted_writer import LAYOUT, write_converted
from onlinear.streams.pairs import Pairs
from onlinear.streams.svmlight import Svmlight
from onlinear.streams.svmlight_writer import write_svmlight
from options import parser_of
from throughput import text_like

MIB = 1 << 20
INDICES = "indices.list.element"
BEST = "as it is"


class Change(NamedTuple):
    """What is changed of the layout."""

    group: int | None = None  # entries of a row group
    options: Any = None  # of the writer
    codec: str | None = None  # of every column
    lists: bool = False  # of numbers, in place of their bytes


CHANGES = {
    BEST: Change(),
    "row groups of 262,144 entries": Change(1 << 18),
    "row groups of 32,768 entries": Change(1 << 15),
    "pages of 1 MiB": Change(options={"data_page_size": MIB}),
    "LZ4 for all columns": Change(codec="lz4"),
    "Zstandard for all columns": Change(codec="zstd"),
    "dictionaries": Change(options={"use_dictionary": True}),
    "lists of numbers": Change(lists=True),
    "the same, indices as differences": Change(options={"column_encoding": {INDICES: "DELTA_BINARY_PACKED"}}, lists=True),
}


def write(path: Path, text: Path, change: Change, float32: bool) -> None:
    """Rows as Parquet, in another layout."""
    group, options, codec, lists = change
    with ExitStack() as stack:
        stack.enter_context(patch.object(converted_writer, "LAYOUT", {**LAYOUT, **(options or {})}))
        if group is not None:
            stack.enter_context(patch.object(converted_writer, "ENTRIES", group))
        if codec is not None:
            stack.enter_context(patch.object(converted_writer, "_choose_codec", lambda batch, name: codec))
        if lists:
            schema = converted_writer._schema(float32, lists=True)
            stack.enter_context(patch.object(converted_writer, "_schema", lambda float32, lists: schema))
            stack.enter_context(patch.object(converted_writer, "COLUMNS", ("label", "weight", INDICES, "values.list.element")))
            stack.enter_context(patch.object(converted_writer, "_choose_codec", lambda batch, name: "none"))
        write_converted(path, Svmlight((str(text),)), float32=float32)


def seconds(make: Callable[[], Stream]) -> float:
    """CPU time of reading all rows."""
    began = time.process_time()
    for _ in make():
        pass
    return time.process_time() - began


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "rows.svm"
        X, y = text_like(args.rows)
        X.data = X.data.round(6)
        write_svmlight(text, Pairs([(X, y)]))
        files, streams = {"svmlight text": text}, {"svmlight text": lambda: Svmlight((str(text),), threads=1)}
        for number, (name, change) in enumerate([*CHANGES.items(), (f"{BEST}, --float32", CHANGES[BEST])]):
            path = files[name] = Path(folder) / f"{number}.parquet"
            write(path, text, change, "float32" in name)
            streams[name] = lambda path=path: Converted((str(path),), threads=1)  # type: ignore[misc]
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
        args.json.write_text(json.dumps({"rows": args.rows, "bytes": size, "CPU seconds": best}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
