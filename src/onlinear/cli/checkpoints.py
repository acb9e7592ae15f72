"""A run of ``onlinear train``: its settings, its stream, and checkpoints from which it continues as if it had never stopped.

A checkpoint is a model file (``load`` gives the model as it stood) with an entry ``run`` in its header: the settings, the place
in the source (pass and rows), the generator of the shuffle at the start of that pass, and what has been reported; arrays named
``run.*`` hold the sums behind the measures. The rows before that place are read again and skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from onlinear import streams
from onlinear.errors import ModelFileError
from onlinear.files import model_file, trust, writing
from onlinear.models.base import Classifier, Model, Regressor
from onlinear.models.loading import load
from onlinear.rows import LARGEST_COLUMN
from onlinear.streams import Stream
from onlinear.streams.ahead import Ahead
from onlinear.streams.bundled import Bundled
from onlinear.streams.files import is_pipe
from onlinear.streams.hashing import MOST_BITS
from onlinear.streams.holdout import Marked
from onlinear.streams.labels import scan
from onlinear.streams.weighted import balanced, class_totals, typed
from onlinear.training.events import Written
from onlinear.training.options import CLASSIFY, REGRESS, TASKS, Options
from onlinear.training.saved import State
from onlinear.training.trainable import Trainable
from onlinear.training.training import Training

VERSION = 1
RUN = "run"
BALANCED = "balanced"
PARTS = ("loss", "penalty", "solver", "average", "scale")


class CheckpointError(Exception):
    """A checkpoint could not be written; the one before it stands."""


class Settings(NamedTuple):
    """All that decides what is learned, by the names of the command's options; None is the estimator's default."""

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
    class_weight: str | None = None  # balanced, or 0=1,1=20


class Checkpoints:
    """Writes the checkpoints of one run, after every so many rows or seconds; with neither, only when asked."""

    def __init__(self, path: str, rows: int | None, seconds: float | None, output: Mapping[str, Any]) -> None:
        self.path, self.rows, self.seconds = path, rows, seconds
        self.output = dict(output)  # what else the one who goes on is to know
        self.settings: Settings | None = None  # of the run, once it is made

    def write(self, training: Training) -> Written:
        """Write a checkpoint; the file that was there stands until the new one is whole. Raises CheckpointError."""
        assert self.settings is not None
        state = training.state()
        header, arrays = training.model.freeze()
        header[RUN] = {"version": VERSION, "settings": self.settings._asdict(), "output": self.output, **state.run}
        try:
            model_file.write(self.path, header, arrays | {f"{RUN}.{name}": array for name, array in state.arrays.items()})
        except OSError as error:
            raise CheckpointError(f"the checkpoint {self.path} cannot be written: {error.strerror or error}.") from None
        return Written(self.path, training.rows, os.path.getsize(self.path))


class Saved(NamedTuple):
    """What a checkpoint holds."""

    path: str
    settings: Settings
    output: dict[str, Any]
    state: State


def beside(checkpoint: str, path: str) -> bool:
    """Whether a path is in the folder of a checkpoint, or below: a run that goes on writes nowhere else unasked."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.dirname(os.path.realpath(checkpoint)))


def read(path: str) -> Saved:
    """Read a checkpoint; raises FileNotFoundError, ModelFileError."""
    header, arrays = model_file.read(path)
    run = header.get(RUN)
    if not isinstance(run, dict):
        raise ModelFileError(f"{path}: a model, not a checkpoint: it holds no run to resume.")
    if run.get("version") != VERSION:
        raise ModelFileError(f"{path}: a checkpoint of version {run.get('version')!r}; this release reads {VERSION}.")
    prefix = f"{RUN}."
    own = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
    run = {**dict.fromkeys(SINCE_0_2), **run}
    _must_be(path, run, RUNS)
    if not _run_stands(run):
        raise ModelFileError(f"{path}: the checkpoint's header is damaged: the places of its run do not go together.")
    given, output = run["settings"], run["output"]
    _must_be(path, {**Settings._field_defaults, **given}, SETTINGS)
    _must_be(path, {**dict.fromkeys(OUTPUTS), **output}, OUTPUTS)
    for name, value in given["reading"].items():
        _must_be(path, {name: value}, {name: READING.get(name, _nothing)})
    lists = {name: _tuple(given.get(name)) for name in ("source", "classes")}
    reading = {name: _tuple(value) for name, value in given["reading"].items()}
    return Saved(path, Settings(**{**given, **lists, "reading": reading}), output, State(run, own))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- what the header of a checkpoint may say -------------------------------------------------------------------------

Rule = Callable[[Any], bool]


def _must_be(path: str, found: dict[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise ModelFileError unless an object has entries of these names and kinds, and no others."""
    for name in [*rules, *found]:
        if name not in rules or name not in found or not rules[name](found[name]):
            what = f"has no {name}" if name not in found else f"says {name}={str(found[name])[:80]}"
            raise ModelFileError(f"{path}: the checkpoint's header is damaged: it {what}, which cannot be.")


def _nothing(value: Any) -> bool:
    return False


def _flag(value: Any) -> bool:
    return type(value) is bool


def _text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _within(low: int, high: int = trust.MOST_STEPS) -> Rule:
    return lambda value: trust.count(value, low, high)


def _places(values: Any) -> bool:
    """Two checksums."""
    return isinstance(values, list) and len(values) == 2 and all(trust.count(value, 0, 2**32 - 1) for value in values)


def _then(values: Any) -> bool:
    """What the last report told: sums of losses and weights, and the rows."""
    return isinstance(values, list) and len(values) == 3 and all(map(trust.real, values)) and trust.count(values[2])


def _class_names(values: Any) -> bool:
    """Classes, ascending: all texts, or all numbers."""
    if not isinstance(values, list) or len(values) < 2:
        return False
    if not trust.texts(values) and not all(map(_class_number, values)):
        return False
    return all(first < second for first, second in pairwise(values))


def _class_number(value: Any) -> bool:
    return abs(value) <= 2**53 if type(value) is int else type(value) is float and isfinite(value)


def _sums(values: Any) -> bool:
    """A sum of losses and one of weights."""
    return isinstance(values, list) and len(values) == 2 and all(map(trust.real, values))


def _class_weights(values: Any) -> bool:
    """Pairs of a class and its weight."""
    pairs = isinstance(values, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in values)
    return pairs and all(
        (isinstance(name, str) or _class_number(name)) and trust.real(weight, finite=True) and weight >= 0.0
        for name, weight in values
    )


def _best(values: Any) -> bool:
    """The pass of the best model, its loss and its header."""
    three = isinstance(values, list) and len(values) == 3
    return three and trust.count(values[0], 1) and trust.real(values[1]) and _object(values[2])


def _run_stands(run: dict[str, Any]) -> bool:
    """Whether the places of a run go together: the next report is due when the rows have doubled."""
    last = run["then"][2]
    return run["flushed"] <= run["consumed"] and last <= run["rows"] < max(1, 2 * last)


_OPTIONAL = _or_none(_text)
RUNS: dict[str, Rule] = {
    "version": _within(VERSION, VERSION),
    "settings": _object,
    "output": _object,
    "task": lambda task: task in (CLASSIFY, REGRESS),
    "classes": _or_none(_class_names),
    "pass": _within(0),
    "consumed": _within(0),
    "flushed": _within(0),
    "trace": _places,
    "generator": _object,
    "rows": _within(0),
    "then": _then,
    "holding": _flag,
    "best": _or_none(_best),
    "class weights": _or_none(_class_weights),
    "scored": _or_none(_within(0)),
    "averaged then": _or_none(_sums),
    "quality": _or_none(_object),
}
SINCE_0_2 = ("class weights", "scored", "averaged then", "quality")  # entries of a run that checkpoints of 0.1 lack
SETTINGS: dict[str, Rule] = {
    "source": lambda source: trust.texts(source) and len(source) > 0 and all(map(_text, source)),
    "reading": _object,
    "loss": _OPTIONAL,
    "penalty": _OPTIONAL,
    "solver": _OPTIONAL,
    "average": _OPTIONAL,
    "scale": _OPTIONAL,
    "intercept": _flag,
    "passes": _within(1),
    "shuffle_rows": _or_none(_within(0)),
    "seed": _within(0, 2**128),
    "task": lambda task: task in TASKS,
    "classes": _or_none(lambda values: isinstance(values, (list, tuple)) and all(_text(v) or trust.real(v) for v in values)),
    "scan": _flag,
    "n_features": _or_none(_within(1, LARGEST_COLUMN + 1)),
    "holdout": _OPTIONAL,
    "early_stop": _or_none(_within(1)),
    "class_weight": _OPTIONAL,
}
OUTPUTS: dict[str, Rule] = {"model": _OPTIONAL, "final": _or_none(_flag), "every": _OPTIONAL}
_NAMES = _or_none(trust.texts)
READING: dict[str, Rule] = {
    "format": _text,
    "base": _or_none(_within(0, 1)),
    "sort": _flag,
    "target": _OPTIONAL,
    "weight": _OPTIONAL,
    "features": _NAMES,
    "exclude": _NAMES,
    "text": _NAMES,
    "numbers": _NAMES,
    "categories": _text,
    "hash_bits": _or_none(_within(1, MOST_BITS)),
    "missing": _text,
    "dates": _OPTIONAL,
    "nulls": _NAMES,
    "delimiter": _OPTIONAL,
    "max_errors": _within(0),
}


def start(settings: Settings, checkpoints: Checkpoints | None) -> Training:
    """A run from its first row."""
    return _training(settings, checkpoints, None)


def resume(saved: Saved, checkpoints: Checkpoints | None) -> Training:
    """The run of a checkpoint, from the place where it stood. Raises ModelFileError for one whose parts do not go together."""
    try:
        return _training(saved.settings, checkpoints, saved)
    except ModelFileError as error:
        prefix = f"{saved.path}: "
        raise ModelFileError(f"{prefix}{str(error).removeprefix(prefix)}") from None


def _training(settings: Settings, checkpoints: Checkpoints | None, saved: Saved | None) -> Training:
    if checkpoints is not None:
        checkpoints.settings = settings
        writing.clean(checkpoints.path)  # a run that was killed may have left its last one half written
    reader = streams.open(list(settings.source), **settings.reading)
    share, others = _holdout(settings, reader)
    stream = reader if share is None else Marked(reader, share)
    classes, weights = _classes(settings, stream, None if saved is None else saved.state.run)
    window = settings.shuffle_rows
    if window is None:
        window = reader.rows or 0 if isinstance(reader, Bundled) else 0
    shuffled = streams.Shuffled(stream, window, settings.seed) if window else None
    options = Options(
        settings.passes, settings.task, settings.loss, classes, settings.n_features, others, weights, settings.early_stop
    )

    def make(task: str) -> Trainable:
        if settings.class_weight is not None and task != CLASSIFY:
            raise ValueError(f"--class-weight weighs classes; the task is to {task}.")
        return _model(settings, task, reader) if saved is None else load(saved.path)

    state = None if saved is None else saved.state
    return Training(Ahead(shuffled or stream), options, make, shuffled=shuffled, keeper=checkpoints, saved=state)


def _model(settings: Settings, task: str, reader: Stream) -> Model:
    """The estimator that a run trains."""
    chosen = {name: value for name in PARTS if (value := getattr(settings, name)) is not None}
    kind: type[Model] = Regressor
    if task == CLASSIFY:
        kind, weights = Classifier, settings.class_weight
        if weights is not None:
            chosen["class_weight"] = weights if weights == BALANCED else typed(_named_weights(weights), reader)
    return kind(**chosen, passes=settings.passes, fit_intercept=settings.intercept, random_state=settings.seed)


def _classes(settings: Settings, stream: Stream, run: dict[str, Any] | None) -> tuple[Any, Mapping[Any, float] | None]:
    """The classes and their weights, counted by one pass over the labels where that is asked for."""
    if run is not None:
        weights = run.get("class weights")
        return run["classes"] if settings.scan else settings.classes, None if weights is None else dict(weights)
    classes, balance = settings.classes, settings.class_weight == BALANCED
    named = None if settings.class_weight is None or balance else _named_weights(settings.class_weight)
    if settings.scan and not balance:
        classes = scan(stream)
    if not balance:
        return classes, named
    totals = class_totals(stream)
    classes = tuple(sorted(totals)) if settings.scan else classes
    return classes, dict(zip(totals, balanced(totals.values()).tolist(), strict=True))


def _named_weights(text: str) -> dict[str, float]:
    """The weights in ``0=1,1=20``, by the names of the classes."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = part.rpartition("=")
        if not (name and equals and _is_weight(weight)):
            raise ValueError(f"--class-weight must be {BALANCED} or weights of at least 0 such as 0=1,1=20, got {text!r}.")
        if name in found:
            raise ValueError(f"--class-weight gives the class {name} two weights, in {text!r}.")
        found[name] = float(weight)
    return found


def _is_weight(text: str) -> bool:
    try:
        return 0.0 <= float(text) < inf
    except ValueError:
        return False


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

    if is_pipe(source):
        raise ValueError(f"{source}: a pipe cannot be read after each pass; --holdout needs a file.")
    others()  # a file that is not there is told before the run
    return None, others
