"""The two tasks, classification and regression: settings, the learner, the meaning of its scores, and model files.

The scikit-learn estimators extend these models; the commands use them without scikit-learn.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from copy import copy
from inspect import signature
from typing import Any, Self, cast

import numpy as np

from onlinear.files import model_file, trust
from onlinear.learner import Learner
from onlinear.learner.arguments import count
from onlinear.learner.classes import best_class
from onlinear.learner.parts import ALL_LOSSES, LOSSES, build_loss, preset_of
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.learner.uncertainty import NONE, SCORES, TARGETS
from onlinear.learner.units import CLIPPED, RAW, RELATIVE, has_units
from onlinear.losses import Hinge, Logistic, SquaredHinge, is_joint, loss_labels
from onlinear.models.certifying import Certifying
from onlinear.models.defaults import Choice
from onlinear.models.predictor import Final
from onlinear.models.stored_model import OF_COLUMNS, as_lists, is_history, must, restore_classes, store_classes, store_params
from onlinear.models.strengths import with_intercept
from onlinear.rows.centring import KIND as CENTRED
from onlinear.softmax import Softmax, log_probabilities
from onlinear.solvers.core.certified import readings
from onlinear.solvers.packs.team import threads_of
from onlinear.streams import encoding
from onlinear.text.arguments import explain_arguments
from onlinear.text.form import check_flag, check_verbose
from onlinear.training.options import CLASSIFY, REGRESS

LOGISTIC, JOINED = "logistic", "softmax"  # the losses of a classifier that names none: of two classes, and of more
SMALL = 2.0**-27  # a sum of chances below which they have lost more than half of their digits

# Settings that a learner is made with: no later row changes them.
OF_LEARNER = (
    "loss",
    "penalty",
    "l1",
    "l2",
    "solver",
    "eta",
    "average",
    "scale",
    "fit_intercept",
    "clip",
    "forget",
    "uncertainty",
)


def refuse_no_slope(loss: Any) -> None:
    """Raise ValueError for a loss without a slope at the score 0, with which every row would be met: no weight would change."""
    if isinstance(loss, (Hinge, SquaredHinge)) and loss.margin == 0.0:
        raise ValueError(
            "loss: with margin=0 the score 0, with which training begins, has no loss, so no row would change a weight: "
            "write margin=1e-9, which is the perceptron of the hinge."
        )


class Model(Certifying, ABC):
    """What the two tasks share. ``settings`` are the arguments of ``__init__``; what was learned ends with an underscore."""

    kind: str  # in a model file
    passes: int | str
    shuffle: bool | str | None
    random_state: Any
    verbose: bool | int
    callbacks: Any
    n_jobs: int | None
    max_passes: int = 100  # these two, and those of tables: of pickles that are older than them
    warm_start: bool = False
    learner_: Any  # a Learner, or what predicts of one (Final)
    n_features_in_: int | None
    n_iter_: int
    _begun: dict[str, Any] | None = None  # the settings that the learner was made with; in an older pickle fewer, or None
    history_: list[dict[str, Any]]  # where the run over a stream stood whenever the row count had doubled
    encoding_: dict[str, Any] | None  # how a stream's features became columns
    interactions: Any = None
    ngrams: Any = None
    bins: Any = None
    text: Any = None
    missing: Any = None

    def _keep(self, arguments: Mapping[str, Any]) -> None:
        """Keep the settings, which are the arguments of a task's ``__init__`` beside ``self``."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    def settings(self) -> dict[str, Any]:
        """The settings, by name; a user's subclass has all of them, whatever its own ``__init__`` takes."""
        task = Classifier if self.task == CLASSIFY else Regressor
        return {name: getattr(self, name) for name in signature(task).parameters}

    def columns_asked(self) -> dict[str, Any]:
        """How the columns of tables are to be read, as ``streams.open`` takes it."""
        return {name: getattr(self, name) for name in OF_COLUMNS if getattr(self, name) is not None}

    def refuse_columns_asked(self, got: str, remedy: str) -> None:
        """Raise ValueError where a setting says how the columns of tables are read, and rows come in another way."""
        for name in self.columns_asked():
            raise ValueError(f"{name}= is for tables, and {got}: {remedy}.")

    # --- the learner -------------------------------------------------------------------------------------------------

    def new_learner(self, outputs: int, total: int | None) -> Learner:
        """A learner of these settings; ``total``: the rows that it will learn, where they are known."""
        self.check_flags()
        share = self.choice.intercept if self.fit_intercept else 0.0
        solver, average = with_intercept(self.chosen_solver(outputs), share), self.chosen_average(outputs)
        follows = self._follows(solver, average)
        return Learner(
            solver,
            self.chosen_loss(),
            self.chosen_penalty(),
            average,
            scale=self.chosen_scale(),
            fit_intercept=self.fit_intercept,
            n_features=self.n_features_in_,
            n_outputs=outputs,
            targets=RELATIVE if follows and self.task == REGRESS and has_units(self.built_loss()) else RAW,
            weights=RELATIVE if follows else RAW,
            clip=self.clips(follows),
            forget=self.forget,
            uncertainty=self._uncertain() if check_flag("uncertainty", self.uncertainty) else NONE,
            total=total,
            n_jobs=self.n_jobs,
        )

    def take(self, learner: Any) -> Any:
        """Have a learner of the settings of now, and the columns that they ask for; gives it."""
        self.learner_ = learner
        self._begun = {name: getattr(self, name) for name in (*OF_LEARNER, *OF_COLUMNS) if hasattr(self, name)}
        return learner

    def refuse_other_settings(self, asked: Model | None = None, own: Collection[str] = ()) -> None:
        """Raise ValueError where a setting of the learner or its columns is another one since: no later row would follow it.

        ``asked`` has the settings of now, this estimator itself if None; those that are its ``own`` may differ.
        """
        for name, value in (self._begun or {}).items():
            now = value if name in own else getattr(asked or self, name)
            if now is not value and (as_lists(now) != as_lists(value) if name in OF_COLUMNS else now != value):
                raise ValueError(
                    f"the model was begun with {name}={value!r}, which further rows continue, and {name} is now {now!r}: "
                    "set it back, or begin anew with fit."
                )

    def check_flags(self) -> None:
        """Raise for settings that no part of the learner takes, or that are of no use where weights begin at 0."""
        refuse_no_slope(self.built_loss())
        check_flag("warm_start", self.warm_start)
        check_verbose(self.verbose)
        threads_of(self.n_jobs)
        count("max_passes", self.max_passes)

    def _uncertain(self) -> str:
        """Of what ``uncertainty`` tells how far predictions may be off: of targets that are numbers, else of scores."""
        return SCORES if self.task == CLASSIFY else TARGETS

    def clips(self, follows: bool) -> bool:
        """Whether predictions are clipped to the targets seen; ``follows``: whether the steps may follow their units."""
        return False

    def fitted_learner(self) -> Any:
        """The learner; raises NotFittedError where there is none yet."""
        if not self.is_fitted:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit or partial_fit first.")
        return self.learner_

    # --- what a run over a stream tells ------------------------------------------------------------------------------

    @property
    def is_fitted(self) -> bool:
        """Whether it has a learner."""
        return hasattr(self, "learner_")

    def start_learner(self, outputs: int, *, features: int | None, total: int | None) -> Learner:
        """Make the learner, of so many columns, for so many rows in all; None where they are not known."""
        self.n_features_in_ = features
        return cast(Learner, self.take(self.new_learner(outputs, total)))

    def start_history(self) -> None:
        """Forget the reports of the run before."""
        self.history_ = []

    def add_report(self, report: dict[str, float | None]) -> None:
        """Add a report to the history."""
        self.history_.append(report)

    def describe_rows(self, features: int, encoding: dict[str, Any] | None, classes: np.ndarray | None) -> None:
        """Take what the rows have shown: columns, how features became columns, and the classes; None for numbers."""
        self.n_features_in_, self.encoding_ = features, encoding

    def end_passes(self, passes: int | None, best: Learner | None) -> None:
        """Say how many passes the learner has made, None where it was trained before; ``best``: the learner of an earlier pass,
        to be taken instead."""
        self.n_iter_ = self.n_iter_ if passes is None else passes
        if best is not None:
            self.take(best)
            self.history_ = [entry for entry in self.history_ if entry["rows"] <= best.t]

    def negative_target(self, outputs: int) -> float:
        """The target of rows of other classes than an output's own."""
        return -1.0

    @property
    def t_(self) -> int:
        """Rows learned, over all passes and calls."""
        return int(self.fitted_learner().t)

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], final: bool = False) -> None:
        """Write a model file. ``load`` gives a model that predicts the same, and continues exactly as this one would.

        Parameters
        ----------
        path : str or path-like
            The file. One that is there is replaced when the new one is whole.
        final : bool, default=False
            Whether to write only what predicts, in O(non-zeros); what is loaded then learns no more.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        OSError
            Where the file cannot be written.
        ValueError
            For classes that are neither text nor numbers.
        DivergenceError
            Where the state of the model is not finite.

        Notes
        -----
        Callbacks, and a ``random_state`` that is neither an integer nor None, are not kept.
        """
        final = check_flag("final", final)
        learner = self.fitted_learner()
        with learner.reading():
            header, arrays = self.freeze(final)
            if learner is self.learner_:
                model_file.write(path, header, arrays)
                return
        self.save(path, final)  # another thread began anew

    def freeze(self, final: bool = False) -> tuple[Header, Arrays]:
        """What a model file holds: a JSON-able header, and arrays that this model shares."""
        learner = Final.of(self.fitted_learner()) if final else self.fitted_learner()
        header, arrays = learner.freeze()
        return {"kind": self.kind, **header, "estimator": self.describe(learner)}, arrays

    def feature_names(self, columns: np.ndarray) -> list[str | None]:
        """The names of some columns, as a data frame or a table gave them; None where there is none."""
        learner = self.fitted_learner()
        if isinstance(learner, Final) and learner.names is not None:
            return [learner.names.get(int(j)) for j in columns]
        names = self.names_of_numbers()
        if names is None and self.encoding_ is not None:
            return encoding.names_of(self.encoding_, columns.tolist())
        return [None] * len(columns) if names is None else [names[int(j)] for j in columns]

    def names_of_numbers(self) -> list[str] | None:
        """The names of the columns, where the model learned a data frame of numbers."""
        names = vars(self).get("feature_names_in_")
        return None if names is None else list(names)

    def describe(self, learner: Learner | Final) -> Header:
        names = self.names_of_numbers()
        described: Header = {
            "params": store_params(self.settings() | (self._begun or {})),
            "features": max(1, learner.size),  # columns that single rows have just brought are not in ``n_features_in_`` yet
            "names": names,
            "passes": readings(self.learner_, self.n_iter_) if isinstance(learner, Final) else self.n_iter_,
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
    def restore(self, header: Header, learner: Learner | Final) -> None:
        """Take what ``describe`` gave; raises ModelFileError for what no model gives."""
        self.n_features_in_, self.n_iter_ = header["features"], header["passes"]
        self.history_, self.encoding_ = header["history"], header["encoding"]
        must(trust.count(self.n_features_in_) and self.n_features_in_ == max(1, learner.size), "features")
        must(trust.count(self.n_iter_, 1), "passes")
        must(is_history(self.history_), "history")
        if self.encoding_ is not None:
            encoding.must_be_known(self.encoding_)
        self.take(learner)
        names = header["names"]
        if names is None:
            return
        if isinstance(learner, Final):
            must(all(trust.count(column, 0, learner.size - 1) and isinstance(name, str) for column, name in names), "names")
            learner.names = dict(names)
        else:
            must(trust.texts(names) and len(names) == self.n_features_in_, "names")
            self.feature_names_in_ = np.array(names, dtype=object)


class Classifier(Model):
    """A model of classes, several joined by one loss or each against the rest."""

    choice = Choice(2.4, 2.4, 2.4, 1.0, CENTRED, 1.0, 1.0, 0.3)
    task = CLASSIFY
    kind = "classifier"
    class_weight: Any
    classes_: np.ndarray

    @explain_arguments
    def __init__(
        self,
        loss: Any = None,
        *,
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        passes: int | str = 1,
        shuffle: bool | str | None = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: bool | int = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
        l1: float | None = None,
        l2: float | None = None,
        eta: float | None = None,
        forget: float | None = None,
        uncertainty: bool = False,
        tol: float | None = None,
        max_passes: int = 100,
        warm_start: bool = False,
        interactions: Any = None,
        ngrams: Any = None,
        bins: Any = None,
        text: Any = None,
        missing: Any = None,
    ) -> None:
        self._keep(locals())

    def for_outputs(self, outputs: int) -> Self:
        """The model with its loss for so many outputs: a single one, which tells two classes apart, has no joint loss."""
        loss = self._loss_of(outputs)
        if loss is self.loss:
            return self
        alone = copy(self)
        alone.loss = loss
        return alone

    def _loss_of(self, outputs: int) -> Any:
        """The loss of so many outputs, where none is named one that joins classes if nothing else is asked for."""
        if self.loss is None and outputs > 1 and (self._is_free() or self._solves_joined()) and self._adapts():
            return JOINED
        loss = self.built_loss()
        if not (outputs == 1 and is_joint(loss)):
            return self.chosen_loss()
        alone = loss.of_two()
        return LOGISTIC if type(alone) is Logistic and alone.factor == 1.0 else alone

    def chosen_loss(self) -> Any:
        """The loss, as far as the number of outputs does not decide it."""
        return LOGISTIC if self.loss is None else self.loss

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The classes that scores say, (n,)."""
        return self.classes_[best_class(scores[:, None] if scores.ndim == 1 else scores, axis=1)]

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """What scores say of each class, (n, K)."""
        chances = self.learner_.loss.probability(scores)
        if chances.ndim == 1:
            return np.column_stack([1.0 - chances, chances])
        if is_joint(self.learner_.loss):
            return chances
        total = chances.sum(axis=1, keepdims=True)
        found = np.divide(chances, total, out=np.full_like(chances, 1.0 / chances.shape[1]), where=total > 0.0)
        far = total[:, 0] < SMALL
        if type(self.learner_.loss) is Logistic and far.any():
            found[far] = np.exp(self.log_probabilities_of(scores[far]))
        return found

    def log_probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """Logarithms of ``probabilities_of``, (n, K): of logistic scores and of softmax by these, as probabilities near 0 have
        too few digits."""
        loss = self.learner_.loss
        if type(loss) is Logistic and scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        if type(loss) in (Logistic, Softmax):
            return log_probabilities(scores if type(loss) is Softmax else -np.logaddexp(0.0, -scores), 1)
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities_of(scores))

    def chances_of_row(self, score: Any) -> list[float]:
        """``probabilities_of`` one row, whose score is a float or (K,)."""
        loss = self.learner_.loss
        if isinstance(score, float):
            chance = float(loss.probability(score))
            return [1.0 - chance, chance]
        chances = loss.probability(score[None])[0]
        if is_joint(loss):
            return chances.tolist()
        total = chances.sum()
        return (chances / total if total >= SMALL else self.probabilities_of(score[None])[0]).tolist()

    def new_learner(self, outputs: int, total: int | None) -> Learner:
        if loss_labels(self.built_loss()) not in ("signs", "real"):
            known = ", ".join(name for name, loss in ALL_LOSSES.items() if loss_labels(loss) in ("signs", "real"))
            raise ValueError(f"loss {self.loss!r} takes counts, not classes. Losses for classes: {known}.")
        alone = self.for_outputs(outputs)
        if alone is not self:
            return alone.new_learner(outputs, total)
        return super().new_learner(outputs, total)

    def negative_target(self, outputs: int) -> float:
        """The target of rows of other classes than an output's own."""
        return 0.0 if outputs > 1 and preset_of(self.solver).targets == "one-hot" else -1.0

    def describe_rows(self, features: int, encoding: dict[str, Any] | None, classes: np.ndarray | None) -> None:
        super().describe_rows(features, encoding, classes)
        assert classes is not None
        self.classes_ = classes

    def describe(self, learner: Learner | Final) -> Header:
        classes = store_classes(self.classes_)
        return super().describe(learner) | classes

    def restore(self, header: Header, learner: Learner | Final) -> None:
        super().restore(header, learner)
        self.classes_ = restore_classes(header, learner.n_outputs)
        if isinstance(self.class_weight, list):
            must(all(isinstance(key, (str, int, float)) for key, _ in self.class_weight), "class weights")
            self.class_weight = dict(self.class_weight)


class Regressor(Model):
    """A model of numbers."""

    choice = Choice(2.4, 2.4, 1.0, 0.2, CENTRED, 2.0, 8.0, 0.0)
    task = REGRESS
    kind = "regressor"
    columns_: int | None
    clip: bool | None = None  # of pickles that are older than it

    @explain_arguments
    def __init__(
        self,
        loss: Any = "squared",
        *,
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        passes: int | str = 1,
        shuffle: bool | str | None = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        clip: bool | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        callbacks: Any = None,
        n_jobs: int | None = None,
        l1: float | None = None,
        l2: float | None = None,
        eta: float | None = None,
        forget: float | None = None,
        uncertainty: bool = False,
        tol: float | None = None,
        max_passes: int = 100,
        warm_start: bool = False,
        interactions: Any = None,
        ngrams: Any = None,
        bins: Any = None,
        text: Any = None,
        missing: Any = None,
    ) -> None:
        self._keep(locals())

    def clips(self, follows: bool) -> bool:
        if self.clip is not None:
            if check_flag("clip", self.clip) and not follows:
                solver = self._default_solver() if self.solver is None else self.solver
                raise ValueError(
                    f"clip=True, and the steps of solver {solver!r} cannot follow the targets: leave it out, or "
                    "name another solver, such as 'comid'."
                )
            return bool(self.clip)
        ours = self.solver is None or getattr(preset_of(self.solver).solver, "clips", False)
        return follows and ours and not self.certifies() and type(build_loss(self.loss)) in CLIPPED

    def means_of(self, scores: np.ndarray) -> np.ndarray:
        """The predictions that scores stand for."""
        scores = scores[:, None] if self.columns_ is not None and scores.ndim == 1 else scores
        mean = getattr(self.learner_.loss, "mean", None)
        return scores if mean is None else mean(scores)

    def new_learner(self, outputs: int, total: int | None) -> Learner:
        if loss_labels(self.built_loss()) == "signs":
            known = ", ".join(name for name, loss in LOSSES.items() if loss_labels(loss) != "signs")
            raise ValueError(f"loss {self.loss!r} is for classes. Losses for numbers: {known}.")
        return super().new_learner(outputs, total)

    def describe_rows(self, features: int, encoding: dict[str, Any] | None, classes: np.ndarray | None) -> None:
        super().describe_rows(features, encoding, classes)
        self.columns_ = None

    def describe(self, learner: Learner | Final) -> Header:
        return super().describe(learner) | {"columns": self.columns_}

    def restore(self, header: Header, learner: Learner | Final) -> None:
        super().restore(header, learner)
        self.columns_ = header["columns"]
        must(self.columns_ is None or trust.count(self.columns_, 1), "columns")
        must((self.columns_ or 1) == learner.n_outputs, "columns")


def gives_probabilities(model: Any) -> bool:
    """Whether scores of the model say how likely each class is."""
    if not isinstance(model, Classifier):
        return False
    try:
        loss = model.learner_.loss if hasattr(model, "learner_") else model.built_loss()
    except (TypeError, ValueError):
        return False
    return hasattr(loss, "probability")
