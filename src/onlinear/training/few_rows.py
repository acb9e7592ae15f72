"""How many passes few rows are worth, and how sure their model may be: what rows say that were held out (``passes="auto"``).

The rows are dealt into five parts, classes evenly, and copies of a row into one part (``copies.py``): else a row would be
scored by a model that has learned it. Rows of weight 0 say nothing and are not dealt; all five models read them. For each part
a learner trains on the other four, and scores the part after 1, 2, 5, 10, 20, 50 and 100 passes, as far as there may be so
many. So each row has scores of models that never learned it. Their loss is smallest at some number of passes. The largest
number whose loss is not above that by more than the standard error of the difference, over the parts, is taken.

Where the average has a calibration slope, scores are first multiplied by the slope a at which their loss is smallest, with
(log a)^2 added where a is above 1. That is worth about one row; without it, separable classes would have the largest slope of
all. The model keeps the slope: from the second pass on, scores of its own rows could give it none (``learner/race.py``).

Of n < 50 rows all may be right by luck, which most passes and the largest slope would take for certainty. So log losses count
(10/n - 10/50)^2 more rows, at most n/2, which have the scores of all and other classes: half a row where n is 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from math import ceil, exp, inf, log, sqrt
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from onlinear.errors import DivergenceError
from onlinear.learner import Learner, stored_learner
from onlinear.learner.loss_sums import sum_of_losses
from onlinear.learner.race import LARGEST, SMALLEST
from onlinear.losses import Logistic, loss_labels
from onlinear.rows import Source
from onlinear.softmax import Softmax
from onlinear.streams import Block
from onlinear.streams.blocks import joined
from onlinear.threads import Pool
from onlinear.training.copies import kinds_of, marks_of
from onlinear.training.intake import Intake, drop_held

AUTO = "auto"  # what asks the rows
ENOUGH = 20_000  # rows that are no longer few
MOST_ENTRIES = 1 << 26  # that the rows of a stream have, to be held: about 1 GB, and as much again for parts of them
MOST_PASSES, MOST_ROWS = 100, 100_000  # passes over few rows, and the rows after which none begins
COUNTS = (1, 2, 5, 10, 20, 50)  # passes that are compared, beside the most
PARTS = 5  # of the rows, each held out once
NOT_DEALT = PARTS  # the part of rows of weight 0, which is never held out
FEWEST = 2 * PARTS  # rows that are dealt; of classes all are, whose certainty may be luck
DOUBTED, SURE = 10.0, 50.0  # rows of which one may be of another class, for all that they say; and rows without such a doubt

Pieces = Iterator[tuple[slice, Source]]


class FewRows(NamedTuple):
    """Checked rows that are held in memory, of so many columns, with their targets (n, K) and weights.

    ``pieces`` gives the rows of some places, centred where the scale is ``standard``.
    """

    columns: int
    y: np.ndarray
    weights: np.ndarray
    pieces: Callable[[np.ndarray], Pieces]

    @property
    def n(self) -> int:
        """How many."""
        return len(self.weights)


class Chosen(NamedTuple):
    """What the rows are worth: ``passes``, and the calibration slope of the model, None where it has its own or none.

    ``held_loss``: of the rows held out after so many passes, None where none were.
    """

    passes: int
    slope: float | None = None
    held_loss: float | None = None


def most_passes(rows: int) -> int:
    """The most passes over so many rows: ``MOST_PASSES``, of which none begins after ``MOST_ROWS``; one of many rows."""
    return 1 if rows >= ENOUGH else min(MOST_PASSES, ceil(MOST_ROWS / max(1, rows)))


def rows_of_source(source: Source, y: np.ndarray, weights: np.ndarray) -> FewRows:
    """The rows of arrays."""
    return FewRows(source.width, y, weights, lambda which: iter([(slice(None), source.take(which))]))


def few_blocks(blocks: Iterable[Block]) -> list[Block] | None:
    """The blocks without rows that are held out; None, and no more are read, once they have ``ENOUGH`` rows, or more than
    ``MOST_ENTRIES`` entries."""
    found: list[Block] = []
    rows = entries = 0
    for block in map(drop_held, blocks):
        found.append(block)
        rows, entries = rows + block.n, entries + len(block.rows.indices)
        if rows >= ENOUGH or entries > MOST_ENTRIES:
            return None
    return found


def rows_of_blocks(blocks: Sequence[Block], intake: Intake) -> FewRows:
    """The rows of a stream."""
    block = joined(blocks)
    pieces = partial(_pieces_of_block, block, intake)
    return FewRows(max(1, block.size), intake.targets(block).learned, block.importance, pieces)


def _pieces_of_block(block: Block, intake: Intake, which: np.ndarray) -> Pieces:
    return intake.sources(intake.check(block.take(which)))


def order_of(draw: np.random.Generator, shuffle: bool | str, n: int) -> np.ndarray | None:
    """The order of n rows in one pass; None: as they stand."""
    if not shuffle:
        return None
    return draw.integers(n, size=n) if shuffle == "replacement" else draw.permutation(n)


def choose_passes(learner: Learner, rows: FewRows, shuffle: bool | str) -> Chosen:
    """How many passes of such a learner, which has learned nothing, are best for other rows."""
    return choose_shared_passes([learner], rows, shuffle)[0]


def choose_shared_passes(learners: Sequence[Learner], rows: FewRows, shuffle: bool | str) -> list[Chosen]:
    """How many passes of such learners, which differ in their penalty and have learned nothing, are best for other rows: those
    of the learner with the smallest loss. Orders are always the same ones, whatever the model draws.

    Rows that are too few to be dealt get the most passes. So does a learner whose steps follow from the number of all of them.
    Rows without weight teach nothing, and get one.
    """
    learner = learners[0]
    most, columns = most_passes(rows.n), max(learner.size, rows.columns)
    if not np.any(rows.weights):
        return [Chosen(1)] * len(learners)
    fewest = 2 if _tells_chances(learner) else FEWEST
    if most == 1 or np.count_nonzero(rows.weights) < fewest or _follows_total(learner, columns):
        return [Chosen(most)] * len(learners)
    counts = [count for count in COUNTS if count < most] + [most]
    parts = _deal(rows)
    losses, slopes = zip(*(pair for one in learners for pair in _held_out(one, rows, parts, counts, shuffle)), strict=True)
    sums = _in_units(learner.loss, np.array(losses))
    finite = np.where(np.isfinite(sums.sum(axis=1)), sums.sum(axis=1), inf)
    first = int(np.argmin(finite)) // len(counts) * len(counts)  # of the learner with the smallest loss
    best = _most_among_best(sums[first : first + len(counts)])
    if best is None:
        return [Chosen(1)] * len(learners)
    each = slice(best, None, len(counts))
    return [Chosen(counts[best], slope, loss) for slope, loss in zip(slopes[each], finite[each].tolist(), strict=True)]


def _held_out(
    learner: Learner, rows: FewRows, parts: np.ndarray, counts: list[int], shuffle: bool | str
) -> Iterator[tuple[np.ndarray, float | None]]:
    """For each of ``counts`` passes the losses of the rows, held out a part at a time, and the slope of their scores."""
    scores = np.full((len(counts), *rows.y.shape), np.nan)
    draw, columns = np.random.default_rng(0), max(learner.size, rows.columns)
    learned = (rows.n - np.bincount(parts, minlength=PARTS)[:PARTS]).tolist()
    orders = [[order_of(draw, shuffle, n) for _ in range(counts[-1])] for n in learned]
    dealt = parts != NOT_DEALT

    def score_part(part: int, wanted: Callable[[], bool]) -> None:
        passes, held = takewhile(lambda _: wanted(), orders[part]), parts == part
        with suppress(DivergenceError):
            if np.any(held):
                _score_part(_unlearned(learner, columns), rows, held, counts, passes, scores)

    _for_each_part(score_part, min(learner.threads, PARTS))
    return (_judge(learner, of_count[dealt], rows.y[dealt], rows.weights[dealt], parts[dealt]) for of_count in scores)


def _tells_chances(learner: Learner) -> bool:
    """Whether its scores are judged as probabilities of classes."""
    return isinstance(learner.loss, (Logistic, Softmax))


def _for_each_part(task: Callable[[int, Callable[[], bool]], None], threads: int) -> None:
    """Do a task for each part, on several threads. It is told whether it is still wanted: not after an error, or Ctrl-C."""
    if threads == 1:
        for part in range(PARTS):
            task(part, lambda: True)
        return
    stopped = Event()

    def do(part: int) -> None:
        try:
            task(part, lambda: not stopped.is_set())
        except BaseException:
            stopped.set()
            raise

    with Pool(threads) as pool:
        try:
            pool.map(do, range(PARTS))
        finally:
            stopped.set()


def _most_among_best(losses: np.ndarray) -> int | None:
    """The last count whose losses (counts, parts) are not above the smallest by more than the standard error of the difference;
    None where none is finite."""
    sums = losses.sum(axis=1)
    apart = losses[np.isfinite(sums)] - losses[np.argmin(sums)]
    near = apart.mean(axis=1) <= apart.std(axis=1, ddof=1) / sqrt(PARTS)
    return int(np.flatnonzero(np.isfinite(sums))[near][-1]) if len(apart) else None


def _follows_total(learner: Learner, columns: int) -> bool:
    """Whether its steps or its average follow from the number of rows that it will learn."""
    try:
        _unlearned(learner, columns, total=None)
    except ValueError:
        return True
    return False


def _unlearned(learner: Learner, columns: int, **others: Any) -> Learner:
    """A learner of the same settings, but for ``others``, that has learned nothing and takes rows that are centred already."""
    settings = stored_learner.settings(stored_learner.header_of(learner)) | others
    if learner.centres_rows:
        settings["scale"] = "none"
    return Learner(**learner.spec, **settings, n_features=columns)


def _deal(rows: FewRows) -> np.ndarray:
    """The part of each row, of all targets about equally many: the rows of a class, or numbers side by side, go to different
    parts, and the copies of a row to one. Copies that no part has room for are dealt as other rows are."""
    dealt = np.flatnonzero(rows.weights)
    y, n = rows.y[dealt], len(dealt)
    marks = np.empty(n, np.uint64)
    for which, source in rows.pieces(dealt):
        marks[which] = np.concatenate([marks_of(block) for _, block in source.blocks()])
    drawn = np.random.default_rng(0).permutation(n)
    by_target = drawn[np.lexsort(y[drawn].T)]
    _, first, kinds = np.unique(kinds_of(marks, y, max(1, n // PARTS))[by_target], return_index=True, return_inverse=True)
    turns = np.argsort(np.argsort(first))  # of the kinds, as they come
    parts = np.full(rows.n, NOT_DEALT, dtype=np.intp)
    parts[dealt[by_target]] = turns[kinds] % PARTS
    return parts


def _score_part(
    learner: Learner,
    rows: FewRows,
    held: np.ndarray,
    counts: list[int],
    orders: Iterable[np.ndarray | None],
    scores: np.ndarray,
) -> None:
    """Train on the rows that are not ``held``, each pass in its own of ``orders``, and score those that are after each of
    ``counts`` passes, into ``scores``."""
    learned, judged = np.flatnonzero(~held), np.flatnonzero(held)
    for made, places in enumerate(orders, start=1):
        _learn(learner, rows, learned if places is None else learned[places])
        if made == 1:
            learner.end_first_pass()
        if made in counts:
            _score(learner, rows, judged, scores[counts.index(made)])


def _learn(learner: Learner, rows: FewRows, which: np.ndarray) -> None:
    y, weights = np.asfortranarray(rows.y[which]), rows.weights[which]
    for part, source in rows.pieces(which):
        learner.learn_checked(source, np.asfortranarray(y[part]), weights[part])


def _score(learner: Learner, rows: FewRows, which: np.ndarray, scores: np.ndarray) -> None:
    for part, source in rows.pieces(which):
        scores[which[part]] = learner.predict(source).reshape(source.n, -1)


# --- losses ----------------------------------------------------------------------------------------------------------


def _judge(
    learner: Learner, scores: np.ndarray, y: np.ndarray, weights: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, float | None]:
    """The losses (PARTS, K) of scores (n, K), in equal shares where outputs have one loss; and the slope of the scores."""
    loss, outputs, slope = learner.loss, y.shape[1], None
    if not np.all(np.isfinite(scores)):
        return np.full((PARTS, outputs), inf), None
    if not _tells_chances(learner):
        which = [parts == part for part in range(PARTS)]
        columns = [slice(k, k + 1) for k in range(outputs)]
        sums = [[sum_of_losses(loss, scores[p, k], y[p, k], weights[p]) for k in columns] for p in which]
        return np.array(sums), None
    if learner.calibrates:
        slope = _best_slope(lambda a: float(_doubted(loss, a * scores, y, weights).sum()) / np.mean(weights))
    found = _doubted(loss, scores if slope is None else slope * scores, y, weights)
    return np.tile(np.bincount(parts, found, PARTS)[:, None] / outputs, outputs), slope


def _doubted(loss: Any, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The log losses of n rows, and of those that have their scores and other classes, each in its share."""
    own, others = log_losses(loss, scores, y, weights)
    n = len(y)
    return own if n >= SURE else own + min((DOUBTED / n - DOUBTED / SURE) ** 2, n / 2.0) * others / n


def log_losses(loss: Any, scores: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-s log p of each row's own class (n,), and its mean over the other classes (n,), for scores (n, K), targets (n, K) and
    weights s."""
    if y.shape[1] == 1:
        m = y[:, 0] * scores[:, 0]
        return weights * np.logaddexp(0.0, -m), weights * np.logaddexp(0.0, m)
    sizes = scores if isinstance(loss, Softmax) else -np.logaddexp(0.0, -scores)
    own = np.take_along_axis(sizes, np.argmax(y, axis=1)[:, None], axis=1)[:, 0]
    total = np.logaddexp.reduce(sizes, axis=1)
    return weights * (total - own), weights * (total - (sizes.sum(axis=1) - own) / (y.shape[1] - 1))


def _best_slope(loss_at: Callable[[float], float]) -> float:
    """The slope a that makes loss + max(0, log a)^2 smallest."""
    from scipy.optimize import minimize_scalar  # which takes a tenth of a second to import

    bounds = log(SMALLEST), log(LARGEST)
    found = minimize_scalar(lambda size: loss_at(exp(size)) + max(0.0, size) ** 2, bounds=bounds, method="bounded")
    return exp(float(found.x))


def _in_units(loss: Any, losses: np.ndarray) -> np.ndarray:
    """The losses (counts, parts) of all outputs of (counts, parts, K). Outputs of numbers have units of their own: theirs are
    relative to the smallest."""
    if loss_labels(loss) != "signs":
        smallest = losses.sum(axis=1).min(axis=0)
        losses = losses / np.where((smallest > 0.0) & np.isfinite(smallest), smallest, 1.0)
    return losses.sum(axis=2)
