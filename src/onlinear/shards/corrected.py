r"""Corrected rounds: passes over shards whose mean moves towards the optimum, where working sets are too large (MATH 20.7).

    round 1    the mean of online passes, or that mean with zeros where shards vote for them
    round r    the mean of corrected passes from where the fit stands, or a quasi-Newton step, as far as it brings F down

``Descent`` is where one output stands between two readings. It asks about ``points`` and takes the ``Sums`` of all rows there,
wherever they were made. All is in columns divided by their scales, but for what is asked of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from onlinear.certified import Standing, in_scales
from onlinear.certified.gap import Gap
from onlinear.certified.newton import penalised, strengths_of
from onlinear.certified.stream_gap import bound_by_sign
from onlinear.certified.sums import SHARES, Point, Sums
from onlinear.files import trust
from onlinear.files.model_file import arrays_of_each
from onlinear.learner import Learner
from onlinear.shards.tasks import Centre, Job

ETA = 1.0  # the first step of corrected passes
PAIRS = 8  # of steps and gradients, from which curvature is known
RISE = 1e-3  # of F that zeros may cost after the first round
SPENT = 0.1  # of the decrease of a later round that zeros may cost
ANY_PAIR = 1e-12  # of |step| |change of gradient|: a pair whose product is smaller says nothing
NUMBERS = ("b", "g_b", "value", "bound", "lowest", "eta", "share", "quasi")


class Candidate(NamedTuple):
    """A point with the sums of all rows there."""

    w: np.ndarray
    b: float
    value: float
    sums: Sums


class Descent:
    """One output: w, b, the last point that brought F down; g, g_b, the gradient of the mean loss there; eta, the next step."""

    def __init__(self, job: Job) -> None:
        self.job, self.strengths = job, strengths_of(job.penalty)
        self.w, self.b, self.g, self.g_b = np.zeros(job.width), 0.0, np.zeros(job.width), 0.0
        self.value, self.bound, self.lowest, self.eta, self.share = inf, -inf, 0.0, ETA / job.unit, 1.0
        self.steps: list[np.ndarray] = []
        self.changes: list[np.ndarray] = []
        self.quasi = False  # whether the last step was the quasi-Newton one
        self._targets: list[tuple[np.ndarray, float]] = []
        self._voted = np.zeros(0, bool)
        self._pending: tuple[int, float] | None = None

    @property
    def gap(self) -> Gap:
        """The certificate of w and b; infinite without a penalty."""
        return Gap(self.value, self.bound, self.lowest)

    # --- a round -----------------------------------------------------------------------------------------------------

    def begin(self, mean: np.ndarray, b: float, voted: np.ndarray) -> None:
        """Begin a round with the mean of passes, and where shards vote for zeros."""
        b = b if self.job.fit_intercept else 0.0
        self._voted = voted
        self._targets = [(mean, b), (np.where(voted, 0.0, mean), b)]
        if self.steps:
            self._targets.append(self._newton())

    def points(self) -> list[Point]:
        """What the next reading asks about; nothing where the round is done."""
        searches = bool(np.isfinite(self.value)) and self._pending is None
        asked = []
        for w, b in self._targets:
            point = Point.at(in_scales(w, self.job.scales), b)
            step = in_scales(w - self.w, self.job.scales)
            asked.append(point._replace(step=step, step_b=b - self.b) if searches else point)
        return asked

    def take(self, sums: Sequence[Sums]) -> None:
        """Take the sums of all rows at ``points``, and stand at the best of them, or ask about a shorter step."""
        found = [
            Candidate(w, b, total.loss / total.rows + penalised(self.strengths, w), total)
            for (w, b), total in zip(self._targets, sums, strict=True)
        ]
        self._targets = []
        if self._pending is not None:
            (which, share), self._pending = self._pending, None
            self._choose(found, which, share)
        elif not np.isfinite(self.value):
            self._choose(found, 0, 1.0)
        else:
            self._search(found)

    def _search(self, found: list[Candidate]) -> None:
        """The best share of the best step: 1, whose sums are there, one that is asked about, or none."""
        best, which, share = self.value, 0, 0.0
        for k, kept in enumerate(found):
            if k == 1:
                continue  # the zeros of the first, which follow it
            n, step = kept.sums.rows, kept.w - self.w
            losses = [kept.sums.loss, *kept.sums.along.tolist()]
            for t, loss in zip((1.0, *SHARES), losses, strict=True):
                value = loss / n + penalised(self.strengths, self.w + t * step)
                if value < best:
                    best, which, share = value, k, t
        if share == 1.0:
            self._choose([found[which], *([found[1]] if which == 0 else [])], which, share)
        elif share > 0.0:
            self._pending = which, share
            w, b = self.w + share * (found[which].w - self.w), self.b + share * (found[which].b - self.b)
            self._targets = [(w, b), (np.where(self._voted, 0.0, w), b)] if which == 0 else [(w, b)]
        else:
            self.eta, self.share, self.quasi = self.eta / 8.0, 0.0, False

    def _choose(self, found: list[Candidate], which: int, share: float) -> None:
        """Stand at a point, or at it with zeros where they cost little; the next step follows what the search has said."""
        first, kept = not np.isfinite(self.value), found[0]
        if not first and not kept.value <= self.value:  # by rounding alone: the share was seen to bring F down
            self.share = 0.0
            return
        if len(found) > 1:
            most = kept.value + (RISE * abs(kept.value) if first else SPENT * (self.value - kept.value))
            kept = found[1] if found[1].value <= most else kept
        old = np.append(self.w, self.b), self._smooth()
        slope = self._slope(found[0])
        self.w, self.b, self.value, self.share, self.quasi = kept.w, kept.b, kept.value, share, which == 2
        self._look(kept.sums)
        if first:
            return
        self._remember(np.append(self.w, self.b) - old[0], self._smooth() - old[1])
        if which == 0:
            self.eta *= 0.125 if share <= SHARES[2] else 0.5 if share <= SHARES[1] else 2.0 if share == 1.0 and slope else 1.0

    def _look(self, sums: Sums) -> None:
        """Gradient and certificate, from the sums of all rows here."""
        n, by_sign = sums.rows, sums.by_sign
        self.g, self.g_b = in_scales(sums.gradients.sum(axis=0) / n, self.job.scales), float(by_sign[:, 0].sum()) / n
        self.lowest = -float(by_sign[:, 2].sum()) / n
        if self.job.penalty.reach(np.array([-1.0, 1.0])) > 0.0:
            given = n, self.job.scales, self.job.fit_intercept
            self.bound = max(self.bound, bound_by_sign(self.job.penalty, by_sign, sums.gradients, *given))

    def _slope(self, kept: Candidate) -> bool:
        """Whether F still falls at the end of a whole step at half the rate of its beginning: twice the step was better."""
        step, step_b = kept.w - self.w, kept.b - self.b
        g = in_scales(kept.sums.gradients.sum(axis=0) / kept.sums.rows, self.job.scales)
        g_b = float(kept.sums.by_sign[:, 0].sum()) / kept.sums.rows
        rise = penalised(self.strengths, kept.w) - penalised(self.strengths, self.w)
        begin, end = self.g @ step + self.g_b * step_b + rise, g @ step + g_b * step_b + rise
        return bool(end <= 0.5 * begin < 0.0)

    # --- the quasi-Newton step ---------------------------------------------------------------------------------------

    def _smooth(self) -> np.ndarray:
        """(d + 1,): the gradient of the mean loss and of l2, the intercept's last."""
        return np.append(self.g + self.strengths[1] * self.w, self.g_b * self.job.fit_intercept)

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        product = float(step @ change)
        if product > ANY_PAIR * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
            self.steps, self.changes = [*self.steps, step][-PAIRS:], [*self.changes, change][-PAIRS:]

    def _newton(self) -> tuple[np.ndarray, float]:
        """Where the quasi-Newton step of F leads that changes no sign (Andrew, Gao 2007)."""
        l1, _, lower, upper = self.strengths
        slopes = steepest(self._smooth(), np.append(self.w, 0.0), l1)
        move = -product(self.steps, self.changes, slopes)
        if l1 > 0.0:
            move[:-1][move[:-1] * slopes[:-1] > 0.0] = 0.0
        target = np.clip(self.w + move[:-1], lower, upper)
        if l1 > 0.0:
            sign = np.where(self.w != 0.0, np.sign(self.w), -np.sign(slopes[:-1]))
            target[target * sign < 0.0] = 0.0
        return target, self.b + float(move[-1])

    # --- files -------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """All that it knows, as arrays."""
        numbers = np.array([float(getattr(self, name)) for name in NUMBERS])
        pairs = np.array([*self.steps, *self.changes]).ravel()
        return {"numbers": numbers, "w": self.w, "g": self.g, "pairs": pairs}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take what ``state`` gave. Raises ModelFileError for what no run gives."""
        d = self.job.width
        numbers = trust.array(state, "numbers", np.float64, len(NUMBERS))
        w, g = (trust.array(state, name, np.float64, d) for name in ("w", "g"))
        pairs = trust.array(state, "pairs", np.float64, None)
        trust.must(len(pairs) % (2 * (d + 1)) == 0 and len(pairs) <= 2 * PAIRS * (d + 1), "pairs of steps")
        for name, values in (("w", w), ("g", g), ("pairs", pairs)):
            trust.finite(name, values)
        for name, value in zip(NUMBERS, numbers.tolist(), strict=True):
            setattr(self, name, value)
        trust.must(bool(np.isfinite(numbers[[0, 1, 2, 4, 5]]).all()) and self.bound < inf and self.eta > 0.0, "numbers")
        trust.must(0.0 <= self.share <= 1.0 and self.quasi in (0.0, 1.0), "the share of a step")
        self.quasi = bool(self.quasi)
        self.w, self.g = w.copy(), g.copy()
        rows = list(pairs.copy().reshape(-1, d + 1))
        self.steps, self.changes = rows[: len(rows) // 2], rows[len(rows) // 2 :]


def steepest(g: np.ndarray, w: np.ndarray, l1: float) -> np.ndarray:
    """The least subgradient of F, of smooth gradients and weights (d + 1,); the intercept, which is last, has no l1."""
    if l1 == 0.0:
        return g
    still = np.copysign(np.maximum(np.abs(g) - l1, 0.0), g)
    found = np.where(w != 0.0, g + l1 * np.sign(w), still)
    found[-1] = g[-1]
    return found


def product(steps: Sequence[np.ndarray], changes: Sequence[np.ndarray], v: np.ndarray) -> np.ndarray:
    """The inverse curvature of pairs, times v: the two loops of L-BFGS (Nocedal 1980)."""
    v, shares = v.copy(), []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        shares.append(float(step @ v) / float(step @ change))
        v -= shares[-1] * change
    v *= float(steps[-1] @ changes[-1]) / float(changes[-1] @ changes[-1])
    for step, change, share in zip(steps, changes, reversed(shares), strict=True):
        v += (share - float(change @ v) / float(step @ change)) * step
    return v


class CorrectedRounds:
    """All outputs of a learner in corrected rounds. ``learner``: that of the online pass, which stands where the rounds do;
    ``before``: readings of all rows before the first."""

    def __init__(self, learner: Learner, job: Job, before: int) -> None:
        self.learner, self.job, self.before = learner, job, before
        self.outputs = [Descent(job) for _ in range(job.outputs)]
        self.iterations, self.passes = 0, before

    @property
    def standing(self) -> Standing:
        """Where all outputs stand together. The gap is infinite without a penalty."""
        return Standing.of((output.gap, output.w) for output in self.outputs)

    @property
    def share(self) -> float:
        """The share of the step that was taken, of several outputs the least."""
        return min(output.share for output in self.outputs)

    @property
    def quasi(self) -> int:
        """How many outputs took the quasi-Newton step."""
        return sum(output.quasi for output in self.outputs)

    def centre(self) -> Centre:
        """Where the passes of the next round begin."""
        columns = [np.column_stack([getattr(output, name) for output in self.outputs]) for name in ("w", "g")]
        b, g_b, eta = (np.array([getattr(output, name) for output in self.outputs]) for name in ("b", "g_b", "eta"))
        return Centre(columns[0], b, columns[1], g_b, eta)

    def begin(self, weights: np.ndarray, intercepts: np.ndarray, voted: np.ndarray) -> None:
        """Begin a round with the mean of passes: weights (d, K), intercepts (K,), and votes for zeros (d, K)."""
        self.passes += 1
        for k, output in enumerate(self.outputs):
            output.begin(weights[:, k].copy(), float(intercepts[k]), voted[:, k])

    def points(self) -> list[tuple[int, Point]]:
        """What the next reading asks about, each for an output; nothing where the round is done."""
        return [(k, point) for k, output in enumerate(self.outputs) for point in output.points()]

    def take(self, asked: Sequence[tuple[int, Point]], sums: Sequence[Sums]) -> None:
        """Take the sums of all rows at ``asked``."""
        self.passes += 1
        for k, output in enumerate(self.outputs):
            if own := [found for (which, _), found in zip(asked, sums, strict=True) if which == k]:
                output.take(own)

    def end(self, rows: int) -> None:
        """Let the learner stand where the rounds do. Raises ArithmeticError for an objective that is not finite."""
        if not np.isfinite(self.standing.objective):
            raise ArithmeticError("the objective of the rounds is not finite: name another solver, or a scale.")
        self.iterations += 1
        weights = np.column_stack([in_scales(output.w, self.job.scales) for output in self.outputs])
        self.learner.begin_at(weights, np.array([output.b for output in self.outputs]))
        for state in self.learner.states:
            self.learner.engine.stand_at(state, rows * self.iterations)
        self.learner.unscored = rows * self.iterations

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the rounds know, beside the learner."""
        own = {f"{k}.{name}": array for k, output in enumerate(self.outputs) for name, array in output.state().items()}
        return {"made": np.array([float(self.iterations), float(self.passes)])} | own

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take what ``arrays`` gave. Raises ModelFileError for what no run gives."""
        made = trust.array(arrays, "made", np.float64, 2)
        trust.must(bool(np.all((made >= 1.0) & (made < 2.0**53) & (made % 1.0 == 0.0))), "a number of rounds")
        self.iterations, self.passes = (int(number) for number in made)
        own = arrays_of_each(arrays, ".")
        for k, output in enumerate(self.outputs):
            output.restore(own.get(str(k), {}))
