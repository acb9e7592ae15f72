"""Losses of predictors that compete for the same rows: sums that forget, and the shares that they give (MATH 18.7)."""

from __future__ import annotations

from math import exp

from onlinear.compiled import function

MOST = 1e300  # of a sum of losses: sums that overflow, or are no numbers, stay comparable
SHORTEST = 3.0  # after t rows a sum keeps 1 - 3/t of itself a row
NO_LOSS = 1e-200  # a mean loss below it counts as it: shares divide by it


@function
def bound(losses: float) -> float:
    """A sum of losses, at most MOST in size."""
    return max(losses, -MOST) if losses < MOST else MOST


@function
def remembered(t: float) -> float:
    """What row t, counted from 1, leaves of the sums before it."""
    return 1.0 - min(1.0, SHORTEST / t)


@function
def rate_of(rate, losses, first, count, rows):
    """The smallest of ``count`` sums from place ``first`` on, and the rate by which shares fall with what others have more:
    ``rate``, or for 0 one over twice the best's mean; ``rows``: the sum of what the rows count."""
    least = losses[first]
    for k in range(1, count):
        least = min(least, losses[first + k])
    return least, rate if rate > 0.0 else 0.5 * rows / max(least, NO_LOSS)


@function
def share(rate, losses, first, count, rows, out, at, held):
    """Fill ``out`` from place ``at`` on with shares that sum to 1, in proportion to exp(-rate losses - held back).

    By how much shares are held back stands in ``losses`` too, from place ``held`` on, for all but the last.
    """
    least, by = rate_of(rate, losses, first, count, rows)
    total = 0.0
    for k in range(count):
        back = losses[held + k] if k < count - 1 else 0.0
        out[at + k] = exp(-by * (losses[first + k] - least) - back)
        total += out[at + k]
    for k in range(count):
        out[at + k] /= total
