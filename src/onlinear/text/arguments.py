"""Errors of wrong arguments that name the class which is called, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec

from onlinear.text.form import join_names
from onlinear.text.hints import advise_on_argument

P = ParamSpec("P")


def explain_arguments(init: Callable[P, None]) -> Callable[P, None]:
    """Decorator of ``__init__``: errors for wrong arguments name the class; those of an estimator say what to write instead of
    what others call so."""
    return _explained(init, advise_on_argument)


def name_arguments(init: Callable[P, None]) -> Callable[P, None]:
    """Decorator of ``__init__`` of what is no estimator: errors for wrong arguments name the class and its arguments."""
    return _explained(init, lambda name: None)


def _explained(init: Callable[P, None], advise: Callable[[str], str | None]) -> Callable[P, None]:
    parameters = list(signature(init).parameters.values())[1:]

    @wraps(init)
    def explained(*args: P.args, **settings: P.kwargs) -> None:
        wrong = _wrong(parameters, args[1:], settings, advise)
        if wrong is not None:
            raise TypeError(f"{type(args[0]).__name__} {wrong}")
        init(*args, **settings)

    return explained


def _wrong(
    parameters: Sequence[Parameter], args: Sequence[Any], settings: Mapping[str, Any], advise: Callable[[str], str | None]
) -> str | None:
    """What is wrong with arguments, as words behind the name of their class; None where nothing is."""
    known = [parameter.name for parameter in parameters]
    other = next((name for name in settings if name not in known), None)
    if other is not None:
        return f"has no argument {other!r}. {advise(other) or f'Arguments: {join_names(known)}.'}"
    placed = [parameter.name for parameter in parameters if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if len(args) > len(placed):
        return f"takes {', '.join(placed)} by place and all else by name, as {known[len(placed)]}=; got {len(args)} by place."
    given = [*placed[: len(args)], *settings]
    twice = next((name for name in settings if name in placed[: len(args)]), None)
    if twice is not None:
        return f"is given {twice} twice, by place and by name."
    missing = [
        parameter.name for parameter in parameters if parameter.default is Parameter.empty and parameter.name not in given
    ]
    return f"needs the argument {missing[0]}." if missing else None
