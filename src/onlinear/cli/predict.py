"""``onlinear predict``: one prediction per row, in the order of the rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from onlinear.cli.command import Reading, UsageError, app, guarded, reads, usage
from onlinear.cli.show import say_errors


@app.command()
@reads
@guarded
def predict(
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[list[str], typer.Argument(help="What to predict, as for train.", show_default=False)],
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write to this file, not to standard output.")] = None,
    kind: Annotated[str, typer.Option("--as", help="labels, scores or probabilities.")] = "labels",
    *,
    reading: Reading,
) -> None:
    """Predict: one line per row, in the order of the rows."""
    from onlinear import load, run, streams

    if kind not in ("labels", "scores", "probabilities"):
        raise UsageError(f"--as must be labels, scores or probabilities, got {kind!r}.")
    learnt = load(model)
    with usage():
        stream = streams.open(source, **reading._asdict())
    with open(output, "w") if output is not None else _standard_output() as file:
        for block in stream:
            file.write(run.lines(run.predictions(learnt, block, kind)))
    say_errors(stream)


@contextmanager
def _standard_output() -> Iterator[Any]:
    yield sys.stdout
    sys.stdout.flush()
