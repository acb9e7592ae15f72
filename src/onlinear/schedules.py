"""Step sizes eta_t, t = 1, 2, ... (MATH 1.2, 1.3).

One type covers eta / (t + t0)^power, hence constant, inverse-sqrt, inverse and inverse-shifted; a growing penalty parameter
rho_t = rho sqrt(t) is the same thing for lam_t = 1/rho_t. The two-phase rule is the second type.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from onlinear.compiled import adopt
from onlinear.text.form import parts_of


class Power(NamedTuple):
    """eta_t = eta / (t + t0)^power, power in [0, 1]."""

    eta: float = 1.0
    t0: float = 0.0
    power: float = 0.5

    def at(self, t: int) -> float:
        if self.power == 0.5:
            return self.eta / sqrt(t + self.t0)
        if self.power == 1.0:
            return self.eta / (t + self.t0)
        if self.power == 0.0:
            return self.eta
        return self.eta / (t + self.t0) ** self.power


class TwoPhase(NamedTuple):
    """eta_t = eta / sqrt(t) for t < m, eta sqrt(m) / t from t = m on (MATH 1.3; continuous at m)."""

    eta: float = 1.0
    m: float = 0.0

    def at(self, t: int) -> float:
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

for _schedule in parts_of(globals()).values():
    adopt(_schedule)
