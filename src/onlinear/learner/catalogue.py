"""All parts there are: what they are called here and elsewhere, their formulas, their settings and defaults."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, NamedTuple

from onlinear import averages, penalties, schedules
from onlinear.averages import ADAPTIVE
from onlinear.learner.parts import BOUNDS, LOSSES, PENALTIES, STRENGTH
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Preset
from onlinear.text.hints import elsewhere

WITHOUT = "No formula: Python runs with -OO, which leaves no descriptions."
ROLES = ("loss", "penalty", "solver", "schedule", "average")
_PENALTY_WORDS = {
    "none": "No penalty, r(w) = 0.",
    "l1": "r(w) = l1 |w|_1.",
    "l2": "r(w) = (l2/2) |w|^2.",
    "total-variation": "r(w) = tv sum_j |w_{j+1} - w_j|.",
}
_AVERAGE_WORDS = {
    "none": "The last iterate predicts.",
    "suffix": "The mean of the iterates of the last share alpha of T steps, T = total.",
    ADAPTIVE: "The weighted-t1 average, or the last iterate while that scores the recent rows better.",
    "uniform": "The mean of the iterates w_1 .. w_t, each before its step.",
    "uniform-post": "The mean of the iterates w_2 .. w_{t+1}, each after its step.",
    "weighted-t": "The mean of the iterates, w_t with weight t.",
    "weighted-t1": "The mean of the iterates, w_t with weight t + 1.",
}


class Entry(NamedTuple):
    """One part."""

    role: str
    name: str
    words: str  # what it is, in a sentence or with its formula
    settings: dict[str, Any]  # with their defaults; None where a setting has to be given
    elsewhere: list[str]  # what other libraries call it
    text: str  # its whole description


def entries() -> list[Entry]:
    """Every part, role by role."""
    return [*_losses(), *_penalties(), *_solvers(), *_schedules(), *_averages()]


def _entry(role: str, name: str, words: str, settings: dict[str, Any], text: str) -> Entry:
    return Entry(role, name, words, settings, elsewhere(role, name), text)


def _losses() -> list[Entry]:
    return [_entry("loss", name, _first(cls), dict(cls._field_defaults), _whole(cls)) for name, cls in LOSSES.items()]


def _penalties() -> list[Entry]:
    found = []
    for name, keys in PENALTIES.items():
        cls = penalties.FusedLasso if "tv" in keys else penalties.ElasticNet
        needed = "tv" in keys
        settings = dict.fromkeys(keys, None if needed else STRENGTH) | dict.fromkeys(BOUNDS)
        found.append(_entry("penalty", name, _PENALTY_WORDS.get(name) or _first(cls), settings, _whole(cls)))
    return found


def _solvers() -> list[Entry]:
    found = []
    for name, preset in SOLVERS.items():
        text = _whole(inspect.getmodule(preset.solver))
        found.append(_entry("solver", name, _own_line(name, text), _solver_settings(preset), text))
    return found


def _own_line(name: str, text: str) -> str:
    """The line of a description that is about one name, else its first."""
    own = re.search(rf"^ +(?:[\w-]+, )*{re.escape(name)}(?:, [\w-]+)*  +(.+)$", text, re.MULTILINE)
    first = text.partition("\n")[0]
    return first if own is None else f"{first.rstrip('.')}: {' '.join(own[1].split())}"


def _solver_settings(preset: Preset) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in preset.solver._field_defaults.items():
        if hasattr(value, "at"):
            if preset.tied is None:
                settings |= {"schedule": _schedule_name(value), **value._asdict()}
        elif not isinstance(value, tuple) and key != "tied":
            choices = getattr(preset.solver, "choices", {}).get(key, {})
            settings[key] = next((name for name, number in choices.items() if number == value), value)
    settings |= {key: value for key, value in preset.settings.items() if key in settings}
    batched = hasattr(preset.solver, "mean_form") and preset.settings.get("inexact") is not True
    return settings | ({"batch": 1} if batched else {})


def _schedule_name(schedule: Any) -> str:
    for name, (cls, fixed) in schedules.NAMED.items():
        if type(schedule) is cls and fixed and all(getattr(schedule, key) == value for key, value in fixed.items()):
            return name
    return "power" if type(schedule) is schedules.Power else "two-phase"


def _schedules() -> list[Entry]:
    return [
        _entry("schedule", name, _first(cls) + _fixed(fixed), _without(cls, fixed), _whole(cls))
        for name, (cls, fixed) in schedules.NAMED.items()
    ]


def _fixed(fixed: dict[str, Any]) -> str:
    return "" if not fixed else f" Here {', '.join(f'{key} = {value:g}' for key, value in fixed.items())}."


def _without(cls: Any, fixed: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in cls._field_defaults.items() if key not in fixed}


def _averages() -> list[Entry]:
    found = []
    for name, words in _AVERAGE_WORDS.items():
        settings: dict[str, Any] = {"alpha": 0.5, "total": None} if name == "suffix" else {}
        settings |= {} if name in ("none", ADAPTIVE) else {"masked": False}
        found.append(_entry("average", name, words, settings, f"{words}\n\n{_whole(averages.Average)}"))
    return found


def _whole(described: Any) -> str:
    """The description of a class or module; of named tuples ``python -OO`` leaves the names of their fields."""
    return WITHOUT if sys.flags.optimize > 1 else inspect.getdoc(described) or ""


def _first(cls: Any) -> str:
    return " ".join(_whole(cls).partition("\n\n")[0].split())
