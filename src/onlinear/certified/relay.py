"""Dual coordinate ascent first, steps in the slopes where it is too slow: for losses with kinks (MATH 20.4, 20.8)."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from onlinear.certified.ascent import Ascent
from onlinear.certified.columns import Stored
from onlinear.certified.kinks import Kinked
from onlinear.certified.models import FACTORED
from onlinear.certified.newton import Limits, PassReport, Solution, Tell

SPAN = 10  # passes over which the fall of the gap is judged, at least
ENOUGH = 75  # passes within which the ascent has to end


class Relay:
    """One run: the ascent, and steps in the slopes after it where its gap does not fall fast enough."""

    def __init__(
        self, stored: Stored, width: int, loss: Any, penalty: Any, y: np.ndarray, s: np.ndarray, fit_intercept: bool
    ) -> None:
        self.stored = stored
        self.problem = stored, width, loss, penalty, y, s, fit_intercept

    def solve(self, w: np.ndarray, b: float, limits: Limits, tell: Tell | None = None) -> Solution:
        """Go on from w (d,) and b until the gap is small enough or the passes are used up."""
        stopped = False
        looks: list[tuple[int, float]] = []
        hands_over = int(np.count_nonzero(self.stored.counts)) <= FACTORED

        def told(report: PassReport) -> bool:
            nonlocal stopped
            stopped = tell is not None and tell(report)
            looks.append((report.passes, min(1.0, report.gap.relative)))
            return stopped or (hands_over and is_slow(looks, limits.tol))

        found = Ascent(*self.problem).solve(w, b, limits, told)
        done = found.gap.relative <= limits.tol or found.passes >= limits.passes or not np.isfinite(found.gap.objective)
        if stopped or done:
            return found

        def told_after(report: PassReport) -> bool:
            return tell is not None and tell(report._replace(passes=found.passes + report.passes))

        after = Kinked(*self.problem).go_on(found, w, b, Limits(limits.tol, limits.passes - found.passes), told_after)
        return after._replace(iterations=found.iterations + after.iterations, passes=found.passes + after.passes)


def is_slow(looks: list[tuple[int, float]], tol: float) -> bool:
    """Whether the gap, of (passes, gap) so far, would not come to tol in time if it fell on as it did last."""
    passes, gap = looks[-1]
    earlier = [look for look in looks if look[0] <= passes - SPAN]
    if not earlier or gap <= tol:
        return False
    since, before = earlier[-1]
    falls = log(before / gap) / (passes - since)
    return falls <= 0.0 or passes + log(gap / tol) / falls > ENOUGH
