"""Ctrl-C and SIGTERM: the first asks the run to stop after a whole row, the second stops it at once.

A run that reads pipes learns what they have given so far, as they would give it to nobody again.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlinear.streams.leaving import Leaving
    from onlinear.training.training import Training


INTERRUPTED = 130  # the exit code
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_with_a_word() -> None:
    """Let signals end the process in the command's words until ``Interrupts`` takes them: while it is imported, and its line is
    read."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell asks for a command in the background
                signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    if sys.stderr is not None:
        sys.stderr.write("onlinear: interrupted.\n")
    sys.exit(INTERRUPTED)


class Interrupts:
    """While it is entered, signals go to a run, once it has begun, or end the command. ``pipes``: what is asked before, to
    leave the pipes that the run reads."""

    def __init__(self, pipes: Leaving | None = None) -> None:
        self._before: dict[int, Any] = {}
        self._training: Training | None = None
        self._pipes = pipes
        self._asked = False

    def follow(self, training: Training) -> None:
        """Tell this run of signals, and of the one that came before."""
        self._training = training
        training.ending = self._asked

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # the only one that may set handlers
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: set by no Python code
        if self._asked and self._training is None:
            raise KeyboardInterrupt from None  # the pipes gave too little to begin

    def _handle(self, number: int, frame: FrameType | None) -> None:
        from onlinear.training.events import Interrupted

        training = self._training
        if self._asked:
            raise KeyboardInterrupt
        if self._pipes is not None and self._pipes.leave():
            self._asked = True
            if training is not None:
                training.ending = True
            return
        if training is None:
            raise KeyboardInterrupt
        self._asked = training.stopping = True
        if training.waiting:
            raise Interrupted
