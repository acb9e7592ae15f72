"""OnlineClassifier: labels and class weights in front of ``Learner``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin

from onlinear.learner.classes import OneAgainstRest, best_class_of_row, outputs_of, rows_at_once, targets_by_label
from onlinear.models.base import Classifier, gives_probabilities
from onlinear.models.class_labels import (
    at_least_two,
    check_class_weight,
    classes_of,
    has_fractions,
    named_classes,
    places_among,
    places_of,
    weights_by_name,
    weights_of_classes,
)
from onlinear.models.evaluation import share_right
from onlinear.models.one_by_one import QUICK, SingleRow, check_row, pair_of
from onlinear.models.online import Online
from onlinear.models.stored_model import quote
from onlinear.models.targets import column_of_targets
from onlinear.models.turns import as_it_stands
from onlinear.rows import checks
from onlinear.streams import Stream
from onlinear.streams.frames import is_record
from onlinear.streams.weighted import balanced_weights, times_of_classes
from onlinear.text.form import check_flag, quoted

P = ParamSpec("P")
R = TypeVar("R")


class IfProbable(Generic[P, R]):
    """A method of the classifiers whose loss gives probabilities; for others it is missing, and the error says why."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Callable[P, R]:
        quick = None if model is None else vars(model).get(QUICK)
        if quick is not None and quick.probability is not None and quick.learner is model.learner_:
            return MethodType(self._method, model)
        if model is not None and not gives_probabilities(model):
            raise AttributeError(
                f"{type(model).__name__} with loss={model.loss!r} has no {self._method.__name__}: this loss gives scores, not "
                "probabilities. Use loss='logistic', or fit sklearn.calibration.CalibratedClassifierCV(model)."
            )
        return MethodType(self._method, model) if model is not None else self._method  # type: ignore[return-value]


class OnlineClassifier(ClassifierMixin, Online, Classifier):  # type: ignore[misc]
    """A linear classifier, trained row by row.

    It minimises  mean_i s_i l(<w, x_i> + b, y_i) + r(w)  with the loss l, the penalty r, and s_i the weight of a row times the
    weight of its class. Several classes are joined by the loss ``softmax``, or trained one against the rest, all in one
    pass over the rows.

    Parameters
    ----------
    loss : str or loss object, default=None
        The loss, as ``"name,key=value,..."``. Losses of numbers (squared, absolute, huber, ...) learn the targets -1 and +1.
        ``"softmax"`` is one loss over the scores of all classes; for two classes it is the logistic loss. None is
        ``"logistic"`` for two classes and ``"softmax"`` for more. With bounds, total variation, a named solver but
        ``prox-newton``, or ``uncertainty`` it is ``"logistic"``, one class against the rest.
    penalty : str or penalty object, default="none"
        The penalty, such as ``"l1=1e-5"``. It acts on the weights of scaled columns, not on the intercept.
    solver : str or solver object, default=None
        The method, such as ``"rda"`` or ``"comid,eta=0.5"``. None takes adaptive implicit steps, ``implicit-ftrl``, of size
        eta = 1 / (slope of the loss at 0): 2 for the logistic loss, 1 for hinge, and sqrt(2 K) for softmax of K classes. The
        intercept's step size is at least 0.3 of that (intercept = 0.3). With bounds None takes ``fiol``. Its step t has the
        size 2.4 / (slope at 0) / sqrt(t), for softmax twice that, and is smaller where rows have large weights. With total
        variation None takes ``odrs``, with steps of size 0.3 / sqrt(t), and for losses of numbers the steps of
        ``OnlineRegressor``.
    average : str or Average, default=None
        The average of the iterates, by which ``predict`` scores. None takes that of a named preset, else ``"adaptive"``: the
        weighted-t1 average, or the last iterate while that predicts the recent rows better. With l1 or tv there is no average,
        because it would fill their zeros, and none for solvers without a form for it. For the losses logistic and softmax, and
        squared for two classes, without a penalty, a named solver, ``forget`` and ``uncertainty``, None takes
        ``"adaptive,calibrated=true"``: the adaptive average times a calibration slope, which makes the probabilities right. The
        slope is learned from the scores of rows before they are trained on. From the second pass on it is 1, or what
        ``passes="auto"`` has found. Rows that ``partial_fit`` gets once more count as a second pass too.
    passes : int or "auto", default=1
        Passes of ``fit`` over the rows; for ``batch-drs`` its iterations, while ``prox-newton`` and ``sdca`` end at their gap
        or at ``max_passes``. ``"auto"`` makes more passes over fewer than 20,000 rows: at most 100, none of which begins after
        100,000 rows. Held-out rows decide how many: five models are trained on four fifths of the rows each, and copies of a
        row are held out together. These rows give the calibration slope of an average too. Solvers and averages that have to
        know the number of rows, batch solvers, and losses other than logistic and softmax with fewer than 10 rows make the
        most passes. A stream that cannot be read twice is read once, as is one of more than 67 million entries. With ``tol``
        ``"auto"`` counts as 1: the gap decides when training ends.
    shuffle : bool or "replacement", default=None
        The order of the rows in each pass of ``fit``: as given (False), a new permutation (True), or n uniform draws
        (``"replacement"``). None permutes, except for solvers whose paper draws with replacement.
    scale : "none", "centred", "tempered", "dense", "rms", "max-abs" or "standard", default=None
        How each column is scaled. ``"rms"`` and ``"max-abs"`` divide it by its running root mean square or largest absolute
        value. ``"centred"`` does as ``"rms"``, and centres the columns with an entry in many rows; ``"tempered"`` does so too,
        and keeps some of the size of the others; ``"dense"`` centres those that nearly all rows have, and leaves the others.
        ``"standard"`` centres all columns, which makes rows dense. None is ``"tempered"`` for the estimator's own adaptive
        steps without a penalty, else ``"centred"``. It is ``"rms"`` without an intercept, with ``tol``, and for prox-newton and
        sdca; ``"dense"`` for mixture, or ``"none"`` without an intercept; ``"none"`` for rls, batch-drs and the families of
        csgd and adaline.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : dict or "balanced", default=None
        What multiplies the weights of the rows of each class; 1 for classes that the dict does not name. ``"balanced"``
        (``fit`` only) gives every class the same total weight. For a stream it takes one more pass, to count the labels.
    random_state : int, numpy.random.Generator or None, default=None
        The seed of the orders of the rows.
    verbose : bool or int, default=False
        Whether to show a progress bar; with ``tol`` a line for each certified pass.
    callbacks : list of callables, default=None
        Functions that are called after every block of rows. Their argument has ``rows``, ``total``, ``loss``, ``nonzeros`` and
        ``estimator`` (docs/models.md).
    n_jobs : int, default=None
        The threads that share many classes, and the five models of ``passes="auto"``: None is 1, -1 all cores. They change
        nothing but the time.
    l1 : float, default=None
        The l1 of the penalty as a number, for searches; ``penalty`` must not name an l1 then. None: that of ``penalty``.
    l2 : float, default=None
        The l2 of the penalty as a number, likewise.
    eta : float, default=None
        The step size of the solver as a number; ``solver`` must not name an eta then. None: that of the solver. With total
        variation and no named solver it is that of ``comid``.
    forget : float, default=None
        The half-life in rows, at least 1, for data that change: rows that are older count less than half, in the objective, the
        steps and the average. None forgets nothing. With no named solver it takes ``implicit-ftrl``; of the others ``ftrl``,
        ``rda`` and ``adagrad-rda`` can forget. It excludes ``tol``. Scales do not forget.
    uncertainty : bool, default=False
        Whether ``decision_function(X, return_std=True)`` and ``predict_interval`` can tell how far scores may be off, by four
        copies of the model that are trained on resampled rows (docs/uncertainty.md). Training takes five times as long. It
        excludes ``tol``, more than one pass and softmax.
    tol : float, default=None
        The certified relative duality gap at which ``fit`` ends: with 1e-4 the objective is at most 0.01 % above the
        optimum. It needs l1 > 0, l2 > 0 or bounds on all weights. A solver that is named beside it makes the first passes.
        A stream must be one that can be read again. ``partial_fit`` does not use it. Classes that softmax joins are solved
        together, others each against the rest. None: ``passes`` decide.
    max_passes : int, default=100
        With ``tol`` the largest number of readings of all rows. After these a ConvergenceWarning tells the gap reached.
    warm_start : bool, default=False
        With ``tol``, whether ``fit`` starts from the model as it is.
    interactions : iterable of pairs of str, default=None
        Pairs of columns of a table to cross, as ``[("site", "ad")]``, hashed. These five are for tables that ``fit`` and
        ``partial_fit`` open; a stream is given its own (docs/tutorials/crosses.md, docs/tutorials/words-and-bins.md).
    ngrams : mapping of str to int, default=None
        Columns of text to read as words, and the most words of an n-gram, as ``{"review": 2}``.
    bins : mapping of str to int or list of float, default=None
        Numbers to read as categories: edges, as ``{"age": [18, 65]}``, or a number of bins, which ``fit`` takes from the first
        rows.
    text : iterable of str, default=None
        Columns to read as categories whatever they hold, as ``["user", "postcode"]``: whole numbers, booleans, dates.
    missing : str or mapping, default=None
        What missing values become: ``"indicator"``, ``"omit"`` or ``"error"``, for all columns or as
        ``"numbers=indicator,categories=omit"`` (docs/streams.md). None is ``"error"``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, ascending.
    coef_ : ndarray of shape (1, d) or (K, d)
        The weights as ``predict`` uses them, in the columns' own units, whatever the scale. A fresh array.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercept, in the units of the scores.
    n_features_in_ : int
        The columns known. It grows with the rows of a stream.
    feature_names_in_ : ndarray of str
        The names of the columns, where a data frame gave them; of a table with text, the names of its own columns.
    n_iter_ : int
        The passes made by ``fit``; with ``tol`` its outer iterations, of a final file ``n_passes_``.
    n_passes_ : int
        Readings of all rows by ``fit``; of rounds over shards, the rounds.
    dual_gap_, dual_bound_, objective_ : float
        After ``fit`` with ``tol``: the certified relative gap (of several outputs the largest), what no objective is below, and
        the objective (both summed over outputs).
    converged_ : bool
        After ``fit`` with ``tol``: whether ``dual_gap_`` is at most ``tol``.
    t_ : int
        Rows learned, over all passes and calls.
    coef_frame_ : pandas.DataFrame
        The weights that are not 0, by the names of their columns, the largest first; a column for each output.
    sparsity_ : float
        The share of exact zeros in ``coef_``; nan before the first column.
    sparsity_last_ : float
        The share of exact zeros in the weights after the last row; an average is rarely 0 where the iterates are.
    history_ : list of dict
        The reports of ``fit`` on a stream, whenever the row count had doubled: rows, mean losses, measures.
    encoding_ : dict or None
        How the columns of a table became features, for ``streams.open(encoding=)``.
    learner_ : Learner
        The learner. It holds the state; its last iterate is ``learner_.weights()``.

    See Also
    --------
    OnlineRegressor : The same for numbers.
    PenaltyPath : Many penalties in one pass.
    Learner : One method, exactly as its paper states it.

    Notes
    -----
    ``partial_fit`` takes the rows in the order given; ``fit`` equals ``partial_fit`` over the rows of all passes in their
    order, bit for bit. Both take arrays, sparse matrices, data frames, and streams (``onlinear.streams``).

    References
    ----------
    docs/solvers.md names the paper of each method, docs/defaults.md the measurements behind the defaults.

    Examples
    --------
    >>> from onlinear import OnlineClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OnlineClassifier(penalty="l1=1e-3", passes=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.coef_.shape
    (1, 30)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> OnlineClassifier:
        """Train from the start, in ``passes`` passes over the rows.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. A table is a data frame, an Arrow table or a list of dicts, and may hold text
            (docs/tables.md). A stream, or an iterable of blocks (X, y) or (X, y, weight), brings its targets and
            weights; its rows are learned in its order.
        y : array-like of shape (n,) or str, default=None
            The classes, at least two: numbers or text; or the name of the column of a table that holds them. None for a stream.
        sample_weight : array-like of shape (n,) or str, default=None
            What multiplies the loss of each row, at least 0; None is 1. Where y names a column of a table, this is the name of
            another. None for a stream.
        classes : array-like of shape (K,) or "scan", default=None
            For a stream: its classes, where they are not -1, 1 or 0, 1 and the stream does not know them. ``"scan"`` finds them
            in one more pass.

        Returns
        -------
        OnlineClassifier
            This estimator.

        Raises
        ------
        ValueError, TypeError
            For wrong input, before the first row is learned: the estimator stays as it was.
        StreamError
            For a wrong row of a stream; the rows before its block are learned.
        DivergenceError
            Where the state stops being finite.

        Warns
        -----
        ConvergenceWarning
            Where ``tol`` was not reached in ``max_passes`` passes.
        QualityWarning
            Where the model predicts worse than a constant, or the rows cannot teach it.
        """
        return self._train_passes(X, y, sample_weight, classes)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Train on the rows once, in the order given; continue with what was trained before.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. A table is a data frame, an Arrow table or a list of dicts, and may hold text
            (docs/tables.md). A stream, or an iterable of blocks (X, y) or (X, y, weight), brings its targets and
            weights; its rows are learned in its order.
        y : array-like of shape (n,) or str, default=None
            The classes, or the name of the column of a table that holds them. None for a stream.
        classes : array-like of shape (K,) or "scan", default=None
            All classes there will be. The first call needs them; for a stream as in ``fit``.
        sample_weight : array-like of shape (n,) or str, default=None
            What multiplies the loss of each row, at least 0; None is 1. Where y names a column of a table, this is the name of
            another. None for a stream.

        Returns
        -------
        OnlineClassifier
            This estimator.

        Raises
        ------
        ValueError, TypeError
            For wrong input, before the first row is learned: the estimator stays as it was.
        StreamError
            For a wrong row of a stream; the rows before its block are learned.
        DivergenceError
            Where the state stops being finite.
        """
        return self._train_once(X, y, classes, sample_weight)

    @as_it_stands
    def decision_function(self, X: Any, return_std: bool = False) -> Any:
        """Scores <w, x> + b.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. Columns that no row has had so far have weight 0.
        return_std : bool, default=False
            Whether to give the standard deviation of the scores too. It needs ``uncertainty=True``.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            For two classes one score, positive for the second; else one for each class.
        std : ndarray of shape (n,) or (n, K)
            With ``return_std``: how far the scores would be off, had other rows of the same kind been trained on.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self._scores_and_std(X) if return_std and check_flag("return_std", return_std) else self._scores(X)

    @as_it_stands
    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals of the scores (log-odds, for logistic), had other rows been trained on. It needs ``uncertainty=True``.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units.
        coverage : float, default=0.9
            The share of the models, each trained on rows drawn anew from those seen, whose scores lie inside.

        Returns
        -------
        ndarray of shape (n, 2) or (n, K, 2)
            The lower and the upper end.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input, and for a model that was trained without ``uncertainty``.
        DivergenceError
            Where the state of the model is not finite.

        Examples
        --------
        >>> from onlinear import OnlineClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = OnlineClassifier(uncertainty=True, random_state=0).fit(X[:500], y[:500])
        >>> low, high = model.predict_interval(X[500:]).T
        >>> bool((low < high).all())
        True
        """
        return self._intervals(X, coverage)

    @as_it_stands
    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. Columns that no row has had so far have weight 0.

        Returns
        -------
        ndarray of shape (n,)
            A class of ``classes_`` for each row.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self.labels_of(self._scores(X))

    @IfProbable
    @as_it_stands
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, for the losses logistic, softmax, exponential and modified-huber.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. Columns that no row has had so far have weight 0.

        Returns
        -------
        ndarray of shape (n, K)
            Each row sums to 1: of several classes the softmax of the scores, or the probabilities of one against the rest
            divided by their sum.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        AttributeError
            For a loss that gives no probabilities.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self.probabilities_of(self._scores(X))

    def learn_one(self, row: SingleRow, y: Any, weight: float = 1.0, classes: Any = None) -> OnlineClassifier:
        """Train on one row, a dict from names to values or a pair of columns and values.

        Parameters
        ----------
        row : mapping of str to number, text, bool or None; or tuple of two array-likes
            The values by name. A name that is new gets a column, and so does each text of a name. After training on a table the
            names are those of its columns, by its rules. Or columns, from 0, and their values, as ``predict_one`` takes them.
        y : class
            The class.
        weight : float, default=1.0
            What multiplies the loss of the row, at least 0.
        classes : array-like of shape (K,), default=None
            All classes there will be. The first call needs them, unless y is True or False, 0 or 1; later ones may name the
            same.

        Returns
        -------
        OnlineClassifier
            This estimator.

        Raises
        ------
        ValueError, TypeError
            For wrong input; the estimator stays as it was.
        DivergenceError
            Where the state stops being finite.

        Examples
        --------
        >>> from onlinear import OnlineClassifier
        >>> model = OnlineClassifier()
        >>> for row, y in [({"price": 2.5, "site": "a"}, True), ({"price": 0.5, "site": "b"}, False)] * 20:
        ...     _ = model.learn_one(row, y)
        >>> model.predict_one({"price": 2.0, "site": "a"})
        True
        """
        quick = self._row_quick
        if type(weight) is not float or weight != 1.0:
            weight = checks.one_weight(weight)
        if classes is not None:
            self._refuse_other_classes(classes)
        if quick is not None and weight == 1.0:
            try:
                target = quick.targets.get(y)
            except TypeError:  # what has no hash is no class
                target = None
            if target is not None and quick.learn(self, row, target):
                return self
        check_row(row)
        if self.is_fitted:
            self.learn_known(row, y, weight)
        else:
            self.learn_first(row, y, weight, classes)
        return self

    def _refuse_other_classes(self, classes: Any) -> None:
        """Raise ValueError for classes that are not those of a model that has begun. A list that came before is not looked at
        again."""
        if not self.is_fitted:
            return
        seen = vars(self).get("_row_classes")
        listed = type(classes) in (list, tuple, range)
        if not listed or seen is None or seen[0] is not self.classes_ or seen[1] != classes:
            named_classes(classes, self.classes_)
            self._row_classes = self.classes_, classes[:] if listed else None

    def learn_known(self, row: SingleRow, y: Any, weight: Any, classes: Any = None) -> None:
        held = vars(self).get("_row_targets")
        if held is None or held[0] is not self.classes_ or held[1] is not self.class_weight:
            weights = self._weights_by_class()
            held = self._row_targets = self.classes_, self.class_weight, self._targets_by_class(weights), weights
        try:
            target = held[2].get(y)
        except TypeError:  # what has no hash is no class
            target = None
        if target is None:
            raise ValueError(f"y is the class {quoted(y)}; the known classes are {quote(self.classes_)}.")
        self.learn_row(row, target, weight * held[3][y])

    def begin_rows(self, row: SingleRow, y: Any, weight: Any, classes: Any) -> None:
        """Name the classes and make the learner, at the first row."""
        if classes is None and isinstance(y, (bool, np.bool_)):
            classes = [False, True]
        elif classes is None and isinstance(y, (int, np.integer)) and y in (0, 1):
            classes = [0, 1]
        if classes is None:
            raise ValueError("the first learn_one needs classes=, all classes there will be, e.g. classes=['no', 'yes'].")
        self.classes_ = at_least_two(named_classes(classes, None))
        check_class_weight(self.class_weight, balance=False)
        self.start_with_row(row, outputs_of(len(self.classes_)))

    def _weights_by_class(self) -> dict[Any, float]:
        """The weight of the rows of each class."""
        count = len(self.classes_)
        weights = weights_of_classes(self.class_weight, self.classes_, np.arange(count), np.ones(count), balance=False)
        return dict(zip(self.classes_.tolist(), weights.tolist(), strict=True))

    def _targets_by_class(self, weights: Mapping[Any, float], only: float | None = None) -> Mapping[Any, Any]:
        """The target of the rows of each class; ``only``: of those with this weight."""
        outputs = outputs_of(len(weights))
        places = {label: k for k, label in enumerate(weights) if only is None or weights[label] == only}
        return targets_by_label(places, outputs, self.negative_target(outputs))

    def quick_targets(self) -> Mapping[Any, Any]:
        return self._targets_by_class(self._weights_by_class(), 1.0)

    def predict_one(self, indices: Any, values: Any = None) -> Any:
        """The class of one row, given by its non-zeros or as a dict, in some microseconds.

        Parameters
        ----------
        indices : array-like of shape (nnz,), integers; or mapping of str to number, text, bool or None
            The columns, from 0. Ascending ones without repeats are fastest. Or the values by name; names that are not known
            count as 0. Or a tuple of both arguments.
        values : array-like of shape (nnz,), default=None
            The values at these columns, in their own units. Arrays of float64 or float32 are fastest. None with a dict.

        Returns
        -------
        class
            The one of ``classes_`` that ``predict`` gives for the row.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinear import OnlineClassifier
        >>> model = OnlineClassifier().fit([[1.0, 0.0], [0.0, 2.0]] * 20, ["no", "yes"] * 20)
        >>> str(model.predict_one(np.array([1]), np.array([3.0])))
        'yes'
        """
        if values is None:
            quick = self._row_quick
            if quick is not None and (score := quick.score(self, indices)) is not None:
                return quick.labels[score > 0.0 if quick.alone else score.argmax()]
        score, classes, named = self._scored_row(indices, values)
        best = best_class_of_row(score)
        return classes.item(best) if named else classes[best]

    def _scored_row(self, indices: Any, values: Any) -> tuple[Any, np.ndarray, bool]:
        """The score of a row, the classes of the same moment, and whether the row is a dict: another thread may fit anew."""
        named = values is None and is_record(indices)
        while True:
            learner, classes = self.fitted_learner(), self.classes_
            score = self.score_dict(indices) if named else learner.predict_one(*pair_of(indices, values))
            if self.learner_ is learner:
                return score, classes, named

    @IfProbable
    def predict_proba_one(self, indices: Any, values: Any = None) -> dict[Any, float]:
        """The probability of each class for one row, given by its non-zeros or as a dict, for the losses that
        ``predict_proba`` takes.

        Parameters
        ----------
        indices : array-like of shape (nnz,), integers; or mapping of str to number, text, bool or None
            The columns, from 0; or the values by name; or a tuple of both arguments.
        values : array-like of shape (nnz,), default=None
            The values at these columns, in their own units. None with a dict.

        Returns
        -------
        dict
            The probability of each of ``classes_``.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        AttributeError
            For a loss that gives no probabilities.
        DivergenceError
            Where the state of the model is not finite.
        """
        quick = self._row_quick
        if values is None and quick is not None and (score := quick.score(self, indices)) is not None:
            if not quick.alone:
                return dict(zip(quick.labels, self.chances_of_row(score), strict=True))
            no, yes = quick.labels
            chance = float(quick.probability(score))  # type: ignore[misc]
            return {no: 1.0 - chance, yes: chance}
        score, classes, _ = self._scored_row(indices, values)
        return dict(zip(classes.tolist(), self.chances_of_row(score), strict=True))

    @IfProbable
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, for the losses of ``predict_proba``: of logistic and softmax those of the scores, as
        probabilities near 0 have few digits or none.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. Columns that no row has had so far have weight 0.

        Returns
        -------
        ndarray of shape (n, K)
            Natural logarithms; with other losses than these two -inf for a probability of 0.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        AttributeError
            For a loss that gives no probabilities.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self.log_probabilities_of(self._scores(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class ``predict`` finds, by weight.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows.
        y : array-like of shape (n,) or str, default=None
            The classes, or the name of the column of a table that holds them. None for a stream, and for a table whose columns
            are those the model was trained on.
        sample_weight : array-like of shape (n,) or str, default=None
            The weights of the rows, or the name of their column. None for a stream.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self.scored(X, y, sample_weight, share_right, self._accuracy)

    def _accuracy(self, X: Any, y: Any, weights: np.ndarray | None) -> float:
        if getattr(getattr(y, "dtype", None), "kind", "") == "O":
            classes_of(np.asarray(y))  # which refuses what is no label
        if has_fractions(self.classes_) and np.asarray(y).dtype.kind in "iuf":  # scikit-learn takes them for no classes
            from sklearn.metrics import accuracy_score

            found = self.predict(X)
            right = found == column_of_targets(X, y, len(found), numbers=False)
            return float(accuracy_score(np.ones(len(found), bool), right, sample_weight=weights))
        return float(super().score(X, y, weights))

    @property
    def coef_(self) -> np.ndarray:
        """Weights as ``predict`` uses them, in the columns' own units: (1, d) for two classes, else (K, d); a fresh array."""
        return np.atleast_2d(self._coef(average=True))

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts: (1,) for two classes, else (K,)."""
        return np.atleast_1d(np.asarray(self.fitted_learner().intercept(average=True)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def make_targets(
        self, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[np.ndarray | OneAgainstRest, np.ndarray, int]:
        """Targets (n, K), weights of the rows, and K. ``first``: no rows came before; ``balance``: these are all rows."""
        found = classes_of(y) if balance or first else None
        self.classes_ = found if balance else named_classes(classes, None if first else self.classes_)
        at_least_two(self.classes_)
        return self._targets(y, sample_weight, balance, known=balance)

    def targets_as_fitted(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        targets, weights, _ = self._targets(y, sample_weight, balance=True)
        return targets[:], weights

    def _targets(
        self, y: Any, sample_weight: Any, balance: bool, *, known: bool = False
    ) -> tuple[np.ndarray | OneAgainstRest, np.ndarray, int]:
        """Targets, weights and outputs of rows; ``known``: whether their classes are the known ones for sure."""
        places = places_of(self.classes_, y) if known else places_among(self.classes_, y)
        weights = checks.weights(sample_weight, len(y))
        of_classes = weights_of_classes(self.class_weight, self.classes_, places, weights, balance=balance)
        weights = times_of_classes(weights, of_classes[places])
        outputs = outputs_of(len(self.classes_))
        found = OneAgainstRest(places, outputs, self.negative_target(outputs))
        return found if outputs > 1 and len(places) > rows_at_once(outputs) else found[:], weights, outputs

    def target_places(self, y: np.ndarray, classes: Any, known: Any, anew: bool) -> tuple[np.ndarray, np.ndarray]:
        """The places of labels among the classes, and the classes: those of ``y`` in ``fit``, else those named."""
        held = classes_of(y)
        found = at_least_two(held if anew else named_classes(classes, known))
        return places_among(found, y).astype(np.float64), found

    def _stream_weights(self, stream: Stream, balance: bool) -> dict[Any, float] | None:
        check_class_weight(self.class_weight, balance=balance)
        if not isinstance(self.class_weight, str):
            named = getattr(stream, "named", None)
            if named is None or not self.class_weight:
                return self.class_weight
            return dict(enumerate(weights_by_name(self.class_weight, named).tolist()))
        return balanced_weights(stream)
