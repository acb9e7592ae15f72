"""Sums of resting weights in closed form, against exact arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from onlinear.averages import NAMED, Average
from onlinear.compiled import kernel
from onlinear.solvers.core.resting import digamma_difference, idle_sum, positive_sum

BERNOULLI = [
    Fraction(1, 6),
    Fraction(-1, 30),
    Fraction(1, 42),
    Fraction(-1, 30),
    Fraction(5, 66),
    Fraction(-691, 2730),
    Fraction(7, 6),
]


@kernel
def sums(numbers, out):
    for e in range(numbers.shape[0]):
        v, D, k, shrink, om, growth, m = numbers[e]
        out[e] = positive_sum(v, D, k, shrink, om, growth, m)


def psi(x):
    """The digamma function, to more than 30 digits."""
    total = Decimal(0)
    while x < 2000:
        total -= 1 / x
        x += 1
    series = sum(
        (Decimal(b.numerator) / b.denominator / (2 * e * x ** (2 * e)) for e, b in enumerate(BERNOULLI, start=1)), Decimal(0)
    )
    return total + x.ln() - 1 / (2 * x) - series


def exact(v, D, k, shrink, om, growth, m):
    """The sum in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        v, D, k, shrink, om, growth, m = (Decimal(float(number)) for number in (v, D, k, shrink, om, growth, m))
        if shrink == 0:
            first, second = m * (m - 1) / 2, (m - 1) * m * (2 * m - 1) / 6
            return (om * v * m + (growth * v - om * k) * first - growth * k * second) / D
        h = D / shrink
        linear = growth * v - om * k + growth * k * h
        rest = (om - growth * h) * (v + k * h) * (psi(h + m) - psi(h))
        return (linear * m - growth * k * m * (m - 1) / 2 + rest) / shrink


@pytest.mark.parametrize("longest", [2, 6, 9, 15])
@pytest.mark.parametrize("shrinks", [False, True])
def test_sums_of_any_length(longest, shrinks):
    rng = np.random.default_rng(longest)
    cases = []
    for _ in range(150):
        m, D, v = np.floor(10.0 ** rng.uniform(0, longest)), 10.0 ** rng.uniform(-6, 6), 10.0 ** rng.uniform(-6, 6)
        k = float(rng.integers(0, 2)) * 10.0 ** rng.uniform(-8, 2)
        v = k * (m - 1.0 + rng.uniform(0.01, 1.0)) if k * m > v else v  # the last term is the last above 0
        growth = float(rng.integers(0, 2))
        om = 1.0 + growth * np.floor(10.0 ** rng.uniform(0, longest))
        cases.append((v, D, k, 10.0 ** rng.uniform(-14, 2) if shrinks else 0.0, om, growth, m))
    found = np.empty(len(cases))
    sums(np.array(cases), found)
    for case, got in zip(cases, found, strict=True):
        want = exact(*case)
        assert abs(Decimal(float(got)) - want) <= Decimal("1e-12") * want, case


def test_a_few_terms_are_their_sum():
    for m in (1.0, 5.0, 33.0, 100.0):
        terms = [(2.0 + 3.0 * i) * (7.0 - 0.05 * i) / (1.5 + 0.25 * i) for i in range(int(m))]
        np.testing.assert_allclose(positive_sum(7.0, 1.5, 0.05, 0.25, 2.0, 3.0, m), sum(terms), rtol=1e-13)


def test_the_digamma_function_at_whole_numbers():
    np.testing.assert_allclose(digamma_difference(1.0, 40.0), sum(1.0 / i for i in range(1, 41)), rtol=1e-14)


@pytest.mark.parametrize("average", [*NAMED.values(), Average(1.0, 0.0, 7.0), Average(1.0, 1.0, 3.0, True)])
@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.03, 0.0), (0.0, 0.2), (0.03, 0.2)])
def test_any_stretch_of_steps(average, grows, l1, l2):
    for z, stamp, t in ((1.3, 0, 90), (-0.4, 5, 9), (-2.0, 12, 60), (0.8, 4, 4), (0.0, 0, 9)):
        want = 0.0
        for k in range(stamp + 1, t + 1):
            times = k - 1.0 if grows else min(k - 1.0, 1.0)
            want -= average.om(k) * np.sign(z) * max(abs(z) - times * l1, 0.0) / (0.7 + times * l2)
        np.testing.assert_allclose(idle_sum(z, 0.7, l1, l2, grows, float(stamp), t, average), want, rtol=1e-12, atol=1e-15)
