"""Pieces of rows that an average scores together, before the first of them is learned.

A piece has at most an eighth of the rows so far. Where it ends follows from the rows' numbers and entries alone, so rows wait
until theirs is whole: how a stream is cut into blocks changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onlinear.streams import Block
from onlinear.streams.blocks import joined
from onlinear.training.intake import drop_held
from onlinear.training.place import Place

PIECE = 8192  # rows that an average scores together, at most
ENTRIES = 1 << 17  # non-zeros after which such a piece ends
STALE = 8  # the rows so far over such a piece, at least
LONGEST = 8192  # places in a pass where such a piece ends at the latest


class Pieces:
    """Collects rows until their piece is whole. ``waiting``: rows whose piece is not; ``scored``: rows that were scored."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.waiting: list[Block] = []
        self.scored = 0

    def collect(self, block: Block) -> Iterator[Block]:
        """Take rows in, and give the pieces that they make whole."""
        while block.n:
            rows = [drop_held(part) for part in self.waiting]
            wanted = self._end - self._place.rows - sum(part.n for part in rows)
            room = LONGEST - (self._place.consumed + sum(part.n for part in self.waiting)) % LONGEST
            seen = min(block.n, room, wanted if block.held is None else room)
            held = np.zeros(seen, bool) if block.held is None else block.held[:seen]
            entries = np.where(held, 0, np.diff(block.rows.indptr[: seen + 1])).cumsum()
            most = ENTRIES - sum(len(part.rows.indices) for part in rows)
            ends = int(np.searchsorted((~held).cumsum(), wanted)), int(np.searchsorted(entries, most)), room - 1
            last = min(*ends, block.n - 1) + 1
            self.waiting.append(block.cut(0, last))
            whole = last == min(ends) + 1
            block = block.cut(last, block.n)
            if whole:
                yield joined(self.waiting) if len(self.waiting) > 1 else self.waiting[0]

    @property
    def _end(self) -> int:
        """The row count at which the piece at work ends: it follows from the row count."""
        rows = self._place.rows
        if self.scored > rows:  # a checkpoint was written within a piece
            return self.scored
        size = min(PIECE, 1 << max(0, (rows // STALE).bit_length() - 1))
        return (rows // size + 1) * size
