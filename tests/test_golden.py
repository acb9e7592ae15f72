"""Replays of reference trajectories: one test per file of the folder that ONLINEAR_GOLDEN names.

A file says what was run in its ``meta``, and every array in it is compared: states after the steps ``k``, read in mid-stream,
final variables, averages, outputs. A method, a setting or an array that nothing here compares fails the test.
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
from scipy import sparse

from onlinear import Learner
from onlinear.build import LOSSES, build_loss
from onlinear.penalties import ElasticNet, FusedLasso
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
    """One file: its settings, its rows, and which of its arrays and settings were used."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        self.folder = path.parent
        self.settings = json.loads(str(arrays.pop("meta")))
        self.algo = self.settings.pop("algo")
        self.T = int(self.settings.pop("T"))
        self.settings.pop("note", None)
        self.order = arrays.pop("order", np.empty(0, np.int64))
        if "order_file" in self.settings:
            self.order = self.load(self.settings.pop("order_file"))["order"][: self.T]
        self.k = arrays.pop("k", np.empty(0, np.int64)).astype(int)
        self.arrays = arrays
        self.left = set(arrays)
        data = self.settings.pop("data")
        if data:
            rows = self.load(f"data_{data}")
            shape = tuple(int(size) for size in rows["shape"])
            self.X = sparse.csr_matrix((rows["data"], rows["indices"], rows["indptr"]), shape=shape)
            self.y = rows["y"].astype(float)

    def load(self, stem: str) -> dict[str, np.ndarray]:
        with np.load(self.folder / f"{stem}.npz") as stored:
            return {name: stored[name] for name in stored.files}

    def take(self, key: str, default: Any = None) -> Any:
        """A setting, which is thereby used."""
        return self.settings.pop(key, default)

    def check(self, name: str, got: Any, tolerance: float = 1e-10, at: Any = ()) -> None:
        """Compare an array of the file (its part ``at``)."""
        self.left.discard(name)
        want = self.arrays[name][at]
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"{name}{list(np.atleast_1d(at))}")

    def nothing_left(self) -> None:
        assert not self.settings, f"settings that were not replayed: {self.settings}"
        assert not self.left, f"arrays that were not compared: {sorted(self.left)}"

    # --- text forms --------------------------------------------------------------------------------------------------

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


def replay(case: Case, solver: str, loss: str, penalty: str, y: np.ndarray | None = None, predictor: str = "w") -> None:
    """Learn the rows in order and compare whatever the file holds; ``predictor``: its letter."""
    y = case.y if y is None else y

    def learner(average: str | None) -> Learner:
        outputs = 1 if y.ndim == 1 else y.shape[1]
        return Learner(solver, loss, penalty, average, n_features=case.X.shape[1], n_outputs=outputs, total=case.T)

    run = learner(None)
    for i, t in enumerate(learn_up_to(run, case, y)):
        variables = run.variables()
        if predictor in variables:
            np.testing.assert_allclose(run.weights(), variables[predictor], rtol=1e-10, atol=1e-12)
        if i < len(case.k):
            assert t == case.k[i]
            for name, letter in LETTERS.items():
                if name in case.arrays:
                    case.check(name, variables[letter], at=i)
    for name in case.arrays:
        if name in variables and name != "theta":  # that of the last row alone
            case.check(name, variables[name])
    if "w_out" in case.arrays:
        case.check("w_out", run.weights(average=True))
    for name, average in AVERAGES.items():
        if name in case.arrays:
            other = learner(average)
            for _ in learn_up_to(other, case, y):
                other.weights(average=True)
            case.check(name, other.weights(average=True))
            case.check(predictor, other.weights())


def learn_up_to(learner: Learner, case: Case, y: np.ndarray) -> Iterator[int]:
    """Learn to each of the stored steps in turn, and to the end."""
    t = 0
    for end in sorted({*case.k.tolist(), case.T}):
        rows = case.order[t:end]
        learner.learn(case.X[rows], y[rows])
        t = end
        yield t


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


def replay_fiol(case: Case) -> None:
    settings, loss, penalty = case.schedule(), case.loss(), case.penalty()
    for inner in fiol.INNER:
        solver = text("fiol", settings | {"inner": inner})
        replay(case, solver, loss, penalty)
        if "theta" in case.arrays:
            replay_theta(case, solver, loss, penalty)


def replay_theta(case: Case, solver: str, loss: str, penalty: str) -> None:
    """theta row by row, wherever a weight of the row depends on it."""
    run = Learner(solver, loss, penalty, n_features=case.X.shape[1])
    for t, i in enumerate(case.order):
        x = case.X[[i]]
        run.learn_one(x.indices, x.data, case.y[i])
        if np.any(run.weights()[x.indices[x.data != 0.0]] != 0.0):
            case.check("theta", run.variables()["theta"], at=t)


def replay_sadmm(case: Case) -> None:
    settings = {"rho": case.take("rho")} | case.growing("rho_kind")
    replay(case, text("sadmm", settings), case.loss(), case.penalty(), predictor="z")


def replay_oadm(case: Case) -> None:
    settings = {"rho": case.take("rho"), "bregman": case.take("eta")} | case.growing("rho_kind")
    replay(case, text("oadm", settings), case.loss(), case.penalty(), predictor="z")


def replay_drs(case: Case) -> None:
    solver = "iodrs" if case.take("inexact", False) else "odrs"
    settings = {"lam": case.take("lam"), "relaxation": case.take("relax", 1.0)} | case.growing("lam_kind")
    replay(case, text(solver, settings), case.loss(), case.penalty(), predictor="")


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
    run = Learner(text("epoch-gd", {"T1": T1}), case.loss(), case.penalty(), n_features=case.X.shape[1])
    t = 0
    for epoch, end in enumerate([*ends, case.T]):
        run.learn(case.X[case.order[t:end]], case.y[case.order[t:end]])
        t = end
        if epoch < len(ends):
            case.check("epochs", run.weights(average=True), at=epoch)
    case.check("w", run.weights(average=True))


# --- batch -----------------------------------------------------------------------------------------------------------


def replay_batch(case: Case) -> None:
    loss, penalty, iterations = case.loss(), case.penalty(), case.take("iters")
    tolerance = 1e-10 if loss.startswith("squared,") or loss == "squared" else 1e-8
    settings = {"lam": case.take("lam"), "relaxation": case.take("relax", 1.0)}
    run = Learner(text("batch-drs", settings), loss, penalty, n_features=case.X.shape[1])
    done = 0
    for end in sorted({*case.k.tolist(), iterations}):
        run.solve(case.X, case.y, iterations=end - done)
        done = end
        for i in np.flatnonzero(case.k == end):
            for name in ("XX_k", "U_k"):
                case.check(name, run.variables()[LETTERS[name]], tolerance, at=i)
    case.check("u", run.variables()["u"], tolerance)
    case.check("x", run.weights(), tolerance)


def replay_optimum(case: Case) -> None:
    loss, penalty, w = case.loss(), case.penalty(), case.arrays["w"]
    case.check("obj", Learner("comid", loss, penalty, start=w).objective(case.X, case.y), 1e-8)
    for j in range(len(w)):
        for move in (-1e-3, 1e-3):
            beside = w + move * (np.arange(len(w)) == j)
            assert Learner("comid", loss, penalty, start=beside).objective(case.X, case.y) > case.arrays["obj"] - 1e-12
    if not hasattr(build_loss(loss), "curvature"):
        case.left.discard("w")
        return
    run = Learner("batch-drs,lam=20.0", loss, penalty, n_features=len(w))
    for _ in range(40):
        before = run.weights()
        run.solve(case.X, case.y, iterations=50)
        if np.abs(run.weights() - before).max() < 1e-11:
            break
    case.check("w", run.weights(), 1e-8)


# --- parts -----------------------------------------------------------------------------------------------------------


def replay_loss(case: Case) -> None:
    loss = build_loss(case.loss())
    a, c, y = (case.arrays[name] for name in "acy")
    case.left -= {"a", "c", "y"}
    theta = np.array([loss.theta(*row) for row in zip(a, c, y, strict=True)])
    case.check("value", [loss.value(*row) for row in zip(a, y, strict=True)])
    case.check("grad", [loss.slope(*row) for row in zip(a, y, strict=True)])
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
    losses, columns = case.take("losses"), {}
    first = 0
    for column in re.split(r",(?![^(]*\))", case.take("columns")):
        name, size = re.fullmatch(r"(\w+)(?:\(.*\))?(?:\[(\d+)\])?", column).groups()
        columns[name] = slice(first, first + int(size)) if size else first
        first += int(size or 1)
    assert first == case.arrays["table"].shape[1]
    for i, row in enumerate(case.arrays["table"]):
        case.settings["loss"] = losses[int(row[columns["loss_index"]])]
        loss, penalty = build_loss(case.loss()), ElasticNet(row[columns["l1"]], row[columns["l2"]])
        v, x, y, eta = (row[columns[name]] for name in ("v", "x", "y", "eta"))
        for inner in fiol.INNER:
            w, theta = fiol.implicit_step(v, x, y, eta, loss, penalty, inner=inner)
            case.check("table", w, at=(i, columns["w_out"]))
            if np.any(w[x != 0.0] != 0.0):
                case.check("table", theta, at=(i, columns["theta"]))


REPLAYS: dict[str, Callable[[Case], None]] = {
    "comid": scheduled("comid"),
    "sgd": scheduled("sgd"),
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
