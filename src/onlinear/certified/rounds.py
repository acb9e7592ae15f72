r"""Prox-Newton on working sets from sums over rows alone: rows are read once a round, and never kept (MATH 20.5).

    sums at w_k, with the curvatures on W_k  ->  certificate of w_k;   d = argmin <g, d> + (1/2) d'Hd + r(w_k + d) on W_k
    w_(k+1) = w_k + d,   W_(k+1) = the columns that are not 0 or that the gradient at w_k almost moves

Where the rows in the columns of W_k take less room than curvatures, w_(k+1) is the minimiser of F itself over these columns.

A round asks about ``point`` and takes the ``Sums`` of all rows there, wherever they were made. A point that does not bring the
objective down is left for the best of the shorter steps, whose losses came with the sums; curvatures are then raised. Memory is
O(d + |W|^2), whatever the number of rows. A working set may be larger than curvatures have room for while its rows have that
room; where they do not, the columns that are farthest from their optimum take turns.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from onlinear.certified.columns import Stored
from onlinear.certified.curvatures import mirrored
from onlinear.certified.descent import Effort, Subproblem, descend
from onlinear.certified.gap import Gap
from onlinear.certified.joint_balance import NOWHERE
from onlinear.certified.models import ByGram
from onlinear.certified.newton import DAMPED, Limits, near, penalised, strengths_of
from onlinear.certified.prox_newton import ProxNewton
from onlinear.certified.stream_gap import bound_by_sign, in_scales
from onlinear.certified.sums import SHARES, Asked, KeptRows, Point, Sums
from onlinear.files import trust
from onlinear.losses import is_vanishing
from onlinear.threads import one_blas_thread

LARGEST = 6000  # columns of a working set: 288 MB of curvatures
GROWTH = 2  # times the weights that are not 0: columns of a working set whose rows are kept
WIDE, NARROW = 0.8, 0.95  # of l1: a column that is 0 joins the working set above it, far from and near the optimum
WIDER = 0.5  # far from the optimum, where rows are kept, which cost less in more columns
WITHIN = 100  # iterations on rows that are kept
NEARER = 0.1  # of the gap that is asked for, or of that before: the gap on rows that are kept, whose certificate is tighter
NEAREST = 1e-14  # the least of these
TRUSTED = 0.8  # a gap below which they go on from where the rounds stand; from weights far too large 0 is the better start
EPOCHS, STEPS, REDUCTION = 200, 100, 1e-8  # of the model's solver
NUMBERS = ("value", "bound", "lowest", "slope", "damping", "curvature", "rounds", "wide", "accuracy")


class Rounds:
    """Where one output stands between two readings of the rows; all of it is in ``state``.

    w, b: the last point that brought F down, and its F; trial, trial_b: the point that is asked about. ``scales``: what columns
    are divided by, 0 for those left out. ``outputs``: how many share the memory. wide: 1.0 while the rows of
    every working set had room. Intercepts are (1,), of several outputs that one loss joins (K,).
    """

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        fit_intercept: bool,
        scales: np.ndarray | None,
        w: np.ndarray,
        b: Any,
        tol: float,
        outputs: int = 1,
    ) -> None:
        self.loss, self.penalty, self.fit_intercept, self.scales, self.tol = loss, penalty, fit_intercept, scales, tol
        self.strengths, self.room = strengths_of(penalty), int(LARGEST / sqrt(outputs))
        w = self._thinned(w)
        self.w, self.b, self.value, self.bound, self.lowest = w, np.atleast_1d(np.asarray(b, np.float64)), inf, -inf, 0.0
        self.trial, self.trial_b, self.slope = w.copy(), self.b, 0.0
        self.damping, self.curvature, self.rounds, self.wide, self.accuracy = 0.0, 1.0, 0, 1.0, NEARER
        self.working = self._largest(np.flatnonzero(w), np.abs(w), self.room)

    def _thinned(self, w: np.ndarray) -> np.ndarray:
        """A copy of a start; with l1 the largest weights alone where there are more than a working set takes."""
        if not self.strengths[0] > 0.0 or np.count_nonzero(w) <= self.room:
            return w.copy()
        found, kept = np.zeros_like(w), np.argsort(-np.abs(w), kind="stable")[: max(1, 2 * self.room // 3)]
        found[kept] = w[kept]
        return found

    # --- between two readings ----------------------------------------------------------------------------------------

    @property
    def gap(self) -> Gap:
        """The certificate of w and b."""
        return Gap(self.value, self.bound, self.lowest)

    @property
    def done(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap.relative <= self.tol

    @property
    def crowded(self) -> bool:
        """Whether the working set is as large as it may be."""
        return not self.wide and len(self.working) >= self.room

    @property
    def columns(self) -> int:
        """Columns of the working set."""
        return len(self.working)

    def point(self) -> Asked:
        """What the next reading asks about."""
        step = in_scales(self.trial - self.w, self.scales) if self.rounds > 0 else np.empty(0)
        step_b = float(self.trial_b[0] - self.b[0]) if self.rounds > 0 else 0.0
        at = in_scales(self.trial, self.scales), float(self.trial_b[0])
        return Point(*at, step, step_b, self._places(), self._floor(), 8 * (self.room + 1) ** 2)

    def _places(self) -> np.ndarray:
        """The number of each weight in the working set, or -1."""
        places = np.full(len(self.w), -1, np.int64)
        places[self.working] = np.arange(len(self.working))
        return places

    def _floor(self) -> float:
        """The least curvature of a row in the next model."""
        return max(1e-12, self.damping * self.curvature)

    def take(self, sums: Sums) -> None:
        """Take the sums of all rows at ``point``, which are used up: certify, and choose the next point."""
        n, before = sums.rows, self.value
        first, self.rounds = self.rounds == 0, self.rounds + 1
        self.bound = max(self.bound, self._bound(sums))
        value = sums.loss / n + penalised(self.strengths, self.trial)
        if not first and not value <= self.value + 0.01 * min(self.slope, 0.0) + 1e-13 * abs(self.value):
            self._shorten(sums.along / n)
            return
        self.w, self.b, self.value = self.trial.copy(), self.trial_b, value
        self.damping = self.damping / 4.0 * (self.damping > DAMPED)
        if before - value <= self.tol * abs(value):
            self.accuracy *= NEARER
        if np.isfinite(value) and not self.done:
            self._step(in_scales(sums.gradient / n, self.scales), sums, n)

    def _bound(self, sums: Sums) -> float:
        """What no objective is below, by the sums."""
        by_sign = sums.by_sign
        self.lowest = -float(by_sign[:, 2].sum()) / sums.rows
        return bound_by_sign(self.penalty, by_sign, sums.gradients, sums.rows, self.scales, self.fit_intercept)

    def _shorten(self, losses: np.ndarray) -> None:
        """Ask about the best of the shorter steps, and raise the curvatures of the next model."""
        self.damping = min(1.0, max(4.0 * self.damping, 0.05))
        step, step_b = self.trial - self.w, self.trial_b - self.b
        found = [mean + penalised(self.strengths, self.w + t * step) for t, mean in zip(SHARES, losses.tolist(), strict=True)]
        best = int(np.argmin(np.where(np.isfinite(found), found, inf)))
        share = SHARES[best] if found[best] < self.value else 0.1 * SHARES[-1]
        self.trial, self.trial_b, self.slope = self.w + share * step, self.b + share * step_b, 0.0

    def _step(self, g: np.ndarray, sums: Sums, n: int) -> None:
        """Minimise on the working set, F itself where its rows are kept and else the model, and choose the next one."""
        kept, away = sums.all_kept(), self._away(sums)
        if away:  # no weights are as good as an intercept so far off that no row has a loss
            self.trial, self.slope = np.clip(np.zeros_like(self.w), *self.strengths[2:]), 0.0
            self.trial_b = self.b + away * (NOWHERE + np.abs(self.b))
        elif kept is not None:
            self._minimise_within(kept)
        elif len(sums.hessian):
            self._minimise_model(g, sums, n)
        else:  # the rows had no room: from here to a set whose curvatures have
            self.wide, self.trial, self.trial_b, self.slope = 0.0, self.w.copy(), self.b, 0.0
        wide = WIDE if kept is None else WIDER
        self.working = self._next(g, min(NARROW, max(wide, 1.0 - self.gap.relative)))

    def _away(self, sums: Sums) -> float:
        """The sign of the intercept that all rows want, at which the loss of each vanishes, as of rows of one class; else 0."""
        if not (self.fit_intercept and is_vanishing(self.loss) and self.lowest == 0.0):
            return 0.0
        up, down = sums.by_sign[:, 0].tolist()
        return -float(np.sign(up + down)) if up == 0.0 or down == 0.0 else 0.0

    def _minimise_within(self, kept: KeptRows) -> None:
        """Minimise F over the weights of the working set, from the rows in its columns."""
        W = self.working
        if self.scales is not None:
            np.divide(kept.entries.values, self.scales[W][kept.entries.places], out=kept.entries.values)
        stored = Stored(kept.entries, len(W))
        run = ProxNewton(stored, len(W), self.loss, self.penalty, kept.y, kept.s, self.fit_intercept)
        first = self.w[W] if self.gap.relative < TRUSTED else np.zeros(len(W))
        found = run.solve(first, float(self.b[0]), self._limits())
        self.trial = np.zeros_like(self.w)
        self.trial[W], self.trial_b, self.slope = found.w, np.array([found.b]), 0.0

    def _limits(self) -> Limits:
        """When the minimiser of F over the working set is near enough."""
        return Limits(max(self.accuracy * self.tol, 1e-3 * (self.gap.relative - 0.5), NEAREST), WITHIN)

    def _minimise_model(self, g: np.ndarray, sums: Sums, n: int) -> None:
        """Minimise the model of F from the curvatures on the working set."""
        W, m, free = self.working, len(self.working), self.fit_intercept * len(sums.left)
        H = np.require(sums.hessian, requirements="W")  # some engines give memory that is not to be written
        if self.scales is not None:
            by = np.append(self.scales[W], np.ones(len(sums.left)))
            H /= by[:, None]
            H /= by
        H /= n
        mirrored(H)
        self.curvature = float(H[m:, m:].diagonal().max()) or 1.0
        H = np.ascontiguousarray(H[: m + free, : m + free])
        slopes = np.append(g[W], sums.left[:free] / n)
        w, d = np.append(self.w[W], np.zeros(free)), np.zeros(m + free)
        model, target = ByGram(H, np.zeros(m + free)), self._target(g)
        problem = Subproblem(model, slopes, w, d, np.diag(H).copy(), near(self.strengths, self.w), m)
        with one_blas_thread:
            descend(problem, Effort(EPOCHS, 0.0, target, STEPS, REDUCTION))
        held = penalised(self.strengths, self.w)
        self.trial[W] = np.clip(self.w[W] + d[:m], *self.strengths[2:])
        self.trial, self.trial_b = self._placed(self.trial), self.b + d[m:] if free else self.b
        self.slope = float(slopes @ d) + penalised(self.strengths, self.trial) - held

    def _placed(self, w: np.ndarray) -> np.ndarray:
        """Weights of the same scores at which r is least."""
        return w

    def _target(self, g: np.ndarray) -> float:
        """By how much a coordinate's slope may be off when the model is done."""
        l1, l2, lower, upper = self.strengths
        if l1 == 0.0:
            held = np.clip(self.w - g - l2 * self.w, lower, upper) - self.w
            return max(1e-15, 1e-3 * min(0.1, self.gap.relative) * float(np.abs(held).max(initial=0.0)))
        off = 1.0 / max(self.penalty.reach(-g), 1e-3) - 1.0 if l2 == 0.0 else self.gap.relative
        return l1 * max(0.02 * self.tol, min(0.01 * off, off * off, 0.005))

    def _next(self, g: np.ndarray, near: float) -> np.ndarray:
        """The columns of the next model: those that are not 0 here or there, and those with a gradient above so much of l1."""
        l1, l2, lower, upper = self.strengths
        near *= l1
        moves = (-g > near) & (upper > 0.0) | (g > near) & (lower < 0.0)
        stays = (self.w != 0.0) | (self.trial != 0.0)
        off = np.where(stays, np.abs(g + l2 * self.w + l1 * np.sign(self.trial)), np.abs(g) - l1)
        most = max(self.room, GROWTH * int(np.count_nonzero(stays))) if self.wide else self.room
        held = self.wide or np.count_nonzero(stays | (off > 0.0)) <= most
        return self._largest(np.flatnonzero(moves | stays), np.where(stays, inf, off) if held else off, most)

    def _largest(self, columns: np.ndarray, by: np.ndarray, most: int) -> np.ndarray:
        """At most so many of some columns, ascending: those with the largest ``by``."""
        if self.scales is not None:
            columns = columns[self.scales[columns] > 0.0]
        if len(columns) <= most:
            return columns
        return np.sort(columns[np.argsort(-by[columns], kind="stable")[:most]])

    # --- files -------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """All that it knows, as arrays."""
        numbers = np.array([float(getattr(self, name)) for name in NUMBERS])
        intercepts = np.concatenate([self.b, self.trial_b])
        weights = {"w": self.w, "trial": self.trial, "intercepts": intercepts}
        return {"numbers": numbers, **weights, "working": self.working.astype(np.float64)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take what ``state`` gave. Raises ModelFileError for what no run gives."""
        d = len(self.w)
        numbers = trust.array(state, "numbers", np.float64, len(NUMBERS))
        w, trial = (trust.array(state, name, np.float64, d) for name in ("w", "trial"))
        intercepts = trust.array(state, "intercepts", np.float64, 2 * len(self.b))
        working = trust.array(state, "working", np.float64, None)
        named = {"numbers": numbers, "w": w, "trial": trial, "intercepts": intercepts, "working": working}
        for name, values in named.items():
            trust.finite(name, values)
        trust.must(len(working) <= d and trust.ascending(working, d) and np.all(working % 1.0 == 0.0), "a working set")
        for name, value in zip(NUMBERS, numbers.tolist(), strict=True):
            setattr(self, name, value)
        trust.must(1.0 <= self.rounds < 2.0**53, "a number of rounds")
        self.rounds = int(self.rounds)
        self.b, self.trial_b = intercepts.reshape(2, -1).copy()
        self.w, self.trial, self.working = w.copy(), trial.copy(), working.astype(np.int64)
