"""What there is to say of a model that may be of no use, and what to do about it, in the words of the command or of Python.

Each function gives one sentence or two, or the empty text where there is no doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner import Learner
from onlinear.losses import COUNTS, bend_of, loss_labels
from onlinear.training.best_constant import KEPT

ENOUGH = KEPT  # rows before which nothing is said of a model's quality, unless it ran away
FEW = 10_000  # rows for which more passes cost little
LEAST = 100  # rows before which a falling loss says nothing
WORSE = 0.01  # of the constant's loss: so much worse is worse
STILL = 0.98, 1.001  # of the loss of scores of 0: a model of classes between them has hardly left its beginning
FALLING = 0.8  # of the loss before: so much smaller is still falling
SATURATED = 0.01  # of the rows that the best constant leaves on the other side: so few is none
CONTRARY = 20  # rows that the best constant leaves on the other side, before their lack says anything
STRAIGHT = 50  # moves of the first targets, all up or all down, which shuffled ones never make
CHANCE = 1e-3  # of so many rows of one class at the start, if they were shuffled
UNITLESS = ("ftrl", "adagrad-rda", "adagrad-comid")  # solvers whose steps have a size of their own, whatever the targets
RIDGES, SMALLEST = ("rls", "2sgd"), 1e-6  # solvers whose ridge holds the intercept too, and a ridge that hardly does


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
