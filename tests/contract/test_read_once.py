"""Large dense arrays are checked and learned in one reading: the same bits, and the same errors, which leave all as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from combinations import NAMES, Case, compiled_cases, is_lazy

from onlinear import Learner, rows
from onlinear.errors import DivergenceError
from onlinear.learner import read_once
from onlinear.solvers.core.engine import Engine

D, N = 5, 40
RNG = np.random.default_rng(7)
FULL = RNG.uniform(0.5, 1.5, (N, D)) * RNG.choice([-1.0, 1.0], (N, D))
X = {
    "no zeros": FULL,
    "few zeros": FULL * (RNG.random((N, D)) < 0.95),
    "a late zero": np.where(np.arange(N * D).reshape(N, D) == 150, 0.0, FULL),
    "many zeros": FULL * (RNG.random((N, D)) < 0.2),
    "zeros alone": np.zeros((N, D)),
    "float32": (FULL * (RNG.random((N, D)) < 0.7)).astype(np.float32),
}
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)
WARNS = pytest.mark.filterwarnings("ignore:.*without a constant column:UserWarning")
PLAIN = "comid,eta=0.5", "hinge", "l1,l1=0.01", "uniform"

# Of each solver one combination without an average and one with, lazy where it can be: dense ones have kernels of their own.
CASES = list({(case.name, case.average): case for case in sorted(compiled_cases(), key=is_lazy) if case.name in NAMES}.values())


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_once, "LEAST", 1)
    monkeypatch.setattr(read_once, "SHARE", 0)
    monkeypatch.setattr("onlinear.rows.arrays.ENTRIES", 3 * D)


def targets(learner: Learner) -> np.ndarray:
    return np.abs(Y) if getattr(learner.loss, "labels", "real") == "counts" else Y


def known(learner: Learner) -> dict[str, Any]:
    """All that a file of the learner holds, and its table of steps."""
    header, arrays = learner.freeze()
    table = learner.states[0].table
    return {"header": header, "table": None if table is None else table.tobytes()} | {
        name: (array.dtype, array.tobytes()) for name, array in arrays.items()
    }


def checked_first(learner: Learner, *call: Any) -> Learner:
    learner.learn_checked(*learner.check_input(*(*call, None)[:3]))
    return learner


def begun(case: Case | None = None) -> Learner:
    learner = Learner(*PLAIN, n_features=D, fit_intercept=True) if case is None else case.learner()
    return checked_first(learner, FULL[:7], targets(learner)[:7])


def error_of(call: Any) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def test_large_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def noted(*given: Any) -> bool:
        found.append(learned(*given))
        return found[-1]

    learned = read_once.learned_as_read
    monkeypatch.setattr("onlinear.learner.learner.learned_as_read", noted)
    monkeypatch.setattr(read_once, "LEAST", N * D)
    begun().learn(FULL, Y)
    begun().learn(FULL[1:], Y[1:])
    begun().learn(np.asfortranarray(FULL), Y)
    begun().learn(np.ma.MaskedArray(FULL), Y)
    begun().learn(FULL.astype(int), Y)
    Learner(*PLAIN).learn(FULL, Y)
    Learner(*PLAIN, n_features=D, scale="rms").learn(FULL, Y)
    Learner(*PLAIN, n_features=D, n_outputs=2).learn(FULL, np.stack([Y, Y], axis=1))
    Learner("comid,batch=3", "hinge", n_features=D).learn(FULL, Y)
    Learner("fiol", "logistic", average="adaptive", n_features=D).learn(FULL, Y)
    Learner("mixture", "logistic", n_features=D).learn(FULL, Y)
    Learner("csgd,m=9", "squared", n_features=D, fit_intercept=True).learn(FULL, Y)
    monkeypatch.setattr(read_once, "SHARE", 1000)
    begun().learn(FULL, Y)
    assert found == [True] + [False] * 12


@WARNS
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", ["no zeros", "many zeros"])
def test_the_same_bits_for_every_solver(case: Case, kind: str) -> None:
    once, twice = begun(case), begun(case)
    y = targets(once)
    errors = [error_of(lambda: once.learn(X[kind], y)), error_of(lambda: checked_first(twice, X[kind], y))]
    assert repr(errors[0]) == repr(errors[1])
    if errors[0] is None:
        assert known(once) == known(twice)


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("weights", [None, RNG.uniform(0.0, 2.0, N)], ids=["equal", "weights"])
def test_the_same_bits_for_all_rows(kind: str, weights: np.ndarray | None) -> None:
    once, twice = begun().learn(X[kind], Y, weights), checked_first(begun(), X[kind], Y, weights)
    assert known(once) == known(twice)
    frozen = X[kind].copy()
    frozen.flags.writeable = False
    assert known(begun().learn(frozen, Y, weights)) == known(twice)


def wrong_calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for kind, row, value in (
        ("no zeros", 0, np.nan),
        ("no zeros", 20, -np.inf),
        ("no zeros", N - 1, np.nan),
        ("many zeros", N - 1, np.inf),
        ("float32", N - 1, np.nan),
        ("no zeros", N - 1, 1e151),
        ("many zeros", N - 1, -1e300),
    ):
        wrong = X[kind].copy()
        wrong[row, D - 1] = value
        yield f"{kind}, {value} at {row}", (wrong, Y)
        yield f"{kind}, {value} at {row}, and y", (wrong, 2.0 * Y)
    yield "y", (FULL, np.where(np.arange(N) == N - 1, 3.0, Y))
    yield "y of another length", (FULL, Y[1:])
    yield "y of text", (FULL, ["a"] * N)
    yield "weights", (FULL, Y, np.where(np.arange(N) == N - 1, -1.0, 1.0))


WRONG = dict(wrong_calls())


@pytest.mark.parametrize("name", WRONG)
def test_the_same_errors(name: str) -> None:
    learner = begun()
    before = known(learner)
    wanted = error_of(lambda: learner.check_input(*(*WRONG[name], None)[:3]))
    assert wanted is not None
    with pytest.raises(type(wanted), match=re.escape(str(wanted))):
        learner.learn(*WRONG[name])
    assert known(learner) == before
    assert known(learner.learn(FULL, Y)) == known(begun().learn(FULL, Y))


@WARNS
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_error_leaves_every_solver_as_it_was(case: Case) -> None:
    learner = begun(case)
    before, y, wrong = known(learner), targets(learner), FULL.copy()
    wrong[N - 1, 0] = np.nan
    with pytest.raises(ValueError, match=f"X contains NaN at row {N - 1}, column 0"):
        learner.learn(wrong, y)
    assert known(learner) == before
    other = begun(case)
    errors = [error_of(lambda: learner.learn(FULL, y)), error_of(lambda: checked_first(other, FULL, y))]
    assert repr(errors[0]) == repr(errors[1])
    if errors[0] is None:
        assert known(learner) == known(other)


def test_values_beyond_what_kernels_watch() -> None:
    large = FULL.copy()
    large[N - 1] = 1e120
    solver = "comid,eta=1e-130"
    once, twice = (Learner(solver, "hinge", n_features=D) for _ in range(2))
    assert known(once.learn(large, Y)) == known(checked_first(twice, large, Y))


def test_divergence_is_found_after_wrong_values() -> None:
    learner = Learner("comid,eta=1e200", "squared", n_features=D)
    before, wrong = known(learner), FULL.copy()
    wrong[N - 1, 0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN"):
        learner.learn(wrong, Y)
    assert known(learner) == before
    other = Learner("comid,eta=1e200", "squared", n_features=D)
    errors = [error_of(lambda: learner.learn(FULL, Y)), error_of(lambda: checked_first(other, FULL, Y))]
    assert isinstance(errors[0], DivergenceError)
    assert str(errors[0]) == str(errors[1])
    with pytest.raises(DivergenceError):
        learner.weights()


def test_an_interrupt_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, calls = begun(), iter(range(3))
    before, learn = known(learner), Engine.learn_outputs

    def interrupted(*given: Any) -> int:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return learn(*given)

    monkeypatch.setattr(Engine, "learn_outputs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(FULL, Y)
    assert known(learner) == before


def test_single_rows_before_and_after() -> None:
    def run(*, wrong: bool) -> tuple[list[float], dict[str, Any]]:
        learner, columns, scores = Learner("fiol", "logistic", "l1=0.01"), np.arange(D), []
        bad = np.where(np.arange(N * D).reshape(N, D) == N * D - 1, np.nan, FULL)
        for row, y in zip(FULL[:8], Y[:8], strict=True):
            scores += [learner.learn_one(columns, row, y) for _ in range(2)]
            scores += [learner.predict_one(columns, row) for _ in range(4)]
            if wrong:
                with pytest.raises(rows.NotFinite):
                    learner.learn(bad, Y)
            scores += [learner.predict_one(columns, row) for _ in range(4)]
        return scores, known(learner)

    assert run(wrong=True) == run(wrong=False)
