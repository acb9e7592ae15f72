r"""Rounds of outputs that softmax joins: their certified optimum from sums over rows alone (MATH 20.5, 20.9, 20.10).

As ``rounds.py``, of which these are a kind: one model and one certificate of all outputs. Weights stand one after the other as
in ``joint_sums.py``. A working set is one of weights, and the rows that are kept are those in its columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.certified.columns import Stored
from onlinear.certified.joint_balance import NOWHERE
from onlinear.certified.joint_gap import joint_bound
from onlinear.certified.joint_newton import JointNewton, centred
from onlinear.certified.joint_sums import JointPoint, SumsOfClasses
from onlinear.certified.rounds import TRUSTED, Rounds
from onlinear.certified.stream_gap import in_scales
from onlinear.certified.sums import KeptRows, Sums


class JointRounds(Rounds):
    """Where all outputs stand together. ``w``: (d, K) as it is given, and (d K,) after that; ``b``: (K,)."""

    def __init__(
        self, loss: Any, penalty: Any, fit_intercept: bool, scales: np.ndarray | None, w: np.ndarray, b: np.ndarray, tol: float
    ) -> None:
        self.of_columns, of_all = scales, None if scales is None else np.repeat(scales, w.shape[1])
        super().__init__(loss, penalty, fit_intercept, of_all, w.ravel(), b, tol)
        self.working = self._largest(np.flatnonzero(self.w), np.abs(self.w), self.w.size)  # rows may have room for all of them

    def by_class(self, w: np.ndarray) -> np.ndarray:
        """Numbers of all weights as (d, K)."""
        return w.reshape(-1, len(self.b))

    @property
    def columns(self) -> int:
        return len(self._columns())

    def _columns(self) -> np.ndarray:
        """The columns in which the working set has weights."""
        return np.unique(self.working // len(self.b))

    def point(self) -> JointPoint:
        moved = self.rounds > 0
        step = in_scales(self.trial - self.w, self.scales) if moved else np.empty(0)
        step_b = self.trial_b - self.b
        at = self.by_class(in_scales(self.trial, self.scales)), self.trial_b
        places = self.by_class(self._places())
        return JointPoint(*at, self.by_class(step), step_b, places, self._floor(), 8 * (self.room + len(self.b)) ** 2)

    def _bound(self, sums: Sums) -> float:
        assert isinstance(sums, SumsOfClasses)
        parts, conjugates = sums.of_certificate(self.fit_intercept)
        return joint_bound(self.penalty, parts, self.of_columns, lambda c: c * conjugates)

    def _away(self, sums: Sums) -> float:
        return 0.0  # ``_step`` says where the intercepts go

    def _minimise_within(self, kept: KeptRows) -> None:
        outputs = len(self.b)
        columns = self._columns()
        if self.of_columns is not None:
            np.divide(kept.entries.values, self.of_columns[columns][kept.entries.places], out=kept.entries.values)
        given = Stored(kept.entries, len(columns)), len(columns), outputs, self.penalty, kept.y, kept.s, self.fit_intercept
        w = self.by_class(self.w)[columns]
        first = w if self.gap.relative < TRUSTED else np.zeros_like(w)
        found = JointNewton(*given).solve(first.T.ravel(), self.b, self._limits())
        self.trial = np.zeros_like(self.w)
        self.by_class(self.trial)[columns] = found.w.reshape(outputs, -1).T
        self.trial_b, self.slope = found.b, 0.0

    def _step(self, g: np.ndarray, sums: Sums, n: int) -> None:
        """Minimise, and put the intercepts of classes whose rows have no weight below all scores."""
        assert isinstance(sums, SumsOfClasses)
        super()._step(g, sums, n)
        there = sums.of_classes[1] > 0.0
        if self.fit_intercept and there.any():
            self.trial_b = np.where(there, self.trial_b, self.trial_b[there].min() - NOWHERE)

    def _placed(self, w: np.ndarray) -> np.ndarray:
        return centred(self.by_class(w).T, self.strengths).T.ravel()
