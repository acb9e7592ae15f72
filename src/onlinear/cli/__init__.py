"""The command ``onlinear``, which is public; its modules are not. ``training/`` has the run itself, imported when needed.

One module per command; each registers itself when ``app`` is first asked for. Until then little is imported: an interrupt finds
``main`` at work.
"""

import io
import logging
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from onlinear.cli.interrupts import end_with_a_word

if TYPE_CHECKING:
    from onlinear.cli.command import Application, app

__all__ = ["app", "convert", "evaluate", "explain", "inspect", "main", "parts", "predict", "report", "reproduce", "train"]


def __getattr__(name: str) -> Any:
    """The application, with all commands."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return application()


def application() -> "Application":
    """Import the commands, each of which registers itself."""
    from onlinear.cli import convert, evaluate, explain, inspect, parts, predict, report, reproduce, train  # noqa: F401
    from onlinear.cli.command import app

    return app


def main() -> None:
    """Run the command, which has its own words for the time that kernels take to compile."""
    end_with_a_word()
    hold_numbers()
    if os.environ.get("COLUMNS") == "0":  # of a terminal without a size: Rich would show nothing
        del os.environ["COLUMNS"]
    from onlinear.files.standard_streams import whole_or_named

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = whole_or_named(sys.stdout)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = whole_or_named(sys.stderr, "standard error", by_lines=True)
    logging.getLogger("onlinear.compiling").disabled = True
    warnings.formatwarning = plainly  # type: ignore[assignment]
    try:
        application()()
    except OSError as error:  # of a help page, which no command has written
        from onlinear.cli.command import words

        sys.exit(plainly(words(error)).strip())


def hold_numbers() -> None:
    """Give the numbers of standard streams that are closed to what can be neither read nor written: else the next files that
    are opened have them, and are what ``/dev/stdin`` and ``/dev/stdout`` name."""
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the smallest number that is free


def plainly(message: Any, *where: Any) -> str:
    """A warning as a line of the command, without the place in its code."""
    return f"onlinear: {message}\n"
