"""Running scales that also centre the columns with an entry in nearly every row.

    centred   (x_j - m_j) / s_j with the mean m_j and the standard deviation s_j of all rows so far, this one included, for the
              columns that have an entry in nearly every row; the others as ``rms``
    tempered  the same, the others as ``tempered``
    dense     the same for the columns of the first row; the others as they are

The first row is its own mean. Its entries would all be 0, and its step would move the intercept alone, as far as a step of all
columns together; with many columns the intercept then takes thousands of rows to come back. So the first row is scaled as by
``rms``: until there is a second one, m_j counts as 0 and s_j as |x_j|. Measured in docs/defaults.md.

A column far from 0 is nearly a multiple of the intercept, and a step along one is a step along the other; centred it is not.
Rows get an entry in every centred column, 0 standing for none; these come before those of the other columns. So only columns
that are often there are centred. They are those of the first two rows with an entry, and of the third and the fourth where half
of the row's entries are in columns that are centred. After 4, 8, 16 ... rows some of them cease to be centred. In a table those
stay that more than a quarter of the rows have, so that at most three entries are added for each that was there. Rows count as a
table where these columns have half of all entries. In other rows, such as texts, which are learned worse with frequent words
centred, a column stays until it is missing in more than a tenth of the rows, and one row; after ``EARLY`` rows, in more than
half.
A column that is no longer centred has its running root mean square from then on. A row of weight 0 moves no scale.

``tempered`` keeps some of what the size of a column's values says: one that is larger than the others, as the count of a
frequent word, stays larger by the root of that. The factor of 2 bounds what the unit of a column does.

``dense`` is for methods to which the sizes of a text's values say something. It centres the columns of the first row that the
second one has, which stay as in texts.

What is learned does not depend on how rows are cut into calls, and a scale that moves touches no weight.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from onlinear.compiled import LANES, borrowed, function, lean_kernel, nothing, put, rooms, taken, total, where
from onlinear.files import trust
from onlinear.rows.records import Rows, Source, entries_to_fetch
from onlinear.rows.scaling import (
    BEHIND,
    CONSTANT,
    MOST_TEMPERED,
    NOT_TEMPERED,
    SQUARE,
    Scaler,
    ask_for_scales,
    deviation_of,
    largest_of,
    root_of,
    scale_entries,
    tempered,
)

KIND, TEMPERED, DENSE = "centred", "tempered", "dense"
CENTRED_KINDS = (KIND, TEMPERED, DENSE)
FIRST_ROWS = 4  # whose columns may be centred
OFTEN = 0.25  # of the rows: what a column of a table is to have to stay centred
TABLE = 0.5  # of the entries: what those columns are to have
EARLY = 1024  # rows after which a column stays centred while half the rows have it
# Of ``facts``: rows seen while there were columns to centre, these, entries at their mean, and whether others stay as they are.
ROWS, COLUMNS, ZEROS, LEAVES = range(4)
COUNT, MEAN, VARIANCE = range(3)  # of the statistics of each
NUMBERS, ENTRIES, RANKS = 0, 4, 5  # of what kernels are given of the centred columns
RANKED = 1 << 16  # columns below which those that are centred are found by a table of their places


class Centring(Scaler):
    """The running scales of one learner, with means of the columns that are nearly always there."""

    def __init__(self, kind: str, size: int) -> None:
        super().__init__(kind, size)
        self._facts = np.array([0, 0, 0, kind == DENSE])
        self._list = _room_for(np.empty(0, np.uint32))
        self._whole = np.zeros(2) if kind == TEMPERED else None
        self._out = Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32), np.empty(0))

    @property
    def centred(self) -> np.ndarray:
        """The columns whose mean is subtracted: their weights have a share in the intercept."""
        return self._list[0][: self._facts[COLUMNS]]

    @property
    def bytes_of_centred(self) -> int:
        return sum(array[..., : self._facts[COLUMNS]].nbytes for array in self._list)

    @property
    def statistics(self) -> np.ndarray:
        """Entries, mean and variance over all rows of each centred column, (3, columns)."""
        return self._list[1][:, : self._facts[COLUMNS]]

    @property
    def by_squares(self) -> bool:
        """Whether the columns that are not centred have the roots of their mean squares."""
        return True

    @property
    def settled(self) -> bool:
        """Whether the columns that may be centred are known, so that rows change arrays and replace none."""
        return bool(self._facts[ROWS] >= FIRST_ROWS)

    @property
    def rows_to_review(self) -> float:
        rows, columns = map(int, self._facts[:ZEROS])
        return max(4, 1 << rows.bit_length()) - rows if columns else inf

    @property
    def divides_alone(self) -> bool:
        """Whether no column is centred any more, so that rows are scaled as by ``rms``."""
        return self.settled and not self._facts[COLUMNS] and not self._facts[LEAVES]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of ``centre_row`` between the row and where it is written."""
        numbers, statistics, *rest = self._list
        return *self.running[:2], (self._facts,), (numbers, *statistics, *rest)

    @property
    def running(self) -> tuple[Any, ...]:
        return (self._room[0], self._room[1]), self._whole, True

    @property
    def within_loop(self) -> None:
        """None: rows get entries at the means of their columns, and columns cease to be centred."""

    @property
    def held(self) -> tuple[Any, ...]:
        whole = NOT_TEMPERED if self._whole is None else self._whole
        return (self._room[0], self._room[1]), whole, 1, self._facts, *self._list[:2]

    # --- rows --------------------------------------------------------------------------------------------------------

    def learn(self, rows: Rows, s: np.ndarray) -> tuple[Rows, float]:
        """The rows in scaled units, which hold until the next call, and their largest absolute value; the scales move on."""
        if self.divides_alone:
            return super().learn(rows, s)
        if rows.count >= len(self._out.indptr):
            self._out = self._out._replace(indptr=np.zeros(rows.count + 1, np.uint64))
        here, largest = 0, 0.0
        while not self.settled and here < rows.count:
            found = self._next_counted(rows, s, here)
            largest = max(largest, self._move(rows, s, here, found))
            if found < rows.count:
                self._meet(rows.indices[int(rows.indptr[found]) : int(rows.indptr[found + 1])])
                largest = max(largest, self._move(rows, s, found, found + 1))
            here = found + 1
        largest = max(largest, self._move(rows, s, here, rows.count))
        starts, columns, values = self._out
        end = int(starts[rows.count])
        return Rows(starts[: rows.count + 1], columns[:end], values[:end]), largest

    def _next_counted(self, rows: Rows, s: np.ndarray, first: int) -> int:
        """The first row from ``first`` on that counts: of a weight above 0, and not among empty ones before all others."""
        counts = s[first:] > 0.0
        if not self._facts[ROWS]:
            counts = counts & (np.diff(rows.indptr[first:]) > 0)
        return first + int(np.argmax(counts)) if counts.any() else rows.count

    def _meet(self, columns: np.ndarray) -> None:
        """Centre the columns of one of the first rows from it on; the rows before had a 0 there. From the third on it has to be
        one of a table. ``dense`` centres no column that its second row lacks."""
        known, before = self.centred, int(self._facts[ROWS])
        if before and self._facts[LEAVES]:
            return self._keep(np.isin(known, columns)) if before == 1 else None
        shared = np.isin(columns, known)
        if before > 1 and np.count_nonzero(shared) < TABLE * len(columns):
            return
        fresh = columns[(self._room[0][columns] == 0.0) & ~shared]
        if not len(fresh):
            return
        everything = np.sort(np.concatenate([known, fresh]), kind="stable")
        bigger = _room_for(everything)
        bigger[1][:, np.searchsorted(everything, known)] = self.statistics
        self._list, self._facts[COLUMNS] = bigger, len(everything)

    def _keep(self, kept: np.ndarray) -> None:
        """Centre these of the centred columns alone; behind them are zeros."""
        numbers, statistics, entries, ranks = self._list
        before, after = len(kept), int(np.count_nonzero(kept))
        numbers[:after] = numbers[:before][kept]
        _rank(numbers[:after], ranks)
        statistics[:, :after] = statistics[:, :before][:, kept]
        statistics[MEAN:, after:before] = entries[after:before] = 0.0
        self._facts[COLUMNS] = after

    def review(self) -> None:
        """Centre no longer the columns that too many rows lack, after 4, 8, 16 ... rows. To ask again changes nothing."""
        rows = int(self._facts[ROWS])
        if rows < 4 or rows & (rows - 1) or not self._facts[COLUMNS]:
            return
        count, mean, variance = self.statistics
        kept = self._stay(count, rows)
        if kept.all():
            return
        gone = self.centred[~kept]
        self._room[0][gone] = count[~kept]
        self._room[1][gone] = ((variance + mean * mean) * float(rows))[~kept] / count[~kept]
        self._keep(kept)

    def _stay(self, count: np.ndarray, rows: int) -> np.ndarray:
        """Whether columns with so many entries in the rows stay centred."""
        often = count > OFTEN * rows
        if not self._facts[LEAVES] and count[often].sum() >= TABLE * (count.sum() + self.moments[0].sum()):
            return often
        return count >= (0.9 * rows - 1.0 if rows <= EARLY else 0.5 * rows)

    def _move(self, rows: Rows, s: np.ndarray, first: int, last: int) -> float:
        """Scale rows ``first`` to ``last`` to where they stand among the rows given; their largest absolute value."""
        largest = 0.0
        while first < last:
            rest = int(rows.indptr[last] - rows.indptr[first]) + int(self._facts[COLUMNS])
            self._enlarge(int(self._out.indptr[first]), rest + rest // 8)
            due = int(min(self._facts[ROWS] + self.rows_to_review, 2**62))
            first, found = _centre(rows, s, first, last, due, *self.arguments, self._out)
            largest = max(largest, found)
            self.review()
        return largest

    def _enlarge(self, used: int, more: int) -> None:
        """Have room for so many entries beyond those used, which are kept."""
        starts, columns, values = self._out
        if used + more > len(columns):
            bigger = np.empty(used + more, np.uint32), np.empty(used + more + BEHIND)
            bigger[0][:used], bigger[1][:used] = columns[:used], values[:used]
            self._out = Rows(starts, *bigger)

    def whole(self, source: Source, s: np.ndarray, first: bool) -> Source:
        """All rows in the scales that they have in the end; ``first``: the scales are made of these rows, of weight above 0."""
        if first:
            for which, rows in source.pieces():
                self.learn(rows, s[which])
        scaled, largest = self.learn(source.stored().data, np.zeros(source.n))
        return source._replace(largest=largest, data=Rows(*(array.copy() for array in scaled)))

    # --- scales ------------------------------------------------------------------------------------------------------

    def scales(self, columns: Any = slice(None)) -> np.ndarray:
        """The current scale of each column; 0 where it was never seen, or is constant."""
        found, known = super().scales(columns), self.centred
        root = 0.0 if self._whole is None else sqrt(sqrt(self._whole[SQUARE]))
        if root > 0.0:
            found = np.minimum(np.maximum(np.sqrt(found) * root, found * (1.0 / MOST_TEMPERED)), found * MOST_TEMPERED)
        if self._facts[LEAVES]:
            found = np.where(self.moments[0][columns] > 0.0, found, 1.0)
        if len(known):
            wanted = np.arange(self.size, dtype=np.uint32)[columns] if isinstance(columns, slice) else np.asarray(columns)
            places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found = np.where(known[places] == wanted, self._deviations()[places], found)
        return found

    @property
    def used(self) -> np.ndarray:
        return np.arange(self.size, dtype=np.uint32) if self._facts[LEAVES] else _united(super().used, self.centred)

    @property
    def vanished(self) -> np.ndarray:
        count, mean, variance = self.statistics
        return _united(super().vanished, self.centred[(count > 0.0) & (mean * mean == 0.0) & (variance == 0.0)])

    def _deviations(self) -> np.ndarray:
        """The standard deviation of each centred column; 0 where it is constant. Of one row alone its size."""
        _, mean, variance = self.statistics
        return np.abs(mean) if self._is_alone else deviation_of(mean, variance)

    @property
    def means(self) -> np.ndarray:
        """The means of the centred columns, and room behind them."""
        found: np.ndarray = self._list[1][MEAN]
        return found

    def centre_of(self, weights: np.ndarray) -> float:
        return 0.0 if self._is_alone else -float(self.statistics[MEAN] @ weights)

    @property
    def _is_alone(self) -> bool:
        return bool(is_alone(self._facts))

    # --- files -------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays themselves, by name."""
        centred = np.concatenate([self.centred[None].astype(np.float64), self.statistics])
        found = super().arrays() | {"scales.centred": centred, "scales.rows": np.array([float(self._facts[ROWS])])}
        return found if self._whole is None else found | {"scales.whole": self._whole}

    def restore(self, arrays: dict[str, np.ndarray], t: int) -> None:
        """Take the arrays of a run of t rows; raises ModelFileError for arrays that no run gives."""
        super().restore(arrays, t)
        rows = float(trust.array(arrays, "scales.rows", np.float64, 1)[0])
        trust.must(0.0 <= rows <= t and rows % 1.0 == 0.0, f"{rows} rows scaled among {t} rows")
        columns, *statistics = trust.array(arrays, "scales.centred", np.float64, 4, None)
        whole = np.all(np.isfinite(columns)) and np.all(columns % 1.0 == 0.0)
        trust.must(whole and trust.ascending(columns, self.size), "centred columns that are not among the columns")
        trust.finite("scales.centred", np.array(statistics))
        counts, _, variances = statistics
        trust.must(np.all((counts >= 0.0) & (counts <= rows) & (counts % 1.0 == 0.0)), f"a count of entries beyond {rows} rows")
        trust.must(np.all(variances >= 0.0), "a variance that is negative")
        self._list = _room_for(columns.astype(np.uint32))
        self._list[1][:, : len(columns)] = statistics
        self._facts[:LEAVES] = int(rows), len(columns), 0
        if self._whole is not None:
            squares = trust.array(arrays, "scales.whole", np.float64, 2)
            trust.finite("scales.whole", squares)
            trust.must(np.all(squares >= 0.0) and squares[0] % 1.0 == 0.0, "a number of entries or a square below 0")
            self._whole[...] = squares


def _room_for(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Room for these centred columns: their numbers, their statistics, their entries in a row and one of others, and the ranks
    of columns, for those too that stay when the last ones leave."""
    size = len(columns) + BEHIND
    numbers, ranks = np.zeros(size, np.uint32), np.zeros(min(int(columns[-1]) + 2, RANKED) if len(columns) else 0, np.uint32)
    numbers[: len(columns)] = columns
    _rank(columns, ranks)
    return numbers, np.zeros((3, size)), np.zeros(size + 1), ranks


def _rank(centred: np.ndarray, ranks: np.ndarray) -> None:
    """Write the places of these columns among themselves, and of the columns that are not among them how many there are."""
    ranks[...] = len(centred)
    if len(centred) and centred[-1] < RANKED - 1:
        ranks[centred] = np.arange(len(centred))


def _united(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The columns of either, ascending. NumPy's own union hashes them, which takes hundreds of times as long."""
    found = np.sort(np.concatenate([one, other]), kind="stable")
    return found[np.append(True, found[1:] != found[:-1])[: len(found)]]


def scaler_of(kind: str, size: int) -> Scaler | None:
    """The scales of this kind for so many columns; None for 'none'."""
    if kind == "none":
        return None
    return (Centring if kind in CENTRED_KINDS else Scaler)(kind, size)


@function
def is_alone(facts):  # type: ignore[no-untyped-def]
    """Whether the scales are those of one row, whose values have no mean yet."""
    return facts[ROWS] == 1


@function
def scale_at(scales, j, place):  # type: ignore[no-untyped-def]
    """The scale of column j as ``Centring.scales`` gives it, from what ``held`` gives, and the first place among the centred
    columns that a later column may have."""
    (counts, second), whole, by_squares, facts, numbers, statistics = scales
    while place < facts[COLUMNS] and numbers[place] < j:
        place += 1
    if place < facts[COLUMNS] and numbers[place] == j:
        mean, variance = statistics[MEAN, place], statistics[VARIANCE, place]
        return sqrt(variance if variance > CONSTANT * mean * mean else 0.0), place
    if facts[LEAVES] and not counts[j] > 0.0:
        return 1.0, place
    scale, root = sqrt(second[j]) if by_squares else second[j], sqrt(sqrt(whole[SQUARE]))
    return (tempered(scale, root) if root > 0.0 else scale), place


@lean_kernel
def _centre(rows, s, first, last, due, moments, whole, facts, centred, out):  # type: ignore[no-untyped-def]
    """Scale rows until ``last``, until there is no room or until ``due`` rows were seen; give the row that is next, and the
    largest absolute value."""
    room, largest = out[1].shape[0], 0.0
    until = entries_to_fetch(moments[1], rows[1])
    rows, moments, facts = rooms(rows), borrowed(moments), rooms(facts)
    centred, out = rooms(centred), rooms(out)
    for i in range(first, last):
        if np.int64(out[0][i]) + np.int64(rows[0][i + 1] - rows[0][i]) + facts[0][COLUMNS] > room:
            return i, largest
        ask_for_scales(rows, i, moments, until)
        largest = max(largest, centre_row(rows, i, s[i], moments, whole, facts, centred, out))
        if facts[0][ROWS] == due:
            return i + 1, largest
    return last, largest


@function
def centre_row(rows, i, weight, moments, whole, facts, centred, out):  # type: ignore[no-untyped-def]
    """Write a row in scaled units, which have moved on past it unless its weight is 0; give its largest absolute value. ``out``
    has room for the row with an entry in each centred column. After it ``Centring.review`` may be due. All but i, the
    weight, ``moments`` and ``whole`` are ``rooms``."""
    learns, facts = weight > 0.0, facts[0]
    begun = facts[ROWS] > 0 or rows[0][i + 1] > rows[0][i]
    counts = learns and (facts[COLUMNS] > 0 or (facts[ROWS] < FIRST_ROWS and begun))
    facts[ROWS] += counts
    known, largest = np.uint64(facts[COLUMNS]), 0.0
    begin = out[0][i]
    end = others = begin + known
    if not _has_all(rows, i, known, centred):
        end = _split(rows, i, known, centred, out)
    out[0][i + 1] = end
    if end > others:
        root = root_of(whole)
        largest = scale_entries(out, others, end, learns, moments, whole, root, True, facts[LEAVES], out[2], others)
    largest = max(largest, _follow(facts, learns, centred))
    for p in range(known):
        out[1][begin + p], out[2][begin + p] = centred[NUMBERS][p], centred[ENTRIES][p]
    if facts[ZEROS] > 0:
        _leave_out_zeros(i, out)
    return largest


@function
def _has_all(rows, i, known, centred):  # type: ignore[no-untyped-def]
    """Whether the entries of the row are those of the centred columns; then they are taken."""
    starts, columns, values = rows
    begin, others = starts[i], np.uint32(0)
    if starts[i + 1] - begin != known:
        return False
    for p in range(known):
        others |= columns[begin + p] ^ centred[NUMBERS][p]
    if others != 0:
        return False
    for p in range(known):
        centred[ENTRIES][p] = values[begin + p]
    return True


@function
def _split(rows, i, known, centred, out):  # type: ignore[no-untyped-def]
    """Take the row's entries of the centred columns, 0 where there is none, and write those of the others behind the room of
    the centred; where these end."""
    for p in range(known):
        centred[ENTRIES][p] = 0.0
    last = np.int64(centred[NUMBERS][known - np.uint64(1)]) if known > 0 else np.int64(RANKED)
    if last < RANKED - 1 and known * np.uint64(8) > rows[0][i + 1] - rows[0][i]:
        return _split_by_ranks(rows, i, known, last + 1, centred, out)
    return _split_by_order(rows, i, known, centred, out)


@function
def _split_by_ranks(rows, i, known, beyond, centred, out):  # type: ignore[no-untyped-def]
    """``_split`` by the ranks of columns, where columns from ``beyond`` on are not centred. It has no branch for an entry:
    which columns a row of a table has cannot be guessed."""
    starts, columns, values = rows
    entries, ranks = centred[ENTRIES], centred[RANKS]
    to = out[0][i] + known
    for k in range(starts[i], starts[i + 1]):
        j, x = columns[k], np.float64(values[k])
        place = ranks[min(np.int64(j), beyond)]
        entries[place] = out[2][to] = x
        out[1][to] = j
        to += np.uint64(place == known)
    entries[known] = 0.0
    return to


@function
def _split_by_order(rows, i, known, centred, out):  # type: ignore[no-untyped-def]
    """``_split`` in the order of the columns."""
    starts, columns, values = rows
    k, end, to = starts[i], starts[i + 1], out[0][i] + known
    for p in range(known + np.uint64(1)):
        begin = k
        if p < known:
            while k < end and columns[k] < centred[NUMBERS][p]:
                k += np.uint64(1)
        else:
            k = end
        for e in range(k - begin):
            out[1][to + e], out[2][to + e] = columns[begin + e], values[begin + e]
        to += k - begin
        if p < known and k < end and columns[k] == centred[NUMBERS][p]:
            centred[ENTRIES][p] = values[k]
            k += np.uint64(1)
    return to


@function
def _follow(facts, learns, centred):  # type: ignore[no-untyped-def]
    """Centre and scale the entries of one row; its statistics included if it ``learns``. Gives the largest absolute value."""
    _, counts, means, variances, entries, _ = centred
    zeros, known = nothing(), np.uint64(facts[COLUMNS])
    share, largest = 1.0 / np.float64(max(facts[ROWS], 1)), nothing()
    alone = 1.0 * is_alone(facts)
    for p in range(np.uint64(0), known, LANES):
        x, mean, variance = taken(entries, p), taken(means, p), taken(variances, p)
        if learns:
            put(counts, p, taken(counts, p) + (x != 0.0))
            change = x - mean
            mean += change * share
            variance += (change * (x - mean) - variance) * share
            put(means, p, mean)
            put(variances, p, variance)
        scale = where(variance > CONSTANT * mean * mean, sqrt(variance), alone * abs(mean))
        x = (x - (1.0 - alone) * mean) / where(scale > 0.0, scale, nothing() + inf) + 0.0
        put(entries, p, x)
        zeros += x == 0.0
        largest = max(largest, abs(x))
    behind = (LANES - known % LANES) % LANES  # lanes behind the last column hold zeros
    facts[ZEROS] = np.int64(total(zeros)) - np.int64(behind)
    return largest_of(largest)


@function
def _leave_out_zeros(i, out):  # type: ignore[no-untyped-def]
    """Close up the row that was written: an entry at the mean of its column is none."""
    ends, columns, values = out
    to = ends[i]
    for k in range(ends[i], ends[i + 1]):
        if values[k] != 0.0:
            columns[to], values[to] = columns[k], values[k]
            to += np.uint64(1)
    ends[i + 1] = to
