"""Errors that callers catch by name, wherever they are raised."""

from __future__ import annotations


class DivergenceError(ArithmeticError):
    """An explicit method's state stopped being finite; the learner that raised it refuses to continue."""


class ModelFileError(ValueError):
    """A file that is no model file of a version this release reads."""
