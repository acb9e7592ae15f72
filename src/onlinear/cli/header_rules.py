"""Rules for what the header of a checkpoint may say: whoever makes a file can write anything into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onlinear.errors import ModelFileError
from onlinear.files import trust
from onlinear.text.names import printable

Rule = Callable[[Any], bool]


def must_be(path: str, found: dict[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise ModelFileError unless an object has entries of these names and kinds, and no others."""
    for name in [*rules, *found]:
        if name not in rules or name not in found or not rules[name](found[name]):
            what = f"has no {name}" if name not in found else f"says {name}={str(found[name])[:80]}"
            raise ModelFileError(f"{printable(path)}: the checkpoint's header is damaged: it {what}, which cannot be.")


def is_nothing(value: Any) -> bool:
    return False


def is_flag(value: Any) -> bool:
    return type(value) is bool


def is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def within(low: int, high: int = trust.MOST_STEPS) -> Rule:
    return lambda value: trust.count(value, low, high)


OPTIONAL_TEXT = or_none(is_text)
