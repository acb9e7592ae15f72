"""Warnings that name the line outside this package that led to them, through however many calls."""

from __future__ import annotations

import warnings
from inspect import currentframe

PACKAGE = __name__.partition(".")[0]


def warn_caller(said: str, kind: type[Warning]) -> None:
    """Warn at the line that called this package."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(said, kind, stacklevel=level)
