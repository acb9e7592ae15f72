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

A table holds q_{c+1}, E_c, R_c in turn for c = 0, 1, ..: a search ends beside the sums that it is for.
"""

from __future__ import annotations

from math import copysign, exp2, expm1, log
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, ask, function, lane_by_lane, room, where
from onlinear.text.describe import describe

LOG_2 = log(2.0)
NUMBERS = 3  # of a step in a table
MOST_JUMPS = 6  # of a search, along the slope where it stands, before it halves what is left


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


ADAPTIVE = "adaptive"  # the weighted-t1 average, or the last iterate while that scores the recent rows better
CALIBRATED = f"{ADAPTIVE},calibrated=true"  # the same, times its calibration slope


def new_table(steps: int, outputs: int = 1) -> np.ndarray:
    """The table of a block of up to ``steps`` steps, or one after the other those of several outputs."""
    return np.zeros(NUMBERS * (steps + 1) * outputs)


def room_for_steps(table: np.ndarray) -> int:
    """How many steps a table has room for."""
    return len(table) // NUMBERS - 1


@function
def grown(E, R, om, q, inverse):  # type: ignore[no-untyped-def]
    """The prefix sums E and R with one more step in them (numbers or lanes)."""
    return E + om * inverse, R + om * q * inverse


@function
def threshold_of(table: np.ndarray, c: int) -> float:
    """The threshold of step c of the block; 0 before the first."""
    return table[NUMBERS * (c - 1)] if c > 0 else 0.0


@function
def sums_of(table: np.ndarray, c: int) -> tuple[float, float]:
    """E_c and R_c."""
    return table[NUMBERS * c + 1], table[NUMBERS * c + 2]


@function
def enter(table: np.ndarray, c: int, q: float, E: float, R: float) -> None:
    """Write the threshold and the sums of step c of the block."""
    at = NUMBERS * c
    table[at - NUMBERS], table[at + 1], table[at + 2] = q, E, R


@function
def record(table: np.ndarray, c: int, om: float, q: float, inverse: float) -> tuple[float, float, float]:
    """Enter step c of the block: its threshold q, and om / p, with inverse = 1/p; give (q, E_c, R_c)."""
    E, R = grown(*sums_of(table, c - 1), om, q, inverse)
    enter(table, c, q, E, R)
    return q, E, R


@function
def along(table: np.ndarray, c: int, k: int, size: float) -> int:
    """The place among the first c > k thresholds where the slope at k is at ``size``; k where it does not say."""
    if k < 1:
        return k
    q = table[NUMBERS * k]
    gap, far = q - table[NUMBERS * (k - 1)], size - q
    if not abs(far) < gap * c:
        return k
    return min(max(k + int(far / gap), 1), c - 1)


@function
def alive(table: np.ndarray, c: int, size: float) -> int:
    """The number of the first c steps of the block whose threshold is below ``size``.

    Thresholds of steps rise evenly: their slope says where to look next, until what is left is halved.
    """
    if c == 0 or table[NUMBERS * (c - 1)] < size:
        return c
    return alive_near(table, c, along(table, c, along(table, c, c - 1, size), size), size)


@function
def alive_near(table: np.ndarray, c: int, k: int, size: float) -> int:
    """``alive`` of c > 0 steps of which the last one's threshold is not below ``size``, looked for from place k on."""
    k = min(k, c - 2)
    if k > 0 and table[NUMBERS * (k - 1)] < size and size <= table[NUMBERS * (k + 1)]:
        return k + (1 if table[NUMBERS * k] < size else 0)
    return searched(table, c, max(k, 0), size)


@function
def searched(table: np.ndarray, c: int, k: int, size: float) -> int:
    """What ``alive_near`` gives, wherever it is."""
    low, high = 0, c - 1
    for _ in range(MOST_JUMPS):
        q = table[NUMBERS * k]
        if q < size:
            other = table[NUMBERS * (k + 1)]
            if other >= size:
                return k + 1
            low = k + 2
        else:
            other = table[NUMBERS * (k - 1)] if k > 0 else -1.0
            if other < size:
                return k
            high = k - 1
        gap, far = abs(other - q), size - q
        if not abs(far) < gap * (high - low):
            break
        k += int(far / gap)
    while low < high:
        middle = (low + high) >> 1
        if table[NUMBERS * middle] < size:
            low = middle + 1
        else:
            high = middle
    return low


@function
def restart(table: np.ndarray) -> None:
    """Begin a block."""
    table[1] = table[2] = 0.0


@function
def up_to(E: float, R: float, v: float) -> float:
    """sign(v) (|v| E - R) for v other than 0."""
    return v * E - copysign(R, v)


@function
def part_sum(table: np.ndarray, c: int, v: float) -> float:
    """sign(v) (|v| E_K - R_K): the part of the sum that B lacks, for a state v after c steps of the block; 0 for v = 0."""
    if v == 0.0:
        return 0.0
    E, R = sums_of(table, alive(table, c, abs(v)))
    return up_to(E, R, v)


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
    return where(abs(old) > q, up_to(E, R, old), 0.0) - where(lives, up_to(E, R, new), 0.0), lives * new


@function
def moved_sum(mark, old, new):  # type: ignore[no-untyped-def]
    """The change of B_j that ``turned`` gives where no threshold has risen (numbers or lanes)."""
    return old * mark[1] - new * mark[1]


def room_to_close(longest: int) -> np.ndarray:
    """Room for what ``close_fallen`` lists, of rows of up to ``longest`` entries."""
    return np.empty(2 * (longest + 1), np.int64)


@function
def close_fallen(table, c, mark, V, B, indices, begin, end, listed):  # type: ignore[no-untyped-def]
    """Close the sums of a row's fallen states, which step c then moves.

    They are listed in ``listed`` first, without a branch, each with the place at which the last slope has its step. Then each
    look into the table is made for all of them: it asks for the line of memory of the next, for which no other look waits.
    """
    steps, found, apart = room(table, 0), room(listed, 0), listed.shape[0] // 2
    q, last, count = mark[0], c - 1, 0
    for k in range(begin, end):
        j = indices[k]
        found[count] = j
        count += 1 if fallen(V[j], q) else 0
    gap = q - threshold_of(steps, last)
    slope = 1.0 / gap if gap > 0.0 else 0.0
    for e in range(count):
        guess = last + (abs(V[found[e]]) - q) * slope
        found[apart + e] = int(min(guess if guess > 1.0 else 1.0, last + 0.0))  # 1 also for what is no number
        ask(steps, NUMBERS * found[apart + e])
    for e in range(count):
        found[apart + e] = along(steps, c, found[apart + e], abs(V[found[e]]))
        ask(steps, NUMBERS * found[apart + e])
    for e in range(count):
        j = found[e]
        v = V[j]
        E, R = sums_of(steps, alive_near(steps, c, found[apart + e], abs(v)))
        B[j] += up_to(E, R, v)


@function
def moved(table: np.ndarray, c: int, mark: tuple[float, float, float], B: np.ndarray, j: int, old: float, new: float) -> float:
    """Bring B_j along when the state of j turns at step c; give the state to keep."""
    if fallen(old, mark[0]):
        B[j] += part_sum(table, c, old)
    gained, kept = turned(mark, old, new)
    B[j] += gained
    return kept
