"""``tol=``: what the estimators do to reach a certified relative duality gap, and what they say of it afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinear.certified import Gap, shortfall
from onlinear.learner import Learner
from onlinear.learner.arguments import count
from onlinear.learner.learner import Whole
from onlinear.learner.scores import Predictors, predictors_of
from onlinear.models.base import Model
from onlinear.solvers.core.certified import CertifiedEngine, PassReport, Tell, add_passes, certificate, counted, readings
from onlinear.text.warned import warn_caller
from onlinear.training.events import Certified
from onlinear.training.offsets import ROWS, far_from_zero, remark
from onlinear.training.quality import QualityWarning
from onlinear.training.tasks import READING, Tasks


class ReachesTolerance(Model):
    """The part of the estimators that ends at ``tol``, and says where."""

    def begin(self, outputs: int) -> Predictors | None:
        """With ``warm_start`` the weights and intercepts of the model as it is; None where there is none."""
        learner = getattr(self, "learner_", None)
        if not (self.warm_start and isinstance(learner, Learner)):
            return None
        return predictors_of(learner) if (learner.size, learner.n_outputs) == (self.n_features_in_, outputs) else None

    def solve_to_tolerance(self, learner: Learner, whole: Whole, start: Predictors | None, passes: int, tasks: Tasks) -> None:
        """Solve from a start after so many passes, and take the learner. Warns where the gap stays above ``tol``."""
        tasks.start(READING, None, lambda: None)  # the solver has the weights until its end
        most = count("max_passes", self.max_passes) - passes
        if most < 1:
            raise ValueError(f"max_passes={self.max_passes} leaves no pass after the {passes} of {self.solver!r}.")
        learner.solve_whole(whole, most, start, teller(tasks, show_iterations() if self.verbose else None))
        for state in learner.states:
            add_passes(state, passes, len(whole.y))
        self.take(learner)
        self.n_iter_ = max(counted(state)[0] for state in learner.states)
        self.warn_of_shortfall()

    def warn_of_offsets(self, X: Any) -> None:
        """Warn of columns far from 0 that keep their means, by evenly spaced rows."""
        if not self.leaves_means():
            return
        which = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], ROWS)).astype(np.intp))
        if found := far_from_zero(self.learner_.read_rows(X, "X").take(which).stored().data):
            names = self.feature_names(np.array([offset.column for offset in found]))
            warn_caller(remark(found, names, command=False), QualityWarning)

    def warn_of_shortfall(self) -> None:
        """Warn where ``tol`` was not reached, at the line that called ``fit``."""
        if not self.converged_:
            from sklearn.exceptions import ConvergenceWarning

            said = shortfall(self.dual_gap_, self.learner_.solver.tol, self.n_passes_)
            warn_caller(said, ConvergenceWarning)

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
        return sum(min(gap.bound, gap.objective) for gap in self._gaps())  # at the optimum they differ by rounding

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
        return readings(self.fitted_learner(), self.n_iter_)


HEADS = f"{'pass':>6}{'objective':>16}{'certified gap':>16}{'non-zeros':>12}{'columns':>10}"


def teller(tasks: Tasks, show: Callable[[PassReport], None] | None) -> Tell:
    """Shows each certified pass over rows in memory, and says that it was a task."""

    def tell(report: PassReport) -> bool:
        if show is not None:
            show(report)
        tasks.begin(READING)
        return tasks.end(READING)

    return tell


def show_iterations() -> Callable[[PassReport], None]:
    """Prints a line for each certified pass over rows in memory."""
    print(HEADS)

    def show(report: PassReport) -> None:
        _line(report.passes, report.gap.objective, report.gap.relative, report.nonzeros, report.working)

    return show


def show_passes() -> Callable[[Certified], None]:
    """Prints a line for each certified pass over a stream."""
    print(HEADS)

    def show(event: Certified) -> None:
        _line(event.passes, event.objective, event.gap, event.nonzeros, event.columns)

    return show


def _line(passes: int, objective: float, gap: float, nonzeros: int, columns: int) -> None:
    print(f"{passes:>6}{objective:>16.9g}{gap:>16.2e}{nonzeros:>12,}{columns:>10,}")
