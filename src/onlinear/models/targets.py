"""Targets in memory that are none: each error names what ``y`` holds, the first such row, and what to give instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from numbers import Number
from typing import Any

import numpy as np

from onlinear.compiled.calls import EXACT
from onlinear.rows import checks
from onlinear.streams.frames import WIDE
from onlinear.streams.labels import label_array

WANTED = "y must be an array of targets, or the name of the column of X that holds them"
LARGEST = int(np.finfo(np.float64).max)
NUMBERS_OF_TEXT = ": text names classes, for OnlineClassifier; text of numbers must become numbers first, as y.astype(float)"


def as_targets(X: Any, y: Any, *, numbers: bool) -> Any:
    """The targets as they are, or as an array where NumPy or scikit-learn do not know their type; ``numbers``: whether they
    must be numbers. Raises TypeError or ValueError for what is no column of targets."""
    if y is None:
        return y
    _refuse_no_column(X, y)
    checks.refuse_missing(y, "y")
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if not numbers and len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array of classes, got an array of shape {tuple(shape)}: for several labels of a row fit "
            "sklearn.multioutput.MultiOutputClassifier(model)."
        )
    if hasattr(y, "columns") and hasattr(getattr(y, "sparse", None), "to_dense"):
        return _of_values(y.sparse.to_dense(), numbers)  # several targets, which pandas holds sparse
    held = getattr(y, "dtype", None)
    if str(held) in WIDE:
        y = np.array(y.to_list())
    elif getattr(held, "kind", "") in ("i", "u") and not isinstance(held, np.dtype):
        y = _of_whole_numbers(y)
    elif getattr(held, "kind", "") == "T":
        y = _of_strings(y)
    return _of_values(y, numbers)


def column_of_targets(X: Any, y: Any, n: int, *, numbers: bool) -> np.ndarray:
    """``targets_to_score`` as an array of one value for each of n rows, or of several for each."""
    given = np.asarray(targets_to_score(X, y, numbers=numbers))
    return checks.same_length(given[:, 0] if given.shape == (n, 1) else given, "y", n)


def targets_to_score(X: Any, y: Any, *, numbers: bool) -> Any:
    """``as_targets`` of rows that bring none themselves: raises ValueError where y is None."""
    if y is None:
        raise ValueError(f"{WANTED}.")
    found = as_targets(X, y, numbers=numbers)
    is_tensor = hasattr(found, "device") and not isinstance(found, np.ndarray)
    return np.asarray(found) if is_tensor else found  # scikit-learn's measures refuse a tensor beside an array


def _of_whole_numbers(y: Any) -> Any:
    """A column of pandas' own whole numbers, of which scikit-learn makes doubles; an array where doubles cannot hold them."""
    whole = np.asarray(y, getattr(y.dtype, "numpy_dtype", None))  # a sparse type has none
    return whole if len(whole) and (int(whole.max()) > EXACT or int(whole.min()) < -EXACT) else y


def _of_strings(y: np.ndarray) -> np.ndarray:
    """NumPy's strings of any length as text of a fixed one."""
    missing = np.array([not isinstance(label, str) for label in y.ravel().tolist()], bool)
    if missing.any():
        raise ValueError(f"y contains a missing value at row {int(np.argmax(missing))}; every value must be given.")
    return label_array(y)


def _of_values(y: Any, numbers: bool) -> Any:
    """The targets, a list of them as an array. Raises TypeError or ValueError for values that are no targets."""
    try:
        array = label_array(y)
    except ValueError:
        return y  # of rows of several lengths, which the checks of shapes refuse
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has dtype {array.dtype}; expected real numbers.")
    if array.dtype.kind == "f":
        checks.finite(array, "y")
    if numbers:
        _refuse_no_numbers(array)
    return array if isinstance(y, (list, tuple)) else y


def _refuse_no_column(X: Any, y: Any) -> None:
    """Raise TypeError for what holds no row after the other, and for a list of names of columns."""
    kind = type(y).__name__
    if isinstance(y, str):
        who = "only a data frame, an Arrow table or a list of dicts has names of columns"
        raise TypeError(f"{WANTED}, got {checks.shown(y)}: {who}.")
    if kind in ("Expr", "LazyFrame"):
        remedy = "X.select(y).to_series()" if kind == "Expr" else "its collect()"
        raise TypeError(f"{WANTED}, got a polars {kind}, which holds no values yet: give the name, or {remedy}.")
    if isinstance(y, (Mapping, Set)) or (isinstance(y, Iterable) and not hasattr(y, "__len__") and not hasattr(y, "__array__")):
        order = "list(y.values())" if isinstance(y, Mapping) else "a list in the order of the rows"
        raise TypeError(f"{WANTED}, got a {kind}: give {order}.")
    if getattr(y, "shape", None) == () or not (hasattr(y, "__len__") or hasattr(y, "__array__")):
        hint = f": names of columns are text, as y={str(y)!r}" if isinstance(y, (int, np.integer)) else ""
        raise TypeError(f"{WANTED}, got {checks.shown(y)}{hint}.")
    columns = getattr(X, "columns", None)
    if isinstance(y, (list, tuple)) and y and columns is not None and len(y) != len(X):
        named = set(map(str, columns))
        if all(isinstance(name, str) and name in named for name in y):
            remedy = f"y={y[0]!r}" if len(y) == 1 else "X[y] for several targets, and X without these columns"
            raise TypeError(f"{WANTED}, got a list of names of columns: give {remedy}.")


def _refuse_no_numbers(array: np.ndarray) -> None:
    """Raise TypeError for dates, and for text and objects that are no numbers."""
    kind = array.dtype.kind
    if kind in "mM":
        name = "datetime64" if kind == "M" else "timedelta64"
        raise TypeError(
            f"y must hold numbers, got dtype {array.dtype}: count their seconds, as np.asarray(y, '{name}[s]').astype(float)."
        )
    if kind not in "OSU":
        return
    for row, value in enumerate(array.ravel().tolist() if array.ndim == 1 else ()):
        if not _is_number(value, of_text=kind == "O"):
            remedy = NUMBERS_OF_TEXT if isinstance(value, (str, bytes)) else ""
            raise TypeError(f"y must hold numbers, got {checks.shown(value)} at row {row}{remedy}.")
        if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
            raise ValueError(f"y must hold numbers that are doubles, got {checks.shown(value)} at row {row}.")


def _is_number(value: Any, *, of_text: bool) -> bool:
    """Whether a value is a number; ``of_text``: or text of one, as scikit-learn reads objects."""
    try:
        return isinstance(value, Number) or (of_text and isinstance(float(value), float))
    except (TypeError, ValueError):
        return False
