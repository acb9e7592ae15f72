"""The two solvers reach the optimum of every loss and penalty, certified; what is certified holds."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from seldom import often

from onlinear import Learner
from onlinear.certified import balance
from onlinear.certified.columns import Stored, Table
from onlinear.certified.curvatures import gram
from onlinear.certified.models import solve_face
from onlinear.certified.passes import take_slopes
from onlinear.certified.prox_newton import ProxNewton
from onlinear.learner.loss_sums import LossSum
from onlinear.learner.parts import LOSSES
from onlinear.penalties import ElasticNet
from onlinear.solvers.core.certified import certificate, counted

N, D = 160, 9
SMOOTH = [name for name, cls in LOSSES.items() if hasattr(cls, "curvature")]
KINKED = [name for name in LOSSES if name not in SMOOTH]
PENALTIES = ("l1=0.01", "l1=1e-4", "l2=0.01", "elastic-net,l1=0.01,l2=0.01", "elastic-net,l1=0.01,l2=0.01,lower=-0.1,upper=0.2")
BOXES = ("none,lower=-0.3,upper=0.4", "l1=0.02,lower=0.0")


def rows_for(loss, seed=0):
    """Rows with a constant, a repeated and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    X[:, 3], X[:, 5], X[:, 7] = 1.0, X[:, 2], 0.0
    s = X @ rng.normal(size=D) + rng.normal(size=N)
    rule = getattr(LOSSES[loss], "labels", "real")
    y = {"signs": np.where(s > 0.2, 1.0, -1.0), "counts": np.floor(np.abs(s)), "real": s + 0.5}[rule]
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], N)


def solved(solver, loss, penalty, X, y, weights, fit_intercept=False, passes=300, **settings):
    learner = Learner(solver, loss, penalty, fit_intercept=fit_intercept, n_features=X.shape[1], **settings)
    return learner.solve(X, y, passes, weights)


def by_lbfgs(learner, X, y, weights):
    """The least objective that L-BFGS finds, from the positive and negative parts of the weights."""
    n, d = X.shape
    loss, penalty, slopes = learner.loss, learner.penalty, np.empty(n)

    def value(v):
        w, b = v[:d] - v[d : 2 * d], v[-1]
        scores, losses = X @ w + b, LossSum(loss)
        losses.add(scores[:, None], y[:, None], weights)
        take_slopes(loss, scores, y, weights, 0.0, slopes)
        pull = X.T @ (weights * slopes) / n + penalty.l2 * w
        total = losses.value / n + penalty.l1 * np.sum(v[:-1]) + 0.5 * penalty.l2 * w @ w
        return total, np.concatenate([pull + penalty.l1, penalty.l1 - pull, [learner.fit_intercept * weights @ slopes / n]])

    bounds = [(0.0, getattr(penalty, "upper", np.inf))] * d + [(0.0, -getattr(penalty, "lower", -np.inf))] * d + [(None, None)]
    options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000, "maxfun": 20000}
    return minimize(value, np.zeros(2 * d + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun


@pytest.mark.parametrize("loss", often(SMOOTH, SMOOTH[::2]))
def test_prox_newton_reaches_the_optimum(loss):
    X, y, s = rows_for(loss)
    turns = [(k % 2 == 1, penalty) for k, penalty in enumerate((*PENALTIES, *BOXES), SMOOTH.index(loss))]
    for (turn, penalty), weights in itertools.product(turns, (np.ones(N), s)):
        fit_intercept = turn == (weights is s)
        learner = solved("prox-newton,tol=1e-8", loss, penalty, X, y, weights, fit_intercept)
        assert learner.duality_gap(X, y, weights) <= 1e-7, (penalty, fit_intercept)
        if penalty in ("l1=0.01", BOXES[1]):
            best = by_lbfgs(learner, X, y, weights)
            assert learner.objective(X, y, weights) <= best + 1e-7 * abs(best)


@pytest.mark.parametrize("loss", often(KINKED, ["hinge", "quantile"]))
def test_steps_in_the_slopes_reach_the_optimum_of_losses_with_kinks(loss):
    X, y, s = rows_for(loss)
    weightings = (False, np.ones(N)), (True, np.ones(N)), (True, s)
    for penalty, (fit_intercept, weights) in itertools.product((*PENALTIES, *BOXES), weightings):
        learner = solved("prox-newton,tol=1e-4", loss, penalty, X, y, weights, fit_intercept, 200)
        found = certificate(learner.states[0])
        assert found.relative <= 1e-4, (penalty, fit_intercept, weights is s)
        assert learner.objective(X, y, weights) == pytest.approx(found.objective, rel=1e-9)
        if penalty == PENALTIES[3]:
            other = certificate(solved("sdca,tol=1e-3", loss, penalty, X, y, weights, fit_intercept, 3000).states[0])
            assert other.objective >= found.bound - 1e-9
            assert other.bound <= found.objective + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_ascent_reaches_the_optimum(loss):
    X, y, s = rows_for(loss)
    for penalty, fit_intercept in itertools.product(PENALTIES[:1] + PENALTIES[2:], (False, True)):
        tol = 1e-4 if loss in KINKED else 1e-6
        learner = solved(f"sdca,tol={tol}", loss, penalty, X, y, s, fit_intercept, 3000)
        state = learner.states[0].now
        objective, bound, lowest = state[16:19]
        assert objective - bound <= tol * (objective - lowest), (penalty, fit_intercept)
        assert learner.objective(X, y, s) == pytest.approx(objective, rel=1e-9)
        if hasattr(learner.loss, "curvature"):
            other = solved("prox-newton,tol=1e-8", loss, penalty, X, y, s, fit_intercept)
            assert other.objective(X, y, s) >= bound - 1e-9 * abs(objective)


@pytest.mark.parametrize("solver", ["prox-newton", "sdca"])
def test_a_penalty_that_keeps_all_weights_at_0_is_certified_at_once(solver):
    X, y, _ = rows_for("logistic")
    learner = solved(solver, "logistic", "l1=5.0", X, y, None, True, 10)
    assert not learner.weights().any()
    assert learner.states[0].now[20] <= 4.0  # passes


@pytest.mark.parametrize("solver", ["prox-newton", "sdca"])
def test_layouts_scales_and_further_calls(solver):
    X, y, s = rows_for("squared-hinge")
    first = solved(solver, "squared-hinge", "l1=0.01", X, y, s, True, scale="rms")
    again = solved(solver, "squared-hinge", "l1=0.01", sp.csc_array(X), y, s, True, scale="rms")
    np.testing.assert_array_equal(first.weights(), again.weights())
    scales = np.array([np.sqrt(np.mean(x[(x != 0.0) & (s > 0.0)] ** 2)) if np.any(x[s > 0.0]) else 1.0 for x in X.T])
    by_hand = solved(f"{solver},tol=1e-6", "squared-hinge", "l1=0.01", X / scales, y, s, True)
    finer = solved(f"{solver},tol=1e-6", "squared-hinge", "l1=0.01", X, y, s, True, scale="rms")
    assert finer.objective(X, y, s) == pytest.approx(by_hand.objective(X / scales, y, s), rel=2e-6)
    before = first.objective(X, y, s)
    assert first.solve(X, y, 5, s).objective(X, y, s) <= before * (1.0 + 1e-12)


def test_a_start_far_away_and_many_rows_to_a_column_reach_the_optimum():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 8))
    y = np.where(X @ rng.normal(size=8) + 0.3 * rng.normal(size=900) > 0.0, 1.0, -1.0)
    from_0 = solved("prox-newton,tol=1e-8", "logistic", "l1=1e-3", X, y, None, True)
    for start in (20.0 * rng.normal(size=(8, 1)), np.full((8, 1), -50.0)):
        learner = Learner("prox-newton,tol=1e-8", "logistic", "l1=1e-3", fit_intercept=True, n_features=8)
        learner.solve_whole(learner.whole(X, y), 60, (start, np.zeros(1)))
        np.testing.assert_allclose(learner.weights(), from_0.weights(), rtol=1e-5)


@pytest.mark.parametrize("d", [4, 400])
def test_few_and_many_columns_separable_rows_and_raw_scales(d):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, d)) * 10.0 ** rng.integers(-1, 2, d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)  # separable
    for loss, penalty in itertools.product(("logistic", "squared-hinge", "huber", "modified-huber"), ("l1=0.02", "l2=0.1")):
        learner = solved("prox-newton,tol=1e-6", loss, penalty, X, y, None, True)
        assert learner.duality_gap(X, y) <= 1e-6


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "says"),
    [
        ("prox-newton", "logistic", "tv=0.1", "takes l1, l2 and elastic-net"),
        ("sdca", "logistic", "none", "without a penalty a duality gap says nothing"),
    ],
)
def test_refusals(solver, loss, penalty, says):
    with pytest.raises(ValueError, match=says):
        Learner(solver, loss, penalty, n_features=3)


@pytest.mark.parametrize("solver", ["prox-newton", "sdca"])
def test_rows_one_by_one_are_refused_and_averages_too(solver):
    X, y, _ = rows_for("logistic")
    with pytest.raises(ValueError, match="takes all rows at once"):
        Learner(solver, "logistic", "l1=0.1", n_features=D).learn(X, y)
    with pytest.raises(ValueError, match="has no average"):
        Learner(solver, "logistic", "l1=0.1", "uniform", n_features=D)


def one_hot(loss, n):
    """Sparse rows of one-hot columns, which add up to one another, targets, and weights."""
    rng = np.random.default_rng(3)
    X = sp.csr_array(sp.hstack([sp.csr_array(np.eye(k)[rng.integers(k, size=n)]) for k in (2, 5, 8, 16, 30, 40)]))
    s = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n)
    rule = getattr(LOSSES[loss], "labels", "real")
    y = {"signs": np.where(s > 0.2, 1.0, -1.0), "counts": np.floor(np.abs(s)), "real": s}[rule]
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], n)


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", ["l1=1e-3", "l1=1e-4", "l1=1e-5", "elastic-net,l1=1e-4,l2=1e-4", "l2=1e-4"])
def test_the_matrix_on_sparse_rows(loss, penalty):
    X, y, s = one_hot(loss, 6000)
    for fit_intercept, weights in itertools.product((False, True), (None, s)):
        learner = solved("prox-newton,tol=1e-6", loss, penalty, X, y, weights, fit_intercept, 100)
        assert learner.duality_gap(X, y, weights) <= 1.0001e-6


@pytest.mark.exhaustive
@pytest.mark.parametrize("loss", KINKED)
@pytest.mark.parametrize("penalty", ["l1=1e-2", "elastic-net,l1=1e-3,l2=1e-3", "l2=1e-3"])
def test_the_matrix_of_losses_with_kinks(loss, penalty):
    X, y, s = one_hot(loss, 1500)
    for fit_intercept, weights in itertools.product((False, True), (np.ones(1500), s)):
        for solver, passes in (("sdca", 20_000), ("prox-newton", 300)):
            learner = solved(f"{solver},tol=1e-4", loss, penalty, X, y, weights, fit_intercept, passes)
            assert certificate(learner.states[0]).relative <= 1e-4, (solver, fit_intercept, weights is s)


@pytest.mark.parametrize("l1", [1e-3, 1e-5])
def test_a_quadratic_with_few_columns_takes_the_fewest_passes(l1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10)) + 2.0 * rng.normal(size=(600, 1))  # columns that depend on each other
    y = X @ rng.normal(size=10) + rng.normal(size=600)
    learner = solved("prox-newton,tol=1e-8", "squared", f"l1={l1}", X, y, np.ones(600), True)
    assert certificate(learner.states[0]).relative <= 1e-8
    assert counted(learner.states[0])[1] == 2


@pytest.mark.parametrize(("m", "entries", "pairs", "gram"), [(450, 1.4e6, 1.1e8, True), (450, 2e4, 7e5, False)])
def test_curvatures_are_summed_where_conjugate_gradients_would_read_more(m, entries, pairs, gram):
    rows = Stored(Table(np.zeros(N + 1, np.int64), np.empty(0, np.uint32), np.empty(0)), 500)
    given = rows, 500, LOSSES["logistic"](), ElasticNet(1e-4), np.ones(N), np.ones(N), False
    run = ProxNewton(*given)
    run.w = np.where(np.arange(500) < m - 30, 1.0, 0.0)
    assert run.costs.prefers_gram(m, int(entries), pairs, int(np.count_nonzero(run.w)), False) is gram


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 1.0])
def test_curvatures_of_dense_and_sparse_rows_are_the_same(share):
    rng = np.random.default_rng(4)
    for n, m in ((1, 1), (3, 5), (4, 2), (9, 7)):
        X = np.where(rng.random((n, m)) < share, rng.normal(size=(n, m)), 0.0)
        rows, h = sp.csr_array(X), rng.choice([0.0, 0.5, 2.0], n)
        H = gram(Table(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data), h, m)
        full = np.column_stack([X, np.ones(n)])
        np.testing.assert_allclose(H, full.T @ (h[:, None] * full), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 9])
def test_a_system_on_some_coordinates(size):
    rng = np.random.default_rng(size)
    A = rng.normal(size=(12, 10))
    H, r, members = A.T @ A, rng.normal(size=size), np.sort(rng.choice(10, size, replace=False))
    x, ridge = np.zeros(size), np.diag(0.3 * (members < 9))  # the last coordinate is an intercept
    solve_face(H, r.copy(), 0.3, 9, members, np.empty((size, size)), x)
    np.testing.assert_allclose((H[np.ix_(members, members)] + ridge) @ x, r, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("penalty", ["l1=1e-4", "l2=1e-4", "l1=0.05"])
def test_the_matrix_of_a_quadratic_is_used_again(penalty):
    rng = np.random.default_rng(1)
    X = np.hstack([rng.normal(size=(90, 60)) @ rng.normal(size=(60, 60)), np.zeros((90, 3))])
    y = X[:, :60] @ rng.normal(size=60) + rng.normal(size=90)
    ends = []
    for start in (0.0, 2.0):  # weights of columns without entries, too
        learner = Learner("prox-newton,tol=1e-10", "squared", penalty, fit_intercept=True, n_features=63)
        learner.solve_whole(learner.whole(X, y), 200, (np.full((63, 1), start), np.ones(1)))
        assert certificate(learner.states[0]).relative <= 1e-10
        ends.append(learner.weights())
    np.testing.assert_allclose(*ends, atol=1e-6)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_balance_that_holds_but_for_rounding_is_not_searched(seed, monkeypatch):
    calls = []
    monkeypatch.setattr(balance, "take_slopes", lambda *given: calls.append(1) or take_slopes(*given))
    rng, loss, n = np.random.default_rng(seed), LOSSES["logistic"](), 15_000
    y, scores, s = np.where(rng.random(n) < 0.3, 1.0, -1.0), rng.normal(size=n), rng.random(n)
    b, _ = balance.balanced(loss, scores, y, s)
    calls.clear()
    _, theta = balance.balanced(loss, scores, y, s, b)
    assert abs(s @ theta) <= 1e-15 * (s @ np.abs(theta))
    assert len(calls) <= 12


def test_hard_steps_in_the_slopes_are_made_again_before_mu_falls():
    rng = np.random.default_rng(0)
    X = sp.random(400, 800, 0.02, format="csr", random_state=0)
    X.data[:] = rng.normal(size=X.nnz)
    y = np.sign(X @ (rng.normal(size=800) * (rng.random(800) < 0.2)) + 0.5 * rng.normal(size=400))
    learner = solved("prox-newton,tol=1e-4", "hinge", "l1=1e-3", X, y, np.ones(400), True)
    assert certificate(learner.states[0]).relative <= 1e-4
    assert counted(learner.states[0])[1] <= 140


@pytest.mark.parametrize(("loss", "seeds"), [("hinge", (1, 5, 13)), ("absolute", (2, 29))])
@pytest.mark.parametrize("bounds", ["", ",lower=-0.1,upper=0.3"])
def test_steps_in_the_slopes_leave_where_no_row_has_curvature(loss, seeds, bounds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 5)) * [1.0, 1.0, 3.0, 0.3, 1.0]
        y = X @ rng.normal(size=5) * 0.5 + rng.normal(size=50) * 0.5
        y = np.sign(y) if loss == "hinge" else y
        learner = solved("prox-newton,tol=1e-6", loss, f"l1=0.1{bounds}", X, y, np.ones(50))
        assert certificate(learner.states[0]).relative <= 1e-6


@pytest.mark.parametrize(
    ("loss", "seeds"), [("hinge", (2, 11, 29, 45)), ("absolute", (13, 23, 52, 58)), ("epsilon-insensitive", (0, 9, 17, 48))]
)
def test_steps_in_the_slopes_leave_bounds_where_no_row_of_a_column_has_curvature(loss, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.poisson(1.0, (30, 6)).astype(float)
        y = X @ rng.normal(size=6) + 5.0 * rng.normal(size=30)
        y = np.sign(y) if loss == "hinge" else y
        learner = Learner("prox-newton,tol=1e-6", loss, "l1=1e-3,lower=-0.1,upper=0.2", fit_intercept=False, n_features=6)
        start = np.where(rng.random((6, 1)) < 0.5, 0.2, -0.1)
        learner.solve_whole(learner.whole(X, y), 100, (start, np.zeros(1)))
        assert certificate(learner.states[0]).relative <= 1e-6, seed


@pytest.mark.parametrize("l1", [1e-3, 1e-4])
def test_curvatures_that_are_raised_again_and_again_do_not_hold_a_run_up(l1):
    rng = np.random.default_rng(0)
    X = (rng.random((200, 2)) < 0.08).astype(float)
    y = np.where(X.any(axis=1), -1.0, 1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    learner = solved("prox-newton,tol=1e-6", "logistic", f"l1={l1}", X, y, np.ones(200), passes=60)
    assert certificate(learner.states[0]).relative <= 1e-6


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber", "squared-hinge", "modified-huber"])
def test_rows_that_weights_within_bounds_fit_but_for_rounding_are_certified(loss, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 100))
    y = X @ rng.uniform(-0.5, 0.5, 100)
    y = y + 1e6 * fit_intercept if loss in ("squared", "huber") else np.sign(y)
    learner = solved("prox-newton,tol=1e-6", loss, "none,lower=-1,upper=1", X, y, np.ones(50), fit_intercept, 30)
    found = certificate(learner.states[0])
    assert found.relative <= 1e-6
    assert abs(learner.objective(X, y) - found.objective) <= 1e-15


@pytest.mark.parametrize("penalty", ["l1=2e-6", "l1=2e-3,lower=-0.5,upper=0.3"])
def test_columns_that_are_many_times_the_rows_are_no_hindrance(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 50))
    y = X[:, :10].sum(axis=1) + rng.normal(size=5)
    assert certificate(solved("prox-newton,tol=1e-6", "squared", penalty, X, y, None, passes=30).states[0]).relative <= 1e-6


@pytest.mark.parametrize(
    ("loss", "penalty", "n", "d"),
    [
        ("squared-hinge", "l2=1e-6", 50, 30),
        ("squared-hinge", "l1=1e-6", 100, 10),
        ("hinge", "l1=1e-3,lower=-0.3,upper=0.3", 50, 80),
    ],
)
def test_steps_that_crawl_where_curvatures_jump_go_to_the_lowest_point_along_them(loss, penalty, n, d):
    rng = np.random.default_rng(0 if d < 80 else 1)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + 0.5 * (d == 80) * rng.normal(size=n) > 0.0, 1.0, -1.0)
    learner = solved("prox-newton,tol=1e-6", loss, penalty, X, y, None, passes=60)
    found = certificate(learner.states[0])
    assert found.relative <= 1e-6
    assert learner.objective(X, y) == pytest.approx(found.objective, rel=1e-8)


def test_an_objective_near_0_of_a_loss_with_kinks_is_that_of_the_weights_scored_afresh():
    rng = np.random.default_rng(0)
    n = int(rng.integers(3, 8))
    X = rng.normal(size=(n, 2 * n))
    y = X @ rng.normal(size=2 * n) * 0.1
    learner = solved("prox-newton,tol=1e-9", "quantile,q=0.3", "l1=1e-10", X, y, None, passes=60)
    w = learner.weights().astype(np.longdouble)
    off = y - X.astype(np.longdouble) @ w
    true = float(np.mean(np.where(off > 0.0, 0.3 * off, -0.7 * off)) + 1e-10 * np.sum(np.abs(w)))
    assert certificate(learner.states[0]).objective == pytest.approx(true, rel=1e-7, abs=0.0)
