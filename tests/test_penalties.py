"""Every penalty: its prox is the argmin, its clock is the prox repeated, its zeros are zeros; the taut string is exact."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinear import penalties
from onlinear.penalties import Box, ElasticNet, FusedLasso, register, taut_string

SEPARABLE = [
    ElasticNet(),
    ElasticNet(l1=0.3),
    ElasticNet(l2=0.7),
    ElasticNet(l1=0.3, l2=0.7),
    ElasticNet(l1=1e-9, l2=50.0),
    Box(upper=1.0),
    Box(l1=0.3, lower=0.0),
    Box(l1=0.2, l2=0.5, lower=-0.25, upper=2.0),
    Box(l1=0.2, lower=0.0, upper=0.0),
]
FUSED = [
    FusedLasso(tv=0.4),
    FusedLasso(l1=0.2),
    FusedLasso(tv=0.4, l1=0.2),
    FusedLasso(tv=0.4, l2=0.8),
    FusedLasso(tv=0.4, l1=0.2, l2=0.8),
    FusedLasso(tv=0.4, l1=0.2, l2=0.8, lower=-0.3, upper=0.6),
    FusedLasso(tv=1e3, lower=0.0),
]
every_separable = pytest.mark.parametrize("penalty", SEPARABLE, ids=repr)
every_penalty = pytest.mark.parametrize("penalty", SEPARABLE + FUSED, ids=repr)
steps = st.one_of(st.just(0.0), st.sampled_from([1e-12, 1e-6, 1e3]), st.floats(0, 10))
weights = st.one_of(st.just(0.0), st.floats(-5, 5), st.sampled_from([1e-300, -1e-12, 1e6, 0.3, -0.3]))


def positive_zero(w):
    return not np.any((np.asarray(w) == 0.0) & np.signbit(w))


@every_penalty
@given(v=st.lists(st.floats(-6, 6), min_size=1, max_size=8), eta=steps, seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_prox_beats_every_other_point(penalty, v, eta, seed):
    v = np.array(v)
    w = penalty.prox(v, eta)
    assert math.isfinite(penalty.value(w))
    assert positive_zero(w)
    if eta == 0.0:
        np.testing.assert_array_equal(
            w, np.clip(v, getattr(penalty, "lower", -np.inf), getattr(penalty, "upper", np.inf)) + 0.0
        )
        return

    def cost(x):
        return eta * penalty.value(x) + 0.5 * np.sum((x - v) ** 2)

    rng = np.random.default_rng(seed)
    others = [w + scale * rng.standard_normal(len(w)) for scale in (1e-6, 1e-3, 0.1, 3.0) for _ in range(4)]
    others += [np.zeros(len(w)), v, np.full(len(w), v.mean())]
    low, high = getattr(penalty, "lower", -np.inf), getattr(penalty, "upper", np.inf)
    for other in others:
        other = np.clip(other, low, high)
        # strong convexity: the prox wins by half the squared distance
        assert cost(w) + 0.5 * np.sum((other - w) ** 2) <= cost(other) + 1e-12 * (1 + abs(cost(other)))


@every_separable
@given(v=weights, eta=steps)
@settings(max_examples=40, deadline=None)
def test_prox_of_a_number_is_the_prox_of_a_vector(penalty, v, eta):
    one, many = penalty.prox(v, eta), penalty.prox(np.array([v, -v]), eta)
    assert one == many[0]
    assert positive_zero(one)
    assert positive_zero(many)


@every_separable
@given(w=weights, etas=st.lists(steps, max_size=20))
@settings(max_examples=80, deadline=None)
def test_the_clock_is_the_prox_repeated(penalty, w, etas):
    w = float(penalty.prox(w, 0.0))
    clock = penalty.start()
    v = penalty.potential(w, clock)
    assert penalty.weight(v, clock) == w
    largest = abs(w)
    for eta in etas:
        before, clock = clock, penalty.tick(clock, eta)
        w = float(penalty.prox(w, eta))
        if clock[0] > 2.0**500:  # here a run settles and starts anew
            clock, v = penalty.start(), penalty.potential(w, penalty.start())
        found = penalty.weight(v, clock)
        # rounding of the clock: some ulps of l1 times the steps so far, seen at this scale
        assert abs(found - w) <= 4e-15 * (1 + len(etas)) * max(largest, clock[1] / clock[0])
        assert before is not clock


@every_separable
@given(w=weights, etas=st.lists(steps, max_size=8), later=st.lists(steps, max_size=8))
@settings(max_examples=60, deadline=None)
def test_a_potential_stored_late_goes_on_as_the_prox(penalty, w, etas, later):
    clock = penalty.start()
    for eta in etas:
        clock = penalty.tick(clock, eta)
    if clock[0] > 1e30:
        clock = penalty.start()
    w = float(penalty.prox(w, 0.0))
    v = penalty.potential(w, clock)
    start = clock[1] / clock[0]
    assert penalty.weight(v, clock) == pytest.approx(w, rel=1e-14, abs=4e-16 * start)
    for eta in later:
        clock, w = penalty.tick(clock, eta), float(penalty.prox(w, eta))
    assert penalty.weight(v, clock) == pytest.approx(w, rel=1e-12, abs=1e-14 * max(1.0, start, clock[1] / clock[0]))


@every_separable
@given(v=weights, etas=st.lists(steps, max_size=6), later=st.lists(steps, max_size=6), eta=steps)
@settings(max_examples=80, deadline=None)
def test_a_deposit_is_the_prox_of_its_own_step_and_of_those_after(penalty, v, etas, later, eta):
    clock = penalty.start()
    for each in etas:
        clock = penalty.tick(clock, each)
    if clock[0] > 1e30:
        clock = penalty.start()
    after = penalty.tick(clock, eta)
    kept = penalty.deposit(v, eta, clock, after)
    w = float(penalty.prox(v, eta))
    scale = max(abs(v), clock[1] / clock[0])
    assert penalty.weight(kept, after) == pytest.approx(w, rel=1e-12, abs=1e-14 * max(1.0, scale))
    for each in later:
        after, w = penalty.tick(after, each), float(penalty.prox(w, each))
    assert penalty.weight(kept, after) == pytest.approx(w, rel=1e-12, abs=1e-14 * max(1.0, scale, after[1] / after[0]))


@every_separable
def test_zero_is_absorbing_and_positive(penalty):
    clock = penalty.start()
    v = penalty.potential(0.0, clock)
    assert v == 0.0
    for eta in (0.5, 0.0, 1e-9, 1e9):
        clock = penalty.tick(clock, eta)
        assert penalty.weight(v, clock) + 0.0 == 0.0
        assert penalty.potential(0.0, clock) == 0.0


def test_a_weight_that_died_stays_exactly_zero():
    penalty, clock = ElasticNet(l1=0.1), ElasticNet(l1=0.1).start()
    v = penalty.potential(0.35, clock)
    seen = []
    for _ in range(8):
        clock = penalty.tick(clock, 1.0)
        seen.append(penalty.weight(v, clock))
    assert seen[:3] == pytest.approx([0.25, 0.15, 0.05], abs=1e-15)
    assert seen[3:] == [0.0] * 5


def test_box_at_its_bounds():
    penalty = Box(l1=0.5, lower=-1.0, upper=2.0)
    assert penalty.prox(9.0, 1.0) == 2.0
    assert penalty.prox(-9.0, 1.0) == -1.0
    assert penalty.value(np.array([2.0, -1.0])) == 1.5
    assert penalty.value(np.array([2.0 + 1e-12])) == math.inf
    clock = penalty.tick(penalty.start(), 1.0)
    assert penalty.weight(penalty.deposit(9.0, 1.0, penalty.start(), clock), clock) == 2.0
    later = penalty.tick(clock, 1.0)
    assert penalty.weight(penalty.deposit(9.0, 1.0, penalty.start(), clock), later) == 1.5  # it shrinks from the bound on
    # a start outside is read as the nearest point inside
    assert penalty.weight(penalty.potential(7.0, penalty.start()), penalty.start()) == 2.0


# --- total variation -------------------------------------------------------------------------------------------------


def tv_by_its_dual(v, lam):
    """argmin |x - v|^2/2 + lam TV(x) from  min |v - D'p|^2 over |p| <= lam, by active-set enumeration's stand-in: NNLS."""
    from scipy.optimize import lsq_linear

    n = len(v)
    if n < 2 or lam == 0.0:
        return v.copy()
    D = np.diff(np.eye(n), axis=0)
    p = lsq_linear(D.T, v, bounds=(-lam, lam), method="bvls", tol=1e-15, max_iter=1000).x
    return v - D.T @ p


@given(
    v=st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(-3, 3)), max_size=12),
    lam=st.one_of(st.sampled_from([0.0, 0.5, 1.0, 100.0]), st.floats(0, 4)),
)
@settings(max_examples=150, deadline=None)
def test_taut_string_is_the_dual_box_problem(v, lam):
    v = np.array(v, float)
    x = taut_string(v, lam)
    assert x.shape == v.shape
    assert_optimal(v, lam, x)
    if lam == 0.0 or lam > 1e-4:  # in a box of 1e-7 SciPy stops far from its own optimum; the conditions above decide
        np.testing.assert_allclose(x, tv_by_its_dual(v, lam), rtol=0, atol=1e-8)


def assert_optimal(v, lam, x):
    """KKT: with p the cumulative sum of v - x, |p| <= lam, p_n = 0, and p = lam sign(x_{j+1} - x_j) at every jump."""
    if not len(v):
        return
    p = -np.cumsum((v - x).astype(np.longdouble))
    slack = 1e-13 * (1 + lam + np.abs(v).sum())
    assert abs(p[-1]) <= slack
    assert np.all(np.abs(p) <= lam + slack)
    jumps = np.diff(x)
    at = np.flatnonzero(np.abs(jumps) > slack)
    np.testing.assert_allclose((p[:-1][at]).astype(float), lam * np.sign(jumps[at]), rtol=0, atol=slack)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("lam", [0.0, 0.25, 1e12])
def test_taut_string_of_few_values(n, lam):
    v = np.array([1.0, -2.0, 5.0])[:n]
    x = taut_string(v, lam)
    if lam == 0.0:
        np.testing.assert_array_equal(x, v)
    elif lam > 1.0 and n:
        np.testing.assert_allclose(x, np.full(n, v.mean()), rtol=0, atol=1e-15)
    if n == 2 and lam == 0.25:
        np.testing.assert_allclose(x, [0.75, -1.75], rtol=0, atol=1e-15)


def test_taut_string_of_a_huge_tube_is_the_mean():
    v = np.random.default_rng(1).standard_normal(50)
    for lam in (1e3, 1e6, 1e12):
        np.testing.assert_allclose(taut_string(v, lam), np.full(50, v.mean()), rtol=0, atol=1e-14)


def test_ties_and_constant_stretches():
    for v in ([2.0] * 9, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], [0.0, 1.0] * 6, [3.0, 2.0, 1.0, 0.0, -1.0]):
        for lam in (0.0, 0.25, 0.5, 1.0, 2.0):
            assert_optimal(np.array(v), lam, taut_string(np.array(v), lam))


def adversarial(n):
    """Inputs on which one-pass total variation may walk back over and over again."""
    k = np.arange(n)
    yield "slow rise", 1e-3 * k / n
    yield "parabola", (k / n) ** 2
    yield "inverse parabola", -((k / n) ** 2)
    yield "exponential", np.exp2(-k * (50.0 / n))
    yield "spike at the end", np.where(k == n - 1, 1e6, 0.0)
    yield "alternating", np.where(k % 2 == 0, 1.0, -1.0)
    yield "noise", np.random.default_rng(0).standard_normal(n)


@pytest.mark.parametrize("lam", [0.1, 1.0, 30.0])
def test_taut_string_takes_linear_time_on_every_input(lam, monkeypatch):
    """Counted, not timed: comparisons of slopes and values read, in the interpreted text."""

    counts = {"_slope": 0, "_level": 0}

    def counted(name):
        work = getattr(penalties, name)
        text = inspect.unwrap(work)

        def count(*args):
            counts[name] += 1 if name == "_slope" else args[5] - args[3]
            return text(*args)

        return count

    for name in counts:
        monkeypatch.setattr(penalties, name, counted(name))
    text = inspect.unwrap(taut_string)
    for name, v in adversarial(2000):
        counts.update(_slope=0, _level=0)
        x = text(v, lam)
        assert counts["_level"] == len(v)
        assert counts["_slope"] <= 14 * len(v), (name, counts)
        assert_optimal(v, lam, x)


@pytest.mark.parametrize("penalty", FUSED[:6], ids=repr)
@given(v=st.lists(st.floats(-3, 3), min_size=1, max_size=10), eta=st.floats(1e-3, 10))
@settings(max_examples=30, deadline=None)
def test_fused_lasso_by_its_parts(penalty, v, eta):
    v = np.array(v)
    shrink = 1 + eta * penalty.l2
    x = tv_by_its_dual(v / shrink, eta * penalty.tv / shrink)
    kappa = eta * penalty.l1 / shrink
    wanted = np.clip(np.sign(x) * np.maximum(np.abs(x) - kappa, 0), penalty.lower, penalty.upper)
    np.testing.assert_allclose(penalty.prox(v, eta), wanted, rtol=0, atol=1e-7)


# --- a user's penalty ------------------------------------------------------------------------------------------------


def test_a_users_penalty_gets_the_defaults_it_lacks():
    from typing import NamedTuple

    class Ridge(NamedTuple):
        k: float = 0.5

        def value(self, w):
            return 0.5 * self.k * np.sum(w * w)

        def prox(self, v, eta):
            return v / (1.0 + self.k * eta)

        def tick(self, clock, eta):
            return clock[0] * (1.0 + self.k * eta), clock[1]

        def weight(self, v, clock):
            return v / clock[0]

        def potential(self, w, clock):
            return w * clock[0]

    ridge = Ridge()
    register(ridge)
    assert ridge.start() == (1.0, 0.0)
    clock = ridge.tick(ridge.start(), 2.0)
    assert ridge.weight(ridge.deposit(3.0, 2.0, ridge.start(), clock), clock) == pytest.approx(1.5)
    np.testing.assert_allclose(ridge.prox_all(np.array([2.0, 4.0]), 2.0), [1.0, 2.0])


def test_a_penalty_of_single_weights_works_on_vectors():
    from typing import NamedTuple

    class Clip(NamedTuple):
        bound: float = 1.0

        def value(self, w):
            return 0.0 if abs(w) <= self.bound else math.inf

        def prox(self, v, eta):
            return self.bound if v > self.bound else (-self.bound if v < -self.bound else v)

    register(Clip())
    np.testing.assert_array_equal(Clip().prox_all(np.array([3.0, -0.5, -7.0]), 1.0), [1.0, -0.5, -1.0])
    assert not hasattr(Clip, "deposit")


def test_l1_of_weights_whose_squares_overflow():
    with np.errstate(over="raise", invalid="raise"):
        assert ElasticNet(l1=0.5).value(np.array([1e200, -1e200])) == 1e200


@every_separable
@given(v=st.lists(st.floats(-3, 3), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_conjugate_is_the_largest_value_of_its_definition(penalty, v):
    v = np.array(v)
    found = penalty.conjugate(v)
    lower, upper = max(getattr(penalty, "lower", -math.inf), -200.0), min(getattr(penalty, "upper", math.inf), 200.0)
    tried = np.unique(np.clip(np.concatenate([np.linspace(-200.0, 200.0, 4001), np.linspace(-3.0, 3.0, 3001)]), lower, upper))
    values = v[:, None] * tried - penalty.l1 * np.abs(tried) - 0.5 * penalty.l2 * tried**2
    best = float(np.sum(values.max(axis=1)))
    if math.isinf(found):
        assert penalty.reach(v) < 1.0
        assert best >= 1e-3 * np.max(np.abs(v)) or np.max(np.abs(v)) - penalty.l1 < 1e-5
    else:
        assert found >= best - 1e-9
        if getattr(penalty, "l2", 0.0) > 0.0 or math.isfinite(upper - lower):
            assert found == pytest.approx(best, abs=1e-2 * (1.0 + abs(found)))


@every_separable
@given(v=st.lists(st.floats(-6, 6, allow_subnormal=False), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_reach_ends_where_the_conjugate_is_infinite(penalty, v):
    v = np.array(v)
    c = penalty.reach(v)
    assert 0.0 <= c <= 1.0
    assert math.isfinite(penalty.conjugate(c * v))
    if c < 1.0:
        assert math.isinf(penalty.conjugate((c + 1e-9) * v)) or np.max(np.abs(v)) < 1e-6
