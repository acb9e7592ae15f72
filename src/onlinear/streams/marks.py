"""Columns of a CSV file that are text though they hold numbers: among marks such as ``?``, or written as ``0,5`` or ``$1``; and
columns that number the rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onlinear.compiled.calls import EXACT

NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")  # unquoted texts of a CSV file that are missing values
MOST = 3  # values that are no numbers: more are no marks but text
SHARE = 0.5  # of the values that are numbers: where fewer are, the column is text
FEWEST = 10  # values, before they say anything
PROBES = 5  # values of which one must be a number
LONGEST = 16  # characters of a mark
LARGEST_ID = 2**64  # no number of 64 bits is as large
INDEX = ("", "__index_level_0__")  # what pandas calls the numbers of rows that it writes to CSV and Parquet files
POINT, COMMA = ".", ","
DECIMALS = (POINT, COMMA)  # what may stand before the decimals of a number
_NUMBERS = {mark: rf"^\s*[-+]?(\d+[{mark}]?\d*|[{mark}]\d+)([eE][-+]?\d+)?\s*$" for mark in DECIMALS}
_SPACE = " \t\u00a0\u2009\u202f"
MINUS = "\u2212"  # of typesetting, no hyphen
_SIGN, _MONEY = f"[-+{MINUS}]?", "$€£¥¢₩₪₫₱₹₺₽₿"
_DIGITS = rf"\d{{1,3}}([.,'’_{_SPACE}]\d{{3}})+|\d{{1,2}}(,\d{{2}})+,\d{{3}}|\d*"
_DRESSED = (  # a number with a currency, a percent sign, groups of digits, another minus or another sign before its decimals
    rf"^[{_SPACE}(]*{_SIGN}[{_SPACE}]*[{_MONEY}]?[{_SPACE}]*{_SIGN}({_DIGITS})([.,]\d+)?"
    rf"[{_SPACE}]*[%{_MONEY}]?[{_SPACE})]*$"
)
_BEFORE_UNIT = rf"^[{_SPACE}]*{_SIGN}\d+([.,]\d+)?[{_SPACE}]*"
_UNIT = rf"[°µ]?[A-Za-z]{{1,10}}\.?[{_SPACE}]*$"
_LARGE = re.compile(rb"(?<![\d.])\d{16,}(?![\d.eE])")  # digits of a whole number that a double may not hold
_GROUPED = rf"^\s*{_SIGN}[1-9]\d{{0,2}}[.,]\d{{3}}\s*$"  # such as 1,234: what the comma is there for cannot be seen


def as_decimal(text: str | None) -> str:
    """What stands before decimals, as it was asked for. Raises ValueError for anything but a point or a comma."""
    if text not in (None, *DECIMALS):
        raise ValueError(f"decimal must be '.' or ',', got {text!r}.")
    return text or POINT


def marks_among_numbers(batch: Any, decimal: str) -> dict[str, tuple[str, ...]]:
    """The columns of text that hold numbers but for a few values, with these values; for numbers written otherwise, one."""
    found = {name: _marks(array, _NUMBERS[decimal]) for name, array in zip(batch.schema.names, batch.columns, strict=True)}
    return {name: marks for name, marks in found.items() if marks}


def numbers_rounded(text: bytes, batch: Any) -> dict[str, tuple[str, ...]]:
    """The columns of the first rows of a text that hold whole numbers beyond 2^53, with one: doubles take several for one."""
    if not _LARGE.search(text):
        return {}
    found = {name: _beyond(text, array) for name, array in zip(batch.schema.names, batch.columns, strict=True)}
    return {name: numbers for name, numbers in found.items() if numbers}


def _beyond(text: bytes, array: Any) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_integer(array.type) or pa.types.is_float64(array.type)):
        return ()
    if pa.types.is_float64(array.type) and not pc.all(pc.equal(pc.floor(array), array)).as_py():
        return ()
    bounds = pc.min_max(array).as_py()
    largest = max((held for held in bounds.values() if held is not None), key=abs, default=0)
    if not EXACT < abs(largest) <= LARGEST_ID:
        return ()
    whole = (digits.decode() for digits in _LARGE.findall(text) if float(digits) == abs(largest))
    written = str(int(abs(largest))) if isinstance(largest, int) else next(whole, str(int(abs(largest))))
    return (f"-{written}" if largest < 0 else written,)


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
    dressed = pc.or_(dressed, _have_one_unit(others))
    rest = pc.unique(others.filter(pc.invert(dressed)))
    numbers = len(array) - len(others) + (pc.sum(dressed).as_py() or 0)
    if numbers < SHARE * len(array) or len(rest) > MOST:
        return ()
    marks = _telling(others.filter(dressed)) if numbers > len(array) - len(others) else rest
    return tuple(marks.to_pylist()) if all(len(mark.as_py()) <= LONGEST for mark in marks) else ()


def _have_one_unit(texts: Any) -> Any:
    """Which texts are a number and a unit, such as ``5 kg``, where that is the same for all of them; else none is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, _BEFORE_UNIT + _UNIT)
    units = pc.unique(pc.replace_substring_regex(texts.filter(found), _BEFORE_UNIT, ""))
    return found if len(units) == 1 else pa.repeat(False, len(texts))


def _telling(dressed: Any) -> Any:
    """The first number that shows how it is written, which ``1,234`` does not; else the first."""
    import pyarrow.compute as pc

    plain = dressed.filter(pc.invert(pc.match_substring_regex(dressed, _GROUPED)))
    return (plain if len(plain) else dressed).slice(0, 1)


def _may_be_numbers(array: Any) -> bool:
    """Whether some of a few values, evenly spaced, are numbers: of most columns of text none is, and this costs least."""
    places = range(0, len(array), max(1, len(array) // PROBES))
    return any(is_dressed(text) or re.match(_NUMBERS[POINT], text) for text in (array[k].as_py() for k in places) if text)


def is_dressed(text: str) -> bool:
    """Whether a text is a number with other characters, such as a currency, a unit or a decimal comma."""
    return any(mark.isdigit() for mark in text) and bool(re.match(_DRESSED, text) or re.match(_BEFORE_UNIT + _UNIT, text))


def is_plain_number(text: str) -> bool:
    """Whether a text is a number with a point before its decimals, if it has some."""
    return bool(re.match(_NUMBERS[POINT], text))


def has_decimal_comma(marks: Sequence[str]) -> bool:
    """Whether what was found in a column is a number with a comma before its decimals, not between groups of digits."""
    return len(marks) == 1 and other_decimal(marks[0], POINT) is not None and not may_be_grouped(marks[0])


def may_be_grouped(text: str) -> bool:
    """Whether a text is a number such as ``1,234``: with decimals, or with digits in groups."""
    return bool(re.match(_GROUPED, text))


def of_number(text: str, decimal: str, option: str) -> str | None:
    """What to do about a number that is written otherwise, as words; None for what is no number.

    ``decimal`` stands before decimals; ``option`` is what reads the other mark there.
    """
    if other := other_decimal(text, decimal):
        mark = "comma" if other == COMMA else "point"
        grouped = f"if the {mark} stands between groups of digits, write plain numbers, such as 1234.5; "
        return f"{grouped if may_be_grouped(text) else ''}if the {mark} stands before decimals, add {option}"
    if not is_dressed(text):
        return None
    if MINUS in text:
        return f"the minus is {MINUS} (U+2212), and no hyphen: write numbers with -"
    return "if they are amounts, write them as plain numbers, such as 1234.5"


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
    """What to say of features that are categories for a few marks only, or numbers that doubles do not hold, in the command's
    words or Python's."""
    return [_remark(name, found, nulls, command=command) for name, found in marks.items()]


def _remark(name: str, found: Sequence[str], nulls: Sequence[str], *, command: bool) -> str:
    text = f"--text {shlex.quote(name)}" if command else f"text={[name]}"
    if is_plain_number(found[0]):
        numbers = f"--numbers {shlex.quote(name)}" if command else f"numbers={[name]}"
        return (
            f"The column {name!r} is read as numbers: it holds {found[0]}, and beyond 2^53 several numbers are read as one. "
            f"If they name something, add {text}; if they are amounts, {numbers}."
        )
    return (
        f"The column {name!r} is read as categories: it holds {among(found)}. {_remedy(found, nulls, command=command)}; "
        f"if these are categories, {text}."
    )


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
    of_first = of_number(marks[0], POINT, f"--decimal {COMMA}" if command else f"decimal={COMMA!r}")
    if of_first is not None:
        return of_first[0].upper() + of_first[1:]
    return f"If that is a missing value, add {as_nulls(marks, nulls, command=command)}"
