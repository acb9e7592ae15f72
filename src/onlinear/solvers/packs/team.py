"""Many outputs in one pass over the rows: classes, targets, or models that differ in their penalty.

Outputs of one method are trained eight at a time by kernels whose state stands side by side: row j of a ``Pack``'s array is
feature j of eight outputs. So an entry of a row is read once for all, its feature is looked up once, and its line of memory is
fetched once.
Each output's ``State`` is a view of its column: it is read, saved and grown as if it were alone, and holds the same bits as
if it had been trained alone. Whatever has no such kernel is trained one after the other over the same checked rows.

Packs are independent of each other, so threads change nothing but the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count, groupby
from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import new_table, room_for_steps
from onlinear.compiled import WIDTH, Growing, bind_loss, every
from onlinear.losses import is_joint
from onlinear.penalties import ElasticNet
from onlinear.solvers import implicit, rda
from onlinear.solvers.core import scaled_vector
from onlinear.solvers.core.engine import Engine, Examples
from onlinear.solvers.core.joint import Joined, packs_of
from onlinear.solvers.core.moments import LONGEST_BLOCK
from onlinear.solvers.core.pack import Abreast
from onlinear.solvers.core.state import VISIT, State, table_room
from onlinear.solvers.packs.rda import learn_rda
from onlinear.solvers.packs.scaled_vector import learn_scaled
from onlinear.threads import Pool

KERNELS: dict[type[Engine], Callable[..., tuple[int, int]]] = {
    rda.LazyRda: learn_rda,
    scaled_vector.Scaled: learn_scaled,
    implicit.ScaledImplicit: learn_scaled,
}  # packs beside the driver of pack.py
AVERAGED = (scaled_vector.Scaled, implicit.ScaledImplicit)  # packs of averages too
FEWEST = 3  # outputs below which a pack costs as much as learning them one after the other
LINE = 8  # numbers in a line of memory
WORTH_A_THREAD = 1 << 18  # entries times outputs of a call below which threads cost more than they bring


class Output(NamedTuple):
    """One output: its method, its state, and the row of y that holds its targets."""

    engine: Engine
    state: State
    target: int


def method_of(output: Output) -> Any:
    """What outputs that are trained together have in common; equal to no other's where an output is trained by itself."""
    engine, problem = output.engine, output.engine.problem
    if engine.own_outputs or is_joint(engine.problem.loss):
        return id(engine)
    if engine.alone or not (engine.packs or has_kernel(engine)):
        return id(output.state)
    parts = type(problem.loss), problem.loss, type(problem.penalty), engine.solver, problem.average
    return type(engine), *parts, problem.fit_intercept


def has_kernel(engine: Engine) -> bool:
    """Whether a kernel beside the driver learns packs of the engine's outputs."""
    ball = getattr(engine.solver, "ball", None)
    packed = type(engine) in KERNELS and type(engine.penalty) is ElasticNet and (ball is None or ball() == inf)
    return packed and (engine.average is None or type(engine) in AVERAGED)


class Call(NamedTuple):
    """A kernel that learns rows, and its arguments, rows and largest first. It gives the number of rows learned; that of
    several outputs also which one stopped being finite, or -1."""

    kernel: Any
    args: tuple[Any, ...]
    alone: bool = False  # whether it learns one output


def means_of(examples: Examples, engine: Engine, outputs: Any) -> np.ndarray | None:
    """Room for the scores of the averages of the outputs; None where they are not scored."""
    return examples.means[outputs] if examples.means is not None and scores_means(engine) else None


def scores_means(engine: Engine) -> bool:
    """Whether the engine scores rows by its average as well."""
    return engine.scores_means and engine.average is not None


class InTurn:
    """Outputs learned one after the other, or by a way of their own, by their engine."""

    weight = 1.0  # the cost, in outputs learned alone

    def __init__(self, outputs: Sequence[Output], place: int) -> None:
        self._engine, self._states, self._place = outputs[0].engine, [output.state for output in outputs], place
        self._targets = [output.target for output in outputs]

    def take_memory(self, size: int) -> None:
        for state in self._states:
            state.take_memory(size)

    def grow(self, size: int) -> None:
        for state in self._states:
            state.grow(size)

    @property
    def room(self) -> int:
        """The features up to which growing changes nothing but lengths."""
        return min(state.room for state in self._states)

    @property
    def growing(self) -> Growing:
        """Where the arrays lie that become longer there, up to ``room``."""
        return [found for state in self._states for found in state.growing]

    def calls(self, examples: Examples) -> list[Call] | None:
        """The kernels that learn the rows; None where more than that is to be done."""
        engine = self._engine
        if engine.own_outputs or any(state.kept or engine.next_restart(state) < inf for state in self._states):
            return None
        return [self._call(examples, *output) for output in zip(self._states, self._targets, count(self._place))]

    def _call(self, examples: Examples, state: State, target: int, place: int) -> Call:
        """The kernel that learns the rows for the output of this place."""
        means = means_of(examples, self._engine, place)
        own = examples._replace(y=examples.y[target], scores=examples.scores[place], means=means)
        return Call(*self._engine.call(state, own), alone=True)

    def learn(self, examples: Examples) -> tuple[int, int]:
        """The number of rows learned, and the output that stopped being finite (-1 for none)."""
        mine = slice(self._place, self._place + len(self._states))
        means = means_of(examples, self._engine, mine)
        own = examples._replace(y=examples.y[self._targets], scores=examples.scores[mine], means=means)
        done = self._engine.learn_outputs(self._states, own)
        return done, self._place if done < len(examples.s) else -1


class Rooms:
    """The memory of outputs' states, of which each state is a view: output o = WIDTH p + l has what a state alone holds in
    place i in lane l of row P i + p, with P packs. A lane without an output stays as it started."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._engine, self._states = outputs[0].engine, [output.state for output in outputs]
        self._packs = packs_of(len(outputs))
        idle = self._engine.start(np.zeros(0), 0.0)
        self._now = np.repeat(np.repeat(idle.now, self._packs).reshape(-1, 1), WIDTH, axis=1)
        self._widths, self._halves = idle.widths, idle.halves
        self._rooms: dict[str, np.ndarray] = {}
        self._size = -1

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` features; the rooms double, so that growing costs O(1) per new feature."""
        self._bind()
        for name, room in self._rooms.items():
            length, old = self._length(name, size), self._length(name, self._size)
            if length > len(room):
                bigger = in_lines(max(length, 2 * len(room)))
                bigger[:old] = room[:old]
                self._rooms[name] = bigger
                for o, state in enumerate(self._states):
                    state.arrays[name] = self._view(bigger[:old], o)

    def grow(self, size: int) -> None:
        """Grow to ``size`` features."""
        self.take_memory(size)
        self._resize(size)

    @property
    def room(self) -> int:
        """The features up to which growing changes nothing but lengths."""
        self._bind()
        return min(len(room) // self._length(name, 1) for name, room in self._rooms.items())

    @property
    def growing(self) -> Growing:
        """Where the arrays lie that become longer there, up to ``room``."""
        found = [(array, self._length(name, 1) * WIDTH * array.itemsize) for name, array in self._filled().items()]
        return [(array.ctypes.data, array.ctypes.data + array.nbytes, each) for array, each in found]

    def _filled(self) -> dict[str, np.ndarray]:
        """What is used of the rooms."""
        return {name: room[: self._length(name, self._size)] for name, room in self._rooms.items()}

    def _resize(self, size: int) -> None:
        self._size = size
        for o, state in enumerate(self._states):
            state.size = size
            state.arrays = {name: self._view(room[: self._length(name, size)], o) for name, room in self._rooms.items()}

    def _length(self, name: str, size: int) -> int:
        return size * self._widths.get(name, 1) * self._packs

    def _view(self, memory: np.ndarray, o: int) -> np.ndarray:
        """What output o has of the memory."""
        return memory[o // WIDTH :: self._packs, o % WIDTH]

    def _bind(self) -> None:
        """Take in whatever stands elsewhere: all arrays at first, later those of states that were loaded or replaced."""
        size = self._states[0].size
        if size != self._size or not self._rooms:
            found = [dict(state.arrays) for state in self._states]
            self._rooms = {name: in_lines(self._length(name, size)) for name in found[0]}
            self._size = size
            for o, arrays in enumerate(found):
                for name, array in arrays.items():
                    self._view(self._rooms[name], o)[:] = array
            self._resize(size)
        for o, state in enumerate(self._states):
            if state.now.base is not self._now:
                mine = self._view(self._now, o)
                mine[:] = state.now
                state.now = mine
            for name, array in state.arrays.items():
                if array.base is not self._rooms[name].base:
                    mine = self._view(self._rooms[name][: self._length(name, size)], o)
                    mine[:] = array
                    state.arrays[name] = mine


class Pack(Rooms):
    """Up to ``WIDTH`` outputs of one method, side by side."""

    weight = 2.5

    def __init__(self, outputs: Sequence[Output], place: int) -> None:
        super().__init__(outputs)
        self._place = place
        self._targets = np.array([output.target for output in outputs], dtype=np.int64)
        self._strengths = np.zeros((len(self._engine.penalty), WIDTH))
        for o, output in enumerate(outputs):
            self._strengths[:, o] = output.engine.penalty
        self._table: np.ndarray | None = None

    def _follow(self, rows: int) -> np.ndarray | None:
        """The prefix tables of averages, one after the other, with room for ``rows`` more steps; the states' are views."""
        if self._states[0].table is None or not self._engine.packs:
            return None
        steps = max(state.t - int(state.now[VISIT]) for state in self._states) + rows
        if self._table is None or min(steps, LONGEST_BLOCK) > room_for_steps(self._table[: len(self._table) // WIDTH]):
            self._table = new_table(table_room(steps), WIDTH)
        each = len(self._table) // WIDTH
        for o, state in enumerate(self._states):
            table = state.table
            assert table is not None
            if table.base is not self._table:
                mine, known = self._table[o * each : (o + 1) * each], min(each, len(table))
                mine[:known] = table[:known]
                state.table, state.borrowed = mine, False
        return self._table

    def _vectors(self) -> dict[str, np.ndarray]:
        """The vectors of all states, row j for feature j."""
        found: dict[str, np.ndarray] = {}
        for name, mine in self._filled().items():
            names = self._halves.get(name, (name,))
            found |= {half: every(mine, place, len(names)) for place, half in enumerate(names)}
        return found

    def calls(self, examples: Examples) -> list[Call] | None:
        """The kernel that learns the rows; None where more than that is to be done."""
        if any(state.kept for state in self._states):
            return None
        side = self._side(examples)
        return [Call(*(self._engine.pack(side) if self._engine.packs else beside(self._engine, side)))]

    def learn(self, examples: Examples) -> tuple[int, int]:
        """The number of rows learned, and the output that stopped being finite (-1 for none)."""
        side = self._side(examples)
        if self._engine.packs:
            done, culprit = self._engine.learn_pack(self._states, side)
        else:
            run, args = beside(self._engine, side)
            done, culprit = run(*args)
        return done, self._place + culprit if culprit >= 0 else -1

    def _side(self, examples: Examples) -> Abreast:
        """The rows, and the states side by side."""
        self._bind()
        mine = slice(self._place, self._place + len(self._states))
        given = examples.rows, examples.largest, examples.y, self._targets, examples.s
        means = means_of(examples, self._engine, mine)
        table = self._follow(len(examples.s))
        return Abreast(*given, self._strengths, self._vectors(), self._now, examples.scores[mine], means, table)


class Joint(Rooms):
    """Outputs that one loss joins."""

    weight = 1.0

    def __init__(self, outputs: Sequence[Output], place: int) -> None:
        super().__init__(outputs)
        self._mine = slice(place, place + len(outputs))

    def calls(self, examples: Examples) -> list[Call]:
        """The kernel that learns the rows."""
        self._bind()
        assert examples.own is not None
        given = examples.rows, examples.largest, examples.own, examples.s
        means = means_of(examples, self._engine, self._mine)
        side = Joined(*given, self._filled(), self._now, examples.scores[self._mine], means)
        return [Call(*self._engine.join(self._states, side))]

    def learn(self, examples: Examples) -> tuple[int, int]:
        """The number of rows learned, and the output that stopped being finite (-1 for none)."""
        [call] = self.calls(examples)
        done, culprit = call.kernel(*call.args)
        return done, self._mine.start + culprit if culprit >= 0 else -1


def beside(engine: Engine, side: Abreast) -> Any:
    """What ``pack`` gives, of the kernel that the engine has beside the driver."""
    first = next(iter(side.vectors))
    B, A = (side.vectors.get(name) for name in "BA")
    implicit = True if engine.implicit else None
    averaged = (engine.average, B, A, side.means, implicit) if type(engine) in AVERAGED else ()
    arrays = side.strengths, engine.solver, side.vectors[first], side.now, side.scores
    loss = bind_loss(engine.problem.loss, outputs=True) if engine.implicit else engine.loss
    return KERNELS[type(engine)], (*side.given, loss, *arrays, *averaged)


def in_lines(rows: int) -> np.ndarray:
    """Zeros, (rows, WIDTH), whose rows start where a line of memory does: one that lies across two costs two."""
    memory = np.zeros(rows * WIDTH + LINE - 1)
    first = -memory.ctypes.data % (8 * LINE) // 8
    return memory[first : first + rows * WIDTH].reshape(rows, WIDTH)


class Team:
    """All outputs of a pass, in packs and in turn, on one thread or several."""

    def __init__(self, outputs: Sequence[Output], threads: int = 1) -> None:
        self._threads = threads
        self._groups: list[Pack | Joint | InTurn] = []
        place = 0
        for method, alike in groupby(outputs, key=method_of):
            run = list(alike)
            if is_joint(run[0].engine.problem.loss):
                self._groups.append(Joint(run, place))
                place += len(run)
                continue
            sizes = pack_sizes(len(run), threads) if isinstance(method, tuple) else [len(run)]
            for size in sizes:
                kind = Pack if isinstance(method, tuple) and size >= FEWEST else InTurn
                self._groups.append(kind(run[:size], place))
                run, place = run[size:], place + size

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` features, of which nothing else is seen."""
        for group in self._groups:
            group.take_memory(size)

    def grow(self, size: int) -> None:
        """Grow to ``size`` features."""
        for group in self._groups:
            group.grow(size)

    @property
    def room(self) -> int:
        """The features up to which growing changes nothing but lengths."""
        return min(group.room for group in self._groups)

    @property
    def growing(self) -> Growing:
        """Where the arrays lie that become longer there, up to ``room``."""
        return [found for group in self._groups for found in group.growing]

    def calls(self, examples: Examples) -> list[Call] | None:
        """The kernels that learn the rows; None where more than that is to be done."""
        found: list[Call] = []
        for group in self._groups:
            calls = group.calls(examples)
            if calls is None:
                return None
            found += calls
        return found

    def learn(self, examples: Examples, places: Sequence[int] | None = None) -> tuple[int, int]:
        """Learn the rows in order, y being (targets, n), and fill in their scores; ``places``: of outputs that are learned by
        themselves and alone learn the rows, None for all.

        Give the number of rows learned (all, unless a state stopped being finite) and the output that stopped (or -1).
        """
        if places is not None:
            return min(self._groups[place].learn(examples) for place in places)
        targets = np.ascontiguousarray(examples.y)
        own = targets.argmax(axis=0) if any(isinstance(group, Joint) for group in self._groups) else None
        examples = examples._replace(y=targets, own=own)
        work = len(examples.rows.values) * len(examples.scores)
        heaviest_first = sorted(self._groups, key=lambda group: -group.weight)
        found = in_threads(lambda group: group.learn(examples), heaviest_first, self._threads, work)
        return min(found, key=lambda end: (end[0], end[1]))


def in_threads(task: Callable[[Any], Any], items: Sequence[Any], threads: int, work: int) -> list[Any]:
    """``task`` of each item, on several threads where the work, in entries times outputs, is worth it."""
    if threads == 1 or len(items) < 2 or work < WORTH_A_THREAD:
        return [task(item) for item in items]
    with Pool(threads) as pool:
        return pool.map(task, items)


def pack_sizes(outputs: int, threads: int) -> list[int]:
    """How outputs of one method are shared out: full packs first, or packs of like size where threads share them."""
    packs = -(-outputs // WIDTH)
    if threads > 1 and outputs >= FEWEST * threads:
        packs = -(-packs // threads) * threads
        return [outputs // packs + (k < outputs % packs) for k in range(packs)]
    full, rest = divmod(outputs, WIDTH)
    return [WIDTH] * full + ([rest] if rest >= FEWEST else [1] * rest)


def threads_of(n_jobs: Any) -> int:
    """The number of threads that ``n_jobs`` means: None is 1, -1 all cores."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be None, -1 (all cores) or an integer of at least 1, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else os.cpu_count() or 1
