"""The half of the bridge that needs Numba: importing it readies the compiler for all that kernels may call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit, typeof
from numpy.lib.stride_tricks import as_strided

from onlinear.compiled import held_code, lines_code, numpy_dot_code, object_code, output_code, text_word_code
from onlinear.compiled._private import NumbaError
from onlinear.compiled.bridges import bridge_function, bridge_lane_by_lane, bridge_part
from onlinear.compiled.cache import HeldType, RoutineType, keep_on_disk, point_to, undisturbed
from onlinear.compiled.call_code import call_code
from onlinear.compiled.loss_code import callback
from onlinear.compiled.machine_code import stands_apart
from onlinear.compiled.methods import listen
from onlinear.compiled.passes import steps_for

__all__ = [
    "address_and_kind",
    "anew",
    "call_code",
    "callback",
    "entry_point",
    "held_code",
    "held_kind",
    "kept",
    "lines_code",
    "named",
    "numpy_dot_code",
    "object_code",
    "output_code",
    "text_word_code",
]

_BRIDGES = {"function": bridge_function, "lane_by_lane": bridge_lane_by_lane, "part": bridge_part}


def kept(text: Callable[..., Any], **options: bool) -> Any:
    """A text as Numba compiles it, with its code kept on disk."""
    return keep_on_disk(njit(text, **steps_for(text), **options), text)


def anew(text: Callable[..., Any], **options: bool) -> Any:
    """A text as Numba compiles it for this process alone."""
    return njit(text, **steps_for(text), **options)


def kind_of(value: Any) -> Any:
    """The type for which code is compiled that takes this argument."""
    return typeof(_longer(value))


def _longer(value: Any) -> Any:
    """The same, with arrays of two rows for those of one that stand apart: Numba asks NumPy for their layout."""
    if isinstance(value, np.ndarray) and stands_apart(value):
        return as_strided(value, (2, *value.shape[1:]), value.strides)
    if isinstance(value, tuple):
        inner = map(_longer, value)
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    return value


def held_kind(args: tuple[Any, ...]) -> HeldType:
    """The type of the address of held arguments."""
    return HeldType(kind_of(args))


def entry_point(dispatcher: Any, args: tuple[Any, ...], place: Any = None, first: Any = None) -> Callable[..., Any]:
    """The compiled code itself for arguments typed as these, before which there may be one of the type ``first``. ``place``:
    where later processes look for it, which do without Numba."""
    kinds = (*(() if first is None else (first,)), *map(kind_of, args))
    with undisturbed():
        dispatcher.compile(kinds)
    point_to(dispatcher, kinds, place)
    return dispatcher.overloads[kinds].entry_point


def address_and_kind(dispatcher: Any, args: tuple[Any, ...]) -> tuple[int, RoutineType]:
    """Where the code for arguments typed as these is, as compiled functions call one another, and its type."""
    kinds = tuple(map(kind_of, args))
    with undisturbed():
        dispatcher.compile(kinds)
    found = dispatcher.overloads[kinds]
    address = int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))
    return address, RoutineType(kinds, found.signature.return_type)


@contextmanager
def named(what: str) -> Iterator[None]:
    """Errors of the compiler as TypeErrors that begin with ``what``."""
    try:
        yield
    except NumbaError as error:
        raise TypeError(f"{what}: {error}") from error


listen(lambda kind, what: _BRIDGES[kind](what))
