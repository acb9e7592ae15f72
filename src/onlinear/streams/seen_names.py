"""The names of hashed categories and crosses of a table, each kept when it first appears, up to ``MOST_SEEN`` in all.

A table of hashes says which are known, so a name that comes again costs one look. Of two names with one hash the first is kept:
they share their column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from onlinear.compiled import function, kernel
from onlinear.streams.column_arrays import Parts
from onlinear.streams.encoding import INDICATOR, MOST_SEEN, TEXT, Encoding, category

SLOTS = 2 * MOST_SEEN  # a power of 2
_ONE, _LAST, _LEAST = np.uint64(1), np.uint64(SLOTS - 1), np.uint32(1)  # a free slot holds 0


class SeenNames:
    """Keeps the new names of each block in ``Encoding.seen``, row by row, in a row those of text before those of crosses."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._table: np.ndarray | None = None
        place = {feature.name: j for j, feature in enumerate(encoding.features)}
        rank = {feature: k for k, feature in enumerate(encoding.numeric)} | {f: k for k, f in enumerate(encoding.texts)}
        self._rank = np.array([rank[feature] for feature in encoding.features])
        self._is_text = np.array([feature.kind == TEXT for feature in encoding.features])
        sides = [(place[f.name],) * 2 for f in encoding.texts] + [(place[a], place[b]) for a, b in encoding.interactions]
        self._sides = np.array(sides).reshape(-1, 2)  # the features that each entry of a row is made of

    def note(self, parts: Parts, hashes: np.ndarray, values: np.ndarray) -> None:
        """Keep the names of these entries; a value of 0 is no entry."""
        seen, texts = self._encoding.seen, len(self._encoding.texts)
        if self._table is None:
            self._table, known = np.zeros(SLOTS, np.uint32), np.array([seen.hashes], np.uint32)
            _find_new(known, np.ones(known.shape), 1, known.size, 0, self._table, np.empty((2, known.size), np.int64))
        room = min(max(0, MOST_SEEN - len(seen.names)), hashes.size)
        found = np.empty((2, room), np.int64)
        few = max(0, MOST_SEEN // 2 - len(seen.names))
        count = _find_new(hashes, values, texts, room, few, self._table, found)
        if not count:
            return
        rows, entries = found[:, :count]
        crossed = entries >= texts
        names = np.array(self._labels(parts, self._sides[entries, 0], rows), object)
        seconds = self._labels(parts, self._sides[entries[crossed], 1], rows[crossed])
        names[crossed] = [f"{one} x {other}" for one, other in zip(names[crossed], seconds, strict=True)]
        seen.hashes.extend(hashes[entries, rows].tolist())
        seen.names.extend(names.tolist())

    def _labels(self, parts: Parts, features: np.ndarray, rows: np.ndarray) -> list[str]:
        """What features are called in rows."""
        names, texts, ranks = [f.name for f in self._encoding.features], self._is_text[features], self._rank[features]
        places = ranks[texts] * parts.numbers.shape[1] + rows[texts]
        held = iter(parts.texts.take(pa.array(places)).to_pylist() if len(places) else ())
        missing = np.zeros(len(features), bool)
        if self._encoding.missing.numbers == INDICATOR:
            missing[~texts] = parts.numbers[len(self._encoding.numeric) + ranks[~texts], rows[~texts]] != 0.0
        return [
            category(names[j], next(held) if text else None) if text or gone else names[j]
            for j, text, gone in zip(features.tolist(), texts.tolist(), missing.tolist(), strict=True)
        ]


@function
def _slot(table, hashed):  # type: ignore[no-untyped-def]
    """Where the open table holds a hash, or is free for it."""
    at = np.uint64(hashed) & _LAST
    while table[at] != 0 and table[at] != hashed:
        at = (at + _ONE) & _LAST
    return at


@kernel
def _find_new(hashes, values, texts, room, few, table, found):  # type: ignore[no-untyped-def]
    """Put new hashes into the open table and their rows and places into ``found``, while there is room. Returns their count.

    There is room for ``room``, and for entries from ``texts`` on while there are fewer than ``few``.
    """
    fresh = np.zeros(hashes.shape[1], np.bool_)  # rows with new hashes: first found column by column, as they lie in memory
    for k in range(hashes.shape[0]):
        if room > 0 and (k < texts or few > 0):
            for i in range(hashes.shape[1]):
                fresh[i] |= values[k, i] != 0.0 and table[_slot(table, max(hashes[k, i], _LEAST))] == 0
    count = 0
    for i in range(hashes.shape[1]):
        if fresh[i]:
            for k in range(hashes.shape[0]):
                if count < (room if k < texts else min(room, few)) and values[k, i] != 0.0:
                    h = max(hashes[k, i], _LEAST)
                    at = _slot(table, h)
                    if table[at] == 0:
                        table[at] = h
                        found[0, count], found[1, count] = i, k
                        count += 1
    return count
