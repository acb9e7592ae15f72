r"""Epoch-GD: SGD in epochs of doubling length and halving step, each started at the mean of the one before.

    epoch k = 1, 2, ..:  T_k = 2^(k-1) T1 steps of SGD with the constant step eta_k = 2^(1-k) / sigma;
    next start = mean of the T_k pre-update iterates of the epoch                                              (MATH 4.6)

sigma is the penalty's l2. The restart belongs to the last step of its epoch. ``weights(average=True)`` is the mean of the
last complete epoch (0 before the first is complete).

Source: Hazan, Kale, COLT 2011 / JMLR 15, 2014. Intercept: MATH 17.
Lazy:   inside an epoch SGD's scaled vector with the uniform average (scaled_vector.py); O(d) at the log2(T) epoch ends.
Cost:   O(nnz(x_t)) per row; with l1 (by sign(w)) the dense step, O(d).   Needs: l2 > 0.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import Average
from onlinear.compiled import adopt, function, kernel
from onlinear.schedules import Power
from onlinear.solvers.core.dense import Dense
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.scaled_vector import (
    LAG,
    SCALE,
    SCALE_SUM,
    Scaled,
    check_subgradient,
    learn_rows_scaled,
    strong_convexity,
)
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, OWN, State, everything
from onlinear.solvers.sgd import Sgd

UNIFORM = Average()
BIAS_MEAN = OWN + 1


@function
def epoch_of(t, T1):
    """The epoch of step t as (how often T1 was doubled, the epoch's last step)."""
    k, length = 0, T1
    end = length
    while t > end:
        k += 1
        length *= 2.0
        end += length
    return k, end


class EpochGd(NamedTuple):
    """Settings of Epoch-GD: the length of the first epoch."""

    T1: float = 4.0

    letters = ("w", "total", "wbar")

    def sgd_at(self, t, penalty):
        """SGD with the constant step of the epoch that step t belongs to."""
        k, _ = epoch_of(t, self.T1)
        return Sgd(Power(0.5**k / penalty.l2, 0.0, 0.0), True, inf)

    def step(self, U, x, y, s, t, loss, penalty):
        k, end = epoch_of(t, self.T1)
        U[1] += U[0]
        self.sgd_at(t, penalty).step(U, x, y, s, t, loss, penalty)
        if t == end:
            U[2] = U[1] / (2.0**k * self.T1)
            U[0] = U[2]
            U[1] = 0.0

    def begin(self, U, penalty):
        U[1:] = 0.0

    def predictor(self, U, t, penalty):
        return U[0]

    def mean_form(self):
        """Itself: a row moves it by its slope times its columns alone."""
        return self

    def engine(self, problem: Problem) -> Engine:
        strong_convexity("epoch-gd", problem.penalty)
        check_subgradient(problem)
        if self.T1 % 1.0 != 0.0:
            raise ValueError(f"epoch-gd: T1 must be a whole number of steps, got {self.T1!r}.")
        if problem.average is not None:
            raise ValueError("epoch-gd's output is the mean of its last complete epoch; average= must be none.")
        solver = EpochGd(float(self.T1))
        if problem.penalty.l1 == 0.0:
            return Epochs(solver, problem)
        return DenseEpochs(solver, problem, "sign(w) has no closed form together with l2")


@kernel
def read_kept(mean, columns, now, out):
    for e in range(columns.shape[0]):
        out[e] = mean[columns[e]]


@function
def read_kept_bias(last, post, total, now):
    """The mean of the intercepts of the last complete epoch."""
    return now[BIAS_MEAN]


class Epochs(Scaled):
    """Epoch-GD in O(non-zeros), and O(d) at the ends of epochs."""

    own_average = True
    scores_means = stepped = False

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        state.arrays |= {name: np.zeros(len(w)) for name in ("B", "A", "mean")}
        return state

    def learn(self, state: State, examples: Examples) -> int:
        first, n = 0, len(examples.s)
        while first < n:
            end = self.next_restart(state)
            part = slice(first, min(n, first + int(end) - state.t))
            done = super().learn(state, examples.cut(part))
            if first + done < part.stop:
                return first + done
            first = part.stop
            if state.t == end:
                self.restart(state)
        return n

    def call(self, state: State, examples: Examples) -> Any:
        V, B, A = (state.arrays[name] for name in "VBA")
        sgd = self.solver.sgd_at(state.t + 1, self.penalty)
        parts = (self.loss, self.penalty, sgd, UNIFORM, None)
        return learn_rows_scaled, (*examples.given, *parts, V, B, A, state.now, examples.scores, None)

    def next_restart(self, state: State) -> float:
        return float(epoch_of(state.t + 1, self.solver.T1)[1])

    def restart(self, state: State) -> None:
        """Go on from the mean of the epoch's iterates."""
        length = 2.0 ** epoch_of(state.t, self.solver.T1)[0] * self.solver.T1
        now, mean = state.now, self.sums(state, everything(state)) / length
        now[BIAS] = now[BIAS_MEAN] = self.sum_bias(state) / length
        now[SCALE], now[SCALE_SUM], now[LAG] = 1.0, 0.0, 0.0
        now[BIAS_SUM] = now[BIAS_TOTAL] = 0.0
        state.arrays["V"][:] = state.arrays["mean"][:] = mean
        state.arrays["B"][:] = state.arrays["A"][:] = 0.0

    def eta(self, t: int) -> float:
        return float(self.solver.sgd_at(t, self.penalty).schedule.eta)

    def mean(self, state: State, columns: np.ndarray) -> np.ndarray:
        return state.arrays["mean"][columns]

    def mean_bias(self, state: State) -> float:
        return float(state.now[BIAS_MEAN])

    def readers(self, state: State) -> tuple[Any, Any]:
        last, _ = super().readers(state)
        return last, (read_kept, (state.arrays["mean"],))

    @property
    def mean_bias_reader(self) -> Any:
        return read_kept_bias

    def variables(self, state: State) -> dict[str, Any]:
        columns = everything(state)
        return {"w": self.weights(state, columns), "wbar": self.mean(state, columns)}


class DenseEpochs(Dense):
    """Epoch-GD by its dense step."""

    own_average = True

    def eta(self, t: int) -> float:
        return float(self.solver.sgd_at(t, self.penalty).schedule.eta)

    def mean(self, state: State, columns: np.ndarray) -> np.ndarray:
        return state.arrays["U"][2, 1:][columns]

    def mean_bias(self, state: State) -> float:
        return float(state.arrays["U"][2, 0])


adopt(EpochGd)
