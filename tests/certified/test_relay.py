"""Losses with kinks end at the gap within the passes: the ascent while it is fast enough, steps in the slopes after it."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import Learner, OnlineClassifier, OnlineRegressor
from onlinear.certified.columns import Stored, Table
from onlinear.certified.newton import Limits
from onlinear.certified.relay import Relay, is_slow
from onlinear.learner.parts import LOSSES, build_penalty
from onlinear.solvers.core.certified import counted

KINKED = [name for name in LOSSES if not hasattr(LOSSES[name], "curvature")]


def csr_parts(X):
    """Starts, places and values of the rows."""
    rows = sp.csr_array(X)
    return rows.indptr, rows.indices, rows.data


def rows_for(loss, n, d, seed=0):
    """Rows of zeros and ones, and targets."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.2).astype(float)
    s = X @ rng.normal(size=d) * 0.3 + rng.normal(size=n)
    return X, np.where(s > 0.0, 1.0, -1.0) if loss == "hinge" else s


@pytest.mark.parametrize(
    ("loss", "penalty", "n", "d"),
    [
        ("hinge", "l2=1e-3", 20, 495),
        ("hinge", "l2=1e-3", 1000, 100),
        ("hinge", "none,lower=-0.3,upper=0.4", 1000, 100),
        ("hinge", "elastic-net,l1=1e-4,l2=1e-3", 1000, 100),
        ("absolute", "l2=1e-3", 20, 495),
        ("quantile,q=0.9", "l2=1e-3", 1000, 100),
        ("epsilon-insensitive", "l2=1e-3", 1000, 100),
        ("absolute", "none,lower=-0.1,upper=0.1", 200, 30),
    ],
)
def test_fits_that_the_ascent_leaves_far_from_the_gap_end_there(loss, penalty, n, d):
    X, y = rows_for(loss, n, d)
    kind = OnlineClassifier if loss == "hinge" else OnlineRegressor
    model = kind(loss, penalty=penalty, tol=1e-4).fit(X, y)
    assert model.converged_
    assert model.dual_gap_ <= 1e-4
    assert model.n_passes_ <= 100


@pytest.mark.parametrize("loss", KINKED)
def test_where_the_ascent_is_fast_enough_it_ends_the_fit(loss):
    X, y = rows_for(loss, 1000, 10)
    learners = [
        Learner(f"{solver},tol=1e-3", loss, "l2=0.1", n_features=10).solve(X, y, 100) for solver in ("prox-newton", "sdca")
    ]
    np.testing.assert_array_equal(*(learner.weights() for learner in learners))
    assert counted(learners[0].states[0]) == counted(learners[1].states[0])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2=1e-3", "none,lower=-1.0,upper=1.0"])
@pytest.mark.parametrize("loss", KINKED)
def test_the_other_method_goes_on_from_what_is_found(loss, penalty, fit_intercept):
    X, y = rows_for(loss, 200, 30)
    table = Table(*(np.asarray(part, kind) for part, kind in zip(csr_parts(X), (np.int64, np.uint32, np.float64), strict=True)))
    given = Stored(table, 30), 30, LOSSES[loss](), build_penalty(penalty), y, np.ones(200), fit_intercept
    reports = []
    found = Relay(*given).solve(np.zeros(30), 0.0, Limits(1e-5, 200), lambda report: bool(reports.append(report)))
    passes, bounds = [report.passes for report in reports], [report.gap.bound for report in reports]
    assert passes == sorted(set(passes))
    assert bounds == sorted(bounds)
    assert found.gap == reports[-1].gap
    assert found.gap.relative <= 1e-5
    assert found.passes == passes[-1]
    losses = [given[2].value(*of) for of in zip(X @ found.w + found.b, y, strict=True)]
    value = np.mean(losses) + 0.5 * given[3].l2 * found.w @ found.w
    assert value == pytest.approx(found.gap.objective, rel=1e-9)
    for last in passes[:: len(passes) // 4]:
        cut = Relay(*given).solve(np.zeros(30), 0.0, Limits(1e-5, 200), lambda report, last=last: report.passes >= last)
        assert cut.passes == last


@pytest.mark.parametrize(
    ("looks", "slow"),
    [
        ([(12, 1.0), (17, 1.0)], False),  # too early to tell
        ([(12, 1.0), (17, 1.0), (22, 1.0)], True),  # it does not fall
        ([(12, 1.0), (17, 1.0), (22, 0.01)], False),
        ([(12, 1.0), (20, 0.01), (30, 0.009)], True),  # it fell before
        ([(12, 1.0), (20, 0.01), (30, 0.009), (33, 1e-5)], False),  # it is there
        ([(12, 1.0), (40, 0.1), (50, 0.01)], False),  # 20 more passes: just in time
        ([(12, 1.0), (50, 0.1), (60, 0.01)], True),
    ],
)
def test_the_ascent_is_slow_where_its_gap_would_not_fall_in_time(looks, slow):
    assert is_slow(looks, 1e-4) is slow
