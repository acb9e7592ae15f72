r"""Sums over rows of outputs that softmax joins, of which a pass towards their certified optimum is made (MATH 20.5, 20.9).

As ``sums.py``, of which these are a kind. Weights are (d, K): the weight of column j for class k has the place j K + k among
all. Curvatures are those between all classes, s_i (diag(p_i) - p_i p_i'). They cost K times as much as those of K outputs by
themselves, so rows are kept while they have room, also where curvatures would take less.
"""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple

import numpy as np

from onlinear.certified.joint_gap import JointSums
from onlinear.certified.sums import LOSS, SHARES, KeptRows, Sums, add_to, within
from onlinear.compiled import function, kernel
from onlinear.rows import Rows
from onlinear.softmax import copy_logs, subtract_level

# Places in ``totals``: losses, sum s l*(theta), losses at SHARES of the step; of each class sum s theta_k, then the sum of s.
CONJUGATES, ALONG = 1, 2
OF_CLASSES = ALONG + len(SHARES)


class JointPoint(NamedTuple):
    """What a pass asks about, in the units of the rows: weights and intercepts, the step that led there, and weights of a
    working set."""

    w: np.ndarray  # (d, K) float64
    b: np.ndarray  # (K,)
    step: np.ndarray  # (d, K) or (0, K): w minus the weights before the step; empty where there was none
    step_b: np.ndarray  # (K,)
    places: np.ndarray  # (d, K) int64: the number of a weight in the working set, ascending, or -1
    flat: float  # added to the curvatures of a row
    room: int  # bytes that curvatures, or the rows kept in their place, may take

    def nothing(self) -> SumsOfClasses:
        """The sums of no rows."""
        return SumsOfClasses(self)

    def targets(self, y: np.ndarray, k: int) -> np.ndarray:
        """The places of the rows' classes, (n,), of targets (n, K)."""
        return y.argmax(axis=1)

    @property
    def columns(self) -> np.ndarray:
        """The columns in which the working set has weights."""
        return np.flatnonzero(np.any(self.places >= 0, axis=1))


class SumsOfClasses(Sums):
    """Sums over rows at a ``JointPoint``.

    gradients   (2, d, K): sum s theta x, and of each class the sum s x of its rows
    hessian     the upper triangle over the weights of the working set and the intercepts; or (0, 0)
    """

    def __init__(self, point: JointPoint) -> None:
        d, K = point.w.shape
        columns = point.columns
        others = np.ones(d, bool)
        others[columns] = False
        m = int(point.places.max(initial=-1)) + 1 + K
        alone = not np.any(point.w[others])
        super().__init__(OF_CLASSES + 2 * K, (2, d, K), m, point.room, point.room if alone else None)
        self.flat, self._numbers = point.flat, point.places[columns]  # (columns, K)
        self._within = np.full(d, -1, np.int64)
        self._within[columns] = np.arange(len(columns))

    def add(self, loss: Any, point: JointPoint, rows: Rows, y: np.ndarray, s: np.ndarray) -> None:
        """Add rows of the point's columns, in order, with their classes and what multiplies their losses, (n,)."""
        p, room = np.zeros((len(y), len(point.b))), np.empty((3, len(point.b), 1))
        add_joint_rows(rows, y, s, point, self.totals, self.gradients, p, room)
        self.n += len(y)
        if self.holds_rows:
            self.add_kept([KeptRows(within(rows, self._within), y.copy(), s.copy(), p)])

    def _add_curvatures(self, rows: KeptRows) -> None:
        most = (int(np.diff(rows.entries.starts).max(initial=0)) + 1) * rows.h.shape[1]
        room = np.empty(most, np.uint32), np.empty((3, most), np.int64), np.empty((2, most))
        add_joint_curvatures(*rows.entries, self._numbers, rows.s, rows.h, self.flat, *room, self.hessian)

    @property
    def gradient(self) -> np.ndarray:
        """sum s theta x, of all weights."""
        return self.gradients[0].ravel()

    @property
    def left(self) -> np.ndarray:
        """sum s theta_k, (K,)."""
        return self.of_classes[0]

    @property
    def of_classes(self) -> np.ndarray:
        """(2, K): of each class sum s theta_k, and the weight of its rows."""
        return self.totals[OF_CLASSES:].sum(axis=1).reshape(2, -1)

    @property
    def along(self) -> np.ndarray:
        """The losses at ``SHARES`` of the step; 0 where there was none."""
        return self.totals[ALONG:OF_CLASSES].sum(axis=1)

    def of_certificate(self, fit_intercept: bool) -> tuple[JointSums, float]:
        """What the duality gap is made of, and sum s l*(theta)."""
        pulls, members = self.gradients.transpose(0, 2, 1)
        found = JointSums(self.n, pulls, members if fit_intercept else None, *self.of_classes)
        return found, float(self.totals[CONJUGATES].sum())


@kernel
def add_joint_rows(rows, own, s, point, totals, gradients, p, room):  # type: ignore[no-untyped-def]
    """Add rows to sums, row by row, and give their probabilities p (n, K), 0 for rows of weight 0; ``room``: (3, K, 1)."""
    starts, columns, values = rows
    w, b, step, step_b, _, _, _ = point
    z, along, logs = room
    moves = step.shape[0] > 0
    for i in range(own.shape[0]):
        if s[i] == 0.0:
            continue
        score(columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], w, b, z)
        copy_logs(z, logs)
        add_classes(logs, own[i], s[i], totals, p[i])
        if moves:
            score(columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], step, step_b, along)
            for t in range(len(SHARES)):
                for k in range(b.shape[0]):
                    logs[k, 0] = z[k, 0] - (1.0 - SHARES[t]) * along[k, 0]
                subtract_level(logs, 0)
                add_to(totals, ALONG + t, -s[i] * logs[own[i], 0])
        for e in range(starts[i], starts[i + 1]):
            pull, x = gradients[0, columns[e]], s[i] * values[e]
            for k in range(b.shape[0]):
                pull[k] += x * (p[i, k] - (1.0 if k == own[i] else 0.0))
            gradients[1, columns[e], own[i]] += x


@function
def score(columns, values, w, b, z):  # type: ignore[no-untyped-def]
    """z (K, 1) = x w + b of a row."""
    for k in range(b.shape[0]):
        z[k, 0] = b[k]
    for e in range(columns.shape[0]):
        weights, x = w[columns[e]], np.float64(values[e])
        for k in range(b.shape[0]):
            z[k, 0] += weights[k] * x


@function
def add_classes(logs, y, s, totals, p):  # type: ignore[no-untyped-def]
    """Add what a row's log-probabilities say, and give its probabilities."""
    entropy, classes = 0.0, p.shape[0]
    for k in range(classes):
        p[k] = exp(logs[k, 0])
        entropy += p[k] * logs[k, 0] if p[k] > 0.0 else 0.0
        add_to(totals, OF_CLASSES + k, s * (p[k] - (1.0 if k == y else 0.0)))
    add_to(totals, LOSS, -s * logs[y, 0])
    add_to(totals, CONJUGATES, s * entropy)
    add_to(totals, OF_CLASSES + classes + y, s)


@kernel
def add_joint_curvatures(starts, places, values, numbers, s, p, flat, at, listed, weights, H):  # type: ignore[no-untyped-def]
    """H += sum_i s_i (diag(p_i + flat) - p_i p_i') over pairs of classes, x_i x_i' over pairs of columns; the upper triangle,
    the intercepts last. numbers[j, k]: the place of a weight, ascending, or -1. Room for a row of m coordinates: ``at`` (m,),
    ``listed`` (3, m) and ``weights`` (2, m)."""
    of, after, first = listed
    x, by = weights
    K, size = p.shape[1], H.shape[0]
    for i in range(starts.shape[0] - 1):
        if s[i] == 0.0:
            continue
        count = 0
        for e in range(starts[i], starts[i + 1] + 1):
            for k in range(K):
                a = size - K + k if e == starts[i + 1] else numbers[places[e], k]
                if a >= 0:
                    at[count], of[count], x[count] = a, k, 1.0 if e == starts[i + 1] else values[e]
                    by[count] = x[count] * p[i, k]
                    count += 1
        first[:K] = count
        for a in range(count - 1, -1, -1):
            after[a], first[of[a]] = first[of[a]], a
        for a in range(count):
            row, places_here, along, pull = H[at[a]], at[a:count], by[a:count], -s[i] * by[a]
            for c in range(along.shape[0]):
                row[places_here[c]] += pull * along[c]
            c, pull = a, s[i] * (by[a] + flat * x[a])
            while c < count:
                row[at[c]] += pull * x[c]
                c = after[c]
