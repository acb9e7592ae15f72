"""What a model knows of ``tol``: whether it ends at a certified gap, what it refuses then, and the learner that does."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, cast

from onlinear.certified import refuse_uncertified
from onlinear.learner import Learner
from onlinear.learner.parts import build_penalty, solver_name
from onlinear.learner.scores import predictors_of
from onlinear.models.chosen_parts import ChosenParts, names_certified
from onlinear.rows.centring import KIND as CENTRED
from onlinear.rows.centring import TEMPERED
from onlinear.text.form import check_number


class Certifying(ChosenParts):
    """The part of a model that knows ``tol``; the model has the settings."""

    max_passes: int
    warm_start: bool
    n_features_in_: int | None
    learner_: Any
    check_flags: Any  # these three: methods of the model
    new_learner: Any
    take: Any

    def passes_first(self) -> bool:
        """Whether passes of a named solver come before those that end at the gap."""
        return self.solver is not None and not names_certified(self.solver)

    def certified_learner(self, outputs: int, features: int | None = None, *, online: bool = False) -> Learner:
        """The learner that ends at the gap, of the model's columns or so many ``features``; ``online``: whether passes of an
        online solver come first, whatever the solver. Raises ValueError where no gap can be certified."""
        alone = self.for_outputs(outputs)
        if alone is not self:
            return alone.certified_learner(outputs, features, online=online)
        tol = self.check_certified(online=online)
        refuse_uncertified(self.built_loss(), build_penalty(self.chosen_penalty()))
        solver = self.solver
        if not names_certified(solver):
            solver = f"prox-newton,tol={tol!r}"
        elif tol is not None:
            solver = f"{solver_name(solver)},tol={tol!r}" if isinstance(solver, str) else solver._replace(tol=tol)
        return Learner(
            solver,
            self.chosen_loss(),
            self.chosen_penalty(),
            scale=self._certified_scale(),
            fit_intercept=self.fit_intercept,
            n_features=features or self.n_features_in_,
            n_outputs=outputs,
        )

    def start_certified(self, outputs: int, *, features: int | None, total: int | None) -> Learner:
        """Make the learner of the online passes over a stream, before those that certify. Raises ValueError where no gap can be
        certified in sums over rows."""
        if self.chosen_scale() == "standard":
            raise ValueError("tol= on a stream excludes scale='standard', which makes rows dense: use scale='rms'.")
        if self.warm_start:
            raise ValueError("warm_start=True and tol= need the rows as arrays; on a stream the online passes are the start.")
        if not self.certified_learner(outputs, 1, online=True).engine.rounds:
            loss = self.built_loss()
            use = "use 'prox-newton', or " if hasattr(loss, "curvature") else ""
            raise ValueError(
                f"tol= on a stream needs a loss with a second derivative and 'prox-newton', whose passes are sums over rows; "
                f"loss {self.chosen_loss()!r} with solver {self.solver!r} keeps a number for each row: {use}give the rows as "
                "arrays."
            )
        first = copy(self)
        first.scale = self._certified_scale()
        if names_certified(self.solver):
            first.solver = None
        self.n_features_in_ = first.n_features_in_ = features
        return cast(Learner, self.take(first.new_learner(outputs, total)))

    def certified_after(self, online: Learner) -> Learner:
        """The learner that ends at the gap, at the weights and in the scales of one that has made its passes."""
        found = self.certified_learner(online.n_outputs, max(1, online.size), online=True)
        online.grow(found.size)
        if found.scaler is not None:
            found.scaler = deepcopy(online.scaler)
        found.begin_at(*predictors_of(online))
        return found

    def leaves_means(self) -> bool:
        """Whether a penalty acts on columns less their means without ``tol``, and with it on columns as they are."""
        return self.scale is None and self.chosen_scale() in (CENTRED, TEMPERED)

    def _certified_scale(self) -> Any:
        """The scale in which a penalty acts at the optimum: as named, else the one that all ways to it have, without means."""
        return "rms" if self.leaves_means() else self.chosen_scale()

    def check_certified(self, *, online: bool = False) -> float | None:
        """The gap, or None for that of a named solver. Raises ValueError for settings that a fit to a certified gap has no use
        for, whatever the loss and the penalty."""
        self.check_flags()
        named = self.tol is None and names_certified(self.solver)
        tol = None if named else check_number("", "tol", self.tol, 0.0, 1.0, open_low=True, open_high=True)
        if getattr(self, "clip", None):
            raise ValueError("clip=True and tol= exclude each other: the certificate is that of the linear scores.")
        if self.forget is not None:
            raise ValueError("forget= and tol= exclude each other: a certificate is about all rows alike.")
        if self.uncertainty:
            raise ValueError("uncertainty=True and tol= exclude each other: it needs rows that were not learned before.")
        if online or self.passes_first():
            return tol
        for name in ("eta", "average"):
            if getattr(self, name) is not None:
                why = "with tol= this fit" if self.solver is None else f"solver={self.solver!r}"
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is a setting of online passes, and {why} makes none: leave it out, or "
                    "give tol= and the solver of the first passes, such as solver='comid'."
                )
        return tol
