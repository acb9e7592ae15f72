"""Learners that take the same rows in the same order: a single one, or those of a path, whose penalties differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.learner.arguments import row_of_call
from onlinear.learner.clip import clip_between
from onlinear.learner.core import NO_NUMBER, Core
from onlinear.learner.loss_sums import as_taken
from onlinear.learner.stretches import AllOutputs, EachOutput, Prepared
from onlinear.rows import Rows, Source
from onlinear.solvers.packs.team import Team, in_threads


def _named_from(where: Callable[[int], str], first: int, row: int) -> str:
    """The name of a row of a piece that begins with row ``first``."""
    return where(first + row)


class SideBySide:
    """Cores that take the same rows. All have as many outputs, and the scaler and units of the first one.

    ``team`` learns all their outputs in one pass; None where there is one output, which its engine learns.
    """

    def __init__(self, cores: Sequence[Core], team: Team | None, threads: int) -> None:
        self._cores, self._team, self._threads = cores, team, threads

    def learn(
        self, source: Source, y: np.ndarray, weights: np.ndarray, where: Callable[[int], str] = row_of_call
    ) -> np.ndarray:
        """Learn checked rows, for whose columns there is room; ``where`` names one of them.

        Give the scores before each step, (2, outputs of all cores, n): of the last iterates, and of what predicted. Where
        predictions are clipped (4, outputs, n): then the same scores before the clip.
        """
        lead, alone = self._cores[0], self._team is None
        scales, anywhere = (lead.scales_in_loop, lead.reads_anywhere) if alone else (None, False)
        pieces = self._by_passes(lead.pieces(source, scales, anywhere), weights)
        blocks: list[np.ndarray] = []
        while (scores := self._learn_next(pieces, source.largest, y, weights, where, scales)) is not None:
            blocks.append(scores)
        return blocks[0] if len(blocks) == 1 else np.concatenate([self._no_scores(0), *blocks], axis=2)

    def _learn_next(
        self,
        pieces: Iterator[tuple[slice, Any]],
        largest: float,
        y: np.ndarray,
        weights: np.ndarray,
        where: Callable[[int], str],
        scales: Any,
    ) -> np.ndarray | None:
        """Learn the next piece, all of it or, before Ctrl-C, none: its scores; None where there is none."""
        with uninterrupted():
            for which, rows in pieces:
                named = partial(_named_from, where, which.start)
                return self._learn_block(rows, largest, y[which], weights[which], named, scales)
        return None

    def _by_passes(self, pieces: Iterable[tuple[slice, Any]], weights: np.ndarray) -> Iterator[tuple[slice, Any]]:
        """The pieces, one of which is cut where its rows show that a later pass has begun: the cores are told there."""
        for which, rows in pieces:
            first = min(self._first_pass(core, rows, weights[which]) for core in self._cores)
            if 0 < first < rows.count:
                yield slice(which.start, which.start + first), rows.cut(slice(0, first))
            if first < rows.count:
                for core in self._cores:
                    core.end_first_pass()
                rows, which = rows.cut(slice(first, rows.count)), slice(which.start + first, which.stop)
            yield which, rows

    @staticmethod
    def _first_pass(core: Core, rows: Rows, weights: np.ndarray) -> int:
        return len(weights) if core.race is None else core.race.first_pass(rows, weights)

    @property
    def _outputs(self) -> int:
        return len(self._cores) * self._cores[0].n_outputs

    @property
    def _last_predicts(self) -> bool:
        """Whether the last iterates predict, in all cores and as they are."""
        return self._cores[0].units is None and all(core.race is None for core in self._cores)

    def _no_scores(self, n: int) -> np.ndarray:
        """Room for the scores of n rows; what predicts has the memory of the last iterate where that is what predicts."""
        if self._last_predicts:
            scores = np.empty((self._outputs, n))
            return as_strided(scores, (2, *scores.shape), (0, *scores.strides))
        return np.empty((4 if self._cores[0].clips else 2, self._outputs, n))

    def _learn_block(
        self, block: Rows, largest: float, y: np.ndarray, weights: np.ndarray, where: Callable[[int], str], scales: Any
    ) -> np.ndarray:
        """Learn rows, which ``where`` names."""
        lead = self._cores[0]
        for core in self._cores:
            core.moved()
        block, largest, s = lead.prepare(block, largest, weights, scales)
        if lead.units is None:
            return self.learn_rows(Prepared(block, largest, y, s), where, None, scales)
        y = lead.units.subtract_zero(y, weights)
        ranges = lead.units.follow_ranges(y, s)
        stretches = lead.units.split(y, weights, lead.t, ranges)
        return lead.units.add_zero(self.learn_rows(Prepared(block, largest, y, s), where, ranges, scales, stretches))

    def learn_rows(
        self,
        prepared: Prepared,
        where: Callable[[int], str],
        ranges: np.ndarray | None,
        scales: Any = None,
        stretches: Iterable[slice] | None = None,
    ) -> np.ndarray:
        """Learn rows.

        ``where``: names a row. ``ranges``: of the targets before each row, (2, n, K), where scores are clipped to it, else
        None. ``scales``: of rows that are not in them yet. ``stretches``: of rows with the same step sizes and loss, which
        change when the next one is asked for; None: all are.
        """
        lead, n = self._cores[0], len(prepared.s)
        before = lead.t
        scores, levels = self._no_scores(n), np.zeros((lead.n_outputs, n))
        if self._team is not None and len(lead.engines) > 1:
            way: AllOutputs | EachOutput = EachOutput(self._cores, self._team, prepared, scores)
        else:
            way = AllOutputs(self._cores, self._team, scales, prepared, scores)
        stopped = None
        try:
            for part in [slice(0, n)] if stretches is None else stretches:
                stopped = way.follow(part)
                if lead.units is not None and lead.units.raises:
                    lead.units.write_levels(levels[:, part])
                if stopped is not None:
                    break
            if (stopped := stopped or way.end()) is not None:
                done, culprit = stopped
                self._diverge(culprit, where(done), before + done + 1, float(prepared.s.max()))
        except NO_NUMBER:
            self._diverge(0, "in this call ", before + way.learned + 1)
        finally:
            self._take_scores(scores, levels, ranges, prepared, way.learned, before)
        return scores

    def _take_scores(
        self, scores: np.ndarray, levels: np.ndarray, ranges: np.ndarray | None, prepared: Prepared, done: int, before: int
    ) -> None:
        """Turn the scores of the rows learned, which are ``done`` after the ``before`` that came first, into those of what
        predicted them, and add their losses. ``levels``: that each row's scores count from, (outputs, n)."""
        lead, (_, _, y, s) = self._cores[0], prepared
        last, predicted = scores[:2]
        for k, core in enumerate(self._cores):
            found = scores[: 1 if core.race is None else 2, self._outputs_of(k), :done]
            found[...] = as_taken(core.loss, found)
            if lead.units is not None and lead.units.raises:
                found += levels[:, :done]
        if ranges is not None and lead.units is not None and lead.units.clip is not None:
            ranges = lead.units.clip.edges_of(ranges)
            scores[2:] = scores[:2]
            for found in scores[:2].reshape(-1, lead.n_outputs, len(s)):
                clip_between(found, ranges)
        self._add_losses(last, y, s, done)
        for k, core in enumerate(self._cores):
            own = self._outputs_of(k)
            if core.race is None and not self._last_predicts:
                scores[1::2, own] = scores[::2, own]
            elif core.race is not None:
                scored = last[own], predicted[own], (scores[-2, own], scores[-1, own])
                core.race.run(core.raw_loss, *scored, y[:done], s, core.loss_sums, before, levels[0], ranges)

    def _outputs_of(self, k: int) -> slice:
        """The places of core k's outputs among those of all cores."""
        outputs = self._cores[0].n_outputs
        return slice(k * outputs, (k + 1) * outputs)

    def _add_losses(self, scores: np.ndarray, y: np.ndarray, s: np.ndarray, done: int) -> None:
        """Add the losses of cores without a race, which adds them itself."""
        outputs = self._cores[0].n_outputs
        places = [place for place in range(self._outputs) if self._cores[place // outputs].race is None]

        def add(place: int) -> None:
            k = place % outputs
            self._cores[place // outputs].add_loss(k, scores[place, :done], y[:done, k], s[:done])

        in_threads(add, places, self._threads, scores.size)

    def _diverge(self, k: int, where: str, t: int, heaviest: float = 0.0) -> NoReturn:
        """Stop the core of output k, whose step t left its state infinite; ``heaviest`` as in ``Core.diverge``."""
        self._cores[k // self._cores[0].n_outputs].diverge(where, t, heaviest)
