"""The best constant: of numbers within the error of their bins, of classes by formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from onlinear import losses
from onlinear.learner.parts import build_loss
from onlinear.softmax import Softmax
from onlinear.training.best_constant import TargetCounts, best_constant, of_classes

NUMBERS = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(factor=3.0),
    "quantile": losses.Quantile(q=0.9),
    "huber": losses.Huber(delta=0.5),
    "epsilon-insensitive": losses.EpsilonInsensitive(eps=0.3),
    "poisson": losses.Poisson(),
}


def constant_of(loss, y, s, cuts=()):
    targets = TargetCounts(None)
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        targets.add(y[first:last], s[first:last])
    return targets, best_constant(loss, targets.points(1, -1.0))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(("n", "tolerance"), [(700, 1e-6), (4000, 2e-3)])
def test_the_best_constant_for_numbers(name, n, tolerance):
    rng, loss = np.random.default_rng(n), NUMBERS[name]
    y = rng.poisson(3.0, n).astype(float) if name == "poisson" else 1e4 + np.exp(rng.standard_normal(n))
    s = rng.integers(0, 4, n) / 2.0
    targets, found = constant_of(loss, y, s)
    factor = getattr(loss, "factor", 1.0)

    def at(c):
        return factor * sum(w * loss.value(c, t) for w, t in zip(s, y, strict=True)) / s.sum()

    low, high = (-2.0, 3.0) if name == "poisson" else (y.min(), y.max())
    wanted = minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).fun
    exact = 1e-6 if name in ("squared", "poisson") else tolerance
    assert found.loss == pytest.approx(wanted, rel=exact)
    cut, again = constant_of(loss, y, s, cuts=(1, 990 % n, 1005 % n))
    assert again == found
    np.testing.assert_array_equal(cut.table, targets.table)


@pytest.mark.parametrize("unit", [2.0**-300, 2.0**-33, 2.0**40, 2.0**300])
def test_the_best_constant_follows_the_unit_of_the_targets(unit):
    y = np.random.default_rng(0).standard_normal(4000)
    for loss, scale in ((losses.Quantile(q=0.9), unit), (losses.Squared(), unit**2)):
        wanted, found = (constant_of(loss, times * y, np.ones(4000))[1] for times in (1.0, unit))
        assert found.loss == pytest.approx(scale * wanted.loss, rel=2e-3)
        assert found.error == pytest.approx(unit * wanted.error, rel=2e-3)
    counts = np.abs(y[:900]) * min(unit, 1.0)
    mean = counts.mean()
    assert constant_of(losses.Poisson(), counts, np.ones(900))[1].loss == pytest.approx(mean - mean * np.log(mean), rel=1e-6)


def test_the_best_constant_of_an_offset_and_of_an_outlier_at_the_start():
    y = np.append(1e9, 1e3 + np.random.default_rng(1).random(5000))
    _, found = constant_of(losses.Absolute(), y, np.ones(5001))
    assert found.loss == pytest.approx(np.abs(y - np.median(y)).mean(), rel=1e-6)


CLASSES = {
    "logistic": lambda p: -p * np.log(p) - (1 - p) * np.log(1 - p),
    "hinge": lambda p: 2 * min(p, 1 - p),
    "squared": lambda p: 2 * p * (1 - p),
    "squared-hinge": lambda p: 2 * p * (1 - p),
    "exponential": lambda p: 2 * np.sqrt(p * (1 - p)),
}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("share", [0.5, 0.1, 1e-4])
def test_the_best_constant_for_two_classes(name, share):
    found = best_constant(build_loss(name), of_classes(np.array([1 - share, share]) * 1e4, 1, -1.0))
    assert found.loss == pytest.approx(CLASSES[name](share), rel=1e-9)
    assert found.error == pytest.approx(share)


def test_the_best_constant_of_one_class_and_of_several():
    assert best_constant(losses.Logistic(), of_classes(np.array([0.0, 9.0]), 1, -1.0)).loss == pytest.approx(0.0, abs=1e-12)
    joined = best_constant(Softmax(), of_classes(np.array([0.0, 9.0, 0.0]), 3, -1.0))
    assert f"{joined.loss:g}" == "0", "it was -0"
    assert best_constant(losses.Hinge(margin=50.0), of_classes(np.array([1.0, 3.0]), 1, -1.0)).loss == pytest.approx(25.0)
    p = np.array([0.5, 0.3, 0.2])
    found = best_constant(losses.Logistic(), of_classes(10.0 * p, 3, -1.0))
    assert found.loss == pytest.approx(sum(CLASSES["logistic"](q) for q in p))
    assert found.error == pytest.approx(0.5)
    assert best_constant(losses.Logistic(), of_classes(np.zeros(2), 1, -1.0)) is None
