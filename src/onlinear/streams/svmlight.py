"""svmlight (libsvm) text: ``label index:value index:value ... # comment``, one row per line.

Read in blocks of bounded memory by a compiled parser. A number becomes exactly the double that Python's ``float`` gives:

    m 10^k with m <= 2^53, |k| <= 22   one product or quotient of exact doubles                     (Clinger, PLDI 1990)
    up to 19 digits, -250 <= k <= 280  double-double product with a tabulated power; accepted where the result cannot be on
                                       the other side of a tie                                       (Dekker, 1971)
    all others                         ``float`` of the token, after the block

Accepted: blank lines, comments, CRLF, tabs, a missing last newline, ``+1``, a ``qid:`` after the label (ignored). Everything
else raises StreamError as ``file:line: expected ..., got ...``. Entries equal to 0 are no entries.

The first index is an option and never guessed: a file that happens not to use index 0 would be read wrongly. An index 0 in a
file read with ``base=1`` is refused with a hint.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.rows import LARGEST_COLUMN, Rows
from onlinear.streams.encoding import numbered
from onlinear.streams.files import Text, count_byte
from onlinear.streams.lines import BLOCK_BYTES, Lines, Part, block_of, infinite, part_of, refuse_foreign, shown, token_at

ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)
DIGIT0, LOW_BITS, EXACT = np.uint64(48), np.uint64(2047), np.uint64(2**53)
NEWLINE, SPACE, TAB, RETURN, HASH, PLUS, MINUS, POINT, COLON = (ord(c) for c in "\n \t\r#+-.:")
LOWER_E, LOWER_D, LOWER_I, LOWER_Q = (ord(c) for c in "ediq")
LOWEST_POWER, HIGHEST_POWER = -250, 280
SPLIT = 134217729.0  # 2^27 + 1
FAR = np.int64(1 << 40)

LAST_INDEX = (1 << 31) - 1

FINE, LATE, BAD = 0, 1, 2
# What a line lacks, in the order the parser meets it.
LABEL, LABEL_END, QID, INDEX, INDEX_END, VALUE, VALUE_END, ORDER, RANGE = range(1, 10)
ROWS, ENTRIES, LATES, LINES, WRONGS, DESCENTS = range(6)


@cache
def powers() -> np.ndarray:
    """10^k as an unevaluated sum of two doubles, in column k - LOWEST_POWER; 10^0 .. 10^22 are doubles themselves."""
    exponents = range(LOWEST_POWER, HIGHEST_POWER + 1)
    exact = [Fraction(10) ** k for k in exponents]
    high = [float(x) for x in exact]
    low = [float(x - Fraction(h)) for x, h in zip(exact, high, strict=True)]
    return np.array([high, low])


@function
def number(text, i, tens):  # type: ignore[no-untyped-def]
    """The number that starts at ``i``: its value, where it ends, and FINE, LATE (left to ``float``) or BAD."""
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += ONE
    first = i
    mantissa = ZERO
    digit = np.uint64(text[i]) - DIGIT0
    while digit < TEN:
        mantissa = mantissa * TEN + digit
        i += ONE
        digit = np.uint64(text[i]) - DIGIT0
    count = np.int64(i - first)
    power = np.int64(0)
    if text[i] == POINT:
        i += ONE
        point = i
        digit = np.uint64(text[i]) - DIGIT0
        while digit < TEN:
            mantissa = mantissa * TEN + digit
            i += ONE
            digit = np.uint64(text[i]) - DIGIT0
        power = -np.int64(i - point)
        count -= power
    if count == 0:
        return 0.0, first, BAD
    if text[i] | 32 == LOWER_E:
        i += ONE
        down = text[i] == MINUS
        if down or text[i] == PLUS:
            i += ONE
        start = i
        exponent = np.int64(0)
        digit = np.uint64(text[i]) - DIGIT0
        while digit < TEN:
            exponent = min(exponent * 10 + np.int64(digit), FAR)
            i += ONE
            digit = np.uint64(text[i]) - DIGIT0
        if i == start:
            return 0.0, first, BAD
        power += -exponent if down else exponent
    if count > 19 and significant(text, first, count) > 19:
        return np.nan, i, LATE
    value = scaled(mantissa, power, tens)
    return -value if negative else value, i, FINE if value == value else LATE


@function
def significant(text, i, count):  # type: ignore[no-untyped-def]
    """``count`` less the zeros in front, of the digits that start at ``i``."""
    while count > 0 and (text[i] == DIGIT0 or text[i] == POINT):
        if text[i] == DIGIT0:
            count -= 1
        i += ONE
    return count


@function
def scaled(mantissa, power, tens):  # type: ignore[no-untyped-def]
    """The double nearest to ``mantissa 10^power``; nan where this arithmetic cannot tell."""
    if mantissa <= EXACT:
        if power == 0 or mantissa == ZERO:
            return np.float64(mantissa)
        if -22 <= power < 0:
            return np.float64(mantissa) / tens[0, -power - LOWEST_POWER]
        if 0 < power <= 22:
            return np.float64(mantissa) * tens[0, power - LOWEST_POWER]
        a, b = np.float64(mantissa), 0.0
    else:
        a, b = np.float64(mantissa - (mantissa & LOW_BITS)), np.float64(mantissa & LOW_BITS)
    if power < LOWEST_POWER or power > HIGHEST_POWER:
        return np.nan
    p, q = tens[0, power - LOWEST_POWER], tens[1, power - LOWEST_POWER]
    high = a * p
    wide = SPLIT * a
    a1 = wide - (wide - a)
    wide = SPLIT * p
    p1 = wide - (wide - p)
    a2, p2 = a - a1, p - p1
    low = ((a1 * p1 - high) + a1 * p2 + a2 * p1) + a2 * p2
    low += b * p + a * q
    # Rounding has moved high + low by less than 2^-94 of it.
    doubt = high * 2.0**-90
    value = high + (low - doubt)
    return value if value == high + (low + doubt) else np.nan


@function
def ends(text, i):  # type: ignore[no-untyped-def]
    """Whether a token may end at ``i``."""
    c = text[i]
    return c in (SPACE, NEWLINE, TAB, RETURN, HASH)


@kernel
def parse(text, end, base, ordered, tens, indptr, indices, values, y, lines, lates, wrongs, found):  # type: ignore[no-untyped-def]
    """Parse the lines of ``text[:end]``, which ends with a newline; skip wrong ones until ``wrongs`` is full.

    ``lates``: numbers left to ``float``, as where the token starts and its entry, or -1 - row for a label; ``wrongs``: what was
    wrong, where and in which line; ``found``: rows, entries, lates, lines passed, wrongs, indices that do not ascend.
    """
    i, stop = ZERO, np.uint64(end)
    row, k, late, line, refused, descents = 0, 0, 0, 0, 0, 0
    while i < stop and refused < wrongs.shape[0]:
        wrong, k_start, late_start = 0, k, late
        while text[i] == SPACE or text[i] == TAB:
            i += ONE
        if text[i] == RETURN and text[i + ONE] == NEWLINE:
            i += ONE
        if text[i] == HASH:
            while text[i] != NEWLINE:
                i += ONE
        if text[i] == NEWLINE:
            i += ONE
            line += 1
            continue

        token = i
        value, i, kind = number(text, i, tens)
        if kind == BAD:
            wrong = LABEL
        elif not ends(text, i):
            wrong = LABEL_END
        else:
            y[row] = value
            if kind == LATE:
                lates[late, 0], lates[late, 1] = np.int64(token), -1 - row
                late += 1
        previous = np.int64(base) - 1
        fresh = True
        while wrong == 0:
            while text[i] == SPACE or text[i] == TAB:
                i += ONE
            digit = np.uint64(text[i]) - DIGIT0
            if digit >= TEN:
                if text[i] == RETURN and text[i + ONE] == NEWLINE:
                    i += ONE
                if text[i] == HASH:
                    while text[i] != NEWLINE:
                        i += ONE
                if text[i] == NEWLINE:
                    break
                if not (fresh and text[i] == LOWER_Q and text[i + ONE] == LOWER_I and text[i + ONE + ONE] == LOWER_D):
                    wrong = INDEX
                    break
                token = i
                i += ONE + ONE + ONE
                if text[i] != COLON:
                    wrong = QID
                    break
                value, i, kind = number(text, i + ONE, tens)
                if kind == BAD or not ends(text, i):
                    wrong = QID
                    break
                fresh = False
                continue
            fresh = False
            token = i
            column = ZERO
            while digit < TEN:
                column = column * TEN + digit
                i += ONE
                digit = np.uint64(text[i]) - DIGIT0
            if text[i] != COLON:
                wrong = INDEX_END
                break
            j = np.int64(column)
            if i - token > TEN or j > LARGEST_COLUMN + base or j < base:
                wrong = RANGE
                break
            if j <= previous:
                if ordered:
                    wrong = ORDER
                    break
                descents += 1
            previous = j
            i += ONE
            token = i
            value, i, kind = number(text, i, tens)
            if kind == BAD:
                wrong = VALUE
                break
            if text[i] != SPACE and not ends(text, i):
                wrong = VALUE_END
                break
            if value != 0.0:
                if kind == LATE:
                    lates[late, 0], lates[late, 1] = np.int64(token), k
                    late += 1
                indices[k] = j - base
                values[k] = value
                k += 1
        if wrong != 0:
            wrongs[refused, 0], wrongs[refused, 1], wrongs[refused, 2] = wrong, np.int64(i if wrong == INDEX else token), line
            refused, k, late = refused + 1, k_start, late_start
            while text[i] != NEWLINE:
                i += ONE
        else:
            lines[row] = line
            row += 1
            indptr[row] = k
        i += ONE
        line += 1
    found[ROWS], found[ENTRIES], found[LATES], found[LINES] = row, k, late, line
    found[WRONGS], found[DESCENTS] = refused, descents


class Svmlight(Lines):
    """The rows of svmlight files, one after the other, in blocks of about ``block_bytes`` of text.

    ``base``: the first index, 1 or 0; ``ordered``: refuse indices that do not ascend (otherwise they are sorted);
    ``max_errors``, ``threads``: as for all ``Lines``.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        *,
        base: int = 1,
        ordered: bool = True,
        max_errors: int = 0,
        block_bytes: int = BLOCK_BYTES,
        threads: int | None = None,
    ) -> None:
        if base not in (0, 1):
            raise ValueError(f"base must be 0 or 1, the first index of the files, got {base!r}.")
        super().__init__(paths, max_errors=max_errors, block_bytes=block_bytes, threads=threads)
        self.base, self.ordered = base, ordered
        self.encoding = numbered(base)

    def parsed(self, lines_of: Text) -> Part:
        """The rows of some lines, without the wrong ones, and their errors in order."""
        began = perf_counter()
        name, store, end, line, *_ = lines_of
        if line == 1:
            refuse_foreign(name, "svmlight", bytes(store[: min(end, 8)]))
        text = np.frombuffer(store, np.uint8)
        room = _room(text[:end], lines_of.lines, self.max_errors + 1)
        with np.errstate(over="ignore"):
            parse(text, end, self.base, self.ordered, powers(), *room)
        n, nnz, late, _, refused, descents = room.found.tolist()
        errors = {
            line + at: _message(store, wrong, start, end, self.base) for wrong, start, at in room.wrongs[:refused].tolist()
        }
        starts, y, lines = room.indptr[: n + 1], room.y[:n], room.lines[:n] + line
        beyond = dict[int, str]()
        for start, slot in room.lates[:late].tolist():
            token = token_at(store, start, end, BLANK)
            row = -1 - slot if slot < 0 else int(np.searchsorted(starts, np.uint64(slot), side="right")) - 1
            (y if slot < 0 else room.values)[row if slot < 0 else slot] = float(token)
            if not isfinite(float(token)):
                beyond.setdefault(row, f"expected a finite number, got {shown(token)}")
        rows = Rows(starts, room.indices[:nnz], room.values[:nnz])
        if descents or (late and not rows.values.all()):
            rows = _tidy(rows)
        if descents:
            for row, column in infinite(rows):
                beyond.setdefault(row, f"expected values of index {column + self.base} with a finite sum, got infinity")
        return part_of(lines_of, block_of(rows, y, lines, name), errors, beyond, began)


class _Room(NamedTuple):
    """What ``parse`` writes to."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    y: np.ndarray
    lines: np.ndarray
    lates: np.ndarray
    wrongs: np.ndarray
    found: np.ndarray


def _room(text: np.ndarray, rows: int, errors: int) -> _Room:
    """Enough for these lines, of which up to ``errors`` are wrong: every entry has its colon."""
    entries = count_byte(text, COLON)
    return _Room(
        np.zeros(rows + 1, np.uint64),
        np.empty(entries, np.uint32),
        np.empty(entries),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty((rows + entries, 2), np.int64),
        np.empty((min(rows, errors), 3), np.int64),
        np.zeros(6, np.int64),
    )


def _tidy(rows: Rows) -> Rows:
    """Columns ascending, repeated ones summed in the order of the text, entries equal to 0 left out."""
    starts = rows.indptr.astype(np.int64)
    owners = np.repeat(np.arange(rows.count), starts[1:] - starts[:-1])
    keys = owners << 31 | rows.indices
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], rows.values[order]
    first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    if not first.all():
        with np.errstate(over="ignore", invalid="ignore"):
            keys, values = keys[first], np.bincount(np.cumsum(first) - 1, values)
    keys, values = keys[values != 0.0], values[values != 0.0]
    indptr = np.searchsorted(keys, np.arange(rows.count + 1) << 31)
    return Rows(indptr.astype(np.uint64), (keys & LAST_INDEX).astype(np.uint32), values)


BLANK = re.compile(rb"[ \t\n#]")
_EXPECTED = {
    LABEL: "a label (a number)",
    LABEL_END: "one label, then a blank",
    QID: "qid:number",
    INDEX: "index:value",
    INDEX_END: "index:value",
    VALUE: "a number after 'index:'",
    VALUE_END: "a number after 'index:'",
    ORDER: "ascending indices",
}


def _message(store: bytearray, wrong: int, at: int, end: int, base: int) -> str:
    token = token_at(store, at, min(end, at + 4096), BLANK)
    expected = _EXPECTED.get(wrong) or f"an index from {base} to {LARGEST_COLUMN + base}"
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", token, re.IGNORECASE) and wrong in (LABEL, VALUE):
        expected = "a finite number"
    if wrong == LABEL_END and "," in token:
        expected = "one label in each row (several labels are not supported)"
    hint = ""
    if wrong == RANGE and base == 1 and re.match(r"0+:", token):
        hint = "; indices that begin at 0 need base=0 (--base 0)"
    elif wrong == ORDER:
        hint = "; sort=True (--sort) accepts any order"
    elif "\0" in token or "\ufffd" in token:
        hint = "; this looks like binary data"
    elif token.startswith("\ufeff"):
        hint = "; a byte order mark is no part of svmlight text"
    return f"expected {expected}, got {shown(token)}{hint}"
