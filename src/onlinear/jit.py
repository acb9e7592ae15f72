"""The bridge to Numba, and the only file that knows it.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled. ``kernel`` compiles a function
and keeps the machine code on disk under a digest of this package's sources, so an edited file is never answered with
yesterday's code; a kernel that was given a part from outside the package is compiled anew in each process. A loss enters a
kernel as the addresses of its compiled methods (``bind_loss``), so one compiled kernel serves every loss. ``entry`` gives
the compiled code itself, for a call that is made again and again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, config, njit, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, overload_method
from numba.np.unsafe.ndarray import to_fixed_tuple

COMPILED = not config.DISABLE_JIT
PACKAGE = __name__.rpartition(".")[0]
C = TypeVar("C", bound=type)


def _digest() -> str:
    folder = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """Where compiled code is kept: the first writable one of ``ONLINEAR_CACHE_DIR``, the user's cache folder, a private folder
    among the temporary files; None if there is none."""
    named = os.environ.get("ONLINEAR_CACHE_DIR") or config.CACHE_DIR
    if named and _writable(Path(named)):
        return Path(named)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / PACKAGE
    if home.is_absolute() and _writable(home):
        return home
    shared = Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    return shared if _writable(shared) and _private(shared) else None


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _private(folder: Path) -> bool:
    """Whether nobody else can have put code there: anyone may create a folder among the temporary files."""
    found = folder.lstat()
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _kept(compiler: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call ``compiler`` with the disk cache pointed at the folder of these sources."""
    if _CACHE is None:
        return compiler(*args, **options)
    with _LOCK:
        before, config.CACHE_DIR = config.CACHE_DIR, str(_CACHE / _DIGEST)
        try:
            return compiler(*args, cache=True, **options)
        finally:
            config.CACHE_DIR = before


_LOCK = threading.RLock()
_DIGEST = _digest() if COMPILED else ""
_CACHE = _cache_folder() if COMPILED else None


def function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that kernels call; it becomes part of their machine code."""
    return njit(text)


def kept_function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that takes no parts and is called from Python too: kept on disk."""
    return _kept(njit, text) if COMPILED else text


def kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over rows. Kept on disk unless an argument is a part from outside the package; releases the GIL."""
    if not COMPILED:
        return text
    kept = _kept(njit, text, nogil=True)
    fresh = njit(text, nogil=True)

    @wraps(text)
    def call(*args: Any) -> Any:
        if all(map(_is_ours, args)):
            return kept(*args)
        try:
            return fresh(*args)
        except NumbaError as error:
            foreign = ", ".join(sorted({type(arg).__name__ for arg in args if not _is_ours(arg)}))
            raise TypeError(f"{text.__name__} does not compile with {foreign}: {error}") from error

    call.dispatcher = kept  # type: ignore[attr-defined]
    return call


def entry(call: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled code of ``call`` for arguments typed as ``args``, without the lookup that each ordinary call makes.

    An entry point checks no layout: give it arguments of the same types only. It is not a documented part of Numba; where it
    is not to be had, ``call`` itself is given.
    """
    if not COMPILED or not all(map(_is_ours, args)):
        return call
    dispatcher, signature = call.dispatcher, _signature(call, args)  # type: ignore[attr-defined]
    dispatcher.compile(signature)
    found = dispatcher.overloads.get(signature)
    return getattr(found, "entry_point", call)


def _signature(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(call.dispatcher.typeof_pyval, args))  # type: ignore[attr-defined]


def _is_ours(arg: Any) -> bool:
    if not hasattr(arg, "_fields"):
        return True
    return _is_home(type(arg)) and all(map(_is_ours, arg))


def _is_home(cls: Any) -> bool:
    return cls.__module__.partition(".")[0] == PACKAGE


_bridged: dict[str, str] = {}  # method that kernels may call: the class it was first seen in
_fields: dict[str, str] = {}  # field of a part: the class it was first seen in


def adopt(cls: C, defaults: dict[str, Callable[..., Any]] | None = None) -> C:
    """Let kernels call the public methods of the NamedTuple ``cls``; methods it lacks come from ``defaults``.

    Raises TypeError where a field of one part has the name of a method of another: the bridge goes by name alone.
    """
    fields = getattr(cls, "_fields", ())
    methods = [name for name in dir(cls) if _is_method(cls, name)]
    for field in fields:
        other = cls.__name__ if field in (defaults or {}) else _bridged.get(field)
        if other is not None:
            raise TypeError(f"{cls.__name__}: the field {field!r} has the name of a method of {other}; rename the field.")
    for name in methods:
        if name in _fields:
            raise TypeError(
                f"{cls.__name__}: the method {name!r} has the name of a field of {_fields[name]}; rename it, or begin it "
                "with an underscore if kernels need not call it."
            )
    for name, method in (defaults or {}).items():
        if not hasattr(cls, name):
            setattr(cls, name, method)
            methods.append(name)
    for field in fields:
        _fields.setdefault(field, cls.__name__)
    for name in methods:
        if name not in _bridged:
            _bridged[name] = cls.__name__
            _bridge(name)
    return cls


def _is_method(cls: Any, name: str) -> bool:
    return not name.startswith("_") and name not in ("count", "index") and callable(getattr(cls, name))


def _bridge(name: str) -> None:
    if not COMPILED:
        return

    def method(self, *args):  # type: ignore[no-untyped-def]
        text = getattr(self.instance_class, name, None)
        if text is None:
            return None
        body = _compiled(text)
        return lambda self, *args: body(self, *args)

    for kind in (types.NamedTuple, types.NamedUniTuple):
        overload_method(kind, name)(method)


_compiled = cache(njit)


# --- losses by address -----------------------------------------------------------------------------------------------


def _call(builder: Any, address: Any, arguments: list[Any], fields: Any) -> Any:
    double, pointer = ir.DoubleType(), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(double, [double] * len(arguments) + [pointer])
    target = builder.inttoptr(address, kind.as_pointer())
    return builder.call(target, [*arguments, builder.inttoptr(fields, pointer)])


@intrinsic
def _call2(typing: Any, address: Any, s: Any, y: Any, fields: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, args[0], list(args[1:3]), args[3])

    return types.float64(types.int64, types.float64, types.float64, types.int64), code


@intrinsic
def _call3(typing: Any, address: Any, a: Any, c: Any, y: Any, fields: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, args[0], list(args[1:4]), args[4])

    return types.float64(types.int64, types.float64, types.float64, types.float64, types.int64), code


class BoundLoss(NamedTuple):
    """A loss as kernels see it: the addresses of its compiled methods and of its fields."""

    value_at: int
    slope_at: int
    theta_at: int
    fields_at: int

    def value(self, s: float, y: float) -> float:
        return _call2(self.value_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def slope(self, s: float, y: float) -> float:
        return _call2(self.slope_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def theta(self, a: float, c: float, y: float) -> float:
        return _call3(self.theta_at, a, c, y, self.fields_at)  # type: ignore[no-any-return]


adopt(BoundLoss)


# The text of a loss's compiled methods. Each loss gets its own copy, whose globals hold its class as ``part`` and the number
# of its fields as ``size`` and whose name is its own: the disk cache goes by name and text, and sees through no closure.
part: Any = None
size = 0


def _value(s, y, fields):  # type: ignore[no-untyped-def]
    return part(*to_fixed_tuple(carray(fields, (size,)), size)).value(s, y)


def _slope(s, y, fields):  # type: ignore[no-untyped-def]
    return part(*to_fixed_tuple(carray(fields, (size,)), size)).slope(s, y)


def _theta(a, c, y, fields):  # type: ignore[no-untyped-def]
    return part(*to_fixed_tuple(carray(fields, (size,)), size)).theta(a, c, y)


_DOUBLE, _FIELDS = types.float64, types.CPointer(types.float64)
_METHODS: dict[str, tuple[Any, Any]] = {
    "value": (_value, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "slope": (_slope, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "theta": (_theta, _DOUBLE(_DOUBLE, _DOUBLE, _DOUBLE, _FIELDS)),
}


@cache
def _compiled_method(cls: Any, name: str) -> Any:
    template, signature = _METHODS[name]
    text = FunctionType(template.__code__, {**globals(), "part": cls, "size": len(cls._fields)}, name)
    text.__qualname__ = f"{cls.__qualname__}.{name}"
    try:
        if not _is_home(cls):
            return cfunc(signature)(text)
        return _kept(lambda f, **options: cfunc(signature, **options)(f), text)
    except NumbaError as error:
        raise TypeError(f"the method {name} of the loss {cls.__name__} does not compile: {error}") from error


def bind_loss(loss: Any) -> tuple[Any, np.ndarray]:
    """The loss as a kernel takes it, and the array of its fields, which must live as long as the kernel is called.

    Raises TypeError for a field that is no number and for a method that does not compile.
    """
    for field, value in zip(loss._fields, loss, strict=True):
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"the loss {type(loss).__name__}: the field {field!r} must be a number, got {value!r}.")
    fields = np.array([float(value) for value in loss])
    if not COMPILED:
        return loss, fields
    cls: Any = type(loss)
    value, slope, theta = (int(_compiled_method(cls, name).address) if hasattr(loss, name) else 0 for name in _METHODS)
    return BoundLoss(value, slope, theta, fields.ctypes.data), fields


# --- clocks in arrays ------------------------------------------------------------------------------------------------


def load(like: tuple[float, ...], array: np.ndarray, first: int) -> tuple[float, ...]:
    """The tuple of ``len(like)`` numbers that starts at ``array[first]``."""
    return tuple(array[first : first + len(like)])


@overload(load)
def _load(like, array, first):  # type: ignore[no-untyped-def]
    size = len(like)
    return lambda like, array, first: to_fixed_tuple(array[first : first + size], size)


@function
def store(values: tuple[float, ...], array: np.ndarray, first: int) -> None:
    """Write the tuple ``values`` to ``array[first:]``."""
    for k in range(len(values)):
        array[first + k] = values[k]
