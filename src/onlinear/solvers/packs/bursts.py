"""What the packs of dual averaging and of scaled vectors share: sums over a row, and the look for numbers that burst."""

from __future__ import annotations

from onlinear.compiled import function, lane, same_lanes
from onlinear.solvers.core.careful import is_careful
from onlinear.solvers.core.dense import all_finite


@function
def empty_sum():
    """A sum over a row, of which the four parts that ``total`` adds up take every fourth entry."""
    return same_lanes(0.0), same_lanes(0.0), same_lanes(0.0), same_lanes(0.0)


@function
def added(sums, term):
    """The sum with the next entry's term in it; the parts take turns."""
    a, b, c, d = sums
    return b, c, d, a + term


@function
def whole(sums):
    """The parts added up, in the order of ``total``, which is the same whose turn it is."""
    a, b, c, d = sums
    return (a + c) + (b + d)


@function
def highest(row, outputs):
    """The largest lane among those of outputs."""
    most = lane(row, 0)
    for o in range(1, outputs):
        most = max(most, lane(row, o))
    return most


@function
def burst(rows, i, p, eta, g, V, now, outputs):
    """The first output that is no longer finite on row i, or -1; each is looked at where it would be alone."""
    indptr, indices, _ = rows
    found = -1
    for o in range(outputs):
        careful = g[o] != 0.0 and is_careful(now[:, o], max(abs(p[o]), abs(eta * g[o])))
        if careful and not all_finite(V[:, o], indices, indptr[i], indptr[i + 1]) and found < 0:
            found = o
    return found
