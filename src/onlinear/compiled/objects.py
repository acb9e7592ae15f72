"""Rows as Python has them, which compiled code looks at itself: two arrays, or a dict of numbers.

To look at the types of two arrays, and to unpack them, takes Python longer than a step of ten entries; to read a dict takes it
ten times as long. Compiled code compares addresses of types, and asks the interpreter for one entry of a dict after the other.
Names in an order that came before are only compared; others are looked up one by one, and new ones get columns (``name_new``).
Where objects do not lie in memory as it expects (``READABLE``), all rows are ``OTHER``.
"""

from __future__ import annotations

import ctypes
from math import inf
from typing import Any, Protocol

import numpy as np

from onlinear.compiled.home import COMPILED
from onlinear.compiled.methods import function, kept_function, once
from onlinear.compiled.routines import routine

# Bytes from the address of an object to that of its type; and of an array to its data, the number of its axes, its shape, its
# strides, its type of numbers and its flags.
KIND, DATA, AXES, SHAPE, STRIDES, NUMBERS, FLAGS = 8, 16, 24, 32, 40, 56, 64
ALIGNED = 0x100
TAIL = 6  # words of ``Names`` after those of the names
PLACE, LIST, ROOM, NEW, MOST, FILLED = range(-TAIL, 0)  # which these are
LONGEST = 2048  # names of a row that are looked up
# What a row is: two arrays of these types of columns and values; a dict; anything else.
# NEWLY: a dict of which some names have no column, taken as if these had the next ones.
OTHER, LONG_DOUBLE, SHORT_DOUBLE, LONG_SINGLE, SHORT_SINGLE, NAMED, NEWLY = range(7)
TYPES = tuple(map(np.dtype, (np.int64, np.int32, np.float64, np.float32)))


class AnyObject:
    """Stands for an object of any type where the types of arguments are told by examples."""


class Book(Protocol):
    """What numbers names; ``names``: those that have columns, in order, a list that grows."""

    names: list[str]

    @property
    def count(self) -> int:
        """Names known."""

    def add(self, row: dict[str, Any]) -> bool:
        """Give the next columns to the new names of a row of numbers; False, and no name is new, where one may have none."""

    def note(self, row: dict[str, Any]) -> None:
        """Note the names of a row in their order, by which rows to come may be taken."""

    def forget_after(self, count: int) -> None:
        """Drop the names beyond the first ``count``."""


class Names(np.ndarray):
    """The names of the numbers of a dict, and room for these.

    It has four parts of n words, and ``TAIL`` words. The parts are the addresses of n names, the places of their values (-1:
    looked at only), the columns, and the values, columns ascending. The last words are the address of the dict that names are
    looked up in, that of the list to which new names are added (0: they are left out), the most names that this may have, the
    number of new names, the largest value that is taken, and the number of columns. ``names`` keeps the addresses good. Names
    that are looked up have no places, and n is the most names of a row; the addresses are those of its new names.
    ``book``: of rows that are learned, what gives columns to new names.
    """

    names: tuple[str, ...] | dict[str, int]
    book: Book

    @property
    def count(self) -> int:
        """The names."""
        return (len(self) - TAIL) // 4

    @property
    def looks_up(self) -> bool:
        """Whether names are looked up."""
        return bool(self[PLACE])

    def part(self, k: int) -> np.ndarray:
        """The k-th part: addresses, places, columns, values."""
        found = np.asarray(self)[k * self.count : (k + 1) * self.count]
        return found.view(np.float64) if k == 3 else found

    @property
    def row(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns and the values of the dict that was taken last."""
        end = int(self[-1])
        return self.part(2)[:end], self.part(3)[:end]


def names_of(names: tuple[str, ...], columns: list[int | None], most: float = inf) -> Names:
    """What takes dicts of these names, each text, in this order, whose values stand in these columns; None: the value is looked
    at only. A dict with a value above ``most`` in size is not taken."""
    count = len(names)
    known = sorted(column for column in columns if column is not None)
    place = {column: k for k, column in enumerate(known)}
    words = _new_names(names, count, most)
    words[:count] = list(map(id, names))
    words[count : 2 * count] = [-1 if column is None else place[column] for column in columns]
    words[2 * count : 2 * count + len(known)] = known
    words[FILLED] = len(known)
    return words


def names_in(columns: dict[str, int], book: Book | None = None, most: int = 0) -> Names:
    """What takes dicts of up to ``LONGEST`` names, in any order, whose values stand in the columns that a dict from text to
    whole numbers has for them as it is then, each its own. Names without a column are left out; with a ``book``, which gives
    them one, they are taken as new. ``most``: the names that ``name_new`` may give columns, all together."""
    words = _new_names(columns, LONGEST, inf)
    words[PLACE] = id(columns)
    if book is not None:
        words.book, words[LIST], words[ROOM] = book, id(book.names), most
    return words


def _new_names(names: Any, count: int, most: float) -> Names:
    words = np.zeros(4 * count + TAIL, np.int64).view(Names)
    words.names = names
    words[MOST] = int(np.float64(most).view(np.int64))
    return words


REAL = (float, np.float64, int, bool)  # the types of numbers that are taken from dicts
# What tells the types of objects and of arrays' numbers; AN_ARRAY ...: which these are.
AN_ARRAY, OF_NAMES, A_DICT, A_TEXT, A_FLOAT, A_DOUBLE, AN_INT, A_BOOL, LONG, SHORT, DOUBLE, SINGLE = range(12)
TYPE_ADDRESSES = tuple(map(id, (np.ndarray, Names, dict, str, *REAL, *TYPES)))


def _is_readable() -> bool:
    """Whether objects lie in memory as the compiled code of this module expects: where the interpreter runs without its lock
    they do not."""
    array = np.zeros(6, np.float32)[::2]
    whole = ctypes.c_ssize_t.from_address
    words = {KIND: id(np.ndarray), DATA: array.ctypes.data, NUMBERS: id(TYPES[3])}
    if ctypes.sizeof(ctypes.c_void_p) != 8 or np.ndarray.__basicsize__ < FLAGS + 4 or float.__basicsize__ != 24:
        return False
    if any(whole(id(array) + place).value != value for place, value in words.items()):
        return False
    axes, flags = (ctypes.c_int.from_address(id(array) + place).value for place in (AXES, FLAGS))
    shape, strides = (whole(whole(id(array) + place).value).value for place in (SHAPE, STRIDES))
    return (axes, shape, strides, flags & ALIGNED) == (1, 3, 8, ALIGNED)


READABLE = not COMPILED or _is_readable()


def way_of(first: Any, second: Any, kinds: Any) -> int:
    """What the row is that two objects are: arrays of one axis, or a dict and ``Names``; the numbers of a dict are taken.
    ``kinds``: what ``kinds_of_rows`` gives."""
    if type(first) is np.ndarray and type(second) is np.ndarray:
        if first.ndim != 1 or second.ndim != 1 or not (first.flags.aligned and second.flags.aligned):
            return OTHER
        ways = {TYPES[:3:2]: LONG_DOUBLE, TYPES[1:3]: SHORT_DOUBLE, TYPES[::3]: LONG_SINGLE, TYPES[1::2]: SHORT_SINGLE}
        return ways.get((first.dtype, second.dtype), OTHER)
    return way_of_dict(first, second, kinds[0])


def way_of_dict(first: Any, second: Any, addresses: Any) -> int:
    """``way_of`` of what are not both arrays."""
    if type(first) is not dict or type(second) is not Names:
        return OTHER
    most = second[MOST : MOST + 1].view(np.float64)[0]
    try:
        if not all(type(value) in REAL and abs(float(value)) <= most for value in first.values()):
            return OTHER
    except OverflowError:
        return OTHER
    if second[PLACE] != 0:
        return _looked_up(first, second)
    if tuple(first) != second.names:
        return OTHER
    for value, place in zip(first.values(), second.part(1).tolist(), strict=True):
        if place >= 0:
            second.part(3)[place] = value
    return NAMED


@kept_function
def _way_of_dict(first, second, addresses):  # type: ignore[no-untyped-def]
    """``way_of_dict``, which is compiled once for all that take rows."""
    return way_of_dict(first, second, addresses)


@once
def kinds_of_rows() -> tuple[tuple[int, ...], Any]:
    """What tells rows apart: the addresses of types, and the routine of ``way_of_dict``."""
    return TYPE_ADDRESSES, routine(_way_of_dict, AnyObject(), AnyObject(), TYPE_ADDRESSES)


def _looked_up(row: dict[str, Any], names: Names) -> int:
    known: Any = names.names
    if len(row) > LONGEST or any(type(name) is not str for name in row):
        return OTHER
    new = [name for name in row if name not in known] if names[LIST] else []
    columns = known | {name: len(known) + k for k, name in enumerate(new)}
    found = sorted((columns[name], value) for name, value in row.items() if name in columns)
    names[FILLED] = len(found)
    names.part(2)[: len(found)] = [column for column, _ in found]
    names.part(3)[: len(found)] = [value for _, value in found]
    names[NEW] = len(new)
    return NEWLY if new else NAMED


def name_new(row: Any, names: Any) -> int:
    """Give the new names of a dict that was taken the columns that they were taken with; how many these are, 0 where they get
    none."""
    return int(names[NEW]) if names.book.add(row) else 0


def longs(indices: Any) -> Any:
    """An array of 64-bit columns."""
    return indices


def shorts(indices: Any) -> Any:
    """An array of 32-bit columns."""
    return indices


def doubles(values: Any) -> Any:
    """An array of float64."""
    return values


def singles(values: Any) -> Any:
    """An array of float32."""
    return values


def columns_named(names: Any) -> Any:
    """The columns of the dict that was taken."""
    return names.row[0]


def values_named(names: Any) -> Any:
    """The values of the dict that was taken."""
    return names.row[1]


@function
def given_to(take, refused, first, second, kinds, *others):  # type: ignore[no-untyped-def]
    """What ``take`` makes of a row as Python has it (columns and values, or a dict and its ``Names``), given its columns, its
    values and others; ``refused`` for any other row."""
    return given_by(way_of(first, second, kinds), take, refused, first, second, *others)


@function
def given_by(way, take, refused, first, second, *others):  # type: ignore[no-untyped-def]
    """``given_to`` of a row of a known way."""
    if way == LONG_DOUBLE:
        return take(longs(first), doubles(second), *others)
    if way in (NAMED, NEWLY):
        return take(columns_named(second), values_named(second), *others)
    if way == SHORT_DOUBLE:
        return take(shorts(first), doubles(second), *others)
    if way == LONG_SINGLE:
        return take(longs(first), singles(second), *others)
    if way == SHORT_SINGLE:
        return take(shorts(first), singles(second), *others)
    return refused
