"""Threads that work for another one, which does the work itself where the system has no thread to give; and those of BLAS. And
processes that work for another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock, Thread
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


class OneBlasThread:
    """Keeps BLAS on one thread while somebody is within: sums then do not depend on the machine, and small products are faster.

    The number of its threads is the process's. So the first to come sets it, and the last to go puts back what was.
    """

    def __init__(self) -> None:
        self._lock, self._within = Lock(), 0
        self._found: Any = None
        self._before: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._within == 0:
                self._free()
                self._before = self._libraries().limit(limits=1)
            self._within += 1

    def _libraries(self) -> Any:
        """Those of NumPy and SciPy. To search for them takes longer than a small fit."""
        if self._found is None:
            import scipy.linalg  # noqa: F401  (its library is searched for too, so it must be loaded)
            from threadpoolctl import ThreadpoolController

            self._found = ThreadpoolController().select(user_api="blas")
        return self._found

    def _free(self) -> None:
        """Let any thread set the number: threadpoolctl leaves it to the first thread that did, for as long as that lives."""
        for library in self._libraries().lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0:
                self._free()
                self._before.restore_original_limits()
                self._free()

    def after_fork(self) -> None:
        """The lock may have been another thread's, which the child does not have."""
        self._lock = Lock()


@contextmanager
def begun_deaf() -> Iterator[None]:
    """Processes that are started within hear Ctrl-C once they call ``begin_worker``: one that imports would show where.

    The process that Python starts beside them hears no terminal that hangs up: the others would miss it, and say so."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        ensure_running()  # it opens what is closed here, where it begins
        signal.pthread_sigmask(signal.SIG_SETMASK, {*before, signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(handler: signal.Handlers, *closed: Any) -> None:
    """Let this process of a pool, which began deaf, meet Ctrl-C as ``handler`` says; and end once the process that started it
    is gone, or has closed the other end of a pipe in ``closed``."""
    signal.signal(signal.SIGINT, handler)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with_parent, args=closed, daemon=True).start()


def _end_with_parent(*closed: Any) -> None:
    from multiprocessing import connection, parent_process

    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel, *closed])
    os._exit(1)


one_blas_thread = OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_blas_thread.after_fork)
