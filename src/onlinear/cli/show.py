"""What a run shows: the growing table, a progress bar under it on a terminal, the summary."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from onlinear.run import Report, Training
    from onlinear.streams import Stream


def say_errors(stream: Stream) -> None:
    if not stream.errors:
        return
    typer.echo(f"onlinear: {len(stream.errors)} wrong lines skipped, the first:", err=True)
    for error in list(stream.errors)[:5]:
        typer.echo(f"  {error}", err=True)


class Table:
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

    def __enter__(self) -> Table:
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
        say_errors(run.stream)

    def _of_last(self, last: Report) -> str:
        run = self.training
        averaged = run.learner.average is not None or run.learner.engine.own_average
        return f" in the average, which predicts; {last.nonzeros:,} in the last iterate" if averaged else ""
