r"""Follow the regularised leader, proximally and implicitly: the loss of the row is taken at the new weights (implicit FTRL).

    w_{t+1} = argmin_w  l(<w, x_t>, y_t) + t r(w) + <u, w> + sum_j sigma_j w_j^2 / 2                          (MATH 18.1)

For each x_j that is not 0, with the slope g = l'(<w_t, x_t>, y_t), a row first does

    G_j += (g x_j)^2,      sigma_j = sqrt(G_j) / c_t,      u_j = z_j - (sigma_j - sigma_j before) w_j,

where c_t = eta sqrt(t / N) and N is the sum of 1 + |x|^2 so far; sqrt(G_j) counts as 1e-8 t l1 where it is less, so that
a weight is more than rounding. Elsewhere u_j = z_j. Then, with theta in dl(<w_{t+1}, x>),

    z_j = u_j + theta x_j,      w_j = -soft(z_j, t l1) / (sigma_j + t l2),                                    (MATH 18.2)

and theta is the one root of theta in dl(A(theta)), A(theta) = <x, w(theta)>, piecewise linear and non-increasing. It is
searched from segment to segment, as in FIOL. Without a penalty this is w - theta x / sigma: an implicit step in the metric of
AdaGrad. The intercept is a coordinate without penalty. A row with slope 0 or weight 0 moves t alone, and N if it has a weight.

c_t is small where rows have many entries, so the intercept of rare classes would need thousands of rows. With ``intercept`` > 0
its own c_t is at least that share of eta: max(c_t, intercept eta).

Outputs that one loss joins have one sigma, with the norm of their slopes for g. Their thetas are those of section 19: without a
penalty with C = sum_j x_j^2 / sigma_j for all, else from segments of each.

Source: the method is this package's. FTRL-Proximal is McMahan et al., KDD 2013; the metric Duchi, Hazan, Singer, JMLR 12, 2011.
Lazy:   z_j, sigma_j and G_j change with x_j alone, and w_j follows from them and t. Averages as in MATH 18.3.
Forget: With a half-life, forget=, all sums fade, just as lazily (MATH 18.8; solvers/forgetting).
Cost:   O(nnz(x_t)) per row.   Needs: a loss with theta; none, l1, l2 or elastic-net without bounds.
"""

from __future__ import annotations

from math import copysign, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import (
    LANES,
    WIDTH,
    adopt,
    function,
    laid_out,
    lanes,
    nothing,
    number_at,
    of_output,
    put_number,
    same_lanes,
    taken,
    total,
    value_at,
    where,
)
from onlinear.files import trust
from onlinear.losses import weighted
from onlinear.penalties import is_bare, soft
from onlinear.rows import Rows
from onlinear.solvers.core.dense import dot
from onlinear.solvers.core.engine import Engine, Problem, needs_theta
from onlinear.solvers.core.joint import packs_of
from onlinear.solvers.core.loop import OF_AIMS, room_to_search
from onlinear.solvers.core.pack import LEFT, TARGETS, WEIGHTS, turned, whole, work_of_pack
from onlinear.solvers.core.pack_averages import PULLS
from onlinear.solvers.core.plain import PlainEngine, check_penalty
from onlinear.solvers.core.resting import idle_sum
from onlinear.solvers.core.state import OWN, State
from onlinear.solvers.fiol import MOST_SEGMENTS, padded, put_search, refined, refined_all

REPRODUCED = 1e-14  # by what theta may move where a segment counts as found: a step that ends at a kink should end there
LEAST = 1e-300  # G and N below it count as it: roots of them are divided by
SMALLEST = 1e-8
WIDER = 1.0 + 1e-6  # by what the bracket of theta is widened: a root at its end is looked for like any other


class ImplicitFtrlStep(NamedTuple):
    """What one step needs: ``l1`` and ``l2``, the penalty of all steps before it, ``more1`` and ``more2``, of this one too; and
    once the row is scored, its slope ``g``, ``grow`` = 1 / c_t, and ``bias`` = 1 / sigma of the intercept."""

    eta: Any
    bias: Any
    b: Any
    after: Any
    t: Any
    l1: Any
    l2: Any
    more1: Any
    more2: Any
    g: Any
    grow: Any


@function
def weight(z, sigma, l1, l2):
    """-soft(z, l1) / (sigma + l2), with the penalty of all steps so far; 0 for a coordinate that no row has named."""
    return -soft(z, l1) / max(sigma + l2, LEAST)


@function
def size_of(G, l1):
    """sqrt(G), never 0, and no less than ``SMALLEST`` of the penalty so far: a weight is (|z| - l1) / sigma, and below that the
    rounding of the difference would be all of it."""
    return max(sqrt(max(G, LEAST)), SMALLEST * l1)


@function
def segment(x, u, inverse, m, theta, l1):
    """A(theta) and its slope -D on the segment at theta, with inverse = 1 / (sigma + t l2)."""
    A, D = nothing(), nothing()
    all_move = 1.0 * (l1 == 0.0)
    for k in range(np.uint64(0), np.uint64(m), LANES):
        x_k, shrunk = taken(x, k), taken(x, k) * taken(inverse, k)
        z = taken(u, k) + theta * x_k
        A -= shrunk * soft(z, l1)
        D += max(1.0 * (abs(z) > l1), all_move) * (shrunk * x_k)
    return total(A), total(D)


@function
def begun(A, D, A_0, l1, loss, s, y):
    """Where the search stands at its start: theta, the score expected there, the bracket of the root, and 1 where it goes on.

    The root lies between 0 and the slope at A(0), as A does not increase."""
    if not isfinite(A + D + A_0):
        return nan, nan, nan, nan, 0.0
    theta = weighted(s, loss.theta(A, s * D, y))
    if l1 == 0.0:
        return theta, nan, nan, nan, 0.0
    end = WIDER * weighted(s, loss.slope(A_0, y))
    low, high, expected = min(end, 0.0), max(end, 0.0), A - D * theta
    if not low <= theta <= high:
        theta, expected = min(max(theta, low), high), nan
    return theta, expected, low, high, 1.0


@function
def root(x, u, inverse, m, l1, b, D_b, lean, loss, s, y):
    """theta, from segment to segment; NaN where a sum overflows.

    b, D_b: the intercept and 1 / its sigma. ``lean``: A at 0 and its slope -D, of the line where the search begins, and A(0);
    all without the intercept."""
    theta, expected, low, high, left = begun(lean[0] + b, lean[1] + D_b, lean[2] + b, l1, loss, s, y)
    if left == 0.0:
        return theta
    for _ in range(MOST_SEGMENTS):
        A, D = segment(x, u, inverse, m, theta, l1)
        A, D = A + b - D_b * theta, D + D_b
        found, theta, expected, low, high = refined(REPRODUCED, loss, s, y, A, D, theta, expected, low, high)
        if found:
            break
    return theta


@function
def segments(work, start, wide, x, m, theta, l1):
    """``segment`` for outputs side by side, of the numbers in ``work``, of which an entry has ``wide`` rows, from row ``start``
    on. Each of the four parts of a sum has a loop of its own: registers do not hold the eight sums of eight outputs."""
    nought = same_lanes(0.0), same_lanes(0.0)
    sums = nought, nought, nought, nought
    all_move = 1.0 * (l1 == 0.0)
    for part in range(4):
        A, D = nought
        for k in range(np.int64(part), m, np.int64(4)):
            x_k = value_at(x, k)
            first = start + wide * k
            u, shrunk = lanes(work, first), x_k * lanes(work, first + 1)
            z = u + theta * x_k
            A -= shrunk * soft(z, l1)
            D += max(1.0 * (abs(z) > l1), all_move) * (shrunk * x_k)
        sums = turned(sums, (A, D))
    return whole(sums)


@function
def roots(lean, work, outputs, s, l1, b, D_b, loss, x, m):
    """The roots of outputs side by side, lane by lane those of ``root``, in place of the slopes in ``work``."""
    starts = laid_out((lean[0] + b, lean[1] + D_b, lean[2] + b, l1))
    remain = 0
    for o in range(outputs):
        put_number(work, LEFT, o, 0.0)
        if number_at(work, PULLS, o) != 0.0:
            A, D, A_0, its = of_output(starts, o)
            theta, expected, low, high, left = begun(A, D, A_0, its, loss, s, number_at(work, TARGETS, o))
            put_search(work, o, theta, expected, low, high, left)
            remain += left != 0.0
    for _ in range(MOST_SEGMENTS):
        if remain == 0:
            break
        theta = lanes(work, PULLS)
        A, D = segments(work, WEIGHTS, 5, x, m, theta, l1)
        remain = refined_all(REPRODUCED, work, outputs, laid_out((A + b - D_b * theta, D + D_b)), loss, s)


class ImplicitFtrl(NamedTuple):
    """Settings: a coordinate's step is c_t over the root of the sum of its squared gradients, c_t = eta sqrt(t / N)."""

    eta: float = 2.0
    intercept: float = 0.0

    letters = ("w", "z", "sigma", "G", "N")
    no_batch = "its metric follows from the slopes of one row"
    stable = True  # every step is implicit in the loss and in the penalty

    def step(self, U, x, y, s, t, loss, penalty):
        w, z, sigma, G = U[0], U[1], U[2], U[3]
        U[4, 0] += (s != 0.0) * dot(x, x)  # N is one number
        g = weighted(s, loss.slope(dot(w, x), y))
        l1, l2 = t * penalty.l1, t * penalty.l2
        if g != 0.0:
            grow = self.inverse_step(U[4, 0], t)
            on = np.flatnonzero(x)
            for j in on:
                G[j] += (g * x[j]) * (g * x[j])
                new = size_of(G[j], l1) * grow if j > 0 else size_of(G[j], 0.0) * self.inverse_of_intercept(grow)
                z[j] -= (new - sigma[j]) * w[j]
                sigma[j] = new
            b, D_b = (w[0], 1.0 / sigma[0]) if x[0] != 0.0 else (0.0, 0.0)
            named = on[on > 0]
            xs, u, inverse = padded(x[named]), padded(z[named]), padded(1.0 / (sigma[named] + l2))
            m = named.shape[0]
            A, D = segment(xs, u, inverse, m, 0.0, l1)
            z += x * root(xs, u, inverse, m, l1, b, D_b, (A, D, A), loss, s, y)
        w[0] = weight(z[0], sigma[0], 0.0, 0.0)
        for k in range(1, len(w)):
            w[k] = weight(z[k], sigma[k], l1, l2)

    def begin(self, U, penalty):
        if np.any(U):
            raise ValueError("implicit-ftrl starts at w = 0: a weight without a gradient has no sigma; start= is not possible.")

    def predictor(self, U, t, penalty):
        return U[0]

    def inverse_step(self, N, t):
        """1 / c_t = sqrt(N / t) / eta."""
        return sqrt(max(N, LEAST) / t) / self.eta

    def inverse_of_intercept(self, grow):
        """The same of the intercept, from that of the others."""
        return min(grow, 1.0 / max(self.intercept * self.eta, LEAST)) if self.intercept > 0.0 else grow

    def begin_step(self, t, clock, b, penalty):
        before, now = t - 1.0, t + 0.0
        l1, l2 = penalty.l1, penalty.l2
        return ImplicitFtrlStep(1.0, 0.0, b, clock, now, before * l1, before * l2, now * l1, now * l2, 0.0, 0.0)

    def weight_of(self, v, c, penalty):
        z, sigma, _ = v
        return weight(z, sigma, c.l1, c.l2)

    def terms(self, v, x, c, penalty):
        return self.weight_of(v, c, penalty) * x, x * x

    def scores(self, sums, one, s, c, penalty):
        return sums[0] + c.b * one, sums[1] + one

    def pull(self, row, y, s, c, loss):
        """g, at the old score; ``search`` finds theta."""
        return weighted(s, loss.slope(row[0], y))

    def measured(self, g, row, s, one, c, own):
        """The step in the row's metric; G and sigma of the intercept, and N."""
        G, sigma, N = own
        N += (1.0 if s != 0.0 else 0.0) * row[1]
        grow = self.inverse_step(N, c.t)
        G += g * g
        sigma = where(g != 0.0, size_of(G, 0.0) * self.inverse_of_intercept(grow), sigma)
        bias = 1.0 / max(sigma, LEAST)
        return ImplicitFtrlStep(c.eta, bias, c.b, c.after, c.t, c.l1, c.l2, c.more1, c.more2, g, grow), (G, sigma, N)

    def aimed(self, v, w, x, c, penalty):
        """u, 1 / (sigma + t l2), and the new sigma and G."""
        z, sigma, G = v
        g = c.g * x
        squares = G + g * g
        new = size_of(squares, c.more1) * c.grow
        return z - (new - sigma) * w, 1.0 / (new + c.more2), new, squares

    def leaned(self, aim, x, c):
        """A at 0 and its slope -D on the segment where no weight is 0: weights that are 0 at theta = 0 get the sign of -g x.
        And A(0)."""
        u, inverse, _, _ = aim
        ahead = where(abs(u) > c.more1, u, c.g * x)
        shrunk = x * inverse
        return shrunk * (copysign(c.more1, ahead) - u), shrunk * x, -shrunk * soft(u, c.more1)

    def found(self, lean, y, s, one, c, loss, x, u, inverse, m):
        return root(x, u, inverse, m, c.more1, c.b * one, c.bias * one, lean, loss, s, y)

    def found_all(self, lean, work, outputs, s, one, c, loss, x, m):
        roots(lean, work, outputs, s, c.more1, c.b * one, c.bias * one, loss, x, m)

    def searched(self, v, x, c, penalty):
        """What ``on_segment`` needs of an entry: u and 1 / (sigma + t l2)."""
        u, inverse, _, _ = self.aimed(v, self.weight_of(v, c, penalty), x, c, penalty)
        return u, inverse

    def on_segment(self, work, first, x, m, theta, b, one, c, penalty):
        """A(theta) and D of outputs side by side, of the numbers in ``work`` from entry ``first`` on."""
        A, D = segments(work, np.int64(first) * 2, 2, x, m, theta, c.more1)
        return A + b - c.bias * one * theta, D + c.bias * one

    def reached(self, aim, x, theta, c):
        u, _, sigma, G = aim
        return u + theta * x, sigma, G

    def moved(self, v, x, theta, c, penalty):
        return self.reached(self.aimed(v, self.weight_of(v, c, penalty), x, c, penalty), x, theta, c)

    def idle_sum(self, v, stamp, t, average, penalty):
        z, sigma, _ = v
        return idle_sum(z, sigma, penalty.l1, penalty.l2, True, stamp, t, average)

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        check_penalty(problem, "'fiol', 'comid' or 'odrs'")
        return LazyImplicitFtrl(self, problem)


class LazyImplicitFtrl(PlainEngine):
    """Implicit FTRL in O(non-zeros)."""

    implicit = metric = stepped = True
    measures_lanes = True
    own_numbers = (0.0, 0.0, 0.0)  # G and sigma of the intercept, and N
    letters: tuple[str, ...] = ("z", "sigma", "G")

    shares_metric = True

    def joint_work(self, rows: Rows, outputs: int) -> tuple[np.ndarray | None, bool | None]:
        if is_bare(self.penalty):
            return None, None
        return np.empty((2 * packs_of(outputs) * rows.longest, WIDTH)), True

    def aims(self, rows: Rows) -> np.ndarray:
        return room_to_search(rows, OF_AIMS + len(self.letters))

    def pack_aims(self, rows: Rows) -> np.ndarray:
        return work_of_pack(5 * rows.longest)

    def check(self, state: State) -> None:
        super().check(state)
        numbers = state.now[OWN : OWN + len(self.own_numbers)], state.vectors()["sigma"], state.vectors()["G"]
        trust.must(all(bool(np.all(found >= 0.0)) for found in numbers), "sums of squares below 0")


adopt(ImplicitFtrl)
