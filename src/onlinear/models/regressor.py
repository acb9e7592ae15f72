"""OnlineRegressor: targets of any unit in front of ``Learner``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from onlinear.losses import loss_labels
from onlinear.models.base import Regressor
from onlinear.models.evaluation import r_squared
from onlinear.models.one_by_one import SingleRow, check_row, pair_of
from onlinear.models.online import Online
from onlinear.models.turns import as_it_stands
from onlinear.rows import checks
from onlinear.streams.frames import is_record
from onlinear.text.form import check_flag


class OnlineRegressor(RegressorMixin, Online, Regressor):  # type: ignore[misc]
    """A linear regression, trained row by row.

    It minimises  mean_i s_i l(<w, x_i> + b, y_i) + r(w)  with the loss l, the penalty r and the weights s_i of the rows.
    Several targets are trained in one pass over the rows.

    Parameters
    ----------
    loss : str or loss object, default="squared"
        The loss, as ``"name,key=value,..."``, such as ``"huber,delta=1000"`` or ``"quantile,q=0.9"``.
    penalty : str or penalty object, default="none"
        The penalty, such as ``"l1=1e-5"``. It acts on the weights of scaled columns, not on the intercept.
    solver : str or solver object, default=None
        The method, such as ``"rda"`` or ``"comid,eta=0.5"``. None takes implicit steps. With l1 or ``forget``, and for the
        squared loss without a penalty, they are adaptive: ``implicit-ftrl`` with eta = 2, or 8 with an average. For poisson
        they are ``mixture``, and with ``forget`` or ``uncertainty``, or where an average, l1 or another scale is named,
        ``implicit-ftrl`` with eta = 2. Else, and always with bounds, None takes ``fiol``, or without a penalty its faster form
        ``implicit-sgd``. Their step t has the size 2.4 / sqrt(t), for quantile 1 / sqrt(t), without an average a fifth of
        these, and is smaller where rows have large weights. All these steps follow the running deviation of the targets. With
        total variation None takes ``odrs``, with steps of size 0.1 / sqrt(t), or ``comid`` where the slope of the loss is
        bounded.
    average : str or Average, default=None
        The average of the iterates, by which ``predict`` scores. None takes that of a named preset, else ``"adaptive"``: the
        weighted-t1 average, or the last iterate while that predicts the recent rows better. With l1 or tv there is no average,
        because it would fill their zeros, and none for solvers without a form for it. For the squared loss of one target,
        without a penalty, a named solver, ``forget`` and ``uncertainty``, None takes ``"adaptive,calibrated=true"``: what the
        adaptive average predicts beside the mean of the targets is multiplied by a calibration slope. The slope is learned
        from the predictions of rows before they are trained on, and is 1 from the second pass on.
    passes : int or "auto", default=1
        Passes of ``fit`` over the rows; for ``batch-drs`` its iterations, while ``prox-newton`` and ``sdca`` end at their gap
        or at ``max_passes``. ``"auto"`` makes more passes over fewer than 20,000 rows: at most 100, none of which begins after
        100,000 rows. Held-out rows decide how many: five models are trained on four fifths of the rows each, and copies of a
        row are held out together. Solvers and averages that have to know the number of rows, batch solvers and fewer than 10
        rows make the most passes. A stream that cannot be read twice is read once, as is one of more than 67 million entries.
        With ``tol`` ``"auto"`` counts as 1: the gap decides when training ends.
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
    clip : bool, default=None
        For the squared loss: whether predictions stay within the targets seen, and the model is trained with the loss that
        matches (``Learner``). For the Poisson loss they stay between a third of the smallest count and three times the largest.
        None clips where no solver is named, and for mixture; True is refused with a solver whose steps cannot follow the
        targets. With ``tol``, and in rounds over shards, nothing is clipped.
    random_state : int, numpy.random.Generator or None, default=None
        The seed of the orders of the rows.
    verbose : bool or int, default=False
        Whether to show a progress bar; with ``tol`` a line for each certified pass.
    callbacks : list of callables, default=None
        Functions that are called after every block of rows. Their argument has ``rows``, ``total``, ``loss``, ``nonzeros`` and
        ``estimator`` (docs/models.md).
    n_jobs : int, default=None
        The threads that share many targets, and the five models of ``passes="auto"``: None is 1, -1 all cores. They change
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
        ``rda`` and ``adagrad-rda`` can forget. It excludes ``tol``. Scales, the unit of the targets, and their range, to which
        ``clip`` keeps predictions, do not forget.
    uncertainty : bool, default=False
        Whether ``predict(X, return_std=True)`` and ``predict_interval`` can tell how far targets may be off, by the errors on
        rows before they were learned (docs/uncertainty.md). It excludes ``tol``, more than one pass and poisson.
    tol : float, default=None
        The certified relative duality gap at which ``fit`` ends: with 1e-4 the objective is at most 0.01 % above the
        optimum. It needs l1 > 0, l2 > 0 or bounds on all weights. A solver that is named beside it makes the first passes.
        A stream must be one that can be read again. ``partial_fit`` does not use it. None: ``passes`` decide.
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
    coef_ : ndarray of shape (d,) or (K, d)
        The weights as ``predict`` uses them, in the columns' own units, whatever the scale; with ``clip`` the linear part. A
        fresh array.
    intercept_ : float or ndarray of shape (K,)
        The intercept, in the units of the targets.
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
        The reports of ``fit`` on a stream, whenever the row count had doubled: rows, mean losses, measures. ``loss`` is that
        of what ``predict`` gives; where it is clipped, ``loss_linear`` is that of the linear scores (docs/models.md).
    encoding_ : dict or None
        How the columns of a table became features, for ``streams.open(encoding=)``.
    learner_ : Learner
        The learner. It holds the state; its last iterate is ``learner_.weights()``.

    See Also
    --------
    OnlineClassifier : The same for classes.
    PenaltyPath : Many penalties in one pass.

    Notes
    -----
    Scores count from the mean of the first targets, and step sizes follow the running deviation of y, so neither the unit nor
    the offset of y matters. With the loss poisson, ``predict`` gives exp(score), and scores count from the logarithm of the
    running mean.

    Examples
    --------
    >>> from onlinear import OnlineRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OnlineRegressor(passes=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineRegressor:
        """Train from the start, in ``passes`` passes over the rows.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. A table is a data frame, an Arrow table or a list of dicts, and may hold text
            (docs/tables.md). A stream, or an iterable of blocks (X, y) or (X, y, weight), brings its targets and
            weights; its rows are learned in its order.
        y : array-like of shape (n,) or (n, K), or str, default=None
            The targets, or the name of the column of a table that holds them. None for a stream.
        sample_weight : array-like of shape (n,) or str, default=None
            What multiplies the loss of each row, at least 0; None is 1. Where y names a column of a table, this is the name of
            another. None for a stream.

        Returns
        -------
        OnlineRegressor
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
            Where the model predicts worse than a constant, or the targets are out of reach.
        """
        return self._train_passes(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineRegressor:
        """Train on the rows once, in the order given; continue with what was trained before.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. A table is a data frame, an Arrow table or a list of dicts, and may hold text
            (docs/tables.md). A stream, or an iterable of blocks (X, y) or (X, y, weight), brings its targets and
            weights; its rows are learned in its order.
        y : array-like of shape (n,) or (n, K), or str, default=None
            The targets, or the name of the column of a table that holds them. None for a stream.
        sample_weight : array-like of shape (n,) or str, default=None
            What multiplies the loss of each row, at least 0; None is 1. Where y names a column of a table, this is the name of
            another. None for a stream.

        Returns
        -------
        OnlineRegressor
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
        return self._train_once(X, y, None, sample_weight)

    @as_it_stands
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions, in the units of the targets.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. Columns that no row has had so far have weight 0.
        return_std : bool, default=False
            Whether to give the standard deviation of the targets about the predictions too. It needs ``uncertainty=True``.

        Returns
        -------
        ndarray of the shape of y
            <w, x> + b, clipped to the targets seen with ``clip``, or the mean that the loss makes of it (poisson: exp).
        std : ndarray of the shape of y
            With ``return_std``: how far the targets may be off, in their units.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        if not (return_std and check_flag("return_std", return_std)):
            return self.means_of(self._scores(X))
        scores, std = self._scores_and_std(X)
        return self.means_of(scores), std[:, None] if self.columns_ is not None and std.ndim == 1 else std

    @as_it_stands
    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold a share of the targets. It needs ``uncertainty=True``.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units.
        coverage : float, default=0.9
            The share of the targets that lie inside, between 0 and 1, over rows like those trained on.

        Returns
        -------
        ndarray of shape (n, 2), or (n, K, 2) for y of shape (n, K)
            The lower and the upper end, in the units of the targets.

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
        >>> from onlinear import OnlineRegressor
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = OnlineRegressor(uncertainty=True, random_state=0).fit(X[:300], y[:300])
        >>> low, high = model.predict_interval(X[300:], coverage=0.9).T
        >>> bool(0.8 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 1.0)
        True
        """
        found = self._intervals(X, coverage)
        return found[:, None] if self.columns_ is not None and found.ndim == 2 else found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R2, the share of the targets' variance that predictions explain.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows.
        y : array-like of shape (n,) or (n, K), or str, default=None
            The targets, or the name of the column of a table that holds them. None for a stream, and for a table whose columns
            are those the model was trained on.
        sample_weight : array-like of shape (n,) or str, default=None
            The weights of the rows, or the name of their column. None for a stream.

        Returns
        -------
        float
            At most 1; nan where all targets of a stream are equal.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        return self.scored(X, y, sample_weight, r_squared, super().score)

    def target_places(self, y: np.ndarray, classes: Any, known: Any, anew: bool) -> tuple[np.ndarray, None]:
        """The targets of a table's rows, and no classes."""
        return y, None

    def learn_one(self, row: SingleRow, y: Any, weight: float = 1.0) -> OnlineRegressor:
        """Train on one row, a dict from names to values or a pair of columns and values.

        Parameters
        ----------
        row : mapping of str to number, text, bool or None; or tuple of two array-likes
            The values by name. A name that is new gets a column, and so does each text of a name. After training on a table the
            names are those of its columns, by its rules. Or columns, from 0, and their values, as ``predict_one`` takes them.
        y : float, or array-like of shape (K,)
            The target, or the targets of a model that was trained on several.
        weight : float, default=1.0
            What multiplies the loss of the row, at least 0.

        Returns
        -------
        OnlineRegressor
            This estimator.

        Raises
        ------
        ValueError, TypeError
            For wrong input; the estimator stays as it was.
        DivergenceError
            Where the state stops being finite.

        Examples
        --------
        >>> from onlinear import OnlineRegressor
        >>> model = OnlineRegressor().learn_one({"rooms": 3, "city": "Graz"}, 250.0)
        >>> model.get_feature_names_out().tolist()
        ['rooms', 'city=Graz']
        """
        if type(row) is not dict:
            check_row(row)
        if type(weight) is not float or weight != 1.0:
            weight = checks.one_weight(weight)
        quick, target = self._row_quick, y if type(y) is float else self._target_of_row(y)
        if quick is None or weight != 1.0 or not quick.learn(self, row, target):
            if self.is_fitted:
                self.learn_row(row, target, weight)
            else:
                self.learn_first(row, target, weight)
        return self

    def _target_of_row(self, y: Any) -> Any:
        """The target of one row, or all of a model with several."""
        outputs = self.learner_.n_outputs if self.is_fitted else 1
        return checks.one_target(y) if outputs == 1 else checks.targets([y], 1, outputs)[0]

    def begin_rows(self, row: SingleRow, y: float, weight: float) -> None:
        self.columns_ = None
        self.start_with_row(row, 1)

    def learn_known(self, row: SingleRow, y: float, weight: float) -> None:
        self.learn_row(row, y, weight)

    def predict_one(self, indices: Any, values: Any = None) -> Any:
        """The prediction of one row, given by its non-zeros or as a dict, in some microseconds.

        Parameters
        ----------
        indices : array-like of shape (nnz,), integers; or mapping of str to number, text, bool or None
            The columns, from 0. Ascending ones without repeats are fastest. Or the values by name; names that are not known
            count as 0. Or a tuple of both arguments.
        values : array-like of shape (nnz,), default=None
            The values at these columns, in their own units. Arrays of float64 or float32 are fastest. None with a dict.

        Returns
        -------
        float, or ndarray of shape (K,)
            What ``predict`` gives for the row.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state of the model is not finite.
        """
        if values is None:
            quick = self._row_quick
            if quick is not None and (score := quick.score(self, indices)) is not None:
                if self.columns_ is not None:
                    return self._mean_of_row(score)
                return score if quick.mean is None else float(quick.mean(np.float64(score)))
            if is_record(indices):
                self.fitted_learner()
                return self._mean_of_row(self.score_dict(indices))
        return self._mean_of_row(self.fitted_learner().predict_one(*pair_of(indices, values)))

    def _mean_of_row(self, score: Any) -> Any:
        """What ``predict`` gives for a row, whose score is a float or (K,)."""
        found = self.means_of(np.array([score]))[0]
        return found if np.ndim(found) else float(found)

    @property
    def coef_(self) -> np.ndarray:
        """Weights as ``predict`` uses them, in the columns' own units: (d,), or (K, d) for y of shape (n, K)."""
        coef = self._coef(average=True)
        return coef if self.columns_ is None else np.atleast_2d(coef)

    @property
    def intercept_(self) -> Any:
        """The intercept, a float, or (K,) for y of shape (n, K)."""
        found = self.fitted_learner().intercept(average=True)
        return found if self.columns_ is None else np.atleast_1d(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self._labels() == "counts"
        return tags

    def _labels(self) -> str:
        try:
            return loss_labels(self.built_loss())
        except (TypeError, ValueError):
            return "real"

    def make_targets(
        self, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Targets (n, K), weights of the rows, and K. ``first``: no rows came before; ``balance``: these are all rows."""
        columns = None if y.ndim == 1 else y.shape[1]
        if first:
            self.columns_ = columns
        elif columns != self.columns_:
            raise ValueError(f"y has shape {y.shape}; the first call's y had {self.columns_ or 'no'} columns.")
        return y, checks.weights(sample_weight, len(y)), columns or 1

    def targets_as_fitted(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        targets, weights, _ = self.make_targets(y, sample_weight, None, first=False, balance=True)
        return targets, weights
