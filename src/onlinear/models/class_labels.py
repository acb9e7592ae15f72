"""The labels of rows in memory: which classes there are, where each label stands among them, and what classes weigh."""

from __future__ import annotations

from collections.abc import Set
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from onlinear.compiled.calls import EXACT
from onlinear.models.stored_model import name_in_weights, plain, quote
from onlinear.rows import checks
from onlinear.streams.labels import label_array
from onlinear.streams.weighted import balanced, some_above_zero
from onlinear.text.form import check_number, quoted


def named_classes(classes: Any, known: np.ndarray | None) -> np.ndarray:
    """The classes of ``partial_fit``: those known, else those named, which the first call must name."""
    if classes is None:
        if known is None:
            raise ValueError("the first partial_fit needs classes=, all classes there will be, e.g. classes=[0, 1].")
        return known
    given = _one_kind(classes)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError(f"classes must be finite, got {quote(given)}.")
    named = np.unique(given)
    if known is not None and not np.array_equal(named, known):
        raise ValueError(f"classes={quote(named)} differs from the classes of the first call: {quote(known)}.")
    return named if known is None else known


def _one_kind(classes: Any) -> np.ndarray:
    """Named classes as an array; raises ValueError unless all are text or all numbers. Lists are looked at as they are, since
    NumPy makes text of a number beside text."""
    checks.refuse_missing(classes, "classes")
    listed = list(classes) if isinstance(classes, Set) else classes
    given = label_array(listed)
    if given.ndim != 1:
        raise ValueError(f"classes must be a list of labels, e.g. classes=[0, 1], got {checks.shown(classes)}.")
    held = given
    if given.dtype.kind == "U" and isinstance(listed, (list, tuple)):
        held = np.fromiter(listed, object, len(listed))
    text = len(held) > 0 and isinstance(held[0], str)
    _check_kind(held, "classes", str if text else Real)
    if given.dtype.kind == "O" and not text:
        given = np.array(given.tolist())
        _check_kind(given, "classes", str)
    return given


def at_least_two(classes: np.ndarray) -> np.ndarray:
    """The classes; raises ValueError where there are not two."""
    if len(classes) < 2:
        found = f"there is one class only ({quote(classes)})" if len(classes) else "there is no class"
        raise ValueError(f"{found}; a classifier needs at least two classes.")
    return classes


def _check_kind(labels: np.ndarray, name: str, kinds: Any) -> None:
    """Raise ValueError for labels that are not text, numbers or booleans; of objects, for one that is not of ``kinds``. What
    scikit-learn refuses too begins as there."""
    dtype, start = labels.dtype, ""
    if kinds is str and _is_text(labels):
        return
    if dtype.kind == "O" and labels.ndim == 1:
        row = next((row for row, label in enumerate(labels) if not isinstance(label, kinds)), None)
        if row is None or (name == "y" and isinstance(labels[row], (bytes, list, tuple, np.ndarray))):
            return  # scikit-learn says what these are
        held, start = f"the object {checks.shown(plain(labels[row]))} at row {row}", "Unknown label type: unknown. "
    elif dtype.kind in ("mMV" if name == "y" else "mMVS") or (dtype.kind == "f" and dtype.itemsize > 8):
        held = f"dtype {dtype}"
    else:
        return
    raise ValueError(
        f"{start}{name} must hold text, numbers or booleans, all of one type, got {held}: "
        f"{name}.astype(str) makes them text, {name}.astype(int) whole numbers."
    )


def _is_text(labels: np.ndarray) -> bool:
    """Whether labels are objects, each of them text: they are told apart by hashes, as to sort them takes longer than a fit."""
    return labels.dtype.kind == "O" and labels.ndim == 1 and set(map(type, labels.tolist())) <= {str}


def _distinct(labels: np.ndarray) -> np.ndarray:
    """The labels, each once, ascending."""
    return np.array(sorted(set(labels.tolist())), dtype=object) if _is_text(labels) else np.unique(labels)


def classes_of(y: np.ndarray) -> np.ndarray:
    """The classes of all rows; raises ValueError or TypeError for labels that are none, or that model files do not keep. Labels
    are looked at once: where classes have two rows on average, scikit-learn's check is given two labels of each, of which it
    says the same."""
    if not _is_text(y):
        _check_kind(y, "y", str)
        if y.ndim != 1 or y.dtype.kind not in "biufU":
            check_classification_targets(y)
            return np.unique(y)
    found = _distinct(y)
    check_classification_targets(np.repeat(found, 2) if len(found) <= len(y) // 2 else y)
    return found


def has_fractions(classes: np.ndarray) -> bool:
    """Whether classes are numbers of which some have a fraction, as only those of a stream may be."""
    return classes.dtype.kind == "f" and bool(np.any(classes != np.floor(classes)))


def places_of(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each label's place among the classes, which ascend and are those of the labels."""
    if y.dtype.kind == "O" or _are_merged(classes, y):
        places = {label: place for place, label in enumerate(classes.tolist())}
        return np.fromiter(map(places.__getitem__, y.tolist()), np.intp, len(y))
    return (y == classes[1]).astype(np.intp) if len(classes) == 2 else np.searchsorted(classes, y)


def _are_merged(classes: np.ndarray, y: np.ndarray) -> bool:
    """Whether NumPy compares labels with classes as doubles, as with and without a sign, which do not tell these apart."""
    return (
        classes.dtype.kind in "iu"
        and np.result_type(classes, y).kind == "f"
        and max(abs(int(classes[0])), abs(int(classes[-1]))) > EXACT
    )


def places_among(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each label's place among the classes, which ascend; raises ValueError for a label that is none."""
    _check_kind(y, "y", str if classes.dtype.kind in "UO" else Real)
    known = set(classes.tolist())
    strange = [label for label in _distinct(y).tolist() if label not in known]
    if strange:
        row = int(np.argmax(y == strange[0]))
        raise ValueError(f"y holds the class {quoted(strange[0])} at row {row}; the known classes are {quote(classes)}.")
    return places_of(classes, y)


def check_class_weight(class_weight: Any, *, balance: bool) -> None:
    """Raise ValueError or TypeError for class weights that cannot be; ``balance``: whether the labels of all rows are known."""
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
        if not balance:
            raise ValueError(
                "class_weight='balanced' needs the labels of all rows before the first, as fit has them: for partial_fit "
                "pass a dict such as {0: 1, 1: 20} (sklearn.utils.class_weight.compute_class_weight finds one)."
            )
    elif class_weight is not None and not isinstance(class_weight, dict):
        raise TypeError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    else:
        for name, weight in (class_weight or {}).items():
            name_in_weights(name)
            check_number("class_weight", f"the weight of {name!r}", weight, 0.0, np.inf, open_high=True)


def weights_of_classes(
    class_weight: Any, classes: np.ndarray, places: np.ndarray, weights: np.ndarray, *, balance: bool
) -> np.ndarray:
    """What multiplies the rows of each class, for rows of weights (n,) whose classes stand at ``places``."""
    check_class_weight(class_weight, balance=balance)
    if isinstance(class_weight, str):
        return balanced(np.bincount(places, weights, len(classes)))
    return weights_by_name(class_weight, classes)


def weights_by_name(class_weight: dict[Any, float] | None, classes: np.ndarray) -> np.ndarray:
    """The weight of each class, 1 where it has none. Raises ValueError, as scikit-learn does, where a class has none and
    another name is no class, and where all are zero. Text of a whole number may be named by the number, as scikit-learn does
    it, which takes no other name."""
    if not class_weight:
        return np.ones(len(classes))
    found, missing, strange = np.ones(len(classes)), [], dict(class_weight)
    for place, label in enumerate(classes.tolist()):
        name = label if label in class_weight else _whole(label)
        if name in class_weight:
            found[place] = class_weight[name]
            strange.pop(name, None)
        else:
            missing.append(label)
    if missing and len(classes) - len(missing) != len(class_weight):
        raise ValueError(
            f"The classes, [{quote(missing)}], are not in class_weight; it has a weight for {quote([*strange])}, "
            f"which is none of the classes {quote(classes)}."
        )
    return some_above_zero(found)


def _whole(label: Any) -> Any:
    """Text as the whole number that it is, if it is one."""
    try:
        return int(label) if isinstance(label, str) else label
    except ValueError:
        return label
