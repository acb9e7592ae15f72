"""What is compiled for held arguments: they are read from where ``held.py`` has laid them out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, lower_builtin, models, overload, register_model, type_callable, typeof_impl, unbox

from onlinear.compiled._private import cgutils, fill_array, without_owner
from onlinear.compiled.cache import HeldType, RoutineType
from onlinear.compiled.held import Held, borrowed, load, opened, opened_at, write_word
from onlinear.compiled.lane_code import INTEGER, ask_first, emits
from onlinear.compiled.passes import inlined
from onlinear.compiled.routines import Routine, run_routine

register_model(HeldType)(models.OpaqueModel)


@typeof_impl.register(Held)
def _typeof(value: Any, context: Any) -> Any:
    return value.kind


register_model(RoutineType)(models.OpaqueModel)


@typeof_impl.register(Routine)
def _kind(value: Any, context: Any) -> Any:
    return value.kind


@unbox(HeldType)
def _address(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(c.pyapi.long_as_voidptr(value))


def _from_words(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        itemsize, data = next(words), builder.inttoptr(next(words), array.data.type)
        shape, strides = ([next(words) for _ in range(kind.ndim)] for _ in range(2))
        return fill_array(array, data, shape, strides, itemsize, None)
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_from_words(context, builder, inner, words) for inner in kind.types])
    if isinstance(kind, types.NoneType):
        return context.get_dummy_value()
    if isinstance(kind, (RoutineType, HeldType)):
        return builder.inttoptr(next(words), context.get_value_type(kind))
    if isinstance(kind, types.Float):
        return builder.bitcast(next(words), ir.DoubleType())
    return builder.trunc(next(words), context.get_value_type(kind))


def _words_from(builder: Any, first: Any) -> Iterator[Any]:
    """The numbers of 64 bits from an address on."""
    return (builder.load(builder.gep(first, [INTEGER(place)])) for place in count())


@type_callable(opened)
def _type_opened(context: Any) -> Any:
    return lambda here: here.content


@lower_builtin(opened, HeldType)
def _opened(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = builder.bitcast(args[0], ir.IntType(64).as_pointer())
    return _from_words(context, builder, signature.return_type, _words_from(builder, first))


@type_callable(opened_at)
def _type_opened_at(context: Any) -> Any:
    return lambda like, here: like.content


@lower_builtin(opened_at, HeldType, types.Integer)
def _opened_at(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    first = builder.inttoptr(args[1], ir.IntType(64).as_pointer())
    return _from_words(context, builder, signature.return_type, _words_from(builder, first))


def _type_run(args: Any) -> Any:
    kind, *others = args
    return kind.gives(*args) if isinstance(kind, RoutineType) and kind.takes == tuple(others) else None


ask_first(run_routine, _type_run)


@lower_builtin(run_routine, RoutineType, types.VarArg(types.Any))
def _run(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, convention = signature.args[0], context.call_conv
    address, *others = args
    code = builder.bitcast(address, convention.get_function_type(kind.gives, kind.takes).as_pointer())
    status, found = convention.call_function(builder, code, kind.gives, kind.takes, others)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return found


def _write(builder: Any, args: Any, kinds: Any) -> None:
    builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()))


emits(write_word, lambda *kinds: types.none(types.int64, types.int64), _write)


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        return without_owner(context.make_array(kind)(context, builder, value))
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(builder, kind, [_uncounted(context, builder, inner, part) for inner, part in parts])
    return value


@type_callable(borrowed)
def _type_borrowed(context: Any) -> Any:
    return lambda args: args


@lower_builtin(borrowed, types.Any)
def _borrowed(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _uncounted(context, builder, signature.return_type, args[0])


@overload(load, jit_options=inlined(load))
def _load(like, array, first):  # type: ignore[no-untyped-def]
    numbers = ", ".join(f"array[first + {k}]" for k in range(len(like)))  # a slice takes longer to compile
    return eval(f"lambda like, array, first: ({numbers},)")
