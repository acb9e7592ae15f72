"""Machine code from the disk, called without Numba: LLVM links it, and Numba's two libraries of C functions are all it needs.

Numba takes longer to import than many a run takes. It is imported where something is compiled, and where its settings are not
the usual ones.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled.forks import LINKING, lasting
from onlinear.compiled.home import CACHE, COMPILED, DIGEST, NUMBA_SETTINGS, is_ours
from onlinear.files import writing

HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"}  # settings that do not change the code of a kernel
_C, _FORTRAN = 0x1, 0x2
_LAYOUT = _C | _FORTRAN | 0x100 | 0x400  # the flags of an array that are part of its type: these, aligned, writeable
_NUMBERS = frozenset({bool, int, float, type(None), np.bool_, *np.sctypeDict.values()} - {np.longdouble, np.clongdouble})
_ALWAYS = _NUMBERS - {int}  # whatever the value
_LIBRARIES = ("_helperlib", "_dynfunc", "core.runtime._nrt_python")


class UnknownTypeError(Exception):
    """An argument whose type only Numba can tell."""


class Code(NamedTuple):
    """The machine code of a function, as it is kept on disk."""

    machine_code: bytes
    bitcode: bytes
    module: str
    qualname: str
    entry: str  # the symbol that Python calls
    address: str  # the symbol whose address losses give
    environment: str  # the symbol that holds the address of the constants
    constants: bytes
    rest: bytes  # what Numba keeps besides


def refuse_sub_interpreter() -> None:
    """Raise RuntimeError in an interpreter that is not the process's first: compiled code that raises asks for the lock of that
    one, and would wait for ever."""
    if sys.implementation.name != "cpython":
        return
    names = "PyInterpreterState_Get", "PyInterpreterState_Main"
    own, main = (ctypes.PYFUNCTYPE(ctypes.c_void_p)((name, ctypes.pythonapi))() for name in names)
    if own != main:
        raise RuntimeError(
            "onlinear needs the main interpreter of the process, this is a sub-interpreter: its compiled code would wait for "
            "ever. Under mod_wsgi set WSGIApplicationGroup %{GLOBAL}."
        )


def stands_apart(array: np.ndarray) -> bool:
    """Whether an array of one row or none is part of a larger one. NumPy calls it contiguous: it has no second row, which would
    lie further off. Its type is that of arrays of more rows, so that one kernel serves models of any number of features."""
    return array.ndim > 0 and len(array) < 2 and array.strides[0] > array.itemsize * prod(array.shape[1:]) > 0


def layout(array: np.ndarray) -> int:
    """The flags of an array that are part of its type; an array that is contiguous both ways counts as C's."""
    found = array.flags.num & _LAYOUT
    if stands_apart(array):
        return found & ~(_C | _FORTRAN)
    return found & ~_FORTRAN if found & _C else found


def sign(value: Any) -> Any:
    """What tells the type of an argument. Raises UnknownTypeError where that takes Numba."""
    kind = type(value)
    if kind is np.ndarray:
        if value.dtype.kind not in "biuf" or not value.dtype.isnative:
            raise UnknownTypeError
        return value.dtype, value.ndim, layout(value)
    if kind in _NUMBERS:
        if kind is int and not -(2**63) <= value < 2**63:
            raise UnknownTypeError
        return kind
    if isinstance(value, tuple) and (kind is tuple or is_ours(kind.__module__)):
        kinds = kind, *map(type, value)
        return kinds if _ALWAYS.issuperset(kinds[1:]) else (kind, *map(sign, value))
    raise UnknownTypeError


def _spelt(found: Any) -> str:
    """A sign as text that is the same in every process."""
    if isinstance(found, tuple):
        return f"({', '.join(map(_spelt, found))})"
    return f"{found.__module__}.{found.__qualname__}" if isinstance(found, type) else str(found)


_LOCK = lasting(threading.RLock(), LINKING)


def _llvm() -> Any:
    """LLVM, which is imported when it is needed."""
    with _LOCK:
        from llvmlite import binding

    return binding


@cache
def _usual() -> str:
    """What machine code is for besides its text: this Python, Numba and processor; empty where code is left to Numba."""
    spec = find_spec("numba") if COMPILED and CACHE is not None else None
    unusual = any(name.startswith("NUMBA_") and name not in HARMLESS and text for name, text in os.environ.items())
    if spec is None or spec.origin is None or unusual or os.path.exists(NUMBA_SETTINGS):
        return ""
    binding = _llvm()
    version = Path(spec.origin).with_name("_version.py").read_bytes()
    machine = binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return repr((sys.implementation.cache_tag, hashlib.sha256(version).hexdigest(), machine))


def index_file(name: str, signs: Any) -> tuple[Path, str] | None:
    """The file that says where the machine code of a function is for arguments of these types, and what the file is for. None
    for functions that are not this package's, and where code is left to Numba."""
    try:
        usual = _usual()
    except (OSError, ImportError, AttributeError, RuntimeError):
        usual = ""
    if not usual or CACHE is None or not is_ours(name):
        return None
    key = repr((usual, name, _spelt(signs)))
    return CACHE / DIGEST / f"{name[-80:]}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbi", key


def content(path: Path, key: str) -> Any:
    """What a file keeps for ``key``. The digest is looked at first: of damaged content nothing is read, let alone run."""
    if not path.is_file():  # to read a pipe would wait for ever
        raise ValueError("no file")
    whole, size = path.read_bytes(), hashlib.sha256().digest_size
    if hashlib.sha256(memoryview(whole)[size:]).digest() != whole[:size]:
        raise ValueError("damaged")
    found, payload = pickle.loads(memoryview(whole)[size:])
    if found != key:
        raise ValueError("for something else")
    return payload


def write(path: Path, key: str, payload: Any) -> None:
    """Keep a payload for ``key``."""
    whole = pickle.dumps((key, payload), pickle.HIGHEST_PROTOCOL)
    writing.write(path, hashlib.sha256(whole).digest() + whole)


def found_on_disk(name: str, signs: Any, use: Callable[[Linked], Any]) -> Any:
    """What ``use`` makes of the machine code of a function for arguments of these types; None where it is not on disk."""
    place = index_file(name, signs)
    if place is None:
        return None
    try:
        name, key = content(*place)
        return use(Linked(Code(*content(place[0].with_name(name), key))))
    except Exception:  # whatever it is, it is only the cache's: Numba looks again
        return None


class Linked:
    """Machine code in memory, which stays as long as this object does."""

    def __init__(self, code: Code) -> None:
        with _LOCK:
            libraries = _libraries()
            self._engine = _engine()
            self._engine.add_object_file(_llvm().ObjectFileRef.from_data(code.machine_code))
            self._engine.finalize_object()
            self._code, self._dynfunc = code, libraries["_dynfunc"]

    def kept_address(self) -> int:
        """The address of a loss's method, which is as good as long as the process."""
        _held.append(self)
        return self._found(self._code.address)

    def _found(self, symbol: str) -> int:
        with _LOCK:  # code may be written where it is first asked for
            place = self._engine.get_function_address(symbol)
        if not place:
            raise ValueError("no such function")
        return int(place)

    def function(self) -> Callable[..., Any]:
        """What Python calls."""
        code, module = self._code, import_module(self._code.module)
        environment = self._dynfunc.Environment(module.__dict__)
        environment.consts[:] = pickle.loads(code.constants)
        entry = self._found(code.entry)
        place = self._engine.get_global_value_address(code.environment)
        ctypes.c_void_p.from_address(place).value = id(environment)
        name = code.qualname.rpartition(".")[2]
        return self._dynfunc.make_function(module, name, "", entry, environment, (self,))


_held: list[Linked] = []  # whose addresses are in use


def _engine() -> Any:
    """An engine of its own for each function: names within one do not meet those of another."""
    binding = _llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    reloc = "static" if target.name.startswith("x86") else "default"  # as Numba has it
    machine = target.create_target_machine(reloc=reloc, codemodel="jitdefault", jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


@cache
def _libraries() -> dict[str, Any]:
    """Numba's libraries of C functions, which machine code finds by name from now on."""
    binding = _llvm()
    found = {name: _library(name) for name in _LIBRARIES}
    helpers, dynfunc, runtime = found.values()
    for name, address in helpers.c_helpers.items():
        binding.add_symbol(name, address)  # the functions of <math.h> by their own names
    for name, address in [*helpers.c_helpers.items(), *dynfunc.c_helpers.items()]:
        binding.add_symbol(f"numba_{name}", address)
    for name, address in runtime.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    binding.add_symbol("_Py_NoneStruct", id(None))
    for name, kind in vars(import_module("builtins")).items():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            binding.add_symbol(f"PyExc_{name}", id(kind))
    runtime.memsys_use_cpython_allocator()
    return found


def _library(name: str) -> Any:
    """A library of Numba's, under the name by which Numba itself finds it later."""
    whole = f"numba.{name}"
    if whole not in sys.modules:
        spec = find_spec("numba")
        folder = Path(str(spec.origin)).parent.joinpath(*name.split(".")[:-1])  # type: ignore[union-attr]
        last = name.rpartition(".")[2]
        path = next(folder / f"{last}{suffix}" for suffix in EXTENSION_SUFFIXES if (folder / f"{last}{suffix}").is_file())
        found = spec_from_file_location(whole, path, loader=ExtensionFileLoader(whole, str(path)))
        module = module_from_spec(found)  # type: ignore[arg-type]
        found.loader.exec_module(module)  # type: ignore[union-attr]
        sys.modules[whole] = module
    return sys.modules[whole]
