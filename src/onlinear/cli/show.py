"""The output of a run: the growing table with a progress bar under it on a terminal, or one JSON object per line."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from itertools import accumulate
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from onlinear.cli.lines import (
    WIDTH,
    cell,
    certified_heads,
    certified_line,
    describe_parts,
    first_weights,
    json_line,
    keep_end,
    model_line,
    parts_lines,
    rows_in_words,
    say_errors,
    size,
    size_written,
    weights_by_name,
    wrap_words,
)
from onlinear.text.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlinear.learner.rounds import RoundsOfBlocks
    from onlinear.training.events import Certified, Held, Report, Written
    from onlinear.training.training import Training

BESIDE = 32  # characters of the share, the times and a short bar
LARGE = 1 << 20  # bytes of a state whose size is said at the start
WIDE = (13, 13, 13, 13, 13, 13)  # columns of the table
NARROW = (13, 10, 11, 9, 9, 11, 8, 9)  # the same, held-out rows' loss and the last iterate's, where there is one of these


def count_seconds(training: Training) -> dict[str, float]:
    """The bytes read and the seconds spent so far, by activity."""
    timing = training.stream.timing
    shares = {"read": timing.read, "parse": timing.parse, "learn": training.learning, "wait": timing.wait}
    return {"text_bytes": training.stream.text_bytes, **shares}


def summarise(training: Training, seconds: float, since: dict[str, float]) -> dict[str, Any]:
    """Summarise a run that has ended, and where its time went since ``since``."""
    constant, reading = training.constant, training.reading
    measure = training.measure_names[0].lower()
    return {
        "rows": training.rows,
        "rows_here": training.rows - training.rows_before,
        "passes": training.number if reading is None else reading.passes,
        "seconds": seconds,
        **{name: value - since[name] for name, value in count_seconds(training).items()},
        "nonzeros": training.learner.count_nonzeros(average=True),
        "nonzeros_last": training.learner.count_nonzeros(average=False),
        "weights": training.learner.size * training.learner.n_outputs,
        "skipped": len(training.stream.errors),
        "best_pass": None if training.best is None else training.best.number,
        "best_constant": None if constant is None else {"loss": constant.loss, measure: constant.error},
        **({} if reading is None else {"certified": _certificate(reading)}),
        "doubts": [*training.remarks(command=True), *training.too_small, *training.doubts(command=True)],
    }


def _certificate(reading: RoundsOfBlocks) -> dict[str, Any]:
    standing = reading.standing
    return {"gap": standing.gap, "objective": standing.objective, "converged": reading.done}


def beside_bar(parts: list[str], width: int) -> str:
    """The first of ``parts`` that a line of so many characters has room for, beside the bar, its share and the times."""
    return max((text for text in accumulate(parts, initial="") if len(text) <= width - BESIDE), key=len, default="")


class Display(ABC):
    """Shows a run as it proceeds."""

    def __init__(self) -> None:
        self.seconds = 0.0  # of this run, from its first row
        self.before: dict[str, float] = {}  # seconds and bytes until then
        self._text = 0  # bytes of text until then, those of the first blocks too: they are read before the clock starts

    @abstractmethod
    def start(self, training: Training, resumed: str | None) -> None:
        """Show the task and the parts; ``resumed``: the checkpoint that the run continues from."""

    def event(self, event: Report | Held | Certified | Written) -> None:
        """Show an event of the run."""
        from onlinear.training.events import Certified, Held, Report

        if isinstance(event, Report):
            self.show_report(event)
        elif isinstance(event, Certified):
            self.show_certified(event)
        elif isinstance(event, Held):
            self.show_holdout(event)
        else:
            self.show_checkpoint(event)

    def show_report(self, report: Report) -> None:
        """Show the measures so far."""

    def show_holdout(self, held: Held) -> None:
        """Show the measures of the held-out rows after a pass."""

    def show_certified(self, certified: Certified) -> None:
        """Show where the run stands after a pass that certified it."""

    def show_checkpoint(self, written: Written) -> None:
        """Show that a checkpoint was written."""

    @abstractmethod
    def end(self, training: Training, model: str | None) -> None:
        """Show the end of the run, once the model is written."""

    @contextmanager
    def running(self, training: Training) -> Iterator[None]:
        """While rows are learned."""
        began, self.before = time.perf_counter(), count_seconds(training) | {"text_bytes": training.text_before}
        self._text = training.stream.text_bytes
        try:
            yield
        finally:
            self.seconds = time.perf_counter() - began


class QuietDisplay(Display):
    """``--quiet``."""

    def start(self, training: Training, resumed: str | None) -> None:
        training.warm_up()

    def end(self, training: Training, model: str | None) -> None:
        say_errors(training.stream)


class JsonDisplay(Display):
    """``--json``: one object per line on standard output, and nothing else; numbers that do not exist are null."""

    def start(self, training: Training, resumed: str | None) -> None:
        from onlinear import __version__

        training.warm_up()
        learner, labels = training.learner, training.labels
        self._names = [name.lower() for name in training.measure_names]
        self._say(
            "start",
            version=__version__,
            source=training.stream.name,
            task=training.task,
            classes=None if labels is None or labels.classes is None else labels.classes.tolist(),
            **describe_parts(learner),
            class_weight=weights_by_name(training.options.class_weights),
            measures=self._names,
            bytes_per_feature=learner.bytes_per_column,
            features=max(learner.size, training.width),
            resumed=resumed,
            rows=training.rows,
        )

    def show_report(self, report: Report) -> None:
        self._say("report", **report.named(self._names))

    def show_holdout(self, held: Held) -> None:
        values = held._asdict()
        self._say("holdout", **{"pass": values.pop("number")}, **self._rename(values))

    def show_certified(self, certified: Certified) -> None:
        self._say("certified", **certified._asdict())

    def show_checkpoint(self, written: Written) -> None:
        self._say("checkpoint", **written._asdict())

    def _rename(self, values: dict[str, Any]) -> dict[str, Any]:
        names = dict(zip(("error", "quality"), self._names, strict=True))
        return {names.get(name, name): value for name, value in values.items()}

    def end(self, training: Training, model: str | None) -> None:
        self._say("end", **summarise(training, self.seconds, self.before), model=model, bytes=size_written(model))

    def _say(self, kind: str, **values: Any) -> None:
        typer.echo(json_line(kind, **values))


class TableDisplay(Display):
    """The growing table, with a progress bar under it where standard output is a terminal. Checkpoints are not shown: they are
    many, and each replaces the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Any = None
        self._holdout = self._certifies = False
        self._linear: float | None = None  # mean loss of the linear scores, where predictions are clipped

    def say(self, text: str = "") -> None:
        """One line."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            typer.echo(text)

    def tell(self, text: str) -> None:
        """Words, as lines of at most 80 characters."""
        for line in wrap_words(text):
            self.say(line)

    def start(self, training: Training, resumed: str | None) -> None:
        self._say_parts(training)
        for remark in training.remarks(command=True):
            self.tell(remark)
        if training.options.auto:
            self.say(f"passes: {training.options.passes} (auto)")
        if resumed is not None:
            self.tell(f"resumed from {printable(resumed)}: {rows_in_words(training.rows)} learned, pass {training.number + 1}")
        began = time.perf_counter()
        training.warm_up()
        if (seconds := time.perf_counter() - began) > 1.0:
            self.say(f"compiled in {seconds:.1f} s, kept for later runs")
        self.say()
        self._say_heads(training)

    def _say_parts(self, training: Training) -> None:
        """The task, the parts and the size of the state."""
        classes = "" if training.labels is None else f" ({training.labels.count} classes)"
        task = f": {training.task}{classes}"
        self.say(f"{keep_end(training.stream.name, WIDTH - len(task))}{task}")
        for line in parts_lines(training.learner):
            self.say(line)
        if (weights := training.options.class_weights) is not None:
            self.tell(f"class weights {first_weights(weights)}")
        width, each = max(training.learner.size, training.width), training.learner.bytes_per_column
        if width * each >= LARGE:
            self.say(f"state: {size(width * each)} for {width:,} columns so far ({each} bytes each)")

    def _say_heads(self, training: Training) -> None:
        """What stands above the table."""
        first, second = self._names = training.measure_names
        self._holdout, averaged = training.holding, training.learner.averaged
        extra = [("holdout", NARROW[6])] * self._holdout + [("last", NARROW[7])] * averaged
        heads = ["rows", "loss", "since last", first, second, "non-zeros", *(head for head, _ in extra)]
        self._widths = [*(NARROW[:6] if extra else WIDE), *(width for _, width in extra)]
        if averaged:
            what = "the average or the last iterate" if training.learner.racing else "the average, which is written"
            self.say(f"measures of {what}; last: loss of the last iterate")
        self.say("".join(f"{head:>{width}}" for head, width in zip(heads, self._widths, strict=True)))

    @contextmanager
    def running(self, training: Training) -> Iterator[None]:
        """While rows are learned: with a bar on a terminal."""
        with super().running(training):
            if sys.stdout is not None and sys.stdout.isatty():
                with self._shown_bar(training):
                    yield
            else:
                yield

    @contextmanager
    def _shown_bar(self, training: Training) -> Iterator[None]:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        known = training.total is not None
        left = TimeRemainingColumn(), TextColumn("left")
        columns = (
            BarColumn(),
            *([TaskProgressColumn()] if known else []),
            TextColumn("{task.fields[pace]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, *(left if known else ()), transient=True) as self._bar:
            bar, shown = self._bar, self._bar.add_task("rows", total=training.total, completed=training.done, pace="")
            began, rows = time.perf_counter(), training.rows

            def watch() -> None:
                seconds = time.perf_counter() - began
                said = [f"{training.rows:,} rows", f", {(training.rows - rows) / seconds:,.0f} rows/s"]
                pace = beside_bar([*said, self._text_rate(training, seconds)], bar.console.width)
                bar.update(shown, completed=training.done, pace=pace)

            training.watch = watch
            try:
                yield
            finally:
                training.watch, self._bar = lambda: None, None

    def _text_rate(self, training: Training, seconds: float) -> str:
        read = training.stream.text_bytes - self._text
        return f", {read / seconds / 1e6:,.0f} MB/s" if read else ""

    def show_report(self, report: Report) -> None:
        self._linear = None if report.linear is None else report.linear.loss
        found = [report.rows, report.loss, report.since, report.error, report.quality, report.nonzeros]
        values = [*found, *([report.holdout] if self._holdout else []), *([report.last.loss] if report.last else [])]
        self.say("".join(cell(value, width) for value, width in zip(values, self._widths, strict=True)))

    def show_holdout(self, held: Held) -> None:
        best = "" if held.best is None else " (the best so far)" if held.best == held.number else f" (best: pass {held.best})"
        first, second = self._names
        measures = f"loss {held.loss:.6g}, {first} {held.error:.5g}" + (
            f", {second} {held.quality:.5g}" if isfinite(held.quality) else ""
        )
        self.tell(f"  pass {held.number}: {held.rows:,} held-out rows: {measures}{best}")
        if held.stop:
            self.say("  no improvement: training stops here")

    def show_certified(self, certified: Certified) -> None:
        if not self._certifies:
            self._certifies = True
            for line in certified_heads():
                self.say(line)
        self.say(certified_line(certified) + (" (all there is room for)" if certified.crowded else ""))

    def end(self, training: Training, model: str | None) -> None:
        found = summarise(training, self.seconds, self.before)
        self.say()
        self._say_time(training, found)
        self._say_weights(training, found)
        self._say_quality(training)
        if training.best is not None:
            self.tell(f"kept: the model after pass {training.best.number}, with the smallest loss of the held-out rows")
        say_errors(training.stream)
        self.tell(model_line(model))

    def _say_time(self, training: Training, found: dict[str, Any]) -> None:
        """How many rows were learned, and where the time went."""
        from onlinear.text.form import in_passes

        rate = f"{found['rows_here'] / self.seconds:,.0f} rows/s"
        if text := self._text_rate(training, self.seconds):
            rate += f"{text} of text"
        self.tell(f"{rows_in_words(found['rows'])}{in_passes(found['passes'])} in {self.seconds:.2f} s ({rate})")
        shares = ", ".join(f"{name} {found[name]:.2f} s" for name in ("read", "parse", "learn", "wait"))
        self.say(f"time: {shares}")
        self.say("  (read and parse run ahead in other threads; wait: learning had no rows)")

    def _say_weights(self, training: Training, found: dict[str, Any]) -> None:
        last = ""
        if training.learner.averaged:
            ahead = f" in the average, which predicts; {found['nonzeros_last']:,} in the last iterate"
            last = ahead if training.learner.averages else " in the last iterate, which predicts"
        self.tell(f"non-zero weights: {found['nonzeros']:,} of {found['weights']:,}{last}")

    def _say_quality(self, training: Training) -> None:
        """What the losses are to be compared with, and what there is to doubt."""
        if (constant := training.constant) is not None:
            self.say(f"best constant: loss {constant.loss:.4g}, {self._names[0]} {constant.error:.4g}")
        if self._linear is not None:
            self.say(f"predictions are clipped to the targets seen; loss of the linear scores: {self._linear:.4g}")
        if training.reading is not None and training.reading.done:
            from onlinear.certified import above

            self.tell(f"certified: the objective is {above(training.reading.standing.gap)}")
        for doubt in [*training.too_small, *training.doubts(command=True)]:
            self.tell(doubt)
