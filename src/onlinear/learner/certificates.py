"""How far a learner is at most from the best model of its parts, on rows in memory or block by block."""

from __future__ import annotations

import numpy as np

from onlinear.certified import (
    Gap,
    JointGap,
    StreamGap,
    add_columns,
    gap_of_scores,
    in_scales,
    joint_gap_of_scores,
    probabilities,
    refuse_uncertified,
)
from onlinear.learner.core import Core
from onlinear.learner.loss_sums import LossSum, loss_weights, sum_of_losses
from onlinear.learner.scores import penalty_value
from onlinear.losses import is_joint
from onlinear.rows import Source


def scales_of(core: Core) -> np.ndarray | None:
    """What the columns are divided by, 0 for columns without a scale; None where rows come in their own units."""
    return None if core.running_scaler is None else core.running_scaler.scales()


def penalised(core: Core, k: int) -> float:
    """r(w) of output k."""
    return penalty_value(core.penalty, core.scaled_weights(k, core.columns, True))


def refuse_gap(core: Core) -> None:
    """Raise ValueError where a duality gap says nothing, or there is no formula for it."""
    refuse_uncertified(core.loss, core.penalty)


def gaps_in_memory(core: Core, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> list[Gap]:
    """The gaps of the outputs, or the one of all that one loss joins: rows as the learner reads them, with scores and targets
    (n, K) and weights (n,)."""
    refuse_gap(core)
    if is_joint(core.loss):
        return [joint_gap_in_memory(core, source, scores, y, weights)]
    columns = [(np.ascontiguousarray(scores[:, k]), np.ascontiguousarray(y[:, k])) for k in range(core.n_outputs)]
    return [gap_in_memory(core, k, source, *column, weights) for k, column in enumerate(columns)]


def joint_gap_in_memory(core: Core, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Gap:
    """The gap of outputs that one loss joins."""
    loss = sum_of_losses(core.loss, scores, y, weights) / source.n
    objective = loss + sum(penalised(core, k) for k in range(core.n_outputs))
    given = y.argmax(axis=1), loss_weights(core.loss, weights), objective, source.blocks()
    scales = scales_of(core)
    of_model = np.ones(core.size) if scales is None else scales
    kept = np.pad(of_model, (0, max(0, source.size - core.size)))  # columns beyond the model's are left out
    return joint_gap_of_scores(core.penalty, scores, *given, kept, core.fit_intercept)


def gap_in_memory(core: Core, k: int, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Gap:
    """The gap of output k, with scores, targets and weights (n,)."""

    def gradient(theta: np.ndarray) -> np.ndarray:
        g = np.zeros(max(core.size, source.size))
        for which, rows in source.blocks():
            add_columns(rows, theta[which], g)
        return in_scales(g[: core.size] / source.n, scales_of(core))

    objective = sum_of_losses(core.loss, scores[:, None], y[:, None], weights) / source.n + penalised(core, k)
    s = loss_weights(core.loss, weights)
    return gap_of_scores(core.loss, core.penalty, scores, y, s, objective, gradient, core.fit_intercept)


class GapOfBlocks:
    """The gaps of outputs from one pass over blocks of rows."""

    def __init__(self, core: Core) -> None:
        refuse_gap(core)
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


class JointGapOfBlocks:
    """The gap of outputs that one loss joins, from one pass over blocks of rows."""

    def __init__(self, core: Core) -> None:
        refuse_gap(core)
        self._core, self._rows, self._losses = core, 0, LossSum(core.loss)
        self._gap = JointGap(core.penalty, core.n_outputs, core.size, core.fit_intercept)

    def add(self, source: Source, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        """Add rows of the learner's columns, as it reads them: scores and targets (n, K), weights (n,)."""
        self._rows += source.n
        self._losses.add(scores, y, weights)
        given = probabilities(scores), y.argmax(axis=1), loss_weights(self._core.loss, weights)
        self._gap.add(source.blocks(), *given)

    def result(self) -> list[Gap]:
        """The gap of all outputs."""
        objective = self._losses.value / self._rows + sum(penalised(self._core, k) for k in range(self._core.n_outputs))
        return [self._gap.result(objective, scales_of(self._core))]


def gap_of_blocks(core: Core) -> GapOfBlocks | JointGapOfBlocks:
    """What finds the gaps from one pass."""
    return JointGapOfBlocks(core) if is_joint(core.loss) else GapOfBlocks(core)
