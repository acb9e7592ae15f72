r"""A pass of implicit steps whose mean is the full gradient step, over the rows of one shard (MATH 20.7).

From a centre (w_0, b_0) with the gradient g of the mean loss over the rows of all shards, with a constant step eta,

    theta = l'(score after the step) - l'(score of the centre),
    w <- prox_{eta r}(w - eta s theta x - eta g),   b <- b - eta (s theta + g_b)

At the optimum theta is 0 for every row, and -g is a subgradient of r: no shard moves. A column that rows do not touch obeys
w <- prox_{eta r}(w - eta g_j). ``idle`` gives many such steps at once.
"""

from __future__ import annotations

from math import exp, expm1, isfinite, log1p
from typing import NamedTuple

import numpy as np

from onlinear.certified.newton import Strengths
from onlinear.compiled import function, kernel
from onlinear.penalties import soft


class Snapshot(NamedTuple):
    """The centre of a pass, and the gradient of the mean loss there."""

    w: np.ndarray
    b: float
    g: np.ndarray
    g_b: float


class Step(NamedTuple):
    """What all steps of a pass have in common."""

    strengths: Strengths
    eta: float
    one: float  # the intercept's feature: 0 without one


@function
def idle_step(w, g, eta, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """prox_{eta r}(w - eta g)."""
    return min(max(soft(w - eta * g, eta * l1) / (1.0 + eta * l2), lower), upper)


@function
def idle(w, steps, g, eta, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """``steps`` idle steps at once. On either side of 0 they are one linear recursion, |w| <- (|w| - a) / (1 + eta l2), while
    |w| > a; the step that meets 0 is taken as it is, so its place is exact. Bounds stop a path that goes one way."""
    if steps > 0:  # a row may have left the bounds
        w = idle_step(w, g, eta, l1, l2, lower, upper)
        steps -= 1
    while steps > 0 and isfinite(w) and not (w == 0.0 and abs(g) <= l1):
        sign = 1.0 if w > 0.0 or (w == 0.0 and g < 0.0) else -1.0
        size, a, count = sign * w, eta * (sign * g + l1), float(steps)
        decay = log1p(eta * l2)
        if a > 0.0:
            if size <= a:
                count = 0.0
            elif decay > 0.0:
                count = min(count, np.ceil(log1p((size - a) / (a + a / (eta * l2))) / decay))
            else:
                count = min(count, np.ceil(size / a) - 1.0)
        if count > 0.0:
            if decay > 0.0:
                size = size * exp(-count * decay) + expm1(-count * decay) * (a / (eta * l2))
            else:
                size -= count * a
            w = sign * max(size, 0.0)
            steps -= np.int64(count)
        if steps > 0:
            w = idle_step(w, g, eta, l1, l2, lower, upper)
            steps -= 1
    return min(max(w, lower), upper)


@kernel
def correct_rows(loss, rows, y, s, step, snapshot, w, last, now):  # type: ignore[no-untyped-def]
    """Make the steps of rows. ``last``: the steps that each weight has had; ``now``: steps and intercept so far."""
    starts, columns, values = rows
    (l1, l2, lower, upper), eta, one = step
    w0, b0, g, g_b = snapshot
    t, b = np.int64(now[0]), now[1]
    for i in range(y.shape[0]):
        a, centre, square = b, b0, one
        for k in range(starts[i], starts[i + 1]):
            j, x = columns[k], np.float64(values[k])
            w[j] = idle(w[j], t - last[j], g[j], eta, l1, l2, lower, upper)
            last[j] = t
            a += w[j] * x
            centre += w0[j] * x
            square += x * x
        theta = 0.0
        if s[i] > 0.0:
            c = eta * s[i] * square
            slope = loss.slope(centre, y[i])
            theta = s[i] * (loss.theta(a + c * slope, c, y[i]) - slope)
        for k in range(starts[i], starts[i + 1]):
            w[columns[k]] -= eta * theta * values[k]
        b -= eta * (theta + g_b) * one
        t += 1
    now[0], now[1] = t, b


@kernel
def settle(step, g, w, last, now):  # type: ignore[no-untyped-def]
    """Make the idle steps that weights still lack."""
    (l1, l2, lower, upper), eta, _ = step
    t = np.int64(now[0])
    for j in range(w.shape[0]):
        w[j] = idle(w[j], t - last[j], g[j], eta, l1, l2, lower, upper)
        last[j] = t


class Pass:
    """A pass over the rows of a shard, of one output, in the columns in which the penalty acts."""

    def __init__(
        self, strengths: Strengths, fit_intercept: bool, eta: float, w: np.ndarray, b: float, g: np.ndarray, g_b: float
    ) -> None:
        self.step = Step(strengths, eta, float(fit_intercept))
        self.snapshot = Snapshot(np.ascontiguousarray(w), float(b), np.ascontiguousarray(g), float(g_b))
        self.w, self.last, self.now = self.snapshot.w.copy(), np.zeros(len(w), np.int64), np.array([0.0, b])

    def add(self, loss: object, rows: object, y: np.ndarray, s: np.ndarray) -> None:
        """Make the steps of rows, in order, with targets and what multiplies their losses, (n,)."""
        correct_rows(loss, rows, y, s, self.step, self.snapshot, self.w, self.last, self.now)

    def end(self) -> tuple[np.ndarray, float]:
        """The weights and the intercept after all rows."""
        settle(self.step, self.snapshot.g, self.w, self.last, self.now)
        return self.w, float(self.now[1])
