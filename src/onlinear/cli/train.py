"""``onlinear train``: learn a model from a stream and show how well each row was predicted before it was learnt."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from onlinear.cli.command import Reading, UsageError, app, guarded, reads, usage
from onlinear.cli.show import Table


@app.command()
@reads
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
    classes: Annotated[
        str | None, typer.Option(help="All labels there are, e.g. 1,2,3 or a,b (-1,1 and 0,1 need no naming).")
    ] = None,
    scan: Annotated[bool, typer.Option("--scan", help="Find the classes by one more pass over the labels.")] = False,
    n_features: Annotated[
        int | None,
        typer.Option(help="Number of columns, where the solver or penalty must know it (rls, total-variation).", min=1),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.")] = False,
    *,
    reading: Reading,
) -> None:
    """Learn a model, one row at a time, and show how well each row was predicted before it was learnt."""
    from onlinear import run, streams
    from onlinear.streams import labels

    with usage():
        stream = streams.open(source, **reading._asdict())
        if task not in run.TASKS:
            raise UsageError(f"--task must be one of {', '.join(run.TASKS)}, got {task!r}.")
        if classes is not None and scan:
            raise UsageError("--classes and --scan exclude each other.")
        named = labels.scan(stream) if scan else None if classes is None else tuple(classes.split(","))
        window = (stream.rows or 0) if shuffle_rows is None else shuffle_rows
        if window:
            stream = streams.Shuffled(stream, window, seed)
        if model is not None:
            _writable(model)
        training = run.Training(
            stream, run.Options(loss, penalty, solver, average, scale, intercept, passes, seed, task, named, n_features)
        )
    shown = Table(training, quiet)
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


def _writable(path: str) -> None:
    """Refuse before the work what would fail after it."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise UsageError(f"--model {path}: is a folder; expected a file name.")
    if not os.path.isdir(folder):
        raise UsageError(f"--model {path}: there is no folder {folder!r}.")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--model {path}: the folder {folder!r} cannot be written to.")
