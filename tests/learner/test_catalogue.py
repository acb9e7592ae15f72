"""The catalogue has every part, and its settings and defaults are those that texts take."""

from __future__ import annotations

import json

import pytest
from command import run

from onlinear.learner import catalogue, parts
from onlinear.schedules import NAMED
from onlinear.solvers import SOLVERS

ENTRIES = catalogue.entries()


def test_every_part_is_in_it_once():
    names = {role: [entry.name for entry in ENTRIES if entry.role == role] for role in catalogue.ROLES}
    assert names["loss"] == list(parts.LOSSES)
    assert names["penalty"] == list(parts.PENALTIES)
    assert names["solver"] == list(SOLVERS)
    assert names["schedule"] == list(NAMED)
    assert sorted(names["average"]) == sorted(parts.AVERAGES)
    assert all(entry.words.strip() and entry.text.strip() for entry in ENTRIES)


def written(entry):
    given = {key: value for key, value in entry.settings.items() if value is not None}
    if entry.role == "solver" and hasattr(SOLVERS[entry.name].solver._field_defaults.get("schedule"), "at"):
        _, fixed = NAMED.get(given.get("schedule", "power"))
        given = {key: value for key, value in given.items() if key not in fixed and not (key == "m" and value == 0.0)}
    return ",".join([entry.name, *(f"{key}={str(value).lower()}" for key, value in given.items())])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.role}-{entry.name}")
def test_the_settings_and_defaults_are_those_of_the_text(entry):
    text = written(entry)
    if entry.role == "loss":
        assert parts.build_loss(text) == parts.build_loss(entry.name)
    elif entry.role == "penalty" and "tv" not in entry.settings:
        assert parts.build_penalty(text) == parts.build_penalty(entry.name)
    elif entry.role == "solver":
        penalty = parts.build_penalty("l2=0.1")
        assert parts.build_solver(text, penalty, total=10) == parts.build_solver(entry.name, penalty, total=10)
    elif entry.role == "average":
        assert parts.build_average(text, total=10) == parts.build_average(entry.name, total=10)


@pytest.mark.parametrize("which", [None, *catalogue.ROLES, "pegasos", "huber", "none"])
def test_the_command_shows_them(which):
    arguments = [] if which is None else [which]
    wanted = [entry for entry in ENTRIES if which in (None, entry.role, entry.name)]
    shown = run("parts", *arguments)
    assert all(entry.name in shown for entry in wanted)
    found = json.loads(run("parts", *arguments, "--json"))
    assert [(entry["role"], entry["name"]) for entry in found] == [(entry.role, entry.name) for entry in wanted]


def test_a_part_by_its_name_and_a_name_that_is_none():
    text = run("parts", "Huber")
    assert "delta^2/2" in text
    assert "Annals of Mathematical Statistics" in text
    assert "elsewhere: " in run("parts", "loss")
    assert max(map(len, run("parts").splitlines())) <= 80
    assert "Did you mean 'logistic'" in run("parts", "logistc", code=2)
