"""svmlight (libsvm) text: ``label index:value index:value ... # comment``, one row per line.

Read in blocks of bounded memory by a compiled parser; ``numbers`` reads the numbers.

Accepted: blank lines, comments, CRLF, tabs, a missing last newline, ``+1``, a ``qid:`` after the label (ignored). Everything
else raises StreamError as ``file:line: expected ..., got ...``. Entries equal to 0 are no entries.

The first index is an option and never guessed: a file that happens not to use index 0 would be read wrongly. An index 0 in a
file read with ``base=1`` is refused with a hint.
"""

from __future__ import annotations

import re
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onlinear.compiled import first_mark, function, lean_kernel, marks_of, marks_up_to, room
from onlinear.rows import LARGEST_COLUMN, Rows, row_of
from onlinear.streams.characters import AHEAD, BEHIND, COLON, NEWLINE, RETURN, SEEN, SPACE, TAB
from onlinear.streams.delimiters import MANY_BLANKS, typed
from onlinear.streams.encoding import describe_numbering
from onlinear.streams.files import WholeLines, count_byte
from onlinear.streams.lines import (
    BLOCK_BYTES,
    FINITE,
    NOT_FINITE,
    Lines,
    ParsedLines,
    block_of,
    drop_rows,
    hint_of_bytes,
    infinite_entries,
    refuse_foreign_lines,
    token_at,
    unexpected,
)
from onlinear.streams.numbers import (
    BAD,
    DIGIT0,
    EIGHT,
    LATE,
    ONE,
    POINT,
    TEN,
    ZERO,
    digits,
    number,
    plain_numbers,
    powers,
    significant,
)

HASH, LOWER_D, LOWER_I, LOWER_Q = (ord(c) for c in "#diq")
LAST_INDEX = (1 << 31) - 1
# What a line lacks, in the order the parser meets it.
LABEL, LABEL_END, QID, INDEX, INDEX_END, VALUE, VALUE_END, ORDER, RANGE = range(1, 10)
ROWS, ENTRIES, LATES, LINES, WRONGS, DESCENTS = range(6)


@function
def ends(text, i):  # type: ignore[no-untyped-def]
    """Whether a token may end at ``i``."""
    c = text[i]
    return c in (SPACE, NEWLINE, TAB, RETURN, HASH)


@function
def _skip_blanks(text, i):  # type: ignore[no-untyped-def]
    """The place after the blanks at ``i``."""
    while text[i] == SPACE or text[i] == TAB:
        i += ONE
    return i


@function
def _skip_rest(text, i):  # type: ignore[no-untyped-def]
    """The newline after the carriage return or the comment at ``i``; else ``i``."""
    if text[i] == RETURN and text[i + ONE] == NEWLINE:
        i += ONE
    if text[i] == HASH:
        while text[i] != NEWLINE:
            i += ONE
    return i


@function
def _skip_qid(text, i, tens):  # type: ignore[no-untyped-def]
    """The place after the ``qid:number`` at ``i``, if there is one, and the error: QID or 0."""
    if not (text[i] == LOWER_Q and text[i + ONE] == LOWER_I and text[i + ONE + ONE] == LOWER_D):
        return i, 0
    i += ONE + ONE + ONE
    if text[i] != COLON:
        return i, QID
    _, i, kind = number(text, i + ONE, tens)
    return i, QID if kind == BAD or not ends(text, i) else 0


@function
def _parse_index(text, i, base):  # type: ignore[no-untyped-def]
    """The index at ``i``, where it ends, and INDEX_END or RANGE where it is wrong."""
    token = i
    column, i = digits(text, i, ZERO)
    j = np.int64(column)
    if text[i] != COLON:
        return j, i, INDEX_END
    if i - token > TEN and significant(text, token, np.int64(i - token)) > 10:
        return j, i, RANGE
    return j, i, RANGE if j > LARGEST_COLUMN + base or j < base else 0


@function
def _plain_entry(text, i, tens):  # type: ignore[no-untyped-def]
    """The entry at ``i`` where it is ``digits:number`` before a space or a newline: its index, its value, and where it ends.

    Where it is not, the place is 0. The places of the marks are found at once, so nothing waits for a digit but its own number.
    """
    blank, colon = first_mark(marks_up_to(text, i, SPACE)), first_mark(marks_of(text, i, COLON))
    if colon == ZERO or colon > EIGHT or blank <= colon or blank >= BEHIND:
        return np.int64(0), 0.0, ZERO
    last, end = i + colon, i + blank
    index, value = plain_numbers(text, last, colon, last + ONE, end, marks_of(text, i, POINT) >> (colon + ONE), tens)
    if value != value or (text[end] != SPACE and text[end] != NEWLINE):
        return np.int64(0), 0.0, ZERO
    return np.int64(index), value, end


@function
def _parse_entries(text, i, inner, base, ordered, tens, k, late, indices, values, lates):  # type: ignore[no-untyped-def]
    """Parse the entries at ``i`` up to the newline. ``inner``: how many places may begin a plain entry, from ``AHEAD`` on.

    Returns where it stopped, the last token, the error (0: none), the counts of entries, late numbers and descending indices.
    """
    previous, descents = np.int64(base) - 1, 0
    while True:
        if i - AHEAD < inner:  # an unsigned number: before them it is large
            j, value, end = _plain_entry(text, i, tens)
            if end > ZERO and j > previous:
                if value != 0.0:
                    indices[k] = j - base
                    values[k] = value
                    k += 1
                if text[end] == NEWLINE:
                    return end, end, 0, k, late, descents
                previous, i = j, end + ONE
                continue
        i = _skip_blanks(text, i)
        token = i
        if np.uint64(text[i]) - DIGIT0 >= TEN:
            i = _skip_rest(text, i)
            return i, i, 0 if text[i] == NEWLINE else INDEX, k, late, descents
        j, i, wrong = _parse_index(text, i, base)
        if wrong:
            return i, token, wrong, k, late, descents
        if j <= previous:
            if ordered:
                return i, token, ORDER, k, late, descents
            descents += 1
        previous = j
        token = i + ONE
        value, i, kind = number(text, token, tens)
        if kind == BAD:
            return i, token, VALUE, k, late, descents
        if text[i] != SPACE and not ends(text, i):
            return i, token, VALUE_END, k, late, descents
        if value != 0.0:
            if kind == LATE:
                lates[2 * late], lates[2 * late + 1] = np.int64(token), k
                late += 1
            indices[k] = j - base
            values[k] = value
            k += 1


@function
def _parse_label(text, i, row, tens, y, late, lates):  # type: ignore[no-untyped-def]
    """Parse the label at ``i``. Returns where it ends, the error (0: none) and the count of late numbers."""
    token = i
    value, i, kind = number(text, i, tens)
    if kind == BAD:
        return i, LABEL, late
    if not ends(text, i):
        return i, LABEL_END, late
    y[row] = value
    if kind == LATE:
        lates[2 * late], lates[2 * late + 1] = np.int64(token), -1 - row
        late += 1
    return i, 0, late


@lean_kernel
def parse(  # type: ignore[no-untyped-def]
    array, end, base, ordered, powers_of_ten, indptr, columns, entries, labels, lines, late_numbers, wrongs, found
):  # fmt: skip
    """Parse the lines of ``array[:end]``, which ends with a newline; skip wrong ones until ``wrongs`` is full.

    ``late_numbers``: numbers left to ``float``, two places each: where the token starts, its entry or -1 - row for a label;
    ``wrongs``: what was wrong, where and in which line; ``found``: rows, entries, lates, lines passed, wrongs, indices that do
    not ascend.
    """
    text, tens, lates = room(array, ZERO), room(powers_of_ten, ZERO), room(late_numbers, ZERO)
    indices, values, y = room(columns, ZERO), room(entries, ZERO), room(labels, ZERO)
    i, stop, inner = ZERO, np.uint64(end), np.uint64(max(array.shape[0] - SEEN - 16, 0))
    row, k, late, line, refused, descents = 0, 0, 0, 0, 0, 0
    while i < stop and refused < wrongs.shape[0]:
        i = _skip_rest(text, _skip_blanks(text, i))
        if text[i] != NEWLINE:
            k_start, late_start, token, falls = k, late, i, 0
            i, wrong, late = _parse_label(text, i, row, tens, y, late, lates)
            if wrong == 0:
                token = _skip_blanks(text, i)
                i, wrong = _skip_qid(text, token, tens)
            if wrong == 0:
                i, token, wrong, k, late, falls = _parse_entries(
                    text, i, inner, base, ordered, tens, k, late, indices, values, lates
                )
            descents += falls
            if wrong == 0:
                lines[row] = line
                row += 1
                indptr[row] = k
            else:
                wrongs[refused, 0], wrongs[refused, 1], wrongs[refused, 2] = wrong, np.int64(token), line
                refused, k, late = refused + 1, k_start, late_start
                while text[i] != NEWLINE:
                    i += ONE
        i += ONE
        line += 1
    found[ROWS], found[ENTRIES], found[LATES], found[LINES] = row, k, late, line
    found[WRONGS], found[DESCENTS] = refused, descents


class Svmlight(Lines):
    """The rows of svmlight files, in order, in blocks of about ``block_bytes`` of text.

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
        self.encoding = describe_numbering(base)

    def parse_lines(self, piece: WholeLines) -> ParsedLines:
        began = perf_counter()
        name, store, end, line, *_ = piece
        refuse_foreign_lines(piece, "svmlight")
        text = np.frombuffer(store, np.uint8)
        arrays = make_arrays(text[:end], piece.lines, self.max_errors + 1)
        with np.errstate(over="ignore"):
            parse(text, end, self.base, self.ordered, powers(), *arrays)
        n, nnz, late, _, refused, descents = arrays.found.tolist()
        errors = {
            line + at: _message(store, wrong, start, end, self.base) for wrong, start, at in arrays.wrongs[:refused].tolist()
        }
        starts, y, lines = arrays.indptr[: n + 1], arrays.y[:n], arrays.lines[:n] + line
        out_of_range = dict[int, str]()
        for start, slot in arrays.lates[: 2 * late].reshape(-1, 2).tolist():
            token = token_at(store, start, end, BLANK)
            row = -1 - slot if slot < 0 else row_of(slot, starts)
            (y if slot < 0 else arrays.values)[row if slot < 0 else slot] = float(token)
            if not isfinite(float(token)):
                out_of_range.setdefault(row, unexpected(token, FINITE))
        rows = Rows(starts, arrays.indices[:nnz], arrays.values[:nnz])
        if descents or (late and not rows.values.all()):
            rows = _sort_rows(rows)
        if descents:
            for row, column in infinite_entries(rows):
                out_of_range.setdefault(row, f"expected values of index {column + self.base} with a finite sum, got infinity")
        return drop_rows(piece, *block_of(rows, y, lines, name), errors, out_of_range, began)


class SvmlightArrays(NamedTuple):
    """The arrays that ``parse`` writes to."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    y: np.ndarray
    lines: np.ndarray
    lates: np.ndarray
    wrongs: np.ndarray
    found: np.ndarray


def make_arrays(text: np.ndarray, rows: int, errors: int) -> SvmlightArrays:
    """Arrays that suffice for these lines, of which up to ``errors`` are wrong; every entry has a colon."""
    entries = count_byte(text, COLON)
    return SvmlightArrays(
        np.zeros(rows + 1, np.uint64),
        np.empty(entries, np.uint32),
        np.empty(entries),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty(2 * (rows + entries), np.int64),
        np.empty((min(rows, errors), 3), np.int64),
        np.zeros(6, np.int64),
    )


def _sort_rows(rows: Rows) -> Rows:
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
_REST = re.compile(rb"[\n#]")
_BAR = re.compile(r"(^|[ \t])('\S*)?\|")  # as Vowpal Wabbit text has it before features
_NAME = r"[^\s:|\0\ufffd]+"
_NAMES = re.compile(rf"{_NAME}([ \t]) *{_NAME}([ \t]+{_NAME})*\s*")  # such as a table has in its first line
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
    if NOT_FINITE.fullmatch(token) and wrong in (LABEL, VALUE):
        expected = FINITE
    if wrong == LABEL_END and "," in token:
        expected = "one label in each row (several labels are not supported)"
    hint = hint_of_bytes(token, "svmlight")
    if "\0" in token:
        return unexpected(token, expected, hint)
    if wrong == LABEL_END and ":" in token:
        hint = "; a row begins with its label, such as 0 where none is known"
    elif wrong == RANGE and base == 1 and re.match(r"0+:", token):
        hint = "; indices that begin at 0 need base=0 (--base 0)"
    elif wrong == ORDER:
        hint = "; sort=True (--sort) accepts any order"
    elif wrong == LABEL and token.startswith(("{", "[")):
        hint = "; this looks like JSON, which is read as a data frame or once it is CSV or Parquet"
    elif wrong == LABEL and re.search(r"[,;]", token):
        hint = "; this looks like CSV, which format='csv' (--format csv) reads"
    elif wrong == LABEL and (between := _NAMES.fullmatch(rest := token_at(store, at, min(end, at + 4096), _REST))):
        hint = f"; this looks like CSV, which format='csv' and delimiter={between[1]!r} "
        hint += f"(--format csv --delimiter '{typed(between[1])}') read"
        hint += f", where {MANY_BLANKS}" if 2 * " " in rest.strip() else ""
    elif wrong in (LABEL, INDEX, INDEX_END) and _BAR.search(token_at(store, at, min(end, at + 4096), _REST)):
        hint = "; this looks like Vowpal Wabbit text, which format='vw' (--format vw) reads"
    return unexpected(token, expected, hint)
