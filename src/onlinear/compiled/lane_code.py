"""What is compiled for lanes: their type, their arithmetic, and the code of the texts in ``lanes.py``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import copysign, exp, exp2, sqrt
from typing import Any

from llvmlite import binding, ir
from numba import carray, config, types
from numba.extending import lower_builtin, models, overload, register_model

from onlinear.compiled._private import AbstractTemplate, cgutils, impl_ret_borrowed, infer_global
from onlinear.compiled.lanes import (
    ENTRIES,
    WIDTH,
    added,
    at_column,
    empty,
    fetch,
    first_of,
    four,
    gather,
    joined,
    lane,
    nothing,
    numbers,
    put,
    put_all,
    put_back,
    room,
    rooms,
    taken,
    taken_all,
    total,
    totals,
    untouched,
    where,
    within,
)
from onlinear.compiled.passes import inlined

INTEGER = ir.IntType(32)
SMALLER_SIZE = 2  # of two numbers, with the sign of the first: what the instruction ``vrange`` is told
FIRST, SECOND = 3, 2  # caches, as LLVM numbers them


class LanesType(types.Type):  # type: ignore[misc]
    """The type of ``width`` doubles in vector registers."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.vector = ir.VectorType(ir.DoubleType(), width)
        super().__init__(name=f"Lanes{width}")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


ROW, OUTPUTS = LanesType(ENTRIES), LanesType(WIDTH)
_ZEROS = ir.Constant(ROW.vector, [0.0] * ENTRIES)


def _lanes_among(args: Any) -> Any:
    """The one kind of lanes among the types of numbers, or None."""
    kinds = {kind for kind in args if isinstance(kind, LanesType)}
    fits = len(kinds) == 1 and all(isinstance(kind, (LanesType, types.Number)) for kind in args)
    return kinds.pop() if fits else None


def _same(vector: Any, number: float) -> Any:
    return ir.Constant(vector, [number] * vector.count)


def _spread(context: Any, builder: Any, value: Any, kind: Any, lanes: Any) -> Any:
    """The value in every lane; lanes as they are."""
    return value if kind == lanes else repeat(builder, context.cast(builder, value, kind, types.float64), lanes)


def repeat(builder: Any, number: Any, lanes: Any) -> Any:
    """A double in every lane."""
    nothing = ir.Constant(lanes.vector, ir.Undefined)
    first = builder.insert_element(nothing, number, INTEGER(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INTEGER, lanes.width), [0] * lanes.width))


def ask_first(operation: Any, result: Callable[[Any], Any]) -> None:
    """Let ``result`` say the signature of ``operation`` for arguments of some types, None for others, before Numba's own
    templates are asked: of an operator there are some twenty, and those of arrays, which take longest, are asked of numbers,
    too."""

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return None if kws else result(args)

    parts = {"key": operation, "metadata": {"target": "cpu"}, "generic": generic}  # those of any target come later
    infer_global(operation)(type(f"First_{operation.__name__}", (AbstractTemplate,), parts))


def _lane_by_lane(operation: Any, emit: Callable[..., Any], count: int = 2, numbers: Any = None) -> None:
    """Let kernels call ``operation`` with lanes, or lanes and a number; ``numbers``: the types of what two numbers give, by the
    type that both have."""

    def result(args: Any) -> Any:
        if len(args) != count:
            return None
        same = numbers is not None and args[0] is args[-1] and args[0] in numbers
        found = numbers[args[0]] if same else _lanes_among(args)
        return None if found is None else found(*args)

    ask_first(operation, result)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(args, signature.args, strict=True)
        return emit(builder, *(_spread(context, builder, value, kind, signature.return_type) for value, kind in pairs))

    mixed = ((LanesType, LanesType), (LanesType, types.Number), (types.Number, LanesType))
    for kinds in mixed if count == 2 else ((LanesType,),):
        lower_builtin(operation, *kinds)(code)


def _compared(relation: str) -> Callable[[Any, Any, Any], Any]:
    compare = "fcmp_unordered" if relation == "!=" else "fcmp_ordered"
    return lambda builder, a, b: builder.select(
        getattr(builder, compare)(relation, a, b), _same(a.type, 1.0), _same(a.type, 0.0)
    )


def _by_llvm(builder: Any, name: str, value: Any) -> Any:
    vector = value.type
    kind = ir.FunctionType(vector, [vector])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{vector.count}f64"), [value])


def _size(builder: Any, value: Any) -> Any:
    return _by_llvm(builder, "fabs", value)


def _features() -> set[str]:
    """What the processor has that Numba compiles for: this one, unless ``NUMBA_CPU_NAME`` and its like name another."""
    named = config.CPU_FEATURES
    listed = binding.get_host_cpu_features().flatten() if named is None else named
    found = {feature[1:] for feature in listed.split(",") if feature.startswith("+")}
    return found if config.ENABLE_AVX else {feature for feature in found if not feature.startswith("avx")}


def has_masks() -> bool:
    """Whether the processor's instructions take masks of lanes, and one chooses between two numbers bit by bit."""
    return {"avx512f", "avx512vl"} <= _features()


def _within(builder: Any, v: Any, k: Any) -> Any:
    """The number of the smaller size, with the first one's sign: one instruction where there is one, else as Python has it."""
    bits = v.type.count * 64
    if has_masks() and "avx512dq" in _features():
        rounding = [INTEGER] if bits == 512 else []
        kind = ir.FunctionType(v.type, [v.type, v.type, INTEGER, v.type, ir.IntType(8), *rounding])
        call = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512.mask.range.pd.{bits}")
        as_it_is = [one(4) for one in rounding]
        return builder.call(call, [v, k, INTEGER(SMALLER_SIZE), v, ir.IntType(8)(-1), *as_it_is])
    low = builder.fneg(k)
    v = builder.select(builder.fcmp_ordered(">", low, v), low, v)
    return builder.select(builder.fcmp_ordered("<", k, v), k, v)


def _with_sign(builder: Any, size: Any, sign: Any) -> Any:
    """One instruction that chooses bits; without it a choice by the sign's bit between the size and its negative, which a loop
    finds once where the size is the same."""
    vector = size.type
    if has_masks():
        kind = ir.FunctionType(vector, [vector, vector])
        name = f"llvm.copysign.v{vector.count}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [size, sign])
    size, bits = _size(builder, size), ir.VectorType(ir.IntType(64), vector.count)
    negative = builder.icmp_signed("<", builder.bitcast(sign, bits), ir.Constant(bits, [0] * bits.count))
    return builder.select(negative, builder.fneg(size), size)


def _of_two_numbers(operation: Any, relation: str) -> None:
    """The code of max or min of two numbers of one type: Numba makes a function of each."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = args
        compare = builder.fcmp_ordered if signature.return_type == types.float64 else builder.icmp_signed
        return builder.select(compare(relation, b, a), b, a)

    for kind in _SIGNED:
        lower_builtin(operation, kind, kind)(code)


_SIGNED = {kind: kind for kind in (types.float64, types.int64)}
_ALIKE = {**_SIGNED, types.uint64: types.uint64}
_COMPARABLE = dict.fromkeys(_ALIKE, types.boolean)
_REAL = {types.float64: types.float64}


def _offer_arithmetic() -> None:
    for name, code, kinds in (
        ("add", "fadd", _ALIKE),
        ("sub", "fsub", _ALIKE),
        ("mul", "fmul", _ALIKE),
        ("truediv", "fdiv", _REAL),
    ):
        for form in (name, f"i{name}"):
            _lane_by_lane(getattr(operator, form), lambda builder, a, b, code=code: getattr(builder, code)(a, b), numbers=kinds)
    for name, relation in (("ne", "!="), ("eq", "=="), ("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">=")):
        _lane_by_lane(getattr(operator, name), _compared(relation), numbers=_COMPARABLE)
    # As Python has it: the first argument unless the second is larger, or smaller.
    _lane_by_lane(max, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a), numbers=_SIGNED)
    _lane_by_lane(min, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a), numbers=_SIGNED)
    _of_two_numbers(max, ">")
    _of_two_numbers(min, "<")
    _lane_by_lane(copysign, _with_sign)
    _lane_by_lane(within, _within)
    ask_first(bool, lambda args: types.boolean(*args) if args == (types.boolean,) else None)
    _lane_by_lane(operator.neg, lambda builder, a: builder.fneg(a), 1)
    _lane_by_lane(abs, _size, 1)
    _lane_by_lane(sqrt, lambda builder, a: _by_llvm(builder, "sqrt", a), 1)
    _lane_by_lane(exp, lambda builder, a: _by_llvm(builder, "exp", a), 1)
    _lane_by_lane(exp2, lambda builder, a: _by_llvm(builder, "exp2", a), 1)


def emits(text: Callable[..., Any], kind: Callable[..., Any], emit: Callable[..., Any]) -> None:
    """Compiled, ``text`` is what ``emit(builder, values of the arguments, their types)`` writes, of the type ``kind(*types)``,
    or of that signature. Arrays arrive as the address of their first element, tuples of arrays as a list of these."""

    def typed(args: Any) -> Any:
        found = kind(*args)
        return found(*args) if isinstance(found, types.Type) else found

    ask_first(text, typed)

    @lower_builtin(text, types.VarArg(types.Any))
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(signature.args, args, strict=True)
        values = [_memory(context, builder, kind, value) for kind, value in pairs]
        found = emit(builder, values, signature.args)
        return context.get_dummy_value() if found is None else found


def _laned(*kinds: Any) -> Any:
    return ROW


def _memory(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    if are_vectors(kind):
        return [_memory(context, builder, one, builder.extract_value(value, place)) for place, one in enumerate(kind)]
    return value


def are_vectors(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple) and kind.count > 0 and all(isinstance(one, types.Array) for one in kind)


def apart(kind: Any) -> int:
    """How many places the numbers of a vector are apart: vectors that are not contiguous stand side by side in one array, two
    of them where only one is given."""
    first, count = (kind[0], kind.count) if are_vectors(kind) else (kind, 2)
    return 1 if getattr(first, "layout", "C") == "C" else count


def _column(builder: Any, indices: Any, entry: Any) -> Any:
    return builder.zext(builder.load(builder.gep(indices, [entry])), ir.IntType(64))


def _at(builder: Any, array: Any, column: Any, width: int) -> Any:
    """The address of the numbers that ``array`` holds for a column."""
    return builder.gep(array, [builder.mul(column, ir.Constant(column.type, width))])


def _as_double(builder: Any, value: Any) -> Any:
    return value if value.type == ir.DoubleType() else builder.fpext(value, ir.DoubleType())


def _four_values(builder: Any, values: Any, k: Any) -> Any:
    kind = ir.VectorType(values.type.pointee, ENTRIES)
    found = builder.load(builder.bitcast(builder.gep(values, [k]), kind.as_pointer()), align=4)
    return found if kind == ROW.vector else builder.fpext(found, ROW.vector)


def _emit_four(builder: Any, args: Any, kinds: Any) -> Any:
    """The only branch on where the row ends. Entries get their columns and values by branches, not by selection: LLVM would
    find the addresses of all four again where they are used."""
    indices, values, k, end = args
    entries = [builder.add(k, ir.Constant(k.type, lane)) for lane in range(ENTRIES)]
    columns = [cgutils.alloca_once(builder, ir.IntType(64)) for _ in entries]
    found = cgutils.alloca_once(builder, ROW.vector)
    with builder.if_else(builder.icmp_unsigned("<", entries[3], end), likely=True) as (whole, part):
        with whole:
            for entry, place in zip(entries, columns, strict=True):
                builder.store(_column(builder, indices, entry), place)
            builder.store(_four_values(builder, values, k), found)
        with part:
            first = _column(builder, indices, k)
            for place in columns:
                builder.store(first, place)
            builder.store(_ZEROS, found)
            for lane, entry in enumerate(entries[:3]):
                with builder.if_then(builder.icmp_unsigned("<", entry, end)):
                    builder.store(_column(builder, indices, entry), columns[lane])
                    value = _as_double(builder, builder.load(builder.gep(values, [entry])))
                    builder.store(builder.insert_element(builder.load(found), value, INTEGER(lane)), found)
    places = cgutils.pack_array(builder, [builder.load(place) for place in columns])
    return cgutils.pack_struct(builder, [places, builder.load(found)])


def join(builder: Any, values: Any) -> Any:
    """Lanes of four numbers."""
    found = ir.Constant(ROW.vector, ir.Undefined)
    for place, value in enumerate(values):
        found = builder.insert_element(found, value, INTEGER(place))
    return found


_PAIR = ir.VectorType(ir.DoubleType(), 2)


def _are_a_pair(kind: Any) -> bool:
    return are_vectors(kind) and kind.count == 2 and kind[0].layout != "C"


def _emit_gather(builder: Any, args: Any, kinds: Any) -> Any:
    vectors, at = args
    columns = [builder.extract_value(at, lane) for lane in range(ENTRIES)]
    width = apart(kinds[0])
    if _are_a_pair(kinds[0]):
        places = (builder.bitcast(_at(builder, vectors[0], column, width), _PAIR.as_pointer()) for column in columns)
        pairs = [builder.load(place, align=8) for place in places]
        halves = ([builder.extract_element(pair, INTEGER(half)) for pair in pairs] for half in range(2))
        return cgutils.pack_array(builder, [join(builder, half) for half in halves])
    several = vectors if isinstance(vectors, list) else [vectors]
    found = [join(builder, [builder.load(_at(builder, one, column, width)) for column in columns]) for one in several]
    return cgutils.pack_array(builder, found) if isinstance(vectors, list) else found[0]


def _emit_put_back(builder: Any, args: Any, kinds: Any) -> None:
    """The first entry last: behind a row's end its column stands for the others'."""
    vectors, at, new = args
    width = apart(kinds[0])
    several = vectors if isinstance(vectors, list) else [vectors]
    lanes = [builder.extract_value(new, place) for place in range(len(several))] if isinstance(vectors, list) else [new]
    for entry in reversed(range(ENTRIES)):
        column = builder.extract_value(at, entry)
        values = [builder.extract_element(one, INTEGER(entry)) for one in lanes]
        if _are_a_pair(kinds[0]):
            pair = ir.Constant(_PAIR, ir.Undefined)
            for half, value in enumerate(values):
                pair = builder.insert_element(pair, value, INTEGER(half))
            builder.store(pair, builder.bitcast(_at(builder, vectors[0], column, width), _PAIR.as_pointer()), align=8)
        else:
            for one, value in zip(several, values, strict=True):
                builder.store(value, _at(builder, one, column, width))


def prefetch(builder: Any, place: Any, cache: int = FIRST) -> None:
    """Ask for the memory at an address, for the first cache or the second. The processor awaits few lines for the first,
    and a loop that asks for more waits itself."""
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, INTEGER, INTEGER, INTEGER])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(ask, [builder.bitcast(place, pointer), INTEGER(0), INTEGER(cache), INTEGER(1)])


def _emit_fetch(builder: Any, args: Any, kinds: Any) -> None:
    array, indices, k = args
    for entry in range(ENTRIES):
        column = _column(builder, indices, builder.add(k, ir.Constant(k.type, entry)))
        prefetch(builder, _at(builder, array, column, apart(kinds[0])), SECOND)


def _emit_taken(builder: Any, args: Any, kinds: Any) -> Any:
    room, k = args
    return builder.load(builder.bitcast(builder.gep(room, [k]), ROW.vector.as_pointer()), align=8)


def _emit_put(builder: Any, args: Any, kinds: Any) -> None:
    room, k, new = args
    builder.store(new, builder.bitcast(builder.gep(room, [k]), ROW.vector.as_pointer()), align=8)


def _stacked(builder: Any, room: Any, k: Any, count: int) -> Any:
    """The addresses of the numbers of four entries that stand lanes after lanes."""
    first = builder.bitcast(_at(builder, room, k, count), ROW.vector.as_pointer())
    return [builder.gep(first, [INTEGER(place)]) for place in range(count)]


def _emit_put_all(builder: Any, args: Any, kinds: Any) -> None:
    room, k, new = args
    for place, address in enumerate(_stacked(builder, room, k, kinds[2].count)):
        builder.store(builder.extract_value(new, place), address, align=8)


def _emit_taken_all(builder: Any, args: Any, kinds: Any) -> Any:
    room, k, _ = args
    return cgutils.pack_array(builder, [builder.load(one, align=8) for one in _stacked(builder, room, k, kinds[2].count)])


def _emit_total(builder: Any, args: Any, kinds: Any) -> Any:
    a, b, c, d = (builder.extract_element(args[0], INTEGER(lane)) for lane in range(4))
    return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))


_COLUMNS = types.UniTuple(types.uint64, ENTRIES)


def _state(kind: Any) -> Any:
    return types.UniTuple(ROW, kind.count) if are_vectors(kind) else ROW


def _emit_at_column(builder: Any, args: Any, kinds: Any) -> Any:
    vectors, column = args
    width = apart(kinds[0])
    return cgutils.pack_array(builder, [builder.load(_at(builder, one, column, width)) for one in vectors])


def _emit_untouched(builder: Any, args: Any, kinds: Any) -> Any:
    return cgutils.pack_array(builder, [_ZEROS] * kinds[0].count) if are_vectors(kinds[0]) else _ZEROS


def _each(emit: Callable[..., Any]) -> Callable[..., Any]:
    """Emit for each place of tuples of one length, whose places may be lanes or numbers."""

    def code(builder: Any, args: Any, kinds: Any) -> Any:
        found = [emit(builder, *(builder.extract_value(value, place) for value in args)) for place in range(kinds[0].count)]
        alike = isinstance(kinds[0], types.UniTuple)
        return cgutils.pack_array(builder, found) if alike else cgutils.pack_struct(builder, found)

    return code


def _emit_lane_total(builder: Any, lanes: Any) -> Any:
    return _emit_total(builder, (lanes,), None)


def _emit_room(builder: Any, args: Any, kinds: Any) -> Any:
    return builder.gep(args[0], [args[1]])


def _chosen_kind(mask: Any, a: Any, b: Any) -> Any:
    return next((kind for kind in (mask, a, b) if isinstance(kind, LanesType)), a)


def _emit_where(builder: Any, args: Any, kinds: Any) -> Any:
    mask, a, b = args
    zero = ir.Constant(mask.type, None) if kinds[0] != ROW else _ZEROS
    differs = builder.fcmp_unordered if isinstance(kinds[0], LanesType) else builder.icmp_unsigned
    holds = differs("!=", mask, zero)
    lanes = _chosen_kind(*kinds)
    if isinstance(lanes, LanesType):
        a, b = (repeat(builder, one, lanes) if kind == types.float64 else one for one, kind in ((a, kinds[1]), (b, kinds[2])))
    return builder.select(holds, a, b)


@overload(within, strict=False, jit_options=inlined(within))
def _within_numbers(v, k):  # type: ignore[no-untyped-def]
    return within if isinstance(v, types.Number) and isinstance(k, types.Number) else None


ask_first(first_of, lambda args: (args[0][0] if isinstance(args[0], types.BaseTuple) else args[0])(*args))


@lower_builtin(first_of, types.Any)
def _first_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    found = builder.extract_value(args[0], 0) if isinstance(signature.args[0], types.BaseTuple) else args[0]
    return impl_ret_borrowed(context, builder, signature.return_type, found)


@overload(numbers, jit_options=inlined(numbers))
def _numbers(room, count):  # type: ignore[no-untyped-def]
    if isinstance(room, types.Array):
        return lambda room, count: room[:count]
    return lambda room, count: carray(room, (count,))


def _packed(builder: Any, values: list[Any]) -> Any:
    alike = len({value.type for value in values}) == 1
    return cgutils.pack_array(builder, values) if alike else cgutils.pack_struct(builder, values)


def _type_number(args: Any) -> Any:
    return args[0].dtype(args[0], types.int64) if len(args) == 2 and _is_place(*args) else None


ask_first(operator.getitem, _type_number)


@lower_builtin(operator.getitem, types.CPointer, types.int64)
def _number(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(builder.gep(args[0], [args[1]]))


def _type_put_number(args: Any) -> Any:
    return types.none(args[0], types.int64, args[0].dtype) if len(args) == 3 and _is_place(*args[:2]) else None


ask_first(operator.setitem, _type_put_number)


@lower_builtin(operator.setitem, types.CPointer, types.int64, types.Any)
def _put_number(context: Any, builder: Any, signature: Any, args: Any) -> None:
    builder.store(args[2], builder.gep(args[0], [args[1]]))


def _is_place(room: Any, k: Any) -> bool:
    return isinstance(room, types.CPointer) and isinstance(k, types.Integer)


_offer_arithmetic()
for _text, _kind, _emit in (
    (four, lambda *kinds: types.Tuple((_COLUMNS, ROW)), _emit_four),
    (gather, lambda vectors, at: _state(vectors), _emit_gather),
    (at_column, lambda vectors, column: types.UniTuple(types.float64, vectors.count), _emit_at_column),
    (put_back, lambda *kinds: types.none, _emit_put_back),
    (untouched, _state, _emit_untouched),
    (empty, lambda terms: terms, _each(lambda builder, term: ir.Constant(term.type, None))),
    (added, lambda sums, terms: sums, _each(lambda builder, a, b: builder.fadd(a, b))),
    (
        totals,
        lambda sums: types.UniTuple(types.float64, sums.count),
        _each(lambda builder, a: _emit_total(builder, (a,), None)),
    ),
    (
        room,
        lambda array, first: types.CPointer(array.dtype),
        lambda builder, args, kinds: builder.gep(args[0], [args[1]]),
    ),
    (
        rooms,
        lambda arrays: types.Tuple([types.CPointer(one.dtype) for one in arrays]),
        lambda builder, args, kinds: _packed(builder, args[0]),
    ),
    (fetch, lambda *kinds: types.none, _emit_fetch),
    (taken, _laned, _emit_taken),
    (put, lambda *kinds: types.none, _emit_put),
    (put_all, lambda *kinds: types.none, _emit_put_all),
    (taken_all, lambda room, k, like: like, _emit_taken_all),
    (nothing, _laned, lambda builder, args, kinds: _ZEROS),
    (total, lambda *kinds: types.float64, _emit_total),
    (lane, lambda *kinds: types.float64, lambda builder, args, kinds: builder.extract_element(args[0], args[1])),
    (joined, _laned, lambda builder, args, kinds: join(builder, args)),
    (where, _chosen_kind, _emit_where),
):
    emits(_text, _kind, _emit)
