"""Methods of parts that kernels call, and the compiling of kernels and their helpers.

A *part* (loss, penalty, schedule, average, solver) is a ``NamedTuple`` with ordinary methods. ``adopt`` lets compiled kernels
call those methods, so the same text runs interpreted (``NUMBA_DISABLE_JIT=1``) and compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature
from inspect import signature as signature_of
from typing import Any, TypeVar

from numba import njit, types
from numba.extending import overload

from onlinear.compiled._private import NumbaError, infer_getattr, make_overload_method_template
from onlinear.compiled.cache import COMPILED, is_ours, keep_on_disk
from onlinear.compiled.lanes import ENTRIES, ROW, joined, lane

C = TypeVar("C", bound=type)

_INLINED = {"forceinline": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}  # only compiled code calls it


def function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call a helper; it becomes part of their machine code. Python runs the text itself."""
    if COMPILED:
        overload(text, strict=False, jit_options=_INLINED)(lambda *args: text)
    return text


def lane_by_lane(text: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` for a helper of numbers that has no form for lanes: given lanes, it is called for each of them."""
    if COMPILED:
        body, names = njit(text, **_INLINED), list(signature_of(text).parameters)

        def chosen(*args: Any) -> Any:
            if ROW not in args:
                return text
            given = [[f"lane({name}, {e})" if kind == ROW else name for name, kind in zip(names, args, strict=True)]
                     for e in range(ENTRIES)]  # fmt: skip
            calls = ", ".join(f"body({', '.join(one)})" for one in given)
            return eval(f"lambda {', '.join(names)}: joined({calls})", {"body": body, "joined": joined, "lane": lane})

        overload(text, strict=False, jit_options=_INLINED)(chosen)
    return text


def kept_function(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that takes no parts and is called from Python too: kept on disk."""
    return keep_on_disk(njit(text, no_cfunc_wrapper=True), text) if COMPILED else text


def kernel(text: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over rows. Kept on disk unless an argument is a part from outside the package; releases the GIL."""
    if not COMPILED:
        return text
    kept = keep_on_disk(njit(text, nogil=True, no_cfunc_wrapper=True), text)
    fresh = njit(text, nogil=True, no_cfunc_wrapper=True)

    @wraps(text)
    def call(*args: Any) -> Any:
        if all(map(all_ours, args)):
            return kept(*args)
        try:
            return fresh(*args)
        except NumbaError as error:
            foreign = ", ".join(sorted({type(arg).__name__ for arg in args if not all_ours(arg)}))
            raise TypeError(f"{text.__name__} does not compile with {foreign}: {error}") from error

    call.dispatcher, call.fresh = kept, fresh  # type: ignore[attr-defined]
    return call


def all_ours(arg: Any) -> bool:
    if not hasattr(arg, "_fields"):
        return True
    return is_ours(type(arg).__module__) and all(map(all_ours, arg))


_parts: set[type] = set()  # the classes whose methods kernels may call


def adopt(cls: C, defaults: dict[str, Callable[..., Any]] | None = None) -> C:
    """Let kernels call the public methods of the NamedTuple ``cls``; methods it lacks come from ``defaults``.

    Raises TypeError where a field has the name of one of ``defaults``: kernels would find the field.
    """
    for name, method in (defaults or {}).items():
        if name in getattr(cls, "_fields", ()):
            raise TypeError(f"{cls.__name__}: the field {name!r} has the name of a method that kernels call; rename the field.")
        if not hasattr(cls, name):
            setattr(cls, name, method)
    with _ADOPTING:
        for name in [name for name in dir(cls) if _is_method(cls, name)]:
            if name not in _bridges:
                _bridge(name)
            _take_arguments(name, cls)
        _parts.add(cls)
    return cls


_ADOPTING = threading.Lock()


def _is_method(cls: Any, name: str) -> bool:
    return not name.startswith("_") and name not in ("count", "index") and callable(getattr(cls, name))


# The bridge of a method that takes the same number of arguments in every class of this package gives Numba the method's text,
# or for a class from elsewhere a function that takes as many. Others give a function that takes any number. What a bridge takes
# must not change once kernels are compiled, so classes from elsewhere have no say in it.
_bridges: dict[str, Any] = {}
_counts: dict[str, int] = {}  # of arguments, -1 for any number
_ANY_NUMBER = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), Parameter("args", Parameter.VAR_POSITIONAL)])


def _take_arguments(name: str, cls: Any) -> None:
    """Let the bridge of a method take as many arguments as the method does in ``cls`` and the classes before."""
    found = len(signature_of(getattr(cls, name)).parameters) if is_ours(cls.__module__) else _counts.get(name, -1)
    count = found if _counts.get(name, found) == found else -1
    if COMPILED and _counts.get(name) != count:
        _counts[name] = count
        fixed = Signature([Parameter(f"_{k}", Parameter.POSITIONAL_ONLY) for k in range(count)])
        _bridges[name].__signature__ = fixed if count >= 0 else _ANY_NUMBER


def _around(body: Any, count: int, laned: bool) -> Any:
    """A function of ``count`` arguments around the compiled ``body``, which it calls lane by lane where ``laned``."""
    rest = "".join(f", _{k}" for k in range(2, count))
    lanes = [f"body(self, lane(_1, {k}){rest})" for k in range(ENTRIES)]
    first = ", _1" if count > 1 else ""
    call = f"joined({', '.join(lanes)})" if laned else f"body(self{first}{rest})"
    return eval(f"lambda self{first}{rest}: {call}", {"body": body, "joined": joined, "lane": lane})


def _takes_lanes(body: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether a method gives lanes for lanes: it has no branches on them, and calls nothing that knows numbers only."""
    try:
        body.compile(kinds)
    except NumbaError:
        return False
    found = body.overloads[kinds].signature.return_type
    return ROW in (found if isinstance(found, types.BaseTuple) else (found,))


def _bridge(name: str) -> None:
    """Let kernels call the method ``name`` of parts: it is Numba's ``overload_method``, which other NamedTuples do not see."""

    def method(self, *args):  # type: ignore[no-untyped-def]
        text = getattr(self.instance_class, name, None)
        if text is None:
            return None
        count = _counts[name]
        if count < 0:
            body = _compiled(text)
            return lambda self, *args: body(self, *args)
        if is_ours(self.instance_class.__module__):
            return text
        body = _compiled(text)  # one from elsewhere may know numbers only
        return _around(body, count, ROW in args and not _takes_lanes(body, (self, *args)))

    _bridges[name] = method
    if not COMPILED:
        return
    for kind in (types.NamedTuple, types.NamedUniTuple):
        template = make_overload_method_template(kind, name, method, "never", strict=False, jit_options=_INLINED)
        infer_getattr(type(template.__name__, (_OfParts, template), {}))
    overload(method, strict=False, jit_options=_INLINED)(method)


class _OfParts:
    """In front of a template of Numba's: it answers for parts alone, and a field of the same name comes first."""

    def _resolve(self, kind: Any, name: str) -> Any:
        found = super()._resolve(kind, name)  # type: ignore[misc]
        return found if found is None or (kind.instance_class in _parts and name not in kind.fields) else None


_compiled = cache(lambda text: njit(text, **_INLINED))
