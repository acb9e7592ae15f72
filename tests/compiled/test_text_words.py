"""Eight and thirty-two bytes at once: compiled code finds what the texts find."""

from __future__ import annotations

import numpy as np
import pytest

from onlinear.compiled import MARKED, count_marks, first_mark, kernel, marks_of, marks_up_to, room, spelled_words, word_at

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


@kernel
def _spelled(words, masks, found):
    for i in range(words.shape[0]):
        a, b, c, d = words[i]
        of_a, of_b, of_c, of_d = masks[i]
        for k, number in enumerate(spelled_words(a, b, c, d, of_a, of_b, of_c, of_d)):
            found[i, k] = number


def test_the_digits_of_four_words():
    rng = np.random.default_rng(7)
    texts = rng.integers(ord("0"), ord("9"), (300, 4, 8), np.uint8, endpoint=True)
    texts[0], texts[1] = ord("9"), ord("0")
    counts = rng.integers(0, 8, (300, 4), endpoint=True)
    counts[0] = 8
    wrong = rng.random((300, 4, 8)) < 0.02
    texts[wrong] = rng.choice(np.array([0, 32, 46, 47, 58, 127, 128, 176, 255], np.uint8), int(wrong.sum()))
    masks = np.array([[2**64 - 2 ** (64 - 8 * count) for count in row] for row in counts.tolist()], np.uint64)
    words, found = texts.reshape(300, 32).view("<u8"), np.zeros((300, 5), np.uint64)
    _spelled(words, masks, found)
    for text, count, word, mask, (*numbers, others) in zip(texts, counts, words, masks, found.tolist(), strict=True):
        kept = [part[8 - n :].tobytes() for part, n in zip(text, count, strict=True)]
        right = all(part.isdigit() or not part for part in kept)
        assert (others == 0) == right == (int(spelled_words(*word, *mask)[4]) == 0)
        if right:
            assert numbers == [int(part or b"0") for part in kept] == list(map(int, spelled_words(*word, *mask)[:4]))
