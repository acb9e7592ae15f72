"""The race of ``average="adaptive"``: the average predicts, except while the last iterate scores the recent rows better."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.files import trust
from onlinear.learner.loss_sums import add_loss
from onlinear.solvers.core.experts import MOST, bound, remembered

ROWS_OF_RACE = 3.0 / log(2.0)  # times a half-life: sums that lose 3 in so many rows fade by it


class Race:
    """The losses of the two predictors over the recent rows, summed over outputs.

    ``losses``: of the last iterate, and of the average; then the sum of the losses of whichever predicted, and its correction.
    ``longest``: the rows up to which the memory of the sums grows with their number.
    """

    def __init__(self, longest: float = inf) -> None:
        self.losses, self.longest = np.zeros(4), longest

    @property
    def last_leads(self) -> bool:
        """Whether the last iterate is ahead."""
        return self.losses.item(0) < self.losses.item(1)

    @property
    def predicted_loss(self) -> float:
        """The sum over the rows trained on of s_i l(score of what predicted before the step, y_i)."""
        return float(self.losses[2:].sum())

    def run(
        self,
        loss: Any,
        scores: np.ndarray,
        means: np.ndarray,
        linear: tuple[np.ndarray, np.ndarray],
        y: np.ndarray,
        s: np.ndarray,
        t: int,
    ) -> None:
        """Run over rows that follow the first t: scores of the last iterate and of the average (K, n), y (n, K).

        A row's means become the scores of what predicted it. ``linear``: the same scores before a clip, which follow; without
        a clip these very arrays.
        """
        compare(loss, scores, means, *linear, y, s, t, self.longest, self.losses)

    def check(self) -> None:
        """Raise ModelFileError for losses that no rows have."""
        trust.must(np.all(np.abs(self.losses[:2]) <= MOST), "losses of a race that no rows have")


@function
def compare_row(loss, scores, means, linear, linear_means, y, s, i, t, longest, race):  # type: ignore[no-untyped-def]
    """Add row i, before which there were t, to a race; see ``compare``."""
    ahead = race[0] < race[1]
    last, mean = 0.0, 0.0
    for k in range(y.shape[1]):
        if s[i] > 0.0:
            last += s[i] * loss.value(scores[k, i], y[i, k])
            mean += s[i] * loss.value(means[k, i], y[i, k])
        if ahead:
            means[k, i] = scores[k, i]
            linear_means[k, i] = linear[k, i]
        add_loss(loss, means[k, i], y[i, k], s[i], race[2:])
    if s[i] > 0.0:
        kept = remembered(min(t + 1.0, longest))
        race[0], race[1] = bound(race[0] * kept + last), bound(race[1] * kept + mean)


@kernel
def compare(loss, scores, means, linear, linear_means, y, s, t, longest, race):  # type: ignore[no-untyped-def]
    """Add rows to a race; scores and means, clipped and linear, are (K, n), y is (n, K), t rows came before.

    The sums forget: what is older counts less by 1 - 3/t a row, where t is at most ``longest``. A row's means become the scores
    of what predicted it, in both forms.
    """
    for i in range(y.shape[0]):
        compare_row(loss, scores, means, linear, linear_means, y, s, i, t + i, longest, race)
