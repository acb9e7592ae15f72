"""``onlinear convert``: rows of any format as sparse Parquet or Arrow, which later passes read without parsing, or as text."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from onlinear.cli.command import Reading, UsageError, app, guarded, inputs, reads, writable
from onlinear.cli.lines import json_text, rows_in_words, say_errors, size
from onlinear.text.names import printable

STDOUT = "-"


@app.command()
@reads
@guarded
def convert(
    source: Annotated[list[str], typer.Argument(help="Files to convert, in any format that train reads.", show_default=False)],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .parquet or .arrow (sparse rows), else svmlight text (also .gz, .bz2, .xz, .zst); - for "
            "standard output.",
            show_default=False,
        ),
    ],
    float32: Annotated[bool, typer.Option("--float32", help="Parquet, Arrow: round values to single precision.")] = False,
    output_base: Annotated[
        int | None,
        typer.Option(help="svmlight: first index to write, 1 or 0.", min=0, max=1, show_default="that of the source"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
    *,
    reading: Reading,
) -> None:
    """Convert rows to sparse Parquet or Arrow, which is read faster than text, or back to svmlight text.

    Without --float32 every number keeps all its bits. Comments and qid: are left out.
    """
    from onlinear.files.paths import is_stream
    from onlinear.streams.suffixes import ARROW, CSV, PARQUET, SUFFIXES, form_of, strip_packing

    columns = form_of(output) in (PARQUET, ARROW)
    if float32 and not columns:
        raise UsageError(f"--float32 is for {', '.join((*SUFFIXES[PARQUET], *SUFFIXES[ARROW]))}; {printable(output)} is text.")
    if columns and output_base is not None:
        raise UsageError("--output-base is for svmlight text; columns of numbers start at 0.")
    if quiet and json:
        raise UsageError("--quiet and --json exclude each other.")
    if json and (output == STDOUT or is_stream(output)):
        raise UsageError(f"--json needs a file as --output, got {printable(output)}: the object might stand among the rows.")
    if output != STDOUT:
        writable("--output", output, inputs(source))
    if not columns and strip_packing(output).endswith((*SUFFIXES[CSV], ".vw")):
        raise UsageError(
            f"--output {printable(output)}: convert writes no such text, but .parquet, .arrow or svmlight text, as .svm."
        )
    if columns:
        from onlinear.streams.converted_writer import write_converted

        _convert(source, reading, output, partial(write_converted, float32=float32), quiet, json)
    else:
        from onlinear.streams.svmlight_writer import write_svmlight

        _convert(source, reading, output, partial(write_svmlight, base=output_base), quiet, json)


def _convert(
    source: list[str], reading: Reading, output: str, write: Callable[[str, Any], int], quiet: bool, json: bool
) -> None:
    """Write the rows to ``output``; ``write`` gives their number."""
    from onlinear.cli.reading import Watched, open_rows
    from onlinear.files.paths import is_stream

    piped = output == STDOUT or is_stream(output)  # a message on standard output might end up among the rows
    stream = open_rows(source, reading)
    began = time.perf_counter()
    rows = write(output, Watched(stream, not quiet and not json and not piped))
    say_errors(stream)
    if quiet or piped:
        return
    seconds, written = time.perf_counter() - began, os.path.getsize(output)
    if json:
        typer.echo(
            json_text({"rows": rows, "output": output, "bytes": written, "seconds": seconds, "skipped": len(stream.errors)})
        )
    else:
        typer.echo(f"{rows_in_words(rows)} written to {printable(output)} ({size(written)}) in {seconds:.2f} s")
