"""Rows that come again: when a later pass is seen, when none is, and that all ways of learning see the same."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom
from single_rows import CLASSIFIER

from onlinear import Learner, ModelFileError, OnlineClassifier, load
from onlinear.learner.race import HELD, SLOPE
from onlinear.learner.repeats import EMPTY, ENOUGH, FOUND, KEPT, Repeats
from onlinear.rows import read

RNG = np.random.default_rng(5)
N, D = 2000, 12
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.6)
Y = np.where(X @ RNG.standard_normal(D) > 0.0, 1.0, -1.0)
SHARE = 0.2  # of a later pass that has gone by when it is seen


def rows_of(X):
    return read(X, "X").held()


def looked(X, repeats=None):
    """The sample after these rows, and how many of them came before those of a later pass."""
    repeats = Repeats() if repeats is None else repeats
    first = 0
    for _, rows in rows_of(X).blocks():
        found = repeats.look(rows, np.ones(rows.count))
        first += found
        if found < rows.count:
            break
    return repeats, first


def made(**options):
    settings = {"solver": "implicit-ftrl", "loss": "logistic", "fit_intercept": True, "n_features": D}
    return Learner(average="adaptive,calibrated=true", **settings | options)


def bits(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


@pytest.mark.parametrize("n", [ENOUGH, 100, KEPT, N])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_later_pass_is_seen_early(n, shuffled):
    repeats, first = looked(X[:n])
    assert first == n
    order = np.random.default_rng(n).permutation(n) if shuffled else np.arange(n)
    _, first = looked(X[:n][order], repeats)
    assert first < max(ENOUGH, SHARE * n)


def test_rows_that_differ_in_one_entry_are_new():
    wide = np.ones((400, 300))
    wide[np.arange(400), np.arange(400) % 300] = 2.0 + np.arange(400)
    assert looked(wide)[1] == 400
    onehot = sp.csr_matrix((np.ones(3 * N), (np.repeat(np.arange(N), 3), RNG.integers(0, 500, 3 * N))))
    assert looked(onehot)[1] == N


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_rows_that_come_often_among_new_ones_are_no_later_pass(share):
    often = X[RNG.integers(0, 20, 20_000)]
    mixed = np.where(RNG.random(20_000)[:, None] < share, often, RNG.standard_normal((20_000, D)))
    assert looked(mixed)[1] == 20_000


def test_the_same_row_again_and_again_is_no_later_pass():
    same = np.repeat(X[: ENOUGH - 1], 50, axis=0)
    assert looked(np.vstack([X, same, np.zeros((50, D))]))[1] == N + len(same) + 50


def test_rows_without_weight_do_not_count():
    repeats = Repeats()
    rows = rows_of(X)
    (_, block), *_ = rows.blocks()
    assert repeats.look(block, np.zeros(N)) == N
    assert np.all(repeats.known[:KEPT] == EMPTY)


@pytest.mark.parametrize("outputs", [1, seldom(3)])
def test_all_ways_of_learning_see_the_same(outputs, tmp_path):
    twice = np.vstack([X[:600], X[:600]])
    y = np.tile(Y[:600], 2) if outputs == 1 else np.where(np.arange(3) == np.tile(np.arange(600) % 3, 2)[:, None], 1.0, -1.0)
    whole, cut, single = (Learner(**CLASSIFIER, n_outputs=outputs, fit_intercept=True, n_features=D) for _ in range(3))
    whole.learn(twice, y)
    assert whole.race.losses[HELD] == 1.0 == whole.race.losses[SLOPE]
    for first in range(0, 1200, 77):
        cut.learn(sp.csr_matrix(twice[first : first + 77]), y[first : first + 77])
        cut.save(tmp_path / "model")
        cut = load(tmp_path / "model")
    for row, target in zip(twice, y, strict=True):
        columns = np.flatnonzero(row)
        single.learn_one(columns, row[columns], float(target) if outputs == 1 else target)
    assert bits(cut) == bits(single) == bits(whole)


def test_partial_fit_in_a_loop_ends_as_with_the_average_alone():
    labels = np.where(RNG.random(600) < 0.2, -Y[:600], Y[:600])
    looped, plain = OnlineClassifier(), OnlineClassifier(average="adaptive")
    for _ in range(3):
        for model in (looped, plain):
            model.partial_fit(X[:600], labels, classes=[-1.0, 1.0])
    np.testing.assert_array_equal(looped.predict_proba(X), plain.predict_proba(X))


def test_files_without_a_sample_go_on(tmp_path):
    learner = made().learn(X, Y)
    header, arrays = learner.freeze()
    del arrays["race.rows"]
    old = Learner.thaw(header, arrays)
    assert old.race.calibration_slope == learner.race.calibration_slope
    old.learn(X[:10], Y[:10])


@pytest.mark.parametrize(
    ("place", "value"), [(0, 0.0), (1, np.nan), (1, 1e-9), (KEPT - 1, 1.5), (0, EMPTY), (FOUND, 0.5), (FOUND, ENOUGH + 1.0)]
)
def test_files_of_a_sample_that_cannot_be_are_refused(place, value, tmp_path):
    learner = made().learn(X, Y)
    learner.race.repeats.known[place] = value
    learner.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="sample"):
        load(tmp_path / "model")


INTERPRETED = """
from sklearn.datasets import load_iris
from onlinear import OnlineClassifier
X, y = load_iris(return_X_y=True)
model = OnlineClassifier().fit(X, y)
for row, label in zip(X, y):
    model.learn_one(([0, 1, 2, 3], row), label)
"""


def test_products_that_wrap_around_are_no_warning_where_code_is_interpreted():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", INTERPRETED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
