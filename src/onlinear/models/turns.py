"""Turns and second thoughts: one thread at a time trains an estimator, and an error leaves it as it was."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
Estimator = TypeVar("Estimator")
TURN = "_turn"  # begins the name of an attribute that copies do not have
OF_CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")  # scikit-learn's, which end with the fit


def lock_of(estimator: Any, name: str) -> threading.RLock:
    """A lock of an estimator, held in an attribute whose name begins so. The child of a fork has its own."""
    found: threading.RLock = vars(estimator).setdefault(f"{name}_{os.getpid()}", threading.RLock())
    return found


def in_turn(method: Method) -> Method:
    """Decorator: one thread at a time is in such a method of an estimator."""

    @wraps(method)
    def alone(self: Any, *args: Any, **settings: Any) -> Any:
        with lock_of(self, TURN):
            return method(self, *args, **settings)

    return alone  # type: ignore[return-value]


def without_turn(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a copy has."""
    return {name: value for name, value in state.items() if not name.startswith(TURN)}


def forget(estimator: Any) -> None:
    """Drop all that was learned, and the names that came with it."""
    for name in learned(estimator):
        delattr(estimator, name)


def learned(estimator: Any) -> dict[str, Any]:
    """The attributes that training gave."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def twin_of(estimator: Estimator) -> Estimator:
    """Another estimator of the same attributes. It begins in place of one that other threads may read."""
    twin = object.__new__(type(estimator))
    vars(twin).update(vars(estimator))
    return twin


def as_it_stands(method: Method) -> Method:
    """Decorator: such a method reads its estimator at one moment, also where another thread fits it anew meanwhile. What it
    sets is lost."""

    @wraps(method)
    def read(self: Any, *args: Any, **settings: Any) -> Any:
        return method(twin_of(self), *args, **settings)

    return read  # type: ignore[return-value]


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Put the estimator's attributes back where the block raises: wrong input, and Ctrl-C before the first row, leave the
    model as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        put_back(estimator, before)
        raise


def put_back(estimator: Any, before: dict[str, Any]) -> None:
    """Give the estimator the attributes that it had."""
    attributes = vars(estimator)  # another thread may read them: none is missing at any time
    attributes.update(before)
    for name in [name for name in attributes if name not in before and name not in OF_CALLBACKS]:
        del attributes[name]
