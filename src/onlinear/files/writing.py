"""How a file is written: the one way, for models, checkpoints, predictions, converted rows, reports and compiled kernels.

The content goes to a temporary file in the target's folder, which is synced to the disk and renamed: a reader sees the old file
or the new one, whole. Symbolic links are followed, and an existing file keeps its mode. A named pipe, a character device or
an open descriptor (``/dev/stdout``) is written to directly. A folder, socket or block device is refused.

A temporary file is named ``.onlinear-TARGET-RANDOM``, where TARGET is a digest of the target's name, and is locked while its
writer lives. The next writer of the same target removes those that nobody holds; where files cannot be locked, those that are
a day old. Errors name the target.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EBADF, EINVAL, EISDIR, ENOENT, ENOTSUP, EROFS
from typing import IO, Any, BinaryIO, cast

from onlinear.text.names import printable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = ".onlinear-"
OLD = 86_400.0  # seconds after which a temporary file that cannot be locked counts as left behind
STDIN = "-"
STDOUT = "standard output"
LONGEST = 255  # bytes of a file's name
IRREGULAR = {
    stat.S_IFDIR: "is a folder; expected a file",
    stat.S_IFSOCK: "is a socket; expected a file",
    stat.S_IFBLK: "is a block device; expected a file",
}
STREAMS = (stat.S_IFIFO, stat.S_IFCHR)
LINKS = 40  # that are followed from one to the next
Name = str | os.PathLike[str]


def write(path: Name, content: bytes) -> None:
    """Write a whole file. Raises OSError, which names ``path``."""
    with new_file(path) as file:
        file.write(content)


@contextmanager
def new_file(path: Name) -> Iterator[BinaryIO]:
    """A binary file to write to. ``path`` is replaced by it at the end, and is left as it was after an error.

    Raises OSError, which names ``path``, for what ``check`` refuses and for every error on the way, and TypeError for what is
    no name.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be the name of a file, got {type(path).__name__}: write to a file, and read its bytes.")
    name = os.fsdecode(path)
    check(name)
    with _through(name) if is_stream(name) else _replacing(name) as file:
        yield file


@contextmanager
def scratch(path: Name) -> Iterator[BinaryIO]:
    """A nameless file, in the folder of ``path``, for data that wait to be written there; errors name ``path``."""
    name = os.fsdecode(path)
    with _naming(name):
        hidden = tempfile.TemporaryFile(dir=None if is_stream(name) else _folder(name))  # noqa: SIM115
    with hidden, io.BufferedRandom(_File(os.dup(hidden.fileno()), "r+b", name)) as file:
        yield cast(BinaryIO, file)


def check(path: Name) -> None:
    """Raise OSError where ``path`` cannot be written, as far as that is known in advance."""
    name = os.fsdecode(path)
    if (number := _descriptor(name)) is not None:
        with _naming(name):
            found: os.stat_result | None = os.fstat(number)
    else:
        found = _stat_or_none(name)
    if found is not None and (words := IRREGULAR.get(stat.S_IFMT(found.st_mode))):
        raise OSError(EISDIR if stat.S_ISDIR(found.st_mode) else EINVAL, words, name)
    if number is not None:
        return
    if os.path.basename(name) in ("", os.curdir, os.pardir):
        raise IsADirectoryError(EISDIR, "names a folder; expected a file", name)
    if found is None or stat.S_ISREG(found.st_mode):
        folder = _folder(name)
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
    if _descriptor(name) is not None:
        return True
    found = _stat_or_none(name)
    return found is not None and stat.S_IFMT(found.st_mode) in STREAMS


def same(a: Name, b: Name) -> bool:
    """Whether two paths are one file: by name, by symbolic or by hard link. ``-`` is standard input; no device is a file."""
    try:
        first, second = _stat(os.fsdecode(a)), _stat(os.fsdecode(b))
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)
    return os.path.samestat(first, second) and not stat.S_ISCHR(first.st_mode)


def is_standard_output(path: Name) -> bool:
    """Whether what is written to ``path`` stands among the lines that the process prints: they go to one pipe or file."""
    try:
        printed = os.fstat(standard_output().fileno())
        return is_stream(path) and os.path.samestat(os.stat(path), printed) and not _is_null(printed)
    except (OSError, ValueError):  # nothing is printed, or not to a file
        return False


def _is_null(found: os.stat_result) -> bool:
    return os.path.samestat(found, os.stat(os.devnull))


def suffixed(path: Name, suffix: str) -> str:
    """``path`` with a suffix; of a name that would be too long for the file system, the end is cut."""
    folder, name = os.path.split(os.fsdecode(path))
    while len(os.fsencode(name + suffix)) > LONGEST:
        name = name[:-1]
    return os.path.join(folder, name + suffix)


def clean(path: Name) -> None:
    """Remove the temporary files that killed writers of ``path`` left behind."""
    name = os.fsdecode(path)
    if is_stream(name):
        return
    folder, prefix = _folder(name), _prefix(os.path.realpath(name))
    with suppress(OSError):
        for left in os.listdir(folder):
            if left.startswith(prefix):
                _remove(os.path.join(folder, left))


# --- where -----------------------------------------------------------------------------------------------------------


def _stat_or_none(name: str) -> os.stat_result | None:
    """The status of the file at a path, None where there is none yet."""
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stat(name: str) -> os.stat_result:
    return os.fstat(0) if name == STDIN else os.stat(name)


def _folder(name: str) -> str:
    """The folder of the file that a path leads to."""
    return os.path.dirname(os.path.realpath(name))


def _read_only(folder: str) -> bool:
    """Whether a file system takes no writes at all."""
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _descriptor(name: str) -> int | None:
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


def _prefix(target: str) -> str:
    """The beginning of the names of a target's temporary files; it is as short for a long name as for a short one."""
    return f"{PREFIX}{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:12]}-"


# --- files whose errors name the target ------------------------------------------------------------------------------


class _File(io.FileIO):
    """An open file whose errors name the target."""

    def __init__(self, descriptor: int, mode: str, shown: str) -> None:
        super().__init__(descriptor, mode)
        self._shown = shown

    def write(self, data: Any) -> int:  # type: ignore[override]
        with _naming(self._shown):
            return cast(int, super().write(data))


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), name) from None


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
        with _naming(self._name):
            written = cast(int, self._raw.write(data))
        self._failed = False
        return written


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


@contextmanager
def _through(name: str) -> Iterator[BinaryIO]:
    """A pipe, a device or an open descriptor, as it is."""
    number = _descriptor(name)
    with _naming(name):
        if number is None:
            handle = os.open(name, os.O_WRONLY | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0))
        else:
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            handle = os.dup(number)
    with io.BufferedWriter(_File(handle, "wb", name)) as file:
        yield file


# --- files that are replaced -----------------------------------------------------------------------------------------


@contextmanager
def _replacing(name: str) -> Iterator[BinaryIO]:
    target, before = os.path.realpath(name), _stat_or_none(name)
    clean(name)
    with _naming(name):
        handle, temporary = _temporary(target, 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777)
    file = io.BufferedWriter(_File(handle, "wb", name))
    try:
        yield file
        with _naming(name):
            file.flush()
            _sync(handle)
            if before is not None:
                _liken(temporary, before)
            if os.name == "nt":  # which renames no open file
                file.close()
            check(name)  # a folder or device that came there meanwhile is not replaced either
            os.replace(temporary, target)
    except BaseException:
        _close(file)
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _close(file)
    with _naming(name):
        _sync_folder(os.path.dirname(target))


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # of a full disk: bytes wait in the buffer, and closing tries them once more
        file.close()


def _temporary(target: str, mode: int) -> tuple[int, str]:
    """Create a temporary file for a target, and hold it: (descriptor, name)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for optional in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, optional, 0)
    while True:
        name = os.path.join(os.path.dirname(target), _prefix(target) + secrets.token_hex(4))
        try:
            handle = os.open(name, flags, mode)
        except FileExistsError:
            continue
        if _is_held(handle, name):
            return handle, name
        os.close(handle)


def _is_held(handle: int, name: str) -> bool:
    """Lock a new temporary file; False where another writer has taken it, unlocked as it still was, for one left behind."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False


def _remove(left: str) -> None:
    """Remove a temporary file unless its writer lives."""
    with suppress(OSError):
        if fcntl is None:
            if _is_old(left):
                os.unlink(left)
            return
        handle = os.open(left, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lost = True
            except BlockingIOError:
                lost = False
            except OSError:
                lost = _is_old(left)
            if lost:
                os.unlink(left)
        finally:
            os.close(handle)


def _is_old(left: str) -> bool:
    return time.time() - os.stat(left).st_mtime > OLD


def _liken(temporary: str, before: os.stat_result) -> None:
    """Give a file the owner, as far as that is allowed, and the mode of the one that it replaces."""
    if hasattr(os, "chown"):
        for owner in ((-1, before.st_gid), (before.st_uid, -1)):
            with suppress(PermissionError):
                os.chown(temporary, *owner)
    with suppress(PermissionError):  # of file systems without modes
        os.chmod(temporary, stat.S_IMODE(before.st_mode) & 0o777)


def _sync(handle: int) -> None:
    whole = getattr(fcntl, "F_FULLFSYNC", None)  # macOS, whose fsync leaves content in the cache of the disk
    if whole is not None:
        with suppress(OSError):  # a file system that has no such thing
            fcntl.fcntl(handle, whole)
            return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (EINVAL, ENOTSUP):  # a file system that has no such thing
            raise


def _sync_folder(folder: str) -> None:
    """Make the rename last, where a folder can be synced (not on Windows)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        _sync(handle)
    finally:
        os.close(handle)
