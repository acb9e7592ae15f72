"""Verdicts from numbers. A claim has checks, formulas that are true or not; each is decided on every problem it covers.

    all hold: reproduced;  at least two thirds: mostly;  at least a third: partly;  fewer: not reproduced

A comparison of two numbers is not decided by chance:

    both without a number (NaN, or the same infinity)           undecided
    one without a number                                        it loses: the side that the claim favours stands on the left
    a tie under < or >                                          undecided
    a difference of at most two standard errors                 undecided, unless five repetitions or more all agree

The standard error is the jackknife's over repetitions. Both sides leave out the same repetition, so it is that of the paired
difference where both are means. One repetition has none: then the sign decides. Undecided checks do not count; where they are
more than half, the claim is not decided. One check that fails refutes a universal statement, such as a theorem. A bound that is
at every T above what w = 0 gives cannot fail: an identity.

Source of the jackknife: Tukey, Ann. Math. Statist. 29 (1958), 614.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinear.papers.experiments import Claim, ExperimentError
from onlinear.papers.expressions import (
    COMPARE,
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
from onlinear.papers.study import GRID_FUNCTIONS, Names, Study, StudyProblem, value_of

REPRODUCES, MOSTLY, PARTLY, DOES_NOT = "reproduced", "mostly", "partly", "not reproduced"
UNDECIDED, NOT_RUN = "not decided", "not run"
VERDICTS = (REPRODUCES, MOSTLY, PARTLY, DOES_NOT, UNDECIDED, NOT_RUN)
ERRORS = 2.0  # a difference of this many standard errors or fewer decides nothing
AGREE = 5  # but so many repetitions that all say the same do
ROUNDING = 1e-9  # what is left of a gap, as a share of what w = 0 gives or of its first value, that is zero but for rounding
EXACT_VALUE = "the measured value is zero to rounding"
SYMBOLS = {ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠"}
STRICT, EXACT = (ast.Lt, ast.Gt), (ast.Eq, ast.NotEq)


@dataclass(frozen=True)
class Decision:
    """One check on one problem: whether it holds, the numbers in it, and why it is undecided or has no value."""

    problem: str
    check: str
    holds: bool | None
    numbers: str
    why: str = ""
    was_run: bool = True


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, how it came about, and numbers; ``vacuous``: its bound is never below what w = 0 gives."""

    claim: Claim
    verdict: str
    decisions: tuple[Decision, ...]
    shown: tuple[tuple[str, str, str], ...] = ()
    needs: str = ""
    vacuous: bool = False

    @property
    def kind(self) -> str:
        """Whose statement it is: paper, identity (cannot fail), ours, repeat (on rows that are not the paper's)."""
        return "identity" if self.vacuous and self.claim.kind == "paper" else self.claim.kind

    @property
    def rule(self) -> str:
        """The rule as applied, in words."""
        run = [decision for decision in self.decisions if decision.was_run]
        if not run:
            return self.needs or "no check had a value"
        counted = [decision.holds for decision in run if decision.holds is not None]
        silent = len(run) - len(counted)
        refuted = "; one that fails refutes it" if self.claim.universal and not all(counted) else ""
        return f"{sum(counted)} of {len(counted)} checks hold{f', {silent} undecided' if silent else ''}{refuted}"


def judge(study: Study, claim: Claim) -> Judged:
    """Decide a claim."""
    problems = [problem for problem in study.problems if problem.matches(claim.data, claim.only) and problem.curves]
    if not problems:
        raise ExperimentError(f"{study.experiment.name}.toml: the claim {claim.text!r} covers no problem.")
    if claim.over == "once":
        problems = problems[:1]
    decisions: list[Decision] = []
    shown: list[tuple[str, str, str]] = []
    informs = []
    for problem in problems:
        bench = Bench(study, problem)
        title = "" if claim.over == "once" else problem.title
        decisions += [bench.decide(title, check) for check in claim.check]
        shown += [(title, label, number(bench.value(text))) for label, text in claim.show.items()]
        if claim.bound:
            shown += [(title, label, number(value)) for label, value in bench.tightness(claim.bound)]
            informs.append(bench.informs(claim.bound))
    run = [one for one in decisions if one.was_run]
    vacuous = bool(informs) and not any(informs)
    needs = "" if run else "no check had a value"
    return Judged(claim, verdict([one.holds for one in run], claim.universal), tuple(decisions), tuple(shown), needs, vacuous)


def verdict(holds: list[bool | None], universal: bool = False) -> str:
    """The verdict of the checks that were run, None where one is undecided; one that fails refutes a universal statement."""
    if not holds:
        return NOT_RUN
    if universal and False in holds:
        return DOES_NOT
    counted = [one for one in holds if one is not None]
    if 2 * len(counted) < len(holds):
        return UNDECIDED
    held = sum(counted)
    if held == len(counted):
        return REPRODUCES
    return MOSTLY if 3 * held >= 2 * len(counted) else PARTLY if 3 * held >= len(counted) else DOES_NOT


@dataclass(frozen=True)
class Settled:
    """A comparison, or several joined: whether it holds, its numbers, and why it is undecided."""

    holds: bool | None
    numbers: str
    why: str = ""


class Bench:
    """Evaluates formulas on one problem, with all repetitions or with one of them left out."""

    def __init__(self, study: Study, problem: StudyProblem) -> None:
        self.where = study.experiment.name
        self.names = Names(study, problem)
        self.repetitions = max(len(curve.results) for curve in problem.curves.values())
        self.less = [Names(study, problem, left_out=k) for k in range(self.repetitions if self.repetitions > 1 else 0)]

    def decide(self, title: str, check: str) -> Decision:
        """One check; an expression without a value leaves it undecided."""
        try:
            found = self.settled(parse(check), check)
            return Decision(title, check, found.holds, found.numbers, found.why)
        except NoValueError as error:
            return Decision(title, check, None, str(error), was_run=not isinstance(error, NotThereError))
        except ExpressionError as error:
            raise ExperimentError(f"{self.where}.toml: {error}") from None

    def settled(self, tree: ast.expr, text: str) -> Settled:
        """A check's tree: comparisons by the rules above, joined by and, or."""
        match tree:
            case ast.BoolOp():
                parts = [self.settled(part, text) for part in tree.values]
                conjunction = isinstance(tree.op, ast.And)
                numbers = (" and " if conjunction else " or ").join(part.numbers for part in parts)
                return Settled(joined([part.holds for part in parts], conjunction), numbers, parts[0].why)
            case ast.Compare():
                sides = [tree.left, *tree.comparators]
                pairs = zip(tree.ops, sides, sides[1:], strict=False)
                return conjoined([self.compared(op, left, right, text) for op, left, right in pairs])
        value = self.of(tree, self.names, text)
        return Settled(truth(value), number(value))

    def compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr, text: str) -> Settled:
        """One comparison."""
        a, b = self.of(left, self.names, text), self.of(right, self.names, text)
        shown = f"{number(a)} {SYMBOLS[type(op)]} {number(b)}"
        if not (_is_number(a) and _is_number(b)):
            return Settled(truth(COMPARE[type(op)](a, b)), shown)
        if np.isnan(a) or np.isnan(b) or (a == b and np.isinf(a)):
            neither = np.isnan(a) == np.isnan(b)
            return Settled(None, shown, "neither side has a number") if neither else Settled(bool(np.isnan(b)), shown)
        if a == b and isinstance(op, STRICT):
            return Settled(None, shown, "a tie")
        if isinstance(op, EXACT) or np.isinf(a - b):
            return Settled(truth(COMPARE[type(op)](a, b)), shown)
        each = self.each(a - b, left, right, text)
        error = standard_error(each)
        if error == 0.0 or abs(a - b) > ERRORS * error or agreed(each):
            return Settled(truth(COMPARE[type(op)](a, b)), shown)
        return Settled(None, shown, f"within two standard errors of {number(error)}")

    def each(self, whole: float, left: ast.expr, right: ast.expr, text: str) -> np.ndarray:
        """The jackknife's pseudo-values of left - right: of two means, their difference in each repetition.

        nan where it is no number without that repetition, as of a level that only some repetitions reach.
        """
        found = [self.of(left, names, text) - self.of(right, names, text) for names in self.less]
        less = np.array([value if _is_number(value) else np.nan for value in found])
        return len(less) * whole - (len(less) - 1) * less

    def of(self, node: ast.expr, names: Names, text: str) -> Any:
        """The value of a tree."""
        return evaluate_tree(node, names, {**FUNCTIONS, **GRID_FUNCTIONS}, text)

    def value(self, text: str) -> Any:
        """The value of a formula, nan where it has none."""
        try:
            return value_of(text, self.names)
        except NoValueError:
            return float("nan")
        except ExpressionError as error:
            raise ExperimentError(f"{self.where}.toml: {error}") from None

    def tightness(self, bound: Any) -> list[tuple[str, Any]]:
        """How many times the bound is what it bounds, at the end; and from which T it is below what w = 0 gives."""
        found = [("bound / measured", self.ratio(bound))]
        if "trivial" in bound:
            found.append(("below w = 0 from T", self.value(f"first_below({bound['bound']}, {bound['trivial']})")))
        return found

    def ratio(self, bound: Any) -> Any:
        """The bound over what it bounds, at the end; words where that is zero but for rounding, and a ratio says nothing."""
        whole = self.value(bound["trivial"] if "trivial" in bound else f"first({bound['measured']})")
        left = self.value(f"final({bound['measured']})")
        return EXACT_VALUE if abs(left) <= ROUNDING * abs(whole) else self.value(f"final({bound['bound']})") / left

    def informs(self, bound: Any) -> bool:
        """Whether a bound is anywhere below what w = 0 gives; one that names no such value is taken to be."""
        return "trivial" not in bound or not isinstance(self.tightness(bound)[-1][1], Interval)


def standard_error(each: np.ndarray) -> float:
    """Of the mean of pseudo-values; 0 of one repetition, infinite where one has no number."""
    if not len(each):
        return 0.0
    return float(np.std(each, ddof=1) / np.sqrt(len(each))) if np.all(np.isfinite(each)) else float("inf")


def agreed(each: np.ndarray) -> bool:
    """Whether enough repetitions, each alone, say the same: of one that diverges the deviation is as large as the mean."""
    return len(each) >= AGREE and (bool(np.all(each > 0.0)) or bool(np.all(each < 0.0)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, (bool, np.bool_))


def joined(holds: list[bool | None], conjunction: bool) -> bool | None:
    """And, or: one part may decide alone; else one undecided part leaves it undecided."""
    if (not conjunction) in holds:
        return not conjunction
    return None if None in holds else conjunction


def conjoined(parts: list[Settled]) -> Settled:
    """a < b < c as one comparison."""
    whole = parts[0].numbers + "".join(" " + part.numbers.split(" ", 1)[1] for part in parts[1:])
    return Settled(joined([part.holds for part in parts], True), whole, next((part.why for part in parts if part.why), ""))


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
