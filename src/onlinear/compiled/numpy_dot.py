"""NumPy's sum of products, for compiled code that has to give the bits of NumPy's.

The order in which it adds differs from processor to processor, and to call it from Python takes longer than to score a row. Its
address is part of NumPy's stable interface for C.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from onlinear.compiled.home import COMPILED

# Places in NumPy's table of functions, and of the sum of products among those that a type of numbers has.
FUNCTIONS_OF_TYPE, DOT = 365, 27


@cache
def dot_address() -> int:
    """Where NumPy's sum of products of float64 is; 0 where nothing is compiled."""
    if not COMPILED:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    interface = vars(import_module("numpy._core._multiarray_umath"))["_ARRAY_API"]
    table = ctypes.cast(pointer(interface, None), ctypes.POINTER(ctypes.c_void_p))
    functions_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[FUNCTIONS_OF_TYPE])
    return int(ctypes.cast(functions_of(np.dtype(np.float64)), ctypes.POINTER(ctypes.c_void_p))[DOT] or 0)


def dot_at(address: int, x: Any, y: Any, n: int) -> float:
    """``np.dot`` of the first n numbers of two arrays; ``address``: that of the sum of products."""
    return float(np.dot(x[:n], y[:n]))
