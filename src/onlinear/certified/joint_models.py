r"""The quadratic model of a Newton step on outputs that softmax joins, made or multiplied row by row.

    (1/2) sum_i q_i D_i' (diag(p_i) - p_i p_i' + flat) D_i,    D_ik = <d_k, x_i> + d_k0,    q_i = s_i / n

``ByClasses`` keeps D and <p_i, D_i>, so that a coordinate costs the entries of its column, as one of a single output does.
``gram_of_classes`` makes the matrix: of each class by itself, less V'V with the rows V_i = (p_ik x_ij) of all coordinates.

A coordinate is a weight: the column which[a] of the class of[a]. The intercepts of the classes come last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onlinear.certified.columns import Table, restricted
from onlinear.certified.conjugate import Map
from onlinear.certified.curvatures import add_gram, gram, mirrored
from onlinear.certified.models import TINY
from onlinear.compiled import adopt, kernel

AT_ONCE = 2048  # rows
SAFE = 1e-10  # of its diagonal, added to a matrix that is to be factored


class Coordinates(NamedTuple):
    """Which weights a model is about."""

    which: np.ndarray  # (m,): their columns
    of: np.ndarray  # (m + K,) or (m,): the classes of weights and intercepts


class ByClasses(NamedTuple):
    """The columns of X and what is known of each row. p, z = D and room are (K, n); q and u = <p, D> (n,)."""

    starts: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    which: np.ndarray
    of: np.ndarray
    q: np.ndarray
    flat: float
    p: np.ndarray
    z: np.ndarray
    u: np.ndarray
    room: np.ndarray

    def gradient(self, a: int) -> float:
        """(H d)_a."""
        p, z, total = self.p[self.of[a]], self.z[self.of[a]], 0.0
        if a >= self.which.shape[0]:
            for i in range(self.q.shape[0]):
                total += self.q[i] * (p[i] * (z[i] - self.u[i]) + self.flat * z[i])
            return total
        for e in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
            i = self.rows[e]
            total += self.values[e] * self.q[i] * (p[i] * (z[i] - self.u[i]) + self.flat * z[i])
        return total

    def move(self, a: int, step: float) -> None:
        """d_a += step."""
        p, z = self.p[self.of[a]], self.z[self.of[a]]
        if a >= self.which.shape[0]:
            for i in range(self.q.shape[0]):
                z[i] += step
                self.u[i] += p[i] * step
        else:
            for e in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
                i, along = self.rows[e], step * self.values[e]
                z[i] += along
                self.u[i] += p[i] * along

    def times(self, p: np.ndarray, members: np.ndarray, count: int, out: np.ndarray) -> None:
        """out = H p on some coordinates; p is 0 elsewhere."""
        room, m = self.room, self.which.shape[0]
        room[:] = 0.0
        for t in range(count):
            a = members[t]
            along = room[self.of[a]]
            if a >= m:
                for i in range(along.shape[0]):
                    along[i] += p[t]
            else:
                for e in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
                    along[self.rows[e]] += p[t] * self.values[e]
        for i in range(self.q.shape[0]):
            u = 0.0
            for k in range(room.shape[0]):
                u += self.p[k, i] * room[k, i]
            for k in range(room.shape[0]):
                room[k, i] = self.q[i] * (self.p[k, i] * (room[k, i] - u) + self.flat * room[k, i])
        for t in range(count):
            a, total = members[t], 0.0
            along = room[self.of[a]]
            if a >= m:
                for i in range(along.shape[0]):
                    total += along[i]
            else:
                for e in range(self.starts[self.which[a]], self.starts[self.which[a] + 1]):
                    total += self.values[e] * along[self.rows[e]]
            out[t] = total

    def solves(self, count: int) -> bool:
        """No: H is not at hand."""
        return False


@kernel
def square_classes(model, out):  # type: ignore[no-untyped-def]
    """The diagonal of H."""
    m = model.which.shape[0]
    for a in range(out.shape[0]):
        p, total = model.p[model.of[a]], 0.0
        if a >= m:
            for i in range(p.shape[0]):
                total += model.q[i] * (p[i] * (1.0 - p[i]) + model.flat)
        else:
            for e in range(model.starts[model.which[a]], model.starts[model.which[a] + 1]):
                i = model.rows[e]
                total += model.values[e] * model.values[e] * model.q[i] * (p[i] * (1.0 - p[i]) + model.flat)
        out[a] = total


@kernel
def spread_classes(rows, place, p, first, last, found):  # type: ignore[no-untyped-def]
    """Rows V_i of rows ``first`` to ``last``; place[k, j]: the coordinate of column j, and of the intercept after the columns,
    in class k, or -1. Places ascend in a row, as coordinates ascend by class and column."""
    starts, places, values = rows
    new_starts, new_places, new_values = found
    end, width = 0, place.shape[1] - 1
    for i in range(first, last):
        for k in range(place.shape[0]):
            for e in range(starts[i], starts[i + 1]):
                a = place[k, places[e]]
                if a >= 0:
                    new_places[end] = a
                    new_values[end] = values[e] * p[k, i]
                    end += 1
        for k in range(place.shape[0]):
            if place[k, width] >= 0:
                new_places[end] = place[k, width]
                new_values[end] = p[k, i]
                end += 1
        new_starts[i - first + 1] = end


class ClassBlocks:
    """The curvatures of each class by itself, with those of r: of the model's matrix what lies on its diagonal, class by class.

    H is at most twice as large (20.10), so conjugate gradients with it need few steps."""

    def __init__(self, rows: Table, width: int, at: Coordinates, h: np.ndarray, l2: float) -> None:
        """``h``: the curvatures of each class, (K, n)."""
        m, counts = len(at.which), np.bincount(rows.places, minlength=width)
        self._size, self._parts = len(at.of), []
        for k, curvatures in enumerate(h):
            own = np.flatnonzero(at.of == k)
            columns = at.which[own[own < m]]
            few = restricted(rows, width, columns, int(counts[columns].sum()))
            H = gram(few, curvatures, len(columns))[: len(own), : len(own)]
            H[np.diag_indices(len(own))] = np.diag(H) * (1.0 + SAFE) + np.where(own < m, l2, 0.0) + TINY
            self._parts.append((own, H))

    def on(self, members: np.ndarray) -> Map:
        """The solution map of the part of some coordinates."""
        from scipy.linalg import cho_factor, cho_solve

        place = np.full(self._size, -1, np.int64)
        place[members] = np.arange(len(members))
        factors = []
        for own, H in self._parts:
            here = place[own] >= 0
            if here.any():
                factors.append((place[own[here]], cho_factor(H[np.ix_(here, here)])))

        def solve(r: np.ndarray) -> np.ndarray:
            out = np.empty_like(r)
            for places, factor in factors:
                out[places] = cho_solve(factor, r[places])
            return out

        return solve


def gram_of_classes(rows: Table, width: int, at: Coordinates, p: np.ndarray, q: np.ndarray, flat: float) -> np.ndarray:
    """H itself."""
    m, size, (classes, n) = len(at.which), len(at.of), p.shape
    place = np.full((classes, width + 1), -1, np.int64)
    place[at.of[:m], at.which] = np.arange(m)
    place[at.of[m:], width] = np.arange(m, size)
    H, one = np.zeros((size + 1, size + 1)), np.ones((1, n))
    for part, table in _pieces(rows, place, p):
        add_gram(table, q[part], H)
    H = -mirrored(H)[:size, :size]
    for k in range(classes):
        own = place[k][place[k] >= 0]
        alone = np.full((1, width + 1), -1, np.int64)
        alone[0, place[k] >= 0] = np.arange(len(own))
        block = np.zeros((len(own) + 1, len(own) + 1))
        for part, table in _pieces(rows, alone, one):
            add_gram(table, q[part] * (p[k, part] + flat), block)
        H[np.ix_(own, own)] += mirrored(block)[:-1, :-1]
    return H


def _pieces(rows: Table, place: np.ndarray, p: np.ndarray):  # type: ignore[no-untyped-def]
    """The rows V_i, some at once."""
    n, per_entry = len(rows.starts) - 1, np.count_nonzero(place >= 0, axis=0)
    for first in range(0, n, AT_ONCE):
        last = min(first + AT_ONCE, n)
        here = rows.places[rows.starts[first] : rows.starts[last]]
        room = int(per_entry[here].sum()) + (last - first) * int(per_entry[-1])
        table = Table(np.zeros(last - first + 1, np.int64), np.empty(room, np.uint32), np.empty(room))
        spread_classes(rows, place, p, first, last, table)
        yield slice(first, last), table


adopt(ByClasses)
