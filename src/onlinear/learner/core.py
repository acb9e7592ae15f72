"""The part of a learner that takes checked rows: its parts, states, scales, units, sums of losses and limits.

It is what the rooms around a learner use: single rows (``learn_one.py``), learners side by side (``side_by_side.py``), model
files (``stored_learner.py``), runs over streams. ``Learner`` adds what users call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from math import inf, isfinite
from typing import Any, NoReturn

import numpy as np

from onlinear import rows
from onlinear.averages import Average, Fading
from onlinear.compiled import Growing, bind_loss
from onlinear.errors import DivergenceError
from onlinear.learner.arguments import count, first_weights
from onlinear.learner.classes import OneAgainstRest
from onlinear.learner.limits import COLUMNS_NEEDED, ColumnsNeeded, WideRowError, growth_error, room_for, state_limit
from onlinear.learner.loss_sums import Total, add_losses, loss_weights
from onlinear.learner.parts import (
    SCALES,
    build_average,
    build_loss,
    build_penalty,
    build_solver,
    fading,
    half_life,
    is_adaptive,
    is_calibrated,
    solver_name,
    steps_of,
)
from onlinear.learner.race import ROWS_OF_RACE, Race, refuse_race
from onlinear.learner.row_calls import AHEAD, LOCK, MOVES, NEWS, UNTIL, new_words
from onlinear.learner.turns import Guarded, changes, reads
from onlinear.learner.uncertainty import COPIES, NONE, SCORES, UNCERTAINTIES, Spread, refuse_uncertainty
from onlinear.learner.units import COUNT, RAW, RELATIVE, UNITS, Units, refuse_units
from onlinear.losses import factor_of, is_joint, is_residual, loss_labels
from onlinear.rows import NEAR, InOrder, Rows, Source, checks
from onlinear.rows.centring import CENTRED_KINDS, scaler_of
from onlinear.rows.scaling import Scaler, unscaled
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.solvers.core.mini_batch import MiniBatch
from onlinear.solvers.core.state import State
from onlinear.solvers.forgetting import forgetful
from onlinear.solvers.packs.team import Output, Team, threads_of
from onlinear.text.arguments import name_arguments
from onlinear.text.form import check_flag, kebab, unknown

# What kernels raise where settings are so small or large that a product of them is 0 or infinite.
NO_NUMBER = (ZeroDivisionError, OverflowError, np.linalg.LinAlgError)

NO_COLUMNS, NO_WEIGHTS = np.empty(0, np.uint32), np.empty(0)

HEAVY = 1e100  # a weight of a row beyond which a state that is not finite is its doing
OFTEN = 100.0  # times that a row counts beyond which the size of steps may be the weights' doing


class Core(Guarded):
    """What trains a model on checked rows. Its methods are for the package; users call those of ``Learner``."""

    @name_arguments
    def __init__(
        self,
        solver: Any,
        loss: Any,
        penalty: Any = "none",
        average: Any = None,
        scale: str = "none",
        fit_intercept: bool = False,
        n_features: int | None = None,
        n_outputs: int = 1,
        start: Any = None,
        *,
        targets: str = RAW,
        weights: str = RAW,
        clip: bool = False,
        forget: float | None = None,
        uncertainty: str = NONE,
        gain: bool = False,
        total: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__()
        self.threads = threads_of(n_jobs)
        self.words = new_words(self.lock)  # what compiled code looks at between rows
        self.follows = 0  # the columns up to which what single rows have seen follows
        choices = (("scale", scale, SCALES), ("targets", targets, UNITS), ("weights", weights, UNITS))
        for name, choice, known in (*choices, ("uncertainty", uncertainty, UNCERTAINTIES)):
            if choice not in known:
                raise unknown(name, str(choice), known)
        self.spec = {"solver": solver, "loss": loss, "penalty": penalty, "average": average}
        self.forget = half_life(forget)
        self._build_parts(total)
        self.fit_intercept = check_flag("fit_intercept", fit_intercept)
        self.n_outputs = count("n_outputs", n_outputs)
        self.growing, self.total = n_features is None, total
        self.sums_gains = check_flag("gain", gain)
        with room_for(n_features or 0, self.n_outputs):
            self._build_state(first_weights(start, n_features, self.n_outputs), scale, start is not None)
        self.race = self._start_race()
        self.units = self._start_units(targets, weights, check_flag("clip", clip), start is not None)
        self.moves = 0  # how often the state's arrays may have become others than those that single rows have seen
        self.stopped: str | None = None  # why it trains no more
        self._team: Team | None = None  # made by the first call with several outputs
        self._announced = 0  # columns that may come whatever the limit of the state
        self._allowed = 0  # columns that are known to be within it
        self._refuse_growing()
        self.spread: Spread | None = None
        self.spread = self._start_spread(uncertainty)
        self.begin_turns()

    def _build_parts(self, total: int | None) -> None:
        spec = self.spec
        self.loss = build_loss(spec["loss"])
        self.penalty = build_penalty(spec["penalty"])
        self.solver, preset = build_solver(spec["solver"], self.penalty, total)
        batch = self.solver.batch if isinstance(self.solver, MiniBatch) else 1
        steps = None if total is None else steps_of(total, batch)
        average = build_average(preset.average if spec["average"] is None else spec["average"], steps)
        self.average: Average | Fading | None = average
        if self.forget is not None:
            self.solver = forgetful(self.solver, solver_name(spec["solver"]), self.forget)
            self.average = fading(spec["average"], average, self.forget)

    def _build_state(self, first: np.ndarray, scale: str, started: bool) -> None:
        """The engine and the outputs' states at the first weights (d, K); ``started``: whether these were given."""
        self.factor = factor_of(self.loss)
        self.raw_loss = bind_loss(self.loss, implicit=False)  # as kernels take it
        name = solver_name(self.spec["solver"])
        problem = Problem(self.loss, self.penalty, self.average, self.fit_intercept, name, self.sums_gains)
        self.engine: Engine = self.solver.engine(problem)
        self._check_joint()
        if self.sums_gains and not self.engine.sums_gains:
            raise ValueError(
                f"gain=True needs the solver 'fiol', one row to a step, and a loss of one score; {name} has no gains."
            )
        self.engines = [self.engine]  # one for all outputs, or each its own where their steps differ
        if self.engine.scales_columns and scale not in ("none", *CENTRED_KINDS):
            raise ValueError(
                f"{problem.name} divides the columns by scales of its own; use scale='none', or 'dense' where columns lie "
                f"far from 0, got {scale!r}."
            )
        self.scaler = scaler_of(scale, len(first))
        if scale in CENTRED_KINDS and not self.fit_intercept:
            raise ValueError(
                f"scale={scale!r} needs fit_intercept=True: the means of the columns have a share in the intercept."
            )
        if self.scaler is not None and started:
            raise ValueError("start= needs scale='none': the scales of a stream are not known before its first row.")
        lower, upper = self._bounds()
        if started and (np.any(first < lower) or np.any(first > upper)):
            beyond = first[(first < lower) | (first > upper)][0]
            raise ValueError(f"start must lie within the penalty's bounds [{lower:g}, {upper:g}], got {beyond:g}.")
        self.states = self._first_states(first, started)
        self.loss_sums = np.zeros((self.n_outputs, 2))  # of each output, with its correction
        self.unscored = 0  # rows learned of which these sums know nothing

    def _check_joint(self) -> None:
        """Raise ValueError for a loss of all scores together, where the solver or a single output has no form for it."""
        if not is_joint(self.loss):
            return
        loss, name = kebab(type(self.loss).__name__), self.engine.problem.name
        if not self.engine.joins:
            use = "'prox-newton'" if self.engine.certifies else "'implicit-ftrl', 'fiol' or 'comid' with none, l1 or l2"
            raise ValueError(f"{name} has no form for {loss} with these parts: use {use}.")
        if self.n_outputs < 2:
            raise ValueError(f"{loss} needs n_outputs=, the number of classes, of at least 2.")

    def _first_states(self, weights: np.ndarray, given: bool) -> list[State]:
        """The outputs' states before the first row. Where no weights were given, lazy ones grow from nothing: memory of
        features that no row names is never touched."""
        if given or not (self.engine.lazy and self.engine.grows):
            return [self.engine.start(weights[:, k].copy(), 0.0) for k in range(self.n_outputs)]
        states = [self.engine.start(np.zeros(0), 0.0) for _ in range(self.n_outputs)]
        for state in states:
            state.grow(len(weights))
        return states

    def _start_race(self) -> Race | None:
        """The race of an adaptive average; None for any other."""
        if not is_adaptive(self.spec["average"]):
            return None
        calibrated = is_calibrated(self.spec["average"])
        refuse_race(self.engine, self.n_outputs, calibrated=calibrated, forgets=self.forget is not None)
        longest = inf if self.forget is None else ROWS_OF_RACE * self.forget
        return Race(longest, calibrated=calibrated, joint=is_joint(self.loss), numbers=is_residual(self.loss))

    def _start_units(self, targets: str, weights: str, clips: bool, started: bool) -> Units | None:
        """The running units of targets and weights, or None where both are taken as they are."""
        refuse_units(self.engine, targets, weights, clips=clips, started=started)
        if targets == weights == RAW:
            return None
        if targets == RELATIVE and self.n_outputs > 1:
            self.engines = [self.solver.engine(self.engine.problem) for _ in self.states]
            for engine in self.engines:
                engine.alone = True
        follows = {"targets": targets == RELATIVE, "weights": weights == RELATIVE, "clips": clips}
        units = Units(self.loss, self.n_outputs, **follows, centred=self.fit_intercept, metric=self.engine.metric)
        self.follow_units(units)
        return units

    def _start_spread(self, kind: str) -> Spread | None:
        """What says how far predictions may be off; None where nothing is to."""
        if kind == NONE:
            return None
        refuse_uncertainty(kind, self.loss, self.engine, self.centres_rows)
        copies = [deepcopy(self) for _ in range(COPIES)] if kind == SCORES else []
        spread = Spread(self.n_outputs, copies, kind=kind, half_life=self.forget)
        spread.grow(self.size)
        return spread

    def follow_units(self, units: Units | None, outputs: Sequence[int] | None = None) -> None:
        """Step as the running units say now: their multipliers, and the losses that match a clip or a level; ``outputs``: those
        that do, None for all."""
        if units is None:
            return
        if not units.ahead:
            self._refuse_infinite(units.spread)
        multipliers = units.multipliers.tolist()
        for k in range(len(self.engines)) if outputs is None else outputs:
            engine = self.engines[k]
            engine.multiply_steps(multipliers[k])
            if (loss := units.loss_of(k, engine.implicit)) is not None:
                engine.loss = loss

    def _refuse_infinite(self, spread: np.ndarray) -> None:
        """Stop where the sums of targets are no numbers."""
        if not np.all(np.isfinite(spread[:, COUNT])):
            self.stop("the weights of rows are so large that their sum is infinite. Divide them by a constant.")
        if not np.all(np.isfinite(spread)):
            self.stop("the targets are so large that their squares are infinite. Divide them by a constant.")

    def _refuse_growing(self) -> None:
        """Raise ColumnsNeeded for parts that must know the number of columns."""
        if self.growing and not self.engine.grows:
            name = solver_name(self.spec["solver"])
            raise ColumnsNeeded(f"{name} needs the number of columns in advance: {COLUMNS_NEEDED}")
        if self.growing and not self.penalty.separable:
            raise ColumnsNeeded(f"the penalty {type(self.penalty).__name__} couples neighbouring columns: {COLUMNS_NEEDED}")

    # --- what it knows -----------------------------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Rows learned, over all calls; of a learner that has diverged the rows of whole steps that every output took."""
        return self.states[0].rows if self.stopped is None else min(state.t * state.batch for state in self.states)

    def __repr__(self) -> str:
        """The parts, and how much has been learned, without a look at the weights."""
        kept = {name: part for name, part in self.spec.items() if part is not None}
        scale = {} if self.scaler is None else {"scale": self.scaler.kind}
        counts = {"rows": self._states[0].rows, "columns": self.size, "outputs": self.n_outputs}
        said = [f"{name} {part}" for name, part in (kept | scale).items()]
        said += [f"{count:,} {name if count != 1 else name[:-1]}" for name, count in counts.items()]
        return f"<{type(self).__name__}: {' | '.join(said)}>"

    @property
    def states(self) -> list[State]:
        """What each output's run knows, of all columns known."""
        if self.words[AHEAD]:  # another thread may catch up first
            self._catch_up()
        return self._states

    @states.setter
    def states(self, states: list[State]) -> None:
        self._states = states
        self.words[AHEAD] = 0  # columns that are known, for which arrays have room, follow when they are read

    @property
    def size(self) -> int:
        """Columns known."""
        return self.words.item(AHEAD) or self._states[0].size

    @property
    def columns(self) -> np.ndarray:
        """The numbers of all columns known."""
        return np.arange(self.size, dtype=np.uint32)

    @property
    def total_loss(self) -> float:
        """The sum over the rows learned of s_i l(score of the last iterate before the step, y_i), over outputs."""
        return Total.of(self.loss_sums).value

    @property
    def racing(self) -> bool:
        """Whether an adaptive average races against the last iterate."""
        return self.race is not None

    @property
    def calibrates(self) -> bool:
        """Whether the predictor is multiplied by a calibration slope that is learned."""
        return self.race is not None and self.race.calibrated

    @property
    def calibration_slope(self) -> float:
        """What the predictor is multiplied by."""
        return 1.0 if self.race is None else self.race.calibration_slope

    @property
    def centre(self) -> np.ndarray | None:
        """The level that scores count from, (1,), where a calibration slope of numbers is learned; else None."""
        if self.race is None or not self.race.numbers:
            return None
        return np.zeros(1) if self.units is None else self.units.level

    def end_first_pass(self) -> None:
        """Say that the rows to come were learned before: scores of them do not tell how sure the predictor may be."""
        if self.race is not None:
            self.race.hold()
            self.moved()

    def keep_slope(self, slope: float) -> None:
        """Multiply the predictor by a calibration slope that rows held out gave, from now on."""
        if self.race is not None:
            self.race.hold(slope)
            self.moved()

    @property
    def averaged(self) -> bool:
        """Whether it keeps an average of its iterates."""
        return self.average is not None or self.engine.own_average

    @property
    def averages(self) -> bool:
        """Whether the average predicts: there is one, and of an adaptive one the last iterate is not ahead."""
        return self.averaged and not (self.race is not None and self.race.last_leads)

    @property
    def centres_rows(self) -> bool:
        """Whether rows are centred, which makes them dense."""
        return self.scaler is not None and self.scaler.kind == "standard"

    @property
    def running_scaler(self) -> Scaler | None:
        """The scales that follow the rows; None where rows stay as they are, or are centred before they come here."""
        return None if self.centres_rows else self.scaler

    @property
    def vanished(self) -> list[int]:
        """The columns whose entries are so small that their squares are 0, which have no weight for that."""
        return [] if self.scaler is None else self.scaler.vanished.tolist()

    @property
    def targets_vanish(self) -> bool:
        """Whether targets are so small that their squares are no numbers, which the sizes of steps are made of."""
        return self.units is not None and self.units.vanish

    @property
    def weights_vanish(self) -> bool:
        """Whether all weights of rows are so small that their squares are no numbers, of which the sizes of slopes are made."""
        return self.units is not None and self.units.weights_vanish

    @property
    def clips(self) -> bool:
        """Whether predictions are clipped to the targets seen."""
        return self.units is not None and self.units.clip is not None

    # --- rows that users give -----------------------------------------------------------------------------------------

    def check_input(self, X: Any, y: Any, sample_weight: Any) -> tuple[Source, np.ndarray, np.ndarray]:
        """The rows, targets and weights checked; raises ValueError or TypeError for wrong input."""
        self.refuse_if_diverged()
        source = rows.learnable(self.read_rows(X, "X"), "X")
        return source, *self.check_examples(y, sample_weight, source.n)

    def check_examples(self, y: Any, sample_weight: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The targets and weights of n rows checked; raises ValueError or TypeError for wrong input."""
        y, weights = y if isinstance(y, OneAgainstRest) else self.check_targets(y, n), checks.weights(sample_weight, n)
        self.engine.check_rows(weights)
        return y, weights

    def read_rows(self, X: Any, name: str) -> Source:
        """The rows, centred where the scale is ``standard``; raises ValueError for columns beyond a fixed number."""
        if self.centres_rows:
            X = self._standardise(X, name)
        return self.check_width(rows.read(X, name), f" (n_features={self.size})")

    def check_width(self, source: Source, hint: str = "") -> Source:
        """The rows; raises ValueError where they have columns beyond a fixed number."""
        if not self.growing and source.size > self.size:
            raise checks.width_error(source.width, self.size, hint)
        return source

    def check_targets(self, y: Any, n: int) -> np.ndarray:
        """The targets as (n, K), which the loss takes."""
        if is_joint(self.loss):
            return checks.one_class(y, n, self.n_outputs)
        y = checks.targets(y, n, self.n_outputs)
        checks.labels(y, loss_labels(self.loss))
        return y

    def _standardise(self, X: Any, name: str) -> np.ndarray:
        assert self.scaler is not None
        mean, deviation = self.scaler.moments
        if not len(mean) or not deviation.any():
            raise ValueError(
                "scale='standard' needs the mean of all rows before the first: use fit, or scale='rms' for streams."
            )
        dense = rows.dense(X, name)
        if dense.shape[1] != len(mean):
            raise checks.width_error(dense.shape[1], len(mean))
        return (dense - mean) / deviation

    # --- columns -----------------------------------------------------------------------------------------------------

    @property
    def bytes_per_column(self) -> int:
        """What the state holds for one column, all outputs; where some columns are centred, in the mean."""
        full = {name for name, bound in self.states[0].bounded.items() if self.size > bound.features}
        centring = 0 if self.scaler is None else self.scaler.bytes_of_centred
        return self._bytes_of_columns(full) + -(-centring // max(1, self.size))

    @property
    def bytes_per_new_column(self) -> int:
        """The same where there are so many columns that it grows the least."""
        return self._bytes_of_columns(set(self.states[0].bounded))

    def _bytes_of_columns(self, full: set[str]) -> int:
        """What one column takes; ``full``: the arrays that hold numbers of no more features."""
        state = self.states[0]
        widths = state.widths | {name: state.bounded[name].beyond for name in full}
        own = sum(int(np.prod(array.shape[:-1])) * widths.get(name, 1) * array.itemsize for name, array in state.arrays.items())
        more = [part.bytes_per_column for part in (self.scaler, self.spread) if part is not None]
        return max(1, own * self.n_outputs + sum(more))

    def announce(self, size: int) -> None:
        """Allow ``size`` columns whatever the limit of the state."""
        self._announced = size

    @property
    def widest(self) -> int:
        """The columns up to which the state may grow that are known to be within its limit."""
        return max(self.size, self._announced, self._allowed)

    def too_wide(self, size: int) -> str | None:
        """Why the state may not grow to ``size`` columns; None where it may."""
        if size <= self.widest:
            return None
        self._allowed = state_limit() // self.bytes_per_new_column
        return growth_error(size - 1, self.bytes_per_new_column)

    def make_room(self, source: Source) -> None:
        """Grow to the columns of checked rows. Raise WideRowError before anything beyond the limit is made."""
        if source.size <= self.size:
            return
        if self.too_wide(source.size) is not None:
            row, column = rows.row_beyond(source, self.widest)
            raise WideRowError(row, str(growth_error(column, self.bytes_per_new_column)))
        self.grow(source.size)

    @changes
    def grow(self, size: int) -> None:
        """Grow to ``size`` columns. Raises MemoryError with the size that it had."""
        self._catch_up()
        self.take_memory(size)
        self._grow_states(size)
        self.grow_scales(size)

    @changes
    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` columns before anything has that size. Raises MemoryError."""
        try:
            with room_for(size, self.n_outputs, self.bytes_per_column):
                for state in self._states if self._team is None else (self._team,):
                    state.take_memory(size)
                self.take_memory_of_scales(size)
        except BaseException:
            self.moved()  # some arrays, already
            raise

    def take_memory_of_scales(self, size: int) -> None:
        """Take the memory for what follows states of ``size`` columns."""
        for part in (self.scaler, self.spread):
            if part is not None:
                part.take_memory(size)

    def _grow_states(self, size: int) -> None:
        with room_for(size, self.n_outputs):
            for state in self._states if self._team is None else (self._team,):
                state.grow(size)

    @property
    def fills(self) -> bool:
        """Whether growing within the ``room`` writes to arrays."""
        return self._states[0].fills

    @property
    def counts(self) -> list[np.ndarray]:
        """The numbers of columns that grow with the lengths; the states follow when they are read, or are filled at once."""
        return [self.words[AHEAD : AHEAD + 1]] + ([] if self.scaler is None else [self.scaler.count])

    def know(self) -> None:
        """Know the columns to which the ``counts`` have grown."""
        self.tell_news()
        if self.fills:
            self._catch_up()

    @changes
    def _catch_up(self) -> None:
        """Grow the states to all columns that are known."""
        if size := self.words.item(AHEAD):
            self._grow_states(size)
            self.words[AHEAD] = 0

    @property
    def room(self) -> int:
        """The columns up to which all arrays grow in place, so that only lengths change."""
        if self.spread is not None or any(self.engine.reach(state) < state.size for state in self.states):
            return self.size
        found = min(state.room for state in self.states) if self._team is None else self._team.room
        return found if self.scaler is None else min(found, self.scaler.room.shape[1])

    @property
    def lying(self) -> Growing:
        """Where the arrays lie that grow in place, up to ``room``; the scales have their length from the start."""
        return [found for state in self.states for found in state.growing] if self._team is None else self._team.growing

    def grow_scales(self, size: int) -> None:
        """Grow what follows the states to ``size`` columns: scales and spread."""
        if self.scaler is not None:
            self.scaler.grow(size)
        if self.spread is not None:
            self.spread.grow(size)
        self.moved()

    def moved(self) -> None:
        """Note that arrays of the state may have been replaced, so that code for single rows must be bound anew."""
        self.moves += 1
        self.words[MOVES] = self.moves
        self.let_go()
        self.tell_news()

    def let_go(self) -> None:
        """Note that what code for single rows holds does not grow in place until its lengths are laid out anew."""
        self.follows = self.words[UNTIL] = 0

    @property
    def news(self) -> int:
        """How often columns or their names may have come."""
        return self.words.item(NEWS)

    def tell_news(self) -> None:
        """Note that columns or their names may have come."""
        self.words[NEWS] += 1

    # --- steps -------------------------------------------------------------------------------------------------------

    def outputs(self) -> list[Output]:
        """What a pass learns, output by output."""
        return [Output(self.engines[k % len(self.engines)], state, k) for k, state in enumerate(self.states)]

    def team(self) -> Team | None:
        """The outputs, learned in one pass; None for a single one, which its engine learns."""
        if self._team is None and self.n_outputs > 1:
            self._team = Team(self.outputs(), self.threads)
        if self.words[AHEAD]:
            self._catch_up()
        return self._team

    @property
    def reads_anywhere(self) -> bool:
        """Whether one loop learns rows where they stand, in any order. They are copied where it asks for the states of entries
        to come, which stand elsewhere, and where a race looks at rows."""
        return self.n_outputs == 1 and self.race is None and self.engine.reads_anywhere and self.size <= NEAR

    def pieces(self, source: Source, scales: Any = None, anywhere: bool = False) -> Iterator[tuple[slice, Rows | InOrder]]:
        """The rows as they are learned, as (which rows, those rows): so few at a time that their scaled copy stays at hand.
        ``scales``: those in which the loop over rows puts them (``scales_in_loop``); ``anywhere``: whether it takes rows where
        they stand."""
        if self.running_scaler is not None and scales is None:
            return source.pieces()
        return source.blocks_anywhere() if anywhere else source.blocks()

    @property
    def scales_in_loop(self) -> tuple[Any, ...] | None:
        """The scales in which the loop over rows of a learner alone puts them; None where none does."""
        scaler, alone = self.running_scaler, self.n_outputs == 1 and self.race is None and self.factor == 1.0
        return scaler.within_loop if scaler is not None and self.engine.scales_rows and alone else None

    def prepare(self, block: Rows, largest: float, weights: np.ndarray, scales: Any = None) -> tuple[Rows, float, np.ndarray]:
        """Rows as kernels take them: scaled, unless the loop does that (``scales``), with their largest absolute value and what
        multiplies their losses."""
        if self.running_scaler is not None and scales is None:
            block, largest = self.running_scaler.learn(block, weights)
        return block, largest, loss_weights(self.loss, weights)

    def add_loss(self, k: int, scores: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        """Add rows to the sum of losses of output k: its scores and targets, (n,)."""
        add_losses(self.raw_loss, scores, y, s, self.loss_sums[k])

    def begin_at(self, weights: np.ndarray, intercepts: np.ndarray) -> None:
        """Start the outputs at weights (d, K) and intercepts (K,) in the units of rows and targets; the scales are known."""
        for k, t in enumerate([state.t for state in self.states]):
            w = np.clip(weights[:, k] if self.scaler is None else self.scaler.scaled(weights[:, k]), *self._bounds())
            b = intercepts[k] - (0.0 if self.scaler is None else self.scaler.centre(w[self.scaler.centred]))
            self.states[k] = self.engine.start(w, float(b) * self.fit_intercept)
            self.engine.stand_at(self.states[k], t)
        self.moved()

    def _bounds(self) -> tuple[float, float]:
        """The bounds of every weight."""
        return getattr(self.penalty, "lower", -np.inf), getattr(self.penalty, "upper", np.inf)

    # --- divergence --------------------------------------------------------------------------------------------------

    def stop(self, why: str) -> NoReturn:
        """Raise DivergenceError now and whenever the state is used again."""
        self.stopped = why
        self.moved()
        raise DivergenceError(why)

    def diverge(self, where: str, t: int, heaviest: float = 0.0) -> NoReturn:
        """Stop because step t left the state infinite, or was not found; ``where`` names the row, with a space behind it.
        ``heaviest``: how many times a row counts at most, by its weight and the loss's factor, where that multiplies steps."""
        try:
            eta = self.engine.eta(max(t, 1))
        except NO_NUMBER:
            eta = np.inf
        stopped = f"{self.engine.why_stopped(self.states)} {where}(step {t}, eta = {eta:.3g})"
        if self.units is not None and self.units.heaviest[0] > HEAVY:
            self.stop(f"{stopped}. Rows have weights of up to {self.units.heaviest[0]:.3g}: divide them by a constant.")
        times = heaviest / self.factor
        counted = (
            f"Rows count up to {times:.3g} times, which multiplies the steps: divide their weights by the mean, or use"
            if times > OFTEN and self.units is None
            else "Use"
        )
        self.stop(
            f"{stopped}. {counted} a smaller step"
            + ("." if getattr(self.solver, "stable", False) else ", or a solver whose steps are implicit: 'fiol' or 'odrs'.")
        )

    def refuse_if_diverged(self) -> None:
        """Raise DivergenceError where the state is not finite, RuntimeError where a fork left it incomplete."""
        if self.torn:
            raise RuntimeError(
                "this learner was being changed by another thread when the process was forked, so its copy here is incomplete: "
                "fork when no thread learns, or load the model from a file."
            )
        if self.stopped is not None:
            raise DivergenceError(f"this learner has diverged and learns no more: {self.stopped}")

    def compute(self, read: Callable[..., Any], *args: Any) -> Any:
        """What ``read`` gives; a division by 0 there is divergence."""
        try:
            return read(*args)
        except NO_NUMBER:
            self.diverge("", self.t)

    def must_be_finite(self, weights: np.ndarray) -> np.ndarray:
        """The weights; raises DivergenceError where one is not finite."""
        self.refuse_if_diverged()
        if not np.all(np.isfinite(weights)):
            self.diverge("", self.t)
        return weights

    def refuse_unreadable(self) -> None:
        """Raise DivergenceError where a number is not finite that weights may not show: a file of it would not be read."""
        for state in self.states:
            for _, array in self.engine.finite(state):
                self.must_be_finite(array)
        for copy in [] if self.spread is None else self.spread.copies:
            copy.refuse_unreadable()

    def after_fork(self) -> None:
        super().after_fork()
        self.words[LOCK] = id(self.lock)
        self.moved()

    # --- the predictor -----------------------------------------------------------------------------------------------

    def scaled_weights(self, k: int, columns: np.ndarray, average: bool) -> np.ndarray:
        """Output k's weights of some columns in scaled units: after the last row, or of the average where it predicts."""
        use = self.engine.mean if average and self.averages else self.engine.weights
        found = self.must_be_finite(self.compute(use, self.states[k], columns))
        return found * self.calibration_slope if average and self.calibrates else found

    def each_weights(self, columns: np.ndarray, average: bool) -> Iterator[np.ndarray]:
        """Each output's weights of some columns, in the columns' own units."""
        scales = None if self.scaler is None else self.scaler.scales(columns)
        for k in range(self.n_outputs):
            weights = self.scaled_weights(k, columns, average)
            yield weights if scales is None else self.must_be_finite(unscaled(weights, scales))

    @reads
    def count_nonzeros(self, average: bool) -> int:
        """Weights that are not 0, of the average or after the last row. Only columns in use are read: few hashed ones are."""
        columns = self.columns if self.scaler is None else self.scaler.used
        return sum(int(np.count_nonzero(weights)) for weights in self.each_weights(columns, average))

    def bounds(self) -> np.ndarray | None:
        """What scores are clipped to (K, 2), in the units of the targets, of counts as logarithms; None where they are not."""
        return None if self.units is None else self.units.bounds

    def each_bias(self, average: bool) -> Iterator[float]:
        """Each output's intercept, in the units of rows and targets as they were given."""
        if not len(self._centred):
            return (self._bias(k, average) for k in range(self.n_outputs))
        return (self._bias(k, average, own) for k, own in enumerate(self.each_weights(self._centred, average)))

    def each_bias_and_weights(self, columns: np.ndarray | None = None) -> Iterator[tuple[float, np.ndarray]]:
        """``each_bias`` and ``each_weights`` of the predictors, of all columns or of these, from one reading of each state."""
        first = 0 if columns is None else len(self._centred)
        asked = self.columns if columns is None else np.concatenate([self._centred, columns])
        centred = self._centred if columns is None else slice(first)
        for k, weights in enumerate(self.each_weights(asked, True)):
            yield self._bias(k, True, weights[centred]), weights[first:]

    @property
    def _centred(self) -> np.ndarray:
        """The columns whose means are subtracted."""
        return NO_COLUMNS if self.scaler is None else self.scaler.centred

    def _bias(self, k: int, average: bool, centred: np.ndarray = NO_WEIGHTS) -> float:
        """Output k's intercept, from its weights of the centred columns."""
        read = self.engine.mean_bias if average and self.averages else self.engine.bias
        bias = float(self.compute(read, self.states[k]))
        if not isfinite(bias):
            self.diverge("", self.t)
        if average:
            bias *= self.calibration_slope
        if self.units is not None:
            bias += float(self.units.offset[k])
        return bias + self.scaler.centre_of(centred) if len(centred) else bias  # type: ignore[union-attr]
