"""Learner: loss + penalty + solver + average + state. It knows no algorithm."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear import rows
from onlinear.compiled import Lengths
from onlinear.compiled.calls import TAKES_CALLS
from onlinear.compiled.objects import READABLE
from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.files import model_file
from onlinear.learner import row_calls, stored_learner
from onlinear.learner.arguments import count, one_row, only_one, plain_row, row_of_call
from onlinear.learner.certificates import gaps_in_memory, refuse_gap
from onlinear.learner.clip import bounded
from onlinear.learner.core import NO_NUMBER, Core
from onlinear.learner.learn_one import OneRow, retyped
from onlinear.learner.learn_outputs import OutputsOfRow
from onlinear.learner.loss_sums import LossSum, as_taken, loss_weights, mean
from onlinear.learner.predict_one import WORTH, OneScore, bound_of
from onlinear.learner.read_once import learned_as_read
from onlinear.learner.read_one import OneRead
from onlinear.learner.row_calls import LENGTHS, LISTED, UNTIL, built_in_of, tell
from onlinear.learner.scores import CALL, MOST_HELD, Predictors, Weights, penalty_value
from onlinear.learner.side_by_side import SideBySide
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.learner.turns import changes, reads
from onlinear.learner.uncertainty import interval_of, std_of
from onlinear.losses import is_joint
from onlinear.rows import Source, checks
from onlinear.rows.scaling import Scaler
from onlinear.solvers.core.certified import Tell
from onlinear.solvers.core.state import GAINS, T
from onlinear.text.form import check_number

WORTH_ITS_CODE = 100  # rows that came by themselves, from which on code for single rows is worth compiling


class Whole(NamedTuple):
    """All rows in their final scales as a batch solver takes them, their targets and weights, and the scales."""

    rows: Any
    y: np.ndarray
    s: np.ndarray
    scaler: Scaler | None


class Learner(Core):
    """A linear model that learns rows one at a time, by one method.

    It minimises

        F(w, b) = mean_i s_i l(<w, x_i> + b, y_i) + r(w)

    with the loss l, the penalty r and the weights s_i of the rows. Rows are learned in the order given. Any split of the rows
    into calls gives the same state, bit for bit; reading never changes it.

    Parameters
    ----------
    solver : str or solver object
        The method, as ``"name,key=value,..."`` or as an object of ``onlinear.solvers``.
    loss : str or loss object
        The loss l, such as ``"logistic"`` or ``"huber,delta=2"``. Its targets are -1 and +1 (logistic, hinge), counts (poisson)
        or real numbers. ``"softmax"`` is a loss of all outputs: its targets are classes from 0 to K - 1, or (n, K) with +1 for
        the row's class and -1 for the others.
    penalty : str or penalty object, default="none"
        The penalty r, such as ``"l1=1e-5"``. It acts on the weights of scaled columns.
    average : str or Average, default=None
        The average of the iterates, by which ``predict`` scores. None is the average of the named method, which for most is
        none. ``"adaptive"`` is the weighted-t1 average, or the last iterate while that scores the recent rows better.
        ``"adaptive,calibrated=true"`` multiplies it by a calibration slope, so that probabilities and numbers are neither too
        sure nor too unsure. The slope is learned from the scores that rows had before they were learned. It is for the losses
        logistic and softmax, whose several outputs are then the classes of one target, and for squared with one output. With
        ``masked=true`` after another name, as in ``"weighted-t1,masked=true"``, an average is 0 where the last iterate is 0.
    scale : {"none", "centred", "tempered", "dense", "rms", "max-abs", "standard"}, default="none"
        How each column is scaled. ``"rms"`` and ``"max-abs"`` divide it by its running root mean square or largest absolute
        value. ``"centred"`` does as ``"rms"``, but the columns with an entry in many rows are centred at their running mean and
        divided by their running deviation. ``"tempered"`` centres the same columns, and divides each other one by the geometric
        mean of its size and that of all entries of such columns, within a factor of 2 of its own size. ``"dense"`` centres the
        columns that nearly all rows have, and leaves the others. These three need an intercept. ``"standard"`` centres all
        columns; it needs the mean of all rows before the first, which ``fit`` of an estimator finds.
    fit_intercept : bool, default=False
        Whether there is an intercept b. The penalty does not act on it.
    n_features : int, default=None
        The number of columns d. With None it grows with the rows.
    n_outputs : int, default=1
        The number of targets K that are trained in one pass.
    start : array-like of shape (d,) or (d, K), default=None
        The weights before the first row; None is 0. It needs ``scale="none"``.
    targets : {"raw", "relative"}, default="raw"
        With ``"relative"`` the first target is the zero of all targets. With an intercept, scores count from the mean of the
        first 64 or fewer. For losses with a bounded slope the step sizes are multiplied by the running deviation of the
        targets, in which few targets far out count little. With the Poisson loss scores count from the logarithm of the
        running mean (with an intercept), and step sizes are divided by the running size of the counts.
    weights : {"raw", "relative"}, default="raw"
        With ``"relative"`` the step sizes are divided by the largest weight so far to the power 3/4.
    clip : bool, default=False
        Whether predictions are clipped to the smallest and largest target so far, and learned with the loss that matches: slope
        clip(s) - y. For the squared loss with ``targets="relative"``; for the Poisson loss too, whose means stay between a
        third of the smallest count and three times the largest. ``objective`` is that of the loss named and of the linear
        scores.
    forget : float, default=None
        The half-life in rows: rows that are older count less than half, in the objective, the steps and the average. For
        ``implicit-ftrl``, ``ftrl``, ``rda`` and ``adagrad-rda``. None forgets nothing.
    uncertainty : {"none", "targets", "scores"}, default="none"
        What ``predict_std`` and ``predict_interval`` are about. ``"targets"``: how far targets that are numbers may be from the
        predictions, by the errors on rows before they were learned; it costs little. ``"scores"``: how far the scores may be
        from those of a model of resampled rows, by four copies that are trained beside this one, in five times the time.
    gain : bool, default=False
        Whether ``fiol`` sums what its implicit steps gain over explicit ones, for the properties ``gain`` and
        ``gradient_squares`` and the method ``regret_bound``. It costs a second product of each row with the weights. No weight
        is changed by it.
    total : int, default=None
        The number of rows that will be learned, where it is known. Some schedules and averages need it.
    n_jobs : int, default=None
        The threads that share many outputs: None is 1, -1 all cores. They change nothing but the time.

    Attributes
    ----------
    t : int
        Rows learned.
    size : int
        Columns known.
    progressive_loss : float
        Mean loss of the rows learned, each scored before it was learned; nan by solvers of all rows at once.

    Raises
    ------
    ValueError
        For an unknown name, a setting out of range, or a combination of parts that has no correct form.
    TypeError
        For an argument of another type, or a part object that lacks a method.

    Notes
    -----
    Several threads may use one learner. Each call has the learner to itself, so every row is used once, and the calls follow
    each other in the order in which they were let in. ``predict``, ``weights``, ``save`` and the other methods that read wait
    for a call that learns, and see all of its rows or none.

    ``"relative"`` units need ``implicit-ftrl``, ``fiol``, ``implicit-sgd``, ``comid``, ``sgd`` or ``mixture``.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinear import Learner
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> learner = Learner("comid,eta=0.5", "hinge", "l1=0.01").learn(X, [1, -1, 1])
    >>> learner
    <Learner: solver comid,eta=0.5 | loss hinge | penalty l1=0.01 | 3 rows | 2 columns | 1 output>
    >>> learner.t, learner.size
    (3, 2)
    >>> learner.predict(X) > 0
    array([ True, False,  True])
    """

    _one: OneRow | OutputsOfRow | None = None  # made by the first learn_one
    _singles = 0  # rows that came to ``learn_single``
    _score: OneScore | None = None  # made by predict_one, once that is worth it
    _read: OneRead | None = None  # made by the first predict_one
    _lengths: Lengths | None = None  # of what these hold
    _held: tuple[tuple[int, float], Weights] | None = None  # the weights that predict, and the moves and rows of their moment
    _asked: tuple[tuple[int, float], int] = ((-1, -1.0), 0)  # that moment, and the weights read since, of entries alone
    _read_since = (-1, 0)  # rows learned, and the rows that predict_one has scored since by the way of a block

    # --- learning ----------------------------------------------------------------------------------------------------

    @changes
    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Learner:
        """Learn the rows of X once, in order.

        Parameters
        ----------
        X : array-like or sparse container of shape (n, d)
            The rows: CSR, CSC or dense.
        y : array-like of shape (n,) or (n, K)
            The targets.
        sample_weight : array-like of shape (n,), default=None
            What multiplies the loss of each row, at least 0; None is 1.

        Returns
        -------
        Learner
            This learner.

        Raises
        ------
        ValueError, TypeError
            For wrong input: no row is learned, the learner stays as it was.
        DivergenceError
            Where the state stops being finite. The learner then refuses to continue.
        """
        if not learned_as_read(self, X, y, sample_weight):
            self.learn_checked(*self.check_input(X, y, sample_weight))
        return self

    def alone(self) -> SideBySide:
        """What learns rows for this learner by itself, without others beside it."""
        return SideBySide((self,), self.team(), self.threads)

    @changes
    def learn_checked(
        self, source: Source, y: np.ndarray, weights: np.ndarray, where: Callable[[int], str] = row_of_call
    ) -> np.ndarray:
        """Learn checked rows; ``where`` names the one at which the state stops being finite. Give the scores before each step,
        (2, K, n): of the last iterate, and of what predicted. Where predictions are clipped (4, K, n): then both before the
        clip."""
        self.refuse_if_diverged()
        with uninterrupted():
            self._end_waiting()
            self.make_room(source)
            alone = self.alone()
        if self.spread is None:
            return alone.learn(source, y, weights, where)
        with uninterrupted():  # the copies learn the same rows
            before = self.t
            scores = alone.learn(source, y, weights, where)
            self.spread.follow(source, y, weights, scores[1], before)
            return scores

    def _end_waiting(self) -> None:
        """Finish a single row whose learning Ctrl-C has interrupted."""
        if self._one is not None:
            self._one.end_waiting()

    def learn_single(self, source: Source, y: np.ndarray, weights: np.ndarray) -> bool:
        """Learn a checked row as ``learn_one`` does, in a fifth of the time of a block. False, and nothing is learned, where it
        has no such way, and while so few rows came by themselves that its code is not worth compiling."""
        if source.n != 1 or weights[0] != 1.0:
            return False
        self._singles += 1
        follows = self.units is not None and self.units.targets and self.n_outputs > 1
        if self._singles < WORTH_ITS_CODE or follows or not self._can_learn_one:
            return False
        self.learn_one(*source.single(), float(y[0, 0]) if self.n_outputs == 1 else y[0])
        return True

    @property
    def _can_learn_one(self) -> bool:
        """Whether there is code for single rows."""
        return READABLE and self.states[0].waiting is None and self.spread is None and not self.centres_rows

    def learn_one(self, indices: Any, values: Any, y: Any) -> Any:
        """Learn one row, given by its non-zeros.

        Parameters
        ----------
        indices : array-like of shape (nnz,), integers
            The columns, from 0. Ascending ones without repeats are fastest; entries of a repeated column are summed.
        values : array-like of shape (nnz,)
            The values at these columns. Arrays of float64 or float32 are fastest.
        y : float, or array-like of shape (K,)
            The target; with ``"softmax"`` the class, from 0, or +1 for it and -1 for the others.

        Returns
        -------
        float, or ndarray of shape (K,)
            The score of the row before the step, by the last iterate; with ``"softmax"`` the log-probabilities.

        Raises
        ------
        ValueError, TypeError
            For wrong input: the learner stays as it was.
        DivergenceError
            Where the state stops being finite.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinear import Learner
        >>> learner = Learner("comid", "hinge")
        >>> learner.learn_one(np.array([0, 7]), np.array([1.0, 2.0]), 1.0)
        0.0
        """
        with self.lock:
            one = self._one
            if one is None or (score := one.learn(indices, values, y)) is None:
                return self._learn_any(indices, values, y)
            return score

    def grow(self, size: int) -> None:
        """Grow to ``size`` columns. Arrays that the code for single rows holds grow in place while there is room; else it is
        bound anew."""
        with self.lock:
            if not self.follows:
                self._lengths = self._lay_out(size)
            if self._lengths is None or size > self.follows:
                super().grow(size)
                return
            self._lengths.follow(size)
            self.know()

    def _lay_out(self, size: int) -> Lengths | None:
        """The lengths of the arrays that the code for single rows holds, which grow up to the arrays' room; None where they
        cannot grow in place. Compiled code may grow them too where that fills nothing, up to the limit of the state."""
        one, read = self._one, self._read
        if one is None or not one.is_bound or self.room < size:
            return None
        found, counts = None, [one.count, *self.counts]
        if read is not None and read.is_bound and read.all_held:
            found = Lengths.of([*one.all_held, *read.all_held], self.lying, self.size, [*counts, read.count])
        if found is None:
            if read is not None:
                read.bind_anew()
            found = Lengths.of(one.all_held, self.lying, self.size, counts)
        if found is not None:
            self.follows = self.room
            self.words[LENGTHS : LENGTHS + 2] = found.table
            self.words[UNTIL] = 0 if self.fills else min(self.room, self.widest)
        return found

    def learn_compiled(self, row: Any, names: Any, y: Any) -> Any:
        """Learn a dict, whose columns ``names`` knows, by one compiled call, and give its score as ``learn_one`` does. Give
        None, and learn nothing, for a dict that needs a slower way."""
        with self.lock:
            return None if self._one is None else self._one.learn(row, names, y)

    def _learn_any(self, indices: Any, values: Any, y: Any) -> Any:
        """Learn any row, by the way that blocks of rows take."""
        self.refuse_if_diverged()
        row: Any = None if self.centres_rows else plain_row(indices, values)
        row = one_row(indices, values) if row is None else row
        if self.centres_rows:
            row.resize((1, max(row.shape[1], self.size)))
            row = row.toarray()
        source = rows.learnable(self.read_rows(row, "the row"), "the row")
        if self.n_outputs > 1:  # a class alone names the targets of all outputs that one loss joins
            y = np.reshape(y, 1 if is_joint(self.loss) and np.ndim(y) == 0 else (1, -1))
        target = self.check_targets(y if self.n_outputs > 1 else only_one(y), 1)
        scores = self.learn_checked(source, target, np.ones(1))[0, :, 0]
        if self._can_learn_one and (self._one is None or self._one.capacity < source.nnz):
            self._one = (OneRow if self.n_outputs == 1 else OutputsOfRow)(self, max(256, 2 * source.nnz), self.alone)
            self._build_in()
        return float(scores[0]) if self.n_outputs == 1 else scores

    def end_compiled(self, row: Any, names: Any, y: Any) -> float | None:
        """End the learning of a dict, where compiled code was called by a built-in function and gave no score; None as in
        ``learn_compiled``. The caller has the lock."""
        return self._one.end(row, names, y) if isinstance(self._one, OneRow) else None

    def _end_row(self, indices: Any, values: Any, y: Any) -> Any:
        """``end_compiled`` for any row, which is learned by the slower way where needed."""
        score = self.end_compiled(indices, values, y)
        return self._learn_any(indices, values, y) if score is None else score

    def _build_in(self) -> None:
        """Let built-in functions take the place of the methods for single rows, as this lock is."""
        if TAKES_CALLS and type(self) is Learner and self.n_outputs == 1:
            self.__dict__["learn_one"] = built_in_of(row_calls.learn_one, self, "indices, values, y", self._end_row)
            self.__dict__["predict_one"] = built_in_of(row_calls.predict_one, self, "indices, values")

    def after_fork(self) -> None:
        super().after_fork()
        if "learn_one" in vars(self):
            self._build_in()

    @changes
    def solve(self, X: Any, y: Any, iterations: int, sample_weight: Any = None) -> Learner:
        """Run a batch solver (``batch-drs``, ``prox-newton``, ``sdca``) over all rows at once.

        Parameters
        ----------
        X, y
            The rows, as in ``learn``; at least one row.
        iterations : int
            The number of iterations, at least 1: for ``prox-newton`` and ``sdca`` the most passes over all rows, which may end
            before at a gap of ``tol``. A further call continues.
        sample_weight
            The weights of the rows, as in ``learn``.

        Returns
        -------
        Learner
            This learner.

        Raises
        ------
        ValueError
            For a solver that learns rows one by one, and for wrong input.
        DivergenceError
            Where a step size has no finite form.
        """
        steps = count("iterations", iterations)
        return self.solve_whole(self.whole(X, y, sample_weight), steps)

    @changes
    def whole(self, X: Any, y: Any, sample_weight: Any = None) -> Whole:
        """All rows as the batch solver takes them; learners of other penalties and the same columns may solve them too."""
        source, y, weights = self.check_input(X, y, sample_weight)
        if source.n == 0:
            raise ValueError("X has 0 rows; a batch solver needs at least one.")
        self.make_room(source)
        if self.running_scaler is not None and self.engine.certifies:
            source = self.running_scaler.whole(source, weights, first=self.t == 0)
        return Whole(self.engine.prepare(source), y, loss_weights(self.loss, weights), self.scaler)

    @changes
    def solve_whole(self, whole: Whole, steps: int, start: Predictors | None = None, tell: Tell | None = None) -> Learner:
        """``solve`` from a start; None: from where it stands. ``tell``: what a solver with certificates tells of each pass."""
        if whole.scaler is not self.scaler:
            self.scaler = deepcopy(whole.scaler)
        if start is not None:
            self.begin_at(*start)
        more = (tell,) if self.engine.certifies else ()
        try:
            self.engine.solve_outputs(self.states, whole.rows, whole.y, whole.s, steps, *more)
        except NO_NUMBER:
            self.diverge("", self.t + 1)
        return self

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    @reads
    def progressive_loss(self) -> float:
        """Mean over the rows learned of s_i l(score before the step, y_i), summed over outputs; nan before the first row, and
        by solvers of all rows at once, which score none before it is learned. Rows that rounds over shards have learned, which
        are scored nowhere, do not count."""
        return nan if self.engine.batch else mean(self.total_loss, self.t - self.unscored)

    @property
    @reads
    def gain(self) -> float:
        """What the implicit steps gained over explicit ones, summed over the rows learned and over outputs.

            sum_t delta_t,     delta_t = l_t(w_{t+1}) - l_t(w_t) - <g_t, w_{t+1} - w_t> >= 0

        with the row's loss l_t, its weight included, and its slope g_t at w_t. The regret of ``fiol`` is at most that of an
        explicit step's bound less this sum (P3 Lemma 1; ``docs/mathematics.md`` 8.10).

        Returns
        -------
        float
            The sum; 0 before the first row. A row whose gain overflows is left out.

        Raises
        ------
        AttributeError
            For a learner without ``gain=True``.
        """
        return sum(float(sums[0] + sums[1]) for sums in self._gains())

    @property
    @reads
    def gradient_squares(self) -> float:
        """sum_t eta_t |g_t|^2 / 2 over the rows learned and over outputs, which an explicit step's bound on the regret has.

        Returns
        -------
        float
            The sum, infinite where a slope's square overflows.

        Raises
        ------
        AttributeError
            For a learner without ``gain=True``.
        """
        return sum(float(sums[2]) for sums in self._gains())

    @reads
    def regret_bound(self, distance: float) -> float:
        """A bound on the regret so far against all models within a distance of every iterate, found by the run itself.

            sum_t [l_t(w_t) + r(w_t)] - sum_t [l_t(u) + r(u)]
                <= r(w_1) + D^2 / (2 eta_T) + sum_t (eta_t / 2) |g_t|^2 - sum_t delta_t

        for every model u with |w_t - u| <= D, t = 1 .. T, where the step sizes never grow. The intercept, where there is one,
        is part of w and u.

        Parameters
        ----------
        distance : float
            D, at least 0. Where all steps have one size the distance of u from the start suffices.

        Returns
        -------
        float
            The bound; 0 before the first row.

        Raises
        ------
        AttributeError
            For a learner without ``gain=True``.
        ValueError, TypeError
            Where the lemma has no such sum: several outputs, ``scale=``, and units that are relative; and for a wrong
            distance.

        References
        ----------
        P3 (fully implicit online learning), Lemma 1 and Theorem 1.
        """
        sums = self._gains()
        if len(sums) > 1 or self.scaler is not None or self.units is not None:
            raise ValueError(
                "regret_bound needs one output, scale='none', targets='raw' and weights='raw': the lemma is of a run in "
                "units that do not change."
            )
        radius = check_number("", "distance", distance, 0.0, inf)
        if self.t == 0:
            return 0.0
        gained, correction, squares, first = sums[0].tolist()
        return radius**2 / (2.0 * self.engine.eta(self.t)) + squares + first - (gained + correction)

    def _gains(self) -> list[np.ndarray]:
        """What each output's steps gained."""
        if not self.sums_gains:
            raise AttributeError("this learner does not sum what its steps gain: make it with gain=True.")
        self.refuse_if_diverged()
        return [state.kept[GAINS] for state in self.states]

    @reads
    def weights(self, average: bool = False) -> np.ndarray:
        """The weights, in the columns' own units.

        Parameters
        ----------
        average : bool, default=False
            Whether to give those of the average, by which ``predict`` scores; else those after the last row. Without an average
            the two are the same.

        Returns
        -------
        ndarray of shape (d,) or (d, K)
            A fresh array. The score of a row x is <w, x> + b for x as it was given, whatever the scale.

        Raises
        ------
        DivergenceError
            Where a weight is not finite.
        """
        found = list(self.each_weights(self.columns, average))
        return found[0] if self.n_outputs == 1 else np.stack(found, axis=1)

    @reads
    def intercept(self, average: bool = False) -> Any:
        """The intercept, in the units of the targets.

        Parameters
        ----------
        average : bool, default=False
            As in ``weights``.

        Returns
        -------
        float, or ndarray of shape (K,)
            The intercept b; 0 where none is fitted.

        Raises
        ------
        DivergenceError
            Where it is not finite.
        """
        found = list(self.each_bias(average))
        return found[0] if self.n_outputs == 1 else np.array(found)

    def predict(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b, of the average where one is set.

        Parameters
        ----------
        X : array-like or sparse container of shape (n, d)
            The rows, in their own units. Columns that no row has had so far have weight 0.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The scores; with ``clip=True`` within the targets seen.

        Raises
        ------
        ValueError, TypeError
            For wrong input, and for columns beyond a fixed ``n_features``.
        DivergenceError
            Where the state is not finite.
        """
        return bounded(self.linear_scores(X), self.bounds())

    def linear_scores(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b (n,) or (n, K), as ``predict`` gives them where it clips nothing."""
        self.refuse_if_diverged()
        source = self.check_width(rows.read(X))
        weights = self._all_weights(source.nnz)
        out = self._score_few(source) if weights is None else weights.score_rows(source)
        return out[:, 0] if self.n_outputs == 1 else out

    @reads
    def predict_std(self, X: Any) -> np.ndarray:
        """How far predictions may be off: the standard deviation u(x) sqrt(mean of z^2), see ``predict_interval``.

        Parameters
        ----------
        X : array-like or sparse container of shape (n, d)
            The rows, in their own units.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            With ``uncertainty="targets"`` of the targets, in their units; with ``"scores"`` of the scores.

        Raises
        ------
        ValueError, TypeError
            For wrong input, without ``uncertainty``, and before two rows with a weight were learned.
        DivergenceError
            Where the state is not finite.
        """
        return std_of(self, self.read_rows(X, "X"))

    @reads
    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals that hold a share of the targets, or of the scores of models trained on rows drawn anew.

            p(x) + u(x) [q_low, q_high]

        where p is the prediction, and q are quantiles of z_t = (what was found - p_t) / u_t over the rows, each before it was
        learned; where an average other than ``adaptive`` is named, p_t is the last iterate's. With the leverage h of the row,
        u^2 is 1 + h for targets, h for scores (``docs/uncertainty.md``).

        Parameters
        ----------
        X : array-like or sparse container of shape (n, d)
            The rows, in their own units.
        coverage : float, default=0.9
            The share, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or (n, K, 2)
            The lower and the upper end.

        Raises
        ------
        ValueError, TypeError
            For wrong input, without ``uncertainty``, and before two rows with a weight were learned.
        DivergenceError
            Where the state is not finite.
        """
        return interval_of(self, self.read_rows(X, "X"), self.predict(X), coverage)

    def predict_one(self, indices: Any, values: Any) -> Any:
        """Score one row, given by its non-zeros, as ``predict`` does.

        Parameters
        ----------
        indices : array-like of shape (nnz,), integers
            The columns, from 0. Ascending ones without repeats are fastest.
        values : array-like of shape (nnz,)
            The values at these columns. Arrays of float64 or float32 are fastest.

        Returns
        -------
        float, or ndarray of shape (K,)
            The score <w, x> + b.

        Raises
        ------
        ValueError, TypeError
            For wrong input, and for columns beyond a fixed ``n_features``.
        DivergenceError
            Where the state is not finite.

        Notes
        -----
        While no row is learned, all weights are held ready: a call costs about a microsecond. The first calls after a row that
        was learned compute the weights of the row's own columns.

        Examples
        --------
        >>> import numpy as np
        >>> from onlinear import Learner
        >>> learner = Learner("comid,eta=0.5", "hinge").learn([[1.0, 0.0]], [1])
        >>> learner.predict_one(np.array([0, 1]), np.array([2.0, 3.0]))
        1.0
        """
        score = self.score_compiled(indices, values)
        return self._predict_any(indices, values) if score is None else score

    def score_compiled(self, first: Any, second: Any) -> Any:
        """The score, as ``predict_one`` gives it, by one compiled call, of columns and values, or of a dict and its ``Names``;
        None for a row that needs a slower way."""
        held = self._score
        if held is not None and held.take is not None and held.moves == self.moves:
            found = held.take(held.here, first, second)
            if found == found:
                return found
        with self.lock:
            before, self.reads_only = self.reads_only, True
            try:
                return self._score_given(first, second)
            finally:
                self.reads_only = before

    def _score_given(self, first: Any, second: Any) -> Any:
        """The score of a row by one compiled call; None where that is not possible."""
        held = self._score
        if held is not None:
            found = held.score(first, second) if held.moves == self.moves else None
            if found is not None or (held.moves == self.moves and held.t == self.states[0].now[T]):
                return found
            self._list(None)  # rows were learned since
        return None if self._read is None else self._read.score(first, second)

    @reads
    def _predict_any(self, indices: Any, values: Any) -> Any:
        """Score any row, by the way that blocks of rows take; hold all weights where that is worth it."""
        others = retyped(indices, values)
        found = None if others is None else self._score_given(*others)
        t, held = self.states[0].t, self._score
        if found is None:
            row = plain_row(indices, values)
            scores = self.predict(one_row(indices, values) if row is None else row)
            found = float(scores[0]) if self.n_outputs == 1 else scores[0]
            width = len(indices) + (0 if self.scaler is None else len(self.scaler.centred))
            if READABLE and (self._read is None or self._read.capacity < width):
                self._read = OneRead(self, max(256, 2 * width))
                self._build_in()
            self._read_since = (t, self._read_since[1] + 1 if self._read_since[0] == t else 1)
        worn = self._read is not None and self._read.worn
        if held is None and (worn or self._read_since[1] > 1 + self.size // WORTH):
            biases, weights = zip(*self.each_bias_and_weights(), strict=True)
            rest = self.states[0].now, bound_of(self.growing, self.size), self.bounds(), self.moves
            self._list(OneScore(np.stack(weights, axis=1), np.array(biases), *rest))
        return found

    def _list(self, score: OneScore | None) -> None:
        """Score single rows by weights that are listed; None: no more."""
        self.words[LISTED] = -1
        self._score = score
        if score is not None and score.take is not None and TAKES_CALLS:
            tell(self.words, LISTED, score.address, score.here)

    @reads
    def _all_weights(self, entries: int) -> Weights | None:
        """All weights and intercepts by which the outputs predict. None while it costs less to compute those of the entries
        alone: until more entries were asked for, since the model learned, than there are columns."""
        moment = self.moves, float(self.states[0].now[T])
        if self._held is not None and self._held[0] == moment:
            return self._held[1]
        asked = entries + (self._asked[1] if self._asked[0] == moment else 0)
        if asked <= self.size:
            self._asked = moment, asked + CALL
            return None
        found = Weights.of(self.each_bias_and_weights(), self.n_outputs, self.size)
        few = found.bytes <= max(MOST_HELD, self.size * self.bytes_per_column // 2)
        self._held = (moment, found) if few and not self.engine.batch else None
        return found

    @reads
    def _score_few(self, source: Source) -> np.ndarray:
        """The scores of rows with few entries, all of one moment; only the weights of their columns are computed."""
        out = np.empty((source.n, self.n_outputs))
        for which, block in source.blocks():
            known = block.indices < self.size
            columns = block.indices[known]
            places = np.where(known, np.cumsum(known) - 1, len(columns)).astype(np.uint32)  # at the end: of weight 0
            weights = Weights.of(self.each_bias_and_weights(columns), self.n_outputs, len(columns))
            weights.score_block(block._replace(indices=places), out[which])
        return out

    @reads
    def objective(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F at the predictor: the mean loss of the rows plus the penalty, summed over outputs.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as in ``learn``; at least one row.

        Returns
        -------
        float
            mean_i s_i l(score_i, y_i) + r(w), where w are the weights of scaled columns, on which the penalty acts.

        Raises
        ------
        ValueError, TypeError
            For wrong input.
        DivergenceError
            Where the state is not finite.
        """
        source = self.check_width(rows.read(X), f" (n_features={self.size})")
        y, weights = self.check_targets(y, source.n), checks.weights(sample_weight, source.n)
        if source.n == 0:
            raise ValueError("X has 0 rows; the objective is a mean over rows.")
        scores = as_taken(self.loss, self.linear_scores(X).reshape(source.n, self.n_outputs))
        total = 0.0
        for k in range(self.n_outputs):
            losses = LossSum(self.loss)
            losses.add_taken(scores[:, k : k + 1], y[:, k : k + 1], weights)
            total += losses.value / source.n + penalty_value(self.penalty, self.scaled_weights(k, self.columns, True))
        return total

    @reads
    def duality_gap(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How far the objective is at most above that of the best model, relative and certified.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as in ``learn``; at least one row.

        Returns
        -------
        float
            (F - D) / (F - inf l), where F is ``objective`` and D a bound that no model of these parts, scales and columns is
            below (``docs/certified.md``). At a gap of e, F is at most e / (1 - e) above the optimum, relative to it. Of
            several outputs the largest gap; of outputs that one loss joins, as softmax does, that of all. For a loss with
            kinks (hinge, absolute) it may be far above the true distance.

        Raises
        ------
        ValueError, TypeError
            For wrong input, without a penalty, and for parts without a conjugate.
        DivergenceError
            Where the state is not finite.
        """
        refuse_gap(self)
        source = self.read_rows(X, "X")
        y, weights = self.check_targets(y, source.n), checks.weights(sample_weight, source.n)
        if source.n == 0:
            raise ValueError("X has 0 rows; a duality gap is about a mean over rows.")
        scores = self.linear_scores(X).reshape(source.n, self.n_outputs)
        return max(gap.relative for gap in gaps_in_memory(self, source, scores, y, weights))

    @reads
    def variables(self) -> dict[str, Any]:
        """The solver's quantities after the last row, by the paper's letters.

        Returns
        -------
        dict of str to ndarray or float
            Copies, in the units of scaled columns and of the solver's targets. With K outputs the last axis is that of the
            outputs, except for quantities that all outputs share.

        Raises
        ------
        DivergenceError
            Where the state is not finite.
        """
        self.refuse_if_diverged()
        every = [self.compute(self.engine.variables, state) for state in self.states]
        found = [{name: value + 0.0 for name, value in variables.items()} for variables in every]
        if self.average is not None:
            for variables, state in zip(found, self.states, strict=True):
                name = self.engine.mean_letter(self.average)
                variables.setdefault(name, self.compute(self.engine.mean, state, self.columns))
        if self.n_outputs == 1:
            return found[0]
        own = [name for name in found[0] if name not in self.engine.shared]
        return found[0] | {name: np.stack([variables[name] for variables in found], axis=-1) for name in own}

    # --- files -------------------------------------------------------------------------------------------------------

    @reads
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file. ``onlinear.load`` gives a learner that continues exactly as this one would.

        Parameters
        ----------
        path : str or path-like
            The file. One that is there is replaced when the new one is whole.

        Raises
        ------
        OSError
            Where the file cannot be written.
        DivergenceError
            Where the state is not finite.
        """
        header, arrays = self.freeze()
        model_file.write(path, {"kind": "learner", **header}, arrays)

    @reads
    def freeze(self) -> tuple[Header, Arrays]:
        """Settings and state, as ``thaw`` takes them.

        Returns
        -------
        header : dict
            The settings, as JSON holds them.
        arrays : dict of str to ndarray
            The arrays themselves, which a call that learns changes.

        Raises
        ------
        DivergenceError
            Where the state is not finite.
        """
        self._end_waiting()
        self.weights()
        self.refuse_unreadable()
        if self.average is not None:
            for state in self.states:
                self.must_be_finite(self.compute(self.engine.mean, state, self.columns))
                self.must_be_finite(np.array(self.compute(self.engine.mean_bias, state)))
        return stored_learner.header_of(self), stored_learner.arrays_of(self)

    @reads
    def __reduce__(self) -> tuple[Any, ...]:
        header, arrays = self.freeze()
        arrays = {name: array.copy() for name, array in arrays.items()}
        return _thawed, (header, arrays, {role: spec for role, spec in self.spec.items() if not isinstance(spec, str)})

    def unlearned(self, n_features: int) -> Learner:
        """A learner of the same settings that has learned nothing, of so many columns.

        Parameters
        ----------
        n_features : int
            The columns.

        Returns
        -------
        Learner
            Its weights are 0, also where this one was given a ``start``.
        """
        return type(self)(**self.spec, **stored_learner.settings(stored_learner.header_of(self)), n_features=n_features)

    @classmethod
    def together(cls, learners: Sequence[Learner]) -> Learner:
        """A learner of all outputs of several, which have learned the same rows with the same settings.

        Parameters
        ----------
        learners : sequence of Learner
            Learners whose outputs do not learn from one another.

        Returns
        -------
        Learner
            It has the bytes of one that learned all outputs itself.

        Raises
        ------
        ValueError
            For learners with ``average="adaptive"``, ``uncertainty``, ``clip`` or relative targets.
        """
        header, arrays = stored_learner.together([learner.freeze() for learner in learners])
        return cls.thaw(header, arrays)

    @classmethod
    def thaw(cls, header: Header, arrays: Arrays, **parts: Any) -> Learner:
        """The learner that ``freeze`` described.

        Parameters
        ----------
        header, arrays
            What ``freeze`` gave; the arrays are copied.
        **parts
            User-defined parts, by role: ``loss=MyLoss()``.

        Returns
        -------
        Learner
            A learner that continues exactly as the one that was frozen.

        Raises
        ------
        ModelFileError
            For a header or arrays that no learner gives.
        """
        learner = cls(**stored_learner.arguments(header, arrays, parts))
        stored_learner.fill(learner, header["size"], arrays)
        learner.unscored = stored_learner.unscored(header, learner.t)
        return learner


def _thawed(header: Header, arrays: Arrays, parts: dict[str, Any]) -> Learner:
    return Learner.thaw(header, arrays, **parts)
