r"""The implicit step on the mean loss of k rows, by the dual of the k rows (MATH 21.2), in compiled code.

    w(theta) = prox_{c r}(v - (c/k) sum_i theta_i x_i),   z_i = <w(theta), x_i>,   theta_i in s_i dl(z_i, y_i)

An epoch takes the rows in turn. While the others stay, z_i is a line in theta_i on each piece of the prox: the step (2.2) of
the loss on the line at theta_i is taken until the piece reproduces it, as FIOL does for one row. That climbs the concave dual.
After it come steps of Newton's method for theta = P(theta),

    P_i = s_i theta(z_i + Q_i theta_i, s_i Q_i, y_i),   Q_i = (c/k) |x_i|^2 / (1 + c l2),

each kept where it brings the two closer; where one does not by far, the next is an epoch again. With K the k x k matrix of
-dz_i / dtheta_j and D the slopes of P, a step solves I + D^1/2 (K - Q) D^1/2 by Cholesky's factors. It ends where all rows
reproduce their theta to the last digits, or where the duality gap is at most 1e-12 of its terms. The gap is that of P(theta),
whose conjugates follow from where the loss has these slopes: s l*(t/s) = t z' - s l(z'), z' = z + Q (theta - t).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import function, kernel
from onlinear.losses import weighted

REPRODUCED = 1e-14
# Of the relative duality gap, where a further round brings the rows little closer; and after many such rounds.
WANTED, ENOUGH, PATIENCE = 2.5e-13, 1e-12, 8
MOST_ROUNDS, MOST_ROWS_TAKEN, MOST_SEGMENTS = 200, 1 << 15, 60
DAMPINGS = 0.0, 1e-9, 1e-6, 1e-4, 1e-2, 1.0
DIFFERENCE = 1e-7  # of z: how far apart the two points are whose difference quotient is the slope of P
FAST = 0.1  # a step of Newton's after which the next needs no epoch brings the rows so much closer


class DualStart(NamedTuple):
    """Where the implicit step of a batch starts, v, and the penalty of its prox.

    ``reader``: of a lazy engine, a kernel that writes v and gives the step size c, and its arguments before the columns,
    ``state.now``, the weights at the columns, and where it writes. None for others, of which ``at`` gives v at columns, and c.
    """

    penalty: Any
    reader: tuple[Any, tuple[Any, ...]] | None = None
    at: Callable[[np.ndarray], tuple[np.ndarray, float]] | None = None


B, ONE, STEP_SIZE, THRESHOLD, SHRINK = range(5)  # shared by the rows: the intercept, its feature, c/k, c l1, 1/(1 + c l2)
# Numbers of rows. Behind THETA and TRIED stand the answers and their slopes. Typed, so that code is compiled once for both.
Y, S, Q, THETA, ANSWER, SLOPE, TRIED, MORE = map(np.int64, (0, 1, 2, 3, 4, 5, 6, 9))


class DualRoom(NamedTuple):
    """Room for the dual of a batch of k rows."""

    sizes: np.ndarray  # what its rows share
    v: np.ndarray  # at its columns
    G: np.ndarray  # the sums of theta x at its columns
    indptr: np.ndarray  # where its rows end
    ends: np.ndarray  # the end of the entries of each place
    owners: np.ndarray  # the row of each entry, by place
    values: np.ndarray  # the value of each entry, by place
    numbers: np.ndarray  # of its rows
    matrices: np.ndarray  # two, (k, k)

    @classmethod
    def of(cls, k: int, entries: int) -> DualRoom:
        """Room for k rows of so many entries."""
        by_place = np.empty(entries, np.uint64), np.empty(entries, np.uint32), np.empty(entries)
        rows = np.empty((10, k)), np.empty((2, k, k))
        return cls(np.empty(5), *np.empty((2, entries)), np.empty(k + 1, np.uint64), *by_place, *rows)


@function
def point(room, penalty, j):
    """The weight at place j, and whether it follows the sum of theta x there."""
    sizes = room.sizes
    return penalty.land(room.v[j] - sizes[STEP_SIZE] * room.G[j], sizes[THRESHOLD], sizes[SHRINK])


@function
def score_of(room, places, values, penalty, i, total):
    """z_i, from the sums of theta x at each place and of theta; and -dz_i / dtheta_i at these pieces of the prox."""
    sizes, indptr = room.sizes, room.indptr
    z, D = (sizes[B] - sizes[STEP_SIZE] * total) * sizes[ONE], sizes[ONE]
    for k in range(indptr[i], indptr[i + 1]):
        w, free = point(room, penalty, places[k])
        z += w * values[k]
        D += sizes[SHRINK] * free * values[k] * values[k]
    return z, sizes[STEP_SIZE] * D


@function
def answer(room, loss, i, z, theta, D):
    """The row's own theta where its score is z at theta."""
    s = room.numbers[S, i]
    return weighted(s, loss.theta(z + D * theta, s * D, room.numbers[Y, i]))


@kernel
def add_up(room, places, values, at):
    """Fill in the sums of theta x; give the sum of theta."""
    numbers, G, total = room.numbers, room.G, 0.0
    for p in range(room.ends.shape[0]):
        G[p] = 0.0
    for i in range(numbers.shape[1]):
        for k in range(room.indptr[i], room.indptr[i + 1]):
            G[places[k]] += numbers[at, i] * values[k]
        total += numbers[at, i]
    return total


@kernel
def epoch(room, places, values, loss, penalty, straight):
    """Take the rows in turn: each gets the theta that is best while the others stay."""
    theta, total = room.numbers[THETA], add_up(room, places, values, THETA)
    for i in range(theta.shape[0]):
        low, high = -inf, inf
        for _ in range(MOST_SEGMENTS):
            z, D = score_of(room, places, values, penalty, i, total)
            new = answer(room, loss, i, z, theta[i], room.numbers[Q, i] if straight else D)
            if abs(new - theta[i]) <= REPRODUCED * abs(theta[i]):
                break
            if new > theta[i]:
                low = theta[i]
            else:
                high = theta[i]
            if not low < new < high:
                new = 0.5 * (low + high)
            move = new - theta[i]
            for k in range(room.indptr[i], room.indptr[i + 1]):
                room.G[places[k]] += move * values[k]
            total += move
            theta[i] = new
            if straight:
                break


@kernel
def look(room, places, values, loss, penalty, at):
    """Fill in the answers of all rows at a theta, and how these change with the score; how far theta is from them, and the
    largest of them."""
    numbers, total, far, size = room.numbers, add_up(room, places, values, at), 0.0, 0.0
    for i in range(numbers.shape[1]):
        theta, D = numbers[at, i], numbers[Q, i]
        z, _ = score_of(room, places, values, penalty, i, total)
        h = DIFFERENCE * max(1.0, abs(z + D * theta))
        rise = -0.0
        for side in range(3):  # below, above, and here
            found = answer(room, loss, i, z + (h if side == 1 else -h if side == 0 else 0.0), theta, D)
            rise = found - rise if side < 2 else rise
        numbers[at + 1, i], numbers[at + 2, i] = found, max(rise / (2.0 * h), 0.0)
        gone = abs(found - theta)
        if not isfinite(gone):
            return inf, inf
        far, size = max(far, gone), max(size, abs(found))
    return far, size


@kernel
def sort_entries(room, places, values):
    """Fill in the entries by place, rows ascending; and Q, which needs all of them."""
    ends, sizes, n = room.ends, room.sizes, np.uint64(0)
    for p in range(ends.shape[0]):
        ends[p] = 0
    for k in range(places.shape[0]):
        ends[places[k]] += np.uint64(1)
    for p in range(ends.shape[0]):
        here = ends[p]
        ends[p] = n
        n += here
    for i in range(room.numbers.shape[1]):
        D = sizes[ONE]
        for k in range(room.indptr[i], room.indptr[i + 1]):
            x, to = values[k], ends[places[k]]
            room.owners[to], room.values[to] = i, x
            ends[places[k]] = to + np.uint64(1)
            D += sizes[SHRINK] * x * x
        room.numbers[Q, i] = sizes[STEP_SIZE] * D


@kernel
def products(room, penalty, straight):
    """Fill in the upper half of K, of -dz_i / dtheta_j at the pieces of the prox where the sums are."""
    K, owners, values, sizes, begin = room.matrices[0], room.owners, room.values, room.sizes, np.uint64(0)
    n = K.shape[0]
    for i in range(n):
        for j in range(i, n):
            K[i, j] = sizes[STEP_SIZE] * sizes[ONE]
    for p in range(room.ends.shape[0]):
        end = room.ends[p]
        _, free = point(room, penalty, p)
        if straight or free != 0.0:
            for a in range(begin, end):
                x, row = sizes[STEP_SIZE] * sizes[SHRINK] * values[a], K[owners[a]]
                if end - begin == n:
                    for e in range(a, end):
                        row[e - begin] += x * values[e]
                else:
                    for e in range(a, end):
                        row[owners[e]] += x * values[e]
        begin = end


@kernel
def solve(M, x):
    """Turn x into the solution of M solution = x, by the factors of the upper half of M, which is used up; False where M is not
    positive."""
    n = x.shape[0]
    for p in range(n):
        row = M[p]
        if not row[p] > 0.0:
            return False
        by = 1.0 / sqrt(row[p])
        for j in range(p, n):
            row[j] *= by
        x[p] *= by
        for i in range(p + 1, n):
            f = row[i]
            if f != 0.0:
                below = M[i]
                for j in range(i, n):
                    below[j] -= f * row[j]
                x[i] -= f * x[p]
    for p in range(n - 1, -1, -1):
        total, row = x[p], M[p]
        for j in range(p + 1, n):
            total -= row[j] * x[j]
        x[p] = total / row[p]
    return True


@kernel
def newton_step(numbers, matrices, damping):
    """Fill in the theta that a damped step of Newton's method reaches; whether there is one."""
    K, M, q = matrices[0], matrices[1], numbers[MORE]
    n = q.shape[0]
    for i in range(n):
        q[i] = 0.0
    for i in range(n):
        root, mine, row, to = sqrt(numbers[SLOPE, i]), numbers[ANSWER, i] - numbers[THETA, i], K[i], M[i]
        rest = row[i] - numbers[Q, i]
        total = rest * mine
        for j in range(i + 1, n):
            total += row[j] * (numbers[ANSWER, j] - numbers[THETA, j])
            q[j] += row[j] * mine
            to[j] = root * row[j] * sqrt(numbers[SLOPE, j])
        to[i] = damping + numbers[SLOPE, i] * rest
        q[i] = root * (q[i] + total)
    if not solve(M, q):
        return False
    for i in range(n):
        gone = numbers[ANSWER, i] - numbers[THETA, i] - sqrt(numbers[SLOPE, i]) * q[i]
        numbers[TRIED, i] = numbers[THETA, i] + gone / damping
    return True


@kernel
def close_gap(room, places, values, loss, penalty, enough):
    """Turn theta into its answers where the duality gap there is small, relative to the losses and products that it is the
    difference of; whether it is."""
    look(room, places, values, loss, penalty, THETA)
    numbers, gap, size = room.numbers, 0.0, 0.0
    for at in (THETA, ANSWER):
        total = add_up(room, places, values, at)
        for i in range(numbers.shape[1]):
            s, y, t = numbers[S, i], numbers[Y, i], numbers[ANSWER, i]
            z, _ = score_of(room, places, values, penalty, i, total)
            if at == THETA:
                numbers[MORE, i] = z + numbers[Q, i] * (numbers[THETA, i] - t)  # where the loss has this slope
            elif s > 0.0:
                value, conjugate = s * loss.value(z, y), t * numbers[MORE, i] - s * loss.value(numbers[MORE, i], y)
                gap += value + conjugate - t * z
                size += abs(value) + abs(conjugate) + abs(t * z)
    closed = gap <= enough * size
    if closed:
        for i in range(numbers.shape[1]):
            numbers[THETA, i] = numbers[ANSWER, i]
    return closed


@kernel
def find_thetas(room, places, values, loss, penalty, straight, most):
    """Fill in the theta of each row, nan where one is not finite; False where ``most`` rounds do not reproduce them.

    ``straight``: the prox has one piece. The rows of a batch may depend on each other, so the steps of Newton's method are
    those of Levenberg and Marquardt.
    """
    numbers = room.numbers
    for i in range(numbers.shape[1]):
        numbers[THETA, i] = 0.0
    sort_entries(room, places, values)
    if straight:
        products(room, penalty, straight)
    best, far, size, idle, place, fast = inf, inf, 0.0, 0, 0, False
    for _ in range(most):
        if not fast:
            epoch(room, places, values, loss, penalty, straight)
            far, size = look(room, places, values, loss, penalty, THETA)
        idle = 0 if far < 0.5 * best else idle + 1
        best = min(best, far)
        if not isfinite(far):
            numbers[THETA, 0] = nan
            return True
        if far <= REPRODUCED * size or (idle > PATIENCE and far <= ENOUGH * size):
            return True
        if idle > 1 and close_gap(room, places, values, loss, penalty, ENOUGH if idle > PATIENCE else WANTED):
            return True
        if not straight:
            products(room, penalty, straight)
        fast = False
        for at in range(max(0, place - 1), len(DAMPINGS)):
            if newton_step(numbers, room.matrices, 1.0 + DAMPINGS[at]):
                gone, largest = look(room, places, values, loss, penalty, TRIED)
                if gone < far:
                    for i in range(numbers.shape[1]):
                        for part in range(3):
                            numbers[THETA + part, i] = numbers[TRIED + part, i]
                    fast, far, size, place = gone < FAST * far, gone, largest, at
                    break
    return close_gap(room, places, values, loss, penalty, ENOUGH)


@kernel
def batch_thetas(rows, first, places, room, count, loss, y, s, b, one, c, penalty, straight, most, slopes):
    """Fill in what each row of a batch adds to the mean of the thetas; False where these are not found. The step, of size c,
    starts at the v in the room."""
    indptr, _, values = rows
    k, start = slopes.shape[0], indptr[first]
    for i in range(k + 1):
        room.indptr[i] = indptr[first + i] - start
    for i in range(k):
        room.numbers[Y, i], room.numbers[S, i] = y[first + i], s[first + i]
    sizes, end = room.sizes, start + room.indptr[k]
    sizes[B], sizes[ONE], sizes[STEP_SIZE], sizes[THRESHOLD], sizes[SHRINK] = (
        b,
        one,
        c / k,
        c * penalty.l1,
        1.0 / (1.0 + c * penalty.l2),
    )
    mine = DualRoom(
        sizes, room.v, room.G, room.indptr, room.ends[:count], room.owners, room.values, room.numbers, room.matrices
    )
    done = find_thetas(mine, places[: room.indptr[k]], values[start:end], loss, penalty, straight, most)
    for i in range(k):
        slopes[i] = room.numbers[THETA, i] / k
    return done


def is_straight(penalty: Any) -> bool:
    """Whether the prox has one piece."""
    return bool(penalty.l1 == 0.0 and penalty.weight_bounds is None)


def most_rounds(k: int) -> int:
    """The rounds after which a batch of k rows counts as one without a solution."""
    return max(MOST_ROUNDS, MOST_ROWS_TAKEN // k)
