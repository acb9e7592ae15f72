"""Whether the rows that come are rows that came before: found from the rows, so that nobody has to say so.

A row has a fingerprint, a number in (0, 1) that follows from its entries. The smallest ``KEPT`` of all rows so far are kept, a
sample of the rows that differ (a bottom-k sketch: Cohen, Kaplan, Summarizing data using bottom-k sketches, PODC 2007). A row
whose fingerprint is among them came before. Once ``ENOUGH`` different ones have, without one that is new to the sample, a later
pass has begun: about a tenth of its rows have passed by then. Rows that come often among others that are new do not look so.

The first half of a fingerprint follows from four entries alone: of most rows no more is read.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled import COMPILED, borrowed, function, lean_kernel
from onlinear.files import trust
from onlinear.rows import Rows

KEPT, ENOUGH = 256, 24
EMPTY = 2.0  # stands where there is no fingerprint yet
FOUND = KEPT  # the place of the number of fingerprints that were found again; those are below 0
_FIRST, _SECOND, _THIRD = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_HALF, _UNUSED, _ONE = np.uint64(32), np.uint64(38), np.uint64(1)
_FEW, _ALL = np.uint64(4), np.uint64(2**32)  # entries


class Repeats:
    """The sample of the rows so far."""

    def __init__(self) -> None:
        self.known = np.full(KEPT + 1, EMPTY)
        self.known[FOUND] = 0.0

    def look(self, rows: Rows, s: np.ndarray) -> int:
        """Take rows of weights s into the sample, up to the one with which a later pass has begun: its place, or n."""
        return int(look(rows, s, self.known))

    def check(self) -> None:
        """Raise ModelFileError for a sample that no rows give."""
        prints, found = np.abs(self.known[:KEPT]), self.known[FOUND]
        filled = prints < EMPTY
        fits = np.all((prints > 0.0) & (filled & (prints < 1.0) | (self.known[:KEPT] == EMPTY)))
        fits = fits and np.all(np.diff(prints[filled]) > 0.0) and np.all(np.diff(filled.astype(int)) <= 0)
        trust.must(fits and 0.0 <= found <= ENOUGH and found % 1.0 == 0.0, "a sample of rows that no rows give")


@function
def digest(rows, i, most):  # type: ignore[no-untyped-def]
    """A whole number below 2^26 that follows from ``most`` entries of row i, evenly spaced, or from all where it has fewer."""
    begin, end = rows[0][i], rows[0][i + 1]
    total, k, step = end - begin, begin, (end - begin) // most + _ONE
    while k < end:
        x, column = np.float64(rows[2][k]).view(np.uint64), np.uint64(rows[1][k]) * _FIRST
        total += (x ^ (x >> _HALF)) * (column ^ (column >> _HALF) | _ONE)
        k += step
    total = (total ^ (total >> _HALF)) * _SECOND
    total = (total ^ (total >> _HALF)) * _THIRD
    return np.float64(total >> _UNUSED)


if not COMPILED:  # NumPy warns of products that wrap around, which these are to do
    digest = np.errstate(over="ignore")(digest)


@function
def place_of(known, h):  # type: ignore[no-untyped-def]
    """The number of fingerprints that are smaller. NumPy has a search, which takes Numba a tenth of a second to compile."""
    at, end = 0, KEPT
    while at < end:
        middle = (at + end) // 2
        if abs(known[middle]) < h:
            at = middle + 1
        else:
            end = middle
    return at


@function
def take(known, h):  # type: ignore[no-untyped-def]
    """Take a fingerprint into the sample; whether so many came before that a later pass has begun."""
    at = place_of(known, h)
    if at < KEPT and abs(known[at]) == h:
        if known[at] > 0.0:
            known[at] = -h
            known[FOUND] += 1.0
    elif at < KEPT:
        for k in range(KEPT - 1, at, -1):
            known[k] = abs(known[k - 1])
        for k in range(at):
            known[k] = abs(known[k])
        known[at], known[FOUND] = h, 0.0
    return known[FOUND] >= ENOUGH


@function
def comes_again(rows, i, known):  # type: ignore[no-untyped-def]
    """Take row i into the sample; whether a later pass has begun."""
    first = digest(rows, i, _FEW) * 2.0**-26
    return first <= abs(known[KEPT - 1]) and take(known, first + (digest(rows, i, _ALL) + 0.5) * 2.0**-52)


@lean_kernel
def look(rows, s, known):  # type: ignore[no-untyped-def]
    """Take rows of weights s into the sample, up to the one with which a later pass has begun: its place, or n."""
    rows, s, known = borrowed((rows, s, known))
    for i in range(s.shape[0]):
        if s[i] > 0.0 and comes_again(rows, i, known):
            return i
    return s.shape[0]
