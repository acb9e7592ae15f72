"""Every loss of the module: slopes, convexity, the implicit step over its whole range, interpreted and compiled."""

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import longdouble as L

from onlinear import losses
from onlinear.compiled import COMPILED, WIDTH, adopt, bind_loss, kernel, room
from onlinear.text.form import parts_of

OTHER_SETTINGS = [
    losses.Hinge(margin=0.0),
    losses.Hinge(margin=2.5),
    losses.SquaredHinge(margin=0.5),
    losses.Huber(delta=0.25),
    losses.Huber(delta=40.0),
    losses.EpsilonInsensitive(eps=0.0),
    losses.EpsilonInsensitive(eps=2.0),
    losses.Quantile(q=0.1),
    losses.Quantile(q=0.9),
]
LOSSES = [cls() for cls in parts_of(vars(losses)).values()] + OTHER_SETTINGS
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)

CS = [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 30.0, 1e3, 1e6, 1e9, 1e12]
SCORES = [0.0, -0.0, 1e-9, 0.5, 1.0, 2.0, 3.7, 12.0, 35.0, 745.0, 1e4]
SCORES = SCORES + [-a for a in SCORES]


def targets(loss):
    rule = getattr(loss, "labels", "real")
    return {"signs": [-1.0, 1.0], "counts": [0.0, 1.0, 7.0, 1e3], "real": [-3.0, 0.0, 0.5, 1e3]}[rule]


def kinks(loss, y):
    """Scores at which some loss of the module has a kink or changes its formula."""
    found = [0.0, y, -y]
    found += [y * getattr(loss, "margin", 1.0)]
    found += [y + sign * getattr(loss, name, 0.0) for name in ("eps", "delta") for sign in (-1, 1)]
    return found


def exact_slopes(loss, s, y):
    """[lowest, highest] element of dl(s), in extended precision, written again from the definitions."""
    kind, s, y = type(loss).__name__, L(s), L(y)
    m, e = y * s, s - y
    if kind == "Squared":
        return e, e
    if kind == "Absolute":
        return (L(-1) if e <= 0 else L(1)), (L(1) if e >= 0 else L(-1))
    if kind == "Hinge":
        ends = (L(-1) if m <= loss.margin else L(0)), (L(0) if m >= loss.margin else L(-1))
        return tuple(sorted((y * ends[0], y * ends[1])))
    if kind == "SquaredHinge":
        return (-y * max(L(0), L(loss.margin) - m),) * 2
    with np.errstate(over="ignore"):
        if kind == "Logistic":
            return (-y / (1 + np.exp(m)),) * 2
        if kind == "Exponential":
            return (-y * np.exp(-m),) * 2
        if kind == "Poisson":
            return (np.exp(s) - y,) * 2
    if kind == "Huber":
        return (np.clip(e, -L(loss.delta), L(loss.delta)),) * 2
    if kind == "EpsilonInsensitive":
        eps = L(loss.eps)
        low = L(1) if e > eps else (L(0) if e > -eps else L(-1))
        high = L(-1) if e < -eps else (L(0) if e < eps else L(1))
        return low, high
    if kind == "Quantile":
        q = L(loss.q)
        return (1 - q if e > 0 else -q), (-q if e < 0 else 1 - q)
    if kind == "ModifiedHuber":
        return (-y * np.clip(2 * (1 - m), 0, 4),) * 2
    raise AssertionError(f"write down the slopes of {kind}")


def exact_theta(loss, a, c, y):
    """The theta of the implicit step by bisection on s in extended precision, as an interval that holds it."""
    a, c = L(a), L(c)

    def gap(s):
        low, high = exact_slopes(loss, s, y)
        return s - a + c * low, s - a + c * high

    low, high = exact_slopes(loss, a, y)
    if c == 0:
        return low, high
    # s lies between a and a - C l'(a); where the slope at a is infinite, walk until the sign changes
    reach = L(1)
    left, right = (a, a) if low <= 0 <= high else ((a, None) if high < 0 else (None, a))
    while left is None or right is None:
        s = a + reach if right is None else a - reach
        below, above = gap(s)
        if right is None and above >= 0:
            right = s
        elif left is None and below <= 0:
            left = s
        reach *= 2
    while right - left > 1e-21 * max(abs(left), abs(right), L(1e-3)):
        middle = (left + right) / 2
        if middle <= left or middle >= right:
            break
        below, above = gap(middle)
        if above < 0:
            left = middle
        elif below > 0:
            right = middle
        else:
            left = right = middle
    at_left, at_right = exact_slopes(loss, left, y), exact_slopes(loss, right, y)
    # theta is both a slope between the two ends and (a - s) / C: intersect the two intervals
    by_slope = (at_left[0], at_right[1])
    by_step = ((a - right) / c, (a - left) / c)
    return max(by_slope[0], by_step[0]), min(by_slope[1], by_step[1])


@every_loss
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_slope_lies_between_the_one_sided_derivatives(loss, data):
    y = data.draw(st.sampled_from([t for t in targets(loss) if abs(t) < 100]))
    s = data.draw(st.one_of(st.floats(-8, 8), st.sampled_from(kinks(loss, y))))
    h = 1e-5
    slack = 1e-4 * (1 + abs(loss.slope(s + 1, y)) + abs(loss.slope(s - 1, y)))
    left = (loss.value(s, y) - loss.value(s - h, y)) / h
    right = (loss.value(s + h, y) - loss.value(s, y)) / h
    assert left - slack <= loss.slope(s, y) <= right + slack


@every_loss
def test_slope_is_an_element_of_the_subdifferential(loss):
    for y in targets(loss):
        for s in SCORES + kinks(loss, y):
            low, high = exact_slopes(loss, s, y)
            slope, tiny = loss.slope(s, y), 4e-15
            if np.isinf(slope):
                assert abs(low) > 1e307
                continue
            # y s is rounded before the exponential: one ulp of the margin is |m| ulps of the result
            near = tiny * (1 + abs(s)) * max(abs(low), abs(high)) + 1e-300
            near += 4e-16 * abs(y)  # exp(s) - y, e.g.
            assert low - near <= slope <= high + near, (s, y)


@every_loss
def test_curvature_is_the_derivative_of_the_slope(loss):
    for y in targets(loss)[:2]:
        for s in (-1.7, -0.3, 0.2, 0.9, 2.2):
            if hasattr(loss, "curvature"):
                rise = (loss.slope(s + 1e-6, y) - loss.slope(s - 1e-6, y)) / 2e-6
                assert loss.curvature(s, y) == pytest.approx(rise, rel=1e-6, abs=1e-8)


@every_loss
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_values_are_convex_and_lie_above_tangents(loss, data):
    y = data.draw(st.sampled_from([t for t in targets(loss) if abs(t) < 100]))
    points = st.one_of(st.floats(-30, 30), st.sampled_from(kinks(loss, y)))
    s, u = data.draw(points), data.draw(points)
    slack = 1e-12 * (1 + abs(loss.value(s, y)) + abs(loss.value(u, y)))
    assert loss.value(0.5 * (s + u), y) <= 0.5 * (loss.value(s, y) + loss.value(u, y)) + slack
    slope = loss.slope(s, y)
    assert loss.value(u, y) >= loss.value(s, y) + slope * (u - s) - slack - 1e-12 * abs(slope * (u - s))


@every_loss
def test_theta_solves_the_implicit_step(loss):
    """Against bisection with 64-bit mantissas: margins to 1e4, C = 0 and from 1e-12 to 1e12."""
    worst = 0.0
    for y in targets(loss):
        for a in SCORES + kinks(loss, y):
            for c in CS:
                found = loss.theta(a, c, y)
                low, high = exact_theta(loss, a, c, y)
                low, high = min(low, high), max(low, high)
                assert not math.isnan(found), (a, c, y)
                if math.isinf(found):
                    assert c == 0.0 or abs(low) > 1e300, (a, c, y)
                    continue
                miss = float(max(low - found, found - high, L(0)))
                # the smallest error that the inputs' own rounding can make: |m| ulps in an exponential, ulps of a - y
                size = float(max(abs(low), abs(high)))
                scale = size * (1.0 + condition(loss, a, c, y)) + kept(loss, a, c, y)
                if miss > 0.0:
                    worst = max(worst, miss / max(scale, 1e-300))
    assert worst <= 2e-15


def test_theta_of_the_logistic_loss_where_the_margin_after_the_step_has_no_digits_beside_the_one_before():
    loss = losses.Logistic()
    for a, c in ((-1e18, 1e60), (-1e30, 1e60), (-1e100, 1e200), (-3e15, 1e300)):
        assert loss.theta(a, c, 1.0) == pytest.approx(a / c, rel=1e-10)
        assert loss.theta(-a, c, -1.0) == pytest.approx(-a / c, rel=1e-10)
    low, high = exact_theta(loss, -5e17, 5e17, 1.0)  # where they cancel
    assert float(low) * (1.0 + 1e-14) <= loss.theta(-5e17, 5e17, 1.0) <= float(high) * (1.0 - 1e-14)


def condition(loss, a, c, y):
    """Relative sensitivity of theta to relative changes of a and C, where it is large: an exponential of a large margin."""
    if type(loss).__name__ in ("Exponential", "Logistic", "Poisson"):
        return abs(a) + cancels(loss, c, y) * c * y + abs(math.log(c) if c else 0.0)
    return 0.0


def cancels(loss, c, y):
    """Whether theta is the difference of the count from a mean beside it; where C y is larger it is (a - s) / C."""
    return type(loss).__name__ == "Poisson" and c * y <= 2.0**16


def kept(loss, a, c, y):
    """Absolute sensitivity: theta is a difference of numbers of this size (the target from a prediction, over 1 + C)."""
    margin = max((getattr(loss, name, 0.0) for name in ("margin", "eps")), default=0.0)
    return (
        (max(abs(a), abs(y), margin, 1.0) if not math.isinf(a) else 1.0) / max(1.0, c) + cancels(loss, c, y) * abs(y)
        if type(loss).__name__ not in ("Exponential", "Logistic")
        else 0.0
    )


@every_loss
def test_theta_is_the_slope_where_c_is_zero(loss):
    for y in targets(loss):
        for a in SCORES:
            theta, (low, high) = loss.theta(a, 0.0, y), exact_slopes(loss, a, y)
            assert theta == loss.slope(a, y) or float(low) <= theta <= float(high)


@every_loss
def test_theta_is_0_where_the_slope_is(loss):
    """A stationary score stays where it is, to the last bit, whatever C."""
    for y in targets(loss):
        for a in [a for a in SCORES + kinks(loss, y) if loss.slope(a, y) == 0.0]:
            assert all(loss.theta(a, c, y) == 0.0 for c in [*CS, *np.geomspace(0.1, 1e3, 50)]), (a, y)


def test_weighted_is_0_at_weight_0():
    for x in (2.5, math.inf, -math.inf, math.nan):
        assert losses.weighted(0.0, x) == 0.0
    assert losses.weighted(3.0, -math.inf) == -math.inf
    assert losses.weighted(0.5, 3.0) == 1.5


@every_loss
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_implicit_step_beats_every_other_point(loss, data):
    y = data.draw(st.sampled_from([t for t in targets(loss) if abs(t) < 100]))
    a, other = data.draw(st.floats(-20, 20)), data.draw(st.floats(-40, 40))
    c = data.draw(st.floats(1e-3, 1e3))
    s = a - c * loss.theta(a, c, y)

    def cost(u):
        return loss.value(u, y) + (u - a) ** 2 / (2 * c)

    assert cost(s) <= cost(other) + 1e-9 * (1 + abs(cost(other)))


@kernel
def _all(loss, s, c, y, out):
    for k in range(s.shape[0]):
        out[0, k] = loss.value(s[k], y[k])
        out[1, k] = loss.slope(s[k], y[k])
        out[2, k] = loss.theta(s[k], c[k], y[k])


@every_loss
def test_compiled_and_interpreted_agree_without_a_warning(loss):
    points = [(s, c, y) for y in targets(loss) for s in SCORES + kinks(loss, y) for c in CS]
    s, c, y = (np.array(column) for column in zip(*points, strict=True))
    out = np.full((3, len(s)), np.nan)
    bound = bind_loss(loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _all(bound, s, c, y, out)
        text = np.array(
            [[loss.value(*p[::2]) for p in points], [loss.slope(*p[::2]) for p in points], [loss.theta(*p) for p in points]]
        )
    assert not np.isnan(out).any()
    tolerance = 0.0 if not COMPILED else 1e-12
    np.testing.assert_allclose(out, text, rtol=tolerance, atol=0.0 if not COMPILED else 1e-300)


@kernel
def _thetas_of_outputs(loss, asked, targets, open_ones, count):
    loss.thetas(room(asked, 0), room(targets, 0), room(open_ones, 0), count)


def thetas_of_outputs(loss, points, wanted):
    """theta of points (a, c, y), as many at a time as stand side by side; NaN where it is not wanted."""
    bound, found = bind_loss(loss, outputs=True), np.empty(0)
    for first in range(0, len(points), WIDTH):
        a, c, y = np.array(points[first : first + WIDTH]).T
        count, asked, targets, open_ones = len(a), np.full((3, WIDTH), np.nan), np.zeros((1, WIDTH)), np.zeros((1, WIDTH))
        asked[:2, :count], targets[0, :count], open_ones[0, :count] = (a, c), y, wanted[first : first + count]
        _thetas_of_outputs(bound, asked, targets, open_ones, count)
        found = np.append(found, np.where(open_ones[0, :count] != 0.0, asked[2, :count], np.nan))
    return found


@every_loss
def test_outputs_side_by_side_have_each_output_s_theta(loss):
    """Also where their steps differ, where only some are asked for, and where fewer stand there than could."""
    rng = np.random.default_rng(3)
    points = [(a, c, y) for y in targets(loss) for a in SCORES + kinks(loss, y) for c in CS]
    points += [(3.0 * rng.normal(), c, targets(loss)[0]) for c in rng.lognormal(0.0, 3.0, 500)]
    rng.shuffle(points)
    wanted = np.where(rng.random(len(points)) < 0.8, 1.0, 0.0)
    s, c, y = (np.array(column) for column in zip(*points, strict=True))
    out = np.full((3, len(s)), np.nan)
    _all(bind_loss(loss), s, c, y, out)
    alone = np.where(wanted != 0.0, out[2], np.nan)
    assert thetas_of_outputs(loss, points, wanted).tobytes() == alone.tobytes()


@adopt
class Quarter(losses.Hinge):
    """A loss made from another, with a theta of its own."""

    def theta(self, a, c, y):
        return 0.25


@pytest.mark.skipif(not COMPILED, reason="interpreted, a loss is not bound")
def test_a_theta_of_its_own_is_not_taken_for_the_loss_s_that_it_was_made_from():
    points = [(0.0, 1.0, 1.0)] * (WIDTH + 3)
    assert set(thetas_of_outputs(Quarter(), points, np.ones(len(points)))) == {0.25}


@every_loss
def test_the_factor_stays_outside(loss):
    """k l, k slope, k theta(a, k C): the methods themselves take no notice of it."""
    doubled = loss._replace(factor=2.0)
    for y in targets(loss)[:2]:
        for s in (-1.5, 0.25, 2.0):
            assert doubled.value(s, y) == loss.value(s, y)
            assert doubled.slope(s, y) == loss.slope(s, y)
            assert doubled.theta(s, 0.5, y) == loss.theta(s, 0.5, y)
            k, c = 2.0, 0.5
            step = s - c * (k * loss.theta(s, k * c, y))  # argmin of k l(u) + (u - s)^2 / 2c

            def cost(u, y=y, s=s, c=c, k=k):
                return k * loss.value(u, y) + (u - s) ** 2 / (2 * c)

            assert all(cost(step) <= cost(u) + 1e-12 for u in step + np.array([-1.0, -1e-3, 1e-3, 1.0]))


@pytest.mark.parametrize("cls", [losses.Logistic, losses.Exponential, losses.ModifiedHuber])
def test_probabilities_rise_from_zero_to_one(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = cls().probability(np.array([-1e4, -1.0, 0.0, 1.0, 1e4]))
    assert p[2] == 0.5
    assert p[0] == 0.0
    assert p[4] == 1.0
    np.testing.assert_allclose(p + p[::-1], 1.0, rtol=0, atol=1e-15)
    assert np.all(np.diff(p) >= 0)
    # the probability is where the expected slope vanishes
    for s in (-0.7, 0.2, 0.9):
        chance = float(cls().probability(np.array([s]))[0])
        assert chance * cls().slope(s, 1.0) + (1 - chance) * cls().slope(s, -1.0) == pytest.approx(0.0, abs=1e-15)


def test_poisson_mean_is_where_the_slope_vanishes():
    s = np.array([-3.0, 0.0, 2.0])
    for score, mean in zip(s, losses.Poisson().mean(s), strict=True):
        assert losses.Poisson().slope(score, mean) == pytest.approx(0.0, abs=1e-14)


def exact_omega(x):
    """z + log z = x by Newton on u = log z in extended precision: u + exp(u) = x."""
    x = L(x)
    u = x if x < 1 else np.log(x)
    for _ in range(200):
        e = np.exp(u)
        step = (u + e - x) / (1 + e)
        u = u - step
        if abs(step) <= 1e-18 * max(abs(u), L(1e-3)):
            break
    return np.exp(u)


def test_wright_omega_to_full_precision():
    xs = np.concatenate(
        [np.linspace(-700, 1e5, 4001), np.linspace(-40, 40, 4001), -30 + np.linspace(-1e-6, 1e-6, 11), np.linspace(-3, 2, 501)]
    )
    for x in (*xs, 1e149, 1e151, 1e300):
        exact = exact_omega(x)
        # z has relative condition x' = dz/z / dx = 1 / (1 + z): at x = -700 half an ulp of x moves z by 1e-13 of itself
        spacing = abs(x) * 2.3e-16 / (1 + float(exact))
        assert abs(L(losses.wright_omega(float(x))) - exact) <= (1e-15 + spacing) * exact, x


def test_sigmoid_at_both_ends():
    for u in (-1e4, -745.0, -30.0, -1.0, 0.0, 1.0, 30.0, 745.0, 1e4):
        exact = 1 / (1 + np.exp(-L(u)))
        assert abs(L(losses.sigmoid(u)) - exact) <= 4e-16 * max(exact, L(1e-300))


@every_loss
def test_the_conjugate_is_the_largest_value_of_its_definition(loss):
    """l*(t) = t s - l(s) at a slope t of s, and no other score gives more (Fenchel and Young)."""
    for y in targets(loss):
        others = [*SCORES, *kinks(loss, y)]
        for s in (-12.0, -1.3, -0.5, 0.0, 0.5, 0.7, 2.0, 3.7):
            t = loss.slope(s, y)
            found = loss.conjugate(t, y)
            size = abs(t * s) + abs(loss.value(s, y)) + 1.0
            if any(abs(s - kink) < 1e-9 for kink in kinks(loss, y)):
                assert found >= t * s - loss.value(s, y) - 1e-12 * size
            else:
                assert found == pytest.approx(t * s - loss.value(s, y), abs=1e-12 * size)
            for other in others:
                if loss.value(other, y) < math.inf:
                    assert found >= t * other - loss.value(other, y) - 1e-11 * (size + abs(t * other))


@pytest.mark.parametrize("u", [1e-15, 1e-9, 9e-7, 1e-6])
def test_the_conjugate_of_a_sure_row_has_all_digits(u):
    true = u * math.log(u) - u + 0.5 * u * u + u**3 / 6.0
    assert losses.Logistic().conjugate(u, -1.0) == pytest.approx(true, rel=1e-11 if u == 1e-6 else 4e-16, abs=0.0)


@every_loss
def test_the_conjugate_at_0_is_the_least_value(loss):
    for y in targets(loss):
        least = min(loss.value(s, y) for s in [*np.linspace(-60.0, 60.0, 4801), y, *([math.log(y)] if y > 0.0 else [])])
        assert -loss.conjugate(0.0, y) <= least + 1e-12 * abs(least)
        assert -loss.conjugate(0.0, y) == pytest.approx(least, abs=1e-3)


@every_loss
def test_the_conjugate_is_infinite_beyond_the_slopes(loss):
    for y in targets(loss):
        low, high = (-math.inf, math.inf) if isinstance(loss, losses.Squared) else (-1e6, 1e6)
        slopes = sorted((loss.slope(-1e4, y), loss.slope(1e4, y)))
        for t in (slopes[0] - 0.1, slopes[1] + 0.1):
            if low < t < high and not math.isinf(loss.value(1e4, y) + loss.value(-1e4, y)):
                grows = max(t * s - loss.value(s, y) for s in (-1e9, 1e9)) > 1e6
                assert math.isinf(loss.conjugate(t, y)) == grows


PAGE = (Path(__file__).parent.parent / "docs" / "mathematics.md").read_text(encoding="utf-8")
INVERSES = re.findall(r"^\| ([\w-]+) \| (theta|q) in \((.+), (.+)\) \| [sm] = (.+) \| (?:yes|no, \w+) \|$", PAGE, re.MULTILINE)


def test_every_loss_has_its_inverse_slope():
    assert sorted(name for name, *_ in INVERSES) == sorted(parts_of(vars(losses)))


@pytest.mark.parametrize(("name", "letter", "low", "high", "inverse"), INVERSES)
@pytest.mark.parametrize("y", [1.0, -1.0, 3.0])
def test_the_table_of_inverse_slopes(name, letter, low, high, inverse, y):
    loss = parts_of(vars(losses))[name]()
    if (letter == "q" and abs(y) != 1.0) or (name == "poisson" and y < 0.0):
        return
    known = {"inf": math.inf, "log": math.log, "sign": np.sign, "y": y, **loss._asdict()}

    def place(theta):
        """The score whose slope is theta, by the table."""
        found = eval(inverse, {}, known | {letter: -y * theta if letter == "q" else theta})
        return y * found if letter == "q" else found

    ends = sorted((-y if letter == "q" else 1.0) * eval(end, {}, known) for end in (low, high))
    first, last = max(ends[0], -6.0), min(ends[1], 6.0)
    for theta in np.linspace(first, last, 40)[1:-1]:
        s = place(theta)
        assert loss.slope(s - 1e-7, y) - 1e-6 <= theta <= loss.slope(s + 1e-7, y) + 1e-6
        for D in (0.3, 4.0):  # c for which theta is the root of c - D theta = inverse(theta)
            assert loss.theta(s + D * theta, D, y) == pytest.approx(theta, rel=1e-9, abs=1e-9)
    far = 1e6 if name not in ("exponential", "poisson") else 30.0
    for s, end in ((-far, ends[0]), (far, ends[1])):
        assert math.isinf(end) or loss.slope(s, y) == pytest.approx(end, abs=1e-9)
