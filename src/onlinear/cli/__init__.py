"""The command ``onlinear``, which is public; its modules are not. ``training/`` has the run itself, imported when needed.

One module per command; each registers itself when it is imported here.
"""

import logging

from onlinear.cli import convert, evaluate, explain, inspect, parts, predict, reproduce, train
from onlinear.cli.command import app

__all__ = ["app", "convert", "evaluate", "explain", "inspect", "main", "parts", "predict", "reproduce", "train"]


def main() -> None:
    """Run the command, which has its own words for the time that kernels take to compile."""
    logging.getLogger("onlinear.compiling").disabled = True
    app()
