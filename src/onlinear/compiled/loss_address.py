"""Losses by address: a kernel is given the addresses of a loss's compiled methods, so one kernel serves every loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled.home import COMPILED
from onlinear.compiled.machine_code import Linked, found_on_disk, index_file
from onlinear.compiled.methods import adopt, compiler


def call2(address: int, s: float, y: float, fields: int) -> float:
    """The function at an address, which only compiled code can call."""
    raise NotImplementedError


def call3(address: int, a: float, c: float, y: float, fields: int) -> float:
    """The same, of three numbers."""
    raise NotImplementedError


class BoundLoss(NamedTuple):
    """A loss as kernels with an explicit step see it: the addresses of its compiled methods and of its fields."""

    value_at: int
    slope_at: int
    fields_at: int

    def value(self, s: float, y: float) -> float:
        return call2(self.value_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def slope(self, s: float, y: float) -> float:
        return call2(self.slope_at, s, y, self.fields_at)  # type: ignore[no-any-return]


class BoundImplicitLoss(NamedTuple):
    """The same with the implicit step, which takes longer to compile than the others together."""

    value_at: int
    slope_at: int
    theta_at: int
    fields_at: int

    def value(self, s: float, y: float) -> float:
        return call2(self.value_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def slope(self, s: float, y: float) -> float:
        return call2(self.slope_at, s, y, self.fields_at)  # type: ignore[no-any-return]

    def theta(self, a: float, c: float, y: float) -> float:
        return call3(self.theta_at, a, c, y, self.fields_at)  # type: ignore[no-any-return]


for _kind in (BoundLoss, BoundImplicitLoss):
    adopt(_kind)

_memory: dict[bytes, np.ndarray] = {}  # of the fields of losses, by their bits
_addresses: dict[tuple[Any, str], int] = {}  # of compiled methods, by class and name
_LOSS = "loss"  # the types of arguments are always the same


def _address(cls: Any, name: str) -> int:
    """The address of a compiled method: from the disk, else Numba's."""
    whole = f"{cls.__module__}.{cls.__qualname__}.{name}"
    found = found_on_disk(whole, _LOSS, Linked.kept_address)
    return compiler().callback(cls, name, index_file(whole, _LOSS)) if found is None else found  # type: ignore[no-any-return]


def _compiled_method(cls: Any, name: str) -> int:
    found = _addresses.get((cls, name))
    if found is None:  # of two threads that compile it both are given the first: the address of the other may not last
        found = _addresses.setdefault((cls, name), _address(cls, name))
    return found


def bind_loss(loss: Any, implicit: bool = True) -> Any:
    """The loss as a kernel takes it, with theta where it is ``implicit``. What its addresses point to lasts as long as the
    process, a few bytes for each setting.

    Raises TypeError for a field that is no number and for a method that does not compile.
    """
    for field, value in zip(loss._fields, loss, strict=True):
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"the loss {type(loss).__name__}: the field {field!r} must be a number, got {value!r}.")
    if not COMPILED:
        return loss
    fields = np.array([float(value) for value in loss])
    fields = _memory.setdefault(fields.tobytes(), fields)
    fields.flags.writeable = False
    return with_fields_at(loss, fields, implicit)


def with_fields_at(loss: Any, fields: np.ndarray, implicit: bool) -> Any:
    """The loss as a kernel takes it, with its fields where ``fields`` holds them: they may change there, and outlive it."""
    if not COMPILED:
        return loss
    cls: Any = type(loss)
    kind: Any = BoundImplicitLoss if implicit and hasattr(loss, "theta") else BoundLoss
    names = [place.removesuffix("_at") for place in kind._fields[:-1]]
    return kind(*(_compiled_method(cls, name) for name in names), fields.ctypes.data)
