r"""Every loss l(s, y) of a prediction s = <w, x>, once: value, slope and the implicit step.

    value(s, y)       l
    slope(s, y)       an element of its subdifferential in s; which one at a kink is stated
    theta(a, c, y)    of the implicit step on one row with step size C/|x|^2; the slope at a where C = 0:
                      theta in dl(s),   s = a - C theta,   i.e.   s = argmin_s l(s, y) + (s - a)^2 / (2C)          (MATH 2.2)
    curvature(s, y)   of smooth losses, the second derivative
    conjugate(t, y)   for certificates, l*(t) = sup_s t s - l(s, y), infinite where t is no slope of l             (MATH 20.1)
    probability(s), mean(s)   the quantity that people ask for, where the loss defines one

    labels       what targets are: "signs", -1 and +1, where m = y s; "counts"; or "real" numbers where it is not said
    residual     l depends on s - y alone
    joint        l is of all scores of a row together (softmax.py)
    likelihood   l is a negative log-likelihood
    vanishing    the slope nears 0 as the score grows, or falls, and never is 0

A ``factor`` k multiplies the loss. Like a sample weight it is applied outside these methods: k l, k slope and k theta(a, k C).

Source: sections 2 (tables) and 17 (weights) of the mathematical reference; the implicit step is eq. (2.1)-(2.2).
"""

from __future__ import annotations

from math import copysign, exp, inf, isfinite, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, some, take_lanes, where
from onlinear.text.describe import describe
from onlinear.text.form import parts_of

SIGNS, COUNTS = "signs", "counts"  # kinds of targets, beside real numbers
ROUNDING = 1e-12  # how far rounding may leave a slope outside the domain of a conjugate
SURE = 2.0**-20  # a slope of a probability below it, beside which 1 has too few digits
MOST_STEPS = 20  # to the margin of an implicit step
LAST_STEP = 1e-4  # one of this size leaves an error below rounding: it is of order four
LARGE_STEP = 8.0  # C from which on these begin elsewhere
FAR_BELOW = 2.0**50  # below 0 a margin beside which the one after the step has too few digits
CANCELS = 2.0**16  # C y of a count beyond which z / C - y has too few digits


@function
def weighted(s: float, x: float) -> float:
    """s x, of a sample weight and a loss's value, slope or theta; 0 where s is 0, for that is a step without loss (MATH 17)
    even where the loss overflows."""
    return s * x if s != 0.0 else 0.0


@function
def summed(total: float, correction: float, x: float) -> tuple[float, float]:
    """A sum and its correction after one more number, compensated (Neumaier)."""
    new = total + x
    if isfinite(new):  # the correction of an infinite sum would be nan
        correction += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
    return new, correction


@function
def wright_omega(x: float) -> float:
    """The z > 0 with z + log z = x, to full relative precision for any finite x (0 where it underflows).

    Two steps of the Fritsch-Shafer-Crowley iteration, which is of order four.
    """
    if x < -30.0:
        e = exp(x)
        return e / (1.0 + e)
    if x > 1e150:
        return x  # log x is nothing beside it, and squares would overflow
    z = x - log(x) if x > 1.0 else (exp(2.0 / 3.0 * (x - 1.0)) if x > -2.0 else exp(x) / (1.0 + exp(x)))
    for _ in range(2):
        z = nearer_omega(z, x)
    return z


@function
def nearer_omega(z: float, x: float) -> float:
    """The next iterate of ``wright_omega`` from z > 0."""
    r = x - z - log(z)
    q = 2.0 * (1.0 + z) * (1.0 + z + 2.0 / 3.0 * r)
    return z * (1.0 + r / (1.0 + z) * (q - r) / (q - 2.0 * r))


@function
def sigmoid(u: float) -> float:
    """1 / (1 + exp(-u)) without overflow (a number or lanes)."""
    e = exp(-abs(u))
    return where(u >= 0.0, 1.0, e) / (1.0 + e)


@function
def entropy(u: float) -> float:
    """u log u, and 0 for u <= 0."""
    return u * log(u) if u > 0.0 else 0.0


def loss_labels(loss: Any) -> str:
    """Which targets a loss takes: SIGNS, COUNTS, or ``"real"`` numbers."""
    return str(getattr(loss, "labels", "real"))


def bend_of(loss: Any) -> float | None:
    """How far from the target the slope of a loss of numbers has its bound; None where it has none."""
    bend = getattr(loss, "bend", None)
    return None if bend is None else float(bend)


def is_residual(loss: Any) -> bool:
    """Whether a loss depends on s - y alone."""
    return bool(getattr(loss, "residual", False))


def is_joint(loss: Any) -> bool:
    """Whether a loss is of all scores of a row together."""
    return getattr(loss, "joint", False) is True


def is_vanishing(loss: Any) -> bool:
    """Whether the slope of a loss nears 0 as the score grows, or falls, and never is 0."""
    return bool(getattr(loss, "vanishing", False))


def factor_of(loss: Any) -> float:
    """The number that a loss multiplies itself by; 1 where it has none."""
    return float(getattr(loss, "factor", 1.0))


class Squared(NamedTuple):
    """The squared loss l = (s - y)^2 / 2."""

    factor: float = 1.0

    residual = True
    quadratic = True  # a Newton step is exact
    steady = True  # the curvature does not jump

    def value(self, s: float, y: float) -> float:
        """(s - y)^2 / 2."""
        return 0.5 * (s - y) * (s - y)

    def slope(self, s: float, y: float) -> float:
        """s - y."""
        return s - y

    def curvature(self, s: float, y: float) -> float:
        """1."""
        return 1.0

    def conjugate(self, t: float, y: float) -> float:
        """t^2/2 + t y."""
        return 0.5 * t * t + t * y

    def theta(self, a: float, c: float, y: float) -> float:
        """(a - y) / (1 + C)."""
        return (a - y) / (1.0 + c)


class Absolute(NamedTuple):
    """The absolute loss l = |s - y|, with slope 0 at s = y."""

    factor: float = 1.0

    residual = True
    bend = 0.0

    def value(self, s: float, y: float) -> float:
        """|s - y|."""
        return abs(s - y)

    def slope(self, s: float, y: float) -> float:
        """sign(s - y)."""
        return copysign(1.0, s - y) if s != y else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """t y where |t| <= 1."""
        return t * y if abs(t) <= 1.0 + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """clip((a - y) / C, -1, 1)."""
        e = a - y
        return e / c if abs(e) < c else (copysign(1.0, e) if e != 0.0 else 0.0)


class Hinge(NamedTuple):
    """The hinge loss l = max(0, margin - m), m = y s, with slope -y where m < margin, strictly.

    References
    ----------
    Cortes, Vapnik: Support-vector networks. Machine Learning 20, 1995.
    """

    factor: float = 1.0
    margin: float = 1.0
    labels = "signs"

    def value(self, s: float, y: float) -> float:
        """max(0, margin - y s)."""
        return max(0.0, self.margin - y * s)

    def slope(self, s: float, y: float) -> float:
        """-y where y s < margin, else 0."""
        return -y if y * s < self.margin else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """-margin u with u = -y t, where 0 <= u <= 1."""
        u = -y * t
        return -self.margin * u if -ROUNDING <= u <= 1.0 + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """-y clip((margin - y a) / C, 0, 1)."""
        short = self.margin - y * a
        if not short > 0.0:
            return 0.0
        return -y * (short / c) if short < c else -y


class SquaredHinge(NamedTuple):
    """The squared hinge loss l = max(0, margin - m)^2 / 2, m = y s."""

    factor: float = 1.0
    margin: float = 1.0
    labels = "signs"

    def value(self, s: float, y: float) -> float:
        """max(0, margin - y s)^2 / 2."""
        short = max(0.0, self.margin - y * s)
        return 0.5 * short * short

    def slope(self, s: float, y: float) -> float:
        """-y max(0, margin - y s)."""
        return -y * max(0.0, self.margin - y * s)

    def curvature(self, s: float, y: float) -> float:
        """1 where y s < margin, else 0."""
        return 1.0 if y * s < self.margin else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """u^2/2 - margin u with u = -y t, where u >= 0."""
        u = -y * t
        return 0.5 * u * u - self.margin * u if u >= -ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """-y max(0, margin - y a) / (1 + C)."""
        return -y * max(0.0, self.margin - y * a) / (1.0 + c)


class Logistic(NamedTuple):
    """The logistic loss l = log(1 + exp(-m)), m = y s.

    Its theta is -y sigma(-m), with m the root of f(m) = m - y a - C sigma(-m).
    """

    factor: float = 1.0
    labels = "signs"
    steady = True
    vanishing = True
    likelihood = True

    def value(self, s: float, y: float) -> float:
        """log(1 + exp(-y s)), without overflow."""
        m = y * s
        return log1p(exp(-abs(m))) - min(m, 0.0)

    def slope(self, s: float, y: float) -> float:
        """-y sigma(-y s)."""
        return -y * sigmoid(-y * s)

    def curvature(self, s: float, y: float) -> float:
        """sigma(s) sigma(-s)."""
        return sigmoid(s) * sigmoid(-s)

    def conjugate(self, t: float, y: float) -> float:
        """u log u + (1 - u) log(1 - u) with u = -y t, where 0 <= u <= 1."""
        u = -y * t
        if -ROUNDING <= u < SURE:
            return entropy(u) + (1.0 - u) * log1p(-u)
        return entropy(u) + entropy(1.0 - u) if -ROUNDING <= u <= 1.0 + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """-y sigma(-m), with m the root of m - y a - C sigma(-m)."""
        return -y * implicit_slope(y * a, c)

    def probability(self, s: np.ndarray) -> np.ndarray:
        """P(y = +1) = sigma(s)."""
        return 0.5 * (1.0 + np.tanh(0.5 * s))


@function
def implicit_slope(al: float, c: float) -> float:
    """sigma(-m), with m the root of f(m) = m - al - C sigma(-m).

    |m| is the root of m - b - C sigma(-m), b = max(al, -al - C), as sigma(m) = 1 - sigma(-m).
    """
    b = max(al, -al - c)
    m = near_margin(b, c) if c < LARGE_STEP else far_margin(b, c)
    e, step = 1.0, 0.0
    for _ in range(MOST_STEPS):
        e, step = margin_step(m, b, c)
        if not abs(step) > LAST_STEP:
            break
        m -= step
    return slope_after(e, step, al, c)


@function
def implicit_slopes(al, c):  # type: ignore[no-untyped-def]
    """``implicit_slope`` of lanes with c < ``LARGE_STEP``: a lane stays where it is once it is done."""
    b = max(al, -al - c)
    m = near_margin(b, c)
    e, step = m, m
    for _ in range(MOST_STEPS):
        e, step = margin_step(m, b, c)
        moves = abs(step) > LAST_STEP
        if not some(moves):
            break
        m = where(moves, m - step, m)
    return slope_after(e, step, al, c)


@function
def near_margin(b, c):  # type: ignore[no-untyped-def]
    """Where the search for |m| begins: at the root with 1 / (2 + m) for sigma(-m), if it is above 0 (numbers or lanes)."""
    return max(b + 2.0 * c / (b + 2.0 + sqrt((b + 2.0) * (b + 2.0) + 4.0 * c)), 0.0)


@function
def far_margin(b: float, c: float) -> float:
    """Where it begins after a large step: at the root with exp(-m) for it, b + omega(log C - b) or log C - log omega(..)."""
    z = wright_omega(log(c) - b)
    return max(b + z if b > -FAR_BELOW else log(c) - log(z), 0.0)


@function
def margin_step(m, b, c):  # type: ignore[no-untyped-def]
    """exp(-m), and what Householder's iteration of order four takes off m, which leaves it at least 0 (numbers or lanes).

    With d = 1 + e^-m the derivatives of f = m - b - C sigma(-m) are 1 + v, -v (1 - e^-m) / d and v (d^2 - 6 e^-m) / d^2,
    v = C e^-m / d^2.
    """
    e = exp(-m)
    d = 1.0 + e
    pull = c * e
    inverse = 1.0 / (d * d + pull)
    t, k = ((m - b) * d - pull) * inverse, pull * inverse
    bent = t * k * (1.0 - e)
    return e, min(t * d * (1.0 + 0.5 * bent) / (1.0 + bent + t * t * k * (d * d - 6.0 * e) * (1.0 / 6.0)), m)


@function
def slope_after(e, step, al, c):  # type: ignore[no-untyped-def]
    """sigma(-m) for the m that a last step leads to, from exp(-m) before it (numbers or lanes)."""
    e *= 1.0 + step * (1.0 + step * (0.5 + step * (1.0 / 6.0)))
    return where(al > -al - c, e, 1.0) / (1.0 + e)


class Exponential(NamedTuple):
    """The exponential loss l = exp(-m), m = y s.

    Its theta is -y omega(log C - y a) / C, with the Wright function omega.

    References
    ----------
    Freund, Schapire: A decision-theoretic generalization of on-line learning and an application to boosting. Journal of
    Computer and System Sciences 55, 1997.
    """

    factor: float = 1.0
    labels = "signs"
    steady = True
    vanishing = True

    def value(self, s: float, y: float) -> float:
        """exp(-y s), infinite where it overflows."""
        return bounded_exp(-y * s)

    def slope(self, s: float, y: float) -> float:
        """-y exp(-y s)."""
        return -y * bounded_exp(-y * s)

    def curvature(self, s: float, y: float) -> float:
        """exp(-y s)."""
        return bounded_exp(-y * s)

    def conjugate(self, t: float, y: float) -> float:
        """u log u - u with u = -y t, where u >= 0."""
        u = -y * t
        return entropy(u) - u if u >= -ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """-y omega(log C - y a) / C."""
        al = y * a
        x = log(c) - al if c > 0.0 else -inf
        if x < -30.0:
            slope = bounded_exp(-al)
            return -y * (slope / (1.0 + c * slope) if slope < inf else slope)
        return -y * wright_omega(x) / c

    def probability(self, s: np.ndarray) -> np.ndarray:
        """P(y = +1) = sigma(2 s), from the minimiser s = log(p / (1 - p)) / 2."""
        return 0.5 * (1.0 + np.tanh(s))


@function
def bounded_exp(u: float) -> float:
    """exp(u), infinite (and no error) where it overflows."""
    return exp(u) if u < 709.78 else inf


class Huber(NamedTuple):
    """The Huber loss l = e^2/2 where |e| <= delta, else delta |e| - delta^2/2, with e = s - y.

    References
    ----------
    Huber: Robust estimation of a location parameter. Annals of Mathematical Statistics 35, 1964.
    """

    factor: float = 1.0
    delta: float = 1.0

    residual = True

    @property
    def bend(self) -> float:
        """How far from the target the slope has its bound."""
        return self.delta

    def value(self, s: float, y: float) -> float:
        """e^2/2 where |e| <= delta, else delta |e| - delta^2/2, with e = s - y."""
        e = abs(s - y)
        return 0.5 * e * e if e <= self.delta else self.delta * (e - 0.5 * self.delta)

    def slope(self, s: float, y: float) -> float:
        """clip(s - y, -delta, delta)."""
        return min(max(s - y, -self.delta), self.delta)

    def curvature(self, s: float, y: float) -> float:
        """1 where |s - y| <= delta, else 0."""
        return 1.0 if abs(s - y) <= self.delta else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """t^2/2 + t y where |t| <= delta."""
        return 0.5 * t * t + t * y if abs(t) <= self.delta * (1.0 + ROUNDING) else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """clip((a - y) / (1 + C), -delta, delta)."""
        return min(max((a - y) / (1.0 + c), -self.delta), self.delta)


class EpsilonInsensitive(NamedTuple):
    """The epsilon-insensitive loss l = max(0, |s - y| - eps), with slope 0 at the kink.

    References
    ----------
    Vapnik: The nature of statistical learning theory. Springer, 1995.
    """

    factor: float = 1.0
    eps: float = 0.1

    residual = True

    @property
    def bend(self) -> float:
        """How far from the target the slope has its bound."""
        return self.eps

    def value(self, s: float, y: float) -> float:
        """max(0, |s - y| - eps)."""
        return max(0.0, abs(s - y) - self.eps)

    def slope(self, s: float, y: float) -> float:
        """sign(s - y) where |s - y| > eps, else 0."""
        return copysign(1.0, s - y) if abs(s - y) > self.eps else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """t y + eps |t| where |t| <= 1."""
        return t * y + self.eps * abs(t) if abs(t) <= 1.0 + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """sign(a - y) clip((|a - y| - eps) / C, 0, 1)."""
        over = abs(a - y) - self.eps
        if not over > 0.0:
            return 0.0
        return copysign(over / c if over < c else 1.0, a - y)


class Quantile(NamedTuple):
    """The quantile loss l = max(q (y - s), (1 - q) (s - y)), with slope 0 at s = y. The q-quantile minimises its mean.

    References
    ----------
    Koenker, Bassett: Regression quantiles. Econometrica 46, 1978.
    """

    factor: float = 1.0
    q: float = 0.5

    residual = True
    bend = 0.0

    def value(self, s: float, y: float) -> float:
        """max(q (y - s), (1 - q) (s - y))."""
        return max(self.q * (y - s), (1.0 - self.q) * (s - y))

    def slope(self, s: float, y: float) -> float:
        """1 - q where s > y, -q where s < y, 0 at s = y."""
        if s == y:
            return 0.0
        return 1.0 - self.q if s > y else -self.q

    def conjugate(self, t: float, y: float) -> float:
        """t y where -q <= t <= 1 - q."""
        return t * y if -self.q - ROUNDING <= t <= 1.0 - self.q + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """clip((a - y) / C, -q, 1 - q)."""
        e = a - y
        if e > (1.0 - self.q) * c:
            return 1.0 - self.q
        if e < -self.q * c:
            return -self.q
        return e / c if c > 0.0 else 0.0


class Poisson(NamedTuple):
    """The Poisson loss l = exp(s) - y s for counts y >= 0; the mean is exp(s).

    Its theta is omega(log C + a + C y) / C - y, with the Wright function omega.
    """

    factor: float = 1.0
    labels = "counts"
    steady = True
    vanishing = True
    likelihood = True

    def value(self, s: float, y: float) -> float:
        """exp(s) - y s."""
        return bounded_exp(s) - y * s

    def slope(self, s: float, y: float) -> float:
        """exp(s) - y."""
        return bounded_exp(s) - y

    def curvature(self, s: float, y: float) -> float:
        """exp(s)."""
        return bounded_exp(s)

    def conjugate(self, t: float, y: float) -> float:
        """u log u - u with u = t + y, where u >= 0."""
        u = t + y
        return entropy(u) - u if u >= -ROUNDING * max(1.0, y) else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """omega(log C + a + C y) / C - y."""
        slope = bounded_exp(a) - y
        if c == 0.0 or slope == 0.0:
            return slope
        z, cy = wright_omega(log(c) + a + c * y), c * y
        if cy > CANCELS and 0.5 * cy < z < 2.0 * cy:
            return (a - (log(z) - log(c))) / c
        if c >= 1.0:
            return z / c - y
        s = a + c * y - z
        for _ in range(2):
            e = bounded_exp(s)
            s -= (s + c * e - a - c * y) / (1.0 + c * e)
        return bounded_exp(s) - y

    def mean(self, s: np.ndarray) -> np.ndarray:
        """E y = exp(s)."""
        return np.exp(s)


class ModifiedHuber(NamedTuple):
    """The modified Huber loss l = max(0, 1 - m)^2 where m >= -1, else -4 m, m = y s (without a half, as scikit-learn has it).

    References
    ----------
    Zhang: Solving large scale linear prediction problems using stochastic gradient descent algorithms. ICML 2004.
    """

    factor: float = 1.0
    labels = "signs"

    def value(self, s: float, y: float) -> float:
        """max(0, 1 - y s)^2 where y s >= -1, else -4 y s."""
        m = y * s
        short = max(0.0, 1.0 - m)
        return short * short if m >= -1.0 else -4.0 * m

    def slope(self, s: float, y: float) -> float:
        """-y clip(2 (1 - y s), 0, 4)."""
        return -y * min(max(2.0 * (1.0 - y * s), 0.0), 4.0)

    def curvature(self, s: float, y: float) -> float:
        """2 where -1 < y s < 1, else 0."""
        return 2.0 if -1.0 < y * s < 1.0 else 0.0

    def conjugate(self, t: float, y: float) -> float:
        """u^2/4 - u with u = -y t, where 0 <= u <= 4."""
        u = -y * t
        return 0.25 * u * u - u if -ROUNDING <= u <= 4.0 + ROUNDING else inf

    def theta(self, a: float, c: float, y: float) -> float:
        """-y clip(2 (1 - y a) / (1 + 2 C), 0, 4)."""
        return -y * min(max(2.0 * (1.0 - y * a) / (1.0 + 2.0 * c), 0.0), 4.0)

    def probability(self, s: np.ndarray) -> np.ndarray:
        """P(y = +1) = (clip(s, -1, 1) + 1) / 2."""
        return 0.5 * (np.clip(s, -1.0, 1.0) + 1.0)


FIELDS = {
    "factor": "Multiplies the loss; greater than 0.",
    "margin": "The margin from which on the loss is 0; at least 0.",
    "delta": "The residual from which on the loss is linear; greater than 0.",
    "eps": "Half the width of the tube without loss; at least 0.",
    "q": "The quantile, between 0 and 1.",
}
_SCORE = """Parameters
----------
s : float
    The score <w, x>.
y : float
    The target: -1 or 1 for a margin loss, else a number.

Returns
-------
float"""
METHODS = {
    "value": f"The loss l(s, y), without ``factor``.\n\n{_SCORE}",
    "slope": f"An element of the subdifferential of l(s, y) in s, without ``factor``.\n\n{_SCORE}",
    "curvature": f"The second derivative of l(s, y) in s, without ``factor``.\n\n{_SCORE}",
    "theta": """The theta of the implicit step: theta in dl(s, y) at s = a - C theta; the slope at a where C = 0.

Parameters
----------
a : float
    The score before the step.
c : float
    C, the step size times the sum of the row's squares; at least 0.
y : float
    The target: -1 or 1 for a margin loss, else a number.

Returns
-------
float""",
    "conjugate": """sup_s t s - l(s, y), without ``factor``; infinite where t is no slope of l.

Parameters
----------
t : float
    A slope.
y : float
    The target: -1 or 1 for a margin loss, else a number.

Returns
-------
float""",
    "probability": "The probability of the class +1 at the scores ``s``, an array of any shape; the result has that shape.",
    "mean": "The mean of the target at the scores ``s``, an array of any shape; the result has that shape.",
}


# --- theta of lanes: the bits of theta ---------------------------------------------------------------------------------


@function
def squared_thetas(loss, a, c, y):  # type: ignore[no-untyped-def]
    """``Squared.theta``."""
    return loss.theta(a, c, y)


@function
def hinge_thetas(loss, a, c, y):  # type: ignore[no-untyped-def]
    """``Hinge.theta``."""
    short = loss.margin - y * a
    return where(short > 0.0, where(short < c, -y * (short / c), -y), 0.0)


@function
def logistic_thetas(loss, a, c, y):  # type: ignore[no-untyped-def]
    """``Logistic.theta``."""
    return -y * implicit_slopes(y * a, c)


for _loss in parts_of(globals()).values():
    describe(_loss, FIELDS, METHODS)
    adopt(_loss)
take_lanes(Squared, squared_thetas, inf)
take_lanes(Hinge, hinge_thetas, inf)
take_lanes(Logistic, logistic_thetas, LARGE_STEP)
