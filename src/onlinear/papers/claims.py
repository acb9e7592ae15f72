"""Verdicts from numbers. A claim has checks, formulas that are true or not; each is decided on every problem it covers.

    all hold: reproduced;  fewer than one in ten: not reproduced;  else partly;  a formula ``partly`` that holds makes it partly

A check that has no value (a method that did not run, a run that ended too early) does not count. Where none has a value:
not run, or not decided.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinear.papers.experiments import Claim, ExperimentError
from onlinear.papers.expressions import (
    FUNCTIONS,
    ExpressionError,
    Interval,
    NotThereError,
    NoValueError,
    Series,
    evaluate_tree,
    parse,
    truth,
)
from onlinear.papers.study import GRID_FUNCTIONS, Names, Study, value_of

REPRODUCES, PARTLY, DOES_NOT = "reproduced", "partly", "not reproduced"
UNDECIDED, NOT_RUN = "not decided", "not run"
VERDICTS = (REPRODUCES, PARTLY, DOES_NOT, UNDECIDED, NOT_RUN)
LEAST = 0.1  # the share of checks that must hold for "partly": 1 of 36 is not a part of a claim
SYMBOLS = {ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠"}


@dataclass(frozen=True)
class Decision:
    """One check on one problem: whether it holds, and the numbers in it, or why it has no value."""

    problem: str
    check: str
    holds: bool | None
    numbers: str
    was_run: bool = True


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, how it came about, and numbers."""

    claim: Claim
    verdict: str
    decisions: tuple[Decision, ...]
    shown: tuple[tuple[str, str, str], ...] = ()
    needs: str = ""

    @property
    def rule(self) -> str:
        """The rule as applied, in words."""
        counted = [decision for decision in self.decisions if decision.holds is not None]
        if not counted:
            return self.needs or "no check had a value"
        silent = len(self.decisions) - len(counted)
        rest = f", {silent} without a value" if silent else ""
        return f"{sum(bool(one.holds) for one in counted)} of {len(counted)} checks hold{rest}"


def judge(study: Study, claim: Claim) -> Judged:
    """Decide a claim."""
    problems = [problem for problem in study.problems if problem.matches(claim.data, claim.only) and problem.curves]
    if not problems:
        raise ExperimentError(f"{study.experiment.name}.toml: the claim {claim.text!r} covers no problem.")
    if claim.over == "once":
        problems = problems[:1]
    decisions, shown, partly = [], [], False
    for problem in problems:
        names = Names(study, problem)
        title = "" if claim.over == "once" else problem.title
        decisions += [decide(title, check, names, study.experiment.name) for check in claim.check]
        for label, text in claim.show.items():
            shown.append((title, label, number(_value(text, names, study.experiment.name))))
        if claim.partly is not None:
            partly = partly or bool(decide(title, claim.partly, names, study.experiment.name).holds)
    counted = [one.holds for one in decisions if one.holds is not None]
    if not counted:
        why = UNDECIDED if any(one.was_run for one in decisions) else NOT_RUN
        return Judged(claim, why, tuple(decisions), tuple(shown), "no check had a value")
    return Judged(claim, verdict(counted, partly), tuple(decisions), tuple(shown))


def verdict(holds: list[bool], partly: bool) -> str:
    """The verdict of at least one check; ``partly``: the result of the claim's own formula for it."""
    if all(holds):
        return REPRODUCES
    return PARTLY if partly or sum(holds) >= LEAST * len(holds) else DOES_NOT


def decide(title: str, check: str, names: Names, where: str) -> Decision:
    """One check; an expression without a value leaves it undecided."""
    tree = parse(check)
    try:
        holds = truth(evaluate_tree(tree, names, {**FUNCTIONS, **GRID_FUNCTIONS}, check))
        return Decision(title, check, holds, numbers(tree, names, check))
    except NoValueError as error:
        return Decision(title, check, None, str(error), was_run=not isinstance(error, NotThereError))
    except ExpressionError as error:
        raise ExperimentError(f"{where}.toml: {error}") from None


def _value(text: str, names: Names, where: str) -> Any:
    try:
        return value_of(text, names)
    except NoValueError:
        return float("nan")
    except ExpressionError as error:
        raise ExperimentError(f"{where}.toml: {error}") from None


def numbers(tree: ast.expr, names: Names, text: str) -> str:
    """The comparison in numbers: '0.012 < 0.3'."""

    def value(node: ast.expr) -> str:
        return number(evaluate_tree(node, names, {**FUNCTIONS, **GRID_FUNCTIONS}, text))

    match tree:
        case ast.Compare():
            signs = [SYMBOLS[type(op)] for op in tree.ops]
            sides = [value(side) for side in (tree.left, *tree.comparators)]
            return " ".join([sides[0], *(f"{sign} {side}" for sign, side in zip(signs, sides[1:], strict=True))])
        case ast.BoolOp():
            join = " and " if isinstance(tree.op, ast.And) else " or "
            return join.join(numbers(part, names, text) for part in tree.values)
    return value(tree)


def number(value: Any) -> str:
    """A value as a reader wants it."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Series):
        return f"a series that ends at {number(float(value.values[:, -1].mean()))}"
    if isinstance(value, Interval):
        return f"over {number(value.low)}" if np.isinf(value.high) else f"{number(value.low)} to {number(value.high)}"
    if isinstance(value, (int, float, np.floating, np.integer)):
        value = float(value) + 0.0  # no negative zero
        if np.isnan(value):
            return "–"
        if np.isinf(value):
            return "∞" if value > 0 else "-∞"
        whole = abs(value) < 1e12 and (value == int(value) or abs(value) >= 1000)
        return f"{value:,.0f}" if whole else f"{value:.4g}"
    return str(value)
