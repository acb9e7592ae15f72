"""Where pickles of release 0.1 look for what is in onlinear.models.predictor now."""

from onlinear.models.predictor import Final

__all__ = ["Final"]
