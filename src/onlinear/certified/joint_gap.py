r"""The duality gap of outputs that one loss joins: of the softmax loss (MATH 20; 20.9 of ``docs/mathematics.md``).

    D = -(1/n) sum_i s_i l*(theta_i) - sum_k r*(-g_k),    g_k = (1/n) X'(s theta_k),    l*(theta_i) = sum_k q_ik log q_ik

where theta_i = q_i - e_{y_i} and q_i are probabilities of the classes. With theta the slopes at the model's scores, q = p.
Where there is an intercept the slopes of each class have to balance. What is left of their sums, R_k = sum_i s_i theta_ik, is
taken off by u_i = pi - e_{y_i}, the slopes of one and the same pi for all rows. With S_k the weight of the rows of class k and
S their sum,

    theta' = lambda theta + (1 - lambda) u,     pi_k = (S_k - lambda R_k / (1 - lambda)) / S,

for the largest lambda for which no pi_k is negative. l* is convex, so sum s l*(theta') <= lambda sum s l*(theta) +
(1 - lambda) S sum_k pi_k log pi_k. That needs sums alone, so that one pass over the rows is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.gap import Gap, weighted_slopes
from onlinear.certified.joint_balance import balanced, one_hot, probabilities
from onlinear.certified.passes import add_columns
from onlinear.certified.stream_gap import in_scales
from onlinear.rows import Rows

ROUNDING = 1e-16  # of the weight of all rows: sums of slopes below it are 0

Conjugates = Callable[[float], float]
Blocks = Iterable[tuple[slice, Rows]]


def entropies(q: np.ndarray) -> np.ndarray:
    """sum_k q_k log q_k of probabilities along the last axis; 0 log 0 is 0."""
    return np.sum(q * np.log(np.where(q > 0.0, q, 1.0)), axis=-1)


class JointGap:
    """The certificate of all outputs together, from sums over rows. ``size``: the columns of the model."""

    def __init__(self, penalty: Any, outputs: int, size: int, fit_intercept: bool) -> None:
        self._penalty, self._fit_intercept, self._rows = penalty, fit_intercept, 0
        self._pulls, self._of_classes = np.zeros((outputs, size)), np.zeros((outputs, size))  # X'(s theta), X'(s e)
        self._left, self._shares, self._conjugates = np.zeros(outputs), np.zeros(outputs), 0.0  # R, S, sum s l*

    def add(self, blocks: Blocks, p: np.ndarray, own: np.ndarray, s: np.ndarray) -> None:
        """Add rows of the model's columns, in pieces: probabilities (n, K), the places of the classes and s (n,)."""
        here = one_hot(own, len(self._left)).T
        theta = np.array([weighted_slopes(s, slopes) for slopes in p.T - here])
        members = np.array([weighted_slopes(s, of_class) for of_class in here])
        self._rows += len(own)
        self._conjugates += float(weighted_slopes(s, entropies(p)).sum())
        self._left += theta.sum(axis=1)
        self._shares += members.sum(axis=1)
        for which, rows in blocks:  # each in the memory of the one before
            for k in range(len(self._left)):
                add_columns(rows, theta[k, which], self._pulls[k])
                if self._fit_intercept:
                    add_columns(rows, members[k, which], self._of_classes[k])

    def result(self, objective: float, scales: np.ndarray | None, conjugates: Conjugates | None = None) -> Gap:
        """The gap of the rows added, at F = ``objective``; ``scales``: what columns are divided by, 0 for those left out.

        ``conjugates``: sum s l*(c theta) for a factor c, where the rows are at hand; without it, a bound above it."""
        if not np.isfinite(objective):
            return Gap(objective, 0.0)
        sums = JointSums(self._rows, self._pulls, self._of_classes if self._fit_intercept else None, self._left, self._shares)
        return Gap(objective, joint_bound(self._penalty, sums, scales, conjugates or (lambda c: c * self._conjugates)))


class JointSums(NamedTuple):
    """Sums over rows: X'(s theta) and X'(s e), (K, d), the second None without an intercept; s theta and s e, (K,)."""

    rows: int
    pulls: np.ndarray
    of_classes: np.ndarray | None
    left: np.ndarray
    shares: np.ndarray


def joint_dual_value(penalty: Any, sums: JointSums, scales: np.ndarray | None, conjugates: Conjugates) -> float:
    """D at theta', shrunk by the largest c <= 1 for which it is finite; ``conjugates``: sum s l*(c theta) or a bound above."""
    balances = sums.of_classes is not None
    part, pi = _balance(sums.left, sums.shares) if balances else (1.0, np.zeros(len(sums.shares)))
    g, at_pi = part * sums.pulls, 0.0
    if sums.of_classes is not None and part < 1.0:
        g = g + (1.0 - part) * (np.outer(pi, sums.of_classes.sum(axis=0)) - sums.of_classes)
        at_pi = (1.0 - part) * sums.shares.sum() * float(entropies(pi))
    g = np.array([in_scales(row / sums.rows, scales) for row in g])
    c = min(float(penalty.reach(-row)) for row in g)
    taken = sum(float(penalty.conjugate(-c * row)) for row in g)
    return -(part * conjugates(c) + c * at_pi) / sums.rows - taken


def joint_bound(penalty: Any, sums: JointSums, scales: np.ndarray | None, conjugates: Conjugates) -> float:
    """What no objective is below: D, or 0 where that is more or the sums are not finite."""
    found = joint_dual_value(penalty, sums, scales, conjugates) if np.isfinite(sums.pulls).all() else 0.0
    return max(0.0, found) if np.isfinite(found) else 0.0


def _balance(left: np.ndarray, shares: np.ndarray) -> tuple[float, np.ndarray]:
    """lambda, and the probabilities pi."""
    total = shares.sum()
    over = left > ROUNDING * total
    if not np.any(over) or total <= 0.0:
        return 1.0, np.zeros(len(shares))
    odds = float(np.min(shares[over] / left[over]))  # lambda / (1 - lambda)
    pi = np.maximum(shares - odds * left, 0.0)
    return odds / (1.0 + odds), pi / pi.sum()


def joint_gap_of_scores(
    penalty: Any,
    scores: np.ndarray,
    own: np.ndarray,
    s: np.ndarray,
    objective: float,
    blocks: Blocks,
    scales: np.ndarray,
    fit_intercept: bool,
) -> Gap:
    """The gap of a model from its scores (n, K) of rows in memory, whose classes have the places ``own``.

    ``scales``: what each column of the rows is divided by, 0 for one that is left out."""
    p = balanced(scores, own, s)[1] if fit_intercept else probabilities(scores)
    gap = JointGap(penalty, scores.shape[1], len(scales), fit_intercept)
    gap.add(blocks, p, own, s)
    return gap.result(objective, scales, lambda c: conjugates_of(p, own, s, c))


def conjugates_of(p: np.ndarray, own: np.ndarray, s: np.ndarray, c: float) -> float:
    """sum s l*(c theta) at the slopes of probabilities (n, K)."""
    return float(weighted_slopes(s, entropies(c * p + (1.0 - c) * one_hot(own, p.shape[1]))).sum())
