"""Which solver runs with which penalty and average: lazily, by its O(d) recursion, or not at all, and why (contract 6, 7).

``python -m onlinear.learner.combinations`` prints the page docs/compatibility.md; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from onlinear import averages, schedules
from onlinear.learner.parts import (
    JOINT_LOSSES,
    LOSSES,
    PENALTIES,
    build_average,
    build_loss,
    build_penalty,
    build_solver,
    is_adaptive,
    solver_name,
)
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.engine import Engine, Problem

PENALTY_TEXTS = (
    *(",".join([name, *(f"{key}=0.1" for key in keys)]) for name, keys in PENALTIES.items()),
    "elastic-net,l1=0.1,l2=0.1,lower=-1,upper=1",
)
AVERAGES = ("none", *averages.NAMED, "suffix,alpha=0.5", averages.ADAPTIVE)
OTHER_SETTINGS = {"relaxation": 1.4, "gamma": 0.0, "bregman": 0.5, "radius": 1.0}
TOTAL = 1000
LAZY, DENSE, REFUSED = "lazy", "O(d)", "refused"


GOT = re.compile(r", got (\w+\([^)]*\)|'[^']*')")  # what was given differs from cell to cell


class Answer(NamedTuple):
    """How a combination runs, and what stands in the way of more."""

    how: str
    why: str = ""


def engine_of(solver: str, loss: str, penalty: str, average: str) -> Engine:
    """The engine of one combination; raises ValueError where it is refused."""
    r = build_penalty(penalty)
    method, _ = build_solver(solver, r, TOTAL)
    return method.engine(Problem(build_loss(loss), r, build_average(average, TOTAL), False, solver_name(method)))


def answer(solver: str, loss: str, penalty: str, average: str) -> Answer:
    """How the code runs one combination."""
    try:
        engine = engine_of(solver, loss, penalty, average)
    except ValueError as error:
        return Answer(REFUSED, GOT.sub("", str(error)))
    if is_adaptive(average) and not engine.scores_means:
        return Answer(REFUSED, "average 'adaptive' needs rows scored by the average before each step")
    return Answer(LAZY) if engine.lazy else Answer(DENSE, engine.why)


def variants(name: str) -> dict[str, str]:
    """The solver with its defaults, and with each schedule and setting that may change an answer, as {setting: text}."""
    cls = SOLVERS[name].solver
    settings = [f"schedule={schedule}" for schedule in schedules.NAMED]
    for key, default in cls._field_defaults.items():
        settings += [f"{key}=true", f"{key}=false"] if isinstance(default, bool) else []
        settings += [f"{key}={choice}" for choice in getattr(cls, "choices", {}).get(key, ())]
    settings += [f"{key}={value}" for key, value in OTHER_SETTINGS.items()]
    return {"": name} | {s: f"{name},{s}" for s in dict.fromkeys(settings) if _known(f"{name},{s}")}


def _known(text: str) -> bool:
    try:
        build_solver(text, build_penalty("l2,l2=0.1"), TOTAL)
    except (ValueError, TypeError):
        return False
    return True


def losses_of(name: str) -> list[str]:
    """The losses that the solver takes with some penalty."""
    return [loss for loss in LOSSES if any(answer(name, loss, r, "none").how != REFUSED for r in PENALTY_TEXTS)]


def joins(solver: str, loss: str, penalty: str, average: str) -> bool:
    """Whether the code runs one combination with a loss of all scores."""
    try:
        engine = engine_of(solver, loss, penalty, average)
    except ValueError:
        return False
    return engine.joins and (engine.scores_means or not is_adaptive(average))


def joint_line(name: str, loss: str) -> str:
    """With which penalties and averages the solver takes a loss of all scores."""
    penalties = [penalty for penalty in PENALTY_TEXTS if joins(name, loss, penalty, "none")]
    if not penalties:
        return f"{loss.capitalize()}: no."
    taken = [average for average in AVERAGES if all(joins(name, loss, penalty, average) for penalty in penalties)]
    shown = "every average" if len(taken) == len(AVERAGES) else ", ".join(average.partition(",")[0] for average in taken)
    how = LAZY if engine_of(name, loss, penalties[0], "none").lazy else DENSE
    return f"{loss.capitalize()}: {how} with {', '.join(map(_label, penalties))}; averages: {shown}."


def batch_line(name: str, loss: str) -> str:
    """Whether the solver takes mini-batches where it runs, else why not."""
    runs = [penalty for penalty in PENALTY_TEXTS if answer(name, loss, penalty, "none").how != REFUSED]
    found = [answer(f"{name},batch=2", loss, penalty, "none") for penalty in runs]
    whys = sorted({other.why for other in found if other.how == REFUSED})
    return f"Mini-batches: {' '.join(whys)}" if whys else "Mini-batches: batch=k."


def answers_of(name: str, loss: str, penalty: str, average: str) -> list[tuple[str, Answer]]:
    """The answers of a cell: with the solver's defaults, then with the settings that change it."""
    found = {setting: answer(text, loss, penalty, average) for setting, text in variants(name).items()}
    return [(setting, other) for setting, other in found.items() if not setting or other.how != found[""].how]


def page() -> str:
    """The page docs/compatibility.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What runs with what"
    yield ""
    yield "Generated from the code by `python -m onlinear.learner.combinations`; do not edit."
    yield ""
    yield f"- **{LAZY}**: exact, in time proportional to the non-zeros of the row."
    yield f"- **{DENSE}**: exact, by the method's own recursion over all features; the note says what stands in the way."
    yield f"- **{REFUSED}**: the combination has no correct form, or none is known; the note is the error's message."
    yield ""
    yield "A setting in brackets gives the cell with that setting, where it differs from the solver's defaults. Any value of a"
    yield "penalty's settings gives the same answer, unless the note names one."
    sections: dict[str, list[str]] = {}
    for name in SOLVERS:
        sections.setdefault("\n".join(_section(name)).replace(repr(name), "'...'"), []).append(name)
    for section, names in sections.items():
        yield ""
        yield f"## {', '.join(names)}"
        yield ""
        yield section.replace("'...'", repr(names[0]) if len(names) == 1 else "'...'")


def _section(name: str) -> Iterator[str]:
    losses = losses_of(name)
    loss = "hinge" if "hinge" in losses else losses[0]
    yield "Losses: " + ("all." if len(losses) == len(LOSSES) else ", ".join(losses) + ".")
    for joint in JOINT_LOSSES:
        yield joint_line(name, joint)
    yield batch_line(name, loss)
    yield ""
    yield "| penalty | " + " | ".join(average.partition(",")[0] for average in AVERAGES) + " |"
    yield "|---" * (len(AVERAGES) + 1) + "|"
    notes: dict[str, int] = {}
    for penalty in PENALTY_TEXTS:
        cells = [_cell(answers_of(name, loss, penalty, average), notes) for average in AVERAGES]
        yield f"| {_label(penalty)} | " + " | ".join(cells) + " |"
    if notes:
        yield ""
    for why, number in notes.items():
        yield f"{number}. {why}"


def _label(penalty: str) -> str:
    name, *settings = penalty.split(",")
    return f"{name} with bounds" if any(setting.startswith("lower") for setting in settings) else name


def _cell(answers: list[tuple[str, Answer]], notes: dict[str, int]) -> str:
    def show(found: Answer) -> str:
        return f"{found.how} ({notes.setdefault(found.why, len(notes) + 1)})" if found.why else found.how

    (_, first), *others = answers
    grouped: dict[str, list[str]] = {}
    for setting, other in others:
        grouped.setdefault(show(other), []).append(setting)
    return show(first) + "".join(f" [{' or '.join(settings)}: {text}]" for text, settings in grouped.items())


if __name__ == "__main__":
    print(page(), end="")
