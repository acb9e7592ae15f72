r"""Running units of targets and weights: what a step size is measured in, and the zero of the targets.

A step size that suits targets near 1 and weights of 1 does not suit prices or weights of 10,000. With s_i the weights and y_i
the targets of the rows so far, this one included, a learner may take the step sizes of its solver times

    k = (sigma / |l'(sigma)|) / M^(3/4),   M = the largest s_i,   sigma^2 = the weighted variance of the y_i,

so that a step moves the prediction by the same share of sigma, whatever the unit of y. (The implicit step of the squared loss
follows the unit by itself: there k = 1 / M^(3/4).) And no weight is so large that its step ends at the row's own target and
forgets the weight. The power 3/4 was measured (docs/defaults.md): with 1 rare heavy rows move too little, with 1/2 too much.

Where the slope of the loss is bounded, a step goes as far towards a target as sigma says, and a few targets far out would make
it as large as theirs. So of such a loss a target counts in mean and variance as one that is at most ``FAR`` sigma from the mean
of those before it, once these are ``FEW`` rows of weight M: few outliers move sigma little. With each further target in a row
that is so far out the bound is twice as wide, so that targets which all have moved are followed at once. With slopes -b and a
below and above, such as b = q and a = 1 - q of a quantile, the bound is FAR (a + b)^4 / (4 a b)^2: targets that a quantile asks
for are far out too.

Losses that depend on s - y alone also get a zero: the first target of a row of non-zero weight is subtracted from all targets
and added to all predictions, so y + 10,000 is learned as y is. Scores then count from a level, the weighted mean of these
differences. It is taken each time the sum of the weights has doubled, up to ``SETTLED`` times M, unless one target makes more
than ``LONE`` of the sum of squares; what is left is the intercept's. The intercept alone has one share of a step among all
columns of a row: of 3,000 columns it needs thousands of rows to reach the mean. Without an intercept there are neither, and
sigma is the root mean square.

Steps in the metric of AdaGrad are divided by the size of the gradients so far, weights included. So a weight has there the unit
of the step alone, whatever the loss, and k = sigma.

Scores of the Poisson loss are logarithms, so a zero of the targets is none of the scores. With an intercept, scores count from
log m instead, m the weighted mean of the y_i (``Raised``), and k = 1 / (M^(3/4) sigma), sigma^2 = m^2 + the variance: the
slopes m e^u - y then have the size 1 whatever the mean. While all y_i are 0, m is half of M over the sum of the s_i. Without an
intercept scores count from 0, and sigma is at least 1. In the metric of AdaGrad k = 1, as log m has no unit.

k and m are kept until sigma or M has changed by a factor of more than ``BAND``: they then take new values before that row's
step, which the row's own score does not know. What is learned hence does not depend on how the rows are cut into calls, and k
changes a few times in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, hypot, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, code_for, function, lean_kernel, with_fields_at
from onlinear.files import trust
from onlinear.learner.clip import Clip
from onlinear.losses import Poisson, Squared, is_residual
from onlinear.solvers.core.engine import Engine, Steps, can_multiply
from onlinear.text.form import kebab

RAW, RELATIVE = "raw", "relative"
UNITS = (RAW, RELATIVE)
CLIPPED = (Squared, Poisson)  # losses whose predictions may be clipped to the targets seen
POWER = 0.75
BAND = 1.25
LONE = 0.95  # of the sum of squares, beyond which a single target is an outlier
SETTLED = 64.0  # rows of the heaviest weight, beyond which the level of numbers stays
FAR = 6.0  # deviations from the mean, beyond which a target counts as if it were there, where the slope of the loss is bounded
FEW = 3.0  # rows of the heaviest weight, before which every target counts as it is
BEYOND_SETTINGS = 1e9  # a residual beyond the settings of any loss
TINIEST, LARGEST = 1e-150, 1e150  # sizes of targets whose squares are numbers
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


# Kernels hand these numbers, not arrays: an array is counted in and out with each call.


@function
def level_of(count, mean, heaviest):  # type: ignore[no-untyped-def]
    """The mean of the counts of an output; while all are 0, half a count of the heaviest row."""
    return mean if mean > 0.0 else 0.5 * heaviest / count


@function
def size_of(count, mean, squares, heaviest, measure):  # type: ignore[no-untyped-def]
    """The size of the targets of an output."""
    size = sqrt(max(0.0, squares))
    return hypot(size, level_of(count, mean, heaviest)) if measure == WITH_MEAN else size


@function
def left_band(size, known):  # type: ignore[no-untyped-def]
    """Whether a size is beyond the band of the one that a multiplier was made for; numbers or arrays."""
    return (size > known * BAND) | (size * BAND < known)


@function
def has_doubled(count, heaviest, levelled):  # type: ignore[no-untyped-def]
    """Whether the level of numbers is to be taken anew; ``levelled``: the sum of the weights at which it was last to be."""
    return 2.0 * levelled <= count <= SETTLED * heaviest


def is_even(spread: np.ndarray, heaviest: np.ndarray, ends: np.ndarray) -> bool:
    """Whether no single target of an output makes nearly all of their variance."""
    count, mean, squares = spread.tolist()  # NumPy's numbers warn of products that overflow
    farthest = max(float(ends[1]) - mean, mean - float(ends[0]))
    return farthest * farthest <= LONE * (count / float(heaviest[0]) - 1.0) * squares


@function
def counted_as(x, k, spread, heaviest, far):  # type: ignore[no-untyped-def]
    """The target that the spread of output k takes in for x: no farther from the mean than ``far`` says, which moves on."""
    if not (far[0] < inf and spread[k, SQUARES] > 0.0 and spread[k, COUNT] >= FEW * heaviest[0]):
        return x
    move, most = x - spread[k, MEAN], far[0] * far[1 + k] * sqrt(spread[k, SQUARES])
    if abs(move) <= most:
        far[1 + k] = 1.0
        return x
    far[1 + k] *= 2.0
    return spread[k, MEAN] + copysign(most, move)


@function
def take_in(y, s, first, weights, measure, spread, heaviest, sizes, levelled, ends, far, ranges):  # type: ignore[no-untyped-def]
    """Take in rows from ``first`` on; give the place of the first one after which steps or the level change or a target leaves
    the range of the loss, or their number; and whether steps or the level change.

    ``sizes``: the heaviest weight and the spread of each output that the multipliers were made for; 0 for none. ``far``: how
    many deviations a target may be off, and of each output by what that is multiplied. ``ranges``: of the loss (outputs, 2), or
    None. ``measure``: None where targets are not followed, for which nothing is compiled then.
    """
    for i in range(first, y.shape[0]):
        if not s[i] > 0.0:
            continue
        changed, moved = False, False
        if s[i] > heaviest[0]:
            heaviest[0] = s[i]
            changed = weights != 0 and s[i] > sizes[0] * BAND
        if measure is None:
            if changed:
                return i, changed
            continue
        for k in range(y.shape[1]):
            target = y[i, k]
            x = counted_as(target, k, spread, heaviest, far)
            spread[k, COUNT] += s[i]
            if measure != FROM_ZERO:
                move = x - spread[k, MEAN]
                spread[k, MEAN] += move * (s[i] / spread[k, COUNT])
                ends[k, 0], ends[k, 1] = min(ends[k, 0], x), max(ends[k, 1], x)
                spread[k, SQUARES] += (move * (x - spread[k, MEAN]) - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
            else:
                spread[k, SQUARES] += (x * x - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
            size = size_of(spread[k, COUNT], spread[k, MEAN], spread[k, SQUARES], heaviest[0], measure)
            changed = changed or left_band(size, sizes[1 + k])
            if ranges is not None:
                moved = moved or target < ranges[k, 0] or target > ranges[k, 1]
        if measure == FROM_MEAN and y.shape[1] > 0:
            changed = changed or has_doubled(spread[0, COUNT], heaviest[0], levelled[0])
        if changed or moved:
            return i, changed
    return y.shape[0], False


@lean_kernel
def follow(y, s, first, weights, measure, spread, heaviest, sizes, levelled, ends, far, ranges):  # type: ignore[no-untyped-def]
    """``take_in`` for Python."""
    return take_in(y, s, first, weights, measure, spread, heaviest, sizes, levelled, ends, far, ranges)


class Units:
    """The running units of one learner; ``targets`` and ``weights``: whether the step sizes follow them."""

    ahead = False  # whether what is infinite in the spread is of the row behind those that are learned now

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
        self.raises = targets and centred  # whether scores count from a level
        self.shifts = self.raises and not self.counts  # whether targets have a zero
        self.measure = WITH_MEAN if self.counts else FROM_MEAN if centred else FROM_ZERO
        self.metric = metric  # whether steps are divided by the size of the gradients so far
        self._weighs = weights and not metric  # whether weights of rows move the multipliers
        self.zero = np.zeros(outputs)  # of the targets
        self.level = np.zeros(outputs)  # of the scores of targets less their zero
        self.before = self.level.copy()  # the level of the score of the row whose step comes next
        self.levelled = np.zeros(1)  # the sum of the weights when the level of numbers was last to be taken; inf: never
        self.ends = np.zeros((outputs, 2))  # the smallest and largest target less their zero
        self.offset = np.zeros(outputs)  # zero + level
        self.spread = np.zeros((outputs, 3))  # sum of weights, mean, variance of the targets less their zero
        self.heaviest = np.zeros(1)
        self.far = np.array([reach_of(loss) if targets else inf, *np.ones(outputs)])  # deviations; by what of each output
        self.sizes = np.zeros(1 + outputs)  # those that the multipliers were made for
        self._fields = np.zeros(outputs)  # of the losses of counts: the levels that outputs were last learned from
        self.clip = Clip(outputs, self.counts) if clips else None
        self.steps = np.array([[0.0, *np.ones(outputs)]])  # rows learned before, and the multiplier of each output since then

    @property
    def multipliers(self) -> np.ndarray:
        """The multiplier of each output's step sizes now, (K,)."""
        return self.steps[-1, 1:]

    def of_outputs(self) -> np.ndarray:
        """What the steps and losses of the outputs are made of now: multiplier, level, and range of the loss, (K, 2 or 4)."""
        found = [self.multipliers, self.level]
        return np.column_stack(found if self.clip is None else [*found, self.clip.rooms])

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
                self._add_up()
        return np.asfortranarray(y - self.zero)

    def from_level(self, y: np.ndarray) -> np.ndarray:
        """Targets (n, K), less their zero, as kernels take them: numbers count from the level, as scores do."""
        return np.asfortranarray(y - self.level) if self.shifts else y

    def add_zero(self, scores: np.ndarray) -> np.ndarray:
        """The scores (..., outputs of some cores, n) of rows whose targets are less by the zero, with it."""
        return scores + np.tile(self.zero, scores.shape[-2] // len(self.zero))[:, None]

    def _add_up(self) -> None:
        np.add(self.zero, self.level, out=self.offset)

    def loss_of(self, output: int, implicit: bool) -> Any:
        """The loss of an output as kernels take it, where it is not the loss named: it follows the level or the range."""
        if self.clip is not None:
            return self.clip.loss(output, self.level.item(output), implicit)
        if self.counts and self.raises:
            fields = self._fields[output : output + 1]
            fields[0] = self.level[output]
            return with_fields_at(Raised(self.level[output]), fields, implicit)
        return None

    def write_levels(self, levels: np.ndarray) -> None:
        """Write the levels that the scores of a stretch of rows count from, (K, n): that of the first row is the one before
        it."""
        levels[...] = self.level[:, None]
        levels[:, :1] = self.before[:, None]
        self.before[:] = self.level

    def follow_ranges(self, y: np.ndarray, s: np.ndarray) -> np.ndarray | None:
        """Take in the targets (n, K) of rows of weights s; give their range before each row, (2, n, K), where scores are
        clipped to it, else None."""
        return None if self.clip is None else self.clip.follow(y, s)

    def split(self, y: np.ndarray, s: np.ndarray, t: int, ranges: np.ndarray | None) -> Iterator[slice]:
        """Cut rows that follow the first t into stretches of one multiplier, which ``multipliers`` gives after each ``yield``,
        and of one loss; y as ``subtract_zero`` gives it, ``ranges`` as ``follow_ranges`` does."""
        first, here, n = 0, 0, len(y)
        if not (self.targets or self._weighs) and self.clip is None:  # one stretch: all that moves is this
            self.heaviest[0] = s.max(initial=self.heaviest[0])
            here = n
        followed = y if self.targets else np.zeros((n, 0))
        run = code_for(follow, followed, s, here, *self.known) if here < n else follow
        while here < n:
            finite = bool(np.isfinite(self.spread).all())
            here, sized = run(followed, s, here, *self.known)
            if here < n:
                if here > first:
                    self.ahead = finite
                    try:
                        yield slice(first, here)
                    finally:
                        self.ahead = False
                self.move(y[here], t + here, sized, None if ranges is None else ranges[:, here])
                first, here = here, here + 1
        if first < n:
            yield slice(first, n)

    @property
    def known(self) -> tuple[Any, ...]:
        """What ``take_in`` takes after the first row's place: the arrays themselves."""
        ranges = None if self.clip is None else self.clip.rooms
        measure = self.measure if self.targets else None
        return self._weighs, measure, self.spread, self.heaviest, self.sizes, self.levelled, self.ends, self.far, ranges

    @property
    def vanish(self) -> bool:
        """Whether the targets of an output differ, but by so little that the squares of it are none; without a zero, whether
        those that are not 0 are so small."""
        if self.counts:
            sizes = self.spread[:, MEAN]
        elif self.shifts or self.clip is None:
            sizes = self.ends[:, 1] - self.ends[:, 0]
        else:
            sizes = np.abs(self.clip.ranges).max(axis=1)
        return self.targets and bool(np.any((sizes > 0.0) & (sizes < TINIEST)))

    @property
    def weights_vanish(self) -> bool:
        """Whether rows have weights, but so small ones that the squares of all are no numbers."""
        return bool(0.0 < self.heaviest[0] < TINIEST)

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

    def move(self, y: np.ndarray, t: int, sized: bool, ranges: np.ndarray | None) -> None:
        """Follow a row of targets (K,), less their zero, after t rows: it has left a range or, where ``sized``, a band, or the
        level is to be taken. ``ranges``: of the targets before it, (2, K), where scores are clipped."""
        if sized and self.shifts and has_doubled(self.spread.item(0, COUNT), self.heaviest.item(), self.levelled.item()):
            self.levelled[0] = self.spread[0, COUNT]
            even = [is_even(spread, self.heaviest, ends) for spread, ends in zip(self.spread, self.ends, strict=True)]
            self._take_level(np.where(even, self.spread[:, MEAN], self.level))
        if sized:
            self._renew(t)
        if self.clip is not None and ranges is not None:
            self.clip.widen(y)
            self.clip.loosen(y, np.sqrt(np.maximum(0.0, self.spread[:, SQUARES])), ranges)

    def _renew(self, t: int) -> None:
        """Take new multipliers after t rows, where a size has left its band or a weight has grown."""
        grown = self._weighs and bool(self.heaviest[0] > self.sizes[0] * BAND)
        if self.targets:
            spreads, heaviest = self.spread.tolist(), self.heaviest.item()
            sizes = np.array([size_of(*spread, heaviest, self.measure) for spread in spreads])
            left = left_band(sizes, self.sizes[1:])  # none where a weight moved: then all are renewed
            if not (grown or left.any()):
                return
            renewed = left | ~left.any()
            self.sizes[1:] = np.where(renewed, sizes, self.sizes[1:])
            if self.counts and self.raises:
                levels = [log(level_of(count, mean, heaviest)) for count, mean, _ in spreads]
                self._take_level(np.where(renewed, levels, self.level))
        self.sizes[0] = self.heaviest[0]
        of_weights = self.heaviest[0] ** -POWER if self._weighs else 1.0
        row = np.array([[t, *(of_weights * self._natural(size) for size in self.sizes[1:])]])
        self.steps = row if self.steps[-1, 0] == t and len(self.steps) == 1 else np.concatenate([self.steps, row])

    def _take_level(self, level: np.ndarray) -> None:
        """Let scores count from another level (K,)."""
        self.level[:] = level
        self._add_up()

    def _natural(self, size: float) -> float:
        """The multiplier for targets of this size, or of none."""
        if self.counts:
            return 1.0 if self.metric else 1.0 / min(max(size, TINIEST if self.raises else 1.0), LARGEST)
        if self.metric:
            return size if size > 0.0 else 1.0
        return natural_step(self.loss, size)

    # --- files -------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name. The level of counts stands where that of numbers has their zero."""
        found: dict[str, np.ndarray] = {"zero": self.level if self.counts else self.zero}
        found |= {name: getattr(self, name) for name in ("spread", "heaviest", "sizes", "steps")}
        if self.shifts and self.levelled[0] < inf:
            found |= {"level": self.level, "levelled": self.levelled, "ends": self.ends}
        if np.any(self.far[1:] > 1.0):
            found["far"] = self.far[1:]
        named = {f"units.{name}": array for name, array in found.items()}
        return named if self.clip is None else named | self.clip.arrays()

    def restore(self, arrays: dict[str, np.ndarray], t: int) -> None:
        """Take the arrays of a run of t rows; raises ModelFileError for arrays that no run gives.

        A file of before numbers had a level has none, and its run continues without one.
        """
        outputs = len(self.zero)
        shapes: dict[str, tuple[int | None, ...]] = {
            "zero": (outputs,),
            "spread": (outputs, 3),
            "heaviest": (1,),
            "sizes": (1 + outputs,),
            "steps": (None, 1 + outputs),
        }
        if self.shifts and "units.levelled" in arrays:
            shapes |= {"level": (outputs,), "levelled": (1,), "ends": (outputs, 2)}
        else:
            self.levelled[0] = inf
        if "units.far" in arrays:
            shapes["far"] = (outputs,)
        found = {name: trust.array(arrays, f"units.{name}", np.float64, *shape) for name, shape in shapes.items()}
        for name, array in found.items():
            trust.finite(f"units.{name}", array)
        after, by = found["steps"][:, 0], found["steps"][:, 1:]
        whole = len(after) > 0 and after[0] == 0.0 and np.all(after == np.floor(after)) and after[-1] <= max(0, t - 1)
        trust.must(whole and np.all(np.diff(after) > 0.0) and np.all(by > 0.0), "multipliers of the steps or their rows")
        spread = found["spread"]
        sizes = (spread[:, COUNT], spread[:, SQUARES], found["heaviest"], found["sizes"], found.get("levelled", self.levelled))
        trust.must(all(np.all(size >= 0.0) for size in sizes), "units of targets and weights below 0")
        if self.clip is not None:
            self.clip.restore(arrays)
        self.far[1:] = found.pop("far", 1.0)
        trust.must(np.all(self.far >= 1.0), "targets that are nearer than near")
        if self.counts:
            found["level"] = found.pop("zero")
        self.steps = np.array(found.pop("steps"))
        for name, array in found.items():
            getattr(self, name)[...] = array
        self.before[:] = self.level
        self._add_up()


def refuse_units(engine: Engine, targets: str, weights: str, *, clips: bool, started: bool) -> None:
    """Raise ValueError for parts that have no such units; ``started``: whether weights are given before the first row."""
    loss, name = engine.problem.loss, engine.problem.name
    if clips and type(loss) not in CLIPPED:
        raise ValueError(f"clip=True needs the loss squared or poisson, got {kebab(type(loss).__name__)}.")
    if clips and targets == RAW:
        raise ValueError(f"clip=True needs targets={RELATIVE!r}, got {targets!r}.")
    if targets == weights == RAW:
        return
    if not can_multiply(engine):
        raise ValueError(
            f"targets={RELATIVE!r} and weights={RELATIVE!r} multiply the step size from row to row, and {name} has no form "
            "for that here: use 'implicit-ftrl', or 'fiol', 'implicit-sgd', 'comid' or 'sgd' with a step size of its own."
        )
    if targets == RELATIVE and not has_units(loss):
        raise ValueError(
            f"targets={RELATIVE!r} needs poisson or a loss of the residual s - y; {type(loss).__name__} is neither."
        )
    if targets == RELATIVE and started:
        raise ValueError(f"start= needs targets={RAW!r}: the zero of the targets is not known before the first row.")


def has_units(loss: Any) -> bool:
    """Whether step sizes can follow the targets of a loss: one of s - y alone, or the Poisson loss."""
    return is_residual(loss) or type(loss) is Poisson


def slopes_beyond(loss: Any) -> tuple[float, float]:
    """The size of the slope far above the target, and far below it."""
    return abs(float(loss.slope(BEYOND_SETTINGS, 0.0))), abs(float(loss.slope(-BEYOND_SETTINGS, 0.0)))


def reach_of(loss: Any) -> float:
    """How many deviations from the mean targets count; inf where the loss is not one of s - y, or its slope has no bounds."""
    above, below = slopes_beyond(loss) if is_residual(loss) else (0.0, 0.0)
    if not 0.0 < min(above, below) <= max(above, below) < BEYOND_SETTINGS:
        return inf
    return FAR * ((above + below) ** 2 / (4.0 * above * below)) ** 2


def natural_step(loss: Any, size: float) -> float:
    """sigma / |l'(sigma)|: how far a step of size 1 must go to cross residuals of ``size``; 1 where the loss is flat there."""
    if not 0.0 < size < inf:
        return 1.0
    slope = max(abs(float(loss.slope(size, 0.0))), abs(float(loss.slope(-size, 0.0))))
    return size / slope if slope > 0.0 else 1.0
