"""Which options of ``train`` need or exclude each other, or contradict the checkpoint that a run continues from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from onlinear.cli.command import Reading, UsageError, given_in, writable
from onlinear.text.names import option_of, printable

if TYPE_CHECKING:
    from onlinear.cli.checkpoints import Saved
    from onlinear.cli.settings import Settings

MAY_CHANGE_ON_RESUME = ("max_errors",)  # it decides which rows are refused, not what is learned from the others
LEFT_OUT = {"base": 1, "categories": "hash", "missing": "error"}  # what options are that no model decides
AGAINST_AUTO = {
    "early_stop": "each finds the passes in its own way",
    "tol": "a run to a certified gap ends by the gap alone",
    "start": "scores of rows that the model may have learned say nothing of others",
}  # options that leave no room for --passes auto, and why


def check_report(report: str | None, model: str | None, read: list[tuple[str, str]]) -> None:
    """Refuse a report that cannot be written, before the work begins."""
    if report is None:
        return
    from onlinear.cli.report import require_libraries
    from onlinear.files.paths import is_stream, same

    require_libraries()
    if model is None or is_stream(model):
        raise UsageError("--report needs --model FILE: the page is made of the file.")
    if same(report, model):
        raise UsageError(f"--report and --model are one file, {printable(model)}; the model would be lost.")
    writable("--report", report, read)


def refuse_among_lines(given: dict[str, Any], model: str | None) -> None:
    """Raise UsageError for a model or a report that would stand among the lines of the run."""
    from onlinear.files.standard_streams import is_standard_output

    for option, path in (("--model", model), ("--report", given["report"])):
        if path is not None and not given["quiet"] and is_standard_output(path):
            raise UsageError(f"{option} {printable(path)} would stand among the lines of the run: add --quiet.")


def refuse_contradictions(given: dict[str, Any]) -> None:
    """Raise UsageError for options that exclude each other, or that need others or another run."""
    from onlinear.training.options import TASKS

    if given["task"] not in TASKS:
        raise UsageError(f"--task must be one of {', '.join(TASKS)}, got {given['task']!r}.")
    if given["classes"] is not None and given["scan"]:
        raise UsageError("--classes and --scan exclude each other.")
    if given["early_stop"] is not None and given["holdout"] is None and given["resume"] is None:
        raise UsageError("--early-stop needs --holdout (it monitors the held-out loss).")
    if given["start"] is not None and (given["checkpoint"] is not None or given["resume"] is not None):
        raise UsageError("--from excludes --checkpoint and --resume: a run that continues from a model keeps no checkpoints.")
    if given["quiet"] and given["json"]:
        raise UsageError("--quiet and --json exclude each other.")
    if given["quiet"]:
        _refuse_pairs(given["source"] or ())
    if given["resume"] is None:
        _refuse_unused(given)


def _refuse_pairs(source: Iterable[str]) -> None:
    """Raise UsageError for a source that is no file and looks like what Vowpal Wabbit's -q takes."""
    from onlinear.text.hints import advise_on_pair

    for name in source:
        if (advice := advise_on_pair(name)) is not None and not os.path.exists(name):
            raise UsageError(f"no file at {name!r}. {advice}")


def _refuse_unused(given: dict[str, Any]) -> None:
    """Raise UsageError for options that a run from its first row has no use for."""
    from onlinear.cli.settings import Settings
    from onlinear.models.chosen_parts import asks_for_gap
    from onlinear.training.few_rows import AUTO
    from onlinear.training.options import REGRESS

    if given["task"] == REGRESS and (given["classes"] is not None or given["scan"]):
        raise UsageError("--classes and --scan are for classes, and --task regress takes labels as numbers.")
    if given["passes"] == AUTO:
        for name, why in AGAINST_AUTO.items():
            if given[name] is not None:
                raise UsageError(f"--passes auto and {option_of(name)} exclude each other: {why}.")
    if given["early_stop"] is not None and given["passes"] == 1:
        raise UsageError("--early-stop is for several passes, and there is one: give --passes N.")
    certifies = asks_for_gap(given["tol"], given["solver"])
    if given["max_passes"] != Settings._field_defaults["max_passes"] and not certifies:
        raise UsageError("--max-passes is for --tol, which ends at a certified gap; --passes says how often rows are read.")


def check_agreement(ctx: typer.Context, saved: Saved, now: Settings, reading: Reading) -> Saved:
    """The checkpoint's run; ``now``: the settings of the options. Raises UsageError where one that was given contradicts it."""
    then = saved.settings
    changed = dict(then.reading)
    for name in ctx.params:
        if not given_in(ctx, name):
            continue
        if name in MAY_CHANGE_ON_RESUME:
            changed[name] = getattr(reading, name)
        elif name in Reading._fields:
            otherwise = LEFT_OUT.get(name, Reading._field_defaults[name])
            _same(saved.path, name, getattr(reading, name), then.reading.get(name, otherwise))
        elif name in then._fields:
            _same(saved.path, name, getattr(now, name), getattr(then, name))
    return saved._replace(settings=then._replace(reading=changed))


def _same(path: str, name: str, now: Any, then: Any) -> None:
    if now != then:
        raise UsageError(
            f"{_write_option(name, now)}: the run of the checkpoint {printable(path)} has {_write_option(name, then)}. "
            "Leave it out to continue that run, or leave out --resume to start another."
        )


def _write_option(name: str, value: Any) -> str:
    """An option as a user writes it."""
    option = option_of(name)
    if value is None or isinstance(value, bool):
        return option if value else option.replace("--", "--no-", 1) if name in ("intercept", "clip") else f"no {option}"
    between = " " if name == "source" else ","
    text = printable(between.join(map(str, value)) if isinstance(value, tuple) else str(value))
    return f"the source {text}" if name == "source" else f"{option} {text}"
