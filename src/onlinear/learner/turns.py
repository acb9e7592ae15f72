"""Turns: one thread at a time uses a learner, and a fork leaves the child with learners that it can use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakSet


class Guarded:
    """What one thread uses at a time.

    ``lock``: held by whoever uses it; ``reads_only``: whether the holder changes nothing; ``torn``: whether another thread was
    changing it when this process was forked.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.reads_only = self.torn = False

    def begin_turns(self) -> None:
        """Have ``after_fork`` called from now on: the object is whole."""
        _GUARDED.add(self)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nothing changes inside the block."""
        with self.lock:
            before, self.reads_only = self.reads_only, True
            try:
                yield
            finally:
                self.reads_only = before

    def after_fork(self) -> None:
        """Free a lock that a thread of the parent held. What that thread was changing is torn."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
        else:
            self.lock = threading.RLock()
            self.torn, self.reads_only = not self.reads_only, False


Method = TypeVar("Method", bound=Callable[..., Any])


def changes(method: Method) -> Method:
    """Decorator: no other thread reads or changes the object during the call."""

    @wraps(method)
    def alone(self: Guarded, *args: Any, **settings: Any) -> Any:
        with self.lock:
            return method(self, *args, **settings)

    return alone  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """Decorator: no other thread changes the object during the call."""

    @wraps(method)
    def alone(self: Guarded, *args: Any, **settings: Any) -> Any:
        with self.reading():
            return method(self, *args, **settings)

    return alone  # type: ignore[return-value]


_GUARDED: WeakSet[Guarded] = WeakSet()


def _after_fork() -> None:
    for guarded in _GUARDED:
        guarded.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
