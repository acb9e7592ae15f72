r"""The duality gap of a model: a number that its objective is certainly not farther above the optimum than.

    D(theta) = -(1/n) sum_i s_i l*(theta_i, y_i) - r*(-g),   g = (1/n) X'(s theta)                          (MATH 20.1)

is below F at every (w, b), whatever theta, if sum_i s_i theta_i = 0 where there is an intercept. theta are the slopes of the
loss at the model's scores, the intercept's made to balance; they are shrunk by a factor c <= 1 to where r* is finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, Context
from math import ceil, inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.balance import balanced
from onlinear.certified.passes import lowest_mean, sum_conjugates, take_slopes
from onlinear.losses import is_joint

EVEN = 1e-12  # so much above a number of few digits is that number
ROUNDING = 2.0**-43  # of a mean loss


class Gap(NamedTuple):
    """An objective F, a bound below every objective, and what no mean loss is below."""

    objective: float
    bound: float
    lowest: float = 0.0

    @property
    def relative(self) -> float:
        """(F - bound) / (F - lowest): with it at e, F is at most e / (1 - e) of the optimum above the optimum; infinite where F
        is not finite, 0 where it is ``lowest`` but for rounding."""
        room = self.objective - self.lowest
        if not isfinite(self.objective):
            return inf
        return max(0.0, self.objective - self.bound) / room if room > ROUNDING * abs(self.lowest) else 0.0


class Standing(NamedTuple):
    """Where all outputs stand together: the sum of objectives, the largest relative gap, and how many weights are not 0."""

    objective: float
    gap: float
    nonzeros: int

    @classmethod
    def of(cls, outputs: Iterable[tuple[Gap, np.ndarray]]) -> Standing:
        """Of each output its certificate and its weights."""
        gaps, weights = zip(*outputs, strict=True)
        objective = sum(gap.objective for gap in gaps)
        return cls(objective, max(gap.relative for gap in gaps), sum(int(np.count_nonzero(w)) for w in weights))


def gap_of_output(gap: Gap, k: int) -> Gap:
    """What output k has of the certificate of all that one loss joins: it stands with the first."""
    return gap if k == 0 else Gap(0.0, 0.0)


def refuse_uncertified(loss: Any, penalty: Any) -> None:
    """Raise ValueError where a duality gap says nothing, or there is no formula for it."""
    if not (hasattr(loss, "conjugate") or is_joint(loss)):
        raise ValueError(f"a duality gap needs a loss with the method conjugate; {type(loss).__name__} has none.")
    if not (hasattr(penalty, "conjugate") and hasattr(penalty, "reach")):
        raise ValueError(
            f"a duality gap needs the conjugate of the penalty, and {type(penalty).__name__} has none: use l1, l2 or "
            "elastic-net, with or without bounds."
        )
    if penalty.reach(np.array([-1.0, 1.0])) == 0.0:
        raise ValueError(
            "without a penalty a duality gap says nothing: it needs l1 > 0, l2 > 0 or bounds on both sides of all weights, "
            "e.g. penalty='l1=1e-4'."
        )


def is_smooth(loss: Any) -> bool:
    """Whether scores tell the slopes of a loss: it has no kinks."""
    return hasattr(loss, "curvature") or is_joint(loss)


def why_loose(loss: Any) -> str | None:
    """Why a gap that is found from weights alone may be far above the distance to the optimum; None where it is not."""
    if is_smooth(loss):
        return None
    return (
        f"the loss {type(loss).__name__} has kinks, and weights do not tell its slope at a kink: the gap may be far above the "
        "true distance to the optimum."
    )


def above(gap: float, digits: int = 2) -> str:
    """A relative gap in words; its digits are rounded up, as it is a bound."""
    if gap >= 1.0:
        return "not known to be near the optimum"
    share = 100.0 * gap / (1.0 - gap) * (1.0 - EVEN)
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(share)
    return f"at most {f'{ceil(share):,}' if share > 99.0 else f'{float(up):.{digits}g}'} % above the optimum"


def shortfall(gap: float, tol: float, passes: int) -> str:
    """That a relative gap is above ``tol`` after so many passes, and what to do."""
    return (
        f"tol={tol:g} was not reached: after {passes} passes the certified relative duality gap is {gap:.2g} (the objective is "
        f"{above(gap)}). Give a larger max_passes or tol, or a stronger penalty."
    )


def gap_of_scores(
    loss: Any,
    penalty: Any,
    scores: np.ndarray,
    y: np.ndarray,
    s: np.ndarray,
    objective: float,
    gradient: Callable[[np.ndarray], np.ndarray],
    fit_intercept: bool,
) -> Gap:
    """The gap of a model from its scores of rows in memory.

    Parameters
    ----------
    loss, penalty
        The parts, which ``refuse_uncertified`` has passed.
    scores, y, s : ndarray of shape (n,)
        Scores, targets, and what multiplies each row's loss.
    objective : float
        F of the model.
    gradient : callable
        X'v / n of a vector v of shape (n,), in the columns on which the penalty acts.
    fit_intercept : bool
        Whether the optimum is over an intercept too.

    Returns
    -------
    Gap
    """
    lowest = lowest_mean(loss, y, s)
    if not isfinite(objective):
        return Gap(objective, lowest, lowest)
    if fit_intercept:
        theta = balanced(loss, scores, y, s)[1]
    else:
        theta = np.empty_like(scores)
        take_slopes(loss, scores, y, s, 0.0, theta)
    return Gap(objective, dual_value(loss, penalty, theta, y, s, gradient(weighted_slopes(s, theta)), lowest), lowest)


def weighted_slopes(s: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """s theta, and 0 for rows of weight 0."""
    return np.multiply(s, theta, out=np.zeros(len(s)), where=s != 0.0)


def dual_value(loss: Any, penalty: Any, theta: np.ndarray, y: np.ndarray, s: np.ndarray, g: np.ndarray, lowest: float) -> float:
    """D(c theta) with the largest c <= 1 for which it is finite, and at least D(0) = ``lowest``; g = X'(s theta) / n."""
    c = penalty.reach(-g)
    return max(lowest, -float(sum_conjugates(loss, theta, y, s, c)) / len(y) - float(penalty.conjugate(-c * g)))
