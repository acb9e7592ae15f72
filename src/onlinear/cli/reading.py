"""Shared by the commands that read rows: rows opened as a model needs them, and a progress bar. Imported when one runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from onlinear import streams
from onlinear.cli.command import Reading, usage
from onlinear.models.base import Model
from onlinear.models.tables import columns_known, refuse_other_columns, remark_on_columns
from onlinear.streams import Block, Stream, formats, suffixes
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import Wrapped


def open_rows(source: list[str], reading: Reading, model: Any = None, *, with_target: bool = False) -> Stream:
    """The rows of a source, read ahead, their columns numbered as the model's."""
    with usage():
        if with_target:
            return Ahead(open_labelled(source, reading._asdict(), model))
        return Ahead(as_numbered(streams.open(source, **as_model(source, reading._asdict(), model, with_target=False)), model))


def open_labelled(source: list[str], options: Mapping[str, Any], model: Any) -> Stream:
    """The rows of a source with their targets, their columns numbered as the model's."""
    return as_numbered(streams.open(source, **as_model(source, options, model, with_target=True)), model)


def as_model(source: list[str], options: Mapping[str, Any], model: Any, *, with_target: bool) -> dict[str, Any]:
    """The options of ``streams.open`` for rows of a model, with its target's column where they need one; rows for a model that
    need none may lack it."""
    encoding, wanted = getattr(model, "encoding_", None), dict(options)
    if encoding is None and (names := _names_of(model)) is not None and _is_table(source, wanted, None):
        encoding = columns_known(None, names)
    if with_target and wanted.get("target") is None and encoding is not None and _is_table(source, wanted, encoding):
        wanted["target"] = encoding.get("target")
    if not with_target and model is not None and wanted.get("target") is None:
        wanted["unlabelled"] = True
    return wanted | {"encoding": encoding}


def _names_of(model: Any) -> list[str] | None:
    """The names of the columns of a model that learned a data frame of numbers."""
    return model.names_of_numbers() if isinstance(model, Model) else None


def as_numbered(stream: Stream, model: Any) -> Stream:
    """The stream; raises ValueError where its columns are numbered differently from those of the model. Where only places tell,
    as one of the two has no names, the rows are read, and said to be so."""
    if model is None:
        return stream
    refuse_other_columns(stream, model)
    if (remark := remark_on_columns(stream, model)) is not None:
        typer.echo(f"onlinear: {remark}", err=True)
    return stream


def _is_table(source: list[str], options: dict[str, Any], encoding: dict[str, Any] | None) -> bool:
    kind = formats.one_format(source, options.get("format", "auto"), encoding)
    if kind not in suffixes.TABLES:
        return False
    from onlinear.streams.converted import is_converted

    return kind == suffixes.CSV or not is_converted(source[0])


class Watched(Wrapped):
    """A stream with a progress bar on standard error, if asked and where that is a terminal."""

    def __init__(self, stream: Stream, shown: bool) -> None:
        super().__init__(stream)
        self._shown = shown and sys.stderr is not None and sys.stderr.isatty()

    def __iter__(self) -> Iterator[Block]:
        if not self._shown:
            yield from self._stream
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task, rows = bar.add_task("", total=self.total, rows=0), 0
            for block in self._stream:
                yield block
                rows += block.n
                bar.update(task, completed=self.done, rows=rows)
