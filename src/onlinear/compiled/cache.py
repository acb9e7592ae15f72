"""Compiled code on disk, and a word while kernels are compiled.

The code of a kernel is kept under a digest of this package's sources, so an edited file is compiled anew.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import pickle
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EPERM, EROFS
from functools import cache
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

from numba import __version__ as numba_version
from numba import types

from onlinear.compiled import machine_code
from onlinear.compiled._private import (
    LACKING,
    Listener,
    NullCache,
    code_parts,
    dumps,
    light_environment,
    normalize_signature,
    rebuilt,
    register,
    rtsys,
    unheard,
    use_cache,
)
from onlinear.compiled.home import CACHE, COMPILED, DIGEST, PACKAGE, is_ours
from onlinear.compiled.uninterrupted import uninterrupted

PATIENCE = 1.0  # seconds of compiling after which a word is said
_LOG = logging.getLogger(PACKAGE)


class _Disk(NullCache):  # type: ignore[misc]
    """The compiled code of one function on disk: a file for each signature, which begins with a digest of its content.

    No error of the cache is an error of the call. What cannot be read, is damaged or is for something else is removed, and the
    function is compiled; what cannot be written is compiled anew by each process. ``sources`` tells versions of the text apart.
    Numba readies its whole compiler before it looks into its own cache; what is found here needs the runtime alone.
    """

    def __init__(self, text: Callable[..., Any], folder: Path, sources: str) -> None:
        self._folder = folder
        self._name = f"{text.__module__}.{text.__qualname__}"
        code = text.__code__
        code_digest = hashlib.sha256(code.co_code).hexdigest()
        self._about = (sys.implementation.cache_tag, numba_version, sources, self._name, code.co_firstlineno, code_digest)

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        self._codegen = target_context.codegen()
        path, key = self._entry(sig, target_context.codegen())
        try:
            return _unpacked(target_context, machine_code.Code(*machine_code.content(path, key)))
        except Exception:  # whatever it is, it is only the cache's
            pass
        _remove(path)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or not all(lifted.can_cache for lifted in data.lifted):
            return
        path, key = self._entry(sig, data.codegen)
        try:
            if not self._folder.is_dir():
                _remove(self._folder)
                self._folder.mkdir(mode=0o700)
            machine_code.write(path, key, _packed(data))
        except Exception as error:
            _unkept(self._folder.parent, error)

    def point_here(self, sig: Any, place: tuple[Path, str] | None) -> None:
        """Write the file that says where the code for a signature is, which was asked for."""
        if place is None:
            return
        path, key = self._entry(sig, self._codegen)
        try:
            if path.is_file():
                machine_code.write(*place, (path.name, key))
        except Exception as error:
            _unkept(self._folder.parent, error)

    def _entry(self, sig: Any, codegen: Any) -> tuple[Path, str]:
        """The file for a signature on this machine, and what it is for."""
        key = repr((*self._about, codegen.magic_tuple(), _spelt(normalize_signature(sig))))
        short = re.sub(r"[^\w.]+", "", self._name)[-80:]
        return self._folder / f"{short}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc", key


class HeldType(types.Type):  # type: ignore[misc]
    """The address of arguments in memory; ``content`` is their type, a tuple's."""

    def __init__(self, content: Any) -> None:
        self.content = content
        super().__init__(name=f"Held({content})")

    @property
    def key(self) -> Any:
        """What tells types apart: names do not, as classes may have the same one."""
        return self.content

    def __hash__(self) -> int:
        return hash(self.name)  # a text keeps its own, which takes long to find for all that is held


class RoutineType(types.Type):  # type: ignore[misc]
    """The address of compiled code; ``takes``: the types of its arguments, ``gives``: that of what it gives."""

    def __init__(self, takes: tuple[Any, ...], gives: Any) -> None:
        self.takes, self.gives = takes, gives
        super().__init__(name=f"Routine({takes}, {gives})")

    @property
    def key(self) -> Any:
        """As of ``HeldType``."""
        return self.takes, self.gives

    def __hash__(self) -> int:
        return hash(self.name)


def _spelt(kind: Any) -> str:
    """A type by its name, parts by the full names of their classes: Numba names them without their modules."""
    if isinstance(kind, HeldType):
        return f"Held({_spelt(kind.content)})"
    if isinstance(kind, RoutineType):
        return f"Routine({_spelt(kind.takes)}, {_spelt(kind.gives)})"
    if isinstance(kind, (tuple, types.BaseTuple)):
        cls = getattr(kind, "instance_class", tuple)
        return f"{cls.__module__}.{cls.__qualname__}({', '.join(map(_spelt, kind))})"
    return repr(kind)


def _packed(data: Any) -> tuple[Any, ...]:
    """Compiled code as files have it: ``machine_code.Code`` as a tuple."""
    blocks, names, constants, rest = code_parts(data)
    return (*blocks, *names, dumps(constants), dumps(rest))


def _unpacked(target: Any, code: machine_code.Code) -> Any:
    rest = _Reader(BytesIO(code.rest)).load()
    return rebuilt(target, (code.machine_code, code.bitcode), rest)


class _Reader(pickle.Unpickler):
    """Reads compiled code without importing the modules of Numba that it was made of: these are the compiler's."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return light_environment
        return super().find_class(module, name)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@cache
def _say_once(level: int, text: str) -> None:
    _LOG.log(level, "%s", text)


def _unkept(folder: Path, error: Exception) -> None:
    """Say once that compiled code is not kept; quietly where the folder is read-only, which is somebody's choice."""
    chosen = isinstance(error, OSError) and error.errno in (EACCES, EPERM, EROFS)
    why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
    text = f"onlinear: compiled kernels cannot be kept in {folder}: {why}. Each process compiles them anew."
    _say_once(logging.INFO if chosen else logging.WARNING, text)


def keep_on_disk(found: Any, text: Callable[..., Any]) -> Any:
    """What Numba made of ``text``, with the disk cache in the folder of these sources."""
    if LACKING:
        message = f"onlinear: kernels are compiled anew by each process: Numba {numba_version} cannot keep them ({LACKING})."
        _say_once(logging.WARNING, message)
    sources = "" if is_ours(text.__module__) else _file_digest(text.__code__.co_filename)
    if _CACHE is not None and sources is not None and not text.__closure__:
        use_cache(found, _Disk(text, _CACHE / DIGEST, sources))
    return found


def point_to(found: Any, sig: Any, place: tuple[Path, str] | None) -> None:
    """Let later processes find what Numba made for a signature without Numba."""
    disk = getattr(found, "_cache", None)
    if isinstance(disk, _Disk):
        disk.point_here(sig, place)


@cache
def _file_digest(path: str) -> str | None:
    """The digest of a source file from outside the package; None for code that has no file."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


@contextmanager
def undisturbed() -> Iterator[None]:
    """No search for unused cycles of objects: the compiler makes many objects and few are unused, so each search is in vain.
    No events that nothing listens to. And no Ctrl-C, which waits."""
    collected = gc.isenabled()
    gc.disable()
    try:
        with unheard(), uninterrupted():
            yield
    finally:
        if collected:
            gc.enable()


# --- a word while kernels are compiled -------------------------------------------------------------------------------


class _Compiling(Listener):  # type: ignore[misc]
    """Says once, in one line, that kernels are being compiled, when that has taken longer than ``PATIENCE`` in total.

    The line is a message of the logger ``onlinear.compiling``: a warning where somebody watches, a terminal or a notebook, so
    that it is shown although no logging is set up; an information elsewhere. Nothing runs while kernels come from the disk.
    """

    def __init__(self) -> None:
        self._spent, self._began, self._depth = 0.0, 0.0, 0
        self._said = False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """A compilation begins; those inside it, of what it calls, are parts of it."""
        self._depth += 1  # Numba's lock lets in one thread at a time
        found = event.data["dispatcher"]
        if self._depth > 1 or self._said or not is_ours(found.py_func.__module__ or ""):
            return
        self._began = perf_counter()
        self._timer = threading.Timer(
            max(0.0, PATIENCE - self._spent), self._say, (isinstance(getattr(found, "_cache", None), _Disk),)
        )
        self._timer.daemon = True
        with suppress(RuntimeError):  # no thread is to be had
            self._timer.start()

    def on_end(self, event: Any) -> None:
        self._depth = max(0, self._depth - 1)
        if self._depth or self._timer is None:
            return
        self._timer.cancel()
        with suppress(RuntimeError):
            self._timer.join()
        self._timer = None
        self._spent += perf_counter() - self._began

    def _say(self, kept: bool) -> None:
        self._said = True
        where = f"first use; kept in {_CACHE}" if kept else "not kept: each process compiles them anew"
        watched = hasattr(sys, "ps1") or (sys.stderr is not None and sys.stderr.isatty())
        text = "onlinear: compiling kernels for this machine (%s)"
        logging.getLogger(f"{PACKAGE}.compiling").log(logging.WARNING if watched else logging.INFO, text, where)


_CACHE = CACHE if not LACKING else None
if COMPILED and register is not None:
    register("numba:compile", _Compiling())
