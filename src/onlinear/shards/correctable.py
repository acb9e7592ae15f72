"""What a fit in corrected rounds takes, and the learner that it begins with."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.learner import Learner
from onlinear.learner.parts import build_penalty, is_none, split
from onlinear.models.base import Model
from onlinear.models.chosen_parts import names_certified
from onlinear.solvers import SOLVERS
from onlinear.text.form import check_whole

SCALES = ("rms", "max-abs", "none")
NO_FORM = ("rls", "csgd", "ncsgd")  # whose weights are of rows that were seen together
NO_PENALTY = ("ftrl", "adagrad-comid", "epoch-gd")  # whose penalty acts through sums of gradients, or their time


def refuse_rounds(model: Model, rounds: Any) -> None:
    """Raise ValueError for settings that have no form in so many rounds, before the first row is read."""
    check_whole("rounds", rounds, 1)
    if model.certifies():
        raise ValueError("tol= and rounds= exclude each other: one ends at a certified gap, the other after so many rounds.")
    if rounds > 1 and given_average(model) is not None:
        raise ValueError(f"average={model.average!r} has no form in rounds after the first, which keep no iterates: rounds=1.")
    for name in ("warm_start", "uncertainty", "forget", "clip"):
        if getattr(model, name, None):
            raise ValueError(f"{name}= has no form in rounds over shards.")
    if model.passes != 1:
        raise ValueError(f"passes={model.passes!r}: rounds= says how often the rows are read.")
    refuse_scale(scale_of_rounds(model))
    _refuse_parts(model)
    learner = learner_of_rounds(model, model.solver or "fiol", 1, 1)
    try:
        learner.engine.start(np.ones(1), 0.0)
    except ValueError:
        raise ValueError(_no_mean(model.solver)) from None


def _no_mean(solver: Any, where: str = "") -> str:
    """The error of a solver that has no state at a mean of weights; ``where``: beside what."""
    return (
        f"solver={solver!r} has no form in rounds over shards{where}: it cannot continue from a mean of models. Use 'fiol' or "
        "'comid'."
    )


def refuse_scale(scale: Any) -> None:
    """Raise ValueError for a scale that the sums of a survey do not tell: means need the order of all rows."""
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} has no form over shards: use 'rms', 'max-abs' or 'none'.")


def _refuse_parts(model: Model) -> None:
    solver, penalty = model.solver, build_penalty(model.chosen_penalty())
    if solver is not None:
        if not isinstance(solver, str) or names_certified(solver):
            raise ValueError(f"solver={solver!r}: the online pass over shards takes online solvers by name.")
        name = split(solver, "solver", SOLVERS)[0]
        if name in NO_FORM or SOLVERS[name].average is not None:
            raise ValueError(f"solver={solver!r} has no form in rounds over shards: its models have no mean that is one.")
        penalised = any(getattr(penalty, strength, 0.0) > 0.0 for strength in ("l1", "l2"))
        if penalised and name in NO_PENALTY:
            raise ValueError(_no_mean(solver, " beside a penalty"))
    loss = model.built_loss()
    if not all(hasattr(loss, name) for name in ("theta", "slope", "curvature", "conjugate")):
        raise ValueError(
            f"loss {model.chosen_loss()!r} has no form in rounds over shards, which need its slope everywhere and an implicit "
            "step: use 'logistic', 'squared-hinge', 'squared', 'huber' or 'poisson'."
        )
    if not (penalty.separable and hasattr(penalty, "l1") and hasattr(penalty, "l2")):
        raise ValueError(
            f"penalty={model.penalty!r} has no form in rounds over shards: use none, l1, l2 or elastic-net, with or without "
            "bounds."
        )


def given_average(model: Model) -> Any:
    """The average that is named, or None."""
    average = model.average
    return None if average is None or is_none(average) else average


def scale_of_rounds(model: Model) -> Any:
    """The scale in which the penalty acts: as named, else by root mean squares."""
    return "rms" if model.scale is None else model.scale


def learner_of_rounds(model: Model, solver: str, outputs: int, features: int) -> Learner:
    """The learner of the online pass, of so many outputs and columns. Raises ValueError for parts that do not go together."""
    return Learner(
        solver,
        model.chosen_loss(),
        model.chosen_penalty(),
        scale=scale_of_rounds(model),
        fit_intercept=model.fit_intercept,
        n_features=features,
        n_outputs=outputs,
    )
