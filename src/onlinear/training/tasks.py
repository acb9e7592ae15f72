"""The tasks of a run, for those who watch it: passes over the rows, blocks of rows, readings that certify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PASS, BLOCK, READING, PENALTY = "pass", "block", "reading", "penalty"
Attributes = dict[str, Any]


class Tasks:
    """Is told which tasks begin and end, and may ask for an early end. This one tells nobody and asks for nothing."""

    stopped = False  # whether an early end was asked for

    def start(self, task: str | None, most: int | None, fitted: Callable[[], Attributes | None] | None = None) -> None:
        """Begin a run of tasks of one kind, of which there are at most so many; None where their number is not known.

        ``fitted`` gives the attributes that make a copy of the estimator predict as after the task that has ended; None where
        it cannot.
        """

    @contextmanager
    def around(self, task: str, other: Any) -> Iterator[None]:
        """A task in which another estimator is fitted, which tells of its own."""
        yield

    def begin(self, task: str) -> None:
        """Say that a task begins."""

    def end(self, task: str) -> bool:
        """Say that a task has ended; whether no other shall follow."""
        return False


NOBODY = Tasks()
