"""The bridge to Numba, and the only file that knows it.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled. ``kernel`` compiles a function
and keeps the machine code on disk under a digest of this package's sources, so an edited file is never answered with
yesterday's code; a kernel that was given a part from outside the package is compiled anew in each process. A loss enters a
kernel as the addresses of its compiled methods (``bind_loss``), so one compiled kernel serves every loss.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, config, njit, types
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


def _cache_folder() -> Path:
    """Where compiled code is kept: ``ONLINEAR_CACHE_DIR``, else the user's cache folder, else the temporary one."""
    named = os.environ.get("ONLINEAR_CACHE_DIR") or config.CACHE_DIR
    if named:
        return Path(named)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / PACKAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"


def _kept(compiler: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call ``compiler`` with the disk cache pointed at the folder of these sources."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(_cache_folder() / _DIGEST)
    try:
        return compiler(*args, cache=True, **options)
    finally:
        config.CACHE_DIR = before


_DIGEST = _digest() if COMPILED else ""


def function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that kernels call; it becomes part of their machine code."""
    return njit(text)


def kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over rows. Kept on disk unless an argument is a part from outside the package; releases the GIL."""
    if not COMPILED:
        return text
    kept = _kept(njit, text, nogil=True)
    fresh = njit(text, nogil=True)

    @wraps(text)
    def call(*args: Any) -> Any:
        return (kept if all(map(_is_ours, args)) else fresh)(*args)

    call.dispatcher = kept  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def entry(call: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The compiled code of ``call`` for arguments typed as ``args``, without the lookup that each ordinary call makes."""
    if not COMPILED or not all(map(_is_ours, args)):
        return call
    dispatcher = call.dispatcher  # type: ignore[attr-defined]
    signature = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    dispatcher.compile(signature)
    found = dispatcher.overloads.get(signature)
    return getattr(found, "entry_point", call) if found is not None else call


def _is_ours(arg: Any) -> bool:
    if not hasattr(arg, "_fields"):
        return True
    return type(arg).__module__.partition(".")[0] == PACKAGE and all(map(_is_ours, arg))


_bridged: set[str] = set()


def adopt(cls: C, defaults: dict[str, Callable[..., Any]] | None = None) -> C:
    """Let kernels call the public methods of the NamedTuple ``cls``; methods it lacks come from ``defaults``."""
    for name, method in (defaults or {}).items():
        if not hasattr(cls, name):
            setattr(cls, name, method)
    for name in dir(cls):
        if callable(getattr(cls, name)) and not name.startswith("_") and name not in ("count", "index"):
            _bridge(name)
    return cls


def _bridge(name: str) -> None:
    if name in _bridged or not COMPILED:
        return
    _bridged.add(name)

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


def _method2(cls: Any, name: str) -> Any:
    size = len(cls._fields)
    body = _compiled(getattr(cls, name))

    def method(s, y, fields):  # type: ignore[no-untyped-def]
        return body(cls(*to_fixed_tuple(carray(fields, (size,)), size)), s, y)

    return method


def _method3(cls: Any, name: str) -> Any:
    size = len(cls._fields)
    body = _compiled(getattr(cls, name))

    def method(a, c, y, fields):  # type: ignore[no-untyped-def]
        return body(cls(*to_fixed_tuple(carray(fields, (size,)), size)), a, c, y)

    return method


_DOUBLE, _FIELDS = types.float64, types.CPointer(types.float64)
_SIGNATURES = {
    "value": (_method2, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "slope": (_method2, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "theta": (_method3, _DOUBLE(_DOUBLE, _DOUBLE, _DOUBLE, _FIELDS)),
}


@cache
def _address(cls: Any, name: str) -> tuple[int, Any]:
    make, signature = _SIGNATURES[name]
    text = make(cls, name)
    ours = cls.__module__.partition(".")[0] == PACKAGE
    compiled = _kept(lambda f, **o: cfunc(signature, **o)(f), text) if ours else cfunc(signature)(text)
    return int(compiled.address), compiled


def bind_loss(loss: Any) -> tuple[Any, np.ndarray]:
    """The loss as a kernel takes it, and the array of its fields, which must live as long as the kernel is called."""
    fields = np.array([float(value) for value in loss])
    if not COMPILED:
        return loss, fields
    cls = type(loss)
    at = [_address(cls, name)[0] if hasattr(cls, name) else 0 for name in ("value", "slope", "theta")]
    return BoundLoss(*at, fields.ctypes.data), fields


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
