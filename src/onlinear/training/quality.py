"""Is a model any good? The best constant beside it, and plain warnings where it is worse, or the rows cannot teach it.

The best constant is the score c with the smallest  sum_i s_i l(c, y_i)  in hindsight: what Vowpal Wabbit prints as the best
constant's loss. It needs the targets' distribution. Of classes that is one sum per class. Of numbers it is the first 1,000
targets as they are, and the others in bins of their distance from the median of those. A bin keeps its weight, mean and
variance, and counts as two points one deviation from its mean. So the mean's squared loss is exact; other losses have the error
of bins 1/64 as wide as they are far from that median. Sums run in row order: blocks do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import bind_loss, code_for
from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.classes import OneAgainstRest, one_against_rest, rows_at_once
from onlinear.learner.loss_sums import LossSum, Total, add_losses, loss_weights, mean, mean_loss
from onlinear.losses import Squared, factor_of, is_joint, loss_labels
from onlinear.training.metrics import BINS, bins, unit_of

ENOUGH = 1000  # rows before which nothing is said of a model's quality, unless it ran away
FAR = 100.0  # times the reach of the targets: a model of numbers that errs so much ran away
FEW = 10_000  # rows for which more passes cost little
LEAST = 100  # rows before which a falling loss says nothing
WORSE = 0.01  # of the constant's loss: so much worse is worse
STILL = 0.98, 1.001  # of the loss of scores of 0: a model of classes between them has hardly left its beginning
FALLING = 0.8  # of the loss before: so much smaller is still falling
SATURATED = 0.01  # of the rows that the best constant leaves on the other side: so few is none
CONTRARY = 20  # rows that the best constant leaves on the other side, before their lack says anything
STRAIGHT = 50  # moves of the first targets, all up or all down, which shuffled ones never make
CHANCE = 1e-3  # of so many rows of one class at the start, if they were shuffled
MARKS = 3
SAMPLE = 4096  # rows of arrays that are scored
SPREAD = 3  # digits of ``bins`` that targets do not need
NARROW = 2.0**20  # distances of targets that ``bins`` tell apart as they are, up to this and from its inverse on
WIDEST = 1e150  # a distance whose square is still a number
UNITLESS = ("ftrl", "adagrad-rda", "adagrad-comid")  # solvers whose steps have a size of their own, whatever the targets
RIDGES, SMALLEST = ("rls", "2sgd"), 1e-6  # solvers whose ridge holds the intercept too, and a ridge that hardly does
SIGNS, COUNTS = "signs", "counts"


class QualityWarning(UserWarning):
    """A model was trained, but there is reason to doubt that it is of use."""


class Constant(NamedTuple):
    """What the best constant achieves on some rows."""

    loss: float
    error: float  # share of rows outside the largest class, or mean absolute error


class Points(NamedTuple):
    """Targets with weights, per output; and the weights of the classes, where they are classes."""

    targets: list[np.ndarray]
    weights: list[np.ndarray]
    classes: np.ndarray | None


def of_classes(totals: np.ndarray, outputs: int, negative: float) -> Points:
    """The targets of rows of classes, from the weight of each class."""
    own = totals if outputs > 1 else totals[1:]
    targets = [np.array([negative, 1.0])] * outputs
    return Points(targets, [np.array([totals.sum() - one, one]) for one in own.tolist()], totals)


def of_numbers(targets: np.ndarray, weights: np.ndarray) -> Points:
    """The targets of rows of numbers."""
    return Points([targets], [weights], None)


def best_constant(loss: Any, points: Points) -> Constant | None:
    """The best constant score for each output, and what it achieves; None without rows of any weight."""
    weight = float(points.weights[0].sum())
    if not weight > 0.0:
        return None
    if is_joint(loss) and points.classes is not None:
        shares = points.classes[points.classes > 0.0] / weight
        return Constant(0.0 - factor_of(loss) * float(np.sum(shares * np.log(shares))), 1.0 - float(shares.max()))
    total = 0.0
    for targets, weights in zip(points.targets, points.weights, strict=True):
        used = weights > 0.0
        c, least = _least(loss, targets[used], weights[used])
        total += least
    if points.classes is not None:
        error = 1.0 - float(points.classes.max()) / weight
    else:
        mean = getattr(loss, "mean", None)
        guess = c if mean is None else float(mean(np.array([c]))[0])
        error = float(np.sum(points.weights[0] * np.abs(points.targets[0] - guess))) / weight
    return Constant(total / weight, error) if np.isfinite(total) else None


def _least(loss: Any, y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The c with the smallest sum of s l(c, y), and that sum: of squares the mean, else by golden section, as losses are
    convex."""
    raw, y, s = bind_loss(loss, implicit=False), np.ascontiguousarray(y), loss_weights(loss, weights)
    scores, total = np.empty(len(y)), np.empty(2)
    add = code_for(add_losses, raw, scores, y, s, total)

    def at(c: float) -> float:
        scores[:], total[:] = c, 0.0
        add(raw, scores, y, s, total)
        return float(total.sum())

    if isinstance(loss, Squared):
        mean = float(np.average(y, weights=weights))
        return mean, at(mean)
    low, high = _bracket(loss, at, y, weights)
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = at(a), at(b)
    for _ in range(80):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = at(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = at(b)
    found = min((at(c), c) for c in (low, a, b, high))
    return found[1], found[0]


def _bracket(loss: Any, at: Any, y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Two scores with the best one between them."""
    kind = loss_labels(loss)
    if kind == SIGNS:
        reach, least = 1.0, min(at(-1.0), at(1.0))
        while reach < 1024.0 and (further := min(at(-2.0 * reach), at(2.0 * reach))) < least:
            reach, least = 2.0 * reach, further
        return -2.0 * reach, 2.0 * reach
    if kind == COUNTS:
        with np.errstate(over="ignore"):
            mean = max(float(np.average(y, weights=weights)), np.finfo(np.float64).tiny)
        return min(-40.0, float(np.log(mean)) - 5.0) if y.any() else -40.0, float(np.log(max(1.0, y.max())))
    return float(y.min()), float(y.max())


class TargetCounts:
    """The distribution of the targets so far, in bounded memory: as sums, so that what came since a mark is a difference."""

    def __init__(self, classes: int | None) -> None:
        self.classes = classes
        self.rows = 0
        self.first = np.zeros((2, 0 if classes is not None else ENOUGH))  # numbers: targets and weights of the first rows
        self.table = np.zeros((2, classes) if classes is not None else (3, (BINS >> SPREAD) + 1))

    def add(self, truth: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows: places of their classes, or numbers."""
        if self.classes is not None:
            np.add.at(self.table[0], truth, weights)
            self.table[1] += np.bincount(truth, minlength=self.classes)
        else:
            room = max(0, min(len(truth), ENOUGH - self.rows))
            self.first[:, self.rows : self.rows + room] = truth[:room], weights[:room]
            if room < len(truth):
                self._add_numbers(truth[room:], weights[room:])
        self.rows += len(truth)

    def _add_numbers(self, y: np.ndarray, weights: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            far = np.clip(y - self._origin, -WIDEST, WIDEST)
            places = bins(np.clip(far / self._unit, -WIDEST, WIDEST)) >> SPREAD
        for row, values in zip(self.table, (weights, weights * far, weights * far * far), strict=True):
            np.add.at(row, places, values)

    @property
    def _origin(self) -> float:
        return float(np.median(self.first[0]))

    @property
    def _unit(self) -> float:
        """A power of two near the distances of the first targets from their median, where ``bins`` has too few for distances of
        that size; else 1."""
        with np.errstate(over="ignore"):
            sizes = np.abs(self.first[0] - self._origin)
        size = float(np.median(sizes[sizes > 0.0])) if sizes.any() else 1.0
        return 1.0 if 1.0 / NARROW <= size <= NARROW else unit_of(min(size, WIDEST))

    def points(self, outputs: int, negative: float, rows: int = 0, before: np.ndarray | None = None) -> Points:
        """The targets since a mark at ``rows``, when the table was ``before``."""
        table = self.table if before is None else self.table - before
        if self.classes is not None:
            return of_classes(table[0], outputs, negative)
        y, s = self.first[:, rows : self.rows]
        if self.rows > ENOUGH:
            weight, first, second = table[:, table[0] > 0.0]
            mean = first / weight
            spread = np.sqrt(np.maximum(0.0, second / weight - mean * mean))
            y = np.concatenate([y, self._origin + mean - spread, self._origin + mean + spread])
            s = np.concatenate([s, 0.5 * weight, 0.5 * weight])
        return of_numbers(y, s)


class Mark(NamedTuple):
    """Sums at a moment of a run."""

    rows: int
    loss: Total
    weight: float
    below: float
    above: float
    table: np.ndarray

    @classmethod
    def of_numbers(cls, numbers: list[Any], table: np.ndarray) -> Mark:
        """What ``numbers`` gave, and a table; a mark of before what rounding leaves out was kept has five."""
        rows, loss, weight, below, above, *rest = numbers
        return cls(rows, Total(loss, *rest), weight, below, above, table)

    @property
    def numbers(self) -> list[Any]:
        """The numbers of a checkpoint."""
        return [self.rows, self.loss.value, self.weight, self.below, self.above, self.loss.rest]

    def mean_since(self, before: Mark) -> float:
        """The mean loss of the rows since an earlier one, which have weight."""
        return self.loss.since(before.loss) / (self.weight - before.weight)


def _check(state: dict[str, Any], classes: int | None) -> None:
    """Raise ModelFileError for a state that no run gave."""
    names = {"rows", "first class", "first rows", "whole", "marks"}
    trust.must(set(state) == names, f"a quality of {', '.join(sorted(map(str, state)))}")
    trust.must(trust.count(state["rows"]) and trust.count(state["first rows"], 0, state["rows"]), "rows of a quality")
    trust.must(trust.count(state["first class"], -1, (classes or 1) - 1), "a first class that is none")
    trust.must(type(state["whole"]) is bool, "a quality that is neither whole nor not")
    marks = state["marks"]
    trust.must(isinstance(marks, list) and len(marks) <= MARKS, "marks of a quality")
    for mark in marks:
        numbers = isinstance(mark, list) and len(mark) in (5, 6) and all(map(trust.real, mark))
        trust.must(numbers and trust.count(mark[0], 0, state["rows"]), "a mark of a quality")


class Quality:
    """What a run learns of its model's quality while rows go by, and what there is to say at its end.

    ``negative``: the target of rows of other classes. Scores are those of the model that is written, each before its row was
    trained on. Marks are set where the row count has doubled; judgements are about the rows since the last mark but one (a
    half to three quarters of all), so the first rows, of which no model knows anything, count for none.
    """

    def __init__(self, learner: Learner, classes: int | None, negative: float) -> None:
        self.learner, self.negative = learner, negative
        self.targets = TargetCounts(classes)
        self.sides = np.zeros(2)  # weight of the rows whose target is out of reach of the slope: below the score, above it
        self.marks: list[Mark] = []
        self.first_class, self.first_rows, self.whole = -1, 0, True  # the class of the first rows, and how many they are

    def add(self, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows: scores (K, n), places of their classes or numbers, weights."""
        if not len(truth):
            return
        if self.targets.classes is not None:
            self._add_run(truth)
        elif (bend := bend_of(self.learner.loss)) is not None:
            over = scores[0] - truth
            for side, far in enumerate((over > bend, over < -bend)):
                self.sides[side] = np.cumsum(np.append(self.sides[side], weights * far))[-1]
        self.targets.add(truth, weights)

    def _add_run(self, places: np.ndarray) -> None:
        if self.first_class < 0:
            self.first_class = int(places[0])
        if self.first_rows == self.targets.rows:
            others = places != self.first_class
            self.first_rows += int(np.argmax(others)) if others.any() else len(places)

    def mark(self, rows: int, loss: Total, weight: float) -> None:
        """The row count has doubled: ``loss`` and ``weight`` are the sums so far."""
        self.marks = [*self.marks, self._mark_at(rows, loss, weight)][-MARKS:]

    def _mark_at(self, rows: int, loss: Total, weight: float) -> Mark:
        below, above = self.sides.tolist()
        return Mark(rows, loss, weight, below, above, self.targets.table.copy())

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What fits JSON."""
        marks = [mark.numbers for mark in self.marks]
        return {
            "rows": self.targets.rows,
            "first class": self.first_class,
            "first rows": self.first_rows,
            "whole": self.whole,
            "marks": marks,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The sums, of bins that are used."""
        targets = self.targets
        used = np.flatnonzero(targets.table.any(axis=0))
        tables = np.stack([targets.table, *(mark.table for mark in self.marks)])
        first = targets.first[:, : min(targets.rows, ENOUGH)]
        return {"sides": self.sides.copy(), "first": first.copy(), "used": used, "tables": tables[:, :, used]}

    def restore(self, state: dict[str, Any] | None, arrays: dict[str, np.ndarray]) -> None:
        """Take what ``state`` and ``arrays`` gave. A checkpoint of 0.1 holds neither: the first rows are then unknown."""
        if state is None:
            self.whole = False
            return
        targets = self.targets
        _check(state, targets.classes)
        targets.rows, self.first_class = state["rows"], state["first class"]
        self.first_rows, self.whole = state["first rows"], state["whole"]
        known = min(targets.rows, targets.first.shape[1])
        targets.first[:, :known] = trust.array(arrays, "first", np.float64, 2, known)
        self.sides[:] = trust.array(arrays, "sides", np.float64, 2)
        measures, bins_ = targets.table.shape
        used = trust.array(arrays, "used", np.int64, None)
        trust.must(trust.ascending(used, bins_), f"bins of targets that do not ascend below {bins_}")
        tables = np.zeros((1 + len(state["marks"]), measures, bins_))
        tables[:, :, used] = trust.array(arrays, "tables", np.float64, len(tables), measures, len(used))
        targets.table = tables[0]
        self.marks = [Mark.of_numbers(numbers, table) for numbers, table in zip(state["marks"], tables[1:], strict=True)]

    # --- what there is to say ----------------------------------------------------------------------------------------

    def constant(self, since: Mark | None = None) -> Constant | None:
        """The best constant for the rows so far, or for those since a mark."""
        found = (0, None) if since is None else (since.rows, since.table)
        return best_constant(self.learner.loss, self.targets.points(self.learner.n_outputs, self.negative, *found))

    def doubts(self, rows: int, loss: Total, weight: float, advice: Advice, passes: int | None) -> list[str]:
        """Why the model may be of no use, each in one sentence or two; ``loss`` and ``weight`` are the sums so far. Python says
        of few rows what ``doubts_of_arrays`` says. ``passes``: None where rows cannot be learned more often."""
        since = self.marks[-2] if len(self.marks) > 1 else Mark(0, Total(), 0.0, 0.0, 0.0, np.zeros_like(self.targets.table))
        end = self._mark_at(rows, loss, weight)
        silent = rows < ENOUGH and not advice.command
        alone = self._one_class(advice)
        found = [] if silent else [alone, self._sorted(advice)]
        if end.weight > since.weight and rows >= ENOUGH:
            # The best constant of one class has no loss, which says nothing of a model.
            found += [self._out_of_reach(since, end, rows, advice), "" if alone else self._worse(since, end, advice)]
        elif end.weight > since.weight and self._ran_away(since, end):
            found.append(self._worse(since, end, advice))
        doubts = [text for text in found if text]
        more = "" if doubts or silent else self._falling(end, passes, advice)  # more passes help none of these
        return [*doubts, more] if more else doubts

    def one_class(self, advice: Advice) -> list[str]:
        """That all rows are of one class; nothing where they are not, and in Python of few rows."""
        text = "" if self.targets.rows < ENOUGH and not advice.command else self._one_class(advice)
        return [text] if text else []

    def _falling(self, end: Mark, passes: int | None, advice: Advice) -> str:
        if passes is None or len(self.marks) < MARKS:
            return ""
        first, middle, _ = self.marks
        if not (middle.weight > first.weight and end.weight > middle.weight):
            return ""
        return falling(end.rows, passes, middle.mean_since(first), end.mean_since(middle), advice)

    def _ran_away(self, since: Mark, end: Mark) -> bool:
        """Whether few rows lost more than rows do of which every score is off by far more than the targets reach."""
        loss = self.learner.loss
        if self.targets.classes is not None or has_unit(loss):
            return False
        far = FAR * reach_of(self.targets.first[:1, : self.targets.rows].T)
        return not end.mean_since(since) <= mean_loss(loss, far[None], np.zeros((1, 1)), np.ones(1))

    def _worse(self, since: Mark, end: Mark, advice: Advice) -> str:
        constants = self.constant(since), self.constant()
        if None in constants:
            return ""
        # Of a sorted file the last rows are of one class, which a constant of their own would know.
        constant = max(found.loss for found in constants if found is not None)
        return worse(self.learner.loss, end.mean_since(since), constant, start_of(self.learner, self.negative), advice)

    def _out_of_reach(self, since: Mark, end: Mark, rows: int, advice: Advice) -> str:
        weight = end.weight - since.weight
        below, above = (end.below - since.below) / weight, (end.above - since.above) / weight
        return out_of_reach(self.learner.loss, below, above, rows - since.rows, advice)

    def _one_class(self, advice: Advice) -> str:
        if self.targets.classes is None or self.targets.rows < 2 or not self.whole:
            return ""
        if self.first_rows < self.targets.rows:
            return weighed_alone(self.targets.table[0], advice)
        return f"All {self.targets.rows:,} rows are of class {advice.name(self.first_class)}: there is nothing to tell apart."

    def _sorted(self, advice: Advice) -> str:
        if not self.whole:
            return ""
        if self.targets.classes is None:
            return sorted_targets(self.targets.first[0, : self.targets.rows], advice)
        share = float(self.targets.table[1][self.first_class]) / max(1, self.targets.rows)
        return sorted_rows(self.first_rows, share, self.first_class, advice)


class Advice(NamedTuple):
    """How to say what to do, in the words of the command or of Python."""

    command: bool
    solver: str  # as text; empty where it is none
    averaged: bool
    names: tuple[str, ...]  # of the classes
    pass_rows: int  # rows of one pass
    continues: bool  # whether the command continues a model, whose passes are named

    @classmethod
    def of(cls, learner: Learner, names: Iterable[str], pass_rows: int, *, command: bool, continues: bool = False) -> Advice:
        """What is advised on a learner of classes of these names."""
        solver, averaged = learner.spec["solver"], learner.average is not None and not learner.racing
        return cls(command, solver if isinstance(solver, str) else "", averaged, tuple(names), pass_rows, continues)

    def name(self, place: int) -> str:
        """A class."""
        return self.names[place] if place < len(self.names) else str(place)

    def steps(self, times: float) -> str:
        """Other steps, as they are asked for."""
        head, found, tail = self.solver.partition("eta=")
        value, comma, rest = tail.partition(",")
        try:
            spec = f"{head}eta={float(value) * times:g}{comma}{rest}" if found else f"fiol,eta={times:g}"
        except ValueError:
            spec = f"fiol,eta={times:g}"
        return f"{'smaller' if times < 1.0 else 'larger'} steps ({self._option(spec)})"

    def ridge(self) -> str | None:
        """A smaller ridge, where the solver has one that holds the intercept too."""
        name, *settings = self.solver.split(",")
        if name not in RIDGES:
            return None
        kept = [text for text in settings if not text.startswith("delta=")]
        spec = ",".join([name, f"delta={SMALLEST:g}", *kept])
        return f"a smaller ridge ({self._option(spec)}), or a target and columns near 0"

    def unit(self) -> str | None:
        """The solver whose steps follow the targets, where the steps do not."""
        if self.solver.partition(",")[0] not in UNITLESS:
            return None
        option = self._option("implicit-ftrl")
        return f"a solver whose steps follow the targets ({option}), or targets near 0 of a deviation near 1"

    def _option(self, solver: str) -> str:
        """A solver, as it is asked for."""
        return f"--solver {solver}" if self.command else f'solver="{solver}"'

    def optimum(self) -> str:
        """The minimum of the objective."""
        options = "--penalty l2=1e-4 --tol 1e-3" if self.command else 'penalty="l2=1e-4", tol=1e-3'
        return f"the optimum ({options})"

    def no_average(self) -> str:
        """A model without an average."""
        return "--average none" if self.command else 'average="none"'

    def more_passes(self) -> str:
        """As many passes as few rows are worth."""
        named = "--passes 2" if self.continues else "--passes auto"
        return named if self.command else 'passes="auto"'

    def shuffle(self) -> str:
        """The rows in another order."""
        if self.command:
            return f"--shuffle-rows {self.pass_rows}"
        return f"streams.Shuffled(stream, {self.pass_rows}), or shuffle=True for arrays"


class Trained(NamedTuple):
    """Rows in memory that a learner was trained on, as it takes them, in the order of the first pass."""

    rows: Any
    y: np.ndarray | OneAgainstRest  # (n, K)
    weights: np.ndarray
    classes: np.ndarray | None  # each row's place among the classes; None: numbers
    ordered: bool  # whether they were trained on in the order in which they stand


def doubts_of_arrays(learner: Learner, trained: Trained, count: int, negative: float, advice: Advice) -> list[str]:
    """Why a model trained on arrays of ``count`` classes may be of no use: its loss on at most 4,096 rows, evenly spaced, and
    as many of the classes, or of the other targets, that these lack."""
    n = len(trained.y)
    if n < ENOUGH and (trained.classes is not None or has_unit(learner.loss)):
        return []
    which = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp)
    s, whole = trained.weights[which], True
    groups = _apart(trained.y[:], which) if trained.classes is None else trained.classes
    if groups is not None and len(which) < n:
        which, s, whole = _with_all_classes(groups, trained.weights, which, max(count, 2))
    losses, weight = LossSum(learner.loss), float(s.sum())
    if not weight > 0.0:
        return []
    most = len(which) if trained.classes is None else rows_at_once(learner.n_outputs)  # numbers are in memory anyway
    for first in range(0, len(which), most):
        part = which[first : first + most]
        y, scores = trained.y[part], learner.predict(trained.rows(part)).reshape(len(part), -1)
        losses.add(scores, y, s[first : first + most])
    if n < ENOUGH and not ran_away(scores, y, s):
        return []
    if trained.classes is None:
        points = Points(list(y.T), [s] * y.shape[1], None)
    else:
        points = of_classes(np.bincount(trained.classes[which], s, count), learner.n_outputs, negative)
    constant = best_constant(learner.loss, points) if whole else None
    found = []
    if trained.classes is not None and trained.ordered:
        others = trained.classes != trained.classes[0]
        first = int(np.argmax(others)) if others.any() else n
        found.append(sorted_rows(first, 1.0 - float(np.mean(others)), int(trained.classes[0]), advice))
    elif trained.classes is None and y.shape[1] == 1:
        if trained.ordered:
            found.append(sorted_targets(trained.y[:ENOUGH][:, 0], advice))
        if (bend := bend_of(learner.loss)) is not None:
            over = scores[:, 0] - y[:, 0]
            below, above = (float(np.sum(s[far])) / weight for far in (over > bend, over < -bend))
            found.append(out_of_reach(learner.loss, below, above, len(which), advice))
    alone = "" if trained.classes is None else weighed_alone(np.bincount(trained.classes, trained.weights, count), advice)
    if alone:
        found.append(alone)
    elif constant is not None:
        start = start_of(learner, negative)
        found.append(worse(learner.loss, mean(losses.value, weight), constant.loss, start, advice))
    return [text for text in found if text]


def _apart(targets: np.ndarray, which: np.ndarray) -> np.ndarray | None:
    """Where some rows have one target alone: 1 for each row of another, 0 for those of it; else None."""
    first = targets[which[0]]
    return None if np.any(targets[which] != first) else np.any(targets != first, axis=1).astype(np.intp)


def _with_all_classes(
    classes: np.ndarray, weights: np.ndarray, which: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Some rows, with rows of the classes that they lack; their weights, by which each class counts as it does among all rows
    where one was lacking; and whether none is lacking now. Without a rare class any model would be worse than a constant."""
    totals, held = np.bincount(classes, weights, count), np.bincount(classes[which], weights[which], count)
    if not np.any(lacking := (totals > 0.0) & (held == 0.0)):
        return which, weights[which], True
    others = np.flatnonzero(lacking[classes] & (weights > 0.0))
    which = np.append(which, others[np.linspace(0, len(others) - 1, min(len(others), SAMPLE)).astype(np.intp)])
    held = np.bincount(classes[which], weights[which], count)
    as_many = np.divide(totals, held, out=np.zeros(count), where=held > 0.0)
    return which, weights[which] * as_many[classes[which]], bool(np.all(held[lacking] > 0.0))


def ran_away(scores: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the scores of an output are off by far more than its targets reach, 0 included, where models begin."""
    used = weights > 0.0
    with np.errstate(over="ignore"):
        off = np.average(np.abs(scores[used] - targets[used]), axis=0, weights=weights[used])
    return not bool(np.all(off <= FAR * reach_of(targets[used])))


def reach_of(targets: np.ndarray) -> np.ndarray:
    """The range of each output's targets and 0."""
    found: np.ndarray = np.maximum(targets.max(axis=0), 0.0) - np.minimum(targets.min(axis=0), 0.0)
    return found


def has_unit(loss: Any) -> bool:
    """Whether the steps of a loss have a size of their own, which is far too large for small targets: they are bounded, or the
    targets are classes or counts."""
    return loss_labels(loss) != "real" or bend_of(loss) is not None


def start_of(learner: Learner, negative: float) -> float | None:
    """The loss of scores of 0, where models of classes begin; None for other targets, whose scores begin elsewhere."""
    if loss_labels(learner.loss) != SIGNS:
        return None
    y = one_against_rest(np.zeros(1, np.intp), learner.n_outputs, negative)
    return mean_loss(learner.loss, np.zeros(y.shape), y, np.ones(1))


def is_worse(loss: float, constant: float) -> bool:
    """Whether a loss is larger than the best constant's on the same rows, by more than luck."""
    return loss > constant + WORSE * abs(constant)


def worse(kind: Any, loss: float, constant: float, start: float | None, advice: Advice) -> str:
    """A word where a model's loss, of this kind, is larger than the best constant's on the same rows; ``start``: what
    ``start_of`` gives."""
    if not is_worse(loss, constant):
        return ""
    labels = loss_labels(kind)
    remedy = advice.ridge() or advice.steps(0.1)
    if labels == "real" and (other := advice.unit()) is not None:
        remedy = other
    elif start is not None and STILL[0] * start <= loss <= STILL[1] * start:
        remedy = advice.steps(100.0)
    elif advice.averaged:
        remedy = f"a model without an average ({advice.no_average()})"
    elif labels == COUNTS:  # neither smaller nor larger steps help all
        remedy = advice.optimum()
    return f"The model predicts worse than a constant (loss {loss:.4g}, constant {constant:.4g}). Try {remedy}."


def out_of_reach(loss: Any, below: float, above: float, rows: int, advice: Advice) -> str:
    """A word where nearly all targets are on one side of the scores, at the loss's steepest slope: steps are all of one size.

    ``below`` and ``above``: shares of the rows. The best constant leaves a share of 1 - q of the targets above it and q
    below; the mean slope is within 1 % of its bound where one of them is down to 1 % of that.
    """
    if bend_of(loss) is None:
        return ""
    q = float(getattr(loss, "q", 0.5))
    for side, share, other in (("above", above, q), ("below", below, 1.0 - q)):
        if share >= 1.0 - SATURATED * other and rows * other >= CONTRARY:
            steps = advice.steps(100.0)
            found = f"The targets are out of reach: {share:.1%} of them are {side} the predictions."
            return f"{found} Try {steps}, or scale the target."
    return ""


def weighed_alone(totals: np.ndarray, advice: Advice) -> str:
    """A word where one class alone has rows of a weight above 0; ``totals``: the weight of each class."""
    weighed = np.flatnonzero(totals > 0.0)
    if len(weighed) != 1:
        return ""
    return f"All rows of a weight above 0 are of class {advice.name(int(weighed[0]))}: there is nothing to tell apart."


def sorted_rows(count: int, share: float, place: int, advice: Advice) -> str:
    """A word where the first rows are of one class, which is no chance: ``share`` is that of their class in all rows."""
    if count < ENOUGH or not 0.0 < share < 1.0 or count * np.log(share) > np.log(CHANCE):
        return ""
    return (
        f"The first {count:,} rows are all of class {advice.name(place)}: is the file sorted? Shuffle it: {advice.shuffle()}."
    )


def sorted_targets(first: np.ndarray, advice: Advice) -> str:
    """A word where the first targets only rise, or only fall, which is no chance."""
    moves = np.sign(np.diff(first))
    if len(first) < ENOUGH or np.count_nonzero(moves) < STRAIGHT or abs(moves.sum()) < np.count_nonzero(moves):
        return ""
    how = "rise" if moves.sum() > 0.0 else "fall"
    return f"The first {len(first):,} targets only {how}: is the file sorted by them? Shuffle it: {advice.shuffle()}."


def falling(rows: int, passes: int, earlier: float, later: float, advice: Advice) -> str:
    """A word where the loss of few rows in one pass still fell: ``earlier`` and ``later`` are means of two stretches."""
    if passes > 1 or not LEAST <= rows < FEW or not earlier > 0.0 or not later < FALLING * earlier:
        return ""
    return f"The loss was still falling: more passes may help ({advice.more_passes()})."


def bend_of(loss: Any) -> float | None:
    """How far from the target the slope of a loss of numbers has its bound; None where it has none."""
    bend = getattr(loss, "bend", None)
    return None if bend is None else float(bend)
