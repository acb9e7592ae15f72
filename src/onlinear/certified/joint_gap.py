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
from typing import Any

import numpy as np

from onlinear.certified.gap import Gap, weighted_slopes
from onlinear.certified.passes import add_columns
from onlinear.certified.stream_gap import in_scales
from onlinear.rows import Rows

MOST_STEPS, MOST_HALVINGS = 60, 40
BALANCED = 1e-13  # of the weight of all rows: what is left of R

Conjugates = Callable[[float], float]
Blocks = Iterable[tuple[slice, Rows]]


def one_hot(own: np.ndarray, outputs: int) -> np.ndarray:
    """e_{y_i} of the rows, (n, K)."""
    return np.equal.outer(own, np.arange(outputs)).astype(np.float64)


def entropies(q: np.ndarray) -> np.ndarray:
    """sum_k q_k log q_k of probabilities along the last axis; 0 log 0 is 0."""
    return np.sum(q * np.log(np.where(q > 0.0, q, 1.0)), axis=-1)  # type: ignore[no-any-return]


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
        known = np.isfinite(self._pulls).all() and np.isfinite(self._conjugates) and np.isfinite(objective)
        return Gap(objective, max(0.0, self._bound(scales, conjugates)) if known else 0.0)

    def _bound(self, scales: np.ndarray | None, conjugates: Conjugates | None) -> float:
        part, shares = self._balance() if self._fit_intercept else (1.0, np.zeros(len(self._left)))
        g, at_shares = part * self._pulls, 0.0
        if part < 1.0:
            g = g + (1.0 - part) * (np.outer(shares, self._of_classes.sum(axis=0)) - self._of_classes)
            at_shares = (1.0 - part) * self._shares.sum() * float(entropies(shares))
        g = np.array([in_scales(row / self._rows, scales) for row in g])
        c = min(float(self._penalty.reach(-row)) for row in g)
        found = c * self._conjugates if conjugates is None else conjugates(c)
        taken = sum(float(self._penalty.conjugate(-c * row)) for row in g)
        return -(part * found + c * at_shares) / self._rows - taken

    def _balance(self) -> tuple[float, np.ndarray]:
        """lambda, and the probabilities pi."""
        S, R, total = self._shares, self._left, self._shares.sum()
        over = R > 0.0
        if not np.any(over) or total <= 0.0:
            return 1.0, np.zeros(len(S))
        odds = float(np.min(S[over] / R[over]))  # lambda / (1 - lambda)
        pi = np.maximum(S - odds * R, 0.0)
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
    p = balanced_probabilities(scores, own, s) if fit_intercept else probabilities(scores)
    gap = JointGap(penalty, scores.shape[1], len(scales), fit_intercept)
    gap.add(blocks, p, own, s)
    here = one_hot(own, scores.shape[1])
    return gap.result(objective, scales, lambda c: float(weighted_slopes(s, entropies(c * p + (1.0 - c) * here)).sum()))


def probabilities(scores: np.ndarray) -> np.ndarray:
    """The softmax of scores along the last axis; 0 for a score of minus infinity."""
    found = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return found / found.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]


def balanced_probabilities(scores: np.ndarray, own: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Probabilities at the intercepts that minimise the mean loss: those of a class sum to the weight of its rows, nearly.

    By Newton's method. A class without rows has the probability 0."""
    here = one_hot(own, scores.shape[1])
    shares = s @ here
    z = np.where(shares > 0.0, scores, -np.inf)
    total, p = float(shares.sum()), probabilities(z)
    if np.count_nonzero(shares) < 2 or not np.isfinite(z[:, shares > 0.0]).all():
        return p
    for _ in range(MOST_STEPS):
        slope = s @ (p - here)
        if np.abs(slope).max() <= BALANCED * total:
            break
        step = -np.linalg.pinv(np.diag(s @ p) - (p * s[:, None]).T @ p, hermitian=True) @ slope
        moved = _moved(z, step, here, s, float(slope @ step))
        if moved is None:
            break
        z, p = moved, probabilities(moved)
    return p


def _moved(z: np.ndarray, step: np.ndarray, here: np.ndarray, s: np.ndarray, fall: float) -> np.ndarray | None:
    """The scores after a step, or half of it, and so on, by which the loss falls as it should; None where none does."""
    before = _loss(z, here, s)
    for _ in range(MOST_HALVINGS):
        new = z + step
        if _loss(new, here, s) <= before + 1e-4 * fall + 1e-15 * abs(before):
            return new
        step, fall = 0.5 * step, 0.5 * fall
    return None


def _loss(z: np.ndarray, here: np.ndarray, s: np.ndarray) -> float:
    """sum s l(z, y)."""
    top = z.max(axis=1)
    levels = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
    return float(s @ (levels - np.where(here > 0.0, z, 0.0).sum(axis=1)))
