"""What a model file holds of a model beside its learner: settings, classes, history; checked before it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onlinear.errors import ModelFileError
from onlinear.files import trust
from onlinear.learner.parts import split
from onlinear.learner.stored_learner import Header
from onlinear.learner.stored_parts import ROLES
from onlinear.solvers import SOLVERS
from onlinear.streams.labels import is_large
from onlinear.text.form import as_plain, quoted

NUMBERS = ("l1", "l2", "eta")  # parameters that files of older releases lack; they stand where they are given
OBJECT = {"part": "object"}  # stands for a part object, which the learner's header describes
LATER = {
    "forget": None,
    "uncertainty": False,
    "tol": None,
    "max_passes": 100,
    "warm_start": False,
    "interactions": None,
    "ngrams": None,
    "bins": None,
    "text": None,
    "missing": None,
}  # settings of later releases: where they are these, files lack them
OF_COLUMNS = ("interactions", "ngrams", "bins", "text", "missing")  # settings that say how the columns of tables are read
CLASS_TYPE = re.compile(r"[<>=|]?(U[0-9]{1,9}|O[0-9]?|b1|[iu][1248]|f(2|4|8|16))")


def must(true: bool, name: str) -> None:
    """Raise ModelFileError unless ``true``."""
    if not true:
        raise ModelFileError(f"the model file's header has {name!r} that do not fit the rest of it.")


def is_setting(name: str, value: Any) -> bool:
    """Whether an estimator's setting is of a kind that files hold; what a text or number means is checked where it is used."""
    if name in ("callbacks", "n_jobs"):
        return False
    if name == "solver" and isinstance(value, str):
        return split(value, name, SOLVERS) is not None
    if name == "class_weight" and isinstance(value, list):
        return all(isinstance(pair, list) and len(pair) == 2 and trust.real(pair[1]) for pair in value)
    if name in OF_COLUMNS:
        return value is None or _is_asked(value)
    if value == OBJECT:
        return name in ROLES
    return value is None or isinstance(value, (bool, str)) or trust.real(value)


def _is_asked(value: Any) -> bool:
    """Whether these are names and numbers, in lists, or lists by name."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_asked(held) for name, held in value.items())
    return all(map(_is_asked, value)) if isinstance(value, list) else isinstance(value, str) or trust.real(value)


def is_history(reports: Any) -> bool:
    """Whether these are reports: numbers, or None, by name."""
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        return False
    named = all({"rows", "loss", "since"} <= set(report) and trust.count(report["rows"]) for report in reports)
    return named and all(value is None or trust.real(value) for report in reports for value in report.values())


def store_params(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON holds them: without callbacks and threads, which a file does not keep."""
    params = {
        name: value
        for name, value in settings.items()
        if name not in ("callbacks", "n_jobs") and not (name in LATER and value == LATER[name])
    }
    if params.get("clip", True) is None:
        del params["clip"]  # files that are older than it, and were saved again, keep their bytes
    for role in ROLES:
        params[role] = params[role] if params[role] is None or isinstance(params[role], str) else OBJECT
    if not isinstance(params["random_state"], (int, np.integer)):
        params["random_state"] = None
    if isinstance(params.get("class_weight"), dict):
        params["class_weight"] = [[name_in_weights(key), float(value)] for key, value in params["class_weight"].items()]
    params |= {name: as_lists(params[name]) for name in OF_COLUMNS if name in params}
    return {name: as_plain(value) for name, value in params.items() if not (name in NUMBERS and value is None)}


def as_lists(value: Any) -> Any:
    """Names and numbers as JSON holds them."""
    if isinstance(value, Mapping):
        return {name: as_lists(held) for name, held in value.items()}
    return [as_lists(held) for held in value] if isinstance(value, Iterable) and not isinstance(value, str) else as_plain(value)


def store_classes(classes: np.ndarray) -> Header:
    """Classes as JSON holds them."""
    values = [plain(value) for value in classes]
    if any(not isinstance(value, (str, int, float)) for value in values):
        raise ValueError(f"classes must be text or numbers to be kept in a model file, got {quote(classes)}.")
    dtype = np.dtype(object) if is_large(len(classes), classes.dtype.itemsize) else classes.dtype
    return {"classes": values, "class dtype": dtype.str}


def restore_classes(header: Header, outputs: int) -> np.ndarray:
    """The inverse of ``store_classes``, for a learner of so many outputs."""
    values, kind = header["classes"], header["class dtype"]
    must(isinstance(kind, str) and CLASS_TYPE.fullmatch(kind) is not None, "class dtype")
    dtype = np.dtype(kind)
    kinds: dict[str, Any] = {"U": str, "O": (str, int, float), "b": bool, "i": int, "u": int, "f": (int, float)}
    must(isinstance(values, list) and len(values) == (outputs if outputs > 1 else 2), "classes")
    must(all(isinstance(value, kinds[dtype.kind]) for value in values), "classes")
    must(not is_large(len(values), dtype.itemsize), "classes")
    classes = np.array(values, dtype=dtype)
    must(bool(np.all(classes[1:] > classes[:-1])), "classes")
    return classes


def name_in_weights(name: Any) -> str | float:
    """A name in class weights as files keep it; raises TypeError for what no class is."""
    held = plain(name)
    if not isinstance(held, (str, int, float)):
        raise TypeError(f"class_weight must name classes, which are text, numbers or booleans, got {quoted(name)}.")
    return held


def plain(value: Any) -> Any:
    """A NumPy scalar, or an array of no dimension, as Python's."""
    return value.item() if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0) else value


def quote(classes: np.ndarray | Sequence[Any]) -> str:
    """The first of the classes as Python writes them, for messages."""
    names = [quoted(plain(value)) for value in classes[:20]]
    return ", ".join(names) + (", ..." if len(classes) > 20 else "")
