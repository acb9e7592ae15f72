"""Four entries at once: rows of every length find, and write, what a loop over their entries does."""

from __future__ import annotations

import numpy as np
import pytest

from onlinear.compiled import LANES, first_of, four, gather, kernel, put_all, put_back, room, taken_all, total, untouched

COLUMNS = 12


@kernel
def _move_one(indices, values, V, sums):
    for k in range(np.uint64(0), np.uint64(len(indices)), LANES):
        at, x = four(indices, values, k, np.uint64(len(indices)))
        sums[0] += total(gather(V, at) * x)
        put_back(V, at, gather(V, at) + x)


@kernel
def _move_two(indices, values, V, sums):
    for k in range(np.uint64(0), np.uint64(len(indices)), LANES):
        at, x = four(indices, values, k, np.uint64(len(indices)))
        a, b = gather(V, at)
        sums[0] += total(a * x)
        put_back(V, at, (a + x, b - x))


@kernel
def _move_three(indices, values, V, sums):
    for k in range(np.uint64(0), np.uint64(len(indices)), LANES):
        at, x = four(indices, values, k, np.uint64(len(indices)))
        a, b, c = gather(V, at)
        sums[0] += total(a * x)
        put_back(V, at, (a + x, b - x, c + a * x))


@kernel
def _move_three_kept(indices, values, V, sums):
    kept, length = room(sums, 1), np.uint64(len(indices))
    for k in range(np.uint64(0), length, LANES):
        at, _ = four(indices, values, k, length)
        put_all(kept, k, gather(V, at))
    for k in range(np.uint64(0), length, LANES):
        at, x = four(indices, values, k, length)
        a, b, c = taken_all(kept, k, untouched(V))
        sums[0] += total(a * x)
        put_back(V, at, (a + x, b - x, c + a * x))


def expected(count: int, old: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """What the kernel leaves of the columns of a row."""
    return [old[0] + x, old[1] - x, old[2] + old[0] * x][:count]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", range(10))
@pytest.mark.parametrize(("move", "count"), [(_move_one, 1), (_move_two, 2), (_move_three, 3), (_move_three_kept, 3)])
def test_a_row_of_any_length(move, count, length, dtype):
    rng = np.random.default_rng(length)
    indices = np.sort(rng.choice(COLUMNS, length, replace=False)).astype(np.uint32)
    values = rng.integers(-8, 8, length).astype(dtype)  # whole numbers: sums are exact in any order
    together = rng.integers(-8, 8, (COLUMNS, count)).astype(float)
    before, sums = together.copy(), np.zeros(1 + 3 * (length + 3))
    beside = tuple(together.ravel()[place::count] for place in range(count))
    V = beside if count > 1 else beside[0]
    assert first_of(V) is beside[0]
    move(indices, values, V, sums)
    old = np.vstack([before[indices].T, np.zeros((3 - count, length))])
    for place, new in enumerate(expected(count, old, values.astype(float))):
        before[indices, place] = new
    assert np.array_equal(together, before)
    assert sums[0] == old[0] @ values.astype(float)
