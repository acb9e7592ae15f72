"""``onlinear predict``: one prediction per row, in the order of the rows, as text, CSV, Parquet or Arrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from onlinear.cli.command import Dask, Reading, UsageError, Workers, app, guarded, inputs, over_shards, reads, writable
from onlinear.cli.lines import say_errors
from onlinear.text.names import printable

Write = Callable[[Any], None]
STDOUT = "-"
OTHERS = (".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".npy", ".npz", ".pkl", ".orc", ".h5")  # that say what they are not


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
            "--output",
            "-o",
            help="Write to this file: .csv, .tsv, .parquet, .arrow, or else text; -: standard output.",
            show_default="standard output",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option("--as", help="labels (of a regression its numbers), scores, probabilities, or intervals[,coverage=0.9]."),
    ] = "labels",
    header: Annotated[bool, typer.Option("--header", help="Text: the first line names the columns, as tables do.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    workers: Workers = None,
    dask: Dask = None,
    *,
    reading: Reading,
) -> None:
    """Predict: one line per row, in the order of the rows."""
    from onlinear.cli.reading import Watched, open_rows
    from onlinear.models.loading import load
    from onlinear.models.predictions import FORMS, check_kind, columns, predictions
    from onlinear.streams.suffixes import suffix_of

    try:
        check_kind(kind)
    except ValueError as error:
        raise UsageError(str(error).replace("kind", "--as", 1)) from None
    output = None if output == STDOUT else output
    if output is not None:
        _refuse_kind_of_file(output)
        writable("--output", output, [("the model", model), *inputs(source)])
    learned = load(model)
    names = columns(learned, kind)
    is_text = output is None or suffix_of(output) not in FORMS
    heads = _heads(names) if is_text and header else []
    _refuse_unwritable(learned.classes_.tolist() if names == ["label"] else heads if is_text else names, is_text)
    stream = open_rows(source, reading, learned)
    several = over_shards(workers, dask)
    with _writer(output, names, heads) as write:
        if several:
            blocks = _by_workers(learned, source, reading, kind, workers, dask)
        else:
            blocks = predictions(learned, Watched(stream, output is not None and not quiet), kind)
        for found in blocks:
            write(found)
    say_errors(stream)


def _by_workers(
    learned: Any, source: list[str], reading: Reading, kind: str, workers: int | None, dask: str | None
) -> Iterator[Any]:
    """The predictions of the rows of files, which workers make."""
    from onlinear.cli import sharded

    return sharded.predict(learned, source, reading, kind, workers, dask)


def _refuse_kind_of_file(output: str) -> None:
    """Raise UsageError for a file whose name says that it is compressed, or of another kind than those that are written."""
    from onlinear.streams.suffixes import PACKED

    if output.lower().endswith((*PACKED, *OTHERS)):
        why = "are not compressed" if output.lower().endswith(PACKED) else "are not written so"
        raise UsageError(
            f"--output {printable(output)}: predictions {why}; expected .csv, .tsv, .parquet, .arrow or text, as .txt."
        )


def _refuse_unwritable(labels: list[Any], is_text: bool) -> None:
    """Raise UsageError for a class, or a name with one, that a table, or text with a line for each row, cannot hold."""
    for label in labels:
        if isinstance(label, str) and any("\ud800" <= letter <= "\udfff" for letter in label):
            raise UsageError(
                f"{label!r} holds half a character (a lone surrogate), which UTF-8 does not have: predict in Python, or train "
                "with classes of other names."
            )
        if is_text and isinstance(label, str) and ("\n" in label or "\r" in label):
            raise UsageError(
                f"the class {label!r} has a line end, and text has one line per row: give --output p.csv, .parquet or .arrow."
            )


def _heads(names: list[str]) -> list[str]:
    """The names of columns of text, which have no blanks; raises UsageError where two are one."""
    heads: dict[str, str] = {}
    for name in names:
        other = heads.setdefault(re.sub(r"\s", "_", name), name)
        if other != name:
            raise UsageError(
                f"--header: the names {other!r} and {name!r} are one in text, whose names have no blanks: give --output p.csv, "
                ".parquet or .arrow."
            )
    return list(heads)


@contextmanager
def _writer(path: str | None, names: list[str], heads: list[str]) -> Iterator[Write]:
    """A function that writes predictions; the file gets its name when it is whole. ``heads``: of text, the first line."""
    heading = " ".join(heads) + "\n" if heads else ""
    from onlinear.files.standard_streams import lines_to, standard_output
    from onlinear.files.writing import new_file

    if path is None:
        out = standard_output()
        send = lines_to(out)
        send(heading)
        yield lambda found: _none(send(lines(found)))
        out.flush()
        return
    from onlinear.models.predictions import FORMS, tables
    from onlinear.streams.suffixes import suffix_of

    with new_file(path) as file:
        form = FORMS.get(suffix_of(path))
        if form is None:
            file.write(heading.encode())
            yield lambda found: _none(file.write(lines(found).encode()))
            return
        with tables(file, names, form) as write:
            yield write


def _none(_: Any) -> None:
    pass


def lines(found: Any) -> str:
    """Predictions as text, a line per row, blanks between several numbers."""
    from onlinear.streams.labels import shown

    if found.ndim == 1:
        return "".join([shown(value) + "\n" for value in found.tolist()])
    return "".join([" ".join(map(shown, values)) + "\n" for values in found.tolist()])
