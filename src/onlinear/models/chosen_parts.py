"""Which parts a model is made of: those that its settings name, else those that were measured to be best (docs/defaults.md)."""

from __future__ import annotations

from typing import Any, Self

from onlinear.averages import ADAPTIVE, CALIBRATED, Average, Fading
from onlinear.learner.parts import build_average, build_loss, build_penalty, build_solver, fading, is_none, preset_of
from onlinear.learner.race import can_calibrate
from onlinear.learner.units import has_units
from onlinear.losses import Poisson, Squared, is_joint
from onlinear.models.defaults import Choice, adaptive_eta, fused_solver, natural_eta
from onlinear.models.strengths import with_step, with_strengths
from onlinear.penalties import ElasticNet, FusedLasso, is_bare
from onlinear.rows.centring import CENTRED_KINDS, DENSE
from onlinear.solvers.core.engine import Engine, Problem, can_multiply
from onlinear.solvers.forgetting import forgetful
from onlinear.solvers.prox_newton import ProxNewton
from onlinear.training.options import CLASSIFY


def names_certified(solver: Any) -> bool:
    """Whether a solver, as users write it, is one that stops at a certified gap."""
    return bool(getattr(preset_of(solver).solver, "certifies", False))


def asks_for_gap(tol: float | None, solver: Any) -> bool:
    """Whether training ends at a certified gap."""
    return tol is not None or names_certified(solver)


class ChosenParts:
    """The part of a model that chooses; the settings are the model's, and None where nothing is named."""

    choice: Choice  # what is chosen where nothing is named
    task: str
    loss: Any
    penalty: Any
    solver: Any
    average: Any
    scale: str | None
    fit_intercept: bool
    l1: float | None = None  # these six: of pickles that are older than them
    l2: float | None = None
    eta: float | None = None
    forget: float | None = None
    uncertainty: bool = False
    tol: float | None = None

    def certifies(self) -> bool:
        """Whether ``fit`` goes on to a certified gap: ``tol`` is given, or the solver is named that does."""
        return asks_for_gap(self.tol, self.solver)

    def for_outputs(self, outputs: int) -> Self:
        """The model with its loss for so many outputs."""
        return self

    def chosen_loss(self) -> Any:
        """The loss, as far as the number of outputs does not decide it."""
        return self.loss

    def built_loss(self) -> Any:
        """That loss as an object."""
        return build_loss(self.chosen_loss())

    def chosen_solver(self, outputs: int) -> Any:
        """The solver for so many outputs: as named, else implicit steps, adaptive where that was measured to be better."""
        if self.solver is not None:
            return with_step(self.solver, self.eta)
        adapts, name = self._adapts(), self._default_solver()
        if self.eta is not None:
            return with_step(name, self.eta)
        if name in ("ftrl", "mixture") or self._fuses():
            return name
        if adapts:
            eta = adaptive_eta(self.choice, self.built_loss(), not is_none(self.chosen_average()), outputs)
            return f"{name},eta={eta:g}"
        eta = natural_eta(self.choice, self.built_loss()) * (self.choice.single if is_none(self.chosen_average()) else 1.0)
        return f"{name},eta={eta:g}"

    def _default_solver(self) -> str:
        """The name of the default's steps; with their size where the penalty couples columns."""
        if self._mixes():
            return "mixture"
        if self._adapts():
            return "implicit-ftrl"
        if self._fuses():
            return "comid" if self.eta is not None else fused_solver(self.built_loss())
        return "implicit-sgd" if self._is_bare() else "fiol"

    def _fuses(self) -> bool:
        """Whether the penalty couples neighbouring columns, which few solvers have a step for."""
        return type(build_penalty(self.chosen_penalty())) is FusedLasso

    def _mixes(self) -> bool:
        """Whether the default is a mixture: for counts, whose best steps differ most from set to set, where nothing is asked
        for that a mixture has no form for."""
        if self.solver is not None or self.certifies() or not self._adapts() or type(self.built_loss()) is not Poisson:
            return False
        free = self.average is None and self.forget is None and not self.uncertainty
        return free and build_penalty(self.chosen_penalty()).l1 == 0.0 and self.scale in (None, "none", *CENTRED_KINDS)

    def chosen_penalty(self) -> Any:
        """The penalty, with the strengths that are given as numbers."""
        return with_strengths(self.penalty, self.l1, self.l2)

    def _adapts(self) -> bool:
        """Whether the steps of the default are adaptive.

        They are for classes, for counts, for other numbers with l1, and for the squared loss without a penalty; but not where
        the penalty has bounds. Where rows are forgotten they always are.
        """
        if self.forget is not None:
            return True
        penalty, loss = build_penalty(self.chosen_penalty()), self.built_loss()
        if is_joint(loss):
            return type(penalty) is ElasticNet
        if type(penalty) is not ElasticNet or not hasattr(loss, "theta"):
            return False
        if self.task == CLASSIFY:
            return True
        if penalty.l1 > 0.0:
            return has_units(loss)
        return type(loss) is Poisson or (is_bare(penalty) and type(loss) is Squared)

    def _is_bare(self) -> bool:
        return is_bare(build_penalty(self.chosen_penalty()))

    def chosen_average(self, outputs: int = 1) -> Any:
        """The average of so many outputs: as named, else that of the preset, else an adaptive one; none where it would fill
        zeros that the penalty makes, or where the solver has no form for it."""
        if self.average is not None:
            return self.average
        solver = self.solver
        if solver is None:
            solver = self._default_solver()
        elif preset_of(solver).average is not None:
            return None
        penalty = build_penalty(self.chosen_penalty())
        sparse = any(getattr(penalty, strength, 0.0) > 0.0 for strength in ("l1", "tv"))
        engine = None if sparse else self._engine(solver, ADAPTIVE)
        usable = engine is not None and engine.lazy and engine.scores_means
        if not usable:
            return "none"
        return CALIBRATED if self._calibrates(outputs) else ADAPTIVE

    def _calibrates(self, outputs: int) -> bool:
        """Whether what predicts is multiplied by its calibration slope, where there is one to learn.

        Not where something is asked for by which the weights should be small, or how far predictions may be off.
        """
        return self._is_free() and self.forget is None and self._is_bare() and can_calibrate(self.built_loss(), outputs)

    def _solves_joined(self) -> bool:
        """Whether the solver is named to which ``tol`` leads, which solves classes together."""
        return self.solver is not None and preset_of(self.solver).solver is ProxNewton

    def _is_free(self) -> bool:
        """Whether neither a solver nor ``uncertainty`` is asked for."""
        return self.solver is None and not self.uncertainty

    def _engine(self, solver: Any, average: Any) -> Engine | None:
        """The engine of these parts, or None where there is none; its parts are checked when the learner is made."""
        try:
            penalty = build_penalty(self.chosen_penalty())
            built, _ = build_solver(solver, penalty, total=2)
            kept: Average | Fading | None = build_average(average, total=2)
            if self.forget is not None:
                built, kept = forgetful(built, "", self.forget), fading(average, kept, self.forget)
            return built.engine(Problem(self.built_loss(), penalty, kept, self.fit_intercept))
        except (ValueError, TypeError):
            return None

    def _follows(self, solver: Any, average: Any) -> bool:
        """Whether the step sizes may follow the running units of weights and targets."""
        engine = self._engine(solver, average)
        return engine is not None and can_multiply(engine)

    def chosen_scale(self) -> Any:
        """The scale: as named, else the estimator's.

        There is none for solvers whose result is defined by the rows as they are. Solvers that have scales of their own get
        means alone. There are no means where no intercept would take them up.
        """
        if self.scale is not None:
            return self.scale
        solver = "mixture" if self._mixes() else self.solver
        adapts = solver is None and self._adapts()
        if isinstance(solver, str):
            solver = preset_of(solver).solver
        if not adapts and not getattr(solver, "scales", True):
            return DENSE if getattr(solver, "centres", False) and self.fit_intercept else "none"
        chosen = self.choice.adaptive_scale if adapts and self._is_bare() else self.choice.scale
        return "rms" if chosen in CENTRED_KINDS and not self.fit_intercept else chosen
