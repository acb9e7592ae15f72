"""What a trained estimator answers: scores of rows, in whatever form they come, gaps, explanations and weights by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from math import nan
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from onlinear.certified import why_loose
from onlinear.learner.scores import predictors_of
from onlinear.models.arguments import (
    is_blocks,
    is_stream,
    named_objects,
    refuse_other_width,
    refuse_targets_of_stream,
    refuse_unseen,
    weights_to_score,
)
from onlinear.models.base import Model, Regressor
from onlinear.models.evaluation import gap_of_stream, targets_of
from onlinear.models.explaining import Explainer, Explanation
from onlinear.models.one_by_one import OneByOne, SingleRow
from onlinear.models.predictor import Final
from onlinear.models.tables import (
    as_dicts,
    as_numbers,
    columns_known,
    feature_names,
    has_other_than_numbers,
    is_table,
    names_target,
    open_labelled,
    open_rows,
    records_with_targets,
    refuse_other_blocks,
    refuse_other_columns,
    refuse_other_names,
    remark_on_blocks,
    remark_on_columns,
)
from onlinear.models.targets import WANTED, as_targets, targets_to_score
from onlinear.rows import column_names, named_columns
from onlinear.streams import Stream
from onlinear.streams.blocks import joined, refuse_no_rows
from onlinear.streams.pairs import Pairs
from onlinear.text.extras import needed_by
from onlinear.text.warned import warn_caller
from onlinear.training.options import REGRESS
from onlinear.training.quality import QualityWarning

ROWS_AS_GIVEN: dict[str, Any] = {"accept_sparse": True, "dtype": [np.float64, np.float32], "ensure_all_finite": False}


class TableNames:
    """``feature_names_in_`` of a model of tables; one that was trained on a frame of numbers has an attribute of that name."""

    def __get__(self, model: Any, owner: Any = None) -> Any:
        names = None if model is None else feature_names(vars(model).get("encoding_"))
        if names is None:
            if model is not None:
                model.fitted_learner()  # which refuses where there is none
            raise AttributeError("feature_names_in_: the model was trained on rows without names of columns.")
        return names


class Answers(OneByOne, Model):
    """The part of the estimators that takes rows as arrays, tables, dicts, streams or blocks, and answers for them."""

    predict_one: Callable[..., Any]
    feature_names_in_ = TableNames()

    # --- rows in every form ------------------------------------------------------------------------------------------

    def validate_rows(self, X: Any, y: Any, *, first: bool) -> tuple[Any, Any]:
        """X and y as scikit-learn checks them; ``first``: whether they say how many columns there are."""
        if not first and self._needs_no_check(X) and is_numbers(y, X.shape[0]):
            return X, y
        refuse_unseen(X)
        if sp.issparse(y):
            raise TypeError("y must be dense, got a sparse array: use y.toarray().")
        y = as_targets(X, y, numbers=self.task == REGRESS)
        X = as_numbers(X)
        self._refuse_sparse(X)
        kinds = {"multi_output": True, "y_numeric": True} if isinstance(self, Regressor) else {}
        with named_objects(X):
            return validate_data(self, X, y, reset=first, **ROWS_AS_GIVEN, **kinds)

    def _needs_no_check(self, X: Any) -> bool:
        """Whether X is as scikit-learn's checks would leave it: for a single row they cost ten times its step."""
        kind = type(X)
        if kind is not np.ndarray and (kind not in (sp.csr_matrix, sp.csr_array) or self.chosen_scale() == "standard"):
            return False
        fits = X.dtype in ROWS_AS_GIVEN["dtype"] and X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == self.n_features_in_
        return fits and not hasattr(self, "feature_names_in_")

    def _refuse_sparse(self, X: Any) -> None:
        if self.chosen_scale() == "standard" and sp.issparse(X):
            raise ValueError("scale='standard' centres the columns, which needs dense rows; for sparse X use scale='rms'.")

    def _reads_dicts(self) -> bool:
        """Whether rows as dicts have taught it which columns there are."""
        described = getattr(self, "encoding_", None)
        return described is not None and described["format"] == "names"

    def _reads_tables(self) -> bool:
        """Whether tables have taught it which columns there are."""
        return feature_names(getattr(self, "encoding_", None)) is not None

    def _columns_known(self) -> dict[str, Any]:
        """How the columns of tables are those of the model; raises ValueError where it knows no names."""
        if self.encoding_ is None and self.is_fitted:
            self.refuse_names_of_final("rows of numbers")
        return columns_known(self.encoding_, self.names_of_numbers())

    def _as_stream(self, X: Any) -> Stream:
        """A stream of the model's columns as it is, blocks (X, y) as one."""
        if not isinstance(X, Stream):
            return Pairs(X, check=self._check_blocks)
        self._check_columns(X)
        return X

    def _check_columns(self, stream: Stream) -> None:
        """Raise ValueError for columns that are not the model's, and warn where only their places tell."""
        refuse_other_columns(stream, self)
        if (remark := remark_on_columns(stream, self)) is not None:
            warn_caller(remark, UserWarning)

    def _check_blocks(self, place: str, names: list[str] | None) -> None:
        """The same of blocks (X, y), by the names of the first."""
        refuse_other_blocks(names, self)
        if (remark := remark_on_blocks(place, names, self)) is not None:
            warn_caller(remark, UserWarning)

    # --- answers -----------------------------------------------------------------------------------------------------

    def duality_gap(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """How far the objective is at most above that of the best model, relative and certified.

        Parameters
        ----------
        X : array-like, sparse container, table of shape (n, d), or stream
            The rows, in their own units. A stream, or an iterable of blocks (X, y) or (X, y, weight), brings its targets and
            weights; it is read once, in O(features) of memory, and its gap is looser than that of the same rows in memory.
        y : array-like of shape (n,) or (n, K), or str, default=None
            The targets, or the name of the column of a table that holds them. None for a stream, and for a table whose columns
            are those the model was trained on.
        sample_weight : array-like of shape (n,) or str, default=None
            What multiplies the loss of each row, at least 0, or the name of the column of a table that holds it; None is 1.
            Weights of classes are those of ``fit``.

        Returns
        -------
        float
            (F - D) / (F - inf l), where F is the objective on these rows and D a bound that no model with these column scales
            is below. At a gap of e, F is at most e / (1 - e) above the optimum, relative to it. Of several classes or targets
            the largest.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        ValueError, TypeError
            For wrong input, without a penalty, and for parts without a conjugate.
        DivergenceError
            Where the state of the model is not finite.

        Warns
        -----
        QualityWarning
            For a loss with kinks (hinge, absolute, ...), whose slope at a kink the weights do not tell: the gap may be far
            above the true distance.
        """
        learner = self.fitted_learner()
        if is_stream(X, y):
            refuse_targets_of_stream(y, sample_weight)
            found = gap_of_stream(self, self._as_stream(X))
        else:
            if isinstance(learner, Final):
                raise ValueError("the model only predicts: it was saved without its penalty and scales.")
            with named_columns(X):
                if self._takes_as_table(X, y):
                    X, y, sample_weight = self._rows_of_table(X, y, sample_weight)
                else:
                    X, y = self.validate_rows(X, y, first=False)
                found = learner.duality_gap(X, *self.targets_as_fitted(y, sample_weight))
        loose = why_loose(learner.loss)
        warn([] if loose is None else [f"{loose[0].upper()}{loose[1:]}"])
        return found

    def _takes_as_table(self, X: Any, y: Any) -> bool:
        """Whether rows in memory have the columns of a table or of dicts that the model learned, or their own targets."""
        return is_table(X) and (self._reads_dicts() or self._reads_tables() or names_target(X, y) or has_other_than_numbers(X))

    def _rows_of_table(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """The rows of a table in the model's columns, with targets and weights as arrays."""
        if self._reads_dicts():
            dicts, y, sample_weight = records_with_targets(X, y, sample_weight)
            return self.dicts_as_rows(dicts), as_targets(X, y, numbers=self.task == REGRESS), sample_weight
        if self.learner_.centres_rows:
            raise ValueError("scale='standard' makes rows dense, which those of a table are not: a gap needs scale='rms'.")
        own = names_target(X, y)
        stream = self._labelled(X, y, sample_weight) if own else open_rows(X, self._columns_known())
        blocks = list(stream)
        refuse_no_rows(stream.name, sum(block.n for block in blocks))
        rows = joined(blocks)
        if own:
            y, sample_weight = targets_of(self, stream, rows), rows.importance
        return rows.within(max(1, self.learner_.size)), as_targets(X, y, numbers=self.task == REGRESS), sample_weight

    @abstractmethod
    def targets_as_fitted(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """The targets (n, K) and the weights of rows as ``fit`` would take them, for the model as it is."""

    def _scores(self, X: Any) -> np.ndarray:
        return self.found_of(X, self.fitted_learner().predict)

    def _scores_and_std(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The scores, and how far they may be off; each row is read once."""
        learner = self.fitted_learner()
        found = self.found_of(X, lambda rows: np.stack([learner.predict(rows), learner.predict_std(rows)], axis=-1))
        return found[..., 0], found[..., 1]

    def _intervals(self, X: Any, coverage: float) -> np.ndarray:
        learner = self.fitted_learner()
        return self.found_of(X, lambda rows: learner.predict_interval(rows, coverage))

    def found_of(self, X: Any, read: Callable[[Any], np.ndarray]) -> np.ndarray:
        """What ``read`` finds of all rows, which it takes as an array or a block at a time."""
        if isinstance(X, Stream):
            return self._found_of_stream(self._as_stream(X), read)
        if is_table(X) and self._reads_dicts():
            return read(self.dicts_as_rows(as_dicts(X)))
        if is_table(X) and (self._reads_tables() or has_other_than_numbers(X)):
            return self._found_of_stream(open_rows(X, self._columns_known()), read)
        if self._needs_no_check(X):
            return read(X)
        if is_blocks(X):
            return self._found_of_stream(self._as_stream(X), read)
        columns = feature_names(getattr(self, "encoding_", None))
        refuse_unseen(X, columns)
        X = as_numbers(X)
        with named_columns(X), named_objects(X):
            if isinstance(self.learner_, Final) or columns is not None:
                refuse_other_names("X", column_names(X), getattr(self.learner_, "names", None))
                X = check_array(X, **ROWS_AS_GIVEN)  # without the names: those of a table's columns are not those of X
                refuse_other_width(X, self.learner_.size, columns)
                return read(X)
            return read(validate_data(self, X, reset=False, **ROWS_AS_GIVEN))

    def _found_of_stream(self, stream: Stream, read: Callable[[Any], np.ndarray]) -> np.ndarray:
        """What ``read`` finds of all rows of a stream; columns that the model has never seen have weight 0."""
        width = max(1, self.learner_.size)
        found = [read(block.within(width)) for block in stream]
        return np.concatenate(found) if found else read(sp.csr_matrix((0, width)))

    def scored(self, X: Any, y: Any, sample_weight: Any, of_stream: Callable[[Any, Stream], float], of_rows: Any) -> float:
        """What ``score`` measures: ``of_stream`` of a stream or a table with its own targets, ``of_rows`` of other rows."""
        self.fitted_learner()
        if names_target(X, y) and self._reads_dicts():
            X, y, sample_weight = records_with_targets(X, y, sample_weight)
        elif is_stream(X, y) or names_target(X, y):
            return of_stream(self, self._labelled(X, y, sample_weight))
        y = targets_to_score(X, y, numbers=self.task == REGRESS)
        return float(of_rows(X, y, weights_to_score(y, sample_weight)))

    def _labelled(self, X: Any, y: str | None, sample_weight: Any) -> Stream:
        """A stream of the model's columns, or a table with its own targets as one."""
        if is_stream(X, y) and not is_table(X):
            refuse_targets_of_stream(y, sample_weight)
            return self._as_stream(X)
        if y is None and not self._reads_tables():
            raise ValueError(f"{WANTED}.")
        return open_labelled(X, y, sample_weight, self._columns_known())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns of ``coef_``.

        Parameters
        ----------
        input_features : None, default=None
            Not used; scikit-learn's transformers have it.

        Returns
        -------
        ndarray of str, of shape (n_features_in_,)
            As a table or data frame names them: ``price``, ``site=a.org`` of a category, ``site=a.org + site=b.org`` where two
            share a hashed column, ``site (hashed)`` where no name is known. ``x0``, ``x1``, ... where there are no names.

        Raises
        ------
        NotFittedError
            Before the first ``fit`` or ``partial_fit``.
        """
        columns = np.arange(self.fitted_learner().size)
        names = self.feature_names(columns)
        return np.array([f"x{j}" if name is None else name for j, name in zip(columns, names, strict=True)], dtype=object)

    def explain(self, row: SingleRow) -> Explanation:
        """Why a row has its score: its terms, weight times value of each feature, as ``onlinear explain`` shows them.

        Parameters
        ----------
        row : mapping of str to number, text, bool or None; or pair of array-likes
            The values by name, or columns and values, as ``predict_one`` takes them.

        Returns
        -------
        Explanation
            A tuple with the names ``predicted``, the class or number; ``probability`` of that class, None where there is none;
            ``output``, the class whose score this is: that of ``predicted``, of two classes the second; ``score``, which is
            ``intercept`` plus the contributions of all ``terms``. These are tuples of ``name``, ``column``, ``value``,
            ``weight`` and ``contribution``, the largest first. Values of 0 are none. Of several targets the score is that of
            the first.

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
        >>> from onlinear import OnlineClassifier
        >>> rows = [{"price": 2.0, "site": "a.org"}, {"price": 1.0, "site": "b.org"}] * 20
        >>> found = OnlineClassifier().fit(rows, ["yes", "no"] * 20).explain(rows[0])
        >>> found.predicted, sorted(term.name for term in found.terms)
        ('yes', ['price', 'site=a.org'])
        """
        while True:
            learner = self.fitted_learner()
            self.predict_one(row)  # refuses what it refuses
            with nullcontext() if isinstance(learner, Final) else learner.lock:
                found = Explainer(self).explain(self.named_entries(row))
            if self.learner_ is learner:  # no other thread has fitted anew
                return found

    @property
    def coef_frame_(self) -> Any:
        """The weights that are not 0, by name, as a data frame of pandas, the largest first; a column for each output."""
        learner = self.fitted_learner()
        try:
            with needed_by("coef_frame_", "pandas"):
                import pandas as pd  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise AttributeError(str(error)) from error  # dir, hasattr and the page of a notebook ask for all attributes

        table, _ = predictors_of(learner)
        largest = np.abs(table).max(axis=1)
        columns = np.argsort(-largest, kind="stable")[: np.count_nonzero(largest)]
        names = [f"x{j}" if name is None else name for j, name in zip(columns, self.feature_names(columns), strict=True)]
        outputs = list(getattr(self, "classes_", range(learner.n_outputs))) if learner.n_outputs > 1 else ["weight"]
        return pd.DataFrame(table[columns], index=pd.Index(names, name="feature"), columns=outputs)

    def _coef(self, average: bool) -> np.ndarray:
        return np.ascontiguousarray(self.fitted_learner().weights(average=average).T)

    @property
    def sparsity_(self) -> float:
        """The share of exact zeros in ``coef_``; nan before the first column."""
        return share_of_zeros(self._coef(average=True))

    @property
    def sparsity_last_(self) -> float:
        """The share of exact zeros in the last iterate: an average is rarely 0 where the iterates are."""
        return share_of_zeros(self._coef(average=False))


def share_of_zeros(weights: np.ndarray) -> float:
    """The share of weights that are 0; nan where there are none, as before the first row with an entry."""
    return float(np.mean(weights == 0.0)) if weights.size else nan


def is_numbers(y: Any, n: int) -> bool:
    """Whether y is an array of n finite numbers."""
    return type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "biuf" and bool(np.isfinite(y).all())


def warn(doubts: Iterable[str]) -> None:
    """Warn of each doubt, at the line that called ``fit``."""
    for doubt in doubts:
        warn_caller(doubt, QualityWarning)
