"""Rows that are held out: scored and never learned, to judge each pass by, and to keep the best model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.classes import rows_at_once
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.streams import Block
from onlinear.streams.blocks import joined
from onlinear.streams.labels import Labels
from onlinear.training.events import Held
from onlinear.training.intake import Intake
from onlinear.training.place import Place
from onlinear.training.scored import ScoredRows

MOST = 1024  # held-out rows that are scored together


class Best(NamedTuple):
    """The model of the pass with the smallest loss of the held-out rows."""

    number: int
    loss: float
    header: Header
    arrays: Arrays

    def learner(self) -> Learner:
        """The learner of that pass."""
        return Learner.thaw(self.header, self.arrays)


class HeldOut:
    """The held-out rows of a pass: those that wait, and the sums of those that are scored."""

    def __init__(self, learner: Learner, intake: Intake, place: Place, regress: bool) -> None:
        self._learner, self._intake, self._place, self._regress = learner, intake, place, regress
        self._waiting: list[Block] = []
        self.flushed = 0  # rows of the pass up to which they are scored
        self.scored = self._none()
        self.best: Best | None = None

    def _none(self) -> ScoredRows:
        return ScoredRows(self._learner.loss, self._regress)

    def begin_pass(self) -> None:
        """Forget the scores of the pass before."""
        self.scored = self._none()

    @property
    def room(self) -> int:
        """How many more may wait."""
        return MOST - sum(block.n for block in self._waiting)

    def keep(self, block: Block) -> None:
        """Let the held-out rows of a block wait."""
        if block.held is not None and block.held.any():
            self._waiting.append(block.take(np.flatnonzero(block.held)))

    def keep_again(self, block: Block, place: int) -> None:
        """Let those of a block wait that the run had not scored; ``place``: rows of the pass before the block."""
        self.keep(block.cut(min(block.n, max(0, self.flushed - place)), block.n))
        trust.must(self.room > 0, f"more than {MOST} held-out rows that wait")

    def flush(self) -> None:
        """Score the rows that wait, by the model as it stands."""
        if self._waiting:
            self._score(joined(self._waiting), self.scored)
        self._waiting, self.flushed = [], self._place.consumed

    def score_stream(self, blocks: Iterator[Block], labels: Labels | None) -> ScoredRows:
        """Score the rows of another stream."""
        found = self._none()
        for block in blocks:
            self._score(block, found, labels)
        return found

    def _score(self, block: Block, scored: ScoredRows, labels: Labels | None = None) -> None:
        """Score rows; columns never seen have weight 0."""
        for part in block.parts(rows_at_once(self._learner.n_outputs)):
            source = self._intake.within_model(part)
            scored.score(self._learner, source, self._intake.targets(part, labels), part.importance)

    def judge(self, scored: ScoredRows, patience: int | None, passes: int) -> Held:
        """The result after a pass of ``passes``. The best model is kept where the run may end early."""
        number = self._place.number + 1
        if not scored.rows:
            raise ValueError(f"{self._place.stream.name}: of {self._place.consumed:,} rows none was held out to be scored.")
        if not scored.weight > 0.0:
            raise ValueError(f"{self._place.stream.name}: each of {scored.rows:,} held-out rows has the weight 0.")
        stop = False
        if patience is not None:
            if self.best is None or scored.loss < self.best.loss:
                header, arrays = self._learner.freeze()
                self.best = Best(number, scored.loss, header, {name: array.copy() for name, array in arrays.items()})
            stop = number - self.best.number >= patience and number < passes
        best = None if self.best is None else self.best.number
        return Held(number, scored.rows, scored.loss, *scored.measures.values(), best, stop)
