"""Ctrl-C waits where it would leave things in pieces.

While Numba loads or compiles: once it was stopped at that, it compiles nothing more in the process. While a model learns rows:
stopped among them, its outputs, sums and scales would have learned different ones.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what ``signal`` wraps: a tenth of its time, and a few rows take no longer than that
from collections.abc import Callable
from typing import Any

INTERRUPT = _signal.SIGINT


class Hold:
    """Holds back what Ctrl-C asks for until the block has ended. Other threads than the main one are never interrupted."""

    __slots__ = "_asked", "_before"

    _before: Callable[..., Any] | None

    def __enter__(self) -> None:
        self._asked: tuple[Any, ...] | None = None
        self._before = None
        before = _signal.getsignal(INTERRUPT)
        if callable(before):
            try:
                _signal.signal(INTERRUPT, self._ask)
            except ValueError:  # not the main thread, or not the main interpreter
                return
            self._before = before

    def __exit__(self, *_: object) -> None:
        before = self._before
        if before is not None:
            _signal.signal(INTERRUPT, before)
            if self._asked is not None:
                before(*self._asked)

    def _ask(self, *args: Any) -> None:
        if self._asked is None:
            self._asked = args


def uninterrupted() -> Hold:
    """What holds Ctrl-C back, as a context."""
    return Hold()
