"""What a trained path of penalties tells: its models' weights and losses, and the predictions of the best one."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlinear.losses import is_joint
from onlinear.models.base import Classifier
from onlinear.models.online import Online
from onlinear.models.together import Tally


def _offers(name: str) -> Any:
    """A method that the path has where its estimator has it."""
    return available_if(lambda path: getattr(path.any_model(), name))


class FittedPath:
    """The models of a path, side by side; ``predict`` and the like are those of the best one."""

    estimator: Online
    _models: list[Online]
    _tally: Tally

    # --- the path ----------------------------------------------------------------------------------------------------

    @property
    def penalties_(self) -> list[Any]:
        """The penalties, in the order of all that follows."""
        check_is_fitted(self)
        return [model.penalty for model in self._models]

    @property
    def coefs_(self) -> np.ndarray:
        """The weights of every model, as its ``coef_``: (K, d), or (K, outputs, d)."""
        return np.stack([_drop_outputs(model.coef_, 2) for model in self._fitted()])

    @property
    def intercepts_(self) -> np.ndarray:
        """The intercepts: (K,), or (K, outputs)."""
        return np.stack([_drop_outputs(model.intercept_, 1) for model in self._fitted()])

    @property
    def losses_(self) -> np.ndarray:
        """The mean loss of rows scored before they were learned, by their weights, summed over outputs, (K,); nan before the
        first row that has a weight."""
        self._must_be_progressive()
        weight = self.t_ - self._tally.later_rows if self._tally.weight is None else self._tally.weight
        if not weight:
            return np.full(len(self._models), np.nan)
        sums = self._sums()
        with np.errstate(invalid="ignore"):
            return np.where(sums == np.inf, np.inf, (sums - self._tally.later_loss) / weight)

    @property
    def errors_(self) -> np.ndarray:
        """The share of rows, by their weights, whose class was guessed wrong before they were learned, (K,)."""
        check_is_fitted(self)
        if not isinstance(self.estimator, Classifier):
            raise AttributeError("errors_ counts wrong classes; a regressor's path has losses_.")
        self._must_be_progressive()
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
        return self._models[0].t_

    @property
    def dual_gaps_(self) -> np.ndarray:
        """The certified relative duality gaps after ``fit`` with ``tol``, (K,)."""
        return np.array([model.dual_gap_ for model in self._fitted()])

    @property
    def converged_(self) -> np.ndarray:
        """Which gaps are at most ``tol``, (K,)."""
        return np.array([model.converged_ for model in self._fitted()])

    @property
    def best_index_(self) -> int:
        """The place of the smallest loss of rows held out to find the passes, or else of the smallest progressive loss. Raises
        AttributeError after ``fit`` with ``tol``, which has none, and where the penalties take different losses."""
        self._must_be_progressive()
        if not self._has_best:
            raise AttributeError(
                "some of these penalties take softmax and others a loss for each class, which cannot be compared by size, so "
                "there is no best model: name the estimator's loss=, or choose by errors_, with estimator_at."
            )
        held_out = self._tally.held_out
        return int(np.argmin(self.losses_ if held_out is None else held_out))

    @property
    def best_penalty_(self) -> Any:
        """The penalty of the best model."""
        return self.penalties_[self.best_index_]

    @property
    def best_estimator_(self) -> Online:
        """A copy of the best model, which continues by itself."""
        return self.estimator_at(self.best_index_)

    def estimator_at(self, place: int) -> Online:
        """A copy of one model, which continues by itself.

        Parameters
        ----------
        place : int
            The place of its penalty in ``penalties_``; negative places count from the end.

        Returns
        -------
        OnlineClassifier or OnlineRegressor
            The model.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        IndexError
            For what is no place of a penalty.
        """
        models = self._fitted()
        if isinstance(place, bool) or not isinstance(place, (int, np.integer)) or not -len(models) <= place < len(models):
            raise IndexError(f"place must be an integer from 0 to {len(models) - 1}, got {place!r}.")
        model = copy(models[place])
        model.learner_ = deepcopy(model.learner_)
        return model

    def any_model(self) -> Online:
        """The first model, or the estimator before there is one: all have the same methods."""
        return self._models[0] if hasattr(self, "_models") else self.estimator

    def _must_be_progressive(self) -> None:
        """Raise AttributeError where no row was scored before it was learned."""
        if self._fitted()[0].learner_.engine.batch:
            raise AttributeError(
                "a path with tol= has no progressive losses and hence no best model: choose by other rows, with predict_all "
                "and estimator_at."
            )

    @property
    def _has_best(self) -> bool:
        """Whether the models' losses can be compared: those of held-out rows can; progressive ones cannot where some have
        softmax and others a loss for each class, which is larger."""
        return self._tally.held_out is not None or len({is_joint(model.learner_.loss) for model in self._models}) == 1

    def _fitted(self) -> list[Online]:
        check_is_fitted(self)
        return self._models

    # --- the best model ----------------------------------------------------------------------------------------------

    @property
    def _best(self) -> Online:
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
        AttributeError
            Where there is no best model (``best_index_``).
        ValueError, TypeError
            For wrong input.
        """
        return self._best.predict(X)

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
        AttributeError
            Where there is no best model (``best_index_``).
        ValueError, TypeError
            For wrong input.
        """
        return self._best.decision_function(X)

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
        AttributeError
            Where there is no best model (``best_index_``).
        ValueError, TypeError
            For wrong input.
        """
        return self._best.predict_proba(X)

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
        AttributeError
            Where there is no best model (``best_index_``).
        ValueError, TypeError
            For wrong input.
        """
        return self._best.score(X, y, sample_weight)

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
        return self._fitted()[0].classes_

    @property
    def n_features_in_(self) -> int | None:
        """The columns known."""
        return self._fitted()[0].n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, where a data frame gave them."""
        return self._fitted()[0].feature_names_in_

    def _sums(self) -> np.ndarray:
        return np.array([model.learner_.total_loss for model in self._models])


def _drop_outputs(values: Any, dimensions: int) -> np.ndarray:
    """Without the axis of the outputs where there is one output."""
    array = np.asarray(values)
    return array[0] if array.ndim == dimensions and len(array) == 1 else array
