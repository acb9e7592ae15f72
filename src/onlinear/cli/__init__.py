"""The command ``onlinear``: options, progress and errors in words. What it runs is in ``training/``, imported when needed.

One module per command; each is found here by its import.
"""

import logging

from onlinear.cli import convert, evaluate, inspect, predict, reproduce, train
from onlinear.cli.command import app

__all__ = ["app", "convert", "evaluate", "inspect", "main", "predict", "reproduce", "train"]


def main() -> None:
    """Run the command, which has its own words for the time that kernels take to compile."""
    logging.getLogger("onlinear.compiling").disabled = True
    app()
