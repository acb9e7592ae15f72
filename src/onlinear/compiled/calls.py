"""Methods of an object that are machine code: Python calls them as it calls its own built-in functions.

A method of Python, its lock, and the unpacking of arguments for compiled code take as long as a step of a hundred entries. A
built-in function is given the arguments as they lie in memory, and its code compares, locks and learns. What it does not know
it leaves to the method of Python that it stands for, with the very arguments.

The text of such a function takes ``own, args, count, names``. These are the address of the tuple that the function owns, the
address of the arguments, the number of those without a name, and the address of the names of the others, 0 where there are
none. It gives the address of a new reference, or 0 where an error is set. All that it calls is in the tuple, which nobody can
change.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import nan
from types import MethodType
from typing import Any

import numpy as np

from onlinear.compiled import objects
from onlinear.compiled.home import COMPILED
from onlinear.compiled.machine_code import Linked, found_on_disk, index_file
from onlinear.compiled.methods import compiler, function, once
from onlinear.compiled.objects import READABLE

FIRST = tuple.__basicsize__ // 8  # words from the address of a tuple to that of its first object
KIND, DATA = objects.KIND // 8, objects.DATA // 8  # words from an object to its type, and from an array to its data
TARGETS = (float, np.float64, int)  # the types of numbers that are targets as they are
EXACT = 2**53  # whole numbers up to here are doubles
_FLAGS = 0x80 | 0x02  # METH_FASTCALL and METH_KEYWORDS
_NEEDED = ("PyObject_Vectorcall", "PyObject_CallNoArgs", "PyCFunction_NewEx", "PyErr_Fetch", "PyErr_Restore")
_SIGNATURE = "call"  # the types of arguments are always the same


class _Definition(ctypes.Structure):
    """The ``PyMethodDef`` of a function."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("about", ctypes.c_char_p))


def _takes_calls() -> bool:
    """Whether this interpreter takes such functions, and tuples lie in memory as their code expects."""
    if not COMPILED or not READABLE or not all(hasattr(ctypes.pythonapi, name) for name in _NEEDED):
        return False
    pair = object(), object()
    return all(ctypes.c_void_p.from_address(id(pair) + 8 * (FIRST + k)).value == id(pair[k]) for k in range(2))


TAKES_CALLS = _takes_calls()


@once
def _definition(text: Callable[..., Any], name: str, about: str) -> _Definition:
    """What functions of a text have in common. It is never freed: functions point to it, also while the interpreter ends."""
    whole = f"{text.__module__}.{text.__qualname__}"
    code = found_on_disk(whole, _SIGNATURE, Linked.kept_address)
    if code is None:
        code = compiler().call_code(text, index_file(whole, _SIGNATURE))
    found = _Definition(name.encode(), code, _FLAGS, about.encode())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))
    return found


def _same(owner: Any) -> Any:
    """The object itself."""
    return owner


class Owned(tuple[Any, ...]):
    """What a function owns, whose last part is the object that it is a method of. A function is pickled as a name of its tuple,
    and the tuple as that object: so a method that is machine code is pickled as others are."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self[-1],)


def built_in(text: Callable[..., Any], method: MethodType, signature: str, own: tuple[Any, ...]) -> Callable[..., Any]:
    """A built-in function whose code is ``text``, in the place of a method of Python, bound to its object."""
    name = method.__name__
    definition = _definition(text, name, f"{name}($self, {signature})\n--\n\n{method.__doc__}")
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.argtypes, new.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p), ctypes.py_object
    return new(ctypes.addressof(definition), Owned((*own, method.__self__)), None)


# --- what texts call; ``call_code.py`` has the code, and nothing else runs it --------------------------------------------


def word_at(address: int, place: int) -> int:
    """The whole number of 64 bits that lies so many of them behind an address."""
    raise NotImplementedError


def real_at(address: int, place: int) -> float:
    """The number that lies there."""
    raise NotImplementedError


def real_of(value: int) -> float:
    """The number that a float is."""
    raise NotImplementedError


def whole_of(value: int) -> float:
    """The number that a whole number is; NaN for one that is beyond all doubles."""
    raise NotImplementedError


def new_real(x: float) -> int:
    """A new float."""
    raise NotImplementedError


def same(value: int) -> int:
    """A new reference to an object."""
    raise NotImplementedError


def entry_of(entries: int, key: int) -> int:
    """The value of a dict at a key, which the dict keeps; 0 where there is none."""
    raise NotImplementedError


def set_whole(entries: int, key: int, number: int) -> int:
    """Let a dict have a whole number at a key; not 0 where an error is set instead."""
    raise NotImplementedError


def new_pair(key: int, x: float, other: int, y: float) -> int:
    """A new dict of two numbers."""
    raise NotImplementedError


def passed_on(method: int, args: int, count: int, names: int) -> int:
    """What a method of Python gives for the arguments."""
    raise NotImplementedError


def take_lock(acquire: int) -> int:
    """Take a lock by its ``acquire``; 0 where an error is set instead."""
    raise NotImplementedError


def free_lock(release: int) -> int:
    """Free a lock by its ``release``; an error that is set stays."""
    raise NotImplementedError


def ran_row(code: int, failed: int, here: int, first: int, second: int, number: float) -> float:
    """What code gives for the address of what is held, two objects and a number; NaN where it stops by an error, which the word
    at ``failed`` says by what is not 0."""
    raise NotImplementedError


def ran_score(code: int, failed: int, here: int, first: int, second: int) -> float:
    """The same for code that takes no number."""
    raise NotImplementedError


def ran_output(code: int, failed: int, here: int, one: int, first: int, second: int, number: float) -> float:
    """The same for code that takes a second address."""
    raise NotImplementedError


@function
def target_of(value, kinds):  # type: ignore[no-untyped-def]
    """The number that an object is, of the types ``TARGETS``, whose addresses are at ``kinds``; NaN for others, and for whole
    numbers that may be no double."""
    kind = word_at(value, KIND)
    if kind == word_at(kinds, 0) or kind == word_at(kinds, 1):
        return real_of(value)
    if kind == word_at(kinds, 2):
        found = whole_of(value)
        return found if abs(found) <= EXACT else nan
    return nan
