"""A column that would make the state grow beyond its limit is refused before anything of that size is made."""

from __future__ import annotations

import memory
import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom

from onlinear import Learner, OnlineClassifier, PenaltyPath, streams
from onlinear.learner.limits import LIMIT, state_limit
from onlinear.rows.scaling import Scaler
from onlinear.solvers.core.state import State
from onlinear.streams import StreamError

FAR = 400_000_000


def row(column):
    return sp.csr_matrix(([1.0], ([0], [column])), shape=(1, 2**31 - 1))


def test_the_command_names_line_column_size_and_the_way_out_and_takes_no_memory(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n" + f"1 3:1 {FAR}:1\n")
    done = memory.run("from onlinear.cli import main; main()", "train", str(path), "--model", str(tmp_path / "m"), "-q")
    assert done.code == 1
    assert f"{path}:3: expected columns up to" in done.error
    assert f"got column {FAR - 1:,}, for which the state would grow to" in done.error
    assert LIMIT in done.error
    assert "--n-features" in done.error
    assert done.peak < 1 << 30


def test_a_learner_is_as_before_and_learns_on():
    learner = Learner("comid,eta=0.5", "hinge", "l1,l1=0.01").learn(np.eye(3), [1, -1, 1])
    before = learner.weights()
    both = sp.vstack([row(1), row(2**31 - 2)]).tocsr()
    with pytest.raises(ValueError, match=r"row 1 of X: expected columns up to .* got column 2,147,483,646"):
        learner.learn(both, [1, 1])
    with pytest.raises(ValueError, match="got column 2,000,000,000"):
        learner.learn_one(np.array([5, 2_000_000_000]), np.ones(2), 1.0)
    learner.learn_one(np.array([1]), np.ones(1), 1.0)  # the compiled way from here on
    before = learner.weights()
    with pytest.raises(ValueError, match="got column 2,000,000,000"):
        learner.learn_one(np.array([5, 2_000_000_000]), np.ones(2), 1.0)
    np.testing.assert_array_equal(learner.weights(), before)
    assert learner.size == 3
    assert learner.t == 4


def test_the_limit_can_be_moved(monkeypatch):
    monkeypatch.setenv(LIMIT, "8 KB")
    learner = Learner("comid,eta=0.5", "hinge", "l1,l1=0.01")
    learner.learn(row(999), [1])
    with pytest.raises(ValueError, match=r"expected columns up to 999 .* got column 1,000"):
        learner.learn(row(1000), [1])
    monkeypatch.setenv(LIMIT, "1mb")
    assert learner.learn(row(1000), [1]).size == 1001
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(ValueError, match=f"{LIMIT} must be a number of bytes, such as 20GB, got 'much'"):
        state_limit()


def test_a_number_of_columns_that_was_given_is_permission(monkeypatch):
    monkeypatch.setenv(LIMIT, "1KB")
    assert Learner("comid,eta=0.5", "hinge", n_features=10**6).learn(row(999_999)[:, : 10**6], [1]).size == 10**6


def test_hash_bits_that_were_asked_for_are_permission(monkeypatch, tmp_path):
    monkeypatch.setenv(LIMIT, "1KB")
    (tmp_path / "a.vw").write_text("1 | a b c\n-1 | d e\n" * 10)
    model = OnlineClassifier().fit(streams.open(tmp_path / "a.vw", hash_bits=20))
    assert model.n_features_in_ > 2**14
    (tmp_path / "a.svm").write_text("1 3000:1\n")
    with pytest.raises(StreamError, match=r"a\.svm:1: expected columns up to"):
        OnlineClassifier().fit(streams.open(tmp_path / "a.svm"))


def test_what_is_found_by_a_pass_before_the_first_row_has_the_limit_too(monkeypatch, tmp_path):
    monkeypatch.setenv(LIMIT, "1KB")
    (tmp_path / "a.svm").write_text("1 3:1\n-1 3000:1\n")
    with pytest.raises(ValueError, match=r"a\.svm:2: expected columns up to 40 "):
        OnlineClassifier(scale="standard").fit(streams.open(tmp_path / "a.svm"))


def test_arrays_of_many_declared_columns(monkeypatch):
    monkeypatch.setenv(LIMIT, "1MB")
    with pytest.raises(StreamError, match="the blocks: expected columns up to"):
        OnlineClassifier().fit([(row(3), np.array([1.0]))])


def test_all_models_of_a_path_count(monkeypatch):
    path = PenaltyPath(OnlineClassifier("hinge", solver="comid,eta=0.5"), ["l1,l1=1e-3", "l1,l1=1e-2"], grow=True)
    path.partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    monkeypatch.setenv(LIMIT, "16KB")
    with pytest.raises(ValueError, match=r"X: expected columns up to"):
        path.partial_fit(sp.csr_matrix(([1.0], ([0], [1999])), shape=(1, 2000)), [1])
    assert path.nonzeros_.shape == (2,)


@pytest.mark.parametrize(("outputs", "said"), [(1, "5 columns, 4e-08 GB"), (3, "5 columns for 3 outputs, 1.2e-07 GB")])
def test_a_state_that_finds_no_memory_says_how_large_it_is(outputs, said, monkeypatch):
    def refuse(state, size):
        raise MemoryError("Unable to allocate")

    learner = Learner("comid,eta=0.5", "hinge", "l1,l1=0.01", n_outputs=outputs)
    monkeypatch.setattr(State, "take_memory", refuse)
    with pytest.raises(MemoryError, match=rf"no memory for a state of {said} \(Unable to allocate\): .*hash_bits"):
        learner.grow(5)


@pytest.mark.parametrize("classes", [seldom(2), 3])
def test_a_model_that_finds_no_memory_is_as_before_and_learns_on(classes, tmp_path, monkeypatch):
    def refuse(scaler, size):
        raise MemoryError("Unable to allocate")  # once the states have theirs

    model, twin = OnlineClassifier(), OnlineClassifier()
    for one in (model, twin):
        for k in (0, 1, 1):
            one.learn_one({f"a{k}": 1.0}, k, classes=list(range(classes)))
    with monkeypatch.context() as patch:
        patch.setattr(Scaler, "take_memory", refuse)
        with pytest.raises(MemoryError, match="no memory for a state of 99"):
            model.learn_one({f"b{k}": 1.0 for k in range(97)}, 1)
    for row in ({"a1": 1.0}, {"a2": 2.0}, {f"b{k}": 1.0 for k in range(9)}):
        model.save(tmp_path / "a")
        twin.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        for one in (model, twin):
            one.learn_one(row, 1)
    assert model.predict_one({"b1": 1.0, "a1": 1.0}) == twin.predict_one({"b1": 1.0, "a1": 1.0})
