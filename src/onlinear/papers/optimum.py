r"""The optimum F* to many digits, for gaps and distances, with the duality gap that certifies it.

    F(w) = (1/n) sum_i l(<w, x_i>, y_i) + r(w)

squared loss, no penalty     least squares of least norm (LAPACK)
penalty not separable (TV)   batch Douglas-Rachford until nothing changes
all else                     dual coordinate ascent: theta_i in dl_i(s_i), v = -(1/n) sum theta_i x_i, w = prox of v. One step
                             makes theta_i the implicit slope at C = |x_i|^2 / (n sigma), the loss's own ``theta``. Where the
                             penalty is not strongly convex, inside proximal point steps r(w) + (c/2) |w - w_k|^2.

The gap is F(w) minus the dual value, with l*(theta) = theta s - l(s) kept from the step that made theta. ``mu`` = v = -grad of
the mean loss, the dual variable of P1's saddle point. Source: Shalev-Shwartz, Zhang, JMLR 14 (2013), 567-599 (the ascent).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear import rows
from onlinear.compiled import bind_loss, kernel
from onlinear.learner import loss_sums
from onlinear.losses import Squared, factor_of
from onlinear.penalties import ElasticNet, soft

ACCURACY = 1e-11
PASSES, ROUNDS = 400, 60


class Optimum(NamedTuple):
    """w*, F*, the certified gap F(w) - F* <= gap (nan where there is no certificate), and mu*."""

    w: np.ndarray
    value: float
    gap: float
    mu: np.ndarray


@kernel
def ascend(rows, loss, y, order, squares, theta, conjugate, v, shift, l1, l2, centre):  # type: ignore[no-untyped-def]
    """One pass of dual coordinate ascent; w_j = soft(v_j + shift centre_j, l1) / (l2 + shift)."""
    indptr, indices, values = rows
    n, sigma = y.shape[0], l2 + shift
    for i in order:
        a = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            a += soft(v[j] + shift * centre[j], l1) / sigma * values[k]
        c = squares[i] / (n * sigma)
        if c == 0.0:
            continue
        new = loss.theta(a + c * theta[i], c, y[i])
        s = a + c * (theta[i] - new)
        conjugate[i] = new * s - loss.value(s, y[i])
        change = (new - theta[i]) / n
        theta[i] = new
        if change != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                v[indices[k]] -= change * values[k]


def squares(X: Any) -> np.ndarray:
    """|x_i|^2 of every row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.sum(np.asarray(X) ** 2, axis=1)


def gram(X: Any) -> np.ndarray:
    """X'X; a sparse X in dense blocks, which LAPACK's neighbours multiply faster than sparse products do."""
    if not sp.issparse(X):
        return np.asarray(X.T @ X)
    total = np.zeros((X.shape[1], X.shape[1]))
    for first in range(0, X.shape[0], 4096):
        block = X[first : first + 4096].toarray()
        total += block.T @ block
    return total


def least_squares(X: Any, y: np.ndarray) -> np.ndarray:
    """The least-squares solution of least norm; of a tall X by its normal equations."""
    if sp.issparse(X) or X.shape[0] > 4 * X.shape[1]:
        return np.asarray(np.linalg.pinv(gram(X), hermitian=True) @ (X.T @ y))
    return np.linalg.lstsq(X, y, rcond=None)[0]


def mean_loss(loss: Any, scores: np.ndarray, y: np.ndarray) -> float:
    """(1/n) sum_i l(score_i, y_i), the sum compensated."""
    return loss_sums.mean_loss(loss, scores[:, None], y[:, None], np.ones(len(y)))


def optimum(X: Any, y: np.ndarray, loss: Any, penalty: Any) -> Optimum:
    """The minimiser of mean loss + penalty; y (n, K): of K problems, values and gaps summed."""
    plain = isinstance(penalty, ElasticNet) and penalty.l1 == 0.0 and penalty.l2 == 0.0
    if isinstance(loss, Squared) and plain:
        w = least_squares(X, y)
        slope = float(loss.factor) * (X @ w - y)
        value = 0.5 * float(loss.factor) * float(np.sum((X @ w - y) ** 2)) / len(y)
        return Optimum(w, value, float("nan"), -np.asarray(X.T @ slope) / len(y))
    if y.ndim == 2:
        found = [optimum(X, column, loss, penalty) for column in np.ascontiguousarray(y.T)]
        return Optimum(
            np.stack([one.w for one in found], axis=1),
            float(sum(one.value for one in found)),
            float(sum(one.gap for one in found)),
            np.stack([one.mu for one in found], axis=1),
        )
    if isinstance(penalty, ElasticNet):
        return by_ascent(X, y, loss, penalty)
    return by_splitting(X, y, loss, penalty)


def by_splitting(X: Any, y: np.ndarray, loss: Any, penalty: Any) -> Optimum:
    """Batch Douglas-Rachford; lam from the size of the loss's curvature."""
    from onlinear import Learner

    top = float(np.linalg.norm(X.toarray() if sp.issparse(X) else X, 2) ** 2) / len(y)
    learner = Learner(f"batch-drs,lam={1.0 / max(0.01 * top, 1e-12)!r}", loss, penalty, n_features=X.shape[1])
    value = np.inf
    for _ in range(ROUNDS):
        learner.solve(X, y, PASSES)
        new = learner.objective(X, y)
        if abs(value - new) <= 1e-14 * abs(new):
            break
        value = new
    w = learner.weights()
    return Optimum(w, learner.objective(X, y), float("nan"), np.full(len(w), np.nan))


def by_ascent(X: Any, y: np.ndarray, loss: Any, penalty: ElasticNet) -> Optimum:
    """Dual coordinate ascent, within proximal point steps where l2 = 0."""
    source = rows.read(X).stored()
    n, d = len(y), X.shape[1]
    sizes, factor = squares(X), factor_of(loss)
    bound = bind_loss(loss)
    # A factor k of the loss: k l + r has the minimiser of l + r / k.
    l1, l2 = penalty.l1 / factor, penalty.l2 / factor
    shift = 0.0 if l2 >= 1e-6 * sizes.max() else 1e-3 * sizes.max()
    theta = np.array([loss.slope(0.0, target) for target in y])
    conjugate = np.array([-loss.value(0.0, target) for target in y])
    v, centre = -np.asarray(X.T @ theta).ravel() / n, np.zeros(d)
    rng = np.random.default_rng(0)
    value = gap = np.inf
    size = max(mean_of(loss, np.zeros(n), y), np.finfo(float).tiny)  # F(0): the scale that accuracy is relative to
    for _ in range(ROUNDS if shift else 1):
        for _ in range(PASSES):
            ascend(source.data, bound, y, rng.permutation(n), sizes, theta, conjugate, v, shift, l1, l2, centre)
            w = soft_all(v + shift * centre, l1) / (l2 + shift)
            primal = mean_of(loss, X @ w, y) + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
            inner = primal + 0.5 * shift * np.sum((w - centre) ** 2)
            pull = soft_all(v + shift * centre, l1)
            dual = -conjugate.mean() - (pull @ pull / (2.0 * (l2 + shift)) - 0.5 * shift * centre @ centre)
            gap = inner - dual
            if gap <= ACCURACY * size:
                break
        moved, value, centre = value - primal, primal, w
        if not shift or 0.0 <= moved <= 0.1 * ACCURACY * size:
            break
    return Optimum(w, factor * value, factor * (gap if not shift else gap + max(moved, 0.0)), factor * v)


def mean_of(loss: Any, scores: np.ndarray, y: np.ndarray) -> float:
    """The mean loss without its factor."""
    return mean_loss(loss, scores, y) / factor_of(loss)


def soft_all(v: np.ndarray, k: float) -> np.ndarray:
    """The soft threshold of every entry."""
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)
