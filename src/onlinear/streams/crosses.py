"""Crosses of two columns of a table: one entry for a row, in a hashed column.

Each column of a pair gives its row a hash h and a factor x:

    text                 the hash of ``column=value``; 1
    a number             the hash of ``column``; the value
    missing, indicator   the hash of ``column`` for text, of ``column is missing`` for a number; 1
    a number in bins     as text: the bin is the value
    missing, omit        x = 0

The entry of the pair (a, b) is sign x_a x_b in column q + h mod 2^hash_bits, where h is the MurmurHash3 of the eight bytes of
h_a and h_b, the smaller first, and sign is -1 if its top bit is set. It is the place and sign that a text with this hash has
(``hashing``). A product of 0 is no entry.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled import kernel
from onlinear.streams.encoding import INDICATOR, LARGEST_PRODUCT, TEXT, Encoding
from onlinear.streams.hashing import TOP_BIT, key_hash, pair_hash
from onlinear.streams.row_errors import ColumnGroup, RowErrors
from onlinear.text.form import quoted


class Crosses:
    """The crosses of an encoding, for blocks of rows."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        names = sorted({name for pair in encoding.interactions for name in pair})
        place = {name: k for k, name in enumerate(names)}
        self._pairs = np.array([[place[a], place[b]] for a, b in encoding.interactions], np.int64).reshape(-1, 2)
        rank = {feature: k for k, feature in enumerate(encoding.numeric)} | {f: k for k, f in enumerate(encoding.texts)}
        self._sides = [(feature, rank[feature], place[feature.name]) for feature in encoding.features if feature.name in place]

    def write(
        self, numbers: np.ndarray, hashes: np.ndarray, present: np.ndarray, crossed: np.ndarray, values: np.ndarray
    ) -> None:
        """Write hash and value of cross c in row i to ``crossed[c, i]`` and ``values[c, i]``, 0 for no entry.

        ``numbers``: the numeric columns; ``hashes`` and ``present``: the hash of each text, and 0 where it has no entry.
        """
        shape = len(self._sides), numbers.shape[1]
        codes, factors = np.empty(shape, np.uint32), np.empty(shape)
        for feature, rank, at in self._sides:
            if feature.kind == TEXT or feature.name in self._encoding.bins:
                codes[at], factors[at] = hashes[rank], present[rank] != 0.0
            else:
                self._write_number(feature.name, rank, numbers, codes[at], factors[at])
        with np.errstate(over="ignore"):
            _cross(codes, factors, self._pairs, crossed, values)

    def _write_number(self, name: str, rank: int, numbers: np.ndarray, codes: np.ndarray, factors: np.ndarray) -> None:
        codes[:], factors[:] = key_hash(name), numbers[rank]
        if self._encoding.missing.numbers == INDICATOR:
            missing = numbers[len(self._encoding.numeric) + rank] != 0.0
            codes[missing], factors[missing] = key_hash(f"{name} is missing"), 1.0


def note_large_products(encoding: Encoding, numbers: np.ndarray, errors: RowErrors) -> None:
    """Note the rows where the product of two numbers that are crossed is beyond ``LARGEST_PRODUCT``."""
    rank = {feature.name: k for k, feature in enumerate(encoding.numeric)}
    for a, b in encoding.interactions:
        if a in rank and b in rank:
            with np.errstate(over="ignore"):
                products = numbers[rank[a]] * numbers[rank[b]]
            group = ColumnGroup.of([(rank[b], 0, b)])
            far = ~(np.abs(products) <= LARGEST_PRODUCT) & np.isfinite(numbers[rank[a]]) & np.isfinite(numbers[rank[b]])
            words = f"expected a product of columns {quoted(a)} and {quoted(b)} within {LARGEST_PRODUCT:g}, got one beyond"
            errors.note(group, far, lambda name, at, words=words: words)  # type: ignore[misc]


@kernel
def _cross(codes, factors, pairs, hashes, values):  # type: ignore[no-untyped-def]
    """The entries of all pairs, from the hashes and factors of their columns."""
    for c in range(pairs.shape[0]):
        a, b = pairs[c, 0], pairs[c, 1]
        for i in range(hashes.shape[1]):
            found = pair_hash(np.uint64(codes[a, i]), np.uint64(codes[b, i]))
            x = factors[a, i] * factors[b, i]
            hashes[c, i] = np.uint32(found)
            values[c, i] = -x if found >> TOP_BIT else x
