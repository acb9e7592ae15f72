"""Standard output and standard error: all that is written there arrives, or ends in one error that names the stream."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from errno import EBADF
from typing import Any, cast

from onlinear.files.paths import Name, is_stream, naming

STDOUT = "standard output"


def whole_or_named(out: io.TextIOWrapper, name: str = STDOUT, *, by_lines: bool = False) -> io.TextIOWrapper:
    """``out``, a standard stream, as one whose errors name it, and that writes all it is given or fails.

    Where Python does not buffer it, as PYTHONUNBUFFERED says, a disk with too little room takes a part without an error."""
    raw = getattr(out.buffer, "raw", out.buffer)
    held, lines = io.BufferedWriter(_Outlet(raw, name)), by_lines or out.line_buffering
    return io.TextIOWrapper(held, encoding=out.encoding, errors="backslashreplace", line_buffering=lines)


def standard_output() -> Any:
    """Standard output, which the parent of this process may have closed."""
    if sys.stdout is None:
        raise OSError(EBADF, "is closed", STDOUT)
    return sys.stdout


def lines_to(out: Any) -> Callable[[str], Any]:
    """What writes lines of data to standard output: to a terminal in its own letters, else the bytes that a file would get."""
    if out.isatty():
        return cast("Callable[[str], Any]", out.write)
    out.flush()
    return lambda text: out.buffer.write(text.encode())


def is_standard_output(path: Name) -> bool:
    """Whether what is written to ``path`` stands among the lines that the process prints: they go to one pipe or file."""
    try:
        printed = os.fstat(standard_output().fileno())
        return (
            is_stream(path) and os.path.samestat(os.stat(path), printed) and not os.path.samestat(printed, os.stat(os.devnull))
        )
    except (OSError, ValueError):  # nothing is printed, or not to a file
        return False


class _Outlet(io.RawIOBase):
    """What a standard stream writes through. Errors name it; after the first what follows leads nowhere, as what is still held
    would fail again at the end."""

    def __init__(self, raw: Any, name: str) -> None:
        super().__init__()
        self._raw, self._name, self._failed = raw, name, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return cast(int, self._raw.fileno())

    def isatty(self) -> bool:
        return bool(self._raw.isatty())

    def write(self, data: Any) -> int:
        if self._failed:
            return len(data)
        self._failed = True
        with naming(self._name):
            written = cast(int, self._raw.write(data))
        self._failed = False
        return written
