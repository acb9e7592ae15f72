"""Formulas: values, series, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinear.papers.expressions import ExpressionError, Interval, NoValueError, Series, evaluate, fill

X = Series(np.array([1.0, 10.0, 100.0]), np.array([[1.0, 0.1, 0.01], [3.0, 0.3, 0.03]]))
Y = Series(np.array([10.0, 100.0, 1000.0]), np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))
NAMES = {"x": X, "y": Y, "n": 4.0, "table": {"a": 2.0}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * n ** 2", 33.0),
        ("-n // 3", -2.0),
        ("1 if n > 3 else 2", 1),
        ("n == 4 and not n < 3", True),
        ("1 < n < 4", False),
        ("table['a']", 2.0),
        ("final(x)", 0.02),
        ("first(x)", 2.0),
        ("at(x, 50)", 0.2),
        ("sd(x)", pytest.approx(0.01 * 2**0.5)),
        ("sd(x, 20)", pytest.approx(0.1 * 2**0.5)),
        ("slope(x)", pytest.approx(-1.0)),
        ("slope(x, 10)", pytest.approx(-1.0)),
        ("first_below(x, 0.2)", 10.0),
        ("first_below(x, 0)", Interval(100.0, float("inf"))),
        ("first_below(x, 0) / first_below(x, 0.2)", Interval(10.0, float("inf"))),
        ("first_below(x, 0.2) / first_below(x, 0)", Interval(0.0, 0.1)),
        ("first_below(x, 0) / first_below(x, 0)", Interval(0.0, float("inf"))),
        ("1000 - 2 * first_below(x, 0)", Interval(float("-inf"), 800.0)),
        ("first_below(x, 0) >= 10 * first_below(x, 0.2)", True),
        ("first_below(x, 0.2) <= first_below(x, 0)", True),
        ("first_below(x, 0.2) > first_below(x, 0)", False),
        ("first_below(x, 0) < 5 * first_below(x, 0.2)", False),
        ("when(x * x, x, 0.2)", pytest.approx(0.05)),
        ("when(y, x, 0.001)", Interval(1.0, float("inf"))),
        ("until(x, 1 / x, 7)", pytest.approx(0.2)),
        ("settles(x, 0.2)", 10.0),
        ("share(x < y)", 1.0),
        ("share(average(x) < 1)", pytest.approx(2 / 3)),
        ("min(x)", 0.02),
        ("max(1, 2, n)", 4.0),
        ("final(max(x, 0.025))", pytest.approx(0.0275)),
        ("final(1 / x)", pytest.approx((100 + 100 / 3) / 2)),
        ("final(sqrt(x * x))", pytest.approx(0.02)),
        ("final(between(x, 1, 20))", pytest.approx(0.2)),
        ("final(running_min(x))", pytest.approx(0.02)),
    ],
)
def test_values(text, value):
    assert evaluate(text, NAMES) == value


def test_series_meet_at_common_checkpoints():
    assert (X - Y).t.tolist() == [10.0, 100.0]
    np.testing.assert_allclose((X - Y).values, [[-0.9, -0.99], [-0.7, -0.97]])
    np.testing.assert_allclose((2 - X).values, 2 - X.values)


@pytest.mark.parametrize(
    "text",
    [
        "first_below(x, 0) >= 11 * first_below(x, 0.2)",
        "first_below(x, 0) >= first_below(x, 0.001)",
        "20 * first_below(x, 0.2) < first_below(x, 0)",
        "when(y, x, 0.001) <= 2",
        "until(x, x, -1) < 1",
        "sd(average(x)) < 1",
        "at(x, 101) < 1",
        "sd(x, 0.5) < 1",
    ],
)
def test_what_the_runs_do_not_tell_has_no_value(text):
    with pytest.raises(NoValueError):
        evaluate(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "x.values",
        "__import__('os')",
        "(lambda: 1)()",
        "[a for a in x]",
        "final(x=1)",
        "final(*x)",
        "x if",
        "f'{n}'",
        "n := 3",
        "b'a'",
        "nothing",
        "eval('1')",
        "table['b']",
        "1 / 0",
        "n @ n",
        "n is n",
        "'a' + 1",
        "between(x, 3, 4)",
        "at(x, 0.5)",
        "at(x, 101)",
    ],
)
def test_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text, NAMES)


def test_errors_name_what_is_near():
    with pytest.raises(ExpressionError, match=r"name 'tabl' is not known.* Did you mean 'table'"):
        evaluate("tabl", NAMES)
    with pytest.raises(ExpressionError, match=r"function 'finale' is not known.* Did you mean 'final'"):
        evaluate("finale(x)", NAMES)


def test_filling_texts():
    assert fill("comid,eta={1 / n},rho={table['a']}", NAMES) == "comid,eta=0.25,rho=2.0"


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(0.5, 10))
def test_arithmetic_is_pythons(a, b, c):
    names = {"a": a, "b": b, "c": c}
    assert evaluate("(a - b) / c + a * b - -a", names) == (a - b) / c + a * b + a
    assert evaluate("a <= b or a > c", names) == (a <= b or a > c)
