"""The contract of every combination of solver, loss, penalty, schedule and average that the code offers.

A pairwise covering set runs interpreted, in a process of its own (contract_interpreted.py). Compiled here: every (solver,
loss) and (solver, penalty), and averages with some solvers, by whole runs; bit for bit a fourth of the lazy ones and a dense
one of each method. Every (solver, average), single steps and everything under ``pytest -m exhaustive``.
"""

# ruff: noqa: F401, F811 (the fixture ``tally`` is imported)

from __future__ import annotations

import functools
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from combinations import (
    AVERAGE_TEXTS,
    COMPILED_FREE,
    LOSS_TEXTS,
    NAMES,
    PENALTY_TEXTS,
    Case,
    build,
    compiled_cases,
    compiled_demands,
    covering,
    engine,
    is_lazy,
    solver_texts,
)
from contract_checks import (
    Shape,
    examples,
    lazy_run_is_the_recursion,
    one_step_is_the_recursion,
    outputs_are_columns,
    same_bits,
    tally,
    weight_0_is_a_step_without_loss,
)
from seldom import often, seldom

from onlinear.learner import combinations
from onlinear.solvers import SOLVERS
from onlinear.solvers.core.moments import due

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CASES = list(compiled_cases())


@functools.cache
def cases_of_averages() -> list[Case]:
    """Those that every average with every solver adds."""
    return [case for case in covering(2, compiled_demands(), COMPILED_FREE) if case not in CASES]


def seldom_dense(cases: list[Case]) -> list[Case]:
    """Lazy cases, and of dense ones, each of which is a kernel of its own, one of each method, with a penalty of differences
    where there is one, and without an average where that is compiled too."""
    dense = [case for case in cases if not is_lazy(case)]
    dense.sort(key=lambda case: ("tv=" in case.penalty, case.average == "none"))
    kept = {SOLVERS[case.name].solver: case for case in dense}.values()
    return [case for case in cases if is_lazy(case) or case in kept]


EIGHTH = seldom_dense([case for name in NAMES for case in [case for case in CASES if case.name == name][::8]])


def loop_of(case: Case) -> tuple[str, bool]:
    """The loop over rows that a lazy case runs, and whether its steps are implicit."""
    found = engine(case)
    names = type(found).call.__code__.co_names
    return next((name for name in names if name.startswith("learn_")), "learn_rows"), found.implicit


PLAIN = [case for case in reversed(EIGHTH) if case.average == "none" and is_lazy(case)]
ALSO_SINGLE = {loop_of(case): case for case in PLAIN}.values()  # compiled for float32, too, one of each loop


LAZY = [case for case in CASES if is_lazy(case)]


@pytest.mark.parametrize("cases", ["not exhaustive", seldom("exhaustive")])
def test_interpreted(cases: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", cases, "-p", "no:cacheprovider"]
    command.append(f"--basetemp={tmp_path / 'own'}")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [*command, str(HERE / "contract_interpreted.py")], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("case", LAZY, ids=str)
def test_lazy_run_is_the_recursion(case: Case, tally: dict[str, Counter[str]]) -> None:
    examples(lazy_run_is_the_recursion, case, tally, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", LAZY, ids=str)
def test_one_step_is_the_recursion(case: Case, tally: dict[str, Counter[str]]) -> None:
    examples(one_step_is_the_recursion, case, tally, 3, wild=True)


@pytest.mark.parametrize("case", often(CASES, EIGHTH), ids=str)
def test_same_bits(case: Case, tally: dict[str, Counter[str]], tmp_path: Path) -> None:
    single = case not in EIGHTH or case in ALSO_SINGLE
    examples(same_bits, case, tally, 1, folder=tmp_path, single=single)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_every_average(name: str, tally: dict[str, Counter[str]], tmp_path: Path) -> None:
    for case in (case for case in cases_of_averages() if case.name == name):
        if is_lazy(case):
            examples(lazy_run_is_the_recursion, case, tally, 2)
            examples(one_step_is_the_recursion, case, tally, 3, wild=True)
        examples(same_bits, case, tally, 1, folder=tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_columns(name: str) -> None:
    for case in (case for case in CASES if case.name == name):
        outputs_are_columns(case, Shape(3, 75, 0.5, "normal", False, False, (), 0.1))
        return


@pytest.mark.parametrize("outputs", [1, seldom(4)])
@pytest.mark.parametrize("name", NAMES)
def test_weight_0_is_a_step_without_loss(name: str, outputs: int) -> None:
    for loss in ("exponential", "poisson"):
        case = Case(name, loss, "elastic-net,l1=0.03,l2=0.2", "uniform")
        if not isinstance(build(case), str):
            weight_0_is_a_step_without_loss(case, outputs)


@pytest.mark.parametrize("l1", ["1e-20", "1e3"])
@pytest.mark.parametrize("solver", [*NAMES, "odrs,relaxation=1.4"])
def test_a_lazy_run_with_next_to_no_penalty_and_with_one_beyond_all_weights(
    solver: str, l1: str, tally: dict[str, Counter[str]]
) -> None:
    case = Case(solver, "logistic", f"l1,l1={l1}", "uniform")
    if is_lazy(case):
        lazy_run_is_the_recursion(case, Shape(3, 75, 0.5, "normal", False, False, (), 0.1), tally[case.name])


def test_refusals_say_why() -> None:
    for rest in itertools.product(NAMES, LOSS_TEXTS, PENALTY_TEXTS, AVERAGE_TEXTS):
        found = build(Case(*rest))
        assert not isinstance(found, str) or len(found.split()) >= 6, f"{rest}: {found}"


def test_a_solver_that_a_refusal_names_takes_the_other_parts() -> None:
    """Or it is refused for the average, which the first solver took: one setting is named at a time."""
    losses, penalties, averages = ("hinge", "squared"), (*PENALTY_TEXTS, "none"), (*AVERAGE_TEXTS, "adaptive")
    for solver, *rest in itertools.product(SOLVERS, losses, penalties, averages):
        found = build(Case(solver, *rest))
        named = re.findall(r"'([a-z-]+)'", found.partition("use ")[2]) if isinstance(found, str) else []
        for other in set(named) & set(SOLVERS):
            then = build(Case(other, *rest))
            assert other != solver, (solver, *rest, found)
            assert not isinstance(then, str) or "average" in then, (solver, *rest, found, other, then)


def test_every_solver_learns_something() -> None:
    assert {case.name for case in CASES} == set(NAMES)


def test_compatibility_page_is_what_the_code_does() -> None:
    assert (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8") == combinations.page()


def test_moments_at_which_a_run_may_visit_every_coordinate() -> None:
    powers = [2**k for k in range(6, 19)]
    assert [t for t in range(3 * 2**18 + 2) if due(t)] == [*powers, 2 * 2**18, 3 * 2**18]


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", LOSS_TEXTS)
@pytest.mark.parametrize("name", NAMES)
def test_everything(name: str, loss: str, tally: dict[str, Counter[str]], tmp_path: Path) -> None:
    turns = itertools.cycle([(False, "none"), (True, "rms"), (True, "none"), (False, "max-abs"), (False, "none")])
    for solver, penalty, average in itertools.product(solver_texts(name), PENALTY_TEXTS, AVERAGE_TEXTS):
        case = Case(solver, loss, penalty, average, *next(turns))
        if isinstance(build(case), str):
            continue
        if is_lazy(case):
            examples(lazy_run_is_the_recursion, case, tally, 2)
            examples(one_step_is_the_recursion, case, tally, 1, wild=True)
        examples(same_bits, case, tally, 1, folder=tmp_path)
