r"""Prox-Newton for outputs that softmax joins: the optimum of a stored problem to a certified relative gap.

    F(W, b) = (1/n) sum_i s_i l(W x_i + b, y_i) + sum_k r(w_k),   l(z, y) = log(sum_k exp(z_k)) - z_y

The model of a step has the curvatures of all classes together, q_i (diag(p_i) - p_i p_i'), so that it is as near to F as that
of a single output. One number added to a column's weights of all classes leaves the loss as it is: after each step the weights
stand where r is least. The certificate is that of 20.9 of ``docs/mathematics.md``.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from onlinear.certified.columns import Stored
from onlinear.certified.conjugate import Map, newton_step
from onlinear.certified.costs import Costs
from onlinear.certified.curvatures import gram
from onlinear.certified.descent import Subproblem, descend
from onlinear.certified.gap import Gap
from onlinear.certified.joint_balance import balanced, one_hot, probabilities
from onlinear.certified.joint_gap import JointSums, conjugates_of, joint_dual_value
from onlinear.certified.joint_models import SAFE, ByClasses, ClassBlocks, Coordinates, gram_of_classes, square_classes
from onlinear.certified.joint_products import Products
from onlinear.certified.models import FACTORED, SOLVED, TINY, ByGram
from onlinear.certified.newton import SEARCHES, Newton, Strengths, penalised
from onlinear.compiled import kernel
from onlinear.losses import weighted
from onlinear.softmax import subtract_level

FLAT = 1e-12  # of the curvatures of a row
LARGEST = 0.25  # curvature of the loss in one score
CUTS = 8  # steps that are cut before a start is left
SHORT = 15  # steps of conjugate gradients that are never too many
DEARER = 2.5  # an entry of a column, which has numbers of its row for a class and for all, to one of a single output


class JointNewton(Newton):
    """One run of all outputs. ``w``: the weights class by class, (K d,); ``b``: (K,); ``own``: the class of each row."""

    patience = CUTS

    def __init__(
        self, stored: Stored, width: int, outputs: int, penalty: Any, own: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        super().__init__(stored, width, penalty, s, fit_intercept)
        self.outputs, self.own, self.q = outputs, own, s / len(own)
        self.here = np.ascontiguousarray(one_hot(own, outputs).T)
        self.products = Products(stored, width, fit_intercept)
        self.costs = Costs(stored)
        self.p, self.slopes = np.zeros((outputs, len(own))), np.zeros((outputs, 0))  # probabilities, and X' theta
        self.slow = False  # whether conjugate gradients have taken more steps than a matrix of one class costs

    @cached_property
    def of_classes(self) -> np.ndarray | None:
        """The sums of the rows of each class, times their weights, where there is an intercept."""
        return self.products.pulls(self.here * self.s)[:, : self.width] if self.fit_intercept else None

    def by_class(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Weights and intercepts with a row for each class, as ``Products`` takes them."""
        found = w.reshape(self.outputs, self.width)
        return np.column_stack([found, b]) if self.fit_intercept else found

    def stand(self, w: np.ndarray, b: np.ndarray) -> None:
        self.w, self.b, self.scores = w.copy(), b.copy(), self.products.scores(self.by_class(w, 0.0 * b))

    def certify(self) -> Gap:
        if self.fit_intercept:
            levels, p = balanced((self.scores + self.b[:, None]).T, self.own, self.s)
            self.b = self.b + levels
        else:
            p = probabilities((self.scores + self.b[:, None]).T)
        self.p = np.ascontiguousarray(p.T)
        self.theta = (self.p - self.here) * self.s
        self.mean = self.mean_along(self.scores, 0.0)
        self.slopes = self.products.pulls(self.theta)
        pulls = self.slopes[:, : self.width]
        self.g = pulls.ravel() / len(self.own)
        sums = JointSums(len(self.own), pulls, self.of_classes, self.theta.sum(axis=1), self.here @ self.s)
        found = joint_dual_value(self.penalty, sums, None, lambda c: conjugates_of(p, self.own, self.s, c))
        self.bound = max(self.bound, 0.0, found)
        return Gap(self.mean + penalised(self.strengths, self.w), self.bound)

    def mean_along(self, moves: np.ndarray, t: float) -> float:
        return float(joint_mean(self.scores, self.b, moves, t, self.own, self.q, np.empty((self.outputs, 1))))

    def step(self, gap: Gap, tol: float) -> None:
        W = self.choose(gap)
        self.working = len(np.unique(W % self.width))
        if not len(W):
            return
        d, moves = self.minimise(W, gap, tol)
        length = self.search(W, d, moves, SEARCHES)
        self.cuts += length.t < 0.5
        self.damp(length.t)
        m, t = len(W), length.t
        own = d[m:] if self.fit_intercept else np.zeros(self.outputs)
        self.w[W] = np.clip(self.w[W] + t * d[:m], *self.strengths[2:])
        self.w = centred(self.w.reshape(self.outputs, self.width), self.strengths).ravel()
        self.scores += t * (moves - own[:, None])
        self.b = self.b + t * own

    def choose(self, gap: Gap) -> np.ndarray:
        return np.arange(len(self.w)) if self.by_conjugates else super().choose(gap)

    def newton(self, share: float, flat: float, most: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """``minimise`` of all weights to a share of the slopes, by conjugate gradients, and whether they were enough.

        They are preconditioned by the diagonal of H, and once that takes long by one matrix for all classes."""
        l2 = self.strengths[1]
        g = self.slopes / len(self.own)
        g[:, : self.width] += l2 * self.w.reshape(self.outputs, self.width)
        ridge = np.full(g.shape[1], l2)
        ridge[self.width :] = 0.0

        def times(d: np.ndarray) -> np.ndarray:
            D = self.products.scores(d)
            return self.products.pulls(self.q * (self.p * (D - np.sum(self.p * D, axis=0)) + flat * D)) + ridge * d

        h = self.q * (self.p * (1.0 - self.p) + flat)
        by = self.products.squares(h) + ridge + TINY
        precondition = self.solver(h.mean(axis=0), ridge) if self.slow else lambda r: r / by
        d, steps, enough = newton_step(times, precondition, g, share, most)
        self.slow = self.slow or (steps > SHORT + self.width / (2 * self.outputs) and self.width <= SOLVED)
        return np.concatenate([d[:, : self.width].ravel(), d[:, self.width :].ravel()]), self.products.scores(d), enough

    def solver(self, h: np.ndarray, ridge: np.ndarray) -> Map:
        """The solution map of X' diag(h) X + ridge, of each class."""
        from scipy.linalg import cho_factor, cho_solve

        M = gram(self.rows, h, self.width)[: len(ridge), : len(ridge)]
        M[np.diag_indices(len(M))] = np.diag(M) * (1.0 + SAFE) + ridge + TINY
        factor = cho_factor(M)
        return lambda r: cho_solve(factor, r.T).T

    def minimise(self, W: np.ndarray, gap: Gap, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """The model's minimiser d (m + K,), the intercepts last, and X d_k + d_k0 (K, n)."""
        m, n, outputs = len(W), len(self.own), self.outputs
        free = np.arange(outputs if self.fit_intercept else 0)
        at = Coordinates(W % self.width, np.concatenate([W // self.width, free]))
        g, w, d = np.append(self.g[W], 0.0 * free), np.append(self.w[W], 0.0 * free), np.zeros(m + len(free))
        flat, entries = FLAT + LARGEST * self.damping, int(self.stored.counts[at.which].sum())
        making, target = self.costs.gram(entries, m), self.target(gap, tol)
        if self.by_conjugates:
            d, moves, enough = self.newton(self.share(gap, tol), flat, self.costs.patient(m, entries, making))
            if enough or m > FACTORED:
                return d, moves
            self.hard = True
        if self.costs.prefers_gram(m, DEARER * entries, making, int(np.count_nonzero(self.w)), target < 0.0):
            H = gram_of_classes(self.rows, self.width, at, self.p, self.q, flat)
            by_gram = ByGram(H, np.zeros(len(d)))
            descend(Subproblem(by_gram, g, w, d, np.diag(H).copy(), self.near(), m), self.effort(target, m))
            step = np.zeros(outputs * self.width)
            step[W] = d[:m]
            return d, self.products.scores(self.by_class(step, d[m:]))
        rooms = np.zeros((outputs, n)), np.zeros(n), np.empty((outputs, n))
        model, diagonal = ByClasses(*self.stored.columns, *at, self.q, flat, self.p, *rooms), np.empty(len(d))
        square_classes(model, diagonal)
        near = None
        if target >= 0.0 and np.bincount(at.of).max() <= SOLVED:
            near = ClassBlocks(self.rows, self.width, at, self.q * (self.p * (1.0 - self.p) + flat), self.strengths[1])
        descend(Subproblem(model, g, w, d, diagonal, self.near(), m), self.effort_by_columns(target), near)
        return d, model.z


@kernel
def joint_mean(scores, b, moves, t, own, q, column):  # type: ignore[no-untyped-def]
    """sum_i q_i l at the scores (K, n) and b (K,), moved so far; ``column`` (K, 1) is room."""
    total = 0.0
    for i in range(own.shape[0]):
        for k in range(scores.shape[0]):
            column[k, 0] = scores[k, i] + b[k] + t * moves[k, i]
        subtract_level(column, 0)
        total += weighted(q[i], -column[own[i], 0])
    return total


def centred(w: np.ndarray, strengths: Strengths) -> np.ndarray:
    """Weights (K, d) of which each column is moved by one number so that r is least; as they are where there are bounds.

    The number is the median of the column's weights: of two in the middle the one nearer 0, which then is 0. With l2 it is the
    median of the weights and of their mean moved by multiples of l1 / l2."""
    l1, l2, lower, upper = strengths
    if (lower, upper) != (-inf, inf):
        return w
    outputs = len(w)
    if l2 == 0.0:
        low, high = np.sort(w, axis=0)[[(outputs - 1) // 2, outputs // 2]]
        return w - np.where(np.abs(low) <= np.abs(high), low, high)
    turns = l1 / (l2 * outputs) * np.arange(outputs, -outputs - 1, -2)
    return w - np.median(np.concatenate([w, w.mean(axis=0) + turns[:, None]]), axis=0)
