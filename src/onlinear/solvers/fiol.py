r"""Fully implicit online learning: the loss of the row and the penalty are both taken at the new weights.

    w_{t+1} = argmin_w  l(<w, x_t>, y_t) + r(w) + |w - w_t|^2 / (2 eta_t)                                    (MATH 8.1)

With theta in dl(<w_{t+1}, x>) the answer is w(theta) = prox_{eta r}(w_t - eta theta x), and theta is the one root of

    theta in dl(A(theta)),      A(theta) = <x, w(theta)>,                                                     (MATH 8.2)

where A is piecewise linear and non-increasing. On a segment A(theta) = c - D theta and the root is the scalar implicit step
theta(c, D, y) of the loss (MATH 8.5), clamped to the segment. Five searches for the segment give the same root:

    newton      take the segment at theta, jump to its root, until the segment reproduces theta; bracketed
    sort        Algorithm 1: sort the 2k breakpoints, then search them
    sweep       Algorithm 1 as it is printed: sort them, and go through them in order
    partition   Algorithm 2: quick-select among them, O(k) unless the rows are made against it
    random      Algorithm 2 as it is printed: random pivots, and only what lies in the range of l' (section 3.3), expected O(k)

Without l1 and bounds there is one segment, and theta is its root at once.

Which side of b the root lies on (MATH 8.6) is asked of the loss itself: theta(A(b) + b, 1, y) - b has the sign of root - b.

Source: Song et al., Fully Implicit Online Learning, 2018, as reconstructed in MATH 8.
Lazy:   where x_t is 0 the step is the bare prox: potentials, as COMID; the search needs the row's columns only.
Cost:   O(k) per row with k = nnz(x_t) (sort: O(k log k)).   Needs: a loss with theta; the built-in separable penalty.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, inf, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import (
    LANES,
    WIDTH,
    adopt,
    function,
    kernel,
    laid_out,
    lanes,
    nothing,
    number_at,
    numbers,
    of_output,
    put_lanes,
    put_number,
    room,
    same_lanes,
    some,
    taken,
    total,
    value_at,
    where,
)
from onlinear.files.trust import Span
from onlinear.losses import is_joint, weighted
from onlinear.penalties import told
from onlinear.rows import Rows
from onlinear.schedules import Power
from onlinear.solvers.comid import Comid
from onlinear.solvers.core.batch_dual import DualStart
from onlinear.solvers.core.dense import Dense
from onlinear.solvers.core.engine import Engine, Problem, needs_theta
from onlinear.solvers.core.joint import packs_of
from onlinear.solvers.core.loop import room_to_search
from onlinear.solvers.core.pack import ASKED, LEFT, SEARCH, TARGETS, WEIGHTS, turned, whole, work_of_pack
from onlinear.solvers.core.pack_averages import PULLS
from onlinear.solvers.core.potentials import PotentialEngine, Step, why_not_lazy
from onlinear.solvers.core.state import GAINS, THETA, State, T, everything

REPRODUCED = 1e-12
MOST_SEGMENTS = 1200  # more than the halvings from 1 to the smallest number
LAST_SCORE = 1e300  # a score where a loss has its last slope
FAR = 2.0**40  # times a root: sums that were made there have too few of its digits to know its score without a look
EXPECTED, LOW, HIGH = range(SEARCH, SEARCH + 3)  # rows of a pack's room: the score expected, the bracket


@function
def of_free(free, x):
    """What an entry of value x adds to D: x^2 where its weight is free to move, and -0, which no sum shows, where it is 0."""
    return where(free != 0.0, x * x, -0.0)


@function
def segment(x, v, m, theta, eta, penalty):
    """A(theta) and its slope -D on the segment at theta."""
    step, threshold, shrink = eta * theta, eta * penalty.l1, 1.0 / (1.0 + eta * penalty.l2)
    A, D = nothing(), nothing()
    for k in range(np.uint64(0), np.uint64(m), LANES):
        x_k = taken(x, k)
        w, free = penalty.land(taken(v, k) - step * x_k, threshold, shrink)
        A += x_k * w
        D += of_free(free, x_k)
    return total(A), eta * shrink * total(D)


@function
def side(loss, A, theta, s, y):
    """Positive where the root lies to the right of theta, negative to the left, 0 at the root; s > 0 is the row's weight."""
    return loss.theta(A + theta / s, 1.0, y) - theta / s


@function
def refined(reproduced, loss, s, y, A, D, theta, expected, low, high):
    """Newton's next theta from (A, D), the segment at theta, with the score expected there and the bracket of the root.

    True in front where the segment reproduces theta.
    """
    if D > 0.0 and abs(A - expected) <= reproduced * D * abs(theta):  # theta moves by at most |A - expected| / D
        return True, theta, expected, low, high
    if D == 0.0 and abs(side(loss, A, theta, s, y)) <= reproduced * abs(theta / s):
        return True, theta, expected, low, high
    new = s * loss.theta(A + D * theta, s * D, y)
    if abs(new - theta) <= reproduced * abs(theta):
        return True, theta, expected, low, high
    if new > theta:
        low = theta
    else:
        high = theta
    if low < new < high:
        return False, new, A + D * (theta - new) if abs(theta) <= FAR * abs(new) else nan, low, high
    return False, 0.5 * (low + high), nan, low, high


class Newton(NamedTuple):
    """Jump from segment to segment; ``reproduced`` is the relative change of theta at which a segment counts as found."""

    reproduced: float = REPRODUCED

    def root(self, x, v, m, theta, expected, eta, penalty, loss, s, y, b, D_b, points, owner):
        low, high = -inf, inf
        for _ in range(MOST_SEGMENTS):
            A, D = segment(x, v, m, theta, eta, penalty)
            A, D = A + b - D_b * theta, D + D_b
            found, theta, expected, low, high = refined(self.reproduced, loss, s, y, A, D, theta, expected, low, high)
            if found:
                break
        return theta

    def roots(self, work, outputs, A, D, s, one, c, penalty, loss, x, m):
        """The roots of outputs side by side, lane by lane those of ``root``, in place of the thetas in ``work``."""
        b, D_b = c.b * one, c.eta * one
        theta = lanes(work, PULLS)
        put_lanes(work, EXPECTED, A - D * theta)
        put_lanes(work, LOW, same_lanes(-inf))
        put_lanes(work, HIGH, same_lanes(inf))
        put_lanes(work, LEFT, theta != 0.0)
        for _ in range(MOST_SEGMENTS):
            theta = lanes(work, PULLS)
            A, D = segments(work, WEIGHTS, x, m, theta, c.eta, penalty)
            if not some_left(self.reproduced, work, outputs, A + b - D_b * theta, D + D_b, loss, s):
                break


@function
def thetas(loss, a, c, work, outputs):
    """``loss.theta`` of the outputs that are left."""
    put_lanes(work, ASKED, a)
    put_lanes(work, ASKED + 1, c)
    loss.thetas(room(work, WIDTH * ASKED), room(work, WIDTH * TARGETS), room(work, WIDTH * LEFT), outputs)
    return lanes(work, ASKED + 2)


@function
def some_left(reproduced, work, outputs, A, D, loss, s):
    """``refined`` for the outputs that are left, from their segments (A, D), in lanes; whether any is left then."""
    theta, expected = lanes(work, PULLS), lanes(work, EXPECTED)
    left = lanes(work, LEFT) * (((D > 0.0) * (abs(A - expected) <= reproduced * D * abs(theta))) == 0.0)
    put_lanes(work, LEFT, left)
    if not some(left):
        return False
    if some(left * (D == 0.0)):
        return refined_all(reproduced, work, outputs, laid_out((A, D)), loss, s) > 0
    new = s * thetas(loss, A + D * theta, s * D, work, outputs)
    left = left * ((abs(new - theta) <= reproduced * abs(theta)) == 0.0)
    rises = new > theta
    low = where(left * rises, theta, lanes(work, LOW))
    high = where(left * (rises == 0.0), theta, lanes(work, HIGH))
    inside = (low < new) * (new < high)
    put_lanes(work, PULLS, where(left, where(inside, new, 0.5 * (low + high)), theta))
    put_lanes(work, EXPECTED, where(inside * (abs(theta) <= FAR * abs(new)), A + D * (theta - new), nan))
    put_lanes(work, LOW, low)
    put_lanes(work, HIGH, high)
    put_lanes(work, LEFT, left)
    return some(left)


@function
def refined_all(reproduced, work, outputs, found, loss, s):
    """``refined`` for the outputs that are left, from their segments ``found``; how many are left then."""
    left = 0
    for o in range(outputs):
        if number_at(work, LEFT, o) != 0.0:
            done, theta, expected, low, high = refined(
                reproduced, loss, s, number_at(work, TARGETS, o), *of_output(found, o), number_at(work, PULLS, o),
                number_at(work, EXPECTED, o), number_at(work, LOW, o), number_at(work, HIGH, o),
            )  # fmt: skip
            put_search(work, o, theta, expected, low, high, 0.0 if done else 1.0)
            left += not done
    return left


@function
def put_search(work, o, theta, expected, low, high, left):
    """Write where the search of output o stands."""
    put_number(work, PULLS, o, theta)
    put_number(work, EXPECTED, o, expected)
    put_number(work, LOW, o, low)
    put_number(work, HIGH, o, high)
    put_number(work, LEFT, o, left)


@function
def segments(work, first, x, m, theta, eta, penalty):
    """``segment`` for outputs side by side, of the weights in ``work`` from row ``first`` on. Each of the four parts of a sum
    has a loop of its own: registers do not hold the eight sums of eight outputs."""
    step, threshold, shrink = eta * theta, eta * penalty.l1, 1.0 / (1.0 + eta * penalty.l2)
    nought = same_lanes(0.0), same_lanes(0.0)
    sums = nought, nought, nought, nought
    for part in range(4):
        A, D = nought
        for k in range(np.int64(part), m, np.int64(4)):
            x_k = value_at(x, k)
            w, free = penalty.land(lanes(work, first + k) - step * x_k, threshold, shrink)
            A += x_k * w
            D += of_free(free, x_k)
        sums = turned(sums, (A, D))
    A, D = whole(sums)
    return A, eta * shrink * D


class Sort(NamedTuple):
    """Algorithm 1: the sorted breakpoints, searched by bisection."""

    reproduced: float = REPRODUCED

    def root(self, x, v, m, theta, expected, eta, penalty, loss, s, y, b, D_b, points, owner):
        points, owner = numbers(points, 2 * m), numbers(owner, 2 * m)
        breakpoints(numbers(x, m), numbers(v, m), m, eta, penalty, points, owner)
        points.sort()
        first, last = 0, 2 * m
        while first < last:
            middle = (first + last) >> 1
            at = points[middle]
            A, _ = segment(x, v, m, at, eta, penalty)
            if side(loss, A + b - D_b * at, at, s, y) > 0.0:
                first = middle + 1
            else:
                last = middle
        left = points[first - 1] if first > 0 else -inf
        right = points[first] if first < 2 * m else inf
        return root_between(left, right, numbers(x, m), numbers(v, m), eta, penalty, loss, s, y, b, D_b)


class Sweep(NamedTuple):
    """Algorithm 1 as it is printed: the sorted breakpoints in order, with the sums of their segments carried along."""

    reproduced: float = REPRODUCED

    def root(self, x, v, m, theta, expected, eta, penalty, loss, s, y, b, D_b, points, owner):
        x_k, v_k, points, owner = numbers(x, m), numbers(v, m), numbers(points, 2 * m), numbers(owner, 2 * m)
        breakpoints(x_k, v_k, m, eta, penalty, points, owner)
        sort_pairs(points, owner, 2 * m)
        c, D = b, D_b
        for e in range(2 * m):
            c, D = with_entry(x_k, v_k, eta, penalty, owner[e], True, c, D)
        first = 0
        while first < 2 * m and side(loss, c - D * points[first], points[first], s, y) > 0.0:
            c_out, D_out = with_entry(x_k, v_k, eta, penalty, owner[first], True, 0.0, 0.0)
            c, D = with_entry(x_k, v_k, eta, penalty, owner[first], False, c - c_out, D - D_out)
            first += 1
        left = points[first - 1] if first > 0 else -inf
        right = points[first] if first < 2 * m else inf
        return root_between(left, right, x_k, v_k, eta, penalty, loss, s, y, b, D_b)


class Partition(NamedTuple):
    """Algorithm 2: quick-select; ``pivot`` is where in the candidates the pivot is taken."""

    pivot: float = 0.5

    def root(self, x, v, m, theta, expected, eta, penalty, loss, s, y, b, D_b, points, owner):
        x, v, points, owner = numbers(x, m), numbers(v, m), numbers(points, 2 * m), numbers(owner, 2 * m)
        breakpoints(x, v, m, eta, penalty, points, owner)
        return select(self, 0, x, v, 0, 2 * m, b, D_b, -inf, inf, eta, penalty, loss, s, y, points, owner)

    def place(self, first, last, draws):
        """Where in first .. last - 1 the pivot is; ``draws``: what the next place takes."""
        return first + int(self.pivot * (last - 1 - first)), draws


class RandomPivots(NamedTuple):
    """Algorithm 2 as it is printed: random pivots, among the breakpoints in the range of l' (section 3.3).

    Each row begins the same sequence of pivots, so that a run is reproducible.
    """

    seed: float = 1.0

    def root(self, x, v, m, theta, expected, eta, penalty, loss, s, y, b, D_b, points, owner):
        x, v, points, owner = numbers(x, m), numbers(v, m), numbers(points, 2 * m), numbers(owner, 2 * m)
        breakpoints(x, v, m, eta, penalty, points, owner)
        low, high = s * loss.slope(-LAST_SCORE, y), s * loss.slope(LAST_SCORE, y)
        last, _ = parted(points, owner, 0, 2 * m, high)  # those from the end of the range on
        _, first = parted(points, owner, 0, last, low)
        c, D = b, D_b
        for e in range(last, 2 * m):
            c, D = with_entry(x, v, eta, penalty, owner[e], True, c, D)
        for e in range(first):
            c, D = with_entry(x, v, eta, penalty, owner[e], False, c, D)
        return select(self, int(self.seed), x, v, first, last, c, D, low, high, eta, penalty, loss, s, y, points, owner)

    def place(self, first, last, draws):
        """Where in first .. last - 1 the pivot is, by a linear congruence; ``draws``: what the next place takes."""
        draws = (draws * 1103515245 + 12345) & 0x7FFFFFFF
        return first + ((draws >> 8) * (last - first) >> 23), draws


@function
def parted(points, owner, first, last, at):
    """``three_way``, also at an end that is infinite."""
    if at == inf:
        return last, last
    if at == -inf:
        return first, first
    return three_way(points, owner, first, last, at)


@function
def select(search, draws, x, v, first, last, c, D, left, right, eta, penalty, loss, s, y, points, owner):
    """The root between left and right by quick-select among the breakpoints first .. last - 1, from the sums of the others."""
    while first < last:
        place, draws = search.place(first, last, draws)
        at = points[place]
        below, above = three_way(points, owner, first, last, at)
        c_at, D_at = c, D
        for e in range(above, last):
            c_at, D_at = with_entry(x, v, eta, penalty, owner[e], True, c_at, D_at)
        for e in range(first, below):
            c_at, D_at = with_entry(x, v, eta, penalty, owner[e], False, c_at, D_at)
        towards = side(loss, c_at - D_at * at, at, s, y)
        if towards == 0.0:
            return at
        if towards < 0.0:
            for e in range(below, last):
                c, D = with_entry(x, v, eta, penalty, owner[e], True, c, D)
            last, right = below, at
        else:
            for e in range(first, above):
                c, D = with_entry(x, v, eta, penalty, owner[e], False, c, D)
            first, left = above, at
    return clamped(loss, c, D, s, y, left, right)


@function
def root_between(left, right, x, v, eta, penalty, loss, s, y, c, D):
    """The root on the segment between two breakpoints, whose sums are made anew from those of the intercept (MATH 8.5)."""
    for k in range(x.shape[0]):
        p, q = ends(x, v, eta, penalty, k)
        if p >= right:
            c, D = with_entry(x, v, eta, penalty, k + 1, True, c, D)
        if q <= left:
            c, D = with_entry(x, v, eta, penalty, -(k + 1), False, c, D)
    return clamped(loss, c, D, s, y, left, right)


@function
def sort_pairs(points, owner, count):
    """Sort points, each with its owner (heapsort: in place, O(count log count) for any order)."""
    for end in range(count // 2 - 1, -1, -1):
        sift(points, owner, end, count)
    for end in range(count - 1, 0, -1):
        swap(points, owner, 0, end)
        sift(points, owner, 0, end)


@function
def sift(points, owner, root, end):
    """Let the pair at ``root`` of a heap sink to its place."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and points[child] < points[child + 1]:
            child += 1
        if points[root] >= points[child]:
            break
        swap(points, owner, root, child)
        root = child


@function
def breakpoints(x, v, m, eta, penalty, points, owner):
    """p_k, q_k = (v_k -+ sign(x_k) eta l1) / (eta x_k) (MATH 8.3); the owner is k + 1 for p_k, -(k + 1) for q_k."""
    for k in range(m):
        p, q = ends(x, v, eta, penalty, k)
        points[2 * k], owner[2 * k] = p, k + 1
        points[2 * k + 1], owner[2 * k + 1] = q, -(k + 1)


@function
def ends(x, v, eta, penalty, k):
    """p_k and q_k, between which the weight is 0."""
    half = copysign(eta * penalty.l1, x[k])
    return (v[k] - half) / (eta * x[k]), (v[k] + half) / (eta * x[k])


@function
def with_entry(x, v, eta, penalty, owner, upper, c, D):
    """(c, D) with the term x_k^2 (p_k - theta) or x_k^2 (q_k - theta) of MATH 8.4 added, if the entry is of that type."""
    if (owner > 0) != upper:
        return c, D
    k = int(abs(owner)) - 1
    shrink = 1.0 / (1.0 + eta * penalty.l2)
    half = copysign(eta * penalty.l1, x[k])
    kept = v[k] - half if upper else v[k] + half
    return c + shrink * x[k] * kept, D + eta * shrink * x[k] * x[k]


@function
def three_way(points, owner, first, last, at):
    """Reorder first..last into < at, = at, > at; give the ends of the first two parts."""
    below, k, above = first, first, last
    while k < above:
        if points[k] < at:
            swap(points, owner, below, k)
            below += 1
            k += 1
        elif points[k] > at:
            above -= 1
            swap(points, owner, k, above)
        else:
            k += 1
    return below, above


@function
def swap(points, owner, i, j):
    points[i], points[j] = points[j], points[i]
    owner[i], owner[j] = owner[j], owner[i]


@function
def clamped(loss, c, D, s, y, left, right):
    """The root where A(theta) = c - D theta, kept inside [left, right]."""
    return min(max(s * loss.theta(c, s * D, y), left), right)


INNER = {"newton": Newton(), "sort": Sort(), "sweep": Sweep(), "partition": Partition(), "random": RandomPivots()}
for _inner in INNER.values():
    adopt(type(_inner))


@kernel
def start_at_weights(schedule, columns, now, weights, v):
    """Where the implicit step of a batch starts: at the weights; its size."""
    for p in range(columns.shape[0]):
        v[p] = weights[p]
    return schedule.at(int(now[T]) + 1)


class Fiol(NamedTuple):
    """Settings of fully implicit online learning: the step sizes and the search for the root."""

    schedule: Any = Power()
    inner: Any = INNER["newton"]

    letters = ("w",)
    stable = True  # every step is implicit in the loss and in the penalty
    choices = {"inner": INNER}  # noqa: RUF012

    def step(self, U, x, y, s, t, loss, penalty):
        eta = self.schedule.at(t)
        b, D_b = U[0, 0] * x[0], eta * x[0] * x[0]
        support = np.flatnonzero(x[1:])
        m = len(support)
        xs, v = padded(x[1:][support]), padded(U[0, 1:][support])
        points, owner = np.empty(2 * m), np.empty(2 * m)
        A, D = segment(xs, v, m, 0.0, eta, penalty)
        theta = solve(self.inner, xs, v, m, A, D, eta, penalty, loss, s, y, b, D_b, points, owner)
        U[0, 1:] = penalty.prox_all(U[0, 1:] - eta * theta * x[1:], eta)
        U[0, 0] -= eta * theta * x[0]

    def begin(self, U, penalty):
        """U holds the start; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def decay_step(self, t: int) -> float:
        """The step of the prox in step t."""
        return self.schedule.at(t)

    def begin_step(self, t, clock, b, penalty):
        eta = self.schedule.at(t)
        return Step(eta, eta, b, clock, penalty.tick(clock, eta), clock)

    def weight_of(self, v, c, penalty):
        return penalty.weight(v, c.clock)

    def terms(self, v, x, c, penalty):
        w = self.weight_of(v, c, penalty)
        new, free = penalty.land(w, c.eta * penalty.l1, 1.0 / (1.0 + c.eta * penalty.l2))
        return x * w, x * new, of_free(free, x)

    def scores(self, sums, one, s, c, penalty):
        b, shrink = c.b * one, 1.0 / (1.0 + c.eta * penalty.l2)
        return sums[0] + b, sums[1] + b, c.eta * shrink * sums[2] + c.eta * one

    def pull(self, row, y, s, c, loss):
        """theta on the segment at 0; ``search`` continues from there."""
        return weighted(s, loss.theta(row[1], s * row[2], y))

    def pulls(self, row, s, c, loss, work, outputs):
        """``pull`` of outputs side by side, whose targets are in ``work``, of those that are left there."""
        _, A, D = row
        return s * thetas(loss, A, s * D, work, outputs) if s != 0.0 else same_lanes(0.0)

    def search(self, theta, row, y, s, one, c, loss, penalty, x, w, m, points, owner):
        _, A, D = row
        b, D_b = c.b * one, c.eta * one
        return self.inner.root(x, w, m, theta, A - D * theta, c.eta, penalty, loss, s, y, b, D_b, points, owner)

    def search_all(self, work, outputs, row, s, one, c, loss, penalty, x, m):
        self.inner.roots(work, outputs, row[1], row[2], s, one, c, penalty, loss, x, m)

    def searched(self, v, x, c, penalty):
        """What ``on_segment`` needs of an entry: its weight."""
        return (self.weight_of(v, c, penalty),)

    def on_segment(self, work, first, x, m, theta, b, one, c, penalty):
        """A(theta) and D of outputs side by side, of the weights in ``work`` from row ``first`` on."""
        A, D = segments(work, np.int64(first), x, m, theta, c.eta, penalty)
        return A + b - c.eta * one * theta, D + c.eta * one

    def landed(self, w, x, theta, c, penalty):
        return penalty.deposit(w - c.eta * theta * x, c.eta, c.clock, c.after)

    def moved(self, v, x, theta, c, penalty):
        return self.landed(self.weight_of(v, c, penalty), x, theta, c, penalty)

    def mean_form(self) -> Comid:
        """COMID, which moves from the thetas of a batch as FIOL does."""
        return Comid(self.schedule)

    def loss_start(self, engine: Engine, state: State) -> DualStart:
        """The weights: the penalty is part of the step."""
        schedule = engine.solver.schedule

        def at(columns: np.ndarray) -> tuple[np.ndarray, float]:
            return engine.weights(state, columns), schedule.at(state.t + 1)

        return DualStart(engine.penalty, None if isinstance(engine, Dense) else (start_at_weights, (schedule,)), at)

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        if not problem.penalty.clock_thresholds:
            what = told(problem.penalty)
            raise ValueError(f"fiol takes the penalties none, l1, l2 and elastic-net, not {what}; use 'comid' or 'odrs'.")
        if problem.penalty.weight_bounds is not None and not isinstance(self.inner, Newton):
            raise ValueError(
                "fiol with bounds needs inner=newton: Algorithms 1 and 2 know two breakpoints a coordinate, not four."
            )
        assert why_not_lazy(problem) is None
        return LazyFiol(self, problem)


class _Straight(Fiol):
    """FIOL where scores are linear in theta, also those of weights at 0: there is one segment, and nothing to search."""

    __slots__ = ()

    def terms(self, v, x, c, penalty):
        return x * self.weight_of(v, c, penalty), x * x

    def scores(self, sums, one, s, c, penalty):
        b, shrink = c.b * one, 1.0 / (1.0 + c.eta * penalty.l2)
        return sums[0] + b, shrink * sums[0] + b, c.eta * shrink * sums[1] + c.eta * one

    def search_all(self, work, outputs, row, s, one, c, loss, penalty, x, m):
        """The thetas in ``work`` are the roots."""


@function
def solve(inner, x, v, m, A, D, eta, penalty, loss, s, y, b, D_b, points, owner):
    """The root theta of one row with the segment (A, D) at 0; 0 at once where the loss is flat there."""
    A, D = A + b, D + D_b
    first = weighted(s, loss.theta(A, s * D, y))
    if first == 0.0:
        return 0.0
    return inner.root(x, v, m, first, A - D * first, eta, penalty, loss, s, y, b, D_b, points, owner)


@function
def padded(values):
    """A copy with room for lanes behind its end."""
    out = np.zeros(len(values) + 3)
    out[: len(values)] = values
    return out


class LazyFiol(PotentialEngine):
    """FIOL in O(non-zeros)."""

    scores_means = stepped = rests = True

    @property
    def scales_rows(self) -> bool:  # type: ignore[override]
        return not self.problem.gain

    @property
    def sums_gains(self) -> bool:  # type: ignore[override]
        return not is_joint(self.loss)

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        if self.problem.gain:
            state.kept[GAINS] = np.array([0.0, 0.0, 0.0, self.penalty.value(w)])
        return state

    def may_keep(self, state: State) -> dict[str, Span]:
        return {GAINS: Span(np.float64, 4, 4)} if self.problem.gain else {}

    def finite(self, state: State) -> Iterator[tuple[str, np.ndarray]]:
        return ((name, array) for name, array in super().finite(state) if name != GAINS)  # a slope's square may overflow

    def work(self, rows: Rows) -> np.ndarray | None:
        return None if self._is_straight() else room_to_search(rows)

    @property
    def packs(self) -> bool:
        return super().packs and isinstance(self.solver.inner, Newton) and not self.problem.gain

    @property
    def joins(self) -> bool:  # type: ignore[override]
        return super().joins and isinstance(self.solver.inner, Newton)

    @property
    def stepper(self) -> Any:
        return _Straight(self.solver.schedule) if self._is_straight() else self.solver

    def _is_straight(self) -> bool:
        """Whether scores are linear in theta."""
        return self.penalty.l1 == 0.0 and self.penalty.weight_bounds is None

    def joint_work(self, rows: Rows, outputs: int) -> tuple[np.ndarray | None, bool | None]:
        if self._is_straight():
            return None, None
        return np.empty((packs_of(outputs) * rows.longest, WIDTH)), True

    def pack_work(self, rows: Rows) -> tuple[np.ndarray, bool | None]:
        return work_of_pack(rows.longest), True

    def variables(self, state: State) -> dict[str, Any]:
        return {"w": self.weights(state, everything(state)), "theta": float(state.now[THETA])}


adopt(Fiol)
adopt(_Straight)
