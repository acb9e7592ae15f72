"""Columns of a CSV file that are text only because a few of their values, marks such as ``?``, are no numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")  # unquoted texts of a CSV file that are missing values
MOST = 3  # values that are no numbers: more are no marks but text
SHARE = 0.5  # of the values that are numbers: where fewer are, the column is text
FEWEST = 10  # values, before they say anything
PROBES = 5  # values of which one must be a number
LONGEST = 16  # characters of a mark
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def marks_among_numbers(batch: Any) -> dict[str, tuple[str, ...]]:
    """The columns of text that hold numbers but for a few values, with these values."""
    found = {name: _marks(array) for name, array in zip(batch.schema.names, batch.columns, strict=True)}
    return {name: marks for name, marks in found.items() if marks}


def _marks(array: Any) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(array.type) or not _may_be_numbers(array):
        return ()
    array = pc.drop_null(array)
    numbers = pc.match_substring_regex(array, _NUMBER)
    count = pc.sum(numbers).as_py() or 0
    if len(array) < FEWEST or count < SHARE * len(array):
        return ()
    others = pc.unique(array.filter(pc.invert(numbers))).to_pylist()
    return tuple(others) if len(others) <= MOST and all(len(other) <= LONGEST for other in others) else ()


def _may_be_numbers(array: Any) -> bool:
    """Whether some of a few values, evenly spaced, are numbers: of most columns of text none is, and this costs least."""
    places = range(0, len(array), max(1, len(array) // PROBES))
    return any(re.match(_NUMBER, text) for text in (array[k].as_py() for k in places) if text is not None)


def quote(marks: Iterable[str]) -> str:
    """Marks in words."""
    return ", ".join(map(repr, marks))


def as_nulls(marks: Iterable[str], nulls: Sequence[str], *, command: bool) -> str:
    """The option that takes marks as missing values too: the empty text and these, or those that were named and these."""
    given = ("",) if tuple(nulls) == NULLS else nulls
    named = list(dict.fromkeys([*given, *marks]))
    return f"--nulls {shlex.quote(','.join(named))}" if command else f"nulls={named!r}"


def remarks(marks: Mapping[str, Sequence[str]], nulls: Sequence[str], *, command: bool) -> list[str]:
    """What to say of features that are categories for a few marks only, in the command's words or Python's."""
    return [
        f"The column {name!r} is read as categories: it holds numbers and {quote(found)}. If that is a missing value, add "
        f"{as_nulls(found, nulls, command=command)}; if these are categories, {'--text ' if command else 'text='}"
        f"{shlex.quote(name) if command else [name]}."
        for name, found in marks.items()
    ]
