"""What is compiled for lines of memory: the code of the texts in ``lines.py``."""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types

from onlinear.compiled._private import cgutils
from onlinear.compiled.lane_code import INTEGER, SECOND, emits, has_masks, prefetch
from onlinear.compiled.lines import LINE, ask, exchange, non_zeros, turned

_EIGHT = 8
_COLUMNS = ir.VectorType(INTEGER, _EIGHT)
_NAMES = {INTEGER: "i32", ir.IntType(64): "i64", ir.FloatType(): "f32", ir.DoubleType(): "f64"}


def packs() -> bool:
    """Whether the processor packs chosen numbers of a register in one instruction, and LLVM knows it."""
    return bool(binding.llvm_version_info[0] >= 20 and has_masks())


def _vector_at(builder: Any, array: Any, place: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(array, [place]), vector.as_pointer())


def _emit_exchange(builder: Any, args: Any, kinds: Any) -> None:
    keys, *rows = args
    size = keys.type.pointee.width // 8
    vector = ir.VectorType(keys.type.pointee, LINE // size)
    places = [_vector_at(builder, keys, builder.mul(row, ir.Constant(row.type, vector.count)), vector) for row in rows]
    a, b = (builder.load(place, align=size) for place in places)
    ordered = builder.icmp_unsigned("<", a, b)
    builder.store(builder.select(ordered, a, b), places[0], align=size)
    builder.store(builder.select(ordered, b, a), places[1], align=size)


def _emit_non_zeros(builder: Any, args: Any, kinds: Any) -> Any:
    values, at, column, indices, found, end = args
    vector = ir.VectorType(values.type.pointee, _EIGHT)
    numbers = builder.load(_vector_at(builder, values, at, vector), align=4)
    chosen = builder.fcmp_unordered("!=", numbers, ir.Constant(vector, None))
    first = builder.insert_element(ir.Constant(_COLUMNS, ir.Undefined), builder.trunc(column, INTEGER), INTEGER(0))
    first = builder.shuffle_vector(first, first, ir.Constant(_COLUMNS, [0] * _EIGHT))
    columns = builder.add(first, ir.Constant(_COLUMNS, list(range(_EIGHT))))
    return write_chosen(builder, chosen, ((numbers, found), (columns, indices)), end)


def write_chosen(builder: Any, chosen: Any, pairs: Any, end: Any) -> Any:
    """Write the chosen ones of the eight numbers of each vector to its array, from ``end`` on; their end."""
    return (_write_packed if packs() else _write_each)(builder, chosen, pairs, end)


def _write_packed(builder: Any, chosen: Any, pairs: Any, end: Any) -> Any:
    for vector, array in pairs:
        element = _NAMES[vector.type.element]
        kind = ir.FunctionType(vector.type, [vector.type, chosen.type, vector.type])
        name = f"llvm.experimental.vector.compress.v{_EIGHT}{element}"
        pack = cgutils.get_or_insert_function(builder.module, kind, name)
        packed = builder.call(pack, [vector, chosen, ir.Constant(vector.type, ir.Undefined)])
        builder.store(packed, _vector_at(builder, array, end, vector.type), align=4)
    count = builder.ctpop(builder.bitcast(chosen, ir.IntType(_EIGHT)))
    return builder.add(end, builder.zext(count, end.type))


def _write_each(builder: Any, chosen: Any, pairs: Any, end: Any) -> Any:
    for place in range(_EIGHT):
        for vector, array in pairs:
            builder.store(builder.extract_element(vector, INTEGER(place)), builder.gep(array, [end]))
        end = builder.add(end, builder.zext(builder.extract_element(chosen, INTEGER(place)), end.type))
    return end


def _emit_turned(builder: Any, args: Any, kinds: Any) -> None:
    """Blocks of one, two and four numbers change places."""
    values, at, apart, out, to, beside = args
    vector = ir.VectorType(values.type.pointee, _EIGHT)
    size = 8 if values.type.pointee == ir.DoubleType() else 4
    lines = []
    for column in range(_EIGHT):
        place = builder.add(at, builder.mul(apart, ir.Constant(apart.type, column)))
        lines.append(builder.load(_vector_at(builder, values, place, vector), align=size))
    for step in (1, 2, 4):
        low = [lane if not lane & step else _EIGHT + lane - step for lane in range(_EIGHT)]
        high = [lane + step if not lane & step else _EIGHT + lane for lane in range(_EIGHT)]
        for first in (first for first in range(_EIGHT) if not first & step):
            pair = lines[first], lines[first + step]
            for place, mask in ((first, low), (first + step, high)):
                lines[place] = builder.shuffle_vector(*pair, ir.Constant(_COLUMNS, mask))
    for row, line in enumerate(lines):
        place = builder.add(to, builder.mul(beside, ir.Constant(beside.type, row)))
        builder.store(line, _vector_at(builder, out, place, vector), align=size)


emits(ask, lambda *kinds: types.none, lambda builder, args, kinds: prefetch(builder, builder.gep(args[0], [args[1]]), SECOND))
emits(exchange, lambda *kinds: types.none, _emit_exchange)
emits(non_zeros, lambda values, at, column, indices, found, end: types.int64, _emit_non_zeros)
emits(turned, lambda *kinds: types.none, _emit_turned)
