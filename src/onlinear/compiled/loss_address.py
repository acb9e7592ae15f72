"""Losses by address: a kernel is given the addresses of a loss's compiled methods, so one kernel serves every loss."""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, types
from numba.extending import intrinsic

from onlinear.compiled._private import LACKING, CFunc, NumbaError, normalize_signature, to_fixed_tuple
from onlinear.compiled.cache import COMPILED, is_ours, keep_on_disk
from onlinear.compiled.methods import adopt


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
    """A loss as kernels with an explicit step see it: the addresses of its compiled methods and of its fields."""

    value_at: int
    slope_at: int
    fields_at: int

    def value(self, s: float, y: float) -> float:
        return _call2(self.value_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def slope(self, s: float, y: float) -> float:
        return _call2(self.slope_at, s, y, self.fields_at)  # type: ignore[no-any-return]


class BoundImplicitLoss(NamedTuple):
    """The same with the implicit step, which takes longer to compile than the others together."""

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


for _kind in (BoundLoss, BoundImplicitLoss):
    adopt(_kind)


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
        if LACKING or not is_ours(cls.__module__):
            return cfunc(signature)(text)
        callback = keep_on_disk(CFunc(text, normalize_signature(signature), {}, {}), text)
        callback.compile()
        return callback
    except NumbaError as error:
        raise TypeError(f"the method {name} of the loss {cls.__name__} does not compile: {error}") from error


def bind_loss(loss: Any, implicit: bool = True) -> Any:
    """The loss as a kernel takes it, with theta where it is ``implicit``. What its addresses point to lasts as long as the
    process, a few bytes for each setting.

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
    return with_fields_at(loss, fields, implicit)


def with_fields_at(loss: Any, fields: np.ndarray, implicit: bool) -> Any:
    """The loss as a kernel takes it, with its fields where ``fields`` holds them: they may change there, and outlive it."""
    if not COMPILED:
        return loss
    cls: Any = type(loss)
    kind: Any = BoundImplicitLoss if implicit and hasattr(loss, "theta") else BoundLoss
    names = [place.removesuffix("_at") for place in kind._fields[:-1]]
    return kind(*(int(_compiled_method(cls, name).address) for name in names), fields.ctypes.data)
