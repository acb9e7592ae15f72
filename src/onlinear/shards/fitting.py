"""Fits a model to all shards: a survey, an online pass, then rounds of sums over rows up to a certified gap (MATH 20.5, 20.6),
or so many corrected rounds (20.7)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import sqrt
from typing import Any, NamedTuple, TypeVar

import numpy as np

from onlinear.certified.newton import strengths_of
from onlinear.certified.rounds import LARGEST
from onlinear.learner import Learner
from onlinear.learner.arguments import count
from onlinear.learner.classes import outputs_of
from onlinear.learner.parts import preset_of
from onlinear.learner.rounds import RoundsOfBlocks
from onlinear.models.base import Classifier, Model
from onlinear.models.chosen_parts import names_certified
from onlinear.models.class_labels import check_class_weight, weights_by_name
from onlinear.models.strengths import with_step
from onlinear.shards.checkpoints import Keeper, Stand, restore
from onlinear.shards.correctable import given_average, learner_of_rounds, refuse_rounds, refuse_scale
from onlinear.shards.corrected import CorrectedRounds
from onlinear.shards.runners import Runner
from onlinear.shards.sources import Shard, name_columns
from onlinear.shards.tasks import Job, Looks, Start, Survey, correct, learn, look, survey
from onlinear.streams import StreamError
from onlinear.streams.labels import as_classes
from onlinear.streams.weighted import balanced, typed
from onlinear.training.metrics import unit_of

FIRST = "fiol,eta=5"  # the solver of the online pass
STARTING = LARGEST // 3  # weights that the rounds begin with, so that a working set has room for others
ModelT = TypeVar("ModelT", bound=Model)


class Round(NamedTuple):
    """Where a fit stands after a reading of all rows. Of several classes objectives and counts are summed, and the gap is the
    largest."""

    passes: int
    objective: float
    gap: float
    nonzeros: int
    columns: int  # of the working set
    seconds: float  # of this round


class CorrectedRound(NamedTuple):
    """Where a fit stands after a corrected round. Of several classes objectives and counts are summed, and the gap is the
    largest."""

    passes: int
    objective: float
    gap: float  # infinite without a penalty
    nonzeros: int
    share: float  # of the step that was taken, of several classes the least; 0: none brought the objective down
    quasi: int  # classes whose step was the quasi-Newton one
    seconds: float  # of this round


def fit(
    model: ModelT,
    shards: Sequence[Shard],
    runner: Runner,
    tell: Callable[[Any], None] | None = None,
    *,
    rounds: int | None = None,
    checkpoint: Keeper | str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> ModelT:
    """Fit a model to all shards until its certified gap is at most ``tol``, or in so many ``rounds``.

    The rows are read once for scales and labels, once by an online solver whose weights are averaged, then once for each round;
    with ``rounds`` once after the online pass, and two or three times for each further round.

    Parameters
    ----------
    model : OnlineClassifier or OnlineRegressor
        Settings with ``tol`` and a penalty, or without ``tol`` where ``rounds`` are given. It becomes the fitted model. Shards
        are read in their order: ``shuffle``, ``verbose`` and ``callbacks`` are not used, nor are ``passes`` with ``tol``.
    shards : sequence of Shard
        The rows. The result depends on how they are cut into shards, but not on who reads them.
    runner : Runner
        Who runs the tasks, such as ``Local(workers=4)``.
    tell : callable, optional
        Called after each round, with a ``Round`` or a ``CorrectedRound``.
    rounds : int, optional
        How many rounds, the online pass included: 1 is the mean of online passes, each further one a mean of corrected passes.
        For more columns than a working set holds. None: up to ``tol``.
    checkpoint : str or path, optional
        A file that is written after each round, from which the fit can be resumed. It is a model file of where the fit stands.
    resume : str or path, optional
        Such a file. The fit continues from there, with the same shards and settings and any runner, to the same bytes.

    Returns
    -------
    model
        The model.

    Raises
    ------
    ValueError, TypeError
        For settings that have no form in sums over rows: losses with kinks, averages, scales but ``"rms"``, ``"max-abs"`` and
        ``"none"``; with ``tol`` no penalty.
    StreamError
        For rows that cannot be read, by shard, file and line.
    ModelFileError
        For a file that is no checkpoint of such a fit.
    OSError
        For a checkpoint that cannot be written or read.

    Examples
    --------
    >>> from onlinear import OnlineClassifier
    >>> from onlinear.shards import Blocks, Local, fit
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> shards = [Blocks(f"rows {i} to {i + 99}", ((X[i : i + 100], y[i : i + 100]),)) for i in range(0, 569, 100)]
    >>> model = fit(OnlineClassifier(penalty="l1=1e-2", tol=1e-3), shards, Local(workers=2))
    >>> model.converged_, model.dual_gap_ <= 1e-3
    (True, True)
    """
    refuse(model, rounds)
    keeper = checkpoint if checkpoint is None or isinstance(checkpoint, Keeper) else Keeper(checkpoint)
    if resume is None:
        stand = _start(model, shards, runner, rounds)
    else:
        stand = restore(resume, model, shards, corrected=rounds is not None)
    if isinstance(stand.reading, CorrectedRounds):
        _correct(model, stand, shards, runner, tell, keeper, rounds or 0)
    else:
        _certify(model, stand, stand.reading, shards, runner, tell, keeper)
    model.end_passes(stand.reading.iterations, None)
    return model


def _start(model: Model, shards: Sequence[Shard], runner: Runner, rounds: int | None) -> Stand:
    """Survey the rows, make the online pass of a certified fit, and describe the model."""
    found: Survey = runner.reduce(survey, shards, isinstance(model, Classifier))
    learner, job = _begin(model, found, corrected=rounds is not None)
    name = _first_solver(model)
    if rounds is None and _first_passes(job.loss) == 2:
        weights, intercepts = runner.reduce(learn, shards, job, name).mean()
        weights = _thinned(weights, job)
        if learner.scaler is not None:
            weights = np.column_stack([learner.scaler.original(column) for column in weights.T])
        learner.begin_at(weights, intercepts)
    model.take(learner)
    model.start_history()
    model.describe_rows(learner.size, None, None if job.classes is None else as_classes(job.classes))
    name_columns(model, shards, found.columns, found.seen)
    if rounds is not None:
        return Stand(CorrectedRounds(learner, job, 1), job, found.rows)
    return Stand(RoundsOfBlocks(learner, _first_passes(job.loss)), job, found.rows)


def _first_solver(model: Model) -> str:
    """The solver of the online pass, with the step size that ``eta`` says. Raises ValueError where both name one."""
    named = isinstance(model.solver, str) and not names_certified(model.solver)
    if model.eta is None:
        return model.solver if named else FIRST
    return str(with_step(model.solver if named else FIRST.partition(",")[0], model.eta))


def _thinned(weights: np.ndarray, job: Job) -> np.ndarray:
    """With l1, the largest weights of each output: a mean of many sparse vectors has more than a working set takes."""
    room = max(1, int(STARTING / sqrt(job.outputs)))
    if len(weights) <= room or not strengths_of(job.penalty)[0] > 0.0:
        return weights
    found = np.zeros_like(weights)
    for k, column in enumerate(weights.T):
        kept = np.argsort(-np.abs(column), kind="stable")[:room]
        found[kept, k] = column[kept]
    return found


def refuse(model: Model, rounds: int | None = None) -> None:
    """Raise ValueError or TypeError for settings that a fit over shards does not take, before the first row is read."""
    model.refuse_columns_asked("shards are opened with options of their own", "give it to open_shards")
    if isinstance(model, Classifier):
        check_class_weight(model.class_weight, balance=True)
    _first_solver(model)
    if rounds is not None:
        refuse_rounds(model, rounds)
        return
    if not model.certifies():
        raise ValueError("a fit over shards ends at a certified gap: give tol=, such as tol=1e-3, and a penalty.")
    if getattr(model, "average", None) is not None:
        raise ValueError(f"average={model.average!r}: a fit over shards ends at the optimum, and has no average.")
    solver = model.solver
    online = solver is None or (isinstance(solver, str) and preset_of(solver).average is None)
    if not online and not names_certified(solver):
        raise ValueError(f"solver={solver!r}: the online pass over shards takes solvers by name, without averages.")
    learner = copy(model).start_certified(1, features=1, total=None)
    refuse_scale("none" if learner.scaler is None else learner.scaler.kind)
    most, first = count("max_passes", model.max_passes), _first_passes(learner.loss)
    if most <= first:
        raise ValueError(f"max_passes={most} leaves no pass to certify after the {first} that begin.")


def _first_passes(loss: Any) -> int:
    """The readings before the rounds: the survey, and an online pass where an implicit solver takes the loss."""
    return 2 if hasattr(loss, "theta") else 1


def _begin(model: Model, found: Survey, *, corrected: bool) -> tuple[Learner, Job]:
    """The learner of the end, at weights of 0 and in the scales of all rows; and what tasks are told."""
    _refuse_weightless(found.weight)
    classes, weights, total = None, None, found.weight
    outputs = 1
    if isinstance(model, Classifier):
        classes = sorted(found.labels)
        if len(classes) < 2:
            raise ValueError(f"a classifier needs at least two classes, got {classes}.")
        weights = _class_weights(model.class_weight, found.labels, classes)
        if weights is not None:
            with np.errstate(over="ignore"):  # an infinite weight is refused with its row
                total = float(weights @ [found.labels[label] for label in classes])
                _refuse_weightless(total)
        outputs = outputs_of(len(classes))
    width = max(1, found.width)
    if corrected:
        learner = learner_of_rounds(model, _first_solver(model), outputs, width)
    else:
        model.start_certified(outputs, features=width, total=None)
        learner = model.certified_learner(outputs, width, online=True)
    if learner.scaler is not None:
        learner.scaler.moments = np.pad(found.moments(learner.scaler.kind), ((0, 0), (0, width - found.width)))
    return learner, Job.of(learner, classes, weights, unit_of(total / found.counted))


def _refuse_weightless(weight: float) -> None:
    """Raise StreamError where no row has a weight."""
    if not weight > 0.0:
        raise StreamError("expected at least one row of weight above 0 in all shards, got none.")


def _class_weights(given: Any, totals: Mapping[Any, float], classes: Sequence[Any]) -> np.ndarray | None:
    """What multiplies the rows of each class."""
    if isinstance(given, str):
        return balanced(totals[label] for label in classes)
    return None if given is None else weights_by_name(typed(given, text=isinstance(classes[0], str)), as_classes(classes))


def _correct(
    model: Model,
    stand: Stand,
    shards: Sequence[Shard],
    runner: Runner,
    tell: Callable[[Any], None] | None,
    keeper: Keeper | None,
    rounds: int,
) -> None:
    """Make the rounds that are left: passes over the shards, then sums at their mean. Where none is left, the last is told."""
    reading, job = stand.reading, stand.job
    assert isinstance(reading, CorrectedRounds)

    def say(seconds: float) -> None:
        if tell is not None:
            tell(CorrectedRound(reading.passes, *reading.standing, reading.share, reading.quasi, seconds))

    if reading.iterations >= rounds:
        say(0.0)
    while reading.iterations < rounds:
        began = time.perf_counter()
        if reading.iterations:
            found: Start = runner.reduce(correct, shards, job, reading.centre())
        else:
            found = runner.reduce(learn, shards, job, _first_solver(model), given_average(model))
        reading.begin(*found.mean(), found.voted())
        while asked := reading.points():
            sums: Looks = runner.reduce(look, shards, job, asked)
            stand.refuse_other_rows(sums)
            reading.take(asked, sums.at)
        reading.end(stand.rows)
        if keeper is not None:
            keeper.write(model, stand, shards)
        say(time.perf_counter() - began)


def _certify(
    model: Model,
    stand: Stand,
    reading: RoundsOfBlocks,
    shards: Sequence[Shard],
    runner: Runner,
    tell: Callable[[Round], None] | None,
    keeper: Keeper | None,
) -> None:
    """Ask for sums and take them, until the gap is small enough or the passes are used up."""
    most = count("max_passes", model.max_passes)
    while not reading.done and reading.passes < most:
        began = time.perf_counter()
        reading.begin()
        found: Looks = runner.reduce(look, shards, stand.job, reading.points)
        stand.refuse_other_rows(found)
        reading.take(found.at)
        reading.end(stand.rows * (reading.passes + 1))
        if keeper is not None:
            keeper.write(model, stand, shards)
        if tell is not None:
            tell(Round(reading.passes, *reading.standing, reading.working, time.perf_counter() - began))
