r"""Running units of targets and weights: what a step size is measured in, and the zero of the targets.

A step size that suits targets near 1 and weights of 1 does not suit prices or weights of 10,000. With s_i the weights and y_i
the targets of the rows so far, this one included, a learner may take the step sizes of its solver times

    k = (sigma / |l'(sigma)|) / M^(3/4),   M = the largest s_i,   sigma^2 = the weighted variance of the y_i,

so that a step moves the prediction by the same share of sigma whatever the unit of y (k = 1 / M^(3/4) for the squared loss,
whose implicit step follows the unit by itself), and no weight is so large that its step ends at the row's own target and
forgets the weight. The power 3/4 was measured (docs/defaults.md): with 1 rare heavy rows move too little, with 1/2 too much.

Losses that depend on s - y alone also get a zero: the first target of a row of non-zero weight is subtracted from all targets
and added to all predictions, so y + 10,000 is learned as y is. Without an intercept there is no zero, and sigma is the root
mean square.

Steps in the metric of AdaGrad are divided by the size of the gradients so far, weights included. So a weight has there the unit
of the step alone, whatever the loss, and k = sigma.

Scores of the Poisson loss are logarithms, so a zero of the targets is none of the scores. With an intercept, scores count from
log m instead, m the weighted mean of the y_i (``Raised``), and k = 1 / (M^(3/4) sigma), sigma^2 = m^2 + the variance: the
slopes m e^u - y then have the size 1 whatever the mean. While all y_i are 0, m is half of M over the sum of the s_i. Without an
intercept scores count from 0, and sigma is at least 1. In the metric of AdaGrad k = 1, as log m has no unit.

k and m are kept until sigma has changed by a factor of more than ``BAND``: they then take new values before that row's step,
which the row's own score does not know. What is learned hence does not depend on how the rows are cut into calls, and k changes
a few times in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, kernel, with_fields_at
from onlinear.files import trust
from onlinear.learner.clip import Clip
from onlinear.losses import Poisson
from onlinear.solvers.core.engine import Steps

RAW, RELATIVE = "raw", "relative"
KINDS = (RAW, RELATIVE)
POWER = 0.75
BAND = 1.25
TINIEST, LARGEST = 1e-150, 1e150  # sizes of counts whose squares are numbers
COUNT, MEAN, SQUARES = range(3)
FROM_ZERO, FROM_MEAN, WITH_MEAN = range(3)  # the size of targets: root mean square; deviation; both, beside their mean


class Raised(NamedTuple):
    """The Poisson loss of scores that count from ``level``."""

    level: float = 0.0

    def value(self, s: float, y: float) -> float:
        """l(level + s, y)."""
        return Poisson(1.0).value(self.level + s, y)  # type: ignore[call-arg]

    def slope(self, s: float, y: float) -> float:
        """l'(level + s, y)."""
        return Poisson(1.0).slope(self.level + s, y)  # type: ignore[call-arg]

    def theta(self, a: float, c: float, y: float) -> float:
        """The slope at which a step from level + a ends: it moves both alike."""
        return Poisson(1.0).theta(self.level + a, c, y)  # type: ignore[call-arg]


adopt(Raised)


@function
def level_of(spread, heaviest):  # type: ignore[no-untyped-def]
    """The mean of the counts of an output; while all are 0, half a count of the heaviest row."""
    return spread[MEAN] if spread[MEAN] > 0.0 else 0.5 * heaviest[0] / spread[COUNT]


@function
def size_of(spread, heaviest, measure):  # type: ignore[no-untyped-def]
    """The size of the targets of an output."""
    size = sqrt(max(0.0, spread[SQUARES]))
    return hypot(size, level_of(spread, heaviest)) if measure == WITH_MEAN else size


@function
def left_band(size, known):  # type: ignore[no-untyped-def]
    """Whether a size is beyond the band of the one that a multiplier was made for; numbers or arrays."""
    return (size > known * BAND) | (size * BAND < known)


@function
def take_in(y, s, i, weights, measure, spread, heaviest, sizes, ranges):  # type: ignore[no-untyped-def]
    """Take in row i of weight s[i] > 0; whether a size has left its band, and whether a target the range of the loss."""
    changed, moved = False, False
    if s[i] > heaviest[0]:
        heaviest[0] = s[i]
        changed = weights != 0 and s[i] > sizes[0] * BAND
    for k in range(y.shape[1]):
        x = y[i, k]
        spread[k, COUNT] += s[i]
        if measure != FROM_ZERO:
            move = x - spread[k, MEAN]
            spread[k, MEAN] += move * (s[i] / spread[k, COUNT])
            spread[k, SQUARES] += (move * (x - spread[k, MEAN]) - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
        else:
            spread[k, SQUARES] += (x * x - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
        changed = changed or left_band(size_of(spread[k], heaviest, measure), sizes[1 + k])
        if ranges is not None:
            moved = moved or x < ranges[k, 0] or x > ranges[k, 1]
    return changed, moved


@kernel
def follow(y, s, first, weights, measure, spread, heaviest, sizes, ranges):  # type: ignore[no-untyped-def]
    """Take in rows from ``first`` on; give the place of the first one after which a size has left its band or a target the
    range of the loss, or their number; and whether a size has.

    ``sizes``: the heaviest weight and the spread of each output that the multipliers were made for; 0 for none. ``ranges``: of
    the loss (outputs, 2), or None.
    """
    for i in range(first, y.shape[0]):
        if s[i] > 0.0:
            changed, moved = take_in(y, s, i, weights, measure, spread, heaviest, sizes, ranges)
            if changed or moved:
                return i, changed
    return y.shape[0], False


class Units:
    """The running units of one learner; ``targets`` and ``weights``: whether the step sizes follow them."""

    def __init__(
        self,
        loss: Any,
        outputs: int,
        *,
        targets: bool,
        weights: bool,
        centred: bool,
        metric: bool = False,
        clips: bool = False,
    ) -> None:
        self.loss, self.targets, self.weights = loss, targets, weights
        self.counts = targets and type(loss) is Poisson
        self.raises = self.counts and centred  # whether scores count from a level
        self.shifts = targets and centred and not self.counts  # whether targets have a zero
        self.measure = WITH_MEAN if self.counts else FROM_MEAN if centred else FROM_ZERO
        self.metric = metric  # whether steps are divided by the size of the gradients so far
        self._weighs = weights and not metric  # whether weights of rows move the multipliers
        self.zero = np.zeros(outputs)  # added to the scores, which targets are less by but for counts
        self.before = self.zero.copy()  # the same for the score of the row whose step comes next
        self.spread = np.zeros((outputs, 3))  # sum of weights, mean, variance of the targets less their zero
        self.heaviest = np.zeros(1)
        self.sizes = np.zeros(1 + outputs)  # those that the multipliers were made for
        self.clip = Clip(outputs, self.counts) if clips else None
        self.steps = np.array([[0.0, *np.ones(outputs)]])  # rows learned before, and the multiplier of each output since then

    @property
    def multipliers(self) -> np.ndarray:
        """The multiplier of each output's step sizes now, (K,)."""
        return self.steps[-1, 1:]

    def history(self, output: int) -> list[Steps]:
        """How the step sizes of an output were multiplied since the first row."""
        return [Steps(int(row[0]), float(row[1 + output])) for row in self.steps]

    def subtract_zero(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Subtract the zero from the targets (n, K). The first row of non-zero weight fixes it."""
        if not self.shifts:
            return y
        if not self.spread[0, COUNT] > 0.0:
            counted = np.flatnonzero(s > 0.0)
            if len(counted):
                self.zero[:] = y[counted[0]]
        return np.asfortranarray(y - self.zero)

    def add_zero(self, scores: np.ndarray) -> np.ndarray:
        """The scores (..., outputs of some cores, n) of rows whose targets are less by the zero, with it."""
        zero = self.zero if self.shifts else np.zeros_like(self.zero)
        return scores + np.tile(zero, scores.shape[-2] // len(zero))[:, None]

    def loss_of(self, output: int, implicit: bool) -> Any:
        """The loss of an output as kernels take it, where it is not the loss named: it follows the level or the range."""
        if self.clip is not None:
            return self.clip.loss(output, self.zero.item(output), implicit)
        return with_fields_at(Raised(self.zero[output]), self.zero[output : output + 1], implicit) if self.raises else None

    def raise_scores(self, scores: np.ndarray) -> None:
        """Count scores (..., K, n) of a stretch of rows from 0, in place: they count from the level, that of the first from the
        level before its row."""
        if self.raises:
            scores[..., :1] += self.before[:, None]
            scores[..., 1:] += self.zero[:, None]

    def split(self, y: np.ndarray, s: np.ndarray, t: int) -> Iterator[slice]:
        """Cut rows that follow the first t into stretches of one multiplier, which ``multipliers`` gives after each ``yield``,
        and of one range; y as ``subtract_zero`` gives it."""
        first, here, n = 0, 0, len(y)
        if not (self.targets or self._weighs) and self.clip is None:  # one stretch: all that moves is this
            self.heaviest[0] = s.max(initial=self.heaviest[0])
            here = n
        followed = y if self.targets else np.zeros((n, 0))
        while here < n:
            here, sized = follow(followed, s, here, *self.known)
            if here < n:
                if here > first:
                    yield slice(first, here)
                self.move(y[here], t + here, sized)
                first, here = here, here + 1
        if first < n:
            yield slice(first, n)

    @property
    def known(self) -> tuple[Any, ...]:
        """What ``take_in`` takes after a row: the arrays themselves."""
        ranges = None if self.clip is None else self.clip.rooms
        return self._weighs, self.measure, self.spread, self.heaviest, self.sizes, ranges

    @property
    def bounds(self) -> np.ndarray | None:
        """What scores with their zero or level are clipped to (K, 2); None where they are not."""
        if self.clip is None:
            return None
        return self.clip.edges.copy() if self.counts else self.clip.ranges + self.zero[:, None]

    def within(self, score: float) -> float:
        """A score of the only output, within the targets seen where predictions are clipped."""
        if self.bounds is None:
            return score
        low, high = self.bounds[0].tolist()
        return min(max(score, low), high) if low <= high else score

    def move(self, y: np.ndarray, t: int, sized: bool) -> None:
        """Follow a row of targets (K,), less their zero, after t rows: it has left a range or, where ``sized``, a band."""
        if sized:
            self._renew(t)
        if self.clip is not None:
            self.clip.widen(y)
            self.clip.loosen(y, np.sqrt(np.maximum(0.0, self.spread[:, SQUARES])))

    def _renew(self, t: int) -> None:
        """Take new multipliers after t rows."""
        self.sizes[0] = self.heaviest[0]
        if self.targets:
            spreads, heaviest = self.spread.tolist(), self.heaviest.tolist()
            sizes = np.array([size_of(spread, heaviest, self.measure) for spread in spreads])
            left = left_band(sizes, self.sizes[1:])  # none where a weight moved: then all are renewed
            renewed = left | ~left.any()
            self.sizes[1:] = np.where(renewed, sizes, self.sizes[1:])
            if self.raises:
                self.zero[renewed] = [log(level_of(spreads[k], heaviest)) for k in np.flatnonzero(renewed)]
        of_weights = self.heaviest[0] ** -POWER if self._weighs else 1.0
        row = np.array([[t, *(of_weights * self._natural(size) for size in self.sizes[1:])]])
        self.steps = row if self.steps[-1, 0] == t and len(self.steps) == 1 else np.concatenate([self.steps, row])

    def _natural(self, size: float) -> float:
        """The multiplier for targets of this size, or of none."""
        if self.counts:
            return 1.0 if self.metric else 1.0 / min(max(size, TINIEST if self.raises else 1.0), LARGEST)
        if self.metric:
            return size if size > 0.0 else 1.0
        return natural_step(self.loss, size)

    # --- files -------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name."""
        found = {f"units.{name}": getattr(self, name) for name in ("zero", "spread", "heaviest", "sizes", "steps")}
        return found if self.clip is None else found | self.clip.arrays()

    def restore(self, arrays: dict[str, np.ndarray], t: int) -> None:
        """Take the arrays of a run of t rows; raises ModelFileError for arrays that no run gives."""
        outputs = len(self.zero)
        shapes = {
            "zero": (outputs,),
            "spread": (outputs, 3),
            "heaviest": (1,),
            "sizes": (1 + outputs,),
            "steps": (None, 1 + outputs),
        }
        found = {name: trust.array(arrays, f"units.{name}", np.float64, *shape) for name, shape in shapes.items()}
        for name, array in found.items():
            trust.finite(f"units.{name}", array)
        after, by = found["steps"][:, 0], found["steps"][:, 1:]
        whole = len(after) > 0 and after[0] == 0.0 and np.all(after == np.floor(after)) and after[-1] <= max(0, t - 1)
        trust.must(whole and np.all(np.diff(after) > 0.0) and np.all(by > 0.0), "multipliers of the steps or their rows")
        spread = found["spread"]
        sizes = (spread[:, COUNT], spread[:, SQUARES], found["heaviest"], found["sizes"])
        trust.must(all(np.all(size >= 0.0) for size in sizes), "units of targets and weights below 0")
        if self.clip is not None:
            self.clip.restore(arrays)
        for name, array in found.items():
            setattr(self, name, np.array(array))
        self.before = self.zero.copy()


def has_units(loss: Any) -> bool:
    """Whether step sizes can follow the targets of a loss: one of s - y alone, or the Poisson loss."""
    return bool(getattr(loss, "residual", False)) or type(loss) is Poisson


def natural_step(loss: Any, size: float) -> float:
    """sigma / |l'(sigma)|: how far a step of size 1 must go to cross residuals of ``size``; 1 where the loss is flat there."""
    if not 0.0 < size < inf:
        return 1.0
    slope = max(abs(float(loss.slope(size, 0.0))), abs(float(loss.slope(-size, 0.0))))
    return size / slope if slope > 0.0 else 1.0
