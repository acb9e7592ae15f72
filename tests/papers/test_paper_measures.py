"""Measures of every row against the recursions written out, and the order of rows."""

import numpy as np
import pytest

from onlinear import Learner
from onlinear.papers.data import Split
from onlinear.papers.experiments import ExperimentError
from onlinear.papers.measures import MEASURES, Moment
from onlinear.papers.problems import LearningProblem
from onlinear.papers.runs import checkpoints_of, order_of
from onlinear.papers.theorems import Hyperplane, OneStep, Regret

rng = np.random.default_rng(5)
X = np.hstack([np.ones((40, 1)), rng.uniform(size=(40, 3))])
Y = X @ rng.normal(size=4) + 0.1 * rng.normal(size=40)


def problem(loss="squared", penalty="none"):
    return LearningProblem(Split(X, Y, X, Y), loss, penalty)


def run(learner, tracker):
    for x, y in zip(X, Y, strict=True):
        tracker.before(x, y)
        learner.learn(x[None, :], [y])
        tracker.after(x, y)


def test_p5s_steps():
    given = problem()
    learner = Learner("ncsgd,eta=0.5", "squared", n_features=4)
    run(learner, tracker := Hyperplane(learner, given))
    best = given.optimum.w
    w, S, total = np.zeros(4), np.zeros(4), 0.0
    moved, left, holds, tangents = [], 0.0, 0, []
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        eta, g = 0.5 / np.sqrt(t), -(y - w @ x) * x
        hat, S, total = w - eta * g, S + x, total + y
        new = hat - S * (S @ hat - total) / (S @ S)
        excess = ((y - w @ x) ** 2 - (y - best @ x) ** 2) / 2
        moved.append((hat - new) @ (hat - new))
        gain = (new - best) @ (new - best) - (w - best) @ (w - best)
        holds += gain <= eta**2 * g @ g - 2 * eta * excess - moved[-1] + 1e-12
        left += 2 * eta * excess
        tangents.append(np.sqrt(moved[-1]) / np.linalg.norm(new - best))
        w = new
    np.testing.assert_allclose(learner.weights(), w)
    assert tracker.left == pytest.approx(left)
    assert tracker.moved == pytest.approx(sum(moved))
    assert tracker.holding == holds / 40
    assert tracker.tangent == pytest.approx(tangents[-1])
    assert pytest.approx(min(a**2 * np.sqrt(t) / 0.5 for t, a in enumerate(tangents[1:], 2))) == tracker.H
    assert tracker.decreasing == np.mean(np.diff(tangents) < 0)
    assert tracker.right == pytest.approx(best @ best - sum(moved) + tracker.gradient**2 * tracker.etas)


def test_p3s_one_step_gain_of_an_implicit_step():
    given = problem(penalty="l1,l1=0.01")
    learner = Learner("fiol,eta=1", "squared", "l1,l1=0.01", n_features=4)
    run(learner, tracker := OneStep(learner, given))
    moves, w = [], np.zeros(4)
    again = Learner("fiol,eta=1", "squared", "l1,l1=0.01", n_features=4)
    for x, y in zip(X, Y, strict=True):
        again.learn(x[None, :], [y])
        moves.append(
            0.5 * ((again.weights() - w) @ x) ** 2
        )  # of the squared loss delta_t is half the squared move of the score
        w = again.weights()
    assert tracker.total == pytest.approx(sum(moves))
    assert tracker.least == pytest.approx(min(moves), abs=1e-12)


def test_regret_is_that_of_the_last_iterates():
    given = problem(penalty="l1,l1=0.01")
    learner = Learner("comid,eta=0.3", "squared", "l1,l1=0.01", average="uniform", n_features=4)
    run(learner, tracker := Regret(learner, given))
    w, total, best = np.zeros(4), 0.0, given.optimum.w
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        total += ((y - w @ x) ** 2 - (y - best @ x) ** 2) / 2 + 0.01 * (np.abs(w).sum() - np.abs(best).sum())
        v = w + 0.3 / np.sqrt(t) * (y - w @ x) * x
        w = np.sign(v) * np.maximum(np.abs(v) - 0.003 / np.sqrt(t), 0.0)
    assert tracker.average == pytest.approx(total / 40)


def test_measures_of_a_moment():
    given = problem()
    learner = Learner("csgd,eta=0.5,m=20", "squared", average="uniform", n_features=4).learn(X, Y)
    moment = Moment(learner, given, {})
    w, last, best = learner.weights(average=True), learner.weights(), given.optimum.w
    expected = {
        "objective": np.mean((X @ w - Y) ** 2) / 2,
        "gap last": np.mean((X @ last - Y) ** 2) / 2 - np.mean((X @ best - Y) ** 2) / 2,
        "distance": np.sum((w - best) ** 2),
        "test error": np.mean((X @ w - Y) ** 2),
        "constraint error": abs(Y.mean() - X.mean(axis=0) @ best) / np.linalg.norm(best),
        "nonzeros last": 4.0,
    }
    for name, value in expected.items():
        assert MEASURES[name].take(moment) == pytest.approx(value, abs=1e-12), name
    assert learner.objective(X, Y) == pytest.approx(MEASURES["objective"].take(moment))


def test_the_vi_gap_at_the_saddle_point():
    given = problem(penalty="l1,l1=0.05")
    learner = Learner("sadmm,rho=2", "squared", "l1,l1=0.05", n_features=4).learn(X, Y)
    z = mu = np.zeros(4)
    ws, zs = [], []
    for x, y in zip(X, Y, strict=True):
        v = z - mu / 2
        w = v + (y - v @ x) / (2 + x @ x) * x
        u = w + mu / 2
        z = np.sign(u) * np.maximum(np.abs(u) - 0.025, 0.0)
        mu = mu + 2 * (w - z)
        ws.append(w)
        zs.append(z)
    w, z, best = np.mean(ws, axis=0), np.mean(zs, axis=0), given.optimum
    F = lambda a, b: np.mean((X @ a - Y) ** 2) / 2 + 0.05 * np.abs(b).sum()  # noqa: E731
    saddle = X.T @ (Y - X @ best.w) / 40  # mu* = -grad of the mean loss
    np.testing.assert_allclose(best.mu, saddle, atol=1e-6)
    expected = F(w, z) - F(best.w, best.w) + saddle @ (w - z)
    assert MEASURES["vi gap"].take(Moment(learner, given, {})) == pytest.approx(expected, abs=1e-8)


def test_orders():
    first = next(order_of("replacement", 10, (0, 0, 1)))
    np.testing.assert_array_equal(first, next(order_of("replacement", 10, (0, 0, 1))))
    assert not np.array_equal(first, next(order_of("replacement", 10, (0, 1, 1))))
    feed = order_of("permutation", 10, (0, 0, 1))
    assert sorted(next(feed)) == sorted(next(feed)) == list(range(10))
    assert list(next(order_of("rows", 3, (0,)))) == [0, 1, 2]


def test_checkpoints():
    assert checkpoints_of("log 4", 1000) == (1, 10, 100, 1000)
    assert checkpoints_of("linear 4", 10) == (2, 5, 8, 10)
    assert checkpoints_of("powers of 2", 10) == (1, 2, 4, 8, 10)
    assert checkpoints_of("every 4", 10) == (4, 8, 10)
    assert checkpoints_of([3, 30], 10) == (3, 10)
    with pytest.raises(ExperimentError, match="got 'often'"):
        checkpoints_of("often", 10)
