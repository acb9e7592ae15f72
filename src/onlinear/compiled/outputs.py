"""Lanes that are outputs: row ``row`` of an (n, WIDTH) array of doubles, C-ordered, holds one number of each output.

Interpreted, WIDTH is 1, and lanes are numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from onlinear.compiled.lanes import OUTPUTS, WIDTH, emitted, prefetch, repeat


def _place(builder: Any, args: Any, kinds: Any) -> Any:
    """The address of row args[1] of the array args[0]."""
    row, kind, wide = args[1], getattr(kinds[1], "literal_type", kinds[1]), ir.IntType(64)
    if row.type != wide:
        row = builder.sext(row, wide) if kind.signed else builder.zext(row, wide)
    return builder.gep(args[0], [builder.mul(row, wide(WIDTH))])


def _emit_lanes(builder: Any, args: Any, kinds: Any) -> Any:
    return builder.load(builder.bitcast(_place(builder, args, kinds), OUTPUTS.vector.as_pointer()), align=8)


def _emit_put(builder: Any, args: Any, kinds: Any) -> None:
    builder.store(args[2], builder.bitcast(_place(builder, args, kinds), OUTPUTS.vector.as_pointer()), align=8)


def _emit_fetch(builder: Any, args: Any, kinds: Any) -> None:
    prefetch(builder, _place(builder, args, kinds))


def _emit_same(builder: Any, args: Any, kinds: Any) -> Any:
    return repeat(builder, args[0], OUTPUTS)


def _emit_chosen(builder: Any, args: Any, kinds: Any) -> Any:
    bits = ir.VectorType(ir.IntType(64), WIDTH)
    marks, a, b = (builder.bitcast(value, bits) for value in args)
    return builder.bitcast(builder.or_(builder.and_(marks, a), builder.and_(builder.not_(marks), b)), OUTPUTS.vector)


@emitted(lambda *kinds: OUTPUTS, _emit_lanes)
def lanes(array: np.ndarray, row: int) -> Any:
    """Row ``row`` of an (n, WIDTH) array."""
    return array[row, 0]


@emitted(lambda *kinds: types.none, _emit_put)
def put_lanes(array: np.ndarray, row: int, values: Any) -> None:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array."""
    array[row, 0] = values


@emitted(lambda *kinds: types.none, _emit_fetch)
def fetch_lanes(array: np.ndarray, row: int) -> None:
    """Ask for row ``row`` of an (n, WIDTH) array ahead of its use."""


@emitted(lambda *kinds: OUTPUTS, _emit_same)
def same_lanes(value: float) -> Any:
    """A number in every lane."""
    return value


@emitted(lambda *kinds: OUTPUTS, _emit_chosen)
def chosen(marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """
    return a if marks != 0.0 else b
