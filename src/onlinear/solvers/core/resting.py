"""Sums of the weights of a coordinate while it rests, for states of several numbers (plain.py), in closed form (MATH 18.3).

A coordinate that rests with numbers z and sigma has, before step k, the weight

    w_k = -sign(z) (|z| - p l1)_+ / (sigma + p l2),      p = k - 1,

so the sum that an average needs, over steps k of weight om_k = base + growth k, is that of a quadratic over a linear function
of k, up to the step at which the weight falls to 0. No table is kept: a coordinate has a sum, and the step up to which it goes.
"""

from __future__ import annotations

from math import ceil, log1p
from typing import NamedTuple

from onlinear.compiled import function

FEW = 32  # terms that are added one by one
NODES = (0.2386191860831969, 0.6612093864662645, 0.9324695142031521)  # Gauss-Legendre of six points, on [-1, 1]
WEIGHTS = (0.467913934572691, 0.3607615730481386, 0.1713244923791704)


class Nothing(NamedTuple):
    """No penalty, as sums are told of it: they compile in a fourth of the time where there is no l2."""

    l1: float = 0.0
    l2: None = None


@function
def sum_at(average, so_far, stamp, w, t):
    """The sum up to step t of a weight that has rested without a penalty since the step ``stamp``, up to which ``so_far`` goes
    (numbers or lanes)."""
    return average.faded(so_far, float(t) - stamp) + average.resting(w, stamp, float(t))


@function
def idle_sum(z, sigma, l1, l2, grows, stamp, t, average):
    """sum of om_k w_k over the steps k = stamp + 1 .. t; ``grows``: whether the penalty is that of all steps, or (p = 1 from
    step 2 on) of one. ``l2`` may be None for 0."""
    begins = average.first + (1.0 if average.post else 0.0)
    first = max(stamp + 1.0, begins)
    if z == 0.0 or t < first:
        return 0.0
    if grows:
        return sum_of(z, sigma, l1, l2, first - 1.0, 1.0, average.om(first), average.growth, t - first + 1.0)
    total = 0.0
    if first == 1.0:
        total, first = average.om(1) * (-z / sigma), 2.0
    return total + sum_of(z, sigma, l1, l2, 1.0, 0.0, average.om(first), average.growth, t - first + 1.0)


@function
def sum_of(z, sigma, l1, l2, p, rise, om, growth, m):
    """The sum over i = 0 .. m-1 of (om + growth i) w, where the penalty of w is that of p + rise i steps."""
    v, k, sign = abs(z) - p * l1, rise * l1, -1.0 if z > 0.0 else 1.0
    if not (v > 0.0 and m > 0.0):
        return 0.0
    if k > 0.0 and v / k < m:
        m = ceil(v / k)
    if l2 is None:
        return steady_sum(v, sigma, k, om, growth, m) * sign
    return positive_sum(v, sigma + p * l2, k, rise * l2, om, growth, m) * sign


@function
def steady_sum(v, D, k, om, growth, m):
    """The sum over i = 0 .. m-1 of (om + growth i) (v - k i) / D."""
    pairs = 0.5 * m * (m - 1.0)
    return (om * (m * v - k * pairs) + growth * pairs * (v - k * (2.0 * m - 1.0) / 3.0)) / D


@function
def positive_sum(v, D, k, shrink, om, growth, m):
    """The sum over i = 0 .. m-1 of (om + growth i) (v - k i) / (D + shrink i), no term of which is negative."""
    if shrink == 0.0:
        return steady_sum(v, D, k, om, growth, m)
    if m <= FEW:
        total = 0.0
        for i in range(int(m)):
            total += (om + growth * i) * (v - k * i) / (D + shrink * i)
        return total
    if shrink * m < 0.25 * D:
        return by_quadrature(v, D, k, shrink, om, growth, m)
    h = D / shrink
    linear = growth * v - om * k + growth * k * h
    rest = (om - growth * h) * (v + k * h) * digamma_difference(h, m)
    return (m * (linear - 0.5 * growth * k * (m - 1.0)) + rest) / shrink


@function
def by_quadrature(v, D, k, shrink, om, growth, m):
    """``positive_sum`` by the Euler-Maclaurin formula, for shrink m < D / 4: the poles are far from the interval."""
    total, half = 0.0, 0.5 * m
    for e in range(3):
        for sign in (-1.0, 1.0):
            i = half + sign * half * NODES[e]
            total += half * WEIGHTS[e] * ((om + growth * i) * (v - k * i) / (D + shrink * i))
    x = shrink / D
    r, end = (om * x - growth) * (v * x + k), 1.0 + m * x
    last = (om + growth * m) * (v - k * m) / (D + shrink * m)
    slopes = r * m * (1.0 + end) / (D * end * end)
    thirds = 6.0 * r * x / D * (1.0 - 1.0 / (end * end * end * end))
    return total - 0.5 * (last - om * v / D) + slopes / 12.0 - thirds / 720.0


@function
def digamma_difference(h, m):
    """psi(h + m) - psi(h), for h > 0 and m >= 12."""
    total, shift = 0.0, 0.0
    while h + shift < 12.0:
        total += 1.0 / (h + shift)
        shift += 1.0
    low, high = h + shift, h + m
    return total + log1p((m - shift) / low) + (tail(high) - tail(low))


@function
def tail(x):
    """psi(x) - log x, from its asymptotic series, for x >= 12."""
    f = 1.0 / (x * x)
    return -0.5 / x - f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f / 132.0))))
