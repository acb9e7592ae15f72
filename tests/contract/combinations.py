"""Every solver x loss x penalty x schedule x average that the package offers, enumerated from its code, and covering sets."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlinear import Learner, averages, schedules
from onlinear.learner.parts import LOSSES, PENALTIES, RANGES
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.dense import Dense, learn_rows_dense
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.solvers.core.mini_batch import MiniBatch, MiniBatchEngine, Unit
from onlinear.solvers.core.state import State

TOTAL = 40  # the T told to whatever needs it
FEATURES = 5

# A value for each setting, away from its default, at which the methods are stable on the problems of these tests.
STRENGTHS = {"l1": 0.03, "l2": 0.2, "tv": 0.05}
SETTINGS = {
    "rho": 2.0, "lam": 0.4, "relaxation": 1.4, "gamma": 0.0, "bregman": 0.5, "C": 0.7, "radius": 0.9, "T1": 3.0, "delta": 0.5,
    "batch": 3,
}  # fmt: skip
POWER = 0.3


class Case(NamedTuple):
    """One combination as text, the way a user writes it."""

    solver: str
    loss: str
    penalty: str
    average: str
    intercept: bool = False
    scale: str = "none"

    @property
    def name(self) -> str:
        return self.solver.partition(",")[0]

    def learner(self, strength: float | None = None, **options: Any) -> Learner:
        """A learner of this combination; ``strength`` multiplies what plays the part of a step size, where it has one."""
        solver = self.solver if strength is None else stronger(self.solver, strength)
        options = {"total": TOTAL, "scale": self.scale, "fit_intercept": self.intercept, "n_features": FEATURES} | options
        return Learner(solver, self.loss, self.penalty, self.average, **options)

    def __str__(self) -> str:
        extra = ("-b" if self.intercept else "") + (f"-{self.scale}" if self.scale != "none" else "")
        return f"{self.solver}/{self.loss}/{self.penalty}/{self.average}{extra}"


class ByPython:
    """In front of an engine of dense steps: Python runs them. The compiler has no part in the answer, nor is it waited for."""

    def __init__(self, solver: Any, problem: Problem, why: str) -> None:
        super().__init__(solver, problem, why)  # type: ignore[call-arg]
        self.loss = problem.loss  # itself, not its address for kernels

    def call(self, state: State, *rows: Any) -> Any:
        return run_by_python, super().call(state, *rows)[1]  # type: ignore[misc]

    def predictor(self, state: State) -> np.ndarray:
        return self.solver.predictor(state.arrays["U"], state.t + 1, self.penalty)  # type: ignore[attr-defined]


class Interpreted(ByPython, Dense):
    """The dense recursion as Python runs it."""


def takes_lanes(solver: Any) -> bool:
    """Whether a solver's step pads arrays for lanes, numbers side by side that only the compiler knows."""
    return "padded" in type(solver).step.__code__.co_names


def run_by_python(*args: Any) -> int:
    with np.errstate(all="ignore"):
        return inspect.unwrap(learn_rows_dense)(*args)


def own_solver(learner: Learner) -> Any:
    """The solver of a new learner as it was named."""
    return learner.solver if isinstance(learner.solver, MiniBatch) else learner.engine.own


def without_batches(solver: Any) -> Any:
    """The solver whose step a batch makes, on its mean loss; one without batches itself."""
    return solver.solver.mean_form() if isinstance(solver, MiniBatch) else solver


def reference(learner: Learner, start: np.ndarray | None = None) -> Learner:
    """Make a new learner run the solver's own dense recursion instead of its lazy kernel."""
    problem = Problem(learner.loss, learner.penalty, learner.average, learner.fit_intercept)
    own = own_solver(learner)
    alone = without_batches(own)
    dense: Engine = (Dense if takes_lanes(alone) else Interpreted)(alone, problem, "the reference")
    lazy, learner.engine = learner.engine, MiniBatchEngine(own, dense, problem) if isinstance(own, MiniBatch) else dense
    if isinstance(own, MiniBatch) and isinstance(dense, Interpreted):
        dense.loss = Unit()  # itself, not its address for kernels
    learner.engine.eta = lazy.eta  # type: ignore[method-assign]
    w = np.zeros(learner.size) if start is None else start
    learner.states = [learner.engine.start(w.copy(), 0.0)]
    return learner


def _accepted(text: str, penalty: str = "l2,l2=0.2") -> bool:
    """Whether the settings of a solver's text are known (the combination may still be refused)."""
    from onlinear.learner.parts import build_penalty, build_solver

    try:
        build_solver(text, build_penalty(penalty), TOTAL)
    except (ValueError, TypeError):
        return False
    return True


@functools.cache
def stronger(solver: str, strength: float) -> str:
    """The solver's text with its step size (eta, lam, C, or 1/rho) multiplied."""
    name, *settings = solver.split(",")
    given = dict(setting.split("=") for setting in settings)
    for key, default in (("eta", 1.0), ("lam", 1.0), ("C", 1.0)):
        value = repr(float(given.get(key, default)) * strength)
        text = ",".join([name, *(f"{k}={v}" for k, v in {**given, key: value}.items())])
        if "rho" not in given and _accepted(text):
            return text
    return solver


SCHEDULES = {name: f",schedule={name}" + (f",power={POWER}" if name == "power" else "") for name in schedules.NAMED}


@functools.cache
def variants(name: str) -> tuple[str, ...]:
    """The solver by itself and with each setting that it takes."""
    cls = SOLVERS[name].solver
    texts = [name, *(f"{name},{key}={SETTINGS.get(key)}" for key in RANGES if key in SETTINGS)]
    for key, default in getattr(cls, "_field_defaults", {}).items():
        if isinstance(default, bool):
            texts += [f"{name},{key}=true", f"{name},{key}=false"]
        texts += [f"{name},{key}={choice}" for choice in getattr(cls, "choices", {}).get(key, {})]
    return tuple(text for text in dict.fromkeys(texts) if _accepted(text))


@functools.cache
def solver_texts(name: str) -> tuple[str, ...]:
    """Each variant with each schedule that it takes."""
    texts = [text + schedule for text in variants(name) for schedule in ("", *SCHEDULES.values())]
    return tuple(text for text in texts if _accepted(text))


NAMES = tuple(name for name in SOLVERS if "batch" not in name and not getattr(SOLVERS[name].solver, "certifies", False))
LOSS_TEXTS = (*LOSSES, "squared,factor=2.0", "hinge,margin=0.0")
PENALTY_TEXTS = (
    *(",".join([name, *(f"{key}={STRENGTHS[key]}" for key in keys)]) for name, keys in PENALTIES.items()),
    "elastic-net,l1=0.03,l2=0.2,lower=-0.3,upper=0.4",
    "none,lower=0.0",
    "fused-lasso,tv=0.05,upper=0.3",
)
AVERAGE_TEXTS = ("none", *averages.NAMED, "suffix,alpha=0.5", "weighted-t1,masked=true")
INTERCEPTS = (False, True)
SCALES = ("none", "centred", "tempered", "dense", "rms", "max-abs")


def build(case: Case) -> Learner | str:
    """The learner, or the message with which the combination is refused."""
    try:
        return case.learner()
    except ValueError as error:
        return str(error)


@functools.cache
def engine(case: Case) -> Engine | None:
    """The engine that runs the combination, or None where it is refused."""
    found = build(case)
    return None if isinstance(found, str) else found.engine


def is_lazy(case: Case) -> bool:
    found = engine(case)
    return found is not None and found.lazy


def pairs(case: Case) -> Iterator[tuple[Any, ...]]:
    """The pairs of values that a combination covers: its solver's name, variant and schedule are three factors."""
    text = case.solver
    schedule = next((name for name, s in SCHEDULES.items() if text.endswith(s)), "")
    values = (case.name, text, f"schedule={schedule}", *case[1:])
    indexed = list(enumerate(values))
    return itertools.combinations(indexed, 2)


FREE = (LOSS_TEXTS, PENALTY_TEXTS, AVERAGE_TEXTS, INTERCEPTS, SCALES)


def covering(
    seed: int, demanded: Iterable[tuple[Any, ...]], free: tuple[tuple[Any, ...], ...] = FREE, tries: int = 12
) -> list[Case]:
    """Accepted combinations that meet all demands that any meets, greedily.

    A demand is a solver's text and a value of each of the factors ``free``, or None. It is completed ``tries`` times at
    random; the accepted completion with the most new pairs is taken. Nothing is taken where an earlier combination meets the
    demand, or where all completions are refused.
    """
    rng = np.random.default_rng(seed)
    chosen: list[Case] = []
    covered: set[Any] = set()
    for demand in demanded:
        if _met(demand, chosen):
            continue
        best, gain = None, -1
        for _ in range(tries):
            rest = (
                want if want is not None else options[rng.integers(len(options))]
                for want, options in zip(demand[1:], free, strict=True)
            )
            case = Case(demand[0], *rest)
            new = len(set(pairs(case)) - covered)
            if new > gain and engine(case) is not None:
                best, gain = case, new
        if best is not None:
            chosen.append(best)
            covered |= set(pairs(best))
    return chosen


def _met(demand: tuple[Any, ...], chosen: list[Case]) -> bool:
    name = demand[0].partition(",")[0]
    only_text = all(want is None for want in demand[1:])
    same = (case for case in chosen if (case.solver == demand[0] if only_text else case.name == name))
    return any(all(want is None or want == got for want, got in zip(demand[1:], case[1:], strict=True)) for case in same)


def demands(pairs: bool = True) -> Iterator[tuple[Any, ...]]:
    """Every text of a solver, every value of the other factors with every solver, then (``pairs``) every pair of values of two
    factors, with a solver's texts taken in turn."""
    texts = [text for name in NAMES for text in solver_texts(name)]
    turn = itertools.count()
    for text in texts:
        yield text, None, None, None, None, None
    for name, (place, options) in itertools.product(NAMES, enumerate(FREE, start=1)):
        for option in options:
            rest: list[Any] = [None] * 6
            rest[0], rest[place] = solver_texts(name)[next(turn) % len(solver_texts(name))], option
            yield tuple(rest)
    if not pairs:
        return
    for (first, one), (second, other) in itertools.combinations(enumerate(FREE, start=1), 2):
        for a, b in itertools.product(one, other):
            rest = [texts[next(turn) * 7 % len(texts)], None, None, None, None, None]
            rest[first], rest[second] = a, b
            yield tuple(rest)


# What costs no further compilation: losses go in by address, and these penalties are one type.
COMPILED_FREE = (
    LOSS_TEXTS,
    tuple(
        text
        for text in PENALTY_TEXTS
        if "=" not in text or set(text.replace("=", ",").split(",")) <= {"l1", "l2", "elastic-net", "0.03", "0.2"}
    ),
    ("none", "uniform"),
    INTERCEPTS,
    ("none",),
)


def compiled_demands(averages: Iterable[str] = AVERAGE_TEXTS) -> Iterator[tuple[Any, ...]]:
    """Every (solver, loss), (solver, penalty) and (solver, one of ``averages``); penalties of other types without an average.
    The averages left out come with two solvers each."""
    kept = tuple(averages)
    turn = itertools.cycle(NAMES[::5])
    pairs = [(name, average) for name in NAMES for average in kept]
    pairs += [(next(turn), average) for average in AVERAGE_TEXTS if average not in kept for _ in range(2)]
    for name in NAMES:
        for place, options in enumerate((LOSS_TEXTS, PENALTY_TEXTS), start=1):
            for option in options:
                rest: list[Any] = [None] * 6
                rest[0], rest[place] = name, option
                rest[3] = "none" if place == 2 else rest[3]
                yield tuple(rest)
    for name, average in pairs:
        yield name, None, None, average, None, None


@functools.cache
def compiled_cases() -> tuple[Case, ...]:
    """The combinations that are compiled in every run of the tests."""
    return tuple(covering(2, compiled_demands(("none", "uniform")), COMPILED_FREE))


def product() -> Iterator[Case]:
    """Everything."""
    for name in NAMES:
        for text in solver_texts(name):
            for rest in itertools.product(LOSS_TEXTS, PENALTY_TEXTS, AVERAGE_TEXTS):
                yield Case(text, *rest)
