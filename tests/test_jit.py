"""The bridge: compiled code is cached and never stale, users' parts run inside the loop, everything also runs interpreted."""

import math
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import onlinear
from onlinear import jit
from onlinear.jit import COMPILED, Held, bind_loss, kernel, load, opened, store
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
    learner = Learner({solver!r}, {loss}, penalty={penalty!r}, average="uniform", fit_intercept=True, n_features=5)
    learner.learn(X, y)
    print([*learner.weights(), *learner.weights(average=True), learner.intercept(), learner.progressive_loss])
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


def example(solver="comid,eta=0.3", loss="'hinge'", penalty="l1,l1=0.01"):
    return RUN.format(solver=solver, loss=loss, penalty=penalty)


def written(folder):
    """Files of compiled code, with what tells whether one was written again."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in Path(folder).rglob("*.nb?")}


@only_compiled
def test_a_changed_source_file_gives_the_new_result_and_an_unchanged_one_hits_the_cache(tmp_path):
    shutil.copytree(HOME, tmp_path / "src" / "onlinear", ignore=shutil.ignore_patterns("__pycache__"))
    places = {"PYTHONPATH": str(tmp_path / "src"), "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    first = run(example(), **places)
    compiled = written(tmp_path / "cache")
    assert compiled
    np.testing.assert_array_equal(run(example(), **places), first)
    assert written(tmp_path / "cache") == compiled  # nothing was compiled the second time, losses included

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
    np.testing.assert_array_equal(run(example(), **places), first)


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
        print(list(Learner("comid,eta=0.3", Mine(), penalty=Soft(), n_features=5).learn(X, y).weights()))
    """
    places = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{HOME.parent}", "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    results = []
    for loss, pen in (("0.5", "1.0"), ("0.7", "1.0"), ("0.7", "5.0")):
        module.write_text(textwrap.dedent(body).replace("LOSS", loss).replace("PEN", pen))
        results.append(run(code, **places))
        assert not any("mine" in path.name or "Mine" in path.name for path in written(tmp_path / "cache"))
    assert len({tuple(result) for result in results}) == 3


@pytest.mark.parametrize("loss", ["'logistic'", "'poisson'", "'huber,delta=0.5'"])
@only_compiled
def test_without_compilation_the_results_are_the_same(loss, tmp_path):
    code = example(loss=loss, penalty="elastic-net,l1=0.01,l2=0.1")
    code = code.replace("-1.0, 1.0)", "0.0, 1.0)") if loss == "'poisson'" else code
    places = {"PYTHONPATH": str(HOME.parent)}
    compiled, text = run(code, **places), run(code, NUMBA_DISABLE_JIT="1", **places)
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


class MyBranches(MySoft):
    def weight(self, v, clock):
        if v > clock[1]:
            return v - clock[1]
        return v + clock[1] if v < -clock[1] else 0.0


@only_compiled
def test_a_users_method_takes_four_entries_at_once_where_it_can_and_gives_the_same_bits():
    clock = jit.typeof((1.0, 0.5))
    for part, whole in ((MySoft(), True), (MyBranches(), False)):
        assert jit._takes_lanes(jit._compiled(type(part).weight), (jit.typeof(part), jit._ROW, clock)) is whole
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

    before = {name: bridge.__signature__ for name, bridge in jit._bridges.items()}
    jit.adopt(Lenient)
    assert {name: bridge.__signature__ for name, bridge in jit._bridges.items()} == before
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


def test_a_field_with_the_name_of_a_method_is_refused():
    class Shadow(NamedTuple):
        weight: float = 1.0

        def value(self, s, y):
            return 0.0

        def slope(self, s, y):
            return 0.0

    with pytest.raises(TypeError, match=r"Shadow: the field 'weight' has the name of a method of .*; rename the field"):
        Learner("comid", Shadow())


def test_a_method_with_the_name_of_a_field_is_refused():
    class Shadow(NamedTuple):
        a: float = 1.0

        def value(self, s, y):
            return 0.0

        def slope(self, s, y):
            return 0.0

        def margin(self, s, y):
            return s * y

    with pytest.raises(TypeError, match=r"Shadow: the method 'margin' has the name of a field of .*; rename it"):
        Learner("comid", Shadow())


def test_the_built_in_parts_clash_nowhere():
    assert not set(jit._fields) & set(jit._bridged)


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


@only_compiled
def test_a_part_that_a_kernel_cannot_take_is_named():
    class NoWeight(NamedTuple):
        a: float = 1.0

    with pytest.raises(TypeError, match="_prox_first does not compile with NoWeight"):
        _prox_first(NoWeight(), np.array([2.0]))


def test_bound_fields_follow_the_settings():
    for margin in (0.5, 2.0):
        bound, fields = bind_loss(Hinge(margin=margin))
        np.testing.assert_array_equal(fields, [1.0, margin])
        out = np.zeros(1)
        _slope_at(bound, 1.0, out)
        assert out[0] == (-1.0 if margin > 1.0 else 0.0)


@kernel
def _slope_at(loss, s, out):
    out[0] = loss.slope(s, 1.0)


# --- where compiled code is kept -------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.config, "CACHE_DIR", "")
    monkeypatch.delenv("ONLINEAR_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path


def test_the_cache_is_where_it_is_told_to_be(places, monkeypatch):
    assert jit._cache_folder() == places / "home" / ".cache" / "onlinear"
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert jit._cache_folder() == places / "xdg" / "onlinear"
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "named"))
    assert jit._cache_folder() == places / "named"


def test_a_home_that_cannot_be_written(places, monkeypatch):
    (places / "file").write_text("no folder")
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(places / "file" / "cache"))
    monkeypatch.setenv("HOME", str(places / "file"))
    folder = jit._cache_folder()
    assert folder.parent == places / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of folders are POSIX's")
def test_a_folder_others_may_write_is_not_trusted(places, monkeypatch):
    (places / "file").write_text("no folder")
    monkeypatch.setenv("HOME", str(places / "file"))
    shared = places / "tmp" / f"onlinear-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    assert jit._cache_folder() is None


@only_compiled
def test_without_any_folder_everything_is_compiled_anew(tmp_path):
    (tmp_path / "file").write_text("no folder")
    nowhere = dict.fromkeys(("ONLINEAR_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "TMPDIR"), str(tmp_path / "file" / "x"))
    code = f"import tempfile; tempfile.tempdir = {nowhere['TMPDIR']!r}\n" + textwrap.dedent(example())
    found = run(code, PYTHONPATH=str(HOME.parent), **nowhere)
    text = run(example(), PYTHONPATH=str(HOME.parent), NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(found, text, rtol=0, atol=1e-12)
