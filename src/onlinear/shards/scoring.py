"""Fitted models over shards: predictions in the order of the rows, files of them, and measures."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from onlinear.files.writing import new_file
from onlinear.models.base import Model
from onlinear.models.evaluation import Result, Scored, evaluate_scored, refuse_unfit, score_rows
from onlinear.models.predictions import FORMS, columns, predictions, tables
from onlinear.models.tables import refuse_other_blocks, refuse_other_columns
from onlinear.shards.runners import Runner
from onlinear.shards.sources import Shard
from onlinear.streams.blocks import Stream
from onlinear.streams.pairs import Pairs

SUFFIX = ".parquet"


def predict_shard(shard: Shard, model: Any, kind: str) -> list[np.ndarray]:
    """A task: the predictions of a shard's rows, block by block."""
    return list(predictions(model, _opened(shard, model), kind))


def score_shard(shard: Shard, model: Any) -> list[Scored]:
    """A task: scores, targets and weights of a shard's rows, block by block."""
    return [found._replace(block=None) for found in score_rows(model, _opened(shard, model))]


def write_shard(shard: Any, model: Any, kind: str, folder: str) -> str:
    """A task: write the predictions of a shard to a file of its own, which has its name when it is whole; give its path."""
    path = Path(folder) / _file_of(shard)
    with new_file(path) as file, tables(file, columns(model, kind), FORMS[SUFFIX]) as write:
        for found in predictions(model, _opened(shard, model), kind):
            write(found)
    return os.fsdecode(path)


def _opened(shard: Any, model: Any) -> Stream:
    """The rows of a shard. Tables must name their columns as those that the model learned."""
    stream: Stream = shard.open()
    if isinstance(model, Model):
        if isinstance(stream, Pairs):
            stream.check = lambda _, names: refuse_other_blocks(names, model)
        else:
            refuse_other_columns(stream, model)
    return stream


def _file_of(shard: Any) -> str:
    """The name of the file that takes a shard's predictions."""
    return PurePath(shard.name).stem.replace(" ", "-") + SUFFIX


def predict(model: Any, shards: Sequence[Any], runner: Runner, kind: str = "labels") -> Generator[np.ndarray, None, None]:
    """Predict the rows of all shards, in their order.

    Parameters
    ----------
    model : OnlineClassifier, OnlineRegressor or Learner
        A fitted model.
    shards : sequence of Shard
        The rows, such as ``open_shards("part-*.parquet", encoding=model.encoding_)``.
    runner : Runner
        Who runs the tasks.
    kind : {"labels", "scores", "probabilities", "intervals"}, default="labels"
        What to predict. Of a regressor ``labels`` are numbers.

    Yields
    ------
    ndarray of shape (n,) or (n, K)
        The predictions of a block of rows. Few shards are read before theirs are taken.

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    ValueError
        For what the model does not predict.
    StreamError
        For rows that cannot be read, by file and line.
    """
    columns(model, kind)  # which refuses a kind that the model has not
    for found in runner.map(predict_shard, shards, model, kind):
        yield from found


def predict_to(
    model: Any, shards: Sequence[Any], runner: Runner, folder: str | os.PathLike[str], kind: str = "labels"
) -> list[str]:
    """Predict the rows of all shards, each into a Parquet file with its name.

    Parameters
    ----------
    model, shards, runner
        As ``predict`` takes them.
    folder : str or path
        Where the files go. It must exist, and every worker must reach it under this name.
    kind : {"labels", "scores", "probabilities", "intervals"}, default="labels"
        What to predict, as ``predict`` takes it.

    Returns
    -------
    list of str
        The files, in the order of the shards. Each has its name when it is whole.

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    ValueError
        For what the model does not predict, and for two shards of the same name.
    OSError
        Where a file cannot be written.
    StreamError
        For rows that cannot be read, by file and line.
    """
    columns(model, kind)  # which refuses a kind that the model has not
    names = [_file_of(shard) for shard in shards]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise ValueError(f"two shards would be written to {twice}: their names must differ.")
    return list(runner.map(write_shard, shards, model, kind, os.fsdecode(folder)))


def evaluate(model: Any, shards: Sequence[Any], runner: Runner, name: str = "the shards") -> Result:
    """Compare the predictions of all rows with their targets: the measures of ``onlinear evaluate``, to the same digits.

    Workers read and score. This process measures, in the order of the rows, and keeps each row's error, and score or target.

    Parameters
    ----------
    model : OnlineClassifier or OnlineRegressor
        A fitted model.
    shards, runner
        As ``predict`` takes them.
    name : str, default="the shards"
        What messages call the rows.

    Returns
    -------
    Result
        Loss, measures, confusion, calibration.

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    ValueError
        For a bare learner and for several targets.
    StreamError
        For rows that cannot be read, have no target, or a label that is no class of the model.
    """
    refuse_unfit(model)
    return evaluate_scored(model, (found for part in runner.map(score_shard, shards, model) for found in part), name)
