"""Mutated model files and checkpoints through load, predict, learn, learn_one, save, inspect and resume: none may do harm.

    python tests/tools/mutants.py --count 100000 --seed 0        that many mutants
    python tests/tools/mutants.py --only 4711                    one of them, with its traceback

Each mutant is a golden file (tests/models), or a checkpoint made on the spot, of which bytes, entries of the header or numbers
and shapes of arrays were changed; the digest is made anew, so that the change is believed. Mutants run in forks of this
process, with a limit of memory and of time. What a mutant may come to: refused, diverged, or a model that works and can be
saved and loaded again. What it may not: a crash, a hang, more than 1 GB, an error that is none of the documented ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

sys.path.append(str(Path(__file__).parent.parent / "models"))
from write import MORE, ROWS, SIGNS, D

from onlinear import DivergenceError, Learner, ModelFileError, load
from onlinear.cli import checkpoints, runs
from onlinear.cli.command import UsageError
from onlinear.cli.inspect import describe_model, summary
from onlinear.cli.settings import Settings
from onlinear.cli.train import _output
from onlinear.compiled import bind_loss
from onlinear.files import model_file
from onlinear.learner.parts import LOSSES
from onlinear.learner.stored_parts import PartNeeded
from onlinear.streams import StreamError
from onlinear.training.events import Interrupted

GOLDEN = Path(__file__).parent.parent / "models"
BATCH = 1000
PATIENCE = 60  # seconds for one mutant, in which a kernel may be compiled
MEMORY = 1 << 30  # bytes above those of the process before
QUICK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where what is synced need not reach a disk
BLOCKS = 40  # of a resumed run, which may have been told to make 2^52 passes
REFUSED, DIVERGED, WORKS = "refused", "diverged", "works"
CRASH, HANG, LARGE, RAW = "crash", "hang", "over 1 GB", "raw error"
HARM = (CRASH, HANG, LARGE, RAW)
ALONE = ("adagrad-comid", "hashed", "run-numbers")  # of a part of all files: the kernels of single rows are many


class Subject(NamedTuple):
    """A file to be mutated."""

    name: str
    content: bytes
    header: dict[str, Any]
    arrays: model_file.Arrays
    checkpoint: bool
    alone: bool  # whether rows are learned one by one, too


class Outcome(NamedTuple):
    """What became of a mutant."""

    number: int
    subject: str
    kind: str
    detail: str = ""


# --- the files -------------------------------------------------------------------------------------------------------

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "run-two": ("two", {"solver": "comid,eta=0.5", "average": "uniform", "holdout": "0.2", "passes": 3, "shuffle_rows": 64}),
    "run-best": ("two", {"solver": "comid,eta=0.5", "holdout": "0.25", "passes": 5, "early_stop": 2, "scale": "max-abs"}),
    "run-three": ("three", {"scan": True, "solver": "comid,eta=0.5", "passes": 2}),
    "run-numbers": ("numbers", {"task": "regress", "passes": 2, "holdout": "0.1"}),
}


class Stopped(Exception):
    """A checkpoint was written, which was what the run was for."""


class Kept(checkpoints.Checkpoints):
    """Writes one checkpoint and ends the run."""

    def write(self, training: Any) -> Any:
        super().write(training)
        raise Stopped


def text(kind: str) -> str:
    """Rows as svmlight text."""
    numbers = ROWS @ ((np.arange(D) % 5) - 2.0)
    labels = {"two": SIGNS.astype(int), "three": np.digitize(numbers, [-1.5, 1.5]), "numbers": np.round(numbers, 2)}[kind]
    lines = (" ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row) if x) for row in ROWS.tolist())
    return "".join(f"{label} {line}\n" for label, line in zip(labels.tolist(), lines, strict=True))


def subjects(folder: Path, every: int = 1) -> list[Subject]:
    """Golden files, and checkpoints of short runs in ``folder``: all, or every second, third ..., of the runs from the last."""
    paths, resumable = sorted(GOLDEN.glob("*.onlinear")), []
    for name, (kind, options) in RUNS.items():
        (folder / f"{kind}.svm").write_text(text(kind))
        settings = Settings((str(folder / f"{kind}.svm"),), {}, **options)
        output = {"model": str(folder / "resumed"), "final": False, "every": "100"}
        training = runs.start(settings, Kept(str(folder / name), 100, None, output))
        try:
            list(training)
        except Stopped:
            resumable.append(folder / name)
    found = []
    for path in (*paths[::every], *resumable[::-every]):
        header, arrays = model_file.read(path)
        alone = every == 1 or path.stem in ALONE
        found.append(Subject(path.stem, path.read_bytes(), header, arrays, "run" in header, alone))
    return found


# --- what they are used for ------------------------------------------------------------------------------------------


def used(path: Path, subject: Subject) -> None:
    """All that a user does with a file; raises what it raises."""
    model = load(path)
    found = summary(str(path), 10)
    json.dumps(found)
    describe_model(found)
    learner = getattr(model, "learner_", model)
    rows = ROWS[:12, : min(D, max(1, learner.size))]
    scores = learner.predict(rows)
    for reads in ("labels_of", "probabilities_of", "means_of"):
        if hasattr(model, reads) and (reads != "probabilities_of" or hasattr(learner.loss, "probability")):
            getattr(model, reads)(scores)
    if not isinstance(learner, Learner):
        saved(model, path)
        return
    assert np.all(np.isfinite(learner.weights(average=True))), "weights are finite, or the model says that it has diverged"
    if learner.engine.batch:
        learner.solve(rows, SIGNS[:12], 2)
    else:
        learner.variables()
        more = MORE.get(subject.name, lambda model: learner.learn(ROWS[:10], targets(learner, 10)))
        more(model)
        for row in range(3 if subject.alone else 0):
            place = np.flatnonzero(rows[row])
            learner.learn_one(place, rows[row, place], targets(learner, 1)[0])
        learner.predict(rows)
        if learner is not model:
            model.n_features_in_ = max(1, learner.size)  # rows given to the learner itself may be wider
    saved(model, path)


def targets(learner: Any, rows: int) -> np.ndarray:
    """Something to learn, (rows,) or (rows, K)."""
    y = np.ones(rows) if getattr(learner.loss, "labels", "real") == "counts" else SIGNS[:rows]
    if learner.engine.joins and hasattr(learner.loss, "joint"):
        return np.where(np.arange(rows)[:, None] % learner.n_outputs == np.arange(learner.n_outputs), 1.0, -1.0)
    return y if learner.n_outputs == 1 else np.repeat(y[:, None], learner.n_outputs, axis=1)


def saved(model: Any, path: Path) -> None:
    """Save a model that works; what was saved must load."""
    again = path.with_suffix(".again")
    model.save(again)
    try:
        load(again)
    except ModelFileError as error:
        raise AssertionError(f"what was saved does not load: {error}") from None


def resumed(path: Path) -> None:
    """Go on with the run of a checkpoint, for a while."""
    found = checkpoints.read(str(path))
    given = dict.fromkeys(("model", "checkpoint", "checkpoint_every")) | {"final": False, "resume": str(path)}
    model, _, keeper = _output(given, found)
    assert model is None or Path(os.path.realpath(model)).is_relative_to(os.path.realpath(path.parent))
    training = runs.resume(found, keeper)
    blocks = iter(range(BLOCKS))

    def watch() -> None:
        training.stopping = next(blocks, None) is None

    training.watch = watch
    try:
        for _ in training:
            pass
    except Interrupted:
        pass
    saved(training.model, path)


DOCUMENTED = (ValueError, TypeError, OSError, UsageError, StreamError)


def tried(path: Path, subject: Subject, use: Callable[[], None]) -> tuple[str, str]:
    """The outcome of one use."""
    try:
        use()
    except (ModelFileError, PartNeeded) as error:
        return REFUSED, str(error)
    except DivergenceError as error:
        return DIVERGED, str(error)
    except MemoryError as error:
        return LARGE, repr(error)
    except DOCUMENTED as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        if isinstance(error, OSError) or "onlinear" in Path(place).parts or "sklearn" in place:
            return REFUSED, str(error)
        return RAW, traceback.format_exc()
    except BaseException:
        return RAW, traceback.format_exc()
    return WORKS, ""


def outcome(number: int, subject: Subject, path: Path) -> Outcome:
    """What becomes of the file at ``path``."""
    kind, detail = tried(path, subject, lambda: used(path, subject))
    if subject.checkpoint and kind not in HARM:
        run, more = tried(path, subject, lambda: resumed(path))
        kind, detail = (run, more) if run in HARM or kind == REFUSED else (kind, detail)
    return Outcome(number, subject.name, kind, detail)


# --- mutations -------------------------------------------------------------------------------------------------------

EXTREMES: list[Any] = [
    0, 1, -1, 2, 3, 64, 65, 2**18, 2**18 + 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.0,
    -0.0,
    0.5, 1.0, -1.0, 1.5, 5e-324, 1e-300, 1e-30, 1e30, 1e300, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), True,
    False, None, "", "x", "0", "nan", "none", "object", "../x", "\u0000", "\ud800", "x" * 70_000, [], {}, [[]], [0], [1, 2, 3],
    {"part": "object"}, {"class": "onlinear.losses:Hinge", "text": "", "fields": [1.0, 1.0]}, ["x", None], {"x": {"y": [1]}},
]  # fmt: skip
CLASSES = [
    "onlinear.losses:Hinge", "onlinear.losses:Squared", "onlinear.losses:Quantile", "onlinear.losses:Poisson",
    "onlinear.penalties:Box", "onlinear.penalties:ElasticNet", "onlinear.penalties:FusedLasso", "onlinear.averages:Average",
    "onlinear.schedules:Power", "onlinear.schedules:TwoPhase", "onlinear.solvers.comid:Comid", "onlinear.solvers.fiol:Fiol",
    "onlinear.solvers.fiol:Partition", "onlinear.solvers.fiol:Newton", "onlinear.solvers.drs:Drs", "onlinear.solvers.rls:Rls",
    "onlinear.compiled.loss_address:BoundLoss", "onlinear.rows.records:Rows", "onlinear.rows.records:Source",
    "onlinear.solvers.core.engine:Problem", "os:system", "builtins:eval",
    "onlinear.solvers.core.engine:Preset", "onlinear.streams:Block", "somewhere:Loss", "", ":",
]  # fmt: skip
TEXTS: dict[str, list[str]] = {
    "solver": [
        "comid,eta=1e308", "comid,eta=5e-324", "comid,schedule=two-phase,m=7", "comid,schedule=constant",
        "fiol,inner=partition", "fiol,inner=sort,eta=1e-300", "fiol,eta=1e300", "rda,gamma=1e300", "rda,gamma=0",
        "rda,gamma=5e-324", "sgd,radius=1e-300", "sgd,schedule=power,power=0.3,t0=1e300", "odrs,lam=5e-324",
        "odrs,lam=1e-300,relaxation=0.3", "odrs,lam=1e300,relaxation=1.9", "sadmm,rho=5e-324", "sadmm,rho=1e308",
        "sadmm,schedule=growing-rho,rho=1e308", "oadm,rho=1e-300", "oadm,bregman=1e300", "oadm,bregman=0",
        "oadm,rho=5e-324,bregman=5e-324", "rls,delta=5e-324", "rls,limit=1e9", "rls,delta=1e308", "epoch-gd,T1=9e15",
        "epoch-gd,T1=1", "pa-2,C=1e-320", "pa", "csgd,m=1", "csgd,m=1e300", "csgd,eta=1e300,m=3",
        "iodrs,schedule=growing-rho,lam=5e-324", "iodrs,lam=1e300", "implicit-sgd,eta=1e300", "implicit-sgd,eta=5e-324",
        "pegasos,project=true", "batch-drs,lam=1e-320",
    ],
    "loss": [
        "hinge,margin=1e308", "huber,delta=5e-324", "quantile,q=1e-300", "epsilon-insensitive,eps=1e308",
        "logistic,factor=1e308", "squared,factor=5e-324", "exponential", "poisson", "modified-huber", "absolute",
        "squared-hinge", "exponential,factor=1e300",
    ],
    "penalty": [
        "l1,l1=1e308", "l1,l1=5e-324", "l1,l1=0", "l2,l2=1e308", "l2,l2=1e-320", "elastic-net,l1=1e-320,l2=1e300", "none",
        "l1,l1=1,lower=0,upper=0", "total-variation,tv=1e300", "elastic-net,l1=1e300,l2=5e-324", "l1,l1=1e-3,upper=1e-300",
    ],
    "average": [
        "none", "uniform", "weighted-t", "weighted-t1", "uniform-post", "suffix,total=9e15", "suffix,alpha=1e-300,total=70",
        "suffix,alpha=1,total=1",
    ],
}  # fmt: skip
OBJECTS: dict[str, list[tuple[str, list[Any]]]] = {
    "solver": [
        ("onlinear.solvers.comid:Comid", ["schedule", False]), ("onlinear.solvers.fiol:Fiol", ["schedule", "search"]),
        ("onlinear.solvers.drs:Drs", [0.7, 1.0, False, 0.0]), ("onlinear.solvers.rls:Rls", [1.0, 100.0]),
        ("onlinear.solvers.sgd:Sgd", ["schedule", False, 2.0]), ("onlinear.solvers.rda:Rda", [1.0]),
        ("onlinear.solvers.oadm:Oadm", [1.0, 1.0, 0.0]), ("onlinear.solvers.epoch_gd:EpochGd", [4.0]),
    ],
    "loss": [
        ("onlinear.losses:Hinge", [1.0, 1.0]), ("onlinear.losses:Squared", [1.0]), ("onlinear.losses:Logistic", [1.0]),
        ("onlinear.losses:Quantile", [1.0, 0.5]), ("onlinear.compiled.loss_address:BoundLoss", [1, 1, 1, 1]),
    ],
    "penalty": [
        ("onlinear.penalties:ElasticNet", [0.01, 0.1]), ("onlinear.penalties:Box", [0.01, 0.1, -1.0, 1.0]),
        ("onlinear.penalties:FusedLasso", [0.05, 0.01, 0.0, -1.0, 1.0]),
    ],
    "average": [("onlinear.averages:Average", [1.0, 0.0, 1.0, False])],
    "schedule": [("onlinear.schedules:Power", [0.5, 0.0, 0.5]), ("onlinear.schedules:TwoPhase", [0.5, 40.0])],
    "search": [
        ("onlinear.solvers.fiol:Newton", [1e-12]), ("onlinear.solvers.fiol:Sort", [1e-12]),
        ("onlinear.solvers.fiol:Partition", [0.5]),
    ],
}  # fmt: skip
NUMBERS = [
    0.0, 1.0, -1.0, 2.0, 63.0, 64.0, 65.0, 511.0, 512.0, 2.0**18 - 1, 2.0**18, 2.0**18 + 1, 2.0**19, 2.0**51, 2.0**53, 1e300,
    -1e300, 5e-324, 1e-300, np.nan, np.inf, -np.inf, 0.5, 1e10, -1e10, 1e-10,
]  # fmt: skip
TYPES = [np.float64, np.int64, np.uint64, np.uint32, np.uint8, np.bool_, np.float32, np.float16, np.int8]


def mutant(number: int, files: Sequence[Subject], seed: int) -> tuple[Subject, bytes]:
    """Mutant of a number: a file, and its changed content."""
    rng = random.Random(f"{seed} {number}")
    subject = rng.choice(files)
    if rng.random() < 0.06:
        return subject, raw(rng, subject.content)
    header = json.loads(json.dumps(subject.header))
    arrays = {name: array.copy() for name, array in subject.arrays.items()}
    del header["digest"]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            if rng.random() < 0.55:
                change_header(rng, header)
            else:
                change_arrays(rng, arrays)
        except (TypeError, ValueError, OverflowError, LookupError, AttributeError, RecursionError):
            continue  # one change was in the way of the other
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    plain = model_file._text(header)
    header["digest"] = model_file._digest(json.loads(plain), arrays)
    written = model_file._text(header)
    if rng.random() < 0.02:
        key = rng.choice([*header])
        written = written[:-1] + f",{json.dumps(key)}:{json.dumps(rng.choice(EXTREMES))}}}"
    return subject, save(arrays, metadata={model_file.FORMAT: written})


def raw(rng: random.Random, content: bytes) -> bytes:
    """Changed bytes, most of them where safetensors has lengths and names."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = min(len(found) - 1, int(len(found) * rng.random() ** 2))
        how = rng.randrange(5)
        if how == 0:
            found[at] = rng.randrange(256)
        elif how == 1:
            found[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            del found[at : at + rng.choice((1, 8, 100, 10_000))]
        elif how == 3:
            found[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 8, 64))))
        else:
            found[:8] = struct.pack("<Q", rng.choice((0, 1, len(content), 2**32, 2**63, 2**64 - 1)))
        if not found:
            break
    return bytes(found)


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a header."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from places(value)


def change_header(rng: random.Random, header: dict[str, Any]) -> None:
    """Change one entry, wherever it stands."""
    if rng.random() < 0.3 and isinstance(header.get("spec"), dict):
        role = rng.choice(("solver", "loss", "penalty", "average"))
        now = header["spec"][role]
        near = isinstance(now, str) and "=" in now and rng.random() < 0.5
        header["spec"][role] = f"{now.rpartition('=')[0]}={rng.choice(NUMBERS)!r}" if near else part(rng, role)
        return
    found = list(places(header))
    deep = [place for place in found if place[0] is not header]
    container, key = rng.choice(deep if deep and rng.random() < 0.7 else found)
    value, how = container[key], rng.random()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and how < 0.4:
        container[key] = rng.choice((value + 1, value - 1, -value, value * 2, 0, 1, value + 0.5, float(value)))
    elif how < 0.4:
        container[key] = rng.choice(EXTREMES)
    elif how < 0.5:
        del container[key]
    elif how < 0.55 and isinstance(container, dict):
        container[rng.choice(("x", "class", "fields", "text", str(key) + " "))] = container.pop(key)
    elif how < 0.65:
        other, place = rng.choice(list(places(header)))
        container[key] = json.loads(json.dumps(other[place]))
    elif how < 0.72:
        container[key] = [value] if rng.random() < 0.5 else {"x": value}
    elif isinstance(value, str):
        container[key] = changed_text(rng, value)
    elif isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, (int, float)):
        container[key] = rng.choice((value + 1, value - 1, -value, value * 2, value * 1e300, float(value), value / 3))
    elif isinstance(value, list) and value:
        more = [*value, rng.choice(EXTREMES)]
        container[key] = rng.choice((value[::-1], value[:-1], value * 2, more, value[:1] * len(value)))
    else:
        container[key] = rng.choice(EXTREMES)


def part(rng: random.Random, role: str) -> Any:
    """What may stand for a part: text, or a class with fields, most of them of the role, some of which are odd."""
    if rng.random() < 0.1:
        role = rng.choice(list(OBJECTS))
    if role in TEXTS and rng.random() < 0.5:
        return rng.choice(TEXTS[role])
    cls, usual = rng.choice(OBJECTS[role])
    fields = [part_object(rng, value) if isinstance(value, str) else value for value in usual]
    for _ in range(rng.choice((0, 1, 1, 2))):
        fields[rng.randrange(len(fields))] = rng.choice((*EXTREMES, 0.25, *NUMBERS))
    spec = {"class": cls if rng.random() < 0.85 else rng.choice(CLASSES), "text": "x", "fields": fields}
    if rng.random() < 0.05:
        del spec[rng.choice(list(spec))]
    return spec


def part_object(rng: random.Random, role: str) -> Any:
    """A part inside a part."""
    found = part(rng, role)
    return found if isinstance(found, dict) else part_object(rng, role)


def changed_text(rng: random.Random, value: str) -> str:
    how = rng.randrange(5)
    if how == 0:
        return value[: rng.randrange(len(value) + 1)]
    if how == 1:
        return f"{value},{rng.choice(('eta', 'l1', 'l2', 'lower', 'rho', 'm', 'T1', 'limit', 'x'))}={rng.choice(EXTREMES[:34])}"
    if how == 2:
        return rng.choice(rng.choice(list(TEXTS.values())))
    if how == 3 and "=" in value:
        return f"{value.rpartition('=')[0]}={rng.choice(EXTREMES[:34])}"
    return rng.choice(("", value * 2, value.upper(), value[::-1], rng.choice(CLASSES), "../" + value, "-", "/dev/null"))


def change_arrays(rng: random.Random, arrays: model_file.Arrays) -> None:
    """Change one array: its numbers, type, shape or name."""
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.35:
        name = rng.choice([key for key in sorted(arrays) if key.endswith(".now")] or [name])
    array, how = arrays[name], rng.random()
    flat = array.reshape(-1)
    if name.endswith(".now") and how < 0.75:
        steps(rng, array, arrays)
    elif how < 0.4 and len(flat):
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(flat))
            with np.errstate(all="ignore"):
                near = flat[at] + 1, flat[at] - 1, -flat[at], flat[at] * 2, flat[at] * 1e-300
                flat[at] = np.array(rng.choice((*NUMBERS, *near))).astype(array.dtype)
    elif how < 0.5:
        with np.errstate(all="ignore"):
            array[...] = np.array(rng.choice(NUMBERS)).astype(array.dtype)
    elif how < 0.6:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(TYPES))
    elif how < 0.8:
        arrays[name] = rng.choice(
            (flat[:-1], flat[1:], np.append(flat, flat[:1]), flat.reshape(1, -1), flat.reshape(-1, 1), flat[:0], flat[::-1],
             np.repeat(flat, 3), flat[:1].reshape(()), flat.reshape((1,) * 40 + (-1,)), np.zeros((0, 2**40), array.dtype))
        )  # fmt: skip
    elif how < 0.88:
        del arrays[name]
    elif how < 0.94:
        others = "x", "0.kept.columns", "0.kept.u", "0.kept.R", "0.kept.start", "0.array.V", "1.now", name + "x"
        arrays[rng.choice(others)] = arrays.pop(name)
    else:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]


def steps(rng: random.Random, now: np.ndarray, arrays: model_file.Arrays) -> None:
    """Change step numbers, the clock or another scalar; of all outputs and stamps at once, so that they agree, now and then."""
    flat = now.reshape(-1)
    if rng.random() < 0.5:
        flat[rng.randrange(len(flat))] = rng.choice((*NUMBERS, flat[0], flat[0] - 1, flat[0] + 1))
        return
    t = float(rng.randrange(1 << rng.randrange(1, 54)))
    last = max((1 << k for k in range(6, 19) if 1 << k <= t), default=0) if t < 2**18 else t // 2**18 * 2**18
    visit = rng.choice((last, last, t, t - 1, 0.0, last - 1, float(rng.randrange(1, 300)), flat[1]))
    if rng.random() < 0.1:
        t, visit = rng.choice(NUMBERS), rng.choice(NUMBERS)
    for name, array in arrays.items():
        if name.endswith(".now") and array.size >= 2:
            array.reshape(-1)[:2] = t, visit
        elif name.endswith((".L", ".last")):
            array[...] = visit


# --- processes -------------------------------------------------------------------------------------------------------


def limits() -> None:
    """Bound the memory of this process, where the system tells how much it has."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        bound = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def resident() -> int:
    """The most memory that this process has had, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(pipe: int, numbers: Sequence[int], files: Sequence[Subject], seed: int, folder: Path) -> None:
    """Run mutants and tell of each before and after."""
    limits()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    path = folder / f"mutant-{os.getpid()}"
    with os.fdopen(pipe, "w") as out:
        for number in numbers:
            print(json.dumps([number]), file=out, flush=True)
            subject, content = mutant(number, files, seed)
            path.write_bytes(content)
            before = resident()
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            found = outcome(number, subject, path)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            if resident() - before > MEMORY:
                found = found._replace(kind=LARGE)
            print(json.dumps(found), file=out, flush=True)


def batch(numbers: Sequence[int], files: Sequence[Subject], seed: int, folder: Path) -> list[Outcome]:
    """The outcomes of some mutants, in a process of their own; after one that ends it another process goes on."""
    found: list[Outcome] = []
    rest = list(numbers)
    while rest:
        ends = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(ends[0])
                child(ends[1], rest, files, seed, folder)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(ends[1])
        culprit = rest[0]
        with os.fdopen(ends[0]) as lines:
            for line in lines:
                culprit, *more = json.loads(line)
                if more:
                    found.append(Outcome(culprit, *more))
        _, status = os.waitpid(pid, 0)
        ended = os.waitstatus_to_exitcode(status)
        if ended == 0:
            break
        kind = HANG if ended == -signal.SIGALRM else CRASH
        found.append(Outcome(culprit, mutant(culprit, files, seed)[0].name, kind, f"the process ended with {ended}"))
        rest = [number for number in rest if number > culprit]
    for left in folder.glob("mutant-*"):
        left.unlink(missing_ok=True)
    return found


def warm(files: Sequence[Subject], folder: Path) -> None:
    """Use every file as it is, once: what follows finds the kernels compiled. Raises what a file raises that should work."""
    for loss in LOSSES.values():
        bind_loss(loss())
    for subject in files:
        path = folder / "whole"
        path.write_bytes(subject.content)
        used(path, subject)
        if subject.checkpoint:
            resumed(path)


def fuzz(count: int, seed: int, tell: Callable[[list[Outcome]], None] = lambda found: None, every: int = 1) -> Counter[str]:
    """The number of outcomes by kind; ``tell`` is told of each batch."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=QUICK) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        files = subjects(folder, every)
        warm(files, folder)
        for first in range(0, count, BATCH):
            found = batch(range(first, min(count, first + BATCH)), files, seed, folder)
            total.update(outcome.kind for outcome in found)
            tell(found)
    return total


def closing(total: Counter[str], seconds: float) -> str:
    """The result in one line."""
    good = f"{total[REFUSED]:,} refused, {total[DIVERGED]:,} diverged, {total[WORKS]:,} work"
    bad = f"{total[CRASH]} crashes, {total[HANG]} hangs, {total[LARGE]} over 1 GB, {total[RAW]} raw errors"
    return f"{sum(total.values()):,} mutants: {good}; {bad} ({seconds / 60.0:.1f} min)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="of every so many files, not of all")
    parser.add_argument("--only", type=int, help="the number of one mutant, to be run in this process")
    parser.add_argument("--stop", type=int, default=20, help="end after so many harmful ones")
    given = parser.parse_args()
    if given.only is not None:
        return only(given.only, given.seed, given.every)
    began = time.monotonic()
    total: Counter[str] = Counter()

    def tell(found: list[Outcome]) -> None:
        total.update(outcome.kind for outcome in found)
        for outcome in found:
            if outcome.kind in HARM:
                print(f"--only {outcome.number} --seed {given.seed}: {outcome.kind} ({outcome.subject})")
                print(outcome.detail[-1500:])
        print(closing(total, time.monotonic() - began), flush=True)
        if sum(total[kind] for kind in HARM) >= given.stop:
            raise SystemExit(1)

    fuzz(given.count, given.seed, tell, given.every)
    return int(any(total[kind] for kind in HARM))


def only(number: int, seed: int, every: int) -> int:
    """One mutant, here."""
    with tempfile.TemporaryDirectory(dir=QUICK) as name:
        folder = Path(name)
        subject, content = mutant(number, subjects(folder, every), seed)
        path = folder / "mutant"
        path.write_bytes(content)
        print(subject.name)
        found = outcome(number, subject, path)
        print(found.kind, found.detail)
        return int(found.kind in HARM)


if __name__ == "__main__":
    sys.exit(main())
