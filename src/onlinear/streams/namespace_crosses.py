"""Crosses of two namespaces of Vowpal Wabbit text: one entry for each pair of a feature of one and a feature of the other.

The entry of two features with hashes h_a and h_b and values x_a and x_b is that of a cross of two columns (``crosses``): the
product of the values, in the column of ``pair_hash(h_a, h_b)``. Within one namespace each pair of two features is crossed once,
and no feature with itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows import Rows, plain
from onlinear.streams.characters import COLON, SPACE
from onlinear.streams.hashing import TOP_BIT, pair_hash
from onlinear.streams.numbers import ONE

BAR = ord("|")
MOST_CROSSED = 1 << 16  # crosses of features in a row


class NamespacePairs(NamedTuple):
    """The names of namespaces in pairs: name s is ``text[starts[s]:starts[s+1]]``, of all that begin so if ``open_ended[s]``.

    Bit s of a mark says that a namespace has name s. ``partners[s]`` marks the names that name s is paired with.
    """

    text: np.ndarray
    starts: np.ndarray
    open_ended: np.ndarray
    partners: np.ndarray

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> NamespacePairs:
        """Those of some pairs, of at most 64 names."""
        names = sorted({name for pair in pairs for name in pair})
        partners = np.zeros(len(names), np.uint64)
        for first, second in pairs:
            a, b = names.index(first), names.index(second)
            partners[a] |= np.uint64(1 << b)
            partners[b] |= np.uint64(1 << a)
        parts = [name.removesuffix("*").encode() for name in names]
        text = np.frombuffer(b"".join(parts) or b"*", np.uint8)
        ended = np.array([name.endswith("*") for name in names])
        return cls(plain(text), np.cumsum([0, *map(len, parts)]), ended, partners)


class NamespaceCrosses:
    """Adds the crosses of these pairs of namespaces to parsed rows."""

    def __init__(self, pairs: Sequence[tuple[str, str]], hash_bits: int) -> None:
        self._names, self._mask = NamespacePairs.of(pairs), np.uint64((1 << hash_bits) - 1)

    def add(self, text: np.ndarray, spaces: np.ndarray, rows: Rows) -> tuple[Rows, list[tuple[int, int]]]:
        """The rows with their crosses, from rows whose columns are whole hashes; and (row, crosses) of those with too many.

        The latter get none. ``spaces``: where the name of each namespace starts, and its first entry.
        """
        marks, wanted = np.zeros(len(spaces), np.uint64), np.zeros(len(spaces), np.uint64)
        _mark(text, spaces, *self._names, marks, wanted)
        firsts = np.append(spaces[:, 1], len(rows.values))
        counts = np.zeros(len(rows.indptr) - 1, np.int64)
        _count(rows.indptr, firsts, marks, wanted, counts)
        too_long = [(int(row), int(counts[row])) for row in np.flatnonzero(counts > MOST_CROSSED)]
        counts[counts > MOST_CROSSED] = 0
        indptr = rows.indptr.copy()
        indptr[1:] += np.cumsum(counts).astype(np.uint64)
        room = int(indptr[-1])
        found = Rows(indptr, np.empty(room, np.uint32), np.empty(room))
        with np.errstate(over="ignore"):
            _cross(*rows, firsts, marks, wanted, counts, self._mask, *found)
        return found, too_long


@function
def _has_name(text, i, names, start, stop, open_ended):  # type: ignore[no-untyped-def]
    """Whether the namespace at ``i`` is ``names[start:stop]``, or begins so if ``open_ended``."""
    for j in range(start, stop):
        if text[i] != names[j]:
            return False
        i += ONE
    return open_ended or text[i] <= SPACE or text[i] == COLON or text[i] == BAR


@kernel
def _mark(text, spaces, names, starts, open_ended, partners, marks, wanted):  # type: ignore[no-untyped-def]
    """Mark the names that each namespace has, in ``marks``, and those that it is paired with, in ``wanted``."""
    for u in range(spaces.shape[0]):
        for s in range(partners.shape[0]):
            if _has_name(text, np.uint64(spaces[u, 0]), names, starts[s], starts[s + 1], open_ended[s]):
                marks[u] |= ONE << np.uint64(s)
                wanted[u] |= partners[s]


@function
def _past_spaces(firsts, u, end):  # type: ignore[no-untyped-def]
    """The first namespace from ``u`` on whose entries start at ``end`` or later."""
    while u < firsts.shape[0] - 1 and firsts[u] < end:
        u += 1
    return u


@kernel
def _count(indptr, firsts, marks, wanted, counts):  # type: ignore[no-untyped-def]
    """Count the crosses of each row. Entries of namespace u are those from ``firsts[u]`` to ``firsts[u+1]``."""
    begin = 0
    for i in range(counts.shape[0]):
        end = _past_spaces(firsts, begin, np.int64(indptr[i + 1]))
        for u in range(begin, end):
            n = firsts[u + 1] - firsts[u]
            if wanted[u] & marks[u]:
                counts[i] += n * (n - 1) // 2
            for v in range(u + 1, end):
                if wanted[u] & marks[v]:
                    counts[i] += n * (firsts[v + 1] - firsts[v])
        begin = end


@function
def _write_crosses(h, x, hashes, values, begin, end, mask, columns, found, to):  # type: ignore[no-untyped-def]
    """Write the crosses of a feature of hash ``h`` and entry ``x`` with the features begin .. end-1. Returns where they end."""
    for j in range(begin, end):
        other = np.uint64(hashes[j])
        both = pair_hash(h, other)
        product = x * values[j]
        columns[to] = np.uint32(both & mask)
        found[to] = -product if (both ^ h ^ other) >> TOP_BIT else product
        to += 1
    return to


@kernel
def _cross(indptr, hashes, values, firsts, marks, wanted, counts, mask, starts, columns, found):  # type: ignore[no-untyped-def]
    """Write each row's own entries, then its crosses where ``counts`` says that there are any."""
    begin = 0
    for i in range(counts.shape[0]):
        to = np.int64(starts[i])
        for j in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            columns[to] = np.uint32(np.uint64(hashes[j]) & mask)
            found[to] = values[j]
            to += 1
        end = _past_spaces(firsts, begin, np.int64(indptr[i + 1]))
        if counts[i] > 0:
            for u in range(begin, end):
                for v in range(u, end):
                    if wanted[u] & marks[v]:
                        for j in range(firsts[u], firsts[u + 1]):
                            first = j + 1 if u == v else firsts[v]
                            h = np.uint64(hashes[j])
                            to = _write_crosses(h, values[j], hashes, values, first, firsts[v + 1], mask, columns, found, to)
        begin = end
