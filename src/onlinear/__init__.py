"""onlinear trains sparse linear models on streams of rows, exactly, in time proportional to the non-zeros of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
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
    from onlinear.errors import DivergenceError, ModelFileError
    from onlinear.learner import Learner
    from onlinear.models.estimators import OnlineClassifier, OnlineRegressor, load
    from onlinear.models.path import PenaltyPath
    from onlinear.training.quality import QualityWarning

_HOMES = {
    "DivergenceError": "errors",
    "Learner": "learner",
    "ModelFileError": "errors",
    "OnlineClassifier": "models.estimators",
    "OnlineRegressor": "models.estimators",
    "PenaltyPath": "models.path",
    "QualityWarning": "training.quality",
    "load": "models.estimators",
}


def __getattr__(name: str) -> Any:
    """Public names on first use, so that importing the package costs little."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
