"""Marks rows of a stream as held out, by their number before any shuffle: blocks and order do not change which."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from onlinear.streams.blocks import Block, Stream, Wrapped

FINEST = 10**6  # the largest denominator of a share, which keeps row numbers times it within 64 bits


class Marked(Wrapped):
    """A stream of which an even share of the rows is marked as held out.

    Row i (from 1) is held out where floor(i share) > floor((i - 1) share): rows 10, 20, 30, ... for a share of 1/10.
    """

    def __init__(self, stream: Stream, share: float | Fraction) -> None:
        super().__init__(stream)
        self.share = Fraction(share if 0 < share < 1 else 0).limit_denominator(FINEST)  # nan and infinity are no fractions
        if not 0 < self.share < 1:
            raise ValueError(
                f"the share of rows to hold out (--holdout) must be between 0 and 1 (and at least 1e-6), got {share}."
            )

    @property
    def rows(self) -> int | None:  # type: ignore[override]
        """Rows in a pass that are learned, where known."""
        rows = self._stream.rows
        return None if rows is None else rows - int(rows * self.share)

    def __iter__(self) -> Iterator[Block]:
        p, q = self.share.numerator, self.share.denominator
        before = 0
        for block in self._stream:
            numbers = before + np.arange(block.n + 1)
            yield block._replace(held=np.diff(numbers * p // q) > 0)
            before += block.n
