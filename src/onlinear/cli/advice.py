"""A command that trains on a table: what ``onlinear train`` still has to be told, by the table's first rows.

Imported where training on a table has failed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from onlinear.cli.command import LISTS, Reading
from onlinear.models.loading import load
from onlinear.models.tables import is_numbered
from onlinear.streams import formats
from onlinear.streams.column_plan import kind_of
from onlinear.streams.converted import is_converted
from onlinear.streams.delimiters import BLANK, delimiter_within, typed
from onlinear.streams.encoding import DATE, ERROR, TEXT, match_columns
from onlinear.streams.marks import COMMA, NULLS, has_decimal_comma
from onlinear.streams.places import Place
from onlinear.streams.suffixes import TABLES
from onlinear.streams.table import TableSettings
from onlinear.streams.tables import open_table
from onlinear.text.names import as_argument, printable
from onlinear.training.options import is_for_numbers

ROWS = 1 << 16  # that are looked at
LONGEST = 30  # characters of a line of names that are shown
FEW = 20  # whole numbers that may be classes
TARGETS = ("target", "label", "class", "y", "click", "clicked", "outcome")
IDS = ("id", "index", "unnamed: 0", "")
NO_NAME = "''"


class Need(NamedTuple):
    """An option that training needs, and why."""

    option: str
    value: str | None
    reason: str

    def words(self) -> list[str]:
        """The option as it is typed."""
        return [self.option] if self.value is None else [self.option, self.value]

    @property
    def shown(self) -> str:
        """The option as it is listed; a column may have no name, and a delimiter may be a blank."""
        return " ".join(word if word.strip() else f"'{word}'" for word in self.words())


def advice_on(ctx: typer.Context, reading: Reading, given: dict[str, Any]) -> str | None:
    """What to type, as lines after an error; None where the source is no table, or the options lack nothing."""
    source = given["source"] or []
    try:
        if len(source) != 1 or not Path(source[0]).is_file() or formats.one_format(source, reading.format, None) not in TABLES:
            return None
        if is_converted(source[0]):
            return None  # its columns are no features
        needs = _needs(source[0], reading, given)
    except (ValueError, TypeError, OSError, pa.ArrowException):
        return None  # the table has errors of its own, which the first message is about
    if not needs:
        return None
    added = [word for need in needs for word in need.words()]
    added += [] if given["model"] else ["--model", as_argument(f"{Path(source[0]).stem}.onlinear")]
    width = max(len(need.shown) for need in needs)
    reasons = "\n".join(f"  {need.shown:{width}}  {need.reason}" for need in needs)
    command = shlex.join(["onlinear", "train", *_typed(ctx, {need.option for need in needs}), *added])
    return f"{printable(source[0])} needs:\n{reasons}\nTry:\n  {command}"


def _typed(ctx: typer.Context, replaced: set[str]) -> Iterator[str]:
    """The arguments and options as they were given, but those that are replaced."""
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value, source = ctx.params.get(name), ctx.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or replaced & set(parameter.opts):
            continue
        if parameter.param_type_name == "argument":
            yield from map(as_argument, value or ())
        elif isinstance(value, bool):
            yield next(option for option in [*parameter.opts, *parameter.secondary_opts] if option.startswith("--no-") != value)
        else:
            yield from (parameter.opts[0], ",".join(value) if name in LISTS and value else str(value))


def _needs(path: str, reading: Reading, given: dict[str, Any]) -> list[Need]:
    """What the first rows of a table ask for; nothing where it has no rows, names that repeat, or not those that are asked
    for."""
    names, batch, marks = _first_rows(path, reading)
    other = delimiter_within(names) if reading.delimiter is None else None
    if other == BLANK and 2 * BLANK in names[0]:
        return []  # the first message tells it: no option reads them
    if other is not None:
        found = _needs(path, reading._replace(delimiter=other), given)
        return [Need("--delimiter", typed(other), f"the names {names[0][:LONGEST]!r} are no single one"), *found]
    commas = [name for name, found in marks.items() if has_decimal_comma(found)] if reading.decimal is None else []
    if commas:
        found = _needs(path, reading._replace(decimal=COMMA), given)
        return [Need("--decimal", COMMA, f"{_list(commas)}: decimal commas, such as {marks[commas[0]][0]}"), *found]
    if not batch.num_rows or len(set(names)) < len(names) or _names_columns(given["start"]):
        return []
    target = reading.target or _guess(names)
    if target not in names or (reading.weight or target) not in names:
        return []
    named = match_columns(names, [*(reading.text or ()), *(reading.numbers or ())], "text and numbers")
    left_out = match_columns(names, reading.exclude or (), "exclude") | {target, reading.weight or target}
    used = set(names) if reading.features is None else match_columns(names, reading.features, "features")
    columns = {name: batch.column(name) for name in names if name in used - left_out}
    found = [Need("--target", target, "the column to predict: a guess")] if reading.target is None else []
    found += _needs_of_columns(columns, named, reading)
    if given["classes"] is None and not given["scan"] and given["task"] == "auto" and not given["start"]:
        if marks.get(target) and pc.count_distinct(batch.column(target)).as_py() > FEW:
            return []  # numbers written otherwise, or marks among them: no option makes them labels
        found += _needs_of_labels(target, batch.column(target), given["loss"])
    ids = [name for name, held in columns.items() if name.lower() in IDS and _all_differ(held)]
    if not found or not ids or reading.features is not None:
        return found
    excluded = next((need for need in found if need.option == "--exclude"), None)
    others = [need for need in found if need is not excluded]
    already = list(reading.exclude or ()) if excluded is None else [str(excluded.value)]
    reason = f"{_list(ids)}: another value in every row"
    return [
        *others,
        Need("--exclude", ",".join([*already, *ids]), reason if excluded is None else f"{excluded.reason}; {reason}"),
    ]


def _names_columns(start: str | None) -> bool:
    """Whether training continues from a model whose columns have names: it says how a table is read, its target included."""
    return start is not None and not is_numbered(getattr(load(start), "encoding_", None))


def _first_rows(path: str, reading: Reading) -> tuple[list[str], Any, dict[str, tuple[str, ...]]]:
    kind = formats.one_format([path], reading.format, None)
    nulls = NULLS if reading.nulls is None else tuple(reading.nulls)
    settings = TableSettings({}, nulls, reading.delimiter, reading.decimal, lambda _: None, {})
    with closing(open_table(Place(path, path), kind, settings)) as table:
        batches, rows = [], 0
        for _, batch in table.batches(table.schema.names, ROWS):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= ROWS:
                break
        return table.schema.names, pa.Table.from_batches(batches, table.schema), table.marks


def _guess(names: Sequence[str]) -> str:
    """The column that is most likely the target: by its name, else the last."""
    return next((name for wanted in TARGETS for name in names if name.lower() == wanted), names[-1])


def _needs_of_columns(columns: dict[str, Any], named: set[str], reading: Reading) -> list[Need]:
    """What features ask for: dates, missing values, and columns that cannot be features."""
    found = []
    free = {name: held for name, held in columns.items() if name not in named}
    dates = [name for name, held in free.items() if kind_of(held.type) == DATE]
    if dates and reading.dates is None:
        found.append(Need("--dates", "days", f"{_list(dates)}: dates"))
    useless = [name for name, held in free.items() if pa.types.is_null(held.type) or kind_of(held.type) is None]
    if useless and reading.features is None:
        reason = f"{_list(useless)}: empty, or no plain values"
        found.append(Need("--exclude", ",".join([*(reading.exclude or ()), *useless]), reason))
    gaps = [name for name, held in columns.items() if name not in useless and _has_gaps(held)]
    if gaps and reading.missing in (None, ERROR):
        found.append(Need("--missing", "indicator", f"{_list(gaps)}: missing values"))
    return found


def _needs_of_labels(target: str, held: Any, loss: str | None) -> list[Need]:
    """Whether a target holds classes or numbers, where ``train`` does not see it."""
    if kind_of(held.type) == TEXT:
        return [Need("--scan", None, f"{target}: text, whose classes a first pass finds")]
    if is_for_numbers(loss):
        return []
    values = np.unique(pc.drop_null(held).cast(pa.float64()).to_numpy())
    if np.any(values != np.rint(values)) or np.all(np.isin(values, (-1.0, 0.0, 1.0))):
        return []
    if len(values) <= FEW:
        return [Need("--scan", None, f"{target}: {len(values)} whole numbers, classes perhaps")]
    return [Need("--task", "regress", f"{target}: many whole numbers, amounts perhaps")]


def _has_gaps(held: Any) -> bool:
    return bool(held.null_count) or (pa.types.is_floating(held.type) and bool(pc.any(pc.is_nan(held)).as_py()))


def _all_differ(held: Any) -> bool:
    return len(held) > FEW and pc.count_distinct(held).as_py() == len(held)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(name or NO_NAME for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
