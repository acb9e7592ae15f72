"""What a model file holds of a learner: a header of its settings, and the arrays of its state.

A file is believed in nothing: types, shapes and ranges are checked before a kernel takes them (docs/security.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinear import rows
from onlinear.errors import ModelFileError
from onlinear.files import trust
from onlinear.files.model_file import arrays_below
from onlinear.learner import stored_parts
from onlinear.learner.core import Core
from onlinear.learner.uncertainty import NONE
from onlinear.learner.units import RAW, RELATIVE
from onlinear.solvers.core.state import SCALARS

COPY = "copy."  # before the names of the arrays of what is trained beside it
Header = dict[str, Any]
Arrays = dict[str, np.ndarray]


def header_of(core: Core) -> Header:
    """The settings, as JSON holds them."""
    header = {
        "spec": {role: stored_parts.store(spec) for role, spec in core.spec.items()},
        "scale": core.scaler.kind if core.scaler is not None else "none",
        "fit_intercept": core.fit_intercept,
        "n_outputs": core.n_outputs,
        "size": core.size,
        "growing": core.growing,
        "total": core.total,
    }
    if core.units is not None:
        header |= {"targets": RELATIVE if core.units.targets else RAW, "weights": RELATIVE if core.units.weights else RAW}
        if core.units.clip is not None:
            header["clip"] = True
    if core.spread is not None:
        header["uncertainty"] = core.spread.kind
    if core.sums_gains:
        header["gain"] = True
    if core.unscored:
        header["unscored"] = core.unscored
    return header if core.forget is None else header | {"forget": core.forget}


def arrays_of(core: Core) -> Arrays:
    """The state, by name: the arrays themselves, not copies."""
    arrays: Arrays = {"losses": core.loss_sums}
    if core.scaler is not None:
        arrays |= core.scaler.arrays()
    if core.race is not None:
        arrays["race"] = core.race.for_file()
        if core.race.repeats is not None:
            arrays["race.rows"] = core.race.repeats.known
    if core.units is not None:
        arrays |= core.units.arrays()
    for k, state in enumerate(core.states):
        arrays |= {f"{k}.now": state.now}
        arrays |= {f"{k}.array.{name}": array for name, array in state.vectors().items()}
        arrays |= {f"{k}.kept.{name}": array for name, array in state.kept.items()}
    if core.spread is not None:
        arrays |= core.spread.arrays()
        for r, copy in enumerate(core.spread.copies):
            arrays |= {f"{COPY}{r}.{name}": array for name, array in arrays_of(copy).items()}
    return arrays


def together(frozen: Sequence[tuple[Header, Arrays]]) -> tuple[Header, Arrays]:
    """The header and arrays of a learner of all outputs of several, which have learned the same rows with the same settings.

    Raises ValueError where what outputs learn depends on the others.
    """
    header, first = frozen[0]
    if "race" in first or "uncertainty" in header or "clip" in header or header.get("targets", RAW) != RAW:
        raise ValueError("outputs that learn from one another cannot be put together.")
    arrays: Arrays = {name: array for name, array in first.items() if not _is_of_outputs(name)}
    for name in _OF_OUTPUTS & first.keys():
        arrays[name] = np.concatenate([own[name] for _, own in frozen])
    for name in _OF_ROWS_AND_OUTPUTS & first.keys():
        arrays[name] = np.concatenate([first[name][..., :1], *(own[name][..., 1:] for _, own in frozen)], axis=-1)
    outputs = 0
    for settings, own in frozen:
        for name, array in own.items():
            place, _, rest = name.partition(".")
            if place.isdigit():
                arrays[f"{outputs + int(place)}.{rest}"] = array
        outputs += settings["n_outputs"]
    return header | {"n_outputs": outputs}, arrays


_OF_OUTPUTS = {"losses", "units.zero", "units.spread"}  # one row or number for each
_OF_ROWS_AND_OUTPUTS = {"units.sizes", "units.steps"}  # a number of the rows, and then one for each output


def _is_of_outputs(name: str) -> bool:
    return name in _OF_OUTPUTS | _OF_ROWS_AND_OUTPUTS or name.partition(".")[0].isdigit()


def arguments(header: Header, arrays: Arrays, parts: dict[str, Any]) -> dict[str, Any]:
    """The arguments that make the learner of a file; parts from outside the package are given by role."""
    _refuse_implausible(header, arrays)
    return {
        **{role: stored_parts.restore(role, header["spec"][role], parts) for role in stored_parts.ROLES},
        **settings(header),
        "n_features": None if header["growing"] else header["size"],
    }


def settings(header: Header) -> dict[str, Any]:
    """The arguments of a header but for the parts and the number of columns."""
    return {
        "scale": header["scale"],
        "fit_intercept": header["fit_intercept"],
        "n_outputs": header["n_outputs"],
        "targets": header.get("targets", RAW),
        "weights": header.get("weights", RAW),
        "clip": header.get("clip", False),
        "forget": header.get("forget"),
        "uncertainty": header.get("uncertainty", NONE),
        "gain": header.get("gain", False),
        "total": header["total"],
    }


def unscored(header: Header, learned: int) -> int:
    """How many of the rows learned the sums of losses do not know."""
    found = header.get("unscored", 0)
    trust.must(trust.count(found, 0, learned), f"{found!r} rows without a score, of {learned} learned")
    return int(found)


def fill(core: Core, size: int, arrays: Arrays) -> None:
    """Give a new core the state of a file, of ``size`` columns."""
    core.grow(size)
    _copy(arrays, "losses", core.loss_sums)
    kept = _kept_by_output(arrays, core.n_outputs)
    for k, state in enumerate(core.states):
        _copy(arrays, f"{k}.now", state.now)
        core.engine.restore_kept(state, kept[k])
        for name, vector in state.vectors().items():
            _copy(arrays, f"{k}.array.{name}", vector)
        core.engine.check(state)
    core.engine.check_together(core.states)
    if core.scaler is not None:
        core.scaler.restore(arrays, core.t)
    if core.race is not None:
        _copy(arrays | {"race": core.race.of_file(arrays["race"])} if "race" in arrays else arrays, "race", core.race.losses)
        if core.race.repeats is not None and "race.rows" in arrays:  # files of the first calibrated models have none
            _copy(arrays, "race.rows", core.race.repeats.known)
        core.race.check()
    _rebuild_tables(core, arrays)
    if core.spread is not None:
        core.spread.restore(arrays, size, core.t)
        for r, copy in enumerate(core.spread.copies):
            fill(copy, size, arrays_below(arrays, f"{COPY}{r}."))


def _rebuild_tables(core: Core, arrays: Arrays) -> None:
    """Restore the running units, and fill the tables of steps, which they multiplied."""
    if core.units is None:
        core.engine.rebuild_all(core.states)
        return
    core.units.restore(arrays, core.t)
    for k, engine in enumerate(core.engines):
        states = core.states if len(core.engines) == 1 else [core.states[k]]
        engine.rebuild_all(states, core.units.history(k))


_HEADER: dict[str, Any] = {
    "spec": lambda spec: isinstance(spec, dict) and set(spec) == set(stored_parts.ROLES),
    "scale": lambda scale: isinstance(scale, str),
    "fit_intercept": lambda given: type(given) is bool,
    "n_outputs": lambda outputs: trust.count(outputs, 1),
    "size": lambda size: trust.count(size, 0, rows.LARGEST_COLUMN + 1),
    "growing": lambda given: type(given) is bool,
    "total": lambda total: total is None or (trust.real(total, finite=True) and total % 1 == 0 and trust.count(int(total))),
}


def _refuse_implausible(header: Header, arrays: Arrays) -> None:
    """Refuse a header of other types, or one that asks for more memory than the file's own size."""
    for name, fits in _HEADER.items():
        if name not in header or not fits(header[name]):
            raise ModelFileError(f"the model file's header has no {name}, or one that cannot be.")
    held = sum(array.nbytes for array in arrays.values()) // 8
    outputs = header["n_outputs"]
    if outputs * SCALARS > held or header["size"] * outputs > held:
        shape = f"{header['size']} features and {header['n_outputs']} outputs"
        raise ModelFileError(f"the model file's header says {shape}, its arrays hold {held} numbers.")


def _kept_by_output(arrays: Arrays, outputs: int) -> list[Arrays]:
    """The arrays with lengths of their own, of each output by name."""
    found: list[Arrays] = [{} for _ in range(outputs)]
    places = {str(k): k for k in range(outputs)}
    for key, array in arrays.items():
        output, _, rest = key.partition(".")
        if output in places and rest.startswith("kept."):
            found[places[output]][rest.removeprefix("kept.")] = array
    return found


def _copy(arrays: Arrays, name: str, target: np.ndarray) -> None:
    """Copy the array of this name, which must have the type and shape of ``target``."""
    if name not in arrays or arrays[name].shape != target.shape or arrays[name].dtype != np.float64:
        raise ModelFileError(f"the model file's array {name!r} is missing or has another shape than {target.shape}.")
    target[...] = arrays[name]
