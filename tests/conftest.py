"""Folders that tests read and never write: reference trajectories and data sets, named by environment variables."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from onlinear.models import online
from onlinear.models.arguments import make_generator

# A first example may compile a kernel. In CI the examples are the same every time: what fails there can be repeated.
settings.register_profile("onlinear", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("onlinear")

# Compiling leaves a million objects that stay: to search them for unused cycles as often as usual takes a fifth of all time.
gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True, scope="session")
def _heard_signals() -> None:
    """Tests, and the processes that they start, hear signals, also where a shell runs the tests in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def _repeatable_orders() -> Iterator[None]:
    """Fits without a random_state draw the same orders every time: what fails can be repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(online, "make_generator", lambda seed: make_generator(0 if seed is None else seed))
        yield


@pytest.fixture(autouse=True, scope="session")
def _command_made_once() -> Iterator[None]:
    """Runs of the command within this process share what Typer makes of its functions, which takes longer than some runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command), raising=False)
        yield


@pytest.fixture(autouse=True, scope="module")
def _settled_objects() -> Iterator[None]:
    """What a file of tests leaves is not searched while the next ones run."""
    yield
    gc.collect(1)
    gc.freeze()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """No cycle of other tests is freed meanwhile: its references to None or True would be missing from their counts."""
    gc.disable()
    yield
    gc.enable()


def folder(variable: str) -> Path | None:
    """The folder that an environment variable names, or None where it is unset."""
    named = os.environ.get(variable)
    if not named:
        return None
    path = Path(named).resolve()
    if not path.is_dir():
        raise pytest.UsageError(f"{variable} must name a folder, got {named!r}.")
    return path


def _needed(variable: str, holds: str) -> Path:
    path = folder(variable)
    if path is None:
        pytest.skip(f"{variable} is not set; it names the folder of {holds}.")
    return path


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of reference trajectories (ONLINEAR_GOLDEN)."""
    return _needed("ONLINEAR_GOLDEN", "reference trajectories")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of data sets (ONLINEAR_DATA)."""
    return _needed("ONLINEAR_DATA", "data sets")
