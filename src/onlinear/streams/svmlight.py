"""svmlight (libsvm) text: ``label index:value index:value ... # comment``, one row per line.

Read in blocks of bounded memory by a compiled parser. A number becomes exactly the double that Python's ``float`` gives:

    m 10^k with m <= 2^53, |k| <= 22   one product or quotient of exact doubles                     (Clinger, PLDI 1990)
    up to 19 digits, -250 <= k <= 280  double-double product with a tabulated power; accepted where the result cannot be on
                                       the other side of a tie                                       (Dekker, 1971)
    all others                         ``float`` of the token, after the block

Accepted: blank lines, comments, CRLF, tabs, a missing last newline, ``+1``, a ``qid:`` after the label (ignored). Everything
else raises StreamError as ``file:line: expected ..., got ...``. Entries equal to 0 are no entries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import isfinite
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear.jit import function, kernel
from onlinear.rows import LARGEST_COLUMN, Rows
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.files import STDIN, ByteFile

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 28

ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)
DIGIT0, LOW_BITS, EXACT = np.uint64(48), np.uint64(2047), np.uint64(2**53)
NEWLINE, SPACE, TAB, RETURN, HASH, PLUS, MINUS, POINT, COLON = (ord(c) for c in "\n \t\r#+-.:")
LOWER_E, LOWER_D, LOWER_I, LOWER_Q = (ord(c) for c in "ediq")
LOWEST_POWER, HIGHEST_POWER = -250, 280
SPLIT = 134217729.0  # 2^27 + 1
FAR = np.int64(1 << 40)

FINE, LATE, BAD = 0, 1, 2
# What a line lacks, in the order the parser meets it.
LABEL, LABEL_END, QID, INDEX, INDEX_END, VALUE, VALUE_END, ORDER, RANGE = range(1, 10)
ROWS, ENTRIES, LATES, LINE, AT, WRONG, WRONG_AT, DESCENTS = range(8)


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
def parse(text, begin, end, base, ordered, tens, indptr, indices, values, y, lines, lates, found):  # type: ignore[no-untyped-def]
    """Parse the lines of ``text[begin:end]``, which ends with a newline; stop at the first wrong one.

    ``found``: rows, entries, numbers left to ``float`` (in ``lates``: where the token starts, and its entry, or -1 - row for a
    label), lines passed, where the next line starts, what was wrong and where, indices that do not ascend.
    """
    i, stop = np.uint64(begin), np.uint64(end)
    row, k, late, line, descents = 0, 0, 0, 0, 0
    wrong = 0
    while i < stop:
        start, k_start, late_start = i, k, late
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
            found[WRONG_AT] = np.int64(i if wrong == INDEX else token)
            i, k, late = start, k_start, late_start
            break
        i += ONE
        lines[row] = line
        line += 1
        row += 1
        indptr[row] = k
    found[ROWS], found[ENTRIES], found[LATES], found[LINE], found[AT] = row, k, late, line, np.int64(i)
    found[WRONG], found[DESCENTS] = wrong, descents


class Svmlight(Stream):
    """The rows of svmlight files, one after the other, in blocks of about ``block_bytes`` of text.

    ``base``: the first index, 1 or 0; ``ordered``: refuse indices that do not ascend (otherwise they are sorted);
    ``max_errors``: this many wrong lines are skipped and kept in ``errors``; the next one raises StreamError.
    """

    task = None
    classes = None
    rows = None

    def __init__(
        self,
        paths: tuple[str, ...],
        *,
        base: int = 1,
        ordered: bool = True,
        max_errors: int = 0,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        if base not in (0, 1):
            raise ValueError(f"base must be 0 or 1, the first index of the files, got {base!r}.")
        if block_bytes < 1 or max_errors < 0:
            raise ValueError("block_bytes must be at least 1 and max_errors at least 0.")
        self.paths = paths
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
        self.base, self.ordered, self.max_errors, self.block_bytes = base, ordered, max_errors, block_bytes
        self.rereadable = STDIN not in paths
        self.total = sum(os.path.getsize(path) for path in paths) if self.rereadable else None
        self.done = 0
        self.text_bytes = 0
        self.errors = self._errors = list[str]()
        self._read = False

    def __iter__(self) -> Iterator[Block]:
        if self._read and not self.rereadable:
            raise StreamError("standard input cannot be read twice; several passes need a file.")
        self._read, self.done = True, 0
        for path in self.paths:
            file = ByteFile(path)
            try:
                before = self.done
                for block in self._blocks(file):
                    self.done = before + file.position
                    yield block
                self.done = before + file.position
            finally:
                file.close()

    def _blocks(self, file: ByteFile) -> Iterator[Block]:
        store = bytearray(self.block_bytes + 1)
        kept, line, last = 0, 1, False
        while not last:
            asked = len(store) - 1 - kept
            count = file.readinto(memoryview(store)[kept : kept + asked])
            self.text_bytes += count
            end, last = kept + count, count < asked
            if last and end and store[end - 1] != NEWLINE:
                store[end] = NEWLINE
                end += 1
            stop = store.rfind(b"\n", kept, end) + 1
            at = 0
            while at < stop:
                part = self._parsed(file.name, store, at, stop, line)
                if part.block is not None:
                    yield part.block
                at, line = part.at, part.line
                if part.error is not None:
                    self._count(part.error)
                    at, line = store.index(b"\n", at) + 1, line + 1
            kept = end - stop
            store[:kept] = store[stop:end]
            if kept >= len(store) // 2:
                if len(store) > LONGEST_LINE:
                    raise StreamError(f"{file.name}:{line}: expected a line of at most {LONGEST_LINE} bytes, got no line end.")
                store = store + bytearray(len(store))

    def _count(self, error: str) -> None:
        if len(self._errors) >= self.max_errors:
            raise StreamError(error)
        self._errors.append(error)

    def _parsed(self, name: str, store: bytearray, begin: int, end: int, line: int) -> _Part:
        """The rows of ``store[begin:end]`` before its first wrong line, and that line's error."""
        text = np.frombuffer(store, np.uint8)
        most_rows, most = int(np.count_nonzero(text[begin:end] == NEWLINE)), (end - begin) // 4 + 1
        indptr, y, lines = np.zeros(most_rows + 1, np.uint64), np.empty(most_rows), np.empty(most_rows, np.int64)
        indices, values, lates = np.empty(most, np.uint32), np.empty(most), np.empty((most_rows + most, 2), np.int64)
        found = np.zeros(8, np.int64)
        with np.errstate(over="ignore"):
            parse(text, begin, end, self.base, self.ordered, powers(), indptr, indices, values, y, lines, lates, found)
        n, at, passed, error = int(found[ROWS]), int(found[AT]), int(found[LINE]), None
        if found[WRONG]:
            error = _message(store, int(found[WRONG]), int(found[WRONG_AT]), self.base)
        for start, slot in lates[: found[LATES]].tolist():
            number = float(_token(store, start))
            if not isfinite(number):
                n = -1 - slot if slot < 0 else int(np.searchsorted(indptr[: n + 1], np.uint64(slot), side="right")) - 1
                at, passed = store.rfind(b"\n", begin, start) + 1 or begin, int(lines[n])
                error = f"expected a finite number, got {_token(store, start)!r}"
                break
            if slot < 0:
                y[-1 - slot] = number
            else:
                values[slot] = number
        nnz = int(indptr[n])
        rows = Rows(indptr[: n + 1], indices[:nnz], values[:nnz])
        if found[DESCENTS] or (found[LATES] and not rows.values.all()):
            rows = _tidy(rows)
        where = f"{name}:{line + passed}"
        block = _block(rows, y[:n], lines[:n] + line, name) if n else None
        return _Part(block, at, line + passed, error and f"{where}: {error}.")


class _Part(NamedTuple):
    block: Block | None
    at: int
    line: int
    error: str | None


def _block(rows: Rows, y: np.ndarray, lines: np.ndarray, name: str) -> Block:
    size = int(rows.indices.max()) + 1 if len(rows.indices) else 0
    largest = float(max(rows.values.max(), -rows.values.min())) if size else 0.0
    if not isfinite(largest):
        raise StreamError(f"{name}:{lines[0]}: repeated indices in or below this line add up to infinity.")
    return Block(rows, y, lines, (name,), size, largest)


def _tidy(rows: Rows) -> Rows:
    """Columns ascending, repeated ones summed, entries equal to 0 left out."""
    width = int(rows.indices.max(initial=0)) + 1
    matrix = sp.csr_matrix(
        (rows.values, rows.indices.view(np.int32), rows.indptr.astype(np.int64)), shape=(rows.count, width), copy=True
    )
    matrix.sort_indices()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Rows(matrix.indptr.astype(np.uint64), matrix.indices.astype(np.uint32), matrix.data)


def _token(store: bytearray, start: int) -> str:
    """What stands at ``start``, up to the next blank or comment."""
    text = bytes(store[start : start + 4096]).decode("utf-8", "replace")
    return re.split(r"[ \t\n#]", text, maxsplit=1)[0].removesuffix("\r")


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


def _message(store: bytearray, wrong: int, at: int, base: int) -> str:
    token = _token(store, at)
    expected = _EXPECTED.get(wrong) or f"an index from {base} to {LARGEST_COLUMN + base}"
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", token, re.IGNORECASE) and wrong in (LABEL, VALUE):
        expected = "a finite number"
    if wrong == LABEL_END and "," in token:
        expected = "one label in each row (several labels are not supported)"
    shown = repr(token if len(token) <= 40 else token[:37] + "...") if token else "the end of the line"
    hint = "; are the indices zero-based (base 0)?" if wrong == RANGE and base == 1 and re.match(r"0+:", token) else ""
    hint = "; sort=True accepts any order" if wrong == ORDER else hint
    return f"expected {expected}, got {shown}{hint}"
