"""Experiments as data: a TOML file becomes frozen dataclasses; a key that is not known or of the wrong type is an error.

The keys are described in docs/papers.md, "How to write an experiment".
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib import resources
from itertools import product
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from onlinear.papers.data_spec import DataSpec, Table
from onlinear.text.form import unknown

PAPERS = ("p1", "p2", "p3", "p4", "p5", "ours")
PARTS = ("train",)
ORDERS = ("replacement", "permutation", "rows")
PANELS, BANDS, LOGS = ("curves", "grid", "problems", "map"), ("sd", "quantiles", "none"), ("", "x", "y", "xy")
ROWS, OVERS = ("methods", "problems"), ("problems", "once")
STATEMENTS = ("paper", "identity", "ours", "repeat")  # whose statement a claim is
BOUND = ("measured", "bound", "trivial")


class ExperimentError(ValueError):
    """An experiment file that says something it cannot say."""


@dataclass(frozen=True)
class Method:
    """One curve: a solver with its loss, penalty, average; ``{...}`` in a text is an expression."""

    name: str
    solver: str
    loss: str
    penalty: str = "none"
    average: str | None = None
    scale: str = "none"
    intercept: bool = False
    grid: Table = field(default_factory=dict)
    values: Table = field(default_factory=dict)
    settings_of: str | None = None
    steps: Any = None
    seconds: Any = None
    order: str | None = None
    data: tuple[str, ...] | None = None
    colour: str | None = None
    line: str | None = None
    family: str | None = None


@dataclass(frozen=True)
class Select:
    """How a grid's best point is found: least mean of ``measure`` at step ``at`` (the last by default)."""

    measure: str = "objective"
    at: int | None = None
    repetitions: int = 1
    fresh: bool = False
    alone: bool = False  # measure nothing else while selecting


@dataclass(frozen=True)
class Panel:
    """One picture of a figure."""

    y: str = ""
    x: str = "samples"
    kind: str = "curves"
    log: str = ""
    title: str | None = None
    data: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    only: Table = field(default_factory=dict)
    bounds: tuple[str, ...] = ()
    bounded: tuple[str, ...] | None = None
    band: str = "sd"
    x_label: str | None = None
    y_label: str | None = None
    x_range: tuple[float, ...] | None = None
    y_range: tuple[Any, ...] | None = None
    step: int | None = None
    horizontal: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure of the report: panels, drawn once for each data set and case that they cover."""

    title: str
    panel: tuple[Panel, ...]
    about: str = ""
    columns: int = 2


@dataclass(frozen=True)
class Column:
    """A column of a table: an expression, the paper's value, and why ours is far from it."""

    title: str
    value: str
    spread: str | None = None
    paper: tuple[tuple[Any, ...], ...] = ()
    reason: tuple[tuple[Any, ...], ...] = ()
    format: str = ""

    @property
    def compared(self) -> bool:
        """Whether its difference from the paper's numbers can be counted in deviations."""
        return self.spread is not None and any(isinstance(row[-1], (int, float)) for row in self.paper)


@dataclass(frozen=True)
class TableSpec:
    """A table: a row for each problem, or each problem and method."""

    title: str
    column: tuple[Column, ...]
    rows: str = "methods"
    about: str = ""
    methods: tuple[str, ...] | None = None
    data: tuple[str, ...] | None = None
    only: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and the expressions that decide it."""

    text: str
    where: str
    check: tuple[str, ...]
    over: str = "problems"
    data: tuple[str, ...] | None = None
    only: Table = field(default_factory=dict)
    kind: str = "paper"
    universal: bool = False
    note: str = ""
    fails: str = ""
    show: Table = field(default_factory=dict)
    bound: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One experiment file."""

    name: str
    paper: str
    place: str
    title: str
    data: tuple[DataSpec, ...]
    method: tuple[Method, ...] = ()
    about: str = ""
    order: str = "replacement"
    repetitions: int = 1
    seed: int = 0
    steps: Any = None
    checkpoints: Any = "log 40"
    measures: tuple[str, ...] = ("objective",)
    constants: Table = field(default_factory=dict)
    cases: Table = field(default_factory=dict)
    select: Select = field(default_factory=Select)
    series: Table = field(default_factory=dict)
    figure: tuple[Figure, ...] = ()
    table: tuple[TableSpec, ...] = ()
    claim: tuple[Claim, ...] = ()
    quick: Table = field(default_factory=dict)

    def case_values(self) -> list[dict[str, Any]]:
        """Every combination of the cases' values; one empty case where there are none."""
        return [dict(zip(self.cases, values, strict=True)) for values in product(*map(as_list, self.cases.values()))]


def as_list(value: Any) -> list[Any]:
    """A TOML value as a list; a text such as ``2^-4..2^3`` as the powers it names."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str) and ".." in value:
        return powers(value)
    return [value]


def powers(text: str) -> list[float]:
    """'2^-3..2^1' -> [0.125, 0.25, 0.5, 1, 2]; '10^-2..10^0 by 2' takes two values in each power."""
    span, _, parts = text.partition(" by ")
    try:
        (base, low), (base2, high) = (piece.split("^") for piece in span.split(".."))
        first, last, per = int(low), int(high), int(parts or 1)
        if float(base) != float(base2) or last < first or per < 1:
            raise ValueError
    except ValueError:
        raise ExperimentError(f"a grid of powers is written like '2^-20..2^-1' or '10^-3..10^0 by 2', got {text!r}.") from None
    return [float(base) ** (k / per) for k in range(first * per, last * per + 1)]


# --- reading ---------------------------------------------------------------------------------------------------------


@cache
def names() -> tuple[str, ...]:
    """All experiments, as ``paper/name``, in the order of papers and file names."""
    home = resources.files("onlinear.papers")
    found = []
    for paper in PAPERS:
        folder = home / paper
        if folder.is_dir():
            found += sorted(f"{paper}/{file.name[:-5]}" for file in folder.iterdir() if file.name.endswith(".toml"))
    return tuple(found)


def choose(wanted: Iterable[str]) -> list[str]:
    """The experiments that ``p5`` or ``p5/fig3`` name; all for no name. Raises ValueError for unknown ones."""
    wanted = list(wanted)
    if not wanted:
        return list(names())
    known, found = names(), []
    for name in wanted:
        hits = [full for full in known if full == name or full.split("/")[0] == name]
        if not hits:
            raise unknown("experiment", name, {*known, *(full.split("/")[0] for full in known)})
        found += [full for full in hits if full not in found]
    return found


def load(name: str, quick: bool = False) -> Experiment:
    """The experiment ``p5/fig3``, with its ``quick`` settings put in if asked."""
    path = resources.files("onlinear.papers").joinpath(*name.split("/")[:-1], name.split("/")[-1] + ".toml")
    return parse(path.read_text(encoding="utf-8"), name, quick)


def parse(text: str, name: str, quick: bool = False) -> Experiment:
    """An experiment from the text of a file; ``name`` stands in errors."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{name}.toml: {error}.") from None
    if quick:
        table = overridden(table, table.get("quick", {}), f"{name}.toml: quick")
    found: Experiment = build(Experiment, {"name": name, **table}, f"{name}.toml")
    check(found)
    return found


def overridden(table: Table, changes: Table, where: str) -> dict[str, Any]:
    """``table`` with the changes put in: tables merge, lists of named tables by name; ``without`` takes named ones out."""
    found = dict(table)
    for key, value in changes.items():
        old = found.get(key)
        if key == "without":
            for list_name, gone in value.items():
                found[list_name] = [item for item in found.get(list_name, []) if item.get("name") not in gone]
        elif isinstance(old, list) and isinstance(value, dict):
            items = {item.get("name"): item for item in old}
            for item, change in value.items():
                if item not in items:
                    raise ExperimentError(f"{where}: {key} has no {item!r}; it has {', '.join(map(str, items))}.")
                items[item] = overridden(items[item], change, where)
            found[key] = list(items.values())
        elif isinstance(old, dict) and isinstance(value, dict):
            found[key] = overridden(old, value, where)
        else:
            found[key] = value
    return found


def build(cls: Any, table: Any, where: str) -> Any:
    """A dataclass from a table, each value checked against the field's type."""
    if not isinstance(table, dict):
        raise ExperimentError(f"{where}: expected a table, got {table!r}.")
    hints = get_type_hints(cls)
    for key in table:
        if key not in hints:
            raise ExperimentError(f"{where}: {unknown('key', key, hints)}")
    for known in fields(cls):
        if known.default is MISSING and known.default_factory is MISSING and known.name not in table:
            raise ExperimentError(f"{where}: the key {known.name!r} is missing.")
    return cls(**{key: convert_value(hints[key], value, f"{where}: {key}") for key, value in table.items()})


def convert_value(hint: Any, value: Any, where: str) -> Any:
    """A TOML value as a field's type."""
    if hint is Any:
        return value
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return convert_value(next(arg for arg in args if arg is not type(None)), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            value = [value]
        return tuple(convert_value(args[0], item, f"{where} {_title(item, i)}") for i, item in enumerate(value, 1))
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return build(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = dict if origin is not None else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ExperimentError(f"{where} must be a {wanted.__name__}, got {value!r}.")
    return value


def _title(item: Any, place: int) -> str:
    return repr(item["name"]) if isinstance(item, dict) and "name" in item else str(place)


def one_of(where: str, what: str, value: str, known: Iterable[str]) -> None:
    """Raise where a value is none of those known."""
    if value not in known:
        raise ExperimentError(f"{where}: {unknown(what, value, known)}")


def check(experiment: Experiment) -> None:
    """Raise for names that do not fit together."""
    where = f"{experiment.name}.toml"
    _check_data(experiment, where)
    _check_measures(experiment, where)
    _check_figures(experiment, where)
    for table in experiment.table:
        one_of(where, "a table's rows", table.rows, ROWS)
    for claim in experiment.claim:
        one_of(where, "a claim's over", claim.over, OVERS)
        one_of(where, "a claim's kind", claim.kind, STATEMENTS)
        for key in claim.bound:
            one_of(where, "a key of a claim's bound", key, BOUND)
    _check_selections(experiment, where)


def _check_data(experiment: Experiment, where: str) -> None:
    for kind, items in (("data", experiment.data), ("method", experiment.method)):
        listed = [item.name for item in items]
        if len(set(listed)) < len(listed):
            raise ExperimentError(f"{where}: two entries of {kind} have one name.")
    for method in experiment.method:
        if method.settings_of is not None:
            one_of(where, "settings_of", method.settings_of, [other.name for other in experiment.method if other.grid])
    for data in experiment.data:
        if (data.set is None) == (data.generator is None):
            raise ExperimentError(f"{where}: data {data.name!r} needs either set or generator.")
        if data.part is not None:
            one_of(where, f"data {data.name!r}: part", data.part, PARTS)


def _check_measures(experiment: Experiment, where: str) -> None:
    from onlinear.papers.measures import MEASURES

    for measure in experiment.measures:
        if measure not in MEASURES:
            raise ExperimentError(f"{where}: {unknown('measure', measure, MEASURES)}")
    for order in (experiment.order, *(method.order for method in experiment.method)):
        if order is not None and order not in ORDERS:
            raise ExperimentError(f"{where}: {unknown('order', order, ORDERS)}")
    if experiment.select.measure not in MEASURES:
        raise ExperimentError(f"{where}: select: {unknown('measure', experiment.select.measure, MEASURES)}")


def _check_figures(experiment: Experiment, where: str) -> None:
    series = {"samples", "steps", "time", *experiment.measures, *experiment.series}
    for panel in (panel for figure in experiment.figure for panel in figure.panel):
        one_of(where, "a panel's kind", panel.kind, PANELS)
        one_of(where, "a panel's band", panel.band, BANDS)
        one_of(where, "a panel's log", panel.log, LOGS)
        for name in (*(() if panel.kind == "problems" else (panel.x,)), panel.y, *panel.bounds):
            one_of(where, "a panel's measure", name, series)


def _check_selections(experiment: Experiment, where: str) -> None:
    """Raise where a panel, a table or a claim selects a method, data or a case that there is not."""
    methods, sets = {method.name for method in experiment.method}, {data.name for data in experiment.data}
    parts: list[Any] = [
        *(panel for figure in experiment.figure for panel in figure.panel),
        *experiment.table,
        *experiment.claim,
    ]
    for part in parts:
        given = (
            (methods, getattr(part, "methods", None), "method"),
            (methods, getattr(part, "bounded", None), "method"),
            (sets, part.data, "data"),
        )
        for known, used, kind in given:
            for name in used or ():
                if name not in known:
                    raise ExperimentError(f"{where}: {unknown(kind, name, known)}")
        for name in part.only:
            if name not in experiment.cases:
                raise ExperimentError(f"{where}: {unknown('case', name, experiment.cases)}")
