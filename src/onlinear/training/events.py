"""What a run tells while it goes through its rows: reports, results of held-out rows, checkpoints; and that it was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple


class Last(NamedTuple):
    """What a report says of the last iterate, where the model that is written is an average."""

    loss: float
    since: float
    nonzeros: int


class Linear(NamedTuple):
    """What a report says of the linear scores <w, x> + b of what predicts, where predictions are clipped."""

    loss: float
    since: float


class Report(NamedTuple):
    """Where a run stands: measures of the model that is written, which scored every row before it was learned."""

    rows: int
    loss: float  # mean so far
    since: float  # mean since the last report
    error: float  # share of wrong classes, or mean absolute error
    quality: float  # AUC, or R2; nan where there is none
    nonzeros: int  # weights that are not 0
    holdout: float | None = None  # mean loss of the held-out rows scored in this pass, where some are
    last: Last | None = None  # None: the model is the last iterate
    linear: Linear | None = None  # None: predictions are the linear scores

    def named(self, names: Sequence[str]) -> dict[str, Any]:
        """The values by the names of the two measures; those of the last iterate have ``_last`` behind their names, those of
        the linear scores ``_linear``."""
        values = self._asdict()
        for kind in ("last", "linear"):
            more = values.pop(kind)
            if more is not None:
                values |= {f"{name}_{kind}": value for name, value in more._asdict().items()}
        own = dict(zip(("error", "quality"), names, strict=True))
        return {own.get(name, name): value for name, value in values.items()}

    def kept(self, names: Sequence[str]) -> dict[str, float | None]:
        """What a history keeps of it, by the names of the two measures: None for what is not finite."""
        values = self.named([name.lower() for name in names])
        del values["holdout"]
        return {name: value if isfinite(value) else None for name, value in values.items()}


class Held(NamedTuple):
    """The result of the held-out rows after a pass."""

    number: int  # of the pass, from 1
    rows: int
    loss: float
    error: float
    quality: float
    best: int | None  # the pass of the smallest loss so far, where the best model is kept
    stop: bool  # whether the run ends early


class Certified(NamedTuple):
    """Where a run to a certified gap stands after a reading of all rows."""

    passes: int  # readings of all rows, the online ones included
    rows: int
    objective: float  # summed over outputs
    gap: float  # relative, of several outputs the largest
    nonzeros: int
    columns: int  # of the working set, of several outputs the most
    crowded: bool  # whether the working set is as large as it may be


class Written(NamedTuple):
    """A checkpoint was written."""

    path: str
    rows: int
    bytes: int


class Interrupted(Exception):  # noqa: N818 (no error: it was asked for)
    """The run was asked to stop, and has; what it learned is whole."""
