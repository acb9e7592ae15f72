"""A path of penalties learned in one pass over the rows, and an honest choice among them.

    for k = 1 .. K:   minimise  mean_i s_i l(<w, x_i> + b, y_i) + r_k(w)

All K models see the same rows in the same order, so the rows are read, checked and scaled once and the models are learned
side by side (``core/many.py``); each is bit-identical to a model that was fitted alone. Every row is scored by every model
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
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlinear.errors import DivergenceError, ModelFileError
from onlinear.files import model_file
from onlinear.learner.learner import Learner, growth_error
from onlinear.learner.parts import build_penalty
from onlinear.models.estimators import (
    KINDS,
    OnlineClassifier,
    Task,
    _fix_scales,
    _generator,
    _is_batch,
    _orders,
    _passes,
    _unchanged_on_error,
    in_turn,
    without_turn,
)
from onlinear.rows import Rows, Source, named_columns
from onlinear.solvers.core.many import Team, in_threads, threads_of


class Together:
    """Learners of one stream that differ in their penalty; they share the scales of its columns."""

    def __init__(self, learners: list[Learner], penalties: list[Any], threads: int) -> None:
        self._learners, self._penalties, self._threads = learners, penalties, threads
        for learner in learners[1:]:
            learner.scaler, learner.units = learners[0].scaler, learners[0].units
        self._team = Team([output for learner in learners for output in learner.outputs()], threads)

    def check(self, X: Any, y: np.ndarray, weights: np.ndarray) -> tuple[Source, np.ndarray, np.ndarray]:
        """Rows, targets and weights that all learners can learn; raises before anything is learned."""
        found = self._learners[0]._checked(X, y, weights)
        for learner in self._learners[1:]:
            learner.engine.check_rows(found[2])
        return found

    def learn(self, source: Source, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Learn checked rows; give the scores before each step, (K, outputs, n). Whoever reads a learner waits."""
        with ExitStack() as stack:
            for learner in self._learners:
                stack.enter_context(learner._lock)
                learner._refuse_if_diverged()
            return self._learn(source, y, weights)

    def _learn(self, source: Source, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        lead = self._learners[0]
        if source.size > lead.size:
            wrong = growth_error(source.size - 1, sum(learner.bytes_per_column for learner in self._learners))
            if wrong is not None:
                raise ValueError(f"X: {wrong}")
            self._team.grow(source.size)
            if lead.scaler is not None:
                lead.scaler.grow(source.size)
        scores = np.empty((len(self._learners), lead.n_outputs, source.n))
        for which, rows in source.blocks():
            block, largest, s = lead._weighed(rows, source.largest, weights[which])
            targets, parts = lead._stretches(y[which], weights[which])
            for part in parts:
                for learner in self._learners:
                    learner._multiply_steps(lead.units)
                piece = block._replace(indptr=block.indptr[part.start : part.stop + 1])
                found = scores[:, :, which][:, :, part]
                found[:] = self._learn_rows(piece, largest, targets[part], s[part], which.start + part.start)
                found += 0.0 if lead.units is None else lead.units.zero[:, None]
        return scores

    def _learn_rows(self, block: Rows, largest: float, y: np.ndarray, s: np.ndarray, first: int) -> np.ndarray:
        lead, before = self._learners[0], self._learners[0].t
        shape = len(self._learners), lead.n_outputs, len(s)
        scores, outputs = np.empty(shape), (shape[0] * shape[1], len(s))
        racing = any(learner.racing for learner in self._learners)
        means = np.empty(shape) if racing else None
        more = () if means is None else (means.reshape(outputs),)
        done, culprit = self._team.learn(block, largest, y, s, scores.reshape(outputs), *more)
        self._add_losses(scores, y, s, done)
        if means is not None:
            for learner, last, mean in zip(self._learners, scores, means, strict=True):
                if learner.racing:
                    learner._compare(last, mean, y[:done], s, before)
        if done < len(s):
            self._diverge(culprit // lead.n_outputs, first + done, before + done + 1)
        return scores

    def _add_losses(self, scores: np.ndarray, y: np.ndarray, s: np.ndarray, done: int) -> None:
        def add(k: int) -> None:
            self._learners[k]._add_losses(scores[k], y, s, done)

        in_threads(add, range(len(self._learners)), self._threads, scores.size)

    def _diverge(self, k: int, row: int, t: int) -> None:
        try:
            self._learners[k]._diverge(f"at row {row} of this call ", t)
        except DivergenceError as error:
            told = f"penalty {self._penalties[k]!r}: {error}"
            for learner in self._learners:
                learner._diverged = told
            raise DivergenceError(told) from None


def _offers(name: str) -> Any:
    """A method that the path has where its estimator has it."""
    return available_if(lambda path: getattr(path._models[0] if hasattr(path, "_models") else path.estimator, name))


class PenaltyPath(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """One estimator fitted with each of several penalties, all in one pass over the rows.

    ``estimator``: an ``OnlineClassifier`` or ``OnlineRegressor``, whose own penalty is not used; ``penalties``: text or part
    objects, e.g. ``[f"l1,l1={l1:g}" for l1 in np.geomspace(1e-6, 1e-3, 32)]``; ``grow``: rows may bring new columns from call
    to call (for streams), a column not seen so far has weight 0; ``n_jobs``: threads that share the models (None is 1, -1 all
    cores), which change nothing but the time.

    After ``fit`` or ``partial_fit``, one entry per penalty: ``coefs_`` (K, d), with several outputs (K, outputs, d);
    ``intercepts_``; ``losses_``, the progressive loss; ``errors_``, of classifiers the share of rows whose class was guessed
    wrong before they were learned; ``nonzeros_``, weights that are not 0. ``best_index_`` has the smallest progressive loss;
    ``best_penalty_`` is its penalty, ``best_estimator_`` its model; ``predict`` and the like are those of this model.
    With several passes only the first counts in ``losses_`` and ``errors_``: in the others no row is new.

    Each model equals ``clone(estimator).set_params(penalty=...)`` fitted alone, bit for bit (where rows are shuffled: with the
    same integer ``random_state``). Batch solvers, which do not learn row by row, are refused.
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
        """Learn the estimator's ``passes`` over the rows from the start, every model from the same rows in the same order."""
        with _unchanged_on_error(self), named_columns(X):
            fresh = self._new_models()
            lead = fresh[0]
            passes, shuffle, draw = _passes(lead.passes), lead._shuffle(), _generator(lead.random_state)
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, None, first=True, balance=True)
            if not np.any(weights):
                raise ValueError("every sample weight is zero; fit needs a row with a weight above zero.")
            group = self._begin(fresh, outputs, total=len(y) * passes)
            if lead._scale() == "standard":
                _fix_scales(lead.learner_, X, weights)
            source, y, weights = group.check(X, y, weights)
            self._models, self._group, self._tally = fresh, group, Tally.of(len(fresh))
            for model in fresh:
                model.n_iter_ = passes
        source = source.stored() if passes > 1 else source
        for done, order in enumerate(_orders(draw, source.n, shuffle, passes)):
            self._run(Task(source, y, weights, iter([order]), source.n), seen=done > 0)
        return self

    @in_turn
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PenaltyPath:
        """Learn the rows once, in order. A classifier's first call needs ``classes``; wrong input changes nothing."""
        first = not hasattr(self, "_models")
        fresh = self._new_models() if first else self._models
        lead = fresh[0]
        with _unchanged_on_error(self), _unchanged_on_error(lead), named_columns(X):
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, classes, first=first, balance=False)
            group = self._begin(fresh, outputs, total=None) if first else self._together()
            source, y, weights = group.check(X, y, weights)
            self._models, self._group = fresh, group
            self._tally = Tally.of(len(fresh)) if first else self._tally
        self._run(Task(source, y, weights, iter([None]), source.n), seen=False)
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
        X, y = lead._validated(X, y, first=first or self.grow)
        return X, *lead._targets(y, sample_weight, classes, first=first, balance=balance)

    def _begin(self, fresh: list[Any], outputs: int, total: int | None) -> Together:
        lead = fresh[0]
        lead.history_, lead.encoding_, lead.n_iter_ = [], None, 1
        if self.grow:
            lead.n_features_in_ = None
        known = {name: value for name, value in vars(lead).items() if name.endswith("_")}
        for penalty, model in zip(self.penalties, fresh, strict=True):
            vars(model).update(known)
            model.learner_ = model._new(outputs, total)
            if _is_batch(model.learner_):
                raise ValueError(f"solver {model.solver!r} needs all rows at once; a path learns {penalty!r} row by row.")
        return self._of(fresh)

    def _of(self, fitted: list[Any]) -> Together:
        return Together([model.learner_ for model in fitted], list(self.penalties), threads_of(self.n_jobs))

    def _together(self) -> Together:
        if self._group is None:
            self._group = self._of(self._models)
        return self._group

    def _run(self, task: Task, *, seen: bool) -> None:
        """Learn a pass; ``seen``: its rows are not new, so they say nothing of rows to come."""
        before, tally = self._sums(), self._tally
        for source, y, weights in task.blocks():
            scores = self._together().learn(source, y, weights)
            if not seen and isinstance(self.estimator, OnlineClassifier):
                own, true = _guessed(scores), _guessed(y.T[None])
                tally.wrong += np.count_nonzero((own != true) & (weights > 0.0), axis=1)
                tally.counted += int(np.count_nonzero(weights))
        if seen:
            with np.errstate(invalid="ignore"):  # of sums that have overflown
                tally.later_loss += self._sums() - before
            tally.later_rows += task.total
        if self.grow:
            for model in self._models:
                model.n_features_in_ = max(1, model.learner_.size)

    def _sums(self) -> np.ndarray:
        return np.array([model.learner_._losses.sum() for model in self._models])

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
        """A copy of the model with the smallest progressive loss, which goes on by itself."""
        return self.estimator_at(self.best_index_)

    def estimator_at(self, place: int) -> Any:
        """A copy of the model of penalty ``place``, which goes on by itself."""
        model = copy(self._fitted()[place])
        model.learner_ = deepcopy(model.learner_)
        return model

    def _fitted(self) -> list[Any]:
        check_is_fitted(self)
        return self._models

    # --- the best model ----------------------------------------------------------------------------------------------

    @property
    def _best(self) -> Any:
        return self._fitted()[self.best_index_]

    def predict(self, X: Any) -> np.ndarray:
        """The best model's predictions."""
        return self._best.predict(X)  # type: ignore[no-any-return]

    @_offers("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """The best model's scores."""
        return self._best.decision_function(X)  # type: ignore[no-any-return]

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """The best model's probabilities."""
        return self._best.predict_proba(X)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The best model's accuracy, or R2."""
        return self._best.score(X, y, sample_weight)  # type: ignore[no-any-return]

    def predict_all(self, X: Any) -> np.ndarray:
        """Every model's predictions, (K, n) or (K, n, outputs)."""
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
        """Write a model file from which ``PenaltyPath.load`` goes on exactly as this path would."""
        headers, arrays = [], self._tally.arrays()
        for k, model in enumerate(self._fitted()):
            header, own = model.freeze()
            headers.append(header)
            arrays |= {f"{k}/{name}": array for name, array in own.items() if k == 0 or name != "scales"}
        model_file.write(path, {"kind": "path", "grow": self.grow, "models": headers}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], n_jobs: int | None = None) -> PenaltyPath:
        """The path in a model file; of parts given as text. Raises FileNotFoundError, ModelFileError."""
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
    model._restore(header["estimator"], Learner.thaw(header, own))
    return model


def _guessed(scores: np.ndarray) -> np.ndarray:
    """The class that scores (.., outputs, n) stand for, as its place; of targets, the row's own class."""
    return np.argmax(scores, axis=-2) if scores.shape[-2] > 1 else (scores[..., 0, :] > 0.0).astype(np.intp)


def _squeezed(values: Any, dimensions: int) -> np.ndarray:
    """Without the axis of the outputs where there is one output."""
    array = np.asarray(values)
    return array[0] if array.ndim == dimensions and len(array) == 1 else array
