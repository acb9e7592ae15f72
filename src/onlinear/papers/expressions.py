"""Formulas in experiment files: Python's arithmetic on named results, read with ``ast``, never run as code.

Allowed: numbers, texts, names, + - * / // % **, comparisons, and/or/not, ``a if c else b``, lists, subscripts, and calls of
the named functions. Nothing else: no attributes, no lambdas, no comprehensions, no keyword tricks.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlinear.text.form import unknown

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class ExpressionError(ValueError):
    """A formula that cannot be read or has no value."""


class NoValueError(ExpressionError):
    """A formula that is right, but whose value the runs at hand do not tell."""


class NotThereError(NoValueError):
    """A formula on a method, measure or problem that was not run."""


@dataclass(frozen=True)
class Interval:
    """A number of which no more is known than ``low <= number <= high``: a run ended before a level was met, say.

    Arithmetic is that of its ends; a comparison that its ends do not decide raises NoValueError.
    """

    low: float
    high: float

    def combine(self, other: Any, operation: Callable[[Any, Any], Any], swapped: bool = False) -> Interval:
        """``operation`` at the ends of both; inf / inf and inf - inf say nothing that the other ends do not."""
        theirs = other if isinstance(other, Interval) else Interval(float(other), float(other))
        left, right = (theirs, self) if swapped else (self, theirs)
        corners = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return Interval(float(np.nanmin(corners)), float(np.nanmax(corners)))

    def below(self, other: Any, strict: bool) -> bool:
        """Whether it is less than ``other``, or at most as large."""
        theirs = other if isinstance(other, Interval) else Interval(float(other), float(other))
        if self.high < theirs.low or (not strict and self.high <= theirs.low):
            return True
        if self.low > theirs.high or (strict and self.low >= theirs.high):
            return False
        raise NoValueError("not decided: a run ended before it met the level.")

    def __add__(self, other: Any) -> Interval:
        return self.combine(other, operator.add)

    def __sub__(self, other: Any) -> Interval:
        return self.combine(other, operator.sub)

    def __mul__(self, other: Any) -> Interval:
        return self.combine(other, operator.mul)

    def __truediv__(self, other: Any) -> Interval:
        return self.combine(other, operator.truediv)

    def __radd__(self, other: Any) -> Interval:
        return self.combine(other, operator.add, swapped=True)

    def __rsub__(self, other: Any) -> Interval:
        return self.combine(other, operator.sub, swapped=True)

    def __rmul__(self, other: Any) -> Interval:
        return self.combine(other, operator.mul, swapped=True)

    def __rtruediv__(self, other: Any) -> Interval:
        return self.combine(other, operator.truediv, swapped=True)

    def __lt__(self, other: Any) -> bool:
        return self.below(other, strict=True)

    def __le__(self, other: Any) -> bool:
        return self.below(other, strict=False)

    def __gt__(self, other: Any) -> bool:
        return not self.below(other, strict=False)

    def __ge__(self, other: Any) -> bool:
        return not self.below(other, strict=True)


@dataclass(frozen=True)
class Series:
    """A measure along runs: ``t`` the checkpoints (k,), ``values`` (repetitions, k). Arithmetic is at common checkpoints."""

    t: np.ndarray
    values: np.ndarray

    def combine(self, other: Any, operation: Callable[[Any, Any], Any], swapped: bool = False) -> Series:
        """``operation`` element by element."""
        left, right, t = self, other, self.t
        if isinstance(other, Series):
            t = np.intersect1d(self.t, other.t)
            left, right = self.at(t), other.at(t)
            if not len(t):
                raise ExpressionError("the two series have no checkpoint in common.")
        a, b = (x.values if isinstance(x, Series) else x for x in (left, right))
        with np.errstate(all="ignore"):
            return Series(t, np.asarray(operation(b, a) if swapped else operation(a, b)))

    def at(self, t: np.ndarray) -> Series:
        """The series at checkpoints that it has."""
        return Series(t, self.values[:, np.searchsorted(self.t, t)])

    def __hash__(self) -> int:
        return id(self)


def _install(name: str, operation: Callable[[Any, Any], Any]) -> None:
    setattr(Series, f"__{name}__", lambda self, other: self.combine(other, operation))
    if name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Series, f"__r{name}__", lambda self, other: self.combine(other, operation, swapped=True))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"):
    _install(_name, getattr(operator, _name))


def of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function of numbers, also of series, element by element."""

    def apply(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return Series(x.t, function(x.values)) if isinstance(x, Series) else function(x)

    return apply


def of_two(function: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    """min and max: of one series its extreme mean, of several arguments element by element."""

    def apply(*given: Any) -> Any:
        if len(given) == 1:
            only = given[0]
            return float(reduce(only.values.mean(axis=0) if isinstance(only, Series) else np.asarray(only)))
        found = given[0]
        for other in given[1:]:
            if not isinstance(found, Series) and isinstance(other, Series):
                found, other = other, found
            found = found.combine(other, function) if isinstance(found, Series) else function(found, other)
        return found

    return apply


def final(x: Any) -> Any:
    """The mean over repetitions at the last checkpoint."""
    return float(x.values[:, -1].mean()) if isinstance(x, Series) else x


def first(x: Series) -> float:
    """The mean over repetitions at the first checkpoint."""
    return float(x.values[:, 0].mean())


def at(x: Series, t: float) -> float:
    """The mean over repetitions at the last checkpoint that is not beyond t; t itself may not be beyond the run's end."""
    if t > x.t[-1]:
        raise NoValueError(f"there is no checkpoint at {t:g}; the last is {x.t[-1]:g}.")
    return float(x.values[:, _place_at(x, t)].mean())


def spread(x: Series, t: float = float("inf")) -> float:
    """The standard deviation over repetitions at the last checkpoint not beyond t; of one repetition there is none."""
    if len(x.values) < 2:
        raise NoValueError("there is no deviation of one repetition.")
    return float(x.values[:, _place_at(x, t)].std(ddof=1))


def _place_at(x: Series, t: float) -> int:
    """The last checkpoint that is not beyond t."""
    place = int(np.searchsorted(x.t, t, side="right")) - 1
    if place < 0:
        raise NoValueError(f"there is no checkpoint at or before {t:g}; the first is {x.t[0]:g}.")
    return place


def average(x: Series) -> Series:
    """The mean over repetitions, as a series of one."""
    return Series(x.t, x.values.mean(axis=0, keepdims=True))


def running_min(x: Series) -> Series:
    """The least value so far."""
    return Series(x.t, np.minimum.accumulate(x.values, axis=1))


def share(x: Any) -> float:
    """The share of true values over repetitions and checkpoints (or of a list)."""
    return float(np.mean(x.values if isinstance(x, Series) else np.asarray(x, dtype=float)))


def first_below(x: Series, level: float) -> float | Interval:
    """The first checkpoint at which the mean is at most ``level``; where it never is, at least the last checkpoint."""
    below = np.flatnonzero(x.values.mean(axis=0) <= level)
    return float(x.t[below[0]]) if len(below) else Interval(float(x.t[-1]), float("inf"))


def when(y: Series, x: Series, level: float) -> float | Interval:
    """The mean of y (CPU time, say) at the first checkpoint where the mean of x is at most ``level``.

    Where it never is: at least the last mean of y, which must not fall along the run.
    """
    t = np.intersect1d(x.t, y.t)
    below = np.flatnonzero(x.at(t).values.mean(axis=0) <= level)
    means = y.at(t).values.mean(axis=0)
    return float(means[below[0]]) if len(below) else Interval(float(means[-1]), float("inf"))


def until(y: Series, x: Series, level: float) -> float:
    """The mean of y at the last checkpoint where the mean of x (CPU time, say) is at most ``level``."""
    t = np.intersect1d(x.t, y.t)
    below = np.flatnonzero(x.at(t).values.mean(axis=0) <= level)
    if not len(below):
        raise NoValueError(f"there is no checkpoint where the measure is at most {level:g}.")
    return float(y.at(t).values.mean(axis=0)[below[-1]])


def settles(x: Series, width: float) -> float:
    """The first checkpoint after which the mean stays within ``width`` (absolute) of its last value."""
    mean = x.values.mean(axis=0)
    outside = np.flatnonzero(np.abs(mean - mean[-1]) > width)
    return float(x.t[outside[-1] + 1]) if len(outside) else float(x.t[0])


def slope(x: Series, low: float = 0.0, high: float = float("inf")) -> float:
    """The slope of log mean against log t for low <= t <= high: -1 for 1/t."""
    inside = (x.t >= max(low, 1)) & (x.t <= high)
    t, mean = x.t[inside], x.values.mean(axis=0)[inside]
    good = mean > 0
    if good.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(t[good]), np.log(mean[good]), 1)[0])


def between(x: Series, low: float, high: float) -> Series:
    """The checkpoints with low <= t <= high."""
    inside = (x.t >= low) & (x.t <= high)
    if not inside.any():
        raise NoValueError(f"there is no checkpoint between {low:g} and {high:g}.")
    return Series(x.t[inside], x.values[:, inside])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": of_values(np.abs),
    "sqrt": of_values(np.sqrt),
    "log": of_values(np.log),
    "log2": of_values(np.log2),
    "log10": of_values(np.log10),
    "exp": of_values(np.exp),
    "floor": of_values(np.floor),
    "ceil": of_values(np.ceil),
    "isfinite": of_values(np.isfinite),
    "min": of_two(np.minimum, np.min),
    "max": of_two(np.maximum, np.max),
    "final": final,
    "first": first,
    "at": at,
    "sd": spread,
    "average": average,
    "running_min": running_min,
    "share": share,
    "first_below": first_below,
    "when": when,
    "until": until,
    "settles": settles,
    "slope": slope,
    "between": between,
}


def parse(text: str) -> ast.expr:
    """The tree of a formula."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is no formula: {error.msg}.") from None


def evaluate(text: str, names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """The value of a formula. Raises ExpressionError for what is not allowed, not known, or has no value."""
    return evaluate_tree(parse(text), names, {**FUNCTIONS, **(functions or {})}, text)


def evaluate_tree(node: ast.expr, names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], text: str) -> Any:
    """The value of a formula's tree."""
    try:
        return _Evaluation(names, functions, text).value(node)
    except ExpressionError:
        raise
    except (ArithmeticError, TypeError, ValueError, KeyError, IndexError) as error:
        raise ExpressionError(f"{text!r}: {error}") from None


class _Evaluation(NamedTuple):
    """The names and functions that a formula may use, and its text, for errors."""

    names: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    text: str

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return node.value
            case ast.Name():
                if node.id in self.names:
                    return self.names[node.id]
                raise ExpressionError(f"{self.text!r}: {unknown('name', node.id, self.names)}")
            case ast.BinOp() if type(node.op) in BINARY:
                return BINARY[type(node.op)](self.value(node.left), self.value(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return 0.0 - self.value(node.operand)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return not truth(self.value(node.operand))
            case ast.BoolOp(op=ast.And()):
                return all(truth(self.value(part)) for part in node.values)
            case ast.BoolOp(op=ast.Or()):
                return any(truth(self.value(part)) for part in node.values)
            case ast.IfExp():
                return self.value(node.body) if truth(self.value(node.test)) else self.value(node.orelse)
            case ast.Compare() if all(type(op) in COMPARE for op in node.ops):
                sides = [self.value(side) for side in (node.left, *node.comparators)]
                found = [COMPARE[type(op)](a, b) for op, a, b in zip(node.ops, sides[:-1], sides[1:], strict=True)]
                return found[0] if len(found) == 1 else all(map(truth, found))
            case ast.List() | ast.Tuple():
                return tuple(self.value(item) for item in node.elts)
            case ast.Subscript():
                return self.value(node.value)[self.value(node.slice)]
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                if name not in self.functions:
                    raise ExpressionError(f"{self.text!r}: {unknown('function', name, self.functions)}")
                return self.functions[name](*map(self.value, node.args))
        raise ExpressionError(f"{self.text!r}: {ast.unparse(node)!r} is not allowed in a formula.")


def truth(value: Any) -> bool:
    """Whether a value counts as true: of a series, everywhere."""
    return bool(np.all(value.values)) if isinstance(value, Series) else bool(value)


PLACE = re.compile(r"\{([^{}]+)\}")


def fill(text: str, names: Mapping[str, Any]) -> str:
    """A text with each ``{formula}`` replaced by its value."""

    def put(found: re.Match[str]) -> str:
        value = evaluate(found[1], names)
        return str(value) if isinstance(value, (str, bool)) else repr(float(value))

    return PLACE.sub(put, text)
