"""Predictions of any kind, the names of their columns, and tables of them in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinear.learner import Learner
from onlinear.models.base import gives_probabilities
from onlinear.streams.labels import shown

KINDS = ("labels", "scores", "probabilities")
Write = Callable[[Any], None]


def columns(model: Any, kind: str) -> list[str]:
    """The names of the columns that ``predictions`` gives; raises ValueError where the model has no such predictions."""
    bare = isinstance(model, Learner)
    learner = model if bare else model.learner_
    if kind == "probabilities" and not gives_probabilities(model):
        why = (
            "holds a bare learner, which gives scores only"
            if bare
            else f"has the loss {model.loss!r}, which gives scores, not probabilities; train with --loss logistic"
        )
        raise ValueError(f"the model {why}.")
    names = list(map(shown, getattr(model, "classes_", range(learner.n_outputs))))
    if kind == "probabilities":
        return [f"probability {name}" for name in names]
    if kind == "labels" and hasattr(model, "classes_"):
        return ["label"]
    word = "score" if kind == "scores" or bare else "prediction"
    return [word] if learner.n_outputs == 1 else [f"{word} {name}" for name in names]


def predictions(model: Any, block: Any, kind: str) -> Any:
    """The rows' labels (or predicted numbers), scores or probabilities, (n,) or (n, K); features never seen have weight 0."""
    learner = getattr(model, "learner_", model)
    scores = learner.predict(block.within(max(1, learner.size)))
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

    def write(found: Any) -> None:
        rows = found.reshape(len(found), -1)
        arrays = [
            pa.array(rows[:, k].tolist() if rows.dtype.kind in "OU" else np.ascontiguousarray(rows[:, k]))
            for k in range(len(names))
        ]
        batch = pa.record_batch(arrays, names=names)
        if not opened:
            opened.append(form(file, batch.schema))
        opened[0].write_batch(batch)

    yield write
    if not opened:
        write(np.zeros((0, len(names))))
    opened[0].close()


def _csv(file: Any, schema: Any) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _parquet(file: Any, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema)


def _arrow(file: Any, schema: Any) -> Any:
    from pyarrow import ipc

    return ipc.new_file(file, schema)


FORMS = {".csv": _csv, ".parquet": _parquet, ".pq": _parquet, ".arrow": _arrow, ".feather": _arrow, ".ipc": _arrow}
