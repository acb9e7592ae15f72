"""Methods of parts that kernels call, and the compiling of kernels and their helpers.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled. What the compiler has to know is
written down here and told when it is needed: a process whose kernels come from the disk does without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import update_wrapper, wraps
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from onlinear.compiled.forks import IMPORTING, lasting, making
from onlinear.compiled.home import COMPILED, is_ours
from onlinear.compiled.machine_code import Linked, UnknownTypeError, found_on_disk, index_file, refuse_sub_interpreter, sign
from onlinear.compiled.uninterrupted import uninterrupted

C = TypeVar("C", bound=type)

_known: list[tuple[str, Any]] = []  # what kernels may call, and what it is
_listeners: list[Callable[[str, Any], None]] = []


def once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: what is made for arguments is made once, also where threads ask for it together."""
    found: dict[Any, Any] = {}

    @wraps(make)
    def made(*args: Any) -> Any:
        if args not in found:
            with making(make):
                if args not in found:
                    found[args] = make(*args)
        return found[args]

    return made


_LOCK = lasting(threading.RLock(), IMPORTING)


@once
def compiler() -> Any:
    """The half of the bridge that needs Numba. It imports this half, so it is found by its name, when it is needed."""
    refuse_sub_interpreter()  # some of which cannot import Numba, and say so in other words
    with _LOCK, uninterrupted():
        return import_module("onlinear.compiled.compiler")


def _tell(kind: str, what: Any) -> None:
    with making(_tell):
        _known.append((kind, what))
        for listener in _listeners:
            listener(kind, what)


def listen(listener: Callable[[str, Any], None]) -> None:
    """Tell ``listener`` what kernels may call: at once what is known, and later the rest."""
    with making(_tell):
        for known in _known:
            listener(*known)
        _listeners.append(listener)


def function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call a helper; it becomes part of their machine code. Python runs the text itself."""
    _tell("function", text)
    return text


def lane_by_lane(text: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` for a helper of numbers that has no form for lanes: given lanes, it is called for each of them."""
    _tell("lane_by_lane", text)
    return text


@once
def _result(make: Callable[[], Any]) -> Any:
    """What a method gives, of an object that stays."""
    return make()


@once
def _made_for(foreign: tuple[type, ...], make: Callable[[], Any]) -> Any:
    """``_result``, one for each choice of classes: those of one name, such as a class and what it was before it was edited, are
    one to Numba where Python calls compiled code."""
    return make()


class Kernel:
    """A text that is compiled when it is first called."""

    __name__: str
    __module__: str
    __qualname__: str

    def __init__(self, text: Callable[..., Any], lean: bool = False, **options: bool) -> None:
        update_wrapper(self, text)
        self._text, self._options = text, options
        self._own_options = {**options, "_nrt": False} if lean else options
        self._entries: dict[Any, Callable[..., Any]] = {}  # by what tells the types of arguments apart

    @property
    def dispatcher(self) -> Any:
        """What Numba makes of the text, kept on disk."""
        return _result(self._keep)

    def _keep(self) -> Any:
        return compiler().kept(self._text, **self._own_options)

    @property
    def fresh(self) -> Any:
        """What Numba makes of the text for parts from outside the package, which each process compiles anew."""
        return _result(self._make_anew)

    def _make_anew(self) -> Any:
        return compiler().anew(self._text, **self._options)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        return self.code_for(args)(*args)

    def code_for(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        """The compiled code for arguments typed as these."""
        try:
            signs = tuple(map(sign, args))
        except UnknownTypeError:
            return self._by_numba
        entry = self._entries.get(signs)
        if entry is None:
            entry = self._entries.setdefault(signs, self._entry(signs, args))
        return entry

    def _entry(self, signs: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
        """The compiled code for arguments of these types: from the disk, else Numba's."""
        refuse_sub_interpreter()
        name = f"{self.__module__}.{self.__qualname__}"
        found = found_on_disk(name, signs, Linked.function)
        return compiler().entry_point(self.dispatcher, args, index_file(name, signs)) if found is None else found

    def _by_numba(self, *args: Any) -> Any:
        foreign = tuple(foreign_parts(args))
        if not foreign:
            return self.dispatcher(*args)
        names = ", ".join(sorted({cls.__name__ for cls in foreign}))
        with compiler().named(f"{self.__name__} does not compile with {names}"):
            return _made_for(foreign, self._make_anew)(*args)


def numba_of(call: Any, ours: bool) -> Any:
    """What Numba makes of a kernel for parts that are all of this package, or not all; any other function as it is."""
    return getattr(call, "dispatcher" if ours else "fresh", call)


def code_for(kernel: Any, *args: Any) -> Callable[..., Any]:
    """What runs a kernel with arguments typed as these and looks at no types: for a call that repeats."""
    return kernel.code_for(args) if COMPILED else kernel


def kept_function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that takes no parts and is called from Python too: kept on disk."""
    return Kernel(text, no_cfunc_wrapper=True) if COMPILED else text


def kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over rows. Kept on disk unless an argument is a part from outside the package; releases the GIL."""
    return Kernel(text, nogil=True, no_cfunc_wrapper=True) if COMPILED else text


def lean_kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """``kernel`` for a loop that makes no array, and calls no function that returns one but as it was given: references to
    arrays are not counted, so that less is compiled. Parts from outside the package may make arrays all the same."""
    return Kernel(text, lean=True, nogil=True, no_cfunc_wrapper=True) if COMPILED else text


class Composed(Kernel):
    """A kernel that calls others by names which its text leaves open."""

    def __init__(self, text: Callable[..., Any], functions: dict[str, Any]) -> None:
        super().__init__(calling(text, functions), nogil=True, no_cfunc_wrapper=True)
        self._functions = functions

    def _make_anew(self) -> Any:
        functions = {name: numba_of(call, False) for name, call in self._functions.items()}
        return compiler().anew(calling(self._text, functions), **self._options)


def calling(text: Callable[..., Any], functions: dict[str, Any]) -> Callable[..., Any]:
    """A copy of ``text`` with functions of its own, under a name of its own: the disk cache goes by that."""
    copy = FunctionType(text.__code__, {**text.__globals__, **functions}, text.__name__)
    copy.__qualname__ = ".".join([text.__name__, *(f"{call.__module__}.{call.__name__}" for call in functions.values())])
    return copy


@once
def _composed(text: Callable[..., Any], functions: tuple[tuple[str, Any], ...]) -> Any:
    return Composed(text, dict(functions)) if COMPILED else calling(text, dict(functions))


def composed(text: Callable[..., Any], **functions: Any) -> Callable[..., Any]:
    """The kernel of ``text``, which calls ``functions`` by their names: one for each choice of them."""
    return _composed(text, tuple(functions.items()))


def foreign_parts(arg: Any) -> Iterator[type]:
    """The classes of the parts from outside the package in an argument of a kernel."""
    if isinstance(arg, tuple):
        if hasattr(arg, "_fields") and not is_ours(type(arg).__module__):
            yield type(arg)
        for inner in arg:
            yield from foreign_parts(inner)


def all_ours(arg: Any) -> bool:
    """Whether an argument has no parts from outside the package."""
    return not any(foreign_parts(arg))


def adopt(cls: C, defaults: dict[str, Callable[..., Any]] | None = None) -> C:
    """Let kernels call the public methods of the NamedTuple ``cls``; methods it lacks come from ``defaults``.

    Raises TypeError where a field has the name of one of ``defaults``: kernels would find the field.
    """
    for name, method in (defaults or {}).items():
        if name in getattr(cls, "_fields", ()):
            raise TypeError(f"{cls.__name__}: the field {name!r} has the name of a method that kernels call; rename the field.")
        if not hasattr(cls, name):
            setattr(cls, name, method)
    _tell("part", cls)
    return cls
