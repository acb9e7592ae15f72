"""How the two estimators train: on arrays, tables and streams, with passes, orders and callbacks.

An error before the first row leaves an estimator as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from onlinear import streams
from onlinear.learner import Learner
from onlinear.learner.arguments import count
from onlinear.learner.classes import best_class
from onlinear.learner.learner import Whole
from onlinear.learner.parts import preset_of
from onlinear.learner.scores import Predictors, predictors_of
from onlinear.learner.uncertainty import refuse_more_passes
from onlinear.models.answers import Answers, warn
from onlinear.models.arguments import (
    check_passes,
    fix_scales,
    is_auto,
    is_stream,
    make_generator,
    refuse_no_weight,
    refuse_targets_of_stream,
)
from onlinear.models.base import Classifier
from onlinear.models.dict_calls import take_out
from onlinear.models.feed import (
    Feed,
    Progress,
    ScoredBefore,
    check_callbacks,
    orders,
    rows_told,
    rows_untold,
    show_bar,
    start_passes,
    tell,
)
from onlinear.models.moments import as_made, at_rest
from onlinear.models.one_by_one import is_pair, without_rows
from onlinear.models.predictor import Final
from onlinear.models.stored_model import quote
from onlinear.models.tables import (
    Given,
    has_other_than_numbers,
    is_table,
    names_target,
    open_labelled,
    records_with_targets,
)
from onlinear.models.targets import WANTED, as_targets, column_of_targets
from onlinear.models.tasks import TakesCallbacks, fit_tasks
from onlinear.models.tolerance import ReachesTolerance, show_passes
from onlinear.models.turns import forget, in_turn, learned, put_back, twin_of, unchanged_on_error, without_turn
from onlinear.rows import checks, named_columns
from onlinear.streams import Shuffled, Stream, StreamError
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import refuse_no_rows
from onlinear.streams.encoding import describe_names
from onlinear.streams.expansions import has_counts
from onlinear.streams.labels import label_array, scan
from onlinear.streams.pairs import Pairs
from onlinear.text.form import check_verbose
from onlinear.text.hints import advise_on_argument
from onlinear.training.auto_passes import with_passes
from onlinear.training.doubts import ENOUGH, FEW, Advice, falling, weighed_alone
from onlinear.training.events import Certified
from onlinear.training.few_rows import Chosen, choose_passes, rows_of_source
from onlinear.training.offsets import SHOWN, too_small
from onlinear.training.options import CLASSIFY, REGRESS, Options
from onlinear.training.quality import Trained, doubts_of_arrays
from onlinear.training.tasks import NOBODY, READING, Attributes, Tasks
from onlinear.training.training import Training

NO_NAMES = "the columns of X have no names", "give a data frame or a list of dicts"


class Checked(NamedTuple):
    """Rows in memory that a model has checked."""

    X: Any
    y: np.ndarray  # (n, K)
    weights: np.ndarray  # (n,)


class Online(TakesCallbacks, BaseEstimator, Answers, ReachesTolerance):  # type: ignore[misc]
    """The part of the estimators that trains."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn's estimators do.

        Parameters
        ----------
        **params
            The parameters. Most of them begin to act with the next ``fit``: until they are set back, ``partial_fit`` and
            ``learn_one`` raise ValueError.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a name that is no parameter.
        """
        for name in params:
            hint = advise_on_argument(name)
            if hint is not None and name not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}. {hint}")
        super().set_params(**params)
        self.follow_settings()
        return self

    @in_turn
    def _train_passes(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Train from the start, in ``passes`` passes over arrays or a stream."""
        with fit_tasks(self, X, y, sample_weight) as tasks:
            self._train(X, y, sample_weight, classes, tasks)
        return self.warn_of_small_numbers()

    def warn_of_small_numbers(self) -> Self:
        """Warn of columns, targets and weights whose numbers are too small to say anything."""
        learner, columns = self.learner_, self.learner_.vanished
        names = self.feature_names(np.array(columns[:SHOWN], np.intp))
        warn(too_small(columns, names, targets=learner.targets_vanish, weights=learner.weights_vanish))
        return self

    def _train(self, X: Any, y: Any, sample_weight: Any, classes: Any, tasks: Tasks) -> Self:
        tabular = is_table(X) and (names_target(X, y) or has_other_than_numbers(X) or bool(self.columns_asked()))
        if is_stream(X, y):
            self._refuse_columns_of_streams()
            return self._learn_stream(X, y, sample_weight, classes, self.passes, anew=True, tasks=tasks)
        if tabular:
            return self._learn_table(X, y, sample_weight, classes, self.passes, anew=True, tasks=tasks)
        self.refuse_columns_asked(*NO_NAMES)
        if classes is not None:
            raise ValueError("classes= is for streams only; with arrays, the classes are those of y.")
        return self._train_arrays(X, y, sample_weight, tasks)

    def _train_arrays(self, X: Any, y: Any, sample_weight: Any, tasks: Tasks) -> Self:
        model = twin_of(self)  # takes what the rows say: other threads find what there was before, or all that is new
        with named_columns(X):
            model.history_, model.encoding_ = [], None
            shuffle, draw = self.check_run()
            X, y = model.validate_rows(X, y, first=True)
            passes = check_passes(self.passes, None if self.certifies() else X.shape[0])
            y, weights, outputs = model.make_targets(y, sample_weight, None, first=True, balance=True)
            refuse_no_weight(weights)
            certified = model.certified_learner(outputs) if self.certifies() else None
            start = None if certified is None else model.begin(outputs)
            if certified is not None and (start is not None or not self.passes_first()):
                return self._certify(model, certified, Checked(X, y[:], weights), start, 0, tasks)
            learner = model.new_learner(outputs, total=len(y) * passes)
            refuse_more_passes(learner, passes, self.passes)
            if self.chosen_scale() == "standard":
                fix_scales([learner], X, weights)
            if learner.engine.batch:
                return self._solve(model, learner, certified, Checked(X, y[:], weights), passes, tasks)
            source, y, weights = learner.check_input(X, y, weights)
            source = source.held() if passes > 1 or shuffle else source
            chosen = Chosen(passes)
            if certified is None and is_auto(self.passes) and passes > 1:
                chosen = choose_passes(learner, rows_of_source(source, y[:], weights), shuffle)
                passes, learner.total = chosen.passes, source.n * chosen.passes
            if certified is None:
                start_passes(tasks, passes, ceil(source.n / rows_told(outputs)))
            model.take(learner)
            model.n_iter_ = 1
        self._become(model, vars(self))
        feed = Feed(source, y, weights, orders(draw, source.n, shuffle, passes), source.n * passes)
        may_repeat = self.passes == 1 and learner.spread is None
        scored = ScoredBefore(learner.loss, source.n) if may_repeat and ENOUGH <= source.n < FEW else None
        self._run(feed, scored, tasks, rows_untold(learner.n_outputs), chosen)
        if certified is not None:
            rows, start = Checked(X, y[:], weights), predictors_of(self.learner_)
            return self._certify(twin_of(self), certified, rows, start, passes, tasks)
        warn(self.doubts(X, feed, None if tasks.stopped else scored, ordered=not shuffle))
        return self

    def check_run(self) -> tuple[bool | str, np.random.Generator]:
        """Whether and by what rows are shuffled. Raises for wrong settings of a run, whatever the rows."""
        check_callbacks(self.callbacks)
        check_passes(self.passes, None)
        return self.chosen_shuffle(), make_generator(self.random_state)

    def doubts(self, X: Any, feed: Feed, scored: ScoredBefore | None, *, ordered: bool) -> list[str]:
        """Why the model that ``fit`` made of arrays may be of no use."""
        learner, source = self.learner_, feed.source
        classes, outputs, negative = getattr(self, "classes_", ()), learner.n_outputs, -1.0
        places = None
        if isinstance(self, Classifier):
            places, negative = feed.classes, self.negative_target(outputs)
        advice = Advice.of(learner, map(str, classes), source.n, command=False)
        rows = (lambda which: X[which]) if learner.centres_rows else source.take
        trained = Trained(rows, feed.y, feed.weights, places, ordered)
        found = doubts_of_arrays(learner, trained, len(classes), negative, advice)
        if scored is not None and not found and (more := falling(source.n, 1, *scored.halves(), advice)):
            found.append(more)
        return found

    def _certify(
        self, model: Self, learner: Learner, rows: Checked, start: Predictors | None, passes: int, tasks: Tasks
    ) -> Self:
        """Have a learner of ``model`` solve to ``tol`` from a start, which took so many passes, and become that model."""
        model.solve_to_tolerance(learner, self.whole(learner, rows), start, passes, tasks)
        self._become(model, vars(self))
        self.warn_of_offsets(rows.X)
        self.warn_of_one_class(rows)
        return self._told()

    def warn_of_one_class(self, rows: Checked) -> None:
        """Warn where of many rows those with a weight are all of one class."""
        if isinstance(self, Classifier) and len(rows.y) >= ENOUGH:
            totals = np.bincount(best_class(rows.y, axis=1), rows.weights, len(self.classes_))
            alone = weighed_alone(totals, Advice.of(self.learner_, map(str, self.classes_), len(rows.y), command=False))
            warn([alone] if alone else [])

    def whole(self, learner: Learner, rows: Checked) -> Whole:
        """Rows as a learner of this model that ends at a gap takes them, and those of other penalties too."""
        if self.chosen_scale() == "standard":
            fix_scales([learner], rows.X, rows.weights)
        return learner.whole(*rows)

    def fit_whole(self, learner: Learner, whole: Whole, start: Predictors | None, X: Any, y: Any, sample_weight: Any) -> Self:
        """``fit`` with ``tol``, by a learner of this model that takes rows which are read already, from a start."""
        with fit_tasks(self, X, y, sample_weight) as tasks:
            self.history_, self.encoding_ = [], None
            self.solve_to_tolerance(learner, whole, start, 0, tasks)
        return self._told()

    def _told(self) -> Self:
        tell(check_callbacks(self.callbacks), Progress(self, self.t_))
        return self

    def _solve(
        self, model: Self, learner: Learner, certified: Learner | None, rows: Checked, iterations: int, tasks: Tasks
    ) -> Self:
        """Train by a solver that takes all rows at once, then by the learner that certifies, if there is one."""
        if certified is None:
            tasks.start(None, 0)
        model.take(learner.solve(rows.X, rows.y, iterations, rows.weights))
        model.n_iter_ = iterations
        self._become(model, vars(self))
        self._told()
        if certified is None:
            self.warn_of_one_class(rows)
            return self
        return self._certify(model, certified, rows, predictors_of(learner), iterations, tasks)

    @in_turn
    def _train_once(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Train on the rows of arrays or a stream once; continue with what was trained before."""
        if isinstance(getattr(self, "learner_", None), Final):
            self.learner_.learn()  # which refuses
        first = not hasattr(self, "learner_")
        if not first:
            self.refuse_other_settings()
        asked = first and bool(self.columns_asked())
        if is_stream(X, y):
            if first:
                self._refuse_columns_of_streams()
            return self._learn_stream(X, y, sample_weight, classes, 1, anew=False)
        if is_table(X) and self._reads_dicts():
            return self._learn_dicts(X, y, classes, sample_weight)
        if is_table(X) and (asked or names_target(X, y) or self._reads_tables() or has_other_than_numbers(X)):
            return self._learn_table(X, y, sample_weight, classes, 1, anew=False)
        if first:
            self.refuse_columns_asked(*NO_NAMES)
        with unchanged_on_error(self), named_columns(X):
            check_verbose(self.verbose)
            watched = bool(check_callbacks(self.callbacks)) or self.verbose
            X, y = self.validate_rows(X, y, first=first)
            y, weights, outputs = self.make_targets(y, sample_weight, classes, first=first, balance=False)
            if first:
                self.history_, self.encoding_ = [], None
            learner = self.new_learner(outputs, total=None) if first else self.learner_
            if learner.engine.batch:
                raise ValueError(f"solver {learner.spec['solver']!r} needs all rows at once: use fit.")
            source, y, weights = learner.check_input(X, y, weights)
            if first:
                self.take(learner)
            self.n_iter_ = getattr(self, "n_iter_", 1)
        if watched or not learner.learn_single(source, y, weights):
            self._run(Feed(source, y, weights, iter([None]), learner.t + source.n))
        return self

    def _learn_dicts(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Learn the rows of a table in the columns that single dicts have named, as ``learn_one`` learns them."""
        rows, y, sample_weight = records_with_targets(X, y, sample_weight)
        n = len(rows)
        given = column_of_targets(X, y, n, numbers=self.task == REGRESS)
        with self.learner_.lock:
            with self.named_rows(rows) as matrix:
                targets, weights, _ = self.make_targets(given, sample_weight, classes, first=False, balance=False)
                source, targets, weights = self.learner_.check_input(matrix, targets, weights)
            try:
                self._run(Feed(source, targets, weights, iter([None]), self.learner_.t + n))
            finally:
                self.follow_names()
        return self

    def _learn_table(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, passes: Any, *, anew: bool, tasks: Tasks = NOBODY
    ) -> Self:
        """Learn the rows of a table in memory as a stream; ``fit`` permutes them as it permutes those of arrays."""
        if y is None and (anew or not self._reads_tables()):
            raise ValueError(f"{WANTED}.")
        described = None if anew or not self.is_fitted else self._columns_known()
        asked = self.columns_asked() if described is None else {}
        if not anew and "bins" in asked and has_counts(asked["bins"]):
            raise ValueError("bins: the edges would depend on how rows are cut into calls: give partial_fit edges, or use fit.")
        if names_target(X, y):
            stream = open_labelled(X, y, sample_weight, described, **asked)
        else:
            stream = self._with_targets(X, y, sample_weight, described, anew, classes, asked)
            classes = None
        if anew and classes is None and self.task == CLASSIFY and not isinstance(stream, Given):
            classes = "scan"  # the rows are in memory
        shuffle = self.chosen_shuffle() if anew else False
        if shuffle == "replacement":
            raise ValueError(
                f"X holds more than numbers, and its rows cannot be drawn with replacement: give shuffle=True or False "
                f"(solver={self.solver!r}, shuffle={self.shuffle!r})."
            )
        shuffled = Shuffled(stream, max(1, stream.rows or 1), make_generator(self.random_state)) if shuffle else None
        return self._learn_stream(shuffled or stream, None, None, classes, passes, anew=anew, shuffled=shuffled, tasks=tasks)

    def _with_targets(self, X: Any, y: Any, sample_weight: Any, described: Any, anew: bool, classes: Any, asked: Any) -> Given:
        """A table with its targets and weights, which come as arrays; ``asked``: what is to be made of its columns."""
        y = as_targets(X, y, numbers=self.task == REGRESS)
        # With an encoding the default is True, and names of new categories are kept, as these rows are learned.
        rows = streams.open(X, encoding=described, unlabelled=True if described is None else None, **asked)
        n = rows.rows or 0
        weights = None if sample_weight is None else checks.weights(sample_weight, n)
        known, given = None if anew else getattr(self, "classes_", None), np.asarray(y)
        if anew:
            refuse_no_rows(rows.name, n)
        if anew and weights is not None:
            refuse_no_weight(weights)
        if self.task == REGRESS and given.ndim == 2 and given.shape[1] > 1:
            raise ValueError(
                f"y has shape {given.shape}, and of a table or dicts one target is learned: fit "
                "sklearn.multioutput.MultiOutputRegressor(model), or give rows of numbers."
            )
        targets, named = self.target_places(given[:, 0] if given.shape == (n, 1) else given, classes, known, anew)
        return Given(rows, checks.column(targets, "y", n), weights, named)

    def start_with_row(self, row: Any, outputs: int) -> None:
        """Make the learner for single rows. Columns are named as dicts bring them; a row of numbers names none. Where that
        fails, all stays as it was."""
        remedy = "train on a list of such rows first, with partial_fit, and then on single ones"
        self.refuse_columns_asked("one row does not say which columns there are", remedy)
        with unchanged_on_error(self):
            check_callbacks(self.callbacks)
            self.history_, self.encoding_, self.n_features_in_, self.n_iter_ = [], None, None, 1
            learner = self.new_learner(outputs, total=None)
            if learner.engine.batch:
                raise ValueError(f"solver {self.solver!r} needs all rows at once: use fit (passes= counts its iterations).")
            self.encoding_ = None if is_pair(row) else describe_names([])
            self.take(learner)

    def _learn_stream(
        self,
        blocks: Any,
        y: Any,
        sample_weight: Any,
        classes: Any,
        passes: Any,
        *,
        anew: bool,
        shuffled: Shuffled | None = None,
        tasks: Tasks = NOBODY,
    ) -> Self:
        """Learn the rows of a stream in its order; after an error, what was learned before the wrong block stands.

        Where all begins anew a twin does: other threads find what there was before, or a model that has learned a block.
        """
        refuse_targets_of_stream(y, sample_weight)
        if shuffled is None:
            self._refuse_shuffle()
        if not anew and not hasattr(self, "learner_") and self.chosen_scale() == "standard":
            raise ValueError("scale='standard' needs the mean of all rows before the first: use fit, or scale='rms'.")
        check_verbose(self.verbose)
        callbacks, stream = check_callbacks(self.callbacks), self._stream_to_learn(blocks, anew)
        passes = check_passes(passes, None if (anew and self.certifies()) or not stream.rereadable else stream.rows)
        before = dict(vars(self))
        model = twin_of(self) if anew or not self.is_fitted else self
        with unchanged_on_error(self):
            if anew:
                forget(model)
            options = model.options_of_run(stream, classes, passes, anew, shuffled)
            if anew and is_auto(self.passes):
                options = with_passes(stream, options, lambda task: twin_of(model), shuffled)
            training = Training(stream, options, lambda task: model, shuffled=shuffled, tasks=tasks)
            describe = partial(self._take_over, model, stream, training, before, anew)
            self._start_tasks(tasks, None if options.most is not None else options.passes, describe)
        total = None if stream.rows is None else training.learner.t + stream.rows * options.passes
        self._follow(model, training, callbacks, total, before, describe)
        if anew:
            warn([*training.remarks(command=False), *training.weightless])
        if options.most is not None:
            self.warn_of_shortfall()
            warn(training.one_class(command=False))
        elif anew:
            warn(training.doubts(command=False))
        return self

    def _stream_to_learn(self, blocks: Any, anew: bool) -> Stream:
        """The stream, read ahead; pairs of an iterable as one, of the columns that are known where it is not ``anew``."""
        known = not anew and self.is_fitted
        if not isinstance(blocks, Stream):
            return Pairs(blocks, check=self._check_blocks if known else None)
        if known:
            self._check_columns(blocks)
        return blocks if isinstance(blocks, Ahead) else Ahead(blocks)

    def _start_tasks(self, tasks: Tasks, passes: int | None, describe: Callable[[], None]) -> None:
        """Tell what follows a run how many passes it takes; None where it ends at a certified gap."""

        def copied() -> Attributes:
            describe()
            return self.copied_attributes()

        if passes is None:
            tasks.start(READING, None, copied)
        else:
            start_passes(tasks, passes, None, copied)

    def options_of_run(self, stream: Stream, classes: Any, passes: int, anew: bool, shuffled: Shuffled | None) -> Options:
        """The options of a run over a stream. To find the classes may take a pass of its own, after which the generator stands
        where it stood: the order of the rows that are learned does not depend on it."""
        generator = None if shuffled is None else shuffled.state()
        options, weights = self._options(stream, classes, passes), self._stream_weights(stream, anew)
        if shuffled is not None and generator is not None:
            shuffled.restore(generator)
        most = count("max_passes", self.max_passes) if anew and self.certifies() else None
        return options._replace(class_weights=weights, most=most, reports=anew)

    def _follow(
        self,
        model: Self,
        training: Training,
        callbacks: Any,
        total: int | None,
        before: dict[str, Any],
        describe: Callable[[], None],
    ) -> None:
        """Learn the rows of a run of a model. An error leaves the attributes of ``before`` where no row was learned."""
        certifies = training.options.most is not None
        with ExitStack() as stack:
            shown = show_passes() if self.verbose and certifies else None
            if self.verbose and not certifies:
                callbacks = [stack.enter_context(show_bar(training.learner.t, total)), *callbacks]
            progress = Progress(self, total)

            def watch() -> None:
                if training.rows and vars(self).get("learner_") is not model.learner_:
                    describe()
                tell(callbacks, progress)

            training.watch = watch
            try:
                for event in training:
                    if shown is not None and isinstance(event, Certified):
                        shown(event)
            except BaseException as error:
                if not training.has_learned:
                    put_back(self, before)
                elif isinstance(error, StreamError):
                    raise StreamError(f"{error} (Rows learned before: {training.rows:,}.)") from None
                raise
            finally:
                training.watch = lambda: None  # it knows the run: a cycle would keep each model until garbage is collected
                if training.has_learned:
                    describe()

    def _options(self, stream: Stream, classes: Any, passes: int) -> Options:
        if self.task == REGRESS:
            return Options(passes, REGRESS)
        named = getattr(stream, "named", None)
        if named is not None:  # the rows hold places of classes
            return Options(passes, CLASSIFY, None, list(range(len(named))))
        if isinstance(classes, str) and classes == "scan":
            classes = scan(stream)
        known = getattr(self, "classes_", None)
        if classes is not None and known is not None:
            given = np.unique(label_array(classes))
            if not np.array_equal(given, known):
                raise ValueError(f"classes={quote(given)} differs from the classes of the first call: {quote(known)}.")
        if known is not None:
            return Options(passes, CLASSIFY, None, known, known=True)
        return Options(passes, CLASSIFY, None, None if classes is None else label_array(classes).tolist())

    def _stream_weights(self, stream: Stream, balance: bool) -> dict[Any, float] | None:
        """By what the rows of a stream count beside their own weights."""
        return None

    def _take_over(self, model: Self, stream: Stream, training: Training, before: dict[str, Any], anew: bool) -> None:
        """Have what the rows have shown, which the estimator itself learned, or a twin of it."""
        model._describe_stream(stream, training, before, anew)
        if model is not self:
            self._become(model, before)

    def _become(self, other: Self, before: Mapping[str, Any]) -> None:
        """Have what another estimator of these settings has learned, at once for other threads, and nothing else of what there
        was ``before``. Settings, and attributes that callbacks have given, stay."""
        theirs = learned(other) | {"_begun": other._begun}
        self.__dict__.update(theirs)
        for name in before.keys() & learned(self).keys() - theirs.keys():
            del self.__dict__[name]
        take_out(self)

    def _describe_stream(self, stream: Stream, training: Training, before: dict[str, Any], anew: bool) -> None:
        """Take what the rows have shown: features, their names, classes. The history is that of ``fit``."""
        if isinstance(stream, Pairs):
            if stream.width > self.learner_.size:
                self.learner_.grow(stream.width)
            if stream.columns is not None and stream.check is None:  # of a model that is trained anew
                self.feature_names_in_ = np.array(stream.columns, dtype=object)
        training.describe_rows()
        if getattr(stream, "named", None) is not None:
            self.classes_ = stream.named  # type: ignore[attr-defined]
        if not anew:
            self.history_, self.n_iter_ = before.get("history_", []), before.get("n_iter_", 1)

    def _refuse_columns_of_streams(self) -> None:
        self.refuse_columns_asked("X is a stream that is open already", "give it to streams.open")

    def _refuse_shuffle(self) -> None:
        if self.shuffle is not None and self.chosen_shuffle():
            raise ValueError(
                f"shuffle={self.shuffle!r} needs all rows at once; a stream's rows are learned in its order: "
                "give streams.Shuffled(stream, window, seed) and shuffle=None."
            )

    def _run(
        self,
        feed: Feed,
        scored: ScoredBefore | None = None,
        tasks: Tasks = NOBODY,
        untold: int = 0,
        chosen: Chosen | None = None,
    ) -> None:
        """Learn the rows of all passes, ``untold`` together where nobody is told between. ``chosen``: the passes of ``fit``,
        which are counted; the slope is kept with the last of them, before callbacks are told of its end."""
        made, told = 0, rows_told(self.learner_.n_outputs)
        callbacks = check_callbacks(self.callbacks)
        with ExitStack() as stack:
            if self.verbose:
                callbacks = [stack.enter_context(show_bar(self.t_, feed.total)), *callbacks]
            for blocks in feed.passes(tasks, told if callbacks or tasks is not NOBODY else max(told, untold)):
                made += 1
                if chosen is not None:
                    self.n_iter_ = made
                if made > 1:
                    self.learner_.end_first_pass()
                for source, y, weights, where in blocks:
                    scores = self.learner_.learn_checked(source, y, weights, where)
                    if scored is not None:
                        scored.add(scores[1].T, y, weights)
                    tell(callbacks, Progress(self, feed.total))
                if chosen is not None and chosen.slope is not None and made == chosen.passes:
                    self.learner_.keep_slope(chosen.slope)

    def copied_attributes(self) -> Attributes:
        """Attributes that make a copy of the estimator predict as it does now, whatever it learns later."""
        return {"learner_": deepcopy(self.learner_), "history_": [*self.history_]}

    def chosen_shuffle(self) -> bool | str:
        """The order of the rows in a pass: as set, else that of the preset, else a new permutation."""
        if self.shuffle is not None:
            if isinstance(self.shuffle, (bool, np.bool_)):
                return bool(self.shuffle)
            if isinstance(self.shuffle, str) and self.shuffle == "replacement":
                return self.shuffle
            raise ValueError(f"shuffle must be None, False, True or 'replacement', got {self.shuffle!r}.")
        preset = preset_of(self.solver).shuffle
        return True if preset is None else preset

    def __getstate__(self) -> dict[str, Any]:
        learner = vars(self).get("learner_")
        if not isinstance(learner, Learner):
            return without_rows(without_turn(super().__getstate__()))
        with learner.reading():
            state = without_rows(without_turn(super().__getstate__()))
            if state.get("learner_") is learner:
                return at_rest(state, learner)
        return self.__getstate__()  # another thread began anew

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: as_made(value) for name, value in state.items()})

    def __copy__(self) -> Self:
        twin: Any = object.__new__(type(self))
        vars(twin).update(without_rows(without_turn(vars(self).copy())))
        return twin

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.scale != "standard"  # asked of settings that may be wrong
        return tags
