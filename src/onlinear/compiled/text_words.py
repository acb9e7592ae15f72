"""Text eight and thirty-two bytes at a time.

A *word* is eight bytes as one number, the first byte lowest. *Marks* are a bit for each of 32 bytes, the first one's lowest.
Both may be read at any place that has so many bytes behind it. The texts stand here; what is compiled for them is in
``text_word_code.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.compiled.lanes import Place

MARKED = 32  # bytes that have marks
ZEROS = 0x3030303030303030  # eight zeros, as text


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


def spelled_words(a: Any, b: Any, c: Any, d: Any, of_a: Any, of_b: Any, of_c: Any, of_d: Any) -> tuple[np.uint64, ...]:
    """The number that four words of text spell each, digits of which the last ones count: those of its mask, whose bits are 1.
    Fifth, what is not 0 where a byte that counts is no digit; then the numbers say nothing."""
    words = [(int(word) ^ ZEROS) & int(mask) for word, mask in ((a, of_a), (b, of_b), (c, of_c), (d, of_d))]
    digits = np.array(words, "<u8").view(np.uint8).reshape(4, 8)
    numbers = digits.astype(np.uint64) @ 10 ** np.arange(7, -1, -1, dtype=np.uint64)
    return *numbers, np.uint64(np.any(digits > 9))


def _bits(found: np.ndarray) -> np.uint64:
    return np.uint64(int.from_bytes(np.packbits(found, bitorder="little").tobytes(), "little"))
