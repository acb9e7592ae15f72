"""What to say where a package is missing that only a part of the library needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed_by(part: str, install: str) -> Iterator[None]:
    """Imports that ``part`` needs; raises ModuleNotFoundError that says what to install for one that fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{part} needs {error.name}: pip install {install}.", name=error.name) from error
