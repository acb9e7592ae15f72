"""Checkpoints of a fit over shards: a model file of where it stands, with what its rounds know, written after each of them.

An entry ``shards`` in the header says how many shards there are, a digest of their names, the rows, the passes before the
rounds, and whether they are corrected ones; arrays named ``shards.*`` hold the rounds. Who reads the shards is not in the file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from onlinear.errors import ModelFileError
from onlinear.files import model_file, trust
from onlinear.learner import Learner
from onlinear.learner.rounds import RoundsOfBlocks
from onlinear.models.base import Classifier, Model
from onlinear.models.loading import load
from onlinear.models.stored_model import store_params
from onlinear.shards.corrected import CorrectedRounds
from onlinear.shards.tasks import Job, Looks
from onlinear.streams import StreamError
from onlinear.text.names import printable

ENTRY, VERSION = "shards", 1
CLASS_WEIGHTS = "class weights"
CORRECTED = "corrected"
FIRST_PASSES = 2  # at most, before the rounds


class Stand(NamedTuple):
    """Where a fit stands: its rounds, what tasks are told, and how many rows there are."""

    reading: RoundsOfBlocks | CorrectedRounds
    job: Job
    rows: int

    def refuse_other_rows(self, found: Looks) -> None:
        """Raise StreamError where a reading found other rows than the first one."""
        for sums in found.at:
            if sums.rows != self.rows:
                raise StreamError(f"the shards have {sums.rows:,} rows, and had {self.rows:,} before: they have changed.")


class Keeper:
    """Writes the checkpoints of a fit.

    Parameters
    ----------
    path : str or path
        The file; each checkpoint replaces the one before.
    more : dict, optional
        Further entries of its header.
    """

    def __init__(self, path: str | os.PathLike[str], more: Mapping[str, Any] | None = None) -> None:
        self.path, self.more = path, dict(more or {})

    def write(self, model: Model, stand: Stand, shards: Sequence[Any]) -> None:
        """Write where a fit stands after a round. Raises OSError."""
        model.end_passes(stand.reading.iterations, None)
        header, arrays = model.freeze()
        header[ENTRY] = {"version": VERSION, "rows": stand.rows, "before": stand.reading.before, **_identity(shards)}
        if isinstance(stand.reading, CorrectedRounds):
            header[ENTRY][CORRECTED] = True
        own = stand.reading.arrays()
        if stand.job.weights is not None:
            own[CLASS_WEIGHTS] = stand.job.weights
        model_file.write(self.path, header | self.more, arrays | {f"{ENTRY}.{name}": array for name, array in own.items()})


def _identity(shards: Sequence[Any]) -> dict[str, Any]:
    """How many shards there are, and a digest of their names without folders, which other machines may have elsewhere."""
    names = "\n".join(PurePath(shard.name).name for shard in shards)
    return {"count": len(shards), "names": hashlib.sha256(names.encode()).hexdigest()}


def restore(path: str | os.PathLike[str], model: Model, shards: Sequence[Any], *, corrected: bool) -> Stand:
    """Let a model stand where a checkpoint of it does, in corrected rounds or on its way to a certified gap.

    Raises ModelFileError for what is no checkpoint of a fit over shards, and ValueError for one of other shards or settings.
    """
    name = printable(os.fsdecode(path))
    header, arrays = model_file.read(path)
    entry = header.get(ENTRY)
    if not isinstance(entry, dict):
        raise ModelFileError(f"{name}: no checkpoint of a fit over shards.")
    if entry.get("version") != VERSION:
        raise ModelFileError(f"{name}: a checkpoint of version {entry.get('version')!r}; this release reads {VERSION}.")
    if bool(entry.get(CORRECTED)) is not corrected:
        kind = "up to tol=, not of rounds=" if corrected else "of rounds=, not up to tol="
        raise ValueError(f"{name}: the checkpoint is of a fit {kind}.")
    found = load(path)
    if not isinstance(found, type(model)) and not isinstance(model, type(found)):
        raise ValueError(f"{name}: the checkpoint is of a {found.kind}, not of a {model.kind}.")
    _refuse_other_settings(name, found, model)
    if {key: entry.get(key) for key in ("count", "names")} != _identity(shards):
        raise ValueError(f"{name}: the checkpoint is of {entry.get('count')} other shards; these are {len(shards)}.")
    own = model_file.arrays_below(arrays, f"{ENTRY}.")
    try:
        stand = _stand(found, entry, own)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    learner = model.take(found.learner_)
    model.start_history()
    model.describe_rows(learner.size, found.encoding_, found.classes_ if isinstance(found, Classifier) else None)
    if (names := vars(found).get("feature_names_in_")) is not None:
        model.feature_names_in_ = names  # type: ignore[attr-defined]
    return stand


def _refuse_other_settings(path: str, found: Model, model: Model) -> None:
    """Raise ValueError where a setting differs from the checkpoint's."""
    then, now = store_params(found.settings()), store_params(model.settings())
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) != now.get(name):
            raise ValueError(f"{path}: the checkpoint is of a fit with {name}={then.get(name)!r}, not {now.get(name)!r}.")


def _stand(model: Model, entry: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> Stand:
    """Where the fit of a checkpoint stood. Raises ModelFileError for what no fit gives."""
    learner, corrected = model.learner_, entry.get(CORRECTED) is True
    known = isinstance(learner, Learner) and (learner.engine.rounds or corrected)
    trust.must(known, "a fit to a certified gap, of a model that has none")
    trust.must(trust.count(entry.get("before"), 1, FIRST_PASSES), "passes before the rounds")
    trust.must(trust.count(entry.get("rows"), 1), "a number of rows")
    classes = model.classes_.tolist() if isinstance(model, Classifier) else None
    weights = arrays.pop(CLASS_WEIGHTS, None)
    if weights is not None:
        trust.must(classes is not None and weights.shape == (len(classes),), "weights of classes")
        trust.must(bool(np.all(np.isfinite(weights) & (weights >= 0.0))), "weights of classes")
    job, before = Job.of(learner, classes, weights), entry["before"]
    reading = CorrectedRounds(learner, job, before) if corrected else RoundsOfBlocks(learner, before)
    reading.restore(arrays)
    return Stand(reading, job, entry["rows"])
