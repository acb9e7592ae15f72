"""Rounds of sums over rows reach the optimum of softmax; sums do not depend on how rows are cut."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from test_joint_gap import PENALTIES, K, rows
from test_joint_newton import CHANGES, changed, solved
from test_rounds import arrays, sums_of

from onlinear.certified import rounds
from onlinear.certified.joint_rounds import JointRounds
from onlinear.certified.joint_sums import JointPoint
from onlinear.certified.sums import SHARES
from onlinear.learner.parts import build_loss, build_penalty

LOSS = build_loss("softmax")


def begun(penalty, X, intercept=True, scales=None, tol=1e-7, start=None):
    w = np.zeros((X.shape[1], K)) if start is None else start
    return JointRounds(LOSS, build_penalty(penalty), intercept, scales, w, np.zeros(K), tol)


def run(penalty, X, y, s, intercept=True, scales=None, tol=1e-7, most=80, start=None):
    """Rounds until the gap is small enough; a restart from the state after each of them changes nothing."""
    found = begun(penalty, X, intercept, scales, tol, start)
    while not found.done and found.rounds < most:
        found.take(sums_of(LOSS, found.point(), X, y, s))
        again = begun(penalty, X, intercept, scales, tol)
        again.restore(found.state())
        found = again
    return found


@pytest.mark.parametrize("room", [6000, 30])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [*PENALTIES, "l1=1e-4", "l2=1e-4", "l1=1", "l1=1e-3,lower=-0.2,upper=0.3"])
def test_they_reach_the_optimum(monkeypatch, penalty, intercept, room):
    """With curvatures of all weights, and with those of some 30 at most."""
    monkeypatch.setattr(rounds, "LARGEST", room)
    X, y, s = rows(1)
    found = run(penalty, X, y, s, intercept)
    assert found.done
    best = solved(penalty, X, y, s, intercept, tol=1e-9)
    assert found.value == pytest.approx(best.objective(X, y, s), rel=3e-7)
    assert found.bound <= best.objective(X, y, s) * (1.0 + 1e-12)


@pytest.mark.parametrize("penalty", ["l1=0.01", "l2=1e-3", "elastic-net,l1=1e-3,l2=1e-3"])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_every_kind(change, penalty):
    X, y, s = changed(change)
    found = run(penalty, X, y, s)
    assert found.done
    assert found.value == pytest.approx(solved(penalty, X, y, s, tol=1e-9).objective(X, y, s), rel=3e-7)


def test_scales_are_divided_by():
    X, y, s = changed("wide")
    scales = np.linspace(0.5, 4.0, X.shape[1])
    scales[2] = 0.0
    divided = X / np.where(scales > 0.0, scales, 1.0)
    divided[:, 2] = 0.0
    for few in (slice(0, 6), slice(None)):  # by curvatures, and by rows that are kept
        mine = run("l1=0.01", X[:, few], y, s, scales=scales[few])
        other = run("l1=0.01", divided[:, few], y, s)
        assert mine.value == pytest.approx(other.value, rel=1e-6)
        np.testing.assert_allclose(mine.w, other.w, atol=1e-3)


def point_of(X, columns, room=8 * 20**2):
    """A point with a step, and all weights of some columns but one in the working set; rows soon take more than the room."""
    rng, (_, d) = np.random.default_rng(3), X.shape
    places = np.full((d, K), -1)
    places[columns] = 0
    places[columns[0], 1] = -1
    places[places == 0] = np.arange(K * len(columns) - 1)
    w = np.where(np.isin(np.arange(d), columns)[:, None], rng.normal(size=(d, K)), 0.0)
    return JointPoint(w, rng.normal(size=K), 0.1 * rng.normal(size=(d, K)), rng.normal(size=K), places, 1e-3, room)


def test_sums_depend_neither_on_cuts_nor_on_merging():
    X, y, s = rows(2)
    point = point_of(X, [1, 4, 5])
    whole = sums_of(LOSS, point, X, y, s)
    assert whole.kept is None
    for cuts in ([1, 2, 90], list(range(len(y)))):
        for mine, its in zip(arrays(whole), arrays(sums_of(LOSS, point, X, y, s, cuts)), strict=True):
            np.testing.assert_array_equal(mine, its)
    few = sums_of(LOSS, point, X[:20], y[:20], s[:20])
    assert few.kept
    half = few.merged(sums_of(LOSS, point, X[20:], y[20:], s[20:]))
    for mine, its in zip(arrays(whole), arrays(half), strict=True):
        np.testing.assert_allclose(mine.sum(axis=-1), its.sum(axis=-1), rtol=1e-12, atol=1e-12)


def test_sums_are_those_of_the_formulas():
    X, y, s = rows(2)
    point = point_of(X, [1, 4, 5])
    whole = sums_of(LOSS, point, X, y, s)
    z, moves, here = X @ point.w + point.b, X @ point.step + point.step_b, np.equal.outer(y, np.arange(K))
    p, theta = softmax(z, axis=1), s[:, None] * (softmax(z, axis=1) - here)
    losses = [-(s @ log_softmax(z - (1.0 - t) * moves, axis=1)[here]) for t in (1.0, *SHARES)]
    np.testing.assert_allclose([whole.loss, *whole.along], losses)
    np.testing.assert_allclose(whole.gradients, [X.T @ theta, X.T @ (s[:, None] * here)], atol=1e-12)
    np.testing.assert_allclose(whole.of_classes, [theta.sum(axis=0), s @ here], atol=1e-12)
    parts, conjugates = whole.of_certificate(True)
    assert conjugates == pytest.approx(s @ np.sum(p * np.log(p), axis=1))
    assert parts.rows == len(y)
    columns, of = np.nonzero(point.places >= 0)
    Z = np.column_stack([X[:, columns], np.ones((len(y), K))])
    of = np.append(of, np.arange(K))
    D = (p + point.flat)[:, of][:, None, :] * np.equal.outer(of, of) - p[:, of][:, :, None] * p[:, of][:, None, :]
    np.testing.assert_allclose(whole.hessian, np.triu(np.einsum("i,ia,iab,ib->ab", s, Z, D, Z)), atol=1e-10)


def test_without_room_sums_hold_neither_rows_nor_curvatures_and_rounds_end_all_the_same(monkeypatch):
    X, y, s = changed("wide")
    point = point_of(X, list(range(100)), 3000)
    assert sums_of(LOSS, point, X[:5], y[:5], s[:5]).kept is None
    assert sums_of(LOSS, point, X, y, s).hessian.size == 0
    monkeypatch.setattr(rounds, "LARGEST", 80)
    found = run("l1=0.02", X, y, s, tol=1e-3, start=np.full((X.shape[1], K), 0.1))
    assert found.done


def test_a_start_far_away_reaches_the_optimum():
    X, y, s = rows(2)
    best = run("l1=0.01", X, y, s)
    far = run("l1=0.01", X, y, s, start=30.0 * np.random.default_rng(0).normal(size=(X.shape[1], K)))
    assert far.done
    assert far.value == pytest.approx(best.value, rel=3e-7)


def test_an_objective_that_is_not_finite_is_no_certificate():
    X, y, s = rows(2)
    found = begun("l1=0.01", X, start=np.full((X.shape[1], K), 1e200))
    found.take(sums_of(LOSS, found.point(), X * 1e200, y, s))
    assert not np.isfinite(found.value)
    assert found.bound == 0.0
