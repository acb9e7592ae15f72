"""The duality gap: never below the true distance to the optimum, small at the optimum, the same problem as the objective's."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from seldom import often, seldom
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, OnlineRegressor, QualityWarning, load, streams
from onlinear.certified import above, balanced
from onlinear.certified.passes import take_slopes
from onlinear.learner.loss_sums import LossSum
from onlinear.learner.parts import LOSSES
from onlinear.losses import Absolute, Hinge, Logistic, Poisson

N, D = 80, 5
ACCURATE = {"ftol": 1e-15, "gtol": 1e-10}
PENALTIES = (
    "l1=0.02",
    "l2=0.05",
    "elastic-net,l1=0.02,l2=0.05",
    "none,lower=-0.3,upper=0.4",
    "l1=0.02,lower=0.0",
    "elastic-net,l1=0.01,l2=0.05,lower=-0.2,upper=0.1",
)


def rows_for(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (1.0 + np.arange(D)) * (rng.random((N, D)) < 0.7)
    s = X @ rng.normal(size=D) * 0.3 + rng.normal(size=N)
    rule = getattr(LOSSES[loss], "labels", "real")
    y = {"signs": np.where(s > 0.2, 1.0, -1.0), "counts": np.floor(np.abs(s)), "real": s + 0.5}[rule]
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], N)


def best_objective(learner, X, y, weights):
    """The least objective that L-BFGS finds in scaled columns, from the positive and negative parts of the weights."""
    scales = learner.scaler.scales() if learner.scaler is not None else np.ones(D)
    A = np.column_stack([X / scales, np.ones(N)])
    loss, penalty, slopes = learner.loss, learner.penalty, np.empty(N)

    def value(v):
        w, b = v[:D] - v[D : 2 * D], v[-1]
        scores = A @ np.append(w, b)
        losses = LossSum(loss)
        losses.add(scores[:, None], y[:, None], weights)
        total = losses.value / N
        take_slopes(loss, scores, y, weights, 0.0, slopes)
        g = A.T @ (weights * slopes) / N
        total += penalty.l1 * np.sum(v[:-1]) + 0.5 * penalty.l2 * w @ w
        down = g[:D] + penalty.l2 * w
        return total, np.concatenate([down + penalty.l1, penalty.l1 - down, [g[D] * learner.fit_intercept]])

    high = getattr(penalty, "upper", np.inf), -getattr(penalty, "lower", -np.inf)
    bounds = [(0.0, high[0])] * D + [(0.0, high[1])] * D + [(None, None)]
    found = minimize(value, np.zeros(2 * D + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=ACCURATE)
    return found.fun


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("fit_intercept", "scale"), [seldom(False, "none"), (True, "rms")])
def test_the_gap_is_never_below_the_distance_to_the_optimum(loss, fit_intercept, scale):
    X, y, weights = rows_for(loss)
    for penalty in PENALTIES:
        learner = Learner("fiol,eta=0.5", loss, penalty, scale=scale, fit_intercept=fit_intercept)
        for _ in range(6):
            learner.learn(X, y, weights)
        value, gap = learner.objective(X, y, weights), learner.duality_gap(X, y, weights)
        lowest = -sum(s * learner.loss.conjugate(0.0, t) for s, t in zip(weights, y, strict=True)) / N
        best = best_objective(learner, X, y, weights)
        assert gap * (value - lowest) >= value - best - 1e-12 * abs(value)
        assert gap <= 1.0 + 1e-12


SMOOTH = [name for name, cls in LOSSES.items() if hasattr(cls, "curvature")]


@pytest.mark.parametrize("loss", often(SMOOTH, ["logistic"]))
@pytest.mark.parametrize("fit_intercept", [seldom(False), True])
def test_the_gap_of_the_optimum_is_small(loss, fit_intercept):
    X, y, weights = rows_for(loss)
    X = X / np.abs(X).max(axis=0)
    for penalty in PENALTIES:
        learner = Learner("batch-drs,lam=3.0", loss, penalty, fit_intercept=fit_intercept, n_features=D)
        assert learner.solve(X, y, 1000, weights).duality_gap(X, y, weights) < 1e-6


def test_no_model_is_below_the_bound_where_the_loss_is_flat():
    """Rows of one class: the optimum is 0 and is not reached."""
    X, _, _ = rows_for("logistic")
    learner = Learner("fiol", "logistic", "l1=0.1", fit_intercept=True).learn(X, np.ones(N))
    assert learner.duality_gap(X, np.ones(N)) == 1.0


@pytest.mark.parametrize("l2", [1e-150, 1e-160, 1e-300, 1e-310])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_penalty_that_overflows_certifies_nothing_false(loss, l2):
    X, y, weights = rows_for(loss)
    run = OnlineClassifier(loss, penalty=f"l2={l2:g}", tol=1e-6, max_passes=30)
    with pytest.warns(ConvergenceWarning, match="not known to be near the optimum"):
        run.fit(X, y, weights)
    better = Learner("sgd,eta=0.01", loss, f"l2={l2:g}", fit_intercept=True, scale="rms").learn(X, y, weights)
    assert run.dual_bound_ <= better.objective(X, y, weights)
    assert not run.converged_


@pytest.mark.parametrize("far", [1.7e12, 1e15])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber,delta=1"])
def test_targets_far_from_0_get_their_intercept(loss, far):
    X, y, _ = rows_for("squared")
    y = y * 0.01 * far + far
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # of digits that numbers do not have
        model = OnlineRegressor(loss, penalty="l1=1e-3", tol=1e-4).fit(X, y)
    assert model.score(X, y) > OnlineRegressor(loss, penalty="l1=1e-3", tol=1e-4).fit(X, y / far).score(X, y / far) - 0.05


@pytest.mark.parametrize("y", [0.1, 3.0, 7.7])
def test_targets_that_are_all_one_number_are_certified_at_once(y):
    X, _, _ = rows_for("poisson")
    assert OnlineRegressor("poisson", penalty="l1=0.01", tol=1e-4).fit(X, np.full(N, y)).n_passes_ == 1


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Absolute(), Poisson()])
def test_balanced_slopes_sum_to_zero_and_minimise(loss):
    rng = np.random.default_rng(1)
    scores, s = rng.normal(size=80), rng.choice([0.0, 1.0, 3.0], 80)
    y = np.where(rng.random(80) < 0.4, 1.0, -1.0) if getattr(loss, "labels", "") == "signs" else np.floor(3 * rng.random(80))
    b, theta = balanced(loss, scores, y, s)
    assert abs(s @ theta) < 1e-12 * (s @ np.abs(theta))

    def mean(shift):
        return sum(w * loss.value(a + shift, t) for w, a, t in zip(s, scores, y, strict=True))

    assert all(mean(b) <= mean(b + move) + 1e-12 * abs(mean(b)) for move in (-1e-3, 1e-3, -0.1, 0.1))


def test_unseen_columns_and_wider_rows():
    X, y, _ = rows_for("logistic")
    X[:, 3] = 0.0
    learner = Learner("fiol", "logistic", "l1=0.01", scale="rms").learn(X, y)
    assert learner.duality_gap(np.column_stack([X, np.ones(N)]), y) == learner.duality_gap(X, y)


@pytest.mark.parametrize(
    ("loss", "penalty", "says"),
    [
        ("logistic", "none", "needs l1 > 0, l2 > 0 or bounds"),
        ("logistic", "none,lower=0.0", "needs l1 > 0, l2 > 0 or bounds"),
        ("logistic", "tv=0.1", "needs the conjugate of the penalty"),
    ],
)
def test_refusals(loss, penalty, says):
    X, y, _ = rows_for("logistic")
    learner = Learner("fiol" if "tv" not in penalty else "comid", loss, penalty, n_features=D)
    with pytest.raises(ValueError, match=says):
        learner.duality_gap(X, y)


@pytest.mark.parametrize("weights", [None, "balanced", {"no": 3.0}])
def test_a_stream_gives_a_gap_that_holds(weights):
    X, y, _ = rows_for("logistic")
    names = np.where(y > 0.0, "yes", "no")
    for penalty in PENALTIES:
        model = OnlineClassifier(penalty=penalty, passes=5, random_state=0, class_weight=weights).fit(X, names)
        blocks = [(sp.csr_matrix(X[first : first + 30]), names[first : first + 30]) for first in range(0, N, 30)]
        exact, found = model.duality_gap(X, names), model.duality_gap(blocks)
        assert exact <= found <= 1.0
        assert model.duality_gap([(sp.csr_matrix(X), names)]) == pytest.approx(found, rel=1e-9)
    assert found < 1.0


def test_estimators_take_the_worst_output_and_say_what_is_loose():
    X, y, _ = rows_for("squared")
    Y = np.column_stack([y, -2.0 * y, y**2])
    model = OnlineRegressor(penalty="l2=0.1", passes=20, random_state=0).fit(X, Y)
    each = []
    for target in Y.T:
        learner = OnlineRegressor(penalty="l2=0.1", passes=20, random_state=0).fit(X, target)
        each.append(learner.duality_gap(X, target))
    assert model.duality_gap(X, Y) == pytest.approx(max(each), rel=1e-9)
    kinked = OnlineRegressor("absolute", penalty="l2=0.1", random_state=0).fit(X, y)
    with pytest.warns(QualityWarning, match="Absolute has kinks"):
        kinked.duality_gap(X, y)


def test_what_only_predicts_has_no_gap(tmp_path):
    X, y, _ = rows_for("logistic")
    OnlineClassifier(penalty="l1=0.01").fit(X, y).save(tmp_path / "model", final=True)
    final = load(tmp_path / "model")
    for rows in ((X, y), ([(sp.csr_matrix(X), y)],)):
        with pytest.raises(ValueError, match="only predicts"):
            final.duality_gap(*rows)


def test_words_of_a_gap_have_no_exponent_where_it_is_large():
    assert [above(gap) for gap in (1e-3, 0.5, 0.95, 1.0)] == [
        "at most 0.11 % above the optimum",
        "at most 100 % above the optimum",
        "at most 1,900 % above the optimum",
        "not known to be near the optimum",
    ]


@pytest.mark.parametrize(("gap", "digits"), [(1.234e-2, 2), (9.96e-4, 2), (0.0999, 2), (7.0051e-8, 3), (0.5123, 2), (0.0, 2)])
def test_words_of_a_gap_are_a_bound_in_few_digits(gap, digits):
    said = float(above(gap, digits).split()[2].replace(",", ""))
    exact = 100.0 * gap / (1.0 - gap)
    assert exact <= said <= exact * (1.0 + 10.0 ** (1 - digits))


def test_evaluate_shows_it(tmp_path, monkeypatch):
    from onlinear.cli import app

    monkeypatch.chdir(tmp_path)
    X, y, _ = rows_for("logistic")
    dump_svmlight_file(X, y, "rows.svm", zero_based=False)
    model = OnlineClassifier(penalty="l1=0.01", random_state=0, passes=5).fit(X, y)
    model.save("model")
    shown = CliRunner().invoke(app, ["evaluate", "model", "rows.svm", "--gap"])
    assert shown.exit_code == 0
    assert "the objective is at most" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(app, ["evaluate", "model", "rows.svm", "--gap", "--json"]).output)
    assert told["duality_gap"] == pytest.approx(model.duality_gap(streams.open("rows.svm")), rel=1e-9)
    assert told["gap_is_loose"] is None


@pytest.mark.filterwarnings("ignore:tol=")
@pytest.mark.parametrize("seed", range(4))
def test_counts_of_heavy_rows_do_not_drive_the_dual_ascent_away(seed):
    """A shift of scores of which exp overflows was taken for the one of balanced slopes: infinity is at most infinity."""
    rng = np.random.default_rng(seed)
    X, s = rng.standard_normal((150, 2)), 10.0 ** rng.uniform(-3.0, 3.0, 150)
    y = rng.poisson(np.exp(X @ [2.0, -0.3])).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        ascent = OnlineRegressor("poisson", solver="sdca", penalty="l2=1e-2", max_passes=300).fit(X, y, s)
    newton = OnlineRegressor("poisson", solver="prox-newton", penalty="l2=1e-2").fit(X, y, s)
    assert newton.converged_
    assert ascent.objective_ - newton.objective_ < 0.2 * abs(newton.objective_)
    scores = np.array([1000.0, 0.0, -3.0])
    b, theta = balanced(Poisson(), scores, np.array([1.0, 2.0, 0.0]), np.ones(3))
    assert b == pytest.approx(np.log(3.0) - 1000.0)
    assert abs(theta.sum()) < 1e-9
