"""P1's inequality and VI gap against their definitions; runs that end by the clock; a panel over all problems."""

import itertools

import numpy as np
import pytest

from onlinear import Learner
from onlinear.errors import DivergenceError
from onlinear.losses import Hinge
from onlinear.papers import experiments, reproduce, runs
from onlinear.papers.data import Split, Where
from onlinear.papers.experiments import parse
from onlinear.papers.figures import draw
from onlinear.papers.generators import classes
from onlinear.papers.measures import MEASURES, Moment
from onlinear.papers.problems import LearningProblem
from onlinear.papers.store import Store
from onlinear.papers.theorems import Inequality

RHO, LAM, ROWS = 3.0, 0.05, 40

TEXT = """
paper = "P"
place = "Figure 0"
title = "tiny"
steps = 1000000000
repetitions = 2
checkpoints = [100]
[cases]
power = [1, 2]
[[data]]
name = "small"
generator = "classes"
settings = { n = 60, d = 5, nonzeros = 3 }
[[method]]
name = "COMID"
solver = "comid,eta={1 / power}"
loss = "hinge"
penalty = "l2,l2=0.1"
seconds = 0.02
[[figure]]
title = "all"
[[figure.panel]]
kind = "problems"
x = "power"
y = "objective"
"""


@pytest.fixture(scope="module")
def problem():
    X, y = classes(np.random.default_rng(0), n=ROWS, d=6, nonzeros=4, unit=False)
    return LearningProblem(Split(X, y, X[:0], y[:0]), "hinge", f"l1,l1={LAM}")


def path(problem):
    """SADMM row by row in dense NumPy: (w, z after the row, mu before it, z before it)."""
    z = mu = np.zeros(problem.split.X.shape[1])
    for x, y in zip(problem.split.X, problem.y, strict=True):
        v = z - mu / RHO
        beta = np.clip((1.0 - y * (v @ x)) * RHO / (x @ x), 0.0, 1.0)
        w = v + beta * y * x / RHO
        u = w + mu / RHO
        new = np.sign(u) * np.maximum(np.abs(u) - LAM / RHO, 0.0)
        yield w, new, mu, z
        z, mu = new, mu + RHO * (w - new)


def test_theorem_4_1(problem):
    learner = Learner(
        f"sadmm,rho={RHO}", "hinge", f"l1,l1={LAM}", "uniform-post", scale="none", fit_intercept=False, n_features=6
    )
    tracker = Inequality(learner, problem)
    best, hinge = problem.optimum, Hinge()
    left, ws, zs = 0.0, [], []
    for (w, z, mu, before), x, y in zip(path(problem), problem.split.X, problem.y, strict=True):
        tracker.before(x, float(y))
        learner.learn(x[None, :], np.array([y]))
        tracker.after(x, float(y))
        left += hinge.value(w @ x, y) - hinge.value(best.w @ x, y) + LAM * (np.abs(z).sum() - np.abs(best.w).sum())
        mutil = mu + RHO * (w - before)
        left += (w - best.w) @ best.mu - (z - best.w) @ best.mu + (mutil - best.mu) @ (best.w - best.w)
        ws.append(w)
        zs.append(z)
        assert tracker.largest <= 1.0
        after = mu + RHO * (w - z)
        right = -RHO * (best.w - z) @ (before - z) - (best.mu - mutil) @ (mu - after) / RHO
        far = RHO * (np.sum((best.w - before) ** 2) - np.sum((best.w - z) ** 2))
        far += (np.sum((best.mu - mu) ** 2) - np.sum((best.mu - after) ** 2)) / RHO
        first, second = tracker.lemmas(z, after, mutil)
        assert (first[0], second[0]) == (pytest.approx(right, rel=1e-6, abs=1e-9), pytest.approx(far / 2.0, rel=1e-6, abs=1e-9))
    assert tracker.saddle == pytest.approx(left, rel=1e-9)
    assert tracker.slack_1 >= -1e-9
    assert tracker.slack_2 >= -1e-9
    tracker.lemmas = lambda z, mu, tilde: (np.full(21, -1.0), np.full(21, -3.0))
    tracker.term = lambda *args: np.zeros(21)
    tracker.after(x, float(y))
    assert (tracker.slack_1, tracker.slack_2) == (-1.0, -2.0)
    moment = Moment(learner, problem, {})
    wbar, zbar = np.mean(ws, axis=0), np.mean(zs, axis=0)
    mean = np.mean([hinge.value(wbar @ x, y) for x, y in zip(problem.split.X, problem.y, strict=True)])
    gap = mean + LAM * np.abs(zbar).sum() - best.value + best.mu @ (wbar - zbar)
    assert MEASURES["vi gap"].take(moment) == pytest.approx(gap, rel=1e-9)
    assert MEASURES["norm"].take(moment) == pytest.approx(np.linalg.norm(zbar))
    assert 0.0 < MEASURES["dual norm"].take(moment) <= LAM * np.sqrt(6) + 1e-12


def test_measures_that_a_method_does_not_have(problem):
    learner = Learner("rda", "hinge", f"l1,l1={LAM}", scale="none", fit_intercept=False, n_features=6)
    learner.learn(problem.split.X, problem.y)
    moment = Moment(learner, problem, {})
    assert np.isnan(MEASURES["vi gap"].take(moment))
    assert np.isnan(MEASURES["dual norm"].take(moment))


def ticking(count, seconds):
    """A clock that goes on by ``seconds`` whenever it is read."""
    return lambda: next(count) * seconds


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, reproduce.workers(1, Where(), Store(tmp_path_factory.mktemp("runs"))) as team:
        patch.setattr(runs.time, "process_time", ticking(itertools.count(), 1e-4))
        patch.setattr(experiments, "load", lambda name, quick: parse(TEXT, name, quick))
        return reproduce.one("p/tiny", False, Where(), team, lambda done, of: None).study


def test_what_ends_by_the_clock_is_measured_there(study):
    curve = study.problems[0].curves["COMID"]
    series = curve.series("objective")
    last = [result["t"][-1] for result in curve.results]
    assert all(result["out_of_time"] for result in curve.results)
    assert series.t.tolist() == [100.0, np.mean(last)]
    assert series.values[:, -1].tolist() == [result["series"]["objective"][-1] for result in curve.results]
    assert (curve.series("time").values[:, -1] >= 0.02).all()


def test_a_panel_over_all_problems(study):
    svg, rows = draw(study, study.experiment.figure[0])
    assert svg.count('id="axes_') == 1
    finals = [problem.curves["COMID"].series("objective").values[:, -1].mean() for problem in study.problems]
    assert [(row[4], row[6]) for row in rows] == list(zip([1.0, 2.0], finals, strict=True))


def test_a_state_found_infinite_as_it_is_measured(study, monkeypatch, tmp_path):
    def broken(moment):
        raise DivergenceError("the state stopped being finite")

    monkeypatch.setitem(MEASURES, "objective", MEASURES["objective"]._replace(take=broken))
    found = runs.run(study.problems[0].curves["COMID"].spec, Where(), Store(tmp_path))
    assert found["diverged"] == "the state stopped being finite"
    assert found["series"]["objective"] == [float("inf")] * len(found["t"])
