"""Shuffled windows: the rows of the joined blocks in the order drawn, and a generator whose state can be kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onlinear.rows import Rows
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import Block, joined, permute_blocks
from onlinear.streams.shuffle import Shuffled
from onlinear.streams.svmlight import Svmlight


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{i} 1:{i + 1} {2 + i % 50}:2\n" for i in range(500)))
    return Svmlight((str(path),), block_bytes=700)


def labels(stream):
    return [y for block in stream for y in block.y.tolist()]


def made(rng, n, name, weighted):
    lengths = rng.integers(0, 5, n)
    columns = np.concatenate([np.sort(rng.choice(9, k, replace=False)) for k in lengths] + [[]]).astype(np.uint32)
    rows = Rows(np.append(0, np.cumsum(lengths)).astype(np.uint64), columns, rng.normal(size=len(columns)))
    weights = rng.random(n) if weighted else None
    return Block(rows, rng.normal(size=n), np.arange(n), (name,), 9, 5.0, None, weights, rng.random(n) < 0.5)


@pytest.mark.parametrize("sizes", [(5,), (3, 0, 4), (1, 1, 1, 6)])
@pytest.mark.parametrize("names", ["one", "two"])
def test_a_permutation_of_blocks_is_that_of_the_joined_rows(sizes, names):
    rng = np.random.default_rng(len(sizes))
    blocks = [made(rng, n, names if k % 2 else "one", k % 2 == 1) for k, n in enumerate(sizes)]
    order = rng.permutation(sum(sizes))
    ours, theirs = permute_blocks(blocks, order), joined(blocks).take(order)
    for mine, wanted in zip((*ours.rows, *ours[1:]), (*theirs.rows, *theirs[1:]), strict=True):
        assert (mine is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("wrap", [lambda stream: stream, Ahead])
def test_a_pass_can_be_repeated_from_its_state_and_the_next_ones_follow(stream, wrap):
    first = Shuffled(stream, 120, 3)
    passing, states, passes = wrap(first), [], []
    for _ in range(3):
        states.append(json.dumps(first.state()))
        passes.append(labels(passing))
    assert passes[0] != passes[1] != passes[2]
    again = Shuffled(stream, 120, 99)
    again.restore(json.loads(states[1]))
    assert [labels(wrap(again)), labels(wrap(again))] == passes[1:]


@pytest.mark.parametrize(
    "state", [{}, {"bit_generator": "MT19937"}, {"bit_generator": "PCG64", "state": {"state": "x", "inc": 1}}]
)
def test_what_is_no_state_is_refused_and_changes_nothing(stream, state):
    shuffled = Shuffled(stream, 10, 0)
    before = shuffled.state()
    with pytest.raises(ValueError, match="generator is damaged"):
        shuffled.restore(state)
    assert shuffled.state() == before
    with pytest.raises(ValueError, match="window must be an integer of at least 1, got 0"):
        Shuffled(stream, 0)
    with pytest.raises(TypeError, match=r"seed must be None, an integer or a numpy\.random\.Generator: "):
        Shuffled(stream, 5, "a")
