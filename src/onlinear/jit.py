"""The bridge to Numba, and the only file that knows it.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled. ``kernel`` compiles a function
and keeps the machine code on disk under a digest of this package's sources, so an edited file is never answered with
yesterday's code; a kernel that was given a part from outside the package is compiled anew in each process. A loss enters a
kernel as the addresses of its compiled methods (``bind_loss``), so one compiled kernel serves every loss. ``Held`` arguments
cost nothing to pass again and again. ``Lanes`` are several numbers at once, on which the methods of a part compile as they do
on one.
"""

from __future__ import annotations

import hashlib
import logging
import operator
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import EACCES, EPERM, EROFS
from functools import cache, wraps
from inspect import Parameter, Signature
from inspect import signature as signature_of
from itertools import count
from math import copysign
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import __version__ as numba_version
from numba import carray, cfunc, config, njit, typeof, types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaError
from numba.core.event import Listener, register
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import (
    AbstractTemplate,
    infer_getattr,
    infer_global,
    make_overload_method_template,
    signature,
)
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_builtin,
    models,
    overload,
    register_model,
    unbox,
)
from numba.np.unsafe.ndarray import to_fixed_tuple

from onlinear.files import writing

COMPILED = not config.DISABLE_JIT
PACKAGE = __name__.rpartition(".")[0]
PATIENCE = 1.0  # seconds of compiling after which a word is said
_LOG = logging.getLogger(PACKAGE)
C = TypeVar("C", bound=type)


def _digest() -> str:
    folder = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


# --- the disk cache --------------------------------------------------------------------------------------------------


def _cache_folder() -> Path | None:
    """Where compiled code is kept: the first writable one of ``ONLINEAR_CACHE_DIR``, the user's cache folder and a folder among
    the temporary files; else the first that can be read; None if there is none.

    What is found there is run. So the folder must be private: the user's own or root's, and writable by nobody else. A folder
    that is not is not used; one that does not exist is created with mode 0700.
    """
    named = os.environ.get("ONLINEAR_CACHE_DIR") or config.CACHE_DIR
    places = [Path(named).absolute()] if named else []
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / PACKAGE
    places += [home] if home.is_absolute() else []
    with suppress(OSError):  # no folder for temporary files can be written
        places.append(Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid() if hasattr(os, 'getuid') else 'cache'}")
    readable = []
    for folder in filter(_exists, places):
        if not _private(folder):
            if named and folder == places[0]:
                _LOG.warning("onlinear: the cache folder %s is not used: other users own it or may write to it.", folder)
        elif _writable(folder):
            return folder
        else:
            readable.append(folder)
    return readable[0] if readable else None


def _exists(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):
        return folder.is_dir()
    return False


def _private(folder: Path) -> bool:
    """Whether nobody else can have put code there: anyone may create a folder among the temporary files."""
    if not hasattr(os, "getuid"):
        return True
    link, found = folder.lstat(), folder.stat()
    return {link.st_uid, found.st_uid} <= {0, os.getuid()} and not found.st_mode & 0o022


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


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
        path, key = self._entry(sig, target_context.codegen())
        try:
            if path.is_file():  # to read a pipe would wait for ever
                return CompileResult._rebuild(target_context, *_unpacked(path.read_bytes(), key))
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
            content = dumps((key, data._reduce()))
            writing.write(path, hashlib.sha256(content).digest() + content)
        except Exception as error:
            _unkept(self._folder.parent, error)

    def _entry(self, sig: Any, codegen: Any) -> tuple[Path, str]:
        """The file for a signature on this machine, and what it is for."""
        key = repr((*self._about, codegen.magic_tuple(), _spelt(normalize_signature(sig))))
        short = re.sub(r"[^\w.]+", "", self._name)[-80:]
        return self._folder / f"{short}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc", key


def _spelt(kind: Any) -> str:
    """A type by its name, parts by the full names of their classes: Numba names them without their modules."""
    if isinstance(kind, _HeldType):
        return f"Held({_spelt(kind.content)})"
    if isinstance(kind, (tuple, types.BaseTuple)):
        cls = getattr(kind, "instance_class", tuple)
        return f"{cls.__module__}.{cls.__qualname__}({', '.join(map(_spelt, kind))})"
    return repr(kind)


def _unpacked(content: bytes, key: str) -> Any:
    """What was kept for ``key``. The digest is looked at first: of damaged content nothing is read, let alone run."""
    size = hashlib.sha256().digest_size
    if hashlib.sha256(memoryview(content)[size:]).digest() != content[:size]:
        raise ValueError("damaged")
    found, payload = pickle.loads(memoryview(content)[size:])
    if found != key:
        raise ValueError("for something else")
    return payload


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


def _kept(found: Any, text: Callable[..., Any]) -> Any:
    """What Numba made of ``text``, with the disk cache in the folder of these sources."""
    sources = "" if is_ours(text.__module__) else _file_digest(text.__code__.co_filename)
    if _CACHE is not None and sources is not None and not text.__closure__:
        found._cache = _Disk(text, _CACHE / _DIGEST, sources)
    return found


@cache
def _file_digest(path: str) -> str | None:
    """The digest of a source file from outside the package; None for code that has no file."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


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


_DIGEST = _digest() if COMPILED else ""
_CACHE = _cache_folder() if COMPILED else None
if COMPILED:
    register("numba:compile", _Compiling())


def function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that kernels call; it becomes part of their machine code."""
    return njit(text, forceinline=True, no_cfunc_wrapper=True)


def kept_function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that takes no parts and is called from Python too: kept on disk."""
    return _kept(njit(text, no_cfunc_wrapper=True), text) if COMPILED else text


def kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over rows. Kept on disk unless an argument is a part from outside the package; releases the GIL."""
    if not COMPILED:
        return text
    kept = _kept(njit(text, nogil=True, no_cfunc_wrapper=True), text)
    fresh = njit(text, nogil=True, no_cfunc_wrapper=True)

    @wraps(text)
    def call(*args: Any) -> Any:
        if all(map(_all_ours, args)):
            return kept(*args)
        try:
            return fresh(*args)
        except NumbaError as error:
            foreign = ", ".join(sorted({type(arg).__name__ for arg in args if not _all_ours(arg)}))
            raise TypeError(f"{text.__name__} does not compile with {foreign}: {error}") from error

    call.dispatcher, call.fresh = kept, fresh  # type: ignore[attr-defined]
    return call


def _all_ours(arg: Any) -> bool:
    if not hasattr(arg, "_fields"):
        return True
    return is_ours(type(arg).__module__) and all(map(_all_ours, arg))


def is_ours(module: str) -> bool:
    """Whether a module is one of this package."""
    return module.partition(".")[0] == PACKAGE


_parts: set[type] = set()  # the classes whose methods kernels may call


def adopt(cls: C, defaults: dict[str, Callable[..., Any]] | None = None) -> C:
    """Let kernels call the public methods of the NamedTuple ``cls``; methods it lacks come from ``defaults``.

    Raises TypeError where a field has the name of one of ``defaults``: kernels would find the field.
    """
    for name, method in (defaults or {}).items():
        if name in getattr(cls, "_fields", ()):
            raise TypeError(f"{cls.__name__}: the field {name!r} has the name of a method that kernels call; rename the field.")
        if not hasattr(cls, name):
            setattr(cls, name, method)
    with _ADOPTING:
        for name in [name for name in dir(cls) if _is_method(cls, name)]:
            if name not in _bridges:
                _bridge(name)
            _take_arguments(name, cls)
        _parts.add(cls)
    return cls


_ADOPTING = threading.Lock()


def _is_method(cls: Any, name: str) -> bool:
    return not name.startswith("_") and name not in ("count", "index") and callable(getattr(cls, name))


# The bridge of a method that takes the same number of arguments in every class of this package gives Numba the method's text,
# or for a class from elsewhere a function that takes as many. Others give a function that takes any number. What a bridge takes
# must not change once kernels are compiled, so classes from elsewhere have no say in it.
_bridges: dict[str, Any] = {}
_counts: dict[str, int] = {}  # of arguments, -1 for any number
_ANY_NUMBER = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), Parameter("args", Parameter.VAR_POSITIONAL)])


def _take_arguments(name: str, cls: Any) -> None:
    """Let the bridge of a method take as many arguments as the method does in ``cls`` and the classes before."""
    found = len(signature_of(getattr(cls, name)).parameters) if is_ours(cls.__module__) else _counts.get(name, -1)
    count = found if _counts.get(name, found) == found else -1
    if COMPILED and _counts.get(name) != count:
        _counts[name] = count
        fixed = Signature([Parameter(f"_{k}", Parameter.POSITIONAL_ONLY) for k in range(count)])
        _bridges[name].__signature__ = fixed if count >= 0 else _ANY_NUMBER


def _around(body: Any, count: int, laned: bool) -> Any:
    """A function of ``count`` arguments around the compiled ``body``, which it calls lane by lane where ``laned``."""
    rest = "".join(f", _{k}" for k in range(2, count))
    lanes = [f"body(self, lane(_1, {k}){rest})" for k in range(ENTRIES)]
    first = ", _1" if count > 1 else ""
    call = f"joined({', '.join(lanes)})" if laned else f"body(self{first}{rest})"
    return eval(f"lambda self{first}{rest}: {call}", {"body": body, "joined": joined, "lane": lane})


def _takes_lanes(body: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether a method gives lanes for lanes: it has no branches on them, and calls nothing that knows numbers only."""
    try:
        body.compile(kinds)
    except NumbaError:
        return False
    return bool(body.overloads[kinds].signature.return_type == _ROW)


def _bridge(name: str) -> None:
    """Let kernels call the method ``name`` of parts: it is Numba's ``overload_method``, which other NamedTuples do not see."""

    def method(self, *args):  # type: ignore[no-untyped-def]
        text = getattr(self.instance_class, name, None)
        if text is None:
            return None
        count = _counts[name]
        if count < 0:
            body = _compiled(text)
            return lambda self, *args: body(self, *args)
        if is_ours(self.instance_class.__module__):
            return text
        body = _compiled(text)  # one from elsewhere may know numbers only
        return _around(body, count, _ROW in args and not _takes_lanes(body, (self, *args)))

    _bridges[name] = method
    if not COMPILED:
        return
    for kind in (types.NamedTuple, types.NamedUniTuple):
        template = make_overload_method_template(kind, name, method, "never", strict=False, jit_options=_INLINED)
        infer_getattr(type(template.__name__, (_OfParts, template), {}))
    overload(method, strict=False, jit_options=_INLINED)(method)


class _OfParts:
    """In front of a template of Numba's: it answers for parts alone, and a field of the same name comes first."""

    def _resolve(self, kind: Any, name: str) -> Any:
        found = super()._resolve(kind, name)  # type: ignore[misc]
        return found if found is None or (kind.instance_class in _parts and name not in kind.fields) else None


_INLINED = {"forceinline": True, "no_cfunc_wrapper": True}
_compiled = cache(lambda text: njit(text, no_cpython_wrapper=True, **_INLINED))


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


_memory: dict[bytes, np.ndarray] = {}  # of the fields of losses, by their bits
_callbacks: dict[tuple[Any, str], Any] = {}  # compiled, by class and name


def _compiled_method(cls: Any, name: str) -> Any:
    found = _callbacks.get((cls, name))
    if found is None:  # of two threads that compile it both are given the first: the address of the other may not last
        found = _callbacks.setdefault((cls, name), _compiled_anew(cls, name))
    return found


def _compiled_anew(cls: Any, name: str) -> Any:
    template, signature = _METHODS[name]
    text = FunctionType(template.__code__, {**globals(), "part": cls, "size": len(cls._fields)}, name)
    text.__qualname__ = f"{cls.__qualname__}.{name}"
    try:
        if not is_ours(cls.__module__):
            return cfunc(signature)(text)
        callback = _kept(CFunc(text, normalize_signature(signature), {}, {}), text)
        callback.compile()
        return callback
    except NumbaError as error:
        raise TypeError(f"the method {name} of the loss {cls.__name__} does not compile: {error}") from error


def bind_loss(loss: Any) -> Any:
    """The loss as a kernel takes it. What its addresses point to lasts as long as the process, a few bytes for each setting.

    Raises TypeError for a field that is no number and for a method that does not compile.
    """
    for field, value in zip(loss._fields, loss, strict=True):
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"the loss {type(loss).__name__}: the field {field!r} must be a number, got {value!r}.")
    if not COMPILED:
        return loss
    fields = np.array([float(value) for value in loss])
    fields = _memory.setdefault(fields.tobytes(), fields)
    fields.flags.writeable = False
    cls: Any = type(loss)
    value, slope, theta = (int(_compiled_method(cls, name).address) if hasattr(loss, name) else 0 for name in _METHODS)
    return BoundLoss(value, slope, theta, fields.ctypes.data)


# --- several numbers at once -----------------------------------------------------------------------------------------
#
# *Lanes* are a type of compiled code: several doubles in one vector register, or as many as the machine needs. Arithmetic,
# comparisons (1.0 or 0.0), min, max, abs and copysign go lane by lane, each with the bits of the scalar operation; a number
# beside lanes is the same in every lane. So what a part's method says of one number it says of several.
#
# ENTRIES of them are consecutive entries of a row, by which a loop over a row steps: behind the row's end values are 0 and
# nothing is written. A sum over a row is a sum per lane, added up at the end, so its order follows from the number of
# non-zeros alone. Interpreted, there is one lane, and lanes are numbers. WIDTH of them are outputs side by side.

LANES = np.uint64(4 if COMPILED else 1)
ENTRIES, WIDTH = 4, 8
_INTEGER = ir.IntType(32)


class _LanesType(types.Type):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        self.width = width
        self.vector = ir.VectorType(ir.DoubleType(), width)
        super().__init__(name=f"Lanes{width}")


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


_ROW, _OUTPUTS = _LanesType(ENTRIES), _LanesType(WIDTH)
_ZEROS = ir.Constant(_ROW.vector, [0.0] * ENTRIES)


def _lanes_among(args: Any) -> Any:
    """The one kind of lanes among the types of numbers, or None."""
    kinds = {kind for kind in args if isinstance(kind, _LanesType)}
    fits = len(kinds) == 1 and all(isinstance(kind, (_LanesType, types.Number)) for kind in args)
    return kinds.pop() if fits else None


def _same(vector: Any, number: float) -> Any:
    return ir.Constant(vector, [number] * vector.count)


def _spread(context: Any, builder: Any, value: Any, kind: Any, lanes: Any) -> Any:
    """The value in every lane; lanes as they are."""
    if kind == lanes:
        return value
    nothing = ir.Constant(lanes.vector, ir.Undefined)
    first = builder.insert_element(nothing, context.cast(builder, value, kind, types.float64), _INTEGER(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INTEGER, lanes.width), [0] * lanes.width))


def _lane_by_lane(operation: Any, emit: Callable[..., Any], count: int = 2) -> None:
    """Let kernels call ``operation`` with lanes, or lanes and a number."""

    @infer_global(operation)
    class Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            lanes = _lanes_among(args)
            return signature(lanes, *args) if lanes is not None and len(args) == count else None

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(args, signature.args, strict=True)
        return emit(builder, *(_spread(context, builder, value, kind, signature.return_type) for value, kind in pairs))

    mixed = ((_LanesType, _LanesType), (_LanesType, types.Number), (types.Number, _LanesType))
    for kinds in mixed if count == 2 else ((_LanesType,),):
        lower_builtin(operation, *kinds)(code)


def _compared(relation: str) -> Callable[[Any, Any, Any], Any]:
    compare = "fcmp_unordered" if relation == "!=" else "fcmp_ordered"
    return lambda builder, a, b: builder.select(
        getattr(builder, compare)(relation, a, b), _same(a.type, 1.0), _same(a.type, 0.0)
    )


def _size(builder: Any, value: Any) -> Any:
    vector = value.type
    kind = ir.FunctionType(vector, [vector])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{vector.count}f64"), [value])


def _with_sign(builder: Any, size: Any, sign: Any) -> Any:
    """A choice by the sign's bit between the size and its negative, which a loop finds once where the size is the same."""
    size, bits = _size(builder, size), ir.VectorType(ir.IntType(64), sign.type.count)
    negative = builder.icmp_signed("<", builder.bitcast(sign, bits), ir.Constant(bits, [0] * bits.count))
    return builder.select(negative, builder.fneg(size), size)


def _offer_arithmetic() -> None:
    for name, code in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
        for form in (name, f"i{name}"):
            _lane_by_lane(getattr(operator, form), lambda builder, a, b, code=code: getattr(builder, code)(a, b))
    for name, relation in (("ne", "!="), ("eq", "=="), ("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">=")):
        _lane_by_lane(getattr(operator, name), _compared(relation))
    # As Python has it: the first argument unless the second is larger, or smaller.
    _lane_by_lane(max, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a))
    _lane_by_lane(min, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a))
    _lane_by_lane(copysign, _with_sign)
    _lane_by_lane(operator.neg, lambda builder, a: builder.fneg(a), 1)
    _lane_by_lane(abs, _size, 1)


if COMPILED:
    _offer_arithmetic()


def _emitted(kind: Callable[..., Any], emit: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: interpreted, the text; compiled, what ``emit(builder, values of the arguments, their types)`` writes, of the
    type ``kind(*types)``. Arrays arrive as the address of their first element."""

    def replaced(text: Callable[..., Any]) -> Callable[..., Any]:
        if not COMPILED:
            return text

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pairs = zip(signature.args, args, strict=True)
            values = [
                context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
                for kind, value in pairs
            ]
            found = emit(builder, values, signature.args)
            return context.get_dummy_value() if found is None else found

        def typed(typing: Any, *args: Any) -> Any:
            return signature(kind(*args), *args), code

        names = [Parameter("typing", Parameter.POSITIONAL_ONLY), *signature_of(text).parameters.values()]
        typed.__signature__ = Signature(names)  # type: ignore[attr-defined]
        typed.__name__, typed.__doc__ = text.__name__, text.__doc__
        return intrinsic(typed)  # type: ignore[no-any-return]

    return replaced


def _laned(*kinds: Any) -> Any:
    return _ROW


def _filled(builder: Any, k: Any, end: Any, one: Callable[[Any], Any]) -> Any:
    """Lanes of what ``one`` gives for the entries k, k+1, .. before ``end``; 0 beyond it."""
    found = cgutils.alloca_once_value(builder, _ZEROS)

    def put(lane: int, entry: Any) -> None:
        builder.store(builder.insert_element(builder.load(found), one(entry), _INTEGER(lane)), found)

    _each_entry(builder, k, end, put)
    return builder.load(found)


def _each_entry(
    builder: Any, k: Any, end: Any, do: Callable[[int, Any], None], find: Callable[[Any], Any] = lambda entry: entry
) -> None:
    """Do something for what ``find`` makes of the entries k .. k+3 before ``end``. Where a row has all four nothing is asked
    for each, and all are found first, since for all the compiler knows writing one changes where the next is."""
    entries = [builder.add(k, ir.Constant(k.type, lane)) for lane in range(4)]
    with builder.if_else(builder.icmp_unsigned("<", entries[3], end), likely=True) as (whole, part):
        with whole:
            for lane, found in enumerate([find(entry) for entry in entries]):
                do(lane, found)
        with part:
            for lane, entry in enumerate(entries[:3]):
                with builder.if_then(builder.icmp_unsigned("<", entry, end)):
                    do(lane, find(entry))


def _apart(kind: Any) -> int:
    """How many places the numbers of a vector are apart: two in one half of a vector of pairs, which is not contiguous."""
    return 1 if kind.layout == "C" else 2


def _at(builder: Any, array: Any, indices: Any, entry: Any, width: int) -> Any:
    """The address of the numbers that ``array`` holds for an entry's column."""
    column = builder.zext(builder.load(builder.gep(indices, [entry])), ir.IntType(64))
    return builder.gep(array, [builder.mul(column, ir.Constant(column.type, width))])


def _as_double(builder: Any, value: Any) -> Any:
    return value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())


def _emit_entries(builder: Any, args: Any, kinds: Any) -> Any:
    values, k, end = args
    return _filled(builder, k, end, lambda entry: _as_double(builder, builder.load(builder.gep(values, [entry]))))


def _emit_gathered(builder: Any, args: Any, kinds: Any) -> Any:
    array, indices, k, end = args
    return _filled(builder, k, end, lambda entry: builder.load(_at(builder, array, indices, entry, _apart(kinds[0]))))


def _emit_scatter(builder: Any, args: Any, kinds: Any) -> None:
    array, indices, k, end, new = args

    def put(lane: int, place: Any) -> None:
        builder.store(builder.extract_element(new, _INTEGER(lane)), place)

    _each_entry(builder, k, end, put, lambda entry: _at(builder, array, indices, entry, _apart(kinds[0])))


def _pair(builder: Any, array: Any, indices: Any, entry: Any) -> Any:
    """The address of the two numbers that ``array`` holds for an entry's column."""
    return builder.bitcast(_at(builder, array, indices, entry, 2), ir.VectorType(ir.DoubleType(), 2).as_pointer())


def _emit_gathered_pair(builder: Any, args: Any, kinds: Any) -> Any:
    array, indices, k, end = args
    found = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(2)]

    def put(lane: int, entry: Any) -> None:
        both = builder.load(_pair(builder, array, indices, entry), align=8)
        for place, room in enumerate(found):
            number = builder.extract_element(both, _INTEGER(place))
            builder.store(builder.insert_element(builder.load(room), number, _INTEGER(lane)), room)

    _each_entry(builder, k, end, put)
    return cgutils.pack_array(builder, [builder.load(room) for room in found])


def _emit_scatter_pair(builder: Any, args: Any, kinds: Any) -> None:
    array, indices, k, end, *new = args

    def put(lane: int, place: Any) -> None:
        both = ir.Constant(ir.VectorType(ir.DoubleType(), 2), [0.0, 0.0])
        for which, lanes in enumerate(new):
            both = builder.insert_element(both, builder.extract_element(lanes, _INTEGER(lane)), _INTEGER(which))
        builder.store(both, place, align=8)

    _each_entry(builder, k, end, put, lambda entry: _pair(builder, array, indices, entry))


def _emit_fetch(builder: Any, args: Any, kinds: Any) -> None:
    array, indices, k = args
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _INTEGER, _INTEGER, _INTEGER])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    for lane in range(ENTRIES):
        place = _at(builder, array, indices, builder.add(k, ir.Constant(k.type, lane)), _apart(kinds[0]))
        builder.call(ask, [builder.bitcast(place, pointer), _INTEGER(0), _INTEGER(3), _INTEGER(1)])


def _emit_taken(builder: Any, args: Any, kinds: Any) -> Any:
    room, k = args
    return builder.load(builder.bitcast(builder.gep(room, [k]), _ROW.vector.as_pointer()), align=8)


def _emit_put(builder: Any, args: Any, kinds: Any) -> None:
    room, k, new = args
    builder.store(new, builder.bitcast(builder.gep(room, [k]), _ROW.vector.as_pointer()), align=8)


def _emit_total(builder: Any, args: Any, kinds: Any) -> Any:
    a, b, c, d = (builder.extract_element(args[0], _INTEGER(lane)) for lane in range(4))
    return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))


@_emitted(_laned, _emit_entries)
def entries(values: np.ndarray, k: int, end: int) -> Any:
    """The values of the entries from k on, of a row that ends before ``end``."""
    return values[k]


@_emitted(_laned, _emit_gathered)
def gathered(array: np.ndarray, indices: np.ndarray, k: int, end: int) -> Any:
    """What a vector holds at the columns of the entries from k on."""
    return array[indices[k]]


@_emitted(lambda *kinds: types.none, _emit_scatter)
def scatter(array: np.ndarray, indices: np.ndarray, k: int, end: int, new: Any) -> None:
    """Write to a vector at the columns of the entries from k on."""
    array[indices[k]] = new


@_emitted(lambda *kinds: types.UniTuple(_ROW, 2), _emit_gathered_pair)
def gathered_pair(array: np.ndarray, indices: np.ndarray, k: int, end: int) -> Any:
    """What a vector of pairs holds at the columns of the entries from k on."""
    return array[2 * indices[k]], array[2 * indices[k] + 1]


@_emitted(lambda *kinds: types.none, _emit_scatter_pair)
def scatter_pair(array: np.ndarray, indices: np.ndarray, k: int, end: int, first: Any, second: Any) -> None:
    """Write to a vector of pairs at the columns of the entries from k on."""
    array[2 * indices[k]] = first
    array[2 * indices[k] + 1] = second


@_emitted(lambda array, first: types.CPointer(array.dtype), lambda builder, args, kinds: builder.gep(args[0], [args[1]]))
def room(array: np.ndarray, first: int) -> Any:
    """The memory of ``array`` from a place on, for the functions of a kernel to share: an array would be counted in and out
    with each call. The array has to be an argument of the kernel, which outlives it."""
    return array[first:]


def numbers(room: Any, count: int) -> np.ndarray:
    """The first numbers of a room as an array."""
    return room[:count]


@overload(numbers)
def _numbers(room, count):  # type: ignore[no-untyped-def]
    if isinstance(room, types.Array):
        return lambda room, count: room[:count]
    return lambda room, count: carray(room, (count,))


@_emitted(lambda *kinds: types.none, _emit_fetch)
def fetch(array: np.ndarray, indices: np.ndarray, k: int) -> None:
    """Ask for what a vector holds at the columns of the four entries from k on, which must exist, ahead of its use."""


@_emitted(_laned, _emit_taken)
def taken(room: np.ndarray, k: int) -> Any:
    """room[k:], for a place within the room."""
    return room[k]


@_emitted(lambda *kinds: types.none, _emit_put)
def put(room: np.ndarray, k: int, new: Any) -> None:
    """Write room[k:]."""
    room[k] = new


@_emitted(_laned, lambda builder, args, kinds: _ZEROS)
def nothing() -> Any:
    """0 in every lane: an empty sum."""
    return 0.0


@_emitted(lambda *kinds: types.float64, _emit_total)
def total(lanes: Any) -> float:
    """The sum over the lanes."""
    return lanes  # type: ignore[no-any-return]


@_emitted(lambda *kinds: types.float64, lambda builder, args, kinds: builder.extract_element(args[0], args[1]))
def lane(lanes: Any, place: int) -> float:
    """One lane."""
    return lanes  # type: ignore[no-any-return]


def _emit_joined(builder: Any, args: Any, kinds: Any) -> Any:
    found = _ZEROS
    for place, value in enumerate(args):
        found = builder.insert_element(found, value, _INTEGER(place))
    return found


@_emitted(_laned, _emit_joined)
def joined(a: float, b: float, c: float, d: float) -> Any:
    """Lanes of four numbers."""
    return a


def _emit_where(builder: Any, args: Any, kinds: Any) -> Any:
    mask, a, b = args
    zero = ir.Constant(mask.type, None) if kinds[0] != _ROW else _ZEROS
    holds = builder.fcmp_unordered("!=", mask, zero) if kinds[0] == _ROW else builder.icmp_unsigned("!=", mask, zero)
    return builder.select(holds, a, b)


@_emitted(lambda mask, a, b: a, _emit_where)
def where(mask: Any, a: Any, b: Any) -> Any:
    """``a`` where the mask holds, else ``b``; numbers or lanes."""
    return a if mask else b


# --- lanes that are outputs ------------------------------------------------------------------------------------------


def _row_of_outputs(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of row args[1] of the (n, WIDTH) array args[0]."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    row = context.cast(builder, args[1], signature.args[1], types.uintp)
    return builder.gep(data, [builder.mul(row, row.type(WIDTH))])


@intrinsic
def lanes(typing: Any, array: Any, row: Any) -> Any:
    """Row ``row`` of an (n, WIDTH) array of doubles, C-ordered."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(
            builder.bitcast(_row_of_outputs(context, builder, signature, args), _OUTPUTS.vector.as_pointer()), align=8
        )

    return _OUTPUTS(array, row), body


@intrinsic
def put_lanes(typing: Any, array: Any, row: Any, values: Any) -> Any:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = builder.bitcast(_row_of_outputs(context, builder, signature, args), _OUTPUTS.vector.as_pointer())
        builder.store(args[2], target, align=8)
        return context.get_dummy_value()

    return types.void(array, row, _OUTPUTS), body


@intrinsic
def fetch_lanes(typing: Any, array: Any, row: Any) -> Any:
    """Ask for row ``row`` of an (n, WIDTH) array ahead of its use."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INTEGER, _INTEGER, _INTEGER])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.bitcast(_row_of_outputs(context, builder, signature, args), pointer)
        builder.call(fetch, [place, _INTEGER(0), _INTEGER(3), _INTEGER(1)])
        return context.get_dummy_value()

    return types.void(array, row), body


@intrinsic
def same_lanes(typing: Any, value: Any) -> Any:
    """A number in every lane."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(context, builder, args[0], signature.args[0], _OUTPUTS)

    return _OUTPUTS(value), body


@intrinsic
def chosen(typing: Any, marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.VectorType(ir.IntType(64), WIDTH)
        marks, a, b = (builder.bitcast(value, bits) for value in args)
        return builder.bitcast(builder.or_(builder.and_(marks, a), builder.and_(builder.not_(marks), b)), _OUTPUTS.vector)

    return _OUTPUTS(marks, a, b), body


# --- arguments that stay the same ------------------------------------------------------------------------------------


class _HeldType(types.Type):  # type: ignore[misc]
    """The address of arguments in memory; ``content`` is their type, a tuple's."""

    def __init__(self, content: Any) -> None:
        self.content = content
        super().__init__(name=f"Held({content})")


register_model(_HeldType)(models.OpaqueModel)


@unbox(_HeldType)
def _address(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(c.pyapi.long_as_voidptr(value))


class Held:
    """Arguments that stay the same from call to call: numbers, arrays, parts, None and tuples of them, laid out in memory once.

    Unpacking an array or a part costs a call of compiled code far more than the call itself; these cost it one address. Arrays
    are held by their memory: what is written to them is seen, and so they must not be replaced.

    ``here`` is what the function is given, ``kind`` the same for arguments of the same types; ``like``: what was held before,
    of which most may have stayed. Raises TypeError for arguments of other types.
    """

    def __init__(self, *args: Any, like: Held | None = None) -> None:
        self._args = args
        self._before: dict[int, Any] = {} if like is None else like._arrays
        self._arrays: dict[int, Any] = {}
        self.here: Any = args
        self.kind: Any = None
        if COMPILED:
            words: list[int] = []
            signs: list[Any] = []
            self._lay_out(args, words, signs)
            key = tuple(signs)
            self.kind = _held_kinds.get(key) or _held_kinds.setdefault(key, _HeldType(typeof(args)))
            self._words = np.array(words, np.int64)
            self.here = int(self._words.ctypes.data)
            self._before = {}

    def _lay_out(self, value: Any, words: list[int], signs: list[Any]) -> None:
        """Add an argument as numbers of 64 bits, in the order in which ``_from_words`` reads them, and what tells its type."""
        kind = type(value)
        signs.append(kind)
        if kind is np.ndarray:
            found = self._before.get(id(value))
            if found is None:
                place = [value.itemsize, value.ctypes.data, *value.shape, *value.strides]
                found = value, place, (value.dtype, value.ndim, value.flags.num)
            self._arrays[id(value)] = found
            words += found[1]
            signs.append(found[2])
        elif isinstance(value, tuple):
            signs.append(len(value))
            for inner in value:
                self._lay_out(inner, words, signs)
        elif isinstance(value, float):
            words.append(int(np.float64(value).view(np.int64)))
        elif isinstance(value, (int, np.integer)):
            words.append(int(value))
        elif value is not None:
            raise TypeError(f"{kind.__name__} arguments cannot be held.")

    def compile(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> Callable[..., Any]:
        """``text``, whose first argument is ``here`` and which calls the ``functions`` by their names, for ``others`` typed as
        these: the compiled code itself, which looks up and checks nothing. Strided arrays among ``others`` stand for arrays of
        any layout."""
        found = _with_functions(text, tuple(functions.items()), all(map(_all_ours, self._args)))
        if not COMPILED:
            return found  # type: ignore[no-any-return]
        kinds = (self.kind, *map(typeof, others))
        found.compile(kinds)
        return found.overloads[kinds].entry_point  # type: ignore[no-any-return]


_held_kinds: dict[Any, _HeldType] = {}  # by what tells the types of the arguments apart


@cache
def _with_functions(text: Callable[..., Any], functions: tuple[tuple[str, Any], ...], ours: bool) -> Any:
    """A copy of ``text`` with functions of its own, under a name of its own: the disk cache goes by that."""
    known = {name: getattr(call, "dispatcher" if ours else "fresh", call) for name, call in functions}
    copy = FunctionType(text.__code__, {**text.__globals__, **known}, text.__name__)
    copy.__qualname__ = ".".join([text.__qualname__, *(f"{call.__module__}.{call.__name__}" for _, call in functions)])
    if not COMPILED:
        return copy
    return _kept(njit(copy), copy) if ours else njit(copy)


def _from_words(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    from numba.np.arrayobj import populate_array  # of the compiler, which is readied when it compiles

    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        itemsize, data = next(words), builder.inttoptr(next(words), array.data.type)
        shape, strides = ([next(words) for _ in range(kind.ndim)] for _ in range(2))
        populate_array(array, data, shape, strides, itemsize, None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_from_words(context, builder, inner, words) for inner in kind.types])
    if isinstance(kind, types.NoneType):
        return context.get_dummy_value()
    if isinstance(kind, types.Float):
        return builder.bitcast(next(words), ir.DoubleType())
    return builder.trunc(next(words), context.get_value_type(kind))


@intrinsic
def _open(typing: Any, held: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.bitcast(args[0], ir.IntType(64).as_pointer())
        words = (builder.load(builder.gep(first, [_INTEGER(place)])) for place in count())
        return _from_words(context, builder, held.content, words)

    return held.content(held), code


def opened(here: Any) -> Any:
    """The arguments that are held."""
    return here


@overload(opened)
def _opened(here):  # type: ignore[no-untyped-def]
    return lambda here: _open(here)


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
