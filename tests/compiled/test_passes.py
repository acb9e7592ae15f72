"""The shorter way through Numba's compiler: what it leaves out, and that nothing else is."""

import math
from math import nan
from typing import NamedTuple

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba import njit
from numba.core import compiler, event, typed_passes, untyped_passes
from numba.np import arrayobj

from onlinear.compiled import COMPILED, adopt, function, kernel, lean_kernel
from onlinear.compiled._private import LinkedLibrary, unheard
from onlinear.compiled.passes import _LOOKING, _OF_ARRAYS, _UNUSED, inlined, steps_for
from onlinear.losses import sigmoid

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs compiled kernels")


class Elsewhere(NamedTuple):
    """A part that needs steps which the texts of the package do without."""

    factor: float = 2.0

    def summed(self, x):
        return sum([self.factor * x for _ in range(3)])


adopt(Elsewhere)


@kernel
def summed(part, x):
    return part.summed(x)


@lean_kernel
def summed_lean(part, x):
    return part.summed(x)


@pytest.mark.parametrize("run", [summed, summed_lean])
def test_a_part_from_elsewhere_goes_the_whole_way(run):
    assert run(Elsewhere(), 1.5) == 9.0


def test_the_names_are_those_of_steps_of_numba():
    names = _UNUSED | _LOOKING | {_OF_ARRAYS}
    assert all(hasattr(untyped_passes, name) or hasattr(typed_passes, name) for name in names)


def test_arithmetic_of_whole_arrays_is_compiled():
    def of_arrays(x, y):
        return (2.0 * x + y).sum()

    of_arrays.__module__ = sigmoid.__module__
    x = np.arange(4.0)
    assert njit(of_arrays, **steps_for(of_arrays))(x, x) == 18.0


def test_the_error_of_an_array_that_does_not_fit_takes_no_text_of_shapes():
    def put(x, y):
        x[:] = y

    put.__module__ = sigmoid.__module__
    with pytest.raises(ValueError, match="cannot assign slice from input of different size"):
        njit(put, **steps_for(put))(np.zeros(3), np.zeros(2))
    assert arrayobj.raise_with_shape_context.__module__ == arrayobj.__name__, "as it was, for the code of others"


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 1.0), (nan, 1.0), (1.0, nan), (0.0, -0.0), (-0.0, 0.0), (3, 4), (4, 3)])
def test_the_larger_and_the_smaller_of_two_numbers_are_those_of_python(a, b):
    found = njit(lambda a, b: (max(a, b), min(a, b)))(a, b)
    assert [math.copysign(1.0, x) for x in found] == [math.copysign(1.0, x) for x in (max(a, b), min(a, b))]
    np.testing.assert_array_equal(found, (max(a, b), min(a, b)))


def test_texts_of_the_package_take_the_shorter_way():
    state = compiler.StateDict()
    state.flags, state.func_ir = compiler.Flags(), None
    short = steps_for(sigmoid)["pipeline_class"]
    (found,) = short.define_pipelines(type("Holder", (), {"state": state}))
    whole = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
    assert [step for step, _ in found.passes] == [step for step, _ in whole.passes if step.__name__ not in _UNUSED]
    assert steps_for(test_the_names_are_those_of_steps_of_numba) == {}


def test_what_only_compiled_code_calls_has_no_machine_code_of_its_own():
    def doubled(x):
        return 2.0 * x

    doubled.__module__ = sigmoid.__module__
    inner = njit(doubled, **inlined(doubled))
    outer = njit(lambda x: inner(x) + 1.0)
    assert outer(3.0) == 7.0
    (found,) = inner.overloads.values()
    assert type(found.library) is LinkedLibrary
    assert found.library.get_pointer_to_function(found.fndesc.llvm_func_name) == 0


@function
def shared(x):
    return 2.0 * x


@function
def sharing(x):
    return shared(x) + 1.0


@kernel
def both(x):
    return shared(x) + sharing(x)


class Names(event.Listener):
    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


def test_a_helper_is_compiled_once_whatever_calls_it(monkeypatch):
    for text in (shared, sharing):
        monkeypatch.setattr(text, "__module__", sigmoid.__module__)
    listener = Names()
    with event.install_listener("numba:compile", listener):
        assert both.fresh(3.0) == 13.0
    assert listener.names.count("shared") == 1


class Counting(event.Listener):
    heard = 0

    def on_start(self, event):
        self.heard += 1

    def on_end(self, event):
        pass


def test_who_listens_to_the_lock_of_llvm_hears_it():
    before, listener = list(ffi.lib._lock._cblist), Counting()
    assert before
    with unheard():
        assert not ffi.lib._lock._cblist
    with event.install_listener("numba:llvm_lock", listener), unheard(), ffi.lib._lock:
        pass
    assert listener.heard == 1
    with pytest.raises(ValueError, match="wrong"), unheard():
        raise ValueError("wrong")
    assert ffi.lib._lock._cblist == before
