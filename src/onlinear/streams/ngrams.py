"""Word n-grams of a text column: an entry for each sequence of up to N words that follow each other.

A word is a run of letters, digits, underscores and bytes outside ASCII; ASCII letters become small. The entry of the words
w_1 ... w_n is that of a category whose value is the words with one blank between (``hashing``): its key is
``column=w_1 ... w_n``. A sequence that a row has several times has the sum of its entries. A missing text that has an indicator
has the key ``column``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows import plain
from onlinear.streams.encoding import INDICATOR, Encoding, category
from onlinear.streams.hashing import TOP_BIT, absorb, finish, key_hash, text_buffers

_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_BLANK, _ONE, _ZERO = np.uint64(ord(" ")), np.uint64(1), np.uint64(0)


class Grams(NamedTuple):
    """The entries of some rows: those of row i are ``hashes[starts[i] : starts[i + 1]]``, column after column.

    ``words[e]`` says what entry e is made of: its text column, and where its words begin and end in the text of that column.
    """

    starts: np.ndarray
    hashes: np.ndarray
    signs: np.ndarray
    words: np.ndarray
    texts: tuple[np.ndarray, ...]


class WordGrams:
    """Finds the n-grams of an encoding's text columns."""

    def __init__(self, encoding: Encoding) -> None:
        self._columns = encoding.documents
        self._most = [encoding.ngrams[feature.name] for feature in self._columns]
        self._keys = [plain(np.frombuffer(f"{feature.name}=".encode(), np.uint8)) for feature in self._columns]
        self._missing = [key_hash(feature.name) for feature in self._columns]
        self._indicator = encoding.missing.categories == INDICATOR

    def find(self, arrays: Sequence[Any], n: int) -> Grams:
        """The n-grams of n rows, from the text columns as large_string arrays."""
        held = [text_buffers(array) for array in arrays]
        return self.find_in([text for text, _, _ in held], [ends for _, ends, _ in held], [there for _, _, there in held], n)

    def find_in(self, texts: Sequence[np.ndarray], ends: Sequence[np.ndarray], present: Sequence[np.ndarray], n: int) -> Grams:
        """The n-grams of n rows: column d has in row i the text ``texts[d][ends[d][i] : ends[d][i + 1]]``, if ``present``."""
        counts = np.zeros((len(self._columns), n), np.int64)
        for d, most in enumerate(self._most):
            _count(texts[d], ends[d], present[d], most, int(self._indicator), counts[d])
        starts = np.append(0, np.cumsum(counts.sum(axis=0)))
        total = int(starts[-1])
        found = Grams(starts, np.empty(total, np.uint32), np.empty(total), np.empty((total, 3), np.int64), tuple(texts))
        firsts = starts[:-1] + np.cumsum(counts, axis=0) - counts
        with np.errstate(over="ignore"):
            for d, most in enumerate(self._most):
                missing = np.uint64(self._missing[d])
                rows = texts[d], ends[d], present[d], counts[d], firsts[d]
                _write(self._keys[d], missing, d, most, *rows, found.hashes, found.signs, found.words)
        return found

    def name(self, grams: Grams, entry: int) -> str:
        """What an entry is called."""
        d, begin, end = grams.words[entry].tolist()
        words = _WORD.findall(grams.texts[d][begin:end].tobytes().lower())
        return category(self._columns[d].name, b" ".join(words).decode() if words else None)


@function
def _is_word(byte):  # type: ignore[no-untyped-def]
    small = byte | 32
    return (97 <= small <= 122) or (48 <= byte <= 57) or byte == 95 or byte >= 128


@function
def _word_end(text, i, stop):  # type: ignore[no-untyped-def]
    while i < stop and _is_word(text[i]):
        i += 1
    return i


@function
def _word_begin(text, i, stop):  # type: ignore[no-untyped-def]
    while i < stop and not _is_word(text[i]):
        i += 1
    return i


@function
def _absorb_word(text, i, stop, h, k, shift):  # type: ignore[no-untyped-def]
    """Absorb the word ``text[i:stop]`` with small letters."""
    for j in range(i, stop):
        byte = text[j]
        if 65 <= byte <= 90:
            byte += 32
        h, k, shift = absorb(h, k, shift, np.uint64(byte))
    return h, k, shift


@kernel
def _count(text, ends, present, most, of_missing, counts):  # type: ignore[no-untyped-def]
    """Count the n-grams of each row: of m words, m of one word, m - 1 of two, ..."""
    for i in range(counts.shape[0]):
        if not present[i]:
            counts[i] = of_missing
            continue
        words, stop = 0, ends[i + 1]
        at = _word_begin(text, ends[i], stop)
        while at < stop:
            words += 1
            at = _word_begin(text, _word_end(text, at, stop), stop)
        for n in range(min(most, words)):
            counts[i] += words - n


@kernel
def _write(key, missing, column, most, text, ends, present, counts, firsts, hashes, signs, words):  # type: ignore[no-untyped-def]
    """Write the n-grams of each row: those that begin with its first word, then those that begin with its second, ..."""
    h0 = k0 = shift0 = _ZERO
    for j in range(key.shape[0]):
        h0, k0, shift0 = absorb(h0, k0, shift0, np.uint64(key[j]))
    for i in range(counts.shape[0]):
        to = firsts[i]
        if not present[i]:
            if counts[i] > 0:
                hashes[to] = np.uint32(missing)
                signs[to] = -1.0 if missing >> TOP_BIT else 1.0
                words[to, 0], words[to, 1], words[to, 2] = column, 0, 0
            continue
        stop = ends[i + 1]
        first = _word_begin(text, ends[i], stop)
        while first < stop:
            h, k, shift = h0, k0, shift0
            length = np.uint64(key.shape[0])
            begin, n = first, 0
            end = following = _word_end(text, first, stop)
            while begin < stop and n < most:
                if n > 0:
                    h, k, shift = absorb(h, k, shift, _BLANK)
                    length += _ONE
                    end = _word_end(text, begin, stop)
                h, k, shift = _absorb_word(text, begin, end, h, k, shift)
                length += np.uint64(end - begin)
                found = finish(h, k, shift, length)
                hashes[to] = np.uint32(found)
                signs[to] = -1.0 if found >> TOP_BIT else 1.0
                words[to, 0], words[to, 1], words[to, 2] = column, first, end
                to += 1
                n += 1
                begin = _word_begin(text, end, stop)
            first = _word_begin(text, following, stop)
