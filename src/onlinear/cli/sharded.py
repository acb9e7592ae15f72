"""``--workers`` and ``--dask``: files read by several processes or machines. Imported when one of them is given."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import typer

from onlinear import shards, streams
from onlinear.certified import Standing
from onlinear.cli import runs
from onlinear.cli.checkpoints import RUN, Checkpoints
from onlinear.cli.command import FAILURE, Reading, UsageError, fail, usage, words
from onlinear.cli.lines import (
    WIDTH,
    certified_heads,
    certified_line,
    describe_parts,
    json_line,
    keep_end,
    model_line,
    parts_lines,
    round_heads,
    round_line,
    size_written,
    wrap_words,
)
from onlinear.cli.reading import as_model
from onlinear.cli.settings import Settings
from onlinear.models.base import Model
from onlinear.models.chosen_parts import asks_for_gap
from onlinear.models.evaluation import Result
from onlinear.shards import CorrectedRound, File, Local, Round, Runner
from onlinear.solvers.core.certified import certificate, counted
from onlinear.text.names import option_of, printable
from onlinear.training.options import Options, choose_task, decides

CONNECT = 10.0  # seconds within which a scheduler answers
# Options that need all rows in one place or in one order, and what to do instead.
ONE_PLACE = {
    "start": "a fit over shards begins at its own first pass",
    "passes": "--tol or --rounds says how often the rows are read",
    **dict.fromkeys(("shuffle_rows", "seed"), "each file is read in its order"),
    "holdout": "keep rows in a file of their own, and give it to evaluate",
    "early_stop": "it ends at the certified gap",
    "forget": "a certificate is about all rows alike",
    "uncertainty": "it needs rows that were not learned before",
    "classes": "the first reading finds them",
    "n_features": "the first reading finds the columns",
}


NO_ERRORS = "--max-errors has no form over shards: each worker would count its own."


class FailedError(Exception):
    """A run ended without its result."""


@contextmanager
def runner(workers: int | None, dask: str | None) -> Iterator[Runner]:
    """Who reads the files. Raises UsageError for a scheduler that does not answer, and FailedError where the workers fail."""
    try:
        if dask is None:
            with Local(workers or 1, processes=workers is not None and workers > 1) as local:
                yield local
        else:
            with _cluster(dask) as client:
                yield client
    except BrokenPipeError:
        raise  # of standard output, which no worker reads
    except (RuntimeError, OSError, ValueError, TypeError, ArithmeticError, MemoryError) as error:
        raise FailedError(words(error)) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        raise FailedError(f"the cluster gave up: {words(error)}") from error


@contextmanager
def _cluster(address: str) -> Iterator[Runner]:
    try:
        from onlinear.dask import OnDask, connected
    except ImportError:
        raise UsageError("--dask needs the extra dask: pip install 'onlinear[dask]'.") from None
    try:
        client = connected(address, CONNECT)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--dask {address}: no scheduler answers there ({words(error)})") from None
    with client:
        if not client.nthreads():
            raise UsageError(f"--dask {address}: the cluster has no workers.")
        try:
            runner = OnDask(client)
        except RuntimeError as error:
            raise UsageError(f"--dask {address}: {error}") from None
        yield runner


def refuse(settings: Settings, given: dict[str, Any]) -> None:
    """Raise UsageError for options that have no meaning over shards."""
    for name, why in ONE_PLACE.items():
        if getattr(settings, name) != Settings._field_defaults[name]:
            raise UsageError(f"{option_of(name)} has no form over shards: {why}.")
    if given["report"] is not None:
        raise UsageError("--report has no form over shards: make the page of the model file with onlinear report.")
    if given["checkpoint_every"] is not None:
        raise UsageError("--checkpoint-every has no form over shards: a checkpoint is written after each round.")
    if settings.reading.get("max_errors"):
        raise UsageError(NO_ERRORS)
    certifies = asks_for_gap(settings.tol, settings.solver)
    if settings.rounds is not None and certifies:
        raise UsageError("--tol and --rounds exclude each other: one ends at a certified gap, the other after so many rounds.")
    if settings.rounds is None and not certifies:
        raise UsageError("--workers and --dask need --tol, such as --tol 1e-3, or --rounds, such as --rounds 6.")


class Ended(NamedTuple):
    """Where a run ended; of several outputs objectives are summed, and the gap is the largest."""

    passes: int
    objective: float
    gap: float
    converged: bool | None  # None: of so many rounds
    nonzeros: int
    weights: int

    @classmethod
    def of(cls, learner: Any) -> Ended:
        """Where a learner stands."""
        objective, gap, nonzeros = Standing.of((certificate(state), state.arrays["w"]) for state in learner.states)
        passes = max(counted(state)[1] for state in learner.states)
        return cls(passes, objective, gap, gap <= learner.solver.tol, nonzeros, learner.size * learner.n_outputs)

    @classmethod
    def after(cls, found: CorrectedRound, learner: Any) -> Ended:
        """Where a learner stands after its last round."""
        return cls(found.passes, found.objective, found.gap, None, found.nonzeros, learner.size * learner.n_outputs)


class Quiet:
    """``--quiet``."""

    last: Round | CorrectedRound | None = None

    def begin(self, source: str, files: int, model: Model, resumed: str | None) -> None:
        """Before the first reading."""
        self.began = time.perf_counter()

    def round(self, found: Round | CorrectedRound) -> None:
        """After each round."""
        self.last = found

    def ended(self, learner: Any) -> Ended:
        """Where the run ended."""
        return Ended.after(self.last, learner) if isinstance(self.last, CorrectedRound) else Ended.of(learner)

    def end(self, model: Any, path: str | None) -> None:
        """At the end, once the model is written."""


class Json(Quiet):
    """``--json``: one object per line."""

    def begin(self, source: str, files: int, model: Model, resumed: str | None) -> None:
        super().begin(source, files, model, resumed)
        from onlinear import __version__

        typer.echo(json_line("start", version=__version__, source=source, task=model.task, shards=files, resumed=resumed))

    def round(self, found: Round | CorrectedRound) -> None:
        super().round(found)
        typer.echo(json_line("round" if isinstance(found, CorrectedRound) else "certified", **found._asdict()))

    def end(self, model: Any, path: str | None) -> None:
        learner, ended = model.learner_, self.ended(model.learner_)
        certified = {"gap": ended.gap, "objective": ended.objective, "converged": ended.converged}
        typer.echo(
            json_line(
                "end",
                passes=ended.passes,
                seconds=time.perf_counter() - self.began,
                nonzeros=ended.nonzeros,
                weights=learner.size * learner.n_outputs,
                **describe_parts(learner),
                certified=certified,
                model=path,
                bytes=size_written(path),
            )
        )


class RoundTable(Quiet):
    """The growing table of rounds."""

    def begin(self, source: str, files: int, model: Model, resumed: str | None) -> None:
        super().begin(source, files, model, resumed)
        task = f": {model.task}, {files:,} {'shard' if files == 1 else 'shards'}"
        typer.echo(f"{keep_end(source, WIDTH - len(task))}{task}")
        if files == 1:
            self.tell("One file is one shard, which one worker reads. Cut it into several to use more of them.")
        if resumed is not None:
            self.tell(f"resumed from {printable(resumed)}")
        for line in certified_heads() if model.certifies() else round_heads():
            typer.echo(line)

    def tell(self, text: str) -> None:
        """Words, as lines of at most 80 characters."""
        for line in wrap_words(text):
            typer.echo(line)

    def round(self, found: Round | CorrectedRound) -> None:
        super().round(found)
        line = round_line(found) if isinstance(found, CorrectedRound) else certified_line(found)
        typer.echo(f"{line}{found.seconds:>8.1f} s")

    def end(self, model: Any, path: str | None) -> None:
        from onlinear.certified import above

        learner, ended = model.learner_, self.ended(model.learner_)
        typer.echo()
        for line in parts_lines(learner):
            typer.echo(line)
        self.tell(f"{ended.passes} passes in {time.perf_counter() - self.began:.2f} s")
        self.tell(f"non-zero weights: {ended.nonzeros:,} of {ended.weights:,}")
        if ended.converged or (ended.converged is None and isfinite(ended.gap)):
            self.tell(f"certified: the objective is {above(ended.gap)}")
        elif ended.converged is not None:
            self.tell(f"not certified within the tolerance: the gap is {ended.gap:.3g}. Give more --max-passes.")
        self.tell(model_line(path))


def fit(settings: Settings, runner: Runner, show: Quiet, keeper: Checkpoints | None, resume: str | None) -> Model:
    """The model that a run over shards ends with."""
    with usage():
        files = shards.open_shards(settings.source, **settings.reading)
        model = _estimator(settings, files)
        shards.refuse(model, settings.rounds)
    show.begin(", ".join(settings.source), len(files), model, resume)
    kept = None if keeper is None else shards.Keeper(keeper.path, {RUN: keeper.entry()})

    def tell(found: Round | CorrectedRound) -> None:
        if keeper is not None:
            keeper.wrote()
        show.round(found)

    return shards.fit(model, files, runner, tell, rounds=settings.rounds, checkpoint=kept, resume=resume)


def _estimator(settings: Settings, files: list[File]) -> Model:
    """The estimator, whose task the first rows of the first file tell where the options do not."""
    stream = streams.open(files[0].name, **files[0].options)
    head, rows, entries = [], 0, 0
    if settings.task == "auto":
        for block in stream:
            head.append(block)
            rows += block.n
            entries += len(block.rows.indices)
            if decides(rows, entries):
                break
    options = Options(task=settings.task, loss=settings.loss, classes=() if settings.scan else None)
    return runs.estimator(settings, choose_task(options, stream, head), stream)


def predict(
    model: Any, source: list[str], reading: Reading, kind: str, workers: int | None, dask: str | None
) -> Iterator[np.ndarray]:
    """Predictions of the rows of files, in their order."""
    files = _files_of(model, source, reading, with_target=False)
    with _failing(), runner(workers, dask) as run:
        yield from shards.predict(model, files, run, kind)


def evaluate(model: Any, source: list[str], reading: Reading, gap: bool, workers: int | None, dask: str | None) -> Result:
    """How well a model predicts the rows of files."""
    if gap:
        raise UsageError("--gap has no form over shards: leave out --workers and --dask.")
    files = _files_of(model, source, reading, with_target=True)
    with _failing(), runner(workers, dask) as run:
        return shards.evaluate(model, files, run, ", ".join(source))


def _files_of(model: Any, source: list[str], reading: Reading, *, with_target: bool) -> list[File]:
    """The files of a source as shards, their columns numbered as the model's."""
    if reading.max_errors:
        raise UsageError(NO_ERRORS)
    with usage():
        options = as_model(source, reading._asdict(), model, with_target=with_target)
        return shards.open_shards(source, **options)


@contextmanager
def _failing() -> Iterator[None]:
    """What fails within ends the command with a message."""
    try:
        yield
    except FailedError as error:
        fail(str(error), FAILURE)
