r"""Dual coordinate ascent with the loss's implicit step, and a memory of each row's slope (MATH 20.4).

    a = <w, x_i> + b,   C = s_i |x_i|^2 / (n sigma),   theta_i <- theta(a + C theta_i, C, y_i),   v <- v - s_i (change) x_i / n
    w_j = clip(soft(v_j + k c_j, l1) / sigma, lower, upper),   v = -(1/n) X'(s theta),   sigma = l2 + k

It is the implicit step of FIOL, from the score without the row's own last step: theta solves theta in dl(a' - C theta),
a' the score with the row's memory taken out. Where l2 is small or 0, and for the intercept, it runs inside proximal steps
(k/2) |w - c|^2 about the last round's weights c. Rows whose theta did not move in an epoch over all rows rest until the next.

Source: Shalev-Shwartz, Zhang, JMLR 14 (2013), 567-599; Hsieh et al., ICML 2008 (resting rows).
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.balance import balanced
from onlinear.certified.columns import Stored, pull_back, score_table
from onlinear.certified.gap import Gap, dual_value
from onlinear.certified.newton import Limits, PassReport, Solution, Strengths, Tell, penalised, strengths_of
from onlinear.certified.passes import lowest_mean
from onlinear.certified.prox_newton import slopes_at, value_along
from onlinear.compiled import bind_loss, function, kernel
from onlinear.penalties import soft

ROUND, MOST = 10, 200  # epochs over the rows that move, between two over all: at least, and at most
PROXIMAL = 0.5  # k where l2 is less: this times the mean square of a row, by the number of rows


class Dual(NamedTuple):
    """Where the ascent stands, and what it knows of the rows."""

    y: np.ndarray
    s: np.ndarray
    squares: np.ndarray  # |x_i|^2
    theta: np.ndarray
    v: np.ndarray
    centre: np.ndarray  # c
    penalty: Strengths
    k: float
    bias: np.ndarray  # v_0, c_0 and k_0, which is 0 without an intercept


@function
def weight_of(v, c, penalty, k):  # type: ignore[no-untyped-def]
    """w_j of v_j and c_j."""
    l1, l2, lower, upper = penalty
    return min(max(soft(v + k * c, l1) / (l2 + k), lower), upper)


@kernel
def ascend(loss, rows, dual, order, mark):  # type: ignore[no-untyped-def]
    """One epoch over the rows of ``order``; how many thetas moved. mark[i] is whether theta_i did."""
    starts, places, values = rows
    y, s, squares, theta, v, centre, penalty, k, bias = dual
    n, sigma = y.shape[0], penalty[1] + k
    v0, c0, k0 = bias
    moved = 0
    for i in order:
        a = v0 / k0 + c0 if k0 > 0.0 else 0.0
        for e in range(starts[i], starts[i + 1]):
            j = places[e]
            a += weight_of(v[j], centre[j], penalty, k) * values[e]
        c = s[i] * (squares[i] / sigma + (1.0 / k0 if k0 > 0.0 else 0.0)) / n
        new = loss.theta(a + c * theta[i], c, y[i]) if c > 0.0 else theta[i]
        change = s[i] * (new - theta[i]) / n
        mark[i] = change != 0.0
        moved += change != 0.0
        theta[i] = new
        if change != 0.0:
            v0 -= change
            for e in range(starts[i], starts[i + 1]):
                v[places[e]] -= change * values[e]
    bias[0] = v0
    return moved


class Ascent:
    """One run: theta, v, the proximal centre, and the best weights and bound so far."""

    def __init__(
        self, stored: Stored, width: int, loss: Any, penalty: Any, y: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        self.stored, self.rows, self.loss, self.penalty = stored, stored.rows, loss, penalty
        self.y, self.s, self.fit_intercept, self.bound_loss = y, s, fit_intercept, bind_loss(loss)
        self.strengths = strengths_of(penalty)
        self.lowest, self.bound, self.best = lowest_mean(loss, y, s), -inf, inf
        self.squares = np.zeros(len(y))
        square_rows(stored.rows.starts, stored.rows.values, self.squares)
        size = max(float(self.s @ self.squares) / max(float(self.s.sum()), 1e-300), 1e-300)
        natural = PROXIMAL * size * max(float(s.mean()), 1e-300) / len(y)
        self.k = 0.0 if penalty.l2 >= natural else natural
        k0 = max(float(penalty.l2) + self.k, natural) / size if fit_intercept else 0.0
        self.bias = np.array([0.0, 0.0, k0])
        self.centre, self.v, self.theta = np.zeros(width), np.zeros(width), np.zeros(len(y))

    def solve(self, w: np.ndarray, b: float, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on from w (d,) and b until the gap is small enough or the passes are used up."""
        self.begin(w, b)
        draw, n = np.random.default_rng(0), len(self.y)
        mark, passes, rounds = np.zeros(n, np.bool_), 1.0, 0
        gap, moving = self.certify(), 0
        while gap.relative > limits.tol and passes < limits.passes and np.isfinite(gap.objective):
            moving = self.epoch(draw.permutation(n), mark)
            passes += 2.0
            active = np.flatnonzero(mark)
            for _ in range(self.epochs(len(active))):
                if passes >= limits.passes:
                    break
                self.epoch(draw.permutation(active), mark)
                passes += len(active) / n
            gap, rounds = self.certify(), rounds + 1
            if tell is not None and tell(PassReport(gap, int(np.ceil(passes)), int(np.count_nonzero(self.w)), int(moving))):
                break
            self.recentre()
        return Solution(self.w, self.b, self.theta, gap, rounds, int(np.ceil(passes)))

    def epochs(self, active: int) -> int:
        """Epochs over the rows that move: as many as one over all rows costs, and at least ROUND where there are fewer."""
        n = len(self.y)
        return 0 if active == 0 else 2 if active == n else min(MOST, max(ROUND, n // active))

    def begin(self, w: np.ndarray, b: float) -> None:
        """Take the slopes at w and b as theta, and both as the proximal centre."""
        scores = np.zeros(len(self.y))
        score_table(*self.rows, w, scores)
        self.w, self.b = w.copy(), b
        if self.fit_intercept:
            self.b, self.theta = balanced(self.loss, scores, self.y, self.s, b)
        else:
            slopes_at(self.loss, scores, self.y, self.s, b, self.theta)
        b = self.b
        pull_back(*self.rows, -self.s * self.theta / len(self.y), self.v)
        self.centre[:], self.bias[:2] = w, (-float(self.s @ self.theta) / len(self.y), b)

    def epoch(self, order: np.ndarray, mark: np.ndarray) -> int:
        """One epoch over some rows; the number of thetas that moved."""
        dual = Dual(self.y, self.s, self.squares, self.theta, self.v, self.centre, self.strengths, self.k, self.bias)
        return int(ascend(self.bound_loss, self.rows, dual, order, mark))

    def weights(self) -> np.ndarray:
        """w of v and the centre."""
        l1, l2, lower, upper = self.strengths
        u = self.v + self.k * self.centre
        return np.clip(np.copysign(np.maximum(np.abs(u) - l1, 0.0), u) / (l2 + self.k) + 0.0, lower, upper)

    def certify(self) -> Gap:
        """The gap of the best weights so far, with the slopes in memory."""
        w, scores, n = self.weights(), np.zeros(len(self.y)), len(self.y)
        score_table(*self.rows, w, scores)
        b = balanced(self.loss, scores, self.y, self.s, self.b)[0] if self.fit_intercept else 0.0
        value = float(value_along(self.loss, scores + b, scores, 0.0, self.y, self.s)) + penalised(self.strengths, w)
        if value < self.best:
            self.best, self.w, self.b = value, w, b
        theta = self.balance_signs()
        g = np.zeros(len(w))
        pull_back(*self.rows, self.s * theta / n, g)
        self.bound = max(self.bound, dual_value(self.loss, self.penalty, theta, self.y, self.s, g, self.lowest))
        return Gap(self.best, self.bound, self.lowest)

    def balance_signs(self) -> np.ndarray:
        """theta, those of one sign shrunk until all sum to 0 where there is an intercept."""
        if not self.fit_intercept:
            return self.theta
        pulls = self.s * self.theta
        up, down = float(pulls[pulls > 0.0].sum()), -float(pulls[pulls < 0.0].sum())
        shrink = (min(1.0, down / up) if up > 0.0 else 0.0), (min(1.0, up / down) if down > 0.0 else 0.0)
        return self.theta * np.where(self.theta > 0.0, *shrink)

    def recentre(self) -> None:
        """Move the proximal centre to where the run stands."""
        if self.bias[2] > 0.0:
            self.bias[1] += self.bias[0] / self.bias[2]
        if self.k > 0.0:
            self.centre[:] = self.weights()


@kernel
def square_rows(starts, values, out):  # type: ignore[no-untyped-def]
    """out_i = |x_i|^2."""
    for i in range(starts.shape[0] - 1):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += values[e] * values[e]
        out[i] = total
