"""What a model takes where nothing is named, and what its settings imply; measured, see docs/defaults.md."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from onlinear.learner.units import BEYOND_SETTINGS, slopes_beyond
from onlinear.losses import is_joint, is_residual, loss_labels
from onlinear.rows.centring import TEMPERED

JOINT = 2.0  # steps of softmax, as a multiple of the logistic loss's


class Choice(NamedTuple):
    """Step sizes and the scale of the columns."""

    step: float  # step size times |l'|, the slope of the loss at a score of 0, or 1 for losses of numbers
    bounded: float  # step size for losses of numbers whose slope is bounded
    quantile: float  # step size for the quantile loss, whose share of rows above and below larger steps forget
    single: float  # without an average, a share of these
    scale: str
    adaptive: float  # step size times |l'|, as ``step``, of steps in the metric of the gradients
    adaptive_averaged: float  # the same with an average
    intercept: float  # share of the size of adaptive steps that the intercept's have at least; targets have a level
    adaptive_scale: str = TEMPERED  # without a penalty, for adaptive steps


def natural_eta(choice: Choice, loss: Any) -> float:
    """The step size that suits a loss, by its slope."""
    if is_joint(loss):
        return JOINT * natural_eta(choice, loss.of_two())
    if loss_labels(loss) == "signs":
        slope = abs(float(loss.slope(0.0, 1.0)))
        return choice.step / slope if slope > 0.0 else choice.step
    if hasattr(loss, "q"):
        return choice.quantile
    return choice.bounded if is_bounded(loss) else choice.step


def is_bounded(loss: Any) -> bool:
    """Whether a loss depends on s - y alone, and its slope has a bound."""
    return is_residual(loss) and slopes_beyond(loss)[0] < BEYOND_SETTINGS


def fused_solver(loss: Any) -> str:
    """The solver for total variation and its step size: implicit in the loss, but where the slope is bounded, whose steps may
    be explicit and follow the deviation of the targets."""
    if is_bounded(loss):
        return "comid,eta=0.1"
    return f"odrs,schedule=growing-rho,lam={0.3 if loss_labels(loss) == 'signs' else 0.1}"


def adaptive_eta(choice: Choice, loss: Any, averaged: bool, outputs: int) -> float:
    """The step size that suits a loss of so many outputs, by its slope, in the metric of the gradients.

    The metric of a joint loss sums the squared gradients of all classes. That of K classes is about K / 2 times as large as
    that of each alone, so steps in it are sqrt(K / 2) times as large.
    """
    if is_joint(loss):
        return sqrt(outputs / 2.0) * adaptive_eta(choice, loss.of_two(), averaged, 1)
    labels = loss_labels(loss)
    slope = abs(float(loss.slope(0.0, 1.0))) if labels == "signs" else 1.0
    step = choice.adaptive_averaged if averaged and labels != "counts" else choice.adaptive
    return step / slope if slope > 0.0 else step
