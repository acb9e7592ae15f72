"""The command ``onlinear``, which is public; its modules are not. ``training/`` has the run itself, imported when needed.

One module per command; each registers itself when it is imported here.
"""

import io
import logging
import sys
import warnings
from typing import Any

from onlinear.cli import convert, evaluate, explain, inspect, parts, predict, report, reproduce, train
from onlinear.cli.command import app, words

__all__ = ["app", "convert", "evaluate", "explain", "inspect", "main", "parts", "predict", "report", "reproduce", "train"]


def main() -> None:
    """Run the command, which has its own words for the time that kernels take to compile."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal or pipe of few letters, as ASCII, cannot show all names
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("onlinear.compiling").disabled = True
    warnings.formatwarning = plainly  # type: ignore[assignment]
    try:
        app()
    except OSError as error:  # of a help page, which no command has written
        sys.exit(plainly(words(error)).strip())


def plainly(message: Any, *where: Any) -> str:
    """A warning as a line of the command, without the place in its code."""
    return f"onlinear: {message}\n"
