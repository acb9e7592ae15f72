"""A bounded shuffle: windows of consecutive rows, each in a new seeded random order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onlinear.streams.blocks import Block, Stream, Wrapped, permute_blocks
from onlinear.streams.leaving import are_left
from onlinear.text.form import check_whole


class Shuffled(Wrapped):
    """The rows of a stream, every ``window`` consecutive ones in a random order: a bounded shuffle.

    One generator serves all passes, so with a window of all n rows pass p has the p-th permutation of n, as an estimator's
    ``fit(shuffle=True, random_state=seed)`` has. Up to ``window`` rows and one block are in memory.

    Parameters
    ----------
    stream : Stream
        The stream to shuffle.
    window : int
        The number of rows that are permuted together, at least 1.
    seed : int or numpy.random.Generator, optional
        The seed of ``numpy.random.default_rng``. Default: another order every time.

    Examples
    --------
    >>> from onlinear import streams
    >>> shuffled = streams.Shuffled(streams.open("iris"), window=150, seed=0)
    >>> block = next(iter(shuffled))
    >>> sorted(block.lines.tolist()) == list(range(1, 151))
    True
    """

    def __init__(self, stream: Stream, window: int, seed: int | np.random.Generator | None = None) -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"stream must be what streams.open gives, got {stream!r}.")
        super().__init__(stream)
        self.window = check_whole("window", window, 1)
        self.comes_again = False  # whether a run that leaves its pipe will be given the rows again
        try:
            self._generator = np.random.default_rng(seed)
        except (TypeError, ValueError) as error:
            raise type(error)(f"seed must be None, an integer or a numpy.random.Generator: {error}") from None

    def state(self) -> dict[str, Any]:
        """The state of the generator, for JSON. Between two passes it is the state that the next pass begins with."""
        return dict(self._generator.bit_generator.state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Let the next pass begin with this state of the generator. Raises ValueError where it is none."""
        before = self.state()
        try:
            self._generator.bit_generator.state = dict(state)
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            self._generator.bit_generator.state = before
            raise ValueError(f"the state of the shuffle's generator is damaged ({type(error).__name__}: {error}).") from None

    def __iter__(self) -> Iterator[Block]:
        held: list[Block] = []
        count = 0
        for block in self._stream:
            first = 0
            while count + block.n - first >= self.window:
                last = first + self.window - count
                held.append(block.cut(first, last))
                yield self._permute(held)
                held, count, first = [], 0, last
            if first < block.n:
                held.append(block.cut(first, block.n))
                count += block.n - first
        if held and not (self.comes_again and are_left()):  # given again, the window is whole, and in another order
            yield self._permute(held)

    def _permute(self, held: Sequence[Block]) -> Block:
        return permute_blocks(held, self._generator.permutation(sum(block.n for block in held)))
