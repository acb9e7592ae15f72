r"""Stochastic ADMM on the splitting w = z: the loss of a row on w, the penalty on z (SADMM).

    w_{t+1}  = argmin_w l_t(w) + <mu_t, w - z_t> + (rho/2) |w - z_t|^2                          (MATH 9.1)
             = the implicit step at z_t - mu_t/rho with c = 1/rho
    z_{t+1}  = prox_{r/rho}(w_{t+1} + mu_t/rho)                                                        (MATH 9.2)
    mu_{t+1} = mu_t + rho (w_{t+1} - z_{t+1})                                                          (MATH 9.3)

With u = z + mu/rho it is the Douglas-Rachford method of drs.py with lam = 1/rho (MATH 9.4), whose kernel runs it. Predictor: z.
A fixed rho trades accuracy for speed like a constant step 1/rho: it keeps an asymptotic bias, and the O(1/T) rate printed for
the stochastic case does not hold (MATH 13.1). schedule=growing-rho, rho_t = rho sqrt t, converges. The paper's l2 version
lambda |w|^2 is the penalty l2 = 2 lambda.

Averages beside zbar: mutbar of mutilde_t = mu_t + rho_t (w_{t+1} - z_t) = -theta_t x_t, and wbar of w_{t+1} (MATH 9.5), both
uniform. The lazy form has wbar for a fixed rho and a uniform average of z alone, since only there the sum of w follows from
that of z; the dense step has mutbar for a fixed rho alone.

Source: Tao, Gao, Chu, Wu, Stochastic Learning via Optimizing the Variational Inequalities, IEEE TNNLS 25(10), 2014.
Lazy, cost, needs: as drs.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt
from onlinear.losses import weighted
from onlinear.schedules import Power
from onlinear.solvers.core.batch_dual import DualStart
from onlinear.solvers.core.dense import choose, dot, prox_but_first
from onlinear.solvers.core.engine import Engine, Preset, Problem, needs_theta
from onlinear.solvers.core.state import State
from onlinear.solvers.drs import SPLIT, Exact, first_dual, split_start, why_not_split


class Sadmm(NamedTuple):
    """Settings: rho (at step t: rho t^schedule)."""

    rho: float = 1.0
    schedule: float = 0.0

    letters = ("z", "w", "mu")
    stable = True  # every step is implicit in the loss and in the penalty
    mean_name = "zbar"
    choices = {"schedule": {"constant": 0.0, "growing-rho": 0.5}}  # noqa: RUF012

    def lam_at(self, t: int) -> float:
        """1 / rho_t; that of step 0 is that of step 1."""
        return Power(1.0 / self.rho, 0.0, self.schedule).at(max(t, 1))

    def decay_step(self, t: int) -> float:
        """The step of the prox in step t of the kernel."""
        return self.lam_at(t - 1)

    def step(self, U, x, y, s, t, loss, penalty):
        z, mu, lam = U[0], U[2], self.lam_at(t)
        v = z - lam * mu
        theta = weighted(s, loss.theta(dot(v, x), s * lam * dot(x, x), y))
        w = v - lam * theta * x
        U[0] = prox_but_first(penalty, w + lam * mu, lam)
        U[1] = w
        U[2] = mu + (w - U[0]) / lam

    def begin(self, U, penalty):
        U[2] = 0.0
        U[2, 1:] = first_dual(penalty, U[0, 1:])

    def predictor(self, U, t, penalty):
        return U[0]

    def named(self, u: np.ndarray, w: np.ndarray, x: np.ndarray, t: int, penalty: Any) -> dict[str, Any]:
        """The variables after t steps, from u_t = z_t + mu_t/rho_t, w_t and x_t = z_{t-1}."""
        z = penalty.prox_all(u, self.lam_at(t))
        return {"w": w, "z": z, "mu": (u - z) / self.lam_at(t), "u": u}

    def means(self, M: np.ndarray, t: int) -> dict[str, np.ndarray]:
        """Averages of w_{t+1} and, for a fixed rho, of mutilde_t = mu_t + rho (w_{t+1} - z_t), from the dense step's sums."""
        found = {"wbar": M[1, 1] / t}
        return found if self.schedule else found | {"mutbar": (M[0, 2] + self.rho * (M[1, 1] - M[0, 0])) / t}

    def first_means(self, start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The averages before the first row: those of the start."""
        found = {"wbar": start["w"].copy()}
        return found if self.schedule else found | {"mutbar": np.zeros_like(start["w"])}

    def mean_form(self):
        """Itself: a row moves it by its theta times its columns alone."""
        return self

    def loss_start(self, engine: Engine, state: State) -> DualStart:
        """(1 + kappa) x - kappa u."""
        return split_start(self, engine, state)

    def dense_u(self, U: np.ndarray, t: int) -> np.ndarray:
        """u = z + mu / rho after t steps, from the dense step's vectors."""
        return U[0] + self.lam_at(t) * U[2]

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        return choose(self, problem, Exact, why_not_split(problem))


PRESETS = {"sadmm": Preset(Sadmm, average="uniform-post")}

adopt(Sadmm, SPLIT)
