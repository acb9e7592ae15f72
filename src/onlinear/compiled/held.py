"""Arguments that stay the same from call to call, and tuples of numbers in arrays (clocks)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlinear.compiled.calls import word_at
from onlinear.compiled.home import COMPILED
from onlinear.compiled.machine_code import layout
from onlinear.compiled.methods import all_ours, calling, compiler, function, numba_of, once
from onlinear.compiled.routines import Routine, routine

Growing = list[tuple[int, int, int]]  # of arrays that become longer where they lie: start, end, and bytes that each column adds


def first_number(vector: np.ndarray) -> np.ndarray:
    """The first number of a vector, to be held: its type does not tell how far off the next one is."""
    return as_strided(vector, (1,), (vector.itemsize,))


def every(array: np.ndarray, first: int, step: int) -> np.ndarray:
    """``array[first::step]``, as far apart in memory without rows too, of which NumPy takes all steps for one: the type of an
    array tells whether its rows stand apart, and a kernel serves any number of them."""
    if len(array):
        return array[first::step]
    rows = np.empty((step, *array.shape[1:]), array.dtype)  # arrays of no rows may have no strides at all
    return as_strided(array, array.shape, (rows.nbytes, *rows.strides[1:]))


class Part(NamedTuple):
    """An array or a tuple, which is kept so that no other has its address; its words, what tells its type, and which words are
    those of an array, with the number of its axes."""

    value: Any
    words: list[int]
    signs: list[Any]
    arrays: list[tuple[int, int]]

    def add(self, other: Part) -> None:
        """Add the parts of another."""
        self.arrays.extend((len(self.words) + place, axes) for place, axes in other.arrays)
        self.words.extend(other.words)
        self.signs.extend(other.signs)


class Held:
    """Arguments that stay the same from call to call: numbers, arrays, parts, None and tuples of them, routines, and what is
    held elsewhere, laid out in memory once.

    Unpacking an array or a part costs a call of compiled code far more than the call itself; these cost it one address. Arrays
    are held by their memory: what is written to them is seen, and so they must not be replaced.

    ``here`` is what the function is given; ``like``: what was held before, of which most may have stayed: arrays and tuples
    that are the same objects are laid out as they were.

    Raises TypeError for arguments of other types.
    """

    def __init__(self, *args: Any, like: Held | None = None) -> None:
        self._args = args
        self.parts: dict[int, Part] = {}
        self.here: Any = tuple(arg.here if isinstance(arg, Held) else arg for arg in args)
        if COMPILED:
            self._whole = self._part(args, {} if like is None else like.parts)
            self._signs = tuple(self._whole.signs)
            self._words = np.array(self._whole.words, np.int64)
            self.here = int(self._words.ctypes.data)

    def _part(self, value: Any, before: dict[int, Part]) -> Part:
        """An array or a tuple as numbers of 64 bits, in the order in which ``_from_words`` reads them."""
        part = before.get(id(value))
        if part is None:
            kind = type(value)
            part = Part(value, [], [kind], [])
            if kind is np.ndarray:
                part.arrays.append((0, value.ndim))
                part.words.extend((value.itemsize, value.ctypes.data, *value.shape, *value.strides))
                part.signs.append((value.dtype, value.ndim, layout(value)))
            else:
                part.signs.append(len(value))
                for inner in value:
                    if type(inner) is np.ndarray or isinstance(inner, tuple):
                        part.add(self._part(inner, before))
                    else:
                        part.signs.append(inner.kind if isinstance(inner, (Routine, Held)) else type(inner))
                        part.words.extend(_words_of(inner))
        self.parts[id(value)] = part
        return part

    def lengths(self, growing: Growing, columns: int) -> list[tuple[int, int, int]]:
        """Of arrays that become longer, and have so many columns: where the length is, what each column adds to it, and its
        length without columns.

        Raises ValueError where a part that does not reach the end of its array is held, or none of whole columns.
        """
        found, words = [], self._whole.words
        for place, axes in self._whole.arrays:
            address, length = words[place + 1], int(self._words[place + 2])
            for start, end, each in growing:
                if start <= address < end:
                    apart = words[place + 2 + axes]
                    if length == -((address - end) // apart) and each % apart == 0:
                        more = each // apart
                        found.append((self.here + 8 * (place + 2), more, length - columns * more))
                    elif length > 1:
                        raise ValueError("a part of an array is held.")
        return found

    def compile(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> Callable[..., Any]:
        """``text``, whose first argument is ``here`` and which calls the ``functions`` by their names, for ``others`` typed as
        these: the compiled code itself, which looks up and checks nothing. Strided arrays among ``others`` stand for arrays of
        any layout."""
        found = self._made(text, functions, others)
        if not COMPILED:
            return found
        return compiler().entry_point(found, others, first=self.kind)

    def address(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> int:
        """Where the code is that ``compile`` gives for the same; 0 where nothing is compiled."""
        return int(self.routine(text, functions, *others).address) if COMPILED else 0

    def routine(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], *others: Any) -> Any:
        """What ``compile`` gives for the same, as it is held; it is given this ``Held`` first."""
        found = self._made(text, functions, others)
        return Routine(*compiler().address_and_kind(found, (self, *others))) if COMPILED else found

    def _made(self, text: Callable[..., Any], functions: dict[str, Callable[..., Any]], others: tuple[Any, ...]) -> Any:
        """A text with its functions, as Numba takes it."""
        return _with_functions(text, tuple(functions.items()), all(map(_is_ours, (self, *others))))

    @property
    def is_ours(self) -> bool:
        """Whether nothing that is held is a part from outside the package, so that code for it is kept on disk."""
        return all(map(_is_ours, self._args))

    def takes_code_of(self, before: Held | None) -> bool:
        """Whether the code compiled for what was held before is that for this."""
        return COMPILED and before is not None and self.kind is before.kind

    @property
    def kind(self) -> Any:
        """The type of ``here``, the same for arguments of the same types; None where nothing is compiled."""
        if not COMPILED:
            return None
        return _held_kinds.get(self._signs) or _held_kinds.setdefault(self._signs, compiler().held_kind(self._args))


class HeldText:
    """A text and what is held for it. It is compiled anew where it is another, calls other ``functions``, or what is held has
    other types.

    ``others``: typed as what the text is given besides. ``run``: its code, which is given ``here`` first; ``routine``: the same
    as it is held, which is given ``held`` first.
    """

    run: Callable[..., Any]
    routine: Any

    def __init__(self, *others: Any) -> None:
        self._others = others
        self._made: Any = None  # the text and the functions that the code is of
        self._kernel: Any = None  # the routine of the kernel that the text calls
        self.held: Held | None = None
        self.here: Any = None

    @property
    def call(self) -> tuple[Any, Held | None]:
        """The routine, and what it is given first, to be held."""
        return self.routine, self.held

    def hold(self, text: Callable[..., Any], *args: Any, **functions: Callable[..., Any]) -> None:
        """Hold these arguments for a text."""
        self._take(Held(*args, like=self.held), text, functions)

    def hold_with(
        self, kernel: Callable[..., Any], given: tuple[Any, ...], text: Callable[..., Any], *args: Any, **functions: Any
    ) -> None:
        """Hold these arguments, and before them the routine of a kernel that the text gives arguments typed as ``given``."""
        held = Held(self._kernel, *args, like=self.held)
        if not self._serves(held, text, functions):
            self._kernel = routine(kernel, *given)
            held = Held(self._kernel, *args)
        self._take(held, text, functions)

    def _serves(self, held: Held, text: Callable[..., Any], functions: dict[str, Any]) -> bool:
        """Whether there is code for these."""
        return bool(self._made == (text, functions)) and held.takes_code_of(self.held)

    def _take(self, held: Held, text: Callable[..., Any], functions: dict[str, Any]) -> None:
        if not self._serves(held, text, functions):
            self.held = None  # where Ctrl-C comes now, the next one does not take this code for that of what was held
            self.run = held.compile(text, functions, *self._others)
            self.routine, self._made = held.routine(text, functions, *self._others), (text, functions)
        self.held, self.here = held, held.here


class Lengths:
    """The lengths of arrays in what is held, which follow the number of columns; ``columns``: those that there are. So do
    ``counts``, whole numbers of 64 bits in arrays of their own.

    ``table``: the address of what ``follow_lengths`` is given, and how many these are.
    """

    def __init__(self, held: list[Held], growing: Growing, columns: int, counts: Sequence[np.ndarray] = ()) -> None:
        found = [length for one in held for length in one.lengths(growing, columns)]
        found += [(count.ctypes.data, 1, 0) for count in counts]
        self._kept = held, counts, np.array(found, np.int64).reshape(-1)
        self.table = int(self._kept[2].ctypes.data), len(found)
        self._held = Held(*self.table)
        self._run = self._held.compile(_follow, {}, 1)

    @classmethod
    def of(cls, held: list[Held], growing: Growing, columns: int, counts: Sequence[np.ndarray] = ()) -> Lengths | None:
        """The lengths; None where they do not follow."""
        try:
            return cls(held, growing, columns, counts) if COMPILED else None
        except ValueError:
            return None

    def follow(self, columns: int) -> None:
        """Let all arrays have so many columns."""
        self._run(self._held.here, columns)


def _follow(here, columns):  # type: ignore[no-untyped-def]
    """Write all lengths."""
    table, count = opened(here)
    follow_lengths(table, count, columns)


@function
def follow_lengths(table, count, columns):  # type: ignore[no-untyped-def]
    """Let so many lengths, whose places, growth and beginnings are in a table, be those of so many columns."""
    for k in range(0, 3 * count, 3):
        write_word(word_at(table, k), word_at(table, k + 1) * columns + word_at(table, k + 2))


def write_word(address: int, value: int) -> None:
    """Write a whole number of 64 bits to an address."""
    raise NotImplementedError


def _words_of(value: Any) -> tuple[int, ...]:
    """A number or an address as words of 64 bits; none for None."""
    if isinstance(value, (Routine, Held)):
        return (value.address if isinstance(value, Routine) else value.here,)
    if isinstance(value, float):
        return (_WORD.unpack(_REAL.pack(value))[0],)
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    if value is not None:
        raise TypeError(f"{type(value).__name__} arguments cannot be held.")
    return ()


def _is_ours(arg: Any) -> bool:
    return arg.is_ours if isinstance(arg, Held) else all_ours(arg)


_REAL, _WORD = Struct("d"), Struct("q")
_held_kinds: dict[Any, Any] = {}  # by what tells the types of the arguments apart


@once
def _with_functions(text: Callable[..., Any], functions: tuple[tuple[str, Any], ...], ours: bool) -> Any:
    """A copy of ``text`` with functions of its own, under a name of its own: the disk cache goes by that."""
    copy = calling(text, {name: numba_of(call, ours) for name, call in functions})
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
