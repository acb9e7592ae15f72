"""Completes the docstrings of parts: a sentence that several parts or methods share is written once, in a table."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any


def describe(cls: Any, fields: Mapping[str, str], methods: Mapping[str, str]) -> None:
    """Add the parameters to the class's docstring, and the text that all parts share to the docstring of each method.

    ``fields`` has the sentence of each field, ``methods`` the text of each method, by name.
    ``python -OO`` leaves no docstrings.
    """
    if cls.__doc__ is None:
        return
    rows = [f"{name} : {_kind(value)}, default {value}\n    {fields[name]}" for name, value in cls._field_defaults.items()]
    text, mark, rest = cleandoc(cls.__doc__).partition("\n\nReferences\n")
    cls.__doc__ = "\n".join([text, "", "Parameters", "----------", *rows]) + mark + rest
    for name, shared in methods.items():
        method = vars(cls).get(name)
        own = cleandoc(getattr(method, "__doc__", None) or "")
        if method is not None and shared not in own:
            method.__doc__ = f"{own}\n\n{shared}"


def _kind(value: Any) -> str:
    return type(value).__name__
