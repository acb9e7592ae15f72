"""Where pickles of release 0.1 look for what is in onlinear.models.path now."""

from onlinear.models.path import PenaltyPath, Tally, Together

__all__ = ["PenaltyPath", "Tally", "Together"]
