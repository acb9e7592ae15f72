"""The names of the features of one line of Vowpal Wabbit text, by the columns that ``vowpal`` gives them.

A feature is called by its key, ``namespace^name`` or ``name``; a cross of two by both: ``user^ann x ad^shoes``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from onlinear.streams.hashing import crossed_hash, key_hash

BLANKS = re.compile(rb"[ \t]+")
Feature = tuple[str, str, int]  # its namespace, its key, its hash


def names_of_line(line: bytes, hash_bits: int, pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """The name of each column in which a line has an entry; that of a column which several features share has them all.

    ``pairs``: the namespaces that are crossed.
    """
    features, mask = _features_of(line), (1 << hash_bits) - 1
    named = [(h, key) for _, key, h in features]
    for one, other in combinations(features, 2) if pairs else ():
        if any(_is_pair(one[0], other[0], *pair) for pair in pairs):
            named.append((crossed_hash(one[2], other[2]), f"{one[1]} x {other[1]}"))
    found: dict[int, list[str]] = {}
    for h, name in named:
        called = found.setdefault(h & mask, [])
        called += [name] if name not in called else []
    return {column: " + ".join(called) for column, called in found.items()}


def _features_of(line: bytes) -> list[Feature]:
    """The features of a line, in their order."""
    found = []
    for part in line.removesuffix(b"\r").split(b"|")[1:]:
        namespace, *tokens = BLANKS.split(part)
        space = namespace.partition(b":")[0]
        for token in tokens:
            if token:
                key = (space + b"^" if space else b"") + token.partition(b":")[0]
                found.append((space.decode("utf-8", "replace"), key.decode("utf-8", "replace"), key_hash(key)))
    return found


def _is_pair(one: str, other: str, first: str, second: str) -> bool:
    """Whether two namespaces are those of a pair, in any order."""
    return (_is_named(one, first) and _is_named(other, second)) or (_is_named(one, second) and _is_named(other, first))


def _is_named(namespace: str, pattern: str) -> bool:
    """Whether a namespace has a name, or begins as a pattern that ends with a star."""
    return namespace.startswith(pattern[:-1]) if pattern.endswith("*") else namespace == pattern
