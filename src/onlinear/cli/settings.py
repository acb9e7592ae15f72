"""All that decides what ``onlinear train`` learns, and the rules for it in a checkpoint."""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinear.cli.header_rules import OPTIONAL_TEXT, Rule, is_flag, is_mapping, is_text, or_none, within
from onlinear.files import trust
from onlinear.learner.race import LARGEST, SMALLEST
from onlinear.rows import LARGEST_COLUMN
from onlinear.streams.hashing import MOST_BITS
from onlinear.training.options import TASKS


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
    passes: int | str = 1  # or AUTO, before rows have said how many
    shuffle_rows: int | None = None  # None: all of a bundled set, none of a file
    seed: int = 0
    task: str = "auto"
    classes: tuple[Any, ...] | None = None
    scan: bool = False
    n_features: int | None = None  # fixed in advance, or None: the columns seen
    holdout: str | None = None  # a share of the rows, or a source
    early_stop: int | None = None
    class_weight: str | None = None  # balanced, or 0=1,1=20
    clip: bool | None = None
    forget: float | None = None  # the half-life in rows
    uncertainty: bool = False
    tol: float | None = None  # the certified gap at which the run ends
    max_passes: int = 100
    rounds: int | None = None  # over shards, instead of a certified gap
    slope: float | None = None  # the calibration slope that goes with passes that rows held out gave
    start: str | None = None  # the model file that training continues from


SETTINGS: dict[str, Rule] = {
    "source": lambda source: trust.texts(source) and len(source) > 0 and all(map(is_text, source)),
    "reading": is_mapping,
    "loss": OPTIONAL_TEXT,
    "penalty": OPTIONAL_TEXT,
    "solver": OPTIONAL_TEXT,
    "average": OPTIONAL_TEXT,
    "scale": OPTIONAL_TEXT,
    "intercept": is_flag,
    "passes": within(1),
    "shuffle_rows": or_none(within(0)),
    "seed": within(0, 2**128),
    "task": lambda task: task in TASKS,
    "classes": or_none(lambda values: isinstance(values, (list, tuple)) and all(is_text(v) or trust.real(v) for v in values)),
    "scan": is_flag,
    "n_features": or_none(within(1, LARGEST_COLUMN + 1)),
    "holdout": OPTIONAL_TEXT,
    "early_stop": or_none(within(1)),
    "class_weight": OPTIONAL_TEXT,
    "clip": or_none(is_flag),
    "forget": or_none(lambda rows: trust.real(rows, finite=True) and rows > 0.0),
    "uncertainty": is_flag,
    "tol": lambda tol: tol is None or (trust.real(tol, finite=True) and 0.0 < tol < 1.0),
    "max_passes": within(1),
    "rounds": or_none(within(1)),
    "slope": or_none(lambda slope: trust.real(slope, finite=True) and SMALLEST <= slope <= LARGEST),
    "start": lambda path: path is None,  # a run that continues from a model has no checkpoints
}
_NAMES = or_none(trust.texts)
READING: dict[str, Rule] = {
    "format": is_text,
    "base": or_none(within(0, 1)),
    "sort": is_flag,
    "target": OPTIONAL_TEXT,
    "weight": OPTIONAL_TEXT,
    "features": _NAMES,
    "exclude": _NAMES,
    "text": _NAMES,
    "numbers": _NAMES,
    "categories": is_text,
    "hash_bits": or_none(within(1, MOST_BITS)),
    "interactions": _NAMES,
    "ngrams": _NAMES,
    "bins": _NAMES,
    "missing": is_text,
    "dates": OPTIONAL_TEXT,
    "nulls": _NAMES,
    "delimiter": OPTIONAL_TEXT,
    "decimal": OPTIONAL_TEXT,
    "max_errors": within(0),
}
