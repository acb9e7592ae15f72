"""CSGD with k hyperplanes in place of one: what P5 does for the mean, for the leading directions of the rows too.

P5's constraint <w, sum x_i> = sum y_i is the normal equation of the constant feature. One of the feature z is

    <w, sum_{i <= t} z_i x_i> = sum_{i <= t} z_i y_i,

and E[z (y - <w*, x>)] = 0 for every z made from the row and those before it. Taken are z = 1 and the scores of the row on the
k - 1 leading directions of the centred rows, found as the run goes (Weng, Zhang, Hwang, IEEE TPAMI 25(8), 2003). A step is
SGD's and then a projection onto the k hyperplanes; with k = 1 it is CSGD's. O(d k^2) a row, no lazy form.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import adopt, function
from onlinear.learner.parts import build_schedule
from onlinear.schedules import Power
from onlinear.solvers.core.dense import Dense, dot
from onlinear.solvers.core.engine import Engine, Problem
from onlinear.text.form import parse

DEPENDENT = 1e-8  # of a hyperplane's normal, which the others leave: below it they say the same


@function
def along(V, u, t, i):  # type: ignore[no-untyped-def]
    """Update direction i of V by the centred row u; what is left of u without it."""
    size = sqrt(dot(V[i], V[i]))
    share = dot(u, V[i]) / size if size > 0.0 else 1.0
    V[i] = V[i] * ((t - 1.0) / t) + u * (share / t)
    squared = dot(V[i], V[i])
    return u - V[i] * (dot(u, V[i]) / squared) if squared > 0.0 else u


@function
def onto(w, Q, r):  # type: ignore[no-untyped-def]
    """Move w onto the hyperplanes <Q_i, w> = r_{i+1}, one at right angles to those before it after the other."""
    E, f = np.zeros_like(Q), np.zeros(Q.shape[0])
    for i in range(Q.shape[0]):
        e, c = Q[i].copy(), r[i + 1]
        for j in range(i):
            a = dot(e, E[j])
            e -= a * E[j]
            c -= a * f[j]
        size = sqrt(dot(e, e))
        if size > DEPENDENT * sqrt(dot(Q[i], Q[i])):
            E[i], f[i] = e / size, c / size
            w -= (dot(w, E[i]) - f[i]) * E[i]


class Leading(NamedTuple):
    """Settings: the step sizes, and the number k of hyperplanes, at most the number of features."""

    schedule: Any = Power()
    k: int = 1

    @property
    def letters(self) -> tuple[str, ...]:
        """w; the right sides r, in the places of the first k features; the normals Q; the directions V."""
        return ("w", "r", *(f"Q{i}" for i in range(self.k)), *(f"V{i}" for i in range(1, self.k)))

    def step(self, U, x, y, s, t, loss, penalty):  # type: ignore[no-untyped-def]
        w, r, Q, V = U[0], U[1], U[2 : 2 + self.k], U[2 + self.k :]
        w += self.schedule.at(t) * s * (y - dot(w, x)) * x
        Q[0] += s * x
        r[1] += s * y
        u = x - Q[0] / t
        for i in range(self.k - 1):
            size = sqrt(dot(V[i], V[i]))
            z = s * dot(u, V[i]) / size if size > 0.0 else 0.0
            Q[i + 1] += z * x
            r[i + 2] += z * y
        for i in range(self.k - 1):
            u = along(V, u, t, i)
        onto(w, Q, r)

    def begin(self, U, penalty):  # type: ignore[no-untyped-def]
        U[1:] = 0.0

    def predictor(self, U, t, penalty):  # type: ignore[no-untyped-def]
        return U[0]

    def engine(self, problem: Problem) -> Engine:
        return Dense(self, problem, "each step projects onto k hyperplanes")


def solver_of(text: str) -> str | Leading:
    """The solver ``leading,k=5,eta=0.1`` of a text; the text where it names another."""
    name, settings = parse(text, "solver")
    if name != "leading":
        return text
    k = int(settings.pop("k", 1))
    return Leading(build_schedule("solver 'leading'", Power(), settings, None), k)


adopt(Leading)
