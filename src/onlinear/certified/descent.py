r"""Minimises the model of a Newton step with its penalty:  <g, d> + (1/2) d'Hd + r(w + d)  (MATH 20.3).

First come epochs over coordinates, each to its own minimum. Once few weights turn to 0 or away from it, conjugate gradients
move along the face of those that are not 0. Their step is cut where a weight would pass 0 or a bound. They bring the last
digits: epochs alone need many times the work where columns are correlated.
"""

from __future__ import annotations

from math import copysign, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlinear.certified.conjugate import Map, newton_step
from onlinear.certified.faces import Faces, solve_dependent
from onlinear.certified.models import FLAT, TINY, ByGram, solve_face
from onlinear.compiled import function, kernel
from onlinear.penalties import soft

FACES = 20  # that follow each other at most, where systems are solved at once and a weight turned
TRIALS = 8  # halvings of a step on a face; the last ends where the first weight turns to 0 or comes to a bound


class Subproblem(NamedTuple):
    """The model of a step at w, and d, which is to minimise it. The intercept, which has no penalty, comes last."""

    model: Any  # of H
    g: np.ndarray
    w: np.ndarray
    d: np.ndarray
    diagonal: np.ndarray  # of H
    penalty: tuple[float, float, float, float]  # l1, l2, lower, upper
    free: int  # where coordinates without a penalty begin


class Effort(NamedTuple):
    """How well a model is minimised.

    It is enough when an epoch over all coordinates brings at most ``share`` of what those before it brought, or no slope was
    off by more than ``target``. With ``target`` >= 0 there are ``pause`` epochs to a step on the face, which costs as much as
    they.
    """

    budget: int  # epochs and steps of conjugate gradients
    share: float
    target: float
    steps: int  # of conjugate gradients to a step on the face
    reduction: float  # of the square of their residual
    pause: int = 5


@function
def best_weight(cur, slope, diagonal, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """The weight that minimises its part of the model, from where its weight is ``cur`` and the model's slope ``slope``."""
    return min(max(soft(diagonal * cur - slope, l1) / (diagonal + l2), lower), upper)


@kernel
def sweeps(problem, active, count, budget, share, target, pause):  # type: ignore[no-untyped-def]
    """Epochs until the model is minimised, ``budget`` of them are made, or few weights turn after ``pause`` of them, 0: never.

    An epoch is over the first ``count`` of ``active``, which keeps those that are not 0 or near it. With l1 a weight turns to 0
    where it would change its sign. A weight without curvature that is to move on is left to steps on the face, which are due at
    the end for it alone. Give the epochs, how many of ``active`` are kept, and whether a step on the face is due. One text, as
    compiling functions of it takes longer.
    """
    model, g, w, d, diagonal, (l1, l2, lower, upper), free = problem
    fallen, used, rested = 0.0, 0, 0
    while used < budget:
        decrease, worst, turned, kept, slides = 0.0, 0.0, 0, 0, False
        for t in range(count):
            a = active[t]
            cur, flat = w[a] + d[a], diagonal[a] + l2 * (a < free) <= TINY
            if flat and (a >= free or cur == 0.0):
                continue
            slope = g[a] + model.gradient(a)
            if flat:
                new = min(max(0.0, lower), upper) if abs(slope) < l1 else cur  # the penalty alone acts
                step, curvature, stays = new - cur, 0.0, new != 0.0
                turned += step != 0.0
                along = slope + copysign(l1, cur)
                slides = slides or (step == 0.0 and lower < cur < upper and abs(along) > target)
            elif a < free:
                new = best_weight(cur, slope, diagonal[a], l1, l2, lower, upper)
                if l1 > 0.0 and new * w[a] < 0.0:
                    new = min(max(0.0, lower), upper)
                step, curvature = new - cur, diagonal[a] + l2
                turned += (new == 0.0) != (cur == 0.0) or new * cur < 0.0
                stays = new != 0.0 or abs(slope) > 0.9 * l1
            else:
                step, curvature, stays = -slope / diagonal[a], diagonal[a], True
            if step != 0.0:
                d[a] += step
                model.move(a, step)
                decrease += curvature * step * step
                worst = max(worst, curvature * abs(step))
            if stays:
                active[kept] = a
                kept += 1
        used, rested, fallen, every = used + 1, rested + 1, fallen + decrease, count == g.shape[0]
        if decrease > share * fallen and worst > target:
            count = kept
            if pause > 0 and rested >= pause and turned <= 2 + kept // 20:
                return used, count, True
        elif every:
            return used, count, slides and pause > 0
        else:
            count = g.shape[0]
            for a in range(count):
                active[a] = a
    return used, count, False


@kernel
def face_gradient(model, members, out):  # type: ignore[no-untyped-def]
    """H d on some coordinates."""
    for t in range(members.shape[0]):
        out[t] = model.gradient(members[t])


@kernel
def conjugate(problem, r, members, diagonal, most, reduction, x):  # type: ignore[no-untyped-def]
    """(H + l2) x = r on some coordinates by conjugate gradients, preconditioned by the diagonal; give the number
    of steps."""
    model, _, _, _, _, (_, l2, _, _), free = problem
    size = members.shape[0]
    p, q = np.empty(size), np.empty(size)
    norm = 0.0
    for t in range(size):
        p[t] = r[t] / (diagonal[t] + TINY)
        norm += r[t] * p[t]
    first, steps = norm, 0
    while steps < most and steps < size and norm > reduction * first and norm > 0.0:
        steps += 1
        model.times(p, members, size, q)
        bend, length = 0.0, 0.0
        for t in range(size):
            q[t] += l2 * p[t] * (members[t] < free)
            bend += p[t] * q[t]
            length += p[t] * p[t] * diagonal[t]
        bend = max(bend, FLAT * length + TINY)
        along, before, norm = norm / bend, norm, 0.0
        for t in range(size):
            x[t] += along * p[t]
            r[t] -= along * q[t]
            norm += r[t] * r[t] / (diagonal[t] + TINY)
        for t in range(size):
            p[t] = r[t] / (diagonal[t] + TINY) + norm / before * p[t]
    return steps


@kernel
def follow(problem, x, slopes, members, p, q):  # type: ignore[no-untyped-def]
    """Go along x on some coordinates as far as the model falls; with l1 a weight stops at 0, and every one at a bound. p and q
    are room."""
    model, _, w, d, _, (l1, l2, lower, upper), free = problem
    size = members.shape[0]
    length, first_turn = 1.0, 1.0
    for t in range(size):
        cur = w[members[t]] + d[members[t]]
        if members[t] < free and x[t] != 0.0:
            first_turn = min(first_turn, ((upper if x[t] > 0.0 else lower) - cur) / x[t])
            if l1 > 0.0 and cur * x[t] < 0.0:
                first_turn = min(first_turn, -cur / x[t])
    for trial in range(TRIALS):
        if trial == TRIALS - 1:
            length = min(length, first_turn)
        change = 0.0
        for t in range(size):
            a = members[t]
            cur, p[t] = w[a] + d[a], length * x[t]
            if a < free:
                new = cur + p[t] if l1 == 0.0 or (cur + p[t]) * cur > 0.0 else 0.0
                new = min(max(new, lower), upper)
                p[t] = new - cur
                change += l1 * (abs(new) - abs(cur)) + 0.5 * l2 * (new * new - cur * cur)
            change += slopes[t] * p[t]
        model.times(p, members, size, q)
        for t in range(size):
            change += 0.5 * p[t] * q[t]
        if change <= 0.0:
            for t in range(size):
                if p[t] != 0.0:
                    d[members[t]] += p[t]
                    model.move(members[t], p[t])
            return length == 1.0
        length *= 0.5
    return True


@kernel
def multiply(model, p, members, out):  # type: ignore[no-untyped-def]
    """out = H p on some coordinates; p is 0 elsewhere."""
    model.times(p, members, members.shape[0], out)


class Preconditioner(Protocol):
    """A matrix near H, of which a part can be solved with."""

    def on(self, members: np.ndarray) -> Map:
        """The solution map of the part of some coordinates."""


def solve_with(
    near: Preconditioner, problem: Subproblem, r: np.ndarray, members: np.ndarray, most: int, reduction: float
) -> tuple[np.ndarray, int]:
    """x with (H + l2) x = r on some coordinates, by conjugate gradients with such a matrix, and the number of steps."""
    ridge = np.where(members < problem.free, problem.penalty[1], 0.0)

    def times(p: np.ndarray) -> np.ndarray:
        out = np.empty(len(p))
        multiply(problem.model, p, members, out)
        return out + ridge * p

    x, steps, _ = newton_step(times, near.on(members), -r, sqrt(reduction), most)
    return x, steps


def step_on_face(
    problem: Subproblem,
    active: np.ndarray,
    most: int,
    reduction: float,
    near: Preconditioner | None,
    faces: Faces | None,
) -> tuple[int, bool]:
    """Move along a Newton step for the weights that are not 0; give its conjugate gradients, and whether it was whole."""
    model, g, w, d, diagonal, (l1, l2, lower, upper), free = problem
    cur = w[active] + d[active]
    inside = (active >= free) | ((cur != 0.0) & (lower < cur) & (cur < upper))
    members, cur = active[inside], cur[inside]
    own, slopes, x = members < free, np.empty(len(members)), np.zeros(len(members))
    face_gradient(model, members, slopes)
    slopes += g[members]
    r = -slopes - (l2 * cur + np.where(cur > 0.0, l1, -l1)) * own
    steps = 0
    if faces is not None and (solved := faces.solve(r, members)) is not None:
        x = solved
    elif model.solves(len(members)):
        right = r.copy()
        solve_face(model.H, r, l2, free, members, np.empty((len(members), len(members))), x)
        if not np.isfinite(x).all():
            x = solve_dependent(model.H[np.ix_(members, members)] + np.diag(l2 * own), right)
    elif near is not None:
        x, steps = solve_with(near, problem, r, members, most, reduction)
    else:
        steps = conjugate(problem, r, members, diagonal[members] + l2 * own, most, reduction, x)
    whole = follow(problem, x, slopes, members, np.empty(len(members)), np.empty(len(members)))
    return int(steps), bool(whole)


def descend(problem: Subproblem, effort: Effort, near: Preconditioner | None = None, faces: Faces | None = None) -> int:
    """Change d until the model is minimised well enough; give the number of epochs and steps of conjugate gradients.

    ``near``: their preconditioner, in place of the diagonal. ``faces``: those of H, which earlier models may have factored."""
    budget, share, target, most, reduction, pause = effort
    active, count, used, rest = np.arange(len(problem.g)), len(problem.g), 0, min(2, pause)
    if faces is None and isinstance(problem.model, ByGram):
        faces = Faces(problem.model.H, np.where(active < problem.free, problem.penalty[1], 0.0))
    while used < budget:
        epochs, count, due = sweeps(problem, active, count, budget - used, share, target, rest if target >= 0.0 else 0)
        used, rest = used + int(epochs), pause
        if not due:
            break
        for _ in range(FACES):
            steps, whole = step_on_face(problem, active[:count], most, reduction, near, faces)
            used += steps
            if whole or steps > 0:
                break
    return used
