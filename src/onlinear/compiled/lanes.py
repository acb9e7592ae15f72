"""Several numbers at once.

*Lanes* are a type of compiled code: several doubles in one vector register, or as many as the machine needs. Arithmetic,
comparisons (1.0 or 0.0), min, max, abs, sqrt, exp, exp2 and copysign go lane by lane, each with the bits of the scalar
operation; a number beside lanes is the same in every lane. So what a part's method says of one number it says of several.

ENTRIES of them are consecutive entries of a row, by which a loop over a row steps: behind the row's end values are 0 and
nothing is written. A sum over a row is a sum per lane, added up at the end, so its order follows from the number of
non-zeros alone. Interpreted, there is one lane, and lanes are numbers. WIDTH of them are outputs side by side.

The texts stand here; what is compiled for them is in ``lane_code.py``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from onlinear.compiled.home import COMPILED

Place: TypeAlias = int | np.integer
LANES = np.uint64(4 if COMPILED else 1)
ENTRIES, WIDTH = 4, 8 if COMPILED else 1


def four(indices: np.ndarray, values: np.ndarray, k: Place, end: Place) -> Any:
    """The columns and the values of the entries from k on, of a row that ends before ``end``."""
    return indices[k], values[k]


def gather(vectors: Any, at: Any) -> Any:
    """What a vector, or each of several side by side, holds at the columns of four entries."""
    return tuple(vector[at] for vector in vectors) if isinstance(vectors, tuple) else vectors[at]


def at_column(vectors: tuple[np.ndarray, ...], column: Place) -> tuple[float, ...]:
    """What each of several vectors side by side holds at a column."""
    return tuple(vector[column] for vector in vectors)


def put_back(vectors: Any, at: Any, new: Any) -> None:
    """Write to a vector, or to each of several side by side, at the columns of four entries."""
    for vector, value in zip(vectors, new, strict=True) if isinstance(vectors, tuple) else ((vectors, new),):
        vector[at] = value


def first_of(vectors: Any) -> np.ndarray:
    """A vector, or the first of several side by side."""
    return vectors[0] if isinstance(vectors, tuple) else vectors


def untouched(vectors: Any) -> Any:
    """What ``gather`` gives of vectors that are 0."""
    return tuple(0.0 for _ in vectors) if isinstance(vectors, tuple) else 0.0


def empty(terms: tuple[Any, ...]) -> tuple[Any, ...]:
    """Empty sums, one for each term."""
    return (0.0,) * len(terms)


def added(sums: tuple[Any, ...], terms: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums with a term added to each."""
    return tuple(a + b for a, b in zip(sums, terms, strict=True))


def totals(sums: tuple[Any, ...]) -> tuple[float, ...]:
    """Each sum over its lanes."""
    return sums


def room(array: np.ndarray, first: Place) -> Any:
    """The memory of ``array`` from a place on, for the functions of a kernel to share: an array would be counted in and out
    with each call. The array has to be an argument of the kernel, which outlives it."""
    return array[first:]


def rooms(arrays: tuple[np.ndarray, ...]) -> Any:
    """``room`` of each of several arrays from its first number on. Numbers of a room are read and written as an array's, by
    places that are not negative; a room takes the compiler a seventh of an array."""
    return arrays


def numbers(room: Any, count: Place) -> np.ndarray:
    """The first numbers of a room as an array."""
    return room[:count]


def fetch(array: np.ndarray, indices: np.ndarray, k: Place) -> None:
    """Ask for what a vector holds at the columns of the four entries from k on, which must exist, ahead of its use."""


def taken(room: np.ndarray, k: Place) -> Any:
    """room[k:], for a place within the room."""
    return room[k]


def put(room: np.ndarray, k: Place, new: Any) -> None:
    """Write room[k:]."""
    room[k] = new


def put_all(room: np.ndarray, k: Place, new: tuple[Any, ...]) -> None:
    """Write several numbers of each of the four entries from k on, a multiple of ``LANES``, where ``taken_all`` finds them."""
    for place, value in enumerate(new):
        room[int(k) * len(new) + place] = value


def taken_all(room: np.ndarray, k: Place, like: tuple[Any, ...]) -> tuple[Any, ...]:
    """What ``put_all`` wrote from place k on: as many numbers as ``like`` has."""
    return tuple(room[int(k) * len(like) + place] for place in range(len(like)))


def nothing() -> Any:
    """0 in every lane: an empty sum."""
    return 0.0


def total(lanes: Any) -> float:
    """The sum over the lanes."""
    return lanes


def lane(lanes: Any, place: Place) -> float:
    """One lane."""
    return lanes


def joined(a: float, b: float, c: float, d: float) -> Any:
    """Lanes of four numbers."""
    return a


def within(v: Any, k: Any) -> Any:
    """v, no further from 0 than k >= 0: numbers, or lanes and a number beside. Where v is NaN, NaN or k."""
    return min(max(v, -k), k)


def where(mask: Any, a: Any, b: Any) -> Any:
    """``a`` where the mask holds, else ``b``; numbers or lanes, which a number may be beside."""
    return a if mask else b
