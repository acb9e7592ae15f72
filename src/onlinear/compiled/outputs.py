"""Lanes that are outputs: row ``row`` of an (n, WIDTH) array of doubles holds one number of each output.

The rows of an array, or of each of several side by side, are as far apart as ``apart`` says, and so are those of a ``room``.
Interpreted, WIDTH is 1, and lanes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from onlinear.compiled._private import cgutils
from onlinear.compiled.lanes import OUTPUTS, WIDTH, apart, are_vectors, emitted, prefetch, repeat

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


@emitted(lambda vectors, row: _each(vectors, OUTPUTS), _emit_lanes)
def lanes(vectors: Any, row: int) -> Any:
    """Row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    return tuple(vector[row, 0] for vector in vectors) if isinstance(vectors, tuple) else vectors[row, 0]


@emitted(lambda *kinds: types.none, _emit_put)
def put_lanes(vectors: Any, row: int, values: Any) -> None:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    for vector, value in zip(vectors, values, strict=True) if isinstance(vectors, tuple) else ((vectors, values),):
        vector[row, 0] = value


@emitted(lambda *kinds: types.none, _emit_fetch)
def fetch_lanes(vectors: Any, row: int) -> None:
    """Ask for row ``row`` of an (n, WIDTH) array, or of each of several side by side, ahead of its use."""


@emitted(lambda vectors, row, place: _each(vectors, types.float64), _emit_number)
def number_at(vectors: Any, row: int, place: int) -> Any:
    """One lane of row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    return tuple(vector[row, place] for vector in vectors) if isinstance(vectors, tuple) else vectors[row, place]


@emitted(lambda *kinds: types.none, _emit_put_number)
def put_number(vectors: Any, row: int, place: int, values: Any) -> None:
    """Write one lane of row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    for vector, value in zip(vectors, values, strict=True) if isinstance(vectors, tuple) else ((vectors, values),):
        vector[row, place] = value


def _emit_no_lanes(builder: Any, args: Any, kinds: Any) -> Any:
    nought = ir.Constant(OUTPUTS.vector, None)
    return cgutils.pack_array(builder, [nought] * kinds[0].count) if are_vectors(kinds[0]) else nought


@emitted(lambda vectors: _each(vectors, OUTPUTS), _emit_no_lanes)
def no_lanes(vectors: Any) -> Any:
    """What ``lanes`` gives of vectors that are 0."""
    return tuple(0.0 for _ in vectors) if isinstance(vectors, tuple) else 0.0


# --- lanes, or numbers where there is one output ---------------------------------------------------------------------


def _row_kind(rows: Any) -> Any:
    return OUTPUTS if rows.ndim == 2 else types.float64


def _emit_row(builder: Any, args: Any, kinds: Any) -> Any:
    return _emit_lanes(builder, args, kinds) if kinds[0].ndim == 2 else builder.load(builder.gep(args[0], [args[1]]))


def _emit_put_row(builder: Any, args: Any, kinds: Any) -> None:
    if kinds[0].ndim == 2:
        _emit_put(builder, args, kinds)
    else:
        builder.store(args[2], builder.gep(args[0], [args[1]]))


@emitted(lambda rows, row: _row_kind(rows), _emit_row)
def row_of(rows: np.ndarray, row: int) -> Any:
    """Row ``row`` of an (n, WIDTH) array as lanes, or of an (n,) array as a number."""
    return rows[row, 0] if rows.ndim == 2 else rows[row]


@emitted(lambda *kinds: types.none, _emit_put_row)
def put_row(rows: np.ndarray, row: int, values: Any) -> None:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array, or of an (n,) array."""
    rows[(row, 0) if rows.ndim == 2 else row] = values


@emitted(_row_kind, lambda builder, args, kinds: ir.Constant(OUTPUTS.vector if kinds[0].ndim == 2 else ir.DoubleType(), None))
def no_row(rows: np.ndarray) -> Any:
    """What ``row_of`` gives of an array that is 0."""
    return 0.0


@emitted(lambda *kinds: OUTPUTS, _emit_same)
def same_lanes(value: float) -> Any:
    """A number in every lane."""
    return value


@emitted(lambda marks, a, b: a, _emit_chosen)
def chosen(marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none; lanes, or tuples of them.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """
    return a if marks != 0.0 else b


@emitted(lambda lanes: types.boolean, _emit_some)
def some(lanes: Any) -> bool:
    """Whether a lane is not 0."""
    return bool(lanes != 0.0)


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


@emitted(lambda *kinds: types.float64, _emit_value_at)
def value_at(room: Any, place: int) -> float:
    """A number of a room of numbers."""
    return room[place]  # type: ignore[no-any-return]


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


@emitted(lambda value: _with(value, _in_memory), _emit_laid_out)
def laid_out(value: Any) -> Any:
    """The lanes of a tuple in memory, from which ``of_output`` takes one output's faster than from registers."""
    return value


@emitted(lambda value, place: _with(value, _one), _emit_of_output)
def of_output(value: Any, place: int) -> Any:
    """A tuple with one output's numbers in place of lanes."""
    return value


@emitted(lambda value: _with(value, lambda kind: OUTPUTS if kind == types.float64 else kind), _emit_in_lanes)
def in_lanes(value: Any) -> Any:
    """A tuple with lanes in place of its numbers."""
    return value


@emitted(lambda like, array, first: _with(like, lambda kind: OUTPUTS), _emit_lanes_like)
def lanes_like(like: Any, array: np.ndarray, first: int) -> Any:
    """A tuple like the tuple of numbers ``like``, of the same class, with the rows of an array from ``first`` on as lanes."""
    values = array[first : first + len(like), 0]
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)


@emitted(lambda like, memory, first, step: _with(like, lambda kind: OUTPUTS), _emit_lanes_like)
def lanes_apart(like: Any, memory: Any, first: int, step: int) -> Any:
    """``lanes_like`` of rows that are ``step`` rows apart; of one row, where ``like`` is a number."""
    if not isinstance(like, tuple):
        return memory[first, 0]
    return tuple(memory[first + place * step, 0] for place in range(len(like)))


@emitted(lambda *kinds: types.none, _emit_put_each)
def put_apart(values: Any, memory: Any, first: int, step: int) -> None:
    """``put_each`` to rows that are ``step`` rows apart; to one row, where there is one value."""
    for place, value in enumerate(values if isinstance(values, tuple) else (values,)):
        memory[first + place * step, 0] = value


@emitted(lambda *kinds: types.none, _emit_put_each)
def put_each(values: tuple[Any, ...], array: np.ndarray, first: int) -> None:
    """Write a tuple of lanes, or of numbers for every lane, to the rows of an array from ``first`` on."""
    for place, value in enumerate(values):
        array[first + place, 0] = value
