"""Columns of a CSV file that are text though they hold numbers: among marks such as ``?``, or written as ``0,5`` or ``$1``; and
columns that number the rows."""

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
INDEX = ("", "__index_level_0__")  # what pandas calls the numbers of rows that it writes to CSV and Parquet files
POINT, COMMA = ".", ","
DECIMALS = (POINT, COMMA)  # what may stand before the decimals of a number
_NUMBERS = {mark: rf"^\s*[-+]?(\d+[{mark}]?\d*|[{mark}]\d+)([eE][-+]?\d+)?\s*$" for mark in DECIMALS}
_SPACE = " \t\u00a0\u202f"
_DRESSED = (  # a number with a currency, a percent sign, groups of digits or another sign before its decimals
    rf"^[{_SPACE}(]*[-+]?[{_SPACE}]*[$€£¥]?[{_SPACE}]*[-+]?(\d{{1,3}}([.,'_{_SPACE}]\d{{3}})+|\d*)([.,]\d+)?"
    rf"[{_SPACE}]*[%$€£¥]?[{_SPACE})]*$"
)


def as_decimal(text: str | None) -> str:
    """What stands before decimals, as it was asked for. Raises ValueError for anything but a point or a comma."""
    if text not in (None, *DECIMALS):
        raise ValueError(f"decimal must be '.' or ',', got {text!r}.")
    return text or POINT


def marks_among_numbers(batch: Any, decimal: str) -> dict[str, tuple[str, ...]]:
    """The columns of text that hold numbers but for a few values, with these values; for numbers written otherwise, one."""
    found = {name: _marks(array, _NUMBERS[decimal]) for name, array in zip(batch.schema.names, batch.columns, strict=True)}
    return {name: marks for name, marks in found.items() if marks}


def _marks(array: Any, number: str) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(array.type) or not _may_be_numbers(array):
        return ()
    array = pc.drop_null(array)
    if len(array) < FEWEST:
        return ()
    plain = pc.match_substring_regex(array, number)
    others = array.filter(pc.invert(plain))
    dressed = pc.and_(pc.match_substring_regex(others, _DRESSED), pc.match_substring_regex(others, r"\d"))
    rest = pc.unique(others.filter(pc.invert(dressed)))
    numbers = len(array) - len(others) + (pc.sum(dressed).as_py() or 0)
    if numbers < SHARE * len(array) or len(rest) > MOST:
        return ()
    marks = others.filter(dressed).slice(0, 1) if numbers > len(array) - len(others) else rest
    return tuple(marks.to_pylist()) if all(len(mark.as_py()) <= LONGEST for mark in marks) else ()


def _may_be_numbers(array: Any) -> bool:
    """Whether some of a few values, evenly spaced, are numbers: of most columns of text none is, and this costs least."""
    places = range(0, len(array), max(1, len(array) // PROBES))
    return any(is_dressed(text) or re.match(_NUMBERS[POINT], text) for text in (array[k].as_py() for k in places) if text)


def is_dressed(text: str) -> bool:
    """Whether a text is a number with other characters, such as a currency or a decimal comma."""
    return bool(re.match(_DRESSED, text)) and any(mark.isdigit() for mark in text)


def is_plain_number(text: str) -> bool:
    """Whether a text is a number with a point before its decimals, if it has some."""
    return bool(re.match(_NUMBERS[POINT], text))


def has_decimal_comma(marks: Sequence[str]) -> bool:
    """Whether what was found in a column is a number with a comma before its decimals."""
    return len(marks) == 1 and other_decimal(marks[0], POINT) is not None


def other_decimal(text: str, decimal: str) -> str | None:
    """The other sign before decimals, where a text is a number with it."""
    other = COMMA if decimal == POINT else POINT
    return other if other in text and re.match(_NUMBERS[other], text) else None


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
        f"The column {name!r} is read as categories: it holds {among(found)}. {_remedy(found, nulls, command=command)}; "
        f"if these are categories, {'--text ' if command else 'text='}{shlex.quote(name) if command else [name]}."
        for name, found in marks.items()
    ]


def remark_on_index(described: Mapping[str, Any] | None, *, command: bool) -> list[str]:
    """What to say of a feature that is pandas' number of the row, by the encoding of a table."""
    features = [] if described is None or described["format"] != "columns" else [name for name, _ in described["features"]]
    return [
        f"The feature {name!r} is what pandas calls the numbers of rows: is it one? Else add "
        f"{'--exclude ' + shlex.quote(name) if command else f'exclude={[name]}'}."
        for name in INDEX
        if name in features
    ]


def among(marks: Sequence[str]) -> str:
    """What a column of text holds, in words."""
    return f"numbers written as {quote(marks)}" if is_dressed(marks[0]) else f"numbers and {quote(marks)}"


def _remedy(marks: Sequence[str], nulls: Sequence[str], *, command: bool) -> str:
    if has_decimal_comma(marks):
        return f"If the comma stands before decimals, add {'--decimal ,' if command else 'decimal=' + repr(COMMA)}"
    if is_dressed(marks[0]):
        return "If they are amounts, write them as plain numbers, such as 1234.5"
    return f"If that is a missing value, add {as_nulls(marks, nulls, command=command)}"
