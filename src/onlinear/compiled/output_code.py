"""What is compiled for lanes that are outputs: the code of the texts in ``outputs.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from onlinear.compiled._private import cgutils
from onlinear.compiled.lane_code import OUTPUTS, ROW, apart, are_vectors, emits, join, prefetch, repeat
from onlinear.compiled.lanes import ENTRIES, WIDTH
from onlinear.compiled.lines_code import write_chosen
from onlinear.compiled.outputs import (
    chosen,
    fetch_lanes,
    gather_output,
    in_lanes,
    laid_out,
    lanes,
    lanes_apart,
    lanes_like,
    no_lanes,
    no_row,
    number_at,
    of_output,
    places_of,
    put_apart,
    put_back_output,
    put_each,
    put_lanes,
    put_number,
    put_row,
    row_of,
    same_lanes,
    some,
    taken_output,
    value_at,
)

_WIDE = ir.IntType(64)
_MEMORY = types.CPointer(types.float64)  # of the lanes that ``laid_out`` has put there


def _place(builder: Any, array: Any, args: Any, kinds: Any) -> Any:
    """The address of row args[1] of ``array``, one of those that args[0] is."""
    row, kind = args[1], getattr(kinds[1], "literal_type", kinds[1])
    if row.type != _WIDE:
        row = builder.sext(row, _WIDE) if kind.signed else builder.zext(row, _WIDE)
    rows = 1 if isinstance(kinds[0], types.CPointer) else apart(kinds[0])
    return builder.gep(array, [builder.mul(row, _WIDE(WIDTH * rows))])


def _places(builder: Any, args: Any, kinds: Any) -> list[Any]:
    several = args[0] if are_vectors(kinds[0]) else [args[0]]
    return [_place(builder, array, args, kinds) for array in several]


def _each(vectors: Any, one: Any) -> Any:
    """The type ``one``, or as many of it as there are vectors."""
    return types.UniTuple(one, vectors.count) if are_vectors(vectors) else one


def _read(builder: Any, place: Any) -> Any:
    return builder.load(builder.bitcast(place, OUTPUTS.vector.as_pointer()), align=8)


def _write(builder: Any, place: Any, value: Any) -> None:
    whole = value if value.type == OUTPUTS.vector else repeat(builder, value, OUTPUTS)
    builder.store(whole, builder.bitcast(place, OUTPUTS.vector.as_pointer()), align=8)


def _packed(builder: Any, kind: Any, found: list[Any]) -> Any:
    return cgutils.pack_array(builder, found) if are_vectors(kind) else found[0]


def _emit_lanes(builder: Any, args: Any, kinds: Any) -> Any:
    return _packed(builder, kinds[0], [_read(builder, place) for place in _places(builder, args, kinds)])


def _apart_values(builder: Any, value: Any, kind: Any) -> list[Any]:
    if not isinstance(kind, types.BaseTuple):
        return [value]
    return [builder.extract_value(value, place) for place in range(kind.count)]


def _emit_put(builder: Any, args: Any, kinds: Any) -> None:
    values = _apart_values(builder, args[2], kinds[2])
    for place, value in zip(_places(builder, args, kinds), values, strict=True):
        _write(builder, place, value)


def _emit_fetch(builder: Any, args: Any, kinds: Any) -> None:
    for place in _places(builder, args, kinds):
        prefetch(builder, place)


def _numbers(builder: Any, args: Any, kinds: Any) -> list[Any]:
    return [builder.gep(place, [args[2]]) for place in _places(builder, args, kinds)]


def _emit_number(builder: Any, args: Any, kinds: Any) -> Any:
    return _packed(builder, kinds[0], [builder.load(place) for place in _numbers(builder, args, kinds)])


def _emit_put_number(builder: Any, args: Any, kinds: Any) -> None:
    values = _apart_values(builder, args[3], kinds[3])
    for place, value in zip(_numbers(builder, args, kinds), values, strict=True):
        builder.store(value, place)


def _four_places(builder: Any, args: Any, kinds: Any) -> list[list[Any]]:
    """The addresses of output args[2]'s numbers at the columns args[1] of four entries, of each vector."""
    columns = [builder.extract_value(args[1], entry) for entry in range(ENTRIES)]
    kind = [kinds[0], types.uint64]
    return [
        [builder.gep(_place(builder, vector, [vector, column], kind), [args[2]]) for column in columns]
        for vector in (args[0] if are_vectors(kinds[0]) else [args[0]])
    ]


def _emit_gather_output(builder: Any, args: Any, kinds: Any) -> Any:
    found = [join(builder, [builder.load(place) for place in four]) for four in _four_places(builder, args, kinds)]
    return _packed(builder, kinds[0], found)


def _emit_put_back_output(builder: Any, args: Any, kinds: Any) -> None:
    """The first entry last, as ``put_back`` has it."""
    values = _apart_values(builder, args[3], kinds[3])
    for four, value in zip(_four_places(builder, args, kinds), values, strict=True):
        for entry in reversed(range(ENTRIES)):
            builder.store(builder.extract_element(value, ir.IntType(32)(entry)), four[entry])


def _emit_taken_output(builder: Any, args: Any, kinds: Any) -> Any:
    first = builder.gep(_place(builder, args[0], args, kinds), [args[2]])
    return join(builder, [builder.load(builder.gep(first, [_WIDE(WIDTH * entry)])) for entry in range(ENTRIES)])


def _emit_same(builder: Any, args: Any, kinds: Any) -> Any:
    return repeat(builder, args[0], OUTPUTS)


def _emit_chosen(builder: Any, args: Any, kinds: Any) -> Any:
    bits = ir.VectorType(_WIDE, WIDTH)
    marks, found = builder.bitcast(args[0], bits), []
    pairs = zip(_apart_values(builder, args[1], kinds[1]), _apart_values(builder, args[2], kinds[2]), strict=True)
    for a, b in pairs:
        a, b = builder.bitcast(a, bits), builder.bitcast(b, bits)
        either = builder.or_(builder.and_(marks, a), builder.and_(builder.not_(marks), b))
        found.append(builder.bitcast(either, OUTPUTS.vector))
    return cgutils.pack_array(builder, found) if isinstance(kinds[1], types.BaseTuple) else found[0]


def _emit_some(builder: Any, args: Any, kinds: Any) -> Any:
    differ = builder.fcmp_unordered("!=", args[0], ir.Constant(OUTPUTS.vector, None))
    return builder.icmp_unsigned("!=", builder.bitcast(differ, ir.IntType(WIDTH)), ir.Constant(ir.IntType(WIDTH), 0))


def _emit_places(builder: Any, args: Any, kinds: Any) -> Any:
    marks, row, numbers, found, end, apart = args
    vector = ir.VectorType(_WIDE, WIDTH)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.mul(row, _WIDE(WIDTH)), ir.IntType(32)(0))
    first = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))
    places = builder.add(first, ir.Constant(vector, list(range(WIDTH))))
    chosen = builder.fcmp_unordered("!=", marks, ir.Constant(OUTPUTS.vector, None))
    beside = builder.gep(found, [apart])
    return write_chosen(builder, chosen, ((places, found), (builder.fptosi(numbers, vector), beside)), end)


def _emit_no_lanes(builder: Any, args: Any, kinds: Any) -> Any:
    nought = ir.Constant(OUTPUTS.vector, None)
    return cgutils.pack_array(builder, [nought] * kinds[0].count) if are_vectors(kinds[0]) else nought


# --- lanes, or numbers where there is one output ---------------------------------------------------------------------


def _row_kind(rows: Any) -> Any:
    return OUTPUTS if rows.ndim == 2 else types.float64


def _emit_row(builder: Any, args: Any, kinds: Any) -> Any:
    return _emit_lanes(builder, args, kinds) if kinds[0].ndim == 2 else builder.load(builder.gep(args[0], [args[1]]))


def _emit_no_row(builder: Any, args: Any, kinds: Any) -> Any:
    return ir.Constant(OUTPUTS.vector if kinds[0].ndim == 2 else ir.DoubleType(), None)


def _emit_put_row(builder: Any, args: Any, kinds: Any) -> None:
    if kinds[0].ndim == 2:
        _emit_put(builder, args, kinds)
    else:
        builder.store(args[2], builder.gep(args[0], [args[1]]))


# --- tuples of lanes, such as parts and steps: each output's own, and back -------------------------------------------


def _with(kind: Any, here: Callable[[Any], Any]) -> Any:
    """The type of a number, lanes or a tuple of them in which each place that is no tuple has the type ``here`` says."""
    if not isinstance(kind, types.BaseTuple):
        return here(kind)
    return types.BaseTuple.from_types([_with(inner, here) for inner in kind], getattr(kind, "instance_class", None))


def _over(builder: Any, value: Any, kind: Any, emit: Callable[[Any, Any], Any]) -> Any:
    """The value of that type, with ``emit(its value, its type)`` in each place."""
    if not isinstance(kind, types.BaseTuple):
        return emit(value, kind)
    found = [_over(builder, builder.extract_value(value, place), inner, emit) for place, inner in enumerate(kind)]
    alike = found and all(one.type == found[0].type for one in found)
    return cgutils.pack_array(builder, found) if alike else cgutils.pack_struct(builder, found)


def _in_memory(kind: Any) -> Any:
    return _MEMORY if kind == OUTPUTS else kind


def _emit_laid_out(builder: Any, args: Any, kinds: Any) -> Any:
    def lay(value: Any, kind: Any) -> Any:
        if kind != OUTPUTS:
            return value
        memory = cgutils.alloca_once(builder, OUTPUTS.vector)
        builder.store(value, memory)
        return builder.bitcast(memory, ir.DoubleType().as_pointer())

    return _over(builder, args[0], kinds[0], lay)


def _emit_value_at(builder: Any, args: Any, kinds: Any) -> Any:
    value = builder.load(builder.gep(args[0], [args[1]]))
    return value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())


def _one(kind: Any) -> Any:
    return types.float64 if kind in (OUTPUTS, _MEMORY) else kind


def _emit_of_output(builder: Any, args: Any, kinds: Any) -> Any:
    def take(value: Any, kind: Any) -> Any:
        if kind == OUTPUTS:
            return builder.extract_element(value, args[1])
        return builder.load(builder.gep(value, [args[1]])) if kind == _MEMORY else value

    return _over(builder, args[0], kinds[0], take)


def _emit_in_lanes(builder: Any, args: Any, kinds: Any) -> Any:
    def spread(value: Any, kind: Any) -> Any:
        return repeat(builder, value, OUTPUTS) if kind == types.float64 else value

    return _over(builder, args[0], kinds[0], spread)


def _rows_of(builder: Any, args: Any, kinds: Any, count: int) -> list[Any]:
    """The addresses of rows one after the other, or as many apart as a fourth argument says."""
    first = _place(builder, args[1], args[1:], kinds[1:])
    step = builder.mul(args[3], _WIDE(WIDTH)) if len(args) > 3 else _WIDE(WIDTH)
    return [builder.gep(first, [builder.mul(step, _WIDE(place))]) for place in range(count)]


def _emit_lanes_like(builder: Any, args: Any, kinds: Any) -> Any:
    if not isinstance(kinds[0], types.BaseTuple):
        return _read(builder, *_rows_of(builder, args, kinds, 1))
    return cgutils.pack_array(builder, [_read(builder, place) for place in _rows_of(builder, args, kinds, kinds[0].count)])


def _emit_put_each(builder: Any, args: Any, kinds: Any) -> None:
    values = _apart_values(builder, args[0], kinds[0])
    for place, value in zip(_rows_of(builder, args, kinds, len(values)), values, strict=True):
        _write(builder, place, value)


for _text, _kind, _emit in (
    (lanes, lambda vectors, row: _each(vectors, OUTPUTS), _emit_lanes),
    (put_lanes, lambda *kinds: types.none, _emit_put),
    (fetch_lanes, lambda *kinds: types.none, _emit_fetch),
    (number_at, lambda vectors, row, place: _each(vectors, types.float64), _emit_number),
    (put_number, lambda *kinds: types.none, _emit_put_number),
    (gather_output, lambda vectors, at, place: _each(vectors, ROW), _emit_gather_output),
    (put_back_output, lambda *kinds: types.none, _emit_put_back_output),
    (taken_output, lambda *kinds: ROW, _emit_taken_output),
    (no_lanes, lambda vectors: _each(vectors, OUTPUTS), _emit_no_lanes),
    (row_of, lambda rows, row: _row_kind(rows), _emit_row),
    (put_row, lambda *kinds: types.none, _emit_put_row),
    (
        no_row,
        _row_kind,
        lambda builder, args, kinds: ir.Constant(OUTPUTS.vector if kinds[0].ndim == 2 else ir.DoubleType(), None),
    ),
    (same_lanes, lambda *kinds: OUTPUTS, _emit_same),
    (chosen, lambda marks, a, b: a, _emit_chosen),
    (some, lambda lanes: types.boolean, _emit_some),
    (places_of, lambda *kinds: types.int64, _emit_places),
    (value_at, lambda *kinds: types.float64, _emit_value_at),
    (laid_out, lambda value: _with(value, _in_memory), _emit_laid_out),
    (of_output, lambda value, place: _with(value, _one), _emit_of_output),
    (in_lanes, lambda value: _with(value, lambda kind: OUTPUTS if kind == types.float64 else kind), _emit_in_lanes),
    (lanes_like, lambda like, array, first: _with(like, lambda kind: OUTPUTS), _emit_lanes_like),
    (lanes_apart, lambda like, memory, first, step: _with(like, lambda kind: OUTPUTS), _emit_lanes_like),
    (put_apart, lambda *kinds: types.none, _emit_put_each),
    (put_each, lambda *kinds: types.none, _emit_put_each),
):
    emits(_text, _kind, _emit)
