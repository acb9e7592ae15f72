"""Step sizes by their formulas, from the first step to very late ones."""

from fractions import Fraction
from itertools import pairwise
from math import inf, isqrt, sqrt

import numpy as np
import pytest

from onlinear import schedules
from onlinear.compiled import kernel
from onlinear.learner.parts import build_schedule
from onlinear.schedules import NAMED, Power, TwoPhase
from onlinear.text.form import parts_of

TIMES = [1, 2, 3, 64, 10**6, 10**9, 2**53]
SCHEDULES = [
    Power(0.5, 0.0, 0.0),
    Power(0.5, 0.0, 0.5),
    Power(0.5, 0.0, 1.0),
    Power(0.5, 1.0, 1.0),
    Power(3.0, 10.0, 0.75),
    Power(3.0, 2.5, 0.25),
    TwoPhase(0.5, 5000.0),
    TwoPhase(2.0, 1.0),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_formula(schedule):
    for t in TIMES:
        if isinstance(schedule, Power):
            wanted = np.longdouble(schedule.eta) / (np.longdouble(t) + schedule.t0) ** np.longdouble(schedule.power)
        else:
            root = np.sqrt(np.longdouble(t))
            wanted = schedule.eta / root if t < schedule.m else schedule.eta * np.sqrt(np.longdouble(schedule.m)) / t
        assert schedule.at(t) == pytest.approx(float(wanted), rel=1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_steps_are_positive_and_never_grow(schedule):
    etas = [schedule.at(t) for t in [*range(1, 200), 4999, 5000, 5001, *TIMES[4:]]]
    assert all(0.0 < eta < inf for eta in etas)
    assert all(late <= early for early, late in pairwise(etas))


@kernel
def _at(schedule, times, out):
    for k in range(times.shape[0]):
        out[k] = schedule.at(times[k])


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_compiled_is_interpreted(schedule):
    times = np.array(TIMES)
    out = np.empty(len(times))
    _at(schedule, times, out)
    np.testing.assert_allclose(out, [schedule.at(t) for t in TIMES], rtol=4e-16 if schedule[-1] not in (0.75, 0.25) else 2e-15)


def test_exact_where_numbers_are():
    assert Power(1.0, 0.0, 1.0).at(3) == float(Fraction(1, 3))
    assert Power(1.0, 1.0, 1.0).at(3) == 0.25
    assert [Power(1.0, 0.0, 0.5).at(k * k) for k in (1, 2, 4, 8)] == [1.0, 0.5, 0.25, 0.125]
    assert Power(0.1, 0.0, 0.0).at(10**9) == 0.1


def test_two_phase_is_continuous_at_m():
    for m in (1, 4, 5000, 10**8):
        both = TwoPhase(0.7, float(m)).at(m), 0.7 / sqrt(m)
        assert both[0] == pytest.approx(both[1], rel=4e-16)
    assert isqrt(10**8) == 10**4


def test_every_schedule_of_the_module_has_a_name():
    assert {cls for cls, _ in NAMED.values()} == set(parts_of(vars(schedules)).values())
    wanted = {
        "constant": lambda t: 0.5,
        "inverse-sqrt": lambda t: 0.5 / sqrt(t),
        "inverse": lambda t: 0.5 / t,
        "inverse-shifted": lambda t: 0.5 / (t + 1),
        "power": lambda t: 0.5 / (t + 2) ** 0.8,
        "two-phase": lambda t: 0.5 / sqrt(t) if t < 4 else 0.5 * 2 / t,
    }
    assert set(wanted) == set(NAMED)
    extra = {"power": {"t0": 2.0, "power": 0.8}, "two-phase": {"m": 4.0}}
    for name, formula in wanted.items():
        schedule = build_schedule("solver", Power(), {"schedule": name, "eta": 0.5, **extra.get(name, {})})
        for t in (1, 2, 3, 4, 5, 100):
            assert schedule.at(t) == pytest.approx(formula(t), rel=1e-15)
