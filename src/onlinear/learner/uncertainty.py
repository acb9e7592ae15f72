"""How far a prediction may be off, from the errors that were made on rows before they were learned.

    numbers   z_t = (y_t - p_t) / u_t,            u(x)^2 = 1 + h(x)                                              (MATH 22.2)
    classes   z_t = (q_t - p_t) / u_t,            u(x)^2 = h(x)                                                  (MATH 22.3)

p_t is the prediction of row t before it is learned, h its leverage (``rows/leverage.py``). q_t is that of a copy: a learner of
the same parts, which learns each row as often as a Poisson variable of mean 1 says. This is the online bootstrap (Oza and
Russell, AISTATS 2001). Row t counts t^2 times its weight, as early errors say little of the model in the end; where the learner
forgets, 2^(t / half-life). An interval is p(x) + u(x) times quantiles of z: of numbers on both sides, of scores of |z|.

A histogram keeps the z: four places for each power of 2, of either sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from onlinear.files import trust
from onlinear.learner.arguments import unnamed
from onlinear.losses import is_joint, loss_labels
from onlinear.rows import Source, largest_value
from onlinear.rows.leverage import ARRAYS, Leverage
from onlinear.solvers.core.careful import HUGE
from onlinear.solvers.core.engine import Engine
from onlinear.text.form import kebab

COPIES = 4  # learners beside the one of classes; fewer did not cover as they should on small sets
PLACES = 4  # of the histogram for each power of 2
POWERS_OF_TARGETS, POWERS_OF_SCORES = 1024, 128  # as wide as floats of targets; scores are never far from 1
LARGEST, HEAVIEST = 1e120, 1e30  # |z| and weights beyond count as these, so that sums of w z^2 are finite
SMALLEST = 2.0**-512  # |z| below it, but 0, count as this, so that their squares are not 0
FADES = 512  # half-lives after which the histogram is multiplied by 2^-512, so that no weight is too large
SEED = np.uint64(0x9E3779B97F4A7C15)
MORE_THAN = np.cumsum(np.exp(-1.0) / np.cumprod([1.0, *range(1, 18)]))  # P(Poisson(1) <= k)


NONE, TARGETS, SCORES = "none", "targets", "scores"
UNCERTAINTIES = (NONE, TARGETS, SCORES)


class Spread:
    """The histogram of z of each output, the statistics of the columns, and the copies that are trained beside a learner."""

    def __init__(self, outputs: int, copies: list[Any], *, kind: str, half_life: float | None) -> None:
        self.copies, self.kind = copies, kind
        self.half_life = None if half_life is None else max(half_life, 1.0)
        self.leverage = Leverage(self.half_life)
        kept, powers = max(1, len(copies)), POWERS_OF_TARGETS if self.of_targets else POWERS_OF_SCORES
        self.counts = np.zeros((kept, outputs, 2, PLACES * powers))
        self.sums = np.zeros((kept, outputs, 2))  # of the weights, and of the weights times z^2
        self._faded = [0] * kept

    @property
    def of_targets(self) -> bool:
        """Whether intervals are of the targets, else of the scores."""
        return self.kind == TARGETS

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` columns."""
        self.leverage.take_memory(size)
        for copy in self.copies:
            copy.take_memory(size)

    def grow(self, size: int) -> None:
        """Follow a learner that has grown to ``size`` columns."""
        self.leverage.grow(size)
        for copy in self.copies:
            copy.grow(size)

    @property
    def bytes_per_column(self) -> int:
        """What one column takes."""
        return self.leverage.moments.itemsize * ARRAYS + sum(copy.bytes_per_column for copy in self.copies)

    # --- learning ----------------------------------------------------------------------------------------------------

    def follow(self, source: Source, y: np.ndarray, weights: np.ndarray, predicted: np.ndarray, t: int) -> None:
        """Take rows that were learned after t others: targets (n, K), and what was predicted of them before, (K, n)."""
        units = self._units(source, weights)
        steps = np.arange(t + 1, t + 1 + source.n)
        if not self.copies:
            self._add(0, (y.T - predicted) / units, np.where(steps > 1, weights, 0.0), steps)  # nothing predicted the first row
        for r, copy in enumerate(self.copies):
            order, first = drawn(steps, r)
            found = copy.learn_checked(_taken(source, order), np.asfortranarray(y[order]), weights[order], unnamed)[1]
            rows = order[first]
            self._add(r, (found[:, first] - predicted[:, rows]) / units[rows], weights[rows], steps[rows])
        for r in range(len(self._faded)):
            self._fade(r, t + source.n)  # also where no row of the new age was drawn: a file tells the age by its rows

    def _units(self, source: Source, weights: np.ndarray) -> np.ndarray:
        """u of each row; the statistics of the columns move on past rows of a weight above 0."""
        h = np.empty(source.n)
        for which, rows in source.blocks():
            h[which] = self.leverage.learn(rows, weights[which])
        return np.sqrt(1.0 + h if self.of_targets else h)

    def _add(self, r: int, z: np.ndarray, weights: np.ndarray, steps: np.ndarray) -> None:
        """Put z (K, n) of rows that follow each other into the histograms of copy r, where their weight is above 0."""
        for part, factor in self._shares(r, steps):
            counted = np.minimum(weights[part], HEAVIEST) * factor
            kept = counted > 0.0
            for k, found in enumerate(z[:, part]):
                size = np.abs(found[kept])
                size = np.where(size > 0.0, np.clip(size, SMALLEST, LARGEST), 0.0)
                places = self._place(size)
                np.add.at(self.counts[r, k], ((found[kept] > 0.0).astype(int), places), counted[kept])
                np.add.at(self.sums[r, k], np.zeros(len(size), int), counted[kept])
                np.add.at(self.sums[r, k], np.ones(len(size), int), counted[kept] * size * size)

    def _shares(self, r: int, steps: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """By what the rows of some steps count, in parts between which all that was counted fades."""
        if self.half_life is None:
            yield slice(None), np.square(steps.astype(np.float64))
            return
        ages = self._ages(steps)
        ends = [*np.flatnonzero(np.diff(ages)) + 1, len(steps)]
        for first, last in pairwise([0, *ends]):
            if first < last:
                self._fade(r, int(steps[first]))
                yield slice(first, last), np.exp2(steps[first:last] / self.half_life - FADES * int(ages[first]))

    def _ages(self, steps: Any) -> Any:
        """How often all that was counted has faded at some steps, or at one."""
        return np.int64(0) * steps if self.half_life is None else np.floor(steps / (FADES * self.half_life)).astype(int)

    def _fade(self, r: int, step: int) -> None:
        """Have what copy r counted fade up to a step."""
        age = int(self._ages(step))
        for _ in range(min(age - self._faded[r], 4)):
            self.counts[r] *= 2.0**-FADES
            self.sums[r] *= 2.0**-FADES
        self._faded[r] = age

    def _place(self, size: np.ndarray) -> np.ndarray:
        """The place of each |z| in the histogram."""
        fraction, power = np.frexp(size)
        places = PLACES * (power + self._middle) + (2 * PLACES * fraction).astype(int) - PLACES
        return np.clip(np.where(size > 0.0, places, 0), 0, self.counts.shape[-1] - 1)

    @property
    def _middle(self) -> int:
        return self.counts.shape[-1] // PLACES // 2

    # --- reading -----------------------------------------------------------------------------------------------------

    def alone(self) -> Spread:
        """What predicting needs: without the copies."""
        found = Spread(self.counts.shape[1], [], kind=self.kind, half_life=None)
        found.leverage, found.counts, found.sums = self.leverage, self.counts.sum(0)[None], self.sums.sum(0)[None]
        return found  # the histograms of the copies are read as one

    def std(self, source: Source) -> np.ndarray:
        """The standard deviation of each output at each row, (n, K)."""
        total, squares = self._total().sum(axis=0).T
        return self._reading_units(source)[:, None] * np.sqrt(squares / total)

    def interval(self, source: Source, coverage: float) -> np.ndarray:
        """What lies below and above the predictions of each row, (n, K, 2), for a share ``coverage`` of the targets."""
        self._total()
        ends = np.array([self._ends(counts, coverage) for counts in self.counts.sum(axis=0)])
        return self._reading_units(source)[:, None, None] * ends

    def _total(self) -> np.ndarray:
        if not np.all(self.sums[..., 0].sum(axis=0) > 0.0):
            raise ValueError("too few rows were learned to tell how far predictions may be off: it takes 2 with a weight.")
        if self.of_targets and np.any(self.counts[..., self._place(np.array([LARGEST]))] > 0.0):
            raise ValueError(f"predictions were off by {LARGEST:g} and more, which nothing is kept of: divide y by a constant.")
        return self.sums

    def _reading_units(self, source: Source) -> np.ndarray:
        return self._units(source, np.zeros(source.n))

    def _ends(self, counts: np.ndarray, coverage: float) -> tuple[float, float]:
        """The ends of the interval in units of u, from the counts of one output: of negative and of positive z."""
        if not self.of_targets:
            half = self._quantile(counts.sum(axis=0), coverage * counts.sum())
            return -half, half
        tail = 0.5 * (1.0 - coverage) * counts.sum()
        return self._from_below(counts, tail), -self._from_below(counts[::-1], tail)

    def _from_below(self, counts: np.ndarray, share: float) -> float:
        """The z that a share of all is below; ``counts`` of negative and of positive z."""
        negative = counts[0].sum()
        if share < negative:
            return -self._quantile(counts[0], negative - share)
        return self._quantile(counts[1], share - negative)

    def _quantile(self, counts: np.ndarray, share: float) -> float:
        """The |z| that a share is below, linear within a place."""
        before = np.cumsum(counts)
        place = min(int(np.searchsorted(before, share)), int(np.flatnonzero(counts)[-1])) if before[-1] > 0.0 else 0
        inside = (share - before[place]) / counts[place] + 1.0 if counts[place] > 0.0 else 0.0
        if place == 0:
            return 0.0
        power, part = divmod(place, PLACES)
        return float(np.ldexp(0.5 + (part + min(max(inside, 0.0), 1.0)) / (2 * PLACES), power - self._middle))

    # --- files -------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name, but for those of the copies."""
        columns, rows = self.leverage.moments, self.leverage.rows
        return {"spread.counts": self.counts, "spread.sums": self.sums, "leverage.columns": columns, "leverage.rows": rows}

    def restore(self, arrays: dict[str, np.ndarray], size: int, t: int) -> None:
        """Take the arrays of a run of t rows and at most ``size`` columns; raises ModelFileError for what no run gives."""
        for name, target in (("spread.counts", self.counts), ("spread.sums", self.sums)):
            found = trust.array(arrays, name, np.float64, *target.shape)
            trust.finite(name, found)
            trust.must(np.all(found >= 0.0), f"{name} that are negative")
            target[...] = found
        columns = trust.array(arrays, "leverage.columns", np.float64, ARRAYS, None)
        trust.must(columns.shape[1] <= size, f"leverages of {columns.shape[1]} columns, of {size}")
        self.leverage.restore(columns, trust.array(arrays, "leverage.rows", np.float64, None), t)
        self._faded = [int(self._ages(t))] * len(self._faded)


def spread_of(learner: Any) -> Spread:
    """The spread of a learner; raises ValueError where it has none."""
    if learner.spread is None:
        raise ValueError("the model was trained without uncertainty, so nothing tells how far its predictions may be off.")
    return learner.spread


def std_of(model: Any, source: Source) -> np.ndarray:
    """How far predictions of a model may be off, (n,) or (n, K)."""
    found = spread_of(model).std(source)
    return found[:, 0] if model.n_outputs == 1 else found


def interval_of(model: Any, source: Source, predicted: np.ndarray, coverage: float) -> np.ndarray:
    """The intervals around predictions of a model, (n, 2) or (n, K, 2)."""
    found = spread_of(model).interval(source, share("coverage", coverage))
    found += predicted.reshape(*found.shape[:2], 1)
    return found[:, 0] if model.n_outputs == 1 else found


def thawed(kind: Any, arrays: dict[str, np.ndarray], outputs: int, size: int, t: int) -> Spread | None:
    """The spread that a file of a final model holds; raises ModelFileError for what no model gives."""
    trust.must(kind in UNCERTAINTIES, f"uncertainty of {kind!r}")
    if kind == NONE:
        return None
    spread = Spread(outputs, [], kind=kind, half_life=None)
    spread.restore(arrays, size, t)
    return spread


def refuse_more_passes(learner: Any, passes: int, named: Any = None) -> None:
    """Raise ValueError where rows would be learned again: of a row that was learned before the error is too small. ``named``:
    what was given for ``passes``, where it is not their number."""
    if learner.spread is not None and passes > 1:
        got = passes if named is None else named
        raise ValueError(f"uncertainty needs rows that were not learned before: passes must be 1, got {got!r}.")


def share(name: str, value: Any) -> float:
    """A number above 0 and below 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}.")
    return float(value)


def refuse_uncertainty(kind: str, loss: Any, engine: Engine, standardises: bool) -> None:
    """Raise ValueError for parts whose predictions have no such spread."""
    labels = loss_labels(loss)
    name = engine.problem.name
    if standardises:
        raise ValueError("uncertainty has no form for scale='standard': use scale='centred'.")
    if engine.batch:
        raise ValueError(f"uncertainty needs rows that are scored before they are learned, which {name} has none of.")
    if is_joint(loss):
        raise ValueError(f"uncertainty has no form for {kebab(type(loss).__name__)}, whose scores move together.")
    if kind == TARGETS and labels == "signs":
        raise ValueError(f"uncertainty={kind!r} is for losses of numbers; the loss is one of classes: use {SCORES!r}.")
    if kind == TARGETS and labels == "counts":
        raise ValueError("uncertainty of targets has no form for counts, whose deviation grows with their mean.")


def _taken(source: Source, order: np.ndarray) -> Source:
    """The rows in another order, some left out. Learners remember a value that is huge: one among those left out is none."""
    found = source.take(order)
    return found._replace(largest=largest_value(found)[1]) if found.largest > HUGE else found


def drawn(steps: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of these rows copy r learns, each as often as was drawn for its step, and where each comes first in that order."""
    times = np.searchsorted(MORE_THAN, uniform(steps, r), side="right")
    ends = np.cumsum(times)
    return np.repeat(np.arange(len(steps)), times), (ends - times)[times > 0]


def uniform(steps: np.ndarray, r: int) -> np.ndarray:
    """A number in [0, 1) for each step, by a counter (Steele, Lea, Flood, OOPSLA 2014): no call moves the next one's."""
    with np.errstate(over="ignore"):
        x = (steps.astype(np.uint64) * np.uint64(COPIES) + np.uint64(r)) * SEED
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
