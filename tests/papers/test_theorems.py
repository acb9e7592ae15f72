"""Trackers of the papers' theorems against the recursions and sides written out; each also sees a step that is wrong."""

import numpy as np
import pytest

from onlinear import Learner
from onlinear.papers.data import Split
from onlinear.papers.generators import classes, lasso
from onlinear.papers.problems import LearningProblem
from onlinear.papers.runs import beyond_the_end
from onlinear.papers.theorems import BatchMeans, Inequality, Interlace, LossRegret, OneStep, Regret, Splitting, vi_gap

LAM, L1, ITERATIONS = 0.8, 0.02, 12
A, B = lasso(np.random.default_rng(1), n=30, d=5, nonzeros=3, noise=0.1, reading="unit-rows")
X, Y = classes(np.random.default_rng(2), n=40, d=4, nonzeros=3, unit=False)


def soft(v, k):
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def problem(X, y, loss, penalty):
    return LearningProblem(Split(X, y, X[:0], y[:0]), loss, penalty)


def follow(learner, tracker, X, y):
    for row, target in zip(X, y, strict=True):
        tracker.before(row, float(target))
        learner.learn(row[None, :], [target])
        tracker.after(row, float(target))


@pytest.fixture(scope="module")
def splitting():
    """Batch Douglas-Rachford on a small lasso, and what its tracker saw."""
    given = problem(A, B, "squared,factor=2", f"l1,l1={L1}")
    learner = Learner(f"batch-drs,lam={LAM}", given.loss, given.penalty, n_features=5)
    tracker = Splitting(learner, given)
    for _ in range(ITERATIONS):
        learner.solve(A, B, 1)
        tracker.iterated()
    return given, learner, tracker


def test_the_optimum_is_polished(splitting):
    given, _, tracker = splitting
    pull = 2.0 * A.T @ (A @ tracker.best - B) / len(B)
    on = tracker.best != 0.0
    np.testing.assert_allclose(pull[on], -L1 * np.sign(tracker.best[on]), atol=1e-14)
    assert np.all(np.abs(pull[~on]) <= L1)
    np.testing.assert_allclose(tracker.best, given.optimum.w, atol=1e-4)


def test_douglas_rachford_by_hand(splitting):
    _, learner, tracker = splitting
    H, c, best = 2.0 * A.T @ A / len(B), 2.0 * A.T @ B / len(B), tracker.best
    far = lambda x: np.linalg.norm(x - best + LAM * H @ (x - best))  # noqa: E731
    fixed = best - LAM * (H @ best - c)
    u = np.zeros(5)
    residuals, splits, distances = [], [], [far(u)]
    for t in range(1, ITERATIONS + 1):
        x = soft(u, LAM * L1)
        z = np.linalg.solve(np.eye(5) + LAM * H, 2.0 * x - u + LAM * c)
        u = u + z - x
        splits.append(np.sum((x - z) ** 2) * t / np.sum(fixed**2))
        out = soft(u, LAM * L1)
        eps = out - soft(out - LAM * (H @ out - c), LAM * L1)
        residuals.append(eps @ eps * (t + 1) / distances[0] ** 2)
        distances.append(far(out))
    np.testing.assert_allclose(learner.weights(), out, atol=1e-12)
    assert tracker.residual == pytest.approx(max(residuals))
    assert tracker.split_ratio == pytest.approx(max(splits))
    assert tracker.rising == np.mean(np.diff(distances) > 0.0)
    assert tracker.u_rising == tracker.swapped_rising == 0.0
    assert max(tracker.split_ratio, tracker.swapped_residual) <= 1.0
    assert min(tracker.room_4, tracker.room_10) >= -1e-12


def test_a_splitting_that_steps_wrong_is_seen(splitting):
    given, _, _ = splitting
    learner = Learner(f"batch-drs,lam={LAM}", given.loss, given.penalty, n_features=5)
    tracker = Splitting(learner, given)
    for _ in range(ITERATIONS):
        learner.solve(A, -B, 1)  # the sign of the targets
        tracker.iterated()
    assert tracker.u_rising > 0.0
    assert tracker.room_10 < -1e-3


def test_batch_admm_by_hand():
    given, rho = problem(X, Y, "logistic", f"l1,l1={L1}"), 0.5
    learner = Learner(f"batch-drs,lam={1 / rho}", given.loss, given.penalty, n_features=4)
    tracker = BatchMeans(learner, given)
    assert np.isnan(tracker.gap)
    z = mu = np.zeros(4)
    ws, zs = [], []
    for _ in range(5):
        learner.solve(X, Y, 1)
        tracker.iterated()
        w = learner.variables()["z"]
        slopes = np.array([given.loss.slope(s, y) for s, y in zip(X @ w, Y, strict=True)])
        np.testing.assert_allclose(X.T @ slopes / len(Y) + mu + rho * (w - z), 0.0, atol=1e-10)  # (4): w minimises
        z = soft(w + mu / rho, L1 / rho)
        mu = mu + rho * (w - z)
        ws.append(w)
        zs.append(z)
    assert tracker.gap == pytest.approx(vi_gap(given, np.mean(ws, axis=0), np.mean(zs, axis=0)))


def test_the_regret_of_losses_is_the_regret_without_a_penalty():
    given = problem(A, B, "squared", "none")
    learner = Learner("ncsgd,eta=0.5", "squared", n_features=5)
    by_row, by_piece = Regret(learner, given), LossRegret(learner, given)
    for place in range(0, 30, 10):
        follow(learner, by_row, A[place : place + 10], B[place : place + 10])
        by_piece.learned(A[place : place + 10], B[place : place + 10])
    assert by_piece.total == pytest.approx(30 * by_row.average)


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_lemma_1_of_an_implicit_step(loss):
    given = problem(X, Y, loss, f"l1,l1={L1}")
    for solver, holds in (("fiol,eta=1", True), ("fiol,eta=2", False)):
        learner = Learner(solver, loss, given.penalty, n_features=4)
        tracker = OneStep(learner, given)
        if not holds:  # judged by half its step
            tracker.learner = type("Half", (), {"weights": learner.weights, "engine": Learner("fiol,eta=1", loss).engine})()
        follow(learner, tracker, X, Y)
        assert (tracker.slack >= -1e-9) is holds


def test_the_vi_regret_by_hand():
    given, rho = problem(X, Y, "hinge", f"l1,l1={L1}"), 3.0
    learner = Learner(f"sadmm,rho={rho}", "hinge", given.penalty, "uniform-post", n_features=4)
    tracker = Inequality(learner, given)
    best, total = given.optimum, 0.0
    for row, target in zip(X, Y, strict=True):
        now = learner.variables()
        w, z, mu = (now[letter].copy() for letter in ("w", "z", "mu"))
        loss = lambda v: max(0.0, 1.0 - target * (v @ row))  # noqa: B023, E731
        total += loss(w) - loss(best.w) + L1 * (np.abs(z).sum() - np.abs(best.w).sum())
        total += (w - z) @ best.mu + (mu - best.mu) @ (best.w - best.w)
        follow(learner, tracker, row[None, :], [target])
    assert tracker.regret == pytest.approx(total)
    assert tracker.largest_regret >= total / tracker.right[0] - 1e-12


def test_p4s_lemma_1_by_hand():
    l1, l2 = 0.01, 0.1
    given = problem(X, Y, "hinge", f"elastic-net,l1={l1},l2={l2}")
    learner = Learner("hrmd-w", "hinge", given.penalty, n_features=4)
    follow(learner, tracker := Interlace(learner, given), X, Y)
    G, d, M = np.sqrt((X**2).sum(axis=1).max()), 4, np.abs(X).max() / l2
    cross = np.sqrt(d) * G
    B = (l1 + l2 * M) * cross + d * (l2**2 * M**2 + 2 * l1 * l2 * M + l1**2)
    second = d * (l2**2 * M**2 + 2 * l1 * l2 * M + l1**2) - G**2 + 4 * l1 * cross
    printed = l2 / 2 * max(G**2 + 2 * cross * l1 + d * l1**2, second)
    safe = l2 / 2 * (G**2 + 4 * l1 * cross + d * (l1 + l2 * M) ** 2)
    r = lambda w: l1 * np.abs(w).sum() + l2 / 2 * w @ w  # noqa: E731
    w, ratios = np.zeros(4), []
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        eta = 2 / (l2 * t)
        new = soft(w + eta * y * x * (y * (w @ x) < 1), eta * l1) / (1 + eta * l2)
        ratios.append([(r(w) - r(new)) / (a * eta**2 + B * eta) for a in (printed, safe, 0.0)])
        w = new
    np.testing.assert_allclose(learner.weights(), w)
    found = [tracker.printed_ratio, tracker.corrected_ratio, tracker.bare_ratio]
    assert found == pytest.approx(np.max(ratios, axis=0).tolist())


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_corrected_theorem_4_2_on_every_step(power):
    """13.6: SADMM's loss at z_t, before the row, against the terms that telescope."""
    learner = Learner(f"sadmm,rho=2,schedule={power}", "hinge", f"l1,l1={L1}", n_features=4)
    v, room = np.array([0.5, -0.3, 0.0, 0.1]), []
    z = mu = np.zeros(4)
    for t, (x, y) in enumerate(zip(X, Y, strict=True), 1):
        loss = lambda w: max(0.0, 1.0 - y * (w @ x))  # noqa: B023, E731
        learner.learn(x[None, :], [y])
        now, rho = learner.variables(), 2.0 * t**power
        new, after = now["z"], now["mu"]
        left = loss(z) - loss(v) + L1 * (np.abs(new).sum() - np.abs(v).sum())
        right = x @ x / (2 * rho) + (mu @ mu - after @ after) / (2 * rho)
        right += rho / 2 * (np.sum((z - v) ** 2) - np.sum((new - v) ** 2))
        room.append(right - left)
        z, mu = new.copy(), after.copy()
    assert min(room) >= -1e-12
    assert min(room) < 0.05  # tight on some row


def test_corrected_theorem_3_2_of_csgd_on_every_step():
    """13.6: with the distance of w* from the hyperplane, the inequality holds on steps where the printed one does not."""
    r = np.random.default_rng(5)
    X = np.column_stack([np.ones(200), r.random((200, 3))])
    y = X @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.2 * r.normal(size=200)
    best, w, printed = np.linalg.lstsq(X, y, rcond=None)[0], np.zeros(4), []
    for t in range(1, 201):
        what = w + 0.3 / np.sqrt(t) * (y[t - 1] - w @ X[t - 1]) * X[t - 1]
        mean, target = X[:t].mean(axis=0), y[:t].mean()
        step = (target - mean @ what) / (mean @ mean) * mean
        w = what + step
        far = abs(target - mean @ best) / np.linalg.norm(mean)
        less = np.sum((what - best) ** 2) - np.sum((w - best) ** 2)
        assert less >= step @ step - 2 * far * np.linalg.norm(step) - 1e-12
        printed.append(less >= step @ step - 1e-12)
    assert not all(printed)


def test_wrong_at_a_checkpoint_and_right_at_the_end():
    assert beyond_the_end({"4": "1101", "8": "0110", "16": "1000"}) == [2.0, 2.0, 0.0]
