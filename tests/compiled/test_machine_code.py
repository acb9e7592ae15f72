"""Machine code from the disk runs without Numba, gives the same numbers, and no damage of the cache is an error."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from seldom import seldom

from onlinear import Learner
from onlinear.compiled import COMPILED, BoundLoss, cache, every, held, home, machine_code, methods
from onlinear.compiled.machine_code import UnknownTypeError, sign
from onlinear.compiled.methods import Kernel
from onlinear.losses import Hinge
from onlinear.rows import Rows
from onlinear.solvers.core.engine import Examples

pytestmark = pytest.mark.skipif(not COMPILED, reason="with NUMBA_DISABLE_JIT=1 there is no machine code")


def _weighted(x, factor, pair):
    total = 0.0
    for value in x:
        total += value * factor
    return total + pair[0] + pair[1]


_weighted.__module__ = "onlinear.rows.arrays"  # only this package's own code is kept so
ARGS = np.arange(4.0), 2.0, (1, 0.5)
STRIDED = np.repeat(ARGS[0], 2)[::2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    if not machine_code.index_file("onlinear.x", "x"):
        pytest.skip("Numba has settings of its own here: it loads all code itself")
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setattr(machine_code, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(cache, "_CACHE", tmp_path / "cache")
    return tmp_path / "cache" / home.DIGEST


class Watched(Kernel):
    """A kernel that knows whether Numba made it."""

    asked = False

    def _keep(self):
        self.asked = True
        return super()._keep()


def by_numba(*args):
    """Whether a new kernel, as another process would have it, needed Numba for what is right either way."""
    found = Watched(_weighted, no_cfunc_wrapper=True)
    assert found(*args) == 13.5
    return found.asked


def test_code_from_the_disk_needs_no_compiler(folder):
    assert by_numba(*ARGS)
    assert sorted(path.suffix for path in folder.iterdir()) == [".nbc", ".nbi"]
    assert not by_numba(*ARGS)
    assert by_numba(STRIDED, *ARGS[1:]), "another layout is another function"
    assert not by_numba(STRIDED, *ARGS[1:])


def test_arguments_of_other_types_are_errors_as_numba_has_them(folder):
    assert by_numba(*ARGS)
    found = Kernel(_weighted, no_cfunc_wrapper=True)
    with pytest.raises(TypeError):
        found(*ARGS, 1.0)
    with pytest.raises(Exception, match="unicode_type"):
        found("text", 2.0, (1, 0.5))


def _shorten(path):
    path.write_bytes(path.read_bytes()[:-9])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def _swap(path):
    """The file of another kernel, whole, under this one's name."""
    path.write_bytes(next(other for other in path.parent.iterdir() if other.suffix != path.suffix).read_bytes())


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [_shorten, _flip, _swap, Path.unlink, lambda path: path.write_bytes(b"")])
def test_damage_is_a_miss_and_is_mended(folder, suffix, damage):
    assert by_numba(*ARGS)
    damage(next(path for path in folder.iterdir() if path.suffix == suffix))
    assert by_numba(*ARGS)
    assert not by_numba(*ARGS)


def test_code_of_another_numba_or_machine_is_not_run(folder, monkeypatch):
    assert by_numba(*ARGS)
    usual = machine_code._usual()
    monkeypatch.setattr(machine_code, "_usual", lambda: usual + " another")
    place = next(path for path in folder.iterdir() if path.suffix == ".nbi")
    other, _ = machine_code.index_file("onlinear.rows.arrays._weighted", tuple(map(sign, ARGS)))
    other.write_bytes(place.read_bytes())
    assert by_numba(*ARGS)


def test_with_settings_of_its_own_numba_loads_all_code(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert machine_code._usual.__wrapped__() == ""
    monkeypatch.delenv("NUMBA_OPT")
    monkeypatch.chdir(tmp_path)
    Path(".numba_config.yaml").write_text("opt: 1\n")
    assert machine_code._usual.__wrapped__() == ""


def test_code_of_other_packages_is_not_looked_for():
    assert machine_code.index_file("elsewhere.text", "x") is None


def test_types_are_told_apart():
    one, loss = np.zeros(2), BoundLoss(1, 2, 3)
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    arrays = (
        one,
        np.zeros(4)[::2],
        np.zeros((4, 4))[:, ::2],
        frozen,
        one.astype("f4"),
        np.zeros((2, 2)),
        np.zeros((2, 2), order="F"),
    )
    numbers = 1, 1.0, True, None, np.float32(1)
    kinds = (*arrays, *numbers, (1, 1.0), (1.0, 1), (1,), loss, Hinge())
    assert len({sign(kind) for kind in kinds}) == len(kinds)
    assert sign(one) == sign(np.ones(7))
    for several in (np.zeros(6), np.zeros((6, 3)), np.zeros((6, 1))):  # one row has the type of several
        assert sign(several[:2:2]) == sign(several[::2]) != sign(several[:1]) == sign(several[:1].copy()) == sign(several)
    for value in ("x", 2**63, one.astype(">f8"), np.array(["a"]), np.zeros(2).view(np.matrix), [1], (1, "x")):
        with pytest.raises(UnknownTypeError):
            sign(value)


@pytest.mark.parametrize(
    ("solver", "outputs"),
    [("comid", 1), ("comid", 4), ("ftrl", 1), seldom("ftrl", 4)],
)
def test_a_model_of_one_feature_takes_the_kernels_of_others(solver, outputs, monkeypatch):
    def learned(features):
        X, y = np.ones((3, features)), np.ones((3, outputs))
        model = Learner(solver, "squared", "none", "uniform", n_features=features, n_outputs=outputs)
        model.learn(X, y).learn_one([0], [1.0], y[0] if outputs > 1 else 1.0)
        return model.weights()[0]

    several = learned(2)
    monkeypatch.setattr(machine_code, "found_on_disk", None)
    monkeypatch.setattr(methods, "found_on_disk", None)
    monkeypatch.setattr(methods, "compiler", None)
    monkeypatch.setattr(held, "compiler", None)
    assert learned(1).shape == several.shape


def test_in_a_warm_cache_nothing_imports_numba(tmp_path):
    """Neither a run of the command nor a fit, and both as before."""
    if not machine_code.index_file("onlinear.x", "x"):
        pytest.skip("Numba has settings of its own here: it loads all code itself")
    (tmp_path / "rows.svm").write_text("1 1:1 3:0.5\n-1 2:1\n" * 8)
    code = """
        import sys
        from onlinear.cli import app
        app("train rows.svm -q -m m --solver comid".split(), standalone_mode=False)
        import numpy as np
        from onlinear import Learner
        learner = Learner("comid", "hinge", "l1,l1=1e-3").learn(np.eye(3), np.array([1.0, -1.0, 1.0]))
        print(learner.weights().tolist(), file=sys.stderr)
        print("numba" in sys.modules, file=sys.stderr)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    first, second = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300).stderr.split("\n")
        for _ in range(2)
    )
    assert second[0] == first[0]
    assert second[1] == "False"


def test_a_sub_interpreter_is_refused():
    """The first call waited for ever for the lock of the main interpreter."""
    interpreters = pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    inside = textwrap.dedent("""
        import warnings
        warnings.simplefilter("ignore")  # NumPy has its doubts too
        from onlinear import Learner
        try:
            Learner("comid", "hinge").learn([[1.0]], [1.0])
        except RuntimeError as error:
            print(error, flush=True)
    """)
    kind = "isolated=False" if sys.version_info < (3, 13) else "'legacy'"  # one that lets NumPy be imported
    text = f"import {interpreters.__name__} as made\nmade.run_string(made.create({kind}), {inside!r})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100, check=False)
    assert "this is a sub-interpreter" in done.stdout


@pytest.mark.parametrize("rows", [(), (8,)])
def test_vectors_of_no_columns_have_the_type_of_those_of_many(rows):
    found = {sign(every(np.zeros((2 * n, *rows)), 1, 2)) for n in (0, 1, 3)}
    assert len(found) == 1, "a model without columns would compile its kernels once more when it has some"
    assert found != {sign(np.zeros((0, *rows)))}
    np.testing.assert_array_equal(every(np.arange(6), 1, 2), [1, 3, 5])


@pytest.mark.parametrize("solver", ["implicit-ftrl", "odrs", "csgd,m=9"])
def test_so_do_the_kernels_of_solvers(solver):
    rows = Rows(np.zeros(1, np.uint64), np.zeros(0, np.uint32), np.zeros(0))
    found = []
    for columns in (None, 1, 3):
        learner = Learner(solver, "squared", n_features=columns)
        _, args = learner.engine.call(learner.states[0], Examples(rows, 0.0, *np.zeros((3, 0))))
        found.append([sign(arg) for arg in args if isinstance(arg, (np.ndarray, tuple))])
    assert found[0] == found[1] == found[2]
