"""Models that go from shard to shard: each learns all rows in their order, row by row, while others learn other shards.

Where there are several models, nothing has to be averaged: at any time each is at one shard, and its bytes are those of one
machine that reads the shards in their order. What is carried from shard to shard is a model as bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from onlinear.learner import Learner
from onlinear.losses import is_joint
from onlinear.models.base import Classifier
from onlinear.models.classifier import OnlineClassifier
from onlinear.models.path import PenaltyPath
from onlinear.shards.runners import Runner
from onlinear.shards.sources import Shard, name_columns
from onlinear.shards.tasks import Survey, survey
from onlinear.streams import StreamError
from onlinear.streams.labels import Labels, as_classes
from onlinear.text.form import check_whole
from onlinear.training.intake import refuse_unlearnable

GROUP = 8  # penalties or classes that go together: a pack learns as many side by side
ModelT = TypeVar("ModelT")


class ClassGroup:
    """Some classes of a classifier, each against the rest, on the way through the shards.

    Parameters
    ----------
    model : OnlineClassifier
        The classifier, which has learned nothing yet and knows its classes and columns.
    own : slice
        The places of the classes.
    """

    def __init__(self, model: OnlineClassifier, own: slice) -> None:
        self._model, self._own = copy(model), own
        self.learner = model.new_learner(len(model.classes_[own]), None)
        del self._model.learner_  # of all classes

    def partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> ClassGroup:
        """Train on rows once, in the order given, as ``OnlineClassifier.partial_fit`` does."""
        targets, weights, _ = self._model.make_targets(y, sample_weight, classes, first=False, balance=False)
        self.learner.learn_checked(*self.learner.check_input(X, np.asfortranarray(targets[:][:, self._own]), weights))
        return self


def advance(shard: Shard, carried: bytes, classes: list[Any] | None, width: int) -> bytes:
    """Let a model learn a shard's rows.

    Parameters
    ----------
    shard : Shard
        The rows.
    carried : bytes
        The model as it came from the shard before.
    classes : list or None
        All classes; None where targets are numbers.
    width : int
        Columns of all rows.

    Returns
    -------
    bytes
        The model.

    Raises
    ------
    StreamError
        For rows that cannot be read or learned, by file and line.
    DivergenceError
        Where the state of a model stops being finite.
    """
    model, stream = pickle.loads(carried), shard.open()
    labels: Labels | None = None
    for block in stream:
        if not block.n:
            continue
        refuse_unlearnable(block)
        rows = block.rows
        X = sp.csr_array((rows.values, rows.indices, rows.indptr.astype(np.int64)), shape=(block.n, width))
        if classes is None:
            model.partial_fit(X, block.y, sample_weight=block.importance)
        else:
            known, labels = as_classes(classes), labels or Labels(stream, classes)
            model.partial_fit(X, known[labels.places(block)], classes=known, sample_weight=block.importance)
    return pickle.dumps(model)


def rotate(models: Sequence[ModelT], shards: Sequence[Shard], runner: Runner, group: int = GROUP) -> list[ModelT]:
    """Train each of several models on all shards in their order, as ``partial_fit`` of one shard after the other does.

    The rows are read once for columns and labels, then once by each model. A path of penalties goes in groups, and so do the
    classes of a classifier where none learns from the others: not with softmax, nor with ``average="adaptive"``, the default
    of many solvers.

    Parameters
    ----------
    models : sequence of OnlineClassifier, OnlineRegressor or PenaltyPath
        Settings, which stay as they are. Classifiers and regressors do not go together.
    shards : sequence of Shard
        The rows. The bytes of the models depend neither on how they are cut into shards nor on who reads them.
    runner : Runner
        Who runs the tasks, such as ``Local(workers=4)``.
    group : int, default=8
        How many penalties or classes go together and read the rows once. It changes no byte. Fewer keep more workers busy.

    Returns
    -------
    list
        The trained models, in the order given.

    Raises
    ------
    ValueError, TypeError
        For settings that ``partial_fit`` does not take, such as ``scale="standard"``, and for a path with ``tol``.
    StreamError
        For rows that cannot be read or learned, by shard, file and line.
    DivergenceError
        Where the state of a model stops being finite.

    Examples
    --------
    >>> from onlinear import OnlineClassifier, PenaltyPath
    >>> from onlinear.shards import Blocks, Local, rotate
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> shards = [Blocks(f"rows {i} to {i + 99}", ((X[i : i + 100], y[i : i + 100]),)) for i in range(0, 569, 100)]
    >>> (path,) = rotate([PenaltyPath(OnlineClassifier(), ["l1=1e-4", "l1=1e-2"])], shards, Local(workers=2))
    >>> path.coefs_.shape
    (2, 30)
    """
    kinds = {_classifies(model) for model in models}
    if len(kinds) != 1:
        raise ValueError("expected models of one kind, all classifiers or all regressors.")
    check_whole("group", group, 1)
    for model in models:
        if isinstance(model, PenaltyPath):
            model.in_groups(group)  # which refuses what cannot be
    by_class = kinds.pop()
    found: Survey = runner.reduce(survey, shards, by_class)
    if not found.rows:
        raise StreamError("expected at least one row in all shards, got none.")
    classes, width = sorted(found.labels) if by_class else None, max(1, found.width)
    all_ways = [_way_of(model, classes, width, group) for model in models]
    carried = [pickle.dumps(each) for way in all_ways for each in way.groups]
    learned = iter(runner.rotate(advance, shards, carried, classes, width))
    found_models = [way.joined([pickle.loads(next(learned)) for _ in way.groups]) for way in all_ways]
    for model in found_models:
        for each in model.trained()[0] if isinstance(model, PenaltyPath) else [model]:
            name_columns(each, shards, found.columns, found.seen)
    return found_models


class _Way(NamedTuple):
    """How a model goes through the shards: in groups, which are joined at the end."""

    groups: Sequence[Any]
    joined: Callable[[list[Any]], Any]


def _classifies(model: Any) -> bool:
    return isinstance(model.estimator if isinstance(model, PenaltyPath) else model, Classifier)


def _way_of(model: Any, classes: list[Any] | None, width: int, group: int) -> _Way:
    fresh = clone(model)
    if isinstance(model, PenaltyPath):
        return _Way(model.in_groups(group), fresh.take)
    if classes is None or len(classes) < 3:
        return _Way([fresh], lambda learned: learned[0])
    known, nothing = as_classes(classes), sp.csr_array((1, width))
    ready = clone(model).partial_fit(nothing, known[:1], classes=known, sample_weight=np.zeros(1))
    learner = ready.learner_
    if learner.race is not None or learner.spread is not None or learner.engine.own_outputs or is_joint(learner.loss):
        return _Way([fresh], lambda learned: learned[0])

    def joined(learned: list[ClassGroup]) -> Any:
        ready.take(Learner.together([each.learner for each in learned]))
        return ready

    return _Way([ClassGroup(ready, slice(k, k + group)) for k in range(0, len(classes), group)], joined)
