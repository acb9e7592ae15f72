"""Signals wait where what their handlers raise would leave things in pieces: Ctrl-C, a timeout by SIGALRM, a SIGTERM.

While Numba loads or compiles: once it was stopped at that, it compiles nothing more in the process. While a model learns rows:
stopped among them, its outputs, sums and scales would have learned different ones.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what ``signal`` wraps: a tenth of its time, and a few rows take no longer than that
import os
from _thread import get_ident
from collections.abc import Callable
from threading import local
from typing import Any

REAL_TIME = 32  # the first number of signals that nothing raises by itself
# Signals of a fault, whose instruction runs again until they are heard; and those that no handler hears.
AT_ONCE = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTRAP")

_known = {int(number) for number in _signal.valid_signals() if number < REAL_TIME}
HELD = tuple(sorted(_known - {getattr(_signal, name, 0) for name in AT_ONCE}))
NONE: dict[int, Callable[..., Any]] = {}
getsignal = _signal.getsignal


class Hold:
    """Holds back what Python handlers of signals do until the block has ended: then each is called once, in the order in which
    the signals came. Other threads than the main one are never interrupted. Blocks within the block leave it to that."""

    __slots__ = "_asked", "_before", "_thread"

    _asked: dict[int, tuple[Any, ...]] | None

    def __enter__(self) -> None:
        global _holding
        self._before = NONE
        if _holding is not None or _place.refuses:
            return
        before = {number: handler for number in HELD if callable(handler := getsignal(number))}
        if not before or (_place.refuses is None and _is_refused(before)):
            return
        self._asked, self._thread = {}, get_ident()
        try:
            for number in before:
                _signal.signal(number, self._ask)
            self._before, _holding = before, self
        except BaseException:  # what a handler raised that was not held yet
            self._before = before
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        global _holding
        if self._before:
            _holding = None
            try:
                self.put_back()
            except BaseException:  # what a handler raised that was back before the others
                self.put_back()
                raise
            finally:
                asked, self._asked = self._asked, None
                if asked:
                    self._tell(list(asked.items()))

    def put_back(self) -> None:
        """Let the handlers hear signals as before."""
        for number, handler in self._before.items():
            _signal.signal(number, handler)

    def _tell(self, asked: list[tuple[int, tuple[Any, ...]]]) -> None:
        """Call the handlers of these signals, the later ones too where an earlier one raises."""
        if asked:
            number, args = asked[0]
            try:
                self._before[number](*args)
            finally:
                self._tell(asked[1:])

    def _ask(self, number: int, *args: Any) -> None:
        if self._asked is None:  # the block has ended; the handler was not put back, as others raised
            self._before[number](number, *args)
        else:
            self._asked.setdefault(number, (number, *args))

    @property
    def is_gone(self) -> bool:
        """Whether the block runs in another thread, which a forked child does not have."""
        return self._thread != get_ident()


class _Place(local):
    """Whether this thread may set no handlers, as all but the main one; None where that is not known yet."""

    refuses: bool | None = None


_holding: Hold | None = None  # what holds the signals of the process
_place = _Place()


def uninterrupted() -> Hold:
    """What holds signals back, as a context."""
    return Hold()


def _is_refused(handlers: dict[int, Callable[..., Any]]) -> bool:
    """Find out whether this is not the main thread, or not the main interpreter: it may not set a handler to what it is."""
    try:
        _signal.signal(*next(iter(handlers.items())))
        _place.refuses = False
    except ValueError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # a handler raised it, in its own frame
            raise
        _place.refuses = True
    return _place.refuses


def _after_fork() -> None:
    global _holding, _place
    _place = _Place()  # this thread is the main one now
    if _holding is not None and _holding.is_gone:
        _holding.put_back()
        _holding = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
