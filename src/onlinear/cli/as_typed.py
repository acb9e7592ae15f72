"""Errors of estimators in the words of ``onlinear train``: ``penalty='l2=1e-4'`` is ``--penalty 'l2=1e-4'`` there."""

from __future__ import annotations

import re

from onlinear.text.names import option_of

SWITCHES = {"clip": "clip", "fit_intercept": "intercept", "uncertainty": "uncertainty"}  # arguments that are True or False
WITH_VALUES = (
    *("loss", "penalty", "solver", "average", "scale", "forget"),
    *("passes", "tol", "max_passes", "rounds", "class_weight"),
)
# An argument that no setting, call or quoted text holds.
_ARGUMENT = re.compile(rf"(?<![\w,'\"=-])(?:({'|'.join(WITH_VALUES)})=(?=(\S)?)|({'|'.join(SWITCHES)})=(True|False))")
_WITHIN = re.compile(r"\w\([^()]*$|in Python $")  # what stands before an argument that is to stay


def as_typed(text: str) -> str:
    """An error whose arguments of estimators are options of the command, as they are typed."""
    return _ARGUMENT.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    if _WITHIN.search(found.string[: found.start()]):
        return found[0]
    name, value, switch, state = found.groups()
    if switch is not None:
        return f"--{'' if state == 'True' else 'no-'}{SWITCHES[switch]}"
    option = option_of(name)
    return f"{option} " if value is not None and re.match(r"[\w'\"{(+-]", value) else option
