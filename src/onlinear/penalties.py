r"""Every penalty r(w) once: its value, its prox, and the prox over a run of steps.

    prox_{eta r}(v) = argmin_w r(w) + |w - v|^2 / (2 eta)                                                   (MATH 3.1)

A separable penalty takes O(non-zeros) in solvers whose idle step is the bare prox: a *clock* advances by ``tick`` once
per step for all coordinates, and a coordinate keeps a number, its *potential*, that no idle step changes:

    weight(v, clock)                    the weight that potential v stands for
    potential(w, clock)                 the inverse:  weight(potential(w, c), c) = w
    weight(v, tick(clock, eta))         = prox(weight(v, clock), eta)          while v is not written

For the elastic net (MATH 11.1): P_t = prod (1 + eta l2), Q_t = l1 sum eta P_{t-1}; |v| = P|w| + Q. A user's penalty offers
``value`` and ``prox`` (of one weight, or of a vector), and the three methods above with ``start()``, the first clock, if it
is not (1.0, 0.0). Kernels work with raw weights, P w (``unit(clock)`` is P, 1 for a user's penalty), four at a time: the raw
methods take numbers or lanes (compiled/lanes.py).

Dual averaging asks for the primal point of a sum of gradients,

    primal(g, c, beta) = argmin_w <g, w> + c r(w) + (beta/2) |w|^2                                          (MATH 6.1)

which is prox_{(c/beta) r}(-g/beta) for beta > 0 and any r; the built-in penalties with l2 > 0 also have it for beta = 0.

A duality gap asks for the conjugate r*(v) = max_w <v, w> - r(w), and how far v reaches into its domain (MATH 20.1).
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, inf
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function, kept_function, within
from onlinear.text.describe import describe
from onlinear.text.form import kebab

Clock = tuple[float, float, float, float]
EPSILON = float(np.finfo(np.float64).eps)
LARGEST = 1e150  # of a weight: its square is a number


@function
def soft(v: float, k: float) -> float:
    """sign(v) max(|v| - k, 0), exactly 0 where |v| <= k."""
    return v - within(v, k)


class ElasticNet(NamedTuple):
    """The elastic net r(w) = l1 |w|_1 + (l2/2) |w|^2, with prox(v) = soft(v, eta l1) / (1 + eta l2).

    The clock is (P, Q, 1/P, P - 1). P - 1 is summed, since the rounding of a product of many factors 1 + eta l2 would add up:
    it has one sign where the step is constant. The potential of a value before its prox may be taken at the clock before that
    step: the prox is then part of the idle map, which ``deposit`` uses.

    References
    ----------
    Zou, Hastie: Regularization and variable selection via the elastic net. Journal of the Royal Statistical Society B 67, 2005.
    """

    l1: float = 0.0
    l2: float = 0.0
    separable = clock_thresholds = takes_lanes = True
    weight_bounds = None

    def value(self, w: np.ndarray) -> float:
        """l1 |w|_1 + (l2/2) |w|^2."""
        squares = 0.5 * self.l2 * np.sum(np.square(w)) if self.l2 > 0.0 else 0.0
        return float(self.l1 * np.sum(np.abs(w)) + squares)

    def prox(self, v: Any, eta: float) -> Any:
        """soft(v, eta l1) / (1 + eta l2)."""
        kept = np.maximum(np.abs(v) - eta * self.l1, 0.0) / (1.0 + eta * self.l2)
        return np.copysign(kept, v) + 0.0

    def primal(self, g: np.ndarray, c: float, beta: float) -> np.ndarray:
        """soft(-g, c l1) / (c l2 + beta)."""
        return np.copysign(np.maximum(np.abs(g) - c * self.l1, 0.0) / (c * self.l2 + beta), -g) + 0.0

    def conjugate(self, v: np.ndarray) -> float:
        """|soft(v, l1)|^2 / (2 l2); with l2 = 0 it is 0 where every |v_j| <= l1, else infinite."""
        return Box(self.l1, self.l2).conjugate(v)

    def reach(self, v: np.ndarray) -> float:
        """1 with l2 > 0, else min(1, l1 / max_j |v_j|)."""
        return Box(self.l1, self.l2).reach(v)

    def start(self) -> Clock:
        """(1, 0, 1, 0): P = 1, Q = 0."""
        return 1.0, 0.0, 1.0, 0.0

    def tick(self, clock: Clock, eta: float) -> Clock:
        """(P', Q + l1 eta P, 1/P', P' - 1) with P' = P (1 + eta l2)."""
        P, Q, _, gain = clock
        gain += eta * self.l2 * P
        after = 1.0 + gain
        return after, Q + self.l1 * eta * P, 1.0 / after, gain

    def weight(self, v: float, clock: Clock) -> float:
        """soft(v, Q) / P."""
        return self.raw_weight(v, clock) * clock[2]

    def potential(self, w: float, clock: Clock) -> float:
        """P w + Q sign(w), and 0 for w = 0."""
        return self.raw_potential(clock[0] * w, clock)

    def deposit(self, v: float, eta: float, clock: Any, after: Any) -> float:
        """P v + Q sign(v): the prox is part of the next steps without the coordinate."""
        return self.raw_deposit(clock[0] * v, eta, clock, after)

    def unit(self, clock: Clock) -> float:
        """P: raw weights are P w, which spares kernels a product per entry."""
        return clock[0]

    def raw_weight(self, v: float, clock: Clock) -> float:
        """soft(v, Q)."""
        return soft(v, clock[1])

    def raw_potential(self, u: float, clock: Clock) -> float:
        """u + Q sign(u), and 0 for u = 0."""
        return u + copysign(clock[1], u) * (u != 0.0)

    def raw_deposit(self, u: float, eta: float, clock: Any, after: Any) -> float:
        """u + Q sign(u)."""
        return u + copysign(clock[1], u)

    def land(self, u: float, threshold: float, shrink: float) -> tuple[float, float]:
        """soft(u, threshold) shrink."""
        kept = soft(u, threshold)
        return kept * shrink, 1.0 * (kept != 0.0)


def told(penalty: Any) -> str:
    """What is particular in a penalty, in words for one that is refused."""
    if type(penalty) is FusedLasso:
        return "total variation (tv=)"
    return "bounds (lower=, upper=)" if type(penalty) is Box else repr(kebab(type(penalty).__name__))


def is_bare(penalty: Any) -> bool:
    """Whether a penalty is none."""
    return type(penalty) is ElasticNet and not any(penalty)


class Box(NamedTuple):
    """The elastic net on a box: l1 |w|_1 + (l2/2) |w|^2 where lower <= w <= upper. Its prox is the elastic net's, clipped.

    An idle weight never leaves the box, so the clock is the elastic net's. A deposit is clipped so that the prox of its own
    step ends on the bound.
    """

    l1: float = 0.0
    l2: float = 0.0
    lower: float = -inf
    upper: float = inf
    separable = clock_thresholds = takes_lanes = True

    @property
    def weight_bounds(self) -> tuple[float, float]:
        """The bounds of every weight."""
        return self.lower, self.upper

    def value(self, w: np.ndarray) -> float:
        """The elastic net's value inside the box, infinite outside."""
        if np.any(w < self.lower) or np.any(w > self.upper):
            return inf
        return ElasticNet(self.l1, self.l2).value(w)

    def prox(self, v: Any, eta: float) -> Any:
        """The elastic net's prox, clipped to the box."""
        return np.minimum(np.maximum(ElasticNet(self.l1, self.l2).prox(v, eta), self.lower), self.upper)

    def primal(self, g: np.ndarray, c: float, beta: float) -> np.ndarray:
        """The elastic net's point, clipped to the box."""
        return np.minimum(np.maximum(ElasticNet(self.l1, self.l2).primal(g, c, beta), self.lower), self.upper)

    def conjugate(self, v: np.ndarray) -> float:
        """sum_j v_j w_j - r(w_j) with w_j = clip(soft(v_j, l1) / l2), which for l2 = 0 is a bound or infinite.

        Infinite too where a weight is beyond 1e150: no number that is too small may stand for the largest."""
        pull = np.copysign(np.maximum(np.abs(v) - self.l1, 0.0), v)
        if self.l2 > 0.0:
            with np.errstate(over="ignore"):
                w = np.clip(pull / self.l2, self.lower, self.upper)
        else:
            w = np.where(pull > 0.0, self.upper, np.where(pull < 0.0, self.lower, 0.0))
        free = (pull != 0.0) & (w != 0.0)
        if np.any(np.abs(w[free]) > LARGEST):
            return inf
        return float(np.sum(pull[free] * w[free] - 0.5 * self.l2 * np.square(w[free])))

    def reach(self, v: np.ndarray) -> float:
        """min(1, l1 / |v_j|) over the weights that neither l2 nor a bound holds."""
        if self.l2 > 0.0:
            return 1.0
        unbound = np.abs(np.where((v > 0.0) & np.isinf(self.upper) | (v < 0.0) & np.isinf(self.lower), v, 0.0))
        largest = float(unbound.max(initial=0.0))
        return 1.0 if largest <= self.l1 else self.l1 / largest * (1.0 - 4.0 * EPSILON)

    def start(self) -> Clock:
        """The elastic net's first clock."""
        return ElasticNet(self.l1, self.l2).start()

    def tick(self, clock: Clock, eta: float) -> Clock:
        """The elastic net's clock."""
        return ElasticNet(self.l1, self.l2).tick(clock, eta)

    def weight(self, v: float, clock: Clock) -> float:
        """The elastic net's weight, clipped to the box."""
        return min(max(ElasticNet(self.l1, self.l2).weight(v, clock), self.lower), self.upper)

    def potential(self, w: float, clock: Clock) -> float:
        """The elastic net's potential."""
        return ElasticNet(self.l1, self.l2).potential(w, clock)

    def deposit(self, v: float, eta: float, clock: Any, after: Any) -> float:
        """The elastic net's deposit, clipped so that the prox ends in the box."""
        return self.raw_deposit(clock[0] * v, eta, clock, after)

    def unit(self, clock: Clock) -> float:
        """P, as for the elastic net."""
        return clock[0]

    def raw_weight(self, v: float, clock: Clock) -> float:
        """soft(v, Q), clipped to P times the box."""
        u = ElasticNet(self.l1, self.l2).raw_weight(v, clock)
        return min(max(u, clock[0] * self.lower), clock[0] * self.upper)

    def raw_potential(self, u: float, clock: Clock) -> float:
        """u + Q sign(u), and 0 for u = 0."""
        return ElasticNet(self.l1, self.l2).raw_potential(u, clock)

    def raw_deposit(self, u: float, eta: float, clock: Any, after: Any) -> float:
        """The elastic net's deposit, clipped so that the prox ends in the box."""
        gain = after[1] - clock[1]
        u = min(max(u, after[0] * self.lower - gain), after[0] * self.upper + gain)
        return u + copysign(clock[1], u)

    def land(self, u: float, threshold: float, shrink: float) -> tuple[float, float]:
        """The elastic net's point, clipped to the box."""
        w, free = ElasticNet(self.l1, self.l2).land(u, threshold, shrink)
        return min(max(w, self.lower), self.upper), free * (self.lower < w) * (w < self.upper)


class FusedLasso(NamedTuple):
    """The fused lasso r(w) = tv sum_j |w_{j+1} - w_j| + l1 |w|_1 + (l2/2) |w|^2, optionally on lower <= w <= upper.

    prox = clip(soft(TVprox(v / (1 + eta l2), eta tv / (1 + eta l2)), eta l1 / (1 + eta l2)), lower, upper)      (MATH 3.5).
    It costs O(d), since the differences couple all coordinates.

    References
    ----------
    Tibshirani et al.: Sparsity and smoothness via the fused lasso. Journal of the Royal Statistical Society B 67, 2005.
    """

    tv: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    lower: float = -inf
    upper: float = inf
    separable = False

    def value(self, w: np.ndarray) -> float:
        """tv sum_j |w_{j+1} - w_j| + l1 |w|_1 + (l2/2) |w|^2, infinite outside the box."""
        return float(self.tv * np.sum(np.abs(np.diff(w)))) + Box(self.l1, self.l2, self.lower, self.upper).value(w)

    def prox(self, v: np.ndarray, eta: float) -> np.ndarray:
        """clip(soft(TVprox(v / s, eta tv / s), eta l1 / s), lower, upper) with s = 1 + eta l2."""
        shrink = 1.0 + eta * self.l2
        return soft_and_clip(taut_string(v / shrink, eta * self.tv / shrink), eta * self.l1 / shrink, self.lower, self.upper)

    def primal(self, g: np.ndarray, c: float, beta: float) -> np.ndarray:
        """prox(-g / k, c / k) with k = c l2 + beta, and l2 = 0 in the prox."""
        curvature = c * self.l2 + beta
        return FusedLasso(self.tv, self.l1, 0.0, self.lower, self.upper).prox(-g / curvature, c / curvature)


@kept_function
def soft_and_clip(x: np.ndarray, l1: float, lower: float, upper: float) -> np.ndarray:
    """clip(soft(x, l1), lower, upper), in place."""
    for j in range(x.shape[0]):
        kept = np.maximum(np.abs(x[j]) - l1, 0.0)
        x[j] = np.minimum(np.maximum(np.copysign(kept, x[j]) + 0.0, lower), upper)
    return x


@kept_function
def taut_string(v: np.ndarray, lam: float) -> np.ndarray:
    """argmin_x |x - v|^2 / 2 + lam sum_j |x_{j+1} - x_j|, exactly, in O(d) for every v (MATH 3.3, 3.4).

    The cumulative sums of x are the shortest path through the tube of half-width lam around those of v, pinned at both ends;
    x_j is its slope. The path is grown as a funnel: from the ``apex``, the last knot that is certain, the concave majorant of
    the tube's floor and the convex minorant of its ceiling. A point that is seen below the floor or above the ceiling moves the
    apex on. Each point enters and leaves each chain once. (Hartigan and Hartigan 1985; Davies and Kovac 2001, section 4.)
    """
    # One function: the two chains move the same seven numbers, which parts of it would hand to and fro.
    n = v.shape[0]
    x = v.copy()
    if n == 0 or lam == 0.0:
        return x
    r = np.zeros(n + 1)  # centred: a shift of all slopes changes no comparison, and smaller sums lose less
    mean = v.sum() / n
    for j in range(n):
        r[j + 1] = r[j] + (v[j] - mean)
    floor, ceiling = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)  # chains [f0, f1), [c0, c1) beyond the apex
    f0 = f1 = c0 = c1 = apex = 0
    side = 0.0  # of the apex: 1 on the ceiling, -1 on the floor, 0 at the start
    for j in range(1, n + 1):
        width = 1.0 if j < n else 0.0
        while f1 > f0:
            last = floor[f1 - 1]
            before = _slope(r, lam, apex, side, last, -1.0) if f1 == f0 + 1 else _slope(r, lam, floor[f1 - 2], 0.0, last, 0.0)
            if before > _slope(r, lam, last, -1.0, j, -width):
                break
            f1 -= 1
        floor[f1] = j
        f1 += 1
        while f1 == f0 + 1 and c1 > c0:
            if _slope(r, lam, apex, side, j, -width) <= _slope(r, lam, apex, side, ceiling[c0], 1.0):
                break
            _level(x, v, lam, apex, side, ceiling[c0], 1.0)
            apex, side, c0 = ceiling[c0], 1.0, c0 + 1
        while c1 > c0:
            last = ceiling[c1 - 1]
            before = _slope(r, lam, apex, side, last, 1.0) if c1 == c0 + 1 else _slope(r, lam, ceiling[c1 - 2], 0.0, last, 0.0)
            if before < _slope(r, lam, last, 1.0, j, width):
                break
            c1 -= 1
        ceiling[c1] = j
        c1 += 1
        while c1 == c0 + 1 and f1 > f0:
            if _slope(r, lam, apex, side, j, width) >= _slope(r, lam, apex, side, floor[f0], -1.0 if floor[f0] < n else 0.0):
                break
            _level(x, v, lam, apex, side, floor[f0], -1.0)
            apex, side, f0 = floor[f0], -1.0, f0 + 1
    rest, turn = (floor[f0:f1], -1.0) if f1 - f0 > 1 else (ceiling[c0:c1], 1.0)
    for knot in rest:
        end = turn if knot < n else 0.0
        _level(x, v, lam, apex, side, knot, end)
        apex, side = knot, end
    return x


@function
def _slope(r, lam, i, side, j, end):  # type: ignore[no-untyped-def]
    """Slope from the point (i, r_i + side lam) to (j, r_j + end lam)."""
    return ((r[j] - r[i]) + (end - side) * lam) / (j - i)


@function
def _level(x, v, lam, i, side, j, end):  # type: ignore[no-untyped-def]
    """Enter the slope of the path between two knots, from the values between them."""
    total = 0.0
    for k in range(i, j):
        total += v[k]
    level = (total + (end - side) * lam) / (j - i)
    for k in range(i, j):
        x[k] = level


def _first_clock(self: Any) -> tuple[float, float]:
    """(1, 0)."""
    return 1.0, 0.0


def _unit(self: Any, clock: Any) -> float:
    """1: raw weights are weights."""
    return 1.0


def _raw_weight(self: Any, v: float, clock: Any) -> float:
    """The weight."""
    return self.weight(v, clock)


def _raw_potential(self: Any, u: float, clock: Any) -> float:
    """The potential."""
    return self.potential(u, clock)


def _deposit(self: Any, v: float, eta: float, clock: Any, after: Any) -> float:
    """potential(prox(v, eta), after)."""
    return self.potential(self.prox(v, eta), after)


def _prox_each(self: Any, v: np.ndarray, eta: float) -> np.ndarray:
    """prox of each weight of the vector ``v``, of shape (d,)."""
    out = np.empty_like(v)
    for j in range(v.shape[0]):
        out[j] = self.prox(v[j], eta)
    return out


def _primal(self: Any, g: np.ndarray, c: float, beta: float) -> np.ndarray:
    """prox(-g / beta) of the step c / beta."""
    return self.prox_all(-g / beta, c / beta)


def _takes_vectors(penalty: Any) -> bool:
    probe = np.array([0.5, -0.25, 2.0])
    try:
        return np.shape(penalty.prox(probe, 0.125)) == probe.shape
    except (TypeError, ValueError):
        return False


_LAZY: dict[str, Callable[..., Any]] = {
    "start": _first_clock,
    "deposit": _deposit,
    "unit": _unit,
    "raw_weight": _raw_weight,
    "raw_potential": _raw_potential,
    "raw_deposit": _deposit,
}


# What a penalty says of itself: whether each weight has a prox of its own; whether weights are sign(v) (|v| - q)_+ / p, with q
# and 1/p from the clock, up to bounds, so that averages and dual averages have a formula; whether its methods take lanes; the
# bounds, None for no such setting.
_SAYS: dict[str, Any] = {"separable": True, "clock_thresholds": False, "takes_lanes": False, "weight_bounds": None}


def register(penalty: Any) -> None:
    """Let kernels call the penalty's methods; a user's class gets the defaults of the methods it does not define.

    ``prox_all`` is the prox of a whole vector: the class's own prox where that takes vectors, else its prox of each weight.
    """
    cls = type(penalty)
    for name, default in _SAYS.items():
        if not hasattr(cls, name):
            setattr(cls, name, default)
    if not hasattr(cls, "prox_all"):
        cls.prox_all = cls.prox if _takes_vectors(penalty) else _prox_each
    lazy = all(hasattr(cls, name) for name in ("tick", "weight", "potential"))
    adopt(cls, {"primal": _primal} | (_LAZY if lazy else {}))


FIELDS = {
    "l1": "The weight of the sum of absolute weights; at least 0.",
    "l2": "The weight of half the sum of squares; at least 0.",
    "tv": "The weight of the total variation; at least 0.",
    "lower": "The lower bound of every weight; at most 0.",
    "upper": "The upper bound of every weight; at least 0.",
}
_CLOCK = "\n\nA clock is a tuple of floats; all other arguments and results are floats, or lanes of them."
METHODS = {
    "value": "The penalty r(w) of the weights ``w``, an array of shape (d,), as a float.",
    "prox": """argmin_w r(w) + |w - v|^2 / (2 eta).

Parameters
----------
v : float or ndarray
    The point; the result has its shape.
eta : float
    The step size; greater than 0.""",
    "primal": """argmin_w <g, w> + c r(w) + (beta/2) |w|^2, the point of dual averaging.

Parameters
----------
g : ndarray of shape (d,)
    The sum of the gradients; the result has its shape.
c : float
    The weight of the penalty.
beta : float
    The weight of the squares; at least 0.""",
    "conjugate": "max_w <v, w> - r(w) of the vector ``v`` of shape (d,), as a float; infinite outside its domain.",
    "reach": "The largest c of at most 1 for which the conjugate of c ``v`` is finite; ``v`` is a vector of shape (d,).",
    "start": "The first clock, a tuple of floats.",
    "tick": f"The clock after one more step of size ``eta``.{_CLOCK}",
    "weight": f"The weight that the potential ``v`` stands for at this clock.{_CLOCK}",
    "potential": f"The potential that stands for the weight ``w`` at this clock, the inverse of ``weight``.{_CLOCK}",
    "deposit": f"The potential, from the clock ``after`` on, of prox(v, eta) at this clock.{_CLOCK}",
    "unit": "The factor of raw weights at this clock: a raw weight is the unit times the weight.",
    "raw_weight": f"The raw weight, ``unit`` times ``weight``, of the potential ``v``.{_CLOCK}",
    "raw_potential": f"The potential of the raw weight ``u``.{_CLOCK}",
    "raw_deposit": f"The deposit of the raw value ``u``.{_CLOCK}",
    "land": """prox(u) for threshold = eta l1 and shrink = 1 / (1 + eta l2), and 1.0 where it moves with u, else 0.0.

All arguments and both results are floats.""",
}

for _penalty in (ElasticNet(), Box(), FusedLasso()):
    describe(type(_penalty), FIELDS, METHODS)
    type(_penalty).prox_all = type(_penalty).prox  # type: ignore[union-attr]
    register(_penalty)
