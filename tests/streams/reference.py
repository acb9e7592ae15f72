"""svmlight text by plain Python: what the compiled reader must agree with, line by line and bit by bit.

Written from the format's description, with the standard library's ``re`` and ``float`` only: lines are matched by one regular
expression, where the reader walks from byte to byte.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import NamedTuple

NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
BLANK = rb"[ \t]"
LINE = re.compile(
    rb"%(b)s*(?P<label>%(n)s)(?:%(b)s+qid:%(n)s)?(?P<entries>(?:%(b)s+0*[0-9]{1,10}:%(n)s)*)%(b)s*"
    % {b"b": BLANK, b"n": NUMBER}
)
LAST_COLUMN = 2**31 - 2
# How gzip, xz, bzip2, Zstandard, zip, Parquet, Arrow, NumPy, HDF5 and UTF-16 files begin: no line of such a file is skipped.
FOREIGN = (
    b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PAR1", b"ARROW1", b"\x93NUMPY", b"\x89HDF",
    b"\xff\xfe", b"\xfe\xff",
)  # fmt: skip


class Row(NamedTuple):
    """A row: its line, its label and values in hexadecimal, its columns from 0."""

    line: int
    label: str
    columns: list[int]
    values: list[str]


class Read(NamedTuple):
    """Rows up to the first wrong line that is one too many; the wrong lines that were skipped; that line, or None."""

    rows: list[Row]
    skipped: list[int]
    refused: int | None


def reference(text: bytes, *, base: int = 1, sort: bool = False, max_errors: int = 0) -> Read:
    """Read a whole file."""
    if text.startswith(FOREIGN):
        return Read([], [], 1)
    return by_line(text, base, sort, max_errors)


def by_line(text: bytes, base: int = 1, sort: bool = False, max_errors: int = 0) -> Read:
    """Read lines, whatever the file begins with."""
    rows, skipped = [], []
    for at, line in enumerate(text.split(b"\n"), 1):
        content = uncommented(line)
        if not content.strip(b" \t"):
            continue
        row = parsed(at, content, base, sort)
        if row is not None:
            rows.append(row)
        elif len(skipped) < max_errors:
            skipped.append(at)
        else:
            return Read(rows, skipped, at)
    return Read(rows, skipped, None)


def uncommented(line: bytes) -> bytes:
    """A line without its comment and without a carriage return at its end."""
    return line.removesuffix(b"\r").partition(b"#")[0]


def parsed(at: int, content: bytes, base: int, sort: bool) -> Row | None:
    """The row of a line, or None if the line is wrong."""
    match = LINE.fullmatch(content)
    if match is None:
        return None
    entries = [(int(index) - base, float(value)) for index, value in (e.split(b":") for e in match["entries"].split())]
    columns = [column for column, _ in entries]
    if any(not 0 <= column <= LAST_COLUMN for column in columns):
        return None
    if not sort and any(b <= a for a, b in pairwise(columns)):
        return None
    sums: dict[int, float] = {}
    for column, value in entries:
        sums[column] = sums.get(column, 0.0) + value
    label = float(match["label"])
    if not all(map(math.isfinite, [label, *sums.values(), *(value for _, value in entries)])):
        return None
    kept = sorted((column, value) for column, value in sums.items() if value != 0.0)
    return Row(at, label.hex(), [column for column, _ in kept], [value.hex() for _, value in kept])
