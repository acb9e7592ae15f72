r"""Online and stochastic Douglas-Rachford splitting, and SADMM's kernel, which is the same method.

    x_{t+1} = prox_{lam h}(u_t)
    z_{t+1} = prox_{lam l_t}(2 x_{t+1} - u_t)                                       exact:   odrs, sdrs        (MATH 10.2)
    z_{t+1} = 2 x_{t+1} - u_t - lam l'(<z_t, a_t>, b_t) a_t                 inexact: iodrs, isdrs          (MATH 10.3)
    u_{t+1} = u_t + omega_t (z_{t+1} - x_{t+1}),   omega_t = relaxation / t^relaxation_power

h is the penalty, (a_t, b_t) the row; sdrs and isdrs draw it with replacement, the kernels are the same. With lam_t that varies,
kappa = lam_t / lam_{t-1}: x = prox_{lam_{t-1} h}(u), the row's step starts at v = (1 + kappa) x - kappa u, and
u' = x - lam_t theta a (MATH 11.6b). A fixed lam keeps an asymptotic bias (MATH 13.3); schedule=growing-rho, lam_t = lam/sqrt t,
converges. A relaxation that falls keeps sum omega_t (2 - omega_t) = infinity, which the paper asks for: it removes the noise
but not the bias, for u tends to a fixed point of the mean of the rows' maps. Predictor: x = prox(u).

Source: Shi, Liu, Online and stochastic Douglas-Rachford splitting method; MATH 9.4 for the identity with SADMM.
Lazy:   an idle step is u <- prox_{lam h}(u): V is the potential of u, and x is V read at the next clock (MATH 11.6).
        The inexact form needs z_t, which for idle columns is (1 + kappa) u_t - kappa u_{t-1}: V read at this clock and the
        one before; only for the columns of the row before is z kept, which the
        next row forgets, in a loop of its own: with hooks in loop.py it had the same bits and 1 to 2 % fewer instructions,
        but a first fit compiled for 4 % longer. Relaxation: drs_relaxed.py.
Cost:   O(nnz(a_t)) per row.   Needs: a penalty with a clock and without bounds (u leaves a box, MATH 3); else the dense step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from onlinear.averages import close_fallen, fallen, record, room_to_close, turned
from onlinear.compiled import (
    LANES,
    adopt,
    every,
    fetch,
    four,
    function,
    gather,
    kernel,
    load,
    nothing,
    put_back,
    store,
    total,
    where,
)
from onlinear.files import trust
from onlinear.files.trust import Span
from onlinear.losses import weighted
from onlinear.penalties import ElasticNet
from onlinear.rows import AHEAD, entries_to_fetch
from onlinear.schedules import Power
from onlinear.solvers.core.batch_dual import DualStart
from onlinear.solvers.core.careful import is_careful, is_careful_after
from onlinear.solvers.core.dense import Dense, all_finite, choose, dot, prox_but_first
from onlinear.solvers.core.engine import Engine, Examples, Preset, Problem, needs_theta
from onlinear.solvers.core.last_row import LastRow, keep_columns, last_row, learn_keeping_last_row
from onlinear.solvers.core.pack import Abreast
from onlinear.solvers.core.potentials import PotentialEngine, check_clock, why_not_lazy
from onlinear.solvers.core.state import (
    BIAS,
    BIAS_SUM,
    CLOCK,
    ONE,
    OWN,
    THETA,
    VISIT,
    State,
    T,
    everything,
    kept_vector,
)
from onlinear.solvers.core.visits import time_to_visit, visit
from onlinear.solvers.drs_relaxed import Relaxed, why_not_relaxed

FORGET = OWN + 7  # whether every kept z is to be forgotten after the next step


class Drs(NamedTuple):
    """Settings: lam (at step t: lam / t^schedule), relaxation in (0, 2) (at step t: relaxation / t^relaxation_power), inexact.

    ``inexact``: whether the loss's step is a gradient step.
    """

    lam: float = 1.0
    relaxation: float = 1.0
    inexact: bool = False
    schedule: float = 0.0
    relaxation_power: float = 0.0

    added = ("relaxation_power",)
    letters = ("u", "z", "x")
    mean_name = "xbar"
    choices = {"schedule": {"constant": 0.0, "growing-rho": 0.5}}  # noqa: RUF012

    @property
    def no_batch(self) -> str | None:
        """Why it takes no batches, if it does not."""
        return "it takes the slope of a row at z, not at its predictor" if self.inexact else None

    @property
    def stable(self) -> bool:
        """Whether a step is implicit in the loss and in the penalty."""
        return not self.inexact

    def lam_at(self, t: int) -> float:
        """lam_t; that of step 0 is that of step 1, since u_0 starts there."""
        return Power(self.lam, 0.0, self.schedule).at(max(t, 1))

    def relaxation_at(self, t: int) -> float:
        """omega_t."""
        return self.relaxation / max(t, 1) ** self.relaxation_power

    def decay_step(self, t: int) -> float:
        """The step of the prox in step t."""
        return self.lam_at(t - 1)

    def step(self, U, x, y, s, t, loss, penalty):
        u, z, lam, omega = U[0], U[1], self.lam_at(t), self.relaxation_at(t)
        kappa = lam / self.lam_at(t - 1)
        X = prox_but_first(penalty, u, self.lam_at(t - 1))
        v = reflected(X, u, kappa)
        norm = dot(x, x)
        theta = weighted(s, loss.slope(dot(z, x), y) if self.inexact else loss.theta(dot(v, x), s * lam * norm, y))
        new = v - lam * theta * x
        U[0] = u + omega * (new - X) if omega != 1.0 else X - lam * theta * x
        U[1] = new
        U[2] = X

    def begin(self, U, penalty):
        U[0, 1:] += self.lam_at(1) * first_dual(penalty, U[0, 1:])

    def predictor(self, U, t, penalty):
        return prox_but_first(penalty, U[0], self.lam_at(t - 1))

    def named(self, u: np.ndarray, z: np.ndarray, x: np.ndarray, t: int, penalty: Any) -> dict[str, Any]:
        """The variables after t steps, from u_t, z_t and x_t."""
        return {"u": u, "z": z, "x": x}

    def mean_form(self):
        """Itself: a row moves it by its theta times its columns alone."""
        return self

    def loss_start(self, engine: Engine, state: State) -> DualStart:
        """(1 + kappa) x - kappa u."""
        return split_start(self, engine, state)

    def dense_u(self, U: np.ndarray, t: int) -> np.ndarray:
        """u after t steps, from the dense step's vectors."""
        return U[0]

    def engine(self, problem: Problem) -> Engine:
        if not self.inexact:
            needs_theta(problem)
        if self.relaxation != 1.0 or self.relaxation_power != 0.0:
            if self.schedule != 0.0:
                raise ValueError("relaxation is defined for a constant lam only (MATH 10, 11.6b); use schedule=constant.")
            return choose(self, problem, Relaxed, why_not_relaxed(self, problem))
        return choose(self, problem, Inexact if self.inexact else Exact, why_not_split(problem))


def why_not_split(problem: Problem) -> str | None:
    """What keeps a splitting method from being lazy, or None."""
    if problem.penalty.weight_bounds is not None:
        return "u leaves the box: an idle step clips first and shrinks later"
    return why_not_lazy(problem)


@function
def reflected(x, u, kappa):
    """Where the loss's step of a splitting method starts."""
    return (1.0 + kappa) * x - kappa * u


@kernel
def start_reflected(penalty, solver, V, columns, now, weights, v):
    """Where the implicit step of a batch starts, from the weights and the potentials of u; its size."""
    t = int(now[T])
    clock, lam = load(penalty.start(), now, CLOCK), solver.lam_at(t + 1)
    kappa = lam / solver.lam_at(t)
    for p in range(columns.shape[0]):
        v[p] = reflected(weights[p], penalty.weight(V[columns[p]], clock), kappa)
    return lam


def split_start(solver: Any, engine: Any, state: State) -> DualStart:
    """Where the loss's step of a splitting method starts: v = (1 + kappa) x - kappa u."""
    if isinstance(engine, Exact):
        return DualStart(ElasticNet(), (start_reflected, (engine.penalty, solver, engine.potentials(state))))

    def at(columns: np.ndarray) -> tuple[np.ndarray, float]:
        t = state.t
        lam = solver.lam_at(t + 1)
        is_dense = isinstance(engine, Dense)
        u = solver.dense_u(state.arrays["U"][:, 1:][:, columns], t) if is_dense else engine.read_u(state, columns)
        return reflected(engine.weights(state, columns), u, lam / solver.lam_at(t)), lam

    return DualStart(ElasticNet(), None, at)


def first_dual(penalty: Any, w: np.ndarray) -> np.ndarray:
    """mu_0 in dr(w), so that a start at ``w`` is a point of the method: prox(u_0) = w with u_0 = w + lam mu_0."""
    if not np.any(w):
        return np.zeros_like(w)
    if not (hasattr(penalty, "l1") and hasattr(penalty, "l2")) or (hasattr(penalty, "tv") and penalty.tv > 0.0):
        raise ValueError(f"start= must be 0 for the penalty {type(penalty).__name__}: no element of dr(start) is known.")
    return penalty.l2 * w + penalty.l1 * np.sign(w)


class SplitStep(NamedTuple):
    """A Step, and the ratio of its lam to the one before."""

    eta: Any
    bias: Any
    b: Any
    clock: Any
    after: Any
    seen: Any
    kappa: Any


def begin_step(self, t, clock, b, penalty):
    lam, after = self.lam_at(t), penalty.tick(clock, self.decay_step(t))
    return SplitStep(lam, lam, b, clock, after, after, lam / self.lam_at(t - 1))


def terms(self, v, x, c, penalty):
    return penalty.raw_weight(v, c.after) * x, penalty.raw_weight(v, c.clock) * x, x * x


def scores(self, sums, one, s, c, penalty):
    p, pu = sums[0] / penalty.unit(c.after) + c.b * one, sums[1] / penalty.unit(c.clock) + c.b * one
    norm = sums[2] + one
    return p, pu, norm, c.eta * norm


def pull(self, row, y, s, c, loss):
    p, pu, norm, _ = row
    return weighted(s, loss.theta(reflected(p, pu, c.kappa), s * c.eta * norm, y))


def moved(self, v, x, theta, c, penalty):
    step = c.eta * theta * penalty.unit(c.after)
    return penalty.raw_potential(penalty.raw_weight(v, c.after) - step * x, c.after)


# Of SADMM too.
SPLIT: dict[str, Callable[..., Any]] = {
    "begin_step": begin_step,
    "terms": terms,
    "scores": scores,
    "pull": pull,
    "moved": moved,
}


@kernel
def learn_inexact(rows, largest, y, s, loss, penalty, solver, average, V, B, A, Z, VZ, tail, listed, table, now, scores):
    indptr, indices, values = rows
    clock = load(penalty.start(), now, CLOCK)
    before = load(penalty.start(), now, OWN)
    t, b, one = int(now[T]), now[BIAS], now[ONE]
    known = entries_to_fetch(V, indices)
    careful = is_careful(now, largest)
    moved = True
    done = y.shape[0]
    for i in range(y.shape[0]):
        if time_to_visit(t, now[VISIT], clock[0], B):
            keep_all(penalty, solver, clock, before, V, Z, t)
            clock = visit(penalty, clock, V, B, A, table, t, now)
            before = clock
            now[FORGET] = 1.0
        t += 1
        lam, last = solver.lam_at(t), solver.lam_at(t - 1)
        kappa, kappa_before = lam / last, last / solver.lam_at(t - 2)
        after = penalty.tick(clock, solver.decay_step(t))

        begin, end, unit = indptr[i], indptr[i + 1], penalty.unit(after)
        factors = z_factors(penalty, kappa_before, clock, before)
        product, product_z, falls = nothing(), nothing(), nothing()
        asks = end < known
        for k in range(begin, end, LANES):
            if asks:
                fetch(V, indices, k + AHEAD)
                if B is not None:
                    fetch(B, indices, k + AHEAD)
            at, x = four(indices, values, k, end)
            v, kept = gather(VZ, at)
            product += penalty.raw_weight(v, after) * x
            product_z += z_of(penalty, factors, clock, before, v, kept) * x
            if B is not None:
                falls += fallen(v, after[1])
        p, pz = total(product) / unit + b * one, total(product_z) + b * one
        scores[i] = p
        g = weighted(s[i], loss.slope(pz, y[i]))
        if not isfinite(p + lam * g):
            t -= 1
            done = i
            break

        forget(Z, moved, tail, indices, indptr, i, now)
        moved = g != 0.0
        if B is not None:
            c = t - int(now[VISIT])
            mark = record(table, c, average.om(t), after[1], after[2])
            now[BIAS_SUM] += average.om(t) * b
        if moved:
            if B is not None and total(falls) > 0.0:
                close_fallen(table, c, mark, V, B, indices, begin, end, listed)
            step, (of_x, of_u) = lam * g, z_factors(penalty, kappa, after, clock)
            for k in range(begin, end, LANES):
                at, x = four(indices, values, k, end)
                v, _ = gather(VZ, at)
                move, u, X = step * x, penalty.raw_weight(v, clock), penalty.raw_weight(v, after)
                new = penalty.raw_potential(X - move * unit, after)
                if B is not None:
                    gained, new = turned(mark, v, new)
                    put_back(B, at, gather(B, at) + gained)
                put_back(VZ, at, (new, of_x * X - of_u * u - move))
            b -= step * one
            careful = is_careful_after(now, careful, p, step)
            if careful and not all_finite(V, indices, begin, end):
                done = i
                break
        now[THETA] = g
        before, clock = clock, after
    now[T], now[BIAS] = t, b
    store(clock, now, CLOCK)
    store(before, now, OWN)
    return done


@function
def z_factors(penalty, kappa, clock, before):
    """What raw weights at these clocks are multiplied by in (1 + kappa) u_t - kappa u_{t-1}."""
    return (1.0 + kappa) / penalty.unit(clock), kappa / penalty.unit(before)


@function
def z_of(penalty, factors, clock, before, v, kept):
    """z after the step that ended at ``clock``: as kept for that step's columns, else (1 + kappa) u_t - kappa u_{t-1}."""
    of_u, of_last = factors
    return where(kept == kept, kept, of_u * penalty.raw_weight(v, clock) - of_last * penalty.raw_weight(v, before))


@function
def keep_all(penalty, solver, clock, before, V, Z, t):
    """Before a visit after t steps: keep every z, since potentials of the clock before are gone after it."""
    factors = z_factors(penalty, solver.lam_at(t) / solver.lam_at(t - 1), clock, before)
    for j in range(V.shape[0]):
        Z[j] = z_of(penalty, factors, clock, before, V[j], Z[j])


@function
def forget(Z, moved, tail, indices, indptr, i, now):
    """Forget the z kept for the row before row i, if that moved (``tail`` before the first: how many columns, and they), or all
    after a visit."""
    if now[FORGET] > 0.0:
        Z[:] = nan
        now[FORGET] = 0.0
    elif not moved:
        return
    elif i == 0:
        for k in range(int(tail[0])):
            Z[tail[k + 1]] = nan
    else:
        for k in range(indptr[i - 1], indptr[i]):
            Z[indices[k]] = nan


@function
def keep_row(rows, tail, last, u, penalty, V, now):
    """Keep a row's columns and their u before it."""
    keep_columns(rows, tail, last)
    clock = load(penalty.start(), now, CLOCK)
    for e in range(int(last[0])):
        u[e] = penalty.weight(V[last[e + 1]], clock) + 0.0


@kernel
def read_z(penalty, kappa, clock, before, V, Z, out):
    factors = z_factors(penalty, kappa, clock, before)
    for j in range(out.shape[0]):
        out[j] = z_of(penalty, factors, clock, before, V[j], Z[j])


class SplittingEngine(PotentialEngine):
    """SADMM and Douglas-Rachford; the last row's columns and their u before it are kept, so that x, w, z can be read."""

    keeps_clock = reads_next = True
    joins = False  # what is kept of the last row is each output's own
    reads_anywhere = False

    @property
    def packs(self) -> bool:
        return super().packs and self.average is None

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        state.now[OWN : OWN + 7] = state.now[CLOCK : CLOCK + 7]
        state.kept = {"columns": np.empty(0, np.uint32), "u": np.empty(0)}
        if np.any(w):
            state.kept["start"] = w.copy()
        return state

    def first_value(self, w: np.ndarray) -> np.ndarray:
        return w + self.solver.lam_at(1) * first_dual(self.penalty, w)

    def may_keep(self, state: State) -> dict[str, Span]:
        return {**last_row(state), "start": Span(np.float64, 0, state.size)}

    def check(self, state: State) -> None:
        super().check(state)
        check_clock(self.penalty, state, OWN)

    def learn(self, state: State, examples: Examples) -> int:
        learn = super().learn
        return learn_keeping_last_row([state], examples.rows, lambda part: learn(state, examples.cut(part)), self.read_u)

    def learn_pack(self, states: list[State], side: Abreast) -> tuple[int, int]:
        learn, culprit = super().learn_pack, -1

        def learn_part(part: slice) -> int:
            nonlocal culprit
            scores = np.empty((len(states), part.stop - part.start))
            y = np.ascontiguousarray(side.y[:, part])
            done, culprit = learn(states, side._replace(rows=side.rows.cut(part), y=y, s=side.s[part], scores=scores))
            side.scores[:, part] = scores
            return done

        return learn_keeping_last_row(states, side.rows, learn_part, self.read_u), culprit

    def read_u(self, state: State, columns: np.ndarray) -> np.ndarray:
        """u after the last row, at ``columns``."""
        return self.read_at(state, self.clock(state), columns)

    def keep(self, state: State, room: LastRow) -> Any:
        return keep_row, (*room.arrays, self.penalty, self.potentials(state), state.now)

    @abstractmethod
    def last_z(self, state: State, u: np.ndarray, x: np.ndarray, previous: np.ndarray, kappa: float) -> np.ndarray:
        """z of the last step."""

    def eta(self, t: int) -> float:
        return float(self.solver.lam_at(t))

    def variables(self, state: State) -> dict[str, Any]:
        t, lam_at = state.t, self.solver.lam_at
        u, previous = self.read_u(state, everything(state)), self.u_before(state)
        x = self.penalty.prox_all(previous, lam_at(t - 1))
        z = self.last_z(state, u, x, previous, lam_at(t) / lam_at(t - 1)) if t else self.first_z(state)
        found = self.solver.named(u, z, x, t, self.penalty) | {"theta": float(state.now[THETA])}
        return found | (self.averages(state, u) if self.average is not None else {})

    def first_z(self, state: State) -> np.ndarray:
        """z before the first row: the start."""
        return kept_vector(state, "start")

    def u_before(self, state: State) -> np.ndarray:
        """u before the last row."""
        u = self.read_at(state, load(self.penalty.start(), state.now, OWN), everything(state))
        u[state.kept["columns"]] = state.kept["u"]
        return u

    def averages(self, state: State, u: np.ndarray) -> dict[str, np.ndarray]:
        """Averages besides the predictor's; none for Douglas-Rachford."""
        return {}


class Exact(SplittingEngine):
    """oDRs, sDRs and SADMM in O(non-zeros)."""

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        if self.average is not None and self.solver.mean_name == "zbar":
            state.arrays["M"] = np.zeros(len(w))
        return state

    def last_z(self, state: State, u: np.ndarray, x: np.ndarray, previous: np.ndarray, kappa: float) -> np.ndarray:
        return u + kappa * (x - previous)

    def averages(self, state: State, u: np.ndarray) -> dict[str, np.ndarray]:
        """SADMM's other means: mutilde_t = -theta_t x_t, and sum of w = u_T - u_0 + sum of z_0 .. z_{T-1} (MATH 9.5)."""
        assert self.average is not None
        if "M" not in state.arrays:
            return {}
        t, start = max(state.t, 1), self.first_z(state)
        found = {"mutbar": state.arrays["M"] / t}
        uniform = (self.average.base, self.average.growth, self.average.first) == (1.0, 0.0, 1.0)
        if uniform and self.solver.schedule == 0.0:
            z = self.sums(state, everything(state)) + (start if self.average.post and state.t else 0.0)
            found["wbar"] = (u - self.first_value(start) + z) / t if state.t else start
        return found


class Inexact(SplittingEngine):
    """ioDRs, isDRs in O(non-zeros): the potentials of u, each beside z for the last row's columns (NaN elsewhere: it follows
    from u), so that a row finds both in one place."""

    implicit = packs = False

    def start(self, w: np.ndarray, b: float) -> State:
        state = super().start(w, b)
        apart = {name: np.ascontiguousarray(vector) for name, vector in state.vectors().items()}
        state.arrays = {"VZ": np.stack([apart.pop("V"), w], axis=1).ravel(), **apart}
        state.widths, state.halves, state.fresh = {"VZ": 2}, {}, {"VZ": (0.0, nan)}
        state.buffers["tail"] = np.zeros(1, np.uint32)
        state.now[FORGET] = 1.0
        return state

    def potentials(self, state: State) -> np.ndarray:
        return every(state.arrays["VZ"], 0, 2)

    def kept_z(self, state: State) -> np.ndarray:
        """z of the last row's columns, NaN elsewhere."""
        return every(state.arrays["VZ"], 1, 2)

    def call(self, state: State, examples: Examples) -> Any:
        state.prepare(len(examples.s))
        V, Z, B, A = self.potentials(state), self.kept_z(state), state.arrays.get("B"), state.arrays.get("A")
        arrays = V, B, A, Z, (V, Z), state.buffers["tail"], None if B is None else room_to_close(examples.rows.longest)
        problem = self.loss, self.penalty, self.solver, self.average
        return learn_inexact, (*examples.given, *problem, *arrays, state.table, state.now, examples.scores)

    def finite(self, state: State) -> Iterator[tuple[str, np.ndarray]]:
        both = state.arrays["VZ"]
        yield from (pair for pair in super().finite(state) if pair[1] is not both)
        yield "VZ", both[0::2]
        yield "VZ", np.nan_to_num(both[1::2], posinf=inf, neginf=-inf)

    def check(self, state: State) -> None:
        super().check(state)
        trust.must(state.now[FORGET] in (0.0, 1.0), f"a mark of {state.now[FORGET]:g}")

    def last_z(self, state: State, u: np.ndarray, x: np.ndarray, previous: np.ndarray, kappa: float) -> np.ndarray:
        out, before = np.empty(state.size), load(self.penalty.start(), state.now, OWN)
        read_z(self.penalty, kappa, self.clock(state), before, self.potentials(state), self.kept_z(state), out)
        return out


PRESETS = {
    "drs": Preset(Drs, average="uniform"),
    "odrs": Preset(Drs, average="uniform"),
    "sdrs": Preset(Drs, average="uniform", shuffle="replacement"),
    "iodrs": Preset(Drs, {"inexact": True}, average="uniform"),
    "isdrs": Preset(Drs, {"inexact": True}, average="uniform", shuffle="replacement"),
}

adopt(Drs, SPLIT)
