"""The two tasks, classification and regression: settings, the learner, the meaning of its scores, and model files.

The scikit-learn estimators extend these models; the commands use them without scikit-learn.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import ADAPTIVE
from onlinear.errors import ModelFileError
from onlinear.files import model_file, trust
from onlinear.learner import Learner
from onlinear.learner.parts import LOSSES, build_average, build_loss, build_penalty, build_solver, is_none, split
from onlinear.learner.stored_parts import PartNeeded
from onlinear.learner.units import RAW, RELATIVE
from onlinear.models.predictor import Final
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Engine, Problem, can_multiply
from onlinear.streams import encoding
from onlinear.text.form import listed, unknown
from onlinear.text.hints import argument
from onlinear.training.training import CLASSIFY, REGRESS

PARTS = ("solver", "loss", "penalty", "average")
OBJECT = {"part": "object"}
FAR = 1e9  # a residual beyond the settings of any loss
LONGEST_CLASS = 1 << 16  # characters of the name of a class in a model file
MOST_CLASSES = 1 << 28  # bytes of all classes of a model file
CLASS_TYPE = re.compile(r"[<>=|]?(U[0-9]{1,9}|O[0-9]?|b1|[iu][1248]|f(2|4|8|16))")


class Choice(NamedTuple):
    """What an estimator takes where nothing is named; measured, see docs/defaults.md."""

    step: float  # step size times |l'|, the slope of the loss at a score of 0, or 1 for losses of numbers
    bounded: float  # step size for losses of numbers whose slope is bounded
    quantile: float  # step size for the quantile loss, whose share of rows above and below larger steps forget
    single: float  # without an average, a share of these
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
        solver, average = self._solver(), self._average()
        follows = self._follows(solver, average)
        return Learner(
            solver,
            self.loss,
            self.penalty,
            average,
            scale=self._scale(),
            fit_intercept=self.fit_intercept,
            n_features=self.n_features_in_,
            n_outputs=outputs,
            targets=RELATIVE if follows and self.task == REGRESS and is_residual(self.loss) else RAW,
            weights=RELATIVE if follows else RAW,
            total=total,
            n_jobs=self.n_jobs,
        )

    def _solver(self) -> Any:
        """The solver: as named, else implicit steps, in their faster form where there is no penalty."""
        if self.solver is not None:
            return self.solver
        eta = natural_eta(self.choice, build_loss(self.loss)) * (self.choice.single if is_none(self._average()) else 1.0)
        return f"{'implicit-sgd' if self._is_bare() else 'fiol'},eta={eta:g}"

    def _is_bare(self) -> bool:
        penalty, none = build_penalty(self.penalty), build_penalty("none")
        return type(penalty) is type(none) and bool(penalty == none)

    def _average(self) -> Any:
        """The average: as named, else that of the preset, else an adaptive one; none where it would fill zeros that the
        penalty makes, or where the solver has no form for it."""
        if self.average is not None:
            return self.average
        solver = self.solver
        if solver is None:
            solver = "implicit-sgd" if self._is_bare() else "fiol"
        elif isinstance(solver, str) and SOLVERS[split(solver, "solver", SOLVERS)[0]].average is not None:
            return None
        penalty = build_penalty(self.penalty)
        sparse = any(getattr(penalty, strength, 0.0) > 0.0 for strength in ("l1", "tv"))
        engine = None if sparse else self._engine(solver, build_average(ADAPTIVE))
        return ADAPTIVE if engine is not None and engine.lazy and engine.scores_means else "none"

    def _engine(self, solver: Any, average: Any) -> Engine | None:
        """The engine of these parts, or None where there is none; its parts are checked when the learner is made."""
        try:
            penalty = build_penalty(self.penalty)
            built, _ = build_solver(solver, penalty, total=2)
            return built.engine(Problem(build_loss(self.loss), penalty, average, self.fit_intercept))  # type: ignore[no-any-return]
        except (ValueError, TypeError):
            return None

    def _follows(self, solver: Any, average: Any) -> bool:
        """Whether the step sizes may follow the running units of weights and targets."""
        engine = self._engine(solver, build_average(average, total=2))
        return engine is not None and can_multiply(engine)

    def _scale(self) -> Any:
        """The scale: as named, else the estimator's; none for solvers whose result is defined by the rows as they are."""
        if self.scale is not None:
            return self.scale
        solver = self.solver
        if isinstance(solver, str):
            solver = SOLVERS[split(solver, "solver", SOLVERS)[0]].solver
        return self.choice.scale if getattr(solver, "scales", True) else "none"

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
        with self._learnt()._lock:
            model_file.write(path, *self.freeze(final))

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
            return encoding.names_of(self.encoding_, columns.tolist())
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
        _must(trust.count(self.n_features_in_) and self.n_features_in_ == max(1, learner.size), "features")
        _must(trust.count(self.n_iter_, 1), "passes")
        _must(_is_history(self.history_), "history")
        if self.encoding_ is not None:
            encoding.must_be_known(self.encoding_)
        names = header["names"]
        if names is None:
            return
        if isinstance(learner, Final):
            _must(all(trust.count(column, 0, learner.size - 1) and isinstance(name, str) for column, name in names), "names")
            learner.names = dict(names)
        else:
            _must(trust.texts(names) and len(names) == self.n_features_in_, "names")
            self.feature_names_in_ = np.array(names, dtype=object)


class Classifier(Model):
    """A model of classes, several one against the rest."""

    choice = Choice(2.4, 2.4, 2.4, 1.0, "rms")
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
        values, kind = header["classes"], header["class dtype"]
        _must(isinstance(kind, str) and CLASS_TYPE.fullmatch(kind) is not None, "class dtype")
        dtype = np.dtype(kind)
        kinds: dict[str, Any] = {"U": str, "O": (str, int, float), "b": bool, "i": int, "u": int, "f": (int, float)}
        wanted = learner.n_outputs if learner.n_outputs > 1 else 2
        _must(isinstance(values, list) and len(values) == wanted, "classes")
        _must(all(isinstance(value, kinds[dtype.kind]) for value in values), "classes")
        _must(dtype.itemsize <= 4 * LONGEST_CLASS and len(values) * dtype.itemsize <= MOST_CLASSES, "classes")
        self.classes_ = np.array(values, dtype=dtype)
        _must(bool(np.all(self.classes_[1:] > self.classes_[:-1])), "classes")
        if isinstance(self.class_weight, list):
            _must(all(isinstance(key, (str, int, float)) for key, _ in self.class_weight), "class weights")
            self.class_weight = dict(self.class_weight)


class Regressor(Model):
    """A model of numbers."""

    choice = Choice(50.0, 20.0, 2.0, 0.2, "max-abs")
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
        _must(self.columns_ is None or trust.count(self.columns_, 1), "columns")
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
    header, arrays = model_file.read(path)
    try:
        return _restored(header, arrays, kinds or KINDS, parts)
    except PartNeeded:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except KeyError as error:
        raise ModelFileError(f"{os.fspath(path)}: the model file's header lacks {error}.") from None
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        if parts:  # which may be what is wrong
            raise
        raise ModelFileError(f"{os.fspath(path)}: what the model file's header says cannot be: {error}") from None


def _restored(header: dict[str, Any], arrays: model_file.Arrays, kinds: dict[str, Any], parts: dict[str, Any]) -> Any:
    kind = header.get("kind")
    if kind not in ("learner", *kinds):
        raise ModelFileError(f"holds a model of the unknown kind {kind!r}.")
    learner = (Final if header.get("final") is True and kind in kinds else Learner).thaw(header, arrays, **parts)
    if kind == "learner":
        return learner
    _must(isinstance(header["estimator"], dict), "estimator")
    params = header["estimator"]["params"]
    _must(isinstance(params, dict) and all(_is_setting(name, value) for name, value in params.items()), "params")
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


def is_residual(loss: Any) -> bool:
    """Whether a loss depends on s - y alone."""
    return bool(getattr(build_loss(loss), "residual", False))


def natural_eta(choice: Choice, loss: Any) -> float:
    """The step size that suits a loss, by its slope."""
    if getattr(loss, "labels", "real") == "signs":
        slope = abs(float(loss.slope(0.0, 1.0)))
        return choice.step / slope if slope > 0.0 else choice.step
    if hasattr(loss, "q"):
        return choice.quantile
    return choice.bounded if is_residual(loss) and abs(float(loss.slope(FAR, 0.0))) < FAR else choice.step


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
        raise ModelFileError(f"the model file's header has {name!r} that do not fit the rest of it.")


def _is_setting(name: str, value: Any) -> bool:
    """Whether an estimator's setting is of a kind that files hold; what a text or number means is checked where it is used."""
    if name in ("callbacks", "n_jobs"):
        return False
    if name == "solver" and isinstance(value, str):
        return split(value, name, SOLVERS) is not None
    if name == "class_weight" and isinstance(value, list):
        return all(isinstance(pair, list) and len(pair) == 2 and trust.real(pair[1]) for pair in value)
    if value == OBJECT:
        return name in PARTS
    return value is None or isinstance(value, (bool, str)) or trust.real(value)


def _is_history(reports: Any) -> bool:
    """Whether these are reports: numbers, or None, by name."""
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        return False
    named = all({"rows", "loss", "since"} <= set(report) and trust.count(report["rows"]) for report in reports)
    return named and all(value is None or trust.real(value) for report in reports for value in report.values())
