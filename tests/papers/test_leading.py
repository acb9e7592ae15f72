"""CSGD with k hyperplanes: one is CSGD's, and more keep the normal equations of more features."""

import numpy as np
import pytest

from onlinear.papers.leading import Leading, solver_of
from onlinear.penalties import ElasticNet
from onlinear.schedules import Power, TwoPhase
from onlinear.solvers.csgd import Csgd


def learned(solver, X, y):
    """The state after the rows, by the step as it is written."""
    U = np.zeros((len(solver.letters), X.shape[1] + 1))
    solver.begin(U, None)
    for t, (x, target) in enumerate(zip(X, y, strict=True), start=1):
        solver.step(U, np.concatenate([[0.0], x]), target, 1.0, t, None, ElasticNet())
    return U


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 6))
    X[:, 0] = 1.0
    return X, X @ rng.normal(size=6) + 0.2 * rng.normal(size=300)


@pytest.mark.parametrize("schedule", [Power(0.1), TwoPhase(0.1, 100.0)])
def test_one_hyperplane_is_csgd(rows, schedule):
    np.testing.assert_allclose(learned(Leading(schedule), *rows)[0], learned(Csgd(schedule), *rows)[0], rtol=1e-8, atol=1e-10)


def test_weights_end_on_all_hyperplanes(rows):
    w, r, *Q = learned(Leading(Power(0.1), 4), *rows)[:6]
    np.testing.assert_allclose(Q @ w, r[1:5], rtol=1e-9)


def test_as_many_hyperplanes_as_features_fit_exact_rows():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(200, 4)), rng.normal(size=4)
    np.testing.assert_allclose(learned(Leading(Power(0.05), 4), X, X @ w)[0, 1:], w, rtol=1e-8)


def test_other_solvers_stay_text():
    assert solver_of("csgd,eta=0.1,m=5") == "csgd,eta=0.1,m=5"
    assert solver_of("leading,eta=2,k=5") == Leading(Power(2.0), 5)
