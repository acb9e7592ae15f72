"""From a file to the report: runs kept and repeated, verdicts, pages; nothing depends on the number of processes."""

import csv
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from onlinear.cli import app
from onlinear.papers import experiments, reproduce
from onlinear.papers.claims import (
    DOES_NOT,
    EXACT_VALUE,
    MOSTLY,
    NOT_RUN,
    PARTLY,
    REPRODUCES,
    UNDECIDED,
    Bench,
    judge,
    number,
    standard_error,
    verdict,
)
from onlinear.papers.data import Where
from onlinear.papers.experiments import ExperimentError, parse
from onlinear.papers.expressions import Series
from onlinear.papers.expressions import parse as parse_formula
from onlinear.papers.maths import maths
from onlinear.papers.report import at_an_end, fold_numbers
from onlinear.papers.store import Store
from onlinear.papers.study import Names, value_of
from onlinear.papers.tables import difference, reasons, table

TEXT = """
paper = "P"
place = "Figure 0"
title = "tiny"
steps = "2 * n"
repetitions = 2
checkpoints = "log 8"
measures = ["gap", "test error"]
[constants]
top = "1 / R2"
[cases]
power = [1, 2]
[[data]]
name = "small"
generator = "classes"
settings = { n = 60, d = 5, nonzeros = 3 }
test = 20
substitute_for = "the large one"
reason = "It is not here."
[select]
measure = "gap"
[[method]]
name = "SGD"
solver = "sgd,eta={eta}"
loss = "hinge"
penalty = "l2,l2=0.1"
grid = { eta = { times = "top", of = "2^-1..2^2" } }
[[method]]
name = "COMID"
solver = "comid,eta={top / power}"
loss = "hinge"
penalty = "l2,l2=0.1"
average = "uniform"
[[method]]
name = "as SGD"
solver = "sgd,eta={eta}"
loss = "hinge"
penalty = "l2,l2=0.1"
settings_of = "SGD"
seconds = "1e3 * power"
[[method]]
name = "wild"
solver = "sgd,schedule=constant,eta=1e200"
loss = "squared"
[series]
bound = "F_zero / sqrt(t)"
[[figure]]
title = "Gaps"
[[figure.panel]]
y = "gap"
log = "xy"
bounds = ["bound"]
horizontal = { "level" = 0.1, "w = 0" = "F_zero" }
y_range = [1e-6, "2 * F_zero"]
[[figure.panel]]
y = "gap"
kind = "grid"
log = "xy"
methods = ["SGD"]
[[table]]
title = "Ends"
[[table.column]]
title = "gap"
value = "final(gap[method])"
spread = "sd(gap[method])"
paper = [["small", "SGD", 0.25]]
reason = [["small", "Other rows."]]
[[claim]]
text = "always"
where = "here"
check = ["final(gap['SGD']) < 10", "share(gap['COMID'] > -1e-9) == 1"]
show = { "the best step" = "setting(gap, 'SGD', 'eta')" }
[[claim]]
text = "sometimes"
where = "here"
check = ["final(gap['SGD']) < 10", "final(gap['SGD']) > 10"]
[[claim]]
text = "never"
where = "here"
kind = "ours"
note = "A note."
fails = "It fails at 10."
over = "once"
check = ["final(gap['SGD', 'small', 2]) > 10"]
[[claim]]
text = "nothing"
where = "here"
check = ["final(gap['RDA']) > 10"]
[[claim]]
text = "too early"
where = "here"
check = ["first_below(gap['SGD'], -1) > 1e6", "first_below(gap['SGD'], -1) < 1"]
[quick]
repetitions = 1
"""


VACUOUS = """
[[claim]]
text = "tight"
where = "here"
check = ["share(gap['COMID'] <= bound['COMID']) == 1"]
bound = { measured = "gap['COMID']", bound = "bound['COMID']", trivial = "F_zero" }
[[claim]]
text = "loose"
where = "here"
check = ["share(gap['COMID'] <= 1e6 * bound['COMID']) == 1"]
bound = { measured = "gap['COMID']", bound = "1e6 * bound['COMID']", trivial = "F_zero" }
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The tiny experiment, run once."""
    folder = tmp_path_factory.mktemp("report")
    return folder, run(folder, 1), folder


def run(folder, jobs, text=TEXT):
    store = Store(folder / "runs")
    counted = []
    with pytest.MonkeyPatch.context() as patch, reproduce.workers(jobs, Where(), store) as team:
        patch.setattr(experiments, "load", lambda name, quick: parse(text, name, quick))
        outcome = reproduce.one("p5/tiny", False, Where(), team, lambda done, of: counted.append((done, of)))
    return outcome, counted


@pytest.mark.parametrize(
    ("held", "of", "said"),
    [
        (4, 4, REPRODUCES),
        (35, 36, MOSTLY),
        (24, 36, MOSTLY),
        (23, 36, PARTLY),
        (12, 36, PARTLY),
        (11, 36, DOES_NOT),
        (0, 4, DOES_NOT),
    ],
)
def test_shares_of_checks(held, of, said):
    assert verdict([True] * held + [False] * (of - held)) == said
    undecided = [None] * of
    assert verdict([True] * held + [False] * (of - held) + undecided) == said
    assert verdict([True] * held + [False] * (of - held) + undecided + [None]) == UNDECIDED


def test_nothing_to_count():
    assert verdict([]) == NOT_RUN
    assert verdict([None]) == UNDECIDED


def bench(done, **series):
    """The tiny experiment's first problem, whose method SGD has series of two checkpoints; the last values are given."""
    study = done[1][0].study
    found = Bench(study, study.problems[0])
    found.repetitions = len(next(iter(series.values())))
    curve = study.problems[0].curves["SGD"]
    for name, last in series.items():
        curve.derived[name] = Series(np.array([1.0, 2.0]), np.array([[1.0, value] for value in last]))
    found.names = Names(study, study.problems[0])
    found.less = [Names(study, study.problems[0], left_out=k) for k in range(found.repetitions)]
    return found


def test_a_difference_of_means_has_the_paired_standard_error(done):
    rng = np.random.default_rng(0)
    a = rng.normal(size=10)
    b = a + 0.1 * rng.normal(size=10)
    found = bench(done, one=a, two=b)
    left = parse_formula("final(one['SGD'])")
    for right, expected in (("final(two['SGD'])", a - b), ("2 * final(two['SGD'])", a - 2 * b)):
        each = found.each(expected.mean(), left, parse_formula(right), "")
        np.testing.assert_allclose(each, expected)
        assert standard_error(each) == pytest.approx(expected.std(ddof=1) / np.sqrt(10))


@pytest.mark.parametrize(
    ("left", "sign", "right", "holds", "why"),
    [
        ([1, 1, 1], "<", [2, 2, 2], True, ""),
        ([1, 2, 3], "<", [2, 2, 2.5], None, "within two standard errors"),
        ([1, 2, 3], "<", [1.1, 2.1, 3.1], True, ""),  # paired: the difference is the same in every repetition
        ([1, 2, 3], "<=", [1, 2, 3], True, ""),
        ([1, 1, 1, 1], "<", [2, 2, 2, 1e9], None, "within two standard errors"),
        ([1, 1, 1, 1, 1], "<", [2, 2, 2, 2, 1e9], True, ""),  # five agree
        ([1, 1, 1, 1, 3], "<", [2, 2, 2, 2, 2], None, "within two standard errors"),
        ([1, 2, 3], "<", [1, 2, 3], None, "a tie"),
        ([2, 2, 2], ">", [2, 2, 2], None, "a tie"),
        ([np.nan] * 3, "<", [np.nan] * 3, None, "neither side"),
        ([np.nan] * 3, "<", [1, 2, 3], False, ""),
        ([1, 2, 3], "<", [np.nan] * 3, True, ""),
        ([np.inf] * 3, "<=", [np.inf] * 3, None, "neither side"),
        ([1, 2, 3], "<", [np.inf] * 3, True, ""),
        ([np.inf] * 3, "<", [1, 2, 3], False, ""),
        ([1, 1, 2], "==", [1, 2, 1], True, ""),
    ],
)
def test_a_comparison_is_decided_by_rule(done, left, sign, right, holds, why):
    with np.errstate(invalid="ignore"):
        found = bench(done, one=left, two=right).decide("", f"final(one['SGD']) {sign} final(two['SGD'])")
    assert found.holds is holds
    assert found.why.startswith(why)
    assert bool(found.why) == (holds is None)


def test_a_level_that_only_one_repetition_reaches_decides_nothing(done):
    found = bench(done, one=[-2.0, 2.0]).decide("", "first_below(one['SGD'], 0.5) < 3")
    assert found.holds is None
    assert found.why.startswith("within two standard errors of ∞")


def test_and_or_of_undecided_parts(done):
    found = bench(done, one=[1, 2, 3], two=[2, 2, 2.5])
    tie = "final(one['SGD']) < final(two['SGD'])"
    for check, holds in (
        (f"{tie} and 1 < 2", None),
        (f"{tie} and 2 < 1", False),
        (f"{tie} or 1 < 2", True),
        (f"{tie} or 2 < 1", None),
    ):
        assert found.decide("", check).holds is holds
    assert found.decide("", "1 < final(two['SGD']) < 3").numbers == "1 < 2.167 < 3"


def test_a_bound_shows_how_tight_it_is(done):
    found = bench(done, one=[1, 1], two=[4, 4])
    names = {"measured": "one['SGD']", "bound": "two['SGD']"}
    assert found.tightness(names) == [("bound / measured", 4.0)]
    assert found.informs(names)
    assert found.informs({**names, "trivial": "2"})  # the bound is 1 at the first checkpoint
    assert not found.informs({**names, "trivial": "0.5"})
    left = bench(done, one=[1e-12, 1e-12], two=[4, 4])
    assert left.tightness({**names, "trivial": "0.5"})[0] == ("bound / measured", EXACT_VALUE)
    assert left.tightness({**names, "trivial": "1e-6"})[0] == ("bound / measured", pytest.approx(4e12))
    text = TEXT.replace("[quick]", VACUOUS + "[quick]")
    judged = [judge(done[1][0].study, claim) for claim in parse(text, "p5/tiny").claim[-2:]]
    assert [one.kind for one in judged] == ["paper", "identity"]
    assert judged[0].shown[0][1] == "bound / measured"


def test_verdicts(done):
    outcome = done[1][0]
    assert [judged.verdict for judged in outcome.claims] == [REPRODUCES, PARTLY, DOES_NOT, NOT_RUN, DOES_NOT]
    assert [judged.kind for judged in outcome.claims] == ["paper", "paper", "ours", "paper", "paper"]
    first = outcome.claims[0]
    assert first.rule == "4 of 4 checks hold"
    assert [one.problem for one in first.decisions] == ["small, power = 1"] * 2 + ["small, power = 2"] * 2
    assert first.decisions[0].numbers.endswith("< 10")
    assert len(first.shown) == 2
    early = outcome.claims[-1]
    assert [one.holds for one in early.decisions] == [None, False] * 2
    assert early.rule == "0 of 2 checks hold, 2 undecided"


def test_a_deviation_of_one_repetition_decides_nothing(tmp_path):
    claim = "[[claim]]\ntext = 'steady'\nwhere = 'here'\ncheck = [\"sd(gap['SGD']) < 1\"]\n"
    text = TEXT[: TEXT.index('[[claim]]\ntext = "always"')].replace("repetitions = 2", "repetitions = 1") + claim
    outcome, _ = run(tmp_path, 1, text)
    assert outcome.claims[0].verdict == UNDECIDED
    header, rows = table(outcome.study, outcome.experiment.table[0])
    assert {row[header.index("±")] for row in rows} == {"–"}


def test_series_and_grids(done):
    study = done[1][0].study
    names = Names(study, study.problems[0])
    gap = value_of("gap['SGD']", names)
    assert gap.values.shape == (2, len(gap.t))
    assert gap.t[-1] == 2 * names["n"]
    points = value_of("points(gap, 'SGD')", names)
    assert len(points) == 4
    eta = value_of("setting(gap, 'SGD', 'eta')", names)
    assert eta == pytest.approx(names["top"] * 2.0 ** (np.argmin(points) - 1))
    assert value_of("gap['COMID', 2]", names).t is not None
    bound = value_of("bound['SGD']", names)
    np.testing.assert_allclose(bound.values[0], names["F_zero"] / np.sqrt(bound.t))
    wild = value_of("gap['wild']", names)
    assert np.isinf(wild.values[:, -1]).all()


def test_a_grid_whose_end_is_best(done):
    curve = done[1][0].study.problems[0].curves["SGD"]
    points = [point for point, _ in curve.grid]
    whole, best = curve.grid, points.index(curve.point)
    assert at_an_end(curve) == (best in (0, 3))
    try:
        curve.grid = whole[: best + 1] * 3
        assert at_an_end(curve)
        curve.grid = [whole[best - 1], *whole[best : best + 1] * 2, whole[best - 1]]
        assert not at_an_end(curve)
        curve.grid = []
        assert not at_an_end(curve)
    finally:
        curve.grid = whole


def test_settings_of_another_method(done):
    problem = done[1][0].study.problems[1]
    one, other = problem.curves["SGD"], problem.curves["as SGD"]
    assert (other.point, other.grid) == (one.point, [])
    assert (one.spec.seconds, other.spec.seconds) == (None, 2e3)
    np.testing.assert_array_equal(one.series("gap").values, other.series("gap").values)


def test_a_selection_that_measures_nothing_else(done, tmp_path):
    text = TEXT[: TEXT.index('[[claim]]\ntext = "always"')].replace("[select]\n", "[select]\nalone = true\n")
    outcome, _ = run(tmp_path, 1, text)
    both = [study.problems[0].curves["SGD"].grid[0][1][0]["series"] for study in (done[1][0].study, outcome.study)]
    assert "test error" in both[0]
    assert "test error" not in both[1]
    assert both[0]["gap"] == both[1]["gap"]


def test_finished_work_is_not_done_again(done):
    folder, (outcome, _), _ = done
    again, counted = run(folder, 1)
    assert all(done == of for done, of in counted)
    assert [one.numbers for one in again.claims[0].decisions] == [one.numbers for one in outcome.claims[0].decisions]


def test_the_number_of_processes_changes_nothing(done, tmp_path):
    outcome = done[1][0]
    few = TEXT.replace("power = [1, 2]", "power = [1]").replace("2^-1..2^2", "2^0..2^1")
    few = few[: few.index('[[claim]]\ntext = "never"')]
    other, _ = run(tmp_path, 2, few)
    for name in ("COMID", "wild"):
        ours, theirs = (study.problems[0].curves[name].series("gap") for study in (outcome.study, other.study))
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_the_report(done, monkeypatch):
    folder = done[0]
    monkeypatch.setattr(experiments, "load", lambda name, quick=False: parse(TEXT, name, quick))
    outcomes = reproduce.reproduce(["p5/tiny"], folder, Where())
    assert not outcomes[0].failed
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 1
    assert "&lt;details" not in page
    assert all(page.count(judged.rule) >= 2 for judged in outcomes[0].claims)
    assert "✗ does not hold" in page
    assert "https://" not in page
    assert "src=" not in page
    assert "small for the large one" in page
    assert "It fails at 10." in page
    assert "<b>statements of our own</b>: 1 not reproduced" in page
    assert 'class="verdict v-not-reproduced"' in page
    assert "the state stopped being finite" in page
    svg = (folder / "figures" / "p5-tiny-1.svg").read_text()
    assert svg.startswith("<svg")
    with (folder / "data" / "p5-tiny-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"SGD", "COMID", "as SGD"}
    with (folder / "data" / "p5-tiny-table-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["paper"] for row in rows if row["method"] == "SGD"] == ["0.25", "0.25"]
    table = (folder / "claims.md").read_text()
    assert "Statements of the papers: 1 reproduced, 1 partly, 1 not reproduced, 1 not run." in table
    assert "**not reproduced** (ours)" in table
    assert "A note. It fails at 10." in table
    assert all(one.numbers in table for judged in outcomes[0].claims for one in judged.decisions if one.holds is not None)
    with (folder / "claims.csv").open() as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == [REPRODUCES, PARTLY, DOES_NOT, NOT_RUN, DOES_NOT]


def test_far_from_the_paper_and_why(done):
    study = done[1][0].study
    spec = study.experiment.table[0]
    with np.errstate(invalid="ignore"):  # the method that diverges
        header, rows = table(study, spec)
    names = Names(study, study.problems[0], {"method": "SGD"})
    away = (value_of("final(gap['SGD'])", names) - 0.25) / value_of("sd(gap['SGD'])", names)
    assert difference(study, spec.column[0], study.problems[0], "SGD") == pytest.approx(away)
    assert rows[0][header.index("difference in sd")] == f"{away:+.1f}"
    assert abs(away) > 2
    (line,) = reasons(study, spec)
    assert line.endswith(": Other rows.")
    assert f"gap, small, power = 1, SGD ({away:+.1f})" in line
    assert "COMID" not in line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5786.75, "5,787"),
        (20921.7, "20,922"),
        (5000, "5,000"),
        (0.0123456, "0.01235"),
        (-0.0, "0"),
        (np.nan, "–"),
        (np.inf, "∞"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_formulas_are_set():
    assert maths("x_(T+1) and w_(t+1)") == "x<sub>T+1</sub> and w<sub>t+1</sub>"
    assert maths("lam_t <= 1 / mu^2, gamma, eps_g") == "λ<sub>t</sub> ≤ 1 / μ<sup>2</sup>, γ, ε<sub>g</sub>"
    assert maths("T^-0.4, 2^14. x^n") == "T<sup>-0.4</sup>, 2<sup>14</sup>. x<sup>n</sup>"
    assert maths("lambda, lamb, mushrooms") == "λ, lamb, mushrooms"


def test_few_numbers_stand_in_the_cell_and_many_fold():
    assert fold_numbers(["1 < 2", "3 < 2"]) == "1 < 2; 3 < 2"
    assert fold_numbers(["1 < 2"] * 4) == "<details><summary>4 checks</summary>1 < 2<br>1 < 2<br>1 < 2<br>1 < 2</details>"


def test_one_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    texts = {"p5/bad": TEXT.replace("final(gap['SGD']) < 10", "final(gpa['SGD']) < 10"), "p5/tiny": TEXT}
    monkeypatch.setattr(experiments, "load", lambda name, quick=False: parse(texts[name], name, True))
    outcomes = reproduce.reproduce(["p5/bad", "p5/tiny"], tmp_path, Where())
    assert "name 'gpa' is not known. Did you mean 'gap'" in outcomes[0].failed
    assert not outcomes[1].failed


def test_data_that_is_not_here(tmp_path, monkeypatch):
    text = TEXT.replace('generator = "classes"\nsettings = { n = 60, d = 5, nonzeros = 3 }', 'set = "gisette"')
    monkeypatch.setattr(experiments, "load", lambda name, quick=False: parse(text, name, quick))
    outcomes = reproduce.reproduce(["p5/tiny"], tmp_path, Where())
    assert "--data-dir" in outcomes[0].needs[0]
    assert "--download" in outcomes[0].needs[0]
    assert {judged.verdict for judged in outcomes[0].claims} == {NOT_RUN}
    assert "Not run" in (tmp_path / "index.html").read_text()


def test_a_grid_that_diverges_everywhere(tmp_path):
    text = TEXT.replace('"sgd,eta={eta}"\nloss = "hinge"\npenalty = "l2,l2=0.1"', '"sgd,eta={eta*1e250}"\nloss = "squared"')
    with pytest.raises(ExperimentError, match="every grid point of 'SGD' diverged"):
        run(tmp_path, 1, text)


def test_the_command(tmp_path):
    command = CliRunner()
    listed = command.invoke(app, ["reproduce", "--list"])
    assert listed.exit_code == 0
    assert "p5/fig2a-low" in listed.output
    assert max(map(len, listed.output.splitlines())) <= 80
    assert command.invoke(app, ["reproduce", "p5", "--list"], env={"ONLINEAR_DATA": str(tmp_path)}).exit_code == 0
    for option in (["--quick"], ["--out", "report"], ["--data-dir", str(tmp_path)], ["--download"], ["-j", "2"]):
        unused = command.invoke(app, ["reproduce", "--list", *option])
        assert unused.exit_code == 2
        assert "is for runs, and --list runs nothing." in unused.output
    wrong = command.invoke(app, ["reproduce", "p5/fig9", "--out", str(tmp_path)])
    assert wrong.exit_code == 2
    assert "experiment 'p5/fig9' is not known" in wrong.output
    assert command.invoke(app, ["reproduce", "--data-dir", str(Path(tmp_path, "no"))]).exit_code == 2
    for option in ("--out", "--data-dir"):
        assert f"{option} must be a folder, got ''." in command.invoke(app, ["reproduce", "p5", option, ""]).output
    (tmp_path / "file").touch()
    taken = command.invoke(app, ["reproduce", "p5/fig2a-low", "--out", str(tmp_path / "file")])
    assert taken.exit_code == 2
    assert "--out must be a folder, got" in taken.output


def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "reproduce", stopped)
    result = CliRunner().invoke(app, ["reproduce", "p5/fig2a-low", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert f"finished runs are kept in {tmp_path}" in result.output


class Slowly(ThreadPoolExecutor):
    """A pool whose tasks note when they begin and end."""

    def __init__(self, log):
        super().__init__(2)
        self.log = log

    def submit(self, perform, task, *rest):
        return super().submit(self.noted, task)

    def noted(self, task):
        self.log.append(("begins", task))
        time.sleep(0.02)
        self.log.append(("ends", task))
        return {"task": task.name}


@dataclass(frozen=True)
class Named:
    name: str
    kind: str | None

    @property
    def shares(self):
        return frozenset({self.kind} - {None})


def test_of_tasks_that_share_something_the_first_runs_alone(tmp_path):
    team, log = reproduce.Workers(1, Where(), Store(tmp_path)), []
    tasks = {f"{kind}{k}": Named(f"{kind}{k}", kind) for kind in (None, "a", "b") for k in range(3)}
    with Slowly(log) as team.pool:
        assert {key: result["task"] for key, result in team._perform(tasks)} == {key: key for key in tasks}
        again = {"a9": Named("a9", "a"), "a10": Named("a10", "a")}
        assert len(list(team._perform(again))) == 2
    for kind in ("a", "b"):
        mine = [what for what, task in log if task.kind == kind and task.name not in again]
        assert mine[:2] == ["begins", "ends"]
    assert [what for what, task in log if task.name in again][:2] == ["begins", "begins"]


def test_kept_arrays_that_are_damaged_count_as_not_there(tmp_path):
    store = Store(tmp_path)
    assert store.arrays("w") is None
    store.put_arrays("w", {"w": np.arange(100.0)})
    whole = (tmp_path / "w.npz").read_bytes()
    np.testing.assert_array_equal(store.arrays("w")["w"], np.arange(100.0))
    for damaged in (b"", whole[:-5], whole[:300] + b"x" * 200 + whole[500:], b"{}"):
        (tmp_path / "w.npz").write_bytes(damaged)
        assert store.arrays("w") is None
