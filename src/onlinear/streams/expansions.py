"""Which columns become word n-grams or bins: what ``ngrams=`` and ``bins=`` ask for, by column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from onlinear.streams.encoding import HASH, MOST_EDGES, MOST_WORDS, NUMBER, TEXT, Feature, is_ascending, match_columns


def words_of_columns(features: Sequence[Feature], asked: Any, categories: str) -> dict[str, int]:
    """The text columns that are read as words, and the most words of an n-gram, in the order of the table.

    ``asked``: a mapping from names or patterns, texts as ``name:2``, or a number for all text columns.

    Raises ValueError for a name that no text column has, and one-hot text.
    """
    texts = [feature.name for feature in features if feature.kind == TEXT]
    found: dict[str, int] = {}
    for pattern, words in _by_column("ngrams", asked):
        if not isinstance(words, int) or not 1 <= words <= MOST_WORDS:
            got = (", ".join(map(str, words)) or "none") if isinstance(words, list) else words
            wanted = f"expected a whole number of words from 1 to {MOST_WORDS}, as in 'review:2'"
            raise ValueError(f"ngrams: {wanted}, got {got} for {pattern!r}.")
        found |= dict.fromkeys(match_columns(texts, [pattern], "ngrams", "text column"), words)
    if found and categories != HASH:
        raise ValueError("ngrams are hashed: leave categories='one-hot' out.")
    return {name: found[name] for name in texts if name in found}


def bins_of_columns(features: Sequence[Feature], asked: Any) -> dict[str, int | list[float]]:
    """The numeric columns that are put into bins, and the edges or the number of bins, in the order of the table.

    ``asked``: a mapping from names or patterns to edges or a number, or texts as ``age:10`` and ``age:18:30:65``.

    Raises ValueError for a name that no numeric column has, and edges that do not ascend.
    """
    numbers = [feature.name for feature in features if feature.kind == NUMBER]
    found: dict[str, int | list[float]] = {}
    for pattern, given in _by_column("bins", asked):
        edges = [float(edge) for edge in given] if isinstance(given, list) else []
        if isinstance(given, int) and not 2 <= given <= MOST_EDGES + 1:
            raise ValueError(f"bins: expected from 2 to {MOST_EDGES + 1:,} bins of {pattern!r}, got {given}.")
        if not isinstance(given, int) and not is_ascending(edges):
            raise ValueError(
                f"bins: expected from 1 to {MOST_EDGES:,} edges of {pattern!r} that ascend, as in 'age:18:30:65', got {edges}."
            )
        chosen = given if isinstance(given, int) else edges
        found |= dict.fromkeys(match_columns(numbers, [pattern], "bins", "numeric column"), chosen)
    return {name: found[name] for name in numbers if name in found}


def has_counts(asked: Any) -> bool:
    """Whether ``bins=`` asks for a number of bins of some column."""
    return any(isinstance(given, int) for _, given in _by_column("bins", asked))


def _by_column(argument: str, asked: Any) -> Iterator[tuple[str, int | list[float]]]:
    """The pairs of a name or pattern and what goes with it: a whole number, or a list of numbers."""
    if isinstance(asked, (str, int, float)):
        asked = [asked]
    for item in asked.items() if isinstance(asked, Mapping) else asked:
        name, given = _split(str(item)) if isinstance(item, (str, int, float)) else item
        numbers: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        if not isinstance(name, str) or not all(isinstance(x, Real) and not isinstance(x, bool) for x in numbers):
            raise ValueError(f"{argument}: expected a name and numbers, as {{'name': 2}} or 'name:2', got {item!r}.")
        yield name, int(given) if isinstance(given, Integral) else numbers


def _split(text: str) -> tuple[str, int | list[float]]:
    """``name:18:30`` as the name and its numbers; numbers alone are for all columns. A whole number alone is a count."""
    pieces = text.split(":")
    numbers: list[str] = []
    while pieces and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", pieces[-1].strip()):
        numbers.insert(0, pieces.pop().strip())
    counts = len(numbers) == 1 and numbers[0].isdigit()
    return ":".join(pieces) or "*", int(numbers[0]) if counts else [float(number) for number in numbers]
