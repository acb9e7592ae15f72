"""A path of penalties learned in one pass over the rows, and an honest choice among them.

    for k = 1 .. K:   minimise  mean_i s_i l(<w, x_i> + b, y_i) + r_k(w)

All K models see the same rows in the same order, so the rows are read, checked and scaled once and the models are learned
side by side (``solvers/many.py``); each is bit-identical to a model that was fitted alone. Every row is scored by every model
before it is learned, so the mean loss of these scores, the progressive loss, is that of rows the model has not seen: the
penalty with the smallest one needs no rows held out and no second pass.

It is a meta-estimator, like ``GridSearchCV``, and not a function like ``lasso_path``, because a stream has no end at which a
function could return: ``partial_fit`` continues, ``save`` and ``load`` resume.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlinear.errors import DivergenceError, ModelFileError
from onlinear.files import model_file
from onlinear.learner import Learner
from onlinear.learner.classes import best_class
from onlinear.learner.limits import growth_error
from onlinear.learner.parts import build_penalty
from onlinear.learner.side_by_side import SideBySide
from onlinear.models.arguments import check_passes, fix_scales, make_generator
from onlinear.models.estimators import KINDS, OnlineClassifier
from onlinear.models.feed import Feed, orders
from onlinear.models.turns import in_turn, unchanged_on_error, without_turn
from onlinear.rows import Source, named_columns
from onlinear.solvers.core.many import Team, threads_of


class Together(SideBySide):
    """Learners of one stream that differ in their penalty; they share the scales of its columns and the units of targets."""

    def __init__(self, learners: list[Learner], penalties: list[Any], threads: int) -> None:
        for learner in learners[1:]:
            learner.scaler, learner.units = learners[0].scaler, learners[0].units
        self._outputs_team = Team([output for learner in learners for output in learner.outputs()], threads)
        super().__init__(learners, self._outputs_team, threads)
        self._learners, self._penalties = learners, penalties

    def check(self, X: Any, y: np.ndarray, weights: np.ndarray) -> tuple[Source, np.ndarray, np.ndarray]:
        """Rows, targets and weights that all learners can learn; raises before anything is learned."""
        found = self._learners[0].check_input(X, y, weights)
        for learner in self._learners[1:]:
            learner.engine.check_rows(found[2])
        return found

    def learn(self, source: Source, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Learn checked rows; give the scores before each step, (K, outputs, n). Whoever reads a learner waits."""
        with ExitStack() as stack:
            for learner in self._learners:
                stack.enter_context(learner.lock)
                learner.refuse_if_diverged()
            self._make_room(source)
            scores = super().learn(source, y, weights)[0]
        return scores.reshape(len(self._learners), -1, source.n)

    def _make_room(self, source: Source) -> None:
        lead = self._learners[0]
        if source.size <= lead.size:
            return
        wrong = growth_error(source.size - 1, sum(learner.bytes_per_column for learner in self._learners))
        if wrong is not None:
            raise ValueError(f"X: {wrong}")
        self._outputs_team.grow(source.size)
        lead.grow_scales(source.size)

    def _diverge(self, k: int, where: str, t: int) -> NoReturn:
        try:
            super()._diverge(k, where, t)
        except DivergenceError as error:
            why = f"penalty {self._penalties[k]!r}: {error}"
        for learner in self._learners:
            learner.stopped = why
        raise DivergenceError(why)


def _offers(name: str) -> Any:
    """A method that the path has where its estimator has it."""
    return available_if(lambda path: getattr(path.any_model(), name))


class PenaltyPath(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """One estimator trained with each of several penalties, all in one pass over the rows.

    Each model equals ``clone(estimator).set_params(penalty=...)`` trained alone, bit for bit (where rows are shuffled: with the
    same integer ``random_state``). Every model scores every row before it is learned, so the penalty with the smallest mean of
    these losses needs no rows held out and no second pass.

    Parameters
    ----------
    estimator : OnlineClassifier or OnlineRegressor
        The settings of all models; its own penalty is not used. Batch solvers are refused.
    penalties : list of str or penalty objects
        The K penalties, such as ``[f"l1,l1={l1:g}" for l1 in np.geomspace(1e-6, 1e-3, 32)]``.
    grow : bool, default=False
        Whether rows may bring new columns from call to call. A column that no row has had so far has weight 0.
    n_jobs : int, default=None
        The threads that share the models: None is 1, -1 all cores. They change nothing but the time.

    Attributes
    ----------
    penalties_ : list of length K
        The penalties, in the order of all that follows.
    coefs_ : ndarray of shape (K, d) or (K, outputs, d)
        The weights of every model as its ``coef_``, in the columns' own units.
    intercepts_ : ndarray of shape (K,) or (K, outputs)
        The intercepts.
    losses_ : ndarray of shape (K,)
        The progressive loss: the mean loss of rows scored before they were learned, summed over outputs. Only the first pass
        counts; in later ones no row is new.
    errors_ : ndarray of shape (K,)
        Of classifiers: the share of rows of the first pass whose class was guessed wrong before they were learned.
    nonzeros_ : ndarray of shape (K,)
        Weights that are not 0.
    best_index_ : int
        The place of the smallest progressive loss.
    best_penalty_ : str or penalty object
        The penalty with the smallest progressive loss.
    best_estimator_ : OnlineClassifier or OnlineRegressor
        A copy of its model, which continues by itself.
    classes_ : ndarray
        The classes, of a classifier.
    n_features_in_ : int
        The columns known.
    t_ : int
        Rows learned, over all passes and calls.

    See Also
    --------
    OnlineClassifier, OnlineRegressor : One penalty.

    Notes
    -----
    ``predict``, ``score`` and the like are those of the best model.

    Examples
    --------
    >>> from onlinear import OnlineClassifier, PenaltyPath
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = PenaltyPath(OnlineClassifier(random_state=0), ["l1=1e-4", "l1=1e-2", "l1=1"]).fit(X, y)
    >>> path.coefs_.shape
    (3, 30)
    >>> int(path.nonzeros_[2])
    0
    >>> path.best_penalty_ != "l1=1"
    True
    """

    _models: list[Any]
    _group: Together | None
    _tally: Tally

    def __init__(self, estimator: Any, penalties: Any, *, grow: bool = False, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.penalties = penalties
        self.grow = grow
        self.n_jobs = n_jobs

    # --- learning ----------------------------------------------------------------------------------------------------

    @in_turn
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PenaltyPath:
        """Train every model from the start, in the estimator's ``passes`` over the same rows in the same order.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.
        y : array-like of shape (n,) or (n, outputs)
            The classes or targets.
        sample_weight : array-like of shape (n,), default=None
            What multiplies the loss of each row, at least 0; None is 1.

        Returns
        -------
        PenaltyPath
            This path.

        Raises
        ------
        ValueError, TypeError
            For wrong input, before the first row is learned: the path stays as it was.
        DivergenceError
            Where the state of a model stops being finite; it names the penalty.
        """
        with unchanged_on_error(self), named_columns(X):
            fresh = self._new_models()
            lead = fresh[0]
            passes, shuffle, draw = check_passes(lead.passes), lead.chosen_shuffle(), make_generator(lead.random_state)
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, None, first=True, balance=True)
            if not np.any(weights):
                raise ValueError("every sample weight is zero; fit needs a row with a weight above zero.")
            group = self._begin(fresh, outputs, total=len(y) * passes)
            if lead.chosen_scale() == "standard":
                fix_scales(lead.learner_, X, weights)
            source, y, weights = group.check(X, y, weights)
            self._models, self._group, self._tally = fresh, group, Tally.of(len(fresh))
            for model in fresh:
                model.n_iter_ = passes
        source = source.stored() if passes > 1 else source
        for done, order in enumerate(orders(draw, source.n, shuffle, passes)):
            self._run(Feed(source, y, weights, iter([order]), source.n), seen=done > 0)
        return self

    @in_turn
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PenaltyPath:
        """Train every model on the rows once, in the order given; continue with what was trained before.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.
        y : array-like of shape (n,) or (n, outputs)
            The classes or targets.
        classes : array-like, default=None
            Of a classifier: all classes there will be. The first call needs them.
        sample_weight : array-like of shape (n,), default=None
            What multiplies the loss of each row, at least 0; None is 1.

        Returns
        -------
        PenaltyPath
            This path.

        Raises
        ------
        ValueError, TypeError
            For wrong input, before the first row is learned: the path stays as it was.
        DivergenceError
            Where the state of a model stops being finite; it names the penalty.
        """
        first = not hasattr(self, "_models")
        fresh = self._new_models() if first else self._models
        lead = fresh[0]
        with unchanged_on_error(self), unchanged_on_error(lead), named_columns(X):
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, classes, first=first, balance=False)
            group = self._begin(fresh, outputs, total=None) if first else self._together()
            source, y, weights = group.check(X, y, weights)
            self._models, self._group = fresh, group
            self._tally = Tally.of(len(fresh)) if first else self._tally
        self._run(Feed(source, y, weights, iter([None]), source.n), seen=False)
        return self

    def _new_models(self) -> list[Any]:
        if not isinstance(self.estimator, tuple(KINDS.values())):
            raise TypeError(f"estimator must be an OnlineClassifier or OnlineRegressor, got {self.estimator!r}.")
        threads_of(self.n_jobs)
        if isinstance(self.penalties, str) or not len(self.penalties):
            raise ValueError(f"penalties must be a list of at least one penalty, got {self.penalties!r}.")
        for place, penalty in enumerate(self.penalties):
            try:
                build_penalty(penalty)
            except (ValueError, TypeError) as error:
                raise type(error)(f"penalties[{place}]: {error}") from None
        return [clone(self.estimator).set_params(penalty=penalty) for penalty in self.penalties]

    def _rows_for(
        self, lead: Any, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[Any, np.ndarray, np.ndarray, int]:
        """Rows as the estimator checks them: X, y (n, outputs), weights, outputs."""
        X, y = lead.validate_rows(X, y, first=first or self.grow)
        return X, *lead.make_targets(y, sample_weight, classes, first=first, balance=balance)

    def _begin(self, fresh: list[Any], outputs: int, total: int | None) -> Together:
        lead = fresh[0]
        lead.history_, lead.encoding_, lead.n_iter_ = [], None, 1
        if self.grow:
            lead.n_features_in_ = None
        known = {name: value for name, value in vars(lead).items() if name.endswith("_")}
        for penalty, model in zip(self.penalties, fresh, strict=True):
            vars(model).update(known)
            model.learner_ = model.new_learner(outputs, total)
            if model.learner_.engine.batch:
                raise ValueError(f"solver {model.solver!r} needs all rows at once; a path learns {penalty!r} row by row.")
        return self._of(fresh)

    def _of(self, fitted: list[Any]) -> Together:
        return Together([model.learner_ for model in fitted], list(self.penalties), threads_of(self.n_jobs))

    def _together(self) -> Together:
        if self._group is None:
            self._group = self._of(self._models)
        return self._group

    def _run(self, feed: Feed, *, seen: bool) -> None:
        """Learn a pass; ``seen``: its rows are not new, so they say nothing of rows to come."""
        before, tally = self._sums(), self._tally
        for source, y, weights in feed.blocks():
            scores = self._together().learn(source, y, weights)
            if not seen and isinstance(self.estimator, OnlineClassifier):
                own, true = best_class(scores, axis=1), best_class(y, axis=1)
                tally.wrong += np.count_nonzero((own != true) & (weights > 0.0), axis=1)
                tally.counted += int(np.count_nonzero(weights))
        if seen:
            with np.errstate(invalid="ignore"):  # of sums that have overflown
                tally.later_loss += self._sums() - before
            tally.later_rows += feed.total
        if self.grow:
            for model in self._models:
                model.n_features_in_ = max(1, model.learner_.size)

    def _sums(self) -> np.ndarray:
        return np.array([model.learner_.total_loss for model in self._models])

    # --- the path ----------------------------------------------------------------------------------------------------

    @property
    def penalties_(self) -> list[Any]:
        """The penalties, in the order of all that follows."""
        check_is_fitted(self)
        return [model.penalty for model in self._models]

    @property
    def coefs_(self) -> np.ndarray:
        """The weights of every model, as its ``coef_``: (K, d), or (K, outputs, d)."""
        return np.stack([_squeezed(model.coef_, 2) for model in self._fitted()])

    @property
    def intercepts_(self) -> np.ndarray:
        """The intercepts: (K,), or (K, outputs)."""
        return np.stack([_squeezed(model.intercept_, 1) for model in self._fitted()])

    @property
    def losses_(self) -> np.ndarray:
        """The mean loss of rows scored before they were learned, summed over outputs, (K,); nan before the first row."""
        rows = self.t_ - self._tally.later_rows
        if not rows:
            return np.full(len(self._models), np.nan)
        sums = self._sums()
        with np.errstate(invalid="ignore"):
            return np.where(sums == np.inf, np.inf, (sums - self._tally.later_loss) / rows)

    @property
    def errors_(self) -> np.ndarray:
        """The share of rows of a weight above 0 whose class was guessed wrong before they were learned, (K,)."""
        check_is_fitted(self)
        if not isinstance(self.estimator, OnlineClassifier):
            raise AttributeError("errors_ counts wrong classes; a regressor's path has losses_.")
        counted = self._tally.counted
        return self._tally.wrong / counted if counted else np.full(len(self._models), np.nan)

    @property
    def nonzeros_(self) -> np.ndarray:
        """How many weights of ``coefs_`` are not 0, (K,)."""
        return np.array([np.count_nonzero(model.coef_) for model in self._fitted()])

    @property
    def t_(self) -> int:
        """Rows learned, over all passes and calls."""
        check_is_fitted(self)
        return self._models[0].t_  # type: ignore[no-any-return]

    @property
    def best_index_(self) -> int:
        """The place of the smallest progressive loss."""
        return int(np.argmin(self.losses_))

    @property
    def best_penalty_(self) -> Any:
        """The penalty with the smallest progressive loss."""
        return self.penalties_[self.best_index_]

    @property
    def best_estimator_(self) -> Any:
        """A copy of the model with the smallest progressive loss, which continues by itself."""
        return self.estimator_at(self.best_index_)

    def estimator_at(self, place: int) -> Any:
        """A copy of one model, which continues by itself.

        Parameters
        ----------
        place : int
            The place of its penalty.

        Returns
        -------
        OnlineClassifier or OnlineRegressor
            The model.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        """
        model = copy(self._fitted()[place])
        model.learner_ = deepcopy(model.learner_)
        return model

    def any_model(self) -> Any:
        """The first model, or the estimator before there is one: all have the same methods."""
        return self._models[0] if hasattr(self, "_models") else self.estimator

    def _fitted(self) -> list[Any]:
        check_is_fitted(self)
        return self._models

    # --- the best model ----------------------------------------------------------------------------------------------

    @property
    def _best(self) -> Any:
        return self._fitted()[self.best_index_]

    def predict(self, X: Any) -> np.ndarray:
        """The best model's predictions.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.

        Returns
        -------
        ndarray of shape (n,) or (n, outputs)
            Classes, or numbers in the units of the targets.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        """
        return self._best.predict(X)  # type: ignore[no-any-return]

    @_offers("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """The best model's scores.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.

        Returns
        -------
        ndarray of shape (n,) or (n, outputs)
            Scores <w, x> + b.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        """
        return self._best.decision_function(X)  # type: ignore[no-any-return]

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """The best model's probabilities.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.

        Returns
        -------
        ndarray of shape (n, classes)
            Each row sums to 1.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        """
        return self._best.predict_proba(X)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The best model's accuracy, or R2.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.
        y : array-like of shape (n,) or (n, outputs)
            The classes or targets.
        sample_weight : array-like of shape (n,), default=None
            The weight of each row; None is 1.

        Returns
        -------
        float
            At most 1.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        """
        return self._best.score(X, y, sample_weight)  # type: ignore[no-any-return]

    def predict_all(self, X: Any) -> np.ndarray:
        """Every model's predictions.

        Parameters
        ----------
        X : array-like, sparse container or data frame of shape (n, d)
            The rows, in their own units.

        Returns
        -------
        ndarray of shape (K, n) or (K, n, outputs)
            The predictions, in the order of ``penalties_``.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        """
        return np.stack([model.predict(X) for model in self._fitted()])

    @property
    def classes_(self) -> np.ndarray:
        """The classes, of a classifier."""
        return self._fitted()[0].classes_  # type: ignore[no-any-return]

    @property
    def n_features_in_(self) -> int:
        """The columns known."""
        return self._fitted()[0].n_features_in_  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_models")

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            own.estimator_type, own.classifier_tags, own.regressor_tags,
        )  # fmt: skip
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags

    # --- files -------------------------------------------------------------------------------------------------------

    @in_turn
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file. ``PenaltyPath.load`` gives a path that continues exactly as this one would.

        Parameters
        ----------
        path : str or path-like
            The file. One that is there is replaced when the new one is whole.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        OSError
            Where the file cannot be written.
        """
        headers, arrays = [], self._tally.arrays()
        for k, model in enumerate(self._fitted()):
            header, own = model.freeze()
            headers.append(header)
            arrays |= {f"{k}/{name}": array for name, array in own.items() if k == 0 or name != "scales"}
        model_file.write(path, {"kind": "path", "grow": self.grow, "models": headers}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], n_jobs: int | None = None) -> PenaltyPath:
        """The path in a model file, of penalties given as text.

        Parameters
        ----------
        path : str or path-like
            The file, as ``save`` wrote it.
        n_jobs : int, default=None
            The threads that share the models.

        Returns
        -------
        PenaltyPath
            A path that continues exactly as the one that was saved.

        Raises
        ------
        FileNotFoundError
            Where there is no such file.
        ModelFileError
            For a file that holds no path.
        """
        header, arrays = model_file.read(path)
        name = os.fspath(path)
        if header.get("kind") != "path":
            raise ModelFileError(f"{name}: holds a model of the kind {header.get('kind')!r}, not a path of penalties.")
        try:
            fitted = [_model(k, own, arrays) for k, own in enumerate(header["models"])]
            loaded = cls(clone(fitted[0]), [model.penalty for model in fitted], grow=header["grow"], n_jobs=n_jobs)
            loaded._models, loaded._group, loaded._tally = fitted, None, Tally.read(arrays, len(fitted))
        except KeyError as error:
            raise ModelFileError(f"{name}: the model file's header lacks {error}.") from None
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        return without_turn(super().__getstate__()) | ({"_group": None} if hasattr(self, "_models") else {})


@dataclass
class Tally:
    """What a path counts: rows guessed wrong and rows counted, losses and rows of passes that saw them again."""

    wrong: np.ndarray
    later_loss: np.ndarray
    counted: int = 0
    later_rows: int = 0

    @classmethod
    def of(cls, penalties: int) -> Tally:
        return cls(np.zeros(penalties), np.zeros(penalties))

    def arrays(self) -> dict[str, np.ndarray]:
        counts = np.array([self.counted, self.later_rows], dtype=np.float64)
        return {"wrong": self.wrong, "later loss": self.later_loss, "counts": counts}

    @classmethod
    def read(cls, arrays: dict[str, np.ndarray], penalties: int) -> Tally:
        for name, size in (("wrong", penalties), ("later loss", penalties), ("counts", 2)):
            if arrays[name].shape != (size,) or arrays[name].dtype != np.float64:
                raise ModelFileError(f"the model file's array {name!r} must be {size} numbers.")
        return cls(arrays["wrong"].copy(), arrays["later loss"].copy(), *map(int, arrays["counts"]))


def _model(k: int, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    own = {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{k}/")}
    if "0/scales" in arrays:
        own["scales"] = arrays["0/scales"]
    model = KINDS[header["kind"]](**header["estimator"]["params"])
    model.restore(header["estimator"], Learner.thaw(header, own))
    return model


def _squeezed(values: Any, dimensions: int) -> np.ndarray:
    """Without the axis of the outputs where there is one output."""
    array = np.asarray(values)
    return array[0] if array.ndim == dimensions and len(array) == 1 else array
