r"""Averages of the predictor over the steps, as data: one type, five settings, kept lazily.

With w_k the predictor before step k, an average is

    sum_k om_k w_k / sum_k om_k,   om_k = base + growth k  for k >= first, else 0                       (MATH 4.2),

so `uniform` is (1, 0), `weighted-t` (0, 1), `weighted-t1` (1, 1) and a suffix is `uniform` with a later first step.
`uniform-post` averages the predictors after the steps, w_2 .. w_{T+1}: om is shifted by one (om_1 = 0) and the last
predictor is added when the average is read. Where rows are forgotten, ``Fading`` weights a predictor by its age.

Lazy form (MATH 11.3, 11.5). Where a state v does not change, the predictor of step k is sign(v) (|v| - q_k)_+ / p_k with
scalars q_k (non-decreasing) and p_k > 0 that no coordinate knows of. With prefix sums over the steps of a block

    E_c = sum_{k <= c} om_k / p_k,   R_c = sum_{k <= c} om_k q_k / p_k,

the sum over steps a+1 .. c is sign(v) [ |v| (E_K - E_a) - (R_K - R_a) ], K = the number of steps with q_k < |v| (at most c).
A coordinate therefore keeps B = (its sum so far) - sign(v) (|v| E_a - R_a), which is written only when v is.
"""

from __future__ import annotations

from math import copysign, exp2, expm1, log
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, lane_by_lane
from onlinear.text.describe import describe

LOG_2 = log(2.0)


class Average(NamedTuple):
    """The average sum_k om_k w_k / sum_k om_k of predictors, with om_k = base + growth k from step ``first`` on (MATH 4.2)."""

    base: float = 1.0
    growth: float = 0.0
    first: float = 1.0
    post: bool = False

    def om(self, k: int) -> float:
        """om_k, the weight of the predictor before step ``k``, counted from 1: base + growth k, and 0 before ``first``."""
        shifted = k - 1.0 if self.post else k + 0.0
        return self.base + self.growth * shifted if shifted >= self.first else 0.0

    def total(self, t: int) -> float:
        """om_1 + ... + om_t, the sum of the weights after ``t`` steps, a float."""
        n = t - self.first + 1.0
        return n * self.base + self.growth * n * (0.5 * (t + self.first)) if n > 0.0 else 0.0

    def faded(self, total: float, steps: float) -> float:
        """What is left after some ``steps`` of a sum of weighted predictors: all of it."""
        return total

    def resting(self, w: float, stamp: float, t: float) -> float:
        """The sum of om_k w over the steps k = stamp + 1 .. t, of a weight that rests without a penalty (numbers or lanes)."""
        post = 1.0 if self.post else 0.0
        first = max(stamp + 1.0, self.first + post)
        m = max(t - first + 1.0, 0.0)
        return w * (m * (self.base + self.growth * (first - post)) + self.growth * (0.5 * m * (m - 1.0)))


class Masked(Average):
    """An average that is 0 where the last iterate is 0: as sparse as that. What kernels sum is the average itself."""

    __slots__ = ()


@function
def rows_kept(t: float, half_life: float) -> float:
    """1 + gamma + ... + gamma^(t-1), gamma = 2^(-1 / half_life): the rows that ``t`` rows count for (MATH 18.8)."""
    return expm1(-t * (LOG_2 / half_life)) / expm1(-LOG_2 / half_life)


@function
def ages_kept(m: float, half_life: float) -> float:
    """The sum of i gamma^i over i = 0 .. m-1: in closed form, or where that cancels by powers of the decay."""
    x = LOG_2 / half_life
    if m * x > 1e-3:
        kept = exp2(-m / half_life)
        return (rows_kept(m, half_life) - 1.0 - (m - 1.0) * kept) / -expm1(-x)
    pairs = 0.5 * m * (m - 1.0)
    squares = pairs * (2.0 * m - 1.0) / 3.0
    fourths = squares * (3.0 * m * (m - 1.0) - 1.0) / 5.0
    return pairs - x * (squares - x / 2.0 * (pairs * pairs - x / 3.0 * fourths))


@lane_by_lane
def resting_and_fading(w, stamp, t, base, growth, half_life):  # type: ignore[no-untyped-def]
    """The sum of (base + growth k) gamma^(t-k) w over the steps k = stamp + 1 .. t."""
    m = t - stamp
    total = (base + growth * t) * rows_kept(m, half_life)
    return w * (total - growth * ages_kept(m, half_life) if growth > 0.0 else total)


class Fading(NamedTuple):
    """The average of predictors whose weights fade, om_k gamma^(t-k), with om_k = base + growth k, gamma = 2^(-1/half_life)."""

    base: float = 1.0
    growth: float = 0.0
    half_life: float = 1e4

    @property
    def post(self) -> bool:
        """False: the predictors before the steps are averaged."""
        return False

    def om(self, k: int) -> float:
        """base + growth k, the weight of the predictor before step ``k`` at that step."""
        return self.base + self.growth * k

    def total(self, t: int) -> float:
        """The sum of the weights after ``t`` steps."""
        return self.resting(1.0, 0.0, t + 0.0)

    def faded(self, total: float, steps: float) -> float:
        """gamma^steps total."""
        return exp2(-steps / self.half_life) * total

    def resting(self, w: float, stamp: float, t: float) -> float:
        """The sum of om_k gamma^(t-k) w over the steps k = stamp + 1 .. t, of a weight that rests (numbers or lanes)."""
        return resting_and_fading(w, stamp, t, self.base, self.growth, self.half_life)


def plain(average: Any) -> Any:
    """The average whose sums are kept: of a masked one, that without its mask."""
    return Average(*average) if isinstance(average, Masked) else average


FIELDS = {
    "base": "The constant part of the weights; at least 0.",
    "growth": "The part of the weights that grows with the step; at least 0.",
    "first": "The first step whose predictor counts; at least 1.",
    "half_life": "The rows after which a predictor counts half; above 0.",
    "post": "Whether the predictors after the steps are averaged, not those before.",
}

for _average in (Average, Masked, Fading):
    describe(_average, FIELDS, {})
adopt(Average)
adopt(Fading)

NAMED = {
    "uniform": Average(1.0, 0.0),
    "uniform-post": Average(1.0, 0.0, 1.0, True),
    "weighted-t": Average(0.0, 1.0),
    "weighted-t1": Average(1.0, 1.0),
}


TINY = 1e-290  # thresholds up to here are searched for without a guess
ADAPTIVE = "adaptive"  # the weighted-t1 average, or the last iterate while that scores the recent rows better


@function
def record(table: np.ndarray, c: int, om: float, q: float, inverse: float) -> tuple[float, float, float]:
    """Enter step c of the block: its threshold q, and om / p, with inverse = 1/p; give (q, E_c, R_c)."""
    E = table[1, c - 1] + om * inverse
    R = table[2, c - 1] + om * q * inverse
    table[0, c - 1], table[1, c], table[2, c] = q, E, R
    return q, E, R


@function
def alive(table: np.ndarray, c: int, size: float) -> int:
    """The number of the first c steps of the block whose threshold is below ``size``."""
    if c == 0 or not size <= table[0, c - 1]:
        return c
    k = guessed(c, size, rate(c, table[0, c - 1]))
    return k if ends_at(table, k, size) else searched(table, c - 1, k, size)


@function
def rate(c: int, q: float) -> float:
    """The steps in which a threshold rises by 1 if c steps have raised it evenly to q; 0 where they are too many."""
    return c / q if q > TINY else 0.0


@function
def guessed(c: int, size: float, by: float) -> int:
    """The number of steps whose threshold is below ``size``, that of step c at most, if they rise evenly."""
    return min(int(size * by), c - 1)


@function
def ends_at(table: np.ndarray, k: int, size: float) -> bool:
    """Whether the thresholds of the first k steps, and no others, are below ``size``."""
    return table[0, k] >= size and (k == 0 or table[0, k - 1] < size)


@function
def nearer(table: np.ndarray, last: int, k: int, size: float) -> int:
    """A step near k, up to ``last``, whose threshold is about ``size``: by up to four of Newton's steps."""
    for _ in range(4):
        rise = table[0, k + 1] - table[0, k] if k < last else table[0, k] - table[0, k - 1]
        lacks = size - table[0, k]
        if not (rise > 0.0 and abs(lacks) > rise):
            break
        steps = lacks / rise
        k = last if steps > last - k else 0 if steps < -k else k + int(steps)
    return k


@function
def searched(table: np.ndarray, last: int, guess: int, size: float) -> int:
    """The number of steps whose threshold is below ``size``, that of ``last`` at most: strides grow from near a guess on."""
    low, high, stride, k = 0, last, 1, nearer(table, last, guess, size)
    if table[0, k] < size:
        low = k + 1
        while low + stride <= high and table[0, low + stride - 1] < size:
            low += stride
            stride *= 4
        high = min(high, low + stride - 1)
    else:
        high = k
        while high - stride >= low and table[0, high - stride] >= size:
            high -= stride
            stride *= 4
        low = max(low, high - stride + 1)
    while low < high:
        middle = (low + high) >> 1
        if table[0, middle] < size:
            low = middle + 1
        else:
            high = middle
    return low


@function
def up_to(E: float, R: float, v: float) -> float:
    """sign(v) (|v| E - R) for v other than 0."""
    return v * E - copysign(R, v)


@function
def part_sum(table: np.ndarray, c: int, v: float) -> float:
    """sign(v) (|v| E_K - R_K): the part of the sum that B lacks, for a state v after c steps of the block; 0 for v = 0."""
    if v == 0.0:
        return 0.0
    k = alive(table, c, abs(v))
    return up_to(table[1, k], table[2, k], v)


@function
def fallen(v, q):  # type: ignore[no-untyped-def]
    """Whether a state fell to the threshold q while it rested, so that its predictor is 0 for good (numbers or lanes)."""
    return (v != 0.0) * (abs(v) <= q)


@function
def turned(mark, old, new):  # type: ignore[no-untyped-def]
    """The change of B_j and the state to keep, for a state that step c changes from ``old`` to ``new`` (numbers or lanes).

    ``mark`` is (q, E_c, R_c) as ``record`` gave them. A new state that is not above q is 0 from now on; of an old one that is
    not, the sum has been closed before.
    """
    q, E, R = mark
    lives = abs(new) > q
    return (abs(old) > q) * up_to(E, R, old) - lives * up_to(E, R, new), lives * new


@function
def close_fallen(table, c, mark, V, B, indices, begin, end):  # type: ignore[no-untyped-def]
    """Close the sums of a row's fallen states, which step c then moves: these need a search where no guess is right."""
    by = rate(c, mark[0])  # a division for each would take as long as the rest
    for k in range(begin, end):
        j = indices[k]
        v = V[j]
        if fallen(v, mark[0]):
            dies = guessed(c, abs(v), by)
            if not ends_at(table, dies, abs(v)):
                dies = searched(table, c - 1, dies, abs(v))
            B[j] += up_to(table[1, dies], table[2, dies], v)


@function
def moved(table: np.ndarray, c: int, mark: tuple[float, float, float], B: np.ndarray, j: int, old: float, new: float) -> float:
    """Bring B_j along when the state of j turns at step c; give the state to keep."""
    if fallen(old, mark[0]):
        B[j] += part_sum(table, c, old)
    gained, kept = turned(mark, old, new)
    B[j] += gained
    return kept
