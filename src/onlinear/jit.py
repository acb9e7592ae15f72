"""The bridge to Numba, and the only file that knows it.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled. ``kernel`` compiles a function
and keeps the machine code on disk under a digest of this package's sources, so an edited file is never answered with
yesterday's code; a kernel that was given a part from outside the package is compiled anew in each process. A loss enters a
kernel as the addresses of its compiled methods (``bind_loss``), so one compiled kernel serves every loss. ``entry`` gives
the compiled code itself, for a call that is made again and again. ``lanes`` are eight numbers at once, on which the methods
of a part compile as they do on one.
"""

from __future__ import annotations

import hashlib
import math
import operator
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
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic, models, overload, overload_method, register_model
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


# --- eight numbers at once -------------------------------------------------------------------------------------------
#
# ``Lanes`` is a type of compiled code only: WIDTH doubles in one vector register, or as many as the machine needs. What a
# part's method says of one number it then says of eight, with the same bits: every operation is the scalar one, lane by lane.

WIDTH = 8
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


class _LanesType(types.Type):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(name=f"Lanes{WIDTH}")


class _MaskType(types.Type):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(name=f"Mask{WIDTH}")


_LANES, _MASK = _LanesType(), _MaskType()
_INTEGER = ir.IntType(32)


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@register_model(_MaskType)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), WIDTH))


def _spread(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """The value in every lane; lanes as they are."""
    if isinstance(kind, _LanesType):
        return value
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, context.cast(builder, value, kind, _DOUBLE), _INTEGER(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INTEGER, WIDTH), [0] * WIDTH))


def _offer(name: Any, code: Callable[..., Any], result: Any = _LANES) -> None:
    """Let kernels call ``name`` with lanes on either side or both."""

    @intrinsic
    def lanewise(typing: Any, a: Any, b: Any) -> Any:
        def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return code(builder, *(_spread(context, builder, *pair) for pair in zip(args, signature.args, strict=True)))

        return result(a, b), body

    @overload(name)
    def of_two(a, b):  # type: ignore[no-untyped-def]
        kinds = isinstance(a, _LanesType), isinstance(b, _LanesType)
        if any(kinds) and all(kind or isinstance(x, types.Number) for kind, x in zip(kinds, (a, b), strict=True)):
            return lambda a, b: lanewise(a, b)
        return None


def _with_sign(builder: Any, size: Any, sign: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.copysign.v{WIDTH}f64"), [size, sign])


def _offer_arithmetic() -> None:
    for name, code in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
        for form in (name, f"i{name}"):
            _offer(getattr(operator, form), lambda builder, a, b, code=code: getattr(builder, code)(a, b))
    _offer(operator.ne, lambda builder, a, b: builder.fcmp_unordered("!=", a, b), _MASK)
    # As Python has it: the first argument unless the second is larger, or smaller.
    _offer(max, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a))
    _offer(min, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a))
    _offer(math.copysign, _with_sign)


@intrinsic
def _negated(typing: Any, a: Any) -> Any:
    return _LANES(a), lambda context, builder, signature, args: builder.fneg(args[0])


@overload(operator.neg)
def _neg(a):  # type: ignore[no-untyped-def]
    return (lambda a: _negated(a)) if isinstance(a, _LanesType) else None


@intrinsic
def _counted(typing: Any, a: Any, mask: Any) -> Any:
    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(
            args[1], _spread(context, builder, args[0], signature.args[0]), ir.Constant(_VECTOR, [0.0] * WIDTH)
        )

    return _LANES(a, mask), body


@overload(operator.mul)
def _times_mask(a, b):  # type: ignore[no-untyped-def]
    return (lambda a, b: _counted(a, b)) if isinstance(a, types.Float) and isinstance(b, _MaskType) else None


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of row args[1] of the (n, WIDTH) array args[0]."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    row = context.cast(builder, args[1], signature.args[1], types.uintp)
    return builder.gep(data, [builder.mul(row, row.type(WIDTH))])


@intrinsic
def lanes(typing: Any, array: Any, row: Any) -> Any:
    """Row ``row`` of an (n, WIDTH) array of doubles, C-ordered."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.bitcast(_place(context, builder, signature, args), _VECTOR.as_pointer()), align=8)

    return _LANES(array, row), body


@intrinsic
def put_lanes(typing: Any, array: Any, row: Any, values: Any) -> Any:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = builder.bitcast(_place(context, builder, signature, args), _VECTOR.as_pointer())
        builder.store(args[2], target, align=8)
        return context.get_dummy_value()

    return types.void(array, row, _LANES), body


@intrinsic
def fetch_lanes(typing: Any, array: Any, row: Any) -> Any:
    """Ask for row ``row`` of an (n, WIDTH) array ahead of its use."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INTEGER, _INTEGER, _INTEGER])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.bitcast(_place(context, builder, signature, args), pointer)
        builder.call(fetch, [place, _INTEGER(0), _INTEGER(3), _INTEGER(1)])
        return context.get_dummy_value()

    return types.void(array, row), body


@intrinsic
def same_lanes(typing: Any, value: Any) -> Any:
    """A number in every lane."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(context, builder, args[0], signature.args[0])

    return _LANES(value), body


@intrinsic
def chosen(typing: Any, marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.VectorType(ir.IntType(64), WIDTH)
        marks, a, b = (builder.bitcast(value, bits) for value in args)
        return builder.bitcast(builder.or_(builder.and_(marks, a), builder.and_(builder.not_(marks), b)), _VECTOR)

    return _LANES(marks, a, b), body


if COMPILED:
    _offer_arithmetic()
