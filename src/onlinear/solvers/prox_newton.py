r"""Prox-Newton on working sets: the optimum of stored rows, to a certified relative gap.

    d = argmin <g, d> + (1/2) d'X'HXd + r(w + d)  over the columns of a working set;   w <- w + t d               (MATH 20.3)

with g the gradient and H the curvatures of the mean loss at w, t by Armijo's rule. It stops when the duality gap is at most
``tol``, and says so; passes are counted, not believed.

Losses with kinks are solved inside proximal steps in their slopes (MATH 20.8), with l2 or bounds alone after the first passes
of dual coordinate ascent, which mostly ends before (MATH 20.4). For outputs that softmax joins the model of a step is of all of
them together.

Source: Lee, Sun, Saunders, SIAM J. Optim. 24 (2014), 1420-1443.
Cost:   O(nnz) an iteration and the work of the model. Needs: a loss with ``conjugate``, and ``curvature`` or ``theta``; the
        rows at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.certified import is_smooth
from onlinear.certified.columns import Stored
from onlinear.certified.kinks import Kinked
from onlinear.certified.least_squares import of_sums
from onlinear.certified.newton import Limits, Solution, Tell
from onlinear.certified.prox_newton import ProxNewton as Run
from onlinear.certified.relay import Relay
from onlinear.solvers.core.certified import CertifiedEngine
from onlinear.solvers.core.engine import Engine, Problem, needs_theta


class ProxNewton(NamedTuple):
    """Settings: tol, the relative duality gap to be reached."""

    tol: float = 1e-4

    letters = ("w",)
    no_batch = "it takes all rows at once"
    certifies = True  # by a duality gap

    def engine(self, problem: Problem) -> Engine:
        found = ProxNewtonEngine(self, problem)
        if not found.smooth:
            needs_theta(problem)
        return found


class ProxNewtonEngine(CertifiedEngine):
    """Runs it on one output, or on all that one loss joins."""

    implicit = False
    joins = True

    @property
    def rounds(self) -> bool:  # type: ignore[override]
        """Whether sums over rows suffice: slopes of losses with kinks have to be kept."""
        return self.smooth

    @property
    def smooth(self) -> bool:
        return is_smooth(self.problem.loss)

    def optimum(
        self, rows: Stored, y: np.ndarray, s: np.ndarray, w: np.ndarray, b: float, limits: Limits, tell: Tell | None
    ) -> Solution:
        given = rows, len(w), self.problem.loss, self.penalty, y, s, self.problem.fit_intercept
        if not self.smooth:
            kind: Any = Kinked if self.penalty.l1 > 0.0 and self.penalty.l2 == 0.0 else Relay
            return kind(*given).solve(w, b, limits, tell)
        run = Run(*given)
        by_sums = of_sums(run, w, b, limits, tell) if run.quadratic else None
        return by_sums or run.solve(w, b, limits, tell)
