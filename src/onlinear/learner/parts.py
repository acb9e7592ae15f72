"""Parts from what users write: text such as ``elastic-net,l1=1e-5``, or part objects, checked for range and methods."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from inspect import signature
from math import ceil, inf, log
from typing import Any, NamedTuple

from onlinear import averages, losses, schedules, softmax
from onlinear.averages import Average, Fading, Masked
from onlinear.compiled import adopt, is_ours
from onlinear.penalties import Box, ElasticNet, FusedLasso, register
from onlinear.schedules import Power, TwoPhase
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Preset
from onlinear.solvers.core.mini_batch import MOST_ROWS, MiniBatch
from onlinear.solvers.core.scaled_vector import strong_convexity
from onlinear.text.form import Value, as_plain, check_flag, check_number, choose, join_names, kebab, parse, parts_of, unknown
from onlinear.text.hints import advise

LOSSES: dict[str, Any] = parts_of(vars(losses))  # of one score
JOINT_LOSSES: dict[str, Any] = {"softmax": softmax.Softmax}  # of all scores of a row
ALL_LOSSES = LOSSES | JOINT_LOSSES
PENALTIES: dict[str, tuple[str, ...]] = {
    "none": (),
    "l1": ("l1",),
    "l2": ("l2",),
    "elastic-net": ("l1", "l2"),
    "total-variation": ("tv",),
    "fused-lasso": ("tv", "l1", "l2"),
}
BOUNDS = ("lower", "upper")
STRENGTH = 1e-5  # of l1 and l2 where a penalty is named without one
AVERAGES = ("none", "suffix", averages.ADAPTIVE, *averages.NAMED)
SCALES = ("none", "centred", "tempered", "dense", "rms", "max-abs", "standard")

# Range of each setting: low, high, and whether the ends are excluded.
RANGES: dict[str, tuple[float, float, bool, bool]] = {
    "factor": (0.0, inf, True, True),
    "margin": (0.0, inf, False, True),
    "delta": (0.0, inf, True, True),
    "eps": (0.0, inf, False, True),
    "q": (0.0, 1.0, True, True),
    "l1": (0.0, inf, False, True),
    "l2": (0.0, inf, False, True),
    "tv": (0.0, inf, False, True),
    "lower": (-inf, 0.0, False, False),
    "upper": (0.0, inf, False, False),
    "eta": (0.0, inf, True, True),
    "intercept": (0.0, inf, False, True),
    "beta": (0.0, inf, True, True),
    "t0": (0.0, inf, False, True),
    "power": (0.0, 1.0, False, False),
    "m": (1.0, inf, False, True),
    "alpha": (0.0, 1.0, True, False),
    "total": (1.0, 2.0**53, False, False),
    "rho": (0.0, inf, True, True),
    "rate": (0.0, inf, False, True),
    "lam": (0.0, inf, True, True),
    "relaxation": (0.0, 2.0, True, True),
    "relaxation_power": (0.0, 1.0, False, False),
    "gamma": (0.0, inf, False, True),
    "bregman": (0.0, inf, False, True),
    "bregman_power": (0.0, 1.0, False, False),
    "C": (0.0, inf, True, False),
    "radius": (0.0, inf, True, False),
    "tol": (0.0, 1.0, True, True),
    "batch": (1.0, float(MOST_ROWS), False, False),
    "T1": (1.0, 2.0**53, False, False),
    "limit": (1.0, 2.0**31, False, False),
    "base": (0.0, inf, False, True),
    "growth": (0.0, inf, False, True),
    "first": (1.0, 2.0**53, False, False),
    "schedule": (0.0, 1.0, False, False),  # where it is the power of t
    "reproduced": (0.0, 1.0, False, True),
    "pivot": (0.0, 1.0, False, False),
}
TEXTS = 256  # of parts of one role that are kept with what they say
WHOLE = 2**53  # the largest integer that a setting may be: compiled code takes no larger one


def check_setting(role: str, key: str, value: Any) -> float:
    """A setting's value inside its range."""
    low, high, open_low, open_high = RANGES[key]
    return check_number(role, key, value, low, high, open_low=open_low, open_high=open_high)


def split(spec: Any, role: str, known: Any) -> tuple[str, dict[str, Value]]:
    """Name and settings of a text, the name checked."""
    if not isinstance(spec, str):
        hint = advise(role, str(spec).lower(), list(known))
        raise TypeError(
            f"{role} must be text such as {next(iter(known))!r} or a part object, got {spec!r}.{f' {hint}' if hint else ''}"
        )
    name, settings = parse(spec, role)
    if "=" in name:
        raise ValueError(f"{role} {spec!r} must begin with a name: name,key=value,... Names: {join_names(known)}.")
    return choose(role, name, known), settings


def refuse_unknown(role: str, settings: Mapping[str, Value], known: Any) -> None:
    """Raise for the first setting that is not known."""
    for key in settings:
        if key not in known:
            near = unknown(f"{role}: setting", key, known) if known else None
            raise near if near is not None else ValueError(f"{role} takes no settings, got {key!r}.")


# The arguments that kernels give to a part's methods.
ARGUMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "loss": {"value": ("s", "y"), "slope": ("s", "y"), "theta": ("a", "c", "y")},
    "penalty": {
        "value": ("w",),
        "prox": ("v", "eta"),
        "start": (),
        "tick": ("clock", "eta"),
        "weight": ("v", "clock"),
        "potential": ("w", "clock"),
    },
    "solver": {"engine": ("problem",)},
}
EXAMPLES = {"loss": "hinge", "penalty": "l1=1e-5", "solver": "fiol,eta=20"}  # of text


def check_part(role: str, part: Any, needs: tuple[str, ...]) -> None:
    """Check a part object: its methods, and the settings of one of this package.

    Raises TypeError naming the methods that it lacks or that take other arguments than kernels give; ValueError for a setting
    out of range.
    """
    if isinstance(part, type):
        raise TypeError(
            f"{role} must be text or a part object, got the class {part.__name__}: make one, as in {part.__name__}()."
        )
    missing = [name for name in needs if not callable(getattr(part, name, None))]
    if missing == list(needs) and not hasattr(part, "_fields"):
        example = EXAMPLES[role]
        raise TypeError(f"{role} must be text such as {example!r}, or a NamedTuple with {' and '.join(needs)}, got {part!r}.")
    if missing or not hasattr(part, "_fields"):
        what = f"lacks {', '.join(missing)}" if missing else "is not a NamedTuple"
        raise TypeError(f"{role} {part!r} {what}; a {role} is a NamedTuple with the methods {', '.join(needs)}.")
    if not part._fields:
        raise TypeError(f"{role} {part!r} has no field; a part needs at least one (compiled code cannot hold an empty tuple).")
    for name, given in ARGUMENTS[role].items():
        if callable(method := getattr(part, name, None)) and not _takes(method, len(given)):
            raise TypeError(f"{role} {part!r}: {name} must take ({', '.join(given)}), it takes {signature(method)}.")
    if is_ours(type(part).__module__):
        check_settings(role, part)
    elif hasattr(part, "factor"):
        check_setting(role, "factor", part.factor)


def check_settings(role: str, part: Any) -> None:
    """Check the settings of an object of this package as those of text are; what a class has as its default is right."""
    cls, role = type(part), f"{role} {type(part).__name__}"
    for key, value in zip(cls._fields, part, strict=True):
        default = cls._field_defaults.get(key)
        kind = kind_of(default)
        if kind is not None:
            if not hasattr(value, kind.method):
                raise TypeError(f"{role}: {key} must be a {kind.role} object such as {default!r}, got {value!r}.")
            if is_ours(type(value).__module__):
                check_settings(role, value)
        elif isinstance(default, bool):
            check_flag(f"{role}: {key}", value)
        elif key in RANGES:
            _number(role, key, value, default)


def _number(role: str, key: str, value: Any, default: Any) -> None:
    if isinstance(value, int) and abs(value) > WHOLE:
        raise ValueError(f"{role}: {key} must be at most 2^53 in size where it is an integer, got {value!r}.")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != default:
        check_setting(role, key, value)


def in_doubles(part: Any) -> Any:
    """A part whose numbers, and those of the parts in it, are as text has them: what is computed with one of single precision
    would be of single precision too."""
    held = {name: getattr(part, name) for name in part._fields}
    plain = {name: in_doubles(value) if hasattr(value, "_fields") else as_plain(value) for name, value in held.items()}
    changed = {name: value for name, value in plain.items() if value is not held[name]}
    return part._replace(**changed) if changed else part


class Kind(NamedTuple):
    """A part inside a part: its role, and the method that tells it."""

    role: str
    method: str


INSIDE = (Kind("schedule", "at"), Kind("search", "root"))


def kind_of(default: Any) -> Kind | None:
    """What stands in a field with this default: a part of some kind, or (None) a number or a flag."""
    return next((kind for kind in INSIDE if hasattr(default, kind.method)), None)


def _takes(method: Any, count: int) -> bool:
    try:
        signature(method).bind(*range(count))
    except TypeError:
        return False
    return True


def build_loss(spec: Any) -> Any:
    """A loss from text or a NamedTuple with value and slope (and theta for the implicit solvers)."""
    if isinstance(spec, str):
        return _loss_of(spec)
    check_part("loss", spec, ("value", "slope"))
    adopt(type(spec))
    return in_doubles(spec)


@lru_cache(TEXTS)  # a fit asks some ten times
def _loss_of(spec: str) -> Any:
    name, settings = split(spec, "loss", ALL_LOSSES)
    cls = ALL_LOSSES[name]
    refuse_unknown(f"loss {name!r}", settings, cls._fields)
    return cls(**{key: check_setting(f"loss {name!r}", key, value) for key, value in settings.items()})


def build_penalty(spec: Any) -> Any:
    """A penalty from text, or a NamedTuple with value and prox (and tick, weight, potential for lazy steps); None is "none"."""
    spec = "none" if spec is None else spec
    if not isinstance(spec, str):
        check_part("penalty", spec, ("value", "prox"))
        spec = in_doubles(spec)
        register(spec)
        return spec
    return _penalty_of(spec)


@lru_cache(TEXTS)
def _penalty_of(spec: str) -> Any:
    named = _with_name(spec)
    name, settings = split(named, "penalty", PENALTIES)
    role, keys = f"penalty {(name if named == spec else spec)!r}", PENALTIES[name]
    refuse_unknown(role, settings, (*keys, *BOUNDS))
    if "tv" in keys and not any(key in settings for key in keys):
        raise ValueError(f"{role} has no default strength; write {f'{name},tv=0.01'!r}, with a number that fits your data.")
    if not any(key in settings for key in keys):
        settings |= dict.fromkeys(keys, STRENGTH)
    values = {key: check_setting(role, key, value) for key, value in settings.items()}
    if "tv" in keys:
        return FusedLasso(**values)
    return Box(**values) if "lower" in values or "upper" in values else ElasticNet(**values)


def named_settings(spec: str) -> tuple[str, dict[str, Any]]:
    """The name of a penalty that is given as text, and its settings."""
    return split(_with_name(spec), "penalty", PENALTIES)


def _with_name(spec: str) -> str:
    """The text of a penalty with its name in front: "l1=1e-5" is "l1,l1=1e-5"."""
    if "=" not in spec.partition(",")[0]:
        return spec
    given = {piece.partition("=")[0].strip() for piece in spec.split(",")} - set(BOUNDS)
    names = [name for name, keys in PENALTIES.items() if given == set(keys)]
    return f"{names[0] if names else 'fused-lasso'},{spec}"


def build_average(spec: Any, total: int | None = None) -> Average | None:
    """An average from text; ``total`` is T where the caller knows it."""
    if isinstance(spec, Average):
        check_settings("average", spec)
        return in_doubles(spec)
    if spec is None:
        return None
    name, settings = split(spec, "average", AVERAGES)
    role = f"average {name!r}"
    own = {"suffix": ("alpha", "total"), averages.ADAPTIVE: ("calibrated",)}.get(name, ())
    refuse_unknown(role, settings, own if name in ("none", averages.ADAPTIVE) else (*own, "masked"))
    if name == "none":
        return None
    if name == averages.ADAPTIVE:
        check_flag(f"{role}: calibrated", settings.get("calibrated", False))
        return averages.NAMED["weighted-t1"]
    masked = check_flag(f"{role}: masked", settings.get("masked", False))
    found = averages.NAMED[name] if name in averages.NAMED else _suffix(role, settings, total)
    return Masked(*found) if masked else found


def _suffix(role: str, settings: Mapping[str, Value], total: int | None) -> Average:
    """The average of the last alpha T predictors."""
    alpha = check_setting(role, "alpha", settings.get("alpha", 0.5))
    steps = settings.get("total", total)
    if steps is None:
        raise ValueError(
            f"{role} needs total=T, the number of steps after which the suffix ends, e.g. 'suffix,alpha=0.5,total=10000'."
        )
    T = _whole(role, "total", steps)
    kept = ceil(Fraction(repr(alpha)) * T)  # of alpha as it is written: 0.55 * 100 is more than 55 in floating point
    return Average(1.0, 0.0, T - kept + 1.0)


def half_life(forget: Any) -> float | None:
    """The half-life in rows, or None; raises ValueError for one that is below 1 or not finite."""
    if forget is None:
        return None
    if isinstance(forget, float) and 0.0 < forget < 1.0:
        meant = log(0.5) / log(forget)
        raise ValueError(
            f"forget is a half-life in rows, at least 1, got {forget:g}: that factor a row is a half-life of {meant:.3g} rows."
        )
    return check_number("", "forget", forget, 1.0, inf, open_high=True)


def fading(spec: Any, average: Any, forget: float) -> Fading | None:
    """The average, given as ``spec``, of a learner that forgets: rows count by their age."""
    if average is None:
        return None
    if average.first == 1.0 and not (average.post or isinstance(average, Masked)):
        return Fading(average.base, average.growth, forget)
    raise ValueError(
        f"average {spec!r} has no form that forgets: use 'adaptive', 'uniform', 'weighted-t', 'weighted-t1' or 'none'."
    )


def is_none(average: Any) -> bool:
    """Whether an average, as users write it, says that there is none."""
    return average is None or _is_named(average, "none")


def is_adaptive(average: Any) -> bool:
    """Whether an average, as users write it, is the adaptive one."""
    return _is_named(average, averages.ADAPTIVE)


def is_calibrated(average: Any) -> bool:
    """Whether an average, as users write it, is the adaptive one with a size that is learned."""
    return is_adaptive(average) and split(average, "average", AVERAGES)[1].get("calibrated", False) is True


def _is_named(average: Any, name: str) -> bool:
    return isinstance(average, str) and split(average, "average", AVERAGES)[0] == name


def build_schedule(role: str, default: Any, settings: Mapping[str, Value], total: int | None = None) -> Any:
    """The schedule named in a solver's settings (or its default), with the settings that stand beside it."""
    named = settings.get("schedule")
    if named is None:
        cls, values = type(default), default._asdict()
    else:
        named = choose(f"{role}: schedule", str(named), schedules.NAMED)
        cls, fixed = schedules.NAMED[named]
        values = {key: getattr(default, key, fallback) for key, fallback in cls._field_defaults.items()} | fixed
        clash = [key for key in fixed if key in settings]
        if clash:
            raise ValueError(f"{role}: schedule {named!r} fixes {clash[0]}; use schedule=power to set it.")
    given = {key: check_setting(role, key, value) for key, value in settings.items() if key in ("eta", "t0", "power", "m")}
    refuse_unknown(f"{role}: schedule {named or 'default'}", given, cls._fields)
    values |= given
    if cls is TwoPhase and values["m"] == 0.0:
        if total is None:
            raise ValueError(f"{role}: the two-phase schedule needs m, the step at which its second phase starts, e.g. m=5000.")
        values["m"] = float(ceil(total / 2))
    return cls(**values)


def build_solver(spec: Any, penalty: Any, total: int | None = None) -> tuple[Any, Preset]:
    """A solver with its settings, and the preset it came from; ``total``: the rows that it will learn."""
    if not isinstance(spec, str):
        check_part("solver", spec, ("engine",))
        for part in (spec, *spec):  # its schedule too
            if hasattr(part, "_fields"):
                adopt(type(part))
        return in_doubles(spec), Preset(type(spec))
    name, settings = split(spec, "solver", SOLVERS)
    preset = SOLVERS[name]
    cls, role = preset.solver, f"solver {name!r}"
    settings = {**preset.settings, **settings}
    batch = _whole(role, "batch", settings.pop("batch", 1))
    has_schedule = hasattr(cls._field_defaults.get("schedule"), "at")
    scheduled = has_schedule and preset.tied is None
    own = [key for key in cls._fields if key != "tied" and not (key == "schedule" and has_schedule)]
    refuse_unknown(role, settings, (*own, "batch", *(("schedule", "eta", "t0", "power", "m") if scheduled else ())))
    values: dict[str, Any] = {key: _setting(role, cls, key, settings[key]) for key in own if key in settings}
    if preset.tied is not None:
        l2 = strong_convexity(role, penalty)
        values |= {"schedule": Power(preset.tied[0] / l2, preset.tied[1], 1.0), "tied": True}
    elif scheduled:
        default = cls._field_defaults["schedule"]
        values["schedule"] = build_schedule(role, default, settings, None if total is None else steps_of(total, batch))
    found = cls(**values)
    return found if batch == 1 else MiniBatch(found, batch), preset


def preset_of(spec: Any) -> Preset:
    """The preset of a solver, given by text or as an object."""
    return SOLVERS[split(spec, "solver", SOLVERS)[0]] if isinstance(spec, str) else Preset(type(spec))


def _whole(role: str, key: str, value: Any) -> int:
    """A setting's value, which must be a whole number."""
    found = check_setting(role, key, value)
    if not found.is_integer():
        raise ValueError(f"{role}: {key} must be a whole number, got {found!r}.")
    return int(found)


def steps_of(rows: int, batch: int) -> int:
    """The steps that rows make, at least 1."""
    return max(1, rows // batch)


def solver_name(spec: Any) -> str:
    """What users call a solver, given by text or as an object."""
    if isinstance(spec, MiniBatch):
        return solver_name(spec.solver)
    return split(spec, "solver", SOLVERS)[0] if isinstance(spec, str) else kebab(type(spec).__name__)


def _setting(role: str, cls: Any, key: str, value: Any) -> Any:
    default = cls._field_defaults[key]
    if isinstance(default, bool):
        return check_flag(f"{role}: {key}", value)
    choices = getattr(cls, "choices", {}).get(key)
    if choices is not None and (isinstance(value, str) or key not in RANGES):
        return choices[_choice(role, key, str(value), choices)]
    return check_setting(role, key, value)


def _choice(role: str, key: str, name: str, choices: Mapping[str, Any]) -> str:
    """The choice of a setting that has this name; the error says so where the setting may be a number too."""
    try:
        return choose(f"{role}: {key}", name, choices)
    except ValueError as error:
        if key not in RANGES:
            raise
        low, high, _, _ = RANGES[key]
        raise ValueError(f"{error} It may be a number from {low:g} to {high:g}, too.") from None
