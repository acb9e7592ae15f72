"""What the commands say, as lines: numbers, names and texts that fit a screen, tables of passes, and JSON."""

from __future__ import annotations

import json
import os
import textwrap
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from onlinear.text.names import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlinear.shards import CorrectedRound, Round
    from onlinear.streams import Stream
    from onlinear.training.events import Certified

WIDTH = 80  # characters of a line
MOST_CLASSES = 20  # whose weights are shown
CERTIFIED = (13, 16, 15, 13, 13)  # columns of the table of passes that certify


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


def model_line(path: str | None) -> str:
    """Where the model of a run was written, and its size."""
    if path is None:
        return "no model written; --model FILE writes one"
    written = size_written(path)
    return f"model written to {printable(path)}{'' if written is None else f' ({written:,} bytes)'}"


def cell(value: float | None, width: int) -> str:
    """A number with as many of five digits as fit, right-aligned, a blank before it; - where there is none."""
    if value is None or value != value:
        return f"{'-':>{width}}"
    if isinstance(value, int):
        texts = [f"{value:,}", *(f"{value:.{digits}e}" for digits in (3, 2, 1, 0))]
    else:
        texts = [f"{value:.{digits}g}" for digits in (6 if width > 12 else 5, 4, 3, 2, 1)]
    return f"{next((text for text in texts if len(text) < width), texts[-1]):>{width}}"


def wrap_words(text: str, indent: str = "", more: int = 2) -> list[str]:
    """Words as lines of at most 80 characters, if no word is longer; the second and later ones are indented by so many more."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + " " * more,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def keep_start(text: str, width: int) -> str:
    """A text on one line; of a longer one, the first ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def keep_end(text: str, width: int) -> str:
    """A text on one line; of a longer one, the last ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else f"...{text[3 - width :]}"


def class_name(text: str) -> str:
    """The name of a class on one line; in quotes where blanks at its ends, or none at all, would not be seen."""
    return printable(text) if text and text == text.strip() else repr(text)


def keep_ends(text: str, width: int) -> str:
    """The name of a class on one line; of a longer one, its start and its end, by which names of classes differ."""
    text = class_name(text)
    last = (width - 3) // 2
    return text if len(text) <= width else f"{text[: width - 3 - last]}...{text[-last:]}"


def certified_heads() -> list[str]:
    """What stands above the table of passes that certify."""
    return _gap_heads("passes over all rows until the certified gap is small; columns: the working set", "columns")


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


def first_weights(weights: Mapping[Any, float]) -> str:
    """The weights of the first classes, for the screen."""
    from onlinear.streams.labels import shown

    first = [f"{keep_ends(shown(name), 24)}={weight:g}" for name, weight in islice(weights.items(), MOST_CLASSES)]
    return ", ".join(first) + (", ..." if len(weights) > MOST_CLASSES else "")


def weights_by_name(weights: Any) -> dict[str, float] | None:
    """Weights of classes with names that JSON can have."""
    from onlinear.streams.labels import shown

    return None if weights is None else {shown(name): weight for name, weight in weights.items()}


def describe_parts(learner: Any) -> dict[str, Any]:
    """The parts of a model, as text."""
    from onlinear.learner.stored_parts import text_of

    spec = {role: part if part is None or isinstance(part, str) else text_of(part) for role, part in learner.spec.items()}
    scaler = learner.scaler
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
