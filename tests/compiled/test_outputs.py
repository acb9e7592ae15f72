"""Lanes that are outputs: parts and steps of lanes, one output's of them, and states of several numbers side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from onlinear.compiled import (
    WIDTH,
    chosen,
    kernel,
    laid_out,
    lanes,
    lanes_like,
    no_lanes,
    number_at,
    of_output,
    places_of,
    put_each,
    put_lanes,
    put_number,
    room,
    some,
    value_at,
)


class Pair(NamedTuple):
    """Two numbers, or lanes of them."""

    a: float
    b: float


class Nested(NamedTuple):
    """A tuple in a tuple, and a number that all outputs share."""

    pair: Pair
    shared: float


@kernel
def _take(like, numbers, found):
    pair = lanes_like(like, numbers, 0)
    nested = Nested(pair, 3.0)
    memory = laid_out(nested)
    for o in range(found.shape[1]):
        mine, same = of_output(memory, o), of_output(nested, o)
        found[0, o], found[1, o] = mine.pair.a - mine.pair.b, mine.shared
        found[2, o] = same.pair.a * same.shared
    put_each((pair.b, pair.a, 7.0), numbers, 2)


@kernel
def _list(marks, numbers, found, apart):
    end = 0
    for row in range(len(marks)):
        end = places_of(lanes(marks, row), row, lanes(numbers, row), found, end, apart)
    return end


@kernel
def _move(V, marks, wanted):
    moved = some(lanes(wanted, 0))
    for j in range(3):
        v = lanes(V, j)
        nothing = no_lanes(V)
        put_lanes(V, j, chosen(lanes(marks, 0), (v[0] + 1.0, v[1] + nothing[0]), (v[0], v[1] * 2.0)))
    z, n = number_at(V, 1, 0)
    put_number(V, 1, 0, (n, z))
    return moved


@kernel
def _value(values, k):
    return value_at(room(values, 1), k)


def test_a_part_of_lanes_has_each_output_s_numbers():
    rng = np.random.default_rng(0)
    numbers, found = rng.normal(size=(5, WIDTH)), np.empty((3, WIDTH))
    a, b = numbers[:2].copy()
    _take(Pair(0.0, 0.0), numbers, found)
    assert np.array_equal(found, [a - b, np.full(WIDTH, 3.0), 3.0 * a])
    assert np.array_equal(numbers[2:], [b, a, np.full(WIDTH, 7.0)])


def test_lanes_are_listed_with_whole_numbers_beside_them():
    rng = np.random.default_rng(0)
    marks = np.where(rng.random((50, WIDTH)) < 0.4, rng.choice([1.0, -2.0, np.nan, 5e-324], (50, WIDTH)), 0.0)
    marks[3], marks[4] = 0.0, 1.0
    numbers = rng.uniform(0.0, 2.0**40, (50, WIDTH))
    apart = marks.size + WIDTH
    found = np.full(2 * apart, -1)
    end = _list(marks, numbers, found, apart)
    wanted = np.flatnonzero(marks != 0.0)
    assert end == len(wanted)
    np.testing.assert_array_equal(found[:end], wanted)
    np.testing.assert_array_equal(found[apart : apart + end], numbers.ravel()[wanted].astype(np.int64))


def test_states_of_two_numbers_stand_side_by_side():
    states = np.random.default_rng(0).normal(size=(6, WIDTH))
    marks, wanted = np.zeros((1, WIDTH)), np.zeros((1, WIDTH))
    marks.view(np.int64)[0, 0] = -1
    expected = states.copy()
    expected[1::2, 1:] *= 2.0
    expected[0::2, 0] += 1.0
    expected[[2, 3], 0] = expected[[3, 2], 0]
    assert not _move((states[0::2], states[1::2]), marks, wanted)
    assert np.array_equal(states, expected)
    wanted[0, -1] = -2.0
    assert _move((states[0::2], states[1::2]), marks, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_room_s_numbers_are_doubles(dtype):
    assert _value(np.array([1.0, 2.0, 0.5], dtype), 1) == 0.5
