"""scikit-learn estimators: labels, classes, passes and shuffling in front of ``Learner``, which does the learning.

    minimise  mean_i s_i l(<w, x_i> + b, y_i) + r(w),     s_i = sample weight times class weight

Several classes are learned one against the rest, all in one pass over the rows. ``partial_fit`` takes the rows in the order
given; ``fit`` may shuffle them, and equals ``partial_fit`` over the permuted rows of all passes. Both also take a stream of
rows (``onlinear.streams``), or any iterable of blocks (X, y) or (X, y, weight), whose rows they learn in its order.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, update_wrapper, wraps
from types import MethodType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from onlinear.learner import Learner
from onlinear.learner.parts import split
from onlinear.models.base import Classifier, Model, Regressor, gives_probabilities, loss_labels, quoted
from onlinear.models.base import load as load_as
from onlinear.models.predictor import Final
from onlinear.rows import Rows, Source, checks, learnable, named_columns, read
from onlinear.rows.scaling import Survey
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Engine
from onlinear.streams import Block, Stream, StreamError
from onlinear.streams.ahead import Ahead
from onlinear.streams.labels import scan
from onlinear.streams.pairs import Pairs
from onlinear.streams.weighted import balanced, class_totals
from onlinear.text.form import number
from onlinear.training.quality import ENOUGH, FEW, Advice, QualityWarning, Trained, doubts_of_arrays, falling, mean_loss
from onlinear.training.training import CLASSIFY, REGRESS, Options, Training

ROWS = 1 << 13  # rows between two calls of the callbacks


class Progress:
    """What a callback is told after each block of rows; nothing is computed before it is asked for."""

    def __init__(self, estimator: Any, total: int | None) -> None:
        self.estimator = estimator
        self.total = total  # rows learned when this call of fit or partial_fit ends; None where a stream does not know

    @property
    def rows(self) -> int:
        """Rows learned so far."""
        return self.estimator.t_

    @property
    def loss(self) -> float:
        """Mean loss over the rows learned, each scored before it was learned."""
        return self.estimator.learner_.progressive_loss

    @property
    def nonzeros(self) -> int:
        """Weights of ``coef_`` that are not 0."""
        return int(np.count_nonzero(self.estimator.coef_))


class Task(NamedTuple):
    """Checked rows with the order, block by block, in which they are to be learned."""

    source: Source
    y: np.ndarray
    weights: np.ndarray
    orders: Iterator[np.ndarray | None]
    total: int

    def blocks(self) -> Iterator[tuple[Source, np.ndarray, np.ndarray]]:
        """Rows, targets and weights, ``ROWS`` rows at a time."""
        for order in self.orders:
            for first in range(0, self.source.n, ROWS):
                part = slice(first, first + ROWS)
                if order is None:
                    yield _piece(self.source, part), np.asfortranarray(self.y[part]), self.weights[part]
                else:
                    which = order[part]
                    yield self.source.take(which), np.asfortranarray(self.y[which]), self.weights[which]


Method = TypeVar("Method", bound=Callable[..., Any])
TURN = "_turn"  # begins the name of an attribute that copies do not have


def in_turn(method: Method) -> Method:
    """Decorator: one thread at a time is in such a method of an estimator. The child of a fork has a lock of its own."""

    @wraps(method)
    def alone(self: Any, *args: Any, **settings: Any) -> Any:
        with vars(self).setdefault(f"{TURN}_{os.getpid()}", threading.RLock()):
            return method(self, *args, **settings)

    return alone  # type: ignore[return-value]


def without_turn(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a copy has."""
    return {name: value for name, value in state.items() if not name.startswith(TURN)}


class _Scored:
    """Scores of few rows, each before its row was trained on, with targets and weights."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def halves(self, loss: Any) -> tuple[float, float]:
        """Mean losses of the second quarter of the rows and of the second half."""
        columns = [np.concatenate(column) for column in zip(*self.parts, strict=True)]
        n = len(columns[0])
        stretches = slice(n // 4, n // 2), slice(n // 2, n)
        first, second = (mean_loss(loss, *(column[stretch] for column in columns)) for stretch in stretches)
        return first, second


class _Online(BaseEstimator, Model):  # type: ignore[misc]
    """What the two estimators share."""

    # --- learning ----------------------------------------------------------------------------------------------------

    @in_turn
    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Any:
        if _is_stream(X, y):
            return self._learn_stream(X, y, sample_weight, classes, self.passes, anew=True)
        if classes is not None:
            raise ValueError("classes= is for streams only; with arrays, the classes are those of y.")
        with _unchanged_on_error(self), named_columns(X):
            self.history_, self.encoding_ = [], None
            passes, shuffle, draw = _passes(self.passes), self._shuffle(), _generator(self.random_state)
            _callbacks(self.callbacks)
            X, y = self._validated(X, y, first=True)
            y, weights, outputs = self._targets(y, sample_weight, None, first=True, balance=True)
            if not np.any(weights):
                raise ValueError("every sample weight is zero; fit needs a row with a weight above zero.")
            learner = self._new(outputs, total=len(y) * passes)
            if self._scale() == "standard":
                _fix_scales(learner, X, weights)
            if _is_batch(learner):
                return self._solve(learner, X, y, weights, passes)
            source, y, weights = learner._checked(X, y, weights)
            self.learner_, self.n_iter_ = learner, passes
        source = source.stored() if passes > 1 else source
        task = Task(source, y, weights, _orders(draw, source.n, shuffle, passes), source.n * passes)
        scored = _Scored() if passes == 1 and ENOUGH <= source.n < FEW else None
        self._run(task, scored)
        _warn(self._doubts(X, task, scored, ordered=not shuffle), stacklevel=4)
        return self

    def _doubts(self, X: Any, task: Task, scored: _Scored | None, *, ordered: bool) -> list[str]:
        """Why the model that ``fit`` made of arrays may be of no use."""
        learner, source = self.learner_, task.source
        classes, outputs, low = getattr(self, "classes_", ()), learner.n_outputs, -1.0
        places = None
        if isinstance(self, OnlineClassifier):
            places, low = np.argmax(task.y, axis=1) if outputs > 1 else (task.y[:, 0] > 0.0).astype(np.intp), self._low(outputs)
        solver = learner.spec["solver"]
        averaged = learner.average is not None and not learner.racing
        advice = Advice(False, solver if isinstance(solver, str) else "", averaged, tuple(map(str, classes)), source.n)
        rows = (lambda which: X[which]) if learner._centred else source.take
        trained = Trained(rows, task.y, task.weights, places, ordered)
        found = doubts_of_arrays(learner, trained, len(classes), low, advice)
        if scored is not None and not found and (more := falling(source.n, 1, *scored.halves(learner.loss), advice)):
            found.append(more)
        return found

    def _solve(self, learner: Learner, X: Any, y: np.ndarray, weights: np.ndarray, iterations: int) -> Any:
        self.learner_, self.n_iter_ = learner.solve(X, y, iterations, weights), iterations
        for callback in _callbacks(self.callbacks):
            callback(Progress(self, self.t_))
        return self

    @in_turn
    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
        if isinstance(getattr(self, "learner_", None), Final):
            self.learner_.learn()  # which refuses
        if _is_stream(X, y):
            return self._learn_stream(X, y, sample_weight, classes, 1, anew=False)
        first = not hasattr(self, "learner_")
        with _unchanged_on_error(self), named_columns(X):
            _callbacks(self.callbacks)
            X, y = self._validated(X, y, first=first)
            y, weights, outputs = self._targets(y, sample_weight, classes, first=first, balance=False)
            if first:
                self.history_, self.encoding_ = [], None
            learner = self._new(outputs, total=None) if first else self.learner_
            if _is_batch(learner):
                raise ValueError(f"solver {self.solver!r} needs all rows at once: use fit (passes= counts its iterations).")
            source, y, weights = learner._checked(X, y, weights)
            self.learner_, self.n_iter_ = learner, getattr(self, "n_iter_", 1)
        return self._run(Task(source, y, weights, iter([None]), learner.t + source.n))

    def _learn_stream(self, blocks: Any, y: Any, sample_weight: Any, classes: Any, passes: Any, *, anew: bool) -> Any:
        """Learn the rows of a stream in its order; after an error, what was learned before the wrong block stands."""
        if y is not None or sample_weight is not None:
            raise ValueError("a stream's targets and weights come with its rows: y and sample_weight must be None.")
        self._refuse_shuffle()
        if not anew and not hasattr(self, "learner_") and self._scale() == "standard":
            raise ValueError("scale='standard' needs the mean of all rows before the first: use fit, or scale='rms'.")
        passes, told = _passes(passes), _callbacks(self.callbacks)
        stream = Pairs(blocks) if not isinstance(blocks, Stream) else blocks if isinstance(blocks, Ahead) else Ahead(blocks)
        before = dict(vars(self))
        with _unchanged_on_error(self):
            if anew:
                _forget(self)
            options = self._options(stream, classes, passes)
            weights = self._stream_weights(stream, anew)
            training = Training(stream, options._replace(class_weights=weights), lambda task: self)
        total = None if stream.rows is None else training.learner.t + stream.rows * passes
        with ExitStack() as stack:
            if self.verbose:
                told = [stack.enter_context(_bar(self.t_, total)), *told]
            training.watch = partial(_tell, told, Progress(self, total))
            try:
                for _ in training:
                    pass
            except Exception as error:
                if not training.rows:
                    _put_back(self, before)
                elif isinstance(error, StreamError):
                    raise StreamError(f"{error} (Rows learned before: {training.rows:,}.)") from None
                raise
            finally:
                if training.rows:
                    self._name_stream(stream, training, before, anew)
        if anew and training.rows >= ENOUGH:
            _warn(training.doubts(command=False), stacklevel=5)
        return self

    def _options(self, stream: Stream, classes: Any, passes: int) -> Options:
        if self.task == REGRESS:
            return Options(passes, REGRESS)
        if isinstance(classes, str) and classes == "scan":
            classes = scan(stream)
        known = getattr(self, "classes_", None)
        if classes is not None and known is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise ValueError(
                f"classes={quoted(np.unique(classes))} differs from the classes of the first call: {quoted(known)}."
            )
        found = classes if known is None else known
        return Options(passes, CLASSIFY, None, None if found is None else np.asarray(found).tolist())

    def _stream_weights(self, stream: Stream, balance: bool) -> dict[Any, float] | None:
        """By what the rows of a stream count beside their own weights."""
        return None

    def _name_stream(self, stream: Stream, training: Training, before: dict[str, Any], anew: bool) -> None:
        """Say what the rows have told: features, their names, classes; the history is that of ``fit``."""
        if isinstance(stream, Pairs):
            if stream.width > self.learner_.size:
                self.learner_._grow(stream.width)
            if stream.columns is not None:
                self.feature_names_in_ = np.array(stream.columns, dtype=object)
        training._name()
        if not anew:
            self.history_, self.n_iter_ = before.get("history_", []), before.get("n_iter_", 1)
            self.encoding_ = self.encoding_ or before.get("encoding_")

    def _refuse_shuffle(self) -> None:
        if self.shuffle is not None and self._shuffle():
            raise ValueError(
                f"shuffle={self.shuffle!r} needs all rows at once; a stream's rows are learned in its order: "
                "give streams.Shuffled(stream, window, seed) and shuffle=None."
            )

    def _run(self, task: Task, scored: _Scored | None = None) -> Any:
        told = _callbacks(self.callbacks)
        with ExitStack() as stack:
            if self.verbose:
                told = [stack.enter_context(_bar(self.t_, task.total)), *told]
            for source, y, weights in task.blocks():
                scores = self.learner_._learn(source, y, weights)
                if scored is not None:
                    scored.parts.append((scores[1].T, y, weights))
                for callback in told:
                    callback(Progress(self, task.total))
        return self

    def _shuffle(self) -> bool | str:
        if self.shuffle is not None:
            if isinstance(self.shuffle, (bool, np.bool_)):
                return bool(self.shuffle)
            if isinstance(self.shuffle, str) and self.shuffle == "replacement":
                return self.shuffle
            raise ValueError(f"shuffle must be None, False, True or 'replacement', got {self.shuffle!r}.")
        preset = SOLVERS[split(self.solver, "solver", SOLVERS)[0]].shuffle if isinstance(self.solver, str) else None
        return True if preset is None else preset

    def _validated(self, X: Any, y: Any, *, first: bool) -> tuple[Any, Any]:
        _refuse_unseen(X)
        checks.refuse_masked(y, "y")
        if sp.issparse(y):
            raise TypeError("y must be dense, got a sparse array: use y.toarray().")
        self._refuse_sparse(X)
        kinds = {"multi_output": True, "y_numeric": True} if isinstance(self, OnlineRegressor) else {}
        return validate_data(self, X, y, reset=first, **_ROWS, **kinds)

    def _refuse_sparse(self, X: Any) -> None:
        if self._scale() == "standard" and sp.issparse(X):
            raise ValueError("scale='standard' centres the columns, which needs dense rows; for sparse X use scale='rms'.")

    # --- reading -----------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        self._learnt()
        if isinstance(X, Stream):
            return self._stream_scores(X)
        _refuse_unseen(X)
        with named_columns(X):
            if isinstance(self.learner_, Final):
                X = check_array(X, **_ROWS)  # without the names, of which a final model keeps some
            return self.learner_.predict(validate_data(self, X, reset=False, **_ROWS))

    def _stream_scores(self, stream: Stream) -> np.ndarray:
        """The scores of all rows of a stream; columns that the model has never seen have weight 0."""
        width = max(1, self.learner_.size)
        found = [self.learner_.predict(block.within(width)) for block in stream]
        return np.concatenate(found) if found else self.learner_.predict(sp.csr_matrix((0, width)))

    def _coef(self, average: bool) -> np.ndarray:
        return np.ascontiguousarray(self._learnt().weights(average=average).T)

    @property
    def sparsity_(self) -> float:
        """The fraction of exact zeros in ``coef_``."""
        return float(np.mean(self._coef(average=True) == 0.0))

    @property
    def sparsity_last_(self) -> float:
        """The fraction of exact zeros in the last iterate: an average is rarely 0 where the iterates are."""
        return float(np.mean(self._coef(average=False) == 0.0))

    def __getstate__(self) -> dict[str, Any]:
        return without_turn(super().__getstate__())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._scale() != "standard"
        return tags


class _Probable:
    """A method of the classifiers whose loss gives probabilities; for others it is missing, and the error says why."""

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Callable[..., np.ndarray]:
        if model is not None and not gives_probabilities(model):
            raise AttributeError(
                f"{type(model).__name__} with loss={model.loss!r} has no {self._method.__name__}: this loss gives scores, not "
                "probabilities. Use loss='logistic', or fit sklearn.calibration.CalibratedClassifierCV(model)."
            )
        return self._method if model is None else MethodType(self._method, model)


class OnlineClassifier(ClassifierMixin, _Online, Classifier):  # type: ignore[misc]
    """A linear classifier learned row by row, by any solver, loss and penalty; several classes one against the rest.

    ``loss``, ``penalty``, ``solver``, ``average``: text (``name,key=value,...``) or part objects, as in ``Learner``.
    ``solver`` names a method and nothing else. Default: implicit steps (``fiol``, without a penalty its faster form
    ``implicit-sgd``) of size 4.8 / sqrt t for the logistic loss (2.4 / its slope at 0 for others). ``average``: default
    ``"adaptive"``, the weighted-t1 average or the last iterate while that predicts the recent rows better; a preset's own
    average; none with l1 or tv, whose zeros an average would fill, and for solvers without a form for it. ``scale``: default
    ``"rms"``; none for rls, csgd, adaline and batch solvers. Step sizes follow the running largest weight.
    ``passes``: passes of ``fit`` over the rows (iterations of a batch solver). ``shuffle``: False, True (a new permutation
    per pass), ``"replacement"`` (n uniform draws per pass), or None (default): shuffle in each pass, except for solvers whose
    paper samples with replacement. ``scale``: none, rms, max-abs, standard; the penalty acts on scaled weights.
    ``class_weight``: a dict, or ``"balanced"`` (``fit`` only; of a stream it counts the labels in a pass of its own).
    ``random_state`` seeds the permutations. ``verbose`` shows a progress bar. ``callbacks``: functions of one ``Progress``,
    called after every block of rows. ``n_jobs``: threads that share many classes (None is 1, -1 all cores), which change
    nothing but the time.

    Losses without classes of their own (squared, absolute, huber, ...) learn the targets -1 and +1.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> OnlineClassifier:
        """Learn ``passes`` passes over the rows from the start; y holds the classes, at least two.

        X: (n, d) CSR, CSC, dense or a data frame; sample_weight: (n,), multiplies the loss of its row. Or X is a stream, or an
        iterable of blocks (X, y) or (X, y, weight): its rows are learned in its order; classes other than -1, 1 and 0, 1 that
        the stream does not know are named by ``classes``, or found by one more pass over it with ``classes="scan"``.
        """
        return self._fit(X, y, sample_weight, classes)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Learn the rows, or those of a stream, once and in order. The first call needs ``classes``, all of them (for a stream
        as in ``fit``); wrong input changes nothing, in a stream nothing but what the blocks before it did."""
        return self._partial_fit(X, y, classes, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b: (n,) for two classes, positive for the second; else (n, K)."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score, (n,)."""
        return self.labels_of(self._scores(X))

    @_Probable
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, (n, K): for the losses logistic, exponential and modified-huber; several classes normalised."""
        return self.probabilities_of(self._scores(X))

    @_Probable
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``, (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def coef_(self) -> np.ndarray:
        """Weights as ``predict`` uses them, in the columns' own units: (1, d) for two classes, else (K, d); a fresh array."""
        return np.atleast_2d(self._coef(average=True))

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts: (1,) for two classes, else (K,)."""
        return np.atleast_1d(np.asarray(self._learnt().intercept(average=True)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def _targets(
        self, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        check_classification_targets(y)
        if balance:
            self.classes_ = np.unique(y)
        else:
            self._name_classes(classes, first)
        if len(self.classes_) < 2:
            raise ValueError(f"there is one class only ({quoted(self.classes_)}); a classifier needs at least two classes.")
        places = self._places(y)
        weights = checks.weights(sample_weight, len(y))
        weights = weights * self._class_weights(places, weights, balance)[places]
        outputs = len(self.classes_) if len(self.classes_) > 2 else 1
        own = np.arange(outputs) if outputs > 1 else np.ones(1)
        return np.where(places[:, None] == own, 1.0, self._low(outputs)), weights, outputs

    def _places(self, y: np.ndarray) -> np.ndarray:
        """Each label's place among the classes."""
        known = set(self.classes_.tolist())
        strange = [label for label in np.unique(y).tolist() if label not in known]
        if strange:
            row = int(np.argmax(y == strange[0]))
            raise ValueError(f"y holds the class {strange[0]!r} at row {row}; the known classes are {quoted(self.classes_)}.")
        return np.searchsorted(self.classes_, y)

    def _name_classes(self, classes: Any, first: bool) -> None:
        if classes is None:
            if first:
                raise ValueError("the first partial_fit needs classes=, all classes there will be, e.g. classes=[0, 1].")
            return
        named = np.unique(np.asarray(classes))
        if first:
            self.classes_ = named
        elif not np.array_equal(named, self.classes_):
            raise ValueError(f"classes={quoted(named)} differs from the classes of the first call: {quoted(self.classes_)}.")

    def _class_weights(self, places: np.ndarray, weights: np.ndarray, balance: bool) -> np.ndarray:
        self._check_class_weight(balance)
        if isinstance(self.class_weight, str):
            return balanced(np.bincount(places, weights, len(self.classes_)))
        return compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)

    def _check_class_weight(self, balance: bool) -> None:
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {self.class_weight!r}.")
            if not balance:
                raise ValueError(
                    "class_weight='balanced' needs the labels of all rows before the first, as fit has them: for partial_fit "
                    "pass a dict such as {0: 1, 1: 20} (sklearn.utils.class_weight.compute_class_weight finds one)."
                )
        elif self.class_weight is not None and not isinstance(self.class_weight, dict):
            raise TypeError(f"class_weight must be None, 'balanced' or a dict, got {self.class_weight!r}.")
        else:
            for name, weight in (self.class_weight or {}).items():
                number("class_weight", f"the weight of {name!r}", weight, 0.0, np.inf, open_high=True)

    def _stream_weights(self, stream: Stream, balance: bool) -> dict[Any, float] | None:
        self._check_class_weight(balance)
        if not isinstance(self.class_weight, str):
            return self.class_weight
        totals = class_totals(stream)
        return dict(zip(totals, balanced(totals.values()).tolist(), strict=True))


class OnlineRegressor(RegressorMixin, _Online, Regressor):  # type: ignore[misc]
    """A linear regression learned row by row, by any solver, loss and penalty; several targets in one pass.

    Parameters as in ``OnlineClassifier``, without ``class_weight``. Defaults: steps of 50 / sqrt t for the squared loss, 20 for
    absolute, huber and epsilon-insensitive, 2 for quantile, without an average a fifth of these; scale max-abs. The first label
    is the zero of the targets, and step sizes follow the running deviation of y, so unit and offset of y do not matter.
    With the loss poisson, ``predict`` gives exp(score).
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineRegressor:
        """Learn ``passes`` passes over the rows from the start; y: (n,) or (n, K). Or X is a stream, or an iterable of blocks
        (X, y) or (X, y, weight) of one target: its rows are learned in its order."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineRegressor:
        """Learn the rows, or those of a stream, once and in order; wrong input changes nothing, in a stream nothing but what
        the blocks before it did."""
        return self._partial_fit(X, y, None, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, shaped as the y of fit: <w, x> + b, or the mean that the loss makes of it (poisson: exp)."""
        return self.means_of(self._scores(X))

    @property
    def coef_(self) -> np.ndarray:
        """Weights as ``predict`` uses them, in the columns' own units: (d,), or (K, d) for y of shape (n, K)."""
        coef = self._coef(average=True)
        return coef if self.columns_ is None else np.atleast_2d(coef)

    @property
    def intercept_(self) -> Any:
        """The intercept, a float, or (K,) for y of shape (n, K)."""
        found = self._learnt().intercept(average=True)
        return found if self.columns_ is None else np.atleast_1d(found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self._labels() == "counts"
        return tags

    def _labels(self) -> str:
        try:
            return loss_labels(self.loss)
        except (TypeError, ValueError):
            return "real"

    def _targets(
        self, y: Any, sample_weight: Any, classes: Any, *, first: bool, balance: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        columns = None if y.ndim == 1 else y.shape[1]
        if first:
            self.columns_ = columns
        elif columns != self.columns_:
            raise ValueError(f"y has shape {y.shape}; the first call's y had {self.columns_ or 'no'} columns.")
        return y, checks.weights(sample_weight, len(y)), columns or 1


KINDS = {"classifier": OnlineClassifier, "regressor": OnlineRegressor}
_ROWS: dict[str, Any] = {"accept_sparse": True, "dtype": [np.float64, np.float32], "ensure_all_finite": False}


def load(path: str | os.PathLike[str], **parts: Any) -> Any:
    """The ``Learner``, ``OnlineClassifier`` or ``OnlineRegressor`` in a model file.

    Parts from outside the package are passed by role, e.g. ``load(path, loss=MyLoss())``. Raises FileNotFoundError,
    ModelFileError.
    """
    return load_as(path, KINDS, **parts)


def _warn(doubts: Iterable[str], stacklevel: int) -> None:
    for doubt in doubts:
        warnings.warn(doubt, QualityWarning, stacklevel)


def _is_stream(X: Any, y: Any) -> bool:
    """Whether X gives blocks of rows: a stream, or an iterable that is no array, frame or nested list."""
    if isinstance(X, Stream):
        return True
    arrays = "shape", "__array__", "__dataframe__"
    if (
        y is not None
        or isinstance(X, (str, bytes, dict))
        or any(hasattr(X, name) for name in arrays)
        or not hasattr(X, "__iter__")
    ):
        return False
    return not isinstance(X, Sequence) or all(isinstance(block, (tuple, Block)) for block in X[:1])


def _forget(estimator: Any) -> None:
    """Drop all that was learned, and the names that came with it."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)


@contextmanager
def _unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put the estimator's attributes back where the block raises: wrong input leaves the model as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except Exception:
        _put_back(estimator, before)
        raise


def _put_back(estimator: Any, before: dict[str, Any]) -> None:
    now = vars(estimator)  # another thread may read it: nothing is missing at any time
    now.update(before)
    for name in [name for name in now if name not in before]:
        del now[name]


def _tell(callbacks: list[Callable[[Progress], Any]], progress: Progress) -> None:
    for callback in callbacks:
        callback(progress)


def _piece(source: Source, which: slice) -> Source:
    """Rows ``which`` of ``source``, without a copy of the entries."""
    if not isinstance(source.data, Rows):
        return source._replace(n=len(source.data[which]), data=source.data[which])
    first, last = which.start, min(which.stop, source.n)
    starts = source.data.indptr[first : last + 1]
    inside = slice(int(starts[0]), int(starts[-1]))
    rows = Rows(starts - starts[0], source.data.indices[inside], source.data.values[inside])
    return source._replace(n=last - first, data=rows)


def _orders(draw: np.random.Generator, n: int, shuffle: bool | str, passes: int) -> Iterator[np.ndarray | None]:
    """The order of the rows in each pass, all from one generator; None: as they stand."""
    for _ in range(passes):
        if not shuffle:
            yield None
        else:
            yield draw.integers(n, size=n) if shuffle == "replacement" else draw.permutation(n)


def _fix_scales(learner: Learner, X: Any, weights: np.ndarray) -> None:
    """Means and deviations of the columns over the rows that count."""
    source, survey = learnable(read(X), "X"), Survey()
    for which, rows in source.blocks():
        survey.add(rows, source.width, weights[which])
    learner.scaler.fix(*survey.result(source.width))  # type: ignore[union-attr]


def _is_batch(learner: Learner) -> bool:
    """Whether the solver works on all rows at once."""
    return type(learner.engine).solve is not Engine.solve


def _refuse_unseen(X: Any) -> None:
    """Raise for what scikit-learn's own checks would drop (masks), or name in other words (text)."""
    checks.refuse_masked(X, "X")
    if sp.issparse(X) or not hasattr(X, "__len__") or not len(X):
        return
    probe = np.asarray(X if isinstance(X, np.ndarray) else X[:1])
    found = probe.dtype.kind in "USV" or (probe.dtype.kind == "O" and any(isinstance(x, (str, bytes)) for x in probe.flat))
    if found:
        raise TypeError("X must hold numbers, got text: encode it as numbers first, e.g. with sklearn's FeatureHasher.")


def _passes(passes: Any) -> int:
    if isinstance(passes, (bool, np.bool_)) or not isinstance(passes, (int, np.integer)) or passes < 1:
        raise ValueError(f"passes must be an integer of at least 1, got {passes!r}.")
    return int(passes)


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(f"random_state must be None, an integer or a numpy.random.Generator: {error}") from None


def _callbacks(callbacks: Any) -> list[Callable[[Progress], Any]]:
    found = [] if callbacks is None else callbacks
    if not isinstance(found, (list, tuple)) or not all(map(callable, found)):
        raise TypeError(f"callbacks must be a list of functions of one argument, got {callbacks!r}.")
    return list(found)


@contextmanager
def _bar(start: int, total: int | None) -> Iterator[Callable[[Progress], None]]:
    """A progress bar, as a callback."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown

    columns = TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Shown(*columns, TextColumn("progressive loss {task.fields[loss]:.5g}")) as shown:
        task = shown.add_task("rows", total=total, completed=start, loss=float("nan"))
        yield lambda info: shown.update(task, completed=info.rows, loss=info.loss)
