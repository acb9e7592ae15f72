"""What lets kernels call the methods of parts, and the helpers of ``methods.py``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from inspect import signature as signature_of
from typing import Any

from numba import njit, types

from onlinear.compiled._private import (
    NumbaError,
    infer,
    infer_getattr,
    infer_global,
    inherited,
    make_overload_method_template,
    make_overload_template,
)
from onlinear.compiled.home import is_ours
from onlinear.compiled.lane_code import ROW
from onlinear.compiled.lanes import ENTRIES, joined, lane
from onlinear.compiled.passes import inlined


class _Once:
    """In front of a template of Numba's: what is called is compiled once for the types of its arguments. Numba's own goes by
    all options of the caller, so that what a kernel and a helper both call would be compiled for each."""

    def _get_impl(self, args: Any, kws: Any) -> Any:
        known: dict[Any, Any] = self._impl_cache  # type: ignore[attr-defined]
        key = self.context, tuple(args), tuple(kws.items()), inherited()  # type: ignore[attr-defined]
        return known[key] if key in known else self._build_impl(key, args, kws)  # type: ignore[attr-defined]


def _offer(text: Callable[..., Any], choose: Callable[..., Any], options: dict[str, Any]) -> None:
    """Let kernels call ``text``: what they call is what ``choose`` gives for the types of the arguments."""
    template = make_overload_template(text, choose, {"nopython": True, **options}, False, "never")
    template = type(template.__name__, (_Once, template), {})
    infer(template)
    infer_global(text, types.Function(template))


def bridge_function(text: Callable[..., Any]) -> None:
    """Let kernels call a helper."""
    _offer(text, lambda *args: text, inlined(text))


def bridge_lane_by_lane(text: Callable[..., Any]) -> None:
    """Let kernels call a helper of numbers, also with lanes."""
    body, names = _compiled(text), list(signature_of(text).parameters)

    def chosen(*args: Any) -> Any:
        if ROW not in args:
            return text
        given = [[f"lane({name}, {e})" if kind == ROW else name for name, kind in zip(names, args, strict=True)]
                 for e in range(ENTRIES)]  # fmt: skip
        calls = ", ".join(f"body({', '.join(one)})" for one in given)
        return eval(f"lambda {', '.join(names)}: joined({calls})", {"body": body, "joined": joined, "lane": lane})

    _offer(text, chosen, inlined(text))


def bridge_part(cls: Any) -> None:
    """Let kernels call the public methods of a part."""
    for name in [name for name in dir(cls) if _is_method(cls, name)]:
        if name not in _bridges:
            _bridge(name)
        _take_arguments(name, cls)
    _parts.add(cls)


_parts: set[type] = set()  # the classes whose methods kernels may call


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
    if _counts.get(name) != count:
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
    for kind in (types.NamedTuple, types.NamedUniTuple):
        template = make_overload_method_template(kind, name, method, "never", strict=False, jit_options=inlined(_bridge))
        infer_getattr(type(template.__name__, (_OfParts, template), {}))
    _offer(method, method, inlined(_bridge))


class _OfParts:
    """In front of a template of Numba's: it answers for parts alone, and a field of the same name comes first."""

    def _resolve(self, kind: Any, name: str) -> Any:
        found = super()._resolve(kind, name)  # type: ignore[misc]
        return found if found is None or (kind.instance_class in _parts and name not in kind.fields) else None


_compiled = cache(lambda text: njit(text, **inlined(text)))
