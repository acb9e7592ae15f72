"""batch=k: one step on the mean loss of k rows, against the recursion in NumPy; cuts, files, reads and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import often, seldom

from onlinear import DivergenceError, Learner, ModelFileError, OnlineClassifier, OnlineRegressor, load
from onlinear.compiled import bind_loss
from onlinear.files import model_file
from onlinear.learner.parts import build_loss, build_penalty
from onlinear.rows import Rows
from onlinear.solvers import SOLVERS
from onlinear.solvers.core import batch_dual
from onlinear.solvers.core.batch_dual import DualRoom, batch_thetas, is_straight, most_rounds
from onlinear.solvers.core.batch_loop import BatchRoom, unite
from onlinear.solvers.core.mini_batch import COLUMNS, ENDS, SCORES, TARGETS, VALUES, WEIGHTS

ETA, L1, L2 = 0.3, 0.02, 0.1
STEP = f"schedule=inverse-sqrt,eta={ETA}"
PENALTY = f"elastic-net,l1={L1},l2={L2}"


@pytest.fixture
def data() -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = sp.random(50, 12, 0.4, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, rng.choice([-1.0, 1.0], 50), rng.choice([0.0, 0.5, 1.0, 2.0], 50)


def soft(v: np.ndarray, k: float) -> np.ndarray:
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def slopes(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -y / (1.0 + np.exp(y * scores))


class Recursion:
    """Mini-batch steps in NumPy, the intercept last, for the logistic loss."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.w = name, np.zeros(size)
        self.G, self.n = np.zeros(size), np.zeros(size)
        self.free = np.arange(size) == size - 1

    def step(self, g: np.ndarray, t: int) -> None:
        eta, w = ETA / np.sqrt(t), self.w
        l1, l2 = np.where(self.free, 0.0, L1), np.where(self.free, 0.0, L2)
        if self.name == "sgd":
            self.w = w - eta * (g + l1 * np.sign(w) + l2 * w)
        elif self.name == "comid":
            self.w = soft(w - eta * g, eta * l1) / (1.0 + eta * l2)
        elif self.name == "rda":
            self.G += g
            self.w = -soft(self.G, l1 * t) / (l2 * t + np.sqrt(t))
        elif self.name == "adagrad-comid":
            self.n += g * g
            size = 1.0 / (1e-6 + np.sqrt(self.n))
            self.w = soft(w - size * g, size * l1) / (1.0 + size * l2)
        else:
            before = (1.0 + np.sqrt(self.n)) / ETA if self.name == "ftrl" else (1e-6 + np.sqrt(self.n))
            self.n += g * g
            after = (1.0 + np.sqrt(self.n)) / ETA if self.name == "ftrl" else (1e-6 + np.sqrt(self.n))
            self.G += g - ((after - before) * w if self.name == "ftrl" else 0.0)
            self.w = -soft(self.G, t * l1) / (after + t * l2)


AVERAGED = ("sgd", "comid", "rda")  # one for each loop over rows; exhaustive runs average the others, too
SETTINGS = {"sgd": f",{STEP}", "comid": f",{STEP}", "ftrl": f",eta={ETA}"}


@pytest.mark.parametrize("k", [seldom(2), 7])
@pytest.mark.parametrize("name", ["sgd", "comid", "rda", "ftrl", "adagrad-rda", "adagrad-comid"])
def test_a_batch_is_one_step_on_the_mean_loss(name, k, data):
    X, y, s = data
    learner = Learner(f"{name}{SETTINGS.get(name, '')},batch={k}", "logistic", PENALTY, fit_intercept=True).learn(X, y, s)
    rows = np.column_stack([X.toarray(), np.ones(len(y))])
    expected, total, iterates = Recursion(name, rows.shape[1]), 0.0, []
    for b in range(len(y) // k + 1):
        part = slice(b * k, min((b + 1) * k, len(y)))
        scores = rows[part] @ expected.w
        total += float(np.sum(s[part] * np.logaddexp(0.0, -y[part] * scores)))
        if part.stop == (b + 1) * k:
            iterates.append(expected.w)
            expected.step(rows[part].T @ (s[part] * slopes(scores, y[part])) / k, b + 1)
    np.testing.assert_allclose(learner.weights(), expected.w[:-1], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(learner.intercept(), expected.w[-1], rtol=1e-10)
    np.testing.assert_allclose(learner.total_loss, total, rtol=1e-12)
    assert learner.t == len(y)
    if k != 2 and name not in AVERAGED:
        return
    averaged = Learner(f"{name}{SETTINGS.get(name, '')},batch={k}", "logistic", PENALTY, "uniform", fit_intercept=True)
    averaged.learn(X, y, s)
    np.testing.assert_allclose(averaged.weights(average=True), np.mean(iterates, axis=0)[:-1], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(averaged.intercept(average=True), np.mean(iterates, axis=0)[-1], rtol=1e-9)


BATCHED = ["sgd", "asgd", "pegasos", "epoch-gd", "comid", "rda", "ftrl", "adagrad-rda", "adagrad-comid", "adaline"]


def learner_of(name: str, k: int = 7, **options) -> Learner:
    penalty = "none" if name == "adaline" else "l2=0.1"
    return Learner(f"{name},batch={k}", "squared" if name == "adaline" else "logistic", penalty, **options)


def bytes_of(learner: Learner, path: Path) -> bytes:
    learner.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", BATCHED)
def test_batches_follow_from_the_rows_alone(name, data, tmp_path):
    X, y, _ = data
    whole = bytes_of(learner_of(name).learn(X, y), tmp_path / "whole")
    cut, resumed = learner_of(name), learner_of(name)
    for i in range(X.shape[0]):
        begin, end = X.indptr[i : i + 2]
        before = (X[i, : cut.size] @ cut.weights())[0]
        np.testing.assert_allclose(cut.learn_one(X.indices[begin:end], X.data[begin:end], y[i]), before, rtol=1e-12)
        if i % 11 == 5:
            resumed.learn(X[i - 5 : i + 1], y[i - 5 : i + 1]).save(tmp_path / "middle")
            resumed = load(tmp_path / "middle")
        elif i % 11 > 5:
            resumed.learn(X[i].toarray(), y[i : i + 1])
    resumed.learn(X[:0], y[:0])
    assert bytes_of(cut, tmp_path / "cut") == whole
    resumed.learn(X[resumed.t :], y[resumed.t :])
    assert bytes_of(resumed, tmp_path / "resumed") == whole


def test_an_unfinished_batch_waits(data):
    X, y, _ = data
    learner = learner_of("comid", 8, n_features=12)
    for n in range(1, 20):
        learner.learn(X[n - 1], y[n - 1 : n])
        full = learner_of("comid", 8, n_features=12).learn(X[: n // 8 * 8], y[: n // 8 * 8])
        np.testing.assert_array_equal(learner.weights(), full.weights())
        assert learner.t == n
    np.testing.assert_array_equal(learner.predict(X), full.predict(X))


@pytest.mark.parametrize("size", [0, 50], ids=["table", "direct"])
def test_columns_are_numbered_as_they_come(size):
    rng = np.random.default_rng(0)
    X = sp.random(40, 50, 0.3, "csr", random_state=rng, data_rvs=rng.standard_normal)
    X.sort_indices()
    rows, room = Rows(X.indptr.astype(np.uint64), X.indices.astype(np.uint32), X.data), BatchRoom.of(X.nnz, size)
    for first, k in ((0, 10), (10, 30), (0, 40)):
        begin, end = X.indptr[[first, first + k]]
        columns, at = np.unique(X.indices[begin:end], return_index=True)
        count = int(unite(rows, first, k, room))
        np.testing.assert_array_equal(room.columns[:count], columns[np.argsort(at)])
        np.testing.assert_array_equal(room.columns[room.places[: end - begin]], X.indices[begin:end])


def test_one_row_a_batch_is_the_solver_itself(data, tmp_path):
    X, y, _ = data
    one = Learner("comid,batch=1", "logistic", "l1=0.01").learn(X, y)
    plain = Learner("comid", "logistic", "l1=0.01").learn(X, y)
    np.testing.assert_array_equal(one.weights(), plain.weights())
    assert one.variables().keys() == plain.variables().keys()
    assert type(one.engine) is type(plain.engine)


@pytest.mark.parametrize("name", [seldom("comid"), "sgd"])
def test_relative_units_and_the_adaptive_average_resume(name, data, tmp_path):
    X, _, s = data
    y = 1e4 + 300.0 * np.arange(100.0).reshape(50, 2) ** 1.1
    options = {"fit_intercept": True, "targets": "relative", "weights": "relative", "n_outputs": 2}

    def fresh() -> Learner:
        return Learner(f"{name},eta=0.1,batch=4", "huber,delta=50", "l2=1e-3", "adaptive", **options)

    whole = bytes_of(fresh().learn(X, y, s), tmp_path / "whole")
    for cut in (1, 3, 4, 22, 49):
        fresh().learn(X[:cut], y[:cut], s[:cut]).save(tmp_path / "middle")
        assert bytes_of(load(tmp_path / "middle").learn(X[cut:], y[cut:], s[cut:]), tmp_path / "again") == whole, cut


def test_estimators_take_batches(data, tmp_path):
    X, y, _ = data
    model = OnlineClassifier(solver="comid,eta=1,batch=16", passes=3, random_state=0).fit(X, y)
    assert model.learner_.t == 150
    assert model.learner_.states[0].t == 9
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20000, 6))
    b = A @ np.arange(6.0) + 5.0
    model = OnlineRegressor(solver="sgd,eta=0.5,batch=10", random_state=0).fit(A, b)
    assert model.score(A, b) > 0.99
    pieces = OnlineRegressor(solver="sgd,eta=0.5,batch=10", random_state=0, shuffle=False)
    for at in range(0, 20000, 3333):
        pieces.partial_fit(A[at : at + 3333], b[at : at + 3333])
    once = OnlineRegressor(solver="sgd,eta=0.5,batch=10", random_state=0, shuffle=False).partial_fit(A, b)
    np.testing.assert_array_equal(pieces.coef_, once.coef_)


def test_rows_that_wait_are_scored_by_the_held_weights_of_the_last_step(data):
    X, y, _ = data
    learner = learner_of("comid", 3).learn(X[:9], y[:9])
    for i in range(9, 30):
        begin, end = X.indptr[i : i + 2]
        row = X.indices[begin:end], X.data[begin:end]
        for _ in range(4):
            np.testing.assert_allclose(learner.predict_one(*row), X[i] @ learner.weights(), rtol=1e-12)
        learner.learn_one(*row, y[i])


@pytest.mark.parametrize(("scale", "value", "weight"), [("rms", 1e-170, 1.0), ("rms", 3.0, 0.0), ("max-abs", 3.0, 0.0)])
def test_rows_that_wait_without_a_scale_are_kept(scale, value, weight, tmp_path):
    """Entries in columns that have no scale yet, as of rows of weight 0, are 0 in scaled units."""
    whole = Learner("comid,batch=3", "squared", scale=scale).learn([[value, 1.0], [1.0, 2.0]], [1.0, 2.0], [weight, 1.0])
    whole.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for learner in (whole, loaded):
        learner.learn([[1.0, 2.0], [3.0, 1.0]], [1.0, 3.0])
    assert bytes_of(loaded, tmp_path / "again") == bytes_of(whole, tmp_path / "whole")


def test_the_total_of_a_schedule_counts_batches():
    learner = Learner("csgd", "squared", total=100)
    assert learner.solver.schedule.m == 50.0
    batched = Learner("sgd,schedule=two-phase,batch=10", "squared", average="suffix,alpha=0.5", total=105)
    assert batched.engine.solver.schedule.m == 5.0
    assert batched.average.first == 6.0


@pytest.mark.parametrize("name", often(sorted(SOLVERS), SOLVERS.keys() - {"drs", "odrs", "sadmm", "fiol"}))
def test_every_solver_takes_batches_or_says_why_not(name):
    loss = "hinge" if name.startswith("pa") or name == "pegasos" else "squared"
    penalty = "none" if name.startswith("pa") or "csgd" in name or "ada" in name or name in ("rls", "2sgd") else "l2=0.1"
    parts = f"{name},batch=2", loss, penalty, "none"  # whose kernels are those of the tests of each solver's steps
    preset = SOLVERS[name]
    if not hasattr(preset.solver, "mean_form") or preset.settings.get("inexact"):
        with pytest.raises(ValueError, match="has no form with batch=: it"):
            Learner(*parts, n_features=3, total=20)
        return
    learner = Learner(*parts, n_features=3, total=20)
    learner.learn(np.eye(3), np.array([1.0, -1.0, 1.0]))
    assert learner.t == 3
    assert learner.states[0].t == 1


@pytest.mark.parametrize("text", ["0", "1.5", "257", "-3", "true", "many"])
def test_a_batch_is_a_whole_number_of_rows(text):
    with pytest.raises((ValueError, TypeError), match="batch"):
        Learner(f"comid,batch={text}", "logistic")


def test_softmax_and_lone_settings_are_refused():
    with pytest.raises(ValueError, match="no form for softmax with batch="):
        Learner("comid,batch=4", "softmax", n_outputs=3)
    with pytest.raises(ValueError, match="least-squares method"):
        Learner("adaline,batch=4", "hinge")


def test_a_step_that_is_not_finite_names_its_row():
    X = np.full((6, 2), 1e150)
    learner = Learner("sgd,eta=1e200,batch=3", "squared")
    with pytest.raises(DivergenceError, match="at row 2 "):
        learner.learn(X, np.ones(6))
    with pytest.raises(DivergenceError, match="learns no more"):
        learner.learn(X, np.ones(6))


def test_a_batch_without_a_solution_says_so(monkeypatch):
    monkeypatch.setattr(batch_dual, "MOST_ROUNDS", 0)
    monkeypatch.setattr(batch_dual, "MOST_ROWS_TAKEN", 0)
    learner = Learner("fiol,eta=2,batch=3", "hinge")
    with pytest.raises(DivergenceError, match=r"no implicit step .* duality gap of 1e-12 at row 2 .*Use a smaller step\.$"):
        learner.learn(np.ones((3, 3)), np.ones(3))
    with pytest.raises(DivergenceError, match="learns no more: no implicit step"):
        learner.learn(np.eye(3), np.ones(3))


EDITS = {
    "an end beyond the entries": lambda kept: kept[ENDS].__setitem__(0, 10**6),
    "an end before the last": lambda kept: kept[ENDS].__setitem__(1, 0),
    "a column beyond the features": lambda kept: kept[COLUMNS].__setitem__(-1, 10**6),
    "a column twice": lambda kept: kept[COLUMNS].__setitem__(1, kept[COLUMNS][0]),
    "a value that is none": lambda kept: kept[VALUES].__setitem__(0, np.nan),
    "a value that is too large": lambda kept: kept[VALUES].__setitem__(0, 1e300),
    "a weight below 0": lambda kept: kept[WEIGHTS].__setitem__(0, -1.0),
    "a target that is none": lambda kept: kept[TARGETS].__setitem__(0, np.inf),
    "a score too few": lambda kept: kept.__setitem__(SCORES, kept[SCORES][:-1]),
    "no ends": lambda kept: kept.pop(ENDS),
    "ends of another type": lambda kept: kept.__setitem__(ENDS, kept[ENDS].astype(np.float64)),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_rows_of_a_file_that_cannot_be_are_refused(edit, tmp_path):
    X = np.arange(1.0, 13.0).reshape(3, 4)
    learner = learner_of("comid", 5).learn(X, np.ones(3))
    header, arrays = learner.freeze()
    kept = {name.removeprefix("0.kept."): array.copy() for name, array in arrays.items() if name.startswith("0.kept.")}
    EDITS[edit](kept)
    arrays = {name: array for name, array in arrays.items() if not name.startswith("0.kept.")}
    model_file.write(tmp_path / "model", {"kind": "learner", **header}, arrays | {f"0.kept.{k}": v for k, v in kept.items()})
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_rows_whose_columns_are_centred_wait_in_a_file():
    X = np.random.default_rng(3).standard_normal((20, 6))
    X[:10, 0] = 0.0  # so that this column is not centred, and the others are
    whole, part = (Learner("comid,batch=5", "hinge", scale="centred", fit_intercept=True) for _ in range(2))
    whole.learn(X, np.sign(X[:, 1]))
    part = Learner.thaw(*part.learn(X[:13], np.sign(X[:13, 1])).freeze()).learn(X[13:], np.sign(X[13:, 1]))
    assert part.weights().tobytes() == whole.weights().tobytes()


# --- implicit solvers -------------------------------------------------------------------------------------------------


class Splitting:
    """One implicit step after another in NumPy, the intercept last: z from v by the thetas that the solver's answer gives."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.w, self.x, self.u, self.mu = name, *np.zeros((4, size))
        self.free = np.arange(size) == size - 1

    def prox(self, v: np.ndarray, c: float) -> np.ndarray:
        return np.where(self.free, v, soft(v, c * L1) / (1.0 + c * L2))

    def read(self) -> np.ndarray:
        return self.prox(self.u, 1.0) if self.name == "odrs" else self.x

    def step(self, rows: np.ndarray, y: np.ndarray, s: np.ndarray, t: int) -> None:
        """The step, whose theta is found by a fixed-point iteration that is damped until it contracts."""
        if self.name == "fiol":
            v, c, land = self.x, 0.3 / np.sqrt(t), lambda point: self.prox(point, 0.3 / np.sqrt(t))
        elif self.name == "implicit-sgd":
            c, r = 0.3 / np.sqrt(t), np.where(self.free, 0.0, L1 * np.sign(self.x) + L2 * self.x)
            v, land = self.x - c * r, lambda point: point
        elif self.name == "odrs":
            v, c, land = 2.0 * self.prox(self.u, 1.0) - self.u, 1.0, lambda point: point
        elif self.name == "sadmm":
            v, c, land = self.x - self.mu, 1.0, lambda point: point
        else:
            v, c, land = 0.5 * (self.x - self.mu + self.w), 0.5, lambda point: point
        theta = np.zeros(len(y))
        for _ in range(4000):
            theta += 0.1 * (s * slopes(rows @ land(v - c * (rows.T @ theta) / len(y)), y) - theta)
        self.w = land(v - c * (rows.T @ theta) / len(y))
        if self.name == "odrs":
            self.u = self.u + self.w - self.prox(self.u, 1.0)
        elif self.name in ("sadmm", "oadm"):
            self.x = self.prox(self.w + self.mu, 1.0)
            self.mu = self.mu + self.w - self.x
        else:
            self.x = self.w


@pytest.mark.parametrize("name", ["fiol", "implicit-sgd", "odrs", "sadmm", "oadm"])
def test_a_batch_is_one_implicit_step_on_the_mean_loss(name, data):
    X, y, s = (part[:23] for part in data)
    text = f"{name},{STEP}" if name in ("fiol", "implicit-sgd") else name
    penalty = "l1=0.02" if name == "oadm" else PENALTY
    learner = Learner(f"{text},batch=5", "logistic", penalty, "none", fit_intercept=True).learn(X, y, s)
    rows = np.column_stack([X.toarray(), np.ones(len(y))])
    expected = Splitting(name, rows.shape[1])
    if name == "oadm":
        expected.prox = lambda v, c: np.where(expected.free, v, soft(v, c * L1))
    for b in range(4):
        part = slice(5 * b, 5 * b + 5)
        expected.step(rows[part], y[part], s[part], b + 1)
    np.testing.assert_allclose(learner.weights(), expected.read()[:-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.intercept(), expected.read()[-1], rtol=1e-9)


LOSSES = [
    "squared", "absolute", "hinge", "squared-hinge", "logistic", "huber", "epsilon-insensitive", "quantile", "poisson",
    "exponential",
]  # fmt: skip


@pytest.mark.parametrize("penalty", ["none", "l1=0.05", "elastic-net,l1=0.01,l2=0.3,lower=-0.2,upper=0.3"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_duality_gap_of_a_batch_is_closed(loss, penalty):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 6)) * (rng.random((24, 6)) < 0.6)
    X[5], X[7], X[9] = X[3], 0.0, -X[3]  # rows that depend on each other, and an empty one
    held, r = sp.csr_matrix(X), build_penalty(penalty)
    y = rng.poisson(1.0, 24).astype(float) if loss == "poisson" else rng.choice([-1.0, 1.0], 24)
    s = rng.choice([0.0, 0.5, 1.0, 2.0], 24)
    rows = Rows(held.indptr.astype(np.uint64), held.indices.astype(np.uint32), held.data)
    own = build_loss(loss)
    columns, places = np.unique(held.indices, return_inverse=True)
    room, slopes = DualRoom.of(24, held.nnz), np.empty(24)
    for c in (0.1, 2.0, 30.0):
        v = rng.normal(size=6)
        room.v[: len(columns)] = v[columns]
        bound, settings = bind_loss(own), (0.3, 1.0, c, r, is_straight(r), most_rounds(24))
        found = batch_thetas(rows, 0, places.astype(np.uint32), room, len(columns), bound, y, s, *settings, slopes)
        assert found
        theta = 24.0 * slopes
        point = v - c * (X.T @ theta) / 24
        w = np.clip(soft(point, c * r.l1) / (1.0 + c * r.l2), getattr(r, "lower", -np.inf), getattr(r, "upper", np.inf))
        z = X @ w + 0.3 - c * theta.mean()
        gap = sum(
            weight * (own.value(score, target) + own.conjugate(t / weight, target)) - t * score
            for score, target, t, weight in zip(z, y, theta, s, strict=True)
            if weight > 0.0
        )
        size = sum(weight * own.value(score, target) for score, target, weight in zip(z, y, s, strict=True))
        assert abs(gap) <= 1e-12 * max(1.0, size, np.abs(theta * z).sum())


@pytest.mark.parametrize("name", ["fiol", "odrs", "oadm", "implicit-sgd"])
def test_implicit_batches_follow_from_the_rows_alone(name, data, tmp_path):
    X, y, s = data
    penalty = "l1=0.02" if name == "oadm" else "elastic-net,l1=0.02,l2=0.1"

    def fresh() -> Learner:
        return Learner(f"{name},batch=7", "hinge", penalty, "none", fit_intercept=True)

    whole = bytes_of(fresh().learn(X, y, s), tmp_path / "whole")
    for cut in (1, 7, 25, 49):
        fresh().learn(X[:cut].tocsc(), y[:cut], s[:cut]).save(tmp_path / "middle")
        assert bytes_of(load(tmp_path / "middle").learn(X[cut:].toarray(), y[cut:], s[cut:]), tmp_path / "again") == whole


def test_a_step_size_that_is_huge_is_no_danger_for_batches_of_text(data):
    X, y, _ = data
    learner = Learner("implicit-sgd,eta=1e6,batch=10", "logistic", fit_intercept=True).learn(X, y)
    assert np.isfinite(learner.progressive_loss)


def test_inexact_steps_say_why_they_take_no_batches():
    with pytest.raises(ValueError, match="slope of a row at z"):
        Learner("iodrs,batch=4", "logistic")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # where kernels run interpreted
@pytest.mark.parametrize(
    ("settings", "outputs", "largest"),
    [
        ({"solver": "sgd,schedule=constant,eta=1e9,batch=8", "loss": "squared"}, 1, 1.0),
        ({"solver": "sgd,schedule=constant,eta=1e6,batch=7", "loss": "squared", "scale": "rms"}, 3, 1e3),
        ({"solver": "comid,schedule=constant,eta=1e308,batch=7", "loss": "poisson"}, 3, 1e3),
        ({"solver": "ftrl,eta=1e308,batch=8", "loss": "poisson"}, 1, 1.0),
        ({"solver": "rda,gamma=1e-308", "loss": "poisson", "average": "uniform"}, 3, 1e3),
    ],
    ids=lambda value: value["solver"] if isinstance(value, dict) else "",
)
def test_the_rows_of_a_run_that_diverged_do_not_depend_on_the_cut(settings, outputs, largest):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6))
    targets = np.abs(np.round(rows @ rng.normal(size=6)))[:, None] * [[1.0, 0.0, largest][:outputs]]
    targets = targets[:, 0] if outputs == 1 else targets + np.array([0.0, 1.0, 0.0])

    def learn(learner, cut):
        for k in range(0, 200, cut):
            learner.learn(rows[k : k + cut], targets[k : k + cut])

    def rows_learned(cut):
        learner = Learner(**settings, n_features=6, n_outputs=outputs)
        with pytest.raises(DivergenceError):
            learn(learner, cut)
        return learner.t

    assert len({rows_learned(cut) for cut in (200, 1, 3, 8, 50)}) == 1
