"""Targets that steps follow: each output learns its rows when its own steps change, and has the bits of rows one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from onlinear import DivergenceError, Learner
from onlinear.learner.stored_learner import arrays_of
from onlinear.solvers.packs.team import InTurn

FOLLOWS = {"targets": "relative", "weights": "relative"}


def rows(outputs, n=300):
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.5)
    Y = (X @ rng.normal(size=(4, outputs)) + rng.normal(size=(n, outputs))) * 10.0 ** rng.integers(-3, 4, outputs)
    return X, Y, rng.choice([0.0, 1.0, 1.0, 7.0], n)


def same_bits(one, other):
    mine, others = arrays_of(one), arrays_of(other)
    assert mine.keys() == others.keys()
    assert all(mine[name].tobytes() == others[name].tobytes() for name in mine)


@pytest.mark.parametrize("average", [None, "adaptive"])
@pytest.mark.parametrize(
    ("loss", "clip"), [("squared", True), ("squared", False), ("absolute", False), ("poisson", True), ("poisson", False)]
)
def test_a_block_has_the_bits_of_its_rows_one_by_one(loss, clip, average):
    X, Y, s = rows(5)
    Y = np.random.default_rng(0).poisson(np.exp(np.clip(Y, -3.0, 3.0))).astype(float) if loss == "poisson" else Y
    whole, single = (
        Learner("implicit-ftrl", loss, average=average, n_outputs=5, fit_intercept=True, clip=clip, **FOLLOWS) for _ in "ab"
    )
    whole.learn(X, Y, s)
    for i in range(len(Y)):
        single.learn(X[i : i + 1], Y[i : i + 1], s[i : i + 1])
    same_bits(whole, single)


def test_an_output_learns_as_often_as_its_own_steps_change(monkeypatch):
    calls, learn = [], InTurn.learn

    def counted(self, examples):
        calls.append(self)
        return learn(self, examples)

    monkeypatch.setattr(InTurn, "learn", counted)
    counts = {}
    for outputs in (5, 60):
        X, Y, _ = rows(outputs, 2000)
        calls.clear()
        Learner("implicit-ftrl", "squared", n_outputs=outputs, fit_intercept=True, clip=True, **FOLLOWS).learn(X, Y)
        counts[outputs] = len(calls) / outputs
    assert counts[60] < 1.5 * counts[5] < 100


def test_outputs_stop_at_the_row_where_the_first_of_them_does():
    X, Y, _ = rows(3)
    X[:, 0] = 1.0
    X[150] = 1e140  # a step of every output leaves the range of numbers there, or soon after
    learner = Learner("sgd,eta=1e20", "squared", n_outputs=3, **FOLLOWS)
    with pytest.raises(DivergenceError, match=r"at row \d+ of this call") as found:
        learner.learn(X, Y)
    row = int(re.search(r"at row (\d+)", str(found.value))[1])
    assert all(state.rows >= row for state in learner.states)
    with pytest.raises(DivergenceError):
        learner.learn(X[:1], Y[:1])
