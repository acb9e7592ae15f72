"""How rows are learned whose step sizes change on the way: a stretch after the other, or each output by itself.

What stops being finite is told as (the rows that all outputs have learned, the place of the output that stopped).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlinear.learner.core import Core
from onlinear.rows import Rows
from onlinear.solvers.core.engine import Examples
from onlinear.solvers.packs.team import Team

Stopped = tuple[int, int] | None


class Prepared(NamedTuple):
    """Rows as kernels take them."""

    rows: Rows
    largest: float  # absolute value of an entry
    y: np.ndarray  # (n, K)
    s: np.ndarray  # (n,): what multiplies the losses


class AllOutputs:
    """All outputs of cores learn each stretch, with their ``team``; a single output has none, and may have ``scales`` that its
    loop puts rows in.

    ``scores``: room for those of the last iterates and of what predicts, (2 or more, outputs of all cores, n).
    """

    def __init__(self, cores: Sequence[Core], team: Team | None, scales: Any, prepared: Prepared, scores: np.ndarray) -> None:
        self._cores, self._team, self._scales, self._prepared, self._scores = cores, team, scales, prepared, scores
        self._races = any(core.race is not None for core in cores)
        self.learned = 0  # rows, by all outputs

    def follow(self, part: slice) -> Stopped:
        """Learn the next rows, whose step sizes are those of now."""
        lead = self._cores[0]
        for core in self._cores:
            core.follow_units(lead.units)
        rows, largest, y, s = self._prepared
        whole = part == slice(0, len(s))
        rows = rows if whole else rows.cut(part)
        found = self._scores if whole else np.empty((2, self._scores.shape[1], rows.count))
        taken = y[part] if lead.units is None else lead.units.from_level(y[part])
        means = found[1] if self._races else None
        try:
            learned, culprit = self._learn(Examples(rows, largest, taken.T, s[part], found[0], means))
        finally:
            if not whole:
                self._scores[:2, :, part] = found
        self.learned = part.start + learned
        return None if self.learned == part.stop else (self.learned, culprit)

    def _learn(self, examples: Examples) -> tuple[int, int]:
        """The number of rows learned, and the output that stopped where not all were."""
        lead = self._cores[0]
        if self._team is not None:
            return self._team.learn(examples)
        if self._scales is None:
            return lead.engine.learn_outputs(lead.states, examples), 0
        return lead.engine.learn_unscaled(lead.states[0], examples.output(0), self._scales), 0

    def end(self) -> Stopped:
        """Nothing: all rows are learned as they come."""
        return None


class EachOutput:
    """Each output learns its rows when its own steps or loss change, where these follow the targets of each output.

    The targets of one output cut the rows in some 2 log n stretches, and those of K outputs in K times as many. So K outputs
    that learned each stretch took K^2 times as long as one.
    """

    def __init__(self, cores: Sequence[Core], team: Team, prepared: Prepared, scores: np.ndarray) -> None:
        units, (rows, largest, y, s) = cores[0].units, prepared
        assert units is not None
        self._cores, self._team, self._units, self._y = cores, team, units, y
        means = scores[1] if any(core.race is not None for core in cores) else None
        self._examples = Examples(rows, largest, np.empty(y.shape[::-1]), s, scores[0], means)
        self._learned = np.zeros(y.shape[1], np.intp)  # rows, by each output
        self._known: np.ndarray | None = None  # what the steps and losses of the outputs were last made of

    @property
    def learned(self) -> int:
        """Rows, by all outputs."""
        return int(self._learned.min())

    def follow(self, part: slice) -> Stopped:
        """Take in the next rows, whose step sizes are those of now. Outputs that had others learn the rows before first."""
        now = self._units.of_outputs()
        changed = np.ones(len(now), bool) if self._known is None else (now != self._known).any(axis=1)
        changed |= not np.isfinite(self._units.spread).all()
        which = np.flatnonzero(changed).tolist()
        if (stopped := self._learn(which, part.start)) is not None:
            return stopped
        for core in self._cores:
            core.follow_units(self._units, which)
        self._known = now
        self._examples.y[:, part] = self._units.from_level(self._y[part]).T
        return None

    def end(self) -> Stopped:
        """Learn the rows that are left."""
        return self._learn(range(len(self._learned)), len(self._y))

    def _learn(self, outputs: Sequence[int], stop: int) -> Stopped:
        """Let outputs learn the rows up to ``stop``. Where one of them stops being finite, the others learn as many as it."""
        stopped = self._first_stopped(outputs, stop)
        if stopped is None:
            return None
        return self._first_stopped(range(len(self._learned)), stopped[0]) or stopped

    def _first_stopped(self, outputs: Sequence[int], stop: int) -> Stopped:
        """Let outputs learn the rows up to ``stop``; what stopped first."""
        found = [self._learn_output(k, stop) for k in outputs if self._learned[k] < stop]
        return min((end for end in found if end[0] < stop), default=None)

    def _learn_output(self, k: int, stop: int) -> tuple[int, int]:
        first, outputs = int(self._learned[k]), len(self._learned)
        places = range(k, len(self._cores) * outputs, outputs)
        done, culprit = self._team.learn(self._examples.cut(slice(first, stop)), places)
        self._learned[k] = first + done
        return first + done, culprit
