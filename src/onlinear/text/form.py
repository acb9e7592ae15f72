"""Text forms of parts: ``name,key=value,...``, and errors that list the known names and suggest one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from onlinear.text.hints import advise

Value = float | bool | str


def kebab(name: str) -> str:
    """'SquaredHinge' -> 'squared-hinge'."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def parts_of(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Every part (NamedTuple class) defined in a module, by its text name, in the order of the file."""
    home = namespace["__name__"]
    return {
        kebab(name): value
        for name, value in namespace.items()
        if isinstance(value, type) and hasattr(value, "_fields") and value.__module__ == home and not name.startswith("_")
    }


MOST = 40  # names that an error lists
LONGEST = 200  # characters of a name or value that an error shows
MOST_COUNTED = 1e12  # rows that are shown with all digits


def visible(name: str) -> str:
    """A name as it is, of a long one the beginning; in quotes, where blanks at its ends or none at all, or what cannot be seen,
    would not be."""
    return cropped(name if name and name == name.strip() and name.isprintable() else repr(name))


def quoted(value: Any) -> str:
    """A name or value as Python writes it, of a long one the beginning."""
    return cropped(repr(value))


def cropped(text: str) -> str:
    """The beginning of a text that is longer than errors show."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def quote_names(names: Iterable[str]) -> str:
    """The first twenty names, quoted."""
    shown = list(names)
    return ", ".join(map(quoted, shown[:20])) + (", ..." if len(shown) > 20 else "")


def join_names(names: Iterable[str]) -> str:
    """Names in the order of the alphabet, as an error lists them."""
    found = [visible(name) for name in sorted(names)]
    if len(found) == MOST + 1:
        return f"{', '.join(found[:MOST])} and 1 other"
    return ", ".join(found[:MOST]) + (f" and {len(found) - MOST:,} others" if len(found) > MOST else "")


def choose(role: str, name: str, known: Iterable[str]) -> str:
    """The known name that equals ``name`` but for case and hyphens; raises the error of ``unknown``."""
    choices = list(known)
    if name in choices:
        return name
    same = [choice for choice in choices if _folded(choice) == _folded(name)]
    if len(same) != 1:
        raise unknown(role, name, choices)
    return same[0]


def _folded(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent; a small one is not shown as none."""
    least = 10.0 ** (-2 - digits)
    return f"less than {least:.{digits}%}" if 0.0 < share < least else f"{share:.{digits}%}"


def rows_by_weight(value: float) -> str:
    """The weight of rows: as their number where it is one; a small one is not shown as none."""
    if value % 1.0 == 0.0 and value < MOST_COUNTED:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if 0.01 <= value < MOST_COUNTED else f"{value:.3g}"


def in_passes(passes: int | None) -> str:
    """How often rows were read, as words behind their number; none for once, and where that is not known."""
    return f" in {passes} passes" if (passes or 1) > 1 else ""


def unknown(role: str, name: str, known: Iterable[str]) -> ValueError:
    """The error for a name that is not known. It has the name used here or the most similar one, and the list."""
    choices = sorted(known)
    kind = role.rpartition(": ")[2]
    advice = advise(kind, name.strip().lower().replace("_", "-"), choices)
    near = None if advice else _nearest(name.lower(), choices)
    hint = f" {advice}" if advice else f" Did you mean {quoted(near)}?" if near else ""
    there_are = f"Known: {join_names(choices)}." if choices else "There is none."
    return ValueError(f"{role} {quoted(name)} is not known.{hint} {there_are}")


def _nearest(name: str, choices: list[str]) -> str | None:
    """The choice that ``name`` is most likely a slip for: the same letters, its only beginning, or nearly the same text."""
    for alike in (
        [choice for choice in choices if sorted(choice.lower()) == sorted(name)],
        [choice for choice in choices if len(name) >= 4 and choice.lower().startswith(name)],
    ):
        if len(alike) == 1:
            return alike[0]
    found = difflib.get_close_matches(name, choices, n=1, cutoff=0.75)
    return found[0] if found else None


def parse(text: str, role: str) -> tuple[str, dict[str, Value]]:
    """'comid,schedule=inverse,eta=0.5' -> ('comid', {'schedule': 'inverse', 'eta': 0.5})."""
    name, *settings = (piece.strip() for piece in text.split(","))
    if not name:
        raise ValueError(f"{role} is {text!r}; expected name,key=value,... such as 'comid,eta=0.5'.")
    found: dict[str, Value] = {}
    for setting in settings:
        key, equals, value = (piece.strip() for piece in setting.partition("="))
        if not equals or not key or not value:
            raise ValueError(f"{role} {text!r}: expected key=value after the name, got {setting!r}.")
        if key in found:
            raise ValueError(f"{role} {text!r}: {key} is given twice.")
        found[key] = parse_value(value)
    return name, found


def parse_value(text: str) -> Value:
    """A number, true or false, or a part's name."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def unparse(name: str, settings: Mapping[str, Value]) -> str:
    """The inverse of ``parse``."""

    def show(value: Value) -> str:
        return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)

    return ",".join([name, *(f"{key}={show(value)}" for key, value in settings.items())])


def check_number(
    role: str, key: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> float:
    """``value`` as a float inside the stated range, or the error that names the argument, the rule and the value; ``role``:
    whose setting it is, empty for an argument by itself."""
    name = f"{role}: {key}" if role else key
    rule = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a number in {rule}, got {value!r}.") from None
    inside = low <= found <= high and not (open_low and found == low) and not (open_high and found == high)
    if not inside:
        raise ValueError(f"{name} must be in {rule}, got {found!r}.")
    return found


def as_plain(value: Any) -> Any:
    """A value of NumPy as Python's, and a number that is none of these, such as a fraction or a long double, as an int or the
    nearest double; all else as it is."""
    held = value.item() if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0) else value
    if isinstance(held, (int, float)) or not isinstance(held, (Real, Decimal)):
        return held
    return int(held) if isinstance(held, Integral) else float(held)


def check_whole(name: str, value: Any, least: int) -> int:
    """``value`` as an int of at least ``least``; raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """``value`` as a bool; raises TypeError for other values than True and False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_verbose(value: Any) -> None:
    """Raise for what is neither True nor False nor a whole number of at least 0, which scikit-learn's estimators take too."""
    if not isinstance(value, (bool, np.bool_, int, np.integer)):
        raise TypeError(f"verbose must be True, False or a whole number, got {value!r}.")
    if value < 0:
        raise ValueError(f"verbose must be at least 0, got {value!r}.")
