"""Who runs tasks: threads or processes of this machine. Dask is another (``onlinear.dask``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any, Protocol

from onlinear.shards.sources import Shard
from onlinear.streams import StreamError


class Runner(Protocol):
    """Runs a task on all shards and merges what it gives."""

    def reduce(self, task: Callable[..., Any], shards: Sequence[Shard], *asked: Any) -> Any:
        """The results of ``task(shard, *asked)``, merged by the tree of ``Tree``."""


class Tree:
    """Merges results in the order of the shards, neighbours first: ((0 1) (2 3)) ((4 5) 6). Keeps O(log n) of them."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Any]] = []  # how many shards each stands for, halving

    def add(self, result: Any) -> None:
        """Add the result of the next shard."""
        size = 1
        while self._kept and self._kept[-1][0] == size:
            _, before = self._kept.pop()
            result, size = before.merged(result), 2 * size
        self._kept.append((size, result))

    def result(self) -> Any:
        """All of them as one; raises StreamError where there is none."""
        if not self._kept:
            raise StreamError("expected at least one shard, got none.")
        _, found = self._kept[-1]
        for _, before in reversed(self._kept[:-1]):
            found = before.merged(found)
        return found


class Local:
    """Threads or processes of this machine.

    Parameters
    ----------
    workers : int, default=1
        How many tasks run at a time.
    processes : bool, default=False
        Whether each worker is a process of its own. Threads share memory, and wait for each other outside of kernels.

    Examples
    --------
    >>> from onlinear.shards import Blocks, Local, survey
    >>> shards = [Blocks("a", (([[1.0, 0.0]], [1]),)), Blocks("b", (([[3.0, 2.0]], [0]),))]
    >>> found = Local(workers=2).reduce(survey, shards, True)
    >>> found.rows, found.counts.tolist(), found.squares.tolist(), found.labels
    (2, [2.0, 1.0], [10.0, 4.0], {1.0: 1.0, 0.0: 1.0})
    """

    def __init__(self, workers: int = 1, processes: bool = False) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}.")
        self.workers, self.processes = workers, processes
        self._pool: Executor | None = None

    def __enter__(self) -> Local:
        if self.processes:
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        return self

    def __exit__(self, *error: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def reduce(self, task: Callable[..., Any], shards: Sequence[Shard], *asked: Any) -> Any:
        """The results of ``task(shard, *asked)``, merged by the tree of ``Tree``."""
        tree = Tree()
        with self._map() as run:
            for result in run(partial(_call, task, asked), shards):
                tree.add(result)
        return tree.result()

    @contextmanager
    def _map(self) -> Iterator[Callable[..., Iterator[Any]]]:
        """A map over shards, in their order: of the processes that ``with`` started, or of threads."""
        if self._pool is not None:
            yield self._pool.map
        elif self.processes:
            with self:
                assert self._pool is not None
                yield self._pool.map
        elif self.workers == 1:
            yield map
        else:
            with ThreadPoolExecutor(self.workers) as pool:
                yield pool.map


def _call(task: Callable[..., Any], asked: Sequence[Any], shard: Shard) -> Any:
    return task(shard, *asked)
