r"""The implicit step on the mean loss of k rows, by the dual of the k rows (MATH 21.2).

    w(theta) = prox_{c r}(v - (c/k) sum_i theta_i x_i),   z_i = <w(theta), x_i>,   theta_i in s_i dl(z_i, y_i)

An epoch takes the rows in turn. While the others stay, z_i is a line in theta_i on each piece of the prox: the step (2.2) of
the loss on the line at theta_i is taken until the piece reproduces it, as FIOL does for one row. That climbs the concave dual.
Between epochs a step of Newton's method for theta = P(theta),

    P_i = s_i theta(z_i + Q_i theta_i, s_i Q_i, y_i),   Q_i = (c/k) |x_i|^2 / (1 + c l2),

is kept where it brings the two closer. The step ends where all rows reproduce their theta to the last digits, or where the
duality gap is at most 1e-12 of its terms.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.losses import weighted
from onlinear.rows import Rows

REPRODUCED = 1e-14
ENOUGH = 1e-12  # also of the relative duality gap, where a further round brings the rows little closer
MOST_ROUNDS, MOST_ROWS_TAKEN, MOST_SEGMENTS = 200, 1 << 15, 60
DAMPINGS = 0.0, 1e-9, 1e-6, 1e-4, 1e-2, 1.0
STEP = 1e-7  # of the difference that stands for the slope of P


class Start(NamedTuple):
    """Where the step of the loss starts: the weights v at the columns, the step size c, and the penalty of the prox."""

    v: np.ndarray
    c: float
    penalty: Any


class Job(NamedTuple):
    """A batch as kernels take it: the rows, whose columns are places of ``v``, and what they share."""

    indptr: np.ndarray
    places: np.ndarray
    values: np.ndarray
    y: np.ndarray
    s: np.ndarray
    v: np.ndarray
    b: float
    one: float
    step: float  # c/k
    threshold: float
    shrink: float


@function
def point(job, penalty, j, g):  # type: ignore[no-untyped-def]
    """The weight at place j where the thetas sum to g there, and whether it follows g."""
    return penalty.land(job.v[j] - job.step * g, job.threshold, job.shrink)


@function
def score_of(job, penalty, i, G, total):  # type: ignore[no-untyped-def]
    """z_i, from the sums G of theta x at each place and of theta."""
    z = (job.b - job.step * total) * job.one
    for k in range(job.indptr[i], job.indptr[i + 1]):
        w, _ = point(job, penalty, job.places[k], G[job.places[k]])
        z += w * job.values[k]
    return z


@function
def answer(job, loss, i, z, theta, Q):  # type: ignore[no-untyped-def]
    """The row's own theta where its score is z at theta."""
    return weighted(job.s[i], loss.theta(z + Q * theta, job.s[i] * Q, job.y[i]))


@kernel
def add_up(job, theta, G):  # type: ignore[no-untyped-def]
    """Fill in the sums of theta x; give the sum of theta."""
    G[:] = 0.0
    total = 0.0
    for i in range(theta.shape[0]):
        for k in range(job.indptr[i], job.indptr[i + 1]):
            G[job.places[k]] += theta[i] * job.values[k]
        total += theta[i]
    return total


@function
def slope_of(job, penalty, i, G):  # type: ignore[no-untyped-def]
    """-dz_i / dtheta_i at the pieces of the prox where the sums are G."""
    D = job.step * job.one
    for k in range(job.indptr[i], job.indptr[i + 1]):
        _, free = point(job, penalty, job.places[k], G[job.places[k]])
        D += job.step * job.shrink * free * job.values[k] * job.values[k]
    return D


@kernel
def epoch(job, loss, penalty, theta, G, total):  # type: ignore[no-untyped-def]
    """Take the rows in turn: each gets the theta that is best while the others stay. Give the sum of theta."""
    for i in range(theta.shape[0]):
        low, high = -inf, inf
        for _ in range(MOST_SEGMENTS):
            z, D = score_of(job, penalty, i, G, total), slope_of(job, penalty, i, G)
            new = answer(job, loss, i, z, theta[i], D)
            if abs(new - theta[i]) <= REPRODUCED * abs(theta[i]):
                break
            if new > theta[i]:
                low = theta[i]
            else:
                high = theta[i]
            if not low < new < high:
                new = 0.5 * (low + high)
            move = new - theta[i]
            for k in range(job.indptr[i], job.indptr[i + 1]):
                G[job.places[k]] += move * job.values[k]
            total += move
            theta[i] = new
    return total


@kernel
def answer_all(job, loss, penalty, Q, theta, G, total, scores, found, slope):  # type: ignore[no-untyped-def]
    """Fill in the scores of all rows at theta, their answers, and how these change with the score."""
    for i in range(theta.shape[0]):
        z = scores[i] = score_of(job, penalty, i, G, total)
        found[i] = answer(job, loss, i, z, theta[i], Q[i])
        h = STEP * max(1.0, abs(z + Q[i] * theta[i]))
        slope[i] = (answer(job, loss, i, z + h, theta[i], Q[i]) - answer(job, loss, i, z - h, theta[i], Q[i])) / (2.0 * h)


@kernel
def products(job, penalty, order, owner, G, K):  # type: ignore[no-untyped-def]
    """Fill in -dz_i / dtheta_j at the pieces of the prox where the sums are G; ``order`` sorts the entries by place."""
    K[:] = job.step * job.one
    begin = 0
    while begin < order.shape[0]:
        place, end = job.places[order[begin]], begin
        while end < order.shape[0] and job.places[order[end]] == place:
            end += 1
        _, free = point(job, penalty, place, G[place])
        if free != 0.0:
            for a in range(begin, end):
                x = job.step * job.shrink * job.values[order[a]]
                for e in range(begin, end):
                    K[owner[order[a]], owner[order[e]]] += x * job.values[order[e]]
        begin = end


@kernel
def eliminate(J, x):  # type: ignore[no-untyped-def]
    """Turn x into the solution of J solution = x, by Gauss's elimination with pivots; J is used up."""
    n = x.shape[0]
    for p in range(n):
        best = p
        for i in range(p + 1, n):
            if abs(J[i, p]) > abs(J[best, p]):
                best = i
        for j in range(p, n):
            J[p, j], J[best, j] = J[best, j], J[p, j]
        x[p], x[best] = x[best], x[p]
        if J[p, p] == 0.0:
            x[:] = nan
            return
        for i in range(p + 1, n):
            f = J[i, p] / J[p, p]
            if f != 0.0:
                for j in range(p, n):
                    J[i, j] -= f * J[p, j]
                x[i] -= f * x[p]
    for p in range(n - 1, -1, -1):
        for j in range(p + 1, n):
            x[p] -= J[p, j] * x[j]
        x[p] /= J[p, p]


class BatchDual:
    """The dual of one batch. ``loss`` is ``own`` as kernels take it; None stands for one without a conjugate."""

    def __init__(
        self, own: Any, loss: Any, rows: Rows, y: np.ndarray, s: np.ndarray, start: Start, b: float, one: float
    ) -> None:
        columns, places = np.unique(rows.indices, return_inverse=True)
        first = np.searchsorted(rows.indices, columns, sorter=(order := np.argsort(rows.indices, kind="stable")))
        k, penalty = rows.count, start.penalty
        self._own, self._loss, self._penalty, self._order = own, loss, penalty, order
        shrink = 1.0 / (1.0 + start.c * penalty.l2)
        v = np.ascontiguousarray(start.v[order[first]])
        sizes = start.c / k, start.c * penalty.l1, shrink
        self._job = Job(rows.indptr, places.astype(np.int64), rows.values, y, s, v, b, one, *sizes)
        lengths = np.diff(rows.indptr).astype(np.int64)
        self._owner = np.repeat(np.arange(k), lengths)
        squares = np.bincount(self._owner, np.square(rows.values), k)
        self._Q = start.c / k * (shrink * squares + one)
        self._G, self._scores = np.zeros(len(columns)), np.zeros(k)
        self._place = 0  # of the damping that helped last

    def thetas(self) -> np.ndarray | None:
        """The theta of each row, nan where one is not finite; None where no number of rounds reproduces them."""
        job, loss, penalty, Q, G = self._job, self._loss, self._penalty, self._Q, self._G
        theta, best, idle = np.zeros(len(Q)), np.inf, 0
        for _ in range(max(MOST_ROUNDS, MOST_ROWS_TAKEN // len(Q))):
            epoch(job, loss, penalty, theta, G, add_up(job, theta, G))
            far, found, slope = self._look(theta)
            size = float(np.abs(found).max())
            idle = 0 if far < 0.5 * best else idle + 1
            best = min(best, far)
            if far <= REPRODUCED * size or (idle > 1 and (far <= ENOUGH * size or self.gap(theta) <= ENOUGH)):
                return theta
            if not np.isfinite(far):
                return np.full(len(theta), nan)
            self._newton(theta, far, found, slope)
        return theta if self.gap(theta) <= ENOUGH else None

    def gap(self, theta: np.ndarray) -> float:
        """The duality gap at theta, relative to the losses and products that it is the difference of."""
        if not hasattr(self._own, "conjugate"):
            return inf
        self._look(theta)
        gap = size = 0.0
        for z, t, y, s in zip(self._scores.tolist(), theta.tolist(), self._job.y.tolist(), self._job.s.tolist(), strict=True):
            if s > 0.0:
                terms = s * float(self._own.value(z, y)), s * float(self._own.conjugate(t / s, y)), -t * z
                gap, size = gap + sum(terms), size + sum(map(abs, terms))
        return gap / size if size > 0.0 else 0.0

    def _look(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """How far the rows are from their answers, these, and their slopes."""
        found, slope = np.empty((2, len(theta)))
        total = add_up(self._job, theta, self._G)
        answer_all(self._job, self._loss, self._penalty, self._Q, theta, self._G, total, self._scores, found, slope)
        return float(np.abs(found - theta).max()), found, slope

    def _newton(self, theta: np.ndarray, far: float, found: np.ndarray, slope: np.ndarray) -> None:
        """Move theta by a step of Newton's method, shortened where it leads away; leave it where that does not help.

        The rows of a batch may depend on each other, so the step is that of Levenberg and Marquardt.
        """
        K = np.empty((len(theta), len(theta)))
        products(self._job, self._penalty, self._order, self._owner, self._G, K)
        K[np.diag_indices_from(K)] -= self._Q
        J, move = slope[:, None] * K, np.empty(len(theta))
        for place in range(max(0, self._place - 1), len(DAMPINGS)):
            system = J.copy()
            system[np.diag_indices_from(J)] += 1.0 + DAMPINGS[place]
            move[:] = found - theta
            eliminate(system, move)
            new = theta + move
            if self._look(new)[0] < far:
                self._place = place
                theta[:] = new
                return
