"""The names of hashed categories, crosses and n-grams of a table, each kept when it first appears, up to ``MOST_SEEN`` in all.

A table of hashes says which are known, so a name that comes again costs one look. Of two names with one hash the first is kept:
they share their column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onlinear.compiled import function, kernel
from onlinear.streams.column_arrays import Parts
from onlinear.streams.encoding import INDICATOR, LONGEST_SEEN, MOST_SEEN, Encoding, as_seen, category
from onlinear.streams.ngrams import Grams, WordGrams

SLOTS = 2 * MOST_SEEN  # a power of 2
_ONE, _LAST, _LEAST = np.uint64(1), np.uint64(SLOTS - 1), np.uint32(1)  # a free slot holds 0


class SeenNames:
    """Keeps the new names of each block in ``Encoding.seen``, row by row, in a row those of text, of crosses, of n-grams."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._table: np.ndarray | None = None
        place = {feature.name: j for j, feature in enumerate(encoding.features)}
        kinds = encoding.numeric, encoding.texts, encoding.documents
        rank = {feature: k for kind in kinds for k, feature in enumerate(kind)}
        self._rank = np.array([rank[feature] for feature in encoding.features])
        texts = set(encoding.texts)
        self._is_text = np.array([feature in texts for feature in encoding.features])
        sides = [(place[f.name],) * 2 for f in encoding.texts] + [(place[a], place[b]) for a, b in encoding.interactions]
        self._sides = np.array(sides, np.int64).reshape(-1, 2)  # the features that each entry of a row is made of

    def note(self, parts: Parts, hashes: np.ndarray, values: np.ndarray, grams: Grams, finder: WordGrams) -> None:
        """Keep the names of these entries and n-grams; a value of 0 is no entry. ``finder``: what found the n-grams."""
        seen, texts = self._encoding.seen, len(self._encoding.texts)
        if self._table is None:
            self._table, known = np.zeros(SLOTS, np.uint32), np.array([seen.hashes], np.uint32)
            none = np.zeros(known.size + 1, np.int64), np.empty(0, np.uint32)
            _find_new(known, np.ones(known.shape), *none, 1, known.size, 0, self._table, np.empty((2, known.size), np.int64))
        room = min(max(0, MOST_SEEN - len(seen.names)), hashes.size + len(grams.hashes))
        found = np.empty((2, room), np.int64)
        few = max(0, MOST_SEEN // 2 - len(seen.names))
        count = _find_new(hashes, values, grams.starts, grams.hashes, texts, room, few, self._table, found)
        if not count:
            return
        rows, entries = found[:, :count]
        names, new = np.empty(count, object), np.empty(count, np.uint32)
        of_words, crossed = entries >= len(hashes), (entries >= texts) & (entries < len(hashes))
        own = ~of_words
        places = grams.starts[rows[of_words]] + entries[of_words] - len(hashes)
        new[of_words], new[own] = grams.hashes[places], hashes[entries[own], rows[own]]
        names[of_words] = [as_seen(finder.name(grams, place)) for place in places.tolist()]
        names[own] = self._labels(parts, self._sides[entries[own], 0], rows[own])
        seconds = self._labels(parts, self._sides[entries[crossed], 1], rows[crossed])
        names[crossed] = [f"{one} x {other}" for one, other in zip(names[crossed], seconds, strict=True)]
        names[own] = [as_seen(name) for name in names[own]]
        seen.hashes.extend(new.tolist())
        seen.names.extend(names.tolist())

    def _labels(self, parts: Parts, features: np.ndarray, rows: np.ndarray) -> list[str]:
        """What features are called in rows, of long names the beginning."""
        texts, ranks, most = self._is_text[features], self._rank[features], LONGEST_SEEN + 1
        names = [f.name[:most] for f in self._encoding.features]
        places, among = np.unique(ranks[texts] * parts.numbers.shape[1] + rows[texts], return_inverse=True)
        held = pc.utf8_slice_codeunits(parts.texts.take(pa.array(places)), 0, most).to_pylist() if len(places) else []
        own = map(held.__getitem__, among.tolist())
        missing = np.zeros(len(features), bool)
        if self._encoding.missing.numbers == INDICATOR:
            missing[~texts] = parts.numbers[len(self._encoding.numeric) + ranks[~texts], rows[~texts]] != 0.0
        return [
            category(names[j], next(own) if text else None) if text or gone else names[j]
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
def _find_new(hashes, values, starts, grams, texts, room, few, table, found):  # type: ignore[no-untyped-def]
    """Put new hashes into the open table and their rows and places into ``found``, while there is room. Returns their count.

    The n-grams of row i, ``grams[starts[i]:starts[i+1]]``, have the places after its other entries. There is room for ``room``,
    and for entries from ``texts`` on while there are fewer than ``few``.
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
        for e in range(starts[i], starts[i + 1]):
            if count < min(room, few):
                h = max(grams[e], _LEAST)
                at = _slot(table, h)
                if table[at] == 0:
                    table[at] = h
                    found[0, count], found[1, count] = i, hashes.shape[0] + e - starts[i]
                    count += 1
    return count
