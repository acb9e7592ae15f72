"""Ctrl-C and SIGTERM: the first asks the run to stop after a whole row, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlinear.training.training import Training


class Interrupts:
    """While it is entered, signals go to ``training``, or end the command where there is none yet."""

    training: Training | None = None

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._asked = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # the only one that may set handlers
            self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: set by no Python code

    def _handle(self, number: int, frame: FrameType | None) -> None:
        from onlinear.training.events import Interrupted

        if self.training is None or self._asked:
            raise KeyboardInterrupt
        self._asked = self.training.stopping = True
        if self.training.waiting:
            raise Interrupted
