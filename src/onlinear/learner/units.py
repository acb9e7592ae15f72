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

k is kept until it would change by a factor of more than ``BAND``: it then takes its new value before that row's step. What is
learned hence does not depend on how the rows are cut into calls, and k changes a few times in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.files import trust
from onlinear.learner.clip import Clip
from onlinear.solvers.core.engine import Steps

RAW, RELATIVE = "raw", "relative"
KINDS = (RAW, RELATIVE)
POWER = 0.75
BAND = 1.25
COUNT, MEAN, SQUARES = range(3)


@function
def left_band(size, known):  # type: ignore[no-untyped-def]
    """Whether a size is beyond the band of the one that a multiplier was made for; numbers or arrays."""
    return (size > known * BAND) | (size * BAND < known)


@function
def take_in(y, s, i, weights, centred, spread, heaviest, sizes, ranges):  # type: ignore[no-untyped-def]
    """Take in row i of weight s[i] > 0; whether a size has left its band, and whether a target the range of the loss."""
    changed, moved = False, False
    if s[i] > heaviest[0]:
        heaviest[0] = s[i]
        changed = weights != 0 and s[i] > sizes[0] * BAND
    for k in range(y.shape[1]):
        x = y[i, k]
        spread[k, COUNT] += s[i]
        if centred:
            move = x - spread[k, MEAN]
            spread[k, MEAN] += move * (s[i] / spread[k, COUNT])
            spread[k, SQUARES] += (move * (x - spread[k, MEAN]) - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
        else:
            spread[k, SQUARES] += (x * x - spread[k, SQUARES]) * (s[i] / spread[k, COUNT])
        size = sqrt(max(0.0, spread[k, SQUARES]))
        changed = changed or left_band(size, sizes[1 + k])
        if ranges is not None:
            moved = moved or x < ranges[k, 0] or x > ranges[k, 1]
    return changed, moved


@kernel
def follow(y, s, first, weights, centred, spread, heaviest, sizes, ranges):  # type: ignore[no-untyped-def]
    """Take in rows from ``first`` on; give the place of the first one after which a size has left its band or a target the
    range of the loss, or their number; and whether a size has.

    ``sizes``: the heaviest weight and the spread of each output that the multipliers were made for; 0 for none. ``ranges``: of
    the loss (outputs, 2), or None.
    """
    for i in range(first, y.shape[0]):
        if s[i] > 0.0:
            changed, moved = take_in(y, s, i, weights, centred, spread, heaviest, sizes, ranges)
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
        self.loss, self.targets, self.weights, self.centred = loss, targets, weights, centred
        self.metric = metric  # whether steps are divided by the size of the gradients so far
        self._weighs = weights and not metric  # whether weights of rows move the multipliers
        self.zero = np.zeros(outputs)  # subtracted from the targets
        self.spread = np.zeros((outputs, 3))  # sum of weights, mean, variance of the targets less their zero
        self.heaviest = np.zeros(1)
        self.sizes = np.zeros(1 + outputs)  # those that the multipliers were made for
        self.clip = Clip(outputs) if clips else None
        self.steps = np.array([[0.0, *np.ones(outputs)]])  # rows learned before, and the multiplier of each output since then

    @property
    def shifts(self) -> bool:
        """Whether targets have a zero."""
        return self.targets and self.centred

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

    def split(self, y: np.ndarray, s: np.ndarray, t: int) -> Iterator[slice]:
        """Cut rows that follow the first t into stretches of one multiplier, which ``multipliers`` gives after each ``yield``,
        and of one range; y as ``subtract_zero`` gives it."""
        first, here, n = 0, 0, len(y)
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
        return self._weighs, self.centred, self.spread, self.heaviest, self.sizes, ranges

    def within(self, score: float) -> float:
        """A score of the only output, within the targets seen where predictions are clipped."""
        if self.clip is None:
            return score
        low, high = (self.clip.ranges[0] + self.zero[0]).tolist()
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
            sizes = np.sqrt(np.maximum(0.0, self.spread[:, SQUARES]))
            left = left_band(sizes, self.sizes[1:])  # none where a weight moved: then all are renewed
            self.sizes[1:] = np.where(left | ~left.any(), sizes, self.sizes[1:])
        of_weights = self.heaviest[0] ** -POWER if self._weighs else 1.0
        row = np.array([[t, *(of_weights * self._natural(size) for size in self.sizes[1:])]])
        self.steps = row if self.steps[-1, 0] == t and len(self.steps) == 1 else np.concatenate([self.steps, row])

    def _natural(self, size: float) -> float:
        """The multiplier for targets of this size, or of none."""
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


def natural_step(loss: Any, size: float) -> float:
    """sigma / |l'(sigma)|: how far a step of size 1 must go to cross residuals of ``size``; 1 where the loss is flat there."""
    if not size > 0.0:
        return 1.0
    slope = max(abs(float(loss.slope(size, 0.0))), abs(float(loss.slope(-size, 0.0))))
    return size / slope if slope > 0.0 else 1.0
