r"""Models of several step sizes and scalings, trained side by side in one pass and mixed by their losses: nothing to tune.

Eight models take the steps of implicit-ftrl (MATH 18.2) on the same rows. Four divide every value by the root mean square of
all values so far, four by that of its column. In each four the step sizes are 1/2, 2, 8 and 32, times ``eta``. A model gives
two experts: its last iterate, and its average with weights t + 1. One more expert is a constant: the mean of the targets so
far, where the loss is of the residual and there is an intercept, else 0. Each row, scored by expert k before it is learned with
weight s, does

    L_k <- (1 - 3/(t + 32)) L_k + (s / mean of the weights so far) l(score_k, y),   h_k <- (1 - 3/(t + 32)) h_k     (MATH 18.7)

and the model is sum_k p_k w_k with p_k in proportion to exp(-rate L_k - h_k): one linear model. The rate is 1 for a loss that
is a negative log-likelihood, for others 1 over twice the running mean of the best expert's loss, so that losses have no unit.
h_k, which begins at 2 log(eta/2), holds back the step sizes above 2, whose scores of the first rows are the worst.

After 2^6, 2^7, ... rows: where the best expert's model has the largest step size, as at the look before, a copy of it with a
step size 16 times as large takes the place of the worst model. The copy begins 5 nats behind the best. The smallest step size
gives a copy with one 16 times as small.

Source: the method is this package's. Exponential weights: Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, 2.2.
Lazy:   of each model a feature keeps w, G and the sum of its average, with l2 sigma too; idle they follow as in MATH 18.3.
Loop:   its own: lanes are the models of one output, which take the same target, and each value has two scalings.
Cost:   O(nnz(x_t)) per row; 27 numbers a feature, 35 with l2.   Needs: a loss with theta; none, or l2 without bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import NAMED
from onlinear.compiled import WIDTH, adopt, function, kernel, no_row, put_row, row_of, where
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.losses import is_residual, weighted
from onlinear.rows import Rows
from onlinear.rows.scaling import BEHIND, scale_row
from onlinear.solvers.core.dense import dot
from onlinear.solvers.core.engine import Engine, Examples, Problem, needs_theta
from onlinear.solvers.core.experts import MOST, bound, rate_of, remembered, share
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.plain import check_penalty
from onlinear.solvers.core.resting import idle_sum
from onlinear.solvers.core.state import ONE, Bound, State, T, everything, scalars
from onlinear.solvers.core.visits import mean_score
from onlinear.solvers.implicit_ftrl import LEAST, ImplicitFtrl, size_of
from onlinear.text.warned import warn_caller

MODELS = 8
GROUPS = MODELS // WIDTH  # of lanes that hold the models
EXPERTS = 2 * MODELS + 1  # the last iterates, the averages, and the constant
GRID = (0.5, 2.0, 8.0, 32.0)
FREE = 2.0  # the largest step size that is not held back
BEFORE = 32.0  # rows that sums of losses take as gone before the first
FARTHER = 16.0  # by what a step size moves
BEHIND_BEST = 5.0  # nats that a copy starts behind the best
FIRST_MOVE = 64  # rows before the first look at the step sizes
AVERAGE = NAMED["weighted-t1"]

# What a run keeps beside its features: for each model its step size, whether it divides by the column's scale, its intercept
# with that one's G and sums, and the losses of its two experts; then numbers of the run.
ETA, COLUMN, BIAS, BIAS_G, BIAS_SUM, BIAS_TOTAL, LAST, MEAN = (MODELS * row for row in range(8))
CONSTANT = 8 * MODELS  # the loss of the expert that is a constant
ROWS = CONSTANT + 1  # what the rows count, as sums of losses remember them
LENGTHS = CONSTANT + 2  # sums of 1 + |x|^2, in each of the two scalings
VALUES, SQUARE = CONSTANT + 4, CONSTANT + 5  # the number of values so far, and the mean of their squares
WEIGHED, WEIGHT = CONSTANT + 6, CONSTANT + 7  # the rows of a weight above 0, and the mean of their weights
SIDE = CONSTANT + 8  # the edge at which the best stood when last looked at: -1, 1 or 0
KEPT = CONSTANT + 9  # how many models are kept: all, or one, which stands first
PLAIN = CONSTANT + 10  # how many numbers there were before all of the following, which are 0 in such a run
HELD = PLAIN  # for each expert but the constant, by how many nats its share is held back
LEVEL, FOLLOWS = HELD + 2 * MODELS, HELD + 2 * MODELS + 1  # the constant, and whether it is the mean of the targets
GONE = FOLLOWS + 1  # rows that sums of losses take as gone before the first
NUMBERS = GONE + 1

# What a row needs of each model: scores of the last iterate and of the average, the slope at the first, 1 / c_t, 1 / sigma of
# the intercept, A and D of the features, theta; then the shares of the experts; then numbers of each entry.
SCORE, MEAN_SCORE, SLOPE, GROW, OF_BIAS, AHEAD, STEEP, THETA, SHARES = (MODELS * row for row in range(9))
ENTRIES = SHARES + 3 * MODELS

PARTS = 3  # numbers of a model and a feature: w, G and the sum of the average; with l2 sigma too
W, G, S, SIGMA = range(4)
COUNTS = ("count", "square", "stamp")
LETTERS = tuple(f"{letter}{m}" for letter in ("w", "G", "S", "sigma") for m in range(1, MODELS + 1))


def first_table() -> np.ndarray:
    """The table before the first row, of a constant that is 0."""
    table = np.zeros(NUMBERS)
    table[ETA : ETA + MODELS] = GRID * 2
    table[COLUMN + len(GRID) : COLUMN + MODELS] = 1.0
    table[KEPT] = MODELS
    table[HELD : HELD + 2 * MODELS] = (2.0 * np.log(np.maximum(1.0, np.array(GRID) / FREE))).tolist() * 4
    table[GONE] = BEFORE
    return table


def follows(loss: Any, intercept: bool) -> bool:
    """Whether the constant is the mean of the targets."""
    return is_residual(loss) and intercept


@function
def take_values(table, squares, entries, s):
    """Move the root mean square of all values past a row; give 1 over it, 0 where there is none."""
    if s > 0.0 and entries > 0.0:
        table[VALUES] += entries
        table[SQUARE] += (squares - entries * table[SQUARE]) / table[VALUES]
    return 1.0 / sqrt(table[SQUARE]) if table[SQUARE] > 0.0 else 0.0


@function
def take_losses(table, room, loss, y, s, t):
    """Add row t to the losses of all experts."""
    table[WEIGHED] += 1.0
    table[WEIGHT] += (s - table[WEIGHT]) / table[WEIGHED]
    kept, by = remembered(t + table[GONE]), s / table[WEIGHT]
    table[ROWS] = kept * table[ROWS] + by
    for m in range(int(table[KEPT])):
        table[LAST + m] = bound(kept * table[LAST + m] + by * loss.value(room[SCORE + m], y))
        table[MEAN + m] = bound(kept * table[MEAN + m] + by * loss.value(room[MEAN_SCORE + m], y))
        table[HELD + m] *= kept
        table[HELD + MODELS + m] *= kept
    table[CONSTANT] = bound(kept * table[CONSTANT] + by * loss.value(table[LEVEL], y))
    if table[FOLLOWS] > 0.0:
        of_row = by / table[WEIGHED]
        table[LEVEL] += of_row * y - of_row * table[LEVEL]


@function
def shares_of(rate, table, out, at):
    """Fill ``out`` from place ``at`` on with the shares of the experts."""
    share(rate, table, LAST, EXPERTS, table[ROWS], out, at, HELD)


@function
def mixed(table, room):
    """The mixture's score from those of the experts."""
    score = room[SHARES + 2 * MODELS] * table[LEVEL]
    for m in range(int(table[KEPT])):
        score += room[SHARES + m] * room[SCORE + m] + room[SHARES + MODELS + m] * room[MEAN_SCORE + m]
    return score


@function
def of_expert(shares, m, w, sums, total):
    """What model m adds to the mixture: a weight w, and the average of those before, from their sum."""
    return shares[m] * w + shares[MODELS + m] * (sums / total if total > 0.0 else w)


@function
def inverse_step(table, m, eta, t):
    """1 / c_t of model m."""
    N = table[LENGTHS + int(table[COLUMN + m])]
    return ImplicitFtrl(eta * table[ETA + m]).inverse_step(N, t)


@function
def at_edge(table, m):
    """1 where model m has the largest step size of all, -1 for the smallest, else 0."""
    low, high = table[ETA], table[ETA]
    for k in range(1, MODELS):
        low, high = min(low, table[ETA + k]), max(high, table[ETA + k])
    return 1.0 if table[ETA + m] >= high else -1.0 if table[ETA + m] <= low else 0.0


@function
def best_of(table, m):
    """The smaller loss of a model's two experts."""
    return min(table[LAST + m], table[MEAN + m])


@function
def renewed(table, rate):
    """Look at the step sizes: the model to be copied and the one to take its place, or -1 twice. The table has moved on."""
    best, worst = 0, 0
    for m in range(1, MODELS):
        best = m if best_of(table, m) < best_of(table, best) else best
        worst = m if best_of(table, m) >= best_of(table, worst) else worst
    side, before = at_edge(table, best), table[SIDE]
    table[SIDE] = side
    if side == 0.0 or side != before or best == worst:
        return -1, -1
    table[SIDE] = 0.0
    _, by = rate_of(rate, table, LAST, EXPERTS, table[ROWS])
    for row in (COLUMN, BIAS, BIAS_G, BIAS_SUM, BIAS_TOTAL, HELD, HELD + MODELS):
        table[row + worst] = table[row + best]
    table[ETA + worst] = table[ETA + best] * (FARTHER if side > 0.0 else 1.0 / FARTHER)
    table[LAST + worst] = bound(table[LAST + best] + BEHIND_BEST / by)
    table[MEAN + worst] = bound(table[MEAN + best] + BEHIND_BEST / by)
    return best, worst


@function
def time_to_look(t):
    """Whether the step sizes are looked at after t rows: at powers of two."""
    return t >= FIRST_MOVE and t & (t - 1) == 0


@function
def add_biases(table, t):
    """Add the intercepts before step t to their sums."""
    for m in range(int(table[KEPT])):
        table[BIAS_SUM + m] += AVERAGE.om(t) * table[BIAS + m]
        if due(t):
            table[BIAS_TOTAL + m] += table[BIAS_SUM + m]
            table[BIAS_SUM + m] = 0.0


@function
def take_scores(table, room, one, t):
    """The scores of all experts before step t + 1, from sums over the row's features; whether all are finite."""
    finite = True
    for m in range(int(table[KEPT])):
        room[SCORE + m] += table[BIAS + m] * one
        sums = room[MEAN_SCORE + m] + (table[BIAS_TOTAL + m] + table[BIAS_SUM + m]) * one
        room[MEAN_SCORE + m] = mean_score(AVERAGE, t, sums, room[SCORE + m])
        finite = finite and isfinite(room[SCORE + m]) and isfinite(room[MEAN_SCORE + m])
    return finite


@function
def take_slopes(table, room, loss, y, s, eta, t):
    """The slopes at the models' scores, 1 / c_t, and 1 / sigma of the intercepts; whether a model moves."""
    active = False
    for m in range(int(table[KEPT])):
        g, grow = weighted(s, loss.slope(room[SCORE + m], y)), inverse_step(table, m, eta, t)
        table[BIAS_G + m] += g * g
        room[SLOPE + m], room[GROW + m] = g, grow
        room[OF_BIAS + m] = 1.0 / max(size_of(table[BIAS_G + m], 0.0) * grow, LEAST)
        active = active or g != 0.0
    return active


@function
def take_steps(table, room, loss, y, s, one):
    """theta of every model, from A and D of its features; the intercepts move."""
    for m in range(int(table[KEPT])):
        theta, D = 0.0, room[STEEP + m] + room[OF_BIAS + m] * one
        if room[SLOPE + m] != 0.0:
            A = room[AHEAD + m] + table[BIAS + m] * one
            theta = weighted(s, loss.theta(A, s * D, y)) if isfinite(A + D) else nan
            table[BIAS + m] -= room[OF_BIAS + m] * theta * one
        room[THETA + m] = theta


@function
def rested(V, row, m, shape, stamp, t, l2):
    """Weight and sum of a feature in model m up to step t, where it has rested since step ``stamp``; ``row``: the place of the
    feature among those of ``shape`` = (numbers of a model, models)."""
    parts, models = shape
    at = row * parts * models + m
    w, so_far = V[at], V[at + S * models]
    if parts == PARTS:
        return w, so_far + AVERAGE.resting(w, stamp, t)
    sigma = max(V[at + SIGMA * models], LEAST)
    z = -w * (sigma + stamp * l2)
    return -z / (sigma + t * l2), so_far + idle_sum(z, sigma, 0.0, l2, True, stamp, t, AVERAGE)


@function
def settle(V, row, shape, stamp, t, l2):
    """Bring a feature up to step t in every model."""
    parts, models = shape
    for m in range(models):
        at = row * parts * models + m
        V[at], V[at + S * models] = rested(V, row, m, shape, stamp[row], t, l2)
    stamp[row] = t


@function
def copy_model(V, best, worst):
    """Give model ``worst`` the numbers of model ``best`` in all features."""
    for row in range(0, V.shape[0], MODELS):
        V[row + worst] = V[row + best]


@function
def scaled(own, own_x, x, inverse):
    """An entry's value in the scale of each model; ``own`` is 1 for those that divide by the column's, else 0."""
    return own * own_x + (1.0 - own) * (x * inverse)


@function
def score_models(row, layout, models, of_models, of_row, stamp, t):
    """The scores of the models and of their averages after t steps, less their intercepts."""
    begin, end, indices, values, xs, inverse = row
    parts, _, groups, width = layout
    for g in range(groups):
        own, last, mean = row_of(of_models, COLUMN // width + g), no_row(models), no_row(models)
        for k in range(begin, end):
            j = np.int64(indices[k])
            at = j * parts * groups + g
            x, w = scaled(own, xs[k], np.float64(values[k]), inverse), row_of(models, at)
            last += w * x
            mean += (row_of(models, at + S * groups) + AVERAGE.resting(w, stamp[j], float(t))) * x
        put_row(of_row, SCORE // width + g, last)
        put_row(of_row, MEAN_SCORE // width + g, mean)
        put_row(of_row, AHEAD // width + g, last)


@function
def measure_steps(row, layout, models, of_models, of_row, ridge, l2, t):
    """A and D of step t, by which theta is found, and 1 / (sigma + t l2) of every entry; sigma too where there is l2."""
    begin, end, indices, values, xs, inverse = row
    parts, places, groups, width = layout
    for g in range(groups):
        own, ahead, steep = row_of(of_models, COLUMN // width + g), no_row(models), no_row(models)
        slope, grow = row_of(of_row, SLOPE // width + g), row_of(of_row, GROW // width + g)
        for k in range(begin, end):
            at, e = np.int64(indices[k]) * parts * groups + g, ENTRIES // width + (k - begin) * places * groups + g
            x = scaled(own, xs[k], np.float64(values[k]), inverse)
            gradient = slope * x
            sigma = size_of(row_of(models, at + G * groups) + gradient * gradient, 0.0) * grow
            if ridge is not None:
                sigma = where(slope != 0.0, sigma, row_of(models, at + SIGMA * groups))
                put_row(of_row, e + groups, sigma)
            shrunk = 1.0 / max(sigma + t * l2, LEAST)
            put_row(of_row, e, shrunk)
            steep += (x * x) * shrunk
            if ridge is not None:
                ahead += x * (row_of(models, at) * ((sigma + (t - 1) * l2) * shrunk))
        put_row(of_row, STEEP // width + g, steep)
        if ridge is not None:
            put_row(of_row, AHEAD // width + g, ahead)


@function
def move_models(row, layout, models, of_models, of_row, ridge, l2, stamp, t):
    """Step t of the models in the columns of a row; the sums of their averages follow."""
    begin, end, indices, values, xs, inverse = row
    parts, places, groups, width = layout
    for g in range(groups):
        own, theta = row_of(of_models, COLUMN // width + g), row_of(of_row, THETA // width + g)
        slope = row_of(of_row, SLOPE // width + g)
        for k in range(begin, end):
            j, e = np.int64(indices[k]), ENTRIES // width + (k - begin) * places * groups + g
            at = j * parts * groups + g
            x, w, shrunk = scaled(own, xs[k], np.float64(values[k]), inverse), row_of(models, at), row_of(of_row, e)
            gradient, so_far = slope * x, row_of(models, at + S * groups)
            put_row(models, at + S * groups, so_far + AVERAGE.resting(w, stamp[j], float(t)))
            put_row(models, at + G * groups, row_of(models, at + G * groups) + gradient * gradient)
            if ridge is not None:
                sigma = row_of(of_row, e + groups)
                put_row(models, at + SIGMA * groups, sigma)
                w *= (sigma + (t - 1) * l2) * shrunk
            put_row(models, at, w - theta * x * shrunk)
    for k in range(begin, end):
        stamp[indices[k]] = t


@kernel
def learn_mixture(
    rows, largest, y, s, loss, solver, l2, ridge, count, square, stamp, V, models, table, of_models, xs, room, of_row, now,
    scores,
):  # fmt: skip
    """Learn rows until one leaves something that is not finite; how many were learned.

    models, of_models, of_row: V, the table and the room as rows of lanes, or as they are where one model is kept. ridge: True
    where there is l2, else None. xs: room for the scaled values of all entries. layout: numbers of a feature in a model, those
    kept of an entry, groups of models, models of a group.
    """
    indptr, indices, values = rows
    t, one, done = int(now[T]), now[ONE], y.shape[0]
    parts, places, groups, width = PARTS, 1, GROUPS, WIDTH
    if ridge is not None:
        parts, places = PARTS + 1, 2
    if models.ndim == 1:
        groups, width = 1, 1
    shape, layout = (parts, groups * width), (parts, places, groups, width)
    for i in range(y.shape[0]):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        scale_row(rows, i, s[i], (count, square), None, True, xs)
        squares, own_squares = 0.0, 0.0
        for k in range(begin, end):
            x = np.float64(values[k])
            squares += x * x
            own_squares += xs[k] * xs[k]
            if ridge is not None:
                settle(V, np.int64(indices[k]), shape, stamp, float(t), l2)
        inverse = take_values(table, squares, float(end - begin), s[i])

        row = begin, end, indices, values, xs, inverse
        score_models(row, layout, models, of_models, of_row, stamp, t)
        finite = take_scores(table, room, one, t)
        shares_of(solver.rate, table, room, SHARES)
        scores[i] = mixed(table, room)
        if not (finite and isfinite(scores[i])):
            done = i
            break

        t += 1
        add_biases(table, t)
        if s[i] > 0.0:
            take_losses(table, room, loss, y[i], s[i], float(t))
            table[LENGTHS] += squares * inverse * inverse + one
            table[LENGTHS + 1] += own_squares + one
        if s[i] > 0.0 and take_slopes(table, room, loss, y[i], s[i], solver.eta, t):
            measure_steps(row, layout, models, of_models, of_row, ridge, l2, t)
            take_steps(table, room, loss, y[i], s[i], one)
            move_models(row, layout, models, of_models, of_row, ridge, l2, stamp, t)
        if models.ndim == 2 and time_to_look(t):
            best, worst = renewed(table, solver.rate)
            if best >= 0:
                copy_model(V, best, worst)
    now[T] = t
    return done


@kernel
def read_mixture(solver, l2, shape, square, stamp, V, table, now, columns, out):
    """Write the mixture's weights of columns, in the columns' own units."""
    t, shares, (parts, models) = now[T], np.zeros(EXPERTS), shape
    known = V.shape[0] // (parts * models)
    shares_of(solver.rate, table, shares, 0)
    inverse = 1.0 / sqrt(table[SQUARE]) if table[SQUARE] > 0.0 else 0.0
    for e in range(columns.shape[0]):
        j, found = np.int64(columns[e]), 0.0
        own = 1.0 / sqrt(square[j]) if square[j] > 0.0 else 0.0
        for m in range(models if j < known else 0):
            w, sums = rested(V, j, m, shape, stamp[j], t, l2)
            found += of_expert(shares, m, w, sums, AVERAGE.total(t)) * (own if table[COLUMN + m] > 0.0 else inverse)
        out[e] = found + 0.0


@kernel
def read_bias(solver, table, t):
    """The mixture's intercept after t steps."""
    shares = np.zeros(EXPERTS)
    shares_of(solver.rate, table, shares, 0)
    found = shares[2 * MODELS] * table[LEVEL]
    for m in range(int(table[KEPT])):
        found += of_expert(shares, m, table[BIAS + m], table[BIAS_TOTAL + m] + table[BIAS_SUM + m], AVERAGE.total(t))
    return found


@kernel
def read_after_row(solver, l2, shape, square, stamp, V, table, columns, now, out):
    read_mixture(solver, l2, shape, square, stamp, V, table, now, columns, out)


@function
def bias_after_row(solver, table, now):
    """The mixture's intercept after the last row."""
    return read_bias(solver, table, now[T])


@kernel
def read_models(l2, shape, stamp, V, t, out):
    """Write weights and sums of every model up to step t."""
    parts, models = shape
    for j in range(V.shape[0] // (parts * models)):
        for m in range(models):
            out[0, m, j], out[1, m, j] = rested(V, j, m, shape, stamp[j], t, l2)


class Mixture(NamedTuple):
    """Settings: ``eta`` multiplies all step sizes; ``rate`` is that of the shares, 0 for one that suits the loss. From the
    first row on that has a column of number ``limit`` or beyond, the best expert's model alone is kept."""

    eta: float = 1.0
    rate: float = 0.0
    limit: float = 2.0**20

    letters = ("w", "count", "square", *LETTERS, *(f"table{place}" for place in range(NUMBERS)))
    stable = True  # every step is implicit in the loss
    scales = False  # its models divide the columns by scales of their own
    centres = True  # columns far from 0 it would have to learn like any other
    clips = True  # where estimators clip by default: no paper says how it predicts
    no_batch = "its implicit steps and shares are those of single rows"

    def step(self, U, x, y, s, t, loss, penalty):
        table, room, D = U[3 + 4 * MODELS :, 0], np.zeros(ENTRIES), U.shape[1]
        one, l2 = x[0], penalty.l2
        table[FOLLOWS] = follows(loss, one != 0.0)
        on = np.flatnonzero(x[1:]) + 1
        if s > 0.0:
            for j in on:
                U[1, j] += 1.0
                U[2, j] += (x[j] * x[j] - U[2, j]) / U[1, j]
        inverse = take_values(table, dot(x[1:], x[1:]), float(on.shape[0]), s)
        X = np.zeros((2, D))
        for j in on:
            X[0, j] = x[j] * inverse
            X[1, j] = x[j] / sqrt(U[2, j]) if U[2, j] > 0.0 else 0.0
        columns = [X[int(column)] for column in table[COLUMN : COLUMN + MODELS]]
        of_models = U[3 : 3 + 4 * MODELS].reshape(4, MODELS, D)
        for m in range(MODELS):
            room[SCORE + m], room[MEAN_SCORE + m] = dot(of_models[W, m], columns[m]), dot(of_models[S, m], columns[m])
        take_scores(table, room, one, t - 1)
        of_models[S] += AVERAGE.om(t) * of_models[W]
        add_biases(table, t)
        moves = False
        if s > 0.0:
            take_losses(table, room, loss, y, s, float(t))
            table[LENGTHS] += dot(X[0], X[0]) + one
            table[LENGTHS + 1] += dot(X[1], X[1]) + one
            moves = take_slopes(table, room, loss, y, s, self.eta, t)
        if moves:
            self.measure_models(of_models, columns, room, on, t, l2)
            take_steps(table, room, loss, y, s, one)
        self.move_models(of_models, columns, room, moves, t, l2)
        if time_to_look(t):
            best, worst = renewed(table, self.rate)
            if best >= 0:
                of_models[:, worst] = of_models[:, best]
        self.write_mixture(U, of_models, table, t)

    def measure_models(self, of_models, columns, room, on, t, l2):
        """A and D of step t, by which theta is found, for every model; sigma moves."""
        for m in range(MODELS):
            w, squares, sigma, own = of_models[W, m], of_models[G, m], of_models[SIGMA, m], columns[m]
            room[AHEAD + m], room[STEEP + m] = 0.0, 0.0
            for j in on:
                squares[j] += (room[SLOPE + m] * own[j]) ** 2
                if room[SLOPE + m] != 0.0:
                    sigma[j] = size_of(squares[j], 0.0) * room[GROW + m]
                    room[STEEP + m] += own[j] * own[j] / (sigma[j] + t * l2)
                    room[AHEAD + m] += own[j] * w[j] * ((sigma[j] + (t - 1) * l2) / (sigma[j] + t * l2))

    def move_models(self, of_models, columns, room, moves, t, l2):
        """Step t of every model; where none moves, the penalty's part of it alone."""
        for m in range(MODELS):
            w, sigma, own = of_models[W, m], of_models[SIGMA, m], columns[m]
            for k in range(1, w.shape[0]):
                if sigma[k] > 0.0:
                    pull = room[THETA + m] * own[k] if moves else 0.0
                    w[k] = (w[k] * (sigma[k] + (t - 1) * l2) - pull) / (sigma[k] + t * l2)

    def write_mixture(self, U, of_models, table, t):
        """Put the mixture after t steps, in the columns' own units, in place of w."""
        shares, total = np.zeros(EXPERTS), AVERAGE.total(t)
        shares_of(self.rate, table, shares, 0)
        U[0] = 0.0
        U[0, 0] = shares[2 * MODELS] * table[LEVEL]
        for m in range(MODELS):
            U[0, 0] += of_expert(shares, m, table[BIAS + m], table[BIAS_TOTAL + m] + table[BIAS_SUM + m], total)
            for j in range(1, U.shape[1]):
                scale = sqrt(U[2, j]) if table[COLUMN + m] > 0.0 else sqrt(table[SQUARE])
                if scale > 0.0:
                    U[0, j] += of_expert(shares, m, of_models[W, m, j], of_models[S, m, j], total) / scale

    def begin(self, U, penalty):
        if np.any(U):
            raise ValueError("mixture starts at w = 0: a weight without a gradient has no sigma; start= is not possible.")
        U[3 + 4 * MODELS :, 0] = first_table()

    def predictor(self, U, t, penalty):
        return U[0]

    def engine(self, problem: Problem) -> Engine:
        needs_theta(problem)
        check_penalty(problem, "'fiol', 'comid' or 'odrs'", "none and l2")
        if problem.penalty.l1 > 0.0:
            raise ValueError(
                f"{problem.name} takes no l1: the mixture has a weight wherever one of its models has one; use 'implicit-ftrl'."
            )
        if problem.average is not None:
            raise ValueError(f"{problem.name} mixes averages of its own models; use average='none'.")
        if self.rate == 0.0 and getattr(problem.loss, "likelihood", False):
            return LazyMixture(self._replace(rate=1.0), problem)
        return LazyMixture(self, problem)


class LazyMixture(Engine):
    """A mixture in O(non-zeros)."""

    stepped = metric = scales_columns = True

    def start(self, w: np.ndarray, b: float) -> State:
        if np.any(w) or b != 0.0:
            self.solver.begin(np.append(b, w), self.penalty)
        state = State(scalars(self.problem.fit_intercept, b), {name: np.zeros(0) for name in COUNTS}, {"table": first_table()})
        state.kept["table"][FOLLOWS] = follows(self.problem.loss, self.problem.fit_intercept)
        state.arrays["models"], state.widths["models"] = np.zeros(0), self.parts * MODELS
        state.bounded["models"] = Bound(int(self.solver.limit), self.parts)
        state.grow(len(w))
        return state

    @property
    def parts(self) -> int:
        """How many numbers a model has of a feature."""
        return PARTS + (self.penalty.l2 > 0.0)

    def shape(self, state: State) -> tuple[int, int]:
        """How many numbers a model has of a feature, and how many models there are."""
        return self.parts, int(state.kept["table"][KEPT])

    def learn(self, state: State, examples: Examples) -> int:
        first = self._first_beyond(state, examples.rows)
        if first is None:
            return super().learn(state, examples)
        done = super().learn(state, examples.cut(slice(0, first)))
        if done < first:
            return done
        self.keep_best(state)
        return first + super().learn(state, examples.cut(slice(first, len(examples.s))))

    def _first_beyond(self, state: State, rows: Rows) -> int | None:
        """The first row that has a column beyond those of the models, or None."""
        if self.reach(state) == state.size:
            return None
        begin, end = int(rows.indptr[0]), int(rows.indptr[-1])
        found = np.flatnonzero(rows.indices[begin:end] >= self.reach(state))
        return int(np.searchsorted(rows.indptr, begin + found[0], side="right")) - 1 if len(found) else None

    def reach(self, state: State) -> int:
        return len(state.arrays["models"]) // state.widths["models"]

    def keep_best(self, state: State) -> None:
        """Keep the model of the best expert alone."""
        warn_caller(
            f"{self.problem.name}: a row has a column of number {self.solver.limit:,.0f} or beyond (limit=), so from here on "
            "only the best of its models is kept.",
            UserWarning,
        )
        table, size = state.kept["table"], state.size
        best = int(np.argmin(np.minimum(table[LAST : LAST + MODELS], table[MEAN : MEAN + MODELS])))
        models = state.arrays["models"].reshape(-1, MODELS)[:, best].copy()
        for row in (*range(0, CONSTANT, MODELS), HELD, HELD + MODELS):
            table[row : row + MODELS] = [table[row + best], *(MODELS - 1) * [MOST if row in (LAST, MEAN) else 0.0]]
        table[KEPT] = 1.0
        self._take_one(state)
        state.grow(size)
        state.arrays["models"][: len(models)] = models

    def _take_one(self, state: State) -> None:
        """Let the state hold one model, of no features so far."""
        state.arrays["models"], state.widths["models"] = np.zeros(0), self.parts
        state.buffers.pop("models", None)
        state.bounded.clear()

    def call(self, state: State, examples: Examples) -> Any:
        l2, table, V, (parts, models) = float(self.penalty.l2), state.kept["table"], state.arrays["models"], self.shape(state)
        shape = (-1,) if models == 1 else (-1, WIDTH)
        room = np.zeros(ENTRIES + (parts - 2) * models * examples.rows.longest)
        arrays = (*(state.arrays[name] for name in COUNTS), V, V.reshape(shape), table, table[:CONSTANT].reshape(shape))
        rooms = (np.empty(len(examples.rows.values) + BEHIND), room, room.reshape(shape))
        settings = self.loss, self.solver, l2, True if l2 > 0.0 else None
        return learn_mixture, (*examples.given, *settings, *arrays, *rooms, state.now, examples.scores)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out, arrays = np.empty(len(columns)), (state.arrays[name] for name in ("square", "stamp", "models"))
        own = (*arrays, state.kept["table"], state.now)
        read_mixture(self.solver, float(self.penalty.l2), self.shape(state), *own, columns, out)
        return out

    def bias(self, state: State) -> float:
        return float(read_bias(self.solver, state.kept["table"], state.now[T]))

    def bias_reader(self, state: State) -> tuple[Any, tuple[Any, ...]]:
        return bias_after_row, (self.solver, state.kept["table"])

    def readers(self, state: State) -> tuple[Any, Any]:
        arrays = (state.arrays[name] for name in ("square", "stamp", "models"))
        return (
            read_after_row,
            (self.solver, float(self.penalty.l2), self.shape(state), *arrays, state.kept["table"]),
        ), None

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        raise TypeError("a mixture has no average of its own.")

    def may_keep(self, state: State) -> dict[str, Span]:
        return {"table": Span(np.float64, PLAIN, NUMBERS)}

    def restore_kept(self, state: State, arrays: Mapping[str, np.ndarray]) -> None:
        super().restore_kept(state, arrays)
        table = state.kept["table"]
        trust.must(len(table) in (PLAIN, NUMBERS), "a table of another length than any run has")
        state.kept["table"] = np.pad(table, (0, NUMBERS - len(table)))
        kept, size = table[KEPT], state.size
        trust.must(kept in (1.0, MODELS), "a number of models that no run keeps")
        if kept == 1.0:
            self._take_one(state)
            state.grow(size)

    def check(self, state: State) -> None:
        super().check(state)
        table, (count, square, stamp) = state.kept["table"], (state.arrays[name] for name in COUNTS)
        parts, models = self.shape(state)
        trust.must(np.all(table[ETA : ETA + models] > 0.0), "step sizes that are not above 0")
        trust.must(np.all(np.isin(table[COLUMN : COLUMN + models], (0.0, 1.0))), "a scaling that is not known")
        trust.must(table[SIDE] in (-1.0, 0.0, 1.0), "an edge of the step sizes that is not known")
        trust.must(np.all(table[BIAS_G : BIAS_G + models] >= 0.0) and np.all(table[ROWS:SIDE] >= 0.0), "sums below 0")
        trust.must(np.all(table[HELD:LEVEL] >= 0.0) and table[FOLLOWS] in (0.0, 1.0), "shares or a constant that no run has")
        trust.must(table[GONE] in (0.0, BEFORE), "rows before the first that no run has")
        t = state.now[T]
        inside = all(bool(np.all((steps >= 0.0) & (steps <= t) & (steps == np.floor(steps)))) for steps in (count, stamp))
        trust.must(inside, "steps or counts that are not between the first row and the last")
        squares = state.arrays["models"].reshape(-1, parts, models)[:, [G, *range(SIGMA, parts)]]
        trust.must(np.all(square >= 0.0) and np.all(squares >= 0.0), "sums of squares below 0")

    def variables(self, state: State) -> dict[str, Any]:
        table, shares, (parts, models) = state.kept["table"], np.zeros(EXPERTS), self.shape(state)
        shares_of(self.solver.rate, table, shares, 0)
        found = {"w": self.weights(state, everything(state)), "p": shares, "eta": self.solver.eta * table[ETA : ETA + models]}
        found |= {name: state.arrays[name].copy() for name in ("count", "square")}
        V, out = state.arrays["models"], np.zeros((parts, models, state.size))
        numbers = V.reshape(-1, parts, models)
        out[:, :, : len(numbers)] = numbers.transpose(1, 2, 0)
        settled = np.zeros((2, models, len(numbers)))
        read_models(float(self.penalty.l2), self.shape(state), state.arrays["stamp"], V, state.now[T], settled)
        out[W, :, : len(numbers)], out[S, :, : len(numbers)] = settled
        letters = zip(("w", "G", "S", "sigma"), out, strict=False)
        return found | {f"{letter}{m + 1}": array[m] for letter, array in letters for m in range(models)}


adopt(Mixture)
