"""What is compiled for rows as Python has them: the code of ``objects.py``, which keeps no reference and raises nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, intrinsic, models, overload, register_jitable, register_model, typeof_impl, unbox

from onlinear.compiled._private import cgutils, fill_array
from onlinear.compiled.objects import (
    A_BOOL,
    A_DICT,
    A_DOUBLE,
    A_FLOAT,
    A_TEXT,
    ALIGNED,
    AN_ARRAY,
    AN_INT,
    AXES,
    DATA,
    DOUBLE,
    FILLED,
    FLAGS,
    KIND,
    LIST,
    LONG,
    LONG_DOUBLE,
    LONG_SINGLE,
    MOST,
    NAMED,
    NEW,
    NEWLY,
    NUMBERS,
    OF_NAMES,
    OTHER,
    PLACE,
    ROOM,
    SHAPE,
    SHORT,
    SHORT_DOUBLE,
    SHORT_SINGLE,
    SINGLE,
    STRIDES,
    TAIL,
    AnyObject,
    columns_named,
    doubles,
    longs,
    name_new,
    shorts,
    singles,
    values_named,
    way_of,
    way_of_dict,
)
from onlinear.compiled.routines import run_routine

_BYTE, _WORD, _INT, _DOUBLE = ir.IntType(8), ir.IntType(64), ir.IntType(32), ir.DoubleType()
_OBJECT = _BYTE.as_pointer()


class ObjectType(types.Type):  # type: ignore[misc]
    """An object of Python, which the caller keeps."""

    def __init__(self) -> None:
        super().__init__(name="AnyObject")


_ANY = ObjectType()
register_model(ObjectType)(models.OpaqueModel)


@typeof_impl.register(AnyObject)
def _typeof(value: Any, context: Any) -> Any:
    return _ANY


@unbox(ObjectType)
def _same(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(value)


# --- memory ----------------------------------------------------------------------------------------------------------


def _load(builder: Any, address: Any, place: int, kind: Any = _WORD) -> Any:
    """What lies so many bytes behind an address."""
    at = builder.add(address, _WORD(place))
    return builder.load(builder.inttoptr(at, kind.as_pointer()))


def interpreter_call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """A call of the interpreter's function of that name; addresses among the arguments are those of objects."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def as_object(builder: Any, address: Any) -> Any:
    """An address as that of an object."""
    return builder.inttoptr(address, _OBJECT)


def _read_at(place: int, kind: Any) -> Any:
    """What reads a whole number of 32 or 64 bits so many bytes behind an object."""

    @intrinsic
    def read(typing: Any, found: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = builder.ptrtoint(args[0], _WORD) if signature.args[0] == _ANY else args[0]
            word = _load(builder, address, place, kind)
            return word if kind == _WORD else builder.zext(word, _WORD)

        return types.int64(found), code

    return read


_kind, _numbers, _axes, _flags = (_read_at(*at) for at in ((KIND, _WORD), (NUMBERS, _WORD), (AXES, _INT), (FLAGS, _INT)))


def _viewed(item: Any, where: Callable[..., Any]) -> Any:
    """What gives an array of one axis, of ``item``, whose data, length and stride ``where`` finds."""
    size = item.bitwidth // 8

    @intrinsic
    def view(typing: Any, found: Any) -> Any:
        kind = types.Array(item, 1, "A")

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(kind)(context, builder)
            data, length, stride = where(builder, builder.ptrtoint(args[0], _WORD))
            memory = builder.inttoptr(data, array.data.type)
            return fill_array(array, memory, [length], [stride], _WORD(size), None)

        return kind(found), code

    return view


def _of_array(builder: Any, address: Any) -> Any:
    shape, strides = (_load(builder, _load(builder, address, place), 0) for place in (SHAPE, STRIDES))
    return _load(builder, address, DATA), shape, strides


def _of_names(part: int, whole: bool = False) -> Callable[..., Any]:
    """Where a part of ``Names`` is, or what is filled of it: that of so many times the names."""

    def where(builder: Any, address: Any) -> Any:
        data, length, _ = _of_array(builder, address)
        count = builder.lshr(builder.sub(length, _WORD(TAIL)), _WORD(2))
        end = builder.add(data, builder.shl(length, _WORD(3)))
        start = builder.add(data, builder.mul(count, _WORD(8 * part)))
        return start, count if whole else _load(builder, end, 8 * FILLED), _WORD(8)

    return where


_VIEWS = {
    longs: _viewed(types.int64, _of_array),
    shorts: _viewed(types.int32, _of_array),
    doubles: _viewed(types.float64, _of_array),
    singles: _viewed(types.float32, _of_array),
    columns_named: _viewed(types.int64, _of_names(2)),
    values_named: _viewed(types.float64, _of_names(3)),
}
_addresses, _places, _columns = (_viewed(types.int64, _of_names(part, whole=True)) for part in range(3))
_numbers_of = _viewed(types.float64, _of_names(3, whole=True))
_words = _viewed(types.int64, _of_array)
_reals = _viewed(types.float64, _of_array)


def _overload(text: Callable[..., Any], view: Any) -> None:
    overload(text)(lambda found: lambda found: view(found))


for _text, _view in _VIEWS.items():
    _overload(_text, _view)

# --- dicts -----------------------------------------------------------------------------------------------------------


@intrinsic
def _size(typing: Any, row: Any) -> Any:
    """The number of entries of a dict, or of that at an address."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = args[0] if signature.args[0] == _ANY else as_object(builder, args[0])
        return interpreter_call(builder, "PyDict_Size", _WORD, found)

    return types.int64(row), code


@intrinsic
def _next(typing: Any, row: Any, place: Any) -> Any:
    """The entry of a dict at a place: the place after it, and the addresses of its name and value, 0 where there is none."""
    several = types.UniTuple(types.int64, 3)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slots = [cgutils.alloca_once(builder, _WORD) for _ in range(3)]
        for slot, value in zip(slots, (args[1], _WORD(0), _WORD(0)), strict=True):
            builder.store(value, slot)
        objects = [builder.bitcast(slot, _OBJECT.as_pointer()) for slot in slots[1:]]
        interpreter_call(builder, "PyDict_Next", _INT, args[0], slots[0], *objects)
        return context.make_tuple(builder, several, [builder.load(slot) for slot in slots])

    return several(row, types.int64), code


@intrinsic
def _same_text(typing: Any, one: Any, other: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = interpreter_call(builder, "PyUnicode_Compare", _INT, *(as_object(builder, arg) for arg in args))
        return builder.icmp_signed("==", found, _INT(0))

    return types.boolean(types.int64, types.int64), code


@intrinsic
def real(typing: Any, address: Any) -> Any:
    """The number that a float is."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return interpreter_call(builder, "PyFloat_AsDouble", _DOUBLE, as_object(builder, args[0]))

    return types.float64(types.int64), code


@intrinsic
def whole(typing: Any, address: Any) -> Any:
    """The number that a whole number is; NaN for one that is beyond all doubles."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = interpreter_call(builder, "PyLong_AsDouble", _DOUBLE, as_object(builder, args[0]))
        out = cgutils.alloca_once(builder, _DOUBLE)
        builder.store(found, out)
        with builder.if_then(builder.fcmp_ordered("==", found, _DOUBLE(-1.0)), likely=False):
            error = interpreter_call(builder, "PyErr_Occurred", _OBJECT)
            with builder.if_then(cgutils.is_not_null(builder, error), likely=False):
                interpreter_call(builder, "PyErr_Clear", ir.VoidType())
                builder.store(_DOUBLE(float("nan")), out)
        return builder.load(out)

    return types.float64(types.int64), code


@intrinsic
def _column(typing: Any, columns: Any, name: Any) -> Any:
    """The whole number that a dict, all of whose keys are text, has for text; -1 where it has none."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = interpreter_call(builder, "PyDict_GetItemWithError", _OBJECT, *(as_object(builder, arg) for arg in args))
        out = cgutils.alloca_once_value(builder, _WORD(-1))
        with builder.if_then(cgutils.is_not_null(builder, found)):
            builder.store(interpreter_call(builder, "PyLong_AsLongLong", _WORD, found), out)
        return builder.load(out)

    return types.int64(types.int64, types.int64), code


@intrinsic
def _is_writable(typing: Any, name: Any) -> Any:
    """Whether UTF-8 has a text."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nowhere = _WORD.as_pointer()(None)
        found = interpreter_call(builder, "PyUnicode_AsUTF8AndSize", _OBJECT, as_object(builder, args[0]), nowhere)
        writable = cgutils.is_not_null(builder, found)
        with builder.if_then(builder.not_(writable), likely=False):
            interpreter_call(builder, "PyErr_Clear", ir.VoidType())
        return writable

    return types.boolean(types.int64), code


@intrinsic
def _add_name(typing: Any, columns: Any, names: Any, name: Any, column: Any) -> Any:
    """Add a name to the list of names, and its column to the dict of columns; whether there was memory."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places, known, name = (as_object(builder, arg) for arg in args[:3])
        number = interpreter_call(builder, "PyLong_FromLongLong", _OBJECT, args[3])
        failed = cgutils.alloca_once_value(builder, _INT(-1))
        with builder.if_then(cgutils.is_not_null(builder, number)):
            builder.store(interpreter_call(builder, "PyDict_SetItem", _INT, places, name, number), failed)
            interpreter_call(builder, "Py_DecRef", ir.VoidType(), number)
        with builder.if_then(builder.icmp_signed("==", builder.load(failed), _INT(0))):
            builder.store(interpreter_call(builder, "PyList_Append", _INT, known, name), failed)
        return builder.icmp_signed("==", builder.load(failed), _INT(0))

    return types.boolean(types.int64, types.int64, types.int64, types.int64), code


@intrinsic
def _drop_name(typing: Any, columns: Any, names: Any, name: Any, count: Any) -> Any:
    """Drop a name from the dict of columns, and all names but the first so many from the list; clear the error."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places, known, name = (as_object(builder, arg) for arg in args[:3])
        interpreter_call(builder, "PyErr_Clear", ir.VoidType())
        interpreter_call(builder, "PyDict_DelItem", _INT, places, name)
        interpreter_call(builder, "PyErr_Clear", ir.VoidType())
        length = interpreter_call(builder, "PyList_Size", _WORD, known)
        interpreter_call(builder, "PyList_SetSlice", _INT, known, args[3], length, _OBJECT(None))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64, types.int64), code


@register_jitable  # type: ignore[misc]
def _number(value, kinds):  # type: ignore[no-untyped-def]
    """A value of a dict as a number; NaN for one of another type, or beyond all doubles."""
    kind = _kind(value)
    if kind == kinds[A_FLOAT] or kind == kinds[A_DOUBLE]:
        return real(value)
    if kind == kinds[AN_INT] or kind == kinds[A_BOOL]:
        return whole(value)
    return nan


@register_jitable  # type: ignore[misc]
def _compared(row, names, kinds):  # type: ignore[no-untyped-def]
    """Take a dict of these names, in their order."""
    addresses, places, numbers = _addresses(names), _places(names), _numbers_of(names)
    most, place = _reals(names)[MOST], 0
    if _size(row) != addresses.shape[0]:
        return OTHER
    for k in range(addresses.shape[0]):
        place, name, value = _next(row, place)
        if name != addresses[k] and (name == 0 or _kind(name) != kinds[A_TEXT] or not _same_text(name, addresses[k])):
            return OTHER
        number = _number(value, kinds)
        if not abs(number) <= most:
            return OTHER
        if places[k] >= 0:
            numbers[places[k]] = number
    return NAMED


@register_jitable  # type: ignore[misc]
def _put_in_order(columns, numbers, count):  # type: ignore[no-untyped-def]
    """Sort by columns (Shell's method with Ciura's gaps, 2001)."""
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, count):
            k, column, number = i, columns[i], numbers[i]
            while k >= gap and columns[k - gap] > column:
                columns[k], numbers[k] = columns[k - gap], numbers[k - gap]
                k -= gap
            columns[k], numbers[k] = column, number


@register_jitable  # type: ignore[misc]
def _looked_up(row, names, kinds):  # type: ignore[no-untyped-def]
    """Take a dict whose names are looked up one by one; those that have no column are left out, or get the next ones."""
    words, columns, numbers, addresses = _words(names), _columns(names), _numbers_of(names), _addresses(names)
    most, place, filled, new = _reals(names)[MOST], 0, 0, 0
    if _size(row) > columns.shape[0]:
        return OTHER
    for _ in range(_size(row)):
        place, name, value = _next(row, place)
        if name == 0 or _kind(name) != kinds[A_TEXT]:
            return OTHER
        number, column = _number(value, kinds), _column(words[PLACE], name)
        if not abs(number) <= most:
            return OTHER
        if column < 0 and words[LIST] != 0:
            if not _is_writable(name):
                return OTHER
            addresses[new], column = name, _size(words[PLACE]) + new
            new += 1
        if column >= 0:
            columns[filled], numbers[filled] = column, number
            filled += 1
    words[FILLED], words[NEW] = filled, new
    _put_in_order(columns, numbers, filled)
    return NAMED if new == 0 else NEWLY


@overload(name_new)
def _name_new(row, names):  # type: ignore[no-untyped-def]
    def code(row, names):  # type: ignore[no-untyped-def]
        words, addresses = _words(names), _addresses(names)
        columns, known, count, new = words[PLACE], words[LIST], _size(words[PLACE]), words[NEW]
        if count + new > words[ROOM]:
            return 0
        for k in range(new):
            if not _add_name(columns, known, addresses[k], count + k):
                for i in range(k + 1):
                    _drop_name(columns, known, addresses[i], count)
                return 0
        return new

    return code


@overload(way_of)
def _way_of(first, second, kinds):  # type: ignore[no-untyped-def]
    def code(first, second, kinds):  # type: ignore[no-untyped-def]
        addresses, of_dict = kinds
        long, short, double, single = addresses[LONG], addresses[SHORT], addresses[DOUBLE], addresses[SINGLE]
        if _kind(first) == addresses[AN_ARRAY] and _kind(second) == addresses[AN_ARRAY]:
            plain = _axes(first) == 1 and _axes(second) == 1 and _flags(first) & _flags(second) & ALIGNED != 0
            columns, values = _numbers(first), _numbers(second)
            if plain and columns == long:
                return LONG_DOUBLE if values == double else LONG_SINGLE if values == single else OTHER
            if plain and columns == short:
                return SHORT_DOUBLE if values == double else SHORT_SINGLE if values == single else OTHER
            return OTHER
        return run_routine(of_dict, first, second, addresses)

    return code


@overload(way_of_dict)
def _way_of_dict(first, second, addresses):  # type: ignore[no-untyped-def]
    def code(first, second, addresses):  # type: ignore[no-untyped-def]
        if _kind(first) != addresses[A_DICT] or _kind(second) != addresses[OF_NAMES]:
            return OTHER
        return _compared(first, second, addresses) if _words(second)[PLACE] == 0 else _looked_up(first, second, addresses)

    return code
