r"""The duality gap of a model from one pass over rows that are not kept, in O(features).

Slopes of either sign are summed apart, so that after the pass those of one sign can be shrunk until all balance, and all until
r* is finite. l*(0) = -inf l, and l* is convex: sum l*(c theta) <= c sum l*(theta) + (1 - c) sum l*(0) for every 0 <= c <= 1, so
the bound needs no second pass (MATH 20.2). It is looser than that of rows in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.certified.gap import Gap
from onlinear.certified.passes import add_columns
from onlinear.compiled import kernel
from onlinear.rows import Rows

SLOPES, CONJUGATES, AT_ZERO = range(3)


@kernel
def add_by_sign(loss, scores, y, s, up, down, sums):  # type: ignore[no-untyped-def]
    """Weighted slopes of the rows, by their sign; sums[0] of positive ones and sums[1] of the others: slopes, their conjugates
    and the conjugates at 0."""
    for i in range(y.shape[0]):
        up[i] = down[i] = 0.0
        if s[i] != 0.0:
            theta = loss.slope(scores[i], y[i])
            sign = 0 if theta > 0.0 else 1
            if sign == 0:
                up[i] = s[i] * theta
            else:
                down[i] = s[i] * theta
            sums[sign, 0] += s[i] * theta
            sums[sign, 1] += s[i] * loss.conjugate(theta, y[i])
            sums[sign, 2] += s[i] * loss.conjugate(0.0, y[i])


class StreamGap:
    """The certificate of one output; ``size``: the columns of the model, ``fit_intercept``: as the model's."""

    def __init__(self, loss: Any, penalty: Any, size: int, fit_intercept: bool) -> None:
        self._loss, self._penalty, self._fit_intercept = loss, penalty, fit_intercept
        self._gradients, self._sums, self._rows = np.zeros((2, size)), np.zeros((2, 3)), 0

    def add(self, rows: Rows, scores: np.ndarray, y: np.ndarray, s: np.ndarray) -> None:
        """Add rows of the model's columns: scores, targets and what multiplies their losses, (n,)."""
        pulls = np.empty((2, len(y)))
        add_by_sign(self._loss, scores, y, s, pulls[0], pulls[1], self._sums)
        for pull, gradient in zip(pulls, self._gradients, strict=True):
            add_columns(rows, pull, gradient)
        self._rows += len(y)

    def result(self, objective: float, scales: np.ndarray | None) -> Gap:
        """The gap of the rows added, at F = ``objective``; ``scales``: what columns are divided by, 0 for those left out."""
        found = bound_by_sign(self._penalty, self._sums, self._gradients, self._rows, scales, self._fit_intercept)
        lowest = -float(self._sums[:, AT_ZERO].sum()) / self._rows
        return Gap(objective, found if np.isfinite(objective) else lowest, lowest)


def bound_by_sign(
    penalty: Any, sums: np.ndarray, gradients: np.ndarray, n: int, scales: np.ndarray | None, fit_intercept: bool
) -> float:
    """A bound below the objective from sums (2, 3) and gradients (2, d) of the slopes of either sign, over n rows."""
    up, down = sums[:, SLOPES]
    lowest = -float(sums[:, AT_ZERO].sum()) / n
    if not (np.isfinite(sums).all() and np.isfinite(gradients).all()):
        return lowest
    part = np.ones(2)
    if fit_intercept and up + down != 0.0:
        part[:] = min(1.0, -down / up if up > 0.0 else 0.0), min(1.0, up / -down if down < 0.0 else 0.0)
    g = in_scales(part @ gradients / n, scales)
    c = penalty.reach(-g)
    part *= c
    conjugates = float(part @ sums[:, CONJUGATES] + (1.0 - part) @ sums[:, AT_ZERO]) / n
    return max(lowest, -conjugates - float(penalty.conjugate(-c * g)))


def in_scales(g: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """A gradient in columns divided by their scales; 0 for a column of scale 0, which is left out."""
    return g if scales is None else np.divide(g, scales, out=np.zeros_like(g), where=scales > 0.0)
