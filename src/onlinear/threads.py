"""Threads that work for another one, which does the work itself where the system has no thread to give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any


def started(work: Callable[[], None], name: str | None = None) -> Thread | None:
    """A thread that does the work; None where the system gives none."""
    thread = Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class Pool:
    """Up to ``threads`` threads; without any, work is done where it is submitted."""

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[Any], Any], Any] | None] = SimpleQueue()
        self._threads = [thread for thread in (started(self._work) for _ in range(threads)) if thread is not None]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, call: Callable[[Any], Any], item: Any) -> Future[Any]:
        """What ``call(item)`` will give."""
        found: Future[Any] = Future()
        if self._threads:
            self._jobs.put((found, call, item))
        else:
            _fill(found, call, item)
        return found

    def map(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """What ``call`` gives for each item, in their order."""
        return [found.result() for found in [self.submit(call, item) for item in items]]

    def close(self) -> None:
        """Wait for the work that has begun; drop the rest."""
        try:
            while True:
                self._jobs.get_nowait()
        except Empty:
            pass
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _fill(*job)


def _fill(found: Future[Any], call: Callable[[Any], Any], item: Any) -> None:
    try:
        found.set_result(call(item))
    except BaseException as error:
        found.set_exception(error)
