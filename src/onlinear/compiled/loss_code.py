"""What is compiled for losses by address: the calls, and the methods of each class of losses."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import cfunc, types

from onlinear.compiled._private import LACKING, CFunc, NumbaError, normalize_signature
from onlinear.compiled.cache import keep_on_disk, point_to, undisturbed
from onlinear.compiled.held import load
from onlinear.compiled.home import is_ours
from onlinear.compiled.lane_code import emits
from onlinear.compiled.loss_address import call2, call3, call_rooms, laned_theta, thetas_in_turn
from onlinear.compiled.outputs import lanes, put_lanes, put_number, some
from onlinear.compiled.passes import steps_for


def _emit_call(builder: Any, args: Any, kinds: Any) -> Any:
    address, *numbers, fields = args
    double, pointer = ir.DoubleType(), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(double, [double] * len(numbers) + [pointer])
    target = builder.inttoptr(address, kind.as_pointer())
    return builder.call(target, [*numbers, builder.inttoptr(fields, pointer)])


def _numbers(*kinds: Any) -> Any:
    """As many doubles between two addresses, whatever the arguments are."""
    count = len(kinds) - 2
    return types.float64(types.int64, *[types.float64] * count, types.int64)


def _emit_call_rooms(builder: Any, args: Any, kinds: Any) -> None:
    address, *given, fields = args
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [*(one.type for one in given), pointer])
    builder.call(builder.inttoptr(address, kind.as_pointer()), [*given, builder.inttoptr(fields, pointer)])


def _rooms(address: Any, asked: Any, targets: Any, open_ones: Any, count: Any, fields: Any) -> Any:
    return types.none(types.int64, asked, targets, open_ones, types.int64, types.int64)


emits(call_rooms, _rooms, _emit_call_rooms)
emits(call2, _numbers, _emit_call)
emits(call3, _numbers, _emit_call)


# The text of a loss's compiled methods. Each loss gets its own copy, whose globals hold its class as ``part`` and a number for
# each of its fields as ``like``, and whose name is its own: the disk cache goes by name and text, and sees through no closure.
part: Any = None
like: tuple[float, ...] = ()
thetas_of: Any = None  # of lanes
below = 0.0  # the c for which these are


def _value(s, y, fields):  # type: ignore[no-untyped-def]
    return part(*load(like, fields, 0)).value(s, y)


def _slope(s, y, fields):  # type: ignore[no-untyped-def]
    return part(*load(like, fields, 0)).slope(s, y)


def _theta(a, c, y, fields):  # type: ignore[no-untyped-def]
    return part(*load(like, fields, 0)).theta(a, c, y)


# The same of a loss from outside. Its exceptions cannot leave a function that is called by its address: where one is raised
# there is no number, and training stops.


def _value_or_nan(s, y, fields):  # type: ignore[no-untyped-def]
    try:
        return part(*load(like, fields, 0)).value(s, y)
    except Exception:
        return nan


def _slope_or_nan(s, y, fields):  # type: ignore[no-untyped-def]
    try:
        return part(*load(like, fields, 0)).slope(s, y)
    except Exception:
        return nan


def _theta_or_nan(a, c, y, fields):  # type: ignore[no-untyped-def]
    try:
        return part(*load(like, fields, 0)).theta(a, c, y)
    except Exception:
        return nan


def _thetas_in_turn(asked, targets, open_ones, count, fields):  # type: ignore[no-untyped-def]
    thetas_in_turn(part(*load(like, fields, 0)), asked, targets, open_ones, count)


def _thetas(asked, targets, open_ones, count, fields):  # type: ignore[no-untyped-def]
    loss = part(*load(like, fields, 0))
    c = lanes(asked, 1)
    if some(lanes(open_ones, 0) * (c >= below)):
        thetas_in_turn(loss, asked, targets, open_ones, count)
    else:
        put_lanes(asked, 2, thetas_of(loss, lanes(asked, 0), c, lanes(targets, 0)))


def _in_turn_or_nan(asked, targets, open_ones, count, fields):  # type: ignore[no-untyped-def]
    try:
        thetas_in_turn(part(*load(like, fields, 0)), asked, targets, open_ones, count)
    except Exception:
        for o in range(count):
            put_number(asked, 2, o, nan)


_DOUBLE, _FIELDS = types.float64, types.CPointer(types.float64)
_ROOM, _COUNT = types.CPointer(types.float64), types.int64
_METHODS: dict[str, tuple[Any, Any]] = {
    "value": (_value, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "slope": (_slope, _DOUBLE(_DOUBLE, _DOUBLE, _FIELDS)),
    "theta": (_theta, _DOUBLE(_DOUBLE, _DOUBLE, _DOUBLE, _FIELDS)),
    "thetas": (_thetas_in_turn, types.void(_ROOM, _ROOM, _ROOM, _COUNT, _FIELDS)),
}


_GUARDED = {_value: _value_or_nan, _slope: _slope_or_nan, _theta: _theta_or_nan, _thetas_in_turn: _in_turn_or_nan}


_kept: list[Any] = []  # whose addresses are in use


def code_address(text: Callable[..., Any], signature: Any, place: Any, keeps: bool = True) -> int:
    """Where a text is as C would call it, kept on disk if ``keeps``. ``place``: where later processes look for its code."""
    if LACKING or not keeps:
        found = cfunc(signature)(text)
    else:
        found = keep_on_disk(CFunc(text, normalize_signature(signature), {}, {}, **steps_for(text)), text)
        with undisturbed():
            found.compile()
        point_to(found, signature, place)
    _kept.append(found)
    return int(found.address)


def callback(cls: Any, name: str, place: Any) -> int:
    """The address of a compiled method of a class of losses. ``place``: where later processes look for its code.

    Raises TypeError for a method that does not compile.
    """
    template, signature = _METHODS[name]
    ours = is_ours(cls.__module__)
    more: dict[str, Any] = {"part": cls, "like": (0.0,) * len(cls._fields)}
    laned = laned_theta(cls)
    if name == "thetas" and laned is not None:
        template, (more["thetas_of"], more["below"]) = _thetas, laned
    if not ours:
        template = _GUARDED.get(template, template)
    text = FunctionType(template.__code__, {**globals(), **more}, name)
    text.__qualname__ = f"{cls.__qualname__}.{name}"
    try:
        return code_address(text, signature, place, ours)
    except NumbaError as error:
        raise TypeError(f"the method {name} of the loss {cls.__name__} does not compile: {error}") from error
