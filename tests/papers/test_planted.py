"""A wrong solver, planted in each experiment, turns a verdict: the checks can fail, and see what they are meant to see."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest

from onlinear import Learner
from onlinear.papers import experiments, reproduce, runs
from onlinear.papers.claims import judge
from onlinear.papers.data import Where
from onlinear.papers.store import Store
from onlinear.papers.study import conduct

# experiment: the fault, the beginning of the solver's text that has it, and the data sets that are enough to see it
PLANTED = {
    "p1/batch": ("sign", "batch-drs", None),
    "p1/fig1": ("sign", "sadmm", ["a9a"]),
    "p1/fig2": ("sign", "sadmm", ["a9a"]),
    "p1/fig2-synthetic": ("sign", "sadmm", ["dense, d = 100"]),
    "p1/fig3": ("sign", "sadmm", ["a9a"]),
    "p1/fig3-synthetic": ("sign", "sadmm", ["dense, d = 100"]),
    "p1/remark2": ("sign", "oadm", None),
    "p1/theorem41": ("sign", "sadmm", None),
    "p1/theorem42": ("sign", "sadmm,schedule", None),
    "p2/batch": ("sign", "batch-drs", ["d = 5", "d = 10", "d = 20"]),
    "p2/fig1-lasso": ("average", "odrs", None),
    "p2/logistic": ("sign", "sdrs", None),
    "p2/regret": ("sign", "odrs", ["noisy"]),
    "p2/tv": ("average", "odrs", None),
    "p3/cost": ("slow", "fiol,schedule=constant", None),
    "p3/gain": ("twice", "fiol", None),
    "p3/table2": ("lag", "fiol", None),
    "p3/table2-time": ("sign", "i-sgd", ["correlation 0", "correlation 0.5"]),
    "p4/equal": ("lag", "hrmd-w", ["a9a"]),
    "p4/fig1": ("sign", "hrmd-w", ["a9a", "ccat", "covtype", "astro-physic (relathe)"]),
    "p4/lemma1": ("leap", "hrmd-w", None),
    "p4/synthetic": ("sign", "hrmd-w", None),
    "p4/table2": ("sign", "hrmd-w", ["a9a", "covtype"]),
    "p5/fig2a-low": ("sign", "csgd", None),
    "p5/fig2b-high": ("sign", "csgd", None),
    "p5/fig2c-spectrum": ("lag", "csgd", None),
    "p5/fig2d-centred": ("sign", "ncsgd", None),
    "p5/fig3": ("lag", "c-adaline", None),
    "p5/fig4": ("lag", "c-adaline", None),
    "p5/mean": ("stuck", "csgd", None),
    "p5/phase": ("sign", "csgd,eta", None),
    "p5/theorems": ("sign", "csgd", None),
    "ours/gain": ("sign", "fiol", None),
    "ours/leading": ("sign", "leading", ["decaying"]),
    "ours/regret": ("lag", "2sgd", ["regression"]),
    "ours/solvers": ("sign", "implicit-sgd", ["spambase"]),
    "ours/support": ("lag", "comid", ["text-like"]),
}

VERDICTS = ("reproduced", "mostly", "partly", "not decided", "not reproduced")
FAULTS = {
    "sign": "labels of the other sign",
    "lag": "each row with the label of the one before",
    "twice": "features three times too large",
    "leap": "features 10,000 times too large",
    "stuck": "the first row again and again",
    "slow": "time lost on every row",
    "average": "the uniform average in place of the last iterate",
}


def wrong(learner: Learner, fault: str) -> Learner:
    """The learner with a fault between it and its rows."""
    learn, solve = learner.learn, learner.solve
    last = {}

    def with_sign(X, y):
        learn(X, -y)

    def with_lag(X, y):
        before = last.get("y", y[:1])
        last["y"] = y[-1:]
        learn(X, np.concatenate([before, y[:-1]]))

    def with_twice(X, y):
        learn(3.0 * X, y)

    def with_leap(X, y):
        learn(1e4 * X, y)

    def with_stuck(X, y):
        last.setdefault("row", (X[:1], y[:1]))
        X0, y0 = last["row"]
        learn(np.repeat(X0, len(y), axis=0), np.repeat(y0, len(y)))

    def slowly(X, y):
        learn(X, y)
        end = time.process_time() + 1e-8 * len(y) * X.shape[1] ** 1.5
        while time.process_time() < end:
            pass

    faults = {"sign": with_sign, "lag": with_lag, "twice": with_twice, "leap": with_leap, "stuck": with_stuck, "slow": slowly}
    learner.learn = faults[fault]
    learner.solve = lambda X, y, count: solve(X, -y, count)
    return learner


def plant(patch: pytest.MonkeyPatch, fault: str, solver: str) -> None:
    """Give every run of a solver a fault, and a name of its own in the store."""
    new, key = runs.new_learner, runs.RunSpec.key

    def new_learner(spec, problem):
        if not spec.solver.startswith(solver):
            return new(spec, problem)
        if fault == "average":
            return new(dataclasses.replace(spec, average="uniform"), problem)
        return wrong(new(spec, problem), fault)

    patch.setattr(runs, "new_learner", new_learner)
    patch.setattr(runs.RunSpec, "key", lambda spec, where: key(spec, where) + fault * spec.solver.startswith(solver))


def verdicts(name: str, keep: list[str] | None, where: Where, store: Store) -> dict[str, str]:
    """The verdicts of a quick run on some of its data; claims that cannot fail are left out."""
    experiment = experiments.load(name, quick=True)
    if keep is not None:
        experiment = dataclasses.replace(experiment, data=tuple(one for one in experiment.data if one.name in keep))
    there = {one.name for one in experiment.data}
    experiment = dataclasses.replace(experiment, figure=())
    with reproduce.workers(1, where, store) as team, np.errstate(all="ignore"):
        study = conduct(experiment, lambda tasks: team.do(tasks, lambda done, of: None))
    claims = [claim for claim in experiment.claim if claim.data is None or there & set(claim.data)]
    judged = [judge(study, claim) for claim in claims if claim.kind != "identity"]
    return {one.claim.text: one.verdict for one in judged}


def test_each_experiment_with_a_claim_has_a_fault():
    assert set(PLANTED) == {name for name in experiments.names() if experiments.load(name).claim}


def both(name: str, data: object, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The verdicts of an experiment as it is, and with its fault."""
    fault, solver, keep = PLANTED[name]
    where, store = Where(str(data)), Store(folder)
    right = verdicts(name, keep, where, store)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, fault, solver)
        return right, verdicts(name, keep, where, store)


def fallen(right: dict[str, str], planted: dict[str, str]) -> list[str]:
    """The claims that a fault makes less true, those that fall farthest first."""
    falls = {text: VERDICTS.index(planted[text]) - VERDICTS.index(right[text]) for text in right}
    return sorted((text for text in right if falls[text] > 0), key=lambda text: -falls[text])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_solver_turns_a_verdict(name, tmp_path, data):
    assert fallen(*both(name, data, tmp_path))
