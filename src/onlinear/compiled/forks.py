"""A fork waits until no code is being made. Else the child, which has one thread, would find the compiler as another thread had
left it, and the locks of what is made taken for ever."""

from __future__ import annotations

import os
import threading
from bisect import insort
from collections.abc import Callable
from operator import itemgetter
from typing import Any

IMPORTING, COMPILING, LINKING = range(3)  # in the order in which locks are taken where one is held at another
_lasting: list[tuple[int, Any]] = []  # locks that a fork waits for, each with its place in that order
_taken: list[Any] = []  # by the fork that has the first of them
_making: dict[Callable[..., Any], threading.RLock] = {}  # of what makes something once: new ones in a child


def lasting(lock: Any, place: int) -> Any:
    """Let forks wait for a lock; gives it."""
    insort(_lasting, (place, lock), key=itemgetter(0))
    return lock


def making(make: Callable[..., Any]) -> threading.RLock:
    """The lock of whoever makes something. The child of a fork has its own: nobody there is at work."""
    return _making.setdefault(make, threading.RLock())


def _before() -> None:
    for _, lock in _lasting:  # there may be more of them once the first is had
        lock.acquire()
        _taken.append(lock)


def _after() -> None:
    taken = _taken[::-1]
    _taken.clear()
    for lock in taken:
        lock.release()


def _in_child() -> None:
    _making.clear()
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
