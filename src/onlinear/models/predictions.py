"""Predictions of any kind, the names of their columns, and tables of them in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from onlinear.learner import Learner
from onlinear.learner.classes import rows_at_once
from onlinear.learner.uncertainty import share, spread_of
from onlinear.models.base import gives_probabilities
from onlinear.streams.labels import shown
from onlinear.text.form import parse

INTERVALS = "intervals"
PREDICTIONS = ("labels", "scores", "probabilities", INTERVALS)
COVERAGE = 0.9
Write = Callable[[Any], None]


def columns(model: Any, kind: str) -> list[str]:
    """The names of the columns that ``predictions`` gives; raises ValueError where the model has no such predictions."""
    bare = isinstance(model, Learner)
    learner = model if bare else model.fitted_learner()
    name, _ = check_kind(kind)
    if kind == "probabilities" and not gives_probabilities(model):
        why = (
            "holds a bare learner, which gives scores only"
            if bare
            else f"has the loss {model.loss!r}, which gives scores, not probabilities; train with --loss logistic"
        )
        raise ValueError(f"the model {why}.")
    names = list(map(shown, getattr(model, "classes_", range(learner.n_outputs))))
    if kind == "probabilities":
        return [f"probability {output}" for output in names]
    if kind == "labels" and hasattr(model, "classes_"):
        return ["label"]
    word = "score" if kind == "scores" or bare or (name == INTERVALS and hasattr(model, "classes_")) else "prediction"
    if name == INTERVALS:
        spread_of(learner)
        words = [word, "lower", "upper"]
        return words if learner.n_outputs == 1 else [f"{word} {output}" for output in names for word in words]
    return [word] if learner.n_outputs == 1 else [f"{word} {output}" for output in names]


def check_kind(kind: str) -> tuple[str, float]:
    """The name of a kind, and the coverage of its intervals; raises ValueError for one that is not known."""
    name, settings = parse(kind, "kind")
    if name not in PREDICTIONS:
        raise ValueError(f"kind must be one of {', '.join(PREDICTIONS)}, got {kind!r}.")
    coverage = settings.pop("coverage", COVERAGE) if name == INTERVALS else COVERAGE
    if settings:
        raise ValueError(f"kind {kind!r}: only {INTERVALS} has a setting, coverage=0.9.")
    return name, share("coverage", coverage)


def predictions(model: Any, blocks: Iterable[Any], kind: str) -> Iterator[Any]:
    """Those of the rows of blocks, few rows at a time where there are many outputs."""
    outputs = getattr(model, "learner_", model).n_outputs
    for block in blocks:
        for part in block.parts(rows_at_once(outputs)):
            yield _of_rows(model, part, kind)


def _of_rows(model: Any, block: Any, kind: str) -> Any:
    """The rows' labels (or predicted numbers), scores, probabilities, or scores with their intervals, (n,) or (n, columns);
    features never seen have weight 0."""
    learner = getattr(model, "learner_", model)
    rows = block.within(max(1, learner.size))
    scores = learner.predict(rows)
    name, coverage = check_kind(kind)
    if name == INTERVALS:
        n, K = len(scores), learner.n_outputs
        ends = learner.predict_interval(rows, coverage).reshape(n, K, 2)
        return np.concatenate([scores.reshape(n, K, 1), ends], axis=2).reshape(n, 3 * K)
    if kind == "scores" or learner is model:
        return scores
    if kind == "probabilities":
        return model.probabilities_of(scores)
    return model.labels_of(scores) if hasattr(model, "classes_") else model.means_of(scores)


@contextmanager
def tables(file: Any, names: list[str], form: Callable[[Any, Any], Any]) -> Iterator[Write]:
    """Predictions as record batches; a file without rows has the columns, as doubles."""
    import pyarrow as pa

    opened: list[Any] = []

    def add(found: Any) -> None:
        rows = found.reshape(len(found), len(names))
        arrays = [
            pa.array(rows[:, k].tolist() if rows.dtype.kind in "OU" else np.ascontiguousarray(rows[:, k]))
            for k in range(len(names))
        ]
        batch = pa.record_batch(arrays, names=names)
        if not opened:
            opened.append(form(file, batch.schema))
        opened[0].write_batch(batch)

    def write(found: Any) -> None:
        if len(found):  # labels of no row do not tell their type
            add(found)

    yield write
    if not opened:
        add(np.zeros((0, len(names))))
    opened[0].close()


def _csv(file: Any, schema: Any, delimiter: str = ",") -> Any:
    from pyarrow import csv

    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed", delimiter=delimiter))


def _parquet(file: Any, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema)


def _arrow(file: Any, schema: Any) -> Any:
    from pyarrow import ipc

    return ipc.new_file(file, schema)


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    ".csv": _csv,
    ".tsv": partial(_csv, delimiter="\t"),
    **dict.fromkeys((".parquet", ".pq"), _parquet),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _arrow),
}
