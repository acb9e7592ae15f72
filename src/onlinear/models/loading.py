"""Models from model files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onlinear.errors import ModelFileError
from onlinear.files import model_file
from onlinear.learner import Learner
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.learner.stored_parts import ROLES, PartNeeded
from onlinear.models.base import Classifier, Model, Regressor
from onlinear.models.predictor import Final
from onlinear.models.stored_model import OBJECT, is_setting, must
from onlinear.text.form import unknown
from onlinear.text.names import printable

MODEL_CLASSES: dict[str, type[Model]] = {"classifier": Classifier, "regressor": Regressor}


def load(path: str | os.PathLike[str], kinds: dict[str, Any] | None = None, **parts: Any) -> Any:
    """The ``Learner``, ``Classifier`` or ``Regressor`` in a model file.

    Parameters
    ----------
    path : str or path-like
        The file.
    kinds : dict of str to class, default=None
        Other classes than ``Classifier`` and ``Regressor``, by the names ``"classifier"`` and ``"regressor"``.
    **parts
        User-defined parts, by role: ``loss=MyLoss()``.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        For a file that is no model file, or is damaged.
    ValueError
        For a part that is not the model's, or a user-defined part that is missing.
    """
    for role in parts:
        if role not in ROLES:
            raise unknown("part", role, ROLES)
    header, arrays = model_file.read(path)
    if header.get("kind") == "path":
        raise ModelFileError(f"{printable(os.fsdecode(path))}: holds a path of penalties: load it with PenaltyPath.load.")
    with refusing(path, parts):
        return restored(header, arrays, kinds or MODEL_CLASSES, parts)


@contextmanager
def refusing(path: str | os.PathLike[str], parts: dict[str, Any]) -> Iterator[None]:
    """Raise ModelFileError, by the name of the file, where its header says what cannot be; ``parts`` are the user's."""
    name = printable(os.fsdecode(path))
    try:
        yield
    except PartNeeded:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except KeyError as error:
        raise ModelFileError(f"{name}: the model file's header lacks {error}.") from None
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        if parts:  # which may be what is wrong
            raise
        raise ModelFileError(f"{name}: what the model file's header says cannot be: {error}") from None


def restored(header: Header, arrays: Arrays, kinds: dict[str, Any], parts: dict[str, Any]) -> Any:
    """The model of a header and arrays."""
    kind = header.get("kind")
    if kind not in ("learner", *kinds):
        raise ModelFileError(f"holds a model of the unknown kind {kind!r}.")
    learner = (Final if header.get("final") is True and kind in kinds else Learner).thaw(header, arrays, **parts)
    if kind == "learner":
        return learner
    must(isinstance(header["estimator"], dict), "estimator")
    params = header["estimator"]["params"]
    must(isinstance(params, dict) and all(is_setting(name, value) for name, value in params.items()), "params")
    model = kinds[kind](**params | {role: learner.spec[role] for role in ROLES if params[role] == OBJECT})
    model.restore(header["estimator"], learner)
    return model
