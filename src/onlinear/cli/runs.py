"""Runs of ``onlinear train``, from their settings or from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from onlinear import streams
from onlinear.cli.checkpoints import Checkpoints, Saved
from onlinear.cli.reading import open_labelled
from onlinear.cli.settings import Settings
from onlinear.errors import ModelFileError
from onlinear.files import writing
from onlinear.models.base import Classifier, Model, Regressor
from onlinear.models.chosen_parts import asks_for_gap
from onlinear.models.loading import load
from onlinear.models.predictor import Final
from onlinear.streams import Stream
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import refuse_no_rows
from onlinear.streams.bundled import Bundled
from onlinear.streams.files import is_pipe
from onlinear.streams.holdout import Marked
from onlinear.streams.labels import scan
from onlinear.streams.weighted import balanced_weights, typed
from onlinear.text.names import option_of, printable
from onlinear.training.auto_passes import with_passes
from onlinear.training.few_rows import AUTO
from onlinear.training.options import CLASSIFY, Options
from onlinear.training.trainable import Trainable
from onlinear.training.training import Training

BALANCED = "balanced"
PARTS = ("loss", "penalty", "solver", "average", "scale", "forget")
FIXED = (
    *PARTS,
    "uncertainty",
    "clip",
    "intercept",
    "task",
    "classes",
    "scan",
    "n_features",
    "tol",
    "max_passes",
)  # what a model has that training continues from


def start(settings: Settings, checkpoints: Checkpoints | None) -> Training:
    """A run from its first row."""
    return _training(settings, checkpoints, None)


def resume(saved: Saved, checkpoints: Checkpoints | None) -> Training:
    """The run of a checkpoint, from the place where it stood. Raises ModelFileError for one whose parts do not go together."""
    try:
        return _training(saved.settings, checkpoints, saved)
    except ModelFileError as error:
        prefix = f"{printable(saved.path)}: "
        raise ModelFileError(f"{prefix}{str(error).removeprefix(prefix)}") from None


def _training(settings: Settings, checkpoints: Checkpoints | None, saved: Saved | None) -> Training:
    if checkpoints is not None:
        writing.clean(checkpoints.path)  # a run that was killed may have left its last one half written
    start = None if settings.start is None else _trained(settings)
    reader = _open(settings) if start is None else open_labelled(list(settings.source), settings.reading, start)
    share, others = _holdout(settings, reader)
    stream = reader if share is None else Marked(reader, share)
    shuffled = _shuffle(settings, stream, reader, resumed=saved is not None)
    classes, weights = _classes(settings, stream, None if saved is None else saved.state.run)
    if isinstance(start, Classifier):
        classes, weights = start.classes_, weights or _own_weights(start, settings)
    options = _options(settings, start, classes, weights, others)

    def make(task: str) -> Trainable:
        if start is not None:
            refuse_for_task(settings, task)
            return start
        return estimator(settings, task, reader) if saved is None else load(saved.path)

    state, ahead = None if saved is None else saved.state, Ahead(shuffled or stream)
    if settings.passes == AUTO:
        options = with_passes(ahead, options, make, shuffled)
        settings = settings._replace(passes=options.passes, slope=options.slope)
    if checkpoints is not None:
        checkpoints.keep(settings)
    return Training(ahead, options, make, shuffled=shuffled, keeper=checkpoints, saved=state)


def _shuffle(settings: Settings, stream: Stream, reader: Stream, *, resumed: bool) -> streams.Shuffled | None:
    """The rows in another order: as asked, or of a bundled set. Raises ValueError for a seed without use."""
    window = settings.shuffle_rows
    if window is None:
        window = reader.rows or 0 if isinstance(reader, Bundled) else 0
    if window:
        return streams.Shuffled(stream, window, settings.seed)
    if settings.seed != Settings._field_defaults["seed"] and not resumed:
        raise ValueError("--seed is of the shuffle, and these rows are learned in their order: give --shuffle-rows N.")
    return None


def _options(settings: Settings, start: Model | None, classes: Any, weights: Any, others: Any) -> Options:
    """What decides how a run learns; ``start``: the model that it continues from, ``others``: what opens held-out rows."""
    return Options(
        passes=1 if isinstance(settings.passes, str) else settings.passes,
        task=settings.task if start is None else start.task,
        loss=settings.loss,
        classes=classes,
        known=start is not None,
        features=settings.n_features,
        holdout=others,
        class_weights=weights,
        continues=start is not None,
        patience=settings.early_stop,
        most=settings.max_passes if asks_for_gap(settings.tol, settings.solver) else None,
        slope=settings.slope,
    )


def _open(settings: Settings) -> Stream:
    """The rows of a run, as its options say."""
    return streams.open(list(settings.source), **settings.reading)


def refuse_fixed(start: str, given: Iterable[str]) -> None:
    """Raise ValueError where an option was given that the model decides from which training continues."""
    for name in given:
        if name in FIXED:
            raise ValueError(f"{option_of(name)} is a setting of the model {printable(start)}, which --from does not change.")


def _trained(settings: Settings) -> Model:
    """The model that training continues from; raises ValueError for one that cannot learn."""
    start = str(settings.start)
    path = printable(start)
    model = load(start)
    if not isinstance(model, Model):
        raise ValueError(f"{path} holds a bare learner, which knows no task: --from takes what train or save wrote.")
    if isinstance(model.learner_, Final):
        raise ValueError(
            f"{path} is a final model, which can only predict: --from needs a file that was written without --final."
        )
    if model.learner_.engine.batch:
        solver = model.learner_.spec["solver"]
        raise ValueError(f"{path} is of {solver!r}, which needs all rows at once: train anew on all rows, old and new.")
    return model


def _own_weights(model: Classifier, settings: Settings) -> Mapping[Any, float] | None:
    """The weights of classes that a model was trained with."""
    if model.class_weight == BALANCED and settings.class_weight is None:
        raise ValueError(
            f"{printable(str(settings.start))} was trained with --class-weight balanced: say --class-weight balanced to count "
            "the labels of these rows, or name the weights."
        )
    return model.class_weight if isinstance(model.class_weight, dict) else None


def refuse_for_task(settings: Settings, task: str) -> None:
    """Raise ValueError for options that the other task has."""
    if settings.class_weight is not None and task != CLASSIFY:
        raise ValueError(f"--class-weight weighs classes; the task is to {task}.")
    if settings.clip is not None and task == CLASSIFY:
        raise ValueError(f"{'--clip' if settings.clip else '--no-clip'} is for predictions of numbers; the task is to {task}.")


def estimator(settings: Settings, task: str, reader: Stream) -> Model:
    """The estimator that a run trains. Raises ValueError for options that its task does not have."""
    refuse_for_task(settings, task)
    chosen = {name: value for name in PARTS if (value := getattr(settings, name)) is not None}
    kind: type[Classifier] | type[Regressor] = Regressor
    if task != CLASSIFY:
        chosen["clip"] = settings.clip
    else:
        kind, weights = Classifier, settings.class_weight
        if weights is not None:
            chosen["class_weight"] = (
                weights if weights == BALANCED else typed(_named_weights(weights), text=reader.labels is not None)
            )
    passes: dict[str, Any] = {"passes": settings.passes, "tol": settings.tol, "max_passes": settings.max_passes}
    chosen["uncertainty"] = settings.uncertainty
    return kind(**chosen, **passes, fit_intercept=settings.intercept, random_state=settings.seed)


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
    weights = balanced_weights(stream, finds=settings.scan)
    return tuple(sorted(weights)) if settings.scan else classes, weights


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
        raise ValueError(f"{printable(source)}: a pipe cannot be read after each pass; --holdout needs a file.")
    try:
        first = others()
        refuse_no_rows(first.name, any(block.n for block in first))  # what cannot be scored raises before the run
    except ValueError as error:
        if type(error) is not ValueError:  # which names its file
            raise
        raise ValueError(f"--holdout {printable(source)}: {error}") from None
    return None, others
