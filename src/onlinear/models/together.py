"""What a path of penalties is made of: learners side by side, and what is counted of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from onlinear.errors import DivergenceError, ModelFileError
from onlinear.files import trust
from onlinear.learner import Learner
from onlinear.learner.limits import growth_error, room_for
from onlinear.learner.side_by_side import SideBySide
from onlinear.rows import Source
from onlinear.solvers.packs.team import Team
from onlinear.training.metrics import add_in_order


class Alike(SideBySide):
    """Learners of a path that share the scales of the columns and the units of targets. ``places``: theirs in the path."""

    def __init__(self, learners: list[Learner], places: list[int], threads: int) -> None:
        for learner in learners[1:]:
            learner.scaler, learner.units = learners[0].scaler, learners[0].units
        self.places, self._lead = places, learners[0]
        self._outputs_team = Team([output for learner in learners for output in learner.outputs()], threads)
        super().__init__(learners, self._outputs_team, threads)

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` columns before anything has that size. Raises MemoryError."""
        with room_for(size, len(self.places) * self._lead.n_outputs):
            self._outputs_team.take_memory(size)
            self._lead.take_memory_of_scales(size)

    def grow(self, size: int) -> None:
        """Grow to ``size`` columns."""
        self._outputs_team.grow(size)
        self._lead.grow_scales(size)

    def _diverge(self, k: int, where: str, t: int, heaviest: float = 0.0) -> NoReturn:
        try:
            super()._diverge(k, where, t, heaviest)
        except DivergenceError as error:
            raise Stopped(self.places[k], error) from None


class Stopped(Exception):  # noqa: N818 (it says where, and becomes an error with the penalty's name)
    """The learner at a place of the path has diverged."""

    def __init__(self, place: int, error: DivergenceError) -> None:
        super().__init__(str(error))
        self.place, self.error = place, error


class Together:
    """Learners of one stream that differ in their penalty."""

    def __init__(self, learners: list[Learner], penalties: list[Any], threads: int) -> None:
        self._learners, self._penalties = learners, penalties
        alike: dict[Any, list[int]] = {}
        for place, learner in enumerate(learners):
            alike.setdefault(shared(learner), []).append(place)
        self._groups = [Alike([learners[place] for place in places], places, threads) for places in alike.values()]

    def check(self, X: Any, y: np.ndarray, weights: np.ndarray) -> tuple[Source, np.ndarray, np.ndarray]:
        """Rows, targets and weights that all learners can learn; raises before anything is learned."""
        found = self._learners[0].check_input(X, y, weights)
        for learner in self._learners[1:]:
            learner.engine.check_rows(found[2])
        return found

    def learn(self, source: Source, y: np.ndarray, weights: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
        """Learn checked rows, which ``where`` names; give the scores before each step, (K, outputs, n). Whoever reads a
        learner waits."""
        with ExitStack() as stack:
            for learner in self._learners:
                stack.enter_context(learner.lock)
                learner.refuse_if_diverged()
            self._make_room(source)
            if len(self._groups) == 1:
                return self._learn_by(self._groups[0], source, y, weights, where)
            scores = np.empty((len(self._learners), self._learners[0].n_outputs, source.n))
            for group in self._groups:
                scores[group.places] = self._learn_by(group, source, y, weights, where)
        return scores

    def _learn_by(
        self, group: Alike, source: Source, y: np.ndarray, weights: np.ndarray, where: Callable[[int], str]
    ) -> np.ndarray:
        """What ``learn`` gives, of one group."""
        try:
            return group.learn(source, y, weights, where)[0].reshape(len(group.places), -1, source.n)
        except Stopped as stopped:
            self._stop(stopped)

    def _make_room(self, source: Source) -> None:
        """Grow to the columns of the rows; where the limit does not allow them, to those that have an entry."""
        known, each = self._learners[0].size, sum(learner.bytes_per_new_column for learner in self._learners)
        if source.width <= known:
            return
        size = source.width if growth_error(source.width - 1, each) is None else source.size
        if size <= known:
            return
        wrong = growth_error(size - 1, each)
        if wrong is not None:
            raise ValueError(f"X: {wrong}")
        for group in self._groups:
            group.take_memory(size)
        for group in self._groups:
            group.grow(size)

    def _stop(self, stopped: Stopped) -> NoReturn:
        why = f"penalty {self._penalties[stopped.place]!r}: {stopped.error}"
        for learner in self._learners:
            learner.stopped = why
        raise DivergenceError(why)


def shared(learner: Learner) -> tuple[Any, ...]:
    """What learners have alike that share scales and units: the kind of both."""
    scaler, units = learner.scaler, learner.units
    return (
        None if scaler is None else scaler.kind,
        None if units is None else (units.targets, units.weights, units.metric),
    )


@dataclass
class Tally:
    """What a path counts, one entry for each penalty: the weight of rows guessed wrong, of those counted; and the losses and
    rows of later passes, which saw their rows again. ``held_out``: the losses of rows held out to find the passes; None where
    none were. ``weight``: of the rows of first passes; None in older files and pickles, which count each row once."""

    wrong: np.ndarray
    later_loss: np.ndarray
    counted: float = 0.0
    later_rows: int = 0
    held_out: np.ndarray | None = None
    weight: float | None = None

    @classmethod
    def of(cls, penalties: int) -> Tally:
        """Nothing yet, for so many penalties."""
        return cls(np.zeros(penalties), np.zeros(penalties), weight=0.0)

    def add(self, weights: np.ndarray, wrong: np.ndarray | None) -> None:
        """Take in rows of a first pass; ``wrong`` (K, n): whose class was guessed wrong, None of numbers."""
        if self.weight is not None:
            self.weight = add_in_order(self.weight, weights)
        if wrong is None:
            return
        self.counted = add_in_order(self.counted, weights)
        if np.all(weights == 1.0) and not np.any(self.wrong % 1.0):  # whole numbers, of which every order has one sum
            self.wrong = self.wrong + np.count_nonzero(wrong, axis=1)
        else:
            each = zip(self.wrong.tolist(), wrong, strict=True)
            self.wrong = np.array([add_in_order(total, weights[those]) for total, those in each])

    @classmethod
    def together(cls, tallies: list[Tally]) -> Tally:
        """Those of groups of penalties, of the same rows, as one."""
        first = tallies[0]
        wrong, later = (np.concatenate([getattr(tally, name) for tally in tallies]) for name in ("wrong", "later_loss"))
        return cls(wrong, later, first.counted, first.later_rows, weight=first.weight)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is counted, by name."""
        counts = np.array([self.counted, self.later_rows], dtype=np.float64)
        found = {"wrong": self.wrong, "later loss": self.later_loss, "counts": counts}
        if self.weight is not None:
            found["weight"] = np.array([self.weight])
        return found if self.held_out is None else found | {"held out": self.held_out}

    @classmethod
    def read(cls, arrays: dict[str, np.ndarray], penalties: int) -> Tally:
        """The inverse of ``arrays``; raises ModelFileError for arrays of other shapes."""
        sizes = {"wrong": penalties, "later loss": penalties, "counts": 2}
        later = {"held out": penalties, "weight": 1}
        for name, size in (sizes | {name: size for name, size in later.items() if name in arrays}).items():
            if arrays[name].shape != (size,) or arrays[name].dtype != np.float64:
                raise ModelFileError(f"the model file's array {name!r} must be {size} numbers.")
        counted, later_rows = float(arrays["counts"][0]), int(arrays["counts"][1])
        trust.must(counted >= 0.0, "a weight of rows below 0")
        held_out = arrays["held out"].copy() if "held out" in arrays else None
        weight = float(arrays["weight"][0]) if "weight" in arrays else None
        return cls(arrays["wrong"].copy(), arrays["later loss"].copy(), counted, later_rows, held_out, weight)
