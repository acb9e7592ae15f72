"""What is compiled for NumPy's sum of products: a call of its function."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from onlinear.compiled._private import cgutils
from onlinear.compiled.numpy_dot import dot_at

_BYTES, _WORD, _DOUBLE = ir.IntType(8).as_pointer(), ir.IntType(64), ir.DoubleType()
_KIND = ir.FunctionType(ir.VoidType(), [_BYTES, _WORD, _BYTES, _WORD, _BYTES, _WORD, _BYTES])


@intrinsic
def _sum_of_products(typing: Any, address: Any, x: Any, y: Any, n: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        operands: list[Any] = []
        for kind, value in zip(signature.args[1:3], args[1:3], strict=True):
            array = context.make_array(kind)(context, builder, value)
            operands += [builder.bitcast(array.data, _BYTES), builder.extract_value(array.strides, 0)]
        out = cgutils.alloca_once(builder, _DOUBLE)
        function = builder.inttoptr(args[0], _KIND.as_pointer())
        builder.call(function, [*operands, builder.bitcast(out, _BYTES), args[3], _BYTES(None)])
        return builder.load(out)

    return types.float64(types.int64, x, y, types.int64), code


@overload(dot_at)
def _dot_at(address, x, y, n):  # type: ignore[no-untyped-def]
    def code(address, x, y, n):  # type: ignore[no-untyped-def]
        if n == 1:  # which NumPy multiplies without a sum
            return x[0] * y[0]
        return _sum_of_products(address, x, y, n)

    return code
