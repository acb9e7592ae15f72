r"""Dual coordinate ascent (SDCA): the implicit step with a memory, to a certified relative gap.

    theta_i <- theta(a + C theta_i, C, y_i),   C = s_i |x_i|^2 / (n l2),   w = soft(v, l1) / l2,   v = -(1/n) X'(s theta)

(MATH 20.4).

Each step is the implicit step of the online methods, from the score without what the row has contributed before. For losses
with kinks the slopes in memory are the certificate that weights alone do not give. Without l2 it runs inside proximal steps.

Source: Shalev-Shwartz, Zhang, JMLR 14 (2013), 567-599.
Cost:   O(nnz) an epoch. Needs: a loss with ``theta`` and ``conjugate``; the rows at once; 8 bytes a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinear.certified.ascent import Ascent
from onlinear.certified.columns import Stored
from onlinear.certified.newton import Limits, Solution, Tell
from onlinear.solvers.core.certified import CertifiedEngine
from onlinear.solvers.core.engine import Engine, Problem, needs_theta


class Sdca(NamedTuple):
    """Settings: tol, the relative duality gap to be reached."""

    tol: float = 1e-4

    letters = ("w",)
    no_batch = "it takes all rows at once"
    certifies = True  # by a duality gap

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        return SdcaEngine(self, problem)


class SdcaEngine(CertifiedEngine):
    """Runs it on one output."""

    def optimum(
        self, rows: Stored, y: np.ndarray, s: np.ndarray, w: np.ndarray, b: float, limits: Limits, tell: Tell | None
    ) -> Solution:
        run = Ascent(rows, len(w), self.problem.loss, self.penalty, y, s, self.problem.fit_intercept)
        return run.solve(w, b, limits, tell)
