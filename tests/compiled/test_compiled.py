"""The bridge: compiled code is cached and never stale, users' parts run inside the loop, everything also runs interpreted."""

import compileall
import hashlib
import logging
import math
import os
import pickle
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from garbage import collected
from numba import njit, typeof
from numba.core.errors import NumbaError

import onlinear
from onlinear.compiled import (
    COMPILED,
    Held,
    HeldText,
    Lengths,
    adopt,
    bind_loss,
    borrowed,
    bridges,
    cache,
    home,
    kernel,
    load,
    machine_code,
    opened,
    run_routine,
    store,
)
from onlinear.compiled.lane_code import ROW
from onlinear.errors import DivergenceError
from onlinear.learner import Learner
from onlinear.losses import Hinge
from onlinear.penalties import ElasticNet, register

HOME = Path(onlinear.__file__).parent
only_compiled = pytest.mark.skipif(not COMPILED, reason="with NUMBA_DISABLE_JIT=1 nothing is compiled, so nothing is cached")

RUN = """
    import numpy as np
    from onlinear.learner import Learner
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), np.where(rng.random(40) < 0.5, -1.0, 1.0)
    learner = Learner({solver!r}, {loss}, penalty={penalty!r}, average={average!r}, fit_intercept=True, n_features=5)
    learner.learn(X, y)
    both = [*learner.weights(), *learner.weights(average={averaged})]
    print([*both, learner.intercept(), learner.progressive_loss])
"""


def run(code, **environment):
    """Numbers that a fresh process prints."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "ONLINEAR", "PYTHON", "XDG"))}
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=clean | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
    return np.array(eval(found.stdout, {"np": np, "nan": math.nan}))


def example(solver="sgd,eta=0.3", loss="'hinge'", penalty="none", average=None):
    return RUN.format(solver=solver, loss=loss, penalty=penalty, average=average, averaged=average is not None)


def written(folder):
    """Files of compiled code, with what tells whether one was written again."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in Path(folder).rglob("*.nb?")}


@only_compiled
def test_kernels_use_what_the_named_processor_has(monkeypatch):
    from numba import config

    from onlinear.compiled.lane_code import has_masks

    masks = "+avx2,+avx512f,+avx512vl"
    for features, avx, expected in (
        (masks, 1, True),
        (masks, 0, False),
        ("", 1, False),
        ("+avx2,-avx512f,-avx512vl", 1, False),
    ):
        monkeypatch.setattr(config, "CPU_FEATURES", features)
        monkeypatch.setattr(config, "ENABLE_AVX", avx)
        assert has_masks() is expected


@only_compiled
@pytest.mark.exhaustive
def test_a_processor_without_vectors_of_its_own_gives_the_same_bits(tmp_path):
    """LLVM ended the process where code named instructions of this processor, and was for another."""
    code = example("implicit-ftrl", loss="'logistic'")
    places = {"PYTHONPATH": str(HOME.parent), "ONLINEAR_CACHE_DIR": str(tmp_path)}
    found = [run(code, **places, **named) for named in ({}, {"NUMBA_CPU_NAME": "generic"})]
    np.testing.assert_array_equal(*found)


@only_compiled
def test_a_changed_source_file_gives_the_new_result_and_an_unchanged_one_hits_the_cache(tmp_path):
    shutil.copytree(HOME, tmp_path / "src" / "onlinear", ignore=shutil.ignore_patterns("losses.*.pyc"))
    places = {"PYTHONPATH": str(tmp_path / "src"), "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    first = run(example(), **places)
    compiled = written(tmp_path / "cache")
    assert compiled

    source = tmp_path / "src" / "onlinear" / "losses.py"
    text, times = source.read_text(), source.stat()
    old, new = "return -y if y * s < self.margin else 0.0", "return -y if y * s < self.margin else 0.5"
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time: only the text differs
    changed = run(example(), **places)
    assert not np.array_equal(changed, first)
    np.testing.assert_allclose(run(example(), **places, NUMBA_DISABLE_JIT="1"), changed, rtol=0, atol=1e-12)
    source.write_text(text)
    all_compiled = written(tmp_path / "cache")
    assert all_compiled.keys() > compiled.keys()
    np.testing.assert_array_equal(run(example(), **places), first)
    assert written(tmp_path / "cache") == all_compiled  # nothing was compiled this time, losses included


def as_zip(source, place):
    place.parent.mkdir(exist_ok=True)
    shutil.make_archive(str(place), "zip", source)
    return f"{place}.zip"


def as_byte_code(source, place):
    shutil.copytree(source, place)
    compileall.compile_dir(place, quiet=1, legacy=True)
    for path in place.rglob("*.py"):
        path.unlink()
    return str(place)


@only_compiled
@pytest.mark.parametrize("packed", [as_zip, as_byte_code])
def test_versions_of_the_package_without_files_of_sources_have_digests_of_their_own(tmp_path, packed):
    source, code = tmp_path / "src", "from onlinear.compiled import home; print([int(home.DIGEST, 16)])"
    shutil.copytree(HOME, source / "onlinear", ignore=shutil.ignore_patterns("__pycache__"))
    old = packed(source, tmp_path / "old")
    losses = source / "onlinear" / "losses.py"
    losses.write_text(losses.read_text() + "# another version\n")
    new = packed(source, tmp_path / "new")
    first, again, other = (run(code, PYTHONPATH=place).item() for place in (old, old, new))
    assert first == again != other


@only_compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("packed", [as_zip, as_byte_code])
def test_versions_of_the_package_without_files_of_sources_keep_their_code_apart(tmp_path, packed):
    source = tmp_path / "src"
    shutil.copytree(HOME, source / "onlinear", ignore=shutil.ignore_patterns("__pycache__"))
    places = {"ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    old = packed(source, tmp_path / "old")
    first = run(example(), **places, PYTHONPATH=old)
    compiled = written(tmp_path / "cache")
    assert compiled
    np.testing.assert_array_equal(run(example(), **places, PYTHONPATH=old), first)
    assert written(tmp_path / "cache") == compiled
    losses = source / "onlinear" / "losses.py"
    text = losses.read_text()
    losses.write_text(text.replace("return -y if y * s < self.margin else 0.0", "return -y if y * s < self.margin else 0.5"))
    assert losses.read_text() != text
    assert not np.array_equal(run(example(), **places, PYTHONPATH=packed(source, tmp_path / "new")), first)


@only_compiled
def test_a_package_of_which_no_file_can_be_read_keeps_no_code(tmp_path):
    assert home._digest(tmp_path / "nowhere") == ""


@only_compiled
def test_a_users_changed_loss_and_penalty_give_the_new_result_in_the_next_process(tmp_path):
    module = tmp_path / "mine.py"
    body = """
        from typing import NamedTuple
        import numpy as np

        class Mine(NamedTuple):
            a: float = 1.0
            def value(self, s, y): return LOSS * (s - y) ** 2
            def slope(self, s, y): return 2 * LOSS * (s - y)

        class Soft(NamedTuple):
            l: float = 0.01
            def value(self, w): return PEN * self.l * np.sum(np.abs(w))
            def prox(self, v, eta): return np.sign(v) * np.maximum(np.abs(v) - PEN * eta * self.l, 0.0)
            def tick(self, clock, eta): return clock[0], clock[1] + PEN * eta * self.l
            def weight(self, v, clock): return np.sign(v) * max(abs(v) - clock[1], 0.0)
            def potential(self, w, clock): return w + np.sign(w) * clock[1]
    """
    code = """
        import numpy as np
        from onlinear.learner import Learner
        from mine import Mine, Soft
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
        learners = [Learner("comid,eta=0.3", *parts, n_features=5) for parts in ((Mine(),), ("squared", Soft()))]
        print([tuple(learner.learn(X, y).weights()) for learner in learners])
    """
    places = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{HOME.parent}", "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    results = []
    for loss, pen in (("0.5", "1.0"), ("0.7", "5.0")):
        module.write_text(textwrap.dedent(body).replace("LOSS", loss).replace("PEN", pen))
        results.append(run(code, **places))
        assert not any("mine" in path.name or "Mine" in path.name for path in written(tmp_path / "cache"))
    assert not any(np.array_equal(*found) for found in zip(*results, strict=True))


@only_compiled
def test_without_compilation_the_results_are_the_same():
    code = "results = []"
    for loss in ("'logistic'", "'poisson'", "'huber,delta=0.5'"):
        one = textwrap.dedent(example("comid,eta=0.3", loss, "elastic-net,l1=0.01,l2=0.1", "uniform"))
        one = one.replace("-1.0, 1.0)", "0.0, 1.0)") if loss == "'poisson'" else one
        code += one.replace("print(", "results.append(")
    code += "print(results)"
    places = {"PYTHONPATH": str(HOME.parent)}
    compiled, text = run(code, **places), run(code, NUMBA_DISABLE_JIT="1", **places)
    assert len(compiled) == 3
    np.testing.assert_allclose(text, compiled, rtol=0, atol=1e-12)


# --- users' parts inside the loop ------------------------------------------------------------------------------------


class MyHinge(NamedTuple):
    edge: float = 1.0

    def value(self, s: float, y: float) -> float:
        return max(0.0, self.edge - y * s)

    def slope(self, s: float, y: float) -> float:
        return -y if y * s < self.edge else 0.0

    def theta(self, a: float, c: float, y: float) -> float:
        short = self.edge - y * a
        if not short > 0.0:
            return 0.0
        return -y * (short / c) if short < c else -y


class MySoft(NamedTuple):
    strength: float = 0.01

    def value(self, w):
        return self.strength * np.sum(np.abs(w))

    def prox(self, v, eta):
        return np.sign(v) * np.maximum(np.abs(v) - eta * self.strength, 0.0)

    def tick(self, clock, eta):
        return clock[0], clock[1] + eta * self.strength

    def weight(self, v, clock):
        return v - min(max(v, -clock[1]), clock[1])

    def potential(self, w, clock):
        return w + math.copysign(clock[1], w) if w != 0.0 else 0.0


@pytest.mark.parametrize("solver", ["comid,eta=0.2", "implicit-sgd,eta=0.2"])
def test_a_users_loss_and_penalty_match_the_built_in_ones(solver):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 12)) * (rng.random((200, 12)) < 0.4)
    y = np.where(X @ rng.standard_normal(12) > 0, 1.0, -1.0)
    own = ("none", "none") if solver.startswith("implicit") else (MySoft(0.01), "l1,l1=0.01")
    mine = Learner(solver, MyHinge(), penalty=own[0], n_features=12, fit_intercept=True).learn(X, y)
    built_in = Learner(solver, "hinge", penalty=own[1], n_features=12, fit_intercept=True).learn(X, y)
    np.testing.assert_allclose(mine.weights(), built_in.weights(), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(mine.weights() == 0.0, built_in.weights() == 0.0)
    assert mine.progressive_loss == pytest.approx(built_in.progressive_loss, rel=1e-13)


class MyPole(MyHinge):
    def slope(self, s: float, y: float) -> float:
        return 1.0 / (y - 3.0)


@only_compiled
def test_a_users_loss_without_a_slope_at_a_row_stops_there():
    learner = Learner("comid,eta=0.2", MyPole(), n_features=2)
    with pytest.raises(DivergenceError, match="at row 2 of"):
        learner.learn(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0])
    assert learner.t == 2


class MyBranches(MySoft):
    def weight(self, v, clock):
        if v > clock[1]:
            return v - clock[1]
        return v + clock[1] if v < -clock[1] else 0.0


@only_compiled
def test_a_users_method_takes_four_entries_at_once_where_it_can_and_gives_the_same_bits():
    clock = typeof((1.0, 0.5))
    for part, whole in ((MySoft(), True), (MyBranches(), False)):
        assert bridges._takes_lanes(bridges._compiled(type(part).weight), (typeof(part), ROW, clock)) is whole
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 11)) * (rng.random((300, 11)) < 0.6)
    y = np.where(X @ rng.standard_normal(11) > 0, 1.0, -1.0)
    found = [Learner("comid,eta=0.2", "hinge", part, n_features=11).learn(X, y).weights() for part in (MySoft(), MyBranches())]
    np.testing.assert_array_equal(*found)


@only_compiled
def test_a_users_part_changes_nothing_of_what_compiled_kernels_rely_on():
    class Lenient(NamedTuple):
        edge: float = 1.0

        def prox(self, v, eta, times=1):
            return v

        def weight(self, v, clock, more=0.0, most=0.0):
            return v

    before = {name: bridge.__signature__ for name, bridge in bridges._bridges.items()}
    adopt(Lenient)
    assert {name: bridge.__signature__ for name, bridge in bridges._bridges.items()} == before
    assert len(before["prox"].parameters) == 3


def test_a_loss_of_several_or_whole_number_fields():
    class Tilted(NamedTuple):
        up: float = 2.0
        down: int = 3
        lazy: bool = True

        def value(self, s, y):
            return self.up * max(s - y, 0.0) + self.down * max(y - s, 0.0)

        def slope(self, s, y):
            return self.up if s > y else -self.down * 1.0

    learner = Learner("comid,schedule=constant,eta=0.125", Tilted(), n_features=1)
    learner.learn(np.ones((2, 1)), np.array([1.0, -1.0]))
    np.testing.assert_array_equal(learner.weights(), [0.125])


# --- parts with the wrong methods ------------------------------------------------------------------------------------


class NoSlope(NamedTuple):
    a: float = 1.0

    def value(self, s, y):
        return 0.0


class NotNumbers(NamedTuple):
    a: str = "x"

    def value(self, s, y):
        return 0.0

    def slope(self, s, y):
        return 0.0


class FewArguments(NamedTuple):
    a: float = 1.0

    def value(self, s):
        return 0.0

    def slope(self, s, y):
        return 0.0


class DoesNotCompile(NamedTuple):
    a: float = 1.0

    def value(self, s, y):
        return 0.0

    def slope(self, s, y):
        return {}.nothing  # no such attribute


class NoFields(NamedTuple):
    def value(self, s, y):
        return 0.0

    def slope(self, s, y):
        return 0.0


class Plain:
    def value(self, s, y):
        return 0.0

    def slope(self, s, y):
        return 0.0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (NoSlope(), "NoSlope.* lacks slope"),
        (NotNumbers(), "NotNumbers.*field 'a' must be a number, got 'x'"),
        (FewArguments(), r"FewArguments.*value must take \(s, y\)"),
        (NoFields(), "has no field"),
        (Plain(), "is not a NamedTuple"),
        (3.5, "must be text such as .hinge., or a NamedTuple with value and slope, got 3.5"),
    ],
)
def test_a_loss_with_the_wrong_methods_is_named(loss, message):
    with pytest.raises(TypeError, match=message):
        Learner("comid", loss)


@only_compiled
def test_a_loss_that_does_not_compile_is_named():
    with pytest.raises(TypeError, match="the method slope of the loss DoesNotCompile does not compile"):
        Learner("comid", DoesNotCompile())


def test_a_penalty_with_the_wrong_methods_is_named():
    class NoProx(NamedTuple):
        a: float = 1.0

        def value(self, w):
            return 0.0

    class OddTick(NamedTuple):
        a: float = 1.0

        def value(self, w):
            return 0.0

        def prox(self, v, eta):
            return v

        def tick(self, clock):
            return clock

        def weight(self, v, clock):
            return v

        def potential(self, w, clock):
            return w

    with pytest.raises(TypeError, match=r"NoProx.* lacks prox"):
        Learner("comid", "hinge", penalty=NoProx())
    with pytest.raises(TypeError, match=r"OddTick.*tick must take \(clock, eta\)"):
        Learner("comid", "hinge", penalty=OddTick())


def test_a_field_with_the_name_of_a_method_that_a_penalty_is_given_is_refused():
    class Shadow(NamedTuple):
        unit: float = 1.0

        def value(self, w):
            return 0.0

        def prox(self, v, eta):
            return v

        def tick(self, clock, eta):
            return clock

        def weight(self, v, clock):
            return v

        def potential(self, w, clock):
            return w

    with pytest.raises(
        TypeError, match=r"Shadow: the field 'unit' has the name of a method that kernels call; rename the field"
    ):
        Learner("comid", "hinge", Shadow())


class Weighing(NamedTuple):
    """A loss whose settings have the names of methods of other parts, and a method with the name of a setting of theirs."""

    weight: float = 2.0
    step: float = 0.5

    def value(self, s, y):
        return self.weight * (s - y) ** 2 * self.step

    def slope(self, s, y):
        return self.margin(s, y)

    def margin(self, s, y):
        return 2.0 * self.weight * self.step * (s - y)


def test_a_part_may_use_the_names_of_others():
    learners = [Learner("comid,eta=0.1", loss, n_features=2) for loss in (Weighing(4.0, 0.25), "squared,factor=2")]
    found = [learner.learn(np.eye(2), np.array([1.0, -2.0])).weights() for learner in learners]
    np.testing.assert_allclose(*found, rtol=1e-14)
    assert learners[0].progressive_loss == pytest.approx(learners[1].progressive_loss)


# --- other packages' NamedTuples -------------------------------------------------------------------------------------


@only_compiled
def test_the_fields_of_other_packages_are_theirs():
    """A class for each kind of NamedTuple that Numba knows, with every name that kernels call as a field."""
    from collections import namedtuple

    from numba import njit

    names = sorted(bridges._bridges)
    assert {"start", "value", "step", "weight", "total", "mean", "at", "unit"} <= set(names)
    text = " + ".join(f"{k + 1} * part.{name}" for k, name in enumerate(names))
    total = njit(eval(f"lambda part: {text}"))
    values = [float(2**k % 1009) for k in range(len(names))]
    wanted = sum((k + 1) * value for k, value in enumerate(values))
    kinds = namedtuple("Foreign", names), namedtuple("ElasticNet", names), namedtuple("Hinge", [*names, "factor"])
    assert total(kinds[0](*values)) == wanted  # of one type
    assert total(kinds[1](*values[:-1], int(values[-1]))) == wanted  # of several
    assert total(kinds[2](*values, 1)) == wanted


@only_compiled
def test_the_methods_of_other_packages_are_not_called():
    from numba import njit
    from numba.core.errors import TypingError

    class Elastic(NamedTuple):
        l1: float = 0.0

        def prox(self, v, eta):
            return v

    call = njit(lambda part: part.prox(1.0, 2.0))
    with pytest.raises(TypingError, match="prox"):
        call(Elastic())
    assert call(ElasticNet(l1=0.25)) == 0.5


# --- clocks in arrays, entry points ----------------------------------------------------------------------------------


@kernel
def _shift(clock, array):  # the like of what solvers do with their clocks
    found = load(clock, array, 2)
    store(found, array, 6)
    return found[0] + found[2]


def test_clocks_are_loaded_and_stored():
    array = np.arange(12.0)
    assert load((1.0, 0.0, 1.0), array, 2) == (2.0, 3.0, 4.0)
    assert _shift((0.0, 0.0, 0.0), array) == 6.0
    np.testing.assert_array_equal(array[6:9], [2.0, 3.0, 4.0])
    store((7.0, 8.0), array, 0)
    np.testing.assert_array_equal(array[:3], [7.0, 8.0, 2.0])


@kernel
def _prox_first(penalty, v):
    return penalty.weight(v[0], penalty.tick(penalty.start(), 0.5))


@kernel
def _sum_into(number, arrays):
    number, (flat, (table, _)) = borrowed((number, arrays))
    for k in range(flat.shape[0]):
        table[1, k] += flat[k] + number


def test_borrowed_arrays_are_the_callers_and_are_freed_with_theirs():
    flat, table = np.arange(3.0), np.zeros((4, 3))
    view = table[::2]
    before = sys.getrefcount(flat), sys.getrefcount(view)
    for _ in range(2):
        _sum_into(1, (flat, (view, None)))
    assert (sys.getrefcount(flat), sys.getrefcount(view)) == before
    np.testing.assert_array_equal(table[2], 2 * (flat + 1.0))


def _first_and_more(here, more):  # as one_row.learn_row: what is held, then what changes
    (penalty, _, flag), (v, (scale, place)) = opened(here)
    v[place] += scale * flag
    return prox_first(penalty, v) + more[0]  # noqa: F821 (named by Held.compile)


@pytest.mark.parametrize("penalty", [ElasticNet(l1=1.0), MySoft(0.1)], ids=["ours", "a user's"])
def test_held_arguments_are_those_of_the_call(penalty):
    register(MySoft())
    array = np.array([[2.0, 7.0, 2.0], [0.0, 0.0, 0.0]])
    v = array[0, ::2]
    held = Held((penalty, None, True), (v, (0.5, np.int64(1))))
    call = held.compile(_first_and_more, {"prox_first": _prox_first}, np.zeros(4)[::2])
    want = _prox_first(penalty, v)
    assert call(held.here, np.array([3.0, 4.0, 5.0])[1:]) == want + 4.0
    np.testing.assert_array_equal(array, [[2.0, 7.0, 2.5], [0.0, 0.0, 0.0]])
    v[0] = 4.0  # held by its memory
    assert call(held.here, np.zeros(1)) == _prox_first(penalty, v)


@only_compiled
def test_held_arguments_of_the_same_types_are_of_one_kind():
    v, other = np.zeros(3), np.zeros(4)
    held = Held(v, other, 1.0, ElasticNet())
    assert Held(other, v, 2.0, ElasticNet(l1=1.0), like=held).kind is held.kind
    for different in ((v, other, 1, ElasticNet()), (np.zeros(6)[::2], other, 1.0, ElasticNet()), (v, other, 1.0, None)):
        assert Held(*different, like=held).kind is not held.kind
    with pytest.raises(TypeError, match="str arguments cannot be held"):
        Held(v, "text")


def _over_twice_first(here, x):  # what is held elsewhere
    (v,) = opened(here)
    return x / (2.0 * float(v[0]))


def _times_first(here, x):
    (v,) = opened(here)
    return x * v[0]


def _by_routines(here, x):  # as learn_one.learn_row: a kernel, then a text with what is held for it
    prox, over, at_over, penalty, v = opened(here)
    return run_routine(prox, penalty, v) + run_routine(over, at_over, x)


@pytest.mark.parametrize("penalty", [ElasticNet(l1=1.0), MySoft(0.1)], ids=["ours", "a user's"])
def test_routines_give_what_their_functions_give(penalty):
    register(MySoft())
    v, over, whole = np.array([2.0, 4.0]), HeldText(1.0), HeldText(1.0)
    for _ in range(2):
        over.hold(_over_twice_first, v)
        whole.hold_with(_prox_first, (penalty, v), _by_routines, *over.call, penalty, v)
    assert whole.run(whole.here, 8.0) == _prox_first(penalty, v) + 2.0
    v[0] = 0.0
    with pytest.raises(ZeroDivisionError):
        whole.run(whole.here, 8.0)


@only_compiled
def test_a_routine_takes_no_other_types():
    v, over = np.array([2.0, 4.0]), HeldText(1)  # whole numbers
    over.hold(_over_twice_first, v)
    with pytest.raises(NumbaError, match="run_routine"):
        HeldText(1.0).hold_with(_prox_first, (ElasticNet(), v), _by_routines, *over.call, ElasticNet(), v)


def test_another_text_of_the_same_arguments_has_code_of_its_own():
    v, over = np.array([2.0, 4.0]), HeldText(1.0)
    over.hold(_over_twice_first, v)
    first = over.run(over.here, 8.0)
    over.hold(_times_first, v)
    assert (first, over.run(over.here, 8.0)) == (2.0, 16.0)


@only_compiled
def test_ctrl_c_before_what_is_held_is_noted_leaves_no_code_of_another_type():
    class Stopped(HeldText):
        def __setattr__(self, name, value):
            if isinstance(value, Held) and value.kind is stopping:
                raise KeyboardInterrupt
            super().__setattr__(name, value)

    before, other = np.array([2.0, 4.0]), np.array([2.0, 4.0], np.float32)
    stopping, over = Held(other).kind, Stopped(1.0)
    over.hold(_over_twice_first, before)
    with pytest.raises(KeyboardInterrupt):
        over.hold(_over_twice_first, other)
    over.hold(_over_twice_first, before)
    found, held = over.call
    assert found.kind.takes[0] is held.kind


def test_held_arrays_may_become_longer_where_they_lie():
    room, pairs = np.arange(20.0), np.arange(20.0)
    first, second = room[:4], pairs[:8]
    shape = np.array([4])
    growing = [(array.ctypes.data, array.ctypes.data + array.nbytes, each) for array, each in ((first, 8), (second, 16))]

    def last(here):
        one, (two, three), count, start = opened(here)
        return one[-1], two[-1], three[-1], len(one) + len(two) + len(three) + count[0], start[0]

    held = Held(first, (second[::2], second[1::2]), shape, first[:1])
    run = held.compile(last, {})
    assert run(held.here) == (3.0, 6.0, 7.0, 16, 0.0)
    count = np.array([4])
    lengths = Lengths.of([held, Held(shape)], growing, 4, [count])
    for columns, wanted in ((6, (5.0, 10.0, 11.0, 22, 0.0)), (10, (9.0, 18.0, 19.0, 34, 0.0)), (4, (3.0, 6.0, 7.0, 16, 0.0))):
        lengths.follow(columns)
        assert (run(held.here), count.item()) == (wanted, columns)
    for part in (first[:3], first[:2], np.array([first[0]])):
        known = Lengths.of([Held(part)], growing, 4)
        assert (known is None) == np.shares_memory(part, first)


@only_compiled
def test_a_part_that_a_kernel_cannot_take_is_named():
    class NoWeight(NamedTuple):
        a: float = 1.0

    with pytest.raises(TypeError, match="_prox_first does not compile with NoWeight"):
        _prox_first(NoWeight(), np.array([2.0]))


def test_bound_fields_follow_the_settings_whoever_keeps_them():
    """Kernels read the fields at an address, which nobody but the process owns."""
    margins = np.linspace(0.5, 2.0, 50)
    with collected():
        bound = [bind_loss(Hinge(margin=margin)) for margin in margins]
    filled = [np.full(size, 1e3) for size in range(2, 20) for _ in range(200)]  # takes up memory that was given back
    for margin, loss in zip(margins, bound, strict=True):
        out = np.zeros(1)
        _slope_at(loss, 1.0, out)
        assert out[0] == (-1.0 if margin > 1.0 else 0.0)
        assert bind_loss(Hinge(margin=margin)) == loss  # one place for all of the same settings
    del filled


@kernel
def _slope_at(loss, s, out):
    out[0] = loss.slope(s, 1.0)


# --- where compiled code is kept -------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("ONLINEAR_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(home.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path


def test_the_cache_is_where_it_is_told_to_be(places, monkeypatch):
    assert home.cache_folder() == places / "home" / ".cache" / "onlinear"
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert home.cache_folder() == places / "xdg" / "onlinear"
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "named"))
    assert home.cache_folder() == places / "named"
    assert not list((places / "tmp").iterdir()), "no folder is made that is not needed"


def test_a_home_that_cannot_be_written(places, monkeypatch):
    (places / "file").write_text("no folder")
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "file" / "cache"))
    monkeypatch.setenv("HOME", str(places / "file"))
    folder = home.cache_folder()
    assert folder.parent == places / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of folders are POSIX's")


@posix
@pytest.mark.parametrize("wrong", [0o777, 0o770, 0o702, "owner", "link"])
@pytest.mark.parametrize("which", ["named", "home/.cache/onlinear", "tmp"])
def test_a_folder_that_others_own_or_may_write_to_is_not_trusted(places, monkeypatch, caplog, which, wrong):
    if which == "named":
        monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "named"))
    else:
        (places / "file").write_text("no folder")
        monkeypatch.setenv("XDG_CACHE_HOME", str(places / ("home/.cache" if which != "tmp" else "file")))
    folder = places / "tmp" / f"onlinear-{os.getuid()}" if which == "tmp" else places / which
    folder.parent.mkdir(parents=True, exist_ok=True)
    if wrong in ("owner", "link") and os.getuid() != 0:
        pytest.skip("only root may give folders away")
    if wrong == "link":
        (places / "private").mkdir(mode=0o700)
        folder.symlink_to(places / "private")
        os.lchown(folder, 12345, 12345)
    else:
        folder.mkdir(mode=0o700)
        if wrong == "owner":
            os.chown(folder, 12345, 12345)
        else:
            folder.chmod(wrong)
    found = home.cache_folder()
    assert found != folder
    assert (found is None) == (which == "tmp")
    assert ["is not used: other users own it" in record.getMessage() for record in caplog.records] == [True] * (
        which == "named"
    )


@posix
def test_folders_are_made_for_their_user_alone(places, monkeypatch):
    before = os.umask(0)
    try:
        for name in ("named", "deep/down/named"):
            monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / name))
            assert stat.S_IMODE(home.cache_folder().stat().st_mode) == 0o700
    finally:
        os.umask(before)


@posix
def test_a_private_folder_behind_a_link_will_do(places, monkeypatch):
    (places / "private").mkdir(mode=0o700)
    (places / "link").symlink_to("private")
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "link"))
    assert home.cache_folder() == places / "link"


def test_a_folder_that_can_only_be_read_will_do_where_none_can_be_written(places, monkeypatch):
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "named"))
    monkeypatch.setattr(home, "_writable", lambda folder: folder.parent == places / "tmp")
    assert home.cache_folder().parent == places / "tmp"
    monkeypatch.setattr(home, "_writable", lambda folder: False)
    assert home.cache_folder() == places / "named"


def test_neither_a_home_nor_a_folder_for_temporary_files(places, monkeypatch):
    def nothing():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # of a user whom the system does not know
    assert home.cache_folder().parent == places / "tmp"
    monkeypatch.setattr(home.tempfile, "gettempdir", nothing)
    assert home.cache_folder() is None


@only_compiled
def test_without_any_folder_everything_is_compiled_anew(tmp_path):
    (tmp_path / "file").write_text("no folder")
    nowhere = dict.fromkeys(("ONLINEAR_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path / "file" / "x"))
    quick = textwrap.dedent(example("pa"))  # to compile
    code = f"import tempfile; tempfile.tempdir = {nowhere['TMPDIR']!r}\n{quick}"
    found = run(code, PYTHONPATH=str(HOME.parent), **nowhere)
    text = run(quick, PYTHONPATH=str(HOME.parent), NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(found, text, rtol=0, atol=1e-12)


# --- damaged caches --------------------------------------------------------------------------------------------------


def _sum_of_squares(x):
    total = 0.0
    for value in x:
        total += value * value
    return total


def _sum(x):
    return x.sum()


def kept(text=_sum_of_squares):
    """A new dispatcher, as another process would have it."""
    return cache.keep_on_disk(njit(text), text)


def computed(text=_sum_of_squares):
    """Whether a new dispatcher found its code on disk; its result is right either way."""
    found = kept(text)
    assert found(np.arange(4.0)) == (14.0 if text is _sum_of_squares else 6.0)
    return sum(found.stats.cache_hits.values()) == 1


@pytest.fixture
def private_cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(cache, "_CACHE", folder)
    cache._say_once.cache_clear()
    return folder


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache folder that has the code of both texts."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_CACHE", folder)
        assert not computed()
        assert not computed(_sum)
    return folder


def entry(folder):
    (path,) = (path for path in folder.rglob("*.nbc") if "_sum_of_squares" in path.name)
    return path


def with_digest(content):
    return hashlib.sha256(content).digest() + content


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def folder_instead(path):
    path.unlink()
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").write_bytes(b"x")


def link_instead(path):
    path.unlink()
    path.symlink_to("nowhere")


def pipe_instead(path):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut in the digest": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "the digest alone": lambda path: path.write_bytes(path.read_bytes()[:32]),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut by one byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "garbage": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "one bit of the digest": lambda path: path.write_bytes(flipped(path.read_bytes(), 3)),
    "one bit of the code": lambda path: path.write_bytes(flipped(path.read_bytes(), path.stat().st_size // 2)),
    "no pickle": lambda path: path.write_bytes(with_digest(b"no pickle at all")),
    "a pickle of another thing": lambda path: path.write_bytes(with_digest(pickle.dumps([1, 2, 3]))),
    "a pickle of a missing module": lambda path: path.write_bytes(with_digest(b"cno.such.module\nthing\n.")),
    "an entry of other code": lambda path: path.write_bytes(
        next(other for other in path.parent.glob("*.nbc") if "_sum_of" not in other.name).read_bytes()
    ),
    "code that does not load": lambda path: path.write_bytes(with_digest(pickle.dumps((key_of(path), (1, 2, 3))))),
    "not to be read": lambda path: path.chmod(0),
    "a folder": folder_instead,
    "a link to nowhere": link_instead,
    "a pipe": pipe_instead,
    "no folder": lambda path: shutil.rmtree(path.parent),
    "a file for the folder": lambda path: (shutil.rmtree(path.parent), path.parent.write_bytes(b"x")),
    "a file for the cache": lambda path: (shutil.rmtree(path.parent.parent), path.parent.parent.write_bytes(b"x")),
}


def key_of(path):
    return pickle.loads(path.read_bytes()[32:])[0]


@only_compiled
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_of_the_cache_is_a_miss(private_cache, filled, damage):
    if damage in (pipe_instead, link_instead, DAMAGE["not to be read"]) and os.name != "posix":
        pytest.skip("links, pipes and modes are POSIX's")
    shutil.copytree(filled, private_cache, dirs_exist_ok=True)
    assert computed()
    damage(entry(private_cache))
    hit = computed()
    assert hit == (damage is DAMAGE["not to be read"] and os.geteuid() == 0)
    if private_cache.is_dir():
        assert computed(), "it was written again, whole"
        assert not [path for path in private_cache.rglob("*") if path.is_file() and path.suffix != ".nbc"]


@only_compiled
@pytest.mark.parametrize(
    ("error", "level"),
    [
        (OSError(28, "No space left on device"), logging.WARNING),
        (OSError(5, "Input/output error"), logging.WARNING),
        (OSError(30, "Read-only file system"), logging.INFO),
        (PermissionError(13, "Permission denied"), logging.INFO),
        (MemoryError(), logging.WARNING),
    ],
)
def test_a_cache_that_cannot_be_written_is_told_once(private_cache, monkeypatch, caplog, error, level):
    def refuse(path, content):
        raise error

    monkeypatch.setattr(machine_code.writing, "write", refuse)
    caplog.set_level(logging.INFO, "onlinear")
    for text in (_sum_of_squares, _sum, _sum_of_squares):
        assert not computed(text)
    (record,) = caplog.records
    assert record.levelno == level
    assert str(private_cache) in record.getMessage()
    assert len(record.getMessage().splitlines()) == 1


@only_compiled
def test_code_that_cannot_be_stored_is_compiled_all_the_same(private_cache, monkeypatch, caplog):
    def refuse(value):
        raise pickle.PicklingError("no way")

    monkeypatch.setattr(cache, "dumps", refuse)
    assert not computed()
    assert "PicklingError: no way" in caplog.text
    assert not list(private_cache.rglob("*.nbc"))


@only_compiled
@posix
def test_entries_are_files_of_the_one_writer_in_a_private_folder(private_cache, monkeypatch):
    synced = []
    original = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(handle) or original(handle))
    computed()
    assert len(synced) == 2  # the file and its folder
    assert stat.S_IMODE(entry(private_cache).parent.stat().st_mode) == 0o700


@only_compiled
def test_names_of_entries_are_the_same_in_every_process(private_cache):
    """Nothing in them is an address."""
    computed()
    key = key_of(entry(private_cache))
    assert " at 0x" not in key
    assert "_sum_of_squares" in key


def _held_first(here):
    return 1


@only_compiled
def test_parts_of_one_name_from_two_modules_are_two():
    class Here(NamedTuple):
        x: float = 1.0

    class There(NamedTuple):
        x: float = 1.0

    There.__module__, There.__qualname__ = "elsewhere", Here.__qualname__
    assert cache._spelt((typeof(Here()),)) != cache._spelt((typeof(There()),))
    held = cache._spelt(Held(Here()).kind), cache._spelt(Held(There()).kind)
    assert held[0] != held[1]
    assert len({cache._spelt(Held(part()).routine(_held_first, {}).kind) for part in (Here, There)}) == 2


@kernel
def _ticked(part):
    return part.tick((1.0, 0.0), 1.0)[1]


@only_compiled
def test_a_class_that_was_edited_is_another_though_it_has_the_same_name():
    def made(rate):
        class Edited(NamedTuple):
            strength: float = 1.0

            def tick(self, clock, eta):
                return clock[0], rate * self.strength

        return adopt(Edited)()

    parts = [made(rate) for rate in (2.0, 5.0, 7.0)]
    assert [_ticked(part) for part in parts] == [2.0, 5.0, 7.0]
    assert len({Held(part).kind for part in parts}) == 3
    assert len({Held(part).routine(_held_first, {}).kind for part in parts}) == 3


@pytest.mark.parametrize("held", [(MySoft(),), (1.0, (None, (MySoft(),))), (Held(1.0, (MySoft(),)),)])
def test_code_for_a_users_part_is_not_kept_wherever_it_is_held(held):
    assert not Held(*held).is_ours
    assert Held(1.0, (None, ElasticNet(0.1)), Held(2.0)).is_ours


@only_compiled
def test_a_first_use_says_a_word_and_a_damaged_cache_gives_the_same_numbers(tmp_path):
    def ran():
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "ONLINEAR", "XDG"))}
        places = {"PYTHONPATH": str(HOME.parent), "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
        code = (
            "import sys; sys.ps1 = 'a shell'\n"
            + textwrap.dedent(example("comid,eta=0.3", penalty="l1,l1=0.01", average="uniform"))  # which takes a while
            + "import threading; print(threading.active_count())"
        )
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=clean | places, capture_output=True, text=True, timeout=300, check=True)

    first, word = ran(), f"onlinear: compiling kernels for this machine (first use; kept in {tmp_path / 'cache'})\n"
    assert first.stderr == word
    assert first.stdout.splitlines()[-1] == "1", "no thread is left"
    before = written(tmp_path / "cache")
    damaged = sorted(before)[:3]  # kernels that are compiled quickly
    for path in damaged:
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    assert ran().stdout == first.stdout
    after = written(tmp_path / "cache")
    assert set(after) == set(before)
    assert all(after[path][1] > before[path][1] * 3 // 4 for path in damaged), "what was damaged is written whole again"


# --- a word while kernels are compiled -------------------------------------------------------------------------------


@pytest.fixture
def compiling(monkeypatch, caplog):
    """A listener of its own, and what starts and ends a compilation."""
    caplog.set_level(logging.INFO, "onlinear")
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    listener = cache._Compiling()

    def compilation(module, seconds=0.0, inner=None, error=None):
        found = SimpleNamespace(py_func=SimpleNamespace(__module__=module), _cache=None)
        event = SimpleNamespace(data={"dispatcher": found})
        listener.on_start(event)
        try:
            time.sleep(seconds)
            if inner is not None:
                compilation(*inner)
        finally:
            listener.on_end(event)

    return compilation


@only_compiled
def test_a_word_is_said_once_after_a_while(compiling, caplog):
    threads = threading.active_count()
    for _ in range(20):
        compiling("onlinear.rows", 0.001)
    assert not caplog.records
    assert threading.active_count() == threads
    compiling("onlinear.rows", 0.15, ("onlinear.losses", 0.15))
    compiling("onlinear.rows", 0.3)
    assert threading.active_count() == threads
    (record,) = caplog.records
    assert record.levelno == logging.INFO, "nobody watches"
    assert record.name == "onlinear.compiling"


@only_compiled
def test_many_short_compilations_are_a_long_one(compiling, caplog):
    for _ in range(5):
        compiling("onlinear.rows", 0.06)
    assert len(caplog.records) == 1


@only_compiled
def test_compilations_of_others_are_not_ours_to_speak_of(compiling, caplog):
    compiling("their.module", 0.3, ("onlinear.rows", 0.1))
    compiling("their.module", 0.3)
    assert not caplog.records


@only_compiled
def test_somebody_who_watches_sees_it_without_setting_up_logging(compiling, caplog, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    compiling("onlinear.rows", 0.3)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_command_has_its_own_words(monkeypatch):
    from onlinear import cli

    logger = logging.getLogger("onlinear.compiling")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(cli, "application", lambda: lambda: None)
    monkeypatch.setattr(cli, "end_with_a_word", lambda: None)  # signals go to these tests
    cli.main()
    assert logger.disabled
