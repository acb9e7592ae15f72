"""The public names of ``onlinear.streams`` have docstrings whose examples run."""

import doctest
import inspect

import pytest

from onlinear import streams

CALLABLE = [name for name in streams.__all__ if callable(getattr(streams, name))]


def test_the_public_names():
    assert CALLABLE == ["Block", "Shuffled", "Stream", "StreamError", "open"]


@pytest.mark.parametrize("name", CALLABLE)
def test_the_examples_of_a_docstring_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = getattr(streams, name)
    (test,) = [test for test in doctest.DocTestFinder(recurse=False).find(found, name, globs={}) if test.examples]
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("name", CALLABLE)
def test_every_public_member_has_a_docstring(name):
    found = getattr(streams, name)
    members = vars(found).items() if inspect.isclass(found) else ()
    public = {member: value for member, value in members if not member.startswith("_")}
    lacking = [
        member
        for member, value in public.items()
        if (inspect.isfunction(value) or isinstance(value, property)) and not inspect.getdoc(value)
    ]
    assert not lacking


def test_the_docstring_of_open_has_every_parameter():
    text = inspect.getdoc(streams.open)
    section = text[text.index("Parameters\n") : text.index("Returns\n")]
    heads = " ".join(line.partition(" : ")[0] + "," for line in section.splitlines() if " : " in line and line[0] != " ")
    assert set(heads.replace(",", " ").split()) == set(inspect.signature(streams.open).parameters)
