"""Rounds of sums over rows reach the optimum of smooth losses; sums do not depend on how rows are cut."""

import itertools

import numpy as np
import pytest
from test_certified_optimum import BOXES, PENALTIES, SMOOTH, N, rows_for, solved

from onlinear import rows as rows_of
from onlinear.certified import rounds
from onlinear.certified.rounds import Rounds
from onlinear.certified.sums import SHARES, Point
from onlinear.learner.parts import build_loss, build_penalty


def sums_of(loss, point, X, y, s, cuts=()):
    """The sums of rows in pieces that end at ``cuts``."""
    found = point.nothing()
    for part in np.split(np.arange(len(y)), cuts):
        for which, block in rows_of.read(X[part]).blocks():
            found.add(loss, point, block, y[part][which], s[part][which])
    return found


def arrays(sums):
    """All that sums hold."""
    kept = sums.all_kept()
    rows = [] if kept is None else [*kept.entries, *kept[1:]]
    return [sums.totals, sums.gradients, sums.hessian, np.array([sums.rows]), *rows]


def run(loss, penalty, X, y, s, fit_intercept=False, scales=None, tol=1e-8, most=80, start=None):
    """Rounds until the gap is small enough; a restart from the state after each of them changes nothing."""
    loss, penalty = build_loss(loss), build_penalty(penalty)
    found = Rounds(loss, penalty, fit_intercept, scales, np.zeros(X.shape[1]) if start is None else start, 0.0, tol)
    while not found.done and found.rounds < most:
        found.take(sums_of(loss, found.point(), X, y, s))
        again = Rounds(loss, penalty, fit_intercept, scales, np.zeros(X.shape[1]), 0.0, tol)
        again.restore(found.state())
        found = again
    return found


@pytest.mark.parametrize("loss", SMOOTH)
def test_rounds_reach_the_optimum(loss):
    X, y, s = rows_for(loss)
    for penalty, fit_intercept in itertools.product((*PENALTIES, *BOXES), (False, True)):
        found = run(loss, penalty, X, y, s, fit_intercept)
        assert found.done, (penalty, fit_intercept)
        learner = solved("prox-newton,tol=1e-8", loss, penalty, X, y, s, fit_intercept)
        assert learner.objective(X, y, s) == pytest.approx(found.value, rel=1e-7)
        assert learner.objective(X, y, s) >= found.bound - 1e-12 * abs(found.value)


@pytest.mark.parametrize(("loss", "label"), [("logistic", 1.0), ("logistic", -1.0), ("exponential", 1.0)])
def test_rows_of_one_class_have_no_best_intercept(loss, label):
    X, _, s = rows_for("logistic")
    for penalty in ("l1=0.1", "l2=0.1"):
        found = run(loss, penalty, X, np.full(N, label), s, True, start=np.ones(X.shape[1]))
        assert found.done
        assert found.rounds <= 3
        assert found.b[0] * label > 700.0
        assert not found.w.any()


@pytest.mark.parametrize(("loss", "target"), [("logistic", 1.0), ("exponential", -1.0), ("poisson", 0.0)])
def test_rows_of_one_class_have_no_loss_at_an_intercept_far_away(loss, target):
    """Newton's steps went there by 1 a reading, and the bound stays 0: the gap was 1 until readings were used up."""
    X, _, s = rows_for(loss)
    found = run(loss, "l2=0.1", X, np.full(N, target), s, True, most=4)
    assert found.done
    assert (found.value, found.w.any()) == (0.0, False)


def test_scales_are_divided_by():
    X, y, s = rows_for("logistic")
    scales = np.linspace(0.5, 4.0, X.shape[1])
    scales[7] = 0.0
    mine = run("logistic", "l1=0.01", X, y, s, True, scales)
    other = run("logistic", "l1=0.01", X / np.where(scales > 0.0, scales, 1.0), y, s, True)
    np.testing.assert_allclose(mine.w, other.w, atol=1e-8)
    assert mine.value == pytest.approx(other.value, rel=1e-12)


def test_sums_depend_neither_on_cuts_nor_on_the_container():
    X, y, s = rows_for("logistic")
    loss = build_loss("logistic")
    places = np.full(X.shape[1], -1)
    places[[1, 4, 6]] = np.arange(3)
    point = Point(np.linspace(-1.0, 1.0, X.shape[1]), 0.3, np.full(X.shape[1], 0.1), -0.1, places, 1e-12, 8 * 4**2)
    whole = sums_of(loss, point, X, y, s)
    for cuts in ([1, 2, 90], [N - 1], list(range(N))):
        for mine, its in zip(arrays(whole), arrays(sums_of(loss, point, X, y, s, cuts)), strict=True):
            np.testing.assert_array_equal(mine, its)
    half = sums_of(loss, point, X[:80], y[:80], s[:80]).merged(sums_of(loss, point, X[80:], y[80:], s[80:]))
    for mine, its in zip(arrays(whole), arrays(half), strict=True):
        np.testing.assert_allclose(mine.sum(axis=-1), its.sum(axis=-1), rtol=1e-12, atol=1e-12)
    scores = X @ point.w + point.b
    moves = X @ point.step + point.step_b
    shorter = [scores - (1.0 - t) * moves for t in SHARES]
    losses = [s @ [loss.value(a, target) for a, target in zip(at, y, strict=True)] for at in shorter]
    np.testing.assert_allclose(whole.along, losses)
    h = s * [max(loss.curvature(a, t), point.floor) for a, t in zip(scores, y, strict=True)]
    Z = np.column_stack([X[:, [1, 4, 6]], np.ones(N)])
    np.testing.assert_allclose(whole.hessian, np.triu(Z.T @ (h[:, None] * Z)), atol=1e-12)


def wide(n=40, d=300):
    """More columns than rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1)
    return X, np.where(X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0), rng.choice([0.0, 1.0, 2.0], n)


@pytest.mark.parametrize("scaled", [False, True])
def test_rows_that_take_less_room_than_curvatures_are_kept(scaled):
    X, y, s = wide()
    loss, scales = build_loss("logistic"), np.linspace(0.5, 2.0, X.shape[1]) if scaled else None
    point = Point(np.zeros(X.shape[1]), 0.1, np.empty(0), 0.0, np.arange(X.shape[1]), 1e-12, 1 << 20)
    whole = sums_of(loss, point, X, y, s)
    assert whole.kept
    assert not whole.hessian.any()
    parts = sums_of(loss, point, X[:7], y[:7], s[:7]).merged(sums_of(loss, point, X[7:], y[7:], s[7:]))
    for found in (parts, sums_of(loss, point, X, y, s, list(range(len(y))))):
        for mine, its in zip(arrays(whole)[4:], arrays(found)[4:], strict=True):
            np.testing.assert_array_equal(mine, its)
    found = run("logistic", "l1=1e-3", X, y, s, True, scales, start=np.full(X.shape[1], 0.1))
    assert found.done
    assert found.rounds <= 8
    assert run("logistic", "l1=1e-3", X, y, s, True, scales).value == pytest.approx(found.value, rel=1e-7)


def test_curvatures_take_the_place_of_rows_that_would_take_more_room():
    X, y, s = wide()
    places = np.where(np.arange(X.shape[1]) < 10, np.arange(X.shape[1]), -1)
    point, loss = Point(np.zeros(X.shape[1]), 0.1, np.empty(0), 0.0, places, 1e-12, 8 * 12**2), build_loss("logistic")
    few, whole = (sums_of(loss, point, X[:n], y[:n], s[:n]) for n in (5, len(y)))
    assert few.kept
    assert whole.kept is None
    merged = few.merged(sums_of(loss, point, X[5:], y[5:], s[5:]))
    np.testing.assert_allclose(merged.hessian, whole.hessian, rtol=1e-12, atol=1e-15)
    point.w[200] = 1.0  # outside the working set: rows in its columns alone would not tell F
    assert sums_of(loss, point, X[:5], y[:5], s[:5]).kept is None


def test_a_small_working_set_needs_more_rounds(monkeypatch):
    monkeypatch.setattr(rounds, "LARGEST", 3)
    X, y, s = rows_for("logistic")
    found = run("logistic", "l2=0.05", X, y, s, True, tol=1e-4, most=300, start=np.linspace(-1.0, 1.0, X.shape[1]))
    assert found.done
    assert found.crowded


def own_columns(n):
    """Rows with two columns of their own each, and one that all share."""
    r = np.random.default_rng(3)
    X = np.zeros((n, 2 * n + 1))
    X[np.arange(n), 2 * np.arange(n)], X[np.arange(n), 2 * np.arange(n) + 1], X[:, -1] = 1.0 + r.random((3, n))
    return X, np.where(r.random(n) < 0.5, 1.0, -1.0), np.ones(n)


@pytest.mark.parametrize(("largest", "most", "tol"), [(20, 8, 1e-6), (10, 25, 0.1)])
def test_more_columns_at_the_optimum_than_curvatures_have_room_for(monkeypatch, largest, most, tol):
    """While the rows of a larger working set have that room, they are kept; where they have not, its columns take turns."""
    monkeypatch.setattr(rounds, "LARGEST", largest)
    X, y, s = own_columns(30)
    found = run("logistic", "l1=1e-3", X, y, s, True, tol=tol, most=most)
    assert found.done
    assert np.count_nonzero(found.w) > largest
    assert found.crowded == (largest == 10)
    learner = solved("prox-newton,tol=1e-9", "logistic", "l1=1e-3", X, y, s, True)
    assert learner.objective(X, y, s) == pytest.approx(found.value, rel=tol)


def test_sums_without_room_hold_neither_rows_nor_curvatures():
    X, y, s = wide()
    places, loss = np.arange(X.shape[1]), build_loss("logistic")
    point = Point(np.zeros(X.shape[1]), 0.1, np.empty(0), 0.0, places, 1e-12, 3000)
    few, whole = (sums_of(loss, point, X[:n], y[:n], s[:n]) for n in (3, len(y)))
    assert few.kept
    assert whole.all_kept() is None
    assert whole.hessian.size == 0
    merged = few.merged(sums_of(loss, point, X[3:], y[3:], s[3:]))
    for one, other in zip(arrays(merged), arrays(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_a_start_far_away_reaches_the_optimum_and_a_weight_of_an_empty_column_turns_to_0():
    X, y, s = rows_for("poisson")
    found = run("poisson", "l1=0.01", X, y, s, start=np.full(X.shape[1], 3.0))
    assert found.done
    assert found.w[7] == 0.0
