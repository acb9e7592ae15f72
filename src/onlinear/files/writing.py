"""How a file is written: the one way, for models, checkpoints, predictions, converted rows, reports and compiled kernels.

The content goes to a temporary file in the target's folder, which is synced to the disk and renamed: a reader sees the old file
or the new one, whole. Symbolic links are followed, and an existing file keeps its mode. A named pipe, a character device or
an open descriptor (``/dev/stdout``) is written to directly (``paths.py``).

A temporary file is named ``.onlinear-TARGET-RANDOM``, where TARGET is a digest of the target's name, and is locked while its
writer lives. The next writer of the same target removes those that nobody holds; where files cannot be locked, those that are
a day old. Errors name the target.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ENOTSUP
from typing import IO, Any, BinaryIO, cast

from onlinear.files.paths import Name, check_writable, descriptor_of, folder_of, is_stream, naming, status_or_none

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = ".onlinear-"
OLD = 86_400.0  # seconds after which a temporary file that cannot be locked counts as left behind


def write(path: Name, content: bytes) -> None:
    """Write a whole file. Raises OSError, which names ``path``."""
    with new_file(path) as file:
        file.write(content)


@contextmanager
def new_file(path: Name) -> Iterator[BinaryIO]:
    """A binary file to write to. ``path`` is replaced by it at the end, and is left as it was after an error.

    Raises OSError, which names ``path``, for what ``check_writable`` refuses and for every error on the way, and TypeError for
    what is no name.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be the name of a file, got {type(path).__name__}: write to a file, and read its bytes.")
    name = os.fsdecode(path)
    check_writable(name)
    with _through(name) if is_stream(name) else _replacing(name) as file:
        yield file


@contextmanager
def scratch(path: Name) -> Iterator[BinaryIO]:
    """A nameless file, in the folder of ``path``, for data that wait to be written there; errors name ``path``."""
    name = os.fsdecode(path)
    with naming(name):
        hidden = tempfile.TemporaryFile(dir=None if is_stream(name) else folder_of(name))  # noqa: SIM115
    with hidden, io.BufferedRandom(_File(os.dup(hidden.fileno()), "r+b", name)) as file:
        yield cast(BinaryIO, file)


def clean(path: Name) -> None:
    """Remove the temporary files that killed writers of ``path`` left behind."""
    name = os.fsdecode(path)
    if is_stream(name):
        return
    folder, prefix = folder_of(name), _prefix(os.path.realpath(name))
    with suppress(OSError):
        for left in os.listdir(folder):
            if left.startswith(prefix):
                _remove(os.path.join(folder, left))


# --- files whose errors name the target ------------------------------------------------------------------------------


class _File(io.FileIO):
    """An open file whose errors name the target."""

    def __init__(self, descriptor: int, mode: str, shown: str) -> None:
        super().__init__(descriptor, mode)
        self._shown = shown

    def write(self, data: Any) -> int:  # type: ignore[override]
        with naming(self._shown):
            return cast(int, super().write(data))


@contextmanager
def _through(name: str) -> Iterator[BinaryIO]:
    """A pipe, a device or an open descriptor, as it is."""
    number = descriptor_of(name)
    with naming(name):
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
    target, before = os.path.realpath(name), status_or_none(name)
    clean(name)
    with naming(name):
        handle, temporary = _temporary(target, 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777)
    file = io.BufferedWriter(_File(handle, "wb", name))
    try:
        yield file
        with naming(name):
            file.flush()
            _sync(handle)
            if before is not None:
                _liken(temporary, before)
            if os.name == "nt":  # which renames no open file
                file.close()
            check_writable(name)  # a folder or device that came there meanwhile is not replaced either
            os.replace(temporary, target)
    except BaseException:
        _close(file)
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _close(file)
    with naming(name):
        _sync_folder(os.path.dirname(target))


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # of a full disk: bytes wait in the buffer, and closing tries them once more
        file.close()


def _prefix(target: str) -> str:
    """The beginning of the names of a target's temporary files; it is as short for a long name as for a short one."""
    return f"{PREFIX}{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:12]}-"


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
