r"""The loop over mini-batches, in compiled code for every lazy solver: read, score, sum, step.

A batch of k rows has few columns or many, which it may share. ``unite`` numbers them in the order in which they come, by a
table of twice as many slots as the batch has entries. The weights are read once for each column. The sum of the rows, each
times its slope, becomes one row of the solver's own kernel. What belongs to a solver is called by name: its kernels that read
and step, which are those of single rows.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import composed, function, kernel
from onlinear.losses import weighted
from onlinear.rows import Rows
from onlinear.rows.scaling import BEHIND
from onlinear.solvers.core.batch_dual import DualRoom, DualStart, batch_thetas, is_straight, most_rounds
from onlinear.solvers.core.engine import Engine, Examples
from onlinear.solvers.core.last_row import LastRow
from onlinear.solvers.core.state import BIAS_SUM, BIAS_TOTAL, ONE, State, T

MOST_COLUMNS, FEWEST_VISITS = 1 << 22, 8  # of which each has a number, where the rows at hand have an eighth as many entries
ONE_MORE, HALF = np.uint64(1), np.uint64(32)
SPREAD, SHIFT = np.uint64(2654435761), np.uint64(15)  # of columns over the slots


class BatchRoom(NamedTuple):
    """Room for the columns of a batch: the place of each entry, and the columns in order, their weights, and their sums.

    ``keys`` and ``spots`` are a table of columns; a key that does not begin with the number of the batch, ``batch[0]``, is of
    an earlier one. Where ``direct`` has a number for each column, that says where the column is, and there is no table.
    """

    places: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    sums: np.ndarray
    keys: np.ndarray
    spots: np.ndarray
    batch: np.ndarray
    direct: np.ndarray

    @classmethod
    def of(cls, entries: int, size: int) -> BatchRoom:
        """Room for batches of so many entries, with a number for each of ``size`` columns."""
        slots = 0 if size else 1 << max(4, (2 * entries - 1).bit_length())
        columns, wide = np.empty(entries + BEHIND, np.uint32), np.empty((2, entries + BEHIND))
        table = np.zeros(slots, np.uint64), np.empty(slots, np.uint32), np.zeros(1, np.uint64)
        return cls(np.empty(entries, np.uint32), columns, *wide, *table, np.zeros(size, np.uint64))


@function
def slot_of(keys, batch, j):
    """The slot of a column, or the empty one where it belongs."""
    mask, key = np.uint64(keys.shape[0] - 1), (batch << HALF) + j
    slot = (j * SPREAD >> SHIFT) & mask
    while keys[slot] != key and keys[slot] >> HALF == batch:
        slot = (slot + ONE_MORE) & mask
    return slot


@kernel
def unite(rows, first, k, room):
    """Number the columns of the k rows from row ``first`` on; how many there are."""
    indptr, indices, _ = rows
    places, columns, _, _, keys, spots, batch, direct = room
    batch[0] += ONE_MORE
    mark, count, start = batch[0] << HALF, np.uint64(0), indptr[first]
    plain = direct.shape[0] > 0
    for i in range(first, first + k):
        place = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if place >= count or columns[place] != j:  # not the column behind that of the entry before
                if plain:
                    place = count
                    if direct[j] >= mark:
                        place = direct[j] - mark
                    else:
                        direct[j] = mark + place
                else:
                    slot = slot_of(keys, batch[0], np.uint64(j))
                    place = np.uint64(spots[slot])
                    if keys[slot] != mark + np.uint64(j):
                        place = count
                        keys[slot], spots[slot] = mark + np.uint64(j), place
                if place == count:
                    columns[count] = j
                    count += ONE_MORE
            places[e - start] = place
            place += ONE_MORE
    return count


@function
def score_rows(rows, first, k, room, weights, bias, scores):
    """Fill in the scores of k rows, whose columns are numbered; the first that is not finite, or k."""
    indptr, _, values = rows
    places, start = room[0], indptr[first]
    for i in range(first, first + k):
        score = bias
        for e in range(indptr[i], indptr[i + 1]):
            score += weights[places[e - start]] * values[e]
        scores[i] = score
        if not isfinite(score):
            return i - first
    return k


@function
def sum_rows(rows, first, room, count, slopes):
    """Put the sum of the rows, each times its slope, where their columns are; the sum of the slopes."""
    indptr, _, values = rows
    places, sums, start, one = room[0], room[3], indptr[first], 0.0
    for p in range(count):
        sums[p] = 0.0
    for i in range(slopes.shape[0]):
        slope = slopes[i]
        if slope != 0.0:
            one += slope
            for e in range(indptr[first + i], indptr[first + i + 1]):
                sums[places[e - start]] += slope * values[e]
    return one


@function
def as_row(room, count, row):
    """Make one row of the sums that are not 0; the largest absolute value."""
    starts, indices, values = row
    columns, sums = room[1], room[3]
    end, largest = np.uint64(0), 0.0
    for p in range(count):
        if sums[p] != 0.0:
            indices[end], values[end] = columns[p], sums[p]
            largest = max(largest, abs(sums[p]))
            end += ONE_MORE
    starts[1] = end
    return largest


@kernel
def score_batch(rows, first, k, room, bias, scores):
    """``score_rows`` by the weights in the room."""
    return score_rows(rows, first, k, room, room[2], bias, scores)


@kernel
def sum_batch(rows, first, room, count, slopes, row):
    """The sum of the rows, each times its slope, as one row; the sum of the slopes and the largest absolute value."""
    one = sum_rows(rows, first, room, count, slopes)
    return one, as_row(room, count, row)


@kernel
def mean_slopes(loss, first, scores, y, s, slopes):
    """Fill in what each row adds to the mean of the slopes."""
    k = slopes.shape[0]
    for i in range(k):
        slopes[i] = weighted(s[first + i], loss.slope(scores[first + i], y[first + i])) / k


@kernel
def score_by_mean(average, rows, first, k, room, count, now, means):
    """The scores by the average of the predictors, whose sums are in the room; before the first step the scores stay."""
    total = average.total(int(now[T]))
    sums = room[3]
    if total > 0.0 or now[T] > 0.0:
        for p in range(count):
            sums[p] = sums[p] / total if total > 0.0 else 0.0
        bias = (now[BIAS_TOTAL] + now[BIAS_SUM]) / total if total > 0.0 else 0.0
        score_rows(rows, first, k, room, sums, bias, means)


@function
def keep_nothing(row):
    """Nothing of a row is needed once it is learned."""


def learn_batches(examples, room, row, reading, biasing, averaging, starting, keeping, learning, now, ends, report):
    """Learn batches until one is not finite; how many rows were learned. ``read``, ``bias``, ``read_sums``, ``start``, ``keep``
    and ``learn`` are what ``composed`` is given; ``ends``: the last step before something else is due. ``starting``: of an
    implicit step. ``report``: 1 where none was found."""
    rows, loss, y, s, scores, means, slopes = examples
    k, one = slopes.shape[0], now[ONE]
    for first in range(0, y.shape[0] - k + 1, k):
        if now[T] >= ends:
            return first
        count = np.int64(unite(rows, first, k, room))
        read(*reading, room[1][:count], now, room[2])  # type: ignore[name-defined]  # noqa: F821
        done = score_batch(rows, first, k, room, bias(*biasing, now), scores)  # type: ignore[name-defined]  # noqa: F821
        if done < k:
            return first + done
        if averaging is not None:
            means[first : first + k] = scores[first : first + k]
            average, sums = averaging
            read_sums(*sums, room[1][:count], now, room[3])  # type: ignore[name-defined]  # noqa: F821
            score_by_mean(average, rows, first, k, room, count, now, means)
        if starting is None:
            mean_slopes(loss, first, scores, y, s, slopes)
        if starting is not None:
            args, penalty, straight, most, dual = starting
            c = start(*args, room[1][:count], now, room[2], dual[1])  # type: ignore[name-defined]  # noqa: F821
            b = bias(*biasing, now)  # type: ignore[name-defined]  # noqa: F821
            if not batch_thetas(rows, first, room[0], dual, count, loss, y, s, b, one, c, penalty, straight, most, slopes):
                report[0] = 1
                return first + k - 1
        mean, largest = sum_batch(rows, first, room, count, slopes, row)
        done = 0
        if isfinite(largest + mean * one):
            keep(row, *keeping)  # type: ignore[name-defined]  # noqa: F821
            now[ONE] = mean * one
            done = learn(row, largest, *learning)  # type: ignore[name-defined]  # noqa: F821
            now[ONE] = one
        if done == 0 or not isfinite(bias(*biasing, now)):  # type: ignore[name-defined]  # noqa: F821
            return first + k - 1
    return y.shape[0]


class Stepping(NamedTuple):
    """An engine's kernels for a state as they stand, by name, and their arguments; ``last``: what keeps the last row."""

    functions: dict[str, Any]
    arguments: tuple[Any, ...]
    last: LastRow | None

    @classmethod
    def of(cls, engine: Engine, state: State, row: Rows, means: bool, implicit: Implicit | None) -> Stepping:
        """How the engine steps by ``row``, whose entries change; with ``means`` the average is read too."""
        (read, reading), summing = engine.readers(state)
        bias, biasing = engine.bias_reader(state)
        last = LastRow.of(state, len(row.indices))
        keep, keeping = (keep_nothing, ()) if last is None else engine.keep(state, last)
        learn, learning = engine.call(state, Examples(row, 0.0, np.zeros(1), np.ones(1), np.empty(1)))
        functions = {"read": read, "bias": bias, "keep": keep, "learn": learn}
        averaging = starting = None
        if implicit is not None:
            functions["start"], args = implicit.start
            starting = args, implicit.penalty, is_straight(implicit.penalty), most_rounds(implicit.k), implicit.room
        if means:
            functions["read_sums"] = summing[0]
            averaging = engine.average, summing[1]
        return cls(functions, (reading, biasing, averaging, starting, keeping, learning[2:]), last)


class Implicit(NamedTuple):
    """How the implicit steps of batches of k rows start, and the penalty of their prox."""

    start: tuple[Any, tuple[Any, ...]]
    penalty: Any
    k: int
    room: DualRoom


def entries_of(rows: Rows, k: int) -> int:
    """The most entries of k rows that make a batch, and 1 at least."""
    return max(1, int(np.diff(rows.indptr[::k]).max()))


def room_for(entries: int) -> Rows:
    """Room for one row of so many entries."""
    return Rows(np.zeros(2, np.uint64), np.empty(entries, np.uint32), np.empty(entries + BEHIND))


def learn_whole(
    engine: Engine, loss: Any, start: DualStart | None, state: State, examples: Examples, k: int
) -> tuple[int, bool]:
    """Learn whole batches of k rows by a lazy engine whose rows have slope 1: how many rows were learned, and whether an
    implicit step was not found. ``start``: of implicit steps."""
    n, entries = len(examples.s), entries_of(examples.rows, k)
    total = int(examples.rows.indptr[-1] - examples.rows.indptr[0])
    room = BatchRoom.of(entries, state.size if state.size <= min(MOST_COLUMNS, FEWEST_VISITS * total) else 0)
    row, slopes, report, first = room_for(entries), np.empty(k), np.zeros(1, np.int64), 0
    implicit = None
    if start is not None and start.reader is not None:
        implicit = Implicit(start.reader, start.penalty, k, DualRoom.of(k, entries))
    while first < n:
        state.prepare((n - first) // k)
        ends, left = engine.next_restart(state), examples.cut(slice(first, n))
        stepping = Stepping.of(engine, state, row, examples.means is not None, implicit)
        batches = (left.rows, loss, left.y, left.s, left.scores, left.means, slopes)
        run = composed(learn_batches, **stepping.functions)
        done = run(batches, room, row, *stepping.arguments, state.now, ends, report)
        if stepping.last is not None:
            stepping.last.give(state)
        first += done
        if report[0] or state.t < ends:
            break
        engine.restart(state)
    return first, bool(report[0])
