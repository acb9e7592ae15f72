r"""Constrained SGD for least squares (CSGD, NCSGD, C-Adaline), with l2 if asked, and Adaline; squared loss.

    r_t = y_t - <w_t, x_t>,   what = w_t + eta_t r_t x_t                                                      (MATH 7.1)
    w_{t+1} = what - S_t (<S_t, what> - Y_t) / |S_t|^2,   S_t = sum_{i <= t} x_i,  Y_t = sum_{i <= t} y_i        (7.2, 7.3)

With l2, (l2/2) |w|^2 is added to the loss of each row (P5 section 5.1): what has (1 - eta_t l2) w_t for w_t, but the intercept.
The projection keeps the regression line through the means, <w, xbar> = ybar, which is true of the optimum where one feature is
constant: the intercept's, or a column. Without either the constraint biases the solution; that is allowed, with one warning at
the first call whose rows show no constant column. With sample weights S += s x, Y += s y, r := s (y - <w, x>) (MATH 17).

    csgd       two-phase steps: eta/sqrt t, from step m on eta sqrt(m)/t
    ncsgd      eta/sqrt t
    adaline    no constraint, constant step: SGD on the squared loss
    c-adaline  ncsgd with 1/0 targets for several classes

Source: Mu, Ding, Zhou, Tao, KDD 2013, Alg. 1 and 2.
Loop:   its own: a row moves two vectors, by two multiples of x, and may end in a visit. It asks for nothing ahead: measured
        over 4 and 40 million columns that gains nothing here.
Lazy:   while j is idle w_j changes only by -c_t S_j, so p = w + C S with C = sum c_t rests; a row does p += (eta r + C s) x,
        S += s x, then C += c_t (MATH 11.7). For averages the sum of w_j while idle is p_j sum om_k - S_j sum om_k C_{k-1}:
        two prefix scalars E, F and a companion B = (sum so far) - p E + S F. Every visit ends with C = E = F = 0 and takes
        |S|^2 and <S, w> anew, so neither drifts. A row after which |S|^2 has shrunk or grown by a large factor since it was
        last summed is such a visit too, and projects each coordinate: where the x_t cancel nothing is left of a running
        |S|^2, and p would be lost in a C S of another size. Where S = 0 the projection is left out.
        With l2 an idle w_j shrinks between the projections too; that form is not built, and the dense step is taken.
Cost:   O(nnz(x_t)) per row; O(d) for one that cancels the sum of those before it, and for every row with l2.
        Needs: the squared loss, and no penalty but l2 (Adaline: none; SGD has its l2); anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import (
    LANES,
    adopt,
    every,
    four,
    function,
    gather,
    kernel,
    nothing,
    put_back,
    total,
)
from onlinear.losses import Squared
from onlinear.penalties import ElasticNet, is_bare
from onlinear.rows import Rows
from onlinear.schedules import Power, TwoPhase
from onlinear.solvers.comid import Comid
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import Dense, all_finite, dot
from onlinear.solvers.core.engine import Engine, Examples, Preset, Problem
from onlinear.solvers.core.moments import due
from onlinear.solvers.core.state import BIAS, BIAS_SUM, BIAS_TOTAL, ONE, OWN, VISIT, State, T, everything, scalars
from onlinear.text.form import kebab
from onlinear.text.warned import warn_caller

# The solver's scalars: C; Y; <S, w> - Y, which is 0 after a projection; |S|^2; sum of s; the prefix sums E and F; |S|^2 as it
# was last summed, 0 before that. The intercept is a coordinate with S_0 = (sum of s), whose p is at BIAS.
C, Y, GAP, NORM, MASS, E, F, SUMMED = range(OWN, OWN + 8)
SHRUNK, GROWN = 2.0**-5, 2.0**10  # by what |S|^2 may change before it is summed again


class Csgd(NamedTuple):
    """Settings of constrained SGD."""

    schedule: Any = TwoPhase()

    letters = ("w", "S", "Y")
    no_batch = "its constraint moves with every row"
    scales = False  # estimators leave the columns as they are

    def step(self, U, x, y, s, t, loss, penalty):
        w, S, Y = U[0], U[1], U[2]
        r = s * (y - dot(w, x))
        w[1:] *= 1.0 - self.schedule.at(t) * penalty.l2
        w += self.schedule.at(t) * r * x
        S += s * x
        Y += s * y
        norm = np.sum(S * S)
        if norm > 0.0:
            w -= S * ((np.sum(S * w) - Y[0]) / norm)

    def begin(self, U, penalty):
        U[1:] = 0.0

    def predictor(self, U, t, penalty):
        return U[0]

    def engine(self, problem: Problem) -> Engine:
        refuse_other_losses(problem)
        if is_bare(problem.penalty):
            return Constrained(self, problem)
        if type(problem.penalty) is not ElasticNet or problem.penalty.l1 != 0.0:
            raise ValueError(
                f"{problem.name} has no form with this penalty: the penalty must be 'none' or 'l2', got {problem.penalty!r}."
            )
        return ConstrainedWithL2(self, problem, "l2 and the projection move every weight, each by an amount of its own")


class Adaline(NamedTuple):
    """Settings of Adaline: w += eta_t (y - <w, x>) x."""

    schedule: Any = Power(power=0.0)

    letters = ("w",)
    scales = False  # as Csgd, with which it is compared

    def step(self, U, x, y, s, t, loss, penalty):
        w = U[0]
        w += self.schedule.at(t) * s * (y - dot(w, x)) * x

    def begin(self, U, penalty):
        """U holds the start; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def mean_form(self) -> Comid:
        """The same steps for any loss."""
        return Comid(self.schedule)

    def engine(self, problem: Problem) -> Engine:
        refuse_all_but_least_squares(problem)
        return Unconstrained(self, problem)


def refuse_all_but_least_squares(problem: Problem) -> None:
    """Raise for a loss or penalty that a method without penalties does not have."""
    refuse_other_losses(problem)
    if not is_bare(problem.penalty):
        raise ValueError(f"{problem.name} has no form with a penalty: the penalty must be 'none', got {problem.penalty!r}.")


def refuse_other_losses(problem: Problem) -> None:
    """Raise for a loss that the method does not have."""
    if not isinstance(problem.loss, Squared):
        loss = kebab(type(problem.loss).__name__)
        raise ValueError(f"{problem.name} is a least-squares method: the loss must be 'squared', got {loss!r}.")


def warn_without_constant(problem: Problem, rows: Rows) -> None:
    """Warn where rows have no constant column and the problem no intercept."""
    if not problem.fit_intercept and not has_constant(rows):
        warn_caller(
            f"{problem.name} without an intercept and without a constant column: the constraint <w, xbar> = ybar "
            "biases the solution. "
            "Use fit_intercept=True, or a column of ones.",
            UserWarning,
        )


@function
def visit(t, p, S, B, A, now):
    """Settle every coordinate and its sum; start C, E and F anew."""
    norm, product, one = 0.0, 0.0, now[ONE]
    for j in range(p.shape[0]):
        if B is not None:
            A[j] += B[j] + p[j] * now[E] - (S[j] * now[F] if S is not None else 0.0)
            B[j] = 0.0
        if S is not None:
            p[j] -= now[C] * S[j]
            norm += S[j] * S[j]
            product += S[j] * p[j]
    if S is not None:
        mass = now[MASS] * one
        now[BIAS] -= now[C] * mass
        now[NORM] = now[SUMMED] = norm + mass * mass
        now[GAP] = product + mass * now[BIAS] - now[Y]
    now[BIAS_TOTAL] += now[BIAS_SUM]
    now[BIAS_SUM] = now[C] = now[E] = now[F] = 0.0
    now[VISIT] = t


@function
def strays(norm, now):
    """Whether |S|^2 after the next row is too far from |S|^2 as last summed; a run that has not summed it takes the last."""
    known = now[SUMMED] if now[SUMMED] > 0.0 else now[NORM]
    return known > 0.0 and not SHRUNK * known <= norm <= GROWN * known


@function
def project(p, S, now):
    """After a visit: move every coordinate onto <S, w> = Y, unless S = 0; whether all stay finite."""
    if not now[NORM] > 0.0:
        return True
    c = now[GAP] / now[NORM]
    now[BIAS] -= c * now[MASS] * now[ONE]
    now[GAP] = 0.0
    finite = isfinite(now[BIAS])
    for j in range(p.shape[0]):
        p[j] -= c * S[j]
        finite = finite and isfinite(p[j])
    return finite


@kernel
def learn_rows_csgd(rows, largest, y, s, solver, average, p, S, pS, B, A, now, scores):
    indptr, indices, values = rows
    t, one = int(now[T]), now[ONE]
    careful = is_careful(now, largest)
    done = y.shape[0]
    for i in range(y.shape[0]):
        if due(t) and now[VISIT] != t:
            visit(t, p, S, B, A, now)
        eta, before = solver.schedule.at(t + 1), now[C]

        b = now[BIAS] - before * now[MASS] * one
        begin, end = indptr[i], indptr[i + 1]
        product, product_S, squares = nothing(), nothing(), nothing()
        for k in range(begin, end, LANES):
            at, x = four(indices, values, k, end)
            if pS is None:
                product += gather(p, at) * x
            else:
                p_k, S_k = gather(pS, at)
                product += p_k * x
                product_S += S_k * x
                squares += x * x
        px, sx, xx = total(product) + now[BIAS] * one, total(product_S) + now[MASS] * one, total(squares) + one
        a = px if S is None else px - before * sx
        scores[i] = a
        weight = s[i]
        r = weight * (y[i] - a)
        move, c, norm, gap, anew = eta * r, 0.0, 0.0, 0.0, False
        if S is not None and weight > 0.0:
            norm = now[NORM] + weight * (2.0 * sx + weight * xx)
            gap = now[GAP] + r * (eta * (sx + weight * xx) - 1.0)
            anew = strays(norm, now)
            if norm > 0.0 and not anew:
                c = gap / norm
            move += before * s[i]
        if not isfinite(a + move + c + gap + norm):
            done = i
            break

        t += 1
        if average is not None:
            om = average.om(t)
            now[E] += om
            now[F] += om * before
            now[BIAS_SUM] += om * b
        if weight > 0.0 and (S is not None or r != 0.0):
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                if pS is None:
                    put_back(p, at, gather(p, at) + move * x)
                else:
                    p_k, S_k = gather(pS, at)
                    put_back(pS, at, (p_k + move * x, S_k + weight * x))
                if B is not None:
                    change = move * x * now[E] - (weight * now[F] if S is not None else 0.0) * x
                    put_back(B, at, gather(B, at) - change)
            now[BIAS] += move * one
            if S is not None:
                now[MASS] += weight
                now[Y] += weight * y[i]
                now[NORM] = norm
                now[GAP] = 0.0 if norm > 0.0 else gap
                now[C] = before + c
                if now[SUMMED] == 0.0:
                    now[SUMMED] = norm
                if anew:
                    visit(t, p, S, B, A, now)
                    if not project(p, S, now):
                        done = i
                        break
            careful = is_careful_after(now, careful, a, max(abs(move), abs(now[C])))
            if careful and not all_finite(p, indices, begin, end):
                done = i
                break
    now[T] = t
    return done


@kernel
def read(p, S, C, columns, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = p[j] - (C * S[j] if S is not None else 0.0) + 0.0


@kernel
def read_sums(p, S, B, A, E, F, columns, out):
    for e in range(columns.shape[0]):
        j = columns[e]
        out[e] = A[j] + (B[j] + p[j] * E - (S[j] * F if S is not None else 0.0))


@kernel
def read_after_row(p, S, columns, now, out):
    read(p, S, now[C], columns, out)


@kernel
def read_sums_after_row(p, S, B, A, columns, now, out):
    read_sums(p, S, B, A, now[E], now[F], columns, out)


@function
def bias_after_row(now):
    """The intercept after the last row."""
    return now[BIAS] - now[C] * now[MASS] * now[ONE]


@kernel
def has_constant(rows):
    """Whether a column has the same non-zero value in every row."""
    indptr, indices, values = rows
    for first in range(indptr[0], indptr[1]):
        everywhere = True
        for i in range(1, indptr.shape[0] - 1):
            found = False
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] == indices[first]:
                    found = values[k] == values[first]
                    break
            if not found:
                everywhere = False
                break
        if everywhere:
            return True
    return False


class Unconstrained(Engine):
    """Adaline in O(non-zeros)."""

    implicit = False

    def start(self, w: np.ndarray, b: float) -> State:
        arrays = {"p": w + 0.0}
        if self.average is not None:
            arrays |= {"B": np.zeros(len(w)), "A": np.zeros(len(w))}
        return State(scalars(self.problem.fit_intercept, b), arrays, size=len(w))

    def visits(self) -> Callable[[int], bool]:
        return due

    def vectors(self, state: State) -> list[np.ndarray | None]:
        """p, S, B and A; None for those that are not kept."""
        return [state.arrays.get(name) for name in "pSBA"]

    def call(self, state: State, examples: Examples) -> Any:
        p, S, B, A = self.vectors(state)
        pS = (p, S) if S is not None else None
        return learn_rows_csgd, (*examples.given, self.solver, self.average, p, S, pS, B, A, state.now, examples.scores)

    def weights(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        p, S, _, _ = self.vectors(state)
        read(p, S, state.now[C], columns, out)
        return out

    def bias(self, state: State) -> float:
        return float(bias_after_row(state.now))

    def bias_reader(self, state: State) -> tuple[Any, tuple[Any, ...]]:
        return bias_after_row, ()

    def readers(self, state: State) -> tuple[Any, Any]:
        p, S, B, A = self.vectors(state)
        last = read_after_row, (p, S)
        return last, None if self.average is None else (read_sums_after_row, (p, S, B, A))

    def sums(self, state: State, columns: np.ndarray) -> np.ndarray:
        out = np.empty(len(columns))
        p, S, B, A = self.vectors(state)
        read_sums(p, S, B, A, state.now[E], state.now[F], columns, out)
        return out


class NeedsConstant(Engine):
    """The part of an engine that warns where no column of the first rows is constant."""

    own_outputs = True

    def learn_outputs(self, states: list[State], examples: Examples) -> int:
        if states[0].t == 0 and len(examples.s):
            warn_without_constant(self.problem, examples.rows)
        return super().learn_outputs(states, examples)


class Constrained(NeedsConstant, Unconstrained):
    """CSGD in O(non-zeros). p_j and S_j are kept side by side, so that a row finds both in one place."""

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        state.widths["pS"] = 2
        state.arrays["pS"] = np.stack([state.arrays.pop("p"), np.zeros(len(w))], axis=1).ravel()
        return state

    def vectors(self, state: State) -> list[np.ndarray | None]:
        both = state.arrays["pS"]
        return [every(both, 0, 2), every(both, 1, 2), state.arrays.get("B"), state.arrays.get("A")]

    def variables(self, state: State) -> dict[str, Any]:
        mass = float(state.now[MASS])
        xbar = state.arrays["pS"][1::2] / mass if mass > 0.0 else np.zeros(state.size)
        ybar = float(state.now[Y]) / mass if mass > 0.0 else 0.0
        return {"w": self.weights(state, everything(state)), "xbar": xbar, "ybar": ybar}


class ConstrainedWithL2(NeedsConstant, Dense):
    """CSGD with l2, by its dense step."""

    def variables(self, state: State) -> dict[str, Any]:
        w, S, Y = state.arrays["U"]
        return {"w": w[1:].copy(), "S": S[1:].copy(), "Y": float(Y[0])}


PRESETS = {
    "ncsgd": Preset(Csgd, {"schedule": "inverse-sqrt"}),
    "adaline": Preset(Adaline, targets="one-hot"),
    "c-adaline": Preset(Csgd, {"schedule": "inverse-sqrt"}, targets="one-hot"),
}

adopt(Csgd)
adopt(Adaline)
