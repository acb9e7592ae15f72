"""Experiment files: what is read, and what is refused with which words."""

import pytest

from onlinear.papers import experiments
from onlinear.papers.experiments import ExperimentError, as_list, choose, load, names, parse
from onlinear.papers.figures import COLOURS, family, styles

TINY = """
paper = "P"
place = "Figure 0"
title = "tiny"
steps = 20
[[data]]
name = "small"
generator = "uniform"
settings = { n = 30, d = 3 }
[[method]]
name = "SGD"
solver = "sgd,eta=0.1"
loss = "squared"
"""


def test_a_file_becomes_dataclasses():
    found = parse(TINY, "p/tiny")
    assert (found.name, found.method[0].solver, found.data[0].settings["n"]) == ("p/tiny", "sgd,eta=0.1", 30)
    assert found.case_values() == [{}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("steps = 20", "step = 20"), r"p/tiny.toml: key 'step' is not known.* Did you mean 'steps'"),
        (('loss = "squared"', 'los = "squared"'), "p/tiny.toml: method 'SGD': key 'los' is not known"),
        (('loss = "squared"', ""), "method 'SGD': the key 'loss' is missing"),
        (('title = "tiny"', "title = 3"), "title must be a str, got 3"),
        (('generator = "uniform"', ""), "data 'small' needs either set or generator"),
        (("steps = 20", 'steps = 20\nmeasures = ["gpa"]'), "measure 'gpa' is not known.* Did you mean 'gap'"),
        (("steps = 20", 'steps = 20\norder = "any"'), "order 'any' is not known"),
        (("steps = 20", "steps = = 20"), r"p/tiny.toml: Invalid value"),
        (("steps = 20", "steps = 20\n[select]\nmeasure = 'gpa'"), "select: measure 'gpa' is not known"),
        (
            ("steps = 20", "steps = 20\n[[figure]]\ntitle = 'f'\n[[figure.panel]]\ny = 'gap'"),
            "a panel's measure 'gap' is not known",
        ),
        (('loss = "squared"', 'loss = "squared"\nsettings_of = "SGD"'), "settings_of 'SGD' is not known"),
        (('generator = "uniform"', 'set = "a9a"\npart = "test"'), "data 'small': part 'test' is not known"),
        (("steps = 20", "steps = 20\n[[claim]]\ntext = 'x'\nwhere = 'y'\ncheck = []\nkind = 'his'"), "a claim's kind 'his'"),
        (
            ("steps = 20", "steps = 20\n[[claim]]\ntext = 'x'\nwhere = 'y'\ncheck = []\nbound = { of = '1' }"),
            "a key of a claim's bound 'of'",
        ),
        (("steps = 20", "steps = 20\n[quick.method.ASGD]\nsteps = 2"), None),
    ],
)
def test_what_a_file_cannot_say(change, words):
    text = TINY.replace(*change)
    assert text != TINY
    if words is None:  # seen only where quick is asked for
        parse(text, "p/tiny")
        words = "quick: method has no 'ASGD'; it has SGD"
        with pytest.raises(ExperimentError, match=words):
            parse(text, "p/tiny", quick=True)
        return
    with pytest.raises(ExperimentError, match=words):
        parse(text, "p/tiny")


def test_claims_name_what_there_is():
    claim = '\n[[claim]]\ntext = "x"\nwhere = "y"\ncheck = ["1 < 2"]\n'
    with pytest.raises(ExperimentError, match=r"data 'smal' is not known.* Did you mean 'small'"):
        parse(TINY + claim + 'data = ["smal"]', "p/tiny")
    with pytest.raises(ExperimentError, match="case 'lam' is not known"):
        parse(TINY + claim + "only = { lam = [1] }", "p/tiny")


def test_quick_merges():
    quick = """
[quick]
repetitions = 3
data.small.settings = { n = 10 }
method.SGD.average = "uniform"
"""
    found = parse(TINY + quick, "p/tiny", quick=True)
    assert found.repetitions == 3
    assert found.data[0].settings == {"n": 10, "d": 3}
    assert found.method[0].average == "uniform"
    assert parse(TINY + quick, "p/tiny").repetitions == 1
    assert parse(TINY + "\n[quick.without]\nmethod = ['SGD']", "p/tiny", quick=True).method == ()


def test_grids():
    assert as_list("2^-1..2^1") == [0.5, 1.0, 2.0]
    assert as_list("10^0..10^1 by 2") == pytest.approx([1.0, 10**0.5, 10.0])
    assert as_list([1, 2]) == [1, 2]
    with pytest.raises(ExperimentError, match="a grid of powers"):
        as_list("2^3..3^4")


def test_cases_multiply():
    found = parse(TINY + "\n[cases]\na = [1, 2]\nb = [3, 4]", "p/tiny")
    assert found.case_values() == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]


@pytest.mark.parametrize("name", names())
def test_every_experiment_reads(name):
    for quick in (False, True):
        found = load(name, quick)
        assert found.claim or found.table or found.figure


@pytest.mark.parametrize("name", names())
def test_every_claim_says_why_and_what_would_make_it_fail(name):
    for claim in load(name).claim:
        assert claim.note, claim.text
        assert claim.fails, claim.text
        assert (claim.kind == "ours") == claim.text.startswith("Ours: "), claim.text


@pytest.mark.parametrize("name", names())
def test_no_two_methods_look_alike(name):
    found = load(name)
    looks = styles(found)
    assert len(set(looks.values())) == len(found.method)
    first = {family(method): method for method in reversed(found.method)}
    for key in first.keys() & COLOURS.keys():
        assert looks[first[key].name][0] == (first[key].colour or COLOURS[key])


def test_names_are_chosen():
    assert choose([]) == list(names())
    assert choose(["p5/fig2a-low"]) == ["p5/fig2a-low"]
    assert "p5/fig2a-low" in choose(["p5"])
    with pytest.raises(ValueError, match="experiment 'p6' is not known"):
        choose(["p6"])
    assert all(name.split("/")[0] in experiments.PAPERS for name in names())
