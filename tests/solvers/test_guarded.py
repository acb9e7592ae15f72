"""Kernels write inside their arrays alone, whatever the length of a row: compiled code checks no index."""

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom
from test_packs import CASES, D

from onlinear import Learner
from onlinear.compiled import COMPILED
from onlinear.solvers.core.engine import Engine

pytestmark = pytest.mark.skipif(not COMPILED, reason="Python checks every index")

AROUND, MARK = 1024, 0xA7  # bytes before and behind each array, and what they hold


class Guard:
    """Copies of arrays with marked bytes around them; arrays that share memory share it in the copies."""

    def __init__(self):
        self.copies = {}

    def guarded(self, value):
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, tuple):
            items = [self.guarded(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def _array(self, array):
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        size = root.nbytes
        if id(root) not in self.copies:
            room = np.full(size + 2 * AROUND, MARK, np.uint8)
            room[AROUND : AROUND + size] = np.frombuffer(root.tobytes(), np.uint8)
            self.copies[id(root)] = root, room
        _, room = self.copies[id(root)]
        offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return np.ndarray(array.shape, array.dtype, room.data, AROUND + offset, array.strides)

    def check(self):
        """The marks stand; what was written is written to the arrays themselves."""
        for root, room in self.copies.values():
            around = np.concatenate([room[:AROUND], room[AROUND + root.nbytes :]])
            assert np.all(around == MARK), (root.shape, root.dtype)
            if root.flags.writeable and root.flags.c_contiguous:
                inside = room[AROUND : AROUND + root.nbytes].view(root.dtype)
                np.copyto(root, inside.reshape(root.shape))


def watched(make):
    """The method of an engine that gives a kernel and its arguments, with a kernel that runs on guarded copies."""

    def guarded(*given):
        run, args = make(*given)

        def kernel(*args):
            guard = Guard()
            found = run(*guard.guarded(args))
            guard.check()
            return found

        return kernel, args

    return guarded


@pytest.fixture
def watch(monkeypatch):
    """Watch every kernel that learns rows."""

    def watch(learner):
        for engine in {id(engine): engine for engine in [learner.engine, *learner.engines]}.values():
            for name in ("call", "pack", "join"):
                if getattr(type(engine), name) is not getattr(Engine, name):
                    monkeypatch.setattr(engine, name, watched(getattr(engine, name)), raising=False)

    return watch


ROWS = sp.csr_matrix(np.eye(6, D) + np.outer([0, 0, 1, 0, 0, 0], np.ones(D)) * 0.5)


ALONE = {"comid", "fiol", "implicit-ftrl"}  # one output's kernel is compiled for these in each run
BOXED = [case for case in CASES if "lower" in case[2]]  # a kernel each, beside those without bounds


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "average", "outputs"),
    [seldom(*case, 3) if case in BOXED or case[0] in ("sdrs", "sadmm") else (*case, 3) for case in CASES]
    + [(*case, 1) if case[0] in ALONE else seldom(*case, 1) for case in CASES],
)
def test_rows_of_any_length_stay_inside(solver, loss, penalty, average, outputs, watch):
    grows = average == "none" and "ftrl" not in solver  # numbers that stand between others: of no column of another type
    learner = Learner(solver, loss, penalty, average, n_outputs=outputs, fit_intercept=True, n_features=None if grows else D)
    watch(learner)
    Y = np.where(np.arange(6 * outputs).reshape(6, outputs) % 3 == 0, 1.0, -1.0)
    empty = sp.csr_matrix((2, D))
    learner.learn(empty, Y[:2]).learn(empty[:1], Y[:1]).learn(ROWS[:1], Y[:1]).learn(empty[:1], Y[:1]).learn(ROWS, Y)
    assert learner.t == 11
