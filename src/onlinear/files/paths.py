"""What a path leads to: a file, a stream or nothing yet; whether it can be written, and whether two paths are one file.

A stream is what is written to directly: a named pipe, a character device or an open descriptor (``/dev/stdout``). Folders,
sockets and block devices are refused. Errors name the path as it was given.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EBADF, EINVAL, EISDIR, ENOENT, EROFS

from onlinear.text.names import printable

STDIN = "-"
LONGEST = 255  # bytes of a file's name
LINKS = 40  # that are followed from one to the next
IRREGULAR = {
    stat.S_IFDIR: "is a folder; expected a file",
    stat.S_IFSOCK: "is a socket; expected a file",
    stat.S_IFBLK: "is a block device; expected a file",
}
STREAMS = (stat.S_IFIFO, stat.S_IFCHR)
Name = str | os.PathLike[str]


def check_writable(path: Name) -> None:
    """Raise OSError where ``path`` cannot be written, as far as that is known in advance."""
    name = os.fsdecode(path)
    if (number := descriptor_of(name)) is not None:
        if is_closed(name):
            raise OSError(EBADF, "is closed", name)
        with naming(name):
            found: os.stat_result | None = os.fstat(number)
    else:
        found = status_or_none(name)
    if found is not None and (words := IRREGULAR.get(stat.S_IFMT(found.st_mode))):
        raise OSError(EISDIR if stat.S_ISDIR(found.st_mode) else EINVAL, words, name)
    if number is not None:
        return
    if os.path.basename(name) in ("", os.curdir, os.pardir):
        raise IsADirectoryError(EISDIR, "names a folder; expected a file", name)
    if found is None or stat.S_ISREG(found.st_mode):
        folder = folder_of(name)
        shown = folder if os.path.islink(name) else os.path.dirname(name) or "."
        if not os.path.isdir(folder):
            raise FileNotFoundError(ENOENT, f"there is no folder {shown!r}", name)
        if not os.access(folder, os.W_OK | os.X_OK):
            why = f": {os.strerror(EROFS)}" if _read_only(folder) else ""
            raise PermissionError(EACCES, f"the folder {shown!r} cannot be written to{why}", name)
    if found is not None and not os.access(name, os.W_OK):
        raise PermissionError(EACCES, "is write-protected", name)


def exists(path: Name) -> bool:
    """Whether there is such a file or folder; raises PermissionError where a folder on the way does not let that be seen."""
    try:
        os.stat(path)
    except PermissionError:
        raise PermissionError(f"{printable(os.fsdecode(path))}: no permission to read it.") from None
    except (OSError, ValueError):
        return False
    return True


def is_stream(path: Name) -> bool:
    """Whether ``path`` is written to directly: a named pipe, a character device or an open descriptor of this process."""
    name = os.fsdecode(path)
    if descriptor_of(name) is not None:
        return True
    found = status_or_none(name)
    return found is not None and stat.S_IFMT(found.st_mode) in STREAMS


def is_closed(path: Name) -> bool:
    """Whether ``path``, such as ``/dev/stdin``, names a standard stream that was closed when the process began: what has its
    number now is something else."""
    number = descriptor_of(os.fsdecode(path))
    return number is not None and number < 3 and (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number] is None


def same(a: Name, b: Name) -> bool:
    """Whether two paths are one file: by name, by symbolic or by hard link. ``-`` is standard input; no device is a file."""
    try:
        first, second = _stat(os.fsdecode(a)), _stat(os.fsdecode(b))
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)
    return os.path.samestat(first, second) and not stat.S_ISCHR(first.st_mode)


def suffixed(path: Name, suffix: str) -> str:
    """``path`` with a suffix; of a name that would be too long for the file system, the end is cut."""
    folder, name = os.path.split(os.fsdecode(path))
    while len(os.fsencode(name + suffix)) > LONGEST:
        name = name[:-1]
    return os.path.join(folder, name + suffix)


def status_or_none(name: str) -> os.stat_result | None:
    """The status of the file at a path, None where there is none yet."""
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stat(name: str) -> os.stat_result:
    return os.fstat(0) if name == STDIN else os.stat(name)


def folder_of(name: str) -> str:
    """The folder of the file that a path leads to."""
    return os.path.dirname(os.path.realpath(name))


def _read_only(folder: str) -> bool:
    """Whether a file system takes no writes at all."""
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def descriptor_of(name: str) -> int | None:
    """The number of the open file that a path such as /dev/stdout or /dev/fd/3 names.

    What was written to it before is kept: to open such a path anew would begin at the file's start, to replace it would lose
    what follows.
    """
    for _ in range(LINKS):
        folder, last = os.path.split(os.path.abspath(name))
        if last.isdecimal() and re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd", os.path.realpath(folder)):
            return int(last)
        if not os.path.islink(name):
            return None
        name = os.path.join(folder, os.readlink(name))
    return None


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Errors of the system, as ones that name the path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), name) from None
