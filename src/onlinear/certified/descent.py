r"""Minimises the model of a Newton step with its penalty:  <g, d> + (1/2) d'Hd + r(w + d)  (MATH 20.3).

Epochs over coordinates, each to its own minimum; once few weights turn to 0 or away from it, conjugate gradients on the face of
those that are not 0, whose step is cut where a weight would pass 0 or a bound. Conjugate gradients are what brings the last
digits: epochs alone need many times the work where columns are correlated.
"""

from __future__ import annotations

import numpy as np

from onlinear.certified.models import FLAT, TINY
from onlinear.compiled import function, kernel
from onlinear.penalties import soft

TRIALS = 8  # halvings of a step on a face; the last ends where the first weight turns to 0


@function
def best_weight(cur, slope, diagonal, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """The weight that minimises its part of the model, from where its weight is ``cur`` and the model's slope ``slope``."""
    return min(max(soft(diagonal * cur - slope, l1) / (diagonal + l2), lower), upper)


@function
def step_on_face(model, g, w, d, diagonal, penalty, free, members, size, most, reduction, room):  # type: ignore[no-untyped-def]
    """Move along conjugate gradients for the weights that are not 0; give the number of their steps."""
    l1, l2, lower, upper = penalty
    slopes, x, p, r, q = room[0], room[1], room[2], room[3], room[4]
    norm = 0.0
    for t in range(size):
        a = members[t]
        cur, own = w[a] + d[a], a < free
        slopes[t] = g[a] + model.gradient(a)
        r[t] = -slopes[t] - (l2 * cur + (l1 if cur > 0.0 else -l1)) * own
        x[t], p[t] = 0.0, r[t] / (diagonal[a] + l2 * own + TINY)
        norm += r[t] * p[t]
    first, steps = norm, 0
    if model.solves(size):
        model.solve(r, l2, free, members, size, x)
        most = 0
    while steps < most and steps < size and norm > reduction * first and norm > 0.0:
        steps += 1
        model.times(p, members, size, q)
        bend, length = 0.0, 0.0
        for t in range(size):
            q[t] += l2 * p[t] * (members[t] < free)
            bend += p[t] * q[t]
            length += p[t] * p[t] * (diagonal[members[t]] + l2 * (members[t] < free))
        bend = max(bend, FLAT * length + TINY)
        along, before, norm = norm / bend, norm, 0.0
        for t in range(size):
            x[t] += along * p[t]
            r[t] -= along * q[t]
            norm += r[t] * r[t] / (diagonal[members[t]] + l2 * (members[t] < free) + TINY)
        for t in range(size):
            p[t] = r[t] / (diagonal[members[t]] + l2 * (members[t] < free) + TINY) + norm / before * p[t]
    length, first_turn = 1.0, 1.0
    for t in range(size):
        cur = w[members[t]] + d[members[t]]
        if members[t] < free and cur * x[t] < 0.0:
            first_turn = min(first_turn, -cur / x[t])
    for trial in range(TRIALS):
        if trial == TRIALS - 1:
            length = min(length, first_turn)
        change = 0.0
        for t in range(size):
            a = members[t]
            cur, p[t] = w[a] + d[a], length * x[t]
            if a < free:
                new = cur + p[t] if (cur + p[t]) * cur > 0.0 else 0.0
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
            break
        length *= 0.5
    return steps


@kernel
def descend(model, g, w, d, diagonal, penalty, free, budget, share, target, most, reduction):  # type: ignore[no-untyped-def]
    """Change d until the model is minimised well enough; give the number of epochs and steps of conjugate gradients.

    ``penalty``: l1, l2, lower, upper. ``free``: the coordinates before the intercept's. With ``target`` < 0 it stops when an
    epoch brings at most ``share`` of what came before, else when no coordinate's slope was off by more than ``target``.
    """
    l1, l2, lower, upper = penalty
    total = g.shape[0]
    active, members = np.arange(total), np.empty(total, np.int64)
    room = np.empty((5, total))
    count, whole, fallen, used = total, True, 0.0, 0
    while used < budget:
        used += 1
        decrease, worst, turned, kept = 0.0, 0.0, 0, 0
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
            elif a < free:
                new = best_weight(cur, slope, diagonal[a], l1, l2, lower, upper)
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
        fallen += decrease
        done = decrease <= share * fallen if target < 0.0 else worst <= target
        if done and whole:
            break
        if done:
            count, whole = total, True
            for a in range(total):
                active[a] = a
            continue
        count, whole = kept, False
        if target >= 0.0 and used >= 2 and turned <= 2 + kept // 20:
            size = 0
            for t in range(count):
                a = active[t]
                cur = w[a] + d[a]
                if a >= free or (cur != 0.0 and lower < cur and cur < upper):
                    members[size] = a
                    size += 1
            used += step_on_face(model, g, w, d, diagonal, penalty, free, members, size, most, reduction, room)
    return used
