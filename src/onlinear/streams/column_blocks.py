"""Turns the arrays of a table's columns into a block: text is hashed or numbered, and each row gets its entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from onlinear.compiled import kernel
from onlinear.rows import Rows, plain
from onlinear.streams.blocks import Block, StreamError
from onlinear.streams.column_arrays import Parts
from onlinear.streams.crosses import Crosses
from onlinear.streams.encoding import INDICATOR, MOST_BYTES, MOST_VALUES, Encoding, room_for
from onlinear.streams.hashing import hash_texts, key_hash, text_buffers, tidy
from onlinear.streams.ngrams import Grams, WordGrams
from onlinear.streams.seen_names import SeenNames


class BlockMaker:
    """Makes blocks by an encoding. ``labels`` numbers the target's classes and grows; ``name`` is the stream's, for errors."""

    def __init__(self, encoding: Encoding, labels: dict[str, int], name: str, keeps_names: bool) -> None:
        self._encoding, self._labels, self._name = encoding, labels, name
        self._label_room = MOST_BYTES
        self._keys = Keys.of(encoding)
        self._grams = WordGrams(encoding)
        self._crosses, self._names = Crosses(encoding), SeenNames(encoding) if keeps_names else None

    def make(self, parts: Parts, rows: np.ndarray, name: str) -> Block:
        """The block of these columns; ``rows`` are the rows' numbers in the file ``name``."""
        encoding, n, texts = self._encoding, len(rows), len(self._encoding.texts)
        named = texts + len(encoding.interactions)
        columns, values = np.empty((named, n), np.uint32), np.empty((named, n))
        grams = self._grams.find(parts.documents, n)
        if encoding.hashes:
            self._hash(parts, columns, values, grams)
        elif texts:
            _number_columns(encoding, [parts.texts.slice(k * n, n) for k in range(texts)], columns, values, name)
        room = n * (len(parts.numbers) + named) + len(grams.hashes)
        found = Rows(np.zeros(n + 1, np.uint64), np.empty(room, np.uint32), np.empty(room))
        nnz = _pack(parts.numbers, columns, values, grams.starts, grams.hashes, grams.signs, *found)
        found = Rows(found.indptr, found.indices[:nnz], found.values[:nnz])
        found = tidy(found) if encoding.texts or encoding.hashes else found
        size = int(found.indices.max()) + 1 if len(found.indices) else 0
        largest = float(max(found.values.max(), -found.values.min())) if size else 0.0
        y = parts.y if parts.labels is None else self._number_labels(parts.labels)
        seen = len(encoding.seen.names)
        return Block(found, y, rows.astype(np.int64), (name,), size, largest, None, parts.weights, seen=seen)

    def _hash(self, parts: Parts, columns: np.ndarray, values: np.ndarray, grams: Grams) -> None:
        """Write the entries of all text features, then those of the crosses; keep the names of new ones. Hashes become columns,
        those of the n-grams too."""
        encoding, texts = self._encoding, len(self._encoding.texts)
        if texts:
            _hash_columns(encoding, self._keys, parts.texts, columns[:texts], values[:texts])
        if encoding.interactions:
            self._crosses.write(parts.numbers, columns[:texts], values[:texts], columns[texts:], values[texts:])
        if self._names is not None:
            self._names.note(parts, columns, values, grams, self._grams)
        for hashes in (columns, grams.hashes):
            hashes &= np.uint32((1 << encoding.hash_bits) - 1)
            hashes += np.uint32(encoding.offset)

    def _number_labels(self, labels: Any) -> np.ndarray:
        """The labels as places among the classes' names; a new name gets the next place."""
        coded = labels.dictionary_encode()
        for label in coded.dictionary.to_pylist():
            if label not in self._labels:
                if len(self._labels) >= MOST_VALUES:
                    raise StreamError(f"{self._name}: expected at most {MOST_VALUES} classes in the target, got one more.")
                self._label_room -= room_for(label)
                if self._label_room < 0:
                    held = f"classes of at most {MOST_BYTES:,} bytes in all in the target"
                    raise StreamError(f"{self._name}: expected {held}, got more: is this the column to predict?")
                self._labels[label] = len(self._labels)
        places = np.array([self._labels[label] for label in coded.dictionary.to_pylist()] + [np.nan])
        return places[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]


class Keys(NamedTuple):
    """The beginning ``name=`` of the hashed keys of each text feature: ``text[starts[k] : starts[k + 1]]`` for feature k."""

    text: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, encoding: Encoding) -> Keys:
        """The keys of an encoding."""
        parts = [f"{feature.name}=".encode() for feature in encoding.texts]
        return cls(plain(np.frombuffer(b"".join(parts), np.uint8)), np.cumsum([0, *map(len, parts)]))


def _hash_columns(encoding: Encoding, keys: Keys, array: Any, hashes: np.ndarray, values: np.ndarray) -> None:
    """Write the hashes and the entries of all text features."""
    content, offsets, present = text_buffers(array)
    with np.errstate(over="ignore"):
        hash_texts(*keys, content, offsets, present, hashes, values)
    if encoding.missing.categories == INDICATOR and array.null_count:
        missing = ~present.reshape(hashes.shape)
        for k in np.flatnonzero(missing.any(axis=1)):
            h = key_hash(encoding.texts[k].name)
            hashes[k, missing[k]] = h
            values[k, missing[k]] = -1.0 if h >> 31 else 1.0


def _number_columns(encoding: Encoding, arrays: Sequence[Any], columns: np.ndarray, values: np.ndarray, source: str) -> None:
    """Write the entries of all text features by the dictionary; new values get their columns row by row."""
    n, indicator = columns.shape[1], encoding.missing.categories == INDICATOR
    coded = []
    new: list[tuple[int, int, str | None]] = []
    for place, array in enumerate(arrays):
        dictionary = array.dictionary_encode()
        known: list[str | None] = dictionary.dictionary.to_pylist()
        codes = pc.fill_null(dictionary.indices, len(known)).to_numpy(zero_copy_only=False)
        firsts = np.full(len(known) + 1, n)
        firsts[codes[::-1]] = np.arange(n)[::-1]  # of repeated places the last assignment holds: the first row
        known.append(None)
        there = [k for k in range(len(known)) if firsts[k] < n and (indicator or k < len(known) - 1)]
        new += [(int(firsts[k]), place, known[k]) for k in there if not encoding.has_column(place, known[k])]
        coded.append((codes, known, there))
    for _, place, value in sorted(new, key=lambda item: item[:2]):
        try:
            encoding.number(place, value)
        except ValueError as error:
            raise StreamError(f"{source}: {error}.") from None
    for place, (codes, known, there) in enumerate(coded):
        numbers = np.zeros(len(known), np.uint32)
        for k in there:
            numbers[k] = encoding.number(place, known[k])
        columns[place] = numbers[codes]
        values[place] = 1.0 if indicator else codes < len(known) - 1


@kernel
def _pack(numbers, columns, entries, starts, grams, signs, indptr, indices, values):  # type: ignore[no-untyped-def]
    """The entries of each row that are not 0: numbers first, then texts and crosses, then n-grams."""
    to = 0
    for i in range(indptr.shape[0] - 1):
        for j in range(numbers.shape[0]):
            x = numbers[j, i]
            if x != 0.0:
                indices[to] = j
                values[to] = x
                to += 1
        for j in range(columns.shape[0]):
            x = entries[j, i]
            if x != 0.0:
                indices[to] = columns[j, i]
                values[to] = x
                to += 1
        for e in range(starts[i], starts[i + 1]):
            indices[to] = grams[e]
            values[to] = signs[e]
            to += 1
        indptr[i + 1] = to
    return to
