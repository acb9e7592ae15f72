"""NumPy's tanh of one number, for compiled code that has to give the bits of NumPy's.

It differs from that of C in the last place, and to call it from Python takes as long as to score a row. The places of a ufunc's
loops in memory are part of NumPy's stable interface for C; they are looked at before they are used.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from onlinear.compiled.home import COMPILED

TRIED = (0.0, -0.0, 1e-300, 0.3, -0.7, 1.0, -2.5, 19.0, 710.0, float("inf"))


class _Ufunc(ctypes.Structure):
    """The first fields of a ``PyUFuncObject`` behind what all objects have."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("inputs", "outputs", "arguments", "identity")),
        *((name, ctypes.c_void_p) for name in ("loops", "data")),
        *((name, ctypes.c_int) for name in ("count", "reserved")),
        *((name, ctypes.c_void_p) for name in ("name", "types")),
    )


_Loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


@cache
def tanh_address() -> int:
    """Where NumPy's loop of tanh for float64 is; 0 where nothing is compiled, or the loop is not where it is expected."""
    if not COMPILED or object.__basicsize__ != 16:
        return 0
    found = _Ufunc.from_address(id(np.tanh) + object.__basicsize__)
    if (found.inputs, found.outputs, found.arguments, found.count) != (1, 1, 2, np.tanh.ntypes):
        return 0
    wanted = b"".join(bytes(np.dtype(kind).num for kind in form.replace("->", "")) for form in np.tanh.types)
    if ctypes.string_at(found.types, len(wanted)) != wanted or "d->d" not in np.tanh.types:
        return 0
    place = np.tanh.types.index("d->d")
    loop = ctypes.c_void_p.from_address(found.loops + 8 * place).value or 0
    data = ctypes.c_void_p.from_address(found.data + 8 * place).value
    return loop if loop and not data and all(_called(loop, x) == np.tanh(x) for x in TRIED) else 0


def _called(loop: int, x: float) -> float:
    """What a loop over one number gives."""
    given, out, one, step = ctypes.c_double(x), ctypes.c_double(), ctypes.c_ssize_t(1), (ctypes.c_ssize_t * 2)(8, 8)
    args = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(out))
    _Loop(loop)(ctypes.addressof(args), ctypes.addressof(one), ctypes.addressof(step), None)
    return out.value


def tanh_at(address: int, x: float) -> float:
    """``np.tanh`` of a number; ``address``: that of its loop."""
    return float(np.tanh(x))
