"""``onlinear report``: one page about a model, and about rows that it is given."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.command import Reading, UsageError, app, guarded, inputs, reads, writable
from onlinear.cli.inspect import summary
from onlinear.cli.lines import say_errors, size
from onlinear.text.names import as_argument, option_of, printable

if TYPE_CHECKING:
    from onlinear.training.events import Report
    from onlinear.training.training import Training

LARGEST = 20  # weights that are shown


@app.command()
@reads
@guarded
def report(
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[
        list[str] | None,
        typer.Argument(help="Rows with labels to judge it by, in any format that train reads.", show_default=False),
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The page to write.")] = "report.html",
    *,
    reading: Reading,
) -> None:
    r"""Write a page about a model: its run, its largest weights, its settings; with rows also calibration, curves and drift.

    The page is one file that needs no network. Needs matplotlib and jinja2: pip install 'onlinear\[report]'.
    """
    from onlinear.files.paths import is_stream

    require_libraries()
    if not source and (unused := _options(reading)):
        raise UsageError(f"{unused[0]} says how rows are read, and no rows are given.")
    writable("--output", output, [*inputs(source or ()), ("the model", model)])
    command = ["onlinear", "report", *map(as_argument, [model, *(source or ())]), *_options(reading), "--output", output]
    result, stream = None, None
    if source:
        from onlinear.cli.reading import Watched, open_rows
        from onlinear.models.evaluation import evaluate
        from onlinear.models.loading import load

        learned = load(model)
        stream = open_rows(source, reading, learned, with_target=True)
        result = evaluate(learned, Watched(stream, True))
    written = write_page(output, model, result, source=None if stream is None else stream.name, command=shlex.join(command))
    typer.echo(f"report written to {printable(output)} ({size(written)})", err=is_stream(output))
    if stream is not None:
        say_errors(stream)


def require_libraries(what: str = "a report", extra: str = "report") -> None:
    """Raise UsageError where what draws pages is not installed."""
    from onlinear.pages import lacking

    if missing := lacking():
        raise UsageError(f"{what} needs {' and '.join(missing)}: pip install 'onlinear[{extra}]'.")


def write_page(path: str, model: str, result: Any = None, **more: Any) -> int:
    """Write the page of a model file; its size in bytes."""
    from onlinear.files import writing
    from onlinear.report import page

    text = page(summary(model, LARGEST), result, **more).encode(errors="backslashreplace")  # a name may be no UTF-8
    writing.write(path, text)
    return len(text)


def report_of_run(path: str, model: str, training: Training, timed: list[tuple[Report, float]], *, quiet: bool) -> None:
    """Write the page of the model that a run has written, and say so; ``timed``: its reports, and the seconds until each."""
    command = shlex.join(["onlinear", "report", as_argument(model), "--output", path])
    own = [report.kept(training.measure_names) for report, _ in timed] if training.options.continues else None
    written = write_page(
        path,
        model,
        command=command,
        constant=training.constant,
        seconds=[(report.rows, seconds) for report, seconds in timed],
        began="the run was resumed" if training.rows_before else "the first row",
        history=own,
    )
    if not quiet:
        typer.echo(f"report written to {printable(path)} ({size(written)})", err=True)


def _options(reading: Reading) -> list[str]:
    """The options of reading that were given, as a user writes them."""
    found: list[str] = []
    for name, value in reading._asdict().items():
        if value != Reading._field_defaults[name]:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            found += [option_of(name), *([] if value is True else [text])]
    return found
