"""The solvers, one file per family; ``SOLVERS`` holds every solver and preset by its text name, found by enumeration."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from onlinear.solvers.core.engine import Preset
from onlinear.text.form import parts_of


def _enumerate() -> dict[str, Preset]:
    found: dict[str, Preset] = {}
    for info in pkgutil.iter_modules(__path__):
        if info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        solvers: dict[str, Any] = {
            name: cls for name, cls in parts_of(vars(module)).items() if callable(getattr(cls, "engine", None))
        }
        found |= {name: Preset(cls) for name, cls in solvers.items()}
        found |= getattr(module, "PRESETS", {})
    return found


SOLVERS = _enumerate()
