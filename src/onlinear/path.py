"""Where pickles of release 0.1 look for what is in onlinear.models.path and onlinear.models.together now."""

from onlinear.models.path import PenaltyPath
from onlinear.models.together import Tally, Together

__all__ = ["PenaltyPath", "Tally", "Together"]
