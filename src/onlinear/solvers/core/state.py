"""The state of a run: all that it knows, so that a saved state continues exactly as the run would have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import new_table, room_for_steps
from onlinear.compiled import Growing, every
from onlinear.solvers.core.moments import FIRST_VISIT, LONGEST_BLOCK

# Scalars of a state, by place in ``State.now``.
T, VISIT, BIAS, ONE, BIAS_SUM, BIAS_TOTAL, THETA, CAREFUL = range(8)
CLOCK = 8  # up to eight numbers
OWN = 16  # up to eight numbers of the solver's own
SCALARS = 24
GAINS = "gains"  # kept of implicit steps: the sum of their gains, its correction, sum eta |g|^2 / 2, the penalty at the start


class Bound(NamedTuple):
    """The most features of which an array holds numbers, and how many numbers a feature has once there are more."""

    features: int
    beyond: int


@dataclass
class State:
    """Everything a run of one output knows."""

    now: np.ndarray  # scalars
    arrays: dict[str, np.ndarray]  # one number per feature
    kept: dict[str, np.ndarray] = field(default_factory=dict)  # arrays of other lengths
    table: np.ndarray | None = None  # prefix sums of the steps since the last visit; rebuilt on load, so not saved
    size: int = 0  # features
    extra: int = 0  # places of the arrays before the first feature
    widths: dict[str, int] = field(default_factory=dict)  # numbers of an array per feature, where that is not one
    fresh: dict[str, tuple[float, ...]] = field(default_factory=dict)  # what a new feature begins with, where that is not 0
    stamps: tuple[str, ...] = ()  # arrays of steps, which a visit sets to its own
    halves: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of both, where files hold an array of pairs as two
    bounded: dict[str, Bound] = field(default_factory=dict)  # arrays that hold numbers of the first features alone
    borrowed: bool = False  # whether the table is that of other outputs too, to be read and not written
    buffers: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # memory that the arrays are views of
    batch: int = 1  # rows to a step
    waiting: Any = field(default=None, repr=False)  # rows of a batch that is not full, where a step takes several

    @property
    def t(self) -> int:
        """Steps taken."""
        return int(self.now[T])

    @property
    def rows(self) -> int:
        """Rows learned."""
        return self.t if self.waiting is None else self.t * self.batch + int(self.waiting.count)

    def take_memory(self, size: int) -> None:
        """Take the memory for ``size`` features; lengths and values stay as they are.

        Vectors are views of buffers that double, so that growing costs O(1) per new feature; zeros are left to the system,
        which hands out memory when it is touched.
        """
        for name, array in self.arrays.items():
            length, old = self._length(name, size), array.shape[-1]
            if array.ndim == 1 and not (self._has_buffer(name) and len(self.buffers[name]) >= length):
                buffer = np.zeros(max(length, 2 * old))
                buffer[:old] = array
                self.buffers[name], self.arrays[name] = buffer, buffer[:old]

    def grow(self, size: int) -> None:
        """Grow to ``size`` features, which start as they would have stood with this size from the first row."""
        self.take_memory(size)
        grown = {}
        for name, array in self.arrays.items():
            length, old = self._length(name, size), array.shape[-1]
            if array.ndim == 1:
                bigger = self.buffers[name][:length]
            else:
                bigger = np.zeros((*array.shape[:-1], length))
                bigger[..., :old] = array
            fills = (self.now[VISIT],) if name in self.stamps else self.fresh.get(name, ())
            for place, fill in enumerate(fills):
                if fill != 0.0:
                    bigger[..., old + place :: len(fills)] = fill
            grown[name] = bigger
        self.arrays |= grown
        self.size = size

    def _length(self, name: str, size: int) -> int:
        """The numbers of an array of ``size`` features."""
        features = min(size, self.bounded[name].features) if name in self.bounded else size
        return (features + self.extra) * self.widths.get(name, 1)

    @property
    def memory(self) -> list[np.ndarray]:
        """The arrays that hold all that the state knows, but for waiting rows."""
        return [self.now, *self.arrays.values(), *self.kept.values(), *([] if self.table is None else [self.table])]

    @property
    def room(self) -> int:
        """The features up to which the state grows in place: lengths change, and what is ``fresh`` or a stamp is filled."""
        if not all(self._has_buffer(name) for name in self.arrays):
            return self.size
        rooms = [len(self.buffers[name]) // self.widths.get(name, 1) - self.extra for name in self.arrays]
        return min(rooms + [bound.features for bound in self.bounded.values()], default=self.size)

    @property
    def fills(self) -> bool:
        """Whether growing writes to arrays."""
        return bool(self.stamps or self.fresh)

    def _has_buffer(self, name: str) -> bool:
        buffer, array = self.buffers.get(name), self.arrays[name]
        return buffer is not None and array.ndim == 1 and array.base is buffer

    @property
    def growing(self) -> Growing:
        """Where the arrays lie that grow in place, up to ``room``: first byte, end, bytes per feature."""
        found = [(array, 8 * self.widths.get(name, 1)) for name, array in self.arrays.items()]
        return [(array.ctypes.data, array.ctypes.data + array.nbytes, each) for array, each in found]

    def vectors(self) -> dict[str, np.ndarray]:
        """The arrays, pairs of halves apart, to be read or filled."""
        found: dict[str, np.ndarray] = {}
        for name, array in self.arrays.items():
            names = self.halves.get(name, (name,))
            found |= {half: every(array, place, len(names)) for place, half in enumerate(names)}
        return found

    def prepare(self, rows: int) -> None:
        """Make room in the table for ``rows`` more steps."""
        if self.table is not None:
            self.reserve(self.t - int(self.now[VISIT]) + rows)

    def reserve(self, steps: int) -> None:
        """Make room in the table for a block of ``steps`` steps, or the longest there is."""
        assert self.table is not None
        if min(LONGEST_BLOCK, steps) > room_for_steps(self.table):
            bigger = new_table(table_room(steps))
            bigger[: len(self.table)] = self.table
            self.table, self.borrowed = bigger, False
        elif self.borrowed:
            self.table, self.borrowed = self.table.copy(), False


class Snapshot:
    """A copy of what a state knows, for one without waiting rows. It is put back into the same arrays, so whatever refers to
    their memory stays right."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._fields = {name: dict(found) if isinstance(found, dict) else found for name, found in vars(state).items()}
        self._arrays = [(array, array.copy()) for array in state.memory]

    def put_back(self) -> None:
        """Give the state what it knew when the copy was made."""
        for array, copy in self._arrays:
            array[...] = copy
        vars(self._state).update(self._fields)


def table_room(steps: int) -> int:
    """The steps that a prefix table has room for where a block has ``steps``: one less than a power of two, or the longest
    block's."""
    needed = min(LONGEST_BLOCK, steps) + 1
    return (1 << (needed - 1).bit_length()) - 1 if needed < LONGEST_BLOCK else LONGEST_BLOCK


def scalars(fit_intercept: bool, bias: float) -> np.ndarray:
    """The scalars of a run that has not started."""
    now = np.zeros(SCALARS)
    now[BIAS], now[ONE] = bias, float(fit_intercept)
    return now


def vector_state(now: np.ndarray, name: str, size: int, averaged: bool) -> State:
    """A state of one vector, at 0, and with an average of its sums: those of the block, B, beside the vector in one array, as a
    row needs both, and those before it, A."""
    if not averaged:
        return State(now, {name: np.zeros(size)}, size=size)
    pairs = f"{name}B"
    arrays = {pairs: np.zeros(2 * size), "A": np.zeros(size)}
    return State(now, arrays, table=new_table(FIRST_VISIT), size=size, widths={pairs: 2}, halves={pairs: (name, "B")})


def kept_vector(state: State, name: str) -> np.ndarray:
    """A vector kept from the start, 0 where there is none, of the size the state has now."""
    vector = np.zeros(state.size)
    found = state.kept.get(name, vector[:0])
    vector[: len(found)] = found
    return vector


def everything(state: State) -> np.ndarray:
    """All columns."""
    return np.arange(state.size, dtype=np.uint32)
