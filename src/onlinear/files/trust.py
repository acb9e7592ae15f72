"""Checks of the header and arrays of a model file or checkpoint, before they are used.

Whoever makes a file can make its digest, so a file is believed in nothing. docs/security.md lists what is checked where.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.errors import ModelFileError
from onlinear.files.model_file import Arrays

MOST_STEPS = 2**52  # rows that a run can have learned: beyond, a float would not tell a row from the next


def must(true: Any, found: str) -> None:
    """Raise ModelFileError unless ``true``; ``found`` names the contradiction."""
    if not true:
        raise ModelFileError(f"what the model file says cannot be: {found}.")


def count(value: Any, low: int = 0, high: int = MOST_STEPS) -> bool:
    """Whether a value of a header is an integer in the range; True and 1.0 are none."""
    return type(value) is int and low <= value <= high


def real(value: Any, *, finite: bool = False) -> bool:
    """Whether a value of a header is a number that a float can hold, or not a number where that is allowed."""
    if type(value) is int:
        return abs(value) <= 2**1000
    return type(value) is float and (isfinite(value) or not finite)


def texts(values: Any) -> bool:
    """Whether a value of a header is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def array(arrays: Arrays, name: str, dtype: Any, *shape: int | None) -> np.ndarray:
    """The array of this type and shape, None for any length; raises ModelFileError where there is none."""
    found = arrays.get(name)
    fits = found is not None and found.dtype == dtype and found.ndim == len(shape)
    if not fits or any(wanted not in (None, length) for wanted, length in zip(shape, found.shape, strict=True)):  # type: ignore[union-attr]
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        raise ModelFileError(f"the model file's array {name!r} is missing, or has another type or shape than ({lengths}).")
    return found  # type: ignore[return-value]


def ascending(places: np.ndarray, end: int) -> bool:
    """Whether places ascend, from 0 to below ``end``."""
    return bool(np.all(places[1:] > places[:-1])) and (not len(places) or bool(places[0] >= 0 and places[-1] < end))


def finite(name: str, values: np.ndarray) -> None:
    """Raise ModelFileError for an array with a value that is not finite."""
    if not np.all(np.isfinite(values)):
        raise ModelFileError(f"the model file's array {name!r} is not finite.")


class Span(NamedTuple):
    """An array that a state keeps beside one number per feature: its type, and how long it is at least and at most."""

    dtype: Any
    least: int
    most: int
