"""Step sizes eta_t, t = 1, 2, ... (MATH 1.2, 1.3).

One type covers eta / (t + t0)^power, hence constant, inverse-sqrt, inverse and inverse-shifted; a growing penalty parameter
rho_t = rho sqrt(t) is the same thing for lam_t = 1/rho_t. The two-phase rule is the second type.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from onlinear.compiled import adopt
from onlinear.text.describe import describe
from onlinear.text.form import parts_of


class Power(NamedTuple):
    """The step size eta_t = eta / (t + t0)^power: constant for power 0, inverse-sqrt for 1/2, inverse for 1."""

    eta: float = 1.0
    t0: float = 0.0
    power: float = 0.5

    def at(self, t: int) -> float:
        """eta / (t + t0)^power."""
        if self.power == 0.5:
            return self.eta / sqrt(t + self.t0)
        if self.power == 1.0:
            return self.eta / (t + self.t0)
        if self.power == 0.0:
            return self.eta
        return self.eta / (t + self.t0) ** self.power


class TwoPhase(NamedTuple):
    """The step size eta_t = eta / sqrt(t) for t < m, and eta sqrt(m) / t from t = m on (MATH 1.3); it is continuous at m."""

    eta: float = 1.0
    m: float = 0.0

    def at(self, t: int) -> float:
        """eta / sqrt(t) for t < m, else eta sqrt(m) / t."""
        return self.eta / sqrt(t) if t < self.m else self.eta * sqrt(self.m) / t


# Name of the text form: the type, the settings it fixes.
NAMED: dict[str, tuple[type, dict[str, float]]] = {
    "constant": (Power, {"t0": 0.0, "power": 0.0}),
    "inverse-sqrt": (Power, {"t0": 0.0, "power": 0.5}),
    "inverse": (Power, {"t0": 0.0, "power": 1.0}),
    "inverse-shifted": (Power, {"t0": 1.0, "power": 1.0}),
    "power": (Power, {}),
    "two-phase": (TwoPhase, {}),
}

FIELDS = {
    "eta": "The scale of the steps; greater than 0.",
    "t0": "Shifts the step number; at least 0.",
    "power": "The power of the step number, from 0 to 1.",
    "m": "The step from which on steps decrease as 1/t; at least 1 (0: not yet set).",
}
METHODS = {"at": "The size, a float, of step ``t``, counted from 1."}

for _schedule in parts_of(globals()).values():
    describe(_schedule, FIELDS, METHODS)
    adopt(_schedule)
