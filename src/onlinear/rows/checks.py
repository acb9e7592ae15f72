"""Checks of targets and weights at the boundary: one error that names the argument, the rule and the value found."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from math import inf
from numbers import Number, Real
from typing import Any

import numpy as np

from onlinear.text.form import check_number

LONGEST = 60  # characters of a value that are shown


def column(values: Any, name: str, n: int) -> np.ndarray:
    """``values`` as (n,) float64, finite."""
    array = _numbers(values, name, objects=True)
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D with one value per row, got shape {array.shape}.")
    return finite(same_length(array, name, n), name)


def targets(values: Any, n: int, outputs: int) -> np.ndarray:
    """y as (n, outputs) float64, finite."""
    array = _numbers(values, "y")
    if outputs == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    wanted = "(n,)" if outputs == 1 else f"(n, {outputs})"
    if array.ndim != (1 if outputs == 1 else 2) or (outputs > 1 and array.shape[1] != outputs):
        raise ValueError(f"y must have shape {wanted} for {outputs} output(s), got {array.shape}.")
    return np.require(finite(same_length(array, "y", n), "y").reshape(n, outputs), requirements=["F", "A", "W"])


def one_target(y: Any) -> float:
    """The target of one row as a number; raises for what ``targets`` refuses."""
    if isinstance(y, (float, int, np.floating, np.integer)):
        try:
            return float(y)
        except OverflowError:
            raise ValueError(f"y must be a number that a double holds, got {shown(y)}.") from None
    try:
        if np.asarray(y).size != 1:
            raise ValueError(f"y must be one number, got {shown(y)}.")
        return float(targets([y], 1, 1)[0, 0])
    except TypeError:
        raise TypeError(f"y must be a number, got {shown(y)}.") from None


def labels(y: np.ndarray, rule: str) -> None:
    """Check that y is what the loss takes: 'signs' (-1 or +1), 'counts' (0 or more)."""
    if rule == "signs":
        bad, wanted = np.abs(y) != 1.0, "-1 or +1"
    elif rule == "counts":
        bad, wanted = y < 0.0, "0 or more"
    else:
        return
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        raise ValueError(f"y must be {wanted} for this loss, got {y[row][bad[row]][0]:g} at row {row}.")


def one_class(y: Any, n: int, outputs: int) -> np.ndarray:
    """The targets (n, K) of a loss of all K scores, +1 for the row's class and -1 for the others, from these or from the
    classes' places (n,)."""
    places = np.asarray(y)
    if places.ndim == 1:
        places = targets(places, n, 1)[:, 0]
        bad = (places < 0) | (places >= outputs) | (places != np.floor(places))
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"y must be a class from 0 to {outputs - 1} for this loss, got {places[row]:g} at row {row}.")
        return np.asfortranarray(np.where(places[:, None] == np.arange(outputs), 1.0, -1.0))
    found = targets(y, n, outputs)
    labels(found, "signs")
    bad = (found > 0.0).sum(axis=1) != 1
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"y must be +1 for one class of a row, got {int((found[row] > 0.0).sum())} at row {row}.")
    return found


def weights(values: Any, n: int, name: str = "sample_weight") -> np.ndarray:
    """The weights of rows as (n,) float64, finite and not negative; ones if None."""
    if values is None:
        return np.ones(n)
    if isinstance(values, str):
        hint = ": it names a column only where y names one too" if name == "sample_weight" else ""
        raise TypeError(f"{name} must hold numbers, got {shown(values)}{hint}.")
    array = _numbers(values, name, objects=True)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D: Sample weights must be 1D array or scalar, got shape {array.shape}.")
    array = np.require(finite(same_length(array, name, n), name), requirements=["C", "A", "W"])
    if np.any(array < 0.0):
        row = int(np.argmax(array < 0.0))
        raise ValueError(f"{name} must not be negative, got {array[row]:g} at row {row}.")
    return array


def one_weight(value: Any) -> float:
    """The weight of one row as a float, finite and not negative."""
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    if np.ndim(value) or isinstance(value, bytes):
        raise TypeError(f"weight must be one number, got {value!r}.")
    return check_number("", "weight", value, 0.0, inf, open_high=True)


def width_error(width: int, size: int, hint: str = "") -> ValueError:
    """The error for rows of more columns than a model of ``size`` features takes."""
    return ValueError(f"X has {width} columns, the model has {size} features{hint}.")


def refuse_missing(values: Any, name: str) -> None:
    """Raise for a masked array with a masked entry, whose hidden value would be taken, and for a column of a data frame or of
    Arrow with a missing one, where arrays have no place for it."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} has masked entries; every value must be given.")
    missing = _missing(values)
    if missing is not None and missing.any():
        raise ValueError(f"{name} contains a missing value at row {int(np.argmax(missing))}; every value must be given.")


def _missing(values: Any) -> np.ndarray | None:
    """Where a column of pandas, polars or Arrow has no value; None for all others, and for those of NumPy's numbers."""
    if hasattr(values, "is_null"):
        return np.asarray(values.is_null())
    held = getattr(values, "dtype", None)
    numbers = isinstance(held, np.dtype) and held.kind != "O"
    return np.asarray(values.isna()) if held is not None and not numbers and hasattr(values, "isna") else None


def _numbers(values: Any, name: str, *, objects: bool = False) -> np.ndarray:
    """``values`` as doubles; ``objects``: also numbers that stand in an array of objects."""
    refuse_missing(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must hold numbers: {error}") from None
    array = _of_objects(array) if objects else array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got {_first_other(array)}.")
    return array.astype(np.float64, copy=False)


def _of_objects(array: np.ndarray) -> np.ndarray:
    """An array of objects that are all numbers as doubles; any other as it is."""
    if array.dtype.kind != "O" or not all(isinstance(value, (Real, Decimal)) for value in array.flat):
        return array
    with suppress(OverflowError):
        return array.astype(np.float64)
    return array


def _first_other(array: np.ndarray) -> str:
    """What an array holds that is no number: the first such value, or its type; of an object in place of values its name."""
    if array.dtype.kind == "O" and array.ndim == 0 and not isinstance(array[()], Number):
        return f"one {type(array[()]).__name__}: give an array or a list, in the order of the rows"
    for row, value in enumerate(array.ravel().tolist() if array.dtype.kind in "OSU" and array.ndim == 1 else ()):
        if not isinstance(value, Number):
            return f"{shown(value)} at row {row}"
    return f"dtype {array.dtype}"


def shown(value: Any) -> str:
    """A value in an error, in few characters."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def same_length(array: np.ndarray, name: str, n: int) -> np.ndarray:
    """The array; raises ValueError unless it has n values."""
    if len(array) != n:
        raise ValueError(
            f"{name} must have one value per row of X: inconsistent numbers of samples, X has {n} rows, {name} {len(array)}."
        )
    return array


def finite(array: np.ndarray, name: str) -> np.ndarray:
    """The array; raises ValueError for NaN and infinity, with the row of the first."""
    bad = ~np.isfinite(array)
    if bad.any():
        at = tuple(int(k) for k in np.argwhere(bad)[0])
        what = "NaN" if np.isnan(array[at]) else "infinity"
        raise ValueError(f"{name} contains {what} at row {at[0]}; every value must be finite.")
    return array
