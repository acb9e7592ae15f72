"""What is compiled for built-in functions: the code of ``calls.py``, which runs with the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import overload

from onlinear.compiled import calls
from onlinear.compiled._private import cgutils
from onlinear.compiled.lane_code import emits
from onlinear.compiled.loss_code import code_address
from onlinear.compiled.numpy_tanh import tanh_at
from onlinear.compiled.object_code import as_object, interpreter_call, real, whole
from onlinear.compiled.passes import inlined

_WORD, _INT, _DOUBLE, _NOTHING = ir.IntType(64), ir.IntType(32), ir.DoubleType(), ir.VoidType()
_OBJECT = ir.IntType(8).as_pointer()


def call_code(text: Callable[..., Any], place: Any) -> int:
    """The address of the machine code of a built-in function. ``place``: where later processes look for it."""
    return code_address(text, types.int64(*[types.int64] * 4), place)


def _pass_on(builder: Any, args: Any, kinds: Any) -> Any:
    method, given, count, names = args
    given = builder.inttoptr(given, _OBJECT.as_pointer())
    found = interpreter_call(
        builder, "PyObject_Vectorcall", _OBJECT, as_object(builder, method), given, count, as_object(builder, names)
    )
    return builder.ptrtoint(found, _WORD)


def _let_go(builder: Any, found: Any) -> None:
    """End a reference, where there is one."""
    with builder.if_then(cgutils.is_not_null(builder, found)):
        interpreter_call(builder, "Py_DecRef", _NOTHING, found)


def _take_lock(builder: Any, args: Any, kinds: Any) -> Any:
    found = interpreter_call(builder, "PyObject_CallNoArgs", _OBJECT, as_object(builder, args[0]))
    _let_go(builder, found)
    return builder.zext(cgutils.is_not_null(builder, found), _WORD)


def _free_lock(builder: Any, args: Any, kinds: Any) -> Any:
    parts = [cgutils.alloca_once(builder, _OBJECT) for _ in range(3)]
    interpreter_call(builder, "PyErr_Fetch", _NOTHING, *parts)
    _let_go(builder, interpreter_call(builder, "PyObject_CallNoArgs", _OBJECT, as_object(builder, args[0])))
    interpreter_call(builder, "PyErr_Restore", _NOTHING, *map(builder.load, parts))
    return _WORD(0)


def _run(builder: Any, args: Any, kinds: Any) -> Any:
    """A call of code that Numba has made, as its functions call one another: they give 0 and put the number where they are
    told, or they give something else."""
    code, failed, *given = args
    out, error = cgutils.alloca_once(builder, _DOUBLE), cgutils.alloca_once(builder, _OBJECT)
    kind = ir.FunctionType(_INT, [out.type, error.type, *(arg.type for arg in given)])
    builder.store(_DOUBLE(float("nan")), out)
    found = builder.call(builder.inttoptr(code, kind.as_pointer()), [out, error, *given])
    builder.store(builder.sext(found, _WORD), builder.inttoptr(failed, _WORD.as_pointer()))
    return builder.select(builder.icmp_signed("==", found, _INT(0)), builder.load(out), _DOUBLE(float("nan")))


def _of_object(name: str) -> Callable[..., Any]:
    """A function of the interpreter that gives an object."""
    return lambda builder, args, kinds: builder.ptrtoint(interpreter_call(builder, name, _OBJECT, *args), _WORD)


def _same(builder: Any, args: Any, kinds: Any) -> Any:
    interpreter_call(builder, "Py_IncRef", _NOTHING, as_object(builder, args[0]))
    return args[0]


def _entry_of(builder: Any, args: Any, kinds: Any) -> Any:
    found = interpreter_call(builder, "PyDict_GetItem", _OBJECT, *(as_object(builder, arg) for arg in args))
    return builder.ptrtoint(found, _WORD)


def _set_whole(builder: Any, args: Any, kinds: Any) -> Any:
    value = interpreter_call(builder, "PyLong_FromLongLong", _OBJECT, args[2])
    failed = cgutils.alloca_once_value(builder, _INT(-1))
    with builder.if_then(cgutils.is_not_null(builder, value)):
        entries, key = (as_object(builder, arg) for arg in args[:2])
        builder.store(interpreter_call(builder, "PyDict_SetItem", _INT, entries, key, value), failed)
    _let_go(builder, value)
    return builder.sext(builder.load(failed), _WORD)


def _new_pair(builder: Any, args: Any, kinds: Any) -> Any:
    found, out = interpreter_call(builder, "PyDict_New", _OBJECT), cgutils.alloca_once(builder, _OBJECT)
    builder.store(found, out)
    for key, x in (args[:2], args[2:]):
        with builder.if_then(cgutils.is_not_null(builder, builder.load(out))):
            value, fits = interpreter_call(builder, "PyFloat_FromDouble", _OBJECT, x), cgutils.alloca_once(builder, _INT)
            builder.store(_INT(-1), fits)
            with builder.if_then(cgutils.is_not_null(builder, value)):
                builder.store(interpreter_call(builder, "PyDict_SetItem", _INT, found, as_object(builder, key), value), fits)
            _let_go(builder, value)
            with builder.if_then(builder.icmp_signed("!=", builder.load(fits), _INT(0))):
                _let_go(builder, found)
                builder.store(_OBJECT(None), out)
    return builder.ptrtoint(builder.load(out), _WORD)


def _at(kind: Any) -> Callable[..., Any]:
    """What lies so many words behind an address."""
    return lambda builder, args, kinds: builder.load(builder.gep(builder.inttoptr(args[0], kind.as_pointer()), [args[1]]))


def _tanh(builder: Any, args: Any, kinds: Any) -> Any:
    """A call of a loop of NumPy's over one number."""
    slots = [cgutils.alloca_once(builder, kind) for kind in (_DOUBLE, _DOUBLE, _WORD)]
    pair, steps = (cgutils.alloca_once(builder, _WORD, size=_WORD(2)) for _ in range(2))
    for slot, value in zip(slots, (args[1], _DOUBLE(0.0), _WORD(1)), strict=True):
        builder.store(value, slot)
    for k in range(2):
        builder.store(builder.ptrtoint(slots[k], _WORD), builder.gep(pair, [_WORD(k)]))
        builder.store(_WORD(8), builder.gep(steps, [_WORD(k)]))
    given = [builder.bitcast(slot, _OBJECT) for slot in (pair, slots[2], steps)]
    kind = ir.FunctionType(_NOTHING, [_OBJECT] * 4)
    builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*given, _OBJECT(None)])
    return builder.load(slots[1])


_I, _R = types.int64, types.float64
for _text, _signature, _emit in (
    (calls.word_at, _I(_I, _I), _at(_WORD)),
    (calls.real_at, _R(_I, _I), _at(_DOUBLE)),
    (calls.new_real, _I(_R), _of_object("PyFloat_FromDouble")),
    (calls.same, _I(_I), _same),
    (calls.entry_of, _I(_I, _I), _entry_of),
    (calls.set_whole, _I(_I, _I, _I), _set_whole),
    (calls.new_pair, _I(_I, _R, _I, _R), _new_pair),
    (calls.passed_on, _I(_I, _I, _I, _I), _pass_on),
    (tanh_at, _R(_I, _R), _tanh),
    (calls.take_lock, _I(_I), _take_lock),
    (calls.free_lock, _I(_I), _free_lock),
    (calls.ran_row, _R(_I, _I, _I, _I, _I, _R), _run),
    (calls.ran_score, _R(_I, _I, _I, _I, _I), _run),
    (calls.ran_output, _R(_I, _I, _I, _I, _I, _I, _R), _run),
):
    emits(_text, lambda *kinds, signature=_signature: signature, _emit)
overload(calls.real_of, jit_options=inlined(calls.real_of))(lambda value: lambda value: real(value))
overload(calls.whole_of, jit_options=inlined(calls.whole_of))(lambda value: lambda value: whole(value))
