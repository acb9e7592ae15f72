"""``onlinear predict``: one prediction per row, in the order of the rows, as text, CSV, Parquet or Arrow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from onlinear.cli.command import Reading, UsageError, app, guarded, inputs, reads, writable
from onlinear.cli.interrupts import Interrupts
from onlinear.cli.show import say_errors

KINDS = ("labels", "scores", "probabilities")
Write = Callable[[Any], None]


@app.command()
@reads
@guarded
def predict(
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[
        list[str], typer.Argument(help="The rows to predict, in any format that train reads.", show_default=False)
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Write to this file: .csv, .parquet, .arrow, or else text.", show_default="standard output"
        ),
    ] = None,
    kind: Annotated[str, typer.Option("--as", help="labels (or numbers), scores, or probabilities.")] = "labels",
    header: Annotated[bool, typer.Option("--header", help="Text: the first line names the columns.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    *,
    reading: Reading,
) -> None:
    """Predict: one line per row, in the order of the rows."""
    from onlinear.cli.reading import Watched, open_rows
    from onlinear.models.loading import load

    if kind not in KINDS:
        raise UsageError(f"--as must be labels, scores or probabilities, got {kind!r}.")
    if output is not None:
        writable("--output", output, [("the model", model), *inputs(source)])
    learned = load(model)
    names = columns(learned, kind)
    stream = open_rows(source, reading, learned)
    with Interrupts(), _writer(output, names, header) as write:
        for block in Watched(stream, output is not None and not quiet):
            write(predictions(learned, block, kind))
    say_errors(stream)


def columns(model: Any, kind: str) -> list[str]:
    """The names of the columns that ``predictions`` gives; raises ValueError where the model has no such predictions."""
    from onlinear.learner import Learner
    from onlinear.models.base import gives_probabilities
    from onlinear.streams.labels import shown

    bare = isinstance(model, Learner)
    learner = model if bare else model.learner_
    if kind == "probabilities" and not gives_probabilities(model):
        why = (
            "holds a bare learner, which gives scores only"
            if bare
            else f"has the loss {model.loss!r}, which gives scores, not probabilities; train with --loss logistic"
        )
        raise ValueError(f"the model {why}.")
    names = list(map(shown, getattr(model, "classes_", range(learner.n_outputs))))
    if kind == "probabilities":
        return [f"probability {name}" for name in names]
    if kind == "labels" and hasattr(model, "classes_"):
        return ["label"]
    word = "score" if kind == "scores" or bare else "prediction"
    return [word] if learner.n_outputs == 1 else [f"{word} {name}" for name in names]


def predictions(model: Any, block: Any, kind: str) -> Any:
    """The rows' labels (or predicted numbers), scores or probabilities, (n,) or (n, K); features never seen have weight 0."""
    learner = getattr(model, "learner_", model)
    scores = learner.predict(block.within(max(1, learner.size)))
    if kind == "scores" or learner is model:
        return scores
    if kind == "probabilities":
        return model.probabilities_of(scores)
    return model.labels_of(scores) if hasattr(model, "classes_") else model.means_of(scores)


@contextmanager
def _writer(path: str | None, names: list[str], header: bool) -> Iterator[Write]:
    """A function that writes predictions; the file gets its name when it is whole."""
    heading = " ".join(name.replace(" ", "_") for name in names) + "\n" if header else ""
    if path is None:
        sys.stdout.write(heading)
        yield lambda found: _none(sys.stdout.write(lines(found)))
        sys.stdout.flush()
        return
    from onlinear.files.writing import new_file

    writers = {".csv": _csv, ".parquet": _parquet, ".pq": _parquet, ".arrow": _arrow, ".feather": _arrow, ".ipc": _arrow}
    with new_file(path) as file:
        form = writers.get(Path(path).suffix)
        if form is None:
            file.write(heading.encode())
            yield lambda found: _none(file.write(lines(found).encode()))
            return
        with _tables(file, names, form) as write:
            yield write


def _none(_: Any) -> None:
    pass


@contextmanager
def _tables(file: Any, names: list[str], form: Callable[[Any, Any], Any]) -> Iterator[Write]:
    """Predictions as record batches; a file without rows has the columns, as doubles."""
    import numpy as np
    import pyarrow as pa

    opened: list[Any] = []

    def write(found: Any) -> None:
        rows = found.reshape(len(found), -1)
        arrays = [
            pa.array(rows[:, k].tolist() if rows.dtype.kind in "OU" else np.ascontiguousarray(rows[:, k]))
            for k in range(len(names))
        ]
        batch = pa.record_batch(arrays, names=names)
        if not opened:
            opened.append(form(file, batch.schema))
        opened[0].write_batch(batch)

    yield write
    if not opened:
        write(np.zeros((0, len(names))))
    opened[0].close()


def _csv(file: Any, schema: Any) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _parquet(file: Any, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema)


def _arrow(file: Any, schema: Any) -> Any:
    from pyarrow import ipc

    return ipc.new_file(file, schema)


def lines(found: Any) -> str:
    """Predictions as text, a line per row, blanks between several numbers."""
    from onlinear.streams.labels import shown

    if found.ndim == 1:
        return "".join([shown(value) + "\n" for value in found.tolist()])
    return "".join([" ".join(map(shown, values)) + "\n" for values in found.tolist()])
