r"""The softmax loss of a row's K scores, once: probabilities, value, slope and the implicit step.

    l(z, y) = log(sum_k exp(z_k)) - z_y,        p_k = exp(z_k) / sum_i exp(z_i)                              (MATH 19)

Scores enter ``value`` and ``slope`` as log-probabilities, log p_k: the loss is then a sum over the outputs, and what adds
losses up, output by output, needs to know nothing of it. The implicit step on one row with sizes C_k is

    theta_k = p_k(z) - 1[k = y],        z_k = a_k - C_k theta_k.

With b_k = a_k + C_k 1[k = y] and L = log(sum_k exp(z_k)) each p_k is omega(b_k - L + log C_k) / C_k, with Wright's omega, and L
is the one root of

    phi(L) = sum_k omega(b_k - L + log C_k) / C_k - 1,                                                        (MATH 19.1)

which is convex and decreasing: from any L with phi(L) > 0 Newton's iterates rise to it, and from any other the first of them
is such an L. Where C of the row's class is above ``LARGE``, phi is all rounding near the root; there L is the root of

    L + log(1 - q) - a_y - C_y q,      q = sum of the p_k of the other classes.

Source: section 19 of the mathematical reference.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log, log1p, nan
from typing import NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, kernel
from onlinear.losses import FIELDS, METHODS, Logistic, nearer_omega, wright_omega
from onlinear.text.describe import describe

SCORE, START, STEP_SIZE, THETA, LOG, ROWS = range(6)  # of the numbers of a row's outputs: z before the step, a, C, theta, log C
NEAR, EXACT = 0.5, 0.01  # how far from an argument of omega one step finds its next value, and finds it exactly
NEGLIGIBLE = -30.0  # the argument below which omega is exp
SMALL = 1e-8  # C below which C p is too small a number for p to follow from it
LARGE = 1e9  # C above which the probability of the row's class, near 1, does not say where its score is
CLOSE = 1e-8
ROUNDING = 1e-15
MOST_STEPS = 100


def log_probabilities(z: np.ndarray, axis: int) -> np.ndarray:
    """log p_k of scores z whose outputs are along ``axis``; the result has the shape of z."""
    found = np.array(np.swapaxes(z, 0, axis), dtype=np.float64, order="C")
    subtract_levels(found.reshape(len(found), -1))  # a view
    return found.swapaxes(0, axis)


class Softmax(NamedTuple):
    """The softmax loss l = log(sum_k exp(z_k)) - z_y of all the scores z of a row, with y the place of its class.

    ``value`` and ``slope`` take log p_k for s; the loss of a row is the sum of the outputs' values.

    References
    ----------
    Bridle: Probabilistic interpretation of feedforward classification network outputs. Neurocomputing, Springer, 1990.
    """

    factor: float = 1.0
    labels = "signs"
    joint = True
    vanishing = True

    def value(self, s: float, y: float) -> float:
        """-log p of the row's class; 0 for the others."""
        return -s if y > 0.0 else 0.0

    def slope(self, s: float, y: float) -> float:
        """p - 1 for the row's class, p for the others."""
        return exp(s) - 1.0 if y > 0.0 else exp(s)

    def log_probabilities(self, z: np.ndarray, axis: int) -> np.ndarray:
        """log p_k of scores z whose outputs are along ``axis``; the result has the shape of z."""
        return log_probabilities(z, axis)

    def probability(self, s: np.ndarray) -> np.ndarray:
        """P(y = k) = p_k; the outputs are along the last axis."""
        return np.exp(self.log_probabilities(s, -1))

    def of_two(self) -> Logistic:
        """The loss of a single output that tells two classes apart: the softmax of the scores 0 and s."""
        return Logistic(self.factor)


@function
def find_thetas(numbers, outputs, own):  # type: ignore[no-untyped-def]
    """Fill row THETA of a row's numbers (ROWS, outputs at least) from START and STEP_SIZE, for the class ``own``."""
    level, least = first_level(numbers, outputs, own)
    for k in range(outputs):
        c = numbers[STEP_SIZE, k]
        same = k > 0 and c == numbers[STEP_SIZE, k - 1]
        numbers[LOG, k] = numbers[LOG, k - 1] if same else (log(c) if c > 0.0 else 0.0)
    change = inf  # of the arguments of omega since its last values
    far = level_far_off(numbers, outputs, own, least) if numbers[STEP_SIZE, own] > LARGE else nan
    if isfinite(far):
        level = far
    for _ in range(0 if isfinite(far) else MOST_STEPS):
        phi, fall = -1.0, 0.0
        for k in range(outputs):
            p, slope = share(numbers, k, own, level, change)
            phi += p
            fall += slope
        if fall == 0.0:
            break
        new, before = max(level + phi / fall, least), abs(change)
        change, level = level - new, new
        if abs(change) <= CLOSE and (before <= EXACT or before > NEAR):  # a step of h leaves an error below h^2 / 2
            break
    others = 0.0
    for k in range(outputs):
        p = share(numbers, k, own, level, change)[0]
        numbers[THETA, k] = p
        others += p if k != own else 0.0
    numbers[THETA, own] = -others


@function
def level_far_off(numbers, outputs, own, level):  # type: ignore[no-untyped-def]
    """L where C of the row's class is so large that its p, near 1, does not tell z; from a bound below L. NaN where p is small.

    With q = sum of the other p it is the root of L + log(1 - q) - a - C q, which is concave and rises."""
    a, c, left = numbers[START, own], numbers[STEP_SIZE, own], False
    for _ in range(MOST_STEPS):
        q, fall = 0.0, 0.0
        for k in range(outputs):
            if k != own:
                p, slope = share(numbers, k, own, level, inf)
                q += p
                fall += slope
        if q > 0.6 and not left:
            level += (q - 0.5) / fall
            continue
        ahead, rounding = a + c * q - (level + log1p(-q)), ROUNDING * (1.0 + abs(a) + abs(level))
        if ahead < -rounding and not left:
            return nan
        left, slope = True, 1.0 + fall * (c + 1.0 / (1.0 - q))
        level += ahead / slope
        if abs(ahead) <= CLOSE * slope + rounding:
            break
    return level


@function
def share(numbers, k, own, level, change):  # type: ignore[no-untyped-def]
    """p = omega(x) / C of class k, with x = b - L + log C, and -dp/dL. Row THETA keeps omega; x changed by ``change``."""
    c = numbers[STEP_SIZE, k]
    b = numbers[START, k] + (c if k == own else 0.0)
    if c == 0.0:
        p = exp(b - level)
        return p, p
    x, w = b - level + numbers[LOG, k], numbers[THETA, k]
    w = wright_omega(x) if x < NEGLIGIBLE or abs(change) > NEAR else nearer_omega(w + w / (1.0 + w) * change, x)
    numbers[THETA, k] = w
    p = w / c if c > SMALL else exp(b - level - w)
    return p, p / (1.0 + w)


@function
def first_level(numbers, outputs, own):  # type: ignore[no-untyped-def]
    """Where to look for L first: the level of the scores that one step of Newton from a gives; and a bound below L."""
    here, least = log_sum(numbers, START, outputs), numbers[START, own]
    for k in range(outputs):
        a, c = numbers[START, k], numbers[STEP_SIZE, k]
        p = exp(a - here)
        numbers[THETA, k] = a - c * (p - 1.0 if k == own else p) / (1.0 + c * p)
        if k != own:
            least = max(least, a - c)
    return max(log_sum(numbers, THETA, outputs), least), least


@function
def log_sum(numbers, row, outputs):  # type: ignore[no-untyped-def]
    """log sum_k exp of a row of numbers."""
    top, total = numbers[row, 0], 0.0
    for k in range(1, outputs):
        top = max(top, numbers[row, k])
    for k in range(outputs):
        total += exp(numbers[row, k] - top)
    return top + log(total)


@function
def subtract_level(scores, i):  # type: ignore[no-untyped-def]
    """Turn column i of scores (outputs, n) into log-probabilities; its bits are its own, whatever stands beside it."""
    best, others = 0, 0.0
    for k in range(1, scores.shape[0]):
        if scores[k, i] > scores[best, i]:
            best = k
    top = scores[best, i]
    for k in range(scores.shape[0]):
        scores[k, i] -= top
        others += exp(scores[k, i]) if k != best else 0.0
    level = log1p(others)
    for k in range(scores.shape[0]):
        scores[k, i] -= level


@function
def copy_logs(scores, found):  # type: ignore[no-untyped-def]
    """Fill ``found`` (outputs, 1) with the log-probabilities of a row's scores."""
    for k in range(scores.shape[0]):
        found[k, 0] = scores[k, 0]
    subtract_level(found, 0)


@kernel
def subtract_levels(scores):  # type: ignore[no-untyped-def]
    """Turn scores (outputs, n) into log-probabilities."""
    for i in range(scores.shape[1]):
        subtract_level(scores, i)


describe(Softmax, FIELDS, METHODS)
adopt(Softmax)
