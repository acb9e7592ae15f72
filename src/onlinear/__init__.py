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
_MODULES = "averages", "losses", "penalties", "schedules", "shards", "streams"  # public ones
_OPTIONAL = "dask", "river"  # public ones that need packages of their own


def __getattr__(name: str) -> Any:
    """Public names and modules on first use, so that importing the package costs little."""
    if name not in (*_HOMES, *_MODULES, *_OPTIONAL):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name) if name in _HOMES else import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """What there is, with the public names and modules that have not been used yet."""
    return sorted({*globals(), *__all__, *_MODULES})
