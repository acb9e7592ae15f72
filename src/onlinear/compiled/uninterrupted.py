"""Ctrl-C waits while Numba loads or compiles: once it was stopped at that, it compiles nothing more in the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back what Ctrl-C asks for until the block has ended. Other threads than the main one are never interrupted."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    asked: list[tuple[Any, ...]] = []
    try:
        signal.signal(signal.SIGINT, lambda *args: asked.append(args))
    except ValueError:  # not the main interpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if asked:
            before(*asked[0])
