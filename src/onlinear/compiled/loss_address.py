"""Losses by address: a kernel is given the addresses of a loss's compiled methods, so one kernel serves every loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled.home import COMPILED
from onlinear.compiled.machine_code import Linked, found_on_disk, index_file
from onlinear.compiled.methods import adopt, compiler, function
from onlinear.compiled.outputs import number_at, put_number


def call2(address: int, s: float, y: float, fields: int) -> float:
    """The function at an address, which only compiled code can call."""
    raise NotImplementedError


def call3(address: int, a: float, c: float, y: float, fields: int) -> float:
    """The same, of three numbers."""
    raise NotImplementedError


def call_rooms(address: int, asked: Any, targets: Any, open_ones: Any, count: int, fields: int) -> None:
    """The same, of numbers that stand in memory."""
    raise NotImplementedError


class BoundLoss(NamedTuple):
    """A loss as kernels with an explicit step see it: the addresses of its compiled methods and of its fields."""

    value_at: int
    slope_at: int
    fields_at: int

    def value(self, s: float, y: float) -> float:
        return call2(self.value_at, s, y, self.fields_at)

    def slope(self, s: float, y: float) -> float:
        return call2(self.slope_at, s, y, self.fields_at)


class BoundImplicitLoss(NamedTuple):
    """The same with the implicit step, which takes longer to compile than the others together (``value``, ``slope``: above)."""

    value_at: int
    slope_at: int
    theta_at: int
    fields_at: int

    def theta(self, a: float, c: float, y: float) -> float:
        return call3(self.theta_at, a, c, y, self.fields_at)


class BoundLossOfOutputs(NamedTuple):
    """The same with the implicit steps of outputs side by side (``value``, ``slope``, ``theta``: above)."""

    value_at: int
    slope_at: int
    theta_at: int
    thetas_at: int
    fields_at: int

    def thetas(self, asked: Any, targets: Any, open_ones: Any, count: int) -> None:
        """Write ``theta`` of the first ``count`` outputs that are not 0 in ``open_ones`` to the third row of ``asked``, whose
        first two hold a and c. The row's other places may be written, too."""
        call_rooms(self.thetas_at, asked, targets, open_ones, count, self.fields_at)


@function
def thetas_in_turn(loss: Any, asked: Any, targets: Any, open_ones: Any, count: int) -> None:
    """What ``BoundLossOfOutputs.thetas`` says, one output after the other."""
    for o in range(count):
        if number_at(open_ones, 0, o) != 0.0:
            put_number(asked, 2, o, loss.theta(number_at(asked, 0, o), number_at(asked, 1, o), number_at(targets, 0, o)))


class _InTurn(NamedTuple):
    """A loss that runs interpreted, with the implicit steps of outputs."""

    loss: Any

    def theta(self, a: float, c: float, y: float) -> float:
        return self.loss.theta(a, c, y)

    def thetas(self, asked: Any, targets: Any, open_ones: Any, count: int) -> None:
        thetas_in_turn(self.loss, asked, targets, open_ones, count)


_methods: dict[str, Any] = {}  # those of one kind are the next one's too
for _kind in (BoundLoss, BoundImplicitLoss, BoundLossOfOutputs):
    adopt(_kind, _methods)
    _methods |= {name: getattr(_kind, name) for name in ("value", "slope", "theta") if hasattr(_kind, name)}

_memory: dict[bytes, np.ndarray] = {}  # of the fields of losses, by their bits
_addresses: dict[tuple[Any, str], int] = {}  # of compiled methods, by class and name
_LOSS = "loss"  # the types of arguments are always the same
_laned: dict[Any, tuple[Any, float]] = {}  # by class


def take_lanes(cls: Any, thetas: Any, below: float) -> None:
    """Let ``thetas(loss, a, c, y)`` be the theta of lanes, with the bits of ``theta`` for c < ``below``, of exactly this class:
    one made from it may have another theta."""
    _laned[cls] = thetas, below


def laned_theta(cls: Any) -> tuple[Any, float] | None:
    """What ``take_lanes`` was given for a class."""
    return _laned.get(cls)


def _address(cls: Any, name: str) -> int:
    """The address of a compiled method: from the disk, else Numba's."""
    whole = f"{cls.__module__}.{cls.__qualname__}.{name}"
    found = found_on_disk(whole, _LOSS, Linked.kept_address)
    return compiler().callback(cls, name, index_file(whole, _LOSS)) if found is None else found


def _compiled_method(cls: Any, name: str) -> int:
    found = _addresses.get((cls, name))
    if found is None:  # of two threads that compile it both are given the first: the address of the other may not last
        found = _addresses.setdefault((cls, name), _address(cls, name))
    return found


def bind_loss(loss: Any, implicit: bool = True, outputs: bool = False) -> Any:
    """The loss as a kernel takes it, with theta where it is ``implicit``, and with those of ``outputs`` side by side. What its
    addresses point to lasts as long as the process, a few bytes for each setting.

    Raises TypeError for a field that is no number and for a method that does not compile.
    """
    for field, value in zip(loss._fields, loss, strict=True):
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"the loss {type(loss).__name__}: the field {field!r} must be a number, got {value!r}.")
    if not COMPILED:
        return _InTurn(loss) if outputs else loss
    fields = np.array([float(value) for value in loss])
    fields = _memory.setdefault(fields.tobytes(), fields)
    fields.flags.writeable = False
    return with_fields_at(loss, fields, implicit, outputs)


def with_fields_at(loss: Any, fields: np.ndarray, implicit: bool, outputs: bool = False) -> Any:
    """The loss as a kernel takes it, with its fields where ``fields`` holds them: they may change there, and outlive it."""
    if not COMPILED:
        return loss
    cls: Any = type(loss)
    kind: Any = BoundImplicitLoss if implicit and hasattr(loss, "theta") else BoundLoss
    if outputs:
        kind = BoundLossOfOutputs
    names = [place.removesuffix("_at") for place in kind._fields[:-1]]
    return kind(*(_compiled_method(cls, name) for name in names), fields.ctypes.data)
