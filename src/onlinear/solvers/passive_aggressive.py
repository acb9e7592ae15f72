r"""Passive-aggressive learning: the nearest weights that give the row its margin (PA), or at a bounded cost (PA-I, PA-II).

    loss = max(0, 1 - y <w_t, x_t>),     w_{t+1} = w_t + tau y x_t                                             (MATH 8.8)

    pa     tau = loss / |x|^2                      (C infinite)
    pa-1   tau = min(s C, loss / |x|^2)            = implicit SGD of the hinge with eta = C
    pa-2   tau = loss / (|x|^2 + 1/(2 s C))        = implicit SGD of the squared hinge with eta = 2C

with s the sample weight, and |x|^2 + 1 with an intercept. Rows without an entry (and intercept) change nothing.

Source: Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7, 2006.
Loop:   its own: a row's step is its loss, not a slope, over its squared norm. It asks for nothing ahead: that cost a tenth
        of the time over 40 million columns, and with an average more than half. With hooks in loop.py it had the same bits and
        4 % fewer instructions, with an average 4 % more, but a first fit compiled for 13 % longer.
Lazy:   an idle weight does not change; an average keeps SGD's companion (scaled_vector.py, al = 1).
Cost:   O(nnz(x_t)) per row.   Needs: the hinge, no penalty; with C infinite weights 0 or 1.
"""

from __future__ import annotations

from math import inf, isfinite, isinf
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import LANES, adopt, four, function, gather, kernel, nothing, put_back, total
from onlinear.losses import Hinge
from onlinear.penalties import is_bare
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import all_finite, dot
from onlinear.solvers.core.engine import Engine, Examples, Preset, Problem
from onlinear.solvers.core.moments import sums_due
from onlinear.solvers.core.scaled_vector import SCALE_SUM, Scaled, visit
from onlinear.solvers.core.state import BIAS, BIAS_SUM, ONE, State, T


@function
def aggressiveness(short, size, cost, squared):
    """tau for a loss ``short`` on a row of squared norm ``size``, slack at cost s C or (squared) s C xi^2."""
    if short == 0.0 or size == 0.0 or cost == 0.0:
        return 0.0
    return short / (size + 0.5 / cost) if squared else min(cost, short / size)


class Pa(NamedTuple):
    """Settings: the cost C of slack xi (infinite: none is allowed), and whether it is C xi^2 (PA-II) or C xi (PA-I)."""

    C: float = inf
    squared: bool = False

    letters = ("w",)
    no_batch = "its step is as long as one row's loss asks"

    def step(self, U, x, y, s, t, loss, penalty):
        w = U[0]
        tau = aggressiveness(loss.value(dot(w, x), y), dot(x, x), s * self.C if s > 0.0 else 0.0, self.squared)
        U[0] = w + tau * y * x

    def begin(self, U, penalty):
        """U holds the start in every letter; nothing to add."""

    def predictor(self, U, t, penalty):
        return U[0]

    def engine(self, problem: Problem) -> Engine:
        loss, penalty = problem.loss, problem.penalty
        other = "'fiol'" if penalty.separable else "'odrs'"
        if not isinstance(loss, Hinge):
            raise ValueError(
                f"passive-aggressive learning is defined for the hinge, got {loss!r}; use {other} for other losses."
            )
        if isinf(self.C) and loss.factor != 1.0:
            raise ValueError(f"pa corrects every row fully, so the loss's factor must be 1, got {loss.factor!r}; use 'pa-1'.")
        if not is_bare(penalty):
            raise ValueError(f"passive-aggressive learning has no penalty, got {penalty!r}; use {other}, which takes it.")
        return LazyPa(self._replace(C=float(self.C)), problem)


@kernel
def learn_rows_pa(rows, largest, y, s, loss, solver, average, V, B, A, now, scores):
    indptr, indices, values = rows
    t, b, one, be = int(now[T]), now[BIAS], now[ONE], now[SCALE_SUM]
    careful = is_careful(now, largest)
    done = y.shape[0]
    for i in range(y.shape[0]):
        if B is not None and sums_due(t):
            visit(V, B, A, 1.0, be, now)
            be = 0.0
        begin, end = indptr[i], indptr[i + 1]
        product, squares = nothing(), nothing()
        for k in range(begin, end, LANES):
            at, x = four(indices, values, k, end)
            product += gather(V, at) * x
            squares += x * x
        p, size = b * one + total(product), one + total(squares)
        scores[i] = p
        short = loss.value(p, y[i])
        tau = 0.0
        if short > 0.0 and s[i] > 0.0:
            tau = aggressiveness(short, size, s[i] * solver.C, solver.squared)
        if not isfinite(p + tau):
            done = i
            break

        t += 1
        if B is not None:
            be += average.om(t)
            now[BIAS_SUM] += average.om(t) * b
        if tau > 0.0:
            move = tau * y[i]
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                moved = move * x
                put_back(V, at, gather(V, at) + moved)
                if B is not None:
                    put_back(B, at, gather(B, at) - be * moved)
            b += move * one
            careful = is_careful_after(now, careful, p, tau)
            if careful and not all_finite(V, indices, begin, end):
                done = i
                break
    now[T], now[BIAS], now[SCALE_SUM] = t, b, be
    return done


class LazyPa(Scaled):
    """PA, PA-I and PA-II in O(non-zeros)."""

    scores_means = stepped = False

    def call(self, state: State, examples: Examples) -> Any:
        V, B, A = (state.arrays.get(name) for name in "VBA")
        return learn_rows_pa, (*examples.given, self.loss, self.solver, self.average, V, B, A, state.now, examples.scores)

    def check_rows(self, weights: np.ndarray) -> None:
        odd = weights[(weights != 0.0) & (weights != 1.0)]
        if isinf(self.solver.C) and len(odd):
            raise ValueError(f"pa takes sample weights 0 or 1 only, got {odd[0]:g}; 'pa-1' and 'pa-2' take any.")

    def eta(self, t: int) -> float:
        """The step of the equivalent implicit method: C, 2C for PA-II."""
        return float(2.0 * self.solver.C if self.solver.squared else self.solver.C)


PRESETS = {
    "pa-1": Preset(Pa, {"C": 1.0}),
    "pa-2": Preset(Pa, {"C": 1.0, "squared": True}),
}

adopt(Pa)
