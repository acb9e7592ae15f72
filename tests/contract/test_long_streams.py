"""Clocks and averages after 1e9 steps, and solvers after 1e7 and 1e8 rows, against exact sums (contract 8)."""

from __future__ import annotations

from decimal import Decimal, getcontext
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom

from onlinear import Learner
from onlinear.averages import NAMED, Average, new_table, record
from onlinear.compiled import COMPILED, kernel
from onlinear.penalties import ElasticNet
from onlinear.schedules import Power
from onlinear.solvers.core.moments import LONGEST_BLOCK
from onlinear.solvers.core.potentials import read, read_sums
from onlinear.solvers.core.state import SCALARS, VISIT
from onlinear.solvers.core.visits import time_to_visit, visit

pytestmark = pytest.mark.skipif(not COMPILED, reason="1e9 interpreted steps would take an hour")

getcontext().prec = 50
RIGHT = 1e-9
BILLION = 10**9
BLOCK = 2**20
HALF, ONE = Decimal("0.5"), Decimal(1)
BERNOULLI = [Decimal(1) / 6, Decimal(-1) / 30, Decimal(1) / 42, Decimal(-1) / 30, Decimal(5) / 66]


@cache
def power_sum(q: Decimal, n: int) -> Decimal:
    """sum of i^q for i = 1..n, by the Euler-Maclaurin formula from i = 200 on, to more than 30 digits."""
    first = min(n, 200)
    total = sum((Decimal(i) ** q for i in range(1, first)), Decimal(0))
    if n < 200:
        return total + (Decimal(n) ** q if n else 0)
    a, b = Decimal(first), Decimal(n)
    total += (b / a).ln() if q == -1 else (b ** (q + 1) - a ** (q + 1)) / (q + 1)
    total += (a**q + b**q) / 2
    slope, exponent, factorial = q, q - 1, Decimal(2)
    for k, bernoulli in enumerate(BERNOULLI, start=1):
        total += bernoulli / factorial * slope * (b**exponent - a**exponent)
        slope *= exponent * (exponent - 1)
        exponent -= 2
        factorial *= (2 * k + 1) * (2 * k + 2)
    return total


# --- the clock and every average, without rows -------------------------------------------------------------------------


@kernel
def idle(penalty, schedule, average, V, B, A, table, now, steps):  # type: ignore[no-untyped-def]
    """``steps`` steps in which every feature is idle, as the kernels of COMID and FIOL take them."""
    clock, visited = penalty.start(), 0
    for t in range(steps):
        if time_to_visit(t, visited, clock[0], B):
            clock, visited = visit(penalty, clock, V, B, A, table, t, now), t
        after = penalty.tick(clock, schedule.at(t + 1))
        record(table, t + 1 - visited, average.om(t + 1), clock[1], clock[2])
        clock = after
    return clock


AVERAGES = (*NAMED, "suffix")


def average_of(name: str, steps: int) -> Average:
    """The average; ``suffix`` is of the second half."""
    return Average(1.0, 0.0, steps // 2 + 1.0) if name == "suffix" else NAMED[name]


def simulated(
    penalty: ElasticNet, schedule: Power, w: np.ndarray, average: Average, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The weights after idle steps from ``w``, and their average."""
    V = np.array([penalty.potential(v, penalty.start()) for v in w])
    B, A, now, table = np.zeros(len(w)), np.zeros(len(w)), np.zeros(SCALARS), new_table(LONGEST_BLOCK)
    clock = idle(penalty, schedule, average, V, B, A, table, now, steps)
    columns, last, sums = np.arange(len(w), dtype=np.uint32), np.empty(len(w)), np.empty(len(w))
    read(penalty, clock, V, columns, last)
    read_sums(table, steps - int(now[VISIT]), V, B, A, columns, sums)
    return last, (sums + last if average.post else sums) / average.total(steps)


class Exact:
    """w_k, the predictor before step k of a feature that starts at ``a``, and its sums over k = 1..K with weights 1 and k."""

    def w(self, a: Decimal, k: int) -> Decimal:
        """The value before it is cut off at 0."""
        raise NotImplementedError

    def sums(self, a: Decimal, K: int) -> tuple[Decimal, Decimal]:
        raise NotImplementedError

    def alive(self, a: Decimal, steps: int) -> int:
        """The last k <= steps with w_k > 0."""
        low, high = 1, steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.w(a, middle) > 0 else (low, middle - 1)
        return low

    def average(self, a: Decimal, name: str, steps: int) -> Decimal:
        K = self.alive(a, steps)
        plain, growing = self.sums(a, K)
        T = Decimal(steps)
        after = max(Decimal(0), self.w(a, steps + 1))
        if name == "suffix":
            return (plain - self.sums(a, min(K, steps // 2))[0]) / (T / 2)
        return {
            "uniform": plain / T,
            "uniform-post": (plain - a + after) / T,
            "weighted-t": growing * 2 / (T * (T + 1)),
            "weighted-t1": (growing + plain) * 2 / (T * (T + 3)),
        }[name]


class Lasso(Exact):
    """eta_t = c / t^p with l1 alone: w_k = a - l1 c H(k-1), H(m) = sum of i^-p."""

    def __init__(self, c: float, p: Decimal, l1: float) -> None:
        self.p, self.slope = p, Decimal(c) * Decimal(l1)

    def w(self, a: Decimal, k: int) -> Decimal:
        return a - self.slope * power_sum(-self.p, k - 1)

    def sums(self, a: Decimal, K: int) -> tuple[Decimal, Decimal]:
        p, M = self.p, K - 1
        H, one, two = (power_sum(q - p, M) for q in (Decimal(0), Decimal(1), Decimal(2)))
        plain = K * H - one
        growing = Decimal(K * (K + 1) // 2) * H - (one + two) / 2
        return K * a - self.slope * plain, Decimal(K * (K + 1) // 2) * a - self.slope * growing


class Geometric(Exact):
    """eta_t = c with l1 and l2: w_k = (a + r) x^(k-1) - r, r = l1/l2, x = 1/(1 + c l2)."""

    def __init__(self, c: float, l1: float, l2: float) -> None:
        self.x, self.r = 1 / (1 + Decimal(c) * Decimal(l2)), Decimal(l1) / Decimal(l2)

    def w(self, a: Decimal, k: int) -> Decimal:
        return (a + self.r) * self.x ** (k - 1) - self.r

    def sums(self, a: Decimal, K: int) -> tuple[Decimal, Decimal]:
        x, power = self.x, self.x**K
        plain = (1 - power) / (1 - x)
        growing = (1 - (K + 1) * power + K * power * x) / (1 - x) ** 2
        return (a + self.r) * plain - self.r * K, (a + self.r) * growing - self.r * Decimal(K * (K + 1) // 2)


class Tied(Exact):
    """eta_t = 1/(l2 t), so P_t = t + 1: w_k = (a + r)/k - r; or 2/(l2 t), P_t = (t+1)(t+2)/2: w_k = 2 (a + r)/(k (k+1)) - r."""

    def __init__(self, doubled: bool, l1: float, l2: float) -> None:
        self.doubled, self.r = doubled, Decimal(l1) / Decimal(l2)

    def w(self, a: Decimal, k: int) -> Decimal:
        return (2 * (a + self.r) / (Decimal(k) * (k + 1)) if self.doubled else (a + self.r) / k) - self.r

    def sums(self, a: Decimal, K: int) -> tuple[Decimal, Decimal]:
        b, n = a + self.r, Decimal(K * (K + 1) // 2)
        if self.doubled:
            return 2 * b * (1 - ONE / (K + 1)) - self.r * K, 2 * b * (power_sum(-ONE, K + 1) - 1) - self.r * n
        return b * power_sum(-ONE, K) - self.r * K, b * K - self.r * n


# Starts: features that outlive the run, and features that die after few or after many steps.
LONG_RUNS: dict[str, tuple[Exact, ElasticNet, Power, list[float]]] = {
    "inverse-sqrt": (Lasso(0.5, HALF, 1e-4), ElasticNet(1e-4, 0.0), Power(0.5, 0.0, 0.5), [5.0, -3.5, 0.1, 1e-3]),
    "inverse": (Lasso(0.5, ONE, 1e-2), ElasticNet(1e-2, 0.0), Power(0.5, 0.0, 1.0), [0.5, -0.12, 0.07, 0.03]),
    "constant": (Geometric(0.5, 1e-9, 4e-9), ElasticNet(1e-9, 4e-9), Power(0.5, 0.0, 0.0), [9.0, -2.0, 0.3, 1e-3]),
    "constant, fast decay": (Geometric(0.5, 0.0, 0.02), ElasticNet(0.0, 0.02), Power(0.5, 0.0, 0.0), [9.0, -2.0]),
    "tied, 1/t": (Tied(False, 1e-11, 1e-2), ElasticNet(1e-11, 1e-2), Power(100.0, 0.0, 1.0), [9.0, -2.0, 0.3, 1e-3]),
    "tied, 2/t": (Tied(True, 1e-18, 1e-2), ElasticNet(1e-18, 1e-2), Power(200.0, 0.0, 1.0), [900.0, -80.0, 0.3, 1e-5]),
}


def check_long_run(name: str, average: str, steps: int = BILLION) -> None:
    exact, penalty, schedule, starts = LONG_RUNS[name]
    last, mean = simulated(penalty, schedule, np.array(starts), average_of(average, steps), steps)
    for j, start in enumerate(starts):
        a, sign = abs(Decimal(start)), 1 if start > 0 else -1
        for got, want in ((last[j], exact.w(a, steps + 1)), (mean[j], exact.average(a, average, steps))):
            want = max(want, Decimal(0))
            error = abs(Decimal(got) * sign - want)
            assert error <= Decimal(RIGHT) * want, f"{start}: {got} for {sign * float(want)}, {float(error / want):.2g}"


@pytest.mark.parametrize(
    ("name", "average", "steps"),
    [
        ("inverse-sqrt", "uniform", BILLION // 5),  # beyond what products of step numbers may be (MATH 12)
        seldom("inverse-sqrt", "uniform", BILLION),
        seldom("constant", "weighted-t1", BILLION),
        seldom("tied, 2/t", "suffix", BILLION),
    ],
)
def test_a_billion_idle_steps(name: str, average: str, steps: int) -> None:
    check_long_run(name, average, steps)


@pytest.mark.exhaustive
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("name", LONG_RUNS)
def test_a_billion_idle_steps_of_everything(name: str, average: str) -> None:
    check_long_run(name, average)


LENGTHS = [10**7, seldom(10**8)]
every_length = pytest.mark.parametrize("rows", LENGTHS)


# --- solvers, with rows -----------------------------------------------------------------------------------------------


def streamed(learner: Learner, first: Any, target: float, rows: int, others: tuple[float, float] | None = None) -> Learner:
    """Learn the row ``first``, then rows (1, 0) until there are ``rows``; ``others``: the alternating targets of those."""
    learner.learn(sp.csr_matrix(first), np.array([target]))
    X = sp.csr_matrix((np.ones(BLOCK), np.zeros(BLOCK, np.int32), np.arange(BLOCK + 1)), shape=(BLOCK, 2))
    y = np.resize(others or (target, target), BLOCK)
    while learner.t < rows:
        n = min(BLOCK, rows - learner.t)
        learner.learn(X[:n] if n < BLOCK else X, y[:n])
    return learner


@kernel
def active(solver, first, target, c, p, l1, l2, steps):  # type: ignore[no-untyped-def]
    """The weight of the column that every row has, and its average, by the recursion itself with compensated sums.

    solver 0: COMID; 1: SGD; 2: RDA with beta_t = sqrt(t) / c; 3: oDRs with lam = c. Squared loss, start 0.
    """
    w, u, G, low, total, carry = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(1, steps + 1):
        x = first if t == 1 else 1.0
        new = total + w
        carry += (total - new) + w if abs(total) >= abs(w) else (w - new) + total
        total = new
        eta = c / t**p
        g = (x * w - target) * x
        if solver == 0:
            v = w - eta * g
            w = np.sign(v) * max(abs(v) - eta * l1, 0.0) / (1.0 + eta * l2)
        elif solver == 1:
            w -= eta * (g + l2 * w)
        elif solver == 2:
            new = G + g
            low += (G - new) + g if abs(G) >= abs(g) else (g - new) + G
            G = new
            sum_ = G + low
            w = -np.sign(sum_) * max(abs(sum_) - l1 * t, 0.0) * c / np.sqrt(t)
        else:
            v = 2.0 * w - u
            u = u - w + v - c * x * (x * v - target) / (1.0 + c * x * x)
            w = np.sign(u) * max(abs(u) - c * l1, 0.0) / (1.0 + c * l2)
    return w, (total + carry) / steps


def check_weights(learner: Learner, last: Any, mean: Any) -> None:
    for got, want in ((learner.weights(), last), (learner.weights(average=True), mean)):
        np.testing.assert_allclose(got, [float(value) for value in want], rtol=RIGHT, atol=0.0)


def idle_average(exact: Exact, a: Decimal, steps: int) -> Decimal:
    """The uniform average of w_1 .. w_steps of a feature that outlives the run."""
    assert exact.w(a, steps) > 0
    return exact.sums(a, steps)[0] / steps


@pytest.mark.parametrize(
    ("power", "schedule", "rows"),
    [
        (HALF, "inverse-sqrt", 10**7),
        (ONE, "inverse", 10**7),
        *(seldom(*case, 10**8) for case in ((HALF, "inverse-sqrt"), (ONE, "inverse"))),
    ],
)
def test_comid(power: Decimal, schedule: str, rows: int) -> None:
    l1, c, start = 1e-6, 0.5, np.array([0.0, 3.0])
    solver = f"comid,schedule={schedule},eta={c}"
    learner = Learner(solver, "squared", f"l1,l1={l1}", "uniform", n_features=2, start=start)
    streamed(learner, [[1.0, 0.0]], 2.0, rows)
    w, mean = active(0, 1.0, 2.0, c, float(power), l1, 0.0, rows)
    exact, a = Lasso(c, power, l1), Decimal(3)
    check_weights(learner, [w, exact.w(a, rows + 1)], [mean, idle_average(exact, a, rows)])


@every_length
def test_sgd(rows: int) -> None:
    l2, c = 3e-8, 0.5
    learner = Learner(f"sgd,schedule=constant,eta={c}", "squared", f"l2,l2={l2}", "uniform", n_features=2, start=[0.0, 3.0])
    streamed(learner, [[1.0, 0.0]], 2.0, rows)
    w, mean = active(1, 1.0, 2.0, c, 0.0, 0.0, l2, rows)
    x = 1 - Decimal(c) * Decimal(l2)
    idle = 3 * x**rows, 3 * (1 - x**rows) / (1 - x) / rows
    check_weights(learner, [w, idle[0]], [mean, idle[1]])


@every_length
def test_dual_averaging(rows: int) -> None:
    l1, gamma = 1e-9, 2.0
    learner = Learner(f"rda,gamma={gamma}", "squared", f"l1,l1={l1}", "uniform", n_features=2)
    streamed(learner, [[1.0, 0.5]], 2.0, rows)  # G of the second column is -1 from the first row on
    w, mean = active(2, 1.0, 2.0, 1.0 / gamma, 0.0, l1, 0.0, rows)
    n, slope = Decimal(rows), Decimal(l1)
    last = (1 - slope * n) / (Decimal(gamma) * n.sqrt())
    summed = (power_sum(-HALF, rows - 1) - slope * power_sum(HALF, rows - 1)) / Decimal(gamma)
    check_weights(learner, [w, last], [mean, summed / n])


@every_length
def test_douglas_rachford(rows: int) -> None:
    l1, lam = 1e-8, 0.5
    learner = Learner(f"odrs,lam={lam}", "squared", f"l1,l1={l1}", "uniform", n_features=2, start=[0.0, 3.0])
    streamed(learner, [[1.0, 0.0]], 2.0, rows)
    w, mean = active(3, 1.0, 2.0, lam, 0.0, l1, 0.0, rows)
    exact, a = Lasso(lam, Decimal(0), l1), Decimal(3)
    check_weights(learner, [w, exact.w(a, rows + 1)], [mean, idle_average(exact, a, rows)])


@kernel
def constrained(eta, target, steps):  # type: ignore[no-untyped-def]
    """CSGD's (7.1)-(7.3) on the row (1, 1) and then rows (1, 0), targets alternating between 0 and ``target``; compensated."""
    w, v, low, Y = 0.0, 0.0, 0.0, 0.0
    total = carry = total_v = carry_v = 0.0
    for t in range(1, steps + 1):
        new = total + w
        carry += (total - new) + w if abs(total) >= abs(w) else (w - new) + total
        total = new
        new = total_v + v
        carry_v += (total_v - new) + v if abs(total_v) >= abs(v) else (v - new) + total_v
        total_v = new
        y = target if t % 2 == 1 else 0.0
        second = 1.0 if t == 1 else 0.0
        r = y - w - second * v
        S, Y = float(t), Y + y
        w += eta / np.sqrt(t) * r
        v += eta / np.sqrt(t) * r * second
        c = (S * w + (v + low) - Y) / (S * S + 1.0)
        w -= c * S
        new = v - c
        low += (v - new) - c if abs(v) >= abs(c) else (-c - new) + v
        v = new
    return w, v + low, (total + carry) / steps, (total_v + carry_v) / steps


@every_length
def test_csgd(rows: int) -> None:
    learner = Learner("csgd,schedule=inverse-sqrt,eta=0.5", "squared", "none", "uniform", n_features=2)
    streamed(learner, [[1.0, 1.0]], 3.0, rows, (0.0, 3.0))  # blocks have an even number of rows
    w, v, mean, mean_v = constrained(0.5, 3.0, rows)
    check_weights(learner, [w, v], [mean, mean_v])
