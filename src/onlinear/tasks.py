"""The two tasks, classification and regression: settings, the learner, the meaning of its scores, and model files.

The scikit-learn estimators extend these models; the commands use them without scikit-learn.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from onlinear import models
from onlinear.build import LOSSES, build_loss, build_penalty, is_none, split
from onlinear.final import Final
from onlinear.hints import argument
from onlinear.learner import Learner
from onlinear.names import listed, unknown
from onlinear.run import CLASSIFY, REGRESS
from onlinear.solvers import SOLVERS
from onlinear.specs import PartNeeded
from onlinear.streams import encoding

PARTS = ("solver", "loss", "penalty", "average")
OBJECT = {"part": "object"}
LONGEST_CLASS = 1 << 16  # characters of the name of a class in a model file


class Choice(NamedTuple):
    """Step size with an average and without, average and scale where nothing is named; measured, see docs/defaults.md."""

    averaged: float
    single: float
    average: str
    scale: str


def told(init: Callable[..., None]) -> Callable[..., None]:
    """``__init__`` whose error for an argument that it does not have names the class and what to write instead."""
    known = list(signature(init).parameters)[1:]

    @wraps(init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        for name in settings:
            if name not in known:
                hint = argument(name) or f"Arguments: {listed(known)}."
                raise TypeError(f"{type(self).__name__} has no argument {name!r}. {hint}")
        init(self, *args, **settings)

    return checked


class Model(ABC):
    """What the two tasks share. ``settings`` are the arguments of ``__init__``; what was learned ends with an underscore."""

    choice: Choice
    task: str
    kind: str  # in a model file
    learner_: Any  # a Learner, or what predicts of one (Final)
    n_features_in_: int
    n_iter_: int
    history_: list[dict[str, Any]]  # where the run over a stream stood whenever the row count had doubled
    encoding_: dict[str, Any] | None  # how a stream's features became columns

    @told
    def __init__(
        self,
        loss: Any = "squared",
        *,
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        passes: int = 1,
        shuffle: bool | str | None = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: bool | int = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.average = average
        self.passes = passes
        self.shuffle = shuffle
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_jobs = n_jobs

    def settings(self) -> dict[str, Any]:
        """The settings, by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    # --- the learner -------------------------------------------------------------------------------------------------

    def _new(self, outputs: int, total: int | None) -> Learner:
        return Learner(
            self._solver(),
            self.loss,
            self.penalty,
            self._average(),
            scale=self._scale(),
            fit_intercept=self.fit_intercept,
            n_features=self.n_features_in_,
            n_outputs=outputs,
            total=total,
            n_jobs=self.n_jobs,
        )

    def _solver(self) -> Any:
        if self.solver is not None:
            return self.solver
        penalty, none = build_penalty(self.penalty), build_penalty("none")
        bare = type(penalty) is type(none) and penalty == none  # then both are one method, and this the faster form of it
        eta = self.choice.single if is_none(self._average()) else self.choice.averaged
        return f"{'implicit-sgd' if bare else 'fiol'},eta={eta:g}"

    def _average(self) -> Any:
        if self.solver is not None or self.average is not None:
            return self.average
        penalty = build_penalty(self.penalty)
        sparse = any(getattr(penalty, strength, 0.0) > 0.0 for strength in ("l1", "tv"))
        return None if sparse else self.choice.average

    def _scale(self) -> Any:
        if self.scale is not None:
            return self.scale
        return self.choice.scale if self.solver is None else "none"

    def _learnt(self) -> Any:
        """The learner; raises NotFittedError where there is none yet."""
        if not hasattr(self, "learner_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit or partial_fit first.")
        return self.learner_

    @property
    def t_(self) -> int:
        """Rows learned, over all passes and calls."""
        return int(self._learnt().t)

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], final: bool = False) -> None:
        """Write a model file; ``load`` gives a model that predicts the same and goes on exactly as this one would.

        With ``final`` only what predicts is written, in O(non-zeros): what is loaded then learns no more. Callbacks, and a
        ``random_state`` that is neither an integer nor None, are not kept.
        """
        models.write(path, *self.freeze(final))

    def freeze(self, final: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a model file holds: a JSON-able header, and arrays that this model shares."""
        learner = Final.of(self._learnt()) if final else self._learnt()
        header, arrays = learner.freeze()
        return {"kind": self.kind, **header, "estimator": self._described(learner)}, arrays

    def feature_names(self, columns: np.ndarray) -> list[str | None]:
        """The names of some columns, as a data frame or a table gave them; None where there is none."""
        learner = self._learnt()
        if isinstance(learner, Final) and learner.names is not None:
            return [learner.names.get(int(j)) for j in columns]
        names = getattr(self, "feature_names_in_", None)
        if names is None and self.encoding_ is not None:
            names = encoding.names(self.encoding_, learner.size)
        return [None] * len(columns) if names is None else [names[int(j)] for j in columns]

    def _described(self, learner: Learner | Final) -> dict[str, Any]:
        params = {name: value for name, value in self.settings().items() if name not in ("callbacks", "n_jobs")}
        for role in PARTS:  # what an object is, the learner's header says
            params[role] = params[role] if params[role] is None or isinstance(params[role], str) else OBJECT
        if not isinstance(params["random_state"], (int, np.integer)):
            params["random_state"] = None
        if isinstance(params.get("class_weight"), dict):
            params["class_weight"] = [[plain(key), float(value)] for key, value in params["class_weight"].items()]
        names = getattr(self, "feature_names_in_", None)
        described = {
            "params": {name: plain(value) for name, value in params.items()},
            "features": self.n_features_in_,
            "names": None if names is None else names.tolist(),
            "passes": self.n_iter_,
            "history": self.history_,
            "encoding": self.encoding_,
        }
        if isinstance(learner, Final):
            columns = learner.all_columns()
            kept = zip(columns.tolist(), self.feature_names(columns), strict=True)
            own = self.encoding_ is None or names is not None
            described["names"] = [[column, name] for column, name in kept if name is not None] if own else None
        return described

    @abstractmethod
    def _restore(self, header: dict[str, Any], learner: Learner | Final) -> None:
        self.learner_, self.n_features_in_, self.n_iter_ = learner, header["features"], header["passes"]
        self.history_, self.encoding_ = header["history"], header["encoding"]
        _must(type(self.n_features_in_) is int and self.n_features_in_ == max(1, learner.size), "features")
        _must(type(self.n_iter_) is int and self.n_iter_ >= 1, "passes")
        _must(isinstance(self.history_, list) and all(map(_is_report, self.history_)), "history")
        if self.encoding_ is not None:
            encoding.must_be_known(self.encoding_)
        names = header["names"]
        if names is None:
            return
        if isinstance(learner, Final):
            learner.names = {int(column): str(name) for column, name in names}
        else:
            _must(len(names) == self.n_features_in_ and all(isinstance(name, str) for name in names), "names")
            self.feature_names_in_ = np.array(names, dtype=object)


class Classifier(Model):
    """A model of classes, several one against the rest."""

    choice = Choice(20.0, 5.0, "weighted-t1", "rms")
    task = CLASSIFY
    kind = "classifier"
    classes_: np.ndarray

    @told
    def __init__(
        self,
        loss: Any = "logistic",
        *,
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        passes: int = 1,
        shuffle: bool | str | None = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: bool | int = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            loss,
            penalty=penalty,
            solver=solver,
            average=average,
            passes=passes,
            shuffle=shuffle,
            scale=scale,
            fit_intercept=fit_intercept,
            random_state=random_state,
            verbose=verbose,
            callbacks=callbacks,
            n_jobs=n_jobs,
        )
        self.class_weight = class_weight

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The classes that scores say, (n,)."""
        return self.classes_[np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)]

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """What scores say of each class, (n, K)."""
        chances = self.learner_.loss.probability(scores)
        if chances.ndim == 1:
            return np.column_stack([1.0 - chances, chances])
        total = chances.sum(axis=1, keepdims=True)
        return np.divide(chances, total, out=np.full_like(chances, 1.0 / chances.shape[1]), where=total > 0.0)

    def _new(self, outputs: int, total: int | None) -> Learner:
        if loss_labels(self.loss) not in ("signs", "real"):
            known = ", ".join(name for name, loss in LOSSES.items() if getattr(loss, "labels", "real") in ("signs", "real"))
            raise ValueError(f"loss {self.loss!r} takes counts, not classes. Losses for classes: {known}.")
        return super()._new(outputs, total)

    def _low(self, outputs: int) -> float:
        """The target of the rows of other classes."""
        if outputs == 1 or not isinstance(self.solver, str):
            return -1.0
        return 0.0 if SOLVERS[split(self.solver, "solver", SOLVERS)[0]].targets == "one-hot" else -1.0

    def _described(self, learner: Learner | Final) -> dict[str, Any]:
        values = [plain(value) for value in self.classes_]
        if any(not isinstance(value, (str, int, float)) for value in values):
            raise ValueError(f"classes must be text or numbers to be kept in a model file, got {quoted(self.classes_)}.")
        return super()._described(learner) | {"classes": values, "class dtype": self.classes_.dtype.str}

    def _restore(self, header: dict[str, Any], learner: Learner | Final) -> None:
        super()._restore(header, learner)
        values, dtype = header["classes"], np.dtype(header["class dtype"])
        kinds: dict[str, Any] = {"U": str, "O": (str, int, float), "b": bool, "i": int, "u": int, "f": (int, float)}
        _must(len(values) == (learner.n_outputs if learner.n_outputs > 1 else 2), "classes")
        _must(all(isinstance(value, kinds.get(dtype.kind, ())) for value in values), "classes")
        _must(dtype.kind != "U" or dtype.itemsize <= 4 * LONGEST_CLASS, "classes")
        self.classes_ = np.array(values, dtype=dtype)
        _must(bool(np.all(self.classes_[1:] > self.classes_[:-1])), "classes")
        if isinstance(self.class_weight, list):
            self.class_weight = dict(self.class_weight)


class Regressor(Model):
    """A model of numbers."""

    choice = Choice(50.0, 10.0, "weighted-t1", "max-abs")
    task = REGRESS
    kind = "regressor"
    columns_: int | None

    def means_of(self, scores: np.ndarray) -> np.ndarray:
        """The predictions that scores stand for."""
        scores = scores[:, None] if self.columns_ is not None and scores.ndim == 1 else scores
        mean = getattr(self.learner_.loss, "mean", None)
        return scores if mean is None else mean(scores)

    def _new(self, outputs: int, total: int | None) -> Learner:
        if loss_labels(self.loss) == "signs":
            known = ", ".join(name for name, loss in LOSSES.items() if getattr(loss, "labels", "real") != "signs")
            raise ValueError(f"loss {self.loss!r} is for two classes. Losses for numbers: {known}.")
        return super()._new(outputs, total)

    def _described(self, learner: Learner | Final) -> dict[str, Any]:
        return super()._described(learner) | {"columns": self.columns_}

    def _restore(self, header: dict[str, Any], learner: Learner | Final) -> None:
        super()._restore(header, learner)
        self.columns_ = header["columns"]
        _must((self.columns_ or 1) == learner.n_outputs, "columns")


KINDS: dict[str, type[Model]] = {"classifier": Classifier, "regressor": Regressor}


def load(path: str | os.PathLike[str], kinds: dict[str, Any] | None = None, **parts: Any) -> Any:
    """The ``Learner``, ``Classifier`` or ``Regressor`` in a model file; ``kinds``: other classes for the last two.

    Parts from outside the package are passed by role, e.g. ``load(path, loss=MyLoss())``. Raises FileNotFoundError,
    ModelFileError.
    """
    for role in parts:
        if role not in PARTS:
            raise unknown("part", role, PARTS)
    header, arrays = models.read(path)
    try:
        return _restored(header, arrays, kinds or KINDS, parts)
    except PartNeeded:
        raise
    except models.ModelFileError as error:
        raise models.ModelFileError(f"{os.fspath(path)}: {error}") from None
    except KeyError as error:
        raise models.ModelFileError(f"{os.fspath(path)}: the model file's header lacks {error}.") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        if parts:  # which may be what is wrong
            raise
        raise models.ModelFileError(f"{os.fspath(path)}: what the model file's header says cannot be: {error}") from None


def _restored(header: dict[str, Any], arrays: models.Arrays, kinds: dict[str, Any], parts: dict[str, Any]) -> Any:
    kind = header.get("kind")
    if kind not in ("learner", *kinds):
        raise models.ModelFileError(f"holds a model of the unknown kind {kind!r}.")
    learner = (Final if header.get("final") is True and kind in kinds else Learner).thaw(header, arrays, **parts)
    if kind == "learner":
        return learner
    params = header["estimator"]["params"]
    model = kinds[kind](**params | {role: learner.spec[role] for role in PARTS if params[role] == OBJECT})
    model._restore(header["estimator"], learner)
    return model


def gives_probabilities(model: Any) -> bool:
    """Whether scores of the model say how likely each class is."""
    if not isinstance(model, Classifier):
        return False
    try:
        loss = model.learner_.loss if hasattr(model, "learner_") else build_loss(model.loss)
    except (TypeError, ValueError):
        return False
    return hasattr(loss, "probability")


def loss_labels(loss: Any) -> str:
    """Which targets a loss takes: signs, counts or real numbers."""
    return str(getattr(build_loss(loss), "labels", "real"))


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def quoted(classes: np.ndarray) -> str:
    """The first of the classes as Python writes them, for messages."""
    names = [repr(plain(value)) for value in classes[:20]]
    return ", ".join(names) + (", ..." if len(classes) > 20 else "")


def _must(true: bool, name: str) -> None:
    if not true:
        raise models.ModelFileError(f"the model file's header has {name!r} that do not fit the rest of it.")


def _is_report(entry: Any) -> bool:
    if not isinstance(entry, dict) or not {"rows", "loss", "since"} <= set(entry):
        return False
    return all(value is None or type(value) in (int, float) for value in entry.values()) and type(entry["rows"]) is int
