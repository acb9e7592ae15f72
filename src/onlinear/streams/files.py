"""Bytes of files: plain, compressed (by suffix) or standard input, and how far a reader has come."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from onlinear.streams.blocks import StreamError

STDIN = "-"


class ByteFile:
    """One open file: ``readinto`` gives its decompressed bytes, ``position`` the bytes taken from the disk."""

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STDIN else path
        self._raw: BinaryIO = sys.stdin.buffer if path == STDIN else open_raw(path)
        self._file: Any = self._raw if path == STDIN else _decompressed(self._raw, Path(path).suffix)

    def readinto(self, target: memoryview) -> int:
        """Fill ``target`` as far as there are bytes; fewer than asked means the end."""
        filled = 0
        try:
            while filled < len(target):
                count = self._file.readinto(target[filled:])
                if not count:
                    break
                filled += count
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise StreamError(f"{self.name}: cannot be read to its end, the file is damaged or cut short ({error}).") from None
        return filled

    @property
    def position(self) -> int:
        """Bytes read from the file so far, as they are on the disk; 0 for standard input."""
        return self._raw.tell() if self._raw is not sys.stdin.buffer and not self._raw.closed else 0

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._file.close()
            self._raw.close()


def open_raw(path: str) -> BinaryIO:
    """Open a file for reading, or raise OSError in words."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise FileNotFoundError(f"no file at {path!r}.") from None
    except PermissionError:
        raise PermissionError(f"{path}: no permission to read it.") from None


def _decompressed(raw: BinaryIO, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    if suffix == ".bz2":
        return bz2.BZ2File(raw)
    if suffix == ".zst":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return raw
