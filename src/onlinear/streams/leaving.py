"""A run that is asked to end leaves its pipes: what they have given so far is the end of the rows.

Whoever reads a pipe waits for its bytes, or for the run to leave it. Nothing else would end that wait, and a pipe gives its
rows once: those that fill no block yet would be lost.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import Any

_current: Leaving | None = None


class Leaving:
    """While it is entered, pipes that are opened can be left, with ``leave``."""

    def __init__(self) -> None:
        self.left = False
        self.pipes = 0  # that were opened
        self._woken, self._wakes = os.pipe()
        self._before: Leaving | None = None

    def __enter__(self) -> Leaving:
        global _current
        self._before, _current = _current, self
        return self

    def __exit__(self, *_: object) -> None:
        global _current
        _current = self._before
        os.close(self._wakes)  # which wakes whoever still reads
        os.close(self._woken)

    def leave(self) -> bool:
        """End the rows of the pipes, from any thread and from a signal's handler; False where none was opened."""
        if self.pipes and not self.left:
            self.left = True
            os.write(self._wakes, b".")
        return self.left

    def opened(self, raw: Any) -> None:
        """Count a pipe that can be waited for."""
        with suppress(OSError, ValueError):
            select.select([raw, self._woken], [], [], 0.0)
            self.pipes += 1

    def wait(self, raw: Any) -> None:
        """Wait until a pipe has bytes or its end, or is left."""
        with suppress(OSError, ValueError):  # what cannot be waited for is read
            select.select([raw, self._woken], [], [])


def opened(raw: Any) -> None:
    """Say that a pipe will be read."""
    if _current is not None:
        _current.opened(raw)


def has_bytes(raw: Any) -> bool:
    """Wait for the bytes of a pipe, or its end; False where the run leaves it."""
    current = _current
    if current is not None and current.pipes and not current.left:
        current.wait(raw)
    return current is None or not current.left


def are_left() -> bool:
    """Whether the run takes no more bytes of any file."""
    return _current is not None and _current.left
