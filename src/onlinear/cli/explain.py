"""``onlinear explain``: why a model scores rows as it does, by the names of their features."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.command import Reading, UsageError, app, given_in, guarded, needs_output, reads, usage
from onlinear.cli.lines import json_text, keep_ends, keep_start, say_errors
from onlinear.text.names import printable

if TYPE_CHECKING:
    from onlinear.models.explaining import Explanation

NAME = 38  # characters of a name that are shown


@app.command()
@reads
@guarded
def explain(
    ctx: typer.Context,
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[list[str], typer.Argument(help="Rows, in any format that train reads.", show_default=False)],
    rows: Annotated[int, typer.Option("--rows", help="How many rows to explain, from the first.", min=1)] = 1,
    top: Annotated[int, typer.Option("--top", help="How many of the largest terms to show.", min=1)] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per row, with all terms.")] = False,
    *,
    reading: Reading,
) -> None:
    """Show the terms of the score of rows: weight times value of each feature, by name, the largest first."""
    needs_output()
    from onlinear import streams
    from onlinear.cli.reading import as_model, as_numbered
    from onlinear.models.base import Model
    from onlinear.models.explaining import Explainer, entries_of
    from onlinear.models.loading import load
    from onlinear.streams.blocks import refuse_no_rows

    if json and given_in(ctx, "top"):
        raise UsageError("--top is for lines; --json shows all terms.")
    learned = load(model)
    with usage():
        if not isinstance(learned, Model):
            raise ValueError(
                f"{printable(model)} holds a bare learner, which knows no task: explain takes classifiers and regressors."
            )
        options = as_model(source, reading._asdict(), learned, with_target=False)
        stream = as_numbered(streams.open(source, **options), learned)
    explainer, shown = Explainer(learned), 0
    for where, entries in islice(entries_of(stream, learned), min(rows, sys.maxsize)):
        found, shown = explainer.explain(entries), shown + 1
        if json:
            typer.echo(json_text({"row": where, **found._asdict(), "terms": [term._asdict() for term in found.terms]}))
            continue
        for line in describe(where, found, top):
            typer.echo(line)
    refuse_no_rows(stream.name, shown)
    say_errors(stream)


def describe(where: str, found: Explanation, top: int) -> list[str]:
    """An explanation as lines."""
    from onlinear.streams.labels import shown

    whose = "" if found.output is None else f" of {keep_ends(shown(found.output), NAME)}"
    chance = "" if found.probability is None else f", probability {found.probability:.4g}"
    labels = found.predicted if isinstance(found.predicted, list) else [found.predicted]
    predicted = ", ".join([keep_ends(shown(label), NAME) for label in labels])
    lines = [f"{where}: {predicted}{chance}", f"score{whose}: {found.score:.6g}", ""]
    named = Counter(term.name for term in found.terms[:top])
    numbered = any(term.name == f"column {term.column}" or named[term.name] > 1 for term in found.terms[:top])
    lines.append(f"{'contribution':>14}{'weight':>14}{'value':>12}  feature{' (columns count from 0)' if numbered else ''}")
    for term in found.terms[:top]:
        place = f" (column {term.column})" if named[term.name] > 1 else ""  # a category and a column may be called the same
        name = f"{keep_start(term.name, NAME - len(place))}{place}"
        lines.append(f"{term.contribution:>+14.6g}{term.weight:>14.6g}{term.value:>12.6g}  {name}")
    rest: Any = sum(term.contribution for term in found.terms[top:])
    if len(found.terms) > top:
        others = len(found.terms) - top
        lines.append(f"{rest:>+14.6g}{'':>26}  {others:,} other{'s' if others > 1 else ''}")
    return [*lines, f"{found.intercept:>+14.6g}{'':>26}  intercept", ""]
