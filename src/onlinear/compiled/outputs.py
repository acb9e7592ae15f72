"""Lanes that are outputs: row ``row`` of an (n, WIDTH) array of doubles holds one number of each output.

The rows of an array, or of each of several side by side, are as far apart as ``apart`` says, and so are those of a ``room``.
Interpreted, WIDTH is 1, and lanes are numbers. The texts stand here; what is
compiled for them is in ``output_code.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.compiled.lanes import Place


def lanes(vectors: Any, row: Place) -> Any:
    """Row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    return tuple(vector[row, 0] for vector in vectors) if isinstance(vectors, tuple) else vectors[row, 0]


def put_lanes(vectors: Any, row: Place, values: Any) -> None:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    for vector, value in zip(vectors, values, strict=True) if isinstance(vectors, tuple) else ((vectors, values),):
        vector[row, 0] = value


def fetch_lanes(vectors: Any, row: Place) -> None:
    """Ask for row ``row`` of an (n, WIDTH) array, or of each of several side by side, ahead of its use."""


def number_at(vectors: Any, row: Place, place: Place) -> Any:
    """One lane of row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    return tuple(vector[row, place] for vector in vectors) if isinstance(vectors, tuple) else vectors[row, place]


def put_number(vectors: Any, row: Place, place: Place, values: Any) -> None:
    """Write one lane of row ``row`` of an (n, WIDTH) array, or of each of several side by side."""
    for vector, value in zip(vectors, values, strict=True) if isinstance(vectors, tuple) else ((vectors, values),):
        vector[row, place] = value


def gather_output(vectors: Any, at: Any, place: Place) -> Any:
    """What one output has in an (n, WIDTH) array, or in each of several side by side, at the columns of four entries."""
    return number_at(vectors, at, place)


def put_back_output(vectors: Any, at: Any, place: Place, values: Any) -> None:
    """Write ``values``, of one output, at the columns of four entries."""
    put_number(vectors, at, place, values)


def taken_output(array: np.ndarray, row: Place, place: Place) -> Any:
    """What one output has in the rows of an (n, WIDTH) array from ``row`` on, of four entries; the rows must exist."""
    return array[row, place]


def no_lanes(vectors: Any) -> Any:
    """What ``lanes`` gives of vectors that are 0."""
    return tuple(0.0 for _ in vectors) if isinstance(vectors, tuple) else 0.0


# --- lanes, or numbers where there is one output ---------------------------------------------------------------------


def row_of(rows: np.ndarray, row: Place) -> Any:
    """Row ``row`` of an (n, WIDTH) array as lanes, or of an (n,) array as a number."""
    return rows[row, 0] if rows.ndim == 2 else rows[row]


def put_row(rows: np.ndarray, row: Place, values: Any) -> None:
    """Write ``values`` to row ``row`` of an (n, WIDTH) array, or of an (n,) array."""
    rows[(row, 0) if rows.ndim == 2 else row] = values


def no_row(rows: np.ndarray) -> Any:
    """What ``row_of`` gives of an array that is 0."""
    return 0.0


def same_lanes(value: float) -> Any:
    """A number in every lane."""
    return value


def chosen(marks: Any, a: Any, b: Any) -> Any:
    """``a`` in the lanes whose mark has all bits set, ``b`` in those whose mark has none; lanes, or tuples of them.

    By bits, not by a comparison, of which LLVM makes masked stores: those are slow on some machines.
    """
    return a if marks != 0.0 else b


def some(lanes: Any) -> bool:
    """Whether a lane is not 0."""
    return bool(lanes != 0.0)


def places_of(marks: Any, row: Place, numbers: Any, found: np.ndarray, end: Place, apart: Place) -> Place:
    """Write WIDTH row + its place for each lane that is not 0 to ``found``, from ``end`` on, and ``apart`` places further its
    whole part of ``numbers``; give their end.

    Up to WIDTH places from either on are written, whatever is kept.
    """
    found[end], found[end + apart] = row, int(numbers)
    return end + (1 if marks != 0.0 else 0)


# --- tuples of lanes, such as parts and steps: each output's own, and back -------------------------------------------


def value_at(room: Any, place: Place) -> float:
    """A number of a room of numbers."""
    return room[place]


def laid_out(value: Any) -> Any:
    """The lanes of a tuple in memory, from which ``of_output`` takes one output's faster than from registers."""
    return value


def of_output(value: Any, place: Place) -> Any:
    """A tuple with one output's numbers in place of lanes."""
    return value


def in_lanes(value: Any) -> Any:
    """A tuple with lanes in place of its numbers."""
    return value


def lanes_like(like: Any, array: np.ndarray, first: Place) -> Any:
    """A tuple like the tuple of numbers ``like``, of the same class, with the rows of an array from ``first`` on as lanes."""
    values = array[first : first + len(like), 0]
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)


def lanes_apart(like: Any, memory: Any, first: Place, step: Place) -> Any:
    """``lanes_like`` of rows that are ``step`` rows apart; of one row, where ``like`` is a number."""
    if not isinstance(like, tuple):
        return memory[first, 0]
    return tuple(memory[first + place * step, 0] for place in range(len(like)))


def put_apart(values: Any, memory: Any, first: Place, step: Place) -> None:
    """``put_each`` to rows that are ``step`` rows apart; to one row, where there is one value."""
    for place, value in enumerate(values if isinstance(values, tuple) else (values,)):
        memory[first + place * step, 0] = value


def put_each(values: tuple[Any, ...], array: np.ndarray, first: Place) -> None:
    """Write a tuple of lanes, or of numbers for every lane, to the rows of an array from ``first`` on."""
    for place, value in enumerate(values):
        array[first + place, 0] = value
