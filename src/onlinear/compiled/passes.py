"""A shorter way through Numba's compiler for the texts of this package.

Numba looks in each function for what no text here has: nested functions, comprehensions, calls that it is told to write out,
values that select a type. After several steps it looks where each variable is last used, and after the types are known for
arithmetic of whole arrays, which few texts have. A kernel calls some fifty functions, which are linked: of these alone no
machine code is made. The error of an array that does not fit where it is put names no shapes: to make text of numbers is more
code than most kernels. Parts from outside the package go the whole way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onlinear.compiled._private import (
    CompilerBase,
    DefaultPassBuilder,
    NativeLowering,
    PassManager,
    lower_to_link,
    makes_arrays,
    without_lifetimes,
    without_shapes,
)
from onlinear.compiled.home import is_ours

# By the names of their classes: a release of Numba may have others, which are then run.
_UNUSED = frozenset(
    {
        "WithLifting",
        "InlineClosureLikes",
        "MakeFunctionToJitFunction",
        "InlineInlinables",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        "InlineOverloads",
        "AnnotateTypes",
        "DumpParforDiagnostics",
    }
)
_LOOKING = frozenset({"GenericRewrites", "ReconstructSSA", "PreLowerStripPhis"})  # for last uses, which no step asks for
_OF_ARRAYS = "NopythonRewrites"


class _Steps(PassManager):  # type: ignore[misc]
    """Steps of the compiler, of which nobody asks how long each took."""

    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: N802 (Numba's name)
        step.analysis, name = self._analysis, type(step).__name__
        if type(step) is NativeLowering:
            with without_shapes():
                _lower(step.run_pass, state)
        elif name in _LOOKING:
            with without_lifetimes():
                step.run_pass(state)
        elif name != _OF_ARRAYS or makes_arrays(state):
            step.run_initialization(state)
            step.run_pass(state)
            step.run_finalizer(state)


def _lower(lower: Callable[[Any], Any], state: Any) -> None:
    """Let ``lower`` make code, and machine code of it where Python may call it."""
    if state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper:
        lower_to_link(lower, state)
    else:
        lower(state)


class _Shorter(CompilerBase):  # type: ignore[misc]
    """Numba's compiler without the steps of no use here."""

    def define_pipelines(self) -> list[Any]:
        found = _Steps("nopython")
        found.passes = [step for step in DefaultPassBuilder.define_nopython_pipeline(self.state).passes if _is_used(step[0])]
        found.finalize()
        return [found]


def _is_used(step: Any) -> bool:
    return getattr(step, "__name__", step) not in _UNUSED


def steps_for(text: Callable[..., Any]) -> dict[str, Any]:
    """What ``njit`` is told of the steps for a text."""
    return {"pipeline_class": _Shorter} if is_ours(text.__module__) and CompilerBase is not object else {}


def inlined(text: Callable[..., Any]) -> dict[str, Any]:
    """What ``njit`` is told of a text that only compiled code calls."""
    return {"forceinline": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, **steps_for(text)}
