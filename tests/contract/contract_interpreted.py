"""The contract on tiny problems, interpreted: run by ``test_contract.py`` in a process with NUMBA_DISABLE_JIT=1."""

# ruff: noqa: F401, F811 (the fixture ``tally`` is imported)

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from combinations import NAMES, PENALTY_TEXTS, Case, build, covering, demands, is_lazy, variants
from contract_checks import (
    examples,
    lazy_run_is_the_recursion,
    one_step_is_the_recursion,
    same_bits,
    tally,
    weight_0_is_a_step_without_loss,
)
from seldom import often, seldom

from onlinear import Learner, OnlineClassifier, OnlineRegressor
from onlinear.compiled import COMPILED
from onlinear.solvers import SOLVERS

CASES = covering(1, demands(pairs=False))
LAZY = [case for case in covering(1, demands()) if is_lazy(case)]
STEPS = [case for case in LAZY if "batch=" not in case.solver]  # a batch's step is that of its solver


def test_kernels_are_interpreted() -> None:
    assert not COMPILED


@pytest.mark.parametrize("case", LAZY, ids=str)
def test_lazy_run_is_the_recursion(case: Case, tally: dict[str, Counter[str]]) -> None:
    examples(lazy_run_is_the_recursion, case, tally, 1, rows=40)


@pytest.mark.parametrize("case", often(STEPS, STEPS[::4]), ids=str)
def test_one_step_is_the_recursion(case: Case, tally: dict[str, Counter[str]]) -> None:
    examples(one_step_is_the_recursion, case, tally, 2, wild=True, rows=9)


@pytest.mark.parametrize(("turn", "case"), [seldom(*c) if c[0] % 4 else c for c in enumerate(CASES)], ids=str)
def test_same_bits(turn: int, case: Case, tally: dict[str, Counter[str]], tmp_path: Path) -> None:
    folder = tmp_path if turn % 8 == 0 else None
    examples(same_bits, case, tally, 1, rows=9, folder=folder, single=turn % 4 == 0, turn=turn)


def test_joined_outputs_are_the_recursion() -> None:
    X, y, w, eta = np.sin(np.arange(120.0)).reshape(40, 3), np.arange(40) % 5, np.zeros((3, 5)), 0.7
    for t, (x, own) in enumerate(zip(X, y, strict=True), start=1):
        p = np.exp(x @ w) / np.sum(np.exp(x @ w))
        w = w - eta / np.sqrt(t) * np.outer(x, p - (np.arange(5) == own))
        w = np.sign(w) * np.maximum(np.abs(w) - 0.01 * eta / np.sqrt(t), 0.0)
    run = Learner(f"comid,eta={eta}", "softmax", "l1=0.01", "weighted-t1", n_outputs=5).learn(X, y)
    np.testing.assert_allclose(run.weights(), w, atol=1e-13)
    small = [Learner(f"{name},eta=1e-6", "softmax", "l1=0.01", n_outputs=5).learn(X, y).weights() for name in ("fiol", "comid")]
    np.testing.assert_allclose(*small, atol=1e-10)
    assert np.abs(small[0]).max() > 1e-7


TURNS = list(zip(NAMES, itertools.cycle(("exponential", "poisson")), strict=False))  # compiled runs take both of each
FIRST = {SOLVERS[name].solver: name for name in reversed(NAMES)}.values()  # of each method; presets come as they are


@pytest.mark.parametrize(("name", "loss"), TURNS)
def test_weight_0_is_a_step_without_loss(name: str, loss: str) -> None:
    texts = variants(name) if name in FIRST else (name,)
    built = {case: build(case) for text in texts for case in (Case(text, loss, p, "none") for p in PENALTY_TEXTS)}
    accepted = [case for case, found in built.items() if not isinstance(found, str)]
    refused = [str(refusal) for case, refusal in built.items() if "batch=" not in case.solver]
    assert accepted or all("loss" in refusal for refusal in refused)
    for case in accepted:
        weight_0_is_a_step_without_loss(case, 1)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of fingerprints, whose bits beyond 64 are dropped
def test_rows_one_by_one_where_the_arrays_change() -> None:
    """What is called for a row is that of the arrays it is held with: before a scale centres columns and after it, and for
    outputs that are read side by side."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((12, 3)) + 5.0
    numbers, same = OnlineRegressor(), OnlineRegressor()
    for x, y in zip(X, X[:, 0], strict=True):
        numbers.learn_one((np.arange(3), x), y)
        same.partial_fit(x[None], [y])
    assert np.array_equal(numbers.coef_, same.coef_)
    classes = OnlineClassifier("softmax", solver="fiol", average="suffix").fit(X, np.arange(12) % 5)
    assert [classes.predict_one(np.arange(3), x) for x in X] == classes.predict(X).tolist()
