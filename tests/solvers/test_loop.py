"""The loop over rows: what it is told for speed changes no bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from seldom import seldom
from sparse_rows import D, N, same_bits, stream

from onlinear import Learner, OnlineClassifier, PenaltyPath
from onlinear.rows import Rows, Source
from onlinear.rows.scaling import Scaler
from onlinear.solvers.fiol import LazyFiol

AVERAGES = (None, "weighted-t1", "uniform-post")
KINDS = ("rms", "max-abs")
every_average = pytest.mark.parametrize("average", AVERAGES)


def fiol(average, scale="none", **more):
    return Learner("fiol,eta=3", "logistic", "none", average, scale, fit_intercept=True, n_features=D, **more)


def hostile():
    """Rows of which some are empty, have one entry, are all columns, are huge or tiny; and weights."""
    X, y, s = stream(3)
    rows = X.tolil()
    rows[0], rows[1] = 0.0, np.arange(1.0, D + 1.0)
    rows[2, 3], rows[5, 4], rows[6, 5] = -2.0, 1e140, 1e-170
    rows[7] = np.arange(1.0, D + 1.0)
    return sparse.csr_matrix(rows), y, s


def scaled(kind, X, s):
    """The rows in their running scales, as they are before they are learned."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    X.eliminate_zeros()
    rows = Rows(X.indptr.astype(np.uint64), X.indices.astype(np.uint32), X.data)
    found, largest = Scaler(kind, D).learn(rows, s)
    return Source(N, D, D, largest, found)


@pytest.mark.parametrize(
    ("average", "kind"), [(None, "rms"), seldom(None, "max-abs"), *((name, kind) for name in AVERAGES[1:] for kind in KINDS)]
)
def test_rows_are_scaled_in_the_loop_as_they_are_before_it(average, kind):
    X, y, s = hostile()
    inside = fiol(average, kind)
    assert inside.scales_in_loop is not None
    scores = inside.learn_checked(*inside.check_input(X, y, s))
    before = fiol(average, "none")
    source, targets, weights = before.check_input(scaled(kind, X, s), y, s)
    np.testing.assert_array_equal(before.learn_checked(source, targets, weights), scores)
    same_bits(inside, before)


@pytest.mark.parametrize("kind", KINDS)
def test_any_cut_and_single_rows_scale_the_same(kind):
    X, y, s = hostile()
    whole, cut = fiol("weighted-t1", kind).learn(X, y, s), fiol("weighted-t1", kind)
    for first, last in ((0, 0), (0, 1), (1, 8), (8, 100)):
        cut.learn(X[first:last], y[first:last], s[first:last])
    for i in range(100, N):
        if s[i] == 1.0:
            row = X[i]
            cut.learn_one(row.indices, row.data, y[i])
        else:
            cut.learn(X[i].toarray(), y[i : i + 1], s[i : i + 1])
    same_bits(whole, cut)
    np.testing.assert_array_equal(whole.scaler.moments, cut.scaler.moments)
    assert whole.progressive_loss == cut.progressive_loss


@every_average
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_loop_told_that_there_is_no_penalty_has_the_bits_of_one_that_finds_out(monkeypatch, average, loss):
    X, y, s = stream(5)
    start = np.where(np.arange(D) % 2, -0.0, 0.5)

    def run():
        learner = Learner("fiol,eta=0.7", loss, average=average, fit_intercept=True, start=start)
        return learner.learn(sparse.vstack([X] * 5), np.tile(y, 5), np.tile(s, 5))

    told = run()
    monkeypatch.setattr(LazyFiol, "rests", False)
    found = run()
    same_bits(told, found)
    for name in told.states[0].arrays:
        np.testing.assert_array_equal(np.signbit(told.states[0].arrays[name]), np.signbit(found.states[0].arrays[name]))
    np.testing.assert_array_equal(told.weights(average=True), found.weights(average=True))


def test_models_of_a_path_are_those_of_rows_scaled_in_the_loop():
    X, y, _ = stream(5)
    model = OnlineClassifier(solver="fiol,eta=3", scale="rms", average="none", shuffle=False)
    path = PenaltyPath(model, [0.0, 1e-3]).fit(X, y)
    for l1, found in zip((0.0, 1e-3), path.coefs_, strict=True):
        alone = OnlineClassifier(**model.get_params() | {"penalty": f"l1,l1={l1}"}).fit(X, y)
        assert alone.learner_.scales_in_loop is not None
        np.testing.assert_array_equal(found, alone.coef_[0])


def test_rows_are_scaled_before_the_loop_where_it_cannot():
    assert fiol("weighted-t1").scales_in_loop is None
    assert fiol("adaptive", "rms").scales_in_loop is None
    assert fiol(None, "rms", gain=True).scales_in_loop is None
    assert fiol(None, "rms", n_outputs=2).scales_in_loop is None
    assert fiol(None, "centred").scales_in_loop is None
    assert Learner("comid", "hinge", scale="rms", n_features=D).scales_in_loop is None
