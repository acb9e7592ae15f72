"""Lanes that are outputs: row ``row`` of an (n, WIDTH) array holds one number of each output."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from onlinear.compiled._private import cgutils
from onlinear.compiled.lanes import INTEGER, OUTPUTS, WIDTH, spread


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
            builder.bitcast(_row_of_outputs(context, builder, signature, args), OUTPUTS.vector.as_pointer()), align=8
        )

    return OUTPUTS(array, row), body


@intrinsic
def put_lanes(typing: Any, array: Any, row: Any, values: Any) -> Any:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = builder.bitcast(_row_of_outputs(context, builder, signature, args), OUTPUTS.vector.as_pointer())
        builder.store(args[2], target, align=8)
        return context.get_dummy_value()

    return types.void(array, row, OUTPUTS), body


@intrinsic
def fetch_lanes(typing: Any, array: Any, row: Any) -> Any:
    """Ask for row ``row`` of an (n, WIDTH) array ahead of its use."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, INTEGER, INTEGER, INTEGER])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.bitcast(_row_of_outputs(context, builder, signature, args), pointer)
        builder.call(fetch, [place, INTEGER(0), INTEGER(3), INTEGER(1)])
        return context.get_dummy_value()

    return types.void(array, row), body


@intrinsic
def same_lanes(typing: Any, value: Any) -> Any:
    """A number in every lane."""

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return spread(context, builder, args[0], signature.args[0], OUTPUTS)

    return OUTPUTS(value), body


@intrinsic
def chosen(typing: Any, marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """

    def body(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.VectorType(ir.IntType(64), WIDTH)
        marks, a, b = (builder.bitcast(value, bits) for value in args)
        return builder.bitcast(builder.or_(builder.and_(marks, a), builder.and_(builder.not_(marks), b)), OUTPUTS.vector)

    return OUTPUTS(marks, a, b), body
