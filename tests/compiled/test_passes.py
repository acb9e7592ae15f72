"""The shorter way through Numba's compiler: what it leaves out, and that nothing else is."""

from typing import NamedTuple

import pytest
from llvmlite.binding import ffi
from numba import njit
from numba.core import compiler, event, typed_passes, untyped_passes

from onlinear.compiled import COMPILED, adopt, kernel
from onlinear.compiled._private import LinkedLibrary, unheard
from onlinear.compiled.passes import _UNUSED, inlined, steps_for
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


def test_a_part_from_elsewhere_goes_the_whole_way():
    assert summed(Elsewhere(), 1.5) == 9.0


def test_the_names_are_those_of_steps_of_numba():
    assert all(hasattr(untyped_passes, name) or hasattr(typed_passes, name) for name in _UNUSED)


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
