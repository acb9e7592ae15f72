"""Every name of Numba that is not part of its public interface, in one place.

What is public (``numba``, ``numba.types``, ``numba.extending``, ``llvmlite.ir``) the other files import themselves. If a
release of Numba lacks one of the names below, ``tests/compiled/test_private.py`` names it. Without those of the disk cache the
package works all the same: each process compiles its kernels anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# What the bridge cannot do without.
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.core.imputils import impl_ret_borrowed
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import (
    AbstractTemplate,
    infer,
    infer_getattr,
    infer_global,
    make_overload_method_template,
    make_overload_template,
)
from numba.extending import overload

from onlinear.compiled.forks import COMPILING, lasting

LACKING = ""  # the name that keeps compiled code from being kept on disk
try:
    from numba.core.caching import NullCache
    from numba.core.ccallback import CFunc
    from numba.core.compiler import CompileResult
    from numba.core.environment import Environment, lookup_environment
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps
    from numba.core.sigutils import normalize_signature
except ImportError as error:
    LACKING = str(error)
    NullCache, CFunc, CompileResult = object, None, None  # type: ignore[misc, assignment]
    Environment = lookup_environment = None  # type: ignore[misc, assignment]
    rtsys = dumps = normalize_signature = None

try:  # the events of LLVM's lock
    from llvmlite.binding.ffi import lib
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.event import _registered
except ImportError:
    lib = global_compiler_lock = _registered = None
else:
    lasting(global_compiler_lock, COMPILING)

try:  # the word while kernels are compiled
    from numba.core.event import Listener, register
except ImportError:
    Listener, register = object, None

try:  # the shorter way through the compiler
    from numba import _dynfunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import PassManager
    from numba.core.ir import Assign, Expr
    from numba.core.postproc import PostProcessor
    from numba.core.typed_passes import NativeLowering
except ImportError:
    CompilerBase = PassManager = JITCodeLibrary = object  # type: ignore[misc, assignment]
    DefaultPassBuilder = NativeLowering = PostProcessor = _dynfunc = None  # type: ignore[misc, assignment]
    Assign = Expr = None  # type: ignore[misc, assignment]

__all__ = [
    "LACKING",
    "AbstractTemplate",
    "CFunc",
    "CompilerBase",
    "DefaultPassBuilder",
    "Listener",
    "NativeLowering",
    "NullCache",
    "NumbaError",
    "PassManager",
    "cgutils",
    "code_parts",
    "dumps",
    "fill_array",
    "impl_ret_borrowed",
    "infer",
    "infer_getattr",
    "infer_global",
    "inherited",
    "light_environment",
    "lower_to_link",
    "make_overload_method_template",
    "make_overload_template",
    "makes_arrays",
    "normalize_signature",
    "rebuilt",
    "register",
    "rtsys",
    "unheard",
    "use_cache",
    "without_lifetimes",
    "without_owner",
    "without_shapes",
]


@contextmanager
def unheard() -> Iterator[None]:
    """No events of LLVM's lock while nothing listens to them: some three hundred for each function that is compiled."""
    calls = getattr(getattr(lib, "_lock", None), "_cblist", None)
    if not calls or global_compiler_lock is None:
        yield
        return
    with global_compiler_lock:  # nothing else is compiled meanwhile
        kept = [] if _registered["numba:llvm_lock"] else calls[:]
        calls[:] = [call for call in calls if call not in kept]
        try:
            yield
        finally:
            calls[:0] = kept


@contextmanager
def without_lifetimes() -> Iterator[None]:
    """No search for where variables are last used: it is made anew before machine code, and only generators ask earlier."""
    with global_compiler_lock:  # nothing else is compiled meanwhile
        kept, PostProcessor.run = PostProcessor.run, lambda *args, **options: None
        try:
            yield
        finally:
            PostProcessor.run = kept


@cache
def _wrong_shape() -> Any:
    """What compiled code calls where an array does not fit the place it is put, with an error that names no shapes."""
    try:
        from numba.np.arrayobj import ol_raise_with_shape_context_generic as choose
    except ImportError:
        return None

    def refuse(shapes: Any, place: Any) -> None:
        raise NotImplementedError

    overload(refuse)(choose)
    return refuse


@contextmanager
def without_shapes() -> Iterator[None]:
    """No shapes in errors of arrays that do not fit: to make text of them takes longer to compile than many a kernel."""
    from numba.np import arrayobj  # of the compiler, which is readied when it compiles

    with global_compiler_lock:  # nothing else is compiled meanwhile
        kept = getattr(arrayobj, "raise_with_shape_context", None)
        arrayobj.raise_with_shape_context = _wrong_shape() or kept
        try:
            yield
        finally:
            arrayobj.raise_with_shape_context = kept


def makes_arrays(state: Any) -> bool:
    """Whether a text that has types makes an array by an operator or a call."""
    return any(
        isinstance(line, Assign)
        and isinstance(line.value, Expr)
        and line.value.op in ("unary", "binop", "call")
        and isinstance(state.typemap.get(line.target.name), types.Array)
        for block in state.func_ir.blocks.values()
        for line in block.body
    )


def inherited() -> Any:
    """The options that what is compiled now hands down to what it calls."""
    options = ConfigStack.top_or_none()
    return None if options is None else (options.nrt, frozenset(options.fastmath.flags), options.error_model)


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a text that only compiled code calls: others link it, and no machine code is made of it alone. What calls it
    is optimised with it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


def lower_to_link(lower: Callable[[Any], Any], state: Any) -> None:
    """Let ``lower`` make code that others link."""
    library = state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
    flags, state.flags = state.flags, state.flags.copy()
    state.flags.no_compile = True
    lower(state)
    state.flags, found = flags, state.cr
    name = found.fndesc.qualname.rpartition(".")[2]
    call = _dynfunc.make_function(found.fndesc.lookup_module(), name, "", 0, found.env, (library,))  # what names the code
    state.targetctx.insert_user_function(call, found.fndesc, [library])
    state.reload_init.extend(library._reload_init)
    state.cr = found._replace(cfunc=call)


def fill_array(array: Any, *memory: Any) -> Any:
    """A compiled array that is what ``memory`` says: data, shape, strides, size of an item, owner."""
    from numba.np.arrayobj import populate_array  # its module is of the compiler, which is readied when it compiles

    populate_array(array, *memory)
    return array._getvalue()


def without_owner(array: Any) -> Any:
    """A compiled array whose references are not counted."""
    for owner in ("meminfo", "parent"):
        setattr(array, owner, cgutils.get_null_value(getattr(array, owner).type))
    return array._getvalue()


def code_parts(compiled: Any) -> tuple[tuple[bytes, ...], tuple[str, ...], list[Any], Any]:
    """Compiled code in parts: machine code and bitcode; the names that ``machine_code.Code`` has; constants; all the rest."""
    (name, _, blocks), about, environment, *others = compiled._reduce()
    symbols = about.llvm_cpython_wrapper_name, about.llvm_cfunc_wrapper_name, about.env_name
    return blocks, (about.modname, about.qualname, *symbols), list(environment.consts), (name, about, environment, *others)


def rebuilt(target: Any, blocks: tuple[bytes, ...], rest: Any) -> Any:
    """Compiled code from its parts."""
    name, *others = rest
    return CompileResult._rebuild(target, (name, "object", blocks), *others)  # type: ignore[attr-defined]


def light_environment(module: str, consts: list[Any], name: str) -> Any:
    """What a compiled function knows of the module of its text, without importing the module.

    Code that runs without Python's objects, as all of this package does, reads nothing from it but its name."""
    found = lookup_environment(name)
    if found is None:
        imported = sys.modules.get(module)
        found = Environment({"__name__": module} if imported is None else vars(imported))
        found.consts[:] = consts
        found.env_name = name
        Environment._memo[name] = found
    return found


def use_cache(dispatcher: Any, cache: Any) -> None:
    """Let a function look into ``cache`` before it is compiled."""
    dispatcher._cache = cache
