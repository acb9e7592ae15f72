"""``tol=``: what the estimators do to reach a certified relative duality gap, and what they say of it afterwards."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from onlinear.certified import Gap, refuse_uncertified
from onlinear.learner import Learner
from onlinear.learner.parts import build_loss, build_penalty, split
from onlinear.models.base import Model
from onlinear.rows.centring import KIND as CENTRED
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.certified import CertifiedEngine, Report, Tell, add_passes, certificate, counted
from onlinear.text.form import check_number


def names_certified(solver: Any) -> bool:
    """Whether a solver, as users write it, is one that stops at a certified gap."""
    cls = SOLVERS[split(solver, "solver", SOLVERS)[0]].solver if isinstance(solver, str) else type(solver)
    return bool(getattr(cls, "certifies", False))


def check_max_passes(passes: Any) -> int:
    """An integer of at least 1."""
    if isinstance(passes, (bool, np.bool_)) or not isinstance(passes, (int, np.integer)) or passes < 1:
        raise ValueError(f"max_passes must be an integer of at least 1, got {passes!r}.")
    return int(passes)


class Certified(Model):
    """The part of the estimators that knows ``tol``."""

    @property
    def certifies(self) -> bool:
        """Whether ``fit`` goes on to a certified gap: ``tol`` is given, or the solver is named that does."""
        return self.tol is not None or names_certified(self.solver)

    def certified_learner(self, outputs: int) -> Learner:
        """The learner that ``fit`` solves; raises ValueError where no gap can be certified."""
        alone = self.for_outputs(outputs)
        if alone is not self:
            return alone.certified_learner(outputs)
        self._refuse_unused()
        loss, penalty = build_loss(self.loss), build_penalty(self.chosen_penalty())
        refuse_uncertified(loss, penalty)
        solver = self.solver
        if not names_certified(solver):
            tol = check_number("fit", "tol", self.tol, 0.0, 1.0, open_low=True, open_high=True)
            solver = f"{'prox-newton' if hasattr(loss, 'curvature') else 'sdca'},tol={tol!r}"
        elif self.tol is not None:
            tol = check_number("fit", "tol", self.tol, 0.0, 1.0, open_low=True, open_high=True)
            name = split(solver, "solver", SOLVERS)[0] if isinstance(solver, str) else None
            solver = f"{name},tol={tol!r}" if name else solver._replace(tol=tol)
        return Learner(
            solver,
            self.loss,
            self.chosen_penalty(),
            scale="rms" if self.scale is None and self.chosen_scale() == CENTRED else self.chosen_scale(),
            fit_intercept=self.fit_intercept,
            n_features=self.n_features_in_,
            n_outputs=outputs,
        )

    def _refuse_unused(self) -> None:
        """Raise ValueError for settings that a fit to a certified gap has no use for."""
        if getattr(self, "clip", None):
            raise ValueError("clip=True and tol= exclude each other: the certificate is that of the linear scores.")
        if self.solver is not None and not names_certified(self.solver):
            return
        for name in ("eta", "average"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is a setting of online passes, and with tol= this fit makes none: name "
                    "the solver of the first passes, such as solver='comid', or leave it out."
                )

    def begin(self, outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
        """With ``warm_start`` the weights (d, K) and intercepts (K,) of the model as it is; None where there is none."""
        learner = getattr(self, "learner_", None)
        if not (self.warm_start and isinstance(learner, Learner)):
            return None
        return weights_of(learner) if (learner.size, learner.n_outputs) == (self.n_features_in_, outputs) else None

    def solve_to_tolerance(
        self,
        learner: Learner,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        start: tuple[np.ndarray, np.ndarray] | None,
        passes: int,
    ) -> None:
        """Solve from a start after so many passes, and take the learner. Warns where the gap stays above ``tol``."""
        most = check_max_passes(self.max_passes) - passes
        if most < 1:
            raise ValueError(f"max_passes={self.max_passes} leaves no pass after the {passes} of {self.solver!r}.")
        learner.solve_from(X, y, most, weights, start, show_iterations() if self.verbose else None)
        for state in learner.states:
            add_passes(state, passes)
        self.learner_ = learner
        self.n_iter_ = max(counted(state)[0] for state in learner.states)
        if not self.converged_:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(self.shortfall(), ConvergenceWarning, stacklevel=6)

    def shortfall(self) -> str:
        """Why ``tol`` was not reached, and what to do."""
        gap, tol = self.dual_gap_, self.learner_.solver.tol
        above = (
            f"at most {100.0 * gap / (1.0 - gap):.2g} % above the optimum" if gap < 1.0 else "not known to be near the optimum"
        )
        return (
            f"tol={tol:g} was not reached: after {self.n_passes_} passes the certified relative duality gap is {gap:.2g} (the "
            f"objective is {above}). Give a larger max_passes or tol, or a stronger penalty."
        )

    def _gaps(self) -> list[Gap]:
        learner = self.fitted_learner()
        if not (isinstance(learner, Learner) and isinstance(learner.engine, CertifiedEngine)):
            raise AttributeError("there is no certificate of this model: it was not fitted with tol=, or it only predicts.")
        return [certificate(state) for state in learner.states]

    @property
    def dual_gap_(self) -> float:
        """The certified relative duality gap after ``fit`` with ``tol``: of several classes or targets the largest."""
        return max(gap.relative for gap in self._gaps())

    @property
    def dual_bound_(self) -> float:
        """What the objective of no model is below, after ``fit`` with ``tol``; summed over classes or targets."""
        return sum(gap.bound for gap in self._gaps())

    @property
    def objective_(self) -> float:
        """The objective after ``fit`` with ``tol``; summed over classes or targets."""
        return sum(gap.objective for gap in self._gaps())

    @property
    def converged_(self) -> bool:
        """Whether ``fit`` reached ``tol``."""
        return self.dual_gap_ <= self.learner_.solver.tol

    @property
    def n_passes_(self) -> int:
        """Readings of all rows by ``fit``, those of an online solver included; of several classes the most."""
        learner = self.fitted_learner()
        if isinstance(learner, Learner) and isinstance(learner.engine, CertifiedEngine):
            return max(counted(state)[1] for state in learner.states)
        return self.n_iter_


def show_iterations() -> Tell:
    """Prints a line for each certified pass."""
    print(f"{'pass':>6}{'objective':>16}{'certified gap':>16}{'non-zeros':>12}{'columns':>10}")

    def show(report: Report) -> None:
        gap = report.gap
        print(f"{report.passes:>6}{gap.objective:>16.9g}{gap.relative:>16.2e}{report.nonzeros:>12,}{report.working:>10,}")

    return show


def weights_of(learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """The weights (d, K) and the intercepts (K,) by which a learner predicts."""
    weights = learner.weights(average=True).reshape(learner.size, learner.n_outputs)
    return weights, np.atleast_1d(np.asarray(learner.intercept(average=True), np.float64))
