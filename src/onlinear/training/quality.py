"""Is a model any good? Its loss beside that of the best constant, and doubts where it is worse, or the rows cannot teach it.

``Quality`` follows a run over a stream; ``doubts_of_arrays`` judges a model of rows in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.classes import OneAgainstRest, one_against_rest, rows_at_once
from onlinear.learner.loss_sums import LossSum, Total, mean, mean_loss
from onlinear.losses import SIGNS, bend_of, loss_labels
from onlinear.training.best_constant import KEPT, Constant, Points, TargetCounts, best_constant, of_classes
from onlinear.training.doubts import (
    ENOUGH,
    Advice,
    falling,
    out_of_reach,
    sorted_rows,
    sorted_targets,
    weighed_alone,
    worse,
)

FAR = 100.0  # times the reach of the targets: a model of numbers that errs so much ran away
MARKS = 3
SAMPLE = 4096  # rows of arrays that are scored


class QualityWarning(UserWarning):
    """A model was trained, but there is reason to doubt that it is of use."""


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
        first = targets.first[:, : min(targets.rows, KEPT)]
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
    numbers, few = trained.classes is None, len(trained.y) < ENOUGH
    if few and (not numbers or has_unit(learner.loss)):
        return []
    which, s, whole = _rows_to_judge(trained, count)
    weight = float(s.sum())
    if not weight > 0.0:
        return []
    loss, scores, y = _score(learner, trained, which, s)
    if few and not ran_away(scores, y, s):
        return []
    found = [_sorted_arrays(trained, advice)] if trained.ordered else []
    if numbers and y.shape[1] == 1:
        found.append(_reach_of_arrays(learner.loss, scores[:, 0] - y[:, 0], s, advice))
    if trained.classes is None:
        alone, points = "", Points(list(y.T), [s] * y.shape[1], None)
    else:
        alone = weighed_alone(np.bincount(trained.classes, trained.weights, count), advice)
        points = of_classes(np.bincount(trained.classes[which], s, count), learner.n_outputs, negative)
    if alone:
        found.append(alone)
    elif whole and (constant := best_constant(learner.loss, points)) is not None:
        found.append(worse(learner.loss, mean(loss, weight), constant.loss, start_of(learner, negative), advice))
    return [text for text in found if text]


def _rows_to_judge(trained: Trained, count: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """The places of the rows that are scored, what each counts, and whether no class or other target is lacking among them."""
    n = len(trained.y)
    which = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp)
    groups = _apart(trained.y[:], which) if trained.classes is None else trained.classes
    if groups is None or len(which) == n:
        return which, trained.weights[which], True
    return _with_all_classes(groups, trained.weights, which, max(count, 2))


def _score(learner: Learner, trained: Trained, which: np.ndarray, s: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of the losses of rows; and of numbers, which are in memory anyway, all scores and targets, (n, K)."""
    losses = LossSum(learner.loss)
    most = len(which) if trained.classes is None else rows_at_once(learner.n_outputs)
    for first in range(0, len(which), most):
        part = which[first : first + most]
        y, scores = trained.y[part], learner.predict(trained.rows(part)).reshape(len(part), -1)
        losses.add(scores, y, s[first : first + most])
    return losses.value, scores, y


def _sorted_arrays(trained: Trained, advice: Advice) -> str:
    """A word where the rows stand sorted by their classes, or by the only number that is their target."""
    if trained.classes is None:
        first_targets = trained.y[:ENOUGH]
        return sorted_targets(first_targets[:, 0], advice) if first_targets.shape[1] == 1 else ""
    others = trained.classes != trained.classes[0]
    first = int(np.argmax(others)) if others.any() else len(others)
    return sorted_rows(first, 1.0 - float(np.mean(others)), int(trained.classes[0]), advice)


def _reach_of_arrays(loss: Any, over: np.ndarray, s: np.ndarray, advice: Advice) -> str:
    """``out_of_reach`` of rows whose scores are ``over`` their targets by so much."""
    if (bend := bend_of(loss)) is None:
        return ""
    below, above = (float(np.sum(s[far])) / float(s.sum()) for far in (over > bend, over < -bend))
    return out_of_reach(loss, below, above, len(over), advice)


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
