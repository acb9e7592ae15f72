"""Outputs learned side by side hold the bits of each learned alone, whatever the cuts, the threads and the packs."""

import copy
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import FEATURES, NAMES, Case
from combinations import engine as build_engine
from seldom import seldom

from onlinear import DivergenceError, Learner, load, rows
from onlinear.compiled import COMPILED
from onlinear.learner.parts import build_average, build_loss, build_penalty, build_solver
from onlinear.solvers.core.engine import Engine, Examples, Problem
from onlinear.solvers.packs import team as packs
from onlinear.solvers.packs.team import InTurn, Output, Pack, Team, pack_sizes, threads_of

N, D = 300, 30
needs_kernels = pytest.mark.skipif(not COMPILED, reason="packs exist in compiled code only")


def stream(loss="hinge", outputs=6, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(N, D, 0.2, random_state=seed, format="csr")
    X.data = rng.normal(size=X.nnz)
    signs = np.where(rng.random((N, outputs)) < 0.3, 1.0, -1.0)
    return X, signs if loss != "squared" else rng.normal(size=(N, outputs)), rng.choice([0.0, 1.0, 2.0], N)


def assert_same_state(one, other):
    assert one.now.tobytes() == other.now.tobytes()
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        assert array.tobytes() == other.arrays[name].tobytes(), name


def assert_same_learner(one, other):
    (header, arrays), (theirs, others) = one.freeze(), other.freeze()
    assert header == theirs
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in others.items()
    }


CASES = [
    ("comid", "hinge", "elastic-net,l1=0.003,l2=0.05", "none"),
    ("comid", "hinge", "elastic-net,l1=0.01,l2=0.05", "weighted-t1"),
    ("fiol", "hinge", "elastic-net,l1=0.05,l2=30", "weighted-t"),
    ("comid", "hinge", "elastic-net,l1=0.05,l2=30", "suffix,total=300"),
    ("fiol", "logistic", "elastic-net,l1=0.01,l2=0.05", "none"),
    ("fiol", "squared", "l1,l1=0.01", "uniform"),
    ("rda,gamma=2", "hinge", "l1,l1=0.01", "none"),
    ("rda,gamma=2", "hinge", "elastic-net,l1=0.02,l2=0.05", "weighted-t1"),
    ("sgd", "squared", "l2,l2=0.3", "none"),
    ("implicit-sgd", "logistic", "l2,l2=0.3", "weighted-t1"),
    ("pegasos", "hinge", "l2,l2=0.1", "none"),  # its first step has al = 0
    ("comid", "logistic", "elastic-net,l1=0.003,l2=0.05,lower=-0.1,upper=0.2", "none"),
    ("fiol", "hinge", "l1,l1=0.003,lower=-0.1", "none"),
    ("sadmm", "logistic", "elastic-net,l1=0.003,l2=0.05", "none"),
    ("odrs,schedule=growing-rho", "hinge", "l1,l1=0.003", "none"),
    ("sdrs", "squared", "l2,l2=0.05", "none"),
    ("ftrl", "logistic", "elastic-net,l1=0.003,l2=0.05", "none"),
    ("ftrl", "hinge", "none", "none"),
    ("implicit-ftrl", "logistic", "elastic-net,l1=0.003,l2=0.05", "none"),
    ("implicit-ftrl", "squared", "l1,l1=0.01", "none"),
    ("implicit-ftrl,intercept=0.6", "hinge", "none", "none"),
]


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "average"),
    [seldom(*case) if case[0] == "fiol" and "lower" in case[2] else case for case in CASES],  # bounds by COMID in each run
)
def test_a_pack_holds_the_bits_of_separate_learners(solver, loss, penalty, average):
    X, Y, s = stream(loss)
    options = {"fit_intercept": True, "scale": "rms" if loss == "hinge" else "none"}
    together = Learner(solver, loss, penalty, average, n_outputs=Y.shape[1], **options)
    for first, last in ((0, 3), (3, 3), (3, 70), (70, N)):  # columns appear as the rows come
        together.learn(X[first:last], Y[first:last], s[first:last])
    if COMPILED:
        packed = average == "none" or not solver.startswith("rda")
        assert [type(group) for group in together.team()._groups] == ([Pack] if packed else [InTurn] * Y.shape[1])
    for k in range(Y.shape[1]):
        alone = Learner(solver, loss, penalty, average, **options).learn(X, Y[:, k], s)
        assert_same_state(together.states[k], alone.states[0])
        assert together.loss_sums[k].tobytes() == alone.loss_sums[0].tobytes()
        for average_too in (False, True):
            assert together.weights(average_too)[:, k].tobytes() == alone.weights(average_too).tobytes()
            assert together.intercept(average_too)[k] == alone.intercept(average_too)


@pytest.mark.parametrize(("solver", "together"), [("comid", True), ("fiol", True), ("rda", False), ("implicit-sgd", True)])
def test_with_an_average_only_what_gains_is_learnt_in_packs(solver, together):
    learner = Learner(solver, "hinge", "l2,l2=0.1", "weighted-t1", n_features=2, n_outputs=4)
    kinds = {type(group) for group in learner.team()._groups}
    assert kinds == ({Pack} if together and COMPILED else {InTurn})


def engines(solver, loss, penalties, average="none"):
    for penalty in map(build_penalty, penalties):
        problem = Problem(build_loss(loss), penalty, build_average(average), True)
        yield build_solver(solver, penalty)[0].engine(problem)


def learn_apart(found, data, y, s):
    for engine in found:
        state, scores = engine.start(np.zeros(D), 0.0), np.empty(len(y))
        engine.learn(state, Examples(data, 1.0, y, s, scores))
        yield state, scores


@pytest.mark.parametrize("average", ["none", "weighted-t1"])
@pytest.mark.parametrize("threads", [1, 2])
def test_each_output_has_its_own_penalty_and_clock(average, threads, monkeypatch):
    """The decays pass their limit at other rows for each output: visits are not shared."""
    monkeypatch.setattr(packs, "WORTH_A_THREAD", 0)
    X, Y, s = stream()
    data, y = rows.read(X).data, np.ascontiguousarray(Y[:, 0])
    penalties = ["none", *(f"elastic-net,l1={0.01 / l2:g},l2={l2}" for l2 in (0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5))]
    found = list(engines("comid", "hinge", penalties, average))
    team = Team([Output(engine, engine.start(np.zeros(D), 0.0), 0) for engine in found], threads)
    scores = np.empty((len(found), N))
    assert team.learn(Examples(data, 1.0, y[None], s, scores)) == (N, -1)
    states = [state for group in team._groups for state in group._states]
    for k, (state, alone) in enumerate(learn_apart(found, data, y, s)):
        assert_same_state(states[k], state)
        assert scores[k].tobytes() == alone.tobytes()


def methods_that_pack():
    """Each solver and average whose outputs are learned side by side, once for each kernel."""
    found = {}
    for name, average in itertools.product(NAMES, ("none", "suffix,alpha=0.5")):
        case = Case(name, "squared", "elastic-net,l1=0.03,l2=0.2", average, intercept=True)
        engine = build_engine(case)
        if engine is not None and isinstance(packs.method_of(Output(engine, None, 0)), tuple):
            found.setdefault((type(engine), type(engine.solver), average), case)
    return list(found.values())


@needs_kernels
@pytest.mark.parametrize("case", methods_that_pack(), ids=str)
def test_every_method_that_packs_holds_the_bits_of_separate_learners(case):
    """Also of the scores of averages, where an engine gives them, and of states that begin again at times of their own."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((90, FEATURES)) < 0.5, rng.normal(size=(90, FEATURES)), 0.0)
    signs = np.where(rng.random((90, 4)) < 0.4, 1.0, -1.0)
    together = case.learner(n_outputs=4)
    assert {type(group) for group in together.team()._groups} == {Pack}
    for rows_of_call in (slice(0, 30), slice(30, 31), slice(31, 90)):
        together.learn(X[rows_of_call], signs[rows_of_call])
    for k in range(4):
        alone = case.learner().learn(X, signs[:, k])
        assert_same_state(together.states[k], alone.states[0])
        assert together.weights(average=True)[:, k].tobytes() == alone.weights(average=True).tobytes()


@pytest.mark.parametrize("solver", [seldom("comid"), "fiol"])
def test_packs_score_rows_by_their_averages(solver):
    X, Y, s = stream()
    data, y = rows.read(X).data, np.ascontiguousarray(Y[:, 0])
    found = list(
        engines(solver, "hinge", [f"elastic-net,l1={l1:g},l2={5 * l1:g}" for l1 in (1e-3, 0.01, 0.1, 1.0)], "weighted-t1")
    )
    team = Team([Output(engine, engine.start(np.zeros(D), 0.0), 0) for engine in found])
    scores, means, alone = np.empty((4, N)), np.empty((4, N)), np.empty(N)
    assert team.learn(Examples(data, 1.0, y[None], s, scores, means)) == (N, -1)
    for k, engine in enumerate(found):
        engine.learn(engine.start(np.zeros(D), 0.0), Examples(data, 1.0, y, s, np.empty(N), alone))
        assert means[k].tobytes() == alone.tobytes()


@needs_kernels
@pytest.mark.parametrize("size", [1.0, 1e60, 1e110])
@pytest.mark.parametrize(
    ("solver", "loss", "form"),
    [
        ("comid", "hinge", "l1,l1={}"),
        ("rda,gamma=2", "hinge", "l1,l1={}"),
        ("rda,gamma=0", "hinge", "l2,l2={}"),
        ("fiol", "logistic", "elastic-net,l1={0},l2={0}"),
        ("sgd", "squared", "l2,l2={}"),
        ("sadmm", "logistic", "elastic-net,l1={0},l2={0}"),
        ("ftrl", "squared", "l1,l1={}"),
        ("implicit-ftrl", "squared", "l1,l1={}"),
    ],
)
def test_a_pack_with_idle_lanes_and_numbers_of_any_size(solver, loss, form, size):
    """The same labels move all outputs at once; whether numbers may burst is looked at where each alone would."""
    X, Y, s = stream(loss)
    data, y = rows.read(X * size).data, np.ascontiguousarray(Y[:, 0])
    largest = float(np.abs(data.values).max())
    found = list(engines(solver, loss, [form.format(strength) for strength in (1e-4, 1e-3, 0.01, 0.1, 1.0)]))
    team = Team([Output(engine, engine.start(np.zeros(D), 0.0), 0) for engine in found])
    (pack,) = team._groups
    assert isinstance(pack, Pack)
    scores = np.empty((len(found), N))
    done, culprit = team.learn(Examples(data, largest, y[None], s, scores))
    ends = []
    for k, engine in enumerate(found):
        state, alone = engine.start(np.zeros(D), 0.0), np.empty(N)
        ends.append(engine.learn(state, Examples(data, largest, y, s, alone)))
        assert scores[k, :done].tobytes() == alone[:done].tobytes()
        if done == N:
            assert_same_state(pack._states[k], state)
    assert done == min(ends)
    assert culprit == -1 if done == N else ends[culprit] == done


@needs_kernels
def test_the_output_that_diverges_is_named():
    X, Y, s = stream("squared")
    found = list(engines("sgd,eta=1", "squared", ["l2,l2=0.1"] * 3 + ["l2,l2=1e6"] + ["l2,l2=0.1"] * 2))
    team = Team([Output(engine, engine.start(np.zeros(D), 0.0), 0) for engine in found])
    done, culprit = team.learn(Examples(rows.read(X * 1e100).data, 1e101, Y[:, :1].T, s, np.empty((6, N))))
    apart = [np.empty(N) for _ in found]
    rows_done = [
        engine.learn(engine.start(np.zeros(D), 0.0), Examples(rows.read(X * 1e100).data, 1e101, Y[:, 0].copy(), s, scores))
        for engine, scores in zip(found, apart, strict=True)
    ]
    assert (done, rows_done[culprit]) == (min(rows_done), min(rows_done))


def test_a_learner_that_diverges_refuses_to_go_on():
    X, Y, s = stream("squared")
    learner = Learner("sgd,schedule=constant,eta=1e9", "squared", n_outputs=6)
    with pytest.raises(DivergenceError, match="stopped being finite at row"):
        learner.learn(X, Y, s)
    with pytest.raises(DivergenceError, match="learns no more"):
        learner.learn(X, Y, s)


@pytest.mark.parametrize("average", ["none", "weighted-t1"])
def test_saved_loaded_and_copied_learners_go_on_alike(average, tmp_path):
    X, Y, s = stream(outputs=11)
    whole = Learner("comid", "hinge", "l1,l1=0.01", average, n_outputs=11).learn(X, Y, s)
    learner = Learner("comid", "hinge", "l1,l1=0.01", average, n_outputs=11).learn(X[:100], Y[:100], s[:100])
    learner.save(tmp_path / "model")
    copied, loaded = copy.deepcopy(learner), load(tmp_path / "model")
    for one in (learner, copied, loaded):
        assert_same_learner(one.learn(X[100:], Y[100:], s[100:]), whole)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(packs, "WORTH_A_THREAD", 0)
    X, Y, s = stream(outputs=11)
    one = Learner("comid", "hinge", "l1,l1=0.01", n_outputs=11).learn(X, Y, s)
    two = Learner("comid", "hinge", "l1,l1=0.01", n_outputs=11, n_jobs=2).learn(X, Y, s)
    assert_same_learner(one, two)


def test_reading_in_between_and_rows_one_by_one_change_nothing():
    X, Y, _ = stream(outputs=4)
    whole = Learner("comid", "hinge", "l1,l1=0.01", n_outputs=4).learn(X[:120], Y[:120])
    single = Learner("comid", "hinge", "l1,l1=0.01", n_outputs=4)
    for i in range(120):
        row = X[i]
        before = single.predict(row)[0]
        assert np.allclose(single.learn_one(row.indices, row.data, Y[i]), before, rtol=1e-12, atol=1e-15)
        single.weights()
        single.variables()
    assert_same_learner(single, whole)


@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        ("rda", "l1,l1=0.01,lower=0"),
        ("fiol,inner=sort", "none"),
        ("iodrs", "l1,l1=0.01"),
        ("odrs,relaxation=1.5", "l1,l1=0.01"),
        ("sgd,radius=1", "l2,l2=0.1"),
    ],
)
def test_methods_without_a_kernel_go_in_turn(solver, penalty):
    X, Y, s = stream(outputs=4)
    together = Learner(solver, "hinge", penalty, n_outputs=4, n_features=D).learn(X, Y, s)
    assert all(type(group) is InTurn for group in together.team()._groups)
    for k in range(4):
        alone = Learner(solver, "hinge", penalty, n_features=D).learn(X, Y[:, k], s)
        assert together.weights()[:, k].tobytes() == alone.weights().tobytes()


INTERPRETED = """
import numpy as np
from onlinear import Learner
from onlinear.solvers.packs import team

team.FEWEST = 1  # a pack of one output, the lane that there is
rng = np.random.default_rng(0)
X = np.where(rng.random((70, 6)) < 0.5, rng.normal(size=(70, 6)), 0.0)
Y, s = np.where(rng.normal(size=(70, 2)) < 0.0, -1.0, 1.0), rng.choice([0.0, 0.5, 2.0], 70)
seen = set()
for solver, penalty, average in (
    ("comid", "l1=0.01", "none"), ("fiol", "l1=0.01,l2=0.1", "none"), ("rda", "l1=0.01", "none"),
    ("sgd", "l2=0.1", "weighted-t1"), ("implicit-sgd", "l2=0.1", "none"), ("sadmm", "l1=0.01", "none"),
    ("ftrl", "l1=0.01", "none"), ("implicit-ftrl", "l1=0.01", "none"), ("comid", "l1=0.1", "weighted-t1"),
):
    options = {"average": average, "fit_intercept": True, "n_features": 6}
    together = Learner(solver, "logistic", penalty, n_outputs=2, **options).learn(X, Y, s)
    assert all(type(group) is team.Pack for group in together.team()._groups)
    seen.add(team.KERNELS.get(type(together.engine)))
    for k in range(2):
        alone = Learner(solver, "logistic", penalty, **options).learn(X, Y[:, k], s)
        for mean in {False, average != "none"}:
            np.testing.assert_allclose(together.weights(average=mean)[:, k], alone.weights(average=mean), rtol=0, atol=1e-13)
assert seen == {None, *team.KERNELS.values()}
"""


def test_packs_run_interpreted():
    """The same text in a debugger, with one lane; there are four parts of a sum where one output alone has one."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_outputs_are_shared_out():
    assert pack_sizes(32, 1) == [8] * 4
    assert pack_sizes(10, 1) == [8, 1, 1]
    assert pack_sizes(12, 1) == [8, 4]
    assert pack_sizes(10, 2) == [5, 5]
    assert pack_sizes(100, 2) == [8, 8] + [7] * 12
    assert pack_sizes(2, 2) == [1, 1]


def test_wrong_numbers_of_threads():
    assert threads_of(None) == 1
    assert threads_of(3) == 3
    assert threads_of(-1) >= 1
    for wrong in (0, -2, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs must be None, -1"):
            threads_of(wrong)


def engine_classes():
    """All engine classes of the package."""
    found, left = set(), [Engine]
    while left:
        left += (new := set(left.pop().__subclasses__()) - found)
        found |= new
    own = (engine for engine in found if engine.__module__.startswith("onlinear."))
    return sorted(own, key=lambda engine: engine.__qualname__)


@pytest.mark.parametrize("engine", engine_classes(), ids=lambda engine: engine.__qualname__)
def test_engines_say_what_they_do_in_their_own_way(engine):
    assert engine.batch == (engine.solve is not Engine.solve)
    assert engine.own_outputs == (engine.learn_outputs is not Engine.learn_outputs)


@pytest.mark.parametrize("engine", engine_classes(), ids=lambda engine: engine.__qualname__)
def test_an_engine_with_a_loop_of_its_own_has_no_pack_of_another_s(engine):
    """Outputs side by side take the steps of the loop that learns one."""
    by_name = {name: next(cls for cls in engine.__mro__ if name in vars(cls)) for name in ("call", "pack")}
    if engine.packs is not False and engine.packs is not Engine.packs:
        assert issubclass(by_name["pack"], by_name["call"])
