"""The intercept without penalty asks for slopes whose weighted sum is 0: those at the b that minimises the mean loss.

Where the loss has kinks, or the search stops, the slopes at two neighbouring b, one on each side of the minimiser, are mixed so
that the sum is 0. Mixed slopes stay in the domain of l*, which is convex.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onlinear.certified.passes import take_slopes

STEPS = 200
ENOUGH = 1e-13  # of the sum of absolute slopes: what is left is mixed away
FARTHEST = 2.0**40  # steps to either side; beyond it, and beyond all targets, a loss is flat, or its slopes have one sign
BEYOND, MOST = 16.0, 1e300  # times the largest target, score and start: so far is searched too, as numbers have any size


def balanced(loss: Any, scores: np.ndarray, y: np.ndarray, s: np.ndarray, start: float = 0.0) -> tuple[float, np.ndarray]:
    """The shift b that minimises mean s_i l(score_i + b, y_i), and slopes (n,) there of weighted sum 0; ``start``: a first b.

    Slopes are 0 where there is no minimiser: their sum has one sign however far b goes.
    """
    found = np.empty_like(scores)

    def total(b: float) -> tuple[float, float]:
        return take_slopes(loss, scores, y, s, b, found)

    low, high = _bracket(total, start, _farthest(scores, y, start))
    if low is None or high is None:
        return start, np.zeros_like(scores)
    low, high = _narrow(total, low, high)
    theta, (below, _) = found.copy(), total(low)
    np.copyto(theta, found)
    above, _ = total(high)
    if above == below:
        return high, found
    part = below / (below - above)  # below <= 0 <= above
    return (low if -below < above else high), (1.0 - part) * theta + part * found


def _farthest(scores: np.ndarray, y: np.ndarray, start: float) -> float:
    """The longest step to a b that may be the minimiser."""
    reach = abs(start) + sum(float(np.abs(found).max(initial=0.0)) for found in (scores, y))
    return max(FARTHEST, min(BEYOND * reach, MOST))


def _bracket(total: Any, start: float, farthest: float) -> tuple[float | None, float | None]:
    """A b whose slopes sum to at most 0, and one above it whose slopes sum to at least 0; None where there is none."""
    here, _ = total(start)
    low, high = (start if here <= 0.0 else None), (start if here >= 0.0 else None)
    step = 1.0
    while (low is None or high is None) and step < farthest:
        if low is None:
            low = start - step if total(start - step)[0] <= 0.0 else None
        elif total(start + step)[0] >= 0.0:
            high = start + step
        step *= 4.0
    return low, high


def _narrow(total: Any, low: float, high: float) -> tuple[float, float]:
    """A bracket as narrow as floats are, or with an end whose sum is rounding: secants, halved where one is slow."""
    below, above = total(low)[0], total(high)[0]
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high or below == 0.0 or above == 0.0:
            break
        guess = low - below * (high - low) / (above - below)
        width = high - low
        for b in (guess, middle):
            if low < b < high:
                here, size = total(b)
                if here <= 0.0:
                    low, below = b, here
                if here >= 0.0:
                    high, above = b, here
                if abs(here) <= ENOUGH * size < inf:
                    return low, high
            if high - low <= 0.25 * width:
                break
    return low, high
