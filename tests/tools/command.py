"""The command, run within this process: it takes no start, as ``ready.py``'s processes do."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from onlinear.cli import app


def invoke(*arguments: object) -> Result:
    """Run the command, which may fail: its exit code, and what it printed."""
    return CliRunner().invoke(app, list(map(str, arguments)))


def run(*arguments: object, code: int = 0) -> str:
    """Run the command, which must end with ``code``; what it printed, or the error where that is not 0."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def lines(*arguments: object) -> list[dict[str, Any]]:
    """What a training run says to machines."""
    return [json.loads(line) for line in run("train", *arguments, "--json").splitlines()]
