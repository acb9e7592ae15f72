"""Text forms: what parses, what does not, and errors that help."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinear import losses
from onlinear.names import kebab, number, parse, parts_of, unknown, unparse


def test_parse():
    assert parse("hinge", "loss") == ("hinge", {})
    assert parse(" comid , schedule = inverse,eta=5e-1,project=True ", "solver") == (
        "comid",
        {"schedule": "inverse", "eta": 0.5, "project": True},
    )
    assert parse("x,a=inf,b=-3", "solver") == ("x", {"a": inf, "b": -3.0})


@pytest.mark.parametrize("text", ["", ",eta=1", "comid,", "comid,eta", "comid,eta=", "comid,=1", "comid,,eta=1"])
def test_what_is_no_text_form(text):
    with pytest.raises(ValueError, match=r"solver .*expected (name,key=value|key=value)"):
        parse(text, "solver")


def test_a_setting_given_twice():
    with pytest.raises(ValueError, match="eta is given twice"):
        parse("comid,eta=1,eta=2", "solver")


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(
    lambda text: text not in ("true", "false", "inf", "nan", "infinity")
)
values = st.one_of(st.booleans(), st.floats(allow_nan=False), names)


@given(names, st.dictionaries(names, values, max_size=5))
def test_unparse_is_the_inverse(name, settings):
    assert parse(unparse(name, settings), "solver") == (name, settings)


def test_kebab_and_the_parts_of_a_module():
    assert [kebab(name) for name in ("Hinge", "SquaredHinge", "EpsilonInsensitive")] == [
        "hinge",
        "squared-hinge",
        "epsilon-insensitive",
    ]
    found = list(parts_of(vars(losses)))
    assert found[:5] == ["squared", "absolute", "hinge", "squared-hinge", "logistic"]
    assert found[5:] == ["exponential", "huber", "epsilon-insensitive", "quantile", "poisson", "modified-huber"]


def test_unknown_lists_and_suggests():
    near = str(unknown("loss", "hing", ["squared", "hinge"]))
    assert near == "loss 'hing' is not known. Did you mean 'hinge'? Known: hinge, squared."
    assert str(unknown("loss", "zzzz", ["squared", "hinge"])) == "loss 'zzzz' is not known. Known: hinge, squared."


def test_number():
    assert number("role", "q", 0.5, 0, 1) == 0.5
    assert number("role", "q", 1, 0, 1) == 1.0
    for value in (-0.1, 1.1, inf, -inf, nan):
        with pytest.raises(ValueError, match=r"role: q must be in \[0, 1\], got"):
            number("role", "q", value, 0, 1)
    for value in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"role: q must be in \(0, 1\), got"):
            number("role", "q", value, 0, 1, open_low=True, open_high=True)
    for value in ("0.5", True, None, [1], 1j):
        with pytest.raises(TypeError, match=r"role: q must be a number in \[0, 1\], got"):
            number("role", "q", value, 0, 1)
