"""The output of a run: the growing table with a progress bar under it on a terminal, or one JSON object per line."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from onlinear.text.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onlinear.learner.rounds import RoundsOfBlocks
    from onlinear.shards import CorrectedRound, Round
    from onlinear.streams import Stream
    from onlinear.training.events import Certified, Held, Report, Written
    from onlinear.training.training import Training

MOST_CLASSES = 20  # whose weights are shown
LARGE = 1 << 20  # bytes of a state whose size is said at the start
WIDTH = 80  # characters of a line
WIDE = (13, 13, 13, 13, 13, 13)  # columns of the table
CERTIFIED = (13, 16, 15, 13, 13)  # of the table of passes that certify
NARROW = (13, 10, 11, 9, 9, 11, 8, 9)  # the same, held-out rows' loss and the last iterate's, where there is one of these


def say_errors(stream: Stream) -> None:
    """Print how many rows were skipped, and the errors of the first five."""
    if not stream.errors:
        return
    count = len(stream.errors)
    typer.echo(f"onlinear: {count} wrong {'line' if count == 1 else 'lines'} skipped, the first:", err=True)
    for error in list(stream.errors)[:5]:
        typer.echo(f"  {error}", err=True)


def rows_in_words(n: int) -> str:
    """So many rows, in words."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def size(count: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError


def size_written(path: str | None) -> int | None:
    """The bytes of the model that was written to ``path``; None where there is none, and of a pipe, which keeps nothing."""
    return None if path is None else os.path.getsize(path) or None


def cell(value: float | None, width: int) -> str:
    """A number with as many of five digits as fit, right-aligned, a blank before it; - where there is none."""
    if value is None or value != value:
        return f"{'-':>{width}}"
    if isinstance(value, int):
        texts = [f"{value:,}", *(f"{value:.{digits}e}" for digits in (3, 2, 1, 0))]
    else:
        texts = [f"{value:.{digits}g}" for digits in (6 if width > 12 else 5, 4, 3, 2, 1)]
    return f"{next((text for text in texts if len(text) < width), texts[-1]):>{width}}"


def wrap_words(text: str) -> list[str]:
    """Words as lines of at most 80 characters, if no word is longer; the second and later ones are indented."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False, replace_whitespace=False
    )


def keep_start(text: str, width: int) -> str:
    """A text on one line; of a longer one, the first ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def keep_end(text: str, width: int) -> str:
    """A text on one line; of a longer one, the last ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else f"...{text[3 - width :]}"


def certified_heads() -> list[str]:
    """What stands above the table of passes that certify."""
    return _gap_heads(
        "passes over all rows until the gap to the optimum is small enough; columns: of the working set", "columns"
    )


def certified_line(found: Certified | Round) -> str:
    """A pass that certified, as a line of the table."""
    return _gap_line(found, found.gap, found.columns)


def round_heads() -> list[str]:
    """What stands above the table of corrected rounds."""
    return _gap_heads("rounds of passes over the files and sums at their mean; step: the share that was taken", "step")


def round_line(found: CorrectedRound) -> str:
    """A corrected round, as a line of the table."""
    return _gap_line(found, found.gap if isfinite(found.gap) else None, found.share)


def _gap_heads(title: str, last: str) -> list[str]:
    heads = "passes", "objective", "certified gap", "non-zeros", last
    return ["", title, "".join(f"{head:>{width}}" for head, width in zip(heads, CERTIFIED, strict=True))]


def _gap_line(found: Certified | Round | CorrectedRound, gap: float | None, last: float) -> str:
    values = found.passes, found.objective, gap, found.nonzeros, last
    return "".join(cell(value, width) for value, width in zip(values, CERTIFIED, strict=True))


def json_line(kind: str, **values: Any) -> str:
    """One JSON object of a run."""
    return json_text({"kind": kind, **values})


def json_text(value: Any) -> str:
    """A value as JSON; numbers that do not exist, or are infinite, are null."""
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def weights_text(weights: Mapping[Any, float]) -> str:
    """Weights of classes as --class-weight takes them."""
    from onlinear.streams.labels import shown

    return ",".join(f"{shown(name)}={weight:g}" for name, weight in weights.items())


def _first_weights(weights: Mapping[Any, float]) -> str:
    """The weights of the first classes, for the screen."""
    from onlinear.streams.labels import shown

    first = [f"{keep_start(shown(name), 24)}={weight:g}" for name, weight in islice(weights.items(), MOST_CLASSES)]
    return ", ".join(first) + (", ..." if len(weights) > MOST_CLASSES else "")


def _by_name(weights: Any) -> dict[str, float] | None:
    """Weights of classes with names that JSON can have."""
    from onlinear.streams.labels import shown

    return None if weights is None else {shown(name): weight for name, weight in weights.items()}


def describe_parts(learner: Any) -> dict[str, Any]:
    """The parts of a model, as text."""
    spec, scaler = learner.spec, learner.scaler
    average = spec["average"] or ("its own" if learner.average is not None else "none")
    return {
        **spec,
        "penalty": spec["penalty"] or "none",
        "average": average,
        "scale": "none" if scaler is None else scaler.kind,
    }


def parts_lines(learner: Any) -> list[str]:
    """The parts of a model, as one or more lines."""
    parts = describe_parts(learner)
    said = [f"{role} {parts[role]}" for role in ("loss", "penalty", "solver", "average", "scale")]
    rows = [said] if len(" | ".join(said)) <= WIDTH else [said[:3], said[3:]]
    return [line for some in rows for line in wrap_words(" | ".join(some))]


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
        "nonzeros": training.nonzeros(average=True),
        "nonzeros_last": training.nonzeros(average=False),
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
            class_weight=_by_name(training.options.class_weights),
            measures=self._names,
            bytes_per_feature=training.bytes_per_feature,
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
            self.tell(f"class weights {_first_weights(weights)}")
        width = max(training.learner.size, training.width)
        if width * training.bytes_per_feature >= LARGE:
            held = size(width * training.bytes_per_feature)
            self.say(f"state: {held} for {width:,} columns so far ({training.bytes_per_feature} bytes each)")

    def _say_heads(self, training: Training) -> None:
        """What stands above the table."""
        first, second = self._names = training.measure_names
        self._holdout, averaged = training.holding, training.averaged
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
        left = TextColumn("left"), TimeRemainingColumn()
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
                pace = f"{training.rows:,} rows, {(training.rows - rows) / seconds:,.0f} rows/s"
                bar.update(shown, completed=training.done, pace=pace + self._text_rate(training, seconds))

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
        if model is not None:
            written = size_written(model)
            self.tell(f"model written to {printable(model)}{'' if written is None else f' ({written:,} bytes)'}")
        else:
            self.say("no model written; --model FILE writes one")

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
        if training.averaged:
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
