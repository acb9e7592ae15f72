"""Every name of Numba and llvmlite that is not part of their public interfaces, in one place.

A release of Numba that drops one of them breaks here, and ``tests/compiled/test_private.py`` says which. What is public
(``numba``, ``numba.types``, ``numba.extending``, ``llvmlite.ir``) the other files import themselves.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaError
from numba.core.event import Listener, register
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import AbstractTemplate, infer_getattr, infer_global, make_overload_method_template, signature
from numba.np.unsafe.ndarray import to_fixed_tuple

__all__ = [
    "AbstractTemplate",
    "CFunc",
    "CompileResult",
    "Listener",
    "NullCache",
    "NumbaError",
    "cgutils",
    "dumps",
    "infer_getattr",
    "infer_global",
    "make_overload_method_template",
    "normalize_signature",
    "populate_array",
    "register",
    "rtsys",
    "signature",
    "to_fixed_tuple",
]


def populate_array(*args: Any) -> None:
    """Numba's function of that name. Its module is of the compiler, and is imported when something is compiled."""
    from numba.np import arrayobj

    arrayobj.populate_array(*args)
