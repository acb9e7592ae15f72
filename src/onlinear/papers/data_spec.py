"""Which rows an experiment takes, as its file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Table = Mapping[str, Any]


@dataclass(frozen=True)
class DataSpec:
    """Rows: a real set by name or a generator with its settings, split and transformed; ``part``: its training file alone."""

    name: str
    set: str | None = None
    generator: str | None = None
    settings: Table = field(default_factory=dict)
    part: str | None = None
    train: int | None = None
    test: int | None = None
    transforms: tuple[str, ...] = ()
    positive: tuple[float, ...] | None = None
    redraw: bool = False
    substitute_for: str | None = None
    reason: str | None = None
