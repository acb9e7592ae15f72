"""Not public: certificates, how far at most a model is from the best one of its penalty and loss (MATH 20)."""

from __future__ import annotations

from onlinear.certified.balance import balanced
from onlinear.certified.gap import (
    Gap,
    Standing,
    above,
    gap_of_output,
    gap_of_scores,
    is_smooth,
    refuse_uncertified,
    shortfall,
    why_loose,
)
from onlinear.certified.joint_balance import probabilities
from onlinear.certified.joint_gap import JointGap, joint_gap_of_scores
from onlinear.certified.passes import add_columns, lowest_mean
from onlinear.certified.stream_gap import StreamGap, in_scales

__all__ = [
    "Gap",
    "JointGap",
    "Standing",
    "StreamGap",
    "above",
    "add_columns",
    "balanced",
    "gap_of_output",
    "gap_of_scores",
    "in_scales",
    "is_smooth",
    "joint_gap_of_scores",
    "lowest_mean",
    "probabilities",
    "refuse_uncertified",
    "shortfall",
    "why_loose",
]
