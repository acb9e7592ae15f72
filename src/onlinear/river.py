"""The estimators as models of River: ``learn_one``, ``predict_one``, ``predict_proba_one`` on rows as dicts.

    from river import evaluate, metrics, preprocessing
    model = preprocessing.StandardScaler() | onlinear.river.Classifier()

They differ from the estimators in what River asks of its models: they predict before the first row, learn classes as these
appear, and can be cloned with other settings. Importing this module imports River, which the package does not require.
"""

from __future__ import annotations

import pickle
from typing import Any

from river import base

from onlinear.models.classifier import OnlineClassifier
from onlinear.models.regressor import OnlineRegressor
from onlinear.models.turns import TURN, lock_of

__all__ = ["Classifier", "Regressor"]
MOST_WAITING = 10_000  # rows that are kept until a second label appears


def named_by_text(x: dict[Any, Any]) -> dict[Any, Any]:
    """The row with names that are text. River names by anything: n-grams are tuples, the columns of an array numbers."""
    for name in x:
        if type(name) is not str:
            break
    else:
        return x
    found: dict[str, Any] = {}
    for name, value in x.items():
        if str(name) in found:
            raise ValueError(f"x has two names whose text is {str(name)!r}; names are told apart by their text.")
        found[str(name)] = value
    return found


class _Sized:
    """A model that River asks for its size in memory."""

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of the model as a pickle: from its compiled code River's own walk over objects would reach all of Numba."""
        return len(pickle.dumps(self))


class Classifier(_Sized, base.Classifier):
    """A linear classifier of two classes, or of the several that are named.

    Parameters
    ----------
    loss : str or loss object, default="logistic"
        The loss; it must give probabilities for ``predict_proba_one``.
    penalty : str or penalty object, default="none"
        The penalty, such as ``"l1=1e-5"``.
    solver : str or solver object, default=None
        The method; None is the estimators' own. The steps of ``"ftrl"`` are explicit: with many dense columns, as of random
        features, its probabilities can be worse than a constant's.
    average : str, default=None
        The average of the iterates that predicts; None is the estimators' own.
    scale : "none", "centred", "tempered", "dense", "rms" or "max-abs", default=None
        By what each column is divided, as in the estimators.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    classes : list, default=None
        All classes there will be. None: False and True, or the first two labels that rows have.

    Attributes
    ----------
    model : OnlineClassifier
        The estimator, which can be saved.

    Examples
    --------
    >>> from onlinear.river import Classifier
    >>> model = Classifier()
    >>> for row, y in [({"price": 2.5, "site": "a"}, True), ({"price": 0.5, "site": "b"}, False)] * 20:
    ...     model.learn_one(row, y)
    >>> model.predict_one({"price": 2.0, "site": "a"})
    True
    """

    def __init__(
        self,
        loss: Any = "logistic",
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        classes: list[Any] | None = None,
    ) -> None:
        self.loss, self.penalty, self.solver, self.average = loss, penalty, solver, average
        self.scale, self.fit_intercept, self.classes = scale, fit_intercept, classes
        self.model = OnlineClassifier(
            loss, penalty=penalty, solver=solver, average=average, scale=scale, fit_intercept=fit_intercept
        )
        self._waiting: list[tuple[dict[str, Any], Any, float]] = []  # rows of the first label, until there is a second

    @property
    def _multiclass(self) -> bool:
        return self.classes is not None and len(self.classes) > 2

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:  # type: ignore[override]
        """Train on one row.

        Parameters
        ----------
        x : dict of name to number, text, bool or None
            The values by name. Names that are no text are told apart by their text.
        y : class
            The class.
        w : float, default=1.0
            What multiplies the loss of the row.

        Raises
        ------
        ValueError
            For a third class that was not named, and for two names of the same text.
        """
        x = named_by_text(x)
        if not self.model.is_fitted:
            with lock_of(self.model, TURN):
                if not self.model.is_fitted:
                    self._learn_first(x, y, w)
                    return
        self._learn_known(x, y, w)

    def _learn_first(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """Train on one row where none has been trained on; keep it while its class is the only one."""
        label = bool(y) if type(y).__name__ in ("bool", "bool_") else y
        if self.classes is not None or isinstance(label, bool):
            self.model.learn_one(x, y, w, [False, True] if self.classes is None else self.classes)
            return
        self._waiting.append((dict(x), label, w))
        if len(self._waiting) > MOST_WAITING:
            raise ValueError(f"the first {MOST_WAITING:,} rows have one class, {label!r}: name all with classes=[...].")
        labels = sorted({label for _, label, _ in self._waiting})
        if len(labels) == 2:
            for row, known, weight in self._waiting:
                self.model.learn_one(row, known, weight, labels)
            self._waiting = []

    def _learn_known(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """Train on one row; the error of a class that is not known says how it can be."""
        try:
            self.model.learn_one(x, y, w)
        except ValueError as error:
            if y in self.model.classes_.tolist():
                raise
            raise ValueError(
                f"{error} Name all with classes=[...], or take one model for each: river.multiclass.OneVsRestClassifier."
            ) from None

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The class of one row; before the first row False, or the only class so far."""
        if self.model.is_fitted:
            return self.model.predict_one(named_by_text(x))
        waiting = self._waiting
        return waiting[0][1] if waiting else False if self.classes is None else self.classes[0]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each class; before the first row all are equal."""
        if self.model.is_fitted:
            return self.model.predict_proba_one(named_by_text(x))
        waiting = self._waiting
        if waiting:
            return {waiting[0][1]: 1.0}
        classes = [False, True] if self.classes is None else self.classes
        return dict.fromkeys(classes, 1.0 / len(classes))


class Regressor(_Sized, base.Regressor):
    """A linear regression.

    Parameters
    ----------
    loss : str or loss object, default="squared"
        The loss.
    penalty : str or penalty object, default="none"
        The penalty, such as ``"l1=1e-5"``.
    solver : str or solver object, default=None
        The method; None is the estimators' own, whose steps follow the targets. Those of ``"ftrl"`` have a size of their own,
        and hardly reach targets far from 1.
    average : str, default="none"
        The average of the iterates that predicts; None is the estimators' own.
    scale : "none", "centred", "tempered", "dense", "rms" or "max-abs", default=None
        By what each column is divided, as in the estimators.
    fit_intercept : bool, default=True
        Whether there is an intercept.

    Attributes
    ----------
    model : OnlineRegressor
        The estimator, which can be saved.
    """

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "none",
        solver: Any = None,
        average: Any = "none",
        scale: str | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.loss, self.penalty, self.solver, self.average = loss, penalty, solver, average
        self.scale, self.fit_intercept = scale, fit_intercept
        self.model = OnlineRegressor(
            loss, penalty=penalty, solver=solver, average=average, scale=scale, fit_intercept=fit_intercept
        )

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:  # type: ignore[override]
        """Train on one row.

        Parameters
        ----------
        x : dict of name to number, text, bool or None
            The values by name. Names that are no text are told apart by their text.
        y : float
            The target.
        w : float, default=1.0
            What multiplies the loss of the row.
        """
        self.model.learn_one(named_by_text(x), y, w)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction of one row; 0 before the first row."""
        return self.model.predict_one(named_by_text(x)) if self.model.is_fitted else 0.0
