"""Which pairs of columns or namespaces are crossed: what ``interactions=`` asks for, as a description keeps it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from onlinear.streams.encoding import HASH, MOST_CROSSES, TEXT, Feature, match_columns
from onlinear.text.form import quoted

MOST_NAMES = 64  # of namespaces in pairs: one bit each


def pairs_of_columns(
    features: Sequence[Feature], asked: Any, categories: str, words: Container[str], bins: Container[str]
) -> list[tuple[str, str]]:
    """The pairs of columns that ``asked`` names, each as (first, second) in the order of the table.

    A pattern takes every pair of two different columns that it fits. A pair of one number with itself is its square.
    ``words``: the text columns that are read as words, which are not crossed; ``bins``: the numbers that are put into bins.

    Raises ValueError for a name that no feature has or whose column is read as words, a pair named twice, text crossed with
    itself, and one-hot text.
    """
    place = {feature.name: k for k, feature in enumerate(features) if feature.name not in words}
    found: dict[tuple[str, str], bool] = {}  # with whether the pair was named, not fitted by a pattern
    for first, second in _as_pairs(asked):
        for name in (first, second):
            if name in words:
                raise ValueError(f"interactions: the column {quoted(name)} is read as words (ngrams), which are not crossed.")
        named = first in place and second in place
        fits = [sorted(match_columns(list(place), [name], "interactions"), key=place.__getitem__) for name in (first, second)]
        for a in fits[0]:
            for b in fits[1]:
                pair = (a, b) if place[a] <= place[b] else (b, a)
                if named and found.get(pair):
                    raise ValueError(f"interactions: expected each pair once, got {quoted(first)} with {quoted(second)} twice.")
                if named or a != b:
                    found[pair] = named or found.get(pair, False)
            if len(found) > MOST_CROSSES:
                raise ValueError(f"interactions: expected at most {MOST_CROSSES} pairs, got more.")
    for a, b in found:
        if a == b and (a in bins or features[place[a]].kind == TEXT):
            what = "in bins" if a in bins else "text"
            raise ValueError(f"interactions: {quoted(a)} is {what}, and crossed with itself it says nothing new.")
    if found and categories != HASH:
        raise ValueError("interactions are hashed: leave categories='one-hot' out.")
    return list(found)


def pairs_of_namespaces(asked: Any) -> list[tuple[str, str]]:
    """The pairs of namespaces that ``asked`` names, as they are named: a name that ends with ``*`` is a pattern.

    Raises ValueError for a pair named twice, names that no namespace can have, and more than 64 names.
    """
    found: list[tuple[str, str]] = []
    for first, second in _as_pairs(asked):
        if (first, second) in found or (second, first) in found:
            raise ValueError(f"interactions: expected each pair once, got {quoted(first)} with {quoted(second)} twice.")
        wrong = next((name for name in (first, second) if re.search(r"[\s|:]", name)), None)
        if wrong is not None:
            raise ValueError(f"interactions: expected names of namespaces without blanks, bars and colons, got {wrong!r}.")
        found.append((first, second))
    if (count := len({name for pair in found for name in pair})) > MOST_NAMES:
        raise ValueError(f"interactions: expected at most {MOST_NAMES} names and patterns of namespaces, got {count}.")
    return found


def _as_pairs(asked: Any) -> list[tuple[str, str]]:
    """Pairs as ``("a", "b")`` or ``a:b``; one of the latter may stand alone."""
    if isinstance(asked, str):
        asked = [asked]
    return [_as_pair(item) for item in asked] if isinstance(asked, Iterable) else [_as_pair(asked)]


def _as_pair(asked: Any) -> tuple[str, str]:
    pair = tuple(asked.split(":")) if isinstance(asked, str) else tuple(asked) if isinstance(asked, Iterable) else ()
    if len(pair) != 2 or not all(isinstance(name, str) for name in pair):
        raise ValueError(f"interactions: expected pairs of names, as ('a', 'b') or 'a:b', got {asked!r}.")
    return pair
