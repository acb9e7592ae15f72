"""What model files hold of a part: its text, or the class and fields of an object.

Parts of this package are made again from their fields; those of other classes are passed to ``load``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onlinear import penalties, schedules
from onlinear.averages import Average, Masked
from onlinear.compiled import is_ours
from onlinear.learner.parts import ALL_LOSSES, check_settings, kind_of
from onlinear.solvers import SOLVERS
from onlinear.text.form import as_plain, parts_of

ROLES = ("solver", "loss", "penalty", "average")
LONGEST = 10_000  # characters of a part's text in a file


class PartNeeded(ValueError):  # noqa: N818 (nothing is wrong with the file)
    """A model has a part of a class from outside the package, which its file does not hold."""


def store(spec: Any) -> Any:
    """What a file holds of a part: its text; of an object its class, its text form, and its fields if it is built-in."""
    if spec is None or isinstance(spec, (str, dict)):
        return spec
    found: dict[str, Any] = {"class": _class_name(type(spec)), "text": text_of(spec)}
    if is_ours(type(spec).__module__):
        found["fields"] = [_field(value) for _, value in _fields(spec)]
    return found


def restore(role: str, spec: Any, parts: dict[str, Any], *, needed: bool = True) -> Any:
    """The inverse of ``store``. A user-defined part is taken from ``parts``, by role; without ``needed`` it may be missing.

    Raises PartNeeded for a user-defined part that is missing; ValueError or TypeError for one that is not the model's, and for
    a ``spec`` that describes no part.
    """
    if isinstance(spec, dict):
        spec = _check_description(spec)
    elif spec is not None and not (isinstance(spec, str) and len(spec) <= LONGEST):
        raise TypeError(f"the {role} must be text, got {str(spec)[:80]}.")
    if role in parts:
        if _differs(spec, parts[role]):
            found = spec["text"] if isinstance(spec, dict) else repr(spec)
            raise ValueError(
                f"the model's {role} is {found}, got {role}={parts[role]!r}; a model continues with its own parts."
            )
        return parts[role]
    if isinstance(spec, dict) and ("fields" in spec or is_ours(spec["class"].partition(":")[0])):
        return make_part(role, {"fields": None, **spec})
    if spec is None or isinstance(spec, str) or not needed:
        return spec
    raise PartNeeded(f"the model's {role} is {spec['text']} of {spec['class']}; pass the same object: load(path, {role}=...).")


def text_of(part: Any) -> str:
    """The part as Python writes it, with Python's numbers."""
    if not hasattr(part, "_fields"):
        return repr(as_plain(part))
    fields = ", ".join(f"{name}={text_of(value)}" for name, value in _fields(part))
    return f"{type(part).__qualname__}({fields})"


def _fields(part: Any) -> list[tuple[str, Any]]:
    """The fields that a file names, with their values."""
    found = list(zip(part._fields, part, strict=True))
    while found and found[-1][0] in _added(type(part)) and found[-1][1] == type(part)._field_defaults[found[-1][0]]:
        found.pop()
    return found


def _differs(spec: Any, part: Any) -> bool:
    if isinstance(spec, dict):
        return spec["text"] not in (text_of(part), repr(part))
    return bool(spec != part)


def _field(value: Any) -> Any:
    return store(value) if hasattr(value, "_fields") else as_plain(value)


def _storable_classes() -> dict[str, dict[str, Any]]:
    """The classes that a model file may name, by role and name: those that the package offers for it, and no others."""
    solvers = {preset.solver for preset in SOLVERS.values()}
    choices = [choice for cls in solvers for named in getattr(cls, "choices", {}).values() for choice in named.values()]
    classes = {
        "loss": ALL_LOSSES.values(),
        "penalty": parts_of(vars(penalties)).values(),
        "average": [Average, Masked],
        "solver": solvers,
        "schedule": [cls for cls, _ in schedules.NAMED.values()],
        "search": [type(choice) for choice in choices if hasattr(choice, "_fields")],
    }
    return {role: {_class_name(cls): cls for cls in found} for role, found in classes.items()}


def _added(cls: type) -> tuple[str, ...]:
    """The last fields of a class that older files do not have, and newer ones only where they are not at their default."""
    return getattr(cls, "added", ())


def _class_name(cls: type) -> str:
    """How model files name a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def make_part(role: str, spec: Mapping[str, Any]) -> Any:
    """The part whose class and fields a model file holds; raises ValueError or TypeError for what is not on the list, and for
    settings out of range."""
    cls, fields = STORABLE[role].get(spec["class"]), spec["fields"]
    if cls is None or not isinstance(fields, list) or not set(cls._fields[len(fields) :]) <= set(_added(cls)):
        raise ValueError(f"no {role} of this release is {spec['text'][:80]} of {spec['class'][:80]}.")
    values = []
    for key, value in zip(cls._fields, fields, strict=False):
        kind = kind_of(cls._field_defaults.get(key))
        values.append(make_part(kind.role, _check_description(value)) if kind is not None else value)
    part = cls(*values)
    check_settings(role, part)
    return part


def _check_description(spec: Any) -> dict[str, Any]:
    """What a model file says of a part object, its types checked: its class, how it is shown, and fields, if any."""
    texts = isinstance(spec, dict) and all(isinstance(spec.get(name), str) for name in ("class", "text"))
    if not texts or not set(spec) <= {"class", "text", "fields"}:
        raise TypeError(f"a part is text, or an object with class, text and fields, got {str(spec)[:80]}.")
    return spec


STORABLE = _storable_classes()
