"""Compiled functions that others call by their addresses: these are compiled without them."""

from __future__ import annotations

from typing import Any

from onlinear.compiled.home import COMPILED
from onlinear.compiled.methods import all_ours, compiler, numba_of


class Routine:
    """A compiled function that may be held, and is called by ``run_routine``: what calls it is compiled without it.

    ``kind``: the types of its arguments and of what it gives.
    """

    __slots__ = ("address", "kind")

    def __init__(self, address: int, kind: Any) -> None:
        self.address, self.kind = address, kind


def routine(compiled: Any, *args: Any) -> Any:
    """A kernel as it is held, for arguments typed as these; where nothing is compiled, the function itself."""
    if not COMPILED:
        return compiled
    return Routine(*compiler().address_and_kind(numba_of(compiled, all(map(all_ours, args))), args))


def run_routine(routine: Any, *args: Any) -> Any:
    """What a routine gives for arguments of its types."""
    return routine(*args)
