"""What the methods share that take all rows at once and stop at a certified gap: their state, settings and what they refuse."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from onlinear.certified import Gap, gap_of_output, refuse_uncertified
from onlinear.certified.columns import Stored
from onlinear.certified.joint_newton import JointNewton
from onlinear.certified.newton import Limits, PassReport, Solution, Tell
from onlinear.files import trust
from onlinear.losses import is_joint
from onlinear.penalties import Box, ElasticNet, told
from onlinear.rows import Source
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.state import BIAS, OWN, State, T, scalars

OBJECTIVE, BOUND, LOWEST, ITERATIONS, PASSES = range(OWN, OWN + 5)


class CertifiedEngine(Engine):
    """Solves a stored problem; the state is w, b and the last certificate. ``learn`` is refused."""

    lazy = grows = False
    batch = certifies = True
    why = "every iteration takes all rows"

    def __init__(self, solver: Any, problem: Problem) -> None:
        if problem.average is not None:
            raise ValueError(f"{problem.name} has no average: it ends at the optimum. Use average='none'.")
        if type(problem.penalty) not in (ElasticNet, Box):
            what = told(problem.penalty)
            raise ValueError(f"{problem.name} takes l1, l2 and elastic-net, with or without bounds, not {what}; use 'odrs'.")
        refuse_uncertified(problem.loss, problem.penalty)
        super().__init__(solver, problem)

    def start(self, w: np.ndarray, b: float) -> State:
        return State(scalars(self.problem.fit_intercept, b), {"w": w.copy()}, size=len(w))

    def call(self, state: State, examples: Examples) -> Any:
        raise ValueError(
            f"{self.problem.name} takes all rows at once: use fit of an estimator or solve(X, y, iterations=...), or 'fiol'."
        )

    def prepare(self, source: Source) -> Stored:
        """The rows as all outputs take them."""
        return Stored.of(source)

    def solve(self, state: State, source: Any, y: np.ndarray, s: np.ndarray, iterations: int, tell: Tell | None = None) -> None:
        """Go on until the gap is at most ``tol``, for ``iterations`` passes over all rows at most."""
        limits = Limits(self.solver.tol, iterations)
        found = self.optimum(source, y, s, state.arrays["w"], float(state.now[BIAS]), limits, tell)
        self._refuse_infinite(found)
        self._end(state, found.w, found.b, found.gap, found, len(y))

    def solve_outputs(
        self, states: list[State], source: Any, y: np.ndarray, s: np.ndarray, iterations: int, *more: Any
    ) -> None:
        """``solve`` for outputs one after the other, or for those that one loss joins together: the first state then takes the
        certificate of all."""
        if is_joint(self.problem.loss):
            self._solve_joined(states, source, y.argmax(axis=1), s, iterations, *more)
        else:
            super().solve_outputs(states, source, y, s, iterations, *more)

    def _solve_joined(
        self, states: list[State], source: Stored, own: np.ndarray, s: np.ndarray, iterations: int, tell: Tell | None = None
    ) -> None:
        weights, size = np.array([state.arrays["w"] for state in states]), states[0].size
        begin = np.array([float(state.now[BIAS]) for state in states])
        run = JointNewton(source, size, len(states), self.penalty, own, s, self.problem.fit_intercept)
        found = run.solve(weights.ravel(), begin, Limits(self.solver.tol, iterations), tell)
        self._refuse_infinite(found)
        for k, state in enumerate(states):
            w, gap = found.w[k * size : (k + 1) * size], gap_of_output(found.gap, k)
            self._end(state, w, found.b[k], gap, found, len(own))

    def _refuse_infinite(self, found: Solution) -> None:
        if not (np.isfinite(found.gap.objective) and np.all(np.isfinite(found.w)) and np.all(np.isfinite(found.b))):
            raise OverflowError(f"{self.problem.name}: the objective is not finite")

    def _end(self, state: State, w: np.ndarray, b: float, gap: Gap, found: Solution, rows: int) -> None:
        """Let a state end at w and b, after the iterations and passes of a solution."""
        state.arrays["w"][:], state.now[BIAS] = w, b
        state.now[[OBJECTIVE, BOUND, LOWEST]] = gap
        state.now[ITERATIONS] += found.iterations
        state.now[PASSES] += found.passes
        state.now[T] += found.passes * rows

    @abstractmethod
    def optimum(
        self, rows: Stored, y: np.ndarray, s: np.ndarray, w: np.ndarray, b: float, limits: Limits, tell: Tell | None
    ) -> Solution:
        """Solve the problem from w and b."""

    def check(self, state: State) -> None:
        super().check(state)
        objective, bound, lowest = state.now[[OBJECTIVE, BOUND, LOWEST]]
        size = 1e-9 * (abs(objective) + abs(bound))
        trust.must(lowest <= bound + size and bound <= objective + size, "a certificate that no run has")

    def check_together(self, states: list[State]) -> None:
        """Outputs are solved one after the other, each in as many passes as it needs."""
        begun = [state.rows > 0 for state in states]
        trust.must(all(begun) or not any(begun), "outputs that have learned rows beside others that have none")

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return state.arrays["w"][columns]

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        raise ValueError(f"{self.problem.name} has no average.")

    def eta(self, t: int) -> float:
        return 1.0


def stand(state: State, w: np.ndarray, b: float, gap: Gap, counts: tuple[int, int, int]) -> None:
    """Let a state stand at w and b with their certificate; ``counts``: outer iterations, passes and rows learned in all."""
    state.arrays["w"][:], state.now[BIAS] = w, b
    state.now[[OBJECTIVE, BOUND, LOWEST]] = gap
    state.now[[ITERATIONS, PASSES, T]] = counts


def certificate(state: State) -> Gap:
    """The last certificate of a state."""
    return Gap(*map(float, state.now[[OBJECTIVE, BOUND, LOWEST]]))


def add_passes(state: State, passes: int, rows: int) -> None:
    """Count passes over so many rows that were made before."""
    state.now[[PASSES, T]] += passes, passes * rows


def counted(state: State) -> tuple[int, int]:
    """Outer iterations, and passes over all rows."""
    return int(state.now[ITERATIONS]), int(state.now[PASSES])


def readings(learner: Any, passes: int) -> int:
    """The passes over all rows: of a learner that certified the most of its outputs, of any other ``passes``."""
    certified = isinstance(getattr(learner, "engine", None), CertifiedEngine)
    return max(counted(state)[1] for state in learner.states) if certified else passes


__all__ = ["CertifiedEngine", "PassReport", "Tell", "add_passes", "certificate", "counted", "readings", "stand"]
