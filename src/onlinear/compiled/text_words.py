"""Text eight and thirty-two bytes at a time.

A *word* is eight bytes as one number, the first byte lowest. *Marks* are a bit for each of 32 bytes, the first one's lowest.
Both may be read at any place that has so many bytes behind it. The texts stand here; what is compiled for them is in
``text_word_code.py``.
"""

from __future__ import annotations

import numpy as np

from onlinear.compiled.lanes import Place

MARKED = 32  # bytes that have marks


def word_at(text: np.ndarray, i: Place) -> np.uint64:
    """The eight bytes from ``i`` on as one number."""
    return np.uint64(int.from_bytes(text[i : int(i) + 8].tobytes(), "little"))


def marks_of(text: np.ndarray, i: Place, byte: int) -> np.uint64:
    """Which of the 32 bytes from ``i`` on are this byte."""
    return _bits(text[i : int(i) + MARKED] == byte)


def marks_up_to(text: np.ndarray, i: Place, byte: int) -> np.uint64:
    """Which of the 32 bytes from ``i`` on are no larger than this byte."""
    return _bits(text[i : int(i) + MARKED] <= byte)


def first_mark(marks: np.uint64) -> np.uint64:
    """The place of the first mark, 64 where there is none."""
    return np.uint64((int(marks) & -int(marks)).bit_length() - 1 if marks else 64)


def count_marks(marks: np.uint64) -> np.uint64:
    """How many marks there are."""
    return np.uint64(int(marks).bit_count())


def _bits(found: np.ndarray) -> np.uint64:
    return np.uint64(int.from_bytes(np.packbits(found, bitorder="little").tobytes(), "little"))
