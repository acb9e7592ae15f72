"""Learner: loss + penalty + solver + average + state. It knows no algorithm.

It minimises  F(w, b) = mean_i s_i l(<w, x_i> + b, y_i) + r(w)  one row at a time, rows in the order given. Any split of the
rows into calls gives the same state, bit for bit; reading never changes it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from onlinear import checks, models, rows, specs
from onlinear.build import SCALES, build_average, build_loss, build_penalty, build_solver, solver_name
from onlinear.checks import DivergenceError
from onlinear.jit import bind_loss, kernel
from onlinear.names import unknown
from onlinear.one_row import OneRow, add_loss
from onlinear.rows import Source
from onlinear.scaling import Scaler
from onlinear.solvers.engine import LONGEST_BLOCK, SCALARS, VISIT, Engine, Problem, State, T
from onlinear.solvers.many import Output, Team, in_threads, threads_of


@kernel
def add_losses(loss, scores, y, s, total):  # type: ignore[no-untyped-def]
    """total[0] + total[1] += sum of s_i l(score_i, y_i) in row order, compensated (Neumaier)."""
    for i in range(y.shape[0]):
        add_loss(loss, scores[i], y[i], s[i], total)


COLUMNS_NEEDED = "n_features (--n-features) must be given."


class ColumnsNeeded(ValueError):  # noqa: N818 (nothing is wrong, only unknown)
    """The number of columns must be known before the first row."""


class Learner:
    """Learns a linear model from rows in the order given.

    Parameters: ``solver``, ``loss``, ``penalty``, ``average`` as text (``name,key=value,...``) or part objects; ``scale`` one
    of none, rms, max-abs, standard; ``n_features`` fixed, or None to grow with the rows; ``n_outputs`` K > 1 learns K targets
    in one pass; ``start`` the first weights, (d,) or (d, K); ``n_jobs`` the threads that share many outputs (None is 1, -1 all
    cores), which change nothing but the time.

    Raises ValueError or TypeError for unknown names, settings out of range and combinations that have no correct form.
    """

    def __init__(
        self,
        solver: Any,
        loss: Any,
        penalty: Any = "none",
        average: Any = None,
        scale: str = "none",
        fit_intercept: bool = False,
        n_features: int | None = None,
        n_outputs: int = 1,
        start: Any = None,
        *,
        total: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._threads = threads_of(n_jobs)
        if scale not in SCALES:
            raise unknown("scale", str(scale), SCALES)
        self.spec = {"solver": solver, "loss": loss, "penalty": penalty, "average": average}
        self.loss = build_loss(loss)
        self.penalty = build_penalty(penalty)
        self.solver, preset = build_solver(solver, self.penalty, total)
        self.average = build_average(preset.average if average is None else average, total)
        self.fit_intercept = checks.flag("fit_intercept", fit_intercept)
        self.n_outputs = _count("n_outputs", n_outputs)
        self.growing = n_features is None
        self.total = total
        weights = _start(start, n_features, self.n_outputs)
        size = len(weights)
        self.factor = float(getattr(self.loss, "factor", 1.0))
        self._loss, self._fields = bind_loss(self.loss)
        self.engine: Engine = self.solver.engine(
            Problem(self.loss, self.penalty, self.average, self.fit_intercept, solver_name(solver))
        )
        self.scaler = Scaler(scale, size) if scale != "none" else None
        if self.scaler is not None and start is not None:
            raise ValueError("start= needs scale='none': the scales of a stream are not known before its first row.")
        lower, upper = getattr(self.penalty, "lower", -np.inf), getattr(self.penalty, "upper", np.inf)
        if start is not None and (np.any(weights < lower) or np.any(weights > upper)):
            raise ValueError(f"start must lie within the penalty's bounds [{lower:g}, {upper:g}].")
        self.states = self._first_states(weights, start is not None)
        self._losses = np.zeros((self.n_outputs, 2))
        self._diverged: str | None = None
        self._one: OneRow | None = None  # made by the first learn_one
        self._team: Team | None = None  # made by the first learn of several outputs
        if self.growing and not self.engine.grows:
            raise ColumnsNeeded(f"{solver_name(solver)} needs the number of columns in advance: {COLUMNS_NEEDED}")
        if self.growing and getattr(self.penalty, "separable", True) is False:
            raise ColumnsNeeded(f"the penalty {type(self.penalty).__name__} couples neighbouring columns: {COLUMNS_NEEDED}")

    def _first_states(self, weights: np.ndarray, given: bool) -> list[State]:
        """The outputs' states before the first row. Where no weights were given, lazy ones grow from nothing: memory of
        features that no row names is never touched."""
        if given or not (self.engine.lazy and self.engine.grows):
            return [self.engine.start(weights[:, k].copy(), 0.0) for k in range(self.n_outputs)]
        states = [self.engine.start(np.zeros(0), 0.0) for _ in range(self.n_outputs)]
        for state in states:
            state.grow(len(weights))
        return states

    # --- learning ----------------------------------------------------------------------------------------------------

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Learner:
        """Learn the rows of X once, in order.

        X: (n, d) CSR, CSC or dense; y: (n,) or (n, K); sample_weight: (n,), multiplies the loss of its row. Wrong input
        raises before the first update and leaves the model as it was. Raises DivergenceError.
        """
        self._learn(*self._checked(X, y, sample_weight))
        return self

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Source, np.ndarray, np.ndarray]:
        self._refuse_if_diverged()
        source = rows.learnable(self._read(X, "X"), "X")
        y = checks.targets(y, source.n, self.n_outputs)
        checks.labels(y, getattr(self.loss, "labels", "real"))
        weights = checks.weights(sample_weight, source.n)
        self.engine.check_rows(weights)
        return source, y, weights

    def _learn(self, source: Source, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Learn checked rows; give the scores before each step, (K, n)."""
        if source.size > self.size:
            self._grow(source.size)
        found = [
            self._learn_block(rows, source.largest, y[which], weights[which], which.start) for which, rows in source.blocks()
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.empty((self.n_outputs, 0)), *found], axis=1)

    def _learn_block(self, block: rows.Rows, largest: float, y: np.ndarray, weights: np.ndarray, first: int) -> np.ndarray:
        self._moved()
        before = self.t
        block, largest, s = self._weighed(block, largest, weights)
        scores = np.empty((self.n_outputs, len(s)))
        if self.n_outputs == 1:
            done = self.engine.learn_outputs(self.states, block, largest, y, s, scores)
        else:
            done, _ = self._together().learn(block, largest, y, s, scores)
        self._add_losses(scores, y, s, done)
        if done < len(s):
            self._diverge(f"at row {first + done} of this call ", before + done + 1)
        return scores

    def _weighed(self, block: rows.Rows, largest: float, weights: np.ndarray) -> tuple[rows.Rows, float, np.ndarray]:
        """The rows as kernels take them: scaled, with their largest value and what multiplies their losses."""
        if self.scaler is not None and self.scaler.kind != "standard":
            block = self.scaler.learn(block, weights)
            largest = np.abs(block.values).max(initial=0.0)
        return block, largest, self.factor * weights if self.factor != 1.0 else weights

    def _add_losses(self, scores: np.ndarray, y: np.ndarray, s: np.ndarray, done: int) -> None:
        def add(k: int) -> None:
            add_losses(self._loss, scores[k, :done], y[:done, k], s[:done], self._losses[k])

        in_threads(add, range(self.n_outputs), self._threads, scores.size)

    def _together(self) -> Team:
        """The outputs, learnt in one pass; made by the first call."""
        if self._team is None:
            self._team = Team(self.outputs(), self._threads)
        return self._team

    def outputs(self) -> list[Output]:
        """What a pass learns, output by output."""
        return [Output(self.engine, state, k) for k, state in enumerate(self.states)]

    def _moved(self) -> None:
        """The state's arrays may be others than before."""
        if self._one is not None:
            self._one.stale = True

    def _diverge(self, where: str, t: int) -> None:
        """Raise for a state that step t left infinite, and whenever it is used again."""
        self._moved()
        self._diverged = (
            f"the state stopped being finite {where}(step {t}, eta = {self.engine.eta(max(t, 1)):.3g}). Use a smaller step"
            + ("." if getattr(self.solver, "stable", False) else ", or a solver whose steps are implicit: 'fiol' or 'odrs'.")
        )
        raise DivergenceError(self._diverged)

    def _refuse_if_diverged(self) -> None:
        if self._diverged is not None:
            raise DivergenceError(f"this learner has diverged and learns no more: {self._diverged}")

    def learn_one(self, indices: Any, values: Any, y: Any) -> Any:
        """Learn one row given by its non-zeros; give the score before the step (a float, or (K,) for K outputs)."""
        one = self._one
        if one is None or (score := one.learn(indices, values, y)) is None:
            return self._learn_one(indices, values, y)
        return score

    def _learn_one(self, indices: Any, values: Any, y: Any) -> Any:
        """Any row, by the way that blocks of rows take."""
        self._refuse_if_diverged()
        row = _one_row(indices, values)
        if self._centred:
            row.resize((1, max(row.shape[1], self.size)))
            row = row.toarray()
        source = rows.learnable(self._read(row, "the row"), "the row")
        target = checks.targets(np.reshape(y, (1, -1)) if self.n_outputs > 1 else np.reshape(y, (1,)), 1, self.n_outputs)
        checks.labels(target, getattr(self.loss, "labels", "real"))
        scores = self._learn(source, target, np.ones(1))[:, 0]
        if self.n_outputs > 1:
            return scores
        if not self._centred and (self._one is None or self._one.capacity < source.nnz):
            self._one = OneRow(self, max(256, 2 * source.nnz))
        return float(scores[0])

    def solve(self, X: Any, y: Any, iterations: int, sample_weight: Any = None) -> Learner:
        """Run a batch solver (``batch-drs``) for a number of iterations over all rows at once."""
        source, y, weights = self._checked(X, y, sample_weight)
        if source.n == 0:
            raise ValueError("X has 0 rows; a batch solver needs at least one.")
        if source.size > self.size:
            self._grow(source.size)
        for k, state in enumerate(self.states):
            self.engine.solve(state, source, y[:, k], self.factor * weights, _count("iterations", iterations))
        return self

    @property
    def _centred(self) -> bool:
        """Whether rows are centred, which needs dense ones."""
        return self.scaler is not None and self.scaler.kind == "standard"

    def _read(self, X: Any, name: str) -> Source:
        if self._centred:
            X = self._standardised(X, name)
        return self._fit_width(rows.read(X, name))

    def _fit_width(self, source: Source) -> Source:
        if not self.growing and source.width != self.size and source.size > self.size:
            raise ValueError(f"X has {source.width} columns, the model has {self.size} features (n_features={self.size}).")
        return source

    def _standardised(self, X: Any, name: str) -> np.ndarray:
        assert self.scaler is not None
        if self.scaler.moments.shape[1] == 0 or not self.scaler.moments[1].any():
            raise ValueError(
                "scale='standard' needs the mean of all rows before the first: use fit, or scale='rms' for streams."
            )
        dense = rows.dense(X, name)
        if dense.shape[1] != self.scaler.moments.shape[1]:
            raise ValueError(f"X has {dense.shape[1]} columns, the model has {self.scaler.moments.shape[1]} features.")
        return (dense - self.scaler.moments[0]) / self.scaler.moments[1]

    def _grow(self, size: int) -> None:
        if self._team is not None:
            self._team.grow(size)
        else:
            for state in self.states:
                state.grow(size)
        if self.scaler is not None:
            self.scaler.grow(size)
        self._moved()

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def t(self) -> int:
        """Rows learnt."""
        return self.states[0].t

    @property
    def size(self) -> int:
        """Features known."""
        return self.states[0].size

    @property
    def progressive_loss(self) -> float:
        """Mean over the rows learnt of s_i l(score before the step, y_i), summed over outputs; nan before the first row."""
        return float(self._losses.sum()) / self.t if self.t else float("nan")

    def weights(self, average: bool = False) -> np.ndarray:
        """The weights as a fresh array, (d,) or (d, K): after the last row, or the average (last where there is none)."""
        columns = np.arange(self.size, dtype=np.uint32)
        found = [self._original(self._columns(state, columns, average), columns) for state in self.states]
        return found[0] if self.n_outputs == 1 else np.stack(found, axis=1)

    def intercept(self, average: bool = False) -> Any:
        """The intercept, a float or (K,); 0 without one."""
        found = [self._bias(state, average) for state in self.states]
        return found[0] if self.n_outputs == 1 else np.array(found)

    def predict(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b, (n,) or (n, K), of the average where one is set; columns never seen have weight 0."""
        self._refuse_if_diverged()
        source = rows.read(X)
        if not self.growing and source.size > self.size:
            raise ValueError(f"X has {source.width} columns, the model has {self.size} features.")
        out = np.empty((source.n, self.n_outputs))
        everything = None
        for k, state in enumerate(self.states):
            bias = self._bias(state, True)
            if source.nnz > self.size > 0:
                everything = np.arange(self.size, dtype=np.uint32)
                table = self._original(self._columns(state, everything, True), everything)
            for which, block in source.blocks():
                known = block.indices < self.size
                columns = np.where(known, block.indices, 0).astype(np.uint32)
                if everything is not None:
                    picked = table[columns]
                elif self.size:
                    picked = self._original(self._columns(state, columns, True), columns)
                else:
                    picked = np.zeros(len(columns))
                picked[~known] = 0.0
                scores = np.full(len(block.indptr) - 1, bias)
                rows.dot_rows(block, picked, scores)
                out[which, k] = scores
        return out[:, 0] if self.n_outputs == 1 else out

    def objective(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F at the predictor: mean_i s_i l_i + r(w), over outputs summed; the penalty acts on scaled weights."""
        source = self._fit_width(rows.read(X))
        y = checks.targets(y, source.n, self.n_outputs)
        checks.labels(y, getattr(self.loss, "labels", "real"))
        weights = checks.weights(sample_weight, source.n) * self.factor
        if source.n == 0:
            raise ValueError("X has 0 rows; the objective is a mean over rows.")
        scores = self.predict(X).reshape(source.n, self.n_outputs)
        total = 0.0
        columns = np.arange(self.size, dtype=np.uint32)
        for k, state in enumerate(self.states):
            sums = np.zeros(2)
            add_losses(self._loss, np.ascontiguousarray(scores[:, k]), y[:, k], weights, sums)
            total += float(sums.sum()) / source.n + _penalty_value(self.penalty, self._columns(state, columns, True))
        return total

    def variables(self) -> dict[str, Any]:
        """Settled copies of the solver's quantities by the paper's letters (scaled units); a trailing axis K for K outputs."""
        self._refuse_if_diverged()
        found = [{name: value + 0.0 for name, value in self.engine.variables(state).items()} for state in self.states]
        if self.average is not None:
            columns = np.arange(self.size, dtype=np.uint32)
            for variables, state in zip(found, self.states, strict=True):
                name = self.engine.mean_letter(self.average)
                variables.setdefault(name, self.engine.mean(state, columns))
        if self.n_outputs == 1:
            return found[0]
        own = [name for name in found[0] if name not in self.engine.shared]
        return found[0] | {name: np.stack([variables[name] for variables in found], axis=-1) for name in own}

    def _columns(self, state: State, columns: np.ndarray, average: bool) -> np.ndarray:
        use = self.engine.mean if average and (self.average is not None or self.engine.own_average) else self.engine.weights
        return self._finite(use(state, columns))

    def _bias(self, state: State, average: bool) -> float:
        averaged = average and (self.average is not None or self.engine.own_average)
        bias = self.engine.mean_bias(state) if averaged else self.engine.bias(state)
        if self.scaler is not None and self.scaler.kind == "standard":
            bias += self.scaler.centre(self._columns(state, np.arange(self.size, dtype=np.uint32), average))
        return bias

    def _original(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return weights if self.scaler is None else self.scaler.original(weights, columns)

    def _finite(self, weights: np.ndarray) -> np.ndarray:
        self._refuse_if_diverged()
        if not np.all(np.isfinite(weights)):
            self._diverge("", self.t)
        return weights

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file from which ``load`` goes on exactly as this learner would."""
        header, arrays = self.freeze()
        models.write(path, {"kind": "learner", **header}, arrays)

    def freeze(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Settings and state as a JSON-able header and arrays."""
        self.weights()
        header = {
            "spec": {role: specs.written(spec) for role, spec in self.spec.items()},
            "scale": self.scaler.kind if self.scaler is not None else "none",
            "fit_intercept": self.fit_intercept,
            "n_outputs": self.n_outputs,
            "size": self.size,
            "growing": self.growing,
            "total": self.total,
        }
        arrays: dict[str, np.ndarray] = {"losses": self._losses}
        if self.scaler is not None:
            arrays["scales"] = self.scaler.moments
        for k, state in enumerate(self.states):
            arrays |= {f"{k}.now": state.now}
            arrays |= {f"{k}.array.{name}": array for name, array in state.vectors().items()}
            arrays |= {f"{k}.kept.{name}": array for name, array in state.kept.items()}
        return header, arrays

    def __reduce__(self) -> tuple[Any, ...]:
        header, arrays = self.freeze()
        return _thawed, (header, arrays, {role: spec for role, spec in self.spec.items() if not isinstance(spec, str)})

    @classmethod
    def thaw(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], **parts: Any) -> Learner:
        """The learner that ``freeze`` described; parts from outside the package are passed by role."""
        _plausible(header, arrays)
        spec = {role: specs.known(role, text, parts) for role, text in header["spec"].items()}
        learner = cls(
            **spec,
            scale=header["scale"],
            fit_intercept=header["fit_intercept"],
            n_features=None if header["growing"] else header["size"],
            n_outputs=header["n_outputs"],
            total=header["total"],
        )
        learner._grow(header["size"])
        _fill(learner._losses, arrays, "losses")
        if learner.scaler is not None:
            _fill(learner.scaler.moments, arrays, "scales")
        for k, state in enumerate(learner.states):
            _fill(state.now, arrays, f"{k}.now")
            _check_steps(state)
            for name, vector in state.vectors().items():
                _fill(vector, arrays, f"{k}.array.{name}")
            _check_stamps(state)
            prefix = f"{k}.kept."
            found = {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
            state.kept = _kept(found, state)
        if any(state.t != learner.t for state in learner.states):
            raise models.ModelFileError("the model file's outputs have learnt different numbers of rows.")
        for state in learner.states:
            learner.engine.rebuild(state)
        return learner


def _thawed(header: dict[str, Any], arrays: dict[str, np.ndarray], parts: dict[str, Any]) -> Learner:
    return Learner.thaw(header, arrays, **parts)


_HEADER: dict[str, Any] = {
    "spec": dict,
    "scale": str,
    "fit_intercept": bool,
    "n_outputs": int,
    "size": int,
    "growing": bool,
    "total": (int, float, type(None)),
}


def _plausible(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Refuse a header of other types, or one that asks for more memory than the file's own size."""
    for name, kind in _HEADER.items():
        if name not in header or not isinstance(header[name], kind):
            raise models.ModelFileError(f"the model file's header has no {name}, or one of another type.")
    if set(header["spec"]) != {"solver", "loss", "penalty", "average"}:
        raise models.ModelFileError("the model file's header does not name a solver, loss, penalty and average.")
    held = sum(array.size for array in arrays.values())
    outputs = header["n_outputs"]
    if header["size"] < 0 or not 1 <= outputs * SCALARS <= held or header["size"] * outputs > held:
        shape = f"{header['size']} features and {header['n_outputs']} outputs"
        raise models.ModelFileError(f"the model file's header says {shape}, its arrays hold {held} numbers.")


def _check_steps(state: State) -> None:
    """Refuse step numbers that cannot be: kernels find places in the table by them."""
    t, visit = state.now[T], state.now[VISIT]
    whole = 0.0 <= visit <= t <= 2.0**53 and t == np.floor(t) and visit == np.floor(visit)
    if not whole or (state.table is not None and t - visit > LONGEST_BLOCK):
        raise models.ModelFileError(f"the model file's step numbers cannot be: {t:g} rows learnt, last visit at {visit:g}.")


def _check_stamps(state: State) -> None:
    """Refuse steps that kernels would not find in the table."""
    for name in state.stamps:
        steps = state.arrays[name]
        if not np.all((steps >= state.now[VISIT]) & (steps <= state.now[T]) & (steps == np.floor(steps))):
            raise models.ModelFileError(f"the model file's steps {name!r} are not between the last visit and the last row.")


def _kept(found: dict[str, np.ndarray], state: State) -> dict[str, np.ndarray]:
    """The arrays of a state that have lengths of their own, checked: kernels find their places without a check."""
    triangle = (state.size + 1) * (state.size + 2) // 2
    columns = found.get("columns", np.zeros(0, np.uint32))
    longest = {"columns": state.size, "u": len(columns), "start": state.size, "mu": state.size, "R": triangle}
    exact = {"u", "R"}
    for name, array in found.items():
        fits = array.ndim == 1 and array.dtype == (np.uint32 if name == "columns" else np.float64)
        if not fits or len(array) > longest.get(name, -1) or (name in exact and len(array) != longest[name]):
            raise models.ModelFileError(f"the model file's array {name!r} is not known, or has another shape or type.")
    if not set(state.kept) <= set(found) or np.any(columns >= state.size):
        raise models.ModelFileError("the model file's last row is missing, or has a column beyond its features.")
    return {name: array.copy() for name, array in found.items()}


def _fill(target: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> None:
    if name not in arrays or arrays[name].shape != target.shape or arrays[name].dtype != np.float64:
        raise models.ModelFileError(f"the model file's array {name!r} is missing or has another shape than {target.shape}.")
    target[...] = arrays[name]


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def _start(start: Any, n_features: int | None, outputs: int) -> np.ndarray:
    if n_features is not None and _count("n_features", n_features) > rows.LARGEST_COLUMN + 1:
        raise ValueError(f"n_features must be at most {rows.LARGEST_COLUMN + 1}, got {n_features}.")
    if start is None:
        return np.zeros((n_features or 0, outputs))
    weights = np.asarray(start, dtype=np.float64)
    weights = weights.reshape(-1, 1) if weights.ndim == 1 and outputs == 1 else weights
    if weights.ndim != 2 or weights.shape[1] != outputs or (n_features is not None and len(weights) != n_features):
        wanted = f"({n_features or 'd'},)" if outputs == 1 else f"({n_features or 'd'}, {outputs})"
        raise ValueError(f"start must have shape {wanted}, got {np.shape(start)}.")
    if not np.all(np.isfinite(weights)):
        raise ValueError("start must be finite.")
    return weights


def _one_row(indices: Any, values: Any) -> Any:
    from scipy.sparse import csr_matrix

    columns, entries = np.asarray(indices), np.asarray(values)
    if columns.ndim != 1 or entries.ndim != 1 or len(columns) != len(entries):
        raise ValueError(f"indices and values must be 1-D and equally long, got shapes {columns.shape} and {entries.shape}.")
    if len(columns) and columns.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, got dtype {columns.dtype}.")
    if len(columns) and columns.min() < 0:
        raise ValueError(f"indices must not be negative, got {columns.min()}.")
    width = int(columns.max()) + 1 if len(columns) else 1
    if width > rows.LARGEST_COLUMN + 1:
        raise ValueError(f"a column index must be at most {rows.LARGEST_COLUMN}, got {width - 1}.")
    return csr_matrix((entries, columns.astype(np.int64), [0, len(columns)]), shape=(1, width))


def _penalty_value(penalty: Any, w: np.ndarray) -> float:
    try:
        return float(np.sum(penalty.value(w)))
    except (TypeError, ValueError):
        return float(sum(penalty.value(v) for v in w))
