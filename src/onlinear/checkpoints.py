"""A run of ``onlinear train``: its settings, its stream, and checkpoints from which it continues as if it had never stopped.

A checkpoint is a model file (``load`` gives the model as it stood) with an entry ``run`` in its header: the settings, the place
in the source (pass and rows), the generator of the shuffle at the start of that pass, and what has been reported; arrays named
``run.*`` hold the sums behind the measures. The rows before that place are read again and skipped.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from onlinear import models, streams
from onlinear.models import ModelFileError
from onlinear.run import CLASSIFY, Options, State, Training, Written
from onlinear.streams import Stream
from onlinear.streams.ahead import Ahead
from onlinear.streams.bundled import Bundled
from onlinear.streams.holdout import Marked
from onlinear.streams.labels import scan
from onlinear.tasks import Classifier, Model, Regressor, load

VERSION = 1
RUN = "run"
PARTS = ("loss", "penalty", "solver", "average", "scale")


class CheckpointError(Exception):
    """A checkpoint could not be written; the one before it stands."""


class Settings(NamedTuple):
    """All that decides what is learnt, by the names of the command's options; None is the estimator's default."""

    source: tuple[str, ...]
    reading: dict[str, Any]  # the other arguments of ``streams.open``
    loss: str | None = None
    penalty: str | None = None
    solver: str | None = None
    average: str | None = None
    scale: str | None = None
    intercept: bool = True
    passes: int = 1
    shuffle_rows: int | None = None  # None: all of a bundled set, none of a file
    seed: int = 0
    task: str = "auto"
    classes: tuple[Any, ...] | None = None
    scan: bool = False
    n_features: int | None = None  # fixed in advance, or None: the columns seen
    holdout: str | None = None  # a share of the rows, or a source
    early_stop: int | None = None


class Checkpoints:
    """Writes the checkpoints of one run, after every so many rows or seconds; with neither, only when asked."""

    def __init__(self, path: str, rows: int | None, seconds: float | None, output: Mapping[str, Any]) -> None:
        self.path, self.rows, self.seconds = path, rows, seconds
        self.output = dict(output)  # what else the one who goes on is to know
        self.settings: Settings | None = None  # of the run, once it is made

    def clear(self) -> None:
        """Remove what a run that was killed while it wrote this checkpoint has left; one run at a time writes it."""
        for left in Path(self.path).parent.glob(f".{glob.escape(Path(self.path).name)}.????????"):
            left.unlink(missing_ok=True)

    def write(self, training: Training) -> Written:
        """Write a checkpoint; the file that was there stands until the new one is whole. Raises CheckpointError."""
        assert self.settings is not None
        state = training.state()
        header, arrays = training.model.freeze()
        header[RUN] = {"version": VERSION, "settings": self.settings._asdict(), "output": self.output, **state.run}
        try:
            models.write(self.path, header, arrays | {f"{RUN}.{name}": array for name, array in state.arrays.items()})
        except OSError as error:
            raise CheckpointError(f"the checkpoint {self.path} cannot be written: {error.strerror or error}.") from None
        return Written(self.path, training.rows, os.path.getsize(self.path))


class Saved(NamedTuple):
    """What a checkpoint holds."""

    path: str
    settings: Settings
    output: dict[str, Any]
    state: State


def read(path: str) -> Saved:
    """Read a checkpoint; raises FileNotFoundError, ModelFileError."""
    header, arrays = models.read(path)
    run = header.get(RUN)
    if not isinstance(run, dict):
        raise ModelFileError(f"{path}: a model, not a checkpoint: it holds no run to resume.")
    if run.get("version") != VERSION:
        raise ModelFileError(f"{path}: a checkpoint of version {run.get('version')!r}; this release reads {VERSION}.")
    prefix = f"{RUN}."
    own = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
    try:
        given = run["settings"]
        lists = {name: _tuple(given[name]) for name in ("source", "classes")}
        reading = {name: _tuple(value) for name, value in given["reading"].items()}
        return Saved(path, Settings(**{**given, **lists, "reading": reading}), run["output"], State(run, own))
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path}: the checkpoint's header is damaged ({type(error).__name__}: {error}).") from None


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def start(settings: Settings, checkpoints: Checkpoints | None) -> Training:
    """A run from its first row."""
    chosen = {name: value for name in PARTS if (value := getattr(settings, name)) is not None}

    def make(task: str) -> Model:
        kind: type[Model] = Classifier if task == CLASSIFY else Regressor
        return kind(**chosen, passes=settings.passes, fit_intercept=settings.intercept, random_state=settings.seed)

    return _training(settings, make, checkpoints, None)


def resume(saved: Saved, checkpoints: Checkpoints | None) -> Training:
    """The run of a checkpoint, from the place where it stood."""
    return _training(saved.settings, lambda task: load(saved.path), checkpoints, saved.state)


def _training(settings: Settings, make: Any, checkpoints: Checkpoints | None, state: State | None) -> Training:
    if checkpoints is not None:
        checkpoints.settings = settings
        checkpoints.clear()
    reader = streams.open(list(settings.source), **settings.reading)
    classes = settings.classes
    if settings.scan:
        classes = scan(reader) if state is None else state.run["classes"]
    share, others = _holdout(settings, reader)
    stream = reader if share is None else Marked(reader, share)
    window = settings.shuffle_rows
    if window is None:
        window = reader.rows or 0 if isinstance(reader, Bundled) else 0
    shuffled = streams.Shuffled(stream, window, settings.seed) if window else None
    options = Options(settings.passes, settings.task, settings.loss, classes, settings.n_features, others, settings.early_stop)
    return Training(Ahead(shuffled or stream), options, make, shuffled=shuffled, keeper=checkpoints, saved=state)


def _holdout(settings: Settings, reader: Stream) -> tuple[float | None, Callable[[], Stream] | None]:
    """A share of the rows, or what opens others, in the columns of ``reader`` as they stand then."""
    if settings.holdout is None:
        return None, None
    try:
        return float(settings.holdout), None
    except ValueError:
        source = settings.holdout

    def others() -> Stream:
        return streams.open(source, **settings.reading, encoding=reader.encoding)

    others()  # a file that is not there is told before the run
    return None, others
