"""Reads ahead of the consumer, in other threads; blocks, order and errors stay those of the stream."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Event, Semaphore
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from onlinear.streams.blocks import Block, Stream, Timing, Wrapped
from onlinear.threads import Pool, started

BLOCKS = 4
PATIENCE = 1.0  # seconds that closing waits for a read from a pipe, which nothing can interrupt
SEEN = ("task", "classes", "rows", "labels", "encoding", "total", "done", "text_bytes")

Item = TypeVar("Item")
Result = TypeVar("Result")


class Ahead(Wrapped):
    """The blocks of a stream, made in another thread while the consumer works, at most ``blocks`` at a time.

    ``done``, ``errors`` and the like describe the block that was delivered last, not blocks read since. An error arrives
    after the blocks before it. Closing the iterator ends the thread and closes the files. ``timing`` adds who waited for whom.
    """

    def __init__(self, stream: Stream, blocks: int = BLOCKS) -> None:
        if blocks < 1:
            raise ValueError(f"blocks must be at least 1, got {blocks!r}.")
        super().__init__(stream)
        self.blocks = blocks
        self._seen: dict[str, Any] = {}
        self._timing = Timing()
        self._unseen = 0  # bytes of text that were read and not given

    def __getattr__(self, name: str) -> Any:
        if name in SEEN and self._seen:
            return self._seen[name]
        if name == "errors" and self._seen:
            errors, count = self._seen["errors"]
            return errors[:count]
        return super().__getattr__(name)

    @property
    def timing(self) -> Timing:
        """Where the time went, over all passes so far."""
        return self._timing

    def __iter__(self) -> Iterator[Block]:
        # An earlier pass that was left in the middle read more text than it gave.
        self._unseen = self._stream.text_bytes - self.text_bytes
        pace = _Pace(SimpleQueue(), Semaphore(self.blocks), Event())
        thread = started(partial(self._read, pace), f"reading {self.name}")
        if thread is None:
            yield from self._in_turn()
            return
        try:
            while True:
                began = perf_counter()
                ready = pace.ready.get()
                self._timing.wait += perf_counter() - began
                self._seen = ready.seen
                if ready.error is not None:
                    raise ready.error
                if ready.block is None:
                    return
                yield ready.block
                pace.room.release()
        finally:
            pace.stop.set()
            pace.room.release()
            thread.join(None if self.rereadable else PATIENCE)

    def _in_turn(self) -> Iterator[Block]:
        """The blocks, each made when it is asked for, where the system has no thread to give."""
        self._seen = {}
        blocks = iter(self._stream)
        try:
            while (block := self._next_block(blocks)) is not None:
                yield block
        finally:
            if isinstance(blocks, Generator):
                blocks.close()

    def _next_block(self, blocks: Iterator[Block]) -> Block | None:
        began = perf_counter()
        block = next(blocks, None)
        self._count_time(perf_counter() - began)
        return block

    def _read(self, pace: _Pace) -> None:
        """The thread: blocks, then None or the error that ended the pass."""
        error = None
        try:
            self._fill(iter(self._stream), pace)
        except BaseException as raised:
            error = raised
        pace.ready.put(_Ready(None, self._state(), error))

    def _fill(self, blocks: Iterator[Block], pace: _Pace) -> None:
        try:
            while self._has_room(pace):
                block = self._next_block(blocks)
                if block is None:
                    return
                pace.ready.put(_Ready(block, self._state()))
        finally:
            if isinstance(blocks, Generator):
                blocks.close()

    def _has_room(self, pace: _Pace) -> bool:
        """Wait until another block may be made; False if no more are wanted."""
        began = perf_counter()
        pace.room.acquire()
        self._timing.full += perf_counter() - began
        return not pace.stop.is_set()

    def _count_time(self, seconds: float) -> None:
        """Count the time by the stream's own stages; where it measures none, count all as reading."""
        inner = self._stream.timing
        if inner.read or inner.parse:
            self._timing.read, self._timing.parse = inner.read, inner.parse
        else:
            self._timing.read += seconds

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self._stream, name) for name in SEEN} | {
            "errors": (self._stream.errors, len(self._stream.errors)),
            "text_bytes": self._stream.text_bytes - self._unseen,
        }


class _Ready(NamedTuple):
    block: Block | None
    seen: dict[str, Any]
    error: BaseException | None = None


class _Pace(NamedTuple):
    """The queue, the count and the flag that the two threads of one pass share."""

    ready: SimpleQueue[_Ready]
    room: Semaphore
    stop: Event


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(call: Callable[[Item], Result], items: Generator[Item, None, None], threads: int) -> Generator[Result, None, None]:
    """``call`` of each item, in their order, made by ``threads`` threads; no more than ``threads + 1`` results wait.

    An error, of ``items`` or of ``call``, is raised after the results before it. Closing closes ``items``.
    """
    pool = Pool(threads)
    waiting: deque[Future[Result]] = deque()
    more = True
    try:
        while more or waiting:
            while more and len(waiting) <= threads:
                try:
                    waiting.append(pool.submit(call, next(items)))
                except StopIteration:
                    more = False
                except Exception as error:
                    failed: Future[Result] = Future()
                    failed.set_exception(error)
                    waiting.append(failed)
                    more = False
            if waiting:
                yield waiting.popleft().result()
    finally:
        pool.close()
        items.close()
