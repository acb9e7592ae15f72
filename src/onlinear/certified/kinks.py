r"""Proximal steps in the slopes, for losses with kinks: a stored problem of any penalty to a certified gap (MATH 20.8).

    theta <- argmax D(theta) - (mu / 2n) sum_i s_i (theta_i - t_i)^2,   t <- theta

is the problem whose losses are max_theta a theta - l*(theta) - (mu/2)(theta - t_i)^2. They are smooth; at score a their slope
is the implicit step of the online methods, from the score with the row's last slope in it, theta(a + mu t_i, mu, y_i). So
prox-Newton solves it: rows at a kink have curvature 1/mu, others none. Every theta certifies the loss itself, and mu falls.
For piecewise linear losses the slopes that are strictly between settle after finitely many steps.

Source: Rockafellar, Math. Oper. Res. 1, 1976 (the method of multipliers as proximal steps of the dual).
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.balance import balanced
from onlinear.certified.columns import Stored
from onlinear.certified.gap import Gap, dual_value, weighted_slopes
from onlinear.certified.newton import Limits, PassReport, Solution, Strengths, Tell, near, penalised
from onlinear.certified.passes import sum_conjugates
from onlinear.certified.prox_newton import ProxNewton, slopes_at, square_columns, value_along
from onlinear.compiled import adopt, bind_loss

FIRST = 2.0  # mu of the first step, in mean losses to a mean squared slope
SMALLER = 0.3  # mu of each step to that before
INNER, LAST = 0.2, 0.3  # the gap of a step, relative to the certified one, and the least, relative to tol
EASY, HELD = 8, 0.3  # mu stays after a step of more iterations that brings the gap to so much of what it was
MOST = 20  # iterations of a step
DAMPED = 0.05  # curvatures of the first model, and of columns without, to the largest
CAREFUL, FARTHER = 3, 0.25  # steps in a row where all rows are flat, after which the curvatures of each are so much less
CLOSE = 0.5  # a gap at which weights and slopes of another method are a start
NEAR = 1e-3  # of mu: between what scores a slope is differentiated


class Envelope(NamedTuple):
    """min_s l(s) + (a - s)^2 / (2 mu) = max_theta a theta - l*(theta) - mu theta^2 / 2, of a loss by address."""

    loss: Any
    mu: float

    def value(self, a: float, y: float) -> float:
        """l(a - mu theta) + mu theta^2 / 2."""
        theta = self.loss.theta(a, self.mu, y)
        return self.loss.value(a - self.mu * theta, y) + 0.5 * self.mu * theta * theta

    def slope(self, a: float, y: float) -> float:
        """theta(a, mu, y)."""
        return self.loss.theta(a, self.mu, y)

    def curvature(self, a: float, y: float) -> float:
        """The change of theta about a."""
        off = NEAR * self.mu
        return (self.loss.theta(a + off, self.mu, y) - self.loss.theta(a - off, self.mu, y)) / (2.0 * off)


adopt(Envelope)


class Kinked(ProxNewton):
    """One run: prox-Newton's, of smooth losses that change from step to step, and the best weights and bound of the loss."""

    floor = 0.0  # rows without curvature cost nothing
    patience, hedges, samples = inf, True, False

    def __init__(
        self, stored: Stored, width: int, loss: Any, penalty: Any, y: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        super().__init__(stored, width, loss, penalty, y, s, fit_intercept)
        self.kinked, self.by_address = loss, bind_loss(loss)
        self.shift, self.best, self.certified = np.zeros(len(y)), (np.zeros(width), 0.0), Gap(inf, -inf, self.lowest)
        self.flats = 0  # steps in a row where all rows are flat

    def solve(self, w: np.ndarray, b: float, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on from w (d,) and b until the gap is small enough or the passes are used up."""
        return self.steps_from(self.begin(w, b), limits, tell)

    def go_on(self, found: Solution, w: np.ndarray, b: float, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on after another method: from its weights and slopes, or where these are far from the optimum, from w and b."""
        close = found.gap.relative <= CLOSE
        mu = self.begin(found.w, found.b) if close else self.begin(w, b)
        if close:
            self.theta, self.shift = found.theta, mu * found.theta
        objective, bound, lowest = self.certified
        if found.gap.objective < objective:
            objective, self.best = found.gap.objective, (found.w, found.b)
        self.certified = Gap(objective, max(bound, found.gap.bound), lowest)
        return self.steps_from(mu, limits, tell)

    def steps_from(self, mu: float, limits: Limits, tell: Tell | None) -> Solution:
        """Make proximal steps, the first with so much mu."""
        passes, stopped = 1, False

        def told(report: PassReport) -> bool:
            nonlocal stopped
            done = self.holds(limits.tol)
            now = PassReport(self.certified, passes + report.passes, report.nonzeros, report.working)
            stopped = tell is not None and tell(now)
            return stopped or done

        while not self.holds(limits.tol) and passes < limits.passes and not stopped:
            self.loss, self.bound, self.accuracy, self.steps = Envelope(self.by_address, mu), -inf, 1.0, 0
            self.early, self.damping = passes == 1, DAMPED if passes == 1 else 0.0
            enough = max(INNER * min(1.0, self.certified.relative), LAST * limits.tol)
            most = min(MOST, limits.passes - passes)
            before = self.certified.relative
            found = super().solve(self.w, self.b, Limits(enough, most), told)
            if not np.isfinite(found.gap.objective):
                break
            passes += found.passes
            held = found.passes > EASY and self.certified.relative <= HELD * before
            mu *= SMALLER if found.gap.relative <= enough and not held else 1.0
            self.shift = mu * self.theta
        self.score_best()
        return Solution(*self.best, self.theta, self.certified, passes, passes)

    def holds(self, tol: float) -> bool:
        """Whether the best weights are certified to so much. They are scored afresh: scores that follow steps sum roundings."""
        if self.certified.relative <= tol:
            self.score_best()
        return self.certified.relative <= tol

    def score_best(self) -> None:
        """Score the best weights as they are."""
        (w, b), scores = self.best, np.zeros(len(self.y))
        self.products.scores(w, scores)
        mean = float(value_along(self.by_address, scores + b, scores, 0.0, self.y, self.s))
        self.certified = self.certified._replace(objective=mean + penalised(self.strengths, w))

    def begin(self, w: np.ndarray, b: float) -> float:
        """Certify the start by the slopes there; give the first mu."""
        super().stand(w, b)
        if self.fit_intercept:
            self.b, self.theta = balanced(self.kinked, self.scores, self.y, self.s, b)
        else:
            slopes_at(self.by_address, self.scores, self.y, self.s, b, self.theta)
        self.products.pulls(weighted_slopes(self.s, self.theta) / len(self.y), self.g)
        mean = self.judge(self.scores + self.b)
        steepness = float(np.mean(weighted_slopes(self.s, self.theta * self.theta)))
        return FIRST * mean / steepness if steepness > 0.0 and mean > 0.0 else 1.0

    def stand(self, w: np.ndarray, b: float) -> None:
        """Go to w and b; scores hold the slopes of the last step."""
        super().stand(w, b)
        self.scores += self.shift

    def judge(self, scores: np.ndarray) -> float:
        """Certify the loss itself at the weights and slopes; give its mean."""
        mean = float(value_along(self.by_address, scores, scores, 0.0, self.y, self.s))
        value, (best, bound, lowest) = mean + penalised(self.strengths, self.w), self.certified
        if value < best:
            best, self.best = value, (self.w.copy(), self.b)
        found = dual_value(self.kinked, self.penalty, self.theta, self.y, self.s, self.g, lowest)
        self.certified = Gap(best, max(bound, found), lowest)
        return mean

    def certify(self) -> Gap:
        """The gap of the step's problem, in units of the certified one."""
        self.look()
        self.judge(self.scores - self.shift + self.b)
        c, n = self.penalty.reach(-self.g), len(self.y)
        theta = c * self.theta
        kept = 0.5 * self.loss.mu * theta * theta - self.shift * theta
        lost = float(sum_conjugates(self.kinked, self.theta, self.y, self.s, c) + weighted_slopes(self.s, kept).sum()) / n
        self.bound = max(self.bound, -lost - float(self.penalty.conjugate(-c * self.g)))
        value = self.mean + penalised(self.strengths, self.w)
        return Gap(value, self.bound, value - (self.certified.objective - self.lowest))

    def curvatures(self, W: np.ndarray) -> np.ndarray:
        """Those of the rows, damped where they are of columns that are to leave 0 or a bound and have no curvature. Where all
        rows are flat, so are those of all columns, by the largest curvature that a row can have, and less where they stay
        flat."""
        h, columns, diagonal = super().curvatures(W), self.stored.columns, np.zeros(len(W))
        steepest = float(self.h.max(initial=0.0))
        flat = steepest == 0.0
        self.flats = self.flats + 1 if flat else 0
        if flat:
            steepest = float(self.s.max(initial=0.0)) / (self.loss.mu * len(self.y)) * FARTHER ** max(0, self.flats - CAREFUL)
        square_columns(*columns, W, h, diagonal)
        for j in W[(diagonal == 0.0) & ((self.w[W] == 0.0) | self.leaves_bound(W) | flat)]:
            rows = columns.places[columns.starts[j] : columns.starts[j + 1]]
            h[rows] = np.maximum(h[rows], DAMPED * steepest * (self.s[rows] > 0.0))
        return h

    def leaves_bound(self, W: np.ndarray) -> np.ndarray:
        """Which weights are at a bound and F falls towards the inside."""
        l1, l2, lower, upper = self.strengths
        w = self.w[W]
        slope = self.g[W] + l2 * w + np.copysign(l1, w)
        return (w == upper) & (slope > 0.0) | (w == lower) & (slope < 0.0)

    def near(self) -> Strengths:
        """l1, l2, and bounds beyond which rows that are flat now are not."""
        return near(self.strengths, self.w)
