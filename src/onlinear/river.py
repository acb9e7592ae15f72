"""The estimators as models of River: ``learn_one``, ``predict_one``, ``predict_proba_one`` on rows as dicts, ``learn_many``,
``predict_many``, ``predict_proba_many`` on pandas data frames.

    from river import evaluate, metrics, preprocessing
    model = preprocessing.StandardScaler() | onlinear.river.Classifier()

They differ from the estimators in what River asks of its models: they predict before the first row, learn classes as these
appear, and can be cloned with other settings. Importing this module imports River, which the package does not require.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from onlinear.models.base import gives_probabilities
from onlinear.models.class_labels import at_least_two, named_classes
from onlinear.models.classifier import OnlineClassifier
from onlinear.models.regressor import OnlineRegressor
from onlinear.models.stored_model import plain
from onlinear.models.targets import column_of_targets
from onlinear.models.turns import TURN, lock_of, unchanged_on_error
from onlinear.rows import checks
from onlinear.text.extras import needed_by
from onlinear.training.options import REGRESS

with needed_by("onlinear.river", "'onlinear[river]'"):
    from river import base

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Classifier", "Regressor"]
MOST_WAITING = 10_000  # rows that are kept until a second label appears
OF_BOTH = ("loss", "penalty", "solver", "average", "scale", "fit_intercept", "forget", "eta")  # settings of the estimators too


def _as_set(classes: Any) -> set[Any] | None:
    """Classes as they are named, in no order."""
    return None if classes is None else set(named_classes(classes, None).tolist())


def named_by_text(x: dict[Any, Any]) -> dict[Any, Any]:
    """The row with names that are text. River names by anything: n-grams are tuples, the columns of an array numbers.

    Raises TypeError for what has no names, and ValueError for names that are not told apart.
    """
    if not hasattr(x, "items"):
        raise TypeError(f"x must be a dict from names to values, got {type(x).__name__}.")
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


def rows_of_frame(X: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rows of a data frame as ``learn_one`` takes them. Zeros of sparse columns are no entries, as in the rows of River's
    extractors.

    Raises TypeError for what is no pandas data frame, and ValueError for names that are not told apart.
    """
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"X must be a pandas DataFrame, got {type(X).__name__}.")
    if not X.columns.is_unique:
        raise ValueError(f"X has two columns {X.columns[X.columns.duplicated()][0]!r}; names must be told apart.")
    names = list(named_by_text(dict.fromkeys(X.columns)))
    columns = [column for _, column in X.items()]
    if names and not any(isinstance(column.dtype, pd.SparseDtype) for column in columns):
        return [dict(zip(names, row, strict=True)) for row in zip(*(column.tolist() for column in columns), strict=True)]
    rows: list[dict[Any, Any]] = [{} for _ in range(len(X))]
    for name, column in zip(names, columns, strict=True):
        for place, value in entries_of(column):
            rows[place][name] = value
    return rows


def entries_of(column: pd.Series) -> Iterable[tuple[int, Any]]:
    """The places and values of a column; of a sparse one those that are not 0."""
    import pandas as pd

    sparse, held = isinstance(column.dtype, pd.SparseDtype), column.array
    pairs: Iterable[tuple[int, Any]]
    if sparse and column.dtype.fill_value == 0:
        pairs = zip(held.sp_index.to_int_index().indices.tolist(), held.sp_values.tolist(), strict=True)
    else:
        pairs = enumerate(column.tolist())
    return ((place, value) for place, value in pairs if not sparse or value != 0)


class _RiverModel:
    """What River asks of both models: their size, and batches of rows, each of which is learned and predicted as by itself."""

    model: Any
    learn_one: Any
    predict_one: Any
    _trial: Any = None  # of a classifier: what learns the rows that wait, so that a wrong one is refused as it comes
    _y_name: Any = None  # what predictions are called: as the targets that came last

    def __setattr__(self, name: str, value: Any) -> None:
        """A setting of the model too, which refuses further rows where it was begun with another."""
        super().__setattr__(name, value)
        if name in OF_BOTH:
            for model in (vars(self).get("model"), self._trial):
                if model is not None:
                    model.set_params(**{name: value})

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings of the estimator."""
        return {name: getattr(self, name) for name in OF_BOTH}

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of the model as a pickle: from its compiled code River's own walk over objects would reach all of Numba."""
        return len(pickle.dumps(self))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Train on the rows of a data frame, one after the other.

        The model is that of ``learn_one`` of each row, bit for bit. Where a row is wrong none is learned, but for those before
        it that wait for a second class. Rows that are dicts already are learned faster by ``learn_one``.

        Parameters
        ----------
        X : pandas.DataFrame
            A column for each name. Further calls may have other columns.
        y : pandas.Series
            The targets, by their places.
        w : float or pandas.Series, default=1.0
            What multiplies the loss of each row.

        Raises
        ------
        TypeError
            For an X that is no pandas DataFrame.
        ValueError
            For another number of targets or weights, and for rows that ``learn_one`` refuses.
        """
        rows = rows_of_frame(X)
        targets = column_of_targets(X, y, len(rows), numbers=self.model.task == REGRESS).tolist()
        weights = checks.weights(w, len(rows), "w").tolist()
        if rows and (self.model.is_fitted or self._has_begun(self._learn_first_rows, rows, targets, weights)):
            self._learn_known_rows(rows, targets, weights)
        self._y_name = getattr(y, "name", None)

    def _has_begun(self, learn_first: Callable[..., None], *given: Any) -> bool:
        """Whether there was a model already; else these are the first rows, and are learned as such. Other threads wait."""
        with lock_of(self.model, TURN):
            if self.model.is_fitted:
                return True
            learn_first(*given)
            return False

    def _learn_known_rows(self, rows: list[Any], y: list[Any], w: list[float]) -> None:
        """Train on rows where there is a model."""
        self.model.partial_fit(rows, y, sample_weight=w)

    def _learn_first_rows(self, rows: list[Any], y: list[Any], w: list[float]) -> None:
        """Train on rows where none has been trained on."""
        self._begin(lambda: self._learn_known_rows(rows, y, w), y[0], 1.0)

    def _begin(self, learn: Callable[[], None], *given: Any) -> None:
        """Have a model, and learn rows; where one is wrong there is no model still."""
        with unchanged_on_error(self.model):
            self.model.begin_rows({}, *given)
            learn()

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The prediction of each row of a data frame, as ``predict_one`` gives it, under the index of X."""
        import pandas as pd

        return pd.Series([self.predict_one(row) for row in rows_of_frame(X)], index=X.index, name=self._y_name)


class Classifier(_RiverModel, base.MiniBatchClassifier):
    """A linear classifier of two classes, or of the several that are named.

    Parameters
    ----------
    loss : str or loss object, default=None
        The loss; it must give probabilities for ``predict_proba_one``. None is the estimators' own: ``"logistic"``, and of more
        than two classes ``"softmax"``.
    penalty : str or penalty object, default="none"
        The penalty, such as ``"l1=1e-5"``.
    solver : str or solver object, default=None
        The method; None is the estimators' own. The steps of ``"ftrl"`` are explicit: with many dense columns, as of random
        features, its probabilities can be worse than a constant's.
    average : str, default=None
        The average of the iterates, by which rows are predicted; None is the estimators' own.
    scale : "none", "centred", "tempered", "dense", "rms" or "max-abs", default=None
        How each column is scaled, as in the estimators.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    classes : list, default=None
        All classes there will be. None: False and True, or the first two labels that rows have.
    forget : float, default=None
        The half-life in rows, as in ``OnlineClassifier``, for data that change. None forgets nothing.
    eta : float, default=None
        The step size of the solver as a number; ``solver`` must not name an eta then. None: that of the solver.

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
        loss: Any = None,
        penalty: Any = "none",
        solver: Any = None,
        average: Any = None,
        scale: str | None = None,
        fit_intercept: bool = True,
        classes: list[Any] | None = None,
        forget: float | None = None,
        eta: float | None = None,
    ) -> None:
        self.loss, self.penalty, self.solver, self.average = loss, penalty, solver, average
        self.scale, self.fit_intercept, self.classes, self.forget, self.eta = scale, fit_intercept, classes, forget, eta
        self.model = self._new_model()
        self._waiting: list[tuple[dict[str, Any], Any, float]] = []  # rows of the first label, until there is a second

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings as of both models; a model that has begun refuses other classes, which no later row would have."""
        if name == "classes" and "model" in vars(self) and self.model.is_fitted and _as_set(value) != _as_set(self.classes):
            raise ValueError(
                f"the model was begun with classes={self.classes!r}, which further rows have, got {value!r}: make a new one."
            )
        super().__setattr__(name, value)

    def _new_model(self) -> OnlineClassifier:
        return OnlineClassifier(**self._settings)

    @property
    def _multiclass(self) -> bool:
        return len(self._classes_named()) > 2

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
        TypeError
            For an x without names.
        ValueError
            For a label that is no class, a third class that was not named, and two names of the same text.
        """
        x = named_by_text(x)
        if self.model.is_fitted or self._has_begun(self._learn_first, x, y, w):
            self._learn_known(x, y, w)

    def _learn_first(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """Train on one row where none has been trained on; keep it while its class is the only one."""
        label = plain(y)
        classes = self._classes_with([label])
        if classes is not None:
            self._begin_waiting(lambda: self.model.learn_one(x, label, w), label, classes)
            return
        trial = self._new_model() if self._trial is None else self._trial
        trial.learn_one(x, False, w, [False, True])  # which refuses what the model would refuse later
        if len(self._waiting) == MOST_WAITING:
            raise ValueError(f"the first {MOST_WAITING:,} rows have one class, {label!r}: name all with classes=[...].")
        self._trial = trial
        self._waiting.append((dict(x), label, w))

    def _learn_first_rows(self, rows: list[Any], y: list[Any], w: list[float]) -> None:
        classes = self._classes_with(y)
        if classes is not None:
            self._begin_waiting(lambda: self._learn_known_rows(rows, y, w), y[0], classes)
            return
        for given in zip(rows, y, w, strict=True):
            self._learn_first(*given)

    def _begin_waiting(self, learn: Callable[[], Any], label: Any, classes: Any) -> None:
        """``_begin`` with the rows that wait."""

        def learn_all() -> None:
            for row, known, weight in self._waiting:
                self.model.learn_one(row, known, weight)
            learn()

        self._begin(learn_all, label, 1.0, classes)
        self._trial, self._waiting = None, []

    def _classes_named(self) -> list[Any]:
        """All classes there will be, in the order in which they are named; those of a set, which has none, ascend."""
        if self.classes is None:
            return [False, True]
        named = at_least_two(named_classes(self.classes, None)).tolist()
        return named if isinstance(self.classes, Set) else sorted(named, key=list(self.classes).index)

    def _classes_with(self, labels: list[Any]) -> Any:
        """The classes, as they are named, or as the labels that wait and these tell them; None where these are one class."""
        known = [label for _, label, _ in self._waiting[:1]]
        for label in labels:
            if self.classes is not None or (not known and isinstance(label, bool)):
                return [False, True] if self.classes is None else self.classes
            if known and type(label) is type(known[0]) and label == known[0]:
                continue
            known = self._labels_with(known, label)
            if len(known) == 2:
                return known
        return None

    @staticmethod
    def _labels_with(known: list[Any], label: Any) -> list[Any]:
        """The labels that are known, and one more; raises ValueError for one that is no class beside them."""
        try:
            return named_classes([*known, label], None).tolist()
        except (ValueError, TypeError):
            beside = f", and of one type with {known[0]!r}" if known else ""
            kinds = "text, a finite number of at most 64 bits, True or False"
            raise ValueError(f"y must be {kinds}{beside}, got {label!r}.") from None

    def _learn_known(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """Train on one row where there is a model."""
        try:
            self.model.learn_one(x, y, w)
        except ValueError as error:
            raise self._explained(error, [y]) from None

    def _learn_known_rows(self, rows: list[Any], y: list[Any], w: list[float]) -> None:
        try:
            super()._learn_known_rows(rows, y, w)
        except ValueError as error:
            raise self._explained(error, y) from None

    def _explained(self, error: ValueError, y: list[Any]) -> ValueError:
        """The error; that of a class that is not known says how it can be."""
        with suppress(TypeError):  # what has no hash is no class
            if set(y) <= set(self.model.classes_.tolist()):
                return error
        return ValueError(
            f"{error} Name all with classes=[...], or take one model for each: river.multiclass.OneVsRestClassifier."
        )

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The class of one row; before the first row False, or the only class so far."""
        if self.model.is_fitted:
            return self.model.predict_one(named_by_text(x))
        waiting = self._waiting
        return waiting[0][1] if waiting else self._classes_named()[0]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each class; before the first row all are equal.

        Raises
        ------
        NotImplementedError
            For a loss that gives no probabilities.
        """
        if self.model.is_fitted:
            x = named_by_text(x)
            try:
                return self.model.predict_proba_one(x)
            except AttributeError:
                self._need_probabilities()
                raise
        self._need_probabilities()
        waiting = self._waiting
        if waiting:
            return {waiting[0][1]: 1.0}
        classes = self._classes_named()
        return dict.fromkeys(classes, 1.0 / len(classes))

    def _need_probabilities(self) -> None:
        """Raise NotImplementedError, as River's models do, for a loss that gives none."""
        if not gives_probabilities(self.model):
            self.model.built_loss()  # which refuses what is no loss
            raise NotImplementedError(
                f"loss={self.loss!r} gives no probabilities, which predict_proba_one and most of River's models of models "
                "need: use loss='logistic'."
            )

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class for each row of a data frame, under the index of X."""
        import pandas as pd

        found = [self.predict_proba_one(row) for row in rows_of_frame(X)]
        return pd.DataFrame(found, index=X.index, columns=list(found[0] if found else self.predict_proba_one({})))


class Regressor(_RiverModel, base.MiniBatchRegressor):
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
        The average of the iterates, by which rows are predicted; None is the estimators' own.
    scale : "none", "centred", "tempered", "dense", "rms" or "max-abs", default=None
        How each column is scaled, as in the estimators.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    forget : float, default=None
        The half-life in rows, as of ``OnlineRegressor``: for data that change. None forgets nothing.
    eta : float, default=None
        The step size of the solver as a number; ``solver`` must not name an eta then. None: that of the solver.
        With ``forget`` numbers mostly need smaller steps than its own, as 1.

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
        forget: float | None = None,
        eta: float | None = None,
    ) -> None:
        self.loss, self.penalty, self.solver, self.average = loss, penalty, solver, average
        self.scale, self.fit_intercept, self.forget, self.eta = scale, fit_intercept, forget, eta
        self.model = OnlineRegressor(**self._settings)

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
