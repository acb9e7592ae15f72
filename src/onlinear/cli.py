"""The command ``onlinear``: options, progress and errors in words. What it runs is in ``run.py``, imported when needed.

Exit codes: 0, 1 failure, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from onlinear.run import Report, Training
    from onlinear.streams import Stream

FAILURE, USAGE, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    help="Sparse linear models from streams: train on files larger than memory, one row at a time, exactly.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


class UsageError(Exception):
    """Options that cannot be: exit code 2."""


def main() -> None:
    """Run the command."""
    app()


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Errors as one clear line on standard error, with the exit code that belongs to them."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            _fail("interrupted.", INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: nothing to say
            raise typer.Exit(FAILURE) from None
        except UsageError as error:
            _fail(str(error), USAGE)
        except (ValueError, TypeError, OSError, ArithmeticError, MemoryError) as error:
            _fail(_words(error), FAILURE)

    return run


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error) or type(error).__name__


def _fail(message: str, code: int) -> None:
    typer.echo(f"onlinear: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def _usage() -> Iterator[None]:
    """What is wrong inside is wrong with the options."""
    from onlinear.streams import StreamError

    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None


def _version(asked: bool) -> None:
    if asked:
        from onlinear import __version__

        typer.echo(f"onlinear {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Sparse linear models from streams: train on files larger than memory, one row at a time, exactly."""


Base = Annotated[int, typer.Option("--base", help="The first index in the files: 1 or 0.", min=0, max=1)]
Sort = Annotated[bool, typer.Option("--sort", help="Accept indices in any order; repeated ones are summed.")]
MaxErrors = Annotated[int, typer.Option("--max-errors", help="Skip and count this many wrong lines.", min=0)]


@app.command()
@guarded
def train(
    source: Annotated[
        list[str],
        typer.Argument(
            help="svmlight files (plain, .gz, .xz, .bz2, .zst), patterns, - for standard input, or a bundled data set: "
            "breast-cancer, digits, iris, wine, diabetes.",
            show_default=False,
        ),
    ],
    model: Annotated[str | None, typer.Option("--model", "-m", help="Write the model to this file.")] = None,
    loss: Annotated[str | None, typer.Option(help="logistic, hinge, squared, huber, ...; e.g. huber,delta=0.5")] = None,
    penalty: Annotated[str | None, typer.Option(help="none, l1, l2, elastic-net, ...; e.g. l1,l1=1e-5")] = None,
    solver: Annotated[str | None, typer.Option(help="fiol, comid, rda, sadmm, odrs, ...; e.g. comid,eta=0.5")] = None,
    average: Annotated[str | None, typer.Option(help="none, uniform, weighted-t1, suffix, ...")] = None,
    scale: Annotated[str | None, typer.Option(help="Running scale of each column: none, rms, max-abs.")] = None,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.")] = True,
    passes: Annotated[int, typer.Option(help="Passes over the rows.", min=1)] = 1,
    shuffle_rows: Annotated[
        int | None,
        typer.Option(help="Shuffle within windows of this many rows. Default: 0 for files, all for a bundled set.", min=0),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the shuffle.", min=0)] = 0,
    task: Annotated[str, typer.Option(help="classify, regress, or auto: by the loss, else by the labels.")] = "auto",
    classes: Annotated[str | None, typer.Option(help="All labels there are, e.g. 1,2,3 (-1,1 and 0,1 need no naming).")] = None,
    scan: Annotated[bool, typer.Option("--scan", help="Find the classes by one more pass over the labels.")] = False,
    features: Annotated[
        int | None,
        typer.Option(help="Number of columns, where the solver or penalty must know it (rls, total-variation).", min=1),
    ] = None,
    base: Base = 1,
    sort: Sort = False,
    max_errors: MaxErrors = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.")] = False,
) -> None:
    """Learn a model, one row at a time, and show how well each row was predicted before it was learnt."""
    from onlinear import run, streams

    with _usage():
        stream = streams.open(source, base=base, sort=sort, max_errors=max_errors)
        if task not in run.TASKS:
            raise UsageError(f"--task must be one of {', '.join(run.TASKS)}, got {task!r}.")
        if classes is not None and scan:
            raise UsageError("--classes and --scan exclude each other.")
        named = run.scan_classes(stream) if scan else _numbers("--classes", classes)
        window = (stream.rows or 0) if shuffle_rows is None else shuffle_rows
        if window:
            stream = streams.Shuffled(stream, window, seed)
        if model is not None:
            _writable(model)
        training = run.Training(
            stream, run.Options(loss, penalty, solver, average, scale, intercept, passes, seed, task, named, features)
        )
    shown = _Table(training, quiet)
    shown.head()
    with shown:
        started = time.perf_counter()
        for report in training:
            shown.line(report)
    shown.summary(time.perf_counter() - started)
    if model is not None:
        training.model.save(model)
        shown.say(f"model written to {model} ({os.path.getsize(model):,} bytes)")
    else:
        shown.say("no model written; --model FILE writes one")


@app.command()
@guarded
def predict(
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[list[str], typer.Argument(help="What to predict, as for train.", show_default=False)],
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write to this file, not to standard output.")] = None,
    kind: Annotated[str, typer.Option("--as", help="labels, scores or probabilities.")] = "labels",
    base: Base = 1,
    sort: Sort = False,
    max_errors: MaxErrors = 0,
) -> None:
    """Predict: one line per row, in the order of the rows."""
    from onlinear import load, run, streams

    if kind not in ("labels", "scores", "probabilities"):
        raise UsageError(f"--as must be labels, scores or probabilities, got {kind!r}.")
    learnt = load(model)
    with _usage():
        stream = streams.open(source, base=base, sort=sort, max_errors=max_errors)
    with open(output, "w") if output is not None else _standard_output() as file:
        for block in stream:
            file.write(run.lines(run.predictions(learnt, block, kind)))
    _say_errors(stream)


@contextmanager
def _standard_output() -> Iterator[Any]:
    yield sys.stdout
    sys.stdout.flush()


def _numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError:
        raise UsageError(f"{option} must be numbers with commas between them, got {text!r}.") from None


def _writable(path: str) -> None:
    """Refuse before the work what would fail after it."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise UsageError(f"--model {path}: is a folder; expected a file name.")
    if not os.path.isdir(folder):
        raise UsageError(f"--model {path}: there is no folder {folder!r}.")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--model {path}: the folder {folder!r} cannot be written to.")


def _say_errors(stream: Stream) -> None:
    if not stream.errors:
        return
    typer.echo(f"onlinear: {len(stream.errors)} wrong lines skipped, the first:", err=True)
    for error in list(stream.errors)[:5]:
        typer.echo(f"  {error}", err=True)


class _Table:
    """The growing table, with a progress bar under it where standard output is a terminal."""

    def __init__(self, training: Training, quiet: bool) -> None:
        self.training, self.quiet = training, quiet
        self.last: Report | None = None
        self._bar: Any = None

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            typer.echo(text)

    def head(self) -> None:
        """What is learnt, and how; compiles the kernels, which takes seconds in a fresh install."""
        run = self.training
        spec, scaler = run.learner.spec, run.learner.scaler
        average = spec["average"] or ("its own" if run.learner.average is not None else "none")
        parts = {**spec, "average": average, "scale": "none" if scaler is None else scaler.kind}
        classes = "" if run.labels is None else f" ({run.labels.count} classes)"
        self.say(f"{run.stream.name}: {run.task}{classes}")
        self.say(" | ".join(f"{role} {parts[role]}" for role in ("loss", "penalty", "solver", "average", "scale")))
        started = time.perf_counter()
        run.warm_up()
        seconds = time.perf_counter() - started
        if seconds > 1.0:
            self.say(f"compiled in {seconds:.1f} s, kept for later runs")
        self.say("")
        measure = "error" if run.labels is not None else "MAE"
        self.say(f"{'rows':>12}{'loss':>14}{'since last':>14}{measure:>14}{'non-zeros':>14}")

    def __enter__(self) -> _Table:
        if sys.stdout.isatty() and not self.quiet:
            self._start_bar()
        return self

    def _start_bar(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()
        self._bar = Progress(*columns, transient=True)
        self._bar.start()
        task, started = self._bar.add_task("rows", total=self.training.total, rate=""), time.perf_counter()

        def watch() -> None:
            rate = f"{self.training.rows / (time.perf_counter() - started):,.0f} rows/s"
            self._bar.update(task, completed=self.training.done, rate=rate)

        self.training.watch = watch

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def line(self, report: Report) -> None:
        """One line of the table."""
        self.last = report
        numbers = f"{report.loss:>14.6g}{report.since:>14.6g}{report.error:>14.5g}"
        self.say(f"{report.rows:>12,}{numbers}{report.nonzeros:>14,}")

    def summary(self, seconds: float) -> None:
        """What was learnt, and how fast."""
        run, last = self.training, self.last
        assert last is not None
        passes = f" in {run.options.passes} passes" if run.options.passes > 1 else ""
        text = run.stream.text_bytes
        rate = f"{last.rows / seconds:,.0f} rows/s" + (f", {text / seconds / 1e6:,.0f} MB/s of text" if text else "")
        self.say("")
        self.say(f"{last.rows:,} rows{passes} in {seconds:.2f} s ({rate})")
        self.say(
            f"non-zero weights: {run.nonzeros(average=True):,} of {run.learner.size * run.learner.n_outputs:,}"
            + self._of_last(last)
        )
        _say_errors(run.stream)

    def _of_last(self, last: Report) -> str:
        run = self.training
        averaged = run.learner.average is not None or run.learner.engine.own_average
        return f" in the average, which predicts; {last.nonzeros:,} in the last iterate" if averaged else ""
