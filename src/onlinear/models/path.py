"""A path of penalties learned in one pass over the rows, and an honest choice among them.

    for k = 1 .. K:   minimise  mean_i s_i l(<w, x_i> + b, y_i) + r_k(w)

All K models see the same rows in the same order. So rows are read, checked and scaled once, and the models learn side by side
(``learner/side_by_side.py``); each is bit-identical to a model that was trained alone. Every model scores every row before it
learns it. The mean loss of these scores, the progressive loss, is hence that of rows which the model has not seen, and the
penalty with the smallest one is found without rows held out and without a second pass.

It is a meta-estimator, like ``GridSearchCV``, and not a function like ``lasso_path``, because a stream has no end at which a
function could return: ``partial_fit`` continues, ``save`` and ``load`` resume.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from math import ceil
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from onlinear.certified import shortfall
from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.errors import ModelFileError
from onlinear.files import model_file
from onlinear.files.model_file import arrays_of_each
from onlinear.learner.classes import best_class
from onlinear.learner.parts import build_penalty
from onlinear.learner.scores import predictors_of
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.models.answers import warn
from onlinear.models.arguments import check_passes, fix_scales, is_auto, is_stream, refuse_no_weight
from onlinear.models.estimators import ESTIMATORS, OnlineClassifier
from onlinear.models.feed import Blocks, Feed, orders, rows_told, start_passes
from onlinear.models.fitted_path import FittedPath
from onlinear.models.loading import refusing, restored
from onlinear.models.moments import as_made, moment_of
from onlinear.models.online import Checked, Online
from onlinear.models.stored_model import must
from onlinear.models.strengths import with_strengths
from onlinear.models.tables import has_other_than_numbers, is_table
from onlinear.models.tasks import TakesCallbacks, fit_tasks
from onlinear.models.together import Tally, Together, shared
from onlinear.models.turns import in_turn, learned, unchanged_on_error, without_turn
from onlinear.rows import named_columns
from onlinear.solvers.packs.team import threads_of
from onlinear.text.arguments import name_arguments
from onlinear.text.form import check_flag
from onlinear.text.warned import warn_caller
from onlinear.training.few_rows import Chosen, choose_shared_passes, rows_of_source
from onlinear.training.tasks import NOBODY, PENALTY, Attributes, Tasks


class PenaltyPath(TakesCallbacks, FittedPath, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """One estimator trained with each of several penalties, all in one pass over the rows.

    Each model equals ``clone(estimator).set_params(penalty=...)`` trained alone, bit for bit (where rows are shuffled: with the
    same integer ``random_state``). Every model scores every row before it is learned, so the penalty with the smallest mean of
    these losses needs no rows held out and no second pass.

    Parameters
    ----------
    estimator : OnlineClassifier or OnlineRegressor
        The settings of all models; its own penalty and ``warm_start`` are not used, nor are ``verbose`` and ``callbacks``
        without ``tol``. Batch solvers are refused.
    penalties : list of str, float or penalty objects
        The K penalties, such as ``["l1=1e-4", "l1=1e-3"]``. A number is the strength of an l1 penalty:
        ``np.geomspace(1e-6, 1e-3, 32)``.
    grow : bool, default=False
        Whether rows may bring new columns from call to call, behind those that are known. A column that no row has had so far
        has weight 0.
    n_jobs : int, default=None
        The threads that share the models: None is 1, -1 all cores. They change nothing but the time. The search for the passes
        with ``passes="auto"`` takes the ``n_jobs`` of the estimator.
    tol : float, default=None
        The certified relative duality gap to which ``fit`` takes each model, one penalty after the other from the strongest to
        the weakest, each from the model before. There are no progressive losses then, and no best model: choose by other rows,
        with ``predict_all`` and ``estimator_at``. None takes the ``tol`` of the estimator.

    Attributes
    ----------
    penalties_ : list of length K
        The penalties, in the order of all that follows.
    coefs_ : ndarray of shape (K, d) or (K, outputs, d)
        The weights of every model as its ``coef_``, in the columns' own units.
    intercepts_ : ndarray of shape (K,) or (K, outputs)
        The intercepts.
    losses_ : ndarray of shape (K,)
        The progressive loss: the mean loss of rows scored before they were learned, by their weights (those of classes too),
        summed over outputs. Only the first pass counts; in later ones no row is new.
    errors_ : ndarray of shape (K,)
        Of classifiers: the share of rows of the first pass, by these weights, whose class was guessed wrong before they were
        learned.
    nonzeros_ : ndarray of shape (K,)
        Weights that are not 0.
    dual_gaps_ : ndarray of shape (K,)
        With ``tol``: the certified relative duality gaps; ``converged_``: which of them are at most ``tol``.
    best_index_ : int
        The place of the smallest progressive loss; after ``fit`` with ``passes="auto"``, of the smallest loss of the rows that
        were held out. There is none with ``tol``. For three classes or more there is none where some penalties take softmax and
        others, with bounds or total variation, a loss for each class, as progressive losses of the two cannot be compared: name
        ``loss`` then.
    best_penalty_ : str or penalty object
        The penalty there.
    best_estimator_ : OnlineClassifier or OnlineRegressor
        A copy of its model, which continues by itself.
    classes_ : ndarray
        The classes, of a classifier.
    n_features_in_ : int
        The columns known.
    feature_names_in_ : ndarray of str, of shape (d,)
        Their names, where X was a data frame.
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

    tol: float | None = None  # of pickles that are older than it
    _group: Together | None

    @name_arguments
    def __init__(
        self, estimator: Any, penalties: Any, *, grow: bool = False, n_jobs: int | None = None, tol: float | None = None
    ) -> None:
        self.estimator = estimator
        self.penalties = penalties
        self.grow = grow
        self.n_jobs = n_jobs
        self.tol = tol

    # --- learning ----------------------------------------------------------------------------------------------------

    @in_turn
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PenaltyPath:
        """Train every model from the start, in the estimator's ``passes`` over the same rows in the same order.

        With ``passes="auto"`` all models make the same passes: those of the penalty with the smallest loss on held-out rows. To
        find them takes five times as long as the most passes of all models, or longer. The best model is the one whose loss on
        these rows is smallest after those passes.

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

        Warns
        -----
        ConvergenceWarning
            Where ``tol`` was not reached in ``max_passes`` passes; it names the penalty.
        QualityWarning
            Where the best model predicts worse than a constant, or the rows cannot teach it; with ``tol`` where columns are far
            from 0, or one class alone has rows of a weight. Where columns, targets or weights are too small to say anything.
        """
        with fit_tasks(self, X, y, sample_weight) as tasks:
            return self._fit(X, y, sample_weight, tasks)

    def _fit(self, X: Any, y: Any, sample_weight: Any, tasks: Tasks) -> PenaltyPath:
        with unchanged_on_error(self), named_columns(X):
            _refuse_other_than_numbers(X, y)
            fresh = self._new_models()
            if self._tol is not None:
                return self._fit_to_tolerance(fresh, X, y, sample_weight, tasks)
            lead = fresh[0]
            shuffle, draw = lead.check_run()
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, None, first=True, balance=True)
            passes, chosen = check_passes(lead.passes, X.shape[0]), [Chosen(1)] * len(fresh)
            refuse_no_weight(weights)
            group = self._begin(fresh, outputs, total=len(y) * passes)
            if lead.chosen_scale() == "standard":
                fix_scales([model.learner_ for model in fresh], X, weights)
            source, y, weights = group.check(X, y, weights)
            source = source.held() if passes > 1 or shuffle else source
            if is_auto(lead.passes) and passes > 1:
                chosen = choose_shared_passes([model.learner_ for model in fresh], rows_of_source(source, y, weights), shuffle)
                passes = chosen[0].passes
                for model in fresh:
                    model.learner_.total = len(y) * passes
            self._models, self._group, self._tally = fresh, group, Tally.of(len(fresh))
            rows = rows_told(outputs * len(fresh))
            start_passes(tasks, passes, ceil(source.n / rows))
        feed = Feed(source, y, weights, orders(draw, source.n, shuffle, passes), source.n)
        for made, blocks in enumerate(feed.passes(tasks, rows), start=1):
            for model in fresh:
                model.n_iter_ = made
            self._run(blocks, seen=made > 1)
            if made == passes:  # none was left out; callbacks that are told of its end find what is kept
                self._keep(chosen)
        fresh[0].warn_of_small_numbers()
        if self._has_best:
            warn(self._best.doubts(X, feed, None, ordered=not shuffle))
        return self

    def _keep(self, chosen: list[Chosen]) -> None:
        """Keep what held-out rows said of the models: slopes, and which of them is best."""
        for model, (_, slope, _) in zip(self._models, chosen, strict=True):
            if slope is not None:
                model.learner_.keep_slope(slope)
        losses = [loss for _, _, loss in chosen if loss is not None]
        self._tally.held_out = np.array(losses) if len(losses) == len(chosen) else None

    def copied_attributes(self) -> Attributes:
        """Attributes that make a copy of the path predict as it does now, whatever it learns later."""
        return {"_models": deepcopy(self._models), "_tally": deepcopy(self._tally), "_group": None}

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
        if not first:
            if self._models[0].learner_.engine.batch:
                raise ValueError(
                    "the path was fitted with tol=, to optima of all rows at once: it does not continue row by row."
                )
            self._refuse_other_settings()
        _refuse_other_than_numbers(X, y)
        fresh = self._new_models() if first else self._models
        lead = fresh[0]
        with unchanged_on_error(self), unchanged_on_error(lead), named_columns(X):
            X, y, weights, outputs = self._rows_for(lead, X, y, sample_weight, classes, first=first, balance=False)
            group = self._begin(fresh, outputs, total=None) if first else self._together()
            source, y, weights = group.check(X, y, weights)
            self._models, self._group = fresh, group
            self._tally = Tally.of(len(fresh)) if first else self._tally
            if self.grow:
                self._share_names()
        for blocks in Feed(source, y, weights, iter([None]), source.n).passes(NOBODY, rows_told(outputs * len(fresh))):
            self._run(blocks, seen=False)
        return self

    @property
    def _tol(self) -> float | None:
        """The gap to which ``fit`` takes each model: the path's, else the estimator's."""
        return self.estimator.tol if self.tol is None else self.tol

    def _fit_to_tolerance(self, fresh: list[Online], X: Any, y: Any, sample_weight: Any, tasks: Tasks) -> PenaltyPath:
        """Fit one model after the other to the same rows, the strongest penalty first, each from the one before."""
        places = sorted(range(len(fresh)), key=lambda place: strength(fresh[place].chosen_penalty()))
        lead, start = fresh[places[0]], None
        lead.check_run()
        lead.check_certified()
        rows, targets, weights, outputs = self._rows_for(lead, X, y, sample_weight, None, first=True, balance=True)
        refuse_no_weight(weights)
        known, learners = learned(lead), []
        for place in places:
            fresh[place].__dict__.update(known)
            with _naming(place):
                learners.append(fresh[place].certified_learner(outputs))
        checked = Checked(rows, targets[:], weights)
        whole = lead.whole(learners[0], checked)
        tasks.start(PENALTY, len(fresh))
        for place, learner in zip(places, learners, strict=True):
            model = fresh[place]
            with warnings.catch_warnings(), tasks.around(PENALTY, model):
                warnings.simplefilter("ignore", ConvergenceWarning)
                if start is None and model.passes_first():
                    model.fit(X, y, sample_weight)
                else:
                    model.fit_whole(learner, whole, start, X, y, sample_weight)
            start = predictors_of(model.learner_)
        if not lead.passes_first():
            lead.warn_of_offsets(rows)
            lead.warn_of_one_class(checked)
            lead.warn_of_small_numbers()
        self._models, self._group, self._tally = fresh, None, Tally.of(len(fresh))
        self._warn_of_shortfalls()
        return self

    def _warn_of_shortfalls(self) -> None:
        for penalty, model in zip(self.penalties, self._models, strict=True):
            if not model.converged_:
                said = shortfall(model.dual_gap_, model.learner_.solver.tol, model.n_passes_)
                warn_caller(f"penalty {penalty!r}: {said}", ConvergenceWarning)

    def _new_models(self) -> list[Online]:
        if not isinstance(self.estimator, tuple(ESTIMATORS.values())):
            raise TypeError(f"estimator must be an OnlineClassifier or OnlineRegressor, got {self.estimator!r}.")
        if self.estimator.uncertainty:
            raise ValueError("a path tells no uncertainty: fit an estimator of the chosen penalty with uncertainty=True.")
        self.estimator.refuse_columns_asked("a path learns rows as they come", "open the table with streams.open")
        threads_of(self.n_jobs)
        check_flag("grow", self.grow)
        if not _is_list(self.penalties):
            raise ValueError(f"penalties must be a list of at least one penalty, got {self.penalties!r}.")
        for place, penalty in enumerate(self.penalties):
            with _naming(place):
                build_penalty(_as_penalty(penalty))
        own = {"l1": None, "l2": None, "tol": self._tol}  # its own penalty is not used
        return [clone(self.estimator).set_params(penalty=_as_penalty(penalty), **own) for penalty in self.penalties]

    def _refuse_other_settings(self) -> None:
        """Raise ValueError where the estimator's settings or the penalties are others since: no later row would follow them."""
        self._models[0].refuse_other_settings(self.estimator, own=("penalty", "l1", "l2"))
        begun, asked = [model.penalty for model in self._models], list(map(_as_penalty, self.penalties))
        if len(begun) != len(asked):
            raise ValueError(
                f"the path was begun with {len(begun)} models, which further rows continue, and penalties has {len(asked)}: "
                "set it back, or begin anew with fit."
            )
        for place, (then, now) in enumerate(zip(begun, asked, strict=True)):
            if now is not then and now != then:
                raise ValueError(
                    f"the path was begun with the penalty {then!r} at place {place}, which further rows continue, and "
                    f"penalties has {now!r} there: set it back, or begin anew with fit."
                )

    def _rows_for(
        self, lead: Online, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[Any, np.ndarray, np.ndarray, int]:
        """Rows as the estimator checks them: X, y (n, outputs), weights, outputs."""
        known = None if first else getattr(lead, "feature_names_in_", None)
        X, y = lead.validate_rows(X, y, first=first or self.grow)
        if self.grow and not first:
            _keep_names(lead, known, X.shape[1])
        return X, *lead.make_targets(y, sample_weight, classes, first=first, balance=balance)

    def _begin(self, fresh: list[Online], outputs: int, total: int | None) -> Together:
        lead = fresh[0]
        lead.history_, lead.encoding_, lead.n_iter_ = [], None, 1
        if self.grow:
            lead.n_features_in_ = None
        known = learned(lead)
        for penalty, model in zip(self.penalties, fresh, strict=True):
            model.__dict__.update(known)
            if model.take(model.new_learner(outputs, total)).engine.batch:
                raise ValueError(f"solver {model.solver!r} needs all rows at once; a path learns {penalty!r} row by row.")
        return self._of(fresh)

    def _of(self, fitted: list[Online]) -> Together:
        return Together([model.learner_ for model in fitted], list(self.penalties), threads_of(self.n_jobs))

    def _together(self) -> Together:
        if self._group is None:
            self._group = self._of(self._models)
        return self._group

    def _share_names(self) -> None:
        """Let all models have the names of the columns that the first has."""
        names = vars(self._models[0]).get("feature_names_in_")
        for model in self._models[1:]:
            model.__dict__.pop("feature_names_in_", None)
            if names is not None:
                model.feature_names_in_ = names

    def _run(self, blocks: Blocks, *, seen: bool) -> None:
        """Learn a pass; ``seen``: its rows are not new, so they say nothing of rows to come."""
        try:
            self._learn_pass(blocks, seen=seen)
        finally:  # Ctrl-C leaves the rows before it learned
            if self.grow:
                for model in self._models:
                    model.n_features_in_ = max(1, model.learner_.size)

    def _learn_pass(self, blocks: Blocks, *, seen: bool) -> None:
        before, tally, rows = self._sums(), self._tally, self.t_
        if seen:
            for model in self._models:
                model.learner_.end_first_pass()
        for source, y, weights, where in blocks:
            with uninterrupted():  # so that all models have learned the same rows
                scores = self._together().learn(source, y, weights, where)
                if not seen:
                    by_class = isinstance(self.estimator, OnlineClassifier)
                    tally.add(weights, best_class(scores, axis=1) != best_class(y, axis=1) if by_class else None)
        if seen:
            with np.errstate(invalid="ignore"):  # of sums that have overflown
                tally.later_loss = tally.later_loss + (self._sums() - before)
            tally.later_rows += self.t_ - rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_models")

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            own.estimator_type, own.classifier_tags, own.regressor_tags,
        )  # fmt: skip
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags

    # --- groups ------------------------------------------------------------------------------------------------------

    def in_groups(self, size: int) -> list[PenaltyPath]:
        """Paths of up to ``size`` of the penalties each, not trained; ``take`` puts them together again once they are."""
        self._new_models()
        if self._tol is not None:
            raise ValueError(f"tol={self._tol!r}: a path to optima needs all rows at once, and groups learn row by row.")
        penalties = list(self.penalties)
        starts = range(0, len(penalties), size)
        return [type(self)(self.estimator, penalties[k : k + size], grow=self.grow, n_jobs=self.n_jobs) for k in starts]

    def take(self, groups: list[PenaltyPath]) -> PenaltyPath:
        """Become what groups of its penalties are together, which have been trained on the same rows."""
        fitted = [group.trained() for group in groups]
        self._models, self._group = [model for models, _ in fitted for model in models], None
        self._tally = Tally.together([tally for _, tally in fitted])
        return self

    def trained(self) -> tuple[list[Online], Tally]:
        """The trained models, and what was counted."""
        return self._fitted(), self._tally

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
        models = self._fitted()
        headers, arrays = [], self._tally.arrays()
        for k, model in enumerate(models):
            header, own = model.freeze()
            headers.append(header)
            shares = k > 0 and shared(model.learner_) == shared(models[0].learner_)
            arrays |= {f"{k}/{name}": array for name, array in own.items() if not (shares and name == "scales")}
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
            For a file that holds no path, or is damaged.
        ValueError
            For a wrong ``n_jobs``.
        """
        threads_of(n_jobs)
        header, arrays = model_file.read(path)
        with refusing(path, {}):
            if header.get("kind") != "path":
                raise ModelFileError(f"holds a model of the kind {header.get('kind')!r}, not a path of penalties.")
            must(isinstance(header["grow"], bool), "grow")
            must(isinstance(header["models"], list) and len(header["models"]) > 0, "models")
            own = arrays_of_each(arrays, "/")
            fitted = [_model(described, own.get(str(k), {}), arrays) for k, described in enumerate(header["models"])]
            loaded = cls(clone(fitted[0]), [model.penalty for model in fitted], grow=header["grow"], n_jobs=n_jobs)
            loaded._models, loaded._group, loaded._tally = fitted, None, Tally.read(arrays, len(fitted))
        return loaded

    @in_turn
    def __getstate__(self) -> dict[str, Any]:
        state = without_turn(super().__getstate__())
        if "_models" not in state:
            return state
        models = [moment_of(model) for model in self._models]
        return state | {"_models": models, "_tally": deepcopy(self._tally), "_group": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        models = {"_models": list(map(as_made, state["_models"]))} if "_models" in state else {}
        super().__setstate__(state | models)

    def __copy__(self) -> Self:
        twin: Any = object.__new__(type(self))
        vars(twin).update(without_turn(vars(self).copy()), **({"_group": None} if hasattr(self, "_models") else {}))
        return twin


def strength(penalty: Any) -> tuple[float, float]:
    """By what penalties of a path are ordered, the strongest first."""
    built = build_penalty(penalty)
    return -getattr(built, "l1", 0.0), -getattr(built, "l2", 0.0)


@contextmanager
def _naming(place: int) -> Iterator[None]:
    """Say in errors of the block which of the penalties they are about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"penalties[{place}]: {error}") from None


def _keep_names(lead: Online, known: np.ndarray | None, width: int) -> None:
    """Let the columns of a model's checked rows, ``width`` of them, continue the ``known`` names.

    Raises ValueError for a column that has another name than before: its place would tell another one.
    """
    given = lead.__dict__.pop("feature_names_in_", None)
    if known is None or (given is None and width > len(known)):
        return
    for place, (then, now) in enumerate(zip(known, () if given is None else given, strict=False)):
        if then != now:
            raise ValueError(
                f"X has the column {now!r} at place {place}, and the rows before had {then!r} there: with grow=True further "
                "columns stand behind those that are known."
            )
    lead.feature_names_in_ = known if given is None or len(given) < len(known) else given


def _is_list(penalties: Any) -> bool:
    """Whether these are one penalty or more, in an order."""
    if isinstance(penalties, (str, set, frozenset, Mapping)) or getattr(penalties, "shape", None) == ():
        return False
    return hasattr(penalties, "__len__") and len(penalties) > 0


def _as_penalty(penalty: Any) -> Any:
    """A number as the text of an l1 penalty; any other penalty as it is."""
    if isinstance(penalty, (int, float, np.integer, np.floating)) and not isinstance(penalty, bool):
        return with_strengths("none", penalty, None)
    return penalty


def _model(header: Header, own: Arrays, arrays: Arrays) -> Online:
    """The model of a header and its own arrays, beside those of all models."""
    if "0/scales" in arrays:
        own.setdefault("scales", arrays["0/scales"])
    must(isinstance(header, dict) and header["kind"] in ESTIMATORS, "models")
    return cast(Online, restored(header | {"final": False}, own, ESTIMATORS, {}))


def _refuse_other_than_numbers(X: Any, y: Any) -> None:
    """Raise TypeError for rows that estimators read and a path does not."""
    what = _what_is_read(X, y)
    if what is not None:
        raise TypeError(
            f"a path learns an array or data frame of numbers and an array y, got {what}: give the blocks of streams.open(...) "
            "one by one, as partial_fit(block.X, block.y), with grow=True."
        )


def _what_is_read(X: Any, y: Any) -> str | None:
    """What rows are that must be read first, in words; None for rows of numbers."""
    if is_stream(X, y):
        return "a stream or blocks"
    if not is_table(X):
        return None
    if isinstance(y, str):
        return f"the name of a column, {y!r}"
    return "a table with more than numbers, or dicts" if has_other_than_numbers(X) else None
