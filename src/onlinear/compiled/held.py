"""Arguments that stay the same from call to call, and tuples of numbers in arrays (clocks)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, typeof, types
from numba.extending import NativeValue, intrinsic, models, overload, register_model, unbox

from onlinear.compiled._private import fill_array
from onlinear.compiled.cache import COMPILED, HeldType, keep_on_disk
from onlinear.compiled.lanes import INTEGER
from onlinear.compiled.methods import all_ours, function

register_model(HeldType)(models.OpaqueModel)


@unbox(HeldType)
def _address(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(c.pyapi.long_as_voidptr(value))


class Held:
    """Arguments that stay the same from call to call: numbers, arrays, parts, None and tuples of them, laid out in memory once.

    Unpacking an array or a part costs a call of compiled code far more than the call itself; these cost it one address. Arrays
    are held by their memory: what is written to them is seen, and so they must not be replaced.

    ``here`` is what the function is given, ``kind`` the same for arguments of the same types; ``like``: what was held before,
    of which most may have stayed. Raises TypeError for arguments of other types.
    """

    def __init__(self, *args: Any, like: Held | None = None) -> None:
        self._args = args
        self._before: dict[int, Any] = {} if like is None else like.arrays
        self.arrays: dict[int, Any] = {}
        self.here: Any = args
        self.kind: Any = None
        if COMPILED:
            words: list[int] = []
            signs: list[Any] = []
            self._lay_out(args, words, signs)
            key = tuple(signs)
            self.kind = _held_kinds.get(key) or _held_kinds.setdefault(key, HeldType(typeof(args)))
            self._words = np.array(words, np.int64)
            self.here = int(self._words.ctypes.data)
            self._before = {}

    def _lay_out(self, value: Any, words: list[int], signs: list[Any]) -> None:
        """Add an argument as numbers of 64 bits, in the order in which ``_from_words`` reads them, and what tells its type."""
        kind = type(value)
        signs.append(kind)
        if kind is np.ndarray:
            found = self._before.get(id(value))
            if found is None:
                place = [value.itemsize, value.ctypes.data, *value.shape, *value.strides]
                found = value, place, (value.dtype, value.ndim, value.flags.num)
            self.arrays[id(value)] = found
            words += found[1]
            signs.append(found[2])
        elif isinstance(value, tuple):
            signs.append(len(value))
            for inner in value:
                self._lay_out(inner, words, signs)
        elif isinstance(value, float):
            words.append(int(np.float64(value).view(np.int64)))
        elif isinstance(value, (int, np.integer)):
            words.append(int(value))
        elif value is not None:
            raise TypeError(f"{kind.__name__} arguments cannot be held.")

    def compile(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> Callable[..., Any]:
        """``text``, whose first argument is ``here`` and which calls the ``functions`` by their names, for ``others`` typed as
        these: the compiled code itself, which looks up and checks nothing. Strided arrays among ``others`` stand for arrays of
        any layout."""
        found = _with_functions(text, tuple(functions.items()), all(map(all_ours, self._args)))
        if not COMPILED:
            return found  # type: ignore[no-any-return]
        kinds = (self.kind, *map(typeof, others))
        found.compile(kinds)
        return found.overloads[kinds].entry_point  # type: ignore[no-any-return]


_held_kinds: dict[Any, HeldType] = {}  # by what tells the types of the arguments apart


@cache
def _with_functions(text: Callable[..., Any], functions: tuple[tuple[str, Any], ...], ours: bool) -> Any:
    """A copy of ``text`` with functions of its own, under a name of its own: the disk cache goes by that."""
    known = {name: getattr(call, "dispatcher" if ours else "fresh", call) for name, call in functions}
    copy = FunctionType(text.__code__, {**text.__globals__, **known}, text.__name__)
    copy.__qualname__ = ".".join([text.__qualname__, *(f"{call.__module__}.{call.__name__}" for _, call in functions)])
    if not COMPILED:
        return copy
    return keep_on_disk(njit(copy), copy) if ours else njit(copy)


def _from_words(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        itemsize, data = next(words), builder.inttoptr(next(words), array.data.type)
        shape, strides = ([next(words) for _ in range(kind.ndim)] for _ in range(2))
        return fill_array(array, data, shape, strides, itemsize, None)
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_from_words(context, builder, inner, words) for inner in kind.types])
    if isinstance(kind, types.NoneType):
        return context.get_dummy_value()
    if isinstance(kind, types.Float):
        return builder.bitcast(next(words), ir.DoubleType())
    return builder.trunc(next(words), context.get_value_type(kind))


@intrinsic
def _open(typing: Any, held: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.bitcast(args[0], ir.IntType(64).as_pointer())
        words = (builder.load(builder.gep(first, [INTEGER(place)])) for place in count())
        return _from_words(context, builder, held.content, words)

    return held.content(held), code


def opened(here: Any) -> Any:
    """The arguments that are held."""
    return here


@overload(opened)
def _opened(here):  # type: ignore[no-untyped-def]
    return lambda here: _open(here)


# --- clocks in arrays ------------------------------------------------------------------------------------------------


def load(like: tuple[float, ...], array: np.ndarray, first: int) -> tuple[float, ...]:
    """The tuple of ``len(like)`` numbers that starts at ``array[first]``."""
    return tuple(array[first : first + len(like)])


@overload(load)
def _load(like, array, first):  # type: ignore[no-untyped-def]
    numbers = ", ".join(f"array[first + {k}]" for k in range(len(like)))  # a slice takes longer to compile
    return eval(f"lambda like, array, first: ({numbers},)")


@function
def store(values: tuple[float, ...], array: np.ndarray, first: int) -> None:
    """Write the tuple ``values`` to ``array[first:]``."""
    for k in range(len(values)):
        array[first + k] = values[k]
