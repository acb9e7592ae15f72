"""The names of hashed categories and crosses of a table, each kept when it first appears, ``MOST_SEEN`` of each kind.

A table of hashes says which are known, so a name that comes again costs one look. Of two names with one hash the first is kept:
they share their column.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled import kernel
from onlinear.streams.column_arrays import Parts
from onlinear.streams.encoding import INDICATOR, MOST_SEEN, TEXT, Encoding, category

SLOTS = 4 * MOST_SEEN  # a power of 2
_ONE, _LAST = np.uint64(1), np.uint64(SLOTS - 1)


class SeenNames:
    """Keeps the new names of each block in ``Encoding.seen``, row by row."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._tables: dict[bool, np.ndarray] = {}
        self._room: dict[bool, int] = {}
        self._kinds = dict(encoding.features)
        self._rank = {feature.name: k for k, feature in enumerate(encoding.texts)}
        self._rank |= {feature.name: k for k, feature in enumerate(encoding.numeric)}

    def note(self, parts: Parts, hashes: np.ndarray, values: np.ndarray) -> None:
        """Keep the names of these entries, those of text before those of crosses; a value of 0 is no entry."""
        encoding, texts, rows = self._encoding, len(self._encoding.texts), hashes.shape[1]
        pairs = [(text.name,) for text in encoding.texts] + list(encoding.interactions)
        own, crossed = self._new(False, hashes[:texts], values[:texts]), self._new(True, hashes[texts:], values[texts:])
        for row, k in sorted([*own, *((row, texts + k) for row, k in crossed)]):
            encoding.seen.append([int(hashes[k, row]), *(self._label(parts, name, row, rows) for name in pairs[k])])

    def _new(self, crossed: bool, hashes: np.ndarray, values: np.ndarray) -> list[tuple[int, int]]:
        """Row and place of the entries whose hashes are not known yet, as far as there is room for their names."""
        if not len(hashes):
            return []
        if crossed not in self._tables:
            known = np.array([self._encoding.seen_hashes(crossed)], np.uint32)
            self._tables[crossed], self._room[crossed] = np.zeros(SLOTS, np.uint32), MOST_SEEN - known.size
            _find_new(known, np.ones(known.shape), self._tables[crossed], np.empty((known.size, 2), np.int64))
        found = np.empty((min(max(0, self._room[crossed]), hashes.size), 2), np.int64)
        count = _find_new(hashes, values, self._tables[crossed], found)
        self._room[crossed] -= count
        return [(row, k) for row, k in found[:count].tolist()]

    def _label(self, parts: Parts, name: str, row: int, rows: int) -> str:
        """What a column is called in a row."""
        rank = self._rank[name]
        if self._kinds[name] == TEXT:
            return category(name, parts.texts[rank * rows + row].as_py())
        indicated = self._encoding.missing.numbers == INDICATOR
        missing = indicated and parts.numbers[len(self._encoding.numeric) + rank, row] != 0.0
        return category(name, None) if missing else name


@kernel
def _find_new(hashes, values, table, found):  # type: ignore[no-untyped-def]
    """Put new hashes into the open table, until ``found`` is full of their rows and places. Returns the count of them."""
    count = 0
    for i in range(hashes.shape[1]):
        for k in range(hashes.shape[0]):
            if count >= found.shape[0]:
                return count
            h = max(hashes[k, i], np.uint32(1))  # 0 is a free slot
            if values[k, i] != 0.0:
                at = np.uint64(h) & _LAST
                while table[at] != 0 and table[at] != h:
                    at = (at + _ONE) & _LAST
                if table[at] == 0:
                    table[at] = h
                    found[count, 0], found[count, 1] = i, k
                    count += 1
    return count
