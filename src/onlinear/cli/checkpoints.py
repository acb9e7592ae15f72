"""Checkpoints of ``onlinear train``, from which a run continues as if it had never stopped.

A checkpoint is a model file: ``load`` gives the model as it stood. Its header has an entry ``run`` besides. That holds the
settings, the place in the source (pass and rows), the generator of the shuffle at the start of that pass, and what has been
reported. Arrays named ``run.*`` hold the sums behind the measures. The rows before the place are read again and skipped.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from onlinear.cli.command import reason
from onlinear.cli.header_rules import OPTIONAL_TEXT, Rule, is_flag, is_mapping, is_nothing, must_be, or_none, within
from onlinear.cli.settings import READING, SETTINGS, Settings
from onlinear.errors import ModelFileError
from onlinear.files import model_file, paths, trust
from onlinear.streams.blocks import Fingerprint
from onlinear.text.names import option_of, printable
from onlinear.training.events import Written
from onlinear.training.options import CLASSIFY, REGRESS
from onlinear.training.saved import RunState
from onlinear.training.training import Training

VERSION = 1
RUN = "run"
SHARDS = "shards"  # the entry of a header that says where a fit over shards stands
COMMAND = ("version", "settings", "output")  # what is said of the command itself


class CheckpointError(Exception):
    """A checkpoint could not be written; the one before it stands."""


class Checkpoints:
    """Writes the checkpoints of one run, after every so many rows or seconds; with neither, only when asked.

    ``saved``: what the run continues from, which is its last checkpoint until it has written another."""

    def __init__(
        self, path: str, rows: int | None, seconds: float | None, output: Mapping[str, Any], saved: Saved | None = None
    ) -> None:
        self.path, self.rows, self.seconds = path, rows, seconds
        self.output = dict(output)  # where the run writes, for whoever continues it
        self.settings: Settings | None = None  # of the run, once it is made
        self.last = None if saved is None else saved.path  # the file of the run's last checkpoint
        self._model = None if saved is None else saved.output.get("model")  # the model that this file names

    def keep(self, settings: Settings) -> None:
        """Keep the settings of the run. Raises ValueError for one that no checkpoint can have: it would not be resumed."""
        rules = [(name, rule, getattr(settings, name)) for name, rule in SETTINGS.items()]
        rules += [(name, READING[name], value) for name, value in settings.reading.items()]
        for name, rule, value in rules:
            if not rule(list(value) if isinstance(value, tuple) else value):
                raise ValueError(f"{option_of(name)} is beyond what a checkpoint can hold, got {value}.")
        self.settings = settings

    def entry(self) -> dict[str, Any]:
        """What the header says of the command: its options."""
        assert self.settings is not None
        return {"version": VERSION, "settings": self.settings._asdict(), "output": self.output}

    def write(self, training: Training) -> Written:
        """Write a checkpoint; the file that was there stands until the new one is whole. Raises CheckpointError."""
        try:
            state = training.state()
            header, arrays = training.model.freeze()
            header[RUN] = {**self.entry(), **state.run}
            model_file.write(self.path, header, arrays | {f"{RUN}.{name}": array for name, array in state.arrays.items()})
        except (OSError, MemoryError) as error:
            raise CheckpointError(f"the checkpoint {printable(self.path)} cannot be written: {reason(error)}") from None
        self.wrote()
        return Written(self.path, training.rows, os.path.getsize(self.path))

    def wrote(self) -> None:
        """Note that a checkpoint has been written."""
        self.last, self._model = self.path, self.output.get("model")

    def way_on(self) -> str:
        """The command that continues from the last checkpoint, which there must be."""
        assert self.last is not None
        model = self.output.get("model")
        named = "" if model is None or (model == self._model and beside(self.last, model)) else f" --model {shlex.quote(model)}"
        return f"onlinear train --resume {shlex.quote(self.last)}{named}"


class Saved(NamedTuple):
    """What a checkpoint holds."""

    path: str
    settings: Settings
    output: dict[str, Any]
    state: RunState
    sharded: bool = False  # whether it is of a run over shards, whose rounds ``onlinear.shards`` restores


def beside(checkpoint: str, path: str) -> bool:
    """Whether a path is in the folder of a checkpoint, or below: a run that is continued writes nowhere else unasked."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.dirname(os.path.realpath(checkpoint)))


def may_replace(path: str) -> bool:
    """Whether a checkpoint may be written there: where there is nothing yet, or a checkpoint."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return True
    try:
        header, _ = model_file.read(path)
    except ModelFileError:
        return False
    return RUN in header or SHARDS in header


def read(path: str) -> Saved:
    """Read a checkpoint; raises FileNotFoundError, ModelFileError."""
    if not paths.exists(path):
        raise FileNotFoundError(f"no checkpoint at {path!r}; a run that ends before its first is due leaves none.")
    header, arrays = model_file.read(path)
    run = header.get(RUN)
    if not isinstance(run, dict):
        raise ModelFileError(f"{printable(path)}: a model, not a checkpoint: it holds no run to resume.")
    if run.get("version") != VERSION:
        raise ModelFileError(
            f"{printable(path)}: a checkpoint of version {run.get('version')!r}; this release reads {VERSION}."
        )
    own = model_file.arrays_below(arrays, f"{RUN}.")
    sharded = SHARDS in header
    run = run if sharded else {**dict.fromkeys(SINCE_0_2), **run}
    must_be(path, run, {name: RUNS[name] for name in COMMAND} if sharded else RUNS)
    if not sharded and not _run_stands(run):
        raise ModelFileError(
            f"{printable(path)}: the checkpoint's header is damaged: the places of its run do not go together."
        )
    given, output = run["settings"], run["output"]
    must_be(path, {**Settings._field_defaults, **given}, SETTINGS)
    must_be(path, {**dict.fromkeys(OUTPUTS), **output}, OUTPUTS)
    for name, value in given["reading"].items():
        must_be(path, {name: value}, {name: READING.get(name, is_nothing)})
    lists = {name: _tuple(given.get(name)) for name in ("source", "classes")}
    reading = {name: _tuple(value) for name, value in given["reading"].items()}
    return Saved(path, Settings(**{**given, **lists, "reading": reading}), output, RunState(run, own), sharded)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- what the header of a checkpoint may say -------------------------------------------------------------------------


def _places(values: Any) -> bool:
    """Two checksums."""
    return isinstance(values, list) and len(values) == 2 and all(trust.count(value, 0, 2**32 - 1) for value in values)


def _first_pass(values: Any) -> bool:
    """Of each file the five numbers that sum up its rows."""
    return is_mapping(values) and all(
        isinstance(sums, list) and len(sums) == len(Fingerprint._fields) and all(trust.count(n, 0, 2**64 - 1) for n in sums)
        for sums in values.values()
    )


def _reals(*counts: int) -> Rule:
    """So many numbers."""
    return lambda values: isinstance(values, list) and len(values) in counts and all(map(trust.real, values))


def _then(values: Any) -> bool:
    """What the last report knew: sums of losses and weights, and rows; then what rounding left out of the losses, which older
    files lack."""
    return _reals(3, 4)(values) and trust.count(values[2])


def _class_names(values: Any) -> bool:
    """Classes, ascending: all texts, or all numbers."""
    if not isinstance(values, list) or len(values) < 2:
        return False
    if not trust.texts(values) and not all(map(_class_number, values)):
        return False
    return all(first < second for first, second in pairwise(values))


def _class_number(value: Any) -> bool:
    return abs(value) <= 2**53 if type(value) is int else type(value) is float and isfinite(value)


def _class_weights(values: Any) -> bool:
    """Pairs of a class and its weight."""
    pairs = isinstance(values, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in values)
    return pairs and all(
        (isinstance(name, str) or _class_number(name)) and trust.real(weight, finite=True) and weight >= 0.0
        for name, weight in values
    )


def _best(values: Any) -> bool:
    """The pass of the best model, its loss and its header."""
    three = isinstance(values, list) and len(values) == 3
    return three and trust.count(values[0], 1) and trust.real(values[1]) and is_mapping(values[2])


def _certified(values: Any) -> bool:
    """The passes before those that certify."""
    return is_mapping(values) and set(values) == {"passes"} and trust.count(values["passes"], 1)


def _run_stands(run: dict[str, Any]) -> bool:
    """Whether the places of a run go together: the next report is due when the rows have doubled."""
    last = run["then"][2]
    due = last <= run["rows"] < max(1, 2 * last) or (run["certified"] is not None and last <= run["rows"])
    return run["flushed"] <= run["consumed"] and due


RUNS: dict[str, Rule] = {
    "version": within(VERSION, VERSION),
    "settings": is_mapping,
    "output": is_mapping,
    "task": lambda task: task in (CLASSIFY, REGRESS),
    "classes": or_none(_class_names),
    "pass": within(0),
    "consumed": within(0),
    "flushed": within(0),
    "trace": _places,
    "first pass": or_none(_first_pass),
    "generator": is_mapping,
    "rows": within(0),
    "then": _then,
    "holding": is_flag,
    "best": or_none(_best),
    "class weights": or_none(_class_weights),
    "scored": or_none(within(0)),
    "averaged then": or_none(_reals(2, 3)),  # of losses and of weights, and what rounding left out
    "linear": or_none(_reals(4, 5)),  # a sum of losses and its correction, and the same
    "quality": or_none(is_mapping),
    "certified": or_none(_certified),
}
SINCE_0_2 = (
    "class weights",
    "scored",
    "averaged then",
    "linear",
    "quality",
    "certified",
    "first pass",
)  # entries of a run that checkpoints of 0.1 lack
OUTPUTS: dict[str, Rule] = {"model": OPTIONAL_TEXT, "final": or_none(is_flag), "every": OPTIONAL_TEXT}
