"""Eight and thirty-two bytes at once: compiled code finds what the texts find."""

from __future__ import annotations

import numpy as np
import pytest

from onlinear.compiled import MARKED, count_marks, first_mark, kernel, marks_of, marks_up_to, room, word_at

PLACES = 40
TEXT = np.random.default_rng(4).integers(0, 256, PLACES + MARKED, dtype=np.uint8)
TEXT[[3, 3 + MARKED, PLACES]] = ord(":"), 0, 255


@kernel
def _looked_at(text, byte, found):
    inside = room(text, np.uint64(0))
    for i in range(found.shape[0]):
        place = np.uint64(i)
        found[i, 0] = word_at(inside, place)
        found[i, 1] = marks_of(inside, place, byte)
        found[i, 2] = marks_up_to(inside, place, byte)
        found[i, 3] = first_mark(found[i, 1])
        found[i, 4] = count_marks(found[i, 1])


@pytest.mark.parametrize("byte", [0, 32, ord(":"), 127, 128, 255])
def test_every_place_and_byte(byte):
    found = np.zeros((PLACES, 5), np.uint64)
    _looked_at(TEXT, byte, found)
    for i, (word, same, up_to, first, count) in enumerate(found.tolist()):
        part = TEXT[i : i + MARKED].tolist()
        assert word == int.from_bytes(TEXT[i : i + 8].tobytes(), "little") == int(word_at(TEXT, i))
        assert same == sum(1 << k for k, c in enumerate(part) if c == byte) == int(marks_of(TEXT, i, byte))
        assert up_to == sum(1 << k for k, c in enumerate(part) if c <= byte) == int(marks_up_to(TEXT, i, byte))
        assert first == (part.index(byte) if byte in part else 64) == int(first_mark(np.uint64(same)))
        assert count == part.count(byte) == int(count_marks(np.uint64(same)))
