"""Text of files and pipes, cut at line ends, and how far a reader has come.

The suffix of a file says how it is compressed. A pipe (standard input, a FIFO) has no name of its own: its first bytes say it.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from onlinear.compiled import MARKED, count_marks, lean_kernel, marks_of, room
from onlinear.files.paths import is_closed
from onlinear.streams import leaving
from onlinear.streams.blocks import StreamError, Timing
from onlinear.streams.characters import NEWLINE
from onlinear.streams.suffixes import suffix_of
from onlinear.text.names import printable

STDIN = "-"
PIECE = 1 << 18  # bytes asked for at a time: where a compressed file is damaged, its last piece is lost
PACKED = 1 << 16  # bytes taken from a gzip file at a time

BEGIN: dict[str, Callable[[], Any]] = {  # what decompresses one member
    ".gz": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


_HEAD = max(map(len, MAGIC))  # bytes that say how a file is compressed
_TEXT = re.compile(rb"[\t\n\r -~]+")


def _kind_of(head: bytes) -> str:
    """The suffix that a file with these first bytes would have; empty for one that is not compressed."""
    return next((suffix for magic, suffix in MAGIC.items() if head.startswith(magic)), "")


def is_open_file(source: Any) -> bool:
    """Whether ``source`` is a file that is open, or one that opens later (fsspec, zipfile), and not a path."""
    if hasattr(type(source), "__array__"):  # rows: attributes of a data frame are its columns, and arrays of zarr have ``open``
        return False
    return hasattr(source, "readable") or (hasattr(source, "open") and not isinstance(source, os.PathLike))


def is_pipe(path: str) -> bool:
    """Whether a source gives its bytes once: standard input, a FIFO, a device; no file and no folder."""
    if path == STDIN:
        return True
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def is_packed(path: str) -> bool:
    """Whether a file's name says that it is compressed."""
    return suffix_of(path) in MAGIC.values()


class Pipe(io.RawIOBase):
    """The bytes of a pipe. The first ones, which say how it is compressed, are read in advance and then given again."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self.head = raw, b""
        leaving.opened(raw)
        while len(self.head) < _HEAD and leaving.has_bytes(raw) and (piece := raw.read(_HEAD - len(self.head))):
            self.head += piece
        self._waiting = self.head

    @property
    def suffix(self) -> str:
        """The suffix that a file with these first bytes would have."""
        return _kind_of(self.head)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        if not self._waiting:
            return self._raw.readinto(target) if leaving.has_bytes(self._raw) else 0  # type: ignore[attr-defined,no-any-return]
        count = min(len(target), len(self._waiting))
        target[:count], self._waiting = self._waiting[:count], self._waiting[count:]
        return count


class Members(io.RawIOBase):
    """The text of a compressed file: of one member after the other, with zeros behind any.

    Python's own readers of bzip2 and xz end where a later member is damaged, as if nothing stood there. Its reader of gzip
    takes 8 KB from the disk at a time before version 3.12, which costs a quarter of its speed.
    """

    def __init__(self, raw: BinaryIO, begin: Callable[[], Any]) -> None:
        self._raw, self._begin, self._packed = raw, begin, b""
        self._member: Any = None
        self._padding = b""  # what may stand between two members

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        text = b""
        while not text:
            if self._member is None:
                self._packed = self._packed.lstrip(self._padding)
            if not self._packed and (self._member is None or getattr(self._member, "needs_input", True)):
                packed = self._raw.read(PACKED)
                if not packed:
                    return self._end(packed)
                self._packed = packed
            else:
                text = self._take(len(target))
        target[: len(text)] = text
        return len(text)

    def _take(self, most: int) -> bytes:
        """The next bytes of text; none where they need more of the file."""
        member = self._member = self._member or self._begin()
        text: bytes = member.decompress(self._packed, most)
        self._packed = getattr(member, "unconsumed_tail", b"")  # gzip's alone: others keep what they were given
        if member.eof:
            self._packed, self._member, self._padding = member.unused_data, None, b"\0"
        return text

    def _end(self, packed: bytes | None) -> int | None:
        """What ``readinto`` says where the file gives nothing: at its end, or (None) for now."""
        if packed is not None and self._member is not None:
            raise EOFError("it ends within a member")
        return None if packed is None else 0


def _standard_input() -> Any:
    if sys.stdin is None:
        raise StreamError("standard input: is closed.")
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


class ByteFile:
    """One open file: ``readinto`` gives its decompressed bytes, ``position`` the bytes taken from the disk."""

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STDIN else printable(path)
        self.error: StreamError | None = None  # the damage that ended the file early
        self._own, self._suffix = path != STDIN, suffix_of(path)
        self._file: Any = None
        # Unbuffered: a thread that waits in Python's own buffer of standard input could not be left at exit.
        self._raw: BinaryIO = open_raw(path) if self._own else _standard_input()
        self._pipe = is_pipe(path)
        try:
            pipe = Pipe(self._raw) if self._pipe else None
        except BaseException:
            self.close()
            raise
        self._file = _decompress(self._raw, self._suffix) if pipe is None else _decompress(pipe, pipe.suffix)

    def readinto(self, target: memoryview) -> int:
        """Fill ``target`` as far as there are bytes; fewer than asked means the end, or an error that the next call raises. A
        run that leaves its pipes takes no more bytes of any file."""
        if self.error is not None:
            raise self.error
        filled = 0
        try:
            while filled < len(target) and not leaving.are_left():
                count = self._file.readinto(target[filled : filled + PIECE])
                if count is None:
                    raise BlockingIOError("it gives nothing and does not wait")
                if not count:
                    if self._suffix in MAGIC.values() and not self._pipe and not self._raw.tell():
                        raise EOFError("it has no bytes")  # which no program that compresses writes
                    break
                filled += count
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            if leaving.are_left():
                return filled
            why = self._misnamed() or f"cannot be read to its end, the file is damaged or cut short ({error})"
            self.error = StreamError(f"{self.name}: {why}.")
            if not filled:
                raise self.error from None
        return filled

    def _misnamed(self) -> str:
        """That a file which cannot be decompressed begins as one of another kind, or as text, in words."""
        if self._pipe or self._suffix not in MAGIC.values():
            return ""
        try:
            place = self._raw.tell()
            self._raw.seek(0)
            head = self._raw.read(_HEAD)
            self._raw.seek(place)
        except OSError:  # the disk's error it was
            return ""
        begins = _kind_of(head)
        if begins != self._suffix and (begins or _TEXT.fullmatch(head)):
            return f"is not compressed as its name says: it begins as {f'a {begins} file' if begins else 'text'}. Rename it"
        return ""

    @property
    def position(self) -> int:
        """Bytes read from the file so far, as they are on the disk; 0 for a pipe."""
        return 0 if self._pipe else self._raw.tell()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._own:
            if self._file is not None:
                self._file.close()
            self._raw.close()


class WholeLines(NamedTuple):
    """Some whole lines of one file: the text is ``store[:end]``."""

    name: str
    store: bytearray
    end: int
    line: int  # the number of the first, from 1
    lines: int
    done: int  # bytes taken from the disk, of all files so far
    bytes: int  # bytes of text, of all files so far
    whole: bool = False  # whether they are all lines of the file


def read_lines(
    paths: Sequence[str], size: int, longest: int, timing: Timing, spare: list[bytearray]
) -> Generator[WholeLines, None, None]:
    """The lines of files, in order, about ``size`` bytes at a time; each file ends with a WholeLines, which may be empty.

    Buffers are taken from ``spare`` while it has any; the caller puts them back there. Raises StreamError for a line
    of more than ``longest`` bytes and, after the lines before it, for a damaged file.
    """
    done, count = 0, 0
    for path in paths:
        with closing(ByteFile(path)) as file:
            for text in _cut_lines(file, min(size, longest) + 1, longest, timing, spare):
                count += text.bytes
                yield text._replace(done=done + file.position, bytes=count)
            done += file.position


def _cut_lines(
    file: ByteFile, length: int, longest: int, timing: Timing, spare: list[bytearray]
) -> Generator[WholeLines, None, None]:
    rest, line, last, fresh = bytearray(), 1, False, 0
    while not last:
        store, kept = _buffer(length, spare), len(rest)
        store[:kept] = rest
        began = perf_counter()
        count = file.readinto(memoryview(store)[kept : length - 1])
        timing.read += perf_counter() - began
        fresh += count
        end, last = kept + count, kept + count < length - 1
        if last and end and store[end - 1] != NEWLINE and file.error is None and not leaving.are_left():
            store[end] = NEWLINE
            end += 1
        stop = store.rfind(b"\n", kept, end) + 1
        rest = store[stop:end]
        if stop or last:
            lines = count_byte(np.frombuffer(store, np.uint8, stop), NEWLINE)
            yield WholeLines(file.name, store, stop, line, lines, file.position, fresh, whole=last and line == 1)
            line, fresh = line + lines, 0
        del store  # a long line is held once
        if file.error is not None:
            raise file.error
        if len(rest) > longest:
            raise StreamError(f"{file.name}:{line}: expected a line of at most {longest} bytes, got no line end.")
        if len(rest) >= length // 2:
            length = min(2 * length, longest + 2)


def count_byte(text: np.ndarray, byte: int) -> int:
    """How often a byte occurs."""
    whole = len(text) - len(text) % MARKED
    return int(_count_byte(text[:whole], byte)) + int(np.count_nonzero(text[whole:] == byte))


@lean_kernel
def _count_byte(array, byte):  # type: ignore[no-untyped-def]
    """How often a byte occurs among whole groups of ``MARKED``."""
    text, total = room(array, np.uint64(0)), np.uint64(0)
    for i in range(np.uint64(0), np.uint64(array.shape[0]), np.uint64(MARKED)):
        total += count_marks(marks_of(text, i, byte))
    return total


def _buffer(length: int, spare: list[bytearray]) -> bytearray:
    while spare:
        store = spare.pop()
        if len(store) == length:
            return store
    return bytearray(length)


def open_raw(path: str) -> BinaryIO:
    """Open a file for reading, or raise OSError in words."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{printable(path)} is a folder; expected a file.")
    if is_closed(path):
        raise OSError(f"{printable(path)}: is closed.")
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise FileNotFoundError(f"no file at {path!r}.") from None
    except PermissionError:
        raise PermissionError(f"{printable(path)}: no permission to read it.") from None


def _decompress(raw: Any, suffix: str) -> Any:
    if suffix in BEGIN:
        return Members(raw, BEGIN[suffix])
    if suffix == ".zst":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return raw
