"""Who runs tasks: threads or processes of this machine. Dask is another (``onlinear.dask``)."""

from __future__ import annotations

import signal
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial, reduce
from itertools import islice
from multiprocessing import connection, get_context
from typing import Any, Protocol

from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.shards.sources import Shard
from onlinear.streams import StreamError
from onlinear.text.form import check_whole
from onlinear.threads import begin_worker, begun_deaf

ATTEMPTS = 3  # at tasks whose workers died
AHEAD = 2  # tasks for each worker that are begun before their results are taken
Task = Callable[..., Any]


class Runner(Protocol):
    """Runs a task on all shards."""

    def reduce(self, task: Task, shards: Sequence[Any], *asked: Any) -> Any:
        """The results of ``task(shard, *asked)``, merged by the tree of ``Tree``."""

    def map(self, task: Task, shards: Sequence[Any], *asked: Any) -> Generator[Any, None, None]:
        """The results of ``task(shard, *asked)`` in the order of the shards."""

    def rotate(self, task: Task, shards: Sequence[Any], carried: Sequence[bytes], *asked: Any) -> list[bytes]:
        """Each of ``carried`` after all shards in their order: it becomes ``task(shard, it, *asked)``."""


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

    Notes
    -----
    Where a process dies, a warning says so, and the tasks that were lost run again, twice at most. Where ``with`` is left by an
    error, such as Ctrl-C, processes end in the middle of their tasks.

    Examples
    --------
    >>> from onlinear.shards import Blocks, Local, survey
    >>> shards = [Blocks("a", (([[1.0, 0.0]], [1]),)), Blocks("b", (([[3.0, 2.0]], [0]),))]
    >>> found = Local(workers=2).reduce(survey, shards, True)
    >>> found.rows, found.counts.tolist(), found.squares.tolist(), found.labels
    (2, [2.0, 1.0], [10.0, 4.0], {1.0: 1.0, 0.0: 1.0})
    """

    def __init__(self, workers: int = 1, processes: bool = False) -> None:
        self.workers, self.processes = check_whole("workers", workers, 1), processes
        self._pool: Executor | None = None
        self._open: connection.Connection | None = None  # until worker processes are to end at once

    def __enter__(self) -> Local:
        if self.processes:
            context = get_context("spawn")
            closed, self._open = context.Pipe(duplex=False)
            asked = signal.SIG_DFL, closed  # Ctrl-C ends a worker in silence
            self._pool = ProcessPoolExecutor(self.workers, context, begin_worker, asked)
        elif self.workers > 1:
            self._pool = ThreadPoolExecutor(self.workers)
        return self

    def __exit__(self, kind: object = None, *error: object) -> None:
        if kind is not None:
            self._end_processes()  # nobody waits for their results any more
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._end_processes()

    def _end_processes(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def reduce(self, task: Task, shards: Sequence[Shard], *asked: Any) -> Any:
        """The results of ``task(shard, *asked)``, merged by the tree of ``Tree``."""
        tree = Tree()
        for result in self.map(task, shards, *asked):
            tree.add(result)
        return tree.result()

    def map(self, task: Task, shards: Sequence[Shard], *asked: Any) -> Generator[Any, None, None]:
        """The results of ``task(shard, *asked)`` in the order of the shards; few are begun before theirs is taken."""
        if self._pool is not None:
            yield from self._in_order(partial(_call, task, asked), shards)
        elif self.processes or self.workers > 1:
            with self:
                yield from self._in_order(partial(_call, task, asked), shards)
        else:
            yield from (task(shard, *asked) for shard in shards)

    def rotate(self, task: Task, shards: Sequence[Shard], carried: Sequence[bytes], *asked: Any) -> list[bytes]:
        """Each of ``carried`` after all shards in their order: it becomes ``task(shard, it, *asked)``."""
        if self._pool is None and (self.processes or self.workers > 1):
            with self:
                return self._rotate(partial(_carry, task, asked), shards, list(carried))
        if self._pool is None:
            return [reduce(lambda it, shard: task(shard, it, *asked), shards, each) for each in carried]
        return self._rotate(partial(_carry, task, asked), shards, list(carried))

    def _rotate(self, call: Task, shards: Sequence[Shard], carried: list[bytes]) -> list[bytes]:
        """``rotate`` on the pool: what is carried goes on to its next shard as soon as it is back from the one before."""
        place, deaths = [0] * len(carried), 0
        running: dict[Future[Any], int] = {}
        waiting = [k for k in range(len(carried)) if shards]
        while waiting or running:
            try:
                running |= {self._submit(call, shards[place[k]], carried[k]): k for k in waiting}
                waiting = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    carried[running[future]] = future.result()
                    k = running.pop(future)
                    place[k] += 1
                    waiting += [k] * (place[k] < len(shards))
            except BrokenProcessPool as error:
                deaths += 1
                self._begin_again(deaths, error)
                waiting, running = [k for k in range(len(carried)) if place[k] < len(shards)], {}
        return carried

    def _begin_again(self, deaths: int, error: BrokenProcessPool) -> None:
        """Start new workers after a death; raises RuntimeError after too many."""
        if deaths == ATTEMPTS:
            raise RuntimeError(
                f"worker processes died {deaths} times. Do they lack memory? Make smaller shards, or run fewer workers."
            ) from error
        warnings.warn("a worker process died; what it had is done again.", RuntimeWarning, stacklevel=4)
        self.__exit__()
        self.__enter__()

    def _in_order(self, call: Task, shards: Sequence[Shard]) -> Generator[Any, None, None]:
        rest, deaths = iter(shards), 0
        begun: deque[tuple[Shard, Future[Any] | None]] = deque()  # None: to be begun again
        while True:
            begun.extend((shard, None) for shard in islice(rest, AHEAD * self.workers - len(begun)))
            if not begun:
                return
            try:
                self._begin(call, begun)
                future = begun[0][1]
                assert future is not None
                result = future.result()
            except BrokenProcessPool as error:
                deaths += 1
                self._begin_again(deaths, error)
                begun = deque((shard, None) for shard, _ in begun)
                continue
            begun.popleft()
            yield result

    def _begin(self, call: Task, begun: deque[tuple[Shard, Future[Any] | None]]) -> None:
        for place, (shard, future) in enumerate(begun):
            if future is None:
                begun[place] = shard, self._submit(call, shard)

    def _submit(self, call: Task, *given: Any) -> Future[Any]:
        assert self._pool is not None
        if not self.processes:
            return self._pool.submit(call, *given)
        with uninterrupted(), begun_deaf():  # a process that is half begun would say so
            return self._pool.submit(call, *given)


def _call(task: Task, asked: Sequence[Any], shard: Shard) -> Any:
    return task(shard, *asked)


def _carry(task: Task, asked: Sequence[Any], shard: Shard, it: bytes) -> bytes:
    return task(shard, it, *asked)
