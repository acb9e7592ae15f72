"""Large dense arrays that are read once: a block is checked, then learned while the processor has it at hand.

A wrong value may stand behind rows that were learned. Then all that was known before is put back, and the rows take the way of
all others, which checks every row before it learns the first, and says what is wrong.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from onlinear.learner.core import Core
from onlinear.learner.side_by_side import SideBySide
from onlinear.rows import Source, UnknownRows, are_floats
from onlinear.solvers.core.careful import HUGE
from onlinear.solvers.core.state import Snapshot

LEAST = 1 << 20  # entries of an array that does not stay at hand between two readings
SHARE = 16  # the state, which is copied, is at most this part of the array


def learned_as_read(core: Core, X: Any, y: Any, sample_weight: Any) -> bool:
    """Learn the rows of an array. False, and nothing has changed, where they take another way, or may be wrong."""
    array = _floats(X)
    if array is None or not _can_go_back(core, array):
        return False
    state, sums, done = Snapshot(core.states[0]), core.loss_sums.copy(), False
    try:
        with suppress(Exception):  # the other way raises it, or one that comes before it
            unknown = UnknownRows(array, HUGE)  # kernels ask no more of the largest value than whether it is beyond that
            source = Source(len(array), array.shape[1], 0, 0.0, unknown)
            SideBySide((core,), None, core.threads).learn(source, *core.check_examples(y, sample_weight, source.n))
            done = True
    finally:
        if not done:
            state.put_back()
            core.loss_sums[:] = sums
            core.stopped = None
            core.moved()
    return done


def _floats(X: Any) -> np.ndarray | None:
    """A large array of floats row by row; None for anything else."""
    if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray) or X.size < LEAST:
        return None
    array = np.asarray(X)
    return array if are_floats(array) else None


def _can_go_back(core: Core, array: np.ndarray) -> bool:
    """Whether little is known before these rows, and all of it is in one state of a fixed size and in the sums of losses."""
    if core.stopped is not None or core.torn or core.n_outputs > 1 or array.shape[1] > core.size:
        return False
    if any(part is not None for part in (core.scaler, core.units, core.race, core.spread)):
        return False
    engine, state = core.engine, core.states[0]
    warns = engine.scales_columns or engine.own_outputs  # of rows, before it learns them
    if engine.batch or warns or state.waiting is not None:
        return False
    return SHARE * sum(part.nbytes for part in state.memory) <= array.nbytes
