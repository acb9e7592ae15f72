"""Arguments that stay the same from call to call, and tuples of numbers in arrays (clocks)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinear.compiled.home import COMPILED
from onlinear.compiled.methods import all_ours, calling, compiler, function, once


class Held:
    """Arguments that stay the same from call to call: numbers, arrays, parts, None and tuples of them, laid out in memory once.

    Unpacking an array or a part costs a call of compiled code far more than the call itself; these cost it one address. Arrays
    are held by their memory: what is written to them is seen, and so they must not be replaced.

    ``here`` is what the function is given; ``like``: what was held before, of which most may have stayed.

    Raises TypeError for arguments of other types.
    """

    def __init__(self, *args: Any, like: Held | None = None) -> None:
        self._args = args
        self._before: dict[int, Any] = {} if like is None else like.arrays
        self.arrays: dict[int, Any] = {}
        self.here: Any = args
        if COMPILED:
            words: list[int] = []
            signs: list[Any] = []
            self._lay_out(args, words, signs)
            self._signs = tuple(signs)
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
        return compiler().entry_point(found, others, first=self.kind)  # type: ignore[no-any-return]

    def address(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> int:
        """Where the code is that ``compile`` gave for the same; 0 where nothing is compiled."""
        if not COMPILED:
            return 0
        found = _with_functions(text, tuple(functions.items()), all(map(all_ours, self._args)))
        return int(compiler().inner_address(found, others, self.kind))

    @property
    def kind(self) -> Any:
        """The type of ``here``, the same for arguments of the same types; None where nothing is compiled."""
        if not COMPILED:
            return None
        return _held_kinds.get(self._signs) or _held_kinds.setdefault(self._signs, compiler().held_kind(self._args))


_held_kinds: dict[Any, Any] = {}  # by what tells the types of the arguments apart


@once
def _with_functions(text: Callable[..., Any], functions: tuple[tuple[str, Any], ...], ours: bool) -> Any:
    """A copy of ``text`` with functions of its own, under a name of its own: the disk cache goes by that."""
    copy = calling(text, {name: getattr(call, "dispatcher" if ours else "fresh", call) for name, call in functions})
    if not COMPILED:
        return copy
    return compiler().kept(copy) if ours else compiler().anew(copy)


def opened(here: Any) -> Any:
    """The arguments that are held."""
    return here


def opened_at(like: Any, here: Any) -> Any:
    """The arguments that are held at another address, of the types of those at ``like``."""
    return here


def borrowed(args: Any) -> Any:
    """Arguments of a kernel, whose caller keeps the arrays among them: their references are not counted, which in a loop over
    short rows takes longer than the work. None of the arrays may be returned."""
    return args


# --- clocks in arrays ------------------------------------------------------------------------------------------------


def load(like: tuple[float, ...], array: np.ndarray, first: int) -> tuple[float, ...]:
    """The tuple of ``len(like)`` numbers that starts at ``array[first]``."""
    return tuple(array[first : first + len(like)])


@function
def store(values: tuple[float, ...], array: np.ndarray, first: int) -> None:
    """Write the tuple ``values`` to ``array[first:]``."""
    for k in range(len(values)):
        array[first + k] = values[k]
