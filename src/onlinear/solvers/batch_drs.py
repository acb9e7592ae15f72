r"""Batch Douglas-Rachford splitting: the whole mean loss g on one side, the penalty h on the other.

    x_{k+1} = prox_{lam h}(u_k);   z_{k+1} = prox_{lam g}(2 x_{k+1} - u_k);   u_{k+1} = u_k + omega_k (z_{k+1} - x_{k+1})

with omega_k = relaxation / k^relaxation_power, k from 1, and g(z) = mean_i s_i l(<z, a_i>, b_i) (MATH 10.1). u converges, since
the sum of omega_k (2 - omega_k) is infinite. The z-step minimises g(z) + |z - v|^2 / (2 lam): for the squared loss one linear
system, (A' S A / n + I / lam) z = A' S b / n + v / lam, factored once; for other smooth losses Newton's method from v.
Predictor: prox_{lam h}(u). Its fixed point minimises the objective, for any lam.

Source: Shi, Liu, section 2; MATH 10.1 (the full g, not g_{t+1}, in the z-step). A system of n unknowns is solved where n < d.
Cost:   O(n d^2 + d^3) once or per Newton step, then O(d^2) per iteration. Needs: a loss with ``curvature``; the rows at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import kernel
from onlinear.losses import Squared, weighted
from onlinear.rows import Source
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.core.state import ONE, State, T, scalars
from onlinear.solvers.drs import first_dual
from onlinear.text.form import kebab

NEWTON_STEPS, NEWTON_ACCURACY = 100, 1e-14


class BatchDrs(NamedTuple):
    """Settings: lam, and relaxation in (0, 2) (at iteration k: relaxation / k^relaxation_power)."""

    lam: float = 1.0
    relaxation: float = 1.0
    relaxation_power: float = 0.0

    added = ("relaxation_power",)
    letters = ("u", "z", "x")
    no_batch = "it takes all rows at once"
    scales = False  # a batch has no running scale

    def relaxation_at(self, k: int) -> float:
        """omega_k."""
        return float(self.relaxation / k**self.relaxation_power)

    def engine(self, problem: Problem) -> Engine:
        if not hasattr(problem.loss, "curvature"):
            name = kebab(type(problem.loss).__name__)
            raise ValueError(
                f"batch-drs needs a loss with curvature (its z-step is Newton's method); {name!r} has none: use 'odrs'."
            )
        if problem.average is not None:
            raise ValueError("batch-drs has no average: its iterates converge. Use average='none'.")
        return Batch(self, problem)


class Batch(Engine):
    """Iterations over all rows at once; ``learn`` is refused."""

    lazy = False
    batch = True
    why = "every iteration takes all rows and couples all columns"

    def start(self, w: np.ndarray, b: float) -> State:
        U = np.zeros((3, len(w) + 1))
        U[:, 0], U[1:, 1:] = b, w
        U[0, 1:] = w + self.solver.lam * first_dual(self.penalty, w)
        return State(scalars(self.problem.fit_intercept, b), {"U": U}, size=len(w), extra=1)

    def call(self, state: State, examples: Examples) -> Any:
        raise ValueError("batch-drs takes all rows at once: use solve(X, y, iterations=...) or an estimator's fit, or 'odrs'.")

    def solve(self, state: State, source: Source, y: np.ndarray, s: np.ndarray, iterations: int) -> None:
        """Run some iterations from the current u."""
        A = extended(source, state.size, float(state.now[ONE]))
        prox_g = self.squared_step(A, y, s) if isinstance(self.problem.loss, Squared) else self.newton_step(A, y, s)
        U = state.arrays["U"]
        for _ in range(iterations):
            x = self.prox(U[0])
            z = prox_g(2.0 * x - U[0])
            state.now[T] += 1.0
            U[0], U[1], U[2] = U[0] + self.solver.relaxation_at(state.t) * (z - x), z, x

    def prox(self, u: np.ndarray) -> np.ndarray:
        """prox_{lam h}, the intercept left alone."""
        return np.concatenate([u[:1], self.penalty.prox_all(u[1:], self.solver.lam)])

    def squared_step(self, A: np.ndarray, y: np.ndarray, s: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """z of the squared loss, by one factorisation."""
        n, lam = len(y), self.solver.lam
        solve, target = system(A, s / n, lam), A.T @ (s * y) / n
        return lambda v: solve(target + v / lam)

    def newton_step(self, A: np.ndarray, y: np.ndarray, s: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """z of a smooth loss: Newton's method with halving, to the last digits of the gradient."""
        n, lam, loss = len(y), self.solver.lam, self.problem.loss
        value, slope, curvature = found = np.empty((3, n))

        def cost(z: np.ndarray, v: np.ndarray) -> float:
            evaluate(loss, A @ z, y, s, found)
            return float(np.sum(value)) / n + float((z - v) @ (z - v)) / (2.0 * lam)

        def step(v: np.ndarray) -> np.ndarray:
            z = v.copy()
            for _ in range(NEWTON_STEPS):
                now = cost(z, v)
                pull, back = A.T @ slope / n, (z - v) / lam
                gradient = pull + back
                size = max(np.abs(pull).max(initial=0.0), np.abs(back).max(initial=0.0))
                if np.abs(gradient).max(initial=0.0) <= NEWTON_ACCURACY * size:
                    break
                move = system(A, curvature / n, lam)(gradient)
                length = 1.0
                while length > 1e-6 and not cost(z - length * move, v) <= now + 1e-15 * abs(now):
                    length *= 0.5
                z = z - length * move
            return z

        return step

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        return self.prox(state.arrays["U"][0])[1:][columns]

    def bias(self, state: State) -> float:
        return float(state.arrays["U"][0, 0])

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        raise ValueError("batch-drs has no average.")

    def eta(self, t: int) -> float:
        return float(self.solver.lam)

    def variables(self, state: State) -> dict[str, Any]:
        return {letter: U[1:].copy() for letter, U in zip(self.solver.letters, state.arrays["U"], strict=True)}


@kernel
def evaluate(loss, scores, y, s, found):
    """The weighted loss's value, slope and curvature at each score, (3, n)."""
    for i in range(y.shape[0]):
        found[0, i] = weighted(s[i], loss.value(scores[i], y[i]))
        found[1, i] = weighted(s[i], loss.slope(scores[i], y[i]))
        found[2, i] = weighted(s[i], loss.curvature(scores[i], y[i]))


def system(A: np.ndarray, c: np.ndarray, lam: float) -> Callable[[np.ndarray], np.ndarray]:
    """The solution map of (A' diag(c) A + I / lam) z = r, c >= 0; by Woodbury's identity where rows are fewer than columns."""
    from scipy.linalg import cho_factor, cho_solve

    n, d = A.shape
    B = np.sqrt(c)[:, None] * A
    if not (np.all(np.isfinite(B)) and 1.0 / lam < np.inf):
        raise np.linalg.LinAlgError("a system that is not finite")
    if n >= d:
        factor = cho_factor(B.T @ B + np.eye(d) / lam)
        return lambda r: cho_solve(factor, r)
    factor = cho_factor(B @ B.T + np.eye(n) / lam)
    return lambda r: lam * (r - B.T @ cho_solve(factor, B @ r))


def extended(source: Source, size: int, one: float) -> np.ndarray:
    """The rows as a dense (n, 1 + size) array; column 0 is the intercept's constant feature."""
    A = np.zeros((source.n, size + 1))
    A[:, 0] = one
    for which, rows in source.blocks():
        lengths = np.diff(rows.indptr).astype(np.int64)
        places = np.arange(which.start, which.stop).repeat(lengths)
        A[places, rows.indices.astype(np.int64) + 1] = rows.values
    return A
