"""Cases that are left to exhaustive runs, ``pytest -m exhaustive``: each run then compiles fewer kernels."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def seldom(*values: Any, **options: Any) -> Any:
    """A case of exhaustive runs alone."""
    return pytest.param(*values, marks=pytest.mark.exhaustive, **options)


def often(cases: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """The cases of one argument, of which those ``kept`` are in each run, and the others in exhaustive ones."""
    return [case if case in kept else seldom(case) for case in cases]
