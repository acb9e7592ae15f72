"""``onlinear parts``: every loss, penalty, solver, schedule and average, with formula, settings and defaults."""

from __future__ import annotations

import json as js
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.command import app, guarded, needs_output, usage
from onlinear.cli.lines import wrap_words

if TYPE_CHECKING:
    from onlinear.learner.catalogue import Entry

TITLES = {"loss": "Losses", "penalty": "Penalties", "solver": "Solvers", "schedule": "Schedules", "average": "Averages"}


@app.command()
@guarded
def parts(
    which: Annotated[
        str | None,
        typer.Argument(help="loss, penalty, solver, schedule, average, or the name of a part.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list instead of lines.")] = False,
) -> None:
    """Show the parts that models are made of: formulas, settings with defaults, and what other libraries call them."""
    needs_output()
    from onlinear.learner.catalogue import entries
    from onlinear.text.form import choose

    found = entries()
    if which is not None:
        with usage():
            name = choose("part", which, {*TITLES, *(entry.name for entry in found)})
        found = [entry for entry in found if name in (entry.role, entry.name)]
    if json:
        typer.echo(js.dumps([as_json(entry) for entry in found]))
        return
    whole = which is not None and all(entry.name == name for entry in found)
    for line in [line for entry in found for line in describe(entry)] if whole else listed(found):
        typer.echo(line)


def as_json(entry: Entry) -> dict[str, Any]:
    """A part as JSON; an infinite default is null, as one that has to be given."""
    settings = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in entry.settings.items()
    }
    return {**entry._asdict(), "settings": settings}


def listed(found: list[Entry]) -> list[str]:
    """The parts, a few lines each, under the titles of their roles."""
    lines: list[str] = []
    role = None
    for entry in found:
        if entry.role != role:
            role = entry.role
            lines += ["", f"{TITLES[role]}  ({role}=)", ""] if lines else [f"{TITLES[role]}  ({role}=)", ""]
        lines.append(f"  {entry.name}")
        lines += [line for fact in facts(entry) for line in wrap_words(fact, " " * 6)]
    return lines


def facts(entry: Entry) -> list[str]:
    """What it is, its settings, and its names elsewhere."""
    lines = [entry.words]
    if entry.settings:
        lines.append(f"settings: {', '.join(map(shown, entry.settings.items()))}")
    if entry.elsewhere:
        lines.append(f"elsewhere: {', '.join(entry.elsewhere)}")
    return lines


def shown(setting: tuple[str, Any]) -> str:
    """A setting with its default."""
    key, value = setting
    if value is None:
        return key
    return f"{key}={str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}"


def describe(entry: Entry) -> list[str]:
    """Everything about one part."""
    settings = [line for fact in facts(entry)[1:] for line in wrap_words(fact)]
    return [f"{entry.name} ({entry.role})", *settings, "", *entry.text.splitlines(), ""]
