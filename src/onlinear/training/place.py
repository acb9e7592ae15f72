"""Where a run stands in its stream: its pass, the rows it has taken from it, and checksums of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from onlinear.learner.stored_learner import Header
from onlinear.streams import Block, Shuffled, Stream, StreamError
from onlinear.streams.blocks import refuse_no_rows
from onlinear.streams.leaving import are_left
from onlinear.training.options import decides


class Trace:
    """Checksums of the rows of a pass so far: their labels and their numbers of entries, whatever the blocks."""

    def __init__(self, sums: Sequence[int] = (0, 0)) -> None:
        self.sums = tuple(sums)

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        labels, lengths = self.sums
        entries = np.diff(block.rows.indptr)
        lengths = zlib.crc32(np.ascontiguousarray(entries).data, lengths)
        self.sums = zlib.crc32(np.ascontiguousarray(block.y).data, labels), lengths


class Place:
    """The place of a run in its stream."""

    def __init__(self, stream: Stream, shuffled: Shuffled | None) -> None:
        self.stream, self._shuffled = stream, shuffled
        self.number = 0  # passes that are whole
        self.consumed = 0  # rows taken from this pass, held-out ones too
        self.rows = 0  # rows learned, over all passes
        self.trace = Trace()
        self.generator: dict[str, Any] = {}  # the state of the shuffle at the start of this pass
        self.text_before = stream.text_bytes  # bytes that other passes had read before the first row of this run was
        self._head: list[Block] = []
        self._blocks: Iterator[Block] = iter(())

    def begin_pass(self) -> None:
        """Open the stream for a pass."""
        if self._shuffled is not None:
            self.generator = self._shuffled.state()
        self._blocks = iter(self.stream)

    def restart(self) -> None:
        """Open the stream again for the pass that has begun."""
        if self._shuffled is not None:
            self._shuffled.restore(self.generator)
        self.text_before = self.stream.text_bytes
        self.begin_pass()

    def again(self) -> Iterator[Block]:
        """The rows of the last pass once more, in the same order; the place stays where it is."""
        if self._shuffled is not None:
            self._shuffled.restore(self.generator)
        return iter(self.stream)

    def end_pass(self) -> None:
        """Move to the start of the next pass."""
        self.number, self.consumed, self.trace = self.number + 1, 0, Trace()
        self._blocks = iter(())  # a pass that ends early leaves its stream

    def blocks(self) -> Iterator[Block]:
        """The blocks of this pass that have not been taken."""
        return self._blocks

    def peek(self) -> list[Block]:
        """The first blocks, which ``rest`` gives once more. An error among them waits until the rows before it are learned."""
        self._head, rows, entries = [], 0, 0
        while not decides(rows, entries):
            try:
                block = next(self._blocks, None)
            except Exception as error:
                if not self._head:
                    raise
                self._blocks = _raise_later(error)
                return self._head
            if block is None:
                break
            self._head.append(block)
            rows += block.n
            entries += len(block.rows.indices)
        refuse_no_rows(self.stream.name, rows)
        return self._head

    def rest(self, pass_again: Callable[[Block, int], None]) -> Iterator[Block]:
        """The blocks of this pass from the place where the run stands.

        The rows before it are compared with those that the run had read, and given to ``pass_again`` with the place of the
        first of them in the pass.
        """
        blocks, self._head = chain(self._head, self._blocks), []
        start, wanted = self.consumed, self.trace.sums
        trace, place = Trace(), 0
        for block in blocks:
            if place < start:
                seen = block.cut(0, min(block.n, start - place))
                trace.add(seen)
                pass_again(seen, place)
                place += seen.n
                if place == start and trace.sums != wanted:
                    raise StreamError(f"{self.stream.name}: the first {place:,} rows are not those that the run had read.")
                block = block.cut(seen.n, block.n)
            if block.n:
                yield block
        if place < start and not are_left():
            raise StreamError(f"{self.stream.name}: has {place:,} rows, and the run had read {start:,}.")

    def restore(self, run: Header) -> None:
        """Take the place that a checkpoint tells."""
        self.number, self.consumed, self.rows = run["pass"], run["consumed"], run["rows"]
        self.trace, self.generator = Trace(run["trace"]), run["generator"]


def _raise_later(error: Exception) -> Iterator[Block]:
    yield from ()
    raise error
