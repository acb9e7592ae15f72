"""Vowpal Wabbit text: ``[label [importance [base]]] ['tag]|namespace[:scale] name[:value] ... |namespace ...``, a row per line.

A feature's key is ``namespace^name``, or ``name`` where the namespace has no name; it is hashed as every text is (``hashing``),
number-like names too: Vowpal Wabbit's own column numbers are not kept. Its value, 1 where none is written, is multiplied by the
namespace's scale. The importance is the row's weight. A token that touches the bar is a tag, as in Vowpal Wabbit. A base other
than 0, several labels and the labels of other reductions are refused. ``numbers`` reads the numbers, ``namespace_crosses``
crosses namespaces. A CR within a line is refused: it would end a line elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onlinear.compiled import first_mark, function, kernel, marks_of, marks_up_to, room, word_at
from onlinear.rows import Rows
from onlinear.streams.characters import AHEAD, BEHIND, COLON, NEWLINE, RETURN, SEEN, SPACE, TAB
from onlinear.streams.encoding import describe_hashing
from onlinear.streams.files import WholeLines, count_byte, read_lines
from onlinear.streams.hashing import TOP_BIT, absorb, absorb_bytes, finish, tidy
from onlinear.streams.lines import (
    BLOCK_BYTES,
    FINITE,
    LONGEST_LINE,
    NOT_FINITE,
    Lines,
    ParsedLines,
    block_of,
    drop_rows,
    hint_of_bytes,
    infinite_entries,
    quote_token,
    refuse_foreign_lines,
    token_at,
    unexpected,
)
from onlinear.streams.namespace_crosses import MOST_CROSSED, NamespaceCrosses
from onlinear.streams.numbers import BAD, FINE, LATE, MINUS, ONE, POINT, ZERO, number, plain_numbers, powers
from onlinear.streams.vowpal_names import names_of_line

BAR, QUOTE, CARET = (ord(c) for c in "|'^")
# What a line lacks, in the order the parser meets it.
LABEL, IMPORTANCE, NEGATIVE, BASE, MORE, TAG, NO_BAR, NO_LABEL, NAMESPACE, SCALE, FEATURE, VALUE = range(1, 13)
FEWER = 8  # times as many entries as plain lines have, with crosses
OF_LABEL, OF_IMPORTANCE, OF_VALUE, OF_SCALE = range(4)
OF_LATE = 5  # what is kept of a late number
ROWS, ENTRIES, LATES, LINES, WRONGS, SPACES = range(6)
FOUR = np.uint64(4)


@function
def _ends(text, i):  # type: ignore[no-untyped-def]
    """Whether a token ends at ``i``."""
    c = text[i]
    return c in (SPACE, NEWLINE, TAB, BAR) or (c == RETURN and text[i + ONE] == NEWLINE)


@function
def _past(text, i):  # type: ignore[no-untyped-def]
    """The place after the blanks at ``i``."""
    while text[i] == SPACE or text[i] == TAB or (text[i] == RETURN and text[i + ONE] == NEWLINE):
        i += ONE
    return i


@function
def _hash_name(text, i, close, h, k, shift, length):  # type: ignore[no-untyped-def]
    """Absorb the name at ``i`` into the state of a hash. Returns where the name ends, and the state."""
    if i < close:
        count = first_mark(marks_up_to(text, i, SPACE) | marks_of(text, i, BAR) | marks_of(text, i, COLON))
        end = i + count
        if count < BEHIND and (text[end] == COLON or _ends(text, end)):
            for at in range(i, end, FOUR):
                h, k, shift = absorb_bytes(h, k, shift, word_at(text, at), min(FOUR, end - at))
            return end, h, k, shift, length + count
    while True:
        c = text[i]
        if (c <= SPACE or c == BAR or c == COLON) and (c == COLON or c == RETURN or _ends(text, i)):  # noqa: SIM109 (faster)
            return i, h, k, shift, length
        h, k, shift = absorb(h, k, shift, np.uint64(c))
        length += ONE
        i += ONE


@function
def _keep_late(lates, late, token, kind, row, first):  # type: ignore[no-untyped-def]
    """Keep where a late number starts, what it is, its row and the first entry it is for; give the count of them."""
    at = OF_LATE * late
    lates[at], lates[at + 1], lates[at + 2], lates[at + 3] = np.int64(token), kind, row, first
    return late + 1


@function
def _number_at(text, i, close, tens):  # type: ignore[no-untyped-def]
    """``number``; a plain one is read at once."""
    if AHEAD <= i < close:
        count = first_mark(marks_up_to(text, i, SPACE) | marks_of(text, i, BAR))
        if count < BEHIND and _ends(text, i + count):
            _, value = plain_numbers(text, i, ZERO, i, i + count, marks_of(text, i, POINT), tens)
            if value == value:
                return value, i + count, FINE
    return number(text, i, tens)


@function
def _parse_head_number(text, token, end, position, row, tens, y, weights):  # type: ignore[no-untyped-def]
    """Parse the label, importance or base (by ``position``) at ``token``. Returns the error (0: none) and the number's kind."""
    value, last, kind = number(text, token, tens)
    if kind == BAD or last != end:
        return LABEL if position == 0 else IMPORTANCE if position == 1 else BASE, kind
    if position == 0:
        y[row] = value
    elif position == 1:
        weights[row] = value
        if text[token] == MINUS and value != 0.0:
            return NEGATIVE, kind
    elif value != 0.0:
        return BASE, kind
    return 0, kind


@function
def _parse_head(text, i, row, unlabelled, tens, late, y, weights, lates):  # type: ignore[no-untyped-def]
    """Parse a line up to its first bar.

    Returns where the parser stopped, the token it stopped at, the error (0: none) and the count of late numbers.
    """
    y[row], weights[row] = np.nan, 1.0
    token, wrong, position, tagged = i, 0, 0, False
    while wrong == 0 and text[i] != BAR:
        token = i
        if text[i] == NEWLINE:
            return i, token, NO_BAR, late
        while not _ends(text, i):
            i += ONE
        if tagged:
            wrong = TAG
        elif text[token] == QUOTE or text[i] == BAR:
            tagged = True
        elif position > 2:
            wrong = MORE
        else:
            wrong, kind = _parse_head_number(text, token, i, position, row, tens, y, weights)
            if kind == LATE and position < 2:
                late = _keep_late(lates, late, token, position, row, 0)
            position += 1
        i = _past(text, i)
    if wrong == 0 and position == 0 and not unlabelled:
        wrong = NO_LABEL
    return i, token, wrong, late


@function
def _parse_features(text, i, close, scale, prefix, row, mask, tens, k, late, indices, values, lates):  # type: ignore[no-untyped-def]
    """Parse the features of a namespace, whose name has left the state ``prefix`` of the hash. ``close``: from there on the
    text's end is too near to read several bytes at once.

    Returns where the parser stopped, the token it stopped at, the error (0: none) and the counts of entries and late numbers.
    """
    while True:
        i = _past(text, i)
        token = i
        if text[i] == BAR or text[i] == NEWLINE:
            return i, token, 0, k, late
        i, h, part, shift, length = _hash_name(text, i, close, *prefix)
        if i == token:
            return i, token, FEATURE, k, late
        hashed = finish(h, part, shift, length)
        x = -scale if hashed >> TOP_BIT else scale
        if text[i] == COLON:
            token = i + ONE
            value, i, kind = _number_at(text, token, close, tens)
            if kind == BAD or not _ends(text, i):
                return i, token, VALUE, k, late
            if kind == LATE:
                late = _keep_late(lates, late, token, OF_VALUE, row, k)
            else:
                x *= value
        indices[k] = hashed & mask
        values[k] = x
        k += 1


@function
def _parse_namespace(text, i, close, row, mask, tens, k, late, indices, values, lates):  # type: ignore[no-untyped-def]
    """Parse the namespace after a bar; returns the same as ``_parse_features``."""
    token, scale, scale_late = i, 1.0, -1
    h, part, shift, length = ZERO, ZERO, ZERO, ZERO
    if not _ends(text, i):
        i, h, part, shift, length = _hash_name(text, i, close, h, part, shift, length)
        if length == ZERO:
            return i, token, NAMESPACE, k, late
        h, part, shift = absorb(h, part, shift, np.uint64(CARET))
        length += ONE
        if text[i] == COLON:
            token = i + ONE
            scale, i, kind = number(text, token, tens)
            if kind == BAD or not _ends(text, i):
                return i, token, SCALE, k, late
            if kind == LATE:
                scale, scale_late = 1.0, late
                late = _keep_late(lates, late, token, OF_SCALE, row, k)
    prefix = h, part, shift, length
    i, token, wrong, k, late = _parse_features(text, i, close, scale, prefix, row, mask, tens, k, late, indices, values, lates)
    if scale_late >= 0:
        lates[OF_LATE * scale_late + 4] = k
    return i, token, wrong, k, late


@kernel
def parse(  # type: ignore[no-untyped-def]
    array, end, mask, unlabelled, powers_of_ten, indptr, columns, entries, labels, importances, lines, late_numbers, wrongs,
    spaces, found,
):  # fmt: skip
    """Parse the lines of ``array[:end]``, which ends with a newline; skip wrong ones until ``wrongs`` is full.

    ``late_numbers``: numbers left to ``float``, ``OF_LATE`` places each: where the token starts, what it is, its row, the first
    entry it is for and, of a scale, the entry after the last; ``wrongs``: what was wrong, where and in which line; ``spaces``,
    if it has room: where each namespace's name starts, and its first entry; ``found``: rows, entries, lates, lines passed,
    wrongs, namespaces.
    """
    text, tens, lates = room(array, ZERO), room(powers_of_ten, ZERO), room(late_numbers, ZERO)
    indices, values, y, weights = room(columns, ZERO), room(entries, ZERO), room(labels, ZERO), room(importances, ZERO)
    i, stop, close = ZERO, np.uint64(end), np.uint64(max(array.shape[0] - SEEN, 0))
    row, k, late, line, refused, space = 0, 0, 0, 0, 0, 0
    while i < stop and refused < wrongs.shape[0]:
        i = _past(text, i)
        if text[i] != NEWLINE:
            k_start, late_start, space_start = k, late, space
            i, token, wrong, late = _parse_head(text, i, row, unlabelled, tens, late, y, weights, lates)
            while wrong == 0 and text[i] == BAR:
                if space < spaces.shape[0]:
                    spaces[space, 0], spaces[space, 1] = np.int64(i + ONE), k
                    space += 1
                i, token, wrong, k, late = _parse_namespace(
                    text, i + ONE, close, row, mask, tens, k, late, indices, values, lates
                )
            if wrong == 0:
                lines[row] = line
                row += 1
                indptr[row] = k
            else:
                wrongs[refused, 0], wrongs[refused, 1], wrongs[refused, 2] = wrong, np.int64(token), line
                refused, k, late, space = refused + 1, k_start, late_start, space_start
                while text[i] != NEWLINE:
                    i += ONE
        i += ONE
        line += 1
    found[ROWS], found[ENTRIES], found[LATES], found[LINES], found[WRONGS] = row, k, late, line, refused
    found[SPACES] = space


class Vowpal(Lines):
    """The rows of Vowpal Wabbit files, hashed to ``2^hash_bits`` columns.

    ``interactions``: the pairs of namespaces that are crossed; blocks then have fewer lines, as lines have more entries.
    ``unlabelled``: rows may lack a label, their y is nan. ``max_errors``, ``threads``: as for all ``Lines``.
    """

    def __init__(
        self,
        paths: tuple[str, ...],
        *,
        hash_bits: int,
        interactions: Sequence[tuple[str, str]] = (),
        unlabelled: bool = False,
        max_errors: int = 0,
        block_bytes: int = BLOCK_BYTES,
        threads: int | None = None,
    ) -> None:
        step = max(1, block_bytes // FEWER) if interactions else block_bytes
        super().__init__(paths, max_errors=max_errors, block_bytes=step, threads=threads)
        self.hash_bits, self.unlabelled = hash_bits, unlabelled
        self._crosses = NamespaceCrosses(interactions, hash_bits) if interactions else None
        self._pairs = interactions
        self.encoding = describe_hashing(hash_bits, interactions)

    def named_rows(self) -> Iterator[tuple[str, list[tuple[str | None, int, float]]]]:
        """The rows as entries (name, column, value) that their own text names, each with its place in the source. Slow."""
        self.errors = self._errors = list[str]()
        for piece in read_lines(self.paths, self.block_bytes, LONGEST_LINE, self.timing, []):
            text = bytes(piece.store[: piece.end]).split(b"\n")
            for block in self._count_errors(self.parse_lines(piece)):
                starts, columns, values = block.rows
                for row, line in enumerate(block.lines.tolist()):
                    names = names_of_line(text[line - piece.line], self.hash_bits, self._pairs)
                    own = slice(int(starts[row]), int(starts[row + 1]))
                    entries = zip(columns[own].tolist(), values[own].tolist(), strict=True)
                    yield block.where(row), [(names.get(column), column, value) for column, value in entries]

    def parse_lines(self, piece: WholeLines) -> ParsedLines:
        began = perf_counter()
        name, store, end, line, *_ = piece
        refuse_foreign_lines(piece, "Vowpal Wabbit")
        text, crosses = np.frombuffer(store, np.uint8), self._crosses
        mask = np.uint64((1 << (32 if crosses else self.hash_bits)) - 1)
        arrays = _make_arrays(text[:end], piece.lines, self.max_errors + 1, crosses is not None)
        with np.errstate(over="ignore"):
            parse(text, end, mask, self.unlabelled, powers(), *arrays)
        n, nnz, late, _, refused, spaces = arrays.found.tolist()
        errors = {line + at: _message(store, wrong, start, end) for wrong, start, at in arrays.wrongs[:refused].tolist()}
        y, weights, lines = arrays.y[:n], arrays.weights[:n], arrays.lines[:n] + line
        out_of_range = dict[int, str]()
        lates = arrays.lates[: OF_LATE * late].reshape(-1, OF_LATE).tolist()
        for start, kind, row, first, last in sorted(lates, key=lambda late: late[1]):
            token = token_at(store, start, end, ENDS)
            value = float(token)
            if not isfinite(value):
                out_of_range.setdefault(row, unexpected(token, FINITE))
            elif kind in (OF_VALUE, OF_SCALE):
                with np.errstate(over="ignore"):
                    arrays.values[first : first + 1 if kind == OF_VALUE else last] *= value
            else:
                (y if kind == OF_LABEL else weights)[row] = value
        rows = Rows(arrays.indptr[: n + 1], arrays.indices[:nnz], arrays.values[:nnz])
        if crosses is not None:
            rows, too_long = crosses.add(text, arrays.spaces[:spaces], rows)
            for row, count in too_long:
                out_of_range.setdefault(row, f"expected at most {MOST_CROSSED:,} crosses of features in a row, got {count:,}")
        rows = tidy(rows)
        for row, _ in infinite_entries(rows):
            out_of_range.setdefault(row, "expected features with finite values and sums, got infinity")
        block, sums = block_of(rows, y, lines, name)
        block = block._replace(weights=None if np.all(weights == 1.0) else weights)
        return drop_rows(piece, block, sums, errors, out_of_range, began)


class VowpalArrays(NamedTuple):
    """The arrays that ``parse`` writes to."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    lines: np.ndarray
    lates: np.ndarray
    wrongs: np.ndarray
    spaces: np.ndarray
    found: np.ndarray


def _make_arrays(text: np.ndarray, rows: int, errors: int, spaced: bool) -> VowpalArrays:
    """Arrays that suffice for these lines, of which up to ``errors`` are wrong. A blank stands before every feature."""
    entries, bars = count_byte(text, SPACE) + count_byte(text, TAB), count_byte(text, BAR)
    return VowpalArrays(
        np.zeros(rows + 1, np.uint64),
        np.empty(entries, np.uint32),
        np.empty(entries),
        np.empty(rows),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty(OF_LATE * (2 * rows + entries + bars), np.int64),
        np.empty((min(rows, errors), 3), np.int64),
        np.empty((bars if spaced else 0, 2), np.int64),
        np.zeros(6, np.int64),
    )


ENDS = re.compile(rb"[ \t\n|]")
_EXPECTED = {
    LABEL: "a label (a number)",
    IMPORTANCE: "an importance (a number)",
    NEGATIVE: "an importance of 0 or more",
    BASE: "no base (initial prediction) but 0",
    MORE: "a tag or '|' after label, importance and base",
    TAG: "'|' after the tag",
    NO_BAR: "'|' before the features",
    NO_LABEL: "a label",
    NAMESPACE: "a namespace's name or a blank after '|'",
    SCALE: "the namespace's scale (a number)",
    FEATURE: "a feature's name before ':'",
    VALUE: "a number after 'name:'",
}


def _message(store: bytearray, wrong: int, at: int, end: int) -> str:
    token = token_at(store, at, min(end, at + 4096), ENDS)
    expected = _EXPECTED[wrong]
    if NOT_FINITE.fullmatch(token) and wrong in (LABEL, IMPORTANCE, SCALE, VALUE):
        expected = FINITE
    if wrong == NO_LABEL:
        what = f"the tag {quote_token(token)} (a blank before '|' makes it a label)" if token else "none"
        return f"expected {expected}, got {what}"
    if store[at] == RETURN:
        return "expected lines that end with LF, got a CR within a line (tr '\\r' '\\n' converts them)"
    costs = wrong == LABEL and re.match(r"\d+:|shared$", token)
    hint = "; labels with costs, of Vowpal Wabbit's reductions and bandits, are not read" if costs else ""
    return unexpected(token, expected, hint or hint_of_bytes(token, "Vowpal Wabbit"))
