"""``onlinear train``: train a model on a stream and show how well it predicted each row before learning it."""

from __future__ import annotations

import re
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.as_typed import as_typed
from onlinear.cli.command import (
    FAILURE,
    MODEL,
    OUTPUT,
    RUN,
    Dask,
    Reading,
    UsageError,
    Workers,
    app,
    fail,
    given_in,
    guarded,
    inputs,
    needs_output,
    over_shards,
    reads,
    reason,
    usage,
    words,
    writable,
)
from onlinear.cli.interrupts import INTERRUPTED, Interrupts
from onlinear.cli.lines import rows_in_words
from onlinear.cli.option_rules import check_agreement, check_report, refuse_among_lines, refuse_contradictions
from onlinear.cli.show import Display, JsonDisplay, QuietDisplay, TableDisplay
from onlinear.text.names import printable

if TYPE_CHECKING:
    from onlinear.cli.checkpoints import Checkpoints, Saved
    from onlinear.cli.settings import Settings
    from onlinear.training.events import Report
    from onlinear.training.training import Training

EPILOG = """Examples:

onlinear train train.svm.gz --penalty l1=1e-6 --model ads.onlinear

onlinear train 'part-*.svm.zst' --loss hinge --solver comid,eta=0.5 --passes 3 --holdout 0.1

onlinear train clicks.parquet --target click --exclude id --model clicks.onlinear

onlinear train big.svm --model big.onlinear --checkpoint big.checkpoint --checkpoint-every 30s

onlinear train --resume big.checkpoint

onlinear train big.svm --penalty l1=1e-4 --tol 1e-4 --model big.onlinear

onlinear train 'part-*.parquet' --target click --penalty l1=1e-4 --tol 1e-3 --workers 4 --model clicks.onlinear

onlinear train --from clicks.onlinear today.parquet --model clicks.onlinear
"""
DEFAULT_INTERVAL = "60s"  # between checkpoints
NO_READER = "standard output has no reader any more"
PARTIAL = ".partial"  # the suffix of the model of a run that was interrupted
KIND_OF_RUN = {  # by whether it is over shards, and what to do
    True: "over shards: give --workers N or --dask ADDRESS with it",
    False: "in one process: leave out --workers and --dask",
}


def as_passes(given: str) -> int | str:
    """The value of --passes."""
    try:
        passes = int(given)
    except ValueError:
        from onlinear.training.few_rows import AUTO

        passes = 0
        if given == AUTO:
            return AUTO
    if passes < 1:
        raise typer.BadParameter("it must be a whole number of at least 1, or auto")
    return passes


@app.command(epilog=EPILOG)
@reads
@guarded
def train(
    ctx: typer.Context,
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files (svmlight, Vowpal Wabbit, Parquet, Arrow, CSV; text also .gz .bz2 .xz .zst), patterns, folders, - for "
            "standard input, or a bundled data set: breast-cancer, digits, iris, wine, diabetes.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="logistic, hinge, squared, huber, ...; e.g. huber,delta=0.5", metavar="LOSS", rich_help_panel=MODEL),
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option(help="none, l1, l2, elastic-net, ...; e.g. l1=1e-5", metavar="PENALTY", rich_help_panel=MODEL),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(help="implicit-ftrl, fiol, comid, rda, ...; e.g. comid,eta=0.5", metavar="SOLVER", rich_help_panel=MODEL),
    ] = None,
    average: Annotated[
        str | None, typer.Option(help="none, uniform, weighted-t1, suffix, ...", metavar="AVERAGE", rich_help_panel=MODEL)
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Scaling of columns: none, centred, tempered, dense, rms, max-abs, or standard (centres all; one more pass).",
            metavar="SCALE",
            rich_help_panel=MODEL,
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Fit an intercept.", rich_help_panel=MODEL)
    ] = True,
    clip: Annotated[
        bool | None,
        typer.Option(
            "--clip/--no-clip",
            help="Squared, poisson: predict within the labels seen. Default: yes, but for a named solver other than mixture.",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    forget: Annotated[
        float | None,
        typer.Option(
            help="Half-life in rows: older rows count less than half, for data that change.",
            metavar="ROWS",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty", help="Let predict --as intervals tell how far predictions may be off.", rich_help_panel=MODEL
        ),
    ] = False,
    task: Annotated[
        str,
        typer.Option(
            help="classify, regress, or auto (decided by the loss, then by the labels).", metavar="TASK", rich_help_panel=MODEL
        ),
    ] = "auto",
    classes: Annotated[
        str | None,
        typer.Option(
            help="All classes, e.g. 1,2,3 or a,b (not needed for -1,1 and 0,1).",
            metavar="A,B,...",
            rich_help_panel=MODEL,
        ),
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="Find the classes with one more pass over the labels.", rich_help_panel=MODEL)
    ] = False,
    class_weight: Annotated[
        str | None,
        typer.Option(
            help="Weights of the classes: 0=1,1=20, or balanced, which takes one more pass to count the labels.",
            metavar="balanced|A=W,...",
            rich_help_panel=MODEL,
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            help="Number of columns; some solvers and penalties need it (rls, total-variation).",
            min=1,
            rich_help_panel=MODEL,
        ),
    ] = None,
    passes: Annotated[
        Any,
        typer.Option(
            help="Passes over the rows; auto: for few rows, as many as held-out rows show to help.",
            parser=as_passes,
            metavar="N|auto",
            rich_help_panel=RUN,
        ),
    ] = 1,
    tol: Annotated[
        float | None,
        typer.Option(
            help="Continue until the objective is certified to be this near its optimum: 1e-4 is 0.01 %. Needs l1 or l2.",
            min=0.0,
            max=1.0,
            show_default=False,
            rich_help_panel=RUN,
        ),
    ] = None,
    max_passes: Annotated[
        int,
        typer.Option(help="With --tol: the most readings of all rows, those of --passes included.", min=1, rich_help_panel=RUN),
    ] = 100,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="With --workers or --dask, instead of --tol: so many rounds, the online pass included.",
            min=1,
            show_default=False,
            rich_help_panel=RUN,
        ),
    ] = None,
    shuffle_rows: Annotated[
        int | None,
        typer.Option(
            help="Shuffle within windows of so many rows. Default: 0 for files, all rows for a bundled set.",
            min=0,
            rich_help_panel=RUN,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the shuffle.", min=0, rich_help_panel=RUN)] = 0,
    holdout: Annotated[
        str | None,
        typer.Option(
            help="Rows to score but never learn: a share (0.1: every tenth row), or a file scored after each pass.",
            metavar="SHARE|FILE",
            rich_help_panel=RUN,
        ),
    ] = None,
    early_stop: Annotated[
        int | None,
        typer.Option(
            help="With --holdout: stop after so many passes without a better loss, and keep the best model.",
            min=1,
            rich_help_panel=RUN,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Save the state of the run to this file.", metavar="FILE", rich_help_panel=RUN)
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            help="Save it after so many rows (5000) or seconds (30s). Default: 60s.",
            metavar="ROWS|SECONDSs",
            rich_help_panel=RUN,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Continue from this checkpoint; it holds all other options.", metavar="FILE", rich_help_panel=RUN),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Continue training this model; it has its own parts, classes and columns. --passes counts further passes.",
            metavar="MODEL",
            rich_help_panel=RUN,
        ),
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Write the model to this file.", metavar="FILE", rich_help_panel=OUTPUT)
    ] = None,
    final: Annotated[
        bool,
        typer.Option("--final", help="Write a small file that can only predict.", rich_help_panel=OUTPUT),
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            help="With --model: write a page about the run and the model (HTML).", metavar="FILE", rich_help_panel=OUTPUT
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors.", rich_help_panel=OUTPUT)] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, for programs.", rich_help_panel=OUTPUT)
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Train a model, one row at a time, and show how well it predicted each row before learning it.

    The first Ctrl-C (or SIGTERM, or hang-up) stops after a whole row and writes the checkpoint; the second stops at once.
    """
    from onlinear.streams import StreamError

    given = ctx.params  # the options by name, as checkpoints keep them
    try:
        _train(ctx, given, reading)
    except (UsageError, StreamError) as error:
        from onlinear.cli.advice import advice_on

        advice = None if given["resume"] is not None else advice_on(ctx, reading, given)
        said = as_typed(str(error)) if isinstance(error, UsageError) else str(error)
        raise type(error)(said if advice is None else f"{said}\n{advice}") from None
    except ValueError as error:
        if type(error) is not ValueError:  # of a file
            raise
        raise ValueError(as_typed(str(error))) from None


def _train(ctx: typer.Context, given: dict[str, Any], reading: Reading) -> None:
    """Train by the options of ``train``, which ``given`` has by name."""
    if over_shards(given["workers"], given["dask"]):
        _train_shards(ctx, given, reading)
        return
    from onlinear.cli import runs
    from onlinear.streams.leaving import Leaving

    if given["rounds"] is not None:
        raise UsageError("--rounds are made over shards: give --workers N or --dask ADDRESS too.")

    shown: Display = QuietDisplay() if given["quiet"] else JsonDisplay() if given["json"] else TableDisplay()
    with Leaving() as pipes, Interrupts(pipes) as interrupts:
        saved = _saved_run(ctx, given, reading, sharded=False)
        with usage():
            if given["start"] is not None:
                runs.refuse_fixed(given["start"], (name for name in ctx.params if given_in(ctx, name)))
            model, final, keeper = _output(given, saved)
            check_report(given["report"], model, _inputs(given, saved))
            refuse_among_lines(given, model)
            training = runs.start(_settings(given, reading), keeper) if saved is None else runs.resume(saved, keeper)
        interrupts.follow(training)
        shown.start(training, given["resume"])
        timed = _run(training, shown, keeper, model)
        if model is not None:
            try:
                training.model.save(model, final=final)
            except (OSError, MemoryError) as error:
                fail(f"{_not_written(model, error)} {_describe_checkpoint(training, keeper)}", FAILURE)
        shown.end(training, model)
        if given["report"] is not None and model is not None:
            from onlinear.cli.report import report_of_run

            report_of_run(given["report"], model, training, timed, quiet=given["quiet"])


def _train_shards(ctx: typer.Context, given: dict[str, Any], reading: Reading) -> None:
    """Train over shards, by the options of ``train``."""
    from onlinear.cli import sharded

    saved = _saved_run(ctx, given, reading, sharded=True)
    with usage():
        model, final, keeper = _output(given, saved)
        refuse_among_lines(given, model)
        settings = _settings(given, reading) if saved is None else saved.settings
        if keeper is not None:
            keeper.keep(settings)
        sharded.refuse(settings, given)
    show = sharded.Quiet() if given["quiet"] else sharded.Json() if given["json"] else sharded.RoundTable()
    try:
        with sharded.runner(given["workers"], given["dask"]) as run:
            learned = sharded.fit(settings, run, show, keeper, given["resume"])
    except sharded.FailedError as error:
        fail(f"{error}{_continue_shards(keeper)}", FAILURE)
    except KeyboardInterrupt:
        fail(f"interrupted.{_continue_shards(keeper)}", INTERRUPTED)
    except BrokenPipeError:
        if keeper is None:
            raise
        fail(f"{NO_READER}.{_continue_shards(keeper)}", FAILURE)
    if model is not None:
        try:
            learned.save(model, final=final)
        except (OSError, MemoryError) as error:
            fail(f"{_not_written(model, error)}{_continue_shards(keeper)}", FAILURE)
    show.end(learned, model)


def _not_written(model: str, error: OSError | MemoryError) -> str:
    """What is said where a model cannot be written."""
    return f"the model {printable(model)} cannot be written: {reason(error)}"


def _continue_shards(keeper: Checkpoints | None) -> str:
    """How to continue a run over shards, where it left a checkpoint."""
    if keeper is None or keeper.last is None:
        return ""
    return f" To continue from the last round: {keeper.way_on()} with --workers or --dask."


def _run(training: Training, shown: Display, keeper: Checkpoints | None, model: str | None) -> list[tuple[Report, float]]:
    """Learn all rows; each report, and the seconds until it. Where that fails, keep the learned rows if possible, and end with
    a message."""
    from onlinear.cli.checkpoints import CheckpointError
    from onlinear.errors import DivergenceError
    from onlinear.streams import StreamError
    from onlinear.training.events import Interrupted, Report

    timed: list[tuple[Report, float]] = []
    try:
        with shown.running(training):
            began = time.perf_counter()
            for event in training:
                if isinstance(event, Report):
                    timed.append((event, time.perf_counter() - began))
                shown.event(event)
        return timed
    except Interrupted:
        message, code = f"interrupted after {rows_in_words(training.rows)}.", INTERRUPTED
    except BrokenPipeError:
        if model is None and keeper is None:
            raise  # the rows were learned for what is shown alone
        message, code = f"{NO_READER}, after {rows_in_words(training.rows)}.", FAILURE
    except (CheckpointError, DivergenceError) as error:
        fail(f"{words(error)} {_describe_checkpoint(training, keeper)}", FAILURE)
    except (ValueError, TypeError, OSError, ArithmeticError, MemoryError) as error:
        were = "was" if training.rows == 1 else "were"
        learned = f" {rows_in_words(training.rows)} {were} learned before it." if training.rows else ""
        said = as_typed(words(error)) if type(error) is ValueError else words(error)
        message, code = f"{said}{learned}", FAILURE
        if keeper is None and isinstance(error, StreamError):
            raise StreamError(f"{message}{_save_partial(training, model)}") from None  # ``train`` adds what to type
    if keeper is None:
        fail(f"{message}{_save_partial(training, model)}", code)
    elif training.rows > (training.written or 0):
        try:
            written = training.checkpoint()
        except CheckpointError as error:
            fail(f"{message} {error} {_describe_checkpoint(training, keeper)}", code)
        with suppress(OSError):  # what takes no more lines may be why the run ends
            shown.event(written)
    fail(f"{message} {_describe_checkpoint(training, keeper)}", code)


def _save_partial(training: Training, model: str | None) -> str:
    """Without a checkpoint, save the learned rows as a model beside the one that was asked for; returns the message."""
    from onlinear.files.paths import is_stream, suffixed

    if not training.rows:
        return ""
    if model is None:
        return " They are lost; --checkpoint FILE would keep them."
    if is_stream(model):
        return f" They are lost: {printable(model)} takes whole models only; --checkpoint FILE would keep them."
    partial = suffixed(model, PARTIAL)
    try:
        training.save(partial)
    except (OSError, MemoryError) as error:
        return f" They are lost: {printable(partial)} cannot be written ({reason(error).removesuffix('.')})."
    return f" A model of them is in {printable(partial)}; with --checkpoint FILE the run could be resumed."


def _describe_checkpoint(training: Training, keeper: Checkpoints | None) -> str:
    """The message that names the checkpoint and the command that continues from it."""
    if keeper is None or keeper.last is None or training.written is None:
        return "There is no checkpoint."
    again = "" if training.stream.rereadable else ", give it the same rows on standard input again"
    held = f"The checkpoint {printable(keeper.last)} holds {rows_in_words(training.written)}"
    return f"{held}; to continue{again}:\n  {keeper.way_on()}"


def _settings(given: dict[str, Any], reading: Reading) -> Settings:
    from onlinear.cli.settings import Settings

    if not given["source"] and given["resume"] is None:
        raise UsageError("give at least one source: files, a pattern, - for standard input, or a bundled data set.")
    own = {name: given[name] for name in Settings._fields if name in given}
    own["source"] = tuple(given["source"] or ())
    own["classes"] = None if given["classes"] is None else tuple(given["classes"].split(","))
    changed = {name: value for name, value in reading._asdict().items() if value != Reading._field_defaults[name]}
    return Settings(**own, reading=changed)


def _saved_run(ctx: typer.Context, given: dict[str, Any], reading: Reading, *, sharded: bool) -> Saved | None:
    """The run of the checkpoint that is continued; None for a new run. Raises UsageError for options that contradict each other
    or the run, and for a run of the other kind."""
    from onlinear.cli import checkpoints

    found = None if given["resume"] is None else checkpoints.read(given["resume"])
    with usage():
        refuse_contradictions(given)
        saved = None if found is None else check_agreement(ctx, found, _settings(given, reading), reading)
    if saved is not None and saved.sharded is not sharded:
        raise UsageError(f"{printable(saved.path)} is of a run {KIND_OF_RUN[saved.sharded]}.")
    return saved


def _output(given: dict[str, Any], saved: Saved | None) -> tuple[str | None, bool, Checkpoints | None]:
    """Where the model and the checkpoints go; a resumed run keeps its places and its checkpoint."""
    from onlinear.cli.checkpoints import Checkpoints, beside, may_replace
    from onlinear.files.paths import is_stream, same, suffixed

    read = _inputs(given, saved)
    then = {} if saved is None else saved.output
    model = then.get("model") if given["model"] is None else given["model"]
    final = given["final"] or then.get("final", False)
    if given["final"] and model is None:
        raise UsageError("--final needs --model FILE: it says what is written there.")
    path = given["resume"] if given["checkpoint"] is None else given["checkpoint"]
    every = then.get("every") if given["checkpoint_every"] is None else given["checkpoint_every"]
    if saved is not None and given["model"] is None and model is not None and not beside(saved.path, model):
        raise UsageError(
            f"the checkpoint {printable(saved.path)} names {model!r} for the model, which is not in the checkpoint's own "
            f"folder. A file does not choose what is written elsewhere: give --model {shlex.quote(model)}, or another place."
        )
    if model is not None:
        writable("--model", model, [*read, *([] if saved is None else [("the checkpoint", saved.path)])])
    if path is None:
        if every is not None:
            raise UsageError("--checkpoint-every needs --checkpoint FILE.")
        if model is None and not given["quiet"]:
            needs_output()  # the rows would be learned for lines that nobody can see
        if model is not None and not is_stream(model):
            writable("--model", suffixed(model, PARTIAL), read)  # where a run that is interrupted leaves its rows
        return model, final, None
    writable("--checkpoint", path, read, stream=False)
    if model is not None and same(model, path):
        raise UsageError(f"--model and --checkpoint are one file, {printable(model)}; the checkpoint would be lost.")
    if not may_replace(path):
        raise UsageError(
            f"--checkpoint {printable(path)}: there is such a file, and it is no checkpoint. Give another name or remove it."
        )
    rows, seconds = _interval(DEFAULT_INTERVAL if every is None else every)
    return model, final, Checkpoints(path, rows, seconds, {"model": model, "final": final, "every": every}, saved)


def _inputs(given: dict[str, Any], saved: Saved | None) -> list[tuple[str, str]]:
    """The files that the run reads, except the checkpoint that it continues from."""
    source, holdout = (given["source"], given["holdout"]) if saved is None else (saved.settings.source, saved.settings.holdout)
    try:
        float(holdout or 0.0)  # a share of the rows
    except ValueError:
        return [*inputs(source or ()), *inputs([str(holdout)], "a held-out file")]
    return inputs(source or ())


def _interval(text: str) -> tuple[int | None, float | None]:
    """Rows, or seconds."""
    if re.fullmatch(r"0*[1-9][0-9]{0,17}", text):
        return int(text), None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?s", text) and float(text[:-1]) > 0.0:
        return None, float(text[:-1])
    raise UsageError(f"--checkpoint-every must be a number of rows (5000) or of seconds (30s), got {text!r}.")
