"""The race of ``average="adaptive"`` (MATH 18.9): the average predicts, unless the last iterate scores recent rows better.

With ``calibrated=true`` what predicts is multiplied by its calibration slope a, learned from the scores m that it gave rows
before they were learned: for the logistic loss, with g and h the first and second derivative of l(a m, y) in a, and s the
weight of the row over the mean of those so far,

    H <- H + s h,      a <- a - s g / (H + 30),      within [1/8, 8]

(Cox, Biometrika 1958; 1/a is the temperature of Guo, Pleiss, Sun, Weinberger, ICML 2017, here learned online). Of several
classes l is minus the logarithm of the probability of the row's, and h the expected square of its derivative: with p_k
proportional to q_k and d_k = d log q_k / da,

    g = sum_k p_k d_k - d_own,      h = sum_k p_k d_k^2 - (sum_k p_k d_k)^2,

where q_k = sigmoid(a m_k), d_k = m_k (1 - q_k) of one against the rest, and q_k = exp(a m_k), d_k = m_k of softmax. That has
log-probabilities for scores; multiplied by a they are those of a z up to a number for the row, which is then taken off.

For the squared loss scores m and targets y count from the level of the targets (``units.py``), m clipped where predictions are.
r is the slope of their least squares line through 0, by weights that grow like the cube of the rows: early scores say little. A
residual u counts up to 20 times its usual size, so that one outlier decides nothing. The n-th row, of weight s, does

    u = y - r m, within 20 sqrt(v) of 0,      v <- v + max(3/(n + 2), 1/100) (u^2 - v),      w = s / (v + m^2/100),
    D <- max(0, 1 - 3/n) D + w m^2,      r <- r + w m u / D, within [0, 2],      a = 1 + (r - 1) / (1 + 20/n), at least 1/8.

and begins anew where the other predictor takes the lead. Predictions are clipped after a. The least squares line itself is not
taken: one target of 1e6 among targets near 1 would make it any line for thousands of rows.

Rows that are learned again say nothing of rows to come: a is 1 from the second pass on, which the caller says or the rows show
(``repeats.py``). Rows held out may give it another value, which it then keeps (``training/few_rows.py``).
"""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from onlinear.averages import ADAPTIVE, CALIBRATED
from onlinear.compiled import borrowed, function, lean_kernel
from onlinear.files import trust
from onlinear.learner.loss_sums import Total, add_loss
from onlinear.learner.repeats import Repeats, comes_again
from onlinear.losses import Logistic, Squared, sigmoid, summed
from onlinear.rows import Rows
from onlinear.softmax import Softmax, subtract_level
from onlinear.solvers.core.engine import Engine
from onlinear.solvers.core.experts import MOST, bound, remembered
from onlinear.solvers.packs.team import scores_means
from onlinear.text.form import kebab

PLAIN = 4  # numbers of a race without a calibration slope
SLOPE, CURVED, HELD = range(PLAIN, PLAIN + 3)  # a, H or D, and whether a stays as it is
RATIO, COUNTED, RESIDUAL = range(HELD + 1, HELD + 4)  # of numbers also r, n and v
WEIGHED, WEIGHT = range(HELD + 1, HELD + 3)  # of classes also how many rows had a weight, and the mean of their weights
SMALLEST, LARGEST, LARGEST_OF_NUMBERS = 0.125, 8.0, 2.0  # slopes
AT_FIRST = 30.0  # second derivatives that a = 1 is taken to rest on
ROWS_AT_FIRST = 20.0  # the same in rows, of numbers
OUTLYING = 20.0  # usual residuals up to which one counts
MEMORY = 100.0  # rows after which the usual residual is another
WEIGHTIEST = 100.0  # squares of a usual residual up to which that of a score counts
TINIEST = 1e-300  # squares below which there are no quotients
ROWS_OF_RACE = 3.0 / log(2.0)  # times a half-life: sums that lose 3 in so many rows fade by it


class Race:
    """The losses of the two predictors over the recent rows, summed over outputs.

    ``losses``: of the last iterate, and of the average; then the sum of the losses of whichever predicted, and its correction.
    ``longest``: the rows up to which the memory of the sums grows with their number. ``calibrated``: whether a slope is
    learned, and ``numbers``: of predictions that are numbers. ``joint``: whether the scores are log-probabilities.
    """

    def __init__(self, longest: float, *, calibrated: bool, joint: bool, numbers: bool) -> None:
        self.calibrated, self.numbers = calibrated, calibrated and numbers
        self.losses = np.zeros(PLAIN + 5 * calibrated + self.numbers)
        self._longest, self._joint = float(longest), joint
        if calibrated:
            self.losses[[SLOPE, *([RATIO] if self.numbers else [])]] = 1.0
        self.repeats = Repeats() if calibrated else None

    def rules(self, outputs: int) -> tuple[float, int | None, int | None, int | None, int | None]:
        """What ``compare`` has to know of a race of so many outputs: how far the sums remember; and whether a slope is learned,
        and whether of several classes, of log-probabilities, of numbers. None where not: nothing is compiled for it."""
        kinds = True, outputs > 1, self._joint, self.numbers
        slope, classes, joint, numbers = (1 if self.calibrated and kind else None for kind in kinds)
        return self._longest, slope, classes, joint, numbers

    @property
    def calibration_slope(self) -> float:
        """What the predictor is multiplied by."""
        return self.losses.item(SLOPE) if self.calibrated else 1.0

    @property
    def held(self) -> bool:
        """Whether there is no slope to learn."""
        return not self.calibrated or self.losses.item(HELD) > 0.0

    def hold(self, slope: float = 1.0) -> None:
        """Make the slope this one from now on."""
        if self.calibrated:
            hold(self.losses)
            self.losses[SLOPE] = slope

    def first_pass(self, rows: Rows, s: np.ndarray) -> int:
        """How many of these rows, of weights s, come before those of a later pass, as far as they show."""
        return len(s) if self.held else self.repeats.look(rows, s)  # type: ignore[union-attr]

    @property
    def watched(self) -> tuple[np.ndarray, np.ndarray] | None:
        """What ``watch`` takes."""
        return None if self.repeats is None else (self.repeats.known, self.losses)

    @property
    def last_leads(self) -> bool:
        """Whether the last iterate is ahead."""
        return self.losses.item(0) < self.losses.item(1)

    @property
    def predicted(self) -> np.ndarray:
        """The sum over the rows trained on of s_i l(score of what predicted before the step, y_i), and its correction."""
        return self.losses[2:PLAIN]

    @property
    def predicted_loss(self) -> float:
        """That sum as one number."""
        return Total.of(self.predicted).value

    def run(
        self,
        loss: Any,
        scores: np.ndarray,
        means: np.ndarray,
        linear: tuple[np.ndarray, np.ndarray],
        y: np.ndarray,
        s: np.ndarray,
        sums: np.ndarray,
        t: int,
        levels: np.ndarray,
        ranges: np.ndarray | None,
    ) -> None:
        """Run over rows that follow the first t: scores of the last iterate and of the average (K, n), y (n, K).

        A row's means become the scores of what predicted it, and ``sums`` (K, 2) take in the losses of the last iterate, which
        are computed here. ``linear``: the same scores before a clip, which follow; without
        a clip these very arrays. ``levels``: from which each row's scores count, (n,). ``ranges``: to which they are clipped
        (2, n, K), or None.
        """
        frame = (levels, ranges) if self.numbers else (None, None)
        compare(loss, scores, means, *linear, y, s, sums, t, self.rules(y.shape[1]), self.losses, *frame)

    def for_file(self) -> np.ndarray:
        """The losses as a file has them: without the mean of the weights, where the file that they are from had none."""
        old = self.calibrated and not self.numbers and self.losses.item(WEIGHED) == inf
        return self.losses[:WEIGHED] if old else self.losses

    def of_file(self, losses: np.ndarray) -> np.ndarray:
        """The losses of a file. One of before weights counted in units of their mean goes on with a mean of 1."""
        old = self.calibrated and not self.numbers and losses.shape == (WEIGHED,)
        return np.append(losses, [inf, 1.0]) if old else losses

    def check(self) -> None:
        """Raise ModelFileError for losses that no rows have."""
        trust.must(np.all(np.abs(self.losses[:2]) <= MOST), "losses of a race that no rows have")
        if self.calibrated:
            a, curved, held, *others = self.losses[SLOPE:].tolist()
            most = LARGEST_OF_NUMBERS if self.numbers else LARGEST
            fits = SMALLEST <= a <= most and 0.0 <= curved <= MOST and held in (0.0, 1.0)
            if self.numbers:
                ratio, counted, residual = others
                fits = fits and 0.0 <= ratio <= most and 0.0 <= counted <= MOST and 0.0 <= residual < inf
            else:
                weighed, weight = others
                fits = fits and weighed >= 0.0 and (weight == 1.0 if weighed == inf else 0.0 < weight < inf or weighed == 0.0)
            trust.must(fits, "a calibration slope that no rows give")
        if self.repeats is not None:
            self.repeats.check()


@function
def hold(race):  # type: ignore[no-untyped-def]
    """Make the slope 1 from now on."""
    race[SLOPE] = race[HELD] = 1.0


@function
def watch(watched, rows):  # type: ignore[no-untyped-def]
    """Hold the slope if the single row ``rows`` shows that a later pass has begun."""
    if watched is not None:
        known, race = watched
        if race[HELD] == 0.0 and comes_again(rows, 0, known):
            hold(race)


def refuse_race(engine: Engine, outputs: int, *, calibrated: bool, forgets: bool) -> None:
    """Raise ValueError for parts whose average and last iterate have no race."""
    loss, penalty, name = engine.problem.loss, engine.problem.penalty, engine.problem.name
    if not scores_means(engine):
        others = "'fiol', 'comid' or another average" if penalty.separable else "another average, e.g. 'weighted-t1'"
        raise ValueError(
            f"average {ADAPTIVE!r} needs rows scored by the average before each step, which {name} does not do here: "
            f"use {others}."
        )
    if calibrated and not can_calibrate(loss, outputs):
        raise ValueError(
            f"average {CALIBRATED!r} is for the losses logistic and softmax, and for squared with one output, got "
            f"{kebab(type(loss).__name__)!r} with {outputs}: use {ADAPTIVE!r}."
        )
    if calibrated and forgets:
        raise ValueError(f"average {CALIBRATED!r} has no form that forgets: use {ADAPTIVE!r}.")


def can_calibrate(loss: Any, outputs: int) -> bool:
    """Whether there is a calibration slope to learn for a loss and so many outputs: several numbers have no common one."""
    return type(loss) in (Logistic, Softmax) or (type(loss) is Squared and outputs == 1)


@function
def of_one(m, y, a):  # type: ignore[no-untyped-def]
    """The first and second derivative, in a, of the loss of a score m."""
    wrong = sigmoid(-y * a * m)
    return -wrong * y * m, wrong * (1.0 - wrong) * m * m


@function
def of_class(m, a, joint):  # type: ignore[no-untyped-def]
    """What the probability of a class of score m is proportional to, and the derivative of its logarithm in a."""
    if joint is not None:
        return exp(a * m), m
    q = sigmoid(a * m)
    return q, m * (1.0 - q)


@function
def of_classes(means, y, i, a, joint):  # type: ignore[no-untyped-def]
    """The first derivative, in a, of -log of the probability of row i's class, and the expected square of it."""
    total, first, second, own = 0.0, 0.0, 0.0, 0.0
    for k in range(y.shape[1]):
        p, slope = of_class(means[k, i], a, joint)
        total += p
        first += p * slope
        second += p * slope * slope
        if y[i, k] > 0.0:
            own = slope
    if not total > 0.0:
        return 0.0, 0.0
    return first / total - own, max(second / total - (first / total) * (first / total), 0.0)


@function
def derivatives(means, y, i, a, classes, joint):  # type: ignore[no-untyped-def]
    """The first and second derivative, in a, of the loss of row i."""
    if classes is None:
        return of_one(means[0, i], y[i, 0], a)
    return of_classes(means, y, i, a, joint)


@function
def learn_slope(means, y, s, i, classes, joint, race):  # type: ignore[no-untyped-def]
    """Learn a from row i, whose scores at a = 1 are ``means``."""
    a = race[SLOPE]
    g, h = derivatives(means, y, i, a, classes, joint)
    race[WEIGHED] += 1.0
    race[WEIGHT] += (s[i] - race[WEIGHT]) / race[WEIGHED]
    by = s[i] / race[WEIGHT]
    curved = race[CURVED] + by * h
    if curved < MOST:  # so it is a number
        race[CURVED] = curved
        race[SLOPE] = min(max(a - by * g / (curved + AT_FIRST), SMALLEST), LARGEST)


@function
def learn_ratio(m, y, s, race):  # type: ignore[no-untyped-def]
    """Learn a from a row's score at a = 1 and its number, both from the level on."""
    n, ratio, usual = race[COUNTED] + 1.0, race[RATIO], race[RESIDUAL]
    residual = y - ratio * m
    if usual > 0.0:
        residual = min(max(residual, -OUTLYING * sqrt(usual)), OUTLYING * sqrt(usual))
        usual += max(3.0 / (n + 2.0), 1.0 / MEMORY) * (residual * residual - usual)
    else:
        usual = residual * residual
    size = usual + m * m / WEIGHTIEST
    weight = s / size if size > TINIEST else 0.0
    curved = race[CURVED] * max(0.0, 1.0 - 3.0 / n) + weight * m * m
    if curved < MOST:  # so it is a number
        race[COUNTED], race[CURVED], race[RESIDUAL] = n, curved, usual
        if curved > 0.0:
            race[RATIO] = min(max(ratio + weight * m * residual / curved, 0.0), LARGEST_OF_NUMBERS)
        race[SLOPE] = max(1.0 + (race[RATIO] - 1.0) / (1.0 + ROWS_AT_FIRST / n), SMALLEST)


@function
def begin_anew(race, turned, numbers):  # type: ignore[no-untyped-def]
    """Forget the slope of numbers where the lead has turned."""
    if numbers is not None and turned:
        race[SLOPE] = race[RATIO] = 1.0
        race[CURVED] = race[COUNTED] = race[RESIDUAL] = 0.0


@function
def calibrate_number(means, linear_means, y, s, i, race, frame):  # type: ignore[no-untyped-def]
    """``calibrate`` of numbers; ``frame``: the level of row i and its range."""
    level, low, high = frame
    a = race[SLOPE]
    if s[i] > 0.0 and race[HELD] == 0.0:
        learn_ratio(means[0, i] - level, y[i, 0] - level, s[i], race)
    if a != 1.0:
        linear_means[0, i] = level + a * (linear_means[0, i] - level)
        means[0, i] = min(max(linear_means[0, i], low), high) if low <= high else linear_means[0, i]


@function
def calibrate(means, linear_means, y, s, i, race, frame, slope, classes, joint, numbers):  # type: ignore[no-untyped-def]
    """Multiply the scores of row i by a, which then learns from them, where there is one: ``Race.rules`` has the last four."""
    if numbers is not None:
        calibrate_number(means, linear_means, y, s, i, race, frame)
    elif slope is not None:
        a = race[SLOPE]
        if s[i] > 0.0 and race[HELD] == 0.0:
            learn_slope(means, y, s, i, classes, joint, race)
        for k in range(y.shape[1]):
            means[k, i] *= a
        if joint is not None:
            subtract_level(means, i)


@function
def compare_row(loss, scores, means, linear, linear_means, y, s, sums, i, t, rules, race, frame):  # type: ignore[no-untyped-def]
    """Add row i, before which there were t, to a race and to the sums of losses; see ``compare`` and ``calibrate``."""
    longest, slope, classes, joint, numbers = rules
    ahead = race[0] < race[1]
    last, mean, kept = 0.0, 0.0, remembered(min(t + 1.0, longest))
    for k in range(y.shape[1]):
        if s[i] > 0.0:
            own = s[i] * loss.value(scores[k, i], y[i, k])
            sums[k, 0], sums[k, 1] = summed(sums[k, 0], sums[k, 1], own)
            last += own
            mean += s[i] * loss.value(means[k, i], y[i, k])
        if ahead:
            means[k, i] = scores[k, i]
            linear_means[k, i] = linear[k, i]
    calibrate(means, linear_means, y, s, i, race, frame, slope, classes, joint, numbers)
    for k in range(y.shape[1]):
        add_loss(loss, means[k, i], y[i, k], s[i], race[2:PLAIN])
    if s[i] > 0.0:
        race[0], race[1] = bound(race[0] * kept + last), bound(race[1] * kept + mean)
        begin_anew(race, ahead != (race[0] < race[1]), numbers)


@function
def frame_of(levels, ranges, i):  # type: ignore[no-untyped-def]
    """The level that the score of row i counts from, and the range to which it is clipped; of numbers alone."""
    if levels is None:
        return None
    if ranges is None:
        return levels[i], -inf, inf
    return levels[i], ranges[0, i, 0], ranges[1, i, 0]


@lean_kernel
def compare(loss, scores, means, linear, linear_means, y, s, sums, t, rules, race, levels, ranges):  # type: ignore[no-untyped-def]
    """Add rows to a race, and their losses to the sums of the last iterate's (K, 2), compensated; scores and means, clipped and
    linear, are (K, n), y is (n, K), t rows came before.

    The sums forget: what is older counts less by 1 - 3/t a row, where t is at most the longest of ``rules``. A row's means
    become the scores of what predicted it, in both forms.
    """
    scores, means, linear, linear_means = borrowed((scores, means, linear, linear_means))
    y, s, sums, race = borrowed((y, s, sums, race))
    for i in range(y.shape[0]):
        frame = frame_of(levels, ranges, i)
        compare_row(loss, scores, means, linear, linear_means, y, s, sums, i, t + i, rules, race, frame)
