"""The numeric parameters ``l1=``, ``l2=`` and ``eta=`` as texts of parts: a search over them needs no texts."""

from __future__ import annotations

from typing import Any

from onlinear.learner.parts import PENALTIES, STRENGTH, named_settings, split
from onlinear.solvers import SOLVERS
from onlinear.text.form import check_number, parse, unparse

LARGEST = 1e300


def with_strengths(penalty: Any, l1: Any, l2: Any) -> Any:
    """The penalty with these strengths, which take the place of those that a bare name such as ``"l1"`` has; ``penalty`` itself
    where both are None.

    Raises ValueError where the penalty says a strength of that name itself, and for a penalty object.
    """
    given = {name: check_number("", name, value, 0.0, LARGEST) for name, value in (("l1", l1), ("l2", l2)) if value is not None}
    if not given:
        return penalty
    if penalty is not None and not isinstance(penalty, str):
        raise ValueError(f"{_listed(given)} and a penalty object exclude each other: give the object its own strengths.")
    name, settings = named_settings(penalty or "none")
    twice = [key for key in given if key in settings]
    if twice:
        raise ValueError(f"{twice[0]}={given[twice[0]]:g} and penalty={penalty!r} both name {twice[0]}: leave one out.")
    own = PENALTIES[name]
    if not any(key in settings or key in given for key in own) and "tv" not in own:
        settings |= dict.fromkeys(own, STRENGTH)
    return ",".join(f"{key}={value!r}" for key, value in {**given, **settings}.items())


def with_step(solver: Any, eta: Any) -> Any:
    """The solver, named as text, with this step size; ``solver`` itself where it is None.

    Raises ValueError where the solver has a step size already, and for a solver object.
    """
    if eta is None:
        return solver
    step = check_number("", "eta", eta, 0.0, LARGEST, open_low=True)
    if not isinstance(solver, str):
        raise ValueError(f"eta={step:g} and a solver object exclude each other: give the object its own step size.")
    _, settings = split(solver, "solver", SOLVERS)
    if "eta" in settings:
        raise ValueError(f"eta={step:g} and solver={solver!r} both name eta: leave one out.")
    return unparse(parse(solver, "solver")[0], {**settings, "eta": step})


def with_intercept(solver: Any, share: float) -> Any:
    """The solver, with this share for the steps of the intercept where it is the text of ``implicit-ftrl`` and names none."""
    if share == 0.0 or not isinstance(solver, str):
        return solver
    name, settings = split(solver, "solver", SOLVERS)
    return f"{solver},intercept={share:g}" if name == "implicit-ftrl" and "intercept" not in settings else solver


def _listed(given: dict[str, float]) -> str:
    return " and ".join(f"{key}={value:g}" for key, value in given.items())
