"""What the bridge needs of Numba beyond its public interface: what a new release of Numba lacks is named here."""

import ast
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numba import njit, typeof, types

from onlinear.compiled import COMPILED, _private

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs compiled kernels")

NAMES = [
    (node.module, alias.name)
    for node in ast.walk(ast.parse(Path(_private.__file__).read_text()))
    if isinstance(node, ast.ImportFrom) and node.module.startswith("numba")
    for alias in node.names
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_numba_has_the_name(module, name):
    found = hasattr(import_module(module), name) or f"{module}.{name}" in sys.modules  # as `from module import name` looks
    assert found, f"{module}.{name} is gone: see onlinear/compiled/_private.py for what needs it"


def test_numba_has_the_attributes():
    """Attributes of Numba's objects that the bridge uses, each with the file that does."""
    assert not _private.LACKING
    assert callable(_private.CompileResult._rebuild), "cache.py reads compiled code with it"
    assert callable(_private.CompileResult._reduce), "cache.py writes compiled code with it"
    for name in ("load_overload", "save_overload", "flush"):
        assert callable(getattr(_private.NullCache, name)), f"cache.py stands in for a cache that has {name}"
    found = njit(lambda x: x + 1)
    assert isinstance(found._cache, _private.NullCache), "cache.py replaces a dispatcher's _cache"
    found.compile((types.int64,))
    assert callable(found.overloads[types.int64,].entry_point), "compiler.py calls compiled code without looking it up"
    assert found.overloads[types.int64,].signature.return_type == types.int64
    template = _private.make_overload_method_template(types.NamedTuple, "x", lambda self: None, "never")
    assert callable(template._resolve), "bridges.py answers for parts alone"
    for name in (
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_verify_declare_only_symbols",
        "get_pointer_to_function",
    ):
        assert callable(getattr(_private.JITCodeLibrary, name)), f"code that is linked alone needs {name} of its library"
    assert callable(_private.PassManager._runPass), "passes.py runs the steps of the compiler"
    assert hasattr(typeof(np.zeros(1)), "layout"), "lanes.py asks how far apart the numbers of an array are"


def test_without_the_names_of_the_disk_cache_all_works(tmp_path):
    code = """
        import logging, sys
        import numba.core.caching, numba.core.ccallback
        del numba.core.caching.NullCache
        logging.basicConfig(level=logging.WARNING)
        import numpy as np
        from onlinear import Learner
        learner = Learner("pa", "hinge").learn(np.eye(3), np.array([1.0, -1.0, 1.0]))
        print(learner.weights())
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "ONLINEAR_CACHE_DIR": str(tmp_path)},  # what is on disk needs no names of Numba
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert found.stdout.startswith("[")
    assert found.stderr.count("compiled anew by each process") == 1, found.stderr
    assert "NullCache" in found.stderr
