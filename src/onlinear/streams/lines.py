"""The readers of text share this: they parse whole lines of files on several cores, and count the wrong ones."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from time import perf_counter
from typing import NamedTuple

import numpy as np

from onlinear.files.model_file import FORMAT
from onlinear.rows import Rows
from onlinear.streams.ahead import cores, in_order
from onlinear.streams.blocks import Block, EntrySums, Reader, StreamError, look_over, must_be_limits
from onlinear.streams.files import WholeLines, is_packed, is_pipe, read_lines
from onlinear.text.names import printable

BLOCK_BYTES = 1 << 21  # less and the learner's cost per block shows; more and memory does
LONGEST_LINE = 1 << 28
FINITE = "a finite number"
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


class Lines(Reader):
    """The rows of text files, in order, in blocks of about ``block_bytes`` of text.

    ``max_errors``: this many wrong lines of a pass are skipped and kept in ``errors``; the next one raises StreamError.
    ``threads``: that many parse. By default 2 where there are the cores, of which compressed files need one to decompress. The
    blocks do not depend on it.
    """

    task = None
    classes = None
    rows = None
    _part: ParsedLines | None = None  # the lines that gave the last block

    def __init__(
        self,
        paths: tuple[str, ...],
        *,
        max_errors: int = 0,
        block_bytes: int = BLOCK_BYTES,
        threads: int | None = None,
    ) -> None:
        must_be_limits(block_bytes, max_errors)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads!r}.")
        self.paths, self.threads = paths, threads or _threads(paths)
        self.name = printable(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self.max_errors, self.block_bytes = max_errors, block_bytes
        self.rereadable = not any(map(is_pipe, paths))
        self.total = sum(os.path.getsize(path) for path in paths) if self.rereadable else None
        self.done = 0
        self.text_bytes = 0
        self.errors = self._errors = list[str]()

    def _pass(self) -> Generator[Block, None, None]:
        self.errors = self._errors = list[str]()
        before = self.text_bytes
        spare: list[bytearray] = []
        lines = read_lines(self.paths, self.block_bytes, LONGEST_LINE, self.timing, spare)
        with closing(in_order(self.parse_lines, lines, self.threads)) as parts:
            for part in parts:
                self.done, self.text_bytes = part.text.done, before + part.text.bytes
                self.timing.parse += part.seconds
                spare.append(part.text.store)
                self._part = part
                yield from self._count_errors(part)
        self._part = None

    def _count_errors(self, part: ParsedLines) -> Iterator[Block]:
        """Count the errors and yield the block. The first error too many is raised after the rows before it."""
        block = part.block
        for line, message in part.errors:
            if len(self._errors) >= self.max_errors:
                before = 0 if block is None else int(np.searchsorted(block.lines, line))
                if block is not None and before:
                    yield block.cut(0, before)
                raise StreamError(message)
            self._errors.append(message)
        if block is not None:
            yield block

    def _entry_sums(self, block: Block) -> EntrySums:
        part = self._part
        return super()._entry_sums(block) if part is None or part.block is not block else part.sums

    @abstractmethod
    def parse_lines(self, piece: WholeLines) -> ParsedLines:
        """Parse some lines: the right rows as a block, and the errors of the wrong ones, in order."""


def _threads(paths: tuple[str, ...]) -> int:
    """How many threads parse these files."""
    return max(1, min(2, cores() - any(map(is_packed, paths))))


class ParsedLines(NamedTuple):
    """Some lines, once they are parsed."""

    text: WholeLines
    block: Block | None
    sums: EntrySums  # of the block
    errors: list[tuple[int, str]]
    seconds: float


def block_of(rows: Rows, y: np.ndarray, lines: np.ndarray, name: str) -> tuple[Block, EntrySums]:
    """The block of some rows of one file, and the sums of its entries."""
    size, largest, sums = look_over(rows)
    return Block(rows, y, lines, (name,), size, largest), sums


def drop_rows(
    piece: WholeLines, block: Block, sums: EntrySums, errors: dict[int, str], out_of_range: dict[int, str], began: float
) -> ParsedLines:
    """The parsed lines without the rows whose numbers are no finite doubles.

    ``errors`` has a message by line, ``out_of_range`` by row of the block; ``began`` is when parsing began.
    """
    if out_of_range:
        errors |= {int(block.lines[row]): message for row, message in out_of_range.items()}
        block = block.take(np.delete(np.arange(block.n), list(out_of_range)))
        weights = block.weights
        block, sums = block_of(block.rows, block.y, block.lines, piece.name)
        block = block._replace(weights=weights)
    found = [(at, f"{piece.name}:{at}: {errors[at]}.") for at in sorted(errors)]
    return ParsedLines(piece, block if block.n else None, sums, found, perf_counter() - began)


def infinite_entries(rows: Rows) -> list[tuple[int, int]]:
    """Row and column of the entries that are not finite."""
    wrong = np.flatnonzero(~np.isfinite(rows.values))
    owners = np.searchsorted(rows.indptr, wrong.astype(np.uint64), side="right") - 1
    return list(zip(owners.tolist(), rows.indices[wrong].tolist(), strict=True))


def token_at(store: bytearray, start: int, end: int, blank: re.Pattern[bytes]) -> str:
    """The text from ``start`` up to the next ``blank``."""
    found = blank.search(store, start, end)
    return store[start : found.start() if found else end].decode("utf-8", "replace").removesuffix("\r")


def quote_token(token: str) -> str:
    """A token as messages quote it."""
    return repr(token if len(token) <= 40 else token[:37] + "...") if token else "the end of the line"


def unexpected(token: str, expected: str, hint: str = "") -> str:
    """What is said of a line that has this token where something else is expected."""
    return f"expected {expected}, got {quote_token(token)}{hint}"


def hint_of_bytes(token: str, kind: str) -> str:
    """What a token with bytes that text of no kind has says of its file; empty for any other token."""
    if token.startswith("\ufeff"):
        return f"; a byte order mark is no part of {kind} text"
    return "; this looks like binary data" if "\0" in token or "\ufffd" in token else ""


HEAD = 1 << 16  # bytes of a file that tell what it is
OF_UTF_16 = "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
_TAR, _MODEL = b"ustar", f'{{"__metadata__":{{"{FORMAT}"'.encode()
_PLACES = {_TAR: 257, _MODEL: 8}  # of marks that do not stand at the beginning
_FOREIGN = {
    _TAR: "a tar archive; unpack it (tar -xf)",
    _MODEL: "a model file; give the rows here",
    b"\x1f\x8b": "gzip data; a file named *.gz is read as that",
    b"\xfd7zXZ": "xz data; a file named *.xz is read as that",
    b"BZh": "bzip2 data; a file named *.bz2 is read as that",
    b"\x28\xb5\x2f\xfd": "Zstandard data; a file named *.zst is read as that",
    b"PK\x03\x04": "a zip archive or a spreadsheet; unpack it, or save it as text",
    b"PAR1": "a Parquet file; a file named *.parquet is read as that",
    b"ARROW1": "an Arrow or Feather file; a file named *.arrow is read as that",
    b"\x93NUMPY": "a NumPy file",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": OF_UTF_16,
    b"\xfe\xff": OF_UTF_16,
}


def refuse_foreign(name: str, expected: str, head: bytes) -> None:
    """Raise StreamError for a file that begins as one of another kind does."""
    for mark, kind in _FOREIGN.items():
        if head.startswith(mark, _PLACES.get(mark, 0)):
            raise StreamError(f"{name}:1: expected {expected} text, got what looks like {kind}.")


def refuse_foreign_lines(piece: WholeLines, expected: str) -> None:
    """Raise StreamError where the first lines of a file are of another kind, and for a file whose lines end with CR alone: it
    is one line, however it is cut."""
    if piece.line > 1:
        return
    head = bytes(piece.store[: min(piece.end, HEAD)])
    refuse_foreign(piece.name, expected, head)
    if piece.whole and piece.lines == 1 and b"\r" in head.rstrip(b"\r\n"):
        raise StreamError(
            f"{piece.name}:1: expected {expected} text, got lines that end with CR alone (tr '\\r' '\\n' converts them)."
        )
