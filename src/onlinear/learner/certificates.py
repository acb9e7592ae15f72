"""How far a learner is at most from the best model of its parts, on rows in memory or block by block."""

from __future__ import annotations

import numpy as np

from onlinear.certified import Gap, StreamGap, add_columns, gap_of_scores, in_scales, refuse_uncertified
from onlinear.learner.core import Core
from onlinear.learner.loss_sums import LossSum, loss_weights
from onlinear.learner.scores import penalty_value
from onlinear.rows import Source


def scales_of(core: Core) -> np.ndarray | None:
    """What the columns are divided by, 0 for columns without a scale; None where rows come in their own units."""
    return core.scaler.scales() if core.scaler is not None and not core.centres_rows else None


def penalised(core: Core, k: int) -> float:
    """r(w) of output k."""
    return penalty_value(core.penalty, core.scaled_weights(k, core.columns, True))


def gap_in_memory(core: Core, k: int, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Gap:
    """The gap of output k: rows as the learner reads them, with scores, targets and weights (n,)."""
    refuse_uncertified(core.loss, core.penalty)
    losses = LossSum(core.loss)
    losses.add(scores[:, None], y[:, None], weights)

    def gradient(theta: np.ndarray) -> np.ndarray:
        g = np.zeros(max(core.size, source.size))
        for which, rows in source.blocks():
            add_columns(rows, theta[which], g)
        return in_scales(g[: core.size] / source.n, scales_of(core))

    objective = losses.value / source.n + penalised(core, k)
    s = loss_weights(core.loss, weights)
    return gap_of_scores(core.loss, core.penalty, scores, y, s, objective, gradient, core.fit_intercept)


class GapOfBlocks:
    """The gaps of all outputs from one pass over blocks of rows."""

    def __init__(self, core: Core) -> None:
        refuse_uncertified(core.loss, core.penalty)
        self._core, self._rows = core, 0
        self._gaps = [StreamGap(core.loss, core.penalty, core.size, core.fit_intercept) for _ in range(core.n_outputs)]
        self._losses = [LossSum(core.loss) for _ in range(core.n_outputs)]

    def add(self, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Add rows of the learner's columns, as it reads them: scores and targets (n, K), weights (n,)."""
        s = loss_weights(self._core.loss, weights)
        self._rows += source.n
        for k, (gap, losses) in enumerate(zip(self._gaps, self._losses, strict=True)):
            mine, target = np.ascontiguousarray(scores[:, k]), np.ascontiguousarray(y[:, k])
            losses.add(mine[:, None], target[:, None], weights)
            for which, rows in source.blocks():
                gap.add(rows, mine[which], target[which], s[which])

    def result(self) -> list[Gap]:
        """The gap of each output."""
        scales = scales_of(self._core)
        objectives = [losses.value / self._rows + penalised(self._core, k) for k, losses in enumerate(self._losses)]
        return [gap.result(objective, scales) for gap, objective in zip(self._gaps, objectives, strict=True)]
