"""onlinear trains sparse linear models on streams of rows, exactly, in time proportional to the non-zeros of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "DivergenceError",
    "Learner",
    "ModelFileError",
    "OnlineClassifier",
    "OnlineRegressor",
    "PenaltyPath",
    "QualityWarning",
    "load",
]

if TYPE_CHECKING:
    from onlinear.checks import DivergenceError
    from onlinear.estimators import OnlineClassifier, OnlineRegressor, load
    from onlinear.learner import Learner
    from onlinear.models import ModelFileError
    from onlinear.path import PenaltyPath
    from onlinear.quality import QualityWarning

_HOMES = {
    "DivergenceError": "checks",
    "Learner": "learner",
    "ModelFileError": "models",
    "OnlineClassifier": "estimators",
    "OnlineRegressor": "estimators",
    "PenaltyPath": "path",
    "QualityWarning": "quality",
    "load": "estimators",
}


def __getattr__(name: str) -> Any:
    """Public names on first use, so that importing the package costs little."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
