"""Ctrl-C, SIGTERM and a terminal that hangs up: the first asks the run to stop after a whole row, the second stops it at once.

A run that reads pipes learns what they have given so far, as they would give it to nobody again. A signal that whoever started
the process has it ignore, as a shell does for a command in the background and ``nohup`` for hang-ups, is left ignored.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from onlinear.streams.leaving import Leaving
    from onlinear.training.training import Training


INTERRUPTED = 130  # the exit code
HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, HANG_UP)))


def end_with_a_word() -> None:
    """Let signals end the process in the command's words until ``Interrupts`` takes them: while it is imported, and its line is
    read."""
    _hand_to(_end)


def _hand_to(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Hand signals to ``handler``; who had them before."""
    if threading.current_thread() is not threading.main_thread():  # the only one that may
        return {}
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def _end(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):  # of a terminal that is gone
        if sys.stderr is not None:
            sys.stderr.write("onlinear: interrupted.\n")
    sys.exit(INTERRUPTED)


class Stopped(KeyboardInterrupt):
    """A signal stops the command. Where Python's own class has passed through text that is evaluated, as named tuples are made,
    ``python -m`` forgets the exit code and ends by SIGINT."""


class Interrupts:
    """While it is entered, signals go to a run, once it has begun, or end the command. ``pipes``: what is asked before, to
    leave the pipes that the run reads."""

    def __init__(self, pipes: Leaving | None = None) -> None:
        self._before: dict[int, Any] = {}
        self._training: Training | None = None
        self._pipes = pipes
        self._asked = self._stopped = False

    def follow(self, training: Training) -> None:
        """Tell this run of signals, and of the one that came before."""
        self._training = training
        training.ending = self._asked

    def __enter__(self) -> Interrupts:
        self._before = _hand_to(self._handle)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: set by no Python code
        if self._asked and self._training is None:
            raise Stopped from None  # the pipes gave too little to begin
        if self._stopped and isinstance(error, ImportError):
            raise Stopped from None  # which NumPy, stopped while it is imported, makes an error of its own

    def _handle(self, number: int, frame: FrameType | None) -> None:
        training = self._training
        if number == HANG_UP and (self._asked or self._stopped):  # a shell passes on what the terminal has said already
            return
        if self._asked:
            self._stop()
        if self._pipes is not None and self._pipes.leave():
            self._asked = True
            if training is not None:
                training.ending = True
            return
        if training is None:
            self._stop()
        else:
            self._asked = training.stopping = True
            if training.waiting:
                from onlinear.training.events import Interrupted  # there, as a run is

                raise Interrupted

    def _stop(self) -> NoReturn:
        self._stopped = True
        raise Stopped
