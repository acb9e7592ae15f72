"""Replays of reference trajectories: one test per file of the folder that ONLINEAR_GOLDEN names.

A file says what was run in its ``meta``, and every array in it is compared: states after the steps ``k``, read in mid-stream,
final variables, averages, outputs, each with the intercept's where the file has one. A method, a setting or an array that
nothing here compares or uses fails the test. Sample weights stand beside y, one a row, or in the case, one a step or a row.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from implicit_step import implicit_step
from scipy import sparse

from onlinear import Learner
from onlinear.learner.parts import LOSSES, build_loss
from onlinear.penalties import Box, ElasticNet, FusedLasso
from onlinear.solvers import fiol

VARIABLE = "ONLINEAR_GOLDEN"


def cases() -> list[Any]:
    """The files to replay, or one skipped test where the variable is unset."""
    named = os.environ.get(VARIABLE)
    if not named:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{VARIABLE} is not set; it names the folder of references."))]
    found = [path for path in sorted(Path(named).glob("*.npz")) if not path.name.startswith(("data_", "order_"))]
    if not found:
        raise pytest.UsageError(f"{VARIABLE}={named!r} holds no reference file (*.npz).")
    return [pytest.param(path, id=path.stem) for path in found]


@pytest.mark.parametrize("path", cases())
def test_replay(path: Path) -> None:
    case = Case(path)
    assert case.algo in REPLAYS, f"no replay of {case.algo!r}"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "csgd without an intercept", UserWarning)
        REPLAYS[case.algo](case)
    case.nothing_left()


class Case:
    """One file: its settings, its rows with their weights, and which of its arrays and settings were used."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        self.folder = path.parent
        self.settings = json.loads(str(arrays.pop("meta")))
        self.used = {"algo", "T", "note", "order_file", "data", "intercept", "fit_intercept"}
        self.algo, self.T = self.settings["algo"], int(self.settings["T"])
        self.intercept = any(bool(self.settings.get(name)) for name in ("intercept", "fit_intercept"))
        self.order = arrays.pop("order", np.empty(0, np.int64))
        if "order_file" in self.settings:
            self.order = self.load(self.settings["order_file"])["order"][: self.T]
        self.k = arrays.pop("k", np.empty(0, np.int64)).astype(int)
        if self.settings["data"]:
            self.take_rows(self.load(f"data_{self.settings['data']}"), weights_of(arrays))
        self.arrays = arrays
        self.left = set(arrays)

    def take_rows(self, rows: dict[str, np.ndarray], own: np.ndarray | None) -> None:
        """X, y and the weights of rows and steps; ``own``: those that the case names."""
        indptr, indices, data, shape, y = (rows.pop(name) for name in ("indptr", "indices", "data", "shape", "y"))
        given = weights_of(rows)
        assert not rows, f"arrays of the data file that nothing uses: {sorted(rows)}"
        self.X = sparse.csr_matrix((data, indices, indptr), shape=tuple(int(size) for size in shape))
        self.y, n = y.astype(float), len(y)
        self.row_weights = np.ones(n) if given is None else given
        batch = "batch" in self.algo  # all rows at once: ``order`` means nothing
        if own is not None and not batch and len(own) == self.T:
            self.step_weights = own
            return
        if own is not None:
            assert len(own) == n, f"{len(own)} weights are neither of the {self.T} steps nor of the {n} rows"
            self.row_weights = own
        self.step_weights = self.row_weights if batch else self.row_weights[self.order]

    def load(self, stem: str) -> dict[str, np.ndarray]:
        with np.load(self.folder / f"{stem}.npz") as stored:
            return {name: stored[name] for name in stored.files}

    def take(self, key: str, default: Any = None) -> Any:
        """A setting, which is thereby used."""
        self.used.add(key)
        return self.settings.get(key, default)

    def check(self, name: str, got: Any, tolerance: float = 1e-10, at: Any = ()) -> None:
        """Compare an array of the file (its part ``at``), which several outputs may share."""
        self.left.discard(name)
        want, got = self.arrays[name][at], np.asarray(got)
        if got.ndim > np.ndim(want):
            want = np.broadcast_to(np.reshape(want, np.shape(want) + (1,) * (got.ndim - np.ndim(want))), got.shape)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"{name}{list(np.atleast_1d(at))}")

    def nothing_left(self) -> None:
        ignored = self.settings.keys() - self.used
        assert not ignored, f"settings that were not replayed: {sorted(ignored)}"
        assert not self.left, f"arrays that were not compared: {sorted(self.left)}"

    # --- text forms --------------------------------------------------------------------------------------------------

    def learner(self, solver: str, loss: str, penalty: str, average: str | None = None, **options: Any) -> Learner:
        """A learner of this case's features."""
        options = {"n_features": self.X.shape[1], "fit_intercept": self.intercept, "total": self.T or None} | options
        return Learner(solver, loss, penalty, average, **options)

    def loss(self, default: str | None = None) -> str:
        name = self.take("loss", default)
        name = {"sqhinge": "squared-hinge"}.get(name, name.replace("_", "-"))
        settings = {key: self.take(key) for key in LOSSES[name]._fields if key in self.settings}
        if "scale" in self.settings:
            settings["factor"] = self.take("scale")
        return text(name, settings)

    def penalty(self) -> str:
        settings = {key: self.take(key) for key in ("tv", "l1", "l2", "lower", "upper") if key in self.settings}
        if "tv" in settings:
            return text("fused-lasso", settings)
        return text("elastic-net", settings) if settings else "none"

    def schedule(self) -> dict[str, Any]:
        kinds = {
            "const": "constant",
            "sqrt": "inverse-sqrt",
            "inv": "inverse",
            "inv1": "inverse-shifted",
            "power": "power",
            "two_phase": "two-phase",
        }
        settings = {"schedule": kinds[self.take("eta_kind")], "eta": self.take("eta")}
        return settings | {key: self.take(key) for key in ("m", "power", "t0") if key in self.settings}

    def growing(self, key: str) -> dict[str, Any]:
        """The schedule of a penalty parameter: fixed, or rho_t = rho sqrt t."""
        return {"schedule": {"const": "constant", "sqrt": "growing-rho"}[self.take(key)]} if key in self.settings else {}


def weights_of(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """The sample weights among some arrays, taken out of them."""
    found = [arrays.pop(name).astype(float) for name in ("s", "sample_weight", "weights") if name in arrays]
    assert len(found) <= 1, "sample weights by several names"
    return found[0] if found else None


def text(name: str, settings: dict[str, Any]) -> str:
    """The text form of a part."""

    def show(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else repr(float(value))

    return ",".join([name, *(f"{key}={show(value)}" for key, value in settings.items())])


# --- streams ---------------------------------------------------------------------------------------------------------

LETTERS = {"W_k": "w", "Z_k": "z", "Mu_k": "mu", "XX_k": "x", "U_k": "u", "G_k": "G"}
AVERAGES = {
    "avg_uni": "uniform",
    "avg_post": "uniform-post",
    "avg_w_t": "weighted-t",
    "avg_w_t1": "weighted-t1",
    "suffix_half": "suffix,alpha=0.5",
}


def replay(
    case: Case,
    solver: str,
    loss: str,
    penalty: str,
    y: np.ndarray | None = None,
    predictor: str | None = "w",
    averages: bool = True,
) -> None:
    """Learn the rows in order and compare what the file holds, ``averages`` or not; ``predictor``: its letter, if any."""
    y = case.y if y is None else y
    options = {"n_outputs": 1 if y.ndim == 1 else y.shape[1]}
    run = case.learner(solver, loss, penalty, **options)
    for i, t in enumerate(learn_up_to(run, case, y)):
        variables = run.variables()
        if predictor in variables:
            np.testing.assert_allclose(run.weights(), variables[predictor], rtol=1e-10, atol=1e-12)
        if i < len(case.k):
            assert t == case.k[i]
            for name, letter in LETTERS.items():
                if name in case.arrays:
                    case.check(name, variables[letter], at=i)
            if "b_k" in case.arrays:
                case.check("b_k", run.intercept(), at=i)
    for name in case.arrays:
        if name in variables and name != "theta":  # that of the last row alone
            case.check(name, variables[name])
    if any(name in case.arrays and name not in variables for name in ("wbar", "mutbar")):
        replay_means(case, case.learner(solver, loss, penalty, **options), y)
    if "b" in case.arrays:
        case.check("b", run.intercept())
    check_average(case, "w_out", "b_out", run)
    for name, average in AVERAGES.items():
        if averages and (name in case.arrays or f"b_{name}" in case.arrays):
            other = case.learner(solver, loss, penalty, average, **options)
            for _ in learn_up_to(other, case, y):
                other.weights(average=True)
            check_average(case, name, f"b_{name}", other)
            if predictor in case.arrays:
                case.check(predictor, other.weights())
    if "theta" in case.arrays:
        replay_theta(case, case.learner(solver, loss, penalty, **options))


def depends(w: np.ndarray, lower: float = -np.inf, upper: float = np.inf) -> bool:
    """Whether a weight depends on theta: it is neither 0 nor at a bound."""
    return bool(np.any((w != 0.0) & (w > lower) & (w < upper)))


def replay_means(case: Case, run: Learner, y: np.ndarray) -> None:
    """Means of w_{t+1} and of mutilde_t = mu_t + rho_t (w_{t+1} - z_t) (MATH 9.5), row by row, where no variable holds them."""
    sums, before = {"wbar": 0.0, "mutbar": 0.0}, run.variables()
    for t, i in enumerate(case.order):
        run.learn(case.X[[i]], y[[i]], case.step_weights[t : t + 1])
        after = run.variables()
        sums["wbar"] += after["w"]
        sums["mutbar"] += before["mu"] + (after["w"] - before["z"]) / run.engine.eta(t + 1)
        before = after
    for name in sums.keys() & case.arrays.keys():
        case.check(name, sums[name] / case.T)


def check_average(case: Case, name: str, bias: str, run: Learner) -> None:
    """Compare an averaged predictor and its intercept, where the file has them."""
    if name in case.arrays:
        case.check(name, run.weights(average=True))
    if bias in case.arrays:
        case.check(bias, run.intercept(average=True))


def learn_up_to(learner: Learner, case: Case, y: np.ndarray) -> Iterator[int]:
    """Learn to each of the stored steps in turn, and to the end."""
    t = 0
    for end in sorted({*case.k.tolist(), case.T}):
        rows = case.order[t:end]
        learner.learn(case.X[rows], y[rows], case.step_weights[t:end])
        t = end
        yield t


def replay_theta(case: Case, run: Learner) -> None:
    """theta row by row; FIOL's wherever a weight of the row depends on it."""
    for t, i in enumerate(case.order):
        x = case.X[[i]]
        run.learn(x, case.y[[i]], case.step_weights[t : t + 1])
        w, used = run.weights(), x.indices[x.data != 0.0]
        bounds = (case.settings.get("lower", -np.inf), case.settings.get("upper", np.inf))
        if case.algo != "fiol" or case.intercept or depends(w[used], *bounds):
            case.check("theta", run.variables()["theta"], at=t)


def scheduled(solver: str) -> Callable[[Case], None]:
    def run(case: Case) -> None:
        replay(case, text(solver, case.schedule()), case.loss(), case.penalty())

    return run


def tied(solver: str) -> Callable[[Case], None]:
    def run(case: Case) -> None:
        replay(case, solver, case.loss(), case.penalty())

    return run


def replay_rda(case: Case) -> None:
    gamma = case.take("gamma")
    settings = {"gamma": {"sqrt": gamma, "zero": 0.0}[case.take("beta_kind")]}
    replay(case, text("rda", settings), case.loss(), case.penalty())


def replay_sgd(case: Case) -> None:
    ball = {"radius": case.take("radius")} if "radius" in case.settings else {}
    replay(case, text("sgd", case.schedule() | ball), case.loss(), case.penalty())


def replay_fiol(case: Case) -> None:
    settings, loss, penalty = case.schedule(), case.loss(), case.penalty()
    for inner in searches("lower" in case.settings or "upper" in case.settings):
        replay(case, text("fiol", settings | {"inner": inner}), loss, penalty, averages=inner == "newton")


def searches(bounded: bool) -> tuple[str, ...]:
    """The searches for FIOL's root; Algorithms 1 and 2 know no bounds."""
    return ("newton",) if bounded else tuple(fiol.INNER)


def replay_sadmm(case: Case) -> None:
    settings = {"rho": case.take("rho")} | case.growing("rho_kind")
    replay(case, text("sadmm", settings), case.loss(), case.penalty(), predictor="z")


def replay_oadm(case: Case) -> None:
    settings = {"rho": case.take("rho"), "bregman": case.take("eta")} | case.growing("rho_kind")
    replay(case, text("oadm", settings), case.loss(), case.penalty(), predictor="z")


def replay_drs(case: Case) -> None:
    solver = "iodrs" if case.take("inexact", False) else "odrs"
    settings = {"lam": case.take("lam"), "relaxation": case.take("relax", 1.0)} | case.growing("lam_kind")
    replay(case, text(solver, settings), case.loss(), case.penalty(), predictor=None)


def replay_pegasos(case: Case) -> None:
    solver = text("pegasos", {"project": bool(case.take("project"))})
    replay(case, solver, case.loss("hinge"), text("l2", {"l2": case.take("lam")}))


def replay_pa(case: Case) -> None:
    variant, C = case.take("variant"), case.take("C")
    solver = {0: "pa", 1: text("pa-1", {"C": C}), 2: text("pa-2", {"C": C})}[variant]
    replay(case, solver, case.loss("hinge"), case.penalty())


def replay_csgd(case: Case) -> None:
    replay(case, text("csgd", case.schedule()), case.loss("squared"), case.penalty())


def replay_rls(case: Case) -> None:
    replay(case, text("rls", {"delta": case.take("delta")}), case.loss("squared"), case.penalty())


def replay_neurons(solver: str) -> Callable[[Case], None]:
    """One neuron per class, targets 1/0."""

    def run(case: Case) -> None:
        targets = (case.y[:, None] == np.arange(case.take("n_classes"))).astype(float)
        replay(case, text(solver, case.schedule()), case.loss("squared"), case.penalty(), targets)

    return run


def replay_epoch_gd(case: Case) -> None:
    T1, used = case.take("T1"), case.take("used")
    ends = np.cumsum(T1 * 2 ** np.arange(len(case.arrays["epochs"])))
    assert used == ends[-1]
    run = case.learner(text("epoch-gd", {"T1": T1}), case.loss(), case.penalty())
    t = 0
    for epoch, end in enumerate([*ends, case.T]):
        run.learn(case.X[case.order[t:end]], case.y[case.order[t:end]], case.step_weights[t:end])
        t = end
        if epoch < len(ends):
            case.check("epochs", run.weights(average=True), at=epoch)
    check_average(case, "w", "b", run)


# --- batch -----------------------------------------------------------------------------------------------------------


def replay_batch(case: Case) -> None:
    loss, penalty, iterations = case.loss(), case.penalty(), case.take("iters")
    tolerance = 1e-10 if loss.startswith("squared,") or loss == "squared" else 1e-8
    settings = {"lam": case.take("lam"), "relaxation": case.take("relax", 1.0)}
    run = case.learner(text("batch-drs", settings), loss, penalty)
    done = 0
    for end in sorted({*case.k.tolist(), iterations}):
        run.solve(case.X, case.y, end - done, case.row_weights)
        done = end
        for i in np.flatnonzero(case.k == end):
            for name in ("XX_k", "U_k"):
                case.check(name, run.variables()[LETTERS[name]], tolerance, at=i)
    case.check("u", run.variables()["u"], tolerance)
    case.check("x", run.weights(), tolerance)
    if "b" in case.arrays:
        case.check("b", run.intercept(), tolerance)


def replay_optimum(case: Case) -> None:
    loss, penalty, w = case.loss(), case.penalty(), case.arrays["w"]

    def objective(run: Learner) -> float:
        return run.objective(case.X, case.y, case.row_weights)

    if not case.intercept:  # a learner starts at an intercept of 0
        case.check("obj", objective(case.learner("comid", loss, penalty, start=w)), 1e-8)
        for j in range(len(w)):
            for move in (-1e-3, 1e-3):
                beside = w + move * (np.arange(len(w)) == j)
                assert objective(case.learner("comid", loss, penalty, start=beside)) > case.arrays["obj"] - 1e-12
        if not hasattr(build_loss(loss), "curvature"):
            case.left.discard("w")
            return
    run = case.learner("batch-drs,lam=20.0", loss, penalty)
    for _ in range(40):
        before = run.weights()
        run.solve(case.X, case.y, 50, case.row_weights)
        if np.abs(run.weights() - before).max() < 1e-11:
            break
    case.check("w", run.weights(), 1e-8)
    case.check("obj", objective(run), 1e-8)
    if "b" in case.arrays:
        case.check("b", run.intercept(), 1e-8)


# --- parts -----------------------------------------------------------------------------------------------------------


def replay_loss(case: Case) -> None:
    loss = build_loss(case.loss())
    a, c, y = (case.arrays[name] for name in "acy")
    factor = loss.factor
    case.left -= {"a", "c", "y"}
    theta = factor * np.array([loss.theta(a, factor * c, y) for a, c, y in zip(a, c, y, strict=True)])
    case.check("value", [factor * loss.value(*row) for row in zip(a, y, strict=True)])
    case.check("grad", [factor * loss.slope(*row) for row in zip(a, y, strict=True)])
    case.check("theta", theta)
    case.check("prox", a - c * theta)


def replay_tv(case: Case) -> None:
    ends = np.cumsum(case.arrays["n"])
    case.left -= {"v", "n", "lam"}
    for start, end, lam in zip(ends - case.arrays["n"], ends, case.arrays["lam"], strict=True):
        part = slice(int(start), int(end))
        case.check("x", FusedLasso(tv=1.0).prox(case.arrays["v"][part], float(lam)), at=part)


def replay_fiol_steps(case: Case) -> None:
    """Single steps (8.1) from rows of a table: the new weights by every search; theta where a weight depends on it."""
    losses, columns = [case.loss(name) for name in case.take("losses")], table_columns(case.take("columns"))
    unknown = columns.keys() - {"loss_index", "y", "eta", "l1", "l2", "lower", "upper", "theta", "v", "x", "w_out"}
    assert not unknown, f"columns that nothing here reads: {sorted(unknown)}"
    for i, row in enumerate(case.arrays["table"]):
        loss = build_loss(losses[int(row[columns["loss_index"]])])
        v, x, y, eta = (row[columns[name]] for name in ("v", "x", "y", "eta"))
        strengths = {name: float(row[columns[name]]) for name in ("l1", "l2", "lower", "upper") if name in columns}
        bounded = "lower" in strengths or "upper" in strengths
        penalty = (Box if bounded else ElasticNet)(**strengths)
        for inner in searches(bounded):
            w, theta = implicit_step(v, x, y, eta, loss, penalty, inner=inner)
            case.check("table", w, at=(i, columns["w_out"]))
            if depends(w[x != 0.0], strengths.get("lower", -np.inf), strengths.get("upper", np.inf)):
                case.check("table", theta, at=(i, columns["theta"]))


def table_columns(names: str) -> dict[str, Any]:
    """The columns of a table by name, from ``name[size](remark)`` with commas between."""
    columns: dict[str, Any] = {}
    first = 0
    for column in re.split(r",(?![^(]*\))", names):
        name, size = re.fullmatch(r"(\w+)(?:\(.*\))?(?:\[(\d+)\])?", column.strip()).groups()
        columns[name] = slice(first, first + int(size)) if size else first
        first += int(size or 1)
    return columns


REPLAYS: dict[str, Callable[[Case], None]] = {
    "comid": scheduled("comid"),
    "sgd": replay_sgd,
    "implicit_sgd": scheduled("implicit-sgd"),
    "fiol": replay_fiol,
    "rda": replay_rda,
    "sadmm": replay_sadmm,
    "oadm": replay_oadm,
    "drs_online": replay_drs,
    "drs_batch": replay_batch,
    "hrmd_w": tied("hrmd-w"),
    "hrcomid": tied("hrcomid"),
    "sgd_w": tied("sgd-w"),
    "pegasos": replay_pegasos,
    "epoch_gd": replay_epoch_gd,
    "pa": replay_pa,
    "csgd": replay_csgd,
    "rls": replay_rls,
    "adaline": replay_neurons("adaline"),
    "c_adaline": replay_neurons("c-adaline"),
    "batch_optimum": replay_optimum,
    "kernel_loss": replay_loss,
    "kernel_tv": replay_tv,
    "kernel_fiol": replay_fiol_steps,
}
